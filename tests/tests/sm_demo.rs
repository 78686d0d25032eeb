//! The kernels of `nv demo`, run instruction by instruction for each architecture.

mod sm_support;

use sm_support::{Args, Machine, Random, shape};

const SMS: [u16; 5] = [80, 86, 89, 90, 120];

fn machine(sm: u16) -> Machine {
    Machine::load(&format!("demo/demo.sm_{sm}.cubin"), sm)
}

#[test]
fn vector_add() {
    for sm in SMS {
        let mut m = machine(sm);
        let n = 10_007;
        let mut random = Random(7);
        let (a, b) = (random.floats(n), random.floats(n));
        let (va, vb, vc) = (m.space.floats(&a), m.space.floats(&b), m.space.alloc(4 * n));
        m.launch(
            "vector_add",
            shape(n.div_ceil(256) as u32, 256),
            Args::default().ptr(va).ptr(vb).ptr(vc).u32(n as u32),
        );
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(m.space.read_floats(vc, n), expected, "sm_{sm}");
    }
}

#[test]
fn reduce_sum() {
    for sm in SMS {
        let mut m = machine(sm);
        let n = 100_003;
        let a = Random(8).words(n);
        let (va, out) = (m.space.buffer(&a), m.space.alloc(4 * 24));
        m.launch(
            "reduce_sum",
            shape(24, 256),
            Args::default().ptr(va).ptr(out).u32(n as u32),
        );
        let mut expected = vec![0_u32; 24];
        for (i, x) in a.iter().enumerate() {
            let sum = &mut expected[i / 256 % 24];
            *sum = sum.wrapping_add(*x);
        }
        assert_eq!(m.space.words(out, 24), expected, "sm_{sm}");
    }
}

#[test]
fn matrix_multiply() {
    for sm in SMS {
        let mut m = machine(sm);
        let n = 64;
        let mut random = Random(9);
        let (a, b) = (random.floats(n * n), random.floats(n * n));
        let (va, vb, vc) = (
            m.space.floats(&a),
            m.space.floats(&b),
            m.space.alloc(4 * n * n),
        );
        let tiles = (n / 16) as u32;
        m.launch(
            "matrix_multiply",
            shape((tiles, tiles), (16, 16)),
            Args::default().ptr(va).ptr(vb).ptr(vc).u32(n as u32),
        );
        let mut expected = vec![0.0; n * n];
        for row in 0..n {
            for col in 0..n {
                expected[row * n + col] = (0..n).fold(0.0_f32, |sum, k| {
                    a[row * n + k].mul_add(b[k * n + col], sum)
                });
            }
        }
        assert_eq!(m.space.read_floats(vc, n * n), expected, "sm_{sm}");
    }
}

#[test]
fn local_walk() {
    for sm in SMS {
        let mut m = machine(sm);
        let (threads, n) = (3 * 96, 200);
        let steps = Random(10).words(n);
        let (vs, out) = (m.space.buffer(&steps), m.space.alloc(4 * threads));
        m.launch(
            "local_walk",
            shape(3, 96),
            Args::default().ptr(vs).ptr(out).u32(n as u32),
        );
        let expected: Vec<u32> = (0..threads as u32)
            .map(|i| {
                let mut cell: Vec<u32> = (0..64_u32)
                    .map(|k| k.wrapping_mul(2_654_435_761).wrapping_add(i))
                    .collect();
                let mut at = i as usize & 63;
                for step in &steps {
                    cell[at] = cell[at].wrapping_add(step ^ i);
                    at = (cell[at] >> 5) as usize & 63;
                }
                cell.iter()
                    .fold(0_u32, |sum, x| sum.wrapping_mul(31).wrapping_add(*x))
            })
            .collect();
        assert_eq!(m.space.words(out, threads), expected, "sm_{sm}");
    }
}
