//! Method headers.
//!
//! Defined by `NVC56F_DMA_*` in `clc56f.h`.
//!
//! ```text
//! INC, NON_INC, ONE_INC   31:29 SEC_OP   28:16 COUNT       15:13 SUBCHANNEL   11:0 ADDRESS (in dwords)
//! IMMD_DATA               31:29 SEC_OP   28:16 IMMD_DATA   15:13 SUBCHANNEL   11:0 ADDRESS
//! GRP0, GRP2 (old forms)  31:29 SEC_OP   28:18 COUNT   17:16 TERT_OP   15:13 SUBCHANNEL   12:2 ADDRESS
//! GRP0 sub-device masks   31:29 SEC_OP   17:16 TERT_OP   15:4 SUBDEVICE_MASK
//! END_PB_SEGMENT          31:29 SEC_OP
//! ```

use core::fmt;

use crate::error::{DecodeError, EncodeError};

/// A subchannel: which of a channel's objects a method is for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Subchannel(u8);

impl Subchannel {
    /// How many a channel has (`NVC56F_NUMBER_OF_SUBCHANNELS`).
    pub const COUNT: u8 = 8;
    /// The one for host methods, which the host engine takes from any.
    pub const HOST: Self = Self(0);
    /// The one that compute classes are bound to by every driver seen.
    pub const COMPUTE: Self = Self(1);
    /// The one that copy classes are bound to by every driver seen.
    pub const COPY: Self = Self(4);

    /// Subchannel `number`.
    ///
    /// # Errors
    /// From 8 on.
    pub const fn new(number: u8) -> Result<Self, EncodeError> {
        if number < Self::COUNT {
            Ok(Self(number))
        } else {
            Err(EncodeError::FieldOverflow {
                field: "DMA_METHOD_SUBCHANNEL",
                width: 3,
                value: number as u64,
            })
        }
    }

    /// Its number, below 8.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    #[inline]
    const fn from_header(word: u32) -> Self {
        Self(((word >> 13) & 7).to_le_bytes()[0])
    }
}

impl fmt::Display for Subchannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A method's address in bytes: a multiple of 4 below 0x4000, as the class headers give it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodAddr(u16);

impl MethodAddr {
    /// The end of the address space.
    pub const END: u16 = 0x4000;
    /// Below this address methods are the host engine's, whatever the subchannel is bound to.
    pub const HOST_END: Self = Self(0x100);

    /// The method at `bytes`.
    ///
    /// # Errors
    /// When `bytes` is no multiple of 4, or 0x4000 and more.
    pub const fn new(bytes: u16) -> Result<Self, EncodeError> {
        if bytes >= Self::END {
            return Err(EncodeError::FieldOverflow {
                field: "DMA_METHOD_ADDRESS",
                width: 12,
                value: (bytes >> 2) as u64,
            });
        }
        if !bytes.is_multiple_of(4) {
            return Err(EncodeError::Misaligned {
                field: "DMA_METHOD_ADDRESS",
                unit: 4,
                value: bytes as u64,
            });
        }
        Ok(Self(bytes))
    }

    /// For constants copied from the headers, which a test compares with them.
    pub(crate) const fn constant(bytes: u16) -> Self {
        Self(bytes)
    }

    /// Its address in bytes.
    #[must_use]
    pub const fn bytes(self) -> u16 {
        self.0
    }

    /// The method `dwords` further on, or `None` past the end.
    #[must_use]
    #[inline]
    pub const fn checked_add(self, dwords: u16) -> Option<Self> {
        match dwords.checked_mul(4) {
            Some(bytes) => match self.0.checked_add(bytes) {
                Some(at) if at < Self::END => Some(Self(at)),
                _ => None,
            },
            None => None,
        }
    }

    /// The method `dwords` further on, round the end of the address space.
    #[inline]
    pub(super) const fn wrapping_add(self, dwords: u16) -> Self {
        Self(self.0.wrapping_add(dwords.wrapping_mul(4)) & 0x3ffc)
    }

