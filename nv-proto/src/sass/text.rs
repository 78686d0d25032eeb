//! Instructions as text, in the vendor disassembler's spelling.

use core::fmt;

use super::{Address, Arg, BaseKind, INSTRUCTION_BYTES, Inst, Op, Operand, PT, RZ};

/// An instruction at an address: relative targets are printed as addresses.
#[derive(Clone, Copy, Debug)]
pub struct Located<'a> {
    inst: &'a Inst,
    pc: u64,
}

logged!(Located<'_>, located, "{}", defmt::Display2Format(located));

impl Inst {
    /// The instruction as text, at an address.
    #[must_use]
    pub const fn at(&self, pc: u64) -> Located<'_> {
        Located { inst: self, pc }
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at(0).fmt(f)
    }
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inst = self.inst;
        if inst.guard.pred != PT || inst.guard.not {
            let not = if inst.guard.not { "!" } else { "" };
            let file = if inst.guard.uniform { "UP" } else { "P" };
            write!(f, "@{not}")?;
            write_pred(f, file, inst.guard.pred)?;
            f.write_str(" ")?;
        }
        f.write_str(inst.op.name())?;
        if let Some(alias) = self.alias() {
            f.write_str(alias)?;
        }
        for text in inst.mods() {
            if self.hides(text) {
                continue;
            }
            f.write_str(text)?;
        }
        let mut separator = " ";
        for (at, arg) in inst.args().iter().enumerate() {
            if !arg.shown {
                continue;
            }
            f.write_str(separator)?;
            separator = ", ";
            self.write_arg(f, at, arg)?;
        }
        Ok(())
    }
}

