//! Profiles: when each launch and each copy ran on the GPU, and when it was submitted.

mod chrome;
mod clock;
mod recorder;
mod svg;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nv_proto::unit::Dim3;

use crate::Error;
use crate::context::{Context, lock};
use crate::stream::StreamInner;
use crate::wait;

pub(crate) use recorder::{About, Recorder, SLOTS_BYTES, Sink, WORDS};

use clock::{Anchor, Correlation};

/// Records that a profile keeps unless told otherwise.
const RECORDS: usize = 1 << 20;

/// A profile being recorded: [`Context::profile`] begins it, [`Profile::finish`] ends it.
///
/// While it goes on, each launch, copy and wait of the context's streams also has the GPU store the time before and after
/// it. A stream that is not recorded pays one branch for a submission. A profile that is dropped ends with no record.
#[derive(Debug)]
#[must_use = "a profile that is dropped ends at once"]
pub struct Profile {
    context: Context,
    sink: Arc<Sink>,
    /// A stream of its own, on which the GPU is asked for the time: others may be busy.
    clock: Arc<StreamInner>,
    first: Anchor,
}

impl Context {
    /// Begins to record when the work on this context's streams runs, also on streams made from now on.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] while another profile of the context is being recorded; whatever making a stream meets.
    ///
    /// # Examples
    /// ```
    /// # let device = nv_host::Device::open(&nv_host::Options {
    /// #     backend: nv_host::Backend::Sim(nv_sim::Chip::Gh100), ..Default::default() })?;
    /// let profile = device.profile()?;
    /// let numbers = device.upload(&[1.0_f32; 1024])?;
    /// let recording = profile.finish();
    /// let [copy] = recording.records() else { panic!("one copy") };
    /// assert_eq!(copy.kind, nv_host::profile::Kind::Copy { bytes: 4096 });
    /// assert!(copy.submitted <= copy.end);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn profile(&self) -> Result<Profile, Error> {
        self.profile_up_to(RECORDS)
    }

    /// As [`Context::profile`], which keeps 2^20 records, but with at most so many: what comes after them is counted
    /// ([`Lost::full`]).
    ///
    /// # Errors
    /// As [`Context::profile`].
    pub fn profile_up_to(&self, records: usize) -> Result<Profile, Error> {
        let inner = self.inner();
        let begin = Instant::now();
        let clock = Arc::new(inner.lone_stream()?);
        let first = Anchor::take(inner, &clock, begin)?;
        let sink = Arc::new(Sink::new(begin, records));
        {
            let mut current = lock(&inner.profile);
            if current.is_some() {
                return Err(Error::InvalidArgument(
                    "another profile of this context is being recorded: finish it first".into(),
                ));
            }
            *current = Some(Arc::clone(&sink));
        }
        // Dropped on an error, which ends what has begun.
        let profile = Profile {
            context: self.clone(),
            sink,
            clock,
            first,
        };
        for stream in inner.live_streams() {
            stream.record(inner, &profile.sink)?;
        }
        Ok(profile)
    }
}

impl Profile {
    /// Waits for the work that was recorded, at most for the device's limit a stream, and ends the profile.
    #[must_use]
    pub fn finish(self) -> Recording {
        self.end(true);
        // Streams that others are dropping just now read back themselves, and let go of the sink then.
        let limit = self.context.inner().limit();
        let recorded = || Arc::strong_count(&self.sink) == 1;
        wait::wait(limit, recorded, || false, || ());
        // Where the GPU has died the first comparison has to do.
        let last = Anchor::take(self.context.inner(), &self.clock, self.sink.begin()).ok();
        let clocks = Correlation::new(self.first, last);
        let (raw, lost) = self.sink.take();
        let mut records: Vec<Record> = raw
            .into_iter()
            .map(|raw| {
                let start = clocks.cpu(raw.start);
                Record {
                    name: raw.about.name,
                    kind: raw.about.kind,
                    stream: raw.stream,
                    submitted: raw.submitted,
                    submitting: raw.submitting,
                    start,
                    end: clocks.cpu(raw.end).max(start),
                }
            })
            .collect();
        records.sort_by_key(|record| (record.start, record.stream, record.end));
        Recording {
            records,
            lost,
            clock: Clock {
                error: clocks.error(),
                drift_ppm: clocks.drift(),
                compared_at_end: clocks.is_closed(),
            },
            device: self.context.info().name.clone(),
        }
    }

    /// Has the streams record no more.
    fn end(&self, wait: bool) {
        let inner = self.context.inner();
        let mut current = lock(&inner.profile);
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, &self.sink))
        {
            *current = None;
        }
        drop(current);
        for stream in inner.live_streams() {
            stream.stop_recording(&self.sink, wait);
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// What a record is of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A launch of a kernel.
    Launch {
        /// Its blocks.
        grid: Dim3,
        /// The threads of one.
        block: Dim3,
    },
    /// Launches of a graph, each of which starts the next: their kernels' names are its name.
    Chain {
        /// How many.
        launches: usize,
    },
    /// A copy; a very large one is submitted, and recorded, in parts.
    Copy {
        /// How much.
        bytes: u64,
    },
    /// A wait for another stream's event.
    Wait,
}

