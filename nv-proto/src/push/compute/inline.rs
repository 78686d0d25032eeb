//! Uploads through the pushbuffer: the data comes with the methods.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::{
    LAUNCH_DMA, LINE_LENGTH_IN, LOAD_INLINE_DATA, LOAD_INLINE_QMD_DATA, MethodAddr,
    OFFSET_OUT_UPPER, PITCH_OUT, SET_DST_BLOCK_SIZE, SET_DST_WIDTH, SET_I2M_SEMAPHORE_A,
    SET_INLINE_QMD_ADDRESS_A,
};
use crate::push::header::{RunOp, Subchannel};
use crate::push::word::{FieldSpec, address_pair, field_enum, lower, upper, word, word_method};
use crate::push::writer::{Method, PushWriter};

address_pair! {
    /// Where an inline upload goes.
    OffsetOut { at } = OFFSET_OUT_UPPER, "OFFSET_OUT_UPPER_VALUE" [17], "OFFSET_OUT_VALUE" [1];
}

/// The shape of an inline upload: `lines` lines of `bytes` bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LineLength {
    /// Bytes of a line.
    pub bytes: u32,
    /// How many lines.
    pub lines: u32,
}

impl Method<2> for LineLength {
    const ADDR: MethodAddr = LINE_LENGTH_IN;

    #[inline]
    fn data(&self) -> Result<[u32; 2], EncodeError> {
        let Self { bytes, lines } = *self;
        Ok([bytes, lines])
    }
}

field_enum! {
    /// How destination memory is laid out.
    MemoryLayout {
        /// In blocks.
        #[default]
        BlockLinear = 0 "BLOCKLINEAR",
        /// Line after line.
        Pitch = 1 "PITCH",
    }
}

field_enum! {
    /// What the end of an upload does.
    CompletionType {
        /// Nothing.
        #[default]
        FlushDisable = 0 "FLUSH_DISABLE",
        /// Flushes.
        FlushOnly = 1 "FLUSH_ONLY",
        /// Flushes and releases the semaphore of `SET_I2M_SEMAPHORE_A`.
        ReleaseSemaphore = 2 "RELEASE_SEMAPHORE",
    }
}

field_enum! {
    /// How many words a released semaphore has.
    StructSize {
        /// Payload, 0, time in nanoseconds: 16 bytes.
        #[default]
        FourWords = 0 "FOUR_WORDS",
        /// The payload alone.
        OneWord = 1 "ONE_WORD",
    }
}

field_enum! {
    /// How a release combines with what memory holds.
    ReductionOp {
        /// Sum.
        #[default]
        Add = 0 "RED_ADD",
        /// The smaller.
        Min = 1 "RED_MIN",
        /// The larger.
        Max = 2 "RED_MAX",
        /// Counts up to the payload and wraps to 0.
        Inc = 3 "RED_INC",
        /// Counts down and wraps to the payload.
        Dec = 4 "RED_DEC",
        /// And.
        And = 5 "RED_AND",
        /// Or.
        Or = 6 "RED_OR",
        /// Exclusive or.
        Xor = 7 "RED_XOR",
    }
}

field_enum! {
    /// The numbers that a reduction works on.
    ReductionFormat {
        /// Unsigned, 32 bits.
        #[default]
        Unsigned32 = 0 "UNSIGNED_32",
        /// Signed, 32 bits.
        Signed32 = 1 "SIGNED_32",
    }
}

