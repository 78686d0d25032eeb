//! Copies and fills as programs ask for them.

use std::sync::Arc;

use nv_proto::push::copy::Pitches;
use nv_proto::unit::GpuVa;
use zerocopy::IntoBytes;

use super::copies::{Lines, Pattern};
use super::{Event, Stream};
use crate::Error;
use crate::builtin::{Builtin, LEAST};
use crate::context::Context;
use crate::memory::{Allocation, Element, Place, Placement, Use};

/// Rows of values in two places: a part of a table, whose rows may lie further apart than they are long. All in values.
///
/// The places begin with the first row: a part that begins elsewhere is a slice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rect {
    /// Values of a row.
    pub width: usize,
    /// How many rows.
    pub rows: usize,
    /// From one row of the target to the next.
    pub target_pitch: usize,
    /// From one row of the source to the next.
    pub source_pitch: usize,
}

/// Values on their way from the GPU, for [`Download::wait`] to give.
#[derive(Debug)]
#[must_use = "the values are there once waited for"]
pub struct Download<T: Element> {
    event: Event,
    landing: Landing,
    len: usize,
    _values: std::marker::PhantomData<T>,
}

/// Pinned memory that work in flight may use, also once nobody wants it any more.
#[derive(Debug)]
struct Landing {
    context: Context,
    /// `Some` until dropped.
    memory: Option<Arc<Allocation>>,
}

impl Stream {
    /// Copies all of `source` to the start of `target`, after the work submitted before; it returns once the copy is
    /// submitted. Where the two overlap, what lies there afterwards is not said.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `target` is shorter or one is of another context; what submitting meets.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let stream = device.stream()?;
    /// let (a, b) = (device.upload(&[1, 2, 3, 4])?, device.alloc::<i32>(4)?);
    /// stream.copy(&b.slice(..2)?, &a.slice(2..)?)?;
    /// stream.copy(&b.slice(2..)?, &a.slice(..2)?)?.wait()?;
    /// assert_eq!(b.read()?, [3, 4, 1, 2]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn copy<D, S>(&self, target: &D, source: &S) -> Result<Event, Error>
    where
        D: Place + ?Sized,
        S: Place<Element = D::Element> + ?Sized,
    {
        let bytes = check_copy(&self.context, target, source)?;
        let (to, from) = (target.va(), source.va());
        let within = target.in_gpu_memory() && source.in_gpu_memory();
        let by_kernel = match self.kernels(bytes, within) {
            Some(kernels) => kernels.copy(self, to, from, bytes)?,
            None => None,
        };
        let copied = match by_kernel {
            Some((event, done)) if done == bytes => Ok(event.value),
            rest => {
                let done = rest.map_or(0, |(_, done)| done);
                let (to, from) = (GpuVa(to.0 + done), GpuVa(from.0 + done));
                let context = self.context.inner();
                self.inner.copy(context, to, from, bytes - done)
            }
        };
        self.submitted(copied, |event| {
            target.used(event);
            source.used(event);
        })
    }

