//! Making objects, class by class.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nv_proto::rm::names::classes;
use nv_proto::rm::{
    ChannelGpfifoAlloc, ChannelGroupAlloc, CtxShareAlloc, DebuggerAlloc, DeviceAlloc, Layout,
    MemoryAlloc, MemoryVirtualAlloc, P2pAlloc, Status, SubdeviceAlloc, VaSpaceAlloc, flags,
};
use nv_proto::unit::{ClassId, Handle};

use crate::channel::{Channel, Group, Place, Setup, lock};
use crate::fields::Fields;
use crate::memory::Memory;
use crate::mmu::{PageSize, Space, VA_END};

use super::object::{Body, Client, Device, MemoryObject};
use super::{IsNull, Machine, Refused};

/// The older ways to name a client's class (`facts/classes.json`).
const NV01_ROOT: ClassId = ClassId(0x0);
const NV01_ROOT_NON_PRIV: ClassId = ClassId(0x1);

/// The classes that every chip has.
const COMMON: [ClassId; 10] = [
    classes::NV01_MEMORY_SYSTEM,
    classes::NV01_MEMORY_LOCAL_USER,
    classes::NV01_MEMORY_VIRTUAL,
    classes::NV01_DEVICE_0,
    classes::NV20_SUBDEVICE_0,
    classes::GT200_DEBUGGER,
    classes::NV50_P2P,
    classes::FERMI_CONTEXT_SHARE_A,
    classes::FERMI_VASPACE_A,
    classes::KEPLER_CHANNEL_GROUP_A,
];

/// The first handle of a client (seen on an H200: 0xc1d0_0039 and the like).
const FIRST_CLIENT: u32 = 0xc1d0_0000;

pub(super) fn alloc(
    machine: &Machine,
    client: Handle,
    parent: Handle,
    new: Handle,
    class: ClassId,
    params: &mut [u8],
) -> Result<Handle, Status> {
    machine.refuses(Refused::Alloc(class))?;
    let mut clients = lock(&machine.clients);
    if [NV01_ROOT, NV01_ROOT_NON_PRIV, classes::NV01_ROOT_CLIENT].contains(&class) {
        let picked = if new.is_null() {
            let last = clients
                .last_key_value()
                .map_or(FIRST_CLIENT, |(last, _)| last.wrapping_add(1));
            (last..).find(|handle| *handle != 0 && !clients.contains_key(handle))
        } else {
            (!clients.contains_key(&new.0)).then_some(new.0)
        };
        let handle = Handle(picked.ok_or(Status::INSERT_DUPLICATE_NAME)?);
        clients.insert(handle.0, Client::new(handle));
        return Ok(handle);
    }
    let objects = clients.get_mut(&client.0).ok_or(Status::INVALID_CLIENT)?;
    if !new.is_null() && objects.get(new).is_some() {
        return Err(Status::INSERT_DUPLICATE_NAME);
    }
    let below = objects
        .body(parent)
        .ok_or(Status::INVALID_OBJECT_PARENT)?
        .clone();
    let body = if COMMON.contains(&class) {
        common_object(machine, objects, &below, class, params)?
    } else {
        chip_object(machine, objects, &below, class, params)?
    };
    let handle = if new.is_null() { objects.pick() } else { new };
    objects.insert(handle, parent, body);
    Ok(handle)
}

