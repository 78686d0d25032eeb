//! Records: what the interposer writes and `nv trace` reads, little-endian.
//!
//! ```text
//! u32 size of the record   u16 kind      u8 numbers   u8 blobs
//! u32 process              u32 thread    u64 nanoseconds   u64 id
//! numbers: u64 each        blobs: u32 length, bytes
//! ```
//!
//! Each record is appended by one write, so those of several threads and processes do not mix.

/// The first number of a [`Kind::Start`] record: `NVTRACE` and the version of this format.
pub const MAGIC: u64 = u64::from_le_bytes(*b"NVTRACE\x01");
/// Size of what every record begins with.
pub const HEADER: usize = 32;

/// What a record is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub enum Kind {
    /// The interposer was loaded. Numbers: [`MAGIC`]. Blobs: the program's path, the driver's release.
    Start = 1,
    /// A node was opened. Numbers: descriptor or -1, `errno`. Blobs: the path.
    Open = 2,
    /// A descriptor of a node was closed. Numbers: descriptor. Blobs: the path.
    Close = 3,
    /// An `ioctl` begins. Numbers: request, descriptor, the request that it stands for (another one where it is
    /// `NV_ESC_IOCTL_XFER_CMD`), size of the call's structure, size of the structure that it points to, 1 where
    /// that size is a guess. Blobs: the node's path, the call's structure, the one that it points to.
    Call = 4,
    /// The `ioctl` with the same id ended. Numbers: result, `errno`, nanoseconds. Blobs: both structures.
    Return = 5,
    /// A node was mapped. Numbers: address, length, offset, descriptor, protection, flags. Blobs: the path.
    Map = 6,
    /// Mapped pages of a node were unmapped. Numbers: address, length.
    Unmap = 7,
    /// New entries of a channel's ring. Numbers: client, channel, class, the ring's GPU address, its length in
    /// entries, the index of the first new entry, `GP_PUT`, a [`Cause`], and how they were found: 0 as they should
    /// be, 1 after the ring went round at least once (older entries were lost), 2 not at all, for the ring is not
    /// mapped for the CPU, 3 not at all, for `GP_PUT` is not. Blobs: the entries.
    Ring = 8,
    /// What an entry or a launch points at. Numbers: GPU address of the whole, its bytes, where in it this part
    /// begins, a [`Role`], 0 or 1 for memory that is not mapped for the CPU. Blobs: the part.
    Memory = 9,
    /// Something could not be recorded. Numbers: how often, a [`Loss`].
    Lost = 10,
}

/// Why rings were looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Cause {
    /// A call was made.
    Call = 0,
    /// An object was about to be freed.
    Free = 1,
    /// The process ends.
    Exit = 2,
    /// Time has passed.
    Time = 3,
}

/// What memory holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Role {
    /// Method words that an entry points at.
    Words = 0,
    /// A launch descriptor that `SEND_PCAS_A` points at.
    Descriptor = 1,
}

/// What could not be recorded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Loss {
    /// A call while the same thread was recording another one (in a signal handler), or none could for too long.
    Busy = 0,
    /// An object or mapping for which a table has no room.
    Full = 1,
    /// A record that the file did not take.
    Write = 2,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub const fn of(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Start,
            2 => Self::Open,
            3 => Self::Close,
            4 => Self::Call,
            5 => Self::Return,
            6 => Self::Map,
            7 => Self::Unmap,
            8 => Self::Ring,
            9 => Self::Memory,
            10 => Self::Lost,
            _ => return None,
        })
    }
}

/// Who recorded what when.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stamp {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    /// The call's number in its process; 0 for what is no call.
    pub id: u64,
}

/// Makes a record in a buffer.
#[derive(Debug)]
pub struct Builder<'a> {
    buffer: &'a mut [u8],
    len: usize,
    numbers: u8,
    blobs: u8,
}

