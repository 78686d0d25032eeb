//! Exact binary floating point of any of the four formats, in any rounding mode.
//!
//! The common operations run on the host's own floats; this serves what those cannot: directed rounding, half precision, conversions.

/// How a result that does not fit is rounded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Round {
    /// To nearest, ties to even (`.RN`, the default).
    Near,
    /// Towards minus infinity (`.RM`, `.FLOOR`).
    Down,
    /// Towards plus infinity (`.RP`, `.CEIL`).
    Up,
    /// Towards zero (`.RZ`, `.TRUNC`).
    Zero,
}

/// A binary interchange format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Format {
    /// Bits of the significand that are stored.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
}

pub(super) const F16: Format = Format {
    fraction: 10,
    exponent: 5,
};
pub(super) const BF16: Format = Format {
    fraction: 7,
    exponent: 8,
};
pub(super) const F32: Format = Format {
    fraction: 23,
    exponent: 8,
};
pub(super) const F64: Format = Format {
    fraction: 52,
    exponent: 11,
};

/// A number: `significand * 2^scale`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Number {
    Nan,
    Infinite {
        negative: bool,
    },
    Finite {
        negative: bool,
        significand: u128,
        scale: i32,
    },
}

impl Format {
    fn max_exponent(self) -> u64 {
        (1 << self.exponent) - 1
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign_bit(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    /// The bits of infinity.
    fn infinity(self) -> u64 {
        self.max_exponent() << self.fraction
    }

    /// What arithmetic makes of an invalid operation. In f32 and the halves all bits below the sign are set.
    pub fn nan(self) -> u64 {
        if self == F64 {
            0xfff8_0000_0000_0000
        } else {
            self.sign_bit() - 1
        }
    }

    pub fn unpack(self, bits: u64) -> Number {
        let negative = bits & self.sign_bit() != 0;
        let exponent = bits >> self.fraction & self.max_exponent();
        let fraction = bits & ((1 << self.fraction) - 1);
        if exponent == self.max_exponent() {
            return if fraction == 0 {
                Number::Infinite { negative }
            } else {
                Number::Nan
            };
        }
        let hidden = if exponent == 0 { 0 } else { 1 << self.fraction };
        let scale = exponent.max(1) as i32 - self.bias() - self.fraction as i32;
        Number::Finite {
            negative,
            significand: u128::from(fraction | hidden),
            scale,
        }
    }

    /// The bits of a number, rounded. A significand below 2^127 keeps all its bits until then.
    pub fn pack(self, number: Number, round: Round) -> u64 {
        let (negative, significand, scale) = match number {
            Number::Nan => return self.nan(),
            Number::Infinite { negative } => return self.infinity() | self.signed(negative),
            Number::Finite {
                negative,
                significand,
                scale,
            } => (negative, significand, scale),
        };
        let sign = self.signed(negative);
        let Some(top) = significand.checked_ilog2() else {
            return sign;
        };
        // The scale of the result's lowest bit: of a normal number, or of the smallest denormal.
        let lowest =
            (scale + top as i32 - self.fraction as i32).max(1 - self.bias() - self.fraction as i32);
        let drop = lowest - scale;
        let (kept, rest) = if drop <= 0 {
            // Exact: `drop` is no more than the free bits, as `lowest` keeps the top bit within the fraction.
            (significand << drop.unsigned_abs().min(127), Rest::Zero)
        } else {
            split(significand, drop.unsigned_abs())
        };
        let up = match round {
            Round::Near => rest == Rest::Above || (rest == Rest::Half && kept & 1 != 0),
            Round::Down => negative && rest != Rest::Zero,
            Round::Up => !negative && rest != Rest::Zero,
            Round::Zero => false,
        };
        let kept = kept as u64 + u64::from(up);
        // A carry out of the fraction raises the exponent by itself.
        let exponent = lowest + self.fraction as i32 + self.bias();
        let bits = if kept < 1 << self.fraction {
            kept
        } else {
            ((exponent - 1) as u64)
                .wrapping_shl(self.fraction)
                .wrapping_add(kept)
        };
        let too_large = exponent >= self.max_exponent() as i32 || bits >= self.infinity();
        if !too_large {
            return bits | sign;
        }
        let to_infinity = match round {
            Round::Near => true,
            Round::Down => negative,
            Round::Up => !negative,
            Round::Zero => false,
        };
        sign | if to_infinity {
            self.infinity()
        } else {
            self.infinity() - 1
        }
    }

    fn signed(self, negative: bool) -> u64 {
        if negative { self.sign_bit() } else { 0 }
    }

    /// The value with a denormal replaced by zero of its sign.
    pub fn flush(self, bits: u64) -> u64 {
        if bits & self.infinity() == 0 {
            bits & self.sign_bit()
        } else {
            bits
        }
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign_bit() > self.infinity()
    }
}

/// `a * b + c`, exact but for a last bit that stands for everything below.
pub(super) fn fma(a: Number, b: Number, c: Number, round: Round) -> Number {
    use Number::{Finite, Infinite, Nan};
    let product = match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) => Infinite { negative: x != y },
        (
            Infinite { negative: x },
            Finite {
                negative: y,
                significand,
                ..
            },
        )
        | (
            Finite {
                negative: y,
                significand,
                ..
            },
            Infinite { negative: x },
        ) => {
            if significand == 0 {
                Nan
            } else {
                Infinite { negative: x != y }
            }
        }
        (
            Finite {
                negative: x,
                significand: m,
                scale: e,
            },
            Finite {
                negative: y,
                significand: n,
                scale: f,
            },
        ) => Finite {
            negative: x != y,
            significand: m * n,
            scale: e + f,
        },
    };
    match (product, c) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) => {
            if x == y {
                product
            } else {
                Nan
            }
        }
        (Infinite { .. }, _) => product,
        (_, Infinite { .. }) => c,
        (
            Finite {
                negative: x,
                significand: m,
                scale: e,
            },
            Finite {
                negative: y,
                significand: n,
                scale: f,
            },
        ) => add((x, m, e), (y, n, f), round),
    }
}

