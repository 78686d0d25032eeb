//! Kernel arguments as people write them: `u32:5`, `f32[1024]=range`.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// The type of a scalar or of a buffer's elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Type {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

/// All types by name.
const TYPES: [(&str, Type); 10] = [
    ("u8", Type::U8),
    ("i8", Type::I8),
    ("u16", Type::U16),
    ("i16", Type::I16),
    ("u32", Type::U32),
    ("i32", Type::I32),
    ("u64", Type::U64),
    ("i64", Type::I64),
    ("f32", Type::F32),
    ("f64", Type::F64),
];

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        TYPES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, kind)| *kind)
            .ok_or_else(|| {
                format!(
                    "no type {text:?}; there are {}",
                    TYPES.map(|(name, _)| name).join(", ")
                )
            })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TYPES
            .iter()
            .find(|(_, kind)| kind == self)
            .map_or("?", |(name, _)| name);
        f.write_str(name)
    }
}

impl Type {
    /// Its size in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The bytes of a value written as text; integers also as 0x hexadecimal.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        fn number<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
            text.parse().map_err(|error| format!("{text:?}: {error}"))
        }
        let hex = text.strip_prefix("0x").map(|digits| {
            u64::from_str_radix(digits, 16).map_err(|error| format!("{text:?}: {error}"))
        });
        macro_rules! integer {
            ($type:ty) => {
                match hex {
                    Some(value) => <$type>::try_from(value?)
                        .map_err(|_| format!("{text:?} does not fit {self}"))?
                        .to_le_bytes()
                        .to_vec(),
                    None => number::<$type>(text)?.to_le_bytes().to_vec(),
                }
            };
        }
        Ok(match self {
            Self::U8 => integer!(u8),
            Self::I8 => integer!(i8),
            Self::U16 => integer!(u16),
            Self::I16 => integer!(i16),
            Self::U32 => integer!(u32),
            Self::I32 => integer!(i32),
            Self::U64 => integer!(u64),
            Self::I64 => integer!(i64),
            Self::F32 => number::<f32>(text)?.to_le_bytes().to_vec(),
            Self::F64 => number::<f64>(text)?.to_le_bytes().to_vec(),
        })
    }

    /// The bytes of a whole number, wrapped to the type's width.
    fn wrapped(self, value: u64) -> Vec<u8> {
        match self {
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F64 => (value as f64).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().into_iter().take(self.size()).collect(),
        }
    }

    /// Random bytes: integers of all values, floats from 0 to below 1.
    fn random(self, bits: u64) -> Vec<u8> {
        match self {
            Self::F32 => ((bits >> 40) as f32 / (1 << 24) as f32)
                .to_le_bytes()
                .to_vec(),
            Self::F64 => ((bits >> 11) as f64 / (1_u64 << 53) as f64)
                .to_le_bytes()
                .to_vec(),
            _ => self.wrapped(bits),
        }
    }

    /// One value as text and as JSON.
    pub fn show(self, bytes: &[u8]) -> serde_json::Value {
        macro_rules! read {
            ($type:ty) => {
                bytes.try_into().map(<$type>::from_le_bytes).map_or(
                    serde_json::Value::Null,
                    |value| {
                        // What JSON has no number for (NaN, infinity) becomes text.
                        match serde_json::to_value(value) {
                            Ok(serde_json::Value::Null) | Err(_) => value.to_string().into(),
                            Ok(number) => number,
                        }
                    },
                )
            };
        }
        match self {
            Self::U8 => read!(u8),
            Self::I8 => read!(i8),
            Self::U16 => read!(u16),
            Self::I16 => read!(i16),
            Self::U32 => read!(u32),
            Self::I32 => read!(i32),
            Self::U64 => read!(u64),
            Self::I64 => read!(i64),
            Self::F32 => read!(f32),
            Self::F64 => read!(f64),
        }
    }
}

/// One argument.
#[derive(Clone, Debug)]
pub enum ArgSpec {
    /// A value.
    Scalar(Vec<u8>),
    /// A pointer to a buffer.
    Buffer {
        /// Of what.
        kind: Type,
        /// Its first content.
        bytes: Vec<u8>,
    },
}

