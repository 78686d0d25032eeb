//! Mapping memory, for CPUs and for GPUs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nv_proto::rm::{Status, flags};
use nv_proto::unit::{GpuVa, Handle};

use crate::channel::lock;
use crate::memory::{Memory, Span};
use crate::mmu::{MapError, PageSize, Permission, Region, Space};

use super::object::{Body, MemoryObject};
use super::{IsNull, Machine, Refused};

/// `NVOS46_PARAMETERS`: a GPU mapping to make.
#[derive(Clone, Copy, Debug)]
pub struct DmaMapping {
    /// The device.
    pub device: Handle,
    /// The `NV01_MEMORY_VIRTUAL` object that is mapped into.
    pub virtual_memory: Handle,
    /// The memory object.
    pub memory: Handle,
    /// From which byte of it.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// `NVOS46_FLAGS`.
    pub flags: u32,
    /// At which address, with `DMA_OFFSET_FIXED`.
    pub va: GpuVa,
}

impl Machine {
    /// `NV_ESC_RM_MAP_MEMORY` and the `mmap` after it: a part of a memory object, or of the usermode
    /// registers, as the CPU sees it.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn map_memory(
        &self,
        client: Handle,
        device: Handle,
        memory: Handle,
        offset: u64,
        length: u64,
        _flags: u32,
    ) -> Result<Span, Status> {
        let clients = lock(&self.clients);
        let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
        if !matches!(
            objects.body(device),
            Some(Body::Device(_) | Body::Subdevice(_))
        ) {
            return Err(Status::INVALID_DEVICE);
        }
        let memory = match objects.body(memory) {
            // The client has these pages already, and wants them back at the end.
            Some(Body::Memory(object)) if object.memory.is_lent() => {
                return Err(Status::NOT_SUPPORTED);
            }
            Some(Body::Memory(object)) => object.memory.clone(),
            Some(Body::Usermode(page)) => page.clone(),
            Some(_) => return Err(Status::INVALID_OBJECT),
            None => return Err(Status::OBJECT_NOT_FOUND),
        };
        if length == 0 || !offset.is_multiple_of(PageSize::Small.bytes()) {
            return Err(Status::INVALID_ARGUMENT);
        }
        let end = offset.checked_add(length).ok_or(Status::INVALID_LIMIT)?;
        if end > memory.bytes() as u64 {
            return Err(Status::INVALID_LIMIT);
        }
        // Whole pages in truth; whole cells are enough here.
        Span::new(memory, offset, length.next_multiple_of(8)).ok_or(Status::INVALID_LIMIT)
    }

    /// `NV_ESC_RM_MAP_MEMORY_DMA`: maps memory into an address space; the address is the answer.
    ///
    /// # Errors
    /// The status that the kernel driver answers: `NV_ERR_NO_MEMORY` where a page of it is mapped already.
    pub fn map_dma(&self, client: Handle, request: &DmaMapping) -> Result<GpuVa, Status> {
        use flags::map_dma::{access, dma_offset_fixed, p2p_enable, page_size};

        const P2P_ENABLE: u32 = 3 << 20;

        let DmaMapping {
            device,
            virtual_memory,
            memory,
            offset,
            length,
            flags,
            va: GpuVa(wanted),
        } = *request;
        self.refuses(Refused::MapDma)?;
        let clients = lock(&self.clients);
        let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
        let Some(Body::Device(device) | Body::Subdevice(device)) = objects.body(device) else {
            return Err(Status::INVALID_DEVICE);
        };
        let Some(Body::VirtualMemory { space, first, last }) = objects.body(virtual_memory) else {
            return Err(Status::INVALID_OBJECT_HANDLE);
        };
        let Some(Body::Memory(object)) = objects.body(memory) else {
            return Err(Status::INVALID_OBJECT_HANDLE);
        };
        if space.external {
            return Err(Status::NOT_SUPPORTED);
        }
        // Another GPU's memory is mapped as a peer's, which takes an object that lets the two reach each other.
        if let Some(owner) = &object.gpu
            && !Arc::ptr_eq(owner, &device.gpu)
        {
            let as_peer = flags & P2P_ENABLE == p2p_enable::NOSLI;
            if !as_peer || !objects.has_peers(owner.index, device.gpu.index) {
                return Err(Status::NOT_SUPPORTED);
            }
        }
        let page = match flags & (0xf << 8) {
            page_size::_4KB => PageSize::Small,
            page_size::BIG => PageSize::Big,
            page_size::HUGE => PageSize::Huge,
            // The driver's choice: the memory's own.
            _ => object.page,
        };
        let inside = offset
            .checked_add(length)
            .is_some_and(|end| end <= object.bytes());
        if length == 0 || !inside || page > object.page {
            return Err(Status::INVALID_ARGUMENT);
        }
        // Whole pages are mapped.
        let skip = offset % page.bytes();
        let bytes = (length + skip).next_multiple_of(page.bytes());
        let start = if flags & dma_offset_fixed::TRUE != 0 {
            if wanted % page.bytes() != skip {
                return Err(Status::INVALID_OFFSET);
            }
            wanted - skip
        } else {
            space
                .find_gap((*first).max(page.bytes()), bytes, page.bytes())
                .ok_or(Status::NO_MEMORY)?
        };
        let end = start.checked_add(bytes - 1).ok_or(Status::INVALID_OFFSET)?;
        if start < *first || end > *last {
            return Err(Status::INVALID_OFFSET);
        }
        let permission = match flags & 3 {
            access::READ_WRITE => Permission::ReadWrite,
            access::READ_ONLY => Permission::ReadOnly,
            _ => return Err(Status::NOT_SUPPORTED),
        };
        let region = region(object, start, bytes, offset - skip, permission);
        object.note_space(space);
        space.map(region).map_err(|error| match error {
            MapError::Overlap => Status::NO_MEMORY,
            MapError::OutOfRange => Status::INVALID_LIMIT,
        })?;
        Ok(GpuVa(start + skip))
    }

    /// `NV_ESC_RM_UNMAP_MEMORY_DMA`: takes away what [`Machine::map_dma`] mapped at `va`.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn unmap_dma(
        &self,
        client: Handle,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Status> {
        let clients = lock(&self.clients);
        let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
        if !matches!(
            objects.body(device),
            Some(Body::Device(_) | Body::Subdevice(_))
        ) {
            return Err(Status::INVALID_DEVICE);
        }
        let (Some(Body::VirtualMemory { space, .. }), Some(Body::Memory(object))) =
            (objects.body(virtual_memory), objects.body(memory))
        else {
            return Err(Status::INVALID_OBJECT_HANDLE);
        };
        // The address told may lie inside the first page.
        let sizes = [PageSize::Small, PageSize::Big, PageSize::Huge];
        let starts = sizes.map(|page| va.0 & !(page.bytes() - 1));
        starts
            .into_iter()
            .chain([va.0])
            .find_map(|start| space.unmap(start, object.number))
            .ok_or(Status::INVALID_OFFSET)
    }

    /// Makes a memory object of pages that the client owns (`NV01_MEMORY_SYSTEM_OS_DESCRIPTOR`).
    ///
    /// Freeing it waits until no GPU uses it, and stops the channels that would not let go.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn register_pages(
        &self,
        client: Handle,
        device: Handle,
        new: Handle,
        cells: &'static [AtomicU64],
    ) -> Result<Handle, Status> {
        let mut clients = lock(&self.clients);
        let objects = clients.get_mut(&client.0).ok_or(Status::INVALID_CLIENT)?;
        let Some(Body::Device(maker)) = objects.body(device) else {
            return Err(Status::INVALID_OBJECT_PARENT);
        };
        let maker = maker.gpu.index;
        if !new.is_null() && objects.get(new).is_some() {
            return Err(Status::INSERT_DUPLICATE_NAME);
        }
        let memory = Memory::lent(cells);
        if !(cells.as_ptr().addr() as u64).is_multiple_of(PageSize::Small.bytes()) {
            return Err(Status::INVALID_ADDRESS);
        }
        if memory.bytes() == 0 || !(memory.bytes() as u64).is_multiple_of(PageSize::Small.bytes()) {
            return Err(Status::INVALID_LIMIT);
        }
        let number = self.next_object.fetch_add(1, Ordering::Relaxed);
        let body = Body::Memory(Arc::new(MemoryObject::new(
            number,
            memory,
            PageSize::Small,
            maker,
            None,
        )));
        let handle = if new.is_null() { objects.pick() } else { new };
        objects.insert(handle, device, body);
        Ok(handle)
    }

    pub(super) fn end_memory(&self, object: Arc<MemoryObject>) {
        let spaces = object.unmap_everywhere();
        if let (true, Some(gpu)) = (object.was_last(), &object.gpu) {
            gpu.release(object.bytes());
        }
        if object.memory.is_lent() {
            self.take_back(object, &spaces);
        }
    }

    /// Waits until the pages that a client lent are its own again. A grid goes by the mappings that there were when it
    /// began: one that runs on for long in one of these spaces is stopped, also where it never touches the pages.
    fn take_back(&self, object: Arc<MemoryObject>, spaces: &[Arc<Space>]) {
        /// How long a running grid may go on with pages that are taken away from it.
        const PATIENCE: Duration = Duration::from_secs(1);

        let memory = object.memory.clone();
        drop(object);
        let start = Instant::now();
        while Arc::strong_count(&memory) > 1 {
            if start.elapsed() > PATIENCE {
                for gpu in &self.gpus {
                    gpu.stop_running(spaces);
                }
            }
            thread::sleep(Duration::from_micros(50));
        }
    }
}

pub(super) fn region(
    object: &MemoryObject,
    va: u64,
    length: u64,
    offset: u64,
    permission: Permission,
) -> Region {
    Region {
        va,
        length,
        memory: object.memory.clone(),
        offset,
        permission,
        object: object.number,
    }
}

/// Maps in the place of what is there, as UVM does.
pub(super) fn remap(
    space: &Arc<Space>,
    object: &MemoryObject,
    region: Region,
) -> Result<(), MapError> {
    object.note_space(space);
    space.replace(region)
}
