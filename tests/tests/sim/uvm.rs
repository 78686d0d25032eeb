//! The UVM driver: external ranges, several GPUs, and what it refuses.

use nv_proto::push::Subchannel;
use nv_proto::push::copy;
use nv_proto::push::host::SemRelease;
use nv_proto::rm::names::classes as class;
use nv_proto::rm::{self, DriverVersion, Status, flags};
use nv_proto::unit::{GpuVa, Handle};
use nv_proto::uvm::{self, UvmCommand};
use nv_sim::{Chip, Machine, Options, Uvm};

use crate::rig::Rig;

/// A client whose address space UVM owns.
struct UvmRig {
    rig: Rig,
    uuid: [u8; 16],
    space: Handle,
}

fn call<P: UvmCommand>(
    uvm: &Uvm,
    version: DriverVersion,
    params: &mut P,
) -> Result<Status, Status> {
    let answer = uvm.ioctl(P::COMMAND, params.bytes_mut(version));
    params.read_back(version);
    let status = match answer {
        Ok(status) | Err(status) => status,
    };
    assert_eq!(
        params.status(version),
        status,
        "the status is in the parameters too"
    );
    answer
}

fn initialize(uvm: &Uvm, version: DriverVersion) {
    assert_eq!(
        call(uvm, version, &mut uvm::Initialize::default()),
        Ok(Status::OK)
    );
}

impl UvmRig {
    fn open(machine: std::sync::Arc<Machine>, index: u32) -> Self {
        let rig = Rig::open(machine, index);
        let mut params = rm::VaSpaceAlloc::default();
        params.flags =
            (flags::va_space::IS_EXTERNALLY_OWNED | flags::va_space::ENABLE_PAGE_FAULTING).into();
        let space = rig
            .alloc(rig.device, class::FERMI_VASPACE_A, &mut params)
            .unwrap();
        let uuid = rig.machine.uuid(index).unwrap();
        Self { rig, uuid, space }
    }

    fn register(&self, uvm: &Uvm) -> Result<Status, Status> {
        let version = self.rig.machine.version();
        let mut gpu = uvm::RegisterGpu::default();
        gpu.gpu_uuid = self.uuid;
        call(uvm, version, &mut gpu)?;
        self.register_space(uvm, self.space)
    }

    fn register_space(&self, uvm: &Uvm, space: Handle) -> Result<Status, Status> {
        let mut params = uvm::RegisterGpuVaspace::default();
        params.gpu_uuid = self.uuid;
        params.h_client = self.rig.client.0.into();
        params.h_va_space = space.0.into();
        call(uvm, self.rig.machine.version(), &mut params)
    }

    fn map(
        &self,
        uvm: &Uvm,
        memory: Handle,
        va: u64,
        length: u64,
        offset: u64,
    ) -> Result<Status, Status> {
        let mut params = uvm::MapExternalAllocationParams::default();
        params.base = va.into();
        params.length = length.into();
        params.offset = offset.into();
        params.h_client = self.rig.client.0.into();
        params.h_memory = memory.0.into();
        let mut params = uvm::MapExternalAllocation::one_gpu(params, self.uuid);
        call(uvm, self.rig.machine.version(), &mut params)
    }
}

fn range(uvm: &Uvm, version: DriverVersion, va: u64, length: u64) -> Result<Status, Status> {
    let mut params = uvm::CreateExternalRange::default();
    params.base = va.into();
    params.length = length.into();
    call(uvm, version, &mut params)
}

fn free(uvm: &Uvm, version: DriverVersion, va: u64, length: u64) -> Result<Status, Status> {
    let mut params = uvm::FreeParams::default();
    params.base = va.into();
    params.length = length.into();
    call(uvm, version, &mut uvm::Free::from(params))
}

