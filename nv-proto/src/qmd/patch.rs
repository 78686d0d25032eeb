//! What a launch is made of, set and read in place: grid, block, program, banks, releases, dependents.
//!
//! Each setter checks everything before it writes anything, so that a descriptor is never left half changed.

use super::roles::{DependentSlots, ReleaseSlots, Slot};
use super::value::{
    CwdMembarType, DependentQmdAction, DependentQmdType, QmdType, ReductionOp, ReleaseMembarType,
};
use super::{ALIGN, BANKS, Qmd, Roles};
use crate::error::{DecodeError, EncodeError};
use crate::unit::{Dim3, GpuVa};

/// How much a release writes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReleaseSize {
    /// The payload's low 32 bits.
    Word,
    /// The payload's 64 bits (from version 3.0 on).
    #[default]
    Double,
    /// The payload, then the GPU's time in nanoseconds: 16 bytes. 64 bits of payload from version 3.0 on.
    Timestamp,
}

/// An atomic operation in the place of a store.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Reduction {
    /// What is done.
    pub op: ReductionOp,
    /// Whether the operands are signed.
    pub signed: bool,
}

/// A semaphore that the grid releases when it is done.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Release {
    /// Where it writes; a multiple of the size written.
    pub va: GpuVa,
    /// What it writes.
    pub payload: u64,
    /// How much it writes.
    pub size: ReleaseSize,
    /// Whether the grid's stores are visible to the whole system before the release is.
    pub membar: bool,
    /// The operation, when it is more than a store.
    pub reduction: Option<Reduction>,
}

/// A descriptor that this one sets going when it is done.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Dependent {
    /// Where it lies: a multiple of 256 below 2^40.
    pub va: GpuVa,
    /// What happens to it.
    pub action: DependentQmdAction,
    /// Whether its program is fetched ahead.
    pub prefetch: bool,
}

impl Dependent {
    /// The descriptor at `va`, launched when this one is done.
    #[must_use]
    pub const fn schedule(va: GpuVa) -> Self {
        Self {
            va,
            action: DependentQmdAction::QMD_SCHEDULE,
            prefetch: true,
        }
    }
}

/// What a descriptor says of its launch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LaunchView {
    /// Blocks, whatever the way in which the descriptor counts them.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Blocks of a cluster; 1x1x1 without clusters.
    pub cluster: Dim3,
    /// Whether all blocks are resident together.
    pub cooperative: bool,
    /// Where the program begins.
    pub program: GpuVa,
    /// Registers of a thread.
    pub registers: u32,
    /// Named barriers of a block.
    pub barriers: u32,
    /// Bytes of shared memory of a block, reserved ones included.
    pub shared_bytes: u32,
    /// Bytes of local memory of a thread, counted up from the window's base.
    pub local_low_bytes: u32,
    /// Bytes of local memory of a thread, counted down from the window's end.
    pub local_high_bytes: u32,
    /// The version of the program's machine code.
    pub sass_version: u32,
    /// The bound constant banks, by number: address and size in bytes.
    pub banks: [Option<(GpuVa, u32)>; BANKS],
}

