//! Waiting for the GPU: spin briefly, then sleep longer and longer, never without a limit.

use std::time::{Duration, Instant};

use crate::protocol::{self, Look};

/// How long a wait spins before it sleeps: a launch and its signal take a few microseconds.
const SPIN: Duration = Duration::from_micros(50);

/// The first sleep; each next one is half as long again.
const FIRST_SLEEP: Duration = Duration::from_micros(20);

/// The longest sleep.
const LAST_SLEEP: Duration = Duration::from_millis(1);

/// How a wait ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// What was waited for is there.
    Done,
    /// The other condition came true first.
    Failed,
    /// The limit passed.
    TimedOut,
}

/// How often a long wait calls `nudge`.
const NUDGE: Duration = Duration::from_millis(2);

/// Waits until `done`, until `failed` (which is asked less often), or until `limit` has passed. While it waits long
/// it calls `nudge` once in a while.
pub(crate) fn wait(
    limit: Duration,
    mut done: impl FnMut() -> bool,
    mut failed: impl FnMut() -> bool,
    mut nudge: impl FnMut(),
) -> Outcome {
    if done() {
        return Outcome::Done;
    }
    let start = Instant::now();
    // The clock is asked once in a while: it costs as much as the look itself.
    while start.elapsed() < SPIN {
        for _ in 0..16 {
            if done() {
                return Outcome::Done;
            }
            std::hint::spin_loop();
        }
    }
    let mut sleep = FIRST_SLEEP;
    let mut next_nudge = NUDGE;
    loop {
        match protocol::look(&mut failed, &mut done) {
            Some(Look::Done) => return Outcome::Done,
            Some(Look::Failed) => return Outcome::Failed,
            None => {}
        }
        let waited = start.elapsed();
        if waited >= limit {
            return Outcome::TimedOut;
        }
        if waited >= next_nudge {
            nudge();
            next_nudge = waited + NUDGE;
        }
        std::thread::sleep(sleep.min(limit - waited));
        sleep = (sleep + sleep / 2).min(LAST_SLEEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_is_told_apart() {
        let limit = Duration::from_millis(5);
        assert_eq!(wait(limit, || true, || false, || ()), Outcome::Done);
        assert_eq!(wait(limit, || false, || true, || ()), Outcome::Failed);
        let start = Instant::now();
        assert_eq!(wait(limit, || false, || false, || ()), Outcome::TimedOut);
        assert!(start.elapsed() >= limit);
        assert!(start.elapsed() < Duration::from_secs(1));
        let mut looks = 0;
        assert_eq!(
            wait(
                limit,
                || {
                    looks += 1;
                    looks > 1000
                },
                || false,
                || ()
            ),
            Outcome::Done
        );
    }

    #[test]
    fn a_long_wait_nudges() {
        let mut nudges = 0;
        let limit = NUDGE * 8;
        assert_eq!(
            wait(limit, || false, || false, || nudges += 1),
            Outcome::TimedOut
        );
        assert!((1..=8).contains(&nudges), "{nudges}");
    }

    #[test]
    fn done_wins_over_failed() {
        let mut looks = 0;
        // True only once the spinning is over: at the same look as the failure.
        let start = Instant::now();
        let outcome = wait(
            Duration::from_secs(1),
            || {
                looks += 1;
                start.elapsed() > SPIN * 2
            },
            || start.elapsed() > SPIN * 2,
            || (),
        );
        assert_eq!(outcome, Outcome::Done);
    }
}
