//! The UVM driver: external ranges of an address space that several GPUs share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use nv_proto::rm::Status;
use nv_proto::unit::Handle;
use nv_proto::uvm::{self, UvmCommand};

use crate::channel::{Channel, lock};
use crate::fields::Fields;
use crate::mmu::{MapError, Permission, Space};

use super::Machine;
use super::map::{region, remap};
use super::object::Body;

/// One opened UVM node.
#[derive(Debug)]
pub struct Uvm {
    machine: Arc<Machine>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    initialized: bool,
    /// The GPUs registered, by index, with their address space.
    gpus: BTreeMap<u32, Option<Arc<Space>>>,
    /// External ranges: length by first address.
    ranges: BTreeMap<u64, u64>,
    /// The channels registered, with their GPU and the address given for their buffers.
    channels: Vec<(u32, u64, Weak<Channel>)>,
    /// Pairs of GPUs that reach each other's memory, the smaller index first.
    peers: Vec<(u32, u32)>,
}

impl Machine {
    /// Opens the UVM node.
    #[must_use]
    pub fn open_uvm(self: &Arc<Self>) -> Uvm {
        Uvm {
            machine: self.clone(),
            state: Mutex::default(),
        }
    }
}

impl Uvm {
    /// One ioctl. Its status is left in `rmStatus` of the parameters, where the release has it, and answered.
    ///
    /// # Errors
    /// The status that UVM answers, where it is no warning; a command that is not known, or too few bytes.
    pub fn ioctl(&self, command: u32, params: &mut [u8]) -> Result<Status, Status> {
        let version = self.machine.options.version;
        let shape = uvm::shape(command, version).ok_or(Status::NOT_SUPPORTED)?;
        let mut fields = Fields::at_least(shape, version, params)?;
        let status = match self.run(command, &mut fields) {
            Ok(status) | Err(status) => status,
        };
        fields.set_u32("rmStatus", status.0);
        if status.is_error() {
            Err(status)
        } else {
            Ok(status)
        }
    }