impl Qmd {
    /// The roles of this version's fields, for what is set or read whatever the version.
    fn roles(&self) -> Result<&'static Roles, EncodeError> {
        Roles::of(self.version()).ok_or(EncodeError::Unsupported {
            what: "a launch descriptor of this version",
            value: u64::from(self.version().major()) << 4 | u64::from(self.version().minor()),
        })
    }

    /// What the descriptor is: [`QmdType::GRID_CTA`] in versions that do not say.
    #[must_use]
    pub fn kind(&self) -> QmdType {
        match Roles::of(self.version()).and_then(|roles| roles.cluster) {
            Some(cluster) => QmdType(cluster.kind.get_u32(&self.words)),
            None => QmdType::GRID_CTA,
        }
    }

    /// Sets the grid, in blocks. A descriptor of clusters counts clusters: the grid must be whole ones.
    ///
    /// # Errors
    /// [`EncodeError::FieldOverflow`] and, where the grid is not made of whole clusters,
    /// [`EncodeError::Misaligned`]; [`EncodeError::Unsupported`] for a cooperative grid of clusters.
    #[inline]
    pub fn set_grid(&mut self, grid: Dim3) -> Result<(), EncodeError> {
        let roles = self.roles()?;
        let mut counts = [grid.x, grid.y, grid.z];
        if let Some(cluster) = &roles.cluster {
            match QmdType(cluster.kind.get_u32(&self.words)) {
                QmdType::GRID_GPC_CGA => {
                    for ((count, extent), slot) in
                        counts.iter_mut().zip(cluster.gpc).zip(roles.grid)
                    {
                        let unit = extent.get_u32(&self.words);
                        let whole = count.checked_div(unit).unwrap_or(0);
                        if unit == 0 || whole.checked_mul(unit) != Some(*count) {
                            return Err(EncodeError::Misaligned {
                                field: slot.name,
                                unit: unit.into(),
                                value: (*count).into(),
                            });
                        }
                        *count = whole;
                    }
                }
                // One cluster as large as the grid.
                QmdType::GRID_GPU_CGA => {
                    self.set_all(cluster.gpu, counts)?;
                    counts = [1; 3];
                }
                // Nobody has seen which extent holds what.
                QmdType::GRID_GPU_GPC_CGA => {
                    return Err(EncodeError::Unsupported {
                        what: "the grid of a descriptor of type GRID_GPU_GPC_CGA",
                        value: cluster.kind.get(&self.words),
                    });
                }
                _ => {}
            }
        }
        self.set_all(roles.grid, counts)
    }

    /// Sets the block, in threads.
    ///
    /// # Errors
    /// [`EncodeError::FieldOverflow`].
    #[inline]
    pub fn set_block(&mut self, block: Dim3) -> Result<(), EncodeError> {
        self.set_all(self.roles()?.block, [block.x, block.y, block.z])
    }

    /// Sets three fields or none.
    #[inline]
    fn set_all(&mut self, slots: [Slot; 3], values: [u32; 3]) -> Result<(), EncodeError> {
        for (slot, value) in slots.into_iter().zip(values) {
            slot.check(value.into())?;
        }
        for (slot, value) in slots.into_iter().zip(values) {
            slot.set(&mut self.words, value)?;
        }
        Ok(())
    }

    /// Sets where the program begins, and what of its `size` bytes is fetched ahead: at most 511 units of 256.
    ///
    /// # Errors
    /// [`EncodeError::Misaligned`] and [`EncodeError::FieldOverflow`]. The fetch is in units of 256 bytes, so
    /// it begins at or before the program.
    pub fn set_program(&mut self, va: GpuVa, size: u32) -> Result<(), EncodeError> {
        let roles = self.roles()?;
        let mut words = self.words;
        roles.program.set(&mut words, va.0)?;
        roles.prefetch.set(&mut words, va.0 & !0xff)?;
        roles
            .prefetch_size
            .set(&mut words, (size >> 8).min(0x1ff))?;
        self.words = words;
        Ok(())
    }

    /// Binds constant bank `index` to `size` bytes at `va`. The size is counted in units of 16 bytes: it is
    /// rounded up.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`], [`EncodeError::Misaligned`] (64 bytes from version 4.0 on) and
    /// [`EncodeError::FieldOverflow`].
    pub fn set_bank(&mut self, index: u32, va: GpuVa, size: u32) -> Result<(), EncodeError> {
        let bank = self.bank(index)?;
        let mut words = self.words;
        bank.address.set(&mut words, va.0)?;
        bank.size
            .set(&mut words, u64::from(size).next_multiple_of(16))?;
        bank.valid.set(&mut words, 1_u32)?;
        self.words = words;
        Ok(())
    }

    /// Moves a bound constant bank, leaving its size.
    ///
    /// # Errors
    /// As [`Qmd::set_bank`].
    #[inline]
    pub fn set_bank_address(&mut self, index: u32, va: GpuVa) -> Result<(), EncodeError> {
        self.bank(index)?.address.set(&mut self.words, va.0)
    }

    /// Says whether the GPU drops what it has cached of constant bank `index` before the grid starts.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`].
    pub fn set_bank_invalidate(&mut self, index: u32, invalidate: bool) -> Result<(), EncodeError> {
        self.bank(index)?
            .invalidate
            .set(&mut self.words, u32::from(invalidate))
    }

    /// Says who sees what the grid wrote once it has ended: the host and other GPUs too (`L1_SYSMEMBAR`), or this GPU
    /// alone (`L1_MEMBAR`), which is enough for a grid that depends on it and is cheaper.
    ///
    /// # Errors
    /// [`EncodeError::Unsupported`] for a version that is not known.
    pub fn set_membar(&mut self, membar: CwdMembarType) -> Result<(), EncodeError> {
        let slot = self.roles()?.membar;
        slot.set(&mut self.words, membar.0)
    }

    /// Who sees what the grid wrote once it has ended.
    ///
    /// # Errors
    /// As [`Qmd::set_membar`].
    pub fn membar(&self) -> Result<CwdMembarType, EncodeError> {
        let raw = self.roles()?.membar.get(&self.words);
        // A field of two bits.
        Ok(CwdMembarType(u32::try_from(raw).unwrap_or(u32::MAX)))
    }

    fn bank(&self, index: u32) -> Result<super::roles::Bank, EncodeError> {
        let banks = &self.roles()?.banks;
        let bank = usize::try_from(index)
            .ok()
            .and_then(|index| banks.get(index));
        bank.copied().ok_or(EncodeError::IndexOutOfRange {
            field: "CONSTANT_BUFFER_VALID",
            count: 8,
            index,
        })
    }

    /// Sets release `index`: there are two up to version 2.4, three from 3.0 on. `None` disables it.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`]; [`EncodeError::Misaligned`] for an address that is no multiple of
    /// what is written; [`EncodeError::FieldOverflow`] for an address or a payload that the version cannot
    /// hold.
    pub fn set_release(&mut self, index: u32, release: Option<Release>) -> Result<(), EncodeError> {
        let slots = self.release_slots(index)?;
        let words = &mut self.words;
        let Some(release) = release else {
            return slots.enable.set(words, 0_u32);
        };
        let Release {
            va,
            payload,
            size,
            membar,
            reduction,
        } = release;
        let operation = reduction.map_or(0, |reduction| reduction.op.0);
        // Everything that can be refused, before anything is written.
        let code = size_code(slots, size)?;
        check_release_address(slots, size, va)?;
        check_payload(slots, size, payload)?;
        slots.operation.check(operation.into())?;

        slots.address.set(words, va.0)?;
        slots.payload.set(words, payload)?;
        if let Some(slot) = slots.payload64 {
            slot.set(words, u32::from(size != ReleaseSize::Word))?;
        }
        slots.size.set(words, code)?;
        let membar = if membar {
            ReleaseMembarType::FE_SYSMEMBAR
        } else {
            ReleaseMembarType::FE_NONE
        };
        slots.membar.set(words, membar.0)?;
        slots.reduction.set(words, u32::from(reduction.is_some()))?;
        slots.operation.set(words, operation)?;
        slots.format.set(
            words,
            u32::from(reduction.is_some_and(|reduction| reduction.signed)),
        )?;
        slots.enable.set(words, 1_u32)
    }

    /// Release `index`; `None` when it is disabled or not there.
    #[must_use]
    pub fn release(&self, index: u32) -> Option<Release> {
        let slots = self.release_slots(index).ok()?;
        let words = &self.words;
        if slots.enable.get(words) == 0 {
            return None;
        }
        let wide = slots.payload64.is_none_or(|slot| slot.get(words) != 0);
        let payload = slots.payload.get(words);
        let payload = if wide {
            payload
        } else {
            payload & u64::from(u32::MAX)
        };
        let size = size_of(slots.size.get(words));
        let reduction = (slots.reduction.get(words) != 0).then(|| Reduction {
            op: ReductionOp(slots.operation.get_u32(words)),
            signed: slots.format.get(words) != 0,
        });
        Some(Release {
            va: GpuVa(slots.address.get(words)),
            payload,
            size,
            membar: slots.membar.get(words) != 0,
            reduction,
        })
    }

    /// The first release that is not enabled; `None` when all are.
    #[must_use]
    pub fn free_release(&self) -> Option<u32> {
        let slots = Roles::of(self.version())?.releases;
        let free = slots
            .iter()
            .position(|slots| slots.enable.get(&self.words) == 0)?;
        u32::try_from(free).ok()
    }

    /// Moves an enabled release to another semaphore.
    ///
    /// # Errors
    /// As [`Qmd::set_release`], and [`EncodeError::IndexOutOfRange`] for a release that is not enabled.
    pub fn set_release_address(&mut self, index: u32, va: GpuVa) -> Result<(), EncodeError> {
        let (slots, size) = self.enabled(index)?;
        check_release_address(slots, size, va)?;
        slots.address.set(&mut self.words, va.0)
    }

    /// Changes what an enabled release writes.
    ///
    /// # Errors
    /// As [`Qmd::set_release`], and [`EncodeError::IndexOutOfRange`] for a release that is not enabled.
    #[inline]
    pub fn set_release_payload(&mut self, index: u32, payload: u64) -> Result<(), EncodeError> {
        let (slots, size) = self.enabled(index)?;
        check_payload(slots, size, payload)?;
        slots.payload.set(&mut self.words, payload)
    }

    #[inline]
    fn enabled(&self, index: u32) -> Result<(&'static ReleaseSlots, ReleaseSize), EncodeError> {
        let slots = self.release_slots(index)?;
        if slots.enable.get(&self.words) == 0 {
            let count = self.free_release().unwrap_or(0);
            return Err(EncodeError::IndexOutOfRange {
                field: "enabled release",
                count,
                index,
            });
        }
        Ok((slots, size_of(slots.size.get(&self.words))))
    }

    fn release_slots(&self, index: u32) -> Result<&'static ReleaseSlots, EncodeError> {
        let slots = self.roles()?.releases;
        usize::try_from(index)
            .ok()
            .and_then(|index| slots.get(index))
            .ok_or(EncodeError::IndexOutOfRange {
                field: "RELEASE_ENABLE",
                count: u32::try_from(slots.len()).unwrap_or(u32::MAX),
                index,
            })
    }

    /// Sets what happens when the grid is done: versions up to 3.0 have one dependent descriptor, later ones two.
    /// `None` disables it.
    ///
    /// # Errors
    /// [`EncodeError::IndexOutOfRange`]; [`EncodeError::Misaligned`] and [`EncodeError::FieldOverflow`] for
    /// its address; [`EncodeError::Unsupported`] for anything but launching it in version 2.3.
    pub fn set_dependent(
        &mut self,
        index: u32,
        dependent: Option<Dependent>,
    ) -> Result<(), EncodeError> {
        let slots = self.dependent_slots(index)?;
        let Some(Dependent {
            va,
            action,
            prefetch,
        }) = dependent
        else {
            return slots.enable.set(&mut self.words, 0_u32);
        };
        let mut words = self.words;
        if !va.is_aligned(ALIGN) {
            return Err(EncodeError::Misaligned {
                field: slots.pointer.name,
                unit: ALIGN,
                value: va.0,
            });
        }
        slots.pointer.set(&mut words, va.0 >> 8)?;
        match slots.action {
            Some(slot) => slot.set(&mut words, action.0)?,
            None if action == DependentQmdAction::QMD_SCHEDULE => {}
            None => {
                return Err(EncodeError::Unsupported {
                    what: "another action on a dependent descriptor than QMD_SCHEDULE in version 2.3",
                    value: action.0.into(),
                });
            }
        }
        if let Some(slot) = slots.kind {
            slot.set(&mut words, DependentQmdType::GRID.0)?;
        }
        if let Some(slot) = slots.prefetch {
            slot.set(&mut words, u32::from(prefetch))?;
        }
        slots.enable.set(&mut words, 1_u32)?;
        self.words = words;
        Ok(())
    }

    /// Dependent descriptor `index`; `None` when it is disabled or not there.
    #[must_use]
    pub fn dependent(&self, index: u32) -> Option<Dependent> {
        let slots = self.dependent_slots(index).ok()?;
        let words = &self.words;
        (slots.enable.get(words) != 0).then(|| Dependent {
            va: GpuVa(slots.pointer.get(words) << 8),
            action: slots
                .action
                .map_or(DependentQmdAction::QMD_SCHEDULE, |slot| {
                    DependentQmdAction(slot.get_u32(words))
                }),
            prefetch: slots.prefetch.is_some_and(|slot| slot.get(words) != 0),
        })
    }

    fn dependent_slots(&self, index: u32) -> Result<&'static DependentSlots, EncodeError> {
        let slots = self.roles()?.dependents;
        usize::try_from(index)
            .ok()
            .and_then(|index| slots.get(index))
            .ok_or(EncodeError::IndexOutOfRange {
                field: "DEPENDENT_QMD_ENABLE",
                count: u32::try_from(slots.len()).unwrap_or(u32::MAX),
                index,
            })
    }

    /// What the descriptor says of its launch, for what runs it or prints it.
    ///
    /// # Errors
    /// [`DecodeError::BadValue`] for a descriptor that is no grid, and for a version that launches nothing
    /// here.
    pub fn launch(&self) -> Result<LaunchView, DecodeError> {
        let words = &self.words;
        let roles = Roles::of(self.version()).ok_or(DecodeError::BadValue {
            what: "QMD_MINOR_VERSION of a launch",
            offset: 0,
            value: self.version().minor().into(),
        })?;
        let three = |slots: [Slot; 3]| {
            let [x, y, z] = slots.map(|slot| slot.get_u32(words));
            Dim3 { x, y, z }
        };
        let times = |a: Dim3, b: Dim3| Dim3 {
            x: a.x.saturating_mul(b.x),
            y: a.y.saturating_mul(b.y),
            z: a.z.saturating_mul(b.z),
        };
        let mut grid = three(roles.grid);
        let mut cluster = Dim3::ONE;
        let mut cooperative = false;
        if let Some(slots) = &roles.cluster {
            match self.kind() {
                QmdType::GRID_CTA => {}
                QmdType::GRID_GPC_CGA => {
                    cluster = three(slots.gpc);
                    grid = times(grid, cluster);
                }
                QmdType::GRID_GPU_CGA => {
                    cooperative = true;
                    grid = times(grid, three(slots.gpu));
                }
                QmdType::GRID_GPU_GPC_CGA => {
                    cooperative = true;
                    cluster = three(slots.gpc);
                    grid = times(times(grid, three(slots.gpu)), cluster);
                }
                QmdType(value) => {
                    return Err(DecodeError::BadValue {
                        what: "QMD_TYPE of a launch",
                        offset: 0,
                        value: value.into(),
                    });
                }
            }
        }
        Ok(LaunchView {
            grid,
            block: three(roles.block),
            cluster,
            cooperative,
            program: GpuVa(roles.program.get(words)),
            registers: roles.registers.get_u32(words),
            barriers: roles.barriers.get_u32(words),
            shared_bytes: roles.shared.get_u32(words),
            local_low_bytes: roles.local_low.get_u32(words),
            local_high_bytes: roles.local_high.get_u32(words),
            sass_version: roles.sass_version.get_u32(words),
            banks: roles.banks.map(|bank| {
                (bank.valid.get(words) != 0)
                    .then(|| (GpuVa(bank.address.get(words)), bank.size.get_u32(words)))
            }),
        })
    }
}

