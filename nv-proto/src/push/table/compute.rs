//! Methods of the compute classes.
//!
//! Generated from the facts in `tests/golden/facts` by the `gen-tables` program of `tests`.

use super::{Field, Kind, MethodInfo, ValueName};
use crate::unit::ClassId;

/// The compute classes.
pub(super) static KIND: Kind = Kind { classes: &CLASSES, methods: &METHODS };

static CLASSES: [ClassId; 8] = [
    ClassId(0xc3c0), // VOLTA_COMPUTE_A, open-gpu-doc/classes/compute/clc3c0.h
    ClassId(0xc5c0), // TURING_COMPUTE_A, open-gpu-doc/classes/compute/clc5c0.h
    ClassId(0xc6c0), // AMPERE_COMPUTE_A, open-gpu-doc/classes/compute/clc6c0.h
    ClassId(0xc7c0), // AMPERE_COMPUTE_B, open-gpu-doc/classes/compute/clc7c0.h
    ClassId(0xc9c0), // ADA_COMPUTE_A, open-gpu-doc/classes/compute/clc9c0.h
    ClassId(0xcbc0), // HOPPER_COMPUTE_A, open-gpu-doc/classes/compute/clcbc0.h
    ClassId(0xcdc0), // BLACKWELL_COMPUTE_A, open-gpu-doc/classes/compute/clcdc0.h
    ClassId(0xcec0), // BLACKWELL_COMPUTE_B, open-gpu-doc/classes/compute/clcec0.h
];