word! {
    /// Starts an inline upload, whose data follows.
    LaunchDma = "LAUNCH_DMA" {
        /// Layout of the destination.
        dst_memory_layout: MemoryLayout = "DST_MEMORY_LAYOUT" 0:0,
        /// Whether the semaphore is combined rather than stored.
        reduction_enable: bool = "REDUCTION_ENABLE" 1:1,
        /// Of which numbers.
        reduction_format: ReductionFormat = "REDUCTION_FORMAT" 3:2,
        /// What its end does.
        completion_type: CompletionType = "COMPLETION_TYPE" 5:4,
        /// Whether the system memory barrier is left out.
        sysmembar_disable: bool = "SYSMEMBAR_DISABLE" 6:6,
        /// Whether its end raises an interrupt.
        interrupt: bool = "INTERRUPT_TYPE" 9:8,
        /// How much the semaphore holds.
        semaphore_struct_size: StructSize = "SEMAPHORE_STRUCT_SIZE" 12:12,
        /// How it is combined.
        reduction_op: ReductionOp = "REDUCTION_OP" 15:13,
    }
}
word_method!(LaunchDma, LAUNCH_DMA);

impl LaunchDma {
    /// To memory laid out by lines, without a barrier (0x41): as NVIDIA's library uploads descriptors,
    /// constants and code.
    #[must_use]
    pub fn pitch() -> Self {
        Self {
            dst_memory_layout: MemoryLayout::Pitch,
            sysmembar_disable: true,
            ..Self::default()
        }
    }
}

/// Writes `bytes` bytes of `words` to `at` through the pushbuffer: the four packets that do it.
///
/// # Errors
/// When `words` is not exactly what `bytes` fill (rounded up), has more than 8191 words, or does not fit
/// the buffer. Nothing is written then.
pub fn upload(
    push: &mut PushWriter<'_>,
    subchannel: Subchannel,
    at: GpuVa,
    bytes: u32,
    words: &[u32],
) -> Result<(), EncodeError> {
    if usize::try_from(bytes.div_ceil(4)) != Ok(words.len()) || bytes == 0 {
        return Err(EncodeError::Unsupported {
            what: "a LINE_LENGTH_IN that is not as long as the words given",
            value: u64::from(bytes),
        });
    }
    let begin = push.len();
    let mut packets = || {
        push.write(subchannel, &OffsetOut { at })?;
        push.write(subchannel, &LineLength { bytes, lines: 1 })?;
        push.write(subchannel, &LaunchDma::pitch())?;
        push.run(RunOp::NonInc, subchannel, LOAD_INLINE_DATA, words)
    };
    let done = packets();
    if done.is_err() {
        push.truncate(begin);
    }
    done
}

word! {
    /// How a block-linear destination is blocked, in units of gobs (512 bytes).
    SetDstBlockSize = "SET_DST_BLOCK_SIZE" {
        /// Width: always one.
        width: u8 = "WIDTH" 3:0,
        /// Height.
        height: Gobs = "HEIGHT" 7:4,
        /// Depth.
        depth: Gobs = "DEPTH" 11:8,
    }
}
word_method!(SetDstBlockSize, SET_DST_BLOCK_SIZE);

field_enum! {
    /// How many gobs a block has in one direction.
    Gobs {
        /// 1.
        #[default]
        One = 0 "ONE_GOB",
        /// 2.
        Two = 1 "TWO_GOBS",
        /// 4.
        Four = 2 "FOUR_GOBS",
        /// 8.
        Eight = 3 "EIGHT_GOBS",
        /// 16.
        Sixteen = 4 "SIXTEEN_GOBS",
        /// 32.
        ThirtyTwo = 5 "THIRTYTWO_GOBS",
    }
}

/// The surface that a block-linear upload goes to, and where in it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetDstSurface {
    /// Width in bytes.
    pub width: u32,
    /// Height in lines.
    pub height: u32,
    /// Depth in layers.
    pub depth: u32,
    /// The layer written.
    pub layer: u32,
    /// The first byte of a line written: 21 bits.
    pub origin_bytes_x: u32,
    /// The first line written: 17 bits.
    pub origin_samples_y: u32,
}

impl Method<6> for SetDstSurface {
    const ADDR: MethodAddr = SET_DST_WIDTH;

