//! `nv trace`: the driver calls and the command buffers of any program, named.
//!
//! The program runs with a small library before all others (`nv-trace`, whose bytes this command holds), which
//! records what it does with the driver's device nodes; when it has ended, the records are decoded. It may use the
//! vendor's library, or any other: what matters is that it calls the driver through the C library. A static
//! program does not, and a set-user-ID one is not given the library.

mod call;
mod events;
mod json;
mod text;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use nv_proto::rm::DriverVersion;

use crate::exit::Failure;
use crate::push::paint::Paper;

/// Arguments of `nv trace`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The program and its arguments, after `--`.
    #[arg(last = true, required_unless_present = "from", value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Decode the records that `--keep` kept, and run nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "keep", "every"])]
    from: Option<PathBuf>,
    /// Keep the records, to be decoded again elsewhere.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// One JSON object a line, for tools.
    #[arg(long)]
    json: bool,
    /// One line a call, without parameters.
    #[arg(long)]
    brief: bool,
    /// Show only one of the two.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Look at the rings every so many milliseconds too. Without it they are looked at when the program makes a call,
    /// frees a channel and ends; a ring that goes round in between loses what it held.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    every: Option<u32>,
    /// The driver's release, which decides the layouts; by default that of the kernel module of this machine.
    #[arg(long)]
    driver: Option<DriverVersion>,
}

/// What is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Only {
    /// Opens, maps and calls.
    Calls,
    /// Command buffers.
    Commands,
}

/// What the renderings need to know.
#[derive(Clone, Copy, Debug)]
struct Style {
    brief: bool,
    only: Option<Only>,
    version: DriverVersion,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (bytes, status) = match &args.from {
        Some(file) => (read(file)?, None),
        None => {
            let (bytes, status) = record(args)?;
            (bytes, Some(status))
        }
    };
    let recorded = events::assemble(&bytes);
    if let Some(error) = recorded.broken {
        crate::out::note(format_args!("{error}; what came before it is shown"));
    }
    if recorded.processes == 0 {
        crate::out::note(format_args!(
            "the program did not load the recording library: is it static, or set-user-ID? Nothing was recorded"
        ));
    }
    let style = Style {
        brief: args.brief,
        only: args.only,
        version: args.driver.or(recorded.release).unwrap_or(STAND_IN),
    };
    let mut paper = match &args.out {
        Some(path) => {
            let file = fs::File::create(path)
                .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))?;
            Paper::file(file)
        }
        None => Paper::stdout(),
    };
    if args.json {
        json::write(&mut paper, &recorded, style)?;
    } else {
        text::write(&mut paper, &recorded, style)?;
    }
    paper.finish()?;
    status.map_or(Ok(()), ended)
}

/// Whose layouts are taken where nothing says: the release that the layouts were tried on.
const STAND_IN: DriverVersion = DriverVersion::new(580, 159, 4);

/// The program's own end is that of this command; one by a signal as shells have it.
fn ended(status: ExitStatus) -> Result<(), Failure> {
    let code = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or(0),
    };
    Err(Failure::Program(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    crate::input::read(file)
}

/// Runs the program and answers the records.
fn record(args: &Args) -> Result<(Vec<u8>, ExitStatus), Failure> {
    if nv_trace::LIBRARY.is_empty() {
        return Err(Failure::BadInput(
            "recording takes a build for x86-64 or AArch64 Linux with the GNU C library; `--from` works here too".to_owned(),
        ));
    }
    let Some((program, arguments)) = args.program.split_first() else {
        return Err(Failure::BadInput("no program is given".to_owned()));
    };
    let folder = Folder::make()?;
    let library = folder.0.join("libnv_trace.so");
    let file = match &args.keep {
        Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
        None => folder.0.join("records"),
    };
    write_new(&library, nv_trace::LIBRARY, 0o700)?;
    fs::write(&file, [])
        .map_err(|error| Failure::BadInput(format!("{}: {error}", file.display())))?;
    let release = args
        .driver
        .or_else(|| nv_host::probe::Module::loaded(Path::new("/")).map(|module| module.version));

    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload(&library))
        .env("NV_TRACE_FILE", &file);
    match release {
        Some(release) => command.env("NV_TRACE_DRIVER", release.to_string()),
        None => command.env_remove("NV_TRACE_DRIVER"),
    };
    match args.every {
        Some(every) => command.env("NV_TRACE_EVERY", every.to_string()),
        None => command.env_remove("NV_TRACE_EVERY"),
    };
    let status = command.status().map_err(|error| {
        Failure::BadInput(format!("{} cannot be run: {error}", program.display()))
    })?;
    Ok((read(&file)?, status))
}

