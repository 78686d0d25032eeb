//! The driver against a made-up kernel: every call of two working sequences, and every way to fail.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by them")]

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, MutexGuard};

use nix::errno::Errno;
use nv_proto::rm::Layout;
use nv_proto::rm::names::classes::{
    FERMI_CONTEXT_SHARE_A, FERMI_VASPACE_A, GT200_DEBUGGER, KEPLER_CHANNEL_GROUP_A, NV01_DEVICE_0,
    NV01_MEMORY_VIRTUAL, NV01_ROOT_CLIENT, NV20_SUBDEVICE_0,
};

use super::*;
use crate::driver;
use crate::sys::mmap::Pages;

mod failures;
mod recorded;

/// How a made-up kernel answers a call on a node: the node's path, the request, the parameters.
type Answer = Box<dyn FnMut(&Path, u32, &mut [u8]) -> Result<(), Errno> + Send>;

/// A made-up kernel. Each of its nodes is the same sparse file, so that what is left open or mapped can be
/// counted.
#[derive(Clone)]
struct Fake(Arc<Mutex<Machine>>);

struct Machine {
    file: PathBuf,
    nodes: HashMap<i32, PathBuf>,
    refused: HashMap<PathBuf, Errno>,
    texts: HashMap<PathBuf, String>,
    unmappable: bool,
    opens: usize,
    answer: Answer,
}

impl Fake {
    fn new(answer: Answer) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nv-fake-{}-{number}-", std::process::id());
        let file = std::env::temp_dir().join(name);
        File::create(&file).unwrap().set_len(1 << 30).unwrap();
        Self(Arc::new(Mutex::new(Machine {
            file,
            nodes: HashMap::new(),
            refused: HashMap::new(),
            texts: HashMap::new(),
            unmappable: false,
            opens: 0,
            answer,
        })))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn driver(&self) -> Result<KernelDriver, Error> {
        KernelDriver::open(Box::new(self.clone()), Some(0), None, None)
    }

    /// Descriptors of this kernel's nodes that are open.
    fn open_nodes(&self) -> usize {
        let file = self.machine().file.clone();
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        links
            .filter(|link| std::fs::read_link(link.path()).is_ok_and(|to| to == file))
            .count()
    }

    /// Mappings of this kernel's nodes.
    fn mappings(&self) -> usize {
        let name = self.machine().file.display().to_string();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.ends_with(&name)).count()
    }
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl System for Fake {
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut machine = self.machine();
        if let Some(errno) = machine.refused.get(path) {
            return Err(*errno);
        }
        let fd = OwnedFd::from(
            File::options()
                .read(true)
                .write(true)
                .open(&machine.file)
                .unwrap(),
        );
        machine.nodes.insert(fd.as_raw_fd(), path.to_owned());
        machine.opens += 1;
        Ok(fd)
    }

    unsafe fn ioctl(
        &self,
        fd: std::os::fd::BorrowedFd<'_>,
        request: u32,
        params: &mut [u8],
    ) -> Result<(), Errno> {
        if std::thread::panicking() {
            // The first failure is the one to show.
            return Ok(());
        }
        let mut machine = self.machine();
        let path = machine.nodes[&fd.as_raw_fd()].clone();
        (machine.answer)(&path, request, params)
    }

    fn map(&self, fd: std::os::fd::BorrowedFd<'_>, length: NonZeroUsize) -> Result<Pages, Errno> {
        if self.machine().unmappable {
            return Err(Errno::ENOMEM);
        }
        Pages::of_node(fd, length)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.machine().texts.get(path).cloned();
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Parameters as their structure; their size is checked by it.
fn view<P: Layout>(params: &mut [u8]) -> &mut P {
    let given = params.len();
    P::mut_from_bytes(params).unwrap_or_else(|_| panic!("{} of {given} bytes", P::SHAPE.name))
}

/// The memory that a structure names.
///
/// # Safety
/// It is ours, at least `length` bytes, and nothing else refers to it while the slice lives.
unsafe fn named<'a>(address: u64, length: usize) -> &'a mut [u8] {
    let base = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap());
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(base, length) }
}
