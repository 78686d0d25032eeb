//! Streams and descriptors as text.
//!
//! [`lines`] names what each packet of a pushbuffer does: the class that its subchannel is bound to, the
//! method, the fields of its data and their values. A [`Line`] prints itself, and holds what a tool needs to
//! show it otherwise.
//!
//! ```
//! use nv_proto::pretty::{Bindings, lines};
//! use nv_proto::class::Generation;
//!
//! let words = [0x2001_20b0, 0x9];
//! let text = lines(&words, Bindings::of(Generation::Hopper)).next().unwrap()?.to_string();
//! assert!(text.ends_with("SEND_SIGNALING_PCAS2_B 0x00000009 PCAS_ACTION=PREFETCH_SCHEDULE"), "{text}");
//! # Ok::<(), nv_proto::DecodeError>(())
//! ```

use core::fmt;
use core::iter::FusedIterator;

use crate::class::{self, Generation, Role};
use crate::error::DecodeError;
use crate::push::table::{self, Field, NamedMethod};
use crate::push::{Header, MethodAddr, Packet, PushReader, RunOp, Subchannel, host};
use crate::unit::ClassId;

/// What classes a channel's words are for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bindings {
    /// The channel's own class, which takes methods below 0x100.
    host: Option<ClassId>,
    /// Those of the subchannels.
    subchannels: [Option<ClassId>; Subchannel::COUNT as usize],
}

impl Bindings {
    /// Nothing bound: what is known once the words bind something.
    pub const NONE: Self = Self {
        host: None,
        subchannels: [None; Subchannel::COUNT as usize],
    };

    /// What drivers bind on a generation: compute to subchannel 1, copies to 4.
    #[must_use]
    pub fn of(generation: Generation) -> Self {
        Self::NONE
            .with_host(generation.class(Role::Gpfifo))
            .with(Subchannel::COMPUTE, generation.class(Role::Compute))
            .with(Subchannel::COPY, generation.class(Role::Copy))
    }

    /// The same with the channel's own class.
    #[must_use]
    pub const fn with_host(self, class: ClassId) -> Self {
        Self {
            host: Some(class),
            ..self
        }
    }

    /// The same with a class bound to a subchannel.
    #[must_use]
    pub fn with(mut self, subchannel: Subchannel, class: ClassId) -> Self {
        if let Some(slot) = self.subchannels.get_mut(usize::from(subchannel.number())) {
            *slot = Some(class);
        }
        self
    }

    /// The class that takes a method on a subchannel.
    ///
    /// Host methods look alike on all channel classes: where none is known, Ampere's names them.
    #[must_use]
    pub fn class(&self, subchannel: Subchannel, method: MethodAddr) -> Option<ClassId> {
        if method.is_host() {
            return self.host.or(Some(class::AMPERE_CHANNEL_GPFIFO_A));
        }
        self.subchannels
            .get(usize::from(subchannel.number()))
            .copied()
            .flatten()
    }
}

/// The data that a line is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Data<'a> {
    /// Words that follow the header: one, or all that go to one method.
    Words(&'a [u32]),
    /// What the header itself holds.
    Immediate(u32),
}

impl<'a> Data<'a> {
    /// The word, where it is one.
    #[must_use]
    pub const fn single(&self) -> Option<u32> {
        match *self {
            Self::Words([word]) => Some(*word),
            Self::Immediate(word) => Some(word),
            Self::Words(_) => None,
        }
    }

    /// The words that follow the header; none for an immediate.
    #[must_use]
    pub const fn words(&self) -> &'a [u32] {
        match *self {
            Self::Words(words) => words,
            Self::Immediate(_) => &[],
        }
    }
}

/// A field's value, named as far as it can be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FieldText {
    /// The field.
    pub field: &'static Field,
    /// Its value.
    pub value: u32,
    /// The name of the value: that of the header, or of the class where the field holds a class.
    pub name: Option<&'static str>,
}

logged!(
    FieldText,
    text,
    "{=str}={=u32:#x} {}",
    text.field.spec.name,
    text.value,
    text.name
);

impl fmt::Display for FieldText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.spec.name)?;
        match self.name {
            Some(name) => write!(f, "={name}"),
            None => write!(f, "={:#x}", self.value),
        }
    }
}

/// Data for one method.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MethodLine<'a> {
    /// Where the data is, in words from the start; the header for an immediate.
    pub offset: usize,
    /// How it was written; `None` for an immediate.
    pub op: Option<RunOp>,
    /// The subchannel.
    pub subchannel: Subchannel,
    /// The class that takes it, where that is known.
    pub class: Option<ClassId>,
    /// The method.
    pub method: MethodAddr,
    /// What the method is, where that is known.
    pub named: Option<NamedMethod>,
    /// The data.
    pub data: Data<'a>,
    /// Which of several meanings the method's fields have here.
    scope: Scope,
}

