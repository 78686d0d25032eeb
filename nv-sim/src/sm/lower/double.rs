//! Double precision.

use nv_proto::sass::{Arg, Op};

use super::float::multiply;
use super::integer::finish;
use super::{Args, Lower, Pair, Refused, alu, plain};
use crate::sm::ieee::{self, F64, Round};
use crate::sm::regs::{Lanes64, PredSrc, Regs, mask_of};

impl Args<'_> {
    pub(super) fn double(&mut self) -> Lower {
        match self.inst.op {
            Op::Dadd => {
                let round = self.round();
                let (d, a, b) = (self.dst_of(0, 2)?, self.src_f64(1)?, self.src_f64(2)?);
                alu(move |r, m| {
                    let (a, b) = (a.get(r), b.get(r));
                    let v: Lanes64 = if round == Round::Near {
                        std::array::from_fn(|i| {
                            canonical(f64::from_bits(a[i]) + f64::from_bits(b[i]))
                        })
                    } else {
                        let one = F64.unpack(1.0_f64.to_bits());
                        std::array::from_fn(|i| {
                            F64.pack(
                                ieee::fma(F64.unpack(a[i]), one, F64.unpack(b[i]), round),
                                round,
                            )
                        })
                    };
                    r.set64(d, m, &v);
                })
            }
            Op::Dmul => {
                let round = self.round();
                let (d, a, b) = (self.dst_of(0, 2)?, self.src_f64(1)?, self.src_f64(2)?);
                alu(move |r, m| {
                    let (a, b) = (a.get(r), b.get(r));
                    let v: Lanes64 = if round == Round::Near {
                        std::array::from_fn(|i| {
                            canonical(f64::from_bits(a[i]) * f64::from_bits(b[i]))
                        })
                    } else {
                        std::array::from_fn(|i| {
                            F64.pack(multiply(F64.unpack(a[i]), F64.unpack(b[i])), round)
                        })
                    };
                    r.set64(d, m, &v);
                })
            }
            Op::Dfma => {
                let round = self.round();
                let d = self.dst_of(0, 2)?;
                let (a, b, c) = (self.src_f64(1)?, self.src_f64(2)?, self.src_f64(3)?);
                alu(move |r, m| {
                    let (a, b, c) = (a.get(r), b.get(r), c.get(r));
                    let v: Lanes64 = if round == Round::Near {
                        std::array::from_fn(|i| {
                            canonical(
                                f64::from_bits(a[i])
                                    .mul_add(f64::from_bits(b[i]), f64::from_bits(c[i])),
                            )
                        })
                    } else {
                        std::array::from_fn(|i| {
                            let [a, b, c] = [a[i], b[i], c[i]].map(|x| F64.unpack(x));
                            F64.pack(ieee::fma(a, b, c, round), round)
                        })
                    };
                    r.set64(d, m, &v);
                })
            }
            Op::Dsetp => {
                if let Some(min) = self.one_of(&[(".MIN", true), (".MAX", false)]) {
                    return self.double_min_max(min);
                }
                let relation = self.relation()?;
                let combine = self.combine()?;
                let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
                let (a, b, acc) = (self.src_f64(2)?, self.src_f64(3)?, self.pred(4)?);
                alu(move |r, m| {
                    let (a, b) = (a.get(r), b.get(r));
                    let test =
                        mask_of(|i| relation.test(f64::from_bits(a[i]), f64::from_bits(b[i])));
                    finish(r, m, test, combine, acc, p, q);
                })
            }
            _ => Err(Refused::Unimplemented),
        }
    }

    /// `p`: the first source is the lesser or greater; `q`: both are NaN. So the compiler's selections use them.
    fn double_min_max(&mut self, min: bool) -> Lower {
        if !self.flag(".AND") {
            return Err(Refused::Unimplemented);
        }
        let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
        let (a, b, acc) = (self.src_f64(2)?, self.src_f64(3)?, self.pred(4)?);
        if acc != PredSrc::TRUE {
            return Err(Refused::Unimplemented);
        }
        alu(move |r, m| {
            let (a, b) = (a.get(r), b.get(r));
            let nan = |x: u64| f64::from_bits(x).is_nan();
            // Floats ordered as integers once the negative ones are turned round; -0 is below +0.
            let key = |x: u64| if x >> 63 != 0 { !x } else { x | 1 << 63 };
            let first = mask_of(|i| match (nan(a[i]), nan(b[i])) {
                (true, _) => false,
                (false, true) => true,
                _ => (key(a[i]) < key(b[i])) == min,
            });
            let both = mask_of(|i| nan(a[i]) && nan(b[i]));
            r.set_pred(q, m, both);
            r.set_pred(p, m, first);
        })
    }

    fn src_f64(&mut self, at: usize) -> Result<Double, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg {
            neg: false,
            abs: false,
            ..arg
        })?;
        Ok(Double {
            pair: self.raw64(arg.operand)?,
            abs: arg.abs,
            neg: arg.neg,
        })
    }
}

/// A double source, sign changes included.
#[derive(Clone, Copy)]
struct Double {
    pair: Pair,
    abs: bool,
    neg: bool,
}

impl Double {
    #[inline]
    fn get(self, regs: &Regs) -> Lanes64 {
        let v = self.pair.get(regs);
        let keep = if self.abs { u64::MAX >> 1 } else { u64::MAX };
        let flip = if self.neg { 1 << 63 } else { 0 };
        std::array::from_fn(|i| (v[i] & keep) ^ flip)
    }
}

fn canonical(x: f64) -> u64 {
    if x.is_nan() { F64.nan() } else { x.to_bits() }
}
