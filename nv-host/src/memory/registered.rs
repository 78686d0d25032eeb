//! The program's own pages, lent to the GPU.
#![allow(
    unsafe_code,
    reason = "lends memory to the driver, and answers for its staying there"
)]

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::allocation::Whole;
use super::{Allocation, Buffer, Element, PinnedBuffer, Placement, Use};
use crate::Error;
use crate::context::Context;
use crate::object::RmObject;

/// A page of memory: what [`Context::register`] takes, since the GPU is given whole pages.
///
/// # Examples
/// ```
/// use nv_host::Page;
///
/// let mut pages = Page::zeroed(2);
/// Page::values_mut::<f32>(&mut pages).fill(1.5);
/// assert_eq!(Page::values::<f32>(&pages), [1.5; 2048]);
/// ```
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; Page::BYTES]);

impl Page {
    /// Its size in bytes.
    pub const BYTES: usize = 4096;

    /// `count` pages of zeroes.
    #[must_use]
    pub fn zeroed(count: usize) -> Vec<Self> {
        vec![Self([0; Self::BYTES]); count]
    }

    /// As many values as pages hold.
    #[must_use]
    pub fn values<T: Element>(pages: &[Self]) -> &[T] {
        let bytes = pages.as_bytes();
        let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
        // It fits, and a page is aligned for every `Element` of at most its size.
        <[T]>::ref_from_prefix_with_elems(bytes, count).map_or(&[], |(values, _)| values)
    }

    /// As many values as pages hold, to be changed.
    #[must_use]
    pub fn values_mut<T: Element>(pages: &mut [Self]) -> &mut [T] {
        let bytes = pages.as_mut_bytes();
        let count = bytes.len().checked_div(size_of::<T>()).unwrap_or(0);
        <[T]>::mut_from_prefix_with_elems(bytes, count).map_or(&mut [], |(values, _)| values)
    }
}

/// Pages that could not be registered, and why. It turns into the [`Error`] where only that matters.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotRegistered {
    /// What went wrong.
    #[source]
    pub error: Error,
    /// The pages as they were.
    pub pages: Vec<Page>,
}

impl From<NotRegistered> for Error {
    fn from(refused: NotRegistered) -> Self {
        refused.error
    }
}

/// Who lent memory to the GPU, and keeps it where it is until it is taken back.
#[derive(Debug)]
pub(crate) struct Lender {
    base: NonNull<u8>,
    length: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// The buffer of a `Vec<Page>` of that length and capacity, which begins at the base.
    Pages { length: usize, capacity: usize },
    /// Whatever else keeps the memory.
    Other(#[allow(dead_code, reason = "held to be dropped")] Box<dyn Any + Send + Sync>),
}

// SAFETY: the memory is reached through the base alone, by whoever owns the lender; pages are plain bytes, and any
// other owner is `Send`.
unsafe impl Send for Lender {}
// SAFETY: a shared `Lender` only tells where the memory is.
unsafe impl Sync for Lender {}

impl Lender {
    /// A vector of pages.
    pub(crate) fn of_pages(pages: Vec<Page>) -> Self {
        let mut pages = ManuallyDrop::new(pages);
        let (length, capacity) = (pages.len(), pages.capacity());
        // A vector's pointer is never null.
        let base = NonNull::new(pages.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self {
            base: base.cast(),
            length: length * Page::BYTES,
            owner: Owner::Pages { length, capacity },
        }
    }

    /// The first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The pages, from the last who refers to their lender.
    pub(super) fn take_back(lender: Arc<Self>) -> Result<Vec<Page>, Error> {
        let lender = Arc::try_unwrap(lender)
            .map_err(|_| Error::InvalidArgument("the pages are still lent".into()))?;
        let pages = lender.pages();
        let _taken = ManuallyDrop::new(lender);
        pages.ok_or_else(|| Error::InvalidArgument("the memory was not lent as pages".into()))
    }

    /// The vector that was lent; its lender must be forgotten.
    fn pages(&self) -> Option<Vec<Page>> {
        let Owner::Pages { length, capacity } = self.owner else {
            return None;
        };
        // SAFETY: base, length and capacity are those of a vector that was not dropped (`of_pages`), whose bytes are
        // initialised whatever the GPU wrote; this is called once, by `drop` or by `take_back`, which forgets `self`.
        Some(unsafe { Vec::from_raw_parts(self.base.cast().as_ptr(), length, capacity) })
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        drop(self.pages());
    }
}

impl Context {
    /// Lends pages of the program's own to the GPU, with no copy, as values of `T`; as many as fit.
    ///
    /// [`PinnedBuffer::into_pages`] takes them back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no pages, and where the system's pages are larger than a [`Page`] and these are
    /// not whole ones; whatever the driver refuses. The pages come back with the error.
    ///
    /// # Examples
    /// ```
    /// use nv_host::{Device, Page};
    ///
    /// let device = Device::open_best()?;
    /// let mut pages = Page::zeroed(4);
    /// Page::values_mut::<u32>(&mut pages).fill(3);
    /// let lent = device.register::<u32>(pages)?;
    /// let stream = device.stream()?;
    /// stream.fill(&lent.slice(..10)?, 5)?;
    /// let pages = lent.into_pages()?;
    /// assert_eq!(Page::values::<u32>(&pages)[8..12], [5, 5, 3, 3]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn register<T: Element>(&self, pages: Vec<Page>) -> Result<PinnedBuffer<T>, NotRegistered> {
        let lender = Arc::new(Lender::of_pages(pages));
        // SAFETY: the lender keeps the vector's memory in place until its last reference goes, of which the
        // allocation holds one until the driver has let the memory go; nothing refers to the pages meanwhile.
        let lent = unsafe { self.lend(&lender) };
        lent.map_err(|error| match Lender::take_back(lender) {
            Ok(pages) => NotRegistered { error, pages },
            // Whoever still refers to it frees it.
            Err(_) => NotRegistered {
                error,
                pages: Vec::new(),
            },
        })
    }

