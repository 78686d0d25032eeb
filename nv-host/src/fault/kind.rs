//! The kinds of fault, and what tells them apart.

use std::fmt;

/// What happened, as far as it can be told.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access to an address that no memory is mapped at.
    IllegalAddress,
    /// An access that the mapping of its address does not allow, such as a write to a read-only page.
    AccessRefused,
    /// An address that is no multiple of the access's size.
    MisalignedAddress,
    /// An address past the shared memory of a block.
    SharedOutOfRange,
    /// An address past the local memory of a thread.
    LocalOutOfRange,
    /// A local address below the local memory of a thread: its stack was too small.
    StackOverflow,
    /// An offset past a constant bank.
    ConstantOutOfRange,
    /// An address of a space that it does not fit.
    AddressOutOfRange,
    /// The kernel trapped of its own will, as a failed `assert` does.
    Trap,
    /// An instruction that the GPU does not have, or not in this form.
    IllegalInstruction,
    /// The program went where no code can be.
    BadProgramCounter,
    /// A barrier was used in a way that it does not allow.
    BarrierError,
    /// An error of the program that has no name here.
    ProgramError,
    /// A method that its class does not have, or data that it does not take.
    BadMethod,
    /// A launch descriptor that the GPU does not take.
    BadDescriptor,
    /// The compute engine refused what it was told, outside of any program.
    EngineException,
    /// Command words or ring entries that make no sense.
    BadCommands,
    /// The copy engine refused what it was told.
    CopyError,
    /// The driver ended the channel, for a cause outside of it.
    Removed,
    /// The GPU or its memory is failing.
    HardwareError,
    /// Nothing was reported, and the work did not end in its time.
    TimeLimit,
    /// Nothing was reported, and the stream goes on: its work still runs, or has ended.
    NoFault,
    /// The stream was ended without a word of why.
    #[default]
    Unknown,
}

