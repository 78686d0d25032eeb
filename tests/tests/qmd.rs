//! Launch descriptors against the facts of the headers: every field, every bit, every name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use nv_proto::EncodeError;
use nv_proto::qmd::value::{
    DependentQmdAction, QmdType, ReductionOp, ReleaseMembarType, SemaphoreStructureSize,
};
use nv_proto::qmd::{
    Dependent, Qmd, Reduction, Release, ReleaseSize, V03_00, V04_00, V05_00, Version, v03_00,
    v04_00, v05_00,
};
use nv_proto::unit::{ClassId, Dim3, GpuVa};
use nv_tests::qmd_gen::{self, FieldFacts};
use proptest::prelude::*;

/// The version that a name such as `V04_00` of the facts is.
fn version(name: &str) -> Version {
    let found = Version::ALL
        .into_iter()
        .find(|version| format!("{version:?}") == name);
    found.unwrap_or_else(|| panic!("{name} is not among the versions"))
}

fn bits(field: &FieldFacts, index: u32) -> (u32, u32) {
    let offset = index * field.array_stride_bits;
    (field.lo + offset, field.hi + offset)
}

#[test]
fn the_tables_are_what_the_generator_makes() {
    for (name, text) in qmd_gen::layouts() {
        let path = nv_tests::path("..").join(format!("nv-proto/src/qmd/{name}.rs"));
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            committed == text,
            "{}: run `cargo run -p nv-tests --bin gen_qmd`",
            path.display()
        );
    }
}

#[test]
fn no_field_is_missing_and_no_bit_is_wrong() {
    let facts = qmd_gen::facts();
    assert_eq!(facts.len(), Version::ALL.len());
    for (name, facts) in facts {
        let version = version(&name);
        assert_eq!(version.words(), facts.size_dwords as usize, "{name}");
        assert_eq!(
            u32::from(version.major()),
            facts.qmd_major_version,
            "{name}"
        );
        assert_eq!(
            u32::from(version.minor()),
            facts.qmd_minor_version,
            "{name}"
        );
        assert_eq!(version.fields().len(), facts.fields.len(), "{name}");
        for fact in &facts.fields {
            let field = version
                .field(&fact.name)
                .unwrap_or_else(|| panic!("{name} {}", fact.name));
            assert_eq!(field.count, fact.array_count, "{name} {}", fact.name);
            for index in 0..fact.array_count {
                let at = field.at(index).unwrap();
                let place = (u32::from(at.lo()), u32::from(at.hi()));
                assert_eq!(place, bits(fact, index), "{name} {}[{index}]", fact.name);
            }
            assert_eq!(field.at(fact.array_count), None, "{name} {}", fact.name);
            // Every value that the header names has its name, and no other number has one; flags that the
            // header leaves without names are called so, too.
            let named: Vec<(u32, &str)> = fact
                .values
                .iter()
                .map(|(name, value)| (*value, name.as_str()))
                .collect();
            if !named.is_empty() || fact.hi != fact.lo {
                let mut ours = field.names.to_vec();
                let mut theirs = named;
                ours.sort_unstable();
                theirs.sort_unstable();
                assert_eq!(ours, theirs, "{name} {}", fact.name);
            }
            let shift = match fact.name.rsplit_once("_SHIFTED") {
                Some((rest, shift)) if !rest.contains("_LOWER") && !rest.contains("_UPPER") => {
                    shift.parse().unwrap()
                }
                _ => 0,
            };
            assert_eq!(field.shift, shift, "{name} {}", fact.name);
        }
    }
}

