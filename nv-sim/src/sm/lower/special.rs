//! Special registers.

use nv_proto::sass::{Op, Operand};

use super::{Args, Lower, Refused, op};
use crate::sm::exec::Flow;
use crate::sm::regs::{LANES, Lanes};

impl Args<'_> {
    pub(super) fn special(&mut self) -> Lower {
        let Operand::Word(name) = self.arg(1)?.operand else {
            return Err(Refused::Unimplemented);
        };
        let wide = self.inst.op == Op::Cs2r && !self.flag(".32");
        let d = self.dst_of(0, if wide { 2 } else { 1 })?;
        let which = Special::from_name(name).ok_or(Refused::Unimplemented)?;
        let high = match (wide, which) {
            (false, _) => None,
            (true, Special::Zero) => Some(Special::Zero),
            (true, Special::ClockLo) => Some(Special::ClockHi),
            (true, Special::TimerLo) => Some(Special::TimerHi),
            (true, _) => return Err(Refused::Unimplemented),
        };
        op(move |c, m| {
            let time = c.time(which);
            let v = c.special(which, time);
            c.regs.set(d, m, &v);
            if let Some(high) = high {
                let v = c.special(high, time);
                c.regs.set(d.next(1), m, &v);
            }
            Ok(Flow::Next)
        })
    }
}

/// The special registers that the simulator has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sm) enum Special {
    Zero,
    LaneId,
    Tid,
    TidX,
    TidY,
    TidZ,
    CtaIdX,
    CtaIdY,
    CtaIdZ,
    SharedWindowHigh,
    SharedWindowLow,
    LocalWindowHigh,
    LocalWindowLow,
    SharedSize,
    LocalStart,
    EqMask,
    LtMask,
    LeMask,
    GtMask,
    GeMask,
    SmId,
    WarpId,
    ClockLo,
    ClockHi,
    TimerLo,
    TimerHi,
    ClusterRank,
    ClusterSize,
}

impl Special {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "SRZ" => Self::Zero,
            "SR_LANEID" => Self::LaneId,
            "SR_TID" => Self::Tid,
            "SR_TID.X" => Self::TidX,
            "SR_TID.Y" => Self::TidY,
            "SR_TID.Z" => Self::TidZ,
            "SR_CTAID.X" => Self::CtaIdX,
            "SR_CTAID.Y" => Self::CtaIdY,
            "SR_CTAID.Z" => Self::CtaIdZ,
            "SR_SWINHI" => Self::SharedWindowHigh,
            "SR_SWINLO" => Self::SharedWindowLow,
            "SR_LWINHI" => Self::LocalWindowHigh,
            "SR_LWINLO" => Self::LocalWindowLow,
            "SR_SMEMSZ" => Self::SharedSize,
            "SR_LMEMHIOFF" => Self::LocalStart,
            "SR_EQMASK" => Self::EqMask,
            "SR_LTMASK" => Self::LtMask,
            "SR_LEMASK" => Self::LeMask,
            "SR_GTMASK" => Self::GtMask,
            "SR_GEMASK" => Self::GeMask,
            "SR_VIRTUALSMID" => Self::SmId,
            "SR_VIRTID" => Self::WarpId,
            "SR_CLOCKLO" | "SR_CLOCK" => Self::ClockLo,
            "SR_CLOCKHI" => Self::ClockHi,
            "SR_GLOBALTIMERLO" => Self::TimerLo,
            "SR_GLOBALTIMERHI" => Self::TimerHi,
            "SR_CgaCtaId" => Self::ClusterRank,
            "SR_CgaSize" => Self::ClusterSize,
            _ => return None,
        })
    }

    /// Lane masks by lane.
    pub fn lane_mask(self) -> Option<Lanes> {
        let of = |f: fn(u32) -> u32| -> Option<Lanes> {
            let mut v = [0; LANES];
            for (i, v) in (0..).zip(&mut v) {
                *v = f(i);
            }
            Some(v)
        };
        match self {
            Self::LaneId => of(|i| i),
            Self::EqMask => of(|i| 1 << i),
            Self::LtMask => of(|i| (1 << i) - 1),
            Self::LeMask => of(|i| u32::MAX >> (31 - i)),
            Self::GtMask => of(|i| !(u32::MAX >> (31 - i))),
            Self::GeMask => of(|i| u32::MAX << i),
            _ => None,
        }
    }
}
