//! The resource manager's objects: what is made, refused and given back.

use nv_proto::push::Subchannel;
use nv_proto::push::copy;
use nv_proto::push::host::SemRelease;
use nv_proto::rm::names::classes as class;
use nv_proto::rm::{self, Control, DriverVersion, Status, flags};
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_sim::{Chip, Machine, Options};

use crate::replay::pages;
use crate::rig::{Rig, wait_for};

const NULL: Handle = Handle::NULL;

/// What making an object with these bytes answers.
fn alloc(rig: &Rig, parent: Handle, class: u32, params: &mut [u8]) -> Result<Handle, Status> {
    rig.machine
        .alloc(rig.client, parent, NULL, ClassId(class), params)
}

#[test]
fn clients_come_first() {
    let machine = Machine::new(&[Chip::Gh100]).unwrap();
    let root = class::NV01_ROOT_CLIENT;
    let device = class::NV01_DEVICE_0;
    let nobody = Handle(0xc1d0_0077);
    let made = machine.alloc(nobody, nobody, NULL, device, &mut [0; 56]);
    assert_eq!(made, Err(Status::INVALID_CLIENT));
    let [a, b] = [(); 2].map(|()| machine.alloc(NULL, NULL, NULL, root, &mut []).unwrap());
    assert_ne!(a, b);
    assert_eq!(
        machine.alloc(NULL, NULL, a, root, &mut []),
        Err(Status::INSERT_DUPLICATE_NAME)
    );
    assert_eq!(machine.alloc(NULL, NULL, nobody, root, &mut []), Ok(nobody));
    let mut params = [0; 56];
    let first = machine.alloc(a, a, NULL, device, &mut params).unwrap();
    // A client's objects are its own.
    assert_eq!(machine.class_list(b, first), Err(Status::OBJECT_NOT_FOUND));
    assert!(
        machine
            .class_list(a, first)
            .unwrap()
            .contains(&ClassId(0xcbc0))
    );
    assert_eq!(machine.object_count(), 4);
    machine.free(a, NULL, a).unwrap();
    assert_eq!(machine.free(a, NULL, a), Err(Status::INVALID_CLIENT));
    assert_eq!(machine.object_count(), 2);
}

#[test]
fn wrong_classes_parents_and_handles_are_refused() {
    let rig = Rig::new(Chip::Gh100);
    let params = &mut [0; 400];
    let (group, _) = rig.group();
    let device = rig.device;
    for (parent, class, status) in [
        (Handle(0x77), 0x80, Status::INVALID_OBJECT_PARENT),
        (device, 0x80, Status::INVALID_OBJECT_PARENT),
        (rig.client, 0x2080, Status::INVALID_OBJECT_PARENT),
        (rig.subdevice, 0x70, Status::INVALID_OBJECT_PARENT),
        (rig.client, 0x40, Status::INVALID_OBJECT_PARENT),
        (rig.subdevice, 0x3e, Status::INVALID_OBJECT_PARENT),
        (device, 0x9067, Status::INVALID_OBJECT_PARENT),
        (device, 0xcbc0, Status::INVALID_OBJECT_PARENT),
        (group, 0xcbc0, Status::INVALID_OBJECT_PARENT),
        (rig.client, 0xc86f, Status::INVALID_OBJECT_PARENT),
        (device, 0xc661, Status::INVALID_OBJECT_PARENT),
        (rig.space, 0xcbc0, Status::INVALID_OBJECT_PARENT),
        // Blackwell's and Turing's on Hopper; nobody's.
        (group, 0xca6f, Status::INVALID_CLASS),
        (device, 0xc5c0, Status::INVALID_CLASS),
        (device, 0xbeef, Status::INVALID_CLASS),
        // Offered, but graphics is not simulated.
        (device, 0xcb97, Status::NOT_SUPPORTED),
        (device, 0x83de, Status::INVALID_OBJECT_HANDLE),
    ] {
        assert_eq!(
            alloc(&rig, parent, class, params),
            Err(status),
            "class {class:#x}"
        );
    }
    let taken = rig.machine.alloc(
        rig.client,
        device,
        rig.space,
        class::FERMI_VASPACE_A,
        params,
    );
    assert_eq!(taken, Err(Status::INSERT_DUPLICATE_NAME));
    let named = rig.machine.alloc(
        rig.client,
        device,
        Handle(0x1234),
        class::FERMI_VASPACE_A,
        params,
    );
    assert_eq!(named, Ok(Handle(0x1234)));
    // Objects that name others.
    let mut wrong = rm::MemoryVirtualAlloc::default();
    wrong.h_va_space = rig.device.0.into();
    let made = rig.alloc(device, class::NV01_MEMORY_VIRTUAL, &mut wrong);
    assert_eq!(made, Err(Status::INVALID_OBJECT_HANDLE));
    let mut beyond = rm::MemoryVirtualAlloc::default();
    beyond.h_va_space = rig.space.0.into();
    beyond.limit = 0x1_ffff_ffff_ffff.into();
    let made = rig.alloc(device, class::NV01_MEMORY_VIRTUAL, &mut beyond);
    assert_eq!(made, Err(Status::INVALID_LIMIT));
    let mut absent = rm::DeviceAlloc::default();
    absent.device_id = 1.into();
    assert_eq!(
        rig.alloc(rig.client, class::NV01_DEVICE_0, &mut absent),
        Err(Status::INVALID_DEVICE)
    );
}

