//! Kernels that each exercise one part of the instruction set, every element compared with the CPU.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers: what is not there fails the test that asked for it"
)]
#![allow(
    clippy::precedence,
    clippy::if_same_then_else,
    clippy::neg_cmp_op_on_partial_ord,
    reason = "expected values are written as the kernels are"
)]

mod sm_support;

use sm_support::{Args, Machine, Random, shape};

/// The architectures, and those beside that a variable names: `NV_SM_EXTRA=86,89`.
fn machines() -> Vec<Machine> {
    let extra = std::env::var("NV_SM_EXTRA").unwrap_or_default();
    let extra = extra
        .split(',')
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().unwrap());
    [80, 90, 120]
        .into_iter()
        .chain(extra)
        .map(|sm| Machine::load(&format!("sm/checks.sm_{sm}.cubin"), sm))
        .collect()
}

fn u64s(m: &Machine, va: u64, count: usize) -> Vec<u64> {
    m.space
        .read(va, 8 * count)
        .chunks(8)
        .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

fn buffer64(m: &mut Machine, words: &[u64]) -> u64 {
    let words: Vec<u32> = words
        .iter()
        .flat_map(|w| [*w as u32, (*w >> 32) as u32])
        .collect();
    m.space.buffer(&words)
}

/// Compares tables of `columns` results each and says which differ.
fn same<T: PartialEq + std::fmt::LowerHex>(
    what: &str,
    m: &Machine,
    columns: usize,
    ours: &[T],
    expected: &[T],
) {
    assert_eq!(ours.len(), expected.len());
    let mut wrong = std::collections::BTreeMap::new();
    for (i, (a, b)) in ours.iter().zip(expected).enumerate() {
        if a != b {
            wrong
                .entry(i % columns)
                .or_insert_with(Vec::new)
                .push(format!("[{}] {a:#x} for {b:#x}", i / columns));
        }
    }
    assert!(
        wrong.is_empty(),
        "{what} on {}: {:?}",
        m.sm,
        wrong
            .iter()
            .map(|(k, v)| (k, v.len(), &v[..v.len().min(3)]))
            .collect::<Vec<_>>()
    );
}

#[test]
fn integers() {
    for mut m in machines() {
        let n = 512;
        let mut random = Random(1);
        let mut word = || match random.word() % 8 {
            0 => random.word() & 0xff,
            1 => 0x8000_0000,
            2 => random.word() | 0xffff_0000,
            3 => [0, 1, u32::MAX, 0x7fff_ffff][random.word() as usize % 4],
            _ => random.word(),
        };
        let a: Vec<u32> = (0..n).map(|_| word()).collect();
        let b: Vec<u32> = (0..n).map(|_| word()).collect();
        let (va, vb, vo) = (
            m.space.buffer(&a),
            m.space.buffer(&b),
            m.space.alloc(4 * 32 * n),
        );
        m.launch(
            "ints",
            shape(4, 128),
            Args::default().ptr(va).ptr(vb).ptr(vo),
        );
        let mut expected = Vec::new();
        for (&x, &y) in a.iter().zip(&b) {
            let (sx, sy) = (x as i32, y as i32);
            let (d, sd) = (y | 1, (y | 1) as i32);
            let wide = u64::from(y) << 32 | u64::from(x);
            let bytes: Vec<u32> = (0..8).map(|i| (wide >> (8 * i)) as u32 & 0xff).collect();
            // The function takes three bits of each selector.
            let permuted = bytes[2] | bytes[6] << 8 | bytes[3] << 16 | bytes[1] << 24;
            let dot = (0..4).fold(77_i32, |s, i| {
                s.wrapping_add(i32::from((x >> (8 * i)) as i8) * i32::from((y >> (8 * i)) as i8))
            });
            let halves = |v: u32| [v as u16, (v >> 16) as u16];
            let added: Vec<u16> = halves(x)
                .iter()
                .zip(halves(y))
                .map(|(a, b)| a.wrapping_add(b))
                .collect();
            expected.extend([
                x / d,
                x % d,
                sx.wrapping_div(sd) as u32,
                sx.wrapping_rem(sd) as u32,
                (u64::from(x) * u64::from(y) >> 32) as u32,
                (i64::from(sx) * i64::from(sy) >> 32) as u32,
                x.count_ones(),
                x.leading_zeros(),
                x.reverse_bits(),
                if x == 0 { 0 } else { x.trailing_zeros() + 1 },
                permuted,
                ((wide << (y >> 27 & 31)) >> 32) as u32,
                (wide >> (y & 31)) as u32,
                ((wide << (y & 63).min(32)) >> 32) as u32,
                sx.min(sy) as u32,
                x.max(y),
                sx.wrapping_abs() as u32,
                (sx >> (y & 31)) as u32,
                dot as u32,
                x.abs_diff(y).wrapping_add(5),
                sx.abs_diff(sy).wrapping_add(x),
                (x & y) | (!x & !y & 0xff_00ff),
                x.wrapping_mul(10)
                    .wrapping_add(y.wrapping_mul(3))
                    .wrapping_sub(7),
                (i32::from(x as i16) * i32::from(y as i16)) as u32,
                (i32::from((x >> 8) as i8) + i32::from((y >> 16) as u8)) as u32,
                if x < y { x.wrapping_sub(y) } else { y },
                (0..4).fold(0, |v, i| {
                    v | u32::from(((x >> (8 * i)) as u8).abs_diff((y >> (8 * i)) as u8)) << (8 * i)
                }),
                (sx >> 3) as u32 & 0x3ff,
                x << 7 >> 20,
                (x & 0xffff).leading_zeros(),
                ((x << 20) as i32 >> 25) as u32,
                u32::from(added[0]) | u32::from(added[1]) << 16,
            ]);
        }
        same("ints", &m, 32, &m.space.words(vo, 32 * n), &expected);
    }
}

#[test]
fn long_integers() {
    for mut m in machines() {
        let n = 256;
        let mut random = Random(2);
        let mut word = || {
            let x = u64::from(random.word()) << 32 | u64::from(random.word());
            match random.word() % 6 {
                0 => x & 0xffff,
                1 => x | 0xffff_ffff_0000_0000,
                2 => [0, 1, u64::MAX, 1 << 63][x as usize % 4],
                3 => x >> 31,
                _ => x,
            }
        };
        let a: Vec<u64> = (0..n).map(|_| word()).collect();
        let b: Vec<u64> = (0..n).map(|_| word()).collect();
        let (va, vb, vo) = (
            buffer64(&mut m, &a),
            buffer64(&mut m, &b),
            m.space.alloc(8 * 16 * n),
        );
        m.launch(
            "longs",
            shape(2, 128),
            Args::default().ptr(va).ptr(vb).ptr(vo),
        );
        let mut expected = Vec::new();
        for (&x, &y) in a.iter().zip(&b) {
            let (sx, sy, d, sd) = (x as i64, y as i64, y | 1, (y | 1) as i64);
            let ffs = if x == 0 { 0 } else { x.trailing_zeros() + 1 };
            expected.extend([
                x / d,
                x % d,
                sx.wrapping_div(sd) as u64,
                sx.wrapping_rem(sd) as u64,
                x.wrapping_mul(y),
                (u128::from(x) * u128::from(y) >> 64) as u64,
                (i128::from(sx) * i128::from(sy) >> 64) as u64,
                x << (y & 63),
                x >> (y & 63),
                (sx >> (y & 63)) as u64,
                sx.min(sy) as u64,
                x.max(y),
                u64::from(x.leading_zeros() + y.count_ones() + ffs),
                x.wrapping_sub(y).wrapping_sub(u64::from(x < y)),
                x.reverse_bits(),
                (i64::from(x as i32) * i64::from(y as i32)).wrapping_add(sx) as u64,
            ]);
        }
        same("longs", &m, 16, &u64s(&m, vo, 16 * n), &expected);
    }
}

/// Rounds a double that is exact, or whose error has the sign of `error`, to a float in a direction: -1, 0 (to zero), 1.
fn directed(x: f64, error: f64, direction: i32) -> f32 {
    if x.is_nan() || x.is_infinite() {
        return x as f32;
    }
    let near = x as f32;
    let above = f64::from(near) > x || (f64::from(near) == x && error < 0.0);
    let below = f64::from(near) < x || (f64::from(near) == x && error > 0.0);
    let down = direction < 0 || (direction == 0 && (x > 0.0 || (x == 0.0 && error > 0.0)));
    if above && down {
        near.next_down()
    } else if below && !down {
        near.next_up()
    } else {
        near
    }
}

fn nan32(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

#[test]
fn floats() {
    for mut m in machines() {
        let n = 512;
        let mut random = Random(3);
        let mut value = || match random.word() % 10 {
            0 => f32::from_bits(random.word()),
            1 => f32::from_bits(random.word() & 0x807f_ffff),
            2 => [
                0.0,
                -0.0,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
                1.0,
                f32::MAX,
                f32::MIN_POSITIVE,
            ][random.word() as usize % 8],
            3 => (random.word() as i32 >> 20) as f32 * 0.5,
            _ => random.float() * 10.0,
        };
        let a: Vec<f32> = (0..n).map(|_| value()).collect();
        let b: Vec<f32> = (0..n).map(|_| value()).collect();
        let (va, vb, vo) = (
            m.space.floats(&a),
            m.space.floats(&b),
            m.space.alloc(4 * 32 * n),
        );
        m.launch(
            "floats",
            shape(4, 128),
            Args::default().ptr(va).ptr(vb).ptr(vo),
        );
        let mut expected = Vec::new();
        for (&x, &y) in a.iter().zip(&b) {
            let (dx, dy) = (f64::from(x), f64::from(y));
            let (xb, yb) = (x.to_bits(), y.to_bits());
            let sum = dx + dy;
            // What the double sum has lost (Knuth's two-sum).
            let back = sum - dx;
            let sum_error = (dx - (sum - back)) + (dy - back);
            let zero_sum = |down: bool| {
                if sum == 0.0 && dx != 0.0 && down {
                    -0.0
                } else {
                    sum
                }
            };
            let zeros_down = if x == 0.0 && y == 0.0 && xb != yb {
                -0.0
            } else {
                zero_sum(true)
            };
            let product = dx * dy;
            let fma = product + dx;
            let fma_back = fma - product;
            let fma_error = (product - (fma - fma_back)) + (dx - fma_back);
            let min = if x.is_nan() {
                y
            } else if y.is_nan() {
                x
            } else if x < y || (x == y && xb >> 31 != 0) {
                x
            } else {
                y
            };
            let max = if x.is_nan() {
                y
            } else if y.is_nan() {
                x
            } else if x > y || (x == y && xb >> 31 == 0) {
                x
            } else {
                y
            };
            let integral = |f: fn(f32) -> f32| nan32(f(x));
            expected.extend([
                nan32(x + y),
                nan32(x * y),
                nan32(x.mul_add(y, 1.5)),
                nan32(x / y),
                nan32(x.abs().sqrt()),
                nan32(1.0 / x),
                nan32(directed(sum, sum_error, 0)),
                nan32(directed(zeros_down, sum_error, -1)),
                nan32(directed(sum, sum_error, 1)),
                nan32(directed(product, 0.0, 0)),
                nan32(directed(product, 0.0, -1)),
                nan32(directed(product, 0.0, 1)),
                nan32(directed(fma, fma_error, 0)),
                nan32(min),
                nan32(max),
                integral(f32::round_ties_even),
                integral(f32::floor),
                integral(f32::ceil),
                integral(f32::trunc),
                x as i32 as u32,
                y as u32,
                x.round_ties_even() as i32 as u32,
                x.ceil() as i32 as u32,
                x as i32 as i16 as i32 as u32,
                u32::from(y.abs() as u32 as u8),
                (xb as i32 as f32).to_bits(),
                (yb as f32).to_bits(),
                directed(f64::from(xb), 0.0, 0).to_bits(),
                if x > 0.0 { x.min(1.0).to_bits() } else { 0 },
                // A NaN converts to the least 64-bit integer.
                (if x.is_nan() {
                    i64::MIN
                } else {
                    (x * 1e10_f32) as i64
                } as f32)
                    .to_bits(),
                (xb & 0x7fff_ffff) | (yb & 0x8000_0000),
                u32::from(x < y)
                    | u32::from(x <= y) << 1
                    | u32::from(x != y) << 2
                    | u32::from(x.is_nan()) << 3
                    | u32::from(y.is_infinite()) << 4
                    | u32::from(!(x > y)) << 5,
            ]);
        }
        let mut ours = m.space.words(vo, 32 * n);
        // How narrow conversions treat what does not fit is the compiler's affair: only values that fit are compared.
        for i in 0..n {
            for (column, fits) in [
                (23, (-32768.0..32768.0).contains(&a[i])),
                (24, b[i].abs() < 256.0),
            ] {
                if !fits {
                    ours[32 * i + column] = 0;
                    expected[32 * i + column] = 0;
                }
            }
        }
        same("floats", &m, 32, &ours, &expected);
    }
}

fn nan64(x: f64) -> u64 {
    if x.is_nan() {
        0xfff8_0000_0000_0000
    } else {
        x.to_bits()
    }
}

#[test]
fn doubles() {
    for mut m in machines() {
        let n = 256;
        let mut random = Random(4);
        let mut value = || {
            let x = u64::from(random.word()) << 32 | u64::from(random.word());
            match random.word() % 8 {
                0 => f64::from_bits(x),
                1 => [
                    0.0,
                    -0.0,
                    f64::INFINITY,
                    f64::NAN,
                    1.0,
                    -1.5,
                    f64::MAX,
                    1e-310,
                ][x as usize % 8],
                2 => f64::from(random.word() as i32) * 0.5,
                _ => f64::from(random.float()) * (1.0 + f64::from(random.float()) * 1e-9),
            }
        };
        let a: Vec<f64> = (0..n).map(|_| value()).collect();
        let b: Vec<f64> = (0..n).map(|_| value()).collect();
        let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let (va, vb, vo) = (
            buffer64(&mut m, &bits(&a)),
            buffer64(&mut m, &bits(&b)),
            m.space.alloc(8 * 24 * n),
        );
        m.launch(
            "doubles",
            shape(2, 128),
            Args::default().ptr(va).ptr(vb).ptr(vo),
        );
        let ours = u64s(&m, vo, 24 * n);
        let mut expected = Vec::new();
        for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
            let got = &ours[24 * i..];
            let ordered = |pick: bool| {
                if x.is_nan() {
                    y
                } else if y.is_nan() || pick {
                    x
                } else {
                    y
                }
            };
            // Directed rounding is bracketed here; the interpreter's own unit tests pin it down.
            let near = |ours: u64, exact: f64, down: bool| {
                let v = f64::from_bits(ours);
                let ok = v == exact
                    || (down && v == exact.next_down())
                    || (!down && v == exact.next_up());
                if exact.is_nan() || ok || exact.is_infinite() {
                    ours
                } else {
                    exact.to_bits()
                }
            };
            let rz = {
                let sum = x + y;
                let v = f64::from_bits(got[6]);
                if sum.is_nan() || sum.is_infinite() || v == sum || v.abs() == sum.abs().next_down()
                {
                    got[6]
                } else {
                    sum.to_bits()
                }
            };
            let int = x as i32 as u64;
            let long = if x.is_nan() { i64::MIN } else { x as i64 };
            expected.extend([
                nan64(x + y),
                nan64(x * y),
                nan64(x.mul_add(y, 1.5)),
                nan64(x / y),
                nan64(x.abs().sqrt()),
                nan64(1.0 / x),
                rz,
                near(got[7], x * y, true),
                near(got[8], x.mul_add(y, x), false),
                if x.is_nan() && y.is_nan() {
                    got[9]
                } else {
                    ordered(x < y || (x == y && x.is_sign_negative())).to_bits()
                },
                if x.is_nan() && y.is_nan() {
                    got[10]
                } else {
                    ordered(x > y || (x == y && x.is_sign_positive())).to_bits()
                },
                nan64(x.round_ties_even()),
                nan64(x.floor()),
                nan64(x.ceil()),
                nan64(x.trunc()),
                int,
                long as u64,
                if y.is_nan() { 1 << 63 } else { y.abs() as u64 },
                u64::from(nan32(x as f32)),
                u64::from(nan32(directed(y, 0.0, 0))),
                nan64(f64::from(x as f32)),
                (long as f64).to_bits(),
                f64::from(x as i32).to_bits(),
                u64::from(x < y)
                    | u64::from(x <= y) << 1
                    | u64::from(x != y) << 2
                    | u64::from(x.is_nan()) << 3,
            ]);
        }
        let canonical = |v: &[u64]| -> Vec<u64> {
            v.iter()
                .enumerate()
                .map(|(i, x)| {
                    let float = matches!(i % 24, 0..=14 | 20..=22);
                    // Which NaN a 64-bit operation gives has not been measured.
                    if float && f64::from_bits(*x).is_nan() {
                        u64::MAX
                    } else {
                        *x
                    }
                })
                .collect()
        };
        same("doubles", &m, 24, &canonical(&ours), &canonical(&expected));
    }
}

#[test]
fn math_functions() {
    for mut m in machines() {
        let n = 256;
        let mut random = Random(5);
        let a: Vec<f32> = (0..n)
            .map(|i| {
                if i < 8 {
                    [0.5, 1.0, -1.0, 3.0, 100.0, 1e-3, 7e3, -20.0][i]
                } else {
                    random.float()
                }
            })
            .collect();
        let (va, vo) = (m.space.floats(&a), m.space.alloc(4 * 12 * n));
        m.launch("mathf", shape(2, 128), Args::default().ptr(va).ptr(vo));
        for (i, r) in m.space.read_floats(vo, 12 * n).chunks(12).enumerate() {
            let x = f64::from(a[i]);
            let expected = [
                x.sin(),
                x.cos(),
                x.tan(),
                x.exp(),
                x.abs().ln(),
                x.abs().powf(f64::from(1.7_f32)),
                1.0 / x.abs().sqrt(),
                x.sin(),
                x.exp(),
                x.tanh(),
                x.cbrt(),
                f64::NAN,
            ];
            for (k, (ours, expected)) in r.iter().zip(expected).enumerate().take(11) {
                let loose = k == 7 || k == 8;
                let tolerance = if loose {
                    2e-5 + x.abs() * 3e-5
                } else {
                    4e-7 * (1.0 + if k == 2 { expected.abs() } else { 0.0 })
                };
                let near = (f64::from(*ours) - expected).abs()
                    <= tolerance * expected.abs().max(1e-3).max(if loose { 1.0 } else { 0.0 });
                let overflow = expected > f64::from(f32::MAX) && ours.is_infinite();
                assert!(
                    near || overflow,
                    "mathf[{k}]({x}) on {}: {ours} for {expected}",
                    m.sm
                );
            }
            // erf is odd, and tends to 1.
            assert!(
                r[11].abs() <= 1.0
                    && (x.abs() < 4.0 || (f64::from(r[11]) - x.signum()).abs() < 1e-6)
            );
        }
        let d: Vec<f64> = a.iter().map(|x| f64::from(*x) * 1.000_000_1).collect();
        let (va, vo) = (
            buffer64(&mut m, &d.iter().map(|x| x.to_bits()).collect::<Vec<_>>()),
            m.space.alloc(8 * 8 * n),
        );
        m.launch("mathd", shape(2, 128), Args::default().ptr(va).ptr(vo));
        for (i, r) in u64s(&m, vo, 8 * n).chunks(8).enumerate() {
            let x = d[i];
            let expected = [
                x.sin(),
                x.cos(),
                x.exp(),
                x.abs().ln(),
                x.abs().powf(1.7),
                x.tanh(),
                x.cbrt(),
                x % 3.0,
            ];
            for (k, (ours, expected)) in r.iter().zip(expected).enumerate() {
                let ours = f64::from_bits(*ours);
                let near =
                    (ours - expected).abs() <= 1e-14 * expected.abs().max(1e-2) || ours == expected;
                assert!(near, "mathd[{k}]({x}) on {}: {ours} for {expected}", m.sm);
            }
        }
    }
}

/// A half as a float.
fn half(x: u16) -> f32 {
    let (exponent, fraction) = (i32::from(x >> 10 & 31), f32::from(x & 1023));
    let value = match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2.0_f32.powi(exponent - 25),
    };
    if x >> 15 != 0 { -value } else { value }
}

