//! The resource-manager and UVM calls that a device is made of: the one place that fills their parameters.
//!
//! The values are those of a working sequence recorded on an H200 with driver 580.159.04.

#![allow(
    clippy::field_reassign_with_default,
    reason = "the structures' padding is private, so they are filled field by field"
)]

use std::sync::Arc;

use nv_proto::class::{self, ClassSet};
use nv_proto::rm::names::classes;
use nv_proto::rm::{self, flags};
use nv_proto::unit::{ClassId, GpuVa, Handle, SmVersion, SubmitToken};
use nv_proto::uvm;

use crate::device::{Info, MemoryInfo};
use crate::driver::{self, Doorbell, Driver, MapCpu, MapDma};
use crate::memory::Placement;
use crate::object::RmObject;
use crate::space::MapMode;
use crate::{Error, Mapping};

/// The driver and the two objects that most calls name.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) device: Handle,
    pub(crate) subdevice: Handle,
}

/// Pages below this size are the small ones.
const HUGE_PAGE: u64 = 2 << 20;
const SMALL_PAGE: u64 = 4 << 10;

/// `UvmGpuMappingTypeReadWriteAtomic` (`uvm_types.h`).
const GPU_MAPPING_READ_WRITE_ATOMIC: u32 = 1;

/// The usermode register page (`NVC661`) is 64 KiB.
const USERMODE_BYTES: u64 = 0x1_0000;

/// All that a GPU's page tables of 49 bits span, less what RM keeps (the reference system's values).
const VASPACE_BASE: u64 = 0x1000;
const VASPACE_BYTES: u64 = 0x1_ffff_fb00_0000;

/// Makes the device object of a GPU.
pub(crate) fn device(driver: &Arc<dyn Driver>, instance: u32) -> Result<RmObject, Error> {
    let mut params = rm::DeviceAlloc::default();
    params.device_id = instance.into();
    params.h_client_share = driver.client().0.into();
    params.va_mode = flags::device_va_mode::MULTIPLE_VASPACES.into();
    RmObject::new(driver, driver.client(), classes::NV01_DEVICE_0, &mut params)
}

/// Makes the subdevice object: the one GPU of the device.
pub(crate) fn subdevice(driver: &Arc<dyn Driver>, device: Handle) -> Result<RmObject, Error> {
    RmObject::new(
        driver,
        device,
        classes::NV20_SUBDEVICE_0,
        &mut rm::SubdeviceAlloc::default(),
    )
}

/// The classes that the GPU offers, and the choice among them.
pub(crate) fn classes(objects: &Objects) -> Result<ClassSet, Error> {
    let offered = objects.driver.class_list(objects.device)?;
    class::select_classes(&offered).map_err(|error| Error::Unsupported(error.to_string()))
}

/// Maps the doorbell page.
pub(crate) fn doorbell(
    objects: &Objects,
    classes: &ClassSet,
) -> Result<(RmObject, Doorbell), Error> {
    let usermode = RmObject::plain(&objects.driver, objects.subdevice, classes.usermode)?;
    let page = objects.driver.map_cpu(&MapCpu {
        device: objects.device,
        memory: usermode.handle(),
        offset: 0,
        length: USERMODE_BYTES,
        flags: flags::map_cpu::access::WRITE_ONLY,
        system: false,
    })?;
    let doorbell = objects.driver.doorbell(page);
    Ok((usermode, doorbell))
}

/// What the GPU is.
pub(crate) fn info(objects: &Objects, classes: ClassSet, map_mode: MapMode) -> Result<Info, Error> {
    let driver = &*objects.driver;
    let facts = driver.gr_info(
        objects.subdevice,
        &[
            flags::gr_info::SM_VERSION,
            flags::gr_info::MAX_WARPS_PER_SM,
            flags::gr_info::LITTER_NUM_GPCS,
            flags::gr_info::LITTER_NUM_TPC_PER_GPC,
            flags::gr_info::LITTER_NUM_SM_PER_TPC,
            flags::gr_info::SHADER_PIPE_SUB_COUNT,
        ],
    )?;
    let &[
        sm_version,
        warps_per_sm,
        gpcs,
        tpcs_per_gpc,
        sm_per_tpc,
        tpcs,
    ] = facts.as_slice()
    else {
        return Err(Error::Unsupported(format!(
            "the driver answered {} of 6 facts of the graphics engine",
            facts.len()
        )));
    };
    let sm = sm_of(sm_version).ok_or_else(|| {
        Error::Unsupported(format!("the GPU's SM_VERSION {sm_version:#x} is not known"))
    })?;
    Ok(Info {
        name: name(objects).unwrap_or_else(|_| "NVIDIA GPU".to_owned()),
        sm,
        sm_version,
        sm_count: tpcs.saturating_mul(sm_per_tpc),
        warps_per_sm,
        tpc_slots: gpcs.saturating_mul(tpcs_per_gpc),
        sm_per_tpc,
        classes,
        driver: driver.release().to_string(),
        kind: driver.kind(),
        map_mode,
        warnings: driver::warning(driver).into_iter().collect(),
    })
}

