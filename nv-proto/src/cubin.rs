//! Cubins: the ELF files that NVIDIA's compilers make.
//!
//! [`Cubin::parse`] checks a file's tables once; sections, symbols and attributes are then views of its bytes.
//! [`Cubin::kernel`] gathers what a launch needs to know of a kernel, [`Cubin::plan`] says where its parts go in
//! device memory, and [`ImagePlan`] fills that memory and relocates it.
//!
//! Nothing here allocates: where the size of a result depends on the file, the caller gives the space, and the
//! error says how much was wanted. Every call takes time linear in the file (with a logarithm of the number of
//! kernels in [`Cubin::kernels_into`]), whatever its bytes are.
//!
//! ```
//! use nv_proto::cubin::{Cubin, Layout};
//! use nv_proto::unit::{GpuVa, SmVersion};
//!
//! # const FILE: &[u8] =
//! #     include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cubins/corpus/13.0/sm_90/vecadd.cubin"));
//! let cubin = Cubin::parse(FILE)?;
//! assert_eq!(cubin.sm(), SmVersion(90));
//!
//! let kernel = cubin.kernel("vecadd")?;
//! assert_eq!((kernel.registers, kernel.shared_total(), kernel.param_base), (12, 1024, 0x210));
//!
//! // Where its parts go, an image of them, and that image made right for its address.
//! let mut places = [0; 32];
//! let plan = cubin.plan(Layout::default(), &mut places)?;
//! let mut image = [0; 2048];
//! plan.place_into(&mut image)?;
//! plan.relocate(&mut image, GpuVa(0x7f00_0000_0000))?;
//! assert_eq!(plan.entry(&kernel), Some(0));
//! # Ok::<(), nv_proto::cubin::Error<'static>>(())
//! ```
//!
//! Anything that is no cubin is told what it is:
//!
//! ```
//! use nv_proto::cubin::{Content, Cubin, Error};
//!
//! let error = Cubin::parse(b".version 8.4\n.target sm_90\n").unwrap_err();
//! assert_eq!(error, Error::NotCubin { found: Content::Ptx });
//! assert_eq!(error.to_string(), "this is no cubin: it is PTX text; assemble it with ptxas -arch first");
//! ```

use core::fmt;

use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

use crate::unit::SmVersion;

mod content;
mod elf;
mod error;
pub mod fatbin;
mod image;
mod kernel;
mod names;
mod note;
mod nvinfo;
mod reloc;
mod section;

pub use content::Content;
pub use error::Error;
pub use image::{ImagePlan, Layout, PREFETCH_SLACK, Sections};
pub use kernel::{ConstantBank, IndirectBranch, Kernel, MAX_BANKS, Param, Params, Stack};
pub use note::{Note, Notes, Tool, Toolkit};
pub use nvinfo::{AttributeKind, CompatKind, Record, Records, Value};
pub use reloc::{MERCURY_BASE, Piece, Relocation, RelocationSection, RelocationType};
pub use section::{
    MemorySpace, Role, Section, SectionIndex, SectionType, Symbol, SymbolIndex, SymbolSection,
    SymbolType,
};

use elf::{Header, SectionRaw, SymbolRaw};
use section::Tag;

/// A cubin, over the bytes of its file.
#[derive(Clone, Copy)]
pub struct Cubin<'a> {
    file: &'a [u8],
    header: &'a Header,
    sections: &'a [SectionRaw],
    section_names: &'a str,
    symbols: &'a [SymbolRaw],
    symbol_names: &'a str,
    /// Section numbers of symbols above `SHN_LORESERVE`; empty in files of fewer sections.
    symbol_sections: &'a [U32],
    symbol_table: SectionIndex,
}

logged!(
    Cubin<'_>,
    cubin,
    "cubin for {}: {=usize} sections, {=usize} kernels",
    cubin.sm(),
    cubin.section_count(),
    cubin.kernel_count()
);

/// Which variant of an architecture a file is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Variant {
    /// Runs on this and later chips of the same major version.
    Base,
    /// `sm_90a` and its like: runs on exactly this version.
    Architecture,
    /// `sm_100f` and its like: runs on chips of the same family.
    Family,
    /// The file does not say.
    Unknown,
}

impl Variant {
    /// What follows the number in a compiler's name for it: `a`, `f` or nothing.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Base | Self::Unknown => "",
            Self::Architecture => "a",
            Self::Family => "f",
        }
    }
}

