//! Copies between pageable host memory and the GPU, through two pinned buffers in turn.

use std::sync::Arc;

use nv_proto::unit::GpuVa;

use crate::Error;
use crate::device::DeviceInner;
use crate::memory::{Allocation, Placement};
use crate::stream::StreamInner;

/// Bytes of one of the two buffers: the copy engine is busy with one while the CPU fills the other.
const HALF: usize = 4 << 20;

/// Pinned memory that copies go through.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Allocation,
}

impl Staging {
    pub(crate) fn new(device: &DeviceInner) -> Result<Self, Error> {
        Ok(Self {
            memory: device.allocate(2 * HALF as u64, Placement::Pinned)?,
        })
    }

    /// Copies `bytes` to `va` and waits until they are there.
    pub(crate) fn upload(
        &mut self,
        device: &DeviceInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let mapping = self.memory.mapping()?;
        let mut in_flight = [0; 2];
        for (i, chunk) in bytes.chunks(HALF).enumerate() {
            let half = i % 2;
            stream.wait(device, in_flight[half], device.limit())?;
            mapping.write(half * HALF, chunk)?;
            let source = GpuVa(self.memory.va().0 + (half * HALF) as u64);
            let target = GpuVa(va.0 + (i * HALF) as u64);
            in_flight[half] = stream.copy(device, target, source, chunk.len() as u64)?;
        }
        stream.wait(device, in_flight[0].max(in_flight[1]), device.limit())
    }

    /// Copies from `va` until `bytes` is full.
    pub(crate) fn download(
        &mut self,
        device: &DeviceInner,
        stream: &Arc<StreamInner>,
        va: GpuVa,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let mapping = self.memory.mapping()?;
        let submit = |i: usize, length: usize| {
            let source = GpuVa(va.0 + (i * HALF) as u64);
            let target = GpuVa(self.memory.va().0 + (i % 2 * HALF) as u64);
            stream.copy(device, target, source, length as u64)
        };
        let total = bytes.len();
        let length = |i: usize| HALF.min(total.saturating_sub(i * HALF));
        let mut next = if total > 0 { submit(0, length(0))? } else { 0 };
        for (i, chunk) in bytes.chunks_mut(HALF).enumerate() {
            let ready = next;
            if length(i + 1) > 0 {
                next = submit(i + 1, length(i + 1))?;
            }
            stream.wait(device, ready, device.limit())?;
            mapping.read(i % 2 * HALF, chunk)?;
        }
        Ok(())
    }
}