/// [`Kind`] without its particulars.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum What {
    /// Launches of a kernel.
    Launch,
    /// Copies.
    Copy,
    /// Waits for other streams.
    Wait,
}

impl Kind {
    /// It, without its particulars.
    #[must_use]
    pub fn what(self) -> What {
        match self {
            Self::Launch { .. } | Self::Chain { .. } => What::Launch,
            Self::Copy { .. } => What::Copy,
            Self::Wait => What::Wait,
        }
    }
}

/// One launch, copy or wait. Times are since the profile began, on the CPU's clock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    name: Option<Arc<str>>,
    /// What it is.
    pub kind: Kind,
    /// The number of its stream: [`Stream::id`](crate::Stream::id).
    pub stream: u64,
    /// When the CPU began to submit it.
    pub submitted: Duration,
    /// How long submitting took: long where the stream was full.
    pub submitting: Duration,
    /// When the GPU came to it: all earlier work of the stream had ended. A launch's descriptor is fetched after this.
    pub start: Duration,
    /// When it had ended.
    pub end: Duration,
}

impl Record {
    /// The kernel's name, or `copy` or `wait`.
    #[must_use]
    pub fn name(&self) -> &str {
        match (&self.name, self.kind) {
            (Some(name), _) => name,
            (None, Kind::Launch { .. } | Kind::Chain { .. }) => "kernel",
            (None, Kind::Copy { .. }) => "copy",
            (None, Kind::Wait) => "wait",
        }
    }

    /// How long it ran on the GPU.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}

/// How many records there should be and are not.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Lost {
    /// Came after as many records as the profile keeps.
    pub full: u64,
    /// Did not end: a fault or a time limit ended the stream first.
    pub unfinished: u64,
}

impl Lost {
    /// Whether none is.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.full == 0 && self.unfinished == 0
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { full, unfinished } = self;
        match (full, unfinished) {
            (0, 0) => f.write_str("no record is lost"),
            (full, 0) => write!(f, "LOST: {full} records beyond what the profile keeps"),
            (0, open) => write!(f, "LOST: {open} submissions that never ended"),
            (full, open) => write!(
                f,
                "LOST: {full} records beyond what the profile keeps, {open} submissions that never ended"
            ),
        }
    }
}

/// How well the GPU's times are known on the CPU's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Clock {
    /// The most by which [`Record::start`] and [`Record::end`] can be off against [`Record::submitted`], as far as the
    /// comparisons of the clocks can tell. Durations, and the times of one GPU among each other, are better than that.
    pub error: Duration,
    /// By how many parts in a million the GPU's timer ran faster; measured, and taken out, from one second on.
    pub drift_ppm: Option<f64>,
    /// Whether the clocks were compared at the end too; where a fault has killed the GPU's channels they cannot be.
    pub compared_at_end: bool,
}

/// A finished profile.
#[derive(Clone, Debug)]
pub struct Recording {
    records: Vec<Record>,
    lost: Lost,
    clock: Clock,
    device: String,
}

/// All records of one kernel, all copies or all waits together.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Summary<'a> {
    /// What they are.
    pub what: What,
    /// The kernel's name, or `copy` or `wait`.
    pub name: &'a str,
    /// How many there are.
    pub count: u64,
    /// Bytes copied by all of them.
    pub bytes: u64,
    /// How long all of them took.
    pub total: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl Summary<'_> {
    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let nanoseconds = self.total.as_nanos() / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

impl Recording {
    /// Everything recorded, by start.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What is not among the records.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// How well the clocks are known.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The GPU's name.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The streams that have records, by number.
    #[must_use]
    pub fn streams(&self) -> Vec<u64> {
        let mut streams: Vec<u64> = self.records.iter().map(|record| record.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams
    }

    /// The records together by what they are and by name, what took longest in all first.
    #[must_use]
    pub fn summary(&self) -> Vec<Summary<'_>> {
        let mut rows: BTreeMap<(What, &str), Summary<'_>> = BTreeMap::new();
        for record in &self.records {
            let (name, took) = (record.name(), record.duration());
            let what = record.kind.what();
            let row = rows.entry((what, name)).or_insert(Summary {
                what,
                name,
                count: 0,
                bytes: 0,
                total: Duration::ZERO,
                min: Duration::MAX,
                max: Duration::ZERO,
            });
            row.count += 1;
            row.total += took;
            row.min = row.min.min(took);
            row.max = row.max.max(took);
            if let Kind::Copy { bytes } = record.kind {
                row.bytes = row.bytes.saturating_add(bytes);
            }
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        rows
    }

    /// The recording in the trace event format, which Perfetto and `chrome://tracing` open: a track for each stream
    /// on the GPU, one for the submissions to it on the CPU, and an arrow from each submission to its work.
    #[must_use]
    pub fn chrome_trace(&self) -> String {
        chrome::trace(self)
    }

    /// A picture of the recording, as a self-contained SVG document: a lane for each stream, a box for each record,
    /// readable on light and on dark ground.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::picture(self)
    }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "test code")]
mod tests;
