//! A byte ring of GPU-visible memory: space is taken at the head and comes back at the tail, in order.

/// Where a ring begins and ends its used part, in bytes since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ring {
    head: u64,
    tail: u64,
    capacity: u64,
}

impl Ring {
    /// An empty ring of `capacity` bytes.
    pub(crate) const fn new(capacity: u64) -> Self {
        Self {
            head: 0,
            tail: 0,
            capacity,
        }
    }

    /// Its capacity in bytes.
    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The offset of `length` contiguous bytes aligned to `align` (a power of two that divides the
    /// capacity); `None` while they are not free.
    pub(crate) fn take(&mut self, length: u64, align: u64) -> Option<u64> {
        let mut start = self.head.checked_next_multiple_of(align)?;
        let offset = start % self.capacity;
        if offset.checked_add(length)? > self.capacity {
            start += self.capacity - offset; // the end of the ring is too short: begin again
        }
        let head = start.checked_add(length)?;
        if head - self.tail > self.capacity {
            return None;
        }
        self.head = head;
        Some(start % self.capacity)
    }

    /// A mark of all that has been taken so far.
    pub(crate) const fn mark(&self) -> u64 {
        self.head
    }

    /// Takes back what was taken after `mark`, the newest first: nothing was made of it.
    pub(crate) fn rewind(&mut self, mark: u64) {
        self.head = self.head.min(mark.max(self.tail));
    }

    /// Gives back all that was taken before `mark`.
    pub(crate) fn release(&mut self, mark: u64) {
        self.tail = self.tail.max(mark.min(self.head));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn live_ranges_never_overlap() {
        // Every size against every alignment, with a bounded number in flight.
        for depth in 1..5 {
            let mut ring = Ring::new(256);
            let mut live: VecDeque<(u64, u64, u64)> = VecDeque::new();
            for i in 0..2000_u64 {
                let length = 1 + (i * 37) % 64;
                let align = 1 << (i % 5);
                if live.len() == depth {
                    let (_, _, mark) = live.pop_front().unwrap();
                    ring.release(mark);
                }
                let Some(offset) = ring.take(length, align) else {
                    let (_, _, mark) = live.pop_front().expect("an empty ring holds 64 bytes");
                    ring.release(mark);
                    continue;
                };
                assert_eq!(offset % align, 0);
                assert!(offset + length <= 256);
                for (other, other_length, _) in &live {
                    assert!(offset + length <= *other || other + other_length <= offset);
                }
                live.push_back((offset, length, ring.mark()));
            }
        }
    }

    #[test]
    fn what_is_taken_back_is_free_again() {
        let mut ring = Ring::new(64);
        assert_eq!(ring.take(16, 1), Some(0));
        let mark = ring.mark();
        for _ in 0..100 {
            assert_eq!(ring.take(48, 1), Some(16));
            ring.rewind(mark);
        }
        // Never behind what was given back.
        ring.release(ring.mark());
        ring.rewind(0);
        assert_eq!(ring.take(48, 1), Some(16));
    }

    #[test]
    fn too_much_is_refused_and_nothing_is_lost() {
        let mut ring = Ring::new(64);
        assert_eq!(ring.take(65, 1), None);
        assert_eq!(ring.take(u64::MAX, 1), None);
        assert_eq!(ring.take(64, 1), Some(0));
        assert_eq!(ring.take(1, 1), None);
        ring.release(ring.mark());
        assert_eq!(ring.take(64, 64), Some(0));
    }
}
