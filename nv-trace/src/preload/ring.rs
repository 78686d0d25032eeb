//! Rings and what their entries point at.
//!
//! An entry (`NVC56F_GP_ENTRY*`, `clc56f.h`): GET at 31:2 of dword 0, GET_HI at 7:0 and LENGTH at 30:10 of dword 1.

use super::hook::{Span, emit};
use super::layout::{self, at};
use super::sys::{self, Live};
use super::track::{Object, Place, Track};
use crate::record::{Cause, Kind, Loss, Role, low, word};

/// How many slots before `GP_PUT` are remembered, to see whether the ring went round.
const WITNESSES: usize = 16;
/// Entries in one record.
const ENTRIES: usize = 256;
/// The most that is copied of a segment, and of it in one record.
const MAX_SEGMENT: u64 = 1 << 20;
const PART: u64 = 64 << 10;
/// The size of the largest launch descriptor.
const DESCRIPTOR: u64 = 384;
/// Launches of one segment whose descriptors are copied.
const LAUNCHES: usize = 64;
/// `SEND_PCAS_A` of the compute classes, as a method's number in words (`clc6c0.h`: 0x02b4).
const SEND_PCAS_A: u32 = 0x2b4 / 4;

/// A channel.
#[derive(Clone, Copy)]
pub struct Channel {
    /// Which.
    pub object: Object,
    /// What it lies below.
    pub parent: u32,
    class: u32,
    ring: u64,
    entries: u32,
    userd: Object,
    userd_offset: u64,
    /// `GP_PUT` as it was last seen.
    put: u32,
    /// The slots before `put` as they were then, nearest first.
    witnesses: [u64; WITNESSES],
    /// How many of them are known: none until the ring is mapped, which may hold what others left there.
    known: usize,
    /// How often it was said that the ring cannot be read. (No `bool`: a table of what has no spare values is all
    /// zero when it is empty, and takes no room in the file.)
    complaints: u32,
}

impl Channel {
    /// The channel that an allocation made.
    pub fn new(
        object: Object,
        parent: u32,
        class: u32,
        params: Span,
        release: Option<(u32, u32, u32)>,
    ) -> Self {
        let new = release.is_some_and(|release| release >= layout::CHANNEL_CHANGED);
        let (userd, offset) = match new {
            true => (
                at::CHANNEL_USERD_SINCE_610,
                at::CHANNEL_USERD_OFFSET_SINCE_610,
            ),
            false => (at::CHANNEL_USERD, at::CHANNEL_USERD_OFFSET),
        };
        Self {
            object,
            parent,
            class,
            ring: params.word(at::CHANNEL_RING),
            entries: params.half(at::CHANNEL_ENTRIES),
            userd: Object {
                client: object.client,
                handle: params.half(userd),
            },
            userd_offset: params.word(offset),
            put: 0,
            witnesses: [0; WITNESSES],
            known: 0,
            complaints: 0,
        }
    }

    /// Takes the ring and `GP_PUT` as they are, before anything was submitted.
    pub fn begin(&mut self, track: &Track, live: &Live) {
        self.put = self
            .gp_put(track, live)
            .filter(|put| *put < self.entries)
            .unwrap_or(0);
        if let Some(ring) = self.place(track, live) {
            self.witness(live, ring);
        }
    }