impl<'a> Cubin<'a> {
    /// Reads the tables of a cubin and checks that everything they speak of lies inside the file.
    ///
    /// # Errors
    /// When the bytes are something else (which [`Error::NotCubin`] names), are cut short, or a table makes no
    /// sense.
    pub fn parse(file: &'a [u8]) -> Result<Self, Error<'a>> {
        let header = match Header::ref_from_prefix(file) {
            Ok((header, _)) if header.is_cubin() => header,
            _ => {
                return Err(Error::NotCubin {
                    found: Content::of(file),
                });
            }
        };
        let sections = section_table(file, header)?;
        let names_index = names_index(header, sections);
        let text = Text::of(file, sections, names_index).unwrap_or_default();
        let string_table = |index: u32| -> Result<&'a str, Error<'a>> {
            let raw = usize::try_from(index).ok().and_then(|i| sections.get(i));
            let raw = raw.ok_or(bad("string table", "", 0, index.into()))?;
            if SectionType(raw.kind.get()).is_nobits() {
                return Err(bad(
                    "string table type",
                    "",
                    raw.offset.get(),
                    raw.kind.get().into(),
                ));
            }
            let bytes =
                elf::range(file, raw.offset.get(), raw.size.get()).ok_or(Error::Truncated {
                    what: "string table",
                    name: "",
                    offset: raw.offset.get(),
                    needed: raw.size.get(),
                    available: available(file, raw.offset.get()),
                })?;
            if let Some(text) = text.get(raw) {
                return Ok(text);
            }
            core::str::from_utf8(bytes).map_err(|error| Error::BadStrings {
                section: SectionIndex(index),
                offset: u64::try_from(error.valid_up_to()).unwrap_or(u64::MAX),
            })
        };
        let section_names = if names_index == 0 {
            ""
        } else {
            string_table(names_index)?
        };
        let mut cubin = Self {
            file,
            header,
            sections,
            section_names,
            symbols: &[],
            symbol_names: "",
            symbol_sections: &[],
            symbol_table: SectionIndex(0),
        };
        if let Some(table) = cubin.check_sections()? {
            cubin.symbol_table = table.index();
            cubin.symbol_names = string_table(table.link())?;
            cubin.symbols = records(&table)?;
            // Only with that many sections can a symbol need more than its own 16 bits for one.
            if sections.len() >= usize::from(elf::SHN_LORESERVE) {
                let wide = |s: &Section<'_>| {
                    s.kind().0 == elf::SHT_SYMTAB_SHNDX && s.link() == table.index().0
                };
                if let Some(wide) = cubin.sections().find(wide) {
                    cubin.symbol_sections = records(&wide)?;
                }
            }
            cubin.check_symbols(&table)?;
        }
        Ok(cubin)
    }

    /// Checks that sections lie in the file; the symbol table, where there is one.
    fn check_sections(&self) -> Result<Option<Section<'a>>, Error<'a>> {
        let (end, names) = (length(self.file), length(self.section_names.as_bytes()));
        // Without a branch, since nothing is wrong with nearly every file; then one by one, to say what it is.
        // With the highest bit of all of them clear no sum of two is wrapped.
        let most = |(name, last, bits): (u32, u64, u64), raw: &SectionRaw| {
            let (offset, size) = (raw.offset.get(), raw.size.get());
            (
                name.max(raw.name.get()),
                last.max(offset.wrapping_add(size)),
                bits | offset | size,
            )
        };
        let (name, last, bits) = self.sections.iter().fold((0, 0, 0), most);
        let suspect = u64::from(name) > names || last > end || bits >> 63 != 0;
        if suspect {
            for (index, raw) in (0u32..).zip(self.sections) {
                self.check_section(index, raw)?;
            }
        }
        let table = self
            .sections
            .iter()
            .position(|raw| raw.kind.get() == elf::SHT_SYMTAB);
        Ok(table.and_then(|index| self.section(SectionIndex(u32::try_from(index).ok()?))))
    }

