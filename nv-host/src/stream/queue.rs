//! A stream's channel and what is in flight on it: submission, flow control, waiting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nv_proto::gpfifo::{GpEntry, RingCursor};
use nv_proto::push::compute::{SetShaderLocalMemoryWindow, SetShaderSharedMemoryWindow};
use nv_proto::push::host::{SemAcquire, SemRelease, SetObject};
use nv_proto::push::{PushWriter, Subchannel};

use crate::Error;
use crate::channel::{
    COMMAND_BYTES, COMMANDS, Channel, ENGINE_SEMAPHORE, LAUNCH_BYTES, RING_ENTRIES, TIMELINE,
};
use crate::context::{ContextInner, lock};
use crate::fault::FaultReport;
use crate::group::Group;
use crate::launch::{LaunchScratch, WINDOWS};
use crate::local::LocalMemory;
use crate::memory::Allocation;
use crate::protocol;
use crate::ring::Ring;
use crate::wait::{self, Outcome};

/// The engine that did the last work, if it signals its end without the host having waited for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pending {
    /// Nothing that the next work must wait for: the host itself waited.
    Nothing,
    /// A copy whose end the copy engine signals.
    Copy,
}

/// What a submission is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work<'a> {
    /// The set-up of the channel.
    SetUp,
    /// A launch of the kernel of this name.
    Launch(&'a Arc<str>),
    /// A copy of so many bytes.
    Copy,
    /// A wait for another stream.
    Wait,
}

impl<'a> Work<'a> {
    /// The kernel that a fault of the submission is told to be in.
    fn label(self) -> Option<&'a Arc<str>> {
        match self {
            Self::Launch(kernel) => Some(kernel),
            _ => None,
        }
    }
}

/// What lies behind a submission, to be given back once it has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    commands: u64,
    launches: u64,
}

/// A stream's channel and what is in flight on it.
#[derive(Debug)]
pub(crate) struct StreamInner {
    // Fields end in this order: what runs on the channel uses memory that the state keeps, and the progress says
    // when all of it has ended.
    pub(super) channel: Channel,
    pub(super) state: Mutex<State>,
    progress: Arc<Progress>,
    group: Arc<Group>,
    pub(super) limit: Duration,
}

/// How far a stream's work has got. It is there for as long as its channel is, also while the stream is being
/// dropped: one that is gone has nothing in flight.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The timeline value of the newest submission: submissions count up from 1.
    submitted: AtomicU64,
    /// The page of the channel with the timeline.
    page: Arc<Allocation>,
    /// Whether the channel was ended with work in flight.
    cut_off: AtomicBool,
    group: Arc<Group>,
}

impl Progress {
    /// The timeline value of the newest submission.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    /// The timeline value that the GPU has reached.
    fn completed(&self) -> u64 {
        self.page
            .mapping()
            .map_or(0, |page| protocol::timeline(|| page.read_u64(TIMELINE)))
    }