impl Located<'_> {
    /// The alias that the disassembler prints for some multiplications by one, zero or a power of two.
    fn alias(&self) -> Option<&'static str> {
        let inst = self.inst;
        if inst.op != Op::Imad || inst.has(".WIDE") || inst.has(".HI") {
            return None;
        }
        let [_, a, b, c, ..] = inst.args() else {
            return None;
        };
        let zero = |arg: &Arg| is_zero(arg.operand, inst);
        if inst.has(".X") {
            return None;
        }
        if zero(a) || zero(b) {
            return Some(".MOV");
        }
        match b.operand {
            Operand::Imm(1) => Some(".IADD"),
            Operand::Imm(n) if zero(c) && n > 0 && n != 0x10000 && n.count_ones() == 1 => {
                Some(".SHL")
            }
            _ => None,
        }
    }

    fn hides(&self, _text: &str) -> bool {
        false
    }

    fn write_arg(&self, f: &mut fmt::Formatter<'_>, at: usize, arg: &Arg) -> fmt::Result {
        let bit = |set: u16| {
            u32::try_from(at)
                .ok()
                .and_then(|n| set.checked_shr(n))
                .is_some_and(|n| n & 1 != 0)
        };
        for (set, text) in [
            (arg.neg, "-"),
            (arg.inv, "~"),
            (arg.not, "!"),
            (arg.abs, "|"),
        ] {
            if set {
                f.write_str(text)?;
            }
        }
        match arg.operand {
            Operand::None => f.write_str("?")?,
            Operand::Reg(RZ) => f.write_str("RZ")?,
            Operand::Reg(n) => write!(f, "R{n}")?,
            Operand::Ureg(n) => self.write_ureg(f, n)?,
            Operand::Pred(n) => write_pred(f, "P", n)?,
            Operand::Upred(n) => write_pred(f, "UP", n)?,
            Operand::Barrier(n) => write!(f, "B{n}")?,
            Operand::Scoreboard(n) => write!(f, "SB{n}")?,
            Operand::Scoreboards(set) => {
                f.write_str("{")?;
                let mut separator = "";
                for n in (0..6_u8)
                    .rev()
                    .filter(|n| set.wrapping_shr(u32::from(*n)) & 1 != 0)
                {
                    write!(f, "{separator}{n}")?;
                    separator = ",";
                }
                f.write_str("}")?;
            }
            Operand::Imm(n) => write_hex(f, n)?,
            Operand::F32(n) => write_float(
                f,
                f64::from(f32::from_bits(n)),
                n & 0x7f_ffff != 0,
                n >> 31 != 0,
            )?,
            Operand::F64Hi(n) => {
                let value = f64::from_bits(u64::from(n) << 32);
                write_float(f, value, n & 0xf_ffff != 0, n >> 31 != 0)?;
            }
            Operand::F16(n) => write!(f, "{n:#06x}")?,
            Operand::Target(n) if self.absolute() => write_hex(f, n)?,
            Operand::Target(n) => {
                write!(
                    f,
                    "{:#x}",
                    self.pc
                        .wrapping_add(INSTRUCTION_BYTES)
                        .wrapping_add_signed(n)
                )?;
            }
            Operand::Const { bank, address } => {
                let space = if bit(self.inst.spaced) { " " } else { "" };
                write!(f, "c[{bank:#x}]{space}")?;
                self.write_address(f, &address, at)?;
            }
            Operand::Bindless { ureg, address } => {
                f.write_str("cx[")?;
                self.write_ureg(f, ureg)?;
                f.write_str("]")?;
                self.write_address(f, &address, at)?;
            }
            Operand::Mem(address) => self.write_address(f, &address, at)?,
            Operand::Desc(address) => {
                f.write_str("g")?;
                self.write_address(f, &address, at)?;
            }
            Operand::Word(text) => f.write_str(text)?,
        }
        if arg.abs {
            f.write_str("|")?;
        }
        f.write_str(arg.suffix)
    }

    fn write_address(
        &self,
        f: &mut fmt::Formatter<'_>,
        address: &Address,
        at: usize,
    ) -> fmt::Result {
        let bit = |set: u16| {
            u32::try_from(at)
                .ok()
                .and_then(|n| set.checked_shr(n))
                .is_some_and(|n| n & 1 != 0)
        };
        if let Some(desc) = address.desc {
            f.write_str("desc[")?;
            self.write_ureg(f, desc)?;
            f.write_str("]")?;
        }
        f.write_str("[")?;
        let mut separator = "";
        let ureg = address
            .ureg
            .filter(|n| *n != self.urz() || bit(self.inst.zero_uregs));
        if let Some(base) = address.base {
            let others = ureg.is_some() || address.offset != 0;
            let hidden = base == RZ
                && address.kind == BaseKind::Plain
                && !bit(self.inst.zero_bases)
                && (others || !bit(self.inst.zero_bases_alone));
            if !hidden {
                match base {
                    RZ => f.write_str("RZ")?,
                    n => write!(f, "R{n}")?,
                }
                f.write_str(match address.kind {
                    BaseKind::Plain => "",
                    BaseKind::Wide => ".64",
                    BaseKind::U32 => ".U32",
                    BaseKind::X4 => ".X4",
                    BaseKind::X8 => ".X8",
                    BaseKind::X16 => ".X16",
                })?;
                separator = "+";
            }
        }
        if let Some(ureg) = ureg {
            f.write_str(separator)?;
            self.write_ureg(f, ureg)?;
            separator = "+";
        }
        if address.offset != 0 || separator.is_empty() {
            f.write_str(separator)?;
            write_hex(f, i64::from(address.offset))?;
        }
        f.write_str("]")
    }

    fn write_ureg(&self, f: &mut fmt::Formatter<'_>, n: u8) -> fmt::Result {
        if n == self.urz() {
            f.write_str("URZ")
        } else {
            write!(f, "UR{n}")
        }
    }

    const fn urz(&self) -> u8 {
        self.inst.urz()
    }

    /// Whether targets are addresses rather than distances.
    fn absolute(&self) -> bool {
        self.inst.has(".ABS") || self.inst.op == Op::Warpsync
    }
}

impl Inst {
    /// The uniform register that reads zero on this architecture.
    #[must_use]
    pub const fn urz(&self) -> u8 {
        if self.sm.0 >= 100 { 255 } else { 63 }
    }
}

fn is_zero(operand: Operand, inst: &Inst) -> bool {
    match operand {
        Operand::Reg(n) => n == RZ,
        Operand::Ureg(n) => n == inst.urz(),
        Operand::Imm(n) => n == 0,
        _ => false,
    }
}

fn write_pred(f: &mut fmt::Formatter<'_>, file: &str, n: u8) -> fmt::Result {
    if n == PT {
        write!(f, "{file}T").and(Ok(()))
    } else {
        write!(f, "{file}{n}")
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, n: i64) -> fmt::Result {
    if n < 0 {
        write!(f, "-{:#x}", n.unsigned_abs())
    } else {
        write!(f, "{n:#x}")
    }
}

fn write_float(
    f: &mut fmt::Formatter<'_>,
    value: f64,
    payload: bool,
    negative: bool,
) -> fmt::Result {
    let sign = if negative { "-" } else { "+" };
    if value.is_infinite() {
        write!(f, "{sign}INF")
    } else if value.is_nan() {
        write!(f, "{sign}{}", if payload { "QNAN" } else { "SNAN" })
    } else {
        write!(f, "{value}")
    }
}
