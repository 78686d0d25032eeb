//! The interposer. `exports.rs` stands in for the C library's functions and, with `sys.rs`, holds all that is unsafe;
//! `hook.rs` records calls, `track.rs` follows what lies where, `ring.rs` copies command buffers.

mod exports;
mod hook;
mod layout;
mod ring;
mod sys;
mod table;
mod track;

/// Ends the process.
pub fn abort() -> ! {
    sys::abort()
}
