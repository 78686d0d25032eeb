//! Releases of the kernel driver, and which of them the layouts here are known to fit.
//!
//! The table's rows are the branches whose published headers were compiled and compared, release by release.

use core::fmt;
use core::str::FromStr;

use crate::error::DecodeError;

/// A release of the kernel driver, such as 580.159.04.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DriverVersion {
    /// The branch.
    pub major: u16,
    /// The release of the branch.
    pub minor: u16,
    /// The third part; 0 where there is none (580.142).
    pub patch: u16,
}

impl DriverVersion {
    /// The first release whose layouts were checked.
    pub const OLDEST: Self = Self::new(535, 43, 2);

    /// The release `major.minor.patch`.
    #[must_use]
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// Reads `major.minor` or `major.minor.patch`, each part one to five decimal digits.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] with the offset and value of the first character that does not belong, or
    /// [`DecodeError::Truncated`] where a part is missing.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        let mut parts = [0_u16; 3];
        let mut part = 0_usize;
        let mut digits = 0_usize;
        for (offset, byte) in text.bytes().enumerate() {
            let bad = DecodeError::BadValue {
                what: WHAT,
                offset,
                value: u64::from(byte),
            };
            if byte == b'.' && digits > 0 && part < 2 {
                part = part.saturating_add(1);
                digits = 0;
            } else if byte.is_ascii_digit() {
                let digit = u16::from(byte.saturating_sub(b'0'));
                let slot = parts.get_mut(part).ok_or(bad)?;
                *slot = slot
                    .checked_mul(10)
                    .and_then(|n| n.checked_add(digit))
                    .ok_or(bad)?;
                digits = digits.saturating_add(1);
            } else {
                return Err(bad);
            }
        }
        if part == 0 || digits == 0 {
            let offset = text.len();
            return Err(DecodeError::Truncated {
                what: WHAT,
                offset,
                needed: 1,
                available: 0,
            });
        }
        let [major, minor, patch] = parts;
        Ok(Self {
            major,
            minor,
            patch,
        })
    }
}

impl FromStr for DriverVersion {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            major,
            minor,
            patch,
        } = self;
        match patch {
            0 => write!(f, "{major}.{minor}"),
            _ => write!(f, "{major}.{minor:02}.{patch:02}"),
        }
    }
}

/// How well a release is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fit {
    /// The layouts of its branch were checked up to this release or a later one.
    Checked,
    /// It is a later release of a branch that was checked: branches have not changed a layout used here after
    /// their first production release.
    LaterInBranch,
    /// Its branch is not in the table: the nearest older branch stands in. Callers should warn.
    Nearest,
}

/// One branch of the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Branch {
    /// Its number.
    pub major: u16,
    /// The first release checked.
    pub first: DriverVersion,
    /// The last release checked.
    pub last: DriverVersion,
}

/// Which layouts a driver is taken to have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Abi {
    /// The driver's release.
    pub version: DriverVersion,
    /// The row of the table.
    pub branch: Branch,
    /// How well the row fits.
    pub fit: Fit,
}

impl Abi {
    /// Finds the row for a release.
    ///
    /// # Errors
    /// [`UnsupportedDriver`] for a release older than [`DriverVersion::OLDEST`]: its layouts are unknown, and
    /// UVM misreads a wrong layout silently.
    pub fn of(version: DriverVersion) -> Result<Self, UnsupportedDriver> {
        let older = BRANCHES.iter().rev().find(|branch| branch.first <= version);
        let branch = *older.ok_or(UnsupportedDriver { version })?;
        let fit = match () {
            () if version.major != branch.major => Fit::Nearest,
            () if version > branch.last => Fit::LaterInBranch,
            () => Fit::Checked,
        };
        Ok(Self {
            version,
            branch,
            fit,
        })
    }
}

/// A driver too old to talk to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error(
    "driver {version} is older than {}, the oldest that is supported: update it",
    DriverVersion::OLDEST
)]
pub struct UnsupportedDriver {
    /// The driver's release.
    pub version: DriverVersion,
}

const WHAT: &str = "driver version";

const fn branch(major: u16, first: (u16, u16), last: (u16, u16)) -> Branch {
    Branch {
        major,
        first: DriverVersion::new(major, first.0, first.1),
        last: DriverVersion::new(major, last.0, last.1),
    }
}

/// The branches whose layouts are known, oldest first. 610 is second hand (no headers of it were compiled);
/// 580.159.04 is what the first hardware runs were made on.
pub const BRANCHES: &[Branch] = &[
    branch(535, (43, 2), (288, 1)),
    branch(545, (23, 6), (29, 6)),
    branch(550, (40, 7), (163, 1)),
    branch(555, (42, 2), (58, 2)),
    branch(560, (28, 3), (35, 3)),
    branch(565, (57, 1), (77, 0)),
    branch(570, (86, 15), (211, 1)),
    branch(575, (51, 2), (64, 5)),
    branch(580, (65, 6), (159, 4)),
    branch(590, (44, 1), (48, 1)),
    branch(595, (44, 2), (45, 4)),
    branch(610, (43, 2), (43, 3)),
];
