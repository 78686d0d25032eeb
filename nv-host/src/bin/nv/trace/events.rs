//! Records put together: a call with its return, a ring with what its entries point at.

use std::collections::HashMap;

use nv_proto::gpfifo::GpEntry;
use nv_proto::qmd::Qmd;
use nv_proto::rm::DriverVersion;
use nv_proto::unit::{ClassId, GpuVa};
use nv_trace::record::{BadRecord, Kind, MAGIC, Reader, Record, Role, Stamp};

/// A file's records, put together.
#[derive(Debug, Default)]
pub struct Recorded {
    /// What happened, in order; a call where it returned.
    pub events: Vec<Event>,
    /// Processes that loaded the library.
    pub processes: usize,
    /// The driver's release, where the records say it.
    pub release: Option<DriverVersion>,
    /// Why reading ended before the file did.
    pub broken: Option<BadRecord>,
    /// The time of the first record.
    pub begin: u64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Who and when.
    pub stamp: Stamp,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A program began.
    Start { program: String },
    /// A node was opened, or not: then `errno` is not 0.
    Open { path: String, fd: i64, errno: i64 },
    /// A node's descriptor was closed.
    Close { path: String, fd: i64 },
    /// A node was mapped.
    Map {
        path: String,
        fd: i64,
        address: u64,
        length: u64,
        offset: u64,
    },
    /// A mapped node was unmapped.
    Unmap { address: u64, length: u64 },
    /// A call.
    Call(Box<Call>),
    /// New entries of a ring.
    Ring(Ring),
    /// Something could not be recorded.
    Lost { count: u64, why: u64 },
    /// A record that this program does not know.
    Unknown(u16),
}

/// An `ioctl`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub path: String,
    pub fd: i64,
    /// As it was made.
    pub request: u32,
    /// What it stands for.
    pub effective: u32,
    /// Bytes of the structure that it points to, as the call says.
    pub inner_size: u64,
    /// Whether that size is a guess.
    pub guessed: bool,
    /// Both structures, before and after.
    pub own: [Vec<u8>; 2],
    pub inner: [Vec<u8>; 2],
    /// Result, `errno` and nanoseconds; `None` if it did not return.
    pub end: Option<(i64, i64, u64)>,
}

/// New entries of a channel's ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    pub client: u32,
    pub channel: u32,
    pub class: ClassId,
    pub va: GpuVa,
    /// Length of the ring.
    pub slots: u64,
    pub put: u64,
    pub cause: u64,
    /// Whether the ring went round since it was last looked at.
    pub went_round: bool,
    /// What is not mapped for the CPU, so that nothing is known.
    pub hidden: Option<&'static str>,
    pub entries: Vec<Entry>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its slot.
    pub slot: u64,
    pub bits: u64,
    /// The words of its segment, as far as they could be read.
    pub words: Vec<u32>,
    /// The launch descriptors that lie elsewhere, by address.
    pub descriptors: Vec<(GpuVa, Option<Qmd>)>,
}

impl Entry {
    /// How many words its segment has.
    pub fn len(&self) -> Option<(GpuVa, usize)> {
        match GpEntry::decode(self.bits) {
            Ok(GpEntry::Segment(segment)) => {
                Some((segment.va(), usize::try_from(segment.dwords()).ok()?))
            }
            _ => None,
        }
    }
}

