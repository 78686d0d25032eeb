//! SASS: instruction words to decoded instructions.
//!
//! An instruction is 128 bits: opcode 11:0, guard 15:12, operands and modifiers, scheduling 125:105. What
//! lies where depends on the opcode and the architecture; the generated table says so. The decoder is strict:
//! a bit pattern that the table does not list is [`Unknown`], never a guess.

mod form;
mod table;
mod text;

use self::form::{Field, Form, Kind, Part, Presence};
use crate::unit::SmVersion;

pub use self::table::Op;

/// The bytes of an instruction.
pub const INSTRUCTION_BYTES: u64 = 16;

/// The architectures with a table.
pub const SM_VERSIONS: [SmVersion; 6] = [
    SmVersion(80),
    SmVersion(86),
    SmVersion(89),
    SmVersion(90),
    SmVersion(100),
    SmVersion(120),
];

/// Register numbers that read zero and drop what is written.
pub const RZ: u8 = 255;
/// Predicate number that reads true and drops what is written.
pub const PT: u8 = 7;

/// The most operands of an instruction.
const MAX_OPERANDS: usize = 10;
/// The most modifiers of an instruction.
const MAX_MODIFIERS: usize = 12;

/// Words that are no instruction of the architecture, as far as the table knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{:#018x} {:#018x} is no known instruction of {sm}", words[0], words[1])]
pub struct Unknown {
    /// The architecture.
    pub sm: SmVersion,
    /// The words, low first.
    pub words: [u64; 2],
}

/// Which lanes an instruction runs for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Guard {
    /// The predicate; [`PT`] is always true.
    pub pred: u8,
    /// Whether the instruction runs where the predicate is false.
    pub not: bool,
    /// Whether the predicate is a uniform one, and with it the instruction.
    pub uniform: bool,
}

/// How the base register of an address counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BaseKind {
    /// One 32-bit register.
    #[default]
    Plain,
    /// A pair of registers.
    Wide,
    /// One register, zero-extended and added to a uniform pair.
    U32,
    /// One register times 4.
    X4,
    /// One register times 8.
    X8,
    /// One register times 16.
    X16,
}

/// The address of a memory or constant operand: parts that add up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Address {
    /// Register.
    pub base: Option<u8>,
    /// How that register counts.
    pub kind: BaseKind,
    /// Uniform register (a pair where the address has 64 bits).
    pub ureg: Option<u8>,
    /// Uniform register pair with the memory descriptor.
    pub desc: Option<u8>,
    /// Bytes.
    pub offset: i32,
}

/// One operand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Operand {
    /// Nothing: the form has the slot, this instruction leaves it out.
    #[default]
    None,
    /// A register; [`RZ`] is zero.
    Reg(u8),
    /// A uniform register; 63 is zero up to `sm_90`, 255 from `sm_100` on.
    Ureg(u8),
    /// A predicate.
    Pred(u8),
    /// A uniform predicate.
    Upred(u8),
    /// A convergence barrier.
    Barrier(u8),
    /// A scoreboard.
    Scoreboard(u8),
    /// A set of scoreboards.
    Scoreboards(u8),
    /// An integer.
    Imm(i64),
    /// A 32-bit float, by its bits.
    F32(u32),
    /// A 64-bit float, by its high word.
    F64Hi(u32),
    /// A 16-bit float, by its bits.
    F16(u16),
    /// A code address, in bytes from the end of the instruction; absolute for the `.ABS` operations.
    Target(i64),
    /// A constant in a numbered bank.
    Const {
        /// The bank.
        bank: u8,
        /// Where in the bank.
        address: Address,
    },
    /// A constant in a bank given by a uniform register.
    Bindless {
        /// The uniform register pair.
        ureg: u8,
        /// Where in the bank.
        address: Address,
    },
    /// Memory.
    Mem(Address),
    /// A uniform descriptor.
    Desc(Address),
    /// A name, such as that of a special register.
    Word(&'static str),
}