static METHODS: [MethodInfo; 230] = [
    MethodInfo::new(0x0, 0, 0xff, "SET_OBJECT", &[
        Field::new("CLASS_ID", 15, 0, V0),
        Field::new("ENGINE_ID", 20, 16, V0),
    ]),
    MethodInfo::new(0x100, 0, 0xff, "NO_OPERATION", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x104, 0, 0x1f, "SET_NOTIFY_A", &[
        Field::new("ADDRESS_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x104, 0, 0xe0, "SET_NOTIFY_A", &[
        Field::new("ADDRESS_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x108, 0, 0xff, "SET_NOTIFY_B", &[
        Field::new("ADDRESS_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x10c, 0, 0xff, "NOTIFY", &[
        Field::new("TYPE", 31, 0, V1),
    ]),
    MethodInfo::new(0x110, 0, 0xff, "WAIT_FOR_IDLE", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x114, 0, 0xf8, "LOAD_MME_INSTRUCTION_RAM_POINTER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x118, 0, 0xf8, "LOAD_MME_INSTRUCTION_RAM", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x11c, 0, 0xf8, "LOAD_MME_START_ADDRESS_RAM_POINTER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x120, 0, 0xf8, "LOAD_MME_START_ADDRESS_RAM", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x124, 0, 0xf8, "SET_MME_SHADOW_RAM_CONTROL", &[
        Field::new("MODE", 1, 0, V2),
    ]),
    MethodInfo::new(0x130, 0, 0xff, "SET_GLOBAL_RENDER_ENABLE_A", &[
        Field::new("OFFSET_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x134, 0, 0xff, "SET_GLOBAL_RENDER_ENABLE_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x138, 0, 0xff, "SET_GLOBAL_RENDER_ENABLE_C", &[
        Field::new("MODE", 2, 0, V3),
    ]),
    MethodInfo::new(0x13c, 0, 0xff, "SEND_GO_IDLE", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x140, 0, 0xff, "PM_TRIGGER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x144, 0, 0xff, "PM_TRIGGER_WFI", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x148, 0, 0xff, "FE_ATOMIC_SEQUENCE_BEGIN", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x14c, 0, 0xff, "FE_ATOMIC_SEQUENCE_END", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x150, 0, 0xff, "SET_INSTRUMENTATION_METHOD_HEADER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x154, 0, 0xff, "SET_INSTRUMENTATION_METHOD_DATA", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x158, 0, 0xf8, "SET_REPORT_SEMAPHORE_PAYLOAD_LOWER", &[
        Field::new("PAYLOAD_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x15c, 0, 0xf8, "SET_REPORT_SEMAPHORE_PAYLOAD_UPPER", &[
        Field::new("PAYLOAD_UPPER", 31, 0, V0),
    ]),
    MethodInfo::new(0x160, 0, 0xf8, "SET_REPORT_SEMAPHORE_ADDRESS_LOWER", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x164, 0, 0x18, "SET_REPORT_SEMAPHORE_ADDRESS_UPPER", &[
        Field::new("UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x164, 0, 0xe0, "SET_REPORT_SEMAPHORE_ADDRESS_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x168, 0, 0xf8, "REPORT_SEMAPHORE_EXECUTE", &[
        Field::new("OPERATION", 1, 0, V4),
        Field::new("AWAKEN_ENABLE", 2, 2, V5),
        Field::new("STRUCTURE_SIZE", 4, 3, V6),
        Field::new("FLUSH_DISABLE", 5, 5, V5),
        Field::new("REDUCTION_ENABLE", 6, 6, V5),
        Field::new("REDUCTION_OP", 9, 7, V7),
        Field::new("REDUCTION_FORMAT", 11, 10, V8),
        Field::new("PAYLOAD_SIZE64", 12, 12, V5),
        Field::new("TRAP_TYPE", 14, 13, V9),
    ]),
    MethodInfo::new(0x180, 0, 0xff, "LINE_LENGTH_IN", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x184, 0, 0xff, "LINE_COUNT", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x188, 0, 0x1f, "OFFSET_OUT_UPPER", &[
        Field::new("VALUE", 16, 0, V0),
    ]),
    MethodInfo::new(0x188, 0, 0xe0, "OFFSET_OUT_UPPER", &[
        Field::new("VALUE", 24, 0, V0),
    ]),
    MethodInfo::new(0x18c, 0, 0xff, "OFFSET_OUT", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x190, 0, 0xff, "PITCH_OUT", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x194, 0, 0x3f, "SET_DST_BLOCK_SIZE", &[
        Field::new("WIDTH", 3, 0, V10),
        Field::new("HEIGHT", 7, 4, V11),
        Field::new("DEPTH", 11, 8, V11),
    ]),
    MethodInfo::new(0x198, 0, 0x3f, "SET_DST_WIDTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x19c, 0, 0x3f, "SET_DST_HEIGHT", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a0, 0, 0x3f, "SET_DST_DEPTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a4, 0, 0x3f, "SET_DST_LAYER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a8, 0, 0x3f, "SET_DST_ORIGIN_BYTES_X", &[
        Field::new("V", 20, 0, V0),
    ]),
    MethodInfo::new(0x1ac, 0, 0x3f, "SET_DST_ORIGIN_SAMPLES_Y", &[
        Field::new("V", 16, 0, V0),
    ]),
    MethodInfo::new(0x1b0, 0, 0xff, "LAUNCH_DMA", &[
        Field::new("DST_MEMORY_LAYOUT", 0, 0, V12),
        Field::new("REDUCTION_ENABLE", 1, 1, V5),
        Field::new("REDUCTION_FORMAT", 3, 2, V13),
        Field::new("COMPLETION_TYPE", 5, 4, V14),
        Field::new("SYSMEMBAR_DISABLE", 6, 6, V5),
        Field::new("INTERRUPT_TYPE", 9, 8, V15),
        Field::new("SEMAPHORE_STRUCT_SIZE", 12, 12, V16),
        Field::new("REDUCTION_OP", 15, 13, V7),
    ]),
    MethodInfo::new(0x1b4, 0, 0xff, "LOAD_INLINE_DATA", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1dc, 0, 0x1f, "SET_I2M_SEMAPHORE_A", &[
        Field::new("OFFSET_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x1dc, 0, 0xe0, "SET_I2M_SEMAPHORE_A", &[
        Field::new("OFFSET_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x1e0, 0, 0xff, "SET_I2M_SEMAPHORE_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x1e4, 0, 0xff, "SET_I2M_SEMAPHORE_C", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x1e8, 0, 0xfe, "SET_SM_SCG_CONTROL", &[
        Field::new("COMPUTE_IN_GRAPHICS", 0, 0, V5),
    ]),
    MethodInfo::new(0x1ec, 0, 0xf8, "SET_MME_SWITCH_STATE", &[
        Field::new("VALID", 0, 0, V5),
        Field::new("SAVE_MACRO", 11, 4, V0),
        Field::new("RESTORE_MACRO", 19, 12, V0),
    ]),
    MethodInfo::new(0x1f0, 0, 0xff, "SET_I2M_SPARE_NOOP00", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1f4, 0, 0xff, "SET_I2M_SPARE_NOOP01", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1f8, 0, 0xff, "SET_I2M_SPARE_NOOP02", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1fc, 0, 0xff, "SET_I2M_SPARE_NOOP03", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x200, 0, 0xff, "SET_VALID_SPAN_OVERFLOW_AREA_A", &[
        Field::new("ADDRESS_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x204, 0, 0xff, "SET_VALID_SPAN_OVERFLOW_AREA_B", &[
        Field::new("ADDRESS_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x208, 0, 0xff, "SET_VALID_SPAN_OVERFLOW_AREA_C", &[
        Field::new("SIZE", 31, 0, V0),
    ]),
    MethodInfo::new(0x20c, 0, 0x80, "UPDATE_ALL_COMPUTE_CONTROL", &[
        Field::new("VALID", 0, 0, V5),
        Field::new("STICK_IN_COMPUTE_IN_GRAPHICS_MODE", 4, 4, V5),
    ]),
    MethodInfo::new(0x210, 0, 0xff, "PERFMON_TRANSFER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x214, 0, 0x3e, "SET_QMD_VIRTUALIZATION_BASE_A", &[
        Field::new("ADDRESS_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x218, 0, 0x3e, "SET_QMD_VIRTUALIZATION_BASE_B", &[
        Field::new("ADDRESS_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x21c, 0, 0xff, "INVALIDATE_SHADER_CACHES", &[
        Field::new("INSTRUCTION", 0, 0, V5),
        Field::new("LOCKS", 1, 1, V5),
        Field::new("FLUSH_DATA", 2, 2, V5),
        Field::new("DATA", 4, 4, V5),
        Field::new("CONSTANT", 12, 12, V5),
    ]),
    MethodInfo::new(0x220, 0, 0xff, "SET_RESERVED_SW_METHOD00", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x224, 0, 0xff, "SET_RESERVED_SW_METHOD01", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x228, 0, 0xff, "SET_RESERVED_SW_METHOD02", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x22c, 0, 0xff, "SET_RESERVED_SW_METHOD03", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x230, 0, 0xff, "SET_RESERVED_SW_METHOD04", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x234, 0, 0xff, "SET_RESERVED_SW_METHOD05", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x238, 0, 0xff, "SET_RESERVED_SW_METHOD06", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x23c, 0, 0xff, "SET_RESERVED_SW_METHOD07", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x244, 0, 0xff, "INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x248, 0, 0xff, "SET_CWD_REF_COUNTER", &[
        Field::new("SELECT", 5, 0, V0),
        Field::new("VALUE", 23, 8, V0),
    ]),
    MethodInfo::new(0x24c, 0, 0xff, "SET_RESERVED_SW_METHOD08", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x250, 0, 0xff, "SET_RESERVED_SW_METHOD09", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x254, 0, 0xff, "SET_RESERVED_SW_METHOD10", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x258, 0, 0xff, "SET_RESERVED_SW_METHOD11", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x25c, 0, 0xff, "SET_RESERVED_SW_METHOD12", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x260, 0, 0xff, "SET_RESERVED_SW_METHOD13", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x264, 0, 0xff, "SET_RESERVED_SW_METHOD14", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x268, 0, 0xff, "SET_RESERVED_SW_METHOD15", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x270, 0, 0x1f, "SET_SCG_CONTROL", &[
        Field::new("COMPUTE1_MAX_SM_COUNT", 8, 0, V0),
        Field::new("COMPUTE1_MIN_SM_COUNT", 20, 12, V0),
        Field::new("DISABLE_COMPUTE1_LIMIT_IN_ALL_COMPUTE", 24, 24, V5),
    ]),
    MethodInfo::new(0x280, 0, 0xff, "SET_COMPUTE_CLASS_VERSION", &[
        Field::new("CURRENT", 15, 0, V0),
        Field::new("OLDEST_SUPPORTED", 31, 16, V0),
    ]),
    MethodInfo::new(0x284, 0, 0xff, "CHECK_COMPUTE_CLASS_VERSION", &[
        Field::new("CURRENT", 15, 0, V0),
        Field::new("OLDEST_SUPPORTED", 31, 16, V0),
    ]),
    MethodInfo::new(0x288, 0, 0xff, "SET_QMD_VERSION", &[
        Field::new("CURRENT", 15, 0, V0),
        Field::new("OLDEST_SUPPORTED", 31, 16, V0),
    ]),
    MethodInfo::new(0x290, 0, 0x1f, "CHECK_QMD_VERSION", &[
        Field::new("CURRENT", 15, 0, V0),
        Field::new("OLDEST_SUPPORTED", 31, 16, V0),
    ]),
    MethodInfo::new(0x298, 0, 0x3f, "INVALIDATE_SKED_CACHES", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x298, 0, 0xc0, "INVALIDATE_SKED_CACHES", &[
        Field::new("FORCE_IGNORE_VEID", 0, 0, V5),
    ]),
    MethodInfo::new(0x29c, 0, 0x06, "SET_QMD_VIRTUALIZATION_CONTROL", &[
        Field::new("CONSTANT_BUFFER_MASK", 7, 0, V0),
        Field::new("I2M_ADDR_ENABLE", 8, 8, V5),
        Field::new("I2M_CONSTANT_BUFFER_ENABLE", 12, 12, V5),
        Field::new("IQ2M_ADDR_ENABLE", 16, 16, V5),
        Field::new("IQ2M_CONSTANT_BUFFER_ENABLE", 20, 20, V5),
        Field::new("SEND_PCAS_ENABLE", 24, 24, V5),
    ]),
    MethodInfo::new(0x29c, 0, 0x38, "SET_QMD_VIRTUALIZATION_CONTROL", &[
        Field::new("CONSTANT_BUFFER_MASK", 7, 0, V0),
        Field::new("I2M_ADDR_ENABLE", 8, 8, V5),
        Field::new("I2M_DEPENDENT_ENABLE", 9, 9, V5),
        Field::new("IQ2M_DEPENDENT_ENABLE", 10, 10, V5),
        Field::new("I2M_CONSTANT_BUFFER_ENABLE", 12, 12, V5),
        Field::new("IQ2M_ADDR_ENABLE", 16, 16, V5),
        Field::new("IQ2M_CONSTANT_BUFFER_ENABLE", 20, 20, V5),
        Field::new("SEND_PCAS_ENABLE", 24, 24, V5),
    ]),
    MethodInfo::new(0x2a0, 0, 0xff, "SET_SHADER_SHARED_MEMORY_WINDOW_A", &[
        Field::new("BASE_ADDRESS_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x2a4, 0, 0xff, "SET_SHADER_SHARED_MEMORY_WINDOW_B", &[
        Field::new("BASE_ADDRESS", 31, 0, V0),
    ]),
    MethodInfo::new(0x2a8, 0, 0x1f, "SCG_HYSTERESIS_CONTROL", &[
        Field::new("USE_TIMEOUT_ONCE", 0, 0, V5),
        Field::new("USE_NULL_TIMEOUT_ONCE", 1, 1, V5),
    ]),
    MethodInfo::new(0x2b0, 0, 0xff, "SET_CWD_SLOT_COUNT", &[
        Field::new("V", 7, 0, V0),
    ]),
    MethodInfo::new(0x2b4, 0, 0xff, "SEND_PCAS_A", &[
        Field::new("QMD_ADDRESS_SHIFTED8", 31, 0, V0),
    ]),
    MethodInfo::new(0x2b8, 0, 0xff, "SEND_PCAS_B", &[
        Field::new("FROM", 23, 0, V0),
        Field::new("DELTA", 31, 24, V0),
    ]),
    MethodInfo::new(0x2bc, 0, 0xff, "SEND_SIGNALING_PCAS_B", &[
        Field::new("INVALIDATE", 0, 0, V5),
        Field::new("SCHEDULE", 1, 1, V5),
    ]),
    MethodInfo::new(0x2c0, 0, 0x04, "SEND_SIGNALING_PCAS2_B", &[
        Field::new("PCAS_ACTION", 3, 0, V18),
    ]),
    MethodInfo::new(0x2c0, 0, 0xf8, "SEND_SIGNALING_PCAS2_B", &[
        Field::new("PCAS_ACTION", 3, 0, V19),
        Field::new("SELECT", 13, 8, V0),
        Field::new("OFFSET_MINUS_ONE", 23, 14, V0),
    ]),
    MethodInfo::new(0x2cc, 0, 0xff, "SET_SKED_CACHE_CONTROL", &[
        Field::new("IGNORE_VEID", 0, 0, V5),
    ]),
    MethodInfo::new(0x2e4, 0, 0xff, "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A", &[
        Field::new("SIZE_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x2e8, 0, 0xff, "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B", &[
        Field::new("SIZE_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x2ec, 0, 0x1f, "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C", &[
        Field::new("MAX_SM_COUNT", 8, 0, V0),
    ]),
    MethodInfo::new(0x2ec, 0, 0xe0, "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C", &[
        Field::new("MAX_SM_COUNT", 8, 0, V0),
        Field::new("MAX_PLURAL_TPC_GPC_COUNT", 23, 16, V0),
        Field::new("MAX_SINGLETON_TPC_GPC_COUNT", 31, 24, V0),
    ]),
    MethodInfo::new(0x310, 0, 0xff, "SET_SPA_VERSION", &[
        Field::new("MINOR", 7, 0, V0),
        Field::new("MAJOR", 15, 8, V0),
    ]),
    MethodInfo::new(0x318, 0, 0x1f, "SET_INLINE_QMD_ADDRESS_A", &[
        Field::new("QMD_ADDRESS_SHIFTED8_UPPER", 31, 0, V0),
    ]),
    MethodInfo::new(0x318, 0, 0xe0, "SET_INLINE_QMD_ADDRESS_A", &[
        Field::new("QMD_ADDRESS_SHIFTED8_UPPER", 8, 0, V0),
        Field::new("INLINE_SIZE", 30, 30, V20),
    ]),
    MethodInfo::new(0x31c, 0, 0xff, "SET_INLINE_QMD_ADDRESS_B", &[
        Field::new("QMD_ADDRESS_SHIFTED8_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x320, 4, 0xff, "LOAD_INLINE_QMD_DATA", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x500, 0, 0xff, "SET_FALCON00", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x504, 0, 0xff, "SET_FALCON01", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x508, 0, 0xff, "SET_FALCON02", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x50c, 0, 0xff, "SET_FALCON03", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x510, 0, 0xff, "SET_FALCON04", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x514, 0, 0xff, "SET_FALCON05", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x518, 0, 0xff, "SET_FALCON06", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x51c, 0, 0xff, "SET_FALCON07", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x520, 0, 0xff, "SET_FALCON08", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x524, 0, 0xff, "SET_FALCON09", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x528, 0, 0xff, "SET_FALCON10", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x52c, 0, 0xff, "SET_FALCON11", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x530, 0, 0xff, "SET_FALCON12", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x534, 0, 0xff, "SET_FALCON13", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x538, 0, 0xff, "SET_FALCON14", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x53c, 0, 0xff, "SET_FALCON15", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x540, 0, 0x03, "SET_FALCON16", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x544, 0, 0x03, "SET_FALCON17", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x548, 0, 0x03, "SET_FALCON18", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x54c, 0, 0x03, "SET_FALCON19", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x550, 0, 0x03, "SET_FALCON20", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x550, 0, 0x18, "SET_MME_MEM_ADDRESS_A", &[
        Field::new("UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x550, 0, 0xe0, "SET_MME_MEM_ADDRESS_A", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x554, 0, 0x03, "SET_FALCON21", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x554, 0, 0xf8, "SET_MME_MEM_ADDRESS_B", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x558, 0, 0x03, "SET_FALCON22", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x558, 0, 0xf8, "SET_MME_DATA_RAM_ADDRESS", &[
        Field::new("WORD", 31, 0, V0),
    ]),
    MethodInfo::new(0x55c, 0, 0x03, "SET_FALCON23", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x55c, 0, 0xf8, "MME_DMA_READ", &[
        Field::new("LENGTH", 31, 0, V0),
    ]),
    MethodInfo::new(0x560, 0, 0x03, "SET_FALCON24", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x560, 0, 0xf8, "MME_DMA_READ_FIFOED", &[
        Field::new("LENGTH", 31, 0, V0),
    ]),
    MethodInfo::new(0x564, 0, 0x03, "SET_FALCON25", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x564, 0, 0xf8, "MME_DMA_WRITE", &[
        Field::new("LENGTH", 31, 0, V0),
    ]),
    MethodInfo::new(0x568, 0, 0x03, "SET_FALCON26", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x568, 0, 0xf8, "MME_DMA_REDUCTION", &[
        Field::new("REDUCTION_OP", 2, 0, V7),
        Field::new("REDUCTION_FORMAT", 5, 4, V8),
        Field::new("REDUCTION_SIZE", 8, 8, V21),
    ]),
    MethodInfo::new(0x56c, 0, 0x03, "SET_FALCON27", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x56c, 0, 0xf8, "MME_DMA_SYSMEMBAR", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x570, 0, 0x03, "SET_FALCON28", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x570, 0, 0xf8, "MME_DMA_SYNC", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x574, 0, 0x03, "SET_FALCON29", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x574, 0, 0x38, "SET_MME_DATA_FIFO_CONFIG", &[
        Field::new("FIFO_SIZE", 2, 0, V22),
    ]),
    MethodInfo::new(0x578, 0, 0x03, "SET_FALCON30", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x57c, 0, 0x03, "SET_FALCON31", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x74c, 0, 0xc0, "EVENT_START_TRIGGER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x75c, 0, 0xc0, "EVENT_STOP_TRIGGER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x790, 0, 0x1f, "SET_SHADER_LOCAL_MEMORY_A", &[
        Field::new("ADDRESS_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x790, 0, 0xe0, "SET_SHADER_LOCAL_MEMORY_A", &[
        Field::new("ADDRESS_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x794, 0, 0xff, "SET_SHADER_LOCAL_MEMORY_B", &[
        Field::new("ADDRESS_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x7ac, 0, 0xe0, "SET_TEXTURE_HEADER_VERSION", &[
        Field::new("MAJOR", 7, 0, V0),
    ]),
    MethodInfo::new(0x7b0, 0, 0xff, "SET_SHADER_LOCAL_MEMORY_WINDOW_A", &[
        Field::new("BASE_ADDRESS_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x7b4, 0, 0xff, "SET_SHADER_LOCAL_MEMORY_WINDOW_B", &[
        Field::new("BASE_ADDRESS", 31, 0, V0),
    ]),
    MethodInfo::new(0x7b8, 0, 0xe0, "SET_MONITORED_FENCE_SIGNAL_ADDRESS_BASE_A", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x7bc, 0, 0xe0, "SET_MONITORED_FENCE_SIGNAL_ADDRESS_BASE_B", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x7fc, 0, 0xf8, "THROTTLE_SM", &[
        Field::new("MULTIPLY_ADD", 0, 0, V5),
    ]),
    MethodInfo::new(0xd94, 0, 0xff, "SET_SHADER_CACHE_CONTROL", &[
        Field::new("ICACHE_PREFETCH_ENABLE", 0, 0, V5),
    ]),
    MethodInfo::new(0xda0, 4, 0xfe, "SET_SCG_COMPUTE_SCHEDULING_PARAMETERS", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0xde4, 0, 0xff, "SET_SM_TIMEOUT_INTERVAL", &[
        Field::new("COUNTER_BIT", 5, 0, V0),
    ]),
    MethodInfo::new(0xdec, 0, 0xf8, "MME_DMA_WRITE_METHOD_BARRIER", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0xf10, 0, 0x80, "SET_WFI_FILTER_STATE", &[
        Field::new("FILTER_HOST_WFI", 0, 0, V5),
    ]),
    MethodInfo::new(0xffc, 0, 0xc0, "EVENT_STOP_TRIGGER_WFI", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x120c, 0, 0x01, "INVALIDATE_SAMPLER_CACHE_ALL", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x1210, 0, 0x01, "INVALIDATE_TEXTURE_HEADER_CACHE_ALL", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x1288, 0, 0xff, "INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x12a8, 0, 0xff, "ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT", &[
        Field::new("ALL", 0, 0, V5),
    ]),
    MethodInfo::new(0x1330, 0, 0xff, "INVALIDATE_SAMPLER_CACHE", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x1334, 0, 0xff, "INVALIDATE_TEXTURE_HEADER_CACHE", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x1338, 0, 0xff, "INVALIDATE_TEXTURE_DATA_CACHE", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x1424, 0, 0xff, "INVALIDATE_SAMPLER_CACHE_NO_WFI", &[
        Field::new("LINES", 0, 0, V17),
        Field::new("TAG", 25, 4, V0),
    ]),
    MethodInfo::new(0x1458, 0, 0x80, "INVALIDATE_SAMPLER_CACHE_BY_TAG", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x145c, 0, 0x80, "INVALIDATE_TEXTURE_HEADER_CACHE_BY_TAG", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x1460, 0, 0x80, "INVALIDATE_TEXTURE_DATA_CACHE_BY_TAG", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x1464, 0, 0x80, "SET_MME_TASK_EVENT_STATE", &[
        Field::new("FLUSH_MACRO", 7, 0, V0),
        Field::new("TSG_EVENT_ENABLE", 8, 8, V5),
        Field::new("HOST_WFI_ENABLE", 9, 9, V5),
        Field::new("FE_COMPUTE_METHOD_WFI_ENABLE", 10, 10, V5),
        Field::new("FE_SUBCH_SWITCH_WFI_ENABLE", 11, 11, V5),
    ]),
    MethodInfo::new(0x1528, 0, 0xff, "SET_SHADER_EXCEPTIONS", &[
        Field::new("ENABLE", 0, 0, V5),
    ]),
    MethodInfo::new(0x1550, 0, 0xff, "SET_RENDER_ENABLE_A", &[
        Field::new("OFFSET_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x1554, 0, 0xff, "SET_RENDER_ENABLE_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x1558, 0, 0xff, "SET_RENDER_ENABLE_C", &[
        Field::new("MODE", 2, 0, V3),
    ]),
    MethodInfo::new(0x155c, 0, 0x1f, "SET_TEX_SAMPLER_POOL_A", &[
        Field::new("OFFSET_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x155c, 0, 0xe0, "SET_TEX_SAMPLER_POOL_A", &[
        Field::new("OFFSET_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x1560, 0, 0xff, "SET_TEX_SAMPLER_POOL_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x1564, 0, 0x3f, "SET_TEX_SAMPLER_POOL_C", &[
        Field::new("MAXIMUM_INDEX", 19, 0, V0),
    ]),
    MethodInfo::new(0x1564, 0, 0xc0, "SET_TEX_SAMPLER_POOL_C", &[
        Field::new("MAXIMUM_INDEX", 31, 0, V0),
    ]),
    MethodInfo::new(0x1574, 0, 0x1f, "SET_TEX_HEADER_POOL_A", &[
        Field::new("OFFSET_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x1574, 0, 0xe0, "SET_TEX_HEADER_POOL_A", &[
        Field::new("OFFSET_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x1578, 0, 0xff, "SET_TEX_HEADER_POOL_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x157c, 0, 0x3f, "SET_TEX_HEADER_POOL_C", &[
        Field::new("MAXIMUM_INDEX", 21, 0, V0),
    ]),
    MethodInfo::new(0x157c, 0, 0xc0, "SET_TEX_HEADER_POOL_C", &[
        Field::new("MAXIMUM_INDEX", 31, 0, V0),
    ]),
    MethodInfo::new(0x1698, 0, 0xff, "INVALIDATE_SHADER_CACHES_NO_WFI", &[
        Field::new("INSTRUCTION", 0, 0, V5),
        Field::new("GLOBAL_DATA", 4, 4, V5),
        Field::new("CONSTANT", 12, 12, V5),
    ]),
    MethodInfo::new(0x1930, 0, 0x80, "INVALIDATE_SAMPLER_CACHE_BY_TAG_NO_WFI", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x1934, 0, 0x80, "INVALIDATE_TEXTURE_HEADER_CACHE_BY_TAG_NO_WFI", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x1938, 0, 0x80, "INVALIDATE_TEXTURE_DATA_CACHE_BY_TAG_NO_WFI", &[
        Field::new("TAG", 31, 0, V0),
    ]),
    MethodInfo::new(0x1944, 0, 0xff, "SET_RENDER_ENABLE_OVERRIDE", &[
        Field::new("MODE", 1, 0, V23),
    ]),
    MethodInfo::new(0x1a2c, 0, 0xff, "PIPE_NOP", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a30, 0, 0xff, "SET_SPARE00", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a34, 0, 0xff, "SET_SPARE01", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a38, 0, 0xff, "SET_SPARE02", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1a3c, 0, 0xff, "SET_SPARE03", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x1b00, 0, 0x1f, "SET_REPORT_SEMAPHORE_A", &[
        Field::new("OFFSET_UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x1b00, 0, 0xe0, "SET_REPORT_SEMAPHORE_A", &[
        Field::new("OFFSET_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x1b04, 0, 0xff, "SET_REPORT_SEMAPHORE_B", &[
        Field::new("OFFSET_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x1b08, 0, 0xff, "SET_REPORT_SEMAPHORE_C", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x1b0c, 0, 0x01, "SET_REPORT_SEMAPHORE_D", &[
        Field::new("OPERATION", 1, 0, V24),
        Field::new("FLUSH_DISABLE", 2, 2, V5),
        Field::new("REDUCTION_ENABLE", 3, 3, V5),
        Field::new("REDUCTION_OP", 11, 9, V7),
        Field::new("REDUCTION_FORMAT", 18, 17, V13),
        Field::new("AWAKEN_ENABLE", 20, 20, V5),
        Field::new("STRUCTURE_SIZE", 28, 28, V16),
    ]),
    MethodInfo::new(0x1b0c, 0, 0xfe, "SET_REPORT_SEMAPHORE_D", &[
        Field::new("OPERATION", 1, 0, V24),
        Field::new("FLUSH_DISABLE", 2, 2, V5),
        Field::new("REDUCTION_ENABLE", 3, 3, V5),
        Field::new("REDUCTION_OP", 11, 9, V7),
        Field::new("REDUCTION_FORMAT", 18, 17, V13),
        Field::new("CONDITIONAL_TRAP", 19, 19, V5),
        Field::new("AWAKEN_ENABLE", 20, 20, V5),
        Field::new("STRUCTURE_SIZE", 28, 28, V16),
    ]),
    MethodInfo::new(0x25f8, 0, 0x1f, "SET_TRAP_HANDLER_A", &[
        Field::new("ADDRESS_UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x25f8, 0, 0xe0, "SET_TRAP_HANDLER_A", &[
        Field::new("ADDRESS_UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x25fc, 0, 0xff, "SET_TRAP_HANDLER_B", &[
        Field::new("ADDRESS_LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x2608, 0, 0xff, "SET_BINDLESS_TEXTURE", &[
        Field::new("CONSTANT_BUFFER_SLOT_SELECT", 2, 0, V0),
    ]),
    MethodInfo::new(0x32f4, 4, 0xff, "SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x3314, 4, 0xff, "SET_SHADER_PERFORMANCE_SNAPSHOT_COUNTER_VALUE_UPPER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x3334, 0, 0xff, "ENABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x3338, 0, 0xff, "DISABLE_SHADER_PERFORMANCE_SNAPSHOT_COUNTER", &[
        Field::new("V", 0, 0, V0),
    ]),
    MethodInfo::new(0x333c, 4, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_VALUE_UPPER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x335c, 4, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_VALUE", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x337c, 4, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_EVENT", &[
        Field::new("EVENT", 7, 0, V0),
    ]),
    MethodInfo::new(0x339c, 4, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_CONTROL_A", &[
        Field::new("EVENT0", 1, 0, V0),
        Field::new("BIT_SELECT0", 4, 2, V0),
        Field::new("EVENT1", 6, 5, V0),
        Field::new("BIT_SELECT1", 9, 7, V0),
        Field::new("EVENT2", 11, 10, V0),
        Field::new("BIT_SELECT2", 14, 12, V0),
        Field::new("EVENT3", 16, 15, V0),
        Field::new("BIT_SELECT3", 19, 17, V0),
        Field::new("EVENT4", 21, 20, V0),
        Field::new("BIT_SELECT4", 24, 22, V0),
        Field::new("EVENT5", 26, 25, V0),
        Field::new("BIT_SELECT5", 29, 27, V0),
        Field::new("SPARE", 31, 30, V0),
    ]),
    MethodInfo::new(0x33bc, 4, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_CONTROL_B", &[
        Field::new("EDGE", 0, 0, V0),
        Field::new("MODE", 2, 1, V0),
        Field::new("WINDOWED", 3, 3, V0),
        Field::new("FUNC", 19, 4, V0),
    ]),
    MethodInfo::new(0x33dc, 0, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_TRAP_CONTROL", &[
        Field::new("MASK", 7, 0, V0),
    ]),
    MethodInfo::new(0x33e0, 0, 0xff, "START_SHADER_PERFORMANCE_COUNTER", &[
        Field::new("COUNTER_MASK", 7, 0, V0),
    ]),
    MethodInfo::new(0x33e4, 0, 0xff, "STOP_SHADER_PERFORMANCE_COUNTER", &[
        Field::new("COUNTER_MASK", 7, 0, V0),
    ]),
    MethodInfo::new(0x33e8, 0, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_SCTL_FILTER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x33ec, 0, 0xff, "SET_SHADER_PERFORMANCE_COUNTER_CORE_MIO_FILTER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x3400, 4, 0xff, "SET_MME_SHADOW_SCRATCH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x3800, 8, 0xf8, "CALL_MME_MACRO", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x3804, 8, 0xf8, "CALL_MME_DATA", &[
        Field::new("V", 31, 0, V0),
    ]),
];

const V0: &[ValueName] = &[];
const V1: &[ValueName] = &[(0, "WRITE_ONLY"), (1, "WRITE_THEN_AWAKEN")];
const V2: &[ValueName] = &[(0, "METHOD_TRACK"), (1, "METHOD_TRACK_WITH_FILTER"), (2, "METHOD_PASSTHROUGH"), (3, "METHOD_REPLAY")];
const V3: &[ValueName] = &[(0, "FALSE"), (1, "TRUE"), (2, "CONDITIONAL"), (3, "RENDER_IF_EQUAL"), (4, "RENDER_IF_NOT_EQUAL")];
const V4: &[ValueName] = &[(0, "RELEASE"), (1, "ACQUIRE"), (2, "REPORT_ONLY"), (3, "TRAP")];
const V5: &[ValueName] = &[(0, "FALSE"), (1, "TRUE")];
const V6: &[ValueName] = &[(0, "SEMAPHORE_FOUR_WORDS"), (1, "SEMAPHORE_ONE_WORD"), (2, "SEMAPHORE_TWO_WORDS")];
const V7: &[ValueName] = &[(0, "RED_ADD"), (1, "RED_MIN"), (2, "RED_MAX"), (3, "RED_INC"), (4, "RED_DEC"), (5, "RED_AND"), (6, "RED_OR"), (7, "RED_XOR")];
const V8: &[ValueName] = &[(0, "UNSIGNED"), (1, "SIGNED")];
const V9: &[ValueName] = &[(0, "TRAP_NONE"), (1, "TRAP_UNCONDITIONAL"), (2, "TRAP_CONDITIONAL"), (3, "TRAP_CONDITIONAL_EXT")];
const V10: &[ValueName] = &[(0, "ONE_GOB")];
const V11: &[ValueName] = &[(0, "ONE_GOB"), (1, "TWO_GOBS"), (2, "FOUR_GOBS"), (3, "EIGHT_GOBS"), (4, "SIXTEEN_GOBS"), (5, "THIRTYTWO_GOBS")];
const V12: &[ValueName] = &[(0, "BLOCKLINEAR"), (1, "PITCH")];
const V13: &[ValueName] = &[(0, "UNSIGNED_32"), (1, "SIGNED_32")];
const V14: &[ValueName] = &[(0, "FLUSH_DISABLE"), (1, "FLUSH_ONLY"), (2, "RELEASE_SEMAPHORE")];
const V15: &[ValueName] = &[(0, "NONE"), (1, "INTERRUPT")];
const V16: &[ValueName] = &[(0, "FOUR_WORDS"), (1, "ONE_WORD")];
const V17: &[ValueName] = &[(0, "ALL"), (1, "ONE")];
const V18: &[ValueName] = &[(0, "NOP"), (1, "INVALIDATE"), (2, "SCHEDULE"), (3, "INVALIDATE_COPY_SCHEDULE"), (6, "INCREMENT_PUT"), (7, "DECREMENT_DEPENDENCE"), (8, "PREFETCH"), (9, "PREFETCH_SCHEDULE"), (10, "INVALIDATE_PREFETCH_COPY_SCHEDULE"), (11, "INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING")];
const V19: &[ValueName] = &[(0, "NOP"), (1, "INVALIDATE"), (2, "SCHEDULE"), (3, "INVALIDATE_COPY_SCHEDULE"), (6, "INCREMENT_PUT"), (7, "DECREMENT_DEPENDENCE"), (8, "PREFETCH"), (9, "PREFETCH_SCHEDULE"), (10, "INVALIDATE_PREFETCH_COPY_SCHEDULE"), (11, "INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING"), (12, "INCREMENT_DEPENDENCE"), (13, "INCREMENT_CWD_REF_COUNTER")];
const V20: &[ValueName] = &[(0, "INLINE_256"), (1, "INLINE_384")];
const V21: &[ValueName] = &[(0, "FOUR_BYTES"), (1, "EIGHT_BYTES")];
const V22: &[ValueName] = &[(0, "SIZE_0KB"), (1, "SIZE_4KB"), (2, "SIZE_8KB"), (3, "SIZE_12KB"), (4, "SIZE_16KB")];
const V23: &[ValueName] = &[(0, "USE_RENDER_ENABLE"), (1, "ALWAYS_RENDER"), (2, "NEVER_RENDER")];
const V24: &[ValueName] = &[(0, "RELEASE"), (3, "TRAP")];