    /// Copies what is new.
    pub fn look(&mut self, track: &Track, live: &Live, buffer: &mut [u8], cause: Cause) {
        let Some(put) = self.gp_put(track, live) else {
            return self.cannot(buffer, cause, 3);
        };
        let ring = self.place(track, live);
        if put == self.put || put >= self.entries {
            if let (0, Some(ring)) = (self.known, ring) {
                self.witness(live, ring);
            }
            return;
        }
        let Some(ring) = ring else {
            return self.cannot(buffer, cause, 2);
        };
        let slot = |index| slot(live, ring, index);

        let mut count = self.ahead(self.put, put);
        let mut first = self.put;
        let rewritten = self
            .before(self.put)
            .zip(self.witnesses)
            .take(self.known)
            .any(|(index, old)| {
                self.ahead(self.put, index) >= count && slot(index).is_some_and(|now| now != old)
            });
        if rewritten {
            // All but the slot at `GP_PUT` may hold entries; that one would be the next.
            first = self.ahead(0, put.saturating_add(1));
            count = self.entries.saturating_sub(1);
        }
        let mut done = 0_u32;
        while done < count {
            let at = self.step(first, done);
            let part = (count - done).min(ENTRIES as u32);
            let mut entries = [0_u64; ENTRIES];
            for (index, entry) in (0..part).zip(&mut entries) {
                *entry = slot(self.step(at, index)).unwrap_or(0);
            }
            let entries = entries.get(..part as usize).unwrap_or_default();
            self.record(
                buffer,
                at,
                put,
                cause,
                u64::from(rewritten && done == 0),
                entries,
            );
            for entry in entries {
                segment(track, live, buffer, self.object.client, *entry);
            }
            done = done.saturating_add(part);
        }
        self.put = put;
        self.witness(live, ring);
    }

    /// Remembers the slots before `GP_PUT`.
    fn witness(&mut self, live: &Live, ring: Place) {
        self.known = 0;
        for (index, witness) in self.before(self.put).zip(&mut self.witnesses) {
            let Some(now) = slot(live, ring, index) else {
                return;
            };
            *witness = now;
            self.known = self.known.saturating_add(1);
        }
    }

    /// Where the whole ring is in the process.
    fn place(&self, track: &Track, live: &Live) -> Option<Place> {
        let bytes = u64::from(self.entries).saturating_mul(8);
        let ring = track.seen_at(live, self.object.client, self.ring)?;
        (ring.length >= bytes).then_some(ring)
    }

    fn gp_put(&self, track: &Track, live: &Live) -> Option<u32> {
        let offset = self.userd_offset.checked_add(at::USERD_GP_PUT)?;
        let place = track
            .in_process(self.userd, offset)
            .filter(|place| place.length >= 4)?;
        let mut put = [0; 4];
        (live.read(place.address, &mut put) == 4).then(|| u32::from_le_bytes(put))
    }

    /// Says, once, that there is nothing to be seen; at the end, for until then it may come.
    fn cannot(&mut self, buffer: &mut [u8], cause: Cause, how: u64) {
        if self.complaints == 0 && matches!(cause, Cause::Free | Cause::Exit) {
            self.complaints = 1;
            self.record(buffer, 0, 0, cause, how, &[]);
        }
    }

    fn record(
        &self,
        buffer: &mut [u8],
        first: u32,
        put: u32,
        cause: Cause,
        how: u64,
        entries: &[u64],
    ) {
        let numbers = [
            u64::from(self.object.client),
            u64::from(self.object.handle),
            u64::from(self.class),
            self.ring,
            u64::from(self.entries),
            u64::from(first),
            u64::from(put),
            cause as u64,
            how,
        ];
        emit(buffer, Kind::Ring, 0, &numbers, |record| {
            record.blob(size_of_val(entries), |to| {
                let slots = to.chunks_exact_mut(8).zip(entries);
                slots
                    .map(|(to, entry)| to.copy_from_slice(&entry.to_le_bytes()))
                    .count()
                    .saturating_mul(8)
            });
        });
    }

    /// How many slots `to` is ahead of `from`.
    fn ahead(&self, from: u32, to: u32) -> u32 {
        let ahead = u64::from(to)
            .saturating_add(u64::from(self.entries))
            .saturating_sub(u64::from(from));
        low(ahead.checked_rem(u64::from(self.entries)).unwrap_or(0))
    }

    /// The slot `count` after `from`.
    fn step(&self, from: u32, count: u32) -> u32 {
        let slot = u64::from(from).saturating_add(u64::from(count));
        low(slot.checked_rem(u64::from(self.entries)).unwrap_or(0))
    }

    /// The slots before `put`, nearest first; not more than there are.
    fn before(&self, put: u32) -> impl Iterator<Item = u32> + use<> {
        let this = *self;
        (1..=this.entries.min(WITNESSES as u32))
            .map(move |back| this.step(put, this.entries.saturating_sub(back)))
    }
}

