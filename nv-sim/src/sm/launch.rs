//! What stays the same while a grid runs.

use std::sync::atomic::Ordering;

use nv_proto::unit::{Dim3, SmVersion};

use super::access::Space;
use super::{FaultKind, Grid};
use crate::memory::{Access, AddressSpace};

/// The facts of a launch, its constant banks read once.
pub(super) struct Launch {
    pub sm: SmVersion,
    pub grid: Dim3,
    pub block: Dim3,
    pub cluster: Dim3,
    pub program: u64,
    /// One past the highest register.
    pub register_limit: u16,
    pub barriers: u32,
    pub shared_bytes: u32,
    pub local_bytes: u32,
    pub stack_top: u32,
    pub shared_window: u64,
    pub local_window: u64,
    pub sm_count: u32,
    /// Whether shared addresses carry the block's rank in its cluster.
    pub ranked: bool,
    banks: [Bank; 8],
}

/// A constant bank: what of it could be read.
#[derive(Default)]
struct Bank {
    size: u32,
    bytes: Vec<u8>,
    unreadable: Option<crate::memory::MmuFault>,
}

impl Launch {
    pub fn new(grid: &Grid, memory: &dyn AddressSpace) -> Self {
        let banks = grid
            .banks
            .map(|bank| Bank::read(bank.va, bank.size.min(MAX_BANK), memory));
        let mut launch = Self {
            sm: grid.sm,
            grid: grid.grid,
            block: grid.block,
            cluster: grid.cluster,
            program: grid.program,
            // Registers are handed out in eights, sixteen at least.
            register_limit: grid.registers.max(16).next_multiple_of(8).min(255),
            barriers: u32::from(grid.barriers),
            shared_bytes: grid.shared_bytes,
            local_bytes: grid.local_bytes,
            stack_top: STACK_TOP,
            shared_window: grid.shared_window,
            local_window: grid.local_window,
            sm_count: grid.sm_count.max(1),
            ranked: grid.sm.0 >= 90,
            banks,
        };
        let at = if grid.sm.0 >= 100 { 0x37c } else { 0x28 };
        match launch.constant(0, at, 4) {
            Ok(top) if top != 0 => launch.stack_top = top as u32,
            _ => {}
        }
        launch
    }

    /// A launch of one thread with full banks of zeros: what instructions are checked against.
    pub fn blank(sm: SmVersion) -> Self {
        Self {
            sm,
            grid: Dim3::ONE,
            block: Dim3::ONE,
            cluster: Dim3::ONE,
            program: 0,
            register_limit: 255,
            barriers: 16,
            shared_bytes: 0,
            local_bytes: 0,
            stack_top: STACK_TOP,
            shared_window: 0,
            local_window: 0,
            sm_count: 1,
            ranked: sm.0 >= 90,
            banks: std::array::from_fn(|_| Bank {
                size: MAX_BANK,
                bytes: vec![0; MAX_BANK as usize],
                unreadable: None,
            }),
        }
    }

    /// `bytes` (at most 4) of a constant bank.
    pub fn constant(&self, bank: u8, offset: u32, bytes: u32) -> Result<u64, FaultKind> {
        let outside = FaultKind::ConstantOutOfRange { bank, offset };
        let bank = self.banks.get(usize::from(bank)).ok_or(outside.clone())?;
        if !offset.is_multiple_of(bytes) {
            return Err(FaultKind::Misaligned {
                address: u64::from(offset),
            });
        }
        let end = offset
            .checked_add(bytes)
            .filter(|end| *end <= bank.size)
            .ok_or(outside)?;
        match bank.bytes.get(offset as usize..end as usize) {
            Some(bytes) => Ok(bytes
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))),
            None => Err(bank.unreadable.map_or(
                FaultKind::ConstantOutOfRange { bank: 0, offset },
                FaultKind::Mmu,
            )),
        }
    }

    /// Whether bank 0 says where the blocks of a cooperative grid meet, on chips whose descriptors do not tell.
    pub fn meeting_place(&self) -> bool {
        self.sm.major() == 8
            && [MEETING_PLACE, MEETING_PLACE + 4]
                .into_iter()
                .any(|at| self.constant(0, at, 4).is_ok_and(|word| word != 0))
    }

    /// The space of a generic address, and the address in that space.
    pub fn classify(&self, address: u64) -> (Space, u64) {
        let within = |base: u64| {
            // A base that is a multiple of 4 GiB has the whole of them: windows are told by the high word alone.
            let size = if base & 0xffff_ffff == 0 {
                1 << 32
            } else {
                1 << 24
            };
            address
                .checked_sub(base)
                .filter(|offset| base != 0 && *offset < size)
        };
        if let Some(offset) = within(self.shared_window) {
            (Space::Shared, offset)
        } else if let Some(offset) = within(self.local_window) {
            (Space::Local, offset)
        } else {
            (Space::Global, address)
        }
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.count().min(u64::from(u32::MAX)) as u32
    }

    /// Coordinates of a thread of a block.
    pub fn thread(&self, index: u32) -> Dim3 {
        coordinates(u64::from(index), self.block)
    }
}

/// The point of a shape with a number, x fastest.
pub(super) fn coordinates(index: u64, shape: Dim3) -> Dim3 {
    let (x, y) = (u64::from(shape.x.max(1)), u64::from(shape.y.max(1)));
    Dim3 {
        x: (index % x) as u32,
        y: (index / x % y) as u32,
        z: (index / x / y) as u32,
    }
}

impl Bank {
    fn read(va: u64, size: u32, memory: &dyn AddressSpace) -> Self {
        let mut bank = Self {
            size,
            ..Self::default()
        };
        let mut at = va;
        while bank.bytes.len() < size as usize {
            match memory.cell(at & !7, Access::Read) {
                Ok(cell) => {
                    let bytes = cell.load(Ordering::Relaxed).to_le_bytes();
                    bank.bytes.extend(bytes.iter().skip((at & 7) as usize));
                    at = (at & !7).wrapping_add(8);
                }
                Err(fault) => {
                    bank.unreadable = Some(fault);
                    break;
                }
            }
        }
        bank.bytes.truncate(size as usize);
        bank
    }
}

/// Where bank 0 has the address of the meeting place on sm_80 to sm_89: `%envreg1` and `%envreg2` in compiled code.
const MEETING_PLACE: u32 = 0x8c;
/// The most that a constant bank can hold.
const MAX_BANK: u32 = 0x1_0000;
/// Where stacks start when bank 0 does not say: seen in every launch of the vendor's library.
const STACK_TOP: u32 = 0x00ff_fdc0;
