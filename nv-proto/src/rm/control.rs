//! Control calls: their parameters and commands.
//!
//! Defined by the `ctrl/*.h` headers. The driver refuses parameters of another size than its own.

use super::layout::{layouts, v};
use super::{Control, DriverVersion, I32, Layout, Shape, U16, U32, U64};

/// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST`, the command of [`GpuGetClasslist`].
pub const NV0080_CTRL_CMD_GPU_GET_CLASSLIST: u32 = 0x0080_0201;
/// `NV2080_CTRL_CMD_GR_GET_INFO`, the command of [`GrGetInfo`].
pub const NV2080_CTRL_CMD_GR_GET_INFO: u32 = 0x2080_1201;

macro_rules! commands {
    ($( $name:ident = $command:literal, $header:literal; )*) => {
        $(
            impl Control for $name {
                const COMMAND: u32 = $command;
                const NAME: &'static str = $header;

                fn bytes_mut(&mut self, version: DriverVersion) -> &mut [u8] {
                    self.prefix_mut(version)
                }
            }
        )*

        /// The parameters of a command, if they are described here.
        #[must_use]
        pub fn control_shape(command: u32) -> Option<Shape> {
            match command {
                $( $command => Some($name::SHAPE), )*
                NV0080_CTRL_CMD_GPU_GET_CLASSLIST => Some(GpuGetClasslist::SHAPE),
                NV2080_CTRL_CMD_GR_GET_INFO => Some(GrGetInfo::SHAPE),
                _ => None,
            }
        }
    };
}

// None holds a pointer.
commands! {
    GpuGetIdInfoV2 = 0x0000_0205, "NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2";
    GpuGetAttachedIds = 0x0000_0201, "NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS";
    GpuGetProbedIds = 0x0000_0214, "NV0000_CTRL_CMD_GPU_GET_PROBED_IDS";
    GpuGetPciInfo = 0x0000_021b, "NV0000_CTRL_CMD_GPU_GET_PCI_INFO";
    GpuGetUuidFromGpuId = 0x0000_0275, "NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID";
    SystemGetP2pCapsV2 = 0x0000_012b, "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2";
    GpuGetClasslistV2 = 0x0080_0292, "NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2";
    GpuGetNumSubdevices = 0x0080_0280, "NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES";
    PerfBoost = 0x2080_200a, "NV2080_CTRL_CMD_PERF_BOOST";
    GpuGetGidInfo = 0x2080_014a, "NV2080_CTRL_CMD_GPU_GET_GID_INFO";
    GpuGetNameString = 0x2080_0110, "NV2080_CTRL_CMD_GPU_GET_NAME_STRING";
    GpuGetInfoV2 = 0x2080_0102, "NV2080_CTRL_CMD_GPU_GET_INFO_V2";
    GpuGetEnginesV2 = 0x2080_0170, "NV2080_CTRL_CMD_GPU_GET_ENGINES_V2";
    GpuQueryComputeModeRules = 0x2080_0131, "NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES";
    GrGetGpcMask = 0x2080_122a, "NV2080_CTRL_CMD_GR_GET_GPC_MASK";
    GrGetTpcMask = 0x2080_122b, "NV2080_CTRL_CMD_GR_GET_TPC_MASK";
    GrSetCtxswPreemptionMode = 0x2080_1210, "NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE";
    FbGetInfoV2 = 0x2080_1303, "NV2080_CTRL_CMD_FB_GET_INFO_V2";
    FbFlushGpuCache = 0x2080_130e, "NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE";
    BusGetPciInfo = 0x2080_1801, "NV2080_CTRL_CMD_BUS_GET_PCI_INFO";
    McGetArchInfo = 0x2080_1701, "NV2080_CTRL_CMD_MC_GET_ARCH_INFO";
    TimerGetTime = 0x2080_0403, "NV2080_CTRL_CMD_TIMER_GET_TIME";
    TimerGetGpuCpuTimeCorrelationInfo = 0x2080_0406, "NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO";
    GroupGpfifoSchedule = 0xa06c_0101, "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE";
    GroupSetTimeslice = 0xa06c_0103, "NVA06C_CTRL_CMD_SET_TIMESLICE";
    GroupPreempt = 0xa06c_0105, "NVA06C_CTRL_CMD_PREEMPT";
    GroupSetInterleaveLevel = 0xa06c_0107, "NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL";
    ChannelGpfifoSchedule = 0xa06f_0103, "NVA06F_CTRL_CMD_GPFIFO_SCHEDULE";
    ChannelBind = 0xa06f_0104, "NVA06F_CTRL_CMD_BIND";
    StopChannel = 0xa06f_0112, "NVA06F_CTRL_CMD_STOP_CHANNEL";
    GetWorkSubmitToken = 0xc36f_0108, "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN";
    ChannelGetMmuFaultInfo = 0x906f_0106, "NV906F_CTRL_CMD_GET_MMU_FAULT_INFO";
    ReadAllSmErrorStates = 0x83de_030c, "NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES";
    ReadSingleSmErrorState = 0x83de_030b, "NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE";
    ReadMmuFaultInfo = 0x83de_0328, "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO";
    ClearAllSmErrorStates = 0x83de_0310, "NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES";
    SetExceptionMask = 0x83de_0309, "NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK";
}