    /// Whether the host engine takes it, whatever the subchannel is bound to.
    #[must_use]
    pub const fn is_host(self) -> bool {
        self.0 < Self::HOST_END.0
    }

    #[inline]
    const fn dword(self) -> u32 {
        (self.0 >> 2) as u32
    }

    #[inline]
    const fn from_dword(dword: u32) -> Self {
        let [low, high, ..] = ((dword & 0xfff) << 2).to_le_bytes();
        Self(u16::from_le_bytes([low, high]))
    }
}

impl fmt::Display for MethodAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// What kind of header a word is (`DMA_SEC_OP`).
///
/// Mind the numbers: 3 is `NON_INC_METHOD` and 5 is `ONE_INC`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SecOp {
    /// The third operation (`DMA_TERT_OP`) decides: an old header, or the sub-device mask.
    Grp0UseTert,
    /// Each word goes to the next method.
    IncMethod,
    /// An old header whose words go to one method.
    Grp2UseTert,
    /// Every word goes to one method.
    NonIncMethod,
    /// The header holds the data.
    ImmdDataMethod,
    /// The first word goes to a method, all others to the next.
    OneInc,
    /// Not in use.
    Reserved6,
    /// Nothing after this word of the segment is looked at.
    EndPbSegment,
}

impl SecOp {
    /// The operation of a header word.
    #[must_use]
    #[inline]
    pub const fn of(word: u32) -> Self {
        match word >> 29 {
            0 => Self::Grp0UseTert,
            1 => Self::IncMethod,
            2 => Self::Grp2UseTert,
            3 => Self::NonIncMethod,
            4 => Self::ImmdDataMethod,
            5 => Self::OneInc,
            6 => Self::Reserved6,
            _ => Self::EndPbSegment,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Grp0UseTert => 0,
            Self::IncMethod => 1,
            Self::Grp2UseTert => 2,
            Self::NonIncMethod => 3,
            Self::ImmdDataMethod => 4,
            Self::OneInc => 5,
            Self::Reserved6 => 6,
            Self::EndPbSegment => 7,
        }
    }
}

/// How a run's words are spread over methods.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RunOp {
    /// `INC_METHOD`: each word to the next method.
    Inc,
    /// `NON_INC_METHOD`: every word to the same method.
    NonInc,
    /// `ONE_INC`: the first word to the method, the others to the next.
    OneInc,
    /// `GRP0_INC_METHOD`: as [`RunOp::Inc`], in the old form.
    Grp0Inc,
    /// `GRP2_NON_INC_METHOD`: as [`RunOp::NonInc`], in the old form.
    Grp2NonInc,
}

impl RunOp {
    /// The most words that a run of this kind holds.
    #[must_use]
    pub const fn max_count(self) -> u16 {
        match self {
            Self::Inc | Self::NonInc | Self::OneInc => 0x1fff,
            Self::Grp0Inc | Self::Grp2NonInc => 0x7ff,
        }
    }

    /// Whether it is one of the old forms, whose addresses end at 0x2000.
    const fn is_old(self) -> bool {
        matches!(self, Self::Grp0Inc | Self::Grp2NonInc)
    }

    /// The address of the last method that a run of `count` words reaches, or `None` past the end.
    #[inline]
    const fn last(self, method: MethodAddr, count: u16) -> Option<MethodAddr> {
        match self {
            Self::Inc | Self::Grp0Inc => method.checked_add(count.saturating_sub(1)),
            Self::OneInc if count > 1 => method.checked_add(1),
            Self::NonInc | Self::OneInc | Self::Grp2NonInc => Some(method),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Inc => "INC_METHOD",
            Self::NonInc => "NON_INC_METHOD",
            Self::OneInc => "ONE_INC",
            Self::Grp0Inc => "GRP0_INC_METHOD",
            Self::Grp2NonInc => "GRP2_NON_INC_METHOD",
        }
    }
}

