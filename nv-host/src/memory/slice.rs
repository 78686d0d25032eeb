//! Parts of buffers, and what copies can name.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use nv_proto::unit::GpuVa;
use zerocopy::IntoBytes;

use super::pinned::Uses;
use super::{Allocation, Element, Placement};
use crate::args::{Arg, Hold};
use crate::context::Context;
use crate::stream::Event;
use crate::{Error, Mapping};

/// Memory that copies and fills can name: buffers, their slices and pinned buffers.
pub trait Place: sealed::Sealed {
    /// What it holds.
    type Element: Element;

    /// The context that it belongs to.
    fn context(&self) -> &Context;

    /// Its first address on the GPU.
    fn va(&self) -> GpuVa;

    /// How many values it holds.
    fn len(&self) -> usize;

    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

pub(crate) mod sealed {
    use super::Event;
    use crate::args::Hold;

    /// Only this crate knows what memory stays where it is while copies run.
    pub trait Sealed {
        /// Told of work that names the memory: it ends with the event.
        fn used(&self, _event: &Event) {}

        /// What keeps the memory for a graph, which names it whenever it is replayed.
        fn keep(&self) -> Option<Hold>;

        /// Whether it lies in the memory of the GPU whose context it belongs to.
        fn in_gpu_memory(&self) -> bool {
            false
        }
    }

    impl<P: Sealed + ?Sized> Sealed for &P {
        fn used(&self, event: &Event) {
            (**self).used(event);
        }

        fn keep(&self) -> Option<Hold> {
            (**self).keep()
        }

        fn in_gpu_memory(&self) -> bool {
            (**self).in_gpu_memory()
        }
    }
}

impl<P: Place + ?Sized> Place for &P {
    type Element = P::Element;

    fn context(&self) -> &Context {
        (**self).context()
    }

    fn va(&self) -> GpuVa {
        (**self).va()
    }

    fn len(&self) -> usize {
        (**self).len()
    }
}

/// A part of a buffer: an argument of launches, and source and target of copies.
///
/// It borrows the buffer, and any number of slices may overlap: GPU memory is copied, never borrowed as a Rust value.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSlice<'a, T: Element> {
    pub(super) context: &'a Context,
    pub(super) placement: Placement,
    pub(super) va: GpuVa,
    pub(super) len: usize,
    /// The CPU's view of the whole buffer, and the part's offset there.
    pub(super) mapping: Option<(&'a Mapping, usize)>,
    /// The memory of the whole buffer.
    pub(super) allocation: Option<&'a Arc<Allocation>>,
    /// What uses the memory, where that is noted.
    pub(super) uses: Option<&'a Uses>,
    pub(super) _values: PhantomData<&'a [T]>,
}

impl<'a, T: Element> DeviceSlice<'a, T> {
    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // No overflow: it is a part of memory.
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
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// A part of the part.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range that is not inside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self, Error> {
        let start = match range.start_bound() {
            Bound::Included(start) => Some(*start),
            Bound::Excluded(before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.checked_add(1),
            Bound::Excluded(end) => Some(*end),
            Bound::Unbounded => Some(self.len),
        };
        let inside = start
            .zip(end)
            .filter(|(start, end)| start <= end && *end <= self.len);
        let Some((start, end)) = inside else {
            return Err(Error::InvalidArgument(format!(
                "values {:?} to {:?} are no range of the {} that there are",
                range.start_bound(),
                range.end_bound(),
                self.len
            )));
        };
        let offset = start * size_of::<T>();
        Ok(Self {
            va: GpuVa(self.va.0 + offset as u64),
            len: end - start,
            mapping: self.mapping.map(|(mapping, at)| (mapping, at + offset)),
            ..*self
        })
    }

    /// Copies `values` to the start of the slice, as [`Buffer::write`](super::Buffer::write) does.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when there are more values than the slice holds; whatever the copy meets.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.check(values.len())?;
        match self.mapping {
            Some((mapping, offset)) => {
                self.settle()?;
                mapping.write(offset, values.as_bytes())
            }
            None => self.context.upload_bytes(self.va, values.as_bytes()),
        }
    }

    /// Copies `values.len()` values out from the start of the slice, as
    /// [`Buffer::read_into`](super::Buffer::read_into) does.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when more values are asked for than the slice holds; whatever the copy meets.
    pub fn read_into(&self, values: &mut [T]) -> Result<(), Error> {
        self.check(values.len())?;
        match self.mapping {
            Some((mapping, offset)) if self.placement == Placement::Pinned => {
                self.settle()?;
                mapping.read(offset, values.as_mut_bytes())
            }
            _ => self.context.download_bytes(self.va, values.as_mut_bytes()),
        }
    }

    /// All values, as [`DeviceSlice::read_into`].
    ///
    /// # Errors
    /// Whatever the copy meets.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::new_zeroed(); self.len];
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// What uses the memory, where that is noted.
    pub(crate) fn uses(&self) -> Option<&'a Uses> {
        self.uses
    }

    /// Waits for the work that the CPU's access comes after.
    fn settle(&self) -> Result<(), Error> {
        match self.uses {
            Some(uses) => uses.settle(self.context),
            None => self.context.inner().synchronize_default(),
        }
    }

    fn check(&self, values: usize) -> Result<(), Error> {
        if values > self.len {
            return Err(Error::InvalidArgument(format!(
                "{values} values do not fit memory of {}",
                self.len
            )));
        }
        Ok(())
    }
}

impl<T: Element> sealed::Sealed for DeviceSlice<'_, T> {
    fn used(&self, event: &Event) {
        if let Some(uses) = self.uses {
            uses.note(event);
        }
    }

    fn keep(&self) -> Option<Hold> {
        // When it will be used nobody can say.
        if let Some(uses) = self.uses {
            uses.note_launch();
        }
        self.hold()
    }

    fn in_gpu_memory(&self) -> bool {
        self.placement != Placement::Pinned
    }
}

impl<T: Element> Place for DeviceSlice<'_, T> {
    type Element = T;

    fn context(&self) -> &Context {
        self.context
    }

    fn va(&self) -> GpuVa {
        self.va
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<T: Element> Arg for DeviceSlice<'_, T> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        if let Some(uses) = self.uses {
            uses.note_launch();
        }
        self.va.with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        Some(self.context)
    }

    fn hold(&self) -> Option<Hold> {
        Some(Hold::new(self.context, Arc::clone(self.allocation?)))
    }
}
