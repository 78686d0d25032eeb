//! GPU address spaces: which virtual pages are which memory.
//!
//! A [`Space`] is what clients map into. Engines work on a [`PageTable`], a snapshot of it: maps and unmaps
//! make a new table as long as a snapshot is held, so that a running grid holds no lock and sees no change.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::memory::{Access, AddressSpace, Memory, MmuFault};

/// The first address past every address space: 49 bits, as the kernel driver's default (read on an H200,
/// `NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS.limit` was 0x1fffffb000fff for the reference's size).
pub(crate) const VA_END: u64 = 1 << 49;

/// A page size that the MMU has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum PageSize {
    /// 4 KiB.
    Small,
    /// 64 KiB.
    Big,
    /// 2 MiB.
    Huge,
}

impl PageSize {
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Small => 4 << 10,
            Self::Big => 64 << 10,
            Self::Huge => 2 << 20,
        }
    }
}

/// What a mapping lets engines do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Permission {
    ReadWrite,
    ReadOnly,
}

/// One mapping: whole pages of one memory.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Its first address.
    pub(crate) va: u64,
    /// Its size in bytes.
    pub(crate) length: u64,
    /// What is mapped.
    pub(crate) memory: Arc<Memory>,
    /// From which byte of it, a multiple of 8.
    pub(crate) offset: u64,
    /// What engines may do.
    pub(crate) permission: Permission,
    /// The memory object's number, unique in a machine.
    pub(crate) object: u64,
}

impl Region {
    const fn end(&self) -> u64 {
        self.va + self.length
    }
}

/// Why a mapping cannot be made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MapError {
    /// A page of it is mapped already.
    Overlap,
    /// It lies outside the address space, or its memory is too short.
    OutOfRange,
}

/// An address space.
pub(crate) struct Space {
    table: Mutex<Arc<PageTable>>,
    /// The last address.
    pub(crate) limit: u64,
    /// Whether UVM owns it: the resource manager maps nothing there.
    pub(crate) external: bool,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("limit", &self.limit)
            .field("external", &self.external)
            .finish()
    }
}

impl Space {
    pub(crate) fn new(limit: u64, external: bool) -> Self {
        Self {
            table: Mutex::default(),
            limit,
            external,
        }
    }

    /// The mappings as they are now.
    pub(crate) fn snapshot(&self) -> Arc<PageTable> {
        self.table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn edit<R>(&self, change: impl FnOnce(&mut PageTable) -> R) -> R {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut table))
    }

    /// Adds a mapping.
    pub(crate) fn map(&self, region: Region) -> Result<(), MapError> {
        let inside = region.length != 0
            && region
                .va
                .checked_add(region.length - 1)
                .is_some_and(|last| last <= self.limit)
            && region
                .offset
                .checked_add(region.length)
                .is_some_and(|end| end <= region.memory.bytes() as u64);
        if !inside {
            return Err(MapError::OutOfRange);
        }
        self.edit(|table| table.insert(region))
    }

    /// Adds a mapping in the place of whatever is mapped there.
    pub(crate) fn replace(&self, region: Region) -> Result<(), MapError> {
        self.unmap_range(region.va, region.length);
        self.map(region)
    }

    /// Takes away the mapping of `object` that begins at `va`; `None` where there is none.
    pub(crate) fn unmap(&self, va: u64, object: u64) -> Option<()> {
        self.edit(|table| {
            let index = table
                .regions
                .binary_search_by_key(&va, |region| region.va)
                .ok()?;
            if table.regions.get(index)?.object != object {
                return None;
            }
            table.remove(index);
            Some(())
        })
    }

    /// Takes away whatever is mapped between `va` and `va + length`, splitting what reaches over the ends.
    pub(crate) fn unmap_range(&self, va: u64, length: u64) {
        let end = va.saturating_add(length);
        self.edit(|table| {
            let mut kept = Vec::with_capacity(table.regions.len());
            for region in std::mem::take(&mut table.regions) {
                if region.end() <= va || region.va >= end {
                    kept.push(region);
                    continue;
                }
                if region.va < va {
                    kept.push(Region {
                        length: va - region.va,
                        ..region.clone()
                    });
                }
                if region.end() > end {
                    let cut = end - region.va;
                    kept.push(Region {
                        va: end,
                        length: region.length - cut,
                        offset: region.offset + cut,
                        ..region
                    });
                }
            }
            table.regions = kept;
            table.hints = Hints::default();
        });
    }

    /// Takes away every mapping of `object`.
    pub(crate) fn unmap_object(&self, object: u64) {
        // Looked up first: an edit copies the table where an engine holds it.
        if self
            .snapshot()
            .regions
            .iter()
            .any(|region| region.object == object)
        {
            self.edit(|table| {
                table.regions.retain(|region| region.object != object);
                table.hints = Hints::default();
            });
        }
    }

    /// The lowest gap of `length` bytes at a multiple of `align`, from `from` on.
    pub(crate) fn find_gap(&self, from: u64, length: u64, align: u64) -> Option<u64> {
        let table = self.snapshot();
        let mut va = from.checked_next_multiple_of(align)?;
        for region in &table.regions {
            if region.end() <= va {
                continue;
            }
            if va.checked_add(length)? <= region.va {
                break;
            }
            va = region.end().checked_next_multiple_of(align)?;
        }
        (va.checked_add(length.checked_sub(1)?)? <= self.limit).then_some(va)
    }
}

