//! Sections and symbols as views of the file's bytes.

use core::fmt;

use super::elf::{self, SectionRaw, SymbolRaw};
use super::names;
use super::nvinfo::Records;

/// A section's place in the section table.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SectionIndex(pub u32);

/// A symbol's place in the symbol table.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SymbolIndex(pub u32);

/// A section's type (`SHT_*`): an open set.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SectionType(pub u32);

impl SectionType {
    /// The type's name without `SHT_`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        const STANDARD: [&str; 19] = [
            "NULL",
            "PROGBITS",
            "SYMTAB",
            "STRTAB",
            "RELA",
            "HASH",
            "DYNAMIC",
            "NOTE",
            "NOBITS",
            "REL",
            "SHLIB",
            "DYNSYM",
            "",
            "",
            "INIT_ARRAY",
            "FINI_ARRAY",
            "PREINIT_ARRAY",
            "GROUP",
            "SYMTAB_SHNDX",
        ];
        let standard = usize::try_from(self.0)
            .ok()
            .and_then(|n| STANDARD.get(n))
            .copied();
        match standard {
            Some(name) => Some(name).filter(|name| !name.is_empty()),
            None => names::SECTION_TYPE
                .iter()
                .find(|(number, _)| *number == self.0)
                .map(|(_, name)| *name),
        }
    }

    /// Whether a section of this type takes up no bytes of the file.
    #[must_use]
    #[inline]
    pub const fn is_nobits(self) -> bool {
        matches!(
            self.0,
            elf::SHT_NOBITS | 0x7000_0007 | 0x7000_0009 | 0x7000_000a | 0x7000_0015
        )
    }
}

impl fmt::Display for SectionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// What a section is for, which its name tells: types differ between toolkits and between linked and
/// relocatable files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Role<'a> {
    /// `.text.FUNCTION`: its instructions.
    Text(&'a str),
    /// `.nv.info`: attributes of the module, and of functions by symbol.
    ModuleInfo,
    /// `.nv.info.FUNCTION`: its attributes.
    Info(&'a str),
    /// `.nv.constantN.FUNCTION`, or `.nv.constantN` for the whole module: a constant bank.
    Constant(u8, Option<&'a str>),
    /// `.nv.shared.FUNCTION`: how much shared memory a block has.
    Shared(&'a str),
    /// `.nv.shared.reserved.N`: what the system keeps of shared memory.
    SharedReserved,
    /// `.nv.global.init`: variables with values.
    GlobalInit,
    /// `.nv.global`: variables that start as zero.
    Global,
    /// `.nv.compat`.
    Compat,
    /// `.nv.merc.*` and `.nv.capmerc.*`: a second copy of the rest for another code generator.
    Mercury,
    /// Anything else.
    Other,
}

/// A [`Role`] without the function's name, whose end would have to be looked for: telling it takes the same time
/// whatever the string table holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tag {
    Text,
    ModuleInfo,
    Info,
    /// With whether a function's name follows.
    Constant(u8, bool),
    Shared,
    SharedReserved,
    GlobalInit,
    Global,
    Compat,
    Mercury,
    Other,
}

impl Tag {
    /// The tag of a name that `rest` starts with, and where in it a function's name starts.
    fn of(rest: &[u8]) -> (Self, usize) {
        const EXACT: [(&[u8], Tag); 4] = [
            (b".nv.info", Tag::ModuleInfo),
            (b".nv.global", Tag::Global),
            (b".nv.global.init", Tag::GlobalInit),
            (b".nv.compat", Tag::Compat),
        ];
        const PREFIXES: [(&[u8], Tag); 6] = [
            (b".text.", Tag::Text),
            (b".nv.info.", Tag::Info),
            (b".nv.shared.reserved.", Tag::SharedReserved),
            (b".nv.shared.", Tag::Shared),
            (b".nv.merc.", Tag::Mercury),
            (b".nv.capmerc.", Tag::Mercury),
        ];
        const CONSTANT: &[u8] = b".nv.constant";
        if let Some(bank) = rest.strip_prefix(CONSTANT) {
            let digits = bank
                .iter()
                .take(3)
                .take_while(|b| b.is_ascii_digit())
                .count();
            let (digits, rest) = bank.split_at_checked(digits).unwrap_or((bank, &[]));
            let number = core::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse().ok());
            let function = CONSTANT
                .len()
                .saturating_add(digits.len())
                .saturating_add(1);
            return match (number, rest.first()) {
                (Some(number), None | Some(0)) => (Self::Constant(number, false), function),
                (Some(number), Some(b'.')) => (Self::Constant(number, true), function),
                _ => (Self::Other, 0),
            };
        }
        for (name, tag) in EXACT {
            if let Some([] | [0, ..]) = rest.strip_prefix(name) {
                return (tag, 0);
            }
        }
        let found = PREFIXES.iter().find(|(prefix, _)| rest.starts_with(prefix));
        found.map_or((Self::Other, 0), |(prefix, tag)| (*tag, prefix.len()))
    }
}

/// A section.
#[derive(Clone, Copy)]
pub struct Section<'a> {
    pub(super) index: SectionIndex,
    pub(super) raw: &'a SectionRaw,
    pub(super) names: &'a str,
    pub(super) file: &'a [u8],
}

