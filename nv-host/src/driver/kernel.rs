//! The kernel driver, through its device nodes.
//!
//! A driver holds `/dev/nvidiactl` (calls to the resource manager go there) and `/dev/nvidiaN` (which keeps the
//! GPU up). Each CPU mapping takes a fresh descriptor, which may close once the `mmap` is done. The UVM node is
//! opened at the first call that needs it.
#![allow(unsafe_code, reason = "ioctls carry pointers to parameters")]

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nv_proto::rm::names::classes::{
    NV01_MEMORY_LOCAL_USER, NV01_MEMORY_SYSTEM, NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
};
use nv_proto::rm::{self, Abi, DriverVersion, Status, flags};
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_proto::uvm::{self, UvmCommand};
use zerocopy::{FromBytes, IntoBytes};

use super::{Attached, Doorbell, Driver, Kind, MapCpu, MapDma, sealed};
use crate::probe::{PciAddress, VisibleDevices};
use crate::sys::{Linux, System};
use crate::{Error, Mapping};

mod client;
#[cfg(test)]
mod tests;

use client::{Bounce, Client, Node};

/// Opens the GPU of an index, counted after `VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES`, else in bus order.
///
/// # Errors
/// [`Error::NoDevice`] without any GPU, [`Error::InvalidArgument`] for an index past the last one,
/// [`Error::Node`] for a device node that does not open, with what to do; [`Error::Unsupported`] for a driver
/// that is too old.
pub fn open(index: usize) -> Result<KernelDriver, Error> {
    open_as(Some(index), None)
}

/// Opens the first GPU, in the order of [`open`], whose node opens: a container may see them all and hold one.
///
/// # Errors
/// As [`open`]; where no node opens, what the first said.
pub fn open_first() -> Result<KernelDriver, Error> {
    open_as(None, None)
}

/// As [`open`], or as [`open_first`] without an index, taking the driver to have the layouts of the release `abi`; without
/// one, of that in the environment variable `NV_DRIVER_ABI`, else its own.
///
/// # Errors
/// As [`open`]; [`Error::InvalidArgument`] for a variable that is no release.
pub fn open_as(index: Option<usize>, abi: Option<DriverVersion>) -> Result<KernelDriver, Error> {
    let visible = VisibleDevices::from_env();
    let forced = forced_abi(abi, |variable| std::env::var(variable).ok())?;
    KernelDriver::open(Box::new(Linux), index, visible.as_ref(), forced)
}

/// One GPU that the kernel driver shows, in the order of [`open`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Listed {
    /// The index that [`open`] takes.
    pub index: usize,
    /// The product's name, where the kernel module tells it.
    pub name: Option<String>,
    /// The UUID, such as `GPU-5f0c…`, where the kernel module tells it: some only once it was opened.
    pub uuid: Option<String>,
    /// Where it sits on the bus.
    pub address: PciAddress,
}

/// The GPUs that can be opened, counted after `VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES`. None is opened for it.
///
/// # Errors
/// [`Error::Node`] without the control node, with what to do; what is wrong with the variable.
pub fn list() -> Result<Vec<Listed>, Error> {
    let forced = forced_abi(None, |variable| std::env::var(variable).ok())?;
    listed(Box::new(Linux), VisibleDevices::from_env().as_ref(), forced)
}

fn listed(
    system: Box<dyn System>,
    visible: Option<&VisibleDevices>,
    forced: Option<DriverVersion>,
) -> Result<Vec<Listed>, Error> {
    let client = Client::open(system, forced)?;
    let cards = cards(&client)?;
    let order = order(&client, &cards, visible)?;
    let seen = order.iter().filter_map(|place| cards.get(*place));
    let listed = seen.enumerate().map(|(index, card)| {
        let address = PciAddress::of(&card.pci_info);
        Listed {
            index,
            name: client.told(address, "Model"),
            uuid: client.uuid(address),
            address,
        }
    });
    Ok(listed.collect())
}

