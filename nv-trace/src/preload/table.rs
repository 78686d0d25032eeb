//! Tables of a fixed size: the interposer has no allocator, for it is called wherever the program calls.

/// Up to `N` entries, in the order in which they came.
pub struct Table<T, const N: usize> {
    items: [Option<T>; N],
    len: usize,
}

impl<T: Copy, const N: usize> Table<T, N> {
    /// An empty table.
    pub const EMPTY: Self = Self {
        items: [None; N],
        len: 0,
    };

    /// Adds an entry, or answers false where there is no room.
    pub fn push(&mut self, item: T) -> bool {
        let Some(slot) = self.items.get_mut(self.len) else {
            return false;
        };
        *slot = Some(item);
        self.len = self.len.saturating_add(1);
        true
    }

    /// The entries, newest first: what came later lies above what came before.
    pub fn newest_first(&self) -> impl Iterator<Item = &T> {
        self.items
            .get(..self.len)
            .unwrap_or_default()
            .iter()
            .rev()
            .flatten()
    }

    /// The entry at an index, where there is one.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.items.get_mut(..self.len)?.get_mut(index)?.as_mut()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Keeps those for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut kept = 0_usize;
        for index in 0..self.len {
            let item = self.items.get(index).copied().flatten().filter(&mut keep);
            if item.is_some()
                && let Some(slot) = self.items.get_mut(kept)
            {
                *slot = item;
                kept = kept.saturating_add(1);
            }
        }
        self.len = kept;
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_order_and_says_when_it_is_full() {
        let mut table = Table::<u32, 4>::EMPTY;
        for i in 0..4 {
            assert!(table.push(i));
        }
        assert!(!table.push(4));
        table.retain(|i| i % 2 == 1);
        assert_eq!(table.newest_first().copied().collect::<Vec<_>>(), [3, 1]);
        assert!(table.push(9));
        assert_eq!(
            (table.len(), table.get_mut(2).copied(), table.get_mut(3)),
            (3, Some(9), None)
        );
        table.clear();
        assert_eq!(table.newest_first().count(), 0);
    }
}
