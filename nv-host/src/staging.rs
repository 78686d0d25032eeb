//! Copies between pageable host memory and the GPU, through pinned memory.
//!
//! One thread copies pageable memory far slower than the bus carries it (7 to 10 of 54 GB/s on an H200's host), so a
//! large copy is shared out to several threads. Each has a lane: two pieces of pinned memory, of which the copy
//! engine is busy with one while the thread fills or empties the other. No thread outlives its copy.

use std::sync::{Arc, Mutex};
use std::thread;

use nv_proto::unit::GpuVa;

use crate::Error;
use crate::context::{ContextInner, lock};
use crate::memory::{Allocation, Placement, Use};
use crate::stream::{StreamInner, Submitted};

/// Copies up to this size go through a block of their own, which takes no lane.
const SMALL: usize = 128 << 10;

/// Bytes of one of the two pieces of a lane.
const PIECE: usize = 2 << 20;

/// The most threads, and idle lanes that are kept.
const LANES: usize = 8;

/// Bytes of a copy for each thread: less is copied before a further thread has begun.
const BYTES_PER_THREAD: usize = 8 << 20;

/// The lanes that no copy uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    idle: Mutex<Vec<Lane>>,
}

/// Pinned memory of one thread that copies.
#[derive(Debug)]
struct Lane {
    memory: Arc<Allocation>,
    /// The copy that last used each piece, until it is known to have ended: one that ran out of time still reads or
    /// writes there.
    in_flight: [Option<Submitted>; 2],
}

impl Staging {
    /// Copies `bytes` to `va` and waits until they are there.
    pub(crate) fn upload(
        &self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if bytes.len() <= SMALL {
            return small(context, bytes.len(), |block| {
                block.mapping()?.write(0, bytes)?;
                let copied = stream.copy(context, va, block.va(), bytes.len() as u64)?;
                stream.wait(context, copied, context.limit())
            });
        }
        let pieces = Mutex::new(bytes.chunks(PIECE).enumerate());
        self.share(context, bytes.len(), |lane| {
            lane.upload(context, stream, || {
                let (i, piece) = lock(&pieces).next()?;
                Some((piece_va(va, i), piece))
            })
        })
    }

    /// Copies from `va` until `bytes` is full.
    pub(crate) fn download(
        &self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let total = bytes.len();
        if total <= SMALL {
            return small(context, total, |block| {
                let copied = stream.copy(context, block.va(), va, total as u64)?;
                stream.wait(context, copied, context.limit())?;
                block.mapping()?.read(0, bytes)
            });
        }
        let pieces = Mutex::new(bytes.chunks_mut(PIECE).enumerate());
        self.share(context, total, |lane| {
            lane.download(context, stream, || {
                let (i, piece) = lock(&pieces).next()?;
                Some((piece_va(va, i), piece))
            })
        })
    }

    /// Gives back the memory of idle lanes; answers whether there were any.
    pub(crate) fn trim(&self, context: &ContextInner) -> bool {
        let idle = std::mem::take(&mut *lock(&self.idle));
        let any = !idle.is_empty();
        for lane in idle {
            context.retire(lane.memory);
        }
        any
    }

    /// Runs `work` on as many threads as a copy of `bytes` is worth, the caller's among them. They share the pieces
    /// out among themselves, so that it is done also where fewer threads can be had.
    fn share(
        &self,
        context: &ContextInner,
        bytes: usize,
        work: impl Fn(&mut Lane) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = (bytes / BYTES_PER_THREAD)
            .min(processors / 2)
            .clamp(1, LANES);
        let mut lanes = self.take(context, threads)?;
        let done = match lanes.as_mut_slice() {
            [lane] => work(lane),
            lanes => thread::scope(|scope| {
                let work = &work;
                let (own, others) = lanes.split_at_mut(1);
                let helpers: Vec<_> = others
                    .iter_mut()
                    .filter_map(|lane| {
                        let helper = thread::Builder::new().name("nv-copy".into());
                        helper.spawn_scoped(scope, move || work(lane)).ok()
                    })
                    .collect();
                let own = own.iter_mut().try_for_each(work);
                helpers.into_iter().fold(own, |done, helper| {
                    let helped = helper.join().unwrap_or_else(|_| {
                        Err(Error::Unsupported("a thread that copied panicked".into()))
                    });
                    done.and(helped)
                })
            }),
        };
        self.give_back(context, lanes);
        done
    }

