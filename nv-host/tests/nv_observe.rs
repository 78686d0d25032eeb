//! `nv run --profile` and `NV_TRACE`, as a shell sees them: over simulated GPUs.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `vector_add` on a simulated Hopper.
fn run(more: &[&str], trace: Option<&str>) -> Output {
    let cubin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins/demo/demo.sm_90.cubin");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nv"));
    command.arg("run").arg(cubin).args([
        "vector_add",
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
    ]);
    if !more.contains(&"--gpu") {
        command.args(["--sim", "gh100"]);
    }
    command.args(more).env_remove("NV_TRACE");
    if let Some(trace) = trace {
        command.env("NV_TRACE", trace);
    }
    command.output().expect("nv starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// A file of this test's own, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("nv-observe-{}-{name}", std::process::id())))
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0)
            .unwrap_or_else(|error| panic!("{}: {error}", self.0.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_profile_is_a_table_a_trace_and_a_picture() {
    let (trace, picture, timeline) = (
        Scratch::new("trace.json"),
        Scratch::new("picture.svg"),
        Scratch::new("timeline.svg"),
    );
    let output = run(
        &[
            "--repeat",
            "7",
            "--profile",
            &format!("--profile={}", trace.0.display()),
            &format!("--profile={}", picture.0.display()),
            "--timeline",
            timeline.0.to_str().unwrap(),
        ],
        None,
    );
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors, "");
    let table = text(&output.stdout);
    let row = |name: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no row {name} in {table}"));
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("vector_add   ")[1], "7");
    // Three buffers up, three down.
    assert_eq!(row("copy (24000 bytes)")[3], "6");

    let events: Value = serde_json::from_str(&trace.read()).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let mut names: BTreeMap<(u64, &str), u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let name = event["name"].as_str().unwrap();
        *names
            .entry((event["pid"].as_u64().unwrap(), name))
            .or_default() += 1;
    }
    let expected = [
        (1, "copy", 6),
        (1, "vector_add", 7),
        (2, "copy", 6),
        (2, "vector_add", 7),
    ];
    let expected = expected.map(|(process, name, count)| ((process, name), count));
    assert_eq!(names, BTreeMap::from(expected));

    assert_eq!(picture.read(), timeline.read());
    let svg = picture.read();
    let document = roxmltree::Document::parse(&svg).expect("well-formed");
    let drawn: u64 = document
        .descendants()
        .filter_map(|node| node.attribute("data-records")?.parse::<u64>().ok())
        .sum();
    assert_eq!(drawn, 13);
}

