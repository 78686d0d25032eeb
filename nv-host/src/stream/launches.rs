//! Launches: from a checked launch to a submission.

use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use nv_proto::EncodeError;
use nv_proto::push::compute::{
    InvalidateShaderCachesNoWfi, SendPcas, SendSignalingPcas, SendSignalingPcas2,
    SetShaderLocalMemory, SetShaderLocalMemoryNonThrottled,
};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::qmd::{Qmd, Release, ReleaseSize};
use nv_proto::unit::{ClassId, GpuVa};

use super::queue::{Pending, State, StreamInner, Which, Work};
use super::{Stream, Turn};
use crate::Error;
use crate::channel::{LAUNCHES, ORDER, TIMELINE};
use crate::context::{ContextInner, lock};
use crate::launch::{Launch, LaunchScratch};
use crate::local::LocalMemory;

/// Launch descriptors are told to the GPU by address over 256.
const LAUNCH_ALIGN: u64 = 256;

impl StreamInner {
    /// Submits one launch; the value is reached once the kernel has ended.
    pub(crate) fn launch(
        &self,
        context: &ContextInner,
        launch: &Launch<'_, &Stream>,
    ) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        let before = state.launches.mark();
        let launched = self.launch_locked(context, &mut state, launch);
        if launched.is_err() {
            // No submission stands for the space, so none would give it back.
            state.launches.rewind(before);
        }
        launched
    }

    fn launch_locked(
        &self,
        context: &ContextInner,
        state: &mut State,
        launch: &Launch<'_, &Stream>,
    ) -> Result<u64, Error> {
        let (function, request) = (launch.function().inner(), launch.request());
        let needed = request.local_bytes;
        let _stacks = stacks(context, state, needed)?;
        let local = self.local_for(context, state, needed)?;
        let local_bytes = local.as_ref().unwrap_or(&state.local).per_thread;

        // The shape is checked before any of the stream's memory is taken; only a cooperative one depends on
        // where that memory is. The cache is not held meanwhile: other streams may launch the same kernel.
        let anywhere = request.shape(self.channel.area_va(LAUNCHES));
        let bank0 = lock(&function.shapes)
            .get(context, function, &anywhere, local_bytes)?
            .bank0_bytes();
        let size = LaunchScratch::size(bank0, request.cooperative);
        let offset =
            LAUNCHES + self.take(context, state, Which::Launches, size as u64, LAUNCH_ALIGN)?;
        let meeting = LaunchScratch::size(bank0, false) as u64;
        let releases = self.releases(state, self.submitted() + 1);
        let qmd = {
            let shape = request.shape(self.channel.area_va(offset + meeting));
            let mut cache = lock(&function.shapes);
            let shaped = cache.get(context, function, &shape, local_bytes)?;
            let at = self.channel.area_va(offset);
            let value = self.submitted() + 1;
            let finish = |qmd: &mut Qmd| Ok(set_releases(qmd, releases)?);
            let (bytes, qmd) = state
                .scratch
                .encode(function, request, shaped, at, value, finish)?;
            self.channel.area()?.write(offset as usize, bytes)?;
            qmd
        };

        let work = Work::Launch {
            kernel: launch.function().label(),
            grid: request.grid,
            block: request.block(),
        };
        self.start(context, state, work, local, qmd, releases.is_some())
    }

    /// What the grid of a submission releases at its end; `None` where descriptors release no 64 bits.
    ///
    /// The grid signals, and not the host: a host that waits for it keeps the channels of all other streams waiting,
    /// too (seen on an H200).
    fn releases(&self, state: &State, value: u64) -> Option<Releases> {
        /// The version from which on a descriptor releases 64 bits.
        const FIRST_WIDE_RELEASE: u8 = 3;
        let wide = state.scratch.qmd().version().major() >= FIRST_WIDE_RELEASE;
        // Where times are recorded the host waits, so that nothing begins before the end that it notes.
        (wide && state.recorder.is_none()).then(|| {
            [self.channel.area_va(ORDER), self.channel.page_va(TIMELINE)].map(|va| Release {
                va,
                payload: value,
                size: ReleaseSize::Timestamp,
                // The barrier at the end of the grid comes before.
                membar: false,
                reduction: None,
            })
        })
    }

    /// Submits the descriptor at `qmd`, which signals its end or does not, on a channel that is told of new `local`
    /// memory first.
    fn start(
        &self,
        context: &ContextInner,
        state: &mut State,
        work: Work<'_>,
        local: Option<LocalMemory>,
        qmd: GpuVa,
        signals: bool,
    ) -> Result<u64, Error> {
        let pending = if signals {
            Pending::Grid
        } else {
            Pending::Nothing
        };
        let compute = context.classes().compute;
        let generation = context.code_generation();
        let stale = state.code_generation != generation;
        let value = self.submit(context, state, work, |push, _| {
            if let Some(local) = &local {
                set_local_memory(push, local)?;
            }
            if stale {
                // Without waiting for idle: that waits for the kernels of all streams (seen on an H200).
                let drop_code = InvalidateShaderCachesNoWfi {
                    instruction: true,
                    constant: true,
                    ..Default::default()
                };
                push.write(Subchannel::COMPUTE, &drop_code)?;
            }
            push.write(Subchannel::COMPUTE, &SendPcas { qmd })?;
            schedule(push, compute)?;
            Ok(pending)
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
        context: &ContextInner,
        state: &State,
        bytes: u32,
    ) -> Result<Option<LocalMemory>, Error> {
        if state.local.per_thread >= bytes {
            return Ok(None);
        }
        let local = context.local_memory(bytes)?;
        // The old memory goes with `state.local`: whatever still uses it must have ended.
        if state.local.memory.is_some() {
            self.wait_locked(context, state, self.submitted(), self.limit)?;
        }
        Ok(Some(local))
    }
}

impl Turn<'_> {
    /// Submits a chain of descriptors, each of which starts the next; the value is reached once the last has ended.
    ///
    /// `prepare` is told how much local memory a thread has, at least `local_bytes`, and the releases that the last
    /// descriptor is to make if its version can; it answers where the first one lies. Nothing of the chain may be
    /// in flight.
    pub(crate) fn chain(
        &mut self,
        context: &ContextInner,
        (label, launches): (&Arc<str>, usize),
        local_bytes: u32,
        prepare: impl FnOnce(u32, Option<Releases>) -> Result<GpuVa, Error>,
    ) -> Result<u64, Error> {
        let (stream, state) = (self.stream, &mut *self.state);
        let _stacks = stacks(context, state, local_bytes)?;
        let local = stream.local_for(context, state, local_bytes)?;
        let per_thread = local.as_ref().unwrap_or(&state.local).per_thread;
        let releases = stream.releases(state, stream.submitted() + 1);
        let first = prepare(per_thread, releases)?;
        let work = Work::Chain { label, launches };
        stream.start(context, state, work, local, first, releases.is_some())
    }
}