layouts! {
    /// `NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2`: which device instance a GPU id is.
    GpuGetIdInfoV2 = "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS" {
        gpu_id: U32 = "gpuId",
        gpu_flags: U32 = "gpuFlags",
        device_instance: U32 = "deviceInstance",
        sub_device_instance: U32 = "subDeviceInstance",
        sli_status: U32 = "sliStatus",
        board_id: U32 = "boardId",
        gpu_instance: U32 = "gpuInstance",
        numa_id: I32 = "numaId",
    }
    /// `NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS`: the ids of the GPUs that are up; 0xffffffff ends the list.
    GpuGetAttachedIds = "NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS" {
        gpu_ids: [U32; 32] = "gpuIds",
    }
    /// `NV0000_CTRL_CMD_GPU_GET_PROBED_IDS`: the ids of all GPUs that the driver knows; 0xffffffff ends each list.
    GpuGetProbedIds = "NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS" sizes [(v(535, 43, 2), 0x100), (v(580, 65, 6), 0x180)] {
        gpu_ids: [U32; 32] = "gpuIds",
        excluded_gpu_ids: [U32; 32] = "excludedGpuIds",
        gpu_flags: [U32; 32] = "gpuFlags",
    }
    /// `NV0000_CTRL_CMD_GPU_GET_PCI_INFO`: where a GPU sits on the bus.
    GpuGetPciInfo = "NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS" {
        gpu_id: U32 = "gpuId",
        domain: U32 = "domain",
        bus: U16 = "bus",
        slot: U16 = "slot",
    }
    /// `NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID`: the UUID of a GPU by its id.
    GpuGetUuidFromGpuId = "NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS" {
        gpu_id: U32 = "gpuId",
        flags: U32 = "flags",
        gpu_uuid: [u8; 256] = "gpuUuid",
        uuid_str_len: U32 = "uuidStrLen",
    }
    /// `NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2`: what a set of GPUs can do with each other's memory.
    SystemGetP2pCapsV2 = "NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS" sizes [(v(535, 43, 2), 0x109c), (v(550, 40, 7), 0x209c)] {
        gpu_ids: [U32; 32] = "gpuIds",
        gpu_count: U32 = "gpuCount",
        p2p_caps: U32 = "p2pCaps",
        p2p_optimal_read_ces: U32 = "p2pOptimalReadCEs",
        p2p_optimal_write_ces: U32 = "p2pOptimalWriteCEs",
        p2p_caps_status: [u8; 9] = "p2pCapsStatus",
        #[doc(hidden)] _pad153: [u8; 3] = "",
        bus_peer_ids: [U32; 1024] = "busPeerIds",
        bus_egm_peer_ids: [U32; 1024] = "busEgmPeerIds",
    }
    /// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST`: the classes that a device offers.
    ///
    /// It holds a pointer (`class_list`), so it is no [`Control`](super::Control).
    GpuGetClasslist = "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS" {
        num_classes: U32 = "numClasses",
        #[doc(hidden)] _pad4: [u8; 4] = "",
        class_list: U64 = "classList",
    }
    /// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2`: the classes that a device offers. The list's length differs by release: the driver refuses a wrong one.
    GpuGetClasslistV2 = "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS" sizes [(v(535, 43, 2), 0x284), (v(550, 40, 7), 0x2bc), (v(555, 42, 2), 0x194), (v(580, 65, 6), 0x324)] {
        num_classes: U32 = "numClasses",
        class_list: [U32; 200] = "classList",
    }
    /// `NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES`: how many GPUs a device has.
    GpuGetNumSubdevices = "NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS" {
        num_sub_devices: U32 = "numSubDevices",
    }
    /// `NV2080_CTRL_CMD_PERF_BOOST`: asks for high clocks.
    PerfBoost = "NV2080_CTRL_PERF_BOOST_PARAMS" {
        flags: U32 = "flags",
        duration: U32 = "duration",
    }
    /// `NV2080_CTRL_CMD_GPU_GET_GID_INFO`: the UUID of a GPU, as text or as 16 bytes.
    GpuGetGidInfo = "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS" {
        index: U32 = "index",
        flags: U32 = "flags",
        length: U32 = "length",
        data: [u8; 256] = "data",
    }
    /// `NV2080_CTRL_CMD_GPU_GET_NAME_STRING`: the product name of a GPU.
    GpuGetNameString = "NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS" sizes [(v(535, 43, 2), 0x84), (v(595, 44, 2), 0x44)] {
        gpu_name_string_flags: U32 = "gpuNameStringFlags",
        gpu_name_string: [u8; 128] = "gpuNameString",
    }
    /// One fact of [`GpuGetInfoV2`].
    GpuInfo = "NV2080_CTRL_GPU_INFO" {
        index: U32 = "index",
        data: U32 = "data",
    }
    /// `NV2080_CTRL_CMD_GPU_GET_INFO_V2`: facts of a GPU by index.
    GpuGetInfoV2 = "NV2080_CTRL_GPU_GET_INFO_V2_PARAMS" sizes [(v(535, 43, 2), 0x204), (v(545, 23, 6), 0x20c), (v(575, 51, 2), 0x214), (v(580, 65, 6), 0x234), (v(610, 43, 2), 0x244)] {
        gpu_info_list_size: U32 = "gpuInfoListSize",
        gpu_info_list: [GpuInfo; 72] = "gpuInfoList",
    }
    /// `NV2080_CTRL_CMD_GPU_GET_ENGINES_V2`: the engines that a GPU has.
    GpuGetEnginesV2 = "NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS" sizes [(v(535, 43, 2), 0xfc), (v(545, 23, 6), 0x100), (v(550, 40, 7), 0x104), (v(560, 28, 3), 0x154)] {
        engine_count: U32 = "engineCount",
        engine_list: [U32; 84] = "engineList",
    }
    /// `NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES`: who may compute on a GPU.
    GpuQueryComputeModeRules = "NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS" {
        rules: U32 = "rules",
    }
    /// Which graphics engine is meant, where there are several; zero for the only one.
    GrRouteInfo = "NV2080_CTRL_GR_ROUTE_INFO" {
        flags: U32 = "flags",
        #[doc(hidden)] _pad4: [u8; 4] = "",
        route: U64 = "route",
    }
    /// `NV2080_CTRL_CMD_GR_GET_INFO`: facts of the graphics engine by index.
    ///
    /// It holds a pointer (`gr_info_list`, to [`GrInfo`]s), so it is no [`Control`](super::Control).
    GrGetInfo = "NV2080_CTRL_GR_GET_INFO_PARAMS" {
        gr_info_list_size: U32 = "grInfoListSize",
        #[doc(hidden)] _pad4: [u8; 4] = "",
        gr_info_list: U64 = "grInfoList",
        gr_route_info: GrRouteInfo = "grRouteInfo",
    }
    /// One fact of [`GrGetInfo`].
    GrInfo = "NV2080_CTRL_GR_INFO" {
        index: U32 = "index",
        data: U32 = "data",
    }
    /// `NV2080_CTRL_CMD_GR_GET_GPC_MASK`: which graphics processing clusters there are.
    GrGetGpcMask = "NV2080_CTRL_GR_GET_GPC_MASK_PARAMS" {
        gr_route_info: GrRouteInfo = "grRouteInfo",
        gpc_mask: U32 = "gpcMask",
        #[doc(hidden)] _pad20: [u8; 4] = "",
    }
    /// `NV2080_CTRL_CMD_GR_GET_TPC_MASK`: which texture processing clusters one graphics processing cluster has.
    GrGetTpcMask = "NV2080_CTRL_GR_GET_TPC_MASK_PARAMS" {
        gr_route_info: GrRouteInfo = "grRouteInfo",
        gpc_id: U32 = "gpcId",
        tpc_mask: U32 = "tpcMask",
    }
    /// `NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE`: where a kernel can be interrupted.
    GrSetCtxswPreemptionMode = "NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS" {
        flags: U32 = "flags",
        h_channel: U32 = "hChannel",
        gfxp_preempt_mode: U32 = "gfxpPreemptMode",
        cilp_preempt_mode: U32 = "cilpPreemptMode",
        gr_route_info: GrRouteInfo = "grRouteInfo",
    }
    /// One fact of [`FbGetInfoV2`].
    FbInfo = "NV2080_CTRL_FB_INFO" {
        index: U32 = "index",
        data: U32 = "data",
    }
    /// `NV2080_CTRL_CMD_FB_GET_INFO_V2`: facts of the memory of a GPU by index. The list's length differs by release: the driver refuses a wrong one.
    FbGetInfoV2 = "NV2080_CTRL_FB_GET_INFO_V2_PARAMS" sizes [(v(535, 43, 2), 0x1b4), (v(545, 23, 6), 0x1bc), (v(560, 28, 3), 0x1cc), (v(580, 65, 6), 0x404)] {
        fb_info_list_size: U32 = "fbInfoListSize",
        fb_info_list: [FbInfo; 128] = "fbInfoList",
    }
    /// `NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE`: writes back or invalidates the level-2 cache.
    FbFlushGpuCache = "NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS" {
        address_array: [U64; 500] = "addressArray",
        address_array_size: U32 = "addressArraySize",
        address_align: U32 = "addressAlign",
        mem_block_size_bytes: U64 = "memBlockSizeBytes",
        flags: U32 = "flags",
        #[doc(hidden)] _pad4020: [u8; 4] = "",
    }
    /// `NV2080_CTRL_CMD_BUS_GET_PCI_INFO`: the PCI ids of a GPU.
    BusGetPciInfo = "NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS" {
        pci_device_id: U32 = "pciDeviceId",
        pci_sub_system_id: U32 = "pciSubSystemId",
        pci_revision_id: U32 = "pciRevisionId",
        pci_ext_device_id: U32 = "pciExtDeviceId",
    }
    /// `NV2080_CTRL_CMD_MC_GET_ARCH_INFO`: which chip a GPU is.
    McGetArchInfo = "NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS" {
        architecture: U32 = "architecture",
        implementation: U32 = "implementation",
        revision: U32 = "revision",
        sub_revision: u8 = "subRevision",
        #[doc(hidden)] _pad13: [u8; 3] = "",
    }
    /// `NV2080_CTRL_CMD_TIMER_GET_TIME`: the GPU's time in nanoseconds.
    TimerGetTime = "NV2080_CTRL_TIMER_GET_TIME_PARAMS" {
        time_nsec: U64 = "time_nsec",
    }
    /// One sample of [`TimerGetGpuCpuTimeCorrelationInfo`].
    GpuCpuTimeSample = "NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE" {
        cpu_time: U64 = "cpuTime",
        gpu_time: U64 = "gpuTime",
    }
    /// `NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO`: reads both clocks together.
    TimerGetGpuCpuTimeCorrelationInfo = "NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS" {
        cpu_clk_id: u8 = "cpuClkId",
        sample_count: u8 = "sampleCount",
        #[doc(hidden)] _pad2: [u8; 6] = "",
        samples: [GpuCpuTimeSample; 16] = "samples",
    }
    /// `NVA06C_CTRL_CMD_GPFIFO_SCHEDULE`: lets a channel group run, or stops it.
    GroupGpfifoSchedule = "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS" sizes [(v(535, 43, 2), 0x2), (v(575, 51, 2), 0x3)] {
        b_enable: u8 = "bEnable",
        b_skip_submit: u8 = "bSkipSubmit",
        b_skip_enable: u8 = "bSkipEnable",
    }
    /// `NVA06C_CTRL_CMD_SET_TIMESLICE`: how long a channel group runs at a time.
    GroupSetTimeslice = "NVA06C_CTRL_TIMESLICE_PARAMS" {
        timeslice_us: U64 = "timesliceUs",
    }
    /// `NVA06C_CTRL_CMD_PREEMPT`: takes a channel group off the GPU.
    GroupPreempt = "NVA06C_CTRL_PREEMPT_PARAMS" {
        b_wait: u8 = "bWait",
        b_manual_timeout: u8 = "bManualTimeout",
        #[doc(hidden)] _pad2: [u8; 2] = "",
        timeout_us: U32 = "timeoutUs",
    }
    /// `NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL`: how often a channel group gets its turn.
    GroupSetInterleaveLevel = "NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS" {
        tsg_interleave_level: U32 = "tsgInterleaveLevel",
    }
    /// `NVA06F_CTRL_CMD_GPFIFO_SCHEDULE`: lets one channel run, or stops it.
    ChannelGpfifoSchedule = "NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS" sizes [(v(535, 43, 2), 0x2), (v(575, 51, 2), 0x3)] {
        b_enable: u8 = "bEnable",
        b_skip_submit: u8 = "bSkipSubmit",
        b_skip_enable: u8 = "bSkipEnable",
    }
    /// `NVA06F_CTRL_CMD_BIND`: binds a channel to its engine.
    ChannelBind = "NVA06F_CTRL_BIND_PARAMS" {
        engine_type: U32 = "engineType",
    }
    /// `NVA06F_CTRL_CMD_STOP_CHANNEL`: stops a channel for good.
    StopChannel = "NVA06F_CTRL_STOP_CHANNEL_PARAMS" {
        b_immediate: u8 = "bImmediate",
    }
    /// `NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN`: what to write to the doorbell for a channel.
    GetWorkSubmitToken = "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS" {
        work_submit_token: U32 = "workSubmitToken",
    }
    /// `NV906F_CTRL_CMD_GET_MMU_FAULT_INFO`: the last page fault of a channel, in words.
    ChannelGetMmuFaultInfo = "NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS" {
        addr_hi: U32 = "addrHi",
        addr_lo: U32 = "addrLo",
        fault_type: U32 = "faultType",
        fault_string: [u8; 32] = "faultString",
        #[doc(hidden)] _pad44: [u8; 4] = "",
        shader_program_va: [U64; 7] = "shaderProgramVA",
    }
    /// The error registers of one multiprocessor.
    SmErrorState = "NV83DE_SM_ERROR_STATE_REGISTERS" {
        hww_global_esr: U32 = "hwwGlobalEsr",
        hww_warp_esr: U32 = "hwwWarpEsr",
        hww_warp_esr_pc: U32 = "hwwWarpEsrPc",
        hww_global_esr_report_mask: U32 = "hwwGlobalEsrReportMask",
        hww_warp_esr_report_mask: U32 = "hwwWarpEsrReportMask",
        #[doc(hidden)] _pad20: [u8; 4] = "",
        hww_esr_addr: U64 = "hwwEsrAddr",
        hww_warp_esr_pc64: U64 = "hwwWarpEsrPc64",
        hww_cga_esr: U32 = "hwwCgaEsr",
        hww_cga_esr_report_mask: U32 = "hwwCgaEsrReportMask",
    }
    /// Whether there was a page fault.
    MmuFault = "NV83DE_MMU_FAULT_INFO" {
        valid: u8 = "valid",
        #[doc(hidden)] _pad1: [u8; 3] = "",
        fault_info: U32 = "faultInfo",
    }
    /// `NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES`: the error registers of up to 100 multiprocessors from `starting_sm` on.
    ReadAllSmErrorStates = "NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS" {
        h_target_channel: U32 = "hTargetChannel",
        num_sms_to_read: U32 = "numSMsToRead",
        sm_error_state_array: [SmErrorState; 100] = "smErrorStateArray",
        mmu_fault_info: U32 = "mmuFaultInfo",
        mmu_fault: MmuFault = "mmuFault",
        starting_sm: U32 = "startingSM",
    }
    /// `NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE`: the error registers of one multiprocessor.
    ReadSingleSmErrorState = "NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS" {
        h_target_channel: U32 = "hTargetChannel",
        sm_id: U32 = "smID",
        sm_error_state: SmErrorState = "smErrorState",
    }
    /// One page fault.
    MmuFaultEntry = "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY" {
        fault_address: U64 = "faultAddress",
        fault_type: U32 = "faultType",
        access_type: U32 = "accessType",
    }
    /// `NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO`: the page faults that stopped a context.
    ReadMmuFaultInfo = "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS" {
        mmu_fault_info_list: [MmuFaultEntry; 4] = "mmuFaultInfoList",
        count: U32 = "count",
        #[doc(hidden)] _pad68: [u8; 4] = "",
    }
    /// `NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES`: clears the error registers of all multiprocessors.
    ClearAllSmErrorStates = "NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS" {
        h_target_channel: U32 = "hTargetChannel",
        num_sms_to_clear: U32 = "numSMsToClear",
    }
    /// `NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK`: which errors stop a multiprocessor.
    SetExceptionMask = "NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS" {
        exception_mask: U32 = "exceptionMask",
    }
}
