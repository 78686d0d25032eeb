//! A stream's channel and what is in flight on it: submission, flow control, waiting.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use nv_proto::gpfifo::{GpEntry, RingCursor};
use nv_proto::push::compute::{SetShaderLocalMemoryWindow, SetShaderSharedMemoryWindow};
use nv_proto::push::host::{SemAcquire, SemRelease, SetObject};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::{Dim3, GpuVa};

use crate::channel::{
    self, COMMAND_BYTES, COMMANDS, Channel, ENGINE_SEMAPHORE, LAUNCH_BYTES, ORDER, RING_ENTRIES,
    TIMELINE,
};
use crate::context::{ContextInner, lock};
use crate::fault::{FaultReport, InFlight, Submission};
use crate::group::Group;
use crate::launch::{LaunchScratch, WINDOWS};
use crate::local::LocalMemory;
use crate::memory::{Allocation, Placement, Use};
use crate::peer::Held;
use crate::profile::{self, About, Kind, Recorder, Sink};
use crate::protocol;
use crate::ring::Ring;
use crate::wait::{self, Outcome};
use crate::{Error, Mapping};

/// The engine that did the last work, if it signals its end without the host having waited for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pending {
    /// Nothing that the next work must wait for: the host itself waited.
    Nothing,
    /// A copy whose end the copy engine signals, by the timeline.
    Copy,
    /// A grid that signals its end itself, by the timeline and by the order semaphore.
    Grid,
}

/// What a submission is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work<'a> {
    /// The set-up of the channel.
    SetUp,
    /// Nothing but the signal that all before it has ended.
    Mark,
    /// A launch of a kernel.
    Launch {
        /// Its name.
        kernel: &'a Arc<str>,
        grid: Dim3,
        block: Dim3,
    },
    /// Launches of a graph, each of which starts the next.
    Chain {
        /// The names of their kernels.
        label: &'a Arc<str>,
        launches: usize,
    },
    /// A copy of so many bytes.
    Copy { bytes: u64 },
    /// A wait for another stream.
    Wait,
    /// Words of the caller's own.
    Words,
}

impl<'a> Work<'a> {
    /// The kernel that a fault of the submission is told to be in.
    fn label(self) -> Option<&'a Arc<str>> {
        match self {
            Self::Launch { kernel, .. } => Some(kernel),
            Self::Chain { label, .. } => Some(label),
            _ => None,
        }
    }

    /// What a profile records of it; `None` for what it does not record.
    fn about(self) -> Option<About> {
        let kind = match self {
            Self::SetUp | Self::Mark | Self::Words => return None,
            Self::Launch { grid, block, .. } => Kind::Launch { grid, block },
            Self::Chain { launches, .. } => Kind::Chain { launches },
            Self::Copy { bytes } => Kind::Copy { bytes },
            Self::Wait => Kind::Wait,
        };
        let name = self.label().cloned();
        Some(About { name, kind })
    }
}

impl fmt::Display for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetUp => f.write_str("set-up"),
            Self::Mark => f.write_str("mark"),
            Self::Launch {
                kernel,
                grid,
                block,
            } => write!(f, "launch of {kernel}, grid {grid}, block {block}"),
            Self::Chain { label, launches } => write!(f, "chain of {launches} launches of {label}"),
            Self::Copy { bytes } => write!(f, "copy of {bytes} bytes"),
            Self::Wait => f.write_str("wait for another stream"),
            Self::Words => f.write_str("command words"),
        }
    }
}

/// What lies behind a submission, to be given back once it has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    commands: u64,
    launches: u64,
}

impl fmt::Debug for StreamInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("id", &self.id)
            .field("submitted", &self.submitted())
            .field("completed", &self.completed())
            .finish_non_exhaustive()
    }
}

