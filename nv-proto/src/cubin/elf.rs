//! The ELF structures under a cubin: 64-bit, little-endian.

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

impl Header {
    /// Whether it is that of a 64-bit little-endian ELF file for NVIDIA GPUs.
    pub(crate) fn is_cubin(&self) -> bool {
        self.ident.starts_with(b"\x7fELF\x02\x01") && self.machine.get() == super::content::EM_CUDA
    }
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
#[allow(
    clippy::inline_always,
    reason = "names are most of what a listing does, which takes 4 % fewer instructions without the call"
)]
#[inline(always)]
pub(crate) fn string(table: &str, offset: u32) -> &str {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let Some(rest) = table.get(start..) else {
        return "";
    };
    // Names differ in length from one to the next, so a loop that ends with the name costs a wrongly guessed branch
    // each time: a whole block, which nearly all names end within, is looked at instead, without any.
    if let Some(block) = rest.as_bytes().first_chunk() {
        let length = until_nul_in(block);
        if length < BLOCK {
            return rest.get(..length).unwrap_or("");
        }
    }
    long_string(rest)
}

/// The string at the start of `rest` where it may be long, or is near the end of the table.
#[inline(never)]
fn long_string(rest: &str) -> &str {
    rest.get(..until_nul(rest.as_bytes())).unwrap_or("")
}

/// How many bytes are looked at together.
const BLOCK: usize = 32;

/// How many bytes of a block there are before the first zero; [`BLOCK`] or more where there is none.
///
/// Each byte stands for its place, counted from 1, where it is zero, and for more than any place where it is not; the
/// least of them is found by halves. Written so, the compiler makes some 25 vector instructions of it.
#[allow(
    clippy::inline_always,
    reason = "as short as a call's frame, and for all names"
)]
#[inline(always)]
fn until_nul_in(block: &[u8; BLOCK]) -> usize {
    const PLACES: [u8; BLOCK] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
        26, 27, 28, 29, 30, 31, 32,
    ];
    let mut places = PLACES;
    for (place, byte) in places.iter_mut().zip(block) {
        if *byte != 0 {
            *place = u8::MAX;
        }
    }
    let [a, b, c, d] = lesser::<8, 4>(lesser::<16, 8>(lesser::<BLOCK, 16>(places)));
    usize::from(a.min(b).min(c.min(d))).wrapping_sub(1)
}

/// The lesser of each byte of the first half and its fellow of the second.
#[inline]
fn lesser<const WHOLE: usize, const HALF: usize>(bytes: [u8; WHOLE]) -> [u8; HALF] {
    let (first, second) = bytes.split_at(HALF);
    let mut least = [u8::MAX; HALF];
    for (least, (a, b)) in least.iter_mut().zip(first.iter().zip(second)) {
        *least = *a.min(b);
    }
    least
}

/// How many bytes there are before the first zero, eight at a time.
#[inline]
fn until_nul(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut length = 0usize;
    for word in words {
        let word = u64::from_le_bytes(*word);
        // The highest bit of a byte that is zero, or above 0x80: one test for the text that names are made of.
        let candidates = word.wrapping_sub(0x0101_0101_0101_0101) & 0x8080_8080_8080_8080;
        if candidates != 0 {
            // The lowest bit that is set is that of the first zero byte; those above it may be false.
            let zeros = candidates & !word;
            if zeros != 0 {
                // At most 7.
                let byte = usize::try_from(zeros.trailing_zeros() / 8).unwrap_or(0);
                return length.wrapping_add(byte);
            }
        }
        length = length.wrapping_add(8);
    }
    length.wrapping_add(rest.iter().take_while(|byte| **byte != 0).count())
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

#[cfg(test)]
mod tests {
    use std::borrow::ToOwned;
    use std::string::String;

    use super::{is, string};

    #[test]
    fn strings_end_at_the_first_zero_or_with_the_table() {
        for length in 0..100 {
            for start in 0..12 {
                let mut table = "x".repeat(start);
                let name: String = (0u8..)
                    .take(length)
                    .map(|n| char::from(b'a' + n % 26))
                    .collect();
                table += &name;
                let offset = u32::try_from(start).unwrap();
                assert_eq!(string(&table, offset), name);
                table.push('\0');
                // With less than a block behind it, and with more.
                for behind in ["", "behind", &"b".repeat(33), &"b\0".repeat(33)] {
                    let table = table.clone() + behind;
                    assert_eq!(string(&table, offset), name);
                }
                table += "behind";
                assert!(is(&table, offset, &name));
                assert!(!is(&table, offset, &(name.clone() + "x")));
                assert_eq!(is(&table, offset, ""), name.is_empty());
            }
        }
        assert_eq!(string("abc", 3), "");
        assert_eq!(string("abc", 4), "");
        assert_eq!(string("", u32::MAX), "");
    }

    #[test]
    fn text_that_is_not_ascii_is_searched_right() {
        // Bytes of 0x80 and 0x81 are those that a search of eight bytes at a time may take for zeros.
        for text in [
            "\u{80}\u{81}\u{100}",
            "äöüßäöüßäöüß",
            "a\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}b",
            "日本語の名前",
        ] {
            let mut table = String::from(text);
            table.push('\0');
            table += "\u{80}\u{80}\u{80}\u{80}";
            assert_eq!(string(&table, 0), text);
            assert_eq!(string(&(table + &"\u{80}".repeat(20)), 0), text);
        }
        // An offset within a character is none that a file may have.
        assert_eq!(string("ä\0", 1), "");
        assert_eq!(string(&("ä\0".to_owned() + &"x".repeat(40)), 1), "");
    }
}
