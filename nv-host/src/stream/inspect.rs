//! What is in flight on a stream, read back from the ring and the memory of its channel: for fault reports.

use std::cell::OnceCell;
use std::time::Duration;

use nv_proto::gpfifo::{GpEntry, Segment};
use nv_proto::unit::GpuVa;

use super::Stream;
use super::queue::{State, StreamInner};
use crate::channel::Channel;
use crate::context::{ContextInner, lock};
use crate::fault::{Doubt, Look, Submission};
use crate::memory::{Allocation, Placement, Use};

/// The most command words that are looked at.
const MOST_WORDS: usize = 0x1_0000;

/// How many submissions after the oldest are looked at for what makes no sense.
const FETCHED_AHEAD: u64 = 64;

/// What a stream's work is looked up in.
struct Known<'a> {
    channel: &'a Channel,
    context: &'a ContextInner,
}

impl Look for Known<'_> {
    fn read(&self, va: GpuVa, bytes: &mut [u8]) -> bool {
        let offset = va.0.checked_sub(self.channel.area_va(0).0);
        match (offset.map(usize::try_from), self.channel.area()) {
            (Some(Ok(offset)), Ok(area)) if area.read(offset, bytes).is_ok() => true,
            _ => self.context.read_graphs(va, bytes),
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

/// The same, with memory that the CPU does not see copied by the GPU.
struct Copying<'a> {
    known: Known<'a>,
    context: &'a ContextInner,
    /// A stream and memory for it; none once that failed.
    by: OnceCell<Option<(StreamInner, Allocation)>>,
}

impl<'a> Copying<'a> {
    fn of(channel: &'a Channel, context: &'a ContextInner) -> Self {
        Self {
            known: Known { channel, context },
            context,
            by: OnceCell::new(),
        }
    }

    /// How long a copy of a few bytes may take.
    const LIMIT: Duration = Duration::from_secs(1);
    /// The most bytes that are copied at once.
    const BYTES: u64 = 4096;

    fn copy(&self, va: GpuVa, bytes: &mut [u8]) -> Option<()> {
        let length = bytes.len() as u64;
        let region = self.context.neighbours(va.0).at?;
        if va.0.checked_add(length)? > region.end().0 || length > Self::BYTES {
            return None;
        }
        let by = self.by.get_or_init(|| {
            let memory = self
                .context
                .allocate(Self::BYTES, Placement::Pinned, Use::Staging)
                .ok()?;
            Some((self.context.stream_apart().ok()?, memory))
        });
        let (stream, memory) = by.as_ref()?;
        let value = stream.copy(self.context, memory.va(), va, length).ok()?;
        if stream.wait(self.context, value, Self::LIMIT).is_err() {
            stream.abandon();
            return None;
        }
        memory.mapping().ok()?.read(0, bytes).ok()
    }
}

impl Look for Copying<'_> {
    fn read(&self, va: GpuVa, bytes: &mut [u8]) -> bool {
        self.known.read(va, bytes) || self.copy(va, bytes).is_some()
    }

    fn is_mapped(&self, va: GpuVa) -> bool {
        self.known.is_mapped(va)
    }

    fn kernel(&self, program: GpuVa) -> Option<String> {
        self.known.kernel(program)
    }
}

impl Stream {
    /// What command words ask, as far as it can be known before they are submitted: the launches in them, and what
    /// makes no sense ([`Submission::doubts`]). Descriptors are read wherever they lie, by a copy if need be.
    ///
    /// Not all that makes no sense is reported by a GPU: an H200 does nothing for a launch descriptor of another
    /// version, and goes on.
    ///
    /// # Examples
    /// ```
    /// use nv_proto::push::{MethodAddr, PushWriter, RunOp, Subchannel};
    ///
    /// let stream = nv_host::Device::open_best()?.stream()?;
    /// let mut words = [0; 2];
    /// PushWriter::new(&mut words).run(RunOp::Inc, Subchannel::COMPUTE, MethodAddr::new(0xff0)?, &[0])?;
    /// assert!(stream.examine_words(&words).doubts[0].to_string().contains("no method 0xff0"));
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    #[must_use]
    pub fn examine_words(&self, words: &[u32]) -> Submission {
        let context = self.context.inner();
        let newest = self.inner.submitted();
        let mut submission = Submission {
            number: newest.saturating_add(1),
            newest,
            ..Submission::default()
        };
        let copying = Copying::of(&self.inner.channel, context);
        submission.examine(words, context.classes(), &copying);
        submission
    }
}

impl StreamInner {
    /// Has the GPU copy what a submission asked and the CPU does not see.
    pub(super) fn read_unread(&self, context: &ContextInner, submission: &mut Submission) {
        if submission.unread.is_empty() {
            return;
        }
        let copying = Copying::of(&self.channel, context);
        submission.read_unread(context.classes().qmd, &copying);
    }

    /// The submission that is to blame where work does not end; `None` where all has. That is the oldest that has not
    /// ended, unless another one makes no sense: the host fetches words, and stumbles over them, before their turn
    /// (seen on an H200).
    pub(super) fn in_flight(&self, context: &ContextInner, state: &State) -> Option<Submission> {
        let first = self.completed().saturating_add(1);
        let newest = self.submitted();
        let ahead = first..=newest.min(first.saturating_add(FETCHED_AHEAD));
        let mut looked_at = ahead.map(|number| self.submission(context, state, number));
        let oldest = looked_at.next()?;
        if !oldest.doubts.is_empty() {
            return Some(oldest);
        }
        let senseless = looked_at.find(|submission| !submission.doubts.is_empty());
        Some(senseless.unwrap_or(oldest))
    }

    fn submission(&self, context: &ContextInner, state: &State, number: u64) -> Submission {
        let newest = self.submitted();
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
        submission
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