/// A stream's channel and what is in flight on it.
pub(crate) struct StreamInner {
    // Fields end in this order: what runs on the channel uses memory that the state keeps, and the progress says
    // when all of it has ended.
    pub(super) channel: Channel,
    pub(super) state: Mutex<State>,
    progress: Arc<Progress>,
    group: Arc<Group>,
    pub(super) limit: Duration,
    /// Whether its end waits for nothing.
    abandoned: AtomicBool,
    /// Whether somebody was told of the fault that ended it.
    told: AtomicBool,
    /// Its number among the streams of its context.
    id: u64,
}

/// How far a stream's work has got. It is there for as long as its channel is, also while the stream is being
/// dropped: one that is gone has nothing in flight.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The timeline value of the newest submission: submissions count up from 1.
    submitted: AtomicU64,
    /// The page of the channel with the timeline.
    page: Arc<Allocation>,
    group: Arc<Group>,
}

impl Progress {
    /// The timeline value of the newest submission.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// The timeline value that the GPU has reached; 0 where that is more than was ever submitted: a kernel wrote over
    /// the timeline, and nothing that stands there is to be believed.
    fn completed(&self) -> u64 {
        let load = |page: &Mapping| protocol::timeline(|| page.read_u64(TIMELINE));
        let value = self.page.mapping().map_or(0, load);
        // What is submitted counts before the GPU is told of it.
        if value > self.submitted() { 0 } else { value }
    }

    /// Whether the work up to `value` has ended, or never will since the stream is dead.
    pub(crate) fn is_over(&self, value: u64) -> bool {
        self.completed() >= value || self.is_dead()
    }

    /// Whether the driver says that the channel, and with it its group, was ended: by a fault, or along with another
    /// channel. Nothing else does: a channel that is ended with work in flight takes the others with it only where the
    /// driver finds it running.
    pub(crate) fn is_dead(&self) -> bool {
        let noted = || {
            let page = self.page.mapping();
            page.is_ok_and(|page| channel::notification(page).is_some())
        };
        if !self.group.is_dead() && noted() {
            self.group.set_dead();
        }
        self.group.is_dead()
    }
}

#[derive(Debug)]
pub(super) struct State {
    cursor: RingCursor,
    pub(super) commands: Ring,
    pub(super) launches: Ring,
    /// By ring slot.
    marks: Box<[Mark]>,
    pub(super) pending: Pending,
    /// Counts copies: what a copy engine without 64-bit payloads signals.
    pub(super) copies: u32,
    /// The local memory that the channel was last told of.
    pub(super) local: LocalMemory,
    /// The modules that the channel's instruction caches are up to date with.
    pub(super) code_generation: u64,
    pub(super) scratch: LaunchScratch,
    /// The names of the kernels in flight, by ring slot, for fault reports.
    labels: Box<[Option<Arc<str>>]>,
    /// The pages of other streams whose timelines the work in flight waits for, by ring slot: they stay also when
    /// their stream is dropped.
    awaited: Box<[Option<Held>]>,
    fault: Option<Arc<FaultReport>>,
    /// There while a profile is being recorded.
    pub(super) recorder: Option<Recorder>,
    /// Where the GPU puts a profile's times. Once made it stays for as long as the channel: where an engine signals
    /// the end of work itself, the time comes after the signal.
    slots: Option<Arc<Allocation>>,
}

/// Words of one submission: the longest is a first launch with its set-up.
const WORDS: usize = 96 + profile::WORDS;

impl StreamInner {
    /// Makes a stream in `group` and sets its channel up.
    pub(crate) fn new(context: &ContextInner, group: &Arc<Group>, id: u64) -> Result<Self, Error> {
        Self::starting_at(context, group, id, 0, 0)
    }

