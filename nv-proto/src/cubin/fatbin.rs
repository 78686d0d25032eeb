//! Fatbins: containers of cubins and PTX for several architectures.
//!
//! ```text
//! region   u32 magic 0xba55ed50, u16 version 1, u16 header size (16), u64 size of the entries that follow
//! entry    0x00 u16 kind          0x18 u16 code version, minor, u16 major   0x28 u64 flags
//!          0x02 u16 version 0x101 0x1c u32 architecture                     0x30 u64 hash, 0 in most
//!          0x04 u32 header size   0x20 u32 offset of the name               0x38 u64 size once decompressed
//!          0x08 u64 payload size  0x24 u32 its length
//!          0x10 u32 compressed size, 0 without compression
//!          0x14 u32 offset of the options: u32 offset of their text, u32 its length
//! ```
//!
//! Read off files of fatbinary and libnvfatbin of CUDA 12.4 and 13.0. The payload is padded to a multiple of 8.

use core::fmt;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::content::{Content, FATBIN_MAGIC};
use super::elf::{self, Header, SectionRaw};
use super::{Cubin, Error, Variant, available, bad, length};
use crate::unit::SmVersion;

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RegionRaw {
    magic: U32,
    version: U16,
    header_size: U16,
    size: U64,
}

#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryRaw {
    kind: U16,
    version: U16,
    header_size: U32,
    size: U64,
    compressed_size: U32,
    options: U32,
    minor: U16,
    major: U16,
    sm: U32,
    name: U32,
    name_size: U32,
    flags: U64,
    hash: U64,
    raw_size: U64,
}

/// What an entry holds; an open set.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct EntryKind(pub u16);

impl EntryKind {
    /// PTX text.
    pub const PTX: Self = Self(1);
    /// A cubin.
    pub const CUBIN: Self = Self(2);
    /// The vendor's intermediate form for optimisation at link time.
    pub const LTO: Self = Self(8);
    /// Several cubins run together.
    pub const CONCATENATED: Self = Self(256);
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PTX => f.write_str("PTX"),
            Self::CUBIN => f.write_str("cubin"),
            Self::LTO => f.write_str("LTO"),
            Self::CONCATENATED => f.write_str("concatenated"),
            Self(number) => write!(f, "kind {number}"),
        }
    }
}

/// How an entry is compressed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Compression {
    /// An LZ4 block without a frame.
    Lz4,
    /// A zstd frame.
    Zstd,
    /// Some other way: the flags as they lie.
    Other(u64),
}

/// What an entry's bytes are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Payload<'a> {
    /// The thing itself.
    Plain(&'a [u8]),
    /// Compressed: to be decompressed to exactly `size` bytes.
    Compressed {
        /// How.
        method: Compression,
        /// The compressed bytes.
        bytes: &'a [u8],
        /// How many bytes they stand for.
        size: u64,
    },
}

/// One entry of a fatbin.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    offset: u64,
    raw: &'a EntryRaw,
    header: &'a [u8],
    payload: &'a [u8],
}

logged!(
    Entry<'_>,
    entry,
    "fatbin entry at {=u64:#x}: {} for {}",
    entry.offset,
    entry.kind(),
    entry.sm()
);

