//! One GPU: its channels, its doorbell, and the thread that runs them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime};

use nv_proto::unit::SubmitToken;

use crate::channel::{Channel, lock};
use crate::chip::Chip;
use crate::fault::{MMU_FAULT, PREEMPTIVE_REMOVAL, Stop};
use crate::host::{self, Progress};
use crate::mmu::Space;

/// A GPU, as its worker and its doorbell see it.
pub(crate) struct Gpu {
    /// Its place among the machine's GPUs.
    pub(crate) index: u32,
    pub(crate) chip: Chip,
    pub(crate) uuid: [u8; 16],
    /// Its memory in bytes.
    pub(crate) capacity: u64,
    /// How much of it is allocated.
    pub(crate) used: AtomicU64,
    channels: Mutex<BTreeMap<u32, Arc<Channel>>>,
    /// One bit for each channel whose doorbell was rung.
    rung: [AtomicU64; Self::CHANNELS / 64],
    /// The channels that may have something to do.
    busy: Mutex<Vec<Arc<Channel>>>,
    stop: AtomicBool,
    workers: [Worker; Self::WORKERS],
    handles: Mutex<Vec<JoinHandle<()>>>,
    clock: Clock,
}

/// One thread that runs channels.
#[derive(Debug, Default)]
struct Worker {
    thread: OnceLock<Thread>,
    /// Whether it is running a grid, which may take any time.
    in_grid: AtomicBool,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("index", &self.index)
            .field("chip", &self.chip)
            .finish_non_exhaustive()
    }
}

impl Gpu {
    /// Channels that a GPU has: the token's channel field is 12 bits wide.
    pub(crate) const CHANNELS: usize = 4096;

    /// The most threads that run channels. All but the first are started when those before are in grids.
    const WORKERS: usize = 4;

    /// Makes a GPU and starts its first worker.
    pub(crate) fn start(index: u32, chip: Chip, capacity: u64) -> std::io::Result<Arc<Self>> {
        let mut uuid = *b"nv-sim \0\0\0\0\0\0\0\0\0";
        for (target, source) in uuid.iter_mut().skip(8).zip(chip.code_name().bytes()) {
            *target = source;
        }
        uuid[15] = index as u8;
        let gpu = Arc::new(Self {
            index,
            chip,
            uuid,
            capacity,
            used: AtomicU64::new(0),
            channels: Mutex::default(),
            rung: [const { AtomicU64::new(0) }; Self::CHANNELS / 64],
            busy: Mutex::default(),
            stop: AtomicBool::new(false),
            workers: Default::default(),
            handles: Mutex::default(),
            clock: Clock::default(),
        });
        gpu.start_worker()?;
        Ok(gpu)
    }

    /// Starts one more worker, if there may be one.
    fn start_worker(self: &Arc<Self>) -> std::io::Result<()> {
        let mut handles = lock(&self.handles);
        let number = handles.len();
        let Some(worker) = self.workers.get(number) else {
            return Ok(());
        };
        if self.stop.load(Ordering::SeqCst) {
            return Ok(());
        }
        let shared = self.clone();
        let name = format!("nv-sim gpu {}.{number}", self.index);
        let handle = thread::Builder::new()
            .name(name)
            .spawn(move || shared.work(number))?;
        let _ = worker.thread.set(handle.thread().clone());
        handles.push(handle);
        Ok(())
    }

    /// Ends the workers: running grids stop.
    pub(crate) fn shut_down(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for channel in lock(&self.channels).values() {
            channel.cancel.store(true, Ordering::Release);
        }
        let handles = std::mem::take(&mut *lock(&self.handles));
        for handle in handles {
            handle.thread().unpark();
            // A worker that panicked has nothing left to end.
            let _ = handle.join();
        }
        lock(&self.busy).clear();
    }

