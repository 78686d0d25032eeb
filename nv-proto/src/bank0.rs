//! Constant bank 0: what the driver puts before a kernel's parameters, by generation.
//!
//! Compiled kernels read their block and grid sizes, the windows and much else from fixed places in this
//! bank; where a place is not written they read 0 and compute wrong results. No header lists the places: they
//! were read off the code that the compiler makes for each special register, and those of `sm_90` were also
//! seen in what the vendor library writes on an H200.
//!
//! | | `sm_75` to `sm_89` | `sm_90` | `sm_100` on |
//! |---|---|---|---|
//! | block, grid | 0x0, 0xc | 0x0, 0xc | 0x360, 0x370 |
//! | shared, local window | 0x18, 0x20 | 0x18, 0x20 | 0x2f0, 0x2f8 |
//! | stack top | 0x28 | 0x28 | 0x37c |
//! | grid id | 0x30 | 0x30 | 0x140 |
//! | SM count | 0x10c | 0x10c | 0x2d0 |
//! | reserved shared bytes | 0x114 (`sm_80` on) | 0x114 | 0x16c |
//! | dynamic, total shared bytes | 0x2c, none | 0x2c, 0x13c | record + 0x5c, + 0x6c |
//! | grid workspace, high and low half | 0x8c, 0x90 | 0x44, 0x48 | record + 0x4, + 0x8 |
//! | cluster, reciprocals, grid in clusters, blocks | none | 0x144, 0x150, 0x15c, 0x188 | record + 0x50, + 0x60, + 0x70, + 0x7c |
//! | cooperative, explicit cluster | none | 0x110, 0x140 | none, 0x36c |
//! | parameters from | 0x160 | 0x210 | 0x380 |
//!
//! From `sm_100` on a kernel finds the record by a special register: it is at 0x250 less 0xa0 times `SR_CgaSize`.
//! What that register holds without clusters was not seen, so the record is written at 0x250 and 0x1b0.

use crate::error::DecodeError;
use crate::unit::{Dim3, GpuVa, SmVersion};

/// Bytes of the longest prefix.
pub const MAX_PREFIX: usize = 0x380;

/// What the stack pointer of a thread starts at, in local memory. The 0x240 bytes above it, up to the end of
/// the 16 MiB that a thread can address, belong to the driver; the vendor library adds them to each kernel's
/// stack, too.
pub const STACK_TOP: u32 = 0x00ff_fdc0;

/// Local memory above [`STACK_TOP`].
pub const STACK_RESERVE: u32 = 0x0100_0000 - STACK_TOP;

/// Where a generation's compiled code looks for what.
#[derive(Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Layout {
    /// Block x, y, z.
    block: u16,
    /// Grid x, y, z, in blocks.
    grid: u16,
    shared_window: u16,
    local_window: u16,
    stack_top: u16,
    grid_id: u16,
    sm_count: u16,
    reserved_shared: Option<u16>,
    explicit_cluster: Option<u16>,
    cooperative: Option<u16>,
    /// What is there once or, from `sm_100` on, once for each value that `SR_CgaSize` may have.
    records: &'static [Record],
    prefix: u16,
}

#[derive(Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Record {
    dynamic_shared: u16,
    total_shared: Option<u16>,
    workspace_hi: u16,
    workspace_lo: u16,
    cluster: Option<ClusterRows>,
}

#[derive(Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct ClusterRows {
    extent: u16,
    reciprocal: u16,
    grid: u16,
    blocks: u16,
}

/// What is written before a kernel's parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Prefix {
    /// Threads of a block.
    pub block: Dim3,
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Base of the generic window on shared memory.
    pub shared_window: GpuVa,
    /// Base of the generic window on local memory.
    pub local_window: GpuVa,
    /// A number of the launch (`%gridid`).
    pub grid_id: u64,
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Bytes of shared memory that the system keeps in each block.
    pub reserved_shared: u32,
    /// Bytes of shared memory that the launch adds.
    pub dynamic_shared: u32,
    /// Bytes of shared memory altogether.
    pub total_shared: u32,
    /// Blocks of a cluster; `None` without clusters.
    pub cluster: Option<Dim3>,
    /// Where the blocks of a cooperative grid meet: 16 bytes of memory.
    pub cooperative: Option<GpuVa>,
}

