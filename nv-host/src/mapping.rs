//! Memory that the GPU sees too: reached by relaxed atomics, never borrowed as values. Threads may race with each other
//! as they do with the GPU, which volatile accesses would not allow: copies that race leave one or the other's words, as
//! they do in memory, and nothing worse. Cells of 8 bytes copy as fast as `memcpy` does (measured: both as fast as memory
//! is).
#![allow(unsafe_code, reason = "the only file that touches GPU-visible memory")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::Error;
use crate::memory::Lender;

/// A CPU mapping of GPU-visible memory. Dropping it unmaps.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
    _owner: Owner,
}

/// Who keeps the pages alive.
#[derive(Debug)]
#[allow(dead_code, reason = "held to be dropped")]
enum Owner {
    #[cfg(feature = "ioctl")]
    Pages(crate::sys::mmap::Pages),
    #[cfg(feature = "sim")]
    Sim(nv_sim::memory::Span),
    Part(Arc<Mapping>),
    Lent(Arc<Lender>),
}

// SAFETY: a mapping owns its pages, and all access through it is by atomics, so moving it to another thread is sound.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`: shared access makes no references but to atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Mapped pages as GPU-visible memory.
    #[cfg(feature = "ioctl")]
    pub(crate) fn from_pages(pages: crate::sys::mmap::Pages) -> Self {
        Self {
            base: pages.base(),
            length: pages.length(),
            _owner: Owner::Pages(pages),
        }
    }

    /// Memory of the simulated GPU.
    #[cfg(feature = "sim")]
    pub(crate) fn from_span(span: nv_sim::memory::Span) -> Option<Self> {
        let base = NonNull::new(span.as_ptr())?;
        Some(Self {
            base,
            length: span.bytes(),
            _owner: Owner::Sim(span),
        })
    }

    /// Memory that the program lent.
    pub(crate) fn lent(lender: &Arc<Lender>) -> Self {
        Self {
            base: lender.base(),
            length: lender.length(),
            _owner: Owner::Lent(Arc::clone(lender)),
        }
    }

    /// `length` bytes of `whole` from `offset` on, which keep all of it mapped; `None` where that is not inside. The
    /// offset is a multiple of 8, so that what is aligned in the part is so in memory.
    pub(crate) fn part(whole: &Arc<Self>, offset: u64, length: u64) -> Option<Self> {
        let offset = usize::try_from(offset).ok()?;
        let length = usize::try_from(length).ok()?;
        whole.check(offset, length).ok()?;
        if !offset.is_multiple_of(8) {
            return None;
        }
        // Inside the mapping (checked above), so it neither wraps nor is null.
        let base = NonNull::new(whole.base.as_ptr().wrapping_add(offset))?;
        Some(Self {
            base,
            length,
            _owner: Owner::Part(Arc::clone(whole)),
        })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty, which no mapping is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of its first byte in this process.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Whether `length` bytes at `offset` lie inside.
    fn check(&self, offset: usize, length: usize) -> Result<(), Error> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(Error::OutOfBounds {
                offset: offset as u64,
                length: length as u64,
                size: self.length as u64,
            }),
        }
    }

    /// The word of an atomic type `T` at `offset`; `None` outside the mapping or where it is not aligned.
    fn slot<T: Word>(&self, offset: usize) -> Option<&T> {
        let inside = self.check(offset, size_of::<T>()).is_ok();
        // The base is page or cell aligned, so an aligned offset is an aligned address.
        if !inside || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        let slot = self.base.as_ptr().wrapping_add(offset).cast::<T>();
        // SAFETY:
        // - the word lies inside the mapping (checked above), which is readable and writable and stays while `self` does;
        // - it is aligned: the base is for 8 bytes, the offset is (checked above), and a `Word` asks for no more;
        // - any bytes make a `Word`, and what others store breaks no reference to an atomic.
        Some(unsafe { &*slot })
    }

    /// Stores a word. A store outside the mapping, or misaligned, is dropped.
    pub fn write_u32(&self, offset: usize, value: u32) {
        if let Some(slot) = self.slot::<AtomicU32>(offset) {
            slot.store(value, Ordering::Relaxed);
        }
    }

    /// Stores a double word; as [`Mapping::write_u32`].
    pub fn write_u64(&self, offset: usize, value: u64) {
        if let Some(slot) = self.slot::<AtomicU64>(offset) {
            slot.store(value, Ordering::Relaxed);
        }
    }

    /// Loads a word; 0 outside the mapping or misaligned.
    #[must_use]
    pub fn read_u32(&self, offset: usize) -> u32 {
        self.slot::<AtomicU32>(offset)
            .map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// Loads a double word; 0 outside the mapping or misaligned.
    #[must_use]
    pub fn read_u64(&self, offset: usize) -> u64 {
        self.slot::<AtomicU64>(offset)
            .map_or(0, |slot| slot.load(Ordering::Relaxed))
    }

    /// Copies `bytes` in at `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let target = Cells::of(self.bytes(offset, bytes.len())?);
        let (head, rest) = bytes.split_at(target.head.len());
        let (words, tail) = rest.as_chunks();
        for (cell, byte) in target.head.iter().zip(head) {
            cell.store(*byte, Ordering::Relaxed);
        }
        // By fours and with no iterator: unoptimised builds copy twice as fast.
        let (cells, last_cells) = target.cells.as_chunks();
        let (words, last_words) = words.as_chunks();
        let count = cells.len().min(words.len());
        let mut i = 0;
        while i < count {
            let ([a, b, c, d], [e, f, g, h]) = (&cells[i], &words[i]);
            a.store(u64::from_ne_bytes(*e), Ordering::Relaxed);
            b.store(u64::from_ne_bytes(*f), Ordering::Relaxed);
            c.store(u64::from_ne_bytes(*g), Ordering::Relaxed);
            d.store(u64::from_ne_bytes(*h), Ordering::Relaxed);
            i += 1;
        }
        for (cell, word) in last_cells.iter().zip(last_words) {
            cell.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        for (cell, byte) in target.tail.iter().zip(tail) {
            cell.store(*byte, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies out from `offset` until `bytes` is full.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let source = Cells::of(self.bytes(offset, bytes.len())?);
        let (head, rest) = bytes.split_at_mut(source.head.len());
        let (words, tail) = rest.as_chunks_mut();
        for (byte, cell) in head.iter_mut().zip(source.head) {
            *byte = cell.load(Ordering::Relaxed);
        }
        let (cells, last_cells) = source.cells.as_chunks();
        let (words, last_words) = words.as_chunks_mut();
        let count = cells.len().min(words.len());
        let mut i = 0;
        while i < count {
            let ([a, b, c, d], [e, f, g, h]) = (&cells[i], &mut words[i]);
            *e = a.load(Ordering::Relaxed).to_ne_bytes();
            *f = b.load(Ordering::Relaxed).to_ne_bytes();
            *g = c.load(Ordering::Relaxed).to_ne_bytes();
            *h = d.load(Ordering::Relaxed).to_ne_bytes();
            i += 1;
        }
        for (word, cell) in last_words.iter_mut().zip(last_cells) {
            *word = cell.load(Ordering::Relaxed).to_ne_bytes();
        }
        for (byte, cell) in tail.iter_mut().zip(source.tail) {
            *byte = cell.load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sets `length` bytes at `offset` to `value`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn fill(&self, offset: usize, length: usize, value: u8) -> Result<(), Error> {
        let target = Cells::of(self.bytes(offset, length)?);
        for cell in target.head.iter().chain(target.tail) {
            cell.store(value, Ordering::Relaxed);
        }
        for cell in target.cells {
            cell.store(u64::from_ne_bytes([value; 8]), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The bytes of a range, which others may change at any time.
    fn bytes(&self, offset: usize, length: usize) -> Result<&[AtomicU8], Error> {
        self.check(offset, length)?;
        let first = self.base.as_ptr().wrapping_add(offset).cast();
        // SAFETY: the range lies inside the mapping (checked above), which is readable and writable and stays while
        // `self` does; an `AtomicU8` lies in memory as a byte does, and what others store breaks no reference to it.
        Ok(unsafe { std::slice::from_raw_parts(first, length) })
    }
}

/// An atomic integer of at most 8 bytes, for which any bytes will do.
trait Word {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}

/// Bytes as the whole cells that they hold, of the size that the copies go by, and what lies before and after.
struct Cells<'a> {
    head: &'a [AtomicU8],
    cells: &'a [AtomicU64],
    tail: &'a [AtomicU8],
}

impl<'a> Cells<'a> {
    fn of(bytes: &'a [AtomicU8]) -> Self {
        // SAFETY: eight atomic bytes that are aligned for it lie in memory as an atomic word does.
        let (head, cells, tail) = unsafe { bytes.align_to() };
        Self { head, cells, tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Page;

    #[test]
    fn every_alignment_and_length_is_copied_and_nothing_beside_it() {
        let lender = Arc::new(Lender::of_pages(Page::zeroed(1)));
        let mapping = Mapping::lent(&lender);
        let all = |mapping: &Mapping| {
            let mut bytes = [0; 96];
            mapping.read(0, &mut bytes).unwrap();
            bytes
        };
        for offset in 0..24 {
            for length in 0..48 {
                let bytes: Vec<u8> = (0..length).map(|i| (i * 5 + offset) as u8 | 1).collect();
                mapping.fill(0, 96, 0xa0).unwrap();
                mapping.write(offset, &bytes).unwrap();
                let mut expected = [0xa0; 96];
                expected[offset..offset + length].copy_from_slice(&bytes);
                assert_eq!(all(&mapping), expected);
                let mut back = vec![0; length];
                mapping.read(offset, &mut back).unwrap();
                assert_eq!(back, bytes);
                mapping.fill(offset, length, 0x3c).unwrap();
                expected[offset..offset + length].fill(0x3c);
                assert_eq!(all(&mapping), expected);
            }
        }
        for (offset, length) in [(4096, 1), (4090, 7), (usize::MAX, 1), (0, 4097)] {
            let outside = mapping.write(offset, &vec![0; length]);
            assert!(matches!(outside, Err(Error::OutOfBounds { .. })));
            let outside = mapping.read(offset, &mut vec![0; length]);
            assert!(matches!(outside, Err(Error::OutOfBounds { .. })));
            let outside = mapping.fill(offset, length, 0);
            assert!(matches!(outside, Err(Error::OutOfBounds { .. })));
        }
        mapping.write(4096, &[]).unwrap();
    }

    #[test]
    fn a_part_is_inside_and_keeps_the_whole() {
        let lender = Arc::new(Lender::of_pages(Page::zeroed(1)));
        let whole = Arc::new(Mapping::lent(&lender));
        let part = Mapping::part(&whole, 512, 64).unwrap();
        part.write(8, &[7; 8]).unwrap();
        assert_eq!(whole.read_u64(520), 0x0707_0707_0707_0707);
        assert!(part.fill(60, 5, 0).is_err());
        for (offset, length) in [(4090, 8), (4096, 8), (4, 8), (u64::MAX - 7, 16)] {
            assert!(Mapping::part(&whole, offset, length).is_none(), "{offset}");
        }
        drop(whole);
        assert_eq!(part.read_u32(8), 0x0707_0707);
        assert_eq!(Arc::strong_count(&lender), 2);
        drop(part);
        assert_eq!(Arc::strong_count(&lender), 1);
    }
}
