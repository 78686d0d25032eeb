//! Instructions of real programs: what the vendor's disassembler says about each, and what we do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers: what is not there fails the test that asked for it"
)]

use nv_proto::sass::{self, SM_VERSIONS};
use nv_proto::unit::SmVersion;
use proptest::prelude::*;

struct Sample {
    sm: SmVersion,
    words: [u64; 2],
    pc: u64,
    text: String,
}

/// The committed selection, or the file that a variable names.
fn samples() -> Vec<Sample> {
    let text = match std::env::var_os("NV_SASS_SAMPLES") {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => String::from_utf8(nv_tests::bytes("golden/sass/samples.tsv")).unwrap(),
    };
    text.lines()
        .map(|line| {
            let [sm, hex, pc, text] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            Sample {
                sm: SmVersion(sm.parse().unwrap()),
                words: words(hex),
                pc: u64::from_str_radix(pc, 16).unwrap(),
                text: text.to_owned(),
            }
        })
        .collect()
}

fn words(hex: &str) -> [u64; 2] {
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    [word(0), word(8)]
}

/// Without spaces, and without the marks for operands that the next instruction reads too.
fn normal(text: &str) -> String {
    text.replace(".reuse", "").split_whitespace().collect()
}

fn mnemonic(text: &str) -> &str {
    let text = if text.starts_with('@') {
        text.split_once(' ').unwrap().1
    } else {
        text
    };
    let end = text.find([' ', '.']).unwrap_or(text.len());
    &text[..end]
}

/// Mnemonics that the decoder does not claim: each of their instructions is unknown.
const UNCLAIMED: [&str; 33] = [
    "BGMMA",
    "BMMA",
    "CCTLL",
    "FADD2",
    "FFMA2",
    "FHADD",
    "FHFMA",
    "FMUL2",
    "HGMMA",
    "IGMMA",
    "LDGMC",
    "LDTM",
    "OMMA",
    "PMTRIG",
    "QGMMA",
    "QMMA",
    "REDAS",
    "STAS",
    "SULD",
    "SUST",
    "TEX",
    "TLD",
    "UBLKRED",
    "UP2UR",
    "UR2UP",
    "UTCATOMSWS",
    "UTMACCTL",
    "UTMALDG",
    "UTMAPF",
    "UTMAREDG",
    "UTMASTG",
    "UVIRTCOUNT",
    "WARPGROUP",
];

#[test]
fn agrees_with_the_vendors_disassembler() {
    let (mut agree, mut unclaimed, mut wrong) = (0, 0, Vec::new());
    let samples = samples();
    for sample in &samples {
        let Sample {
            sm,
            words,
            pc,
            text,
        } = sample;
        match sass::decode(*words, *sm) {
            Ok(inst) => {
                let ours = normal(&inst.at(*pc).to_string());
                if ours == normal(text) && !UNCLAIMED.contains(&mnemonic(text)) {
                    agree += 1;
                } else {
                    wrong.push(format!("{sm} {words:016x?} {text} as {ours}"));
                }
            }
            Err(_) if UNCLAIMED.contains(&mnemonic(text)) => unclaimed += 1,
            Err(_) => wrong.push(format!("{sm} {words:016x?} {text} as unknown")),
        }
    }
    println!(
        "{agree} agree, {unclaimed} unclaimed, {} differ, of {}",
        wrong.len(),
        samples.len()
    );
    for text in wrong.iter().take(30) {
        println!("{text}");
    }
    if std::env::var_os("NV_SASS_SAMPLES").is_none() {
        assert_eq!(
            (agree, unclaimed, wrong.len()),
            (AGREE, UNCLAIMED_COUNT, DIFFER),
            "{wrong:#?}"
        );
    }
}

/// Another version's table must not be used: what only one architecture has is unknown elsewhere.
#[test]
fn an_architecture_without_a_table_has_no_instructions() {
    for sample in samples() {
        assert!(sass::decode(sample.words, SmVersion(75)).is_err());
    }
}

#[test]
fn unknown_words_are_named_with_their_architecture() {
    let unknown = sass::decode([0x0fff, 7], SmVersion(90)).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "0x0000000000000fff 0x0000000000000007 is no known instruction of sm_90"
    );
}

#[test]
fn scheduling_makes_no_difference_and_the_bits_above_it_do() {
    for sample in samples()
        .iter()
        .filter(|s| sass::decode(s.words, s.sm).is_ok())
    {
        let text = sass::decode(sample.words, sample.sm).unwrap().to_string();
        let other =
            sass::decode([sample.words[0], sample.words[1] ^ 0x1fff << 41], sample.sm).unwrap();
        assert_eq!(text, other.to_string());
        assert!(sass::decode([sample.words[0], sample.words[1] | 1 << 63], sample.sm).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any words: no panic, and what decodes has text.
    #[test]
    fn any_words_decode_or_are_unknown(words in any::<[u64; 2]>(), which in 0..SM_VERSIONS.len(), pc in any::<u64>()) {
        if let Ok(inst) = sass::decode(words, SM_VERSIONS[which]) {
            prop_assert!(!inst.at(pc).to_string().is_empty());
        }
    }

}

/// A real instruction with one bit turned over is unknown or says something else. The exceptions are bits that make no difference
/// to the vendor's disassembler either: parts of operands that an instruction leaves out.
#[test]
fn every_bit_counts() {
    let mut silent = std::collections::BTreeMap::new();
    for sample in samples() {
        let Ok(inst) = sass::decode(sample.words, sample.sm) else {
            continue;
        };
        let text = inst.at(sample.pc).to_string();
        for bit in 0..105 {
            let mut words = sample.words;
            words[bit / 64] ^= 1 << (bit % 64);
            if let Ok(other) = sass::decode(words, sample.sm) {
                // Operands that are not printed may differ, too: they are results that are dropped.
                if other.at(sample.pc).to_string() == text && other.args() == inst.args() {
                    *silent.entry((inst.op.name(), bit)).or_insert(0) += 1;
                }
            }
        }
    }
    assert_eq!(silent.len(), SILENT, "{silent:?}");
}

/// Mnemonics and bits that make no difference.
const SILENT: usize = 107;
/// Samples that come out as the disassembler prints them.
const AGREE: usize = 3549;
/// Samples of mnemonics that the decoder does not claim.
const UNCLAIMED_COUNT: usize = 145;
/// Samples that come out otherwise: `ATOMS.ARRIVE.64` of `sm_86` and `sm_89`, for which there are no facts.
const DIFFER: usize = 2;
