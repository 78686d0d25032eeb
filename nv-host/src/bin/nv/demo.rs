//! `nv demo`: four real kernels, every element checked.

use std::time::{Duration, Instant};

use nv_host::{Device, Element, Event, Function, Module};
use nv_proto::unit::Dim3;
use serde::Serialize;

use crate::device::DeviceArgs;
use crate::exit::Failure;
use crate::out;
use crate::profile::{self, ProfileArgs};
use crate::table::table;

/// Run the demonstration.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
}

/// The cubins of `tests/cubins/demo`, by the architecture that they are for.
const CUBINS: [(u16, &[u8]); 5] = [
    (80, include_bytes!("../../../demo/demo.sm_80.cubin")),
    (86, include_bytes!("../../../demo/demo.sm_86.cubin")),
    (89, include_bytes!("../../../demo/demo.sm_89.cubin")),
    (90, include_bytes!("../../../demo/demo.sm_90.cubin")),
    (120, include_bytes!("../../../demo/demo.sm_120.cubin")),
];

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row {
    kernel: String,
    grid: String,
    block: String,
    registers: u32,
    /// Bytes of shared memory that the kernel asks for.
    shared: u32,
    /// From submission to the signal, in microseconds.
    time_us: f64,
    /// Elements checked.
    elements: usize,
    /// Elements that differ from what the CPU computed.
    wrong: usize,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    device: &'a str,
    architecture: String,
    driver: &'a str,
    simulated: bool,
    map_mode: String,
    /// From the start of the command to the first kernel's result, in milliseconds.
    first_result_ms: f64,
    kernels: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<profile::Report<'a>>,
}

/// Runs the demonstration; a wrong element is a failure.
pub fn run(args: &Args) -> Result<(), Failure> {
    let begin = Instant::now();
    let device = args.device.open()?;
    let profile = args.profile.begin(&device)?;
    let module = device.load(built_for(&device, &CUBINS)?)?;
    let first = vector_add(&device, &module)?;
    let first_result = begin.elapsed();
    let rows = [
        first,
        reduce_sum(&device, &module)?,
        matrix_multiply(&device, &module)?,
        local_walk(&device, &module)?,
    ];
    let recording = args.profile.finish(profile)?;
    let info = device.info();
    let simulated = !matches!(info.kind, nv_host::driver::Kind::Kernel);
    if args.json {
        let report = Report {
            device: &info.name,
            architecture: info.sm.to_string(),
            driver: &info.driver,
            simulated,
            map_mode: format!("{:?}", info.map_mode).to_lowercase(),
            first_result_ms: milliseconds(first_result),
            kernels: &rows,
            profile: recording.as_ref().map(profile::report),
        };
        out::json(&report)?;
    } else {
        let mut shown = table(&[
            "kernel",
            "grid",
            "block",
            "registers",
            "shared",
            "time",
            "result",
        ]);
        for row in &rows {
            shown.add_row([
                row.kernel.clone(),
                row.grid.clone(),
                row.block.clone(),
                row.registers.to_string(),
                format!("{} B", row.shared),
                format!("{:.1} us", row.time_us),
                match row.wrong {
                    0 => format!("ok, {} elements", row.elements),
                    wrong => format!("WRONG: {wrong} of {} elements", row.elements),
                },
            ]);
        }
        out::text(&format!(
            "{} ({}), driver {}, memory mapped by {}\n{}\nfirst result after {:.1} ms\n",
            info.name,
            info.sm,
            info.driver,
            info.map_mode,
            shown.trim_fmt(),
            milliseconds(first_result)
        ))?;
        if let (Some(recording), true) = (&recording, args.profile.wants_table()) {
            out::text(&profile::text(recording))?;
        }
    }
    if rows.iter().any(|row| row.wrong > 0) {
        Err(Failure::Failed)
    } else {
        Ok(())
    }
}