    fn run(&self, command: u32, fields: &mut Fields<'_>) -> Result<Status, Status> {
        let mut state = lock(&self.state);
        match command {
            uvm::Initialize::COMMAND => {
                state.initialized = true;
                return Ok(Status::OK);
            }
            // The process's life is tied to the node anyway.
            uvm::MmInitialize::COMMAND => return Ok(Status::WARN_NOTHING_TO_DO),
            _ if !state.initialized => return Err(Status::ILLEGAL_ACTION),
            _ => {}
        }
        match command {
            uvm::RegisterGpu::COMMAND => {
                let gpu = self.gpu(fields, "gpu_uuid")?;
                if state.gpus.contains_key(&gpu) {
                    return Err(Status::INVALID_DEVICE);
                }
                state.gpus.insert(gpu, None);
                fields.set("numaEnabled", &[0]);
                fields.set_u32("numaNodeId", u32::MAX);
            }
            uvm::UnregisterGpu::COMMAND => {
                let gpu = self.gpu(fields, "gpu_uuid")?;
                state.unregister_space(gpu);
                state.gpus.remove(&gpu).ok_or(Status::INVALID_DEVICE)?;
                state.peers.retain(|(a, b)| *a != gpu && *b != gpu);
            }
            uvm::RegisterGpuVaspace::COMMAND => self.register_space(&mut state, fields)?,
            uvm::UnregisterGpuVaspace::COMMAND => {
                let gpu = self.gpu(fields, "gpuUuid")?;
                if state.space(gpu).is_none() {
                    return Err(Status::INVALID_DEVICE);
                }
                state.unregister_space(gpu);
            }
            uvm::RegisterChannel::COMMAND => self.register_channel(&mut state, fields)?,
            uvm::UnregisterChannel::COMMAND => {
                let (client, channel) = (
                    Handle(fields.u32("hClient")),
                    Handle(fields.u32("hChannel")),
                );
                let channel = self
                    .machine
                    .channel(client, channel)
                    .ok_or(Status::INVALID_CHANNEL)?;
                let before = state.channels.len();
                state
                    .channels
                    .retain(|(_, _, other)| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(&channel)));
                if state.channels.len() == before {
                    return Err(Status::INVALID_CHANNEL);
                }
            }
            uvm::CreateExternalRange::COMMAND => {
                let (base, length) = (fields.u64("base"), fields.u64("length"));
                check_pages(base, length)?;
                if state.overlaps(base, length) {
                    return Err(Status::UVM_ADDRESS_IN_USE);
                }
                state.ranges.insert(base, length);
            }
            uvm::MapExternalAllocation::COMMAND => self.map(&state, fields)?,
            uvm::UnmapExternal::COMMAND => {
                let (base, length) = (fields.u64("base"), fields.u64("length"));
                check_pages(base, length)?;
                let space = state
                    .space(self.gpu(fields, "gpuUuid")?)
                    .ok_or(Status::INVALID_DEVICE)?;
                if !state.holds(base, length) {
                    return Err(Status::INVALID_ADDRESS);
                }
                space.unmap_range(base, length);
            }
            uvm::Free::COMMAND => {
                let base = fields.u64("base");
                let length = state.ranges.remove(&base).ok_or(Status::INVALID_ADDRESS)?;
                for space in state.gpus.values().flatten() {
                    space.unmap_range(base, length);
                }
            }
            uvm::EnablePeerAccess::COMMAND => {
                let pair = self.pair(&state, fields)?;
                if state.peers.contains(&pair) {
                    return Err(Status::INVALID_DEVICE);
                }
                if !self.machine.reach_each_other(pair.0, pair.1) {
                    return Err(Status::NOT_SUPPORTED);
                }
                state.peers.push(pair);
            }
            uvm::DisablePeerAccess::COMMAND => {
                let pair = self.pair(&state, fields)?;
                let index = state.peers.iter().position(|other| *other == pair);
                state
                    .peers
                    .swap_remove(index.ok_or(Status::INVALID_DEVICE)?);
            }
            uvm::PageableMemAccess::COMMAND => fields.set("pageableMemAccess", &[0]),
            _ => return Err(Status::NOT_SUPPORTED),
        }
        Ok(Status::OK)
    }

    /// The GPU that a UUID names.
    fn gpu(&self, fields: &mut Fields<'_>, name: &str) -> Result<u32, Status> {
        let uuid = fields.from(name).get(..16).unwrap_or_default().to_vec();
        let found = self
            .machine
            .gpus
            .iter()
            .find(|gpu| gpu.uuid.as_slice() == uuid);
        found.map(|gpu| gpu.index).ok_or(Status::GPU_UUID_NOT_FOUND)
    }

    fn pair(&self, state: &State, fields: &mut Fields<'_>) -> Result<(u32, u32), Status> {
        let (a, b) = (self.gpu(fields, "gpuUuidA")?, self.gpu(fields, "gpuUuidB")?);
        if a == b || !state.gpus.contains_key(&a) || !state.gpus.contains_key(&b) {
            return Err(Status::INVALID_DEVICE);
        }
        Ok((a.min(b), a.max(b)))
    }

    fn register_space(&self, state: &mut State, fields: &mut Fields<'_>) -> Result<(), Status> {
        let gpu = self.gpu(fields, "gpuUuid")?;
        let (client, handle) = (fields.u32("hClient"), Handle(fields.u32("hVaSpace")));
        let clients = lock(&self.machine.clients);
        let objects = clients.get(&client).ok_or(Status::INVALID_CLIENT)?;
        let Some(Body::Space(space)) = objects.body(handle) else {
            return Err(Status::INVALID_OBJECT_HANDLE);
        };
        if !space.external {
            return Err(Status::INVALID_FLAGS);
        }
        match state.gpus.get_mut(&gpu) {
            Some(slot @ None) => *slot = Some(space.clone()),
            // Not registered, or with an address space already.
            _ => return Err(Status::INVALID_DEVICE),
        }
        Ok(())
    }

    fn register_channel(&self, state: &mut State, fields: &mut Fields<'_>) -> Result<(), Status> {
        let gpu = self.gpu(fields, "gpuUuid")?;
        let space = state.space(gpu).ok_or(Status::INVALID_DEVICE)?;
        let (client, handle) = (
            Handle(fields.u32("hClient")),
            Handle(fields.u32("hChannel")),
        );
        let channel = self
            .machine
            .channel(client, handle)
            .ok_or(Status::INVALID_CHANNEL)?;
        if !Arc::ptr_eq(&channel.space, space) {
            return Err(Status::INVALID_CHANNEL);
        }
        let (base, length) = (fields.u64("base"), fields.u64("length"));
        check_pages(base, length)?;
        if state.overlaps(base, length) {
            return Err(Status::UVM_ADDRESS_IN_USE);
        }
        state.channels.push((gpu, base, Arc::downgrade(&channel)));
        Ok(())
    }

    fn map(&self, state: &State, fields: &mut Fields<'_>) -> Result<(), Status> {
        /// Size of `UvmGpuMappingAttributes`.
        const ATTRIBUTES_BYTES: usize = 36;

        let (base, length, offset) = (
            fields.u64("base"),
            fields.u64("length"),
            fields.u64("offset"),
        );
        let count = usize::try_from(fields.u64("gpuAttributesCount")).unwrap_or(usize::MAX);
        check_pages(base, length)?;
        if !state.holds(base, length) {
            return Err(Status::INVALID_ADDRESS);
        }
        let (client, handle) = (fields.u32("hClient"), Handle(fields.u32("hMemory")));
        let clients = lock(&self.machine.clients);
        let objects = clients.get(&client).ok_or(Status::INVALID_CLIENT)?;
        let Some(Body::Memory(object)) = objects.body(handle) else {
            return Err(Status::OBJECT_NOT_FOUND);
        };
        // Whatever the memory's own pages: on an H200 memory of 2 MiB pages was mapped at an odd MiB, and
        // 24 KiB of memory of 64 KiB pages.
        if offset % 4096 != 0
            || offset
                .checked_add(length)
                .is_none_or(|end| end > object.bytes())
        {
            return Err(Status::INVALID_OFFSET);
        }
        let all = fields.from("perGpuAttributes");
        let wanted = count.checked_mul(ATTRIBUTES_BYTES).filter(|_| count > 0);
        let attributes = wanted
            .and_then(|bytes| all.get(..bytes))
            .ok_or(Status::INVALID_ARGUMENT)?;
        let mut targets = Vec::new();
        for attribute in attributes.chunks_exact(ATTRIBUTES_BYTES) {
            let gpus = &self.machine.gpus;
            let gpu = gpus.iter().find(|gpu| attribute.starts_with(&gpu.uuid));
            let gpu = gpu.ok_or(Status::GPU_UUID_NOT_FOUND)?.index;
            let space = state.space(gpu).ok_or(Status::INVALID_DEVICE)?;
            // `gpuMappingType`: default, read-write with and without atomics, read-only.
            let permission = match attribute.get(16).copied() {
                Some(0..=2) => Permission::ReadWrite,
                Some(3) => Permission::ReadOnly,
                _ => return Err(Status::INVALID_ARGUMENT),
            };
            // Memory keeps nothing up by itself: the GPU that it was made on has to be registered, be it host memory.
            if !state.gpus.contains_key(&object.maker) {
                return Err(Status::INVALID_DEVICE);
            }
            if let Some(owner) = object.gpu.as_ref().map(|owner| owner.index)
                && owner != gpu
                && !state.peers.contains(&(owner.min(gpu), owner.max(gpu)))
            {
                return Err(Status::INVALID_DEVICE);
            }
            targets.push((space, permission));
        }
        for (space, permission) in targets {
            remap(
                space,
                object,
                region(object, base, length, offset, permission),
            )
            .map_err(|error| match error {
                MapError::Overlap => Status::UVM_ADDRESS_IN_USE,
                MapError::OutOfRange => Status::OUT_OF_RANGE,
            })?;
        }
        Ok(())
    }
}