impl MethodLine<'_> {
    /// The fields of a single word that say something: what is not 0 or what operation it is. An only field
    /// says something where its value has a name.
    pub fn fields(&self) -> impl Iterator<Item = FieldText> + use<> {
        let only = self.named.is_some_and(|named| named.info.fields.len() == 1);
        self.all_fields()
            .filter(move |FieldText { field, value, name }| {
                if only {
                    name.is_some()
                } else {
                    *value != 0 || field.spec.name == "OPERATION"
                }
            })
    }

    /// Every field of a single word. None where the whole word is one unnamed value, the method is not known,
    /// or there are several words.
    pub fn all_fields(&self) -> impl Iterator<Item = FieldText> + use<> {
        let Self {
            method,
            named,
            data,
            scope,
            ..
        } = *self;
        let fields = named.map_or(&[][..], |named| named.info.fields);
        let whole =
            matches!(fields, [field] if field.spec.mask() == u32::MAX && field.values.is_empty());
        let fields = if whole { &[][..] } else { fields };
        data.single().into_iter().flat_map(move |word| {
            fields
                .iter()
                .filter(move |field| scope.covers(field.spec.name))
                .map(move |field| {
                    let value = field.spec.of(word);
                    let name = if method == host::SET_OBJECT && field.spec.lo == 0 {
                        class::name(ClassId(value))
                    } else {
                        field.value_name(value)
                    };
                    FieldText { field, value, name }
                })
        })
    }
}

/// One line: what a packet does to one method, or what a header without a method does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Line<'a> {
    /// Data for a method.
    Method(MethodLine<'a>),
    /// A header that is about no method.
    Header {
        /// Where it is, in words from the start.
        offset: usize,
        /// The header.
        header: Header,
    },
}

impl Line<'_> {
    /// Where it is, in words from the start.
    #[must_use]
    pub const fn offset(&self) -> usize {
        match self {
            Self::Method(line) => line.offset,
            Self::Header { offset, .. } => *offset,
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(line) => line.fmt(f),
            Self::Header { offset, header } => {
                write!(f, "{offset:>6} - ")?;
                match header {
                    Header::Run { method, .. } if *header == Header::NOP && method.bytes() == 0 => {
                        f.write_str("NOP")
                    }
                    Header::Run {
                        op,
                        subchannel,
                        method,
                        ..
                    } => {
                        write!(f, "{op} of no words to {method} of subchannel {subchannel}")
                    }
                    Header::Immediate { method, data, .. } => write!(f, "{method} {data:#x}"),
                    Header::SetSubDevMask { mask } => write!(f, "SET_SUB_DEV_MASK {mask:#x}"),
                    Header::StoreSubDevMask { mask } => write!(f, "STORE_SUB_DEV_MASK {mask:#x}"),
                    Header::UseSubDevMask => f.write_str("USE_SUB_DEV_MASK"),
                    Header::EndPbSegment => f.write_str("END_PB_SEGMENT"),
                }
            }
        }
    }
}

impl fmt::Display for MethodLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Words of a long run that are shown.
        const SHOWN: usize = 8;
        write!(f, "{:>6} {} ", self.offset, self.subchannel)?;
        match self.class.map(|class| (class, class::name(class))) {
            Some((_, Some(name))) => write!(f, "{name:<26} ")?,
            Some((class, None)) => write!(f, "{:<#26x} ", class.0)?,
            None => write!(f, "{:<26} ", "?")?,
        }
        match self.named {
            Some(named) => write!(f, "{named}")?,
            None => write!(f, "{}", self.method)?,
        }
        match self.data {
            Data::Immediate(word) => write!(f, " {word:#010x}")?,
            Data::Words([word]) => write!(f, " {word:#010x}")?,
            Data::Words(words) => {
                write!(f, " {} words:", words.len())?;
                for word in words.iter().take(SHOWN) {
                    write!(f, " {word:#x}")?;
                }
                if words.len() > SHOWN {
                    f.write_str(" ...")?;
                }
            }
        }
        for field in self.fields() {
            write!(f, " {field}")?;
        }
        Ok(())
    }
}

/// Names what `words` do, packet by packet, beginning with what is bound by then.
#[must_use]
pub const fn lines(words: &[u32], bindings: Bindings) -> Lines<'_> {
    Lines {
        packets: PushReader::new(words),
        packet: None,
        index: 0,
        scope: Scope::Any,
        bindings,
    }
}

/// Iterates over the lines of a segment; made by [`lines`]. It ends where the reader does, an error included.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    packets: PushReader<'a>,
    packet: Option<Packet<'a>>,
    index: usize,
    scope: Scope,
    bindings: Bindings,
}

