//! Everything that the library does, by several threads at once, on a machine whose memory is short, with faults and
//! streams that are given up in between: each call ends in a result or in an error that belongs to it, in bounded time,
//! and nothing is left.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nv_host::{
    Backend, Buffer, Context, Device, Error, Event, Graph, GraphNode, MapMode, Options, Page,
    PeerBuffer, Placement, SimMachine, Stream, launch,
};
use nv_sim::Chip;
use nv_tests::conformance::works;

const LIMIT: Duration = Duration::from_millis(400);
/// How long one step may take: it waits for several streams, each up to the limit, on a busy machine.
const STEP: Duration = Duration::from_secs(20);

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// What the threads share.
struct Shared {
    devices: [Device; 2],
    events: Mutex<Vec<Event>>,
    graphs: Mutex<Vec<Arc<(Graph, GraphNode)>>>,
    buffers: Mutex<Vec<Buffer<u32>>>,
    mapped: Mutex<Vec<PeerBuffer<u32>>>,
}

fn take<T>(list: &Mutex<Vec<T>>) -> Option<T> {
    list.lock().unwrap().pop()
}

/// Keeps a few; the rest is dropped with the list no longer taken.
fn put<T>(list: &Mutex<Vec<T>>, value: T) {
    let mut list = list.lock().unwrap();
    list.push(value);
    let old = (list.len() > 6).then(|| list.remove(0));
    drop(list);
    drop(old);
}

/// A launch that runs until its stream is given up or its flag is set.
fn endless(context: &Context, stream: &Stream) -> Result<Buffer<u64>, Error> {
    let flag = context.alloc_in::<u64>(16, Placement::Pinned)?;
    flag.mapping().unwrap().fill(0, 128, 0)?;
    let function = load(context, "faults")?.function("loop")?;
    launch!(stream, function[1, 32](&flag))?;
    Ok(flag)
}

fn load(context: &Context, name: &str) -> Result<nv_host::Module, Error> {
    context.load(&nv_tests::bytes(&format!(
        "cubins/{name}/{name}.sm_90.cubin"
    )))
}

