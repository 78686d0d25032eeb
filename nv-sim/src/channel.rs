//! Channels and channel groups.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use nv_proto::gpfifo;
use nv_proto::unit::ClassId;

use crate::fault::{Report, Stop};
use crate::host::Execution;
use crate::memory::Memory;
use crate::mmu::Space;

/// A place in memory that the hardware knows by physical address.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) memory: Arc<Memory>,
    /// In bytes, a multiple of 8.
    pub(crate) offset: u64,
}

impl Place {
    fn cell(&self, offset: u64) -> Option<&AtomicU64> {
        let index = usize::try_from((self.offset + offset) / 8).ok()?;
        self.memory.cells().get(index)
    }

    /// The word at `offset`, a multiple of 4; 0 outside the memory.
    pub(crate) fn load_u32(&self, offset: u64) -> u32 {
        let cell = self
            .cell(offset)
            .map_or(0, |cell| cell.load(Ordering::Acquire));
        (cell >> (offset % 8 * 8)) as u32
    }

    /// Stores a word at `offset`, a multiple of 4.
    pub(crate) fn store_u32(&self, offset: u64, value: u32) {
        if let Some(cell) = self.cell(offset) {
            let shift = offset % 8 * 8;
            let insert = |old: u64| Some(old & !(0xffff_ffff << shift) | u64::from(value) << shift);
            let _ = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, insert);
        }
    }

    /// Stores a double word at `offset`, a multiple of 8.
    pub(crate) fn store_u64(&self, offset: u64, value: u64) {
        if let Some(cell) = self.cell(offset) {
            cell.store(value, Ordering::Release);
        }
    }
}

/// Channels that are scheduled, and torn down by a fault, together.
#[derive(Debug, Default)]
pub(crate) struct Group {
    channels: Mutex<Vec<Weak<Channel>>>,
    /// What stopped it, for channels that are made in it afterwards. Set under the lock of `channels`.
    fault: OnceLock<Stop>,
    scheduled: AtomicBool,
}

impl Group {
    /// Notes what stops it, and answers the channels that it has.
    fn stop(&self, stop: &Stop) -> Vec<Arc<Channel>> {
        let channels = lock(&self.channels);
        self.fault.get_or_init(|| stop.clone());
        channels.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn channels(&self) -> Vec<Arc<Channel>> {
        lock(&self.channels)
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    pub(crate) fn add(&self, channel: &Arc<Channel>) {
        let mut channels = lock(&self.channels);
        channels.retain(|other| other.strong_count() > 0);
        channels.push(Arc::downgrade(channel));
        if let Some(stop) = self.fault.get() {
            lock(&channel.stopped).get_or_insert_with(|| stop.clone());
        }
    }

    pub(crate) fn schedule(&self, enable: bool) {
        self.scheduled.store(enable, Ordering::Release);
    }
}

/// One channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Its number on the GPU, the low bits of its work submit token.
    pub(crate) id: u32,
    pub(crate) class: ClassId,
    pub(crate) group: Arc<Group>,
    pub(crate) space: Arc<Space>,
    /// Address of the ring of GPFIFO entries.
    pub(crate) ring: u64,
    /// How many entries the ring has.
    pub(crate) entries: u32,
    /// The control area with GP_GET and GP_PUT.
    pub(crate) userd: Place,
    /// Where errors are written.
    pub(crate) notifier: Option<Place>,
    /// Set once the channel is freed or its group has faulted: a running grid stops.
    pub(crate) cancel: AtomicBool,
    pub(crate) scheduled: AtomicBool,
    /// Whether its doorbell rang since a worker last began to run it.
    pub(crate) rung: AtomicBool,
    /// The engine classes made on it.
    objects: Mutex<Vec<ClassId>>,
    /// What stopped it.
    stopped: Mutex<Option<Stop>>,
    /// The engines' state; the worker holds it while it runs the channel.
    pub(crate) execution: Mutex<Execution>,
}

/// What a channel is made of.
pub(crate) struct Setup {
    pub(crate) id: u32,
    pub(crate) class: ClassId,
    pub(crate) group: Arc<Group>,
    pub(crate) space: Arc<Space>,
    pub(crate) ring: u64,
    pub(crate) entries: u32,
    pub(crate) userd: Place,
    pub(crate) notifier: Option<Place>,
}

impl Channel {
    /// Offset of GP_GET in the control area.
    pub(crate) const GP_GET: u64 = gpfifo::USERD_GP_GET as u64;
    /// Offset of GP_PUT.
    pub(crate) const GP_PUT: u64 = gpfifo::USERD_GP_PUT as u64;
    /// Size of the control area.
    pub(crate) const USERD_BYTES: u64 = gpfifo::USERD_BYTES as u64;
    /// Size of one record of the error notifier.
    pub(crate) const NOTIFIER_BYTES: u64 = 16;

