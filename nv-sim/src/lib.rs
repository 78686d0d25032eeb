//! A software NVIDIA GPU: the resource manager's object model, memory with page tables, the host, copy
//! and compute engines. It runs the pushbuffers and the cubins that hardware runs.
#![forbid(unsafe_code)]

mod access;
mod channel;
mod chip;
mod compute;
mod copy;
mod engine;
mod fault;
mod fields;
mod gpu;
mod host;
mod machine;
pub mod memory;
mod mmu;
pub mod sm;

pub use chip::{Chip, UnknownChip};
pub use gpu::Doorbell;
pub use machine::{DmaMapping, Machine, Options, Uvm};
