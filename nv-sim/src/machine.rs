//! The machine: its GPUs, and the kernel driver's object model over them.

mod control;
mod create;
mod map;
mod object;
mod peer;
mod uvm;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nv_proto::rm::{DriverVersion, Status};
use nv_proto::unit::{ClassId, Handle};

use crate::channel::{Channel, lock};
use crate::chip::Chip;
use crate::gpu::{Doorbell, Gpu};

use object::{Body, Client};

pub use map::DmaMapping;
pub use uvm::Uvm;

/// What a machine presents itself as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// The release of the kernel driver, which decides the layouts of parameters.
    pub version: DriverVersion,
    /// Each GPU's memory in bytes. It takes the host's memory only as it is written to.
    pub memory: u64,
    /// What stands between a client and the kernel driver.
    pub sandbox: Sandbox,
}

/// What stands between a client and the kernel driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Sandbox {
    /// Nothing.
    #[default]
    Open,
    /// A container's runtime that grants "compute,utility" and answers every other call itself, as gVisor's nvproxy does:
    /// mapping by the resource manager, what profiles and what debugs are `NV_ERR_INSUFFICIENT_PERMISSIONS`.
    Compute,
}

impl Default for Options {
    /// Release 580.159.04 (which the H200's measurements were made on), 4 GiB, no sandbox.
    fn default() -> Self {
        Self {
            version: DriverVersion::new(580, 159, 4),
            memory: 4 << 30,
            sandbox: Sandbox::Open,
        }
    }
}

/// A machine with simulated GPUs and the kernel driver that runs them.
///
/// Calls take and fill the bytes of the ABI's parameter structures ([`nv_proto::rm`], [`nv_proto::uvm`]) and
/// answer the statuses that the kernel driver answers.
pub struct Machine {
    options: Options,
    gpus: Vec<Arc<Gpu>>,
    clients: Mutex<BTreeMap<u32, Client>>,
    /// Numbers memory objects for the page tables.
    next_object: AtomicU64,
    /// Pairs of GPUs that cannot reach each other's memory, the smaller index first.
    apart: Mutex<BTreeSet<(u32, u32)>>,
    /// Classes and commands that are refused, by number.
    refused: Mutex<BTreeSet<u32>>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, gpus, .. } = self;
        f.debug_struct("Machine")
            .field("options", options)
            .field("gpus", gpus)
            .finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with these GPUs and the default [`Options`].
    ///
    /// # Errors
    /// When the host cannot start a thread for each GPU.
    pub fn new(chips: &[Chip]) -> std::io::Result<Arc<Self>> {
        Self::with_options(chips, Options::default())
    }

    /// A machine with these GPUs.
    ///
    /// # Errors
    /// When the host cannot start a thread for each GPU.
    pub fn with_options(chips: &[Chip], options: Options) -> std::io::Result<Arc<Self>> {
        let mut machine = Self {
            options,
            gpus: Vec::new(),
            clients: Mutex::default(),
            next_object: AtomicU64::new(1),
            apart: Mutex::default(),
            refused: Mutex::default(),
        };
        for (index, chip) in (0..).zip(chips) {
            machine.gpus.push(Gpu::start(index, *chip, options.memory)?);
        }
        Ok(Arc::new(machine))
    }

    /// The release of the kernel driver.
    #[must_use]
    pub fn version(&self) -> DriverVersion {
        self.options.version
    }

    /// The chips, by device instance.
    #[must_use]
    pub fn chips(&self) -> Vec<Chip> {
        self.gpus.iter().map(|gpu| gpu.chip).collect()
    }

    /// The UUID of a GPU.
    #[must_use]
    pub fn uuid(&self, index: u32) -> Option<[u8; 16]> {
        self.gpu(index).map(|gpu| gpu.uuid)
    }

    /// The doorbell of a GPU.
    #[must_use]
    pub fn doorbell(&self, index: u32) -> Option<Doorbell> {
        self.gpu(index).map(|gpu| Doorbell::new(gpu.clone()))
    }

    /// Has objects of these classes and control calls of these commands, by number, refused from now on with
    /// `NV_ERR_INSUFFICIENT_PERMISSIONS`, in the place of what was refused before: a sandbox of one's own.
    pub fn refuse(&self, numbers: &[u32]) {
        *lock(&self.refused) = numbers.iter().copied().collect();
    }

    /// How many objects there are, clients included: for tests of leaks.
    #[must_use]
    pub fn object_count(&self) -> usize {
        lock(&self.clients).values().map(Client::len).sum()
    }

    /// How many bytes of its memory a GPU has given out.
    #[must_use]
    pub fn vidmem_used(&self, index: u32) -> u64 {
        self.gpu(index)
            .map_or(0, |gpu| gpu.used.load(Ordering::Acquire))
    }

    /// What stopped a channel, in words: more than hardware tells. `None` while nothing did.
    #[must_use]
    pub fn last_fault(&self, client: Handle, channel: Handle) -> Option<String> {
        let channel = self.channel(client, channel)?;
        channel.stopped().map(|stop| stop.text().to_owned())
    }

    /// `NV_ESC_RM_ALLOC`: makes an object. `new` is the handle it shall have, or [`Handle::NULL`] to have
    /// one picked. A client (`NV01_ROOT_CLIENT`) is made with `client` and `parent` null.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn alloc(
        &self,
        client: Handle,
        parent: Handle,
        new: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Status> {
        create::alloc(self, client, parent, new, class, params)
    }

    /// `NV_ESC_RM_CONTROL`, for parameters without pointers.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn control(
        &self,
        client: Handle,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Status> {
        control::control(self, client, object, command, params)
    }

    /// `NV_ESC_RM_FREE`: ends an object and all below it. Once it returns, no GPU uses them.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn free(&self, client: Handle, parent: Handle, object: Handle) -> Result<(), Status> {
        let mut clients = lock(&self.clients);
        let objects = clients.get_mut(&client.0).ok_or(Status::INVALID_CLIENT)?;
        if object == client {
            let mut client = clients.remove(&client.0).ok_or(Status::INVALID_CLIENT)?;
            for (_, body) in client.take_tree(object) {
                self.end(body);
            }
            return Ok(());
        }
        let found = objects.get(object).ok_or(Status::OBJECT_NOT_FOUND)?;
        if !parent.is_null() && found.parent != parent {
            return Err(Status::INVALID_OBJECT_PARENT);
        }
        for (_, body) in objects.take_tree(object) {
            self.end(body);
        }
        Ok(())
    }

    /// Whether the sandbox keeps a call from the driver.
    fn refuses(&self, call: Refused) -> Result<(), Status> {
        match self.options.sandbox {
            _ if call
                .number()
                .is_some_and(|number| lock(&self.refused).contains(&number)) =>
            {
                Err(Status::INSUFFICIENT_PERMISSIONS)
            }
            Sandbox::Open => Ok(()),
            Sandbox::Compute if call.is_granted() => Ok(()),
            Sandbox::Compute => Err(Status::INSUFFICIENT_PERMISSIONS),
        }
    }

    /// Ends what an object stands for.
    fn end(&self, body: Body) {
        match body {
            Body::Channel { gpu, channel } => gpu.remove_channel(&channel),
            Body::Engine { class, channel } => channel.remove_object(class),
            Body::Memory(memory) => self.end_memory(memory),
            _ => {}
        }
    }

    fn gpu(&self, index: u32) -> Option<&Arc<Gpu>> {
        self.gpus.get(index as usize)
    }

    fn channel(&self, client: Handle, channel: Handle) -> Option<Arc<Channel>> {
        let clients = lock(&self.clients);
        match &clients.get(&client.0)?.get(channel)?.body {
            Body::Channel { channel, .. } => Some(channel.clone()),
            _ => None,
        }
    }
}

