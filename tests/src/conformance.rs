//! What every device must do: one suite, run over the simulated GPUs in CI and over a real one by hand, with the
//! same assertions.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: a broken expectation ends the test"
)]

pub mod copies;
pub mod faults;
pub mod graph;
pub mod kernels;
pub mod memory;
pub mod peers;
pub mod profile;
pub mod range;
pub mod streams;

use std::time::{Duration, Instant};

use nv_host::driver::Kind;
use nv_host::{Context, Device, Module, Options, live_objects};
use nv_sim::memory::live_bytes;

use crate::bytes;

/// One case.
pub type Case = fn(&Options);

/// Opens the device of `options`.
pub fn open(options: &Options) -> Device {
    Device::open(options).unwrap_or_else(|error| panic!("{error}"))
}

/// The cubin of `tests/cubins/NAME` for the device.
pub fn module(device: &Context, name: &str) -> Module {
    let file = format!("cubins/{name}/{name}.{}.cubin", sm(device));
    device
        .load(&bytes(&file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn sm(device: &Context) -> String {
    device.info().sm.to_string()
}

fn is_simulated(device: &Context) -> bool {
    !matches!(device.info().kind, Kind::Kernel)
}

/// The device says what it is.
pub fn info(options: &Options) {
    let device = open(options);
    let info = device.info();
    assert!(!info.name.is_empty());
    assert!(info.sm_count > 0 && info.warps_per_sm > 0 && info.tpc_slots > 0);
    assert!(info.sm_count <= info.tpc_slots * info.sm_per_tpc);
    if let Some(mode) = options.map_mode {
        assert_eq!(info.map_mode, mode);
    }
    assert!(device.fallback().is_none());
}

/// A new stream of the context adds two vectors.
pub fn works(device: &Context) {
    let module = module(device, "k");
    let vadd = module.function("vadd").unwrap();
    let a = device.upload(&[2.0_f32; 64]).unwrap();
    let c = device.alloc::<f32>(64).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream
        .launch(&vadd)
        .grid(1)
        .block(64)
        .arg(&a)
        .arg(&a)
        .arg(&c)
        .arg(64_i32);
    launch.submit().unwrap().wait().unwrap();
    assert_eq!(c.read().unwrap(), [4.0; 64]);
}

/// Opening and closing leaves nothing behind in this process: 1,000 times on a GPU, 100 on a simulated one.
pub fn open_and_close(options: &Options) {
    works(&open(options));
    let before = Left::now();
    let rounds = if is_simulated(&open(options)) {
        100
    } else {
        1000
    };
    for _ in 0..rounds {
        works(&open(options));
    }
    assert_eq!(before, Left::now(), "before and after");
}

/// What closed devices could leave behind in this process, counted when none is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Left {
    /// Open descriptors.
    pub descriptors: usize,
    /// Mappings of files, device nodes among them.
    pub mappings: usize,
    /// Threads of simulated GPUs.
    pub threads: usize,
    /// RM objects.
    pub objects: usize,
    /// Bytes that simulated machines hold.
    pub simulated: usize,
}

impl Left {
    /// As it is now.
    pub fn now() -> Self {
        Self {
            descriptors: descriptors(),
            mappings: mappings(),
            threads: simulated_threads(),
            objects: live_objects(),
            simulated: live_bytes(),
        }
    }
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Mappings of files in this process. Every mapping that a device takes is one of its node; the others are the
/// allocator's and the threads', which come and go as the allocator likes.
pub fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        // Address, access, offset, device, inode, and the path where there is a file.
        .filter(|line| {
            line.split_ascii_whitespace()
                .nth(5)
                .is_some_and(|path| path.starts_with('/'))
        })
        .count()
}

/// Threads of simulated GPUs in this process. One that has been joined is listed a moment longer.
fn simulated_threads() -> usize {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        // A thread that ends meanwhile has no name any more.
        let names = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        let found = names.filter(|name| name.starts_with("nv-sim")).count();
        if found == 0 || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