    pub(crate) fn new(setup: Setup) -> Arc<Self> {
        let Setup {
            id,
            class,
            group,
            space,
            ring,
            entries,
            userd,
            notifier,
        } = setup;
        let channel = Arc::new(Self {
            id,
            class,
            group: group.clone(),
            space,
            ring,
            entries,
            userd,
            notifier,
            cancel: AtomicBool::new(false),
            scheduled: AtomicBool::new(false),
            rung: AtomicBool::new(false),
            objects: Mutex::default(),
            stopped: Mutex::default(),
            execution: Mutex::default(),
        });
        group.add(&channel);
        channel
    }

    /// Whether the GPU may run it.
    pub(crate) fn is_runnable(&self) -> bool {
        let scheduled =
            self.scheduled.load(Ordering::Acquire) || self.group.scheduled.load(Ordering::Acquire);
        scheduled && !self.cancel.load(Ordering::Acquire) && lock(&self.stopped).is_none()
    }

    pub(crate) fn add_object(&self, class: ClassId) {
        lock(&self.objects).push(class);
    }

    pub(crate) fn remove_object(&self, class: ClassId) {
        let mut objects = lock(&self.objects);
        if let Some(index) = objects.iter().position(|other| *other == class) {
            objects.swap_remove(index);
        }
    }

    pub(crate) fn has_object(&self, class: ClassId) -> bool {
        lock(&self.objects).contains(&class)
    }

    /// What stopped it.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        lock(&self.stopped).clone()
    }

    /// The fault that stopped it.
    pub(crate) fn report(&self) -> Option<Report> {
        match &*lock(&self.stopped) {
            Some(Stop::Fault(report)) => Some((**report).clone()),
            _ => None,
        }
    }

    /// Forgets the fault that the debugger read; the channel stays stopped.
    pub(crate) fn clear_report(&self) {
        if let Some(Stop::Fault(report)) = &mut *lock(&self.stopped) {
            report.detail = crate::fault::Detail::None;
        }
    }

    /// Stops the channel. A fault stops its whole group, with a record in each error notifier once none of its
    /// channels runs any more: who reads one takes back the memory that their work used.
    ///
    /// A worker lets go of the channel's execution first: another that stops the group waits for it.
    pub(crate) fn stop(&self, stop: &Stop, nanoseconds: u64) {
        match stop {
            Stop::Fault(report) => {
                let whole = |_: &Self| true;
                self.stop_group(stop, report.code, nanoseconds, whole, false);
            }
            Stop::Hang(_) | Stop::Cancelled => {
                lock(&self.stopped).get_or_insert_with(|| stop.clone());
            }
        }
    }

    /// Stops the other channels of the group, now that this one is gone.
    pub(crate) fn stop_others(&self, stop: &Stop, nanoseconds: u64) {
        if let Stop::Fault(report) = stop {
            let other = |channel: &Self| !std::ptr::eq(channel, self);
            self.stop_group(stop, report.code, nanoseconds, other, false);
        }
    }

    /// Stops the channel and its group while a worker runs it.
    pub(crate) fn stop_running(&self, stop: &Stop, nanoseconds: u64) {
        if let Stop::Fault(report) = stop {
            self.stop_group(stop, report.code, nanoseconds, |_| true, true);
        }
    }

    /// Stops those channels of the group that it concerns; `runs` says whether a worker may still run this one.
    fn stop_group(
        &self,
        stop: &Stop,
        code: u32,
        nanoseconds: u64,
        concerns: impl Fn(&Self) -> bool,
        runs: bool,
    ) {
        let mut stopping = self.group.stop(stop);
        stopping.retain(|channel| {
            if !concerns(channel) {
                return false;
            }
            let mut stopped = lock(&channel.stopped);
            let first = stopped.is_none();
            stopped.get_or_insert_with(|| stop.clone());
            first
        });
        for channel in &stopping {
            if runs || !std::ptr::eq(Arc::as_ptr(channel), self) {
                channel.retire();
            }
        }
        for channel in &stopping {
            channel.notify(code, nanoseconds);
        }
    }

    /// Writes `NvNotification`: time, code, `info16` 0, status 0xffff.
    fn notify(&self, code: u32, nanoseconds: u64) {
        if let Some(notifier) = &self.notifier {
            notifier.store_u64(0, nanoseconds);
            notifier.store_u64(8, u64::from(code) | 0xffff << 48);
        }
    }

    /// Makes sure that the GPU has let go of the channel: a running grid is told to stop, and waited for.
    pub(crate) fn retire(&self) {
        self.cancel.store(true, Ordering::Release);
        drop(lock(&self.execution));
    }
}

/// Locks; a panic elsewhere leaves data that is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
