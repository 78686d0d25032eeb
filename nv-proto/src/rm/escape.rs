//! The escapes: what an ioctl on `/dev/nvidiactl` or `/dev/nvidiaN` carries.
//!
//! Defined by `nv_escape.h`, `nv-ioctl.h`, `nv-ioctl-numbers.h` and `nvos.h`. The size inside the ioctl number
//! must be the driver's own: a wrong one is refused.

use super::layout::{layouts, v, versioned};
use super::{I32, U16, U32, U64};

/// The ioctl number of an escape: `_IOWR('F', escape, size)`, or `None` for a size that it cannot hold.
///
/// ```
/// use nv_proto::rm::{NV_ESC_RM_ALLOC, Nvos21, request};
///
/// assert_eq!(request(NV_ESC_RM_ALLOC, size_of::<Nvos21>()), Some(0xc020_462b));
/// ```
#[must_use]
pub const fn request(escape: u8, size: usize) -> Option<u32> {
    if size > MAX_REQUEST_SIZE {
        return None;
    }
    // The size is below 2^14 and fits its 14 bits.
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    let size = size as u32;
    Some(IOWR | size << 16 | NV_IOCTL_MAGIC << 8 | escape as u32)
}

/// The escape and the size inside an ioctl number, if it is one of the resource manager's.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the low byte is what is asked for"
)]
pub const fn parse_request(request: u32) -> Option<(u8, usize)> {
    let driver = request >> 30 == 3 && (request >> 8) & 0xff == NV_IOCTL_MAGIC;
    if driver {
        Some((request as u8, (request >> 16 & 0x3fff) as usize))
    } else {
        None
    }
}

/// `_IOC_READ | _IOC_WRITE` at bits 31:30 (`asm-generic/ioctl.h`).
const IOWR: u32 = 3 << 30;
/// `NV_IOCTL_MAGIC` (`nv-ioctl-numbers.h`).
const NV_IOCTL_MAGIC: u32 = b'F' as u32;
/// The most that the 14 size bits of an ioctl number hold.
pub const MAX_REQUEST_SIZE: usize = 0x3fff;
/// How many entries `NV_ESC_CARD_INFO` is asked with: `NV_MAX_DEVICES` (`nv-limits.h`).
pub const MAX_CARDS: usize = 64;
/// `ApiVersion::cmd` that asks and compares nothing (`NV_RM_API_VERSION_CMD_QUERY`).
pub const API_VERSION_QUERY: u32 = b'2' as u32;

versioned! {
    /// `NV_ESC_RM_MAP_MEMORY_DMA` in the layout of a release.
    MapMemoryDma {
        Nvos46 | Nvos46Before580, before v(580, 65, 6),
        h_client, h_device, h_dma, h_memory, offset, length, flags, dma_offset, status,
    }
}

versioned! {
    /// `NV_ESC_RM_UNMAP_MEMORY_DMA` in the layout of a release.
    UnmapMemoryDma {
        Nvos47 | Nvos47Before550, before v(550, 40, 7),
        h_client, h_device, h_dma, h_memory, flags, dma_offset, status,
    }
}

