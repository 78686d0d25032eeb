//! Fatbins: entries and their contents against what the vendor's tool takes out, choice by device, and damage.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;

use nv_host::fatbin::{self, Error, contents, cubin_for, entries, target};
use nv_proto::cubin::fatbin::{Compression, Entry, EntryKind, Fatbin, Fatbins, Fit, Payload, best};
use nv_proto::cubin::{Content, Cubin, Error as ReadError, Variant};
use nv_proto::unit::SmVersion;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn file(name: &str) -> Vec<u8> {
    nv_tests::bytes(&format!("cubins/fatbin/{name}"))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn contents_are_what_the_vendors_tool_takes_out() {
    let golden = nv_tests::json("golden/cubin/fatbin.json");
    let (mut compared, mut methods) = (0, BTreeSet::new());
    for (name, says) in golden["files"].as_object().expect("files") {
        let file = file(name);
        let entries = entries(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (kind, key) in [(EntryKind::CUBIN, "elf"), (EntryKind::PTX, "ptx")] {
            let ours: Vec<_> = entries
                .iter()
                .filter(|entry| entry.kind() == kind)
                .collect();
            let theirs = says[key].as_array().expect("a list");
            assert_eq!(ours.len(), theirs.len(), "{name} {key}");
            for (entry, theirs) in ours.iter().zip(theirs) {
                let data = contents(entry).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(
                    digest(&data),
                    theirs[1].as_str().expect("a digest"),
                    "{name} {entry:?}"
                );
                let theirs = theirs[0]
                    .as_str()
                    .expect("a target")
                    .trim_start_matches("sm_");
                let ours = target(entry);
                let (_, ours) = ours.split_once('_').expect("a target");
                // The tool does not show the family variant of a cubin.
                let shown = if entry.kind() == EntryKind::CUBIN {
                    ours.trim_end_matches('f')
                } else {
                    ours
                };
                assert_eq!(shown, theirs, "{name} {entry:?}");
                if kind == EntryKind::CUBIN {
                    let cubin =
                        Cubin::parse(&data).unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert_eq!(
                        (cubin.sm(), cubin.variant()),
                        (entry.sm(), entry.variant()),
                        "{name}"
                    );
                } else {
                    assert_eq!(Content::of(&data), Content::Ptx, "{name}");
                }
                if let Payload::Compressed { method, .. } = entry.payload() {
                    methods.insert(format!("{method:?} {kind}"));
                }
                compared += 1;
            }
        }
    }
    assert!(compared >= 60, "{compared}");
    assert_eq!(
        methods,
        ["Lz4 PTX", "Lz4 cubin", "Zstd PTX", "Zstd cubin"]
            .map(str::to_owned)
            .into()
    );
}

#[test]
fn names_options_and_variants() {
    let file = file("13.0_variants.fatbin");
    let entries = entries(&file).expect("entries");
    let targets: Vec<_> = entries.iter().map(target).collect();
    assert_eq!(
        targets,
        [
            "sm_100f",
            "sm_100a",
            "sm_103",
            "compute_120f",
            "compute_90a"
        ]
    );
    let cubin = entries[0].cubin().expect("a cubin");
    assert_eq!(
        entries[0].compat(),
        cubin
            .section_by_name(".nv.compat")
            .expect("a section")
            .data()
    );
    let named = self::file("13.0_ident.fatbin");
    let named = fatbin::entries(&named).expect("entries");
    assert_eq!(
        (named[0].name(), named[0].variant()),
        ("my.cu", Variant::Architecture)
    );
    let lto = self::file("13.0_nvcc_rdc_lto.fatbin");
    let lto = fatbin::entries(&lto).expect("entries");
    assert_eq!(lto[1].kind(), EntryKind::LTO);
    assert_eq!(
        lto[1].options(),
        b"-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1 "
    );
    let error = contents(&lto[1]).expect_err("obfuscated");
    assert!(
        matches!(
            error,
            Error::UnknownCompression {
                flags: 0x1_8011,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn fatbins_are_found_in_objects_programs_and_libraries() {
    for (name, wanted) in [
        ("13.0_host.o", vec!["sm_90"]),
        ("13.0_host_rdc.o", vec!["sm_90"]),
        ("13.0_program", vec!["sm_80", "sm_90"]),
        (
            "13.0_library.so",
            vec!["sm_80", "sm_90a", "sm_80", "sm_90a"],
        ),
    ] {
        let file = file(name);
        let found = entries(&file).expect(name);
        let cubins: Vec<_> = found
            .iter()
            .filter(|entry| entry.kind() == EntryKind::CUBIN)
            .map(target)
            .collect();
        assert_eq!(
            cubins.iter().collect::<BTreeSet<_>>(),
            wanted
                .iter()
                .map(|x| (*x).to_owned())
                .collect::<Vec<_>>()
                .iter()
                .collect(),
            "{name}"
        );
        // Offsets are those in the file.
        for entry in &found {
            let at = usize::try_from(entry.offset()).expect("an offset");
            assert_eq!(file[at..at + 2], entry.kind().0.to_le_bytes(), "{name}");
        }
    }
    // Two sources, two fatbins.
    let library = file("13.0_library.so");
    assert_eq!(Fatbins::of(&library).expect("an ELF file").count(), 2);
}

/// `(what the fatbin holds, device, what is to be taken)`.
#[test]
fn the_best_entry_for_a_device() {
    for (held, device, wanted) in [
        (&["sm_80", "sm_86", "sm_90"][..], 86, Some("sm_86")),
        (&["sm_80", "sm_86", "sm_90"], 89, Some("sm_86")),
        (&["sm_86", "sm_80", "sm_90"], 80, Some("sm_80")),
        (&["sm_86"], 80, None),
        (&["sm_80", "compute_75"], 90, Some("compute_75")),
        (&["compute_80", "compute_90"], 89, Some("compute_80")),
        (&["compute_80", "compute_90"], 120, Some("compute_90")),
        (&["sm_90", "sm_90a"], 90, Some("sm_90a")),
        (&["sm_90a", "sm_90"], 90, Some("sm_90a")),
        (&["sm_100a", "compute_100"], 103, Some("compute_100")),
        (&["sm_100f", "compute_100"], 103, Some("sm_100f")),
        (&["sm_100", "sm_100f", "sm_103"], 103, Some("sm_103")),
        (&["compute_90a"], 100, None),
        (&["compute_100f"], 103, Some("compute_100f")),
        (&["compute_100f"], 120, None),
        (&["sm_120"], 121, Some("sm_120")),
        // Boards of the embedded line share code with no other chip.
        (&["sm_86", "compute_80"], 87, Some("compute_80")),
        (&["sm_87"], 87, Some("sm_87")),
        (&["sm_87"], 89, None),
        (&[], 90, None),
    ] {
        let bytes = made_of(held);
        let (fatbin, size) = Fatbin::parse(&bytes).expect("a fatbin");
        assert_eq!(size, bytes.len() as u64);
        let entries: Vec<_> = fatbin
            .entries()
            .map(|entry| entry.expect("an entry"))
            .collect();
        let taken = best(entries, SmVersion(device)).map(|(entry, _)| target(&entry));
        assert_eq!(taken.as_deref(), wanted, "{held:?} on sm_{device}");
    }
    assert!(Fit::Ptx(SmVersion(90)) < Fit::Older(SmVersion(80)));
}

/// A fatbin of entries without contents.
fn made_of(targets: &[&str]) -> Vec<u8> {
    let mut entries = Vec::new();
    for target in targets {
        let (kind, version) = target.split_once('_').expect("a target");
        let digits = version.trim_end_matches(['a', 'f']);
        let flags = match &version[digits.len()..] {
            "a" => 0x10_0011u64,
            "f" => 0x20_0011,
            _ => 0x11,
        };
        let mut entry = [0u8; 64 + 8];
        entry[..2].copy_from_slice(&(if kind == "sm" { 2u16 } else { 1 }).to_le_bytes());
        entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        entry[4] = 64;
        entry[8] = 8;
        entry[0x1c..0x20].copy_from_slice(&digits.parse::<u32>().expect("a version").to_le_bytes());
        entry[0x28..0x30].copy_from_slice(&flags.to_le_bytes());
        entries.extend(entry);
    }
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}

#[test]
fn a_cubin_for_a_device() {
    let fat = file("13.0_vecadd_all.fatbin");
    let cubin = cubin_for(&fat, SmVersion(90)).expect("a cubin");
    assert!(
        Cubin::parse(&cubin)
            .expect("a cubin")
            .kernel("vecadd")
            .is_ok()
    );
    // A cubin is taken as it is: whether it runs is for who loads it to say.
    assert_eq!(cubin_for(&cubin, SmVersion(75)).expect("itself"), cubin);
    let error = cubin_for(&fat, SmVersion(100)).expect_err("PTX alone");
    let Error::OnlyPtx { target, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(target, "compute_80");
    assert!(error.to_string().contains("ptxas -arch=sm_100"), "{error}");
    let error = cubin_for(&fat, SmVersion(61)).expect_err("nothing");
    assert_eq!(
        error.to_string(),
        "nothing in the file runs on sm_61: it holds sm_75, sm_80, sm_90, sm_120, compute_80"
    );
    let error = cubin_for(b".version 9.0\n.target sm_90\n", SmVersion(90)).expect_err("PTX text");
    assert_eq!(error.to_string(), "there is no fatbin here: it is PTX text");
}

fn first(bytes: &[u8]) -> Entry<'_> {
    *entries(bytes).expect("entries").first().expect("an entry")
}

#[test]
fn damage_is_told() {
    let good = file("13.0_vecadd_all.fatbin");
    // The zstd frame, behind the region's and the entry's headers.
    let mut bad = good.clone();
    bad[16 + 64 + 40] ^= 0x55;
    let error = contents(&first(&bad)).expect_err("damaged");
    assert!(
        matches!(
            error,
            Error::Damaged {
                method: "zstd",
                offset: 16,
                ..
            } | Error::WrongSize { .. }
        ),
        "{error}"
    );
    // A declared size that is not true, either way.
    for (size, held) in [(0xc27u64, 0xc28), (0xc29, 0xc28)] {
        let mut bad = good.clone();
        bad[16 + 0x38..16 + 0x40].copy_from_slice(&size.to_le_bytes());
        assert_eq!(
            contents(&first(&bad)),
            Err(Error::WrongSize {
                offset: 16,
                declared: size,
                held
            })
        );
    }
    let mut bad = good.clone();
    bad[16 + 0x38..16 + 0x40].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(
        contents(&first(&bad)),
        Err(Error::TooLarge { size: u64::MAX, .. })
    ));

    let good = file("13.0_vecadd_mode_speed.fatbin");
    assert!(matches!(
        first(&good).payload(),
        Payload::Compressed {
            method: Compression::Lz4,
            ..
        }
    ));
    for size in [0xc27u64, 0xc29] {
        let mut bad = good.clone();
        bad[16 + 0x38..16 + 0x40].copy_from_slice(&size.to_le_bytes());
        let error = contents(&first(&bad)).expect_err("a wrong size");
        assert!(
            matches!(
                error,
                Error::Damaged { method: "LZ4", .. } | Error::WrongSize { .. }
            ),
            "{error}"
        );
    }
    // 4 GiB from 1.2 KB: no memory is taken for it.
    let mut bad = good;
    bad[16 + 0x38..16 + 0x40].copy_from_slice(&(4u64 << 30).to_le_bytes());
    let error = contents(&first(&bad)).expect_err("a lie");
    assert!(
        error.to_string().contains("cannot stand for 4294967296"),
        "{error}"
    );
}

/// Found by the fuzz target: a region of no bytes was followed by itself, for ever.
#[test]
fn a_region_that_takes_no_room_is_refused() {
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 0, 0];
    bytes.extend([0; 24]);
    assert_eq!(
        entries(&bytes).map(|entries| entries.len()),
        Err(Error::Read(
            "header size of \"fatbin\" cannot be 0x0 (offset 0x6)".to_owned()
        ))
    );
    // The smallest that there is: a header and no entries, twice.
    bytes[6] = 16;
    let twice = [&bytes[..16], &bytes[..16]].concat();
    assert_eq!(Fatbins::of(&twice).expect("fatbins").count(), 2);
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let good = file("13.0_vecadd_nocompress.fatbin");
    let says = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        match entries(&bad) {
            Err(Error::Read(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        says(4, &[2]),
        "version of \"fatbin\" cannot be 0x2 (offset 0x4)"
    );
    assert!(
        says(8, &[0xff; 8])
            .starts_with("fatbin: 18446744073709551615 bytes at offset 0x10 are needed")
    );
    assert_eq!(
        says(16 + 2, &[2, 2]),
        "version of \"fatbin entry\" cannot be 0x202 (offset 0x12)"
    );
    assert_eq!(
        says(16 + 4, &[63]),
        "header size of \"fatbin entry\" cannot be 0x3f (offset 0x14)"
    );
    assert!(
        says(16 + 8, &[0xff; 8])
            .starts_with("fatbin entry: 18446744073709551615 bytes at offset 0x10")
    );
    assert_eq!(
        says(16 + 0x10, &[0, 0, 1]),
        "compressed size of \"fatbin entry\" cannot be 0x10000 (offset 0x20)"
    );
    let fatbin = &good[..20];
    assert!(matches!(
        Fatbin::parse(&fatbin[..12]),
        Err(ReadError::NotFatbin {
            found: Content::Fatbin
        })
    ));
    assert!(matches!(
        Fatbin::parse(b"\x7fELF"),
        Err(ReadError::NotFatbin { .. })
    ));
    // What follows the last fatbin of a section must be another.
    let mut bad = good.clone();
    bad.extend(b"garbage");
    assert!(
        matches!(entries(&bad), Err(Error::Read(text)) if text == "there is no fatbin here: it is text")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// A few bytes of a real file changed: everything answers, and what comes out is as long as was said.
    #[test]
    fn mutated_files(which in 0usize..5, changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        const NAMES: [&str; 5] = ["13.0_vecadd_all.fatbin", "13.0_vecadd_mode_speed.fatbin", "13.0_ident.fatbin", "13.0_host.o", "13.0_nvcc_rdc_lto.fatbin"];
        let mut bytes = file(NAMES[which]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(entries) = entries(&bytes) {
            for entry in entries {
                if let (Ok(data), Payload::Compressed { size, .. }) = (contents(&entry), entry.payload()) {
                    prop_assert!(data.len() as u64 == size || entry.kind() == EntryKind::PTX && (data.len() as u64) < size);
                }
            }
        }
        let _ = cubin_for(&bytes, SmVersion(90));
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut file = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file[8] = u8::try_from(bytes.len()).unwrap();
        file.extend(bytes);
        if let Ok(entries) = entries(&file) {
            for entry in entries {
                let _ = (contents(&entry), target(&entry), entry.name(), entry.options().len());
            }
        }
    }
}