/// Objects of classes that every chip has.
fn common_object(
    machine: &Machine,
    objects: &Client,
    below: &Body,
    class: ClassId,
    params: &mut [u8],
) -> Result<Body, Status> {
    let version = machine.options.version;
    match (class, below) {
        (classes::NV01_DEVICE_0, Body::Client) => {
            let fields = Fields::at_least(DeviceAlloc::SHAPE, version, params)?;
            let gpu = machine
                .gpu(fields.u32("deviceId"))
                .ok_or(Status::INVALID_DEVICE)?;
            Ok(Body::Device(Device::new(gpu.clone())))
        }
        (classes::NV20_SUBDEVICE_0, Body::Device(device)) => {
            // Parameters may be left out (`params_required`); a device has one GPU.
            let id = if params.is_empty() {
                0
            } else {
                Fields::at_least(SubdeviceAlloc::SHAPE, version, params)?.u32("subDeviceId")
            };
            if id == 0 {
                Ok(Body::Subdevice(device.clone()))
            } else {
                Err(Status::INVALID_ARGUMENT)
            }
        }
        (classes::FERMI_VASPACE_A, Body::Device(_) | Body::Subdevice(_)) => {
            space(&Fields::at_least(VaSpaceAlloc::SHAPE, version, params)?)
        }
        (classes::NV01_MEMORY_VIRTUAL, Body::Device(device)) => virtual_memory(
            objects,
            device,
            &mut Fields::at_least(MemoryVirtualAlloc::SHAPE, version, params)?,
        ),
        (classes::NV01_MEMORY_LOCAL_USER, Body::Device(device) | Body::Subdevice(device)) => {
            memory(
                machine,
                device,
                true,
                &mut Fields::at_least(MemoryAlloc::SHAPE, version, params)?,
            )
        }
        (classes::NV01_MEMORY_SYSTEM, Body::Device(device)) => memory(
            machine,
            device,
            false,
            &mut Fields::at_least(MemoryAlloc::SHAPE, version, params)?,
        ),
        (classes::KEPLER_CHANNEL_GROUP_A, Body::Device(device)) => {
            let fields = Fields::at_least(ChannelGroupAlloc::SHAPE, version, params)?;
            let space = optional_space(objects, Handle(fields.u32("hVASpace")))?;
            Ok(Body::Group {
                device: device.clone(),
                group: Arc::new(Group::default()),
                space,
            })
        }
        (classes::FERMI_CONTEXT_SHARE_A, Body::Group { device, .. }) => {
            let mut fields = Fields::at_least(CtxShareAlloc::SHAPE, version, params)?;
            let space = optional_space(objects, Handle(fields.u32("hVASpace")))?;
            // Read on an H200 for an asynchronous subcontext, the first of its group.
            fields.set_u32("subctxId", 0x3f);
            Ok(Body::ContextShare(
                space.unwrap_or_else(|| device.default_space()),
            ))
        }
        (classes::NV50_P2P, Body::Client) => {
            let fields = Fields::at_least(P2pAlloc::SHAPE, version, params)?;
            machine.peers(objects, &fields)
        }
        (classes::GT200_DEBUGGER, Body::Device(device)) => {
            let fields = Fields::at_least(DebuggerAlloc::SHAPE, version, params)?;
            match objects.body(Handle(fields.u32("hClass3dObject"))) {
                Some(Body::Engine { class, channel })
                    if *class == device.gpu.chip.compute_class() =>
                {
                    Ok(Body::Debugger {
                        gpu: device.gpu.clone(),
                        channel: channel.clone(),
                    })
                }
                _ => Err(Status::INVALID_OBJECT_HANDLE),
            }
        }
        _ => Err(Status::INVALID_OBJECT_PARENT),
    }
}

