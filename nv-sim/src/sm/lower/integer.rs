//! Moves, integer arithmetic, integer comparison.

use nv_proto::sass::{Op, Operand};

use super::{Args, Lower, Refused, alu};
use crate::sm::regs::{
    ALL, LANES, Lanes, Lanes64, PredDst, PredSrc, Raw, Regs, map1, map2, map3, mask_of, pair,
};

impl Args<'_> {
    pub(super) fn integer(&mut self) -> Lower {
        match self.inst.op {
            Op::Nop => alu(|_, _| {}),
            Op::Mov | Op::Umov => self.mov(),
            Op::Imad | Op::Uimad => self.imad(),
            Op::Iadd3 | Op::Uiadd3 => self.iadd3(),
            Op::Iadd => self.iadd(),
            Op::Viadd => {
                if let Some(bits) =
                    self.one_of(&[(".16x2", 16), (".S16x2", 16), (".U8x4", 8), (".S8x4", 8)])
                {
                    let (d, a, b) = (self.dst(0)?, self.src_int(1)?, self.src_int(2)?);
                    if a.inv || b.inv {
                        return Err(Refused::Unimplemented);
                    }
                    return alu(move |r, m| {
                        let v = map2(&a.raw.get(r), &b.raw.get(r), |x, y| {
                            parts(bits, |n| {
                                let x = if a.neg {
                                    (x >> n).wrapping_neg()
                                } else {
                                    x >> n
                                };
                                let y = if b.neg {
                                    (y >> n).wrapping_neg()
                                } else {
                                    y >> n
                                };
                                x.wrapping_add(y)
                            })
                        });
                        r.set(d, m, &v);
                    });
                }
                self.ignore(&[".32", ".S32"]);
                let (d, a, b) = (self.dst(0)?, self.src_int(1)?, self.src_int(2)?);
                alu(move |r, m| {
                    let v = map2(&a.get(r), &b.get(r), u32::wrapping_add);
                    r.set(d, m, &v);
                })
            }
            Op::Lea | Op::Ulea => self.lea(),
            Op::Iabs => {
                let (d, a) = (self.dst(0)?, self.src(1)?);
                alu(move |r, m| {
                    let v = map1(&a.get(r), |x| x.cast_signed().unsigned_abs());
                    r.set(d, m, &v);
                })
            }
            Op::Imnmx | Op::Uimnmx | Op::Vimnmx | Op::Uvimnmx => self.imnmx(),
            Op::Vimnmx3 | Op::Viaddmnmx => self.imnmx3(),
            Op::Idp => self.idp(),
            Op::Vabsdiff | Op::Vabsdiff4 => self.vabsdiff(),
            Op::Isetp | Op::Uisetp => self.isetp(),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn mov(&mut self) -> Lower {
        if self.flag(".64") {
            let d = self.dst_of(0, 2)?;
            let a = self.src64(1)?;
            return alu(move |r, m| {
                let v = a.get(r);
                r.set64(d, m, &v);
            });
        }
        let (d, a) = (self.dst(0)?, self.src(1)?);
        // An immediate of four bits picks lanes by their number modulo 4.
        let quad = if self.shown(2) {
            self.imm(2)? as u32 & 0xf
        } else {
            0xf
        };
        let quad = quad * 0x1111_1111;
        alu(move |r, m| {
            let v = a.get(r);
            r.set(d, m & quad, &v);
        })
    }

    fn imad(&mut self) -> Lower {
        let signed = !self.flag(".U32");
        let x = self.flag(".X");
        if self.flag(".WIDE") {
            let (d, p) = (self.dst_of(0, 2)?, None);
            let (p, at) = if self.is_pred(1) {
                (Some(self.pred_dst(1)?), 2)
            } else {
                (p, 1)
            };
            let (a, b) = (self.src(at)?, self.src(at + 1)?);
            let arg = self.arg(at + 2)?;
            super::plain(&nv_proto::sass::Arg {
                neg: false,
                inv: false,
                ..arg
            })?;
            let c = self.raw64(arg.operand)?;
            let (neg, inv) = (arg.neg, arg.inv);
            let carry = if x {
                self.pred(at + 3)?
            } else {
                PredSrc {
                    not: true,
                    ..PredSrc::TRUE
                }
            };
            let p = p.unwrap_or(PredDst::None);
            return alu(move |r, m| {
                let (a, b, c) = (a.get(r), b.get(r), c.get(r));
                let carry = if x { carry.get(r) } else { 0 };
                let mut out = 0;
                let v: Lanes64 = std::array::from_fn(|i| {
                    let product = product(a[i], b[i], signed);
                    let c = if neg || inv { !c[i] } else { c[i] };
                    let (sum, over) = product.overflowing_add(c);
                    let (sum, more) =
                        sum.overflowing_add(u64::from(carry >> i & 1) + u64::from(neg));
                    out |= u32::from(over | more) << i;
                    sum
                });
                r.set64(d, m, &v);
                r.set_pred(p, m, out);
            });
        }
        if self.flag(".HI") {
            if x {
                return Err(Refused::Unimplemented);
            }
            let d = self.dst(0)?;
            let (p, at) = if self.is_pred(1) {
                (self.pred_dst(1)?, 2)
            } else {
                (PredDst::None, 1)
            };
            let (a, b, c) = (self.src(at)?, self.src(at + 1)?, self.src64(at + 2)?);
            return alu(move |r, m| {
                let (a, b, c) = (a.get(r), b.get(r), c.get(r));
                let mut out = 0;
                let v: Lanes = std::array::from_fn(|i| {
                    let (sum, over) = product(a[i], b[i], signed).overflowing_add(c[i]);
                    out |= u32::from(over) << i;
                    (sum >> 32) as u32
                });
                r.set(d, m, &v);
                r.set_pred(p, m, out);
            });
        }
        self.ignore(&[".MOV", ".IADD", ".SHL"]);
        let (d, a, b, c) = (self.dst(0)?, self.src(1)?, self.src(2)?, self.src_int(3)?);
        if x {
            let carry = self.pred(4)?;
            return alu(move |r, m| {
                let carry = carry.get(r);
                let (a, b, c) = (a.get(r), b.get(r), c.get(r));
                let v: Lanes = std::array::from_fn(|i| {
                    a[i].wrapping_mul(b[i])
                        .wrapping_add(c[i])
                        .wrapping_add(carry >> i & 1)
                });
                r.set(d, m, &v);
            });
        }
        alu(move |r, m| {
            let v = map3(&a.get(r), &b.get(r), &c.get(r), |a, b, c| {
                a.wrapping_mul(b).wrapping_add(c)
            });
            r.set(d, m, &v);
        })
    }

    fn iadd3(&mut self) -> Lower {
        if self.flag(".64") {
            return self.iadd3_wide();
        }
        let d = self.dst(0)?;
        let (p0, p1) = (self.pred_dst(1)?, self.pred_dst(2)?);
        let s = [self.src_int(3)?, self.src_int(4)?, self.src_int(5)?];
        let (mut q0, mut q1) = (
            PredSrc {
                not: true,
                ..PredSrc::TRUE
            },
            PredSrc {
                not: true,
                ..PredSrc::TRUE
            },
        );
        if self.flag(".X") {
            (q0, q1) = (self.pred(6)?, self.pred(7)?);
        } else if self.shown(6) || self.shown(7) {
            return Err(Refused::Unimplemented);
        }
        if p0 == PredDst::None && p1 == PredDst::None {
            let carries = q0 != q1 || !q0.not || q0.index != 7;
            return alu(move |r, m| {
                let (a, b, c) = (s[0].get(r), s[1].get(r), s[2].get(r));
                let mut v = map3(&a, &b, &c, |a, b, c| a.wrapping_add(b).wrapping_add(c));
                if carries {
                    let (q0, q1) = (q0.get(r), q1.get(r));
                    for (i, v) in v.iter_mut().enumerate() {
                        *v = v.wrapping_add(q0 >> i & 1).wrapping_add(q1 >> i & 1);
                    }
                }
                r.set(d, m, &v);
            });
        }
        alu(move |r, m| {
            let (q0, q1) = (q0.get(r), q1.get(r));
            let (a, b, c) = (s[0].addend(r), s[1].addend(r), s[2].addend(r));
            let extra = a.1 + b.1 + c.1;
            let sums: Lanes64 = std::array::from_fn(|i| {
                u64::from(a.0[i])
                    + u64::from(b.0[i])
                    + u64::from(c.0[i])
                    + extra
                    + u64::from(q0 >> i & 1)
                    + u64::from(q1 >> i & 1)
            });
            r.set(d, m, &sums.map(|s| s as u32));
            r.set_pred(p0, m, mask_of(|i| sums[i] >> 32 >= 1));
            r.set_pred(p1, m, mask_of(|i| sums[i] >> 32 >= 2));
        })
    }

    /// `UIADD3.64`: the same on pairs, without carries.
    fn iadd3_wide(&mut self) -> Lower {
        let d = self.dst_of(0, 2)?;
        for at in [1, 2] {
            if self.shown(at) && self.pred_dst(at)? != PredDst::Uniform(7) {
                return Err(Refused::Unimplemented);
            }
        }
        if self.flag(".X") || self.shown(6) || self.shown(7) {
            return Err(Refused::Unimplemented);
        }
        let mut s = [(self.raw64(Operand::Imm(0))?, false); 3];
        for (i, s) in s.iter_mut().enumerate() {
            let arg = self.arg(3 + i)?;
            super::plain(&nv_proto::sass::Arg { neg: false, ..arg })?;
            *s = (self.raw64(arg.operand)?, arg.neg);
        }
        alu(move |r, m| {
            let mut v = [0_u64; LANES];
            for (s, neg) in s {
                let s = s.get(r);
                for i in 0..LANES {
                    v[i] = if neg {
                        v[i].wrapping_sub(s[i])
                    } else {
                        v[i].wrapping_add(s[i])
                    };
                }
            }
            r.set64(d, m, &v);
        })
    }

    fn iadd(&mut self) -> Lower {
        let wide = self.flag(".64");
        let x = self.flag(".X");
        let d = self.dst_of(0, if wide { 2 } else { 1 })?;
        let p = self.pred_dst(1)?;
        let carry = if x {
            self.pred(4)?
        } else {
            PredSrc {
                not: true,
                ..PredSrc::TRUE
            }
        };
        if !x && self.shown(4) {
            return Err(Refused::Unimplemented);
        }
        let mut args = [(self.raw64(Operand::Imm(0))?, false, false); 2];
        for (i, s) in args.iter_mut().enumerate() {
            let arg = self.arg(2 + i)?;
            super::plain(&nv_proto::sass::Arg {
                neg: false,
                inv: false,
                ..arg
            })?;
            let pair = if wide {
                self.raw64(arg.operand)?
            } else {
                super::Pair {
                    lo: self.raw(arg.operand, 1)?,
                    hi: Raw::ZERO,
                }
            };
            *s = (pair, arg.neg, arg.inv);
        }
        let bits = if wide { 64 } else { 32 };
        alu(move |r, m| {
            let carry = carry.get(r);
            let (a, b) = (args[0].0.get(r), args[1].0.get(r));
            let ones = u64::MAX >> (64 - bits);
            let sums: [u128; LANES] = std::array::from_fn(|i| {
                let mut sum = u128::from(carry >> i & 1);
                for (value, (_, neg, inv)) in [(a[i], args[0]), (b[i], args[1])] {
                    sum += u128::from(if neg || inv { !value & ones } else { value })
                        + u128::from(neg);
                }
                sum
            });
            if wide {
                r.set64(d, m, &sums.map(|s| s as u64));
            } else {
                r.set(d, m, &sums.map(|s| s as u32));
            }
            r.set_pred(p, m, mask_of(|i| sums[i] >> bits != 0));
        })
    }

    fn lea(&mut self) -> Lower {
        let hi = self.flag(".HI");
        let x = self.flag(".X");
        let sign = self.flag(".SX32");
        let d = self.dst(0)?;
        let p = self.pred_dst(1)?;
        let (a, b) = (self.src_int(2)?, self.src_int(3)?);
        let shift = self.imm(5)? as u32 & 31;
        // Without HI the third register takes no part, printed or not.
        let c = if hi && !sign { self.src(4)? } else { Raw::ZERO };
        if !hi || sign {
            self.arg(4)?;
        }
        let carry = if x {
            self.pred(6)?
        } else {
            PredSrc {
                not: true,
                ..PredSrc::TRUE
            }
        };
        if !x && self.shown(6) {
            return Err(Refused::Unimplemented);
        }
        alu(move |r, m| {
            let carry = carry.get(r);
            let low = a.raw.get(r);
            let top = c.get(r);
            let (b, plus) = b.addend(r);
            let sums: Lanes64 = std::array::from_fn(|i| {
                let shifted = if !hi {
                    low[i] << shift
                } else if sign {
                    let wide = i64::from(low[i].cast_signed());
                    (wide << shift >> 32) as u32
                } else {
                    (pair(low[i], top[i]) << shift >> 32) as u32
                };
                let shifted = if a.neg || a.inv { !shifted } else { shifted };
                u64::from(shifted)
                    + u64::from(b[i])
                    + plus
                    + u64::from(a.neg)
                    + u64::from(carry >> i & 1)
            });
            r.set(d, m, &sums.map(|s| s as u32));
            r.set_pred(p, m, mask_of(|i| sums[i] >> 32 != 0));
        })
    }

    fn imnmx(&mut self) -> Lower {
        let signed = !self.flag(".U32");
        self.ignore(&[".S32"]);
        let relu = self.flag(".RELU");
        let split = self.one_of(&[
            (".S16x2", (16, true)),
            (".U16x2", (16, false)),
            (".S8x4", (8, true)),
            (".U8x4", (8, false)),
        ]);
        let wide = if self.flag(".U64") {
            Some(false)
        } else if self.flag(".S64") {
            Some(true)
        } else {
            None
        };
        if let Some(signed) = wide {
            return self.imnmx_wide(signed);
        }
        let d = self.dst(0)?;
        let at = self.skip(1)?;
        let (a, b, p) = (self.src(at)?, self.src(at + 1)?, self.pred(at + 2)?);
        if let Some((bits, signed)) = split {
            if relu {
                return Err(Refused::Unimplemented);
            }
            return alu(move |r, m| {
                let p = p.get(r);
                let (a, b) = (a.get(r), b.get(r));
                let v: Lanes = std::array::from_fn(|i| {
                    let min = p >> i & 1 != 0;
                    parts(bits, |n| {
                        let part = |x: u32| {
                            let x = x >> n;
                            if bits == 8 {
                                byte(x, 0, signed)
                            } else {
                                half(x, 0, signed)
                            }
                        };
                        min_max(part(a[i]), part(b[i]), signed, min)
                    })
                });
                r.set(d, m, &v);
            });
        }
        alu(move |r, m| {
            let p = p.get(r);
            let (a, b) = (a.get(r), b.get(r));
            let v: Lanes = std::array::from_fn(|i| {
                let min = p >> i & 1 != 0;
                let v = min_max(a[i], b[i], signed, min);
                if relu && v.cast_signed() < 0 { 0 } else { v }
            });
            r.set(d, m, &v);
        })
    }

    /// `sm_120`: pairs, with two predicates on either side that chain wider ones. Only the plain use is known.
    fn imnmx_wide(&mut self, signed: bool) -> Lower {
        for (at, expected) in [(0, false), (1, false), (6, true)] {
            let p = self.pred(at)?;
            if p.index != nv_proto::sass::PT || p.not != expected {
                return Err(Refused::Unimplemented);
            }
        }
        let (d, a, b, p) = (
            self.dst_of(2, 2)?,
            self.src64(3)?,
            self.src64(4)?,
            self.pred(5)?,
        );
        alu(move |r, m| {
            let p = p.get(r);
            let (a, b) = (a.get(r), b.get(r));
            let v: Lanes64 = std::array::from_fn(|i| {
                let less = if signed {
                    a[i].cast_signed() < b[i].cast_signed()
                } else {
                    a[i] < b[i]
                };
                if less == (p >> i & 1 != 0) {
                    a[i]
                } else {
                    b[i]
                }
            });
            r.set64(d, m, &v);
        })
    }

    fn imnmx3(&mut self) -> Lower {
        let signed = !self.flag(".U32");
        let relu = self.flag(".RELU");
        let add = self.inst.op == Op::Viaddmnmx;
        let d = self.dst(0)?;
        let s = [self.src_int(1)?, self.src_int(2)?, self.src_int(3)?];
        let p = self.pred(4)?;
        alu(move |r, m| {
            let p = p.get(r);
            let (a, b, c) = (s[0].get(r), s[1].get(r), s[2].get(r));
            let v: Lanes = std::array::from_fn(|i| {
                let min = p >> i & 1 != 0;
                let ab = if add {
                    a[i].wrapping_add(b[i])
                } else {
                    min_max(a[i], b[i], signed, min)
                };
                let v = min_max(ab, c[i], signed, min);
                if relu && v.cast_signed() < 0 { 0 } else { v }
            });
            r.set(d, m, &v);
        })
    }

    fn idp(&mut self) -> Lower {
        let four = self.flag(".4A");
        let two = self.flag(".2A");
        if four == two {
            return Err(Refused::Unimplemented);
        }
        // The two sources' signedness, in printed order.
        let types: Vec<&str> = self
            .inst
            .mods()
            .iter()
            .copied()
            .filter(|m| [".S8", ".U8", ".S16", ".U16"].contains(m))
            .collect();
        self.ignore(&[".S8", ".U8", ".S16", ".U16"]);
        let [ta, tb] = types[..] else {
            return Err(Refused::Unimplemented);
        };
        let (sa, sb) = (ta.starts_with(".S"), tb.starts_with(".S"));
        let high = self.flag(".HI");
        if two && !high && !self.flag(".LO") {
            return Err(Refused::Unimplemented);
        }
        let (d, a, b, c) = (self.dst(0)?, self.src(1)?, self.src(2)?, self.src(3)?);
        alu(move |r, m| {
            let v = map3(&a.get(r), &b.get(r), &c.get(r), |a, b, c| {
                let mut sum = c;
                for i in 0..if four { 4 } else { 2 } {
                    let (x, y) = if four {
                        (byte(a, i, sa), byte(b, i, sb))
                    } else {
                        (half(a, i, sa), byte(b, i + if high { 2 } else { 0 }, sb))
                    };
                    sum = sum.wrapping_add(x.wrapping_mul(y));
                }
                sum
            });
            r.set(d, m, &v);
        })
    }

    fn vabsdiff(&mut self) -> Lower {
        let d = self.dst(0)?;
        if self.shown(1) {
            return Err(Refused::Unimplemented);
        }
        if self.inst.op == Op::Vabsdiff4 {
            let signed = !self.flag(".U8");
            let add = self.flag(".ACC");
            let (a, b, c) = (self.src(2)?, self.src(3)?, self.src(4)?);
            if signed || (!add && c != Raw::ZERO) {
                return Err(Refused::Unimplemented);
            }
            return alu(move |r, m| {
                let v = map3(&a.get(r), &b.get(r), &c.get(r), |a, b, c| {
                    let diff = |i| byte(a, i, false).abs_diff(byte(b, i, false));
                    if add {
                        (0..4).fold(c, |sum, i| sum.wrapping_add(diff(i)))
                    } else {
                        (0..4).fold(0, |v, i| v | diff(i) << (8 * i))
                    }
                });
                r.set(d, m, &v);
            });
        }
        let signed = !self.flag(".U32");
        let (a, b, c) = (self.src(2)?, self.src(3)?, self.src(4)?);
        alu(move |r, m| {
            let v = map3(&a.get(r), &b.get(r), &c.get(r), |a, b, c| {
                let diff = if signed {
                    a.cast_signed().abs_diff(b.cast_signed())
                } else {
                    a.abs_diff(b)
                };
                diff.wrapping_add(c)
            });
            r.set(d, m, &v);
        })
    }

    fn isetp(&mut self) -> Lower {
        let compare = self.one_of(&COMPARISONS).ok_or(Refused::Unimplemented)?;
        let combine = self.combine()?;
        let ex = self.flag(".EX");
        let unsigned = self.flag(".U32");
        let wide = if self.flag(".U64") {
            Some(false)
        } else if self.flag(".S64") {
            Some(true)
        } else {
            None
        };
        let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
        let acc = self.pred(4)?;
        if let Some(signed) = wide {
            if ex || self.shown(5) {
                return Err(Refused::Unimplemented);
            }
            let (a, b) = (self.src64(2)?, self.src64(3)?);
            return alu(move |r, m| {
                let (a, b) = (a.get(r), b.get(r));
                let test = mask_of(|i| {
                    let order = if signed {
                        a[i].cast_signed().cmp(&b[i].cast_signed())
                    } else {
                        a[i].cmp(&b[i])
                    };
                    compare.test(order)
                });
                finish(r, m, test, combine, acc, p, q);
            });
        }
        let (a, b) = (self.src(2)?, self.src(3)?);
        let low = if ex { Some(self.pred(5)?) } else { None };
        if !ex && self.shown(5) {
            return Err(Refused::Unimplemented);
        }
        let bias = if unsigned { 0 } else { 0x8000_0000 };
        alu(move |r, m| {
            let (a, b) = (a.get(r), b.get(r));
            let test = match low {
                None => compare.mask(&a, &b, bias),
                Some(low) => {
                    let low = low.get(r);
                    mask_of(|i| {
                        let low = low >> i & 1 != 0;
                        let order = (a[i] ^ bias).cmp(&(b[i] ^ bias));
                        match compare {
                            Compare::F => false,
                            Compare::T => true,
                            Compare::Ne => order.is_ne() || low,
                            Compare::Eq => order.is_eq() && low,
                            Compare::Lt | Compare::Le => order.is_lt() || (order.is_eq() && low),
                            Compare::Gt | Compare::Ge => order.is_gt() || (order.is_eq() && low),
                        }
                    })
                }
            };
            finish(r, m, test, combine, acc, p, q);
        })
    }

    /// How a comparison joins the accumulated predicate.
    pub(super) fn combine(&mut self) -> Result<Combine, Refused> {
        self.one_of(&[
            (".AND", Combine::And),
            (".OR", Combine::Or),
            (".XOR", Combine::Xor),
        ])
        .ok_or(Refused::Unimplemented)
    }
}

/// Writes the two results of a comparison: `p` from it, `q` from its opposite.
pub(super) fn finish(
    r: &mut Regs,
    m: u32,
    test: u32,
    how: Combine,
    acc: PredSrc,
    p: PredDst,
    q: PredDst,
) {
    let acc = acc.get(r);
    let (yes, no) = (how.join(test, acc), how.join(!test, acc));
    r.set_pred(q, m, no);
    r.set_pred(p, m, yes);
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Combine {
    And,
    Or,
    Xor,
}

impl Combine {
    pub fn join(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Compare {
    F,
    Lt,
    Eq,
    Le,
    Gt,
    Ne,
    Ge,
    T,
}

impl Compare {
    fn test(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::F => false,
            Self::T => true,
            Self::Lt => order.is_lt(),
            Self::Eq => order.is_eq(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ne => order.is_ne(),
            Self::Ge => order.is_ge(),
        }
    }

    #[inline]
    fn mask(self, a: &Lanes, b: &Lanes, bias: u32) -> u32 {
        match self {
            Self::F => 0,
            Self::T => ALL,
            Self::Lt => mask_of(|i| (a[i] ^ bias) < (b[i] ^ bias)),
            Self::Eq => mask_of(|i| a[i] == b[i]),
            Self::Le => mask_of(|i| (a[i] ^ bias) <= (b[i] ^ bias)),
            Self::Gt => mask_of(|i| (a[i] ^ bias) > (b[i] ^ bias)),
            Self::Ne => mask_of(|i| a[i] != b[i]),
            Self::Ge => mask_of(|i| (a[i] ^ bias) >= (b[i] ^ bias)),
        }
    }
}

const COMPARISONS: [(&str, Compare); 8] = [
    (".F", Compare::F),
    (".LT", Compare::Lt),
    (".EQ", Compare::Eq),
    (".LE", Compare::Le),
    (".GT", Compare::Gt),
    (".NE", Compare::Ne),
    (".GE", Compare::Ge),
    (".T", Compare::T),
];

#[inline]
fn product(a: u32, b: u32, signed: bool) -> u64 {
    if signed {
        i64::from(a.cast_signed())
            .wrapping_mul(i64::from(b.cast_signed()))
            .cast_unsigned()
    } else {
        u64::from(a) * u64::from(b)
    }
}

fn min_max(a: u32, b: u32, signed: bool, min: bool) -> u32 {
    let less = if signed {
        a.cast_signed() < b.cast_signed()
    } else {
        a < b
    };
    if less == min { a } else { b }
}

/// A word made of parts of so many bits, each given by where it starts.
fn parts(bits: u32, f: impl Fn(u32) -> u32) -> u32 {
    let ones = (1 << bits) - 1;
    let mut v = 0;
    let mut n = 0;
    while n < 32 {
        v |= (f(n) & ones) << n;
        n += bits;
    }
    v
}

fn byte(x: u32, i: u32, signed: bool) -> u32 {
    let byte = (x >> (8 * i)) as u8;
    if signed {
        i32::from(byte.cast_signed()).cast_unsigned()
    } else {
        u32::from(byte)
    }
}

fn half(x: u32, i: u32, signed: bool) -> u32 {
    let half = (x >> (16 * i)) as u16;
    if signed {
        i32::from(half.cast_signed()).cast_unsigned()
    } else {
        u32::from(half)
    }
}
