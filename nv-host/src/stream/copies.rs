//! Copies by the copy engine.

use nv_proto::push::Subchannel;
use nv_proto::push::copy::{
    LINEAR_STEP, LaunchDma, LineLengthIn, Offsets, SemaphoreType, SetSemaphore, SetSemaphore64,
};
use nv_proto::push::host::{SemExecute, SemOperation, Semaphore};
use nv_proto::unit::GpuVa;

use super::queue::{Pending, State, StreamInner, Work};
use crate::Error;
use crate::channel::{ENGINE_SEMAPHORE, TIMELINE};
use crate::context::{ContextInner, lock};

/// The copy class from which on the copy engine releases 64-bit payloads (`clc7b5.h`).
const FIRST_WIDE_COPY_CLASS: u32 = 0xc7b5;

/// Pieces of a copy that fit one submission's words.
const PIECES_PER_SUBMISSION: usize = 5;

impl StreamInner {
    /// Submits a copy; the value is reached once it has ended.
    pub(crate) fn copy(
        &self,
        context: &ContextInner,
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    ) -> Result<u64, Error> {
        self.copy_locked(context, &mut lock(&self.state), target, source, bytes)
    }

    /// [`StreamInner::copy`] for a caller that holds the state.
    pub(super) fn copy_locked(
        &self,
        context: &ContextInner,
        state: &mut State,
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    ) -> Result<u64, Error> {
        let wide = context.classes().copy.0 >= FIRST_WIDE_COPY_CLASS;
        let timeline = self.channel.page_va(TIMELINE);
        let engine = self.channel.page_va(ENGINE_SEMAPHORE);
        let mut done = 0;
        let mut last = self.submitted();
        // As many pieces to a submission as its words hold; each piece but the last of all is followed by
        // others that wait for it (non-pipelined).
        while done < bytes {
            let most = u64::from(LINEAR_STEP) * PIECES_PER_SUBMISSION as u64;
            let work = Work::Copy {
                bytes: (bytes - done).min(most),
            };
            last = self.submit(context, state, work, |push, value| {
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
}
