//! What every device must do: one suite, run over the simulated GPUs in CI and over a real one by hand, with the
//! same assertions.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: a broken expectation ends the test"
)]

use std::time::{Duration, Instant};

use nv_host::driver::Kind;
use nv_host::{Context, Device, Error, Module, Options, Placement};

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

/// Whatever is written is read back, in every kind of memory and at every size.
pub fn memory(options: &Options) {
    let device = open(options);
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        for len in [1, 3, 4096, 4097, 70_001, (5 << 20) + 3] {
            let values: Vec<u8> = (0..len).map(|i: usize| (i * 31 + len) as u8).collect();
            let buffer = device.alloc_in::<u8>(len, placement).unwrap();
            assert_eq!(buffer.placement(), placement);
            buffer.write(&values).unwrap();
            assert!(
                buffer.read().unwrap() == values,
                "{placement:?}, {len} bytes"
            );
        }
    }
    assert!(matches!(
        device.alloc::<u32>(0),
        Err(Error::InvalidArgument(_))
    ));
    assert!(matches!(
        device.alloc::<u64>(usize::MAX),
        Err(Error::InvalidArgument(_))
    ));
    // More than any GPU has: an error, after which everything still works.
    assert!(matches!(
        device.alloc::<u8>(usize::try_from(1_u64 << 45).unwrap_or(usize::MAX)),
        Err(Error::OutOfMemory { .. })
    ));
    let buffer = device.upload(&[7_u64; 100]).unwrap();
    assert!(matches!(
        buffer.write(&[0; 101]),
        Err(Error::InvalidArgument(_))
    ));
    assert_eq!(buffer.read().unwrap(), [7; 100]);
}

/// The GPU's memory can be filled; what does not fit is an error, work in flight goes on, and all comes back.
pub fn fill_and_free(options: &Options) {
    let device = open(options);
    let kernels = module(&device, "k");
    let vadd = kernels.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let n = 1 << 16;
    let ones = device.upload(&vec![1.0_f32; n]).unwrap();
    let sum = device.upload(&vec![0.0_f32; n]).unwrap();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let mut held = Vec::new();
        let full = loop {
            let launch = stream.launch(&vadd).grid(256).block(256);
            launch
                .arg(&sum)
                .arg(&ones)
                .arg(&sum)
                .arg(n as i32)
                .submit()
                .unwrap();
            match device.alloc::<u8>(1 << 28) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(held.len() < 4096, "more than 1 TiB was given out");
        };
        assert!(matches!(full, Error::OutOfMemory { .. }), "{full}");
        counts.push(held.len());
    }
    assert!(counts[0] > 0 && counts[0] == counts[1], "{counts:?}");
    stream.synchronize().unwrap();
    let launches = (counts[0] + counts[1] + 2) as f32;
    assert!(sum.read().unwrap().iter().all(|sum| *sum == launches));
    works(&device);
}

