//! `nv push` on the captures of an H200, as a user runs it.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test that calls them"
)]

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");

fn nv(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nv"))
        .arg("push")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn captures_are_named_throughout() {
    for (file, streams) in [("cuda_launches.json", 25), ("cuda_streams.json", 4)] {
        let output = nv(&["dump", &format!("{GOLDEN}/h200/{file}")]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout);
        assert!(
            !shown.contains('\u{1b}'),
            "colours although this is no terminal"
        );
        assert_eq!(
            shown.lines().filter(|line| line.starts_with("# ")).count(),
            streams
        );
        for line in shown.lines() {
            let mut columns = line.split_whitespace();
            let is_method = columns
                .next()
                .is_some_and(|offset| offset.parse::<u32>().is_ok())
                && columns.next().is_some_and(|sub| sub.len() == 1);
            if is_method {
                let (class, name) = (columns.next().unwrap(), columns.next().unwrap());
                assert!(class.starts_with("HOPPER_"), "{line}");
                assert!(!name.starts_with("0x"), "{line}");
            }
        }
        assert!(shown.contains("PCAS_ACTION=INVALIDATE_PREFETCH_COPY_SCHEDULE"));
        assert!(shown.contains("QMD_TYPE = GRID_CTA"));
    }
}

#[test]
fn json_is_for_tools() {
    let output = nv(&[
        "dump",
        "--json",
        "--stream",
        "coop",
        &format!("{GOLDEN}/h200/cuda_launches.json"),
    ]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lines = json["streams"][0]["lines"].as_array().unwrap();
    assert!(lines.iter().all(|line| line["name"].is_string()));
    let types: Vec<_> = lines
        .iter()
        .filter_map(|line| line["qmd"]["fields"].as_array())
        .flatten()
        .filter(|field| field["name"] == "QMD_TYPE")
        .map(|field| field["value"].clone())
        .collect();
    assert!(
        types.contains(&4.into()),
        "a cooperative launch is a GRID_GPU_CGA: {types:?}"
    );
}

#[test]
fn differences_are_the_exit_code() {
    let file = format!("{GOLDEN}/h200/cuda_launches.json");
    let same = nv(&["diff", &file, &file, "--stream", "plain"]);
    assert_eq!((same.status.code(), same.stdout.len()), (Some(0), 0));
    let differ = nv(&[
        "diff",
        &file,
        &file,
        "--stream",
        "dyn_16384",
        "--to-stream",
        "dyn_32768",
    ]);
    assert_eq!(differ.status.code(), Some(1));
    assert!(
        text(&differ.stdout).contains("SHARED_MEMORY_SIZE: 0x4400 -> 0x8400"),
        "{}",
        text(&differ.stdout)
    );
    let several = nv(&["diff", &file, &file]);
    assert_eq!(several.status.code(), Some(4));
    assert!(
        text(&several.stderr).contains("--stream"),
        "{}",
        text(&several.stderr)
    );
}

#[test]
fn bad_input_is_told() {
    let run = |input: &[u8], arguments: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nv"))
            .args(["push", "dump", "-"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            text(&output.stdout).to_owned(),
            text(&output.stderr).to_owned(),
        )
    };
    let (code, shown, said) = run(b"20012000 cbc0 c0000000", &[]);
    assert_eq!(code, Some(4));
    assert!(shown.contains("NVCLASS=HOPPER_COMPUTE_A"), "{shown}");
    assert!(
        said.contains("SEC_OP 6 is reserved") && said.contains("offset 0x8"),
        "{said}"
    );
    let (code, _, said) = run(b"12345", &["--format", "words"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("5 bytes"), "{said}");
    let (code, _, said) = run(b"{\"a\": 1}", &[]);
    assert_eq!(code, Some(4));
    assert!(said.contains("holds no stream"), "{said}");
    let (code, _, said) = run(b"{", &["--format", "json"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("line 1"), "{said}");
}

/// A reader that goes away early, such as `head`, is no failure.
#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nv"))
        .args(["push", "dump", &format!("{GOLDEN}/h200/cuda_launches.json")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}
