//! Images and launch facts against the reference system's own, byte for byte, over 68 real cubins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use nv_proto::cubin::{Cubin, ImagePlan, Layout, PREFETCH_SLACK, Role, Sections, SymbolSection};
use nv_proto::unit::{GpuVa, SmVersion};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The reference lays out every section that has contents, at multiples of 128.
const REFERENCE: Layout = Layout {
    section_align: 128,
    sections: Sections::All,
};

fn cases() -> Vec<Value> {
    let golden = nv_tests::json("golden/cubin/seed.json");
    golden["cases"].as_array().expect("cases").clone()
}

fn name(case: &Value) -> &str {
    case["cubin"].as_str().expect("a file name")
}

fn file(case: &Value) -> Vec<u8> {
    nv_tests::bytes(&format!("cubins/seed/{}", name(case)))
}

fn number(case: &Value, key: &str) -> u64 {
    case[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{}: {key}", name(case)))
}

#[test]
fn images_equal_the_reference_after_relocation() {
    let (mut compared, mut without_storage) = (0, 0);
    for case in cases().iter().filter(|case| case["error"].is_null()) {
        let name = name(case);
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name);
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(REFERENCE, &mut places).expect(name);
        let base = GpuVa(number(case, "lib_va"));

        // The digest is of the whole allocation, which is zero after the image.
        let mut image =
            vec![0xa5; usize::try_from(number(case, "lib_size")).expect("a small image")];
        assert!(
            plan.data_size() + PREFETCH_SLACK <= number(case, "lib_size"),
            "{}",
            name
        );
        plan.place_into(&mut image).expect(name);
        plan.relocate(&mut image, base).expect(name);

        without_storage += undo_storage(&cubin, &plan, base, &mut image);
        let digest: String = Sha256::digest(&image)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            digest,
            case["image_sha256"].as_str().expect("a digest"),
            "{}",
            name
        );

        let kernel = cubin
            .kernel(case["kernel"].as_str().expect("a kernel"))
            .expect(name);
        let entry = plan.entry(&kernel).expect(name);
        assert_eq!(base.0 + entry, number(case, "prog_addr"), "{}", name);
        assert_eq!(kernel.code_size, number(case, "prog_size"), "{}", name);
        for (bank, place) in case["constant_banks"].as_object().expect("banks") {
            let number: usize = bank.parse().expect("a bank number");
            let ours = kernel.banks[number].unwrap_or_else(|| panic!("{}: bank {bank}", name));
            assert_eq!(
                base.0 + plan.section(ours.section).expect("a place"),
                place[0],
                "{} bank {bank}",
                name
            );
            assert_eq!(ours.size, place[1], "{} bank {bank}", name);
        }
        let banks = kernel.banks.iter().flatten().count();
        assert_eq!(
            banks,
            case["constant_banks"].as_object().expect("banks").len(),
            "{}",
            name
        );
        compared += 1;
    }
    assert_eq!(compared, 62);
    assert!(
        without_storage > 0,
        "some file has variables that start as zero"
    );
}

/// The reference gives `.nv.global` no storage, so that pointers into it point at the image's start: writes such
/// pointers in place of right ones, and says how many.
fn undo_storage(
    cubin: &Cubin<'_>,
    plan: &ImagePlan<'_, '_>,
    base: GpuVa,
    image: &mut [u8],
) -> usize {
    let mut undone = 0;
    for relocations in cubin.relocation_sections() {
        let relocations = relocations.expect("relocations");
        for relocation in relocations.iter() {
            let symbol = cubin.symbol(relocation.symbol).expect("a symbol");
            let SymbolSection::In(section) = symbol.section() else {
                panic!("{}", symbol.name())
            };
            if cubin.section(section).expect("a section").role() != Role::Global {
                continue;
            }
            let place =
                plan.section(relocations.target().index()).expect("a place") + relocation.offset;
            let at = usize::try_from(place).expect("a small image");
            let right = base.0 + plan.symbol(&symbol).expect("zeroed storage");
            let wrong = base.0 + symbol.value();
            assert!(
                right >= base.0 + plan.data_size(),
                "storage lies after the contents"
            );
            assert!(
                right + symbol.size() <= base.0 + plan.size(),
                "and inside the image"
            );
            let (range, right, wrong) = match relocation.kind.0 {
                2 => (at..at + 8, right, wrong),
                56 => (at + 4..at + 8, right & 0xffff_ffff, wrong & 0xffff_ffff),
                57 => (at + 4..at + 8, right >> 32, wrong >> 32),
                other => panic!("relocation type {other}"),
            };
            let length = range.len();
            assert_eq!(
                image[range.clone()],
                right.to_le_bytes()[..length],
                "{}",
                symbol.name()
            );
            image[range].copy_from_slice(&wrong.to_le_bytes()[..length]);
            undone += 1;
        }
    }
    undone
}

#[test]
fn launch_facts_equal_the_reference_but_for_shared_memory_from_sm_90_on() {
    let mut doubled = 0;
    for case in cases().iter().filter(|case| case["error"].is_null()) {
        let name = name(case);
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name);
        let kernel = cubin
            .kernel(case["kernel"].as_str().expect("a kernel"))
            .expect(name);
        assert_eq!(
            u64::from(kernel.registers),
            number(case, "registers"),
            "{}",
            name
        );
        // The reference adds 0x240 bytes of its own.
        let stack = u64::from(kernel.stack.min.expect("a known stack"));
        assert_eq!(stack + 0x240, number(case, "local_bytes"), "{}", name);

        let ours = u64::from(kernel.shared_total()).next_multiple_of(128);
        let theirs = number(case, "shared_bytes");
        if cubin.sm() >= SmVersion(90) && kernel.shared > 0 {
            // There the section holds the reserved kilobyte already, which the reference adds again.
            assert_eq!(ours + 1024, theirs, "{}", name);
            doubled += 1;
        } else {
            assert_eq!(ours, theirs, "{}", name);
        }
    }
    assert!(doubled > 0, "some kernel of sm_120 declares shared memory");
}

#[test]
fn what_the_reference_refuses_loads_with_its_pointers_right() {
    let mut loaded = 0;
    for case in cases().iter().filter(|case| !case["error"].is_null()) {
        let name = name(case);
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name);
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).expect(name);
        let base = 0x7_f654_3200_0000;
        let mut image = vec![0xa5; usize::try_from(plan.size()).expect("a small image")];
        plan.place_into(&mut image).expect(name);
        plan.relocate(&mut image, GpuVa(base)).expect(name);
        for section in cubin.relocation_sections() {
            let section = section.expect(name);
            for relocation in section.iter().filter(|relocation| relocation.kind.0 == 4) {
                let symbol = cubin.symbol(relocation.symbol).expect("a symbol");
                let place =
                    plan.section(section.target().index()).expect("a place") + relocation.offset;
                let at = usize::try_from(place).expect("a small image");
                let stored = u64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes"));
                let addend = relocation.addend.unwrap_or(0).cast_unsigned();
                assert_eq!(
                    stored,
                    base + plan.symbol(&symbol).expect("a place") + addend,
                    "{}",
                    symbol.name()
                );
                loaded += 1;
            }
        }
    }
    assert!(loaded >= 6, "{loaded} pointers");
}
