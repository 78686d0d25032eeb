//! Streams: work that runs in the order in which it was submitted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nv_proto::gpfifo::{GpEntry, RingCursor};
use nv_proto::push::compute::{
    InvalidateShaderCaches, SendPcas, SendSignalingPcas, SendSignalingPcas2, SetShaderLocalMemory,
    SetShaderLocalMemoryNonThrottled, SetShaderLocalMemoryWindow, SetShaderSharedMemoryWindow,
};
use nv_proto::push::copy::{
    LINEAR_STEP, LaunchDma, LineLengthIn, Offsets, SemaphoreType, SetSemaphore, SetSemaphore64,
};
use nv_proto::push::host::{
    SemAcquire, SemExecute, SemOperation, SemRelease, Semaphore, SetObject,
};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::{ClassId, GpuVa};

use crate::Error;
use crate::channel::{
    COMMAND_BYTES, COMMANDS, Channel, ENGINE_SEMAPHORE, LAUNCH_BYTES, LAUNCHES, RING_ENTRIES,
    TIMELINE,
};
use crate::device::{Device, DeviceInner, LocalMemory, lock};
use crate::fault::FaultReport;
use crate::group::Group;
use crate::launch::{Launch, LaunchScratch, WINDOWS};
use crate::memory::{Allocation, Buffer, Element};
use crate::module::Function;
use crate::ring::Ring;
use crate::wait::{self, Outcome};

/// Work that runs in the order in which it was submitted, beside that of other streams.
///
/// A clone is the same stream. Streams may be used from several threads: each submission is whole, and which
/// comes first is as the threads happen to meet.
#[derive(Clone, Debug)]
pub struct Stream {
    inner: Arc<StreamInner>,
    device: Device,
}

/// A moment of a stream: reached once the work submitted before it has ended.
#[derive(Clone, Debug)]
pub struct Event {
    stream: Stream,
    value: u64,
}

impl Stream {
    pub(crate) fn new(device: Device, inner: Arc<StreamInner>) -> Self {
        Self { inner, device }
    }

    /// The device that it belongs to.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Begins a launch of `function`; [`Launch::submit`] ends it.
    pub fn launch<'a>(&'a self, function: &'a Function) -> Launch<'a> {
        Launch::new(self, function)
    }

    /// Copies all of `source` to the start of `target`; it returns once the copy is submitted.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `target` is shorter or of another device.
    pub fn copy<T: Element>(&self, target: &Buffer<T>, source: &Buffer<T>) -> Result<Event, Error> {
        if source.len() > target.len() {
            return Err(Error::InvalidArgument(format!(
                "{} values do not fit a buffer of {}",
                source.len(),
                target.len()
            )));
        }
        for buffer in [target.device(), source.device()] {
            if !Arc::ptr_eq(buffer.inner(), self.device.inner()) {
                return Err(Error::InvalidArgument("a buffer of another device".into()));
            }
        }
        let value = self.inner.copy(
            self.device.inner(),
            target.va(),
            source.va(),
            source.bytes() as u64,
        )?;
        Ok(Event {
            stream: self.clone(),
            value,
        })
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
    /// [`Error::InvalidArgument`] for an event of another device; [`Error::Fault`] for one that a fault keeps from
    /// ever being reached.
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        if !Arc::ptr_eq(event.stream.device.inner(), self.device.inner()) {
            return Err(Error::InvalidArgument("an event of another device".into()));
        }
        let other = &event.stream.inner;
        let dead = other.is_dead();
        // What was reached before the stream died counts as reached.
        if event.is_reached() {
            return Ok(());
        }
        if dead {
            return Err(other.fail(self.device.inner(), &mut lock(&other.state)));
        }
        self.inner
            .wait_on_gpu(self.device.inner(), other, event.value)
    }

