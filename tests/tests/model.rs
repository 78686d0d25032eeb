//! Every order of memory accesses that the language allows, over the code that this side and the GPU meet in: the
//! order of publication, the reuse of ring and command space, and the look of a wait. Each model comes with a
//! broken twin that the check must find.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::thread;
use nv_proto::gpfifo::RingCursor;

mod sync {
    pub(crate) use loom::sync::atomic::{Ordering, fence};
}
#[path = "../../nv-host/src/protocol.rs"]
mod protocol;
#[allow(dead_code, reason = "the whole file is included")]
#[path = "../../nv-host/src/ring.rs"]
mod ring;

use protocol::Look;
use ring::Ring;
use sync::{Ordering, fence};

/// Slots of the modelled ring: one entry in flight, so that every submission but the first reuses a slot.
const SLOTS: u32 = 2;
/// Words of the modelled command memory: each submission takes one of them.
const WORDS: u64 = 2;

/// What both sides see. Plain memory has no order of its own: all accesses are relaxed.
struct Memory {
    ring: [AtomicU64; SLOTS as usize],
    words: [AtomicU32; WORDS as usize],
    gp_put: AtomicU32,
    timeline: AtomicU64,
    result: AtomicU32,
}

impl Memory {
    fn new() -> Self {
        Self {
            ring: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            words: std::array::from_fn(|_| AtomicU32::new(0)),
            gp_put: AtomicU32::new(0),
            timeline: AtomicU64::new(0),
            result: AtomicU32::new(0),
        }
    }
}

/// The word of a submission.
fn word_of(value: u64) -> u32 {
    value as u32 * 100
}

/// The GPU: fetches what `GP_PUT` shows, and stores each submission's result and number.
fn gpu(memory: &Memory, submissions: u64) {
    let mut cursor = RingCursor::new(SLOTS).unwrap();
    for value in 1..=submissions {
        while cursor.is_empty() {
            let put = memory.gp_put.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            cursor.observe_gp_put(put).unwrap();
            if cursor.is_empty() {
                thread::yield_now();
            }
        }
        let slot = cursor.pop().unwrap() as usize;
        let entry = memory.ring[slot].load(Ordering::Relaxed);
        assert!(entry < WORDS, "an entry that was not written yet");
        let word = memory.words[entry as usize].load(Ordering::Relaxed);
        assert_eq!(word, word_of(value), "submission {value}");
        memory.result.store(word + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        memory.timeline.store(value, Ordering::Relaxed);
    }
}

type Publish = fn(&dyn Fn(), &dyn Fn());
type Timeline = fn(&dyn Fn() -> u64) -> u64;

/// This side, as `stream/queue.rs` submits: makes room, takes command space, writes, publishes; then waits for the
/// last and reads the result.
fn host(memory: &Memory, submissions: u64, publish: Publish, timeline: Timeline) {
    let mut cursor = RingCursor::new(SLOTS).unwrap();
    let mut commands = Ring::new(WORDS);
    let mut marks = [0; SLOTS as usize];
    let completed = || timeline(&|| memory.timeline.load(Ordering::Relaxed));
    for value in 1..=submissions {
        let offset = loop {
            if !cursor.is_full()
                && let Some(offset) = commands.take(1, 1)
            {
                break offset;
            }
            let oldest = cursor.get() + 1;
            while completed() < oldest {
                thread::yield_now();
            }
            while cursor.get() < completed() {
                let slot = cursor.pop().unwrap() as usize;
                commands.release(marks[slot]);
            }
        };
        memory.words[offset as usize].store(word_of(value), Ordering::Relaxed);
        let slot = cursor.push().unwrap() as usize;
        marks[slot] = commands.mark();
        publish(
            &|| memory.ring[slot].store(offset, Ordering::Relaxed),
            &|| memory.gp_put.store(cursor.gp_put(), Ordering::Relaxed),
        );
    }
    while completed() < submissions {
        thread::yield_now();
    }
    let result = memory.result.load(Ordering::Relaxed);
    assert_eq!(result, word_of(submissions) + 1, "the result");
}

fn check(submissions: u64, publish: Publish, timeline: Timeline) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let memory = Arc::new(Memory::new());
        let seen = Arc::clone(&memory);
        let gpu = thread::spawn(move || gpu(&seen, submissions));
        host(&memory, submissions, publish, timeline);
        gpu.join().unwrap();
    });
}

fn publish(entry: &dyn Fn(), put: &dyn Fn()) {
    protocol::publish(entry, put, || ());
}

fn timeline(load: &dyn Fn() -> u64) -> u64 {
    protocol::timeline(load)
}

#[test]
fn what_is_published_is_whole_and_what_is_reused_is_free() {
    check(3, publish, timeline);
}

#[test]
#[should_panic(expected = "an entry that was not written yet")]
fn without_its_fence_a_publication_is_found_broken() {
    check(
        2,
        |entry, put| {
            entry();
            put();
        },
        timeline,
    );
}

#[test]
#[should_panic(expected = "the result")]
fn without_its_fence_a_timeline_is_found_broken() {
    check(2, publish, |load| load());
}

type LookAt = fn(&dyn Fn() -> bool, &dyn Fn() -> bool) -> Option<Look>;

/// The work ends, and then its channel breaks: the work counts as done whichever of the two is seen first.
fn check_look(look: LookAt) {
    loom::model(move || {
        let memory = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let seen = Arc::clone(&memory);
        let gpu = thread::spawn(move || {
            seen.0.store(1, Ordering::Relaxed);
            fence(Ordering::Release);
            seen.1.store(1, Ordering::Relaxed);
        });
        let found = loop {
            let found = look(&|| memory.1.load(Ordering::Relaxed) == 1, &|| {
                memory.0.load(Ordering::Relaxed) == 1
            });
            match found {
                Some(found) => break found,
                None => thread::yield_now(),
            }
        };
        assert_eq!(found, Look::Done, "work that was done");
        gpu.join().unwrap();
    });
}

#[test]
fn what_was_done_before_a_failure_counts_as_done() {
    check_look(|failed, done| protocol::look(failed, done));
}

#[test]
#[should_panic(expected = "work that was done")]
fn a_look_the_other_way_round_is_found_broken() {
    check_look(|failed, done| {
        if done() {
            Some(Look::Done)
        } else {
            failed().then_some(Look::Failed)
        }
    });
}
