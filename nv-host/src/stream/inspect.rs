//! What is in flight on a stream, read back from the ring and the memory of its channel: for fault reports.

use nv_proto::gpfifo::{GpEntry, Segment};
use nv_proto::unit::GpuVa;

use super::queue::{State, StreamInner};
use crate::channel::Channel;
use crate::context::{ContextInner, lock};
use crate::fault::{Doubt, Look, Submission};

/// The most command words that are looked at.
const MOST_WORDS: usize = 0x1_0000;

/// What a stream's work is looked up in.
struct Known<'a> {
    channel: &'a Channel,
    context: &'a ContextInner,
}

impl Look for Known<'_> {
    fn read(&self, va: GpuVa, bytes: &mut [u8]) -> bool {
        let offset = va.0.checked_sub(self.channel.area_va(0).0);
        match (offset.map(usize::try_from), self.channel.area()) {
            (Some(Ok(offset)), Ok(area)) => area.read(offset, bytes).is_ok(),
            _ => false,
        }
    }

    fn is_mapped(&self, va: GpuVa) -> bool {
        self.context.neighbours(va.0).at.is_some()
    }

    fn kernel(&self, program: GpuVa) -> Option<String> {
        let place = lock(&self.context.code).place(program.0)?;
        Some(place.0)
    }
}

impl StreamInner {
    /// The oldest submission that has not ended; `None` where all have.
    pub(super) fn in_flight(&self, context: &ContextInner, state: &State) -> Option<Submission> {
        let number = self.completed().saturating_add(1);
        let newest = self.submitted();
        if number > newest {
            return None;
        }
        let mut submission = Submission {
            number,
            newest,
            kernel: self.label(state, number).map(|name| name.to_string()),
            ..Submission::default()
        };
        let known = Known {
            channel: &self.channel,
            context,
        };
        let slot = state.slot(number - 1);
        match self.channel.entry(slot).map(GpEntry::decode) {
            Some(Ok(GpEntry::Segment(segment))) => {
                if let Some(words) = words(&known, segment) {
                    submission.examine(&words, context.classes(), &known);
                } else if !known.is_mapped(segment.va()) {
                    submission.doubt(Doubt::Commands(format!(
                        "its command words are at {:#x}, where no memory is",
                        segment.va().0
                    )));
                }
            }
            Some(Ok(GpEntry::Control { opcode, .. })) => {
                let text = format!("the ring's entry {slot} is no words but {opcode:?}");
                submission.doubt(Doubt::Commands(text));
            }
            Some(Err(error)) => {
                let text = format!("the ring's entry {slot}: {error}");
                submission.doubt(Doubt::Commands(text));
            }
            None => {}
        }
        Some(submission)
    }
}

fn words(known: &Known<'_>, segment: Segment) -> Option<Vec<u32>> {
    let count = usize::try_from(segment.dwords()).ok()?.min(MOST_WORDS);
    let mut bytes = vec![0; count * 4];
    known.read(segment.va(), &mut bytes).then(|| {
        bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()))
            .collect()
    })
}