/// The half nearest to a double that is exact, ties to even.
fn to_half(x: f64) -> u16 {
    if x.is_nan() {
        return 0x7fff;
    }
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let x = x.abs();
    let unit = 2.0_f64.powi((x.max(2.0_f64.powi(-14)).log2().floor() as i32 - 10).max(-24));
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded >= 65536.0 {
        return sign | 0x7c00;
    }
    let codes = 0..0x7c00_u16;
    sign | codes
        .into_iter()
        .collect::<Vec<_>>()
        .partition_point(|c| f64::from(half(*c)) < rounded) as u16
}

fn bfloat(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

fn to_bfloat(x: f32) -> u16 {
    if x.is_nan() {
        return 0x7fff;
    }
    let bits = x.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[test]
fn halves() {
    for mut m in machines() {
        let n = 256;
        let mut random = Random(6);
        // Halves of moderate size, so that each operation's result is exact in double precision.
        let mut word = |k: usize| {
            let half = |x: u32| {
                if k.is_multiple_of(16) {
                    x & 0xffff
                } else {
                    (x & 0x83ff) | (9 + (x >> 16) % 12) << 10
                }
            };
            half(random.word()) | half(random.word()) << 16
        };
        let a: Vec<u32> = (0..n).map(&mut word).collect();
        let b: Vec<u32> = (0..n).map(&mut word).collect();
        let (va, vb, vo) = (
            m.space.buffer(&a),
            m.space.buffer(&b),
            m.space.alloc(4 * 16 * n),
        );
        m.launch(
            "halves",
            shape(2, 128),
            Args::default().ptr(va).ptr(vb).ptr(vo),
        );
        let mut expected = Vec::new();
        for (&x, &y) in a.iter().zip(&b) {
            let parts = |v: u32| [v as u16, (v >> 16) as u16];
            let (h, k) = (
                parts(x).map(|v| f64::from(half(v))),
                parts(y).map(|v| f64::from(half(v))),
            );
            let (g, l) = (parts(x).map(bfloat), parts(y).map(bfloat));
            let pack = |v: [u16; 2]| u32::from(v[0]) | u32::from(v[1]) << 16;
            let each = |f: &dyn Fn(f64, f64) -> f64| pack([0, 1].map(|i| to_half(f(h[i], k[i]))));
            let pick = |x: f64, y: f64, less: bool| {
                if x.is_nan() {
                    y
                } else if y.is_nan() {
                    x
                } else if x == y {
                    if x.is_sign_negative() == less { x } else { y }
                } else if (x < y) == less {
                    x
                } else {
                    y
                }
            };
            let (fx, fy) = (f32::from_bits(x), f32::from_bits(y));
            expected.extend([
                each(&|a, b| a + b),
                each(&|a, b| a * b),
                each(&|a, b| a * b + a),
                each(&|a, b| pick(a, b, true)),
                each(&|a, b| pick(a, b, false)),
                each(&|a, b| a - b),
                pack([0, 1].map(|i| if h[i] > k[i] { 0x3c00 } else { 0 })),
                u32::from(h[0] == k[0] && h[1] == k[1])
                    | u32::from(h[0] == k[0]) << 1
                    | u32::from(h[1] < k[1]) << 2,
                nan32(h[0] as f32),
                nan32(h[1] as f32),
                pack([to_half(f64::from(fx)), to_half(f64::from(fy))]),
                pack([to_bfloat(fx), to_bfloat(fy)]),
                0,
                0,
                h[0].clamp(-2e9, 2e9) as i32 as u32,
                u32::from(to_half(f64::from(fy))) | u32::from(to_half(f64::from(x as i32))) << 16,
            ]);
            let _ = (g, l);
        }
        let mut ours = m.space.words(vo, 16 * n);
        for (i, row) in ours.chunks_mut(16).enumerate() {
            // bfloat16: a single rounding of the exact value, judged by its neighbours.
            for side in 0..2 {
                let (x, y) = ((a[i] >> (16 * side)) as u16, (b[i] >> (16 * side)) as u16);
                let (x, y) = (bfloat(x), bfloat(y));
                let got = (row[12] >> (16 * side)) as u16;
                let exact = f64::from(x) * f64::from(y) + f64::from(x);
                if exact.is_finite() && exact.abs() < 3e38 && exact.abs() > 1e-37 {
                    let ulp = 2.0_f64.powi(exact.abs().log2().floor() as i32 - 7);
                    assert!(
                        (f64::from(bfloat(got)) - exact).abs() <= 0.501 * ulp,
                        "{x} * {y} + {x}: {}",
                        bfloat(got)
                    );
                }
                let max = if x.is_nan() {
                    y
                } else if y.is_nan() {
                    x
                } else {
                    x.max(y)
                };
                let got = bfloat((row[13] >> (16 * side)) as u16);
                assert!(got == max || (got.is_nan() && max.is_nan()));
            }
            (row[12], row[13]) = (0, 0);
        }
        // A NaN's conversion to an integer aside.
        for (i, x) in a.iter().enumerate() {
            if half(*x as u16).is_nan() || half(*x as u16).is_infinite() {
                ours[16 * i + 14] = 0;
                expected[16 * i + 14] = 0;
            }
        }
        same("halves", &m, 16, &ours, &expected);
    }
}

#[test]
fn warps() {
    for mut m in machines() {
        let n = 128;
        let mut random = Random(7);
        let mut a: Vec<i32> = (0..n).map(|_| random.word() as i32 >> 22).collect();
        // One warp all of one value.
        a[32..64].fill(3);
        let (va, vo) = (
            m.space
                .buffer(&a.iter().map(|x| *x as u32).collect::<Vec<_>>()),
            m.space.alloc(4 * 16 * n),
        );
        m.launch("warps", shape(2, 64), Args::default().ptr(va).ptr(vo));
        let mut expected = Vec::new();
        for warp in a.chunks(32) {
            let mask =
                |f: &dyn Fn(usize) -> bool| (0..32).fold(0_u32, |m, i| m | u32::from(f(i)) << i);
            let walked: Vec<i32> = (0..32)
                .map(|i| (0..i & 3).fold(warp[i], |w, _| w.wrapping_mul(3).wrapping_add(1)))
                .collect();
            let odd_sum = (1..32)
                .step_by(2)
                .fold(0_i32, |s, i| s.wrapping_add(walked[i]));
            let even_max = (0..32).step_by(2).map(|i| warp[i]).max().unwrap();
            let total = warp.iter().fold(0_i32, |s, x| s.wrapping_add(*x));
            let all_same = warp.iter().all(|x| x & !0xff == warp[0] & !0xff);
            for lane in 0..32 {
                let v = warp[lane];
                let any = warp.contains(&3);
                let all = warp.iter().all(|x| *x > -100);
                expected.extend([
                    warp[5] as u32,
                    warp[if lane >= 3 { lane - 3 } else { lane }] as u32,
                    warp[if lane % 16 + 7 < 16 { lane + 7 } else { lane }] as u32,
                    warp[lane ^ 9] as u32,
                    mask(&|i| warp[i] > 0),
                    u32::from(any) | u32::from(all) << 1,
                    mask(&|i| warp[i] & 3 == v & 3),
                    if all_same { u32::MAX } else { 0 },
                    u32::from(all_same),
                    total as u32,
                    *warp.iter().min().unwrap() as u32,
                    warp.iter().fold(0, |x, y| x ^ *y as u32),
                    if lane & 1 != 0 {
                        walked[1].wrapping_add(odd_sum) as u32
                    } else {
                        warp[2].wrapping_sub(even_max) as u32
                    },
                    (warp[3] + i32::from(v & 4 == 0)) as u32,
                    total as u32,
                    (32 + warp[lane & !7 | (lane ^ 1) & 7]) as u32,
                ]);
            }
        }
        same("warps", &m, 16, &m.space.words(vo, 16 * n), &expected);
    }
}

#[test]
fn branches() {
    for mut m in machines() {
        let count = 1024;
        let a = Random(8).words(count);
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(4 * count));
        m.launch(
            "branches",
            shape(8, 128),
            Args::default().ptr(va).ptr(vo).u32(40),
        );
        let expected: Vec<u32> = a
            .iter()
            .map(|&x| {
                if x % 11 == 3 {
                    return 12345;
                }
                let mut s = 0_u32;
                'out: for i in 0..x % 37 {
                    if x >> (i & 31) & 1 != 0 {
                        continue;
                    }
                    for j in i..40 {
                        s = s.wrapping_mul(31).wrapping_add(i ^ j);
                        if s % 13 == 5 {
                            break;
                        }
                        if s % 101 == 7 {
                            break 'out;
                        }
                    }
                }
                s = match x & 15 {
                    0 => s.wrapping_add(3),
                    1 => s.wrapping_mul(5),
                    2 => s ^ x,
                    3 => s.wrapping_sub(x),
                    4 => !s,
                    5 => s << 3,
                    6 => s >> 2,
                    7 => s.wrapping_add(s >> 5),
                    9 => s | 77,
                    10 => s & !1,
                    11 => s.wrapping_mul(s),
                    12 => s % 1000,
                    _ => s.wrapping_add(x.wrapping_mul(7)),
                };
                while s & 1 != 0 {
                    s = s / 3 + 1;
                    if s < 8 {
                        break;
                    }
                }
                s
            })
            .collect();
        same("branches", &m, 1, &m.space.words(vo, count), &expected);
    }
}

