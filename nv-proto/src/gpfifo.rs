//! GPFIFO entries and the arithmetic of the ring that holds them.
//!
//! Defined by `NVC56F_GP_ENTRY*` in `clc56f.h` (the same up to `clca6f.h`, but for one control opcode that
//! Hopper adds).
//!
//! ```text
//! dword 0   31:2 GET    0 FETCH
//! dword 1   31 SYNC     30:10 LENGTH    9 LEVEL    7:0 GET_HI
//! ```
//!
//! An entry of length 0 is a control entry: dword 0 is its operand and 7:0 of dword 1 its opcode.

mod ring;
mod usermode;

use core::fmt;

use bitfield_struct::bitfield;

use crate::error::{DecodeError, EncodeError};
use crate::unit::GpuVa;

pub use ring::RingCursor;
pub use usermode::{
    USERMODE_BYTES, USERMODE_NOTIFY_CHANNEL_PENDING, USERMODE_TIME_0, USERMODE_TIME_1,
    WorkSubmitToken,
};

/// Offset of `GPGet` in a channel's USERD (`Nvc56fControl`; Blackwell's published structure leaves it out).
pub const USERD_GP_GET: usize = 0x88;
/// Offset of `GPPut` in a channel's USERD (`Nvc56fControl`).
pub const USERD_GP_PUT: usize = 0x8c;
/// Size of a channel's USERD in bytes.
pub const USERD_BYTES: usize = 512;

/// Whether the entry is fetched whatever the conditional-rendering state is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fetch {
    /// Always.
    #[default]
    Unconditional,
    /// Only when the condition holds.
    Conditional,
}

/// How an entry's segment nests.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Level {
    /// An ordinary segment.
    #[default]
    Main,
    /// A segment that counts as called from one.
    Subroutine,
}

/// Whether fetching this entry's words waits until the entries before it are done.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Sync {
    /// Fetch ahead.
    #[default]
    Proceed,
    /// Wait: for words that earlier entries write.
    Wait,
}

/// A run of method words in GPU memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Segment {
    va: GpuVa,
    dwords: u32,
    fetch: Fetch,
    level: Level,
    sync: Sync,
}

impl Segment {
    /// The most dwords that one segment holds (`GP_ENTRY1_LENGTH` has 21 bits).
    pub const MAX_DWORDS: u32 = 0x1f_ffff;
    /// How many bits of address an entry holds (`GP_ENTRY1_GET_HI` has 8 bits).
    pub const VA_BITS: u32 = 40;

    /// `dwords` words from `va` on, main level, fetched ahead and always.
    ///
    /// # Errors
    /// When `va` is no multiple of 4 or has more than 40 bits, and when `dwords` is 0 or has more than 21.
    pub const fn new(va: GpuVa, dwords: u32) -> Result<Self, EncodeError> {
        if !va.is_aligned(4) {
            return Err(EncodeError::Misaligned {
                field: "GP_ENTRY0_GET",
                unit: 4,
                value: va.0,
            });
        }
        if va.0 >> Self::VA_BITS != 0 {
            return Err(EncodeError::FieldOverflow {
                field: "GP_ENTRY1_GET_HI",
                width: 8,
                value: va.0,
            });
        }
        if dwords == 0 {
            // It would be a control entry.
            return Err(EncodeError::Unsupported {
                what: "a segment of no words (GP_ENTRY1_LENGTH)",
                value: 0,
            });
        }
        if dwords > Self::MAX_DWORDS {
            return Err(EncodeError::FieldOverflow {
                field: "GP_ENTRY1_LENGTH",
                width: 21,
                value: dwords as u64,
            });
        }
        Ok(Self {
            va,
            dwords,
            fetch: Fetch::Unconditional,
            level: Level::Main,
            sync: Sync::Proceed,
        })
    }

    /// The same segment, fetched under `fetch`.
    #[must_use]
    pub const fn with_fetch(self, fetch: Fetch) -> Self {
        Self { fetch, ..self }
    }

    /// The same segment at `level`.
    #[must_use]
    pub const fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same segment with `sync`.
    #[must_use]
    pub const fn with_sync(self, sync: Sync) -> Self {
        Self { sync, ..self }
    }

    /// Where its first word is.
    #[must_use]
    pub const fn va(&self) -> GpuVa {
        self.va
    }

    /// How many words it has: never 0.
    #[must_use]
    pub const fn dwords(&self) -> u32 {
        self.dwords
    }

    /// When it is fetched.
    #[must_use]
    pub const fn fetch(&self) -> Fetch {
        self.fetch
    }

    /// How it nests.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Whether it waits.
    #[must_use]
    pub const fn sync(&self) -> Sync {
        self.sync
    }
}

/// What a control entry does (`GP_ENTRY1_OPCODE`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Opcode {
    /// Nothing.
    Nop,
    /// Raises an error.
    Illegal,
    /// Checks the GPFIFO's checksum.
    GpCrc,
    /// Checks the pushbuffer's checksum.
    PbCrc,
    /// Sets the address bits above 40 of the segments that follow (`clc86f.h`: from Hopper on).
    SetPbSegmentExtendedBase,
    /// A number that no header names.
    Unknown(u8),
}

