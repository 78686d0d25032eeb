//! Bit fields over structures of 32-bit words: the only hand-made shifts and masks.
//!
//! Positions count over the whole structure, bit 0 being the least significant of word 0, as NVIDIA's
//! headers write them (`MW(hi:lo)`). Words are little-endian by type, so every host makes the same bytes.

use zerocopy::little_endian::U32;

use crate::error::EncodeError;

/// A run of bits inside one 32-bit word of a structure.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bits {
    word: u16,
    shift: u8,
    width: u8,
}

impl Bits {
    /// Bits `hi` down to `lo` of a structure.
    ///
    /// # Panics
    /// When `hi` is below `lo` or the two lie in different words. No field of any descriptor does; the
    /// layouts are constants, so this is found when they are compiled.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a shift and a width within one word are at most 32"
    )]
    pub(crate) const fn new(hi: u16, lo: u16) -> Self {
        assert!(hi >= lo && hi / 32 == lo / 32, "a field lies in one word");
        Self {
            word: lo / 32,
            shift: (lo % 32) as u8,
            width: (hi.wrapping_sub(lo) as u8).wrapping_add(1),
        }
    }

    /// The same bits `words` further on and `bits` higher; `None` where they would leave their word.
    #[must_use]
    pub(crate) const fn offset(self, bits: u16) -> Option<Self> {
        let Some(lo) = self.lo().checked_add(bits) else {
            return None;
        };
        let Some(hi) = self.hi().checked_add(bits) else {
            return None;
        };
        if hi / 32 == lo / 32 {
            Some(Self::new(hi, lo))
        } else {
            None
        }
    }

    /// The lowest bit's position in the structure.
    #[must_use]
    pub const fn lo(self) -> u16 {
        self.word
            .saturating_mul(32)
            .saturating_add(self.shift as u16)
    }

    /// The highest bit's position in the structure.
    #[must_use]
    pub const fn hi(self) -> u16 {
        self.lo()
            .saturating_add(self.width as u16)
            .saturating_sub(1)
    }

    /// How many bits there are, 1 to 32.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.width as u32
    }

    /// The largest value that fits.
    #[must_use]
    pub const fn max(self) -> u32 {
        u32::MAX >> 32_u8.saturating_sub(self.width)
    }

    /// The value in `words`; 0 where the structure is shorter than that.
    #[must_use]
    #[inline]
    pub fn get(self, words: &[U32]) -> u32 {
        match words.get(usize::from(self.word)) {
            Some(word) => (word.get() >> self.shift) & self.max(),
            None => 0,
        }
    }

    /// Sets the value, touching no other bit.
    ///
    /// # Errors
    /// [`EncodeError::FieldOverflow`] when `value` is wider than the field, and
    /// [`EncodeError::BufferTooSmall`] when the structure is too short to hold the field. Nothing is
    /// written then.
    #[inline]
    pub fn set(self, words: &mut [U32], name: &'static str, value: u64) -> Result<(), EncodeError> {
        match u32::try_from(value) {
            Ok(value) if value <= self.max() => self.put(words, value),
            _ => Err(EncodeError::FieldOverflow {
                field: name,
                width: self.width(),
                value,
            }),
        }
    }

    /// Sets a value that is known to fit.
    #[inline]
    fn put(self, words: &mut [U32], value: u32) -> Result<(), EncodeError> {
        let available = words.len();
        let Some(word) = words.get_mut(usize::from(self.word)) else {
            return Err(EncodeError::BufferTooSmall {
                needed: usize::from(self.word).saturating_add(1),
                available,
            });
        };
        // The shift is below 32, so both shifts are whole.
        let mask = self.max() << self.shift;
        word.set((word.get() & !mask) | (value << self.shift));
        Ok(())
    }
}

/// A quantity split over a low and a high field, counted in units of 2^`shift`: an address, as a rule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WideBits {
    lower: Bits,
    upper: Bits,
    shift: u8,
}

impl WideBits {
    /// A quantity whose low 32 bits are in `lower` and the rest in `upper`.
    ///
    /// # Panics
    /// When `lower` is not a whole word or `shift` is above 31, which is found when the layout is compiled.
    #[must_use]
    pub(crate) const fn new(lower: Bits, upper: Bits, shift: u8) -> Self {
        assert!(lower.width == 32 && shift < 32, "the lower half is a word");
        Self {
            lower,
            upper,
            shift,
        }
    }

    /// Element that lies `bits` further on.
    #[must_use]
    pub(crate) const fn offset(self, bits: u16) -> Option<Self> {
        match (self.lower.offset(bits), self.upper.offset(bits)) {
            (Some(lower), Some(upper)) => Some(Self {
                lower,
                upper,
                shift: self.shift,
            }),
            _ => None,
        }
    }

