//! `nv fatbin`: what fatbins, and programs and libraries that hold some, have inside.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use nv_host::fatbin::{contents, cubin_for, entries, target};
use nv_proto::cubin::fatbin::{Compression, Entry, EntryKind, Payload, best};
use nv_proto::unit::SmVersion;

use crate::exit::Failure;
use crate::input;
use crate::listing::{Cell, Listing, print};

/// What to do with which file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// The entries of all fatbins of a file.
    List {
        /// A fatbin, object, program or shared library, or `-` for standard input.
        file: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Writes entries to files: all of them, one by number, or the best for a device.
    Extract {
        /// A fatbin, object, program or shared library, or `-` for standard input.
        file: PathBuf,
        /// Only this entry, by its number in the list.
        #[arg(long, conflicts_with = "sm")]
        entry: Option<usize>,
        /// Only the cubin that runs best on this architecture, such as `90` or `sm_90`.
        #[arg(long, value_parser = sm_version)]
        sm: Option<SmVersion>,
        /// Where to write: a directory for all entries, a file (or `-`) for one.
        #[arg(long, short, visible_alias = "out")]
        output: Option<PathBuf>,
    },
}

fn sm_version(text: &str) -> Result<SmVersion, String> {
    let digits = text.strip_prefix("sm_").unwrap_or(text);
    digits
        .parse()
        .map(SmVersion)
        .map_err(|_| format!("{text:?} is no architecture: give a number such as 90"))
}

/// Does it.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::List { file, json } => {
            let bytes = input::read(file)?;
            list(&entries(&bytes).map_err(|error| bad(file, &error))?).show(*json)
        }
        Action::Extract {
            file,
            entry,
            sm,
            output,
        } => {
            let bytes = input::read(file)?;
            let output = output.as_deref();
            match (entry, sm) {
                (_, Some(sm)) => {
                    let data = cubin_for(&bytes, *sm).map_err(|error| bad(file, &error))?;
                    let found = entries(&bytes).unwrap_or_default();
                    let name = match best(found.iter().copied(), *sm) {
                        Some((entry, _)) => format!("{}.{}.cubin", stem(file), target(&entry)),
                        None => format!("{}.cubin", stem(file)),
                    };
                    write(output.unwrap_or(Path::new(&name)), &data)
                }
                (Some(number), None) => {
                    let found = entries(&bytes).map_err(|error| bad(file, &error))?;
                    let entry = found.get(*number).ok_or_else(|| {
                        let text = format!(
                            "there is no entry {number}: the last is {}",
                            found.len().saturating_sub(1)
                        );
                        bad(file, &text)
                    })?;
                    let data = contents(entry).map_err(|error| bad(file, &error))?;
                    let name = name(file, *number, entry);
                    write(output.unwrap_or(Path::new(&name)), &data)
                }
                (None, None) => {
                    let directory = output.unwrap_or(Path::new("."));
                    for (number, entry) in entries(&bytes)
                        .map_err(|error| bad(file, &error))?
                        .iter()
                        .enumerate()
                    {
                        match contents(entry) {
                            Ok(data) => write(&directory.join(name(file, number, entry)), &data)?,
                            // One entry that cannot be had is no reason to keep the others.
                            Err(error) => crate::out::note(format_args!(
                                "{}: left out: {error}",
                                file.display()
                            )),
                        }
                    }
                    Ok(())
                }
            }
        }
    }
}

fn bad(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::BadInput(format!("{}: {error}", file.display()))
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().filter(|_| file != Path::new("-"));
    stem.map_or_else(
        || "stdin".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

fn name(file: &Path, number: usize, entry: &Entry<'_>) -> String {
    let suffix = match entry.kind() {
        EntryKind::PTX => "ptx",
        EntryKind::CUBIN => "cubin",
        _ => "bin",
    };
    format!("{}.{number}.{}.{suffix}", stem(file), target(entry))
}

fn write(path: &Path, data: &[u8]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| Failure::BadInput(format!("{}: {error}", path.display()));
    if path == Path::new("-") {
        return crate::out::bytes(data);
    }
    std::fs::write(path, data).map_err(fail)?;
    print(&format!("{}: {} bytes", path.display(), data.len()))
}

fn list(entries: &[Entry<'_>]) -> Listing {
    let mut listing = Listing::new(&[
        "entry",
        "kind",
        "target",
        "version",
        "offset",
        "bytes",
        "compression",
        "decompressed",
        "flags",
        "source",
        "options",
    ]);
    for (number, entry) in (0u64..).zip(entries) {
        let (major, minor) = entry.code_version();
        let (bytes, compression, size) = match entry.payload() {
            Payload::Plain(bytes) => (bytes.len() as u64, Cell::None, Cell::None),
            Payload::Compressed {
                method,
                bytes,
                size,
            } => {
                let method = match method {
                    Compression::Lz4 => "LZ4".to_owned(),
                    Compression::Zstd => "zstd".to_owned(),
                    _ => "unknown".to_owned(),
                };
                (bytes.len() as u64, Cell::Text(method), Cell::Number(size))
            }
        };
        listing.push([
            Cell::Number(number),
            Cell::Text(entry.kind().to_string()),
            Cell::Text(target(entry)),
            Cell::Text(format!("{major}.{minor}")),
            Cell::Hex(entry.offset()),
            Cell::Number(bytes),
            compression,
            size,
            Cell::Hex(entry.flags()),
            Cell::Text(entry.name().to_owned()),
            Cell::Text(String::from_utf8_lossy(entry.options()).trim().to_owned()),
        ]);
    }
    listing
}
