//! Allocations: memory objects of their own, and blocks of slabs.

use std::fmt;
use std::sync::Arc;

use nv_proto::unit::{GpuVa, Handle};

use super::pool::Block;
use super::registered::Lender;
use super::{Placement, Use};
use crate::object::RmObject;
use crate::space::{AddressSpace, Foreign};
use crate::{Error, Mapping, calls};

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("va", &self.va())
            .finish_non_exhaustive()
    }
}

/// Memory in use, mapped for the GPU and, by placement, for the CPU. Dropping it frees it at once: who may still
/// have work in flight on it hands it to the context, which waits.
pub(crate) struct Allocation {
    space: Arc<AddressSpace>,
    va: GpuVa,
    backing: Backing,
}

/// What an allocation is made of.
#[derive(Debug)]
enum Backing {
    Whole(Whole),
    Block(Block),
}

impl Allocation {
    /// Allocates and maps a memory object of at least `bytes` for this alone.
    pub(crate) fn new(
        objects: &calls::Objects,
        space: &Arc<AddressSpace>,
        bytes: u64,
        placement: Placement,
        what: Use,
    ) -> Result<Self, Error> {
        let whole = Whole::new(objects, space, bytes, placement)?;
        Ok(Self::of_whole(space, bytes, what, whole))
    }

    /// A memory object as an allocation of `bytes`.
    pub(super) fn of_whole(space: &Arc<AddressSpace>, bytes: u64, what: Use, whole: Whole) -> Self {
        Self::known(space, whole.va, bytes, what, Backing::Whole(whole))
    }

    /// A block as an allocation of `bytes`.
    pub(super) fn of_block(space: &Arc<AddressSpace>, bytes: u64, what: Use, block: Block) -> Self {
        Self::known(space, block.va(), bytes, what, Backing::Block(block))
    }

    fn known(
        space: &Arc<AddressSpace>,
        va: GpuVa,
        bytes: u64,
        what: Use,
        backing: Backing,
    ) -> Self {
        space.regions().insert(va, bytes, what);
        Self {
            space: Arc::clone(space),
            va,
            backing,
        }
    }

    /// Its first address.
    pub(crate) fn va(&self) -> GpuVa {
        self.va
    }

    /// The memory object; that of its slab for a block.
    pub(crate) fn handle(&self) -> Handle {
        self.whole().memory.handle()
    }

    /// The memory object, for another space to map: that of its slab for a block.
    pub(crate) fn as_foreign(&self) -> Foreign<'_> {
        let whole = self.whole();
        Foreign {
            space: &self.space,
            memory: whole.memory.handle(),
            va: whole.va,
            bytes: whole.bytes,
            host: whole.host,
        }
    }

    fn whole(&self) -> &Whole {
        match &self.backing {
            Backing::Whole(whole) => whole,
            Backing::Block(block) => block.slab(),
        }
    }

    /// The CPU's view.
    pub(crate) fn mapping(&self) -> Result<&Mapping, Error> {
        let mapping = match &self.backing {
            Backing::Whole(whole) => whole.mapping.as_deref(),
            Backing::Block(block) => block.mapping(),
        };
        mapping.ok_or_else(|| {
            Error::Unsupported(
                "this memory has no CPU mapping; allocate it as host-visible or pinned".into(),
            )
        })
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // Before others can be given the same address.
        self.space.regions().remove(self.va);
    }
}

/// A memory object with its mappings.
#[derive(Debug)]
pub(super) struct Whole {
    space: Arc<AddressSpace>,
    va: GpuVa,
    bytes: u64,
    /// Whether it is host memory.
    host: bool,
    /// Ends before the memory object does; what shares it ends before this.
    mapping: Option<Arc<Mapping>>,
    memory: RmObject,
    /// Who lent the memory, where the program did: it has it back after the memory object has ended.
    lender: Option<Arc<Lender>>,
}

impl Whole {
    /// Allocates and maps `bytes`, rounded up to whole pages.
    pub(super) fn new(
        objects: &calls::Objects,
        space: &Arc<AddressSpace>,
        bytes: u64,
        placement: Placement,
    ) -> Result<Self, Error> {
        let (memory, bytes) = calls::memory(objects, bytes, placement)?;
        let mapping = match placement {
            Placement::Device => None,
            _ => {
                let mapping = calls::map_memory(objects, memory.handle(), bytes, placement)?;
                Some(Arc::new(mapping))
            }
        };
        let va = space.map(memory.handle(), bytes)?;
        Ok(Self {
            space: Arc::clone(space),
            va,
            bytes,
            host: placement == Placement::Pinned,
            mapping,
            memory,
            lender: None,
        })
    }

    /// Maps what the program lent; `memory` is the object made of it.
    pub(super) fn lent(
        space: &Arc<AddressSpace>,
        mut memory: RmObject,
        lender: Arc<Lender>,
    ) -> Result<Self, Error> {
        let bytes = lender.length() as u64;
        let va = match space.map(memory.handle(), bytes) {
            Ok(va) => va,
            Err(error) => {
                end_lent(&mut memory, lender);
                return Err(error);
            }
        };
        Ok(Self {
            space: Arc::clone(space),
            va,
            bytes,
            host: true,
            mapping: Some(Arc::new(Mapping::lent(&lender))),
            memory,
            lender: Some(lender),
        })
    }

    /// Its first address.
    pub(super) fn va(&self) -> GpuVa {
        self.va
    }

    /// The CPU's view, to be shared.
    pub(super) fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.mapping.as_ref()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.space.unmap(self.memory.handle(), self.va, self.bytes);
        if let Some(lender) = self.lender.take() {
            end_lent(&mut self.memory, lender);
        }
    }
}

/// Ends a memory object of lent pages. Where the driver refuses, the GPU may still reach them: they are leaked then.
fn end_lent(memory: &mut RmObject, lender: Arc<Lender>) {
    if memory.end().is_err() {
        std::mem::forget(lender);
    }
}
