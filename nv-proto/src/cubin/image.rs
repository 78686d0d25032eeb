//! A cubin in device memory: which section goes where, and the relocation of what lies there.

use super::elf;
use super::error::Error;
use super::kernel::Kernel;
use super::reloc::{Action, Patch, Relocation};
use super::section::{Section, SectionIndex, Symbol, SymbolSection, SymbolType, Tag};
use super::{Cubin, bad, length};
use crate::unit::GpuVa;

/// How far past the end of code the GPU may fetch instructions: keep that much mapped after an image.
pub const PREFETCH_SLACK: u64 = 4096;

/// Which sections an image holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Sections {
    /// Those that running the code needs.
    #[default]
    Loaded,
    /// Those, and every other section with contents, such as debug data and the Mercury copy.
    All,
}

/// How an image is laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layout {
    /// What every section's offset is at least a multiple of: a power of two.
    pub section_align: u64,
    /// Which sections it holds.
    pub sections: Sections,
}

impl Default for Layout {
    /// Sections at multiples of 256, as constant banks need on every generation.
    fn default() -> Self {
        Self {
            section_align: 256,
            sections: Sections::Loaded,
        }
    }
}

/// Where the sections of a cubin go in device memory.
///
/// Sections with contents come first, in the file's order; zeroed storage (`.nv.global`) comes last, so that it
/// need not be uploaded.
#[derive(Clone, Debug)]
pub struct ImagePlan<'a, 's> {
    cubin: Cubin<'a>,
    /// The offset of each section, or [`NOT_PLACED`].
    places: &'s [u64],
    data_size: u64,
    size: u64,
    align: u64,
}

logged!(
    ImagePlan<'_, '_>,
    plan,
    "image of {=u64:#x} bytes, {=u64:#x} of them data, for {}",
    plan.size,
    plan.data_size,
    plan.cubin.sm()
);

const NOT_PLACED: u64 = u64::MAX;
/// GPU addresses have at most 57 bits; half of that is more than any module takes.
const MAX_IMAGE: u64 = 1 << 48;
/// The largest alignment that a section may ask for: that of a small page.
const MAX_ALIGN: u64 = 1 << 16;

impl<'a> Cubin<'a> {
    /// Says where its sections go. `places` needs [`Cubin::section_count`] elements; what they hold before does not
    /// matter.
    ///
    /// # Errors
    /// When `places` is too short, an alignment is no power of two, or sections overlap in the file so that an image
    /// would be larger than it.
    pub fn plan<'s>(
        &self,
        layout: Layout,
        places: &'s mut [u64],
    ) -> Result<ImagePlan<'a, 's>, Error<'a>> {
        let wanted = self.section_count();
        let available = places.len();
        let Some(places) = places.get_mut(..wanted) else {
            return Err(Error::BufferTooSmall {
                what: "space for places of sections",
                needed: u64::try_from(wanted).unwrap_or(u64::MAX),
                available: u64::try_from(available).unwrap_or(u64::MAX),
            });
        };
        let mut cursor = Cursor {
            end: 0,
            align: align_of("layout", layout.section_align)?,
            data: 0,
        };
        let floor = cursor.align;
        places.fill(NOT_PLACED);
        let all = layout.sections == Sections::All;
        for (section, place) in self.sections().zip(places.iter_mut()) {
            let data = section.is_loaded() || all && section.kind().0 == elf::SHT_PROGBITS;
            if data && !section.kind().is_nobits() {
                // No two sections share bytes of a real file, so an image is at most as large as that and padding.
                cursor.data = cursor.data.saturating_add(section.size());
                if cursor.data > length(self.bytes()) {
                    return Err(Error::TooLarge {
                        section: section.name(),
                        size: cursor.data,
                        limit: length(self.bytes()),
                    });
                }
                *place = cursor.place(&section, floor)?;
            }
        }
        let data_size = cursor.end;
        for (section, place) in self.sections().zip(places.iter_mut()) {
            if section.is_loaded() && section.kind().is_nobits() {
                *place = cursor.place(&section, floor)?;
            }
        }
        Ok(ImagePlan {
            cubin: *self,
            places,
            data_size,
            size: cursor.end,
            align: cursor.align,
        })
    }
}

/// Where the next section goes.
struct Cursor {
    end: u64,
    align: u64,
    data: u64,
}

impl Cursor {
    fn place<'a>(&mut self, section: &Section<'a>, floor: u64) -> Result<u64, Error<'a>> {
        let align = align_of(section.name(), section.alignment())?.max(floor);
        let start = self.end.checked_next_multiple_of(align);
        let end = start.and_then(|start| start.checked_add(section.size()));
        match (start, end) {
            (Some(start), Some(end)) if end <= MAX_IMAGE => {
                self.end = end;
                self.align = self.align.max(align);
                Ok(start)
            }
            _ => {
                let size = end.unwrap_or(u64::MAX);
                Err(Error::TooLarge {
                    section: section.name(),
                    size,
                    limit: MAX_IMAGE,
                })
            }
        }
    }
}

