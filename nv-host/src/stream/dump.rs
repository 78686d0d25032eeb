//! Submitted streams by name, as events of the `tracing` crate: before the doorbell rings, at level TRACE.

use std::fmt::Write as _;

use nv_proto::class::ClassSet;
use nv_proto::pretty::{Bindings, Line, lines};
use nv_proto::push::Subchannel;
use nv_proto::qmd::Qmd;
use nv_proto::unit::GpuVa;
use tracing::{Level, enabled, trace};

use super::queue::Work;

/// The target of the events.
pub(crate) const TARGET: &str = "nv_host::stream";

/// One submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission<'a> {
    /// The number of its stream.
    pub(super) stream: u64,
    /// Its own number.
    pub(super) value: u64,
    pub(super) work: Work<'a>,
    /// Where the words lie.
    pub(super) at: GpuVa,
    pub(super) words: &'a [u32],
    /// The descriptor that they launch.
    pub(super) qmd: &'a Qmd,
}

impl Submission<'_> {
    /// Tells of it, if anyone wants to know.
    #[inline]
    pub(super) fn dump(&self, classes: &ClassSet) {
        if enabled!(target: TARGET, Level::TRACE) {
            self.tell(classes);
        }
    }

    #[cold]
    fn tell(&self, classes: &ClassSet) {
        let bindings = Bindings::NONE
            .with_host(classes.gpfifo)
            .with(Subchannel::COMPUTE, classes.compute)
            .with(Subchannel::COPY, classes.copy);
        let mut methods = String::new();
        for line in lines(self.words, bindings) {
            let _ = match line {
                Ok(line @ (Line::Method(_) | Line::Header { .. })) => writeln!(methods, "{line}"),
                Err(error) => writeln!(methods, "{error}"),
            };
        }
        let qmd = match self.work {
            Work::Launch { .. } => self.qmd.to_string(),
            _ => String::new(),
        };
        trace!(
            target: TARGET,
            stream = self.stream,
            submission = self.value,
            work = %self.work,
            at = %self.at,
            methods = methods.trim_end(),
            qmd = qmd.trim_end(),
        );
    }
}
