//! Flag words and indices, by the structure that takes them.
//!
//! Defined by `nvos.h` and the `ctrl/*.h` headers, as of release 595. A word is made of one value of each field
//! that matters: `attr::location::PCI | attr::physicality::ALLOW_NONCONTIGUOUS`.

/// A bit field of a flag word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BitField {
    /// The header's name, less the word's.
    pub name: &'static str,
    /// Its highest bit.
    pub hi: u32,
    /// Its lowest bit.
    pub lo: u32,
    /// Its values by name.
    pub values: &'static [(u32, &'static str)],
}

logged!(
    BitField,
    field,
    "{=str} {=u32}:{=u32}",
    field.name,
    field.hi,
    field.lo
);

impl BitField {
    /// The field's value in a word.
    #[must_use]
    pub fn of(&self, word: u32) -> u32 {
        let width = self.hi.saturating_sub(self.lo).saturating_add(1);
        let mask = u32::MAX
            .checked_shr(u32::BITS.saturating_sub(width))
            .unwrap_or(0);
        word.checked_shr(self.lo).unwrap_or(0) & mask
    }
}

macro_rules! words {
    ($(
        $(#[$meta:meta])*
        $word:ident = $prefix:literal {
            $( $field:ident = $header:literal $hi:literal : $lo:literal { $( $value:ident = $number:literal ),* } )*
        }
    )*) => { $(
        $(#[$meta])*
        pub mod $word {
            /// The word's name in the headers.
            pub const NAME: &str = $prefix;

            /// Its fields.
            pub const FIELDS: &[super::BitField] = &[ $(
                super::BitField {
                    name: $header,
                    hi: $hi,
                    lo: $lo,
                    values: &[ $( ($number, stringify!($value)) ),* ],
                }
            ),* ];

            $(
                #[doc = concat!("Bits ", stringify!($hi), " to ", stringify!($lo), ": `", $prefix, "_", $header, "`.")]
                pub mod $field {
                    $(
                        #[doc = concat!("`", stringify!($value), "`.")]
                        pub const $value: u32 = $number << $lo;
                    )*
                }
            )*
        }
    )* };
}

macro_rules! numbers {
    ($(
        $(#[$meta:meta])*
        $group:ident = $prefix:literal { $( $value:ident = $number:literal ),* $(,)? }
    )*) => { $(
        $(#[$meta])*
        pub mod $group {
            /// The group's name in the headers.
            pub const NAME: &str = $prefix;

            /// Its values by name.
            pub const VALUES: &[(u32, &str)] = &[ $( ($number, stringify!($value)) ),* ];

            $(
                #[doc = concat!("`", $prefix, "_", stringify!($value), "`.")]
                pub const $value: u32 = $number;
            )*
        }
    )* };
}

words! {
    /// `NVOS32_ATTR`: the memory that an allocation asks for.
    attr = "NVOS32_ATTR" {
        coherency = "COHERENCY" 31:29 { UNCACHED = 0, CACHED = 1, WRITE_COMBINE = 2, WRITE_THROUGH = 3, WRITE_PROTECT = 4, WRITE_BACK = 5 }
        physicality = "PHYSICALITY" 28:27 { DEFAULT = 0, NONCONTIGUOUS = 1, CONTIGUOUS = 2, ALLOW_NONCONTIGUOUS = 3 }
        location = "LOCATION" 26:25 { VIDMEM = 0, PCI = 1, ANY = 3 }
        page_size = "PAGE_SIZE" 24:23 { DEFAULT = 0, _4KB = 1, BIG = 2, HUGE = 3 }
        color_packing = "COLOR_PACKING" 21:19 { A8R8G8B8 = 0, X8R8G8B8 = 1 }
        zs_packing = "ZS_PACKING" 21:19 { S8 = 0, Z24S8 = 0, S8Z24 = 1, Z32 = 2, Z24X8 = 3, X8Z24 = 4, Z32_X24S8 = 5, X8Z24_X24S8 = 6, Z16 = 7 }
        z_type = "Z_TYPE" 18:18 { FIXED = 0, FLOAT = 1 }
        format = "FORMAT" 17:16 { PITCH = 0, SWIZZLED = 1, BLOCK_LINEAR = 2 }
        allocate_from_reserved_heap = "ALLOCATE_FROM_RESERVED_HEAP" 14:14 { NO = 0, YES = 1 }
        compr = "COMPR" 13:12 { NONE = 0, PLC_REQUIRED = 1, REQUIRED = 1, ANY = 2, PLC_ANY = 2, DISABLE_PLC_ANY = 3 }
        zcull = "ZCULL" 11:10 { NONE = 0, REQUIRED = 1, ANY = 2, SHARED = 3 }
        gpu_cache_snoopable = "GPU_CACHE_SNOOPABLE" 9:8 { MAPPING = 0, OFF = 1, ON = 2, INVALID = 3 }
        aa_samples = "AA_SAMPLES" 7:4 { _1 = 0, _2 = 1, _4 = 2, _4_ROTATED = 3, _6 = 4, _8 = 5, _16 = 6, _4_VIRTUAL_8 = 7, _4_VIRTUAL_16 = 8, _8_VIRTUAL_16 = 9, _8_VIRTUAL_32 = 10 }
        compr_covg = "COMPR_COVG" 3:3 { DEFAULT = 0, PROVIDED = 1 }
        depth = "DEPTH" 2:0 { UNKNOWN = 0, _8 = 1, _16 = 2, _24 = 3, _32 = 4, _64 = 5, _128 = 6 }
    }
    /// `NVOS32_ATTR2`: more of it.
    attr2 = "NVOS32_ATTR2" {
        register_memdesc_to_phys_rm = "REGISTER_MEMDESC_TO_PHYS_RM" 31:31 { FALSE = 0, TRUE = 1 }
        enable_localized_memory = "ENABLE_LOCALIZED_MEMORY" 30:29 { DEFAULT = 0, UGPU0 = 1, UGPU1 = 2, UGPU_COUNT = 2 }
        allocate_from_subheap = "ALLOCATE_FROM_SUBHEAP" 27:27 { NO = 0, YES = 1 }
        memory_protection = "MEMORY_PROTECTION" 26:25 { DEFAULT = 0, PROTECTED = 1, UNPROTECTED = 2 }
        protection_device = "PROTECTION_DEVICE" 23:23 { READ_WRITE = 0, READ_ONLY = 1 }
        protection_user = "PROTECTION_USER" 22:22 { READ_WRITE = 0, READ_ONLY = 1 }
        page_size_huge = "PAGE_SIZE_HUGE" 21:20 { DEFAULT = 0, _2MB = 1, _512MB = 2, _256GB = 3 }
        blacklist = "BLACKLIST" 19:19 { ON = 0, OFF = 1 }
        page_offlining = "PAGE_OFFLINING" 19:19 { ON = 0, OFF = 1 }
        iso = "ISO" 18:18 { NO = 0, YES = 1 }
        zbc_skip_zbcrefcount = "ZBC_SKIP_ZBCREFCOUNT" 17:17 { NO = 0, YES = 1 }
        niso_display = "NISO_DISPLAY" 16:16 { NO = 0, YES = 1 }
        prefer_2c = "PREFER_2C" 15:15 { NO = 0, YES = 1 }
        internal = "INTERNAL" 14:14 { NO = 0, YES = 1 }
        priority = "PRIORITY" 13:12 { DEFAULT = 0, HIGH = 1, LOW = 2 }
        alloc_compcacheline_align = "ALLOC_COMPCACHELINE_ALIGN" 11:11 { DEFAULT = 0, OFF = 0, ON = 1 }
        use_scanout_carveout = "USE_SCANOUT_CARVEOUT" 10:10 { FALSE = 0, TRUE = 1 }
        smmu_on_gpu = "SMMU_ON_GPU" 9:8 { DEFAULT = 0, DISABLE = 1, ENABLE = 2 }
        fixed_numa_node_id = "FIXED_NUMA_NODE_ID" 7:7 { NO = 0, YES = 1 }
        p_32bit_pointer = "32BIT_POINTER" 6:6 { DISABLE = 0, ENABLE = 1 }
        p2p_gpu_cacheable = "P2P_GPU_CACHEABLE" 5:4 { DEFAULT = 0, YES = 1, NO = 2 }
        gpu_cacheable = "GPU_CACHEABLE" 3:2 { DEFAULT = 0, YES = 1, NO = 2, INVALID = 3 }
        zbc = "ZBC" 1:0 { DEFAULT = 0, PREFER_NO_ZBC = 1, PREFER_ZBC = 2, INVALID = 3, REQUIRE_ONLY_ZBC = 3 }
    }
    /// `NVOS33_FLAGS`: a CPU mapping.
    map_cpu = "NVOS33_FLAGS" {
        allow_mapping_on_hcc = "ALLOW_MAPPING_ON_HCC" 26:26 { NO = 0, YES = 1 }
        caching_type = "CACHING_TYPE" 25:23 { CACHED = 0, UNCACHED = 1, WRITECOMBINED = 2, WRITEBACK = 5, DEFAULT = 6, UNCACHED_WEAK = 7 }
        os_descriptor = "OS_DESCRIPTOR" 22:22 { DISABLE = 0, ENABLE = 1 }
        bus = "BUS" 21:20 { DEFAULT = 0, COHERENT_LINK = 1, PCIE = 2 }
        reserve_on_unmap = "RESERVE_ON_UNMAP" 19:19 { DISABLE = 0, ENABLE = 1 }
        map_fixed = "MAP_FIXED" 18:18 { DISABLE = 0, ENABLE = 1 }
        fifo_mapping = "FIFO_MAPPING" 17:17 { DEFAULT = 0, ENABLE = 1 }
        mapping = "MAPPING" 16:15 { DEFAULT = 0, DIRECT = 1, REFLECTED = 2 }
        mem_space = "MEM_SPACE" 14:14 { CLIENT = 0, USER = 1 }
        skip_size_check = "SKIP_SIZE_CHECK" 8:8 { DISABLE = 0, ENABLE = 1 }
        persistent = "PERSISTENT" 4:4 { DISABLE = 0, ENABLE = 1 }
        access = "ACCESS" 1:0 { READ_WRITE = 0, READ_ONLY = 1, WRITE_ONLY = 2 }
    }
    /// `NVOS46_FLAGS`: a GPU mapping.
    map_dma = "NVOS46_FLAGS" {
        defer_tlb_invalidation = "DEFER_TLB_INVALIDATION" 31:31 { FALSE = 0, TRUE = 1 }
        enable_force_compressed_map = "ENABLE_FORCE_COMPRESSED_MAP" 30:30 { FALSE = 0, TRUE = 1 }
        dma_unicast_reuse_alloc = "DMA_UNICAST_REUSE_ALLOC" 29:29 { FALSE = 0, TRUE = 1 }
        tlb_lock = "TLB_LOCK" 28:28 { DISABLE = 0, ENABLE = 1 }
        p2p_enable = "P2P_ENABLE" 21:20 { NO = 0, NONE = 0, SLI = 1, YES = 1, NOSLI = 2 }
        page_kind_override = "PAGE_KIND_OVERRIDE" 19:19 { NO = 0, YES = 1 }
        gpu_cacheable = "GPU_CACHEABLE" 18:17 { DEFAULT = 0, YES = 1, NO = 2, INVALID = 3 }
        disable_encryption = "DISABLE_ENCRYPTION" 16:16 { FALSE = 0, TRUE = 1 }
        dma_offset_fixed = "DMA_OFFSET_FIXED" 15:15 { FALSE = 0, TRUE = 1 }
        dma_offset_grows = "DMA_OFFSET_GROWS" 14:14 { UP = 0, DOWN = 1 }
        system_l3_alloc = "SYSTEM_L3_ALLOC" 13:13 { DEFAULT = 0, ENABLE_HINT = 1 }
        page_size = "PAGE_SIZE" 11:8 { DEFAULT = 0, _4KB = 1, BIG = 2, BOTH = 3, HUGE = 4, _512M = 5 }
        shader_access = "SHADER_ACCESS" 7:6 { DEFAULT = 0, READ_ONLY = 1, WRITE_ONLY = 2, READ_WRITE = 3 }
        kernel_mapping = "KERNEL_MAPPING" 5:5 { NONE = 0, ENABLE = 1 }
        cache_snoop = "CACHE_SNOOP" 4:4 { DISABLE = 0, ENABLE = 1 }
        page_kind = "PAGE_KIND" 3:3 { PHYSICAL = 0, VIRTUAL = 1 }
        p_32bit_pointer = "32BIT_POINTER" 2:2 { DISABLE = 0, ENABLE = 1 }
        access = "ACCESS" 1:0 { READ_WRITE = 0, READ_ONLY = 1, WRITE_ONLY = 2 }
    }
    /// `NVOS47_FLAGS`: an end of a GPU mapping.
    unmap_dma = "NVOS47_FLAGS" {
        defer_tlb_invalidation = "DEFER_TLB_INVALIDATION" 0:0 { FALSE = 0, TRUE = 1 }
    }
    /// `NVOS02_FLAGS`: a memory object of the caller's pages.
    os_memory = "NVOS02_FLAGS" {
        mapping = "MAPPING" 31:30 { DEFAULT = 0, NO_MAP = 1, NEVER_MAP = 2 }
        register_memdesc_to_phys_rm = "REGISTER_MEMDESC_TO_PHYS_RM" 27:27 { FALSE = 0, TRUE = 1 }
        memory_protection = "MEMORY_PROTECTION" 26:25 { DEFAULT = 0, PROTECTED = 1, UNPROTECTED = 2 }
        alloc_type_syncpoint = "ALLOC_TYPE_SYNCPOINT" 24:24 { APERTURE = 1 }
        peer_map_override = "PEER_MAP_OVERRIDE" 23:23 { DEFAULT = 0, REQUIRED = 1 }
        alloc_device_read_only = "ALLOC_DEVICE_READ_ONLY" 22:22 { NO = 0, YES = 1 }
        alloc_user_read_only = "ALLOC_USER_READ_ONLY" 21:21 { NO = 0, YES = 1 }
        alloc_niso_display = "ALLOC_NISO_DISPLAY" 20:20 { NO = 0, YES = 1 }
        kernel_mapping = "KERNEL_MAPPING" 19:19 { NO_MAP = 0, MAP = 1 }
        gpu_cacheable = "GPU_CACHEABLE" 18:18 { NO = 0, YES = 1 }
        alloc = "ALLOC" 17:16 { NONE = 1 }
        coherency = "COHERENCY" 15:12 { UNCACHED = 0, CACHED = 1, WRITE_COMBINE = 2, WRITE_THROUGH = 3, WRITE_PROTECT = 4, WRITE_BACK = 5 }
        location = "LOCATION" 11:8 { PCI = 0, VIDMEM = 2 }
        physicality = "PHYSICALITY" 7:4 { CONTIGUOUS = 0, NONCONTIGUOUS = 1 }
    }
    /// `NVOS04_FLAGS`: a channel.
    channel = "NVOS04_FLAGS" {
        skip_ctxbuffer_alloc = "SKIP_CTXBUFFER_ALLOC" 31:31 { FALSE = 0, TRUE = 1 }
        map_channel = "MAP_CHANNEL" 30:30 { FALSE = 0, TRUE = 1 }
        group_channel_thread = "GROUP_CHANNEL_THREAD" 29:28 { DEFAULT = 0, ONE = 1, TWO = 2 }
        channel_pbdma_acquire_timeout = "CHANNEL_PBDMA_ACQUIRE_TIMEOUT" 27:27 { FALSE = 0, TRUE = 1 }
        channel_vgpu_plugin_context = "CHANNEL_VGPU_PLUGIN_CONTEXT" 26:26 { FALSE = 0, TRUE = 1 }
        set_evict_last_ce_prefetch_channel = "SET_EVICT_LAST_CE_PREFETCH_CHANNEL" 25:25 { FALSE = 0, TRUE = 1 }
        channel_client_map_fifo = "CHANNEL_CLIENT_MAP_FIFO" 24:24 { FALSE = 0, TRUE = 1 }
        channel_skip_scrubber = "CHANNEL_SKIP_SCRUBBER" 23:23 { FALSE = 0, TRUE = 1 }
        channel_deny_auth_level_priv = "CHANNEL_DENY_AUTH_LEVEL_PRIV" 22:22 { FALSE = 0, TRUE = 1 }
        channel_userd_index_page_fixed = "CHANNEL_USERD_INDEX_PAGE_FIXED" 21:21 { FALSE = 0, TRUE = 1 }
        channel_userd_index_fixed = "CHANNEL_USERD_INDEX_FIXED" 11:11 { FALSE = 0, TRUE = 1 }
        channel_deny_physical_mode_ce = "CHANNEL_DENY_PHYSICAL_MODE_CE" 7:7 { FALSE = 0, TRUE = 1 }
        delay_channel_scheduling = "DELAY_CHANNEL_SCHEDULING" 6:6 { FALSE = 0, TRUE = 1 }
        privileged_channel = "PRIVILEGED_CHANNEL" 5:5 { FALSE = 0, TRUE = 1 }
        group_channel_runqueue = "GROUP_CHANNEL_RUNQUEUE" 4:4 { DEFAULT = 0, ONE = 1 }
        channel_skip_map_refcounting = "CHANNEL_SKIP_MAP_REFCOUNTING" 3:3 { FALSE = 0, TRUE = 1 }
        cc_secure = "CC_SECURE" 2:2 { FALSE = 0, TRUE = 1 }
        vpr = "VPR" 2:2 { FALSE = 0, TRUE = 1 }
        channel_type = "CHANNEL_TYPE" 1:0 { PHYSICAL = 0, VIRTUAL = 1, PHYSICAL_FOR_VIRTUAL = 2 }
    }
    /// `NV_CTXSHARE_ALLOCATION_FLAGS`: a subcontext.
    ctxshare = "NV_CTXSHARE_ALLOCATION_FLAGS" {
        subcontext = "SUBCONTEXT" 1:0 { SYNC = 0, ASYNC = 1, SPECIFIED = 2, ASYNC_PREFER_LOWER = 3 }
    }
    /// `NV2080_CTRL_PERF_BOOST_FLAGS`: a request for clocks.
    perf_boost = "NV2080_CTRL_PERF_BOOST_FLAGS" {
        cuda_priority = "CUDA_PRIORITY" 6:6 { DEFAULT = 0, HIGH = 1 }
        async_ = "ASYNC" 5:5 { NO = 0, YES = 1 }
        cuda = "CUDA" 4:4 { NO = 0, YES = 1 }
        cmd = "CMD" 1:0 { CLEAR = 0, BOOST_1LEVEL = 1, BOOST_TO_MAX = 2 }
    }
    /// `NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS`: a cache flush.
    flush_cache = "NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS" {
        fb_flush = "FB_FLUSH" 5:5 { NO = 0, YES = 1 }
        flush_mode = "FLUSH_MODE" 4:4 { ADDRESS_ARRAY = 0, FULL_CACHE = 1 }
        invalidate = "INVALIDATE" 3:3 { NO = 0, YES = 1 }
        write_back = "WRITE_BACK" 2:2 { NO = 0, YES = 1 }
        aperture = "APERTURE" 1:0 { VIDEO_MEMORY = 0, SYSTEM_MEMORY = 1, PEER_MEMORY = 2 }
    }
    /// `NV2080_GPU_CMD_GPU_GET_GID_FLAGS`: a UUID's form.
    gid = "NV2080_GPU_CMD_GPU_GET_GID_FLAGS" {
        mode = "MODE" 5:3 { GPU = 0, UGPU = 1 }
        type_ = "TYPE" 2:2 { SHA1 = 0 }
        format = "FORMAT" 1:0 { ASCII = 0, BINARY = 2 }
    }
}

numbers! {
    /// `NVOS32_ALLOC_FLAGS`: `flags` of a memory allocation.
    alloc = "NVOS32_ALLOC_FLAGS" {
        BANK_GROW_UP = 0x0,
        IGNORE_BANK_PLACEMENT = 0x1,
        FORCE_MEM_GROWS_UP = 0x2,
        FORCE_MEM_GROWS_DOWN = 0x4,
        FORCE_ALIGN_HOST_PAGE = 0x8,
        FIXED_ADDRESS_ALLOCATE = 0x10,
        BANK_HINT = 0x20,
        BANK_FORCE = 0x40,
        ALIGNMENT_HINT = 0x80,
        ALIGNMENT_FORCE = 0x100,
        BANK_GROW_DOWN = 0x200,
        LAZY = 0x400,
        FORCE_REVERSE_ALLOC = 0x800,
        NO_SCANOUT = 0x1000,
        PITCH_FORCE = 0x2000,
        MEMORY_HANDLE_PROVIDED = 0x4000,
        MAP_NOT_REQUIRED = 0x8000,
        PERSISTENT_VIDMEM = 0x10000,
        USE_BEGIN_END = 0x20000,
        TURBO_CIPHER_ENCRYPTED = 0x40000,
        VIRTUAL = 0x80000,
        FORCE_INTERNAL_INDEX = 0x100000,
        ZCULL_COVG_SPECIFIED = 0x200000,
        EXTERNALLY_MANAGED = 0x400000,
        FORCE_DEDICATED_PDE = 0x800000,
        PROTECTED = 0x1000000,
        KERNEL_MAPPING_MAP = 0x2000000,
        SPARSE = 0x4000000,
        USER_READ_ONLY = 0x4000000,
        DEVICE_READ_ONLY = 0x8000000,
        SKIP_RESOURCE_ALLOC = 0x10000000,
        PREFER_PTES_IN_SYSMEMORY = 0x20000000,
        VIRTUAL_ONLY = 0x26480400,
        SKIP_ALIGN_PAD = 0x40000000,
        WPR1 = 0x40000000,
        WPR2 = 0x80000000,
        ZCULL_DONT_ALLOCATE_SHARED_1X = 0x80000000,
    }
    /// `NVOS32_TYPE`: `type` of a memory allocation.
    memory_type = "NVOS32_TYPE" {
        IMAGE = 0x0,
        DEPTH = 0x1,
        TEXTURE = 0x2,
        VIDEO = 0x3,
        FONT = 0x4,
        CURSOR = 0x5,
        DMA = 0x6,
        INSTANCE = 0x7,
        PRIMARY = 0x8,
        ZCULL = 0x9,
        UNUSED = 0xa,
        SHADER_PROGRAM = 0xb,
        OWNER_RM = 0xc,
        NOTIFIER = 0xd,
        RESERVED = 0xe,
        PMA = 0xf,
        STENCIL = 0x10,
    }
    /// `NV_VASPACE_ALLOCATION_FLAGS`: `flags` of an address space.
    va_space = "NV_VASPACE_ALLOCATION_FLAGS" {
        NONE = 0x0,
        RETRY_PTE_ALLOC_IN_SYS = 0x2,
        SHARED_MANAGEMENT = 0x4,
        IS_EXTERNALLY_OWNED = 0x8,
        ENABLE_NVLINK_ATS = 0x10,
        ENABLE_PAGE_FAULTING = 0x40,
        VA_INTERNAL_LIMIT = 0x80,
        ALLOW_ZERO_ADDRESS = 0x100,
        IS_FLA = 0x200,
        SKIP_SCRUB_MEMPOOL = 0x400,
        OPTIMIZE_PTETABLE_MEMPOOL_USAGE = 0x800,
        REQUIRE_FIXED_OFFSET = 0x1000,
        PTETABLE_HEAP_MANAGED = 0x2000,
    }
    /// `NV_VASPACE_ALLOCATION_INDEX`: `index` of an address space.
    va_space_index = "NV_VASPACE_ALLOCATION_INDEX" {
        GPU_NEW = 0x0,
        GPU_HOST = 0x1,
        GPU_GLOBAL = 0x2,
        GPU_DEVICE = 0x3,
        GPU_FLA = 0x4,
    }
    /// `NV_DEVICE_ALLOCATION_VAMODE`: `vaMode` of a device.
    device_va_mode = "NV_DEVICE_ALLOCATION_VAMODE" {
        OPTIONAL_MULTIPLE_VASPACES = 0x0,
        SINGLE_VASPACE = 0x1,
        MULTIPLE_VASPACES = 0x2,
    }
    /// `NV2080_ENGINE_TYPE`: an engine.
    engine = "NV2080_ENGINE_TYPE" {
        NULL = 0x0,
        GR0 = 0x1,
        GRAPHICS = 0x1,
        GR1 = 0x2,
        GR2 = 0x3,
        GR3 = 0x4,
        GR4 = 0x5,
        GR5 = 0x6,
        GR6 = 0x7,
        GR7 = 0x8,
        COPY0 = 0x9,
        COPY1 = 0xa,
        COPY2 = 0xb,
        COPY3 = 0xc,
        COPY4 = 0xd,
        COPY5 = 0xe,
        COPY6 = 0xf,
        COPY7 = 0x10,
        COPY8 = 0x11,
        COPY9 = 0x12,
        BSP = 0x13,
        NVDEC0 = 0x13,
        NVDEC1 = 0x14,
        NVDEC2 = 0x15,
        NVDEC3 = 0x16,
        NVDEC4 = 0x17,
        NVDEC5 = 0x18,
        NVDEC6 = 0x19,
        NVDEC7 = 0x1a,
        MSENC = 0x1b,
        NVENC0 = 0x1b,
        NVENC1 = 0x1c,
        NVENC2 = 0x1d,
        VP = 0x1e,
        ME = 0x1f,
        PPP = 0x20,
        MPEG = 0x21,
        SW = 0x22,
        CIPHER = 0x23,
        TSEC = 0x23,
        VIC = 0x24,
        MP = 0x25,
        SEC2 = 0x26,
        HOST = 0x27,
        DPU = 0x28,
        PMU = 0x29,
        FBFLCN = 0x2a,
        NVJPEG0 = 0x2b,
        NVJPG = 0x2b,
        NVJPEG1 = 0x2c,
        NVJPEG2 = 0x2d,
        NVJPEG3 = 0x2e,
        NVJPEG4 = 0x2f,
        NVJPEG5 = 0x30,
        NVJPEG6 = 0x31,
        NVJPEG7 = 0x32,
        OFA = 0x33,
        ALLENGINES = 0xffffffff,
    }
    /// `NV2080_CTRL_GR_INFO_INDEX`: a fact of the graphics engine.
    gr_info = "NV2080_CTRL_GR_INFO_INDEX" {
        MIN_ATTRS_BUG_261894 = 0x1,
        BUFFER_ALIGNMENT = 0x3,
        SWIZZLE_ALIGNMENT = 0x4,
        VPE_COUNT = 0x6,
        SHADER_PIPE_COUNT = 0x7,
        THREAD_STACK_SCALING_FACTOR = 0x8,
        SHADER_PIPE_SUB_COUNT = 0x9,
        SM_REG_BANK_COUNT = 0xa,
        SM_REG_BANK_REG_COUNT = 0xb,
        SM_VERSION = 0xc,
        MAX_WARPS_PER_SM = 0xd,
        MAX_THREADS_PER_WARP = 0xe,
        GEOM_GS_OBUF_ENTRIES = 0xf,
        GEOM_XBUF_ENTRIES = 0x10,
        FB_MEMORY_REQUEST_GRANULARITY = 0x11,
        HOST_MEMORY_REQUEST_GRANULARITY = 0x12,
        MAX_SP_PER_SM = 0x13,
        LITTER_NUM_GPCS = 0x14,
        LITTER_NUM_FBPS = 0x15,
        LITTER_NUM_ZCULL_BANKS = 0x16,
        LITTER_NUM_TPC_PER_GPC = 0x17,
        LITTER_NUM_MIN_FBPS = 0x18,
        LITTER_NUM_MXBAR_FBP_PORTS = 0x19,
        TIMESLICE_ENABLED = 0x1a,
        LITTER_NUM_FBPAS = 0x1b,
        LITTER_NUM_PES_PER_GPC = 0x1c,
        GPU_CORE_COUNT = 0x1d,
        LITTER_NUM_TPCS_PER_PES = 0x1e,
        LITTER_NUM_MXBAR_HUB_PORTS = 0x1f,
        LITTER_NUM_SM_PER_TPC = 0x20,
        LITTER_NUM_HSHUB_FBP_PORTS = 0x21,
        RT_CORE_COUNT = 0x22,
        TENSOR_CORE_COUNT = 0x23,
        LITTER_NUM_GRS = 0x24,
        LITTER_NUM_LTCS = 0x25,
        LITTER_NUM_LTC_SLICES = 0x26,
        LITTER_NUM_GPCMMU_PER_GPC = 0x27,
        LITTER_NUM_LTC_PER_FBP = 0x28,
        LITTER_NUM_ROP_PER_GPC = 0x29,
        FAMILY_MAX_TPC_PER_GPC = 0x2a,
        LITTER_NUM_FBPA_PER_FBP = 0x2b,
        MAX_SUBCONTEXT_COUNT = 0x2c,
        MAX_LEGACY_SUBCONTEXT_COUNT = 0x2d,
        MAX_PER_ENGINE_SUBCONTEXT_COUNT = 0x2e,
        LITTER_NUM_SLICES_PER_LTC = 0x32,
        DUMMY = 0x33,
        GFX_CAPABILITIES = 0x34,
    }
    /// `NV2080_CTRL_FB_INFO_INDEX`: a fact of the memory.
    fb_info = "NV2080_CTRL_FB_INFO_INDEX" {
        TILE_REGION_COUNT = 0x0,
        DRAM_PAGE_STRIDE = 0x2,
        TILE_REGION_FREE_COUNT = 0x3,
        PARTITION_COUNT = 0x4,
        BANK_SWIZZLE_ALIGNMENT = 0x6,
        RAM_SIZE = 0x7,
        TOTAL_RAM_SIZE = 0x8,
        HEAP_SIZE = 0x9,
        BUS_WIDTH = 0xb,
        RAM_CFG = 0xc,
        RAM_TYPE = 0xd,
        BANK_COUNT = 0xe,
        EFFECTIVE_BW = 0xf,
        GPU_VADDR_HEAP_SIZE_KB = 0xf,
        GPU_VADDR_MAPPBLE_SIZE_KB = 0xf,
        GPU_VADDR_SPACE_SIZE_KB = 0xf,
        OVERLAY_OFFSET_ADJUSTMENT = 0xf,
        FB_TAX_SIZE_KB = 0x10,
        HEAP_BASE_KB = 0x11,
        LARGEST_FREE_REGION_SIZE_KB = 0x12,
        LARGEST_FREE_REGION_BASE_KB = 0x13,
        PARTITION_MASK = 0x14,
        HEAP_FREE = 0x16,
        RAM_LOCATION = 0x17,
        FB_IS_BROKEN = 0x18,
        FBP_COUNT = 0x19,
        FBP_MASK = 0x1a,
        MEMORYINFO_VENDOR_ID = 0x1c,
        HEAP_START = 0x1e,
        TRAINIG_2T = 0x21,
        LTC_COUNT = 0x22,
        LTS_COUNT = 0x23,
        L2CACHE_ONLY_MODE = 0x24,
        PSEUDO_CHANNEL_MODE = 0x25,
        _1TO1_COMPTAG_ENABLED = 0x28,
        ALLOW_PAGE_RETIREMENT = 0x2a,
        LTC_MASK = 0x2b,
        FORCED_BAR1_64KB_MAPPING_ENABLED = 0x2f,
        P2P_MAILBOX_ALIGNMENT = 0x31,
        P2P_MAILBOX_BAR1_MAX_OFFSET_64KB = 0x32,
        PROTECTED_MEM_SIZE_TOTAL_KB = 0x33,
        PROTECTED_MEM_SIZE_FREE_KB = 0x34,
    }
}
