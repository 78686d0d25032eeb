//! What stops a channel, and what is told about it.

use crate::memory::{Access, MmuFault};
use crate::mmu::PageTable;
use crate::sm;

/// Why a channel goes no further.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// The channel's group is torn down and its error notifiers are written.
    Fault(Box<Report>),
    /// Nothing is reported, as on hardware: what was waited for just never comes.
    Hang(String),
    /// The channel was freed meanwhile.
    Cancelled,
}

/// A fault, as the error notifier and the debugger tell it.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// The notifier's code.
    pub(crate) code: u32,
    /// In words.
    pub(crate) text: String,
    /// What the debugger reads.
    pub(crate) detail: Detail,
}

/// What the debugger reads about a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Detail {
    /// Nothing.
    None,
    /// An access that hit no mapping.
    Mmu {
        va: u64,
        fault_type: u32,
        access_type: u32,
    },
    /// A warp that trapped.
    Sm {
        sm: u32,
        warp_esr: u32,
        address: u64,
        pc: u64,
    },
}

/// `ROBUST_CHANNEL_GR_EXCEPTION` of `nverror.h`.
pub(crate) const GR_EXCEPTION: u32 = 13;
/// `ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT`.
pub(crate) const MMU_FAULT: u32 = 31;
/// `ROBUST_CHANNEL_PBDMA_ERROR`.
pub(crate) const PBDMA_ERROR: u32 = 32;
/// `ROBUST_CHANNEL_CE0_ERROR`.
pub(crate) const CE_ERROR: u32 = 39;
/// `ROBUST_CHANNEL_GR_ERROR_MISSING_HW`: what an H200 says of an unknown method of its compute class.
pub(crate) const GR_UNKNOWN_METHOD: u32 = 11;
/// `ROBUST_CHANNEL_GR_CLASS_ERROR`: by its name; no GPU was seen to say it.
pub(crate) const GR_CLASS_ERROR: u32 = 69;

/// The global ESR of an SM on which a warp trapped (measured on an H200).
pub(crate) const GLOBAL_ESR: u32 = 4;

impl Stop {
    /// A fault with no more than a code and words.
    pub(crate) fn new(code: u32, text: String) -> Self {
        Self::Fault(Box::new(Report {
            code,
            text,
            detail: Detail::None,
        }))
    }

    /// An engine's access that hit no mapping.
    pub(crate) fn mmu(engine: &str, fault: MmuFault, table: &PageTable) -> Self {
        let MmuFault { va, access } = fault;
        let fault_type = table.fault_type(fault);
        let (name, access_type) = match access {
            Access::Read => ("read", 0),
            Access::Write => ("write", 1),
            Access::Atomic => ("atomic", 2),
            Access::Execute => ("instruction fetch", 0),
        };
        let why = if fault_type == 6 {
            "a read-only page"
        } else {
            "no mapping"
        };
        Self::Fault(Box::new(Report {
            code: MMU_FAULT,
            text: format!("MMU fault: {engine}: {name} at {va:#x} hit {why}"),
            detail: Detail::Mmu {
                va,
                fault_type,
                access_type,
            },
        }))
    }

    /// A grid that stopped.
    pub(crate) fn grid(fault: &sm::Fault, table: &PageTable) -> Self {
        use sm::FaultKind as K;
        let sm::Fault {
            kind,
            pc,
            words,
            sm,
            block,
            thread,
        } = fault;
        let instruction = match words {
            Some([low, high]) => format!("instruction {low:#018x} {high:#018x}"),
            None => "an instruction that cannot be read".to_owned(),
        };
        let place =
            format!("at pc {pc:#x} ({instruction}), SM {sm}, block {block}, thread {thread}");
        // Codes measured on an H200; the instruction-encoding code is that of `trap` and `brkpt` too.
        const ILLEGAL_ENCODING: u32 = 0x9;
        const MISALIGNED: u32 = 0xf;
        const LOCAL_RANGE: u32 = 0x0300_000e;
        const SHARED_RANGE: u32 = 0x0c00_000e;
        // `INVALID_CONST_ADDR_LDC` of nvgpu's headers (`facts/pfault.json`), not measured.
        const CONSTANT_RANGE: u32 = 0x12;
        let (warp_esr, address, what) = match kind {
            K::Mmu(mmu) => {
                let mut stop = Self::mmu("SM", *mmu, table);
                if let Self::Fault(report) = &mut stop {
                    report.text = format!("{} {place}", report.text);
                }
                return stop;
            }
            K::Misaligned { address } => (
                MISALIGNED,
                *address,
                format!("misaligned address {address:#x}"),
            ),
            K::SharedOutOfRange { address } => (
                SHARED_RANGE,
                *address,
                format!("shared address {address:#x} out of range"),
            ),
            K::LocalOutOfRange { address } => (
                LOCAL_RANGE,
                *address,
                format!("local address {address:#x} out of range"),
            ),
            K::ConstantOutOfRange { bank, offset } => (
                CONSTANT_RANGE,
                u64::from(*offset),
                format!("constant bank {bank}, offset {offset:#x} out of range"),
            ),
            K::Trap => (ILLEGAL_ENCODING, 0, "trap".to_owned()),
            K::IllegalInstruction => (ILLEGAL_ENCODING, 0, "illegal instruction".to_owned()),
            K::Unimplemented { text } => (
                ILLEGAL_ENCODING,
                0,
                format!("not implemented by the simulated GPU: {text}"),
            ),
            K::Resources { needed } => {
                return Self::Hang(format!(
                    "a grid asks for {needed} (bytes, or threads at once), more than there are"
                ));
            }
            K::Cancelled => return Self::Cancelled,
            K::Deadlock => {
                return Self::Hang(format!("every thread waits for another, the first {place}"));
            }
        };
        Self::Fault(Box::new(Report {
            code: GR_EXCEPTION,
            text: format!("{what} {place}"),
            detail: Detail::Sm {
                sm: *sm,
                warp_esr,
                address,
                pc: *pc,
            },
        }))
    }

    /// In words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Fault(report) => &report.text,
            Self::Hang(text) => text,
            Self::Cancelled => "the channel was freed",
        }
    }
}