/// The most bytes that a buffer may be asked for on the command line.
const MAX_BYTES: usize = 64 << 30;

impl FromStr for ArgSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || {
            format!(
                "{text:?} is neither TYPE:VALUE (u32:5) nor TYPE[COUNT]=CONTENT (f32[1024]=range), \
                 where CONTENT is zero, range, fill:VALUE, random:SEED or file:PATH"
            )
        };
        let Some((kind, rest)) = text.split_once('[') else {
            let (kind, value) = text.split_once(':').ok_or_else(usage)?;
            return Ok(Self::Scalar(kind.parse::<Type>()?.parse(value)?));
        };
        let kind: Type = kind.parse()?;
        let (count, content) = rest.split_once("]=").ok_or_else(usage)?;
        let count: usize = count
            .parse()
            .map_err(|error| format!("{text:?}: count {count:?}: {error}"))?;
        let total = count
            .checked_mul(kind.size())
            .filter(|total| (1..=MAX_BYTES).contains(total))
            .ok_or_else(|| format!("{text:?}: a buffer has 1 to {MAX_BYTES} bytes"))?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(total)
            .map_err(|error| format!("{text:?}: {error}"))?;
        match content.split_once(':') {
            None if content == "zero" => bytes.resize(total, 0),
            None if content == "range" => {
                bytes.extend((0..count as u64).flat_map(|i| kind.wrapped(i)));
            }
            Some(("fill", value)) => {
                let value = kind.parse(value)?;
                for _ in 0..count {
                    bytes.extend_from_slice(&value);
                }
            }
            Some(("random", seed)) => {
                let mut state: u64 = seed
                    .parse()
                    .map_err(|error| format!("{text:?}: seed {seed:?}: {error}"))?;
                bytes.extend((0..count).flat_map(|_| kind.random(split_mix(&mut state))));
            }
            Some(("file", path)) => {
                // No more than one byte too many, however long the file is.
                std::fs::File::open(path)
                    .and_then(|file| file.take(total as u64 + 1).read_to_end(&mut bytes))
                    .map_err(|error| format!("{path}: {error}"))?;
                if bytes.len() != total {
                    let found = if bytes.len() > total { "more" } else { "fewer" };
                    return Err(format!(
                        "{path} has {found} bytes than the {total} that {kind}[{count}] takes"
                    ));
                }
            }
            _ => return Err(usage()),
        }
        Ok(Self::Buffer { kind, bytes })
    }
}

/// The next number of the SplitMix64 generator (Steele, Lea, Flood 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_and_buffers_are_read() {
        assert!(matches!("u32:5".parse(), Ok(ArgSpec::Scalar(b)) if b == [5, 0, 0, 0]));
        assert!(matches!("i16:-2".parse(), Ok(ArgSpec::Scalar(b)) if b == [0xfe, 0xff]));
        assert!(matches!("u8:0xff".parse(), Ok(ArgSpec::Scalar(b)) if b == [0xff]));
        let Ok(ArgSpec::Buffer {
            kind: Type::F32,
            bytes,
        }) = "f32[3]=range".parse()
        else {
            panic!("no buffer");
        };
        assert_eq!(bytes, [0.0_f32, 1.0, 2.0].map(f32::to_le_bytes).concat());
        let Ok(ArgSpec::Buffer { bytes, .. }) = "f64[1000]=random:7".parse() else {
            panic!()
        };
        for value in bytes.chunks(8) {
            let value = f64::from_le_bytes(value.try_into().unwrap());
            assert!((0.0..1.0).contains(&value));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, says) in [
            ("u32", "neither"),
            ("u33:1", "no type"),
            ("u8:256", "too large"),
            ("u8:0x100", "does not fit"),
            ("f32[0]=zero", "1 to"),
            ("f32[18446744073709551615]=zero", "1 to"),
            ("f32[4]=nothing", "neither"),
            ("f32[4]=file:/no/such/file", "No such file"),
            ("f32[x]=zero", "count"),
        ] {
            let error = text.parse::<ArgSpec>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
