//! `nv bench`: latencies and bandwidths, under the names that the vendor library's baseline uses
//! (`tests/cubins/bench/cuda_baseline.c`), so that the two can be set side by side; and some that it has not.

use std::time::{Duration, Instant};

use nv_host::{
    Buffer, Device, Event, Function, Graph, GraphBuilder, GraphNode, Placement, Stream, launch,
};
use serde::Serialize;

use crate::device::DeviceArgs;
use crate::exit::Failure;
use crate::out;
use crate::table::table;

/// Measure the device.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    /// Few and small measurements, whatever sizes their names say; always so on a simulated GPU, whose times mean
    /// nothing.
    #[arg(long)]
    quick: bool,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

/// The cubins of `tests/cubins/bench`, by the architecture that they are for.
const CUBINS: [(u16, &[u8]); 5] = [
    (80, include_bytes!("../../../bench/bench.sm_80.cubin")),
    (86, include_bytes!("../../../bench/bench.sm_86.cubin")),
    (89, include_bytes!("../../../bench/bench.sm_89.cubin")),
    (90, include_bytes!("../../../bench/bench.sm_90.cubin")),
    (120, include_bytes!("../../../bench/bench.sm_120.cubin")),
];

/// Measures and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::now();
    let device = args.device.open()?;
    let opened = begin.elapsed();
    let simulated = !matches!(device.info().kind, nv_host::driver::Kind::Kernel);
    if simulated && !args.quick {
        crate::out::note(format_args!(
            "measuring as by --quick: a simulated GPU has not the memory for more, and its times mean nothing"
        ));
    }
    let figures = measure(&device, opened, begin, args.quick || simulated)?;
    if args.json {
        out::json(&figures)?;
    } else {
        let mut shown = table(&["measure", "value", "unit"]);
        for Figure { name, value, unit } in &figures {
            shown.add_row([
                (*name).to_owned(),
                format!("{value:.3}"),
                (*unit).to_owned(),
            ]);
        }
        out::text(&format!("{}\n", shown.trim_fmt()))?;
    }
    Ok(())
}