logged!(
    Section<'_>,
    section,
    "section {}: {=str}, {=u64:#x} bytes",
    section.index,
    section.name(),
    section.size()
);

impl<'a> Section<'a> {
    /// Its number.
    #[must_use]
    pub const fn index(&self) -> SectionIndex {
        self.index
    }

    /// Its name.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'a str {
        elf::string(self.names, self.raw.name.get())
    }

    /// Its type.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> SectionType {
        SectionType(self.raw.kind.get())
    }

    /// What it is for.
    #[must_use]
    pub fn role(&self) -> Role<'a> {
        let rest = elf::from(self.names, self.raw.name.get());
        let (tag, start) = Tag::of(rest.as_bytes());
        let function = || self.name().get(start..).unwrap_or("");
        match tag {
            Tag::Text => Role::Text(function()),
            Tag::ModuleInfo => Role::ModuleInfo,
            Tag::Info => Role::Info(function()),
            Tag::Constant(bank, true) => Role::Constant(bank, Some(function())),
            Tag::Constant(bank, false) => Role::Constant(bank, None),
            Tag::Shared => Role::Shared(function()),
            Tag::SharedReserved => Role::SharedReserved,
            Tag::GlobalInit => Role::GlobalInit,
            Tag::Global => Role::Global,
            Tag::Compat => Role::Compat,
            Tag::Mercury => Role::Mercury,
            Tag::Other => Role::Other,
        }
    }

    pub(super) fn tag(&self) -> Tag {
        Tag::of(elf::from(self.names, self.raw.name.get()).as_bytes()).0
    }

    /// Whether this is its name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        elf::is(self.names, self.raw.name.get(), name)
    }

    /// `sh_flags`.
    #[must_use]
    pub fn flags(&self) -> u64 {
        self.raw.flags.get()
    }

    /// `sh_link`.
    #[must_use]
    pub fn link(&self) -> u32 {
        self.raw.link.get()
    }

    /// `sh_info`.
    #[must_use]
    pub fn info(&self) -> u32 {
        self.raw.info.get()
    }

    /// Where it starts in the file.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> u64 {
        self.raw.offset.get()
    }

    /// Its size, in the file or in memory.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u64 {
        self.raw.size.get()
    }

    /// `sh_addr`, 0 in every cubin seen.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.raw.addr.get()
    }

    /// What its address is to be a multiple of.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.raw.addralign.get().max(1)
    }

    /// The size of one of its records, where it has records of one size.
    #[must_use]
    pub fn entry_size(&self) -> u64 {
        self.raw.entsize.get()
    }

    /// Its bytes in the file; none for a section that takes up memory alone.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        if self.kind().is_nobits() {
            return &[];
        }
        elf::range(self.file, self.offset(), self.size()).unwrap_or(&[])
    }

    /// Its bytes as attribute records: of use for `.nv.info`, `.nv.info.FUNCTION` and `.nv.compat`.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(self.name(), self.data())
    }

    /// Whether a loaded module needs it in memory.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        const SHF_MERCURY: u64 = 0x1000_0000;
        let shared = matches!(self.kind().0, 0x7000_0009 | 0x7000_000a | 0x7000_0015)
            || matches!(self.tag(), Tag::Shared | Tag::SharedReserved | Tag::Mercury)
            || elf::from(self.names, self.raw.name.get()).starts_with(".nv_debug.shared");
        self.flags() & elf::SHF_ALLOC != 0 && self.flags() & SHF_MERCURY == 0 && !shared
    }
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("index", &self.index.0)
            .field("name", &self.name())
            .field("kind", &self.kind().0)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// What a symbol stands for: the low half of `st_info`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SymbolType {
    /// Nothing in particular.
    None,
    /// A variable (`STT_OBJECT`, and `STT_CUDA_OBJECT` in relocatable files).
    Object,
    /// A function.
    Function,
    /// A section.
    Section,
    /// A texture reference.
    Texture,
    /// A sampler.
    Sampler,
    /// A surface reference.
    Surface,
    /// Another number.
    Other(u8),
}

/// Which memory a symbol lies in: the high bits of `st_other`, which relocatable files set.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum MemorySpace {
    /// The file does not say.
    Unsaid,
    /// Global memory.
    Global,
    /// Shared memory.
    Shared,
    /// Local memory.
    Local,
    /// A constant bank.
    Constant,
    /// Shared memory that the system keeps.
    ReservedShared,
    /// Another number.
    Other(u8),
}

