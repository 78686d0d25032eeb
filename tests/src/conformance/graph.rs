//! Graphs: in order, as often as replayed, with what they were given last.

use std::time::{Duration, Instant};

use nv_host::{Buffer, Context, Error, Function, Graph, GraphNode, Options, Placement, launch};

use super::{is_simulated, module, open, works};

/// Threads of the kernels' one block, and values that they work on.
const N: u32 = 64;

fn function(device: &Context, name: &str) -> Function {
    module(device, "graph").function(name).unwrap()
}

/// What `step` makes of `value`.
fn step(value: u32, factor: u32, term: u32) -> u32 {
    value.wrapping_mul(factor).wrapping_add(term)
}

/// A graph of `count` steps on `values`; no two of the steps can be swapped.
fn steps(device: &Context, values: &Buffer<u32>, count: u32) -> (Graph, Vec<GraphNode>) {
    let function = function(device, "step");
    let mut graph = Graph::builder(device);
    let nodes = (0..count)
        .map(|i| launch!(graph, function[1, N](values, 2 * i + 3, i)).unwrap())
        .collect();
    (graph.build().unwrap(), nodes)
}

/// What that graph makes of `value`.
fn stepped(value: u32, count: u32) -> u32 {
    (0..count).fold(value, |value, i| step(value, 2 * i + 3, i))
}

/// A chain of 100 kernels runs in order, each seeing what the one before wrote, as often as it is replayed.
pub fn chain(options: &Options) {
    let device = open(options);
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let (graph, _) = steps(&device, &values, 100);
    let stream = device.stream().unwrap();
    let mut expected = 1;
    for replays in [1, 2, 3, if is_simulated(&device) { 20 } else { 1000 }] {
        for _ in 0..replays {
            graph.replay(&stream).unwrap();
            expected = stepped(expected, 100);
        }
        let event = stream.event();
        event.wait().unwrap();
        assert_eq!(values.read().unwrap(), [expected; N as usize]);
    }
    // Other work comes where it was submitted.
    let one = function(&device, "step");
    for _ in 0..3 {
        launch!(stream, one[1, N](&values, 5_u32, 7_u32)).unwrap();
        graph.replay(&stream).unwrap();
        expected = stepped(step(expected, 5, 7), 100);
    }
    launch!(stream, one[1, N](&values, 11_u32, 1_u32))
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(values.read().unwrap(), [step(expected, 11, 1); N as usize]);
}

