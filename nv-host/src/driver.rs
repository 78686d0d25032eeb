//! The boundary that real and simulated GPUs share: the cold path of a device, call by call.
//!
//! What a driver does here is what the kernel driver's ioctls do, less their pointers: parameters go as the
//! bytes of the ABI structure of [`nv_proto::rm`] and [`nv_proto::uvm`]. Rings and doorbells are not here:
//! a launch makes no virtual call.

#![allow(
    unsafe_code,
    reason = "raw calls whose pointers their callers answer for"
)]

#[cfg(feature = "ioctl")]
pub mod kernel;

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use nv_proto::rm::{self, Abi, DriverVersion};
use nv_proto::unit::{ClassId, GpuVa, Handle, SubmitToken};

use crate::{Error, Mapping};

#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "tracing")]
pub mod traced;

/// Which driver answers.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// The kernel driver, through its device nodes.
    Kernel,
    /// The simulated GPU, presenting itself as the chip named.
    Sim(String),
}

/// A CPU mapping to make.
#[derive(Clone, Copy, Debug)]
pub struct MapCpu {
    /// The device or subdevice that the memory belongs to.
    pub device: Handle,
    /// The memory object.
    pub memory: Handle,
    /// From which byte of it.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// `NVOS33_FLAGS`.
    pub flags: u32,
    /// Whether the memory is system memory, which is mapped through the control node.
    pub system: bool,
}

/// A GPU mapping to make with `NV_ESC_RM_MAP_MEMORY_DMA`.
#[derive(Clone, Copy, Debug)]
pub struct MapDma {
    /// The device.
    pub device: Handle,
    /// The `NV01_MEMORY_VIRTUAL` object of the address space.
    pub virtual_memory: Handle,
    /// The memory object.
    pub memory: Handle,
    /// From which byte of it.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// `NVOS46_FLAGS`.
    pub flags: u32,
    /// At which address.
    pub va: GpuVa,
}

/// Another GPU of the machine, kept up for a client that names it.
#[derive(Debug)]
pub struct Attached {
    /// The device instance to name in `NV0080_ALLOC_PARAMETERS`.
    pub device_instance: u32,
    /// What keeps it up.
    pub(crate) _keep: Option<Box<dyn Keep>>,
}

/// What is held to be dropped.
pub(crate) trait Keep: fmt::Debug + Send + Sync {}
impl<T: fmt::Debug + Send + Sync> Keep for T {}

/// How a channel is told that it has work: a concrete type, so that a launch makes no virtual call.
#[derive(Debug)]
pub enum Doorbell {
    /// The usermode register page of a GPU.
    Page(Mapping),
    /// The simulated GPU.
    #[cfg(feature = "sim")]
    Sim(nv_sim::Doorbell),
}

impl Doorbell {
    /// Offset of `NOTIFY_CHANNEL_PENDING` in the usermode register page (`clc661.h`).
    const NOTIFY_CHANNEL_PENDING: usize = 0x90;

    /// Tells the GPU that the channel of `token` has new entries.
    pub fn ring(&self, token: SubmitToken) {
        match self {
            Self::Page(page) => page.write_u32(Self::NOTIFY_CHANNEL_PENDING, token.0),
            #[cfg(feature = "sim")]
            Self::Sim(doorbell) => doorbell.ring(token),
        }
    }
}

pub(crate) mod sealed {
    /// Only this crate implements drivers: their promises are relied on by `unsafe` code.
    pub trait Sealed {}
}

/// One opened GPU, as the resource manager shows it.
pub trait Driver: sealed::Sealed + fmt::Debug + Send + Sync {
    /// Which driver this is.
    fn kind(&self) -> Kind;

    /// The release of the driver that runs.
    fn release(&self) -> DriverVersion;

    /// Which layouts it is taken to have, and how well they are known.
    fn abi(&self) -> Abi;

    /// The release whose layouts are used: the driver's own, unless others are forced.
    fn version(&self) -> DriverVersion {
        self.abi().version
    }

    /// Which machine it is of: 0 the real one, a simulated machine's own number otherwise. Objects of drivers of one
    /// machine can be named to each other.
    fn machine_id(&self) -> usize;

    /// The number by which the resource manager names the GPU to all clients.
    fn gpu_id(&self) -> u32;

    /// Opens the same GPU once more: another client, whose objects and faults are its own.
    fn reopen(&self) -> Result<Arc<dyn Driver>, Error>;

    /// The root client (`NV01_ROOT_CLIENT`) of this GPU's objects.
    fn client(&self) -> Handle;

    /// The device instance to name in `NV0080_ALLOC_PARAMETERS`.
    fn device_instance(&self) -> u32;

