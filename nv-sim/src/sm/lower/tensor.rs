//! Matrix operations across a warp, and the loads and transpositions that feed them.
//!
//! Fragments lie as PTX gives them for `mma.sync.m16n8kN`: with `g = lane / 4` and `t = lane % 4`, a lane holds of A rows `g`
//! and `g + 8`, of B column `g`, of C and D columns `2t` and `2t + 1`. The products are exact; they are summed in double
//! precision and rounded once. Hardware keeps fewer bits while it sums, so that the last bit of a result may differ.

use nv_proto::sass::{Arg, Op};

use super::{Args, Lower, Refused, op, plain};
use crate::sm::FaultKind;
use crate::sm::access::{Space, Width};
use crate::sm::exec::{Flow, Stop};
use crate::sm::ieee::{BF16, F16, F32, F64, Format, Number, Round};
use crate::sm::regs::{ALL, LANES, Lanes, Raw, Regs, first};

impl Args<'_> {
    pub(super) fn tensor(&mut self) -> Lower {
        match self.inst.op {
            Op::Hmma => self.hmma(),
            Op::Imma => self.imma(),
            Op::Ldsm => self.ldsm(),
            Op::Movm => {
                if !self.flag(".16") || !self.flag(".MT88") {
                    return Err(Refused::Unimplemented);
                }
                let (d, a) = (self.dst(0)?, self.src(1)?);
                op(move |c, m| {
                    whole(m)?;
                    let a = a.get(c.regs);
                    let element =
                        |row: usize, col: usize| a[4 * row + col / 2] >> (16 * (col % 2)) & 0xffff;
                    let v: Lanes = std::array::from_fn(|lane| {
                        let (g, t) = (lane / 4, lane % 4);
                        element(2 * t, g) | element(2 * t + 1, g) << 16
                    });
                    c.regs.set(d, m, &v);
                    Ok(Flow::Next)
                })
            }
            _ => Err(Refused::Unimplemented),
        }
    }

    fn hmma(&mut self) -> Lower {
        let depth = self
            .one_of(&[(".16816", 16), (".1688", 8), (".1684", 4)])
            .ok_or(Refused::Unimplemented)?;
        let input = self
            .one_of(&[(".BF16", Input::Bf16), (".TF32", Input::Tf32)])
            .unwrap_or(Input::F16);
        let wide = self.flag(".F32");
        if !wide && !self.flag(".F16") {
            return Err(Refused::Unimplemented);
        }
        if (depth == 4) != (depth == 4 && matches!(input, Input::Tf32))
            || (depth == 16 && matches!(input, Input::Tf32))
        {
            return Err(Refused::Unimplemented);
        }
        let per = if matches!(input, Input::Tf32) { 1 } else { 2 };
        // Registers of A and B: 16 and 8 rows or columns of `depth` values over 32 lanes.
        let (ra, rb) = ((16 * depth / 32 / per) as u8, (8 * depth / 32 / per) as u8);
        let rc = if wide { 4 } else { 2 };
        self.no_selector(4)?;
        let d = self.dst_of(0, rc)?;
        let (a, b, c) = (
            self.fragment(1, ra)?,
            self.fragment(2, rb)?,
            self.fragment(3, rc)?,
        );
        op(move |x, m| {
            whole(m)?;
            let (a, b, c) = (
                read(x.regs, a, ra),
                read(x.regs, b, rb),
                read(x.regs, c, rc),
            );
            // A register holds `per` values of one row, the registers alternate between rows g and g + 8.
            let value_a = |row: usize, k: usize| {
                let (group, at) = (k / (4 * per), k % (4 * per));
                let word = a[2 * group + row / 8][4 * (row % 8) + at / per];
                input.value(word, at % per)
            };
            let value_b = |k: usize, col: usize| {
                let (group, at) = (k / (4 * per), k % (4 * per));
                input.value(b[group][4 * col + at / per], at % per)
            };
            let mut out = [[0; LANES]; 4];
            for row in 0..16 {
                for col in 0..8 {
                    let lane = 4 * (row % 8) + col / 2;
                    let half = row / 8;
                    let start = if wide {
                        value(F32, u64::from(c[2 * half + col % 2][lane]))
                    } else {
                        value(F16, u64::from(c[half][lane] >> (16 * (col % 2)) & 0xffff))
                    };
                    let sum =
                        (0..depth).fold(start, |sum, k| sum + value_a(row, k) * value_b(k, col));
                    let number = F64.unpack(sum.to_bits());
                    if wide {
                        out[2 * half + col % 2][lane] = F32.pack(number, Round::Near) as u32;
                    } else {
                        out[half][lane] |=
                            (F16.pack(number, Round::Near) as u32) << (16 * (col % 2));
                    }
                }
            }
            for (i, v) in out.iter().enumerate().take(usize::from(rc)) {
                x.regs.set(if i == 0 { d } else { d.next(i as u8) }, m, v);
            }
            Ok(Flow::Next)
        })
    }

    fn imma(&mut self) -> Lower {
        let (rows, depth) = self
            .one_of(&[
                (".16816", (16, 16)),
                (".16832", (16, 32)),
                (".8816", (8, 16)),
            ])
            .ok_or(Refused::Unimplemented)?;
        let types: Vec<bool> = self
            .inst
            .mods()
            .iter()
            .filter_map(|m| match *m {
                ".S8" => Some(true),
                ".U8" => Some(false),
                _ => None,
            })
            .collect();
        self.ignore(&[".S8", ".U8"]);
        let [sa, sb] = types[..] else {
            return Err(Refused::Unimplemented);
        };
        let sat = self.flag(".SAT");
        let (ra, rb, rc) = (
            (rows * depth / 128) as u8,
            (depth / 16) as u8,
            (rows / 4) as u8,
        );
        self.no_selector(4)?;
        let d = self.dst_of(0, rc)?;
        let (a, b, c) = (
            self.fragment(1, ra)?,
            self.fragment(2, rb)?,
            self.fragment(3, rc)?,
        );
        op(move |x, m| {
            whole(m)?;
            let (a, b, c) = (
                read(x.regs, a, ra),
                read(x.regs, b, rb),
                read(x.regs, c, rc),
            );
            let byte = |word: u32, at: usize, signed: bool| {
                let byte = (word >> (8 * at)) as u8;
                if signed {
                    i64::from(byte.cast_signed())
                } else {
                    i64::from(byte)
                }
            };
            let per_group = rows / 8;
            let mut out = [[0; LANES]; 4];
            for row in 0..rows {
                for col in 0..8 {
                    let lane = 4 * (row % 8) + col / 2;
                    let at = 2 * (row / 8) + col % 2;
                    let mut sum = i64::from(c[at][lane].cast_signed());
                    for k in 0..depth {
                        let (group, within) = (k / 16, k % 16);
                        let wa = a[per_group * group + row / 8][4 * (row % 8) + within / 4];
                        let wb = b[group][4 * col + within / 4];
                        sum += byte(wa, within % 4, sa) * byte(wb, within % 4, sb);
                    }
                    let sum = if sat {
                        sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
                    } else {
                        sum
                    };
                    out[at][lane] = sum as u32;
                }
            }
            for (i, v) in out.iter().enumerate().take(usize::from(rc)) {
                x.regs.set(if i == 0 { d } else { d.next(i as u8) }, m, v);
            }
            Ok(Flow::Next)
        })
    }

    fn ldsm(&mut self) -> Lower {
        if !self.flag(".16") {
            return Err(Refused::Unimplemented);
        }
        let transposed = self
            .one_of(&[(".M88", false), (".MT88", true)])
            .ok_or(Refused::Unimplemented)?;
        let count: u8 = self.one_of(&[(".2", 2), (".4", 4)]).unwrap_or(1);
        let d = self.dst_of(0, count)?;
        let place = self.spot(1, Space::Shared)?;
        op(move |c, m| {
            whole(m)?;
            // Eight lanes give the rows of a matrix; only so many lanes' addresses count.
            let rows = u32::MAX >> (32 - 8 * u32::from(count));
            let addresses = place.addresses(c.regs, Space::Shared);
            let mut words = [[0; LANES]; 4];
            c.load(Space::Shared, &addresses, rows, Width::B128, &mut words)?;
            for matrix in 0..count {
                let row = |r: usize| 8 * usize::from(matrix) + r;
                let element = |r: usize, c: usize| words[c / 2][row(r)] >> (16 * (c % 2)) & 0xffff;
                let v: Lanes = std::array::from_fn(|lane| {
                    let (g, t) = (lane / 4, lane % 4);
                    if transposed {
                        element(2 * t, g) | element(2 * t + 1, g) << 16
                    } else {
                        words[t][row(g)]
                    }
                });
                c.regs
                    .set(if matrix == 0 { d } else { d.next(matrix) }, m, &v);
            }
            Ok(Flow::Next)
        })
    }

    /// The first register of a fragment of so many.
    fn fragment(&mut self, at: usize, registers: u8) -> Result<Raw, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg { suffix: "", ..arg })?;
        match arg.suffix {
            "" | ".ROW" | ".COL" => self.raw(arg.operand, registers),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// Sparse forms have more operands, which nothing here knows.
    fn no_selector(&self, from: usize) -> Result<(), Refused> {
        if (from..self.count()).any(|at| self.shown(at)) {
            Err(Refused::Unimplemented)
        } else {
            Ok(())
        }
    }
}

