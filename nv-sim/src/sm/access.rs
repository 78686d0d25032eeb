//! Accesses to global, shared and local memory.

use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use super::FaultKind;
use super::exec::{Context, Stop};
use super::regs::{ALL, LANES, Lanes, lanes};
use crate::memory::{Access, AddressSpace, MmuFault};

/// Which memory an address is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Space {
    Global,
    Shared,
    Local,
    /// One of the three, told by the windows.
    Generic,
}

/// How wide an access is, and how what is narrower than a register is extended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Width {
    U8,
    S8,
    U16,
    S16,
    B32,
    B64,
    B128,
}

impl Width {
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 => 2,
            Self::B32 => 4,
            Self::B64 => 8,
            Self::B128 => 16,
        }
    }

    pub const fn registers(self) -> u8 {
        match self {
            Self::B64 => 2,
            Self::B128 => 4,
            _ => 1,
        }
    }

    pub const fn extend(self, value: u32) -> u32 {
        match self {
            Self::U8 => value & 0xff,
            Self::S8 => (value as u8).cast_signed() as i32 as u32,
            Self::U16 => value & 0xffff,
            Self::S16 => (value as u16).cast_signed() as i32 as u32,
            _ => value,
        }
    }
}

/// The pages of global memory seen last, so that the address space is asked once a page.
pub(super) struct Tlb<'m> {
    space: &'m dyn AddressSpace,
    entries: Box<[[Entry<'m>; TLB_ENTRIES]; 3]>,
}

#[derive(Clone, Copy)]
struct Entry<'m> {
    page: u64,
    cells: &'m [AtomicU64],
}

const TLB_ENTRIES: usize = 64;
const PAGE_BITS: u32 = 12;

impl<'m> Tlb<'m> {
    pub fn new(space: &'m dyn AddressSpace) -> Self {
        let empty = Entry {
            page: u64::MAX,
            cells: &[],
        };
        Self {
            space,
            entries: Box::new([[empty; TLB_ENTRIES]; 3]),
        }
    }

    /// The cell that holds the byte at `va`.
    #[inline]
    pub fn cell(&mut self, va: u64, access: Access) -> Result<&'m AtomicU64, MmuFault> {
        let kind = match access {
            Access::Read | Access::Execute => 0,
            Access::Write => 1,
            Access::Atomic => 2,
        };
        let page = va >> PAGE_BITS;
        let index = (va & ((1 << PAGE_BITS) - 1)) as usize >> 3;
        let entry = &mut self.entries[kind][page as usize % TLB_ENTRIES];
        if entry.page != page {
            match self
                .space
                .cells(page << PAGE_BITS, 1 << (PAGE_BITS - 3), access)
            {
                Ok(cells) => *entry = Entry { page, cells },
                // The page may be mapped in part only.
                Err(_) => return self.space.cell(va, access),
            }
        }
        match entry.cells.get(index) {
            Some(cell) => Ok(cell),
            None => self.space.cell(va, access),
        }
    }

    /// The cells from `va` on, where the page has that many.
    #[inline]
    fn run(&mut self, va: u64, cells: usize, access: Access) -> Option<&'m [AtomicU64]> {
        self.cell(va, access).ok()?;
        let kind = usize::from(access == Access::Write);
        let page = va >> PAGE_BITS;
        let entry = &self.entries[kind][page as usize % TLB_ENTRIES];
        let index = (va & ((1 << PAGE_BITS) - 1)) as usize >> 3;
        if entry.page == page {
            entry.cells.get(index..index + cells)
        } else {
            None
        }
    }
}

/// The local memory of a warp's threads: words of one address side by side.
#[derive(Default)]
pub(super) struct Local {
    words: Vec<u32>,
}

/// Where one lane's access goes.
#[derive(Clone, Copy)]
enum Spot {
    Global(u64),
    /// Block of the cluster, byte.
    Shared(usize, u32),
    /// Byte from the lowest.
    Local(u32),
}

