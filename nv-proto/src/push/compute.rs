//! Methods of the compute classes: windows and local memory, caches, launches, inline uploads, reports.
//!
//! Defined by `NVC6C0_*` in `clc6c0.h` and the same in its predecessors and successors (`clc5c0.h` to
//! `clcec0.h`), but for what the items say. Addresses have as many bits as all of these take: 49, and 40 for
//! semaphores, which Hopper and Blackwell widen to 57.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::header::MethodAddr;
use super::word::{FieldSpec, address_pair, addresses, field_enum, upper, word, word_method};
use super::writer::Method;

mod inline;
mod report;
mod texture;

pub use super::host::SetObject;
pub use inline::*;
pub use report::*;
pub use texture::*;

addresses! {
    SET_OBJECT = 0x0,
    NO_OPERATION = 0x100,
    SET_NOTIFY_A = 0x104,
    SET_NOTIFY_B = 0x108,
    NOTIFY = 0x10c,
    WAIT_FOR_IDLE = 0x110,
    SET_REPORT_SEMAPHORE_PAYLOAD_LOWER = 0x158,
    SET_REPORT_SEMAPHORE_PAYLOAD_UPPER = 0x15c,
    SET_REPORT_SEMAPHORE_ADDRESS_LOWER = 0x160,
    SET_REPORT_SEMAPHORE_ADDRESS_UPPER = 0x164,
    REPORT_SEMAPHORE_EXECUTE = 0x168,
    LINE_LENGTH_IN = 0x180,
    LINE_COUNT = 0x184,
    OFFSET_OUT_UPPER = 0x188,
    OFFSET_OUT = 0x18c,
    PITCH_OUT = 0x190,
    SET_DST_BLOCK_SIZE = 0x194,
    SET_DST_WIDTH = 0x198,
    SET_DST_HEIGHT = 0x19c,
    SET_DST_DEPTH = 0x1a0,
    SET_DST_LAYER = 0x1a4,
    SET_DST_ORIGIN_BYTES_X = 0x1a8,
    SET_DST_ORIGIN_SAMPLES_Y = 0x1ac,
    LAUNCH_DMA = 0x1b0,
    LOAD_INLINE_DATA = 0x1b4,
    SET_I2M_SEMAPHORE_A = 0x1dc,
    SET_I2M_SEMAPHORE_B = 0x1e0,
    SET_I2M_SEMAPHORE_C = 0x1e4,
    INVALIDATE_SHADER_CACHES = 0x21c,
    INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI = 0x244,
    SET_CWD_REF_COUNTER = 0x248,
    SET_QMD_VERSION = 0x288,
    INVALIDATE_SKED_CACHES = 0x298,
    SET_SHADER_SHARED_MEMORY_WINDOW_A = 0x2a0,
    SET_SHADER_SHARED_MEMORY_WINDOW_B = 0x2a4,
    SET_CWD_SLOT_COUNT = 0x2b0,
    SEND_PCAS_A = 0x2b4,
    SEND_PCAS_B = 0x2b8,
    SEND_SIGNALING_PCAS_B = 0x2bc,
    SEND_SIGNALING_PCAS2_B = 0x2c0,
    SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A = 0x2e4,
    SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B = 0x2e8,
    SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C = 0x2ec,
    SET_SPA_VERSION = 0x310,
    SET_INLINE_QMD_ADDRESS_A = 0x318,
    SET_INLINE_QMD_ADDRESS_B = 0x31c,
    LOAD_INLINE_QMD_DATA = 0x320,
    SET_SHADER_LOCAL_MEMORY_A = 0x790,
    SET_SHADER_LOCAL_MEMORY_B = 0x794,
    SET_SHADER_LOCAL_MEMORY_WINDOW_A = 0x7b0,
    SET_SHADER_LOCAL_MEMORY_WINDOW_B = 0x7b4,
    THROTTLE_SM = 0x7fc,
    SET_SHADER_CACHE_CONTROL = 0xd94,
    SET_SM_TIMEOUT_INTERVAL = 0xde4,
    INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI = 0x1288,
    INVALIDATE_SAMPLER_CACHE = 0x1330,
    INVALIDATE_TEXTURE_HEADER_CACHE = 0x1334,
    INVALIDATE_TEXTURE_DATA_CACHE = 0x1338,
    INVALIDATE_SAMPLER_CACHE_NO_WFI = 0x1424,
    SET_SHADER_EXCEPTIONS = 0x1528,
    SET_RENDER_ENABLE_A = 0x1550,
    SET_RENDER_ENABLE_B = 0x1554,
    SET_RENDER_ENABLE_C = 0x1558,
    SET_TEX_SAMPLER_POOL_A = 0x155c,
    SET_TEX_SAMPLER_POOL_B = 0x1560,
    SET_TEX_SAMPLER_POOL_C = 0x1564,
    SET_TEX_HEADER_POOL_A = 0x1574,
    SET_TEX_HEADER_POOL_B = 0x1578,
    SET_TEX_HEADER_POOL_C = 0x157c,
    INVALIDATE_SHADER_CACHES_NO_WFI = 0x1698,
    PIPE_NOP = 0x1a2c,
    SET_REPORT_SEMAPHORE_A = 0x1b00,
    SET_REPORT_SEMAPHORE_B = 0x1b04,
    SET_REPORT_SEMAPHORE_C = 0x1b08,
    SET_REPORT_SEMAPHORE_D = 0x1b0c,
    SET_TRAP_HANDLER_A = 0x25f8,
    SET_TRAP_HANDLER_B = 0x25fc,
    SET_BINDLESS_TEXTURE = 0x2608,
}