/// The compiler's number for an `SM_VERSION`: 0x806 is sm_86, 0x900 is sm_90, 0xa04 is sm_120.
fn sm_of(sm_version: u32) -> Option<SmVersion> {
    let (major, minor) = (sm_version >> 8, sm_version & 0xff);
    let sm = match (major, minor) {
        (7..=9, 0..=9) => major * 10 + minor,
        (0xa, 0) => 100,
        (0xa, 4) => 120,
        _ => return None,
    };
    u16::try_from(sm).ok().map(SmVersion)
}

/// The product's name.
fn name(objects: &Objects) -> Result<String, Error> {
    let mut params = rm::GpuGetNameString::default();
    driver::control(&*objects.driver, objects.subdevice, &mut params)?;
    let text = params
        .gpu_name_string
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The GPU's memory, and how much of it nobody has.
pub(crate) fn memory_info(objects: &Objects) -> Result<MemoryInfo, Error> {
    let mut params = rm::FbGetInfoV2::default();
    params.fb_info_list_size = 2.into();
    let (asked, _) = params.fb_info_list.split_at_mut(2);
    asked[0].index = flags::fb_info::HEAP_SIZE.into();
    asked[1].index = flags::fb_info::HEAP_FREE.into();
    driver::control(&*objects.driver, objects.subdevice, &mut params)?;
    let bytes = |index: usize| u64::from(params.fb_info_list[index].data.get()) << 10;
    Ok(MemoryInfo {
        total: bytes(0),
        free: bytes(1),
    })
}

/// The 16 bytes by which the UVM driver knows the GPU.
pub(crate) fn gpu_uuid(driver: &dyn Driver, subdevice: Handle) -> Result<[u8; 16], Error> {
    let mut params = rm::GpuGetGidInfo::default();
    params.flags = flags::gid::format::BINARY.into();
    params.length = 16.into();
    driver::control(driver, subdevice, &mut params)?;
    let mut uuid = [0; 16];
    uuid.copy_from_slice(params.data.split_at(16).0);
    Ok(uuid)
}

/// Makes an address space: managed by RM, or owned by the UVM driver.
pub(crate) fn vaspace(
    driver: &Arc<dyn Driver>,
    device: Handle,
    mode: MapMode,
) -> Result<RmObject, Error> {
    let mut params = rm::VaSpaceAlloc::default();
    params.flags = match mode {
        MapMode::Rm => flags::va_space::NONE,
        MapMode::Uvm => {
            flags::va_space::IS_EXTERNALLY_OWNED | flags::va_space::ENABLE_PAGE_FAULTING
        }
    }
    .into();
    params.va_base = VASPACE_BASE.into();
    params.va_size = VASPACE_BYTES.into();
    RmObject::new(driver, device, classes::FERMI_VASPACE_A, &mut params)
}

/// Makes the object that stands for all of an address space when mapping by RM.
pub(crate) fn virtual_memory(
    driver: &Arc<dyn Driver>,
    device: Handle,
    vaspace: Handle,
) -> Result<RmObject, Error> {
    let mut params = rm::MemoryVirtualAlloc::default();
    params.h_va_space = vaspace.0.into();
    RmObject::new(driver, device, classes::NV01_MEMORY_VIRTUAL, &mut params)
}

/// Allocates memory; answers the object and the bytes that it really has.
pub(crate) fn memory(
    objects: &Objects,
    bytes: u64,
    placement: Placement,
) -> Result<(RmObject, u64), Error> {
    let what = match placement {
        Placement::Pinned => "host memory",
        _ => "GPU memory",
    };
    let page = match placement {
        Placement::Pinned => SMALL_PAGE,
        _ if bytes >= HUGE_PAGE => HUGE_PAGE,
        _ => SMALL_PAGE,
    };
    let Some(size) = bytes
        .checked_next_multiple_of(page)
        .filter(|size| *size > 0)
    else {
        return Err(Error::OutOfMemory { what, bytes });
    };
    let mut params = rm::MemoryAlloc::default();
    params.owner = objects.driver.client().0.into();
    params.size = size.into();
    params.alignment = page.into();
    params.limit = (size - 1).into();
    params.format = 6.into(); // as recorded; RM ignores it for pitch memory
    let common = flags::alloc::MAP_NOT_REQUIRED
        | flags::alloc::MEMORY_HANDLE_PROVIDED
        | flags::alloc::ALIGNMENT_FORCE;
    let (class, attr, attr2) = match placement {
        Placement::Pinned => {
            params.type_ = flags::memory_type::NOTIFIER.into();
            params.flags = (common | flags::alloc::PERSISTENT_VIDMEM).into();
            (
                classes::NV01_MEMORY_SYSTEM,
                flags::attr::physicality::ALLOW_NONCONTIGUOUS
                    | flags::attr::location::PCI
                    | flags::attr::coherency::CACHED,
                flags::attr2::gpu_cacheable::NO | flags::attr2::zbc::PREFER_NO_ZBC,
            )
        }
        _ => {
            params.type_ = flags::memory_type::IMAGE.into();
            params.flags =
                (common | flags::alloc::PERSISTENT_VIDMEM | flags::alloc::IGNORE_BANK_PLACEMENT)
                    .into();
            let (page_size, huge) = if page == HUGE_PAGE {
                (
                    flags::attr::page_size::HUGE,
                    flags::attr2::page_size_huge::_2MB,
                )
            } else {
                (
                    flags::attr::page_size::DEFAULT,
                    flags::attr2::page_size_huge::DEFAULT,
                )
            };
            (
                classes::NV01_MEMORY_LOCAL_USER,
                flags::attr::physicality::ALLOW_NONCONTIGUOUS | page_size,
                flags::attr2::gpu_cacheable::YES | flags::attr2::zbc::PREFER_NO_ZBC | huge,
            )
        }
    };
    params.attr = attr.into();
    params.attr2 = attr2.into();
    let object =
        RmObject::new(&objects.driver, objects.device, class, &mut params).map_err(|error| {
            match error {
                Error::OutOfMemory { .. } => Error::OutOfMemory { what, bytes },
                other => other,
            }
        })?;
    Ok((object, size))
}

/// Maps all of a memory object for the CPU.
pub(crate) fn map_memory(
    objects: &Objects,
    memory: Handle,
    bytes: u64,
    placement: Placement,
) -> Result<Mapping, Error> {
    let system = placement == Placement::Pinned;
    let caching = if system {
        flags::map_cpu::caching_type::CACHED
    } else {
        flags::map_cpu::caching_type::WRITECOMBINED
    };
    objects.driver.map_cpu(&MapCpu {
        device: objects.device,
        memory,
        offset: 0,
        length: bytes,
        flags: caching,
        system,
    })
}

/// Whose memory is mapped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Whose {
    /// The mapping GPU's or the host's.
    Own,
    /// Another GPU's.
    Peers,
}

