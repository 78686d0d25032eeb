//! Methods of the copy classes: linear, two-dimensional and block-linear copies, fills, semaphores.
//!
//! Defined by `NVC6B5_*` in `clc6b5.h` and the same in its predecessors and successors (`clc5b5.h` to
//! `clcab5.h`), but for what the items say. Addresses have 49 bits, as all of them take.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::compute::{MemoryLayout, RenderEnableC, RenderEnableMode};
use super::header::MethodAddr;
use super::word::{addresses, field_enum, lower, upper, word, word_method};
use super::writer::Method;

mod surface;
mod whole;

pub use super::host::SetObject;
pub use surface::*;
pub use whole::{LINEAR_STEP, fill, linear, lines};

addresses! {
    NOP = 0x100,
    SET_SEMAPHORE_A = 0x240,
    SET_SEMAPHORE_B = 0x244,
    SET_SEMAPHORE_PAYLOAD = 0x248,
    SET_SEMAPHORE_PAYLOAD_UPPER = 0x24c,
    SET_RENDER_ENABLE_A = 0x254,
    SET_RENDER_ENABLE_B = 0x258,
    SET_RENDER_ENABLE_C = 0x25c,
    SET_SRC_PHYS_MODE = 0x260,
    SET_DST_PHYS_MODE = 0x264,
    LAUNCH_DMA = 0x300,
    OFFSET_IN_UPPER = 0x400,
    OFFSET_IN_LOWER = 0x404,
    OFFSET_OUT_UPPER = 0x408,
    OFFSET_OUT_LOWER = 0x40c,
    PITCH_IN = 0x410,
    PITCH_OUT = 0x414,
    LINE_LENGTH_IN = 0x418,
    LINE_COUNT = 0x41c,
    SET_MEMORY_SCRUB_PARAMETERS = 0x6fc,
    SET_REMAP_CONST_A = 0x700,
    SET_REMAP_CONST_B = 0x704,
    SET_REMAP_COMPONENTS = 0x708,
    SET_DST_BLOCK_SIZE = 0x70c,
    SET_DST_WIDTH = 0x710,
    SET_DST_HEIGHT = 0x714,
    SET_DST_DEPTH = 0x718,
    SET_DST_LAYER = 0x71c,
    SET_DST_ORIGIN = 0x720,
    SET_SRC_BLOCK_SIZE = 0x728,
    SET_SRC_WIDTH = 0x72c,
    SET_SRC_HEIGHT = 0x730,
    SET_SRC_DEPTH = 0x734,
    SET_SRC_LAYER = 0x738,
    SET_SRC_ORIGIN = 0x73c,
    SRC_ORIGIN_X = 0x744,
    SRC_ORIGIN_Y = 0x748,
    DST_ORIGIN_X = 0x74c,
    DST_ORIGIN_Y = 0x750,
}

/// Where a copy reads and writes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Offsets {
    /// From where.
    pub src: GpuVa,
    /// To where.
    pub dst: GpuVa,
}

impl Method<4> for Offsets {
    const ADDR: MethodAddr = OFFSET_IN_UPPER;

    #[inline]
    fn data(&self) -> Result<[u32; 4], EncodeError> {
        let Self { src, dst } = *self;
        Ok([
            upper("OFFSET_IN_UPPER_UPPER", VA_UPPER_BITS, src)?,
            src.lo(),
            upper("OFFSET_OUT_UPPER_UPPER", VA_UPPER_BITS, dst)?,
            dst.lo(),
        ])
    }
}

/// Where a copy writes: all that a fill needs.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OffsetOut {
    /// To where.
    pub dst: GpuVa,
}

impl Method<2> for OffsetOut {
    const ADDR: MethodAddr = OFFSET_OUT_UPPER;

    #[inline]
    fn data(&self) -> Result<[u32; 2], EncodeError> {
        let Self { dst } = *self;
        Ok([
            upper("OFFSET_OUT_UPPER_UPPER", VA_UPPER_BITS, dst)?,
            dst.lo(),
        ])
    }
}

/// From one line to the next, in bytes, for [`MemoryLayout::Pitch`]; two's complement.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pitches {
    /// Of the source.
    pub src: u32,
    /// Of the destination.
    pub dst: u32,
}

impl Method<2> for Pitches {
    const ADDR: MethodAddr = PITCH_IN;

    #[inline]
    fn data(&self) -> Result<[u32; 2], EncodeError> {
        let Self { src, dst } = *self;
        Ok([src, dst])
    }
}

/// How long a line is: in bytes, or in elements where remapping is on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LineLengthIn(pub u32);

impl Method<1> for LineLengthIn {
    const ADDR: MethodAddr = LINE_LENGTH_IN;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        Ok([self.0])
    }
}

/// How many lines there are, where multi-line is on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LineCount(pub u32);

impl Method<1> for LineCount {
    const ADDR: MethodAddr = LINE_COUNT;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        Ok([self.0])
    }
}

/// The semaphore that a launch releases, with a 32-bit payload.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetSemaphore {
    /// Where: a multiple of 4, of 16 for a release of four words.
    pub at: GpuVa,
    /// The payload.
    pub payload: u32,
}