    /// A stream as after `submissions`, a multiple of the ring's entries, and `copies`.
    pub(crate) fn starting_at(
        context: &ContextInner,
        group: &Arc<Group>,
        id: u64,
        submissions: u64,
        copies: u32,
    ) -> Result<Self, Error> {
        let channel = Channel::new(context, group)?;
        let page = channel.page_memory().mapping()?;
        page.write_u64(TIMELINE, submissions);
        page.write_u32(ENGINE_SEMAPHORE, copies);
        let slots = RING_ENTRIES as usize;
        let state = State {
            cursor: RingCursor::starting_at(RING_ENTRIES, submissions)?,
            commands: Ring::new(COMMAND_BYTES),
            launches: Ring::new(LAUNCH_BYTES),
            marks: vec![Mark::default(); slots].into_boxed_slice(),
            pending: Pending::Nothing,
            copies,
            local: LocalMemory::default(),
            code_generation: 0,
            scratch: LaunchScratch::new(context)?,
            labels: vec![None; slots].into_boxed_slice(),
            awaited: vec![None; slots].into_boxed_slice(),
            fault: None,
            recorder: None,
            slots: None,
        };
        let progress = Arc::new(Progress {
            submitted: AtomicU64::new(submissions),
            page: Arc::clone(channel.page_memory()),
            group: Arc::clone(group),
        });
        let stream = Self {
            channel,
            state: Mutex::new(state),
            progress,
            group: Arc::clone(group),
            limit: context.limit(),
            abandoned: AtomicBool::new(false),
            told: AtomicBool::new(false),
            id,
        };
        stream.set_up(context)?;
        Ok(stream)
    }

    /// Binds the engines' classes and sets the windows of generic addresses.
    fn set_up(&self, context: &ContextInner) -> Result<(), Error> {
        let classes = *context.classes();
        let mut state = lock(&self.state);
        self.submit(context, &mut state, Work::SetUp, |push, _| {
            push.write(
                Subchannel::COMPUTE,
                &SetObject {
                    class: classes.compute,
                },
            )?;
            push.write(
                Subchannel::COPY,
                &SetObject {
                    class: classes.copy,
                },
            )?;
            push.write(
                Subchannel::COMPUTE,
                &SetShaderLocalMemoryWindow {
                    base: WINDOWS.local,
                },
            )?;
            push.write(
                Subchannel::COMPUTE,
                &SetShaderSharedMemoryWindow {
                    base: WINDOWS.shared,
                },
            )?;
            Ok(Pending::Nothing)
        })?;
        Ok(())
    }

    /// Its number among the streams of its context.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// How far its work has got.
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// The timeline value of the newest submission.
    pub(crate) fn submitted(&self) -> u64 {
        self.progress.submitted()
    }

    /// The timeline value that the GPU has reached.
    pub(crate) fn completed(&self) -> u64 {
        self.progress.completed()
    }

    /// Whether a fault ended the stream.
    pub(crate) fn is_dead(&self) -> bool {
        self.group.is_dead()
    }

    /// Whether the work up to `value` has ended, or never will since the stream is dead.
    pub(crate) fn is_over(&self, value: u64) -> bool {
        self.progress.is_over(value)
    }

    /// The page of host memory with the timeline.
    pub(super) fn page(&self) -> &Arc<Allocation> {
        self.channel.page_memory()
    }

    /// Where the timeline lies.
    pub(super) fn timeline_va(&self) -> GpuVa {
        self.channel.page_va(TIMELINE)
    }

    /// Has later work wait on the GPU until the timeline of `other`, of the same context, has reached `value`.
    pub(crate) fn wait_on_gpu(
        &self,
        context: &ContextInner,
        other: &Self,
        value: u64,
    ) -> Result<(), Error> {
        let page = Arc::clone(other.page()).into();
        self.wait_on_page(context, other.timeline_va(), value, page)
    }

    /// Has later work wait on the GPU until the timeline at an address in `page` has reached `value`.
    pub(super) fn wait_on_page(
        &self,
        context: &ContextInner,
        at: GpuVa,
        value: u64,
        page: Held,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let own = self.submit(context, &mut state, Work::Wait, |push, _| {
            push.write(Subchannel::HOST, &SemAcquire::geq(at, value))?;
            Ok(Pending::Nothing)
        })?;
        let slot = state.cursor.slot(own - 1);
        if let Some(place) = state.awaited.get_mut(slot as usize) {
            *place = Some(page);
        }
        Ok(())
    }