#[test]
fn parameters_have_the_size_of_the_release() {
    let of = |version| {
        let options = Options {
            version,
            ..Options::default()
        };
        Rig::with_options(Chip::Gh100, options)
    };
    // Memory parameters grew by 8 bytes at 545.23.06, and the driver copies its own size.
    let old = of(DriverVersion::new(535, 288, 1));
    let new = of(DriverVersion::new(580, 159, 4));
    let mut params = rm::MemoryAlloc::default();
    params.size = 4096.into();
    let bytes = |params: &mut rm::MemoryAlloc, size: usize| {
        zerocopy::IntoBytes::as_mut_bytes(params)[..size].to_vec()
    };
    for (rig, size) in [(&old, 0x78), (&new, 0x80)] {
        let (device, mut good) = (rig.device, bytes(&mut params, size));
        assert!(alloc(rig, device, 0x40, &mut good).is_ok());
        let short = alloc(rig, device, 0x40, &mut good[..size - 8]);
        assert_eq!(short, Err(Status::INVALID_PARAM_STRUCT));
        assert_eq!(
            alloc(rig, device, 0x40, &mut []),
            Err(Status::INVALID_PARAM_STRUCT)
        );
    }
    // Control parameters have to have it exactly: 2 bytes until 575.51.02, 3 since.
    for (rig, right) in [(&old, 2), (&new, 3)] {
        let (group, _) = rig.group();
        for size in [0, 1, 2, 3, 4] {
            let command = rm::GroupGpfifoSchedule::COMMAND;
            let answer = rig
                .machine
                .control(rig.client, group, command, &mut vec![0; size]);
            let expected = if size == right {
                Ok(())
            } else {
                Err(Status::INVALID_PARAM_STRUCT)
            };
            assert_eq!(answer, expected, "{size} bytes");
        }
    }
    // Channels moved their control area's handle at 610.43.02.
    for version in [
        DriverVersion::new(535, 288, 1),
        DriverVersion::new(610, 43, 2),
    ] {
        let rig = of(version);
        let mut channel = rig.channel();
        let memory = rig.host_buffer(4096);
        channel.submit(|push| {
            let release = SemRelease {
                at: memory.va,
                value: 1,
                wfi: true,
                timestamp: false,
            };
            push.write(Subchannel::HOST, &release)
        });
        memory.wait_u64(0, 1);
    }
}

