//! Methods of the copy classes.
//!
//! Generated from the facts in `tests/golden/facts` by the `gen-tables` program of `tests`.

use super::{Field, Kind, MethodInfo, ValueName};
use crate::unit::ClassId;

/// The copy classes.
pub(super) static KIND: Kind = Kind { classes: &CLASSES, methods: &METHODS };

static CLASSES: [ClassId; 7] = [
    ClassId(0xc3b5), // VOLTA_DMA_COPY_A, open-gpu-doc/classes/dma-copy/clc3b5.h
    ClassId(0xc5b5), // TURING_DMA_COPY_A, open-gpu-doc/classes/dma-copy/clc5b5.h
    ClassId(0xc6b5), // AMPERE_DMA_COPY_A, open-gpu-doc/classes/dma-copy/clc6b5.h
    ClassId(0xc7b5), // AMPERE_DMA_COPY_B, open-gpu-doc/classes/dma-copy/clc7b5.h
    ClassId(0xc8b5), // HOPPER_DMA_COPY_A, open-gpu-doc/classes/dma-copy/clc8b5.h
    ClassId(0xc9b5), // BLACKWELL_DMA_COPY_A, open-gpu-doc/classes/dma-copy/clc9b5.h
    ClassId(0xcab5), // BLACKWELL_DMA_COPY_B, open-gpu-doc/classes/dma-copy/clcab5.h
];

