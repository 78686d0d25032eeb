//! What two contexts have of each other: of one GPU, and of two.

use std::time::Duration;

use nv_host::{Context, Device, Error, Graph, Options, Placement};

use super::{module, open, works};

/// Two contexts of one GPU.
fn two(options: &Options) -> (Device, Context) {
    let device = open(options);
    let other = device.new_context().unwrap();
    (device, other)
}

/// Memory of one context is read and written by kernels of another.
pub fn mapping(options: &Options) {
    let (device, other) = two(options);
    mapping_between(&device, &other);
    mapping_between(&other, &device);
}

/// Copies between contexts keep every byte, both ways.
pub fn copies_between_contexts(options: &Options) {
    let (device, other) = two(options);
    copies_between(&device, &other);
    copies_between(&other, &device);
}

/// Streams of two contexts wait for each other.
pub fn signals(options: &Options) {
    let (device, other) = two(options);
    signals_between(&device, &other);
}

/// What is mapped outlives its buffer and its context, and a mapping the work that uses it.
pub fn lifetimes(options: &Options) {
    let device = open(options);
    lifetimes_between(|| device.new_context().unwrap(), &device);
}

/// [`mapping`], of memory of `owner`'s in `user`.
pub fn mapping_between(owner: &Context, user: &Context) {
    let module = module(user, "k");
    let vadd = module.function("vadd").unwrap();
    let n = 70_001_usize;
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let source = owner.alloc_in::<f32>(n, placement).unwrap();
        source.write(&values).unwrap();
        let sum = owner.alloc_in::<f32>(n, placement).unwrap();
        sum.write(&vec![0.0; n]).unwrap();
        let (source_there, sum_there) = (source.map_for(user).unwrap(), sum.map_for(user).unwrap());
        assert_eq!(source_there.len(), n);
        let one = user.upload(&vec![1.0_f32; n]).unwrap();
        let stream = user.stream().unwrap();
        let launch = stream.launch(&vadd).grid(n.div_ceil(256) as u32).block(256);
        let launch = launch
            .arg(&source_there)
            .arg(&one)
            .arg(&sum_there)
            .arg(n as i32);
        launch.submit().unwrap().wait().unwrap();
        let got = sum.read().unwrap();
        let wrong = got.iter().zip(&values).position(|(a, b)| *a != b + 1.0);
        assert_eq!(wrong, None, "{placement:?}");
        // A place of copies and fills as any other there, and named when an address misses.
        let copy = user.alloc::<f32>(n).unwrap();
        stream.fill(&sum_there, 7.0).unwrap();
        stream.copy(&copy, &source_there).unwrap().wait().unwrap();
        assert!(copy.read().unwrap() == values, "{placement:?}");
        assert!(sum.read().unwrap() == vec![7.0; n], "{placement:?}");
        let found = user.neighbours(source_there.va().0).at;
        assert_eq!(found.map(|region| region.what), Some(nv_host::Use::Peer));
        // What means something there means nothing here.
        let own = owner.stream().unwrap();
        let foreign = own.launch(&vadd).arg(&source_there).submit();
        assert!(matches!(foreign, Err(Error::Launch { .. })));
    }
    let buffer = owner.alloc::<u32>(1).unwrap();
    assert!(matches!(
        buffer.map_for(owner),
        Err(Error::InvalidArgument(_))
    ));
    works(owner);
    works(user);
}

/// [`copies_between_contexts`], on streams of `user`; whether or not its GPU reaches the memory of `owner`.
pub fn copies_between(owner: &Context, user: &Context) {
    let stream = user.stream().unwrap();
    let long = match user.can_access(owner) {
        Ok(_) => (1 << 20) + 5,
        // More than host memory has parts for.
        Err(_) => (17 << 20) + 5,
    };
    for len in [1, 4099, long] {
        let values: Vec<u8> = (0..len).map(|i: usize| (i * 31 + i / 4096) as u8).collect();
        let there = owner.upload(&values).unwrap();
        let here = user.alloc::<u8>(len).unwrap();
        let copied = stream.copy_peer(&here, &there).unwrap();
        copied.wait().unwrap();
        assert!(here.read().unwrap() == values, "{len} bytes in");
        let back = owner.alloc::<u8>(len).unwrap();
        // Two copies in a row: the second finds what the first left.
        stream.copy_peer(&back, &here).unwrap();
        let again = user.alloc::<u8>(len).unwrap();
        stream.copy_peer(&again, &back).unwrap().wait().unwrap();
        assert!(
            again.read().unwrap() == values,
            "{len} bytes there and back"
        );
        assert!(back.read().unwrap() == values, "{len} bytes out");
    }
    let (short, long) = (user.alloc::<u8>(9).unwrap(), owner.alloc::<u8>(10).unwrap());
    assert!(matches!(
        stream.copy_peer(&short, &long),
        Err(Error::InvalidArgument(_))
    ));
    let other = owner.alloc::<u8>(10).unwrap();
    assert!(matches!(
        stream.copy_peer(&other, &long),
        Err(Error::InvalidArgument(_))
    ));
}