#[test]
fn a_setter_touches_only_its_bits_and_refuses_what_is_too_wide() {
    for version in Version::ALL {
        for field in version.fields() {
            for index in 0..field.count {
                for start in [0, 0xffff_ffff, 0xa5a5_a5a5] {
                    let before = vec![start; version.words()];
                    let mut qmd = Qmd::decode_as(version, &before).unwrap();
                    let at = field.at(index).unwrap();
                    let value = 0x5a5a_5a5a & at.max();
                    qmd.set_field(field, index, value).unwrap();
                    let mut expected = before.clone();
                    for bit in 0..at.width() {
                        let place = usize::from(at.lo()) + bit as usize;
                        let word = &mut expected[place / 32];
                        *word &= !(1 << (place % 32));
                        *word |= (value >> bit & 1) << (place % 32);
                    }
                    let mut after = vec![0xa5a5_a5a5; version.words()];
                    qmd.encode_into(&mut after).unwrap();
                    assert_eq!(after, expected, "{version} {}[{index}]", field.name);
                    assert_eq!(qmd.field(field.name, index).unwrap().raw, value);
                    if at.width() < 32 {
                        let refused = qmd.set_field(field, index, at.max() + 1);
                        let (name, width, value) =
                            (field.name, at.width(), u64::from(at.max()) + 1);
                        assert_eq!(
                            refused,
                            Err(EncodeError::FieldOverflow {
                                field: name,
                                width,
                                value
                            })
                        );
                        qmd.encode_into(&mut after).unwrap();
                        assert_eq!(after, expected, "a refused value is not written");
                    }
                }
            }
            let refused = Qmd::new(version).set_field(field, field.count, 0);
            let (name, count) = (field.name, field.count);
            assert_eq!(
                refused,
                Err(EncodeError::IndexOutOfRange {
                    field: name,
                    count,
                    index: count
                })
            );
        }
    }
}

#[test]
fn typed_fields_speak_in_the_units_of_callers() {
    let mut qmd = Qmd::new(Version::V05_00);
    let mut fields = qmd.view_mut::<V05_00>().unwrap();
    fields
        .set(v05_00::SHARED_MEMORY_SIZE_SHIFTED7, 0x480)
        .unwrap();
    assert_eq!(fields.get(v05_00::SHARED_MEMORY_SIZE_SHIFTED7), 0x480);
    assert_eq!(
        fields.set(v05_00::SHARED_MEMORY_SIZE_SHIFTED7, 0x4c0).err(),
        Some(EncodeError::Misaligned {
            field: "SHARED_MEMORY_SIZE_SHIFTED7",
            unit: 128,
            value: 0x4c0
        })
    );
    fields
        .set_wide(v05_00::PROGRAM_ADDRESS, 0x7f35_eb7a_0b00)
        .unwrap();
    fields.set(v05_00::QMD_TYPE, QmdType::GRID_CTA).unwrap();
    fields
        .set(
            v05_00::CONSTANT_BUFFER_SIZE_SHIFTED4.at(7).unwrap(),
            0x1_0000,
        )
        .unwrap();
    let raw = |name, index| qmd.field(name, index).unwrap().raw;
    assert_eq!(raw("SHARED_MEMORY_SIZE_SHIFTED7", 0), 9);
    assert_eq!(raw("PROGRAM_ADDRESS_LOWER_SHIFTED4", 0), 0x5eb7_a0b0);
    assert_eq!(raw("PROGRAM_ADDRESS_UPPER_SHIFTED4", 0), 0x7f3);
    assert_eq!(raw("QMD_TYPE", 0), 2);
    assert_eq!(raw("CONSTANT_BUFFER_SIZE_SHIFTED4", 7), 0x1000);
    assert_eq!(
        qmd.field("CONSTANT_BUFFER_SIZE_SHIFTED4", 7)
            .unwrap()
            .scaled(),
        0x1_0000
    );
    // Another version's view is not given.
    assert!(qmd.view::<V04_00>().is_none());
    assert!(v05_00::CONSTANT_BUFFER_SIZE_SHIFTED4.at(8).is_err());
}