impl<'a> Entry<'a> {
    /// Where its header starts, in bytes from the start of what was searched.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        EntryKind(self.raw.kind.get())
    }

    /// The architecture that it is for.
    #[must_use]
    pub fn sm(&self) -> SmVersion {
        SmVersion(u16::try_from(self.raw.sm.get()).unwrap_or(u16::MAX))
    }

    /// Which variant of it.
    #[must_use]
    pub fn variant(&self) -> Variant {
        if self.flags() & FLAG_ARCHITECTURE != 0 {
            Variant::Architecture
        } else if self.flags() & FLAG_FAMILY != 0 {
            Variant::Family
        } else {
            Variant::Base
        }
    }

    /// The flags as they lie.
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.raw.flags.get()
    }

    /// The version of the code's form: that of the PTX language, or of the ELF ABI.
    #[must_use]
    pub fn code_version(&self) -> (u16, u16) {
        (self.raw.major.get(), self.raw.minor.get())
    }

    /// The name of its source, where it has one.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let bytes = elf::range(
            self.header,
            self.raw.name.get().into(),
            self.raw.name_size.get().into(),
        );
        bytes
            .and_then(|bytes| core::str::from_utf8(bytes).ok())
            .unwrap_or("")
    }

    /// The compiler's options that go with it.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        match self.extra() {
            Some((start, size)) if self.flags() & FLAG_COMPAT == 0 => {
                elf::range(self.header, start, size).unwrap_or(&[])
            }
            _ => &[],
        }
    }

    /// A copy of its cubin's `.nv.compat`, which entries for `sm_100` and later have.
    #[must_use]
    pub fn compat(&self) -> &'a [u8] {
        match self.extra() {
            // The options, a text that ends with a zero, come first: it is empty.
            Some((start, size)) if self.flags() & FLAG_COMPAT != 0 => {
                elf::range(self.header, start.saturating_add(1), size).unwrap_or(&[])
            }
            _ => &[],
        }
    }

    /// Where in the header its extra data lie, and how many bytes.
    fn extra(&self) -> Option<(u64, u64)> {
        let at = self.raw.options.get();
        match elf::range(self.header, at.into(), 8).filter(|_| at != 0) {
            Some(&[a, b, c, d, e, f, g, h]) => {
                let (start, size) = (
                    u32::from_le_bytes([a, b, c, d]),
                    u32::from_le_bytes([e, f, g, h]),
                );
                Some((start.into(), size.into()))
            }
            _ => None,
        }
    }

    /// Its bytes, and how they are compressed.
    #[must_use]
    pub fn payload(&self) -> Payload<'a> {
        let method = match self.flags() & FLAGS_COMPRESSION {
            0 => {
                // PTX is padded with zeros, which are no part of the text.
                let end = match self.kind() {
                    EntryKind::PTX => self.payload.iter().rposition(|byte| *byte != 0),
                    _ => self.payload.len().checked_sub(1),
                };
                let end = end.map_or(0, |last| last.saturating_add(1));
                return Payload::Plain(self.payload.get(..end).unwrap_or(self.payload));
            }
            FLAG_LZ4 => Compression::Lz4,
            FLAG_ZSTD => Compression::Zstd,
            other => Compression::Other(other),
        };
        let bytes = elf::range(self.payload, 0, self.raw.compressed_size.get().into());
        Payload::Compressed {
            method,
            bytes: bytes.unwrap_or(&[]),
            size: self.raw.raw_size.get(),
        }
    }

    /// Its cubin, where it is one and not compressed.
    ///
    /// # Errors
    /// Those of [`Cubin::parse`]; [`Error::NotCubin`] too for another kind of entry.
    pub fn cubin(&self) -> Result<Cubin<'a>, Error<'a>> {
        match self.payload() {
            Payload::Plain(bytes) => Cubin::parse(bytes),
            Payload::Compressed {
                method: Compression::Zstd,
                ..
            } => Err(Error::NotCubin {
                found: Content::Zstd,
            }),
            Payload::Compressed { bytes, .. } => Err(Error::NotCubin {
                found: Content::of(bytes),
            }),
        }
    }

    /// How well it runs on a device of version `device`; `None` where it does not.
    #[must_use]
    pub fn fit(&self, device: SmVersion) -> Option<Fit> {
        let (sm, variant) = (self.sm(), self.variant());
        let same = sm == device;
        let older = sm.major() == device.major() && sm <= device;
        match self.kind() {
            EntryKind::CUBIN => match variant {
                Variant::Architecture => same.then_some(Fit::Architecture),
                _ if same => Some(Fit::Exact),
                // Code for boards of the embedded line runs on no other chip, nor other code on those.
                _ if older && !EMBEDDED.contains(&sm.0) && !EMBEDDED.contains(&device.0) => {
                    Some(Fit::Older(sm))
                }
                _ => None,
            },
            EntryKind::PTX => match variant {
                Variant::Architecture => same.then_some(Fit::Ptx(sm)),
                Variant::Family => older.then_some(Fit::Ptx(sm)),
                _ => (sm <= device).then_some(Fit::Ptx(sm)),
            },
            _ => None,
        }
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("kind", &self.kind())
            .field("sm", &self.sm())
            .field("variant", &self.variant())
            .field("payload", &self.payload.len())
            .finish_non_exhaustive()
    }
}

/// How well an entry runs on a device: later is better.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fit {
    /// PTX for this version or an older one, which a compiler must assemble first.
    Ptx(SmVersion),
    /// Code for an older version of the same major one.
    Older(SmVersion),
    /// Code for exactly this version.
    Exact,
    /// Code for exactly this version that uses what only it has.
    Architecture,
}

/// A fatbin: one region of entries.
#[derive(Clone, Copy, Debug)]
pub struct Fatbin<'a> {
    offset: u64,
    entries: &'a [u8],
}

logged!(
    Fatbin<'_>,
    fatbin,
    "fatbin at {=u64:#x}: {=usize} bytes of entries",
    fatbin.offset,
    fatbin.entries.len()
);

