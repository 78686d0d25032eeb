//! Streams, events, threads, limits of time.

use std::time::{Duration, Instant};

use nix::time::ClockId;
use nv_host::{Error, Options};

use super::{is_simulated, module, open, works};

/// More submissions than the ring holds, with no wait between them.
pub fn flow_control(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let one = device.upload(&[1.0_f32; 32]).unwrap();
    let sum = device.upload(&[0.0_f32; 32]).unwrap();
    // Each launch adds one to what the one before it wrote: order and completeness both show.
    let launches = if is_simulated(&device) {
        10_000
    } else {
        1_000_000
    };
    let launch = stream
        .launch(&vadd)
        .grid(1)
        .block(32)
        .arg(&one)
        .arg(&sum)
        .arg(&sum)
        .arg(32_i32);
    for _ in 0..launches {
        launch.submit().unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(sum.read().unwrap(), [launches as f32; 32]);
}

/// One stream whose commands are many times its command memory of 512 KiB: launches and copies by turns, each on what
/// the one before it left, with no wait between them.
pub fn long_stream(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let one = device.upload(&[1.0_f32; 32]).unwrap();
    let (a, b) = (
        device.upload(&[0.0_f32; 32]).unwrap(),
        device.upload(&[0.0_f32; 32]).unwrap(),
    );
    let rounds = if is_simulated(&device) {
        8_000
    } else {
        100_000
    };
    // a = b + 1, then b = a.
    let launch = stream.launch(&vadd).grid(1).block(32);
    let launch = launch.arg(&one).arg(&b).arg(&a).arg(32_i32);
    for _ in 0..rounds {
        launch.submit().unwrap();
        stream.copy(&b, &a).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(b.read().unwrap(), [rounds as f32; 32]);
}

/// A wait for work that does not end costs next to no time of the CPU: below 2 % of ten seconds on a GPU, of two on a
/// simulated one, counting the waiting thread alone.
pub fn waiting_sleeps(options: &Options) {
    let device = open(&Options {
        limit: Duration::from_secs(2),
        ..options.clone()
    });
    let endless = module(&device, "faults").function("loop").unwrap();
    // The kernel runs until its memory says otherwise.
    let flag = device
        .alloc_in::<u64>(16, nv_host::Placement::Pinned)
        .unwrap();
    flag.mapping().unwrap().fill(0, 128, 0).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&endless).grid(1).block(32).arg(&flag);
    let event = launch.submit().unwrap();
    let limit = if is_simulated(&device) {
        Duration::from_secs(2)
    } else {
        Duration::from_secs(10)
    };
    let before = thread_time();
    assert!(matches!(
        event.wait_within(limit),
        Err(Error::Timeout { .. })
    ));
    let used = thread_time() - before;
    println!("a wait of {limit:?} used {used:?} of the CPU");
    assert!(used < limit / 50, "{used:?} of {limit:?}");
    flag.mapping().unwrap().write_u64(8, 99);
    event.wait().unwrap();
}

/// What this thread has used of the CPU so far.
fn thread_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap().into()
}

/// While a kernel of one stream runs and does not end, kernels of another stream begin and end, and copies of a third.
pub fn side_by_side(options: &Options) {
    let device = open(&Options {
        limit: Duration::from_secs(5),
        ..options.clone()
    });
    // Runs until its memory says otherwise.
    let gate = module(&device, "faults").function("loop").unwrap();
    let vadd = module(&device, "k").function("vadd").unwrap();
    let flag = device
        .alloc_in::<u64>(16, nv_host::Placement::Pinned)
        .unwrap();
    flag.mapping().unwrap().fill(0, 128, 0).unwrap();
    let one = device.upload(&[1.0_f32; 64]).unwrap();
    let [sum, copy] = [(); 2].map(|()| device.upload(&[0.0_f32; 64]).unwrap());
    // All before the kernel runs: an H200 makes no channel while one does that does not end.
    let [held, free, copies] = [(); 3].map(|()| device.stream().unwrap());
    // A channel that goes from compute, where its set-up ends, to copies waits for all kernels; so it goes there now.
    copies.copy(&copy, &sum).unwrap().wait().unwrap();
    let launch = held.launch(&gate).block(32).arg(&flag);
    let end = launch.submit().unwrap();
    let launch = free.launch(&vadd).grid(1).block(64);
    let launch = launch.arg(&one).arg(&sum).arg(&sum).arg(64_i32);
    for _ in 0..3 {
        launch.submit().unwrap();
    }
    let others = free.synchronize();
    let copied = copies
        .copy(&copy, &sum)
        .and_then(|_| copies.copy(&copy, &sum))
        .and_then(|copied| copied.wait());
    let uploaded = device.upload(&[5_u32; 8]).and_then(|five| five.read());
    let still = !end.is_reached();
    flag.mapping().unwrap().write_u64(8, 99);
    end.wait().unwrap();
    others.unwrap();
    copied.unwrap();
    assert_eq!(uploaded.unwrap(), [5; 8]);
    assert!(still);
    assert_eq!(copy.read().unwrap(), [3.0; 64]);
}

