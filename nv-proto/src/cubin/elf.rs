//! The ELF structures under a cubin: 64-bit, little-endian.

use core::ffi::CStr;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// `Elf64_Ehdr`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) ident: [u8; 16],
    pub(crate) kind: U16,
    pub(crate) machine: U16,
    pub(crate) version: U32,
    pub(crate) entry: U64,
    pub(crate) phoff: U64,
    pub(crate) shoff: U64,
    pub(crate) flags: U32,
    pub(crate) ehsize: U16,
    pub(crate) phentsize: U16,
    pub(crate) phnum: U16,
    pub(crate) shentsize: U16,
    pub(crate) shnum: U16,
    pub(crate) shstrndx: U16,
}

/// `Elf64_Shdr`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct SectionRaw {
    pub(crate) name: U32,
    pub(crate) kind: U32,
    pub(crate) flags: U64,
    pub(crate) addr: U64,
    pub(crate) offset: U64,
    pub(crate) size: U64,
    pub(crate) link: U32,
    pub(crate) info: U32,
    pub(crate) addralign: U64,
    pub(crate) entsize: U64,
}

/// `Elf64_Sym`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct SymbolRaw {
    pub(crate) name: U32,
    pub(crate) info: u8,
    pub(crate) other: u8,
    pub(crate) shndx: U16,
    pub(crate) value: U64,
    pub(crate) size: U64,
}

/// `Elf64_Rel`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RelRaw {
    pub(crate) offset: U64,
    pub(crate) kind: U32,
    pub(crate) symbol: U32,
}

/// `Elf64_Rela`.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RelaRaw {
    pub(crate) rel: RelRaw,
    pub(crate) addend: U64,
}

/// What a string table holds from `offset` on; nothing outside it.
pub(crate) fn from(table: &str, offset: u32) -> &str {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    table.get(start..).unwrap_or("")
}

/// The string at `offset` of a string table; empty outside it.
pub(crate) fn string(table: &str, offset: u32) -> &str {
    let rest = from(table, offset);
    match CStr::from_bytes_until_nul(rest.as_bytes()) {
        Ok(found) => rest.get(..found.count_bytes()).unwrap_or(rest),
        Err(_) => rest,
    }
}

/// Whether the string at `offset` is `name`: takes time by the length of `name`, not of the string.
pub(crate) fn is(table: &str, offset: u32, name: &str) -> bool {
    let rest = from(table, offset).as_bytes();
    matches!(rest.strip_prefix(name.as_bytes()), Some([] | [0, ..])) && !name.contains('\0')
}

/// `offset` and `size` as a range of `bytes`, where they are one.
pub(crate) fn range(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    bytes.get(start..end)
}

pub(crate) const SHT_PROGBITS: u32 = 1;
pub(crate) const SHT_SYMTAB: u32 = 2;
pub(crate) const SHT_RELA: u32 = 4;
pub(crate) const SHT_NOBITS: u32 = 8;
pub(crate) const SHT_REL: u32 = 9;
pub(crate) const SHT_SYMTAB_SHNDX: u32 = 18;
pub(crate) const SHF_ALLOC: u64 = 2;
pub(crate) const SHN_LORESERVE: u16 = 0xff00;
pub(crate) const SHN_XINDEX: u16 = 0xffff;
pub(crate) const STB_WEAK: u8 = 2;
pub(crate) const ET_REL: u16 = 1;
