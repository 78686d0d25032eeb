//! From a kernel's, a device's and a launch's facts to the descriptor, bank 0 and arguments.
//!
//! In three steps, each done as rarely as it can be:
//!
//! 1. [`prepare`], once for a kernel on a device: everything that both decide;
//! 2. [`Prepared::shape`], once for a block shape: the limits, shared memory, clusters;
//! 3. [`Shaped::encode`], for each launch: copies, then writes grid, addresses and arguments. It allocates
//!    nothing, encodes nothing anew, and divides only where there are clusters.
//!
//! What is encoded can be changed in place: [`Shaped::patch_grid`], [`Shaped::patch_args`],
//! [`Shaped::patch_shape`], and the descriptor's own [`Qmd::set_release`] and [`Qmd::set_dependent`].
//!
//! ```
//! use nv_proto::launch::{Call, DeviceFacts, KernelFacts, Shape, prepare};
//! use nv_proto::qmd::Qmd;
//! use nv_proto::unit::{Dim3, GpuVa, SmVersion};
//!
//! let device = DeviceFacts { local_bytes_per_thread: 0x240, ..DeviceFacts::new(SmVersion(90), 132)? };
//! let kernel = KernelFacts {
//!     program: GpuVa(0x7f35_eb7a_0000),
//!     program_size: 0x280,
//!     registers: 8,
//!     param_base: 0x210,
//!     param_size: 16,
//!     reserved_shared: 0x400,
//!     ..KernelFacts::default()
//! };
//! let prepared = prepare(&kernel, &device)?;
//! let launch = prepared.shape(&Shape::new(96))?;
//!
//! let (mut qmd, mut bank0) = (Qmd::new(device.qmd), [0; 0x300]);
//! let call = Call { grid: Dim3::from(300), args: &[7; 16], bank0: GpuVa(0x2_0000_0000), grid_id: 1 };
//! launch.encode(&call, &mut qmd, &mut bank0)?;
//! assert_eq!(qmd.launch().map(|launch| launch.grid), Ok(Dim3::new(300, 1, 1)));
//! assert!(launch.encode(&Call { args: &[7; 12], ..call }, &mut qmd, &mut bank0).is_err());
//! # Ok::<(), nv_proto::launch::LaunchError>(())
//! ```

mod error;
mod facts;
mod limits;

pub use error::{LaunchError, Limit};
pub use facts::{Bank, Call, DeviceFacts, KernelFacts, Shape, sass_version};
pub use limits::{
    BARRIERS_PER_BLOCK, BLOCK, CONSTANT_BANK, GRID, LimitedBy, Occupancy, REGISTER_FILE,
    REGISTER_UNIT, REGISTERS_PER_THREAD, SmLimits, THREADS_PER_BLOCK, WARP, WARP_UNIT,
    warps_by_registers,
};

use limits::check;

use crate::bank0::{self, Layout, MAX_PREFIX, Prefix, STACK_RESERVE};
use crate::error::EncodeError;
use crate::qmd::value::{
    ApiVisibleCallLimit, CgaCtaDistributionMode, CwdMembarType, QmdType, SamplerIndex,
};
use crate::qmd::{ALIGN, Qmd, Roles};
use crate::unit::{Dim3, GpuVa};

/// Constant bank 0 is bound in units of so many bytes, as the vendor library does.
pub const BANK0_UNIT: u32 = 256;
/// `QMD_GROUP_ID` of ordinary grids: what the vendor library and the reference system write.
const GROUP: u32 = 0x3f;
/// `QMD_GROUP_ID` of cooperative grids: what the vendor library writes on an H200.
const COOPERATIVE_GROUP: u32 = 8;
/// The fewest registers that the vendor library asks for on an H200.
const HOPPER_REGISTERS: u32 = 16;

/// A kernel on a device, ready to be given a shape.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    kernel: KernelFacts,
    device: DeviceFacts,
    roles: &'static Roles,
    layout: &'static Layout,
    qmd: Qmd,
}

logged!(
    Prepared,
    prepared,
    "{} on {}",
    prepared.kernel,
    prepared.device.sm()
);

