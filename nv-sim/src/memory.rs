//! Memory of the simulated machine, as both the CPU and the simulated GPU see it.
//!
//! The unit is the aligned 64-bit cell, an atomic: narrower accesses are made of it, so that a program's
//! atomics are atomic and nothing here needs `unsafe`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use zerocopy::FromZeros;

/// Bytes of every [`Memory`] of this process that is not a client's.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How many bytes the simulated machines of this process hold, of GPUs and of the host, what clients lent apart: for
/// tests of leaks, which cannot tell by the process's own memory what its allocator keeps.
#[must_use]
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// How an access uses memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
    /// An instruction fetch.
    Execute,
}

/// A translation that failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[error("{access:?} at {va:#x} hit no mapping")]
pub struct MmuFault {
    /// The virtual address.
    pub va: u64,
    /// What was being done.
    pub access: Access,
}

/// What an engine sees of a GPU address space: a translation of its own, valid while the engine holds it.
pub trait AddressSpace: Sync {
    /// The 64-bit cell that holds the byte at `va` (that of `va & !7`).
    ///
    /// # Errors
    /// When `va` is not mapped, or not mapped for this access.
    fn cell(&self, va: u64, access: Access) -> Result<&AtomicU64, MmuFault>;

    /// The cells from `va & !7` on that lie together in memory, at most `cells` of them and at least one.
    ///
    /// # Errors
    /// As [`AddressSpace::cell`].
    fn cells(&self, va: u64, cells: usize, access: Access) -> Result<&[AtomicU64], MmuFault>;
}

/// A run of memory: one allocation, zero when made, or pages that the client owns.
pub struct Memory {
    cells: Cells,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

enum Cells {
    Own(Box<[AtomicU64]>),
    /// Lent by a client for as long as the memory object lives: freeing it waits for every user.
    Lent(&'static [AtomicU64]),
}

impl Memory {
    /// `bytes` of zeroed memory, rounded up to a whole cell; `None` when the host has not that much.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Option<Self> {
        let cells = <[AtomicU64]>::new_box_zeroed_with_elems(bytes.div_ceil(8)).ok()?;
        let memory = Self {
            cells: Cells::Own(cells),
        };
        LIVE.fetch_add(memory.bytes(), Ordering::Relaxed);
        Some(memory)
    }

    /// Memory that lies in a client's own pages.
    #[must_use]
    pub fn lent(cells: &'static [AtomicU64]) -> Self {
        Self {
            cells: Cells::Lent(cells),
        }
    }

    /// Whether the pages are a client's.
    #[must_use]
    pub fn is_lent(&self) -> bool {
        matches!(self.cells, Cells::Lent(_))
    }

    /// Its cells.
    #[must_use]
    pub fn cells(&self) -> &[AtomicU64] {
        match &self.cells {
            Cells::Own(cells) => cells,
            Cells::Lent(cells) => cells,
        }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.cells().len() * 8
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.is_lent() {
            LIVE.fetch_sub(self.bytes(), Ordering::Relaxed);
        }
    }
}

/// A part of a [`Memory`] that a client has mapped; it keeps the memory alive.
#[derive(Clone, Debug)]
pub struct Span {
    memory: Arc<Memory>,
    first: usize,
    cells: usize,
}

impl Span {
    /// `length` bytes of `memory` from `offset` on, both multiples of 8; `None` where that is not inside.
    #[must_use]
    pub fn new(memory: Arc<Memory>, offset: u64, length: u64) -> Option<Self> {
        if !offset.is_multiple_of(8) || !length.is_multiple_of(8) || length == 0 {
            return None;
        }
        let first = usize::try_from(offset / 8).ok()?;
        let cells = usize::try_from(length / 8).ok()?;
        if first.checked_add(cells)? > memory.cells().len() {
            return None;
        }
        Some(Self {
            memory,
            first,
            cells,
        })
    }

    /// Its cells.
    #[must_use]
    pub fn cells(&self) -> &[AtomicU64] {
        self.memory
            .cells()
            .get(self.first..self.first + self.cells)
            .unwrap_or(&[])
    }

    /// The address of its first byte, for as long as the span lives.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        // Of all the cells, not of the first alone: what the address may be used for follows from that.
        self.cells().as_ptr().cast_mut().cast()
    }

    /// Its size in bytes, never 0.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.cells * 8
    }
}