    /// Whether the work up to `value` has ended, or never will since the stream is dead.
    pub(crate) fn is_over(&self, value: u64) -> bool {
        self.completed() >= value || self.group.is_dead()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The channel is gone, and the driver has ended all of its group with it.
        if self.cut_off.load(Ordering::Acquire) {
            self.group.set_dead();
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    cursor: RingCursor,
    commands: Ring,
    pub(super) launches: Ring,
    /// By ring slot.
    marks: Box<[Mark]>,
    pending: Pending,
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
    awaited: Box<[Option<Arc<Allocation>>]>,
    fault: Option<Arc<FaultReport>>,
}

/// Words of one submission: the longest is a first launch with its set-up.
const WORDS: usize = 96;

impl StreamInner {
    /// Makes a stream in `group` and sets its channel up.
    pub(crate) fn new(context: &ContextInner, group: &Arc<Group>) -> Result<Self, Error> {
        Self::starting_at(context, group, 0, 0)
    }

    /// A stream as after `submissions`, a multiple of the ring's entries, and `copies`.
    pub(crate) fn starting_at(
        context: &ContextInner,
        group: &Arc<Group>,
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
        };
        let progress = Arc::new(Progress {
            submitted: AtomicU64::new(submissions),
            page: Arc::clone(channel.page_memory()),
            cut_off: AtomicBool::new(false),
            group: Arc::clone(group),
        });
        let stream = Self {
            channel,
            state: Mutex::new(state),
            progress,
            group: Arc::clone(group),
            limit: context.limit(),
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

    /// Has later work wait on the GPU until the timeline of `other` has reached `value`.
    pub(super) fn wait_on_gpu(
        &self,
        context: &ContextInner,
        other: &Self,
        value: u64,
    ) -> Result<(), Error> {
        let at = other.channel.page_va(TIMELINE);
        let mut state = lock(&self.state);
        let own = self.submit(context, &mut state, Work::Wait, |push, _| {
            push.write(Subchannel::HOST, &SemAcquire::geq(at, value))?;
            Ok(Pending::Nothing)
        })?;
        let slot = state.cursor.slot(own - 1);
        if let Some(place) = state.awaited.get_mut(slot as usize) {
            *place = Some(Arc::clone(other.channel.page_memory()));
        }
        Ok(())
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
        // Of what is known to be dead, the memory is free already.
        if state.fault.is_some() || self.is_dead() {
            return Err(self.fail(context, state));
        }
        let value = self.submitted() + 1;
        let timeline = self.channel.page_va(TIMELINE);
        let mut words = [0; WORDS];
        let mut push = PushWriter::new(&mut words);
        if state.pending == Pending::Copy {
            // The copy engine signals on its own: later work is held until it has.
            push.write(Subchannel::HOST, &SemAcquire::geq(timeline, value - 1))?;
        }
        let pending = fill(&mut push, value)?;
        if pending == Pending::Nothing {
            push.write(
                Subchannel::HOST,
                &SemRelease::with_timestamp(timeline, value),
            )?;
        }
        let words = push.finish();

        let bytes = size_of_val(words) as u64;
        // First what may fail, so that no space is taken that no submission stands for.
        self.make_slot(context, state)?;
        let offset = self.take(context, state, Which::Commands, bytes, 4)?;
        let at = COMMANDS + offset;
        self.channel
            .area()?
            .write(at as usize, zerocopy::IntoBytes::as_bytes(words))?;
        let entry = GpEntry::new(self.channel.area_va(at), words.len() as u32)?;

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
        self.channel.publish(slot, entry, state.cursor.gp_put())?;
        Ok(value)
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
    fn make_slot(&self, context: &ContextInner, state: &mut State) -> Result<(), Error> {
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
        // Submissions and entries count alike: value `n` is entry `n - 1`.
        let completed = self.completed().min(self.submitted());
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
        Ok(())
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
            Outcome::TimedOut => Err(self.timeout(context, &lock(&self.state), value, limit)),
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
            Outcome::TimedOut => Err(self.timeout(context, state, value, limit)),
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

    /// Waits for all work submitted so far, whatever comes of it; false where it goes on after the limit. It takes no lock,
    /// so that a caller may hold any.
    pub(crate) fn settle(&self, limit: Duration) -> bool {
        let outcome = self.wait_raw(self.submitted(), limit);
        if outcome == Outcome::Failed {
            self.group.set_dead();
        }
        outcome != Outcome::TimedOut
    }

    fn timeout(&self, context: &ContextInner, state: &State, value: u64, limit: Duration) -> Error {
        let next = self.completed() + 1;
        let mut what = format!("submission {next} of {value} on this stream");
        if let Some(label) = self.label(state, next) {
            what.push_str(&format!(" (kernel {label})"));
        }
        // A simulated GPU knows why it hangs.
        let driver = &context.objects().driver;
        if let Some(why) = driver.explain_fault(self.channel.handle()) {
            what.push_str(&format!(" ({why})"));
        }
        Error::Timeout { what, limit }
    }

    /// The kernel of a submission.
    fn label(&self, state: &State, value: u64) -> Option<Arc<str>> {
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

    fn report(&self, context: &ContextInner, state: &State) -> Arc<FaultReport> {
        if let Some(report) = &state.fault {
            return Arc::clone(report);
        }
        self.group.set_dead();
        let launch = self.label(state, self.completed() + 1);
        Arc::new(FaultReport::read(context, &self.channel, launch))
    }
}

impl Drop for StreamInner {
    /// Work in flight may use memory that is freed after this: it ends first. What does not end within the
    /// device's limit is ended with the channel, and the driver then ends all channels of the group (seen on an
    /// H200: notifier code 45, preemptive removal), so that streams made later need a new one.
    fn drop(&mut self) {
        if !self.is_over(self.submitted())
            && self.wait_raw(self.submitted(), self.limit) != Outcome::Done
        {
            self.group.close();
            self.progress.cut_off.store(true, Ordering::Release);
        }
    }
}

/// Which ring of a stream's memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Commands,
    Launches,
}
