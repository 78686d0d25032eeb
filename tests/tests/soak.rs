//! Long work leaves nothing behind: launches, allocations and module loads by the hundred thousand, with what the
//! process and the GPU hold counted before and after each. In a process of its own, since it counts the whole
//! process. On a GPU: `cargo test --release -p nv-tests --test soak -- --ignored --nocapture --test-threads=1`.

use std::time::Instant;

use nv_host::driver::Kind;
use nv_host::{Backend, Device, Error, MapMode, Options, Placement, live_objects};
use nv_sim::Chip;
use nv_sim::memory::live_bytes;
use nv_tests::conformance::{Left, descriptors, mappings, module, open, works};

/// What there is of everything that could leak.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    mappings: usize,
    objects: usize,
    /// Bytes of GPU memory that no program has.
    free: u64,
    /// Bytes that simulated machines hold.
    simulated: usize,
    /// Bytes of this process in the host's memory.
    resident: u64,
}

impl Held {
    fn now(device: &Device) -> Self {
        // What is kept for the next allocation goes back before one fails: how much that is, is a matter of timing.
        let more_than_any_gpu_has = usize::try_from(1_u64 << 45).unwrap_or(usize::MAX);
        let refused = device.alloc::<u8>(more_than_any_gpu_has);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })));
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let resident: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            descriptors: descriptors(),
            mappings: mappings(),
            objects: live_objects(),
            free: device.memory_info().unwrap().free,
            simulated: live_bytes(),
            resident: resident * 4096,
        }
    }

    /// Checks that nothing was left behind since `self`.
    fn compare(&self, now: &Self, what: &str, simulated: bool) {
        let counts = |held: &Self| {
            (
                held.descriptors,
                held.mappings,
                held.objects,
                held.free,
                held.simulated,
            )
        };
        assert_eq!(counts(self), counts(now), "after {what}: {self:?} {now:?}");
        // What a simulated GPU holds is part of the process, and the allocator keeps of it what it likes.
        let grown = now.resident.saturating_sub(self.resident);
        assert!(
            simulated || grown < 16 << 20,
            "resident memory after {what}: {self:?} {now:?}"
        );
    }
}

/// Does something `count` times, shows what it took, and checks that nothing is left of it.
fn phase(device: &Device, what: &str, count: u32, mut work: impl FnMut(u32)) {
    // Caches fill first.
    for i in 0..count.min(100) {
        work(i);
    }
    device.synchronize().unwrap();
    let before = Held::now(device);
    let start = Instant::now();
    for i in 0..count {
        work(i);
        if i % (count / 10).max(1) == 0 {
            println!("  {what}: {i} of {count} after {:.1?}", start.elapsed());
        }
    }
    device.synchronize().unwrap();
    let took = start.elapsed();
    let after = Held::now(device);
    println!(
        "{count} {what} in {took:.2?} ({:.2?} each)\n  before {before:?}\n  after  {after:?}",
        took / count
    );
    let simulated = device.info().kind != Kind::Kernel;
    before.compare(&after, what, simulated);
}

fn soak(options: &Options, scale: u32) {
    works(&open(options));
    let before = Left::now();
    {
        let device = open(options);
        let kernels = module(&device, "k");
        let vadd = kernels.function("vadd").unwrap();
        let stream = device.stream().unwrap();
        let one = device.upload(&[1.0_f32; 64]).unwrap();
        let sum = device.upload(&[0.0_f32; 64]).unwrap();
        let launch = stream.launch(&vadd).grid(1).block(64);
        let launch = launch.arg(&one).arg(&sum).arg(&sum).arg(64_i32);
        let launches = 1_000_000 / scale;
        phase(&device, "launches", launches, |_| {
            launch.submit().unwrap();
        });
        let done = (launches + launches.min(100)) as f32;
        assert_eq!(sum.read().unwrap(), [done; 64]);

        // From one byte to 8 MiB; every tenth is used by work in flight when it is given up.
        phase(&device, "allocations", 100_000 / scale, |i| {
            let bytes = 1_usize << (i % 24);
            let placement = match i % 16 {
                0 => Placement::Pinned,
                1 => Placement::HostVisible,
                _ => Placement::Device,
            };
            let buffer = device.alloc_in::<u8>(bytes, placement).unwrap();
            if i % 10 == 0 {
                stream.copy(&buffer, &buffer).unwrap();
            }
        });
        phase(&device, "module loads", 1_000 / scale.min(10), |_| {
            let kernels = module(&device, "k");
            let vadd = kernels.function("vadd").unwrap();
            let launch = stream.launch(&vadd).grid(1).block(64);
            let launch = launch.arg(&one).arg(&one).arg(&sum).arg(64_i32);
            launch.submit().unwrap();
        });
        phase(&device, "streams", 1_000 / scale.min(10), |_| {
            let stream = device.stream().unwrap();
            let launch = stream.launch(&vadd).grid(1).block(64);
            let launch = launch.arg(&one).arg(&one).arg(&sum).arg(64_i32);
            launch.submit().unwrap();
        });
        assert_eq!(sum.read().unwrap(), [2.0; 64]);
    }
    assert_eq!(before, Left::now(), "before and after");
}

fn options(backend: Backend, map_mode: MapMode) -> Options {
    Options {
        backend,
        map_mode: Some(map_mode),
        ..Options::default()
    }
}

#[test]
fn simulated() {
    soak(&options(Backend::Sim(Chip::Gh100), MapMode::Rm), 100);
    soak(&options(Backend::Sim(Chip::Ga102), MapMode::Uvm), 100);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hardware_rm() {
    soak(&options(Backend::Kernel(0), MapMode::Rm), 1);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hardware_uvm() {
    soak(&options(Backend::Kernel(0), MapMode::Uvm), 1);
}
