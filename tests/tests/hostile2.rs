//! Callers that do what they should not, of what the library does beyond launches: pinned and lent memory, graphs,
//! variables, printing, peers, streams that are given up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nv_host::{Backend, Context, Device, Error, Event, Function, Options, Page, Placement, Stream};
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::GpuVa;
use nv_sim::Chip;
use nv_tests::conformance::{module, open, works};

fn device(limit: Duration) -> Device {
    open(&Options {
        backend: Backend::Sim(Chip::Gh100),
        limit,
        ..Options::default()
    })
}

const LONG: Duration = Duration::from_secs(30);

/// A kernel that runs until [`Endless::end`], or until its stream is given up.
struct Endless {
    flag: nv_host::Buffer<u64>,
    function: Function,
}

impl Endless {
    fn new(context: &Context) -> Self {
        let flag = context.alloc_in::<u64>(16, Placement::Pinned).unwrap();
        flag.write(&[0; 16]).unwrap();
        let function = module(context, "faults").function("loop").unwrap();
        Self { flag, function }
    }

    fn begin(&self, stream: &Stream) -> Event {
        let launch = stream.launch(&self.function).block(32).arg(&self.flag);
        launch.submit().unwrap()
    }

    fn end(&self) {
        self.flag.mapping().unwrap().write_u64(8, 99);
    }
}

/// Runs `wait` while a stream with a kernel that does not end and `work` behind it is being dropped by another thread:
/// `wait` has to last until the kernel is ended, a good while later.
fn while_being_dropped<R: Send>(
    device: &Device,
    work: impl FnOnce(&Stream),
    wait: impl FnOnce() -> R + Send,
) -> R {
    let endless = Endless::new(device);
    let stream = device.stream().unwrap();
    endless.begin(&stream);
    work(&stream);
    std::thread::scope(|scope| {
        let dropping = scope.spawn(move || drop(stream));
        std::thread::sleep(Duration::from_millis(100));
        let waiting = scope.spawn(move || (wait(), Instant::now()));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!dropping.is_finished(), "its work has not ended");
        let ended = Instant::now();
        endless.end();
        dropping.join().unwrap();
        let (result, returned) = waiting.join().unwrap();
        assert!(returned >= ended, "it did not wait for the stream");
        result
    })
}

/// Pinned memory is known to be used also while the stream that uses it is being dropped.
#[test]
fn pinned_memory_waits_for_streams_that_are_being_dropped() {
    let device = device(LONG);
    let source = device.upload(&[7_u32; 4096]).unwrap();
    let pinned = device.alloc_pinned::<u32>(4096).unwrap();
    pinned.write(&[0; 4096]).unwrap();
    let copy = |stream: &Stream| drop(stream.copy(&pinned, &source).unwrap());
    let read = while_being_dropped(&device, copy, || pinned.read().unwrap());
    assert_eq!(read, [7; 4096]);
    works(&device);
}

/// Lent pages come back once the GPU is done with them, also where the stream is being dropped.
#[test]
fn lent_pages_wait_for_streams_that_are_being_dropped() {
    let device = device(LONG);
    let source = device.upload(&[7_u32; 1024]).unwrap();
    let lent = device.register::<u32>(Page::zeroed(1)).unwrap();
    let va = lent.va();
    // A bare address, of which the buffer does not know.
    let vadd = module(&device, "k").function("vadd").unwrap();
    let fill = |stream: &Stream| {
        let launch = stream.launch(&vadd).grid(4).block(256);
        let launch = launch.arg(&source).arg(&source).arg(va).arg(1024_i32);
        launch.submit().unwrap();
    };
    let pages = while_being_dropped(&device, fill, || lent.into_pages().unwrap());
    let seven = f32::from_bits(7);
    assert_eq!(Page::values::<f32>(&pages), [seven + seven; 1024]);
    works(&device);
}

