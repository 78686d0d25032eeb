//! One GPU address space: which memory is mapped where, in either of the two ways.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nv_proto::unit::{GpuVa, Handle};

use crate::calls::Whose;
use crate::driver::{Attached, Driver};
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

/// An address space of one device. It keeps the device, and the device keeps all memory that was made on it: who holds
/// memory holds its space.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    driver: Arc<dyn Driver>,
    mapper: Mapper,
    vaspace: RmObject,
    addresses: Mutex<VaAllocator>,
    regions: Regions,
    /// The other GPUs whose memory may be mapped here, by id. After what was mapped: see [`Peer`].
    peers: Mutex<BTreeMap<u32, Peer>>,
    subdevice: Arc<RmObject>,
    device: Arc<RmObject>,
}

/// Another GPU whose memory may be mapped in a space. What makes that possible stays until the space ends.
#[derive(Debug)]
enum Peer {
    /// It is known to the UVM driver's space, and whether memory of its own can be reached.
    Uvm { uuid: [u8; 16], reached: bool },
    /// It has objects in this space's client. They end in order.
    Rm {
        _peers: RmObject,
        _subdevice: RmObject,
        device: RmObject,
        _attached: Attached,
    },
}

/// Memory of another space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign<'a> {
    pub(crate) space: &'a AddressSpace,
    pub(crate) memory: Handle,
    /// Where it begins there.
    pub(crate) va: GpuVa,
    pub(crate) bytes: u64,
    /// Whether it is host memory, which every GPU reaches.
    pub(crate) host: bool,
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
        device: &Arc<RmObject>,
        subdevice: &Arc<RmObject>,
        mode: MapMode,
    ) -> Result<Self, Error> {
        let vaspace = calls::vaspace(driver, device.handle(), mode)?;
        let mapper = match mode {
            MapMode::Rm => {
                let all = calls::virtual_memory(driver, device.handle(), vaspace.handle())?;
                Mapper::Rm(all)
            }
            MapMode::Uvm => {
                let uuid = calls::gpu_uuid(&**driver, subdevice.handle())?;
                calls::uvm_register(&**driver, uuid, vaspace.handle())?;
                Mapper::Uvm(uuid)
            }
        };
        Ok(Self {
            driver: Arc::clone(driver),
            mapper,
            vaspace,
            addresses: Mutex::new(VaAllocator::new(FIRST_VA, VA_BYTES)),
            peers: Mutex::default(),
            subdevice: Arc::clone(subdevice),
            device: Arc::clone(device),
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
            Mapper::Rm(all) => self.map_rm(all, memory, va, bytes, Whose::Own),
            Mapper::Uvm(uuid) => {
                calls::uvm_map(&*self.driver, *uuid, &*self.driver, memory, va, bytes)
            }
        };
        if let Err(error) = mapped {
            self.give_back(va, bytes);
            return Err(error);
        }
        Ok(va)
    }

    fn map_rm(
        &self,
        all: &RmObject,
        memory: Handle,
        va: GpuVa,
        bytes: u64,
        whose: Whose,
    ) -> Result<(), Error> {
        let (driver, device) = (&*self.driver, self.device.handle());
        calls::map_dma(driver, device, all.handle(), memory, va, bytes, whose)
    }

    /// Makes what it takes to reach memory of another GPU: its own, or with `host` host memory that was made on it.
    /// Nothing where it is this GPU, or has been made before.
    pub(crate) fn reach(&self, other: &AddressSpace, host: bool) -> Result<(), Error> {
        let id = other.driver.gpu_id();
        if id == self.driver.gpu_id() {
            return Ok(());
        }
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.mapper {
            // Host memory is host memory to the resource manager.
            Mapper::Rm(_) if host => Ok(()),
            Mapper::Rm(_) if peers.contains_key(&id) => Ok(()),
            Mapper::Rm(_) => {
                let attached = self.driver.attach(id)?;
                let device = calls::device(&self.driver, attached.device_instance)?;
                let subdevice = calls::subdevice(&self.driver, device.handle())?;
                let pair = calls::peers(&self.driver, self.subdevice.handle(), subdevice.handle())?;
                let peer = Peer::Rm {
                    _peers: pair,
                    _subdevice: subdevice,
                    device,
                    _attached: attached,
                };
                peers.insert(id, peer);
                Ok(())
            }
            Mapper::Uvm(own) => {
                let peer = match peers.entry(id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let uuid = calls::gpu_uuid(&*other.driver, other.subdevice.handle())?;
                        calls::uvm_register_gpu(&*self.driver, uuid)?;
                        let reached = false;
                        new.insert(Peer::Uvm { uuid, reached })
                    }
                };
                if let Peer::Uvm { uuid, reached } = peer
                    && !*reached
                    && !host
                {
                    calls::uvm_enable_peers(&*self.driver, *own, *uuid)?;
                    *reached = true;
                }
                Ok(())
            }
        }
    }

    /// Maps all of a memory object of another space at an address of our choice. The object that is answered stands for
    /// it here, where one was made: it is what [`AddressSpace::unmap`] takes, and ends after.
    pub(crate) fn map_foreign(
        &self,
        foreign: &Foreign<'_>,
    ) -> Result<(GpuVa, Option<RmObject>), Error> {
        let Foreign {
            space: other,
            memory,
            va: _,
            bytes,
            host,
        } = *foreign;
        self.reach(other, host)?;
        let near = host || other.driver.gpu_id() == self.driver.gpu_id();
        let va = self.reserve(bytes)?;
        let mapped = match &self.mapper {
            Mapper::Rm(all) => {
                self.duplicate(other, memory, near)
                    .and_then(|(duplicate, whose)| {
                        self.map_rm(all, duplicate.handle(), va, bytes, whose)?;
                        Ok(Some(duplicate))
                    })
            }
            Mapper::Uvm(uuid) => {
                calls::uvm_map(&*self.driver, *uuid, &*other.driver, memory, va, bytes)
                    .map(|()| None)
            }
        };
        match mapped {
            Ok(duplicate) => Ok((va, duplicate)),
            Err(error) => {
                self.give_back(va, bytes);
                Err(error)
            }
        }
    }

    /// An object of this space's client that is memory of another's: below the device whose memory it is, for GPU
    /// memory keeps to its GPU.
    fn duplicate(
        &self,
        other: &AddressSpace,
        memory: Handle,
        near: bool,
    ) -> Result<(RmObject, Whose), Error> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let (parent, whose) = match peers.get(&other.driver.gpu_id()) {
            _ if near => (self.device.handle(), Whose::Own),
            Some(Peer::Rm { device, .. }) => (device.handle(), Whose::Peers),
            _ => {
                return Err(Error::Unsupported(
                    "the other GPU's memory has not been made reachable".into(),
                ));
            }
        };
        let client = other.driver.client();
        Ok((
            RmObject::duplicate(&self.driver, parent, client, memory)?,
            whose,
        ))
    }

    /// Ends what [`AddressSpace::map`] made.
    pub(crate) fn unmap(&self, memory: Handle, va: GpuVa, bytes: u64) {
        let unmapped = match &self.mapper {
            Mapper::Rm(virtual_memory) => {
                let device = self.device.handle();
                self.driver
                    .unmap_dma(device, virtual_memory.handle(), memory, va)
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
            let peers =
                std::mem::take(self.peers.get_mut().unwrap_or_else(PoisonError::into_inner));
            for peer in peers.into_values() {
                if let Peer::Uvm { uuid, .. } = peer {
                    let _ = calls::uvm_unregister_gpu(&*self.driver, uuid);
                }
            }
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
