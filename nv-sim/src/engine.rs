//! What the engines have in common: registers, semaphores, reductions.

use std::sync::Arc;

use nv_proto::push::{MethodAddr, table};
use nv_proto::unit::ClassId;

use crate::access;
use crate::channel::Channel;
use crate::fault::{self, Stop};
use crate::gpu::Gpu;
use crate::memory::MmuFault;
use crate::mmu::PageTable;

/// Where an engine runs.
pub(crate) struct Context<'a> {
    pub(crate) gpu: &'a Arc<Gpu>,
    /// The worker that runs the channel.
    pub(crate) worker: usize,
    pub(crate) channel: &'a Channel,
    /// The channel's mappings, as of the entry that runs.
    pub(crate) table: Arc<PageTable>,
}

impl Context<'_> {
    /// Takes in the maps and unmaps made meanwhile.
    pub(crate) fn refresh(&mut self) {
        self.table = self.channel.space.snapshot();
    }

    /// Turns a failed access into a fault of `engine`.
    pub(crate) fn mmu(&self, engine: &str) -> impl Fn(MmuFault) -> Stop {
        move |fault| Stop::mmu(engine, fault, &self.table)
    }
}

/// The data last written to each method of a class.
#[derive(Debug)]
pub(crate) struct Registers(Box<[u32]>);

impl Registers {
    pub(crate) fn get(&self, method: u16) -> u32 {
        self.0
            .get(usize::from(method / 4))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn set(&mut self, method: u16, data: u32) {
        if let Some(register) = self.0.get_mut(usize::from(method / 4)) {
            *register = data;
        }
    }

    /// The value whose upper half is written to `method` and whose lower half to the method after it.
    pub(crate) fn upper_lower(&self, method: u16) -> u64 {
        u64::from(self.get(method)) << 32 | u64::from(self.get(method.saturating_add(4)))
    }
}

impl Default for Registers {
    fn default() -> Self {
        Self(vec![0; 0x4000 / 4].into())
    }
}

/// How a value is combined into memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reduction {
    Min,
    Max,
    Xor,
    And,
    Or,
    Add,
    /// Up to the operand, then 0.
    Inc,
    /// Down to 0, then the operand.
    Dec,
    FloatAdd,
    FloatMin,
    FloatMax,
}

impl Reduction {
    /// `old` combined with `operand`.
    fn wide(self, signed: bool, old: u64, operand: u64) -> u64 {
        let less = if signed {
            (old as i64) < operand as i64
        } else {
            old < operand
        };
        let (smaller, larger) = if less { (old, operand) } else { (operand, old) };
        let float = |combine: fn(f64, f64) -> f64| {
            combine(f64::from_bits(old), f64::from_bits(operand)).to_bits()
        };
        match self {
            Self::Min => smaller,
            Self::Max => larger,
            Self::Xor => old ^ operand,
            Self::And => old & operand,
            Self::Or => old | operand,
            Self::Add => old.wrapping_add(operand),
            Self::Inc => {
                if old >= operand {
                    0
                } else {
                    old + 1
                }
            }
            Self::Dec => {
                if old == 0 || old > operand {
                    operand
                } else {
                    old - 1
                }
            }
            Self::FloatAdd => float(|a, b| a + b),
            Self::FloatMin => float(f64::min),
            Self::FloatMax => float(f64::max),
        }
    }

    fn narrow(self, signed: bool, old: u32, operand: u32) -> u32 {
        let less = if signed {
            (old as i32) < operand as i32
        } else {
            old < operand
        };
        let (smaller, larger) = if less { (old, operand) } else { (operand, old) };
        let float = |combine: fn(f32, f32) -> f32| {
            combine(f32::from_bits(old), f32::from_bits(operand)).to_bits()
        };
        match self {
            Self::Min => smaller,
            Self::Max => larger,
            Self::FloatAdd => float(|a, b| a + b),
            Self::FloatMin => float(f32::min),
            Self::FloatMax => float(f32::max),
            // The rest does not tell widths apart but for what is carried out.
            _ => self.wide(false, u64::from(old), u64::from(operand)) as u32,
        }
    }
}

/// A semaphore operation that writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) va: u64,
    pub(crate) payload: u64,
    /// Whether the payload has 64 bits.
    pub(crate) wide: bool,
    /// Whether the time follows the payload: 16 bytes in all.
    pub(crate) timestamp: bool,
    /// How the payload is combined with memory, and whether as signed numbers; it is stored without.
    pub(crate) reduction: Option<(Reduction, bool)>,
}

