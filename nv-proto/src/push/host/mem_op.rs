//! Memory operations: barriers, translations, the second-level cache.

use crate::error::EncodeError;
use crate::unit::GpuVa;

use super::{MEM_OP_A, MethodAddr};
use crate::push::word::{FieldSpec, FieldValue, field_enum, lower, upper};
use crate::push::writer::Method;

field_enum! {
    /// What a memory operation does (`MEM_OP_D_OPERATION`).
    MemOperation {
        /// Orders memory accesses.
        #[default]
        Membar = 5 "MEMBAR",
        /// Invalidates translations.
        MmuTlbInvalidate = 9 "MMU_TLB_INVALIDATE",
        /// Invalidates the translations of one address.
        MmuTlbInvalidateTargeted = 10 "MMU_TLB_INVALIDATE_TARGETED",
        /// An operation of the memory management unit (`clc86f.h`).
        MmuOperation = 11 "MMU_OPERATION",
        /// Drops what the cache holds of peers' memory.
        L2PeermemInvalidate = 13 "L2_PEERMEM_INVALIDATE",
        /// Drops what the cache holds of system memory.
        L2SysmemInvalidate = 14 "L2_SYSMEM_INVALIDATE",
        /// Cleans the compression tags.
        L2CleanComptags = 15 "L2_CLEAN_COMPTAGS",
        /// Writes dirty lines back.
        L2FlushDirty = 16 "L2_FLUSH_DIRTY",
        /// Waits for reads of system memory.
        L2WaitForSysPendingReads = 21 "L2_WAIT_FOR_SYS_PENDING_READS",
        /// Clears access counters.
        AccessCounterClr = 22 "ACCESS_COUNTER_CLR",
    }
}

field_enum! {
    /// How far a memory barrier orders.
    MembarType {
        /// System memory and peers too.
        #[default]
        SysMembar = 0 "SYS_MEMBAR",
        /// This GPU's memory.
        Membar = 1 "MEMBAR",
    }
}

field_enum! {
    /// Who is asked to acknowledge a translation's invalidation.
    TlbAck {
        /// No one.
        #[default]
        None = 0 "NONE",
        /// Every unit.
        Globally = 1 "GLOBALLY",
        /// Units of this node.
        Intranode = 2 "INTRANODE",
    }
}

field_enum! {
    /// Up to which level translations are invalidated.
    TlbLevel {
        /// All levels.
        #[default]
        All = 0 "ALL",
        /// The last.
        PteOnly = 1 "PTE_ONLY",
        /// Up to directory 0.
        UpToPde0 = 2 "UP_TO_PDE0",
        /// Up to directory 1.
        UpToPde1 = 3 "UP_TO_PDE1",
        /// Up to directory 2.
        UpToPde2 = 4 "UP_TO_PDE2",
        /// Up to directory 3.
        UpToPde3 = 5 "UP_TO_PDE3",
        /// Up to directory 4.
        UpToPde4 = 6 "UP_TO_PDE4",
        /// Up to directory 5.
        UpToPde5 = 7 "UP_TO_PDE5",
    }
}

field_enum! {
    /// Where a page directory lies.
    PdbAperture {
        /// The GPU's memory.
        #[default]
        VidMem = 0 "VID_MEM",
        /// System memory, snooped.
        SysMemCoherent = 2 "SYS_MEM_COHERENT",
        /// System memory, not snooped.
        SysMemNoncoherent = 3 "SYS_MEM_NONCOHERENT",
    }
}

/// A memory operation: `MEM_OP_A` to `MEM_OP_D`, which mean different things for each operation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MemOp {
    /// Orders the channel's memory accesses.
    Membar(MembarType),
    /// Invalidates translations.
    TlbInvalidate {
        /// Of which page directory (its physical address, a multiple of 4096); `None` for all.
        pdb: Option<(GpuVa, PdbAperture)>,
        /// Of which virtual page (a multiple of 4096); `None` for all.
        page: Option<GpuVa>,
        /// Up to which level.
        level: TlbLevel,
        /// Who acknowledges.
        ack: TlbAck,
        /// Whether a system memory barrier follows.
        sysmembar: bool,
    },
    /// Invalidates, flushes or waits for the second-level cache; no parameters.
    Cache(MemOperation),
}

