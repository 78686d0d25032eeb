//! Launch descriptors (queue meta data), by version.
//!
//! A descriptor is 64 or 96 little-endian words that tell the compute engine everything about a grid. Its
//! fields move from version to version: each has a module ([`v03_00`], [`v04_00`], ...) with a typed constant
//! for every field of its header, all of them in one table, so that nothing is dumped or compared twice.
//!
//! Three ways in:
//! - [`crate::launch`] makes descriptors of launches, checked against the limits of the GPU;
//! - [`Qmd`] sets what a launch is made of, whatever the version: grid, block, banks, releases, dependents;
//! - [`Qmd::view`] and [`Qmd::view_mut`] reach every field of one version by its type.
//!
//! ```
//! use nv_proto::qmd::{Qmd, V04_00, Version, v04_00, value::QmdType};
//!
//! let mut qmd = Qmd::new(Version::V04_00);
//! let mut fields = qmd.view_mut::<V04_00>().expect("made as 4.0");
//! fields.set(v04_00::QMD_TYPE, QmdType::GRID_CTA)?.set(v04_00::REGISTER_COUNT, 32)?;
//! assert!(fields.set(v04_00::REGISTER_COUNT, 512).is_err());
//! assert_eq!(
//!     qmd.to_string(),
//!     "QMD 4.0\n  QMD_TYPE = GRID_CTA\n  QMD_MAJOR_VERSION = 0x4\n  REGISTER_COUNT = 0x20\n"
//! );
//! # Ok::<(), nv_proto::EncodeError>(())
//! ```

use core::fmt;

use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use crate::error::{DecodeError, EncodeError};
use crate::unit::ClassId;

pub mod layout;
mod patch;
mod roles;
pub mod v02_02;
pub mod v02_03;
pub mod v02_04;
pub mod v03_00;
pub mod v04_00;
pub mod v04_01;
pub mod v05_00;
pub mod v05_01;
pub mod value;

pub use layout::{FieldInfo, FieldValue, Fields, Layout, View, ViewMut};
pub use patch::{Dependent, LaunchView, Reduction, Release, ReleaseSize};
pub(crate) use roles::Roles;
pub use v02_02::V02_02;
pub use v02_03::V02_03;
pub use v02_04::V02_04;
pub use v03_00::V03_00;
pub use v04_00::V04_00;
pub use v04_01::V04_01;
pub use v05_00::V05_00;
pub use v05_01::V05_01;

/// Words of the longest descriptor.
pub const MAX_WORDS: usize = 96;
/// Alignment of a descriptor in memory: it is named by its address in units of 256 bytes.
pub const ALIGN: u64 = 256;
/// Constant banks that a descriptor can bind.
pub const BANKS: usize = 8;

pub(crate) type Words = [U32; MAX_WORDS];

/// The layout of a descriptor.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Version {
    /// 2.2: Volta.
    V02_02,
    /// 2.3: Turing.
    V02_03,
    /// 2.4: documented for Ampere and Ada, too.
    V02_04,
    /// 3.0: Ampere and Ada.
    V03_00,
    /// 4.0: Hopper.
    V04_00,
    /// 4.1: Hopper's layout as Blackwell's headers have it.
    V04_01,
    /// 5.0: Blackwell.
    V05_00,
    /// 5.1: Blackwell, several tasks in one descriptor.
    V05_01,
}

impl Version {
    /// Every version that there is a layout of.
    pub const ALL: [Self; 8] = [
        Self::V02_02,
        Self::V02_03,
        Self::V02_04,
        Self::V03_00,
        Self::V04_00,
        Self::V04_01,
        Self::V05_00,
        Self::V05_01,
    ];

    /// The version to launch with on a compute class; `None` for a class that this crate does not know.
    ///
    /// Hopper's header lists 3.0, too, but a GH100 hangs on it: only 4.0 was seen to run there.
    #[must_use]
    pub const fn of_class(class: ClassId) -> Option<Self> {
        match class.0 {
            0xc3c0 | 0xc4c0 => Some(Self::V02_02),
            0xc5c0 => Some(Self::V02_03),
            0xc6c0 | 0xc7c0 | 0xc9c0 => Some(Self::V03_00),
            0xcbc0 => Some(Self::V04_00),
            0xcdc0 | 0xcec0 => Some(Self::V05_00),
            _ => None,
        }
    }

