//! Callers that do what they should not, and work that fails in awkward places: each ends in an error or in the
//! right result, in bounded time.

use std::time::{Duration, Instant};

use nv_host::{Backend, Device, Error, Event, Module, Options, Placement, Stream};
use nv_sim::Chip;
use nv_tests::conformance::{module, open, works};

fn options(limit: Duration) -> Options {
    Options {
        backend: Backend::Sim(Chip::Gh100),
        limit,
        ..Options::default()
    }
}

/// A kernel that runs until [`Endless::end`], or until its stream is given up.
struct Endless {
    _module: Module,
    flag: nv_host::Buffer<u64>,
    event: Event,
}

impl Endless {
    fn begin(device: &Device, stream: &Stream) -> Self {
        let module = module(device, "faults");
        let flag = device.alloc_in::<u64>(16, Placement::Pinned).unwrap();
        flag.write(&[0; 16]).unwrap();
        let endless = module.function("loop").unwrap();
        let launch = stream.launch(&endless).grid(1).block(32).arg(&flag);
        let event = launch.submit().unwrap();
        Self {
            _module: module,
            flag,
            event,
        }
    }

    fn end(&self) {
        self.flag.mapping().unwrap().write_u64(8, 99);
    }
}

/// Launches that are refused use nothing up, however many there are.
#[test]
fn refused_launches_take_no_ring_space() {
    let device = open(&options(Duration::from_secs(2)));
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let buffer = device.alloc::<f32>(64).unwrap();
    for i in 0..5000 {
        let launch = stream.launch(&vadd).grid(0).block(64);
        let launch = launch.arg(&buffer).arg(&buffer).arg(&buffer).arg(64_i32);
        let result = launch.submit();
        assert!(
            matches!(result, Err(Error::Launch { .. })),
            "{i}: {result:?}"
        );
    }
    works(&device);
    stream.synchronize().unwrap();
}

