//! Several GPUs of one machine: simulated ones of two and of four, and real ones by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use std::sync::Arc;
use std::time::Duration;

use nv_host::{Backend, Context, Device, Error, MapMode, Options, PeerLink, Placement, SimMachine};
use nv_sim::{Chip, Machine};
use nv_tests::conformance::{module as suite_module, peers as suite, works};

fn machine(gpus: usize) -> SimMachine {
    Machine::new(&vec![Chip::Gh100; gpus]).unwrap().into()
}

fn gpu(machine: &SimMachine, index: u32, map_mode: MapMode) -> Device {
    Device::open(&Options {
        backend: Backend::SimIn(machine.clone(), index),
        map_mode: Some(map_mode),
        ..Options::default()
    })
    .unwrap()
}

/// Whatever two GPUs that reach each other are asked for.
fn everything(a: &Context, b: &Context) {
    for (owner, user) in [(a, b), (b, a)] {
        user.can_access(owner).unwrap();
        user.enable_peer(owner).unwrap();
        suite::mapping_between(owner, user);
        suite::copies_between(owner, user);
        suite::signals_between(owner, user);
    }
}

/// What two GPUs do that do not reach each other: all but mapping GPU memory.
fn apart(a: &Context, b: &Context) {
    for (owner, user) in [(a, b), (b, a)] {
        let refused = |result: Result<(), Error>| match result {
            Err(Error::NoPeerAccess { from, to, reason }) => {
                assert!(from.contains("GPU id") && to.contains("GPU id"));
                assert!(!reason.is_empty());
            }
            other => panic!("{other:?}"),
        };
        refused(user.can_access(owner).map(drop));
        refused(user.enable_peer(owner));
        let buffer = owner.upload(&[1_u32; 100]).unwrap();
        refused(buffer.map_for(user).map(drop));
        // Host memory is reached by all.
        let host = owner.alloc_in::<u32>(100, Placement::Pinned).unwrap();
        host.map_for(user).unwrap();
        suite::copies_between(owner, user);
        suite::signals_between(owner, user);
        works(owner);
        works(user);
    }
}

const MODES: [(MapMode, MapMode); 4] = [
    (MapMode::Rm, MapMode::Rm),
    (MapMode::Uvm, MapMode::Uvm),
    (MapMode::Rm, MapMode::Uvm),
    (MapMode::Uvm, MapMode::Rm),
];

#[test]
fn two_gpus_have_everything_of_each_other() {
    for (first, second) in MODES {
        let machine = machine(2);
        let left = || {
            let machine = machine.machine();
            (
                machine.object_count(),
                machine.vidmem_used(0),
                machine.vidmem_used(1),
            )
        };
        let (a, b) = (gpu(&machine, 0, first), gpu(&machine, 1, second));
        assert_eq!(a.can_access(&b).unwrap(), PeerLink::Pcie);
        assert_eq!(
            a.can_access(&a.new_context().unwrap()).unwrap(),
            PeerLink::Same
        );
        everything(&a, &b);
        suite::lifetimes_between(|| a.new_context().unwrap(), &b);
        drop((a, b));
        assert_eq!(left(), (0, 0, 0), "{first:?} {second:?}");
    }
}

#[test]
fn two_gpus_that_do_not_reach_each_other_still_copy_and_wait() {
    for (first, second) in MODES {
        let machine = machine(2);
        machine.machine().keep_apart(0, 1);
        let (a, b) = (gpu(&machine, 0, first), gpu(&machine, 1, second));
        apart(&a, &b);
        drop((a, b));
        assert_eq!(machine.machine().object_count(), 0);
        assert_eq!(machine.machine().vidmem_used(0), 0);
    }
}

