//! A grid: its blocks dealt to worker threads, in order, each run in turns until it ends.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use nv_proto::unit::Dim3;

use super::access::Tlb;
use super::block::{Block, Cluster};
use super::code::{self, Code};
use super::exec::{Warp, Worker};
use super::launch::{Launch, coordinates};
use super::regs::LANES;
use super::{Fault, FaultKind, Grid, Stats};
use crate::memory::AddressSpace;

/// What runs together on one worker: a block, or the blocks of a cluster.
struct Unit {
    blocks: Vec<Block>,
    cluster: Cluster,
    warps: Vec<Warp>,
}

/// What the workers share.
struct Shared<'a> {
    launch: &'a Launch,
    memory: &'a dyn AddressSpace,
    cancel: &'a AtomicBool,
    /// Set once any worker has faulted.
    stop: AtomicBool,
    /// The next unit to hand out.
    next: AtomicU64,
    units: u64,
    fault: Mutex<Option<Box<Fault>>>,
    instructions: AtomicU64,
    /// Units that a worker may have under way at once.
    resident: usize,
    /// Whether all units have to be under way before any has ended.
    together: bool,
}

pub(super) fn run(
    grid: &Grid,
    memory: &dyn AddressSpace,
    cancel: &AtomicBool,
) -> Result<Stats, Box<Fault>> {
    let launch = Launch::new(grid, memory);
    let launch = &launch;
    let refuse = |kind| {
        Err(Box::new(Fault {
            kind,
            pc: launch.program,
            words: None,
            sm: 0,
            block: ORIGIN,
            thread: ORIGIN,
        }))
    };
    if grid.block.count() > MAX_THREADS {
        return refuse(FaultKind::Resources {
            needed: grid.block.count(),
        });
    }
    if grid.grid.count() == 0 || grid.block.count() == 0 {
        return Ok(Stats::default());
    }
    let cluster = grid.cluster.count();
    let divides = |a: u32, b: u32| b != 0 && a.is_multiple_of(b);
    if cluster > MAX_CLUSTER
        || !divides(grid.grid.x, grid.cluster.x)
        || !divides(grid.grid.y, grid.cluster.y)
        || !divides(grid.grid.z, grid.cluster.z)
    {
        return refuse(FaultKind::Resources { needed: cluster });
    }
    if u64::from(grid.shared_bytes) > MAX_SHARED || u64::from(grid.local_bytes) > MAX_LOCAL {
        return refuse(FaultKind::Resources {
            needed: u64::from(grid.shared_bytes.max(grid.local_bytes)),
        });
    }
    if !launch.program.is_multiple_of(16) {
        return refuse(FaultKind::Misaligned {
            address: launch.program,
        });
    }
    let threads = grid.block.count();
    let thread_bytes = 4 * u64::from(launch.register_limit) + u64::from(grid.local_bytes);
    let block_bytes = threads
        .div_ceil(32)
        .saturating_mul(32)
        .saturating_mul(thread_bytes)
        .saturating_add(grid.shared_bytes.into());
    let unit_bytes = block_bytes.saturating_mul(cluster).max(1);
    let units = grid.grid.count() / cluster;
    let host = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    // As many blocks as the streaming multiprocessors hold at once, by threads.
    let fits =
        u64::from(launch.sm_count) * (SM_THREADS / threads.next_multiple_of(32)).clamp(1, 32);
    // Before sm_90 a descriptor does not say that its blocks meet; where they do is in bank 0.
    let hinted = launch.meeting_place()
        && grid.grid.count() <= fits
        && units.saturating_mul(unit_bytes) <= MAX_HOST_BYTES;
    let together = grid.cooperative || hinted;
    if together {
        if grid.grid.count() > fits {
            return refuse(FaultKind::Resources {
                needed: grid.grid.count(),
            });
        }
        if units.saturating_mul(unit_bytes) > MAX_HOST_BYTES {
            return refuse(FaultKind::Resources {
                needed: units.saturating_mul(unit_bytes),
            });
        }
    }
    // A worker for each processor, unless the work would not be worth a thread.
    let workers = host
        .min(units)
        .min(
            grid.grid
                .count()
                .saturating_mul(threads)
                .div_ceil(WORKER_THREADS),
        )
        .max(1);
    let resident = if together {
        units.div_ceil(workers)
    } else {
        (MAX_HOST_BYTES / workers / unit_bytes).clamp(1, MAX_RESIDENT)
    };
    let shared = Shared {
        launch,
        memory,
        cancel,
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
        units,
        fault: Mutex::new(None),
        instructions: AtomicU64::new(0),
        resident: resident as usize,
        together,
    };
    if workers == 1 {
        shared.work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| shared.work());
            }
        });
    }
    let fault = shared
        .fault
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match fault {
        Some(mut fault) => {
            fault.words = code::words(fault.pc, memory).ok();
            Err(fault)
        }
        None => Ok(Stats {
            instructions: shared.instructions.into_inner(),
            blocks: grid.grid.count(),
        }),
    }
}