/// The release whose layouts are forced, by the caller or by the environment.
fn forced_abi(
    asked: Option<DriverVersion>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<DriverVersion>, Error> {
    let text = match asked {
        Some(version) => return Ok(Some(version)),
        None => lookup(ABI_VARIABLE).filter(|text| !text.is_empty()),
    };
    let parse = |text: String| {
        DriverVersion::parse(&text).map_err(|error| {
            Error::InvalidArgument(format!(
                "{ABI_VARIABLE}={text}: {error}; name a driver release such as {}",
                DriverVersion::OLDEST
            ))
        })
    };
    text.map(parse).transpose()
}

/// One GPU, opened through the kernel driver.
///
/// Fields end in order: UVM holds on to the client's objects, and those need the GPU up.
#[derive(Debug)]
pub struct KernelDriver {
    uvm: Mutex<Option<Uvm>>,
    client: Client,
    device: Node,
    device_instance: u32,
    gpu_id: u32,
    address: PciAddress,
    next_handle: AtomicU32,
}

/// The UVM driver's two descriptors: the address space, and its tie to the life of the process.
#[derive(Debug)]
struct Uvm {
    space: Node,
    _process: Node,
}

impl KernelDriver {
    fn open(
        system: Box<dyn System>,
        index: Option<usize>,
        visible: Option<&VisibleDevices>,
        forced: Option<DriverVersion>,
    ) -> Result<Self, Error> {
        let client = Client::open(system, forced)?;
        let (card, device) = choose(&client, index, visible)?;
        Self::of(client, &card, device)
    }

    /// The GPU of an open node.
    fn of(client: Client, card: &rm::CardInfo, device: Node) -> Result<Self, Error> {
        let mut driver = Self {
            uvm: Mutex::new(None),
            device,
            client,
            device_instance: 0,
            gpu_id: card.gpu_id.get(),
            address: PciAddress::of(&card.pci_info),
            next_handle: AtomicU32::new(FIRST_HANDLE),
        };
        driver.device_instance = driver.instance_of(driver.gpu_id)?;
        Ok(driver)
    }

    /// The device instance of a GPU.
    fn instance_of(&self, gpu_id: u32) -> Result<u32, Error> {
        let mut info = rm::GpuGetIdInfoV2 {
            gpu_id: gpu_id.into(),
            ..Default::default()
        };
        super::control(self, self.client.handle, &mut info)?;
        Ok(info.device_instance.get())
    }

    /// Where the GPU sits.
    #[must_use]
    pub fn address(&self) -> PciAddress {
        self.address
    }

    /// A call on the control node.
    ///
    /// # Safety
    /// `params` is the structure of the escape; pointers inside are valid for what the driver does with them.
    unsafe fn call(&self, escape: u8, params: &mut [u8]) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.client.call(&self.client.node, escape, params) }
    }

    /// Takes back what an `NV_ESC_RM_MAP_MEMORY` prepared, when the `mmap` failed.
    fn unprepare(&self, prepared: &rm::Nvos33) {
        let mut params = rm::Nvos34 {
            h_client: prepared.h_client,
            h_device: prepared.h_device,
            h_memory: prepared.h_memory,
            p_linear_address: prepared.p_linear_address,
            flags: prepared.flags,
            ..Default::default()
        };
        // SAFETY: the structure is the driver's, of its size; the address is a name that the driver gave.
        let unmapped = unsafe { self.call(rm::NV_ESC_RM_UNMAP_MEMORY, params.as_mut_bytes()) };
        // The failed mmap is what is reported; freeing the memory ends the preparation too.
        drop(unmapped);
    }

    fn open_uvm(&self) -> Result<Uvm, Error> {
        let system = &*self.client.system;
        let space = Node::open(system, Path::new(UVM_NODE))?;
        let process = Node::open(system, Path::new(UVM_NODE))?;
        self.uvm_command(&space, &mut uvm::Initialize::default())?;
        let mut tie = uvm::MmInitialize {
            uvm_fd: space.number().into(),
            ..Default::default()
        };
        self.uvm_command(&process, &mut tie)?;
        Ok(Uvm {
            space,
            _process: process,
        })
    }

    fn uvm_command<P: UvmCommand>(&self, node: &Node, params: &mut P) -> Result<(), Error> {
        // SAFETY: `P: UvmCommand` is sealed in nv-proto and lists only structures without pointers.
        unsafe { self.uvm_call(node, P::COMMAND, params.bytes_mut(self.version())) }
    }

    /// A call to the UVM driver on one of its nodes.
    ///
    /// # Safety
    /// Pointers in `params` are valid for whatever `command` does through them.
    unsafe fn uvm_call(&self, node: &Node, command: u32, params: &mut [u8]) -> Result<(), Error> {
        let version = self.version();
        let shape = uvm::shape(command, version).ok_or_else(|| {
            Error::InvalidArgument(format!("UVM command {command:#x} is not described here"))
        })?;
        let size = shape.size(version);
        if params.len() != size {
            return Err(Error::InvalidArgument(format!(
                "{} takes {size} bytes at driver {version}, not {}",
                shape.name,
                params.len()
            )));
        }
        let mut bounce = Bounce::new(params, uvm::MAX_PARAMS);
        // SAFETY: the driver copies its own structure, no larger than the bounce buffer; pointers are the
        // caller's promise.
        let called = unsafe {
            self.client
                .system
                .ioctl(node.fd.as_fd(), command, bounce.bytes_mut())
        };
        bounce.finish(params);
        let name = uvm::name(command).unwrap_or("UVM ioctl");
        called.map_err(|errno| node.error(name, errno))?;
        let status = uvm::status_of(command, version, params).unwrap_or(Status::GENERIC);
        self.client.check(|| name.to_owned(), status)
    }
}