    /// Copies rows between places, after the work submitted before; it returns once the copy is submitted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for rows that do not lie inside, or are further apart than 2 GiB; as
    /// [`Stream::copy`].
    ///
    /// # Examples
    /// ```
    /// use nv_host::Rect;
    ///
    /// let device = nv_host::Device::open_best()?;
    /// let stream = device.stream()?;
    /// // The middle column of a table of 3 by 3.
    /// let table = device.upload(&[1, 2, 3, 4, 5, 6, 7, 8, 9])?;
    /// let column = device.alloc::<i32>(3)?;
    /// let rect = Rect { width: 1, rows: 3, target_pitch: 1, source_pitch: 3 };
    /// stream.copy_2d(&column, &table.slice(1..)?, &rect)?.wait()?;
    /// assert_eq!(column.read()?, [2, 5, 8]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn copy_2d<D, S>(&self, target: &D, source: &S, rect: &Rect) -> Result<Event, Error>
    where
        D: Place + ?Sized,
        S: Place<Element = D::Element> + ?Sized,
    {
        self.check(target.context())?;
        self.check(source.context())?;
        let places = [
            ("target", rect.target_pitch, target.len()),
            ("source", rect.source_pitch, source.len()),
        ];
        for (name, pitch, len) in places {
            let end = match rect.rows.checked_sub(1) {
                Some(gaps) => pitch
                    .checked_mul(gaps)
                    .and_then(|last| last.checked_add(rect.width)),
                None => Some(0),
            };
            let apart = rect.rows <= 1 || rect.width <= pitch;
            if !apart || end.is_none_or(|end| end > len) {
                return Err(Error::InvalidArgument(format!(
                    "{} rows of {} values, {pitch} apart, do not lie inside the {name} of {len}",
                    rect.rows, rect.width
                )));
            }
        }
        if rect.rows == 0 || rect.width == 0 {
            return Ok(self.event());
        }
        let size = size_of::<D::Element>();
        let limited = |what: &str, count: usize, size: usize| {
            let bytes = count.checked_mul(size).and_then(|n| u32::try_from(n).ok());
            bytes
                .filter(|bytes| *bytes <= PITCH_LIMIT)
                .ok_or_else(|| {
                    Error::InvalidArgument(format!(
                        "{what} of {count} is more than the {PITCH_LIMIT} (bytes or rows) that one copy takes"
                    ))
                })
        };
        // One row has no next one.
        let pitch = |pitch| if rect.rows == 1 { rect.width } else { pitch };
        let lines = Lines {
            target: target.va(),
            source: source.va(),
            pitches: Pitches {
                src: limited("a source pitch", pitch(rect.source_pitch), size)?,
                dst: limited("a target pitch", pitch(rect.target_pitch), size)?,
            },
            bytes: limited("a width", rect.width, size)?,
            count: limited("a number of rows", rect.rows, 1)?,
        };
        let copied = self.inner.copy_lines(self.context.inner(), lines);
        self.submitted(copied, |event| {
            target.used(event);
            source.used(event);
        })
    }

    /// Sets every value of `target`, after the work submitted before; it returns once the fill is submitted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for values of other than 1, 2, 4 or 8 bytes; as [`Stream::copy`].
    pub fn fill<D>(&self, target: &D, value: D::Element) -> Result<Event, Error>
    where
        D: Place + ?Sized,
    {
        let (pattern, count) = check_fill(&self.context, target, value)?;
        let (to, bytes) = (target.va(), count * pattern.bytes());
        let by_kernel = match (self.kernels(bytes, target.in_gpu_memory()), pattern.word()) {
            (Some(kernels), Some(word)) => kernels.fill(self, to, word, bytes)?,
            _ => None,
        };
        let filled = match by_kernel {
            Some((event, done)) if done == bytes => Ok(event.value),
            rest => {
                let done = rest.map_or(0, |(_, done)| done);
                let count = (bytes - done) / pattern.bytes();
                let to = GpuVa(to.0 + done);
                self.inner.fill(self.context.inner(), to, pattern, count)
            }
        };
        self.submitted(filled, |event| target.used(event))
    }

    /// Copies `values` to the start of `target`, after the work submitted before; it returns once they are in pinned
    /// memory and the copy from there is submitted, so that `values` may change at once.
    ///
    /// What is copied takes as much pinned memory until it has arrived:
    /// [`Buffer::write`](crate::Buffer::write) suits what is large and waited for anyway.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `target` is shorter or of another context; [`Error::OutOfMemory`]; what
    /// submitting meets.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let stream = device.stream()?;
    /// let buffer = device.alloc::<u64>(3)?;
    /// stream.upload(&buffer, &[1, 2, 3])?;
    /// let values = stream.download(&buffer)?;
    /// // The CPU is free to do something else here.
    /// assert_eq!(values.wait()?, [1, 2, 3]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn upload<D>(&self, target: &D, values: &[D::Element]) -> Result<Event, Error>
    where
        D: Place + ?Sized,
    {
        self.check(target.context())?;
        if values.len() > target.len() {
            return Err(Error::InvalidArgument(format!(
                "{} values do not fit memory of {}",
                values.len(),
                target.len()
            )));
        }
        if values.is_empty() {
            return Ok(self.event());
        }
        let bytes = values.as_bytes();
        let landing = Landing::new(&self.context, bytes.len() as u64)?;
        landing.memory()?.mapping()?.write(0, bytes)?;
        let source = landing.memory()?.va();
        let length = bytes.len() as u64;
        let context = self.context.inner();
        let copied = self.inner.copy(context, target.va(), source, length);
        self.submitted(copied, |event| target.used(event))
    }