impl Shared<'_> {
    /// Takes units until there are none left.
    fn work(&self) {
        let mut worker = Worker {
            code: Code::new(self.memory),
            memory: Tlb::new(self.memory),
            instructions: 0,
            started: Instant::now(),
        };
        let mut units: VecDeque<Unit> = VecDeque::new();
        let mut exhausted = false;
        loop {
            // One more unit whenever the others have had a turn without ending: they may wait for it.
            let want = if self.together {
                self.resident
            } else {
                units.len() + 1
            };
            while !exhausted && units.len() < want.min(self.resident) {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                if index >= self.units {
                    exhausted = true;
                    break;
                }
                match Unit::new(index, self.launch) {
                    Some(unit) => units.push_back(unit),
                    None => {
                        let kind = FaultKind::Resources {
                            needed: u64::from(self.launch.shared_bytes),
                        };
                        self.fail(Box::new(Fault {
                            kind,
                            pc: self.launch.program,
                            words: None,
                            sm: 0,
                            block: ORIGIN,
                            thread: ORIGIN,
                        }));
                        return;
                    }
                }
            }
            let Some(mut unit) = units.pop_front() else {
                break;
            };
            let turn = if self.together { TOGETHER_TURN } else { TURN };
            match unit.run(turn, self, &mut worker) {
                Ok(true) => {}
                Ok(false) => units.push_back(unit),
                Err(fault) => {
                    self.fail(fault);
                    break;
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.instructions
            .fetch_add(worker.instructions, Ordering::Relaxed);
    }

    fn fail(&self, fault: Box<Fault>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut first = self
            .fault
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(fault);
    }
}

impl Unit {
    /// Unit `index` of a grid: a cluster at a time, x fastest.
    fn new(index: u64, launch: &Launch) -> Option<Self> {
        let shape = launch.cluster;
        let clusters = Dim3 {
            x: launch.grid.x / shape.x.max(1),
            y: launch.grid.y / shape.y.max(1),
            z: launch.grid.z / shape.z.max(1),
        };
        let corner = coordinates(index, clusters);
        let count = shape.count();
        let mut unit = Self {
            blocks: Vec::new(),
            cluster: Cluster::new(count * u64::from(launch.threads())),
            warps: Vec::new(),
        };
        for rank in 0..count {
            let at = coordinates(rank, shape);
            let at = Dim3 {
                x: corner.x * shape.x + at.x,
                y: corner.y * shape.y + at.y,
                z: corner.z * shape.z + at.z,
            };
            let sm = ((index * count + rank) % u64::from(launch.sm_count)) as u32;
            unit.blocks.push(Block::new(
                at,
                rank as u32,
                sm,
                launch.shared_bytes,
                launch.threads(),
            )?);
            for number in 0..launch.threads().div_ceil(LANES as u32) {
                unit.warps.push(Warp::new(launch, number, rank as usize)?);
            }
        }
        Some(unit)
    }

    /// Runs about `budget` instructions; true once all has ended.
    fn run(
        &mut self,
        budget: u64,
        shared: &Shared<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<bool, Box<Fault>> {
        let mut left = budget;
        loop {
            let (mut ran, mut alive) = (0, false);
            for warp in &mut self.warps {
                if warp.is_done() {
                    continue;
                }
                ran += u64::from(warp.run(
                    WARP_TURN,
                    &mut self.blocks,
                    &mut self.cluster,
                    shared.launch,
                    worker,
                )?);
                alive |= !warp.is_done();
                if shared.cancel.load(Ordering::Relaxed) {
                    return Err(warp.stuck(FaultKind::Cancelled, &self.blocks, shared.launch));
                }
                if shared.stop.load(Ordering::Relaxed) {
                    return Ok(false);
                }
            }
            if !alive {
                return Ok(true);
            }
            if ran == 0 {
                let stuck = self.warps.iter().find(|warp| !warp.is_done());
                if let Some(warp) = stuck {
                    return Err(warp.stuck(FaultKind::Deadlock, &self.blocks, shared.launch));
                }
            }
            left = left.saturating_sub(ran);
            if left == 0 {
                return Ok(false);
            }
        }
    }
}

const ORIGIN: Dim3 = Dim3 { x: 0, y: 0, z: 0 };
/// Threads of a block, on every architecture.
const MAX_THREADS: u64 = 1024;
/// Blocks of a cluster: 16 where the kernel allows more than the portable 8.
const MAX_CLUSTER: u64 = 16;
/// Shared memory of a block: the largest of any architecture, 228 KiB.
const MAX_SHARED: u64 = 228 * 1024;
/// Local memory of a thread, on every architecture.
const MAX_LOCAL: u64 = 512 * 1024;
/// Threads that a streaming multiprocessor holds, at most.
const SM_THREADS: u64 = 2048;
/// What blocks under way may take of the host's memory.
const MAX_HOST_BYTES: u64 = 4 << 30;
/// Units that a worker may have under way.
const MAX_RESIDENT: u64 = 1024;
/// Threads of a grid that are worth a worker.
const WORKER_THREADS: u64 = 256;
/// Instructions that a warp runs before the next one's turn.
const WARP_TURN: u32 = 2048;
/// Instructions that a unit runs before another is begun.
const TURN: u64 = 1 << 22;
/// The same where all are under way together.
const TOGETHER_TURN: u64 = 1 << 14;