#[test]
fn of_four_gpus_one_pair_is_refused() {
    let machine = machine(4);
    machine.machine().keep_apart(2, 1);
    let gpus: Vec<Device> = (0..4)
        .map(|index| {
            let mode = if index % 2 == 0 {
                MapMode::Rm
            } else {
                MapMode::Uvm
            };
            gpu(&machine, index, mode)
        })
        .collect();
    for (i, a) in gpus.iter().enumerate() {
        for (j, b) in gpus.iter().enumerate() {
            let link = a.can_access(b);
            match (i.min(j), i.max(j)) {
                (1, 2) => assert!(matches!(link, Err(Error::NoPeerAccess { .. }))),
                _ if i == j => assert_eq!(link.unwrap(), PeerLink::Same),
                _ => assert_eq!(link.unwrap(), PeerLink::Pcie),
            }
        }
    }
    // A ring over all four, so that the pair that is refused goes through host memory.
    let stream: Vec<_> = gpus.iter().map(|gpu| gpu.stream().unwrap()).collect();
    let values: Vec<u32> = (0..5_000_000).collect();
    let buffers: Vec<_> = gpus
        .iter()
        .map(|gpu| gpu.alloc::<u32>(values.len()).unwrap())
        .collect();
    buffers[0].write(&values).unwrap();
    let mut last = None;
    for at in [1, 2, 3] {
        if let Some(event) = &last {
            stream[at].wait_for(event).unwrap();
        }
        last = Some(
            stream[at]
                .copy_peer(&buffers[at], &buffers[at - 1])
                .unwrap(),
        );
    }
    last.unwrap().wait().unwrap();
    for buffer in &buffers {
        assert!(buffer.read().unwrap() == values);
    }
    everything(&gpus[0], &gpus[3]);
    for gpu in &gpus {
        works(gpu);
    }
}

/// The GPU that empties the host memory is busy while the other could fill it again and again.
#[test]
fn host_memory_is_not_filled_before_it_is_emptied() {
    let machine = machine(2);
    machine.machine().keep_apart(0, 1);
    let (fast, slow) = (gpu(&machine, 0, MapMode::Rm), gpu(&machine, 1, MapMode::Rm));
    let len = 24 << 20;
    let values: Vec<u8> = (0..len)
        .map(|i: usize| (i ^ i >> 8 ^ i >> 16) as u8)
        .collect();
    let source = fast.upload(&values).unwrap();
    let target = slow.alloc::<u8>(len).unwrap();
    target.write(&[0]).unwrap();
    // As many kernels as a simulated GPU runs at once: nothing else gets on.
    let module = suite_module(&slow, "faults");
    let endless = module.function("loop").unwrap();
    let flag = slow.alloc_in::<u64>(16, Placement::Pinned).unwrap();
    flag.write(&[0; 16]).unwrap();
    let streams: Vec<_> = (0..8).map(|_| slow.stream().unwrap()).collect();
    let running: Vec<_> = streams
        .iter()
        .map(|stream| {
            stream
                .launch(&endless)
                .block(32)
                .arg(&flag)
                .submit()
                .unwrap()
        })
        .collect();
    let stream = fast.stream().unwrap();
    let copied = stream.copy_peer(&target, &source).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(!copied.is_reached());
    flag.mapping().unwrap().write_u64(8, 99);
    copied.wait().unwrap();
    for event in running {
        event.wait().unwrap();
    }
    assert!(target.read().unwrap() == values);
}

#[test]
fn gpus_of_two_machines_have_nothing_of_each_other() {
    let (one, other) = (machine(1), machine(1));
    let (a, b) = (gpu(&one, 0, MapMode::Rm), gpu(&other, 0, MapMode::Rm));
    let text = a.can_access(&b).unwrap_err().to_string();
    assert!(text.contains("not of one machine"), "{text}");
    let there = b.upload(&[1_u8; 10]).unwrap();
    assert!(matches!(there.map_for(&a), Err(Error::NoPeerAccess { .. })));
    let here = a.alloc::<u8>(10).unwrap();
    let stream = a.stream().unwrap();
    assert!(matches!(
        stream.copy_peer(&here, &there),
        Err(Error::NoPeerAccess { .. })
    ));
    let copied = b.stream().unwrap().copy(&there, &there).unwrap();
    copied.wait().unwrap();
    works(&a);
    works(&b);
}

