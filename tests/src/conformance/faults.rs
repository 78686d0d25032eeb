//! Faults: each told apart, with all that can be known of it, and what works after them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nv_host::{
    Buffer, Context, Device, Doubt, Error, FaultKind, FaultReport, MemoryPlace, Module, Options,
    Stream,
};
use nv_proto::push::compute::{SendPcas, SendSignalingPcas, SendSignalingPcas2};
use nv_proto::push::{MethodAddr, PushWriter, RunOp, Subchannel};
use nv_proto::qmd::{Qmd, Version};
use nv_proto::unit::{Dim3, GpuVa};
use object::{Object, ObjectSection};

use super::{is_simulated, module, open, sm, works};
use crate::bytes;

/// How long work may take that faults or ends: more than any does.
const LIMIT: Duration = Duration::from_secs(10);

/// A device with memory that no fault may change.
struct Rig {
    device: Device,
    faults: Module,
    witness: Buffer<u64>,
}

impl Rig {
    fn new(options: &Options) -> Self {
        let device = open(options);
        let faults = module(&device, "faults");
        let witness = device.upload(&pattern()).unwrap();
        Self {
            device,
            faults,
            witness,
        }
    }

    /// Launches a kernel of `faults.cu` that has to fault.
    fn run(&self, kernel: &str, grid: u32, shared: u32, memory: GpuVa) -> FaultReport {
        self.run_of(&self.faults, kernel, grid, shared, memory)
    }

    fn run_of(
        &self,
        module: &Module,
        kernel: &str,
        grid: u32,
        shared: u32,
        memory: GpuVa,
    ) -> FaultReport {
        let function = module.function(kernel).unwrap();
        let stream = self.device.stream().unwrap();
        let launch = stream
            .launch(&function)
            .grid(grid)
            .block(32)
            .shared(shared)
            .arg(memory);
        let event = launch
            .submit()
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        let report = match event.wait_within(LIMIT) {
            Err(Error::Fault(report)) => report,
            other => panic!("{kernel}: {other:?}"),
        };
        // The stream stays dead, with the same report.
        match launch.submit() {
            Err(Error::Fault(again)) => assert_eq!(again, report),
            other => panic!("{kernel}: {other:?}"),
        }
        let submission = report
            .submission
            .as_ref()
            .unwrap_or_else(|| panic!("{report}"));
        // The set-up of the stream, then the launch.
        assert_eq!((submission.number, submission.newest), (2, 2), "{report}");
        let asked = submission
            .launches
            .first()
            .unwrap_or_else(|| panic!("{report}"));
        assert_eq!(asked.kernel.as_deref(), Some(kernel), "{report}");
        assert_eq!(
            (asked.grid, asked.block),
            (Dim3::from(grid), Dim3::from(32)),
            "{report}"
        );
        assert_eq!(report.kernel.as_deref(), Some(kernel), "{report}");
        assert_eq!(
            submission.doubts,
            [],
            "{report}: a launch that was encoded here"
        );
        self.after(&report);
        (*report).clone()
    }

    /// What holds after every fault.
    fn after(&self, report: &FaultReport) {
        println!("{report}\n");
        assert!(report.missing.is_empty(), "{report}");
        let count = self.device.info().sm_count;
        assert_eq!(
            (report.sms_read, report.sm_count),
            (count, count),
            "{report}"
        );
        assert!(report.sms.iter().all(|error| error.sm < count), "{report}");
        assert_eq!(self.witness.read().unwrap(), pattern(), "{report}");
        works(&self.device);
    }

    /// Submits command words that have to fault, or never to end.
    fn words(&self, submit: impl FnOnce(&Stream) -> Result<nv_host::Event, Error>) -> Trouble {
        let stream = self.device.stream().unwrap();
        let event = submit(&stream).unwrap();
        let trouble = match event.wait_within(Duration::from_secs(1)) {
            Err(Error::Fault(report)) => Trouble {
                report: (*report).clone(),
                end: End::Fault,
            },
            Err(error @ Error::Timeout { .. }) => {
                println!("{error}");
                Trouble {
                    report: stream.diagnose(),
                    end: End::Hang,
                }
            }
            Ok(()) => Trouble {
                report: stream.diagnose(),
                end: End::Done,
            },
            Err(other) => panic!("{other:?}"),
        };
        drop(event);
        stream.abandon();
        self.after(&trouble.report);
        trouble
    }
}