#[test]
fn recursion() {
    fn fib(n: u32) -> u64 {
        if n < 2 {
            u64::from(n)
        } else {
            fib(n - 1) + fib(n - 2)
        }
    }
    for mut m in machines() {
        let a = Random(9).words(64);
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(8 * 64));
        // Recursion has no known depth: the attribute says nothing, so a stack is given.
        m.kernels.get_mut("recursion").unwrap().stack = 4096;
        m.launch("recursion", shape(1, 64), Args::default().ptr(va).ptr(vo));
        let expected: Vec<u64> = a
            .iter()
            .map(|x| {
                if x & 1 != 0 {
                    fib(x % 13)
                } else {
                    u64::from(2 * (x % 5) + 3) + fib(x % 7)
                }
            })
            .collect();
        same("recursion", &m, 1, &u64s(&m, vo, 64), &expected);
    }
}

#[test]
fn locks_within_a_warp() {
    for mut m in machines() {
        let (lock, vo) = (m.space.alloc(16), m.space.alloc(4 * 256));
        m.launch(
            "locks",
            shape(4, 64),
            Args::default().ptr(lock).ptr(lock + 8).ptr(vo),
        );
        let mut order = m.space.words(vo, 256);
        order.sort_unstable();
        assert_eq!(order, (0..256).collect::<Vec<_>>(), "{}", m.sm);
        assert_eq!(m.space.words(lock + 8, 1), [256]);
    }
}

