//! Block-linear surfaces and physical addresses.

use crate::error::EncodeError;

use super::{
    DST_ORIGIN_X, MethodAddr, SET_DST_BLOCK_SIZE, SET_DST_PHYS_MODE, SET_DST_WIDTH,
    SET_SRC_BLOCK_SIZE, SET_SRC_PHYS_MODE, SET_SRC_WIDTH, SRC_ORIGIN_X,
};
use crate::push::compute::Gobs;
use crate::push::word::{field_enum, word, word_method};
use crate::push::writer::Method;

/// How one side of a copy is blocked, where it is block-linear.
macro_rules! block_linear {
    ($( $side:literal $block_word:ident = $block_method:literal, $block_addr:ident;
        $surface:ident = $width_addr:ident; )+) => { $(
        word! {
            #[doc = concat!("How a block-linear ", $side, " is blocked, in units of gobs (512 bytes).")]
            $block_word = $block_method {
                /// Width: always one.
                width: u8 = "WIDTH" 3:0,
                /// Height.
                height: Gobs = "HEIGHT" 7:4,
                /// Depth.
                depth: Gobs = "DEPTH" 11:8,
                /// Height of a gob.
                gob_height: GobHeight = "GOB_HEIGHT" 15:12,
                /// How wide an element is (`clcab5.h` alone).
                kind_bpp: KindBpp = "KIND_BPP" 17:16,
            }
        }
        word_method!($block_word, $block_addr);

        #[doc = concat!("The surface of a block-linear ", $side, ", and where in it the copy begins.")]
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $surface {
            /// Width in bytes, or elements where remapping is on.
            pub width: u32,
            /// Height in lines.
            pub height: u32,
            /// Depth in layers.
            pub depth: u32,
            /// The layer.
            pub layer: u32,
            /// The first element of a line.
            pub x: u16,
            /// The first line.
            pub y: u16,
        }

        impl Method<5> for $surface {
            const ADDR: MethodAddr = $width_addr;

            #[inline]
            fn data(&self) -> Result<[u32; 5], EncodeError> {
                let Self { width, height, depth, layer, x, y } = *self;
                Ok([width, height, depth, layer, (u32::from(y) << 16) | u32::from(x)])
            }
        }
    )+ };
}

field_enum! {
    /// Height of a gob in lines: one is in use.
    GobHeight {
        /// 8.
        #[default]
        Fermi8 = 1 "GOB_HEIGHT_FERMI_8",
    }
}

field_enum! {
    /// How wide an element is on Blackwell.
    KindBpp {
        /// 32 bits.
        #[default]
        Bl32 = 0 "BL_32",
        /// 8 bits.
        Bl8 = 1 "BL_8",
        /// 16 bits.
        Bl16 = 2 "BL_16",
        /// 24 bits.
        Bl24 = 3 "BL_24",
    }
}

block_linear! {
    "source" SetSrcBlockSize = "SET_SRC_BLOCK_SIZE", SET_SRC_BLOCK_SIZE;
        SetSrcSurface = SET_SRC_WIDTH;
    "destination" SetDstBlockSize = "SET_DST_BLOCK_SIZE", SET_DST_BLOCK_SIZE;
        SetDstSurface = SET_DST_WIDTH;
}

field_enum! {
    /// What memory a physical address is in.
    PhysTarget {
        /// The GPU's.
        #[default]
        LocalFb = 0 "LOCAL_FB",
        /// The system's, snooped.
        CoherentSysmem = 1 "COHERENT_SYSMEM",
        /// The system's, not snooped.
        NoncoherentSysmem = 2 "NONCOHERENT_SYSMEM",
        /// A peer's.
        Peermem = 3 "PEERMEM",
    }
}

macro_rules! phys_mode {
    ($( $side:literal $name:ident = $method:literal, $addr:ident; )+) => { $(
        word! {
            #[doc = concat!("What a physical ", $side, " address is in: not for ordinary clients.")]
            $name = $method {
                /// Which memory.
                target: PhysTarget = "TARGET" 1:0,
                /// Its kind.
                basic_kind: u8 = "BASIC_KIND" 5:2,
                /// Which peer.
                peer_id: u8 = "PEER_ID" 8:6,
                /// Whether it is a fabric address.
                fla: bool = "FLA" 9:9,
            }
        }
        word_method!($name, $addr);
    )+ };
}

phys_mode! {
    "source" SetSrcPhysMode = "SET_SRC_PHYS_MODE", SET_SRC_PHYS_MODE;
    "destination" SetDstPhysMode = "SET_DST_PHYS_MODE", SET_DST_PHYS_MODE;
}

macro_rules! origin {
    ($( $side:literal $name:ident = $addr:ident; )+) => { $(
        #[doc = concat!("Where in a block-linear ", $side, " the copy begins, with 32 bits each.")]
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name {
            /// The first element of a line.
            pub x: u32,
            /// The first line.
            pub y: u32,
        }

        impl Method<2> for $name {
            const ADDR: MethodAddr = $addr;

            #[inline]
            fn data(&self) -> Result<[u32; 2], EncodeError> {
                let Self { x, y } = *self;
                Ok([x, y])
            }
        }
    )+ };
}

origin! {
    "source" SrcOrigin = SRC_ORIGIN_X;
    "destination" DstOrigin = DST_ORIGIN_X;
}