/// What came of words that make no sense.
struct Trouble {
    report: FaultReport,
    end: End,
}

/// How they ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Fault,
    /// Not at all.
    Hang,
    /// As if nothing was wrong.
    Done,
}

impl Trouble {
    /// The first doubt about the words.
    fn doubt(&self) -> &Doubt {
        let own = self.report.submission.as_ref();
        own.and_then(|own| own.doubts.first())
            .unwrap_or_else(|| panic!("no doubt: {}", self.report))
    }
}

fn pattern() -> Vec<u64> {
    (0..4096_u64)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect()
}

/// The memory that the kernels of `faults.cu` take.
fn memory(device: &Context) -> Buffer<u64> {
    device.upload(&[7_u64; 16]).unwrap()
}

/// Every kind of fault of a program is reported with its kind, its kernel and its place.
pub fn faults(options: &Options) {
    let rig = Rig::new(options);
    // Memory of its own for each: a fault may leave part of a store behind.
    let at_instruction = |kernel: &str, shared: u32, kind: FaultKind, esr: u32| {
        let memory = memory(&rig.device);
        let report = rig.run(kernel, 1, shared, memory.va());
        assert_eq!((report.code, report.kind), (Some(13), kind), "{report}");
        assert!(report.time.is_some());
        let sm = report.sms.first().unwrap_or_else(|| panic!("{report}"));
        assert_eq!(sm.warp_esr & 0xffff, esr, "{report}");
        let (place, offset) = sm.place.as_ref().unwrap_or_else(|| panic!("{report}"));
        assert!(place == kernel && offset % 16 == 0, "{report}");
        assert!(sm.instruction.is_some(), "{report}");
        let text = report.to_string();
        assert!(
            text.starts_with(&format!("{kind} in kernel {kernel}")),
            "{text}"
        );
        assert!(text.contains(&format!("{kernel}+{offset:#x}")), "{text}");
        (sm.address, memory)
    };
    let (address, memory) = at_instruction("misalign", 0, FaultKind::MisalignedAddress, 0xf);
    assert_eq!(address, memory.va().0 + 4);
    at_instruction("trap", 0, FaultKind::Trap, 0x9);
    at_instruction("illegal", 0, FaultKind::Trap, 0x9);
    at_instruction("sharedoob", 1024, FaultKind::SharedOutOfRange, 0xe);
}

/// An illegal address is reported with the memory that it missed.
pub fn illegal_addresses(options: &Options) {
    let rig = Rig::new(options);
    let bad = |kernel: &str, grid: u32, memory: u64, address: u64| {
        let report = rig.run(kernel, grid, 0, GpuVa(memory));
        assert_eq!(
            (report.code, report.kind),
            (Some(31), FaultKind::IllegalAddress),
            "{report}"
        );
        let access = *report
            .accesses
            .first()
            .unwrap_or_else(|| panic!("{report}"));
        assert_eq!((access.address, access.access), (address, 1), "{report}");
        (access.place, report.to_string())
    };
    // A null pointer.
    let (place, text) = bad("ok", 1, 0, 0);
    assert_eq!(place, MemoryPlace::Null);
    assert!(text.contains("write of 0x0, a null pointer"), "{text}");

    // Far past the end, by one block of many.
    let memory = memory(&rig.device);
    let far = memory.va().0 + (8 << 33);
    let (place, _) = bad("badaddr", 200, memory.va().0, far);
    assert!(
        matches!(place, MemoryPlace::Past(..) | MemoryPlace::Before(..)),
        "{place}"
    );

    // Past the end of a buffer that fills its pages.
    let whole = rig.device.alloc::<u8>(32 << 20).unwrap();
    let end = whole.va().0 + (32 << 20);
    let gap = (0..).map(|i| end + (i << 12)).find(|at| {
        let around = rig.device.neighbours(*at);
        around.at.is_none() && around.above.is_none_or(|above| above.start.0 > *at + 4096)
    });
    let gap = gap.unwrap();
    if gap == end {
        let (place, text) = bad("ok", 1, end, end);
        assert!(
            matches!(place, MemoryPlace::Past(region, 0) if region.start == whole.va()),
            "{place}"
        );
        let says = format!(
            "just past the end of a buffer of 32 MiB at {:#x}",
            whole.va().0
        );
        assert!(text.contains(&says), "{text}");
    }

    // A buffer that was freed.
    let freed = rig.device.alloc::<u8>(64 << 20).unwrap();
    let start = freed.va();
    drop(freed);
    rig.device.synchronize().unwrap();
    // Near its end: the memory of the stream that is made meanwhile may take its start.
    let inside = start.0 + (60 << 20);
    let (place, text) = bad("ok", 1, inside, inside);
    assert!(
        matches!(place, MemoryPlace::Freed(region, 0x3c0_0000) if region.start == start),
        "{place}"
    );
    assert!(
        text.contains("60 MiB into a buffer of 64 MiB") && text.contains("which was freed"),
        "{text}"
    );
}

