#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    nv_fuzz::exercise::reloc(bytes);
});
