//! The C library and memory: with `exports.rs`, all that is unsafe here.
//!
//! Nothing here calls a function that the interposer stands in for by its name: that would be its own.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::table::Table;
use crate::record::{Loss, Stamp};

mod c {
    use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};

    #[repr(C)]
    pub struct Timespec {
        pub seconds: i64,
        pub nanoseconds: c_long,
    }

    #[repr(C)]
    pub struct Iovec {
        pub base: *mut c_void,
        pub length: usize,
    }

    #[link(name = "c")]
    unsafe extern "C" {
        pub safe fn abort() -> !;
        pub safe fn getpid() -> c_int;
        pub safe fn gettid() -> c_int;
        pub safe fn sched_yield() -> c_int;
        pub safe fn __errno_location() -> *mut c_int;
        pub fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
        pub fn nanosleep(time: *const Timespec, left: *mut Timespec) -> c_int;
        pub fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
        pub fn getenv(name: *const c_char) -> *const c_char;
        pub fn readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize;
        pub fn write(fd: c_int, bytes: *const c_void, size: usize) -> isize;
        pub fn pread64(fd: c_int, to: *mut c_void, size: usize, offset: i64) -> isize;
        pub fn syscall(number: c_long, ...) -> c_long;
        pub fn process_vm_readv(
            process: c_int,
            to: *const Iovec,
            tos: c_ulong,
            from: *const Iovec,
            froms: c_ulong,
            flags: c_ulong,
        ) -> isize;
        pub fn pthread_create(
            thread: *mut usize,
            attributes: *const c_void,
            run: extern "C" fn(*mut c_void) -> *mut c_void,
            argument: *mut c_void,
        ) -> c_int;
        pub fn pthread_atfork(
            before: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
        pub fn pthread_sigmask(how: c_int, new: *const [u64; 16], old: *mut [u64; 16]) -> c_int;
    }
}

/// `CLOCK_MONOTONIC`, `SIG_SETMASK`, `O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC`, `AT_FDCWD` (Linux headers).
const CLOCK_MONOTONIC: c_int = 1;
const SIG_SETMASK: c_int = 2;
const APPEND: c_int = 0o1 | 0o100 | 0o2000 | 0o2_000_000;
const AT_FDCWD: c_int = -100;
/// `O_CLOEXEC`, `EPERM`, `ENOSYS` (Linux headers).
const O_CLOEXEC: c_int = 0o2_000_000;
const EPERM: c_int = 1;
const ENOSYS: c_int = 38;
/// `RTLD_NEXT` (`dlfcn.h`).
const RTLD_NEXT: *mut c_void = ptr::without_provenance_mut(usize::MAX);
/// `__NR_openat`, `__NR_close` (`unistd.h` of the two machines that `build.rs` builds for).
#[cfg(target_arch = "aarch64")]
const CALLS: (c_long, c_long) = (56, 57);
#[cfg(not(target_arch = "aarch64"))]
const CALLS: (c_long, c_long) = (257, 3);

/// Ends the process.
pub fn abort() -> ! {
    c::abort()
}

/// The thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: the C library answers a pointer to the calling thread's own variable.
    unsafe { *c::__errno_location() }
}

/// Sets the thread's `errno`.
pub fn set_errno(errno: c_int) {
    // SAFETY: the C library answers a pointer to the calling thread's own variable.
    unsafe { *c::__errno_location() = errno }
}

/// The process's number.
pub fn process() -> u32 {
    c::getpid().cast_unsigned()
}

fn thread() -> u32 {
    c::gettid().cast_unsigned()
}

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    let mut time = c::Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `time` is a `timespec` to be filled in.
    unsafe { c::clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.seconds
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.nanoseconds.cast_unsigned())
}

/// The stamp of a record made now.
pub fn stamp(id: u64) -> Stamp {
    Stamp {
        process: process(),
        thread: thread(),
        time: now(),
        id,
    }
}

