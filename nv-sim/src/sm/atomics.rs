//! What atomic operations do to a value.

use super::ieee::{self, BF16, F16, F32, Format, Round};

/// An atomic operation on 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atomic {
    bytes: u32,
    apply: fn(u64, u64, u64) -> Option<u64>,
}

impl Atomic {
    /// An operation on a type; `None` where there is none such.
    pub fn new(what: &str, kind: &str, ftz: bool) -> Option<Self> {
        let bytes = match kind {
            "u32" | "s32" | "f32" | "f16x2" | "bf16x2" => 4,
            "u64" | "s64" | "f64" => 8,
            _ => return None,
        };
        let apply: fn(u64, u64, u64) -> Option<u64> = match (what, kind) {
            ("cas", "u32" | "u64") => |old, a, b| (old == a).then_some(b),
            ("exch", "u32" | "u64") => |_, a, _| Some(a),
            ("add", "u32" | "s32" | "u64" | "s64") => |old, a, _| Some(old.wrapping_add(a)),
            ("and", "u32" | "u64") => |old, a, _| Some(old & a),
            ("or", "u32" | "u64") => |old, a, _| Some(old | a),
            ("xor", "u32" | "u64") => |old, a, _| Some(old ^ a),
            ("min", "u32" | "u64") => |old, a, _| Some(old.min(a)),
            ("max", "u32" | "u64") => |old, a, _| Some(old.max(a)),
            ("min", "s32") => |old, a, _| Some(if s32(old) < s32(a) { old } else { a }),
            ("max", "s32") => |old, a, _| Some(if s32(old) > s32(a) { old } else { a }),
            ("min", "s64") => {
                |old, a, _| Some(old.cast_signed().min(a.cast_signed()).cast_unsigned())
            }
            ("max", "s64") => {
                |old, a, _| Some(old.cast_signed().max(a.cast_signed()).cast_unsigned())
            }
            ("inc", "u32" | "u64") => |old, a, _| Some(if old >= a { 0 } else { old + 1 }),
            ("dec", "u32" | "u64") => {
                |old, a, _| Some(if old == 0 || old > a { a } else { old - 1 })
            }
            ("add", "f32") if ftz => |old, a, _| {
                let sum = f32_add(F32.flush(old), F32.flush(a));
                Some(F32.flush(sum))
            },
            ("add", "f32") => |old, a, _| Some(f32_add(old, a)),
            ("add", "f64") => |old, a, _| Some((f64::from_bits(old) + f64::from_bits(a)).to_bits()),
            ("add", "f16x2") => |old, a, _| Some(add_halves(F16, old, a)),
            ("add", "bf16x2") => |old, a, _| Some(add_halves(BF16, old, a)),
            _ => return None,
        };
        Some(Self { bytes, apply })
    }

    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The new value, or `None` to leave the old one. A value of 4 bytes counts with its low bits.
    pub fn apply(self, old: u64, a: u64, b: u64) -> Option<u64> {
        (self.apply)(old, a, b)
    }
}

fn s32(x: u64) -> i32 {
    (x as u32).cast_signed()
}

fn f32_add(a: u64, b: u64) -> u64 {
    let sum = f32::from_bits(a as u32) + f32::from_bits(b as u32);
    if sum.is_nan() {
        F32.nan()
    } else {
        u64::from(sum.to_bits())
    }
}

fn add_halves(format: Format, a: u64, b: u64) -> u64 {
    let one = F32.unpack(u64::from(1.0_f32.to_bits()));
    let add = |a: u64, b: u64| {
        let sum = ieee::fma(
            format.unpack(a & 0xffff),
            one,
            format.unpack(b & 0xffff),
            Round::Near,
        );
        format.pack(sum, Round::Near)
    };
    add(a, b) | add(a >> 16, b >> 16) << 16
}
