//! Launches: from a checked launch to a submission.

use nv_proto::push::compute::{
    InvalidateShaderCaches, SendPcas, SendSignalingPcas, SendSignalingPcas2, SetShaderLocalMemory,
    SetShaderLocalMemoryNonThrottled,
};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::ClassId;

use super::queue::{Pending, State, StreamInner, Which, Work};
use crate::Error;
use crate::channel::LAUNCHES;
use crate::context::{ContextInner, lock};
use crate::launch::{Launch, LaunchScratch};
use crate::local::LocalMemory;

/// Launch descriptors are told to the GPU by address over 256.
const LAUNCH_ALIGN: u64 = 256;

impl StreamInner {
    /// Submits one launch; the value is reached once the kernel has ended.
    pub(crate) fn launch(&self, context: &ContextInner, launch: &Launch<'_>) -> Result<u64, Error> {
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
        launch: &Launch<'_>,
    ) -> Result<u64, Error> {
        let function = launch.function().inner();
        let needed = launch.local_bytes();
        let moves = state.local.per_thread < needed && context.moves_stacks(needed);
        let _moved = moves.then(|| context.move_stacks()).transpose()?;
        let _kept = (needed > 0 && !moves).then(|| context.keep_stacks());
        let local = self.local_for(context, state, needed)?;
        let local_bytes = local.as_ref().unwrap_or(&state.local).per_thread;

        // The shape is checked before any of the stream's memory is taken; only a cooperative one depends on
        // where that memory is. The cache is not held meanwhile: other streams may launch the same kernel.
        let anywhere = launch.shape(self.channel.area_va(LAUNCHES));
        let bank0 = lock(&function.shapes)
            .get(context, function, &anywhere, local_bytes)?
            .bank0_bytes();
        let size = LaunchScratch::size(bank0, launch.is_cooperative());
        let offset =
            LAUNCHES + self.take(context, state, Which::Launches, size as u64, LAUNCH_ALIGN)?;
        let meeting = LaunchScratch::size(bank0, false) as u64;
        let qmd = {
            let shape = launch.shape(self.channel.area_va(offset + meeting));
            let mut cache = lock(&function.shapes);
            let shaped = cache.get(context, function, &shape, local_bytes)?;
            let at = self.channel.area_va(offset);
            let (bytes, qmd) = state
                .scratch
                .encode(launch, shaped, at, self.submitted() + 1)?;
            self.channel.area()?.write(offset as usize, bytes)?;
            qmd
        };

        let compute = context.classes().compute;
        let generation = context.code_generation();
        let stale = state.code_generation != generation;
        let label = launch.function().label();
        let value = self.submit(context, state, Work::Launch(label), |push, _| {
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