#[test]
fn a_version_is_told_by_its_words() {
    for version in Version::ALL {
        let mut words = [0xa5a5_a5a5; 96];
        let qmd = Qmd::new(version);
        assert_eq!(qmd.encode_into(&mut words), Ok(version.words()));
        assert!(
            words[version.words()..]
                .iter()
                .all(|word| *word == 0xa5a5_a5a5)
        );
        assert_eq!(Qmd::decode(&words[..version.words()]), Ok(qmd));
        let short = &mut words[..version.words() - 1];
        assert!(matches!(
            qmd.encode_into(short),
            Err(EncodeError::BufferTooSmall { .. })
        ));
        assert!(Qmd::decode_as(version, short).is_err());
        let (major, minor) = match version.major() {
            5 => ("QMD_MAJOR_VERSION", "QMD_MINOR_VERSION"),
            4 => ("QMD_MAJOR_VERSION", "QMD_MINOR_VERSION"),
            _ => ("QMD_MAJOR_VERSION", "QMD_VERSION"),
        };
        assert_eq!(qmd.field(major, 0).unwrap().raw, u32::from(version.major()));
        assert_eq!(qmd.field(minor, 0).unwrap().raw, u32::from(version.minor()));
    }
    assert!(Qmd::decode(&[0; 96]).is_err(), "no version");
    assert!(Qmd::decode(&[0; 63]).is_err(), "too short");
    let mut both = [0; 96];
    both[18] = 0x40;
    both[14] = 0x50 << 16;
    assert!(Qmd::decode(&both).is_err(), "two versions claim it");
    assert_eq!(
        Qmd::decode_as(Version::V05_00, &both).unwrap().version(),
        Version::V05_00
    );
    for (class, version) in [
        (0xc5c0, Some(Version::V02_03)),
        (0xc6c0, Some(Version::V03_00)),
        (0xc7c0, Some(Version::V03_00)),
        (0xc9c0, Some(Version::V03_00)),
        (0xcbc0, Some(Version::V04_00)),
        (0xcdc0, Some(Version::V05_00)),
        (0xcec0, Some(Version::V05_00)),
        (0xc56f, None),
    ] {
        assert_eq!(Version::of_class(ClassId(class)), version, "{class:#x}");
    }
}

#[test]
fn printing_names_each_field_once() {
    let mut qmd = Qmd::new(Version::V05_00);
    let next = Dependent::schedule(GpuVa(0x2_0411_3800));
    qmd.set_dependent(1, Some(next)).unwrap();
    qmd.set_bank(3, GpuVa(0x7f35_e3e0_0000), 800).unwrap();
    assert_eq!(
        qmd.to_string(),
        "QMD 5.0\n  \
         DEPENDENT_QMD1_ENABLE = TRUE\n  \
         DEPENDENT_QMD1_ACTION = QMD_SCHEDULE\n  \
         DEPENDENT_QMD1_PREFETCH = TRUE\n  \
         DEPENDENT_QMD1_POINTER = 0x2041138\n  \
         QMD_MAJOR_VERSION = 0x5\n  \
         CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6[3] = 0xd78f8000\n  \
         CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6[3] = 0x1fc\n  \
         CONSTANT_BUFFER_SIZE_SHIFTED4[3] = 0x32 (0x320 bytes)\n  \
         CONSTANT_BUFFER_VALID[3] = TRUE\n"
    );
    // Bits that no field has are not lost.
    let mut words = [0; 96];
    qmd.encode_into(&mut words).unwrap();
    words[95] |= 0;
    words[5] |= 1 << 31;
    let strange = Qmd::decode(&words).unwrap();
    assert!(
        strange
            .to_string()
            .ends_with("  undocumented bits 0x80000000 of word 5\n"),
        "{strange}"
    );
    assert_eq!(
        strange.undocumented().collect::<Vec<_>>(),
        [(5, 0x8000_0000)]
    );
    // A field that is named twice in the header differs once.
    let mut other = qmd;
    other.set_dependent(1, None).unwrap();
    other
        .set_field(Version::V05_00.field("QMD_TYPE").unwrap(), 0, 2)
        .unwrap();
    assert_eq!(
        qmd.diff(&other).unwrap().to_string(),
        "QMD_TYPE: QUEUE -> GRID_CTA\nDEPENDENT_QMD1_ENABLE: TRUE -> FALSE\n"
    );
    assert!(qmd.diff(&qmd).unwrap().is_empty());
    assert!(qmd.diff(&Qmd::new(Version::V04_00)).is_none());
}

/// The versions that launch, with how many releases and dependents they have.
const LAUNCHING: [(Version, u32, u32); 6] = [
    (Version::V02_03, 2, 1),
    (Version::V02_04, 2, 1),
    (Version::V03_00, 3, 1),
    (Version::V04_00, 3, 2),
    (Version::V04_01, 3, 2),
    (Version::V05_00, 3, 2),
];

