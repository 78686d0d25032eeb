//! Fields by version: the types behind the tables in `v02_02.rs` to `v05_01.rs`.

use core::fmt;
use core::marker::PhantomData;

use zerocopy::little_endian::U32;

use super::value::Kind;
use super::{Version, Words};
use crate::bits::{Bits, WideBits};
use crate::error::EncodeError;

/// A version's layout; only the tables of this crate implement it.
pub trait Layout: sealed::Sealed + 'static {
    /// Which version it is.
    const VERSION: Version;
    /// Every field of the header, in its order.
    const FIELDS: &'static [FieldInfo];
}

pub(super) mod sealed {
    /// Layouts are tables read off headers: nobody else makes them.
    pub trait Sealed {}
}

/// A field of version `L` that holds a `K`.
pub struct Field<L, K> {
    name: &'static str,
    bits: Bits,
    of: PhantomData<fn() -> (L, K)>,
}

#[cfg(feature = "defmt")]
impl<L: Layout, K: Kind> defmt::Format for Field<L, K> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str} at {}", self.name, self.bits);
    }
}

impl<L: Layout, K: Kind> Field<L, K> {
    pub(super) const fn new(name: &'static str, hi: u16, lo: u16) -> Self {
        Self {
            name,
            bits: Bits::new(hi, lo),
            of: PhantomData,
        }
    }

    /// The field as the header spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Where it lies.
    #[must_use]
    pub const fn bits(self) -> Bits {
        self.bits
    }
}

/// A field of version `L` that is there several times.
pub struct FieldArray<L, K> {
    first: Field<L, K>,
    count: u8,
    stride: u16,
}

#[cfg(feature = "defmt")]
impl<L: Layout, K: Kind> defmt::Format for FieldArray<L, K> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}, {=u8} times", self.first, self.count);
    }
}

impl<L: Layout, K: Kind> FieldArray<L, K> {
    pub(super) const fn new(name: &'static str, hi: u16, lo: u16, count: u8, stride: u16) -> Self {
        Self {
            first: Field::new(name, hi, lo),
            count,
            stride,
        }
    }

    /// Element `index`.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`].
    pub const fn at(self, index: u32) -> Result<Field<L, K>, EncodeError> {
        match element(index, self.count, self.stride) {
            Some(offset) => match self.first.bits.offset(offset) {
                Some(bits) => Ok(Field {
                    name: self.first.name,
                    bits,
                    of: PhantomData,
                }),
                None => Err(out_of_range(self.first.name, self.count, index)),
            },
            None => Err(out_of_range(self.first.name, self.count, index)),
        }
    }

    /// Element 0.
    #[must_use]
    pub const fn first(self) -> Field<L, K> {
        self.first
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count as u32
    }
}

/// A quantity of version `L` that the header splits over a low and a high field.
pub struct Wide<L> {
    name: &'static str,
    bits: WideBits,
    of: PhantomData<fn() -> L>,
}

#[cfg(feature = "defmt")]
impl<L: Layout> defmt::Format for Wide<L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str} at {}", self.name, self.bits);
    }
}

impl<L: Layout> Wide<L> {
    pub(super) const fn new(
        name: &'static str,
        lower: (u16, u16),
        upper: (u16, u16),
        shift: u8,
    ) -> Self {
        let (lower, upper) = (Bits::new(lower.0, lower.1), Bits::new(upper.0, upper.1));
        Self {
            name,
            bits: WideBits::new(lower, upper, shift),
            of: PhantomData,
        }
    }

    /// The header's name without `_LOWER` and `_UPPER`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Where it lies.
    #[must_use]
    pub const fn bits(self) -> WideBits {
        self.bits
    }
}

/// A quantity of version `L` that the header splits, and that is there several times.
pub struct WideArray<L> {
    first: Wide<L>,
    count: u8,
    stride: u16,
}

#[cfg(feature = "defmt")]
impl<L: Layout> defmt::Format for WideArray<L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}, {=u8} times", self.first, self.count);
    }
}

impl<L: Layout> WideArray<L> {
    pub(super) const fn new(
        name: &'static str,
        lower: (u16, u16),
        upper: (u16, u16),
        shift: u8,
        count: u8,
        stride: u16,
    ) -> Self {
        Self {
            first: Wide::new(name, lower, upper, shift),
            count,
            stride,
        }
    }

