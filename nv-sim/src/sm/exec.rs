//! A warp: lanes that run together in groups, part at branches and meet again at barriers.
//!
//! Each lane belongs to one group; a group has one program counter. A group runs until it waits, its turn is over or it ends.
//! Lanes meet only where the program says so: at `BSYNC`, for those that the lane's own view of the barrier names, at
//! `WARPSYNC`, and at the barriers of the block.

use std::collections::VecDeque;

use nv_proto::sass::INSTRUCTION_BYTES;

use super::access::{Local, Tlb};
use super::block::{Arrival, Block, Cluster};
use super::code::Code;
use super::launch::Launch;
use super::lower::{Special, Step};
use super::regs::{ALL, LANES, Lanes, Lanes64, Regs, Uniform, lanes};
use super::{Fault, FaultKind};

/// What an instruction sees of the machine.
pub(super) struct Context<'a, 'm> {
    pub regs: &'a mut Regs,
    pub local: &'a mut Local,
    /// The blocks of the cluster.
    pub blocks: &'a mut [Block],
    /// Which of them is the warp's.
    pub me: usize,
    pub memory: &'a mut Tlb<'m>,
    pub launch: &'a Launch,
    /// Lanes of the group.
    pub group: u32,
    /// Lanes that have not ended.
    pub alive: u32,
    tid: &'a [Lanes; 3],
    number: u32,
    clock: u64,
    started: std::time::Instant,
}

/// Where control goes after an instruction.
pub(super) enum Flow {
    Next,
    Jump {
        taken: u32,
        target: Target,
    },
    Exit(u32),
    /// `BSYNC`.
    Converge {
        barrier: usize,
        lanes: u32,
    },
    /// `WARPSYNC`.
    Sync {
        lanes: u32,
        masks: Lanes,
        collective: bool,
        /// Whether lanes that do not arrive are parted from those that do.
        alone: bool,
    },
    /// A named barrier of the block.
    Barrier(Arrival),
    ClusterArrive,
    ClusterWait,
    /// Others' turn.
    Yield,
    /// Who waits at a convergence barrier may have changed.
    Recheck,
}

/// Where a jump goes.
pub(super) enum Target {
    One(u64),
    Each(Box<Lanes64>),
}

/// A fault of one lane.
pub(super) struct Stop {
    pub kind: FaultKind,
    pub lane: usize,
}

/// One warp.
pub(super) struct Warp {
    regs: Regs,
    local: Local,
    /// Its number in the block.
    number: u32,
    block: usize,
    tid: [Lanes; 3],
    /// Lanes that there are.
    present: u32,
    alive: u32,
    ready: VecDeque<Group>,
    waiting: Vec<Group>,
    cluster_generation: u64,
    /// Boxes to use again: groups swap theirs with the registers' without copying.
    #[allow(clippy::vec_box, reason = "the boxes themselves are handed on")]
    spare: Vec<Box<Uniform>>,
}

struct Group {
    pc: u64,
    lanes: u32,
    uniform: Box<Uniform>,
    wait: Wait,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wait {
    None,
    Converge(usize),
    Sync { mask: u32, collective: bool },
    Block { id: u32, generation: u64 },
    Cluster { generation: u64 },
}

/// What a worker thread brings along.
pub(super) struct Worker<'m> {
    pub code: Code<'m>,
    pub memory: Tlb<'m>,
    pub instructions: u64,
    pub started: std::time::Instant,
}

impl Warp {
    /// Warp `number` of a block; `None` when the host has no memory for it.
    pub fn new(launch: &Launch, number: u32, block: usize) -> Option<Self> {
        let first = number * LANES as u32;
        let present = match launch.threads().saturating_sub(first) {
            32.. => ALL,
            count => (1 << count) - 1,
        };
        let mut tid = [[0; LANES]; 3];
        let [x, y, z] = &mut tid;
        for (number, ((x, y), z)) in (first..).zip(x.iter_mut().zip(y).zip(z)) {
            let at = launch.thread(number);
            (*x, *y, *z) = (at.x, at.y, at.z);
        }
        let group = Group {
            pc: launch.program,
            lanes: present,
            uniform: Box::new(Uniform::new()),
            wait: Wait::None,
        };
        Some(Self {
            regs: Regs::new()?,
            local: Local::default(),
            number,
            block,
            tid,
            present,
            alive: present,
            ready: VecDeque::from([group]),
            waiting: Vec::new(),
            cluster_generation: 0,
            spare: Vec::new(),
        })
    }

