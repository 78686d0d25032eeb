//! What each generation's streaming multiprocessor holds, and how many blocks fit on one.

use crate::launch::{LaunchError, Limit};
use crate::unit::SmVersion;

/// What a streaming multiprocessor holds.
///
/// The numbers are those of the CUDA Programming Guide's table of technical specifications per compute
/// capability; the allocation units and the barriers those of the toolkit's `cuda_occupancy.h`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SmLimits {
    /// The generation.
    pub sm: SmVersion,
    /// Warps resident at once.
    pub warps: u32,
    /// Blocks resident at once.
    pub blocks: u32,
    /// The sizes, in KiB, that shared memory can be configured to, smallest first.
    pub shared_steps: &'static [u16],
    /// Bytes of shared memory of one block at most, without the reserved ones.
    pub shared_per_block: u32,
    /// Bytes of shared memory that the system keeps in each block.
    pub reserved_shared: u32,
    /// Shared memory is allocated in units of so many bytes.
    pub shared_unit: u32,
    /// Named barriers of all resident blocks, where they limit occupancy.
    pub barriers: Option<u32>,
    /// Blocks of a cluster at most; 1 without clusters.
    pub cluster: u32,
}

/// Threads of a warp.
pub const WARP: u32 = 32;
/// Threads of a block at most, on every generation.
pub const THREADS_PER_BLOCK: u32 = 1024;
/// Threads of a block at most, by direction.
pub const BLOCK: [u32; 3] = [1024, 1024, 64];
/// Blocks of a grid at most, by direction.
pub const GRID: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];
/// Registers of a streaming multiprocessor.
pub const REGISTER_FILE: u32 = 65536;
/// Registers of a thread at most.
pub const REGISTERS_PER_THREAD: u32 = 255;
/// A warp's registers are allocated in units of so many.
pub const REGISTER_UNIT: u32 = 256;
/// Warps are allocated in units of so many: one on each part of the multiprocessor.
pub const WARP_UNIT: u32 = 4;
/// Named barriers of a block at most.
pub const BARRIERS_PER_BLOCK: u32 = 16;
/// Bytes of a constant bank at most.
pub const CONSTANT_BANK: u32 = 65536;

/// What keeps more blocks from fitting on a multiprocessor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LimitedBy {
    /// The number of blocks itself.
    Blocks,
    /// Warps.
    Warps,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Named barriers.
    Barriers,
}

/// How many blocks fit on a multiprocessor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Occupancy {
    /// Blocks resident at once; 0 when not even one fits.
    pub blocks: u32,
    /// What allows no more.
    pub limited_by: LimitedBy,
}

impl SmLimits {
    /// The limits of a generation.
    ///
    /// # Errors
    /// [`LaunchError::UnknownSm`].
    pub fn of(sm: SmVersion) -> Result<&'static Self, LaunchError> {
        TABLE
            .iter()
            .find(|limits| limits.sm == sm)
            .ok_or(LaunchError::UnknownSm { sm })
    }

    /// Bytes of shared memory of a block of `bytes`, as they are allocated.
    #[must_use]
    pub const fn shared_allocation(&self, bytes: u32) -> u32 {
        match bytes.checked_next_multiple_of(self.shared_unit) {
            Some(bytes) => bytes,
            None => u32::MAX,
        }
    }

    /// The largest configuration of shared memory, in bytes.
    #[must_use]
    pub fn shared_memory(&self) -> u32 {
        self.shared_steps
            .last()
            .map_or(0, |kib| u32::from(*kib).saturating_mul(1024))
    }

    /// The smallest configuration of shared memory that holds `bytes`, in KiB; the largest where none does.
    #[must_use]
    pub fn shared_step(&self, bytes: u32) -> u16 {
        let fits = |kib: &&u16| u32::from(**kib).saturating_mul(1024) >= bytes;
        self.shared_steps
            .iter()
            .find(fits)
            .or(self.shared_steps.last())
            .copied()
            .unwrap_or(0)
    }

    /// How many blocks of `threads` threads fit on a multiprocessor, when each thread has `registers`
    /// registers and each block `shared` bytes of shared memory, the reserved ones included, and `barriers`
    /// named barriers.
    #[must_use]
    pub fn occupancy(&self, threads: u32, registers: u32, shared: u32, barriers: u32) -> Occupancy {
        let fit = self.occupancy_without_shared(threads, registers, barriers);
        match self
            .shared_memory()
            .checked_div(self.shared_allocation(shared))
        {
            Some(blocks) if blocks < fit.blocks => Occupancy {
                blocks,
                limited_by: LimitedBy::SharedMemory,
            },
            _ => fit,
        }
    }

    /// As [`SmLimits::occupancy`], with as much shared memory as it takes.
    #[must_use]
    pub fn occupancy_without_shared(
        &self,
        threads: u32,
        registers: u32,
        barriers: u32,
    ) -> Occupancy {
        let mut fit = Occupancy {
            blocks: self.blocks,
            limited_by: LimitedBy::Blocks,
        };
        let warps = threads.div_ceil(WARP).max(1);
        let mut least = |blocks: Option<u32>, limited_by| {
            if let Some(blocks) = blocks.filter(|blocks| *blocks < fit.blocks) {
                fit = Occupancy { blocks, limited_by };
            }
        };
        least(self.warps.checked_div(warps), LimitedBy::Warps);
        least(
            warps_by_registers(registers).checked_div(warps),
            LimitedBy::Registers,
        );
        if let Some(available) = self.barriers {
            least(available.checked_div(barriers), LimitedBy::Barriers);
        }
        fit
    }
}