#[test]
fn controls_answer_what_the_chip_is() {
    for chip in Chip::ALL {
        let rig = Rig::new(chip);
        let mut name = rm::GpuGetNameString::default();
        rig.control(rig.subdevice, &mut name).unwrap();
        let text: Vec<u8> = name
            .gpu_name_string
            .into_iter()
            .take_while(|byte| *byte != 0)
            .collect();
        assert_eq!(String::from_utf8(text).unwrap(), chip.product());
        let mut gid = rm::GpuGetGidInfo::default();
        gid.flags = flags::gid::format::BINARY.into();
        rig.control(rig.subdevice, &mut gid).unwrap();
        assert_eq!(gid.length.get(), 16);
        assert_eq!(
            Some(gid.data[..16].try_into().unwrap()),
            rig.machine.uuid(0)
        );
        let mut tpcs = 0;
        let mut mask = rm::GrGetTpcMask::default();
        for gpc in 0..chip.gpcs() {
            mask.gpc_id = gpc.into();
            rig.control(rig.subdevice, &mut mask).unwrap();
            tpcs += mask.tpc_mask.get().count_ones();
        }
        assert_eq!(tpcs * chip.sms_per_tpc(), chip.sm_count());
        mask.gpc_id = chip.gpcs().into();
        assert_eq!(
            rig.control(rig.subdevice, &mut mask),
            Err(Status::INVALID_ARGUMENT)
        );
        let facts = rig
            .machine
            .gr_info(rig.client, rig.subdevice, &[0x0c, 0x0d, 0x0e]);
        assert_eq!(
            facts,
            Ok(vec![chip.gr_sm_version(), chip.warps_per_sm(), 32])
        );
        let beyond = rig.machine.gr_info(rig.client, rig.subdevice, &[0x35]);
        assert_eq!(beyond, Err(Status::INVALID_ARGUMENT));
        let wrong = rig.machine.gr_info(rig.client, rig.device, &[0x0c]);
        assert_eq!(wrong, Err(Status::NOT_SUPPORTED));
        let listed = rig.machine.class_list(rig.client, rig.device).unwrap();
        assert_eq!(listed, chip.classes());
        assert_eq!(
            rig.machine.class_list(rig.client, rig.subdevice),
            Err(Status::NOT_SUPPORTED)
        );
        let mut list = rm::GpuGetClasslistV2::default();
        rig.control(rig.device, &mut list).unwrap();
        let count = list.num_classes.get() as usize;
        let ids: Vec<u32> = list.class_list[..count].iter().map(|id| id.get()).collect();
        assert_eq!(ids, listed.iter().map(|class| class.0).collect::<Vec<_>>());
    }
    let rig = Rig::new(Chip::Gh100);
    let mut boost = rm::PerfBoost::default();
    rig.control(rig.subdevice, &mut boost).unwrap();
    // A command of another class; one that there is not; an object that there is not.
    assert_eq!(
        rig.control(rig.device, &mut boost),
        Err(Status::NOT_SUPPORTED)
    );
    let unknown = rig
        .machine
        .control(rig.client, rig.device, 0x0080_ffff, &mut []);
    assert_eq!(unknown, Err(Status::NOT_SUPPORTED));
    assert_eq!(
        rig.control(Handle(0x55), &mut boost),
        Err(Status::OBJECT_NOT_FOUND)
    );
}

#[test]
fn memory_is_counted_and_runs_out() {
    let options = Options {
        memory: 64 << 20,
        ..Options::default()
    };
    let rig = Rig::with_options(Chip::Gh100, options);
    let used = || rig.machine.vidmem_used(0);
    let big = rig.memory(40 << 20, false);
    assert_eq!(used(), 40 << 20);
    let (class, mut params) = Rig::memory_params(32 << 20, false);
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::NO_MEMORY)
    );
    let (class, mut params) = Rig::memory_params(u64::MAX, false);
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::NO_MEMORY)
    );
    assert_eq!(used(), 40 << 20);
    // Pages as the driver picks them: 64 KiB below 2 MiB, 2 MiB from there.
    let small = rig.memory(0x6000, false);
    assert_eq!(used(), (40 << 20) + 0x1_0000);
    rig.memory(0x1_0000, true);
    assert_eq!(
        used(),
        (40 << 20) + 0x1_0000,
        "host memory is not the GPU's"
    );
    rig.free(big);
    rig.free(small);
    assert_eq!(used(), 0);
    let (class, mut params) = Rig::memory_params(3 << 20, false);
    rig.alloc(rig.device, class, &mut params).unwrap();
    assert_eq!((params.size.get(), used()), (4 << 20, 4 << 20));
    let (class, mut params) = Rig::memory_params(0, false);
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::INVALID_ARGUMENT)
    );
    let (class, mut params) = Rig::memory_params(4096, false);
    params.attr = flags::attr::location::PCI.into();
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::INVALID_ARGUMENT)
    );
    let (class, mut params) = Rig::memory_params(4096, true);
    params.attr = 0.into();
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::INVALID_ARGUMENT)
    );
    let (class, mut params) = Rig::memory_params(4096, false);
    params.alignment = 3.into();
    assert_eq!(
        rig.alloc(rig.device, class, &mut params),
        Err(Status::INVALID_ARGUMENT)
    );
    for _ in 0..10 {
        let all = rig.memory(60 << 20, false);
        rig.free(all);
    }
    assert_eq!(used(), 4 << 20);
}

