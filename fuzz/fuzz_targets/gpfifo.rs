#![no_main]

#[path = "../src/streams.rs"]
#[allow(dead_code, reason = "each target runs one of them")]
mod streams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    streams::gpfifo(bytes);
});