static METHODS: [MethodInfo; 66] = [
    MethodInfo::new(0x100, 0, 0x7f, "NOP", &[
        Field::new("PARAMETER", 31, 0, V0),
    ]),
    MethodInfo::new(0x140, 0, 0x7f, "PM_TRIGGER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x21c, 0, 0x78, "SET_MONITORED_FENCE_TYPE", &[
        Field::new("TYPE", 0, 0, V1),
    ]),
    MethodInfo::new(0x220, 0, 0x08, "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER", &[
        Field::new("UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x220, 0, 0x70, "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x224, 0, 0x78, "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x240, 0, 0x0f, "SET_SEMAPHORE_A", &[
        Field::new("UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x240, 0, 0x70, "SET_SEMAPHORE_A", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x244, 0, 0x7f, "SET_SEMAPHORE_B", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x248, 0, 0x7f, "SET_SEMAPHORE_PAYLOAD", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x24c, 0, 0x78, "SET_SEMAPHORE_PAYLOAD_UPPER", &[
        Field::new("PAYLOAD", 31, 0, V0),
    ]),
    MethodInfo::new(0x254, 0, 0x0f, "SET_RENDER_ENABLE_A", &[
        Field::new("UPPER", 7, 0, V0),
    ]),
    MethodInfo::new(0x254, 0, 0x70, "SET_RENDER_ENABLE_A", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x258, 0, 0x7f, "SET_RENDER_ENABLE_B", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x25c, 0, 0x7f, "SET_RENDER_ENABLE_C", &[
        Field::new("MODE", 2, 0, V2),
    ]),
    MethodInfo::new(0x260, 0, 0x03, "SET_SRC_PHYS_MODE", &[
        Field::new("TARGET", 1, 0, V3),
        Field::new("BASIC_KIND", 5, 2, V0),
    ]),
    MethodInfo::new(0x260, 0, 0x7c, "SET_SRC_PHYS_MODE", &[
        Field::new("TARGET", 1, 0, V4),
        Field::new("BASIC_KIND", 5, 2, V0),
        Field::new("PEER_ID", 8, 6, V0),
        Field::new("FLA", 9, 9, V0),
    ]),
    MethodInfo::new(0x264, 0, 0x03, "SET_DST_PHYS_MODE", &[
        Field::new("TARGET", 1, 0, V3),
        Field::new("BASIC_KIND", 5, 2, V0),
    ]),
    MethodInfo::new(0x264, 0, 0x7c, "SET_DST_PHYS_MODE", &[
        Field::new("TARGET", 1, 0, V4),
        Field::new("BASIC_KIND", 5, 2, V0),
        Field::new("PEER_ID", 8, 6, V0),
        Field::new("FLA", 9, 9, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x01, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V7),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("FORCE_RMWDISABLE", 11, 11, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V11),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("SRC_BYPASS_L2", 20, 20, V13),
        Field::new("DST_BYPASS_L2", 21, 21, V13),
        Field::new("VPRMODE", 23, 22, V14),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x02, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V16),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("FORCE_RMWDISABLE", 11, 11, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V11),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("SRC_BYPASS_L2", 20, 20, V13),
        Field::new("DST_BYPASS_L2", 21, 21, V13),
        Field::new("VPRMODE", 23, 22, V14),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x04, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V16),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("FORCE_RMWDISABLE", 11, 11, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V11),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("VPRMODE", 23, 22, V14),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x08, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V17),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("FORCE_RMWDISABLE", 11, 11, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V18),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("VPRMODE", 23, 22, V14),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("SEMAPHORE_PAYLOAD_SIZE", 27, 27, V19),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x10, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V17),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("FORCE_RMWDISABLE", 11, 11, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V18),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("COPY_TYPE", 21, 20, V20),
        Field::new("VPRMODE", 22, 22, V14),
        Field::new("MEMORY_SCRUB_ENABLE", 23, 23, V6),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("SEMAPHORE_PAYLOAD_SIZE", 27, 27, V19),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x20, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V5),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V17),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V18),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("COPY_TYPE", 21, 20, V20),
        Field::new("VPRMODE", 22, 22, V14),
        Field::new("MEMORY_SCRUB_ENABLE", 23, 23, V6),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("SEMAPHORE_PAYLOAD_SIZE", 27, 27, V19),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x300, 0, 0x40, "LAUNCH_DMA", &[
        Field::new("DATA_TRANSFER_TYPE", 1, 0, V21),
        Field::new("FLUSH_ENABLE", 2, 2, V6),
        Field::new("SEMAPHORE_TYPE", 4, 3, V17),
        Field::new("INTERRUPT_TYPE", 6, 5, V8),
        Field::new("SRC_MEMORY_LAYOUT", 7, 7, V9),
        Field::new("DST_MEMORY_LAYOUT", 8, 8, V9),
        Field::new("MULTI_LINE_ENABLE", 9, 9, V6),
        Field::new("REMAP_ENABLE", 10, 10, V6),
        Field::new("SRC_TYPE", 12, 12, V10),
        Field::new("DST_TYPE", 13, 13, V10),
        Field::new("SEMAPHORE_REDUCTION", 17, 14, V18),
        Field::new("SEMAPHORE_REDUCTION_SIGN", 18, 18, V12),
        Field::new("SEMAPHORE_REDUCTION_ENABLE", 19, 19, V6),
        Field::new("COPY_TYPE", 21, 20, V20),
        Field::new("VPRMODE", 22, 22, V14),
        Field::new("MEMORY_SCRUB_ENABLE", 23, 23, V6),
        Field::new("RESERVED_START_OF_COPY", 24, 24, V0),
        Field::new("FLUSH_TYPE", 25, 25, V15),
        Field::new("DISABLE_PLC", 26, 26, V6),
        Field::new("SEMAPHORE_PAYLOAD_SIZE", 27, 27, V19),
        Field::new("RESERVED_ERR_CODE", 31, 28, V0),
    ]),
    MethodInfo::new(0x400, 0, 0x0f, "OFFSET_IN_UPPER", &[
        Field::new("UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x400, 0, 0x70, "OFFSET_IN_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x404, 0, 0x7f, "OFFSET_IN_LOWER", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x408, 0, 0x0f, "OFFSET_OUT_UPPER", &[
        Field::new("UPPER", 16, 0, V0),
    ]),
    MethodInfo::new(0x408, 0, 0x70, "OFFSET_OUT_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x40c, 0, 0x7f, "OFFSET_OUT_LOWER", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x410, 0, 0x7f, "PITCH_IN", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x414, 0, 0x7f, "PITCH_OUT", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x418, 0, 0x7f, "LINE_LENGTH_IN", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x41c, 0, 0x7f, "LINE_COUNT", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x500, 0, 0x70, "SET_SECURE_COPY_MODE", &[
        Field::new("MODE", 0, 0, V22),
    ]),
    MethodInfo::new(0x514, 0, 0x70, "SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x518, 0, 0x70, "SET_DECRYPT_AUTH_TAG_COMPARE_ADDR_LOWER", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x530, 0, 0x70, "SET_ENCRYPT_AUTH_TAG_ADDR_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x534, 0, 0x70, "SET_ENCRYPT_AUTH_TAG_ADDR_LOWER", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x538, 0, 0x70, "SET_ENCRYPT_IV_ADDR_UPPER", &[
        Field::new("UPPER", 24, 0, V0),
    ]),
    MethodInfo::new(0x53c, 0, 0x70, "SET_ENCRYPT_IV_ADDR_LOWER", &[
        Field::new("LOWER", 31, 0, V0),
    ]),
    MethodInfo::new(0x6fc, 0, 0x70, "SET_MEMORY_SCRUB_PARAMETERS", &[
        Field::new("DISCARDABLE", 0, 0, V6),
    ]),
    MethodInfo::new(0x700, 0, 0x7f, "SET_REMAP_CONST_A", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x704, 0, 0x7f, "SET_REMAP_CONST_B", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x708, 0, 0x7f, "SET_REMAP_COMPONENTS", &[
        Field::new("DST_X", 2, 0, V23),
        Field::new("DST_Y", 6, 4, V23),
        Field::new("DST_Z", 10, 8, V23),
        Field::new("DST_W", 14, 12, V23),
        Field::new("COMPONENT_SIZE", 17, 16, V24),
        Field::new("NUM_SRC_COMPONENTS", 21, 20, V24),
        Field::new("NUM_DST_COMPONENTS", 25, 24, V24),
    ]),
    MethodInfo::new(0x70c, 0, 0x3f, "SET_DST_BLOCK_SIZE", &[
        Field::new("WIDTH", 3, 0, V25),
        Field::new("HEIGHT", 7, 4, V26),
        Field::new("DEPTH", 11, 8, V26),
        Field::new("GOB_HEIGHT", 15, 12, V27),
    ]),
    MethodInfo::new(0x70c, 0, 0x40, "SET_DST_BLOCK_SIZE", &[
        Field::new("WIDTH", 3, 0, V25),
        Field::new("HEIGHT", 7, 4, V26),
        Field::new("DEPTH", 11, 8, V26),
        Field::new("GOB_HEIGHT", 15, 12, V27),
        Field::new("KIND_BPP", 17, 16, V28),
    ]),
    MethodInfo::new(0x710, 0, 0x7f, "SET_DST_WIDTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x714, 0, 0x7f, "SET_DST_HEIGHT", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x718, 0, 0x7f, "SET_DST_DEPTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x71c, 0, 0x7f, "SET_DST_LAYER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x720, 0, 0x7f, "SET_DST_ORIGIN", &[
        Field::new("X", 15, 0, V0),
        Field::new("Y", 31, 16, V0),
    ]),
    MethodInfo::new(0x728, 0, 0x3f, "SET_SRC_BLOCK_SIZE", &[
        Field::new("WIDTH", 3, 0, V25),
        Field::new("HEIGHT", 7, 4, V26),
        Field::new("DEPTH", 11, 8, V26),
        Field::new("GOB_HEIGHT", 15, 12, V27),
    ]),
    MethodInfo::new(0x728, 0, 0x40, "SET_SRC_BLOCK_SIZE", &[
        Field::new("WIDTH", 3, 0, V25),
        Field::new("HEIGHT", 7, 4, V26),
        Field::new("DEPTH", 11, 8, V26),
        Field::new("GOB_HEIGHT", 15, 12, V27),
        Field::new("KIND_BPP", 17, 16, V28),
    ]),
    MethodInfo::new(0x72c, 0, 0x7f, "SET_SRC_WIDTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x730, 0, 0x7f, "SET_SRC_HEIGHT", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x734, 0, 0x7f, "SET_SRC_DEPTH", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x738, 0, 0x7f, "SET_SRC_LAYER", &[
        Field::new("V", 31, 0, V0),
    ]),
    MethodInfo::new(0x73c, 0, 0x7f, "SET_SRC_ORIGIN", &[
        Field::new("X", 15, 0, V0),
        Field::new("Y", 31, 16, V0),
    ]),
    MethodInfo::new(0x744, 0, 0x7f, "SRC_ORIGIN_X", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x748, 0, 0x7f, "SRC_ORIGIN_Y", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x74c, 0, 0x7f, "DST_ORIGIN_X", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x750, 0, 0x7f, "DST_ORIGIN_Y", &[
        Field::new("VALUE", 31, 0, V0),
    ]),
    MethodInfo::new(0x1114, 0, 0x7f, "PM_TRIGGER_END", &[
        Field::new("V", 31, 0, V0),
    ]),
];