impl<'a> Fatbin<'a> {
    /// Reads the region at the start of `bytes`, and says how many bytes it takes.
    ///
    /// # Errors
    /// [`Error::NotFatbin`]; [`Error::Truncated`]; [`Error::BadValue`] for a version other than 1.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, u64), Error<'a>> {
        Self::parse_at(bytes, 0)
    }

    fn parse_at(bytes: &'a [u8], offset: u64) -> Result<(Self, u64), Error<'a>> {
        let (raw, _) = match RegionRaw::ref_from_prefix(bytes) {
            Ok((raw, rest)) if raw.magic.get() == FATBIN_MAGIC => (raw, rest),
            _ => {
                return Err(Error::NotFatbin {
                    found: Content::of(bytes),
                });
            }
        };
        if raw.version.get() != 1 {
            return Err(bad(
                "version",
                "fatbin",
                offset.saturating_add(4),
                raw.version.get().into(),
            ));
        }
        let header = u64::from(raw.header_size.get());
        // Less would make a region that takes no room, after which the same one follows for ever.
        if usize::from(raw.header_size.get()) < size_of::<RegionRaw>() {
            return Err(bad(
                "header size",
                "fatbin",
                offset.saturating_add(6),
                header,
            ));
        }
        let entries = elf::range(bytes, header, raw.size.get()).ok_or(Error::Truncated {
            what: "fatbin",
            name: "",
            offset: offset.saturating_add(header),
            needed: raw.size.get(),
            available: available(bytes, header),
        })?;
        let start = offset.saturating_add(header);
        Ok((
            Self {
                offset: start,
                entries,
            },
            header.saturating_add(raw.size.get()),
        ))
    }

    /// Its entries in order. An error ends them.
    #[must_use]
    pub const fn entries(&self) -> Entries<'a> {
        Entries {
            offset: self.offset,
            rest: self.entries,
        }
    }
}

/// The entries of a region.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    offset: u64,
    rest: &'a [u8],
}

logged!(
    Entries<'_>,
    entries,
    "entries from {=u64:#x}: {=usize} bytes",
    entries.offset,
    entries.rest.len()
);