word! {
    /// Does nothing.
    NoOperation = "NO_OPERATION" {
        /// Any value.
        v: u32 = "V" 31:0,
    }
}
word_method!(NoOperation, NO_OPERATION);

word! {
    /// Waits until the engine is idle.
    WaitForIdle = "WAIT_FOR_IDLE" {
        /// Any value.
        v: u32 = "V" 31:0,
    }
}
word_method!(WaitForIdle, WAIT_FOR_IDLE);

address_pair! {
    /// Where generic addresses reach local memory.
    SetShaderLocalMemoryWindow { base } = SET_SHADER_LOCAL_MEMORY_WINDOW_A,
        "SET_SHADER_LOCAL_MEMORY_WINDOW_A_BASE_ADDRESS_UPPER" [17],
        "SET_SHADER_LOCAL_MEMORY_WINDOW_B_BASE_ADDRESS" [1];
    /// Where generic addresses reach shared memory.
    SetShaderSharedMemoryWindow { base } = SET_SHADER_SHARED_MEMORY_WINDOW_A,
        "SET_SHADER_SHARED_MEMORY_WINDOW_A_BASE_ADDRESS_UPPER" [17],
        "SET_SHADER_SHARED_MEMORY_WINDOW_B_BASE_ADDRESS" [1];
    /// The memory behind all threads' local memory.
    SetShaderLocalMemory { at } = SET_SHADER_LOCAL_MEMORY_A,
        "SET_SHADER_LOCAL_MEMORY_A_ADDRESS_UPPER" [17],
        "SET_SHADER_LOCAL_MEMORY_B_ADDRESS_LOWER" [1];
    /// The code that a trap enters.
    SetTrapHandler { at } = SET_TRAP_HANDLER_A,
        "SET_TRAP_HANDLER_A_ADDRESS_UPPER" [17], "SET_TRAP_HANDLER_B_ADDRESS_LOWER" [1];
}

/// How much local memory there is for each TPC, and for how many SMs.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetShaderLocalMemoryNonThrottled {
    /// Bytes for each TPC: 40 bits.
    pub bytes_per_tpc: u64,
    /// The most SMs that use it at once: 9 bits.
    pub max_sm_count: u16,
}

impl Method<3> for SetShaderLocalMemoryNonThrottled {
    const ADDR: MethodAddr = SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A;