#[test]
fn it_wants_to_be_initialized_and_told_of_gpus() {
    let machine = Machine::new(&[Chip::Gh100]).unwrap();
    let version = machine.version();
    let client = UvmRig::open(machine.clone(), 0);
    let uvm = machine.open_uvm();
    assert_eq!(
        range(&uvm, version, 0x1000_0000, 0x1000),
        Err(Status::ILLEGAL_ACTION)
    );
    let warned = call(&uvm, version, &mut uvm::MmInitialize::default());
    assert_eq!(warned, Ok(Status::WARN_NOTHING_TO_DO));
    initialize(&uvm, version);
    assert_eq!(
        client.register_space(&uvm, client.space),
        Err(Status::INVALID_DEVICE)
    );
    let mut stranger = uvm::RegisterGpu::default();
    stranger.gpu_uuid = [7; 16];
    assert_eq!(
        call(&uvm, version, &mut stranger),
        Err(Status::GPU_UUID_NOT_FOUND)
    );
    assert_eq!(client.register(&uvm), Ok(Status::OK));
    assert_eq!(client.register(&uvm), Err(Status::INVALID_DEVICE));
    assert_eq!(
        client.register_space(&uvm, client.space),
        Err(Status::INVALID_DEVICE)
    );
    // The resource manager's own address space is not UVM's to take.
    assert_eq!(
        client.register_space(&uvm, client.rig.space),
        Err(Status::INVALID_FLAGS)
    );
    assert_eq!(
        client.register_space(&uvm, client.rig.device),
        Err(Status::INVALID_OBJECT_HANDLE)
    );
    assert_eq!(uvm.ioctl(0x7777, &mut [0; 64]), Err(Status::NOT_SUPPORTED));
    assert_eq!(
        uvm.ioctl(uvm::RegisterGpu::COMMAND, &mut [0; 16]),
        Err(Status::INVALID_PARAM_STRUCT)
    );
}

#[test]
fn ranges_and_mappings_are_checked() {
    let machine = Machine::new(&[Chip::Gh100]).unwrap();
    let version = machine.version();
    let client = UvmRig::open(machine.clone(), 0);
    let uvm = machine.open_uvm();
    initialize(&uvm, version);
    client.register(&uvm).unwrap();
    let memory = client.rig.memory(4 << 20, false);
    let va = 0x2000_0000;
    assert_eq!(
        client.map(&uvm, memory, va, 0x1000, 0),
        Err(Status::INVALID_ADDRESS)
    );
    assert_eq!(range(&uvm, version, va, 0x10_0000), Ok(Status::OK));
    for (base, length) in [
        (va, 0x1000),
        (va + 0xf_f000, 0x2000),
        (va - 0x1000, 0x2000),
        (va - 0x1000, 0x80_0000),
    ] {
        assert_eq!(
            range(&uvm, version, base, length),
            Err(Status::UVM_ADDRESS_IN_USE)
        );
    }
    for (base, length) in [
        (va + 0x800, 0x1000),
        (0x9000_0000, 0x800),
        (0x9000_0000, 0),
        (u64::MAX - 0xfff, 0x2000),
    ] {
        assert_eq!(
            range(&uvm, version, base, length),
            Err(Status::INVALID_ADDRESS)
        );
    }
    assert_eq!(
        client.map(&uvm, memory, va, 0x10_0000, 0x10_0000),
        Ok(Status::OK)
    );
    // Again, in the place of the first.
    assert_eq!(client.map(&uvm, memory, va, 0x10_0000, 0), Ok(Status::OK));
    assert_eq!(
        client.map(&uvm, memory, va, 0x11_0000, 0),
        Err(Status::INVALID_ADDRESS)
    );
    assert_eq!(
        client.map(&uvm, memory, va, 0x1000, 4 << 20),
        Err(Status::INVALID_OFFSET)
    );
    assert_eq!(
        client.map(&uvm, memory, va, 0x1000, 0x10),
        Err(Status::INVALID_OFFSET)
    );
    assert_eq!(
        client.map(&uvm, client.space, va, 0x1000, 0),
        Err(Status::OBJECT_NOT_FOUND)
    );
    let mut unmap = uvm::UnmapExternal::default();
    unmap.base = va.into();
    unmap.length = 0x1000.into();
    unmap.gpu_uuid = client.uuid;
    assert_eq!(call(&uvm, version, &mut unmap), Ok(Status::OK));
    unmap.length = 0x20_0000.into();
    assert_eq!(
        call(&uvm, version, &mut unmap),
        Err(Status::INVALID_ADDRESS)
    );
    assert_eq!(
        free(&uvm, version, va + 0x1000, 0x1000),
        Err(Status::INVALID_ADDRESS)
    );
    assert_eq!(free(&uvm, version, va, 0x10_0000), Ok(Status::OK));
    assert_eq!(
        free(&uvm, version, va, 0x10_0000),
        Err(Status::INVALID_ADDRESS)
    );
}

