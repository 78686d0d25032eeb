//! The functions that stand in for the C library's.
//!
//! Each hands its call on unchanged and answers what the C library answered. In C, `open`, `openat` and `ioctl` take a
//! variable last argument, which a Rust function cannot; on x86-64 and AArch64 Linux an argument passed so lies
//! in the same register as a named one, and a caller that passed none leaves there what nobody reads.

use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use core::sync::atomic::AtomicPtr;

use super::hook::{self, Node};
use super::sys::{self, Live};
use crate::record::{Cause, Loss};

type OpenFn = unsafe extern "C" fn(*const c_char, c_int, ...) -> c_int;
type OpenAtFn = unsafe extern "C" fn(c_int, *const c_char, c_int, ...) -> c_int;
type CloseFn = unsafe extern "C" fn(c_int) -> c_int;
type IoctlFn = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
type MmapFn = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
type MunmapFn = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
type MprotectFn = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;

/// `ENOSYS`, `PROT_READ`, `MAP_FIXED`, `MAP_FAILED` (Linux headers).
const ENOSYS: c_int = 38;
const PROT_READ: c_int = 1;
const MAP_FIXED: c_int = 0x10;
const MAP_FAILED: *mut c_void = core::ptr::without_provenance_mut(usize::MAX);

/// The C library's function of a name; answers `$failed` with `ENOSYS` where there is none.
macro_rules! real {
    ($name:literal as $type:ty, else $failed:expr) => {{
        static SLOT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
        let found = sys::next(&SLOT, $name);
        // SAFETY: a null pointer is `None`, and any other is the C library's function of this name, whose type
        // this is.
        let found = unsafe { core::mem::transmute::<*mut c_void, Option<$type>>(found) };
        match found {
            Some(found) => found,
            None => {
                sys::set_errno(ENOSYS);
                return $failed;
            }
        }
    }};
}

/// Runs `record` and leaves `errno` as it was.
fn quietly<R>(record: impl FnOnce() -> R) -> R {
    let errno = sys::errno();
    let result = record();
    sys::set_errno(errno);
    result
}

macro_rules! open {
    ($( $name:ident, $c_name:literal; )*) => { $(
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            let real = real!($c_name as OpenFn, else -1);
            // SAFETY: the caller's arguments.
            let fd = unsafe { real(path, flags, mode) };
            quietly(|| hook::opened(path.expose_provenance() as u64, fd, sys::errno()));
            fd
        }
    )* };
}

open! {
    open, c"open";
    open64, c"open64";
}

macro_rules! open_at {
    ($( $name:ident, $c_name:literal; )*) => { $(
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            let real = real!($c_name as OpenAtFn, else -1);
            // SAFETY: the caller's arguments.
            let fd = unsafe { real(directory, path, flags, mode) };
            quietly(|| hook::opened(path.expose_provenance() as u64, fd, sys::errno()));
            fd
        }
    )* };
}

open_at! {
    openat, c"openat";
    openat64, c"openat64";
}

/// # Safety
/// As the C library's.
#[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    let real = real!(c"close" as CloseFn, else -1);
    quietly(|| hook::closing(fd));
    // SAFETY: the caller's argument.
    unsafe { real(fd) }
}

/// # Safety
/// As the C library's.
#[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let real = real!(c"ioctl" as IoctlFn, else -1);
    let call = quietly(|| hook::enter(fd, request, argument.expose_provenance() as u64));
    // SAFETY: the caller's arguments.
    let result = unsafe { real(fd, request, argument) };
    if let Some(call) = call {
        let errno = sys::errno();
        quietly(|| hook::leave(&call, result, errno));
    }
    result
}

