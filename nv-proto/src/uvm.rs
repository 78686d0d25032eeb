//! The UVM driver's ioctl numbers and parameter structures.
//!
//! Defined by `uvm_ioctl.h` and `uvm_linux_ioctl.h`. The numbers carry no size: the driver copies its own both
//! ways, so a wrong layout is misread silently and `rmStatus` lands where the driver has it. Hosts hand it a
//! buffer of at least [`MAX_PARAMS`] bytes.

use crate::rm::layout::{layouts, sealed, v, versioned};
use crate::rm::{DriverVersion, I32, Layout, Shape, Status, U32, U64};

/// A call to the UVM driver whose parameters hold no pointer that it follows.
pub trait UvmCommand: sealed::Sealed {
    /// The ioctl number.
    const COMMAND: u32;
    /// Its name in the headers.
    const NAME: &'static str;

    /// What a release's driver expects.
    fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8];

    /// `rmStatus` where a release's driver leaves it.
    fn status(&self, version: DriverVersion) -> Status;

    /// Takes what the driver wrote back into the fields, where the release lays them out differently.
    fn read_back(&mut self, _version: DriverVersion) {}
}

/// `gpu_mapping_type` that allows loads, stores and atomics (`UvmGpuMappingTypeReadWriteAtomic`; seen in a
/// working sequence on an H200).
pub const GPU_MAPPING_TYPE_READ_WRITE_ATOMIC: u32 = 1;

/// The most bytes that a UVM call described here has, in any release.
pub const MAX_PARAMS: usize = size_of::<MapExternalAllocationParams>();

/// The parameters of a command in a release, if they are described here.
#[must_use]
pub fn shape(command: u32, version: DriverVersion) -> Option<Shape> {
    match command {
        MapExternalAllocation::COMMAND => Some(MapExternalAllocation::shape(version)),
        Free::COMMAND => Some(Free::shape(version)),
        UnregisterChannel::COMMAND => Some(UnregisterChannel::shape(version)),
        _ => fixed_shape(command),
    }
}

/// `rmStatus` in the bytes that a release's driver has filled in; `None` for a command that is not described
/// here or too few bytes.
#[must_use]
pub fn status_of(command: u32, version: DriverVersion, bytes: &[u8]) -> Option<Status> {
    let shape = shape(command, version)?;
    let field = shape.fields.iter().find(|field| field.name == "rmStatus")?;
    let word = bytes.get(field.offset..)?.first_chunk::<4>()?;
    Some(Status(u32::from_le_bytes(*word)))
}

/// A command's name, such as `UVM_MAP_EXTERNAL_ALLOCATION`.
#[must_use]
pub fn name(command: u32) -> Option<&'static str> {
    let at = NAMES
        .binary_search_by_key(&command, |(number, _)| *number)
        .ok()?;
    NAMES.get(at).map(|(_, name)| *name)
}

versioned! {
    /// `UVM_FREE`: ends a range, in the layout of a release.
    Free {
        FreeParams | FreeParamsSince590, since v(590, 44, 1),
        base, rm_status,
    }
}

versioned! {
    /// `UVM_UNREGISTER_CHANNEL`: takes a channel away, in the layout of a release.
    UnregisterChannel {
        UnregisterChannelParams | UnregisterChannelParamsSince590, since v(590, 44, 1),
        h_client, h_channel, rm_status,
    }
}

/// `UVM_MAP_EXTERNAL_ALLOCATION`: maps a memory object into an external range, in the layout of a release.
///
/// Releases before 550.40.53 take 32 GPUs instead of 256.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MapExternalAllocation {
    /// The fields, to be filled in and read.
    pub params: MapExternalAllocationParams,
    other: MapExternalAllocationParamsBefore550,
}

logged!(MapExternalAllocation, mapping, "{}", mapping.params);

impl MapExternalAllocation {
    const CHANGED: DriverVersion = v(550, 40, 53);

    /// A mapping for one GPU that may read, write and do atomics.
    #[must_use]
    pub fn one_gpu(mut params: MapExternalAllocationParams, gpu: [u8; 16]) -> Self {
        if let Some(first) = params.per_gpu_attributes.first_mut() {
            first.gpu_uuid = gpu;
            first.gpu_mapping_type = U32::new(GPU_MAPPING_TYPE_READ_WRITE_ATOMIC);
        }
        params.gpu_attributes_count = U64::new(1);
        Self::from(params)
    }

