//! Class ids by generation, and the choice among those that a GPU offers.
//!
//! The ids are those of the class headers (`clc46f.h` and so on); which chip offers which is what the open
//! kernel driver's class tables say.

mod names;

use core::fmt;

use heapless::Vec;

use crate::qmd;
pub use crate::rm::names::classes::*;
use crate::unit::ClassId;

pub use names::NAMES;

/// The name of a class: that of the header which defines it. Where a number has two, the older name.
#[must_use]
pub fn name(class: ClassId) -> Option<&'static str> {
    let first = NAMES.partition_point(|(id, _)| *id < class.0);
    NAMES
        .get(first)
        .filter(|(id, _)| *id == class.0)
        .map(|(_, name)| *name)
}

/// The class of a name.
#[must_use]
pub fn by_name(name: &str) -> Option<ClassId> {
    NAMES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(id, _)| ClassId(*id))
}

/// What a class that a launch needs is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Role {
    /// The doorbell page.
    Usermode,
    /// The channel.
    Gpfifo,
    /// Kernel launches.
    Compute,
    /// Copies.
    Copy,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Usermode, Self::Gpfifo, Self::Compute, Self::Copy];

    /// The low byte that NVIDIA numbers the classes of this role with, in every generation known.
    #[must_use]
    pub const fn low_byte(self) -> u8 {
        match self {
            Self::Usermode => 0x61,
            Self::Gpfifo => 0x6f,
            Self::Compute => 0xc0,
            Self::Copy => 0xb5,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usermode => "usermode",
            Self::Gpfifo => "channel",
            Self::Compute => "compute",
            Self::Copy => "copy",
        })
    }
}

/// A generation of GPUs, told by its compute class.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Generation {
    /// TU10x, TU11x.
    Turing,
    /// GA100.
    AmpereGa100,
    /// GA10x.
    AmpereGa10x,
    /// AD10x.
    Ada,
    /// GH100.
    Hopper,
    /// GB10x.
    BlackwellGb10x,
    /// GB20x.
    BlackwellGb20x,
}

impl Generation {
    /// All of them, oldest first.
    pub const ALL: [Self; 7] = [
        Self::Turing,
        Self::AmpereGa100,
        Self::AmpereGa10x,
        Self::Ada,
        Self::Hopper,
        Self::BlackwellGb10x,
        Self::BlackwellGb20x,
    ];