#[test]
fn gpu_mappings_take_whole_pages() {
    let rig = Rig::new(Chip::Gh100);
    let huge = rig.memory(4 << 20, false);
    let small = rig.memory(0x3000, true);
    let map = |memory, offset, length, va| {
        rig.machine
            .map_dma(rig.client, &rig.dma(memory, offset, length, va))
    };
    let base = 0x20_0000_0000;
    assert_eq!(map(huge, 0, 0x1000, base), Ok(GpuVa(base)));
    // The rest of the 2 MiB page is taken too.
    assert_eq!(
        map(small, 0, 0x1000, base + 0x10_0000),
        Err(Status::NO_MEMORY)
    );
    assert_eq!(
        map(small, 0, 0x1000, base + 0x20_0000),
        Ok(GpuVa(base + 0x20_0000))
    );
    assert_eq!(
        map(small, 0x1000, 0x2000, base + 0x20_1000),
        Ok(GpuVa(base + 0x20_1000))
    );
    assert_eq!(
        map(small, 0, 0x1000, base + 0x20_2000),
        Err(Status::NO_MEMORY)
    );
    for (memory, offset, length, va, status) in [
        (small, 0, 0, base + 0x40_0000, Status::INVALID_ARGUMENT),
        (
            small,
            0x1000,
            0x3000,
            base + 0x40_0000,
            Status::INVALID_ARGUMENT,
        ),
        (
            small,
            u64::MAX,
            2,
            base + 0x40_0000,
            Status::INVALID_ARGUMENT,
        ),
        (small, 0, 0x1000, base + 0x40_0800, Status::INVALID_OFFSET),
        (huge, 0, 0x1000, base + 0x41_0000, Status::INVALID_OFFSET),
        (small, 0, 0x1000, 0x1_ffff_ffff_f000, Status::INVALID_OFFSET),
        (small, 0, 0x1000, u64::MAX - 0xfff, Status::INVALID_OFFSET),
        (
            rig.space,
            0,
            0x1000,
            base + 0x40_0000,
            Status::INVALID_OBJECT_HANDLE,
        ),
    ] {
        assert_eq!(
            map(memory, offset, length, va),
            Err(status),
            "{offset:#x} {length:#x} {va:#x}"
        );
    }
    // Small pages of memory in large ones; the other way round it cannot be.
    let mut request = rig.dma(huge, 0x20_0000, 0x1000, base + 0x40_1000);
    request.flags |= flags::map_dma::page_size::_4KB;
    assert_eq!(rig.machine.map_dma(rig.client, &request), Ok(request.va));
    let mut request = rig.dma(small, 0, 0x1000, base + 0x60_0000);
    request.flags |= flags::map_dma::page_size::HUGE;
    assert_eq!(
        rig.machine.map_dma(rig.client, &request),
        Err(Status::INVALID_ARGUMENT)
    );
    // An address of the driver's choice.
    let mut request = rig.dma(small, 0, 0x1000, 0);
    request.flags = 0;
    let [first, second] = [(); 2].map(|()| rig.machine.map_dma(rig.client, &request).unwrap());
    assert!(first.0 != 0 && first.0 + 0x1000 <= second.0);
    // Freed memory is mapped nowhere.
    rig.free(huge);
    assert_eq!(map(small, 0, 0x1000, base), Ok(GpuVa(base)));
    // An address space that UVM owns is not the resource manager's to map into.
    let mut external = rm::VaSpaceAlloc::default();
    external.flags = flags::va_space::IS_EXTERNALLY_OWNED.into();
    let external = rig
        .alloc(rig.device, class::FERMI_VASPACE_A, &mut external)
        .unwrap();
    let mut range = rm::MemoryVirtualAlloc::default();
    range.h_va_space = external.0.into();
    let range = rig
        .alloc(rig.device, class::NV01_MEMORY_VIRTUAL, &mut range)
        .unwrap();
    let mut request = rig.dma(small, 0, 0x1000, base);
    request.virtual_memory = range;
    assert_eq!(
        rig.machine.map_dma(rig.client, &request),
        Err(Status::NOT_SUPPORTED)
    );
}