/// The module of the kernels with the trap of `trap` overwritten by what is no instruction, and its offset.
fn with_bad_instruction(device: &Context) -> (Module, u64) {
    let mut file = bytes(&format!("cubins/faults/faults.{}.cubin", sm(device)));
    let (start, size) = {
        let parsed = object::File::parse(&*file).unwrap();
        let section = parsed.section_by_name(".text.trap").unwrap();
        section.file_range().unwrap()
    };
    let code = &mut file[start as usize..(start + size) as usize];
    /// The low byte of the opcode of `BPT`, whose other bits are 9.
    const BPT: u8 = 0x5c;
    let (index, instruction) = code
        .chunks_exact_mut(16)
        .enumerate()
        .find(|(_, words)| words[0] == BPT && words[1] & 0xf == 0x9)
        .unwrap();
    // An opcode that no architecture has.
    instruction[0] = 0xff;
    instruction[1] |= 0xf;
    (device.load(&file).unwrap(), index as u64 * 16)
}

/// An instruction that is none.
pub fn illegal_instruction(options: &Options) {
    let rig = Rig::new(options);
    let (patched, offset) = with_bad_instruction(&rig.device);
    let memory = memory(&rig.device);
    let report = rig.run_of(&patched, "trap", 1, 0, memory.va());
    assert_eq!(
        (report.code, report.kind),
        (Some(13), FaultKind::IllegalInstruction),
        "{report}"
    );
    let sm = report.sms.first().unwrap();
    assert_eq!(sm.place, Some(("trap".to_owned(), offset)), "{report}");
    assert!(sm.instruction.as_ref().unwrap().contains("fff"), "{report}");
}

/// Recursion that is too deep for the stack.
pub fn stack_overflow(options: &Options) {
    let rig = Rig::new(options);
    let depth = rig.device.upload(&[100_000_u64, 0]).unwrap();
    let report = rig.run("recurse", 1, 0, depth.va());
    assert_eq!(
        (report.code, report.kind),
        (Some(13), FaultKind::StackOverflow),
        "{report}"
    );
    // Less deep it works, and as deep with a stack for it: 96 bytes a call.
    let function = rig.faults.function("recurse").unwrap();
    let stream = rig.device.stream().unwrap();
    for (depth, stack) in [(3_u64, None), (30, Some(30 * 128))] {
        let memory = rig.device.upload(&[depth, 0]).unwrap();
        let launch = stream.launch(&function).grid(1).block(1).arg(&memory);
        let launch = match stack {
            Some(bytes) => launch.stack(bytes),
            None => launch,
        };
        launch.submit().unwrap().wait().unwrap();
        assert_eq!(memory.read().unwrap(), [depth, depth * (depth + 1) / 2]);
    }
}