    /// Whether all lanes have ended.
    pub fn is_done(&self) -> bool {
        self.alive == 0
    }

    /// Runs at most `budget` instructions and gives how many it ran: 0 when every lane waits.
    pub fn run(
        &mut self,
        budget: u32,
        blocks: &mut [Block],
        cluster: &mut Cluster,
        launch: &Launch,
        worker: &mut Worker<'_>,
    ) -> Result<u32, Box<Fault>> {
        let mut left = budget;
        while left > 0 {
            self.wake(blocks, cluster);
            let Some(mut group) = self.ready.pop_front() else {
                break;
            };
            std::mem::swap(&mut self.regs.uniform, &mut group.uniform);
            let before = left;
            let ended = self.run_group(&mut group, &mut left, blocks, cluster, launch, worker);
            worker.instructions += u64::from(before - left);
            let turn = match ended {
                Ok(turn) => turn,
                Err(stop) => return Err(self.fault(group.pc, stop, blocks, launch)),
            };
            std::mem::swap(&mut self.regs.uniform, &mut group.uniform);
            match turn {
                Turn::Over => self.ready.push_back(group),
                Turn::Waits => self.waiting.push(group),
                Turn::Ended => self.spare.push(group.uniform),
                Turn::Yields => {
                    self.ready.push_back(group);
                    self.settle(worker)
                        .map_err(|s| self.fault(s.0, s.1, blocks, launch))?;
                    break;
                }
            }
            self.settle(worker)
                .map_err(|s| self.fault(s.0, s.1, blocks, launch))?;
        }
        Ok(budget - left)
    }

