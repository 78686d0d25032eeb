//! A software NVIDIA GPU: the resource manager's object model, memory with page tables, the host, copy
//! and compute engines. It runs the pushbuffers and the cubins that hardware runs.
#![forbid(unsafe_code)]

pub mod memory;
pub mod sm;