impl<'a> Builder<'a> {
    /// A record of `kind` in `buffer`; what does not fit is left out.
    pub fn new(buffer: &'a mut [u8], kind: Kind, stamp: Stamp, numbers: &[u64]) -> Self {
        let mut record = Self {
            buffer,
            len: 0,
            numbers: 0,
            blobs: 0,
        };
        record.put(&0_u32.to_le_bytes());
        record.put(&(kind as u16).to_le_bytes());
        record.put(&[0, 0]);
        record.put(&stamp.process.to_le_bytes());
        record.put(&stamp.thread.to_le_bytes());
        record.put(&stamp.time.to_le_bytes());
        record.put(&stamp.id.to_le_bytes());
        for number in numbers {
            if record.put(&number.to_le_bytes()) {
                record.numbers = record.numbers.saturating_add(1);
            }
        }
        record
    }

    /// Appends a blob of at most `size` bytes that `fill` writes; it answers how many it wrote.
    pub fn blob(&mut self, size: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let at = self.len;
        if !self.put(&0_u32.to_le_bytes()) {
            return 0;
        }
        self.blobs = self.blobs.saturating_add(1);
        let room = self.buffer.get_mut(self.len..).unwrap_or_default();
        let size = size.min(room.len());
        let wrote = room.get_mut(..size).map_or(0, fill).min(size);
        self.len = self.len.saturating_add(wrote);
        let length = u32::try_from(wrote).unwrap_or(u32::MAX).to_le_bytes();
        self.patch(at, &length);
        wrote
    }

    /// Appends a blob.
    pub fn bytes(&mut self, bytes: &[u8]) -> usize {
        self.blob(bytes.len(), |to| copy(bytes, to))
    }

    /// The finished record.
    pub fn finish(mut self) -> &'a [u8] {
        let size = u32::try_from(self.len).unwrap_or(u32::MAX).to_le_bytes();
        self.patch(0, &size);
        let counts = [self.numbers, self.blobs];
        self.patch(6, &counts);
        self.buffer.get(..self.len).unwrap_or_default()
    }

    /// Appends all of `bytes` or nothing.
    fn put(&mut self, bytes: &[u8]) -> bool {
        let end = self.len.saturating_add(bytes.len());
        let Some(to) = self.buffer.get_mut(self.len..end) else {
            return false;
        };
        copy(bytes, to);
        self.len = end;
        true
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(to) = self
            .buffer
            .get_mut(at..)
            .and_then(|rest| rest.get_mut(..bytes.len()))
        {
            copy(bytes, to);
        }
    }
}

/// Copies what fits; answers how much that is.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    from.len().min(to.len())
}

/// One record, borrowed from the file's bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    /// What it is about; a number that this format does not know is kept.
    pub kind: Result<Kind, u16>,
    /// Who recorded it when.
    pub stamp: Stamp,
    numbers: &'a [u8],
    blobs: &'a [u8],
}

impl<'a> Record<'a> {
    /// One of its numbers; 0 past their end.
    #[must_use]
    pub fn number(&self, index: usize) -> u64 {
        self.numbers
            .chunks_exact(8)
            .nth(index)
            .map_or(0, |bytes| word(bytes, 0))
    }

    /// One of its blobs; empty past their end.
    #[must_use]
    pub fn blob(&self, index: usize) -> &'a [u8] {
        let mut rest = self.blobs;
        for _ in 0..index {
            rest = split_blob(rest).map_or(&[][..], |(_, rest)| rest);
        }
        split_blob(rest).map_or(&[], |(blob, _)| blob)
    }
}

/// A file that is no sequence of records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadRecord {
    /// Where the record begins that is none, in bytes.
    pub offset: usize,
    /// The size that it claims.
    pub size: u32,
}

impl core::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { offset, size } = self;
        write!(
            f,
            "what begins at {offset:#x} and says it has {size} bytes is no record: the file was cut short or is none of `nv trace`"
        )
    }
}

impl core::error::Error for BadRecord {}

