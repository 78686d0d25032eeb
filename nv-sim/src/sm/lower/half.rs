//! Half precision, two values a register: binary16, or bfloat16 with `.BF16_V2`.

use nv_proto::sass::{Arg, Op, Operand};

use super::float::Relation;
use super::{Args, Lower, Refused, alu, plain};
use crate::sm::ieee::{self, BF16, F16, F32, F64, Format, Number, Round};
use crate::sm::regs::{Lanes, Raw, Regs, mask_of};

impl Args<'_> {
    pub(super) fn half(&mut self) -> Lower {
        let format = if self.flag(".BF16_V2") { BF16 } else { F16 };
        match self.inst.op {
            Op::Hadd2 | Op::Hmul2 | Op::Hfma2 => self.half_arithmetic(format),
            Op::Hsetp2 => self.hsetp2(format),
            Op::Hset2 => {
                let relation = self.relation()?;
                let combine = self.combine()?;
                let ftz = self.flag(".FTZ");
                let one = format.pack(F32.unpack(0x3f80_0000), Round::Near) as u32;
                let yes = if self.flag(".BF") { one } else { 0xffff };
                let d = self.dst(0)?;
                let (a, at) = self.half_src(1)?;
                let (b, at) = self.half_src(at)?;
                let acc = self.pred(at)?;
                alu(move |r, m| {
                    let [low, high] = compare(relation, format, ftz, &a.get(r), &b.get(r));
                    let acc = acc.get(r);
                    let (low, high) = (combine.join(low, acc), combine.join(high, acc));
                    let v: Lanes = std::array::from_fn(|i| {
                        (if low >> i & 1 != 0 { yes } else { 0 })
                            | (if high >> i & 1 != 0 { yes << 16 } else { 0 })
                    });
                    r.set(d, m, &v);
                })
            }
            Op::Hmnmx2 => self.hmnmx2(format),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn half_arithmetic(&mut self, format: Format) -> Lower {
        self.ignore(&[".MMA"]);
        let ftz = self.flag(".FTZ");
        let sat = self.flag(".SAT");
        let relu = self.flag(".RELU");
        let wide = self.flag(".F32");
        let operation = self.inst.op;
        if wide && operation != Op::Hadd2 {
            return Err(Refused::Unimplemented);
        }
        let d = self.dst(0)?;
        let (a, at) = self.half_src(1)?;
        let (b, at) = self.half_src(at)?;
        let (c, at) = if operation == Op::Hfma2 {
            self.half_src(at)?
        } else {
            (HalfSrc::ZERO, at)
        };
        if at < self.count() && self.shown(at) {
            return Err(Refused::Unimplemented);
        }
        if operation == Op::Hfma2
            && a.is_zero()
            && b.is_zero()
            && a.flip != b.flip
            && !(ftz || sat || relu)
        {
            // -0 * 0 + c is c: the compiler's way to load a constant, whatever its bits.
            return alu(move |r, m| {
                let v = c.get(r);
                r.set(d, m, &v);
            });
        }
        let one = F32.unpack(0x3f80_0000);
        alu(move |r, m| {
            let (a, b, c) = (a.get(r), b.get(r), c.get(r));
            let unpack = |x: u32, high: bool| {
                let bits = u64::from(if high { x >> 16 } else { x & 0xffff });
                format.unpack(if ftz { format.flush(bits) } else { bits })
            };
            let compute = |i: usize, high: bool| -> Number {
                let (a, b) = (unpack(a[i], high), unpack(b[i], high));
                match operation {
                    Op::Hadd2 => ieee::fma(a, one, b, Round::Near),
                    Op::Hmul2 => super::float::multiply(a, b),
                    _ => ieee::fma(a, b, unpack(c[i], high), Round::Near),
                }
            };
            let v: Lanes = std::array::from_fn(|i| {
                if m >> i & 1 == 0 {
                    return 0;
                }
                if wide {
                    let v = F32.pack(compute(i, false), Round::Near) as u32;
                    let v = if ftz { super::float::flush(v) } else { v };
                    return if sat { super::float::saturate(v) } else { v };
                }
                let finish = |number: Number| {
                    let bits = format.pack(number, Round::Near);
                    let bits = if ftz { format.flush(bits) } else { bits };
                    clamp(bits as u32, format, sat, relu)
                };
                finish(compute(i, false)) | finish(compute(i, true)) << 16
            });
            r.set(d, m, &v);
        })
    }

    fn hsetp2(&mut self, format: Format) -> Lower {
        let relation = self.relation()?;
        let combine = self.combine()?;
        let ftz = self.flag(".FTZ");
        let both = self.flag(".H_AND");
        let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
        let (a, at) = self.half_src(2)?;
        let (b, at) = self.half_src(at)?;
        let acc = self.pred(at)?;
        alu(move |r, m| {
            let [low, high] = compare(relation, format, ftz, &a.get(r), &b.get(r));
            let acc = acc.get(r);
            let (yes, no) = if both {
                (
                    combine.join(low & high, acc),
                    combine.join(!(low & high), acc),
                )
            } else {
                (combine.join(low, acc), combine.join(high, acc))
            };
            r.set_pred(q, m, no);
            r.set_pred(p, m, yes);
        })
    }

    fn hmnmx2(&mut self, format: Format) -> Lower {
        let ftz = self.flag(".FTZ");
        let nan = self.flag(".NAN");
        let d = self.dst(0)?;
        let at = self.skip(1)?;
        let (a, at) = self.half_src(at)?;
        let (b, at) = self.half_src(at)?;
        let p = self.pred(at)?;
        alu(move |r, m| {
            let p = p.get(r);
            let (a, b) = (a.get(r), b.get(r));
            let v: Lanes = std::array::from_fn(|i| {
                let pick = |shift: u32| {
                    let get = |x: u32| {
                        let bits = u64::from(x >> shift & 0xffff);
                        if ftz { format.flush(bits) } else { bits }
                    };
                    (min_max(get(a[i]), get(b[i]), format, p >> i & 1 != 0, nan) as u32) << shift
                };
                pick(0) | pick(16)
            });
            r.set(d, m, &v);
        })
    }

    /// A source of two halves, which is two operands where they are immediates. Gives the next operand's index.
    fn half_src(&mut self, at: usize) -> Result<(HalfSrc, usize), Refused> {
        let arg = self.arg(at)?;
        plain(&Arg {
            neg: false,
            abs: false,
            suffix: "",
            ..arg
        })?;
        let flip = if arg.neg { 0x8000_8000 } else { 0 };
        let keep = if arg.abs { 0x7fff_7fff } else { u32::MAX };
        if let Operand::F16(high) = arg.operand {
            let Operand::F16(low) = self.arg(at + 1)?.operand else {
                return Err(Refused::Unimplemented);
            };
            let raw = Raw::Imm(u32::from(high) << 16 | u32::from(low));
            return Ok((
                HalfSrc {
                    raw,
                    pick: Pick::Both,
                    keep,
                    flip,
                },
                at + 2,
            ));
        }
        let pick = match arg.suffix {
            "" => Pick::Both,
            ".H0_H0" => Pick::Low,
            ".H1_H1" => Pick::High,
            _ => return Err(Refused::Unimplemented),
        };
        Ok((
            HalfSrc {
                raw: self.raw(arg.operand, 1)?,
                pick,
                keep,
                flip,
            },
            at + 1,
        ))
    }
}

#[derive(Clone, Copy)]
enum Pick {
    Both,
    Low,
    High,
}

/// A source of two halves.
#[derive(Clone, Copy)]
struct HalfSrc {
    raw: Raw,
    pick: Pick,
    keep: u32,
    flip: u32,
}

impl HalfSrc {
    const ZERO: Self = Self {
        raw: Raw::ZERO,
        pick: Pick::Both,
        keep: u32::MAX,
        flip: 0,
    };

    fn is_zero(self) -> bool {
        self.raw == Raw::ZERO
    }

    fn get(self, regs: &Regs) -> Lanes {
        let v = self.raw.get(regs);
        std::array::from_fn(|i| {
            let x = match self.pick {
                Pick::Both => v[i],
                Pick::Low => (v[i] & 0xffff) * 0x1_0001,
                Pick::High => (v[i] >> 16) * 0x1_0001,
            };
            (x & self.keep) ^ self.flip
        })
    }
}

fn value(format: Format, bits: u64) -> f64 {
    match format.unpack(bits) {
        Number::Nan => f64::NAN,
        number => f64::from_bits(F64.pack(number, Round::Near)),
    }
}

/// The lanes whose low halves and whose high halves stand in the relation.
fn compare(relation: Relation, format: Format, ftz: bool, a: &Lanes, b: &Lanes) -> [u32; 2] {
    [0, 16].map(|shift| {
        mask_of(|i| {
            let get = |x: u32| {
                let bits = u64::from(x >> shift & 0xffff);
                value(format, if ftz { format.flush(bits) } else { bits })
            };
            relation.test(get(a[i]), get(b[i]))
        })
    })
}

fn clamp(bits: u32, format: Format, sat: bool, relu: bool) -> u32 {
    if !sat && !relu {
        return bits;
    }
    if format.is_nan(u64::from(bits)) {
        // Saturation turns a NaN into zero; the rectifier keeps it.
        return if sat { 0 } else { bits };
    }
    let one = format.pack(F32.unpack(0x3f80_0000), Round::Near) as u32;
    if bits & 0x8000 != 0 {
        0
    } else if sat {
        bits.min(one)
    } else {
        bits
    }
}

fn min_max(a: u64, b: u64, format: Format, min: bool, nan: bool) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan(),
        (true, false) | (false, true) if nan => return format.nan(),
        (true, false) => return b,
        (false, true) => return a,
        _ => {}
    }
    let key = |x: u64| {
        if x >> 15 & 1 != 0 {
            !x & 0xffff
        } else {
            x | 0x8000
        }
    };
    if (key(a) < key(b)) == min { a } else { b }
}
