//! Which GPU to open, what it is, and the GPU opened.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use nv_proto::class::ClassSet;
use nv_proto::rm::DriverVersion;
use nv_proto::unit::SmVersion;

use crate::context::Context;
#[cfg(feature = "ioctl")]
use crate::driver::kernel::Listed;
use crate::driver::{Driver, Kind};
use crate::space::MapMode;
use crate::{Error, select};

/// Which GPU to open, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which GPU.
    pub backend: Backend,
    /// How memory is mapped; `None` takes the way that works, the faster one first.
    pub map_mode: Option<MapMode>,
    /// How long a wait for the GPU may last where the caller names no limit of its own.
    pub limit: Duration,
    /// The driver release whose layouts the driver is taken to have; `None` takes its own. For the kernel driver the
    /// environment variable `NV_DRIVER_ABI` does the same.
    pub abi: Option<DriverVersion>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: Backend::Best,
            map_mode: None,
            limit: Duration::from_secs(30),
            abi: None,
        }
    }
}

/// Which GPU to open.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Backend {
    /// The first real GPU that the environment allows and that opens, else a simulated one; [`Device::fallback`] says why.
    Best,
    /// The real GPU of this index, counted after `VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES`.
    Kernel(usize),
    /// A simulated GPU.
    #[cfg(feature = "sim")]
    Sim(nv_sim::Chip),
    /// A GPU, by its index, of a simulated machine that other devices may share.
    #[cfg(feature = "sim")]
    SimIn(SimMachine, u32),
}

/// A simulated machine with any number of GPUs. A clone is the same machine.
///
/// # Examples
/// ```
/// use nv_host::{Backend, Device, Options, SimMachine};
/// use nv_sim::Chip;
///
/// let machine = SimMachine::new(&[Chip::Gh100, Chip::Gh100], nv_sim::Options::default())?;
/// let open = |index| {
///     let backend = Backend::SimIn(machine.clone(), index);
///     Device::open(&Options { backend, ..Options::default() })
/// };
/// let (first, second) = (open(0)?, open(1)?);
/// first.can_access(&second)?;
/// # Ok::<(), nv_host::Error>(())
/// ```
#[cfg(feature = "sim")]
#[derive(Clone, Debug)]
pub struct SimMachine(Arc<nv_sim::Machine>);

#[cfg(feature = "sim")]
impl SimMachine {
    /// A machine with these GPUs.
    ///
    /// # Errors
    /// When the host cannot start a thread for each GPU.
    pub fn new(chips: &[nv_sim::Chip], options: nv_sim::Options) -> Result<Self, Error> {
        let machine = nv_sim::Machine::with_options(chips, options).map_err(|error| {
            Error::Unsupported(format!("the simulated GPUs cannot start: {error}"))
        })?;
        Ok(Self(machine))
    }

    /// The machine, to look behind the boundary.
    #[must_use]
    pub fn machine(&self) -> &Arc<nv_sim::Machine> {
        &self.0
    }
}

#[cfg(feature = "sim")]
impl From<Arc<nv_sim::Machine>> for SimMachine {
    fn from(machine: Arc<nv_sim::Machine>) -> Self {
        Self(machine)
    }
}

#[cfg(feature = "sim")]
impl PartialEq for SimMachine {
    /// Whether it is the same machine.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(feature = "sim")]
impl Eq for SimMachine {}

/// What a GPU is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Info {
    /// The product's name.
    pub name: String,
    /// Whose instructions it runs.
    pub sm: SmVersion,
    /// `SM_VERSION` of the graphics engine's facts, such as 0x900.
    pub sm_version: u32,
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Warps that fit one streaming multiprocessor.
    pub warps_per_sm: u32,
    /// Texture processing clusters that local memory is counted for, absent ones included.
    pub tpc_slots: u32,
    /// Streaming multiprocessors of a texture processing cluster.
    pub sm_per_tpc: u32,
    /// The classes that are used.
    pub classes: ClassSet,
    /// The driver's release.
    pub driver: String,
    /// Which driver answers.
    pub kind: Kind,
    /// How memory is mapped.
    pub map_mode: MapMode,
    /// What the user should be told, such as that the driver's release is not known; mostly nothing.
    pub warnings: Vec<String>,
}

/// The GPU's memory as a whole, in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryInfo {
    /// All that programs can have (`HEAP_SIZE`).
    pub total: u64,
    /// What no program has (`HEAP_FREE`).
    pub free: u64,
}

/// One opened GPU, with a first [`Context`], which it stands for: memory, modules and streams are made through it.
///
/// A clone is the same device; it closes when the last of them and of what it made is gone.
#[derive(Clone, Debug)]
pub struct Device {
    context: Context,
    options: Options,
    fallback: Option<Arc<Error>>,
}

impl Device {
    /// Opens the best device with the default options.
    ///
    /// # Errors
    /// [`Error::NoDevice`] with every way that was tried.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// println!("{}", device.info().name);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn open_best() -> Result<Self, Error> {
        Self::open(&Options::default())
    }

    /// Opens a device.
    ///
    /// # Errors
    /// Whatever the driver refuses; [`Error::NoDevice`] when no way that was asked for works.
    pub fn open(options: &Options) -> Result<Self, Error> {
        let (driver, fallback) = select::driver(&options.backend, options.abi)?;
        let device = Self::open_driver(driver, options)?;
        Ok(Self {
            fallback: fallback.map(Arc::new),
            ..device
        })
    }

    /// Opens the GPU of a driver that the caller has opened: [`Options::backend`] and [`Options::abi`] are not looked
    /// at.
    ///
    /// # Errors
    /// Whatever the driver refuses.
    pub fn open_driver(driver: Arc<dyn Driver>, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            context: Context::new(driver, options)?,
            options: options.clone(),
            fallback: None,
        })
    }

    /// The real GPUs that can be opened, counted after `VISIBLE_DEVICES` or `CUDA_VISIBLE_DEVICES`: the index of each
    /// is that of [`Backend::Kernel`]. None is opened for it.
    ///
    /// # Errors
    /// [`Error::Node`] where there is no kernel driver, with what to do.
    #[cfg(feature = "ioctl")]
    pub fn list() -> Result<Vec<Listed>, Error> {
        crate::driver::kernel::list()
    }

    /// How many real GPUs can be opened, as [`Device::list`]; none where there is no kernel driver.
    #[cfg(feature = "ioctl")]
    #[must_use]
    pub fn count() -> usize {
        Self::list().map_or(0, |gpus| gpus.len())
    }

    /// The device's first context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A further context on the same GPU: an address space and channels of its own, which share nothing with those of
    /// other contexts. A fault in one leaves the others alone.
    ///
    /// # Errors
    /// Whatever the driver refuses.
    pub fn new_context(&self) -> Result<Context, Error> {
        Context::new(
            self.context.inner().objects().driver.reopen()?,
            &self.options,
        )
    }

    /// Why a simulated GPU was taken although [`Backend::Best`] was asked for; `None` for any other choice.
    #[must_use]
    pub fn fallback(&self) -> Option<&Error> {
        self.fallback.as_deref()
    }
}

impl Deref for Device {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}
