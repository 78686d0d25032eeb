//! The one error type of the crate.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nv_proto::rm::Status;
use nv_proto::unit::SmVersion;

use crate::fault::FaultReport;

/// What went wrong, with what it was about and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No GPU can be used; every way that was tried is listed, first cause first.
    #[error("no usable GPU: {}", .0.join("; "))]
    NoDevice(Vec<String>),
    /// A system call on a device node failed.
    #[error("{operation} {}: {errno}; {remedy}", .path.display())]
    Node {
        /// The device node.
        path: PathBuf,
        /// What was being done, such as `open`.
        operation: &'static str,
        /// The system's error.
        errno: nix::errno::Errno,
        /// What to do about it.
        remedy: String,
    },
    /// The resource manager refused a call.
    #[error("{call} failed: {status}{detail}")]
    Rm {
        /// The call with its class or command by name.
        call: String,
        /// The status.
        status: Status,
        /// What else is known (sizes, ABI row, remedy), with its own leading punctuation, or empty.
        detail: String,
    },
    /// There is not enough memory of the kind asked for.
    #[error("out of {what}: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Which memory.
        what: &'static str,
        /// How much was asked for.
        bytes: u64,
    },
    /// The driver cannot do this.
    #[error("{0}")]
    Unsupported(String),
    /// An argument makes no sense.
    #[error("{0}")]
    InvalidArgument(String),
    /// A file is no cubin that can be loaded.
    #[error("{0}")]
    Cubin(String),
    /// A cubin is for another GPU.
    #[error("the cubin is for {file}, and this GPU runs {device}: compile it with -arch={device}")]
    WrongArchitecture {
        /// What the file is for.
        file: SmVersion,
        /// What the GPU is.
        device: SmVersion,
    },
    /// A module has no kernel of that name.
    #[error("no kernel {name}; the module has {}", list(.present))]
    NoKernel {
        /// The name asked for.
        name: String,
        /// The names that there are.
        present: Vec<String>,
    },
    /// A module has no variable of that name.
    #[error("no variable {name}; the module has {}", list(.present))]
    NoVariable {
        /// The name asked for.
        name: String,
        /// The names that there are.
        present: Vec<String>,
    },
    /// The code calls a function that is not in its file.
    #[error("{symbol} is called by {} and is not in the file: {remedy}", list(.kernels))]
    Undefined {
        /// The function.
        symbol: String,
        /// The kernels that say they call it; what they call may call it, too.
        kernels: Vec<String>,
        /// What to do.
        remedy: &'static str,
    },
    /// A launch breaks a limit; nothing has reached the device.
    #[error("kernel {kernel}: {reason}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Which limit, with the value and the maximum.
        reason: String,
    },
    /// A wait ran out of time.
    #[error("{what} did not finish within {limit:?}{}", details(.report.as_ref()))]
    Timeout {
        /// What was waited for.
        what: String,
        /// The limit.
        limit: Duration,
        /// What is known of the work, where it is that of a stream. [`Stream::diagnose`](crate::Stream::diagnose) asks
        /// the driver for more.
        report: Option<Arc<FaultReport>>,
    },
    /// The GPU stopped.
    #[error("{0}")]
    Fault(Arc<FaultReport>),
    /// A CPU mapping was used past its end.
    #[error("{length} bytes at offset {offset:#x} lie outside a mapping of {size:#x} bytes")]
    OutOfBounds {
        /// Where.
        offset: u64,
        /// How much.
        length: u64,
        /// The mapping's size.
        size: u64,
    },
    /// Something could not be encoded.
    #[error(transparent)]
    Encode(#[from] nv_proto::EncodeError),
    /// Something could not be decoded.
    #[error(transparent)]
    Decode(#[from] nv_proto::DecodeError),
}

fn details(report: Option<&Arc<FaultReport>>) -> String {
    report.map_or_else(String::new, |report| report.details().to_string())
}

/// Names for people; nothing is "none".
fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
