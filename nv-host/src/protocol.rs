//! In which order this side and the GPU see what they tell each other. The model check in `tests/tests/model.rs`
//! includes this file and runs it with every order of memory accesses that the language allows.

use crate::sync::{Ordering, fence};

/// Publishes one entry: `entry` stores it in the ring, `put` stores `GP_PUT`, `ring` rings the doorbell.
///
/// The ring lies in write-combined memory, and such stores may reach it in any order: a full fence drains them, so
/// that words, descriptors and entry are in memory before `GP_PUT` says so, and `GP_PUT` before the doorbell does.
pub(crate) fn publish(entry: impl FnOnce(), put: impl FnOnce(), ring: impl FnOnce()) {
    entry();
    fence(Ordering::SeqCst);
    put();
    fence(Ordering::SeqCst);
    ring();
}

/// What `load` reads of a timeline: all that the GPU wrote before it stored the value is seen after this, and all
/// that is stored after this was not there when the GPU read for the work that the value stands for.
pub(crate) fn timeline(load: impl FnOnce() -> u64) -> u64 {
    let value = load();
    fence(Ordering::Acquire);
    value
}

/// One look of a wait: `None` while neither condition holds.
///
/// The failure is asked for first: what was done before the failure counts as done.
pub(crate) fn look(failed: impl FnOnce() -> bool, done: impl FnOnce() -> bool) -> Option<Look> {
    let failed = failed();
    fence(Ordering::Acquire);
    if done() {
        Some(Look::Done)
    } else {
        failed.then_some(Look::Failed)
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// What was waited for is there.
    Done,
    /// It will never be there.
    Failed,
}