/// Maps memory for the GPU by RM.
pub(crate) fn map_dma(
    driver: &dyn Driver,
    device: Handle,
    virtual_memory: Handle,
    memory: Handle,
    va: GpuVa,
    length: u64,
    whose: Whose,
) -> Result<(), Error> {
    let peers = match whose {
        Whose::Own => flags::map_dma::p2p_enable::NO,
        // Both are devices of their own, not two of one (SLI).
        Whose::Peers => flags::map_dma::p2p_enable::NOSLI,
    };
    driver.map_dma(&MapDma {
        device,
        virtual_memory,
        memory,
        offset: 0,
        length,
        flags: flags::map_dma::dma_offset_fixed::TRUE | flags::map_dma::cache_snoop::ENABLE | peers,
        va,
    })
}

/// Makes the object while which lives two GPUs, by subdevices of one client, reach each other's memory.
pub(crate) fn peers(
    driver: &Arc<dyn Driver>,
    own: Handle,
    peer: Handle,
) -> Result<RmObject, Error> {
    let mut params = rm::P2pAlloc::default();
    params.h_sub_device = own.0.into();
    params.h_peer_sub_device = peer.0.into();
    RmObject::new(driver, driver.client(), classes::NV50_P2P, &mut params)
}

/// What the driver says that two GPUs can do with each other's memory.
pub(crate) fn peer_caps(
    driver: &dyn Driver,
    own: u32,
    peer: u32,
) -> Result<rm::SystemGetP2pCapsV2, Error> {
    let mut params = rm::SystemGetP2pCapsV2::default();
    params.gpu_ids[0] = own.into();
    params.gpu_ids[1] = peer.into();
    params.gpu_count = 2.into();
    driver::control(driver, driver.client(), &mut params)?;
    Ok(params)
}

