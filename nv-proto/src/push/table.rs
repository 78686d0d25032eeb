//! Every method of the host, compute and copy classes by address, with its fields and their values by name.
//!
//! The rows are generated from the class headers' facts. A row serves all classes of its kind that define
//! the method alike, so a kind is one sorted array. What is linked is what is used: a program that only
//! encodes carries none of this.

#[rustfmt::skip]
mod compute;
#[rustfmt::skip]
mod copy;
#[rustfmt::skip]
mod host;

use core::fmt;

use crate::error::EncodeError;
use crate::unit::ClassId;

use super::header::MethodAddr;
use super::word::FieldSpec;

/// A named value of a field.
pub type ValueName = (u32, &'static str);

/// A field of a method's data word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field {
    /// Its name and place.
    pub spec: FieldSpec,
    /// Its named values, by value.
    pub values: &'static [ValueName],
}

logged!(Field, field, "{}", field.spec);

impl Field {
    const fn new(name: &'static str, hi: u8, lo: u8, values: &'static [ValueName]) -> Self {
        Self {
            spec: FieldSpec { name, hi, lo },
            values,
        }
    }

    /// The name of `value`, if the header names it.
    #[must_use]
    pub fn value_name(&self, value: u32) -> Option<&'static str> {
        self.values
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, name)| *name)
    }

    /// The value of a name.
    #[must_use]
    pub fn value_of(&self, name: &str) -> Option<u32> {
        self.values
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(value, _)| *value)
    }
}

/// What a field is set to by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FieldArg<'a> {
    /// A number.
    Number(u32),
    /// A value that the header names.
    Name(&'a str),
}

/// Why a word could not be made by name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NameError<'a> {
    /// The method has no such field.
    #[error("{method} has no field {name}")]
    NoField {
        /// The method.
        method: &'static str,
        /// The name asked for.
        name: &'a str,
    },
    /// The field has no value of such a name.
    #[error("{field} of {method} has no value {name}")]
    NoValue {
        /// The method.
        method: &'static str,
        /// The field.
        field: &'static str,
        /// The name asked for.
        name: &'a str,
    },
    /// The value does not fit.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A method, or an array of methods, as some classes of a kind define it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MethodInfo {
    /// Its name.
    pub name: &'static str,
    /// Its address, or that of element 0.
    pub addr: MethodAddr,
    /// From one element of an array to the next, in bytes; 0 for what is no array.
    pub stride: u8,
    /// The fields of its data, lowest first; some overlap where the meaning depends on others.
    pub fields: &'static [Field],
    /// Which classes of the kind, by their place in its list.
    classes: u8,
}

logged!(MethodInfo, method, "{=str} at {}", method.name, method.addr);

impl MethodInfo {
    const fn new(
        addr: u16,
        stride: u8,
        classes: u8,
        name: &'static str,
        fields: &'static [Field],
    ) -> Self {
        Self {
            name,
            addr: MethodAddr::constant(addr),
            stride,
            fields,
            classes,
        }
    }

    /// The field of a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.spec.name == name)
    }

    /// `word` with the field `name` set to `value`.
    ///
    /// # Errors
    /// When there is no such field, no such value, or the value is wider than the field.
    pub fn with<'a>(
        &self,
        word: u32,
        name: &'a str,
        value: FieldArg<'a>,
    ) -> Result<u32, NameError<'a>> {
        let method = self.name;
        let field = self
            .field(name)
            .ok_or(NameError::NoField { method, name })?;
        let value = match value {
            FieldArg::Number(number) => number,
            FieldArg::Name(value) => field.value_of(value).ok_or(NameError::NoValue {
                method,
                field: field.spec.name,
                name: value,
            })?,
        };
        Ok((word & !field.spec.mask()) | field.spec.place(value)?)
    }

    /// The data word in which the fields named have the values given, and all others 0.
    ///
    /// # Errors
    /// As [`MethodInfo::with`].
    pub fn encode<'a>(&self, fields: &[(&'a str, FieldArg<'a>)]) -> Result<u32, NameError<'a>> {
        fields
            .iter()
            .try_fold(0, |word, (name, value)| self.with(word, name, *value))
    }

    /// The element that `addr` is, where it is this method or an element of it.
    fn element(&self, addr: MethodAddr) -> Option<u16> {
        let distance = addr.bytes().checked_sub(self.addr.bytes())?;
        match u16::from(self.stride) {
            0 => (distance == 0).then_some(0),
            stride => match (distance.checked_div(stride), distance.checked_rem(stride)) {
                (Some(index), Some(0)) => Some(index),
                _ => None,
            },
        }
    }
}