/// `RELEASE_STRUCTURE_SIZE` of a release: `SEMAPHORE_FOUR_WORDS`, `_ONE_WORD` or `_TWO_WORDS`, of which
/// versions 2.x have no two words.
fn size_code(slots: &ReleaseSlots, size: ReleaseSize) -> Result<u32, EncodeError> {
    match size {
        ReleaseSize::Timestamp => Ok(0),
        ReleaseSize::Word => Ok(1),
        ReleaseSize::Double if slots.payload64.is_some() => Ok(2),
        ReleaseSize::Double => Err(EncodeError::FieldOverflow {
            field: slots.size.name,
            width: 1,
            value: 2,
        }),
    }
}

/// The size that [`size_code`] says.
const fn size_of(code: u64) -> ReleaseSize {
    match code {
        0 => ReleaseSize::Timestamp,
        1 => ReleaseSize::Word,
        _ => ReleaseSize::Double,
    }
}

fn check_release_address(
    slots: &ReleaseSlots,
    size: ReleaseSize,
    va: GpuVa,
) -> Result<(), EncodeError> {
    let unit = match size {
        ReleaseSize::Word => 4,
        ReleaseSize::Double => 8,
        ReleaseSize::Timestamp => 16,
    };
    if !va.is_aligned(unit) {
        return Err(EncodeError::Misaligned {
            field: slots.address.name,
            unit,
            value: va.0,
        });
    }
    slots.address.check(va.0)
}

fn check_payload(slots: &ReleaseSlots, size: ReleaseSize, payload: u64) -> Result<(), EncodeError> {
    if size == ReleaseSize::Word && payload > u64::from(u32::MAX) {
        let field = slots.payload.name();
        return Err(EncodeError::FieldOverflow {
            field,
            width: 32,
            value: payload,
        });
    }
    slots.payload.check(payload)
}
