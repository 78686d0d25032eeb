//! What several GPUs of a machine, and several clients, have of each other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nv_proto::rm::Status;
use nv_proto::unit::Handle;

use crate::channel::lock;
use crate::fields::Fields;

use super::object::{Body, Client, MemoryObject};
use super::{IsNull, Machine};

/// `NV0000_CTRL_SYSTEM_GET_P2P_CAPS_*_SUPPORTED`: writes, reads, and that the driver knows how they go.
const CAPS: u32 = 1 << 0 | 1 << 1 | 1 << 2;
/// `NV0000_P2P_CAPS_STATUS_OK`.
const STATUS_OK: u8 = 0;
/// `NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED`.
const STATUS_CHIPSET_NOT_SUPPORTED: u8 = 1;
/// `NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED`.
const STATUS_NOT_SUPPORTED: u8 = 5;

impl Machine {
    /// The number by which the driver names a GPU before it has a handle: an H200's was 0x0600.
    #[must_use]
    pub fn gpu_id(index: u32) -> u32 {
        index.wrapping_add(1) << 8
    }

    /// Has two GPUs not reach each other's memory from now on, as behind a bridge that keeps them apart. What is
    /// mapped already stays.
    pub fn keep_apart(&self, a: u32, b: u32) {
        lock(&self.apart).insert((a.min(b), a.max(b)));
    }

    /// Whether two GPUs reach each other's memory.
    pub(super) fn reach_each_other(&self, a: u32, b: u32) -> bool {
        !lock(&self.apart).contains(&(a.min(b), a.max(b)))
    }

    /// `NV_ESC_RM_DUP_OBJECT`: makes a further object below `parent` that is the memory of another client's.
    ///
    /// # Errors
    /// The status that the kernel driver answers. Other objects than memory, and a client's own pages, are refused
    /// with `NV_ERR_NOT_SUPPORTED`; so is another GPU's memory below a device that is not that GPU.
    pub fn dup(
        &self,
        client: Handle,
        parent: Handle,
        new: Handle,
        source_client: Handle,
        source: Handle,
    ) -> Result<Handle, Status> {
        let mut clients = lock(&self.clients);
        let from = clients
            .get(&source_client.0)
            .ok_or(Status::INVALID_CLIENT)?;
        let memory = match from.body(source) {
            Some(Body::Memory(memory)) => memory.clone(),
            Some(_) => return Err(Status::NOT_SUPPORTED),
            None => return Err(Status::OBJECT_NOT_FOUND),
        };
        // The client wants these back when it frees its own object.
        if memory.memory.is_lent() {
            return Err(Status::NOT_SUPPORTED);
        }
        let objects = clients.get_mut(&client.0).ok_or(Status::INVALID_CLIENT)?;
        let Some(Body::Device(device)) = objects.body(parent) else {
            return Err(Status::INVALID_OBJECT_PARENT);
        };
        let gpu = device.gpu.index;
        if memory.gpu.as_ref().is_some_and(|owner| owner.index != gpu) {
            return Err(Status::NOT_SUPPORTED);
        }
        if !new.is_null() && objects.get(new).is_some() {
            return Err(Status::INSERT_DUPLICATE_NAME);
        }
        let number = self.next_object.fetch_add(1, Ordering::Relaxed);
        let body = Body::Memory(Arc::new(MemoryObject::duplicate(&memory, number)));
        let handle = if new.is_null() { objects.pick() } else { new };
        objects.insert(handle, parent, body);
        Ok(handle)
    }

    /// `NV50_P2P`.
    pub(super) fn peers(&self, objects: &Client, fields: &Fields<'_>) -> Result<Body, Status> {
        let gpu = |name| match objects.body(Handle(fields.u32(name))) {
            Some(Body::Subdevice(device)) => Ok(device.gpu.index),
            _ => Err(Status::INVALID_OBJECT_HANDLE),
        };
        let (own, peer) = (gpu("hSubDevice")?, gpu("hPeerSubDevice")?);
        if own == peer {
            return Err(Status::INVALID_ARGUMENT);
        }
        if !self.reach_each_other(own, peer) {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(Body::Peers(own, peer))
    }

    /// `NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2`: what all of some GPUs can do with each other's memory.
    pub(super) fn p2p_caps(&self, fields: &mut Fields<'_>) -> Result<(), Status> {
        let count = fields.u32("gpuCount") as usize;
        let ids = fields.from("gpuIds").get(..count.saturating_mul(4));
        let ids = ids.filter(|ids| (4..=128).contains(&ids.len()));
        let mut gpus = Vec::new();
        for id in ids.ok_or(Status::INVALID_ARGUMENT)?.chunks_exact(4) {
            let id = u32::from_le_bytes(id.try_into().unwrap_or_default());
            let known = self.gpus.iter().find(|gpu| Self::gpu_id(gpu.index) == id);
            gpus.push(known.ok_or(Status::INVALID_ARGUMENT)?.index);
        }
        let reach = gpus
            .iter()
            .all(|a| gpus.iter().all(|b| self.reach_each_other(*a, *b)));
        let (caps, status) = if reach {
            (CAPS, STATUS_OK)
        } else {
            (0, STATUS_CHIPSET_NOT_SUPPORTED)
        };
        fields.set_u32("p2pCaps", caps);
        // `NV0000_CTRL_P2P_CAPS_INDEX_*`: read, write, and then what there is none of.
        let mut statuses = [STATUS_NOT_SUPPORTED; 9];
        statuses[0] = status;
        statuses[1] = status;
        fields.set("p2pCapsStatus", &statuses);
        Ok(())
    }
}
