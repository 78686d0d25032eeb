//! Several GPUs and several clients of one machine.

use nv_proto::rm::names::classes as class;
use nv_proto::rm::{self, Status, flags};
use nv_proto::unit::Handle;
use nv_sim::{Chip, DmaMapping, Machine, Options, Sandbox};

use crate::rig::Rig;

const SIZE: u64 = 2 << 20;

fn two() -> (Rig, Rig) {
    let machine = Machine::new(&[Chip::Gh100, Chip::Gh100]).unwrap();
    (Rig::open(machine.clone(), 0), Rig::open(machine, 1))
}

fn dup(to: &Rig, parent: Handle, from: &Rig, source: Handle) -> Result<Handle, Status> {
    to.machine
        .dup(to.client, parent, Handle::NULL, from.client, source)
}

/// The device and the subdevice of GPU `index` in a client that has another's.
fn further_device(rig: &Rig, index: u32) -> (Handle, Handle) {
    let mut device = rm::DeviceAlloc::default();
    device.device_id = index.into();
    let device = rig
        .alloc(rig.client, class::NV01_DEVICE_0, &mut device)
        .unwrap();
    let mut subdevice = rm::SubdeviceAlloc::default();
    let subdevice = rig
        .alloc(device, class::NV20_SUBDEVICE_0, &mut subdevice)
        .unwrap();
    (device, subdevice)
}

fn peers(rig: &Rig, own: Handle, peer: Handle) -> Result<Handle, Status> {
    let mut params = rm::P2pAlloc::default();
    params.h_sub_device = own.0.into();
    params.h_peer_sub_device = peer.0.into();
    rig.alloc(rig.client, class::NV50_P2P, &mut params)
}

#[test]
fn a_duplicate_is_the_same_memory_with_mappings_of_its_own() {
    let machine = Machine::new(&[Chip::Gh100]).unwrap();
    let (a, b) = (Rig::open(machine.clone(), 0), Rig::open(machine.clone(), 0));
    let memory = a.memory(SIZE, false);
    let used = machine.vidmem_used(0);
    let copy = dup(&b, b.device, &a, memory).unwrap();
    assert_eq!(machine.vidmem_used(0), used, "no memory is taken for it");
    machine
        .map_dma(b.client, &b.dma(copy, 0, SIZE, 0x5000_0000))
        .unwrap();
    machine
        .map_dma(a.client, &a.dma(memory, 0, SIZE, 0x5000_0000))
        .unwrap();
    let span = |rig: &Rig, memory| {
        machine
            .map_memory(rig.client, rig.device, memory, 0, SIZE, 0)
            .unwrap()
    };
    span(&a, memory).cells()[7].store(42, std::sync::atomic::Ordering::SeqCst);
    let seen = span(&b, copy).cells()[7].load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(seen, 42);
    // The one may be freed before the other, and takes its own mappings along.
    a.free(memory);
    assert_eq!(machine.vidmem_used(0), used);
    let unmapped = machine.unmap_dma(
        b.client,
        b.device,
        b.virtual_memory,
        copy,
        nv_proto::unit::GpuVa(0x5000_0000),
    );
    assert_eq!(unmapped, Ok(()));
    b.free(copy);
    assert_eq!(machine.vidmem_used(0), used - SIZE);
}

#[test]
fn what_cannot_be_duplicated_is_refused() {
    let (a, b) = two();
    let memory = a.memory(SIZE, false);
    let host = a.memory(SIZE, true);
    // GPU memory keeps to its GPU, host memory does not.
    assert_eq!(dup(&b, b.device, &a, memory), Err(Status::NOT_SUPPORTED));
    dup(&b, b.device, &a, host).unwrap();
    assert_eq!(dup(&b, b.device, &a, a.space), Err(Status::NOT_SUPPORTED));
    assert_eq!(
        dup(&b, b.device, &a, Handle(0x77)),
        Err(Status::OBJECT_NOT_FOUND)
    );
    assert_eq!(
        dup(&b, b.space, &a, host),
        Err(Status::INVALID_OBJECT_PARENT)
    );
    let machine = &a.machine;
    let unknown = machine.dup(b.client, b.device, Handle::NULL, Handle(0x77), host);
    assert_eq!(unknown, Err(Status::INVALID_CLIENT));
    let unknown = machine.dup(Handle(0x77), b.device, Handle::NULL, a.client, host);
    assert_eq!(unknown, Err(Status::INVALID_CLIENT));
    let taken = machine.dup(b.client, b.device, b.space, a.client, host);
    assert_eq!(taken, Err(Status::INSERT_DUPLICATE_NAME));
}