#[test]
fn atomics() {
    for mut m in machines() {
        let (blocks, threads) = (5_u32, 96_u32);
        let n = blocks * threads;
        let mut start = vec![0_u32; 16 + 8 * blocks as usize];
        (start[3], start[7]) = (u32::MAX, 10);
        let words = m.space.buffer(&start);
        let longs = buffer64(&mut m, &[0, 0, 5000, 0]);
        let (f, d, old) = (
            m.space.alloc(8),
            m.space.alloc(8),
            m.space.alloc(4 * n as usize),
        );
        m.launch(
            "atomics",
            shape(blocks, threads),
            Args::default().ptr(words).ptr(longs).ptr(f).ptr(d).ptr(old),
        );
        let mut seen = m.space.words(old, n as usize);
        seen.sort_unstable();
        assert_eq!(seen, (0..n).collect::<Vec<_>>());
        let mut w = vec![
            n,
            (-(n as i32 - 1)) as u32,
            n - 1,
            0,
            (1 << 29) - 1,
            (0..n).fold(0, |x, i| x ^ i),
        ];
        w.push((0..n).fold(0, |x, _| if x >= 99 { 0 } else { x + 1 }));
        w.push((0..n).fold(10, |x, _| if x == 0 || x > 50 { 50 } else { x - 1 }));
        w.push(0_u32.wrapping_sub(3 * n));
        assert_eq!(m.space.words(words, 9), w, "{}", m.sm);
        let sum: u64 = (0..u64::from(n)).sum();
        assert_eq!(
            u64s(&m, longs, 4),
            [
                sum * 1_000_003,
                u64::from(n) - 21,
                1000 - u64::from(n - 1) % 500,
                sum + u64::from(n)
            ],
            "{}",
            m.sm
        );
        assert_eq!(
            m.space.read_floats(f, 1),
            [(0..n).map(|i| 0.25 * (i & 7) as f32).sum::<f32>()]
        );
        assert_eq!(f64::from_bits(u64s(&m, d, 1)[0]), 0.5 * sum as f64);
        for block in 0..blocks {
            let of = || block * threads..(block + 1) * threads;
            let long: u64 = of().map(|i| u64::from(i) << 30).sum();
            let expected = [
                of().sum(),
                of().map(|i| i * 7 % 101).max().unwrap(),
                of().fold(0, |x, i| x ^ i * 3),
                block * threads + 9,
                long as u32,
                (long >> 32) as u32,
                ((0..threads).sum::<u32>() as f32).to_bits(),
            ];
            assert_eq!(
                m.space.words(words + 64 + u64::from(32 * block), 7),
                expected,
                "{} block {block}",
                m.sm
            );
        }
    }
}

