//! `nv demo`, `nv run` and their failures, as a shell sees them: over the simulated GPUs.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn cubin(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/cubins")
        .join(name)
}

fn nv(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nv"))
        .args(args)
        .output()
        .expect("nv starts")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)))
}

/// Runs `nv` and checks its exit code and that standard error says each of `says`.
fn fails(args: &[&str], code: i32, says: &[&str]) {
    let output = nv(args);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    for word in says {
        assert!(
            text.contains(word),
            "{args:?}: {text:?} does not say {word:?}"
        );
    }
}

#[test]
fn demo_is_right_on_every_simulated_gpu() {
    for (chip, sm) in [
        ("ga100", "sm_80"),
        ("ga102", "sm_86"),
        ("ad102", "sm_89"),
        ("gh100", "sm_90"),
        ("gb202", "sm_120"),
    ] {
        let output = nv(&["demo", "--sim", chip, "--json"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{chip}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report = json(&output);
        assert_eq!(report["architecture"], sm);
        assert_eq!(report["simulated"], true);
        let kernels = report["kernels"].as_array().unwrap();
        let names: Vec<_> = kernels
            .iter()
            .map(|row| row["kernel"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["vector_add", "reduce_sum", "matrix_multiply", "local_walk"]
        );
        for row in kernels {
            assert_eq!(row["wrong"], 0, "{chip}: {row}");
            assert!(
                row["elements"].as_u64().unwrap() > 0 && row["registers"].as_u64().unwrap() > 0
            );
        }
    }
}

#[test]
fn demo_prints_a_table_and_says_which_gpu_it_took() {
    let output = nv(&["demo", "--sim", "gh100", "--map", "uvm"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for word in [
        "H200",
        "simulated",
        "memory mapped by UVM",
        "vector_add",
        "257x1x1",
        "registers",
        "65536 elements",
    ] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn run_takes_arguments_and_gives_results() {
    let file = cubin("demo/demo.sm_90.cubin");
    let out = std::env::temp_dir().join(format!("nv-run-test-{}", std::process::id()));
    let output = nv(&[
        "run",
        file.to_str().unwrap(),
        "vector_add",
        "--sim",
        "gh100",
        "--grid",
        "4",
        "--block",
        "256",
        "--arg",
        "f32[1000]=range",
        "--arg",
        "f32[1000]=fill:0.5",
        "--arg",
        "f32[1000]=zero",
        "--arg",
        "u32:1000",
        "--out",
        &format!("2={}", out.display()),
        "--print",
        "3",
        "--json",
    ]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report = json(&output);
    assert_eq!(
        report["buffers"][2]["first"],
        serde_json::json!([0.5, 1.5, 2.5])
    );
    assert_eq!(report["buffers"][2]["count"], 1000);
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(&out).unwrap();
    let values: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    let expected: Vec<f32> = (0..1000).map(|i| i as f32 + 0.5).collect();
    assert_eq!(values, expected);
}

#[test]
fn bad_input_ends_with_its_exit_code_and_says_what_is_wrong() {
    let good = cubin("demo/demo.sm_90.cubin");
    let good = good.to_str().unwrap();
    let other = cubin("demo/demo.sm_120.cubin");
    let source = cubin("demo/demo.cu");
    let sim = ["--sim", "gh100"];
    let run = |file: &str, rest: &[&str], code, says: &[&str]| {
        let mut args = vec!["run", file];
        args.extend(rest);
        args.extend(sim);
        fails(&args, code, says);
    };
    let shape = ["--grid", "1", "--block", "32"];
    let with = |kernel, rest: &[&'static str]| [&[kernel][..], &shape, rest].concat();
    run(
        "/no/such/file",
        &with("vector_add", &[]),
        4,
        &["/no/such/file", "No such file"],
    );
    run(source.to_str().unwrap(), &with("vector_add", &[]), 4, &[]);
    run(
        other.to_str().unwrap(),
        &with("vector_add", &[]),
        4,
        &["sm_120", "sm_90"],
    );
    run(
        good,
        &with("vector_sub", &[]),
        4,
        &["vector_sub", "vector_add", "local_walk"],
    );
    run(good, &with("vector_add", &[]), 4, &["0 arguments", "4"]);
    run(
        good,
        &with("vector_add", &["--arg", "u32:1"]),
        4,
        &["argument 0", "4 bytes", "8"],
    );
    run(good, &with("vector_add", &["--arg", "u33:1"]), 2, &["u33"]);
    run(
        good,
        &with("vector_add", &["--out", "0=/tmp/x"]),
        4,
        &["argument 0 is no buffer"],
    );
    let big = [
        "vector_add",
        "--grid",
        "1",
        "--block",
        "1025",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "u32:1",
    ];
    run(good, &big, 4, &["1025", "1024"]);
    let none = [
        "vector_add",
        "--grid",
        "0",
        "--block",
        "32",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "f32[1]=zero",
        "--arg",
        "u32:1",
    ];
    run(good, &none, 4, &["vector_add"]);
    fails(
        &["run", good, "vector_add", "--grid", "x", "--block", "1"],
        2,
        &["x"],
    );
    fails(&["demo", "--sim", "gx999"], 2, &["gx999"]);
    fails(&["nothing"], 2, &["nothing"]);
}

#[test]
fn faults_and_time_limits_have_exit_codes_of_their_own() {
    let file = cubin("faults/faults.sm_90.cubin");
    let file = file.to_str().unwrap();
    let run = |kernel: &'static str, rest: &[&'static str]| {
        [
            &[
                "run",
                file,
                kernel,
                "--sim",
                "gh100",
                "--block",
                "32",
                "--arg",
                "u64[16]=fill:7",
            ][..],
            rest,
        ]
        .concat()
    };
    fails(
        &run("badaddr", &["--grid", "200"]),
        5,
        &[
            "illegal address in kernel badaddr: write of 0x",
            "past the end of a buffer of 128 bytes at 0x",
            "error 31 (FIFO_ERROR_MMU_ERR_FLT)",
        ],
    );
    fails(
        &run("misalign", &["--grid", "1"]),
        5,
        &["misalign", "misaligned address"],
    );
    fails(
        &run("loop", &["--grid", "1", "--limit", "0.3"]),
        6,
        &["loop", "300ms", "132 of 132 SMs read, 0 with an error"],
    );
}

#[test]
fn faults_are_told_to_programs() {
    let file = cubin("faults/faults.sm_90.cubin");
    let report = |kernel: &str, rest: &[&str]| {
        let common = ["--sim", "gh100", "--block", "32", "--json"];
        let head = ["run", file.to_str().unwrap(), kernel];
        let output = nv(&[&head[..], &common, rest].concat());
        json(&output)["error"].take()
    };
    let seven = "u64[16]=fill:7";
    let error = report("badaddr", &["--grid", "200", "--arg", seven]);
    assert_eq!(
        (&error["kind"], &error["code"], &error["code_name"]),
        (
            &"illegal_address".into(),
            &31.into(),
            &"FIFO_ERROR_MMU_ERR_FLT".into()
        )
    );
    let access = &error["accesses"][0];
    assert_eq!(
        (
            &access["access"],
            &access["memory"]["relation"],
            &access["memory"]["bytes"]
        ),
        (&"write".into(), &"past".into(), &128.into())
    );
    assert_eq!(access["memory"]["distance"], (8_u64 << 33) - 128);
    assert_eq!(error["submission"]["launches"][0]["grid"][0], 200);
    let error = report("misalign", &["--grid", "1", "--arg", seven]);
    let sm = &error["sms"][0];
    assert_eq!(
        (&sm["kind"], &sm["kernel"], &sm["memory"]["relation"]),
        (
            &"misaligned_address".into(),
            &"misalign".into(),
            &"inside".into()
        )
    );
    assert!(
        sm["instruction"].as_str().unwrap().starts_with("STG"),
        "{sm}"
    );
    let error = report("ok", &["--grid", "1", "--arg", "u64:0"]);
    assert_eq!(error["accesses"][0]["memory"]["relation"], "null");
    let limit = ["--grid", "1", "--arg", seven, "--limit", "0.25"];
    let error = report("loop", &limit);
    assert_eq!(
        (&error["kind"], &error["limit_ms"], &error["sms_read"]),
        (&"time_limit".into(), &250.0.into(), &132.into())
    );
    assert_eq!(error["kernel"], "loop");
}

/// Words go to the GPU as they are, and what is wrong with them is said.
#[test]
fn command_words_run() {
    let path = std::env::temp_dir().join(format!("nv-push-run-{}", std::process::id()));
    let run = |words: &str| {
        std::fs::write(&path, words).unwrap();
        nv(&[
            "push",
            "run",
            path.to_str().unwrap(),
            "--sim",
            "gh100",
            "--json",
        ])
    };
    // WAIT_FOR_IDLE of the compute class, then a method that it does not have.
    let output = run("20012044 0\n");
    assert_eq!(
        (output.status.code(), &*output.stdout),
        (Some(0), &b"2 words done on NVIDIA H200 (simulated)\n"[..])
    );
    let output = run("20012044 0 200123fc 77\n");
    assert_eq!(output.status.code(), Some(5));
    let error = &json(&output)["error"];
    assert_eq!(error["kind"], "bad_method");
    assert_eq!(
        error["submission"]["doubts"][0],
        "word 2: HOPPER_COMPUTE_A has no method 0xff0 (data 0x77)"
    );
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_missing_gpu_is_said_with_a_remedy() {
    if Path::new("/dev/nvidiactl").exists() {
        return fails(&["demo", "--gpu", "77"], 3, &["77"]);
    }
    fails(
        &["demo", "--gpu", "0"],
        3,
        &["/dev/nvidiactl", "ENOENT", "modprobe"],
    );
}

#[test]
fn the_binary_links_no_vendor_library() {
    use object::{Object, ObjectSymbol};
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_nv")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let vendor = |name: &str| {
        name.starts_with("cuda")
            || (name.starts_with("cu") && name.chars().nth(2).is_some_and(char::is_uppercase))
    };
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().unwrap();
        assert!(!vendor(name), "{name}");
    }
    let needed: Vec<String> = needed(&bytes);
    assert!(!needed.is_empty());
    for library in needed {
        let known = [
            "libc.so",
            "libgcc_s.so",
            "libm.so",
            "ld-linux",
            "libpthread",
            "libdl",
            "librt",
        ];
        assert!(
            known.iter().any(|name| library.starts_with(name)),
            "{library}"
        );
    }
}

/// The libraries that a program's dynamic section names.
fn needed(bytes: &[u8]) -> Vec<String> {
    use object::read::elf::{Dyn, FileHeader};
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, bytes).unwrap();
    let (entries, link) = sections.dynamic(endian, bytes).unwrap().unwrap();
    let strings = sections.strings(endian, bytes, link).unwrap();
    entries
        .iter()
        .filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED)
        .map(|entry| String::from_utf8_lossy(entry.string(endian, strings).unwrap()).into_owned())
        .collect()
}
