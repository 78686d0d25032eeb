//! Run NVIDIA GPUs with no vendor user-space library.
//!
//! ```
//! use nv_host::Device;
//!
//! # fn main() -> Result<(), nv_host::Error> {
//! // A real GPU if there is one, else a simulated one that runs the same machine code.
//! let device = Device::open_best()?;
//! let numbers = device.upload(&[1.0_f32, 2.0, 3.0])?;
//! assert_eq!(numbers.read()?, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Layers
//! [`Device`] opens a GPU through a [`driver::Driver`]: the kernel driver's device nodes, or the simulated GPU.
//! Buffers, modules and streams belong to a device and keep it open. A launch is checked against the kernel's own
//! facts and against the GPU's limits before anything reaches the device.
//!
//! Work is submitted launch by launch ([`Stream::launch`], [`launch!`]) or put together once and replayed ([`Graph`]).
//!
//! # Threads
//! All types are [`Send`] and [`Sync`] (`tests/send_sync.rs`), and no thread has to be told which device it works with.
//! Handles are shared by cloning or by reference; what they stand for is kept behind locks, each submission is whole,
//! and which of two threads' comes first is as they happen to meet.
//!
//! # Safety
//! Nothing here needs `unsafe` of its callers: GPU-visible memory is only ever copied to and from, never borrowed,
//! so a kernel that writes where it should not breaks its own results, and not Rust's rules.
#![deny(unsafe_code)]

pub mod driver;
pub mod fatbin;

mod args;
mod builtin;
mod calls;
mod channel;
mod context;
mod device;
mod error;
mod fault;
mod graph;
mod group;
mod launch;
mod local;
mod mapping;
mod memory;
mod module;
mod object;
mod peer;
pub mod probe;
pub mod profile;
mod protocol;
mod ring;
mod select;
mod space;
mod staging;
mod stream;
mod symbol;
mod sync {
    //! What the model check replaces.
    pub(crate) use std::sync::atomic::{Ordering, fence};
}
#[cfg(feature = "ioctl")]
mod sys;
mod system;
mod va;
mod wait;

pub use args::{Arg, ArgBytes, Hold};
pub use context::Context;
#[cfg(feature = "sim")]
pub use device::SimMachine;
pub use device::{Backend, Device, Info, MemoryInfo, Options};
pub use error::Error;
pub use fault::{
    AskedLaunch, BadAccess, Doubt, FaultKind, FaultReport, MemoryPlace, SmError, Submission,
    code_name,
};
pub use graph::{Graph, GraphBuilder, GraphLaunch, GraphNode, IntoGraph};
pub use launch::{Launch, Target};
pub use mapping::Mapping;
pub use memory::{
    Buffer, DeviceSlice, Element, Neighbours, NotRegistered, Page, PinnedBuffer, Place, Placement,
    Region, Use,
};
pub use module::{Function, Module};
pub use nv_proto::launch::{LimitedBy, Occupancy};
pub use object::live_objects;
pub use peer::{PeerBuffer, PeerLink, PeerPlace};
pub use space::MapMode;
pub use stream::{Download, Event, GpuTime, Rect, Stream};
pub use symbol::Symbol;
pub use system::Printed;
