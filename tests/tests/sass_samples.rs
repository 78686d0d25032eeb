//! Instructions of real programs: what the vendor's disassembler says about each, and what we do.

use std::collections::BTreeMap;
use std::fs;

use nv_proto::sass;
use nv_proto::unit::SmVersion;

#[derive(serde::Deserialize)]
struct Sample {
    arch: String,
    hex: String,
    text: String,
    #[serde(default)]
    pc: u64,
}

fn normal(text: &str) -> String {
    text.replace(".reuse", "").split_whitespace().collect()
}

fn words(hex: &str) -> [u64; 2] {
    let bytes: Vec<u8> = (0..16)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    [word(0), word(8)]
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

#[test]
fn agrees_with_the_vendors_disassembler() {
    let path = std::env::var("NV_SASS_SAMPLES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/golden/sass/samples.jsonl").into()
    });
    let text = fs::read_to_string(path).unwrap();
    let (mut agree, mut unknown, mut total) = (0, 0, 0);
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let sample: Sample = serde_json::from_str(line).unwrap();
        let sm = SmVersion(sample.arch[3..].parse().unwrap());
        total += 1;
        match sass::decode(words(&sample.hex), sm) {
            Ok(inst) => {
                let ours = normal(&inst.at(sample.pc).to_string());
                if ours == normal(&sample.text) {
                    agree += 1;
                } else {
                    wrong
                        .entry(mnemonic(&sample.text).into())
                        .or_default()
                        .push(format!(
                            "{} {} {}\n      ours {ours}",
                            sample.arch, sample.hex, sample.text
                        ));
                }
            }
            Err(_) => {
                unknown += 1;
                wrong
                    .entry(format!("unknown {}", mnemonic(&sample.text)))
                    .or_default()
                    .push(format!("{} {} {}", sample.arch, sample.hex, sample.text));
            }
        }
    }
    for (name, list) in &wrong {
        println!("{name}: {}", list.len());
        for text in list.iter().take(3) {
            println!("   {text}");
        }
    }
    println!("{agree} agree, {unknown} unknown, of {total}");
    assert!(agree > 0);
}