/// Copies between kinds of memory keep every byte.
pub fn copies(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let len = 1_000_003;
    let values: Vec<u32> = (0..len as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    let kinds = [Placement::Device, Placement::HostVisible, Placement::Pinned];
    for from in kinds {
        let source = device.alloc_in::<u32>(len, from).unwrap();
        source.write(&values).unwrap();
        for to in kinds {
            let target = device.alloc_in::<u32>(len, to).unwrap();
            target.write(&vec![0; len]).unwrap();
            stream.copy(&target, &source).unwrap().wait().unwrap();
            assert!(target.read().unwrap() == values, "{from:?} to {to:?}");
        }
    }
    let short = device.alloc::<u32>(len - 1).unwrap();
    let source = device.alloc::<u32>(len).unwrap();
    assert!(matches!(
        stream.copy(&short, &source),
        Err(Error::InvalidArgument(_))
    ));
}

/// A large copy in and out compares equal: 1 GiB on a GPU, 64 MiB on a simulated one.
pub fn large_copy(options: &Options) {
    let device = open(options);
    let bytes: usize = if is_simulated(&device) {
        64 << 20
    } else {
        1 << 30
    };
    let values: Vec<u64> = (0..bytes as u64 / 8)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let buffer = device.upload(&values).unwrap();
    let back = buffer.read().unwrap();
    assert!(back == values);
}

/// `vadd` of `k.cu`, with a tail that the grid covers and the buffer does not.
pub fn vadd(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("vadd").unwrap();
    let n = 24_237;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.25).collect();
    let b: Vec<f32> = (0..n).map(|i| 1.0 - i as f32).collect();
    let (on_a, on_b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let on_c = device.upload(&vec![-1.0_f32; n + 64]).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream
        .launch(&function)
        .grid((n as u32).div_ceil(96))
        .block(96);
    launch
        .arg(&on_a)
        .arg(&on_b)
        .arg(&on_c)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let c = on_c.read().unwrap();
    for i in 0..n {
        assert_eq!(c[i], a[i] + b[i], "element {i}");
    }
    assert!(
        c[n..].iter().all(|c| *c == -1.0),
        "elements past n were written"
    );
}

/// `sred` of `k.cu`: a reduction in shared memory with a grid stride, so that blockDim and gridDim matter.
pub fn reduction(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("sred").unwrap();
    let (n, blocks) = (100_000, 37_usize);
    // Small whole numbers: their sums are exact in any order.
    let a: Vec<f32> = (0..n).map(|i| (i % 13) as f32).collect();
    let on_a = device.upload(&a).unwrap();
    let on_sums = device.alloc::<f32>(blocks).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&function).grid(blocks as u32).block(256);
    launch
        .arg(&on_a)
        .arg(&on_sums)
        .arg(n)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let mut expected = vec![0.0_f32; blocks];
    for (i, value) in a.iter().enumerate() {
        expected[i / 256 % blocks] += value;
    }
    assert_eq!(on_sums.read().unwrap(), expected);
}

/// `loc` of `k.cu`: a dynamically indexed array in local memory.
pub fn local_memory(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("loc").unwrap();
    let (blocks, threads, n) = (5_usize, 64_usize, 40_usize);
    let index: Vec<i32> = (0..1024).map(|i: i32| (i * 37 + 11) % 700).collect();
    let on_index = device.upload(&index).unwrap();
    let on_out = device.alloc::<f32>(blocks * threads).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream
        .launch(&function)
        .grid(blocks as u32)
        .block(threads as u32);
    launch
        .arg(&on_index)
        .arg(&on_out)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let out = on_out.read().unwrap();
    for block in 0..blocks {
        for thread in 0..threads {
            let t = block * threads + thread;
            // i * 1.5f + threadIdx.x, fused or not, is exact for these numbers.
            let mut cells: Vec<f32> = (0..512).map(|i| i as f32 * 1.5 + thread as f32).collect();
            let mut sum = 0.0_f32;
            for j in 0..n {
                let k = (index[(t + j) & 1023] & 511) as usize;
                cells[k] += j as f32;
                sum += cells[(k * 7) & 511];
            }
            assert_eq!(out[t], sum, "thread {t}");
        }
    }
}

/// `gen` of `k.cu`: generic pointers into shared and local memory, so that the windows matter.
pub fn generic_pointers(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("gen").unwrap();
    let stream = device.stream().unwrap();
    let (blocks, threads) = (4_usize, 64_usize);
    let on_out = device.alloc::<i32>(blocks * threads).unwrap();
    for select in [0_i32, 1, 6, 7] {
        let launch = stream
            .launch(&function)
            .grid(blocks as u32)
            .block(threads as u32);
        launch
            .arg(&on_out)
            .arg(select)
            .submit()
            .unwrap()
            .wait()
            .unwrap();
        for (t, value) in on_out.read().unwrap().into_iter().enumerate() {
            let at = ((t % threads) as i32 + select) & 63;
            let expected = if select & 1 == 1 { at } else { at + 1000 };
            assert_eq!(value, expected, "thread {t}, selector {select}");
        }
    }
}