    fn check_section(&self, index: u32, raw: &SectionRaw) -> Result<(), Error<'a>> {
        let name = raw.name.get();
        if u64::from(name) > length(self.section_names.as_bytes()) {
            let place = u64::from(index).saturating_mul(64);
            return Err(bad("sh_name", "section table", place, name.into()));
        }
        let (kind, offset, size) = (raw.kind.get(), raw.offset.get(), raw.size.get());
        // The first section is no section, and may hold the number of sections.
        if kind != 0
            && !SectionType(kind).is_nobits()
            && elf::range(self.file, offset, size).is_none()
        {
            return Err(Error::Truncated {
                what: "section",
                name: elf::string(self.section_names, name),
                offset,
                needed: size,
                available: available(self.file, offset),
            });
        }
        Ok(())
    }

    fn check_symbols(&self, table: &Section<'a>) -> Result<(), Error<'a>> {
        let sections = u64::try_from(self.sections.len()).unwrap_or(u64::MAX);
        let names = length(self.symbol_names.as_bytes());
        // Reserved numbers are looked at one by one too: few symbols have any.
        let most = |(name, section): (u32, u32), raw: &SymbolRaw| {
            let here = u32::from(raw.shndx.get());
            (name.max(raw.name.get()), section.max(here))
        };
        let (name, section) = self.symbols.iter().fold((0, 0), most);
        let suspect = u64::from(name) > names || u64::from(section) >= sections.max(1);
        if !suspect {
            return Ok(());
        }
        for (index, raw) in self.symbols.iter().enumerate() {
            let place = || u64::try_from(index).unwrap_or(u64::MAX).saturating_mul(24);
            let name = raw.name.get();
            if u64::from(name) > names {
                return Err(bad("st_name", table.name(), place(), name.into()));
            }
            if let SymbolSection::In(section) = self.section_of(index, raw)
                && u64::from(section.0) >= sections
            {
                return Err(bad(
                    "st_shndx",
                    table.name(),
                    place().saturating_add(6),
                    section.0.into(),
                ));
            }
        }
        Ok(())
    }

    /// Where the symbol at place `at` of the table is defined.
    #[inline]
    fn section_of(&self, at: usize, raw: &SymbolRaw) -> SymbolSection {
        match raw.shndx.get() {
            0 => SymbolSection::Undefined,
            elf::SHN_XINDEX => match self.symbol_sections.get(at) {
                Some(wide) => SymbolSection::In(SectionIndex(wide.get())),
                None => SymbolSection::Reserved(elf::SHN_XINDEX),
            },
            reserved @ elf::SHN_LORESERVE.. => SymbolSection::Reserved(reserved),
            section => SymbolSection::In(SectionIndex(section.into())),
        }
    }

    /// The bytes that it was read from.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.file
    }

    /// The architecture that its code is for.
    #[must_use]
    pub fn sm(&self) -> SmVersion {
        let flags = self.header.flags.get();
        let [low, second, ..] = flags.to_le_bytes();
        SmVersion(
            if self.osabi() == OSABI_CUDA_13 {
                second
            } else {
                low
            }
            .into(),
        )
    }

    /// Which variant of that architecture.
    ///
    /// Files with ABI 7 say so in their flags, as do those of CUDA 12.8 and 12.9 with ABI 8; files of CUDA 13 say
    /// so in `.nv.compat`, which those below `sm_90` have not, there being no variants of those. Only the options
    /// in `.note.nv.tkinfo` tell the family variant.
    #[must_use]
    pub fn variant(&self) -> Variant {
        let flags = self.header.flags.get();
        if self.osabi() != OSABI_CUDA_13 {
            return if flags & 0x800 != 0 {
                Variant::Architecture
            } else {
                Variant::Base
            };
        }
        let target = self
            .compat()
            .flatten()
            .find(|r| r.compat() == CompatKind::CUDA_ACCELERATOR_TARGET);
        match target.and_then(|record| record.value.number()) {
            Some(0) if self.asked_for_family() => Variant::Family,
            Some(0) => Variant::Base,
            Some(1) => Variant::Architecture,
            Some(_) => Variant::Unknown,
            None if flags & 0x8 != 0 => Variant::Architecture,
            None if self.asked_for_family() => Variant::Family,
            None if self.sm() < FIRST_WITH_VARIANTS
                || self.toolkit().is_some_and(|t| t.major < 13) =>
            {
                Variant::Base
            }
            None => Variant::Unknown,
        }
    }

    /// The notes of the sections of this name.
    fn notes_in(&self, name: &'static str) -> impl Iterator<Item = Note<'a>> + use<'a> {
        let sections = self
            .sections()
            .filter(move |section| section.is_named(name));
        sections
            .flat_map(move |section| Notes::new(name, section.data()))
            .flatten()
    }

    fn asked_for_family(&self) -> bool {
        let tools = self
            .notes_in(".note.nv.tkinfo")
            .filter_map(|note| note.tool());
        tools
            .filter_map(|tool| tool.architecture())
            .any(|name| name.ends_with('f'))
    }

    /// The toolkit that made it, where the file says.
    #[must_use]
    pub fn toolkit(&self) -> Option<Toolkit> {
        if self.osabi() == OSABI_CUDA_12 {
            let version = u16::try_from(self.header.version.get()).ok()?;
            return Toolkit::from_tenths(version);
        }
        let of_info = self
            .notes_in(".note.nv.cuinfo")
            .find_map(|note| note.toolkit_of_cuinfo());
        of_info.or_else(|| {
            self.notes_in(".note.nv.tkinfo")
                .find_map(|note| note.tool()?.toolkit())
        })
    }

    /// `EI_OSABI`: 0x33, or 0x41 from CUDA 13 on and for `sm_100` and later.
    #[must_use]
    pub fn osabi(&self) -> u8 {
        self.header.ident.get(7).copied().unwrap_or(0)
    }

    /// `EI_ABIVERSION`: 7 with the first OS ABI and 8 with the second.
    #[must_use]
    pub fn abi_version(&self) -> u8 {
        self.header.ident.get(8).copied().unwrap_or(0)
    }

    /// `e_flags` as it lies.
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.header.flags.get()
    }

    /// Whether it is the output of a compiler that a linker is to make whole (`ET_REL`).
    #[must_use]
    pub fn is_relocatable(&self) -> bool {
        self.header.kind.get() == elf::ET_REL
    }

    /// How many sections it has, counting the empty first one.
    #[must_use]
    pub const fn section_count(&self) -> usize {
        self.sections.len()
    }

    /// A section by number.
    #[must_use]
    pub fn section(&self, index: SectionIndex) -> Option<Section<'a>> {
        let raw = self.sections.get(usize::try_from(index.0).ok()?)?;
        Some(Section {
            index,
            raw,
            names: self.section_names,
            file: self.file,
        })
    }

    /// The sections in order.
    #[inline]
    pub fn sections(&self) -> impl Iterator<Item = Section<'a>> + Clone + use<'a> {
        let (names, file) = (self.section_names, self.file);
        (0u32..)
            .zip(self.sections)
            .map(move |(index, raw)| Section {
                index: SectionIndex(index),
                raw,
                names,
                file,
            })
    }

    /// The first section of this name.
    #[must_use]
    pub fn section_by_name(&self, name: &str) -> Option<Section<'a>> {
        self.sections().find(|section| section.is_named(name))
    }

    /// The section that is the symbol table; 0 where there is none.
    #[must_use]
    pub const fn symbol_table(&self) -> SectionIndex {
        self.symbol_table
    }

    /// How many symbols it has, counting the empty first one.
    #[must_use]
    pub const fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// A symbol by number.
    #[must_use]
    pub fn symbol(&self, index: SymbolIndex) -> Option<Symbol<'a>> {
        let at = usize::try_from(index.0).ok()?;
        let raw = self.symbols.get(at)?;
        Some(Symbol {
            index,
            raw,
            names: self.symbol_names,
            section: self.section_of(at, raw),
        })
    }

    /// The symbols in order.
    #[inline]
    pub fn symbols(&self) -> impl Iterator<Item = Symbol<'a>> + Clone + use<'a> {
        let cubin = *self;
        (0u32..)
            .zip(self.symbols.iter().enumerate())
            .map(move |(index, (at, raw))| Symbol {
                index: SymbolIndex(index),
                raw,
                names: cubin.symbol_names,
                section: cubin.section_of(at, raw),
            })
    }

    /// The first symbol of this name that is defined here.
    #[must_use]
    pub fn symbol_by_name(&self, name: &str) -> Option<Symbol<'a>> {
        self.symbols()
            .find(|s| s.section() != SymbolSection::Undefined && s.is_named(name))
    }

    /// The records of `.nv.compat`; none where there is no such section.
    #[must_use]
    pub fn compat(&self) -> Records<'a> {
        let section = self.sections().find(|section| section.tag() == Tag::Compat);
        section.map_or(Records::new("", &[]), |section| section.records())
    }

    /// The records of `.nv.info`; none where there is no such section.
    #[must_use]
    pub fn module_info(&self) -> Records<'a> {
        let section = self
            .sections()
            .find(|section| section.tag() == Tag::ModuleInfo);
        section.map_or(Records::new("", &[]), |section| section.records())
    }

    /// The notes of every note section.
    pub fn notes(&self) -> impl Iterator<Item = Result<Note<'a>, Error<'a>>> + use<'a> {
        const SHT_NOTE: u32 = 7;
        self.sections()
            .filter(|s| s.kind().0 == SHT_NOTE)
            .flat_map(|s| Notes::new(s.name(), s.data()))
    }

    /// Program headers, which tools write and this reader has no need of: how many.
    #[must_use]
    pub fn program_header_count(&self) -> u16 {
        self.header.phnum.get()
    }
}

