//! Command words of the caller's own: for tools, for tests, and for what has no typed call yet.

use nv_proto::DecodeError;
use nv_proto::gpfifo::GpEntry;
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushReader, PushWriter, Subchannel};
use nv_proto::unit::GpuVa;

use super::queue::{Pending, State, StreamInner, Work};
use super::{Event, Stream};
use crate::Error;
use crate::channel::{COMMAND_BYTES, TIMELINE};
use crate::context::{ContextInner, lock};

/// The most words that [`Stream::submit_words`] takes: half of the stream's command memory, so that there is always
/// room while others are in flight.
const MOST_WORDS: usize = COMMAND_BYTES as usize / 8;

impl Stream {
    /// Submits command words, as `nv_proto::push` writes them, after all work submitted so far.
    ///
    /// Subchannel 1 is bound to the compute class and 4 to the copy class of the device
    /// ([`Info::classes`](crate::Info)). The event is reached once the compute engine has done what the words ask;
    /// copies that the words start signal their end by a semaphore of their own, if by any.
    ///
    /// The words are checked for no more than being whole packets. This is as safe as a launch is: the engines reach
    /// what the context has mapped for the GPU, which a kernel reaches, too; words that make no sense end the stream
    /// with a fault, or never end, and the [`FaultReport`](crate::FaultReport) then says what is wrong with them. Two
    /// things can still go wrong without a fault: words that change what the stream set up (bound classes, local
    /// memory, windows) change it for later launches, and words that write into the stream's own memory or semaphores
    /// break its order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for no words, for more than 65,536, and where the last packet is cut off;
    /// [`Error::Fault`] on a dead stream.
    ///
    /// # Examples
    /// ```
    /// use nv_proto::push::{MethodAddr, PushWriter, RunOp, Subchannel};
    ///
    /// let device = nv_host::Device::open_best()?;
    /// let mut words = [0; 8];
    /// let mut push = PushWriter::new(&mut words);
    /// let wait_for_idle = MethodAddr::new(0x110)?;
    /// push.run(RunOp::Inc, Subchannel::COMPUTE, wait_for_idle, &[0])?;
    /// device.stream()?.submit_words(push.finish())?.wait()?;
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn submit_words(&self, words: &[u32]) -> Result<Event, Error> {
        if words.is_empty() || words.len() > MOST_WORDS {
            return Err(Error::InvalidArgument(format!(
                "{} command words: 1 to {MOST_WORDS} can be submitted at once",
                words.len()
            )));
        }
        // What follows a cut-off packet would be taken for its data: the stream's own words.
        if let Some(Err(error @ DecodeError::Truncated { .. })) = PushReader::new(words).last() {
            return Err(Error::InvalidArgument(format!("command words: {error}")));
        }
        let value = self.inner.submit_words(self.context.inner(), words)?;
        Ok(self.event_at(value))
    }

    /// Submits `count` command words that lie in GPU memory at `at`, after all work submitted so far.
    ///
    /// They are not copied: the memory has to stay until the event is reached. Otherwise as
    /// [`Stream::submit_words`], but for the check: a last packet that is cut off takes the stream's own words for its
    /// data, and the event then never comes.
    ///
    /// # Errors
    /// [`Error::Encode`] for an address that is no multiple of 4 or has more than 40 bits, and for no words or more
    /// than 2,097,151; [`Error::Fault`] on a dead stream.
    pub fn submit_segment(&self, at: GpuVa, count: u32) -> Result<Event, Error> {
        let entry = GpEntry::new(at, count)?;
        let value = self.inner.submit_segment(self.context.inner(), entry)?;
        Ok(self.event_at(value))
    }
}

impl StreamInner {
    fn submit_words(&self, context: &ContextInner, words: &[u32]) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        self.check_alive(context, &mut state)?;
        self.hold(context, &mut state)?;
        let value = self.submitted() + 1;
        let mut release = [0; 8];
        let mut push = PushWriter::new(&mut release);
        let timeline = self.channel.page_va(TIMELINE);
        push.write(
            Subchannel::HOST,
            &SemRelease::with_timestamp(timeline, value),
        )?;
        let release = push.finish();
        self.enqueue(
            context,
            &mut state,
            Work::Words,
            value,
            [words, release],
            Pending::Nothing,
        )?;
        Ok(value)
    }

    fn submit_segment(&self, context: &ContextInner, entry: GpEntry) -> Result<u64, Error> {
        let mut state = lock(&self.state);
        self.check_alive(context, &mut state)?;
        self.hold(context, &mut state)?;
        // The segment is a submission that no release of its own ends: that of the next one does.
        self.make_slot(context, &mut state)?;
        let value = self.submitted() + 1;
        self.publish_entry(&mut state, Work::Words, value, entry, Pending::Nothing)?;
        self.submit(context, &mut state, Work::Words, |_, _| {
            Ok(Pending::Nothing)
        })
    }

    /// Holds what comes next until a copy before it has signalled its end.
    fn hold(&self, context: &ContextInner, state: &mut State) -> Result<(), Error> {
        if state.pending == Pending::Nothing {
            return Ok(());
        }
        // A submission of nothing: it begins with the wait, as all others do.
        self.submit(context, state, Work::Mark, |_, _| Ok(Pending::Nothing))?;
        Ok(())
    }
}
