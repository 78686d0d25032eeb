//! What is recorded of each call.

use core::ffi::{CStr, c_int, c_ulong};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::exports;
use super::layout::{self, at, escape};
use super::sys::{self, Early, Live, Lock};
use super::track::Track;
use crate::record::{Builder, Cause, Kind, Loss, MAGIC, low, word};

/// Everything that is kept.
pub static STATE: Lock<State> = Lock::new(State::NEW);
/// What the environment says; unset where nothing is to be recorded.
static CONFIG: Early<Config> = Early::UNSET;
/// The number of the last call.
static CALLS: AtomicU64 = AtomicU64::new(0);
/// Whether the thread that looks at the rings was started.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The most that is recorded of the structure that a call points to.
const MAX_INNER: usize = 64 << 10;
/// The longest path that is kept.
const MAX_PATH: usize = 256;

struct Config {
    file: [u8; 4096],
    prefix: Path,
    release: Option<(u32, u32, u32)>,
    every: u32,
}

/// Everything that is kept, under one lock.
pub struct State {
    /// Which process this is about: a fork's child begins anew.
    process: u32,
    /// What is mapped of nodes.
    pub live: Live,
    track: Track,
    buffer: [u8; 96 << 10],
}

/// A path, cut where it is too long.
#[derive(Clone, Copy)]
pub struct Path {
    bytes: [u8; MAX_PATH],
    len: usize,
}

impl Path {
    const EMPTY: Self = Self {
        bytes: [0; MAX_PATH],
        len: 0,
    };

