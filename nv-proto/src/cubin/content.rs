//! What a run of bytes is, by its first bytes: for errors that say what was given instead of a cubin.

use core::fmt;

/// What a file looks like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Content {
    /// Nothing at all.
    Empty,
    /// An ELF file for NVIDIA GPUs (`EM_CUDA`, 190).
    Cubin,
    /// A fatbin, a container of cubins and PTX.
    Fatbin,
    /// PTX text.
    Ptx,
    /// A 64-bit little-endian ELF file for another machine, with its `e_machine`.
    HostElf(u16),
    /// An ELF file that is not 64-bit little-endian.
    OtherElf,
    /// The start of an ELF file that ends within its header.
    CutElf,
    /// LLVM bitcode.
    Bitcode,
    /// A static library.
    Archive,
    /// A zstd frame.
    Zstd,
    /// A gzip stream.
    Gzip,
    /// A zip file, such as a Python wheel.
    Zip,
    /// A Windows executable or object.
    Windows,
    /// Other text.
    Text,
    /// Other bytes, with the first four of them, little-endian.
    Unknown(u32),
}

impl Content {
    /// What `bytes` look like.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self::Empty;
        }
        if bytes.starts_with(b"\x7fELF") {
            return Self::of_elf(bytes);
        }
        const MAGICS: [(&[u8], Content); 9] = [
            (&FATBIN_MAGIC.to_le_bytes(), Content::Fatbin),
            (b"!<arch>\n", Content::Archive),
            (b"!<thin>\n", Content::Archive),
            (b"BC\xc0\xde", Content::Bitcode),
            (b"\x28\xb5\x2f\xfd", Content::Zstd),
            (b"\x1f\x8b", Content::Gzip),
            (b"PK\x03\x04", Content::Zip),
            (b"MZ", Content::Windows),
            (b"\xde\xc0\x17\x0b", Content::Bitcode),
        ];
        for (magic, content) in MAGICS {
            if bytes.starts_with(magic) {
                return content;
            }
        }
        // A compiler's PTX starts with comment lines and blank lines, then `.version`.
        let head = bytes.get(..bytes.len().min(TEXT_PROBE)).unwrap_or(bytes);
        let is_text = head
            .iter()
            .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..));
        let directive = head
            .split(|b| *b == b'\n')
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty() && !line.starts_with(b"//"));
        match directive {
            Some(line) if is_text && line.starts_with(b".version") => Self::Ptx,
            _ if is_text => Self::Text,
            _ => Self::Unknown(
                bytes
                    .iter()
                    .take(4)
                    .rev()
                    .fold(0, |word, b| word << 8 | u32::from(*b)),
            ),
        }
    }

    fn of_elf(bytes: &[u8]) -> Self {
        match bytes {
            [_, _, _, _, 2, 1, ..] => match bytes.get(18..20) {
                _ if bytes.len() < 64 => Self::CutElf,
                Some(&[low, high]) => match u16::from_le_bytes([low, high]) {
                    EM_CUDA => Self::Cubin,
                    machine => Self::HostElf(machine),
                },
                _ => Self::CutElf,
            },
            [_, _, _, _, _, _, ..] => Self::OtherElf,
            _ => Self::CutElf,
        }
    }

    /// What to do with it instead.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Empty => "check the path that it was read from",
            Self::Cubin => "give it to the cubin reader",
            Self::Fatbin => "take the entry for the device out of it first",
            Self::Ptx => "assemble it with ptxas -arch first",
            Self::HostElf(_) => "look for a fatbin in its .nv_fatbin section",
            Self::OtherElf => "cubins are 64-bit little-endian ELF files",
            Self::CutElf => "the file was cut short",
            Self::Bitcode => "compile it to a cubin first",
            Self::Archive => "extract its members first",
            Self::Zstd | Self::Gzip | Self::Zip => "decompress it first",
            Self::Windows => "extract the fatbin from its .nv_fatb section first",
            Self::Text | Self::Unknown(_) => "compile with nvcc -cubin or ptxas to make one",
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::Cubin => f.write_str("it is a cubin"),
            Self::Fatbin => f.write_str("it is a fatbin"),
            Self::Ptx => f.write_str("it is PTX text"),
            Self::HostElf(62) => f.write_str("it is an x86-64 ELF file"),
            Self::HostElf(183) => f.write_str("it is an AArch64 ELF file"),
            Self::HostElf(machine) => write!(f, "it is an ELF file for machine {machine}"),
            Self::OtherElf => f.write_str("it is a 32-bit or big-endian ELF file"),
            Self::CutElf => f.write_str("it is an ELF file of less than its header"),
            Self::Bitcode => f.write_str("it is LLVM bitcode"),
            Self::Archive => f.write_str("it is a static library"),
            Self::Zstd => f.write_str("it is a zstd frame"),
            Self::Gzip => f.write_str("it is a gzip stream"),
            Self::Zip => f.write_str("it is a zip file"),
            Self::Windows => f.write_str("it is a Windows executable"),
            Self::Text => f.write_str("it is text"),
            Self::Unknown(word) => write!(f, "it starts with {word:#010x}"),
        }
    }
}

/// `EM_CUDA` of the ELF registry.
pub(crate) const EM_CUDA: u16 = 190;
/// The first word of a fatbin; seen in every file that fatbinary of CUDA 12 and 13 made.
pub(crate) const FATBIN_MAGIC: u32 = 0xba55_ed50;
/// How far text is looked for; a compiler's comment block is about 400 bytes.
const TEXT_PROBE: usize = 4096;