    /// `NV_ESC_RM_ALLOC`: makes an object below `parent`; `params` may be empty.
    ///
    /// # Safety
    /// Pointers in `params` are valid for whatever the class does through them.
    unsafe fn alloc_raw(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Error>;

    /// `NV_ESC_RM_CONTROL`.
    ///
    /// # Safety
    /// Pointers in `params` are valid for whatever `command` does through them.
    unsafe fn control_raw(
        &self,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Error>;

    /// `NV_ESC_RM_DUP_OBJECT`: makes a further object below `parent` that is another client's `source`.
    fn dup(&self, parent: Handle, client: Handle, source: Handle) -> Result<Handle, Error>;

    /// Keeps the GPU of an id up for as long as the answer lives, so that objects of this client can name it.
    fn attach(&self, gpu_id: u32) -> Result<Attached, Error>;

    /// `NV_ESC_RM_FREE`: ends an object and all below it.
    fn free(&self, parent: Handle, object: Handle) -> Result<(), Error>;

    /// The classes that `device` offers (`NV0080_CTRL_CMD_GPU_GET_CLASSLIST`).
    fn class_list(&self, device: Handle) -> Result<Vec<ClassId>, Error>;

    /// Graphics engine facts by index (`NV2080_CTRL_CMD_GR_GET_INFO`), in the order asked.
    fn gr_info(&self, subdevice: Handle, indices: &[u32]) -> Result<Vec<u32>, Error>;

    /// `NV_ESC_RM_MAP_MEMORY` and the `mmap` that follows it.
    fn map_cpu(&self, request: &MapCpu) -> Result<Mapping, Error>;

    /// `NV_ESC_RM_MAP_MEMORY_DMA`.
    fn map_dma(&self, request: &MapDma) -> Result<(), Error>;

    /// `NV_ESC_RM_UNMAP_MEMORY_DMA` of what [`Driver::map_dma`] mapped at `va`.
    fn unmap_dma(
        &self,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Error>;

    /// Makes a memory object of the caller's own pages (`NV01_MEMORY_SYSTEM_OS_DESCRIPTOR`).
    ///
    /// # Safety
    /// The pages stay mapped in this process until the object is freed, and what the GPU writes to them does
    /// not break a Rust reference.
    unsafe fn register_pages(
        &self,
        device: Handle,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<Handle, Error>;

    /// One call to the UVM driver; its status is checked. The UVM node is opened at the first call.
    ///
    /// # Safety
    /// Pointers in `params` are valid for whatever `command` does through them.
    unsafe fn uvm_raw(&self, command: u32, params: &mut [u8]) -> Result<(), Error>;

    /// The descriptor of the control node, which UVM structures name.
    fn control_fd(&self) -> i32;

    /// What a driver knows of the fault of a channel beyond its notifier, in words; real GPUs say nothing here.
    fn explain_fault(&self, _channel: Handle) -> Option<String> {
        None
    }

    /// Turns a mapping of the usermode register page into the doorbell.
    fn doorbell(&self, usermode: Mapping) -> Doorbell;
}

/// The layouts of a driver of `release`: its own, or those of the release that is `forced`.
///
/// # Errors
/// [`Error::Unsupported`] for a release whose layouts are not known, which names what can be done.
#[cfg(any(feature = "ioctl", feature = "sim"))]
pub(crate) fn abi(release: DriverVersion, forced: Option<DriverVersion>) -> Result<Abi, Error> {
    Abi::of(forced.unwrap_or(release)).map_err(|error| {
        let hint = match forced {
            Some(_) => "force the layouts of another",
            None => "or force the layouts of another (`Options::abi`, `NV_DRIVER_ABI=535.288.01`)",
        };
        Error::Unsupported(format!("{error}, {hint}"))
    })
}

/// What a program should be told of the driver's release: nothing where its layouts are known.
pub(crate) fn warning(driver: &dyn Driver) -> Option<String> {
    let release = driver.release();
    let Abi {
        version,
        branch,
        fit,
    } = driver.abi();
    if version != release {
        return Some(format!(
            "driver {release} is talked to as if it were {version}, which was forced"
        ));
    }
    let newest = rm::BRANCHES.last().map_or(branch.major, |last| last.major);
    match fit {
        rm::Fit::Checked | rm::Fit::LaterInBranch => None,
        rm::Fit::Nearest => Some(format!(
            "driver {release} is {}: it is taken to be like branch {}; if calls are refused or misread, \
             force the layouts of another release (`Options::abi`, `NV_DRIVER_ABI`)",
            if release.major > newest {
                "newer than all that are known"
            } else {
                "of a branch that is not known"
            },
            branch.major
        )),
    }
}

/// Makes an object of a class whose parameters hold no pointer.
///
/// # Errors
/// The resource manager's status; [`Error::OutOfMemory`] for memory that is not there;
/// [`Error::InvalidArgument`] for parameters that are not those of `class`, which might read a pointer in them.
#[allow(
    unsafe_code,
    reason = "the one place where the pointer-free promise is used"
)]
pub fn alloc<P: rm::AllocParams>(
    driver: &dyn Driver,
    parent: Handle,
    class: ClassId,
    params: &mut P,
) -> Result<Handle, Error> {
    if !P::fits(class) {
        return Err(Error::InvalidArgument(format!(
            "these are not the parameters of objects of class {:#x}",
            class.0
        )));
    }
    let version = driver.version();
    // SAFETY: `P: AllocParams` is sealed in nv-proto and lists only structures that are without pointers for
    // the classes that they fit.
    let made = unsafe { driver.alloc_raw(parent, class, params.bytes_mut(version)) };
    params.read_back(version);
    made
}

/// Makes an object of a class that takes no parameters.
///
/// # Errors
/// As [`alloc`].
pub fn alloc_plain(driver: &dyn Driver, parent: Handle, class: ClassId) -> Result<Handle, Error> {
    // SAFETY: no parameters, hence no pointers.
    unsafe { driver.alloc_raw(parent, class, &mut []) }
}

/// Makes a control call whose parameters hold no pointer.
///
/// # Errors
/// The resource manager's status.
#[allow(
    unsafe_code,
    reason = "the one place where the pointer-free promise is used"
)]
pub fn control<P: rm::Control>(
    driver: &dyn Driver,
    object: Handle,
    params: &mut P,
) -> Result<(), Error> {
    // SAFETY: `P: Control` is sealed in nv-proto and lists only structures without pointers.
    unsafe { driver.control_raw(object, P::COMMAND, params.bytes_mut(driver.version())) }
}
