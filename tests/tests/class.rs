//! Class names and choices against `facts/classes.json`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

use nv_proto::class::{self, Generation, Role, select_classes};
use nv_proto::unit::ClassId;

const GENERATIONS: [(&str, Generation); 7] = [
    ("Turing", Generation::Turing),
    ("Ampere_GA100", Generation::AmpereGa100),
    ("Ampere_GA10x", Generation::AmpereGa10x),
    ("Ada", Generation::Ada),
    ("Hopper", Generation::Hopper),
    ("Blackwell_GB10x", Generation::BlackwellGb10x),
    ("Blackwell_GB20x", Generation::BlackwellGb20x),
];

const ROLES: [(&str, Role); 4] = [
    ("usermode", Role::Usermode),
    ("gpfifo", Role::Gpfifo),
    ("compute", Role::Compute),
    ("dma_copy", Role::Copy),
];

fn id(value: &serde_json::Value) -> ClassId {
    ClassId(u32::try_from(value.as_u64().unwrap()).unwrap())
}

#[test]
fn every_class_of_the_facts_has_its_name() {
    let facts = nv_tests::json("golden/facts/classes.json");
    let classes = facts["classes"].as_object().unwrap();
    assert!(classes.len() > 200);
    for (name, number) in classes {
        assert_eq!(class::by_name(name), Some(id(number)), "{name}");
        // Three numbers have two names; the one answered is the first.
        let answered = class::name(id(number)).unwrap();
        assert!(
            answered == name || id(&classes[answered]) == id(number),
            "{number} is {answered}, not {name}"
        );
    }
    assert!(class::NAMES.is_sorted());
    assert_eq!(class::name(ClassId(0xcbc0)), Some("HOPPER_COMPUTE_A"));
    assert_eq!(class::name(ClassId(0x40)), Some("NV01_MEMORY_LOCAL_USER"));
    assert_eq!(class::name(ClassId(0xcbc1)), None);
    assert_eq!(class::name(ClassId(u32::MAX)), None);
}

/// The constants bear the names that the facts give their numbers.
#[test]
fn constants_are_the_facts() {
    let facts = nv_tests::json("golden/facts/classes.json");
    for (name, generation) in GENERATIONS {
        for (role_name, role) in ROLES {
            let preferred = facts["preferred"][name][role_name].as_str().unwrap();
            // Two of them carry a remark in brackets.
            let preferred = preferred.split(' ').next().unwrap();
            assert_eq!(
                class::name(generation.class(role)),
                Some(preferred),
                "{name} {role_name}"
            );
            assert_eq!(generation.class(role).0 & 0xff, u32::from(role.low_byte()));
        }
        let qmd = facts["preferred"][name]["qmd"].as_str().unwrap();
        assert_eq!(format!("{:?}", generation.qmd()), qmd, "{name}");
        let compute = generation.class(Role::Compute);
        assert_eq!(
            nv_proto::qmd::Version::of_class(compute),
            Some(generation.qmd()),
            "{name}"
        );
        assert_eq!(
            Generation::of_compute(generation.class(Role::Compute)),
            Some(generation)
        );
    }
    assert_eq!(
        GENERATIONS.map(|(_, generation)| generation),
        Generation::ALL
    );
}

/// What each chip of each driver branch lists gives the classes preferred for its generation.
#[test]
fn every_chip_gets_its_generations_classes() {
    let facts = nv_tests::json("golden/facts/classes.json");
    let mut chips = 0;
    for (branch, listed) in facts["per_branch_chips"].as_object().unwrap() {
        for (chip, names) in listed.as_object().unwrap() {
            let listed: Vec<ClassId> = names
                .as_object()
                .unwrap()
                .keys()
                .map(|name| class::by_name(name).unwrap_or_else(|| panic!("{name}")))
                .collect();
            let expected = match chip.get(..4).unwrap() {
                "TU10" | "TU11" => Generation::Turing,
                "GA10" if chip == "GA100" => Generation::AmpereGa100,
                "GA10" => Generation::AmpereGa10x,
                "AD10" => Generation::Ada,
                "GH10" => Generation::Hopper,
                "GB10" | "GB11" => Generation::BlackwellGb10x,
                "GB20" => Generation::BlackwellGb20x,
                _ => continue,
            };
            let set = select_classes(&listed).unwrap_or_else(|e| panic!("{branch} {chip}: {e}"));
            assert_eq!(set.generation, expected, "{branch} {chip}");
            for role in Role::ALL {
                assert_eq!(
                    set.class(role),
                    expected.class(role),
                    "{branch} {chip} {role}"
                );
            }
            chips += 1;
        }
    }
    assert!(chips > 100, "only {chips} chips");
}

#[test]
fn an_older_channel_class_does_where_the_best_is_not_listed() {
    let set = select_classes(&[
        class::BLACKWELL_COMPUTE_B,
        class::TURING_USERMODE_A,
        class::AMPERE_CHANNEL_GPFIFO_A,
        class::TURING_CHANNEL_GPFIFO_A,
        class::BLACKWELL_DMA_COPY_B,
    ])
    .unwrap();
    assert_eq!(set.usermode, class::TURING_USERMODE_A);
    assert_eq!(set.gpfifo, class::AMPERE_CHANNEL_GPFIFO_A);
}

#[test]
fn an_unknown_gpu_is_refused_with_what_it_lists() {
    // A successor of Blackwell that this crate does not know, and Volta, which it does not support.
    let next = select_classes(&[ClassId(0xcfc0), class::HOPPER_USERMODE_A]).unwrap_err();
    assert_eq!(next.role, Role::Compute);
    assert_eq!(next.found.as_slice(), [ClassId(0xcfc0)]);
    assert_eq!(next.nearest, Some(Generation::BlackwellGb20x));
    assert_eq!(
        next.to_string(),
        "the GPU offers no compute class that is known here: it lists 0xcfc0; the nearest generation \
         known is Blackwell (GB20x)"
    );
    let volta = select_classes(&[class::VOLTA_COMPUTE_A]).unwrap_err();
    assert_eq!(volta.nearest, Some(Generation::Turing));
    assert!(
        volta.to_string().contains("0xc3c0 (VOLTA_COMPUTE_A)"),
        "{volta}"
    );

    let none = select_classes(&[class::ADA_COMPUTE_A, class::AMPERE_USERMODE_A]).unwrap_err();
    assert_eq!(
        (none.role, none.found.len(), none.nearest),
        (Role::Gpfifo, 0, None)
    );
    assert!(none.to_string().contains("none at all"), "{none}");

    // More than the error can hold: the first stay.
    let many: Vec<ClassId> = (0..100).map(|n| ClassId(0x1_00c0 + n * 0x100)).collect();
    assert_eq!(
        select_classes(&many).unwrap_err().found.as_slice(),
        &many[..8]
    );
    assert!(select_classes(&[]).is_err());
}
