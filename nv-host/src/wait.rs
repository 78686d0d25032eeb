//! Waiting for the GPU: spin briefly, give way to other threads for a while, then sleep longer and longer, never
//! without a limit.

use std::time::{Duration, Instant};

use crate::protocol::{self, Look};

/// How long a wait spins before it lets other threads run: a launch and its signal take a few microseconds.
const SPIN: Duration = Duration::from_micros(50);

/// How long a wait gives way to other threads, but comes back at once where there are none, before it sleeps.
const YIELD: Duration = Duration::from_millis(2);

/// A sleep is this part of the time waited so far, so that it makes a wait longer by no more than that: sleeps
/// without this cost a kernel of 0.9 ms another 0.2 ms on an H200.
const SLEEP_PART: u32 = 32;

/// The shortest sleep; Linux adds 50 us of its own to each.
const FIRST_SLEEP: Duration = Duration::from_micros(20);

/// The longest sleep: a wait of ten seconds then uses about 1 % of the CPU (measured on an H200's host).
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
        if waited < YIELD {
            std::thread::yield_now();
        } else {
            let sleep = (waited / SLEEP_PART).clamp(FIRST_SLEEP, LAST_SLEEP);
            std::thread::sleep(sleep.min(limit - waited));
        }
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
