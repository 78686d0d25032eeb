//! Conversions between formats.

use nv_proto::sass::{Arg, Op, Operand};

use super::{Args, Lower, Refused, alu, plain};
use crate::sm::ieee::{self, BF16, F16, F32, F64, Format, Number, Round};
use crate::sm::regs::{Dst, Lanes, Lanes64, Raw, Regs};

/// An integer type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Int {
    bits: u32,
    signed: bool,
}

const INTS: [(&str, Int); 8] = [
    (
        ".U8",
        Int {
            bits: 8,
            signed: false,
        },
    ),
    (
        ".S8",
        Int {
            bits: 8,
            signed: true,
        },
    ),
    (
        ".U16",
        Int {
            bits: 16,
            signed: false,
        },
    ),
    (
        ".S16",
        Int {
            bits: 16,
            signed: true,
        },
    ),
    (
        ".U32",
        Int {
            bits: 32,
            signed: false,
        },
    ),
    (
        ".S32",
        Int {
            bits: 32,
            signed: true,
        },
    ),
    (
        ".U64",
        Int {
            bits: 64,
            signed: false,
        },
    ),
    (
        ".S64",
        Int {
            bits: 64,
            signed: true,
        },
    ),
];

const S32: Int = Int {
    bits: 32,
    signed: true,
};

const FORMATS: [(&str, Format); 4] = [(".F16", F16), (".BF16", BF16), (".F32", F32), (".F64", F64)];

impl Args<'_> {
    pub(super) fn convert(&mut self) -> Lower {
        match self.inst.op {
            Op::F2f => {
                let mods: Vec<Format> = self
                    .inst
                    .mods()
                    .iter()
                    .filter_map(|m| FORMATS.iter().find(|f| f.0 == *m).map(|f| f.1))
                    .collect();
                self.ignore(&[".F16", ".BF16", ".F32", ".F64"]);
                let [to, from] = mods[..] else {
                    return Err(Refused::Unimplemented);
                };
                let round = self.round();
                let ftz = self.flag(".FTZ");
                let (d, a) = (self.float_dst(0, to)?, self.float_src(1, from)?);
                alu(move |r, m| {
                    let v = a.get(r);
                    let v: Lanes64 = std::array::from_fn(|i| {
                        let bits = if ftz { from.flush(v[i]) } else { v[i] };
                        let bits = to.pack(from.unpack(bits), round);
                        if ftz && to == F32 {
                            to.flush(bits)
                        } else {
                            bits
                        }
                    });
                    store(r, d, to == F64, m, &v);
                })
            }
            Op::Frnd => {
                let format = self.one_of(&FORMATS).unwrap_or(F32);
                let round = self.rounding();
                let ftz = self.flag(".FTZ");
                let (d, a) = (self.float_dst(0, format)?, self.float_src(1, format)?);
                alu(move |r, m| {
                    let v = a.get(r);
                    let v: Lanes64 = std::array::from_fn(|i| {
                        let bits = if ftz { format.flush(v[i]) } else { v[i] };
                        integral(bits, format, round)
                    });
                    store(r, d, format == F64, m, &v);
                })
            }
            Op::F2i | Op::Uf2i => {
                let to = self.one_of(&INTS).unwrap_or(S32);
                let from = self.one_of(&FORMATS).unwrap_or(F32);
                let round = self.rounding();
                let ftz = self.flag(".FTZ");
                // Says what a NaN gives; zero either way, except for 64-bit results.
                self.ignore(&[".NTZ"]);
                let wide = to.bits == 64;
                let d = self.dst_of(0, if wide { 2 } else { 1 })?;
                let a = self.float_src(1, from)?;
                alu(move |r, m| {
                    let v = a.get(r);
                    let v: Lanes64 = std::array::from_fn(|i| {
                        let bits = if ftz { from.flush(v[i]) } else { v[i] };
                        clamp(ieee::to_integer(from.unpack(bits), round), to)
                    });
                    store(r, d, wide, m, &v);
                })
            }
            Op::I2f | Op::Ui2f | Op::I2fp | Op::Ui2fp => {
                let from = self.one_of(&INTS).unwrap_or(S32);
                let to = self.one_of(&FORMATS).unwrap_or(F32);
                let round = self.round();
                let (d, a) = (self.float_dst(0, to)?, self.int_src(1, from)?);
                alu(move |r, m| {
                    let v = a.get(r);
                    let v: Lanes64 = std::array::from_fn(|i| {
                        let negative = from.signed && v[i].cast_signed() < 0;
                        let magnitude = if negative { v[i].wrapping_neg() } else { v[i] };
                        let number = Number::Finite {
                            negative,
                            significand: u128::from(magnitude),
                            scale: 0,
                        };
                        to.pack(number, round)
                    });
                    store(r, d, to == F64, m, &v);
                })
            }
            Op::I2i => {
                let to = self
                    .one_of(&[INTS[0], INTS[1], INTS[2], INTS[3]])
                    .ok_or(Refused::Unimplemented)?;
                if !self.flag(".S32") || !self.flag(".SAT") {
                    return Err(Refused::Unimplemented);
                }
                let (d, a) = (self.dst(0)?, self.src(1)?);
                alu(move |r, m| {
                    let v = a.get(r).map(|x| {
                        let x = x.cast_signed();
                        clamp(Some((x < 0, u128::from(x.unsigned_abs()))), to) as u32
                    });
                    r.set(d, m, &v);
                })
            }
            Op::F2fp => self.f2fp(),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn f2fp(&mut self) -> Lower {
        if !self.flag(".PACK_AB") {
            return Err(Refused::Unimplemented);
        }
        let to = if self.flag(".BF16") { BF16 } else { F16 };
        self.ignore(&[".F16", ".F32"]);
        let round = if self.flag(".RZ") {
            Round::Zero
        } else {
            Round::Near
        };
        let relu = self.flag(".RELU");
        let d = self.dst(0)?;
        let (a, b) = (self.src_f32(1)?, self.src_f32(2)?);
        alu(move |r, m| {
            let (a, b) = (a.get(r), b.get(r));
            let one = |x: u32| {
                let bits = to.pack(F32.unpack(u64::from(x)), round) as u32;
                if relu && bits & 0x8000 != 0 { 0 } else { bits }
            };
            let v: Lanes = std::array::from_fn(|i| one(a[i]) << 16 | one(b[i]));
            r.set(d, m, &v);
        })
    }

    /// The rounding to an integer.
    fn rounding(&mut self) -> Round {
        self.one_of(&[
            (".FLOOR", Round::Down),
            (".CEIL", Round::Up),
            (".TRUNC", Round::Zero),
        ])
        .unwrap_or(Round::Near)
    }

    fn float_dst(&mut self, at: usize, format: Format) -> Result<Dst, Refused> {
        self.dst_of(at, if format == F64 { 2 } else { 1 })
    }

    fn float_src(&mut self, at: usize, format: Format) -> Result<Source, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg {
            neg: false,
            abs: false,
            suffix: "",
            ..arg
        })?;
        let (bits, shift) = match (format, arg.suffix) {
            (F64, "") => (64, 0),
            (F32, "") => (32, 0),
            (F16 | BF16, "" | ".H0_H0" | ".H0") => (16, 0),
            (F16 | BF16, ".H1" | ".H1_H1") => (16, 16),
            _ => return Err(Refused::Unimplemented),
        };
        let (lo, hi) = self.words(arg.operand, bits)?;
        Ok(Source {
            lo,
            hi,
            bits,
            shift,
            signed: false,
            neg: arg.neg,
            abs: arg.abs,
        })
    }

    fn int_src(&mut self, at: usize, from: Int) -> Result<Source, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg { suffix: "", ..arg })?;
        let shift = match arg.suffix {
            "" | ".B0" | ".H0" => 0,
            ".B1" => 8,
            ".B2" | ".H1" => 16,
            ".B3" => 24,
            _ => return Err(Refused::Unimplemented),
        };
        let (lo, hi) = self.words(arg.operand, from.bits)?;
        Ok(Source {
            lo,
            hi,
            bits: from.bits,
            shift,
            signed: from.signed,
            neg: false,
            abs: false,
        })
    }

    fn words(&self, operand: Operand, bits: u32) -> Result<(Raw, Raw), Refused> {
        if bits == 64 {
            let pair = self.raw64(operand)?;
            Ok((pair.lo, pair.hi))
        } else {
            Ok((self.raw(operand, 1)?, Raw::ZERO))
        }
    }
}