/// Makes a channel group of the graphics engine, which computes and copies.
pub(crate) fn channel_group(objects: &Objects) -> Result<RmObject, Error> {
    let mut params = rm::ChannelGroupAlloc::default();
    params.engine_type = flags::engine::GRAPHICS.into();
    RmObject::new(
        &objects.driver,
        objects.device,
        classes::KEPLER_CHANNEL_GROUP_A,
        &mut params,
    )
}

/// Makes the subcontext through which a group's channels use an address space.
pub(crate) fn context_share(
    objects: &Objects,
    group: Handle,
    vaspace: Handle,
) -> Result<RmObject, Error> {
    let mut params = rm::CtxShareAlloc::default();
    params.h_va_space = vaspace.0.into();
    params.flags = flags::ctxshare::subcontext::ASYNC.into();
    RmObject::new(
        &objects.driver,
        group,
        classes::FERMI_CONTEXT_SHARE_A,
        &mut params,
    )
}

/// What a channel is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelSetup {
    pub(crate) group: Handle,
    pub(crate) share: Handle,
    pub(crate) area: Handle,
    pub(crate) notifier: Handle,
    pub(crate) ring: GpuVa,
    pub(crate) entries: u32,
    pub(crate) userd_offset: u64,
}

/// Makes a channel.
pub(crate) fn channel(
    objects: &Objects,
    class: ClassId,
    setup: &ChannelSetup,
) -> Result<RmObject, Error> {
    let mut params = rm::ChannelGpfifoParams::default();
    params.h_object_error = setup.notifier.0.into();
    params.h_object_buffer = setup.area.0.into();
    params.gp_fifo_offset = setup.ring.0.into();
    params.gp_fifo_entries = setup.entries.into();
    params.h_context_share = setup.share.0.into();
    params.h_userd_memory[0] = setup.area.0.into();
    params.userd_offset[0] = setup.userd_offset.into();
    let mut params = rm::ChannelGpfifoAlloc::from(params);
    RmObject::new(&objects.driver, setup.group, class, &mut params)
}

/// Makes the object that the error state of a compute object is read through.
pub(crate) fn debugger(objects: &Objects, compute: Handle) -> Result<RmObject, Error> {
    let mut params = rm::DebuggerAlloc::default();
    params.h_app_client = objects.driver.client().0.into();
    params.h_class3d_object = compute.0.into();
    RmObject::new(
        &objects.driver,
        objects.device,
        classes::GT200_DEBUGGER,
        &mut params,
    )
}

/// What to write to the doorbell for a channel.
pub(crate) fn submit_token(driver: &dyn Driver, channel: Handle) -> Result<SubmitToken, Error> {
    let mut params = rm::GetWorkSubmitToken::default();
    params.work_submit_token = u32::MAX.into();
    driver::control(driver, channel, &mut params)?;
    Ok(SubmitToken(params.work_submit_token.get()))
}

/// Has all channels of a group scheduled.
pub(crate) fn schedule(driver: &dyn Driver, group: Handle) -> Result<(), Error> {
    let mut params = rm::GroupGpfifoSchedule::default();
    params.b_enable = 1;
    driver::control(driver, group, &mut params)
}

/// Makes one call to the UVM driver whose parameters hold no pointer.
#[allow(
    unsafe_code,
    reason = "the one place where the pointer-free promise is used"
)]
fn uvm_call<P: uvm::UvmCommand>(driver: &dyn Driver, params: &mut P) -> Result<(), Error> {
    // SAFETY: `P: UvmCommand` is sealed in nv-proto and lists only structures without pointers.
    unsafe { driver.uvm_raw(P::COMMAND, params.bytes_mut(driver.version())) }
}

/// Tells the UVM driver of a GPU.
pub(crate) fn uvm_register_gpu(driver: &dyn Driver, uuid: [u8; 16]) -> Result<(), Error> {
    let mut gpu = uvm::RegisterGpu::default();
    gpu.gpu_uuid = uuid;
    gpu.rm_ctrl_fd = (-1).into();
    uvm_call(driver, &mut gpu)
}

