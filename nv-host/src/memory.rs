//! Memory that the GPU can reach: allocations, and typed buffers over them.

mod allocation;
mod blocks;
mod pinned;
mod pool;
mod regions;
mod registered;
mod retired;
mod slice;

use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

use nv_proto::unit::GpuVa;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::args::{Arg, Hold};
use crate::context::Context;
use crate::{Error, Mapping};

pub(crate) use allocation::Allocation;
pub use pinned::PinnedBuffer;
pub(crate) use pinned::Uses;
pub(crate) use pool::Pool;
pub(crate) use regions::Regions;
pub use regions::{Neighbours, Region, Use};
pub(crate) use registered::Lender;
pub use registered::{NotRegistered, Page};
pub(crate) use retired::RetireList;
pub(crate) use slice::sealed;
pub use slice::{DeviceSlice, Place};

/// Where memory lies and who can reach it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Placement {
    /// GPU memory that the CPU cannot reach.
    Device,
    /// GPU memory that the CPU reaches through the write-combined BAR: fast to write in order, slow to read.
    HostVisible,
    /// Host memory that is pinned, cached and snooped: the GPU reaches it over the bus.
    Pinned,
}

/// A value that may lie in GPU memory: any bytes make one, and it has no padding and no references.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Element for T {}

/// `len` values of `T` in memory that the GPU reaches.
///
/// Work that was submitted keeps running when a buffer is dropped: the memory is freed once all work that was
/// submitted before the drop has ended.
///
/// Buffers of up to half a slab (1 MiB of GPU memory, 256 KiB of host memory) are cut from memory that is mapped
/// already, at multiples of 512 bytes: making and dropping them makes no call to the driver, and a kernel that runs
/// past the end of one may meet its neighbour rather than a fault.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    context: Context,
    /// `Some` until dropped.
    allocation: Option<Arc<Allocation>>,
    placement: Placement,
    va: GpuVa,
    len: usize,
    _values: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn new(context: &Context, len: usize, placement: Placement) -> Result<Self, Error> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| {
            Error::InvalidArgument(format!("{len} values of {} bytes overflow", size_of::<T>()))
        })?;
        if bytes == 0 {
            return Err(Error::InvalidArgument(
                "a buffer holds at least one byte".into(),
            ));
        }
        let allocation = context.allocate(bytes as u64, placement, Use::Buffer)?;
        Ok(Self::of(context, allocation, placement, len))
    }

    /// `len` values that lie in `allocation`.
    pub(super) fn of(
        context: &Context,
        allocation: Allocation,
        placement: Placement,
        len: usize,
    ) -> Self {
        Self {
            context: context.clone(),
            placement,
            va: allocation.va(),
            allocation: Some(Arc::new(allocation)),
            len,
            _values: PhantomData,
        }
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none, which no buffer does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Its first address on the GPU.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        self.va
    }

    /// Where it lies.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A part of the buffer.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range that is not inside.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let buffer = device.upload(&[1, 2, 3, 4, 5])?;
    /// let middle = buffer.slice(1..4)?;
    /// middle.write(&[0, 0])?;
    /// assert_eq!(buffer.read()?, [1, 0, 0, 4, 5]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>, Error> {
        self.whole().slice(range)
    }

    /// All of it, as a slice.
    pub(crate) fn whole(&self) -> DeviceSlice<'_, T> {
        DeviceSlice {
            context: &self.context,
            placement: self.placement,
            va: self.va,
            len: self.len,
            mapping: self.mapping().map(|mapping| (mapping, 0)),
            allocation: self.allocation.as_ref(),
            uses: None,
            _values: PhantomData,
        }
    }

    /// Copies `values` into the buffer from its start, once all work submitted before on the context's own stream has
    /// ended, and waits until they are there. Work on other streams is waited for with its
    /// [`Event`](crate::Event)s.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when there are more values than the buffer holds; whatever the copy meets.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.whole().write(values)
    }

    /// Copies `values.len()` values out of the buffer from its start, once all work submitted before has ended
    /// on the context's own stream.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when more values are asked for than the buffer holds; whatever the copy meets.
    pub fn read_into(&self, values: &mut [T]) -> Result<(), Error> {
        self.whole().read_into(values)
    }

    /// All values, as [`Buffer::read_into`].
    ///
    /// # Errors
    /// Whatever the copy meets.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        self.whole().read()
    }

    /// The CPU's view, for host-visible and pinned buffers.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping> {
        self.allocation
            .as_deref()
            .and_then(|allocation| allocation.mapping().ok())
    }

    /// The memory behind it.
    pub(crate) fn memory(&self) -> Result<&Arc<Allocation>, Error> {
        let gone = || Error::InvalidArgument("a buffer that is being dropped".into());
        self.allocation.as_ref().ok_or_else(gone)
    }

    /// Frees the memory now: all work that may use it has ended.
    pub(super) fn end(mut self) -> Result<(), Error> {
        // What shares it frees it.
        let shared = || Error::InvalidArgument("the buffer's memory is still used".into());
        let allocation = self.allocation.take().ok_or_else(shared)?;
        match Arc::try_unwrap(allocation) {
            Ok(allocation) => {
                drop(allocation);
                Ok(())
            }
            Err(allocation) => {
                self.allocation = Some(allocation);
                Err(shared())
            }
        }
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.context.retire(allocation);
        }
    }
}

impl<T: Element> Arg for Buffer<T> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        self.va.with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        Some(&self.context)
    }

    fn hold(&self) -> Option<Hold> {
        let allocation = self.allocation.as_ref()?;
        Some(Hold::new(&self.context, Arc::clone(allocation)))
    }
}

impl<T: Element> sealed::Sealed for Buffer<T> {
    fn keep(&self) -> Option<Hold> {
        self.hold()
    }

    fn in_gpu_memory(&self) -> bool {
        self.placement != Placement::Pinned
    }
}

impl<T: Element> Place for Buffer<T> {
    type Element = T;

    fn context(&self) -> &Context {
        &self.context
    }

    fn va(&self) -> GpuVa {
        self.va
    }

    fn len(&self) -> usize {
        self.len
    }
}
