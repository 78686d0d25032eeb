//! Fatbins on a host: decompression, and the choice of what runs on a device.
//!
//! [`nv_proto::cubin::fatbin`] reads their structure. Here their entries are decompressed, never to more than they
//! say they hold, and the best one for a device is taken out of a fatbin, or out of an executable or a shared object
//! that holds some.
//!
//! ```
//! use nv_host::fatbin::cubin_for;
//! use nv_proto::unit::SmVersion;
//!
//! # let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cubins/fatbin/13.0_vecadd_all.fatbin"))?;
//! let cubin = cubin_for(&file, SmVersion(89))?;
//! assert!(cubin.starts_with(b"\x7fELF"));
//! let error = cubin_for(&file, SmVersion(61)).unwrap_err();
//! assert!(error.to_string().starts_with("nothing in the file runs on sm_61: it holds sm_75, sm_80"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::io::Read;

use nv_proto::cubin::Content;
use nv_proto::cubin::fatbin::{Compression, Entry, EntryKind, Fatbins, Fit, Payload, best};
use nv_proto::unit::SmVersion;

/// Why nothing was taken out of a file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("{0}")]
    Read(String),
    /// An entry is compressed in a way that is not known.
    #[error(
        "the {kind} entry at offset {offset:#x} is compressed in an unknown way (flags {flags:#x})"
    )]
    UnknownCompression {
        /// What the entry holds.
        kind: String,
        /// Where it is.
        offset: u64,
        /// Its flags.
        flags: u64,
    },
    /// An entry says that it holds more than is ever taken.
    #[error(
        "the entry at offset {offset:#x} says that it holds {size} bytes; the limit is {limit}"
    )]
    TooLarge {
        /// Where it is.
        offset: u64,
        /// What it says.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The compressed bytes are damaged.
    #[error("the {method} data of the entry at offset {offset:#x} is damaged: {reason}")]
    Damaged {
        /// Where the entry is.
        offset: u64,
        /// How it is compressed.
        method: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// The compressed bytes stand for another number of bytes than the entry says.
    #[error("the entry at offset {offset:#x} says that it holds {declared} bytes and holds {held}")]
    WrongSize {
        /// Where it is.
        offset: u64,
        /// What it says.
        declared: u64,
        /// What it holds; one more than declared stands for more.
        held: u64,
    },
    /// No entry runs on the device.
    #[error("nothing in the file runs on {device}: it holds {}", listed(.present))]
    NoFit {
        /// The device.
        device: SmVersion,
        /// What the file holds.
        present: Vec<String>,
    },
    /// Only PTX would run on the device.
    #[error(
        "the file holds only PTX for {device} ({target}): assemble it with ptxas -arch=sm_{}, or build with \
         -gencode arch=compute_{0},code=sm_{0}",
        .device.0
    )]
    OnlyPtx {
        /// The device.
        device: SmVersion,
        /// What the PTX is for.
        target: String,
    },
}

fn listed(list: &[String]) -> String {
    if list.is_empty() {
        "no code".to_owned()
    } else {
        list.join(", ")
    }
}

/// The most bytes that an entry may hold.
pub const MAX_ENTRY: u64 = 4 << 30;

/// What an entry is for, as compilers name it: `sm_90a`, `compute_80`, `lto_90`.
#[must_use]
pub fn target(entry: &Entry<'_>) -> String {
    let prefix = match entry.kind() {
        EntryKind::PTX => "compute",
        EntryKind::LTO => "lto",
        _ => "sm",
    };
    format!("{prefix}_{}{}", entry.sm().0, entry.variant().suffix())
}

/// An entry's bytes, decompressed where need be.
///
/// # Errors
/// When the entry is damaged, or compressed in a way that is not known.
pub fn contents<'a>(entry: &Entry<'a>) -> Result<Cow<'a, [u8]>, Error> {
    let offset = entry.offset();
    let (method, bytes, size) = match entry.payload() {
        Payload::Plain(bytes) => return Ok(Cow::Borrowed(bytes)),
        Payload::Compressed {
            method,
            bytes,
            size,
        } => (method, bytes, size),
    };
    if size > MAX_ENTRY {
        return Err(Error::TooLarge {
            offset,
            size,
            limit: MAX_ENTRY,
        });
    }
    let mut data = match method {
        Compression::Lz4 => lz4(bytes, size, offset)?,
        Compression::Zstd => zstd(bytes, size, offset)?,
        _ => {
            let kind = entry.kind().to_string();
            return Err(Error::UnknownCompression {
                kind,
                offset,
                flags: entry.flags(),
            });
        }
    };
    if data.len() as u64 != size {
        return Err(Error::WrongSize {
            offset,
            declared: size,
            held: data.len() as u64,
        });
    }
    if entry.kind() == EntryKind::PTX {
        // The text ends with a zero, which is counted and is no part of it.
        let end = data
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        data.truncate(end);
    }
    Ok(Cow::Owned(data))
}

/// Decompresses an LZ4 block to at most `size` bytes.
fn lz4(bytes: &[u8], size: u64, offset: u64) -> Result<Vec<u8>, Error> {
    let damaged = |reason: String| Error::Damaged {
        offset,
        method: "LZ4",
        reason,
    };
    // A byte of a block stands for at most 255: more is a lie, for which no memory is to be taken.
    if size / 255 > bytes.len() as u64 {
        return Err(damaged(format!(
            "{} bytes cannot stand for {size}",
            bytes.len()
        )));
    }
    let size = usize::try_from(size).map_err(|error| damaged(error.to_string()))?;
    lz4_flex::block::decompress(bytes, size).map_err(|error| damaged(error.to_string()))
}

/// Decompresses a zstd frame to at most one byte more than `size`.
fn zstd(bytes: &[u8], size: u64, offset: u64) -> Result<Vec<u8>, Error> {
    let damaged = |reason: String| Error::Damaged {
        offset,
        method: "zstd",
        reason,
    };
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes)
        .map_err(|error| damaged(error.to_string()))?;
    let mut data = Vec::new();
    decoder
        .take(size.saturating_add(1))
        .read_to_end(&mut data)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(data)
}

/// The entries of all fatbins of a file.
///
/// # Errors
/// When the file holds no fatbins, or a table in it is damaged.
pub fn entries(file: &[u8]) -> Result<Vec<Entry<'_>>, Error> {
    let read = |error: nv_proto::cubin::Error<'_>| Error::Read(error.to_string());
    let mut entries = Vec::new();
    for fatbin in Fatbins::of(file).map_err(read)? {
        for entry in fatbin.map_err(read)?.entries() {
            entries.push(entry.map_err(read)?);
        }
    }
    Ok(entries)
}

/// The cubin of `file` that runs best on a device: the file itself where it is a cubin, else the best entry of its
/// fatbins.
///
/// # Errors
/// [`Error::NoFit`] and [`Error::OnlyPtx`]; and those of [`entries`] and [`contents`].
pub fn cubin_for(file: &[u8], device: SmVersion) -> Result<Cow<'_, [u8]>, Error> {
    if Content::of(file) == Content::Cubin {
        return Ok(Cow::Borrowed(file));
    }
    let entries = entries(file)?;
    match best(entries.iter().copied(), device) {
        Some((entry, Fit::Ptx(_))) => Err(Error::OnlyPtx {
            device,
            target: target(&entry),
        }),
        Some((entry, _)) => contents(&entry),
        None => Err(Error::NoFit {
            device,
            present: entries.iter().map(target).collect(),
        }),
    }
}
