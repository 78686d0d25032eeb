//! The chips' class lists against the kernel driver's tables.

use std::collections::BTreeSet;

use nv_sim::Chip;

#[test]
fn classes_are_those_of_the_drivers_tables() {
    let facts = nv_tests::json("golden/facts/classes.json");
    let generic: BTreeSet<u32> = facts["generic_classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| facts["classes"][name.as_str().unwrap()].as_u64().unwrap() as u32)
        .collect();
    for (chip, generation) in [
        (Chip::Ga100, "Ampere_GA100"),
        (Chip::Ga102, "Ampere_GA10x"),
        (Chip::Ad102, "Ada"),
        (Chip::Gh100, "Hopper"),
        (Chip::Gb202, "Blackwell_GB20x"),
    ] {
        let table = facts["generations"][generation].as_object().unwrap();
        assert_eq!(
            table["chip"].as_str().unwrap().to_lowercase(),
            chip.code_name()
        );
        let mut expected = generic.clone();
        for engine in table.values().filter_map(|value| value.as_object()) {
            expected.extend(engine.values().map(|id| id.as_u64().unwrap() as u32));
        }
        let mut offered: BTreeSet<u32> = chip.classes().iter().map(|class| class.0).collect();
        // Address spaces and channel groups: what every chip has, beyond the tables read.
        assert!(offered.remove(&0x90f1) && offered.remove(&0xa06c));
        assert_eq!(offered, expected, "{chip}");
        let preferred = &facts["preferred"][generation];
        let id = |name: &str| facts["classes"][preferred[name].as_str().unwrap()].as_u64();
        assert_eq!(id("compute"), Some(chip.compute_class().0.into()));
        assert_eq!(id("dma_copy"), Some(chip.copy_class().0.into()));
        let qmd = preferred["qmd"].as_str().unwrap();
        assert_eq!(qmd[1..3].parse(), Ok(chip.qmd_major()));
    }
}
