#![no_main]

// The module of the format alone: the rest of that crate is the library that writes it.
#[path = "../../nv-trace/src/record.rs"]
#[allow(dead_code, reason = "this side only reads")]
mod record;

use record::{HEADER, Reader};

// A file of `nv trace`: records are read to the first that is none, and what is asked of one is an answer.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut size = 0;
    for found in Reader::new(bytes) {
        let Ok(record) = found else {
            continue;
        };
        size += HEADER;
        for index in 0..=usize::from(u8::MAX) {
            let _ = record.number(index);
            assert!(record.blob(index).len() <= bytes.len());
        }
    }
    assert!(size <= bytes.len());
});