const V0: &[ValueName] = &[];
const V1: &[ValueName] = &[(0, "MONITORED_FENCE"), (1, "MONITORED_FENCE_EXT")];
const V2: &[ValueName] = &[(0, "FALSE"), (1, "TRUE"), (2, "CONDITIONAL"), (3, "RENDER_IF_EQUAL"), (4, "RENDER_IF_NOT_EQUAL")];
const V3: &[ValueName] = &[(0, "LOCAL_FB"), (1, "COHERENT_SYSMEM"), (2, "NONCOHERENT_SYSMEM")];
const V4: &[ValueName] = &[(0, "LOCAL_FB"), (1, "COHERENT_SYSMEM"), (2, "NONCOHERENT_SYSMEM"), (3, "PEERMEM")];
const V5: &[ValueName] = &[(0, "NONE"), (1, "PIPELINED"), (2, "NON_PIPELINED")];
const V6: &[ValueName] = &[(0, "FALSE"), (1, "TRUE")];
const V7: &[ValueName] = &[(0, "NONE"), (1, "RELEASE_ONE_WORD_SEMAPHORE"), (2, "RELEASE_FOUR_WORD_SEMAPHORE")];
const V8: &[ValueName] = &[(0, "NONE"), (1, "BLOCKING"), (2, "NON_BLOCKING")];
const V9: &[ValueName] = &[(0, "BLOCKLINEAR"), (1, "PITCH")];
const V10: &[ValueName] = &[(0, "VIRTUAL"), (1, "PHYSICAL")];
const V11: &[ValueName] = &[(0, "IMIN"), (1, "IMAX"), (2, "IXOR"), (3, "IAND"), (4, "IOR"), (5, "IADD"), (6, "INC"), (7, "DEC"), (10, "FADD")];
const V12: &[ValueName] = &[(0, "SIGNED"), (1, "UNSIGNED")];
const V13: &[ValueName] = &[(0, "USE_PTE_SETTING"), (1, "FORCE_VOLATILE")];
const V14: &[ValueName] = &[(0, "VPR_NONE"), (1, "VPR_VID2VID")];
const V15: &[ValueName] = &[(0, "SYS"), (1, "GL")];
const V16: &[ValueName] = &[(0, "NONE"), (1, "RELEASE_ONE_WORD_SEMAPHORE"), (2, "RELEASE_FOUR_WORD_SEMAPHORE"), (3, "RELEASE_CONDITIONAL_INTR_SEMAPHORE")];
const V17: &[ValueName] = &[(0, "NONE"), (1, "RELEASE_ONE_WORD_SEMAPHORE"), (1, "RELEASE_SEMAPHORE_NO_TIMESTAMP"), (2, "RELEASE_FOUR_WORD_SEMAPHORE"), (2, "RELEASE_SEMAPHORE_WITH_TIMESTAMP"), (3, "RELEASE_CONDITIONAL_INTR_SEMAPHORE")];
const V18: &[ValueName] = &[(0, "IMIN"), (1, "IMAX"), (2, "IXOR"), (3, "IAND"), (4, "IOR"), (5, "IADD"), (6, "INC"), (7, "DEC"), (8, "INVALIDA"), (9, "INVALIDB"), (10, "FADD"), (11, "FMIN"), (12, "FMAX"), (13, "INVALIDC"), (14, "INVALIDD"), (15, "INVALIDE")];
const V19: &[ValueName] = &[(0, "ONE_WORD"), (1, "TWO_WORD")];
const V20: &[ValueName] = &[(0, "DEFAULT"), (0, "PROT2PROT"), (1, "SECURE"), (2, "NONPROT2NONPROT"), (3, "RESERVED")];
const V21: &[ValueName] = &[(0, "NONE"), (1, "PIPELINED"), (2, "NON_PIPELINED"), (3, "PREFETCH")];
const V22: &[ValueName] = &[(0, "ENCRYPT"), (1, "DECRYPT")];
const V23: &[ValueName] = &[(0, "SRC_X"), (1, "SRC_Y"), (2, "SRC_Z"), (3, "SRC_W"), (4, "CONST_A"), (5, "CONST_B"), (6, "NO_WRITE")];
const V24: &[ValueName] = &[(0, "ONE"), (1, "TWO"), (2, "THREE"), (3, "FOUR")];
const V25: &[ValueName] = &[(0, "ONE_GOB")];
const V26: &[ValueName] = &[(0, "ONE_GOB"), (1, "TWO_GOBS"), (2, "FOUR_GOBS"), (3, "EIGHT_GOBS"), (4, "SIXTEEN_GOBS"), (5, "THIRTYTWO_GOBS")];
const V27: &[ValueName] = &[(1, "GOB_HEIGHT_FERMI_8")];
const V28: &[ValueName] = &[(0, "BL_32"), (1, "BL_8"), (2, "BL_16"), (3, "BL_24")];
