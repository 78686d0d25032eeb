use nv_proto::unit::{Dim3, GpuVa};

use super::*;
use crate::memory::{Region, Use};

fn facts(table: &str) -> Vec<(String, u64)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tests/golden/facts/fault.json"
    );
    let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let table = facts[table].as_object().unwrap();
    let entries = table.iter();
    entries
        .map(|(name, value)| (name.clone(), value.as_u64().unwrap()))
        .collect()
}

#[test]
fn codes_are_named_as_the_header_names_them() {
    let header = facts("codes");
    let mut named = 0;
    for code in 0..1000 {
        let Some(name) = code_name(code) else {
            continue;
        };
        named += 1;
        let full = format!("ROBUST_CHANNEL_{name}");
        let is_in_header = header
            .iter()
            .any(|(theirs, value)| *value == u64::from(code) && [&full, name].contains(&&**theirs));
        assert!(is_in_header, "{code} {name}");
    }
    assert!(named > 50, "{named}");
    // What the kind is told from has a name.
    for code in [11, 13, 31, 32, 39, 43, 44, 45, 48, 69, 79, 94, 109, 119] {
        assert!(code_name(code).is_some(), "{code}");
        assert_ne!(FaultKind::of_code(code), FaultKind::Unknown, "{code}");
    }
}

#[test]
fn copy_engine_codes_are_those_of_copy_engines() {
    for (name, code) in facts("codes") {
        let rest = name.strip_prefix("ROBUST_CHANNEL_CE").unwrap_or_default();
        let is_copy = rest.chars().next().is_some_and(|c| c.is_ascii_digit());
        let kind = FaultKind::of_code(code as u32);
        assert_eq!(kind == FaultKind::CopyError, is_copy, "{name} {code}");
    }
}

#[test]
fn mmu_faults_are_named_as_the_header_names_them() {
    for (name, value) in facts("fault_types") {
        assert!(
            kind::fault_type_name(value as u32).contains(&format!("({name})")),
            "{name} {value}"
        );
    }
    assert_eq!(kind::fault_type_name(31), "unknown fault");
    for (name, value) in facts("access_types") {
        let words = name.to_lowercase().replace("phys_", "physical ");
        let words = words.trim_start_matches("virt_");
        let ours = kind::access_name(value as u32);
        assert!(words.starts_with(ours), "{name} {value}: {ours}");
    }
}

#[test]
fn warp_errors_have_kinds() {
    use FaultKind as K;
    let kind = |name: &str| match name {
        "STACK_ERROR" | "API_STACK_ERROR" | "STACK_OVERFLOW" => K::StackOverflow,
        "PC_WRAP" | "MISALIGNED_PC" | "PC_OVERFLOW" => K::BadProgramCounter,
        "MISALIGNED_REG" | "ILLEGAL_INSTR_ENCODING" | "ILLEGAL_INSTR_PARAM" | "OOR_REG" => {
            K::IllegalInstruction
        }
        "OOR_ADDR" | "INVALID_ADDR_SPACE" => K::AddressOutOfRange,
        "MISALIGNED_ADDR" => K::MisalignedAddress,
        "INVALID_CONST_ADDR_LDC" => K::ConstantOutOfRange,
        "MMU_FAULT" | "MMU_NACK" => K::IllegalAddress,
        "ARRIVE" => K::BarrierError,
        _ => K::ProgramError,
    };
    for (name, value) in facts("warp_errors") {
        let found = FaultKind::of_warp(value as u32);
        if name == "NONE" {
            assert_eq!(found, None);
        } else {
            assert_eq!(found, Some(kind(&name)), "{name} {value:#x}");
        }
    }
    // As seen on an H200, with the space of the address.
    assert_eq!(FaultKind::of_warp(0x0c00_000e), Some(K::SharedOutOfRange));
    assert_eq!(FaultKind::of_warp(0x0300_000e), Some(K::LocalOutOfRange));
}

