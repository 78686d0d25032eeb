//! Single precision.

use nv_proto::sass::Op;

use super::integer::finish;
use super::{Args, FloatSrc, Lower, Refused, alu};
use crate::sm::ieee::{self, F32, Round};
use crate::sm::regs::{LANES, Lanes, map1, map2, map3, mask_of};

impl Args<'_> {
    pub(super) fn float(&mut self) -> Lower {
        match self.inst.op {
            Op::Fadd | Op::Ufadd => {
                let mode = self.mode()?;
                let (d, a, b) = (self.dst(0)?, self.src_f32(1)?, self.src_f32(2)?);
                alu(move |r, m| {
                    let v = mode.apply2(
                        &a.get(r),
                        &b.get(r),
                        |a, b| a + b,
                        |a, b| ieee::fma(a, F32.unpack(ONE), b, mode.round),
                    );
                    r.set(d, m, &v);
                })
            }
            Op::Fmul | Op::Ufmul => {
                let mode = self.mode()?;
                let (d, a, b) = (self.dst(0)?, self.src_f32(1)?, self.src_f32(2)?);
                alu(move |r, m| {
                    let v = mode.apply2(&a.get(r), &b.get(r), |a, b| a * b, multiply);
                    r.set(d, m, &v);
                })
            }
            Op::Ffma | Op::Uffma => {
                let mode = self.mode()?;
                let (d, a, b, c) = (
                    self.dst(0)?,
                    self.src_f32(1)?,
                    self.src_f32(2)?,
                    self.src_f32(3)?,
                );
                alu(move |r, m| {
                    let (a, b, c) = (
                        mode.input(a.get(r)),
                        mode.input(b.get(r)),
                        mode.input(c.get(r)),
                    );
                    let v = if mode.round == Round::Near {
                        fused(&a, &b, &c)
                    } else {
                        map3(&a, &b, &c, |a, b, c| {
                            let [a, b, c] = [a, b, c].map(|x| F32.unpack(u64::from(x)));
                            F32.pack(ieee::fma(a, b, c, mode.round), mode.round) as u32
                        })
                    };
                    r.set(d, m, &mode.output(v));
                })
            }
            Op::Fmnmx => self.fmnmx(),
            Op::Fsetp | Op::Ufsetp => {
                let relation = self.relation()?;
                let combine = self.combine()?;
                let ftz = self.flag(".FTZ");
                let (p, q) = (self.pred_dst(0)?, self.pred_dst(1)?);
                let (a, b, acc) = (self.src_f32(2)?, self.src_f32(3)?, self.pred(4)?);
                alu(move |r, m| {
                    let test = relation.mask(&flush_if(a.get(r), ftz), &flush_if(b.get(r), ftz));
                    finish(r, m, test, combine, acc, p, q);
                })
            }
            Op::Fset => {
                let relation = self.relation()?;
                let combine = self.combine()?;
                let ftz = self.flag(".FTZ");
                let yes = if self.flag(".BF") {
                    1.0_f32.to_bits()
                } else {
                    u32::MAX
                };
                let d = self.dst(0)?;
                let (a, b, acc) = (self.src_f32(1)?, self.src_f32(2)?, self.pred(3)?);
                alu(move |r, m| {
                    let test = relation.mask(&flush_if(a.get(r), ftz), &flush_if(b.get(r), ftz));
                    let set = combine.join(test, acc.get(r));
                    let v: Lanes = std::array::from_fn(|i| if set >> i & 1 != 0 { yes } else { 0 });
                    r.set(d, m, &v);
                })
            }
            Op::Fsel | Op::Ufsel => {
                let ftz = self.flag(".FTZ");
                let (d, a, b, p) = (
                    self.dst(0)?,
                    self.src_f32(1)?,
                    self.src_f32(2)?,
                    self.pred(3)?,
                );
                alu(move |r, m| {
                    let p = p.get(r);
                    let (a, b) = (a.get(r), b.get(r));
                    let v: Lanes =
                        std::array::from_fn(|i| if p >> i & 1 != 0 { a[i] } else { b[i] });
                    r.set(d, m, &flush_if(v, ftz));
                })
            }
            Op::Fchk => {
                let (p, a, b) = (self.pred_dst(0)?, self.src_f32(1)?, self.src_f32(2)?);
                alu(move |r, m| {
                    let (a, b) = (a.get(r), b.get(r));
                    r.set_pred(p, m, mask_of(|i| !(easy(a[i]) && easy(b[i]))));
                })
            }
            Op::Mufu => self.mufu(),
            _ => Err(Refused::Unimplemented),
        }
    }

    pub(super) fn round(&mut self) -> Round {
        self.one_of(&[
            (".RM", Round::Down),
            (".RP", Round::Up),
            (".RZ", Round::Zero),
        ])
        .unwrap_or(Round::Near)
    }

    fn mode(&mut self) -> Result<Mode, Refused> {
        Ok(Mode {
            round: self.round(),
            ftz: self.flag(".FTZ"),
            sat: self.flag(".SAT"),
        })
    }

    /// Which relation a comparison tests.
    pub(super) fn relation(&mut self) -> Result<Relation, Refused> {
        self.one_of(&RELATIONS).ok_or(Refused::Unimplemented)
    }

    fn fmnmx(&mut self) -> Lower {
        let ftz = self.flag(".FTZ");
        let nan = self.flag(".NAN");
        let xor = self.flag(".XORSIGN");
        let d = self.dst(0)?;
        let at = self.skip(1)?;
        let (a, b): (FloatSrc, FloatSrc) = (self.src_f32(at)?, self.src_f32(at + 1)?);
        let p = self.pred(at + 2)?;
        alu(move |r, m| {
            let p = p.get(r);
            // With XORSIGN the magnitudes are compared and the signs multiplied; the text shows |a|, |b|.
            let (ra, rb) = (a.raw.get(r), b.raw.get(r));
            let (x, y) = (flush_if(a.get(r), ftz), flush_if(b.get(r), ftz));
            let v: Lanes = std::array::from_fn(|i| {
                let v = min_max(x[i], y[i], p >> i & 1 != 0, nan);
                if xor && !is_nan(v) {
                    (v & 0x7fff_ffff) | ((ra[i] ^ a.flip ^ rb[i] ^ b.flip) & 0x8000_0000)
                } else {
                    v
                }
            });
            r.set(d, m, &v);
        })
    }

    fn mufu(&mut self) -> Lower {
        if let Some(root) = self.one_of(&[(".RCP64H", false), (".RSQ64H", true)]) {
            let (d, a) = (self.dst(0)?, self.src_f32(1)?);
            return alu(move |r, m| {
                let v = map1(&a.get(r), |x| {
                    let x = f64::from_bits(u64::from(x) << 32);
                    let y = if root { 1.0 / x.sqrt() } else { 1.0 / x };
                    if y.is_nan() {
                        0x7fff_ffff
                    } else {
                        (y.to_bits() >> 32) as u32
                    }
                });
                r.set(d, m, &v);
            });
        }
        let f: fn(f64) -> f64 = self
            .one_of::<fn(f64) -> f64>(&[
                (".RCP", |x| 1.0 / x),
                (".RSQ", |x| 1.0 / x.sqrt()),
                (".SQRT", f64::sqrt),
                (".EX2", f64::exp2),
                (".LG2", f64::log2),
                (".SIN", |x| (x.fract() * std::f64::consts::TAU).sin()),
                (".COS", |x| (x.fract() * std::f64::consts::TAU).cos()),
                (".TANH", f64::tanh),
            ])
            .ok_or(Refused::Unimplemented)?;
        let (d, a) = (self.dst(0)?, self.src_f32(1)?);
        alu(move |r, m| {
            let v = map1(&a.get(r), |x| {
                let y = f(f64::from(f32::from_bits(flush(x)))) as f32;
                flush(canonical(y))
            });
            r.set(d, m, &v);
        })
    }
}