    #[inline]
    fn data(&self) -> Result<[u32; 3], EncodeError> {
        const MAX_SM_COUNT: FieldSpec = FieldSpec {
            name: "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C_MAX_SM_COUNT",
            hi: 8,
            lo: 0,
        };
        let Self {
            bytes_per_tpc,
            max_sm_count,
        } = *self;
        let size = GpuVa(bytes_per_tpc);
        Ok([
            upper(
                "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A_SIZE_UPPER",
                8,
                size,
            )?,
            size.lo(),
            MAX_SM_COUNT.place(u32::from(max_sm_count))?,
        ])
    }
}

word! {
    /// Invalidates shader caches once the engine is idle.
    InvalidateShaderCaches = "INVALIDATE_SHADER_CACHES" {
        /// Instructions.
        instruction: bool = "INSTRUCTION" 0:0,
        /// Locks.
        locks: bool = "LOCKS" 1:1,
        /// Writes data back.
        flush_data: bool = "FLUSH_DATA" 2:2,
        /// Data.
        data: bool = "DATA" 4:4,
        /// Constants.
        constant: bool = "CONSTANT" 12:12,
    }
}
word_method!(InvalidateShaderCaches, INVALIDATE_SHADER_CACHES);

word! {
    /// Invalidates shader caches without waiting for the engine.
    InvalidateShaderCachesNoWfi = "INVALIDATE_SHADER_CACHES_NO_WFI" {
        /// Instructions.
        instruction: bool = "INSTRUCTION" 0:0,
        /// Global data.
        global_data: bool = "GLOBAL_DATA" 4:4,
        /// Constants.
        constant: bool = "CONSTANT" 12:12,
    }
}
word_method!(InvalidateShaderCachesNoWfi, INVALIDATE_SHADER_CACHES_NO_WFI);

impl InvalidateShaderCachesNoWfi {
    /// All of them: what a launch wants before it.
    pub const ALL: Self = Self {
        instruction: true,
        global_data: true,
        constant: true,
    };
}

word! {
    /// Invalidates the scheduler's caches.
    InvalidateSkedCaches = "INVALIDATE_SKED_CACHES" {
        /// Those of all contexts (Blackwell; the bit has no name before).
        force_ignore_veid: bool = "FORCE_IGNORE_VEID" 0:0,
    }
}
word_method!(InvalidateSkedCaches, INVALIDATE_SKED_CACHES);

/// Names the launch descriptor that the next signal is about.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SendPcas {
    /// Where it is: a multiple of 256, below 2^40.
    pub qmd: GpuVa,
}

impl Method<1> for SendPcas {
    const ADDR: MethodAddr = SEND_PCAS_A;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        const FIELD: &str = "SEND_PCAS_A_QMD_ADDRESS_SHIFTED8";
        let Self { qmd } = *self;
        if !qmd.is_aligned(256) {
            return Err(EncodeError::Misaligned {
                field: FIELD,
                unit: 256,
                value: qmd.0,
            });
        }
        Ok([upper(FIELD, 8, qmd).map(|hi| (hi << 24) | (qmd.lo() >> 8))?])
    }
}

word! {
    /// Signals the descriptor of [`SendPcas`], as Turing does.
    SendSignalingPcas = "SEND_SIGNALING_PCAS_B" {
        /// Drops what the scheduler holds of it.
        invalidate: bool = "INVALIDATE" 0:0,
        /// Starts it.
        schedule: bool = "SCHEDULE" 1:1,
    }
}
word_method!(SendSignalingPcas, SEND_SIGNALING_PCAS_B);

impl SendSignalingPcas {
    /// Drops what is held of the descriptor and starts it.
    pub const INVALIDATE_SCHEDULE: Self = Self {
        invalidate: true,
        schedule: true,
    };
}