impl<'a> Entries<'a> {
    fn read(&self) -> Result<(Entry<'a>, &'a [u8]), Error<'a>> {
        let truncated = |needed: u64| Error::Truncated {
            what: "fatbin entry",
            name: "",
            offset: self.offset,
            needed,
            available: length(self.rest),
        };
        let fixed = u64::try_from(size_of::<EntryRaw>()).unwrap_or(u64::MAX);
        let (raw, _) = EntryRaw::ref_from_prefix(self.rest).map_err(|_| truncated(fixed))?;
        let header_size = u64::from(raw.header_size.get());
        if header_size < fixed {
            return Err(bad(
                "header size",
                "fatbin entry",
                self.offset.saturating_add(4),
                header_size,
            ));
        }
        if raw.version.get() != VERSION {
            return Err(bad(
                "version",
                "fatbin entry",
                self.offset.saturating_add(2),
                raw.version.get().into(),
            ));
        }
        let size = header_size.saturating_add(raw.size.get());
        let header = elf::range(self.rest, 0, header_size).ok_or(truncated(header_size))?;
        let payload = elf::range(self.rest, header_size, raw.size.get()).ok_or(truncated(size))?;
        if u64::from(raw.compressed_size.get()) > raw.size.get() {
            let at = self.offset.saturating_add(0x10);
            return Err(bad(
                "compressed size",
                "fatbin entry",
                at,
                raw.compressed_size.get().into(),
            ));
        }
        let rest = usize::try_from(size)
            .ok()
            .and_then(|size| self.rest.get(size..))
            .unwrap_or(&[]);
        Ok((
            Entry {
                offset: self.offset,
                raw,
                header,
                payload,
            },
            rest,
        ))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Error<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.read() {
            Ok((entry, rest)) => {
                self.offset = self
                    .offset
                    .saturating_add(length(self.rest).saturating_sub(length(rest)));
                self.rest = rest;
                Some(Ok(entry))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

impl core::iter::FusedIterator for Entries<'_> {}

/// The fatbins of a file: of a fatbin itself, or those in the sections `.nv_fatbin` and `__nv_relfatbin` of an ELF
/// object, executable or shared object.
#[derive(Clone, Debug)]
pub struct Fatbins<'a> {
    file: &'a [u8],
    sections: core::slice::Iter<'a, SectionRaw>,
    names: &'a [u8],
    offset: u64,
    rest: &'a [u8],
    /// How many bytes sections may still have: they share none, so together no more than the file.
    budget: u64,
}

logged!(
    Fatbins<'_>,
    fatbins,
    "fatbins of {=usize} bytes, from {=u64:#x}",
    fatbins.file.len(),
    fatbins.offset
);

impl<'a> Fatbins<'a> {
    /// Where to look in `file`.
    ///
    /// # Errors
    /// [`Error::NotFatbin`] where the file is neither; [`Error::Truncated`] and [`Error::BadValue`] where its tables
    /// are cut or make no sense.
    pub fn of(file: &'a [u8]) -> Result<Self, Error<'a>> {
        let none = Self {
            file,
            sections: [].iter(),
            names: &[],
            offset: 0,
            rest: &[],
            budget: length(file),
        };
        match Content::of(file) {
            Content::Fatbin => Ok(Self { rest: file, ..none }),
            Content::HostElf(_) => {
                let (header, _) = Header::ref_from_prefix(file).map_err(|_| Error::NotFatbin {
                    found: Content::CutElf,
                })?;
                let sections = super::section_table(file, header)?;
                let names = super::names_index(header, sections);
                let names = usize::try_from(names)
                    .ok()
                    .and_then(|index| sections.get(index));
                let names =
                    names.and_then(|raw| elf::range(file, raw.offset.get(), raw.size.get()));
                Ok(Self {
                    sections: sections.iter(),
                    names: names.unwrap_or(&[]),
                    ..none
                })
            }
            found => Err(Error::NotFatbin { found }),
        }
    }

    /// The next section that holds fatbins.
    fn next_section(&mut self) -> Option<Result<(), Error<'a>>> {
        let names = self.names;
        let holds = |raw: &&SectionRaw| {
            let start = usize::try_from(raw.name.get()).unwrap_or(usize::MAX);
            let name = names.get(start..).unwrap_or(&[]);
            SECTIONS
                .iter()
                .any(|wanted| matches!(name.strip_prefix(*wanted), Some([0, ..] | [])))
        };
        let raw = self.sections.find(holds)?;
        let (offset, size) = (raw.offset.get(), raw.size.get());
        let budget = self.budget.checked_sub(size);
        match elf::range(self.file, offset, size).zip(budget) {
            Some((bytes, budget)) => {
                self.budget = budget;
                (self.offset, self.rest) = (offset, bytes);
                Some(Ok(()))
            }
            None => {
                self.sections = [].iter();
                let (what, available) = ("section of fatbins", available(self.file, offset));
                Some(Err(Error::Truncated {
                    what,
                    name: "",
                    offset,
                    needed: size,
                    available,
                }))
            }
        }
    }
}

impl<'a> Iterator for Fatbins<'a> {
    type Item = Result<Fatbin<'a>, Error<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // Fatbins of several sources lie in one section, with zeros between them.
            let padding = self.rest.iter().take_while(|byte| **byte == 0).count();
            let rest = self.rest.get(padding..).unwrap_or(&[]);
            self.offset = self
                .offset
                .saturating_add(u64::try_from(padding).unwrap_or(u64::MAX));
            self.rest = rest;
            if !rest.is_empty() {
                return match Fatbin::parse_at(rest, self.offset) {
                    Ok((fatbin, size)) => {
                        self.offset = self.offset.saturating_add(size);
                        self.rest = usize::try_from(size)
                            .ok()
                            .and_then(|size| rest.get(size..))
                            .unwrap_or(&[]);
                        Some(Ok(fatbin))
                    }
                    Err(error) => {
                        (self.rest, self.sections) = (&[], [].iter());
                        Some(Err(error))
                    }
                };
            }
            match self.next_section() {
                None => return None,
                Some(Ok(())) => {}
                Some(Err(error)) => return Some(Err(error)),
            }
        }
    }
}

/// The entry that runs best on a device of version `device`: code for exactly it, else for an older version of the
/// same major one, else PTX. The first of equals.
pub fn best<'a>(
    entries: impl IntoIterator<Item = Entry<'a>>,
    device: SmVersion,
) -> Option<(Entry<'a>, Fit)> {
    let mut best: Option<(Entry<'a>, Fit)> = None;
    for entry in entries {
        if let Some(fit) = entry.fit(device)
            && best.is_none_or(|(_, other)| fit > other)
        {
            best = Some((entry, fit));
        }
    }
    best
}

/// Entry headers of every file seen.
const VERSION: u16 = 0x101;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// Entries of kind LTO with this one do not hold a plain frame.
const FLAG_LTO: u64 = 0x1_0000;
const FLAGS_COMPRESSION: u64 = FLAG_LZ4 | FLAG_ZSTD | FLAG_LTO;
/// Its extra data are a copy of `.nv.compat`.
const FLAG_COMPAT: u64 = 0x100_0000;
/// `sm_90a` and its like.
const FLAG_ARCHITECTURE: u64 = 0x10_0000;
/// `sm_100f` and its like.
const FLAG_FAMILY: u64 = 0x20_0000;
const SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];
/// Chips of NVIDIA's embedded boards (Jetson, DRIVE), to and from which no other code is carried over, says the
/// compiler's manual.
const EMBEDDED: [u16; 6] = [53, 62, 72, 87, 101, 110];