/// A kernel on a device in blocks of one shape, ready to be launched.
#[derive(Clone, Copy, Debug)]
pub struct Shaped {
    qmd: Qmd,
    prefix: [u8; MAX_PREFIX],
    layout: &'static Layout,
    roles: &'static Roles,
    values: Prefix,
    kernel: KernelFacts,
    device: DeviceFacts,
    shape: Shape,
    blocks_per_sm: u32,
    /// Blocks that are resident together, for a cooperative grid.
    resident: Option<u64>,
    bank0_bytes: u32,
}

logged!(
    Shaped,
    shaped,
    "{} in {} on {}: {=u32} blocks at once on each multiprocessor",
    shaped.kernel,
    shaped.shape,
    shaped.device.sm(),
    shaped.blocks_per_sm
);

/// Checks a kernel against a device and encodes what the two decide.
///
/// # Errors
/// [`LaunchError`], naming what the kernel needs and the device has not.
pub fn prepare(kernel: &KernelFacts, device: &DeviceFacts) -> Result<Prepared, LaunchError> {
    let sm = device.sm();
    let unknown = LaunchError::UnknownSm { sm };
    let layout = Layout::of(sm).ok_or(unknown)?;
    let roles = Roles::of(device.qmd).ok_or(unknown)?;
    check(
        Limit::Registers,
        kernel.registers.into(),
        REGISTERS_PER_THREAD.into(),
    )?;
    check(
        Limit::Barriers,
        kernel.barriers.into(),
        BARRIERS_PER_BLOCK.into(),
    )?;
    let local = u64::from(kernel.local_bytes).saturating_add(STACK_RESERVE.into());
    let local = if kernel.local_bytes == 0 { 0 } else { local };
    check(
        Limit::LocalMemory,
        local,
        device.local_bytes_per_thread.into(),
    )?;
    if kernel.param_base < u32::from(layout.prefix()) {
        let prefix = layout.prefix().into();
        return Err(LaunchError::ParameterBase {
            base: kernel.param_base,
            prefix,
            sm,
        });
    }
    let bank0 = u64::from(kernel.param_base).saturating_add(kernel.param_size.into());
    check(Limit::ConstantBank, bank0, CONSTANT_BANK.into())?;

    let mut qmd = Qmd::new(device.qmd);
    qmd.set_program(kernel.program, kernel.program_size)?;
    for (index, bank) in (0..).zip(kernel.banks).skip(1) {
        if bank.size != 0 {
            qmd.set_bank(index, bank.va, bank.size)?;
        }
    }
    // At an address that each launch replaces.
    qmd.set_bank(0, GpuVa(0), bank0_bytes(kernel))?;
    qmd.set_bank_invalidate(0, true)?;
    let words = qmd.words_mut();
    roles.group.set(words, GROUP)?;
    if let Some(slot) = roles.global_caching {
        slot.set(words, 1_u32)?;
    }
    if let Some(cluster) = &roles.cluster {
        cluster.kind.set(words, QmdType::GRID_CTA.0)?;
    }
    for slot in [
        roles.invalidate_texture_header,
        roles.invalidate_texture_sampler,
        roles.invalidate_texture_data,
        roles.invalidate_shader_data,
        // Banks other than 0 are memory that copies may have changed, too.
        roles.invalidate_shader_constant,
    ] {
        slot.set(words, 1_u32)?;
    }
    roles.membar.set(words, CwdMembarType::L1_SYSMEMBAR.0)?;
    roles
        .call_limit
        .set(words, ApiVisibleCallLimit::NO_CHECK.0)?;
    roles
        .sampler_index
        .set(words, SamplerIndex::VIA_HEADER_INDEX.0)?;
    let least = if sm.major() == 9 { HOPPER_REGISTERS } else { 0 };
    roles.registers.set(words, kernel.registers.max(least))?;
    roles.barriers.set(words, kernel.barriers.max(1))?;
    roles.sass_version.set(words, device.sass_version)?;
    roles.local_high.set(
        words,
        u64::from(device.local_bytes_per_thread).next_multiple_of(16),
    )?;
    Ok(Prepared {
        kernel: *kernel,
        device: *device,
        roles,
        layout,
        qmd,
    })
}

/// Bytes of constant bank 0 that a kernel is given.
fn bank0_bytes(kernel: &KernelFacts) -> u32 {
    // Both are at most 64 KiB, which `prepare` checks.
    let bytes = kernel.param_base.saturating_add(kernel.param_size);
    bytes
        .checked_next_multiple_of(BANK0_UNIT)
        .unwrap_or(u32::MAX)
}