/// A source of any width, as 64 bits.
#[derive(Clone, Copy)]
struct Source {
    lo: Raw,
    hi: Raw,
    bits: u32,
    shift: u32,
    signed: bool,
    neg: bool,
    abs: bool,
}

impl Source {
    fn get(self, regs: &Regs) -> Lanes64 {
        let (lo, hi) = (self.lo.get(regs), self.hi.get(regs));
        let unused = 64 - self.bits;
        let sign = 1 << (self.bits - 1);
        std::array::from_fn(|i| {
            let x = (u64::from(hi[i]) << 32 | u64::from(lo[i])) >> self.shift << unused;
            let x = if self.signed {
                (x.cast_signed() >> unused).cast_unsigned()
            } else {
                x >> unused
            };
            let x = if self.abs { x & !sign } else { x };
            if self.neg { x ^ sign } else { x }
        })
    }
}

fn store(r: &mut Regs, d: Dst, wide: bool, m: u32, v: &Lanes64) {
    if wide {
        r.set64(d, m, v);
    } else {
        r.set(d, m, &v.map(|x| x as u32));
    }
}

/// Rounded to a value without fraction; the sign of zero stays.
fn integral(bits: u64, format: Format, round: Round) -> u64 {
    let number = format.unpack(bits);
    let Number::Finite { negative, .. } = number else {
        return if number == Number::Nan {
            format.nan()
        } else {
            bits
        };
    };
    match ieee::to_integer(number, round) {
        // Beyond the significand there is no fraction to drop.
        Some((_, magnitude)) if magnitude < 1 << 100 => format.pack(
            Number::Finite {
                negative,
                significand: magnitude,
                scale: 0,
            },
            Round::Near,
        ),
        _ => bits,
    }
}

/// Saturated to an integer type and extended to 64 bits; a NaN is 0, in 64 bits the sign bit alone.
fn clamp(value: Option<(bool, u128)>, to: Int) -> u64 {
    let Some((negative, magnitude)) = value else {
        return if to.bits == 64 { 1 << 63 } else { 0 };
    };
    let top = 1_u128 << (to.bits - 1);
    match (to.signed, negative) {
        (true, true) => (magnitude.min(top) as u64).wrapping_neg(),
        (true, false) => magnitude.min(top - 1) as u64,
        (false, true) => 0,
        (false, false) => magnitude.min(2 * top - 1) as u64,
    }
}