impl FaultKind {
    /// Its stable name, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IllegalAddress => "illegal_address",
            Self::AccessRefused => "access_refused",
            Self::MisalignedAddress => "misaligned_address",
            Self::SharedOutOfRange => "shared_out_of_range",
            Self::LocalOutOfRange => "local_out_of_range",
            Self::StackOverflow => "stack_overflow",
            Self::ConstantOutOfRange => "constant_out_of_range",
            Self::AddressOutOfRange => "address_out_of_range",
            Self::Trap => "trap",
            Self::IllegalInstruction => "illegal_instruction",
            Self::BadProgramCounter => "bad_program_counter",
            Self::BarrierError => "barrier_error",
            Self::ProgramError => "program_error",
            Self::BadMethod => "bad_method",
            Self::BadDescriptor => "bad_descriptor",
            Self::EngineException => "engine_exception",
            Self::BadCommands => "bad_commands",
            Self::CopyError => "copy_error",
            Self::Removed => "removed",
            Self::HardwareError => "hardware_error",
            Self::TimeLimit => "time_limit",
            Self::NoFault => "no_fault",
            Self::Unknown => "unknown",
        }
    }

    /// What to do about it.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::IllegalAddress | Self::AccessRefused => {
                "check the kernel's indices and that its buffers outlive it"
            }
            Self::MisalignedAddress => "align the address to the size of the access",
            Self::SharedOutOfRange => "ask for more shared memory, or check the index",
            Self::LocalOutOfRange => "check the index into the thread's array",
            Self::StackOverflow => {
                "recurse less deep, or launch with a larger stack (`Launch::stack`)"
            }
            Self::ConstantOutOfRange => "check the index into constant memory",
            Self::AddressOutOfRange => "check the pointer and its address space",
            Self::Trap => "see what the kernel checks there",
            Self::IllegalInstruction | Self::BadProgramCounter => {
                "check that the cubin is whole and for this GPU, and that nothing writes to its code"
            }
            Self::BarrierError => "have all threads of the block reach the same barriers",
            Self::BadMethod | Self::BadCommands => "print the words with `nv push dump`",
            Self::BadDescriptor => "print the descriptor with `nv qmd`",
            Self::CopyError => "check the copy's addresses and sizes",
            Self::HardwareError => "look into the kernel log (`dmesg`); the GPU may need a reset",
            Self::TimeLimit | Self::NoFault => {
                "give the work more time, or see why it does not end"
            }
            Self::ProgramError | Self::EngineException | Self::Removed | Self::Unknown => {
                "the kernel log (`dmesg`, NVRM) may tell more"
            }
        }
    }

    /// The kind of a warp error status. Its low half is the error: `error` 15:0 of `hww_warp_esr` in NVIDIA's
    /// `hw_gr_ga10b.h` and `hw_gr_gv11b.h`; 0x09, 0x0e and 0x0f were seen on an H200, 0x0e there with the space of
    /// the address in bits 27:24. `None` where there is no error.
    pub(super) const fn of_warp(warp_esr: u32) -> Option<Self> {
        Some(match warp_esr & 0xffff {
            0x00 => return None,
            0x01 | 0x02 | 0x16 => Self::StackOverflow,
            0x04..=0x06 => Self::BadProgramCounter,
            0x09 | 0x0b | 0x08 | 0x0d => Self::IllegalInstruction,
            0x0e if warp_esr >> 24 & 0xf == 0xc => Self::SharedOutOfRange,
            0x0e if warp_esr >> 24 & 0xf == 0x3 => Self::LocalOutOfRange,
            0x0e | 0x10 => Self::AddressOutOfRange,
            0x0f => Self::MisalignedAddress,
            0x12 => Self::ConstantOutOfRange,
            0x17 | 0x20 => Self::IllegalAddress,
            0x21 => Self::BarrierError,
            _ => Self::ProgramError,
        })
    }

    /// The kind of a fault of the MMU (`NV_PFAULT_FAULT_TYPE` of `dev_fault.h`).
    pub(super) const fn of_mmu(fault: u32) -> Self {
        match fault {
            // PRIV, RO, WO, ATOMIC
            5..=7 | 15 => Self::AccessRefused,
            // POISONED
            14 => Self::HardwareError,
            _ => Self::IllegalAddress,
        }
    }

    /// The kind of a notifier's code, where nothing else tells.
    pub(super) const fn of_code(code: u32) -> Self {
        match code {
            13 | 44 => Self::EngineException,
            31 => Self::IllegalAddress,
            32 | 80 => Self::BadCommands,
            39..=41 | 70..=72 | 75..=77 | 85 | 126..=135 => Self::CopyError,
            43 | 45 | 109 => Self::Removed,
            // 11 is what an H200 says of an unknown method of its compute class.
            11 | 69 => Self::BadMethod,
            48
            | 58..=64
            | 74
            | 78
            | 79
            | 90
            | 92..=95
            | 110
            | 119..=125
            | 136..=140
            | 143..=176 => Self::HardwareError,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IllegalAddress => "illegal address",
            Self::AccessRefused => "access that the memory's mapping does not allow",
            Self::MisalignedAddress => "misaligned address",
            Self::SharedOutOfRange => "shared memory address out of range",
            Self::LocalOutOfRange => "local memory address out of range",
            Self::StackOverflow => "stack overflow",
            Self::ConstantOutOfRange => "constant memory offset out of range",
            Self::AddressOutOfRange => "address out of range",
            Self::Trap => "trap",
            Self::IllegalInstruction => "illegal instruction",
            Self::BadProgramCounter => "bad program counter",
            Self::BarrierError => "misused barrier",
            Self::ProgramError => "error of the program",
            Self::BadMethod => "bad method",
            Self::BadDescriptor => "bad launch descriptor",
            Self::EngineException => "exception of the compute engine",
            Self::BadCommands => "bad command words",
            Self::CopyError => "error of the copy engine",
            Self::Removed => "channel removed by the driver",
            Self::HardwareError => "hardware error",
            Self::TimeLimit => "time limit",
            Self::NoFault => "no fault reported",
            Self::Unknown => "stream ended without a cause given",
        })
    }
}

