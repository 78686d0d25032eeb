//! Methods changed in place: a segment is written once, and what differs from one submission to the next is patched.

use core::fmt;
use core::marker::PhantomData;

use crate::error::EncodeError;

use super::Subchannel;
use super::header::{Header, RunOp};
use super::writer::{Method, PushWriter};

/// Where a segment holds a method of type `M`; made by [`PushWriter::place`].
///
/// ```
/// use nv_proto::push::host::SemRelease;
/// use nv_proto::push::{PushWriter, Subchannel};
/// use nv_proto::unit::GpuVa;
///
/// let mut words = [0; 16];
/// let mut push = PushWriter::new(&mut words);
/// let release = SemRelease { at: GpuVa(0x1000), value: 1, wfi: true, timestamp: false };
/// let signal = push.place(Subchannel::HOST, &release)?;
/// let length = push.len();
/// // Later, and as often as need be:
/// signal.patch(&mut words[..length], &SemRelease { value: 2, ..release })?;
/// # Ok::<(), nv_proto::EncodeError>(())
/// ```
pub struct Place<M> {
    /// Where its header is, in words from the start of the segment.
    header: usize,
    of: PhantomData<fn() -> M>,
}

impl<M> Place<M> {
    /// Where the method's data begins, in words from the start of the segment.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.header.saturating_add(1)
    }

    /// Changes the method's data; its header stays.
    ///
    /// # Errors
    /// When a value does not fit its field, the words are too few, or they do not hold the method there: they are
    /// another segment's. Nothing is written then.
    #[inline]
    pub fn patch<const N: usize>(&self, words: &mut [u32], method: &M) -> Result<(), EncodeError>
    where
        M: Method<N>,
    {
        let data = method.data()?;
        let available = words.len();
        let needed = self.offset().saturating_add(N);
        let Some([header, place @ ..]) = words.get_mut(self.header..needed) else {
            return Err(EncodeError::BufferTooSmall { needed, available });
        };
        match Header::decode(*header, self.header) {
            // `join` may have made the run longer.
            Ok(Header::Run {
                op: RunOp::Inc,
                method,
                count,
                ..
            }) if method == M::ADDR && usize::from(count) >= N => {
                place.copy_from_slice(&data);
                Ok(())
            }
            _ => Err(EncodeError::Unsupported {
                what: "a patch of words that do not hold the method",
                value: (*header).into(),
            }),
        }
    }
}

// By hand: a place is as free to copy as its number, whatever `M` is.
impl<M> Clone for Place<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Place<M> {}

impl<M> fmt::Debug for Place<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({})", self.header)
    }
}

#[cfg(feature = "defmt")]
impl<M> defmt::Format for Place<M> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "place {=usize}", self.header);
    }
}

impl PushWriter<'_> {
    /// Writes one typed method, or run of methods, under a header of its own, and answers where it is.
    ///
    /// # Errors
    /// As [`PushWriter::write`].
    #[inline]
    pub fn place<const N: usize, M: Method<N>>(
        &mut self,
        subchannel: Subchannel,
        method: &M,
    ) -> Result<Place<M>, EncodeError> {
        let header = self.len();
        self.write(subchannel, method)?;
        Ok(Place {
            header,
            of: PhantomData,
        })
    }
}