#[test]
fn releases_are_set_read_and_cleared_in_place() {
    for (version, count, _) in LAUNCHING {
        let mut qmd = Qmd::new(version);
        let empty = qmd;
        let two = version.major() == 2;
        for index in 0..count {
            assert_eq!(qmd.free_release(), Some(index), "{version}");
            let release = Release {
                va: GpuVa(0x12_3456_7890 + u64::from(index) * 16),
                payload: if two {
                    0x9abc_def0
                } else {
                    0x1234_5678_9abc_def0
                },
                size: ReleaseSize::Timestamp,
                membar: true,
                reduction: (index == 1).then_some(Reduction {
                    op: ReductionOp::RED_MAX,
                    signed: true,
                }),
            };
            qmd.set_release(index, Some(release)).unwrap();
            assert_eq!(qmd.release(index), Some(release), "{version} {index}");
            qmd.set_release_payload(index, 77).unwrap();
            qmd.set_release_address(index, GpuVa(0x10_0000_0000))
                .unwrap();
            let moved = Release {
                va: GpuVa(0x10_0000_0000),
                payload: 77,
                ..release
            };
            assert_eq!(qmd.release(index), Some(moved), "{version} {index}");
        }
        assert_eq!(qmd.free_release(), None, "{version}");
        let release = Release {
            va: GpuVa(0x1000),
            ..Release::default()
        };
        let refused = qmd.set_release(count, Some(release));
        assert!(
            matches!(refused, Err(EncodeError::IndexOutOfRange { .. })),
            "{version} {refused:?}"
        );
        for index in 0..count {
            qmd.set_release(index, None).unwrap();
            assert_eq!(qmd.release(index), None);
            assert!(
                qmd.set_release_payload(index, 1).is_err(),
                "a release that is not enabled"
            );
        }
        // Only the enable bits were cleared: the same release again differs from the first in nothing.
        assert_ne!(qmd, empty);

        let bad = Release {
            va: GpuVa(0x1008),
            size: ReleaseSize::Timestamp,
            ..release
        };
        assert!(matches!(
            qmd.set_release(0, Some(bad)),
            Err(EncodeError::Misaligned { unit: 16, .. })
        ));
        let bad = Release {
            va: GpuVa(0x1002),
            size: ReleaseSize::Word,
            ..release
        };
        assert!(matches!(
            qmd.set_release(0, Some(bad)),
            Err(EncodeError::Misaligned { unit: 4, .. })
        ));
        let bad = Release {
            payload: 1 << 32,
            size: ReleaseSize::Word,
            ..release
        };
        assert!(matches!(
            qmd.set_release(0, Some(bad)),
            Err(EncodeError::FieldOverflow { .. })
        ));
        let bad = Release {
            va: GpuVa(1 << 57),
            size: ReleaseSize::Word,
            ..release
        };
        assert!(matches!(
            qmd.set_release(0, Some(bad)),
            Err(EncodeError::FieldOverflow { .. })
        ));
        let word = Release {
            payload: 5,
            size: ReleaseSize::Word,
            va: GpuVa(0x1004),
            ..release
        };
        qmd.set_release(0, Some(word)).unwrap();
        assert_eq!(qmd.release(0), Some(word));
        let double = Release {
            payload: 5,
            size: ReleaseSize::Double,
            va: GpuVa(0x1008),
            ..release
        };
        let before = qmd;
        if two {
            assert!(qmd.set_release(0, Some(double)).is_err());
            assert_eq!(qmd, before, "a refused release writes nothing");
        } else {
            qmd.set_release(0, Some(double)).unwrap();
            assert_eq!(qmd.release(0), Some(double));
        }
    }
}

