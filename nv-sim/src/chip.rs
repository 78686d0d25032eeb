//! The chips that the simulated GPU can present itself as.

use std::fmt;
use std::str::FromStr;

use nv_proto::unit::{ClassId, SmVersion};

/// A chip.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Chip {
    /// Ampere for data centres.
    Ga100,
    /// Ampere.
    Ga102,
    /// Ada.
    Ad102,
    /// Hopper.
    Gh100,
    /// Blackwell.
    Gb202,
}

impl Chip {
    /// Every chip, oldest first.
    pub const ALL: [Self; 5] = [
        Self::Ga100,
        Self::Ga102,
        Self::Ad102,
        Self::Gh100,
        Self::Gb202,
    ];

    /// The chip's code name in lower case, as [`Chip::from_str`] reads it.
    #[must_use]
    pub const fn code_name(self) -> &'static str {
        match self {
            Self::Ga100 => "ga100",
            Self::Ga102 => "ga102",
            Self::Ad102 => "ad102",
            Self::Gh100 => "gh100",
            Self::Gb202 => "gb202",
        }
    }

    /// The product name that a program shows.
    #[must_use]
    pub const fn product(self) -> &'static str {
        match self {
            Self::Ga100 => "NVIDIA A100 (simulated)",
            Self::Ga102 => "NVIDIA GeForce RTX 3090 (simulated)",
            Self::Ad102 => "NVIDIA GeForce RTX 4090 (simulated)",
            Self::Gh100 => "NVIDIA H200 (simulated)",
            Self::Gb202 => "NVIDIA GeForce RTX 5090 (simulated)",
        }
    }

    /// The version of its streaming multiprocessors.
    #[must_use]
    pub const fn sm_version(self) -> SmVersion {
        SmVersion(match self {
            Self::Ga100 => 80,
            Self::Ga102 => 86,
            Self::Ad102 => 89,
            Self::Gh100 => 90,
            Self::Gb202 => 120,
        })
    }

    /// What `NV2080_CTRL_GR_INFO_INDEX_SM_VERSION` answers (0x900 read on an H200; 0xa04 is sm_120's in the
    /// reference system; the others follow its rule major << 8 | minor).
    #[must_use]
    pub const fn gr_sm_version(self) -> u32 {
        match self {
            Self::Ga100 => 0x800,
            Self::Ga102 => 0x806,
            Self::Ad102 => 0x809,
            Self::Gh100 => 0x900,
            Self::Gb202 => 0xa04,
        }
    }

    /// Graphics processing clusters, the most that the design has.
    #[must_use]
    pub const fn gpcs(self) -> u32 {
        match self {
            Self::Ga100 | Self::Gh100 => 8,
            Self::Ga102 => 7,
            Self::Ad102 | Self::Gb202 => 12,
        }
    }

    /// Texture processing clusters of a GPC, the most that the design has.
    #[must_use]
    pub const fn tpcs_per_gpc(self) -> u32 {
        match self {
            Self::Ga100 | Self::Gb202 => 8,
            Self::Ga102 | Self::Ad102 => 6,
            Self::Gh100 => 9,
        }
    }

    /// Streaming multiprocessors of a TPC.
    #[must_use]
    pub const fn sms_per_tpc(self) -> u32 {
        2
    }

    /// Streaming multiprocessors that the product has enabled.
    #[must_use]
    pub const fn sm_count(self) -> u32 {
        match self {
            Self::Ga100 => 108,
            Self::Ga102 => 82,
            Self::Ad102 => 128,
            Self::Gh100 => 132,
            Self::Gb202 => 170,
        }
    }

    /// Warps that one SM holds (`facts/kernel_abi.json`, `max_warps_per_sm`).
    #[must_use]
    pub const fn warps_per_sm(self) -> u32 {
        match self {
            Self::Ga100 | Self::Gh100 => 64,
            Self::Ga102 | Self::Ad102 | Self::Gb202 => 48,
        }
    }

    /// The largest shared-memory configuration of an SM in KB (`sm_config_shared_mem_kb`).
    #[must_use]
    pub const fn shared_kb(self) -> u32 {
        match self {
            Self::Ga100 => 164,
            Self::Ga102 | Self::Ad102 | Self::Gb202 => 100,
            Self::Gh100 => 228,
        }
    }

    /// The classes that the chip offers (driver tables at 595, `facts/classes.json`), generic ones included.
    #[must_use]
    pub const fn classes(self) -> &'static [ClassId] {
        match self {
            Self::Ga100 => &GA100,
            Self::Ga102 => &GA102,
            Self::Ad102 => &AD102,
            Self::Gh100 => &GH100,
            Self::Gb202 => &GB202,
        }
    }

    /// Whether the chip offers `class`.
    #[must_use]
    pub fn offers(self, class: ClassId) -> bool {
        self.classes().contains(&class)
    }

    /// The compute class of the chip.
    #[must_use]
    pub const fn compute_class(self) -> ClassId {
        ClassId(match self {
            Self::Ga100 => 0xc6c0,
            Self::Ga102 => 0xc7c0,
            Self::Ad102 => 0xc9c0,
            Self::Gh100 => 0xcbc0,
            Self::Gb202 => 0xcec0,
        })
    }

    /// The copy class of the chip.
    #[must_use]
    pub const fn copy_class(self) -> ClassId {
        ClassId(match self {
            Self::Ga100 => 0xc6b5,
            Self::Ga102 | Self::Ad102 => 0xc7b5,
            Self::Gh100 => 0xc8b5,
            Self::Gb202 => 0xcab5,
        })
    }

    /// The versions of launch descriptors that run, major and minor. A version 3 descriptor hangs a GH100
    /// (measured on an H200), although its header lists one.
    #[must_use]
    pub const fn qmd_major(self) -> u32 {
        match self {
            Self::Ga100 | Self::Ga102 | Self::Ad102 => 3,
            Self::Gh100 => 4,
            Self::Gb202 => 5,
        }
    }
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code_name())
    }
}

