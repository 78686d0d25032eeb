//! Allocation parameters, by class.
//!
//! Defined by `nvos.h` and the class headers. The driver ignores the caller's size and copies its own, so a
//! caller's buffer must be at least as large as the newest layout: hosts copy these bytes into a larger one.

use super::layout::{layouts, v, versioned};
use super::names::classes::*;
use super::{AllocParams, DriverVersion, I32, Layout, U32, U64};
use crate::unit::ClassId;

versioned! {
    /// `*_CHANNEL_GPFIFO_*`: a channel, in the layout of a release.
    ChannelGpfifoAlloc {
        ChannelGpfifoParams | ChannelGpfifoParamsBefore610, before v(610, 43, 2),
        h_object_error, h_object_buffer, gp_fifo_offset, gp_fifo_entries, flags, h_context_share, h_va_space, h_userd_memory, userd_offset, engine_type, cid, sub_device_id, h_object_ecc_error, instance_mem, userd_mem, ramfc_mem, mthdbuf_mem, h_phys_channel_group, internal_flags, error_notifier_mem, ecc_error_notifier_mem, process_id, sub_process_id, encrypt_iv, decrypt_iv, hmac_nonce, tpc_config_id,
    }
}

impl AllocParams for ChannelGpfifoAlloc {
    fn fits(class: ClassId) -> bool {
        engine_class(class, 0x6f)
    }

    fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
        Self::bytes_mut(self, version)
    }

    fn read_back(&mut self, version: DriverVersion) {
        Self::read_back(self, version);
    }
}

/// Whether `class` is one of a family of engine classes, which end in the same byte (from Volta on, as the
/// class tables have them).
fn engine_class(class: ClassId, family: u32) -> bool {
    (0xc300..=0xffff).contains(&class.0) && class.0 & 0xff == family
}

macro_rules! alloc_params {
    ($( $name:ident: |$class:ident| $fits:expr; )*) => { $(
        impl AllocParams for $name {
            fn fits($class: ClassId) -> bool {
                $fits
            }

            fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
                self.prefix_mut(version)
            }
        }
    )* };
}

// Each holds no pointer that the driver follows: see the types' own words.
alloc_params! {
    DeviceAlloc: |class| class == NV01_DEVICE_0;
    SubdeviceAlloc: |class| class == NV20_SUBDEVICE_0;
    VaSpaceAlloc: |class| class == FERMI_VASPACE_A;
    MemoryVirtualAlloc: |class| class == NV01_MEMORY_VIRTUAL;
    MemoryAlloc: |class| class == NV01_MEMORY_SYSTEM || class == NV01_MEMORY_LOCAL_USER;
    ChannelGroupAlloc: |class| class == KEPLER_CHANNEL_GROUP_A;
    CtxShareAlloc: |class| class == FERMI_CONTEXT_SHARE_A;
    P2pAlloc: |class| class == NV50_P2P;
    DebuggerAlloc: |class| class == GT200_DEBUGGER;
    HopperUsermodeAlloc: |class| engine_class(class, 0x61);
    CopyAlloc: |class| engine_class(class, 0xb5);
    GrAlloc: |class| engine_class(class, 0xc0);
}