fn align_of(name: &str, align: u64) -> Result<u64, Error<'_>> {
    if align.is_power_of_two() && align <= MAX_ALIGN {
        Ok(align)
    } else {
        Err(bad("alignment", name, 0, align))
    }
}

impl<'a> ImagePlan<'a, '_> {
    /// Bytes of the image in device memory, zeroed storage included.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of it that have contents: what is to be uploaded. The rest is zero.
    #[must_use]
    pub const fn data_size(&self) -> u64 {
        self.data_size
    }

    /// What its address must be a multiple of.
    #[must_use]
    pub const fn align(&self) -> u64 {
        self.align
    }

    /// The offset of a section in the image; `None` where it has no place.
    #[must_use]
    pub fn section(&self, index: SectionIndex) -> Option<u64> {
        let place = self.places.get(usize::try_from(index.0).ok()?).copied()?;
        (place != NOT_PLACED).then_some(place)
    }

    /// The offset of a symbol in the image; `None` where its section has no place.
    #[must_use]
    pub fn symbol(&self, symbol: &Symbol<'_>) -> Option<u64> {
        match symbol.section() {
            SymbolSection::In(section) => self.section(section)?.checked_add(symbol.value()),
            _ => None,
        }
    }

    /// The offset of a kernel's first instruction in the image.
    #[must_use]
    pub fn entry(&self, kernel: &Kernel<'_>) -> Option<u64> {
        self.section(kernel.text)?.checked_add(kernel.entry)
    }

    /// A variable by name: its offset in the image and its size.
    ///
    /// A variable in a constant bank is found too: a store to it is seen by launches that follow.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        self.variable_of(&self.cubin.symbol_by_name(name)?)
    }

    /// The variable that a symbol is: its offset in the image and its size; `None` for any other symbol.
    #[must_use]
    pub fn variable_of(&self, symbol: &Symbol<'_>) -> Option<(u64, u64)> {
        if symbol.kind() != SymbolType::Object {
            return None;
        }
        let SymbolSection::In(section) = symbol.section() else {
            return None;
        };
        match self.cubin.section(section)?.tag() {
            Tag::Global | Tag::GlobalInit | Tag::Constant(_, false) => {
                Some((self.symbol(symbol)?, symbol.size()))
            }
            _ => None,
        }
    }

    /// Fills `image` with the sections' contents, and everything between and after them with zero.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] below [`ImagePlan::data_size`] bytes.
    pub fn place_into(&self, image: &mut [u8]) -> Result<(), Error<'a>> {
        self.check_size(image)?;
        let mut end = 0usize;
        for section in self.cubin.sections() {
            let data = section.data();
            let Some(place) = self.section(section.index()).filter(|_| !data.is_empty()) else {
                continue;
            };
            let start = usize::try_from(place).unwrap_or(usize::MAX);
            // Places ascend, so what lies between the last section and this one is padding.
            if let Some(padding) = image.get_mut(end..start) {
                padding.fill(0);
            }
            end = start.saturating_add(data.len());
            if let Some(target) = image.get_mut(start..end) {
                target.copy_from_slice(data);
            }
        }
        if let Some(rest) = image.get_mut(end..) {
            rest.fill(0);
        }
        Ok(())
    }

    fn check_size(&self, image: &[u8]) -> Result<(), Error<'a>> {
        if length(image) < self.data_size {
            return Err(Error::BufferTooSmall {
                what: "image (bytes)",
                needed: self.data_size,
                available: length(image),
            });
        }
        Ok(())
    }

    /// Makes a filled image right for its address in device memory.
    ///
    /// It may be repeated with another address: each field is computed from the file, not from the image.
    ///
    /// # Errors
    /// The first relocation that cannot be applied, with its type, section and offset; relocations before it have
    /// been applied then. An undefined symbol is an error: see [`ImagePlan::undefined`] for all of them.
    pub fn relocate(&self, image: &mut [u8], base: GpuVa) -> Result<(), Error<'a>> {
        self.relocate_with(image, base, |_| None)
    }

    /// Like [`ImagePlan::relocate`], with addresses for undefined symbols from `resolve`.
    ///
    /// # Errors
    /// As [`ImagePlan::relocate`].
    pub fn relocate_with(
        &self,
        image: &mut [u8],
        base: GpuVa,
        mut resolve: impl FnMut(&Symbol<'a>) -> Option<GpuVa>,
    ) -> Result<(), Error<'a>> {
        self.check_size(image)?;
        if !base.is_aligned(self.align) {
            return Err(Error::MisalignedBase {
                base: base.0,
                align: self.align,
            });
        }
        for relocations in self.cubin.relocation_sections() {
            let relocations = relocations?;
            let target = relocations.target();
            let Some(place) = self.section(target.index()) else {
                continue;
            };
            let original = target.data();
            let section = usize::try_from(place)
                .ok()
                .and_then(|start| image.get_mut(start..start.checked_add(original.len())?))
                .unwrap_or_default();
            for relocation in relocations.iter() {
                let site = Site {
                    target: &target,
                    relocation,
                };
                let Some(patch) = site.patch()? else { continue };
                let symbol = self.cubin.symbol(relocation.symbol);
                let symbol = symbol.ok_or(bad(
                    "symbol of a relocation",
                    target.name(),
                    relocation.offset,
                    relocation.symbol.0.into(),
                ))?;
                let (range, field) = site.field(patch, original)?;
                let (address, bank) = self.address(&site, patch, &symbol, base, &mut resolve)?;
                let addend = relocation
                    .addend
                    .map_or(patch.value_in(field), i64::cast_unsigned);
                let value = address.wrapping_add(addend);
                let field = patch
                    .put(field, value, bank)
                    .ok_or(Error::RelocationOverflow {
                        kind: relocation.kind,
                        section: target.name(),
                        offset: relocation.offset,
                        symbol: symbol.name(),
                        value,
                    })?;
                if let Some(bytes) = section.get_mut(range) {
                    for (byte, new) in bytes.iter_mut().zip(field.to_le_bytes()) {
                        *byte = new;
                    }
                }
            }
        }
        Ok(())
    }

    /// What a relocation's symbol stands for: an address, or an offset in a constant bank with the bank's number.
    fn address(
        &self,
        site: &Site<'_, 'a>,
        patch: Patch,
        symbol: &Symbol<'a>,
        base: GpuVa,
        resolve: &mut impl FnMut(&Symbol<'a>) -> Option<GpuVa>,
    ) -> Result<(u64, u8), Error<'a>> {
        let Site { target, relocation } = site;
        let (kind, section, offset) = (relocation.kind, target.name(), relocation.offset);
        let no_address = Error::NoAddress {
            kind,
            section,
            offset,
            symbol: symbol.name(),
        };
        match symbol.section() {
            SymbolSection::In(index) => {
                let home = self.cubin.section(index).map(|home| home.tag());
                match home {
                    Some(Tag::Constant(bank, _)) if patch.offset_in_bank => {
                        return Ok((symbol.value(), bank));
                    }
                    _ if patch.bank.is_some() => return Err(no_address),
                    _ => {}
                }
                let place = self
                    .symbol(symbol)
                    .and_then(|place| base.checked_add(place));
                Ok((place.ok_or(no_address)?.0, 0))
            }
            SymbolSection::Reserved(_) => Ok((symbol.value(), 0)),
            SymbolSection::Undefined => match resolve(symbol) {
                Some(address) => Ok((address.0, 0)),
                None => Err(Error::Undefined {
                    symbol: symbol.name(),
                    index: symbol.index(),
                    section,
                    offset,
                }),
            },
        }
    }

    /// The relocations of the image that need a symbol which the file does not define: each with that symbol.
    pub fn undefined(&self) -> impl Iterator<Item = (Symbol<'a>, Relocation)> + '_ {
        let sections = self.cubin.relocation_sections().flatten();
        sections
            .filter(|relocations| self.section(relocations.target().index()).is_some())
            .flat_map(|relocations| relocations.iter())
            .filter_map(|relocation| {
                let symbol = self.cubin.symbol(relocation.symbol)?;
                (symbol.section() == SymbolSection::Undefined).then_some((symbol, relocation))
            })
    }
}