    /// Lends any pages of the process to the GPU, such as those of a mapped file; `owner` is dropped once the GPU is
    /// done with them. That may be in any call of this context, by any thread: its `Drop` must not use the context, which
    /// may be locked.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for memory that is not whole pages of the system; whatever the driver refuses.
    ///
    /// # Safety
    /// The `length` bytes at `base` are readable and writable memory that stays where it is until `owner` is dropped,
    /// also when `owner` is moved; and nothing refers to them as Rust values until then, since kernels may write them
    /// at any moment.
    pub unsafe fn register_raw<T: Element>(
        &self,
        owner: impl Send + Sync + 'static,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<PinnedBuffer<T>, Error> {
        let lender = Arc::new(Lender {
            base,
            length,
            owner: Owner::Other(Box::new(owner)),
        });
        // SAFETY: the lender holds the owner until its last reference goes, of which the allocation holds one until
        // the driver has let the memory go; the rest is the caller's promise.
        unsafe { self.lend(&lender) }
    }

    /// # Safety
    /// The lender's memory stays mapped while the lender lives, and nothing refers to it as Rust values.
    unsafe fn lend<T: Element>(&self, lender: &Arc<Lender>) -> Result<PinnedBuffer<T>, Error> {
        let (base, length) = (lender.base().addr().get(), lender.length());
        let page = page_bytes();
        if length == 0 || !base.is_multiple_of(page) || !length.is_multiple_of(page) {
            return Err(Error::InvalidArgument(format!(
                "{length} bytes at {base:#x} are not whole pages of {page} bytes: the GPU is given whole pages"
            )));
        }
        let len = length.checked_div(size_of::<T>()).unwrap_or(0);
        if len == 0 {
            return Err(Error::InvalidArgument(format!(
                "{length} bytes hold no value of {} bytes",
                size_of::<T>()
            )));
        }
        let (objects, space) = (self.inner().objects(), self.inner().space());
        let driver = &objects.driver;
        // SAFETY: by the caller's promise the pages stay mapped while the lender lives, and what the GPU writes there
        // breaks no reference; `Whole` holds a reference of the lender until the driver has freed the object.
        let handle =
            unsafe { driver.register_pages(objects.device, lender.base(), lender.length()) }?;
        let memory = RmObject::adopt(driver, objects.device, handle);
        let whole = Whole::lent(space, memory, Arc::clone(lender))?;
        let allocation = Allocation::of_whole(space, length as u64, Use::Buffer, whole);
        let buffer = Buffer::of(self, allocation, Placement::Pinned, len);
        Ok(PinnedBuffer::of(buffer, Some(Arc::clone(lender))))
    }
}

/// Bytes of a page of the system.
fn page_bytes() -> usize {
    use nix::unistd::{SysconfVar, sysconf};
    let asked = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    asked
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| bytes.is_power_of_two())
        .unwrap_or(Page::BYTES)
        .max(Page::BYTES)
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use nv_sim::Chip;

