//! What the reader says of every corpus file against what NVIDIA's own tools say (`golden/cubin/vendor.json`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;

use nv_proto::cubin::{
    Cubin, Kernel, Param, Record, Section, Symbol, SymbolSection, Value as Payload, Variant,
};
use serde_json::{Map, Value};

struct Golden {
    files: Map<String, Value>,
    refused: Vec<String>,
}

fn golden() -> Golden {
    let json = nv_tests::json("golden/cubin/vendor.json");
    let refused = json["refused"].as_array().expect("a list");
    Golden {
        files: json["files"].as_object().expect("files").clone(),
        refused: refused
            .iter()
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect(),
    }
}

fn each(mut check: impl FnMut(&str, &Cubin<'_>, &Value)) {
    let golden = golden();
    assert!(golden.files.len() >= 200, "{} files", golden.files.len());
    for (name, says) in &golden.files {
        let file = nv_tests::bytes(&format!("cubins/corpus/{name}"));
        let cubin = Cubin::parse(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(name, &cubin, says);
    }
}

fn lines(says: &Value) -> Vec<&str> {
    says.as_array()
        .expect("a list")
        .iter()
        .map(|line| line.as_str().expect("a line"))
        .collect()
}

#[test]
fn the_one_file_that_the_vendor_refuses_reads() {
    assert_eq!(golden().refused, ["11.8/sm_75/texref.cubin"]);
    let file = nv_tests::bytes("cubins/corpus/11.8/sm_75/texref.cubin");
    let cubin = Cubin::parse(&file).expect("a cubin");
    assert_eq!(cubin.kernels().expect("kernels").len(), 1);
}

#[test]
fn headers() {
    each(|name, cubin, says| {
        let theirs = says["header"].as_str().expect("a header");
        let (abi, sm, flags) = (cubin.abi_version(), cubin.sm().0, cubin.flags());
        let toolkit = cubin.toolkit().expect("a toolkit");
        let ours = if abi == 7 {
            let kind = if cubin.is_relocatable() { 1 } else { 2 };
            let variant = cubin.variant().suffix();
            let toolkit = toolkit.major * 10 + toolkit.minor;
            format!(
                "type={kind}, abi={abi}, sm={sm}{variant}, toolkit={toolkit}, flags = {flags:#x}"
            )
        } else {
            // The tool shows no family variant, which only the note of the compiler's options tells.
            let variant = if cubin.variant() == Variant::Architecture {
                "a"
            } else {
                ""
            };
            let kind = if cubin.is_relocatable() {
                "ET_REL"
            } else {
                "ET_EXEC"
            };
            format!("type={kind}, ABI={abi}, sm={sm}{variant}, toolkit={toolkit}, flags={flags:#x}")
        };
        assert_eq!(ours, theirs, "{name}");
    });
}

#[test]
fn architectures_variants_and_toolkits_are_those_of_the_directories() {
    each(|name, cubin, _| {
        let (toolkit, rest) = name.split_once('/').expect("a toolkit");
        let (architecture, _) = rest.split_once('/').expect("an architecture");
        let ours = format!("sm_{}{}", cubin.sm().0, cubin.variant().suffix());
        // A file of nvlink or of the run-time compiler does not say that it is of the family variant; none is here.
        assert_eq!(ours, architecture, "{name}: {:?}", cubin.variant());
        assert_eq!(
            cubin.toolkit().expect("a toolkit").to_string(),
            toolkit,
            "{name}"
        );
    });
}

fn section_line(section: &Section<'_>) -> String {
    let kind = section.kind();
    let kind = kind
        .name()
        .map_or_else(|| format!("UNKNOWN: {}", kind.0 & 0xff), str::to_owned);
    format!(
        "{:x} {:x} {:x} {:x} {:x} {} {:x} {:x} {:x} {}",
        section.index().0,
        section.offset(),
        section.size(),
        section.entry_size(),
        section.alignment(),
        kind,
        section.flags(),
        section.link(),
        section.info(),
        section.name()
    )
}

#[test]
fn sections() {
    each(|name, cubin, says| {
        let ours: Vec<_> = cubin
            .sections()
            .skip(1)
            .map(|section| section_line(&section))
            .collect();
        assert_eq!(ours, lines(&says["sections"]), "{name}");
    });
}

fn hex(number: u64) -> String {
    if number == 0 {
        "0".to_owned()
    } else {
        format!("{number:#x}")
    }
}

fn symbol_line(symbol: &Symbol<'_>) -> String {
    let section = match symbol.section() {
        SymbolSection::In(section) => section.0.into(),
        SymbolSection::Undefined => 0,
        SymbolSection::Reserved(number) => number.into(),
    };
    let name = if symbol.name().is_empty() {
        "(null)"
    } else {
        symbol.name()
    };
    format!(
        "{} {} {} {} {} {} {name}",
        hex(symbol.index().0.into()),
        hex(symbol.value()),
        hex(symbol.size()),
        hex(symbol.info().into()),
        hex(symbol.other().into()),
        hex(section),
    )
}

#[test]
fn symbols() {
    each(|name, cubin, says| {
        let ours: Vec<_> = cubin.symbols().map(|symbol| symbol_line(&symbol)).collect();
        assert_eq!(ours, lines(&says["symbols"]), "{name}");
    });
}

#[test]
fn relocations() {
    let mut compared = 0;
    each(|name, cubin, says| {
        let theirs = says["relocations"].as_object().expect("relocations");
        let mut sections = 0;
        for relocations in cubin.relocation_sections() {
            let relocations = relocations.expect(name);
            let section = relocations.section().name();
            let ours: Vec<_> = relocations
                .iter()
                .map(|relocation| {
                    let symbol = cubin.symbol(relocation.symbol).expect("a symbol");
                    let kind = relocation.kind.name().expect("a name");
                    let addend = relocation
                        .addend
                        .map(|addend| format!(" {addend:#x}"))
                        .unwrap_or_default();
                    format!("{:#x} {} {kind}{addend}", relocation.offset, symbol.name())
                })
                .collect();
            // The tool leaves out sections without relocations.
            if ours.is_empty() {
                continue;
            }
            let theirs = theirs
                .get(section)
                .unwrap_or_else(|| panic!("{name}: {section}"));
            assert_eq!(ours, lines(theirs), "{name}: {section}");
            sections += 1;
            compared += ours.len();
        }
        let plain = |(section, list): &(&String, &Value)| {
            !section.starts_with(".nv.merc") && !list.as_array().expect("a list").is_empty()
        };
        assert_eq!(sections, theirs.iter().filter(plain).count(), "{name}");
    });
    assert!(compared > 1000, "{compared}");
}

/// A record as the tool prints it, as far as it prints numbers.
fn attribute_line(record: &Record<'_>, name: &str) -> [String; 3] {
    let words = || {
        let words: Vec<_> = record
            .value
            .words()
            .map(|word| format!("{word:#x}"))
            .collect();
        words.join(" ")
    };
    let (form, value) = match record.value {
        Payload::None(_) => ("EIFMT_NVAL", String::new()),
        Payload::Byte(value) => ("EIFMT_BVAL", format!("{value:#x}")),
        Payload::Half(value) if name.contains("MERCURY_ISA") => {
            ("EIFMT_HVAL", format!("{}.{}", value >> 8, value & 0xff))
        }
        Payload::Half(value) => ("EIFMT_HVAL", format!("{value:#x}")),
        // The tool prints this one as a table of its own.
        Payload::Bytes(_) if name == "EIATTR_MBARRIER_INSTR_OFFSETS" => {
            ("EIFMT_SVAL", String::new())
        }
        Payload::Bytes(_) if name == "EIATTR_LANGUAGE" && record.value.number() == Some(3) => {
            ("EIFMT_SVAL", "Language:  PTX".to_owned())
        }
        Payload::Bytes(_) => match Param::of(record) {
            Some(param) => (
                "EIFMT_SVAL",
                format!("{:#x} {:#x} {:#x}", param.ordinal, param.offset, param.size),
            ),
            None => ("EIFMT_SVAL", words()),
        },
    };
    [name.to_owned(), form.to_owned(), value]
}

#[test]
fn attributes() {
    let (mut compared, mut unnamed) = (0, 0);
    each(|name, cubin, says| {
        for (section, theirs) in says["attributes"].as_object().expect("attributes") {
            let section = cubin
                .section_by_name(section)
                .unwrap_or_else(|| panic!("{name}: {section}"));
            let compat = section.name() == ".nv.compat";
            let theirs = theirs.as_array().expect("a list");
            let mut records = section.records();
            for theirs in theirs {
                let record = records.next().expect("as many records").expect(name);
                let named = if compat {
                    record.compat().to_string()
                } else {
                    record.attribute().to_string()
                };
                let ours = attribute_line(&record, &named);
                let theirs: Vec<_> = theirs
                    .as_array()
                    .expect("three")
                    .iter()
                    .map(|x| x.as_str().expect("text"))
                    .collect();
                // Files of CUDA 13.5 hold attributes that the tool of 13.2 has no names for.
                if matches!(theirs[0], "unknown Attribute" | "EICOMPAT_ATTR_ERROR_LAST") {
                    assert!(name.starts_with("13.5/"), "{name}: {ours:?}");
                    assert_eq!(ours[1..], theirs[1..], "{name}: {}", section.name());
                    unnamed += 1;
                } else {
                    assert_eq!(ours[..], theirs[..], "{name}: {}", section.name());
                }
                compared += 1;
            }
            assert!(records.next().is_none(), "{name}: {}", section.name());
        }
    });
    assert!(compared > 5000, "{compared}");
    assert!(unnamed < compared / 20, "{unnamed} of {compared}");
}

fn usage(kernel: &Kernel<'_>, cubin: &Cubin<'_>) -> BTreeMap<String, u64> {
    // The tool counts reserved shared memory where the section does.
    let section = cubin.section_by_name(&format!(".nv.shared.{}", kernel.name));
    let in_section = cubin.sm().0 >= 90 && section.is_some();
    let shared = kernel.shared
        + if in_section {
            kernel.shared_reserved
        } else {
            0
        };
    let mut usage = BTreeMap::from([
        ("REG".to_owned(), kernel.registers.into()),
        ("SHARED".to_owned(), shared.into()),
    ]);
    if let Some(stack) = kernel.stack.min {
        usage.insert("STACK".to_owned(), stack.into());
    }
    for (number, bank) in kernel.banks.iter().enumerate() {
        let own = bank.filter(|bank| {
            cubin
                .section(bank.section)
                .is_some_and(|section| section.name().ends_with(kernel.name))
        });
        if let Some(bank) = own {
            usage.insert(format!("CONSTANT[{number}]"), bank.size);
        }
    }
    usage
}

#[test]
fn resource_use() {
    let mut compared = 0;
    each(|name, cubin, says| {
        for kernel in cubin
            .kernels()
            .unwrap_or_else(|error| panic!("{name}: {error}"))
        {
            let theirs = says["usage"][kernel.name].as_object();
            let theirs = theirs.unwrap_or_else(|| panic!("{name}: {}", kernel.name));
            let known = ["REG", "SHARED", "STACK"];
            let theirs: BTreeMap<_, _> = theirs
                .iter()
                .filter(|(key, _)| known.contains(&key.as_str()) || key.starts_with("CONSTANT"))
                .map(|(key, value)| (key.clone(), value.as_u64().expect("a number")))
                .collect();
            assert_eq!(usage(&kernel, cubin), theirs, "{name}: {}", kernel.name);
            compared += 1;
        }
    });
    assert!(compared >= 500, "{compared} kernels");
}

#[test]
fn barriers() {
    let mut compared = 0;
    each(|name, cubin, says| {
        for kernel in cubin.kernels().expect(name) {
            let theirs = says["barriers"]
                .get(kernel.name)
                .map_or(0, |count| count.as_u64().expect("a count"));
            if cubin.abi_version() == 7 {
                assert_eq!(
                    u64::from(kernel.barriers),
                    theirs,
                    "{name}: {}",
                    kernel.name
                );
            } else {
                let info = format!(".nv.info.{}", kernel.name);
                let listed = says["attributes"][&info].as_array().expect("attributes");
                let count = listed
                    .iter()
                    .find(|record| record[0] == "EIATTR_NUM_BARRIERS");
                let count = count.map_or("0x0", |record| record[2].as_str().expect("a value"));
                assert_eq!(
                    format!("{:#x}", kernel.barriers),
                    count,
                    "{name}: {}",
                    kernel.name
                );
            }
            compared += usize::from(kernel.barriers > 0);
        }
    });
    assert!(compared >= 50, "{compared}");
}

#[test]
fn one_kernel_alone_is_what_it_is_among_all() {
    each(|name, cubin, _| {
        for kernel in cubin.kernels().expect(name) {
            assert_eq!(cubin.kernel(kernel.name), Ok(kernel), "{name}");
        }
    });
}

#[test]
fn spills_and_indirect_branches() {
    let file = nv_tests::bytes("cubins/corpus/13.0/sm_86/spills.cubin");
    let cubin = Cubin::parse(&file).expect("a cubin");
    let kernel = cubin.kernel("spills").expect("a kernel");
    // As cuobjdump lists them in the golden file, which `attributes` compares word by word.
    let golden = &golden().files["13.0/sm_86/spills.cubin"]["attributes"][".nv.info.spills"];
    let listed = golden
        .as_array()
        .expect("a list")
        .iter()
        .find(|record| record[0] == "EIATTR_ANNOTATIONS");
    let listed = listed.expect("annotations")[2]
        .as_str()
        .expect("words")
        .replace("0x1 ", "");
    let ours: Vec<_> = kernel
        .spills()
        .map(|offset| format!("{offset:#x}"))
        .collect();
    assert_eq!(ours.join(" "), listed);
    assert_eq!((kernel.registers, kernel.stack.min), (24, Some(64)));

    for (sm, offset, targets) in [
        ("sm_75", 0xb0, [0xc0, 0xf0, 0x130, 0x150, 0x170]),
        ("sm_90", 0x60, [0x70, 0xc0, 0x110, 0x140, 0x170]),
    ] {
        let file = nv_tests::bytes(&format!("cubins/corpus/13.0/{sm}/branches.cubin"));
        let cubin = Cubin::parse(&file).expect("a cubin");
        let kernel = cubin.kernel("branches").expect("a kernel");
        let branches: Vec<_> = kernel.indirect_branches().collect();
        assert_eq!(branches.len(), 1, "{sm}");
        assert_eq!(branches[0].offset, offset, "{sm}");
        assert_eq!(branches[0].targets().collect::<Vec<_>>(), targets, "{sm}");
        assert_eq!(kernel.spills().count(), 0, "{sm}");
    }
}
