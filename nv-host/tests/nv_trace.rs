//! `nv trace` on a program that drives a made-up kernel driver: both are built from `trace/*.c` with the C compiler
//! that Rust links with anyway.
#![cfg(feature = "cli")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nv_proto::qmd::{Qmd, Version};
use serde_json::{Value, json};

/// A folder with the program, the driver, its device nodes, and the descriptor that the program launches.
struct Stage(PathBuf);

impl Stage {
    fn new(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("trace-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let source = |file: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/trace")
                .join(file)
        };
        cc(
            &folder,
            &["-shared", "-fPIC", "-o", "fake.so"],
            &source("fake.c"),
        );
        cc(&folder, &["-o", "program"], &source("program.c"));
        for node in ["devctl", "dev-uvm"] {
            File::create(folder.join(node))
                .unwrap()
                .set_len(1 << 20)
                .unwrap();
        }
        let mut qmd = Qmd::new(Version::V04_00);
        qmd.set_field(Version::V04_00.field("GRID_WIDTH").unwrap(), 0, 77)
            .unwrap();
        fs::write(folder.join("qmd"), qmd.as_bytes()).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// `nv trace` with options, on the program.
    fn trace(&self, options: &[&str]) -> Output {
        let mut nv = Command::new(env!("CARGO_BIN_EXE_nv"));
        nv.arg("trace")
            .args(options)
            .arg("--")
            .arg(self.path("program"))
            .arg(self.path("qmd"));
        nv.env("NV_TRACE_DEV", self.path("dev"))
            .env("LD_PRELOAD", self.path("fake.so"));
        nv.output().unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cc(folder: &Path, options: &[&str], source: &Path) {
    let mut cc = Command::new("cc");
    let made = cc
        .current_dir(folder)
        .args(options)
        .arg(source)
        .arg("-ldl")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn every_call_is_named_and_every_command_buffer_decoded() {
    let stage = Stage::new("text");
    let output = stage.trace(&[
        "--driver",
        "580.159.04",
        "--out",
        stage.path("out").to_str().unwrap(),
    ]);
    assert_eq!(
        output.status.code(),
        Some(3),
        "the program's own: {output:?}"
    );
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("done\n", ""));
    let shown = fs::read_to_string(stage.path("out")).unwrap();
    let dev = stage.path("dev").display().to_string();
    let mut rest = shown.as_str();
    // In this order.
    for part in [
        "start ",
        &format!("open {dev}ctl = "),
        &format!("open {dev}-uvm = "),
        &format!("open {dev}7: No such file or directory"),
        "RM_ALLOC NV01_ROOT_CLIENT 0xc1d00001",
        "RM_ALLOC 0xbad 0x5c0000ff below 0x5c000001 of client 0xc1d00001",
        "NV_ERR_INVALID_CLASS (0x22)",
        "RM_CONTROL",
        "Bad address",
        "RM_CONTROL NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES on 0x5c000001 of client 0xc1d00001",
        "=0x1",
        "NV_ESC_RM_MAP_MEMORY",
        "pLinearAddress=0x1000",
        &format!("mmap {dev}ctl"),
        "NV_ESC_RM_MAP_MEMORY_DMA",
        "dmaOffset=0x200000000",
        "UVM_MAP_EXTERNAL_ALLOCATION",
        "base=0x200800000",
        "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A 0x5c000020 below 0x5c000001",
        "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
        "-> cid=0x20",
        "RM_ALLOC HOPPER_COMPUTE_A 0x5c000021 below 0x5c000020",
        "channel 0x5c000020 (HOPPER_CHANNEL_GPFIFO_A) of client 0xc1d00001: 3 new entries, GP_PUT 3 of 8, seen before a call",
        "entry 0: 6 words at 0x200800000\n",
        "SET_OBJECT 0x0000cbc0",
        "HOPPER_COMPUTE_A           SEND_PCAS_A 0x02008010",
        "SEND_SIGNALING_PCAS2_B 0x00000009 PCAS_ACTION=PREFETCH_SCHEDULE",
        "launched from 0x200801000:\n         QMD 4.0",
        "GRID_WIDTH = 0x4d",
        "entry 1: 5 words at 0x200900000, not mapped for the CPU",
        "entry 2: Nop 0x7",
        "7 new entries, GP_PUT 4 of 8",
        "LOST: the ring went round",
        "entry 5: 2 words at 0x200800010",
        "entry 7: ",
        "entry 0: ",
        "entry 3: ",
        "channel 0x5c000030 (HOPPER_CHANNEL_GPFIFO_A) of client 0xc1d00001: GP_PUT is not mapped for the CPU",
        "NV_ESC_RM_FREE",
        "hObjectOld=0x5c000030",
        "1 new entry, GP_PUT 5 of 8, seen before an object is freed",
        "entry 4: 2 words",
        "hObjectOld=0x5c000020",
        "munmap 0x1000 bytes",
        "munmap 0x1000 bytes",
        "NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES",
        "close ",
        "(2 refused)",
        "11 ring entries, 1 launches seen",
    ] {
        let found = rest.find(part);
        let found = found.unwrap_or_else(|| panic!("{part:?} is not in\n{rest}\n--- of\n{shown}"));
        rest = &rest[found + part.len()..];
    }
}

#[test]
fn json_is_one_object_a_line_and_records_can_be_kept() {
    let stage = Stage::new("json");
    let kept = stage.path("kept");
    let kept = kept.to_str().unwrap();
    let output = stage.trace(&["--json", "--driver", "580.159.04", "--keep", kept]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let shown = text(&output.stdout).strip_prefix("done\n").unwrap();
    let events: Vec<Value> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let named = |name: &str| {
        events
            .iter()
            .filter(|event| event["name"] == name)
            .collect::<Vec<_>>()
    };

    let alloc = named("NV_ESC_RM_ALLOC");
    let about: Vec<_> = alloc
        .iter()
        .map(|event| event["about"].as_str().unwrap())
        .collect();
    assert_eq!(
        about,
        [
            "NV01_ROOT_CLIENT",
            "0xbad",
            "HOPPER_CHANNEL_GPFIFO_A",
            "HOPPER_COMPUTE_A",
            "HOPPER_CHANNEL_GPFIFO_A"
        ]
    );
    assert_eq!(
        (&alloc[1]["status"], &alloc[1]["failed"]),
        (&json!(0x22), &json!(true))
    );
    assert_eq!(alloc[2]["changed"], json!({ "cid": "0x20" }));
    assert_eq!(alloc[2]["params_in"].as_str().unwrap().len(), 2 * 0x178);
    let refused = events.iter().find(|event| event["errno"] == 14).unwrap();
    assert_eq!(
        (&refused["result"], &refused["call_in"]),
        (&json!(-1), &json!(""))
    );
    // The carrier is seen through.
    let dma = named("NV_ESC_RM_MAP_MEMORY_DMA");
    assert_eq!(
        (&dma[0]["request"], &dma[0]["status"]),
        (&json!("0xc01046d3"), &json!(0))
    );
    let uvm = named("UVM_MAP_EXTERNAL_ALLOCATION");
    assert_eq!((uvm.len(), &uvm[0]["status_name"]), (2, &json!("NV_OK")));
    assert_eq!(uvm[0]["call_in"].as_str().unwrap().len(), 2 * 9264);
    // The child of the fork.
    let control = named("NV_ESC_RM_CONTROL");
    let mut processes: Vec<_> = control
        .iter()
        .map(|event| event["process"].as_u64().unwrap())
        .collect();
    processes.dedup();
    assert_eq!(
        processes.len(),
        3,
        "the program, its child, the program: {processes:?}"
    );

    let rings: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "ring")
        .collect();
    let put: Vec<_> = rings
        .iter()
        .map(|ring| {
            (
                ring["gp_put"].as_u64().unwrap(),
                ring["lost"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(put, [(3, false), (4, true), (0, false), (5, false)]);
    let entry = &rings[0]["entries"][0];
    assert_eq!(entry["lines"][1]["name"], "SEND_PCAS_A");
    assert_eq!(entry["descriptors"][0]["version"], "4.0");
    assert_eq!(entry["words"].as_array().unwrap().len(), 6);

    // What a former run left in the ring is nothing new.
    let later = stage.trace(&["--json", "--only", "commands"]);
    let later: Vec<Value> = text(&later.stdout)
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let seen = |rings: &mut dyn Iterator<Item = &Value>| {
        rings
            .map(|ring| ring["entries"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut later.iter()), seen(&mut rings.iter().copied()));

    // The same from what was kept; and what was cut short is shown as far as it goes.
    let from = |file: &str, options: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_nv"))
            .args(["trace", "--from", file])
            .args(options)
            .output()
            .unwrap()
    };
    let again = from(kept, &["--json", "--driver", "580.159.04"]);
    assert!(again.status.success());
    assert_eq!(text(&again.stdout), shown);
    let bytes = fs::read(kept).unwrap();
    fs::write(stage.path("cut"), &bytes[..bytes.len() - 5]).unwrap();
    let cut = from(
        stage.path("cut").to_str().unwrap(),
        &["--brief", "--only", "calls"],
    );
    assert!(
        text(&cut.stderr).contains("the file was cut short"),
        "{cut:?}"
    );
    assert!(text(&cut.stdout).contains("RM_ALLOC HOPPER_CHANNEL_GPFIFO_A"));
    assert!(!text(&cut.stdout).contains("GP_PUT") && !text(&cut.stdout).contains("hRoot="));
}

#[test]
fn rings_are_looked_at_while_the_program_makes_no_call() {
    let stage = Stage::new("every");
    let kept = stage.path("kept");
    let output = stage.trace(&["--every", "1", "--json", "--keep", kept.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    // Whichever looks first, each entry is seen once.
    let shown = text(&output.stdout).strip_prefix("done\n").unwrap();
    let entries: usize = shown
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["event"] == "ring")
        .map(|event| event["entries"].as_array().unwrap().len())
        .sum();
    assert!((4..=13).contains(&entries), "{entries} of {shown}");
}

#[test]
fn failures_are_named() {
    let nv = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_nv"))
            .arg("trace")
            .args(args)
            .output()
            .unwrap()
    };
    let missing = nv(&["--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(
        text(&missing.stderr).contains("/no/such/program cannot be run: No such file"),
        "{missing:?}"
    );
    assert_eq!(nv(&[]).status.code(), Some(2));
    assert_eq!(nv(&["--from", "/no/such/file"]).status.code(), Some(4));
    let killed = nv(&["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
    // A program that uses no device.
    let quiet = nv(&["--", "sh", "-c", "exit 5"]);
    assert_eq!(quiet.status.code(), Some(5));
    assert!(
        text(&quiet.stdout).contains("0 calls (0 refused)"),
        "{quiet:?}"
    );
}

/// Records as the library would have made them of a sequence recorded on an H200.
fn records_of(name: &str) -> (Vec<u8>, Vec<Value>) {
    use nv_trace::record::{Builder, Kind, MAGIC, Stamp};

    let path = format!(
        "{}/../tests/golden/rm/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let calls = json["calls"].as_array().unwrap().clone();
    let bytes = |text: &Value| -> Vec<u8> {
        let digits = text.as_str().unwrap_or_default().as_bytes().chunks_exact(2);
        digits
            .map(|pair| u8::from_str_radix(text_of(pair), 16).unwrap())
            .collect()
    };
    fn text_of(pair: &[u8]) -> &str {
        std::str::from_utf8(pair).unwrap()
    }
    let number = |text: &Value| {
        u32::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    let mut file = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let mut stamp = Stamp {
        process: 1,
        thread: 1,
        time: 5,
        id: 0,
    };
    let mut start = Builder::new(&mut buffer, Kind::Start, stamp, &[MAGIC]);
    start.bytes(b"/bin/recorded");
    start.bytes(b"580.159.04");
    file.extend_from_slice(start.finish());
    for call in &calls {
        let mut own = [bytes(&call["params_in"]), bytes(&call["params_out"])];
        let mut inner = [Vec::new(), Vec::new()];
        match call["kind"].as_str().unwrap() {
            "RM_ALLOC" => {
                inner = std::mem::replace(
                    &mut own,
                    [bytes(&call["call_in"]), bytes(&call["call_out"])],
                )
            }
            "RM_CONTROL" => {
                let mut control = vec![0; 32];
                control[4..8].copy_from_slice(&number(&call["object"]).to_le_bytes());
                control[8..12].copy_from_slice(&number(&call["command"]).to_le_bytes());
                inner = std::mem::replace(&mut own, [control.clone(), control]);
            }
            _ => {}
        }
        stamp.id += 1;
        stamp.time += 1000;
        let request = u64::from(number(&call["request"]));
        let numbers = [
            request,
            4,
            request,
            own[0].len() as u64,
            inner[0].len() as u64,
            0,
        ];
        let mut begins = Builder::new(&mut buffer, Kind::Call, stamp, &numbers);
        begins.bytes(call["node"].as_str().unwrap().as_bytes());
        begins.bytes(&own[0]);
        begins.bytes(&inner[0]);
        file.extend_from_slice(begins.finish());
        let mut ends = Builder::new(&mut buffer, Kind::Return, stamp, &[0, 0, 100]);
        ends.bytes(&own[1]);
        ends.bytes(&inner[1]);
        file.extend_from_slice(ends.finish());
    }
    (file, calls)
}

#[test]
fn a_recorded_sequence_is_named_whole() {
    for name in ["h200_with_uvm", "h200_without_uvm"] {
        let (file, calls) = records_of(name);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}", std::process::id()));
        fs::write(&path, file).unwrap();
        let mut nv = Command::new(env!("CARGO_BIN_EXE_nv"));
        let output = nv
            .args(["trace", "--json", "--from"])
            .arg(&path)
            .output()
            .unwrap();
        fs::remove_file(&path).unwrap();
        assert!(output.status.success(), "{output:?}");
        let events: Vec<Value> = text(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let named: Vec<_> = events
            .iter()
            .filter(|event| event["event"] == "call")
            .collect();
        assert_eq!(named.len(), calls.len());
        let mut structures = 0;
        for (event, call) in named.iter().zip(&calls) {
            let name = event["name"].as_str().unwrap();
            assert!(
                name.starts_with("NV_ESC_") || name.starts_with("UVM_"),
                "{event}"
            );
            assert_eq!(event["failed"], false, "{event}");
            match call["kind"].as_str().unwrap() {
                "RM_ALLOC" | "RM_CONTROL" => {
                    let about = event["about"].as_str().unwrap();
                    assert!(!about.starts_with("0x"), "{event}");
                }
                _ => assert_eq!(event["about"], Value::Null),
            }
            structures += usize::from(event["structure"].is_string());
            // A field can only have changed if a byte has.
            let same =
                call["params_in"] == call["params_out"] && call["call_in"] == call["call_out"];
            let changed = event["changed"].as_object().unwrap();
            assert!(!same || changed.is_empty(), "{event}");
        }
        assert!(
            structures * 10 > calls.len() * 9,
            "{structures} of {} are described",
            calls.len()
        );
        let share = named
            .iter()
            .find(|event| event["about"] == "FERMI_CONTEXT_SHARE_A")
            .unwrap();
        assert_eq!(share["changed"]["subctxId"], "0x3f");
        assert!(
            share["objects"]
                .as_str()
                .unwrap()
                .contains("below 0xcaf000"),
            "{share}"
        );
    }
}
