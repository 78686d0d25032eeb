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
        eprintln!("nv: {error}; what came before it is shown");
    }
    if recorded.processes == 0 {
        eprintln!(
            "nv: the program did not load the recording library: is it static, or set-user-ID? Nothing was recorded"
        );
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
    fs::read(file).map_err(|error| Failure::BadInput(format!("{}: {error}", file.display())))
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