/// A kernel that never ends meets a limit of time: the error says which; it is then ended with its stream, in much
/// less time than waiting for it would take.
pub fn endless(options: &Options) {
    let rig = Rig::new(options);
    let endless = rig.faults.function("loop").unwrap();
    let memory = rig.device.upload(&[0_u64; 16]).unwrap();
    let stream = rig.device.stream().unwrap();
    let launch = stream.launch(&endless).grid(3).block(32).arg(&memory);
    let event = launch.submit().unwrap();
    let behind = stream.copy(&memory, &memory).unwrap();
    let limit = Duration::from_millis(300);
    let error = behind.wait_within(limit).unwrap_err();
    println!("{error}\n");
    let Error::Timeout {
        report: Some(report),
        limit: told,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (*told, report.limit, report.kind),
        (limit, Some(limit), FaultKind::TimeLimit)
    );
    assert_eq!(report.kernel.as_deref(), Some("loop"));
    let submission = report.submission.as_ref().unwrap();
    assert_eq!((submission.number, submission.newest), (2, 3));
    assert_eq!(submission.launches[0].grid, Dim3::from(3));
    assert_eq!(submission.doubts, []);
    let text = error.to_string();
    assert!(
        text.starts_with("submission 2 of 3 on this stream (kernel loop) did not finish within"),
        "{text}"
    );
    // The driver and the multiprocessors know nothing of it.
    let report = stream.diagnose();
    assert_eq!(
        (report.kind, report.code),
        (FaultKind::NoFault, None),
        "{report}"
    );
    assert_eq!(report.sms_read, rig.device.info().sm_count, "{report}");
    assert_eq!(report.sms, [], "{report}");
    assert!(!stream.event().is_reached());
    let start = Instant::now();
    drop((event, behind));
    stream.abandon();
    // A GPU's driver waits for the kernel first: 6 s on an H200.
    let most = if is_simulated(&rig.device) { 1 } else { 10 };
    assert!(
        start.elapsed() < Duration::from_secs(most),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(rig.witness.read().unwrap(), pattern());
    works(&rig.device);
}

/// With a block on each multiprocessor, of which the last traps, the report names that one.
pub fn last_multiprocessor(options: &Options) {
    let rig = Rig::new(options);
    let count = rig.device.info().sm_count;
    let memory = rig.device.upload(&[0_u64, u64::MAX]).unwrap();
    // More than half of what a multiprocessor has of shared memory: one block each.
    let report = rig.run("lastblock", count, 90 << 10, memory.va());
    assert_eq!(
        (report.code, report.kind),
        (Some(13), FaultKind::Trap),
        "{report}"
    );
    let [error] = &*report.sms else {
        panic!("{report}")
    };
    // The block has left the number of its multiprocessor behind.
    let own = memory.read().unwrap()[1];
    println!(
        "the block was on SM {own}, and the report says {}\n",
        error.sm
    );
    assert!(own < u64::from(count), "{own}");
    assert_eq!(u64::from(error.sm), own, "{report}");
}

/// Command words of the caller's own do what they say; those that make no sense are told apart.
pub fn raw_words(options: &Options) {
    let rig = Rig::new(options);
    let stream = rig.device.stream().unwrap();
    let mut words = [0; 64];
    let mut push = PushWriter::new(&mut words);
    let idle = MethodAddr::new(0x110).unwrap();
    push.run(RunOp::Inc, Subchannel::COMPUTE, idle, &[0])
        .unwrap();
    let words = push.finish();
    // After a copy, and before one.
    let (a, b) = (memory(&rig.device), rig.device.alloc::<u64>(16).unwrap());
    stream.copy(&b, &a).unwrap();
    stream.submit_words(words).unwrap().wait().unwrap();
    assert_eq!(b.read().unwrap(), [7; 16]);
    let segment = rig.device.upload(words).unwrap();
    for _ in 0..5000 {
        stream
            .submit_segment(segment.va(), words.len() as u32)
            .unwrap();
    }
    stream.copy(&b, &a).unwrap().wait().unwrap();
    assert!(stream.event().is_reached());
    // The longest that is taken, again and again.
    let nops = vec![0; 1 << 16];
    for _ in 0..4 {
        stream.submit_words(&nops).unwrap();
    }
    stream.synchronize().unwrap();

    let refused = |result: Result<nv_host::Event, Error>, says: &str| match result {
        Err(error @ (Error::InvalidArgument(_) | Error::Encode(_))) => {
            assert!(error.to_string().contains(says), "{error}");
        }
        other => panic!("{other:?}"),
    };
    refused(stream.submit_words(&[]), "0 command words");
    refused(stream.submit_words(&vec![0; (1 << 16) + 1]), "65537");
    refused(stream.submit_words(&words[..1]), "data words");
    refused(stream.submit_segment(GpuVa(2), 1), "GP_ENTRY0_GET");
    refused(stream.submit_segment(GpuVa(4), 0), "GP_ENTRY1_LENGTH");
    works(&rig.device);
}

/// A method that the compute class has not.
pub fn bad_method(options: &Options) {
    let rig = Rig::new(options);
    let words = unknown_method();
    let asked = rig.device.stream().unwrap().examine_words(&words);
    assert!(matches!(&asked.doubts[..], [Doubt::Method(text)] if text.contains("0xff0")));
    let trouble = rig.words(|stream| stream.submit_words(&words));
    assert_eq!(trouble.end, End::Fault, "{}", trouble.report);
    assert_eq!(
        trouble.report.kind,
        FaultKind::BadMethod,
        "{}",
        trouble.report
    );
    assert!(
        matches!(trouble.doubt(), Doubt::Method(text) if text.contains("0xff0")),
        "{}",
        trouble.report
    );
}

/// A header that is none.
pub fn bad_header(options: &Options) {
    let rig = Rig::new(options);
    let trouble = rig.words(|stream| stream.submit_words(&BAD_HEADER));
    assert_eq!(trouble.end, End::Fault, "{}", trouble.report);
    assert_eq!(
        trouble.report.kind,
        FaultKind::BadCommands,
        "{}",
        trouble.report
    );
    assert!(
        matches!(trouble.doubt(), Doubt::Commands(_)),
        "{}",
        trouble.report
    );
}

/// Words where no memory is.
pub fn unmapped_words(options: &Options) {
    let rig = Rig::new(options);
    let trouble = rig.words(|stream| stream.submit_segment(NOWHERE, 4));
    assert_eq!(trouble.end, End::Fault, "{}", trouble.report);
    assert_eq!(
        (trouble.report.code, trouble.report.kind),
        (Some(31), FaultKind::IllegalAddress),
        "{}",
        trouble.report
    );
    assert!(
        matches!(trouble.doubt(), Doubt::Commands(text) if text.contains("0x7700000000")),
        "{}",
        trouble.report
    );
}

/// Launch descriptors that make no sense: told before they are submitted, and by whatever comes of them.
pub fn bad_descriptors(options: &Options) {
    let rig = Rig::new(options);
    // Of another version, and one of nothing but zeros.
    for descriptor in [bad_descriptor(&rig.device), vec![0; 96]] {
        let memory = rig.device.upload(&descriptor).unwrap();
        let place = format!("{:#x}", memory.va().0);
        let is_told = |doubt: Option<&Doubt>| match doubt {
            Some(Doubt::Descriptor(text)) => text.contains(&place),
            _ => false,
        };
        let stream = rig.device.stream().unwrap();
        let words = launch(&stream, memory.va());
        let asked = stream.examine_words(&words);
        assert!(is_told(asked.doubts.first()), "{asked:?}");

        let trouble = rig.words(|stream| stream.submit_words(&words));
        println!("{:?}\n", trouble.end);
        // An H200 does nothing for such a descriptor, and says nothing.
        if trouble.end != End::Done {
            assert!(is_told(Some(trouble.doubt())), "{}", trouble.report);
            assert_eq!(
                trouble.report.kind,
                FaultKind::BadDescriptor,
                "{}",
                trouble.report
            );
        }
    }
}

/// A launch descriptor where no memory is.
pub fn unmapped_descriptor(options: &Options) {
    let rig = Rig::new(options);
    let trouble = rig.words(|stream| stream.submit_words(&launch(stream, NOWHERE)));
    assert_eq!(trouble.end, End::Fault, "{}", trouble.report);
    assert!(
        matches!(trouble.doubt(), Doubt::Descriptor(text) if text.contains("0x7700000000")),
        "{}",
        trouble.report
    );
    assert_eq!(
        trouble.report.kind,
        FaultKind::IllegalAddress,
        "{}",
        trouble.report
    );
}

/// A header with the reserved `SEC_OP` 6 (`clc56f.h`).
const BAD_HEADER: [u32; 2] = [0xc001_0000, 0];
/// An address that no memory is at.
const NOWHERE: GpuVa = GpuVa(0x77_0000_0000);

/// The words of a method that the compute class has not.
fn unknown_method() -> Vec<u32> {
    let mut words = [0; 8];
    let mut push = PushWriter::new(&mut words);
    let none = MethodAddr::new(0xff0).unwrap();
    push.run(RunOp::Inc, Subchannel::COMPUTE, none, &[0x77])
        .unwrap();
    push.finish().to_vec()
}

/// A descriptor of a version that the device does not take.
fn bad_descriptor(device: &Context) -> Vec<u32> {
    let other = if device.info().classes.qmd == Version::V03_00 {
        Version::V04_00
    } else {
        Version::V03_00
    };
    let mut words = vec![0; 96];
    Qmd::new(other).encode_into(&mut words).unwrap();
    words
}

/// The words of a launch.
fn launch(stream: &Stream, qmd: GpuVa) -> Vec<u32> {
    let mut words = [0; 8];
    let mut push = PushWriter::new(&mut words);
    push.write(Subchannel::COMPUTE, &SendPcas { qmd }).unwrap();
    // `SEND_SIGNALING_PCAS2_B` is there from Ampere's compute class on (`clc6c0.h`).
    if stream.context().info().classes.compute.0 >= 0xc6c0 {
        push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)
    } else {
        push.write(Subchannel::COMPUTE, &SendSignalingPcas::INVALIDATE_SCHEDULE)
    }
    .unwrap();
    push.finish().to_vec()
}

