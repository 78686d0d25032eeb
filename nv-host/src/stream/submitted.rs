//! Submissions as others remember them: their end can be waited for as long as their channel is there, also while
//! their stream is being dropped.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::queue::{Progress, StreamInner};
use crate::Error;
use crate::context::ContextInner;
use crate::wait::{self, Outcome};

/// A submission of some stream. It keeps neither the stream nor its progress.
#[derive(Clone, Debug)]
pub(crate) struct Submitted {
    stream: Weak<StreamInner>,
    /// It is there for as long as the stream's channel is.
    progress: Weak<Progress>,
    value: u64,
}

impl Submitted {
    /// What reaches `value` on `stream`.
    pub(crate) fn new(stream: &Arc<StreamInner>, value: u64) -> Self {
        Self::of_parts(
            Arc::downgrade(stream),
            Arc::downgrade(stream.progress()),
            value,
        )
    }

    /// What reaches `value` on a stream that may be being dropped.
    pub(crate) fn of_parts(
        stream: Weak<StreamInner>,
        progress: Weak<Progress>,
        value: u64,
    ) -> Self {
        Self {
            stream,
            progress,
            value,
        }
    }

    /// Whether it was submitted to `stream`.
    pub(crate) fn is_on(&self, stream: &Arc<StreamInner>) -> bool {
        std::ptr::eq(self.stream.as_ptr(), Arc::as_ptr(stream))
    }

    /// The stream, unless it is gone or being dropped; and the value.
    pub(crate) fn parts(&self) -> (Option<Arc<StreamInner>>, u64) {
        (self.stream.upgrade(), self.value)
    }

    /// Counts for a later submission of the same stream too.
    pub(crate) fn extend(&mut self, value: u64) {
        self.value = self.value.max(value);
    }

    /// Whether it has ended; what a fault ended never runs again.
    pub(crate) fn is_over(&self) -> bool {
        self.progress
            .upgrade()
            .is_none_or(|progress| progress.is_over(self.value))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::Fault`] where a fault ended it, unless its stream is gone.
    pub(crate) fn wait(&self, context: &ContextInner, limit: Duration) -> Result<(), Error> {
        if let Some(stream) = self.stream.upgrade() {
            return stream.wait(context, self.value, limit);
        }
        match self.wait_for_drop(limit) {
            Outcome::Done => Ok(()),
            Outcome::Failed | Outcome::TimedOut => Err(Error::Timeout {
                what: "work of a stream that is being dropped".to_owned(),
                limit,
                report: None,
            }),
        }
    }

    /// Waits until it has ended, whatever comes of it; false where it goes on after the limit. It takes no lock, so that a
    /// caller may hold any.
    pub(crate) fn settle(&self, limit: Duration) -> bool {
        match self.stream.upgrade() {
            Some(stream) => stream.settle(self.value, limit),
            None => self.wait_for_drop(limit) == Outcome::Done,
        }
    }

    /// A stream that is being dropped ends its work, or is ended with it. Nothing may keep its progress meanwhile.
    fn wait_for_drop(&self, limit: Duration) -> Outcome {
        wait::wait(limit, || self.is_over(), || false, || ())
    }
}
