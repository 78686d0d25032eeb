//! From a decoded instruction to what a warp runs: operands resolved once, every modifier accounted for.
//!
//! Nothing is skipped over: a modifier, an operand or a decoration that the lowering of an operation has not asked for makes
//! the instruction unimplemented, so that no variant runs as another.

pub(super) use self::special::Special;
use nv_proto::sass::{self, Address, Arg, BaseKind, Inst, Op, Operand, RZ, Unknown};
use nv_proto::unit::SmVersion;

use super::FaultKind;
use super::exec::{Context, Flow, Stop};
use super::launch::Launch;
use super::regs::{Dst, LANES, Lanes, Lanes64, PredDst, PredSrc, Raw, Regs, map1, pair};

mod control;
mod convert;
mod double;
mod float;
mod half;
mod integer;
mod logic;
mod memory;
pub(super) mod special;
mod tensor;
mod warp;

/// An instruction ready to run.
pub(super) struct Lowered {
    pub guard: PredSrc,
    /// Whether it runs once for the warp, whatever lanes are active.
    pub uniform: bool,
    pub step: Step,
}

/// What runs on the registers, for the lanes of a mask.
pub(super) type Alu = dyn Fn(&mut Regs, u32);
/// What runs on the machine, for the lanes of a mask.
pub(super) type Act = dyn Fn(&mut Context<'_, '_>, u32) -> Result<Flow, Stop>;

/// What an instruction does.
pub(super) enum Step {
    /// Reads and writes registers only.
    Alu(Box<Alu>),
    /// Anything else.
    Op(Box<Act>),
    /// Cannot run.
    Fault(FaultKind),
}

/// Why an instruction has no lowering.
pub(super) enum Refused {
    /// The simulator has it not.
    Unimplemented,
    /// The hardware would fault.
    Fault(FaultKind),
}

/// What a lowering gives.
pub(super) type Lower = Result<Step, Refused>;

/// Decodes an instruction that `sm` runs: one of its own, or one of an older architecture with its major number, some
/// of whose forms the compiler makes for that one alone (`HFMA2.MMA` on sm_80).
fn decode(words: [u64; 2], sm: SmVersion) -> Result<Inst, Unknown> {
    sass::decode(words, sm).or_else(|unknown| {
        [89, 86, 80]
            .map(SmVersion)
            .into_iter()
            .filter(|older| older.major() == sm.major() && *older < sm)
            .find_map(|older| sass::decode(words, older).ok())
            .ok_or(unknown)
    })
}

/// Lowers the instruction at `pc`.
pub(super) fn lower(words: [u64; 2], pc: u64, launch: &Launch) -> Lowered {
    let inst = match decode(words, launch.sm) {
        Ok(inst) => inst,
        Err(unknown) => {
            return Lowered {
                guard: PredSrc::TRUE,
                uniform: false,
                step: Step::Fault(FaultKind::Unimplemented {
                    text: unknown.to_string(),
                }),
            };
        }
    };
    let guard = PredSrc {
        index: inst.guard.pred,
        uniform: inst.guard.uniform,
        not: inst.guard.not,
    };
    let mut args = Args {
        inst: &inst,
        pc,
        launch,
        used_args: 0,
        used_mods: 0,
    };
    let step = match args.step().and_then(|step| args.all_used().map(|()| step)) {
        Ok(step) => step,
        Err(Refused::Fault(kind)) => Step::Fault(kind),
        Err(Refused::Unimplemented) => Step::Fault(FaultKind::Unimplemented {
            text: inst.at(pc).to_string(),
        }),
    };
    Lowered {
        guard,
        uniform: inst.guard.uniform,
        step,
    }
}

/// A register-only step.
fn alu(f: impl Fn(&mut Regs, u32) + 'static) -> Lower {
    Ok(Step::Alu(Box::new(f)))
}

/// Any other step.
fn op(f: impl Fn(&mut Context<'_, '_>, u32) -> Result<Flow, Stop> + 'static) -> Lower {
    Ok(Step::Op(Box::new(f)))
}