#[test]
fn barriers() {
    for mut m in machines() {
        let (blocks, threads) = (3, 128);
        let n = blocks * threads;
        let mut a = Random(10).words(n);
        a[200] = 77;
        a[300] = 78;
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(4 * 3 * n));
        let mut shape = shape(blocks as u32, threads as u32);
        shape.dynamic = 4 * threads as u32;
        m.launch("barriers", shape, Args::default().ptr(va).ptr(vo));
        let mut expected = Vec::new();
        for block in a.chunks(threads) {
            let count = block.iter().filter(|x| *x & 1 != 0).count() as u32;
            let flags =
                u32::from(block.iter().all(|x| *x != 77)) | u32::from(block.contains(&78)) << 1;
            for t in 0..threads {
                let value = if t < threads / 2 {
                    block[t]
                } else {
                    (1..=3).fold(0_u32, |sum, k| {
                        sum.wrapping_mul(5)
                            .wrapping_add(block[threads - 1 - t].wrapping_mul(k))
                    })
                };
                expected.extend([value, count, flags]);
            }
        }
        same("barriers", &m, 3, &m.space.words(vo, 3 * n), &expected);
    }
}

#[test]
fn parameters_locals_and_generic_pointers() {
    for mut m in machines() {
        let table = [1_u32, 2, 3, 5, 8, 13, 21, 34, 55, 89, 0, 0, 0, 0, 0, 0];
        let a = Random(11).words(128);
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(8 * 4 * 128));
        let (c, s, i, l, f, d) = (
            -3_i8,
            1000_i16,
            -70_000_i32,
            -123_456_789_012_i64,
            2.5_f32,
            1e6_f64,
        );
        let mut pack = vec![c as u8, 0];
        pack.extend(s.to_le_bytes());
        pack.extend(i.to_le_bytes());
        pack.extend(l.to_le_bytes());
        pack.extend(f.to_le_bytes());
        pack.extend([0; 4]);
        pack.extend(d.to_le_bytes());
        m.launch(
            "params",
            shape(1, 128),
            Args::default().bytes(&pack, 8).u32(99).ptr(va).ptr(vo),
        );
        let mut expected = Vec::new();
        for &x in &a {
            let mut local: Vec<u64> = (0..8_u32)
                .map(|k| {
                    u64::from(
                        x.wrapping_mul(k)
                            .wrapping_add(table[x.wrapping_add(k) as usize & 15]),
                    )
                })
                .collect();
            let written = l.wrapping_add(99) as u64;
            if x & 1 != 0 {
                local[(x & 3) as usize + 1] = written;
            }
            expected.extend([
                (i64::from(c) + i64::from(s) * 3 + i64::from(i)) as u64,
                local[(x >> 2) as usize & 7],
                5 + 4_000_000,
                if x & 1 != 0 {
                    written
                } else {
                    local[(x >> 2) as usize & 7]
                },
            ]);
        }
        same("params", &m, 4, &u64s(&m, vo, 4 * 128), &expected);
    }
}