/// An operand with what is said about it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Arg {
    /// The operand.
    pub operand: Operand,
    /// `-`: arithmetic negation.
    pub neg: bool,
    /// `|x|`: absolute value.
    pub abs: bool,
    /// `!`: logical negation.
    pub not: bool,
    /// `~`: bitwise complement.
    pub inv: bool,
    /// What follows the operand, such as `.H1_H1`; empty where nothing does.
    pub suffix: &'static str,
    /// Whether the disassembler prints it.
    pub shown: bool,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// For which lanes.
    pub guard: Guard,
    /// The words it was decoded from, low first.
    pub words: [u64; 2],
    sm: SmVersion,
    args: [Arg; MAX_OPERANDS],
    arg_count: usize,
    mods: [&'static str; MAX_MODIFIERS],
    mod_count: usize,
    /// Bits that say how addresses with zero parts are printed, one a slot.
    zero_bases: u16,
    zero_bases_alone: u16,
    zero_uregs: u16,
    spaced: u16,
    aliases: u8,
}

logged!(Op, op, "{=str}", op.name());
logged!(Inst, inst, "{}", defmt::Display2Format(inst));

impl Inst {
    /// The operands in the order of the form, those included that are not printed.
    #[must_use]
    pub fn args(&self) -> &[Arg] {
        self.args.get(..self.arg_count).unwrap_or(&[])
    }

    /// The modifiers in printed order, each with its leading dot.
    #[must_use]
    pub fn mods(&self) -> &[&'static str] {
        self.mods.get(..self.mod_count).unwrap_or(&[])
    }

    /// Whether the instruction has a modifier.
    #[must_use]
    pub fn has(&self, modifier: &str) -> bool {
        self.mods().contains(&modifier)
    }

    /// The architecture it was decoded for.
    #[must_use]
    pub const fn sm(&self) -> SmVersion {
        self.sm
    }

    /// Some of its bits.
    #[must_use]
    pub fn bits(&self, lo: u8, hi: u8) -> u64 {
        bits(word(self.words), lo, hi)
    }

