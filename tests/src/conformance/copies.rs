//! Copies and fills: whatever is moved arrives, and nothing beside it changes.

use nv_host::{Error, Options, Page, Placement, Rect};

use super::{is_simulated, open};

/// Values that tell where they are.
fn values(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32)
        .map(|i| (i ^ seed).wrapping_mul(2_654_435_761))
        .collect()
}

/// Copies between all kinds of memory keep every byte.
pub fn copies(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let len = 1_000_003;
    let values = values(len, 0);
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
        // To pinned memory and to pages of the program's own, and on from there.
        let pinned = device.alloc_pinned::<u32>(len).unwrap();
        let pages = Page::zeroed((len * 4).div_ceil(Page::BYTES));
        let lent = device.register::<u32>(pages).unwrap();
        let back = device.alloc_in::<u32>(len, from).unwrap();
        stream.copy(&pinned, &source).unwrap();
        stream.copy(&lent, &pinned).unwrap();
        stream.copy(&back, &lent.slice(..len).unwrap()).unwrap();
        stream.synchronize().unwrap();
        assert!(
            back.read().unwrap() == values,
            "{from:?} by way of the host"
        );
        let pages = lent.into_pages().unwrap();
        assert!(Page::values::<u32>(&pages)[..len] == values, "{from:?}");
    }
    let short = device.alloc::<u32>(len - 1).unwrap();
    let source = device.alloc::<u32>(len).unwrap();
    assert!(matches!(
        stream.copy(&short, &source),
        Err(Error::InvalidArgument(_))
    ));
    let other = device.new_context().unwrap().alloc::<u32>(len).unwrap();
    assert!(matches!(
        stream.copy(&other, &source),
        Err(Error::InvalidArgument(_))
    ));
}

/// Parts of every alignment and length are copied, and nothing beside them.
pub fn parts(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let source: Vec<u8> = values(4096, 1).iter().map(|value| *value as u8).collect();
    let from = device.upload(&source).unwrap();
    let to = device.alloc::<u8>(4096).unwrap();
    for (at, out) in [(0, 0), (1, 0), (0, 1), (3, 5), (8, 16), (100, 613)] {
        for length in [0, 1, 2, 7, 8, 64, 1001, 3000] {
            stream.fill(&to, 0xa5).unwrap();
            let target = to.slice(out..out + length).unwrap();
            stream
                .copy(&target, &from.slice(at..at + length).unwrap())
                .unwrap();
            let found = stream.download(&to).unwrap().wait().unwrap();
            let mut expected = vec![0xa5; 4096];
            expected[out..out + length].copy_from_slice(&source[at..at + length]);
            assert!(found == expected, "{length} from {at} to {out}");
        }
    }
}

/// Rows at any pitch are copied, and nothing between them.
pub fn copies_2d(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let len = 40_000;
    let source_values = values(len, 2);
    let source = device.upload(&source_values).unwrap();
    let target = device.alloc::<u32>(len).unwrap();
    for (width, rows, target_pitch, source_pitch) in [
        (1, 1, 1, 1),
        (1, 1, 0, 0),
        (1, 300, 7, 100),
        (7, 33, 7, 7),
        (100, 200, 101, 200),
        (199, 100, 200, 199),
        (37, 1000, 39, 37),
        (20_000, 2, 20_000, 20_000),
        (5, 0, 1, 1),
        (0, 5, 9, 9),
    ] {
        let rect = Rect {
            width,
            rows,
            target_pitch,
            source_pitch,
        };
        stream.fill(&target, 9).unwrap();
        stream.copy_2d(&target, &source, &rect).unwrap();
        let found = stream.download(&target).unwrap().wait().unwrap();
        let mut expected = vec![9; len];
        for row in 0..rows {
            let (to, from) = (row * target_pitch, row * source_pitch);
            expected[to..to + width].copy_from_slice(&source_values[from..from + width]);
        }
        assert!(found == expected, "{rect:?}");
    }
    // Outside, overlapping, and more than can be told.
    for (width, rows, target_pitch, source_pitch) in [
        (200, 201, 200, 200),
        (200, 200, 199, 200),
        (200, 200, 200, 199),
        (usize::MAX, 1, 1, 1),
        (1, usize::MAX, 1, 1),
        (1, 2, usize::MAX, 1),
        (len + 1, 1, len, len),
    ] {
        let rect = Rect {
            width,
            rows,
            target_pitch,
            source_pitch,
        };
        let refused = stream.copy_2d(&target, &source, &rect);
        assert!(
            matches!(refused, Err(Error::InvalidArgument(_))),
            "{rect:?}"
        );
    }
}