impl Method<4> for MemOp {
    const ADDR: MethodAddr = MEM_OP_A;

    #[inline]
    fn data(&self) -> Result<[u32; 4], EncodeError> {
        let operation = |operation: MemOperation| MEM_OP_D_OPERATION.place(operation.into_bits());
        match *self {
            Self::Membar(kind) => {
                const TYPE: FieldSpec = FieldSpec {
                    name: "MEM_OP_C_MEMBAR_TYPE",
                    hi: 2,
                    lo: 0,
                };
                Ok([
                    0,
                    0,
                    TYPE.place(kind.into_bits())?,
                    operation(MemOperation::Membar)?,
                ])
            }
            Self::TlbInvalidate {
                pdb,
                page,
                level,
                ack,
                sysmembar,
            } => {
                let (target, op) = match page {
                    None => (GpuVa(0), MemOperation::MmuTlbInvalidate),
                    Some(page) => (page, MemOperation::MmuTlbInvalidateTargeted),
                };
                let a = lower("MEM_OP_A_TLB_INVALIDATE_TARGET_ADDR_LO", 4096, target)?
                    | SYSMEMBAR.place(u32::from(sysmembar))?;
                let (pdb_lo, pdb_hi, all) = match pdb {
                    None => (0, 0, 1),
                    Some((pdb, aperture)) => (
                        lower("MEM_OP_C_TLB_INVALIDATE_PDB_ADDR_LO", 4096, pdb)?
                            | PDB_APERTURE.place(aperture.into_bits())?,
                        upper("MEM_OP_D_TLB_INVALIDATE_PDB_ADDR_HI", 27, pdb)?,
                        0,
                    ),
                };
                let c = pdb_lo
                    | all
                    | ACK_TYPE.place(ack.into_bits())?
                    | PAGE_TABLE_LEVEL.place(level.into_bits())?;
                Ok([a, target.hi(), c, pdb_hi | operation(op)?])
            }
            Self::Cache(op) => match op {
                MemOperation::L2PeermemInvalidate
                | MemOperation::L2SysmemInvalidate
                | MemOperation::L2CleanComptags
                | MemOperation::L2FlushDirty
                | MemOperation::L2WaitForSysPendingReads => Ok([0, 0, 0, operation(op)?]),
                _ => Err(EncodeError::Unsupported {
                    what: "a MEM_OP_D_OPERATION that is none of the cache's, as one",
                    value: u64::from(op.into_bits()),
                }),
            },
        }
    }
}

/// `MEM_OP_D_OPERATION`: what the four words mean.
pub const MEM_OP_D_OPERATION: FieldSpec = FieldSpec {
    name: "MEM_OP_D_OPERATION",
    hi: 31,
    lo: 27,
};
const SYSMEMBAR: FieldSpec = FieldSpec {
    name: "MEM_OP_A_TLB_INVALIDATE_SYSMEMBAR",
    hi: 11,
    lo: 11,
};
const ACK_TYPE: FieldSpec = FieldSpec {
    name: "MEM_OP_C_TLB_INVALIDATE_ACK_TYPE",
    hi: 6,
    lo: 5,
};
const PAGE_TABLE_LEVEL: FieldSpec = FieldSpec {
    name: "MEM_OP_C_TLB_INVALIDATE_PAGE_TABLE_LEVEL",
    hi: 9,
    lo: 7,
};
const PDB_APERTURE: FieldSpec = FieldSpec {
    name: "MEM_OP_C_TLB_INVALIDATE_PDB_APERTURE",
    hi: 11,
    lo: 10,
};