/// Sleeps.
pub fn sleep(milliseconds: u32) {
    let time = c::Timespec {
        seconds: i64::from(milliseconds / 1000),
        nanoseconds: c_long::from(milliseconds % 1000) * 1_000_000,
    };
    // SAFETY: `time` is a valid `timespec`, and what is left of it is not asked for.
    unsafe { c::nanosleep(&raw const time, ptr::null_mut()) };
}

/// The C library's function behind one that the interposer stands in for; null where there is none.
pub fn next(slot: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let found = slot.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: `RTLD_NEXT` is a library for `dlsym`, and `name` ends in a zero.
    let found = unsafe { c::dlsym(RTLD_NEXT, name.as_ptr()) };
    slot.store(found, Ordering::Relaxed);
    found
}

/// Copies an environment variable; answers its length, or `None` if it is not set, empty, or longer than `to`.
///
/// # Safety
/// No other thread changes the environment meanwhile: to be called before the program's `main`.
pub unsafe fn environment(name: &CStr, to: &mut [u8]) -> Option<usize> {
    // SAFETY: `name` ends in a zero, and the caller promises that nobody changes the environment.
    let value = unsafe { c::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: `getenv` answers a string that ends in a zero, and the caller promises that it stays.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    to.get_mut(..value.len())?.copy_from_slice(value);
    (!value.is_empty()).then_some(value.len())
}

/// What a link points at, as far as it fits; `path` ends in a zero.
pub fn link(path: &CStr, to: &mut [u8]) -> usize {
    // SAFETY: `path` ends in a zero, and the C library writes at most `to.len()` bytes to `to`.
    let size = unsafe { c::readlink(path.as_ptr(), to.as_mut_ptr().cast::<c_char>(), to.len()) };
    usize::try_from(size).unwrap_or(0)
}

/// Appends to the file at `path`: opened each time, since programs close and reuse descriptors that they did not
/// open.
pub fn append(path: &CStr, bytes: &[u8]) -> bool {
    // SAFETY: `path` ends in a zero; the call takes no other pointer.
    let fd = unsafe { c::syscall(CALLS.0, AT_FDCWD, path.as_ptr(), APPEND, 0o600) };
    let Ok(fd) = c_int::try_from(fd) else {
        return false;
    };
    if fd < 0 {
        return false;
    }
    // SAFETY: `bytes` is readable for its length.
    let wrote = unsafe { c::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: `fd` was opened above, and nobody else has it.
    unsafe { c::syscall(CALLS.1, fd) };
    usize::try_from(wrote) == Ok(bytes.len())
}

/// Copies the process's memory by the kernel, which refuses what is not there; answers how much it copied.
pub fn read_memory(address: u64, to: &mut [u8]) -> usize {
    let Ok(address) = usize::try_from(address) else {
        return 0;
    };
    if to.is_empty() || address == 0 {
        return 0;
    }
    let into = c::Iovec {
        base: to.as_mut_ptr().cast(),
        length: to.len(),
    };
    let from = c::Iovec {
        base: ptr::without_provenance_mut(address),
        length: to.len(),
    };
    // SAFETY: the kernel writes at most `to.len()` bytes to `to`, which is exclusively borrowed, and checks the
    // address that it reads from.
    let size =
        unsafe { c::process_vm_readv(c::getpid(), &raw const into, 1, &raw const from, 1, 0) };
    // Some containers forbid the call, even to a process about itself.
    if size < 0 && [EPERM, ENOSYS].contains(&errno()) {
        return read_by_file(address, to);
    }
    usize::try_from(size).unwrap_or(0)
}

/// The same by `/proc/self/mem`.
fn read_by_file(address: usize, to: &mut [u8]) -> usize {
    // SAFETY: the path ends in a zero; the call takes no other pointer.
    let fd = unsafe { c::syscall(CALLS.0, AT_FDCWD, c"/proc/self/mem".as_ptr(), O_CLOEXEC, 0) };
    let (Ok(fd), Ok(offset)) = (c_int::try_from(fd), i64::try_from(address)) else {
        return 0;
    };
    if fd < 0 {
        return 0;
    }
    // SAFETY: the kernel writes at most `to.len()` bytes to `to`, and checks the address that it reads from.
    let size = unsafe { c::pread64(fd, to.as_mut_ptr().cast(), to.len(), offset) };
    // SAFETY: `fd` was opened above, and nobody else has it.
    unsafe { c::syscall(CALLS.1, fd) };
    usize::try_from(size).unwrap_or(0)
}

/// Has `child` called in the child of each fork; not after `vfork`, whose child has the parent's memory.
pub fn at_fork(child: extern "C" fn()) {
    // SAFETY: the function takes nothing, and this library is never unloaded.
    unsafe { c::pthread_atfork(None, None, Some(child)) };
}

/// Starts a thread that takes no signals.
pub fn spawn(run: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    let (all, mut old, mut thread) = ([u64::MAX; 16], [0; 16], 0);
    // SAFETY: both are as large as the C library's signal sets (128 bytes).
    unsafe { c::pthread_sigmask(SIG_SETMASK, &raw const all, &raw mut old) };
    // SAFETY: `thread` has the size of a `pthread_t` on Linux, the default attributes are asked for, and `run`
    // takes any argument.
    let failed = unsafe { c::pthread_create(&raw mut thread, ptr::null(), run, ptr::null_mut()) };
    // SAFETY: as above.
    unsafe { c::pthread_sigmask(SIG_SETMASK, &raw const old, ptr::null_mut()) };
    failed == 0
}

/// What could not be recorded, by [`Loss`], since it was last asked.
static LOST: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Counts something that could not be recorded.
pub fn lose(loss: Loss) {
    if let Some(count) = LOST.get(loss as usize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes the count of what could not be recorded.
pub fn lost(loss: Loss) -> u64 {
    LOST.get(loss as usize)
        .map_or(0, |count| count.swap(0, Ordering::Relaxed))
}

/// Runs of pages of device nodes that are mapped and readable.
pub struct Live {
    runs: Table<(u64, u64), 8192>,
}

/// How many runs there are: without any, `munmap` and its like need no lock.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Set when pages may have gone without [`Live`] being told: from then on it is not read through.
static STALE: AtomicBool = AtomicBool::new(false);

impl Live {
    /// None yet.
    pub const NONE: Self = Self { runs: Table::EMPTY };

    /// Whether any run is known.
    pub fn any() -> bool {
        LIVE.load(Ordering::Relaxed) > 0
    }

    /// Says that pages may have gone without notice.
    pub fn mistrust() {
        STALE.store(true, Ordering::Relaxed);
    }

    /// Adds a run.
    ///
    /// # Safety
    /// The pages are mapped, may be read, and stay so until [`Live::remove`] is called with them or
    /// [`Live::mistrust`] is.
    pub unsafe fn add(&mut self, address: u64, length: u64) -> bool {
        let added = self.runs.push((address, length));
        LIVE.store(self.runs.len(), Ordering::Relaxed);
        added
    }

    /// Takes away what overlaps a range; answers whether anything did.
    pub fn remove(&mut self, address: u64, length: u64) -> bool {
        let before = self.runs.len();
        self.runs.retain(|run| !overlap(*run, (address, length)));
        LIVE.store(self.runs.len(), Ordering::Relaxed);
        self.runs.len() != before
    }

    /// Takes away all: in the child of a fork, which does not have these pages.
    pub fn clear(&mut self) {
        self.runs.clear();
        LIVE.store(0, Ordering::Relaxed);
    }

    /// How many bytes from `address` on lie in one run.
    pub fn room(&self, address: u64) -> u64 {
        let run = self
            .runs
            .newest_first()
            .find(|run| contains(**run, address));
        run.map_or(0, |(start, length)| {
            start.saturating_add(*length).saturating_sub(address)
        })
    }

    /// Copies memory: by the kernel, or, where the kernel cannot (pages of a device), word by word. Answers how
    /// much was copied.
    pub fn read(&self, address: u64, to: &mut [u8]) -> usize {
        let wanted = to.len();
        let got = read_memory(address, to);
        let inside = self.room(address) >= wanted as u64;
        if got == wanted
            || !inside
            || STALE.load(Ordering::Relaxed)
            || address & 3 != 0
            || wanted & 3 != 0
        {
            return got;
        }
        let Ok(address) = usize::try_from(address) else {
            return got;
        };
        let words = to.chunks_exact_mut(4).enumerate();
        for (index, word) in words {
            let from: *const u32 =
                ptr::with_exposed_provenance(address.wrapping_add(index.wrapping_mul(4)));
            // SAFETY:
            // - `address..address + wanted` lies in one run (checked above), whose pages are mapped and readable:
            //   `add` promised it, and `remove` and `mistrust` were not called since, for both take `&mut self` or
            //   are seen above;
            // - the caller has `&self` out of the lock, and the interposer unmaps only with the lock held;
            // - `address` is a multiple of 4, and `u32` has no invalid values. The GPU and the program may write at
            //   the same time: the access is volatile and makes no reference.
            let value = unsafe { from.read_volatile() };
            word.copy_from_slice(&value.to_le_bytes());
        }
        wanted
    }
}

fn contains((start, length): (u64, u64), address: u64) -> bool {
    address >= start && address.wrapping_sub(start) < length
}

/// Whether two runs have a byte in common.
pub fn overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0 < other.0.saturating_add(other.1) && other.0 < one.0.saturating_add(one.1)
}

/// A value that is set before there are threads and only read afterwards.
pub struct Early<T> {
    set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: `get` answers shared references, and only after `set` has written for the last time.
unsafe impl<T: Sync> Sync for Early<T> {}

impl<T> Early<T> {
    /// Not set.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "it makes statics, each its own"
    )]
    pub const UNSET: Self = Self {
        set: AtomicBool::new(false),
        value: UnsafeCell::new(None),
    };

    /// Sets the value; a second time does nothing.
    pub fn set(&self, value: T) {
        static SETTING: AtomicBool = AtomicBool::new(false);
        if !SETTING.swap(true, Ordering::Acquire) {
            // SAFETY: only one call in the life of the process comes here, and `get` does not read before `set`.
            unsafe { *self.value.get() = Some(value) };
            self.set.store(true, Ordering::Release);
        }
    }

    /// The value, once it is set.
    pub fn get(&self) -> Option<&T> {
        if !self.set.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it was written before the flag was set, and is not written again.
        unsafe { &*self.value.get() }.as_ref()
    }
}

/// A value that one thread has at a time. A thread that has it already is refused instead of waiting for itself (a
/// signal handler may run between any two instructions), and so is one that has waited too long.
pub struct Lock<T> {
    /// Process and thread of the holder; 0 is nobody.
    holder: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: `with` hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// How long a thread waits for another one, in nanoseconds.
    const PATIENCE: u64 = 5_000_000_000;

    /// A lock that nobody holds.
    pub const fn new(value: T) -> Self {
        Self {
            holder: AtomicU64::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `work` with the value, or counts a loss and answers `None`.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let me = u64::from(process()) << 32 | u64::from(thread());
        if !self.acquire(me) {
            lose(Loss::Busy);
            return None;
        }
        // SAFETY: `acquire` answered true, so this thread alone has the value until the store below: others find
        // `holder` taken, and so does this thread in a signal handler.
        let value = unsafe { &mut *self.value.get() };
        let result = work(value);
        self.holder.store(0, Ordering::Release);
        Some(result)
    }

    /// Takes the lock from a holder that is not there any more.
    ///
    /// # Safety
    /// To be called in the child of a fork, which has one thread: nobody has the value.
    pub unsafe fn reset(&self) {
        self.holder.store(0, Ordering::Release);
    }

    fn acquire(&self, me: u64) -> bool {
        let mut since = 0;
        loop {
            let holder =
                match self
                    .holder
                    .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
                {
                    Ok(_) => return true,
                    Err(holder) => holder,
                };
            if holder == me {
                return false;
            }
            let time = now();
            if since == 0 {
                since = time;
            } else if time.saturating_sub(since) > Self::PATIENCE {
                return false;
            }
            c::sched_yield();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_refused() {
        let value = 0x1234_5678_u32;
        let mut to = [0xa5; 4];
        assert_eq!(read_memory(&raw const value as u64, &mut to), 4);
        assert_eq!(u32::from_le_bytes(to), value);
        for address in [0, 8, u64::MAX - 8, 0x8000_0000_0000_0000] {
            assert_eq!(read_memory(address, &mut to), 0, "{address:#x}");
        }
        let mut to = [0xa5; 4];
        assert_eq!(
            read_by_file((&raw const value).expose_provenance(), &mut to),
            4
        );
        assert_eq!(u32::from_le_bytes(to), value);
        for address in [8, usize::MAX - 8, 0x7fff_ffff_f000] {
            assert_eq!(read_by_file(address, &mut to), 0, "{address:#x}");
        }
    }

    /// The kernel's clock page is mapped as device memory is: the kernel does not copy from it (`VM_PFNMAP`).
    #[test]
    fn device_memory_is_read_word_by_word_while_it_is_known_to_be_there() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[vvar]"));
        let page = line
            .and_then(|line| line.split('-').next())
            .expect("the kernel maps its clock page");
        let page = u64::from_str_radix(page, 16).unwrap();
        let mut to = [0xa5; 64];
        assert_eq!(read_memory(page, &mut to), 0);
        let mut live = Live::NONE;
        assert_eq!(live.read(page, &mut to), 0, "it is not known");
        // SAFETY: the page is mapped readable for the life of the process.
        assert!(unsafe { live.add(page, 4096) });
        assert_eq!(live.read(page, &mut to), 64);
        assert!(to.iter().any(|byte| *byte != 0xa5));
        for (at, length) in [(page + 2, 4), (page, 3), (page + 4096 - 32, 64)] {
            assert_eq!(live.read(at, &mut to[..length]), 0, "{at:#x} {length}");
        }
        assert!(live.remove(page + 4095, 1));
        assert_eq!(live.read(page, &mut to), 0, "it is gone");
    }

    #[test]
    fn a_thread_does_not_wait_for_itself_and_others_take_turns() {
        let lock = Lock::new(0_u64);
        assert_eq!(lock.with(|_| lock.with(|_| ())), Some(None));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5000).for_each(|_| lock.with(|n| *n += 1).unwrap()));
            }
        });
        assert_eq!(lock.with(|n| *n), Some(20_000));
        lock.holder.store(1 << 32 | 1, Ordering::Relaxed);
        // SAFETY: no thread has the value.
        unsafe { lock.reset() };
        assert_eq!(lock.with(|n| *n), Some(20_000));
    }

    #[test]
    fn runs_are_found_and_removed() {
        let mut live = Live::NONE;
        // SAFETY: nothing is read through these runs.
        assert!(unsafe { live.add(0x1000, 0x2000) });
        assert_eq!(
            [0xfff, 0x1000, 0x2fff, 0x3000].map(|at| live.room(at)),
            [0, 0x2000, 1, 0]
        );
        assert!(!live.remove(0x3000, 0x1000) && !live.remove(0, 0x1000));
        assert!(live.remove(0x2fff, 1));
        assert_eq!(live.room(0x1000), 0);
    }
}
