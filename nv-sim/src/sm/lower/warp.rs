//! Between the lanes of a warp: votes, shuffles, matches, reductions.

use nv_proto::sass::{Op, Operand};

use super::{Args, Lower, Refused, alu, op};
use crate::sm::exec::Flow;
use crate::sm::regs::{LANES, Lanes, Raw, first, lanes, mask_of};

impl Args<'_> {
    pub(super) fn warp(&mut self) -> Lower {
        match self.inst.op {
            Op::Vote | Op::Voteu => self.vote(),
            Op::Shfl => self.shfl(),
            Op::Match => self.match_lanes(),
            Op::Redux => self.redux(),
            Op::Elect => self.elect(),
            Op::R2ur => {
                if self.shown(0) {
                    return Err(Refused::Unimplemented);
                }
                let (d, a) = (self.dst(1)?, self.src(2)?);
                alu(move |r, m| {
                    // The lowest active lane's: the compiler only reads values that all lanes share.
                    let v = a.get(r);
                    r.set(d, m, &v);
                })
            }
            _ => Err(Refused::Unimplemented),
        }
    }

    fn vote(&mut self) -> Lower {
        #[derive(Clone, Copy)]
        enum How {
            All,
            Any,
            Equal,
        }
        let how = self
            .one_of(&[(".ALL", How::All), (".ANY", How::Any), (".EQ", How::Equal)])
            .ok_or(Refused::Unimplemented)?;
        // A result that is dropped is not printed.
        let d = self.dst(0)?;
        let p = self.pred_dst(1)?;
        let a = self.pred(2)?;
        alu(move |r, m| {
            let ballot = a.get(r) & m;
            let yes = match how {
                How::All => ballot == m,
                How::Any => ballot != 0,
                How::Equal => ballot == m || ballot == 0,
            };
            r.set(d, m, &[ballot; LANES]);
            r.set_pred(p, m, if yes { u32::MAX } else { 0 });
        })
    }

    fn shfl(&mut self) -> Lower {
        #[derive(Clone, Copy)]
        enum How {
            Idx,
            Up,
            Down,
            Bfly,
        }
        let how = self
            .one_of(&[
                (".IDX", How::Idx),
                (".UP", How::Up),
                (".DOWN", How::Down),
                (".BFLY", How::Bfly),
            ])
            .ok_or(Refused::Unimplemented)?;
        let p = self.pred_dst(0)?;
        let d = self.dst(1)?;
        let (a, b, c) = (self.src(2)?, self.src(3)?, self.src(4)?);
        alu(move |r, m| {
            let (a, b, c) = (a.get(r), b.get(r), c.get(r));
            let mut valid = 0;
            let mut v: Lanes = a;
            for lane in 0..32_u32 {
                let i = lane as usize;
                let (segment, clamp) = (c[i] >> 8 & 31, c[i] & 31);
                let max = (lane & segment) | (clamp & !segment);
                let min = lane & segment;
                let by = b[i] & 31;
                let (source, ok) = match how {
                    How::Idx => {
                        let j = min | (by & !segment);
                        (j, j <= max)
                    }
                    How::Up => {
                        let j = lane.wrapping_sub(by);
                        // The lowest lane of the segment is the clamp here.
                        (j, j.cast_signed() >= max.cast_signed())
                    }
                    How::Down => (lane + by, lane + by <= max),
                    How::Bfly => (lane ^ by, lane ^ by <= max),
                };
                if ok {
                    valid |= 1 << lane;
                    v[i] = a[source as usize % LANES];
                }
            }
            r.set(d, m, &v);
            r.set_pred(p, m, valid);
        })
    }

    fn match_lanes(&mut self) -> Lower {
        let all = self.flag(".ALL");
        if !all && !self.flag(".ANY") {
            return Err(Refused::Unimplemented);
        }
        let wide = self.flag(".U64");
        let p = self.pred_dst(0)?;
        let d = self.dst(1)?;
        let a = if wide {
            self.src64(2)?
        } else {
            super::Pair {
                lo: self.src(2)?,
                hi: Raw::ZERO,
            }
        };
        alu(move |r, m| {
            let a = a.get(r);
            if all {
                let same = lanes(m).all(|i| a[i] == a[first(m)]);
                r.set(d, m, &[if same { m } else { 0 }; LANES]);
                r.set_pred(p, m, if same { u32::MAX } else { 0 });
            } else {
                let v: Lanes = std::array::from_fn(|i| mask_of(|j| a[i] == a[j]) & m);
                r.set(d, m, &v);
            }
        })
    }

    fn redux(&mut self) -> Lower {
        let signed = self.flag(".S32");
        let f: fn(u32, u32) -> u32 = self
            .one_of::<fn(u32, u32) -> u32>(&[
                (".SUM", u32::wrapping_add),
                (".OR", |a, b| a | b),
                (".XOR", |a, b| a ^ b),
                (
                    ".MIN",
                    if signed {
                        |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()
                    } else {
                        u32::min
                    },
                ),
                (
                    ".MAX",
                    if signed {
                        |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned()
                    } else {
                        u32::max
                    },
                ),
            ])
            // Without a name it is AND.
            .unwrap_or(|a, b| a & b);
        let (d, a) = (self.dst(0)?, self.src(1)?);
        alu(move |r, m| {
            let a = a.get(r);
            if let Some(v) = lanes(m).map(|i| a[i]).reduce(f) {
                r.set(d, m, &[v; LANES]);
            }
        })
    }

    fn elect(&mut self) -> Lower {
        let p = self.pred_dst(0)?;
        let d = self.dst(1)?;
        // Among the lanes of a mask: all of them, as `PT` or `~URZ`.
        for at in 2..self.count() {
            if !self.shown(at) {
                continue;
            }
            let arg = self.arg(at)?;
            let everyone = match arg.operand {
                Operand::Pred(n) => n == nv_proto::sass::PT && !arg.not,
                Operand::Ureg(n) => n == self.inst.urz() && arg.inv,
                _ => false,
            };
            if !everyone {
                return Err(Refused::Unimplemented);
            }
        }
        op(move |c, m| {
            let lowest = first(m);
            c.regs.set(d, m, &[lowest as u32; LANES]);
            c.regs.set_pred(p, m, 1 << lowest);
            Ok(Flow::Next)
        })
    }
}
