//! Logic, shifts, bit fields, selection, predicates as bits.

use nv_proto::sass::{Op, Operand};

use super::{Args, Lower, Refused, alu};
use crate::sm::regs::{ALL, LANES, Lanes, PredDst, Raw, Regs, map1, map2, map3, mask_of, pair};

impl Args<'_> {
    pub(super) fn logic(&mut self) -> Lower {
        match self.inst.op {
            Op::Lop3 | Op::Ulop3 => self.lop3(),
            Op::Plop3 => self.plop3(),
            Op::Shf | Op::Ushf => self.shf(),
            Op::Prmt | Op::Uprmt => self.prmt(),
            Op::Sel | Op::Usel => self.sel(),
            Op::Sgxt | Op::Usgxt => {
                let unsigned = self.flag(".U32");
                let wrap = self.flag(".W");
                let (d, a, n) = (self.dst(0)?, self.src(1)?, self.src(2)?);
                alu(move |r, m| {
                    let v = map2(&a.get(r), &n.get(r), |a, n| {
                        let n = if wrap { n & 31 } else { n };
                        match n {
                            0 => 0,
                            32.. => a,
                            _ if unsigned => a & (u32::MAX >> (32 - n)),
                            _ => ((a << (32 - n)).cast_signed() >> (32 - n)).cast_unsigned(),
                        }
                    });
                    r.set(d, m, &v);
                })
            }
            Op::Bmsk | Op::Ubmsk => {
                let wrap = self.flag(".W");
                let (d, a, n) = (self.dst(0)?, self.src(1)?, self.src(2)?);
                alu(move |r, m| {
                    let v = map2(&a.get(r), &n.get(r), |pos, width| {
                        let (pos, width) = if wrap {
                            (pos & 31, width & 31)
                        } else {
                            (pos, width)
                        };
                        let ones = if width >= 32 {
                            u32::MAX
                        } else {
                            (1 << width) - 1
                        };
                        if pos >= 32 { 0 } else { ones << pos }
                    });
                    r.set(d, m, &v);
                })
            }
            Op::Popc | Op::Upopc => self.unary(u32::count_ones),
            Op::Brev | Op::Ubrev => self.unary(u32::reverse_bits),
            Op::Flo | Op::Uflo => self.flo(),
            Op::R2p => self.r2p(),
            Op::P2r => self.p2r(),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// One source that may be complemented.
    fn unary(&mut self, f: fn(u32) -> u32) -> Lower {
        let (d, a) = (self.dst(0)?, self.src_inv(1)?);
        alu(move |r, m| {
            let v = map1(&a.0.get(r), |x| f(x ^ a.1));
            r.set(d, m, &v);
        })
    }

    /// A source that may be complemented, with the mask that does it.
    fn src_inv(&mut self, at: usize) -> Result<(Raw, u32), Refused> {
        let a = self.src_int(at)?;
        if a.neg {
            Err(Refused::Unimplemented)
        } else {
            Ok((a.raw, if a.inv { u32::MAX } else { 0 }))
        }
    }

    fn flo(&mut self) -> Lower {
        let unsigned = self.flag(".U32");
        let shift = self.flag(".SH");
        let d = self.dst(0)?;
        let p = self.pred_dst(1)?;
        let a = self.src_inv(2)?;
        if self.shown(1) && p != PredDst::None {
            // Whether anything was found; which way round is not known.
            return Err(Refused::Unimplemented);
        }
        alu(move |r, m| {
            let v = map1(&a.0.get(r), |x| {
                let x = x ^ a.1;
                let x = if !unsigned && x.cast_signed() < 0 {
                    !x
                } else {
                    x
                };
                match x.checked_ilog2() {
                    None => u32::MAX,
                    Some(n) if shift => 31 - n,
                    Some(n) => n,
                }
            });
            r.set(d, m, &v);
        })
    }

    fn lop3(&mut self) -> Lower {
        self.ignore(&[".LUT"]);
        let and = self.flag(".PAND");
        let p = self.pred_dst(0)?;
        let d = self.dst(1)?;
        let (a, b, c) = (self.src_inv(2)?, self.src_inv(3)?, self.src_inv(4)?);
        let lut = self.imm(5)? as u8;
        let q = self.pred(6)?;
        alu(move |r, m| {
            let (a, b, c) = (xor(a, r), xor(b, r), xor(c, r));
            let v = lut3(&a, &b, &c, lut);
            if p != PredDst::None {
                let q = q.get(r);
                let set = mask_of(|i| v[i] != 0);
                r.set_pred(p, m, if and { set & q } else { set | q });
            }
            r.set(d, m, &v);
        })
    }

    fn plop3(&mut self) -> Lower {
        self.ignore(&[".LUT"]);
        let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
        let (first, second) = (self.imm(5)? as u8, self.imm(6)? as u8);
        if self.is_pred(2) {
            let s = [self.pred(2)?, self.pred(3)?, self.pred(4)?];
            return alu(move |r, m| {
                let s = s.map(|s| s.get(r));
                let (one, two) = (lut_bits(s, first), lut_bits(s, second));
                r.set_pred(p, m, one);
                r.set_pred(q, m, two);
            });
        }
        let mut s = [(Raw::ZERO, 0_u32); 3];
        for (i, s) in s.iter_mut().enumerate() {
            let arg = self.arg(2 + i)?;
            super::plain(&nv_proto::sass::Arg {
                suffix: "",
                inv: false,
                ..arg
            })?;
            if arg.suffix != ".SIGN" {
                return Err(Refused::Unimplemented);
            }
            *s = (
                self.raw(arg.operand, 1)?,
                if arg.inv { u32::MAX } else { 0 },
            );
        }
        alu(move |r, m| {
            let s = s.map(|s| {
                let v = xor(s, r);
                mask_of(|i| v[i] >> 31 != 0)
            });
            let (one, two) = (lut_bits(s, first), lut_bits(s, second));
            r.set_pred(p, m, one);
            r.set_pred(q, m, two);
        })
    }

    fn shf(&mut self) -> Lower {
        let left = self.flag(".L");
        if !left && !self.flag(".R") {
            return Err(Refused::Unimplemented);
        }
        let wrap = self.flag(".W");
        let (bits, signed) = self
            .one_of(&[
                (".U32", (32, false)),
                (".S32", (32, true)),
                (".U64", (64, false)),
                (".S64", (64, true)),
            ])
            .ok_or(Refused::Unimplemented)?;
        let high = self.flag(".HI");
        let d = self.dst(0)?;
        let (lo, n, hi) = (self.src(1)?, self.src(2)?, self.src(3)?);
        alu(move |r, m| {
            let v = map3(&lo.get(r), &n.get(r), &hi.get(r), |lo, n, hi| {
                let x = pair(lo, hi);
                let n = if wrap { n & (bits - 1) } else { n.min(bits) };
                let shifted = match (left, signed) {
                    (true, _) => x.checked_shl(n).unwrap_or(0),
                    (false, false) => x.checked_shr(n).unwrap_or(0),
                    (false, true) => (x.cast_signed() >> n.min(63)).cast_unsigned(),
                };
                if high {
                    (shifted >> 32) as u32
                } else {
                    shifted as u32
                }
            });
            r.set(d, m, &v);
        })
    }

    fn prmt(&mut self) -> Lower {
        let mode = self
            .one_of(&[
                (".F4E", 1),
                (".B4E", 2),
                (".RC8", 3),
                (".ECL", 4),
                (".ECR", 5),
                (".RC16", 6),
            ])
            .unwrap_or(0);
        let d = self.dst(0)?;
        let (a, s, b) = (self.src(1)?, self.src(2)?, self.src(3)?);
        alu(move |r, m| {
            let v = map3(&a.get(r), &s.get(r), &b.get(r), |a, s, b| {
                permute(a, s, b, mode)
            });
            r.set(d, m, &v);
        })
    }

    fn sel(&mut self) -> Lower {
        let p = self.pred(3)?;
        if self.flag(".64") {
            let (d, a, b) = (self.dst_of(0, 2)?, self.src64(1)?, self.src64(2)?);
            return alu(move |r, m| {
                let p = p.get(r);
                let (a, b) = (a.get(r), b.get(r));
                let v = std::array::from_fn(|i| if p >> i & 1 != 0 { a[i] } else { b[i] });
                r.set64(d, m, &v);
            });
        }
        let (d, a, b) = (self.dst(0)?, self.src_inv(1)?, self.src_inv(2)?);
        alu(move |r, m| {
            let p = p.get(r);
            let (a, b) = (xor(a, r), xor(b, r));
            let v: Lanes = std::array::from_fn(|i| if p >> i & 1 != 0 { a[i] } else { b[i] });
            r.set(d, m, &v);
        })
    }

    fn r2p(&mut self) -> Lower {
        self.arg(0)?;
        let arg = self.arg(1)?;
        let shift = byte_shift(arg.suffix)?;
        super::plain(&nv_proto::sass::Arg { suffix: "", ..arg })?;
        let a = self.raw(arg.operand, 1)?;
        let which = self.imm(2)? as u8;
        alu(move |r, m| {
            let v = a.get(r);
            for n in 0..7 {
                if which >> n & 1 != 0 {
                    let bit = mask_of(|i| v[i] >> (shift + u32::from(n)) & 1 != 0);
                    r.set_pred(PredDst::Pred(n), m, bit);
                }
            }
        })
    }

    fn p2r(&mut self) -> Lower {
        let shift = self
            .one_of(&[(".B1", 8), (".B2", 16), (".B3", 24)])
            .unwrap_or(0);
        let d = self.dst(0)?;
        if self.arg(1)?.operand != Operand::Word("PR") {
            return Err(Refused::Unimplemented);
        }
        let a = self.src(2)?;
        let which = self.imm(3)? as u32 & 0x7f;
        alu(move |r, m| {
            let mut v = map1(&a.get(r), |x| x & !(which << shift));
            for n in 0..7 {
                if which >> n & 1 != 0 {
                    let p = r.pred(n);
                    for (i, v) in v.iter_mut().enumerate() {
                        *v |= (p >> i & 1) << (shift + u32::from(n));
                    }
                }
            }
            r.set(d, m, &v);
        })
    }
}

fn byte_shift(suffix: &str) -> Result<u32, Refused> {
    match suffix {
        "" => Ok(0),
        ".B1" => Ok(8),
        ".B2" => Ok(16),
        ".B3" => Ok(24),
        _ => Err(Refused::Unimplemented),
    }
}

#[inline]
fn xor((raw, flip): (Raw, u32), r: &Regs) -> Lanes {
    let v = raw.get(r);
    if flip == 0 { v } else { map1(&v, |x| x ^ flip) }
}

/// The truth table applied to every bit.
#[inline]
fn lut3(a: &Lanes, b: &Lanes, c: &Lanes, lut: u8) -> Lanes {
    match lut {
        0xc0 => map2(a, b, |a, b| a & b),
        0xfc => map2(a, b, |a, b| a | b),
        0x3c => map2(a, b, |a, b| a ^ b),
        0xf8 => map3(a, b, c, |a, b, c| a | (b & c)),
        0x96 => map3(a, b, c, |a, b, c| a ^ b ^ c),
        _ => {
            let mut v = [0; LANES];
            for row in 0..8 {
                if lut >> row & 1 != 0 {
                    let flip = |bit: u8| if row & bit != 0 { 0 } else { ALL };
                    let (fa, fb, fc) = (flip(4), flip(2), flip(1));
                    for i in 0..LANES {
                        v[i] |= (a[i] ^ fa) & (b[i] ^ fb) & (c[i] ^ fc);
                    }
                }
            }
            v
        }
    }
}

fn lut_bits([a, b, c]: [u32; 3], lut: u8) -> u32 {
    let mut v = 0;
    for row in 0..8_u8 {
        if lut >> row & 1 != 0 {
            let flip = |bit: u8| if row & bit != 0 { 0 } else { ALL };
            v |= (a ^ flip(4)) & (b ^ flip(2)) & (c ^ flip(1));
        }
    }
    v
}

#[inline]
fn permute(a: u32, s: u32, b: u32, mode: u8) -> u32 {
    let bytes = pair(a, b);
    let byte = |i: u32| (bytes >> (8 * (i & 7))) as u32 & 0xff;
    let n = s & 3;
    let pick = |f: &dyn Fn(u32) -> u32| (0..4).fold(0, |v, i| v | byte(f(i)) << (8 * i));
    match mode {
        0 => {
            let mut v = 0;
            for i in 0..4 {
                let nibble = s >> (4 * i) & 15;
                let mut x = byte(nibble);
                if nibble & 8 != 0 {
                    x = if x & 0x80 != 0 { 0xff } else { 0 };
                }
                v |= x << (8 * i);
            }
            v
        }
        1 => pick(&|i| n + i),
        2 => pick(&|i| n.wrapping_sub(i)),
        3 => pick(&|_| n),
        4 => pick(&|i| i.max(n)),
        5 => pick(&|i| i.min(n)),
        _ => pick(&|i| 2 * (n & 1) + (i & 1)),
    }
}
