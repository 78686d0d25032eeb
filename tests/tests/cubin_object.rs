//! The `object` crate, an independent reader, against ours on every file: the same sections, symbols and relocations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use nv_proto::cubin::{Cubin, SymbolSection};
use object::LittleEndian as Le;
use object::read::elf::{ElfFile64, SectionHeader as _};

type Object<'a> = ElfFile64<'a, Le>;

fn files() -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![nv_tests::path("cubins")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "cubin")
            {
                let relative = path.strip_prefix(nv_tests::path("")).expect("below tests");
                found.push(relative.to_str().expect("a name").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn each(mut check: impl FnMut(&str, &Cubin<'_>, &Object<'_>, &[u8])) {
    let files = files();
    assert!(files.len() > 300, "{} files", files.len());
    for name in files {
        let bytes = nv_tests::bytes(&name);
        let ours = Cubin::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let theirs = Object::parse(&*bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&name, &ours, &theirs, &bytes);
    }
}

#[test]
fn sections_and_their_bytes() {
    let mut without_contents = 0;
    each(|name, ours, theirs, bytes| {
        let table = theirs.elf_section_table();
        assert_eq!(ours.section_count(), table.len(), "{name}");
        for (ours, theirs) in ours.sections().zip(table.iter()) {
            let title = table.section_name(Le, theirs).expect("a name");
            assert_eq!(ours.name().as_bytes(), title, "{name}");
            assert_eq!(
                ours.kind().0,
                theirs.sh_type.get(Le).0,
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.flags(),
                theirs.sh_flags.get(Le).0,
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.offset(),
                theirs.sh_offset.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.size(),
                theirs.sh_size.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.link(),
                theirs.sh_link.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.info(),
                theirs.sh_info.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.entry_size(),
                theirs.sh_entsize.get(Le),
                "{name} {}",
                ours.name()
            );
            let data = theirs.data(Le, bytes).expect("data");
            if ours.kind().is_nobits() && ours.kind().0 != 8 {
                // The one disagreement: `object` knows NOBITS alone of the types without contents, and gives bytes
                // of the sections behind for NVIDIA's own (.nv.global and shared memory in relocatable files).
                assert!(ours.data().is_empty());
                without_contents += usize::from(!data.is_empty());
            } else if ours.kind().0 != 0 {
                assert_eq!(ours.data(), data, "{name} {}", ours.name());
            }
        }
    });
    assert!(without_contents > 0, "the disagreement is there");
}

#[test]
fn symbols() {
    each(|name, ours, theirs, _| {
        let table = theirs.elf_symbol_table();
        assert_eq!(ours.symbol_count(), table.len(), "{name}");
        for (ours, theirs) in ours.symbols().zip(table.iter()) {
            let title = table.symbol_name(Le, theirs).expect("a name");
            assert_eq!(ours.name().as_bytes(), title, "{name}");
            assert_eq!(
                ours.value(),
                theirs.st_value.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                ours.size(),
                theirs.st_size.get(Le),
                "{name} {}",
                ours.name()
            );
            assert_eq!(
                (ours.info(), ours.other()),
                (theirs.st_info.0, theirs.st_other.0),
                "{name} {}",
                ours.name()
            );
            let section = match ours.section() {
                SymbolSection::In(index) => u16::try_from(index.0).expect("a small number"),
                SymbolSection::Undefined => 0,
                SymbolSection::Reserved(number) => number,
            };
            assert_eq!(section, theirs.st_shndx.get(Le).0, "{name} {}", ours.name());
        }
    });
}

#[test]
fn relocations() {
    let mut compared = 0;
    each(|name, ours, theirs, bytes| {
        let mut sections = ours
            .relocation_sections()
            .map(|section| section.expect("relocations"));
        for theirs in theirs.elf_section_table().iter() {
            let entries: Vec<(u64, u64, Option<i64>)> =
                if let Some((entries, _)) = theirs.rela(Le, bytes).expect("relocations") {
                    let of = |raw: &object::elf::Rela64<Le>| {
                        (
                            raw.r_offset.get(Le),
                            raw.r_info.get(Le),
                            Some(raw.r_addend.get(Le)),
                        )
                    };
                    entries.iter().map(of).collect()
                } else if let Some((entries, _)) = theirs.rel(Le, bytes).expect("relocations") {
                    entries
                        .iter()
                        .map(|raw| (raw.r_offset.get(Le), raw.r_info.get(Le), None))
                        .collect()
                } else {
                    continue;
                };
            let ours = sections.next().expect("as many sections");
            let of = |relocation: nv_proto::cubin::Relocation| {
                let info = u64::from(relocation.symbol.0) << 32 | u64::from(relocation.kind.0);
                (relocation.offset, info, relocation.addend)
            };
            assert_eq!(
                ours.iter().map(of).collect::<Vec<_>>(),
                entries,
                "{name} {}",
                ours.section().name()
            );
            assert_eq!(ours.target().index().0, theirs.sh_info.get(Le), "{name}");
            compared += entries.len();
        }
        assert!(sections.next().is_none(), "{name}");
    });
    assert!(compared > 2000, "{compared}");
}