/// Nor do launches that find the stream's ring full: once there is room, as many fit as before.
#[test]
fn launches_that_time_out_take_no_ring_space() {
    let device = open(&options(Duration::from_millis(5)));
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    stream.synchronize_within(Duration::from_secs(10)).unwrap();
    let one = device.alloc_in::<f32>(64, Placement::Pinned).unwrap();
    let sum = device.alloc_in::<f32>(64, Placement::Pinned).unwrap();
    one.write(&[1.0; 64]).unwrap();
    sum.write(&[0.0; 64]).unwrap();
    let endless = Endless::begin(&device, &stream);
    let launch = stream.launch(&vadd).grid(1).block(64);
    let launch = launch.arg(&one).arg(&sum).arg(&sum).arg(64_i32);
    let mut submitted = 0;
    let mut refused = 0;
    while refused < 100 {
        match launch.submit() {
            Ok(_) => submitted += 1,
            Err(Error::Timeout { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(submitted > 100, "{submitted}");
    endless.end();
    stream.synchronize_within(Duration::from_secs(60)).unwrap();
    // The ring is free again, all of it.
    for _ in 0..submitted {
        launch.submit().unwrap();
    }
    stream.synchronize_within(Duration::from_secs(60)).unwrap();
    let mut values = [0.0; 64];
    sum.mapping()
        .unwrap()
        .read(0, zerocopy::IntoBytes::as_mut_bytes(&mut values))
        .unwrap();
    assert_eq!(values, [2.0 * submitted as f32; 64]);
}

/// A function of one device is not launched on another, nor are its buffers passed there: their addresses mean
/// something else there.
#[test]
fn what_belongs_to_another_device_is_refused() {
    let options = options(Duration::from_secs(10));
    let (here, there) = (open(&options), open(&options));
    let (module_here, module_there) = (module(&here, "k"), module(&there, "k"));
    let (vadd_here, vadd_there) = (
        module_here.function("vadd").unwrap(),
        module_there.function("vadd").unwrap(),
    );
    let (buffer_here, buffer_there) = (
        here.alloc::<f32>(64).unwrap(),
        there.alloc::<f32>(64).unwrap(),
    );
    let stream = here.stream().unwrap();
    let launch = stream.launch(&vadd_there).grid(1).block(64);
    let launch = launch
        .arg(&buffer_here)
        .arg(&buffer_here)
        .arg(&buffer_here)
        .arg(64_i32);
    let result = launch.submit();
    assert!(
        matches!(&result, Err(Error::Launch { reason, .. }) if reason.contains("another context")),
        "{result:?}"
    );
    let launch = stream.launch(&vadd_here).grid(1).block(64);
    let launch = launch
        .arg(&buffer_here)
        .arg(&buffer_there)
        .arg(&buffer_here)
        .arg(64_i32);
    let result = launch.submit();
    assert!(
        matches!(&result, Err(Error::Launch { reason, .. })
            if reason.contains("argument 1") && reason.contains("another context")),
        "{result:?}"
    );
}

/// An event keeps what the waiting stream looks at, also when its own stream is dropped before that stream has
/// come to look.
#[test]
fn events_outlive_their_stream() {
    let device = open(&options(Duration::from_secs(10)));
    let waiting = device.stream().unwrap();
    let endless = Endless::begin(&device, &waiting);
    for _ in 0..3 {
        let other = device.stream().unwrap();
        waiting.wait_for(&other.event()).unwrap();
        let source = device.upload(&[1_u8; 4096]).unwrap();
        let target = device.alloc::<u8>(4096).unwrap();
        waiting
            .wait_for(&other.copy(&target, &source).unwrap())
            .unwrap();
        drop(other);
    }
    // Memory that would lie where the streams' semaphores were.
    let others: Vec<_> = (0..8)
        .map(|_| device.alloc_in::<u8>(4096, Placement::Pinned).unwrap())
        .collect();
    endless.end();
    waiting.synchronize().unwrap();
    drop(others);
    works(&device);
}

/// An event that a fault keeps from ever being reached is an error to wait for, not a wait for ever.
#[test]
fn events_of_dead_streams_are_refused() {
    let device = open(&options(Duration::from_secs(5)));
    let faults = module(&device, "faults");
    let dead = device.stream().unwrap();
    let memory = device.upload(&[7_u64; 16]).unwrap();
    let trap = faults.function("trap").unwrap();
    let event = dead
        .launch(&trap)
        .grid(1)
        .block(32)
        .arg(&memory)
        .submit()
        .unwrap();
    assert!(matches!(event.wait(), Err(Error::Fault(_))));
    let start = Instant::now();
    let stream = device.stream().unwrap();
    let result = stream.wait_for(&event);
    assert!(matches!(result, Err(Error::Fault(_))), "{result:?}");
    stream.synchronize().unwrap();
    assert!(start.elapsed() < Duration::from_secs(4));
}

/// A copy that ran out of time may still write to the memory that copies go through: the next one waits for it.
#[test]
fn a_late_download_does_not_reach_into_the_next_upload() {
    let device = open(&options(Duration::from_millis(200)));
    let first = device.upload(&vec![0x11_u8; 1 << 20]).unwrap();
    let second = device.alloc::<u8>(1 << 20).unwrap();
    let stream = device.default_stream().unwrap();
    let endless = Endless::begin(&device, &stream);
    assert!(matches!(first.read(), Err(Error::Timeout { .. })));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| second.write(&vec![0x22; 1 << 20]));
        std::thread::sleep(Duration::from_millis(50));
        endless.end();
        let written = writer.join().unwrap();
        // It may run out of time on a busy machine; it may not succeed and be wrong.
        if written.is_ok() {
            assert!(
                second.read().unwrap() == vec![0x22; 1 << 20],
                "a copy that ended late was written"
            );
        }
    });
    endless.event.wait_within(Duration::from_secs(10)).unwrap();
}

/// A read of pinned memory, like one of any other, comes after the work of the device's own stream.
#[test]
fn reads_of_every_placement_wait_for_the_devices_stream() {
    let device = open(&options(Duration::from_secs(20)));
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.default_stream().unwrap();
    let n = 1 << 16;
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        let one = device.upload(&vec![1.0_f32; n]).unwrap();
        let sum = device.alloc_in::<f32>(n, placement).unwrap();
        sum.write(&vec![0.0; n]).unwrap();
        let launch = stream.launch(&vadd).grid(n as u32 / 256).block(256);
        let launch = launch.arg(&one).arg(&one).arg(&sum).arg(n as i32);
        launch.submit().unwrap();
        assert!(sum.read().unwrap() == vec![2.0; n], "{placement:?}");
    }
}

/// A stream that waits for room keeps no other stream from launching the same kernel.
#[test]
fn a_full_stream_does_not_hold_up_another() {
    let device = open(&options(Duration::from_secs(5)));
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let (full, other) = (device.stream().unwrap(), device.stream().unwrap());
    let buffer = device.upload(&[0.0_f32; 64]).unwrap();
    let endless = Endless::begin(&device, &full);
    std::thread::scope(|scope| {
        let filling = scope.spawn(|| {
            let launch = full.launch(&vadd).grid(1).block(64);
            let launch = launch.arg(&buffer).arg(&buffer).arg(&buffer).arg(64_i32);
            while launch.submit().is_ok() {}
        });
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!filling.is_finished(), "it should be waiting for room");
        let start = Instant::now();
        let launch = other.launch(&vadd).grid(1).block(64);
        let launch = launch.arg(&buffer).arg(&buffer).arg(&buffer).arg(64_i32);
        launch.submit().unwrap().wait().unwrap();
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(1), "{waited:?}");
        filling.join().unwrap();
    });
    endless.end();
    full.synchronize().unwrap();
}

