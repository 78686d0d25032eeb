//! `nv push`: pushbuffers as text, how two of them differ, and what a GPU makes of one.

mod diff;
pub mod dump;
pub mod paint;
mod source;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use nv_proto::class::{self, Generation};
use nv_proto::pretty::Bindings;

use crate::device::DeviceArgs;
use crate::exit::Failure;

/// Pushbuffers as text, how two of them differ, and what a GPU makes of one.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Names what each word does: class, method, fields, and the launch descriptors among the data.
    Dump {
        /// Raw little-endian words, hex text, or captured streams as JSON; `-` is standard input.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Show every field, those that are 0 too.
        #[arg(long)]
        all: bool,
        /// One JSON document for tools.
        #[arg(long)]
        json: bool,
    },
    /// Submits command words as they are to a GPU, and says what came of it. Subchannel 1 is its compute engine, 4 its copy
    /// engine.
    Run {
        /// As for `dump`.
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        #[command(flatten)]
        device: DeviceArgs,
        /// One JSON document for tools, where it fails.
        #[arg(long)]
        json: bool,
    },
    /// Shows the methods in which two pushbuffers differ, field by field. Exits with 1 when they do.
    Diff {
        /// The one.
        from: PathBuf,
        /// The other.
        to: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Which stream of the other file; by default that of `--stream`.
        #[arg(long, value_name = "NAME")]
        to_stream: Option<String>,
        /// One JSON document for tools.
        #[arg(long)]
        json: bool,
    },
}

/// How files are read.
#[derive(Debug, ClapArgs)]
pub struct Reading {
    /// What the file holds; by default that is told from its first bytes.
    #[arg(long, value_enum, default_value = "auto")]
    format: Format,
    /// Which stream of a JSON file, by the path of its names, such as `vadd`; by default all of them.
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Whose classes the words are for where they do not say; by default what a capture says of its GPU.
    #[arg(long, value_enum)]
    generation: Option<GenerationArg>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Whatever it looks like.
    Auto,
    /// Little-endian 32-bit words.
    Words,
    /// Hexadecimal words as text; `#` begins a comment.
    Hex,
    /// JSON: words or methods, alone or by name.
    Json,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum GenerationArg {
    Turing,
    Ga100,
    Ga10x,
    Ada,
    Hopper,
    Gb10x,
    Gb20x,
}

impl From<GenerationArg> for Generation {
    fn from(arg: GenerationArg) -> Self {
        match arg {
            GenerationArg::Turing => Self::Turing,
            GenerationArg::Ga100 => Self::AmpereGa100,
            GenerationArg::Ga10x => Self::AmpereGa10x,
            GenerationArg::Ada => Self::Ada,
            GenerationArg::Hopper => Self::Hopper,
            GenerationArg::Gb10x => Self::BlackwellGb10x,
            GenerationArg::Gb20x => Self::BlackwellGb20x,
        }
    }
}

impl Reading {
    /// What is bound before the words of a stream bind anything.
    fn bindings(&self, stream: &source::Stream) -> Bindings {
        let said = stream.compute_class.and_then(Generation::of_compute);
        self.generation
            .map(Generation::from)
            .or(said)
            .map_or(Bindings::NONE, Bindings::of)
    }
}

/// Runs `nv push`.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Dump {
            file,
            reading,
            all,
            json,
        } => {
            let streams = source::read(file, reading.format, reading.stream.as_deref())?;
            let mut paper = paint::Paper::stdout();
            if *json {
                dump::json(&mut paper, &streams, reading)
            } else {
                dump::text(&mut paper, &streams, reading, *all)
            }
        }
        Command::Run {
            file,
            reading,
            device,
            json,
        } => {
            let words = source::one(file, reading.format, reading.stream.as_deref())?.words;
            let device = device.open()?;
            let stream = device.stream()?;
            let event = stream.submit_words(&words);
            crate::fault::wait(&stream, event, *json)?;
            crate::out::text(&format!(
                "{} words done on {}\n",
                words.len(),
                device.info().name
            ))
        }
        Command::Diff {
            from,
            to,
            reading,
            to_stream,
            json,
        } => {
            let stream = reading.stream.as_deref();
            let from = source::one(from, reading.format, stream)?;
            let to = source::one(to, reading.format, to_stream.as_deref().or(stream))?;
            diff::run(&mut paint::Paper::stdout(), &from, &to, reading, *json)
        }
    }
}

/// The name of a class, or its number.
fn class_text(class: nv_proto::unit::ClassId) -> String {
    class::name(class).map_or_else(|| format!("{:#x}", class.0), str::to_owned)
}
