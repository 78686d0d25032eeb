//! Method data words as structures of named fields.

use crate::error::{DecodeError, EncodeError};

use super::table::ValueName;

/// Where a field of a method's data word is, and what the header calls it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FieldSpec {
    /// Its name in the header.
    pub name: &'static str,
    /// Its highest bit.
    pub hi: u8,
    /// Its lowest bit.
    pub lo: u8,
}

impl FieldSpec {
    /// The bits of the word that are the field's.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        self.max().wrapping_shl(self.lo as u32)
    }

    /// The largest value that fits.
    #[must_use]
    pub const fn max(&self) -> u32 {
        u32::MAX.wrapping_shr(31_u32.wrapping_sub(self.hi.wrapping_sub(self.lo) as u32))
    }

    /// The field's value in `word`.
    #[must_use]
    pub const fn of(&self, word: u32) -> u32 {
        word.wrapping_shr(self.lo as u32) & self.max()
    }

    /// The bits of `value` where the field is.
    ///
    /// # Errors
    /// When the value is wider than the field.
    #[inline]
    pub const fn place(&self, value: u32) -> Result<u32, EncodeError> {
        if value > self.max() {
            return Err(EncodeError::FieldOverflow {
                field: self.name,
                width: self.max().count_ones(),
                value: value as u64,
            });
        }
        Ok(value.wrapping_shl(self.lo as u32))
    }
}

/// What a field can hold.
pub trait FieldValue: Copy {
    /// The values that have names, with their names in the header.
    const NAMES: &'static [ValueName] = &[];

    /// The value as the field holds it.
    fn into_bits(self) -> u32;

    /// The value that bits mean, or `None` where they mean nothing.
    fn from_bits(bits: u32) -> Option<Self>;
}

impl FieldValue for bool {
    #[inline]
    fn into_bits(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl FieldValue for u8 {
    #[inline]
    fn into_bits(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn from_bits(bits: u32) -> Option<Self> {
        Self::try_from(bits).ok()
    }
}

impl FieldValue for u16 {
    #[inline]
    fn into_bits(self) -> u32 {
        u32::from(self)
    }

    #[inline]
    fn from_bits(bits: u32) -> Option<Self> {
        Self::try_from(bits).ok()
    }
}

impl FieldValue for u32 {
    #[inline]
    fn into_bits(self) -> u32 {
        self
    }

    #[inline]
    fn from_bits(bits: u32) -> Option<Self> {
        Some(bits)
    }
}

/// Why `bits` is not a value of field `what`.
pub(super) fn bad_field(what: &'static str, bits: u32) -> DecodeError {
    DecodeError::BadValue {
        what,
        offset: 0,
        value: u64::from(bits),
    }
}

/// An enumeration of a field's values: `Variant = number "NAME"`.
macro_rules! field_enum {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $number:literal $spelling:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )+];
        }

        impl $crate::push::word::FieldValue for $name {
            const NAMES: &'static [$crate::push::table::ValueName] =
                &[$( ($number, $spelling), )+];

            #[inline]
            fn into_bits(self) -> u32 {
                match self { $( Self::$variant => $number, )+ }
            }

            #[inline]
            fn from_bits(bits: u32) -> Option<Self> {
                match bits { $( $number => Some(Self::$variant), )+ _ => None }
            }
        }
    };
}