impl Release {
    /// Writes it, the time before the payload, so that who sees the payload sees the time.
    pub(crate) fn perform(
        self,
        context: &Context<'_>,
        engine: &str,
        code: u32,
    ) -> Result<(), Stop> {
        let Self {
            va,
            payload,
            wide,
            timestamp,
            reduction,
        } = self;
        let align = match (timestamp, wide) {
            (true, _) => 16,
            (false, true) => 8,
            (false, false) => 4,
        };
        if va % align != 0 {
            let text = format!("{engine}: a semaphore at {va:#x} is no multiple of {align}");
            return Err(Stop::new(code, text));
        }
        let table = &*context.table;
        let store = || {
            if timestamp {
                access::store_u64(table, va + 8, context.gpu.nanoseconds())?;
            }
            match reduction {
                Some((how, signed)) if wide => {
                    access::update_u64(table, va, |old| how.wide(signed, old, payload))
                }
                Some((how, signed)) => {
                    access::update_u32(table, va, |old| how.narrow(signed, old, payload as u32))
                }
                // Four words with a payload of one: the second is 0.
                None if wide => access::store_u64(table, va, payload),
                None if timestamp => access::store_u64(table, va, u64::from(payload as u32)),
                None => access::store_u32(table, va, payload as u32),
            }
        };
        store().map_err(context.mmu(engine))
    }
}

/// A method that its class does not have, or that is not implemented: the text says which.
pub(crate) fn unknown_method(
    (engine, code): (&str, u32),
    class: ClassId,
    method: MethodAddr,
    data: u32,
) -> Stop {
    let of = nv_proto::class::name(class).unwrap_or("an unnamed class");
    let text = match table::method(class, method) {
        Some(named) => {
            format!(
                "{engine}: {named} (method {method}) of {of}, data {data:#x}, is not implemented"
            )
        }
        None => format!("{engine}: {of} has no method {method} (data {data:#x})"),
    };
    Stop::new(code, text)
}

/// Data that a method does not take.
pub(crate) fn bad_data(engine: &str, code: u32, why: impl std::fmt::Display) -> Stop {
    Stop::new(code, format!("{engine}: {why}"))
}

/// The name of the host engine in texts, and the code of its faults.
pub(crate) const HOST: (&str, u32) = ("host", fault::PBDMA_ERROR);
/// Those of the copy engine.
pub(crate) const COPY: (&str, u32) = ("copy engine", fault::CE_ERROR);
/// Those of the compute engine, for launches.
pub(crate) const COMPUTE: (&str, u32) = ("compute", fault::GR_EXCEPTION);
/// Those of the compute engine, for methods that its class does not have and data that they do not take: a class error,
/// as `nverror.h` calls it.
pub(crate) const COMPUTE_CLASS: (&str, u32) = ("compute", fault::GR_UNKNOWN_METHOD);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_combine() {
        use Reduction as R;
        let minus = -3_i64 as u64;
        assert_eq!(
            (R::Min.wide(true, 5, minus), R::Min.wide(false, 5, minus)),
            (minus, 5)
        );
        assert_eq!(
            (R::Max.wide(true, 5, minus), R::Max.wide(false, 5, minus)),
            (5, minus)
        );
        assert_eq!(R::Min.narrow(true, 5, -3_i32 as u32), -3_i32 as u32);
        assert_eq!(R::Max.narrow(false, 5, -3_i32 as u32), -3_i32 as u32);
        assert_eq!(R::Add.narrow(false, u32::MAX, 2), 1);
        assert_eq!(R::Add.wide(false, u64::from(u32::MAX), 2), 1 << 32 | 1);
        assert_eq!(
            (
                R::Xor.narrow(false, 6, 3),
                R::And.narrow(false, 6, 3),
                R::Or.wide(false, 6, 3)
            ),
            (5, 2, 7)
        );
        assert_eq!(
            [0, 1, 4, 5, 9].map(|old| R::Inc.narrow(false, old, 5)),
            [1, 2, 5, 0, 0]
        );
        assert_eq!(
            [0, 1, 5, 6].map(|old| R::Dec.wide(false, old, 5)),
            [5, 0, 4, 5]
        );
        assert_eq!(
            R::FloatAdd.narrow(false, 1.5_f32.to_bits(), 2.0_f32.to_bits()),
            3.5_f32.to_bits()
        );
        assert_eq!(
            R::FloatMax.wide(false, 1.5_f64.to_bits(), 2.0_f64.to_bits()),
            2.0_f64.to_bits()
        );
    }
}
