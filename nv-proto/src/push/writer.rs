//! From methods to words.

use crate::error::EncodeError;

use super::header::{Header, MethodAddr, RunOp, Subchannel};

/// A method, or a run of `N` methods at consecutive addresses, that takes effect as one.
pub trait Method<const N: usize> {
    /// The first method's address.
    const ADDR: MethodAddr;

    /// The data words.
    ///
    /// # Errors
    /// When a value does not fit its field.
    fn data(&self) -> Result<[u32; N], EncodeError>;
}

/// Writes packets into a buffer of words.
///
/// A write that fails leaves the buffer's used part as it was.
#[derive(Debug)]
pub struct PushWriter<'a> {
    words: &'a mut [u32],
    used: usize,
    /// The incrementing run that was written last, if it can be added to.
    open: Option<OpenRun>,
}

logged!(
    PushWriter<'_>,
    writer,
    "{=usize} of {=usize} words written",
    writer.used,
    writer.words.len()
);

#[derive(Clone, Copy, Debug)]
struct OpenRun {
    header: usize,
    subchannel: Subchannel,
    method: MethodAddr,
    count: u16,
}

impl<'a> PushWriter<'a> {
    /// A writer at the start of `words`.
    #[must_use]
    pub const fn new(words: &'a mut [u32]) -> Self {
        Self {
            words,
            used: 0,
            open: None,
        }
    }

    /// Writes one typed method, or run of methods, under a header of its own.
    ///
    /// # Errors
    /// When a value does not fit its field, or the words do not fit the buffer.
    #[inline]
    pub fn write<const N: usize, M: Method<N>>(
        &mut self,
        subchannel: Subchannel,
        method: &M,
    ) -> Result<(), EncodeError> {
        self.run(RunOp::Inc, subchannel, M::ADDR, &method.data()?)
    }

    /// Writes one typed method, or run of methods, and lets it join the header before it when its address
    /// follows on.
    ///
    /// # Errors
    /// As [`PushWriter::write`].
    #[inline]
    pub fn join<const N: usize, M: Method<N>>(
        &mut self,
        subchannel: Subchannel,
        method: &M,
    ) -> Result<(), EncodeError> {
        let data = method.data()?;
        if let Some(open) = self.open
            && open.subchannel == subchannel
            && open.method.checked_add(open.count) == Some(M::ADDR)
            && let Some(count) = u16::try_from(N)
                .ok()
                .and_then(|n| open.count.checked_add(n))
            && let Ok(header) = (Header::Run {
                op: RunOp::Inc,
                subchannel,
                method: open.method,
                count,
            })
            .encode()
        {
            self.put(&[], &data)?;
            if let Some(word) = self.words.get_mut(open.header) {
                *word = header;
            }
            self.open = Some(OpenRun { count, ..open });
            return Ok(());
        }
        self.run(RunOp::Inc, subchannel, M::ADDR, &data)
    }

    /// Writes one method whose data fits 13 bits into a single word.
    ///
    /// # Errors
    /// When the data has more than 13 bits, or the buffer is full.
    #[inline]
    pub fn immediate(
        &mut self,
        subchannel: Subchannel,
        method: MethodAddr,
        data: u16,
    ) -> Result<(), EncodeError> {
        self.header(&Header::Immediate {
            subchannel,
            method,
            data,
        })
    }

    /// Writes raw data words under a header of `op`.
    ///
    /// # Errors
    /// When there are more words than one header can announce, the run reaches past the last method, or the
    /// buffer is full.
    #[inline]
    pub fn run(
        &mut self,
        op: RunOp,
        subchannel: Subchannel,
        method: MethodAddr,
        data: &[u32],
    ) -> Result<(), EncodeError> {
        let count = u16::try_from(data.len()).map_err(|_| EncodeError::FieldOverflow {
            field: "DMA_METHOD_COUNT",
            width: op.max_count().count_ones(),
            value: u64::try_from(data.len()).unwrap_or(u64::MAX),
        })?;
        let header = Header::Run {
            op,
            subchannel,
            method,
            count,
        }
        .encode()?;
        let at = self.used;
        self.put(&[header], data)?;
        self.open = (op == RunOp::Inc).then_some(OpenRun {
            header: at,
            subchannel,
            method,
            count,
        });
        Ok(())
    }

    /// Writes a header that announces no data, such as [`Header::NOP`] or [`Header::EndPbSegment`].
    ///
    /// # Errors
    /// When the header's fields do not fit, it announces data ([`PushWriter::run`] is for those), or the
    /// buffer is full.
    #[inline]
    pub fn header(&mut self, header: &Header) -> Result<(), EncodeError> {
        if header.count() != 0 {
            return Err(EncodeError::Unsupported {
                what: "a header that announces data words, without them",
                value: u64::from(header.count()),
            });
        }
        self.put(&[header.encode()?], &[])?;
        self.open = None;
        Ok(())
    }

    /// How many words are written.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether nothing is written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// How many words there is still room for.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.words.len().saturating_sub(self.used)
    }

    /// The words written so far.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        self.words.get(..self.used).unwrap_or_default()
    }

    /// Ends writing: the words written.
    #[must_use]
    pub fn finish(self) -> &'a [u32] {
        self.words.get(..self.used).unwrap_or_default()
    }

    /// Forgets all that was written after the first `len` words; `len` past the end forgets nothing.
    pub fn truncate(&mut self, len: usize) {
        self.used = self.used.min(len);
        self.open = None;
    }

    #[inline]
    fn put(&mut self, header: &[u32], data: &[u32]) -> Result<(), EncodeError> {
        let needed = header.len().saturating_add(data.len());
        let available = self.remaining();
        let full = EncodeError::BufferTooSmall { needed, available };
        let free = self.words.get_mut(self.used..).ok_or(full)?;
        let (first, rest) = free.split_at_mut_checked(header.len()).ok_or(full)?;
        let rest = rest.get_mut(..data.len()).ok_or(full)?;
        first.copy_from_slice(header);
        rest.copy_from_slice(data);
        self.used = self.used.saturating_add(needed);
        Ok(())
    }
}
