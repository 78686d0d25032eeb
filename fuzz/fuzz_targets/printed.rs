#![no_main]

// The host's module alone: it needs nothing else of that crate.
#[path = "../../nv-host/src/system/format.rs"]
#[allow(dead_code, reason = "its caller is the host's")]
mod format;

// What a kernel left in the log of its printf: any words make some text, and no field is wider than it may be.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let text = format::records(&words);
    assert!(text.len() <= 4 * bytes.len() * 4096 + 256 * bytes.len());
});
