//! `nv qmd` on the vendor library's captured launches.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use std::process::{Command, Output};

const CAPTURE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/golden/h200/cuda_launches.json"
);

fn nv(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_nv"))
        .arg("qmd")
        .args(args)
        .output();
    output.expect("the command runs")
}

fn text(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn dump_names_what_a_capture_launches() {
    let output = nv(&["dump", CAPTURE, "--json"]);
    let all: Vec<serde_json::Value> = serde_json::from_str(text(&output)).unwrap();
    assert_eq!(
        all.len(),
        103,
        "every descriptor that the 25 streams write and launch"
    );
    assert!(
        all.iter()
            .all(|qmd| qmd["version"] == "4.0" && qmd["undocumented"] == serde_json::json!([]))
    );
    let cluster = all.iter().filter(|qmd| {
        qmd["place"]
            .as_str()
            .unwrap()
            .starts_with("launches.clus_222.")
    });
    let last = cluster.collect::<Vec<_>>().pop().unwrap();
    assert_eq!(last["launch"]["grid"], serde_json::json!([16, 8, 4]));
    assert_eq!(last["launch"]["cluster"], serde_json::json!([2, 2, 2]));
    assert_eq!(last["fields"]["QMD_TYPE"], "GRID_GPC_CGA");
    assert_eq!(last["fields"]["CONSTANT_BUFFER_SIZE_SHIFTED4[0]"], 0x300);

    let output = nv(&["dump", CAPTURE, "--only", "coop"]);
    let shown = text(&output);
    assert!(
        shown.contains("  # grid 64x1x1 block 128x1x1, program 0x7f35eb7a3d00,"),
        "{shown}"
    );
    assert!(shown.contains("\n  GPU_CGA_WIDTH = 0x40\n"), "{shown}");
    assert!(!shown.contains('\x1b'), "colours go to terminals only");
}

#[test]
fn diff_says_which_fields_differ() {
    let output = nv(&[
        "diff",
        "--of",
        CAPTURE,
        "--only",
        "plain.stream",
        "--only-b",
        "coop",
    ]);
    assert_eq!(output.status.code(), Some(1), "they differ");
    let shown = std::str::from_utf8(&output.stdout).unwrap();
    assert!(
        shown.contains("\n  QMD_TYPE: GRID_CTA -> GRID_GPU_CGA\n"),
        "{shown}"
    );
    assert!(!shown.contains("SASS_VERSION"), "{shown}");
    let output = nv(&["diff", CAPTURE, CAPTURE]);
    assert!(text(&output).ends_with("  no difference\n"));
}

#[test]
fn what_is_no_descriptor_is_refused_by_name() {
    for (args, says) in [
        (
            &["dump", CAPTURE, "--only", "nosuch"][..],
            "no launch descriptor is in it",
        ),
        (
            &["dump", CAPTURE, "--index", "1000"],
            "there is no descriptor 1000, there are 103",
        ),
        (&["dump", "/nonexistent/file"], "/nonexistent/file"),
        (
            &["dump", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
            "Cargo.toml: ",
        ),
    ] {
        let output = nv(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
}