/// A method's data word: `field: Type = "NAME" hi:lo`.
macro_rules! word {
    (
        $(#[$meta:meta])*
        $name:ident = $method:literal {
            $( $(#[$field_meta:meta])* $field:ident: $ty:ty = $spelling:literal $hi:literal:$lo:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )+
        }

        impl $name {
            /// The method's name in the header.
            pub const METHOD: &'static str = $method;

            /// Its fields.
            pub const FIELDS: &'static [$crate::push::table::Field] = &[
                $( $crate::push::table::Field {
                    spec: $crate::push::FieldSpec {
                        name: concat!($method, "_", $spelling), hi: $hi, lo: $lo,
                    },
                    values: <$ty as $crate::push::word::FieldValue>::NAMES,
                }, )+
            ];

            /// The word.
            ///
            /// # Errors
            /// When a value is wider than its field.
            #[inline]
            pub fn encode(&self) -> Result<u32, $crate::EncodeError> {
                use $crate::push::word::FieldValue;
                // A new field cannot be forgotten.
                let Self { $( $field, )+ } = *self;
                Ok(0 $( | $crate::push::FieldSpec {
                    name: concat!($method, "_", $spelling), hi: $hi, lo: $lo,
                }.place(FieldValue::into_bits($field))? )+)
            }

            /// The fields of `word`.
            ///
            /// # Errors
            /// When a field holds a number without a meaning, or a bit outside of all fields is set.
            #[inline]
            pub fn decode(word: u32) -> Result<Self, $crate::DecodeError> {
                use $crate::push::word::{FieldValue, bad_field};
                let defined = 0 $( | $crate::push::FieldSpec { name: "", hi: $hi, lo: $lo }.mask() )+;
                if word & !defined != 0 {
                    return Err(bad_field(concat!($method, " (a bit without a meaning is set)"), word));
                }
                Ok(Self { $( $field: {
                    let bits = $crate::push::FieldSpec { name: "", hi: $hi, lo: $lo }.of(word);
                    <$ty as FieldValue>::from_bits(bits)
                        .ok_or_else(|| bad_field(concat!($method, "_", $spelling), bits))?
                }, )+ })
            }
        }
    };
}

/// A word type that is a whole method by itself.
macro_rules! word_method {
    ($name:ident, $addr:expr) => {
        impl $crate::push::Method<1> for $name {
            const ADDR: $crate::push::MethodAddr = $addr;

            #[inline]
            fn data(&self) -> Result<[u32; 1], $crate::EncodeError> {
                Ok([self.encode()?])
            }
        }
    };
}

/// Method addresses: `NAME = 0x..`.
macro_rules! addresses {
    ($( $name:ident = $bytes:literal, )+) => {
        $(
            #[doc = concat!("Method `", stringify!($name), "`.")]
            pub const $name: $crate::push::MethodAddr = $crate::push::MethodAddr::constant($bytes);
        )+

        /// The methods named here, in the order of the list.
        pub const ADDRESSES: &[(&str, $crate::push::MethodAddr)] = &[$( (stringify!($name), $name), )+];
    };
}

/// A method pair that takes an address, upper word first.
macro_rules! address_pair {
    ($(
        $(#[$meta:meta])*
        $name:ident { $field:ident } = $addr:ident, $upper:literal [$bits:literal], $lower:literal [$align:literal];
    )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name {
            /// The address.
            pub $field: $crate::unit::GpuVa,
        }

        impl $crate::push::Method<2> for $name {
            const ADDR: $crate::push::MethodAddr = $addr;

            #[inline]
            fn data(&self) -> Result<[u32; 2], $crate::EncodeError> {
                let Self { $field } = *self;
                Ok([
                    $crate::push::word::upper($upper, $bits, $field)?,
                    $crate::push::word::lower($lower, $align, $field)?,
                ])
            }
        }
    )+ };
}

pub(super) use {address_pair, addresses, field_enum, word, word_method};

/// The upper word of an address, which has fewer than 32 bits.
#[inline]
pub(super) fn upper(
    field: &'static str,
    bits: u8,
    va: crate::unit::GpuVa,
) -> Result<u32, EncodeError> {
    FieldSpec {
        name: field,
        hi: bits.saturating_sub(1),
        lo: 0,
    }
    .place(va.hi())
}

/// The lower word of an address that has to be a multiple of `align`.
#[inline]
pub(super) fn lower(
    field: &'static str,
    align: u64,
    va: crate::unit::GpuVa,
) -> Result<u32, EncodeError> {
    if !va.is_aligned(align) {
        return Err(EncodeError::Misaligned {
            field,
            unit: align,
            value: va.0,
        });
    }
    Ok(va.lo())
}