/// A method that an address was found to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NamedMethod {
    /// The class whose header says so, which [`method`] can take from before the one asked for.
    pub class: ClassId,
    /// What the header says.
    pub info: &'static MethodInfo,
    /// Which element of an array.
    pub index: Option<u16>,
}

logged!(
    NamedMethod,
    method,
    "{=str}({})",
    method.info.name,
    method.index
);

impl fmt::Display for NamedMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        match self.index {
            Some(index) => write!(f, "({index})"),
            None => Ok(()),
        }
    }
}

/// The classes of one kind and their methods.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The classes, oldest first.
    pub classes: &'static [ClassId],
    /// The methods of all of them, by address.
    pub methods: &'static [MethodInfo],
}

logged!(Kind, kind, "methods of {}", kind.classes);

impl Kind {
    /// The kind that a class belongs to, and its place there.
    fn of(class: ClassId) -> Option<(&'static Self, usize)> {
        KINDS.iter().find_map(|kind| {
            let place = kind.classes.iter().position(|known| *known == class)?;
            Some((*kind, place))
        })
    }

    /// The methods that the class at `place` defines.
    fn methods(&self, place: usize) -> impl Iterator<Item = &'static MethodInfo> + use<> {
        let bit = bit(place);
        self.methods
            .iter()
            .filter(move |method| method.classes & bit != 0)
    }

    fn find(&self, place: usize, addr: MethodAddr) -> Option<NamedMethod> {
        let bit = bit(place);
        let end = self.methods.partition_point(|method| method.addr <= addr);
        // An array has no stated end: it ends at the class's next method that is no array. Of two interleaved
        // arrays only one has an element at any address.
        for info in self.methods.get(..end)?.iter().rev() {
            if info.classes & bit == 0 {
                continue;
            }
            if let Some(index) = info.element(addr) {
                let index = (info.stride != 0).then_some(index);
                return Some(NamedMethod {
                    class: *self.classes.get(place)?,
                    info,
                    index,
                });
            }
            if info.stride == 0 {
                return None;
            }
        }
        None
    }
}

/// The three kinds of class whose methods are known.
pub static KINDS: [&Kind; 3] = [&host::KIND, &compute::KIND, &copy::KIND];

/// The method of `class` at `addr`, as the header of the class itself defines it.
#[must_use]
pub fn defined(class: ClassId, addr: MethodAddr) -> Option<NamedMethod> {
    let (kind, place) = Kind::of(class)?;
    kind.find(place, addr)
}

/// The method of `class` at `addr`, as it is best named.
///
/// The published headers of the Hopper and Blackwell host classes hold only a part of what those classes
/// share with their predecessors: a host method that is missing there, or has fewer fields than it had, is
/// that of the newest header which has more of it. All else is as [`defined`].
#[must_use]
pub fn method(class: ClassId, addr: MethodAddr) -> Option<NamedMethod> {
    let (kind, place) = Kind::of(class)?;
    let own = kind.find(place, addr);
    if !core::ptr::eq(kind, &raw const host::KIND) {
        return own;
    }
    let fields = |found: &NamedMethod| found.info.fields.len();
    (0..place)
        .rev()
        .filter_map(|older| kind.find(older, addr))
        .fold(own, |best, older| {
            if best
                .as_ref()
                .is_none_or(|best| fields(best) < fields(&older))
            {
                Some(older)
            } else {
                best
            }
        })
}

/// All methods that the header of `class` defines, by address: none for a class that is not known.
pub fn methods(class: ClassId) -> impl Iterator<Item = &'static MethodInfo> {
    Kind::of(class)
        .into_iter()
        .flat_map(|(kind, place)| kind.methods(place))
}

/// The method of `class` that has a name.
#[must_use]
pub fn by_name(class: ClassId, name: &str) -> Option<&'static MethodInfo> {
    methods(class).find(|method| method.name == name)
}

/// The classes whose methods are known.
pub fn classes() -> impl Iterator<Item = ClassId> {
    KINDS.iter().flat_map(|kind| kind.classes.iter().copied())
}

/// The mask bit of a place in a list of at most eight classes.
const fn bit(place: usize) -> u8 {
    match place {
        0 => 1,
        1 => 2,
        2 => 4,
        3 => 8,
        4 => 16,
        5 => 32,
        6 => 64,
        7 => 128,
        _ => 0,
    }
}