/// Threads that open and drop streams, launch, copy, load, wait for each other's events and fault, all at once on one
/// device: each call ends in a result or in a fault or time limit, whatever the others do, and nothing is stuck.
#[test]
fn anything_at_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    let device = open(&options(Duration::from_secs(2)));
    let (k, faults) = (module(&device, "k"), module(&device, "faults"));
    let events: std::sync::Mutex<Vec<Event>> = std::sync::Mutex::default();
    let right = AtomicUsize::new(0);
    let seconds = std::env::var("NV_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let may_fail = |error: Error| {
        let allowed = matches!(error, Error::Fault(_) | Error::Timeout { .. });
        assert!(allowed, "{error}");
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (device, k, faults, events, right) = (&device, &k, &faults, &events, &right);
            scope.spawn(move || {
                let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread + 1);
                let mut below = |end: u64| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    (random >> 11) % end
                };
                let mut stream = device.stream().ok();
                while Instant::now() < end {
                    let mut step = || -> Result<(), Error> {
                        let here = match &stream {
                            Some(stream) => stream.clone(),
                            None => device.default_stream()?,
                        };
                        match below(12) {
                            0 => drop(stream.take()),
                            1 => stream = Some(device.stream()?),
                            2 if below(6) == 0 => {
                                let memory = device.upload(&[7_u64; 16])?;
                                let trap = faults.function("trap")?;
                                let launch = here.launch(&trap).block(32).arg(&memory);
                                launch.submit()?.wait()?;
                            }
                            3 => {
                                let local = k.function("loc")?;
                                let index = device.upload(&[0_i32; 1024])?;
                                let out = device.alloc::<f32>(64)?;
                                let launch = here.launch(&local).block(32);
                                launch.arg(&index).arg(&out).arg(3_i32).submit()?;
                            }
                            4 => {
                                let event = events.lock().unwrap().pop();
                                if let Some(event) = event {
                                    here.wait_for(&event)?;
                                }
                            }
                            5 => {
                                let module = module(device, "k");
                                let function = module.function("sred")?;
                                drop(module);
                                let sum = device.upload(&[1.0_f32; 256])?;
                                let launch = here.launch(&function).grid(2).block(256);
                                launch.arg(&sum).arg(&sum).arg(256_i32).submit()?;
                            }
                            6 => device.synchronize()?,
                            7 => here.synchronize_within(Duration::from_millis(below(20)))?,
                            _ => {
                                let vadd = k.function("vadd")?;
                                let n = 1 + below(5000) as usize;
                                let one = device.upload(&vec![1.5_f32; n])?;
                                let sum = device.alloc_in::<f32>(n, Placement::HostVisible)?;
                                let launch = here.launch(&vadd).grid(n as u32 / 64 + 1).block(64);
                                let launch = launch.arg(&one).arg(&one).arg(&sum).arg(n as i32);
                                let event = launch.submit()?;
                                // Each keeps its stream.
                                let mut kept = events.lock().unwrap();
                                kept.truncate(31);
                                kept.push(event.clone());
                                drop(kept);
                                if below(2) == 0 {
                                    event.wait()?;
                                    assert!(sum.read()?.iter().all(|value| *value == 3.0));
                                    right.fetch_add(1, Ordering::Relaxed);
                                }
                            }
                        }
                        Ok(())
                    };
                    if let Err(error) = step() {
                        may_fail(error);
                        stream = device.stream().map_err(may_fail).ok();
                    }
                }
            });
        }
    });
    events.lock().unwrap().clear();
    assert!(right.load(Ordering::Relaxed) > 10, "{right:?}");
    assert!(Instant::now() < end + Duration::from_secs(20));
    works(&device);
}

