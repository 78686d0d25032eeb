//! Relocations: where an address that the linker could not know goes, and into which bits.
//!
//! A type's name tells its field: `R_CUDA_ABS32_LO_32` puts the low 32 bits of the address at bit 32 of a 16-byte
//! instruction, `R_CUDA_ABS55_16_34` puts bits 2 to 9 at bit 16 and bits 10 to 56 at bit 34. Files for chips before
//! Hopper carry a table of the newest types' fields for older drivers (`.nv.rel.action`), with which the table here
//! is compared in tests; call targets were also checked with NVIDIA's disassembler, which prints the address that
//! was put in.

use core::fmt;

use super::elf::{self, RelRaw, RelaRaw};
use super::error::Error;
use super::names;
use super::section::{Section, SymbolIndex};
use super::{Cubin, SectionIndex, bad};

/// A relocation's type; an open set.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RelocationType(pub u32);

/// The number of the first `R_MERCURY_*` type.
pub const MERCURY_BASE: u32 = 0x1_0000;

impl RelocationType {
    /// NVIDIA's name, such as `R_CUDA_64`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let (table, number): (&[&str], u32) = match self.0.checked_sub(MERCURY_BASE) {
            Some(number) => (&names::R_MERCURY, number),
            None => (&names::R_CUDA, self.0),
        };
        usize::try_from(number)
            .ok()
            .and_then(|at| table.get(at))
            .copied()
    }

    /// Which bits of the value go where: two pieces at most; none for a type that is not applied.
    #[must_use]
    pub const fn pieces(self) -> [Option<Piece>; 2] {
        match self.action() {
            Some(Action::Patch(Patch {
                first,
                second,
                bank,
                ..
            })) => match (second, bank) {
                (Some(_), _) => [Some(first), second],
                (None, bank) => [Some(first), bank],
            },
            _ => [None, None],
        }
    }

    /// What a loader does with it; `None` where the type is unknown.
    pub(super) const fn action(self) -> Option<Action> {
        use Action::{Nothing, Patch as Do, Refuse};
        Some(match self.0 {
            // Nothing to do; and the linker's order to clear what belongs to functions that it dropped.
            0 | 72 | 73 => Nothing,
            1 | 3 | 103 => Do(Patch::data(4, 0)),
            2 | 4 | 102 => Do(Patch::data(8, 0)),
            70 => Do(Patch::data(4, 0).cut()),
            71 => Do(Patch::data(4, 32).cut()),
            // R_CUDA_8_0 to 8_56 and their like: one byte of an address that is not aligned.
            kind @ 76..=83 => Do(Patch::data(1, Self::byte(kind, 76)).cut()),
            kind @ 84..=91 => Do(Patch::data(1, Self::byte(kind, 84)).cut()),
            kind @ 104..=111 => Do(Patch::data(1, Self::byte(kind, 104)).cut()),
            55 => Do(Patch::instruction(Piece::new(0, 32, 32))),
            56 | 112 => Do(Patch::instruction(Piece::new(0, 32, 32)).cut()),
            57 | 113 => Do(Patch::instruction(Piece::new(32, 32, 32)).cut()),
            58 => Do(Patch::instruction(Piece::new(2, 47, 34))),
            59 => Do(Patch::instruction(Piece::new(0, 16, 32)).offset_in_bank()),
            60 => Do(Patch::instruction(Piece::new(0, 24, 32)).offset_in_bank()),
            74 => Do(Patch::instruction(Piece::new(0, 24, 40)).offset_in_bank()),
            75 => Do(Patch::instruction(Piece::new(2, 8, 16)).and(Piece::new(10, 47, 34))),
            100 => Do(Patch::instruction(Piece::new(0, 20, 44)).offset_in_bank()),
            114 => Do(Patch::instruction(Piece::new(2, 8, 16)).and(Piece::new(10, 48, 34))),
            64 => Do(Patch::instruction(Piece::new(2, 14, 40)).and_bank(Piece::new(0, 5, 54))),
            66 => Do(Patch::instruction(Piece::new(0, 16, 38)).and_bank(Piece::new(0, 5, 54))),
            115 => Do(Patch::instruction(Piece::new(0, 17, 37)).and_bank(Piece::new(0, 5, 54))),
            6..=9 | 19..=23 | 26 | 29 | 30 | 37 | 51 | 52 | 65 | 101 => Refuse(
                "texture and surface references were dropped in CUDA 12: pass texture and surface objects instead",
            ),
            5 | 10..=18 | 24 | 25 | 27 | 28 | 31..=33 | 36 | 38..=50 | 53 | 54 => {
                Refuse("it patches instructions of chips before Volta")
            }
            34 | 35 | 61..=63 | 92..=99 => Refuse(
                "function descriptors belong to launches from the device, which need the vendor's runtime",
            ),
            67..=69 => Refuse("it patches whole instructions, which only a linker does"),
            kind if kind >= MERCURY_BASE && kind < MERCURY_BASE + 64 => {
                Refuse("it belongs to the Mercury copy of the code, which is not what runs")
            }
            _ => return None,
        })
    }

    /// From which bit `R_CUDA_8_0` and its seven followers take their byte.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "kind - first is below 8"
    )]
    const fn byte(kind: u32, first: u32) -> u8 {
        (kind - first) as u8 * 8
    }
}