#[test]
fn another_gpus_memory_is_mapped_as_a_peers_and_takes_an_object_for_it() {
    let (a, b) = two();
    let memory = a.memory(SIZE, false);
    let (far, far_subdevice) = further_device(&b, 0);
    let copy = dup(&b, far, &a, memory).unwrap();
    let plain = b.dma(copy, 0, SIZE, 0x5000_0000);
    let as_peer = DmaMapping {
        flags: plain.flags | flags::map_dma::p2p_enable::NOSLI,
        ..plain
    };
    let map = |request| b.machine.map_dma(b.client, request).map(drop);
    assert_eq!(map(&as_peer), Err(Status::NOT_SUPPORTED));
    let pair = peers(&b, b.subdevice, far_subdevice).unwrap();
    assert_eq!(map(&plain), Err(Status::NOT_SUPPORTED));
    assert_eq!(map(&as_peer), Ok(()));
    let unmapped = b.machine.unmap_dma(
        b.client,
        b.device,
        b.virtual_memory,
        copy,
        nv_proto::unit::GpuVa(0x5000_0000),
    );
    assert_eq!(unmapped, Ok(()));
    b.free(pair);
    assert_eq!(map(&as_peer), Err(Status::NOT_SUPPORTED));
    // A pair is of two, by subdevices, and of two that reach each other.
    assert_eq!(
        peers(&b, b.subdevice, b.subdevice),
        Err(Status::INVALID_ARGUMENT)
    );
    assert_eq!(
        peers(&b, b.device, far_subdevice),
        Err(Status::INVALID_OBJECT_HANDLE)
    );
    b.machine.keep_apart(1, 0);
    assert_eq!(
        peers(&b, b.subdevice, far_subdevice),
        Err(Status::NOT_SUPPORTED)
    );
}

#[test]
fn capabilities_are_those_of_the_pair() {
    let machine = Machine::new(&[Chip::Gh100; 3]).unwrap();
    machine.keep_apart(2, 1);
    let rig = Rig::open(machine, 0);
    let caps = |ids: &[u32]| {
        let mut params = rm::SystemGetP2pCapsV2::default();
        for (place, id) in params.gpu_ids.iter_mut().zip(ids) {
            *place = (*id).into();
        }
        params.gpu_count = (ids.len() as u32).into();
        rig.control(rig.client, &mut params)?;
        let [read, write, nvlink, ..] = params.p2p_caps_status;
        Ok((params.p2p_caps.get() & 3, read, write, nvlink))
    };
    let [a, b, c] = [0, 1, 2].map(Machine::gpu_id);
    assert_eq!(caps(&[a, b]), Ok((3, 0, 0, 5)));
    assert_eq!(caps(&[c, a]), Ok((3, 0, 0, 5)));
    assert_eq!(caps(&[b, c]), Ok((0, 1, 1, 5)));
    assert_eq!(caps(&[a, b, c]), Ok((0, 1, 1, 5)));
    assert_eq!(caps(&[]), Err(Status::INVALID_ARGUMENT));
    assert_eq!(caps(&[a, 7]), Err(Status::INVALID_ARGUMENT));
    let mut many = rm::SystemGetP2pCapsV2::default();
    many.gpu_count = 33.into();
    assert_eq!(
        rig.control(rig.client, &mut many),
        Err(Status::INVALID_ARGUMENT)
    );
}

#[test]
fn a_sandbox_refuses_what_computing_does_not_take() {
    let options = Options {
        sandbox: Sandbox::Compute,
        ..Options::default()
    };
    let machine = Machine::with_options(&[Chip::Gh100], options).unwrap();
    let null = Handle::NULL;
    let client = machine
        .alloc(null, null, null, class::NV01_ROOT_CLIENT, &mut [])
        .unwrap();
    let refused = Err(Status::INSUFFICIENT_PERMISSIONS);
    for class in [class::NV01_MEMORY_VIRTUAL, class::GT200_DEBUGGER] {
        let made = machine.alloc(client, client, null, class, &mut [0; 64]);
        assert_eq!(made, refused);
    }
    let version = machine.control(client, client, 0x13e, &mut [0; 0x408]);
    assert_eq!(version.map(|()| null), refused);
    let request = DmaMapping {
        device: null,
        virtual_memory: null,
        memory: null,
        offset: 0,
        length: SIZE,
        flags: 0,
        va: nv_proto::unit::GpuVa(0),
    };
    assert_eq!(machine.map_dma(client, &request).map(|_| null), refused);
}
