//! What the images share: where they start, their stack, and the launch that they encode.
#![no_std]

pub mod encode;
pub mod start;
