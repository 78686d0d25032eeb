//! Every system call on a device node as a span of the `tracing` crate: also those that no call of a
//! [`Driver`](crate::driver::Driver) stands for, since they find and open it.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nv_proto::rm::{self, Described, Shape};
use nv_proto::uvm;
use tracing::field::{Empty, debug, display};
use tracing::{Span, debug_span};

/// The target of the spans.
pub(crate) const TARGET: &str = "nv_host::ioctl";

/// A call of a driver.
pub(super) fn ioctl(
    fd: BorrowedFd<'_>,
    request: u32,
    params: &mut [u8],
    call: impl FnOnce(&mut [u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    // The structure of a call to UVM depends on the release, which is not known here; the call's own span tells it.
    let escape = rm::parse_request(request);
    let shape = escape.and_then(|(escape, size)| rm::escape_shape(escape, size));
    let span = debug_span!(
        target: TARGET,
        "ioctl",
        call = %match escape {
            Some((escape, _)) => rm::names::escape(escape).map(str::to_owned),
            None => uvm::name(request).map(str::to_owned),
        }
        .unwrap_or_else(|| format!("ioctl {request:#x}")),
        object = %format_args!("fd {}", fd.as_raw_fd()),
        params = Empty,
        changed = Empty,
        status = Empty,
        took_us = Empty,
    );
    if span.is_disabled() {
        return call(params);
    }
    let before = params.to_vec();
    if let Some(shape) = shape {
        span.record("params", display(Described::new(shape, &before)));
    }
    let result = timed(&span, || call(params));
    if let (Some(shape), Ok(())) = (shape, &result) {
        let changed = changes(shape, &before, params);
        span.record("changed", changed);
    }
    result
}

/// Opening a node.
pub(super) fn open<R>(path: &Path, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let span = debug_span!(
        target: TARGET, "open", call = "open", object = %path.display(), status = Empty, took_us = Empty
    );
    timed(&span, call)
}

/// Mapping what a driver prepared.
pub(super) fn map<R>(
    fd: BorrowedFd<'_>,
    length: usize,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let span = debug_span!(
        target: TARGET,
        "mmap",
        call = "mmap",
        object = %format_args!("fd {}", fd.as_raw_fd()),
        params = %format_args!("length={length:#x}"),
        status = Empty,
        took_us = Empty,
    );
    timed(&span, call)
}

/// Makes a call in its span, and notes how it ended.
fn timed<R>(span: &Span, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    if span.is_disabled() {
        return call();
    }
    let start = Instant::now();
    let result = span.in_scope(call);
    span.record("took_us", start.elapsed().as_nanos() as f64 / 1e3);
    match &result {
        Ok(_) => span.record("status", "done"),
        Err(errno) => span.record("status", debug(errno)),
    };
    result
}

/// The fields that differ, as they are afterwards.
fn changes(shape: Shape, before: &[u8], after: &[u8]) -> String {
    let (before, after) = (Described::new(shape, before), Described::new(shape, after));
    let pairs = before.fields().zip(after.fields());
    let changed = pairs.filter(|(old, new)| old.bytes != new.bytes);
    let texts: Vec<String> = changed
        .map(|(_, new)| format!("{}={new}", new.field.name))
        .collect();
    texts.join(" ")
}