impl State {
    fn space(&self, gpu: u32) -> Option<&Arc<Space>> {
        self.gpus.get(&gpu)?.as_ref()
    }

    fn unregister_space(&mut self, gpu: u32) {
        if let Some(space) = self.gpus.get_mut(&gpu).and_then(Option::take) {
            for (base, length) in &self.ranges {
                space.unmap_range(*base, *length);
            }
        }
        self.channels.retain(|(other, _, _)| *other != gpu);
    }

    fn overlaps(&self, base: u64, length: u64) -> bool {
        let end = base.saturating_add(length);
        let before = self.ranges.range(..end).next_back();
        let channels = self
            .channels
            .iter()
            .filter(|(_, _, channel)| channel.strong_count() > 0);
        before.is_some_and(|(other, length)| other.saturating_add(*length) > base)
            || channels
                .into_iter()
                .any(|(_, other, _)| (base..end).contains(other))
    }

    /// Whether one external range holds all of it.
    fn holds(&self, base: u64, length: u64) -> bool {
        let range = self.ranges.range(..=base).next_back();
        range.is_some_and(|(first, whole)| {
            base - first <= *whole && length <= whole - (base - first)
        })
    }
}

impl Drop for Uvm {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        let gpus: Vec<u32> = state.gpus.keys().copied().collect();
        for gpu in gpus {
            state.unregister_space(gpu);
        }
    }
}

/// UVM takes whole pages of 4 KiB.
fn check_pages(base: u64, length: u64) -> Result<(), Status> {
    let whole = base.is_multiple_of(4096) && length.is_multiple_of(4096) && length != 0;
    if whole && base.checked_add(length).is_some() {
        Ok(())
    } else {
        Err(Status::INVALID_ADDRESS)
    }
}