/// Objects of classes that differ by chip: usermode, channels, engines.
fn chip_object(
    machine: &Machine,
    objects: &Client,
    below: &Body,
    class: ClassId,
    params: &mut [u8],
) -> Result<Body, Status> {
    let gpu = match below {
        Body::Device(device) | Body::Subdevice(device) | Body::Group { device, .. } => &device.gpu,
        Body::Channel { gpu, .. } => gpu,
        _ if machine.gpus.iter().any(|gpu| gpu.chip.offers(class)) => {
            return Err(Status::INVALID_OBJECT_PARENT);
        }
        _ => return Err(Status::INVALID_CLASS),
    };
    if !gpu.chip.offers(class) {
        return Err(Status::INVALID_CLASS);
    }
    let (low, below) = (class.0 & 0xff, below);
    match (low, below) {
        // `*_USERMODE_A`: 64 KiB of registers, of which a client maps the first page.
        (0x61, Body::Subdevice(_)) => {
            let page = Memory::zeroed(0x1_0000).ok_or(Status::NO_MEMORY)?;
            Ok(Body::Usermode(Arc::new(page)))
        }
        // `*_CHANNEL_GPFIFO_*`.
        (
            0x6f,
            Body::Group {
                device,
                group,
                space,
            },
        ) => {
            let group_space = space.clone().unwrap_or_else(|| device.default_space());
            let shape = ChannelGpfifoAlloc::shape(machine.options.version);
            let fields = Fields::at_least(shape, machine.options.version, params)?;
            channel(objects, device, class, group.clone(), group_space, fields)
        }
        (0x6f, Body::Device(device)) => {
            let shape = ChannelGpfifoAlloc::shape(machine.options.version);
            let fields = Fields::at_least(shape, machine.options.version, params)?;
            channel(
                objects,
                device,
                class,
                Arc::new(Group::default()),
                device.default_space(),
                fields,
            )
        }
        (_, Body::Channel { gpu, channel })
            if class == gpu.chip.compute_class() || class == gpu.chip.copy_class() =>
        {
            channel.add_object(class);
            Ok(Body::Engine {
                class,
                channel: channel.clone(),
            })
        }
        (0x61 | 0x6f | 0xc0 | 0xb5, _) => Err(Status::INVALID_OBJECT_PARENT),
        // Graphics, video and the like.
        _ => Err(Status::NOT_SUPPORTED),
    }
}

fn space(fields: &Fields<'_>) -> Result<Body, Status> {
    // `NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED`: UVM's.
    let external = fields.u32("flags") & 0x8 != 0;
    let (base, size) = (fields.u64("vaBase"), fields.u64("vaSize"));
    let limit = match size {
        0 => VA_END - 1,
        size => base.checked_add(size - 1).ok_or(Status::INVALID_ARGUMENT)?,
    };
    if limit >= VA_END || base > limit {
        return Err(Status::INVALID_ARGUMENT);
    }
    Ok(Body::Space(Arc::new(Space::new(limit, external))))
}

fn optional_space(objects: &Client, handle: Handle) -> Result<Option<Arc<Space>>, Status> {
    match objects.body(handle) {
        _ if handle.is_null() => Ok(None),
        Some(Body::Space(space)) => Ok(Some(space.clone())),
        _ => Err(Status::INVALID_OBJECT_HANDLE),
    }
}

fn virtual_memory(
    objects: &Client,
    device: &Device,
    fields: &mut Fields<'_>,
) -> Result<Body, Status> {
    let space = optional_space(objects, Handle(fields.u32("hVASpace")))?;
    let space = space.unwrap_or_else(|| device.default_space());
    let first = fields.u64("offset");
    let last = match fields.u64("limit") {
        0 => space.limit,
        limit => limit,
    };
    if last > space.limit || first > last {
        return Err(Status::INVALID_LIMIT);
    }
    fields.set_u64("limit", last);
    Ok(Body::VirtualMemory { space, first, last })
}