    fn run_group(
        &mut self,
        group: &mut Group,
        left: &mut u32,
        blocks: &mut [Block],
        cluster: &mut Cluster,
        launch: &Launch,
        worker: &mut Worker<'_>,
    ) -> Result<Turn, Stop> {
        let mut c = Context {
            regs: &mut self.regs,
            local: &mut self.local,
            blocks,
            me: self.block,
            memory: &mut worker.memory,
            launch,
            group: group.lanes,
            alive: self.alive,
            tid: &self.tid,
            number: self.number,
            clock: worker.instructions,
            started: worker.started,
        };
        while *left > 0 {
            *left -= 1;
            c.clock += 1;
            let inst = worker.code.at(group.pc, launch);
            let guard = inst.guard.get(c.regs);
            let mask = match (inst.uniform, inst.guard.uniform) {
                (true, _) => {
                    if guard & 1 != 0 {
                        ALL
                    } else {
                        0
                    }
                }
                (false, _) => guard & group.lanes,
            };
            if mask == 0 {
                group.pc = group.pc.wrapping_add(INSTRUCTION_BYTES);
                continue;
            }
            let flow = match &inst.step {
                Step::Alu(f) => {
                    f(c.regs, mask);
                    group.pc = group.pc.wrapping_add(INSTRUCTION_BYTES);
                    continue;
                }
                Step::Op(f) => f(&mut c, mask)?,
                Step::Fault(kind) => {
                    return Err(Stop {
                        kind: kind.clone(),
                        lane: super::regs::first(mask & group.lanes),
                    });
                }
            };
            let next = group.pc.wrapping_add(INSTRUCTION_BYTES);
            // Puts the lanes of a mask that is part of the group in a group of their own.
            let mut part = |group: &mut Group, c: &Context<'_, '_>, lanes: u32, pc: u64| {
                group.lanes &= !lanes;
                let mut uniform = self.spare.pop().unwrap_or_else(|| Box::new(Uniform::new()));
                uniform.clone_from(&c.regs.uniform);
                self.ready.push_back(Group {
                    pc,
                    lanes,
                    uniform,
                    wait: Wait::None,
                });
            };
            match flow {
                Flow::Next => group.pc = next,
                Flow::Jump { taken: 0, .. } => group.pc = next,
                Flow::Jump {
                    taken,
                    target: Target::One(target),
                } => {
                    if target % INSTRUCTION_BYTES != 0 {
                        return Err(Stop {
                            kind: FaultKind::Misaligned { address: target },
                            lane: super::regs::first(taken),
                        });
                    }
                    if taken == group.lanes {
                        group.pc = target;
                    } else {
                        part(group, &c, taken, target);
                        group.pc = next;
                        c.group = group.lanes;
                    }
                }
                Flow::Jump {
                    taken,
                    target: Target::Each(to),
                } => {
                    // Lanes by target; those that do not jump go on here.
                    let stay = group.lanes & !taken;
                    let mut rest = taken;
                    while rest != 0 {
                        let lane = super::regs::first(rest);
                        let target = to[lane];
                        if target % INSTRUCTION_BYTES != 0 {
                            return Err(Stop {
                                kind: FaultKind::Misaligned { address: target },
                                lane,
                            });
                        }
                        let same = lanes(rest)
                            .filter(|i| to[*i] == target)
                            .fold(0, |m, i| m | 1 << i);
                        rest &= !same;
                        if rest == 0 && stay == 0 {
                            group.pc = target;
                        } else {
                            part(group, &c, same, target);
                        }
                    }
                    if stay != 0 {
                        group.pc = next;
                    }
                    c.group = group.lanes;
                }
                Flow::Exit(ending) => {
                    group.pc = next;
                    group.lanes &= !ending;
                    self.alive &= !ending;
                    c.blocks[self.block].exit(ending.count_ones());
                    cluster.exit(ending.count_ones());
                    if group.lanes == 0 {
                        return Ok(Turn::Ended);
                    }
                    return Ok(Turn::Over);
                }
                Flow::Converge {
                    barrier,
                    lanes: arriving,
                } => {
                    let view = c.regs.barriers[barrier];
                    let needed = lanes(arriving).fold(0, |m, i| m | view[i]) & self.alive;
                    if needed & !arriving == 0 {
                        group.pc = next;
                        continue;
                    }
                    let rest = group.lanes & !arriving;
                    if rest != 0 {
                        part(group, &c, rest, next);
                    }
                    group.wait = Wait::Converge(barrier);
                    return Ok(Turn::Waits);
                }
                Flow::Sync {
                    lanes: arriving,
                    masks,
                    collective,
                    alone,
                } => {
                    if arriving == 0 {
                        group.pc = next;
                        continue;
                    }
                    let missing = |i| masks[i] & self.alive & !arriving != 0;
                    if !collective && !alone && !lanes(arriving).any(missing) {
                        // Lanes that are together stay so, whatever their masks: the compiler puts votes of the whole
                        // warp behind a WARPSYNC of tiles.
                        group.pc = next;
                        continue;
                    }
                    let mask = masks[super::regs::first(arriving)];
                    let same = lanes(arriving)
                        .filter(|i| masks[*i] == mask)
                        .fold(0, |m, i| m | 1 << i);
                    if same != arriving {
                        // Lanes that wait for others: each mask on its own, at this instruction.
                        part(group, &c, arriving & !same, group.pc);
                    }
                    let rest = group.lanes & !same;
                    if mask & self.alive & !same == 0 {
                        if alone && rest != 0 {
                            part(group, &c, rest, next);
                        }
                        group.pc = next;
                        c.group = group.lanes;
                        continue;
                    }
                    if rest != 0 {
                        part(group, &c, rest, next);
                    }
                    group.wait = Wait::Sync { mask, collective };
                    return Ok(Turn::Waits);
                }
                Flow::Barrier(arrival) => {
                    if arrival.id >= launch.barriers.max(1) {
                        return Err(Stop {
                            kind: FaultKind::IllegalInstruction,
                            lane: super::regs::first(arrival.lanes),
                        });
                    }
                    let missing = LANES as u32 - self.present.count_ones();
                    let generation =
                        c.blocks[self.block]
                            .arrive(&arrival, missing)
                            .map_err(|kind| Stop {
                                kind,
                                lane: super::regs::first(arrival.lanes),
                            })?;
                    if !arrival.wait {
                        group.pc = next;
                        continue;
                    }
                    let rest = group.lanes & !arrival.lanes;
                    if rest != 0 {
                        part(group, &c, rest, next);
                    }
                    group.wait = Wait::Block {
                        id: arrival.id,
                        generation,
                    };
                    return Ok(Turn::Waits);
                }
                Flow::ClusterArrive => {
                    self.cluster_generation = cluster.generation;
                    cluster.arrive(group.lanes.count_ones());
                    group.pc = next;
                }
                Flow::ClusterWait => {
                    group.wait = Wait::Cluster {
                        generation: self.cluster_generation,
                    };
                    return Ok(Turn::Waits);
                }
                Flow::Yield => {
                    group.pc = next;
                    return Ok(Turn::Yields);
                }
                Flow::Recheck => {
                    group.pc = next;
                    if !self.waiting.is_empty() {
                        return Ok(Turn::Over);
                    }
                }
            }
        }
        Ok(Turn::Over)
    }

