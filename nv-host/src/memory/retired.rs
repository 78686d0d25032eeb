//! Memory that was given up while work may still have used it.

use std::sync::{Arc, Mutex, Weak};

use crate::context::lock;
use crate::peer::Held;
use crate::stream::Progress;

/// Memory that ends once the work submitted before it was given up has ended.
#[derive(Debug)]
struct Retired {
    /// Held to be dropped.
    _held: Held,
    after: Vec<(Weak<Progress>, u64)>,
}

impl Retired {
    fn is_over(&self) -> bool {
        self.after.iter().all(|(progress, value)| {
            progress
                .upgrade()
                .is_none_or(|progress| progress.is_over(*value))
        })
    }
}

/// What waits to be freed.
#[derive(Debug, Default)]
pub(crate) struct RetireList {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    retired: Vec<Retired>,
    /// Where [`RetireList::reap_some`] goes on.
    next: usize,
}

/// How many [`RetireList::reap_some`] looks at: each allocation looks, and each makes at most one entry, so that the
/// list does not grow while its work ends, and an allocation costs the same however long it is.
const SOME: usize = 16;

impl RetireList {
    /// Frees `held` once each of the streams has come so far; at once where all have.
    pub(crate) fn push(&self, held: Held, running: &[Arc<Progress>]) {
        let after: Vec<_> = running
            .iter()
            .map(|progress| (progress, progress.submitted()))
            .filter(|(progress, submitted)| !progress.is_over(*submitted))
            .map(|(progress, submitted)| (Arc::downgrade(progress), submitted))
            .collect();
        if !after.is_empty() {
            lock(&self.list)
                .retired
                .push(Retired { _held: held, after });
        }
    }

    /// Whether anything waits.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.list).retired.is_empty()
    }

    /// Frees all of which the work has ended.
    pub(crate) fn reap(&self) {
        let over: Vec<Retired> = {
            let mut list = lock(&self.list);
            list.next = 0;
            list.retired
                .extract_if(.., |retired| retired.is_over())
                .collect()
        };
        // Freed here, with the lock no longer held.
        drop(over);
    }

    /// As [`RetireList::reap`], of a few: those next in turn.
    pub(crate) fn reap_some(&self) {
        let mut over = Vec::new();
        let mut list = lock(&self.list);
        for _ in 0..SOME.min(list.retired.len()) {
            if list.next >= list.retired.len() {
                list.next = 0;
            }
            let next = list.next;
            match list.retired.get(next) {
                Some(retired) if retired.is_over() => over.push(list.retired.swap_remove(next)),
                Some(_) => list.next += 1,
                None => break,
            }
        }
        drop(list);
        drop(over);
    }

    /// How many wait.
    #[cfg(all(test, feature = "sim"))]
    pub(crate) fn len(&self) -> usize {
        lock(&self.list).retired.len()
    }
}