    /// The version that some words are of, told by the version numbers in them.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] for fewer than 64 words, [`DecodeError::BadValue`] where the words name no
    /// known version. The numbers of version 5 lie elsewhere than those of the others, among bits that can
    /// hold anything there: words that could be read both ways are refused, too, and [`Qmd::decode_as`] takes
    /// them.
    pub fn detect(words: &[u32]) -> Result<Self, DecodeError> {
        /// Words of the short versions.
        const SHORT: usize = 64;
        let word = |index: usize| {
            words.get(index).copied().ok_or(DecodeError::Truncated {
                what: "launch descriptor",
                offset: 0,
                needed: SHORT.saturating_mul(4),
                available: words.len().saturating_mul(4),
            })
        };
        word(SHORT.saturating_sub(1))?;
        let long = words.len() >= MAX_WORDS;
        // Bits 583:576 up to version 4, 471:464 in version 5: the major number above the minor.
        let old = match word(18)? & 0xff {
            0x22 => Some(Self::V02_02),
            0x23 => Some(Self::V02_03),
            0x24 => Some(Self::V02_04),
            0x30 => Some(Self::V03_00),
            0x40 if long => Some(Self::V04_00),
            0x41 if long => Some(Self::V04_01),
            _ => None,
        };
        let new = match (word(14)? >> 16) & 0xff {
            0x50 if long => Some(Self::V05_00),
            0x51 if long => Some(Self::V05_01),
            _ => None,
        };
        match (old, new) {
            (Some(version), None) | (None, Some(version)) => Ok(version),
            (Some(_), Some(_)) => Err(DecodeError::BadValue {
                what: "QMD_MAJOR_VERSION of a descriptor that two versions claim",
                offset: 56,
                value: u64::from(word(14)? >> 20) & 0xf,
            }),
            (None, None) => Err(DecodeError::BadValue {
                what: "QMD_MAJOR_VERSION",
                offset: 72,
                value: u64::from(word(18)? >> 4) & 0xf,
            }),
        }
    }

    /// How many words a descriptor of this version has.
    #[must_use]
    pub const fn words(self) -> usize {
        match self {
            Self::V02_02 | Self::V02_03 | Self::V02_04 | Self::V03_00 => 64,
            Self::V04_00 | Self::V04_01 | Self::V05_00 | Self::V05_01 => MAX_WORDS,
        }
    }

    /// How many bytes a descriptor of this version has.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words().saturating_mul(4)
    }

    /// The number before the point.
    #[must_use]
    pub const fn major(self) -> u8 {
        match self {
            Self::V02_02 | Self::V02_03 | Self::V02_04 => 2,
            Self::V03_00 => 3,
            Self::V04_00 | Self::V04_01 => 4,
            Self::V05_00 | Self::V05_01 => 5,
        }
    }

    /// The number after the point.
    #[must_use]
    pub const fn minor(self) -> u8 {
        match self {
            Self::V03_00 | Self::V04_00 | Self::V05_00 => 0,
            Self::V04_01 | Self::V05_01 => 1,
            Self::V02_02 => 2,
            Self::V02_03 => 3,
            Self::V02_04 => 4,
        }
    }

    /// Every field of this version's header.
    #[must_use]
    pub const fn fields(self) -> &'static [FieldInfo] {
        match self {
            Self::V02_02 => V02_02::FIELDS,
            Self::V02_03 => V02_03::FIELDS,
            Self::V02_04 => V02_04::FIELDS,
            Self::V03_00 => V03_00::FIELDS,
            Self::V04_00 => V04_00::FIELDS,
            Self::V04_01 => V04_01::FIELDS,
            Self::V05_00 => V05_00::FIELDS,
            Self::V05_01 => V05_01::FIELDS,
        }
    }

    /// The field of this name, as the header spells it.
    #[must_use]
    pub fn field(self, name: &str) -> Option<&'static FieldInfo> {
        self.fields().iter().find(|field| field.name == name)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

/// A launch descriptor.
///
/// It is a copy of its own: memory that the GPU sees is written from it, and never read back.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Qmd {
    version: Version,
    words: Words,
}

impl Qmd {
    /// A descriptor that holds its version and nothing else.
    #[must_use]
    pub fn new(version: Version) -> Self {
        let mut qmd = Self {
            version,
            words: [U32::ZERO; MAX_WORDS],
        };
        // Bits 583:576 up to version 4, 471:464 in version 5.
        let number = u32::from(version.major()) << 4 | u32::from(version.minor());
        let (index, word) = if version.major() < 5 {
            (18, number)
        } else {
            (14, number << 16)
        };
        if let Some(place) = qmd.words.get_mut(index) {
            place.set(word);
        }
        qmd
    }

    /// The descriptor in `words`, whose version the words tell; what follows it is not looked at.
    ///
    /// # Errors
    /// As [`Version::detect`].
    pub fn decode(words: &[u32]) -> Result<Self, DecodeError> {
        Self::decode_as(Version::detect(words)?, words)
    }

