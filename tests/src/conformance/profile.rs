//! Times: profiles and the times of events.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nv_host::profile::{Kind, Record, Recording};
use nv_host::{Buffer, Context, Device, Error, Function, GpuTime, Options, Stream};

use super::{is_simulated, module, open};

/// What the cases launch: `c[i] = a[i] + b[i]`.
struct Adding {
    vadd: Function,
    a: Buffer<f32>,
    c: Buffer<f32>,
}

impl Adding {
    fn new(context: &Context, length: usize) -> Self {
        Self {
            vadd: module(context, "k").function("vadd").unwrap(),
            a: context.upload(&vec![1.0_f32; length]).unwrap(),
            c: context.alloc::<f32>(length).unwrap(),
        }
    }

    /// Launches it over so many elements.
    fn launch(&self, stream: &Stream, elements: u32) -> nv_host::Event {
        stream
            .launch(&self.vadd)
            .grid(elements.div_ceil(256))
            .block(256)
            .arg(&self.a)
            .arg(&self.a)
            .arg(&self.c)
            .arg(elements as i32)
            .submit()
            .unwrap()
    }
}

/// What holds of every recording: times in order, and the work of a stream one after the other.
fn plausible(recording: &Recording, wall: Duration) {
    let clock = recording.clock();
    assert!(clock.compared_at_end && clock.error < Duration::from_secs(1));
    let mut last: Option<&Record> = None;
    let mut records: Vec<&Record> = recording.records().iter().collect();
    records.sort_by_key(|record| record.stream);
    for record in records {
        assert!(record.start <= record.end, "{record:?}");
        assert!(
            record.end <= wall + clock.error,
            "{record:?} after {wall:?}"
        );
        let begun = record.start + clock.error;
        assert!(
            record.submitted <= begun,
            "{record:?} ran before it was submitted, with {clock:?}"
        );
        if let Some(last) = last.filter(|last| last.stream == record.stream) {
            assert!(last.end <= record.start, "{last:?} and {record:?} overlap");
            assert!(last.submitted <= record.submitted, "{last:?}, {record:?}");
        }
        last = Some(record);
    }
}

/// Launches, copies and waits on several streams are recorded, each once, with what they are and when they ran.
pub fn profile(options: &Options) {
    let device = open(options);
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let big: u32 = if is_simulated(&device) {
        1 << 16
    } else {
        1 << 24
    };
    let adding = Adding::new(&device, big as usize);
    adding.launch(&first, 1).wait().unwrap(); // before: not recorded

    let begin = Instant::now();
    let profile = device.profile().unwrap();
    match device.profile() {
        Err(Error::InvalidArgument(why)) => assert!(why.contains("another profile"), "{why}"),
        other => panic!("{other:?}"),
    }
    for _ in 0..5 {
        adding.launch(&first, 256);
        let event = adding.launch(&first, big);
        second.wait_for(&event).unwrap();
        // Few bytes: many are copied by a kernel, which is recorded as one.
        let (target, source) = (
            adding.c.slice(..1024).unwrap(),
            adding.a.slice(..1024).unwrap(),
        );
        second.copy(&target, &source).unwrap();
    }
    // A stream made meanwhile is recorded, and its records stay when it goes.
    let third = device.stream().unwrap();
    let third_id = third.id();
    adding.launch(&third, 512);
    drop(third);
    let recording = profile.finish();
    plausible(&recording, begin.elapsed());
    assert!(recording.lost().is_none(), "{}", recording.lost());

    let of = |stream: u64| {
        let records = recording.records().iter();
        records.filter(move |record| record.stream == stream)
    };
    let launches: Vec<_> = of(first.id()).collect();
    assert_eq!(launches.len(), 10);
    for (index, record) in launches.iter().enumerate() {
        assert_eq!(record.name(), "vadd");
        let blocks = if index % 2 == 0 { 1 } else { big / 256 };
        let Kind::Launch { grid, block } = record.kind else {
            panic!("{record:?}")
        };
        assert_eq!((grid.x, block.x), (blocks, 256));
    }
    // What is much more work takes longer.
    let total = |odd: usize| -> Duration {
        let each = launches.iter().skip(odd).step_by(2);
        each.map(|record| record.duration()).sum()
    };
    assert!(total(1) > total(0), "{:?}, {:?}", total(0), total(1));

    let copies: Vec<_> = of(second.id())
        .filter(|record| record.name() == "copy")
        .collect();
    assert_eq!(copies.len(), 5);
    for (copy, launch) in copies.iter().zip(launches.iter().skip(1).step_by(2)) {
        assert_eq!(copy.kind, Kind::Copy { bytes: 4096 });
        assert!(
            copy.start >= launch.end,
            "{copy:?} did not wait for {launch:?}"
        );
        assert!(copy.duration() > Duration::ZERO);
    }
    // A wait for what is reached already is none.
    let waits = of(second.id())
        .filter(|record| record.kind == Kind::Wait)
        .count();
    assert_eq!(of(second.id()).count(), 5 + waits);
    assert_eq!(of(third_id).count(), 1);

    // It is over: what comes now is recorded by the next one alone.
    adding.launch(&first, 256).wait().unwrap();
    let profile = device.profile().unwrap();
    adding.launch(&first, 256).wait().unwrap();
    assert_eq!(profile.finish().records().len(), 1);
    // One that is dropped frees the way too.
    drop(device.profile().unwrap());
    drop(device.profile().unwrap());
}