/// Lent pages that end while kernels of other contexts run leave those alone.
#[test]
fn the_end_of_lent_pages_leaves_other_contexts_alone() {
    let device = device(LONG);
    let other = device.new_context().unwrap();
    let (here, there) = (Endless::new(&device), Endless::new(&other));
    let (first, far) = (device.stream().unwrap(), other.stream().unwrap());
    let lent = device.register::<u32>(Page::zeroed(1)).unwrap();
    let unharmed = there.begin(&far);
    // The pages stay as long as this runs,
    let before = here.begin(&first);
    drop(lent);
    // and are still mapped for a kernel that begins meanwhile and runs on.
    let later = Endless::new(&device);
    let second = device.stream().unwrap();
    let running = later.begin(&second);
    std::thread::sleep(Duration::from_millis(50));
    here.end();
    before.wait().unwrap();
    let start = Instant::now();
    drop(device.alloc::<u8>(1).unwrap());
    assert!(start.elapsed() < Duration::from_secs(10));
    later.end();
    // A simulated GPU may have had to stop that one.
    let ended = running.wait();
    assert!(matches!(ended, Ok(()) | Err(Error::Fault(_))), "{ended:?}");
    there.end();
    unharmed.wait().unwrap();
}

/// All work of a context is all of it.
#[test]
fn synchronizing_waits_for_streams_that_are_being_dropped() {
    let device = device(LONG);
    while_being_dropped(&device, |_| {}, || device.synchronize().unwrap());
    works(&device);
}

/// What a stream recorded that is being dropped is part of the profile.
#[test]
fn profiles_wait_for_streams_that_are_being_dropped() {
    let device = device(LONG);
    let source = device.upload(&[7_u32; 4096]).unwrap();
    let target = device.alloc::<u32>(4096).unwrap();
    let profile = device.profile().unwrap();
    let copy = |stream: &Stream| drop(stream.copy(&target, &source).unwrap());
    let recording = while_being_dropped(&device, copy, || profile.finish());
    assert!(recording.lost().is_none());
    let names: Vec<_> = recording
        .records()
        .iter()
        .map(|record| record.name())
        .collect();
    assert_eq!(names, ["loop", "copy"]);
}

/// A wait has its own limit, whatever another thread waits for on the same stream.
#[test]
fn a_limit_holds_while_others_wait_longer() {
    let device = device(Duration::from_secs(4));
    let endless = Endless::new(&device);
    let vadd = module(&device, "k").function("vadd").unwrap();
    let buffer = device.upload(&[0.0_f32; 64]).unwrap();
    let stream = device.stream().unwrap();
    let event = endless.begin(&stream);
    std::thread::scope(|scope| {
        let filling = scope.spawn(|| {
            let launch = stream.launch(&vadd).grid(1).block(64);
            let launch = launch.arg(&buffer).arg(&buffer).arg(&buffer).arg(64_i32);
            while launch.submit().is_ok() {}
        });
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!filling.is_finished(), "it should be waiting for room");
        let start = Instant::now();
        let error = event.wait_within(Duration::from_millis(50)).unwrap_err();
        let report = stream.diagnose();
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        for text in [error.to_string(), report.to_string()] {
            assert!(text.contains("loop"), "{text}");
        }
        filling.join().unwrap();
    });
    endless.end();
    stream.synchronize().unwrap();
}

/// Work of the context's own stream that another stream's fault took along is not taken for done.
#[test]
fn work_that_another_streams_fault_ended_is_told() {
    for placement in [Placement::Device, Placement::HostVisible, Placement::Pinned] {
        let device = device(LONG);
        let endless = Endless::new(&device);
        let (k, faults) = (module(&device, "k"), module(&device, "faults"));
        let (vadd, trap) = (
            k.function("vadd").unwrap(),
            faults.function("trap").unwrap(),
        );
        let one = device.upload(&[1.0_f32; 64]).unwrap();
        let sum = device.alloc_in::<f32>(64, placement).unwrap();
        sum.write(&[0.0; 64]).unwrap();
        let pinned = device.alloc_pinned::<f32>(64).unwrap();
        pinned.write(&[0.0; 64]).unwrap();
        let (own, other) = (device.default_stream().unwrap(), device.stream().unwrap());
        endless.begin(&own);
        let launch = own.launch(&vadd).block(64);
        launch
            .arg(&one)
            .arg(&one)
            .arg(&sum)
            .arg(64_i32)
            .submit()
            .unwrap();
        endless.begin(&other);
        let launch = other.launch(&vadd).block(64);
        launch
            .arg(&one)
            .arg(&one)
            .arg(&pinned)
            .arg(64_i32)
            .submit()
            .unwrap();
        let bad = device.stream().unwrap();
        let launch = bad.launch(&trap).block(32).arg(GpuVa(8));
        assert!(matches!(
            launch.submit().unwrap().wait(),
            Err(Error::Fault(_))
        ));
        // Each is told once; then the memory is there again as it is.
        assert!(matches!(sum.read(), Err(Error::Fault(_))), "{placement:?}");
        assert_eq!(sum.read().unwrap(), [0.0; 64]);
        assert!(matches!(pinned.read(), Err(Error::Fault(_))));
        assert_eq!(pinned.read().unwrap(), [0.0; 64]);
        works(&device);
    }
}