impl Prepared {
    /// The kernel.
    #[must_use]
    pub const fn kernel(&self) -> &KernelFacts {
        &self.kernel
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &DeviceFacts {
        &self.device
    }

    /// The descriptor as far as kernel and device decide it.
    #[must_use]
    pub const fn qmd(&self) -> &Qmd {
        &self.qmd
    }

    /// How many blocks of `shape` a multiprocessor runs at once.
    ///
    /// # Errors
    /// As [`Prepared::shape`].
    pub fn occupancy(&self, shape: &Shape) -> Result<Occupancy, LaunchError> {
        let total = self.shared_bytes(shape)?;
        let threads = self.threads(shape)?;
        let Self { kernel, device, .. } = self;
        Ok(device
            .limits
            .occupancy(threads, kernel.registers, total, kernel.barriers))
    }

    /// Threads of a block, within all limits.
    fn threads(&self, shape: &Shape) -> Result<u32, LaunchError> {
        let block = shape.block;
        for (limit, value, maximum) in [
            (Limit::BlockX, block.x, BLOCK[0]),
            (Limit::BlockY, block.y, BLOCK[1]),
            (Limit::BlockZ, block.z, BLOCK[2]),
        ] {
            if value == 0 {
                return Err(LaunchError::Zero { limit });
            }
            check(limit, value.into(), maximum.into())?;
        }
        let threads = block.count();
        check(Limit::ThreadsPerBlock, threads, THREADS_PER_BLOCK.into())?;
        if let Some(required) = self.kernel.required_block
            && required != block
        {
            return Err(LaunchError::Block {
                given: block,
                required,
            });
        }
        if let Some(most) = self.kernel.max_threads {
            check(Limit::LaunchBounds, threads, most.into())?;
        }
        let by_registers = warps_by_registers(self.kernel.registers).saturating_mul(WARP);
        check(Limit::ThreadsByRegisters, threads, by_registers.into())?;
        // At most 1024, just checked.
        Ok(u32::try_from(threads).unwrap_or(THREADS_PER_BLOCK))
    }

    /// Bytes of shared memory of a block, reserved ones included, within the limits.
    fn shared_bytes(&self, shape: &Shape) -> Result<u32, LaunchError> {
        let own = u64::from(self.kernel.static_shared).saturating_add(shape.dynamic_shared.into());
        check(
            Limit::SharedMemory,
            own,
            self.device.limits.shared_per_block.into(),
        )?;
        let total = own.saturating_add(self.kernel.reserved_shared.into());
        check(
            Limit::SharedMemory,
            total,
            self.device.limits.shared_memory().into(),
        )?;
        Ok(u32::try_from(total).unwrap_or(u32::MAX))
    }

    /// The blocks of a cluster, within all limits.
    fn cluster(&self, shape: &Shape) -> Result<Option<Dim3>, LaunchError> {
        let cluster = match (shape.cluster, self.kernel.required_cluster) {
            (Some(given), Some(required)) if given != required => {
                return Err(LaunchError::Cluster { given, required });
            }
            (Some(cluster), _) | (None, Some(cluster)) => cluster,
            (None, None) => return Ok(None),
        };
        let most = self.device.limits.cluster;
        if most <= 1 || self.roles.cluster.is_none() {
            return Err(LaunchError::NoClusters {
                sm: self.device.sm(),
            });
        }
        for (limit, value) in [
            (Limit::ClusterX, cluster.x),
            (Limit::ClusterY, cluster.y),
            (Limit::ClusterZ, cluster.z),
        ] {
            if value == 0 {
                return Err(LaunchError::Zero { limit });
            }
            check(limit, value.into(), most.into())?;
        }
        check(Limit::BlocksPerCluster, cluster.count(), most.into())?;
        Ok(Some(cluster))
    }

    /// Checks a shape and encodes what it decides.
    ///
    /// # Errors
    /// [`LaunchError`], naming the limit, the value and the most there is.
    pub fn shape(&self, shape: &Shape) -> Result<Shaped, LaunchError> {
        let Self {
            kernel,
            device,
            roles,
            layout,
            ..
        } = *self;
        let threads = self.threads(shape)?;
        let total = self.shared_bytes(shape)?;
        let cluster = self.cluster(shape)?;
        if kernel.cooperative && shape.cooperative.is_none() {
            return Err(LaunchError::NotCooperative);
        }
        if cluster.is_some() && shape.cooperative.is_some() {
            return Err(LaunchError::CooperativeClusters);
        }
        let limits = &device.limits;
        let blocks_per_sm = limits
            .occupancy(threads, kernel.registers, total, kernel.barriers)
            .blocks;
        let resident = u64::from(blocks_per_sm).saturating_mul(device.sm_count.into());
        let values = Prefix {
            block: shape.block,
            grid: Dim3::ONE,
            shared_window: device.shared_window,
            local_window: device.local_window,
            grid_id: 0,
            sm_count: device.sm_count,
            reserved_shared: kernel.reserved_shared,
            dynamic_shared: shape.dynamic_shared,
            total_shared: total,
            cluster,
            cooperative: shape.cooperative,
        };
        let mut shaped = Shaped {
            qmd: self.qmd,
            prefix: [0; MAX_PREFIX],
            layout,
            roles,
            values,
            kernel,
            device,
            shape: *shape,
            blocks_per_sm,
            resident: shape.cooperative.map(|_| resident),
            bank0_bytes: bank0_bytes(&kernel),
        };
        layout.write(&values, &mut shaped.prefix);
        let mut qmd = shaped.qmd;
        shaped.write_shape(&mut qmd)?;
        shaped.qmd = qmd;
        Ok(shaped)
    }
}

impl Shaped {
    /// The shape.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How many blocks a multiprocessor runs at once.
    #[must_use]
    pub const fn blocks_per_sm(&self) -> u32 {
        self.blocks_per_sm
    }

