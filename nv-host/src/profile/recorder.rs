//! What a recording stream keeps of each submission until its times can be read back.
//!
//! The GPU stores two times for each submission into a slot of pinned memory: the host engine one before the work
//! begins, and whoever knows of the work's end another one after it. Both carry the submission's number as payload,
//! so a slot that is read too early is known for what it is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nv_proto::push::copy::{LaunchDma, SemaphoreType, SetSemaphore64};
use nv_proto::push::host::{SemAcquire, SemRelease};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::GpuVa;

use super::{Kind, Lost};
use crate::Error;
use crate::channel::RING_ENTRIES;
use crate::context::lock;
use crate::memory::Allocation;
use crate::protocol;

/// Slots of a stream: twice what can be in flight, so that one is long read back before it is used again.
const SLOTS: u64 = 2 * RING_ENTRIES as u64;
/// A slot is two semaphores of 16 bytes each: payload, then time.
const SLOT_BYTES: u64 = 32;
/// Where the end lies in a slot.
const END: u64 = 16;

/// Bytes of a stream's slots.
pub(crate) const SLOTS_BYTES: u64 = SLOTS * SLOT_BYTES;

/// Words that recording adds to a submission: a release by the host engine before the work (6 words); after it one by
/// the host too, or one by the copy engine (7) for which the host waits (6).
pub(crate) const WORDS: usize = 20;

/// What a submission is, as a record tells it.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) kind: Kind,
}

/// A submission with the GPU's own times.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) about: About,
    pub(crate) stream: u64,
    pub(crate) submitted: Duration,
    pub(crate) submitting: Duration,
    /// In nanoseconds of the GPU's timer.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Where all streams of one profile put what they read back.
#[derive(Debug)]
pub(crate) struct Sink {
    begin: Instant,
    capacity: usize,
    gathered: Mutex<Gathered>,
}

#[derive(Debug, Default)]
struct Gathered {
    records: Vec<Raw>,
    lost: Lost,
}

impl Sink {
    pub(crate) fn new(begin: Instant, capacity: usize) -> Self {
        Self {
            begin,
            capacity,
            gathered: Mutex::default(),
        }
    }

    /// When the profile began.
    pub(crate) fn begin(&self) -> Instant {
        self.begin
    }

    /// All that was gathered, and what was not.
    pub(crate) fn take(&self) -> (Vec<Raw>, Lost) {
        let Gathered { records, lost } = std::mem::take(&mut *lock(&self.gathered));
        (records, lost)
    }
}

/// A submission whose times are not read back yet.
#[derive(Debug)]
struct Open {
    value: u64,
    about: About,
    submitted: Duration,
    submitting: Duration,
}

/// The recording side of one stream.
#[derive(Debug)]
pub(crate) struct Recorder {
    sink: Arc<Sink>,
    stream: u64,
    slots: Arc<Allocation>,
    /// Oldest first.
    open: VecDeque<Open>,
}

impl Recorder {
    pub(crate) fn new(sink: &Arc<Sink>, stream: u64, slots: Arc<Allocation>) -> Self {
        Self {
            sink: Arc::clone(sink),
            stream,
            slots,
            open: VecDeque::with_capacity(RING_ENTRIES as usize + 1),
        }
    }

    /// Whether it records for this profile.
    pub(crate) fn is_for(&self, sink: &Arc<Sink>) -> bool {
        Arc::ptr_eq(&self.sink, sink)
    }

    /// The time since the profile began.
    pub(crate) fn now(&self) -> Duration {
        self.sink.begin.elapsed()
    }

    /// The slot of a submission.
    pub(crate) fn slot(&self, value: u64) -> Slot {
        Slot {
            at: GpuVa(self.slots.va().0 + offset(value)),
            value,
        }
    }

    /// Notes a submission that was published just now.
    pub(crate) fn note(&mut self, value: u64, about: About, submitted: Duration) {
        // Cannot be with as many slots as there are; if it were, it would be told.
        let overrun = |open: &Open| open.value + SLOTS <= value;
        while self.open.front().is_some_and(overrun) {
            self.open.pop_front();
            lock(&self.sink.gathered).lost.unfinished += 1;
        }
        self.open.push_back(Open {
            value,
            about,
            submitted,
            submitting: self.now().saturating_sub(submitted),
        });
    }