/// A fault ends all streams of a group: each says what it had in flight itself, and what the others had.
pub fn several_streams(options: &Options) {
    let rig = Rig::new(options);
    let memory = rig.device.upload(&[7_u64; 16]).unwrap();
    let (first, second) = (rig.device.stream().unwrap(), rig.device.stream().unwrap());
    let endless = rig.faults.function("loop").unwrap();
    let trap = rig.faults.function("trap").unwrap();
    let waits = first.launch(&endless).block(32).arg(&memory).submit();
    let traps = second.launch(&trap).block(32).arg(&memory).submit();
    let ends: Vec<_> = [waits, traps]
        .into_iter()
        .map(|event| match event.unwrap().wait_within(LIMIT) {
            Err(Error::Fault(report)) => report,
            other => panic!("{other:?}"),
        })
        .collect();
    for (report, own, other) in [(&ends[0], "loop", "trap"), (&ends[1], "trap", "loop")] {
        println!("{report}\n");
        assert_eq!(
            report.submission.as_ref().unwrap().only_kernel(),
            Some(own),
            "{report}"
        );
        let beside: Vec<_> = report
            .beside
            .iter()
            .map(|other| other.only_kernel())
            .collect();
        assert_eq!(beside, [Some(other)], "{report}");
    }
    // Where the multiprocessors tell of an error, the kernel is that one's on either stream.
    assert_eq!(ends[1].kernel.as_deref(), Some("trap"), "{}", ends[1]);
    assert_ne!(ends[0].kernel.as_deref(), Some("loop"), "{}", ends[0]);
    rig.after(&ends[1]);
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

/// What another context computes meanwhile comes out right, whatever faults here.
pub fn neighbours_unharmed(options: &Options) {
    let rig = Rig::new(options);
    let other = rig.device.new_context().unwrap();
    let vadd = module(&other, "k").function("vadd").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let stream = other.stream().unwrap();
            let one = other.upload(&[1.0_f32; 64]).unwrap();
            let sum = other.upload(&[0.0_f32; 64]).unwrap();
            let launch = stream.launch(&vadd).grid(1).block(64);
            let launch = launch.arg(&one).arg(&sum).arg(&sum).arg(64_i32);
            let mut rounds = 0_u32;
            while !stop.load(Ordering::Relaxed) {
                launch.submit().unwrap();
                rounds += 1;
                if rounds.is_multiple_of(16) {
                    stream.synchronize().unwrap();
                }
            }
            stream.synchronize().unwrap();
            assert_eq!(sum.read().unwrap(), [rounds as f32; 64]);
            rounds
        });
        for kernel in ["badaddr", "trap", "misalign"] {
            let memory = memory(&rig.device);
            rig.run(kernel, 200, 0, memory.va());
        }
        stop.store(true, Ordering::Relaxed);
        let rounds = neighbour.join().unwrap();
        println!("{rounds} rounds beside three faults");
        assert!(rounds > 0);
    });
    works(&other);
}

