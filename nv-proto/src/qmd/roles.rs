//! What a launch is made of, and which field holds it in each version.
//!
//! The tables below are the one place that says how the versions' names correspond; what uses them is
//! written once for all versions.

use zerocopy::little_endian::U32;

use super::layout::{Field, FieldArray, Layout, Wide, WideArray};
use super::value::Kind;
use super::{Version, v02_03, v02_04, v03_00, v04_00, v04_01, v05_00};
use crate::bits::{Bits, WideBits};
use crate::error::EncodeError;

/// A field whatever its version; values are in units of callers (bytes, not 16ths of them).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub name: &'static str,
    bits: Bits,
    shift: u8,
}

impl Slot {
    #[inline]
    pub fn get(self, words: &[U32]) -> u64 {
        u64::from(self.bits.get(words)).unbounded_shl(self.shift.into())
    }

    #[inline]
    pub fn get_u32(self, words: &[U32]) -> u32 {
        u32::try_from(self.get(words)).unwrap_or(u32::MAX)
    }

    /// What [`Slot::set`] would answer for a value in whole units.
    #[inline]
    pub fn check(self, value: u64) -> Result<(), EncodeError> {
        if value.unbounded_shr(self.shift.into()) > u64::from(self.bits.max()) {
            return Err(EncodeError::FieldOverflow {
                field: self.name,
                width: self.bits.width(),
                value,
            });
        }
        Ok(())
    }

    #[inline]
    pub fn set(self, words: &mut [U32], value: impl Into<u64>) -> Result<(), EncodeError> {
        let value = value.into();
        let unit = 1_u64.unbounded_shl(self.shift.into());
        if value & unit.wrapping_sub(1) != 0 {
            return Err(EncodeError::Misaligned {
                field: self.name,
                unit,
                value,
            });
        }
        self.bits
            .set(words, self.name, value.unbounded_shr(self.shift.into()))
    }
}

/// Two halves of a quantity, whatever the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WideSlot {
    pub name: &'static str,
    bits: WideBits,
}

impl WideSlot {
    #[inline]
    pub fn get(self, words: &[U32]) -> u64 {
        self.bits.get(words)
    }

    /// What [`WideSlot::set`] would answer.
    #[inline]
    pub fn check(self, value: u64) -> Result<(), EncodeError> {
        self.bits.check(self.name, value).map(|_| ())
    }

    #[inline]
    pub fn set(self, words: &mut [U32], value: u64) -> Result<(), EncodeError> {
        self.bits.set(words, self.name, value)
    }
}

/// One constant bank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bank {
    pub valid: Slot,
    pub address: WideSlot,
    pub size: Slot,
    pub invalidate: Slot,
}

/// What a release writes: 32 bits up to version 2.4, 64 from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    Word(Slot),
    Double(WideSlot),
}

impl Payload {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Word(slot) => slot.name,
            Self::Double(slot) => slot.name,
        }
    }

    #[inline]
    pub fn get(self, words: &[U32]) -> u64 {
        match self {
            Self::Word(slot) => slot.get(words),
            Self::Double(slot) => slot.get(words),
        }
    }

    #[inline]
    pub fn check(self, value: u64) -> Result<(), EncodeError> {
        match self {
            Self::Word(slot) => slot.check(value),
            Self::Double(slot) => slot.check(value),
        }
    }

    #[inline]
    pub fn set(self, words: &mut [U32], value: u64) -> Result<(), EncodeError> {
        match self {
            Self::Word(slot) => slot.set(words, value),
            Self::Double(slot) => slot.set(words, value),
        }
    }
}

/// One semaphore release.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReleaseSlots {
    pub enable: Slot,
    pub address: WideSlot,
    pub payload: Payload,
    pub payload64: Option<Slot>,
    pub size: Slot,
    pub membar: Slot,
    pub reduction: Slot,
    pub operation: Slot,
    pub format: Slot,
}

/// One dependent descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DependentSlots {
    pub enable: Slot,
    pub pointer: Slot,
    pub action: Option<Slot>,
    pub prefetch: Option<Slot>,
    /// `DEPENDENT_QMD_TYPE` of version 2.3, which has no action.
    pub kind: Option<Slot>,
}