    /// The newest submission that is not read back.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.open.back().map(|open| open.value)
    }

    /// Reads back what has ended of the submissions up to `completed`; answers whether nothing is left.
    pub(crate) fn collect(&mut self, completed: u64) -> bool {
        let Ok(memory) = self.slots.mapping() else {
            return self.open.is_empty();
        };
        let ended = |open: &Open| open.value <= completed;
        if self.open.front().is_none_or(|open| !ended(open)) {
            return self.open.is_empty();
        }
        let mut gathered = lock(&self.sink.gathered);
        while let Some(open) = self.open.front().filter(|open| ended(open)) {
            let at = usize::try_from(offset(open.value)).unwrap_or(usize::MAX);
            let end = at + END as usize;
            // Engines that signal the timeline themselves do so first: the time may be on the way. Times come with the payloads.
            let payload = |at| protocol::timeline(|| memory.read_u64(at));
            if payload(at) != open.value || payload(end) != open.value {
                break;
            }
            let (start, end) = (memory.read_u64(at + 8), memory.read_u64(end + 8));
            let Some(open) = self.open.pop_front() else {
                break;
            };
            if gathered.records.len() < self.sink.capacity {
                gathered.records.push(Raw {
                    about: open.about,
                    stream: self.stream,
                    submitted: open.submitted,
                    submitting: open.submitting,
                    start,
                    end,
                });
            } else {
                gathered.lost.full += 1;
            }
        }
        self.open.is_empty()
    }

    /// Ends the recording: what is not read back never will be.
    pub(crate) fn give_up(self) {
        if !self.open.is_empty() {
            lock(&self.sink.gathered).lost.unfinished += self.open.len() as u64;
        }
    }
}

/// Where a submission's slot lies.
fn offset(value: u64) -> u64 {
    value % SLOTS * SLOT_BYTES
}

/// Where the times of one submission go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    at: GpuVa,
    value: u64,
}

impl Slot {
    /// Has the host engine store the time at which it comes to the work.
    pub(crate) fn start(self, push: &mut PushWriter<'_>) -> Result<(), Error> {
        let release = SemRelease {
            at: self.at,
            value: self.value,
            wfi: false,
            timestamp: true,
        };
        push.write(Subchannel::HOST, &release)?;
        Ok(())
    }

    /// Has the host engine store the time at which the work has ended.
    pub(crate) fn end(self, push: &mut PushWriter<'_>) -> Result<(), Error> {
        let release = SemRelease::with_timestamp(GpuVa(self.at.0 + END), self.value);
        push.write(Subchannel::HOST, &release)?;
        Ok(())
    }

    /// Has the host engine wait for work whose end another engine signals with the timeline, and store the time then.
    pub(crate) fn end_of_signalled(
        self,
        push: &mut PushWriter<'_>,
        timeline: GpuVa,
    ) -> Result<(), Error> {
        push.write(Subchannel::HOST, &SemAcquire::geq(timeline, self.value))?;
        self.end(push)
    }

    /// Has the copy engine store the time at which its copies have ended, and the host engine wait for that, so that
    /// the next work begins after it.
    pub(crate) fn end_of_copy(self, push: &mut PushWriter<'_>) -> Result<(), Error> {
        let semaphore = SetSemaphore64 {
            at: GpuVa(self.at.0 + END),
            payload: self.value,
        };
        push.write(Subchannel::COPY, &semaphore)?;
        let launch = LaunchDma {
            flush_enable: true,
            semaphore_type: SemaphoreType::FourWord,
            semaphore_payload_two_word: true,
            ..LaunchDma::default()
        };
        push.write(Subchannel::COPY, &launch)?;
        push.write(Subchannel::HOST, &SemAcquire::geq(semaphore.at, self.value))?;
        Ok(())
    }
}