    /// Puts the modifiers in the order of a list; those of one rank stay as they are.
    fn sort_mods(&mut self, order: &[(&'static str, u8)]) {
        if order.is_empty() {
            return;
        }
        let rank = |text: &str| order.iter().find(|o| o.0 == text).map_or(u8::MAX, |o| o.1);
        let mods = self.mods.get_mut(..self.mod_count).unwrap_or(&mut []);
        // Insertion: stable, and there are few.
        for end in 1..mods.len() {
            for at in (1..=end).rev() {
                let [a, b] = mods.get_mut(at.wrapping_sub(1)..=at).unwrap_or(&mut []) else {
                    break;
                };
                if rank(a) <= rank(b) {
                    break;
                }
                core::mem::swap(a, b);
            }
        }
    }

    fn push_mod(&mut self, text: &'static str) -> Option<()> {
        *self.mods.get_mut(self.mod_count)? = text;
        self.mod_count = self.mod_count.checked_add(1)?;
        Some(())
    }
}

/// Decodes one instruction, given as two little-endian words, low first.
///
/// # Errors
/// [`Unknown`] for anything that the table does not list: opcode, field value, or a bit no field covers.
pub fn decode(words: [u64; 2], sm: SmVersion) -> Result<Inst, Unknown> {
    try_decode(words, sm).ok_or(Unknown { sm, words })
}

fn try_decode(words: [u64; 2], sm: SmVersion) -> Option<Inst> {
    let word = word(words);
    let form = find_form(word, sm)?;
    if word & form.fixed_mask != form.fixed_value || word >> SCHEDULING_END != 0 {
        return None;
    }
    for (positions, allowed) in form.rules {
        if !allowed.contains(&gather(word, positions)) {
            return None;
        }
    }
    let mut inst = Inst {
        op: form.op,
        guard: Guard {
            pred: low8(bits(word, 12, 14)),
            not: bits(word, 15, 15) != 0,
            uniform: form.uniform,
        },
        words,
        sm,
        args: [Arg::default(); MAX_OPERANDS],
        arg_count: form.slots.len(),
        mods: [""; MAX_MODIFIERS],
        mod_count: 0,
        zero_bases: 0,
        zero_bases_alone: 0,
        zero_uregs: 0,
        spaced: 0,
        aliases: form.aliases,
    };
    let mut parts = [Parts::default(); MAX_OPERANDS];
    for (part, slot) in parts.iter_mut().zip(form.slots) {
        let slot = table::SLOTS.get(usize::from(*slot))?;
        part.kind = slot.kinds.bytes().next()?;
        for text in slot.words.split_ascii_whitespace() {
            part.apply(text)?;
        }
    }
    // Tables in the order of their modifiers; there are at most MAX_ORDER of them.
    for order in 0..=MAX_ORDER {
        for (_, text) in form.mods.iter().filter(|m| m.0 == order) {
            inst.push_mod(text)?;
        }
        for field in form
            .fields
            .iter()
            .filter_map(|id| table::FIELDS.get(usize::from(*id)))
        {
            let Field::Table {
                bits: positions,
                order: at,
                first,
                len,
            } = field
            else {
                continue;
            };
            if *at != order {
                continue;
            }
            let first = usize::from(*first);
            let rows = table::VALUES.get(first..first.checked_add(usize::from(*len))?)?;
            let value = gather(word, positions);
            let row = rows.binary_search_by_key(&value, |row| row.0).ok()?;
            let text = table::TOKENS.get(usize::from(rows.get(row)?.1))?;
            apply_words(&mut inst, &mut parts, text)?;
        }
    }
    inst.sort_mods(form.order);
    for (at, slot) in form.slots.iter().enumerate() {
        let slot = table::SLOTS.get(usize::from(*slot))?;
        let part = parts.get(at)?;
        let arg = part.build(form, at, word)?;
        let bit = 1_u16.checked_shl(u32::try_from(at).ok()?)?;
        for (flag, set) in [
            (slot.base_zero, &mut inst.zero_bases),
            (slot.base_zero_alone, &mut inst.zero_bases_alone),
            (slot.ureg_zero, &mut inst.zero_uregs),
            (part.spaced, &mut inst.spaced),
        ] {
            if flag {
                *set |= bit;
            }
        }
        let shown = match slot.presence {
            Presence::Always => true,
            Presence::Modifier => part.present,
            Presence::Unless(value) => !is_default(&arg, value),
            Presence::ModifierUnless(value) => part.present && !is_default(&arg, value),
        };
        let operand = match arg.operand {
            // The reciprocals of doubles take the high word of one.
            Operand::F32(n) if inst.has(".RCP64H") || inst.has(".RSQ64H") => Operand::F64Hi(n),
            operand => operand,
        };
        *inst.args.get_mut(at)? = Arg {
            operand,
            shown,
            ..arg
        };
    }
    Some(inst)
}

/// Applies the words of a table value: `.X` a modifier, `@s:w` a word about operand `s`, `base=M` a mnemonic.
fn apply_words(
    inst: &mut Inst,
    parts: &mut [Parts; MAX_OPERANDS],
    text: &'static str,
) -> Option<()> {
    for text in text.split_ascii_whitespace() {
        if let Some(rest) = text.strip_prefix('@') {
            let (slot, rest) = rest.split_once(':')?;
            parts.get_mut(slot.parse::<usize>().ok()?)?.apply(rest)?;
        } else if let Some(name) = text.strip_prefix("base=") {
            inst.op = Op::from_name(name)?;
        } else {
            inst.push_mod(text)?;
        }
    }
    Some(())
}

/// What the fields have said about an operand so far.
#[derive(Clone, Copy, Default)]
struct Parts {
    kind: u8,
    has_base: bool,
    has_ureg: bool,
    has_desc: bool,
    bindless: bool,
    present: bool,
    spaced: bool,
    base_kind: BaseKind,
    literal: Option<i64>,
    name: Option<&'static str>,
    arg: Arg,
}

impl Parts {
    fn apply(&mut self, text: &'static str) -> Option<()> {
        match text {
            "-" => self.arg.neg = true,
            "|" => self.arg.abs = true,
            "!" => self.arg.not = true,
            "~" => self.arg.inv = true,
            "+" => self.present = true,
            "has:base" => self.has_base = true,
            "has:ureg" => self.has_ureg = true,
            "has:desc" => self.has_desc = true,
            "desc" | "gdesc" | "has:cu" | ".reuse" => {}
            "sp" => self.spaced = true,
            "cx" => self.bindless = true,
            "base.64" => self.base_kind = BaseKind::Wide,
            "base.U32" => self.base_kind = BaseKind::U32,
            "base.X4" => self.base_kind = BaseKind::X4,
            "base.X8" => self.base_kind = BaseKind::X8,
            "base.X16" => self.base_kind = BaseKind::X16,
            _ => {
                if let Some(kind) = text.strip_prefix("k:") {
                    self.kind = kind.bytes().next()?;
                } else if let Some(number) = text.strip_prefix('#') {
                    self.literal = Some(number.parse().ok()?);
                } else if let Some(name) = text.strip_prefix('=') {
                    self.name = Some(name);
                } else if text.starts_with('.') && self.arg.suffix.is_empty() {
                    self.arg.suffix = text;
                } else {
                    return None;
                }
            }
        }
        Some(())
    }

    fn build(&self, form: &Form, slot: usize, word: u128) -> Option<Arg> {
        let mut numbers: [(Option<Kind>, i64); 2] = [(None, 0); 2];
        let (mut base, mut ureg, mut desc, mut bank, mut bindless, mut offset) =
            (None, None, None, None, None, 0);
        for field in form
            .fields
            .iter()
            .filter_map(|id| table::FIELDS.get(usize::from(*id)))
        {
            let Field::Number {
                slot: of,
                kind,
                part,
                spans,
                signed,
                inverted,
            } = field
            else {
                continue;
            };
            if usize::from(*of) != slot {
                continue;
            }
            let signed = *signed && !(self.bindless && *part == Part::Offset);
            let value = read_number(word, spans, signed, *inverted)?;
            match part {
                Part::Num => {
                    let free = numbers.iter_mut().find(|n| n.0.is_none())?;
                    *free = (Some(*kind), value);
                }
                Part::Base => base = u8::try_from(value).ok(),
                Part::Ureg => ureg = u8::try_from(value).ok(),
                Part::Desc => desc = u8::try_from(value).ok(),
                Part::Bank => bank = u8::try_from(value).ok(),
                Part::Bindless => bindless = u8::try_from(value).ok(),
                Part::Offset => offset = i32::try_from(value).ok()?,
            }
        }
        // Where the bank has a number, no register hides in the bits that would name one.
        if !self.bindless && bindless.is_some_and(|n| n != 0) {
            return None;
        }
        let address = Address {
            base: base.filter(|_| self.has_base || self.base_kind != BaseKind::Plain),
            kind: self.base_kind,
            ureg: ureg.filter(|_| self.has_ureg),
            desc: desc.filter(|_| self.has_desc),
            offset,
        };
        let num = |kinds: &[Kind]| -> Option<i64> {
            let exact = numbers
                .iter()
                .find(|n| n.0.is_some_and(|k| kinds.contains(&k)));
            let any = exact.or_else(|| numbers.iter().find(|n| n.0.is_some()));
            any.map(|n| n.1).or(self.literal)
        };
        let small = |kinds: &[Kind]| num(kinds).and_then(|n| u8::try_from(n).ok());
        let operand = match self.kind {
            b'R' => small(&[Kind::Reg]).map(Operand::Reg),
            b'U' => small(&[Kind::Ureg]).map(Operand::Ureg),
            b'P' => small(&[Kind::Pred]).map(Operand::Pred),
            b'Q' => small(&[Kind::Upred]).map(Operand::Upred),
            b'B' => small(&[Kind::Barrier]).map(Operand::Barrier),
            b'S' => small(&[Kind::Scoreboard]).map(Operand::Scoreboard),
            b'L' => small(&[Kind::List]).map(Operand::Scoreboards),
            b'I' | b'F' => {
                let kind = numbers.iter().find_map(|n| n.0);
                match (kind, num(&[Kind::Imm])) {
                    (_, None) => None,
                    (Some(Kind::Target), Some(n)) => Some(Operand::Target(n)),
                    (Some(Kind::F32), Some(n)) => u32::try_from(n).ok().map(Operand::F32),
                    (Some(Kind::F64Hi), Some(n)) => u32::try_from(n).ok().map(Operand::F64Hi),
                    (Some(Kind::F16), Some(n)) => u16::try_from(n).ok().map(Operand::F16),
                    (_, Some(n)) => Some(Operand::Imm(n)),
                }
            }
            b'C' if self.bindless => bindless.map(|ureg| Operand::Bindless { ureg, address }),
            b'C' => bank.map(|bank| Operand::Const { bank, address }),
            b'M' | b'T' => Some(Operand::Mem(address)),
            b'G' => Some(Operand::Desc(address)),
            b'W' => self.name.map(Operand::Word),
            _ => None,
        };
        // A slot without a number or name is one that this instruction leaves out, unless it must be printed.
        let operand = match operand {
            Some(operand) => operand,
            None if self.present => return None,
            None => Operand::None,
        };
        Some(Arg {
            operand,
            ..self.arg
        })
    }
}

fn find_form(word: u128, sm: SmVersion) -> Option<&'static Form> {
    let opcode = u16::try_from(bits(word, 0, 11)).ok()?;
    let index = SM_VERSIONS.iter().position(|v| *v == sm)?;
    let bit = 1_u8.checked_shl(u32::try_from(index).ok()?)?;
    let first = table::FORMS.partition_point(|form| form.opcode < opcode);
    let forms = table::FORMS.get(first..)?;
    forms
        .iter()
        .take_while(|form| form.opcode == opcode)
        .find(|form| form.sm & bit != 0)
}

/// The value of a field of several spans; each adds its bits times its scale.
fn read_number(word: u128, spans: &[(u8, u8, u16)], signed: bool, inverted: bool) -> Option<i64> {
    let mut sum = 0_i64;
    for (at, (lo, hi, scale)) in spans.iter().enumerate() {
        let width = u32::from(hi.checked_sub(*lo)?).checked_add(1)?;
        let mut raw = bits(word, *lo, *hi);
        if inverted {
            raw = !raw & mask(width);
        }
        let mut value = raw.cast_signed();
        if signed && at.checked_add(1)? == spans.len() {
            let unused = 64_u32.checked_sub(width)?;
            value = value.wrapping_shl(unused).wrapping_shr(unused);
        }
        sum = sum.checked_add(value.checked_mul(i64::from(*scale))?)?;
    }
    Some(sum)
}

/// Whether an operand has the value that is not printed.
fn is_default(arg: &Arg, value: u8) -> bool {
    !arg.not && number(arg.operand).is_none_or(|n| n == i64::from(value))
}

/// The number of an operand that has just one.
fn number(operand: Operand) -> Option<i64> {
    match operand {
        Operand::Reg(n)
        | Operand::Ureg(n)
        | Operand::Pred(n)
        | Operand::Upred(n)
        | Operand::Barrier(n)
        | Operand::Scoreboard(n)
        | Operand::Scoreboards(n) => Some(i64::from(n)),
        Operand::Imm(n) => Some(n),
        _ => None,
    }
}

fn word(words: [u64; 2]) -> u128 {
    let [lo, hi] = words;
    (u128::from(hi) << 64) | u128::from(lo)
}

/// Bits `hi:lo` of a word; at most 64 of them.
#[allow(clippy::cast_possible_truncation, reason = "masked to at most 64 bits")]
fn bits(word: u128, lo: u8, hi: u8) -> u64 {
    let width = u32::from(hi.saturating_sub(lo)).saturating_add(1);
    (word.checked_shr(u32::from(lo)).unwrap_or(0) as u64) & mask(width)
}

fn mask(width: u32) -> u64 {
    match 1_u64.checked_shl(width) {
        Some(bit) => bit.wrapping_sub(1),
        None => u64::MAX,
    }
}

/// Single bits, lowest first, side by side.
fn gather(word: u128, positions: &[u8]) -> u16 {
    positions.iter().rev().fold(0, |value, at| {
        (value << 1) | u16::from(bits(word, *at, *at) != 0)
    })
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "the low eight bits are what is asked for"
)]
const fn low8(value: u64) -> u8 {
    value as u8
}

/// The first bit past scheduling: those above are zero in every instruction.
const SCHEDULING_END: u32 = 126;
/// The highest order of a modifier in the table.
const MAX_ORDER: u8 = 7;