/// A symbol.
#[derive(Clone, Copy)]
pub struct Symbol<'a> {
    pub(super) index: SymbolIndex,
    pub(super) raw: &'a SymbolRaw,
    pub(super) names: &'a str,
    pub(super) section: SymbolSection,
}

logged!(
    Symbol<'_>,
    symbol,
    "symbol {}: {=str}",
    symbol.index,
    symbol.name()
);

/// Where a symbol is defined.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SymbolSection {
    /// In this section.
    In(SectionIndex),
    /// Nowhere in this file.
    Undefined,
    /// Its value is a number of itself, or a reserved meaning (`SHN_ABS`, `SHN_COMMON`, …).
    Reserved(u16),
}

impl<'a> Symbol<'a> {
    /// Its number, by which attributes and relocations speak of it.
    #[must_use]
    pub const fn index(&self) -> SymbolIndex {
        self.index
    }

    /// Its name.
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'a str {
        elf::string(self.names, self.raw.name.get())
    }

    /// Whether this is its name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        elf::is(self.names, self.raw.name.get(), name)
    }

    /// Where it is defined.
    #[must_use]
    pub const fn section(&self) -> SymbolSection {
        self.section
    }

    /// Its offset within its section.
    #[must_use]
    #[inline]
    pub fn value(&self) -> u64 {
        self.raw.value.get()
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn size(&self) -> u64 {
        self.raw.size.get()
    }

    /// `st_info` as it lies.
    #[must_use]
    pub const fn info(&self) -> u8 {
        self.raw.info
    }

    /// `st_other` as it lies.
    #[must_use]
    pub const fn other(&self) -> u8 {
        self.raw.other
    }

    /// What it stands for.
    #[must_use]
    pub const fn kind(&self) -> SymbolType {
        match self.raw.info & 0xf {
            0 => SymbolType::None,
            1 | 13 => SymbolType::Object,
            2 => SymbolType::Function,
            3 => SymbolType::Section,
            10 => SymbolType::Texture,
            11 => SymbolType::Sampler,
            12 => SymbolType::Surface,
            other => SymbolType::Other(other),
        }
    }

    /// Whether other files see it (`STB_GLOBAL` or `STB_WEAK`).
    #[must_use]
    pub const fn is_global(&self) -> bool {
        self.raw.info >> 4 != 0
    }

    /// Whether it may stay undefined (`STB_WEAK`).
    #[must_use]
    pub const fn is_weak(&self) -> bool {
        self.raw.info >> 4 == elf::STB_WEAK
    }

    /// Whether it is a kernel: a function with `STO_CUDA_ENTRY`.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        matches!(self.kind(), SymbolType::Function) && self.raw.other & 0x10 != 0
    }

    /// Which memory it lies in, as far as `st_other` says.
    #[must_use]
    pub const fn space(&self) -> MemorySpace {
        match self.raw.other >> 5 {
            0 => MemorySpace::Unsaid,
            1 => MemorySpace::Global,
            2 => MemorySpace::Shared,
            3 => MemorySpace::Local,
            4 => MemorySpace::Constant,
            5 => MemorySpace::ReservedShared,
            other => MemorySpace::Other(other),
        }
    }
}

impl fmt::Debug for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbol")
            .field("index", &self.index.0)
            .field("name", &self.name())
            .field("kind", &self.kind())
            .field("section", &self.section)
            .field("value", &self.value())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Tag;

    #[test]
    fn names_tell_what_sections_are() {
        for (name, tag) in [
            (&b".text.kernel\0"[..], Tag::Text),
            (b".text", Tag::Other),
            (b".nv.info\0.nv.info.k", Tag::ModuleInfo),
            (b".nv.info", Tag::ModuleInfo),
            (b".nv.info.k\0", Tag::Info),
            (b".nv.information\0", Tag::Other),
            (b".nv.constant3\0", Tag::Constant(3, false)),
            (b".nv.constant3", Tag::Constant(3, false)),
            (b".nv.constant0.kernel\0", Tag::Constant(0, true)),
            (b".nv.constant17.k", Tag::Constant(17, true)),
            (b".nv.constant\0", Tag::Other),
            (b".nv.constant.k\0", Tag::Other),
            (b".nv.constant+3\0", Tag::Other),
            (b".nv.constant3x\0", Tag::Other),
            (b".nv.constant256\0", Tag::Other),
            (b".nv.constant1000\0", Tag::Other),
            (b".nv.shared.k\0", Tag::Shared),
            (b".nv.shared.reserved.0\0", Tag::SharedReserved),
            (b".nv.global\0", Tag::Global),
            (b".nv.global.init\0", Tag::GlobalInit),
            (b".nv.global.initial\0", Tag::Other),
            (b".nv.merc.nv.info.k\0", Tag::Mercury),
            (b".nv.capmerc.text.k\0", Tag::Mercury),
            (b".nv.compat\0", Tag::Compat),
            (b"", Tag::Other),
        ] {
            assert_eq!(Tag::of(name).0, tag, "{}", name.escape_ascii());
        }
    }
}
