//! The interposer as a shared library of its own: no standard library, no allocator, nothing but the C library.
#![no_std]

mod preload;
mod record;

/// Nothing here panics; should it ever, the program ends as by `abort`.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    preload::abort()
}