    /// The layout that a release's driver expects.
    #[must_use]
    pub fn shape(version: DriverVersion) -> Shape {
        if version < Self::CHANGED {
            MapExternalAllocationParamsBefore550::SHAPE
        } else {
            MapExternalAllocationParams::SHAPE
        }
    }
}

impl sealed::Sealed for MapExternalAllocation {}

impl UvmCommand for MapExternalAllocation {
    const COMMAND: u32 = 0x21;
    const NAME: &'static str = "UVM_MAP_EXTERNAL_ALLOCATION";

    fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
        if version >= Self::CHANGED {
            return self.params.prefix_mut(version);
        }
        let MapExternalAllocationParams {
            base,
            length,
            offset,
            ..
        } = self.params;
        let MapExternalAllocationParams {
            gpu_attributes_count,
            rm_ctrl_fd,
            h_client,
            h_memory,
            ..
        } = self.params;
        let per_gpu_attributes = self.params.per_gpu_attributes.first_chunk().copied();
        self.other = MapExternalAllocationParamsBefore550 {
            base,
            length,
            offset,
            per_gpu_attributes: per_gpu_attributes.unwrap_or_default(),
            gpu_attributes_count,
            rm_ctrl_fd,
            h_client,
            h_memory,
            rm_status: self.params.rm_status,
        };
        self.other.prefix_mut(version)
    }

    fn status(&self, version: DriverVersion) -> Status {
        let new = version >= Self::CHANGED;
        Status(if new {
            self.params.rm_status.get()
        } else {
            self.other.rm_status.get()
        })
    }

    fn read_back(&mut self, version: DriverVersion) {
        if version < Self::CHANGED {
            self.params.rm_status = self.other.rm_status;
        }
    }
}

impl core::ops::Deref for MapExternalAllocation {
    type Target = MapExternalAllocationParams;

    fn deref(&self) -> &Self::Target {
        &self.params
    }
}

impl core::ops::DerefMut for MapExternalAllocation {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.params
    }
}

impl From<MapExternalAllocationParams> for MapExternalAllocation {
    fn from(params: MapExternalAllocationParams) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }
}

macro_rules! versioned_commands {
    ($( $name:ident = $command:literal, $header:literal, other since $at:expr; )*) => { $(
        impl UvmCommand for $name {
            const COMMAND: u32 = $command;
            const NAME: &'static str = $header;

            fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
                Self::bytes_mut(self, version)
            }

            fn status(&self, version: DriverVersion) -> Status {
                let other = version >= $at;
                Status(if other { self.other.rm_status.get() } else { self.params.rm_status.get() })
            }

            fn read_back(&mut self, version: DriverVersion) {
                Self::read_back(self, version);
            }
        }
    )* };
}

versioned_commands! {
    Free = 0x22, "UVM_FREE", other since v(590, 44, 1);
    UnregisterChannel = 0x1c, "UVM_UNREGISTER_CHANNEL", other since v(590, 44, 1);
}

macro_rules! commands {
    ($( $name:ident = $command:literal, $header:literal; )*) => {
        $(
            impl UvmCommand for $name {
                const COMMAND: u32 = $command;
                const NAME: &'static str = $header;

                fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
                    self.prefix_mut(version)
                }

                fn status(&self, _version: DriverVersion) -> Status {
                    Status(self.rm_status.get())
                }
            }
        )*

        fn fixed_shape(command: u32) -> Option<Shape> {
            match command {
                $( $command => Some($name::SHAPE), )*
                _ => None,
            }
        }
    };
}

commands! {
    Initialize = 0x30000001, "UVM_INITIALIZE";
    MmInitialize = 0x4b, "UVM_MM_INITIALIZE";
    RegisterGpu = 0x25, "UVM_REGISTER_GPU";
    UnregisterGpu = 0x26, "UVM_UNREGISTER_GPU";
    RegisterGpuVaspace = 0x19, "UVM_REGISTER_GPU_VASPACE";
    UnregisterGpuVaspace = 0x1a, "UVM_UNREGISTER_GPU_VASPACE";
    RegisterChannel = 0x1b, "UVM_REGISTER_CHANNEL";
    EnablePeerAccess = 0x1d, "UVM_ENABLE_PEER_ACCESS";
    DisablePeerAccess = 0x1e, "UVM_DISABLE_PEER_ACCESS";
    CreateExternalRange = 0x49, "UVM_CREATE_EXTERNAL_RANGE";
    UnmapExternal = 0x42, "UVM_UNMAP_EXTERNAL";
    PageableMemAccess = 0x27, "UVM_PAGEABLE_MEM_ACCESS";
    ValidateVaRange = 0x48, "UVM_VALIDATE_VA_RANGE";
}

