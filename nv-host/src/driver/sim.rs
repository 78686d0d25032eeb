//! The simulated GPU behind the same boundary as the kernel driver.
#![allow(
    unsafe_code,
    reason = "the boundary's raw calls, and the client's own pages lent to the simulated GPU"
)]

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use nv_proto::rm::{self, Abi, DriverVersion, Status, names};
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_proto::{class, uvm};
use nv_sim::{Chip, DmaMapping, Machine, Options, Uvm};

use zerocopy::FromBytes;

use super::{Attached, Doorbell, Driver, Kind, MapCpu, MapDma, sealed};
use crate::{Error, Mapping};

/// A simulated GPU that is opened. Its machine ends with it, unless others share it.
#[derive(Debug)]
pub struct SimDriver {
    machine: Arc<Machine>,
    index: u32,
    chip: Chip,
    client: Handle,
    abi: Abi,
    uvm: OnceLock<Uvm>,
}

/// Opens a simulated GPU in a machine of its own, with the default driver release.
///
/// # Errors
/// When the host cannot start the GPU's thread.
pub fn open(chip: Chip) -> Result<SimDriver, Error> {
    open_with(chip, Options::default())
}

/// Opens a simulated GPU in a machine of its own.
///
/// # Errors
/// As [`open`].
pub fn open_with(chip: Chip, options: Options) -> Result<SimDriver, Error> {
    let machine = Machine::with_options(&[chip], options)
        .map_err(|error| Error::Unsupported(format!("the simulated GPU cannot start: {error}")))?;
    open_in(machine, 0)
}

/// Opens a GPU of a machine that others may share.
///
/// # Errors
/// [`Error::InvalidArgument`] for a GPU that the machine has not.
pub fn open_in(machine: Arc<Machine>, index: u32) -> Result<SimDriver, Error> {
    open_as(machine, index, None)
}

/// As [`open_in`], taking the machine's driver to have the layouts of the release `abi`; without one, its own.
///
/// # Errors
/// As [`open_in`]; [`Error::Unsupported`] for a release whose layouts are not known.
pub fn open_as(
    machine: Arc<Machine>,
    index: u32,
    abi: Option<DriverVersion>,
) -> Result<SimDriver, Error> {
    let abi = super::abi(machine.version(), abi)?;
    let chips = machine.chips();
    let Some(chip) = chips.get(index as usize).copied() else {
        return Err(Error::InvalidArgument(format!(
            "the simulated machine has {} GPUs and none of index {index}",
            chips.len()
        )));
    };
    let root = names::classes::NV01_ROOT_CLIENT;
    let client = machine
        .alloc(Handle::NULL, Handle::NULL, Handle::NULL, root, &mut [])
        .map_err(|status| refused("NV_ESC_RM_ALLOC of NV01_ROOT_CLIENT".into(), status))?;
    Ok(SimDriver {
        machine,
        index,
        chip,
        client,
        abi,
        uvm: OnceLock::new(),
    })
}

impl SimDriver {
    /// The machine, to look behind the boundary.
    #[must_use]
    pub fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        // The client exists until here, so this cannot fail; a machine that others share must not keep it.
        let _ = self.machine.free(self.client, Handle::NULL, self.client);
    }
}

impl sealed::Sealed for SimDriver {}

impl Driver for SimDriver {
    fn kind(&self) -> Kind {
        Kind::Sim(self.chip.code_name().to_owned())
    }

    fn release(&self) -> DriverVersion {
        self.machine.version()
    }

    fn abi(&self) -> Abi {
        self.abi
    }

    fn machine_id(&self) -> usize {
        Arc::as_ptr(&self.machine).addr()
    }

    fn gpu_id(&self) -> u32 {
        Machine::gpu_id(self.index)
    }

    fn reopen(&self) -> Result<Arc<dyn Driver>, Error> {
        let machine = Arc::clone(&self.machine);
        Ok(Arc::new(open_as(
            machine,
            self.index,
            Some(self.abi.version),
        )?))
    }

    fn client(&self) -> Handle {
        self.client
    }

    fn device_instance(&self) -> u32 {
        self.index
    }

