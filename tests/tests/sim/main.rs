//! The simulated GPU by itself: the resource manager's calls, UVM, and what its engines do with rings,
//! pushbuffers and launch descriptors in memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that panics fails the test that called it"
)]
#![allow(
    clippy::field_reassign_with_default,
    reason = "parameters are filled in field by field, as clients do"
)]

mod anything;
mod chip;
mod compute;
mod copy;
mod host;
mod peer;
mod replay;
mod rig;
mod rm;
mod uvm;
mod vendor;
