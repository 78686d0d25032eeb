//! Mapped pages.
#![allow(unsafe_code, reason = "the only file that maps and unmaps")]

use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Pages mapped at an address that the kernel chose. Dropping them unmaps.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: the pages belong to the process, not to a thread, and a `Pages` gives out no reference to them.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`: a shared `Pages` only tells where it is.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps what a driver prepared on a device node, from its offset 0.
    pub(crate) fn of_node(fd: BorrowedFd<'_>, length: NonZeroUsize) -> Result<Self, Errno> {
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
        let base = unsafe { mmap(None, length, ACCESS, MapFlags::MAP_SHARED, fd, 0) }?;
        Ok(Self {
            base: base.cast(),
            length,
        })
    }

    /// The address of the first byte.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How many bytes were asked for.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length.get()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `mmap`, is unmapped here alone, and every user of its address borrows
        // or owns this value.
        let result = unsafe { munmap(self.base.cast(), self.length.get()) };
        debug_assert_eq!(result, Ok(()), "munmap of a mapped range");
    }
}

const ACCESS: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn pages_are_the_nodes_and_are_unmapped() {
        let path = std::env::temp_dir().join(format!("nv-pages-{}", std::process::id()));
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        file.set_len(0x3000).unwrap();
        let pages = Pages::of_node(file.as_fd(), NonZeroUsize::new(0x3000).unwrap()).unwrap();
        assert_eq!(pages.length(), 0x3000);
        let last = pages.base().as_ptr().wrapping_add(0x2fff);
        // SAFETY: the last byte of the pages, which nothing else refers to.
        unsafe { last.write_volatile(0xa5) }
        assert_eq!(std::fs::read(&path).unwrap()[0x2fff], 0xa5);
        let name = path.display().to_string();
        let mapped = || {
            std::fs::read_to_string("/proc/self/maps")
                .unwrap()
                .contains(&name)
        };
        assert!(mapped());
        drop(pages);
        assert!(!mapped());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let error = Pages::of_node(null.as_fd(), NonZeroUsize::MIN).unwrap_err();
        assert_eq!(error, Errno::EACCES);
    }
}
