//! `nv` with a standard output that takes nothing, and with arguments that ask for too much.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test that calls them"
)]

use std::fs::File;
use std::process::{Command, Output, Stdio};

const CUBINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cubins");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");

fn nv(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nv"));
    let words = arguments
        .replace("CUBINS", CUBINS)
        .replace("GOLDEN", GOLDEN);
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}

fn error(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

const RUN: &str = "run CUBINS/k/k.sm_90.cubin vadd --sim gh100 --grid 1 --block 32";

/// Every kind of output.
fn commands() -> Vec<String> {
    let commands = [
        "demo --sim gh100",
        "demo --sim gh100 --json",
        "devices",
        "devices --json",
        "devices --sim gh100,ga102 --peers",
        "devices --sim gh100,ga102 --peers --json",
        "cubin info CUBINS/k/k.sm_90.cubin",
        "cubin info CUBINS/k/k.sm_90.cubin --json",
        "cubin symbols CUBINS/k/k.sm_90.cubin",
        "cubin symbols CUBINS/k/k.sm_90.cubin --json",
        "fatbin list CUBINS/fatbin/13.0_vecadd_all.fatbin",
        "fatbin extract CUBINS/fatbin/13.0_vecadd_all.fatbin --entry 0 --output -",
        "qmd dump GOLDEN/h200/cuda_launches.json",
        "push dump GOLDEN/h200/cuda_launches.json --stream coop",
    ];
    let run = "--arg f32[32]=range --arg f32[32]=range --arg f32[32]=zero --arg i32:32";
    let runs = [format!("{RUN} {run}"), format!("{RUN} {run} --json")];
    commands
        .map(str::to_owned)
        .into_iter()
        .chain(runs)
        .collect()
}

#[test]
fn a_reader_that_is_gone_is_no_failure() {
    for command in commands() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = nv(&command).stdout(writer).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{command}: {}",
            error(&output)
        );
        assert!(
            !error(&output).contains("panicked"),
            "{command}: {}",
            error(&output)
        );
    }
}

/// Warnings and errors that nobody reads change nothing: the exit code is the same.
#[test]
fn nobody_to_read_errors_is_no_failure() {
    let failing = [
        "run /no/such/file k --grid 1 --block 1",
        "run CUBINS/k/k.sm_90.cubin nothing --sim gh100 --grid 1 --block 32",
        "qmd dump CUBINS/k/k.cu",
        "demo --sim gh100 --limit 0",
        "bench --sim gh100 --limit 0",
    ];
    let all = commands().into_iter().chain(failing.map(str::to_owned));
    for command in all {
        let read = nv(&command).output().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let unread = nv(&command).stderr(writer).output().unwrap();
        assert_eq!(unread.status.code(), read.status.code(), "{command}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut wrong = nv("devices");
    let wrong = wrong.env("NV_TRACE", "everything").stderr(writer);
    assert_eq!(wrong.output().unwrap().status.code(), Some(2));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for command in commands() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = nv(&command).stdout(full).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(4),
            "{command}: {}",
            error(&output)
        );
    }
}

#[test]
fn buffers_and_files_that_are_too_large_are_told() {
    for (arg, says) in [
        ("u8[64]=file:/dev/zero", "more bytes than the 64"),
        ("u8[64]=file:/dev/null", "fewer bytes than the 64"),
        ("u8[99999999999999]=zero", "a buffer has 1 to"),
    ] {
        let output = nv(&format!("{RUN} --arg {arg}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arg}: {}", error(&output));
        assert!(error(&output).contains(says), "{arg}: {}", error(&output));
    }
}

/// As many blocks as a launch may have: more than could ever run, so that the limit of time ends it.
#[test]
fn the_largest_grid_runs_into_the_limit() {
    let run = "run CUBINS/faults/faults.sm_90.cubin ok --sim gh100 --grid 2147483647,65535,65535 \
               --block 1024 --limit 1 --arg u64[1024]=zero";
    let output = nv(run).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", error(&output));
    assert!(!error(&output).contains("panicked"), "{}", error(&output));
}

#[test]
fn devices_of_a_simulated_machine_reach_each_other() {
    let output = nv("devices --sim gh100,gh100,gb202 --peers")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("NVIDIA H200 (simulated)") && text.contains("RTX 5090"),
        "{text}"
    );
    assert_eq!(text.matches("PCIe").count(), 6, "{text}");

    let output = nv("devices --sim gh100,gh100 --peers --json")
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["gpus"].as_array().unwrap().len(), 2);
    let pairs = json["peers"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    assert_eq!(pairs[1]["from"], 1);
    assert_eq!(pairs[1]["to"], 0);
    assert_eq!(pairs[1]["link"], "PCIe");
    // Without being asked, nothing is opened.
    let output = nv("devices --sim gh100 --json").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json.get("peers"), None);
}