    /// The descriptor in `words`, which are of the version given whatever they say.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn decode_as(version: Version, words: &[u32]) -> Result<Self, DecodeError> {
        let words = words.get(..version.words()).ok_or(DecodeError::Truncated {
            what: "launch descriptor",
            offset: 0,
            needed: version.bytes(),
            available: words.len().saturating_mul(4),
        })?;
        let mut qmd = Self {
            version,
            words: [U32::ZERO; MAX_WORDS],
        };
        for (to, from) in qmd.words.iter_mut().zip(words) {
            to.set(*from);
        }
        Ok(qmd)
    }

    /// The layout of its words.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Its words.
    #[must_use]
    pub fn words(&self) -> &[U32] {
        self.words
            .get(..self.version.words())
            .unwrap_or(&self.words)
    }

    /// Its bytes, as they lie in memory.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.words().as_bytes()
    }

    /// Writes its words and answers how many there are.
    ///
    /// # Errors
    /// [`EncodeError::BufferTooSmall`]; nothing is written then.
    pub fn encode_into(&self, out: &mut [u32]) -> Result<usize, EncodeError> {
        let words = self.words();
        let available = out.len();
        let Some(out) = out.get_mut(..words.len()) else {
            return Err(EncodeError::BufferTooSmall {
                needed: words.len(),
                available,
            });
        };
        for (to, from) in out.iter_mut().zip(words) {
            *to = from.get();
        }
        Ok(words.len())
    }

    /// Its fields by type; `None` when it is of another version than `L`.
    #[must_use]
    pub fn view<L: Layout>(&self) -> Option<View<'_, L>> {
        (self.version == L::VERSION).then(|| View::of(self.words()))
    }

    /// Its fields by type, to set them; `None` when it is of another version than `L`.
    #[must_use]
    pub fn view_mut<L: Layout>(&mut self) -> Option<ViewMut<'_, L>> {
        (self.version == L::VERSION).then(|| ViewMut::of(&mut self.words))
    }

    /// The number in element `index` of the field called `name`; `None` where the version has none such.
    #[must_use]
    pub fn field(&self, name: &str, index: u32) -> Option<FieldValue> {
        let field = self.version.field(name)?;
        let raw = field.at(index)?.get(&self.words);
        Some(FieldValue { field, index, raw })
    }

    /// Sets the number in element `index` of `field`, which is one of this version's [`Version::fields`].
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`] and [`EncodeError::FieldOverflow`]; nothing is written then.
    pub fn set_field(
        &mut self,
        field: &FieldInfo,
        index: u32,
        raw: u32,
    ) -> Result<(), EncodeError> {
        let bits = field.at(index).ok_or(EncodeError::IndexOutOfRange {
            field: field.name,
            count: field.count,
            index,
        })?;
        bits.set(&mut self.words, field.name, raw.into())
    }

    /// The fields that are not 0, in the header's order.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(self.version.fields(), &self.words, None)
    }

    /// Bits that are set and belong to no field of the version's header, by word.
    pub fn undocumented(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let mut rest = self.words;
        for FieldValue { field, index, .. } in self.fields() {
            if let Some(bits) = field.at(index) {
                // Clearing a field cannot fail: it was just read.
                let _ = bits.set(&mut rest, field.name, 0);
            }
        }
        rest.into_iter()
            .map(U32::get)
            .enumerate()
            .filter(|(_, word)| *word != 0)
    }

    /// How the fields of `self` and `other` differ; `None` when they are of different versions.
    #[must_use]
    pub fn diff<'a>(&'a self, other: &'a Self) -> Option<Diff<'a>> {
        (self.version == other.version).then_some(Diff {
            from: self,
            to: other,
        })
    }

    pub(crate) const fn words_mut(&mut self) -> &mut Words {
        &mut self.words
    }
}

impl fmt::Debug for Qmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Qmd {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "QMD {}{}", self.version, self.fields());
    }
}

/// One line a field.
impl fmt::Display for Qmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "QMD {}", self.version)?;
        for value in self.fields() {
            writeln!(f, "  {value}")?;
        }
        for (index, word) in self.undocumented() {
            writeln!(f, "  undocumented bits {word:#010x} of word {index}")?;
        }
        Ok(())
    }
}

/// What differs between two descriptors of one version.
#[derive(Clone, Copy, Debug)]
pub struct Diff<'a> {
    from: &'a Qmd,
    to: &'a Qmd,
}

#[cfg(feature = "defmt")]
impl defmt::Format for Diff<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        for change in self.fields() {
            defmt::write!(
                f,
                "{=str}[{=u32}]: {=u32:#x} -> {=u32:#x} ",
                change.field.name,
                change.index,
                change.from,
                change.to
            );
        }
    }
}

/// A field in which two descriptors differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Difference {
    /// The field.
    pub field: &'static FieldInfo,
    /// Which element of it.
    pub index: u32,
    /// The number before.
    pub from: u32,
    /// The number after.
    pub to: u32,
}

impl<'a> Diff<'a> {
    /// The fields that differ, in the header's order.
    pub fn fields(self) -> impl Iterator<Item = Difference> + 'a {
        let changed = Fields::new(
            self.to.version.fields(),
            &self.to.words,
            Some(&self.from.words),
        );
        changed.map(move |FieldValue { field, index, raw }| Difference {
            field,
            index,
            from: field.at(index).map_or(0, |bits| bits.get(&self.from.words)),
            to: raw,
        })
    }

    /// Whether the descriptors are the same, bits of no field included.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.from.words == self.to.words
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            index,
            from,
            to,
        } = *self;
        let name = layout::FieldName(field, index);
        write!(
            f,
            "{name}: {} -> {}",
            layout::RawValue(field, from),
            layout::RawValue(field, to)
        )
    }
}

/// One line a field that differs.
impl fmt::Display for Diff<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields()
            .try_for_each(|difference| writeln!(f, "{difference}"))
    }
}