impl Method<3> for SetSemaphore {
    const ADDR: MethodAddr = SET_SEMAPHORE_A;

    #[inline]
    fn data(&self) -> Result<[u32; 3], EncodeError> {
        let Self { at, payload } = *self;
        Ok([
            upper("SET_SEMAPHORE_A_UPPER", VA_UPPER_BITS, at)?,
            lower("SET_SEMAPHORE_B_LOWER", 4, at)?,
            payload,
        ])
    }
}

/// The semaphore that a launch releases, with a 64-bit payload: from `clc7b5.h` (GA10x) on.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetSemaphore64 {
    /// Where: a multiple of 8, of 16 for a release with a timestamp.
    pub at: GpuVa,
    /// The payload.
    pub payload: u64,
}

impl Method<4> for SetSemaphore64 {
    const ADDR: MethodAddr = SET_SEMAPHORE_A;

    #[inline]
    fn data(&self) -> Result<[u32; 4], EncodeError> {
        let Self { at, payload } = *self;
        Ok([
            upper("SET_SEMAPHORE_A_UPPER", VA_UPPER_BITS, at)?,
            lower("SET_SEMAPHORE_B_LOWER", 8, at)?,
            GpuVa(payload).lo(),
            GpuVa(payload).hi(),
        ])
    }
}

field_enum! {
    /// Whether data moves, and whether it may overtake copies before it.
    DataTransferType {
        /// Nothing moves.
        #[default]
        None = 0 "NONE",
        /// It may start before the copies before it have ended.
        Pipelined = 1 "PIPELINED",
        /// It waits for the copies before it.
        NonPipelined = 2 "NON_PIPELINED",
        /// The source is read ahead and nothing is written (from `clc9b5.h` on).
        Prefetch = 3 "PREFETCH",
    }
}

field_enum! {
    /// What is released at the end.
    SemaphoreType {
        /// Nothing.
        #[default]
        None = 0 "NONE",
        /// The payload.
        OneWord = 1 "RELEASE_ONE_WORD_SEMAPHORE",
        /// Payload and time in nanoseconds: 16 bytes.
        FourWord = 2 "RELEASE_FOUR_WORD_SEMAPHORE",
        /// The payload, and an interrupt that depends on it (from `clc7b5.h` on).
        ConditionalInterrupt = 3 "RELEASE_CONDITIONAL_INTR_SEMAPHORE",
    }
}

field_enum! {
    /// Which interrupt the end raises.
    InterruptType {
        /// None.
        #[default]
        None = 0 "NONE",
        /// One that stalls.
        Blocking = 1 "BLOCKING",
        /// One that does not.
        NonBlocking = 2 "NON_BLOCKING",
    }
}

field_enum! {
    /// What an address is.
    AddressType {
        /// Virtual.
        #[default]
        Virtual = 0 "VIRTUAL",
        /// Physical, of the target that the physical mode names: not for ordinary clients.
        Physical = 1 "PHYSICAL",
    }
}

field_enum! {
    /// How a released semaphore combines with memory; the header's invalid numbers are left out.
    SemaphoreReduction {
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
        /// Sum of floats.
        FloatAdd = 10 "FADD",
        /// The smaller float.
        FloatMin = 11 "FMIN",
        /// The larger float.
        FloatMax = 12 "FMAX",
    }
}

word! {
    /// Starts a copy, releases a semaphore, or both.
    ///
    /// Bits 23:20 have other meanings before Hopper (cache bypass and video protection), which no compute
    /// client sets; they are `COPY_TYPE`, `VPRMODE` and `MEMORY_SCRUB_ENABLE` here.
    LaunchDma = "LAUNCH_DMA" {
        /// Whether and how data moves.
        data_transfer_type: DataTransferType = "DATA_TRANSFER_TYPE" 1:0,
        /// Whether writes are flushed before the semaphore is released.
        flush_enable: bool = "FLUSH_ENABLE" 2:2,
        /// What is released.
        semaphore_type: SemaphoreType = "SEMAPHORE_TYPE" 4:3,
        /// Which interrupt is raised.
        interrupt_type: InterruptType = "INTERRUPT_TYPE" 6:5,
        /// Layout of the source.
        src_memory_layout: MemoryLayout = "SRC_MEMORY_LAYOUT" 7:7,
        /// Layout of the destination.
        dst_memory_layout: MemoryLayout = "DST_MEMORY_LAYOUT" 8:8,
        /// Whether there are `LINE_COUNT` lines; otherwise there is one.
        multi_line_enable: bool = "MULTI_LINE_ENABLE" 9:9,
        /// Whether elements are remapped by `SET_REMAP_COMPONENTS`.
        remap_enable: bool = "REMAP_ENABLE" 10:10,
        /// Whether partial writes are never read-modify-write (gone with `clc9b5.h`).
        force_rmwdisable: bool = "FORCE_RMWDISABLE" 11:11,
        /// What the source address is.
        src_type: AddressType = "SRC_TYPE" 12:12,
        /// What the destination address is.
        dst_type: AddressType = "DST_TYPE" 13:13,
        /// How the semaphore combines.
        semaphore_reduction: SemaphoreReduction = "SEMAPHORE_REDUCTION" 17:14,
        /// Whether its numbers are unsigned.
        semaphore_reduction_unsigned: bool = "SEMAPHORE_REDUCTION_SIGN" 18:18,
        /// Whether it combines rather than stores.
        semaphore_reduction_enable: bool = "SEMAPHORE_REDUCTION_ENABLE" 19:19,
        /// Protection on either side: 0 for ordinary memory (`clc8b5.h`).
        copy_type: u8 = "COPY_TYPE" 21:20,
        /// Whether both sides are protected video memory.
        vprmode: bool = "VPRMODE" 22:22,
        /// Whether memory is scrubbed (`clc8b5.h`).
        memory_scrub_enable: bool = "MEMORY_SCRUB_ENABLE" 23:23,
        /// Whether the flush stays on this GPU.
        flush_type_gl: bool = "FLUSH_TYPE" 25:25,
        /// Whether compression of what is written is off.
        disable_plc: bool = "DISABLE_PLC" 26:26,
        /// Whether the payload has 64 bits (from `clc7b5.h` on).
        semaphore_payload_two_word: bool = "SEMAPHORE_PAYLOAD_SIZE" 27:27,
    }
}
word_method!(LaunchDma, LAUNCH_DMA);