/// The newest of `cubins` that the device runs.
pub fn built_for(
    device: &Device,
    cubins: &[(u16, &'static [u8])],
) -> Result<&'static [u8], Failure> {
    let sm = device.info().sm;
    cubins
        .iter()
        .rev()
        .find(|(built_for, _)| sm.major() == built_for / 10 && sm.0 >= *built_for)
        .map(|(_, cubin)| *cubin)
        .ok_or_else(|| {
            Failure::BadInput(format!(
                "there is no cubin for {sm} in this program; tests/cubins says how to make one"
            ))
        })
}

/// c = a + b.
fn vector_add(device: &Device, module: &Module) -> Result<Row, Failure> {
    const N: u32 = 1 << 16;
    let a: Vec<f32> = (0..N).map(|i| i as f32 * 0.5).collect();
    let b: Vec<f32> = (0..N).map(|i| (N - i) as f32 * 0.25).collect();
    let (on_a, on_b) = (device.upload(&a)?, device.upload(&b)?);
    let on_c = device.alloc::<f32>(a.len())?;
    let function = module.function("vector_add")?;
    // One element more than the buffers hold, so that the bounds check in the kernel matters.
    let (grid, block) = (Dim3::from(N / 256 + 1), Dim3::from(256));
    let stream = device.default_stream()?;
    let launch = stream
        .launch(&function)
        .grid(grid)
        .block(block)
        .arg(&on_a)
        .arg(&on_b)
        .arg(&on_c)
        .arg(N);
    let time = timed(|| launch.submit())?;
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    Ok(row(&function, grid, block, time, &on_c.read()?, &expected))
}

/// One sum a block, through shared memory.
fn reduce_sum(device: &Device, module: &Module) -> Result<Row, Failure> {
    const N: u32 = 50_000;
    const BLOCKS: u32 = 24;
    let a: Vec<u32> = (0..N).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let on_a = device.upload(&a)?;
    let on_sums = device.alloc::<u32>(BLOCKS as usize)?;
    let function = module.function("reduce_sum")?;
    let (grid, block) = (Dim3::from(BLOCKS), Dim3::from(256));
    let stream = device.default_stream()?;
    let launch = stream
        .launch(&function)
        .grid(grid)
        .block(block)
        .arg(&on_a)
        .arg(&on_sums)
        .arg(N);
    let time = timed(|| launch.submit())?;
    let mut expected = vec![0_u32; BLOCKS as usize];
    for (i, value) in a.iter().enumerate() {
        let block = i / 256 % BLOCKS as usize;
        if let Some(sum) = expected.get_mut(block) {
            *sum = sum.wrapping_add(*value);
        }
    }
    Ok(row(
        &function,
        grid,
        block,
        time,
        &on_sums.read()?,
        &expected,
    ))
}

/// c = a * b in tiles.
fn matrix_multiply(device: &Device, module: &Module) -> Result<Row, Failure> {
    const N: u32 = 96;
    let n = N as usize;
    let a: Vec<f32> = (0..N * N).map(|i| (i % 17) as f32 * 0.125 - 1.0).collect();
    let b: Vec<f32> = (0..N * N).map(|i| (i % 23) as f32 * 0.0625 + 0.5).collect();
    let (on_a, on_b) = (device.upload(&a)?, device.upload(&b)?);
    let on_c = device.alloc::<f32>(n * n)?;
    let function = module.function("matrix_multiply")?;
    let (grid, block) = (Dim3::from((N / 16, N / 16)), Dim3::from((16, 16)));
    let stream = device.default_stream()?;
    let launch = stream
        .launch(&function)
        .grid(grid)
        .block(block)
        .arg(&on_a)
        .arg(&on_b)
        .arg(&on_c)
        .arg(N);
    let time = timed(|| launch.submit())?;
    // The kernel's order of fused operations, so that every bit is the same.
    let expected: Vec<f32> = (0..n * n)
        .map(|at| {
            let (row, column) = (at / n, at % n);
            let line = a.iter().skip(row * n).take(n);
            let down = b.iter().skip(column).step_by(n);
            line.zip(down).fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
        })
        .collect();
    Ok(row(&function, grid, block, time, &on_c.read()?, &expected))
}

/// A walk through an array in local memory.
fn local_walk(device: &Device, module: &Module) -> Result<Row, Failure> {
    const STEPS: u32 = 100;
    let steps: Vec<u32> = (0..STEPS)
        .map(|i| i.wrapping_mul(0x9e37_79b9) ^ 0x5bd1)
        .collect();
    let on_steps = device.upload(&steps)?;
    let function = module.function("local_walk")?;
    let (grid, block) = (Dim3::from(13), Dim3::from(96));
    let on_out = device.alloc::<u32>(13 * 96)?;
    let stream = device.default_stream()?;
    let launch = stream
        .launch(&function)
        .grid(grid)
        .block(block)
        .arg(&on_steps)
        .arg(&on_out)
        .arg(STEPS);
    let time = timed(|| launch.submit())?;
    let expected: Vec<u32> = (0..13 * 96_u32)
        .map(|thread| walk(&steps, thread))
        .collect();
    Ok(row(
        &function,
        grid,
        block,
        time,
        &on_out.read()?,
        &expected,
    ))
}

/// What one thread of `local_walk` computes.
fn walk(steps: &[u32], thread: u32) -> u32 {
    let mut cells: [u32; 64] =
        std::array::from_fn(|k| (k as u32).wrapping_mul(2_654_435_761).wrapping_add(thread));
    let mut at = (thread & 63) as usize;
    for step in steps {
        if let Some(cell) = cells.get_mut(at) {
            *cell = cell.wrapping_add(step ^ thread);
            at = (*cell >> 5 & 63) as usize;
        }
    }
    cells
        .iter()
        .fold(0, |sum: u32, cell| sum.wrapping_mul(31).wrapping_add(*cell))
}

/// Submits, waits, and says how long both took.
fn timed(submit: impl FnOnce() -> Result<Event, nv_host::Error>) -> Result<Duration, Failure> {
    let start = Instant::now();
    submit()?.wait()?;
    Ok(start.elapsed())
}

/// Compares every element.
fn row<T: Element + PartialEq>(
    function: &Function,
    grid: Dim3,
    block: Dim3,
    time: Duration,
    result: &[T],
    expected: &[T],
) -> Row {
    let differing = result.iter().zip(expected).filter(|(a, b)| a != b).count();
    Row {
        kernel: function.name().to_owned(),
        grid: grid.to_string(),
        block: block.to_string(),
        registers: function.registers(),
        shared: function.static_shared(),
        time_us: time.as_secs_f64() * 1e6,
        elements: expected.len(),
        wrong: differing + result.len().abs_diff(expected.len()),
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
