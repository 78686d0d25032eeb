//! A software NVIDIA GPU: the resource manager's object model, memory with page tables, the host, copy
//! and compute engines. It runs the pushbuffers and the cubins that hardware runs.
//!
//! A [`Machine`] is the kernel driver and its GPUs in one. Clients make the calls that they would make of the
//! kernel driver, with the bytes of the ABI's structures, and get the statuses that it answers; they map
//! memory, write ring entries, methods and launch descriptors into it, and ring a [`Doorbell`].
//!
//! ```
//! use nv_proto::rm::names::classes::{NV01_DEVICE_0, NV01_ROOT_CLIENT};
//! use nv_proto::rm::{AllocParams, DeviceAlloc};
//! use nv_proto::unit::Handle;
//! use nv_sim::{Chip, Machine};
//!
//! let machine = Machine::new(&[Chip::Gh100])?;
//! let null = Handle::NULL;
//! let client = machine.alloc(null, null, null, NV01_ROOT_CLIENT, &mut []).unwrap();
//! let mut params = DeviceAlloc::default();
//! let bytes = params.bytes_mut(machine.version());
//! let device = machine.alloc(client, client, null, NV01_DEVICE_0, bytes).unwrap();
//! assert!(machine.class_list(client, device).unwrap().contains(&Chip::Gh100.compute_class()));
//! machine.free(client, null, client).unwrap();
//! assert_eq!(machine.object_count(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # What is as on hardware, and what is not
//! - Page tables are checked at every access, ring entries and methods word by word, launch descriptors as the
//!   hardware's scheduler checks them. What is wrong ends as it does there: a fault stops the channel's group,
//!   with its code in the error notifier and its registers for the debugger; a descriptor of another version
//!   just never completes. [`Machine::last_fault`] says more than hardware does.
//! - What is not implemented is a fault that names the instruction or the method, never a wrong result:
//!   block-linear copies, macros, textures, queues of descriptors, dependence counters, conditional rendering.
//! - Channels of a GPU run in turns; grids run beside other channels' work, and one channel's work is in
//!   order. Releases may therefore come earlier than they must, never later.
//! - There are no caches, clocks or interrupts: methods and calls about them are taken and change nothing.
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
pub use machine::{DmaMapping, Machine, Options, Sandbox, Uvm};