fn launch() -> AskedLaunch {
    AskedLaunch {
        kernel: Some("saxpy".into()),
        grid: Dim3::from(200),
        block: Dim3::from(128),
        local_bytes: 0x640,
        shared_bytes: 0x400,
        descriptor: GpuVa(0x10_0010_0000),
    }
}

fn submission(number: u64) -> Submission {
    Submission {
        number,
        newest: 9,
        launches: vec![launch()],
        ..Submission::default()
    }
}

fn sm_error(kind: FaultKind, warp_esr: u32, address: u64) -> SmError {
    SmError {
        sm: 131,
        global_esr: 4,
        warp_esr,
        kind,
        address,
        memory: None,
        pc: 0x10_0000_0270,
        place: Some(("saxpy".into(), 0x70)),
        instruction: Some("STL [R1+0x50], R21".into()),
    }
}

fn base(code: u32) -> FaultReport {
    FaultReport {
        code: Some(code),
        submission: Some(submission(3)),
        kernel: Some("saxpy".into()),
        sms_read: 132,
        sm_count: 132,
        ended: true,
        ..FaultReport::default()
    }
}

fn judged(mut report: FaultReport) -> FaultReport {
    report.judge();
    report
}

#[test]
fn an_illegal_address_in_words() {
    let buffer = Region {
        start: GpuVa(0x10_0020_0000),
        bytes: 1 << 20,
        what: Use::Buffer,
    };
    let mut report = base(31);
    report.accesses = vec![BadAccess {
        address: 0x10_0030_1000,
        fault: 2,
        access: 1,
        place: MemoryPlace::Past(buffer, 4096),
    }];
    let report = judged(report);
    assert_eq!(report.kind, FaultKind::IllegalAddress);
    assert_eq!(
        report.to_string(),
        "illegal address in kernel saxpy: write of 0x1000301000, 4 KiB past the end of a buffer of 1 MiB at \
         0x1000200000 (not mapped (PTE))\n  \
         work:   submission 3 of 9 on its stream: kernel saxpy, grid 200x1x1, block 128x1x1\n  \
         driver: error 31 (FIFO_ERROR_MMU_ERR_FLT); 132 of 132 SMs read, 0 with an error\n  \
         next:   check the kernel's indices and that its buffers outlive it; the stream is dead, memory is as the \
         GPU left it, and a new stream works"
    );
}

#[test]
fn a_stack_overflow_in_words() {
    let mut report = base(13);
    // Below what the launch gave, and, for the second multiprocessor, in the middle of it.
    report.sms = vec![
        sm_error(FaultKind::LocalOutOfRange, 0x0300_000e, 0xff_f9b0),
        sm_error(FaultKind::LocalOutOfRange, 0x0300_000e, 0xff_fff0),
    ];
    let report = judged(report);
    assert_eq!(report.kind, FaultKind::StackOverflow);
    assert_eq!(report.sms[1].kind, FaultKind::LocalOutOfRange);
    assert_eq!(
        report.to_string(),
        "stack overflow in kernel saxpy: 0xfff9b0\n  \
         at:     saxpy+0x70 STL [R1+0x50], R21, SM 131 (warp status 0x300000e), and 1 more SM\n  \
         work:   submission 3 of 9 on its stream: kernel saxpy, grid 200x1x1, block 128x1x1\n  \
         driver: error 13 (GR_EXCEPTION); 132 of 132 SMs read, 2 with an error\n  \
         next:   recurse less deep, or launch with a larger stack (`Launch::stack`); the stream is dead, memory is \
         as the GPU left it, and a new stream works"
    );
}