    /// Lets go those whose barrier of the block or cluster has opened.
    fn wake(&mut self, blocks: &[Block], cluster: &Cluster) {
        let (mut at, start) = (0, self.ready.len());
        while at < self.waiting.len() {
            let (wait, mask) = (self.waiting[at].wait, self.waiting[at].lanes);
            let open = match wait {
                Wait::Block { id, generation } => match blocks[self.block].passed(id, generation) {
                    Some(result) => {
                        for lane in lanes(mask) {
                            self.regs.reduced[lane] = result;
                        }
                        true
                    }
                    None => false,
                },
                Wait::Cluster { generation } => cluster.generation != generation,
                _ => false,
            };
            if open {
                let group = self.waiting.swap_remove(at);
                self.release(group, start);
            } else {
                at += 1;
            }
        }
    }

    /// Lets go those who wait for lanes of the warp that are all there.
    fn settle(&mut self, worker: &mut Worker<'_>) -> Result<(), (u64, Stop)> {
        while let Some(met) = self.meeting() {
            let (mut at, start) = (0, self.ready.len());
            let mut leader: Option<u64> = None;
            while at < self.waiting.len() {
                if self.waiting[at].lanes & met == 0 {
                    at += 1;
                    continue;
                }
                let mut group = if self.waiting[at].lanes & !met == 0 {
                    self.waiting.swap_remove(at)
                } else {
                    // Some of its lanes wait on.
                    let stay = &mut self.waiting[at];
                    let part = Group {
                        pc: stay.pc,
                        lanes: stay.lanes & met,
                        uniform: stay.uniform.clone(),
                        wait: stay.wait,
                    };
                    stay.lanes &= !met;
                    part
                };
                if matches!(
                    group.wait,
                    Wait::Sync {
                        collective: true,
                        ..
                    }
                ) {
                    // All lanes run one copy of the block; the copies have to be the same.
                    let first = *leader.get_or_insert(group.pc);
                    if !worker.code.same_block(first, group.pc) {
                        let text = "WARPSYNC.COLLECTIVE before blocks that differ".to_owned();
                        let lane = super::regs::first(group.lanes);
                        return Err((
                            group.pc,
                            Stop {
                                kind: FaultKind::Unimplemented { text },
                                lane,
                            },
                        ));
                    }
                    group.pc = first;
                }
                self.release(group, start);
            }
        }
        Ok(())
    }

