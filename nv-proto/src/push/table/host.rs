//! Methods of the host classes.
//!
//! Generated from the facts in `tests/golden/facts` by the `gen-tables` program of `tests`.

use super::{Field, Kind, MethodInfo, ValueName};
use crate::unit::ClassId;

/// The host classes.
pub(super) static KIND: Kind = Kind { classes: &CLASSES, methods: &METHODS };

static CLASSES: [ClassId; 7] = [
    ClassId(0xc36f), // VOLTA_CHANNEL_GPFIFO_A, open-gpu-doc/classes/host/clc36f.h
    ClassId(0xc46f), // TURING_CHANNEL_GPFIFO_A, open-gpu-doc/classes/host/clc46f.h
    ClassId(0xc56f), // AMPERE_CHANNEL_GPFIFO_A, open-gpu-doc/classes/host/clc56f.h
    ClassId(0xc76f), // AMPERE_CHANNEL_GPFIFO_B, open-gpu-doc/classes/host/clc76f.h
    ClassId(0xc86f), // HOPPER_CHANNEL_GPFIFO_A, open-gpu-kernel-modules 595.45.04 src/common/sdk/nvidia/inc/class/clc86f.h
    ClassId(0xc96f), // BLACKWELL_CHANNEL_GPFIFO_A, open-gpu-kernel-modules 595.45.04 src/common/sdk/nvidia/inc/class/clc96f.h
    ClassId(0xca6f), // BLACKWELL_CHANNEL_GPFIFO_B, open-gpu-kernel-modules 595.45.04 src/common/sdk/nvidia/inc/class/clca6f.h
];

