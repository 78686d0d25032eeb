//! y = k * x + y on whatever GPU there is; docs/from-cudarc.md sets it beside the same program for cudarc.

use nv_host::{Device, Error, Graph, launch};

fn main() -> Result<(), Error> {
    let device = Device::open_best()?;
    let y = saxpy(&device)?;
    println!(
        "{}: y[0] = {}, y[999] = {}",
        device.info().name,
        y[0],
        y[999]
    );
    Ok(())
}

/// Adds multiples of x to y, by launches and by a graph.
pub fn saxpy(device: &Device) -> Result<Vec<f32>, Error> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/bench");
    let file = format!("{folder}/bench.{}.cubin", device.info().sm);
    let cubin = std::fs::read(&file).map_err(|error| Error::Cubin(format!("{file}: {error}")))?;
    let saxpy = device.load(&cubin)?.function("saxpy")?;

    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let on_x = device.upload(&x)?;
    let on_y = device.upload(&[1.0_f32; 1000])?;
    let stream = device.stream()?;

    // Once, and again with other arguments.
    launch!(stream, saxpy[4, 256](2.0_f32, &on_x, &on_y, 1000_i64))?;
    launch!(stream, saxpy[4, 256](3.0_f32, &on_x, &on_y, 1000_i64))?;

    // The same as a graph: put together once, replayed with a changed argument.
    let mut graph = Graph::builder(device);
    let first = launch!(graph, saxpy[4, 256](0.0_f32, &on_x, &on_y, 1000_i64))?;
    launch!(graph, saxpy[4, 256](-5.0_f32, &on_x, &on_y, 1000_i64))?;
    let graph = graph.build()?;
    for k in 0..4_u8 {
        graph.set_arg(first, 0, f32::from(k))?;
        graph.replay(&stream)?;
    }

    stream.synchronize()?;
    on_y.read()
}
