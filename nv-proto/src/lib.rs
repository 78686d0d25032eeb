//! Encoders and decoders for NVIDIA compute hardware, its kernel driver and its cubins.
//!
//! Everything here is pure and total: no allocator, no `unsafe`, no panic, no loop that is not
//! bounded by the length of its input.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

#[cfg(any(test, feature = "std"))]
extern crate std;

#[macro_use]
mod log;

pub mod bank0;
pub mod bits;
pub mod class;
pub mod cubin;
pub mod error;
pub mod gpfifo;
pub mod launch;
pub mod pretty;
pub mod push;
pub mod qmd;
pub mod rm;
pub mod sass;
pub mod unit;
pub mod uvm;

pub use error::{DecodeError, EncodeError};
