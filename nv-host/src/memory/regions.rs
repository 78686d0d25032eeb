//! Which memory of an address space is in use, for what: so that an address that a fault names can be placed.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Mutex;

use nv_proto::unit::GpuVa;

use crate::context::lock;

/// What a region of GPU addresses is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Use {
    /// A buffer of the program's own.
    Buffer,
    /// The code and the variables of a module.
    Code,
    /// What a stream keeps its commands, launches and semaphores in.
    Stream,
    /// The local memory of threads.
    Local,
    /// What copies of pageable memory go through.
    Staging,
    /// What a graph keeps its launches in.
    Graph,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffer => "a buffer",
            Self::Code => "the code of a module",
            Self::Stream => "a stream's own memory",
            Self::Local => "local memory",
            Self::Staging => "memory for copies",
            Self::Graph => "a graph's own memory",
        })
    }
}

/// A region of GPU addresses in use: as large as was asked for, which is less than what is mapped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Region {
    /// Its first address.
    pub start: GpuVa,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it is for.
    pub what: Use,
}

impl Region {
    /// The first address behind it.
    #[must_use]
    pub fn end(&self) -> GpuVa {
        GpuVa(self.start.0.saturating_add(self.bytes))
    }
}

/// What lies at and around an address; [`Context::neighbours`](crate::Context::neighbours) answers it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Neighbours {
    /// The region that holds the address.
    pub at: Option<Region>,
    /// The nearest region that ends at or below the address.
    pub below: Option<Region>,
    /// The nearest region that begins above the address.
    pub above: Option<Region>,
    /// Of the regions given up lately, the newest that held the address.
    pub freed: Option<Region>,
}

/// The regions in use, by first address: apart from each other, and none empty.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    used: Mutex<BTreeMap<u64, (u64, Use)>>,
    /// Those given up last, newest first.
    freed: Mutex<VecDeque<Region>>,
}

impl Regions {
    /// Notes a region that is in use from now on.
    pub(crate) fn insert(&self, start: GpuVa, bytes: u64, what: Use) {
        lock(&self.used).insert(start.0, (bytes, what));
    }

    /// How many regions given up are remembered.
    const FREED: usize = 64;

    /// Forgets the region that begins at `start`, but for having been there.
    pub(crate) fn remove(&self, start: GpuVa) {
        if let Some((bytes, what)) = lock(&self.used).remove(&start.0) {
            let mut freed = lock(&self.freed);
            freed.truncate(Self::FREED - 1);
            freed.push_front(Region { start, bytes, what });
        }
    }

    /// What lies at and around `address`.
    pub(crate) fn around(&self, address: u64) -> Neighbours {
        let used = lock(&self.used);
        let region = |(start, (bytes, what)): (&u64, &(u64, Use))| Region {
            start: GpuVa(*start),
            bytes: *bytes,
            what: *what,
        };
        let mut up_to = used.range(..=address).rev().map(region);
        let last = up_to.next();
        let (at, below) = match last {
            Some(last) if address < last.end().0 => (Some(last), up_to.next()),
            last => (None, last),
        };
        let above = used
            .range((Excluded(address), Unbounded))
            .next()
            .map(region);
        let freed = lock(&self.freed);
        let freed = freed
            .iter()
            .find(|region| (region.start.0..region.end().0).contains(&address))
            .copied();
        Neighbours {
            at,
            below,
            above,
            freed,
        }
    }

    /// The nearest buffers of the program's own below and above `address`: those that it may have meant.
    pub(crate) fn buffers_around(&self, address: u64) -> (Option<Region>, Option<Region>) {
        let used = lock(&self.used);
        let buffer = |(start, (bytes, what)): (&u64, &(u64, Use))| {
            (*what == Use::Buffer).then_some(Region {
                start: GpuVa(*start),
                bytes: *bytes,
                what: *what,
            })
        };
        let below = used.range(..=address).rev().find_map(buffer);
        let above = used.range((Excluded(address), Unbounded)).find_map(buffer);
        (below.filter(|below| below.end().0 <= address), above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_placed() {
        let regions = Regions::default();
        assert_eq!(regions.around(0), Neighbours::default());
        let spans = [(0x1000, 0x10), (0x1200, 1), (0x1201, 0x100), (0x8000, 8)];
        for (start, bytes) in spans {
            regions.insert(GpuVa(start), bytes, Use::Buffer);
        }
        regions.insert(GpuVa(u64::MAX - 1), u64::MAX, Use::Local);
        for address in (0..0x9000).chain([u64::MAX - 2, u64::MAX - 1]) {
            let found = regions.around(address);
            let region = |start: u64, bytes: u64| Region {
                start: GpuVa(start),
                bytes,
                what: if start < 0x9000 {
                    Use::Buffer
                } else {
                    Use::Local
                },
            };
            let all = spans.iter().copied().chain([(u64::MAX - 1, u64::MAX)]);
            let all: Vec<Region> = all.map(|(start, bytes)| region(start, bytes)).collect();
            // Found by looking at each: what the ordered map must agree with.
            let at = all
                .iter()
                .find(|r| r.start.0 <= address && address < r.end().0);
            let below = all.iter().rfind(|r| r.end().0 <= address);
            let above = all.iter().find(|r| r.start.0 > address);
            let expected = Neighbours {
                at: at.copied(),
                below: below.copied(),
                above: above.copied(),
                freed: None,
            };
            assert_eq!(found, expected, "{address:#x}");
        }
        let buffers = |at| {
            let (below, above) = regions.buffers_around(at);
            (below.map(|r| r.start.0), above.map(|r| r.start.0))
        };
        assert_eq!(buffers(0x1100), (Some(0x1000), Some(0x1200)));
        assert_eq!(buffers(u64::MAX), (Some(0x8000), None));
        assert_eq!(buffers(0x8004), (None, None));
        regions.remove(GpuVa(0x1200));
        assert_eq!(regions.around(0x1200).at, None);
        assert_eq!(regions.around(0x1200).below.unwrap().start, GpuVa(0x1000));
        // What was there is remembered, the newest of the last few.
        assert_eq!(regions.around(0x1200).freed.unwrap().start, GpuVa(0x1200));
        assert_eq!(regions.around(0x1201).freed, None);
        for at in 0..Regions::FREED as u64 {
            regions.insert(GpuVa(0x10000 + at), 1, Use::Code);
            regions.remove(GpuVa(0x10000 + at));
        }
        assert_eq!(regions.around(0x1200).freed, None);
        assert_eq!(regions.around(0x10000).freed.unwrap().what, Use::Code);
    }
}
