//! Images: where variables lie, and that what starts as zero has storage of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use nv_proto::cubin::{Cubin, Layout, Role, Sections};

/// `(file, variable, section, size)`: sizes as the sources declare them.
const VARIABLES: [(&str, &str, &str, u64); 8] = [
    (
        "13.5/sm_107/global_init.cubin",
        "g_init",
        ".nv.global.init",
        28,
    ),
    ("13.5/sm_107/global_init.cubin", "g_bss", ".nv.global", 400),
    (
        "13.5/sm_107/global_init.cubin",
        "g_one",
        ".nv.global.init",
        8,
    ),
    (
        "12.9/sm_75/global_init.cubin",
        "g_init",
        ".nv.global.init",
        28,
    ),
    ("12.9/sm_75/global_init.cubin", "g_bss", ".nv.global", 400),
    ("12.9/sm_75/global_init.cubin", "cops", ".nv.constant3", 16),
    ("11.8/sm_75/const_bank.cubin", "coef", ".nv.constant3", 256),
    (
        "11.8/sm_75/const_bank.cubin",
        "table_init",
        ".nv.constant3",
        20,
    ),
];

#[test]
fn variables_are_found_by_name() {
    for (name, variable, section, size) in VARIABLES {
        let file = nv_tests::bytes(&format!("cubins/corpus/{name}"));
        let cubin = Cubin::parse(&file).expect(name);
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).expect(name);
        let (offset, found) = plan
            .variable(variable)
            .unwrap_or_else(|| panic!("{name}: {variable}"));
        assert_eq!(found, size, "{name}: {variable}");
        let home = cubin.section_by_name(section).expect(section);
        let start = plan.section(home.index()).expect("a place");
        assert!(
            offset >= start && offset + size <= start + home.size(),
            "{name}: {variable}"
        );
        // What starts as zero lies behind all contents, and is no part of what is uploaded.
        assert_eq!(
            offset >= plan.data_size(),
            home.role() == Role::Global,
            "{name}: {variable}"
        );
        assert!(offset + size <= plan.size(), "{name}: {variable}");
        // A kernel or a section is no variable.
        assert_eq!(plan.variable(section), None, "{name}");
        let kernel = cubin.kernel_symbols().next().expect("a kernel");
        assert_eq!(plan.variable(kernel.name()), None, "{name}");
    }
}

#[test]
fn initial_values_are_in_the_image() {
    let file = nv_tests::bytes("cubins/corpus/12.9/sm_75/global_init.cubin");
    let cubin = Cubin::parse(&file).expect("a cubin");
    let mut places = vec![0; cubin.section_count()];
    let plan = cubin.plan(Layout::default(), &mut places).expect("a plan");
    let mut image = vec![0xa5; usize::try_from(plan.size()).expect("a small image")];
    plan.place_into(&mut image).expect("an image");
    let at = |name: &str| {
        let (offset, size) = plan.variable(name).expect(name);
        let offset = usize::try_from(offset).expect("a small offset");
        &image[offset..offset + usize::try_from(size).expect("a small size")]
    };
    let words: Vec<u8> = [10u32, 20, 30, 40, 50, 60, 70]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    assert_eq!(at("g_init"), words);
    assert_eq!(at("g_one"), 2.5f64.to_le_bytes());
    assert!(at("g_bss").iter().all(|byte| *byte == 0));
}

/// The layout is a pure function of the file: sections in the file's order, each aligned, none over another; an image
/// of all sections differs only in having more of them.
#[test]
fn layouts() {
    let file = nv_tests::bytes("cubins/corpus/13.5/sm_107/global_init.cubin");
    let cubin = Cubin::parse(&file).expect("a cubin");
    for (section_align, sections) in [
        (1, Sections::Loaded),
        (128, Sections::Loaded),
        (4096, Sections::Loaded),
        (256, Sections::All),
    ] {
        let mut places = vec![7; cubin.section_count() + 3];
        let plan = cubin
            .plan(
                Layout {
                    section_align,
                    sections,
                },
                &mut places,
            )
            .expect("a plan");
        let mut ends = [0, plan.data_size()];
        let mut placed = 0;
        for section in cubin.sections() {
            let Some(place) = plan.section(section.index()) else {
                assert!(!section.is_loaded(), "{}", section.name());
                continue;
            };
            let end = &mut ends[usize::from(section.kind().is_nobits())];
            assert!(place >= *end, "{}", section.name());
            assert_eq!(
                place % section.alignment().max(section_align),
                0,
                "{}",
                section.name()
            );
            *end = place + section.size();
            placed += 1;
        }
        assert_eq!(ends[1], plan.size());
        assert!(plan.align() >= section_align.max(128));
        assert!(placed > 8);
    }
    for section_align in [0, 3, 1 << 20] {
        let layout = Layout {
            section_align,
            sections: Sections::Loaded,
        };
        assert!(
            cubin
                .plan(layout, &mut vec![0; cubin.section_count()])
                .is_err(),
            "{section_align}"
        );
    }
}
