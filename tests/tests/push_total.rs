//! Readers of pushbuffers and rings on streams with bits turned, cut short and spliced: nothing panics, and
//! what is read comes back.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

#[path = "../../fuzz/src/streams.rs"]
mod streams;

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

/// Real streams as bytes: the raw captures of an H200 and the reference's queues and launches.
static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let bytes = |value: &Value| -> Vec<u8> {
        let words = value.as_array().unwrap().iter();
        words
            .flat_map(|word| u32::try_from(word.as_u64().unwrap()).unwrap().to_le_bytes())
            .collect()
    };
    let captures = nv_tests::json("golden/h200/cuda_streams.json");
    let seed = nv_tests::json("golden/seed/cases.json");
    let captured = ["vadd", "gen"].map(|name| bytes(&captures["streams"][name]["words"]));
    let queues = seed["queues"]
        .as_object()
        .unwrap()
        .values()
        .map(|queue| bytes(&queue["words"]));
    captured.into_iter().chain(queues).collect()
});

#[test]
fn real_streams_are_read_whole() {
    for stream in CORPUS.iter() {
        let outcome = streams::push(stream);
        assert!(!outcome.refused && outcome.packets >= 2 && outcome.writes >= outcome.packets);
        // Cut anywhere, the packets before the cut are read.
        for length in (0..stream.len()).step_by(36) {
            let cut = streams::push(&stream[..length]);
            assert!(cut.packets <= outcome.packets && cut.writes <= outcome.writes);
        }
    }
}

proptest! {
    #[test]
    fn mutated_streams_are_read(
        which in any::<prop::sample::Index>(),
        turned in proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 0..6),
        from in any::<prop::sample::Index>(),
    ) {
        let mut stream = which.get(&CORPUS).clone();
        for (at, bit) in turned {
            let at = at.index(stream.len());
            stream[at] ^= 1 << bit;
        }
        streams::push(&stream);
        streams::push(&stream[from.index(stream.len()) & !3..]);
        streams::gpfifo(&stream);
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        streams::push(&bytes);
        streams::gpfifo(&bytes);
    }
}
