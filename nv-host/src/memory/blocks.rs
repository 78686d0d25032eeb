//! Which parts of the slabs are free: arithmetic on addresses, no memory.

use std::collections::{BTreeMap, BTreeSet};

/// A best-fit allocator of blocks within slabs of one size; freed blocks are joined and used again.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Bytes of a slab, a power of two; each slab begins at a multiple of it, so that an address tells its slab.
    slab: u64,
    /// Free ranges: start to length; within a slab never adjacent, and never across two.
    by_start: BTreeMap<u64, u64>,
    /// The same by length, then start.
    by_length: BTreeSet<(u64, u64)>,
}

impl Blocks {
    /// The unit of blocks and of their addresses: wide loads, texture rows and copies are all fastest from such
    /// multiples, and launch descriptors need 256.
    pub(crate) const UNIT: u64 = 512;

    /// No slabs yet; `slab` is a power of two of at least [`Self::UNIT`].
    pub(crate) fn new(slab: u64) -> Self {
        Self {
            slab,
            by_start: BTreeMap::new(),
            by_length: BTreeSet::new(),
        }
    }

    /// What `bytes` take.
    pub(crate) fn rounded(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(Self::UNIT)
    }

    /// Adds a slab that is free from end to end.
    pub(crate) fn add(&mut self, base: u64) {
        debug_assert!(base.is_multiple_of(self.slab), "slab at {base:#x}");
        self.insert(base, self.slab);
    }

    /// Takes `bytes` at a multiple of `align`, a power of two; `None` where no slab has them.
    pub(crate) fn take(&mut self, bytes: u64, align: u64) -> Option<u64> {
        let wanted = Self::rounded(bytes)?;
        let align = align.max(Self::UNIT);
        let (start, length, at) =
            self.by_length
                .range((wanted, 0)..)
                .find_map(|(length, start)| {
                    let at = start.checked_next_multiple_of(align)?;
                    let end = at.checked_add(wanted)?;
                    (end <= start + length).then_some((*start, *length, at))
                })?;
        self.forget(start, length);
        if at > start {
            self.insert(start, at - start);
        }
        let (end, free_end) = (at + wanted, start + length);
        if free_end > end {
            self.insert(end, free_end - end);
        }
        Some(at)
    }

    /// Gives back what [`Self::take`] gave for the same `bytes`; answers the slab if all of it is free now.
    pub(crate) fn give_back(&mut self, at: u64, bytes: u64) -> Option<u64> {
        let (mut start, mut length) = (at, Self::rounded(bytes)?);
        let base = self.base(start);
        let before = self.by_start.range(base..start).next_back();
        if let Some((before, free)) = before.map(|(start, length)| (*start, *length))
            && before + free == start
        {
            self.forget(before, free);
            start = before;
            length += free;
        }
        let end = start + length;
        if end < base + self.slab
            && let Some(free) = self.by_start.get(&end).copied()
        {
            self.forget(end, free);
            length += free;
        }
        self.insert(start, length);
        (length == self.slab).then_some(base)
    }

    /// The slabs of which all is free.
    pub(crate) fn empty(&self) -> impl Iterator<Item = u64> {
        self.by_length
            .range((self.slab, 0)..)
            .map(|(_, base)| *base)
    }

    /// Takes an empty slab away.
    pub(crate) fn remove(&mut self, base: u64) {
        if self.by_start.get(&base) == Some(&self.slab) {
            self.forget(base, self.slab);
        }
    }

    /// Where the slab begins that an address lies in.
    pub(crate) fn base(&self, at: u64) -> u64 {
        at & !(self.slab - 1)
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.by_start.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn forget(&mut self, start: u64, length: u64) {
        self.by_start.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLAB: u64 = 16 << 10;

    /// Numbers that look random and are the same every time (xorshift64).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % limit
        }
    }