impl Context<'_, '_> {
    /// Loads for the lanes of `mask`.
    pub fn load(
        &mut self,
        space: Space,
        addresses: &[u64; LANES],
        mask: u32,
        width: Width,
        out: &mut [Lanes; 4],
    ) -> Result<(), Stop> {
        if space == Space::Global
            && mask == ALL
            && width == Width::B32
            && self.load_row(addresses, &mut out[0])
        {
            return Ok(());
        }
        let bytes = width.bytes();
        if space == Space::Shared
            && bytes >= 4
            && let Some((block, offsets)) = self.shared_words(addresses, mask, bytes)
        {
            let shared = &self.blocks[block].shared;
            for (n, out) in out
                .iter_mut()
                .enumerate()
                .take(usize::from(width.registers()))
            {
                for (out, offset) in out.iter_mut().zip(&offsets) {
                    *out = shared.get(*offset as usize + n).copied().unwrap_or(0);
                }
            }
            return Ok(());
        }
        for lane in lanes(mask) {
            let spot = self
                .spot(space, addresses[lane], bytes)
                .map_err(|kind| Stop { kind, lane })?;
            let part = bytes.min(8);
            let value = self
                .read(spot, lane, part)
                .map_err(|kind| Stop { kind, lane })?;
            out[0][lane] = width.extend(value as u32);
            out[1][lane] = (value >> 32) as u32;
            if bytes == 16 {
                let value = self
                    .read(spot.plus(8), lane, 8)
                    .map_err(|kind| Stop { kind, lane })?;
                out[2][lane] = value as u32;
                out[3][lane] = (value >> 32) as u32;
            }
        }
        Ok(())
    }

    /// Stores for the lanes of `mask`; of several lanes at one address the highest wins.
    pub fn store(
        &mut self,
        space: Space,
        addresses: &[u64; LANES],
        mask: u32,
        width: Width,
        v: &[Lanes; 4],
    ) -> Result<(), Stop> {
        if space == Space::Global
            && mask == ALL
            && width == Width::B32
            && self.store_row(addresses, &v[0])
        {
            return Ok(());
        }
        let bytes = width.bytes();
        if space == Space::Shared
            && bytes >= 4
            && let Some((block, offsets)) = self.shared_words(addresses, mask, bytes)
        {
            let shared = &mut self.blocks[block].shared;
            for lane in lanes(mask) {
                for (n, v) in v.iter().enumerate().take(usize::from(width.registers())) {
                    if let Some(word) = shared.get_mut(offsets[lane] as usize + n) {
                        *word = v[lane];
                    }
                }
            }
            return Ok(());
        }
        for lane in lanes(mask) {
            let spot = self
                .spot(space, addresses[lane], bytes)
                .map_err(|kind| Stop { kind, lane })?;
            let value = u64::from(v[1][lane]) << 32 | u64::from(v[0][lane]);
            self.write(spot, lane, bytes.min(8), value)
                .map_err(|kind| Stop { kind, lane })?;
            if bytes == 16 {
                let value = u64::from(v[3][lane]) << 32 | u64::from(v[2][lane]);
                self.write(spot.plus(8), lane, 8, value)
                    .map_err(|kind| Stop { kind, lane })?;
            }
        }
        Ok(())
    }

    /// Where in the words of one block's shared memory the lanes of a mask point, when all of them may.
    #[inline]
    fn shared_words(
        &self,
        addresses: &[u64; LANES],
        mask: u32,
        bytes: u32,
    ) -> Option<(usize, Lanes)> {
        let first = addresses[super::regs::first(mask)] as u32;
        let (rank, offset_bits) = if self.launch.ranked {
            (first >> 24, 0x00ff_ffff)
        } else {
            (0, u32::MAX)
        };
        let (mut all, mut most, mut other) = (0, 0, 0);
        let offsets: Lanes = std::array::from_fn(|i| {
            let address = if mask >> i & 1 != 0 {
                addresses[i] as u32
            } else {
                first
            };
            all |= address;
            other |= (address & !offset_bits) ^ (first & !offset_bits);
            most = most.max(address & offset_bits);
            (address & offset_bits) / 4
        });
        let block = if self.launch.ranked {
            rank as usize
        } else {
            self.me
        };
        let fits = u64::from(most) + u64::from(bytes) <= u64::from(self.launch.shared_bytes);
        let good =
            mask != 0 && all & (bytes - 1) == 0 && other == 0 && fits && block < self.blocks.len();
        good.then_some((block, offsets))
    }