/// Puts the records of a file together.
pub fn assemble(bytes: &[u8]) -> Recorded {
    let mut recorded = Recorded::default();
    let mut calls: HashMap<(u32, u64), (Stamp, Call)> = HashMap::new();
    let mut rings: HashMap<u32, Open> = HashMap::new();
    for record in Reader::new(bytes) {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                recorded.broken = Some(error);
                break;
            }
        };
        let stamp = record.stamp;
        if recorded.begin == 0 {
            recorded.begin = stamp.time;
        }
        if record.kind == Ok(Kind::Memory) {
            if let Some(open) = rings.get_mut(&stamp.process) {
                open.memory(&record);
            }
            continue;
        }
        if let Some(Open { stamp, ring, .. }) = rings.remove(&stamp.process) {
            recorded.events.push(Event {
                stamp,
                what: What::Ring(ring),
            });
        }
        let path = || text(record.blob(0));
        let what = match record.kind {
            Ok(Kind::Start) if record.number(0) == MAGIC => {
                recorded.processes += 1;
                recorded.release = recorded.release.or(text(record.blob(1)).parse().ok());
                What::Start { program: path() }
            }
            Ok(Kind::Start) => What::Unknown(Kind::Start as u16),
            Ok(Kind::Open) => What::Open {
                path: path(),
                fd: signed(&record, 0),
                errno: signed(&record, 1),
            },
            Ok(Kind::Close) => What::Close {
                path: path(),
                fd: signed(&record, 0),
            },
            Ok(Kind::Map) => What::Map {
                path: path(),
                address: record.number(0),
                length: record.number(1),
                offset: record.number(2),
                fd: signed(&record, 3),
            },
            Ok(Kind::Unmap) => What::Unmap {
                address: record.number(0),
                length: record.number(1),
            },
            Ok(Kind::Call) => {
                calls.insert((stamp.process, stamp.id), (stamp, begun(&record)));
                continue;
            }
            Ok(Kind::Return) => match calls.remove(&(stamp.process, stamp.id)) {
                Some((begun, mut call)) => {
                    call.end = Some((signed(&record, 0), signed(&record, 1), record.number(2)));
                    call.own[1] = record.blob(0).to_vec();
                    call.inner[1] = record.blob(1).to_vec();
                    recorded.events.push(Event {
                        stamp: begun,
                        what: What::Call(Box::new(call)),
                    });
                    continue;
                }
                None => What::Unknown(Kind::Return as u16),
            },
            Ok(Kind::Ring) => {
                rings.insert(stamp.process, Open::new(&record));
                continue;
            }
            Ok(Kind::Memory) => continue,
            Ok(Kind::Lost) => What::Lost {
                count: record.number(0),
                why: record.number(1),
            },
            Err(other) => What::Unknown(other),
        };
        recorded.events.push(Event { stamp, what });
    }
    let mut left: Vec<Event> = calls
        .into_values()
        .map(|(stamp, call)| Event {
            stamp,
            what: What::Call(Box::new(call)),
        })
        .chain(rings.into_values().map(|Open { stamp, ring, .. }| Event {
            stamp,
            what: What::Ring(ring),
        }))
        .collect();
    left.sort_by_key(|event| event.stamp.time);
    recorded.events.extend(left);
    recorded
}

fn begun(record: &Record<'_>) -> Call {
    Call {
        path: text(record.blob(0)),
        request: low(record.number(0)),
        fd: signed(record, 1),
        effective: low(record.number(2)),
        inner_size: record.number(4),
        guessed: record.number(5) != 0,
        own: [record.blob(1).to_vec(), Vec::new()],
        inner: [record.blob(2).to_vec(), Vec::new()],
        end: None,
    }
}

/// A ring whose memory may still follow.
struct Open {
    stamp: Stamp,
    ring: Ring,
    /// The entry that the next memory belongs to.
    at: usize,
}

impl Open {
    fn new(record: &Record<'_>) -> Self {
        let slots = record.number(4);
        let entries = record
            .blob(0)
            .chunks_exact(8)
            .enumerate()
            .map(|(index, bytes)| Entry {
                slot: record
                    .number(5)
                    .saturating_add(index as u64)
                    .checked_rem(slots)
                    .unwrap_or(0),
                bits: u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
                words: Vec::new(),
                descriptors: Vec::new(),
            });
        let ring = Ring {
            client: low(record.number(0)),
            channel: low(record.number(1)),
            class: ClassId(low(record.number(2))),
            va: GpuVa(record.number(3)),
            slots,
            put: record.number(6),
            cause: record.number(7),
            went_round: record.number(8) == 1,
            hidden: match record.number(8) {
                2 => Some("the ring"),
                3 => Some("GP_PUT"),
                _ => None,
            },
            entries: entries.collect(),
        };
        Self {
            stamp: record.stamp,
            ring,
            at: 0,
        }
    }

    /// Memory comes entry by entry: a segment's words in parts, then the descriptors that they launch.
    fn memory(&mut self, record: &Record<'_>) {
        let (va, begin) = (GpuVa(record.number(0)), record.number(2));
        let words: Vec<u32> = record
            .blob(0)
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .collect();
        if record.number(3) == Role::Words as u64 && begin == 0 {
            let mut rest = self.ring.entries.iter().enumerate().skip(self.at);
            let Some((index, _)) = rest.find(|(_, entry)| entry.len().is_some()) else {
                return;
            };
            self.at = index + 1;
        }
        let Some(entry) = self
            .at
            .checked_sub(1)
            .and_then(|index| self.ring.entries.get_mut(index))
        else {
            return;
        };
        if record.number(3) == Role::Words as u64 {
            entry.words.extend(words);
        } else if begin == 0 {
            entry.descriptors.push((va, Qmd::decode(&words).ok()));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn signed(record: &Record<'_>, index: usize) -> i64 {
    record.number(index).cast_signed()
}

fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}
