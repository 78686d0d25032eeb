//! `nv`: run, inspect and diagnose NVIDIA GPUs with no vendor user-space library.
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "both end the process where nobody reads: `out` does not"
)]

mod bench;
mod cubin;
mod demo;
mod device;
mod devices;
mod doctor;
mod exit;
mod fatbin;
mod fault;
mod input;
mod ioctl;
mod listing;
mod out;
mod profile;
mod push;
mod qmd;
mod run;
mod table;
mod trace;
mod value;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Run NVIDIA GPUs with no vendor user-space library.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = format!("{}\n\n{}", exit::HELP, watch::HELP))]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run four kernels on the first GPU that opens, else on a simulated one, and check every element of their results.
    Demo(demo::Args),
    /// Measure latencies and bandwidths.
    Bench(bench::Args),
    /// List the GPUs of this machine; it needs no permission to open them.
    Devices(devices::Args),
    /// Check what will work here, and say what to do about what will not.
    Doctor(doctor::Args),
    /// Name captured driver calls.
    Ioctl(ioctl::Args),
    /// Run one kernel of a cubin.
    Run(run::Args),
    /// Show what a cubin says of itself.
    Cubin(cubin::Args),
    /// List and extract what fatbins, programs and libraries hold.
    Fatbin(fatbin::Args),
    /// Print and compare launch descriptors.
    #[command(subcommand)]
    Qmd(qmd::Args),
    /// Show pushbuffers as text, or how two of them differ.
    Push(push::Args),
    /// Record the driver calls and the command buffers of any program, and name them.
    Trace(trace::Args),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if let Err(error) = watch::begin() {
        crate::out::note(format_args!("{error}"));
        return ExitCode::from(2);
    }
    let outcome = match command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Ioctl(args) => ioctl::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Cubin(args) => cubin::run(&args),
        Command::Fatbin(args) => fatbin::run(&args),
        Command::Qmd(args) => qmd::run(&args),
        Command::Push(args) => push::run(&args),
        Command::Trace(args) => trace::run(&args),
    };
    exit::code(outcome)
}
