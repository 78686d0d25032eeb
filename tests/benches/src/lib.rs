//! The same work by several readers: list every section and every symbol of a cubin, with names and sizes.

mod large;

pub use large::large;

use std::path::{Path, PathBuf};

/// What a listing adds up to: the same for every reader, or it has not done the same work.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sum {
    /// How many sections and symbols.
    pub items: u64,
    /// Lengths of their names.
    pub names: u64,
    /// Sizes and values.
    pub sizes: u64,
}

impl Sum {
    fn add(&mut self, name: usize, size: u64, value: u64) {
        self.items += 1;
        self.names += name as u64;
        self.sizes = self.sizes.wrapping_add(size).wrapping_add(value);
    }
}

/// By this project's reader.
pub fn ours(file: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let cubin = nv_proto::cubin::Cubin::parse(file).expect("a cubin");
    for section in cubin.sections() {
        sum.add(
            section.name().len(),
            section.size(),
            section.kind().0.into(),
        );
    }
    for symbol in cubin.symbols() {
        sum.add(symbol.name().len(), symbol.size(), symbol.value());
    }
    sum
}

/// By `object`, at its lower level, which is its faster one, with names as text as the others give them.
pub fn object(file: &[u8]) -> Sum {
    object_with(file, |name| std::str::from_utf8(name).expect("text").len())
}

/// By `object` with names as bytes that nobody has looked at.
pub fn object_bytes(file: &[u8]) -> Sum {
    object_with(file, <[u8]>::len)
}

#[inline(always)]
fn object_with(file: &[u8], length: impl Fn(&[u8]) -> usize) -> Sum {
    use object::LittleEndian as Le;
    use object::read::elf::{FileHeader, SectionHeader};
    let mut sum = Sum::default();
    let header = object::elf::FileHeader64::<Le>::parse(file).expect("an ELF file");
    let sections = header.sections(Le, file).expect("sections");
    for section in sections.iter() {
        let name = sections.section_name(Le, section).expect("a name");
        sum.add(
            length(name),
            section.sh_size(Le),
            section.sh_type.get(Le).0.into(),
        );
    }
    let symbols = sections
        .symbols(Le, file, object::elf::SHT_SYMTAB)
        .expect("symbols");
    for symbol in symbols.iter() {
        let name = symbols.symbol_name(Le, symbol).expect("a name");
        sum.add(
            length(name),
            symbol.st_size.get(Le),
            symbol.st_value.get(Le),
        );
    }
    sum
}

/// By `goblin`.
pub fn goblin(file: &[u8]) -> Sum {
    let mut sum = Sum::default();
    let elf = goblin::elf::Elf::parse(file).expect("an ELF file");
    for section in &elf.section_headers {
        let name = elf.shdr_strtab.get_at(section.sh_name).expect("a name");
        sum.add(name.len(), section.sh_size, section.sh_type.into());
    }
    for symbol in &elf.syms {
        let name = elf.strtab.get_at(symbol.st_name).expect("a name");
        sum.add(name.len(), symbol.st_size, symbol.st_value);
    }
    sum
}

/// By `elf`.
pub fn elf(file: &[u8]) -> Sum {
    use elf::endian::LittleEndian as Le;
    let mut sum = Sum::default();
    let elf = elf::ElfBytes::<Le>::minimal_parse(file).expect("an ELF file");
    let (sections, names) = elf.section_headers_with_strtab().expect("sections");
    let (sections, names) = (sections.expect("sections"), names.expect("names"));
    for section in sections {
        let name = names.get(section.sh_name as usize).expect("a name");
        sum.add(name.len(), section.sh_size, section.sh_type.into());
    }
    let (symbols, names) = elf.symbol_table().expect("symbols").expect("symbols");
    for symbol in symbols {
        let name = names.get(symbol.st_name as usize).expect("a name");
        sum.add(name.len(), symbol.st_size, symbol.st_value);
    }
    sum
}

/// A reader and its name.
pub type Reader = (&'static str, fn(&[u8]) -> Sum);

/// All of them.
pub const READERS: [Reader; 5] = [
    ("ours", ours),
    ("object", object),
    ("object, bytes", object_bytes),
    ("goblin", goblin),
    ("elf", elf),
];

/// Every cubin below `tests/cubins`.
pub fn corpus() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    let mut directories = vec![PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../cubins"
    ))];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension() == Some("cubin".as_ref()) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read(path).expect("a file"))
        .collect()
}

/// A plain checksum: what reading every byte once costs.
pub fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    rest.iter()
        .fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

/// Everything that a launch needs of every kernel, and every parameter: how many of both.
pub fn kernels(file: &[u8]) -> (usize, usize) {
    let cubin = nv_proto::cubin::Cubin::parse(file).expect("a cubin");
    let kernels = cubin.kernels().expect("kernels");
    let params = kernels.iter().map(|kernel| kernel.params().count()).sum();
    (kernels.len(), params)
}

/// The file named, for one-off measurements.
pub fn file(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}
