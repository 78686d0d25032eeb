//! Whole copies and fills: the packets that one takes.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::{
    LaunchDma, LineCount, LineLengthIn, OffsetOut, Offsets, OneToFour, Pitches, RemapSource,
    SetRemapComponents, SetRemapConst, VA_UPPER_BITS,
};
use crate::push::header::Subchannel;
use crate::push::writer::PushWriter;

/// Copies `lines` lines of `bytes` bytes between memory of different pitches.
///
/// # Errors
/// When an address has more than 49 bits, or the packets do not fit the buffer. Nothing is written then.
pub fn lines(
    push: &mut PushWriter<'_>,
    subchannel: Subchannel,
    offsets: Offsets,
    pitches: Pitches,
    bytes: u32,
    lines: u32,
) -> Result<(), EncodeError> {
    let begin = push.len();
    let mut packets = || {
        push.write(subchannel, &offsets)?;
        push.join(subchannel, &pitches)?;
        push.join(subchannel, &LineLengthIn(bytes))?;
        push.join(subchannel, &LineCount(lines))?;
        push.write(
            subchannel,
            &LaunchDma {
                multi_line_enable: true,
                ..LaunchDma::linear()
            },
        )
    };
    let done = packets();
    if done.is_err() {
        push.truncate(begin);
    }
    done
}

/// The most bytes that [`linear`] lets one launch copy.
pub const LINEAR_STEP: u32 = 0x8000_0000;

/// Copies `bytes` bytes, in as many launches as it takes; the semaphore is the caller's.
///
/// # Errors
/// When an address has more than 49 bits, or the packets do not fit the buffer. Nothing is written then.
pub fn linear(
    push: &mut PushWriter<'_>,
    subchannel: Subchannel,
    dst: GpuVa,
    src: GpuVa,
    bytes: u64,
) -> Result<(), EncodeError> {
    let begin = push.len();
    let step = u64::from(LINEAR_STEP);
    let mut done = 0_u64;
    // Each round writes words, so a full buffer ends the loop at the latest.
    while done < bytes {
        let length = bytes.saturating_sub(done).min(step);
        let packets = past_end(src, done).and_then(|src| {
            push.write(
                subchannel,
                &Offsets {
                    src,
                    dst: past_end(dst, done)?,
                },
            )?;
            let length = u32::try_from(length).unwrap_or(LINEAR_STEP);
            push.write(subchannel, &LineLengthIn(length))?;
            push.write(subchannel, &LaunchDma::linear())
        });
        if let Err(error) = packets {
            push.truncate(begin);
            return Err(error);
        }
        done = done.saturating_add(length);
    }
    Ok(())
}

/// Sets `count` 32-bit words to `value`.
///
/// # Errors
/// When the address has more than 49 bits, or the packets do not fit the buffer. Nothing is written then.
pub fn fill(
    push: &mut PushWriter<'_>,
    subchannel: Subchannel,
    dst: GpuVa,
    value: u32,
    count: u32,
) -> Result<(), EncodeError> {
    let begin = push.len();
    let mut packets = || {
        push.write(subchannel, &SetRemapConst { a: value, b: 0 })?;
        push.join(
            subchannel,
            &SetRemapComponents {
                dst_x: RemapSource::ConstA,
                component_size: OneToFour::Four,
                ..SetRemapComponents::default()
            },
        )?;
        push.write(subchannel, &OffsetOut { dst })?;
        push.write(subchannel, &LineLengthIn(count))?;
        push.write(
            subchannel,
            &LaunchDma {
                remap_enable: true,
                ..LaunchDma::linear()
            },
        )
    };
    let done = packets();
    if done.is_err() {
        push.truncate(begin);
    }
    done
}

fn past_end(va: GpuVa, bytes: u64) -> Result<GpuVa, EncodeError> {
    va.checked_add(bytes).ok_or(EncodeError::FieldOverflow {
        field: "OFFSET_IN_UPPER_UPPER (of the end of the copy)",
        width: VA_UPPER_BITS as u32,
        value: va.0,
    })
}
