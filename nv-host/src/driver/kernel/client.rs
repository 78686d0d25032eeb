//! The control node with the root client of one GPU's objects.
#![allow(unsafe_code, reason = "ioctls carry pointers to parameters")]

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nv_proto::rm::names::classes::NV01_ROOT_CLIENT;
use nv_proto::rm::{self, Abi, DriverVersion, Status};
use nv_proto::unit::Handle;
use zerocopy::IntoBytes;

use crate::Error;
use crate::driver;
use crate::probe::{self, PciAddress};
use crate::sys::System;

/// An opened device node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) path: PathBuf,
    pub(super) fd: OwnedFd,
}

impl Node {
    pub(super) fn open(system: &dyn System, path: &Path) -> Result<Self, Error> {
        match system.open(path) {
            Ok(fd) => Ok(Self {
                path: path.to_owned(),
                fd,
            }),
            Err(errno) => Err(Self::failed(path, "open", errno)),
        }
    }

    /// The descriptor as the driver's structures name it.
    pub(super) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    pub(super) fn error(&self, operation: &'static str, errno: Errno) -> Error {
        Self::failed(&self.path, operation, errno)
    }

    fn failed(path: &Path, operation: &'static str, errno: Errno) -> Error {
        let remedy = probe::remedy(path, operation, errno);
        Error::Node {
            path: path.to_owned(),
            operation,
            errno,
            remedy,
        }
    }
}

/// The control node and the client; dropping it ends the client and all its objects.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) system: Box<dyn System>,
    pub(super) node: Node,
    /// The driver's release.
    pub(super) release: DriverVersion,
    pub(super) abi: Abi,
    pub(super) handle: Handle,
}

impl Client {
    /// Opens the control node, finds out the driver's release and makes a client. The layouts are those of the release
    /// that is `forced`, if one is.
    pub(super) fn open(
        system: Box<dyn System>,
        forced: Option<DriverVersion>,
    ) -> Result<Self, Error> {
        let node = Node::open(&*system, Path::new(CONTROL_NODE))?;
        let release = version(&*system, &node)?;
        let abi = driver::abi(release, forced)?;
        let mut request = rm::Nvos21 {
            h_class: NV01_ROOT_CLIENT.into(),
            ..Default::default()
        };
        // SAFETY: the structure is the driver's, of its size, and its pointer is null.
        unsafe { call(&*system, &node, rm::NV_ESC_RM_ALLOC, request.as_mut_bytes()) }?;
        let status = Status(request.status.get());
        if status.is_error() {
            let detail = format!(" (driver {release})");
            return Err(Error::Rm {
                call: "allocating NV01_ROOT_CLIENT".into(),
                status,
                detail,
            });
        }
        Ok(Self {
            system,
            node,
            release,
            abi,
            handle: request.h_object_new.into(),
        })
    }

    /// A call to the resource manager through any of its nodes.
    ///
    /// # Safety
    /// `params` is the structure of the escape; pointers inside are valid for what the driver does with them.
    pub(super) unsafe fn call(
        &self,
        node: &Node,
        escape: u8,
        params: &mut [u8],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { call(&*self.system, node, escape, params) }
    }

    /// The UUID of a GPU, where the kernel module tells it.
    pub(super) fn uuid(&self, address: PciAddress) -> Option<String> {
        self.told(address, "GPU UUID")
    }

    /// A fact of a GPU by its name, where the kernel module tells it.
    pub(super) fn told(&self, address: PciAddress, fact: &str) -> Option<String> {
        let file = Path::new("/")
            .join(probe::PROC_GPUS)
            .join(address.to_string());
        let information = self.system.read(&file.join("information")).ok()?;
        probe::field(&information, fact)
    }

