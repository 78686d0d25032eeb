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
        if !changed.is_empty() {
            span.record("changed", changed);
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt;
    use std::os::fd::AsFd;
    use std::sync::{Arc, Mutex};

    use nv_proto::rm::{Nvos00, Status};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};
    use zerocopy::IntoBytes;

    use super::*;

    type Seen = Arc<Mutex<BTreeMap<String, String>>>;

    /// Keeps the fields of all spans by name.
    struct Keeping(Seen);

    struct Fields<'a>(&'a Seen);

    impl Visit for Fields<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            let mut seen = self.0.lock().unwrap();
            seen.insert(field.name().to_owned(), format!("{value:?}"));
        }
    }

    impl Subscriber for Keeping {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == TARGET
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            attributes.record(&mut Fields(&self.0));
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, values: &Record<'_>) {
            values.record(&mut Fields(&self.0));
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// The fields of the spans of `run`.
    fn fields(run: impl FnOnce()) -> BTreeMap<String, String> {
        let seen = Seen::default();
        tracing::subscriber::with_default(Keeping(Arc::clone(&seen)), run);
        let seen = seen.lock().unwrap();
        seen.clone()
    }

    #[test]
    fn a_call_is_told_by_name_with_what_it_changed() {
        let request = rm::request(rm::NV_ESC_RM_FREE, size_of::<Nvos00>()).unwrap();
        let mut params = Nvos00 {
            h_root: 0xc1d0_0001.into(),
            h_object_old: 0xcaf0_0002.into(),
            ..Default::default()
        };
        let input = std::io::stdin();
        let seen = fields(|| {
            let done = ioctl(input.as_fd(), request, params.as_mut_bytes(), |bytes| {
                // What a driver does: it writes its answer into the structure.
                let answer = Nvos00 {
                    status: Status::OBJECT_NOT_FOUND.0.into(),
                    ..Default::default()
                };
                bytes[12..16].copy_from_slice(&answer.as_bytes()[12..16]);
                Ok(())
            });
            assert_eq!(done, Ok(()));
        });
        assert_eq!(params.status.get(), Status::OBJECT_NOT_FOUND.0);
        assert_eq!(seen["call"], "NV_ESC_RM_FREE");
        assert_eq!(seen["object"], "fd 0");
        assert_eq!(
            seen["params"],
            "NVOS00_PARAMETERS hRoot=0xc1d00001 hObjectOld=0xcaf00002"
        );
        assert!(
            seen["changed"].contains("status=NV_ERR_OBJECT_NOT_FOUND (0x57)"),
            "{seen:?}"
        );
        assert_eq!(seen["status"], "\"done\"");
        assert!(seen["took_us"].parse::<f64>().unwrap() >= 0.0);
    }

    #[test]
    fn what_fails_and_what_has_no_name_is_told_too() {
        let input = std::io::stdin();
        let seen = fields(|| {
            let refused = ioctl(input.as_fd(), 0xdead_beef, &mut [0; 4], |_| {
                Err(Errno::EINVAL)
            });
            assert_eq!(refused, Err(Errno::EINVAL));
        });
        assert_eq!(seen["call"], "ioctl 0xdeadbeef");
        assert_eq!(seen["status"], "EINVAL");
        assert!(!seen.contains_key("params"));
        let seen = fields(|| {
            let opened = open(Path::new("/dev/nvidia7"), || Err::<(), _>(Errno::ENXIO));
            assert_eq!(opened, Err(Errno::ENXIO));
        });
        assert_eq!(
            (&*seen["object"], &*seen["status"]),
            ("/dev/nvidia7", "ENXIO")
        );
        // With nobody to hear of it the call is made all the same.
        assert_eq!(map(input.as_fd(), 4096, || Ok(7)), Ok(7));
    }
}