/// Clusters, from version 4.0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterSlots {
    pub kind: Slot,
    pub gpc: [Slot; 3],
    pub gpu: [Slot; 3],
    pub distribution: Slot,
    pub mask_valid: Slot,
    /// The first words of `TPC_DISABLE_MASK`.
    pub mask: [Slot; 4],
}

/// Where a version holds what a launch is made of.
#[derive(Debug)]
pub(crate) struct Roles {
    pub group: Slot,
    pub global_caching: Option<Slot>,
    pub invalidate_texture_header: Slot,
    pub invalidate_texture_sampler: Slot,
    pub invalidate_texture_data: Slot,
    pub invalidate_shader_data: Slot,
    pub invalidate_shader_constant: Slot,
    pub membar: Slot,
    pub call_limit: Slot,
    pub sampler_index: Slot,
    pub grid: [Slot; 3],
    pub block: [Slot; 3],
    pub registers: Slot,
    pub barriers: Slot,
    pub shared: Slot,
    pub config_min: Slot,
    pub config_max: Slot,
    pub config_target: Slot,
    pub local_low: Slot,
    pub local_high: Slot,
    pub program: WideSlot,
    pub prefetch: WideSlot,
    pub prefetch_size: Slot,
    pub sass_version: Slot,
    pub banks: [Bank; 8],
    pub releases: &'static [ReleaseSlots],
    pub dependents: &'static [DependentSlots],
    pub cluster: Option<ClusterSlots>,
}

impl Roles {
    /// The table of a version; `None` for 2.2, for which nothing here was tried, and for 5.1, whose fields
    /// are per task.
    pub const fn of(version: Version) -> Option<&'static Self> {
        match version {
            Version::V02_03 => Some(&R02_03),
            Version::V02_04 => Some(&R02_04),
            Version::V03_00 => Some(&R03_00),
            Version::V04_00 => Some(&R04_00),
            Version::V04_01 => Some(&R04_01),
            Version::V05_00 => Some(&R05_00),
            Version::V02_02 | Version::V05_01 => None,
        }
    }
}

const fn slot<L: Layout, K: Kind>(field: Field<L, K>) -> Slot {
    Slot {
        name: field.name(),
        bits: field.bits(),
        shift: K::SHIFT,
    }
}

const fn wide<L: Layout>(wide: Wide<L>) -> WideSlot {
    WideSlot {
        name: wide.name(),
        bits: wide.bits(),
    }
}

const fn nth<L: Layout, K: Kind>(array: FieldArray<L, K>, index: u32) -> Slot {
    let element = array.at(index);
    assert!(
        element.is_ok(),
        "the tables below name elements that are there"
    );
    match element {
        Ok(field) => slot(field),
        Err(_) => slot(array.first()),
    }
}

const fn wide_nth<L: Layout>(array: WideArray<L>, index: u32) -> WideSlot {
    let element = array.at(index);
    assert!(
        element.is_ok(),
        "the tables below name elements that are there"
    );
    match element {
        Ok(field) => wide(field),
        Err(_) => wide(array.first()),
    }
}

/// The eight banks of a version.
macro_rules! banks {
    ($v:ident, $($index:literal)*) => {
        [$(Bank {
            valid: nth($v::CONSTANT_BUFFER_VALID, $index),
            address: wide_nth($v::CONSTANT_BUFFER_ADDR, $index),
            size: nth($v::CONSTANT_BUFFER_SIZE_SHIFTED4, $index),
            invalidate: nth($v::CONSTANT_BUFFER_INVALIDATE, $index),
        }),*]
    };
}