layouts! {
    /// How one GPU maps an external allocation; all zero but the UUID is the default.
    GpuMappingAttributes = "UvmGpuMappingAttributes" {
        gpu_uuid: [u8; 16] = "gpuUuid",
        gpu_mapping_type: U32 = "gpuMappingType",
        gpu_caching_type: U32 = "gpuCachingType",
        gpu_format_type: U32 = "gpuFormatType",
        gpu_element_bits: U32 = "gpuElementBits",
        gpu_compression_type: U32 = "gpuCompressionType",
    }
    /// `UVM_INITIALIZE`: makes this descriptor a UVM address space. Flags 0.
    Initialize = "UVM_INITIALIZE_PARAMS" {
        flags: U64 = "flags",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad12: [u8; 4] = "",
    }
    /// `UVM_MM_INITIALIZE`: ties a second descriptor's life to that of the process; its warning 0x10006 is normal.
    MmInitialize = "UVM_MM_INITIALIZE_PARAMS" {
        uvm_fd: I32 = "uvmFd",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_REGISTER_GPU`: makes a GPU known to this UVM address space.
    RegisterGpu = "UVM_REGISTER_GPU_PARAMS" {
        gpu_uuid: [u8; 16] = "gpu_uuid",
        numa_enabled: u8 = "numaEnabled",
        #[doc(hidden)] _pad17: [u8; 3] = "",
        numa_node_id: I32 = "numaNodeId",
        rm_ctrl_fd: I32 = "rmCtrlFd",
        h_client: U32 = "hClient",
        h_smc_part_ref: U32 = "hSmcPartRef",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_UNREGISTER_GPU`: takes a GPU away from this UVM address space.
    UnregisterGpu = "UVM_UNREGISTER_GPU_PARAMS" {
        gpu_uuid: [u8; 16] = "gpu_uuid",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_REGISTER_GPU_VASPACE`: hands a resource-manager address space to UVM.
    RegisterGpuVaspace = "UVM_REGISTER_GPU_VASPACE_PARAMS" {
        gpu_uuid: [u8; 16] = "gpuUuid",
        rm_ctrl_fd: I32 = "rmCtrlFd",
        h_client: U32 = "hClient",
        h_va_space: U32 = "hVaSpace",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_UNREGISTER_GPU_VASPACE`: takes an address space back from UVM.
    UnregisterGpuVaspace = "UVM_UNREGISTER_GPU_VASPACE_PARAMS" {
        gpu_uuid: [u8; 16] = "gpuUuid",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_REGISTER_CHANNEL`: lets a channel run in a UVM address space; `base` and `length` are addresses for its own buffers.
    RegisterChannel = "UVM_REGISTER_CHANNEL_PARAMS" {
        gpu_uuid: [u8; 16] = "gpuUuid",
        rm_ctrl_fd: I32 = "rmCtrlFd",
        h_client: U32 = "hClient",
        h_channel: U32 = "hChannel",
        #[doc(hidden)] _pad28: [u8; 4] = "",
        base: U64 = "base",
        length: U64 = "length",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `UVM_UNREGISTER_CHANNEL`: takes a channel away, before release 590.44.01.
    UnregisterChannelParams = "UVM_UNREGISTER_CHANNEL_PARAMS" sizes [(v(535, 43, 2), 0x1c), (v(590, 44, 1), 0x0)] {
        gpu_uuid: [u8; 16] = "gpuUuid",
        h_client: U32 = "hClient",
        h_channel: U32 = "hChannel",
        rm_status: U32 = "rmStatus",
    }
    /// [`UnregisterChannelParams`] from release 590.44.01.
    UnregisterChannelParamsSince590 = "UVM_UNREGISTER_CHANNEL_PARAMS" sizes [(v(535, 43, 2), 0x0), (v(590, 44, 1), 0xc)] {
        h_client: U32 = "hClient",
        h_channel: U32 = "hChannel",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_ENABLE_PEER_ACCESS`: lets two GPUs reach each other's memory.
    EnablePeerAccess = "UVM_ENABLE_PEER_ACCESS_PARAMS" {
        gpu_uuid_a: [u8; 16] = "gpuUuidA",
        gpu_uuid_b: [u8; 16] = "gpuUuidB",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_DISABLE_PEER_ACCESS`: ends [`EnablePeerAccess`].
    DisablePeerAccess = "UVM_DISABLE_PEER_ACCESS_PARAMS" {
        gpu_uuid_a: [u8; 16] = "gpuUuidA",
        gpu_uuid_b: [u8; 16] = "gpuUuidB",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_CREATE_EXTERNAL_RANGE`: sets a range of addresses aside for memory that the caller manages.
    CreateExternalRange = "UVM_CREATE_EXTERNAL_RANGE_PARAMS" {
        base: U64 = "base",
        length: U64 = "length",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad20: [u8; 4] = "",
    }
    /// `UVM_MAP_EXTERNAL_ALLOCATION`: maps a resource-manager memory object into an external range, from release 550.40.53.
    MapExternalAllocationParams = "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS" sizes [(v(535, 43, 2), 0x0), (v(550, 40, 53), 0x2430)] {
        base: U64 = "base",
        length: U64 = "length",
        offset: U64 = "offset",
        per_gpu_attributes: [GpuMappingAttributes; 256] = "perGpuAttributes",
        gpu_attributes_count: U64 = "gpuAttributesCount",
        rm_ctrl_fd: I32 = "rmCtrlFd",
        h_client: U32 = "hClient",
        h_memory: U32 = "hMemory",
        rm_status: U32 = "rmStatus",
    }
    /// [`MapExternalAllocationParams`] before release 550.40.53.
    MapExternalAllocationParamsBefore550 = "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS" sizes [(v(535, 43, 2), 0x4b0), (v(550, 40, 53), 0x0)] {
        base: U64 = "base",
        length: U64 = "length",
        offset: U64 = "offset",
        per_gpu_attributes: [GpuMappingAttributes; 32] = "perGpuAttributes",
        gpu_attributes_count: U64 = "gpuAttributesCount",
        rm_ctrl_fd: I32 = "rmCtrlFd",
        h_client: U32 = "hClient",
        h_memory: U32 = "hMemory",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_UNMAP_EXTERNAL`: unmaps part of an external range.
    UnmapExternal = "UVM_UNMAP_EXTERNAL_PARAMS" {
        base: U64 = "base",
        length: U64 = "length",
        gpu_uuid: [u8; 16] = "gpuUuid",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad36: [u8; 4] = "",
    }
    /// `UVM_FREE`: ends a range, before release 590.44.01.
    FreeParams = "UVM_FREE_PARAMS" sizes [(v(535, 43, 2), 0x18), (v(590, 44, 1), 0x0)] {
        base: U64 = "base",
        length: U64 = "length",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad20: [u8; 4] = "",
    }
    /// [`FreeParams`] from release 590.44.01: the length is known from the range.
    FreeParamsSince590 = "UVM_FREE_PARAMS" sizes [(v(535, 43, 2), 0x0), (v(590, 44, 1), 0x10)] {
        base: U64 = "base",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad12: [u8; 4] = "",
    }
    /// `UVM_PAGEABLE_MEM_ACCESS`: whether GPUs can use ordinary host memory.
    PageableMemAccess = "UVM_PAGEABLE_MEM_ACCESS_PARAMS" {
        pageable_mem_access: u8 = "pageableMemAccess",
        #[doc(hidden)] _pad1: [u8; 3] = "",
        rm_status: U32 = "rmStatus",
    }
    /// `UVM_VALIDATE_VA_RANGE`: whether a range lies inside one that UVM knows.
    ValidateVaRange = "UVM_VALIDATE_VA_RANGE_PARAMS" {
        base: U64 = "base",
        length: U64 = "length",
        rm_status: U32 = "rmStatus",
        #[doc(hidden)] _pad20: [u8; 4] = "",
    }
}

/// Every command by number, in ascending order.
pub const NAMES: &[(u32, &str)] = &[
    (0x1, "UVM_RESERVE_VA"),
    (0x2, "UVM_RELEASE_VA"),
    (0x3, "UVM_REGION_COMMIT"),
    (0x4, "UVM_REGION_DECOMMIT"),
    (0x5, "UVM_REGION_SET_STREAM"),
    (0x6, "UVM_SET_STREAM_RUNNING"),
    (0x7, "UVM_SET_STREAM_STOPPED"),
    (0x9, "UVM_RUN_TEST"),
    (0xa, "UVM_ADD_SESSION"),
    (0xb, "UVM_REMOVE_SESSION"),
    (0xc, "UVM_ENABLE_COUNTERS"),
    (0xd, "UVM_MAP_COUNTER"),
    (0xe, "UVM_CREATE_EVENT_QUEUE"),
    (0xf, "UVM_REMOVE_EVENT_QUEUE"),
    (0x10, "UVM_MAP_EVENT_QUEUE"),
    (0x11, "UVM_EVENT_CTRL"),
    (0x12, "UVM_REGISTER_MPS_SERVER"),
    (0x13, "UVM_REGISTER_MPS_CLIENT"),
    (0x14, "UVM_GET_GPU_UUID_TABLE"),
    (0x17, "UVM_CREATE_RANGE_GROUP"),
    (0x18, "UVM_DESTROY_RANGE_GROUP"),
    (0x19, "UVM_REGISTER_GPU_VASPACE"),
    (0x1a, "UVM_UNREGISTER_GPU_VASPACE"),
    (0x1b, "UVM_REGISTER_CHANNEL"),
    (0x1c, "UVM_UNREGISTER_CHANNEL"),
    (0x1d, "UVM_ENABLE_PEER_ACCESS"),
    (0x1e, "UVM_DISABLE_PEER_ACCESS"),
    (0x1f, "UVM_SET_RANGE_GROUP"),
    (0x21, "UVM_MAP_EXTERNAL_ALLOCATION"),
    (0x22, "UVM_FREE"),
    (0x23, "UVM_MEM_MAP"),
    (0x24, "UVM_DEBUG_ACCESS_MEMORY"),
    (0x25, "UVM_REGISTER_GPU"),
    (0x26, "UVM_UNREGISTER_GPU"),
    (0x27, "UVM_PAGEABLE_MEM_ACCESS"),
    (0x28, "UVM_PREVENT_MIGRATION_RANGE_GROUPS"),
    (0x29, "UVM_ALLOW_MIGRATION_RANGE_GROUPS"),
    (0x2a, "UVM_SET_PREFERRED_LOCATION"),
    (0x2b, "UVM_UNSET_PREFERRED_LOCATION"),
    (0x2c, "UVM_ENABLE_READ_DUPLICATION"),
    (0x2d, "UVM_DISABLE_READ_DUPLICATION"),
    (0x2e, "UVM_SET_ACCESSED_BY"),
    (0x2f, "UVM_UNSET_ACCESSED_BY"),
    (0x33, "UVM_MIGRATE"),
    (0x35, "UVM_MIGRATE_RANGE_GROUP"),
    (0x36, "UVM_ENABLE_SYSTEM_WIDE_ATOMICS"),
    (0x37, "UVM_DISABLE_SYSTEM_WIDE_ATOMICS"),
    (0x38, "UVM_TOOLS_INIT_EVENT_TRACKER"),
    (0x39, "UVM_TOOLS_SET_NOTIFICATION_THRESHOLD"),
    (0x3a, "UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS"),
    (0x3b, "UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS"),
    (0x3c, "UVM_TOOLS_ENABLE_COUNTERS"),
    (0x3d, "UVM_TOOLS_DISABLE_COUNTERS"),
    (0x3e, "UVM_TOOLS_READ_PROCESS_MEMORY"),
    (0x3f, "UVM_TOOLS_WRITE_PROCESS_MEMORY"),
    (0x40, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE"),
    (0x41, "UVM_MAP_DYNAMIC_PARALLELISM_REGION"),
    (0x42, "UVM_UNMAP_EXTERNAL"),
    (0x43, "UVM_TOOLS_FLUSH_EVENTS"),
    (0x44, "UVM_ALLOC_SEMAPHORE_POOL"),
    (0x45, "UVM_CLEAN_UP_ZOMBIE_RESOURCES"),
    (0x46, "UVM_PAGEABLE_MEM_ACCESS_ON_GPU"),
    (0x47, "UVM_POPULATE_PAGEABLE"),
    (0x48, "UVM_VALIDATE_VA_RANGE"),
    (0x49, "UVM_CREATE_EXTERNAL_RANGE"),
    (0x4a, "UVM_MAP_EXTERNAL_SPARSE"),
    (0x4b, "UVM_MM_INITIALIZE"),
    (0x4c, "UVM_TOOLS_INIT_EVENT_TRACKER_V2"),
    (0x4d, "UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2"),
    (0x4e, "UVM_ALLOC_DEVICE_P2P"),
    (0x4f, "UVM_CLEAR_ALL_ACCESS_COUNTERS"),
    (0x50, "UVM_DISCARD"),
    (0x7ff, "UVM_IS_8_SUPPORTED"),
    (0x30000001, "UVM_INITIALIZE"),
    (0x30000002, "UVM_DEINITIALIZE"),
];