    /// A whole warp at consecutive words of one page.
    fn load_row(&mut self, addresses: &[u64; LANES], out: &mut Lanes) -> bool {
        let Some(cells) = self.row(addresses, Access::Read) else {
            return false;
        };
        for (i, cell) in cells.iter().enumerate() {
            let value = cell.load(Ordering::Relaxed);
            out[2 * i] = value as u32;
            out[2 * i + 1] = (value >> 32) as u32;
        }
        true
    }

    fn store_row(&mut self, addresses: &[u64; LANES], v: &Lanes) -> bool {
        let Some(cells) = self.row(addresses, Access::Write) else {
            return false;
        };
        for (i, cell) in cells.iter().enumerate() {
            cell.store(
                u64::from(v[2 * i + 1]) << 32 | u64::from(v[2 * i]),
                Ordering::Relaxed,
            );
        }
        true
    }

    fn row(&mut self, addresses: &[u64; LANES], access: Access) -> Option<&[AtomicU64]> {
        let start = addresses[0];
        if start & 7 != 0 {
            return None;
        }
        for (i, address) in (0_u64..).zip(addresses) {
            if *address != start.wrapping_add(4 * i) {
                return None;
            }
        }
        self.memory.run(start, LANES / 2, access)
    }

    /// One lane's read-modify-write: gives the old value. `f` gives the new one, or `None` to leave it.
    pub fn atomic(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: u32,
        f: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, FaultKind> {
        let spot = self.spot(space, address, bytes)?;
        let Spot::Global(va) = spot else {
            let old = self.read(spot, lane, bytes)?;
            if let Some(new) = f(old) {
                self.write(spot, lane, bytes, new)?;
            }
            return Ok(old);
        };
        let cell = self
            .memory
            .cell(va, Access::Atomic)
            .map_err(FaultKind::Mmu)?;
        let shift = 8 * (va & 7) as u32;
        let ones = ones(bytes);
        let change = |cell: u64| {
            let new = f(cell >> shift & ones)? & ones;
            Some((cell & !(ones << shift)) | new << shift)
        };
        match cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change) {
            Ok(old) | Err(old) => Ok(old >> shift & ones),
        }
    }

    fn spot(&self, space: Space, address: u64, bytes: u32) -> Result<Spot, FaultKind> {
        if address & u64::from(bytes - 1) != 0 {
            return Err(FaultKind::Misaligned { address });
        }
        let (space, at) = match space {
            Space::Generic => self.launch.classify(address),
            space => (space, address),
        };
        match space {
            Space::Global | Space::Generic => Ok(Spot::Global(address)),
            Space::Shared => {
                let fault = FaultKind::SharedOutOfRange { address: at };
                // From sm_90 on the top byte is the rank of the block in its cluster.
                let (rank, offset) = if self.launch.ranked {
                    (at >> 24, at & 0xff_ffff)
                } else {
                    (0, at)
                };
                let block = if self.launch.ranked {
                    rank as usize
                } else {
                    self.me
                };
                if offset + u64::from(bytes) > u64::from(self.launch.shared_bytes)
                    || block >= self.blocks.len()
                    || at > u64::from(u32::MAX)
                {
                    return Err(fault);
                }
                Ok(Spot::Shared(block, offset as u32))
            }
            Space::Local => {
                let start = self
                    .launch
                    .stack_top
                    .saturating_sub(self.launch.local_bytes);
                let offset = at.checked_sub(u64::from(start));
                match offset {
                    Some(offset)
                        if offset + u64::from(bytes) <= u64::from(self.launch.local_bytes) =>
                    {
                        Ok(Spot::Local(offset as u32))
                    }
                    _ => Err(FaultKind::LocalOutOfRange { address: at }),
                }
            }
        }
    }

