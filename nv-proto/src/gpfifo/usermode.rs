//! The usermode register page: the doorbell and the GPU's clock.
//!
//! Offsets are those of `clc361.h`; the headers of later usermode classes hold no more than their numbers.

use bitfield_struct::bitfield;

use crate::unit::SubmitToken;

/// Size of the page in bytes.
pub const USERMODE_BYTES: usize = 0x1_0000;
/// Lower half of the GPU's time in nanoseconds.
pub const USERMODE_TIME_0: usize = 0x80;
/// Upper half of the GPU's time in nanoseconds.
pub const USERMODE_TIME_1: usize = 0x84;
/// Where a channel's [`SubmitToken`] is written to say that it has work.
pub const USERMODE_NOTIFY_CHANNEL_PENDING: usize = 0x90;

/// What a [`SubmitToken`] is made of.
///
/// The resource manager answers whole tokens; this is for those who talk to the GPU itself.
#[bitfield(u32, defmt = cfg(feature = "defmt"))]
#[derive(Eq, PartialEq)]
pub struct WorkSubmitToken {
    /// The channel's number in its runlist.
    #[bits(12, access = RO)]
    pub channel_id: u16,
    #[bits(4)]
    __: u8,
    /// The runlist.
    #[bits(7, access = RO)]
    pub runlist_id: u8,
    #[bits(7)]
    __: u8,
    /// Whether the doorbell is that of the runlist (GB20x).
    #[bits(access = RO)]
    pub runlist_doorbell_enable: bool,
    __: bool,
}

impl From<SubmitToken> for WorkSubmitToken {
    fn from(token: SubmitToken) -> Self {
        Self::from_bits(token.0)
    }
}

impl From<WorkSubmitToken> for SubmitToken {
    fn from(token: WorkSubmitToken) -> Self {
        Self(token.into_bits())
    }
}

impl WorkSubmitToken {
    /// The token of a channel of a runlist.
    ///
    /// # Errors
    /// When a number is wider than its field.
    pub fn of(
        channel_id: u16,
        runlist_id: u8,
        runlist_doorbell: bool,
    ) -> Result<Self, crate::EncodeError> {
        let wide = |field, width, value: u16| crate::EncodeError::FieldOverflow {
            field,
            width,
            value: value.into(),
        };
        if channel_id > 0xfff {
            return Err(wide("channel_id of the work submit token", 12, channel_id));
        }
        if runlist_id > 0x7f {
            return Err(wide(
                "runlist_id of the work submit token",
                7,
                runlist_id.into(),
            ));
        }
        let bits = u32::from(channel_id)
            | (u32::from(runlist_id) << 16)
            | (u32::from(runlist_doorbell) << 30);
        Ok(Self::from_bits(bits))
    }
}