#[test]
fn cpu_mappings_lie_inside_their_memory() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.memory(0x3000, true);
    let map = |device, memory, offset, length| {
        rig.machine
            .map_memory(rig.client, device, memory, offset, length, 0)
            .map(|span| span.bytes())
    };
    assert_eq!(map(rig.device, memory, 0x1000, 0x2000), Ok(0x2000));
    assert_eq!(map(rig.subdevice, memory, 0, 0x3000), Ok(0x3000));
    assert_eq!(
        map(rig.device, memory, 0x1000, 0x3000),
        Err(Status::INVALID_LIMIT)
    );
    assert_eq!(
        map(rig.device, memory, !0xfff, 0x3000),
        Err(Status::INVALID_LIMIT)
    );
    assert_eq!(
        map(rig.device, memory, 0x10, 0x10),
        Err(Status::INVALID_ARGUMENT)
    );
    assert_eq!(map(rig.device, memory, 0, 0), Err(Status::INVALID_ARGUMENT));
    assert_eq!(
        map(rig.space, memory, 0, 0x1000),
        Err(Status::INVALID_DEVICE)
    );
    assert_eq!(
        map(rig.device, rig.space, 0, 0x1000),
        Err(Status::INVALID_OBJECT)
    );
    assert_eq!(
        map(rig.device, Handle(0x99), 0, 0x1000),
        Err(Status::OBJECT_NOT_FOUND)
    );
    let usermode = alloc(&rig, rig.subdevice, 0xc661, &mut []).unwrap();
    assert_eq!(map(rig.device, usermode, 0, 0x1_0000), Ok(0x1_0000));
    // A mapping keeps its memory.
    let span = rig
        .machine
        .map_memory(rig.client, rig.device, memory, 0, 0x1000, 0)
        .unwrap();
    rig.free(memory);
    span.cells()[0].store(5, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        span.cells()[0].load(std::sync::atomic::Ordering::Relaxed),
        5
    );
}