/// A copy through a channel in an address space of UVM, with each layout that releases have.
#[test]
fn channels_run_in_a_space_of_uvm() {
    for version in [
        DriverVersion::new(535, 288, 1),
        DriverVersion::new(580, 159, 4),
        DriverVersion::new(595, 45, 4),
    ] {
        let options = Options {
            version,
            ..Options::default()
        };
        let machine = Machine::with_options(&[Chip::Gh100], options).unwrap();
        let client = UvmRig::open(machine.clone(), 0);
        let uvm = machine.open_uvm();
        initialize(&uvm, version);
        client.register(&uvm).unwrap();
        let rig = &client.rig;
        let buffer = |va: u64, host| {
            let memory = rig.memory(2 << 20, host);
            range(&uvm, version, va, 2 << 20).unwrap();
            client.map(&uvm, memory, va, 2 << 20, 0).unwrap();
            let span = rig
                .machine
                .map_memory(rig.client, rig.device, memory, 0, 2 << 20, 0)
                .unwrap();
            crate::rig::Buffer {
                memory,
                va: GpuVa(va),
                span,
            }
        };
        let area = buffer(0x10_0000_0000, false);
        let commands = buffer(0x10_0040_0000, false);
        let data = buffer(0x10_0080_0000, true);
        let mut group = rm::ChannelGroupAlloc::default();
        group.engine_type = 1.into();
        let group = rig
            .alloc(rig.device, class::KEPLER_CHANNEL_GROUP_A, &mut group)
            .unwrap();
        let mut share = rm::CtxShareAlloc::default();
        share.h_va_space = client.space.0.into();
        let share = rig
            .alloc(group, class::FERMI_CONTEXT_SHARE_A, &mut share)
            .unwrap();
        let mut params = Rig::channel_params(share, &area, 64, Handle::NULL);
        let channel = rig.alloc(group, rig.channel_class(), &mut params).unwrap();
        rig.engine(channel, rig.chip.copy_class());
        let mut register = uvm::RegisterChannel::default();
        register.gpu_uuid = client.uuid;
        register.h_client = rig.client.0.into();
        register.h_channel = channel.0.into();
        register.base = 0x10_00c0_0000.into();
        register.length = 0x40_0000.into();
        assert_eq!(call(&uvm, version, &mut register), Ok(Status::OK));
        let taken = range(&uvm, version, 0x10_00c0_0000, 0x1000);
        assert_eq!(taken, Err(Status::UVM_ADDRESS_IN_USE));
        rig.schedule(group);
        for i in 0..64 {
            data.set_u64(i * 8, i * 3 + 1);
        }
        let words = crate::rig::words(|push| {
            let class = rig.chip.copy_class();
            push.write(Subchannel::COPY, &copy::SetObject { class })?;
            copy::linear(push, Subchannel::COPY, data.at(0x1000), data.va, 512)?;
            let release = SemRelease {
                at: data.at(0x2000),
                value: 1,
                wfi: true,
                timestamp: false,
            };
            push.write(Subchannel::HOST, &release)
        });
        for (i, word) in words.iter().enumerate() {
            commands.set_u32(i as u64 * 4, *word);
        }
        let entry = nv_proto::gpfifo::GpEntry::new(commands.va, words.len() as u32).unwrap();
        area.set_u64(0, entry.encode());
        area.set_u32(512 + nv_proto::gpfifo::USERD_GP_PUT as u64, 1);
        let mut token = rm::GetWorkSubmitToken::default();
        rig.control(channel, &mut token).unwrap();
        let token = nv_proto::unit::SubmitToken(token.work_submit_token.get());
        rig.machine.doorbell(0).unwrap().ring(token);
        data.wait_u64(0x2000, 1);
        assert!((0..64).all(|i| data.u64(0x1000 + i * 8) == i * 3 + 1));

        let mut gone = uvm::UnregisterChannelParams::default();
        gone.h_client = rig.client.0.into();
        gone.h_channel = channel.0.into();
        let mut gone = uvm::UnregisterChannel::from(gone);
        assert_eq!(call(&uvm, version, &mut gone), Ok(Status::OK));
        assert_eq!(call(&uvm, version, &mut gone), Err(Status::INVALID_CHANNEL));
        let mut space = uvm::UnregisterGpuVaspace::default();
        space.gpu_uuid = client.uuid;
        assert_eq!(call(&uvm, version, &mut space), Ok(Status::OK));
        assert_eq!(call(&uvm, version, &mut space), Err(Status::INVALID_DEVICE));
    }
}