    /// Submits nothing but the signal that all before it has ended.
    pub(crate) fn mark(&self, context: &ContextInner) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        self.submit(context, &mut state, Work::Mark, |_, _| Ok(Pending::Nothing))
    }

    /// The GPU's time in nanoseconds at which `value` was reached, if it is the newest value that was.
    pub(crate) fn time_of(&self, value: u64) -> Option<u64> {
        let page = self.channel.page_memory().mapping().ok()?;
        // Payload and time come together: the same payload on both sides of the time says that it is its own.
        let reached = protocol::timeline(|| page.read_u64(TIMELINE)) == value;
        let time = protocol::timeline(|| page.read_u64(TIMELINE + 8));
        let still = page.read_u64(TIMELINE) == value;
        (reached && still && time != 0).then_some(time)
    }

    /// Has the stream record its submissions for a profile.
    pub(crate) fn record(&self, context: &ContextInner, sink: &Arc<Sink>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let recording = state.recorder.as_ref();
        if self.is_dead() || recording.is_some_and(|recorder| recorder.is_for(sink)) {
            return Ok(());
        }
        let slots = match &state.slots {
            Some(slots) => Arc::clone(slots),
            None => {
                let slots =
                    context.allocate(profile::SLOTS_BYTES, Placement::Pinned, Use::Stream)?;
                // No submission has the number 0.
                let length = slots.mapping()?.len();
                slots.mapping()?.fill(0, length, 0)?;
                Arc::clone(state.slots.insert(Arc::new(slots)))
            }
        };
        state.recorder = Some(Recorder::new(sink, self.id, slots));
        Ok(())
    }

    /// Ends the recording for a profile, after what was recorded has ended if it is to wait for that.
    pub(crate) fn stop_recording(&self, sink: &Arc<Sink>, wait: bool) {
        let mut state = lock(&self.state);
        let own = |recorder: &mut Recorder| recorder.is_for(sink);
        let recorder = state.recorder.take_if(own);
        drop(state);
        if let (Some(recorder), true) = (recorder, wait) {
            if let Some(newest) = recorder.newest() {
                self.wait_raw(newest, self.limit);
            }
            self.read_back(recorder);
        }
    }

    /// Reads back the last times that were recorded. Some come after the signal of their work, though not long.
    fn read_back(&self, mut recorder: Recorder) {
        const LAST_TIME: Duration = Duration::from_millis(100);
        let (completed, mut done) = (self.completed(), false);
        if recorder.newest().is_some_and(|newest| newest <= completed) {
            let collect = || {
                done = recorder.collect(completed);
                done
            };
            wait::wait(LAST_TIME, collect, || self.is_dead(), || ());
        } else {
            recorder.collect(completed);
        }
        recorder.give_up();
    }

    /// Publishes the words that `fill` writes, followed by the release of the timeline, as one entry.
    ///
    /// `fill` is given the value that the submission will reach, and says what the next work must wait for.
    pub(super) fn submit(
        &self,
        context: &ContextInner,
        state: &mut State,
        work: Work<'_>,
        fill: impl FnOnce(&mut PushWriter<'_>, u64) -> Result<Pending, Error>,
    ) -> Result<u64, Error> {
        self.check_alive(context, state)?;
        let value = self.submitted() + 1;
        // Not recording costs this branch.
        let recorded = match &state.recorder {
            Some(recorder) => work
                .about()
                .map(|about| (about, recorder.now(), recorder.slot(value))),
            None => None,
        };
        let slot_of_times = recorded.as_ref().map(|(_, _, slot)| *slot);
        let timeline = self.channel.page_va(TIMELINE);
        let mut words = [0; WORDS];
        let mut push = PushWriter::new(&mut words);
        // Where the engine signals on its own, later work is held until it has.
        let signal = match state.pending {
            Pending::Nothing => None,
            Pending::Copy => Some(timeline),
            Pending::Grid => Some(self.channel.area_va(ORDER)),
        };
        if let Some(signal) = signal {
            push.write(Subchannel::HOST, &SemAcquire::geq(signal, value - 1))?;
        }
        if let Some(times) = slot_of_times {
            times.start(&mut push)?;
        }
        let pending = fill(&mut push, value)?;
        if let Some(times) = slot_of_times {
            match (pending, work) {
                (Pending::Nothing, _) => times.end(&mut push)?,
                (_, Work::Copy { .. }) => times.end_of_copy(&mut push)?,
                _ => times.end_of_signalled(&mut push, timeline)?,
            }
        }
        if pending == Pending::Nothing {
            push.write(
                Subchannel::HOST,
                &SemRelease::with_timestamp(timeline, value),
            )?;
        }
        // Where times are recorded the host waits for the end of each work.
        let pending = slot_of_times.map_or(pending, |_| Pending::Nothing);
        let words = push.finish();
        self.enqueue(context, state, work, value, [&[], words], pending)?;
        if let (Some(recorder), Some((about, begun, _))) = (&mut state.recorder, recorded) {
            recorder.note(value, about, begun);
        }
        Ok(value)
    }

    /// Refuses work on a stream that a fault has ended: of what is known to be dead, the memory is free already.
    pub(super) fn check_alive(
        &self,
        context: &ContextInner,
        state: &mut State,
    ) -> Result<(), Error> {
        if state.fault.is_some() || self.is_dead() {
            return Err(self.fail(context, state));
        }
        Ok(())
    }

    /// Publishes words, which lie in two places, as one entry: the submission of this value.
    pub(super) fn enqueue(
        &self,
        context: &ContextInner,
        state: &mut State,
        work: Work<'_>,
        value: u64,
        [first, rest]: [&[u32]; 2],
        pending: Pending,
    ) -> Result<(), Error> {
        let bytes = size_of_val(first) as u64;
        let total = bytes + size_of_val(rest) as u64;
        // First what may fail, so that no space is taken that no submission stands for.
        self.make_slot(context, state)?;
        let at = COMMANDS + self.take(context, state, Which::Commands, total, 4)?;
        let area = self.channel.area()?;
        area.write(at as usize, zerocopy::IntoBytes::as_bytes(first))?;
        area.write((at + bytes) as usize, zerocopy::IntoBytes::as_bytes(rest))?;
        #[cfg(feature = "tracing")]
        for (at, words) in [(at, first), (at + bytes, rest)] {
            if !words.is_empty() {
                super::dump::Submission {
                    stream: self.id,
                    value,
                    work,
                    at: self.channel.area_va(at),
                    words,
                    qmd: state.scratch.qmd(),
                }
                .dump(context.classes());
            }
        }
        let entry = GpEntry::new(self.channel.area_va(at), (first.len() + rest.len()) as u32)?;
        self.publish_entry(state, work, value, entry, pending)
    }

    /// Publishes an entry as the submission of this value; the ring has a slot for it.
    pub(super) fn publish_entry(
        &self,
        state: &mut State,
        work: Work<'_>,
        value: u64,
        entry: GpEntry,
        pending: Pending,
    ) -> Result<(), Error> {
        let Some(slot) = state.cursor.push() else {
            return Err(Error::Unsupported(
                "the ring has no free slot although one was made".into(),
            ));
        };
        let mark = Mark {
            commands: state.commands.mark(),
            launches: state.launches.mark(),
        };
        if let Some(place) = state.marks.get_mut(slot as usize) {
            *place = mark;
        }
        if let Some(place) = state.labels.get_mut(slot as usize) {
            *place = work.label().cloned();
        }
        if let Some(place) = state.awaited.get_mut(slot as usize) {
            *place = None;
        }
        state.pending = pending;
        self.progress.submitted.store(value, Ordering::Release);
        self.channel.publish(slot, entry, state.cursor.gp_put())
    }

    /// Takes space of one of the rings, waiting for work in flight to give some back.
    pub(super) fn take(
        &self,
        context: &ContextInner,
        state: &mut State,
        which: Which,
        bytes: u64,
        align: u64,
    ) -> Result<u64, Error> {
        let ring = |state: &mut State| match which {
            Which::Commands => state.commands.take(bytes, align),
            Which::Launches => state.launches.take(bytes, align),
        };
        let capacity = match which {
            Which::Commands => state.commands.capacity(),
            Which::Launches => state.launches.capacity(),
        };
        if bytes > capacity {
            return Err(Error::InvalidArgument(format!(
                "a submission of {bytes} bytes is larger than the stream's memory of {capacity}"
            )));
        }
        loop {
            if let Some(offset) = ring(state) {
                return Ok(offset);
            }
            self.reclaim_one(context, state)?;
        }
    }

    /// Makes sure that the ring has a free slot.
    pub(super) fn make_slot(&self, context: &ContextInner, state: &mut State) -> Result<(), Error> {
        while state.cursor.is_full() {
            self.reclaim_one(context, state)?;
        }
        Ok(())
    }

    /// Gives back what ended submissions used, waiting for the oldest one where none has ended.
    fn reclaim_one(&self, context: &ContextInner, state: &mut State) -> Result<(), Error> {
        let oldest = state.cursor.get() + 1;
        if oldest > self.submitted() {
            return Err(Error::Unsupported(
                "the stream's memory is full although no work is in flight".into(),
            ));
        }
        self.wait_locked(context, state, oldest, self.limit)?;
        self.reclaim_completed(state);
        Ok(())
    }

    /// Gives back what ended submissions used, unless the stream is in use at this moment: the caller may hold its state.
    pub(crate) fn try_reclaim(&self) {
        if let Some(mut state) = self.state_if_free() {
            self.reclaim_completed(&mut state);
        }
    }

    fn reclaim_completed(&self, state: &mut State) {
        // Submissions and entries count alike: value `n` is entry `n - 1`.
        let completed = self.completed().min(self.submitted());
        if let Some(recorder) = &mut state.recorder {
            recorder.collect(completed);
        }
        while state.cursor.get() < completed {
            let Some(slot) = state.cursor.pop() else {
                break;
            };
            if let Some(place) = state.awaited.get_mut(slot as usize) {
                *place = None;
            }
            if let Some(mark) = state.marks.get(slot as usize).copied() {
                state.commands.release(mark.commands);
                state.launches.release(mark.launches);
            }
        }
    }

    /// Waits until `value` is reached.
    pub(crate) fn wait(
        &self,
        context: &ContextInner,
        value: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        match self.wait_raw(value, limit) {
            Outcome::Done => Ok(()),
            Outcome::TimedOut => {
                // Who holds the state may be waiting, too, and longer.
                let state = self.state_if_free();
                Err(self.timeout(context, state.as_deref(), value, limit))
            }
            Outcome::Failed => Err(self.fail(context, &mut lock(&self.state))),
        }
    }

    /// [`StreamInner::wait`] for a caller that holds the state; a fault is found by the next submission.
    pub(super) fn wait_locked(
        &self,
        context: &ContextInner,
        state: &State,
        value: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        match self.wait_raw(value, limit) {
            Outcome::Done => Ok(()),
            Outcome::TimedOut => Err(self.timeout(context, Some(state), value, limit)),
            Outcome::Failed => Err(Error::Fault(self.report(context, state))),
        }
    }

    fn wait_raw(&self, value: u64, limit: Duration) -> Outcome {
        wait::wait(
            limit,
            || self.completed() >= value,
            || self.is_dead() || self.channel.notification().is_some(),
            || self.group.ring_all(),
        )
    }

    /// Waits for all work submitted so far.
    pub(crate) fn synchronize(&self, context: &ContextInner, limit: Duration) -> Result<(), Error> {
        self.wait(context, self.submitted(), limit)
    }

    /// Waits until `value` is reached, whatever comes of it; false where it is not after the limit. It takes no lock, so
    /// that a caller may hold any.
    pub(super) fn settle(&self, value: u64, limit: Duration) -> bool {
        let outcome = self.wait_raw(value, limit);
        if outcome == Outcome::Failed {
            self.group.set_dead();
        }
        outcome != Outcome::TimedOut
    }

    /// The state, unless somebody is submitting just now.
    fn state_if_free(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn timeout(
        &self,
        context: &ContextInner,
        state: Option<&State>,
        value: u64,
        limit: Duration,
    ) -> Error {
        let report = FaultReport::of_time_limit(
            context,
            &self.channel,
            self.all_in_flight(context, state),
            limit,
        );
        let next = self.completed() + 1;
        let mut what = format!("submission {next} of {value} on this stream");
        if let Some(kernel) = &report.kernel {
            what.push_str(&format!(" (kernel {kernel})"));
        }
        Error::Timeout {
            what,
            limit,
            report: Some(Arc::new(report)),
        }
    }

    /// All that can be known of the stream's state.
    pub(super) fn diagnose(&self, context: &ContextInner) -> FaultReport {
        let mut in_flight = self.all_in_flight(context, self.state_if_free().as_deref());
        let is_alive = !self.is_dead();
        if let Some(own) = &mut in_flight.own {
            self.read_unread(context, own);
        }
        FaultReport::read(context, &self.channel, in_flight, is_alive)
    }

    /// What is in flight on the stream and on the others of its group.
    fn all_in_flight(&self, context: &ContextInner, state: Option<&State>) -> InFlight {
        InFlight {
            own: self.in_flight(context, state),
            beside: context.in_flight_beside(self),
        }
    }

    /// What is in flight on this stream if it is another one of the group of `stream`, and nobody uses it just now.
    pub(crate) fn in_flight_if_beside(
        &self,
        context: &ContextInner,
        stream: &Self,
    ) -> Option<Submission> {
        if std::ptr::eq(self, stream) || !Arc::ptr_eq(&self.group, &stream.group) {
            return None;
        }
        let state = self.state_if_free()?;
        self.in_flight(context, Some(&state))
    }

    /// Has the end of the stream wait for nothing. What is made from now on does not end with it.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        if !self.is_over(self.submitted()) {
            self.group.close();
        }
    }

    /// Whether it was abandoned.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// The kernel of a submission.
    pub(super) fn label(&self, state: &State, value: u64) -> Option<Arc<str>> {
        let slot = state.cursor.slot(value.checked_sub(1)?);
        state.labels.get(slot as usize).cloned().flatten()
    }

    /// Finds out what went wrong, once, and ends the stream.
    pub(super) fn fail(&self, context: &ContextInner, state: &mut State) -> Error {
        let report = match &state.fault {
            Some(report) => Arc::clone(report),
            None => self.report(context, state),
        };
        state.fault = Some(Arc::clone(&report));
        Error::Fault(report)
    }

    /// The fault that ended work of the stream, if nobody was told of it yet: who comes after that work would take it for
    /// done.
    pub(crate) fn untold_fault(&self, context: &ContextInner) -> Option<Error> {
        let lost = self.progress.is_dead()
            && !self.is_abandoned()
            && !self.told.load(Ordering::Acquire)
            && self.completed() < self.submitted();
        lost.then(|| self.fail(context, &mut lock(&self.state)))
    }

    fn report(&self, context: &ContextInner, state: &State) -> Arc<FaultReport> {
        self.told.store(true, Ordering::Release);
        if let Some(report) = &state.fault {
            return Arc::clone(report);
        }
        self.group.set_dead();
        let in_flight = self.all_in_flight(context, Some(state));
        Arc::new(FaultReport::read(context, &self.channel, in_flight, false))
    }
}

impl Drop for StreamInner {
    /// Work in flight may use memory that is freed after this: it ends first. What does not end within the
    /// device's limit is ended with the channel, and the driver then ends all channels of the group (seen on an
    /// H200: notifier code 45, preemptive removal), so that streams made later need a new one.
    fn drop(&mut self) {
        let limit = if self.is_abandoned() {
            Duration::ZERO
        } else {
            self.limit
        };
        if !self.is_over(self.submitted())
            && self.wait_raw(self.submitted(), limit) != Outcome::Done
        {
            self.group.close();
        }
        if let Some(recorder) = lock(&self.state).recorder.take() {
            self.read_back(recorder);
        }
    }
}

/// Which ring of a stream's memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Commands,
    Launches,
}