layouts! {
    /// `NV_ESC_RM_FREE`: ends an object and all below it.
    Nvos00 = "NVOS00_PARAMETERS" {
        h_root: U32 = "hRoot",
        h_object_parent: U32 = "hObjectParent",
        h_object_old: U32 = "hObjectOld",
        status: U32 = "status",
    }
    /// `NV_ESC_RM_ALLOC_MEMORY`: makes a memory object, here of the caller's own pages.
    Nvos02 = "NVOS02_PARAMETERS" {
        h_root: U32 = "hRoot",
        h_object_parent: U32 = "hObjectParent",
        h_object_new: U32 = "hObjectNew",
        h_class: U32 = "hClass",
        flags: U32 = "flags",
        #[doc(hidden)] _pad20: [u8; 4] = "",
        p_memory: U64 = "pMemory",
        limit: U64 = "limit",
        status: U32 = "status",
        #[doc(hidden)] _pad44: [u8; 4] = "",
    }
    /// [`Nvos02`] as the Unix driver takes it.
    Nvos02WithFd = "nv_ioctl_nvos02_parameters_with_fd" {
        params: Nvos02 = "params",
        fd: I32 = "fd",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `NV_ESC_RM_ALLOC`: makes an object (the short form).
    Nvos21 = "NVOS21_PARAMETERS" {
        h_root: U32 = "hRoot",
        h_object_parent: U32 = "hObjectParent",
        h_object_new: U32 = "hObjectNew",
        h_class: U32 = "hClass",
        p_alloc_parms: U64 = "pAllocParms",
        params_size: U32 = "paramsSize",
        status: U32 = "status",
    }
    /// `NV_ESC_RM_MAP_MEMORY`: prepares a mapping for the CPU, which an `mmap` then makes.
    Nvos33 = "NVOS33_PARAMETERS" {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_memory: U32 = "hMemory",
        #[doc(hidden)] _pad12: [u8; 4] = "",
        offset: U64 = "offset",
        length: U64 = "length",
        p_linear_address: U64 = "pLinearAddress",
        status: U32 = "status",
        flags: U32 = "flags",
    }
    /// [`Nvos33`] as the Unix driver takes it: `fd` is the descriptor that the `mmap` will use.
    Nvos33WithFd = "nv_ioctl_nvos33_parameters_with_fd" {
        params: Nvos33 = "params",
        fd: I32 = "fd",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `NV_ESC_RM_UNMAP_MEMORY`: takes back what [`Nvos33`] prepared.
    Nvos34 = "NVOS34_PARAMETERS" {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_memory: U32 = "hMemory",
        #[doc(hidden)] _pad12: [u8; 4] = "",
        p_linear_address: U64 = "pLinearAddress",
        status: U32 = "status",
        flags: U32 = "flags",
    }
    /// `NV_ESC_RM_MAP_MEMORY_DMA`: maps memory for the GPU, from release 580.65.06.
    Nvos46 = "NVOS46_PARAMETERS" sizes [(v(535, 43, 2), 0x0), (v(580, 65, 6), 0x40)] {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_dma: U32 = "hDma",
        h_memory: U32 = "hMemory",
        offset: U64 = "offset",
        length: U64 = "length",
        flags: U32 = "flags",
        flags2: U32 = "flags2",
        kind_override: U32 = "kindOverride",
        #[doc(hidden)] _pad44: [u8; 4] = "",
        dma_offset: U64 = "dmaOffset",
        status: U32 = "status",
        #[doc(hidden)] _pad60: [u8; 4] = "",
    }
    /// [`Nvos46`] before release 580.65.06.
    Nvos46Before580 = "NVOS46_PARAMETERS" sizes [(v(535, 43, 2), 0x38), (v(580, 65, 6), 0x0)] {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_dma: U32 = "hDma",
        h_memory: U32 = "hMemory",
        offset: U64 = "offset",
        length: U64 = "length",
        flags: U32 = "flags",
        #[doc(hidden)] _pad36: [u8; 4] = "",
        dma_offset: U64 = "dmaOffset",
        status: U32 = "status",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `NV_ESC_RM_UNMAP_MEMORY_DMA`: unmaps from the GPU, from release 550.40.07.
    Nvos47 = "NVOS47_PARAMETERS" sizes [(v(535, 43, 2), 0x0), (v(550, 40, 7), 0x30)] {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_dma: U32 = "hDma",
        h_memory: U32 = "hMemory",
        flags: U32 = "flags",
        #[doc(hidden)] _pad20: [u8; 4] = "",
        dma_offset: U64 = "dmaOffset",
        size: U64 = "size",
        status: U32 = "status",
        #[doc(hidden)] _pad44: [u8; 4] = "",
    }
    /// [`Nvos47`] before release 550.40.07.
    Nvos47Before550 = "NVOS47_PARAMETERS" sizes [(v(535, 43, 2), 0x28), (v(550, 40, 7), 0x0)] {
        h_client: U32 = "hClient",
        h_device: U32 = "hDevice",
        h_dma: U32 = "hDma",
        h_memory: U32 = "hMemory",
        flags: U32 = "flags",
        #[doc(hidden)] _pad20: [u8; 4] = "",
        dma_offset: U64 = "dmaOffset",
        status: U32 = "status",
        #[doc(hidden)] _pad36: [u8; 4] = "",
    }
    /// `NV_ESC_RM_CONTROL`: a control call.
    Nvos54 = "NVOS54_PARAMETERS" {
        h_client: U32 = "hClient",
        h_object: U32 = "hObject",
        cmd: U32 = "cmd",
        flags: U32 = "flags",
        params: U64 = "params",
        params_size: U32 = "paramsSize",
        status: U32 = "status",
    }
    /// `NV_ESC_RM_DUP_OBJECT`: makes a second handle of an object, from another client too.
    Nvos55 = "NVOS55_PARAMETERS" {
        h_client: U32 = "hClient",
        h_parent: U32 = "hParent",
        h_object: U32 = "hObject",
        h_client_src: U32 = "hClientSrc",
        h_object_src: U32 = "hObjectSrc",
        flags: U32 = "flags",
        status: U32 = "status",
    }
    /// `NV_ESC_RM_ALLOC`: makes an object (the long form, told from [`Nvos21`] by its size).
    Nvos64 = "NVOS64_PARAMETERS" {
        h_root: U32 = "hRoot",
        h_object_parent: U32 = "hObjectParent",
        h_object_new: U32 = "hObjectNew",
        h_class: U32 = "hClass",
        p_alloc_parms: U64 = "pAllocParms",
        p_rights_requested: U64 = "pRightsRequested",
        params_size: U32 = "paramsSize",
        flags: U32 = "flags",
        status: U32 = "status",
        #[doc(hidden)] _pad44: [u8; 4] = "",
    }
    /// Where a GPU sits on the bus.
    PciInfo = "nv_pci_info_t" {
        domain: U32 = "domain",
        bus: u8 = "bus",
        slot: u8 = "slot",
        function: u8 = "function",
        #[doc(hidden)] _pad7: [u8; 1] = "",
        vendor_id: U16 = "vendor_id",
        device_id: U16 = "device_id",
    }
    /// `NV_ESC_CARD_INFO` fills an array of these, one a GPU.
    CardInfo = "nv_ioctl_card_info_t" {
        valid: u8 = "valid",
        #[doc(hidden)] _pad1: [u8; 3] = "",
        pci_info: PciInfo = "pci_info",
        gpu_id: U32 = "gpu_id",
        interrupt_line: U16 = "interrupt_line",
        #[doc(hidden)] _pad22: [u8; 2] = "",
        reg_address: U64 = "reg_address",
        reg_size: U64 = "reg_size",
        fb_address: U64 = "fb_address",
        fb_size: U64 = "fb_size",
        minor_number: U32 = "minor_number",
        dev_name: [u8; 10] = "dev_name",
        #[doc(hidden)] _pad70: [u8; 2] = "",
    }
    /// `NV_ESC_REGISTER_FD`: ties a device descriptor to a control descriptor.
    RegisterFd = "nv_ioctl_register_fd_t" {
        ctl_fd: I32 = "ctl_fd",
    }
    /// `NV_ESC_CHECK_VERSION_STR`: asks which release the driver is.
    ApiVersion = "nv_ioctl_rm_api_version_t" {
        cmd: U32 = "cmd",
        reply: U32 = "reply",
        version_string: [u8; 64] = "versionString",
    }
    /// `NV_ESC_IOCTL_XFER_CMD`: carries a call whose structure is too large for an ioctl number.
    Xfer = "nv_ioctl_xfer_t" {
        cmd: U32 = "cmd",
        size: U32 = "size",
        ptr: U64 = "ptr",
    }
    /// `NV_ESC_SYS_PARAMS`: tells the driver the size of a memory block.
    SysParams = "nv_ioctl_sys_params_t" {
        memblock_size: U64 = "memblock_size",
    }
    /// `NV_ESC_STATUS_CODE`: whether a GPU came up.
    StatusCode = "nv_ioctl_status_code_t" {
        domain: U32 = "domain",
        bus: u8 = "bus",
        slot: u8 = "slot",
        #[doc(hidden)] _pad6: [u8; 2] = "",
        status: U32 = "status",
    }
    /// `NV_ESC_WAIT_OPEN_COMPLETE`: waits for an open with `O_NONBLOCK` to finish, from release 550.40.07.
    WaitOpenComplete = "nv_ioctl_wait_open_complete_t" sizes [(v(535, 43, 2), 0x0), (v(550, 40, 7), 0x8)] {
        rc: I32 = "rc",
        adapter_status: U32 = "adapterStatus",
    }
}

/// Numbers of the escapes, with their names.
macro_rules! escapes {
    ($( $name:ident = $value:literal; )*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            pub const $name: u8 = $value;
        )*

        /// Every escape by number, in ascending order.
        pub(crate) const ESCAPE_NAMES: &[(u8, &str)] = &[ $( ($value, stringify!($name)) ),* ];
    };
}

escapes! {
    NV_ESC_RM_ALLOC_MEMORY = 0x27;
    NV_ESC_RM_ALLOC_OBJECT = 0x28;
    NV_ESC_RM_FREE = 0x29;
    NV_ESC_RM_CONTROL = 0x2a;
    NV_ESC_RM_ALLOC = 0x2b;
    NV_ESC_RM_CONFIG_GET = 0x32;
    NV_ESC_RM_CONFIG_SET = 0x33;
    NV_ESC_RM_DUP_OBJECT = 0x34;
    NV_ESC_RM_SHARE = 0x35;
    NV_ESC_RM_CONFIG_GET_EX = 0x37;
    NV_ESC_RM_CONFIG_SET_EX = 0x38;
    NV_ESC_RM_I2C_ACCESS = 0x39;
    NV_ESC_RM_IDLE_CHANNELS = 0x41;
    NV_ESC_RM_VID_HEAP_CONTROL = 0x4a;
    NV_ESC_RM_ACCESS_REGISTRY = 0x4d;
    NV_ESC_RM_MAP_MEMORY = 0x4e;
    NV_ESC_RM_UNMAP_MEMORY = 0x4f;
    NV_ESC_RM_GET_EVENT_DATA = 0x52;
    NV_ESC_RM_ALLOC_CONTEXT_DMA2 = 0x54;
    NV_ESC_RM_ADD_VBLANK_CALLBACK = 0x56;
    NV_ESC_RM_MAP_MEMORY_DMA = 0x57;
    NV_ESC_RM_UNMAP_MEMORY_DMA = 0x58;
    NV_ESC_RM_BIND_CONTEXT_DMA = 0x59;
    NV_ESC_RM_EXPORT_OBJECT_TO_FD = 0x5c;
    NV_ESC_RM_IMPORT_OBJECT_FROM_FD = 0x5d;
    NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO = 0x5e;
    NV_ESC_RM_LOCKLESS_DIAGNOSTIC = 0x5f;
    NV_ESC_CARD_INFO = 0xc8;
    NV_ESC_REGISTER_FD = 0xc9;
    NV_ESC_ALLOC_OS_EVENT = 0xce;
    NV_ESC_FREE_OS_EVENT = 0xcf;
    NV_ESC_STATUS_CODE = 0xd1;
    NV_ESC_CHECK_VERSION_STR = 0xd2;
    NV_ESC_IOCTL_XFER_CMD = 0xd3;
    NV_ESC_ATTACH_GPUS_TO_FD = 0xd4;
    NV_ESC_QUERY_DEVICE_INTR = 0xd5;
    NV_ESC_SYS_PARAMS = 0xd6;
    NV_ESC_NUMA_INFO = 0xd7;
    NV_ESC_SET_NUMA_STATUS = 0xd8;
    NV_ESC_EXPORT_TO_DMABUF_FD = 0xd9;
    NV_ESC_WAIT_OPEN_COMPLETE = 0xda;
}
