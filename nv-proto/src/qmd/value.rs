//! What a field's number means: plain numbers, flags, scaled sizes, and the values that headers name.
//!
//! Named values are open: a number that no header names is kept, so that decoding loses nothing.

use crate::error::EncodeError;

/// What a field holds.
pub trait Kind {
    /// The type that callers see.
    type Value: Copy;
    /// The field counts in units of 2^`SHIFT`.
    const SHIFT: u8;
    /// The names that the header gives to numbers.
    const NAMES: &'static [(u32, &'static str)];

    /// What a field's number means.
    fn from_raw(raw: u32) -> Self::Value;

    /// The number for a value of the field called `name`.
    ///
    /// # Errors
    /// [`EncodeError::Misaligned`].
    fn to_raw(value: Self::Value, name: &'static str) -> Result<u64, EncodeError>;
}

/// A plain number.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Number;

impl Kind for Number {
    type Value = u32;
    const SHIFT: u8 = 0;
    const NAMES: &'static [(u32, &'static str)] = &[];

    fn from_raw(raw: u32) -> u32 {
        raw
    }

    fn to_raw(value: u32, _name: &'static str) -> Result<u64, EncodeError> {
        Ok(u64::from(value))
    }
}

/// A single bit.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Flag;

impl Kind for Flag {
    type Value = bool;
    const SHIFT: u8 = 0;
    const NAMES: &'static [(u32, &'static str)] = &[(0, "FALSE"), (1, "TRUE")];

    fn from_raw(raw: u32) -> bool {
        raw != 0
    }

    fn to_raw(value: bool, _name: &'static str) -> Result<u64, EncodeError> {
        Ok(u64::from(value))
    }
}

/// A size that the field counts in units of 2^`N` (`_SHIFTEDn` in the header); callers see it whole.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shifted<const N: u8>;

impl<const N: u8> Kind for Shifted<N> {
    type Value = u64;
    const SHIFT: u8 = N;
    const NAMES: &'static [(u32, &'static str)] = &[];

    fn from_raw(raw: u32) -> u64 {
        u64::from(raw).unbounded_shl(N.into())
    }

    fn to_raw(value: u64, name: &'static str) -> Result<u64, EncodeError> {
        let unit = 1_u64.unbounded_shl(N.into());
        if value & unit.wrapping_sub(1) != 0 {
            return Err(EncodeError::Misaligned {
                field: name,
                unit,
                value,
            });
        }
        Ok(value.unbounded_shr(N.into()))
    }
}

/// Makes an open enumeration of a field's named values.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$value_meta:meta])* $name:ident = $value:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $type(pub u32);

        impl $type {
            $(
                #[doc = concat!("`", stringify!($name), "` in the header.")]
                $(#[$value_meta])*
                pub const $name: Self = Self($value);
            )+

            /// The header's name for the value, where it gives one.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                <Self as Kind>::NAMES.iter().find(|(value, _)| *value == self.0).map(|(_, name)| *name)
            }
        }

        impl Kind for $type {
            type Value = Self;
            const SHIFT: u8 = 0;
            const NAMES: &'static [(u32, &'static str)] = &[
                $(($value, stringify!($name))),+
            ];

            fn from_raw(raw: u32) -> Self {
                Self(raw)
            }

            fn to_raw(value: Self, _name: &'static str) -> Result<u64, EncodeError> {
                Ok(u64::from(value.0))
            }
        }
    };
}

named! {
    /// What a descriptor is (from version 4.0 on).
    QmdType {
        QUEUE = 0,
        GRID_NULL = 1,
        GRID_CTA = 2,
        GRID_GPC_CGA = 3,
        GRID_GPU_CGA = 4,
        GRID_GPU_GPC_CGA = 5,
    }
}
named! {
    /// The memory barrier at the end of a grid.
    CwdMembarType {
        L1_NONE = 0,
        L1_SYSMEMBAR = 1,
        L1_MEMBAR = 3,
    }
}
named! {
    /// Whether the depth of calls is checked.
    ApiVisibleCallLimit {
        _32 = 0,
        NO_CHECK = 1,
    }
}
named! {
    /// How a texture instruction finds its sampler.
    SamplerIndex {
        INDEPENDENTLY = 0,
        VIA_HEADER_INDEX = 1,
    }
}
named! {
    /// What the dependent descriptor of versions 2.2 and 2.3 is.
    DependentQmdType {
        QUEUE = 0,
        GRID = 1,
    }
}
named! {
    /// What happens to a dependent descriptor when this one is done.
    DependentQmdAction {
        QMD_INCREMENT_PUT = 0,
        QMD_SCHEDULE = 1,
        QMD_INVALIDATE_COPY_SCHEDULE = 3,
        QMD_DECREMENT_DEPENDENCE = 4,
    }
}
named! {
    /// The memory barrier before a semaphore release.
    ReleaseMembarType {
        FE_NONE = 0,
        FE_SYSMEMBAR = 1,
    }
}
named! {
    /// The operation of a release that reduces.
    ReductionOp {
        RED_ADD = 0,
        RED_MIN = 1,
        RED_MAX = 2,
        RED_INC = 3,
        RED_DEC = 4,
        RED_AND = 5,
        RED_OR = 6,
        RED_XOR = 7,
    }
}
named! {
    /// The operand of a release that reduces.
    ReductionFormat {
        UNSIGNED = 0,
        SIGNED = 1,
    }
}
named! {
    /// The operand of a release that reduces, up to version 3.0.
    ReductionFormat32 {
        UNSIGNED_32 = 0,
        SIGNED_32 = 1,
    }
}
named! {
    /// How much a release writes.
    SemaphoreStructureSize {
        SEMAPHORE_FOUR_WORDS = 0,
        SEMAPHORE_ONE_WORD = 1,
        SEMAPHORE_TWO_WORDS = 2,
    }
}
named! {
    /// How much a release writes, in versions 2.x.
    ReleaseStructureSize {
        FOUR_WORDS = 0,
        ONE_WORD = 1,
    }
}
named! {
    /// The interrupt that a release of version 3.0 raises.
    NonBlockingIntrType {
        NONE = 0,
        TRAP = 1,
        CONDITIONAL_TRAP = 2,
    }
}
named! {
    /// The interrupt that a release raises.
    TrapType {
        TRAP_NONE = 0,
        TRAP_UNCONDITIONAL = 1,
        TRAP_CONDITIONAL = 2,
        TRAP_CONDITIONAL_EXT = 3,
    }
}
named! {
    /// When instructions are fetched ahead.
    ProgramPrefetchType {
        PREFETCH_LAUNCH = 0,
        /// Spelt so in the headers.
        PREFTECH_POST = 1,
    }
}
named! {
    /// When a constant bank is fetched ahead.
    ConstantBufferPrefetch {
        PREFETCH_NONE = 0,
        PREFETCH_PRE = 1,
        PREFETCH_POST = 2,
    }
}
named! {
    /// How the blocks of a cluster are spread over a GPC.
    CgaCtaDistributionMode {
        LOAD_BALANCING = 0,
        MULTI_CAST = 1,
    }
}
