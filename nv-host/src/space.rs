//! One GPU address space: which memory is mapped where, in either of the two ways.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nv_proto::unit::{GpuVa, Handle};

use crate::driver::Driver;
use crate::memory::Regions;
use crate::object::RmObject;
use crate::va::VaAllocator;
use crate::{Error, calls};

/// How memory is mapped for the GPU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MapMode {
    /// By the resource manager alone; the UVM node is not opened. The faster one: the UVM driver takes about
    /// 0.1 s to register a GPU (measured on an H200).
    Rm,
    /// By the UVM driver: the one that sandboxes allow which grant only compute.
    Uvm,
}

impl fmt::Display for MapMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rm => "RM",
            Self::Uvm => "UVM",
        })
    }
}

/// Address space that buffers, code and queues are mapped in. Below 2^40, since the launch descriptors of
/// Ampere and Ada hold 40-bit addresses (`PROGRAM_ADDRESS`, `RELEASE0_ADDRESS`), and apart from the windows.
const FIRST_VA: GpuVa = GpuVa(64 << 30);
/// See [`FIRST_VA`].
const VA_BYTES: u64 = (1 << 40) - (64 << 30);

/// An address space of one device.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    driver: Arc<dyn Driver>,
    device: Handle,
    mapper: Mapper,
    vaspace: RmObject,
    addresses: Mutex<VaAllocator>,
    regions: Regions,
}

/// What makes the mappings.
#[derive(Debug)]
enum Mapper {
    /// The `NV01_MEMORY_VIRTUAL` object that stands for the whole space.
    Rm(RmObject),
    /// The GPU's UUID, by which the UVM driver knows it.
    Uvm([u8; 16]),
}

impl AddressSpace {
    /// Makes an address space of `device`.
    pub(crate) fn new(
        driver: &Arc<dyn Driver>,
        device: Handle,
        subdevice: Handle,
        mode: MapMode,
    ) -> Result<Self, Error> {
        let vaspace = calls::vaspace(driver, device, mode)?;
        let mapper = match mode {
            MapMode::Rm => Mapper::Rm(calls::virtual_memory(driver, device, vaspace.handle())?),
            MapMode::Uvm => {
                let uuid = calls::gpu_uuid(&**driver, subdevice)?;
                calls::uvm_register(&**driver, uuid, vaspace.handle())?;
                Mapper::Uvm(uuid)
            }
        };
        Ok(Self {
            driver: Arc::clone(driver),
            device,
            mapper,
            vaspace,
            addresses: Mutex::new(VaAllocator::new(FIRST_VA, VA_BYTES)),
            regions: Regions::default(),
        })
    }

    /// The RM object of the space.
    pub(crate) fn handle(&self) -> Handle {
        self.vaspace.handle()
    }

    /// What is in use in it.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// How it maps.
    pub(crate) fn mode(&self) -> MapMode {
        match self.mapper {
            Mapper::Rm(_) => MapMode::Rm,
            Mapper::Uvm(_) => MapMode::Uvm,
        }
    }

    /// Maps `bytes` of a memory object at an address of our choice.
    pub(crate) fn map(&self, memory: Handle, bytes: u64) -> Result<GpuVa, Error> {
        let va = self.reserve(bytes)?;
        let mapped = match &self.mapper {
            Mapper::Rm(virtual_memory) => calls::map_dma(
                &*self.driver,
                self.device,
                virtual_memory.handle(),
                memory,
                va,
                bytes,
            ),
            Mapper::Uvm(uuid) => calls::uvm_map(&*self.driver, *uuid, memory, va, bytes),
        };
        if let Err(error) = mapped {
            self.give_back(va, bytes);
            return Err(error);
        }
        Ok(va)
    }

    /// Ends what [`AddressSpace::map`] made.
    pub(crate) fn unmap(&self, memory: Handle, va: GpuVa, bytes: u64) {
        let unmapped = match &self.mapper {
            Mapper::Rm(virtual_memory) => {
                self.driver
                    .unmap_dma(self.device, virtual_memory.handle(), memory, va)
            }
            Mapper::Uvm(_) => calls::uvm_free(&*self.driver, va, bytes),
        };
        // Addresses whose mapping could not be ended are not used again.
        if unmapped.is_ok() {
            self.give_back(va, bytes);
        }
    }

    /// Tells the UVM driver of a channel, which it needs before the channel runs; nothing without UVM.
    ///
    /// The channels of a group share buffers of the GPU's, which the UVM driver maps at the addresses given with
    /// the first of them and keeps there while any of the group needs them (an H200 answered
    /// `NV_ERR_UVM_ADDRESS_IN_USE` to their reuse): so the addresses belong to the group.
    pub(crate) fn register_channel(
        &self,
        channel: Handle,
        reserved: &mut Vec<GpuVa>,
    ) -> Result<Option<Registration>, Error> {
        let Mapper::Uvm(uuid) = self.mapper else {
            return Ok(None);
        };
        let register =
            |va| calls::uvm_register_channel(&*self.driver, uuid, channel, va, CHANNEL_VA_BYTES);
        // Where all that the channel needs is shared, the addresses are not looked at.
        if let Some(va) = reserved.last()
            && register(*va).is_ok()
        {
            return Ok(Some(Registration { uuid, channel }));
        }
        let va = self.reserve(CHANNEL_VA_BYTES)?;
        match register(va) {
            Ok(()) => {
                reserved.push(va);
                Ok(Some(Registration { uuid, channel }))
            }
            Err(error) => {
                self.give_back(va, CHANNEL_VA_BYTES);
                Err(error)
            }
        }
    }

    /// Ends a registration; before the channel is freed.
    pub(crate) fn unregister_channel(&self, registration: &Registration) {
        let Registration { uuid, channel } = *registration;
        // What fails here ends with the channel.
        let _ = calls::uvm_unregister_channel(&*self.driver, uuid, channel);
    }

    /// Gives back what [`AddressSpace::register_channel`] reserved, once the group is gone.
    pub(crate) fn give_back_channels(&self, reserved: Vec<GpuVa>) {
        for va in reserved {
            self.give_back(va, CHANNEL_VA_BYTES);
        }
    }

    fn reserve(&self, bytes: u64) -> Result<GpuVa, Error> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(bytes)
    }

    fn give_back(&self, va: GpuVa, bytes: u64) {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .give_back(va, bytes);
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        if let Mapper::Uvm(uuid) = self.mapper {
            // What fails here ends with the process's UVM descriptor all the same.
            let _ = calls::uvm_unregister(&*self.driver, uuid);
        }
    }
}

/// Addresses that the UVM driver maps a channel's own buffers in (the reference system gives as much).
const CHANNEL_VA_BYTES: u64 = 64 << 20;

/// A channel that the UVM driver knows.
#[derive(Debug)]
pub(crate) struct Registration {
    uuid: [u8; 16],
    channel: Handle,
}
