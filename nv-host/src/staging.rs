//! Copies between pageable host memory and the GPU, through two pinned buffers in turn.

use std::sync::{Arc, Weak};

use nv_proto::unit::GpuVa;

use crate::Error;
use crate::context::ContextInner;
use crate::memory::{Allocation, Placement, Use};
use crate::stream::StreamInner;

/// Bytes of one of the two buffers: the copy engine is busy with one while the CPU fills the other.
const HALF: usize = 4 << 20;

/// Pinned memory that copies go through.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Allocation,
    /// The copy that last used each half, until it is known to have ended: one that ran out of time still reads or
    /// writes there.
    in_flight: [Option<(Weak<StreamInner>, u64)>; 2],
}

impl Staging {
    pub(crate) fn new(context: &ContextInner) -> Result<Self, Error> {
        Ok(Self {
            memory: context.allocate(2 * HALF as u64, Placement::Pinned, Use::Staging)?,
            in_flight: [None, None],
        })
    }

    /// Waits until no copy uses a half.
    fn settle(&mut self, context: &ContextInner, half: usize) -> Result<(), Error> {
        if let Some((stream, value)) = &self.in_flight[half]
            && let Some(stream) = stream.upgrade()
            && !stream.is_over(*value)
        {
            match stream.wait(context, *value, context.limit()) {
                // What a fault ended uses nothing any more; the next copy meets it if it is on the same stream.
                Ok(()) | Err(Error::Fault(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.in_flight[half] = None;
        Ok(())
    }

    /// Submits a copy from or to a half.
    fn copy(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        half: usize,
        (target, source): (GpuVa, GpuVa),
        bytes: usize,
    ) -> Result<u64, Error> {
        let copied = stream.copy(context, target, source, bytes as u64);
        // Where it failed, a part of it may have been submitted.
        let value = *copied.as_ref().unwrap_or(&stream.submitted());
        self.in_flight[half] = Some((Arc::downgrade(stream), value));
        copied
    }

    /// The GPU's address of a half.
    fn half_va(&self, half: usize) -> GpuVa {
        GpuVa(self.memory.va().0 + (half * HALF) as u64)
    }

    /// Copies `bytes` to `va` and waits until they are there.
    pub(crate) fn upload(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mut last = 0;
        for (i, chunk) in bytes.chunks(HALF).enumerate() {
            let half = i % 2;
            self.settle(context, half)?;
            self.memory.mapping()?.write(half * HALF, chunk)?;
            let target = GpuVa(va.0 + (i * HALF) as u64);
            let way = (target, self.half_va(half));
            last = self.copy(context, stream, half, way, chunk.len())?;
        }
        stream.wait(context, last, context.limit())
    }

    /// Copies from `va` until `bytes` is full.
    pub(crate) fn download(
        &mut self,
        context: &ContextInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let total = bytes.len();
        let length = |i: usize| HALF.min(total.saturating_sub(i * HALF));
        let submit = |staging: &mut Self, i: usize| {
            let half = i % 2;
            staging.settle(context, half)?;
            let way = (staging.half_va(half), GpuVa(va.0 + (i * HALF) as u64));
            staging.copy(context, stream, half, way, length(i))
        };
        let mut next = if total > 0 { submit(self, 0)? } else { 0 };
        for (i, chunk) in bytes.chunks_mut(HALF).enumerate() {
            let ready = next;
            if length(i + 1) > 0 {
                next = submit(self, i + 1)?;
            }
            stream.wait(context, ready, context.limit())?;
            self.memory.mapping()?.read(i % 2 * HALF, chunk)?;
        }
        Ok(())
    }
}
