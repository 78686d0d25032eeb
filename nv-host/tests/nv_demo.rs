//! `nv demo` and `nv bench`, run as people run them, on simulated GPUs: every chip, both ways of mapping memory.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

use std::process::{Command, Output};

use serde_json::Value;

fn demo(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nv"))
        .arg("demo")
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn every_element_is_right_on_every_chip() {
    for chip in ["ga100", "ga102", "ad102", "gh100", "gb202"] {
        for map in ["rm", "uvm"] {
            let output = demo(&["--sim", chip, "--map", map, "--json"]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{chip} {map}: {errors}");
            assert_eq!(errors, "", "{chip} {map}: it was asked for by name");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["simulated"], true);
            assert_eq!(report["map_mode"], map);
            let kernels = report["kernels"].as_array().unwrap();
            let names: Vec<_> = kernels.iter().map(|kernel| &kernel["kernel"]).collect();
            assert_eq!(
                names,
                ["vector_add", "reduce_sum", "matrix_multiply", "local_walk"],
                "{chip} {map}"
            );
            for kernel in kernels {
                assert_eq!(kernel["wrong"], 0, "{chip} {map}: {kernel}");
                assert_ne!(kernel["elements"], 0, "{chip} {map}: {kernel}");
            }
        }
    }
}

#[test]
fn the_table_says_what_ran_where() {
    let output = demo(&["--sim", "gh100"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("NVIDIA H200 (simulated) (sm_90), driver "),
        "{text}"
    );
    assert!(text.contains(", memory mapped by RM\n"), "{text}");
    assert_eq!(text.matches(" elements").count(), 4, "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn the_benchmark_of_a_simulated_gpu_is_the_quick_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_nv"))
        .args(["bench", "--sim", "gh100", "--json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        errors.starts_with("nv: measuring as by --quick"),
        "{errors}"
    );
    let figures: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(figures.len() > 15, "{figures:?}");
    for figure in &figures {
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
    }
}