    /// Waits until all work submitted so far has ended, for as long as the device's limit allows.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn synchronize(&self) -> Result<(), Error> {
        self.synchronize_within(self.device.inner().limit())
    }

    /// Waits until all work submitted so far has ended, at most for `limit`.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn synchronize_within(&self, limit: Duration) -> Result<(), Error> {
        self.inner.synchronize(self.device.inner(), limit)
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
        self.wait_within(self.stream.device.inner().limit())
    }

    /// Waits until it is reached, at most for `limit`.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Fault`].
    pub fn wait_within(&self, limit: Duration) -> Result<(), Error> {
        self.stream
            .inner
            .wait(self.stream.device.inner(), self.value, limit)
    }
}

/// The engine that did the last work, if it signals its end without the host having waited for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pending {
    /// Nothing that the next work must wait for: the host itself waited.
    Nothing,
    /// A copy whose end the copy engine signals.
    Copy,
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
    channel: Channel,
    state: Mutex<State>,
    progress: Arc<Progress>,
    group: Arc<Group>,
    limit: Duration,
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
            .map_or(0, |page| page.read_u64(TIMELINE))
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
struct State {
    cursor: RingCursor,
    commands: Ring,
    launches: Ring,
    /// By ring slot.
    marks: Box<[Mark]>,
    pending: Pending,
    /// The local memory that the channel was last told of.
    local: LocalMemory,
    /// The modules that the channel's instruction caches are up to date with.
    code_generation: u64,
    scratch: LaunchScratch,
    /// The names of the kernels in flight, by ring slot, for fault reports.
    labels: Box<[Option<Arc<str>>]>,
    /// The pages of other streams whose timelines the work in flight waits for, by ring slot: they stay also when
    /// their stream is dropped.
    awaited: Box<[Option<Arc<Allocation>>]>,
    fault: Option<Arc<FaultReport>>,
}

/// Words of one submission: the longest is a first launch with its set-up.
const WORDS: usize = 96;

/// The copy class from which on the copy engine releases 64-bit payloads (`clc7b5.h`).
const FIRST_WIDE_COPY_CLASS: u32 = 0xc7b5;

impl StreamInner {
    /// Makes a stream in `group` and sets its channel up.
    pub(crate) fn new(device: &DeviceInner, group: &Arc<Group>) -> Result<Self, Error> {
        let channel = Channel::new(device, group)?;
        let slots = RING_ENTRIES as usize;
        let state = State {
            cursor: RingCursor::new(RING_ENTRIES)?,
            commands: Ring::new(COMMAND_BYTES),
            launches: Ring::new(LAUNCH_BYTES),
            marks: vec![Mark::default(); slots].into_boxed_slice(),
            pending: Pending::Nothing,
            local: LocalMemory::default(),
            code_generation: 0,
            scratch: LaunchScratch::new(device)?,
            labels: vec![None; slots].into_boxed_slice(),
            awaited: vec![None; slots].into_boxed_slice(),
            fault: None,
        };
        let progress = Arc::new(Progress {
            submitted: AtomicU64::new(0),
            page: Arc::clone(channel.page_memory()),
            cut_off: AtomicBool::new(false),
            group: Arc::clone(group),
        });
        let stream = Self {
            channel,
            state: Mutex::new(state),
            progress,
            group: Arc::clone(group),
            limit: device.limit(),
        };
        stream.set_up(device)?;
        Ok(stream)
    }