#[test]
fn channels_are_checked_before_they_are_made() {
    let rig = Rig::new(Chip::Gh100);
    let (group, share) = rig.group();
    let area = rig.buffer(0x2000);
    let notifier = rig.host_buffer(4096);
    let class = rig.channel_class();
    let count = rig.machine.object_count();
    let make = |change: &dyn Fn(&mut rm::ChannelGpfifoAlloc)| {
        let mut params = Rig::channel_params(share, &area, 64, notifier.memory);
        change(&mut params);
        rig.alloc(group, class, &mut params)
    };
    type Change<'a> = &'a dyn Fn(&mut rm::ChannelGpfifoAlloc);
    let cases: [(Change<'_>, Status); 9] = [
        (&|p| p.gp_fifo_entries = 0.into(), Status::INVALID_ARGUMENT),
        (&|p| p.gp_fifo_entries = 63.into(), Status::INVALID_ARGUMENT),
        (
            &|p| p.gp_fifo_offset = (p.gp_fifo_offset.get() + 4).into(),
            Status::INVALID_ARGUMENT,
        ),
        (
            &|p| p.h_context_share = 0x77.into(),
            Status::INVALID_OBJECT_HANDLE,
        ),
        (
            &|p| p.h_va_space = rig.space.0.into(),
            Status::INVALID_ARGUMENT,
        ),
        (
            &|p| p.h_userd_memory[0] = 0.into(),
            Status::INVALID_OBJECT_HANDLE,
        ),
        (
            &|p| p.userd_offset[0] = 0x204.into(),
            Status::INVALID_ARGUMENT,
        ),
        (
            &|p| p.userd_offset[0] = 0x20_0000.into(),
            Status::INVALID_ARGUMENT,
        ),
        (
            &|p| p.h_object_error = rig.space.0.into(),
            Status::INVALID_OBJECT_HANDLE,
        ),
    ];
    for (change, status) in cases {
        assert_eq!(make(change), Err(status));
    }
    assert_eq!(rig.machine.object_count(), count);
    let first = make(&|_| ()).unwrap();
    let second = make(&|p| p.h_object_error = 0.into()).unwrap();
    let token = |channel| {
        let mut token = rm::GetWorkSubmitToken::default();
        rig.control(channel, &mut token)
            .map(|()| token.work_submit_token.get())
    };
    assert_ne!(token(first).unwrap(), token(second).unwrap());
    assert_eq!(token(group), Err(Status::NOT_SUPPORTED));
    // A number given back is given out again.
    let number = token(first).unwrap();
    rig.free(first);
    assert_eq!(token(make(&|_| ()).unwrap()).unwrap(), number);
    let blackwell = Rig::new(Chip::Gb202);
    let channel = blackwell.channel();
    assert_eq!(channel.token.0 >> 30, 1, "runlist doorbell enable");
}

#[test]
fn freeing_takes_all_below_along() {
    let rig = Rig::new(Chip::Gh100);
    let before = rig.machine.object_count();
    let channel = rig.channel();
    assert!(rig.machine.object_count() > before + 4);
    let wrong = rig.machine.free(rig.client, rig.space, channel.group);
    assert_eq!(wrong, Err(Status::INVALID_OBJECT_PARENT));
    rig.machine
        .free(rig.client, rig.device, channel.group)
        .unwrap();
    // Its area, notifier and command memory are the device's.
    assert_eq!(rig.machine.object_count(), before + 3);
    let again = rig.machine.free(rig.client, rig.device, channel.group);
    assert_eq!(again, Err(Status::OBJECT_NOT_FOUND));
    assert_eq!(rig.last_fault(&channel), None);
    rig.free(rig.device);
    assert_eq!(
        (rig.machine.object_count(), rig.machine.vidmem_used(0)),
        (1, 0)
    );
}

#[test]
fn a_clients_own_pages_are_lent_and_given_back() {
    let rig = Rig::new(Chip::Gh100);
    let lend = |cells| {
        rig.machine
            .register_pages(rig.client, rig.device, NULL, cells)
    };
    let cells = pages(0x4000);
    let memory = lend(cells).unwrap();
    let va = rig.fresh_va(0x4000);
    rig.machine
        .map_dma(rig.client, &rig.dma(memory, 0, 0x4000, va))
        .unwrap();
    let device = rig.buffer(0x4000);
    device.fill(0x3c);
    let semaphore = rig.host_buffer(4096);
    let mut channel = rig.channel();
    channel.submit(|push| {
        copy::linear(push, Subchannel::COPY, GpuVa(va), device.va, 0x4000)?;
        let release = SemRelease {
            at: semaphore.va,
            value: 1,
            wfi: true,
            timestamp: false,
        };
        push.write(Subchannel::HOST, &release)
    });
    semaphore.wait_u64(0, 1);
    let loaded =
        |cell: &std::sync::atomic::AtomicU64| cell.load(std::sync::atomic::Ordering::Acquire);
    assert!(
        cells
            .iter()
            .all(|cell| loaded(cell) == 0x3c3c_3c3c_3c3c_3c3c)
    );
    let mapped = rig
        .machine
        .map_memory(rig.client, rig.device, memory, 0, 0x1000, 0);
    assert_eq!(mapped.err(), Some(Status::NOT_SUPPORTED));
    rig.free(memory);
    channel.submit(|push| copy::linear(push, Subchannel::COPY, GpuVa(va), device.va, 8));
    assert!(rig.fault(&channel).contains("MMU fault"));

    assert_eq!(lend(&cells[1..513]), Err(Status::INVALID_ADDRESS));
    assert_eq!(lend(&cells[..100]), Err(Status::INVALID_LIMIT));
    assert_eq!(lend(&cells[..0]), Err(Status::INVALID_LIMIT));
    let wrong = rig
        .machine
        .register_pages(rig.client, rig.subdevice, NULL, cells);
    assert_eq!(wrong, Err(Status::INVALID_OBJECT_PARENT));
}

#[test]
fn machines_end_with_everything_running() {
    for _ in 0..20 {
        let rig = Rig::new(Chip::Ga102);
        let semaphore = rig.host_buffer(4096);
        let mut channel = rig.channel();
        channel.submit(|push| {
            let acquire = nv_proto::push::host::SemAcquire::geq(semaphore.va, 1);
            push.write(Subchannel::HOST, &acquire)
        });
        wait_for("the entry", || (channel.get() == 2).then_some(()));
        // Dropped with a channel waiting.
    }
}

#[test]
fn threads_share_a_machine() {
    let machine = Machine::new(&[Chip::Gh100, Chip::Ga102]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let machine = machine.clone();
            scope.spawn(move || {
                let rig = Rig::open(machine, thread % 2);
                for round in 0..25 {
                    let memory = rig.memory(1 << 20, false);
                    let va = 0x30_0000_0000 + round * (4 << 20);
                    rig.machine
                        .map_dma(rig.client, &rig.dma(memory, 0, 1 << 20, va))
                        .unwrap();
                    rig.free(memory);
                }
                rig.machine.free(rig.client, NULL, rig.client).unwrap();
            });
        }
    });
    assert_eq!(machine.object_count(), 0);
    assert_eq!((machine.vidmem_used(0), machine.vidmem_used(1)), (0, 0));
}