#[test]
fn function_pointers() {
    for mut m in machines() {
        let a = Random(12).words(128);
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(4 * 128));
        m.kernels.get_mut("pointers").unwrap().stack = 1024;
        m.launch("pointers", shape(2, 64), Args::default().ptr(va).ptr(vo));
        let apply = |which: u32, a: u32, b: u32| match which {
            0 => a.wrapping_add(b),
            1 => a.wrapping_mul(b),
            _ => (a ^ b).wrapping_mul(2_654_435_761),
        };
        let expected: Vec<u32> = (0..)
            .zip(&a)
            .map(|(i, &x)| apply(x % 3, x, i).wrapping_add(apply(x % 2, x, 7)))
            .collect();
        same("pointers", &m, 1, &m.space.words(vo, 128), &expected);
    }
}

#[test]
fn widths() {
    for mut m in machines() {
        let n = 256;
        let a = Random(13).words(4 * n);
        let (va, vo, vb) = (
            m.space.buffer(&a),
            m.space.alloc(16 * n),
            m.space.alloc(2 * n),
        );
        m.launch(
            "widths",
            shape(2, 128),
            Args::default().ptr(va).ptr(vo).ptr(vb),
        );
        let (mut expected, mut bytes) = (Vec::new(), Vec::new());
        for block in a.chunks(512) {
            let mut c = [0_u8; 512];
            for t in 0..128_usize {
                c[4 * t] = t as u8;
                c[4 * t + 1] = (3 * t) as u8;
                c[4 * t + 2..4 * t + 4].copy_from_slice(&(t as i16 * -5).to_le_bytes());
            }
            for t in 0..128_usize {
                let v = &block[4 * ((t + 17) & 127)..];
                let w = &block[4 * ((t + 3) & 127) + 2..];
                let at = (4 * t + 62) & 510;
                let short = i32::from(i16::from_le_bytes([c[at], c[at + 1]])) as u32;
                let x = v[0].wrapping_add(u32::from(c[7 * t & 511]));
                expected.extend([
                    x,
                    v[1].wrapping_add(short),
                    v[2].wrapping_add(w[0]),
                    v[3] ^ w[1],
                ]);
                bytes.extend([x as u8, c[t]]);
            }
        }
        same("widths", &m, 4, &m.space.words(vo, 4 * n), &expected);
        assert_eq!(m.space.read(vb, 2 * n), bytes);
    }
}