layouts! {
    /// `NV01_ROOT_CLIENT`: a client. Every other object lies below one.
    ///
    /// It holds a pointer (`p_os_pid_info`), so it is no [`AllocParams`](super::AllocParams).
    RootAlloc = "NV0000_ALLOC_PARAMETERS" sizes [(v(535, 43, 2), 0x6c), (v(570, 86, 15), 0x78)] {
        h_client: U32 = "hClient",
        process_id: U32 = "processID",
        process_name: [u8; 100] = "processName",
        #[doc(hidden)] _pad108: [u8; 4] = "",
        p_os_pid_info: U64 = "pOsPidInfo",
    }
    /// `NV01_DEVICE_0`: a device.
    DeviceAlloc = "NV0080_ALLOC_PARAMETERS" {
        device_id: U32 = "deviceId",
        h_client_share: U32 = "hClientShare",
        h_target_client: U32 = "hTargetClient",
        h_target_device: U32 = "hTargetDevice",
        flags: U32 = "flags",
        #[doc(hidden)] _pad20: [u8; 4] = "",
        va_space_size: U64 = "vaSpaceSize",
        va_start_internal: U64 = "vaStartInternal",
        va_limit_internal: U64 = "vaLimitInternal",
        va_mode: U32 = "vaMode",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `NV20_SUBDEVICE_0`: one GPU of a device.
    SubdeviceAlloc = "NV2080_ALLOC_PARAMETERS" {
        sub_device_id: U32 = "subDeviceId",
    }
    /// `FERMI_VASPACE_A`: a GPU address space.
    VaSpaceAlloc = "NV_VASPACE_ALLOCATION_PARAMETERS" sizes [(v(535, 43, 2), 0x30), (v(580, 65, 6), 0x38)] {
        index: U32 = "index",
        flags: U32 = "flags",
        va_size: U64 = "vaSize",
        va_start_internal: U64 = "vaStartInternal",
        va_limit_internal: U64 = "vaLimitInternal",
        big_page_size: U32 = "bigPageSize",
        #[doc(hidden)] _pad36: [u8; 4] = "",
        va_base: U64 = "vaBase",
        pasid: U32 = "pasid",
        #[doc(hidden)] _pad52: [u8; 4] = "",
    }
    /// `NV01_MEMORY_VIRTUAL`: the range of an address space that `NV_ESC_RM_MAP_MEMORY_DMA` maps into.
    ///
    /// `limit` 0 takes all of the space; one above the space's is `NV_ERR_INVALID_LIMIT`.
    MemoryVirtualAlloc = "NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS" {
        offset: U64 = "offset",
        limit: U64 = "limit",
        h_va_space: U32 = "hVASpace",
        #[doc(hidden)] _pad20: [u8; 4] = "",
    }
    /// `NV01_MEMORY_LOCAL_USER` and `NV01_MEMORY_SYSTEM`: memory on the GPU or in the host.
    ///
    /// `address` is an answer: the driver clears what is put there and follows no pointer for these classes.
    MemoryAlloc = "NV_MEMORY_ALLOCATION_PARAMS" sizes [(v(535, 43, 2), 0x78), (v(545, 23, 6), 0x80)] {
        owner: U32 = "owner",
        type_: U32 = "type",
        flags: U32 = "flags",
        width: U32 = "width",
        height: U32 = "height",
        pitch: I32 = "pitch",
        attr: U32 = "attr",
        attr2: U32 = "attr2",
        format: U32 = "format",
        compr_covg: U32 = "comprCovg",
        zcull_covg: U32 = "zcullCovg",
        #[doc(hidden)] _pad44: [u8; 4] = "",
        range_lo: U64 = "rangeLo",
        range_hi: U64 = "rangeHi",
        size: U64 = "size",
        alignment: U64 = "alignment",
        offset: U64 = "offset",
        limit: U64 = "limit",
        address: U64 = "address",
        ctag_offset: U32 = "ctagOffset",
        h_va_space: U32 = "hVASpace",
        internalflags: U32 = "internalflags",
        tag: U32 = "tag",
        numa_node: I32 = "numaNode",
        #[doc(hidden)] _pad124: [u8; 4] = "",
    }
    /// `NV01_MEMORY_SYSTEM_OS_DESCRIPTOR` by `NV_ESC_RM_ALLOC`.
    ///
    /// It holds a pointer (`descriptor`), so it is no [`AllocParams`](super::AllocParams).
    OsDescMemoryAlloc = "NV_OS_DESC_MEMORY_ALLOCATION_PARAMS" {
        type_: U32 = "type",
        flags: U32 = "flags",
        attr: U32 = "attr",
        attr2: U32 = "attr2",
        descriptor: U64 = "descriptor",
        limit: U64 = "limit",
        descriptor_type: U32 = "descriptorType",
        tag: U32 = "tag",
    }
    /// `KEPLER_CHANNEL_GROUP_A`: channels that are scheduled and torn down together.
    ChannelGroupAlloc = "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS" {
        h_object_error: U32 = "hObjectError",
        h_object_ecc_error: U32 = "hObjectEccError",
        h_va_space: U32 = "hVASpace",
        engine_type: U32 = "engineType",
        b_is_calling_context_vgpu_plugin: u8 = "bIsCallingContextVgpuPlugin",
        #[doc(hidden)] _pad17: [u8; 3] = "",
    }
    /// `FERMI_CONTEXT_SHARE_A`: a subcontext of a channel group with its address space.
    CtxShareAlloc = "NV_CTXSHARE_ALLOCATION_PARAMETERS" {
        h_va_space: U32 = "hVASpace",
        flags: U32 = "flags",
        subctx_id: U32 = "subctxId",
    }
    /// Memory that the driver names to itself; a client leaves it zero.
    MemoryDesc = "NV_MEMORY_DESC_PARAMS" {
        base: U64 = "base",
        size: U64 = "size",
        address_space: U32 = "addressSpace",
        cache_attrib: U32 = "cacheAttrib",
    }
    /// `*_CHANNEL_GPFIFO_*` from release 610.43.02 (the numbers are second hand there).
    ChannelGpfifoParams = "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS" sizes [(v(535, 43, 2), 0x0), (v(610, 43, 2), 0x178)] {
        h_object_error: U32 = "hObjectError",
        h_object_buffer: U32 = "hObjectBuffer",
        gp_fifo_offset: U64 = "gpFifoOffset",
        gp_fifo_entries: U32 = "gpFifoEntries",
        flags: U32 = "flags",
        h_context_share: U32 = "hContextShare",
        h_va_space: U32 = "hVASpace",
        h_handle_va_space: U32 = "hHandleVASpace",
        h_userd_memory: [U32; 8] = "hUserdMemory",
        #[doc(hidden)] _pad68: [u8; 4] = "",
        userd_offset: [U64; 8] = "userdOffset",
        engine_type: U32 = "engineType",
        cid: U32 = "cid",
        sub_device_id: U32 = "subDeviceId",
        h_object_ecc_error: U32 = "hObjectEccError",
        instance_mem: MemoryDesc = "instanceMem",
        userd_mem: MemoryDesc = "userdMem",
        ramfc_mem: MemoryDesc = "ramfcMem",
        mthdbuf_mem: MemoryDesc = "mthdbufMem",
        h_phys_channel_group: U32 = "hPhysChannelGroup",
        internal_flags: U32 = "internalFlags",
        error_notifier_mem: MemoryDesc = "errorNotifierMem",
        ecc_error_notifier_mem: MemoryDesc = "eccErrorNotifierMem",
        process_id: U32 = "ProcessID",
        sub_process_id: U32 = "SubProcessID",
        encrypt_iv: [U32; 3] = "encryptIv",
        decrypt_iv: [U32; 3] = "decryptIv",
        hmac_nonce: [U32; 8] = "hmacNonce",
        tpc_config_id: U32 = "tpcConfigID",
        #[doc(hidden)] _pad372: [u8; 4] = "",
    }
    /// [`ChannelGpfifoParams`] before release 610.43.02.
    ChannelGpfifoParamsBefore610 = "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS" sizes [(v(535, 43, 2), 0x130), (v(535, 43, 8), 0x168), (v(535, 54, 3), 0x130), (v(535, 86, 5), 0x168), (v(570, 86, 15), 0x170), (v(610, 43, 2), 0x0)] {
        h_object_error: U32 = "hObjectError",
        h_object_buffer: U32 = "hObjectBuffer",
        gp_fifo_offset: U64 = "gpFifoOffset",
        gp_fifo_entries: U32 = "gpFifoEntries",
        flags: U32 = "flags",
        h_context_share: U32 = "hContextShare",
        h_va_space: U32 = "hVASpace",
        h_userd_memory: [U32; 8] = "hUserdMemory",
        userd_offset: [U64; 8] = "userdOffset",
        engine_type: U32 = "engineType",
        cid: U32 = "cid",
        sub_device_id: U32 = "subDeviceId",
        h_object_ecc_error: U32 = "hObjectEccError",
        instance_mem: MemoryDesc = "instanceMem",
        userd_mem: MemoryDesc = "userdMem",
        ramfc_mem: MemoryDesc = "ramfcMem",
        mthdbuf_mem: MemoryDesc = "mthdbufMem",
        h_phys_channel_group: U32 = "hPhysChannelGroup",
        internal_flags: U32 = "internalFlags",
        error_notifier_mem: MemoryDesc = "errorNotifierMem",
        ecc_error_notifier_mem: MemoryDesc = "eccErrorNotifierMem",
        process_id: U32 = "ProcessID",
        sub_process_id: U32 = "SubProcessID",
        encrypt_iv: [U32; 3] = "encryptIv",
        decrypt_iv: [U32; 3] = "decryptIv",
        hmac_nonce: [U32; 8] = "hmacNonce",
        tpc_config_id: U32 = "tpcConfigID",
        #[doc(hidden)] _pad364: [u8; 4] = "",
    }
    /// `NV50_P2P`: lets two GPUs, by their subdevices, reach each other's memory. Zero elsewhere has the driver choose.
    P2pAlloc = "NV503B_ALLOC_PARAMETERS" sizes [(v(535, 43, 2), 0x48), (v(590, 44, 1), 0x58)] {
        h_sub_device: U32 = "hSubDevice",
        h_peer_sub_device: U32 = "hPeerSubDevice",
        sub_device_peer_id_mask: U32 = "subDevicePeerIdMask",
        peer_sub_device_peer_id_mask: U32 = "peerSubDevicePeerIdMask",
        mailbox_bar1_addr: U64 = "mailboxBar1Addr",
        mailbox_total_size: U32 = "mailboxTotalSize",
        flags: U32 = "flags",
        sub_device_egm_peer_id_mask: U32 = "subDeviceEgmPeerIdMask",
        peer_sub_device_egm_peer_id_mask: U32 = "peerSubDeviceEgmPeerIdMask",
        l2p_bar1_p2p_dma_info: [U64; 2] = "l2pBar1P2PDmaInfo",
        p2l_bar1_p2p_dma_info: [U64; 2] = "p2lBar1P2PDmaInfo",
        l2p_fabric_p2p_info: U64 = "l2pFabricP2PInfo",
        p2l_fabric_p2p_info: U64 = "p2lFabricP2PInfo",
    }
    /// `GT200_DEBUGGER`: reads the error state of the multiprocessors.
    ///
    /// `h_class3d_object` is the compute object to look at.
    DebuggerAlloc = "NV83DE_ALLOC_PARAMETERS" {
        h_debugger_client_obsolete: U32 = "hDebuggerClient_Obsolete",
        h_app_client: U32 = "hAppClient",
        h_class3d_object: U32 = "hClass3dObject",
    }
    /// `HOPPER_USERMODE_A` and later: the page of doorbells.
    HopperUsermodeAlloc = "NV_HOPPER_USERMODE_A_PARAMS" {
        b_bar1_mapping: u8 = "bBar1Mapping",
        b_priv: u8 = "bPriv",
    }
    /// `*_DMA_COPY_*`: a copy engine object. None at all does too.
    CopyAlloc = "NVB0B5_ALLOCATION_PARAMETERS" {
        version: U32 = "version",
        engine_type: U32 = "engineType",
    }
    /// `*_COMPUTE_*`: a compute object. None at all does too.
    GrAlloc = "NV_GR_ALLOCATION_PARAMETERS" {
        version: U32 = "version",
        flags: U32 = "flags",
        size: U32 = "size",
        caps: U32 = "caps",
    }
}