/// What users see of every kind of fault: a name, and the error's text. Each on a device of its own.
pub fn examples(options: &Options) -> Vec<(&'static str, String)> {
    let kernel = |name: &str, grid: u32, shared: u32, at: &dyn Fn(&Rig) -> GpuVa| {
        let rig = Rig::new(options);
        let at = at(&rig);
        rig.run(name, grid, shared, at).to_string()
    };
    let words = |submit: &dyn Fn(&Rig, &Stream) -> Result<nv_host::Event, Error>| {
        let rig = Rig::new(options);
        let trouble = rig.words(|stream| submit(&rig, stream));
        trouble.report.to_string()
    };
    // Buffers are kept: their addresses stay theirs.
    let sevens = |rig: &Rig| std::mem::ManuallyDrop::new(memory(&rig.device)).va();
    let endless = || {
        let rig = Rig::new(options);
        let function = rig.faults.function("loop").unwrap();
        let memory = rig.device.upload(&[0_u64; 16]).unwrap();
        let stream = rig.device.stream().unwrap();
        let launch = stream.launch(&function).grid(3).block(32).arg(&memory);
        let event = launch.submit().unwrap();
        let error = event.wait_within(Duration::from_millis(300)).unwrap_err();
        drop(event);
        stream.abandon();
        error.to_string()
    };
    let patched = || {
        let rig = Rig::new(options);
        let (patched, _) = with_bad_instruction(&rig.device);
        let at = sevens(&rig);
        rig.run_of(&patched, "trap", 1, 0, at).to_string()
    };
    vec![
        (
            "Past the end of a buffer",
            kernel("badaddr", 200, 0, &sevens),
        ),
        ("A null pointer", kernel("ok", 1, 0, &|_| GpuVa(0))),
        (
            "A buffer that was freed",
            kernel("ok", 1, 0, &|rig| {
                let freed = rig.device.alloc::<u8>(64 << 20).unwrap();
                GpuVa(freed.va().0 + (60 << 20))
            }),
        ),
        ("Misaligned", kernel("misalign", 1, 0, &sevens)),
        ("Past shared memory", kernel("sharedoob", 1, 1024, &sevens)),
        (
            "Stack overflow",
            kernel("recurse", 1, 0, &|rig| {
                let depth = rig.device.upload(&[100_000_u64, 0]).unwrap();
                std::mem::ManuallyDrop::new(depth).va()
            }),
        ),
        ("Trap", kernel("trap", 1, 0, &sevens)),
        ("Illegal instruction", patched()),
        ("An endless loop", endless()),
        (
            "A bad method",
            words(&|_, stream| stream.submit_words(&unknown_method())),
        ),
        (
            "Bad command words",
            words(&|_, stream| stream.submit_words(&BAD_HEADER)),
        ),
        (
            "Command words where no memory is",
            words(&|_, stream| stream.submit_segment(NOWHERE, 4)),
        ),
        (
            "A bad launch descriptor",
            words(&|rig, stream| {
                let memory = rig.device.upload(&bad_descriptor(&rig.device))?;
                let memory = std::mem::ManuallyDrop::new(memory);
                stream.submit_words(&launch(stream, memory.va()))
            }),
        ),
    ]
}