    fn new(text: &[u8]) -> Self {
        let mut path = Self::EMPTY;
        path.len = text.len().min(MAX_PATH);
        for (to, from) in path.bytes.iter_mut().zip(text) {
            *to = *from;
        }
        path
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A device node behind a descriptor.
#[derive(Clone, Copy)]
pub struct Node {
    /// Its path.
    pub path: Path,
    /// Whether it is UVM's.
    pub uvm: bool,
}

impl Node {
    /// What a descriptor is open on, if that is a node of the driver's.
    pub fn of(fd: c_int) -> Option<Self> {
        let config = CONFIG.get()?;
        let number = u32::try_from(fd).ok()?;
        let mut name = [0; 32];
        let name = descriptor_link(number, &mut name)?;
        let mut path = Path::EMPTY;
        path.len = sys::link(name, &mut path.bytes).min(MAX_PATH);
        Self::at(config, path)
    }

    fn at(config: &Config, path: Path) -> Option<Self> {
        let rest = path.bytes().strip_prefix(config.prefix.bytes())?;
        Some(Self {
            path,
            uvm: rest.starts_with(b"-uvm"),
        })
    }
}

/// `/proc/self/fd/N`.
fn descriptor_link(mut fd: u32, to: &mut [u8; 32]) -> Option<&CStr> {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let mut digits = [0_u8; 10];
    let mut count = 0_usize;
    loop {
        *digits.get_mut(count)? =
            b'0'.saturating_add(fd.to_le_bytes()[0].wrapping_sub((fd / 10 * 10).to_le_bytes()[0]));
        count = count.saturating_add(1);
        fd /= 10;
        if fd == 0 {
            break;
        }
    }
    let text = FOLDER
        .iter()
        .chain(digits.get(..count)?.iter().rev())
        .chain(&[0]);
    for (to, from) in to.iter_mut().zip(text) {
        *to = *from;
    }
    CStr::from_bytes_until_nul(to).ok()
}

/// Bytes of the program's.
#[derive(Clone, Copy, Default)]
pub struct Span {
    /// Where they begin.
    pub address: u64,
    /// How many they are.
    pub size: usize,
}

impl Span {
    /// Copies what there is, at most as much as fits.
    fn read(self, to: &mut [u8]) -> usize {
        let size = self.size.min(to.len());
        to.get_mut(..size)
            .map_or(0, |to| sys::read_memory(self.address, to))
    }

    /// A 64-bit field; what is not there is 0.
    pub fn word(self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        let size = self.size.saturating_sub(at).min(8);
        let address = self.address.saturating_add(at as u64);
        Self { address, size }.read(&mut bytes);
        word(&bytes, 0)
    }

    /// A 32-bit field.
    pub fn half(self, at: usize) -> u32 {
        low(self.word(at))
    }
}

/// An `ioctl` in progress.
#[derive(Clone, Copy)]
pub struct Call {
    id: u64,
    /// What it is in effect: the request that an `NV_ESC_IOCTL_XFER_CMD` carries.
    pub request: u32,
    /// Whether it is UVM's.
    pub uvm: bool,
    /// Its structure.
    pub own: Span,
    /// The structure that it points to.
    pub inner: Span,
    guessed: bool,
    begun: u64,
}

impl Call {
    /// A call on a node, which may be UVM's, as its structures say.
    pub fn new(uvm: bool, request: u32, argument: u64) -> Self {
        let mut call = Self {
            id: CALLS.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            request,
            uvm,
            own: Span::default(),
            inner: Span::default(),
            guessed: false,
            begun: 0,
        };
        if uvm {
            let known = layout::uvm_size(request);
            call.guessed = known.is_none();
            call.own = Span {
                address: argument,
                size: known.unwrap_or(layout::GUESSED_UVM),
            };
            return call;
        }
        let Some((number, size)) = layout::parse(request) else {
            return call;
        };
        call.own = Span {
            address: argument,
            size,
        };
        if number == escape::XFER_CMD {
            let xfer = call.own;
            let number = xfer.half(at::XFER_COMMAND).to_le_bytes()[0];
            let size = (xfer.half(at::XFER_SIZE) as usize).min(0x3fff);
            call.own = Span {
                address: xfer.word(at::XFER_POINTER),
                size,
            };
            call.request = layout::request(number, size);
        }
        call.inner = call.pointed_at();
        call
    }

    /// The escape's number.
    pub fn escape(&self) -> Option<u8> {
        if self.uvm {
            None
        } else {
            layout::parse(self.request).map(|(number, _)| number)
        }
    }

    /// The class of an allocation.
    pub fn class(&self) -> u32 {
        self.own.half(at::ALLOC_CLASS)
    }

    fn pointed_at(&mut self) -> Span {
        let (pointer, size) = match self.escape() {
            Some(escape::CONTROL) => (at::CONTROL_PARAMS, self.own.half(at::CONTROL_SIZE) as usize),
            Some(escape::ALLOC) => {
                let long = self.own.size > 32;
                let said = self.own.half(if long {
                    at::NVOS64_SIZE
                } else {
                    at::NVOS21_SIZE
                }) as usize;
                let known = layout::alloc_size(self.class());
                self.guessed = said == 0 && known.is_none();
                let size = if said == 0 {
                    known.unwrap_or(layout::GUESSED_ALLOC)
                } else {
                    said
                };
                (at::ALLOC_PARAMS, size)
            }
            _ => return Span::default(),
        };
        match self.own.word(pointer) {
            0 => {
                self.guessed = false;
                Span::default()
            }
            address => Span { address, size },
        }
    }
}

/// Reads the environment by `variable`.
pub fn begin(variable: impl Fn(&CStr, &mut [u8]) -> Option<usize>) {
    let mut config = Config {
        file: [0; 4096],
        prefix: Path::new(b"/dev/nvidia"),
        release: None,
        every: 0,
    };
    // The last byte stays zero.
    let Some(room) = config.file.get_mut(..4095) else {
        return;
    };
    if variable(c"NV_TRACE_FILE", room).is_none() {
        return;
    }
    let mut text = [0; MAX_PATH];
    let mut read =
        |name| variable(name, &mut text).map(|len| Path::new(text.get(..len).unwrap_or_default()));
    if let Some(prefix) = read(c"NV_TRACE_DEV") {
        config.prefix = prefix;
    }
    let release = read(c"NV_TRACE_DRIVER").unwrap_or(Path::EMPTY);
    config.release = layout::release(release.bytes());
    if let Some(text) = read(c"NV_TRACE_EVERY") {
        config.every = text.bytes().iter().fold(0, |number: u32, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u32::from(digit.wrapping_sub(b'0').min(9)))
        });
    }
    CONFIG.set(config);
    let mut program = Path::EMPTY;
    program.len = sys::link(c"/proc/self/exe", &mut program.bytes).min(MAX_PATH);
    STATE.with(|state| {
        emit(&mut state.buffer, Kind::Start, 0, &[MAGIC], |record| {
            record.bytes(program.bytes());
            record.bytes(release.bytes());
        });
    });
}

/// In the child of a fork no thread looks at the rings.
pub fn forked() {
    WATCHED.store(false, Ordering::Relaxed);
}

/// Milliseconds between looks at the rings.
pub fn every() -> u32 {
    CONFIG.get().map_or(1000, |config| config.every.max(1))
}

/// Records an `open` of a node that `path` points at; of other files nothing.
pub fn opened(path: u64, fd: c_int, errno: c_int) {
    let Some(config) = CONFIG.get() else { return };
    let mut bytes = [0; MAX_PATH];
    let read = sys::read_memory(path, &mut bytes);
    let text = bytes.get(..read).unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let Some(node) = Node::at(config, Path::new(text)) else {
        return;
    };
    let errno = if fd < 0 { errno } else { 0 };
    STATE.with(|state| {
        let numbers = [signed(fd), signed(errno)];
        emit(&mut state.buffer, Kind::Open, 0, &numbers, |record| {
            record.bytes(node.path.bytes());
        });
    });
}

