//! Memory: what is written is read back, and what is given up comes back.

use nv_host::{Buffer, Error, Options, Placement};

use super::{is_simulated, module, open, works};

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
    let mut launches = 0;
    let mut fill = |bytes: usize, held: &mut Vec<Buffer<u8>>| {
        let before = held.len();
        let full = loop {
            // Work is in flight all the while; of the many small pieces, at some.
            if held.len() % 64 == 0 || bytes == 1 << 28 {
                let launch = stream.launch(&vadd).grid(256).block(256);
                let launch = launch.arg(&sum).arg(&ones).arg(&sum).arg(n as i32);
                launch.submit().unwrap();
                launches += 1;
            }
            match device.alloc::<u8>(bytes) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(
                held.len() < 16384,
                "more memory than any GPU has was given out"
            );
        };
        assert!(matches!(full, Error::OutOfMemory { .. }), "{full}");
        held.len() - before
    };
    // In large pieces, and what is left in pieces of a megabyte and of a kilobyte or two.
    let counts: Vec<_> = (0..10)
        .map(|_| {
            let mut held = Vec::new();
            let large = fill(1 << 28, &mut held);
            let medium = fill(1 << 20, &mut held);
            let small = fill(1500, &mut held);
            (large, medium, small)
        })
        .collect();
    assert!(counts[0].0 > 0 && counts[0].1 > 0, "{counts:?}");
    // The first round may make what the driver keeps, such as page tables; from then on nothing drifts.
    assert!(
        counts[1..].iter().all(|count| *count == counts[1]),
        "{counts:?}"
    );
    assert_eq!(counts[0].0, counts[1].0, "{counts:?}");
    stream.synchronize().unwrap();
    assert!(
        sum.read()
            .unwrap()
            .iter()
            .all(|sum| *sum == launches as f32)
    );
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
