//! From words to methods.

use core::iter::FusedIterator;

use crate::error::DecodeError;

use super::header::{Header, MethodAddr, RunOp, Subchannel};

/// One header and the data words that it announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Packet<'a> {
    /// Where the header is, in words from the start.
    pub offset: usize,
    /// The header.
    pub header: Header,
    /// Its data words: as many as [`Header::count`] says.
    pub data: &'a [u32],
}

impl<'a> Packet<'a> {
    /// What the packet writes, method by method: nothing for headers that are about no method.
    #[must_use]
    #[inline]
    pub fn writes(&self) -> Writes<'a> {
        let (op, subchannel, method, data, immediate, offset) = match self.header {
            Header::Run {
                op,
                subchannel,
                method,
                ..
            } => {
                let first = self.offset.saturating_add(1);
                (Some(op), subchannel, method, self.data, None, first)
            }
            Header::Immediate {
                subchannel,
                method,
                data,
            } => (
                None,
                subchannel,
                method,
                &[][..],
                Some(u32::from(data)),
                self.offset,
            ),
            _ => (
                None,
                Subchannel::HOST,
                MethodAddr::default(),
                &[][..],
                None,
                self.offset,
            ),
        };
        let (step, later_step) = match op {
            Some(RunOp::Inc | RunOp::Grp0Inc) => (1, 1),
            Some(RunOp::OneInc) => (1, 0),
            Some(RunOp::NonInc | RunOp::Grp2NonInc) | None => (0, 0),
        };
        Writes {
            next: MethodWrite {
                offset,
                op,
                subchannel,
                method,
                data: 0,
            },
            step,
            later_step,
            immediate,
            data: data.iter(),
        }
    }
}

/// One data word that goes to one method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodWrite {
    /// Where the data word is, in words from the start; the header itself where that holds the data.
    pub offset: usize,
    /// How it was written; `None` for an immediate.
    pub op: Option<RunOp>,
    /// For which object.
    pub subchannel: Subchannel,
    /// The method.
    pub method: MethodAddr,
    /// The data.
    pub data: u32,
}

/// Iterates over the packets of a pushbuffer segment. Any words do: it never panics, and it ends after the
/// first error, after `END_PB_SEGMENT` and at the end of the words.
#[derive(Clone, Debug)]
pub struct PushReader<'a> {
    words: &'a [u32],
    offset: usize,
    ended: bool,
}

logged!(
    PushReader<'_>,
    reader,
    "word {=usize} of {=usize}",
    reader.offset,
    reader.words.len()
);

impl<'a> PushReader<'a> {
    /// A reader of `words`.
    #[must_use]
    pub const fn new(words: &'a [u32]) -> Self {
        Self {
            words,
            offset: 0,
            ended: false,
        }
    }

    /// Where it is, in words from the start: after the packet read last.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The methods written, one data word at a time.
    #[must_use]
    pub fn writes(self) -> MethodWrites<'a> {
        MethodWrites {
            packets: self,
            current: None,
        }
    }

    #[inline]
    fn packet(&mut self, word: u32, rest: &'a [u32]) -> Result<Packet<'a>, DecodeError> {
        let offset = self.offset;
        let header = Header::decode(word, offset.saturating_mul(4))?;
        let count = usize::from(header.count());
        let (data, rest) = rest
            .split_at_checked(count)
            .ok_or_else(|| DecodeError::Truncated {
                what: "data words of a method header",
                offset: offset.saturating_mul(4),
                needed: count.saturating_mul(4),
                available: rest.len().saturating_mul(4),
            })?;
        self.words = rest;
        self.offset = offset.saturating_add(1).saturating_add(count);
        self.ended = header == Header::EndPbSegment;
        Ok(Packet {
            offset,
            header,
            data,
        })
    }
}

impl<'a> Iterator for PushReader<'a> {
    type Item = Result<Packet<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let (&word, rest) = self.words.split_first()?;
        let packet = self.packet(word, rest);
        self.ended |= packet.is_err();
        Some(packet)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(if self.ended { 0 } else { self.words.len() }))
    }
}

impl FusedIterator for PushReader<'_> {}

/// Iterates over what one packet writes; made by [`Packet::writes`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Writes<'a> {
    /// The next one, but for its data.
    next: MethodWrite,
    /// By how many methods the one after it is further on.
    step: u16,
    /// By how many those after that are.
    later_step: u16,
    immediate: Option<u32>,
    data: core::slice::Iter<'a, u32>,
}

impl Iterator for Writes<'_> {
    type Item = MethodWrite;

    #[inline]
    fn next(&mut self) -> Option<MethodWrite> {
        let data = match self.data.next() {
            Some(&data) => data,
            None => self.immediate.take()?,
        };
        let write = MethodWrite { data, ..self.next };
        self.next.offset = self.next.offset.wrapping_add(1);
        // A header that decoded runs past no end; one made by hand goes round as its 12 bits do.
        self.next.method = self.next.method.wrapping_add(self.step);
        self.step = self.later_step;
        Some(write)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self
            .data
            .len()
            .saturating_add(usize::from(self.immediate.is_some()));
        (left, Some(left))
    }
}

impl ExactSizeIterator for Writes<'_> {}
impl FusedIterator for Writes<'_> {}

/// Iterates over what a whole segment writes; made by [`PushReader::writes`].
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodWrites<'a> {
    packets: PushReader<'a>,
    current: Option<Writes<'a>>,
}

impl Iterator for MethodWrites<'_> {
    type Item = Result<MethodWrite, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Each round either answers or takes a packet, of which there are fewer than words.
        loop {
            if let Some(write) = self.current.as_mut().and_then(Iterator::next) {
                return Some(Ok(write));
            }
            match self.packets.next()? {
                Ok(packet) => self.current = Some(packet.writes()),
                Err(error) => {
                    self.current = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl FusedIterator for MethodWrites<'_> {}