/// Threads that copy from and wait for the same things at once.
#[test]
fn threads_share_what_is_mapped() {
    for mode in [MapMode::Rm, MapMode::Uvm] {
        let machine = machine(2);
        let (a, b) = (gpu(&machine, 0, mode), gpu(&machine, 1, mode));
        let values: Vec<u32> = (0..10_000).collect();
        let source = a.upload(&values).unwrap();
        let ready = a.stream().unwrap().copy(&source, &source).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let stream = b.stream().unwrap();
                    let target = b.alloc::<u32>(values.len()).unwrap();
                    for round in 0..25 {
                        stream.wait_for(&ready).unwrap();
                        let copied = stream.copy_peer(&target, &source).unwrap();
                        if round % 3 == 0 {
                            let own = a.stream().unwrap();
                            own.wait_for(&copied).unwrap();
                            own.synchronize().unwrap();
                            assert!(copied.is_reached());
                        }
                    }
                    stream.synchronize().unwrap();
                    assert_eq!(target.read().unwrap(), values);
                });
            }
        });
        drop((ready, source, a, b));
        assert_eq!(machine.machine().object_count(), 0);
    }
}

#[test]
fn a_machine_is_opened_by_index() {
    let machine: SimMachine = Machine::new(&[Chip::Ga102, Chip::Gb202]).unwrap().into();
    assert_eq!(
        gpu(&machine, 1, MapMode::Rm).info().sm.to_string(),
        "sm_120"
    );
    assert_eq!(gpu(&machine, 0, MapMode::Rm).info().sm.to_string(), "sm_86");
    let past = Device::open(&Options {
        backend: Backend::SimIn(machine.clone(), 2),
        ..Options::default()
    });
    let text = past.unwrap_err().to_string();
    assert!(text.contains("2 GPUs and none of index 2"), "{text}");
    // A driver that the caller opened.
    let driver = nv_host::driver::sim::open_in(Arc::clone(machine.machine()), 1).unwrap();
    let device = Device::open_driver(Arc::new(driver), &Options::default()).unwrap();
    works(&device);
}

/// The real GPUs of indices 0 and 1.
fn hardware(map_mode: MapMode) -> (Device, Device) {
    let open = |index| {
        Device::open(&Options {
            backend: Backend::Kernel(index),
            map_mode: Some(map_mode),
            ..Options::default()
        })
        .unwrap()
    };
    (open(0), open(1))
}

fn hardware_pair(map_mode: MapMode) {
    let (a, b) = hardware(map_mode);
    println!(
        "{} -> {}: {:?}",
        a.info().name,
        b.info().name,
        a.can_access(&b)
    );
    match (a.enable_peer(&b), b.enable_peer(&a)) {
        (Ok(()), Ok(())) => {
            everything(&a, &b);
            suite::lifetimes_between(|| a.new_context().unwrap(), &b);
        }
        (first, second) => {
            println!("{first:?} {second:?}: through host memory");
            for (owner, user) in [(&a, &b), (&b, &a)] {
                suite::copies_between(owner, user);
                suite::signals_between(owner, user);
            }
        }
    }
    works(&a);
    works(&b);
}

#[test]
#[ignore = "needs two NVIDIA GPUs"]
fn hardware_pair_rm() {
    hardware_pair(MapMode::Rm);
}

#[test]
#[ignore = "needs two NVIDIA GPUs"]
fn hardware_pair_uvm() {
    hardware_pair(MapMode::Uvm);
}

#[test]
#[ignore = "needs two NVIDIA GPUs"]
fn hardware_pair_is_listed() {
    let gpus = Device::list().unwrap();
    println!("{gpus:#?}");
    assert!(gpus.len() >= 2 && Device::count() == gpus.len());
    let places: std::collections::BTreeSet<_> = gpus.iter().map(|gpu| gpu.address).collect();
    assert_eq!(places.len(), gpus.len());
}