impl sealed::Sealed for KernelDriver {}

impl Driver for KernelDriver {
    fn kind(&self) -> Kind {
        Kind::Kernel
    }

    fn release(&self) -> DriverVersion {
        self.client.release
    }

    fn abi(&self) -> Abi {
        self.client.abi
    }

    fn machine_id(&self) -> usize {
        0
    }

    fn gpu_id(&self) -> u32 {
        self.gpu_id
    }

    fn reopen(&self) -> Result<Arc<dyn Driver>, Error> {
        let forced = Some(self.client.abi.version).filter(|abi| *abi != self.client.release);
        let client = Client::open(Box::new(Linux), forced)?;
        let same = |card: &rm::CardInfo| PciAddress::of(&card.pci_info) == self.address;
        let card = cards(&client)?
            .into_iter()
            .find(same)
            .ok_or_else(|| Error::NoDevice(vec![format!("the GPU at {} is gone", self.address)]))?;
        let device = device_node(&client, &device_path(&card))?;
        Ok(Arc::new(Self::of(client, &card, device)?))
    }

    fn client(&self) -> Handle {
        self.client.handle
    }

    fn device_instance(&self) -> u32 {
        self.device_instance
    }

    unsafe fn alloc_raw(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Error> {
        let mut bounce = Bounce::new(params, ALLOC_BYTES);
        let address = if params.is_empty() {
            0
        } else {
            bounce.address()
        };
        let mut request = rm::Nvos21 {
            h_root: self.client.handle.into(),
            h_object_parent: parent.into(),
            h_class: class.into(),
            p_alloc_parms: address.into(),
            ..Default::default()
        };
        // SAFETY: the driver copies the class's structure, which fits the bounce buffer; pointers inside are
        // the caller's promise.
        let called = unsafe { self.call(rm::NV_ESC_RM_ALLOC, request.as_mut_bytes()) };
        bounce.finish(params);
        called?;
        let name = || match rm::names::class(class) {
            Some(name) => format!("allocating {name}"),
            None => format!("allocating class {:#x}", class.0),
        };
        match (Status(request.status.get()), memory(class)) {
            (Status::NO_MEMORY, Some(what)) => {
                let asked = rm::MemoryAlloc::read_from_prefix(params);
                let bytes = asked.map_or(0, |(params, _)| params.size.get());
                Err(Error::OutOfMemory { what, bytes })
            }
            (status, _) => {
                self.client.check(name, status)?;
                Ok(request.h_object_new.into())
            }
        }
    }

    unsafe fn control_raw(
        &self,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Error> {
        let size = count(params.len(), "bytes of parameters")?;
        let address = match params {
            [] => 0,
            params => params.as_mut_ptr().expose_provenance() as u64,
        };
        let mut request = rm::Nvos54 {
            h_client: self.client.handle.into(),
            h_object: object.into(),
            cmd: command.into(),
            params: address.into(),
            params_size: size.into(),
            ..Default::default()
        };
        // SAFETY: the driver copies `params_size` bytes, all ours, and refuses another size than its own;
        // pointers inside are the caller's promise.
        unsafe { self.call(rm::NV_ESC_RM_CONTROL, request.as_mut_bytes()) }?;
        let name = || match rm::names::command(command) {
            Some(name) => name.to_owned(),
            None => format!("control call {command:#x}"),
        };
        self.client.check(name, Status(request.status.get()))
    }

    fn dup(&self, parent: Handle, client: Handle, source: Handle) -> Result<Handle, Error> {
        let handle = Handle(self.next_handle.fetch_add(1, Ordering::Relaxed));
        let mut request = rm::Nvos55 {
            h_client: self.client.handle.into(),
            h_parent: parent.into(),
            h_object: handle.into(),
            h_client_src: client.into(),
            h_object_src: source.into(),
            ..Default::default()
        };
        // SAFETY: the structure is the driver's, of its size, without pointers.
        unsafe { self.call(rm::NV_ESC_RM_DUP_OBJECT, request.as_mut_bytes()) }?;
        let name = || format!("duplicating object {source} of client {client}");
        self.client.check(name, Status(request.status.get()))?;
        Ok(request.h_object.into())
    }

    fn attach(&self, gpu_id: u32) -> Result<Attached, Error> {
        let card = cards(&self.client)?
            .into_iter()
            .find(|card| card.gpu_id.get() == gpu_id)
            .ok_or_else(|| Error::NoDevice(vec![format!("the GPU of id {gpu_id:#x} is gone")]))?;
        let node = device_node(&self.client, &device_path(&card))?;
        Ok(Attached {
            device_instance: self.instance_of(gpu_id)?,
            _keep: Some(Box::new(node)),
        })
    }

    fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        self.client.free(parent, object)
    }

    fn class_list(&self, device: Handle) -> Result<Vec<ClassId>, Error> {
        let command = rm::NV0080_CTRL_CMD_GPU_GET_CLASSLIST;
        let mut request = rm::GpuGetClasslist::default();
        // SAFETY: no list and a count of 0 ask for the count alone.
        unsafe { self.control_raw(device, command, request.as_mut_bytes()) }?;
        let classes = usize::try_from(request.num_classes.get()).unwrap_or(usize::MAX);
        if classes > MAX_CLASSES {
            return Err(Error::Unsupported(format!(
                "the driver lists {classes} classes"
            )));
        }
        let mut list = vec![rm::U32::ZERO; classes];
        request.class_list = (list.as_mut_ptr().expose_provenance() as u64).into();
        // SAFETY: the list has room for the `num_classes` words that the driver writes, and outlives the call.
        unsafe { self.control_raw(device, command, request.as_mut_bytes()) }?;
        list.truncate(usize::try_from(request.num_classes.get()).unwrap_or(0));
        Ok(list.into_iter().map(|class| ClassId(class.get())).collect())
    }

    fn gr_info(&self, subdevice: Handle, indices: &[u32]) -> Result<Vec<u32>, Error> {
        let fact = |index: &u32| rm::GrInfo {
            index: (*index).into(),
            ..Default::default()
        };
        let mut list: Vec<rm::GrInfo> = indices.iter().map(fact).collect();
        let mut request = rm::GrGetInfo {
            gr_info_list_size: count(list.len(), "facts at once")?.into(),
            gr_info_list: (list.as_mut_ptr().expose_provenance() as u64).into(),
            ..Default::default()
        };
        let command = rm::NV2080_CTRL_CMD_GR_GET_INFO;
        // SAFETY: the list has `gr_info_list_size` entries and outlives the call.
        unsafe { self.control_raw(subdevice, command, request.as_mut_bytes()) }?;
        Ok(list.into_iter().map(|fact| fact.data.get()).collect())
    }

    fn map_cpu(&self, request: &MapCpu) -> Result<Mapping, Error> {
        let MapCpu {
            device,
            memory,
            offset,
            length,
            flags,
            system,
        } = *request;
        // A `Mapping` may be written, and a store to pages that may not would end the process.
        if is_read_only(flags) {
            return Err(Error::Unsupported(
                "CPU mappings that cannot be written are not supported".into(),
            ));
        }
        let pages = usize::try_from(length).ok().and_then(NonZeroUsize::new);
        let pages = pages
            .ok_or_else(|| Error::InvalidArgument(format!("a CPU mapping of {length} bytes")))?;
        let node = if system {
            Node::open(&*self.client.system, &self.client.node.path)?
        } else {
            device_node(&self.client, &self.device.path)?
        };
        let params = rm::Nvos33 {
            h_client: self.client.handle.into(),
            h_device: device.into(),
            h_memory: memory.into(),
            offset: offset.into(),
            length: length.into(),
            flags: flags.into(),
            ..Default::default()
        };
        let mut call = rm::Nvos33WithFd {
            params,
            fd: node.number().into(),
            ..Default::default()
        };
        // SAFETY: the structure is the driver's, of its size, and its address an answer.
        unsafe { self.call(rm::NV_ESC_RM_MAP_MEMORY, call.as_mut_bytes()) }?;
        let name = || format!("mapping {length:#x} bytes of object {memory} for the CPU");
        self.client.check(name, Status(call.params.status.get()))?;
        match self.client.system.map(node.fd.as_fd(), pages) {
            Ok(pages) => Ok(Mapping::from_pages(pages)),
            Err(errno) => {
                self.unprepare(&call.params);
                Err(node.error("mmap", errno))
            }
        }
    }

    fn map_dma(&self, request: &MapDma) -> Result<(), Error> {
        let MapDma {
            device,
            virtual_memory,
            memory,
            offset,
            length,
            flags,
            va,
        } = *request;
        let mut call = rm::MapMemoryDma::from(rm::Nvos46 {
            h_client: self.client.handle.into(),
            h_device: device.into(),
            h_dma: virtual_memory.into(),
            h_memory: memory.into(),
            offset: offset.into(),
            length: length.into(),
            flags: flags.into(),
            dma_offset: va.into(),
            ..Default::default()
        });
        let version = self.version();
        // SAFETY: the structure is the driver's, of its size, without pointers.
        unsafe { self.call(rm::NV_ESC_RM_MAP_MEMORY_DMA, call.bytes_mut(version)) }?;
        call.read_back(version);
        let name = || format!("mapping {length:#x} bytes at {va} for the GPU");
        let status = Status(call.status.get());
        if status == Status::NO_MEMORY {
            let detail = "; the address may lie in a page that another mapping uses".into();
            return Err(Error::Rm {
                call: name(),
                status,
                detail,
            });
        }
        self.client.check(name, status)?;
        let at = GpuVa(call.dma_offset.get());
        if flags & flags::map_dma::dma_offset_fixed::TRUE != 0 && at != va {
            self.unmap_dma(device, virtual_memory, memory, at)?;
            return Err(Error::Unsupported(format!(
                "{}: the driver put it at {at}",
                name()
            )));
        }
        Ok(())
    }

    fn unmap_dma(
        &self,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Error> {
        let mut call = rm::UnmapMemoryDma::from(rm::Nvos47 {
            h_client: self.client.handle.into(),
            h_device: device.into(),
            h_dma: virtual_memory.into(),
            h_memory: memory.into(),
            dma_offset: va.into(),
            ..Default::default()
        });
        let version = self.version();
        // SAFETY: the structure is the driver's, of its size, without pointers.
        unsafe { self.call(rm::NV_ESC_RM_UNMAP_MEMORY_DMA, call.bytes_mut(version)) }?;
        call.read_back(version);
        self.client.check(
            || format!("unmapping {va} from the GPU"),
            Status(call.status.get()),
        )
    }

    unsafe fn register_pages(
        &self,
        device: Handle,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<Handle, Error> {
        let limit = length
            .checked_sub(1)
            .ok_or_else(|| Error::InvalidArgument("no bytes to register".into()))?;
        let handle = Handle(self.next_handle.fetch_add(1, Ordering::Relaxed));
        let params = rm::Nvos02 {
            h_root: self.client.handle.into(),
            h_object_parent: device.into(),
            h_object_new: handle.into(),
            h_class: NV01_MEMORY_SYSTEM_OS_DESCRIPTOR.into(),
            flags: OS_MEMORY_FLAGS.into(),
            p_memory: (base.as_ptr().expose_provenance() as u64).into(),
            limit: (limit as u64).into(),
            ..Default::default()
        };
        let mut call = rm::Nvos02WithFd {
            params,
            fd: (-1).into(),
            ..Default::default()
        };
        let escape = rm::NV_ESC_RM_ALLOC_MEMORY;
        // SAFETY: the driver pins the pages, which by the caller's promise stay mapped while it does.
        unsafe { self.client.call(&self.device, escape, call.as_mut_bytes()) }?;
        let status = Status(call.params.status.get());
        if status == Status::NO_MEMORY {
            return Err(Error::OutOfMemory {
                what: "host memory to pin",
                bytes: length as u64,
            });
        }
        self.client.check(
            || format!("registering {length:#x} bytes of host memory"),
            status,
        )?;
        Ok(handle)
    }

    unsafe fn uvm_raw(&self, command: u32, params: &mut [u8]) -> Result<(), Error> {
        let mut uvm = self.uvm.lock().unwrap_or_else(PoisonError::into_inner);
        let uvm = match &mut *uvm {
            Some(uvm) => uvm,
            none => none.insert(self.open_uvm()?),
        };
        // SAFETY: the caller's promise is the same.
        unsafe { self.uvm_call(&uvm.space, command, params) }
    }

    fn control_fd(&self) -> i32 {
        self.client.node.number()
    }

    fn doorbell(&self, usermode: Mapping) -> Doorbell {
        Doorbell::Page(usermode)
    }
}

/// The GPU of an index among those that the environment allows, or the first of them whose node opens; and its node.
fn choose(
    client: &Client,
    index: Option<usize>,
    visible: Option<&VisibleDevices>,
) -> Result<(rm::CardInfo, Node), Error> {
    let cards = cards(client)?;
    if cards.is_empty() {
        return Err(Error::NoDevice(vec![
            "the kernel driver is loaded but shows no GPU".into(),
        ]));
    }
    let order = order(client, &cards, visible)?;
    let allowed = order.iter().filter_map(|place| cards.get(*place).copied());
    let tried = if index.is_some() { 1 } else { usize::MAX };
    let mut first_error = None;
    for card in allowed.skip(index.unwrap_or(0)).take(tried) {
        match device_node(client, &device_path(&card)) {
            Ok(node) => return Ok((card, node)),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    Err(first_error.unwrap_or_else(|| {
        let why = visible.map_or_else(String::new, |visible| format!(" ({visible})"));
        let index = index.unwrap_or(0);
        Error::InvalidArgument(format!(
            "there is no GPU {index}: {} can be used{why}",
            order.len()
        ))
    }))
}

/// The places among `cards` of those that the environment allows, in its order.
fn order(
    client: &Client,
    cards: &[rm::CardInfo],
    visible: Option<&VisibleDevices>,
) -> Result<Vec<usize>, Error> {
    match visible {
        None => Ok((0..cards.len()).collect()),
        Some(visible) => {
            let uuid = |card: &rm::CardInfo| client.uuid(PciAddress::of(&card.pci_info));
            visible.resolve_uuids(&cards.iter().map(uuid).collect::<Vec<_>>())
        }
    }
}

/// The GPUs that the driver shows, in bus order.
fn cards(client: &Client) -> Result<Vec<rm::CardInfo>, Error> {
    let mut cards = [rm::CardInfo::default(); rm::MAX_CARDS];
    // SAFETY: the driver takes an array of its structures, any number of them, without pointers.
    unsafe { client.call(&client.node, rm::NV_ESC_CARD_INFO, cards.as_mut_bytes()) }?;
    let mut cards: Vec<_> = cards.into_iter().filter(|card| card.valid != 0).collect();
    cards.sort_by_key(|card| PciAddress::of(&card.pci_info));
    Ok(cards)
}

/// The node of a GPU.
fn device_path(card: &rm::CardInfo) -> PathBuf {
    format!("/dev/nvidia{}", card.minor_number.get()).into()
}

/// Opens a GPU's node and ties it to the control node.
fn device_node(client: &Client, path: &Path) -> Result<Node, Error> {
    let node = Node::open(&*client.system, path)?;
    let mut params = rm::RegisterFd {
        ctl_fd: client.node.number().into(),
    };
    // SAFETY: the structure is the driver's, of its size, without pointers.
    unsafe { client.call(&node, rm::NV_ESC_REGISTER_FD, params.as_mut_bytes()) }?;
    Ok(node)
}

/// Whether `NVOS33_FLAGS` ask for a mapping that cannot be written.
fn is_read_only(word: u32) -> bool {
    let access = flags::map_cpu::FIELDS
        .iter()
        .find(|field| field.name == "ACCESS");
    access.is_some_and(|access| access.of(word) == flags::map_cpu::access::READ_ONLY)
}

/// Which memory a class is.
fn memory(class: ClassId) -> Option<&'static str> {
    match class {
        NV01_MEMORY_LOCAL_USER => Some("GPU memory"),
        NV01_MEMORY_SYSTEM => Some("host memory"),
        _ => None,
    }
}

fn count(length: usize, what: &str) -> Result<u32, Error> {
    u32::try_from(length).map_err(|_| Error::InvalidArgument(format!("{length} {what}")))
}

/// Names the release whose layouts the driver is taken to have.
const ABI_VARIABLE: &str = "NV_DRIVER_ABI";

const UVM_NODE: &str = "/dev/nvidia-uvm";

/// The first handle that we choose ourselves, where a call does not let the driver choose: the one that a
/// working sequence on an H200 began with. The driver's own begin at 0xcaf00000.
const FIRST_HANDLE: u32 = 0x1001;

/// More than any class's parameters (the largest known are 0x178 bytes).
const ALLOC_BYTES: usize = 4096;

/// More classes than any GPU has (an H200 lists 103).
const MAX_CLASSES: usize = 4096;

/// Pages as they are: scattered, cached, with no mapping of the driver's own.
const OS_MEMORY_FLAGS: u32 = flags::os_memory::physicality::NONCONTIGUOUS
    | flags::os_memory::coherency::CACHED
    | flags::os_memory::mapping::NO_MAP;
