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
            f.write_str(text)?;
        }
        let mut separator = " ";
        for (at, arg) in inst.args().iter().enumerate() {
            if !arg.shown {
                continue;
            }
            // An address beside a register follows it without a comma.
            let beside = matches!(arg.operand, Operand::Target(_) | Operand::Imm(_))
                && separator == ", "
                && matches!(inst.op, Op::Call | Op::Ret | Op::Brx);
            if beside
                && inst.op == Op::Call
                && inst.has(".ABS")
                && arg.operand == Operand::Target(0)
            {
                continue;
            }
            f.write_str(if beside { " " } else { separator })?;
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
        let may = |bit: u8| inst.aliases & bit != 0;
        match b.operand {
            _ if may(1) && (zero(a) || zero(b)) => Some(".MOV"),
            Operand::Imm(1) if may(2) => Some(".IADD"),
            Operand::Imm(n)
                if may(4) && zero(c) && n != 0x10000 && n.cast_unsigned().count_ones() == 1 =>
            {
                Some(".SHL")
            }
            Operand::Imm(-0x8000_0000) if may(4) && zero(c) => Some(".SHL"),
            _ => None,
        }
    }

    fn write_arg(&self, f: &mut fmt::Formatter<'_>, at: usize, arg: &Arg) -> fmt::Result {
        let bit = |set: u16| {
            u32::try_from(at)
                .ok()
                .and_then(|n| set.checked_shr(n))
                .is_some_and(|n| n & 1 != 0)
        };
        // A suffix stands within the bars, except after a register.
        let inside = arg.abs && !matches!(arg.operand, Operand::Reg(_));
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
            Operand::Imm(n)
                if self.inst.has(".64") && matches!(self.inst.op, Op::Mov | Op::Umov) =>
            {
                write!(f, "{n:#x}")?;
            }
            Operand::Imm(n) => write_hex(f, n)?,
            Operand::F32(n) => {
                write_float(
                    f,
                    f64::from(f32::from_bits(n)),
                    n & 0x40_0000 != 0,
                    n >> 31 != 0,
                )?;
            }
            Operand::F64Hi(n) => {
                let value = f64::from_bits(u64::from(n) << 32);
                write_float(f, value, n & 0x8_0000 != 0, n >> 31 != 0)?;
            }
            Operand::F16(n) => {
                let wide = u32::from(n) << 16;
                let quiet = if self.inst.has(".BF16_V2") {
                    wide & 0x40_0000
                } else {
                    u32::from(n & 0x200)
                };
                let value = if self.inst.has(".BF16_V2") {
                    f64::from(f32::from_bits(wide))
                } else {
                    half(n)
                };
                write_float(f, value, quiet != 0, n >> 15 != 0)?;
            }
            Operand::Target(n) if self.absolute() => write_hex(f, n)?,
            Operand::Target(n) => {
                let target = self
                    .pc
                    .wrapping_add(INSTRUCTION_BYTES)
                    .wrapping_add_signed(n);
                write_hex(f, target.cast_signed())?;
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
        if inside {
            f.write_str(arg.suffix)?;
        }
        if arg.abs {
            f.write_str("|")?;
        }
        if inside {
            Ok(())
        } else {
            f.write_str(arg.suffix)
        }
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
        // A register that reads zero is left out where something else is there.
        let alone = address.base.is_none() && address.offset == 0;
        let ureg = address
            .ureg
            .filter(|n| *n != self.urz() || alone || bit(self.inst.zero_uregs));
        if let Some(base) = address.base {
            let others = ureg.is_some() || address.offset != 0;
            let wide = address.kind == BaseKind::Wide && ureg.is_some() && address.desc.is_none();
            let hidden = base == RZ
                && (address.kind == BaseKind::Plain || wide)
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
        self.inst.has(".ABS")
            || self.inst.op == Op::Brx
            || (self.inst.op == Op::Warpsync && !self.inst.has(".COLLECTIVE"))
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

/// A half's value.
fn half(bits: u16) -> f64 {
    let exponent = bits >> 10 & 0x1f;
    let fraction = f64::from(bits & 0x3ff);
    // 2^-24 is the weight of a half's lowest bit.
    let unit = f64::from_bits(0x3e70_0000_0000_0000);
    let value = match exponent {
        0 => fraction * unit,
        0x1f if bits & 0x3ff == 0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => {
            (1024.0 + fraction)
                * unit
                * f64::from(1_u32.wrapping_shl(u32::from(exponent).wrapping_sub(1)))
        }
    };
    if bits >> 15 != 0 { -value } else { value }
}

/// As C's `%.20g`; from 10^9 on as `%.20e`.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64, quiet: bool, negative: bool) -> fmt::Result {
    let sign = if negative { "-" } else { "+" };
    if value.is_infinite() {
        return write!(f, "{sign}INF");
    }
    if value.is_nan() {
        return write!(f, "{sign}{}NAN", if quiet { "Q" } else { "S" });
    }
    if value == 0.0 {
        return f.write_str(if negative { "-0" } else { "0" });
    }
    let large = value.abs() >= 1e9;
    let mut text = Text::default();
    if large {
        fmt::write(&mut text, format_args!("{value:.20e}"))?;
    } else {
        fmt::write(&mut text, format_args!("{value:.19e}"))?;
    }
    let (digits, exponent) = text.as_str().split_once('e').ok_or(fmt::Error)?;
    let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
    let digits = if large {
        digits
    } else {
        digits.trim_end_matches('0').trim_end_matches('.')
    };
    if large || exponent < -4 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return write!(f, "{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    // Twenty significant digits, so many of them after the point; what a double has not is zero.
    let places = usize::try_from(19_i32.saturating_sub(exponent)).unwrap_or(0);
    let mut text = Text::default();
    fmt::write(&mut text, format_args!("{value:.places$}"))?;
    let digits = text.as_str();
    f.write_str(if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    })
}

/// A number's digits: no float here has more.
struct Text {
    bytes: [u8; 64],
    length: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; 64],
            length: 0,
        }
    }
}

impl Text {
    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or(&[]);
        core::str::from_utf8(bytes).unwrap_or("")
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.checked_add(text.len()).ok_or(fmt::Error)?;
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