/// Whatever the shape, a launch is refused with the limit that it breaks, or runs and ends; on every chip.
#[test]
fn any_shape() {
    let edges = [
        0,
        1,
        2,
        3,
        7,
        8,
        16,
        17,
        32,
        1024,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        u32::MAX,
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pick = |few: bool| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let many = edges.len() as u64;
        edges[((random >> 11) % if few { 5 } else { many }) as usize]
    };
    for chip in [
        Chip::Ga100,
        Chip::Ga102,
        Chip::Ad102,
        Chip::Gh100,
        Chip::Gb202,
    ] {
        let device = open(&Options {
            backend: Backend::Sim(chip),
            limit: Duration::from_secs(20),
            ..Options::default()
        });
        let module = module(&device, "k");
        let vadd = module.function("vadd").unwrap();
        let buffer = device.alloc::<f32>(4096).unwrap();
        let stream = device.stream().unwrap();
        let (mut ran, mut refused) = (0, 0);
        for round in 0..4000 {
            // Mostly small ones, so that some run; what may run is small throughout.
            let mut number = || {
                let few = pick(true) != 0;
                pick(few)
            };
            let grid = (number(), number(), number());
            let block = (number(), number(), number());
            let mut launch = stream.launch(&vadd).grid(grid).block(block);
            let mut shape = format!("{chip}: grid {grid:?}, block {block:?}");
            if round % 3 == 0 {
                let cluster = (number(), number(), number());
                launch = launch.cluster(cluster);
                shape += &format!(", cluster {cluster:?}");
            }
            if round % 5 == 0 {
                launch = launch.cooperative();
                shape += ", cooperative";
            }
            if round % 7 == 0 {
                let shared = number().wrapping_mul(17);
                launch = launch.shared(shared);
                shape += &format!(", shared {shared}");
            }
            let count = |(x, y, z): (u32, u32, u32)| {
                u64::from(x)
                    .saturating_mul(y.into())
                    .saturating_mul(z.into())
            };
            let (blocks, threads) = (count(grid), count(block));
            if blocks.saturating_mul(threads) > 100_000 && threads <= 1024 {
                continue;
            }
            let launch = launch.arg(&buffer).arg(&buffer).arg(&buffer).arg(4096_i32);
            match launch.submit() {
                Ok(event) => {
                    event
                        .wait()
                        .unwrap_or_else(|error| panic!("{shape}: {error}"));
                    ran += 1;
                }
                Err(Error::Launch { .. }) => refused += 1,
                Err(other) => panic!("{shape}: {other}"),
            }
        }
        assert!(
            ran > 20 && refused > 20,
            "{chip}: {ran} ran, {refused} were refused"
        );
        works(&device);
    }
}

/// Memory that there is not is an error, in every placement, and what was there before still works.
#[test]
fn any_size_of_memory() {
    let device = open(&options(Duration::from_secs(5)));
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        for bits in [43, 46, 52, 62, 63] {
            for size in [(1_usize << bits) - 1, 1 << bits, (1 << bits) + 4095] {
                let result = device.alloc_in::<u8>(size, placement);
                assert!(
                    matches!(
                        result,
                        Err(Error::OutOfMemory { .. } | Error::InvalidArgument(_))
                    ),
                    "{placement:?}, {size:#x}: {:?}",
                    result.err()
                );
            }
        }
        let result = device.alloc_in::<u8>(usize::MAX, placement);
        assert!(result.is_err());
    }
    works(&device);
}

/// Memory that a stream's work uses stays also while the stream is being dropped, which takes as long as its work.
#[test]
fn memory_outlives_a_stream_that_is_being_dropped() {
    let device = open(&options(Duration::from_secs(20)));
    let (k, faults) = (module(&device, "k"), module(&device, "faults"));
    let (vadd, endless) = (
        k.function("vadd").unwrap(),
        faults.function("loop").unwrap(),
    );
    let flag = device.alloc_in::<u64>(16, Placement::Pinned).unwrap();
    flag.write(&[0; 16]).unwrap();
    let [a, c] = [1.0_f32, 0.0].map(|value| {
        let buffer = device.alloc_in::<f32>(64, Placement::HostVisible).unwrap();
        buffer.write(&[value; 64]).unwrap();
        buffer
    });
    let stream = device.stream().unwrap();
    stream
        .launch(&endless)
        .block(32)
        .arg(&flag)
        .submit()
        .unwrap();
    let launch = stream.launch(&vadd).block(64);
    launch.arg(&a).arg(&a).arg(&c).arg(64_i32).submit().unwrap();
    std::thread::scope(|scope| {
        let dropping = scope.spawn(move || drop(stream));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!dropping.is_finished(), "its work has not ended");
        drop(a);
        // Would lie where the other was.
        let others: Vec<_> = (0..8)
            .map(|_| {
                let other = device.alloc_in::<f32>(64, Placement::HostVisible).unwrap();
                other.write(&[9.0; 64]).unwrap();
                other
            })
            .collect();
        flag.mapping().unwrap().write_u64(8, 99);
        dropping.join().unwrap();
        drop(others);
    });
    assert_eq!(c.read().unwrap(), [2.0; 64]);
}