/// A table: what has one name in all versions, then what has not.
macro_rules! roles {
    ($v:ident { $($role:ident: $value:expr,)* }) => {
        Roles {
            group: slot($v::QMD_GROUP_ID),
            invalidate_texture_header: slot($v::INVALIDATE_TEXTURE_HEADER_CACHE),
            invalidate_texture_sampler: slot($v::INVALIDATE_TEXTURE_SAMPLER_CACHE),
            invalidate_texture_data: slot($v::INVALIDATE_TEXTURE_DATA_CACHE),
            invalidate_shader_data: slot($v::INVALIDATE_SHADER_DATA_CACHE),
            invalidate_shader_constant: slot($v::INVALIDATE_SHADER_CONSTANT_CACHE),
            membar: slot($v::CWD_MEMBAR_TYPE),
            call_limit: slot($v::API_VISIBLE_CALL_LIMIT),
            sampler_index: slot($v::SAMPLER_INDEX),
            block: [
                slot($v::CTA_THREAD_DIMENSION0),
                slot($v::CTA_THREAD_DIMENSION1),
                slot($v::CTA_THREAD_DIMENSION2),
            ],
            barriers: slot($v::BARRIER_COUNT),
            config_min: slot($v::MIN_SM_CONFIG_SHARED_MEM_SIZE),
            config_max: slot($v::MAX_SM_CONFIG_SHARED_MEM_SIZE),
            config_target: slot($v::TARGET_SM_CONFIG_SHARED_MEM_SIZE),
            program: wide($v::PROGRAM_ADDRESS),
            prefetch: wide($v::PROGRAM_PREFETCH_ADDR),
            prefetch_size: slot($v::PROGRAM_PREFETCH_SIZE),
            sass_version: slot($v::SASS_VERSION),
            banks: banks!($v, 0 1 2 3 4 5 6 7),
            $($role: $value,)*
        }
    };
}

/// A table of a version up to 3.0.
macro_rules! classic {
    ($v:ident, $releases:expr, $dependents:expr) => {
        roles!($v {
            global_caching: Some(slot($v::SM_GLOBAL_CACHING_ENABLE)),
            grid: [
                slot($v::CTA_RASTER_WIDTH),
                slot($v::CTA_RASTER_HEIGHT),
                slot($v::CTA_RASTER_DEPTH),
            ],
            registers: slot($v::REGISTER_COUNT_V),
            shared: slot($v::SHARED_MEMORY_SIZE),
            local_low: slot($v::SHADER_LOCAL_MEMORY_LOW_SIZE),
            local_high: slot($v::SHADER_LOCAL_MEMORY_HIGH_SIZE),
            releases: $releases,
            dependents: $dependents,
            cluster: None,
        })
    };
}

/// The two releases of a version 2.
macro_rules! releases_v2 {
    ($v:ident) => {
        &[
            releases_v2!(
                $v,
                SEMAPHORE_RELEASE_ENABLE0,
                RELEASE0_ADDRESS,
                RELEASE0_PAYLOAD,
                RELEASE0_STRUCTURE_SIZE,
                RELEASE0_REDUCTION_ENABLE,
                RELEASE0_REDUCTION_OP,
                RELEASE0_REDUCTION_FORMAT
            ),
            releases_v2!(
                $v,
                SEMAPHORE_RELEASE_ENABLE1,
                RELEASE1_ADDRESS,
                RELEASE1_PAYLOAD,
                RELEASE1_STRUCTURE_SIZE,
                RELEASE1_REDUCTION_ENABLE,
                RELEASE1_REDUCTION_OP,
                RELEASE1_REDUCTION_FORMAT
            ),
        ]
    };
    ($v:ident, $enable:ident, $address:ident, $payload:ident, $size:ident, $reduction:ident, $op:ident, $format:ident) => {
        ReleaseSlots {
            enable: slot($v::$enable),
            address: wide($v::$address),
            payload: Payload::Word(slot($v::$payload)),
            payload64: None,
            size: slot($v::$size),
            membar: slot($v::RELEASE_MEMBAR_TYPE),
            reduction: slot($v::$reduction),
            operation: slot($v::$op),
            format: slot($v::$format),
        }
    };
}