/// [`signals`]: a number goes back and forth, one more each time.
pub fn signals_between(a: &Context, b: &Context) {
    let (there, here) = (module(a, "k"), module(b, "k"));
    let (add_a, add_b) = (
        there.function("vadd").unwrap(),
        here.function("vadd").unwrap(),
    );
    let (stream_a, stream_b) = (a.stream().unwrap(), b.stream().unwrap());
    let n = 4096;
    let (one_a, one_b) = (
        a.upload(&vec![1.0_f32; n]).unwrap(),
        b.upload(&vec![1.0_f32; n]).unwrap(),
    );
    let (number_a, number_b) = (
        a.upload(&vec![0.0_f32; n]).unwrap(),
        b.upload(&vec![0.0_f32; n]).unwrap(),
    );
    for _ in 0..20 {
        let launch = stream_a.launch(&add_a).grid(16).block(256);
        let launch = launch.arg(&number_a).arg(&one_a).arg(&number_a);
        let stepped = launch.arg(n as i32).submit().unwrap();
        stream_b.wait_for(&stepped).unwrap();
        stream_b.copy_peer(&number_b, &number_a).unwrap();
        let launch = stream_b.launch(&add_b).grid(16).block(256);
        let launch = launch.arg(&number_b).arg(&one_b).arg(&number_b);
        launch.arg(n as i32).submit().unwrap();
        let stepped = stream_b.copy_peer(&number_a, &number_b).unwrap();
        stream_a.wait_for(&stepped).unwrap();
    }
    let last = stream_a.event();
    last.wait().unwrap();
    stream_b.synchronize().unwrap();
    assert_eq!(number_a.read().unwrap(), vec![40.0; n]);
    assert_eq!(number_b.read().unwrap(), vec![40.0; n]);
    // An event of a stream that is gone.
    let gone = {
        let stream = a.stream().unwrap();
        let copied = stream.copy(&number_a, &one_a).unwrap();
        stream_b.wait_for(&copied).unwrap();
        copied
    };
    stream_b.wait_for(&gone).unwrap();
    drop(gone);
    stream_b.synchronize().unwrap();
}

/// [`lifetimes`], of contexts that `owner` makes.
pub fn lifetimes_between(owner: impl Fn() -> Context, user: &Context) {
    let module = module(user, "k");
    let vadd = module.function("vadd").unwrap();
    let n = 1 << 16;
    let stream = user.stream().unwrap();
    for _ in 0..3 {
        let there = {
            let context = owner();
            let buffer = context.upload(&vec![3.0_f32; n]).unwrap();
            buffer.map_for(user).unwrap()
        };
        // Buffer and context are gone; what else the owner's GPU is given is not this memory.
        let _other = user.upload(&vec![9.0_f32; n]).unwrap();
        let sum = user.upload(&vec![0.0_f32; n]).unwrap();
        for _ in 0..20 {
            let launch = stream.launch(&vadd).grid(n as u32 / 256).block(256);
            let launch = launch.arg(&there).arg(&sum).arg(&sum);
            launch.arg(n as i32).submit().unwrap();
        }
        drop(there);
        stream.synchronize().unwrap();
        assert!(sum.read().unwrap().iter().all(|sum| *sum == 60.0));
    }
    // A graph keeps what its launches name, too.
    let (graph, sum) = {
        let context = owner();
        let buffer = context.upload(&vec![3.0_f32; n]).unwrap();
        let there = buffer.map_for(user).unwrap();
        let sum = user.upload(&vec![0.0_f32; n]).unwrap();
        let mut graph = Graph::builder(user);
        nv_host::launch!(graph, vadd[n as u32 / 256, 256](&there, &sum, &sum, n as i32)).unwrap();
        (graph.build().unwrap(), sum)
    };
    let _other = user.upload(&vec![9.0_f32; n]).unwrap();
    for _ in 0..3 {
        graph.replay(&stream).unwrap();
    }
    drop(graph);
    stream.synchronize().unwrap();
    assert!(sum.read().unwrap().iter().all(|sum| *sum == 9.0));
    // Contexts that map each other's memory with work in flight end all the same.
    let (a, b) = (owner(), owner());
    let (in_a, in_b) = (
        a.upload(&[1_u8; 4096]).unwrap(),
        b.upload(&[2_u8; 4096]).unwrap(),
    );
    let (for_b, for_a) = (in_a.map_for(&b).unwrap(), in_b.map_for(&a).unwrap());
    a.stream().unwrap().copy_peer(&in_a, &for_a).unwrap();
    b.stream().unwrap().copy_peer(&in_b, &for_b).unwrap();
    a.default_stream()
        .unwrap()
        .synchronize_within(Duration::from_secs(10))
        .unwrap();
    drop((for_a, for_b, in_a, in_b, a, b));
    works(user);
}
