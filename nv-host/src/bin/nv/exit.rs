//! Exit codes, which are stable, and how a failure is shown.

use std::process::ExitCode;

use nv_host::Error;

/// What `nv --help` says of the exit codes.
pub const HELP: &str = "Exit codes: 0 done; 1 a result is wrong, a check failed, or two things differ; 2 the command line is wrong; \
3 no device can be used; 4 a file or an argument is no good; 5 the GPU faulted; 6 a time limit passed; \
7 the driver refused a call or memory is short.";

/// Why a command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// A result is wrong or a check failed: it has been shown.
    Failed,
    /// A file or an argument is no good.
    BadInput(String),
    /// The library says.
    Library(Error),
    /// A program that was started ended with this code, and has said why itself.
    Program(u8),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// The process's exit code, after the failure has been written to standard error.
pub fn code(outcome: Result<(), Failure>) -> ExitCode {
    let failure = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    match failure {
        Failure::Failed => ExitCode::from(1),
        Failure::Program(code) => ExitCode::from(code),
        Failure::BadInput(text) => {
            crate::out::note(format_args!("{text}"));
            ExitCode::from(4)
        }
        Failure::Library(error) => {
            crate::out::note(format_args!("{error}"));
            ExitCode::from(match error {
                Error::NoDevice(_) | Error::Node { .. } => 3,
                Error::Cubin(_)
                | Error::WrongArchitecture { .. }
                | Error::Undefined { .. }
                | Error::NoVariable { .. }
                | Error::NoKernel { .. }
                | Error::Launch { .. }
                | Error::InvalidArgument(_) => 4,
                Error::Fault(_) => 5,
                Error::Timeout { .. } => 6,
                _ => 7,
            })
        }
    }
}