/// The three releases of version 3.0.
macro_rules! release_v3 {
    ($enable:ident, $address:ident, $payload:ident, $wide:ident, $size:ident, $membar:ident,
     $reduction:ident, $op:ident, $format:ident) => {
        ReleaseSlots {
            enable: slot(v03_00::$enable),
            address: wide(v03_00::$address),
            payload: Payload::Double(wide(v03_00::$payload)),
            payload64: Some(slot(v03_00::$wide)),
            size: slot(v03_00::$size),
            membar: slot(v03_00::$membar),
            reduction: slot(v03_00::$reduction),
            operation: slot(v03_00::$op),
            format: slot(v03_00::$format),
        }
    };
}

/// The releases of a version from 4.0 on.
macro_rules! releases_v4 {
    ($v:ident) => {
        &[
            releases_v4!($v, 0, RELEASE_SEMAPHORE0_ADDR, RELEASE_SEMAPHORE0_PAYLOAD),
            releases_v4!($v, 1, RELEASE_SEMAPHORE1_ADDR, RELEASE_SEMAPHORE1_PAYLOAD),
            releases_v4!($v, 2, RELEASE_SEMAPHORE2_ADDR, RELEASE_SEMAPHORE2_PAYLOAD),
        ]
    };
    ($v:ident, $index:literal, $address:ident, $payload:ident) => {
        ReleaseSlots {
            enable: nth($v::RELEASE_ENABLE, $index),
            address: wide($v::$address),
            payload: Payload::Double(wide($v::$payload)),
            payload64: Some(nth($v::RELEASE_PAYLOAD64B, $index)),
            size: nth($v::RELEASE_STRUCTURE_SIZE, $index),
            membar: nth($v::RELEASE_MEMBAR_TYPE, $index),
            reduction: nth($v::RELEASE_REDUCTION_ENABLE, $index),
            operation: nth($v::RELEASE_REDUCTION_OP, $index),
            format: nth($v::RELEASE_REDUCTION_FORMAT, $index),
        }
    };
}

/// Dependent descriptors by name. Versions 2.4 and 3.0 have flags for two and a pointer for the first only.
macro_rules! dependents {
    ($v:ident one) => {
        &[dependents!(
            $v,
            DEPENDENT_QMD0_ENABLE,
            DEPENDENT_QMD0_POINTER,
            DEPENDENT_QMD0_ACTION,
            DEPENDENT_QMD0_PREFETCH
        )]
    };
    ($v:ident) => {
        &[
            dependents!(
                $v,
                DEPENDENT_QMD0_ENABLE,
                DEPENDENT_QMD0_POINTER,
                DEPENDENT_QMD0_ACTION,
                DEPENDENT_QMD0_PREFETCH
            ),
            dependents!(
                $v,
                DEPENDENT_QMD1_ENABLE,
                DEPENDENT_QMD1_POINTER,
                DEPENDENT_QMD1_ACTION,
                DEPENDENT_QMD1_PREFETCH
            ),
        ]
    };
    ($v:ident, $enable:ident, $pointer:ident, $action:ident, $prefetch:ident) => {
        DependentSlots {
            enable: slot($v::$enable),
            pointer: slot($v::$pointer),
            action: Some(slot($v::$action)),
            prefetch: Some(slot($v::$prefetch)),
            kind: None,
        }
    };
}

/// Dependent descriptors of versions 4.x, whose flags are arrays.
macro_rules! dependents_v4 {
    ($v:ident) => {
        &[
            dependents_v4!($v, 0, DEPENDENT_QMD0_POINTER),
            dependents_v4!($v, 1, DEPENDENT_QMD1_POINTER),
        ]
    };
    ($v:ident, $index:literal, $pointer:ident) => {
        DependentSlots {
            enable: nth($v::DEPENDENT_QMD_ENABLE, $index),
            pointer: slot($v::$pointer),
            action: Some(nth($v::DEPENDENT_QMD_ACTION, $index)),
            prefetch: Some(nth($v::DEPENDENT_QMD_PREFETCH, $index)),
            kind: None,
        }
    };
}

