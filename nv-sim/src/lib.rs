//! A software NVIDIA GPU: the resource manager's object model, memory with page tables, the host, copy
//! and compute engines. It runs the pushbuffers and the cubins that hardware runs.
#![forbid(unsafe_code)]

mod access;
mod chip;
pub mod memory;
mod mmu;
pub mod sm;

pub use chip::{Chip, UnknownChip};