impl Layout {
    /// The layout of a generation; `None` for one that is not known here.
    #[must_use]
    pub const fn of(sm: SmVersion) -> Option<&'static Self> {
        match sm.0 {
            75 => Some(&SM75),
            80..=89 => Some(&SM80),
            90 => Some(&SM90),
            100..=129 => Some(&SM100),
            _ => None,
        }
    }

    /// How many bytes the driver writes; parameters begin here, or further on.
    #[must_use]
    pub const fn prefix(&self) -> u16 {
        self.prefix
    }

    /// Writes all of `prefix` at the start of `out`, the first [`Layout::prefix`] bytes of the bank. Bytes of
    /// no meaning become 0; what does not fit into a shorter `out` is left out.
    pub fn write(&self, prefix: &Prefix, out: &mut [u8]) {
        let length = usize::from(self.prefix).min(out.len());
        if let Some(out) = out.get_mut(..length) {
            out.fill(0);
        }
        put_u64(out, self.shared_window, prefix.shared_window.0);
        put_u64(out, self.local_window, prefix.local_window.0);
        put(out, self.stack_top, STACK_TOP);
        put(out, self.sm_count, prefix.sm_count);
        put_some(out, self.reserved_shared, prefix.reserved_shared);
        self.write_shape(prefix, out);
        self.write_grid(prefix.grid, prefix.cluster, out);
        put_u64(out, self.grid_id, prefix.grid_id);
    }

    /// Writes what the block and its clusters decide.
    pub(crate) fn write_shape(&self, prefix: &Prefix, out: &mut [u8]) {
        put3(out, self.block, prefix.block);
        put_some(
            out,
            self.explicit_cluster,
            u32::from(prefix.cluster.is_some()),
        );
        put_some(
            out,
            self.cooperative,
            u32::from(prefix.cooperative.is_some()),
        );
        let extent = prefix.cluster.unwrap_or(Dim3::ONE);
        let workspace = prefix.cooperative.unwrap_or(GpuVa(0));
        for record in self.records {
            put(out, record.dynamic_shared, prefix.dynamic_shared);
            put_some(out, record.total_shared, prefix.total_shared);
            put(out, record.workspace_hi, workspace.hi());
            put(out, record.workspace_lo, workspace.lo());
            if let Some(rows) = &record.cluster {
                put3(out, rows.extent, extent);
                let reciprocal = |n| reciprocal(n).to_bits();
                let reciprocals = Dim3::new(
                    reciprocal(extent.x),
                    reciprocal(extent.y),
                    reciprocal(extent.z),
                );
                put3(out, rows.reciprocal, reciprocals);
                put(
                    out,
                    rows.blocks,
                    u32::try_from(extent.count()).unwrap_or(u32::MAX),
                );
            }
        }
    }

    /// Writes the grid: blocks, and clusters where the generation has them.
    #[inline]
    pub(crate) fn write_grid(&self, grid: Dim3, cluster: Option<Dim3>, out: &mut [u8]) {
        put3(out, self.grid, grid);
        let clusters = match cluster {
            None => grid,
            Some(cluster) => in_clusters(grid, cluster),
        };
        for record in self.records {
            if let Some(rows) = &record.cluster {
                put3(out, rows.grid, clusters);
            }
        }
    }

    /// Writes the launch's number.
    #[inline]
    pub(crate) fn write_grid_id(&self, id: u64, out: &mut [u8]) {
        put_u64(out, self.grid_id, id);
    }

    /// Reads a bank back. What the generation has no place for is 0 or `None`.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] when `bytes` are fewer than [`Layout::prefix`].
    pub fn read(&self, bytes: &[u8]) -> Result<Prefix, DecodeError> {
        let prefix = usize::from(self.prefix);
        let bytes = bytes.get(..prefix).ok_or(DecodeError::Truncated {
            what: "constant bank 0",
            offset: 0,
            needed: prefix,
            available: bytes.len(),
        })?;
        let some = |offset: Option<u16>| offset.map_or(0, |offset| get(bytes, offset));
        let record = self.records.first();
        let rows = record.and_then(|record| record.cluster.as_ref());
        let clustered = some(self.explicit_cluster) != 0;
        let workspace = record.map_or(0, |record| {
            u64::from(get(bytes, record.workspace_hi)) << 32
                | u64::from(get(bytes, record.workspace_lo))
        });
        // Later launches of the vendor library keep the workspace in its place: the flag decides, where
        // there is one.
        let cooperative = match self.cooperative {
            Some(offset) => get(bytes, offset) != 0,
            None => workspace != 0,
        };
        Ok(Prefix {
            block: get3(bytes, self.block),
            grid: get3(bytes, self.grid),
            shared_window: GpuVa(get_u64(bytes, self.shared_window)),
            local_window: GpuVa(get_u64(bytes, self.local_window)),
            grid_id: get_u64(bytes, self.grid_id),
            sm_count: get(bytes, self.sm_count),
            reserved_shared: some(self.reserved_shared),
            dynamic_shared: record.map_or(0, |record| get(bytes, record.dynamic_shared)),
            total_shared: some(record.and_then(|record| record.total_shared)),
            cluster: rows
                .filter(|_| clustered)
                .map(|rows| get3(bytes, rows.extent)),
            cooperative: cooperative.then_some(GpuVa(workspace)),
        })
    }
}

