//! Where an address lies among the memory of a context.

use std::fmt;

use nv_proto::unit::GpuVa;

use crate::memory::{Neighbours, Region};

/// Where an address lies: in which memory, or which memory it missed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum MemoryPlace {
    /// In the first 64 KiB, where nothing ever lies: a null pointer, or a little behind one.
    Null,
    /// In memory that is there, so many bytes from its start.
    Inside(Region, u64),
    /// So many bytes past the end of a buffer, nearer to it than to any other; of other memory where there is no buffer.
    Past(Region, u64),
    /// So many bytes before the start of a buffer, nearer to it than to any other; of other memory where there is none.
    Before(Region, u64),
    /// In memory that was freed, so many bytes from its start.
    Freed(Region, u64),
    /// Nowhere near anything.
    #[default]
    Nowhere,
}

impl MemoryPlace {
    /// How far behind a null pointer an access still counts as one through it.
    const NULL_BYTES: u64 = 0x1_0000;

    /// Where `address` lies, given what is around it and the nearest buffers below and above.
    pub(crate) fn of(
        address: u64,
        around: &Neighbours,
        (below, above): (Option<Region>, Option<Region>),
    ) -> Self {
        if address < Self::NULL_BYTES {
            return Self::Null;
        }
        if let Some(region) = around.at {
            return Self::Inside(region, address - region.start.0);
        }
        if let Some(region) = around.freed {
            return Self::Freed(region, address - region.start.0);
        }
        let past = below
            .or(around.below)
            .map(|region| (address.saturating_sub(region.end().0), region));
        let before = above
            .or(around.above)
            .map(|region| (region.start.0.saturating_sub(address), region));
        match (past, before) {
            (Some((past, region)), Some((before, _))) if past <= before => Self::Past(region, past),
            (_, Some((before, region))) => Self::Before(region, before),
            (Some((past, region)), None) => Self::Past(region, past),
            (None, None) => Self::Nowhere,
        }
    }

    /// The stable name of the relation, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Inside(..) => "inside",
            Self::Past(..) => "past",
            Self::Before(..) => "before",
            Self::Freed(..) => "freed",
            Self::Nowhere => "nowhere",
        }
    }

    /// How many bytes it is from the memory's start, or beyond it.
    #[must_use]
    pub const fn distance(&self) -> Option<u64> {
        match self {
            Self::Inside(_, by) | Self::Past(_, by) | Self::Before(_, by) | Self::Freed(_, by) => {
                Some(*by)
            }
            Self::Null | Self::Nowhere => None,
        }
    }

    /// The memory that is meant.
    #[must_use]
    pub fn region(&self) -> Option<&Region> {
        match self {
            Self::Inside(region, _)
            | Self::Past(region, _)
            | Self::Before(region, _)
            | Self::Freed(region, _) => Some(region),
            Self::Null | Self::Nowhere => None,
        }
    }
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("a null pointer"),
            Self::Inside(region, 0) => write!(f, "the start of {}", Shown(region)),
            Self::Inside(region, by) => write!(f, "{} into {}", Bytes(*by), Shown(region)),
            Self::Past(region, 0) => write!(f, "just past the end of {}", Shown(region)),
            Self::Past(region, by) => {
                write!(f, "{} past the end of {}", Bytes(*by), Shown(region))
            }
            Self::Before(region, by) => {
                write!(f, "{} before the start of {}", Bytes(*by), Shown(region))
            }
            Self::Freed(region, by) => {
                write!(f, "{} into {}, which was freed", Bytes(*by), Shown(region))
            }
            Self::Nowhere => f.write_str("no memory near it"),
        }
    }
}

/// A region in words.
struct Shown<'a>(&'a Region);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { start, bytes, what } = self.0;
        let GpuVa(start) = start;
        write!(f, "{what} of {} at {start:#x}", Bytes(*bytes))
    }
}

/// A size or a distance: exact in the largest unit that it is a multiple of, and about where it is large.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let bytes = self.0;
        for (shift, unit) in UNITS {
            if bytes >> shift == 0 {
                continue;
            }
            if bytes.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", bytes >> shift);
            }
            if bytes >> 20 != 0 {
                return write!(
                    f,
                    "about {:.1} {unit}",
                    bytes as f64 / (1_u64 << shift) as f64
                );
            }
            break;
        }
        match bytes {
            1 => f.write_str("1 byte"),
            _ => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Use;

    #[test]
    fn every_place_is_told() {
        let region = |start, bytes| {
            Some(Region {
                start: GpuVa(start),
                bytes,
                what: Use::Buffer,
            })
        };
        let (low, high) = (region(0x10_0000, 0x1000), region(0x20_0000, 24));
        let text = |address, at, below, above, freed| {
            MemoryPlace::of(
                address,
                &Neighbours {
                    at,
                    below,
                    above,
                    freed,
                },
                (below, above),
            )
            .to_string()
        };
        assert_eq!(text(8, None, None, low, None), "a null pointer");
        assert_eq!(
            text(0x10_0004, low, None, high, low),
            "4 bytes into a buffer of 4 KiB at 0x100000"
        );
        assert_eq!(
            text(0x10_1000, None, low, high, None),
            "just past the end of a buffer of 4 KiB at 0x100000"
        );
        assert_eq!(
            text(0x10_2000, None, low, high, None),
            "4 KiB past the end of a buffer of 4 KiB at 0x100000"
        );
        assert_eq!(
            text(0x1f_ffff, None, low, high, None),
            "1 byte before the start of a buffer of 24 bytes at 0x200000"
        );
        assert_eq!(
            text(0x20_0010, None, low, None, high),
            "16 bytes into a buffer of 24 bytes at 0x200000, which was freed"
        );
        assert_eq!(
            text(0xf_0010_0fff, None, low, None, None),
            "about 60.0 GiB past the end of a buffer of 4 KiB at 0x100000"
        );
        assert_eq!(text(u64::MAX, None, None, None, None), "no memory near it");
    }
}