/// Memory of the GPU where it is to be `local`, of the host otherwise.
fn memory(
    machine: &Machine,
    device: &Device,
    local: bool,
    fields: &mut Fields<'_>,
) -> Result<Body, Status> {
    use flags::attr::{location, page_size, physicality};

    const LOCATION: u32 = 3 << 25;
    const PAGE_SIZE: u32 = 3 << 23;
    const PHYSICALITY: u32 = 3 << 27;
    let (attr, attr2) = (fields.u32("attr"), fields.u32("attr2"));
    let size = fields.u64("size");
    let alignment = fields.u64("alignment");
    if size == 0 || !(alignment == 0 || alignment.is_power_of_two()) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let place = attr & LOCATION;
    let fits = if local {
        place != location::PCI
    } else {
        place != location::VIDMEM
    };
    if !fits {
        return Err(Status::INVALID_ARGUMENT);
    }
    let page = match attr & PAGE_SIZE {
        page_size::_4KB => PageSize::Small,
        page_size::BIG => PageSize::Big,
        page_size::HUGE => PageSize::Huge,
        // The driver's choice, as seen on an H200: 64 KiB pages for 24 KiB, 2 MiB pages from 2 MiB on.
        _ if !local => PageSize::Small,
        _ if size >= PageSize::Huge.bytes() => PageSize::Huge,
        _ => PageSize::Big,
    };
    let bytes = size
        .checked_next_multiple_of(page.bytes())
        .ok_or(Status::NO_MEMORY)?;
    let gpu = local.then(|| device.gpu.clone());
    if gpu.as_ref().is_some_and(|gpu| !gpu.reserve(bytes)) {
        return Err(Status::NO_MEMORY);
    }
    let memory = usize::try_from(bytes).ok().and_then(Memory::zeroed);
    let Some(memory) = memory else {
        if let Some(gpu) = &gpu {
            gpu.release(bytes);
        }
        return Err(Status::NO_MEMORY);
    };

    // What the driver tells it did, as seen on an H200.
    let told = match page {
        PageSize::Small => page_size::_4KB,
        PageSize::Big => page_size::BIG,
        PageSize::Huge => page_size::HUGE,
    };
    let contiguous = if local {
        physicality::CONTIGUOUS
    } else {
        physicality::NONCONTIGUOUS
    };
    fields.set_u32(
        "attr",
        attr & !(PAGE_SIZE | PHYSICALITY) | told | contiguous,
    );
    if page == PageSize::Huge {
        fields.set_u32("attr2", attr2 | flags::attr2::page_size_huge::_2MB);
    }
    fields.set_u64("size", bytes);
    fields.set_u64("limit", bytes - 1);
    let number = machine.next_object.fetch_add(1, Ordering::Relaxed);
    Ok(Body::Memory(Arc::new(MemoryObject::new(
        number,
        memory,
        page,
        device.gpu.index,
        gpu,
    ))))
}

fn channel(
    objects: &Client,
    device: &Device,
    class: ClassId,
    group: Arc<Group>,
    group_space: Arc<Space>,
    mut fields: Fields<'_>,
) -> Result<Body, Status> {
    // The driver notes its own in the flags: an H200 gave back 0x20 for 0.
    const FLAGS_TOLD: u32 = 0x20;
    let entries = fields.u32("gpFifoEntries");
    let ring = fields.u64("gpFifoOffset");
    // The hardware takes the ring's size as a power of two, and its address in units of 8 bytes.
    if !entries.is_power_of_two() || !ring.is_multiple_of(8) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let share = Handle(fields.u32("hContextShare"));
    let named = Handle(fields.u32("hVASpace"));
    let space = match objects.body(share) {
        _ if share.is_null() => optional_space(objects, named)?.unwrap_or(group_space),
        Some(Body::ContextShare(space)) if named.is_null() => space.clone(),
        // One or the other names the address space.
        Some(Body::ContextShare(_)) => return Err(Status::INVALID_ARGUMENT),
        _ => return Err(Status::INVALID_OBJECT_HANDLE),
    };
    let place = |handle: u32, offset: u64, bytes: u64, align: u64| {
        let Some(Body::Memory(object)) = objects.body(Handle(handle)) else {
            return Err(Status::INVALID_OBJECT_HANDLE);
        };
        if object.memory.is_lent() {
            // A channel would hold on to pages that the client may take back before.
            return Err(Status::NOT_SUPPORTED);
        }
        let inside = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= object.bytes());
        if !offset.is_multiple_of(align) || !inside {
            return Err(Status::INVALID_ARGUMENT);
        }
        Ok(Place {
            memory: object.memory.clone(),
            offset,
        })
    };
    let userd = place(
        fields.u32("hUserdMemory"),
        fields.u64("userdOffset"),
        Channel::USERD_BYTES,
        Channel::USERD_BYTES,
    )?;
    let notifier = match fields.u32("hObjectError") {
        0 => None,
        handle => Some(place(handle, 0, Channel::NOTIFIER_BYTES, 8)?),
    };
    let told = fields.u32("flags") | FLAGS_TOLD;
    fields.set_u32("flags", told);
    let gpu = device.gpu.clone();
    let make = |id| {
        Channel::new(Setup {
            id,
            class,
            group,
            space,
            ring,
            entries,
            userd,
            notifier,
        })
    };
    let channel = gpu
        .add_channel(make)
        .ok_or(Status::INSUFFICIENT_RESOURCES)?;
    Ok(Body::Channel { gpu, channel })
}
