//! Memory that the GPU sees too: reached by volatile access and copies, never by reference.
#![allow(unsafe_code, reason = "the only file that touches GPU-visible memory")]

use std::ptr::NonNull;
use std::sync::Arc;

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

// SAFETY: a mapping owns its pages, and every access through it is a volatile access or a copy to which no
// Rust reference exists, so moving it to another thread is sound.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`: shared access makes no references; racing accesses are those that racing with the
// device already are.
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

    /// The place of an aligned `T` at `offset`; `None` outside the mapping or where it is not aligned.
    fn slot<T>(&self, offset: usize) -> Option<*mut T> {
        let inside = self.check(offset, size_of::<T>()).is_ok();
        let aligned = offset.is_multiple_of(align_of::<T>());
        // The base is page or cell aligned, so an aligned offset is an aligned address.
        (inside && aligned).then(|| self.base.as_ptr().wrapping_add(offset).cast())
    }

    /// Stores a word. A store outside the mapping, or misaligned, is dropped: callers check at set-up.
    pub fn write_u32(&self, offset: usize, value: u32) {
        debug_assert!(
            self.slot::<u32>(offset).is_some(),
            "u32 store at {offset:#x}"
        );
        if let Some(slot) = self.slot::<u32>(offset) {
            // SAFETY: `slot` checked that it lies inside the mapping that `self` owns, and is aligned.
            unsafe { slot.write_volatile(value) }
        }
    }

    /// Stores a double word; as [`Mapping::write_u32`].
    pub fn write_u64(&self, offset: usize, value: u64) {
        debug_assert!(
            self.slot::<u64>(offset).is_some(),
            "u64 store at {offset:#x}"
        );
        if let Some(slot) = self.slot::<u64>(offset) {
            // SAFETY: `slot` checked that it lies inside the mapping that `self` owns, and is aligned.
            unsafe { slot.write_volatile(value) }
        }
    }

    /// Loads a word; 0 outside the mapping or misaligned.
    #[must_use]
    pub fn read_u32(&self, offset: usize) -> u32 {
        debug_assert!(
            self.slot::<u32>(offset).is_some(),
            "u32 load at {offset:#x}"
        );
        match self.slot::<u32>(offset) {
            // SAFETY: `slot` checked that it lies inside the mapping that `self` owns, and is aligned.
            Some(slot) => unsafe { slot.read_volatile() },
            None => 0,
        }
    }

    /// Loads a double word; 0 outside the mapping or misaligned.
    #[must_use]
    pub fn read_u64(&self, offset: usize) -> u64 {
        debug_assert!(
            self.slot::<u64>(offset).is_some(),
            "u64 load at {offset:#x}"
        );
        match self.slot::<u64>(offset) {
            // SAFETY: `slot` checked that it lies inside the mapping that `self` owns, and is aligned.
            Some(slot) => unsafe { slot.read_volatile() },
            None => 0,
        }
    }

    /// Copies `bytes` in at `offset`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check(offset, bytes.len())?;
        let target = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: both ranges are `bytes.len()` long and valid (checked above); no reference to the mapping
        // exists, so they do not overlap as far as Rust can see.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) }
        Ok(())
    }

    /// Copies out from `offset` until `bytes` is full.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(offset, bytes.len())?;
        let source = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: both ranges are `bytes.len()` long and valid (checked above); no reference to the mapping
        // exists, so they do not overlap as far as Rust can see.
        unsafe { std::ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) }
        Ok(())
    }

    /// Sets `length` bytes at `offset` to `value`.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`].
    pub fn fill(&self, offset: usize, length: usize, value: u8) -> Result<(), Error> {
        self.check(offset, length)?;
        let target = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: the range lies inside the mapping (checked above).
        unsafe { std::ptr::write_bytes(target, value, length) }
        Ok(())
    }
}