impl fmt::Display for RunOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One header word, taken apart.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Header {
    /// Data words for methods follow.
    Run {
        /// How they are spread.
        op: RunOp,
        /// For which object.
        subchannel: Subchannel,
        /// The first method.
        method: MethodAddr,
        /// How many words.
        count: u16,
    },
    /// One method, its data in the header.
    Immediate {
        /// For which object.
        subchannel: Subchannel,
        /// The method.
        method: MethodAddr,
        /// 13 bits of data.
        data: u16,
    },
    /// `GRP0_SET_SUB_DEV_MASK`.
    SetSubDevMask {
        /// 12 bits of mask.
        mask: u16,
    },
    /// `GRP0_STORE_SUB_DEV_MASK`.
    StoreSubDevMask {
        /// 12 bits of mask.
        mask: u16,
    },
    /// `GRP0_USE_SUB_DEV_MASK`.
    UseSubDevMask,
    /// `END_PB_SEGMENT`.
    EndPbSegment,
}

impl Header {
    /// The word that does nothing (`NVC56F_DMA_NOP`): an old header that announces no data.
    pub const NOP: Self = Self::Run {
        op: RunOp::Grp0Inc,
        subchannel: Subchannel(0),
        method: MethodAddr(0),
        count: 0,
    };

    /// How many data words follow it.
    #[must_use]
    #[inline]
    pub const fn count(&self) -> u16 {
        match *self {
            Self::Run { count, .. } => count,
            _ => 0,
        }
    }

    /// The header word.
    ///
    /// # Errors
    /// When the count, the data or the mask is wider than its field, an old form's method is at 0x2000 or
    /// above, and when a run reaches past the last method.
    #[inline]
    pub const fn encode(&self) -> Result<u32, EncodeError> {
        match *self {
            Self::Run {
                op,
                subchannel,
                method,
                count,
            } => {
                if count > op.max_count() {
                    return Err(too_wide(
                        "DMA_METHOD_COUNT",
                        op.max_count().count_ones(),
                        count as u64,
                    ));
                }
                if op.is_old() && method.0 >= 0x2000 {
                    return Err(too_wide(
                        "DMA_METHOD_ADDRESS_OLD",
                        11,
                        method.dword() as u64,
                    ));
                }
                if op.last(method, count).is_none() {
                    return Err(EncodeError::IndexOutOfRange {
                        field: "DMA_METHOD_ADDRESS",
                        count: 0x1000,
                        index: method
                            .dword()
                            .saturating_add(count as u32)
                            .saturating_sub(1),
                    });
                }
                let object = (subchannel.0 as u32) << 13;
                let words = (count as u32) << 16;
                let old = (count as u32) << 18 | object | method.dword() << 2;
                Ok(match op {
                    RunOp::Inc => 1 << 29 | words | object | method.dword(),
                    RunOp::NonInc => 3 << 29 | words | object | method.dword(),
                    RunOp::OneInc => 5 << 29 | words | object | method.dword(),
                    RunOp::Grp0Inc => old,
                    RunOp::Grp2NonInc => 2 << 29 | old,
                })
            }
            Self::Immediate {
                subchannel,
                method,
                data,
            } => {
                if data > 0x1fff {
                    return Err(too_wide("DMA_IMMD_DATA", 13, data as u64));
                }
                Ok((4 << 29)
                    | ((data as u32) << 16)
                    | ((subchannel.0 as u32) << 13)
                    | method.dword())
            }
            Self::SetSubDevMask { mask } | Self::StoreSubDevMask { mask } => {
                if mask > 0xfff {
                    return Err(too_wide("DMA_SUBDEVICE_MASK", 12, mask as u64));
                }
                let tert = if matches!(self, Self::SetSubDevMask { .. }) {
                    1
                } else {
                    2
                };
                Ok((tert << 16) | ((mask as u32) << 4))
            }
            Self::UseSubDevMask => Ok(3 << 16),
            Self::EndPbSegment => Ok(7 << 29),
        }
    }

