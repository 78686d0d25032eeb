#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = nv_fuzz::messages::sass(bytes);
});
