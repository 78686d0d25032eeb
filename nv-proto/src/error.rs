//! What encoders and decoders answer when a value does not fit or bytes make no sense.

/// Why a value could not be encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum EncodeError {
    /// The output is too short.
    #[error("the output holds {available} words and {needed} are needed")]
    BufferTooSmall {
        /// Words needed.
        needed: usize,
        /// Words there are.
        available: usize,
    },
    /// A value is wider than its field.
    #[error("{field} is {width} bits wide and cannot hold {value:#x}")]
    FieldOverflow {
        /// The field, as NVIDIA's header spells it.
        field: &'static str,
        /// Its width in bits.
        width: u32,
        /// The value.
        value: u64,
    },
    /// A value is not a multiple of the unit that its field counts in.
    #[error("{field} counts units of {unit} and {value:#x} is no multiple")]
    Misaligned {
        /// The field, as NVIDIA's header spells it.
        field: &'static str,
        /// The unit.
        unit: u64,
        /// The value.
        value: u64,
    },
    /// An index is past the end of a field array.
    #[error("{field} has {count} elements and no index {index}")]
    IndexOutOfRange {
        /// The field, as NVIDIA's header spells it.
        field: &'static str,
        /// How many there are.
        count: u32,
        /// The index asked for.
        index: u32,
    },
    /// The hardware interface has no way to say it.
    #[error("{what} ({value:#x}) cannot be encoded")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
        /// The value.
        value: u64,
    },
}

/// Why words or bytes could not be decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DecodeError {
    /// The input ends too early.
    #[error("{what}: {needed} bytes are needed at offset {offset:#x} and {available} are there")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where, in bytes from the start of the input.
        offset: usize,
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A value has no meaning.
    #[error("{what} cannot be {value:#x} (at offset {offset:#x})")]
    BadValue {
        /// What was being read.
        what: &'static str,
        /// Where, in bytes from the start of the input.
        offset: usize,
        /// The value found.
        value: u64,
    },
}
