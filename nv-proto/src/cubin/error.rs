//! What is wrong with a cubin, or with what was asked of it.

use core::fmt;

use super::content::Content;
use super::reloc::RelocationType;
use super::{SectionIndex, SymbolIndex};

/// Why a cubin could not be read, placed or relocated. Names are borrowed from the file's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error<'a> {
    /// The bytes are something else.
    #[error("this is no cubin: {found}; {}", found.remedy())]
    NotCubin {
        /// What they look like.
        found: Content,
    },
    /// The bytes hold no fatbin.
    #[error("there is no fatbin here: {found}")]
    NotFatbin {
        /// What they look like.
        found: Content,
    },
    /// The file ends before something that it says it holds.
    #[error(
        "{what}{}: {needed} bytes at offset {offset:#x} are needed and {available} are there",
        Quoted(name)
    )]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Its name, where it has one.
        name: &'a str,
        /// Where, in bytes: in the file, or in the section named.
        offset: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// A value makes no sense.
    #[error("{what} of {name:?} cannot be {value:#x} (offset {offset:#x})")]
    BadValue {
        /// The value's name.
        what: &'static str,
        /// The section, symbol or file part that holds it.
        name: &'a str,
        /// Where, in bytes: in the file, or in the section named.
        offset: u64,
        /// The value.
        value: u64,
    },
    /// A string table is not UTF-8.
    #[error("string table {section:?} holds no UTF-8 at offset {offset:#x}")]
    BadStrings {
        /// The table's section number.
        section: SectionIndex,
        /// Where in the table.
        offset: u64,
    },
    /// No kernel has this name.
    #[error("the file has no kernel {name:?}; it has {count}")]
    NoKernel {
        /// The name asked for.
        name: &'a str,
        /// How many kernels there are.
        count: usize,
    },
    /// A kernel lacks something without which it cannot run.
    #[error("kernel {kernel:?} has no {what}")]
    Missing {
        /// The kernel.
        kernel: &'a str,
        /// What it lacks.
        what: &'static str,
    },
    /// What the caller gave is too short.
    #[error("{what} holds {available} and {needed} are needed")]
    BufferTooSmall {
        /// What is too short, with its unit.
        what: &'static str,
        /// How much is needed.
        needed: u64,
        /// How much there is.
        available: u64,
    },
    /// The image would be larger than the address space, or sections overlap in the file.
    #[error("section {section:?} makes the image {size:#x} bytes, above the limit of {limit:#x}")]
    TooLarge {
        /// The section that passes the limit.
        section: &'a str,
        /// The size that it would make.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The image's base is not aligned.
    #[error("an image cannot lie at {base:#x}: it needs a multiple of {align:#x}")]
    MisalignedBase {
        /// The base asked for.
        base: u64,
        /// What it must be a multiple of.
        align: u64,
    },
    /// A relocation type that no table names.
    #[error("relocation type {kind} in {section:?} at offset {offset:#x} is unknown")]
    UnknownRelocation {
        /// The type.
        kind: RelocationType,
        /// The section to be changed.
        section: &'a str,
        /// Where in it.
        offset: u64,
    },
    /// A relocation that this loader refuses, and why.
    #[error("relocation {kind} in {section:?} at offset {offset:#x} cannot be applied: {why}")]
    UnsupportedRelocation {
        /// The type.
        kind: RelocationType,
        /// The section to be changed.
        section: &'a str,
        /// Where in it.
        offset: u64,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// A relocation lies outside its section.
    #[error("relocation {kind} at offset {offset:#x} lies outside {section:?} of {size:#x} bytes")]
    RelocationOutside {
        /// The type.
        kind: RelocationType,
        /// The section to be changed.
        section: &'a str,
        /// Where in it.
        offset: u64,
        /// The section's size.
        size: u64,
    },
    /// A relocation's value does not fit its field.
    #[error(
        "relocation {kind} in {section:?} at offset {offset:#x} cannot hold {symbol:?} at {value:#x}"
    )]
    RelocationOverflow {
        /// The type.
        kind: RelocationType,
        /// The section to be changed.
        section: &'a str,
        /// Where in it.
        offset: u64,
        /// The symbol.
        symbol: &'a str,
        /// The value.
        value: u64,
    },
    /// A relocation's symbol lies in a section that has no place in the image.
    #[error(
        "relocation {kind} in {section:?} at offset {offset:#x} needs {symbol:?}, which has no address"
    )]
    NoAddress {
        /// The type.
        kind: RelocationType,
        /// The section to be changed.
        section: &'a str,
        /// Where in it.
        offset: u64,
        /// The symbol.
        symbol: &'a str,
    },
    /// A symbol that is defined nowhere is needed.
    #[error(
        "{symbol:?} is undefined (needed in {section:?} at offset {offset:#x}): \
         link its object in, or give it an address"
    )]
    Undefined {
        /// The first such symbol.
        symbol: &'a str,
        /// Its number.
        index: SymbolIndex,
        /// The section that needs it.
        section: &'a str,
        /// Where in it.
        offset: u64,
    },
}

/// A name in quotes after a space; nothing where there is no name.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(f, " {:?}", self.0)
        }
    }
}
