//! `nv cubin` and `nv fatbin`, run as people run them.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn cubins(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/cubins")
        .join(relative)
}

fn nv(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nv"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the nv program starts");
    // A program that refuses its arguments reads nothing.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the nv program ends")
}

fn on(file: &str, args: &[&str]) -> Output {
    let path = cubins(file);
    let mut args = args.to_vec();
    args.insert(2, path.to_str().expect("a path"));
    nv(&args, b"")
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).expect("JSON")
}

/// What standard error says, for a file or an argument that is no good.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn kernels_are_what_the_vendors_tool_says() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/cubin/vendor.json");
    let golden: Value =
        serde_json::from_slice(&std::fs::read(golden).expect("golden")).expect("JSON");
    let mut compared = 0;
    for file in [
        "11.8/sm_75/vecadd",
        "12.4/sm_90a/cluster",
        "12.8/sm_100/barriers",
        "13.0/sm_100/cluster",
        "13.5/sm_107/smem_static",
    ] {
        let list = json(&on(
            &format!("corpus/{file}.cubin"),
            &["cubin", "kernels", "--json"],
        ));
        for kernel in list.as_array().expect("a list") {
            let name = kernel["kernel"].as_str().expect("a name");
            let says = &golden["files"][format!("{file}.cubin")]["usage"][name];
            assert_eq!(kernel["registers"], says["REG"], "{file} {name}");
            assert_eq!(kernel["stack"], says["STACK"], "{file} {name}");
            let bank = format!("c0:{}", says["CONSTANT[0]"]);
            assert!(
                kernel["banks"]
                    .as_array()
                    .expect("banks")
                    .contains(&bank.into()),
                "{file} {name}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn people_get_tables() {
    let shown = text(&on("corpus/13.0/sm_120/vecadd.cubin", &["cubin", "params"]));
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        rows[0],
        ["kernel", "param", "offset", "bank0", "size", "points", "to"]
    );
    assert_eq!(rows[4], ["vecadd", "3", "0x18", "0x398", "4"]);
    let shown = text(&on("corpus/13.0/sm_100f/vecadd.cubin", &["cubin", "info"]));
    assert!(
        shown.starts_with("architecture  sm_100f\ntoolkit       13.0\nkind          executable\n"),
        "{shown}"
    );
    let shown = text(&on("corpus/13.0/sm_120/vecadd.cubin", &["cubin", "attrs"]));
    assert!(
        shown
            .lines()
            .any(|line| line.contains("EIATTR_REGCOUNT") && line.ends_with("0x8 0xc")),
        "{shown}"
    );
    let shown = text(&on("reloc/fields.sm_90.cubin", &["cubin", "relocs"]));
    assert!(
        shown.contains("R_CUDA_ABS55_16_34 (0x4b)  f       0       .text.f"),
        "{shown}"
    );
    let shown = text(&on("reloc/fields.sm_90.cubin", &["cubin", "symbols"]));
    assert!(
        shown
            .lines()
            .any(|line| line.contains(" k ") && line.contains("kernel")),
        "{shown}"
    );
    let shown = text(&on("reloc/fields.sm_90.cubin", &["cubin", "sections"]));
    assert!(
        shown
            .lines()
            .any(|line| line.contains(".text.k") && line.ends_with("yes")),
        "{shown}"
    );
}

#[test]
fn programs_get_json() {
    let info = json(&on(
        "corpus/13.0/sm_100f/vecadd.cubin",
        &["cubin", "info", "--json"],
    ));
    assert_eq!(info["architecture"], "sm_100f");
    assert_eq!(info["toolkit"], "13.0");
    assert_eq!(info["abi_version"], 8);
    assert_eq!(info["tools"][0]["name"], "ptxas");
    assert_eq!(info["kernels"][0]["kernel"], "vecadd");
    let info = json(&on(
        "corpus/13.0/sm_120/printf.cubin",
        &["cubin", "info", "--json"],
    ));
    assert_eq!(info["undefined"], serde_json::json!(["vprintf"]));
    for view in ["params", "attrs", "relocs", "symbols", "sections"] {
        let list = json(&on(
            "corpus/13.0/sm_120/printf.cubin",
            &["cubin", view, "--json"],
        ));
        assert!(list.as_array().expect("a list").len() > 1, "{view}");
    }
}

#[test]
fn standard_input_is_a_file_too() {
    let file = std::fs::read(cubins("corpus/13.0/sm_120/vecadd.cubin")).expect("a cubin");
    let from_pipe = nv(&["cubin", "sections", "-"], &file);
    assert_eq!(
        text(&from_pipe),
        text(&on(
            "corpus/13.0/sm_120/vecadd.cubin",
            &["cubin", "sections"]
        ))
    );
    let text = refusal(&nv(&["cubin", "info", "-"], &file[..3000]));
    assert!(
        text.starts_with("nv: -: section table: 1408 bytes at offset 0x"),
        "{text}"
    );
}

#[test]
fn other_files_are_told_what_they_are() {
    for (file, says) in [
        (
            "reloc/fields.ptx",
            "it is PTX text; assemble it with ptxas -arch first",
        ),
        (
            "fatbin/13.0_program",
            "it is an x86-64 ELF file; look for a fatbin in its .nv_fatbin section (nv fatbin list",
        ),
        (
            "fatbin/13.0_vecadd_all.fatbin",
            "it is a fatbin; take the entry for the device out of it first (nv fatbin list",
        ),
        (
            "corpus/kernels/vecadd.cu",
            "it is text; compile with nvcc -cubin or ptxas to make one",
        ),
    ] {
        let text = refusal(&on(file, &["cubin", "info"]));
        assert!(text.contains(says), "{text}");
        assert!(
            text.contains(cubins(file).to_str().expect("a path")),
            "{text}"
        );
    }
    let text = refusal(&on("nowhere.cubin", &["cubin", "info"]));
    assert!(text.contains("No such file"), "{text}");
    let text = refusal(&on("corpus/kernels/vecadd.cu", &["fatbin", "list"]));
    assert!(
        text.contains("there is no fatbin here: it is text"),
        "{text}"
    );
}

#[test]
fn a_fault_is_pointed_at() {
    let mut file = std::fs::read(cubins("corpus/13.0/sm_120/vecadd.cubin")).expect("a cubin");
    let at = file
        .windows(4)
        .position(|bytes| bytes == [4, 0x2f, 8, 0])
        .expect("REGCOUNT");
    file[at] = 9;
    let text = refusal(&nv(&["cubin", "kernels", "-"], &file));
    assert_eq!(
        text,
        "nv: -: attribute format of \".nv.info\" cannot be 0x9 (offset 0x0)\n"
    );
}

#[test]
fn fatbins_list_and_extract() {
    let list = json(&on(
        "fatbin/13.0_vecadd_all.fatbin",
        &["fatbin", "list", "--json"],
    ));
    let targets: Vec<_> = list
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["target"])
        .collect();
    assert_eq!(targets, ["sm_75", "sm_80", "sm_90", "sm_120", "compute_80"]);
    assert_eq!(list[0]["compression"], "zstd");

    let taken = on(
        "fatbin/13.0_vecadd_all.fatbin",
        &["fatbin", "extract", "--sm", "sm_90", "--output", "-"],
    );
    assert!(taken.status.success());
    let info = json(&nv(&["cubin", "info", "--json", "-"], &taken.stdout));
    assert_eq!(info["architecture"], "sm_90");
    let same = on(
        "fatbin/13.0_vecadd_all.fatbin",
        &["fatbin", "extract", "--entry", "2", "--output", "-"],
    );
    assert_eq!(same.stdout, taken.stdout);

    let directory = std::env::temp_dir().join(format!("nv-fatbin-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let all = on(
        "fatbin/13.0_nvcc_rdc_lto.fatbin",
        &[
            "fatbin",
            "extract",
            "-o",
            directory.to_str().expect("a path"),
        ],
    );
    assert!(
        text(&all).contains("13.0_nvcc_rdc_lto.0.sm_90.cubin: 7840 bytes"),
        "{all:?}"
    );
    assert!(
        String::from_utf8_lossy(&all.stderr).contains("left out: the LTO entry at offset 0x870"),
        "{all:?}"
    );
    std::fs::remove_dir_all(&directory).expect("it goes");

    let text = refusal(&on(
        "fatbin/13.0_vecadd_all.fatbin",
        &["fatbin", "extract", "--sm", "61"],
    ));
    assert!(
        text.ends_with(
            "nothing in the file runs on sm_61: it holds sm_75, sm_80, sm_90, sm_120, compute_80\n"
        ),
        "{text}"
    );
    let text = refusal(&on(
        "fatbin/13.0_vecadd_all.fatbin",
        &["fatbin", "extract", "--entry", "9"],
    ));
    assert!(
        text.ends_with("there is no entry 9: the last is 4\n"),
        "{text}"
    );
}
