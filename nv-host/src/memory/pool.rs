//! Small allocations: blocks of slabs that are allocated and mapped once, so that most make no call to the driver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use nv_proto::unit::GpuVa;

use super::allocation::{Allocation, Whole};
use super::blocks::Blocks;
use super::{Placement, Use};
use crate::calls::Objects;
use crate::context::lock;
use crate::space::AddressSpace;
use crate::{Error, Mapping};

/// The slabs of a context.
#[derive(Debug)]
pub(crate) struct Pool {
    objects: Objects,
    space: Arc<AddressSpace>,
    device: Mutex<Shelf>,
    host_visible: Mutex<Shelf>,
    pinned: Mutex<Shelf>,
}

/// The slabs of one placement.
#[derive(Debug)]
struct Shelf {
    blocks: Blocks,
    /// By first address.
    slabs: BTreeMap<u64, Arc<Whole>>,
}

/// Bytes of a slab of GPU memory: one page of the largest size, which is also the unit of GPU addresses.
const SLAB: u64 = 2 << 20;
/// Bytes of a slab of host memory, whose pages are small: what is pinned, every other program lacks.
const PINNED_SLAB: u64 = 512 << 10;

/// What `what` must be aligned to: sections of a module ask for a small page at most.
fn align(what: Use) -> u64 {
    match what {
        Use::Code => 4096,
        _ => Blocks::UNIT,
    }
}

/// Bytes of a slab of that placement.
fn slab_bytes(placement: Placement) -> u64 {
    match placement {
        Placement::Pinned => PINNED_SLAB,
        Placement::Device | Placement::HostVisible => SLAB,
    }
}

impl Pool {
    /// A pool without slabs.
    pub(crate) fn new(objects: &Objects, space: &Arc<AddressSpace>) -> Self {
        let shelf = |placement| {
            Mutex::new(Shelf {
                blocks: Blocks::new(slab_bytes(placement)),
                slabs: BTreeMap::new(),
            })
        };
        Self {
            objects: objects.clone(),
            space: Arc::clone(space),
            device: shelf(Placement::Device),
            host_visible: shelf(Placement::HostVisible),
            pinned: shelf(Placement::Pinned),
        }
    }

    /// Allocates `bytes`: a block of a slab, or a memory object of its own where it is more than half of one.
    pub(crate) fn allocate(
        self: &Arc<Self>,
        bytes: u64,
        placement: Placement,
        what: Use,
    ) -> Result<Allocation, Error> {
        let whole = || Allocation::new(&self.objects, &self.space, bytes, placement, what);
        if bytes > slab_bytes(placement) / 2 {
            return whole();
        }
        let block = match self.take(bytes, placement, what) {
            Some(block) => block,
            None => {
                match Whole::new(&self.objects, &self.space, slab_bytes(placement), placement) {
                    Ok(slab) => {
                        lock(self.shelf(placement)).add(slab);
                        // Others may have taken all of it meanwhile.
                        match self.take(bytes, placement, what) {
                            Some(block) => block,
                            None => return whole(),
                        }
                    }
                    // There may be enough for this, if not for a slab.
                    Err(Error::OutOfMemory { .. }) => return whole(),
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(Allocation::of_block(&self.space, bytes, what, block))
    }

    /// Frees the slabs that nothing uses; answers whether there were any.
    pub(crate) fn trim(&self) -> bool {
        let mut freed = Vec::new();
        for shelf in [&self.device, &self.host_visible, &self.pinned] {
            let mut shelf = lock(shelf);
            let empty: Vec<u64> = shelf.blocks.empty().collect();
            freed.extend(empty.into_iter().filter_map(|base| shelf.remove(base)));
        }
        // Freed here, with no lock held.
        !freed.is_empty()
    }

    fn take(self: &Arc<Self>, bytes: u64, placement: Placement, what: Use) -> Option<Block> {
        let mut shelf = lock(self.shelf(placement));
        let at = shelf.blocks.take(bytes, align(what))?;
        let base = shelf.blocks.base(at);
        let Some(slab) = shelf.slabs.get(&base).map(Arc::clone) else {
            // Blocks are of slabs that are there; if not, this one is lost rather than used.
            debug_assert!(false, "a block at {at:#x} without its slab");
            return None;
        };
        drop(shelf);
        let length = Blocks::rounded(bytes)?;
        let part = |mapping| Mapping::part(mapping, at - base, length);
        Some(Block {
            mapping: slab.mapping().and_then(part),
            slab,
            pool: Arc::clone(self),
            placement,
            va: GpuVa(at),
            bytes,
        })
    }

    fn shelf(&self, placement: Placement) -> &Mutex<Shelf> {
        match placement {
            Placement::Device => &self.device,
            Placement::HostVisible => &self.host_visible,
            Placement::Pinned => &self.pinned,
        }
    }
}

impl Shelf {
    fn add(&mut self, slab: Whole) {
        let base = slab.va().0;
        self.slabs.insert(base, Arc::new(slab));
        self.blocks.add(base);
    }

    /// Takes an empty slab out.
    fn remove(&mut self, base: u64) -> Option<Arc<Whole>> {
        self.blocks.remove(base);
        self.slabs.remove(&base)
    }
}

/// A part of a slab; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Block {
    // Fields end in this order: the mapping is a share of the slab's.
    mapping: Option<Mapping>,
    slab: Arc<Whole>,
    pool: Arc<Pool>,
    placement: Placement,
    va: GpuVa,
    bytes: u64,
}

impl Block {
    /// Its first address.
    pub(super) fn va(&self) -> GpuVa {
        self.va
    }

    /// What it is a part of.
    pub(super) fn slab(&self) -> &Whole {
        &self.slab
    }

    /// The CPU's view.
    pub(super) fn mapping(&self) -> Option<&Mapping> {
        self.mapping.as_ref()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut shelf = lock(self.pool.shelf(self.placement));
        let freed = match shelf.blocks.give_back(self.va.0, self.bytes) {
            // One that is empty is kept: the next small allocation makes no call then.
            Some(base) if shelf.blocks.empty().nth(1).is_some() => shelf.remove(base),
            _ => None,
        };
        drop(shelf);
        // It ends with this block, which still holds it.
        drop(freed);
    }
}