    /// Nanoseconds, as the GPU's timer counts them.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.clock.nanoseconds()
    }

    /// Takes `bytes` of memory; `false` when there is not that much.
    pub(crate) fn reserve(&self, bytes: u64) -> bool {
        let take = |used: u64| {
            used.checked_add(bytes)
                .filter(|used| *used <= self.capacity)
        };
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }

    /// Gives back what [`Gpu::reserve`] took.
    pub(crate) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Adds the channel that `make` makes of a free number; `None` when all are taken.
    pub(crate) fn add_channel(
        &self,
        make: impl FnOnce(u32) -> Arc<Channel>,
    ) -> Option<Arc<Channel>> {
        let mut channels = lock(&self.channels);
        // Numbers below 4 are the driver's own (an H200 gave out 4 and 5 first).
        let id = (4..Self::CHANNELS as u32).find(|id| !channels.contains_key(id))?;
        let channel = make(id);
        channels.insert(id, channel.clone());
        Some(channel)
    }

    /// Takes a channel off the GPU; once this returns it is not running. If it had work in flight, the others of its
    /// group end with it (seen on an H200: notifier code 45).
    pub(crate) fn remove_channel(&self, channel: &Channel) {
        lock(&self.channels).remove(&channel.id);
        channel.retire();
        let unfinished = lock(&channel.execution).is_unfinished(channel);
        if unfinished && !matches!(channel.stopped(), Some(Stop::Fault(_))) {
            let text = "a channel of its group was freed with work in flight".to_owned();
            channel.stop_others(&Stop::new(PREEMPTIVE_REMOVAL, text), self.nanoseconds());
        }
    }

    /// Stops the channels that run in one of these spaces at this moment: memory was taken away under them.
    pub(crate) fn stop_running(&self, spaces: &[Arc<Space>]) {
        let channels: Vec<_> = lock(&self.channels).values().cloned().collect();
        for channel in channels {
            let concerned = spaces
                .iter()
                .any(|space| Arc::ptr_eq(space, &channel.space));
            if concerned && channel.execution.try_lock().is_err() {
                let text = "memory that its address space mapped was freed while it ran".to_owned();
                channel.stop_running(&Stop::new(MMU_FAULT, text), self.nanoseconds());
            }
        }
    }

    /// The value that rings the doorbell for a channel (`work_submit_token` in `facts/methods.json`).
    pub(crate) fn token(&self, channel: &Channel) -> SubmitToken {
        let doorbell_enable = u32::from(self.chip == Chip::Gb202) << 30;
        SubmitToken(channel.id | doorbell_enable)
    }

    /// Notes that a channel may have work.
    pub(crate) fn ring(self: &Arc<Self>, token: SubmitToken) {
        let id = token.0 as usize % Self::CHANNELS;
        if let Some(word) = self.rung.get(id / 64) {
            word.fetch_or(1 << (id % 64), Ordering::SeqCst);
        }
        self.wake();
    }

    /// Wakes the first worker that is not in a grid, or starts one.
    fn wake(self: &Arc<Self>) {
        for worker in &self.workers {
            let Some(thread) = worker.thread.get() else {
                // Where the host has no thread to spare, the channel waits until a grid ends.
                let _ = self.start_worker();
                return;
            };
            if !worker.in_grid.load(Ordering::SeqCst) {
                thread.unpark();
                return;
            }
        }
    }

    /// Runs a grid on worker `number`; meanwhile another worker takes care of the other channels.
    pub(crate) fn run_grid<R>(self: &Arc<Self>, number: usize, run: impl FnOnce() -> R) -> R {
        let set = |in_grid| {
            if let Some(worker) = self.workers.get(number) {
                worker.in_grid.store(in_grid, Ordering::SeqCst);
            }
        };
        set(true);
        // A doorbell that rang before this was seen woke this worker: the bit tells. One that rings from here
        // on wakes another.
        let rung = self
            .rung
            .iter()
            .any(|word| word.load(Ordering::SeqCst) != 0);
        if rung || lock(&self.busy).len() > 1 {
            self.wake();
        }
        let result = run();
        set(false);
        result
    }

    /// A worker: goes round the channels that have work.
    fn work(self: &Arc<Self>, number: usize) {
        let mut quiet_rounds = 0_u32;
        while !self.stop.load(Ordering::SeqCst) {
            self.collect_rung();
            let mut before = self.workers.iter().take(number);
            let needed = before.all(|worker| worker.in_grid.load(Ordering::SeqCst));
            let channels = if needed {
                lock(&self.busy).clone()
            } else {
                // One before looks after the channels, and may have looked before what was collected here was on the
                // list.
                if !lock(&self.busy).is_empty() {
                    self.wake();
                }
                Vec::new()
            };
            if channels.is_empty() {
                // Right after looking, and not after running: what runs may park on its own account, and so
                // take a wake-up that was meant for here.
                quiet_rounds = 0;
                thread::park();
                continue;
            }
            let mut ran = false;
            for channel in channels {
                match host::advance(self, number, &channel) {
                    Progress::Ran => ran = true,
                    Progress::Waiting | Progress::Elsewhere => {}
                    Progress::Done => self.no_longer_busy(&channel),
                }
            }
            if ran {
                quiet_rounds = 0;
                continue;
            }
            // Every channel waits for a semaphore, which a CPU may write at any time with no doorbell, or is
            // in a grid.
            quiet_rounds = quiet_rounds.saturating_add(1);
            match quiet_rounds {
                0..64 => thread::yield_now(),
                64..512 => thread::park_timeout(Duration::from_micros(50)),
                _ => thread::park_timeout(Duration::from_micros(500)),
            }
        }
    }

    fn collect_rung(&self) {
        for (index, word) in self.rung.iter().enumerate() {
            if word.load(Ordering::SeqCst) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                let id = index as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let Some(channel) = lock(&self.channels).get(&id).cloned() else {
                    continue;
                };
                let mut busy = lock(&self.busy);
                channel.rung.store(true, Ordering::SeqCst);
                // Not by number: a freed channel's may be in use again.
                if !busy.iter().any(|other| Arc::ptr_eq(other, &channel)) {
                    busy.push(channel);
                }
            }
        }
    }

    /// Takes a channel off the list, unless its doorbell rang while it ran.
    fn no_longer_busy(&self, channel: &Arc<Channel>) {
        let mut busy = lock(&self.busy);
        if !channel.rung.load(Ordering::SeqCst) || !channel.is_runnable() {
            busy.retain(|other| !Arc::ptr_eq(other, channel));
        }
    }
}

/// The GPU's timer: nanoseconds since 1970, which never go back.
#[derive(Debug)]
struct Clock {
    start: Instant,
    origin: u64,
}

impl Clock {
    fn nanoseconds(&self) -> u64 {
        self.origin
            .saturating_add(self.start.elapsed().as_nanos() as u64)
    }
}

impl Default for Clock {
    fn default() -> Self {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            start: Instant::now(),
            origin: since.as_nanos() as u64,
        }
    }
}

/// Tells a GPU that a channel has work. Ringing takes no lock.
#[derive(Clone, Debug)]
pub struct Doorbell {
    gpu: Arc<Gpu>,
}

impl Doorbell {
    pub(crate) fn new(gpu: Arc<Gpu>) -> Self {
        Self { gpu }
    }

    /// Says that the channel of `token` has new entries. A token of no channel does nothing, as on hardware.
    pub fn ring(&self, token: SubmitToken) {
        self.gpu.ring(token);
    }
}