/// A name that is no chip's.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no simulated chip is called {0:?}: there are ga100, ga102, ad102, gh100 and gb202")]
pub struct UnknownChip(pub String);

impl FromStr for Chip {
    type Err = UnknownChip;

    fn from_str(name: &str) -> Result<Self, UnknownChip> {
        let found = Self::ALL
            .into_iter()
            .find(|chip| chip.code_name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownChip(name.to_owned()))
    }
}

const fn list<const N: usize>(ids: [u32; N]) -> [ClassId; N] {
    let mut out = [ClassId(0); N];
    let mut i = 0;
    while i < N {
        out[i] = ClassId(ids[i]);
        i += 1;
    }
    out
}

static GA100: [ClassId; 29] = list([
    0x100, 0x101, 0x2, 0x5, 0x78, 0x7e, 0x79, 0x76, 0x81, 0x3e, 0x71, 0x0, 0x41, 0x1, 0x80, 0x2080,
    0x90f1, 0xa06c, 0xc561, 0xc461, 0xc361, 0xc56f, 0xc46f, 0xc36f, 0xc6c0, 0xc6b5, 0xc6b0, 0xc697,
    0xa140,
]);

static GA102: [ClassId; 29] = list([
    0x100, 0x101, 0x2, 0x5, 0x78, 0x7e, 0x79, 0x76, 0x81, 0x3e, 0x71, 0x0, 0x41, 0x1, 0x80, 0x2080,
    0x90f1, 0xa06c, 0xc561, 0xc461, 0xc361, 0xc56f, 0xc46f, 0xc36f, 0xc7c0, 0xc7b5, 0xc7b0, 0xc797,
    0xa140,
]);

static AD102: [ClassId; 29] = list([
    0x100, 0x101, 0x2, 0x5, 0x78, 0x7e, 0x79, 0x76, 0x81, 0x3e, 0x71, 0x0, 0x41, 0x1, 0x80, 0x2080,
    0x90f1, 0xa06c, 0xc561, 0xc461, 0xc361, 0xc56f, 0xc46f, 0xc36f, 0xc9c0, 0xc7b5, 0xc9b0, 0xc997,
    0xa140,
]);

static GH100: [ClassId; 31] = list([
    0x100, 0x101, 0x2, 0x5, 0x78, 0x7e, 0x79, 0x76, 0x81, 0x3e, 0x71, 0x0, 0x41, 0x1, 0x80, 0x2080,
    0x90f1, 0xa06c, 0xc561, 0xc661, 0xc461, 0xc361, 0xc56f, 0xc86f, 0xc46f, 0xc36f, 0xcbc0, 0xc8b5,
    0xb8b0, 0xcb97, 0xa140,
]);

static GB202: [ClassId; 34] = list([
    0x100, 0x101, 0x2, 0x5, 0x78, 0x7e, 0x79, 0x76, 0x81, 0x3e, 0x71, 0x0, 0x41, 0x1, 0x80, 0x2080,
    0x90f1, 0xa06c, 0xc561, 0xc761, 0xc661, 0xc461, 0xc361, 0xc56f, 0xc96f, 0xca6f, 0xc86f, 0xc46f,
    0xc36f, 0xcec0, 0xcab5, 0xcfb0, 0xce97, 0xcd40,
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for chip in Chip::ALL {
            assert_eq!(chip.to_string().parse(), Ok(chip));
            assert_eq!(chip.to_string().to_uppercase().parse(), Ok(chip));
        }
        let error = "h100".parse::<Chip>().unwrap_err();
        assert!(error.to_string().contains("\"h100\""), "{error}");
    }

    #[test]
    fn classes_are_offered() {
        for chip in Chip::ALL {
            assert!(chip.offers(chip.compute_class()) && chip.offers(chip.copy_class()));
            assert!(chip.sm_count() <= chip.gpcs() * chip.tpcs_per_gpc() * chip.sms_per_tpc());
        }
    }
}
