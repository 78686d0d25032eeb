//! `nv run FILE KERNEL`: one launch with arguments from the command line.

use std::path::PathBuf;
use std::time::Instant;

use nv_host::{ArgBytes, Buffer};
use nv_proto::unit::Dim3;
use serde::Serialize;

use crate::device::DeviceArgs;
use crate::exit::Failure;
use crate::out;
use crate::profile::{self, ProfileArgs};
use crate::value::{ArgSpec, Type};

/// Run one kernel.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nv run tests/cubins/demo/demo.sm_90.cubin vector_add --grid 4 --block 256 \
    --arg 'f32[1024]=range' --arg 'f32[1024]=fill:0.5' --arg 'f32[1024]=zero' --arg u32:1024 --out 2=sum.bin"
)]
pub struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    /// The cubin; `-` reads standard input.
    file: PathBuf,
    /// The kernel's name.
    kernel: String,
    /// Blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape)]
    grid: Dim3,
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = shape)]
    block: Dim3,
    /// Bytes of dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    // Not a documentation comment, where square brackets would be a link.
    #[arg(
        long = "arg",
        value_name = "SPEC",
        allow_hyphen_values = true,
        help = "An argument, in the kernel's order: TYPE:VALUE or \
                TYPE[COUNT]=zero|range|fill:V|random:SEED|file:PATH"
    )]
    args: Vec<ArgSpec>,
    /// Write buffer argument N (counted from 0 over all arguments) to a file afterwards.
    #[arg(long = "out", value_name = "N=PATH", value_parser = output)]
    outputs: Vec<(usize, PathBuf)>,
    /// How many elements of each buffer to print.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    print: usize,
    /// How often to launch; `time_us` is that of all launches.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    device: &'a str,
    kernel: &'a str,
    grid: String,
    block: String,
    time_us: f64,
    buffers: Vec<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<profile::Report<'a>>,
}

/// The first elements of one buffer.
#[derive(Debug, Serialize)]
struct Shown {
    arg: usize,
    #[serde(rename = "type")]
    kind: String,
    count: usize,
    first: Vec<serde_json::Value>,
}

/// Runs the kernel.
pub fn run(args: &Args) -> Result<(), Failure> {
    let cubin = crate::input::read(&args.file)?;
    // What is no cubin is refused with the file's name, and before a GPU is opened.
    crate::cubin::parse(&args.file, &cubin)?;
    for (number, _) in &args.outputs {
        if !matches!(args.args.get(*number), Some(ArgSpec::Buffer { .. })) {
            return Err(Failure::BadInput(format!(
                "--out {number}=…: argument {number} is no buffer"
            )));
        }
    }
    let device = args.device.open()?;
    let profile = args.profile.begin(&device)?;
    let module = device.load(&cubin)?;
    let function = module.function(&args.kernel)?;
    let mut buffers: Vec<(usize, Type, Buffer<u8>)> = Vec::new();
    for (number, arg) in args.args.iter().enumerate() {
        if let ArgSpec::Buffer { kind, bytes } = arg {
            buffers.push((number, *kind, device.upload(bytes)?));
        }
    }
    let stream = device.default_stream()?;
    let mut launch = stream
        .launch(&function)
        .grid(args.grid)
        .block(args.block)
        .shared(args.shared);
    let mut next = buffers.iter();
    for arg in &args.args {
        launch = match arg {
            ArgSpec::Scalar(bytes) => launch.arg(ArgBytes(bytes)),
            ArgSpec::Buffer { .. } => match next.next() {
                Some((_, _, buffer)) => launch.arg(buffer),
                None => launch,
            },
        };
    }
    let start = Instant::now();
    let mut event = launch.submit();
    for _ in 1..args.repeat {
        event = event.and_then(|_| launch.submit());
    }
    crate::fault::wait(&stream, event, args.json)?;
    let time_us = start.elapsed().as_secs_f64() * 1e6;

    let mut shown = Vec::new();
    for (number, kind, buffer) in &buffers {
        let bytes = buffer.read()?;
        for (_, path) in args.outputs.iter().filter(|(n, _)| n == number) {
            std::fs::write(path, &bytes)
                .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))?;
        }
        let first = bytes
            .chunks_exact(kind.size())
            .take(args.print)
            .map(|value| kind.show(value));
        shown.push(Shown {
            arg: *number,
            kind: kind.to_string(),
            count: bytes.len() / kind.size(),
            first: first.collect(),
        });
    }
    let recording = args.profile.finish(profile)?;
    let name = &device.info().name;
    if args.json {
        let report = Report {
            device: name,
            kernel: function.name(),
            grid: args.grid.to_string(),
            block: args.block.to_string(),
            time_us,
            buffers: shown,
            profile: recording.as_ref().map(profile::report),
        };
        out::json(&report)
    } else {
        let mut text = format!(
            "{} on {name}: grid {}, block {}, {time_us:.1} us\n",
            function.name(),
            args.grid,
            args.block
        );
        for Shown {
            arg,
            kind,
            count,
            first,
        } in &shown
        {
            let values: Vec<String> = first.iter().map(ToString::to_string).collect();
            let more = if first.len() < *count { ", …" } else { "" };
            let values = values.join(", ");
            text.push_str(&format!("arg {arg}, {kind}[{count}]: {values}{more}\n"));
        }
        if let (Some(recording), true) = (&recording, args.profile.wants_table()) {
            text.push_str(&profile::text(recording));
        }
        out::text(&text)
    }
}

/// `X`, `X,Y` or `X,Y,Z`.
fn shape(text: &str) -> Result<Dim3, String> {
    let parts: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    match parts
        .map_err(|error| format!("{text:?}: {error}"))?
        .as_slice()
    {
        [x] => Ok(Dim3::new(*x, 1, 1)),
        [x, y] => Ok(Dim3::new(*x, *y, 1)),
        [x, y, z] => Ok(Dim3::new(*x, *y, *z)),
        _ => Err(format!("{text:?} is not X, X,Y or X,Y,Z")),
    }
}

/// `N=PATH`.
fn output(text: &str) -> Result<(usize, PathBuf), String> {
    let (number, path) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not N=PATH"))?;
    let number = number
        .parse()
        .map_err(|error| format!("{text:?}: {error}"))?;
    Ok((number, path.into()))
}