    /// Bytes of constant bank 0 of a launch: a multiple of 256.
    #[must_use]
    pub const fn bank0_bytes(&self) -> u32 {
        self.bank0_bytes
    }

    /// The descriptor as far as kernel, device and shape decide it.
    #[must_use]
    pub const fn qmd(&self) -> &Qmd {
        &self.qmd
    }

    /// Encodes a launch: all of `qmd`, and the first [`Shaped::bank0_bytes`] of `bank0`.
    ///
    /// # Errors
    /// [`LaunchError`] when the grid or the arguments are not what the kernel takes, when the bank's address
    /// is no multiple of 256, or when `bank0` is too short. What `qmd` and `bank0` hold then is not a launch.
    pub fn encode(
        &self,
        call: &Call<'_>,
        qmd: &mut Qmd,
        bank0: &mut [u8],
    ) -> Result<(), LaunchError> {
        self.check_grid(call.grid)?;
        let given = call.args.len();
        if usize::try_from(self.kernel.param_size) != Ok(given) {
            let expected = self.kernel.param_size.into();
            return Err(LaunchError::ArgumentBytes {
                given: widen(given),
                expected,
            });
        }
        let bank = self.bank_mut(bank0)?;
        *qmd = self.qmd;
        qmd.set_bank_address(0, aligned(call.bank0)?)?;
        self.write_grid(call.grid, qmd)?;

        let prefix = usize::from(self.layout.prefix());
        let base = usize::try_from(self.kernel.param_base).unwrap_or(usize::MAX);
        let end = base.saturating_add(given);
        // prefix <= base <= end <= the bank's size, by `prepare` and the checks above.
        if let (Some(to), Some(from)) = (bank.get_mut(..prefix), self.prefix.get(..prefix)) {
            to.copy_from_slice(from);
        }
        if let Some(gap) = bank.get_mut(prefix..base) {
            gap.fill(0);
        }
        if let Some(to) = bank.get_mut(base..end) {
            to.copy_from_slice(call.args);
        }
        if let Some(rest) = bank.get_mut(end..) {
            rest.fill(0);
        }
        self.layout.write_grid(call.grid, self.values.cluster, bank);
        self.layout.write_grid_id(call.grid_id, bank);
        Ok(())
    }

    /// Changes the grid of an encoded launch.
    ///
    /// # Errors
    /// As [`Shaped::encode`].
    pub fn patch_grid(
        &self,
        grid: Dim3,
        qmd: &mut Qmd,
        bank0: &mut [u8],
    ) -> Result<(), LaunchError> {
        self.check_grid(grid)?;
        let bank = self.bank_mut(bank0)?;
        self.write_grid(grid, qmd)?;
        self.layout.write_grid(grid, self.values.cluster, bank);
        Ok(())
    }

