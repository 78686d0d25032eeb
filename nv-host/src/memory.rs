//! Memory that the GPU can reach: allocations, and typed buffers over them.

use std::marker::PhantomData;
use std::sync::Arc;

use nv_proto::unit::GpuVa;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::args::Arg;
use crate::context::Context;
use crate::object::RmObject;
use crate::space::AddressSpace;
use crate::{Error, Mapping, calls};

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

/// One allocation, mapped for the GPU and, by placement, for the CPU. Dropping it frees it at once: who may
/// still have work in flight on it hands it to the device, which waits.
#[derive(Debug)]
pub(crate) struct Allocation {
    space: Arc<AddressSpace>,
    va: GpuVa,
    bytes: u64,
    host: bool,
    /// Ends before the memory object does.
    mapping: Option<Mapping>,
    memory: RmObject,
}

impl Allocation {
    /// Allocates and maps `bytes`, rounded up to whole pages.
    pub(crate) fn new(
        objects: &calls::Objects,
        space: &Arc<AddressSpace>,
        bytes: u64,
        placement: Placement,
    ) -> Result<Self, Error> {
        let (memory, bytes) = calls::memory(objects, bytes, placement)?;
        let mapping = match placement {
            Placement::Device => None,
            _ => Some(calls::map_memory(
                objects,
                memory.handle(),
                bytes,
                placement,
            )?),
        };
        let va = space.map(memory.handle(), bytes)?;
        Ok(Self {
            space: Arc::clone(space),
            va,
            bytes,
            host: placement == Placement::Pinned,
            mapping,
            memory,
        })
    }

    /// Its first address.
    pub(crate) fn va(&self) -> GpuVa {
        self.va
    }

    /// The space that it is mapped in.
    pub(crate) fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// Bytes of the memory object.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it is host memory.
    pub(crate) fn is_host(&self) -> bool {
        self.host
    }

    /// The memory object.
    pub(crate) fn handle(&self) -> nv_proto::unit::Handle {
        self.memory.handle()
    }

    /// The CPU's view.
    pub(crate) fn mapping(&self) -> Result<&Mapping, Error> {
        self.mapping.as_ref().ok_or_else(|| {
            Error::Unsupported(
                "this memory has no CPU mapping; allocate it as host-visible or pinned".into(),
            )
        })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.space.unmap(self.memory.handle(), self.va, self.bytes);
    }
}

/// A value that may lie in GPU memory: any bytes make one, and it has no padding and no references.
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Element for T {}

/// `len` values of `T` in memory that the GPU reaches.
///
/// Work that was submitted keeps running when a buffer is dropped: the memory is freed once all work that was
/// submitted before the drop has ended.
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
        let allocation = Arc::new(context.allocate(bytes as u64, placement)?);
        let va = allocation.va();
        Ok(Self {
            context: context.clone(),
            allocation: Some(allocation),
            placement,
            va,
            len,
            _values: PhantomData,
        })
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

    /// Copies `values` into the buffer from its start and waits until they are there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when there are more values than the buffer holds; whatever the copy meets.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.check(values.len())?;
        match self.mapping() {
            Some(mapping) => mapping.write(0, values.as_bytes()),
            None => self.context.upload_bytes(self.va, values.as_bytes()),
        }
    }

    /// Copies `values.len()` values out of the buffer from its start, once all work submitted before has ended
    /// on the context's own stream.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when more values are asked for than the buffer holds; whatever the copy meets.
    pub fn read_into(&self, values: &mut [T]) -> Result<(), Error> {
        self.check(values.len())?;
        match self.mapping() {
            Some(mapping) if self.placement == Placement::Pinned => {
                self.context.inner().synchronize_default()?;
                mapping.read(0, values.as_mut_bytes())
            }
            _ => self.context.download_bytes(self.va, values.as_mut_bytes()),
        }
    }

    /// All values, as [`Buffer::read_into`].
    ///
    /// # Errors
    /// Whatever the copy meets.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::new_zeroed(); self.len];
        self.read_into(&mut values)?;
        Ok(values)
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

    fn check(&self, values: usize) -> Result<(), Error> {
        if values > self.len {
            return Err(Error::InvalidArgument(format!(
                "{values} values do not fit a buffer of {}",
                self.len
            )));
        }
        Ok(())
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
}
