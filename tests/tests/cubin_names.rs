//! Every number with a name has that name, and every other has none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use nv_proto::cubin::{AttributeKind, CompatKind, MERCURY_BASE, RelocationType, SectionType};

/// Compares one table over a range of numbers; how many of them have a name.
fn compare(
    table: &str,
    numbers: impl Iterator<Item = u32>,
    ours: impl Fn(u32) -> Option<&'static str>,
) -> usize {
    let golden = nv_tests::json("golden/cubin/names.json");
    let theirs = golden[table].as_object().expect("a table");
    let mut named = 0;
    for number in numbers {
        let name = theirs
            .get(&number.to_string())
            .map(|name| name.as_str().expect("a name"));
        assert_eq!(ours(number), name, "{table} {number:#x}");
        named += usize::from(name.is_some());
    }
    assert_eq!(named, theirs.len(), "{table}: all of them");
    named
}

#[test]
fn attributes() {
    let named = compare("eiattr", 0..256, |number| {
        AttributeKind(number.try_into().unwrap()).name()
    });
    assert_eq!(named, 110);
    assert_eq!(AttributeKind(0xee).to_string(), "EIATTR_0xee");
    let named = compare("eicompat", 0..256, |number| {
        CompatKind(number.try_into().unwrap()).name()
    });
    assert_eq!(named, 15);
    assert_eq!(CompatKind(13).to_string(), "EICOMPAT_ATTR_0x0d");
}

#[test]
fn relocations() {
    let numbers = (0..300).chain(MERCURY_BASE..MERCURY_BASE + 300);
    let named = compare("relocations", numbers, |number| {
        RelocationType(number).name()
    });
    assert_eq!(named, 116 + 64);
    assert_eq!(
        RelocationType(0x38).to_string(),
        "R_CUDA_ABS32_LO_32 (0x38)"
    );
    assert_eq!(RelocationType(0xc8).to_string(), "0xc8");
}

#[test]
fn section_types() {
    let named = compare("section_types", 0x7000_0000..0x7000_0100, |number| {
        SectionType(number).name()
    });
    assert!(named >= 35, "{named}");
    assert_eq!(SectionType(0x7000_0086).to_string(), "CUDA_COMPAT_INFO");
    assert_eq!(SectionType(0x7000_008b).to_string(), "0x7000008b");
    assert_eq!(SectionType(8).to_string(), "NOBITS");
}
