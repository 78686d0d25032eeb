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

mod usermode;

use core::fmt;

use bitfield_struct::bitfield;

use crate::error::{DecodeError, EncodeError};
use crate::unit::GpuVa;

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
            let operand = low32(bits);
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

#[allow(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
const fn low32(value: u64) -> u32 {
    value as u32
}

/// Where producer and consumer of a ring are: pure arithmetic, no memory.
///
/// `put` and `get` count entries since the ring began and only ever grow; the ring's slots are their low bits.
/// The hardware knows a ring's size as a power of two (`LIMIT2` of its channel state), and equal indices mean
/// empty, so a ring of `n` slots holds `n - 1` entries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RingCursor {
    mask: u32,
    put: u64,
    get: u64,
}

impl RingCursor {
    /// An empty ring of `entries` slots.
    ///
    /// # Errors
    /// When `entries` is not a power of two of at least 2.
    pub const fn new(entries: u32) -> Result<Self, EncodeError> {
        Self::starting_at(entries, 0)
    }

    /// An empty ring of which `count` entries were put and fetched before.
    ///
    /// # Errors
    /// As [`RingCursor::new`].
    pub const fn starting_at(entries: u32, count: u64) -> Result<Self, EncodeError> {
        if entries < 2 || !entries.is_power_of_two() {
            return Err(EncodeError::Unsupported {
                what: "a number of gpFifoEntries that is no power of two of at least 2",
                value: entries as u64,
            });
        }
        Ok(Self {
            mask: entries.wrapping_sub(1),
            put: count,
            get: count,
        })
    }

    /// How many slots the ring has.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.mask.wrapping_add(1)
    }

    /// Entries put since the ring began, modulo 2^64.
    #[must_use]
    pub const fn put(&self) -> u64 {
        self.put
    }

    /// Entries known to be fetched since the ring began, modulo 2^64.
    #[must_use]
    pub const fn get(&self) -> u64 {
        self.get
    }

    /// The slot of the entry put next, which is also the value of `GP_PUT`.
    #[must_use]
    pub const fn gp_put(&self) -> u32 {
        self.slot(self.put)
    }

    /// The slot of the entry fetched next, which is also the value of `GP_GET` as last seen.
    #[must_use]
    pub const fn gp_get(&self) -> u32 {
        self.slot(self.get)
    }

    /// The slot that the entry of a count lies in.
    #[must_use]
    pub const fn slot(&self, count: u64) -> u32 {
        // The mask has 32 bits, so nothing of the upper half counts.
        low32(count) & self.mask
    }

    /// Entries put and not known to be fetched.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        // At most `mask`, which every method keeps.
        low32(self.put.wrapping_sub(self.get))
    }

    /// How many entries can be put now.
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.mask.wrapping_sub(self.pending())
    }

    /// Whether everything put is known to be fetched.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.put == self.get
    }

    /// Whether nothing can be put before something is fetched.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free() == 0
    }

    /// Takes the next slot: where the caller writes its entry before it publishes [`RingCursor::gp_put`].
    /// `None` when the ring is full.
    #[inline]
    pub const fn push(&mut self) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        let slot = self.gp_put();
        self.put = self.put.wrapping_add(1);
        Some(slot)
    }

    /// Takes the oldest entry's slot, as the consumer does. `None` when the ring is empty.
    #[inline]
    pub const fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let slot = self.gp_get();
        self.get = self.get.wrapping_add(1);
        Some(slot)
    }

    /// The producer's side: learns from the `GP_GET` that the hardware wrote, and answers how many entries
    /// were fetched since it last did.
    ///
    /// # Errors
    /// When no ring that this is could have that value: the index is past the end, or ahead of `GP_PUT`.
    #[inline]
    pub const fn observe_gp_get(&mut self, gp_get: u32) -> Result<u32, DecodeError> {
        let fetched = gp_get.wrapping_sub(self.gp_get()) & self.mask;
        if gp_get > self.mask || fetched > self.pending() {
            return Err(DecodeError::BadValue {
                what: "GP_GET",
                offset: USERD_GP_GET,
                value: gp_get as u64,
            });
        }
        self.get = self.get.wrapping_add(fetched as u64);
        Ok(fetched)
    }

    /// The consumer's side: learns from the `GP_PUT` that the producer wrote, and answers how many entries
    /// are new.
    ///
    /// # Errors
    /// When the index is past the end of the ring.
    #[inline]
    pub const fn observe_gp_put(&mut self, gp_put: u32) -> Result<u32, DecodeError> {
        if gp_put > self.mask {
            return Err(DecodeError::BadValue {
                what: "GP_PUT",
                offset: USERD_GP_PUT,
                value: gp_put as u64,
            });
        }
        // From GET to the new PUT is less than a whole ring; what of it was known before is no news. A PUT
        // behind the old one (entries taken back) gives a smaller distance and no new entries.
        let pending = gp_put.wrapping_sub(self.gp_get()) & self.mask;
        let new = pending.saturating_sub(self.pending());
        self.put = self.get.wrapping_add(pending as u64);
        Ok(new)
    }
}