/// An instruction being lowered, with the operands and modifiers that have been asked for.
struct Args<'a> {
    inst: &'a Inst,
    pc: u64,
    launch: &'a Launch,
    used_args: u32,
    used_mods: u32,
}

impl Args<'_> {
    fn step(&mut self) -> Lower {
        match self.inst.op {
            Op::Nop
            | Op::Mov
            | Op::Umov
            | Op::Imad
            | Op::Uimad
            | Op::Iadd3
            | Op::Uiadd3
            | Op::Iadd
            | Op::Viadd
            | Op::Lea
            | Op::Ulea
            | Op::Iabs
            | Op::Imnmx
            | Op::Uimnmx
            | Op::Vimnmx
            | Op::Uvimnmx
            | Op::Vimnmx3
            | Op::Viaddmnmx
            | Op::Idp
            | Op::Vabsdiff
            | Op::Vabsdiff4
            | Op::Isetp
            | Op::Uisetp => self.integer(),
            Op::Lop3
            | Op::Ulop3
            | Op::Plop3
            | Op::Shf
            | Op::Ushf
            | Op::Prmt
            | Op::Uprmt
            | Op::Sel
            | Op::Usel
            | Op::Sgxt
            | Op::Usgxt
            | Op::Bmsk
            | Op::Ubmsk
            | Op::Popc
            | Op::Upopc
            | Op::Brev
            | Op::Ubrev
            | Op::Flo
            | Op::Uflo
            | Op::R2p
            | Op::P2r => self.logic(),
            Op::Fadd
            | Op::Ufadd
            | Op::Fmul
            | Op::Ufmul
            | Op::Ffma
            | Op::Uffma
            | Op::Fmnmx
            | Op::Fsetp
            | Op::Ufsetp
            | Op::Fset
            | Op::Fsel
            | Op::Ufsel
            | Op::Fchk
            | Op::Mufu => self.float(),
            Op::Dadd | Op::Dmul | Op::Dfma | Op::Dsetp => self.double(),
            Op::Hadd2 | Op::Hmul2 | Op::Hfma2 | Op::Hsetp2 | Op::Hset2 | Op::Hmnmx2 => self.half(),
            Op::F2f
            | Op::F2fp
            | Op::F2i
            | Op::Uf2i
            | Op::I2f
            | Op::Ui2f
            | Op::I2fp
            | Op::Ui2fp
            | Op::I2i
            | Op::Frnd => self.convert(),
            Op::S2r | Op::S2ur | Op::Cs2r => self.special(),
            Op::Ldg
            | Op::Stg
            | Op::Ld
            | Op::St
            | Op::Ldl
            | Op::Stl
            | Op::Lds
            | Op::Sts
            | Op::Ldc
            | Op::Uldc
            | Op::Ldcu
            | Op::Atom
            | Op::Atomg
            | Op::Atoms
            | Op::Red
            | Op::Redg
            | Op::Ldgsts
            | Op::Ldgdepbar
            | Op::Depbar
            | Op::Membar
            | Op::Errbar
            | Op::Cgaerrbar
            | Op::Cctl
            | Op::Fence
            | Op::Qspc
            | Op::Syncs => self.memory(),
            Op::Bra
            | Op::Brx
            | Op::Call
            | Op::Ret
            | Op::Exit
            | Op::Bssy
            | Op::Bsync
            | Op::Break
            | Op::Bmov
            | Op::Warpsync
            | Op::Endcollective
            | Op::Yield
            | Op::Nanosleep
            | Op::Bar
            | Op::B2r
            | Op::Bpt
            | Op::Lepc
            | Op::UcgabarArv
            | Op::UcgabarWait
            | Op::Acqbulk
            | Op::Preexit => self.control(),
            Op::Vote | Op::Voteu | Op::Shfl | Op::Match | Op::Redux | Op::Elect | Op::R2ur => {
                self.warp()
            }
            Op::Hmma | Op::Ldsm | Op::Movm | Op::Imma => self.tensor(),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn all_used(&self) -> Result<(), Refused> {
        let mods = self
            .inst
            .mods()
            .iter()
            .enumerate()
            .all(|(i, _)| self.used_mods >> i & 1 != 0);
        let args = self
            .inst
            .args()
            .iter()
            .enumerate()
            .all(|(i, arg)| !arg.shown || self.used_args >> i & 1 != 0);
        if mods && args {
            Ok(())
        } else {
            Err(Refused::Unimplemented)
        }
    }

    /// Whether the instruction has a modifier, which is thereby accounted for.
    fn flag(&mut self, modifier: &str) -> bool {
        let mut found = false;
        for (i, text) in self.inst.mods().iter().enumerate() {
            if *text == modifier {
                self.used_mods |= 1 << i;
                found = true;
            }
        }
        found
    }

    /// The first modifier of a list that the instruction has.
    fn one_of<T: Copy>(&mut self, list: &[(&str, T)]) -> Option<T> {
        list.iter()
            .find(|(text, _)| self.flag(text))
            .map(|(_, value)| *value)
    }

    /// Accounts for modifiers that make no difference here.
    fn ignore(&mut self, list: &[&str]) {
        for text in list {
            self.flag(text);
        }
    }

    fn arg(&mut self, at: usize) -> Result<Arg, Refused> {
        let arg = self.inst.args().get(at).ok_or(Refused::Unimplemented)?;
        self.used_args |= 1 << at;
        Ok(*arg)
    }

    fn count(&self) -> usize {
        self.inst.args().len()
    }

    /// Whether an operand is there, as printed.
    fn shown(&self, at: usize) -> bool {
        self.inst.args().get(at).is_some_and(|arg| arg.shown)
    }

    /// The next operand from `at` on that is there: results that are dropped are passed over.
    fn skip(&self, at: usize) -> Result<usize, Refused> {
        (at..self.count())
            .find(|at| self.shown(*at))
            .ok_or(Refused::Unimplemented)
    }

    /// Whether an operand is a predicate.
    fn is_pred(&self, at: usize) -> bool {
        self.inst
            .args()
            .get(at)
            .is_some_and(|arg| matches!(arg.operand, Operand::Pred(_) | Operand::Upred(_)))
    }

    /// A register that the kernel may use, `width` of them in a row.
    fn check_reg(&self, n: u8, width: u8) -> Result<u8, Refused> {
        if n == RZ || u16::from(n) + u16::from(width) <= self.launch.register_limit {
            Ok(n)
        } else {
            Err(Refused::Fault(FaultKind::IllegalInstruction))
        }
    }

    /// The same for uniform registers.
    fn check_ureg(&self, n: u8, width: u8) -> Result<u8, Refused> {
        let urz = self.inst.urz();
        if n == urz || u16::from(n) + u16::from(width) <= u16::from(urz) {
            Ok(n)
        } else {
            Err(Refused::Fault(FaultKind::IllegalInstruction))
        }
    }

    fn dst(&mut self, at: usize) -> Result<Dst, Refused> {
        self.dst_of(at, 1)
    }

    /// A result of `width` registers.
    fn dst_of(&mut self, at: usize, width: u8) -> Result<Dst, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        match arg.operand {
            Operand::Reg(n) => Ok(Dst::Reg(self.check_reg(n, width)?)),
            Operand::Ureg(n) if n == self.inst.urz() => Ok(Dst::None),
            Operand::Ureg(n) => Ok(Dst::Uniform(self.check_ureg(n, width)?)),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn pred_dst(&mut self, at: usize) -> Result<PredDst, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        match arg.operand {
            _ if !arg.shown => Ok(PredDst::None),
            Operand::Pred(n) => Ok(PredDst::Pred(n)),
            Operand::Upred(n) => Ok(PredDst::Uniform(n)),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn pred(&mut self, at: usize) -> Result<PredSrc, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg { not: false, ..arg })?;
        match arg.operand {
            Operand::Pred(index) => Ok(PredSrc {
                index,
                uniform: false,
                not: arg.not,
            }),
            Operand::Upred(index) => Ok(PredSrc {
                index,
                uniform: true,
                not: arg.not,
            }),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// A 32-bit source with nothing said about it.
    fn src(&mut self, at: usize) -> Result<Raw, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        self.raw(arg.operand, 1)
    }

    fn raw(&self, operand: Operand, width: u8) -> Result<Raw, Refused> {
        match operand {
            Operand::Reg(RZ) => Ok(Raw::ZERO),
            Operand::Reg(n) => Ok(Raw::Reg(self.check_reg(n, width)?)),
            Operand::Ureg(n) if n == self.inst.urz() => Ok(Raw::ZERO),
            Operand::Ureg(n) => Ok(Raw::Uniform(self.check_ureg(n, width)?)),
            Operand::Imm(n) => Ok(Raw::Imm(n as u32)),
            Operand::F32(n) | Operand::F64Hi(n) => Ok(Raw::Imm(n)),
            Operand::Const { bank, address } => {
                if address.base.is_some_and(|n| n != RZ) || address.ureg.is_some() {
                    return Err(Refused::Unimplemented);
                }
                let value = self
                    .launch
                    .constant(bank, address.offset as u32 & 0xffff, 4);
                value.map(|n| Raw::Imm(n as u32)).map_err(Refused::Fault)
            }
            _ => Err(Refused::Unimplemented),
        }
    }

    /// An integer source that may be negated or complemented.
    fn src_int(&mut self, at: usize) -> Result<IntSrc, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg {
            neg: false,
            inv: false,
            ..arg
        })?;
        Ok(IntSrc {
            raw: self.raw(arg.operand, 1)?,
            neg: arg.neg,
            inv: arg.inv,
        })
    }

    /// A 32-bit float source: `-`, `|x|`.
    fn src_f32(&mut self, at: usize) -> Result<FloatSrc, Refused> {
        let arg = self.arg(at)?;
        plain(&Arg {
            neg: false,
            abs: false,
            ..arg
        })?;
        Ok(FloatSrc {
            raw: self.raw(arg.operand, 1)?,
            keep: keep(arg.abs),
            flip: flip(arg.neg),
        })
    }

    /// A 64-bit source.
    fn src64(&mut self, at: usize) -> Result<Pair, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        self.raw64(arg.operand)
    }

    fn raw64(&self, operand: Operand) -> Result<Pair, Refused> {
        Ok(match operand {
            Operand::Imm(n) => Pair {
                lo: Raw::Imm(n as u32),
                hi: Raw::Imm((n >> 32) as u32),
            },
            Operand::F64Hi(n) => Pair {
                lo: Raw::ZERO,
                hi: Raw::Imm(n),
            },
            Operand::Const { bank, address } => {
                let lo = self.raw(operand, 1)?;
                let offset = address.offset.wrapping_add(4);
                let hi = self.raw(
                    Operand::Const {
                        bank,
                        address: Address { offset, ..address },
                    },
                    1,
                )?;
                Pair { lo, hi }
            }
            _ => {
                let lo = self.raw(operand, 2)?;
                Pair { lo, hi: lo.next(1) }
            }
        })
    }

    /// An immediate.
    fn imm(&mut self, at: usize) -> Result<i64, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        match arg.operand {
            Operand::Imm(n) => Ok(n),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// A code address, relative to the next instruction.
    fn target(&mut self, at: usize) -> Result<i64, Refused> {
        match self.arg(at)?.operand {
            Operand::Target(n) => Ok(n),
            Operand::Imm(n) => Ok(n),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// A memory operand.
    fn address(&mut self, at: usize) -> Result<Place, Refused> {
        let arg = self.arg(at)?;
        plain(&arg)?;
        let Operand::Mem(address) = arg.operand else {
            return Err(Refused::Unimplemented);
        };
        self.place(&address)
    }

    fn place(&self, address: &Address) -> Result<Place, Refused> {
        let (width, scale) = match address.kind {
            BaseKind::Plain | BaseKind::U32 => (1, 0),
            BaseKind::Wide => (2, 0),
            BaseKind::X4 => (1, 2),
            BaseKind::X8 => (1, 3),
            BaseKind::X16 => (1, 4),
        };
        let base = match address.base {
            None => Raw::ZERO,
            Some(n) => self.raw(Operand::Reg(n), width)?,
        };
        let wide = address.kind == BaseKind::Wide;
        let ureg = match address.ureg {
            None => Raw::ZERO,
            Some(n) => self.raw(Operand::Ureg(n), 1)?,
        };
        Ok(Place {
            base,
            wide,
            scale,
            ureg,
            offset: address.offset,
        })
    }
}

/// Refuses an operand with a decoration that nobody has dealt with.
fn plain(arg: &Arg) -> Result<(), Refused> {
    if arg.neg || arg.abs || arg.not || arg.inv || !arg.suffix.is_empty() {
        return Err(Refused::Unimplemented);
    }
    Ok(())
}

fn keep(abs: bool) -> u32 {
    if abs { 0x7fff_ffff } else { u32::MAX }
}

fn flip(neg: bool) -> u32 {
    if neg { 0x8000_0000 } else { 0 }
}

/// An integer source.
#[derive(Clone, Copy)]
struct IntSrc {
    raw: Raw,
    neg: bool,
    inv: bool,
}

impl IntSrc {
    /// The value: two's complement where negated, ones' complement where inverted.
    #[inline]
    fn get(self, regs: &Regs) -> Lanes {
        let value = self.raw.get(regs);
        match (self.neg, self.inv) {
            (false, false) => value,
            (true, _) => map1(&value, u32::wrapping_neg),
            (_, true) => map1(&value, |x| !x),
        }
    }

    /// The word to add and the one to add to it, as 64-bit carries see them: a negated zero carries.
    #[inline]
    fn addend(self, regs: &Regs) -> (Lanes, u64) {
        let value = self.raw.get(regs);
        if self.neg || self.inv {
            (map1(&value, |x| !x), u64::from(self.neg))
        } else {
            (value, 0)
        }
    }
}

/// A 32-bit float source, sign changes included.
#[derive(Clone, Copy)]
struct FloatSrc {
    raw: Raw,
    keep: u32,
    flip: u32,
}

impl FloatSrc {
    #[inline]
    fn get(self, regs: &Regs) -> Lanes {
        let value = self.raw.get(regs);
        if self.keep == u32::MAX && self.flip == 0 {
            return value;
        }
        map1(&value, |x| (x & self.keep) ^ self.flip)
    }
}

/// A 64-bit source.
#[derive(Clone, Copy)]
struct Pair {
    lo: Raw,
    hi: Raw,
}

impl Pair {
    #[inline]
    fn get(self, regs: &Regs) -> Lanes64 {
        let (lo, hi) = (self.lo.get(regs), self.hi.get(regs));
        std::array::from_fn(|i| pair(lo[i], hi[i]))
    }
}

/// Where a memory operand points.
#[derive(Clone, Copy)]
pub(super) struct Place {
    base: Raw,
    wide: bool,
    scale: u8,
    ureg: Raw,
    offset: i32,
}

impl Place {
    /// 64-bit addresses: a pair, or one register beside a uniform pair.
    #[inline]
    fn wide(self, regs: &Regs) -> Lanes64 {
        let lo = self.base.get(regs);
        let hi = if self.wide {
            self.base.next(1).get(regs)
        } else {
            [0; LANES]
        };
        let hi = if matches!(self.base, Raw::Imm(_)) {
            [0; LANES]
        } else {
            hi
        };
        let uniform = match self.ureg {
            Raw::Imm(_) => 0,
            ureg => pair(ureg.lane(regs, 0), ureg.next(1).lane(regs, 0)),
        };
        let add = uniform.wrapping_add_signed(i64::from(self.offset));
        std::array::from_fn(|i| pair(lo[i], hi[i]).wrapping_add(add))
    }

    /// 32-bit addresses, in shared or local memory.
    #[inline]
    fn narrow(self, regs: &Regs) -> Lanes {
        let add = self.ureg.lane(regs, 0).wrapping_add_signed(self.offset);
        map1(&self.base.get(regs), |x| {
            (x << self.scale).wrapping_add(add)
        })
    }
}