macro_rules! mmap {
    ($( $name:ident, $c_name:literal; )*) => { $(
        /// # Safety
        /// As the C library's.
        #[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            address: *mut c_void,
            length: usize,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: i64,
        ) -> *mut c_void {
            let real = real!($c_name as MmapFn, else MAP_FAILED);
            // SAFETY: the caller's arguments.
            let map = || unsafe { real(address, length, protection, flags, fd, offset) };
            let replaces = flags & MAP_FIXED != 0 && Live::any();
            let node = quietly(|| Node::of(fd));
            if node.is_none() && !replaces {
                return map();
            }
            let mapped = hook::STATE.with(|state| {
                if replaces {
                    quietly(|| state.unmapping(address.expose_provenance() as u64, length as u64));
                }
                let mapped = map();
                if let (Some(node), true) = (node, mapped != MAP_FAILED) {
                    let at = mapped.expose_provenance() as u64;
                    let length = length as u64;
                    quietly(|| {
                        state.mapped(&node, at, [length, offset.cast_unsigned()], [fd, protection, flags]);
                        if protection & PROT_READ != 0 {
                            // SAFETY: the pages were mapped readable just now. Whatever unmaps, replaces or
                            // protects them goes through this file, which tells `Live` before it does so.
                            let kept = unsafe { state.live.add(at, length) };
                            if !kept { sys::lose(Loss::Full); }
                        }
                    });
                }
                mapped
            });
            mapped.unwrap_or_else(|| {
                if replaces {
                    Live::mistrust();
                }
                map()
            })
        }
    )* };
}

mmap! {
    mmap, c"mmap";
    mmap64, c"mmap64";
}

/// Does what takes pages away with nobody reading them, and tells `Live` first.
fn taking<R>(address: *mut c_void, length: usize, mut take: impl FnMut() -> R) -> R {
    if !Live::any() {
        return take();
    }
    let taken = hook::STATE.with(|state| {
        quietly(|| state.unmapping(address.expose_provenance() as u64, length as u64));
        take()
    });
    taken.unwrap_or_else(|| {
        Live::mistrust();
        take()
    })
}

/// # Safety
/// As the C library's.
#[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    let real = real!(c"munmap" as MunmapFn, else -1);
    // SAFETY: the caller's arguments.
    taking(address, length, || unsafe { real(address, length) })
}

/// # Safety
/// As the C library's.
#[cfg_attr(not(any(test, clippy)), unsafe(no_mangle))]
pub unsafe extern "C" fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int {
    let real = real!(c"mprotect" as MprotectFn, else -1);
    // SAFETY: the caller's arguments.
    let protect = || unsafe { real(address, length, protection) };
    if protection & PROT_READ != 0 {
        protect()
    } else {
        taking(address, length, protect)
    }
}

/// Reads the environment, before the program's `main`.
extern "C" fn begin() {
    quietly(|| {
        let variable = |name: &CStr, to: &mut [u8]| {
            // SAFETY: the dynamic linker runs this before `main` and before any other thread is started.
            unsafe { sys::environment(name, to) }
        };
        hook::begin(variable);
    });
    sys::at_fork(forked);
}

/// In the child of a fork the thread that held the lock is not there, and nor is the one that looks at the rings.
extern "C" fn forked() {
    // SAFETY: the C library calls this in the child of a fork, before anything else runs there.
    unsafe { hook::STATE.reset() };
    hook::forked();
}

/// Looks at the rings a last time.
extern "C" fn end() {
    quietly(|| hook::look(Cause::Exit));
}

/// Looks at the rings now and then.
pub extern "C" fn watch(_: *mut c_void) -> *mut c_void {
    loop {
        sys::sleep(hook::every());
        hook::look(Cause::Time);
    }
}

/// The dynamic linker calls what these point at.
#[cfg_attr(not(any(test, clippy)), used, unsafe(link_section = ".init_array"))]
static BEGIN: extern "C" fn() = begin;
#[cfg_attr(not(any(test, clippy)), used, unsafe(link_section = ".fini_array"))]
static END: extern "C" fn() = end;

/// The type of `ioctl` numbers here; named so that a 32-bit machine, whose variable arguments lie elsewhere, fails.
const _: () = assert!(size_of::<c_long>() == 8);
