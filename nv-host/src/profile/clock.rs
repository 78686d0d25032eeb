//! How the GPU's timer and the CPU's clock go together.
//!
//! The GPU is asked for its time between two looks at the CPU's clock. Of several such brackets the tightest one is
//! kept: its middle is where the two clocks meet, and half its width the most that this can be wrong by.

use std::time::{Duration, Instant};

use crate::Error;
use crate::context::ContextInner;
use crate::stream::StreamInner;

/// Brackets tried, and for how long: the first ones wake the GPU up.
const ROUNDS: u32 = 32;
const TIME: Duration = Duration::from_millis(20);

/// From this length on, the two ends of a recording tell how fast one clock runs against the other; on a shorter one
/// the brackets' widths would say more than the clocks do.
const DRIFT_FROM: u64 = 1_000_000_000;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    /// Since the profile began.
    cpu: Duration,
    /// In nanoseconds of the GPU's timer.
    gpu: u64,
    error: Duration,
}

impl Anchor {
    /// Sets a bracket on a stream that does nothing else.
    pub(crate) fn take(
        context: &ContextInner,
        stream: &StreamInner,
        begin: Instant,
    ) -> Result<Self, Error> {
        let mut best: Option<Self> = None;
        let start = Instant::now();
        for round in 0..ROUNDS {
            if round > 0 && start.elapsed() > TIME {
                break;
            }
            let before = begin.elapsed();
            let value = stream.mark(context)?;
            stream.wait(context, value, context.limit())?;
            let after = begin.elapsed();
            let Some(gpu) = stream.time_of(value) else {
                continue;
            };
            let error = (after.saturating_sub(before)) / 2;
            if best.is_none_or(|best| error < best.error) {
                best = Some(Self {
                    cpu: before + error,
                    gpu,
                    error,
                });
            }
        }
        best.ok_or_else(|| {
            Error::Unsupported(
                "the GPU's semaphores carry no time, so nothing can be profiled".into(),
            )
        })
    }
}

/// The GPU's time on the CPU's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Correlation {
    first: Anchor,
    last: Option<Anchor>,
}

impl Correlation {
    pub(crate) fn new(first: Anchor, last: Option<Anchor>) -> Self {
        Self { first, last }
    }

    /// Nanoseconds of the CPU and of the GPU between the two anchors, where these are far enough apart.
    fn rate(&self) -> Option<(u128, u128)> {
        let last = self.last?;
        let gpu = last.gpu.checked_sub(self.first.gpu)?;
        let cpu = last.cpu.checked_sub(self.first.cpu)?;
        (gpu >= DRIFT_FROM).then_some((cpu.as_nanos(), gpu.into()))
    }

    /// A time of the GPU, as the time since the profile began.
    pub(crate) fn cpu(&self, gpu: u64) -> Duration {
        let scaled = |nanoseconds: u64| match self.rate() {
            Some((cpu, gpu)) => {
                u64::try_from(u128::from(nanoseconds) * cpu / gpu).unwrap_or(u64::MAX)
            }
            None => nanoseconds,
        };
        match gpu.checked_sub(self.first.gpu) {
            Some(after) => self
                .first
                .cpu
                .saturating_add(Duration::from_nanos(scaled(after))),
            None => self
                .first
                .cpu
                .saturating_sub(Duration::from_nanos(scaled(self.first.gpu - gpu))),
        }
    }

    /// The most by which [`Correlation::cpu`] can be wrong, as far as the anchors can tell.
    pub(crate) fn error(&self) -> Duration {
        match self.last {
            Some(last) => {
                let off = self.cpu(last.gpu).abs_diff(last.cpu);
                self.first.error.max(off + last.error)
            }
            None => self.first.error,
        }
    }

    /// By how many parts in a million the GPU's timer is faster than the CPU's clock.
    pub(crate) fn drift(&self) -> Option<f64> {
        let (cpu, gpu) = self.rate()?;
        Some((gpu as f64 / cpu as f64 - 1.0) * 1e6)
    }

    /// Whether the clocks were compared at the end too.
    pub(crate) fn is_closed(&self) -> bool {
        self.last.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(cpu: u64, gpu: u64, error: u64) -> Anchor {
        Anchor {
            cpu: Duration::from_nanos(cpu),
            gpu,
            error: Duration::from_nanos(error),
        }
    }

    #[test]
    fn without_an_end_the_clocks_are_taken_to_run_alike() {
        let clocks = Correlation::new(anchor(5_000, 1_000_000, 700), None);
        assert_eq!(clocks.cpu(1_000_000), Duration::from_nanos(5_000));
        assert_eq!(clocks.cpu(1_002_000), Duration::from_nanos(7_000));
        assert_eq!(clocks.cpu(998_000), Duration::from_nanos(3_000));
        assert_eq!(clocks.cpu(0), Duration::ZERO);
        assert_eq!(clocks.error(), Duration::from_nanos(700));
        assert_eq!((clocks.drift(), clocks.is_closed()), (None, false));
    }

    #[test]
    fn a_short_recording_keeps_the_gpus_durations() {
        // The brackets disagree by 3 us over 1 ms: no drift, but an error.
        let clocks = Correlation::new(
            anchor(0, 10_000, 500),
            Some(anchor(1_003_000, 1_010_000, 400)),
        );
        assert_eq!(
            clocks.cpu(510_000) - clocks.cpu(10_000),
            Duration::from_nanos(500_000)
        );
        assert_eq!(clocks.error(), Duration::from_nanos(3_400));
        assert_eq!(clocks.drift(), None);
    }

    #[test]
    fn a_long_recording_shows_the_drift_and_takes_it_out() {
        // 20 ppm fast: in 10 s of the CPU the GPU counts 200 us more.
        let first = anchor(1_000, 7_000_000_000, 500);
        let last = anchor(10_000_001_000, 17_000_200_000, 900);
        let clocks = Correlation::new(first, Some(last));
        assert!((clocks.drift().unwrap() - 20.0).abs() < 1e-6);
        assert_eq!(clocks.cpu(first.gpu), first.cpu);
        assert_eq!(clocks.cpu(last.gpu), last.cpu);
        assert_eq!(
            clocks.cpu(12_000_100_000),
            Duration::from_nanos(5_000_001_000)
        );
        assert_eq!(clocks.error(), Duration::from_nanos(900));
    }

    #[test]
    fn no_time_of_a_gpu_overflows() {
        let clocks = Correlation::new(
            anchor(u64::MAX / 2, 1, 1),
            Some(anchor(u64::MAX, 2_000_000_000, 1)),
        );
        for gpu in [0, 1, u64::MAX / 2, u64::MAX] {
            let _ = clocks.cpu(gpu);
        }
        let _ = (clocks.error(), clocks.drift());
    }
}