/// The mappings of an address space at one moment.
#[derive(Clone, Default)]
pub(crate) struct PageTable {
    /// By address; none overlaps another.
    regions: Vec<Region>,
    hints: Hints,
}

impl PageTable {
    fn insert(&mut self, region: Region) -> Result<(), MapError> {
        let index = self.regions.partition_point(|other| other.va < region.va);
        let before = index
            .checked_sub(1)
            .and_then(|index| self.regions.get(index));
        let after = self.regions.get(index);
        if before.is_some_and(|before| before.end() > region.va)
            || after.is_some_and(|after| after.va < region.end())
        {
            return Err(MapError::Overlap);
        }
        self.regions.insert(index, region);
        self.hints = Hints::default();
        Ok(())
    }

    fn remove(&mut self, index: usize) {
        self.regions.remove(index);
        self.hints = Hints::default();
    }

    /// The region that holds `va`.
    fn find(&self, va: u64) -> Option<&Region> {
        let holds = |region: &&Region| va.wrapping_sub(region.va) < region.length;
        if let Some(region) = self.regions.get(self.hints.get(va)).filter(holds) {
            return Some(region);
        }
        let index = self
            .regions
            .partition_point(|region| region.va <= va)
            .checked_sub(1)?;
        let region = self.regions.get(index).filter(holds)?;
        self.hints.set(va, index);
        Some(region)
    }

    /// The region that holds `va`, with its cells from that of `va` to its end.
    fn run(&self, va: u64, access: Access) -> Result<&[AtomicU64], MmuFault> {
        let fault = MmuFault { va, access };
        let region = self.find(va).ok_or(fault)?;
        if region.permission == Permission::ReadOnly
            && matches!(access, Access::Write | Access::Atomic)
        {
            return Err(fault);
        }
        let first = (region.offset + (va - region.va)) / 8;
        let end = (region.offset + region.length).div_ceil(8);
        usize::try_from(first)
            .ok()
            .zip(usize::try_from(end).ok())
            .and_then(|(first, end)| region.memory.cells().get(first..end))
            .ok_or(fault)
    }

    /// The code that the fault buffer gives an access that failed (`facts/pfault.json`, `fault_types`).
    pub(crate) fn fault_type(&self, fault: MmuFault) -> u32 {
        const PDE: u32 = 0;
        const PTE: u32 = 2;
        const RO_VIOLATION: u32 = 6;
        if self.find(fault.va).is_some() {
            return RO_VIOLATION;
        }
        // A page directory covers 2 MiB: where it has any page, the leaf entry is what is missing.
        let first = fault.va & !(PageSize::Huge.bytes() - 1);
        let last = first | (PageSize::Huge.bytes() - 1);
        let near = self
            .regions
            .iter()
            .any(|region| region.va <= last && region.end() > first);
        if near { PTE } else { PDE }
    }
}