const ONE: u64 = 0x3f80_0000;

pub(super) fn multiply(a: ieee::Number, b: ieee::Number) -> ieee::Number {
    // The zero that is added must not change the sign of a zero product.
    let negative = |n| {
        matches!(
            n,
            ieee::Number::Finite { negative: true, .. } | ieee::Number::Infinite { negative: true }
        )
    };
    let zero = ieee::Number::Finite {
        negative: negative(a) != negative(b),
        significand: 0,
        scale: 0,
    };
    ieee::fma(a, b, zero, Round::Near)
}

/// Rounding, flushing and clamping.
#[derive(Clone, Copy)]
struct Mode {
    round: Round,
    ftz: bool,
    sat: bool,
}

impl Mode {
    #[inline]
    fn input(self, v: Lanes) -> Lanes {
        flush_if(v, self.ftz)
    }

    #[inline]
    fn output(self, v: Lanes) -> Lanes {
        let v = flush_if(v, self.ftz);
        if self.sat { map1(&v, saturate) } else { v }
    }

    #[inline]
    fn apply2(
        self,
        a: &Lanes,
        b: &Lanes,
        near: impl Fn(f32, f32) -> f32,
        exact: impl Fn(ieee::Number, ieee::Number) -> ieee::Number,
    ) -> Lanes {
        let (a, b) = (self.input(*a), self.input(*b));
        let v = if self.round == Round::Near {
            map2(&a, &b, |a, b| {
                canonical(near(f32::from_bits(a), f32::from_bits(b)))
            })
        } else {
            map2(&a, &b, |a, b| {
                let number = exact(F32.unpack(u64::from(a)), F32.unpack(u64::from(b)));
                F32.pack(number, self.round) as u32
            })
        };
        self.output(v)
    }
}