impl Opcode {
    const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Nop,
            1 => Self::Illegal,
            2 => Self::GpCrc,
            3 => Self::PbCrc,
            4 => Self::SetPbSegmentExtendedBase,
            other => Self::Unknown(other),
        }
    }

    const fn into_bits(self) -> u8 {
        match self {
            Self::Nop => 0,
            Self::Illegal => 1,
            Self::GpCrc => 2,
            Self::PbCrc => 3,
            Self::SetPbSegmentExtendedBase => 4,
            Self::Unknown(other) => other,
        }
    }
}

/// One entry of the ring.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "NVC56F_GP_ENTRY")]
pub enum GpEntry {
    /// Run these words.
    Segment(Segment),
    /// Do something to the channel itself.
    Control {
        /// What.
        opcode: Opcode,
        /// With what.
        operand: u32,
    },
}

impl GpEntry {
    /// Size of an entry in bytes (`NVC56F_GP_ENTRY__SIZE`).
    pub const BYTES: usize = 8;

    /// The entry for `dwords` words at `va`: the common case of [`Segment::new`].
    ///
    /// # Errors
    /// As [`Segment::new`].
    pub const fn new(va: GpuVa, dwords: u32) -> Result<Self, EncodeError> {
        match Segment::new(va, dwords) {
            Ok(segment) => Ok(Self::Segment(segment)),
            Err(error) => Err(error),
        }
    }

    /// The entry as it lies in the ring, to be stored as a little-endian value.
    #[must_use]
    pub const fn encode(&self) -> u64 {
        match *self {
            Self::Segment(Segment {
                va,
                dwords,
                fetch,
                level,
                sync,
            }) => GpEntryRaw::new()
                .with_conditional(matches!(fetch, Fetch::Conditional))
                .with_get(va.lo() >> 2)
                .with_get_hi(va.hi().to_le_bytes()[0])
                .with_subroutine(matches!(level, Level::Subroutine))
                .with_length(dwords)
                .with_wait(matches!(sync, Sync::Wait))
                .into_bits(),
            Self::Control { opcode, operand } => {
                (operand as u64) | ((opcode.into_bits() as u64) << 32)
            }
        }
    }

    /// The entry that `bits` is.
    ///
    /// # Errors
    /// When a bit is set that no header defines.
    pub const fn decode(bits: u64) -> Result<Self, DecodeError> {
        let raw = GpEntryRaw::from_bits(bits);
        if raw.length() == 0 {
            let operand = ring::low32(bits);
            if bits >> 40 != 0 {
                return Err(reserved(bits));
            }
            return Ok(Self::Control {
                opcode: Opcode::from_bits(raw.get_hi()),
                operand,
            });
        }
        if raw.reserved_1() || raw.reserved_40() {
            return Err(reserved(bits));
        }
        let va = GpuVa(((raw.get_hi() as u64) << 32) | ((raw.get() as u64) << 2));
        Ok(Self::Segment(Segment {
            va,
            dwords: raw.length(),
            fetch: if raw.conditional() {
                Fetch::Conditional
            } else {
                Fetch::Unconditional
            },
            level: if raw.subroutine() {
                Level::Subroutine
            } else {
                Level::Main
            },
            sync: if raw.wait() {
                Sync::Wait
            } else {
                Sync::Proceed
            },
        }))
    }
}

impl From<Segment> for GpEntry {
    fn from(segment: Segment) -> Self {
        Self::Segment(segment)
    }
}

impl fmt::Display for GpEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(segment) => {
                write!(f, "GP_ENTRY GET={} LENGTH={}", segment.va, segment.dwords)?;
                if segment.fetch == Fetch::Conditional {
                    f.write_str(" FETCH=CONDITIONAL")?;
                }
                if segment.level == Level::Subroutine {
                    f.write_str(" LEVEL=SUBROUTINE")?;
                }
                if segment.sync == Sync::Wait {
                    f.write_str(" SYNC=WAIT")?;
                }
                Ok(())
            }
            Self::Control { opcode, operand } => {
                f.write_str("GP_ENTRY OPCODE=")?;
                match opcode {
                    Opcode::Nop => f.write_str("NOP")?,
                    Opcode::Illegal => f.write_str("ILLEGAL")?,
                    Opcode::GpCrc => f.write_str("GP_CRC")?,
                    Opcode::PbCrc => f.write_str("PB_CRC")?,
                    Opcode::SetPbSegmentExtendedBase => {
                        f.write_str("SET_PB_SEGMENT_EXTENDED_BASE")?
                    }
                    Opcode::Unknown(number) => write!(f, "{number:#x}")?,
                }
                write!(f, " OPERAND={operand:#x}")
            }
        }
    }
}

/// An entry's bits.
#[bitfield(u64)]
struct GpEntryRaw {
    conditional: bool,
    reserved_1: bool,
    #[bits(30)]
    get: u32,
    get_hi: u8,
    reserved_40: bool,
    subroutine: bool,
    #[bits(21)]
    length: u32,
    wait: bool,
}

const fn reserved(bits: u64) -> DecodeError {
    DecodeError::BadValue {
        what: "GP_ENTRY (a reserved bit is set)",
        offset: 0,
        value: bits,
    }
}
