//! Host memory that the GPU reaches: pinned buffers, and what uses them.

use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nv_proto::unit::GpuVa;

use super::registered::{Lender, Page};
use super::slice::{Place, sealed};
use super::{Buffer, DeviceSlice, Element, Placement};
use crate::args::{Arg, Hold};
use crate::context::{Context, lock};
use crate::stream::{Event, Submitted};
use crate::{Error, Mapping};

/// `len` values of `T` in host memory that the GPU reaches over the bus, and the CPU at any time: copies from and to it
/// go at the full speed of the bus, and run while the CPU does other things.
///
/// The CPU copies values in and out and never borrows them, since the GPU may write them at any moment. Each of these
/// accesses first waits for what was submitted before and is known to use the buffer: the copies and fills that named
/// it, and, once it has been an argument of a launch or part of a graph, all work of the context. A kernel that was given the bare
/// address is waited for by its own [`Event`](crate::Event). [`PinnedBuffer::mapping`] reaches the memory without any
/// wait.
///
/// # Examples
/// ```
/// let device = nv_host::Device::open_best()?;
/// let stream = device.stream()?;
/// let (on_gpu, pinned) = (device.alloc::<u32>(1000)?, device.alloc_pinned::<u32>(1000)?);
/// stream.fill(&on_gpu, 7)?;
/// stream.copy(&pinned, &on_gpu)?;
/// // Waits for the copy.
/// assert_eq!(pinned.read()?, [7; 1000]);
/// # Ok::<(), nv_host::Error>(())
/// ```
#[derive(Debug)]
pub struct PinnedBuffer<T: Element> {
    buffer: Buffer<T>,
    uses: Uses,
    /// Who lent the memory, where it is the program's own.
    lender: Option<Arc<Lender>>,
}

impl<T: Element> PinnedBuffer<T> {
    pub(crate) fn new(context: &Context, len: usize) -> Result<Self, Error> {
        Ok(Self::of(
            Buffer::new(context, len, Placement::Pinned)?,
            None,
        ))
    }

    pub(super) fn of(buffer: Buffer<T>, lender: Option<Arc<Lender>>) -> Self {
        Self {
            buffer,
            uses: Uses::default(),
            lender,
        }
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it holds none, which no buffer does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Its first address on the GPU.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        self.buffer.va()
    }

    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.buffer.context()
    }

    /// A part of it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range that is not inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
        self.whole().slice(range)
    }

    /// Copies `values` in from the start on, once what uses the buffer has ended.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when there are more values than it holds; [`Error::Timeout`] or [`Error::Fault`] of
    /// what uses it.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.whole().write(values)
    }

    /// Copies values out from the start until `values` is full, once what uses the buffer has ended.
    ///
    /// # Errors
    /// As [`PinnedBuffer::write`].
    pub fn read_into(&self, values: &mut [T]) -> Result<(), Error> {
        self.whole().read_into(values)
    }

    /// All values, as [`PinnedBuffer::read_into`].
    ///
    /// # Errors
    /// As [`PinnedBuffer::write`].
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.whole().read()
    }

    /// The value at `index`, once what uses the buffer has ended.
    ///
    /// # Errors
    /// As [`PinnedBuffer::write`], and for an index that is not inside.
    pub fn get(&self, index: usize) -> Result<T, Error> {
        let mut value = [T::new_zeroed()];
        self.slice(index..)?.read_into(&mut value)?;
        let [value] = value;
        Ok(value)
    }

    /// Stores the value at `index`, once what uses the buffer has ended.
    ///
    /// # Errors
    /// As [`PinnedBuffer::get`].
    pub fn set(&self, index: usize, value: T) -> Result<(), Error> {
        self.slice(index..)?.write(&[value])
    }

    /// The memory as the CPU sees it now, whatever uses it: for what a running kernel and the CPU tell each other.
    ///
    /// # Errors
    /// None for a buffer that lives.
    pub fn mapping(&self) -> Result<&Mapping, Error> {
        self.buffer
            .mapping()
            .ok_or_else(|| Error::Unsupported("pinned memory has no CPU mapping".into()))
    }

    /// Waits until what was submitted before and is known to use the buffer has ended.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn synchronize(&self) -> Result<(), Error> {
        self.uses.settle(self.context())
    }

    /// Takes registered pages back, once all work of the context has ended: the GPU reaches them no more.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a buffer that [`Context::register`] did not make of pages; [`Error::Timeout`] or
    /// [`Error::Fault`] of the work: the pages are then freed once it has ended.
    pub fn into_pages(self) -> Result<Vec<Page>, Error> {
        let Self {
            buffer,
            uses,
            lender,
        } = self;
        let Some(lender) = lender else {
            return Err(Error::InvalidArgument(
                "the buffer was not made of pages: only Context::register does that".into(),
            ));
        };
        uses.note_launch();
        uses.settle(buffer.context())?;
        buffer.end()?;
        Lender::take_back(lender)
    }

    pub(super) fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice {
            uses: Some(&self.uses),
            ..self.buffer.whole()
        }
    }
}

impl<T: Element> sealed::Sealed for PinnedBuffer<T> {
    fn used(&self, event: &Event) {
        self.uses.note(event);
    }

    fn keep(&self) -> Option<Hold> {
        self.whole().keep()
    }
}

impl<T: Element> Place for PinnedBuffer<T> {
    type Element = T;

    fn context(&self) -> &Context {
        self.buffer.context()
    }

    fn va(&self) -> GpuVa {
        self.buffer.va()
    }

    fn len(&self) -> usize {
        self.buffer.len()
    }
}

impl<T: Element> Arg for PinnedBuffer<T> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        self.uses.note_launch();
        self.va().with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        Some(self.buffer.context())
    }

    fn hold(&self) -> Option<Hold> {
        self.buffer.hold()
    }
}

/// What uses a buffer.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// The newest submission of each stream that names it.
    copies: Mutex<Vec<Submitted>>,
    /// Whether a launch was ever given it: which and when, a launch does not say.
    launched: AtomicBool,
}

impl Uses {
    /// Notes a submission that names the buffer.
    pub(crate) fn note(&self, event: &Event) {
        let (stream, value) = event.parts();
        let mut copies = lock(&self.copies);
        match copies.iter_mut().find(|newest| newest.is_on(stream)) {
            Some(newest) => newest.extend(value),
            None => {
                copies.retain(|newest| !newest.is_over());
                copies.push(Submitted::new(stream, value));
            }
        }
    }

    /// Notes that launches are given the buffer from now on.
    pub(super) fn note_launch(&self) {
        self.launched.store(true, Ordering::Release);
    }

    /// Waits until all that is known to use the buffer has ended.
    pub(super) fn settle(&self, context: &Context) -> Result<(), Error> {
        let copies = lock(&self.copies).clone();
        let inner = context.inner();
        for submitted in copies {
            submitted.wait(inner, inner.limit())?;
        }
        if self.launched.load(Ordering::Acquire) {
            inner.settle()?;
        }
        Ok(())
    }
}