/// The grid in clusters, rounded down.
#[inline]
pub(crate) const fn in_clusters(grid: Dim3, cluster: Dim3) -> Dim3 {
    const fn div(a: u32, b: u32) -> u32 {
        match a.checked_div(b) {
            Some(whole) => whole,
            None => 0,
        }
    }
    Dim3 {
        x: div(grid.x, cluster.x),
        y: div(grid.y, cluster.y),
        z: div(grid.z, cluster.z),
    }
}

/// 1 / `n` as compiled code expects it; a cluster's extents are small, so the number is near enough to divide
/// by.
fn reciprocal(n: u32) -> f32 {
    1.0 / f32::from(u16::try_from(n).unwrap_or(u16::MAX).max(1))
}

#[inline]
fn put(out: &mut [u8], offset: u16, value: u32) {
    let offset = usize::from(offset);
    if let Some(place) = out.get_mut(offset..offset.saturating_add(4)) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

fn put_some(out: &mut [u8], offset: Option<u16>, value: u32) {
    if let Some(offset) = offset {
        put(out, offset, value);
    }
}

#[inline]
fn put_u64(out: &mut [u8], offset: u16, value: u64) {
    let offset = usize::from(offset);
    if let Some(place) = out.get_mut(offset..offset.saturating_add(8)) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

#[inline]
fn put3(out: &mut [u8], offset: u16, value: Dim3) {
    put(out, offset, value.x);
    put(out, offset.saturating_add(4), value.y);
    put(out, offset.saturating_add(8), value.z);
}

fn get(bytes: &[u8], offset: u16) -> u32 {
    let offset = usize::from(offset);
    let word = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

fn get_u64(bytes: &[u8], offset: u16) -> u64 {
    u64::from(get(bytes, offset.saturating_add(4))) << 32 | u64::from(get(bytes, offset))
}

fn get3(bytes: &[u8], offset: u16) -> Dim3 {
    Dim3 {
        x: get(bytes, offset),
        y: get(bytes, offset.saturating_add(4)),
        z: get(bytes, offset.saturating_add(8)),
    }
}

static SM75: Layout = Layout {
    reserved_shared: None,
    ..SM80_ROWS
};
static SM80: Layout = SM80_ROWS;
const SM80_ROWS: Layout = Layout {
    block: 0x0,
    grid: 0xc,
    shared_window: 0x18,
    local_window: 0x20,
    stack_top: 0x28,
    grid_id: 0x30,
    sm_count: 0x10c,
    reserved_shared: Some(0x114),
    explicit_cluster: None,
    cooperative: None,
    records: &[Record {
        dynamic_shared: 0x2c,
        total_shared: None,
        workspace_hi: 0x8c,
        workspace_lo: 0x90,
        cluster: None,
    }],
    prefix: 0x160,
};
static SM90: Layout = Layout {
    explicit_cluster: Some(0x140),
    cooperative: Some(0x110),
    records: &[Record {
        dynamic_shared: 0x2c,
        total_shared: Some(0x13c),
        workspace_hi: 0x44,
        workspace_lo: 0x48,
        cluster: Some(ClusterRows {
            extent: 0x144,
            reciprocal: 0x150,
            grid: 0x15c,
            blocks: 0x188,
        }),
    }],
    prefix: 0x210,
    ..SM80_ROWS
};
static SM100: Layout = Layout {
    block: 0x360,
    grid: 0x370,
    shared_window: 0x2f0,
    local_window: 0x2f8,
    stack_top: 0x37c,
    grid_id: 0x140,
    sm_count: 0x2d0,
    reserved_shared: Some(0x16c),
    explicit_cluster: Some(0x36c),
    cooperative: None,
    records: &[record_at(0x250), record_at(0x1b0)],
    prefix: 0x380,
};

/// A record of `sm_100` on.
const fn record_at(base: u16) -> Record {
    Record {
        dynamic_shared: base.saturating_add(0x5c),
        total_shared: Some(base.saturating_add(0x6c)),
        workspace_hi: base.saturating_add(0x4),
        workspace_lo: base.saturating_add(0x8),
        cluster: Some(ClusterRows {
            extent: base.saturating_add(0x50),
            reciprocal: base.saturating_add(0x60),
            grid: base.saturating_add(0x70),
            blocks: base.saturating_add(0x7c),
        }),
    }
}