#[test]
fn a_profile_in_json_adds_up() {
    let output = run(&["--repeat", "3", "--profile", "--json"], None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let profile = &report["profile"];
    assert_eq!(profile["records"], 9);
    assert_eq!(
        (&profile["lost_full"], &profile["lost_unfinished"]),
        (&0.into(), &0.into())
    );
    let rows = profile["rows"].as_array().unwrap();
    let share: f64 = rows.iter().map(|row| row["share"].as_f64().unwrap()).sum();
    assert!((share - 100.0).abs() < 1e-6, "{share}");
    for row in rows {
        let [total, mean, min, max] =
            ["total_us", "mean_us", "min_us", "max_us"].map(|name| row[name].as_f64().unwrap());
        let count = row["count"].as_f64().unwrap();
        assert!(
            0.0 < min && min <= mean && mean <= max && max <= total,
            "{row}"
        );
        assert!((total / count - mean).abs() < 0.002, "{row}");
    }
    // Without the option there is none.
    let report: Value = serde_json::from_slice(&run(&["--json"], None).stdout).unwrap();
    assert!(report.get("profile").is_none());
}

#[test]
fn the_demonstration_has_a_profile_too() {
    let output = Command::new(env!("CARGO_BIN_EXE_nv"))
        .args(["demo", "--sim", "ga100", "--profile", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["profile"]["rows"].as_array().unwrap();
    let kernels = rows.iter().filter(|row| row["what"] == "kernel").count();
    assert_eq!(kernels, 4, "{rows:?}");
}

#[test]
fn files_of_another_kind_are_refused() {
    for (file, code) in [("profile.txt", 2), ("/no/such/folder/x.json", 4)] {
        let output = run(&[&format!("--profile={file}")], None);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(file) || errors.contains(".svg"), "{errors}");
    }
}

#[test]
fn calls_are_traced_by_name_with_their_parameters() {
    let quiet = run(&[], None);
    let output = run(&[], Some("1"));
    let calls = text(&output.stderr);
    for part in [
        "open simulated gh100, driver 580.",
        "RM_ALLOC NV01_DEVICE_0 0xcaf00000 below 0xc1d00000 (client)  NV_OK",
        "NV0080_ALLOC_PARAMETERS hClientShare=0xc1d00000",
        "RM_CONTROL NV0080_CTRL_CMD_GPU_GET_CLASSLIST 0xcaf00000 (NV01_DEVICE_0)",
        "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A",
        "-> workSubmitToken=",
        "NV_ESC_RM_MAP_MEMORY_DMA",
        "dmaOffset=0x",
        "close client 0xc1d00000",
    ] {
        assert!(calls.contains(part), "no {part:?} in {calls}");
    }
    assert!(
        !calls.contains("SEND_SIGNALING_PCAS"),
        "no streams were asked for"
    );
    // Standard output is what it is without, less the time.
    let untimed = |output: &Output| text(&output.stdout).lines().skip(1).collect::<String>();
    assert_eq!(untimed(&quiet), untimed(&output));
    assert_eq!(text(&quiet.stderr), "");

    let uvm = text(&run(&["--map", "uvm"], Some("calls")).stderr);
    for part in [
        "UVM_REGISTER_GPU ",
        "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS base=0x",
        "UVM_FREE  NV_OK",
    ] {
        assert!(uvm.contains(part), "no {part:?} in {uvm}");
    }
}

#[test]
fn calls_in_json_are_one_object_a_line_and_every_object_is_freed() {
    let lines = text(&run(&[], Some("json")).stderr);
    let calls: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let of = |call: &'static str| calls.iter().filter(move |object| object["call"] == call);
    let made: BTreeMap<&str, &str> = of("NV_ESC_RM_ALLOC")
        .map(|object| {
            (
                object["made"].as_str().unwrap(),
                object["about"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(made.len() > 10, "{made:?}");
    let freed: Vec<&str> = of("NV_ESC_RM_FREE")
        .map(|object| {
            object["object"]
                .as_str()
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
        })
        .collect();
    for (object, class) in made {
        assert!(freed.contains(&object), "{object}, a {class}, is not freed");
    }
    for call in calls.iter().filter(|call| call.get("span").is_some()) {
        assert!(
            call["status"].is_string() && call["took_us"].as_f64().unwrap() >= 0.0,
            "{call}"
        );
    }
    assert!(
        calls
            .windows(2)
            .all(|pair| pair[0]["time_us"].as_f64() <= pair[1]["time_us"].as_f64())
    );
}

#[test]
fn streams_are_dumped_before_the_doorbell() {
    let streams = text(&run(&[], Some("stream")).stderr);
    for part in [
        "submission 1: set-up",
        "SET_OBJECT 0x0000cbc0 NVCLASS=HOPPER_COMPUTE_A",
        ": copy of 4000 bytes, at 0x",
        "LINE_LENGTH_IN 0x00000fa0",
        ": launch of vector_add, grid 4x1x1, block 256x1x1",
        "SEND_SIGNALING_PCAS2_B 0x00000009 PCAS_ACTION=PREFETCH_SCHEDULE",
        "QMD 4.0",
        "GRID_WIDTH = 0x4",
        "CTA_THREAD_DIMENSION0 = 0x100",
    ] {
        assert!(streams.contains(part), "no {part:?} in {streams}");
    }
    assert!(!streams.contains("NV_ESC_"), "no calls were asked for");
    assert_eq!(streams.matches("QMD 4.0").count(), 1, "one launch");

    let lines = text(&run(&[], Some("json,stream")).stderr);
    let launch = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|object| !object["qmd"].as_array().unwrap().is_empty())
        .expect("a launch");
    let methods = launch["methods"].as_array().unwrap();
    assert!(
        methods
            .iter()
            .any(|line| line.as_str().unwrap().contains("SEND_PCAS_A"))
    );
}

#[test]
fn what_finds_a_gpu_is_traced_too() {
    let output = run(&["--gpu", "0"], Some("1"));
    let calls = text(&output.stderr);
    if Path::new("/dev/nvidiactl").exists() {
        for part in [
            "open /dev/nvidiactl  done",
            "NV_ESC_CARD_INFO ",
            "NV_ESC_RM_ALLOC fd ",
        ] {
            assert!(calls.contains(part), "no {part:?} in {calls}");
        }
    } else {
        assert_eq!(output.status.code(), Some(3));
        assert!(calls.contains("open /dev/nvidiactl  ENOENT"), "{calls}");
    }
}

#[test]
fn words_that_mean_nothing_are_refused() {
    let output = run(&[], Some("verbose"));
    assert_eq!(output.status.code(), Some(2));
    let errors = text(&output.stderr);
    assert!(
        errors.contains("NV_TRACE=verbose") && errors.contains("stream"),
        "{errors}"
    );
    assert_eq!(text(&run(&[], Some("0")).stderr), "");
}