    /// The generation whose compute class this is.
    #[must_use]
    pub fn of_compute(class: ClassId) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|generation| generation.class(Role::Compute) == class)
    }

    /// The class that serves `role` best on this generation.
    #[must_use]
    pub const fn class(self, role: Role) -> ClassId {
        match role {
            Role::Usermode => match self {
                Self::Turing => TURING_USERMODE_A,
                Self::AmpereGa100 | Self::AmpereGa10x | Self::Ada => AMPERE_USERMODE_A,
                Self::Hopper | Self::BlackwellGb10x | Self::BlackwellGb20x => HOPPER_USERMODE_A,
            },
            Role::Gpfifo => match self {
                Self::Turing => TURING_CHANNEL_GPFIFO_A,
                Self::AmpereGa100 | Self::AmpereGa10x | Self::Ada => AMPERE_CHANNEL_GPFIFO_A,
                Self::Hopper => HOPPER_CHANNEL_GPFIFO_A,
                Self::BlackwellGb10x | Self::BlackwellGb20x => BLACKWELL_CHANNEL_GPFIFO_A,
            },
            Role::Compute => match self {
                Self::Turing => TURING_COMPUTE_A,
                Self::AmpereGa100 => AMPERE_COMPUTE_A,
                Self::AmpereGa10x => AMPERE_COMPUTE_B,
                Self::Ada => ADA_COMPUTE_A,
                Self::Hopper => HOPPER_COMPUTE_A,
                Self::BlackwellGb10x => BLACKWELL_COMPUTE_A,
                Self::BlackwellGb20x => BLACKWELL_COMPUTE_B,
            },
            Role::Copy => match self {
                Self::Turing => TURING_DMA_COPY_A,
                Self::AmpereGa100 => AMPERE_DMA_COPY_A,
                Self::AmpereGa10x | Self::Ada => AMPERE_DMA_COPY_B,
                Self::Hopper => HOPPER_DMA_COPY_A,
                Self::BlackwellGb10x => BLACKWELL_DMA_COPY_A,
                Self::BlackwellGb20x => BLACKWELL_DMA_COPY_B,
            },
        }
    }

    /// The version of launch descriptor to use.
    #[must_use]
    pub const fn qmd(self) -> qmd::Version {
        match self {
            Self::Turing => qmd::Version::V02_03,
            Self::AmpereGa100 | Self::AmpereGa10x | Self::Ada => qmd::Version::V03_00,
            Self::Hopper => qmd::Version::V04_00,
            Self::BlackwellGb10x | Self::BlackwellGb20x => qmd::Version::V05_00,
        }
    }

    /// How many bits of address the channel's semaphore methods take (`SEM_ADDR_HI` of the class).
    #[must_use]
    pub const fn semaphore_va_bits(self) -> u32 {
        match self {
            Self::Turing | Self::AmpereGa100 | Self::AmpereGa10x | Self::Ada => 40,
            Self::Hopper | Self::BlackwellGb10x | Self::BlackwellGb20x => 57,
        }
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turing => "Turing",
            Self::AmpereGa100 => "Ampere (GA100)",
            Self::AmpereGa10x => "Ampere (GA10x)",
            Self::Ada => "Ada",
            Self::Hopper => "Hopper",
            Self::BlackwellGb10x => "Blackwell (GB10x)",
            Self::BlackwellGb20x => "Blackwell (GB20x)",
        })
    }
}

/// The classes that a compute client makes its objects of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClassSet {
    /// The GPU's generation.
    pub generation: Generation,
    /// The doorbell page.
    pub usermode: ClassId,
    /// The channel.
    pub gpfifo: ClassId,
    /// Kernel launches.
    pub compute: ClassId,
    /// Copies.
    pub copy: ClassId,
    /// The version of launch descriptor.
    pub qmd: qmd::Version,
}

impl ClassSet {
    /// The class chosen for `role`.
    #[must_use]
    pub const fn class(&self, role: Role) -> ClassId {
        match role {
            Role::Usermode => self.usermode,
            Role::Gpfifo => self.gpfifo,
            Role::Compute => self.compute,
            Role::Copy => self.copy,
        }
    }
}

/// Why no set of classes could be chosen.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("the GPU offers no {role} class that is known here: {}", Listed(.found, .nearest))]
pub struct ClassError {
    /// What there is no class for.
    pub role: Role,
    /// The classes of that role that it does offer, going by their numbers: the first 8.
    pub found: Vec<ClassId, 8>,
    /// The generation known here whose class is nearest to those found.
    pub nearest: Option<Generation>,
}

struct Listed<'a>(&'a [ClassId], &'a Option<Generation>);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none at all is listed; is this a GPU without such an engine?");
        }
        f.write_str("it lists")?;
        for class in self.0 {
            write!(f, " {:#06x}", class.0)?;
            if let Some(name) = name(*class) {
                write!(f, " ({name})")?;
            }
        }
        if let Some(nearest) = self.1 {
            write!(f, "; the nearest generation known is {nearest}")?;
        }
        Ok(())
    }
}

