//! What `nv trace` puts between a program and NVIDIA's kernel driver.
//!
//! [`LIBRARY`] is a shared library that the dynamic linker loads before all others (`LD_PRELOAD`). It stands in for
//! `open`, `close`, `ioctl`, `mmap` and their like, hands each call on, and writes what it saw as [`record`]s to the
//! file that the environment names:
//!
//! | variable | meaning |
//! |---|---|
//! | `NV_TRACE_FILE` | the file to append to; without it nothing is recorded |
//! | `NV_TRACE_DEV` | what the paths of device nodes begin with; by default `/dev/nvidia` |
//! | `NV_TRACE_DRIVER` | the driver's release, such as `580.159.04`, which decides one layout of UVM's |
//! | `NV_TRACE_EVERY` | milliseconds between looks at the rings; by default they are looked at when a call is made |
//!
//! Command buffers are not calls: a program writes them to memory that it shares with the GPU and rings a doorbell.
//! So the library follows which memory object lies where, for the GPU and for the CPU, finds each channel's ring and
//! `GP_PUT`, and copies new entries with what they point at: at each call, when the process ends, and in between
//! when asked to.

pub mod record;

#[cfg(any(test, clippy))]
#[allow(dead_code, reason = "what the library exports has no caller here")]
mod preload;

/// The interposer, an ELF shared library for this target; empty where it cannot be built: other systems than Linux
/// with the GNU C library, and other machines than x86-64 and AArch64.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnv_trace.so"));
