//! The GPU's times of events: what [`Stream::record`] stores, and what the timeline happens to keep.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nv_proto::push::Subchannel;
use nv_proto::push::host::SemRelease;
use nv_proto::unit::GpuVa;

use super::queue::{Pending, Progress, StreamInner, Work};
use super::{Event, Stream};
use crate::Error;
use crate::context::{ContextInner, lock};
use crate::memory::{Allocation, Placement, Use};

/// A time of a GPU's timer. Times of different GPUs have nothing to do with each other.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GpuTime(u64);

impl GpuTime {
    /// Nanoseconds, as the timer counts them.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.0
    }

    /// How long after `earlier` it is; `None` where it is before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }
}

impl Stream {
    /// The moment after all work submitted so far, with its time: the GPU stores it once it gets there.
    ///
    /// # Errors
    /// [`Error::Fault`] when the stream is dead, [`Error::OutOfMemory`] for the place of the time.
    ///
    /// # Examples
    /// ```
    /// # let device = nv_host::Device::open(&nv_host::Options {
    /// #     backend: nv_host::Backend::Sim(nv_sim::Chip::Gh100), ..Default::default() })?;
    /// # let (source, target) = (device.upload(&[1_u8; 4096])?, device.alloc::<u8>(4096)?);
    /// let stream = device.stream()?;
    /// let before = stream.record()?;
    /// stream.copy(&target, &source)?;
    /// let after = stream.record()?;
    /// after.wait()?;
    /// println!("the copy took {:?}", after.elapsed_since(&before)?);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn record(&self) -> Result<Event, Error> {
        let context = self.context.inner();
        let place = Place::take(context)?;
        let value = self.inner.record_time(context, &place)?;
        let time = Arc::new(Time {
            place: Some(place),
            pool: Arc::clone(&context.times),
            progress: Arc::downgrade(self.inner.progress()),
            value,
        });
        Ok(Event {
            stream: self.clone(),
            value,
            time: Some(time),
        })
    }
}

impl Event {
    /// When the GPU got there; `None` where it has not yet, or where the time is not kept.
    ///
    /// An event of [`Stream::record`] keeps its time. That of any other, of a launch or a copy or of [`Stream::event`],
    /// is known for as long as no later work of its stream has ended.
    #[must_use]
    pub fn timestamp(&self) -> Option<GpuTime> {
        match &self.time {
            // The timeline comes after the time.
            Some(time) if self.is_reached() => time.read().map(GpuTime),
            Some(_) => None,
            None => self.stream.inner.time_of(self.value).map(GpuTime),
        }
    }

    /// How long after `earlier` the GPU got there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when one of the two is not reached yet or has no time, when they are of different
    /// contexts, or when `earlier` was later.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration, Error> {
        let bad = |why: &str| Error::InvalidArgument(why.to_owned());
        if !Arc::ptr_eq(self.stream.context.inner(), earlier.stream.context.inner()) {
            return Err(bad(
                "the two events are of different contexts, whose clocks may differ",
            ));
        }
        let time = |event: &Self, which: &str| {
            event.timestamp().ok_or_else(|| {
                let why = if !event.is_reached() {
                    "is not reached yet: wait for it first"
                } else {
                    "has no time, since later work has ended: make it with `Stream::record`"
                };
                bad(&format!("the {which} event {why}"))
            })
        };
        let (from, to) = (time(earlier, "earlier")?, time(self, "later")?);
        to.since(from).ok_or_else(|| {
            bad("the event that was given as the earlier one was reached after the other")
        })
    }
}

impl StreamInner {
    /// Has the GPU store the time once all work so far has ended.
    fn record_time(&self, context: &ContextInner, place: &Place) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        let at = GpuVa(place.page.va().0 + place.offset as u64);
        self.submit(context, &mut state, Work::Mark, |push, value| {
            push.write(Subchannel::HOST, &SemRelease::with_timestamp(at, value))?;
            Ok(Pending::Nothing)
        })
    }
}

/// Where one event's time lies: 16 bytes, the second half is the time.
#[derive(Debug)]
struct Place {
    page: Arc<Allocation>,
    offset: usize,
}

/// A page of places, and the bytes of one.
const PAGE: usize = 4096;
const PLACE: usize = 16;

/// Places that no event has, and such that the GPU may still write to.
#[derive(Debug, Default)]
pub(crate) struct TimePool {
    free: Vec<Place>,
    left: Vec<(Place, Weak<Progress>, u64)>,
}

impl Place {
    fn take(context: &ContextInner) -> Result<Self, Error> {
        if let Some(place) = Self::free(context) {
            return Ok(place);
        }
        // With the pool not taken: where memory is short this waits for the GPU.
        let page = Arc::new(context.allocate(PAGE as u64, Placement::Pinned, Use::Stream)?);
        let mut places = (0..PAGE).step_by(PLACE).map(|offset| Self {
            page: Arc::clone(&page),
            offset,
        });
        let first = places.next();
        lock(&context.times).free.extend(places);
        first.ok_or_else(|| Error::Unsupported("a page holds no time".into()))
    }

    /// A place that no event has.
    fn free(context: &ContextInner) -> Option<Self> {
        let mut pool = lock(&context.times);
        if pool.free.is_empty() {
            let over = |(_, progress, value): &mut (Self, Weak<Progress>, u64)| {
                progress
                    .upgrade()
                    .is_none_or(|progress| progress.is_over(*value))
            };
            let TimePool { free, left } = &mut *pool;
            free.extend(left.extract_if(.., over).map(|(place, ..)| place));
        }
        pool.free.pop()
    }
}

/// The time of an event, whose place others may use afterwards.
#[derive(Debug)]
pub(super) struct Time {
    /// `Some` until dropped.
    place: Option<Place>,
    pool: Arc<Mutex<TimePool>>,
    progress: Weak<Progress>,
    value: u64,
}

impl Time {
    fn read(&self) -> Option<u64> {
        let place = self.place.as_ref()?;
        let page = place.page.mapping().ok()?;
        Some(page.read_u64(place.offset + 8))
    }
}

impl Drop for Time {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            let progress = std::mem::take(&mut self.progress);
            lock(&self.pool).left.push((place, progress, self.value));
        }
    }
}