    /// Binds the engines' classes and sets the windows of generic addresses.
    fn set_up(&self, device: &DeviceInner) -> Result<(), Error> {
        let classes = *device.classes();
        let mut state = lock(&self.state);
        self.submit(device, &mut state, None, |push, _| {
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

    /// Submits a copy; the value is reached once it has ended.
    pub(crate) fn copy(
        &self,
        device: &DeviceInner,
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    ) -> Result<u64, Error> {
        let wide = device.classes().copy.0 >= FIRST_WIDE_COPY_CLASS;
        let timeline = self.channel.page_va(TIMELINE);
        let engine = self.channel.page_va(ENGINE_SEMAPHORE);
        let mut state = lock(&self.state);
        let mut done = 0;
        let mut last = self.submitted();
        // As many pieces to a submission as its words hold; each piece but the last of all is followed by
        // others that wait for it (non-pipelined).
        while done < bytes {
            last = self.submit(device, &mut state, None, |push, value| {
                for _ in 0..PIECES_PER_SUBMISSION {
                    let piece = (bytes - done).min(u64::from(LINEAR_STEP));
                    if piece == 0 {
                        break;
                    }
                    let offsets = Offsets {
                        src: GpuVa(source.0 + done),
                        dst: GpuVa(target.0 + done),
                    };
                    push.write(Subchannel::COPY, &offsets)?;
                    let length = u32::try_from(piece).unwrap_or(LINEAR_STEP);
                    push.write(Subchannel::COPY, &LineLengthIn(length))?;
                    push.write(Subchannel::COPY, &LaunchDma::linear())?;
                    done += piece;
                }
                if wide {
                    push.write(
                        Subchannel::COPY,
                        &SetSemaphore64 {
                            at: timeline,
                            payload: value,
                        },
                    )?;
                    push.write(
                        Subchannel::COPY,
                        &LaunchDma {
                            flush_enable: true,
                            semaphore_type: SemaphoreType::FourWord,
                            semaphore_payload_two_word: true,
                            ..LaunchDma::default()
                        },
                    )?;
                    Ok(Pending::Copy)
                } else {
                    // A one-word payload, which the host turns into the 64-bit timeline: submissions in
                    // flight are far fewer than 2^32, so equal words are equal values.
                    let payload = GpuVa(value).lo();
                    push.write(
                        Subchannel::COPY,
                        &SetSemaphore {
                            at: engine,
                            payload,
                        },
                    )?;
                    push.write(
                        Subchannel::COPY,
                        &LaunchDma {
                            flush_enable: true,
                            semaphore_type: SemaphoreType::OneWord,
                            ..LaunchDma::default()
                        },
                    )?;
                    let execute = SemExecute {
                        operation: SemOperation::Acquire,
                        ..SemExecute::default()
                    };
                    let acquire = Semaphore {
                        at: engine,
                        payload: payload.into(),
                        execute,
                    };
                    push.write(Subchannel::HOST, &acquire)?;
                    Ok(Pending::Nothing)
                }
            })?;
        }
        Ok(last)
    }

    /// Has later work wait on the GPU until the timeline of `other` has reached `value`.
    fn wait_on_gpu(&self, device: &DeviceInner, other: &Self, value: u64) -> Result<(), Error> {
        let at = other.channel.page_va(TIMELINE);
        let mut state = lock(&self.state);
        let own = self.submit(device, &mut state, None, |push, _| {
            push.write(Subchannel::HOST, &SemAcquire::geq(at, value))?;
            Ok(Pending::Nothing)
        })?;
        let slot = state.cursor.slot(own - 1);
        if let Some(place) = state.awaited.get_mut(slot as usize) {
            *place = Some(Arc::clone(other.channel.page_memory()));
        }
        Ok(())
    }

    /// Submits one launch; the value is reached once the kernel has ended.
    pub(crate) fn launch(&self, device: &DeviceInner, launch: &Launch<'_>) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        let before = state.launches.mark();
        let launched = self.launch_locked(device, &mut state, launch);
        if launched.is_err() {
            // No submission stands for the space, so none would give it back.
            state.launches.rewind(before);
        }
        launched
    }

    fn launch_locked(
        &self,
        device: &DeviceInner,
        state: &mut State,
        launch: &Launch<'_>,
    ) -> Result<u64, Error> {
        let function = launch.function().inner();
        let local = self.local_for(device, state, function.local_bytes)?;
        let local_bytes = local.as_ref().unwrap_or(&state.local).per_thread;

        // The shape is checked before any of the stream's memory is taken; only a cooperative one depends on
        // where that memory is. The cache is not held meanwhile: other streams may launch the same kernel.
        let anywhere = launch.shape(self.channel.area_va(LAUNCHES));
        let bank0 = lock(&function.shapes)
            .get(device, function, &anywhere, local_bytes)?
            .bank0_bytes();
        let size = LaunchScratch::size(bank0, launch.is_cooperative());
        let offset =
            LAUNCHES + self.take(device, state, Which::Launches, size as u64, LAUNCH_ALIGN)?;
        let meeting = LaunchScratch::size(bank0, false) as u64;
        let qmd = {
            let shape = launch.shape(self.channel.area_va(offset + meeting));
            let mut cache = lock(&function.shapes);
            let shaped = cache.get(device, function, &shape, local_bytes)?;
            let at = self.channel.area_va(offset);
            let (bytes, qmd) = state
                .scratch
                .encode(launch, shaped, at, self.submitted() + 1)?;
            self.channel.area()?.write(offset as usize, bytes)?;
            qmd
        };

        let compute = device.classes().compute;
        let generation = device.code_generation();
        let stale = state.code_generation != generation;
        let label = launch.function().label();
        let value = self.submit(device, state, Some(label), |push, _| {
            if let Some(local) = &local {
                set_local_memory(push, local)?;
            }
            if stale {
                let drop_code = InvalidateShaderCaches {
                    instruction: true,
                    constant: true,
                    ..Default::default()
                };
                push.write(Subchannel::COMPUTE, &drop_code)?;
            }
            push.write(Subchannel::COMPUTE, &SendPcas { qmd })?;
            schedule(push, compute)?;
            Ok(Pending::Nothing)
        })?;
        state.code_generation = generation;
        if let Some(local) = local {
            state.local = local;
        }
        Ok(value)
    }

    /// The local memory to tell the channel of, when it has less than `bytes` for each thread.
    fn local_for(
        &self,
        device: &DeviceInner,
        state: &State,
        bytes: u32,
    ) -> Result<Option<LocalMemory>, Error> {
        if state.local.per_thread >= bytes {
            return Ok(None);
        }
        let local = device.local_memory(bytes)?;
        // The old memory goes with `state.local`: whatever still uses it must have ended.
        if state.local.memory.is_some() {
            self.wait_locked(device, state, self.submitted(), self.limit)?;
        }
        Ok(Some(local))
    }

    /// Publishes the words that `fill` writes, followed by the release of the timeline, as one entry.
    ///
    /// `fill` is given the value that the submission will reach, and says what the next work must wait for.
    fn submit(
        &self,
        device: &DeviceInner,
        state: &mut State,
        label: Option<&Arc<str>>,
        fill: impl FnOnce(&mut PushWriter<'_>, u64) -> Result<Pending, Error>,
    ) -> Result<u64, Error> {
        // Of what is known to be dead, the memory is free already.
        if state.fault.is_some() || self.is_dead() {
            return Err(self.fail(device, state));
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
        self.make_slot(device, state)?;
        let offset = self.take(device, state, Which::Commands, bytes, 4)?;
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
            *place = label.cloned();
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
    fn take(
        &self,
        device: &DeviceInner,
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
            self.reclaim_one(device, state)?;
        }
    }

    /// Makes sure that the ring has a free slot.
    fn make_slot(&self, device: &DeviceInner, state: &mut State) -> Result<(), Error> {
        while state.cursor.is_full() {
            self.reclaim_one(device, state)?;
        }
        Ok(())
    }

    /// Gives back what ended submissions used, waiting for the oldest one where none has ended.
    fn reclaim_one(&self, device: &DeviceInner, state: &mut State) -> Result<(), Error> {
        let oldest = state.cursor.get() + 1;
        if oldest > self.submitted() {
            return Err(Error::Unsupported(
                "the stream's memory is full although no work is in flight".into(),
            ));
        }
        self.wait_locked(device, state, oldest, self.limit)?;
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
        device: &DeviceInner,
        value: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        match self.wait_raw(value, limit) {
            Outcome::Done => Ok(()),
            Outcome::TimedOut => Err(self.timeout(device, &lock(&self.state), value, limit)),
            Outcome::Failed => Err(self.fail(device, &mut lock(&self.state))),
        }
    }

    /// [`StreamInner::wait`] for a caller that holds the state; a fault is found by the next submission.
    fn wait_locked(
        &self,
        device: &DeviceInner,
        state: &State,
        value: u64,
        limit: Duration,
    ) -> Result<(), Error> {
        match self.wait_raw(value, limit) {
            Outcome::Done => Ok(()),
            Outcome::TimedOut => Err(self.timeout(device, state, value, limit)),
            Outcome::Failed => Err(Error::Fault(self.report(device, state))),
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
    pub(crate) fn synchronize(&self, device: &DeviceInner, limit: Duration) -> Result<(), Error> {
        self.wait(device, self.submitted(), limit)
    }

    /// Waits for all work submitted so far, whatever comes of it. It takes no lock, so that a caller may hold any.
    pub(crate) fn settle(&self, limit: Duration) {
        if self.wait_raw(self.submitted(), limit) == Outcome::Failed {
            self.group.set_dead();
        }
    }

    fn timeout(&self, device: &DeviceInner, state: &State, value: u64, limit: Duration) -> Error {
        let next = self.completed() + 1;
        let mut what = format!("submission {next} of {value} on this stream");
        if let Some(label) = self.label(state, next) {
            what.push_str(&format!(" (kernel {label})"));
        }
        // A simulated GPU knows why it hangs.
        let driver = &device.objects().driver;
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
    fn fail(&self, device: &DeviceInner, state: &mut State) -> Error {
        let report = match &state.fault {
            Some(report) => Arc::clone(report),
            None => self.report(device, state),
        };
        state.fault = Some(Arc::clone(&report));
        Error::Fault(report)
    }

    fn report(&self, device: &DeviceInner, state: &State) -> Arc<FaultReport> {
        if let Some(report) = &state.fault {
            return Arc::clone(report);
        }
        self.group.set_dead();
        let launch = self.label(state, self.completed() + 1);
        Arc::new(FaultReport::read(device, &self.channel, launch))
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
enum Which {
    Commands,
    Launches,
}

/// Launch descriptors are told to the GPU by address over 256.
const LAUNCH_ALIGN: u64 = 256;

/// Pieces of a copy that fit one submission's words.
const PIECES_PER_SUBMISSION: usize = 5;

/// Tells the channel of new local memory.
fn set_local_memory(push: &mut PushWriter<'_>, local: &LocalMemory) -> Result<(), Error> {
    let Some(memory) = &local.memory else {
        return Ok(());
    };
    push.write(
        Subchannel::COMPUTE,
        &SetShaderLocalMemory { at: memory.va() },
    )?;
    let size = SetShaderLocalMemoryNonThrottled {
        bytes_per_tpc: local.per_tpc,
        max_sm_count: 0xff,
    };
    push.write(Subchannel::COMPUTE, &size)?;
    Ok(())
}

/// Starts the descriptor that was named before.
fn schedule(push: &mut PushWriter<'_>, compute: ClassId) -> Result<(), Error> {
    /// The compute class from which on `SEND_SIGNALING_PCAS2_B` exists (`clc6c0.h`).
    const FIRST_PCAS2_CLASS: u32 = 0xc6c0;
    if compute.0 >= FIRST_PCAS2_CLASS {
        push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)?;
    } else {
        push.write(Subchannel::COMPUTE, &SendSignalingPcas::INVALIDATE_SCHEDULE)?;
    }
    Ok(())
}
