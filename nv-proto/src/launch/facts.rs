//! What a launch is made from: facts of the kernel, facts of the GPU, and what is asked for.

use crate::launch::{LaunchError, SmLimits};
use crate::qmd::{BANKS, Version};
use crate::unit::{Dim3, GpuVa, SmVersion};

/// A constant bank in the GPU's memory.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bank {
    /// Where it begins: a multiple of 64.
    pub va: GpuVa,
    /// Its size in bytes; 0 is no bank.
    pub size: u32,
}

/// What a loaded kernel says of itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct KernelFacts {
    /// Where its first instruction lies.
    pub program: GpuVa,
    /// Bytes of its code.
    pub program_size: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Named barriers of a block: the highest used and those below it.
    pub barriers: u32,
    /// Bytes of static shared memory of a block, without reserved ones.
    pub static_shared: u32,
    /// Bytes of shared memory that the system keeps in each block.
    pub reserved_shared: u32,
    /// Bytes of stack of a thread, the driver's 0x240 not among them.
    pub local_bytes: u32,
    /// Where the parameters begin in constant bank 0.
    pub param_base: u32,
    /// Bytes of parameters.
    pub param_size: u32,
    /// The module's constant banks by number; number 0 is not looked at.
    pub banks: [Bank; BANKS],
    /// The most threads that a block may have.
    pub max_threads: Option<u32>,
    /// The only block shape that the kernel runs with.
    pub required_block: Option<Dim3>,
    /// The only cluster shape that the kernel runs with.
    pub required_cluster: Option<Dim3>,
    /// Whether it synchronises its grid.
    pub cooperative: bool,
}

/// What a GPU, as set up, says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DeviceFacts {
    /// What its multiprocessors hold.
    pub limits: SmLimits,
    /// The launch descriptor that it takes.
    pub qmd: Version,
    /// How many multiprocessors it has.
    pub sm_count: u32,
    /// The version of machine code that it runs, as [`sass_version`] makes it.
    pub sass_version: u32,
    /// Bytes of local memory of a thread that the channel is set up for, the driver's 0x240 among them.
    ///
    /// All grids in flight share it, so all descriptors carry the same number: after it has grown, launches
    /// are prepared anew.
    pub local_bytes_per_thread: u32,
    /// Base of the generic window on shared memory.
    pub shared_window: GpuVa,
    /// Base of the generic window on local memory.
    pub local_window: GpuVa,
    /// Texture-processing clusters that the chip was designed with, where larger clusters of blocks must be
    /// kept off the numbers above.
    pub tpc_slots: Option<u32>,
}

impl DeviceFacts {
    /// A GPU of a generation with `sm_count` multiprocessors, and nothing set up.
    ///
    /// # Errors
    /// [`LaunchError::UnknownSm`].
    pub fn new(sm: SmVersion, sm_count: u32) -> Result<Self, LaunchError> {
        let qmd = match sm.0 {
            75 => Version::V02_03,
            80..=89 => Version::V03_00,
            90 => Version::V04_00,
            _ => Version::V05_00,
        };
        Ok(Self {
            limits: *SmLimits::of(sm)?,
            qmd,
            sm_count,
            // The number that graphics engine fact 12 has for sm_90 is 0x900.
            sass_version: sass_version(u32::from(sm.major()) << 8 | u32::from(sm.0 % 10)),
            local_bytes_per_thread: 0,
            shared_window: GpuVa(0),
            local_window: GpuVa(0),
            // Seen in what the vendor library writes on an H200: 8 graphics-processing clusters of 9.
            tpc_slots: (sm.0 == 90).then_some(72),
        })
    }

    /// The generation.
    #[must_use]
    pub const fn sm(&self) -> SmVersion {
        self.limits.sm
    }
}

/// `SASS_VERSION` of a GPU whose `NV2080_CTRL_GR_INFO_INDEX_SM_VERSION` is `sm_version`, such as 0x900.
#[must_use]
pub const fn sass_version(sm_version: u32) -> u32 {
    (sm_version & 0xf00) >> 4 | (sm_version & 0xf)
}

/// What stays the same from launch to launch of a kernel, as a rule.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of shared memory beyond the kernel's own.
    pub dynamic_shared: u32,
    /// Blocks of a cluster; `None` for what the kernel was compiled for, or no clusters.
    pub cluster: Option<Dim3>,
    /// For a cooperative grid, where its blocks meet: 16 bytes that begin with the words 0x10, 0, 1, 0, as the
    /// vendor library writes them.
    pub cooperative: Option<GpuVa>,
    /// How many KiB of each multiprocessor's memory are shared memory rather than cache; at least what a block
    /// needs is. `None` for as much as lets the most blocks run.
    pub carveout: Option<u16>,
}

impl Shape {
    /// Blocks of this shape, and nothing else.
    #[must_use]
    pub fn new(block: impl Into<Dim3>) -> Self {
        Self {
            block: block.into(),
            dynamic_shared: 0,
            cluster: None,
            cooperative: None,
            carveout: None,
        }
    }
}

/// What differs from launch to launch.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Call<'a> {
    /// Blocks.
    pub grid: Dim3,
    /// The bytes of the parameters.
    pub args: &'a [u8],
    /// Where constant bank 0 of this launch lies: a multiple of 256.
    pub bank0: GpuVa,
    /// A number for the launch, which kernels can read (`%gridid`).
    pub grid_id: u64,
}