#[test]
fn grids_that_meet() {
    for mut m in machines() {
        let (blocks, threads) = (12, 64);
        let n = blocks * threads;
        let a = Random(14).words(n);
        let (va, vo) = (m.space.buffer(&a), m.space.alloc(4 * n));
        let mut shape = shape(blocks as u32, threads as u32);
        shape.cooperative = true;
        let workspace = m.space.alloc(64);
        m.workspace = Some(workspace);
        m.launch("grid_sync", shape, Args::default().ptr(va).ptr(vo));
        let (mut a, mut o) = (a, vec![0_u32; n]);
        for k in 0..3_usize {
            for x in &mut a {
                *x = x.wrapping_add(k as u32 + 1);
            }
            for i in 0..n {
                o[i] = o[i].wrapping_mul(3).wrapping_add(a[(i * 7 + k) % n]);
            }
        }
        same("grid_sync", &m, 1, &m.space.words(vo, n), &o);
    }
}

#[test]
fn clusters() {
    for mut m in machines().into_iter().filter(|m| m.sm.0 >= 90) {
        let vo = m.space.alloc(4 * 32 * 8);
        let mut shape = shape(8, 32);
        shape.cluster = (4, 1, 1).into();
        m.launch("cluster_ring", shape, Args::default().ptr(vo));
        let expected: Vec<u32> = (0..8_u32)
            .flat_map(|block| {
                let rank = block % 4;
                (0..32).map(move |t| ((rank + 1) % 4 * 100 + 31 - t, rank * 100 + t + 1000))
            })
            .map(|(remote, own)| remote + own)
            .collect();
        let ours = m.space.words(vo, 256);
        same("cluster_ring", &m, 1, &ours, &expected);
    }
}