/// Fills of every size set what they name and nothing beside it.
pub fn fills(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let len = 4099;
    let bytes = device.alloc::<u8>(len).unwrap();
    let shorts = device.alloc::<u16>(len).unwrap();
    let words = device.alloc::<f32>(len).unwrap();
    let longs = device.alloc::<u64>(len).unwrap();
    let triples = device.alloc::<[u8; 3]>(len).unwrap();
    for (from, to) in [
        (0, len),
        (0, 0),
        (1, 2),
        (1, 1000),
        (2, 1001),
        (3, 4),
        (3, 4096),
        (4, 4099),
    ] {
        macro_rules! filled {
            ($buffer:ident, $before:expr, $value:expr) => {
                stream.fill(&$buffer, $before).unwrap();
                stream
                    .fill(&$buffer.slice(from..to).unwrap(), $value)
                    .unwrap();
                let found = stream.download(&$buffer).unwrap().wait().unwrap();
                let mut expected = vec![$before; len];
                expected[from..to].fill($value);
                assert!(found == expected, "{}, {from}..{to}", stringify!($buffer));
            };
        }
        filled!(bytes, 0xa5_u8, 0x3c);
        filled!(shorts, 0xa5a6_u16, 0x1234);
        filled!(words, -1.5_f32, 2.25);
        filled!(longs, 0x1122_3344_5566_7788_u64, 0x99aa_bbcc_ddee_ff01);
    }
    assert!(matches!(
        stream.fill(&triples, [1, 2, 3]),
        Err(Error::InvalidArgument(_))
    ));
    // What the CPU reaches is filled too.
    let pinned = device.alloc_pinned::<u16>(777).unwrap();
    stream.fill(&pinned, 0xbeef).unwrap();
    assert_eq!(pinned.read().unwrap(), [0xbeef; 777]);
}

/// Copies from and to the program's own memory return at once and keep their order.
pub fn copies_async(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let len = 10_000;
    let buffer = device.alloc::<u32>(len).unwrap();
    let mut source = vec![0; len];
    let downloads: Vec<_> = (0..100)
        .map(|round| {
            source.fill(round);
            stream.upload(&buffer, &source).unwrap();
            // The copy has what was there, not this.
            source.fill(u32::MAX);
            let half = buffer.slice(..len / 2).unwrap();
            stream.upload(&half, &vec![round + 1000; len / 2]).unwrap();
            stream.download(&buffer).unwrap()
        })
        .collect();
    for (round, download) in downloads.into_iter().enumerate().rev() {
        let found = download.wait().unwrap();
        let (low, high) = found.split_at(len / 2);
        assert!(low.iter().all(|value| *value == round as u32 + 1000));
        assert!(high.iter().all(|value| *value == round as u32));
    }
    // Given up before they arrive, and empty ones.
    for _ in 0..100 {
        drop(stream.download(&buffer).unwrap());
    }
    let none = buffer.slice(5..5).unwrap();
    stream.upload(&none, &[]).unwrap().wait().unwrap();
    assert!(stream.download(&none).unwrap().wait().unwrap().is_empty());
    assert!(matches!(
        stream.upload(&none, &[1]),
        Err(Error::InvalidArgument(_))
    ));
    // As large as takes memory of its own.
    let large = values(3 << 20, 3);
    let target = device.alloc::<u32>(large.len()).unwrap();
    let arrived = stream.upload(&target, &large).unwrap();
    let back = stream.download(&target).unwrap();
    assert!(back.wait().unwrap() == large && arrived.is_reached());
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
    // No whole number of the pieces that copies are made of, from where a page does not begin.
    let part = buffer.slice(12_345..values.len() - 77).unwrap();
    assert!(part.read().unwrap() == values[12_345..values.len() - 77]);
    let other: Vec<u64> = values.iter().map(|value| !value).collect();
    part.write(&other[12_345..values.len() - 77]).unwrap();
    let back = buffer.read().unwrap();
    assert!(back[12_345..values.len() - 77] == other[12_345..values.len() - 77]);
    assert!(back[..12_345] == values[..12_345]);
    assert!(back[values.len() - 77..] == values[values.len() - 77..]);
}

/// Several threads copy large and small at once, each its own.
pub fn copies_by_threads(options: &Options) {
    let device = open(options);
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let device = &device;
            scope.spawn(move || {
                for (round, len) in [1, 70_000, 5 << 20, 300, 6 << 20].into_iter().enumerate() {
                    let values = values(len, thread * 16 + round as u32);
                    let buffer = device.upload(&values).unwrap();
                    assert!(buffer.read().unwrap() == values, "{thread}, {len} values");
                }
            });
        }
    });
}
