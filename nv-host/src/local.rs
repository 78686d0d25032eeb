//! Local memory: what threads keep that does not fit their registers.

use std::sync::Arc;

use crate::Error;
use crate::context::ContextInner;
use crate::memory::{Allocation, Placement, Use};

/// Local memory set up for every thread that can run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalMemory {
    /// Bytes for each thread.
    pub(crate) per_thread: u32,
    /// Bytes for each texture processing cluster.
    pub(crate) per_tpc: u64,
    /// The memory; none while no kernel needed any.
    pub(crate) memory: Option<Arc<Allocation>>,
}

impl LocalMemory {
    /// The unit of local memory per thread in bytes.
    const THREAD_UNIT: u32 = 32;
    /// The unit of a warp's local memory in bytes.
    const WARP_UNIT: u64 = 0x200;
    /// The unit of a texture processing cluster's local memory in bytes.
    const TPC_UNIT: u64 = 0x8000;
    /// The unit of the whole in bytes.
    const UNIT: u64 = 0x2_0000;

    /// What `per_thread` bytes for each thread are rounded up to.
    pub(crate) fn rounded(per_thread: u32) -> u32 {
        per_thread
            .checked_next_multiple_of(Self::THREAD_UNIT)
            .unwrap_or(u32::MAX)
    }

    /// The vendor library sets up 0x640 bytes a thread as 0x640000 a cluster on an H200 (measured): 32 lanes,
    /// 64 warps, 2 multiprocessors.
    pub(crate) fn new(context: &ContextInner, per_thread: u32) -> Result<Self, Error> {
        let info = context.info();
        // What a thread needs is the file's word, and may be anything.
        let sizes = || {
            let per_thread = per_thread.checked_next_multiple_of(Self::THREAD_UNIT)?;
            let per_warp = (u64::from(per_thread) * 32).next_multiple_of(Self::WARP_UNIT);
            let per_tpc = per_warp
                .checked_mul(info.warps_per_sm.into())?
                .checked_mul(info.sm_per_tpc.into())?
                .checked_next_multiple_of(Self::TPC_UNIT)?;
            let bytes = per_tpc
                .checked_mul(info.tpc_slots.into())?
                .checked_next_multiple_of(Self::UNIT)?;
            Some((per_thread, per_tpc, bytes))
        };
        let (per_thread, per_tpc, bytes) = sizes().ok_or(Error::OutOfMemory {
            what: "local memory for each thread",
            bytes: per_thread.into(),
        })?;
        let memory = context.allocate(bytes, Placement::Device, Use::Local)?;
        Ok(Self {
            per_thread,
            per_tpc,
            memory: Some(Arc::new(memory)),
        })
    }
}