    /// The status of a call, with what is known of its cause.
    pub(super) fn check(&self, call: impl Fn() -> String, status: Status) -> Result<(), Error> {
        if !status.is_error() {
            return Ok(());
        }
        let Abi {
            version,
            branch,
            fit,
        } = self.abi;
        let release = self.release;
        let unsure = fit != rm::Fit::Checked || version != release;
        let detail = match status {
            Status::INVALID_ARGUMENT | Status::INVALID_PARAM_STRUCT if unsure => {
                format!(
                    "; driver {release} is taken to be like {}, which may be wrong",
                    branch.major
                )
            }
            Status::NO_MEMORY => {
                "; the driver is out of memory: free some or end other processes".into()
            }
            Status::INSUFFICIENT_PERMISSIONS | Status::NOT_SUPPORTED => {
                "; a sandbox may refuse this call: see `nv doctor`".into()
            }
            Status::GPU_IS_LOST | Status::RESET_REQUIRED => {
                "; the GPU needs a reset: see `dmesg` for lines of NVRM".into()
            }
            _ => String::new(),
        };
        Err(Error::Rm {
            call: call(),
            status,
            detail,
        })
    }

    /// Ends an object and all below it.
    pub(super) fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        let mut request = rm::Nvos00 {
            h_root: self.handle.into(),
            h_object_parent: parent.into(),
            h_object_old: object.into(),
            ..Default::default()
        };
        // SAFETY: the structure is the driver's, of its size, without pointers.
        unsafe { self.call(&self.node, rm::NV_ESC_RM_FREE, request.as_mut_bytes()) }?;
        self.check(
            || format!("freeing object {object}"),
            Status(request.status.get()),
        )
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closing the node would end the client too, only later.
        let _ = self.free(Handle::NULL, self.handle);
    }
}

/// A copy of parameters in a buffer that is at least as large as any driver's structure: where a call's number
/// carries no size, drivers copy their own size in and out, whatever the caller's.
#[derive(Debug)]
pub(super) struct Bounce {
    storage: Vec<u8>,
}

impl Bounce {
    pub(super) fn new(params: &[u8], least: usize) -> Self {
        let mut storage = params.to_vec();
        storage.resize(params.len().max(least), 0);
        Self { storage }
    }

    /// The address that a structure names it by.
    pub(super) fn address(&mut self) -> u64 {
        self.storage.as_mut_ptr().expose_provenance() as u64
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }

    /// Copies back what the driver wrote.
    pub(super) fn finish(self, params: &mut [u8]) {
        for (to, from) in params.iter_mut().zip(self.storage) {
            *to = from;
        }
    }
}

/// A call to the resource manager.
///
/// # Safety
/// `params` is the structure of the escape; pointers inside are valid for what the driver does with them.
unsafe fn call(
    system: &dyn System,
    node: &Node,
    escape: u8,
    params: &mut [u8],
) -> Result<(), Error> {
    let request = rm::request(escape, params.len()).ok_or_else(|| {
        Error::InvalidArgument(format!("{} bytes do not fit an ioctl number", params.len()))
    })?;
    // SAFETY: the size inside the number is that of `params`, and the driver refuses another than its own;
    // pointers inside are the caller's promise.
    let called = unsafe { system.ioctl(node.fd.as_fd(), request, params) };
    called.map_err(|errno| node.error(rm::names::escape(escape).unwrap_or("ioctl"), errno))
}

/// The driver's release: asked of the driver, or where a sandbox refuses that, read from `/proc` and `/sys`.
fn version(system: &dyn System, control: &Node) -> Result<DriverVersion, Error> {
    let mut params = rm::ApiVersion {
        cmd: rm::API_VERSION_QUERY.into(),
        ..Default::default()
    };
    // SAFETY: the structure is the driver's, of its size, without pointers.
    let asked = unsafe {
        call(
            system,
            control,
            rm::NV_ESC_CHECK_VERSION_STR,
            params.as_mut_bytes(),
        )
    };
    let text = params
        .version_string
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    if asked.is_ok()
        && let Ok(version) = DriverVersion::parse(&text)
    {
        return Ok(version);
    }
    let read = |file: &&str| system.read(&Path::new("/").join(file)).ok();
    let mut files = [probe::PROC_VERSION, probe::SYS_VERSION]
        .iter()
        .filter_map(read);
    let found = files.find_map(|text| probe::Module::parse(&text));
    match (found, asked) {
        (Some(module), _) => Ok(module.version),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(Error::Unsupported(format!(
            "the driver calls its release {text:?}, and neither /{} nor /{} tells it",
            probe::PROC_VERSION,
            probe::SYS_VERSION
        ))),
    }
}

const CONTROL_NODE: &str = "/dev/nvidiactl";