/// The library before those that are preloaded anyway.
fn preload(library: &Path) -> OsString {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// A folder of our own that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, Failure> {
        let mut root = std::env::temp_dir();
        // The dynamic linker takes these for the end of a path.
        let splits = |path: &OsStr| {
            path.as_encoded_bytes()
                .iter()
                .any(|byte| b" :".contains(byte))
        };
        if splits(root.as_os_str()) || !root.is_absolute() {
            root = PathBuf::from("/tmp");
        }
        let mut number = 0;
        loop {
            let folder = root.join(format!("nv-trace-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 100 => {
                    number += 1
                }
                Err(error) => {
                    return Err(Failure::BadInput(format!(
                        "{}: {error}; TMPDIR names another place for the recording library",
                        folder.display()
                    )));
                }
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    file.and_then(|mut file| file.write_all(bytes))
        .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use nv_proto::gpfifo::GpEntry;
    use nv_proto::unit::GpuVa;
    use nv_trace::record::{Builder, Kind, Loss, MAGIC, Role, Stamp};

    use super::*;

    const STYLE: Style = Style {
        brief: false,
        only: None,
        version: STAND_IN,
    };

    /// A file with a record of each kind.
    fn sample() -> Vec<u8> {
        let mut file = Vec::new();
        let mut buffer = [0; 1024];
        let mut add = |kind, id, numbers: &[u64], blobs: &[&[u8]]| {
            let stamp = Stamp {
                process: 7,
                thread: 8,
                time: 1000,
                id,
            };
            let mut record = Builder::new(&mut buffer, kind, stamp, numbers);
            for blob in blobs {
                record.bytes(blob);
            }
            file.extend_from_slice(record.finish());
        };
        add(Kind::Start, 0, &[MAGIC], &[b"/bin/program", b"580.159.04"]);
        add(Kind::Open, 0, &[3, 0], &[b"/dev/nvidiactl"]);
        let mut alloc = [0; 48];
        alloc[12..16].copy_from_slice(&0xcbc0_u32.to_le_bytes());
        let numbers = [0xc030_462b, 3, 0xc030_462b, 48, 16, 0];
        add(
            Kind::Call,
            1,
            &numbers,
            &[b"/dev/nvidiactl", &alloc, &[1; 16]],
        );
        add(Kind::Return, 1, &[0, 0, 5], &[&alloc, &[2; 16]]);
        add(
            Kind::Call,
            2,
            &[0x49, 4, 0x49, 24, 0, 0],
            &[b"/dev/nvidia-uvm", &[0; 24], b""],
        );
        add(
            Kind::Map,
            0,
            &[0x1000, 0x1000, 0, 3, 3, 1],
            &[b"/dev/nvidiactl"],
        );
        let entries: Vec<u8> = [
            GpEntry::new(GpuVa(0x1000), 4),
            GpEntry::new(GpuVa(0x2000), 2),
        ]
        .into_iter()
        .flat_map(|entry| entry.unwrap().encode().to_le_bytes())
        .collect();
        add(
            Kind::Ring,
            0,
            &[1, 2, 0xc86f, 0x9000, 8, 7, 1, 0, 1],
            &[&entries],
        );
        let words: Vec<u8> = [0x2001_2000_u32, 0xcbc0, 0x2001_20ad, 0x30]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        add(
            Kind::Memory,
            0,
            &[0x1000, 16, 0, Role::Words as u64, 0],
            &[&words[..8]],
        );
        add(
            Kind::Memory,
            0,
            &[0x1000, 16, 8, Role::Words as u64, 0],
            &[&words[8..]],
        );
        add(
            Kind::Memory,
            0,
            &[0x3000, 384, 0, Role::Descriptor as u64, 0],
            &[&[0; 384]],
        );
        add(Kind::Memory, 0, &[0x2000, 8, 0, Role::Words as u64, 1], &[]);
        add(Kind::Lost, 0, &[3, Loss::Full as u64], &[]);
        add(Kind::Unmap, 0, &[0x1000, 0x1000], &[]);
        add(Kind::Close, 0, &[3], &[b"/dev/nvidiactl"]);
        file
    }

    fn shown(bytes: &[u8]) -> [String; 2] {
        let recorded = events::assemble(bytes);
        let (mut out, mut lines) = (Vec::new(), Vec::new());
        text::write(&mut Paper::new(&mut out, false), &recorded, STYLE).unwrap();
        json::write(&mut Paper::new(&mut lines, false), &recorded, STYLE).unwrap();
        [out, lines].map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn parts_of_segments_are_put_together() {
        let [text, json] = shown(&sample());
        for line in [
            "channel 0x2 (HOPPER_CHANNEL_GPFIFO_A) of client 0x1: 2 new entries, GP_PUT 1 of 8, seen before a call",
            "  entry 7: 4 words at 0x1000",
            "     3 1 HOPPER_COMPUTE_A           SEND_PCAS_A 0x00000030",
            "  what is launched at 0x3000 is no launch descriptor that is known",
            "  entry 0: 2 words at 0x2000, not mapped for the CPU",
            "LOST 3: objects, mappings or launches beyond what the library keeps",
            "UVM_CREATE_EXTERNAL_RANGE  nvidia-uvm(4)  did not return",
            "-> version=0x2020202",
        ] {
            assert!(text.contains(line), "{line}\nis not in\n{text}");
        }
        assert_eq!(json.lines().count(), 9, "{json}");
    }

    #[test]
    fn no_damage_to_a_file_makes_reading_fail() {
        let sample = sample();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..1500 {
            let mut bytes = sample.clone();
            for _ in 0..=random(6) {
                let at = random(bytes.len());
                bytes[at] = u8::try_from(random(256)).unwrap();
            }
            bytes.truncate(bytes.len() - random(40));
            let [text, json] = shown(&bytes);
            assert!(text.ends_with(" seen\n"));
            assert!(
                json.lines()
                    .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
            );
        }
    }
}