/// A table of a version from 4.0 on.
macro_rules! modern {
    ($v:ident, $shared:ident, $low:ident, $high:ident, $dependents:expr) => {
        roles!($v {
            global_caching: None,
            grid: [
                slot($v::GRID_WIDTH),
                slot($v::GRID_HEIGHT),
                slot($v::GRID_DEPTH)
            ],
            registers: slot($v::REGISTER_COUNT),
            shared: slot($v::$shared),
            local_low: slot($v::$low),
            local_high: slot($v::$high),
            releases: releases_v4!($v),
            dependents: $dependents,
            cluster: Some(ClusterSlots {
                kind: slot($v::QMD_TYPE),
                gpc: [
                    slot($v::GPC_CGA_WIDTH),
                    slot($v::GPC_CGA_HEIGHT),
                    slot($v::GPC_CGA_DEPTH)
                ],
                gpu: [
                    slot($v::GPU_CGA_WIDTH),
                    slot($v::GPU_CGA_HEIGHT),
                    slot($v::GPU_CGA_DEPTH)
                ],
                distribution: slot($v::CGA_CTA_DISTRIBUTION_MODE),
                mask_valid: slot($v::TPC_DISABLE_MASK_VALID),
                mask: [
                    nth($v::TPC_DISABLE_MASK, 0),
                    nth($v::TPC_DISABLE_MASK, 1),
                    nth($v::TPC_DISABLE_MASK, 2),
                    nth($v::TPC_DISABLE_MASK, 3),
                ],
            }),
        })
    };
}

static R02_03: Roles = classic!(
    v02_03,
    releases_v2!(v02_03),
    &[DependentSlots {
        enable: slot(v02_03::DEPENDENT_QMD_SCHEDULE_ENABLE),
        pointer: slot(v02_03::DEPENDENT_QMD_POINTER),
        action: None,
        prefetch: None,
        kind: Some(slot(v02_03::DEPENDENT_QMD_TYPE)),
    }]
);
static R02_04: Roles = classic!(v02_04, releases_v2!(v02_04), dependents!(v02_04 one));
static R03_00: Roles = classic!(
    v03_00,
    &[
        release_v3!(
            RELEASE0_ENABLE,
            RELEASE0_ADDRESS,
            RELEASE0_PAYLOAD,
            RELEASE0_PAYLOAD64B,
            RELEASE0_STRUCTURE_SIZE,
            RELEASE0_MEMBAR_TYPE,
            RELEASE0_REDUCTION_ENABLE,
            RELEASE0_REDUCTION_OP,
            RELEASE0_REDUCTION_FORMAT
        ),
        release_v3!(
            RELEASE1_ENABLE,
            RELEASE1_ADDRESS,
            RELEASE1_PAYLOAD,
            RELEASE1_PAYLOAD64B,
            RELEASE1_STRUCTURE_SIZE,
            RELEASE1_MEMBAR_TYPE,
            RELEASE1_REDUCTION_ENABLE,
            RELEASE1_REDUCTION_OP,
            RELEASE1_REDUCTION_FORMAT
        ),
        release_v3!(
            RELEASE2_ENABLE,
            RELEASE2_ADDRESS,
            RELEASE2_PAYLOAD,
            RELEASE2_PAYLOAD64B,
            RELEASE2_STRUCTURE_SIZE,
            RELEASE2_MEMBAR_TYPE,
            RELEASE2_REDUCTION_ENABLE,
            RELEASE2_REDUCTION_OP,
            RELEASE2_REDUCTION_FORMAT
        ),
    ],
    dependents!(v03_00 one)
);
static R04_00: Roles = modern!(
    v04_00,
    SHARED_MEMORY_SIZE,
    SHADER_LOCAL_MEMORY_LOW_SIZE,
    SHADER_LOCAL_MEMORY_HIGH_SIZE,
    dependents_v4!(v04_00)
);
static R04_01: Roles = modern!(
    v04_01,
    SHARED_MEMORY_SIZE,
    SHADER_LOCAL_MEMORY_LOW_SIZE,
    SHADER_LOCAL_MEMORY_HIGH_SIZE,
    dependents_v4!(v04_01)
);
static R05_00: Roles = modern!(
    v05_00,
    SHARED_MEMORY_SIZE_SHIFTED7,
    SHADER_LOCAL_MEMORY_LOW_SIZE_SHIFTED4,
    SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4,
    dependents!(v05_00)
);