/// What the last grid of a submission releases: the order semaphore, then the timeline.
pub(crate) type Releases = [Release; 2];

/// Gives a descriptor these releases, and no others.
pub(crate) fn set_releases(qmd: &mut Qmd, releases: Option<Releases>) -> Result<(), EncodeError> {
    let [order, timeline] = releases.map_or([None, None], |releases| releases.map(Some));
    qmd.set_release(0, order)?;
    qmd.set_release(1, timeline)
}

/// What a launch holds while it is submitted.
#[derive(Debug)]
#[allow(dead_code, reason = "held, and dropped")]
enum Stacks<'a> {
    /// No kernel in it has a stack.
    None,
    /// Stacks stay where they are.
    Kept(RwLockReadGuard<'a, ()>),
    /// They are being moved.
    Moved(RwLockWriteGuard<'a, ()>),
}

/// Readies the stacks of a context for a launch whose threads need `bytes` of local memory.
fn stacks<'a>(context: &'a ContextInner, state: &State, bytes: u32) -> Result<Stacks<'a>, Error> {
    Ok(if bytes == 0 {
        Stacks::None
    } else if state.local.per_thread < bytes && context.moves_stacks(bytes) {
        Stacks::Moved(context.move_stacks()?)
    } else {
        Stacks::Kept(context.keep_stacks())
    })
}

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