/// Ends what [`uvm_register_gpu`] began, peer access included.
pub(crate) fn uvm_unregister_gpu(driver: &dyn Driver, uuid: [u8; 16]) -> Result<(), Error> {
    let mut gpu = uvm::UnregisterGpu::default();
    gpu.gpu_uuid = uuid;
    uvm_call(driver, &mut gpu)
}

/// Has two registered GPUs reach each other's memory.
pub(crate) fn uvm_enable_peers(driver: &dyn Driver, a: [u8; 16], b: [u8; 16]) -> Result<(), Error> {
    let mut pair = uvm::EnablePeerAccess::default();
    pair.gpu_uuid_a = a;
    pair.gpu_uuid_b = b;
    uvm_call(driver, &mut pair)
}

/// Tells the UVM driver of the GPU and of the address space that it is to own.
pub(crate) fn uvm_register(
    driver: &dyn Driver,
    uuid: [u8; 16],
    vaspace: Handle,
) -> Result<(), Error> {
    uvm_register_gpu(driver, uuid)?;
    let mut space = uvm::RegisterGpuVaspace::default();
    space.gpu_uuid = uuid;
    space.rm_ctrl_fd = driver.control_fd().into();
    space.h_client = driver.client().0.into();
    space.h_va_space = vaspace.0.into();
    uvm_call(driver, &mut space).inspect_err(|_| {
        // The first error is the one to report.
        let _ = uvm_unregister_gpu(driver, uuid);
    })
}

/// Ends what [`uvm_register`] began.
pub(crate) fn uvm_unregister(driver: &dyn Driver, uuid: [u8; 16]) -> Result<(), Error> {
    let mut space = uvm::UnregisterGpuVaspace::default();
    space.gpu_uuid = uuid;
    let ended = uvm_call(driver, &mut space);
    uvm_unregister_gpu(driver, uuid).and(ended)
}

/// Maps memory for the GPU by UVM, also that of another client: `owner` is the driver that it is an object of.
pub(crate) fn uvm_map(
    driver: &dyn Driver,
    uuid: [u8; 16],
    owner: &dyn Driver,
    memory: Handle,
    va: GpuVa,
    length: u64,
) -> Result<(), Error> {
    let mut range = uvm::CreateExternalRange::default();
    range.base = va.0.into();
    range.length = length.into();
    uvm_call(driver, &mut range)?;
    let mut map = uvm::MapExternalAllocationParams::default();
    map.base = va.0.into();
    map.length = length.into();
    map.rm_ctrl_fd = owner.control_fd().into();
    map.h_client = owner.client().0.into();
    map.h_memory = memory.0.into();
    map.per_gpu_attributes[0].gpu_mapping_type = GPU_MAPPING_READ_WRITE_ATOMIC.into();
    let mut map = uvm::MapExternalAllocation::one_gpu(map, uuid);
    uvm_call(driver, &mut map).inspect_err(|_| {
        // The first error is the one to report.
        let _ = uvm_free(driver, va, length);
    })
}

/// Ends a range that [`uvm_map`] made.
pub(crate) fn uvm_free(driver: &dyn Driver, va: GpuVa, length: u64) -> Result<(), Error> {
    let mut params = uvm::FreeParams::default();
    params.base = va.0.into();
    params.length = length.into();
    uvm_call(driver, &mut uvm::Free::from(params))
}

/// Tells the UVM driver of a channel.
pub(crate) fn uvm_register_channel(
    driver: &dyn Driver,
    uuid: [u8; 16],
    channel: Handle,
    va: GpuVa,
    length: u64,
) -> Result<(), Error> {
    let mut params = uvm::RegisterChannel::default();
    params.gpu_uuid = uuid;
    params.rm_ctrl_fd = driver.control_fd().into();
    params.h_client = driver.client().0.into();
    params.h_channel = channel.0.into();
    params.base = va.0.into();
    params.length = length.into();
    uvm_call(driver, &mut params)
}

/// Ends what [`uvm_register_channel`] began.
pub(crate) fn uvm_unregister_channel(
    driver: &dyn Driver,
    uuid: [u8; 16],
    channel: Handle,
) -> Result<(), Error> {
    let mut params = uvm::UnregisterChannelParams::default();
    params.gpu_uuid = uuid;
    params.h_client = driver.client().0.into();
    params.h_channel = channel.0.into();
    uvm_call(driver, &mut uvm::UnregisterChannel::from(params))
}
