//! The host engine: fetches GPFIFO entries and their words, runs its own methods, hands out the others.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use nv_proto::gpfifo::{Fetch, GpEntry, Opcode, Segment};
use nv_proto::push::host::{self, SemExecute, SemOperation, SemReduction};
use nv_proto::push::{MethodWrite, PushReader};
use nv_proto::unit::ClassId;

use crate::access;
use crate::channel::Channel;
use crate::compute::{Compute, Origin};
use crate::copy::Copy;
use crate::engine::{Context, HOST, Reduction, Registers, Release, bad_data, unknown_method};
use crate::fault::{GR_CLASS_ERROR, Stop};
use crate::gpu::Gpu;

/// What came of running a channel for a while.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// It got on, and may have more to do.
    Ran,
    /// It waits for a semaphore.
    Waiting,
    /// Another worker runs it.
    Elsewhere,
    /// It has nothing to do until its doorbell rings.
    Done,
}

/// Runs a channel for a while, on the worker of this number.
pub(crate) fn advance(gpu: &Arc<Gpu>, worker: usize, channel: &Channel) -> Progress {
    let mut execution = match channel.execution.try_lock() {
        Ok(execution) => execution,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Progress::Elsewhere,
    };
    // Looked at under the lock: who frees a channel takes it after saying so.
    if !channel.is_runnable() {
        return Progress::Done;
    }
    // What rings from here on is not seen for certain.
    channel.rung.store(false, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    let table = channel.space.snapshot();
    let mut context = Context {
        gpu,
        worker,
        channel,
        table,
    };
    let result = execution.run(&mut context);
    drop((execution, context));
    match result {
        Ok(progress) => progress,
        Err(stop) => {
            channel.stop(&stop, gpu.nanoseconds());
            Progress::Done
        }
    }
}

/// The engines' state of one channel.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    /// The ring's next entry.
    get: u32,
    /// How many entries were fetched in all.
    fetched: u64,
    /// The words that run, and where in them the next packet begins.
    words: Vec<u32>,
    packet: usize,
    /// How many writes of that packet are done.
    written: usize,
    /// A semaphore that is waited for.
    waiting: Option<Acquire>,
    /// Host methods' data.
    registers: Registers,
    /// What each subchannel is bound to.
    bound: [Option<Engine>; 8],
    compute: Compute,
    copy: Copy,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Engine {
    Compute,
    Copy,
}

/// A semaphore that is waited for.
#[derive(Clone, Copy, Debug)]
struct Acquire {
    va: u64,
    payload: u64,
    wide: bool,
    operation: SemOperation,
}

impl Acquire {
    /// Whether the wait is over.
    fn is_satisfied(&self, context: &Context<'_>) -> Result<bool, Stop> {
        let Self {
            va,
            payload,
            wide,
            operation,
        } = *self;
        let table = &*context.table;
        let memory = if wide {
            access::load_u64(table, va)
        } else {
            access::load_u32(table, va).map(u64::from)
        };
        let memory = memory.map_err(context.mmu(HOST.0))?;
        let width = if wide { u64::MAX } else { u64::from(u32::MAX) };
        let payload = payload & width;
        Ok(match operation {
            SemOperation::Acquire => memory == payload,
            SemOperation::AcqStrictGeq => memory >= payload,
            SemOperation::AcqCircGeq if wide => memory.wrapping_sub(payload) as i64 >= 0,
            SemOperation::AcqCircGeq => (memory as u32).wrapping_sub(payload as u32) as i32 >= 0,
            SemOperation::AcqAnd => memory & payload != 0,
            SemOperation::AcqNor => !(memory | payload) & width != 0,
            SemOperation::Release | SemOperation::Reduction => true,
        })
    }
}

/// Packets that run before other channels get a turn.
const PACKETS_PER_TURN: usize = 4096;
/// How long a channel runs before others get a turn; a grid ends first.
const TURN: Duration = Duration::from_millis(2);

impl Execution {
    fn run(&mut self, context: &mut Context<'_>) -> Result<Progress, Stop> {
        // The words are taken out so that packets can borrow them while methods change the rest.
        let words = std::mem::take(&mut self.words);
        let result = self.run_words(context, words);
        let (words, progress) = result?;
        self.words = words;
        Ok(progress)
    }

    fn run_words(
        &mut self,
        context: &mut Context<'_>,
        mut words: Vec<u32>,
    ) -> Result<(Vec<u32>, Progress), Stop> {
        let mut ran = false;
        let start = Instant::now();
        for _ in 0..PACKETS_PER_TURN {
            if context.channel.cancel.load(Ordering::Acquire) {
                return Err(Stop::Cancelled);
            }
            if let Some(acquire) = self.waiting {
                context.refresh();
                if !acquire.is_satisfied(context)? {
                    let progress = if ran {
                        Progress::Ran
                    } else {
                        Progress::Waiting
                    };
                    return Ok((words, progress));
                }
                self.waiting = None;
                self.compute.acquired(acquire.va);
            }
            ran = true;
            if self.packet >= words.len() && !self.fetch(context, &mut words)? {
                return Ok((words, Progress::Done));
            }
            self.run_packet(context, &words)?;
            if start.elapsed() > TURN {
                break;
            }
        }
        Ok((words, Progress::Ran))
    }

    /// Fetches the next entry and its words; `false` when there is none.
    fn fetch(&mut self, context: &mut Context<'_>, words: &mut Vec<u32>) -> Result<bool, Stop> {
        let Channel {
            ring,
            entries,
            ref userd,
            ..
        } = *context.channel;
        words.clear();
        (self.packet, self.written) = (0, 0);
        let put = userd.load_u32(Channel::GP_PUT);
        if put >= entries {
            let text = format!("host: GP_PUT is {put} and the ring has {entries} entries");
            return Err(Stop::new(HOST.1, text));
        }
        if self.get == put {
            return Ok(false);
        }
        context.refresh();
        let at = ring.wrapping_add(u64::from(self.get) * 8);
        let entry = access::load_u64(&*context.table, at).map_err(context.mmu(HOST.0))?;
        let entry = GpEntry::decode(entry).map_err(|error| {
            bad_data(
                "host: GPFIFO",
                HOST.1,
                format!("entry {}: {error}", self.get),
            )
        })?;
        self.get = (self.get + 1) % entries;
        self.fetched += 1;
        match entry {
            GpEntry::Segment(segment) => self.fetch_words(context, segment, words)?,
            GpEntry::Control {
                opcode: Opcode::Nop,
                ..
            } => {}
            GpEntry::Control { opcode, operand } => {
                let text = format!("control entry {opcode:?} (operand {operand:#x})");
                return Err(bad_data("host: GPFIFO", HOST.1, text));
            }
        }
        userd.store_u32(Channel::GP_GET, self.get);
        Ok(true)
    }

    fn fetch_words(
        &self,
        context: &Context<'_>,
        segment: Segment,
        words: &mut Vec<u32>,
    ) -> Result<(), Stop> {
        if segment.fetch() == Fetch::Conditional {
            return Err(bad_data(
                "host: GPFIFO",
                HOST.1,
                "a conditional fetch is not implemented",
            ));
        }
        let mut bytes = vec![0; segment.dwords() as usize * 4];
        access::read(&*context.table, segment.va().0, &mut bytes)
            .map_err(context.mmu("host: pushbuffer fetch"))?;
        let chunks = bytes
            .chunks_exact(4)
            .filter_map(|word| word.try_into().ok());
        words.extend(chunks.map(u32::from_le_bytes));
        Ok(())
    }

    /// Runs what is left of the packet at hand, up to a semaphore that has to be waited for.
    fn run_packet(&mut self, context: &mut Context<'_>, words: &[u32]) -> Result<(), Stop> {
        let rest = words.get(self.packet..).unwrap_or(&[]);
        let mut reader = PushReader::new(rest);
        let Some(packet) = reader.next() else {
            self.packet = words.len();
            return Ok(());
        };
        let packet = packet.map_err(|error| {
            let text = format!("packet at dword {}: {error}", self.packet);
            bad_data("host: pushbuffer", HOST.1, text)
        })?;
        for write in packet.writes().skip(self.written) {
            self.written += 1;
            self.method(context, write)?;
            if self.waiting.is_some() {
                return Ok(());
            }
        }
        self.written = 0;
        self.packet += reader.offset();
        if packet.header == nv_proto::push::Header::EndPbSegment {
            self.packet = words.len();
        }
        Ok(())
    }

    fn method(&mut self, context: &mut Context<'_>, write: MethodWrite) -> Result<(), Stop> {
        let (method, data) = (write.method.bytes(), write.data);
        let subchannel = usize::from(write.subchannel.number());
        if write.method.is_host() {
            return self.host_method(context, subchannel, write);
        }
        match self.bound.get(subchannel).copied().flatten() {
            Some(Engine::Compute) => {
                let (entry, get, channel) = (self.fetched, self.get, context.channel);
                let origin = || {
                    // How far the client has got by now.
                    let put = channel.userd.load_u32(Channel::GP_PUT);
                    let ahead = put.wrapping_sub(get) & channel.entries.wrapping_sub(1);
                    Origin {
                        entry,
                        submitted: entry + u64::from(ahead),
                    }
                };
                self.compute.method(context, write.method, data, origin)
            }
            Some(Engine::Copy) => self.copy.method(context, write.method, data),
            None => {
                let text = format!(
                    "method {method:#x} (data {data:#x}) on subchannel {subchannel}, bound to no class"
                );
                Err(bad_data(HOST.0, HOST.1, text))
            }
        }
    }

    fn host_method(
        &mut self,
        context: &mut Context<'_>,
        subchannel: usize,
        write: MethodWrite,
    ) -> Result<(), Stop> {
        let data = write.data;
        self.registers.set(write.method.bytes(), data);
        match write.method {
            host::SET_OBJECT => self.bind(context, subchannel, ClassId(data & 0xffff)),
            host::SEM_EXECUTE => self.semaphore(context, data),
            host::WFI => {
                self.compute.idle();
                Ok(())
            }
            host::MEM_OP_D => match data >> 27 {
                // `OPERATION` (clc56f.h, clc86f.h): barriers, invalidations and flushes. Accesses of one
                // channel are in order here, and translations are never stale.
                5 | 9 | 10 | 13..=16 | 21 => Ok(()),
                other => {
                    let text = format!("MEM_OP_D operation {other} is not implemented");
                    Err(bad_data(HOST.0, HOST.1, text))
                }
            },
            host::SEM_ADDR_LO
            | host::SEM_ADDR_HI
            | host::SEM_PAYLOAD_LO
            | host::SEM_PAYLOAD_HI
            | host::MEM_OP_A
            | host::MEM_OP_B
            | host::MEM_OP_C
            | host::NOP
            | host::NON_STALL_INTERRUPT
            | host::FB_FLUSH
            | host::SET_REFERENCE
            | host::YIELD => Ok(()),
            other => Err(unknown_method(HOST, context.channel.class, other, data)),
        }
    }

    fn bind(
        &mut self,
        context: &Context<'_>,
        subchannel: usize,
        class: ClassId,
    ) -> Result<(), Stop> {
        let chip = context.gpu.chip;
        let engine = if class == chip.compute_class() {
            Some(Engine::Compute)
        } else if class == chip.copy_class() {
            Some(Engine::Copy)
        } else {
            None
        };
        if engine.is_none() || !context.channel.has_object(class) {
            let text = format!(
                "SET_OBJECT: no object of class {:#x} was made on the channel",
                class.0
            );
            return Err(bad_data(HOST.0, GR_CLASS_ERROR, text));
        }
        if let Some(bound) = self.bound.get_mut(subchannel) {
            *bound = engine;
        }
        Ok(())
    }

    fn semaphore(&mut self, context: &Context<'_>, data: u32) -> Result<(), Stop> {
        let execute = SemExecute::decode(data).map_err(|error| bad_data(HOST.0, HOST.1, error))?;
        let half =
            |method: nv_proto::push::MethodAddr| u64::from(self.registers.get(method.bytes()));
        let va = half(host::SEM_ADDR_HI) << 32 | half(host::SEM_ADDR_LO) & !3;
        let payload = half(host::SEM_PAYLOAD_HI) << 32 | half(host::SEM_PAYLOAD_LO);
        let wide = execute.payload_64bit;
        let operation = execute.operation;
        if operation.is_acquire() {
            if wide && va % 8 != 0 {
                let text = format!("an acquired 64-bit semaphore at {va:#x} is no multiple of 8");
                return Err(bad_data(HOST.0, HOST.1, text));
            }
            self.waiting = Some(Acquire {
                va,
                payload,
                wide,
                operation,
            });
            return Ok(());
        }
        if execute.release_wfi {
            self.compute.idle();
        }
        let reduction = (operation == SemOperation::Reduction).then_some({
            let how = match execute.reduction {
                SemReduction::Min => Reduction::Min,
                SemReduction::Max => Reduction::Max,
                SemReduction::Xor => Reduction::Xor,
                SemReduction::And => Reduction::And,
                SemReduction::Or => Reduction::Or,
                SemReduction::Add => Reduction::Add,
                SemReduction::Inc => Reduction::Inc,
                SemReduction::Dec => Reduction::Dec,
            };
            (how, !execute.reduction_unsigned)
        });
        let timestamp = execute.release_timestamp;
        Release {
            va,
            payload,
            wide,
            timestamp,
            reduction,
        }
        .perform(context, HOST.0, HOST.1)
    }
}
