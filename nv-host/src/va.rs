//! Which GPU virtual addresses are taken.

use std::collections::BTreeMap;

use nv_proto::unit::GpuVa;

use crate::Error;

/// A first-fit allocator of address ranges; freed ranges are joined and used again.
#[derive(Debug)]
pub(crate) struct VaAllocator {
    /// Free ranges: start to length, never adjacent.
    free: BTreeMap<u64, u64>,
}

impl VaAllocator {
    /// The unit of addresses: RM maps whole pages of the size that it picks, at most 2 MiB, so two mappings
    /// never share 2 MiB (measured on an H200: a fixed address inside a used page is `NV_ERR_NO_MEMORY`).
    pub(crate) const UNIT: u64 = 2 << 20;

    /// All of `base..base + length` is free; both are multiples of [`Self::UNIT`].
    pub(crate) fn new(base: GpuVa, length: u64) -> Self {
        Self {
            free: BTreeMap::from([(base.0, length)]),
        }
    }

    /// What `bytes` take, rounded up to whole units.
    pub(crate) fn rounded(bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(Self::UNIT)
    }

    /// Takes `bytes` of addresses, rounded up to whole units.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<GpuVa, Error> {
        let exhausted = Error::OutOfMemory {
            what: "GPU virtual addresses",
            bytes,
        };
        let Some(length) = Self::rounded(bytes) else {
            return Err(exhausted);
        };
        let found = self.free.iter().find(|(_, free)| **free >= length);
        let Some((start, free)) = found.map(|(start, free)| (*start, *free)) else {
            return Err(exhausted);
        };
        self.free.remove(&start);
        if free > length {
            self.free.insert(start + length, free - length);
        }
        Ok(GpuVa(start))
    }

    /// Gives back what [`Self::take`] gave for the same `bytes`.
    pub(crate) fn give_back(&mut self, va: GpuVa, bytes: u64) {
        let Some(mut length) = Self::rounded(bytes) else {
            return;
        };
        let mut start = va.0;
        if let Some((before, free)) = self.free.range(..start).next_back().map(|(s, l)| (*s, *l))
            && before + free == start
        {
            self.free.remove(&before);
            start = before;
            length += free;
        }
        if let Some(free) = self.free.remove(&(start + length)) {
            length += free;
        }
        self.free.insert(start, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn ranges_never_overlap_and_come_back_whole() {
        let mut va = VaAllocator::new(GpuVa(64 << 30), 64 * MIB);
        let sizes = [1, 2 * MIB, 2 * MIB + 1, 7 * MIB, 4096];
        let mut live: Vec<(GpuVa, u64)> = sizes
            .iter()
            .map(|bytes| (va.take(*bytes).unwrap(), *bytes))
            .collect();
        for (i, (a, a_bytes)) in live.iter().enumerate() {
            assert!(a.is_aligned(VaAllocator::UNIT));
            for (b, b_bytes) in &live[i + 1..] {
                assert!(a.0 + a_bytes <= b.0 || b.0 + b_bytes <= a.0);
            }
        }
        // Any order of freeing leaves one range.
        live.swap(0, 3);
        live.swap(1, 4);
        for (start, bytes) in live {
            va.give_back(start, bytes);
        }
        assert_eq!(va.free, BTreeMap::from([(64 << 30, 64 * MIB)]));
    }

    #[test]
    fn exhaustion_is_an_error_and_leaves_the_rest() {
        let mut va = VaAllocator::new(GpuVa(0), 4 * MIB);
        let first = va.take(4 * MIB).unwrap();
        assert!(matches!(
            va.take(1),
            Err(Error::OutOfMemory { bytes: 1, .. })
        ));
        assert!(matches!(va.take(u64::MAX), Err(Error::OutOfMemory { .. })));
        va.give_back(first, 4 * MIB);
        assert_eq!(va.take(1).unwrap(), first);
    }
}