/// Bad launches are refused with an error that names the limit, before anything reaches the device.
pub fn bad_launches(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let buffer = device.alloc::<f32>(256).unwrap();
    let good = || {
        stream
            .launch(&vadd)
            .grid(1)
            .block(32)
            .arg(&buffer)
            .arg(&buffer)
            .arg(&buffer)
            .arg(32_i32)
    };
    let refused = |launch: nv_host::Launch<'_>, says: &[&str]| match launch.submit() {
        Err(error @ Error::Launch { .. }) => {
            let text = error.to_string();
            for word in says {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        other => panic!("{says:?}: {other:?}"),
    };
    refused(good().block(1025), &["vadd", "1025", "1024"]);
    refused(good().block((1, 1, 65)), &["65", "64"]);
    refused(good().block((32, 33)), &["1056", "1024"]);
    refused(good().block(0), &["vadd"]);
    refused(good().grid(0), &["vadd"]);
    refused(good().grid(0x8000_0000), &["2147483648", "2147483647"]);
    refused(good().grid((1, 65_536)), &["65536", "65535"]);
    refused(good().grid((1, 1, 65_536)), &["65536", "65535"]);
    refused(good().shared(300 << 10), &["shared"]);
    refused(good().arg(1_u32), &["5 arguments", "4"]);
    refused(
        stream.launch(&vadd).arg(&buffer).arg(&buffer).arg(&buffer),
        &["3 arguments", "4"],
    );
    refused(
        stream
            .launch(&vadd)
            .arg(&buffer)
            .arg(&buffer)
            .arg(&buffer)
            .arg(1_u64),
        &["argument 3", "8 bytes", "4"],
    );
    // Nothing was harmed.
    good().submit().unwrap().wait().unwrap();
}

/// Files that cannot be loaded are told apart.
pub fn bad_files(options: &Options) {
    let device = open(options);
    assert!(matches!(device.load(b"not a cubin"), Err(Error::Cubin(_))));
    assert!(matches!(device.load(&[]), Err(Error::Cubin(_))));
    let other = if device.info().sm.major() == 9 {
        120
    } else {
        90
    };
    let file = bytes(&format!("cubins/k/k.sm_{other}.cubin"));
    match device.load(&file) {
        Err(error @ Error::WrongArchitecture { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains(&format!("sm_{other}")) && text.contains(&sm(&device)),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    let module = module(&device, "k");
    match module.function("nothing") {
        Err(error @ Error::NoKernel { .. }) => {
            let text = error.to_string();
            for kernel in ["nothing", "vadd", "sred", "loc", "gen"] {
                assert!(text.contains(kernel), "{text}");
            }
        }
        other => panic!("{other:?}"),
    }
}

/// A compressed fatbin with cubins for several architectures loads the one that suits the device, and it runs.
pub fn fatbins(options: &Options) {
    let device = open(options);
    let module = device
        .load(&bytes("cubins/fatbin/13.0_vecadd_all.fatbin"))
        .unwrap();
    let name = module.kernels().next().unwrap().to_owned();
    let function = module.function(&name).unwrap();
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let on_a = device.upload(&a).unwrap();
    let on_c = device.upload(&vec![0.0_f32; n]).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&function).grid(4).block(256);
    launch
        .arg(&on_a)
        .arg(&on_a)
        .arg(&on_c)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let expected: Vec<f32> = a.iter().map(|a| a + a).collect();
    assert_eq!(on_c.read().unwrap(), expected);
}

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
        100_000
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

/// Several threads submit to several streams of one device.
pub fn threads(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, vadd) = (&device, &vadd);
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                let one = device.upload(&[thread as f32; 64]).unwrap();
                let sum = device.upload(&[0.0_f32; 64]).unwrap();
                for _ in 0..50 {
                    let launch = stream.launch(vadd).grid(1).block(64);
                    launch
                        .arg(&one)
                        .arg(&sum)
                        .arg(&sum)
                        .arg(64_i32)
                        .submit()
                        .unwrap();
                }
                stream.synchronize().unwrap();
                assert_eq!(sum.read().unwrap(), [50.0 * thread as f32; 64]);
            });
        }
    });
}