logged!(Lines<'_>, lines, "lines of {}", lines.packets);

impl<'a> Lines<'a> {
    /// What is bound after the lines read so far.
    #[must_use]
    pub const fn bindings(&self) -> Bindings {
        self.bindings
    }

    /// The next line of the packet at hand.
    fn of_packet(&mut self) -> Option<Line<'a>> {
        let packet = self.packet?;
        let (op, subchannel, first, data) = match packet.header {
            Header::Run {
                op,
                subchannel,
                method,
                ..
            } => (Some(op), subchannel, method, packet.data),
            Header::Immediate {
                subchannel, method, ..
            } => (None, subchannel, method, &[][..]),
            _ => (None, Subchannel::HOST, MethodAddr::default(), &[][..]),
        };
        let immediate = match packet.header {
            Header::Immediate { data, .. } => Some(u32::from(data)),
            _ => None,
        };
        let index = self.index;
        // Words that go to the same method share a line.
        let (skip, data) = match op {
            None if index == 0 && immediate.is_some() => (0, data),
            Some(RunOp::Inc | RunOp::Grp0Inc) => (index, data.get(index..)?.get(..1)?),
            Some(RunOp::OneInc) if index == 0 => (0, data.get(..1)?),
            Some(RunOp::OneInc) if index == 1 => {
                (1, data.get(1..).filter(|rest| !rest.is_empty())?)
            }
            Some(RunOp::NonInc | RunOp::Grp2NonInc) if index == 0 && !data.is_empty() => (0, data),
            _ => return None,
        };
        let method = first.checked_add(u16::try_from(skip).ok()?)?;
        self.index = index.checked_add(1)?;
        let data = immediate.map_or(Data::Words(data), Data::Immediate);
        if let Some(word) = data.single()
            && method == host::SET_OBJECT
        {
            self.bindings = self.bindings.with(subchannel, ClassId(word & 0xffff));
        }
        let class = self.bindings.class(subchannel, method);
        let header = usize::from(immediate.is_none());
        Some(Line::Method(MethodLine {
            offset: packet.offset.saturating_add(header).saturating_add(skip),
            op,
            subchannel,
            class,
            method,
            named: class.and_then(|class| table::method(class, method)),
            data,
            scope: if is_mem_op(method) {
                self.scope
            } else {
                Scope::Any
            },
        }))
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Each round either answers or takes a packet, of which there are fewer than words.
        loop {
            if let Some(line) = self.of_packet() {
                return Some(Ok(line));
            }
            self.packet = None;
            let packet = match self.packets.next()? {
                Ok(packet) => packet,
                Err(error) => return Some(Err(error)),
            };
            if packet.header.count() == 0 && !matches!(packet.header, Header::Immediate { .. }) {
                return Some(Ok(Line::Header {
                    offset: packet.offset,
                    header: packet.header,
                }));
            }
            self.index = 0;
            self.scope = Scope::of(&packet);
            self.packet = Some(packet);
        }
    }
}

impl FusedIterator for Lines<'_> {}

/// What `MEM_OP_A` to `MEM_OP_D` mean: `MEM_OP_D` says, in the same packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Scope {
    Any,
    Membar,
    Tlb,
    AccessCounter,
    MmuOperation,
    Bare,
}

impl Scope {
    fn of(packet: &Packet<'_>) -> Self {
        let last = packet.writes().find(|write| write.method == host::MEM_OP_D);
        let Some(write) = last else { return Self::Any };
        match host::MEM_OP_D_OPERATION.of(write.data) {
            5 => Self::Membar,
            9 | 10 => Self::Tlb,
            11 => Self::MmuOperation,
            22 => Self::AccessCounter,
            _ => Self::Bare,
        }
    }

    fn covers(self, field: &str) -> bool {
        if field == "OPERATION" {
            return true;
        }
        match self {
            Self::Any => true,
            Self::Membar => field.starts_with("MEMBAR_"),
            // Cancelling is for replayable faults, which are the kernel's.
            Self::Tlb => {
                field.starts_with("TLB_INVALIDATE_")
                    && !field.starts_with("TLB_INVALIDATE_CANCEL_")
                    && field != "TLB_INVALIDATE_ACCESS_TYPE"
            }
            Self::AccessCounter => field.starts_with("ACCESS_COUNTER_"),
            Self::MmuOperation => field.starts_with("MMU_OPERATION_"),
            Self::Bare => false,
        }
    }
}

const fn is_mem_op(method: MethodAddr) -> bool {
    matches!(
        method,
        host::MEM_OP_A | host::MEM_OP_B | host::MEM_OP_C | host::MEM_OP_D
    )
}