    /// At least one lane, and up to `count` where they can be had.
    fn take(&self, context: &ContextInner, count: usize) -> Result<Vec<Lane>, Error> {
        let mut lanes = {
            let mut idle = lock(&self.idle);
            let kept = idle.len().saturating_sub(count);
            idle.split_off(kept)
        };
        while lanes.len() < count {
            match Lane::new(context) {
                Ok(lane) => lanes.push(lane),
                Err(error) if lanes.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(lanes)
    }

    fn give_back(&self, context: &ContextInner, mut lanes: Vec<Lane>) {
        let mut idle = lock(&self.idle);
        let kept = lanes.len().min(LANES.saturating_sub(idle.len()));
        let surplus = lanes.split_off(kept);
        idle.extend(lanes);
        drop(idle);
        for lane in surplus {
            context.retire(lane.memory);
        }
    }
}

impl Lane {
    fn new(context: &ContextInner) -> Result<Self, Error> {
        let memory = context.allocate(2 * PIECE as u64, Placement::Pinned, Use::Staging)?;
        Ok(Self {
            memory: Arc::new(memory),
            in_flight: [None, None],
        })
    }

    /// Copies the pieces that `next` gives to their addresses, and waits until they are there.
    fn upload<'a>(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        next: impl Fn() -> Option<(GpuVa, &'a [u8])>,
    ) -> Result<(), Error> {
        let (mut half, mut last) = (0, 0);
        while let Some((va, piece)) = next() {
            self.settle(context, half)?;
            self.memory.mapping()?.write(half * PIECE, piece)?;
            let way = (va, piece_va(self.memory.va(), half));
            last = self.copy(context, stream, half, way, piece.len())?;
            half ^= 1;
        }
        stream.wait(context, last, context.limit())
    }

    /// Copies the pieces that `next` gives from their addresses.
    fn download<'a>(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        next: impl Fn() -> Option<(GpuVa, &'a mut [u8])>,
    ) -> Result<(), Error> {
        let mut half = 0;
        let begin = |lane: &mut Self, half: usize| {
            let Some((va, piece)) = next() else {
                return Ok(None);
            };
            lane.settle(context, half)?;
            let way = (piece_va(lane.memory.va(), half), va);
            let value = lane.copy(context, stream, half, way, piece.len())?;
            Ok::<_, Error>(Some((piece, value)))
        };
        let mut begun = begin(self, half)?;
        while let Some((piece, value)) = begun {
            begun = begin(self, half ^ 1)?;
            stream.wait(context, value, context.limit())?;
            self.memory.mapping()?.read(half * PIECE, piece)?;
            half ^= 1;
        }
        Ok(())
    }

    /// Waits until no copy uses a piece.
    fn settle(&mut self, context: &ContextInner, half: usize) -> Result<(), Error> {
        let Some(place) = self.in_flight.get_mut(half) else {
            return Ok(());
        };
        if let Some(submitted) = place
            && !submitted.is_over()
        {
            match submitted.wait(context, context.limit()) {
                // What a fault ended uses nothing any more; the next copy meets it if it is on the same stream.
                Ok(()) | Err(Error::Fault(_)) => {}
                Err(error) => return Err(error),
            }
        }
        *place = None;
        Ok(())
    }

    /// Submits a copy from or to a piece.
    fn copy(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        half: usize,
        (target, source): (GpuVa, GpuVa),
        bytes: usize,
    ) -> Result<u64, Error> {
        let copied = stream.copy(context, target, source, bytes as u64);
        // Where it failed, a part of it may have been submitted.
        let value = *copied.as_ref().unwrap_or(&stream.submitted());
        if let Some(place) = self.in_flight.get_mut(half) {
            *place = Some(Submitted::new(stream, value));
        }
        copied
    }
}

/// Has a small copy done through a block of pinned memory.
fn small(
    context: &ContextInner,
    bytes: usize,
    copy: impl FnOnce(&Allocation) -> Result<(), Error>,
) -> Result<(), Error> {
    let block = context.allocate(bytes.max(1) as u64, Placement::Pinned, Use::Staging)?;
    let copied = copy(&block);
    if copied.is_err() {
        // It may still be on its way.
        context.retire(Arc::new(block));
    }
    copied
}

/// The address of the piece of that number.
fn piece_va(va: GpuVa, number: usize) -> GpuVa {
    GpuVa(va.0 + (number * PIECE) as u64)
}