field_enum! {
    /// What is done with a descriptor.
    PcasAction {
        /// Nothing.
        #[default]
        Nop = 0 "NOP",
        /// Drop what is held of it.
        Invalidate = 1 "INVALIDATE",
        /// Start it.
        Schedule = 2 "SCHEDULE",
        /// Drop, read again, start.
        InvalidateCopySchedule = 3 "INVALIDATE_COPY_SCHEDULE",
        /// Add to a queue's put counter.
        IncrementPut = 6 "INCREMENT_PUT",
        /// Take one dependence away.
        DecrementDependence = 7 "DECREMENT_DEPENDENCE",
        /// Read it ahead.
        Prefetch = 8 "PREFETCH",
        /// Read it ahead and start it.
        PrefetchSchedule = 9 "PREFETCH_SCHEDULE",
        /// Drop, read ahead, start: what NVIDIA's library does.
        InvalidatePrefetchCopySchedule = 10 "INVALIDATE_PREFETCH_COPY_SCHEDULE",
        /// The same, with scheduling forced to be required.
        InvalidatePrefetchCopyForceRequireScheduling = 11
            "INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING",
        /// Add one dependence.
        IncrementDependence = 12 "INCREMENT_DEPENDENCE",
        /// Count a reference counter up.
        IncrementCwdRefCounter = 13 "INCREMENT_CWD_REF_COUNTER",
    }
}

word! {
    /// Signals the descriptor of [`SendPcas`], from Ampere on.
    SendSignalingPcas2 = "SEND_SIGNALING_PCAS2_B" {
        /// What is done.
        action: PcasAction = "PCAS_ACTION" 3:0,
        /// Which reference counter.
        select: u8 = "SELECT" 13:8,
        /// How much is added to the counter, less one.
        offset_minus_one: u16 = "OFFSET_MINUS_ONE" 23:14,
    }
}
word_method!(SendSignalingPcas2, SEND_SIGNALING_PCAS2_B);

impl SendSignalingPcas2 {
    /// Reads the descriptor ahead and starts it (9).
    pub const PREFETCH_SCHEDULE: Self = Self {
        action: PcasAction::PrefetchSchedule,
        select: 0,
        offset_minus_one: 0,
    };
    /// Drops what is held of the descriptor, reads it ahead and starts it (10).
    pub const INVALIDATE_PREFETCH_COPY_SCHEDULE: Self = Self {
        action: PcasAction::InvalidatePrefetchCopySchedule,
        select: 0,
        offset_minus_one: 0,
    };
}

word! {
    /// The shader architecture that programs are for: 9.0 on Hopper.
    SetSpaVersion = "SET_SPA_VERSION" {
        /// Minor.
        minor: u8 = "MINOR" 7:0,
        /// Major.
        major: u8 = "MAJOR" 15:8,
    }
}
word_method!(SetSpaVersion, SET_SPA_VERSION);

word! {
    /// The launch descriptors' version; the vendor's library writes 0x40 and 1 on Hopper.
    SetQmdVersion = "SET_QMD_VERSION" {
        /// This version.
        current: u16 = "CURRENT" 15:0,
        /// The oldest that is let through.
        oldest_supported: u16 = "OLDEST_SUPPORTED" 31:16,
    }
}
word_method!(SetQmdVersion, SET_QMD_VERSION);

word! {
    /// Sets a reference counter.
    SetCwdRefCounter = "SET_CWD_REF_COUNTER" {
        /// Which.
        select: u8 = "SELECT" 5:0,
        /// To what.
        value: u16 = "VALUE" 23:8,
    }
}
word_method!(SetCwdRefCounter, SET_CWD_REF_COUNTER);

word! {
    /// How many launches the work distributor holds.
    SetCwdSlotCount = "SET_CWD_SLOT_COUNT" {
        /// How many.
        v: u8 = "V" 7:0,
    }
}
word_method!(SetCwdSlotCount, SET_CWD_SLOT_COUNT);

word! {
    /// Whether shader exceptions are raised.
    SetShaderExceptions = "SET_SHADER_EXCEPTIONS" {
        /// Whether.
        enable: bool = "ENABLE" 0:0,
    }
}
word_method!(SetShaderExceptions, SET_SHADER_EXCEPTIONS);