    /// How many bits the two fields have together.
    #[must_use]
    pub const fn width(self) -> u32 {
        self.upper.width().saturating_add(32)
    }

    /// The unit that the fields count in.
    #[must_use]
    pub const fn unit(self) -> u64 {
        1_u64 << self.shift
    }

    /// The quantity.
    #[must_use]
    #[inline]
    pub fn get(self, words: &[U32]) -> u64 {
        let raw = u64::from(self.lower.get(words)) | (u64::from(self.upper.get(words)) << 32);
        raw << self.shift
    }

    /// What [`WideBits::set`] would answer: the value in units, when it fits.
    #[inline]
    pub(crate) fn check(self, name: &'static str, value: u64) -> Result<u64, EncodeError> {
        if value & self.unit().wrapping_sub(1) != 0 {
            return Err(EncodeError::Misaligned {
                field: name,
                unit: self.unit(),
                value,
            });
        }
        let raw = value >> self.shift;
        if raw >> 32 > u64::from(self.upper.max()) {
            return Err(EncodeError::FieldOverflow {
                field: name,
                width: self.width().saturating_add(u32::from(self.shift)),
                value,
            });
        }
        Ok(raw)
    }

    /// Sets the quantity, touching no other bit.
    ///
    /// # Errors
    /// [`EncodeError::Misaligned`] when `value` is no multiple of the unit, otherwise as [`Bits::set`].
    /// Nothing is written then.
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "each half is what its field holds"
    )]
    pub fn set(self, words: &mut [U32], name: &'static str, value: u64) -> Result<(), EncodeError> {
        let raw = self.check(name, value)?;
        self.upper.put(words, (raw >> 32) as u32)?;
        self.lower.put(words, raw as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: Bits = Bits::new(40, 36);

    #[test]
    fn a_field_touches_only_its_bits() {
        let mut words = [U32::new(0xa5a5_a5a5); 3];
        FIELD.set(&mut words, "F", 0x1f).unwrap();
        assert_eq!(
            words.map(U32::get),
            [0xa5a5_a5a5, 0xa5a5_a5f5 | 0x1f0, 0xa5a5_a5a5]
        );
        assert_eq!(FIELD.get(&words), 0x1f);
        FIELD.set(&mut words, "F", 0).unwrap();
        assert_eq!(words[1].get(), 0xa5a5_a5a5 & !0x1f0);
        assert_eq!(
            (FIELD.hi(), FIELD.lo(), FIELD.width(), FIELD.max()),
            (40, 36, 5, 31)
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_written() {
        let mut words = [U32::new(7); 2];
        assert_eq!(
            FIELD.set(&mut words, "F", 32),
            Err(EncodeError::FieldOverflow {
                field: "F",
                width: 5,
                value: 32
            })
        );
        assert_eq!(
            FIELD.set(&mut words[..1], "F", 1),
            Err(EncodeError::BufferTooSmall {
                needed: 2,
                available: 1
            })
        );
        assert_eq!(words.map(U32::get), [7, 7]);
        assert_eq!(FIELD.get(&words[..1]), 0);
    }

    #[test]
    fn a_wide_quantity_is_checked_before_either_half_is_written() {
        let wide = WideBits::new(Bits::new(31, 0), Bits::new(48, 32), 6);
        let mut words = [U32::new(0); 2];
        wide.set(&mut words, "A", 0x7f_3500_1240).unwrap();
        assert_eq!(wide.get(&words), 0x7f_3500_1240);
        let before = words;
        assert_eq!(
            wide.set(&mut words, "A", 0x20),
            Err(EncodeError::Misaligned {
                field: "A",
                unit: 64,
                value: 0x20
            })
        );
        assert_eq!(
            wide.set(&mut words, "A", 1 << 55),
            Err(EncodeError::FieldOverflow {
                field: "A",
                width: 55,
                value: 1 << 55
            })
        );
        assert_eq!(words, before);
        wide.set(&mut words, "A", (1 << 55) - 64).unwrap();
        assert_eq!(words.map(U32::get), [u32::MAX, 0x1_ffff]);
    }

    #[test]
    fn whole_words_are_fields_too() {
        let word = Bits::new(63, 32);
        let mut words = [U32::new(0); 2];
        word.set(&mut words, "W", u64::from(u32::MAX)).unwrap();
        assert_eq!(word.get(&words), u32::MAX);
        assert!(word.set(&mut words, "W", 1 << 32).is_err());
    }
}