/// The name of a code of an error notifier (an RC error, or Xid number), as `nverror.h` has it, without its
/// `ROBUST_CHANNEL_`: those that a client of compute and copy engines, or a failing GPU, can meet.
#[must_use]
pub const fn code_name(code: u32) -> Option<&'static str> {
    Some(match code {
        11 => "GR_ERROR_MISSING_HW",
        13 => "GR_EXCEPTION",
        31 => "FIFO_ERROR_MMU_ERR_FLT",
        32 => "PBDMA_ERROR",
        39 => "CE0_ERROR",
        40 => "CE1_ERROR",
        41 => "CE2_ERROR",
        43 => "RESETCHANNEL_VERIF_ERROR",
        44 => "GR_FAULT_DURING_CTXSW",
        45 => "PREEMPTIVE_REMOVAL",
        48 => "GPU_ECC_DBE",
        58 => "FB_MEMORY_ERROR",
        59 => "PMU_ERROR",
        61 => "PMU_BREAKPOINT",
        62 => "PMU_HALT_ERROR",
        63 => "INFOROM_PAGE_RETIREMENT_EVENT",
        64 => "INFOROM_PAGE_RETIREMENT_FAILURE",
        69 => "GR_CLASS_ERROR",
        70 => "CE3_ERROR",
        71 => "CE4_ERROR",
        72 => "CE5_ERROR",
        74 => "NVLINK_ERROR",
        75 => "CE6_ERROR",
        76 => "CE7_ERROR",
        77 => "CE8_ERROR",
        79 => "GPU_HAS_FALLEN_OFF_THE_BUS",
        80 => "PBDMA_PUSHBUFFER_CRC_MISMATCH",
        85 => "CE9_ERROR",
        90 => "LTC_ERROR",
        92 => "EXCESSIVE_SBE_INTERRUPTS",
        94 => "CONTAINED_ERROR",
        95 => "UNCONTAINED_ERROR",
        109 => "CTXSW_TIMEOUT_ERROR",
        110 => "SEC_FAULT_ERROR",
        119 => "GSP_RPC_TIMEOUT",
        120 => "GSP_ERROR",
        121 => "C2C_ERROR",
        126 => "CE10_ERROR",
        127 => "CE11_ERROR",
        128 => "CE12_ERROR",
        129 => "CE13_ERROR",
        130 => "CE14_ERROR",
        131 => "CE15_ERROR",
        132 => "CE16_ERROR",
        133 => "CE17_ERROR",
        134 => "CE18_ERROR",
        135 => "CE19_ERROR",
        140 => "UNRECOVERABLE_ECC_ERROR_ESCAPE",
        141 => "FAST_PATH_ERROR",
        143 => "GPU_INIT_ERROR",
        154 => "GPU_RECOVERY_ACTION_CHANGED",
        158 => "GPU_FATAL_TIMEOUT",
        171 => "UNCORRECTABLE_DRAM_ERROR",
        172 => "UNCORRECTABLE_SRAM_ERROR",
        _ => return None,
    })
}

/// Names of `NV_PFAULT_FAULT_TYPE` (`dev_fault.h` of the Ampere, Ada and Hopper GPUs).
const FAULT_TYPES: [&str; 16] = [
    "no page directory (PDE)",
    "page directory size (PDE_SIZE)",
    "not mapped (PTE)",
    "address too high (VA_LIMIT_VIOLATION)",
    "no instance block (UNBOUND_INST_BLOCK)",
    "privilege (PRIV_VIOLATION)",
    "read-only page (RO_VIOLATION)",
    "write-only page (WO_VIOLATION)",
    "pitch (PITCH_MASK_VIOLATION)",
    "work creation (WORK_CREATION)",
    "aperture (UNSUPPORTED_APERTURE)",
    "compression (COMPRESSION_FAILURE)",
    "page kind (UNSUPPORTED_KIND)",
    "region (REGION_VIOLATION)",
    "poisoned memory (POISONED)",
    "atomic access (ATOMIC_VIOLATION)",
];

/// The name of a fault type of the MMU.
pub(super) fn fault_type_name(fault: u32) -> &'static str {
    FAULT_TYPES
        .get(fault as usize)
        .copied()
        .unwrap_or("unknown fault")
}

/// Names of `NV_PFAULT_ACCESS_TYPE` (`dev_fault.h`).
pub(super) const fn access_name(access: u32) -> &'static str {
    match access {
        0 => "read",
        1 => "write",
        2 | 4 => "atomic",
        3 => "prefetch",
        8 => "physical read",
        9 => "physical write",
        10 => "physical atomic",
        11 => "physical prefetch",
        _ => "access",
    }
}