    /// Changes `bytes` of the arguments of an encoded launch, from `offset` in the parameters on.
    ///
    /// # Errors
    /// [`LaunchError::ArgumentRange`] and [`LaunchError::BankBuffer`].
    pub fn patch_args(
        &self,
        offset: u32,
        bytes: &[u8],
        bank0: &mut [u8],
    ) -> Result<(), LaunchError> {
        let bank = self.bank_mut(bank0)?;
        let size = self.kernel.param_size;
        let outside = LaunchError::ArgumentRange {
            offset: offset.into(),
            length: widen(bytes.len()),
            size: size.into(),
        };
        let length = u32::try_from(bytes.len()).map_err(|_| outside)?;
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(outside);
        }
        let start =
            usize::try_from(self.kernel.param_base.saturating_add(offset)).map_err(|_| outside)?;
        let end = start.saturating_add(bytes.len());
        bank.get_mut(start..end)
            .ok_or(outside)?
            .copy_from_slice(bytes);
        Ok(())
    }

    /// Gives a launch that was encoded in another shape of the same kernel this shape: releases, dependents
    /// and arguments stay, the grid is set anew.
    ///
    /// # Errors
    /// As [`Shaped::encode`].
    pub fn patch_shape(
        &self,
        grid: Dim3,
        qmd: &mut Qmd,
        bank0: &mut [u8],
    ) -> Result<(), LaunchError> {
        self.check_grid(grid)?;
        let bank = self.bank_mut(bank0)?;
        self.write_shape(qmd)?;
        self.layout.write_shape(&self.values, bank);
        self.write_grid(grid, qmd)?;
        self.layout.write_grid(grid, self.values.cluster, bank);
        Ok(())
    }

    /// Checks that a grid is within all limits.
    ///
    /// # Errors
    /// [`LaunchError`], naming the limit, the value and the most there is.
    #[inline]
    pub fn check_grid(&self, grid: Dim3) -> Result<(), LaunchError> {
        for (limit, value, maximum) in [
            (Limit::GridX, grid.x, GRID[0]),
            (Limit::GridY, grid.y, GRID[1]),
            (Limit::GridZ, grid.z, GRID[2]),
        ] {
            if value == 0 {
                return Err(LaunchError::Zero { limit });
            }
            check(limit, value.into(), maximum.into())?;
        }
        if let Some(resident) = self.resident {
            check(Limit::CooperativeBlocks, grid.count(), resident)?;
        }
        if let Some(cluster) = self.values.cluster {
            let whole = bank0::in_clusters(grid, cluster);
            if [
                whole.x.wrapping_mul(cluster.x),
                whole.y.wrapping_mul(cluster.y),
                whole.z.wrapping_mul(cluster.z),
            ] != [grid.x, grid.y, grid.z]
            {
                return Err(LaunchError::PartialCluster { grid, cluster });
            }
        }
        Ok(())
    }

    /// Writes a grid that was checked.
    #[inline]
    fn write_grid(&self, grid: Dim3, qmd: &mut Qmd) -> Result<(), EncodeError> {
        let (slots, extent) = match (&self.roles.cluster, self.values.cluster, self.resident) {
            (Some(_), Some(cluster), _) => (self.roles.grid, bank0::in_clusters(grid, cluster)),
            (Some(slots), None, Some(_)) => (slots.gpu, grid),
            _ => (self.roles.grid, grid),
        };
        let words = qmd.words_mut();
        let [x, y, z] = slots;
        x.set(words, extent.x)?;
        y.set(words, extent.y)?;
        z.set(words, extent.z)
    }