    /// Lanes that wait for one another and for no one else.
    fn meeting(&self) -> Option<u32> {
        for group in &self.waiting {
            match group.wait {
                Wait::Converge(barrier) => {
                    let view = &self.regs.barriers[barrier];
                    // Lanes that name the same lanes stand in the same call: one register serves every depth.
                    let mut rest = group.lanes;
                    while rest != 0 {
                        let key = view[super::regs::first(rest)] & self.alive;
                        let same = |m: u32| lanes(m).filter(|i| view[*i] & self.alive == key);
                        rest &= !same(rest).fold(0, |m, i| m | 1 << i);
                        let there = self
                            .waiting
                            .iter()
                            .filter(|g| g.wait == group.wait)
                            .fold(0, |m, g| same(g.lanes).fold(m, |m, i| m | 1 << i));
                        if key & !there == 0 {
                            return Some(there);
                        }
                    }
                }
                Wait::Sync { mask, .. } => {
                    let there = self
                        .waiting
                        .iter()
                        .filter(|g| g.wait == group.wait)
                        .fold(0, |m, g| m | g.lanes);
                    if mask & self.alive & !there == 0 {
                        return Some(there);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Puts a group that has waited behind its barrier, together with those let go with it (from `start` on).
    fn release(&mut self, mut group: Group, start: usize) {
        group.pc = group.pc.wrapping_add(INSTRUCTION_BYTES);
        group.wait = Wait::None;
        match self.ready.iter_mut().skip(start).find(|g| g.pc == group.pc) {
            Some(other) => {
                other.lanes |= group.lanes;
                self.spare.push(group.uniform);
            }
            None => self.ready.push_back(group),
        }
    }

    fn fault(&self, pc: u64, stop: Stop, blocks: &[Block], launch: &Launch) -> Box<Fault> {
        let block = &blocks[self.block];
        Box::new(Fault {
            kind: stop.kind,
            pc,
            words: None,
            sm: block.sm,
            block: block.index,
            thread: launch.thread(self.number * LANES as u32 + stop.lane as u32),
        })
    }

    /// Where a lane that has not ended stands.
    pub fn position(&self) -> Option<(u64, usize)> {
        let group = self.ready.front().or(self.waiting.first())?;
        Some((group.pc, super::regs::first(group.lanes)))
    }

    /// The fault of a warp that cannot go on.
    pub fn stuck(&self, kind: FaultKind, blocks: &[Block], launch: &Launch) -> Box<Fault> {
        let (pc, lane) = self.position().unwrap_or((launch.program, 0));
        self.fault(pc, Stop { kind, lane }, blocks, launch)
    }
}

/// How a group's turn ended.
enum Turn {
    Over,
    Waits,
    Ended,
    Yields,
}

impl Context<'_, '_> {
    /// The time that a special register shows.
    pub fn time(&self, which: Special) -> u64 {
        match which {
            Special::ClockLo | Special::ClockHi => self.clock,
            Special::TimerLo | Special::TimerHi => self.started.elapsed().as_nanos() as u64,
            _ => 0,
        }
    }

    /// A special register.
    pub fn special(&self, which: Special, time: u64) -> Lanes {
        let block = &self.blocks[self.me];
        let high = |x: u64| [(x >> 32) as u32; LANES];
        let low = |x: u64| [x as u32; LANES];
        let cluster = self.launch.cluster;
        match which {
            Special::Zero => [0; LANES],
            Special::Tid => std::array::from_fn(|i| {
                self.tid[0][i] | self.tid[1][i] << 16 | self.tid[2][i] << 26
            }),
            Special::TidX => self.tid[0],
            Special::TidY => self.tid[1],
            Special::TidZ => self.tid[2],
            Special::CtaIdX => [block.index.x; LANES],
            Special::CtaIdY => [block.index.y; LANES],
            Special::CtaIdZ => [block.index.z; LANES],
            Special::SharedWindowHigh => high(self.launch.shared_window),
            Special::SharedWindowLow => low(self.launch.shared_window),
            Special::LocalWindowHigh => high(self.launch.local_window),
            Special::LocalWindowLow => low(self.launch.local_window),
            Special::SharedSize => [self.launch.shared_bytes; LANES],
            Special::SmId => [block.sm; LANES],
            // The lowest address of the stack: debug code compares its stack pointer with it.
            Special::LocalStart => {
                [self.launch
                    .stack_top
                    .saturating_sub(self.launch.local_bytes); LANES]
            }
            // The compiler reads bits 14:8, the number of the warp.
            Special::WarpId => [self.number << 8; LANES],
            Special::ClockLo | Special::TimerLo => low(time),
            Special::ClockHi | Special::TimerHi => high(time),
            Special::ClusterRank => [block.rank; LANES],
            // An index of a record in bank 0, not a count: 1 with clusters, 0 without. Both records hold the same.
            Special::ClusterSize => [u32::from(cluster.count() > 1); LANES],
            _ => which.lane_mask().unwrap_or([0; LANES]),
        }
    }
}
