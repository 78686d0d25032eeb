//! Every system call of the crate.
//!
//! [`System`] is the seam: the driver above it is tested against a recorded kernel.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;

pub(crate) mod ioctl;
pub(crate) mod mmap;
#[cfg(feature = "tracing")]
mod traced;

/// What the kernel does for a driver of this crate.
#[allow(unsafe_code, reason = "a driver call is as safe as its parameters")]
pub(crate) trait System: fmt::Debug + Send + Sync {
    /// Opens a device node for reading and writing.
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno>;

    /// Makes a driver call on a device node.
    ///
    /// # Safety
    /// `params` is at least as large as what the driver of `fd` copies in and out for `request`, and pointers
    /// inside are valid for whatever it does through them.
    unsafe fn ioctl(
        &self,
        fd: BorrowedFd<'_>,
        request: u32,
        params: &mut [u8],
    ) -> Result<(), Errno>;

    /// Maps what a driver prepared on a device node.
    fn map(&self, fd: BorrowedFd<'_>, length: NonZeroUsize) -> Result<mmap::Pages, Errno>;

    /// Reads a small text file, such as those below `/proc` and `/sys`.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// The kernel that this process runs on.
#[derive(Debug)]
pub(crate) struct Linux;

impl System for Linux {
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        #[cfg(feature = "tracing")]
        return traced::open(path, || ioctl::open(path));
        #[cfg(not(feature = "tracing"))]
        ioctl::open(path)
    }

    #[allow(unsafe_code, reason = "hands the promise on")]
    unsafe fn ioctl(
        &self,
        fd: BorrowedFd<'_>,
        request: u32,
        params: &mut [u8],
    ) -> Result<(), Errno> {
        // SAFETY: the caller's promise is the same.
        let call = |params: &mut [u8]| unsafe { ioctl::call(fd, request, params) };
        #[cfg(feature = "tracing")]
        return traced::ioctl(fd, request, params, call);
        #[cfg(not(feature = "tracing"))]
        call(params)
    }

    fn map(&self, fd: BorrowedFd<'_>, length: NonZeroUsize) -> Result<mmap::Pages, Errno> {
        #[cfg(feature = "tracing")]
        return traced::map(fd, length.get(), || mmap::Pages::of_node(fd, length));
        #[cfg(not(feature = "tracing"))]
        mmap::Pages::of_node(fd, length)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}
