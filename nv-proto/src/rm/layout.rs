//! How a structure of the kernel driver's ABI is described: its fields by name, and its size by release.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::DriverVersion;

pub(crate) mod sealed {
    /// Only this crate describes structures: their freedom from pointers is relied on by `unsafe` code.
    pub trait Sealed {}
}

/// One field of a structure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Field {
    /// The header's name; empty for padding.
    pub name: &'static str,
    /// Where it lies, in bytes.
    pub offset: usize,
    /// How large it is, in bytes.
    pub size: usize,
}

/// A structure's description, for dumps and checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shape {
    /// The header's name.
    pub name: &'static str,
    /// The fields in order, padding included.
    pub fields: &'static [Field],
    /// The size by release, oldest first; empty where it never changed; 0 where a release has another layout
    /// or none.
    pub sizes: &'static [(DriverVersion, usize)],
    /// The size of the largest layout.
    pub full: usize,
}

logged!(
    Shape,
    shape,
    "{=str}: {=usize} bytes",
    shape.name,
    shape.full
);

impl Shape {
    /// The size that a release's driver expects: 0 where it has another layout or none.
    #[must_use]
    pub fn size(&self, version: DriverVersion) -> usize {
        let row = self.sizes.iter().rev().find(|(since, _)| *since <= version);
        row.or(self.sizes.first())
            .map_or(self.full, |(_, size)| (*size).min(self.full))
    }
}

/// A structure of the kernel driver's ABI: bytes with names, zero by default.
pub trait Layout:
    sealed::Sealed + Copy + Default + FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned
{
    /// Its description.
    const SHAPE: Shape;

    /// The prefix that a release's driver expects; all of it where the release has another layout.
    fn prefix_mut(&mut self, version: DriverVersion) -> &mut [u8] {
        let size = match Self::SHAPE.size(version) {
            0 => Self::SHAPE.full,
            size => size,
        };
        self.as_mut_bytes().get_mut(..size).unwrap_or_default()
    }
}

/// A release, in the short spelling of the size tables.
pub(crate) const fn v(major: u16, minor: u16, patch: u16) -> DriverVersion {
    DriverVersion::new(major, minor, patch)
}

/// Defines structures: `Name = "HEADER_NAME" sizes [(since, bytes), …] { field: Type = "headerField", … }`.
macro_rules! layouts {
    ($(
        $(#[$meta:meta])*
        $name:ident = $header:literal $( sizes [ $( ($since:expr, $size:expr) ),* $(,)? ] )? {
            $( $(#[$field_meta:meta])* $field:ident : $ty:ty = $field_header:literal ),* $(,)?
        }
    )*) => { $(
        $(#[$meta])*
        #[doc(alias = $header)]
        #[derive(
            Clone, Copy, Debug, Eq, PartialEq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout,
            zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C)]
        pub struct $name {
            $(
                #[doc = concat!("`", $field_header, "`.")]
                $(#[$field_meta])*
                pub $field: $ty,
            )*
        }

        impl Default for $name {
            /// All zero.
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }

        impl $crate::rm::layout::sealed::Sealed for $name {}

        #[cfg(feature = "defmt")]
        impl defmt::Format for $name {
            fn format(&self, f: defmt::Formatter<'_>) {
                use zerocopy::IntoBytes as _;

                let shape = <Self as $crate::rm::Layout>::SHAPE;
                defmt::write!(f, "{}", $crate::rm::Described::new(shape, self.as_bytes()));
            }
        }

        impl $crate::rm::Layout for $name {
            const SHAPE: $crate::rm::Shape = $crate::rm::Shape {
                name: $header,
                fields: &[ $( $crate::rm::Field {
                    name: $field_header,
                    offset: core::mem::offset_of!($name, $field),
                    size: size_of::<$ty>(),
                } ),* ],
                sizes: &[ $( $( ($since, $size) ),* )? ],
                full: size_of::<$name>(),
            };
        }
    )*

    /// Every structure defined here.
    pub(crate) const SHAPES: &[$crate::rm::Shape] = &[ $( <$name as $crate::rm::Layout>::SHAPE ),* ];
    };
}

/// Defines a pair of layouts of which a release has one: `Name { Wide | Other, before|since version, fields }`.
///
/// `Wide` is what callers fill in; it has every field that `Other` has.
macro_rules! versioned {
    (@other before $at:expr, $version:expr) => { $version < $at };
    (@other since $at:expr, $version:expr) => { $version >= $at };
    (
        $(#[$meta:meta])*
        $name:ident { $wide:ident | $other:ident, $side:ident $at:expr, $( $field:ident ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        pub struct $name {
            /// The fields, to be filled in and read.
            pub params: $wide,
            other: $other,
        }

        impl $name {
            /// Lays the fields out as the release's driver expects them.
            pub fn bytes_mut(&mut self, version: $crate::rm::DriverVersion) -> &mut [u8] {
                if versioned!(@other $side $at, version) {
                    self.other = $other::default();
                    $( self.other.$field = self.params.$field; )*
                    $crate::rm::Layout::prefix_mut(&mut self.other, version)
                } else {
                    $crate::rm::Layout::prefix_mut(&mut self.params, version)
                }
            }

            /// Takes what the driver wrote into the bytes back into the fields.
            pub fn read_back(&mut self, version: $crate::rm::DriverVersion) {
                if versioned!(@other $side $at, version) {
                    $( self.params.$field = self.other.$field; )*
                }
            }

            /// The layout that a release's driver expects.
            #[must_use]
            pub fn shape(version: $crate::rm::DriverVersion) -> $crate::rm::Shape {
                if versioned!(@other $side $at, version) {
                    <$other as $crate::rm::Layout>::SHAPE
                } else {
                    <$wide as $crate::rm::Layout>::SHAPE
                }
            }
        }

        impl core::ops::Deref for $name {
            type Target = $wide;

            fn deref(&self) -> &$wide {
                &self.params
            }
        }

        impl core::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $wide {
                &mut self.params
            }
        }

        impl From<$wide> for $name {
            fn from(params: $wide) -> Self {
                Self { params, ..Self::default() }
            }
        }

        impl $crate::rm::layout::sealed::Sealed for $name {}

        logged!($name, versioned, "{}", versioned.params);
    };
}

pub(crate) use {layouts, versioned};