#[test]
fn tensor_products() {
    for mut m in machines() {
        let mut random = Random(15);
        // Small integers: exact whatever a sum keeps.
        let mut small = |n: usize| {
            (0..n)
                .map(|_| (random.word() % 17) as f64 - 8.0)
                .collect::<Vec<_>>()
        };
        let (a, b, c) = (small(256), small(128), small(128));
        let halves = |v: &[f64]| {
            v.chunks(2)
                .map(|p| u32::from(to_half(p[0])) | u32::from(to_half(p[1])) << 16)
                .collect::<Vec<_>>()
        };
        let (ai, bi) = (Random(16).words(128), Random(17).words(64));
        let (va, vb) = (m.space.buffer(&halves(&a)), m.space.buffer(&halves(&b)));
        let vc = m
            .space
            .floats(&c.iter().map(|x| *x as f32).collect::<Vec<_>>());
        let (vai, vbi) = (m.space.buffer(&ai), m.space.buffer(&bi));
        let (vd, vdi) = (m.space.alloc(4 * 128), m.space.alloc(4 * 128));
        m.launch(
            "tensor",
            shape(1, 32),
            Args::default()
                .ptr(va)
                .ptr(vb)
                .ptr(vc)
                .ptr(vd)
                .ptr(vai)
                .ptr(vbi)
                .ptr(vdi),
        );
        let (d, di) = (m.space.read_floats(vd, 128), m.space.words(vdi, 128));
        for row in 0..16 {
            for col in 0..8 {
                let sum: f64 = (0..16)
                    .map(|k| a[16 * row + k] * b[8 * k + col])
                    .sum::<f64>()
                    + c[8 * row + col];
                assert_eq!(
                    f64::from(d[8 * row + col]),
                    sum,
                    "{} row {row} column {col}",
                    m.sm
                );
                let byte = |words: &[u32], line: usize, k: usize| {
                    (words[8 * line + k / 4] >> (8 * (k % 4))) as u8
                };
                let start = 1 + (col % 2) as i32 + 2 * (row / 8) as i32;
                let int = (0..32).fold(start, |sum, k| {
                    sum + i32::from(byte(&ai, row, k) as i8) * i32::from(byte(&bi, col, k))
                });
                assert_eq!(
                    di[8 * row + col] as i32,
                    int,
                    "{} row {row} column {col}",
                    m.sm
                );
            }
        }
    }
}
