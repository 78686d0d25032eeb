//! Texture and sampler descriptors, and the caches that hold them.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::{
    INVALIDATE_SAMPLER_CACHE, INVALIDATE_SAMPLER_CACHE_NO_WFI, INVALIDATE_TEXTURE_DATA_CACHE,
    INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI, INVALIDATE_TEXTURE_HEADER_CACHE,
    INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI, MethodAddr, SET_BINDLESS_TEXTURE,
    SET_TEX_HEADER_POOL_A, SET_TEX_SAMPLER_POOL_A,
};
use crate::push::word::{FieldSpec, field_enum, upper, word, word_method};
use crate::push::writer::Method;

field_enum! {
    /// Which lines of a cache are meant.
    CacheLines {
        /// All.
        #[default]
        All = 0 "ALL",
        /// The one with the tag.
        One = 1 "ONE",
    }
}

macro_rules! invalidate {
    ($( $(#[$meta:meta])* $name:ident = $method:literal, $addr:ident; )+) => { $(
        word! {
            $(#[$meta])*
            $name = $method {
                /// Which lines.
                lines: CacheLines = "LINES" 0:0,
                /// The tag of one line: 22 bits.
                tag: u32 = "TAG" 25:4,
            }
        }
        word_method!($name, $addr);
    )+ };
}

invalidate! {
    /// Invalidates cached samplers once the engine is idle.
    InvalidateSamplerCache = "INVALIDATE_SAMPLER_CACHE", INVALIDATE_SAMPLER_CACHE;
    /// Invalidates cached samplers without waiting.
    InvalidateSamplerCacheNoWfi = "INVALIDATE_SAMPLER_CACHE_NO_WFI", INVALIDATE_SAMPLER_CACHE_NO_WFI;
    /// Invalidates cached texture headers once the engine is idle.
    InvalidateTextureHeaderCache = "INVALIDATE_TEXTURE_HEADER_CACHE", INVALIDATE_TEXTURE_HEADER_CACHE;
    /// Invalidates cached texture headers without waiting.
    InvalidateTextureHeaderCacheNoWfi = "INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI",
        INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI;
    /// Invalidates cached texture data once the engine is idle.
    InvalidateTextureDataCache = "INVALIDATE_TEXTURE_DATA_CACHE", INVALIDATE_TEXTURE_DATA_CACHE;
    /// Invalidates cached texture data without waiting.
    InvalidateTextureDataCacheNoWfi = "INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI",
        INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI;
}

word! {
    /// The constant bank that holds bindless texture handles.
    SetBindlessTexture = "SET_BINDLESS_TEXTURE" {
        /// Which bank.
        constant_buffer_slot_select: u8 = "CONSTANT_BUFFER_SLOT_SELECT" 2:0,
    }
}
word_method!(SetBindlessTexture, SET_BINDLESS_TEXTURE);

macro_rules! pool {
    ($( $(#[$meta:meta])* $name:ident = $addr:ident, $a:literal, $c:literal [$index_hi:literal]; )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name {
            /// Where the pool is.
            pub at: GpuVa,
            /// Its last index.
            pub maximum_index: u32,
        }

        impl Method<3> for $name {
            const ADDR: MethodAddr = $addr;

            #[inline]
            fn data(&self) -> Result<[u32; 3], EncodeError> {
                let Self { at, maximum_index } = *self;
                Ok([
                    upper($a, 17, at)?,
                    at.lo(),
                    FieldSpec { name: $c, hi: $index_hi, lo: 0 }.place(maximum_index)?,
                ])
            }
        }
    )+ };
}

pool! {
    /// The pool of texture headers.
    SetTexHeaderPool = SET_TEX_HEADER_POOL_A,
        "SET_TEX_HEADER_POOL_A_OFFSET_UPPER", "SET_TEX_HEADER_POOL_C_MAXIMUM_INDEX" [21];
    /// The pool of texture samplers.
    SetTexSamplerPool = SET_TEX_SAMPLER_POOL_A,
        "SET_TEX_SAMPLER_POOL_A_OFFSET_UPPER", "SET_TEX_SAMPLER_POOL_C_MAXIMUM_INDEX" [19];
}