/// A stream that a fault has ended is told, and the others are waited for all the same.
#[test]
fn synchronizing_waits_for_all_streams_although_one_is_dead() {
    let device = device(LONG);
    let faults = module(&device, "faults");
    let memory = device.upload(&[7_u64; 16]).unwrap();
    let dead = device.stream().unwrap();
    let trap = faults.function("trap").unwrap();
    let launch = dead.launch(&trap).block(32).arg(&memory);
    assert!(matches!(
        launch.submit().unwrap().wait(),
        Err(Error::Fault(_))
    ));
    let endless = Endless::new(&device);
    let stream = device.stream().unwrap();
    let event = endless.begin(&stream);
    std::thread::scope(|scope| {
        let synchronizing = scope.spawn(|| (device.synchronize(), event.is_reached()));
        std::thread::sleep(Duration::from_millis(200));
        endless.end();
        let (synchronized, reached) = synchronizing.join().unwrap();
        assert!(
            matches!(synchronized, Err(Error::Fault(_))),
            "{synchronized:?}"
        );
        assert!(reached);
    });
    drop(dead);
    device.synchronize().unwrap();
}

/// The context's own stream can be given up like any other; the next copy gets a new one.
#[test]
fn the_contexts_own_stream_can_be_abandoned() {
    let device = device(Duration::from_millis(300));
    let endless = Endless::new(&device);
    let kept = device.upload(&[5_u32; 1000]).unwrap();
    for _ in 0..3 {
        let stream = device.default_stream().unwrap();
        drop(endless.begin(&stream));
        assert!(matches!(stream.synchronize(), Err(Error::Timeout { .. })));
        assert!(matches!(kept.read(), Err(Error::Timeout { .. })));
        let start = Instant::now();
        stream.abandon();
        assert_eq!(kept.read().unwrap(), [5; 1000]);
        assert!(start.elapsed() < Duration::from_secs(5));
        device.synchronize().unwrap();
    }
    // Also while somebody still holds it: what is made meanwhile does not end with it.
    let stream = device.default_stream().unwrap();
    let event = endless.begin(&stream);
    stream.abandon();
    let (other, own) = (device.stream().unwrap(), device.default_stream().unwrap());
    assert_eq!(kept.read().unwrap(), [5; 1000]);
    drop(event);
    other.synchronize().unwrap();
    other.fill(&kept, 6).unwrap().wait().unwrap();
    own.synchronize().unwrap();
    assert_eq!(kept.read().unwrap(), [6; 1000]);
}

/// A part of pinned memory that a copy between contexts names is known to be used.
#[test]
fn copies_between_contexts_use_pinned_memory() {
    let device = device(LONG);
    let other = device.new_context().unwrap();
    let endless = Endless::new(&device);
    let far = other.upload(&[9_u32; 4096]).unwrap();
    let pinned = device.alloc_pinned::<u32>(4096).unwrap();
    pinned.write(&[0; 4096]).unwrap();
    let stream = device.stream().unwrap();
    endless.begin(&stream);
    stream.copy_peer(&pinned.slice(..).unwrap(), &far).unwrap();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| pinned.read().unwrap());
        std::thread::sleep(Duration::from_millis(200));
        endless.end();
        assert_eq!(reading.join().unwrap(), [9; 4096]);
    });
}

/// An argument that comes back to the graph that it is given to, which its type may do: the trait is open.
#[test]
fn an_argument_may_use_the_graph_that_it_is_given_to() {
    struct Replaying<'a>(&'a nv_host::Graph, &'a Stream);
    impl nv_host::Arg for Replaying<'_> {
        fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
            self.0.replay(self.1).unwrap();
            use_bytes(&5_u32.to_le_bytes())
        }
    }
    let device = Arc::new(device(Duration::from_secs(5)));
    let (done, waiting) = std::sync::mpsc::channel();
    // On a thread of its own: a deadlock is to fail, not to hang.
    std::thread::spawn(move || {
        let step = module(&device, "graph").function("step").unwrap();
        let values = device.upload(&[1_u32; 32]).unwrap();
        let mut graph = nv_host::Graph::builder(&device);
        let launch = graph.launch(&step).block(32);
        let node = launch.arg(&values).arg(3_u32).arg(0_u32).add().unwrap();
        let graph = graph.build().unwrap();
        let stream = device.stream().unwrap();
        graph.set_arg(node, 1, Replaying(&graph, &stream)).unwrap();
        graph.replay(&stream).unwrap().wait().unwrap();
        done.send(values.read().unwrap()).unwrap();
    });
    let values = waiting.recv_timeout(Duration::from_secs(20)).unwrap();
    // Once with each argument: `step` is v * factor + addend.
    assert_eq!(values, [15; 32]);
}