fn measure(
    device: &Device,
    opened: Duration,
    begin: Instant,
    quick: bool,
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    let mut add = |name, value, unit| figures.push(Figure { name, value, unit });
    let rounds = |full: usize| if quick { full.div_ceil(1000) } else { full };

    add("init_to_context", opened.as_secs_f64() * 1e3, "ms");
    let cubin = crate::demo::built_for(device, &CUBINS)?;
    let start = Instant::now();
    let module = device.load(cubin)?;
    add("module_load", micros(start.elapsed()), "us");
    let (empty, vadd, saxpy) = (
        module.function("empty")?,
        module.function("vadd")?,
        module.function("saxpy")?,
    );
    let stream = device.stream()?;
    let start = Instant::now();
    let first = stream.launch(&empty).grid(1).block(32).submit()?;
    let submitted = start.elapsed();
    first.wait()?;
    add("first_launch_sync", micros(start.elapsed()), "us");
    add("first_launch_submit", micros(submitted), "us");
    add(
        "start_to_first_result",
        begin.elapsed().as_secs_f64() * 1e3,
        "ms",
    );

    // The parts of a first launch, each waited for with no sleep: what a channel does first, and what a module does.
    let other = device.stream()?;
    let start = Instant::now();
    spin(&other.event())?;
    add("stream_first_work", micros(start.elapsed()), "us");
    let again = device.load(cubin)?.function("empty")?;
    let start = Instant::now();
    let first = other.launch(&again).grid(1).block(32).submit()?;
    let submitted = start.elapsed();
    spin(&first)?;
    add("module_first_launch_sync", micros(start.elapsed()), "us");
    add("module_first_launch_submit", micros(submitted), "us");
    drop((first, again, other));

    // An idle GPU runs at low clocks: warm up first, as the baseline's own first rounds do.
    let launch = stream.launch(&empty).grid(1).block(32);
    for _ in 0..rounds(20_000) {
        launch.submit()?;
    }
    stream.synchronize()?;
    let sample = median(rounds(5000), || {
        launch.submit()?.wait()?;
        Ok(())
    })?;
    add("launch_sync_empty", micros(sample), "us");

    let big: usize = if quick { 1 << 20 } else { 1 << 30 };
    let (a, b, y) = (
        device.alloc::<u8>(big)?,
        device.alloc::<u8>(big)?,
        device.alloc::<u8>(big)?,
    );
    let launch = stream
        .launch(&vadd)
        .grid(1)
        .block(256)
        .arg(&a)
        .arg(&b)
        .arg(&y)
        .arg(256_i32);
    let sample = median(rounds(5000), || {
        launch.submit()?.wait()?;
        Ok(())
    })?;
    add("launch_sync_vadd", micros(sample), "us");

    let (mut enqueue, mut through) = (Vec::new(), Vec::new());
    let burst = rounds(4000);
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..burst {
            launch.submit()?;
        }
        enqueue.push(start.elapsed());
        stream.synchronize()?;
        through.push(start.elapsed());
    }
    add(
        "launch_enqueue_cost",
        micros(middle(&mut enqueue)) / burst as f64,
        "us/launch",
    );
    add(
        "launch_throughput_cost",
        micros(middle(&mut through)) / burst as f64,
        "us/launch",
    );

    measure_graphs(
        device,
        &stream,
        &vadd,
        &empty,
        [&a, &b, &y],
        &rounds,
        &mut add,
    )?;

    let pinned_bytes = if quick { 1 << 20 } else { 256 << 20 };
    let pinned = device.alloc_in::<u8>(pinned_bytes, Placement::Pinned)?;
    let part = device.alloc::<u8>(pinned_bytes)?;
    let sample = median(10, || {
        stream.copy(&part, &pinned)?.wait()?;
        Ok(())
    })?;
    add("h2d_pinned_256M", gigabytes(pinned_bytes, sample), "GB/s");
    let sample = median(10, || {
        stream.copy(&pinned, &part)?.wait()?;
        Ok(())
    })?;
    add("d2h_pinned_256M", gigabytes(pinned_bytes, sample), "GB/s");
    let sample = median(20, || {
        stream.copy(&b, &a)?.wait()?;
        Ok(())
    })?;
    add(
        "d2d_1G_read_plus_write",
        2.0 * gigabytes(big, sample),
        "GB/s",
    );
    let mut pageable = vec![2_u8; pinned_bytes];
    let sample = median(5, || {
        part.write(&pageable)?;
        Ok(())
    })?;
    add("h2d_pageable_256M", gigabytes(pinned_bytes, sample), "GB/s");
    let sample = median(5, || {
        part.read_into(&mut pageable)?;
        Ok(())
    })?;
    add("d2h_pageable_256M", gigabytes(pinned_bytes, sample), "GB/s");
    let sample = median(10, || {
        stream.fill(&b, 0)?.wait()?;
        Ok(())
    })?;
    add("fill_1G", gigabytes(big, sample), "GB/s");

    let small = device.alloc_in::<u8>(4096, Placement::Pinned)?;
    let small_on_gpu = device.alloc::<u8>(4096)?;
    let sample = median(rounds(2000), || {
        stream.copy(&small_on_gpu, &small)?.wait()?;
        Ok(())
    })?;
    add("h2d_4K_sync", micros(sample), "us");
    let sample = median(rounds(2000), || {
        stream.copy(&small, &small_on_gpu)?.wait()?;
        Ok(())
    })?;
    add("d2h_4K_sync", micros(sample), "us");

    let sample = median(rounds(2000), || {
        drop(device.alloc::<u8>(4096)?);
        Ok(())
    })?;
    add("alloc_free_4K", micros(sample), "us");
    let sample = median(rounds(200), || {
        drop(device.alloc::<u8>(2 << 20)?);
        Ok(())
    })?;
    add("alloc_free_2M", micros(sample), "us");
    let sample = median(rounds(20), || {
        drop(device.alloc::<u8>(big)?);
        Ok(())
    })?;
    add("alloc_free_1G", micros(sample), "us");

    let n = (big / 4) as i64;
    let (grid, block) = if quick { (8, 128) } else { (132 * 16, 512) };
    let launch = stream
        .launch(&saxpy)
        .grid(grid)
        .block(block)
        .arg(2.0_f32)
        .arg(&a)
        .arg(&b)
        .arg(n);
    let sample = median(if quick { 1 } else { 20 }, || {
        launch.submit()?.wait()?;
        Ok(())
    })?;
    add("saxpy_1G_traffic", 3.0 * gigabytes(big, sample), "GB/s");
    Ok(figures)
}