#[test]
fn releases_are_the_fields_that_the_header_names() {
    let release = Release {
        va: GpuVa(0x1f_0000_1230),
        payload: 0x1_0000_0002,
        size: ReleaseSize::Double,
        membar: true,
        reduction: None,
    };
    let mut qmd = Qmd::new(Version::V03_00);
    qmd.set_release(2, Some(release)).unwrap();
    let fields = qmd.view::<V03_00>().unwrap();
    assert!(fields.get(v03_00::RELEASE2_ENABLE));
    assert!(fields.get(v03_00::RELEASE2_PAYLOAD64B));
    assert_eq!(
        fields.get(v03_00::RELEASE2_STRUCTURE_SIZE),
        SemaphoreStructureSize::SEMAPHORE_TWO_WORDS
    );
    assert_eq!(
        fields.get(v03_00::RELEASE2_MEMBAR_TYPE),
        ReleaseMembarType::FE_SYSMEMBAR
    );
    assert_eq!(fields.get(v03_00::RELEASE2_ADDRESS_UPPER), 0x1f);
    assert_eq!(fields.wide(v03_00::RELEASE2_PAYLOAD), 0x1_0000_0002);
    let mut qmd = Qmd::new(Version::V04_00);
    qmd.set_release(1, Some(release)).unwrap();
    let fields = qmd.view::<V04_00>().unwrap();
    assert!(fields.get(v04_00::RELEASE_ENABLE.at(1).unwrap()));
    assert!(!fields.get(v04_00::RELEASE_ENABLE.at(0).unwrap()));
    assert_eq!(fields.wide(v04_00::RELEASE_SEMAPHORE1_ADDR), 0x1f_0000_1230);
}

#[test]
fn dependents_are_set_read_and_cleared_in_place() {
    for (version, _, count) in LAUNCHING {
        let mut qmd = Qmd::new(version);
        for index in 0..count {
            let next = Dependent {
                prefetch: version != Version::V02_03,
                ..Dependent::schedule(GpuVa(0xff_0000_0100 + u64::from(index) * 256))
            };
            qmd.set_dependent(index, Some(next)).unwrap();
            assert_eq!(qmd.dependent(index), Some(next), "{version} {index}");
            let action = DependentQmdAction::QMD_DECREMENT_DEPENDENCE;
            let other = qmd.set_dependent(index, Some(Dependent { action, ..next }));
            assert_eq!(other.is_err(), version == Version::V02_03, "{version}");
            qmd.set_dependent(index, None).unwrap();
            assert_eq!(qmd.dependent(index), None);
        }
        let next = Dependent::schedule(GpuVa(0x100));
        assert!(matches!(
            qmd.set_dependent(count, Some(next)),
            Err(EncodeError::IndexOutOfRange { .. })
        ));
        let bad = Dependent::schedule(GpuVa(0x180));
        assert!(matches!(
            qmd.set_dependent(0, Some(bad)),
            Err(EncodeError::Misaligned { unit: 256, .. })
        ));
        let bad = Dependent::schedule(GpuVa(1 << 40));
        assert!(matches!(
            qmd.set_dependent(0, Some(bad)),
            Err(EncodeError::FieldOverflow { .. })
        ));
    }
    let unsupported = Qmd::new(Version::V05_01).set_dependent(0, None);
    assert!(matches!(unsupported, Err(EncodeError::Unsupported { .. })));
}

#[test]
fn grid_block_program_and_banks_are_patched_in_place() {
    for (version, ..) in LAUNCHING {
        let mut qmd = Qmd::new(version);
        if let Some(kind) = version.field("QMD_TYPE") {
            qmd.set_field(kind, 0, QmdType::GRID_CTA.0).unwrap();
        }
        qmd.set_grid(Dim3::new(0x7fff_ffff, 0xffff, 0xffff))
            .unwrap();
        qmd.set_block(Dim3::new(1024, 1, 64)).unwrap();
        qmd.set_program(GpuVa(0x1_2345_6780), u32::MAX).unwrap();
        for index in 0..8 {
            qmd.set_bank(
                index,
                GpuVa(0x1_0000_0000 + u64::from(index) * 0x1_0000),
                0x1_0000,
            )
            .unwrap();
        }
        qmd.set_bank(2, GpuVa(0x40), 17).unwrap();
        let launch = qmd.launch().unwrap();
        assert_eq!(
            launch.grid,
            Dim3::new(0x7fff_ffff, 0xffff, 0xffff),
            "{version}"
        );
        assert_eq!(launch.block, Dim3::new(1024, 1, 64), "{version}");
        assert_eq!(launch.program, GpuVa(0x1_2345_6780), "{version}");
        assert_eq!(launch.banks[2], Some((GpuVa(0x40), 32)), "{version}");
        assert_eq!(
            launch.banks[7],
            Some((GpuVa(0x1_0007_0000), 0x1_0000)),
            "{version}"
        );
        assert_eq!(
            qmd.field("PROGRAM_PREFETCH_SIZE", 0).unwrap().raw,
            0x1ff,
            "{version}"
        );
        let before = qmd;
        assert!(qmd.set_grid(Dim3::new(1, 0x1_0000, 1)).is_err());
        assert!(qmd.set_block(Dim3::new(1, 1, 0x1_0000)).is_err());
        assert!(qmd.set_bank(8, GpuVa(0), 16).is_err());
        assert!(
            qmd.set_bank(1, GpuVa(0x100), 0x2_0000).is_err(),
            "13 bits of 16 bytes"
        );
        assert!(qmd.set_program(GpuVa(!0xff), 0).is_err());
        assert_eq!(qmd, before, "{version}: what is refused is not written");
    }
}

