//! Faults: each told apart, and what works after them.

use std::time::Duration;

use nv_host::{Error, Options};

use super::{module, open, works};

/// Every kind of fault is reported with its kind, its kernel and its place, and a new stream works after it.
pub fn faults(options: &Options) {
    let device = open(options);
    let faults = module(&device, "faults");
    // Memory of its own for each: a fault may leave part of a store behind.
    let run = |kernel: &str, grid: u32, shared: u32| {
        let memory = device.upload(&[7_u64; 16]).unwrap();
        let function = faults.function(kernel).unwrap();
        let stream = device.stream().unwrap();
        let launch = stream
            .launch(&function)
            .grid(grid)
            .block(32)
            .shared(shared)
            .arg(&memory);
        let result = launch
            .submit()
            .and_then(|event| event.wait_within(Duration::from_secs(10)));
        let report = match result {
            Err(Error::Fault(report)) => report,
            other => panic!("{kernel}: {other:?}"),
        };
        let text = report.to_string();
        assert!(text.contains(kernel), "{text}");
        // The stream stays dead, with the same report.
        assert!(matches!(launch.submit(), Err(Error::Fault(_))));
        works(&device);
        (report, memory.va().0)
    };
    let (report, memory) = run("badaddr", 200, 0);
    assert_eq!(report.code, Some(31), "{report}");
    let access = report
        .accesses
        .first()
        .unwrap_or_else(|| panic!("{report}"));
    assert_eq!(access.address, memory + (8 << 33), "{report}");

    let (report, memory) = run("misalign", 1, 0);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0xf, "{report}");
    assert_eq!(sm.address, memory + 4, "{report}");
    assert_eq!(
        sm.place.as_ref().map(|(kernel, _)| kernel.as_str()),
        Some("misalign"),
        "{report}"
    );

    let (report, _) = run("trap", 1, 0);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0x9, "{report}");

    let (report, _) = run("sharedoob", 1, 1024);
    assert_eq!(report.code, Some(13), "{report}");
    let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(sm.warp_esr & 0xffff, 0xe, "{report}");
}

/// A fault in one context leaves the others of the GPU alone, and the things of one mean nothing in another.
pub fn contexts(options: &Options) {
    let device = open(options);
    let other = device.new_context().unwrap();
    assert_eq!(other.info(), device.info());
    works(&other);
    let foreign = other.upload(&[7_u64; 4]).unwrap();
    let own = device.alloc::<u64>(4).unwrap();
    let stream = device.stream().unwrap();
    assert!(matches!(
        stream.copy(&own, &foreign),
        Err(Error::InvalidArgument(_))
    ));
    let faults = module(&other, "faults");
    let trap = faults.function("trap").unwrap();
    let broken = other.stream().unwrap();
    let event = broken
        .launch(&trap)
        .block(32)
        .arg(&foreign)
        .submit()
        .unwrap();
    assert!(matches!(event.wait(), Err(Error::Fault(_))));
    works(&device);
    stream.copy(&own, &own).unwrap().wait().unwrap();
    works(&other);
}