fn step(
    shared: &Shared,
    random: &mut Random,
    own: &mut Option<Stream>,
    what: u64,
) -> Result<(), Error> {
    let which = random.below(2) as usize;
    let (device, other) = (&shared.devices[which], &shared.devices[1 - which]);
    let stream = match own {
        Some(stream) if random.below(8) != 0 => stream.clone(),
        _ => own.insert(device.stream()?).clone(),
    };
    let context = stream.context().clone();
    let len = 1 + random.below(3000) as usize;
    match what {
        0 => *own = None,
        1 => *own = Some(context.default_stream()?),
        2 if random.below(3) == 0 => {
            let trap = load(&context, "faults")?.function("trap")?;
            launch!(stream, trap[1, 32](&context.upload(&[7_u64; 16])?))?.wait()?;
        }
        3 if random.below(3) == 0 => {
            let flag = endless(&context, &stream)?;
            if random.below(2) == 0 {
                flag.mapping().unwrap().write_u64(8, 99);
            } else {
                stream.clone().abandon();
                *own = None;
            }
        }
        4 => {
            if let Some(event) = take(&shared.events) {
                stream.wait_for(&event)?;
                let _ = event.timestamp();
            }
        }
        5 => put(&shared.events, stream.record()?),
        6 => put(&shared.events, stream.event()),
        7 => {
            let values = vec![9_u32; len];
            let buffer = context.alloc::<u32>(len)?;
            put(&shared.events, stream.upload(&buffer, &values)?);
            let back = stream.download(&buffer)?;
            if random.below(2) == 0 {
                assert_eq!(back.wait()?, values);
            }
        }
        8 => {
            let pinned = context.alloc_pinned::<u32>(len)?;
            stream.fill(&pinned, 3)?;
            assert_eq!(pinned.read()?, vec![3; len]);
        }
        9 => {
            let lent = context.register::<u32>(Page::zeroed(1 + len / 1024))?;
            stream.fill(&lent.slice(..len.min(lent.len()))?, 8)?;
            if random.below(3) > 0 {
                let pages = lent.into_pages()?;
                assert_eq!(Page::values::<u32>(&pages)[0], 8);
            }
        }
        10 => {
            let size = 1 << (10 + random.below(18));
            let buffer = context.alloc::<u32>(size)?;
            stream.fill(&buffer, 1)?;
            put(&shared.buffers, buffer);
        }
        11 => drop(take(&shared.buffers)),
        12 => {
            if let Some(buffer) = take(&shared.buffers) {
                match buffer.map_for(other) {
                    Ok(mapped) => put(&shared.mapped, mapped),
                    Err(Error::InvalidArgument(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        13 => {
            if let Some(mapped) = take(&shared.mapped) {
                let here = mapped.context().stream()?;
                let target = mapped.context().alloc::<u32>(mapped.len())?;
                here.copy_peer(&target, &mapped)?;
            }
        }
        14 => {
            let (far, near) = (other.upload(&vec![4_u32; len])?, device.alloc::<u32>(len)?);
            let here = device.stream()?;
            here.copy_peer(&near, &far)?.wait()?;
            assert_eq!(near.read()?, vec![4; len]);
        }
        15 | 16 => {
            let step = load(&context, "graph")?.function("step")?;
            let values = context.upload(&[1_u32; 256])?;
            let mut graph = Graph::builder(&context);
            let node = launch!(graph, step[1, 256](&values, 3_u32, 0_u32))?;
            graph.fill(&values, 5)?;
            launch!(graph, step[1, 256](&values, 2_u32, 1_u32))?;
            put(&shared.graphs, Arc::new((graph.build()?, node)));
        }
        17 | 18 => {
            let graph = shared.graphs.lock().unwrap().last().cloned();
            if let Some(graph) = graph {
                let (graph, node) = &*graph;
                graph.set_arg(*node, 1, len as u32)?;
                let replayed = match graph.replay(&stream) {
                    Err(Error::InvalidArgument(_)) => graph.replay(&graph.context().stream()?),
                    replayed => replayed,
                };
                put(&shared.events, replayed?);
            }
        }
        19 => {
            let profile = match context.profile() {
                Err(Error::InvalidArgument(_)) => return Ok(()),
                profile => profile?,
            };
            stream.fill(&context.alloc::<u32>(len)?, 1)?;
            if random.below(2) == 0 {
                drop(profile.finish().chrome_trace());
            }
        }
        20 => {
            let file = nv_tests::bytes("cubins/range/prints.fatbin");
            let module = context.load(&file)?;
            let prints = module.function("prints_much")?;
            let printed = launch!(stream, prints[1, 32](2_i32))?;
            if random.below(2) == 0 {
                printed.wait()?;
                assert_eq!(module.take_printed()?.text.lines().count(), 64);
            }
        }
        21 => {
            let local = load(&context, "k")?.function("loc")?;
            let index = context.upload(&[0_i32; 1024])?;
            let out = context.alloc::<f32>(64)?;
            let stack = 1000 * (1 + random.below(3)) as u32;
            let launch = stream.launch(&local).block(32).stack(stack);
            launch.arg(&index).arg(&out).arg(3_i32).submit()?;
        }
        22 => context.synchronize()?,
        _ => {
            let vadd = load(&context, "k")?.function("vadd")?;
            let one = context.upload(&vec![1.5_f32; len])?;
            let sum = context.alloc_in::<f32>(len, Placement::HostVisible)?;
            let blocks = len as u32 / 64 + 1;
            launch!(stream, vadd[blocks, 64](&one, &one, &sum, len as i32))?.wait()?;
            let (sums, ones) = (sum.read()?, one.read()?);
            let wrong = |values: &[f32], right: f32| {
                let wrong: Vec<_> = values
                    .iter()
                    .enumerate()
                    .filter(|(_, value)| **value != right)
                    .collect();
                (!wrong.is_empty()).then(|| {
                    format!(
                        "{} of {len}: {:?}",
                        wrong.len(),
                        &wrong[..wrong.len().min(6)]
                    )
                })
            };
            let wrong = (wrong(&sums, 3.0), wrong(&ones, 1.5));
            assert_eq!(
                wrong,
                (None, None),
                "sum at {}, one at {}",
                sum.va(),
                one.va()
            );
        }
    }
    Ok(())
}

fn all_at_once(map_mode: MapMode) {
    let options = nv_sim::Options {
        memory: 1500 << 20,
        ..nv_sim::Options::default()
    };
    let machine = SimMachine::new(&[Chip::Gh100, Chip::Gh100], options).unwrap();
    let left = {
        let machine = machine.clone();
        move || {
            let used = [0, 1].map(|gpu| machine.machine().vidmem_used(gpu));
            (machine.machine().object_count(), used)
        }
    };
    let before = left();
    let devices = [0, 1].map(|gpu| {
        Device::open(&Options {
            backend: Backend::SimIn(machine.clone(), gpu),
            map_mode: Some(map_mode),
            limit: LIMIT,
            ..Options::default()
        })
        .unwrap()
    });
    let shared = Shared {
        devices,
        events: Mutex::default(),
        graphs: Mutex::default(),
        buffers: Mutex::default(),
        mapped: Mutex::default(),
    };
    let seconds = std::env::var("NV_SECONDS").map_or(4, |seconds| seconds.parse().unwrap());
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let (mut done, failed) = ([0_u64; STEPS as usize], AtomicU64::new(0));
    std::thread::scope(|scope| {
        // What each thread does: the step, and since when; none when it has ended.
        let doing: [Mutex<Option<(u64, Instant)>>; 4] = Default::default();
        let doing = Arc::new(doing);
        let threads: Vec<_> = (0..doing.len())
            .map(|thread| {
                let (shared, failed, doing) = (&shared, &failed, Arc::clone(&doing));
                scope.spawn(move || {
                    let mut random =
                        Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(thread as u64 + 1));
                    let mut own = None;
                    let mut done = [0_u64; STEPS as usize];
                    while Instant::now() < end {
                        let what = random.below(STEPS);
                        *doing[thread].lock().unwrap() = Some((what, Instant::now()));
                        match step(shared, &mut random, &mut own, what) {
                            Ok(()) => done[what as usize] += 1,
                            Err(
                                Error::Fault(_) | Error::Timeout { .. } | Error::OutOfMemory { .. },
                            ) => {
                                failed.fetch_add(1, Ordering::Relaxed);
                                own = None;
                            }
                            Err(error) => panic!("step {what}: {error}"),
                        }
                    }
                    *doing[thread].lock().unwrap() = Some((u64::MAX, Instant::now()));
                    drop(own);
                    *doing[thread].lock().unwrap() = None;
                    done
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            for (thread, doing) in doing.iter().enumerate() {
                let Some((what, since)) = *doing.lock().unwrap() else {
                    continue;
                };
                if since.elapsed() > STEP && !threads[thread].is_finished() {
                    // A scope would wait for ever.
                    eprintln!("thread {thread} is stuck in step {what}");
                    std::process::abort();
                }
            }
        }
        for thread in threads {
            for (all, own) in done.iter_mut().zip(thread.join().unwrap()) {
                *all += own;
            }
        }
    });
    println!("{done:?}, {failed:?} failed");
    let Shared {
        devices,
        events,
        graphs,
        buffers,
        mapped,
    } = shared;
    drop((events, graphs, buffers, mapped));
    for device in &devices {
        // What is still queued ends, if not within the short limit where the machine is busy; and where a fault took
        // work along that nobody came after, it is told now, and the stream replaced.
        let start = Instant::now();
        while let Err(error) = device.default_stream().and_then(|_| device.synchronize()) {
            assert!(start.elapsed() < STEP, "{error}");
        }
        works(device);
    }
    drop(devices);
    assert_eq!(left(), before);
}

#[test]
fn everything_at_once() {
    all_at_once(MapMode::Rm);
}

#[test]
fn everything_at_once_by_uvm() {
    all_at_once(MapMode::Uvm);
}

/// How many kinds of steps there are.
const STEPS: u64 = 24;
