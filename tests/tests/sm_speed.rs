//! How fast the interpreter is. Not run by default: `cargo test -p nv-tests --test sm_speed -- --ignored --nocapture`.

mod sm_support;

use std::time::Instant;

use sm_support::{Args, Machine, Random, shape};

#[test]
#[ignore = "measures, asserts nothing about results"]
fn lane_instructions_per_second() {
    for sm in [80, 90, 120] {
        let mut m = Machine::load(&format!("demo/demo.sm_{sm}.cubin"), sm);
        let n = 256;
        let mut random = Random(1);
        let (a, b) = (random.floats(n * n), random.floats(n * n));
        let (va, vb, vc) = (
            m.space.floats(&a),
            m.space.floats(&b),
            m.space.alloc(4 * n * n),
        );
        let count = 1 << 20;
        let (long, sum) = (m.space.alloc(4 * count), m.space.alloc(4 * 256));
        let tiles = (n / 16) as u32;
        let matrix = Args::default().ptr(va).ptr(vb).ptr(vc).u32(n as u32);
        let vector = Args::default()
            .ptr(long)
            .ptr(long)
            .ptr(long)
            .u32(count as u32);
        let reduce = Args::default().ptr(long).ptr(sum).u32(count as u32);
        let local = Args::default().ptr(long).ptr(sum).u32(400);
        for (name, shape, args) in [
            ("matrix_multiply", shape((tiles, tiles), (16, 16)), matrix),
            ("vector_add", shape(count as u32 / 256, 256), vector),
            ("reduce_sum", shape(64, 256), reduce),
            ("local_walk", shape(1, 256), local),
        ] {
            let start = Instant::now();
            let stats = m.launch(name, shape, args);
            let seconds = start.elapsed().as_secs_f64();
            let lanes = 32.0 * stats.instructions as f64 / seconds / 1e6;
            println!(
                "sm_{sm} {name}: {:.1} ms, {lanes:.0} M lane instructions/s",
                1e3 * seconds
            );
        }
    }
}