    /// Copies all of `source` out, after the work submitted before; it returns once the copy is submitted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `source` is of another context; [`Error::OutOfMemory`] for the pinned memory
    /// that the values arrive in; what submitting meets.
    pub fn download<S>(&self, source: &S) -> Result<Download<S::Element>, Error>
    where
        S: Place + ?Sized,
    {
        self.check(source.context())?;
        let bytes = bytes_of::<S::Element>(source.len());
        let landing = Landing::new(&self.context, bytes.max(1))?;
        let target: GpuVa = landing.memory()?.va();
        let context = self.context.inner();
        let copied = self.inner.copy(context, target, source.va(), bytes);
        let event = self.submitted(copied, |event| source.used(event))?;
        Ok(Download {
            event,
            landing,
            len: source.len(),
            _values: std::marker::PhantomData,
        })
    }

    /// The kernels for a copy or a fill of so many bytes, `within` GPU memory or not.
    fn kernels(&self, bytes: u64, within: bool) -> Option<&Builtin> {
        if within && bytes >= LEAST {
            self.builtin.get(&self.context)
        } else {
            None
        }
    }

    /// The event of work that was submitted, which the memory in it is told of, also where only a part of it was.
    fn submitted(
        &self,
        work: Result<u64, Error>,
        tell: impl FnOnce(&Event),
    ) -> Result<Event, Error> {
        let value = *work.as_ref().unwrap_or(&self.inner.submitted());
        let event = self.event_at(value);
        tell(&event);
        work.map(|_| event)
    }

    fn check(&self, context: &Context) -> Result<(), Error> {
        check_context(context, &self.context)
    }
}

/// The bytes of a copy of all of `source` to the start of `target`, both of `context`.
pub(crate) fn check_copy<D, S>(context: &Context, target: &D, source: &S) -> Result<u64, Error>
where
    D: Place + ?Sized,
    S: Place<Element = D::Element> + ?Sized,
{
    check_context(target.context(), context)?;
    check_context(source.context(), context)?;
    if source.len() > target.len() {
        return Err(Error::InvalidArgument(format!(
            "{} values do not fit memory of {}",
            source.len(),
            target.len()
        )));
    }
    Ok(bytes_of::<D::Element>(source.len()))
}

/// What a fill of all of `target`, of `context`, repeats, and how often.
pub(crate) fn check_fill<D>(
    context: &Context,
    target: &D,
    value: D::Element,
) -> Result<(Pattern, u64), Error>
where
    D: Place + ?Sized,
{
    check_context(target.context(), context)?;
    let pattern = Pattern::new(value.as_bytes()).ok_or_else(|| {
        Error::InvalidArgument(format!(
            "the copy engine fills with values of 1, 2, 4 or 8 bytes, and these have {}",
            size_of::<D::Element>()
        ))
    })?;
    Ok((pattern, target.len() as u64))
}

fn check_context(given: &Context, own: &Context) -> Result<(), Error> {
    if Arc::ptr_eq(given.inner(), own.inner()) {
        Ok(())
    } else {
        Err(Error::InvalidArgument(
            "memory of another context; `copy_peer` copies it".into(),
        ))
    }
}

impl<T: Element> Download<T> {
    /// The moment when the values have arrived.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Whether they have.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.event.is_reached()
    }

    /// Waits for the values, for as long as the device's limit allows, and gives them.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn wait(self) -> Result<Vec<T>, Error> {
        self.event.wait()?;
        let mut values = vec![T::new_zeroed(); self.len];
        self.landing
            .memory()?
            .mapping()?
            .read(0, values.as_mut_bytes())?;
        Ok(values)
    }
}

impl Landing {
    fn new(context: &Context, bytes: u64) -> Result<Self, Error> {
        let memory = context.allocate(bytes, Placement::Pinned, Use::Staging)?;
        Ok(Self {
            context: context.clone(),
            memory: Some(Arc::new(memory)),
        })
    }

    fn memory(&self) -> Result<&Allocation, Error> {
        self.memory
            .as_deref()
            .ok_or_else(|| Error::Unsupported("the memory was given up".into()))
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.context.retire(memory);
        }
    }
}

/// The bytes of values that lie in memory.
fn bytes_of<T>(len: usize) -> u64 {
    // No overflow: they lie there.
    (len * size_of::<T>()) as u64
}

/// The most that a pitch, a width or a number of rows may be: a pitch is two's complement.
const PITCH_LIMIT: u32 = i32::MAX as u32;