impl AddressSpace for PageTable {
    fn cell(&self, va: u64, access: Access) -> Result<&AtomicU64, MmuFault> {
        self.run(va, access)?.first().ok_or(MmuFault { va, access })
    }

    fn cells(&self, va: u64, cells: usize, access: Access) -> Result<&[AtomicU64], MmuFault> {
        let run = self.run(va, access)?;
        run.get(..cells.clamp(1, run.len().max(1)))
            .ok_or(MmuFault { va, access })
    }
}

/// Which region an address was last found in, by the address: a guess that is always checked.
struct Hints([AtomicU32; Self::COUNT]);

impl Hints {
    const COUNT: usize = 64;

    /// Neighbouring 64 KiB runs do not share a place.
    fn place(va: u64) -> usize {
        ((va >> 16) ^ (va >> 22)) as usize % Self::COUNT
    }

    fn get(&self, va: u64) -> usize {
        self.0
            .get(Self::place(va))
            .map_or(0, |hint| hint.load(Ordering::Relaxed) as usize)
    }

    fn set(&self, va: u64, index: usize) {
        if let (Some(hint), Ok(index)) = (self.0.get(Self::place(va)), u32::try_from(index)) {
            hint.store(index, Ordering::Relaxed);
        }
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; Self::COUNT])
    }
}

impl Clone for Hints {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(bytes: usize) -> Arc<Memory> {
        let memory = Memory::zeroed(bytes).unwrap();
        for (i, cell) in memory.cells().iter().enumerate() {
            cell.store(i as u64, Ordering::Relaxed);
        }
        Arc::new(memory)
    }

    fn region(va: u64, length: u64, offset: u64, object: u64) -> Region {
        let memory = memory((offset + length) as usize);
        Region {
            va,
            length,
            memory,
            offset,
            permission: Permission::ReadWrite,
            object,
        }
    }

    fn load(table: &PageTable, va: u64) -> Option<u64> {
        table
            .cell(va, Access::Read)
            .ok()
            .map(|cell| cell.load(Ordering::Relaxed))
    }

    #[test]
    fn pages_are_found_and_gaps_are_not() {
        let space = Space::new(VA_END - 1, false);
        space.map(region(0x10000, 0x1000, 0, 1)).unwrap();
        space.map(region(0x12000, 0x2000, 0x800, 2)).unwrap();
        let table = space.snapshot();
        assert_eq!(load(&table, 0xffff), None);
        assert_eq!(load(&table, 0x10000), Some(0));
        assert_eq!(load(&table, 0x10fff), Some(0x1ff));
        assert_eq!(load(&table, 0x11000), None);
        assert_eq!(load(&table, 0x12000), Some(0x100));
        assert_eq!(load(&table, 0x13fff), Some(0x4ff));
        assert_eq!(load(&table, 0x14000), None);
        assert_eq!(load(&table, u64::MAX), None);
        // Runs end where the region does.
        assert_eq!(table.cells(0x10ff0, 100, Access::Read).unwrap().len(), 2);
        assert_eq!(table.cells(0x10000, 0, Access::Read).unwrap().len(), 1);
        let fault = table.cell(0x11000, Access::Write).unwrap_err();
        assert_eq!(
            fault,
            MmuFault {
                va: 0x11000,
                access: Access::Write
            }
        );
        assert_eq!(table.fault_type(fault), 2);
        assert_eq!(
            table.fault_type(MmuFault {
                va: 1 << 40,
                access: Access::Read
            }),
            0
        );
    }