word! {
    /// After how long an SM counts as hung.
    SetSmTimeoutInterval = "SET_SM_TIMEOUT_INTERVAL" {
        /// Which bit of the clock counter ends the wait.
        counter_bit: u8 = "COUNTER_BIT" 5:0,
    }
}
word_method!(SetSmTimeoutInterval, SET_SM_TIMEOUT_INTERVAL);

word! {
    /// Whether instructions are fetched ahead.
    SetShaderCacheControl = "SET_SHADER_CACHE_CONTROL" {
        /// Whether.
        icache_prefetch_enable: bool = "ICACHE_PREFETCH_ENABLE" 0:0,
    }
}
word_method!(SetShaderCacheControl, SET_SHADER_CACHE_CONTROL);

word! {
    /// Whether multiply-add is slowed down: from `clc7c0.h` (GA10x) on.
    ThrottleSm = "THROTTLE_SM" {
        /// Whether.
        multiply_add: bool = "MULTIPLY_ADD" 0:0,
    }
}
word_method!(ThrottleSm, THROTTLE_SM);

word! {
    /// The second word of a signal to a queue of descriptors.
    SendPcasB = "SEND_PCAS_B" {
        /// From where on.
        from: u32 = "FROM" 23:0,
        /// How many.
        delta: u8 = "DELTA" 31:24,
    }
}
word_method!(SendPcasB, SEND_PCAS_B);

field_enum! {
    /// On what launches and copies depend.
    RenderEnableMode {
        /// They are left out.
        #[default]
        False = 0 "FALSE",
        /// They are done.
        True = 1 "TRUE",
        /// On the word at the address not being 0.
        Conditional = 2 "CONDITIONAL",
        /// On the two words there being equal.
        RenderIfEqual = 3 "RENDER_IF_EQUAL",
        /// On the two words there being different.
        RenderIfNotEqual = 4 "RENDER_IF_NOT_EQUAL",
    }
}

word! {
    /// What the engine's conditional execution does.
    RenderEnableC = "SET_RENDER_ENABLE_C" {
        /// The condition.
        mode: RenderEnableMode = "MODE" 2:0,
    }
}

/// Makes what follows depend on memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetRenderEnable {
    /// Where the condition is: below 2^40.
    pub at: GpuVa,
    /// What it is.
    pub mode: RenderEnableMode,
}

impl Method<3> for SetRenderEnable {
    const ADDR: MethodAddr = SET_RENDER_ENABLE_A;

    #[inline]
    fn data(&self) -> Result<[u32; 3], EncodeError> {
        let Self { at, mode } = *self;
        Ok([
            upper("SET_RENDER_ENABLE_A_OFFSET_UPPER", 8, at)?,
            at.lo(),
            RenderEnableC { mode }.encode()?,
        ])
    }
}

field_enum! {
    /// What a notification does.
    NotifyType {
        /// Writes the notifier.
        #[default]
        WriteOnly = 0 "WRITE_ONLY",
        /// Writes it and raises an interrupt.
        WriteThenAwaken = 1 "WRITE_THEN_AWAKEN",
    }
}

word! {
    /// Asks for a notification once the next method is done.
    NotifyWord = "NOTIFY" {
        /// What it does.
        kind: NotifyType = "TYPE" 31:0,
    }
}

/// Where a notifier is, and that it be written.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Notify {
    /// Where it is: below 2^40.
    pub at: GpuVa,
    /// What is done.
    pub kind: NotifyType,
}

impl Method<3> for Notify {
    const ADDR: MethodAddr = SET_NOTIFY_A;

    #[inline]
    fn data(&self) -> Result<[u32; 3], EncodeError> {
        let Self { at, kind } = *self;
        Ok([
            upper("SET_NOTIFY_A_ADDRESS_UPPER", 8, at)?,
            at.lo(),
            NotifyWord { kind }.encode()?,
        ])
    }
}