impl LaunchDma {
    /// Copies one line after the copies before it (0x182).
    #[must_use]
    pub fn linear() -> Self {
        Self {
            data_transfer_type: DataTransferType::NonPipelined,
            src_memory_layout: MemoryLayout::Pitch,
            dst_memory_layout: MemoryLayout::Pitch,
            ..Self::default()
        }
    }

    /// Moves nothing, flushes and releases payload and time (0x14).
    #[must_use]
    pub fn release() -> Self {
        Self {
            flush_enable: true,
            semaphore_type: SemaphoreType::FourWord,
            ..Self::default()
        }
    }
}

field_enum! {
    /// Where a destination component comes from.
    RemapSource {
        /// The source's first component.
        #[default]
        SrcX = 0 "SRC_X",
        /// The source's second component.
        SrcY = 1 "SRC_Y",
        /// The source's third component.
        SrcZ = 2 "SRC_Z",
        /// The source's fourth component.
        SrcW = 3 "SRC_W",
        /// `SET_REMAP_CONST_A`.
        ConstA = 4 "CONST_A",
        /// `SET_REMAP_CONST_B`.
        ConstB = 5 "CONST_B",
        /// Nowhere: it keeps its value.
        NoWrite = 6 "NO_WRITE",
    }
}

field_enum! {
    /// One to four: bytes of a component, or components of an element.
    OneToFour {
        /// One.
        #[default]
        One = 0 "ONE",
        /// Two.
        Two = 1 "TWO",
        /// Three.
        Three = 2 "THREE",
        /// Four.
        Four = 3 "FOUR",
    }
}

impl OneToFour {
    /// The number itself.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
        }
    }
}

word! {
    /// How elements are put together where remapping is on.
    SetRemapComponents = "SET_REMAP_COMPONENTS" {
        /// First component.
        dst_x: RemapSource = "DST_X" 2:0,
        /// Second component.
        dst_y: RemapSource = "DST_Y" 6:4,
        /// Third component.
        dst_z: RemapSource = "DST_Z" 10:8,
        /// Fourth component.
        dst_w: RemapSource = "DST_W" 14:12,
        /// Bytes of a component.
        component_size: OneToFour = "COMPONENT_SIZE" 17:16,
        /// Components of a source element.
        num_src_components: OneToFour = "NUM_SRC_COMPONENTS" 21:20,
        /// Components of a destination element.
        num_dst_components: OneToFour = "NUM_DST_COMPONENTS" 25:24,
    }
}
word_method!(SetRemapComponents, SET_REMAP_COMPONENTS);

/// The constants that remapping can write.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetRemapConst {
    /// [`RemapSource::ConstA`].
    pub a: u32,
    /// [`RemapSource::ConstB`].
    pub b: u32,
}

impl Method<2> for SetRemapConst {
    const ADDR: MethodAddr = SET_REMAP_CONST_A;

    #[inline]
    fn data(&self) -> Result<[u32; 2], EncodeError> {
        let Self { a, b } = *self;
        Ok([a, b])
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
        let mode = RenderEnableC { mode }.encode()?;
        Ok([upper("SET_RENDER_ENABLE_A_UPPER", 8, at)?, at.lo(), mode])
    }
}

word! {
    /// How memory is scrubbed: from `clc8b5.h` on.
    SetMemoryScrubParameters = "SET_MEMORY_SCRUB_PARAMETERS" {
        /// Whether what was there can be thrown away.
        discardable: bool = "DISCARDABLE" 0:0,
    }
}
word_method!(SetMemoryScrubParameters, SET_MEMORY_SCRUB_PARAMETERS);

/// How many bits of an address the upper word holds.
const VA_UPPER_BITS: u8 = 17;