/// Chooses the classes to use from those that a GPU lists.
///
/// The newest known compute class decides the generation; the other roles take what serves that generation
/// best, or else the newest older class that is listed.
///
/// # Errors
/// When a role has no known class in the list.
pub fn select_classes(listed: &[ClassId]) -> Result<ClassSet, ClassError> {
    let generation = Generation::ALL
        .into_iter()
        .rev()
        .find(|generation| listed.contains(&generation.class(Role::Compute)))
        .ok_or_else(|| missing(Role::Compute, listed))?;
    let choose = |role| {
        Generation::ALL
            .into_iter()
            .rev()
            .filter(|candidate| *candidate <= generation)
            .map(|candidate| candidate.class(role))
            .find(|class| listed.contains(class))
            .ok_or_else(|| missing(role, listed))
    };
    Ok(ClassSet {
        generation,
        usermode: choose(Role::Usermode)?,
        gpfifo: choose(Role::Gpfifo)?,
        compute: generation.class(Role::Compute),
        copy: choose(Role::Copy)?,
        qmd: generation.qmd(),
    })
}

fn missing(role: Role, listed: &[ClassId]) -> ClassError {
    let mut found = Vec::new();
    for class in listed {
        // From Kepler on these have four digits; RM's own small numbers end in the same bytes.
        if class.0 >= 0xa000
            && class.0.to_le_bytes()[0] == role.low_byte()
            && found.push(*class).is_err()
        {
            break;
        }
    }
    let distance = |generation: &Generation| {
        found
            .iter()
            .map(|class| class.0.abs_diff(generation.class(role).0))
            .min()
    };
    let nearest = Generation::ALL
        .into_iter()
        .filter_map(|generation| Some((distance(&generation)?, generation)))
        .min()
        .map(|(_, generation)| generation);
    ClassError {
        role,
        found,
        nearest,
    }
}

macro_rules! classes {
    ($($name:ident = $id:literal;)+) => { $(
        #[doc = concat!("Class `", stringify!($name), "`.")]
        pub const $name: ClassId = ClassId($id);
        const _: () = assert!(is_named($id, stringify!($name)), "the facts give the class another number");
    )+ };
}

/// Whether [`NAMES`] has this number under this name.
const fn is_named(id: u32, name: &str) -> bool {
    let mut names: &[(u32, &str)] = &NAMES;
    while let [(known, spelling), rest @ ..] = names {
        if *known == id && same(spelling.as_bytes(), name.as_bytes()) {
            return true;
        }
        names = rest;
    }
    false
}

const fn same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b) {
        if *x != *y {
            return false;
        }
        (a, b) = (a_rest, b_rest);
    }
    a.is_empty() && b.is_empty()
}

classes! {
    TURING_USERMODE_A = 0xc461;
    AMPERE_USERMODE_A = 0xc561;
    HOPPER_USERMODE_A = 0xc661;
    BLACKWELL_USERMODE_A = 0xc761;
    VOLTA_CHANNEL_GPFIFO_A = 0xc36f;
    TURING_CHANNEL_GPFIFO_A = 0xc46f;
    AMPERE_CHANNEL_GPFIFO_A = 0xc56f;
    AMPERE_CHANNEL_GPFIFO_B = 0xc76f;
    HOPPER_CHANNEL_GPFIFO_A = 0xc86f;
    BLACKWELL_CHANNEL_GPFIFO_A = 0xc96f;
    BLACKWELL_CHANNEL_GPFIFO_B = 0xca6f;
    VOLTA_COMPUTE_A = 0xc3c0;
    TURING_COMPUTE_A = 0xc5c0;
    AMPERE_COMPUTE_A = 0xc6c0;
    AMPERE_COMPUTE_B = 0xc7c0;
    ADA_COMPUTE_A = 0xc9c0;
    HOPPER_COMPUTE_A = 0xcbc0;
    BLACKWELL_COMPUTE_A = 0xcdc0;
    BLACKWELL_COMPUTE_B = 0xcec0;
    VOLTA_DMA_COPY_A = 0xc3b5;
    TURING_DMA_COPY_A = 0xc5b5;
    AMPERE_DMA_COPY_A = 0xc6b5;
    AMPERE_DMA_COPY_B = 0xc7b5;
    HOPPER_DMA_COPY_A = 0xc8b5;
    BLACKWELL_DMA_COPY_A = 0xc9b5;
    BLACKWELL_DMA_COPY_B = 0xcab5;
}