/// More submissions than there are slots for times, launches and copies in turn: none is lost, and what is more than
/// the profile keeps is counted.
pub fn long_profile(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let adding = Adding::new(&device, 256);
    let rounds = if is_simulated(&device) { 5_000 } else { 50_000 };
    let begin = Instant::now();
    let profile = device.profile().unwrap();
    for _ in 0..rounds {
        adding.launch(&stream, 32);
        stream.copy(&adding.c, &adding.a).unwrap();
    }
    let recording = profile.finish();
    plausible(&recording, begin.elapsed());
    assert!(recording.lost().is_none(), "{}", recording.lost());
    assert_eq!(recording.records().len(), 2 * rounds);
    let names = recording.records().iter().map(Record::name);
    assert!(
        names
            .enumerate()
            .all(|(index, name)| name == ["vadd", "copy"][index % 2])
    );

    let profile = device.profile_up_to(100).unwrap();
    for _ in 0..150 {
        adding.launch(&stream, 32);
    }
    let recording = profile.finish();
    assert_eq!(recording.records().len(), 100);
    assert_eq!(
        (recording.lost().full, recording.lost().unfinished),
        (50, 0)
    );
}

/// Profiles begin and end while threads submit, and make and drop streams: each work is recorded once or not at all.
pub fn profiles_and_threads(options: &Options) {
    let device = open(options);
    let adding = Adding::new(&device, 256);
    let (done, launched) = (AtomicBool::new(false), AtomicUsize::new(0));
    let begin = Instant::now();
    let mut seen = 0;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(60) {
                    let stream = device.stream().unwrap();
                    for _ in 0..40 {
                        launched.fetch_add(1, Ordering::Relaxed);
                        adding.launch(&stream, 32);
                    }
                    // Its end is still in flight.
                    drop(stream);
                }
            });
        }
        let mut profiles = 0;
        while (profiles < 10 || seen == 0) && begin.elapsed() < Duration::from_secs(60) {
            let profile = device.profile().unwrap();
            // Long enough for some work, however long a stream takes to make.
            let (begun, before) = (Instant::now(), launched.load(Ordering::Relaxed));
            while launched.load(Ordering::Relaxed) < before + 20
                && begun.elapsed() < Duration::from_millis(500)
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            let recording = profile.finish();
            plausible(&recording, begin.elapsed());
            assert!(recording.lost().is_none(), "{}", recording.lost());
            seen += recording.records().len();
            profiles += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!((1..=launched.into_inner()).contains(&seen), "{seen}");
    // All is quiet again.
    let profile = device.profile().unwrap();
    assert!(profile.finish().records().is_empty());
}

/// A fault ends a profile with what had ended before, and says that the rest is missing.
pub fn profile_of_a_fault(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    let adding = Adding::new(&device, 256);
    let faults = module(&device, "faults");
    let trap = faults.function("trap").unwrap();
    let memory = device.upload(&[7_u64; 16]).unwrap();
    let profile = device.profile().unwrap();
    adding.launch(&stream, 32).wait().unwrap();
    let launch = stream.launch(&trap).grid(1).block(32).arg(&memory);
    match launch.submit().unwrap().wait() {
        Err(Error::Fault(_)) => {}
        other => panic!("{other:?}"),
    }
    let recording = profile.finish();
    assert_eq!(recording.records().len(), 1, "{:?}", recording.records());
    assert_eq!((recording.lost().full, recording.lost().unfinished), (0, 1));
    drop(stream);
    // The context goes on, and so do profiles of it.
    let stream = device.stream().unwrap();
    let profile = device.profile().unwrap();
    adding.launch(&stream, 32).wait().unwrap();
    let recording = profile.finish();
    assert_eq!(recording.records().len(), 1);
    assert!(recording.lost().is_none());
}

/// Events that are recorded know their time for good, others for as long as nothing later has ended.
pub fn event_times(options: &Options) {
    let device: Device = open(options);
    let stream = device.stream().unwrap();
    let adding = Adding::new(&device, 1 << 16);
    let start = Instant::now();
    let before = stream.record().unwrap();
    let launched = adding.launch(&stream, 1 << 16);
    let after = stream.record().unwrap();
    after.wait().unwrap();
    let wall = start.elapsed();
    let took = after.elapsed_since(&before).unwrap();
    assert!(
        took > Duration::ZERO && took <= wall,
        "{took:?} of {wall:?}"
    );
    // Later work has ended since, so the launch's own time is gone; those that were recorded stay.
    assert_eq!(launched.timestamp(), None);
    let says = |result: Result<Duration, Error>, word: &str| match result {
        Err(Error::InvalidArgument(why)) => assert!(why.contains(word), "{why}"),
        other => panic!("{other:?}"),
    };
    says(launched.elapsed_since(&before), "Stream::record");
    says(before.elapsed_since(&after), "reached after");
    let newest = adding.launch(&stream, 256);
    newest.wait().unwrap();
    assert!(newest.timestamp().unwrap() >= after.timestamp().unwrap());
    assert_eq!(after.elapsed_since(&before).unwrap(), took);

    // Across streams, which share the GPU's timer.
    let other = device.stream().unwrap();
    other.wait_for(&newest).unwrap();
    let late = other.record().unwrap();
    late.wait().unwrap();
    assert!(late.timestamp() >= after.timestamp());

    // Not reached: held back by a kernel that runs until the host says otherwise.
    let context = device.new_context().unwrap();
    let foreign = context.stream().unwrap().record().unwrap();
    foreign.wait().unwrap();
    says(foreign.elapsed_since(&before), "different contexts");

    // Thousands of them, whose places are used again, and times that never go back.
    let mut last: Option<GpuTime> = None;
    for _ in 0..40 {
        let events: Vec<_> = (0..100).map(|_| stream.record().unwrap()).collect();
        events.last().unwrap().wait().unwrap();
        for event in events {
            let time = event.timestamp().unwrap();
            assert!(last.is_none_or(|last| last <= time));
            last = Some(time);
        }
    }
}
