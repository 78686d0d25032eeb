//! Reports: semaphores that the compute engine itself releases.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::inline::{ReductionFormat, ReductionOp, StructSize};
use super::{MethodAddr, SET_REPORT_SEMAPHORE_A, SET_REPORT_SEMAPHORE_PAYLOAD_LOWER};
use crate::push::word::{field_enum, lower, upper, word};
use crate::push::writer::Method;

field_enum! {
    /// What a report does.
    ReportOperation {
        /// Stores the payload.
        #[default]
        Release = 0 "RELEASE",
        /// Traps.
        Trap = 3 "TRAP",
    }
}

word! {
    /// What is done with the semaphore of a report.
    ReportSemaphoreD = "SET_REPORT_SEMAPHORE_D" {
        /// What.
        operation: ReportOperation = "OPERATION" 1:0,
        /// Whether the flush before it is left out.
        flush_disable: bool = "FLUSH_DISABLE" 2:2,
        /// Whether the payload is combined rather than stored.
        reduction_enable: bool = "REDUCTION_ENABLE" 3:3,
        /// How.
        reduction_op: ReductionOp = "REDUCTION_OP" 11:9,
        /// Of which numbers.
        reduction_format: ReductionFormat = "REDUCTION_FORMAT" 18:17,
        /// Whether a trap depends on memory.
        conditional_trap: bool = "CONDITIONAL_TRAP" 19:19,
        /// Whether it raises an interrupt.
        awaken_enable: bool = "AWAKEN_ENABLE" 20:20,
        /// How much is stored.
        structure_size: StructSize = "STRUCTURE_SIZE" 28:28,
    }
}

/// Stores or combines a 32-bit payload when the work before it is done.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReportSemaphore {
    /// Where: below 2^40.
    pub at: GpuVa,
    /// What.
    pub payload: u32,
    /// How.
    pub d: ReportSemaphoreD,
}

impl Method<4> for ReportSemaphore {
    const ADDR: MethodAddr = SET_REPORT_SEMAPHORE_A;

    #[inline]
    fn data(&self) -> Result<[u32; 4], EncodeError> {
        let Self { at, payload, d } = *self;
        let align = match d.structure_size {
            StructSize::FourWords => 16,
            StructSize::OneWord => 4,
        };
        Ok([
            upper("SET_REPORT_SEMAPHORE_A_OFFSET_UPPER", 8, at)?,
            lower("SET_REPORT_SEMAPHORE_B_OFFSET_LOWER", align, at)?,
            payload,
            d.encode()?,
        ])
    }
}

field_enum! {
    /// What the newer report does.
    ReportExecuteOperation {
        /// Stores the payload.
        #[default]
        Release = 0 "RELEASE",
        /// Waits until memory is what the payload says.
        Acquire = 1 "ACQUIRE",
        /// Reports and stores nothing.
        ReportOnly = 2 "REPORT_ONLY",
        /// Traps.
        Trap = 3 "TRAP",
    }
}

field_enum! {
    /// How much the newer report stores.
    ReportSize {
        /// Payload, 0, time in nanoseconds.
        #[default]
        FourWords = 0 "SEMAPHORE_FOUR_WORDS",
        /// The payload's lower half.
        OneWord = 1 "SEMAPHORE_ONE_WORD",
        /// The whole payload.
        TwoWords = 2 "SEMAPHORE_TWO_WORDS",
    }
}

field_enum! {
    /// When the newer report traps.
    TrapType {
        /// Never.
        #[default]
        None = 0 "TRAP_NONE",
        /// Always.
        Unconditional = 1 "TRAP_UNCONDITIONAL",
        /// By what memory holds.
        Conditional = 2 "TRAP_CONDITIONAL",
        /// By what memory holds, extended.
        ConditionalExt = 3 "TRAP_CONDITIONAL_EXT",
    }
}

word! {
    /// What is done with the semaphore of a newer report.
    ReportSemaphoreExecuteWord = "REPORT_SEMAPHORE_EXECUTE" {
        /// What.
        operation: ReportExecuteOperation = "OPERATION" 1:0,
        /// Whether it raises an interrupt.
        awaken_enable: bool = "AWAKEN_ENABLE" 2:2,
        /// How much is stored.
        structure_size: ReportSize = "STRUCTURE_SIZE" 4:3,
        /// Whether the flush before it is left out.
        flush_disable: bool = "FLUSH_DISABLE" 5:5,
        /// Whether the payload is combined rather than stored.
        reduction_enable: bool = "REDUCTION_ENABLE" 6:6,
        /// How.
        reduction_op: ReductionOp = "REDUCTION_OP" 9:7,
        /// Whether its numbers are signed.
        reduction_signed: bool = "REDUCTION_FORMAT" 11:10,
        /// Whether the payload has 64 bits.
        payload_size64: bool = "PAYLOAD_SIZE64" 12:12,
        /// Whether it traps.
        trap_type: TrapType = "TRAP_TYPE" 14:13,
    }
}

/// Stores or combines a payload of up to 64 bits: from `clc7c0.h` (GA10x) on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ReportSemaphoreExecute {
    /// The payload.
    pub payload: u64,
    /// Where: below 2^40.
    pub at: GpuVa,
    /// How.
    pub execute: ReportSemaphoreExecuteWord,
}

impl Method<5> for ReportSemaphoreExecute {
    const ADDR: MethodAddr = SET_REPORT_SEMAPHORE_PAYLOAD_LOWER;

    #[inline]
    fn data(&self) -> Result<[u32; 5], EncodeError> {
        let Self {
            payload,
            at,
            execute,
        } = *self;
        let align = match execute.structure_size {
            ReportSize::FourWords => 16,
            ReportSize::TwoWords => 8,
            ReportSize::OneWord => 4,
        };
        Ok([
            GpuVa(payload).lo(),
            GpuVa(payload).hi(),
            lower("SET_REPORT_SEMAPHORE_ADDRESS_LOWER_LOWER", align, at)?,
            upper("SET_REPORT_SEMAPHORE_ADDRESS_UPPER_UPPER", 8, at)?,
            execute.encode()?,
        ])
    }
}