#[test]
fn doubts_decide_where_the_driver_does_not() {
    let with = |code: Option<u32>, doubt: Option<Doubt>| {
        let mut report = base(0);
        report.code = code;
        if let Some(own) = &mut report.submission {
            own.doubts.extend(doubt);
        }
        judged(report).kind
    };
    let text = || "text".to_owned();
    assert_eq!(with(Some(13), None), FaultKind::EngineException);
    assert_eq!(
        with(Some(13), Some(Doubt::Method(text()))),
        FaultKind::BadMethod
    );
    assert_eq!(
        with(Some(13), Some(Doubt::Descriptor(text()))),
        FaultKind::BadDescriptor
    );
    assert_eq!(
        with(Some(45), Some(Doubt::Method(text()))),
        FaultKind::Removed
    );
    assert_eq!(with(Some(32), None), FaultKind::BadCommands);
    assert_eq!(with(Some(79), None), FaultKind::HardwareError);
    assert_eq!(with(Some(4711), None), FaultKind::Unknown);
    assert_eq!(with(None, None), FaultKind::Unknown);
    // Of a stream that goes on nothing more is known than what makes no sense in it.
    let going_on = |doubt: Option<Doubt>| {
        let mut report = base(0);
        (report.code, report.ended) = (None, false);
        if let Some(own) = &mut report.submission {
            own.doubts.extend(doubt);
        }
        judged(report).kind
    };
    assert_eq!(going_on(None), FaultKind::NoFault);
    assert_eq!(
        going_on(Some(Doubt::Descriptor(text()))),
        FaultKind::BadDescriptor
    );
}

/// When nothing is known the report says what was asked, and that the answers were empty.
#[test]
fn nothing_known_in_words() {
    let mut report = FaultReport {
        ended: true,
        sm_count: 132,
        missing: vec!["the multiprocessors: the driver refused a debugger object".into()],
        ..FaultReport::default()
    };
    report.judge();
    assert_eq!(
        report.to_string(),
        "stream ended without a cause given\n  \
         work:   this stream had none in flight\n  \
         driver: no error noted\n  \
         not known: the multiprocessors: the driver refused a debugger object\n  \
         next:   the kernel log (`dmesg`, NVRM) may tell more; the stream is dead, memory is as the GPU left it, \
         and a new stream works"
    );
    report.beside = vec![submission(4)];
    report.code = Some(4711);
    let text = report.to_string();
    assert!(text.contains(
        "\n  beside: another stream of its group: submission 4 of 9 on its stream: kernel saxpy"
    ));
    assert!(text.contains("\n  driver: error 4711 (no name known)"));
}

/// A time limit's error tells of the launch that still runs, and of what makes no sense in it.
#[test]
fn a_time_limit_in_words() {
    let mut own = submission(3);
    own.doubts
        .push(Doubt::Descriptor("it is of version 3.0".into()));
    let limit = Duration::from_millis(250);
    let report = FaultReport {
        kind: FaultKind::TimeLimit,
        submission: Some(own),
        limit: Some(limit),
        ..FaultReport::default()
    };
    let error = crate::Error::Timeout {
        what: "submission 3 of 9 on this stream (kernel saxpy)".into(),
        limit,
        report: Some(std::sync::Arc::new(report)),
    };
    assert_eq!(
        error.to_string(),
        "submission 3 of 9 on this stream (kernel saxpy) did not finish within 250ms\n  \
         work:   submission 3 of 9 on its stream: kernel saxpy, grid 200x1x1, block 128x1x1\n  \
         doubt:  it is of version 3.0\n  \
         driver: no error noted\n  \
         next:   give the work more time, or see why it does not end; the stream goes on; to end it, abandon it \
         and make another"
    );
}

#[test]
fn names_are_apart() {
    use FaultKind as K;
    let all = [
        K::IllegalAddress,
        K::AccessRefused,
        K::MisalignedAddress,
        K::SharedOutOfRange,
        K::LocalOutOfRange,
        K::StackOverflow,
        K::ConstantOutOfRange,
        K::AddressOutOfRange,
        K::Trap,
        K::IllegalInstruction,
        K::BadProgramCounter,
        K::BarrierError,
        K::ProgramError,
        K::BadMethod,
        K::BadDescriptor,
        K::EngineException,
        K::BadCommands,
        K::CopyError,
        K::Removed,
        K::HardwareError,
        K::TimeLimit,
        K::NoFault,
        K::Unknown,
    ];
    let names: std::collections::BTreeSet<_> = all.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), all.len());
    assert!(
        all.iter()
            .all(|kind| !kind.to_string().is_empty() && !kind.remedy().is_empty())
    );
}
