//! The arithmetic of a ring: who is where.

use super::{USERD_GP_GET, USERD_GP_PUT};
use crate::error::{DecodeError, EncodeError};

#[allow(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
pub(super) const fn low32(value: u64) -> u32 {
    value as u32
}

/// Where producer and consumer of a ring are: pure arithmetic, no memory.
///
/// `put` and `get` count entries since the ring began and only ever grow; the ring's slots are their low bits.
/// The hardware knows a ring's size as a power of two (`LIMIT2` of its channel state), and equal indices mean
/// empty, so a ring of `n` slots holds `n - 1` entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingCursor {
    mask: u32,
    put: u64,
    get: u64,
}

impl RingCursor {
    /// An empty ring of `entries` slots.
    ///
    /// # Errors
    /// When `entries` is not a power of two of at least 2.
    pub const fn new(entries: u32) -> Result<Self, EncodeError> {
        Self::starting_at(entries, 0)
    }

    /// An empty ring of which `count` entries were put and fetched before.
    ///
    /// # Errors
    /// As [`RingCursor::new`].
    pub const fn starting_at(entries: u32, count: u64) -> Result<Self, EncodeError> {
        if entries < 2 || !entries.is_power_of_two() {
            return Err(EncodeError::Unsupported {
                what: "a number of gpFifoEntries that is no power of two of at least 2",
                value: entries as u64,
            });
        }
        Ok(Self {
            mask: entries.wrapping_sub(1),
            put: count,
            get: count,
        })
    }

    /// How many slots the ring has.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// Entries put since the ring began, modulo 2^64.
    #[must_use]
    pub const fn put(&self) -> u64 {
        self.put
    }

    /// Entries known to be fetched since the ring began, modulo 2^64.
    #[must_use]
    pub const fn get(&self) -> u64 {
        self.get
    }

    /// The slot of the entry put next, which is also the value of `GP_PUT`.
    #[must_use]
    pub const fn gp_put(&self) -> u32 {
        self.slot(self.put)
    }

    /// The slot of the entry fetched next, which is also the value of `GP_GET` as last seen.
    #[must_use]
    pub const fn gp_get(&self) -> u32 {
        self.slot(self.get)
    }

    /// The slot that the entry of a count lies in.
    #[must_use]
    pub const fn slot(&self, count: u64) -> u32 {
        // The mask has 32 bits, so nothing of the upper half counts.
        low32(count) & self.mask
    }

    /// Entries put and not known to be fetched.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        // At most `mask`, which every method keeps.
        low32(self.put.wrapping_sub(self.get))
    }

    /// How many entries can be put now.
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.mask.wrapping_sub(self.pending())
    }

    /// Whether everything put is known to be fetched.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.put == self.get
    }

    /// Whether nothing can be put before something is fetched.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free() == 0
    }

    /// Takes the next slot: where the caller writes its entry before it publishes [`RingCursor::gp_put`].
    /// `None` when the ring is full.
    #[inline]
    pub const fn push(&mut self) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let slot = self.gp_put();
        self.put = self.put.wrapping_add(1);
        Some(slot)
    }

    /// Takes the oldest entry's slot, as the consumer does. `None` when the ring is empty.
    #[inline]
    pub const fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let slot = self.gp_get();
        self.get = self.get.wrapping_add(1);
        Some(slot)
    }

    /// The producer's side: learns from the `GP_GET` that the hardware wrote, and answers how many entries
    /// were fetched since it last did.
    ///
    /// # Errors
    /// When no ring that this is could have that value: the index is past the end, or ahead of `GP_PUT`.
    #[inline]
    pub const fn observe_gp_get(&mut self, gp_get: u32) -> Result<u32, DecodeError> {
        let fetched = gp_get.wrapping_sub(self.gp_get()) & self.mask;
        if gp_get > self.mask || fetched > self.pending() {
            return Err(DecodeError::BadValue {
                what: "GP_GET",
                offset: USERD_GP_GET,
                value: gp_get as u64,
            });
        }
        self.get = self.get.wrapping_add(fetched as u64);
        Ok(fetched)
    }

    /// The consumer's side: learns from the `GP_PUT` that the producer wrote, and answers how many entries
    /// are new.
    ///
    /// # Errors
    /// When the index is past the end of the ring.
    #[inline]
    pub const fn observe_gp_put(&mut self, gp_put: u32) -> Result<u32, DecodeError> {
        if gp_put > self.mask {
            return Err(DecodeError::BadValue {
                what: "GP_PUT",
                offset: USERD_GP_PUT,
                value: gp_put as u64,
            });
        }
        // From GET to the new PUT is less than a whole ring; what of it was known before is no news. A PUT
        // behind the old one (entries taken back) gives a smaller distance and no new entries.
        let pending = gp_put.wrapping_sub(self.gp_get()) & self.mask;
        let new = pending.saturating_sub(self.pending());
        self.put = self.get.wrapping_add(pending as u64);
        Ok(new)
    }
}