    #[test]
    fn overlaps_and_strays_are_refused() {
        let space = Space::new(VA_END - 1, false);
        space.map(region(0x10000, 0x2000, 0, 1)).unwrap();
        for (va, length) in [
            (0x10000, 0x1000),
            (0xf000, 0x2000),
            (0x11000, 0x4000),
            (0xf000, 0x9000),
        ] {
            assert_eq!(
                space.map(region(va, length, 0, 2)),
                Err(MapError::Overlap),
                "{va:#x}"
            );
        }
        assert_eq!(
            space.map(region(VA_END - 0x1000, 0x2000, 0, 2)),
            Err(MapError::OutOfRange)
        );
        assert_eq!(
            space.map(region(u64::MAX - 0xfff, 0x1000, 0, 2)),
            Err(MapError::OutOfRange)
        );
        let short = Region {
            length: 0x2000,
            ..region(0x40000, 0x1000, 0, 2)
        };
        assert_eq!(space.map(short), Err(MapError::OutOfRange));
        assert_eq!(
            space.map(Region {
                length: 0,
                ..region(0x40000, 8, 0, 2)
            }),
            Err(MapError::OutOfRange)
        );
        space.map(region(0x12000, 0x1000, 0, 2)).unwrap();
        space.map(region(0xf000, 0x1000, 0, 2)).unwrap();
    }

    #[test]
    fn read_only_pages_refuse_writes() {
        let space = Space::new(VA_END - 1, false);
        space
            .map(Region {
                permission: Permission::ReadOnly,
                ..region(0x1000, 0x1000, 0, 1)
            })
            .unwrap();
        let table = space.snapshot();
        assert!(
            table.cell(0x1000, Access::Read).is_ok() && table.cell(0x1000, Access::Execute).is_ok()
        );
        for access in [Access::Write, Access::Atomic] {
            let fault = table.cell(0x1008, access).unwrap_err();
            assert_eq!((fault.va, table.fault_type(fault)), (0x1008, 6));
        }
    }

    #[test]
    fn a_snapshot_does_not_change() {
        let space = Space::new(VA_END - 1, false);
        space.map(region(0x1000, 0x1000, 0, 7)).unwrap();
        let before = space.snapshot();
        assert_eq!(space.unmap(0x1000, 8), None);
        assert_eq!(space.unmap(0x1000, 7), Some(()));
        assert_eq!(space.unmap(0x1000, 7), None);
        space.map(region(0x5000, 0x1000, 0x1000, 9)).unwrap();
        let after = space.snapshot();
        assert_eq!(
            (load(&before, 0x1000), load(&before, 0x5000)),
            (Some(0), None)
        );
        assert_eq!(
            (load(&after, 0x1000), load(&after, 0x5000)),
            (None, Some(0x200))
        );
        space.unmap_object(9);
        assert_eq!(load(&space.snapshot(), 0x5000), None);
    }

    #[test]
    fn ranges_are_cut_out() {
        let space = Space::new(VA_END - 1, false);
        space.map(region(0x10000, 0x10000, 0, 1)).unwrap();
        space.unmap_range(0x14000, 0x2000);
        let table = space.snapshot();
        assert_eq!(load(&table, 0x13ff8), Some(0x7ff));
        assert_eq!(load(&table, 0x14000), None);
        assert_eq!(load(&table, 0x15fff), None);
        assert_eq!(load(&table, 0x16000), Some(0xc00));
        space.replace(region(0x13000, 0x2000, 0x800, 2)).unwrap();
        let table = space.snapshot();
        assert_eq!(load(&table, 0x12ff8), Some(0x5ff));
        assert_eq!(load(&table, 0x13000), Some(0x100));
        assert_eq!(load(&table, 0x15000), None);
    }

    #[test]
    fn gaps_are_found() {
        let space = Space::new(0xf_ffff, false);
        space.map(region(0x10000, 0x1000, 0, 1)).unwrap();
        space.map(region(0x20000, 0x1000, 0, 1)).unwrap();
        assert_eq!(space.find_gap(0x10000, 0x1000, 0x1000), Some(0x11000));
        assert_eq!(space.find_gap(0x10000, 0x10000, 0x10000), Some(0x30000));
        assert_eq!(space.find_gap(0x10000, 0x100_0000, 0x1000), None);
        assert_eq!(space.find_gap(0x10000, u64::MAX, 0x1000), None);
    }
}