static METHODS: [MethodInfo; 37] = [
    MethodInfo::new(0x0, 0, 0x0f, "SET_OBJECT", &[
        Field::new("NVCLASS", 15, 0, V0),
        Field::new("ENGINE", 20, 16, V1),
    ]),
    MethodInfo::new(0x0, 0, 0x70, "SET_OBJECT", &[
    ]),
    MethodInfo::new(0x4, 0, 0x0f, "ILLEGAL", &[
        Field::new("HANDLE", 31, 0, V0),
    ]),
    MethodInfo::new(0x8, 0, 0x0f, "NOP", &[
        Field::new("HANDLE", 31, 0, V0),
    ]),
    MethodInfo::new(0x10, 0, 0x0f, "SEMAPHOREA", &[
        Field::new("OFFSET_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x14, 0, 0x0f, "SEMAPHOREB", &[
        Field::new("OFFSET_LOWER", 31, 2, V0),
    ]),
    MethodInfo::new(0x18, 0, 0x0f, "SEMAPHOREC", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x1c, 0, 0x0f, "SEMAPHORED", &[
        Field::new("OPERATION", 4, 0, V2),
        Field::new("ACQUIRE_SWITCH", 12, 12, V3),
        Field::new("RELEASE_WFI", 20, 20, V4),
        Field::new("RELEASE_SIZE", 24, 24, V5),
        Field::new("REDUCTION", 30, 27, V6),
        Field::new("FORMAT", 31, 31, V7),
    ]),
    MethodInfo::new(0x20, 0, 0x0f, "NON_STALL_INTERRUPT", &[
        Field::new("HANDLE", 31, 0, V0),
    ]),
    MethodInfo::new(0x24, 0, 0x0f, "FB_FLUSH", &[
        Field::new("HANDLE", 31, 0, V0),
    ]),
    MethodInfo::new(0x28, 0, 0x03, "MEM_OP_A", &[
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_CLIENT_UNIT_ID", 5, 0, V0),
        Field::new("TLB_INVALIDATE_INVALIDATION_SIZE", 5, 0, V0),
        Field::new("TLB_INVALIDATE_CANCEL_MMU_ENGINE_ID", 6, 0, V0),
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_GPC_ID", 10, 6, V0),
        Field::new("TLB_INVALIDATE_SYSMEMBAR", 11, 11, V8),
        Field::new("TLB_INVALIDATE_TARGET_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x28, 0, 0x0c, "MEM_OP_A", &[
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_CLIENT_UNIT_ID", 5, 0, V0),
        Field::new("TLB_INVALIDATE_INVALIDATION_SIZE", 5, 0, V0),
        Field::new("TLB_INVALIDATE_CANCEL_MMU_ENGINE_ID", 6, 0, V0),
        Field::new("TLB_INVALIDATE_INVAL_SCOPE", 7, 6, V9),
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_GPC_ID", 10, 6, V0),
        Field::new("TLB_INVALIDATE_SYSMEMBAR", 11, 11, V8),
        Field::new("TLB_INVALIDATE_TARGET_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x28, 0, 0x10, "MEM_OP_A", &[
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_CLIENT_UNIT_ID", 5, 0, V0),
        Field::new("TLB_INVALIDATE_INVALIDATION_SIZE", 5, 0, V0),
        Field::new("TLB_INVALIDATE_CANCEL_MMU_ENGINE_ID", 8, 0, V0),
        Field::new("TLB_INVALIDATE_INVAL_SCOPE", 7, 6, V9),
        Field::new("TLB_INVALIDATE_CANCEL_TARGET_GPC_ID", 10, 6, V0),
        Field::new("TLB_INVALIDATE_SYSMEMBAR", 11, 11, V8),
        Field::new("TLB_INVALIDATE_TARGET_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x28, 0, 0x20, "MEM_OP_A", &[
        Field::new("TLB_INVALIDATE_INVALIDATION_SIZE", 5, 0, V0),
        Field::new("TLB_INVALIDATE_INVAL_SCOPE", 7, 6, V10),
        Field::new("TLB_INVALIDATE_SYSMEMBAR", 11, 11, V8),
        Field::new("TLB_INVALIDATE_TARGET_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x2c, 0, 0x3f, "MEM_OP_B", &[
        Field::new("TLB_INVALIDATE_TARGET_ADDR_HI", 31, 0, V0),
    ]),
    MethodInfo::new(0x30, 0, 0x1f, "MEM_OP_C", &[
        Field::new("TLB_INVALIDATE_PDB", 0, 0, V11),
        Field::new("MEMBAR_TYPE", 2, 0, V12),
        Field::new("ACCESS_COUNTER_CLR_TARGETED_NOTIFY_TAG", 19, 0, V0),
        Field::new("TLB_INVALIDATE_GPC", 1, 1, V13),
        Field::new("TLB_INVALIDATE_REPLAY", 4, 2, V14),
        Field::new("TLB_INVALIDATE_ACK_TYPE", 6, 5, V15),
        Field::new("TLB_INVALIDATE_ACCESS_TYPE", 9, 7, V16),
        Field::new("TLB_INVALIDATE_PAGE_TABLE_LEVEL", 9, 7, V17),
        Field::new("TLB_INVALIDATE_PDB_APERTURE", 11, 10, V18),
        Field::new("TLB_INVALIDATE_PDB_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x30, 0, 0x20, "MEM_OP_C", &[
        Field::new("TLB_INVALIDATE_PDB", 0, 0, V11),
        Field::new("TLB_INVALIDATE_GPC", 1, 1, V13),
        Field::new("TLB_INVALIDATE_REPLAY", 4, 2, V19),
        Field::new("TLB_INVALIDATE_ACK_TYPE", 6, 5, V20),
        Field::new("TLB_INVALIDATE_PAGE_TABLE_LEVEL", 9, 7, V21),
        Field::new("TLB_INVALIDATE_PDB_APERTURE", 11, 10, V22),
        Field::new("TLB_INVALIDATE_PDB_ADDR_LO", 31, 12, V0),
    ]),
    MethodInfo::new(0x34, 0, 0x07, "MEM_OP_D", &[
        Field::new("ACCESS_COUNTER_CLR_TYPE", 1, 0, V23),
        Field::new("TLB_INVALIDATE_PDB_ADDR_HI", 26, 0, V0),
        Field::new("ACCESS_COUNTER_CLR_TARGETED_TYPE", 2, 2, V24),
        Field::new("ACCESS_COUNTER_CLR_TARGETED_BANK", 6, 3, V0),
        Field::new("OPERATION", 31, 27, V25),
    ]),
    MethodInfo::new(0x34, 0, 0x18, "MEM_OP_D", &[
        Field::new("ACCESS_COUNTER_CLR_TYPE", 1, 0, V23),
        Field::new("TLB_INVALIDATE_PDB_ADDR_HI", 26, 0, V0),
        Field::new("ACCESS_COUNTER_CLR_TARGETED_TYPE", 2, 2, V24),
        Field::new("ACCESS_COUNTER_CLR_TARGETED_BANK", 6, 3, V0),
        Field::new("MMU_OPERATION_TYPE", 23, 20, V26),
        Field::new("OPERATION", 31, 27, V27),
    ]),
    MethodInfo::new(0x34, 0, 0x20, "MEM_OP_D", &[
        Field::new("TLB_INVALIDATE_PDB_ADDR_HI", 26, 0, V0),
        Field::new("OPERATION", 31, 27, V28),
    ]),
    MethodInfo::new(0x50, 0, 0x0f, "SET_REFERENCE", &[
        Field::new("COUNT", 31, 0, V0),
    ]),
    MethodInfo::new(0x5c, 0, 0x7f, "SEM_ADDR_LO", &[
        Field::new("OFFSET", 31, 2, V0),
    ]),
    MethodInfo::new(0x60, 0, 0x0f, "SEM_ADDR_HI", &[
        Field::new("OFFSET", 7, 0, V0),
    ]),
    MethodInfo::new(0x60, 0, 0x70, "SEM_ADDR_HI", &[
        Field::new("OFFSET", 24, 0, V0),
    ]),
    MethodInfo::new(0x64, 0, 0x0f, "SEM_PAYLOAD_LO", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x64, 0, 0x70, "SEM_PAYLOAD_LO", &[
    ]),
    MethodInfo::new(0x68, 0, 0x0f, "SEM_PAYLOAD_HI", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x68, 0, 0x70, "SEM_PAYLOAD_HI", &[
    ]),
    MethodInfo::new(0x6c, 0, 0x0f, "SEM_EXECUTE", &[
        Field::new("OPERATION", 2, 0, V29),
        Field::new("ACQUIRE_SWITCH_TSG", 12, 12, V8),
        Field::new("RELEASE_WFI", 20, 20, V8),
        Field::new("PAYLOAD_SIZE", 24, 24, V30),
        Field::new("RELEASE_TIMESTAMP", 25, 25, V8),
        Field::new("REDUCTION", 30, 27, V31),
        Field::new("REDUCTION_FORMAT", 31, 31, V7),
    ]),
    MethodInfo::new(0x6c, 0, 0x10, "SEM_EXECUTE", &[
        Field::new("OPERATION", 2, 0, V32),
        Field::new("ACQUIRE_SWITCH_TSG", 12, 12, V33),
        Field::new("RELEASE_WFI", 20, 20, V34),
        Field::new("PAYLOAD_SIZE", 24, 24, V35),
        Field::new("RELEASE_TIMESTAMP", 25, 25, V8),
    ]),
    MethodInfo::new(0x6c, 0, 0x60, "SEM_EXECUTE", &[
        Field::new("OPERATION", 2, 0, V36),
        Field::new("RELEASE_WFI", 20, 20, V34),
        Field::new("PAYLOAD_SIZE", 24, 24, V35),
    ]),
    MethodInfo::new(0x78, 0, 0x1f, "WFI", &[
        Field::new("SCOPE", 0, 0, V37),
    ]),
    MethodInfo::new(0x7c, 0, 0x03, "CRC_CHECK", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x80, 0, 0x03, "YIELD", &[
        Field::new("OP", 1, 0, V38),
    ]),
    MethodInfo::new(0x80, 0, 0x0c, "YIELD", &[
        Field::new("OP", 1, 0, V39),
    ]),
    MethodInfo::new(0x84, 0, 0x01, "CLEAR_FAULTED", &[
        Field::new("CHID", 11, 0, V0),
        Field::new("TYPE", 31, 31, V40),
    ]),
    MethodInfo::new(0x84, 0, 0x0e, "CLEAR_FAULTED", &[
        Field::new("HANDLE", 30, 0, V0),
        Field::new("TYPE", 31, 31, V40),
    ]),
];

const V0: &[ValueName] = &[];
const V1: &[ValueName] = &[(31, "SW")];
const V2: &[ValueName] = &[(1, "ACQUIRE"), (2, "RELEASE"), (4, "ACQ_GEQ"), (8, "ACQ_AND"), (16, "REDUCTION")];
const V3: &[ValueName] = &[(0, "DISABLED"), (1, "ENABLED")];
const V4: &[ValueName] = &[(0, "EN"), (1, "DIS")];
const V5: &[ValueName] = &[(0, "16BYTE"), (1, "4BYTE")];
const V6: &[ValueName] = &[(0, "MIN"), (1, "MAX"), (2, "XOR"), (3, "AND"), (4, "OR"), (5, "ADD"), (6, "INC"), (7, "DEC")];
const V7: &[ValueName] = &[(0, "SIGNED"), (1, "UNSIGNED")];
const V8: &[ValueName] = &[(0, "DIS"), (1, "EN")];
const V9: &[ValueName] = &[(0, "ALL_TLBS"), (1, "LINK_TLBS"), (2, "NON_LINK_TLBS"), (3, "RSVRVD")];
const V10: &[ValueName] = &[(2, "NON_LINK_TLBS")];
const V11: &[ValueName] = &[(0, "ONE"), (1, "ALL")];
const V12: &[ValueName] = &[(0, "SYS_MEMBAR"), (1, "MEMBAR")];
const V13: &[ValueName] = &[(0, "ENABLE"), (1, "DISABLE")];
const V14: &[ValueName] = &[(0, "NONE"), (1, "START"), (2, "START_ACK_ALL"), (3, "CANCEL_TARGETED"), (4, "CANCEL_GLOBAL"), (5, "CANCEL_VA_GLOBAL")];
const V15: &[ValueName] = &[(0, "NONE"), (1, "GLOBALLY"), (2, "INTRANODE")];
const V16: &[ValueName] = &[(0, "VIRT_READ"), (1, "VIRT_WRITE"), (2, "VIRT_ATOMIC_STRONG"), (3, "VIRT_RSVRVD"), (4, "VIRT_ATOMIC_WEAK"), (5, "VIRT_ATOMIC_ALL"), (6, "VIRT_WRITE_AND_ATOMIC"), (7, "VIRT_ALL")];
const V17: &[ValueName] = &[(0, "ALL"), (1, "PTE_ONLY"), (2, "UP_TO_PDE0"), (3, "UP_TO_PDE1"), (4, "UP_TO_PDE2"), (5, "UP_TO_PDE3"), (6, "UP_TO_PDE4"), (7, "UP_TO_PDE5")];
const V18: &[ValueName] = &[(0, "VID_MEM"), (2, "SYS_MEM_COHERENT"), (3, "SYS_MEM_NONCOHERENT")];
const V19: &[ValueName] = &[(0, "NONE")];
const V20: &[ValueName] = &[(0, "NONE"), (1, "GLOBALLY")];
const V21: &[ValueName] = &[(0, "ALL"), (1, "PTE_ONLY"), (6, "UP_TO_PDE4")];
const V22: &[ValueName] = &[(0, "VID_MEM"), (2, "SYS_MEM_COHERENT")];
const V23: &[ValueName] = &[(0, "MIMC"), (1, "MOMC"), (2, "ALL"), (3, "TARGETED")];
const V24: &[ValueName] = &[(0, "MIMC"), (1, "MOMC")];
const V25: &[ValueName] = &[(5, "MEMBAR"), (9, "MMU_TLB_INVALIDATE"), (10, "MMU_TLB_INVALIDATE_TARGETED"), (13, "L2_PEERMEM_INVALIDATE"), (14, "L2_SYSMEM_INVALIDATE"), (15, "L2_CLEAN_COMPTAGS"), (16, "L2_FLUSH_DIRTY"), (21, "L2_WAIT_FOR_SYS_PENDING_READS"), (22, "ACCESS_COUNTER_CLR")];
const V26: &[ValueName] = &[(0, "RESERVED"), (1, "VIDMEM_ACCESS_BIT_DUMP")];
const V27: &[ValueName] = &[(5, "MEMBAR"), (9, "MMU_TLB_INVALIDATE"), (10, "MMU_TLB_INVALIDATE_TARGETED"), (11, "MMU_OPERATION"), (13, "L2_PEERMEM_INVALIDATE"), (14, "L2_SYSMEM_INVALIDATE"), (15, "L2_CLEAN_COMPTAGS"), (16, "L2_FLUSH_DIRTY"), (21, "L2_WAIT_FOR_SYS_PENDING_READS"), (22, "ACCESS_COUNTER_CLR")];
const V28: &[ValueName] = &[(9, "MMU_TLB_INVALIDATE"), (10, "MMU_TLB_INVALIDATE_TARGETED"), (16, "L2_FLUSH_DIRTY"), (17, "L2_SYSMEM_NCOH_INVALIDATE")];
const V29: &[ValueName] = &[(0, "ACQUIRE"), (1, "RELEASE"), (2, "ACQ_STRICT_GEQ"), (3, "ACQ_CIRC_GEQ"), (4, "ACQ_AND"), (5, "ACQ_NOR"), (6, "REDUCTION")];
const V30: &[ValueName] = &[(0, "32BIT"), (1, "64BIT")];
const V31: &[ValueName] = &[(0, "IMIN"), (1, "IMAX"), (2, "IXOR"), (3, "IAND"), (4, "IOR"), (5, "IADD"), (6, "INC"), (7, "DEC")];
const V32: &[ValueName] = &[(0, "ACQUIRE"), (1, "RELEASE"), (3, "ACQ_CIRC_GEQ")];
const V33: &[ValueName] = &[(1, "EN")];
const V34: &[ValueName] = &[(0, "DIS")];
const V35: &[ValueName] = &[(0, "32BIT")];
const V36: &[ValueName] = &[(0, "ACQUIRE"), (1, "RELEASE")];
const V37: &[ValueName] = &[(0, "CURRENT_SCG_TYPE"), (0, "CURRENT_VEID"), (1, "ALL")];
const V38: &[ValueName] = &[(0, "NOP"), (2, "RUNLIST_TIMESLICE"), (3, "TSG")];
const V39: &[ValueName] = &[(0, "NOP"), (3, "TSG")];
const V40: &[ValueName] = &[(0, "PBDMA_FAULTED"), (1, "ENG_FAULTED")];
