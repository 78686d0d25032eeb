//! Copies and fills by the copy engine.

use nv_proto::push::copy::{
    self, LINEAR_STEP, LaunchDma, LineLengthIn, OffsetOut, Offsets, OneToFour, Pitches,
    RemapSource, SemaphoreType, SetRemapComponents, SetRemapConst, SetSemaphore, SetSemaphore64,
};
use nv_proto::push::host::{SemExecute, SemOperation, Semaphore};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::GpuVa;

use super::queue::{Pending, State, StreamInner, Work};
use crate::Error;
use crate::channel::{ENGINE_SEMAPHORE, TIMELINE};
use crate::context::{ContextInner, lock};

/// The copy class from which on the copy engine releases 64-bit payloads (`clc7b5.h`).
const FIRST_WIDE_COPY_CLASS: u32 = 0xc7b5;

/// Pieces of a copy or of a fill that fit one submission's words.
const PIECES_PER_SUBMISSION: usize = 5;

/// The most elements that one launch fills, so that their bytes stay within [`LINEAR_STEP`].
const FILL_STEP: u64 = LINEAR_STEP as u64 / 8;

/// Lines of memory, each as long and as far apart as the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// First bytes of target and source.
    pub(crate) target: GpuVa,
    pub(crate) source: GpuVa,
    /// From one line to the next, in bytes.
    pub(crate) pitches: Pitches,
    /// Bytes of a line.
    pub(crate) bytes: u32,
    /// How many.
    pub(crate) count: u32,
}

/// What a fill repeats: one or two components.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    low: u32,
    /// The second half of 8 bytes.
    high: Option<u32>,
    component: OneToFour,
}