/// A relocation and the section that it changes.
struct Site<'t, 'a> {
    target: &'t Section<'a>,
    relocation: Relocation,
}

impl<'a> Site<'_, 'a> {
    /// How its value gets in; `None` where there is nothing to do.
    fn patch(&self) -> Result<Option<Patch>, Error<'a>> {
        let Relocation { kind, offset, .. } = self.relocation;
        let section = self.target.name();
        match kind.action() {
            Some(Action::Patch(patch)) => Ok(Some(patch)),
            Some(Action::Nothing) => Ok(None),
            Some(Action::Refuse(why)) => Err(Error::UnsupportedRelocation {
                kind,
                section,
                offset,
                why,
            }),
            None => Err(Error::UnknownRelocation {
                kind,
                section,
                offset,
            }),
        }
    }

    /// Where in the section its field lies, and what it holds in the file.
    fn field(
        &self,
        patch: Patch,
        original: &[u8],
    ) -> Result<(core::ops::Range<usize>, u128), Error<'a>> {
        let range = usize::try_from(self.relocation.offset)
            .ok()
            .and_then(|start| Some(start..start.checked_add(usize::from(patch.bytes))?));
        let field = range.as_ref().and_then(|range| original.get(range.clone()));
        match (range, field) {
            (Some(range), Some(field)) => {
                let field = field
                    .iter()
                    .rev()
                    .fold(0u128, |word, byte| word << 8 | u128::from(*byte));
                Ok((range, field))
            }
            _ => Err(Error::RelocationOutside {
                kind: self.relocation.kind,
                section: self.target.name(),
                offset: self.relocation.offset,
                size: self.target.size(),
            }),
        }
    }
}