    /// Element `index`.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`].
    pub const fn at(self, index: u32) -> Result<Wide<L>, EncodeError> {
        match element(index, self.count, self.stride) {
            Some(offset) => match self.first.bits.offset(offset) {
                Some(bits) => Ok(Wide {
                    name: self.first.name,
                    bits,
                    of: PhantomData,
                }),
                None => Err(out_of_range(self.first.name, self.count, index)),
            },
            None => Err(out_of_range(self.first.name, self.count, index)),
        }
    }
    /// Element 0.
    #[must_use]
    pub const fn first(self) -> Wide<L> {
        self.first
    }
}

// By hand: a derive would ask the same of `L` and `K`, which are only names.
macro_rules! copy {
    ($($type:ident < $($param:ident),+ >),+) => {$(
        impl<$($param),+> Clone for $type<$($param),+> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($param),+> Copy for $type<$($param),+> {}
    )+};
}
copy!(Field<L, K>, FieldArray<L, K>, Wide<L>, WideArray<L>);

impl<L, K> fmt::Debug for Field<L, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:{}", self.name, self.bits.hi(), self.bits.lo())
    }
}

/// What is known of a field without its type: for dumps, and to find it by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FieldInfo {
    /// The header's name.
    pub name: &'static str,
    /// The first element's bits.
    pub bits: Bits,
    /// How many elements there are.
    pub count: u32,
    /// Bits from one element to the next.
    pub stride: u16,
    /// The field counts in units of 2^`shift`.
    pub shift: u8,
    /// The names that the header gives to numbers.
    pub names: &'static [(u32, &'static str)],
    /// Whether the header spells the same bits as other fields, too.
    pub alias: bool,
}

impl FieldInfo {
    pub(super) const fn new<K: Kind>(
        name: &'static str,
        (hi, lo): (u16, u16),
        (count, stride): (u32, u16),
        alias: bool,
    ) -> Self {
        Self {
            name,
            bits: Bits::new(hi, lo),
            count,
            stride,
            shift: K::SHIFT,
            names: K::NAMES,
            alias,
        }
    }

    /// The bits of element `index`.
    #[must_use]
    pub fn at(&self, index: u32) -> Option<Bits> {
        let count = u8::try_from(self.count).ok()?;
        self.bits.offset(element(index, count, self.stride)?)
    }

    /// The header's name for a number, where it gives one.
    #[must_use]
    pub fn value_name(&self, raw: u32) -> Option<&'static str> {
        self.names
            .iter()
            .find(|(value, _)| *value == raw)
            .map(|(_, name)| *name)
    }
}

/// The bits from element 0 to element `index` of `count`.
#[allow(
    clippy::cast_possible_truncation,
    reason = "an index below a count of 8 bits fits 16"
)]
const fn element(index: u32, count: u8, stride: u16) -> Option<u16> {
    if index < count as u32 {
        stride.checked_mul(index as u16)
    } else {
        None
    }
}

const fn out_of_range(field: &'static str, count: u8, index: u32) -> EncodeError {
    EncodeError::IndexOutOfRange {
        field,
        count: count as u32,
        index,
    }
}

/// Typed reading of a descriptor of version `L`.
#[derive(Debug)]
pub struct View<'a, L> {
    words: &'a [U32],
    of: PhantomData<fn() -> L>,
}

/// Typed reading and writing of a descriptor of version `L`.
#[derive(Debug)]
pub struct ViewMut<'a, L> {
    words: &'a mut [U32],
    of: PhantomData<fn() -> L>,
}

#[cfg(feature = "defmt")]
impl<L: Layout> defmt::Format for View<'_, L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        log_fields::<L>(self.words, f);
    }
}

#[cfg(feature = "defmt")]
impl<L: Layout> defmt::Format for ViewMut<'_, L> {
    fn format(&self, f: defmt::Formatter<'_>) {
        log_fields::<L>(self.words, f);
    }
}

#[cfg(feature = "defmt")]
fn log_fields<L: Layout>(words: &[U32], f: defmt::Formatter<'_>) {
    let mut all = [U32::ZERO; super::MAX_WORDS];
    for (to, from) in all.iter_mut().zip(words) {
        *to = *from;
    }
    let fields = Fields::new(L::FIELDS, &all, None);
    defmt::write!(f, "QMD {}{}", L::VERSION, fields);
}

impl<'a, L: Layout> View<'a, L> {
    pub(super) fn of(words: &'a [U32]) -> Self {
        Self {
            words,
            of: PhantomData,
        }
    }