/// Reads the records of a file's bytes, to the first that is none.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// From the beginning.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self
            .bytes
            .get(self.offset..)
            .filter(|rest| !rest.is_empty())?;
        let size = low(word(rest, 0));
        let bad = BadRecord {
            offset: self.offset,
            size,
        };
        let record = usize::try_from(size)
            .ok()
            .and_then(|size| rest.get(..size))
            .and_then(parse);
        let Some(record) = record else {
            self.offset = self.bytes.len();
            return Some(Err(bad));
        };
        self.offset = self.offset.saturating_add(size as usize);
        Some(Ok(record))
    }
}

fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let (header, payload) = bytes.split_at_checked(HEADER)?;
    let kind = u16::from_le_bytes([*header.get(4)?, *header.get(5)?]);
    let numbers = usize::from(*header.get(6)?).checked_mul(8)?;
    let (numbers, blobs) = payload.split_at_checked(numbers)?;
    let mut rest = blobs;
    for _ in 0..*header.get(7)? {
        rest = split_blob(rest)?.1;
    }
    rest.is_empty().then_some(Record {
        kind: Kind::of(kind).ok_or(kind),
        stamp: Stamp {
            process: low(word(header, 8)),
            thread: low(word(header, 12)),
            time: word(header, 16),
            id: word(header, 24),
        },
        numbers,
        blobs,
    })
}

fn split_blob(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Up to 8 bytes at an offset as a number; bytes past the end are 0.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).unwrap_or_default();
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The low half.
pub(crate) const fn low(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp {
        process: 7,
        thread: 8,
        time: 9,
        id: 10,
    };

    fn made(buffer: &mut [u8]) -> &[u8] {
        let mut record = Builder::new(buffer, Kind::Call, STAMP, &[1, u64::MAX]);
        record.bytes(b"abc");
        record.blob(2, |to| {
            to.fill(5);
            1
        });
        record.bytes(b"");
        record.finish()
    }

    #[test]
    fn records_come_back_as_they_were_made() {
        let mut buffer = [0xa5; 128];
        let bytes = made(&mut buffer).to_vec();
        assert_eq!(bytes.len(), HEADER + 16 + 7 + 5 + 4);
        let both = [bytes.clone(), bytes].concat();
        let records: Result<Vec<_>, _> = Reader::new(&both).collect();
        let [one, two] = records.unwrap().try_into().unwrap();
        assert_eq!(one, two);
        assert_eq!((one.kind, one.stamp), (Ok(Kind::Call), STAMP));
        assert_eq!([0, 1, 2].map(|i| one.number(i)), [1, u64::MAX, 0]);
        assert_eq!(
            [0, 1, 2, 3].map(|i| one.blob(i)),
            [&b"abc"[..], &[5], &[], &[]]
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let mut buffer = [0xa5; 128];
        let whole = made(&mut buffer).len();
        for size in HEADER..whole {
            let mut buffer = vec![0xa5; size];
            let bytes = made(&mut buffer).to_vec();
            let record = Reader::new(&bytes).next().unwrap().unwrap();
            assert_eq!(record.stamp, STAMP, "{size}");
        }
    }

    #[test]
    fn a_file_cut_short_is_told() {
        let mut buffer = [0xa5; 128];
        let bytes = made(&mut buffer).to_vec();
        for cut in 1..bytes.len() {
            let found: Vec<_> = Reader::new(&bytes[..cut]).collect();
            assert!(
                matches!(found[..], [Err(BadRecord { offset: 0, .. })]),
                "{cut}: {found:?}"
            );
        }
        let error = Reader::new(&[1, 0, 0, 0]).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("says it has 1 bytes"));
    }

    #[test]
    fn no_bytes_make_the_reader_fail_or_run_on() {
        let mut state = 1_u64;
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..96)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    (state >> 60) as u8
                })
                .collect();
            assert!(Reader::new(&bytes).count() <= 96);
        }
    }
}