/// What was printed is taken once, however many take it.
#[test]
fn printing_is_taken_once() {
    let device = device(LONG);
    let module = {
        let file = nv_tests::bytes("cubins/range/prints.fatbin");
        device.load(&file).unwrap()
    };
    let function = module.function("prints_much").unwrap();
    let stream = device.stream().unwrap();
    for _ in 0..10 {
        let launch = stream.launch(&function).grid(2).block(32).arg(3_i32);
        launch.submit().unwrap().wait().unwrap();
        let takes: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| module.take_printed().unwrap().text))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let some = takes.iter().filter(|text| !text.is_empty()).count();
        assert_eq!(some, 1, "{takes:?}");
    }
}

/// Loads and stores outside a mapping are dropped, as their documentation says.
#[test]
fn single_words_outside_a_mapping_are_dropped() {
    let device = device(LONG);
    let buffer = device.alloc_in::<u64>(4, Placement::Pinned).unwrap();
    let mapping = buffer.mapping().unwrap();
    buffer.write(&[u64::MAX; 4]).unwrap();
    for offset in [
        mapping.len(),
        mapping.len() - 2,
        1,
        usize::MAX,
        usize::MAX - 7,
    ] {
        mapping.write_u64(offset, 0);
        mapping.write_u32(offset, 0);
        assert_eq!(mapping.read_u64(offset), 0, "{offset:#x}");
        assert_eq!(mapping.read_u32(offset), 0, "{offset:#x}");
    }
    assert_eq!(buffer.read().unwrap(), [u64::MAX; 4]);
}

/// Every handle prints as what it is, and not as all that it holds on to.
#[test]
fn handles_print_shortly() {
    let device = device(LONG);
    let stream = device.stream().unwrap();
    let kernels = module(&device, "k");
    let vadd = kernels.function("vadd").unwrap();
    let buffer = device.upload(&[1_u32; 1000]).unwrap();
    let pinned = device.alloc_pinned::<u32>(10).unwrap();
    let texts = [
        format!("{device:?}"),
        format!("{:?}", device.context()),
        format!("{stream:?}"),
        format!("{:?}", stream.event()),
        format!("{kernels:?}"),
        format!("{vadd:?}"),
        format!("{buffer:?}"),
        format!("{pinned:?}"),
        format!("{:?}", stream.launch(&vadd)),
    ];
    for text in texts {
        assert!(text.len() < 8000, "{} bytes: {}", text.len(), &text[..500]);
    }
}

/// A stray store to a stream's timeline does not make work look done that is not.
#[test]
fn a_timeline_that_is_written_over_is_not_believed() {
    let device = device(LONG);
    let first = device.alloc::<u8>(1).unwrap();
    let stream = device.stream().unwrap();
    // The stream's page of host memory holds its timeline.
    let mut regions = Vec::new();
    let mut next = device.neighbours(first.va().0).above;
    while let Some(region) = next {
        regions.push(region);
        next = device.neighbours(region.start.0).above;
    }
    let page = regions
        .iter()
        .find(|region| region.what == nv_host::Use::Stream && region.bytes == 4096)
        .unwrap();
    let endless = Endless::new(&device);
    let other = device.stream().unwrap();
    let event = endless.begin(&stream);
    let mut words = [0; 8];
    let mut push = PushWriter::new(&mut words);
    let at = GpuVa(page.start.0 + 0x800);
    push.write(Subchannel::HOST, &SemRelease::with_timestamp(at, 7 << 60))
        .unwrap();
    other.submit_words(push.finish()).unwrap().wait().unwrap();
    assert!(!event.is_reached());
    let waited = event.wait_within(Duration::from_millis(200));
    assert!(matches!(waited, Err(Error::Timeout { .. })), "{waited:?}");
    endless.end();
}