    #[inline]
    fn data(&self) -> Result<[u32; 6], EncodeError> {
        let Self {
            width,
            height,
            depth,
            layer,
            origin_bytes_x,
            origin_samples_y,
        } = *self;
        Ok([
            width,
            height,
            depth,
            layer,
            FieldSpec {
                name: "SET_DST_ORIGIN_BYTES_X_V",
                hi: 20,
                lo: 0,
            }
            .place(origin_bytes_x)?,
            FieldSpec {
                name: "SET_DST_ORIGIN_SAMPLES_Y_V",
                hi: 16,
                lo: 0,
            }
            .place(origin_samples_y)?,
        ])
    }
}

/// From one line of a destination to the next, in bytes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PitchOut(pub u32);

impl Method<1> for PitchOut {
    const ADDR: MethodAddr = PITCH_OUT;

    #[inline]
    fn data(&self) -> Result<[u32; 1], EncodeError> {
        Ok([self.0])
    }
}

/// The semaphore that an inline upload releases.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SetI2mSemaphore {
    /// Where: below 2^40.
    pub at: GpuVa,
    /// What is stored or combined.
    pub payload: u32,
}

impl Method<3> for SetI2mSemaphore {
    const ADDR: MethodAddr = SET_I2M_SEMAPHORE_A;

    #[inline]
    fn data(&self) -> Result<[u32; 3], EncodeError> {
        let Self { at, payload } = *self;
        Ok([
            upper("SET_I2M_SEMAPHORE_A_OFFSET_UPPER", 8, at)?,
            lower("SET_I2M_SEMAPHORE_B_OFFSET_LOWER", 4, at)?,
            payload,
        ])
    }
}

field_enum! {
    /// How long an inline launch descriptor is.
    InlineSize {
        /// 256 bytes: up to version 3.
        #[default]
        Inline256 = 0 "INLINE_256",
        /// 384 bytes: from version 4 on (`clcbc0.h`).
        Inline384 = 1 "INLINE_384",
    }
}

word! {
    /// Upper part of an inline launch descriptor's address, and how long it is.
    SetInlineQmdAddressA = "SET_INLINE_QMD_ADDRESS_A" {
        /// Bits 48:40 of the address.
        upper: u16 = "QMD_ADDRESS_SHIFTED8_UPPER" 8:0,
        /// How long it is; before Hopper there is no such field.
        size: InlineSize = "INLINE_SIZE" 30:30,
    }
}

/// Writes a launch descriptor to `at` with the methods that are made for it.
///
/// # Errors
/// When `at` is no multiple of 256 or has more than 49 bits, `words` is not 64 or 96 words, or the packets do
/// not fit the buffer. Nothing is written then.
pub fn inline_qmd(
    push: &mut PushWriter<'_>,
    subchannel: Subchannel,
    at: GpuVa,
    words: &[u32],
) -> Result<(), EncodeError> {
    let size = match words.len() {
        64 => InlineSize::Inline256,
        96 => InlineSize::Inline384,
        other => {
            return Err(EncodeError::Unsupported {
                what: "a launch descriptor that is neither 64 nor 96 words long",
                value: u64::try_from(other).unwrap_or(u64::MAX),
            });
        }
    };
    if !at.is_aligned(256) {
        return Err(EncodeError::Misaligned {
            field: "SET_INLINE_QMD_ADDRESS_B_QMD_ADDRESS_SHIFTED8_LOWER",
            unit: 256,
            value: at.0,
        });
    }
    let shifted = GpuVa(at.0 >> 8);
    let high = upper(
        "SET_INLINE_QMD_ADDRESS_A_QMD_ADDRESS_SHIFTED8_UPPER",
        9,
        shifted,
    )?;
    let a = SetInlineQmdAddressA {
        upper: u16::try_from(high).unwrap_or(u16::MAX),
        size,
    }
    .encode()?;
    let begin = push.len();
    let mut packets = || {
        push.run(
            RunOp::Inc,
            subchannel,
            SET_INLINE_QMD_ADDRESS_A,
            &[a, shifted.lo()],
        )?;
        push.run(RunOp::Inc, subchannel, LOAD_INLINE_QMD_DATA, words)
    };
    let done = packets();
    if done.is_err() {
        push.truncate(begin);
    }
    done
}