#[test]
fn peers_reach_each_others_memory_once_they_may() {
    let machine = Machine::new(&[Chip::Gh100, Chip::Gh100]).unwrap();
    let version = machine.version();
    assert_ne!(machine.uuid(0), machine.uuid(1));
    let [a, b] = [0, 1].map(|index| UvmRig::open(machine.clone(), index));
    let uvm = machine.open_uvm();
    initialize(&uvm, version);
    a.register(&uvm).unwrap();
    let mut pair = uvm::EnablePeerAccess::default();
    (pair.gpu_uuid_a, pair.gpu_uuid_b) = (a.uuid, b.uuid);
    assert_eq!(
        call(&uvm, version, &mut pair),
        Err(Status::INVALID_DEVICE),
        "b is not registered"
    );
    b.register(&uvm).unwrap();
    let va = 0x3000_0000;
    range(&uvm, version, va, 2 << 20).unwrap();
    let memory = a.rig.memory(2 << 20, false);
    // The memory of GPU 0, mapped by GPU 1.
    let map = || {
        let mut params = uvm::MapExternalAllocationParams::default();
        params.base = va.into();
        params.length = (2 << 20).into();
        params.h_client = a.rig.client.0.into();
        params.h_memory = memory.0.into();
        call(
            &uvm,
            version,
            &mut uvm::MapExternalAllocation::one_gpu(params, b.uuid),
        )
    };
    assert_eq!(map(), Err(Status::INVALID_DEVICE));
    assert_eq!(call(&uvm, version, &mut pair), Ok(Status::OK));
    assert_eq!(call(&uvm, version, &mut pair), Err(Status::INVALID_DEVICE));
    assert_eq!(map(), Ok(Status::OK));
    let mut ended = uvm::DisablePeerAccess::default();
    (ended.gpu_uuid_a, ended.gpu_uuid_b) = (b.uuid, a.uuid);
    assert_eq!(call(&uvm, version, &mut ended), Ok(Status::OK));
    assert_eq!(map(), Err(Status::INVALID_DEVICE));
    // A pair that is kept apart is refused, by itself.
    machine.keep_apart(0, 1);
    assert_eq!(call(&uvm, version, &mut pair), Err(Status::NOT_SUPPORTED));
    // Host memory needs no permission, but its GPU has to be known.
    let host = b.rig.memory(2 << 20, true);
    assert_eq!(b.map(&uvm, host, va, 2 << 20, 0), Ok(Status::OK));
    let far = a.rig.memory(2 << 20, true);
    let map_far = |uvm: &Uvm| {
        let mut params = uvm::MapExternalAllocationParams::default();
        params.base = va.into();
        params.length = (2 << 20).into();
        params.h_client = a.rig.client.0.into();
        params.h_memory = far.0.into();
        let mut params = uvm::MapExternalAllocation::one_gpu(params, b.uuid);
        call(uvm, version, &mut params)
    };
    assert_eq!(map_far(&uvm), Ok(Status::OK));
    let other = machine.open_uvm();
    initialize(&other, version);
    b.register(&other).unwrap();
    range(&other, version, va, 2 << 20).unwrap();
    assert_eq!(map_far(&other), Err(Status::INVALID_DEVICE));
}
