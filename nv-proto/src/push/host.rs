//! Methods of the host engine: semaphores, interrupts, memory operations.
//!
//! Defined by `NVC56F_*` in `clc56f.h`. The headers of later classes publish subsets of the same methods at
//! the same addresses; from `clc86f.h` on `SEM_ADDR_HI` has 25 bits. What is here is right for every class:
//! semaphore addresses have 40 bits, as Turing to Ada need it.

use crate::error::EncodeError;
use crate::unit::{ClassId, GpuVa};

use super::header::MethodAddr;
use super::word::{FieldValue, addresses, field_enum, lower, upper, word, word_method};
use super::writer::Method;

mod mem_op;

pub use mem_op::*;

addresses! {
    SET_OBJECT = 0x0,
    NOP = 0x8,
    NON_STALL_INTERRUPT = 0x20,
    FB_FLUSH = 0x24,
    MEM_OP_A = 0x28,
    MEM_OP_B = 0x2c,
    MEM_OP_C = 0x30,
    MEM_OP_D = 0x34,
    SET_REFERENCE = 0x50,
    SEM_ADDR_LO = 0x5c,
    SEM_ADDR_HI = 0x60,
    SEM_PAYLOAD_LO = 0x64,
    SEM_PAYLOAD_HI = 0x68,
    SEM_EXECUTE = 0x6c,
    WFI = 0x78,
    YIELD = 0x80,
    CLEAR_FAULTED = 0x84,
}

/// Binds a class to the subchannel that it is written to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "NVC56F_SET_OBJECT")]
pub struct SetObject {
    /// The class.
    pub class: ClassId,
}

impl Method<1> for SetObject {
    const ADDR: MethodAddr = SET_OBJECT;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        SetObjectWord {
            class: self.class.0,
            engine: 0,
        }
        .encode()
        .map(|word| [word])
    }
}

word! {
    /// The data of `SET_OBJECT`.
    SetObjectWord = "SET_OBJECT" {
        /// Class number.
        class: u32 = "NVCLASS" 15:0,
        /// Engine number; 0 lets the class decide.
        engine: u8 = "ENGINE" 20:16,
    }
}

field_enum! {
    /// What `SEM_EXECUTE` does.
    SemOperation {
        /// Waits until memory equals the payload.
        #[default]
        Acquire = 0 "ACQUIRE",
        /// Stores the payload.
        Release = 1 "RELEASE",
        /// Waits until memory is at least the payload, unsigned.
        AcqStrictGeq = 2 "ACQ_STRICT_GEQ",
        /// Waits until memory is at least the payload, in circular order: their difference is not negative.
        AcqCircGeq = 3 "ACQ_CIRC_GEQ",
        /// Waits until memory and payload have a bit in common.
        AcqAnd = 4 "ACQ_AND",
        /// Waits until the nor of memory and payload is not 0.
        AcqNor = 5 "ACQ_NOR",
        /// Combines the payload into memory.
        Reduction = 6 "REDUCTION",
    }
}

impl SemOperation {
    /// Whether it waits.
    #[must_use]
    pub const fn is_acquire(self) -> bool {
        !matches!(self, Self::Release | Self::Reduction)
    }
}

field_enum! {
    /// How a reduction combines; signedness is a field of its own.
    SemReduction {
        /// The smaller.
        #[default]
        Min = 0 "IMIN",
        /// The larger.
        Max = 1 "IMAX",
        /// Exclusive or.
        Xor = 2 "IXOR",
        /// And.
        And = 3 "IAND",
        /// Or.
        Or = 4 "IOR",
        /// Sum.
        Add = 5 "IADD",
        /// Counts up to the payload and wraps to 0.
        Inc = 6 "INC",
        /// Counts down and wraps to the payload.
        Dec = 7 "DEC",
    }
}

word! {
    /// The data of `SEM_EXECUTE`.
    SemExecute = "SEM_EXECUTE" {
        /// What is done.
        operation: SemOperation = "OPERATION" 2:0,
        /// Whether an acquire that has to wait lets other channels of the group run.
        acquire_switch_tsg: bool = "ACQUIRE_SWITCH_TSG" 12:12,
        /// Whether a release waits for the engine to be idle first.
        release_wfi: bool = "RELEASE_WFI" 20:20,
        /// Whether the payload has 64 bits.
        payload_64bit: bool = "PAYLOAD_SIZE" 24:24,
        /// Whether a release also stores the time: 16 bytes in all.
        release_timestamp: bool = "RELEASE_TIMESTAMP" 25:25,
        /// How a reduction combines.
        reduction: SemReduction = "REDUCTION" 30:27,
        /// Whether a reduction's values are unsigned.
        reduction_unsigned: bool = "REDUCTION_FORMAT" 31:31,
    }
}
word_method!(SemExecute, SEM_EXECUTE);

/// A whole semaphore operation: address, payload and what to do.
///
/// [`SemAcquire`] and [`SemRelease`] are the usual ones.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Semaphore {
    /// Where the semaphore is: a multiple of 4 below 2^40; of 8 for 64 bits, of 16 with a timestamp.
    pub at: GpuVa,
    /// The payload.
    pub payload: u64,
    /// What is done.
    pub execute: SemExecute,
}

