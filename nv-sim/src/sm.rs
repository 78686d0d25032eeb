//! The streaming multiprocessors: one grid of a kernel, run instruction by instruction.

use std::sync::atomic::AtomicBool;

use nv_proto::unit::{Dim3, SmVersion};

use crate::memory::{AddressSpace, MmuFault};

mod access;
mod atomics;
mod block;
mod code;
mod exec;
mod grid;
mod ieee;
mod launch;
mod lower;
mod regs;

/// One constant bank of a launch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConstantBank {
    /// Virtual address of its first byte.
    pub va: u64,
    /// Its size in bytes; 0 is no bank.
    pub size: u32,
}

/// One grid, as the launch descriptor and the channel state give it.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Whose instructions these are.
    pub sm: SmVersion,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Blocks of a cluster; 1x1x1 without clusters.
    pub cluster: Dim3,
    /// Whether all blocks must be resident together.
    pub cooperative: bool,
    /// Virtual address of the first instruction.
    pub program: u64,
    /// Registers a thread may use.
    pub registers: u16,
    /// Named barriers a block may use.
    pub barriers: u8,
    /// Bytes of shared memory of a block, reserved ones included.
    pub shared_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// The constant banks by number.
    pub banks: [ConstantBank; 8],
    /// Base of the generic window on shared memory.
    pub shared_window: u64,
    /// Base of the generic window on local memory.
    pub local_window: u64,
    /// How many streaming multiprocessors the GPU has; blocks are dealt to them in turn.
    pub sm_count: u32,
}

/// What went wrong in a grid.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// A global access hit no mapping.
    Mmu(MmuFault),
    /// An address is no multiple of the access size.
    Misaligned {
        /// The address.
        address: u64,
    },
    /// A shared-memory address past the block's size.
    SharedOutOfRange {
        /// The address within shared memory.
        address: u64,
    },
    /// A local-memory address past the thread's size.
    LocalOutOfRange {
        /// The address within local memory.
        address: u64,
    },
    /// A constant-bank offset past the bank's size, or a bank that the launch has not.
    ConstantOutOfRange {
        /// The bank.
        bank: u8,
        /// The offset in bytes.
        offset: u32,
    },
    /// The kernel executed a trap.
    Trap,
    /// An instruction that the hardware has not, or a register past the kernel's count.
    IllegalInstruction,
    /// An instruction that the simulator has not: the launch stops rather than compute a wrong result.
    Unimplemented {
        /// The instruction as text, as far as it decodes.
        text: String,
    },
    /// The launch was cancelled: its channel was freed, or its limit of time passed.
    Cancelled,
    /// The launch asks for more than the machine has: threads of a block, blocks that must run together,
    /// or memory of the host for its registers, shared and local memory.
    Resources {
        /// What was asked for, in bytes or threads.
        needed: u64,
    },
    /// No thread can go on: every one waits for another.
    Deadlock,
}

/// A grid that stopped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// Virtual address of the instruction.
    pub pc: u64,
    /// The instruction's 16 bytes as two little-endian words, low first, where they could be read.
    pub words: Option<[u64; 2]>,
    /// The streaming multiprocessor.
    pub sm: u32,
    /// The block.
    pub block: Dim3,
    /// The first thread of the block that faulted.
    pub thread: Dim3,
}

/// What a grid that ended did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Warp instructions issued.
    pub instructions: u64,
    /// Blocks run.
    pub blocks: u64,
}

/// Runs a whole grid. `cancel` is looked at often: once it is true the grid stops.
///
/// Blocks run on a few threads of the host. Blocks of a cluster take turns on one of them; the blocks of a cooperative
/// grid are all under way together.
///
/// # Errors
/// The first fault of any thread.
pub fn run(
    grid: &Grid,
    memory: &dyn AddressSpace,
    cancel: &AtomicBool,
) -> Result<Stats, Box<Fault>> {
    grid::run(grid, memory, cancel)
}

/// Whether the simulator can run an instruction, given as two little-endian words, low first.
///
/// # Errors
/// [`FaultKind::Unimplemented`] with the instruction as text where it cannot, [`FaultKind::IllegalInstruction`] where hardware
/// could not either.
pub fn check(words: [u64; 2], sm: SmVersion) -> Result<(), FaultKind> {
    match lower::lower(words, 0, &launch::Launch::blank(sm)).step {
        lower::Step::Fault(kind) => Err(kind),
        _ => Ok(()),
    }
}