    /// What `field` holds.
    #[must_use]
    pub fn get<K: Kind>(&self, field: Field<L, K>) -> K::Value {
        K::from_raw(field.bits.get(self.words))
    }

    /// What the two halves of `wide` hold.
    #[must_use]
    pub fn wide(&self, wide: Wide<L>) -> u64 {
        wide.bits.get(self.words)
    }
}

impl<'a, L: Layout> ViewMut<'a, L> {
    pub(super) fn of(words: &'a mut [U32]) -> Self {
        Self {
            words,
            of: PhantomData,
        }
    }

    /// What `field` holds.
    #[must_use]
    pub fn get<K: Kind>(&self, field: Field<L, K>) -> K::Value {
        K::from_raw(field.bits.get(self.words))
    }

    /// What the two halves of `wide` hold.
    #[must_use]
    pub fn wide(&self, wide: Wide<L>) -> u64 {
        wide.bits.get(self.words)
    }

    /// Sets `field`, touching no other bit.
    ///
    /// # Errors
    /// [`EncodeError::FieldOverflow`] when the value is too wide, [`EncodeError::Misaligned`] when it is no
    /// multiple of the field's unit. Nothing is written then.
    pub fn set<K: Kind>(
        &mut self,
        field: Field<L, K>,
        value: K::Value,
    ) -> Result<&mut Self, EncodeError> {
        field
            .bits
            .set(self.words, field.name, K::to_raw(value, field.name)?)?;
        Ok(self)
    }

    /// Sets both halves of `wide`, touching no other bit.
    ///
    /// # Errors
    /// As [`ViewMut::set`].
    pub fn set_wide(&mut self, wide: Wide<L>, value: u64) -> Result<&mut Self, EncodeError> {
        wide.bits.set(self.words, wide.name, value)?;
        Ok(self)
    }
}

/// One field of a descriptor and what it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FieldValue {
    /// The field.
    pub field: &'static FieldInfo,
    /// Which element of it.
    pub index: u32,
    /// The number it holds.
    pub raw: u32,
}

impl FieldValue {
    /// The number in the units that callers use: bytes where the field counts in larger ones.
    #[must_use]
    pub fn scaled(&self) -> u64 {
        u64::from(self.raw).unbounded_shl(self.field.shift.into())
    }
}

/// The field's name, with the index where there are several.
pub(super) struct FieldName<'a>(pub(super) &'a FieldInfo, pub(super) u32);

impl fmt::Display for FieldName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)?;
        if self.0.count > 1 {
            write!(f, "[{}]", self.1)?;
        }
        Ok(())
    }
}

/// A number of a field: by name where the header has one, in bytes where the field counts in larger units.
pub(super) struct RawValue<'a>(pub(super) &'a FieldInfo, pub(super) u32);

impl fmt::Display for RawValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(field, raw) = *self;
        match field.value_name(raw) {
            Some(name) => f.write_str(name.strip_prefix('_').unwrap_or(name)),
            None if field.shift == 0 => write!(f, "{raw:#x}"),
            None => write!(
                f,
                "{raw:#x} ({:#x} bytes)",
                u64::from(raw).unbounded_shl(field.shift.into())
            ),
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} = {}",
            FieldName(self.field, self.index),
            RawValue(self.field, self.raw)
        )
    }
}

/// The fields that hold something, in the header's order; other spellings of the same bits are left out.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    fields: core::slice::Iter<'static, FieldInfo>,
    now: Option<(&'static FieldInfo, u32)>,
    words: &'a Words,
    other: Option<&'a Words>,
}

impl<'a> Fields<'a> {
    /// All fields of `words` that are not 0, or that differ from those of `other`.
    pub(super) fn new(
        fields: &'static [FieldInfo],
        words: &'a Words,
        other: Option<&'a Words>,
    ) -> Self {
        Self {
            fields: fields.iter(),
            now: None,
            words,
            other,
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Fields<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        for value in self.clone() {
            defmt::write!(
                f,
                " {=str}[{=u32}]={=u32:#x}",
                value.field.name,
                value.index,
                value.raw
            );
        }
    }
}

impl Iterator for Fields<'_> {
    type Item = FieldValue;

