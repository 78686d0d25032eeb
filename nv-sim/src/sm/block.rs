//! A block: its shared memory and its named barriers; a cluster's barrier.

use nv_proto::unit::Dim3;
use zerocopy::FromZeros;

use super::FaultKind;

/// One block.
pub(super) struct Block {
    pub index: Dim3,
    /// Its number within the cluster.
    pub rank: u32,
    pub sm: u32,
    pub shared: Vec<u32>,
    barriers: [Named; 16],
    /// Threads that have not ended.
    alive: u32,
}

/// How a barrier reduces the predicates of those who arrive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reduction {
    Count,
    And,
    Or,
}

/// Lanes that arrive at a named barrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub id: u32,
    /// Threads expected; 0 is all of the block.
    pub count: u32,
    pub lanes: u32,
    /// Whether they wait for the others.
    pub wait: bool,
    pub reduction: Option<Reduction>,
    /// The lanes whose predicate is true.
    pub value: u32,
}

#[derive(Clone, Copy, Default)]
struct Named {
    generation: u64,
    arrived: u32,
    expected: u32,
    reduction: Option<Reduction>,
    set: u32,
    unset: u32,
    /// The results of the last two generations.
    results: [u32; 2],
}

impl Block {
    /// A block of so many threads; `None` when the host has no memory for it.
    pub fn new(index: Dim3, rank: u32, sm: u32, shared_bytes: u32, threads: u32) -> Option<Self> {
        let shared = u32::new_vec_zeroed(shared_bytes.div_ceil(4) as usize).ok()?;
        Some(Self {
            index,
            rank,
            sm,
            shared,
            barriers: [Named::default(); 16],
            alive: threads,
        })
    }

    /// Counts an arrival and gives the generation that ends when all have arrived.
    pub fn arrive(&mut self, arrival: &Arrival, missing: u32) -> Result<u64, FaultKind> {
        let alive = self.alive;
        let barrier = self
            .barriers
            .get_mut(arrival.id as usize)
            .ok_or(FaultKind::IllegalInstruction)?;
        if barrier.arrived == 0 {
            barrier.expected = arrival.count;
            barrier.reduction = None;
            (barrier.set, barrier.unset) = (0, 0);
        }
        let generation = barrier.generation;
        // A count is in whole warps: the lanes that a block's last warp has not arrive with its first lane.
        let padding = if arrival.count != 0 && arrival.lanes & 1 != 0 {
            missing
        } else {
            0
        };
        barrier.arrived += arrival.lanes.count_ones() + padding;
        if arrival.reduction.is_some() {
            barrier.reduction = arrival.reduction;
            barrier.set += arrival.value.count_ones();
            barrier.unset += (arrival.lanes & !arrival.value).count_ones();
        }
        barrier.settle(alive);
        Ok(generation)
    }

    /// Threads end.
    pub fn exit(&mut self, threads: u32) {
        self.alive -= threads.min(self.alive);
        let alive = self.alive;
        for barrier in &mut self.barriers {
            if barrier.arrived != 0 {
                barrier.settle(alive);
            }
        }
    }

    /// The result of a generation of a barrier, once that has ended.
    pub fn passed(&self, id: u32, generation: u64) -> Option<u32> {
        let barrier = self.barriers.get(id as usize)?;
        (barrier.generation != generation).then_some(barrier.results[(generation & 1) as usize])
    }
}

impl Named {
    fn settle(&mut self, alive: u32) {
        let expected = if self.expected == 0 {
            alive
        } else {
            self.expected
        };
        if self.arrived < expected {
            return;
        }
        let result = match self.reduction {
            None => 0,
            Some(Reduction::Count) => self.set,
            Some(Reduction::And) => u32::from(self.unset == 0),
            Some(Reduction::Or) => u32::from(self.set != 0),
        };
        self.results[(self.generation & 1) as usize] = result;
        self.generation += 1;
        self.arrived = 0;
    }
}

/// The barrier of a cluster.
#[derive(Default)]
pub(super) struct Cluster {
    pub generation: u64,
    arrived: u64,
    alive: u64,
}

impl Cluster {
    pub fn new(threads: u64) -> Self {
        Self {
            generation: 0,
            arrived: 0,
            alive: threads,
        }
    }

    pub fn arrive(&mut self, threads: u32) {
        self.arrived += u64::from(threads);
        self.settle();
    }

    pub fn exit(&mut self, threads: u32) {
        self.alive = self.alive.saturating_sub(u64::from(threads));
        if self.arrived != 0 {
            self.settle();
        }
    }

    fn settle(&mut self) {
        if self.arrived >= self.alive {
            self.arrived = 0;
            self.generation += 1;
        }
    }
}
