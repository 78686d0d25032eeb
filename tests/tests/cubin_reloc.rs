//! Relocations: fields against the toolkit's own table, its linker and its disassembler; and that nothing else
//! changes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod cubin_support;

use std::collections::BTreeSet;

use cubin_support::{Draft, load};
use nv_proto::cubin::{Cubin, Error, ImagePlan, Layout, RelocationType, Role, SymbolSection};
use nv_proto::unit::GpuVa;
use proptest::prelude::*;

/// An address whose every byte is another.
const BASE: u64 = 0x7f12_3456_7000;

/// `.nv.rel.action` tells old drivers of relocation types newer than they are: 8 bytes a type, from a base type on.
/// Byte 0 is what the value is (0 address, 1 generic address, 2 function descriptor, 3 header index), byte 1 its
/// alignment in bits, bytes 2 to 4 and 5 to 7 two pieces: from, width, at.
#[test]
fn fields_are_those_of_the_toolkits_own_table() {
    let mut seen = BTreeSet::new();
    for name in [
        "11.8/sm_75/vecadd.cubin",
        "11.8/sm_86/vecadd.cubin",
        "13.0/sm_86/vecadd.cubin",
        "13.5/sm_75/vecadd.cubin",
    ] {
        let file = nv_tests::bytes(&format!("cubins/corpus/{name}"));
        let cubin = Cubin::parse(&file).expect(name);
        let section = cubin.section_by_name(".nv.rel.action").expect(name);
        let (rows, rest) = section.data().as_chunks::<8>();
        assert!(rest.is_empty());
        let (head, rows) = rows.split_first().expect("a head");
        for (kind, row) in (u32::from(head[0])..).zip(rows) {
            let kind = RelocationType(kind);
            let [what, _, pieces @ ..] = row;
            if *what > 1 {
                assert_eq!(kind.pieces(), [None, None], "{kind} is refused");
                continue;
            }
            let theirs: Vec<_> = pieces
                .as_chunks::<3>()
                .0
                .iter()
                .filter(|piece| piece[1] > 0)
                .collect();
            let ours = kind.pieces();
            let ours: Vec<_> = ours
                .iter()
                .flatten()
                .map(|piece| [piece.from, piece.width, piece.at])
                .collect();
            assert_eq!(ours.iter().collect::<Vec<_>>(), theirs, "{kind}");
            seen.insert(kind.0);
        }
    }
    // ABS55_16_34, 8_0 to G8_56, ABS20_44, CONST_FIELD22_37.
    assert_eq!(seen.len(), 1 + 16 + 1 + 1, "{seen:?}");
}

/// What NVIDIA's disassembler of CUDA 13.2 prints as `CALL.ABS.NOINC 0x7f1234567108`, for `sm_86` and `sm_90`.
#[test]
fn call_targets_are_those_that_the_disassembler_prints() {
    for (kind, empty, full) in [
        (
            58,
            0x021f_ea00_03c0_0000_0000_0000_0000_7943,
            0x021f_ea00_03c0_7f12_3456_7108_0000_7943,
        ),
        (
            75,
            0x023f_ea00_03c0_0000_0000_0000_0000_7943,
            0x023f_ea00_03c0_007f_1234_5670_0042_7943,
        ),
    ] {
        let mut draft = Draft::kernel().relocation(1, kind, 2, 16, Some(0));
        draft.parts[0].data[16..32].copy_from_slice(&u128::to_le_bytes(empty));
        // `g` is 8 bytes into the section that follows the code, at 0x100.
        let image = load(&draft.build(), BASE).expect("an image");
        assert_eq!(image[16..32], u128::to_le_bytes(full), "type {kind}");
    }
}

