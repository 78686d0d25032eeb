//! Images and launch facts against the reference system's own, byte for byte, over 68 real cubins.

use nv_proto::cubin::{Cubin, Layout, Sections};
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
    let mut compared = 0;
    for case in cases().iter().filter(|case| case["error"].is_null()) {
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name(case));
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(REFERENCE, &mut places).expect(name(case));
        let base = GpuVa(number(case, "lib_va"));

        let mut image = vec![0xa5; usize::try_from(plan.data_size()).expect("a small image")];
        plan.place_into(&mut image).expect(name(case));
        plan.relocate(&mut image, base).expect(name(case));

        let digest: String = Sha256::digest(&image)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            digest,
            case["image_sha256"].as_str().expect("a digest"),
            "{}",
            name(case)
        );

        let kernel = cubin
            .kernel(case["kernel"].as_str().expect("a kernel"))
            .expect(name(case));
        let entry = plan.entry(&kernel).expect(name(case));
        assert_eq!(base.0 + entry, number(case, "prog_addr"), "{}", name(case));
        assert_eq!(
            kernel.code_size,
            number(case, "prog_size"),
            "{}",
            name(case)
        );
        for (bank, place) in case["constant_banks"].as_object().expect("banks") {
            let number: usize = bank.parse().expect("a bank number");
            let ours =
                kernel.banks[number].unwrap_or_else(|| panic!("{}: bank {bank}", name(case)));
            assert_eq!(
                base.0 + plan.section(ours.section).expect("a place"),
                place[0],
                "{} bank {bank}",
                name(case)
            );
            assert_eq!(ours.size, place[1], "{} bank {bank}", name(case));
        }
        let banks = kernel.banks.iter().flatten().count();
        assert_eq!(
            banks,
            case["constant_banks"].as_object().expect("banks").len(),
            "{}",
            name(case)
        );
        compared += 1;
    }
    assert_eq!(compared, 62);
}

#[test]
fn launch_facts_equal_the_reference_but_for_shared_memory_from_sm_90_on() {
    let mut doubled = 0;
    for case in cases().iter().filter(|case| case["error"].is_null()) {
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name(case));
        let kernel = cubin
            .kernel(case["kernel"].as_str().expect("a kernel"))
            .expect(name(case));
        assert_eq!(
            u64::from(kernel.registers),
            number(case, "registers"),
            "{}",
            name(case)
        );
        // The reference adds 0x240 bytes of its own.
        let stack = u64::from(kernel.stack.min.expect("a known stack"));
        assert_eq!(stack + 0x240, number(case, "local_bytes"), "{}", name(case));

        let ours = u64::from(kernel.shared_total()).next_multiple_of(128);
        let theirs = number(case, "shared_bytes");
        if cubin.sm() >= SmVersion(90) && kernel.shared > 0 {
            // There the section holds the reserved kilobyte already, which the reference adds again.
            assert_eq!(ours + 1024, theirs, "{}", name(case));
            doubled += 1;
        } else {
            assert_eq!(ours, theirs, "{}", name(case));
        }
    }
    assert!(doubled > 0, "some kernel of sm_120 declares shared memory");
}

#[test]
fn what_the_reference_refuses_loads_with_its_pointers_right() {
    let mut loaded = 0;
    for case in cases().iter().filter(|case| !case["error"].is_null()) {
        let file = file(case);
        let cubin = Cubin::parse(&file).expect(name(case));
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin
            .plan(Layout::default(), &mut places)
            .expect(name(case));
        let base = 0x7_f654_3200_0000;
        let mut image = vec![0xa5; usize::try_from(plan.size()).expect("a small image")];
        plan.place_into(&mut image).expect(name(case));
        plan.relocate(&mut image, GpuVa(base)).expect(name(case));
        for section in cubin.relocation_sections() {
            let section = section.expect(name(case));
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
