//! Streams: work that runs in the order in which it was submitted.

mod copies;
#[cfg(feature = "tracing")]
mod dump;
mod inspect;
mod launches;
mod queue;
mod raw;
mod submitted;
mod times;
mod transfers;

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use nv_proto::unit::GpuVa;

use crate::Error;
use crate::builtin::Loaded;
use crate::context::{Context, ContextInner, lock};
use crate::fault::FaultReport;
use crate::launch::Launch;
use crate::module::Function;

pub(crate) use copies::Pattern;
pub(crate) use launches::{Releases, set_releases};
pub(crate) use queue::{Progress, StreamInner};
pub(crate) use submitted::Submitted;
pub use times::GpuTime;
pub(crate) use times::TimePool;
pub use transfers::{Download, Rect};
pub(crate) use transfers::{check_copy, check_fill};

/// Work that runs in the order in which it was submitted, beside that of other streams.
///
/// Kernels of several streams run beside each other, and copies of a stream that does nothing else beside all kernels. Where
/// a stream goes from kernels to copies by the copy engine, its copy waits for the kernels of *all* streams of the
/// context (seen on an H200): give copies that are to overlap with kernels a stream of their own.
///
/// A clone is the same stream. Streams may be used from several threads: each submission is whole, and which
/// comes first is as the threads happen to meet.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<StreamInner>,
    context: Context,
    /// Kernels that large copies and fills use.
    builtin: Loaded,
}

/// A moment of a stream: reached once the work submitted before it has ended.
#[derive(Clone, Debug)]
pub struct Event {
    stream: Stream,
    value: u64,
    /// Where its time is kept, if it is.
    time: Option<Arc<times::Time>>,
}

/// Several submissions of one caller, with none of another's between them.
pub(crate) struct Turn<'a> {
    stream: &'a StreamInner,
    state: MutexGuard<'a, queue::State>,
}

impl StreamInner {
    /// Takes the stream for several submissions.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn {
            stream: self,
            state: lock(&self.state),
        }
    }
}

impl Turn<'_> {
    /// Submits a copy; the value is reached once it has ended.
    pub(crate) fn copy(
        &mut self,
        context: &ContextInner,
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    ) -> Result<u64, Error> {
        self.stream
            .copy_locked(context, &mut self.state, target, source, bytes)
    }

    /// Submits a fill of `count` elements; the value is reached once it has ended.
    pub(crate) fn fill(
        &mut self,
        context: &ContextInner,
        target: GpuVa,
        pattern: Pattern,
        count: u64,
    ) -> Result<u64, Error> {
        self.stream
            .fill_locked(context, &mut self.state, target, pattern, count)
    }
}

impl Stream {
    pub(crate) fn new(context: Context, inner: Arc<StreamInner>) -> Self {
        Self {
            inner,
            context,
            builtin: Loaded::default(),
        }
    }

    /// Its number among the streams of its context, counted from 0: what a profile names it by. The context's own stream
    /// takes one too when it is first used, and again when it is made anew after a fault.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.inner.id()
    }

    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Begins a launch of `function`; [`Launch::submit`] ends it.
    pub fn launch<'a>(&'a self, function: &'a Function) -> Launch<'a> {
        Launch::new(self, function)
    }

    /// The moment after all work submitted so far.
    #[must_use]
    pub fn event(&self) -> Event {
        self.event_at(self.inner.submitted())
    }

    /// Has the work submitted from now on wait until `event` is reached, also one of another stream, of another context,
    /// or of another GPU of the machine.
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`] for an event of another machine, or where the driver does not map the page of host memory
    /// that it is told by; [`Error::Fault`] for one that a fault keeps from ever being reached.
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        let other = &event.stream.inner;
        let dead = other.progress().is_dead();
        // What was reached before the stream died counts as reached.
        if event.is_reached() {
            return Ok(());
        }
        if dead {
            return Err(other.fail(event.stream.context.inner(), &mut lock(&other.state)));
        }
        let context = self.context.inner();
        if Arc::ptr_eq(event.stream.context.inner(), context) {
            return self.inner.wait_on_gpu(context, other, event.value);
        }
        let page = self.context.map_peer(&event.stream.context, other.page())?;
        context.keep_peer_page(&page);
        let at = page.translate(other.timeline_va());
        self.inner
            .wait_on_page(context, at, event.value, page.into())
    }

    /// Waits until all work submitted so far has ended, for as long as the device's limit allows.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn synchronize(&self) -> Result<(), Error> {
        self.synchronize_within(self.context.inner().limit())
    }

    /// Waits until all work submitted so far has ended, at most for `limit`.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn synchronize_within(&self, limit: Duration) -> Result<(), Error> {
        self.inner.synchronize(self.context.inner(), limit)
    }

    /// All that can be known of the stream's state: what it has in flight, and what the driver and every multiprocessor
    /// say of errors. For a stream that does not end though nothing was reported; it changes nothing, and takes
    /// milliseconds.
    #[must_use]
    pub fn diagnose(&self) -> FaultReport {
        self.inner.diagnose(self.context.inner())
    }

    /// Gives up the work in flight: once the last clone of the stream and its events are gone, its channel ends at once,
    /// whatever runs on it. Without this the drop first waits for the work, as long as the device's limit allows.
    ///
    /// This is how to get rid of a kernel that never ends. If work is cut off, the driver ends the other streams of
    /// the same context with it, but for those made after this call; memory and modules stay. Of the context's own stream
    /// the context lets go, too, and makes another one.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> Result<(), nv_host::Error> {
    /// let device = nv_host::Device::open_best()?;
    /// let stream = device.stream()?;
    /// if let Err(nv_host::Error::Timeout { .. }) = stream.synchronize() {
    ///     stream.abandon();
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn abandon(self) {
        self.inner.abandon();
    }

    pub(crate) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }

    pub(crate) fn event_at(&self, value: u64) -> Event {
        Event {
            stream: self.clone(),
            value,
            time: None,
        }
    }
}

impl Event {
    /// The stream, and its timeline's value.
    pub(crate) fn parts(&self) -> (&Arc<StreamInner>, u64) {
        (&self.stream.inner, self.value)
    }

    /// Whether it is reached.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.stream.inner.completed() >= self.value
    }

    /// Waits until it is reached, for as long as the device's limit allows.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_within(self.stream.context.inner().limit())
    }

    /// Waits until it is reached, at most for `limit`.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn wait_within(&self, limit: Duration) -> Result<(), Error> {
        self.stream
            .inner
            .wait(self.stream.context.inner(), self.value, limit)
    }
}