impl fmt::Debug for Cubin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cubin")
            .field("sm", &self.sm())
            .field("sections", &self.sections.len())
            .field("symbols", &self.symbols.len())
            .finish_non_exhaustive()
    }
}

/// The section table of an ELF file.
fn section_table<'a>(file: &'a [u8], header: &Header) -> Result<&'a [SectionRaw], Error<'a>> {
    let offset = header.shoff.get();
    if offset == 0 {
        return Ok(&[]);
    }
    let size = header.shentsize.get();
    if usize::from(size) != size_of::<SectionRaw>() {
        return Err(bad("e_shentsize", "ELF header", 58, size.into()));
    }
    let start = usize::try_from(offset)
        .ok()
        .and_then(|start| file.get(start..))
        .unwrap_or(&[]);
    let truncated = |count: u64| Error::Truncated {
        what: "section table",
        name: "",
        offset,
        needed: count.saturating_mul(size.into()),
        available: length(start),
    };
    // With 0xff00 sections or more their number stands in the first one.
    let count = match header.shnum.get() {
        0 => {
            let (first, _) = SectionRaw::ref_from_prefix(start).map_err(|_| truncated(1))?;
            first.size.get()
        }
        count => count.into(),
    };
    let whole = usize::try_from(count).ok().and_then(|count| {
        let (table, _) = <[SectionRaw]>::ref_from_prefix_with_elems(start, count).ok()?;
        Some(table)
    });
    match whole {
        Some(table) if u32::try_from(count).is_ok() => Ok(table),
        _ => Err(truncated(count)),
    }
}

