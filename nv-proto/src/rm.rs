//! The resource manager's ABI: parameter structures, commands, statuses.
//!
//! Structures are bytes with names: little-endian fields of alignment 1, zero by default, laid out as the
//! headers of `open-gpu-kernel-modules` say for releases 535 to 595 (610 second hand). Where a structure grew
//! at its end, [`Layout::prefix_mut`] gives the part that a release expects; where fields moved there are two
//! layouts behind one type with a `bytes_mut`. [`Abi`] says which releases are known.
//!
//! [`AllocParams`] and [`Control`] are sealed, and implemented by structures without pointers alone: a host may
//! hand them to the kernel driver without an `unsafe` promise of its callers.

mod alloc;
mod control;
mod describe;
mod escape;
pub mod flags;
pub(crate) mod layout;
pub mod names;
mod status;
mod version;

use crate::unit::{ClassId, GpuVa, Handle};

pub use zerocopy::little_endian::{I32, U16, U32, U64};

pub use alloc::*;
pub use control::*;
pub use describe::{Described, Value, alloc_shape, escape_shape};
pub use escape::*;
pub use layout::{Field, Layout, Shape};
pub use status::{NAMES as STATUS_NAMES, Status};
pub use version::{Abi, BRANCHES, Branch, DriverVersion, Fit, UnsupportedDriver};

/// Parameters of an object's allocation that hold no pointer.
pub trait AllocParams: layout::sealed::Sealed {
    /// Whether they are the parameters of objects of `class`. Another class might find a pointer in them.
    fn fits(class: ClassId) -> bool;

    /// What a release's driver expects.
    fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8];

    /// Takes what the driver wrote back into the fields, where the release lays them out differently.
    fn read_back(&mut self, _version: DriverVersion) {}
}

/// Parameters of a control call that hold no pointer.
pub trait Control: layout::sealed::Sealed {
    /// The command.
    const COMMAND: u32;
    /// The command's name in the headers.
    const NAME: &'static str;

    /// What a release's driver expects: it refuses another size.
    fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8];
}

/// Every structure described here and in [`crate::uvm`]; two of one name are layouts of different releases.
pub fn shapes() -> impl Iterator<Item = &'static Shape> {
    let all = [
        escape::SHAPES,
        alloc::SHAPES,
        control::SHAPES,
        crate::uvm::SHAPES,
    ];
    all.into_iter().flatten()
}

impl From<Handle> for U32 {
    fn from(handle: Handle) -> Self {
        Self::new(handle.0)
    }
}

impl From<U32> for Handle {
    fn from(field: U32) -> Self {
        Self(field.get())
    }
}

impl From<ClassId> for U32 {
    fn from(class: ClassId) -> Self {
        Self::new(class.0)
    }
}

impl From<GpuVa> for U64 {
    fn from(va: GpuVa) -> Self {
        Self::new(va.0)
    }
}