    fn next(&mut self) -> Option<FieldValue> {
        loop {
            // Each round takes one element of the table, so this ends.
            let (field, index) = match self.now.take() {
                Some(now) => now,
                None => (self.fields.find(|field| !field.alias)?, 0),
            };
            let Some(bits) = field.at(index) else {
                continue;
            };
            self.now = Some((field, index.saturating_add(1)));
            let raw = bits.get(self.words);
            if raw != self.other.map_or(0, |other| bits.get(other)) {
                return Some(FieldValue { field, index, raw });
            }
        }
    }
}

/// Makes a version's layout: its marker type, a typed constant for each field, and the table of them all.
macro_rules! layout {
    (
        $(#[$meta:meta])*
        $version:ident;
        fields { $($name:ident $([$count:literal by $stride:literal])? : $kind:ty = $hi:literal : $lo:literal;)* }
        wide { $($wide:ident $([$wcount:literal by $wstride:literal])? =
            $uhi:literal : $ulo:literal, $lhi:literal : $llo:literal, $shift:literal;)* }
        aliases { $($aname:ident $([$acount:literal by $astride:literal])? : $akind:ty = $ahi:literal : $alo:literal;)* }
    ) => {
        use $crate::qmd::Version;
        #[allow(unused_imports, reason = "no version has every kind of field")]
        use $crate::qmd::layout::{Field, FieldArray, FieldInfo, Layout, Wide, WideArray, field, info, sealed, wide};
        #[allow(unused_imports, reason = "no version has every kind of value")]
        use $crate::qmd::value::*;

        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $version;

        impl sealed::Sealed for $version {}

        impl Layout for $version {
            const VERSION: Version = Version::$version;
            const FIELDS: &'static [FieldInfo] = &[
                $(info!(false, $name $([$count by $stride])? : $kind = $hi : $lo),)*
                $(info!(true, $aname $([$acount by $astride])? : $akind = $ahi : $alo),)*
            ];
        }

        $(field!($version, $name $([$count by $stride])? : $kind = $hi : $lo);)*
        $(wide!($version, $wide $([$wcount by $wstride])? = $uhi : $ulo, $lhi : $llo, $shift);)*
        $(field!($version, $aname $([$acount by $astride])? : $akind = $ahi : $alo);)*
    };
}

/// One typed constant.
macro_rules! field {
    ($version:ident, $name:ident : $kind:ty = $hi:literal : $lo:literal) => {
        #[doc = concat!("Bits ", $hi, ":", $lo, ".")]
        pub const $name: Field<$version, $kind> = Field::new(stringify!($name), $hi, $lo);
    };
    ($version:ident, $name:ident [$count:literal by $stride:literal] : $kind:ty = $hi:literal : $lo:literal) => {
        #[doc = concat!("Bits ", $hi, ":", $lo, ", ", $count, " times, ", $stride, " bits apart.")]
        pub const $name: FieldArray<$version, $kind> =
            FieldArray::new(stringify!($name), $hi, $lo, $count, $stride);
    };
}

/// One line of the table.
macro_rules! info {
    ($alias:literal, $name:ident : $kind:ty = $hi:literal : $lo:literal) => {
        FieldInfo::new::<$kind>(stringify!($name), ($hi, $lo), (1, 0), $alias)
    };
    ($alias:literal, $name:ident [$count:literal by $stride:literal] : $kind:ty = $hi:literal : $lo:literal) => {
        FieldInfo::new::<$kind>(stringify!($name), ($hi, $lo), ($count, $stride), $alias)
    };
}

/// One quantity of two fields.
macro_rules! wide {
    ($version:ident, $name:ident = $uhi:literal : $ulo:literal, $lhi:literal : $llo:literal, $shift:literal) => {
        #[doc = concat!("Bits ", $uhi, ":", $ulo, " above ", $lhi, ":", $llo, ", in units of 2^", $shift, ".")]
        pub const $name: Wide<$version> =
            Wide::new(stringify!($name), ($lhi, $llo), ($uhi, $ulo), $shift);
    };
    (
        $version:ident, $name:ident [$count:literal by $stride:literal] =
            $uhi:literal : $ulo:literal, $lhi:literal : $llo:literal, $shift:literal
    ) => {
        #[doc = concat!(
            "Bits ", $uhi, ":", $ulo, " above ", $lhi, ":", $llo, ", in units of 2^", $shift, ", ",
            $count, " times, ", $stride, " bits apart."
        )]
        pub const $name: WideArray<$version> =
            WideArray::new(stringify!($name), ($lhi, $llo), ($uhi, $ulo), $shift, $count, $stride);
    };
}

pub(super) use {field, info, layout, wide};