    /// Writes what the shape decides of the descriptor; whatever another shape wrote is overwritten.
    fn write_shape(&self, qmd: &mut Qmd) -> Result<(), LaunchError> {
        let Self {
            roles,
            device,
            shape,
            values,
            ..
        } = self;
        let limits = &device.limits;
        let threads = u32::try_from(shape.block.count()).unwrap_or(THREADS_PER_BLOCK);
        let total = limits.shared_allocation(values.total_shared);
        qmd.set_block(shape.block)?;
        let words = qmd.words_mut();
        roles.shared.set(words, total)?;
        let (least, target, highest) = self.shared_steps(threads, total);
        roles.config_min.set(words, config(least))?;
        roles.config_target.set(words, config(target))?;
        roles.config_max.set(words, config(highest))?;
        if let Some(slots) = &roles.cluster {
            let kind = match (values.cluster, shape.cooperative) {
                (Some(_), _) => QmdType::GRID_GPC_CGA,
                (None, Some(_)) => QmdType::GRID_GPU_CGA,
                (None, None) => QmdType::GRID_CTA,
            };
            slots.kind.set(words, kind.0)?;
            let group = if shape.cooperative.is_some() {
                COOPERATIVE_GROUP
            } else {
                GROUP
            };
            roles.group.set(words, group)?;
            let none = Dim3::new(0, 0, 0);
            let cluster = values.cluster.unwrap_or(none);
            for (slot, value) in slots.gpc.into_iter().zip([cluster.x, cluster.y, cluster.z]) {
                slot.set(words, value)?;
            }
            // Of a cooperative grid, one cluster as large as the GPU: its extent is the grid's.
            let one = u32::from(shape.cooperative.is_some());
            for (slot, grid) in slots.gpu.into_iter().zip(roles.grid) {
                slot.set(words, one)?;
                grid.set(words, one)?;
            }
            let spread = match values.cluster {
                Some(_) => CgaCtaDistributionMode::MULTI_CAST,
                None => CgaCtaDistributionMode::LOAD_BALANCING,
            };
            slots.distribution.set(words, spread.0)?;
            // As the vendor library does for clusters of more than two blocks.
            let keep_off = device.tpc_slots.filter(|_| cluster.count() > 2);
            slots.mask_valid.set(words, u32::from(keep_off.is_some()))?;
            for (first, slot) in (0_u32..).step_by(32).zip(slots.mask) {
                let below = keep_off.map_or(32, |tpcs| tpcs.saturating_sub(first).min(32));
                slot.set(words, u32::MAX.checked_shl(below).unwrap_or(0))?;
            }
        }
        Ok(())
    }

    /// The least, the best and the largest configuration of shared memory for blocks of `total` bytes, in KiB.
    ///
    /// As seen in the vendor library's launches: the least is the smallest in which as many blocks fit as in
    /// the largest; a carve-out that was asked for is the best and the largest.
    fn shared_steps(&self, threads: u32, total: u32) -> (u16, u16, u16) {
        let Self {
            kernel,
            device,
            shape,
            ..
        } = self;
        let limits = &device.limits;
        let most = limits.shared_memory();
        let rest = limits
            .occupancy_without_shared(threads, kernel.registers, kernel.barriers)
            .blocks;
        let blocks = most
            .checked_div(total)
            .map_or(rest, |fit| fit.min(rest))
            .max(1);
        let least = limits.shared_step(blocks.saturating_mul(total));
        match shape.carveout {
            None => (
                least,
                least,
                limits.shared_steps.last().copied().unwrap_or(least),
            ),
            Some(kib) => {
                let best = limits.shared_step(u32::from(kib).saturating_mul(1024).max(total));
                (least.min(best), best, best)
            }
        }
    }

    /// The bytes of the bank in a buffer for it.
    #[inline]
    fn bank_mut<'b>(&self, bank0: &'b mut [u8]) -> Result<&'b mut [u8], LaunchError> {
        let available = widen(bank0.len());
        let needed = self.bank0_bytes;
        let length = usize::try_from(needed).unwrap_or(usize::MAX);
        bank0.get_mut(..length).ok_or(LaunchError::BankBuffer {
            needed: needed.into(),
            available,
        })
    }
}

/// The code of a shared-memory configuration of `kib` KiB.
const fn config(kib: u16) -> u32 {
    (kib as u32 / 4).saturating_add(1)
}

/// An address of constant bank 0.
#[inline]
const fn aligned(va: GpuVa) -> Result<GpuVa, EncodeError> {
    if va.is_aligned(ALIGN) {
        Ok(va)
    } else {
        Err(EncodeError::Misaligned {
            field: "constant bank 0",
            unit: ALIGN,
            value: va.0,
        })
    }
}

/// A length, for an error: no host counts further than 64 bits.
#[allow(clippy::cast_lossless, reason = "usize has no lossless conversion")]
const fn widen(length: usize) -> u64 {
    length as u64
}
