//! Notes: what a toolkit says of itself.

use core::fmt;

use super::error::Error;

/// A version of the CUDA toolkit.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Toolkit {
    /// 13 of 13.2.
    pub major: u16,
    /// 2 of 13.2.
    pub minor: u16,
}

impl Toolkit {
    /// From ten times the version, as `e_version` of older files and `.note.nv.cuinfo` have it.
    pub(super) const fn from_tenths(tenths: u16) -> Option<Self> {
        if tenths < 10 {
            return None;
        }
        Some(Self {
            major: tenths / 10,
            minor: tenths % 10,
        })
    }
}

impl fmt::Display for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A note.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Note<'a> {
    /// The section that holds it.
    pub section: &'a str,
    /// Whose note it is, without its final zero.
    pub owner: &'a [u8],
    /// Its type: 1000 in `.note.nv.cuinfo` and `.note.nv.cuver`, 2000 in `.note.nv.tkinfo`.
    pub kind: u32,
    /// What it says.
    pub text: &'a [u8],
}

impl Note<'_> {
    /// The toolkit that `.note.nv.cuinfo` names: half-words note version, architecture, ten times the toolkit.
    #[must_use]
    pub fn toolkit_of_cuinfo(&self) -> Option<Toolkit> {
        match self.text {
            &[_, _, _, _, low, high, ..] if self.section == ".note.nv.cuinfo" => {
                Toolkit::from_tenths(u16::from_le_bytes([low, high]))
            }
            _ => None,
        }
    }

    /// The toolkit that `.note.nv.tkinfo` names, in words: "release 12.8".
    #[must_use]
    pub fn toolkit_of_tkinfo(&self) -> Option<Toolkit> {
        const MARK: &[u8] = b"release ";
        if self.section != ".note.nv.tkinfo" {
            return None;
        }
        let at = self
            .text
            .windows(MARK.len())
            .position(|window| window == MARK)?;
        let rest = self.text.get(at.checked_add(MARK.len())?..)?;
        let (major, rest) = decimal(rest)?;
        let (minor, _) = decimal(rest.strip_prefix(b".")?)?;
        Some(Toolkit { major, minor })
    }
}

fn decimal(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = text
        .iter()
        .take(5)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let (digits, rest) = text.split_at_checked(digits)?;
    Some((core::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// The notes of a section.
#[derive(Clone, Debug)]
pub struct Notes<'a> {
    section: &'a str,
    offset: u64,
    rest: &'a [u8],
}

impl<'a> Notes<'a> {
    /// The notes in `bytes`, which `section` names in errors.
    #[must_use]
    pub const fn new(section: &'a str, bytes: &'a [u8]) -> Self {
        Self {
            section,
            offset: 0,
            rest: bytes,
        }
    }

    fn read(&self) -> Result<(Note<'a>, &'a [u8]), Error<'a>> {
        let truncated = |needed: u64| Error::Truncated {
            what: "note in",
            name: self.section,
            offset: self.offset,
            needed,
            available: super::length(self.rest),
        };
        let (words, rest) = self.rest.split_first_chunk::<12>().ok_or(truncated(12))?;
        let (words, _) = words.as_chunks::<4>();
        let word = |index: usize| words.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        let (owner_size, text_size) = (word(0), word(1));
        let needed = u64::from(owner_size)
            .saturating_add(text_size.into())
            .saturating_add(12);
        let (owner, rest) = padded(rest, owner_size).ok_or(truncated(needed))?;
        let (text, rest) = padded(rest, text_size).ok_or(truncated(needed))?;
        let owner = owner.strip_suffix(&[0]).unwrap_or(owner);
        Ok((
            Note {
                section: self.section,
                owner,
                kind: word(2),
                text,
            },
            rest,
        ))
    }
}

/// The first `size` bytes, and what follows them and the padding to a whole word.
fn padded(bytes: &[u8], size: u32) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let (text, _) = bytes.split_at_checked(size)?;
    let rest = bytes
        .get(size.checked_next_multiple_of(4)?..)
        .unwrap_or(&[]);
    Some((text, rest))
}

impl<'a> Iterator for Notes<'a> {
    type Item = Result<Note<'a>, Error<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match self.read() {
            Ok((note, rest)) => {
                let used = super::length(self.rest).saturating_sub(super::length(rest));
                self.offset = self.offset.saturating_add(used);
                self.rest = rest;
                Some(Ok(note))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}