    /// The header that `word` is; `offset` is where it lies, in bytes, for the error.
    ///
    /// # Errors
    /// For the reserved operation, a bit set that no header defines, and a run past the last method.
    #[inline]
    pub const fn decode(word: u32, offset: usize) -> Result<Self, DecodeError> {
        let op = match SecOp::of(word) {
            SecOp::IncMethod => RunOp::Inc,
            SecOp::NonIncMethod => RunOp::NonInc,
            SecOp::OneInc => RunOp::OneInc,
            SecOp::ImmdDataMethod => {
                if word & RESERVED_BIT != 0 {
                    return Err(bad(word, offset, "method header (bit 12 is reserved)"));
                }
                return Ok(Self::Immediate {
                    subchannel: Subchannel::from_header(word),
                    method: MethodAddr::from_dword(word),
                    data: bits16((word >> 16) & 0x1fff),
                });
            }
            SecOp::Grp0UseTert | SecOp::Grp2UseTert => return Self::decode_old(word, offset),
            SecOp::EndPbSegment => {
                if word != 7 << 29 {
                    return Err(bad(word, offset, "END_PB_SEGMENT (bits 28:0 are reserved)"));
                }
                return Ok(Self::EndPbSegment);
            }
            SecOp::Reserved6 => {
                return Err(bad(word, offset, "method header (SEC_OP 6 is reserved)"));
            }
        };
        if word & RESERVED_BIT != 0 {
            return Err(bad(word, offset, "method header (bit 12 is reserved)"));
        }
        let method = MethodAddr::from_dword(word);
        let count = bits16((word >> 16) & 0x1fff);
        if op.last(method, count).is_none() {
            return Err(bad(
                word,
                offset,
                "method header (its run ends past method 0x3ffc)",
            ));
        }
        Ok(Self::Run {
            op,
            subchannel: Subchannel::from_header(word),
            method,
            count,
        })
    }

    const fn decode_old(word: u32, offset: usize) -> Result<Self, DecodeError> {
        let grp2 = matches!(SecOp::of(word), SecOp::Grp2UseTert);
        let mask = bits16((word >> 4) & 0xfff);
        match (word >> 16) & 3 {
            0 => {
                if word & 3 != 0 {
                    return Err(bad(
                        word,
                        offset,
                        "old method header (bits 1:0 are reserved)",
                    ));
                }
                let op = if grp2 {
                    RunOp::Grp2NonInc
                } else {
                    RunOp::Grp0Inc
                };
                let method = MethodAddr::from_dword((word & 0x1fff) >> 2);
                let count = bits16((word >> 18) & 0x7ff);
                if op.last(method, count).is_none() {
                    return Err(bad(
                        word,
                        offset,
                        "method header (its run ends past method 0x3ffc)",
                    ));
                }
                Ok(Self::Run {
                    op,
                    subchannel: Subchannel::from_header(word),
                    method,
                    count,
                })
            }
            _ if grp2 => Err(bad(word, offset, "method header (GRP2 has TERT_OP 0 only)")),
            1 if word & 0x1ffc_000f == 0 => Ok(Self::SetSubDevMask { mask }),
            2 if word & 0x1ffc_000f == 0 => Ok(Self::StoreSubDevMask { mask }),
            3 if word == 3 << 16 => Ok(Self::UseSubDevMask),
            _ => Err(bad(
                word,
                offset,
                "sub-device mask header (a reserved bit is set)",
            )),
        }
    }
}

/// The bit between subchannel and address.
const RESERVED_BIT: u32 = 1 << 12;

#[inline]
const fn bits16(value: u32) -> u16 {
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high])
}

const fn bad(word: u32, offset: usize, what: &'static str) -> DecodeError {
    DecodeError::BadValue {
        what,
        offset,
        value: word as u64,
    }
}

const fn too_wide(field: &'static str, width: u32, value: u64) -> EncodeError {
    EncodeError::FieldOverflow {
        field,
        width,
        value,
    }
}