    use super::*;
    use crate::device::{Backend, Device, Options};
    use crate::space::MapMode;

    #[allow(clippy::unwrap_used, reason = "test code")]
    fn device(map_mode: MapMode) -> Device {
        let options = Options {
            backend: Backend::Sim(Chip::Gh100),
            map_mode: Some(map_mode),
            ..Options::default()
        };
        Device::open(&options).unwrap()
    }

    /// Says when it is dropped, and keeps the memory that it is dropped with.
    struct Kept(Arc<AtomicBool>, #[allow(dead_code)] *mut Page);

    // SAFETY: nothing but `drop` uses the pointer.
    unsafe impl Send for Kept {}
    // SAFETY: as for `Send`.
    unsafe impl Sync for Kept {}

    impl Drop for Kept {
        fn drop(&mut self) {
            // SAFETY: from `Box::into_raw`, and dropped here alone.
            drop(unsafe { Box::from_raw(self.1) });
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_owner_goes_when_the_work_has_ended() {
        for mode in [MapMode::Rm, MapMode::Uvm] {
            let device = device(mode);
            let stream = device.stream().unwrap();
            let dropped = Arc::new(AtomicBool::new(false));
            let page = Box::into_raw(Box::new(Page([7; Page::BYTES])));
            let kept = Kept(Arc::clone(&dropped), page);
            let base = NonNull::new(page.cast::<u8>()).unwrap();
            // SAFETY: a page that `Kept` drops and nothing else refers to.
            let lent = unsafe { device.register_raw::<u64>(kept, base, Page::BYTES) }.unwrap();
            assert_eq!(lent.len(), 512);
            assert_eq!(lent.read().unwrap(), [0x0707_0707_0707_0707; 512]);
            // Work that outlasts the buffer by far.
            let long = device.alloc::<u32>(16 << 20).unwrap();
            for round in 0..8 {
                stream.fill(&long, round).unwrap();
            }
            stream
                .copy(&long.slice(..2).unwrap(), &Halves(&lent))
                .unwrap();
            let end = stream.event();
            drop(lent);
            while !end.is_reached() {
                // It may have been reached since.
                assert!(!dropped.load(Ordering::SeqCst) || end.is_reached());
            }
            device.synchronize().unwrap();
            assert!(dropped.load(Ordering::SeqCst), "{mode:?}");
            let arrived = long.slice(..2).unwrap().read().unwrap();
            assert_eq!(arrived, [0x0707_0707; 2]);
        }
    }

    /// The first value of another buffer as two.
    struct Halves<'a>(&'a PinnedBuffer<u64>);

    impl super::super::sealed::Sealed for Halves<'_> {
        fn keep(&self) -> Option<crate::Hold> {
            None
        }
    }

    impl super::super::Place for Halves<'_> {
        type Element = u32;

        fn context(&self) -> &Context {
            self.0.context()
        }

        fn va(&self) -> nv_proto::unit::GpuVa {
            self.0.va()
        }

        fn len(&self) -> usize {
            2
        }
    }

    #[test]
    fn what_is_not_whole_pages_is_refused_and_its_owner_dropped() {
        let device = device(MapMode::Rm);
        for (offset, length) in [(8, 4096), (0, 4095), (0, 0), (1, 1)] {
            let dropped = Arc::new(AtomicBool::new(false));
            let pages = Box::into_raw(Box::new(Page([0; Page::BYTES])));
            let kept = Kept(Arc::clone(&dropped), pages);
            let base = NonNull::new(pages.cast::<u8>().wrapping_add(offset)).unwrap();
            // SAFETY: refused before anything looks at the memory.
            let refused = unsafe { device.register_raw::<u8>(kept, base, length) };
            let refused = refused.unwrap_err();
            assert!(refused.to_string().contains("whole pages"), "{refused}");
            assert!(dropped.load(Ordering::SeqCst));
        }
    }
}
