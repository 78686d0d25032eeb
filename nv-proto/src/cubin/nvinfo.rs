//! Attributes of kernels and modules: the records of `.nv.info`, `.nv.info.KERNEL` and `.nv.compat`.
//!
//! ```text
//! byte 0   format: 1 NVAL, 2 BVAL, 3 HVAL, 4 SVAL
//! byte 1   attribute number
//! bytes 2-3   NVAL 0, BVAL the value and 0, HVAL the value, SVAL the length of the payload that follows
//! ```

use core::fmt;

use super::error::Error;
use super::names;

/// The number of an attribute of `.nv.info`; an open set, since each toolkit adds some.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AttributeKind(pub u8);

#[allow(
    missing_docs,
    reason = "the names are NVIDIA's and say what little is known of them"
)]
impl AttributeKind {
    pub const MAX_THREADS: Self = Self(0x05);
    pub const PARAM_CBANK: Self = Self(0x0a);
    pub const EXTERNS: Self = Self(0x0f);
    pub const REQNTID: Self = Self(0x10);
    pub const FRAME_SIZE: Self = Self(0x11);
    pub const MIN_STACK_SIZE: Self = Self(0x12);
    pub const KPARAM_INFO: Self = Self(0x17);
    pub const CBANK_PARAM_SIZE: Self = Self(0x19);
    pub const MAXREG_COUNT: Self = Self(0x1b);
    pub const EXIT_INSTR_OFFSETS: Self = Self(0x1c);
    pub const CRS_STACK_SIZE: Self = Self(0x1e);
    pub const MAX_STACK_SIZE: Self = Self(0x23);
    pub const COOP_GROUP_INSTR_OFFSETS: Self = Self(0x28);
    pub const REGCOUNT: Self = Self(0x2f);
    pub const INDIRECT_BRANCH_TARGETS: Self = Self(0x34);
    pub const CUDA_API_VERSION: Self = Self(0x37);
    pub const NUM_MBARRIERS: Self = Self(0x38);
    pub const CTA_PER_CLUSTER: Self = Self(0x3d);
    pub const EXPLICIT_CLUSTER: Self = Self(0x3e);
    pub const MAX_CLUSTER_RANK: Self = Self(0x3f);
    pub const KPARAM_INFO_V2: Self = Self(0x45);
    pub const NUM_BARRIERS: Self = Self(0x4c);
    pub const ANNOTATIONS: Self = Self(0x55);
    pub const BLOCKS_ARE_CLUSTERS: Self = Self(0x5b);

    /// NVIDIA's name, such as `EIATTR_REGCOUNT`, where a tool has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        names::EIATTR
            .get(usize::from(self.0))
            .copied()
            .filter(|name| !name.is_empty())
    }
}

impl fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "EIATTR_{:#04x}", self.0),
        }
    }
}

/// The number of an attribute of `.nv.compat`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CompatKind(pub u8);

impl CompatKind {
    /// Tells the `a` variant of an architecture from the plain one, in files of CUDA 13.
    #[doc(alias = "EICOMPAT_ATTR_CUDA_ACCELERATOR_TARGET")]
    pub const CUDA_ACCELERATOR_TARGET: Self = Self(9);

    /// NVIDIA's name, where a tool has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        names::EICOMPAT
            .get(usize::from(self.0))
            .copied()
            .filter(|name| !name.is_empty())
    }
}

impl fmt::Display for CompatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "EICOMPAT_ATTR_{:#04x}", self.0),
        }
    }
}

/// What an attribute carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Value<'a> {
    /// Nothing: being there is all that it says. The number is what the unused half-word holds, 0 in every file
    /// seen.
    None(u16),
    /// A byte.
    Byte(u8),
    /// A half-word.
    Half(u16),
    /// A payload.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number that it is, as far as it is one: a byte, a half-word or a payload of one word.
    #[must_use]
    pub fn number(self) -> Option<u32> {
        match self {
            Self::None(_) => None,
            Self::Byte(value) => Some(value.into()),
            Self::Half(value) => Some(value.into()),
            Self::Bytes(bytes) => Some(u32::from_le_bytes(bytes.try_into().ok()?)),
        }
    }

    /// The bytes of a payload; none for other values.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// The words of a payload; none for other values. A rest of less than a word is left out.
    pub fn words(self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        let (words, _) = self.bytes().as_chunks::<4>();
        words.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// A payload of exactly `N` words.
    #[must_use]
    pub fn exact_words<const N: usize>(self) -> Option<[u32; N]> {
        match self {
            Self::Bytes(bytes) if Some(bytes.len()) == N.checked_mul(4) => {
                let mut words = self.words();
                Some(core::array::from_fn(|_| words.next().unwrap_or(0)))
            }
            _ => None,
        }
    }
}

/// One record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Record<'a> {
    /// Its number, whose meaning depends on the section.
    pub number: u8,
    /// What it carries.
    pub value: Value<'a>,
    /// Where it starts, in bytes from the start of its section.
    pub offset: u64,
}

impl Record<'_> {
    /// Which attribute of `.nv.info` this is.
    #[must_use]
    pub const fn attribute(&self) -> AttributeKind {
        AttributeKind(self.number)
    }

    /// Which attribute of `.nv.compat` this is.
    #[must_use]
    pub const fn compat(&self) -> CompatKind {
        CompatKind(self.number)
    }
}

/// The records of a section, in its order. An error ends it: what follows cannot be told apart.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    section: &'a str,
    offset: u64,
    rest: &'a [u8],
}

logged!(
    Records<'_>,
    records,
    "records of {=str} from {=u64:#x}: {=usize} bytes",
    records.section,
    records.offset,
    records.rest.len()
);

impl<'a> Records<'a> {
    /// The records in `bytes`, which `section` names in errors.
    #[must_use]
    pub const fn new(section: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            section,
            offset: 0,
            rest: bytes,
        }
    }

    fn read(&self) -> Result<(Record<'a>, &'a [u8]), Error<'a>> {
        let truncated = |needed: u64| Error::Truncated {
            what: "attribute of",
            name: self.section,
            offset: self.offset,
            needed,
            available: super::length(self.rest),
        };
        let &[format, number, low, high, ref rest @ ..] = self.rest else {
            return Err(truncated(4));
        };
        let half = u16::from_le_bytes([low, high]);
        let (value, rest) = match format {
            1 => (Value::None(half), rest),
            2 => (Value::Byte(low), rest),
            3 => (Value::Half(half), rest),
            4 => match rest.split_at_checked(half.into()) {
                Some((payload, rest)) => (Value::Bytes(payload), rest),
                None => return Err(truncated(u64::from(half).saturating_add(4))),
            },
            _ => {
                return Err(Error::BadValue {
                    what: "attribute format",
                    name: self.section,
                    offset: self.offset,
                    value: format.into(),
                });
            }
        };
        Ok((
            Record {
                number,
                value,
                offset: self.offset,
            },
            rest,
        ))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.read() {
            Ok((record, rest)) => {
                let used = self.rest.len().saturating_sub(rest.len());
                self.offset = self
                    .offset
                    .saturating_add(u64::try_from(used).unwrap_or(u64::MAX));
                self.rest = rest;
                Some(Ok(record))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

impl core::iter::FusedIterator for Records<'_> {}