/// What the registers of A and B hold.
#[derive(Clone, Copy)]
enum Input {
    F16,
    Bf16,
    Tf32,
}

impl Input {
    fn value(self, word: u32, at: usize) -> f64 {
        let half = u64::from(word >> (16 * at) & 0xffff);
        match self {
            Self::F16 => value(F16, half),
            Self::Bf16 => value(BF16, half),
            // The low 13 bits of a single take no part.
            Self::Tf32 => value(F32, u64::from(word & !0x1fff)),
        }
    }
}

fn value(format: Format, bits: u64) -> f64 {
    match format.unpack(bits) {
        Number::Nan => f64::NAN,
        number => f64::from_bits(F64.pack(number, Round::Near)),
    }
}

fn read(regs: &Regs, from: Raw, count: u8) -> [Lanes; 4] {
    let mut out = [[0; LANES]; 4];
    for (i, v) in (0..count).zip(&mut out) {
        *v = from.next(i).get(regs);
    }
    out
}

/// These need the whole warp.
fn whole(mask: u32) -> Result<(), Stop> {
    if mask == ALL {
        return Ok(());
    }
    let text = "a matrix operation of part of a warp".to_owned();
    Err(Stop {
        kind: FaultKind::Unimplemented { text },
        lane: first(mask),
    })
}