/// Graphs of 100 kernels: each replay waited for, as the baseline does, and one after the other with no wait.
fn measure_graphs(
    device: &Device,
    stream: &Stream,
    vadd: &Function,
    empty: &Function,
    [a, b, y]: [&Buffer<u8>; 3],
    rounds: &impl Fn(usize) -> usize,
    add: &mut impl FnMut(&'static str, f64, &'static str),
) -> Result<(), Failure> {
    const KERNELS: u32 = 100;
    let build = |launch: &dyn Fn(&mut GraphBuilder) -> Result<GraphNode, nv_host::Error>| {
        let mut graph = Graph::builder(device);
        let mut first = None;
        for _ in 0..KERNELS {
            let node = launch(&mut graph)?;
            first.get_or_insert(node);
        }
        Ok::<_, nv_host::Error>((graph.build()?, first))
    };
    let (graph, first) = build(&|graph| launch!(graph, vadd[1, 256](a, b, y, 256_i32)))?;
    graph.replay(stream)?.wait()?;
    let sample = median(rounds(500), || graph.replay(stream)?.wait())?;
    add("graph100_replay_sync", micros(sample), "us");
    let per_kernel = micros(sample) / f64::from(KERNELS);
    add("graph100_per_kernel", per_kernel, "us/kernel");
    if let Some(first) = first {
        let sample = median(rounds(500), || {
            graph.set_arg(first, 3, 256_i32)?;
            graph.replay(stream)?.wait()
        })?;
        add("graph100_patch_replay_sync", micros(sample), "us");
    }

    let (graph, _) = build(&|graph| launch!(graph, empty[1, 32]()))?;
    graph.replay(stream)?.wait()?;
    let sample = median(rounds(500), || graph.replay(stream)?.wait())?;
    add("graph100_empty_replay_sync", micros(sample), "us");
    let (mut enqueue, replays) = (Vec::new(), rounds(1000));
    let start = Instant::now();
    for replay in 0..replays {
        // From the third on, a replay waits for the one before the last.
        let begin = Instant::now();
        graph.replay(stream)?;
        if replay < 2 {
            enqueue.push(begin.elapsed());
        }
    }
    stream.synchronize()?;
    let each = micros(start.elapsed()) / replays as f64;
    add(
        "graph100_empty_per_kernel",
        each / f64::from(KERNELS),
        "us/kernel",
    );
    add("graph100_enqueue_cost", micros(middle(&mut enqueue)), "us");
    Ok(())
}

/// Waits for `event` with no sleep, for at most two seconds, then as usual.
fn spin(event: &Event) -> Result<(), nv_host::Error> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        if event.is_reached() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    event.wait()
}

/// The median time of `rounds` runs.
fn median(
    rounds: usize,
    mut run: impl FnMut() -> Result<(), nv_host::Error>,
) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(rounds.max(1));
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    Ok(middle(&mut times))
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// 10^9 bytes a second.
fn gigabytes(bytes: usize, duration: Duration) -> f64 {
    bytes as f64 / duration.as_secs_f64() / 1e9
}