/// Buffers and modules given up while work uses them stay until the work has ended.
pub fn early_drop(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let n = 1 << 18;
    let result = device.alloc::<f32>(n).unwrap();
    for round in 0..10 {
        let module = module(&device, "k");
        let vadd = module.function("vadd").unwrap();
        let a = device.upload(&vec![round as f32; n]).unwrap();
        let b = device.upload(&vec![0.5_f32; n]).unwrap();
        let launch = stream.launch(&vadd).grid(n as u32 / 256).block(256);
        launch
            .arg(&a)
            .arg(&b)
            .arg(&result)
            .arg(n as i32)
            .submit()
            .unwrap();
        drop((a, b, vadd, module));
    }
    stream.synchronize().unwrap();
    assert!(result.read().unwrap().iter().all(|value| *value == 9.5));
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

/// Every kind of fault is reported with its kind, its kernel and its place, and a new stream works after it.
pub fn faults(options: &Options) {
    let device = open(options);
    let faults = module(&device, "faults");
    // Memory of its own for each: a fault may leave part of a store behind.
    let run = |kernel: &str, grid: u32, shared: u32| {
        let memory = device.upload(&[7_u64; 16]).unwrap();
        let function = faults.function(kernel).unwrap();
        let stream = device.stream().unwrap();
        let launch = stream
            .launch(&function)
            .grid(grid)
            .block(32)
            .shared(shared)
            .arg(&memory);
        let result = launch
            .submit()
            .and_then(|event| event.wait_within(Duration::from_secs(10)));
        let report = match result {
            Err(Error::Fault(report)) => report,
            other => panic!("{kernel}: {other:?}"),
        };
        let text = report.to_string();
        assert!(text.contains(kernel), "{text}");
        // The stream stays dead, with the same report.
        assert!(matches!(launch.submit(), Err(Error::Fault(_))));
        works(&device);
        (report, memory.va().0)
    };
    let (report, memory) = run("badaddr", 200, 0);
    assert_eq!(report.code, Some(31), "{report}");
    let access = report
        .accesses
        .first()
        .unwrap_or_else(|| panic!("{report}"));
    assert_eq!(access.address, memory + (8 << 33), "{report}");

    let (report, memory) = run("misalign", 1, 0);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0xf, "{report}");
    assert_eq!(sm.address, memory + 4, "{report}");
    assert_eq!(
        sm.place.as_ref().map(|(kernel, _)| kernel.as_str()),
        Some("misalign"),
        "{report}"
    );

    let (report, _) = run("trap", 1, 0);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0x9, "{report}");

    let (report, _) = run("sharedoob", 1, 1024);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0xe, "{report}");
}

/// A fault in one context leaves the others of the GPU alone, and the things of one mean nothing in another.
pub fn contexts(options: &Options) {
    let device = open(options);
    let other = device.new_context().unwrap();
    assert_eq!(other.info(), device.info());
    works(&other);
    let foreign = other.upload(&[1_u32; 4]).unwrap();
    let own = device.alloc::<u32>(4).unwrap();
    let stream = device.stream().unwrap();
    assert!(matches!(
        stream.copy(&own, &foreign),
        Err(Error::InvalidArgument(_))
    ));
    let faults = module(&other, "faults");
    let trap = faults.function("trap").unwrap();
    let broken = other.stream().unwrap();
    let event = broken.launch(&trap).arg(&foreign).submit().unwrap();
    assert!(matches!(
        stream.wait_for(&event),
        Err(Error::InvalidArgument(_))
    ));
    assert!(matches!(event.wait(), Err(Error::Fault(_))));
    works(&device);
    stream.copy(&own, &own).unwrap().wait().unwrap();
    works(&other);
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
    let before = (descriptors(), mappings());
    let rounds = if is_simulated(&open(options)) {
        100
    } else {
        1000
    };
    for _ in 0..rounds {
        works(&open(options));
    }
    let after = (descriptors(), mappings());
    assert_eq!(before.0, after.0, "open descriptors");
    // The allocator of the process may keep a mapping or two of its own.
    assert!(
        after.1 <= before.1 + 4,
        "mappings: {} before, {} after",
        before.1,
        after.1
    );
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}