    /// What must hold at any time: `live` and the free ranges cover each slab exactly once, and no two free ranges touch.
    fn check(blocks: &Blocks, slabs: &[u64], live: &[(u64, u64)]) {
        let by_length: BTreeSet<_> = blocks.by_start.iter().map(|(s, l)| (*l, *s)).collect();
        assert_eq!(by_length, blocks.by_length);
        let used = live
            .iter()
            .map(|(at, bytes)| (*at, Blocks::rounded(*bytes).unwrap(), false));
        let free = blocks
            .by_start
            .iter()
            .map(|(start, length)| (*start, *length, true));
        let mut all: Vec<_> = used.chain(free).collect();
        all.sort_unstable();
        let mut all = all.into_iter();
        for slab in slabs {
            let mut at = *slab;
            let mut last_free = false;
            while at < slab + SLAB {
                let (start, length, free) = all.next().unwrap();
                assert_eq!(start, at, "a gap or an overlap");
                assert!(!(free && last_free), "two free ranges touch at {start:#x}");
                (at, last_free) = (start + length, free);
            }
            assert_eq!(at, slab + SLAB, "a block across slabs");
        }
        assert_eq!(all.next(), None);
    }

    #[test]
    fn blocks_never_overlap_and_all_comes_back() {
        for seed in 1..40 {
            let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 + seed);
            let mut blocks = Blocks::new(SLAB);
            // Two that touch and one apart.
            let slabs = [4 * SLAB, 5 * SLAB, 9 * SLAB];
            for slab in slabs {
                blocks.add(slab);
            }
            let mut live = Vec::new();
            let mut refused = 0;
            for _ in 0..400 {
                if live.is_empty() || numbers.below(5) < 3 {
                    let bytes = 1 + numbers.below(SLAB / 2);
                    let align = 1 << numbers.below(13);
                    match blocks.take(bytes, align) {
                        Some(at) => {
                            assert_eq!(at % align.max(512), 0);
                            live.push((at, bytes));
                        }
                        None => refused += 1,
                    }
                } else {
                    let (at, bytes) = live.swap_remove(numbers.below(live.len() as u64) as usize);
                    let empty = blocks.give_back(at, bytes);
                    let base = blocks.base(at);
                    let others = live.iter().any(|(at, _)| blocks.base(*at) == base);
                    assert_eq!(empty, (!others).then_some(base));
                }
                check(&blocks, &slabs, &live);
            }
            assert!(refused > 0, "the slabs never were full");
            for (at, bytes) in live {
                blocks.give_back(at, bytes);
            }
            assert_eq!(blocks.empty().collect::<Vec<_>>(), slabs);
            for slab in slabs {
                blocks.remove(slab);
            }
            assert!(blocks.by_start.is_empty() && blocks.by_length.is_empty());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut blocks = Blocks::new(SLAB);
        assert_eq!(blocks.take(1, 1), None);
        blocks.add(SLAB);
        assert_eq!(blocks.take(u64::MAX, 1), None);
        assert_eq!(blocks.take(SLAB + 1, 1), None);
        assert_eq!(blocks.take(1, 2 * SLAB), None);
        assert_eq!(blocks.take(SLAB, 1), Some(SLAB));
        assert_eq!(blocks.take(0, 1), None);
        // In use: it stays.
        blocks.remove(SLAB);
        assert_eq!(blocks.give_back(SLAB, SLAB), Some(SLAB));
    }

    #[test]
    fn the_smallest_range_that_fits_is_taken() {
        let mut blocks = Blocks::new(SLAB);
        blocks.add(0);
        let held: Vec<_> = (0..8).map(|_| blocks.take(1024, 1).unwrap()).collect();
        blocks.give_back(held[1], 1024);
        blocks.give_back(held[2], 1024);
        blocks.give_back(held[4], 1024);
        assert_eq!(blocks.take(600, 1), Some(held[4]));
        assert_eq!(blocks.take(2048, 1), Some(held[1]));
    }
}
