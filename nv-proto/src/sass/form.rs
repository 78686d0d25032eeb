//! The shape of the generated table: instruction forms, their bit fields and operand slots.

use super::table::Op;

/// One encoding of one operation: a 12-bit opcode on some architectures.
pub(super) struct Form {
    /// Bits 11:0.
    pub opcode: u16,
    /// Architectures, a bit each in the order of [`super::SM_VERSIONS`].
    pub sm: u8,
    /// The operation; a table value may replace it.
    pub op: Op,
    /// Whether the guard is a uniform predicate.
    pub uniform: bool,
    /// Operand slots in printed order, as indices into the slot table.
    pub slots: &'static [u8],
    /// Bit fields, as indices into the field table.
    pub fields: &'static [u16],
    /// Modifiers that every instruction of the form has, with their order.
    pub mods: &'static [(u8, &'static str)],
    /// The printed order of modifiers, where the order of the fields is not enough.
    pub order: &'static [(&'static str, u8)],
    /// Which of the aliases `.MOV` (1), `.IADD` (2) and `.SHL` (4) of a multiplication the form is printed with.
    pub aliases: u8,
    /// Bits (lowest first) with the only values that they may have together.
    pub rules: &'static [(&'static [u8], &'static [u16])],
    /// Bits that no field covers.
    pub fixed_mask: u128,
    /// What those bits have to be.
    pub fixed_value: u128,
}

/// A bit field of a form.
pub(super) enum Field {
    /// A number that belongs to one operand.
    Number {
        slot: u8,
        kind: Kind,
        part: Part,
        /// Bit ranges (low, high, scale), which add up; the last one carries the sign.
        spans: &'static [(u8, u8, u16)],
        signed: bool,
        /// Stored as its ones' complement.
        inverted: bool,
    },
    /// Bits with a list of legal values, each standing for words: see [`super::decode`].
    Table {
        bits: &'static [u8],
        order: u8,
        first: u16,
        len: u16,
    },
}

/// What a number means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Reg,
    Ureg,
    Pred,
    Upred,
    Barrier,
    Imm,
    Offset,
    Bank,
    Target,
    Scoreboard,
    List,
    F32,
    F64Hi,
    F16,
}

/// Which part of its operand a number is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    Num,
    Base,
    Ureg,
    Desc,
    Offset,
    Bank,
    Bindless,
}

/// An operand slot.
pub(super) struct Slot {
    /// The letters of the kinds that it can have: `R U P Q I F C M B W S L G`.
    pub kinds: &'static str,
    /// Words that always hold for it, spelled as those of table values.
    pub words: &'static str,
    pub presence: Presence,
    /// Whether a base register that reads zero is printed beside other parts.
    pub base_zero: bool,
    /// Whether a base register that reads zero is printed where nothing else is.
    pub base_zero_alone: bool,
    /// Whether a uniform register that reads zero is printed.
    pub ureg_zero: bool,
}

/// When an operand is printed.
pub(super) enum Presence {
    Always,
    /// Only where a table value says so.
    Modifier,
    /// Unless its number is this one and it is not negated.
    Unless(u8),
    /// Where a table value says so and its number is not this one, or negated.
    ModifierUnless(u8),
}