/// The number of the section that holds the sections' names; 0 for none.
fn names_index(header: &Header, sections: &[SectionRaw]) -> u32 {
    match (header.shstrndx.get(), sections.first()) {
        (elf::SHN_XINDEX, Some(first)) => first.link.get(),
        (index, _) => index.into(),
    }
}

/// A stretch of the file that is known to be text, and where it starts.
#[derive(Clone, Copy, Default)]
struct Text<'a> {
    start: u64,
    text: &'a str,
}

impl<'a> Text<'a> {
    /// Both string tables, which lie side by side in the files of all toolkits: to look at them as one, up to where
    /// a whole number of the steps ends that this takes, costs less than one by one. `None` where they lie otherwise, or something in or between them is no text: each is then to be looked at by itself.
    fn of(file: &'a [u8], sections: &[SectionRaw], names_index: u32) -> Option<Self> {
        const MOST_BETWEEN: u64 = 128;
        let at = |index: u32| sections.get(usize::try_from(index).ok()?);
        let first = at(names_index)?;
        let symbols = sections
            .iter()
            .find(|raw| raw.kind.get() == elf::SHT_SYMTAB)?;
        let second = at(symbols.link.get())?;
        let start = first.offset.get();
        let between = second
            .offset
            .get()
            .checked_sub(start.checked_add(first.size.get())?)?;
        if between > MOST_BETWEEN {
            return None;
        }
        let size = second
            .offset
            .get()
            .checked_add(second.size.get())?
            .checked_sub(start)?
            .checked_next_multiple_of(16)?;
        let text = core::str::from_utf8(elf::range(file, start, size)?).ok()?;
        Some(Self { start, text })
    }

    /// A section's bytes, where they are part of it.
    fn get(&self, raw: &SectionRaw) -> Option<&'a str> {
        let start = usize::try_from(raw.offset.get().checked_sub(self.start)?).ok()?;
        let end = start.checked_add(usize::try_from(raw.size.get()).ok()?)?;
        self.text.get(start..end)
    }
}

/// A section's bytes as records of one size.
fn records<'a, T>(section: &Section<'a>) -> Result<&'a [T], Error<'a>>
where
    T: FromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned,
{
    let data = section.data();
    <[T]>::ref_from_bytes(data)
        .map_err(|_| bad("sh_size", section.name(), section.offset(), length(data)))
}

const fn bad<'a>(what: &'static str, name: &'a str, offset: u64, value: u64) -> Error<'a> {
    Error::BadValue {
        what,
        name,
        offset,
        value,
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn available(file: &[u8], offset: u64) -> u64 {
    length(file).saturating_sub(offset)
}

/// `EI_OSABI` of CUDA 12 and older, up to `sm_90a`; seen in files of CUDA 11.7 to 12.9.
const OSABI_CUDA_12: u8 = 0x33;
/// `EI_OSABI` of CUDA 13, and of 12.8 and 12.9 from `sm_100` on; seen in files of CUDA 12.8 to 13.5.
const OSABI_CUDA_13: u8 = 0x41;
/// The first architecture that has an `a` variant.
const FIRST_WITH_VARIANTS: SmVersion = SmVersion(90);
