//! The quantities that the encoders take: no bare integers where two could be mixed up.

use core::fmt;

/// A GPU virtual address.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GpuVa(pub u64);

impl GpuVa {
    /// The low 32 bits.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    pub const fn lo(self) -> u32 {
        self.0 as u32
    }

    /// The bits above the low 32.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a u64 shifted right by 32 fits"
    )]
    pub const fn hi(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The address `bytes` further on, or `None` past the end of 64 bits.
    #[must_use]
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(va) => Some(Self(va)),
            None => None,
        }
    }

    /// Whether the address is a multiple of `align`, which must be a power of two.
    #[must_use]
    pub const fn is_aligned(self, align: u64) -> bool {
        self.0 & align.wrapping_sub(1) == 0
    }
}

impl fmt::Display for GpuVa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A resource-manager object handle; 0 is no object.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handle(pub u32);

impl Handle {
    /// No object (`NV01_NULL_OBJECT`).
    pub const NULL: Self = Self(0);
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A class id, as the kernel driver lists it: the number of a hardware engine's or an RM object's interface.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClassId(pub u32);

/// What is written to the doorbell to say that a channel has work.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SubmitToken(pub u32);

/// A grid, block or cluster shape: x varies fastest.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Dim3 {
    /// Extent in x.
    pub x: u32,
    /// Extent in y.
    pub y: u32,
    /// Extent in z.
    pub z: u32,
}

impl Dim3 {
    /// One in every direction.
    pub const ONE: Self = Self { x: 1, y: 1, z: 1 };

    /// A shape of `x` by `y` by `z`.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// How many points the shape has; it saturates at `u64::MAX`.
    #[must_use]
    pub const fn count(self) -> u64 {
        (self.x as u64)
            .saturating_mul(self.y as u64)
            .saturating_mul(self.z as u64)
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// A streaming-multiprocessor version as compilers name it: 90 for `sm_90`.
///
/// An open number: a version that this crate has no table for keeps its value.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SmVersion(pub u16);

impl SmVersion {
    /// The part before the last digit: 9 for `sm_90`, 12 for `sm_120`.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.0 / 10
    }
}

impl fmt::Display for SmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}