/// The vendor's linker fills in the fields of constant banks; ours of the unlinked file must equal them.
#[test]
fn constant_bank_fields_are_those_that_the_vendors_linker_fills_in() {
    let mut compared = 0;
    for sm in ["sm_75", "sm_86", "sm_90", "sm_120"] {
        let object = nv_tests::bytes(&format!("cubins/reloc/fields.{sm}.o"));
        let linked = nv_tests::bytes(&format!("cubins/reloc/fields.{sm}.cubin"));
        let object = Cubin::parse(&object).expect(sm);
        let linked = Cubin::parse(&linked).expect(sm);
        let theirs = linked.section_by_name(".text.k").expect(sm).data();
        let mut places = vec![0; object.section_count()];
        let plan = object.plan(Layout::default(), &mut places).expect(sm);
        let mut image = vec![0xa5; usize::try_from(plan.data_size()).expect("a small image")];
        plan.place_into(&mut image).expect(sm);
        // Shared memory of an unlinked file has no address yet; all before that is applied.
        let error = plan
            .relocate(&mut image, GpuVa(BASE))
            .expect_err("shared memory is the linker's");
        assert!(
            matches!(error, Error::NoAddress { symbol: "sh", .. }),
            "{error}"
        );
        let text = object.section_by_name(".text.k").expect(sm);
        let start =
            usize::try_from(plan.section(text.index()).expect("a place")).expect("a small image");
        for relocations in object
            .relocation_sections()
            .map(|section| section.expect(sm))
        {
            for relocation in relocations
                .iter()
                .filter(|_| relocations.target().index() == text.index())
            {
                if !matches!(relocation.kind.0, 59 | 64 | 66 | 115) {
                    continue;
                }
                let at = usize::try_from(relocation.offset).expect("a small offset");
                assert_eq!(
                    image[start + at..][..16],
                    theirs[at..][..16],
                    "{sm} {}",
                    relocation.kind
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 12);
}

fn placed<'a, 's>(cubin: &Cubin<'a>, places: &'s mut Vec<u64>) -> ImagePlan<'a, 's> {
    places.resize(cubin.section_count(), 0);
    cubin.plan(Layout::default(), places).expect("a plan")
}

/// Every relocation of every file of the corpus that loads: relocating changes its own bits alone, and to the value
/// of its symbol.
#[test]
fn relocation_writes_only_its_own_bits() {
    let (mut files, mut fields) = (0, 0);
    for name in corpus() {
        let file = nv_tests::bytes(&name);
        let cubin = Cubin::parse(&file).expect(&name);
        let mut places = Vec::new();
        let plan = placed(&cubin, &mut places);
        let mut image = vec![0xa5; usize::try_from(plan.size()).expect("a small image")];
        plan.place_into(&mut image).expect(&name);
        let before = image.clone();
        if plan.relocate(&mut image, GpuVa(BASE)).is_err() {
            continue;
        }
        files += 1;
        let mut allowed = vec![0u8; image.len()];
        for relocations in cubin
            .relocation_sections()
            .map(|section| section.expect(&name))
        {
            let Some(place) = plan.section(relocations.target().index()) else {
                continue;
            };
            for relocation in relocations.iter() {
                let at = usize::try_from(place + relocation.offset).expect("a small image");
                for piece in relocation.kind.pieces().into_iter().flatten() {
                    for bit in piece.at..piece.at + piece.width {
                        allowed[at + usize::from(bit / 8)] |= 1 << (bit % 8);
                    }
                    let symbol = cubin.symbol(relocation.symbol).expect("a symbol");
                    let SymbolSection::In(home) = symbol.section() else {
                        panic!("{name}: {}", symbol.name())
                    };
                    if matches!(
                        cubin.section(home).expect("a section").role(),
                        Role::Constant(..)
                    ) {
                        continue;
                    }
                    let value = BASE + plan.symbol(&symbol).expect("a place");
                    let value = value.wrapping_add(relocation.addend.unwrap_or(0).cast_unsigned());
                    let mut bytes = [0; 16];
                    let length = bytes.len().min(image.len() - at);
                    bytes[..length].copy_from_slice(&image[at..at + length]);
                    let mask = (1u128 << piece.width) - 1;
                    let stored = u128::from_le_bytes(bytes) >> piece.at & mask;
                    assert_eq!(
                        stored,
                        u128::from(value >> piece.from) & mask,
                        "{name}: {relocation:?}"
                    );
                    fields += 1;
                }
            }
        }
        for (at, (old, new)) in before.iter().zip(&image).enumerate() {
            assert_eq!((old ^ new) & !allowed[at], 0, "{name}: byte {at:#x}");
        }
        // And again for another address, from the same image.
        let other = BASE + 0x1_0000_0000;
        plan.relocate(&mut image, GpuVa(other)).expect(&name);
        let mut fresh = before.clone();
        plan.relocate(&mut fresh, GpuVa(other)).expect(&name);
        assert!(image == fresh, "{name}: relocated twice");
    }
    assert!(
        files > 150 && fields > 400,
        "{files} files, {fields} fields"
    );
}

fn corpus() -> Vec<String> {
    let golden = nv_tests::json("golden/cubin/vendor.json");
    let files = golden["files"].as_object().expect("files");
    let linked = ["75", "86", "90", "120"].map(|sm| format!("cubins/reloc/fields.sm_{sm}.cubin"));
    files
        .keys()
        .map(|name| format!("cubins/corpus/{name}"))
        .chain(linked)
        .collect()
}

#[test]
fn undefined_symbols_are_named_and_can_be_given() {
    let file = nv_tests::bytes("cubins/corpus/13.0/sm_120/printf.cubin");
    let cubin = Cubin::parse(&file).expect("a cubin");
    let mut places = Vec::new();
    let plan = placed(&cubin, &mut places);
    let mut image = vec![0xa5; usize::try_from(plan.size()).expect("a small image")];
    plan.place_into(&mut image).expect("an image");
    let error = plan
        .relocate(&mut image, GpuVa(BASE))
        .expect_err("vprintf is the driver's");
    let Error::Undefined {
        symbol: "vprintf",
        section,
        offset,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        plan.undefined()
            .map(|(symbol, _)| symbol.name())
            .collect::<BTreeSet<_>>(),
        ["vprintf"].into()
    );
    plan.relocate_with(&mut image, GpuVa(BASE), |symbol| {
        (symbol.name() == "vprintf").then_some(GpuVa(0x1122_3344_5566_7788))
    })
    .expect("all symbols are known");
    let section = cubin.section_by_name(section).expect("a section").index();
    let at =
        usize::try_from(plan.section(section).expect("a place") + offset).expect("a small image");
    assert_eq!(image[at..at + 8], 0x1122_3344_5566_7788u64.to_le_bytes());
}

#[test]
fn an_addend_in_the_field_counts_where_the_relocation_has_none() {
    let mut draft = Draft::kernel().relocation(4, 2, 2, 16, None);
    draft.parts[3].data[16..24].copy_from_slice(&0x1000u64.to_le_bytes());
    let image = load(&draft.build(), BASE).expect("an image");
    assert_eq!(image[0x110..0x118], (BASE + 0x108 + 0x1000).to_le_bytes());
    // With an addend of its own, what the field held does not count.
    let mut draft = Draft::kernel().relocation(4, 2, 2, 16, Some(-4));
    draft.parts[3].data[16..24].copy_from_slice(&0x1000u64.to_le_bytes());
    let image = load(&draft.build(), BASE).expect("an image");
    assert_eq!(image[0x110..0x118], (BASE + 0x108 - 4).to_le_bytes());
}

proptest! {
    /// Whatever the type, a relocation changes nothing outside its pieces, or is refused by name.
    #[test]
    fn any_type_writes_its_pieces_or_is_refused(kind in 0u32..140, content in any::<[u8; 64]>(), offset in 0u64..64) {
        let mut draft = Draft::kernel().relocation(1, kind, 2, offset, Some(0));
        draft.parts[0].data = content.to_vec();
        let file = draft.build();
        match load(&file, BASE) {
            Ok(image) => {
                let mut allowed = [0u8; 64 + 16];
                for piece in RelocationType(kind).pieces().into_iter().flatten() {
                    for bit in piece.at..piece.at + piece.width {
                        allowed[usize::try_from(offset).unwrap() + usize::from(bit / 8)] |= 1 << (bit % 8);
                    }
                }
                for at in 0..64 {
                    prop_assert_eq!((image[at] ^ content[at]) & !allowed[at], 0);
                }
            }
            Err(text) => prop_assert!(text.contains("relocation") && text.contains(".text.k"), "{}", text),
        }
    }
}
