//! Which GPU to open, what it is, and the GPU opened.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use nv_proto::class::ClassSet;
use nv_proto::unit::SmVersion;

use crate::context::Context;
use crate::driver::Kind;
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: Backend::Best,
            map_mode: None,
            limit: Duration::from_secs(30),
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
}

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
        let (driver, fallback) = select::driver(&options.backend)?;
        Ok(Self {
            context: Context::new(driver, options)?,
            options: options.clone(),
            fallback: fallback.map(Arc::new),
        })
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
