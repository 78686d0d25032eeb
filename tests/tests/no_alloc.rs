//! Launches and replays do not allocate.
#![allow(
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nv_host::{Backend, Device, Graph, Options, launch};
use nv_sim::Chip;

/// The system's allocator, which counts what each thread asks for.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may still allocate.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed to `System` unchanged; counting touches no memory but a cell that needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while `work` runs, the fewest of a few rounds: a doorbell that finds the simulated GPU
/// busy may start a worker of it, which the first rounds do.
fn allocations(mut work: impl FnMut()) -> u64 {
    let round = |_| {
        let before = COUNT.get();
        work();
        COUNT.get() - before
    };
    (0..5).map(round).min().unwrap_or(u64::MAX)
}

#[test]
fn the_hot_path_does_not_allocate() {
    let options = Options {
        backend: Backend::Sim(Chip::Gh100),
        ..Options::default()
    };
    let device = Device::open(&options).unwrap();
    let file = nv_tests::bytes("cubins/graph/graph.sm_90.cubin");
    let step = device.load(&file).unwrap().function("step").unwrap();
    let values = device.upload(&[1_u32; 64]).unwrap();
    let other = device.upload(&[1_u32; 64]).unwrap();
    let stream = device.stream().unwrap();
    assert!(allocations(|| drop(vec![1_u8; 100])) > 0, "it counts");

    // The first one makes the room that later ones use again.
    launch!(stream, step[1, 64](&values, 3_u32, 1_u32)).unwrap();
    let launches = allocations(|| {
        for i in 0..200 {
            launch!(stream, step[1, 64](&values, 3_u32, i)).unwrap();
        }
    });
    assert_eq!(launches, 0, "for launches");
    stream.synchronize().unwrap();

    let mut graph = Graph::builder(&device);
    let node = launch!(graph, step[1, 64](&values, 3_u32, 1_u32)).unwrap();
    for _ in 0..9 {
        launch!(graph, step[1, 64](&values, 5_u32, 2_u32)).unwrap();
    }
    graph.copy(&other, &values).unwrap();
    let graph = graph.build().unwrap();
    let replays = allocations(|| {
        for i in 0..50_u32 {
            graph.set_arg(node, 2, i).unwrap();
            graph.set_grid(node, 1).unwrap();
            graph.replay(&stream).unwrap();
        }
    });
    assert_eq!(replays, 0, "for replays");
    stream.synchronize().unwrap();
}
