#![no_main]

#[path = "../src/exercise.rs"]
#[allow(dead_code, reason = "each target runs one of them")]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::cubin(bytes);
});