#[test]
fn a_descriptor_of_clusters_counts_clusters() {
    for version in [Version::V04_00, Version::V04_01, Version::V05_00] {
        let mut qmd = Qmd::new(version);
        let set = |qmd: &mut Qmd, name, value| {
            qmd.set_field(version.field(name).unwrap(), 0, value)
                .unwrap();
        };
        set(&mut qmd, "QMD_TYPE", QmdType::GRID_GPC_CGA.0);
        set(&mut qmd, "GPC_CGA_WIDTH", 2);
        set(&mut qmd, "GPC_CGA_HEIGHT", 2);
        set(&mut qmd, "GPC_CGA_DEPTH", 1);
        qmd.set_grid(Dim3::new(16, 8, 4)).unwrap();
        assert_eq!(qmd.field("GRID_WIDTH", 0).unwrap().raw, 8);
        assert_eq!(qmd.field("GRID_HEIGHT", 0).unwrap().raw, 4);
        assert_eq!(qmd.field("GRID_DEPTH", 0).unwrap().raw, 4);
        assert_eq!(qmd.launch().unwrap().grid, Dim3::new(16, 8, 4));
        assert_eq!(qmd.launch().unwrap().cluster, Dim3::new(2, 2, 1));
        assert_eq!(
            qmd.set_grid(Dim3::new(16, 7, 4)),
            Err(EncodeError::Misaligned {
                field: "GRID_HEIGHT",
                unit: 2,
                value: 7
            })
        );
        set(&mut qmd, "QMD_TYPE", 0);
        assert!(qmd.launch().is_err(), "a queue launches nothing");
    }
}

proptest! {
    /// Whatever the words: decoding, printing and encoding lose nothing and never fail.
    #[test]
    fn words_of_any_content_survive(
        version in prop::sample::select(Version::ALL.to_vec()),
        words in prop::array::uniform32(any::<u32>()),
    ) {
        let words: Vec<u32> = words.iter().cycle().take(version.words()).copied().collect();
        let qmd = Qmd::decode_as(version, &words).unwrap();
        let mut again = vec![0xa5a5_a5a5; words.len()];
        prop_assert_eq!(qmd.encode_into(&mut again), Ok(words.len()));
        prop_assert_eq!(&again, &words);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        prop_assert_eq!(qmd.as_bytes(), &bytes[..]);
        let _ = (qmd.to_string(), qmd.launch(), Qmd::decode(&words));
        // The named fields and the rest are all there is.
        let mut built = Qmd::decode_as(version, &vec![0; words.len()]).unwrap();
        for value in qmd.fields() {
            built.set_field(value.field, value.index, value.raw).unwrap();
        }
        let mut fields = vec![0; words.len()];
        built.encode_into(&mut fields).unwrap();
        let rest: Vec<(usize, u32)> = qmd.undocumented().collect();
        for (word, bits) in rest {
            prop_assert_eq!(fields[word] & bits, 0);
            fields[word] |= bits;
        }
        prop_assert_eq!(fields, words);
    }

    /// Applying a difference makes the other.
    #[test]
    fn a_difference_is_complete(
        version in prop::sample::select(Version::ALL.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 0..20),
    ) {
        let from = Qmd::new(version);
        let mut to = from;
        for (which, value) in edits {
            let field = which.get(version.fields());
            to.set_field(field, 0, value & field.bits.max()).unwrap();
        }
        let mut patched = from;
        for difference in from.diff(&to).unwrap().fields() {
            prop_assert_ne!(difference.from, difference.to);
            patched.set_field(difference.field, difference.index, difference.to).unwrap();
        }
        prop_assert_eq!(patched, to);
    }
}