/// A call that a sandbox may keep from the driver.
#[derive(Clone, Copy, Debug)]
enum Refused {
    Alloc(ClassId),
    Control(u32),
    MapDma,
}

impl Refused {
    /// The class or the command.
    fn number(self) -> Option<u32> {
        match self {
            Self::Alloc(class) => Some(class.0),
            Self::Control(command) => Some(command),
            Self::MapDma => None,
        }
    }

    /// Whether "compute,utility" grants it. Which calls it does not is read off nvproxy's table of handlers, but for the
    /// debugger, which other runtimes refuse.
    fn is_granted(self) -> bool {
        use nv_proto::rm::names::classes;
        use nv_proto::rm::{Control, FbFlushGpuCache, GpuGetUuidFromGpuId, PerfBoost};

        match self {
            Self::Alloc(class) => {
                ![classes::NV01_MEMORY_VIRTUAL, classes::GT200_DEBUGGER].contains(&class)
            }
            Self::Control(command) => ![
                control::SYSTEM_GET_BUILD_VERSION_V2,
                PerfBoost::COMMAND,
                FbFlushGpuCache::COMMAND,
                GpuGetUuidFromGpuId::COMMAND,
            ]
            .contains(&command),
            Self::MapDma => false,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for gpu in &self.gpus {
            gpu.shut_down();
        }
    }
}

/// Whether a handle is none.
trait IsNull {
    fn is_null(&self) -> bool;
}

impl IsNull for Handle {
    fn is_null(&self) -> bool {
        *self == Handle::NULL
    }
}