/// `a * b + c` rounded once, lane by lane.
///
/// The product is exact in double precision and the sum rounded to it. Rounding that to single precision is right but where the
/// double lies half-way between two singles, or where the result is too small to have all its bits: those lanes take the slow way.
#[inline]
fn fused(a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    let float = |x: u32| f64::from(f32::from_bits(x));
    let sums: [f64; LANES] = std::array::from_fn(|i| float(a[i]) * float(b[i]) + float(c[i]));
    let mut doubtful = 0_u32;
    let v: Lanes = std::array::from_fn(|i| {
        let bits = sums[i].to_bits();
        let half_way = bits & 0x1fff_ffff == 0x1000_0000;
        // Below 2^-126 and not zero.
        let small = (bits & (u64::MAX >> 1)).wrapping_sub(1) < 0x3810_0000_0000_0000 - 1;
        doubtful |= u32::from(half_way | small);
        canonical(sums[i] as f32)
    });
    if doubtful == 0 {
        return v;
    }
    map3(a, b, c, |a, b, c| {
        canonical(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
    })
}

/// The bits of a result, every NaN the same.
#[inline]
pub(super) fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

#[inline]
pub(super) fn flush(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 {
        x & 0x8000_0000
    } else {
        x
    }
}

#[inline]
pub(super) fn flush_if(v: Lanes, ftz: bool) -> Lanes {
    if ftz { map1(&v, flush) } else { v }
}

/// Clamped to 0..1; NaN is 0.
pub(super) fn saturate(x: u32) -> u32 {
    let f = f32::from_bits(x);
    if f > 0.0 { f.min(1.0).to_bits() } else { 0 }
}

fn is_nan(x: u32) -> bool {
    x & 0x7fff_ffff > 0x7f80_0000
}

/// The lesser or greater; a NaN loses unless `nan`, and -0 is below +0.
fn min_max(a: u32, b: u32, min: bool, nan: bool) -> u32 {
    match (is_nan(a), is_nan(b)) {
        (true, true) => return 0x7fff_ffff,
        (true, false) | (false, true) if nan => return 0x7fff_ffff,
        (true, false) => return b,
        (false, true) => return a,
        _ => {}
    }
    // Floats ordered as signed integers once the negative ones are turned round.
    let key = |x: u32| if x >> 31 != 0 { !x } else { x | 0x8000_0000 };
    if (key(a) < key(b)) == min { a } else { b }
}

/// Whether a divisor or dividend is far from every edge, so that the fast path of a division is exact. The
/// hardware's range may be wider: leaving the fast path early costs time, not correctness.
fn easy(x: u32) -> bool {
    let exponent = (x >> 23 & 0xff) as i32 - 127;
    (-60..=60).contains(&exponent)
}

/// A relation of two floats: which of less, equal, greater, unordered it accepts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Relation {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
}

impl Relation {
    const fn new(bits: u8) -> Self {
        Self {
            less: bits & 1 != 0,
            equal: bits & 2 != 0,
            greater: bits & 4 != 0,
            unordered: bits & 8 != 0,
        }
    }

    #[inline]
    fn mask(self, a: &Lanes, b: &Lanes) -> u32 {
        mask_of(|i| {
            self.test(
                f64::from(f32::from_bits(a[i])),
                f64::from(f32::from_bits(b[i])),
            )
        })
    }

    #[inline]
    pub fn test(self, a: f64, b: f64) -> bool {
        (self.less & (a < b))
            | (self.equal & (a == b))
            | (self.greater & (a > b))
            | (self.unordered & (a.is_nan() | b.is_nan()))
    }
}

const RELATIONS: [(&str, Relation); 16] = [
    (".F", Relation::new(0)),
    (".LT", Relation::new(1)),
    (".EQ", Relation::new(2)),
    (".LE", Relation::new(3)),
    (".GT", Relation::new(4)),
    (".NE", Relation::new(5)),
    (".GE", Relation::new(6)),
    (".NUM", Relation::new(7)),
    (".NAN", Relation::new(8)),
    (".LTU", Relation::new(9)),
    (".EQU", Relation::new(10)),
    (".LEU", Relation::new(11)),
    (".GTU", Relation::new(12)),
    (".NEU", Relation::new(13)),
    (".GEU", Relation::new(14)),
    (".T", Relation::new(15)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_multiply_add_is_rounded_once() {
        let mut x = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 20) as u32
        };
        for round in 0..20_000 {
            let mut word = || match round % 4 {
                // Few bits, so that sums fall half-way between singles.
                0 => next() & 0xc7f0_0000,
                1 => next() & 0x83ff_ffff,
                _ => next(),
            };
            let (a, b, c): (Lanes, Lanes, Lanes) = (
                std::array::from_fn(|_| word()),
                std::array::from_fn(|_| word()),
                std::array::from_fn(|_| word()),
            );
            let ours = fused(&a, &b, &c);
            for i in 0..LANES {
                let host = f32::from_bits(a[i]).mul_add(f32::from_bits(b[i]), f32::from_bits(c[i]));
                assert_eq!(
                    ours[i],
                    canonical(host),
                    "{:#x} {:#x} {:#x}",
                    a[i],
                    b[i],
                    c[i]
                );
            }
        }
        // 2^-24 * 1 + 1 is half-way; a little more in the product's last place decides.
        let lanes = |x: f32| [x.to_bits(); LANES];
        let (a, b) = (1.0 + f32::EPSILON, f32::EPSILON / 2.0);
        assert_eq!(
            fused(&lanes(a), &lanes(b), &lanes(1.0)),
            lanes(1.0 + f32::EPSILON)
        );
    }
}