    unsafe fn alloc_raw(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Error> {
        let made = self
            .machine
            .alloc(self.client, parent, Handle::NULL, class, params);
        made.map_err(|status| {
            let what = match class {
                names::classes::NV01_MEMORY_LOCAL_USER => "memory of the simulated GPU",
                names::classes::NV01_MEMORY_SYSTEM => "host memory",
                _ => "",
            };
            if status == Status::NO_MEMORY && !what.is_empty() {
                let asked = rm::MemoryAlloc::read_from_prefix(params);
                let bytes = asked.map_or(0, |(params, _)| params.size.get());
                return Error::OutOfMemory { what, bytes };
            }
            let name =
                class::name(class).map_or_else(|| format!("class {:#x}", class.0), Into::into);
            refused(format!("NV_ESC_RM_ALLOC of {name}"), status)
        })
    }

    unsafe fn control_raw(
        &self,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Error> {
        let bytes = params.len();
        self.machine
            .control(self.client, object, command, params)
            .map_err(|status| {
                let name = names::command(command)
                    .map_or_else(|| format!("command {command:#x}"), Into::into);
                refused(format!("{name} with {bytes} bytes"), status)
            })
    }

    fn dup(&self, parent: Handle, client: Handle, source: Handle) -> Result<Handle, Error> {
        self.machine
            .dup(self.client, parent, Handle::NULL, client, source)
            .map_err(|status| {
                let call = format!("NV_ESC_RM_DUP_OBJECT of {source} of client {client}");
                refused(call, status)
            })
    }

    fn attach(&self, gpu_id: u32) -> Result<Attached, Error> {
        let mut info = rm::GpuGetIdInfoV2 {
            gpu_id: gpu_id.into(),
            ..Default::default()
        };
        super::control(self, self.client, &mut info)?;
        Ok(Attached {
            device_instance: info.device_instance.get(),
            _keep: None,
        })
    }

    fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        self.machine
            .free(self.client, parent, object)
            .map_err(|status| refused(format!("NV_ESC_RM_FREE of {object}"), status))
    }

    fn class_list(&self, device: Handle) -> Result<Vec<ClassId>, Error> {
        self.machine
            .class_list(self.client, device)
            .map_err(|status| refused("NV0080_CTRL_CMD_GPU_GET_CLASSLIST".into(), status))
    }

    fn gr_info(&self, subdevice: Handle, indices: &[u32]) -> Result<Vec<u32>, Error> {
        self.machine
            .gr_info(self.client, subdevice, indices)
            .map_err(|status| refused("NV2080_CTRL_CMD_GR_GET_INFO".into(), status))
    }

    fn map_cpu(&self, request: &MapCpu) -> Result<Mapping, Error> {
        let MapCpu {
            device,
            memory,
            offset,
            length,
            flags,
            system: _,
        } = *request;
        let call = || format!("NV_ESC_RM_MAP_MEMORY of {length:#x} bytes of {memory}");
        let span = self
            .machine
            .map_memory(self.client, device, memory, offset, length, flags)
            .map_err(|status| refused(call(), status))?;
        Mapping::from_span(span).ok_or_else(|| refused(call(), Status::INVALID_ADDRESS))
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
        let call = || format!("NV_ESC_RM_MAP_MEMORY_DMA of {length:#x} bytes at {va}");
        let request = DmaMapping {
            device,
            virtual_memory,
            memory,
            offset,
            length,
            flags,
            va,
        };
        let at = self
            .machine
            .map_dma(self.client, &request)
            .map_err(|status| refused(call(), status))?;
        if at == va {
            Ok(())
        } else {
            Err(refused(call(), Status::INVALID_OFFSET))
        }
    }

    fn unmap_dma(
        &self,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Error> {
        self.machine
            .unmap_dma(self.client, device, virtual_memory, memory, va)
            .map_err(|status| refused(format!("NV_ESC_RM_UNMAP_MEMORY_DMA at {va}"), status))
    }

    unsafe fn register_pages(
        &self,
        device: Handle,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<Handle, Error> {
        let call = || format!("NV01_MEMORY_SYSTEM_OS_DESCRIPTOR of {length:#x} bytes");
        let cell = size_of::<AtomicU64>();
        if !base.addr().get().is_multiple_of(cell) || !length.is_multiple_of(cell) {
            return Err(refused(call(), Status::INVALID_ADDRESS));
        }
        let cells = base.cast::<AtomicU64>().as_ptr().cast_const();
        // SAFETY:
        // - the caller promises that the pages stay mapped until the object is freed, and that what the GPU
        //   writes to them breaks no Rust reference; an atomic needs no more than that of shared bytes;
        // - `base` is aligned for a cell and `length` is whole cells (checked above);
        // - the lifetime is longer than the promise, but nothing outlives the object: freeing it, or its
        //   client, returns only once no GPU and no mapping holds the cells (`Machine::register_pages`).
        let cells: &'static [AtomicU64] =
            unsafe { std::slice::from_raw_parts(cells, length / cell) };
        self.machine
            .register_pages(self.client, device, Handle::NULL, cells)
            .map_err(|status| refused(call(), status))
    }

    unsafe fn uvm_raw(&self, command: u32, params: &mut [u8]) -> Result<(), Error> {
        let uvm = self.uvm.get_or_init(|| {
            let uvm = self.machine.open_uvm();
            // As the kernel driver's adaptor does when it opens the node; it cannot fail on a fresh one.
            let mut initialize = uvm::Initialize::default();
            let bytes = uvm::UvmCommand::bytes_mut(&mut initialize, self.abi.version);
            let _ = uvm.ioctl(<uvm::Initialize as uvm::UvmCommand>::COMMAND, bytes);
            uvm
        });
        match uvm.ioctl(command, params) {
            Ok(_) => Ok(()),
            Err(status) => {
                let name = uvm::name(command)
                    .map_or_else(|| format!("UVM command {command:#x}"), Into::into);
                Err(refused(name, status))
            }
        }
    }

    fn control_fd(&self) -> i32 {
        -1
    }

    fn explain_fault(&self, channel: Handle) -> Option<String> {
        self.machine.last_fault(self.client(), channel)
    }

    fn doorbell(&self, usermode: Mapping) -> Doorbell {
        match self.machine.doorbell(self.index) {
            Some(doorbell) => Doorbell::Sim(doorbell),
            // `open_in` has looked the GPU up.
            None => Doorbell::Page(usermode),
        }
    }
}

/// The error for a status.
fn refused(call: String, status: Status) -> Error {
    let detail = String::new();
    Error::Rm {
        call,
        status,
        detail,
    }
}