/// Arguments and grids changed between replays count for those after, and never for what is in flight.
pub fn patches(options: &Options) {
    let device = open(options);
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let (graph, nodes) = steps(&device, &values, 100);
    let stream = device.stream().unwrap();
    let mut terms: Vec<u32> = (0..100).collect();
    let mut expected = 1_u32;
    for replay in 0..50_u32 {
        // The last, the first, and one in the middle: with no wait for the replay before.
        for place in [99, 0, (replay as usize * 37) % 100] {
            terms[place] = replay * 1000 + place as u32;
            graph.set_arg(nodes[place], 2, terms[place]).unwrap();
        }
        graph.replay(&stream).unwrap();
        for (i, term) in (0..).zip(&terms) {
            expected = step(expected, 2 * i + 3, *term);
        }
    }
    stream.synchronize().unwrap();
    assert_eq!(values.read().unwrap(), [expected; N as usize]);

    // Another buffer, and another grid.
    let blocks = function(&device, "blocks");
    let (first, second) = (
        device.upload(&[0_u32; 8]).unwrap(),
        device.upload(&[0_u32; 8]).unwrap(),
    );
    let mut builder = Graph::builder(&device);
    let node = launch!(builder, blocks[2, 32](&first)).unwrap();
    let counting = builder.build().unwrap();
    counting.replay(&stream).unwrap();
    counting.set_arg(node, 0, &second).unwrap();
    counting.set_grid(node, 5).unwrap();
    counting.replay(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(first.read().unwrap(), [2, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(second.read().unwrap(), [5, 5, 5, 5, 5, 0, 0, 0]);

    // What is refused changes nothing.
    let refused = |result: Result<(), Error>, says: &[&str]| match result {
        Err(error @ (Error::Launch { .. } | Error::InvalidArgument(_))) => {
            let text = error.to_string();
            for word in says {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        other => panic!("{says:?}: {other:?}"),
    };
    refused(
        counting.set_arg(node, 1, 1_u32),
        &["blocks", "argument 1", "takes 1"],
    );
    refused(
        counting.set_arg(node, 0, 1_u32),
        &["blocks", "4 bytes", "8"],
    );
    refused(counting.set_grid(node, 0), &["blocks"]);
    refused(counting.set_grid(node, (1, 65_536)), &["65536", "65535"]);
    refused(counting.set_grid(nodes[0], 1), &["another graph"]);
    let other = device.new_context().unwrap();
    let foreign = other.upload(&[0_u32; 8]).unwrap();
    refused(
        counting.set_arg(node, 0, &foreign),
        &["argument 0", "another context"],
    );
    let strange = other.stream().unwrap();
    refused(counting.replay(&strange).map(|_| ()), &["context"]);
    second.write(&[0; 8]).unwrap();
    counting.replay(&stream).unwrap().wait().unwrap();
    assert_eq!(second.read().unwrap(), [5, 5, 5, 5, 5, 0, 0, 0]);
}

/// Kernels and copies in one graph wait for each other, whichever comes first.
pub fn mixed(options: &Options) {
    let device = open(options);
    let start: Vec<u32> = (0..N).collect();
    let source = device.upload(&start).unwrap();
    let work = device.alloc::<u32>(N as usize).unwrap();
    let host = device
        .alloc_in::<u32>(N as usize, Placement::Pinned)
        .unwrap();
    let result = device.alloc::<u32>(N as usize).unwrap();
    let function = function(&device, "step");
    let mut graph = Graph::builder(&device);
    graph.copy(&work, &source).unwrap();
    let node = launch!(graph, function[1, N](&work, 3_u32, 0_u32)).unwrap();
    launch!(graph, function[1, N](&work, 5_u32, 1_u32)).unwrap();
    graph
        .copy(&host, &work)
        .unwrap()
        .copy(&result, &host)
        .unwrap();
    launch!(graph, function[1, N](&result, 7_u32, 2_u32)).unwrap();
    graph.copy(&source, &result).unwrap();
    let graph = graph.build().unwrap();
    let stream = device.stream().unwrap();
    let mut expected = start;
    for round in 0..10 {
        graph.set_arg(node, 2, round).unwrap();
        graph.replay(&stream).unwrap();
        for value in &mut expected {
            *value = step(step(step(*value, 3, round), 5, 1), 7, 2);
        }
    }
    stream.synchronize().unwrap();
    assert_eq!(source.read().unwrap(), expected);

    // Parts of buffers, pinned memory, and fills.
    let pinned = device.alloc_pinned::<u32>(N as usize).unwrap();
    let half = N as usize / 2;
    let mut parts = Graph::builder(&device);
    parts.fill(&work, 3).unwrap();
    parts.fill(&work.slice(half..).unwrap(), 5).unwrap();
    launch!(parts, function[1, N](&work, 2_u32, 1_u32)).unwrap();
    parts.copy(&pinned, &work.slice(half - 1..).unwrap()).unwrap();
    launch!(parts, function[1, N](&pinned.slice(..).unwrap(), 10_u32, 0_u32)).unwrap();
    parts.fill(&pinned.slice(..1).unwrap(), 1).unwrap();
    let parts = parts.build().unwrap();
    for _ in 0..3 {
        pinned.write(&[9; N as usize]).unwrap();
        parts.replay(&stream).unwrap();
        // It knows of the replay, and waits for it.
        let values = pinned.read().unwrap();
        assert_eq!(values[..3], [1, 110, 110]);
        assert_eq!(values[half + 1..], [90; N as usize / 2 - 1]);
    }

    // Of copies alone, and of nothing.
    let mut copies = Graph::builder(&device);
    copies.copy(&work, &source).unwrap();
    let copies = copies.build().unwrap();
    work.write(&[0; N as usize]).unwrap();
    copies.replay(&stream).unwrap();
    copies.replay(&stream).unwrap().wait().unwrap();
    assert_eq!(work.read().unwrap(), expected);
    let nothing = Graph::builder(&device).build().unwrap();
    nothing.replay(&stream).unwrap().wait().unwrap();
    let small = device.alloc::<u32>(1).unwrap();
    assert!(matches!(
        Graph::builder(&device).copy(&small, &work),
        Err(Error::InvalidArgument(_))
    ));
}

/// Kernels that use local memory, also when a stream's grows between replays.
pub fn local(options: &Options) {
    let device = open(options);
    let (step_of, local_step) = (function(&device, "step"), function(&device, "local_step"));
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let mut graph = Graph::builder(&device);
    launch!(graph, step_of[1, N](&values, 3_u32, 1_u32)).unwrap();
    launch!(graph, local_step[1, N](&values, 64_u32)).unwrap();
    launch!(graph, step_of[1, N](&values, 5_u32, 2_u32)).unwrap();
    let graph = graph.build().unwrap();
    let stream = device.stream().unwrap();
    let mut expected = [1_u32; N as usize];
    let mut replay = |stream: &nv_host::Stream| {
        graph.replay(stream).unwrap();
        for (i, value) in (0..).zip(&mut expected) {
            *value = step(step(step(*value, 3, 1), 33, i), 5, 2);
        }
    };
    replay(&stream);
    replay(&stream);
    // `loc` needs more for each thread.
    let loc = module(&device, "k").function("loc").unwrap();
    assert!(loc.local_bytes() > local_step.local_bytes());
    let (index, out) = (
        device.upload(&[0_i32; 1024]).unwrap(),
        device.alloc::<f32>(64).unwrap(),
    );
    launch!(stream, loc[1, 64](&index, &out, 4_i32)).unwrap();
    replay(&stream);
    replay(&stream);
    // One with less, beside it.
    replay(&device.stream().unwrap());
    replay(&stream);
    device.synchronize().unwrap();
    assert_eq!(values.read().unwrap(), expected);
}

/// A cooperative kernel amid others: its blocks meet in every replay.
pub fn cooperative(options: &Options) {
    let device = open(options);
    let (step_of, meet) = (function(&device, "step"), function(&device, "meet"));
    let (count, out) = (
        device.upload(&[0_u32; 1]).unwrap(),
        device.upload(&[0_u32; 8]).unwrap(),
    );
    let mut graph = Graph::builder(&device);
    launch!(graph, step_of[1, 1](&count, 0_u32, 10_u32)).unwrap();
    graph
        .launch(&meet)
        .grid(8)
        .block(32)
        .cooperative()
        .arg(&count)
        .arg(&out)
        .add()
        .unwrap();
    launch!(graph, step_of[1, 8](&out, 2_u32, 1_u32)).unwrap();
    let graph = graph.build().unwrap();
    let stream = device.stream().unwrap();
    let mut expected = 0_u32;
    for _ in 0..5 {
        graph.replay(&stream).unwrap();
        expected = step(expected + 18, 2, 1);
    }
    stream.synchronize().unwrap();
    assert_eq!(out.read().unwrap(), [expected; 8]);
    // As a launch is: not with more blocks than are resident.
    let mut graph = Graph::builder(&device);
    let launch = graph
        .launch(&meet)
        .grid(1_000_000)
        .block(32)
        .cooperative()
        .arg(&count)
        .arg(&out);
    assert!(matches!(launch.add(), Err(Error::Launch { .. })));
}

/// What a graph uses lives as long as it does, whoever else gives it up.
pub fn keeps(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let result = device.upload(&[0_u32; N as usize]).unwrap();
    let start: Vec<u32> = (0..N).collect();
    let (graph, node) = {
        let values = device.upload(&start).unwrap();
        let between = device.alloc::<u32>(N as usize).unwrap();
        let function = function(&device, "step");
        let mut graph = Graph::builder(&device);
        graph.copy(&between, &values).unwrap();
        let node = launch!(graph, function[1, N](&between, 3_u32, 1_u32)).unwrap();
        graph.copy(&result, &between).unwrap();
        (graph.build().unwrap(), node)
    };
    // Memory that was given up would be used again for these.
    let others: Vec<_> = (0..8)
        .map(|_| device.upload(&[0xdead_u32; N as usize]).unwrap())
        .collect();
    graph.replay(&stream).unwrap().wait().unwrap();
    let expected: Vec<u32> = start.iter().map(|value| step(*value, 3, 1)).collect();
    assert_eq!(result.read().unwrap(), expected);
    for other in &others {
        assert_eq!(other.read().unwrap(), [0xdead; N as usize]);
    }
    // An argument that is replaced while it is in use, and a graph dropped while it runs.
    {
        let short = device.upload(&[5_u32; N as usize]).unwrap();
        graph.set_arg(node, 0, &short).unwrap();
    }
    let event = graph.replay(&stream).unwrap();
    graph.set_arg(node, 0, &result).unwrap();
    graph.replay(&stream).unwrap();
    drop(graph);
    event.wait().unwrap();
    stream.synchronize().unwrap();
    works(&device);
}

/// Replays from several threads and on several streams are each whole, and one after the other.
pub fn graph_threads(options: &Options) {
    let device = open(options);
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let (graph, _) = steps(&device, &values, 10);
    let shared = device.stream().unwrap();
    let rounds = 20;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, graph, shared) = (&device, &graph, shared.clone());
            scope.spawn(move || {
                let own = device.stream().unwrap();
                for round in 0..rounds {
                    let stream = if (thread + round) % 2 == 0 {
                        &shared
                    } else {
                        &own
                    };
                    graph.replay(stream).unwrap();
                }
                // The stream is dropped with replays in flight.
            });
        }
    });
    device.synchronize().unwrap();
    let expected = (0..4 * rounds).fold(1, |value, _| stepped(value, 10));
    assert_eq!(values.read().unwrap(), [expected; N as usize]);
}

/// A fault amid a replay names its kernel, and the graph runs again on a new stream.
pub fn faulty(options: &Options) {
    let device = open(options);
    let (step_of, stop) = (
        function(&device, "step"),
        function(&device, "stop_at_seven"),
    );
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let mut graph = Graph::builder(&device);
    launch!(graph, step_of[1, N](&values, 2_u32, 3_u32)).unwrap();
    launch!(graph, stop[1, 1](&values, 2_u32)).unwrap();
    launch!(graph, step_of[1, N](&values, 1_u32, 1_u32)).unwrap();
    let graph = graph.build().unwrap();
    let stream = device.stream().unwrap();
    // 1 becomes 5, 6 at place 2, and so on: the second replay would make 15 of 6.
    graph.replay(&stream).unwrap().wait().unwrap();
    assert_eq!(values.read().unwrap()[..4], [6, 6, 7, 6]);
    values.write(&[2; N as usize]).unwrap();
    let event = graph.replay(&stream).unwrap();
    match event.wait_within(Duration::from_secs(10)) {
        Err(Error::Fault(report)) => {
            assert_eq!(report.kernel.as_deref(), Some("stop_at_seven"), "{report}");
            assert_eq!(report.code, Some(13), "{report}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(graph.replay(&stream), Err(Error::Fault(_))));
    let new = device.stream().unwrap();
    values.write(&[10; N as usize]).unwrap();
    graph.replay(&new).unwrap();
    graph.replay(&new).unwrap().wait().unwrap();
    assert_eq!(values.read().unwrap()[..4], [52, 52, 55, 52]);
    works(&device);

    // A page fault has no program counter: the kernels of the chain are named.
    let bad = module(&device, "faults").function("badaddr").unwrap();
    let long = device.upload(&[0_u64; 32]).unwrap();
    let mut graph = Graph::builder(&device);
    launch!(graph, step_of[1, N](&values, 2_u32, 3_u32)).unwrap();
    launch!(graph, bad[200, 32](&long)).unwrap();
    let graph = graph.build().unwrap();
    let event = graph.replay(&new).unwrap();
    match event.wait_within(Duration::from_secs(10)) {
        Err(error @ Error::Fault(_)) => {
            let text = error.to_string();
            assert!(text.contains("badaddr"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// A replay that does not end: a third one, which would need its memory, is refused in time; then the stream's end ends
/// it, and the graph runs again.
pub fn graph_time_limit(options: &Options) {
    let limit = Duration::from_millis(500);
    let device = open(&Options {
        limit,
        ..options.clone()
    });
    let endless = module(&device, "faults").function("loop").unwrap();
    let flag = device.alloc_in::<u64>(16, Placement::Pinned).unwrap();
    flag.write(&[0; 16]).unwrap();
    let values = device.upload(&[1_u32; N as usize]).unwrap();
    let step_of = function(&device, "step");
    let mut graph = Graph::builder(&device);
    launch!(graph, endless[1, 1](&flag)).unwrap();
    launch!(graph, step_of[1, N](&values, 3_u32, 1_u32)).unwrap();
    let graph = graph.build().unwrap();
    let stream = device.stream().unwrap();
    graph.replay(&stream).unwrap();
    let event = graph.replay(&stream).unwrap();
    let start = Instant::now();
    match graph.replay(&stream) {
        Err(error @ Error::Timeout { .. }) => {
            let text = error.to_string();
            assert!(text.contains("loop"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < limit * 4);
    assert!(!event.is_reached());
    drop((event, stream));
    flag.write(&[99; 16]).unwrap();
    let new = device.stream().unwrap();
    for _ in 0..3 {
        graph.replay(&new).unwrap();
    }
    new.synchronize().unwrap();
    assert_eq!(
        values.read().unwrap(),
        [step(step(step(1, 3, 1), 3, 1), 3, 1); N as usize]
    );
}