/// Where the highest bit of an operand is put before adding.
const TOP: u32 = 120;

fn add(a: (bool, u128, i32), b: (bool, u128, i32), round: Round) -> Number {
    let finite = |(negative, significand, scale)| Number::Finite {
        negative,
        significand,
        scale,
    };
    let zero = |negative| Number::Finite {
        negative,
        significand: 0,
        scale: 0,
    };
    match (a.1, b.1) {
        (0, 0) if a.0 == b.0 => return zero(a.0),
        (0, 0) => return zero(round == Round::Down),
        (0, _) => return finite(b),
        (_, 0) => return finite(a),
        _ => {}
    }
    let raise = |(negative, significand, scale): (bool, u128, i32)| {
        let by = TOP - significand.ilog2().min(TOP);
        (negative, significand << by, scale - by as i32)
    };
    let (a, b) = (raise(a), raise(b));
    let (large, small) = if (a.2, a.1) >= (b.2, b.1) {
        (a, b)
    } else {
        (b, a)
    };
    let by = (large.2 - small.2).unsigned_abs();
    let (shifted, rest) = split(small.1, by);
    let shifted = shifted | u128::from(rest != Rest::Zero);
    if large.0 == small.0 {
        return Number::Finite {
            negative: large.0,
            significand: large.1 + shifted,
            scale: large.2,
        };
    }
    match large.1.checked_sub(shifted) {
        Some(0) => zero(round == Round::Down),
        Some(significand) => Number::Finite {
            negative: large.0,
            significand,
            scale: large.2,
        },
        // Equal scales, the smaller significand first: cannot be, as they were ordered.
        None => zero(false),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rest {
    Zero,
    Below,
    Half,
    Above,
}

/// The bits from `by` on, and how those below compare with one half.
fn split(value: u128, by: u32) -> (u128, Rest) {
    if by == 0 {
        return (value, Rest::Zero);
    }
    if by > 127 {
        return (0, if value == 0 { Rest::Zero } else { Rest::Below });
    }
    let rest = value & ((1 << by) - 1);
    let half = 1 << (by - 1);
    let rest = match rest.cmp(&half) {
        std::cmp::Ordering::Equal => Rest::Half,
        std::cmp::Ordering::Greater => Rest::Above,
        std::cmp::Ordering::Less if rest == 0 => Rest::Zero,
        std::cmp::Ordering::Less => Rest::Below,
    };
    (value >> by, rest)
}

/// A number rounded to an integer: negative?, magnitude; `None` for what is no number. Magnitudes saturate.
pub(super) fn to_integer(number: Number, round: Round) -> Option<(bool, u128)> {
    match number {
        Number::Nan => None,
        Number::Infinite { negative } => Some((negative, u128::MAX)),
        Number::Finite {
            negative,
            significand,
            scale,
        } => {
            if scale >= 0 {
                let free = significand.leading_zeros();
                let magnitude = if scale.unsigned_abs() < free {
                    significand << scale
                } else if significand == 0 {
                    0
                } else {
                    u128::MAX
                };
                return Some((negative, magnitude));
            }
            let (kept, rest) = split(significand, scale.unsigned_abs());
            let up = match round {
                Round::Near => rest == Rest::Above || (rest == Rest::Half && kept & 1 != 0),
                Round::Down => negative && rest != Rest::Zero,
                Round::Up => !negative && rest != Rest::Zero,
                Round::Zero => false,
            };
            Some((negative, kept + u128::from(up)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random() -> impl Iterator<Item = u64> {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        })
    }

    #[test]
    fn single_precision_agrees_with_the_host() {
        let mut random = random();
        let mut next = || {
            let x = random.next().unwrap();
            // Exponents near one another half of the time, so that sums cancel.
            if x & 1 << 40 != 0 {
                (x as u32 & 0x807f_ffff) | (0x3f00_0000 + (x as u32 >> 5 & 0x0380_0000))
            } else {
                x as u32
            }
        };
        for _ in 0..200_000 {
            let (a, b, c) = (next(), next(), next());
            let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            let [x, y, z] = [a, b, c].map(|v| F32.unpack(u64::from(v)));
            let ours = F32.pack(fma(x, y, z, Round::Near), Round::Near) as u32;
            if host.is_nan() {
                assert_eq!(ours, 0x7fff_ffff);
            } else {
                assert_eq!(ours, host.to_bits(), "{a:#x} * {b:#x} + {c:#x}");
            }
        }
    }

    #[test]
    fn double_precision_agrees_with_the_host() {
        let mut random = random();
        for _ in 0..200_000 {
            let [a, b, c] = [0; 3].map(|_: i32| random.next().unwrap());
            let host = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
            let [x, y, z] = [a, b, c].map(|v| F64.unpack(v));
            let ours = F64.pack(fma(x, y, z, Round::Near), Round::Near);
            if !host.is_nan() {
                assert_eq!(ours, host.to_bits(), "{a:#x} * {b:#x} + {c:#x}");
            }
        }
    }

    #[test]
    fn narrowing_agrees_with_the_host_and_directions_bracket() {
        for x in random().take(200_000) {
            let value = f64::from_bits(x);
            if value.is_nan() {
                continue;
            }
            let near = F32.pack(F64.unpack(x), Round::Near) as u32;
            assert_eq!(near, (value as f32).to_bits());
            let down = f32::from_bits(F32.pack(F64.unpack(x), Round::Down) as u32);
            let up = f32::from_bits(F32.pack(F64.unpack(x), Round::Up) as u32);
            let zero = f32::from_bits(F32.pack(F64.unpack(x), Round::Zero) as u32);
            assert!(f64::from(down) <= value && value <= f64::from(up));
            assert!(f64::from(zero).abs() <= value.abs());
            assert!(down == up || down.next_up() == up);
        }
    }

    #[test]
    fn every_half_survives_widening() {
        for format in [F16, BF16] {
            for bits in 0..=0xffff_u64 {
                if !format.is_nan(bits) {
                    let wide = F32.pack(format.unpack(bits), Round::Near);
                    assert_eq!(format.pack(F32.unpack(wide), Round::Zero), bits);
                }
            }
        }
    }

    #[test]
    fn integers_round_in_each_direction() {
        for (value, round, expected) in [
            (2.5, Round::Near, (false, 2)),
            (3.5, Round::Near, (false, 4)),
            (-2.5, Round::Down, (true, 3)),
            (-2.5, Round::Up, (true, 2)),
            (2.1, Round::Up, (false, 3)),
            (-0.1, Round::Zero, (true, 0)),
            (1e30, Round::Near, (false, 1e30 as u128)),
        ] {
            assert_eq!(
                to_integer(F64.unpack(f64::to_bits(value)), round),
                Some(expected)
            );
        }
        assert_eq!(to_integer(Number::Nan, Round::Near), None);
    }
}
