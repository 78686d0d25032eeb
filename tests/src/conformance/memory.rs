//! Memory: what is written is read back, and what is given up comes back.

use nv_host::{Buffer, Error, Options, Page, Placement};

use super::{module, open, works};

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
            if held.len().is_multiple_of(64) || bytes == 1 << 28 {
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

/// A part of a buffer is read, written and given to kernels as if it were one.
pub fn slices(options: &Options) {
    let device = open(options);
    let vadd = module(&device, "k").function("vadd").unwrap();
    let stream = device.default_stream().unwrap();
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        let buffer = device.alloc_in::<f32>(1000, placement).unwrap();
        buffer.write(&[1.0; 1000]).unwrap();
        let (low, high) = (
            buffer.slice(..300).unwrap(),
            buffer.slice(600..=899).unwrap(),
        );
        assert_eq!((low.len(), high.len(), high.bytes()), (300, 300, 1200));
        assert_eq!(high.va().0, buffer.va().0 + 2400);
        high.write(&[2.0; 300]).unwrap();
        // A part of a part.
        let middle = buffer.slice(250..).unwrap().slice(50..350).unwrap();
        let launch = stream.launch(&vadd).grid(2).block(256);
        let launch = launch.arg(low).arg(high).arg(middle).arg(300_i32);
        launch.submit().unwrap();
        let mut expected = vec![1.0; 1000];
        expected[300..600].fill(3.0);
        expected[600..900].fill(2.0);
        assert_eq!(buffer.read().unwrap(), expected, "{placement:?}");
        assert_eq!(middle.read().unwrap(), [3.0; 300], "{placement:?}");
        assert_eq!(buffer.slice(599..601).unwrap().read().unwrap(), [3.0, 2.0]);
        for range in [1000..1001, 0..1001, usize::MAX - 1..usize::MAX] {
            assert!(matches!(
                buffer.slice(range),
                Err(Error::InvalidArgument(_))
            ));
        }
        assert!(matches!(
            buffer.slice(..=usize::MAX),
            Err(Error::InvalidArgument(_))
        ));
        assert!(buffer.slice(1000..).unwrap().is_empty());
        assert!(matches!(
            low.write(&[0.0; 301]),
            Err(Error::InvalidArgument(_))
        ));
        assert!(matches!(
            low.read_into(&mut [0.0; 301]),
            Err(Error::InvalidArgument(_))
        ));
    }
}

/// The CPU's access to pinned memory waits for what uses it.
pub fn pinned(options: &Options) {
    let device = open(options);
    let vadd = module(&device, "k").function("vadd").unwrap();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let n = 1 << 20;
    let pinned = device.alloc_pinned::<f32>(n).unwrap();
    let on_gpu = device.alloc::<f32>(n).unwrap();
    for round in 0..4 {
        let value = round as f32;
        first.fill(&on_gpu, value).unwrap();
        first.copy(&pinned, &on_gpu).unwrap();
        // The last value is the last to arrive.
        assert_eq!(pinned.get(n - 1).unwrap(), value);
        assert!(pinned.read().unwrap().iter().all(|found| *found == value));
        // What is read by a copy may not change under it.
        pinned.write(&vec![value + 0.5; n]).unwrap();
        second.copy(&on_gpu, &pinned).unwrap();
        pinned.set(n - 1, -1.0).unwrap();
        second.synchronize().unwrap();
        let mut last = [0.0];
        on_gpu.slice(n - 1..).unwrap().read_into(&mut last).unwrap();
        assert_eq!(last, [value + 0.5]);
    }
    // From the first launch on that it is an argument of, all work is waited for.
    pinned.write(&vec![1.0; n]).unwrap();
    for round in 1..4 {
        let launch = second.launch(&vadd).grid(n as u32 / 256).block(256);
        let launch = launch.arg(&pinned).arg(&pinned).arg(&pinned).arg(n as i32);
        launch.submit().unwrap();
        assert_eq!(pinned.get(n - 1).unwrap(), (1 << round) as f32);
    }
    assert_eq!(pinned.mapping().unwrap().read_u32(0), 8.0_f32.to_bits());
    assert!(matches!(pinned.get(n), Err(Error::InvalidArgument(_))));
    assert!(matches!(pinned.set(n, 0.0), Err(Error::InvalidArgument(_))));
    assert!(matches!(
        pinned.into_pages(),
        Err(Error::InvalidArgument(_))
    ));
    // Given up while a copy uses it.
    for _ in 0..10 {
        let pinned = device.alloc_pinned::<f32>(n).unwrap();
        first.copy(&pinned, &on_gpu).unwrap();
    }
    first.synchronize().unwrap();
}