impl Pattern {
    /// A pattern of 1, 2, 4 or 8 bytes; `None` for any other number.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let (low, high, component) = match *bytes {
            [a] => (u32::from(a), None, OneToFour::One),
            [a, b] => (u32::from_le_bytes([a, b, 0, 0]), None, OneToFour::Two),
            [a, b, c, d] => (u32::from_le_bytes([a, b, c, d]), None, OneToFour::Four),
            [a, b, c, d, e, f, g, h] => {
                let high = u32::from_le_bytes([e, f, g, h]);
                (
                    u32::from_le_bytes([a, b, c, d]),
                    Some(high),
                    OneToFour::Four,
                )
            }
            _ => return None,
        };
        Some(Self {
            low,
            high,
            component,
        })
    }

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.component.count()) * if self.high.is_some() { 2 } else { 1 }
    }

    /// The pattern as it lies in each 4 bytes from an aligned address on; `None` where they differ.
    pub(crate) fn word(self) -> Option<u32> {
        match self.high {
            Some(high) => (high == self.low).then_some(high),
            None => Some(self.widened().low),
        }
    }

    /// The same repeated to 4 bytes, which the engine writes as fast as 1.
    fn widened(self) -> Self {
        let low = match self.component {
            OneToFour::One => self.low * 0x0101_0101,
            OneToFour::Two => self.low * 0x0001_0001,
            _ => return self,
        };
        Self {
            low,
            component: OneToFour::Four,
            ..self
        }
    }

    fn set(self, push: &mut PushWriter<'_>) -> Result<(), Error> {
        let values = SetRemapConst {
            a: self.low,
            b: self.high.unwrap_or(0),
        };
        let components = SetRemapComponents {
            dst_x: RemapSource::ConstA,
            dst_y: RemapSource::ConstB,
            component_size: self.component,
            num_dst_components: match self.high {
                Some(_) => OneToFour::Two,
                None => OneToFour::One,
            },
            ..SetRemapComponents::default()
        };
        push.write(Subchannel::COPY, &values)?;
        push.write(Subchannel::COPY, &components)?;
        Ok(())
    }
}

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
        const MOST: u64 = LINEAR_STEP as u64 * PIECES_PER_SUBMISSION as u64;
        let mut done = 0;
        let mut last = self.submitted();
        // As many pieces to a submission as its words hold; each waits for those before it (non-pipelined).
        while done < bytes {
            let part = (bytes - done).min(MOST);
            last = self.submit_copy(context, state, part, |push| {
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
                Ok(())
            })?;
        }
        Ok(last)
    }

    /// Submits a copy of lines; the value is reached once it has ended.
    pub(crate) fn copy_lines(&self, context: &ContextInner, lines: Lines) -> Result<u64, Error> {
        let offsets = Offsets {
            src: lines.source,
            dst: lines.target,
        };
        let (bytes, count) = (lines.bytes, lines.count);
        let all = u64::from(bytes) * u64::from(count);
        self.submit_copy(context, &mut lock(&self.state), all, |push| {
            copy::lines(push, Subchannel::COPY, offsets, lines.pitches, bytes, count)?;
            Ok(())
        })
    }

    /// Submits a fill of `count` elements; the value is reached once it has ended.
    pub(crate) fn fill(
        &self,
        context: &ContextInner,
        target: GpuVa,
        pattern: Pattern,
        count: u64,
    ) -> Result<u64, Error> {
        self.fill_locked(context, &mut lock(&self.state), target, pattern, count)
    }

    /// [`StreamInner::fill`] for a caller that holds the state.
    pub(super) fn fill_locked(
        &self,
        context: &ContextInner,
        state: &mut State,
        target: GpuVa,
        pattern: Pattern,
        count: u64,
    ) -> Result<u64, Error> {
        const MOST: u64 = FILL_STEP * PIECES_PER_SUBMISSION as u64;
        let wide = pattern.widened();
        // Of narrow elements: those before the first whole word, the words, and those after the last.
        let size = pattern.bytes();
        let ratio = wide.bytes() / size;
        let head = match target.0 % wide.bytes() {
            past if ratio > 1 && past > 0 => ((wide.bytes() - past) / size).min(count),
            _ => 0,
        };
        let words = (count - head) / ratio;
        let tail = count - head - words * ratio;
        let parts = [(pattern, head), (wide, words), (pattern, tail)];

        let mut last = self.submitted();
        let mut at = target.0;
        for (pattern, count) in parts {
            let mut left = count;
            while left > 0 {
                let part = left.min(MOST) * pattern.bytes();
                last = self.submit_copy(context, state, part, |push| {
                    pattern.set(push)?;
                    for _ in 0..PIECES_PER_SUBMISSION {
                        let piece = left.min(FILL_STEP);
                        if piece == 0 {
                            break;
                        }
                        push.write(Subchannel::COPY, &OffsetOut { dst: GpuVa(at) })?;
                        let length = u32::try_from(piece).unwrap_or(LINEAR_STEP);
                        push.write(Subchannel::COPY, &LineLengthIn(length))?;
                        let launch = LaunchDma {
                            remap_enable: true,
                            ..LaunchDma::linear()
                        };
                        push.write(Subchannel::COPY, &launch)?;
                        left -= piece;
                        at += piece * pattern.bytes();
                    }
                    Ok(())
                })?;
            }
        }
        Ok(last)
    }

    /// Submits what `fill` writes for the copy engine, which moves `bytes`, and after it the engine's own signal.
    fn submit_copy(
        &self,
        context: &ContextInner,
        state: &mut State,
        bytes: u64,
        fill: impl FnOnce(&mut PushWriter<'_>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let wide = context.classes().copy.0 >= FIRST_WIDE_COPY_CLASS;
        let timeline = self.channel.page_va(TIMELINE);
        let engine = self.channel.page_va(ENGINE_SEMAPHORE);
        // Other than that of the copy before, however many other submissions lie between.
        let ticket = state.copies.wrapping_add(1);
        let value = self.submit(context, state, Work::Copy { bytes }, |push, value| {
            fill(push)?;
            if wide {
                let semaphore = SetSemaphore64 {
                    at: timeline,
                    payload: value,
                };
                push.write(Subchannel::COPY, &semaphore)?;
                let launch = LaunchDma {
                    flush_enable: true,
                    semaphore_type: SemaphoreType::FourWord,
                    semaphore_payload_two_word: true,
                    ..LaunchDma::default()
                };
                push.write(Subchannel::COPY, &launch)?;
                return Ok(Pending::Copy);
            }
            // A one-word payload, which the host waits for and turns into the 64-bit timeline.
            let semaphore = SetSemaphore {
                at: engine,
                payload: ticket,
            };
            push.write(Subchannel::COPY, &semaphore)?;
            let launch = LaunchDma {
                flush_enable: true,
                semaphore_type: SemaphoreType::OneWord,
                ..LaunchDma::default()
            };
            push.write(Subchannel::COPY, &launch)?;
            let acquire = Semaphore {
                at: engine,
                payload: ticket.into(),
                execute: SemExecute {
                    operation: SemOperation::Acquire,
                    ..SemExecute::default()
                },
            };
            push.write(Subchannel::HOST, &acquire)?;
            Ok(Pending::Nothing)
        })?;
        state.copies = ticket;
        Ok(value)
    }
}
