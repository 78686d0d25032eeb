//! Notes: what a toolkit says of itself.
//!
//! `.note.nv.tkinfo` is in files of CUDA 12.8 and later, `.note.nv.cuinfo` in those of CUDA 13.

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

impl<'a> Note<'a> {
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

    /// Which program `.note.nv.tkinfo` says made the code, or a part of it.
    ///
    /// Words version, 0, and the offsets of four strings in the text that follows.
    #[must_use]
    pub fn tool(&self) -> Option<Tool<'a>> {
        if self.section != ".note.nv.tkinfo" {
            return None;
        }
        let (words, strings) = self.text.split_first_chunk::<24>()?;
        let (words, _) = words.as_chunks::<4>();
        let string = |at: usize| {
            let offset = usize::try_from(u32::from_le_bytes(*words.get(at)?)).ok()?;
            let text = core::ffi::CStr::from_bytes_until_nul(strings.get(offset..)?).ok()?;
            text.to_str().ok()
        };
        Some(Tool {
            name: string(2)?,
            version: string(3)?,
            build: string(4)?,
            options: string(5)?,
        })
    }
}

/// A program that made code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tool<'a> {
    /// Its name, such as `ptxas`.
    pub name: &'a str,
    /// Its version in words: "Cuda compilation tools, release 13.0, V13.0.88".
    pub version: &'a str,
    /// Its build.
    pub build: &'a str,
    /// The options that it was given.
    pub options: &'a str,
}

impl<'a> Tool<'a> {
    /// The toolkit that its version names.
    #[must_use]
    pub fn toolkit(&self) -> Option<Toolkit> {
        let (_, rest) = self.version.split_once("release ")?;
        let (version, _) = rest.split_once(',').unwrap_or((rest, ""));
        let (major, minor) = version.split_once('.')?;
        Some(Toolkit {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    /// The architecture that it was asked for, such as `sm_100f`.
    #[must_use]
    pub fn architecture(&self) -> Option<&'a str> {
        let mut options = self.options.split_ascii_whitespace();
        options.find(|option| *option == "-arch")?;
        options.next()
    }
}

/// The notes of a section.
#[derive(Clone, Debug)]
pub struct Notes<'a> {
    section: &'a str,
    offset: u64,
    rest: &'a [u8],
}

logged!(
    Notes<'_>,
    notes,
    "notes of {=str} from {=u64:#x}: {=usize} bytes",
    notes.section,
    notes.offset,
    notes.rest.len()
);

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
