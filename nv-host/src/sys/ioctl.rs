//! Opening device nodes and calling their drivers.
#![allow(unsafe_code, reason = "the only file that makes ioctls")]

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open as open_at};
use nix::libc;
use nix::sys::stat::Mode;

/// How often a call that a signal interrupted is made again: more than any program's timers could need, and an
/// end for one whose handler raises its own signal.
const INTERRUPTIONS: u32 = 1000;

/// Opens a node for reading and writing, closed on exec.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, Errno> {
    uninterrupted(|| open_at(path, OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()))
}

/// Makes a driver call.
///
/// # Safety
/// `params` is at least as large as what the driver copies in and out for `request`, and pointers inside are
/// valid for whatever it does through them.
pub(crate) unsafe fn call(
    fd: BorrowedFd<'_>,
    request: u32,
    params: &mut [u8],
) -> Result<(), Errno> {
    uninterrupted(|| {
        // SAFETY: `fd` is open while it is borrowed; `params` is exclusively ours and, by the caller's promise,
        // as large as the driver's structure and with valid pointers.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), request.into(), params.as_mut_ptr()) };
        Errno::result(result).map(drop)
    })
}

/// Makes a call again when a signal interrupted it before it began.
fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..INTERRUPTIONS {
        match call() {
            Err(Errno::EINTR) => {}
            other => return other,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn interrupted_calls_are_made_again_but_not_for_ever() {
        let mut calls = 0;
        let third = uninterrupted(|| {
            calls += 1;
            if calls < 3 {
                Err(Errno::EINTR)
            } else {
                Ok(calls)
            }
        });
        assert_eq!(third, Ok(3));
        let mut calls = 0;
        let never: Result<(), _> = uninterrupted(|| {
            calls += 1;
            Err(Errno::EINTR)
        });
        assert_eq!((never, calls), (Err(Errno::EINTR), INTERRUPTIONS));
    }

    #[test]
    fn errors_are_the_systems() {
        assert_eq!(
            open(Path::new("/nowhere/at/all")).unwrap_err(),
            Errno::ENOENT
        );
        let null = open(Path::new("/dev/null")).unwrap();
        // SAFETY: /dev/null knows no ioctl and touches no byte.
        let result = unsafe { call(null.as_fd(), 0xc020_462a, &mut [0; 32]) };
        assert_eq!(result, Err(Errno::ENOTTY));
    }
}