/// An entry of a ring.
fn slot(live: &Live, ring: Place, index: u32) -> Option<u64> {
    let mut entry = [0; 8];
    let at = ring
        .address
        .saturating_add(u64::from(index).saturating_mul(8));
    (live.read(at, &mut entry) == 8).then(|| word(&entry, 0))
}

/// Copies what an entry points at, and the launch descriptors that its words point at.
fn segment(track: &Track, live: &Live, buffer: &mut [u8], client: u32, entry: u64) {
    let length = entry >> 42 & 0x1f_ffff;
    if length == 0 {
        return;
    }
    let va = (entry & 0xffff_fffc) | (entry >> 32 & 0xff) << 32;
    let bytes = length.saturating_mul(4);
    let mut launches = Launches::default();
    memory(
        track,
        live,
        buffer,
        client,
        (va, bytes),
        Role::Words,
        &mut |part| launches.scan(part),
    );
    for address in launches.found.iter().take(launches.count) {
        // Most descriptors were in the words themselves, and where they went only the GPU sees.
        if track.seen_at(live, client, *address).is_some() {
            memory(
                track,
                live,
                buffer,
                client,
                (*address, DESCRIPTOR),
                Role::Descriptor,
                &mut |_| (),
            );
        }
    }
    if launches.count < launches.all {
        sys::lose(Loss::Full);
    }
}

/// Copies GPU memory, as far as it is mapped in the process.
fn memory(
    track: &Track,
    live: &Live,
    buffer: &mut [u8],
    client: u32,
    (va, bytes): (u64, u64),
    role: Role,
    see: &mut dyn FnMut(&[u8]),
) {
    let mut done = 0;
    while done < bytes.min(MAX_SEGMENT) {
        let place = track.seen_at(live, client, va.saturating_add(done));
        let size = place
            .map_or(0, |place| place.length & !3)
            .min(PART)
            .min(bytes.saturating_sub(done));
        let mut read = 0;
        let missing = u64::from(size == 0);
        emit(
            buffer,
            Kind::Memory,
            0,
            &[va, bytes, done, role as u64, missing],
            |record| {
                let (Some(place), Ok(size)) = (place, usize::try_from(size)) else {
                    return;
                };
                read = record.blob(size, |to| {
                    let read = live.read(place.address, to);
                    see(to.get(..read).unwrap_or_default());
                    read
                });
            },
        );
        if read == 0 {
            return;
        }
        done = done.saturating_add(read as u64);
    }
}

/// Looks for launches in words, which come in parts.
struct Launches {
    found: [u64; LAUNCHES],
    count: usize,
    all: usize,
    /// The method of the next word of data, how many words of data are left, and by how much the method then grows
    /// and how much after that.
    method: u32,
    left: u32,
    grows: (u32, u32),
}

impl Default for Launches {
    fn default() -> Self {
        Self {
            found: [0; LAUNCHES],
            count: 0,
            all: 0,
            method: 0,
            left: 0,
            grows: (0, 0),
        }
    }
}

impl Launches {
    /// Words of a segment (headers: `NVC56F_DMA_*` of `clc56f.h`).
    fn scan(&mut self, part: &[u8]) {
        for bytes in part.chunks_exact(4) {
            let value = low(word(bytes, 0));
            if self.left == 0 {
                let grows = match value >> 29 {
                    0 | 1 => (1, 1),
                    2 | 3 => (0, 0),
                    5 => (1, 0),
                    _ => continue,
                };
                self.grows = grows;
                self.method = value & 0xfff;
                self.left = value >> 16 & 0x1fff;
                continue;
            }
            self.left = self.left.saturating_sub(1);
            if self.method == SEND_PCAS_A {
                self.all = self.all.saturating_add(1);
                if let Some(slot) = self.found.get_mut(self.count) {
                    *slot = u64::from(value) << 8;
                    self.count = self.count.saturating_add(1);
                }
            }
            let (now, then) = self.grows;
            self.method = self.method.saturating_add(now);
            self.grows = (then, then);
        }
    }
}
