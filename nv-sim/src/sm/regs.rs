//! The registers of one warp, a lane array each, so that loops over lanes become vector code.

use nv_proto::sass::{PT, RZ};
use zerocopy::FromZeros;

/// Lanes of a warp.
pub(super) const LANES: usize = 32;
/// All lanes.
pub(super) const ALL: u32 = u32::MAX;

/// One 32-bit value for each lane.
pub(super) type Lanes = [u32; LANES];
/// One 64-bit value for each lane.
pub(super) type Lanes64 = [u64; LANES];

/// The registers that instructions name.
pub(super) struct Regs {
    r: Box<[Lanes; 256]>,
    /// A lane mask each; the last reads true.
    p: [u32; 8],
    pub uniform: Box<Uniform>,
    /// Each lane's view of the convergence barriers: the lanes that take part.
    pub barriers: Box<[Lanes; 16]>,
    /// Where a lane goes on after a collective block.
    pub after: Lanes64,
    /// What the last `BAR.RED` of a lane gave.
    pub reduced: Lanes,
}

/// The registers that all lanes share. Lanes that run apart have a copy for each group, so that they cannot
/// disturb one another whatever order they run in.
#[derive(Clone)]
pub(super) struct Uniform {
    r: [u32; 256],
    /// All ones or zero each.
    p: [u32; 8],
}

impl Uniform {
    pub fn new() -> Self {
        let mut p = [0; 8];
        p[usize::from(PT)] = ALL;
        Self { r: [0; 256], p }
    }
}

/// Where a 32-bit result goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Dst {
    Reg(u8),
    Uniform(u8),
    None,
}

/// Where a predicate goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PredDst {
    Pred(u8),
    Uniform(u8),
    None,
}

/// A 32-bit source as it lies, without negation and the like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Raw {
    Reg(u8),
    Uniform(u8),
    Imm(u32),
}

/// A predicate source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PredSrc {
    pub index: u8,
    pub uniform: bool,
    pub not: bool,
}

impl PredSrc {
    pub const TRUE: Self = Self {
        index: PT,
        uniform: false,
        not: false,
    };

    pub fn get(self, regs: &Regs) -> u32 {
        let index = usize::from(self.index & 7);
        let value = if self.uniform {
            regs.uniform.p[index]
        } else {
            regs.p[index]
        };
        if self.not { !value } else { value }
    }
}

impl Raw {
    pub const ZERO: Self = Self::Imm(0);

    #[inline]
    pub fn get(self, regs: &Regs) -> Lanes {
        match self {
            Self::Reg(n) => regs.r[usize::from(n)],
            Self::Uniform(n) => [regs.uniform.r[usize::from(n)]; LANES],
            Self::Imm(value) => [value; LANES],
        }
    }

    /// The value of one lane.
    pub fn lane(self, regs: &Regs, lane: usize) -> u32 {
        match self {
            Self::Reg(n) => regs.r[usize::from(n)][lane % LANES],
            Self::Uniform(n) => regs.uniform.r[usize::from(n)],
            Self::Imm(value) => value,
        }
    }

    /// The word that follows in a pair or quad: zero stays zero.
    pub fn next(self, by: u8) -> Self {
        match self {
            Self::Reg(n) => Self::Reg(n.wrapping_add(by)),
            Self::Uniform(n) => Self::Uniform(n.wrapping_add(by)),
            Self::Imm(value) => Self::Imm(value),
        }
    }
}

impl Regs {
    /// Registers of a new warp, all zero; `None` when the host has no memory.
    pub fn new() -> Option<Self> {
        let r = <[Lanes; 256]>::new_box_zeroed().ok()?;
        let barriers = <[Lanes; 16]>::new_box_zeroed().ok()?;
        let mut p = [0; 8];
        p[usize::from(PT)] = ALL;
        Some(Self {
            r,
            p,
            uniform: Box::new(Uniform::new()),
            barriers,
            after: [0; LANES],
            reduced: [0; LANES],
        })
    }

    /// Writes the lanes of `mask`.
    #[inline]
    pub fn set(&mut self, dst: Dst, mask: u32, value: &Lanes) {
        match dst {
            Dst::Reg(RZ) | Dst::None => {}
            Dst::Reg(n) => {
                let reg = &mut self.r[usize::from(n)];
                if mask == ALL {
                    *reg = *value;
                } else {
                    for lane in 0..LANES {
                        let on = 0_u32.wrapping_sub((mask >> lane) & 1);
                        reg[lane] = (reg[lane] & !on) | (value[lane] & on);
                    }
                }
            }
            Dst::Uniform(n) => self.uniform.r[usize::from(n)] = value[first(mask)],
        }
    }

    /// Writes a pair.
    #[inline]
    pub fn set64(&mut self, dst: Dst, mask: u32, value: &Lanes64) {
        self.set(dst, mask, &value.map(low));
        self.set(dst.next(1), mask, &value.map(high));
    }

    /// Writes the lanes of `mask` of a predicate, given as a lane mask.
    #[inline]
    pub fn set_pred(&mut self, dst: PredDst, mask: u32, value: u32) {
        match dst {
            PredDst::None => {}
            PredDst::Pred(n) if n < PT => {
                let p = &mut self.p[usize::from(n)];
                *p = (*p & !mask) | (value & mask);
            }
            PredDst::Uniform(n) if n < PT => {
                let on = (value >> first(mask)) & 1;
                self.uniform.p[usize::from(n)] = 0_u32.wrapping_sub(on);
            }
            PredDst::Pred(_) | PredDst::Uniform(_) => {}
        }
    }

    /// A predicate as a lane mask.
    pub fn pred(&self, n: u8) -> u32 {
        self.p[usize::from(n & 7)]
    }
}

impl Dst {
    /// The register that follows in a pair or quad; nothing follows the one that drops what is written.
    pub fn next(self, by: u8) -> Self {
        match self {
            Self::Reg(RZ) | Self::None => Self::None,
            Self::Reg(n) => Self::Reg(n.wrapping_add(by)),
            Self::Uniform(n) => Self::Uniform(n.wrapping_add(by)),
        }
    }
}

/// The lowest lane of a mask, 0 of an empty one.
pub(super) fn first(mask: u32) -> usize {
    if mask == 0 {
        0
    } else {
        mask.trailing_zeros() as usize
    }
}

/// The lanes of a mask, lowest first.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        Some(lane as usize)
    })
}

#[inline]
pub(super) fn map1(a: &Lanes, f: impl Fn(u32) -> u32) -> Lanes {
    std::array::from_fn(|i| f(a[i]))
}

#[inline]
pub(super) fn map2(a: &Lanes, b: &Lanes, f: impl Fn(u32, u32) -> u32) -> Lanes {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline]
pub(super) fn map3(a: &Lanes, b: &Lanes, c: &Lanes, f: impl Fn(u32, u32, u32) -> u32) -> Lanes {
    std::array::from_fn(|i| f(a[i], b[i], c[i]))
}

/// A lane mask from a test of each lane.
#[inline]
pub(super) fn mask_of(f: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u32::from(f(lane)) << lane;
    }
    mask
}

pub(super) const fn low(value: u64) -> u32 {
    value as u32
}

pub(super) const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

pub(super) const fn pair(lo: u32, hi: u32) -> u64 {
    (hi as u64) << 32 | lo as u64
}