/// How many warps the register file holds when each thread has `registers`: whole units of [`WARP_UNIT`], for
/// each part of the multiprocessor has a quarter of the file.
#[must_use]
pub const fn warps_by_registers(registers: u32) -> u32 {
    let registers = if registers == 0 { 1 } else { registers };
    let Some(warp) = registers
        .saturating_mul(WARP)
        .checked_next_multiple_of(REGISTER_UNIT)
    else {
        return 0;
    };
    match REGISTER_FILE.checked_div(warp) {
        Some(warps) => warps & !WARP_UNIT.saturating_sub(1),
        None => 0,
    }
}

/// That `value` is within a limit.
pub(super) const fn check(limit: Limit, value: u64, maximum: u64) -> Result<(), LaunchError> {
    if value > maximum {
        Err(LaunchError::Limit {
            limit,
            value,
            maximum,
        })
    } else {
        Ok(())
    }
}

const KIB: u32 = 1024;
const STEPS_TURING: &[u16] = &[32, 64];
const STEPS_100: &[u16] = &[0, 8, 16, 32, 64, 100];
const STEPS_164: &[u16] = &[0, 8, 16, 32, 64, 100, 132, 164];
const STEPS_228: &[u16] = &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228];

const fn row(
    sm: u16,
    warps: u32,
    blocks: u32,
    shared_steps: &'static [u16],
    shared_kib: u32,
) -> SmLimits {
    SmLimits {
        sm: SmVersion(sm),
        warps,
        blocks,
        shared_steps,
        shared_per_block: shared_kib.saturating_mul(KIB),
        reserved_shared: if sm < 80 { 0 } else { KIB },
        shared_unit: if sm < 80 { 256 } else { 128 },
        // From Hopper on there are two for each resident block, and one on the smaller chips.
        barriers: match sm {
            90 | 100 | 103 => Some(blocks.saturating_mul(2)),
            120.. => Some(blocks),
            _ => None,
        },
        cluster: match sm {
            90 | 100 | 103 => 16,
            120.. => 8,
            _ => 1,
        },
    }
}

static TABLE: [SmLimits; 10] = [
    row(75, 32, 16, STEPS_TURING, 64),
    row(80, 64, 32, STEPS_164, 163),
    row(86, 48, 16, STEPS_100, 99),
    row(87, 48, 16, STEPS_164, 163),
    row(89, 48, 24, STEPS_100, 99),
    row(90, 64, 32, STEPS_228, 227),
    row(100, 64, 32, STEPS_228, 227),
    row(103, 64, 32, STEPS_228, 227),
    row(120, 48, 24, STEPS_100, 99),
    row(121, 48, 24, STEPS_100, 99),
];
