//! Streams: work that runs in the order in which it was submitted.

mod copies;
mod launches;
mod queue;
mod transfers;

use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::context::{Context, lock};
use crate::launch::Launch;
use crate::module::Function;

pub(crate) use queue::{Progress, StreamInner};
pub use transfers::{Download, Rect};

/// Work that runs in the order in which it was submitted, beside that of other streams.
///
/// A clone is the same stream. Streams may be used from several threads: each submission is whole, and which
/// comes first is as the threads happen to meet.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<StreamInner>,
    context: Context,
}

/// A moment of a stream: reached once the work submitted before it has ended.
#[derive(Clone, Debug)]
pub struct Event {
    stream: Stream,
    value: u64,
}

impl Stream {
    pub(crate) fn new(context: Context, inner: Arc<StreamInner>) -> Self {
        Self { inner, context }
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
        Event {
            stream: self.clone(),
            value: self.inner.submitted(),
        }
    }

    /// Has the work submitted from now on wait until `event` is reached, also one of another stream.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an event of another context; [`Error::Fault`] for one that a fault keeps from
    /// ever being reached.
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        if !Arc::ptr_eq(event.stream.context.inner(), self.context.inner()) {
            return Err(Error::InvalidArgument("an event of another context".into()));
        }
        let other = &event.stream.inner;
        let dead = other.is_dead();
        // What was reached before the stream died counts as reached.
        if event.is_reached() {
            return Ok(());
        }
        if dead {
            return Err(other.fail(self.context.inner(), &mut lock(&other.state)));
        }
        self.inner
            .wait_on_gpu(self.context.inner(), other, event.value)
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

    pub(crate) fn inner(&self) -> &Arc<StreamInner> {
        &self.inner
    }

    pub(crate) fn event_at(&self, value: u64) -> Event {
        Event {
            stream: self.clone(),
            value,
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