    fn read(&mut self, spot: Spot, lane: usize, bytes: u32) -> Result<u64, FaultKind> {
        let two = |lo: u32, hi: u32| u64::from(hi) << 32 | u64::from(lo);
        match spot {
            Spot::Global(va) => {
                let cell = self
                    .memory
                    .cell(va, Access::Read)
                    .map_err(FaultKind::Mmu)?
                    .load(Ordering::Relaxed);
                Ok(cell >> (8 * (va & 7)) & ones(bytes))
            }
            Spot::Shared(block, offset) => {
                let shared = &self.blocks[block].shared;
                let word = |at: u32| shared.get(at as usize / 4).copied().unwrap_or(0);
                let hi = if bytes == 8 { word(offset + 4) } else { 0 };
                Ok(two(word(offset) >> (8 * (offset & 3)), hi) & ones(bytes))
            }
            Spot::Local(offset) => {
                let local = self.local.words(self.launch.local_bytes)?;
                let word = |at: u32| {
                    local
                        .get(at as usize / 4 * LANES + lane)
                        .copied()
                        .unwrap_or(0)
                };
                let hi = if bytes == 8 { word(offset + 4) } else { 0 };
                Ok(two(word(offset) >> (8 * (offset & 3)), hi) & ones(bytes))
            }
        }
    }

    fn write(&mut self, spot: Spot, lane: usize, bytes: u32, value: u64) -> Result<(), FaultKind> {
        match spot {
            Spot::Global(va) => {
                let cell = self
                    .memory
                    .cell(va, Access::Write)
                    .map_err(FaultKind::Mmu)?;
                if bytes == 8 {
                    cell.store(value, Ordering::Relaxed);
                    return Ok(());
                }
                // A neighbour in the cell may be written at the same time.
                let shift = 8 * (va & 7) as u32;
                let ones = ones(bytes);
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    let new = (old & !(ones << shift)) | (value & ones) << shift;
                    match cell.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed)
                    {
                        Ok(_) => return Ok(()),
                        Err(now) => old = now,
                    }
                }
            }
            Spot::Shared(block, offset) => {
                let shared = &mut self.blocks[block].shared;
                put(
                    shared.get_mut(offset as usize / 4),
                    offset,
                    bytes,
                    value as u32,
                );
                if bytes == 8 {
                    put(
                        shared.get_mut(offset as usize / 4 + 1),
                        0,
                        4,
                        (value >> 32) as u32,
                    );
                }
                Ok(())
            }
            Spot::Local(offset) => {
                let local = self.local.words(self.launch.local_bytes)?;
                let at = offset as usize / 4 * LANES + lane;
                put(local.get_mut(at), offset, bytes, value as u32);
                if bytes == 8 {
                    put(local.get_mut(at + LANES), 0, 4, (value >> 32) as u32);
                }
                Ok(())
            }
        }
    }
}

impl Spot {
    fn plus(self, bytes: u32) -> Self {
        match self {
            Self::Global(va) => Self::Global(va.wrapping_add(u64::from(bytes))),
            Self::Shared(block, offset) => Self::Shared(block, offset + bytes),
            Self::Local(offset) => Self::Local(offset + bytes),
        }
    }
}

impl Local {
    /// The words of all lanes, made when first used.
    fn words(&mut self, bytes: u32) -> Result<&mut [u32], FaultKind> {
        if self.words.is_empty() {
            let count = bytes.div_ceil(4) as usize * LANES;
            let too_large = FaultKind::Resources {
                needed: 4 * count as u64,
            };
            let words = u32::new_vec_zeroed(count).map_err(|_| too_large)?;
            self.words = words;
        }
        Ok(&mut self.words)
    }
}

fn put(word: Option<&mut u32>, offset: u32, bytes: u32, value: u32) {
    let Some(word) = word else { return };
    if bytes >= 4 {
        *word = value;
        return;
    }
    let shift = 8 * (offset & 3);
    let ones = ones(bytes) as u32;
    *word = (*word & !(ones << shift)) | (value & ones) << shift;
}

/// The bits of so many bytes.
const fn ones(bytes: u32) -> u64 {
    if bytes >= 8 {
        u64::MAX
    } else {
        (1 << (8 * bytes)) - 1
    }
}
