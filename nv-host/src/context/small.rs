//! Small allocations: which calls they make, what they leave behind, and what happens where memory is short.

use nv_sim::{Chip, Machine};

use super::refusals::Refusing;
use super::*;
use crate::driver::sim::{open_in, open_with};

const PLACEMENTS: [Placement; 3] = [Placement::Device, Placement::HostVisible, Placement::Pinned];

#[test]
fn small_allocations_make_no_call_after_the_first() {
    for mode in [MapMode::Rm, MapMode::Uvm] {
        let machine = Machine::new(&[Chip::Gh100]).unwrap();
        let driver = Arc::new(Refusing::nothing(open_in(Arc::clone(&machine), 0).unwrap()));
        let options = Options {
            map_mode: Some(mode),
            ..Options::default()
        };
        let context = Context::new(Arc::clone(&driver) as Arc<dyn Driver>, &options).unwrap();
        for placement in PLACEMENTS {
            drop(context.alloc_in::<u8>(1, placement).unwrap());
            let before = driver.calls();
            for round in 0..1000 {
                let buffers: Vec<_> = (1..10)
                    .map(|i| context.alloc_in::<u32>(i * 701 + round, placement).unwrap())
                    .collect();
                for (i, buffer) in buffers.iter().enumerate() {
                    assert!(buffer.va().is_aligned(512));
                    // Known at the buffer's size, not at the slab's.
                    let at = context.neighbours(buffer.va().0 + 1).at.unwrap();
                    assert_eq!((at.start, at.bytes), (buffer.va(), buffer.bytes() as u64));
                    assert_eq!(at.what, Use::Buffer);
                    for other in &buffers[i + 1..] {
                        let (a, b) = (buffer.va().0, other.va().0);
                        assert!(a + buffer.bytes() as u64 <= b || b + other.bytes() as u64 <= a);
                    }
                }
            }
            assert_eq!(driver.calls(), before, "{placement:?}, {mode:?}");
        }
        // What is more than a slab holds takes further ones, of which one stays.
        for placement in PLACEMENTS {
            let held: Vec<_> = (0..40)
                .map(|_| context.alloc_in::<u8>(200 << 10, placement).unwrap())
                .collect();
            let used = machine.object_count();
            drop(held);
            assert!(machine.object_count() < used);
            let before = driver.calls();
            drop(context.alloc_in::<u8>(1, placement).unwrap());
            assert_eq!(driver.calls(), before);
        }
        drop(context);
        assert_eq!(machine.vidmem_used(0), 0);
    }
}

/// What a block is mapped as for the CPU is the block and no more.
#[test]
fn a_block_maps_itself_alone() {
    let context = Context::new(
        Arc::new(crate::driver::sim::open(Chip::Ga102).unwrap()),
        &Options::default(),
    )
    .unwrap();
    for placement in [Placement::HostVisible, Placement::Pinned] {
        let buffers: Vec<_> = (0..20_u32)
            .map(|i| {
                let buffer = context.alloc_in::<u32>(100, placement).unwrap();
                buffer.write(&[i; 100]).unwrap();
                buffer
            })
            .collect();
        for (i, buffer) in buffers.iter().enumerate() {
            let mapping = buffer.mapping().unwrap();
            assert_eq!(mapping.len(), 512);
            assert_eq!(mapping.read_u32(396), i as u32);
            assert!(matches!(
                mapping.fill(512, 1, 0),
                Err(Error::OutOfBounds { .. })
            ));
            assert_eq!(buffer.read().unwrap(), [i as u32; 100]);
        }
    }
}

/// Memory can be filled with blocks to the last; then slabs that stand empty make room for what is larger.
#[test]
fn slabs_come_back_before_memory_is_short() {
    let memory = nv_sim::Options {
        memory: 64 << 20,
        ..nv_sim::Options::default()
    };
    let driver = open_with(Chip::Gh100, memory).unwrap();
    let machine = Arc::clone(driver.machine());
    let context = Context::new(Arc::new(driver), &Options::default()).unwrap();
    // The default stream has its memory already.
    context.upload(&[1_u8]).unwrap();
    let fill = |bytes: usize| {
        let mut held = Vec::new();
        let full = loop {
            match context.alloc::<u8>(bytes) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::OutOfMemory { .. }), "{full}");
        held
    };
    let mut counts = Vec::new();
    for _ in 0..10 {
        let small = fill(64 << 10);
        // One of each slab stays, so that none is empty.
        let some: Vec<_> = small.into_iter().step_by(32).collect();
        assert!(matches!(
            context.alloc::<u8>(8 << 20),
            Err(Error::OutOfMemory { .. })
        ));
        let count = some.len();
        drop(some);
        let large = fill(2 << 20);
        counts.push((count, large.len()));
    }
    assert!(counts[0].0 > 20 && counts[0].1 > 20, "{counts:?}");
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    drop(context);
    assert_eq!(machine.vidmem_used(0), 0);
}