/// Streams run on their own, and wait for each other's events when told to.
pub fn streams(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let n = 1 << 16;
    let ones = device.upload(&vec![1.0_f32; n]).unwrap();
    let a = device.upload(&vec![0.0_f32; n]).unwrap();
    let b = device.upload(&vec![0.0_f32; n]).unwrap();
    for round in 1..=20 {
        // a += 1 on one stream, then b = a + 1 on the other.
        let step = first
            .launch(&vadd)
            .grid(256)
            .block(256)
            .arg(&a)
            .arg(&ones)
            .arg(&a)
            .arg(n as i32);
        let event = step.submit().unwrap();
        second.wait_for(&event).unwrap();
        let step = second
            .launch(&vadd)
            .grid(256)
            .block(256)
            .arg(&a)
            .arg(&ones)
            .arg(&b)
            .arg(n as i32);
        let event = step.submit().unwrap();
        first.wait_for(&event).unwrap();
        if round % 5 == 0 {
            event.wait().unwrap();
            assert!(event.is_reached());
            assert!(
                b.read().unwrap().iter().all(|b| *b == round as f32 + 1.0),
                "round {round}"
            );
        }
    }
    device.synchronize().unwrap();
}

/// Eight threads submit to one device: each to a stream of its own, and all to one that they share.
pub fn threads(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let shared = device.stream().unwrap();
    let rounds = 50;
    std::thread::scope(|scope| {
        for thread in 1..=8 {
            let (device, vadd, shared) = (&device, &vadd, &shared);
            scope.spawn(move || {
                let own = device.stream().unwrap();
                let one = device.upload(&[thread as f32; 64]).unwrap();
                let sums = [&own, shared].map(|stream| {
                    let sum = device.upload(&[0.0_f32; 64]).unwrap();
                    (stream, sum)
                });
                for round in 1..=rounds {
                    for (stream, sum) in &sums {
                        let launch = stream.launch(vadd).grid(1).block(64);
                        let launch = launch.arg(&one).arg(sum).arg(sum).arg(64_i32);
                        let event = launch.submit().unwrap();
                        if round % 16 == 0 {
                            event.wait().unwrap();
                        }
                    }
                }
                for (stream, sum) in &sums {
                    stream.synchronize().unwrap();
                    assert_eq!(sum.read().unwrap(), [(rounds * thread) as f32; 64]);
                }
            });
        }
    });
}

/// An endless kernel meets a limit of time; then the stream's end ends it, and a new stream works.
pub fn time_limit(options: &Options) {
    let device = open(&Options {
        limit: Duration::from_secs(2),
        ..options.clone()
    });
    let faults = module(&device, "faults");
    let endless = faults.function("loop").unwrap();
    let memory = device.upload(&[0_u64; 16]).unwrap();
    let stream = device.stream().unwrap();
    let event = stream
        .launch(&endless)
        .grid(1)
        .block(32)
        .arg(&memory)
        .submit()
        .unwrap();
    let start = Instant::now();
    match event.wait_within(Duration::from_millis(300)) {
        Err(error @ Error::Timeout { .. }) => {
            assert!(error.to_string().contains("loop"), "{error}")
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < Duration::from_secs(2));
    // The kernel runs until its memory says otherwise.
    drop((event, stream));
    works(&device);
}