impl fmt::Display for RelocationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#x})", self.0),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

/// What a loader does with a relocation type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Action {
    /// Nothing.
    Nothing,
    /// Put a value into a field.
    Patch(Patch),
    /// Refuse it, and why.
    Refuse(&'static str),
}

/// `width` bits of a value, from bit `from` of it, that go to bit `at` of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Piece {
    /// The lowest bit of the value that is taken.
    pub from: u8,
    /// How many bits.
    pub width: u8,
    /// Where the lowest of them goes.
    pub at: u8,
}

impl Piece {
    const fn new(from: u8, width: u8, at: u8) -> Self {
        Self { from, width, at }
    }

    /// `field` with the value's bits in it.
    const fn put(self, field: u128, value: u128) -> u128 {
        let mask = low_bits(self.width).unbounded_shl(self.at as u32);
        let bits = value.unbounded_shr(self.from as u32) & low_bits(self.width);
        field & !mask | bits.unbounded_shl(self.at as u32)
    }

    /// The value's bits that are in `field`.
    const fn take(self, field: u128) -> u128 {
        (field.unbounded_shr(self.at as u32) & low_bits(self.width)).unbounded_shl(self.from as u32)
    }
}

/// The lowest `width` bits.
const fn low_bits(width: u8) -> u128 {
    1u128.unbounded_shl(width as u32).wrapping_sub(1)
}

/// How a value gets into bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Patch {
    /// How many bytes hold the field: 16 for an instruction.
    pub(super) bytes: u8,
    first: Piece,
    second: Option<Piece>,
    /// Where the number of a constant bank goes.
    pub(super) bank: Option<Piece>,
    /// Whether it takes a part of a value on purpose, so that other bits of it may be set.
    takes_part: bool,
    /// Whether, for a symbol in a constant bank, it takes the offset in the bank in place of an address.
    pub(super) offset_in_bank: bool,
}

impl Patch {
    const fn new(bytes: u8, first: Piece) -> Self {
        Self {
            bytes,
            first,
            second: None,
            bank: None,
            takes_part: false,
            offset_in_bank: false,
        }
    }

    /// Whole bytes that are the value's bits from `from` on.
    const fn data(bytes: u8, from: u8) -> Self {
        Self::new(bytes, Piece::new(from, bytes.saturating_mul(8), 0))
    }

    const fn instruction(first: Piece) -> Self {
        Self::new(16, first)
    }

    const fn and(self, second: Piece) -> Self {
        Self {
            second: Some(second),
            ..self
        }
    }

    const fn and_bank(self, bank: Piece) -> Self {
        Self {
            bank: Some(bank),
            offset_in_bank: true,
            ..self
        }
    }

    const fn cut(self) -> Self {
        Self {
            takes_part: true,
            ..self
        }
    }

    const fn offset_in_bank(self) -> Self {
        Self {
            offset_in_bank: true,
            ..self
        }
    }

    /// The value that the field holds now: the addend of a `SHT_REL` relocation.
    pub(super) fn value_in(self, field: u128) -> u64 {
        let value = self.first.take(field) | self.second.map_or(0, |second| second.take(field));
        // No piece reaches above bit 63.
        u64::try_from(value).unwrap_or(0)
    }