/// Records a `close` of a node.
pub fn closing(fd: c_int) {
    let Some(node) = Node::of(fd) else { return };
    STATE.with(|state| {
        emit(&mut state.buffer, Kind::Close, 0, &[signed(fd)], |record| {
            record.bytes(node.path.bytes());
        });
    });
}

/// Records that an `ioctl` begins, if it is on a node.
pub fn enter(fd: c_int, request: c_ulong, argument: u64) -> Option<Call> {
    let node = Node::of(fd)?;
    let request = low(request);
    let mut call = Call::new(node.uvm, request, argument);
    let frees = call.escape() == Some(escape::FREE);
    STATE.with(|state| {
        state.look(if frees { Cause::Free } else { Cause::Call });
        let numbers = [
            u64::from(request),
            signed(fd),
            u64::from(call.request),
            call.own.size as u64,
            call.inner.size as u64,
            u64::from(call.guessed),
        ];
        emit(&mut state.buffer, Kind::Call, call.id, &numbers, |record| {
            record.bytes(node.path.bytes());
            structures(record, &call);
        });
    });
    call.begun = sys::now();
    Some(call)
}

/// Records that an `ioctl` has ended.
pub fn leave(call: &Call, result: c_int, errno: c_int) {
    let took = sys::now().saturating_sub(call.begun);
    let errno = if result < 0 { errno } else { 0 };
    let release = CONFIG.get().and_then(|config| config.release);
    let channels = STATE.with(|state| {
        let numbers = [signed(result), signed(errno), took];
        emit(
            &mut state.buffer,
            Kind::Return,
            call.id,
            &numbers,
            |record| structures(record, call),
        );
        if result >= 0 {
            state.track.learn(&state.live, call, release);
        }
        state.track.channels() > 0
    });
    let watch = channels == Some(true) && CONFIG.get().is_some_and(|config| config.every > 0);
    if watch && !WATCHED.swap(true, Ordering::Relaxed) && !sys::spawn(exports::watch) {
        sys::lose(Loss::Busy);
    }
}

/// Looks at all rings.
pub fn look(cause: Cause) {
    if CONFIG.get().is_some() {
        STATE.with(|state| state.look(cause));
    }
}

fn structures(record: &mut Builder<'_>, call: &Call) {
    record.blob(call.own.size, |to| call.own.read(to));
    record.blob(call.inner.size.min(MAX_INNER), |to| call.inner.read(to));
}

/// Makes a record in `buffer` and appends it to the file.
pub fn emit(
    buffer: &mut [u8],
    kind: Kind,
    id: u64,
    numbers: &[u64],
    blobs: impl FnOnce(&mut Builder<'_>),
) {
    let Some(config) = CONFIG.get() else { return };
    let mut record = Builder::new(buffer, kind, sys::stamp(id), numbers);
    blobs(&mut record);
    let Ok(file) = CStr::from_bytes_until_nul(&config.file) else {
        return;
    };
    if !sys::append(file, record.finish()) {
        sys::lose(Loss::Write);
    }
}

fn signed(number: c_int) -> u64 {
    i64::from(number).cast_unsigned()
}

impl State {
    const NEW: Self = Self {
        process: 0,
        live: Live::NONE,
        track: Track::NONE,
        buffer: [0; 96 << 10],
    };

    /// In the child of a fork nothing that was known holds: it has none of these pages.
    fn settle(&mut self) {
        let process = sys::process();
        if self.process != process {
            self.process = process;
            self.live.clear();
            self.track.clear();
        }
    }

    fn look(&mut self, cause: Cause) {
        self.settle();
        for loss in [Loss::Busy, Loss::Full, Loss::Write] {
            match sys::lost(loss) {
                0 => {}
                count => emit(
                    &mut self.buffer,
                    Kind::Lost,
                    0,
                    &[count, loss as u64],
                    |_| (),
                ),
            }
        }
        self.track.look(&self.live, &mut self.buffer, cause);
    }

    /// A node was mapped: `sizes` are length and offset, `how` descriptor, protection and flags.
    pub fn mapped(&mut self, node: &Node, address: u64, sizes: [u64; 2], how: [c_int; 3]) {
        self.settle();
        let [length, offset] = sizes;
        let [fd, protection, flags] = how.map(signed);
        let numbers = [address, length, offset, fd, protection, flags];
        emit(&mut self.buffer, Kind::Map, 0, &numbers, |record| {
            record.bytes(node.path.bytes());
        });
        self.track.mapped(how[0], address, length);
    }

    /// Pages are about to go; the rings are looked at first if there are any among them.
    pub fn unmapping(&mut self, address: u64, length: u64) {
        self.settle();
        if self.track.seen(address, length) {
            self.look(Cause::Call);
        }
        if self.live.remove(address, length) {
            emit(&mut self.buffer, Kind::Unmap, 0, &[address, length], |_| ());
        }
        self.track.unmapped(address, length);
    }
}