impl Method<5> for Semaphore {
    const ADDR: MethodAddr = SEM_ADDR_LO;

    #[inline]
    fn data(&self) -> Result<[u32; 5], EncodeError> {
        let Self {
            at,
            payload,
            execute,
        } = *self;
        let payload = GpuVa(payload);
        if !execute.payload_64bit && payload.hi() != 0 {
            return Err(EncodeError::FieldOverflow {
                field: "SEM_PAYLOAD_LO",
                width: 32,
                value: payload.0,
            });
        }
        let align = if execute.release_timestamp {
            16
        } else if execute.payload_64bit {
            8
        } else {
            4
        };
        Ok([
            lower("SEM_ADDR_LO_OFFSET", align, at)?,
            upper("SEM_ADDR_HI_OFFSET", 8, at)?,
            payload.lo(),
            payload.hi(),
            execute.encode()?,
        ])
    }
}

/// Waits until a 64-bit value in memory is what it should be.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SemAcquire {
    /// Where the value is.
    pub at: GpuVa,
    /// What it is compared with.
    pub value: u64,
    /// How: an operation that waits.
    pub until: SemOperation,
    /// Whether waiting lets other channels of the group run.
    pub switch: bool,
}

impl SemAcquire {
    /// Waits until the value at `at` has reached `value`, as a timeline does.
    #[must_use]
    pub const fn geq(at: GpuVa, value: u64) -> Self {
        Self {
            at,
            value,
            until: SemOperation::AcqCircGeq,
            switch: false,
        }
    }
}

impl Method<5> for SemAcquire {
    const ADDR: MethodAddr = SEM_ADDR_LO;

    #[inline]
    fn data(&self) -> Result<[u32; 5], EncodeError> {
        let Self {
            at,
            value,
            until,
            switch,
        } = *self;
        if !until.is_acquire() {
            return Err(EncodeError::Unsupported {
                what: "a SEM_EXECUTE_OPERATION that does not wait, as an acquire",
                value: u64::from(until.into_bits()),
            });
        }
        let execute = SemExecute {
            operation: until,
            acquire_switch_tsg: switch,
            payload_64bit: true,
            ..SemExecute::default()
        };
        Semaphore {
            at,
            payload: value,
            execute,
        }
        .data()
    }
}

/// Stores a 64-bit value once the work before it is done.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SemRelease {
    /// Where.
    pub at: GpuVa,
    /// What.
    pub value: u64,
    /// Whether it waits for the engine to be idle: without it the store may come before the work is done.
    pub wfi: bool,
    /// Whether the time in nanoseconds is stored too, at `at + 8`.
    pub timestamp: bool,
}

impl SemRelease {
    /// Waits for the engine to be idle, then stores value and time.
    #[must_use]
    pub const fn with_timestamp(at: GpuVa, value: u64) -> Self {
        Self {
            at,
            value,
            wfi: true,
            timestamp: true,
        }
    }
}

impl Method<5> for SemRelease {
    const ADDR: MethodAddr = SEM_ADDR_LO;

    #[inline]
    fn data(&self) -> Result<[u32; 5], EncodeError> {
        let Self {
            at,
            value,
            wfi,
            timestamp,
        } = *self;
        let execute = SemExecute {
            operation: SemOperation::Release,
            release_wfi: wfi,
            payload_64bit: true,
            release_timestamp: timestamp,
            ..SemExecute::default()
        };
        Semaphore {
            at,
            payload: value,
            execute,
        }
        .data()
    }
}

/// Combines a value into memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SemReduce {
    /// Where.
    pub at: GpuVa,
    /// With what.
    pub value: u64,
    /// How.
    pub reduction: SemReduction,
    /// Whether the values are unsigned.
    pub unsigned: bool,
    /// Whether they have 64 bits.
    pub wide: bool,
    /// Whether it waits for the engine to be idle first.
    pub wfi: bool,
}

impl Method<5> for SemReduce {
    const ADDR: MethodAddr = SEM_ADDR_LO;

    #[inline]
    fn data(&self) -> Result<[u32; 5], EncodeError> {
        let Self {
            at,
            value,
            reduction,
            unsigned,
            wide,
            wfi,
        } = *self;
        let execute = SemExecute {
            operation: SemOperation::Reduction,
            release_wfi: wfi,
            payload_64bit: wide,
            reduction,
            reduction_unsigned: unsigned,
            ..SemExecute::default()
        };
        Semaphore {
            at,
            payload: value,
            execute,
        }
        .data()
    }
}

/// Raises the channel's non-stalling interrupt.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NonStallInterrupt;

impl Method<1> for NonStallInterrupt {
    const ADDR: MethodAddr = NON_STALL_INTERRUPT;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        Ok([0])
    }
}

field_enum! {
    /// What a wait for idle waits for.
    WfiScope {
        /// The engine context of this channel.
        #[default]
        CurrentVeid = 0 "CURRENT_VEID",
        /// All of the engine.
        All = 1 "ALL",
    }
}

word! {
    /// Waits until the engine is idle.
    Wfi = "WFI" {
        /// How much of it.
        scope: WfiScope = "SCOPE" 0:0,
    }
}
word_method!(Wfi, WFI);