    /// `field` with the value, and the number of a constant bank where it has a place, in it, and its other bits as
    /// they were; `None` where they do not fit.
    pub(super) fn put(self, field: u128, value: u64, bank: u8) -> Option<u128> {
        let (value, bank) = (u128::from(value), u128::from(bank));
        let all = |piece: Piece| low_bits(piece.width).unbounded_shl(piece.from.into());
        let taken = all(self.first) | self.second.map_or(0, all);
        if !self.takes_part && value & !taken != 0
            || self.bank.is_some_and(|piece| bank & !all(piece) != 0)
        {
            return None;
        }
        let field = self.first.put(field, value);
        let field = self.second.map_or(field, |second| second.put(field, value));
        Some(self.bank.map_or(field, |piece| piece.put(field, bank)))
    }
}

/// A relocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Relocation {
    /// Its type.
    pub kind: RelocationType,
    /// Where in the section to be changed.
    pub offset: u64,
    /// The symbol whose address it needs.
    pub symbol: SymbolIndex,
    /// What is added to the address; `None` where the field itself holds it (`SHT_REL`).
    pub addend: Option<i64>,
}

/// A section of relocations.
#[derive(Clone, Copy, Debug)]
pub struct RelocationSection<'a> {
    section: Section<'a>,
    target: Section<'a>,
    entries: Entries<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Entries<'a> {
    Rel(&'a [RelRaw]),
    Rela(&'a [RelaRaw]),
}

logged!(
    RelocationSection<'_>,
    relocations,
    "{=str}: {=usize} relocations of {=str}",
    relocations.section.name(),
    relocations.len(),
    relocations.target.name()
);

impl<'a> RelocationSection<'a> {
    /// The section that holds the relocations.
    #[must_use]
    pub const fn section(&self) -> Section<'a> {
        self.section
    }

    /// The section that they change.
    #[must_use]
    pub const fn target(&self) -> Section<'a> {
        self.target
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.entries {
            Entries::Rel(entries) => entries.len(),
            Entries::Rela(entries) => entries.len(),
        }
    }

    /// Whether there are none, as in files that a linker has finished.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The relocations in order.
    pub fn iter(&self) -> impl Iterator<Item = Relocation> + Clone + use<'a> {
        let (rel, rela): (&[RelRaw], &[RelaRaw]) = match self.entries {
            Entries::Rel(entries) => (entries, &[]),
            Entries::Rela(entries) => (&[], entries),
        };
        let of = |raw: &RelRaw, addend| Relocation {
            kind: RelocationType(raw.kind.get()),
            offset: raw.offset.get(),
            symbol: SymbolIndex(raw.symbol.get()),
            addend,
        };
        let rel = rel.iter().map(move |raw| of(raw, None));
        rel.chain(
            rela.iter()
                .map(move |raw| of(&raw.rel, Some(raw.addend.get().cast_signed()))),
        )
    }
}

impl<'a> Cubin<'a> {
    /// The sections of relocations, in the file's order. Those of the Mercury copy are not among them.
    pub fn relocation_sections(
        &self,
    ) -> impl Iterator<Item = Result<RelocationSection<'a>, Error<'a>>> + use<'a> {
        let cubin = *self;
        self.sections()
            .filter(|section| matches!(section.kind().0, elf::SHT_REL | elf::SHT_RELA))
            .map(move |section| cubin.relocations_of(section))
    }

    fn relocations_of(&self, section: Section<'a>) -> Result<RelocationSection<'a>, Error<'a>> {
        let target = self
            .section(SectionIndex(section.info()))
            .filter(|target| target.index().0 != 0)
            .ok_or(bad("sh_info", section.name(), 0, section.info().into()))?;
        if section.link() != self.symbol_table().0 {
            return Err(bad("sh_link", section.name(), 0, section.link().into()));
        }
        let entries = if section.kind().0 == elf::SHT_RELA {
            Entries::Rela(super::records(&section)?)
        } else {
            Entries::Rel(super::records(&section)?)
        };
        Ok(RelocationSection {
            section,
            target,
            entries,
        })
    }
}