/// The program's own pages are worked on where they lie, and come back.
pub fn registered(options: &Options) {
    let device = open(options);
    let vadd = module(&device, "k").function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let ones = device.upload(&[1.0_f32; 5000]).unwrap();
    for round in 0..20 {
        let mut pages = Page::zeroed(1 + round % 5 * 3);
        let n = pages.len() * 1024;
        let n = n.min(5000);
        Page::values_mut::<f32>(&mut pages)[..n].fill(round as f32);
        let lent = device.register::<f32>(pages).unwrap();
        assert_eq!(lent.len() % 1024, 0);
        let launch = stream.launch(&vadd).grid(20).block(256);
        let launch = launch.arg(&lent).arg(&ones).arg(&lent).arg(n as i32);
        launch.submit().unwrap();
        if round % 3 == 0 {
            // The driver lets the pages go when the work has ended.
            drop(lent);
            continue;
        }
        let first = lent.get(0).unwrap();
        let pages = lent.into_pages().unwrap();
        let values = Page::values::<f32>(&pages);
        assert_eq!(first, round as f32 + 1.0);
        assert!(values[..n].iter().all(|value| *value == first));
        assert!(values[n..].iter().all(|value| *value == 0.0));
    }
    stream.synchronize().unwrap();
    let refused = device.register::<u8>(Vec::new()).unwrap_err();
    assert!(matches!(refused.error, Error::InvalidArgument(_)));
    assert!(refused.pages.is_empty());
    // Values larger than what was given.
    let refused = device.register::<[u8; 8192]>(Page::zeroed(1)).unwrap_err();
    assert!(matches!(refused.error, Error::InvalidArgument(_)));
    assert_eq!(refused.pages.len(), 1);
    works(&device);
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

/// Small memory is given out again only once the work that was in flight on it has ended.
pub fn late_reuse(options: &Options) {
    let device = open(options);
    let vadd = module(&device, "k").function("vadd").unwrap();
    let stream = device.stream().unwrap();
    // Runs until its memory says otherwise.
    let gate = module(&device, "faults").function("loop").unwrap();
    let flag = device.alloc_in::<u64>(16, Placement::Pinned).unwrap();
    let n = 2000;
    let sums = device.alloc::<f32>(n).unwrap();
    for round in 0..8 {
        let value = round as f32;
        let a = device.upload(&vec![value; n]).unwrap();
        let b = device.upload(&vec![0.25_f32; n]).unwrap();
        flag.mapping().unwrap().write_u64(8, 0);
        let held = stream.launch(&gate).block(32).arg(&flag);
        held.submit().unwrap();
        let launch = stream.launch(&vadd).grid(8).block(256);
        let launch = launch.arg(&a).arg(&b).arg(&sums).arg(n as i32);
        let end = launch.submit().unwrap();
        drop((a, b));
        // On another stream, so that nothing but the memory's being in use keeps these from going first.
        let others: Vec<_> = (0..4)
            .map(|_| device.upload(&vec![-1.0_f32; n]).unwrap())
            .collect();
        assert!(!end.is_reached());
        flag.mapping().unwrap().write_u64(8, 99);
        end.wait().unwrap();
        let found = sums.read().unwrap();
        assert!(
            found.iter().all(|sum| *sum == value + 0.25),
            "round {round}: {}",
            found[0]
        );
        drop(others);
    }
}

/// What programs hand from thread to thread can be handed.
pub fn shared(options: &Options) {
    fn check<T: Send + Sync>(value: T) -> T {
        value
    }
    let device = check(open(options));
    let stream = check(device.stream().unwrap());
    let buffer = check(device.upload(&[1_u32; 100]).unwrap());
    let pinned = check(device.alloc_pinned::<u32>(100).unwrap());
    check(pinned.slice(1..).unwrap());
    let lent = check(device.register::<u32>(Page::zeroed(1)).unwrap());
    let download = check(stream.download(&buffer).unwrap());
    let values = std::thread::spawn(move || download.wait().unwrap());
    assert_eq!(values.join().unwrap(), [1; 100]);
    let given = std::thread::spawn(move || {
        pinned.write(&[2; 100]).unwrap();
        (pinned, lent.into_pages().unwrap())
    });
    let (pinned, _pages) = given.join().unwrap();
    check(stream.copy(&buffer, &pinned).unwrap())
        .wait()
        .unwrap();
    assert_eq!(buffer.read().unwrap(), [2; 100]);
}
