//! All that a kernel may ask for: shared memory, registers, stack, arguments, clusters, grids that meet, variables.

use std::time::Duration;

use nv_host::{ArgBytes, Context, Error, Function, Launch, LimitedBy, Module, Options};
use nv_proto::launch::SmLimits;
use nv_proto::unit::GpuVa;

use super::{is_simulated, open, sm};
use crate::bytes;

fn load(device: &Context, name: &str) -> Module {
    let file = format!("cubins/range/{name}.fatbin");
    device
        .load(&bytes(&file))
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn run(launch: &Launch<'_>) {
    launch
        .submit()
        .and_then(|event| event.wait())
        .unwrap_or_else(|error| panic!("{error}"));
}

/// That a launch is refused, before anything reaches the device, in these words.
fn refused(launch: &Launch<'_>, says: &[&str]) {
    match launch.submit() {
        Err(error @ Error::Launch { .. }) => {
            let text = error.to_string();
            for word in says {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        other => panic!("{says:?}: {other:?}"),
    }
}

fn limits(device: &Context) -> &'static SmLimits {
    SmLimits::of(device.info().sm).unwrap()
}

fn has_clusters(device: &Context) -> bool {
    device.info().sm.0 >= 90
}

/// Dynamic shared memory from nothing to the chip's limit, each byte written and read; one byte more is refused.
pub fn dynamic_shared(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("dynamic_shared").unwrap();
    let stream = device.stream().unwrap();
    let most = limits(&device).shared_per_block;
    let blocks = 3_u32;
    let steps = [
        1,
        1 << 10,
        48 << 10,
        64 << 10,
        99 << 10,
        100 << 10,
        163 << 10,
        most - 1,
        most,
    ];
    for size in steps.into_iter().filter(|size| *size <= most) {
        let out = device.upload(&[0_u32; 12]).unwrap();
        let launch = stream
            .launch(&function)
            .grid(blocks)
            .block(256)
            .shared(size);
        run(&launch.arg(&out).arg(size));
        let mut expected = Vec::new();
        for block in 0..blocks {
            let byte = |i: u32| (i * 7 + block) & 0xff;
            let sum = (0..size).map(byte).sum();
            expected.extend([byte(0), byte(size - 1), sum, size]);
        }
        assert_eq!(out.read().unwrap(), expected, "{size} bytes");
    }
    let out = device.alloc::<u32>(12).unwrap();
    let launch = stream.launch(&function).block(256).shared(most + 1);
    let (value, maximum) = ((most + 1).to_string(), most.to_string());
    refused(
        &launch.arg(&out).arg(most + 1),
        &["shared memory", &value, &maximum],
    );
}

/// A kernel with 255 registers runs with as many threads as have room; more are refused, naming registers.
pub fn registers(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("registers").unwrap();
    assert_eq!(function.registers(), 255);
    let stream = device.stream().unwrap();
    let values: Vec<u32> = (0..236).map(|i| i * 2_654_435 + 1).collect();
    let on_values = device.upload(&values).unwrap();
    let (blocks, threads, rounds) = (5_u32, 256_u32, 3_u32);
    let out = device.alloc::<u32>((blocks * threads) as usize).unwrap();
    let launch = stream.launch(&function).grid(blocks).block(threads);
    run(&launch.arg(&on_values).arg(&out).arg(rounds));
    for (t, sum) in out.read().unwrap().into_iter().enumerate() {
        let thread = t as u32 % threads;
        let mut v: Vec<u32> = values.iter().map(|v| v.wrapping_add(thread)).collect();
        for round in 0..rounds {
            for i in 0..v.len() {
                v[i] = v[i].wrapping_mul(v[(i + 1) % v.len()]).wrapping_add(round);
            }
        }
        let expected = v
            .iter()
            .fold(0_u32, |sum, v| sum.wrapping_mul(3).wrapping_add(*v));
        assert_eq!(sum, expected, "thread {t}");
    }
    let launch = stream.launch(&function).block(512);
    refused(
        &launch.arg(&on_values).arg(&out).arg(rounds),
        &["registers", "512", "256"],
    );
}

const STEPS: u32 = 200;

fn stack_steps() -> Vec<u32> {
    (0..64).map(|i| i * 13 + 5).collect()
}

/// What `stack<n>` of `range.cu` gives for thread `t`: only the words that one thread touches.
fn stack_result(n: u32, steps: &[u32], t: u32) -> u32 {
    let cells = n / 64;
    let mut v: Vec<u32> = (0..cells).map(|i| i * 64 + t).collect();
    let mut at = t;
    for j in 0..STEPS {
        at = at.wrapping_add(steps[j as usize & 63]) % cells;
        v[at as usize] += j;
    }
    v.iter()
        .fold(0, |sum, v| sum.wrapping_mul(5).wrapping_add(*v))
}

/// Local memory grows from 1 to 60 KB a thread, on two streams at once, with smaller kernels before, during and after.
pub fn large_stack(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let steps = stack_steps();
    let on_steps = device.upload(&steps).unwrap();
    // 60 KB for every thread that can run are more than a simulated GPU's memory.
    let sizes = if is_simulated(&device) {
        [("stack_1k", 256), ("stack_3k", 768), ("stack_8k", 2048)]
    } else {
        [("stack_1k", 256), ("stack_7k", 1792), ("stack_60k", 15360)]
    };
    let kernels = sizes.map(|(name, n)| (module.function(name).unwrap(), n));
    for (function, n) in &kernels {
        assert_eq!(function.stack(), 4 * n);
    }
    let threads = 64_u32;
    let blocks = if is_simulated(&device) {
        3
    } else {
        2 * device.info().sm_count
    };
    let count = (blocks * threads) as usize;
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    // By stream: which kernels, in order; each stream is still busy with the smaller when the other grows.
    let orders: [&[usize]; 2] = [&[0, 1, 0, 2, 1, 0, 2], &[0, 0, 1, 1, 2, 0, 1]];
    let mut results = Vec::new();
    for round in 0..orders[0].len() {
        for (stream, order) in streams.iter().zip(orders) {
            let (function, n) = &kernels[order[round]];
            let out = device.upload(&vec![0_u32; count]).unwrap();
            let launch = stream.launch(function).grid(blocks).block(threads);
            let event = launch.arg(&on_steps).arg(&out).arg(STEPS).submit();
            results.push((event.unwrap(), out, *n));
        }
    }
    for (event, out, n) in results {
        event.wait().unwrap();
        for (t, sum) in out.read().unwrap().into_iter().enumerate() {
            assert_eq!(
                sum,
                stack_result(n, &steps, t as u32),
                "{n} words, thread {t}"
            );
        }
    }
}

/// Threads launch kernels with stacks of several sizes, each on a stream of its own: local memory grows under all of them.
pub fn stacks_of_threads(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let steps = stack_steps();
    let on_steps = device.upload(&steps).unwrap();
    let kernels = [("stack_1k", 256), ("stack_3k", 768), ("stack_8k", 2048)]
        .map(|(name, n)| (module.function(name).unwrap(), n));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, kernels, steps, on_steps) = (&device, &kernels, &steps, &on_steps);
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                for round in 0..12 {
                    // Each thread comes to the larger ones at another time.
                    let (function, n) = &kernels[(round / (2 + thread)).min(2)];
                    let out = device.upload(&[0_u32; 128]).unwrap();
                    let launch = stream.launch(function).grid(2).block(64);
                    run(&launch.arg(on_steps).arg(&out).arg(STEPS));
                    for (t, sum) in out.read().unwrap().into_iter().enumerate() {
                        let expected = stack_result(*n, steps, t as u32);
                        assert_eq!(sum, expected, "thread {thread}, round {round}, {n} words");
                    }
                }
            });
        }
    });
}

/// One argument of 20,000 bytes between two others.
pub fn big_argument(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("big_argument").unwrap();
    let stream = device.stream().unwrap();
    let big: Vec<u8> = (0..20_000_u32).map(|i| (i * i + 7 * i + 3) as u8).collect();
    let at = [
        0_u32, 1, 4095, 4096, 9_999, 10_000, 16_383, 16_384, 19_998, 19_999,
    ];
    let on_at = device.upload(&at).unwrap();
    let out = device.alloc::<u32>(at.len()).unwrap();
    let launch = stream.launch(&function).block(at.len() as u32);
    let launch = launch.arg(&on_at).arg(ArgBytes(&big)).arg(&out);
    run(&launch.arg(0xabcd_0000_1234_5678_u64));
    let expected = at.map(|i| u32::from(big[i as usize]).wrapping_add(0xabcd_0000));
    assert_eq!(out.read().unwrap(), expected);
}

/// 200 arguments.
pub fn many_arguments(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("many_arguments").unwrap();
    assert_eq!(function.params().len(), 200);
    let stream = device.stream().unwrap();
    let out = device.alloc::<u32>(32).unwrap();
    let values = (0..199_u32).map(|i| i.wrapping_mul(2_654_435_761) ^ 0x55);
    let launch = values
        .clone()
        .fold(stream.launch(&function).block(32), |launch, value| {
            launch.arg(value)
        });
    run(&launch.arg(&out));
    let expected = values.fold(0_u32, |s, p| s.wrapping_mul(31).wrapping_add(p));
    assert_eq!(out.read().unwrap(), [expected; 32]);
}

/// Clusters of 1 to 8 blocks, and of 16 where the chip has them, in up to three directions: ranks, numbers, and a word
/// from the shared memory of the next block.
pub fn clusters(options: &Options) {
    let device = open(options);
    let stream = device.stream().unwrap();
    if !has_clusters(&device) {
        // The kernels are not there: it is the launch that is refused.
        let function = load(&device, "range").function("last_block").unwrap();
        let out = device.alloc::<u32>(8).unwrap();
        let launch = stream.launch(&function).grid(2).cluster(2);
        refused(&launch.arg(&out), &["cluster", &sm(&device)]);
        return;
    }
    let module = load(&device, "range");
    let function = module.function("clusters").unwrap();
    let most = limits(&device).cluster;
    let grid = (16_u32, 4_u32, 2_u32);
    let shapes = [
        (1, 1, 1),
        (2, 1, 1),
        (1, 2, 1),
        (2, 2, 2),
        (8, 1, 1),
        (4, 2, 1),
        (16, 1, 1),
        (4, 2, 2),
    ];
    let check = |function: &Function, cluster: Option<(u32, u32, u32)>, expect: (u32, u32, u32)| {
        let out = device.upload(&[u32::MAX; 8 * 128]).unwrap();
        let launch = stream.launch(function).grid(grid).block(64);
        run(&match cluster {
            Some(cluster) => launch.cluster(cluster),
            None => launch,
        }
        .arg(&out));
        let out = out.read().unwrap();
        let number = |x: u32, y: u32, z: u32| x + grid.0 * (y + grid.1 * z);
        for block in 0..128 {
            let (x, y, z) = (block % 16, block / 16 % 4, block / 64);
            let (cx, cy, cz) = expect;
            let (ix, iy, iz) = (x % cx, y % cy, z % cz);
            let (rank, size) = (ix + cx * (iy + cy * iz), cx * cy * cz);
            let next = (rank + 1) % size;
            let (nx, ny, nz) = (next % cx, next / cx % cy, next / cx / cy);
            let next = number(x - ix + nx, y - iy + ny, z - iz + nz) * 11 + 5;
            let shape = cx | cy << 8 | cz << 16;
            let index = ix | iy << 8 | iz << 16;
            let expected = [rank, size, next, x / cx, y / cy, z / cz, shape, index];
            let block = block as usize;
            assert_eq!(
                out[8 * block..8 * block + 8],
                expected,
                "block {block}, clusters {expect:?}"
            );
        }
    };
    check(&function, None, (1, 1, 1));
    for shape in shapes.into_iter().filter(|(x, y, z)| x * y * z <= most) {
        check(&function, Some(shape), shape);
    }
    // Compiled into the kernel.
    let fixed = module.function("clusters_of_4").unwrap();
    check(&fixed, None, (2, 2, 1));
    let out = device.alloc::<u32>(8 * 128).unwrap();
    refused(
        &stream.launch(&fixed).grid((16, 4)).cluster(4).arg(&out),
        &["cluster", "compiled"],
    );
    refused(
        &stream.launch(&function).grid(15).cluster(2).arg(&out),
        &["cluster", "15"],
    );
    let too_many = (2 * most).to_string();
    let launch = stream.launch(&function).grid(2 * most).cluster(2 * most);
    refused(
        &launch.arg(&out),
        &["cluster", &too_many, &most.to_string()],
    );
    refused(
        &stream.launch(&function).grid(1).cluster(0).arg(&out),
        &["cluster", "0"],
    );
}

/// Blocks of a cooperative grid meet again and again; a grid that cannot be resident is refused and does not hang.
pub fn grid_sync(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("grid_sync").unwrap();
    let stream = device.stream().unwrap();
    let threads = 128_u32;
    let fit = function.max_active_blocks(threads, 0).unwrap();
    assert!(fit.blocks >= 8, "{fit:?}");
    let resident = fit.blocks * device.info().sm_count;
    let blocks = if is_simulated(&device) { 24 } else { resident };
    let (n, rounds) = ((blocks * threads) as usize, 9_u32);
    let start: Vec<u32> = (0..n as u32).map(|i| i * 3 + 1).collect();
    let a = device.upload(&start).unwrap();
    let b = device.upload(&vec![0_u32; n]).unwrap();
    // Twice: what the first launch left in the place where the blocks meet is not in the way.
    let launch = stream
        .launch(&function)
        .grid(blocks)
        .block(threads)
        .cooperative();
    let launch = launch.arg(&a).arg(&b).arg(rounds);
    let mut values = start;
    for _ in 0..2 {
        run(&launch);
        for round in 0..rounds {
            values = (0..n)
                .map(|t| {
                    values[(t + threads as usize) % n]
                        .wrapping_add(values[t])
                        .wrapping_add(round)
                })
                .collect();
        }
        // An odd number of rounds ends in the other buffer.
        assert_eq!(b.read().unwrap(), values);
        a.write(&values).unwrap();
    }
    let launch = stream
        .launch(&function)
        .grid(resident + 1)
        .block(threads)
        .cooperative();
    let too_many = (resident + 1).to_string();
    refused(
        &launch.arg(&a).arg(&b).arg(1_u32),
        &["cooperative", &too_many, &resident.to_string()],
    );
}

/// Barriers 1 to 15, two of them at a time by halves of a block.
pub fn named_barriers(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("named_barriers").unwrap();
    let stream = device.stream().unwrap();
    let out = device.alloc::<u32>(16 * 256).unwrap();
    run(&stream.launch(&function).block(256).arg(&out));
    let out = out.read().unwrap();
    for t in 0..256_u32 {
        let other = (t & 128) | ((t + 37) & 127);
        assert_eq!(out[t as usize], other * 3 + 7, "thread {t}");
        for id in 1..16 {
            assert_eq!(
                out[(256 * id + t) as usize],
                255 - t + id,
                "thread {t}, barrier {id}"
            );
        }
    }
}

/// `__constant__` and `__device__` variables by name: what the file says, what the host writes, what kernels write.
pub fn variables(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let function = module.function("variables").unwrap();
    let stream = device.stream().unwrap();
    let coefficients = module.global::<u32>("coefficients").unwrap();
    let scale = module.global::<f32>("scale").unwrap();
    let counter = module.global::<u32>("counter").unwrap();
    let table = module.global::<u64>("table").unwrap();
    let pair = module.global::<u32>("pair").unwrap();
    assert_eq!(
        [coefficients.len(), scale.len(), counter.len(), table.len()],
        [64, 1, 1, 1000]
    );
    assert_eq!(
        coefficients.read().unwrap()[..9],
        [3, 1, 4, 1, 5, 9, 2, 6, 0]
    );
    assert_eq!(scale.read().unwrap(), [0.5]);
    assert_eq!(counter.read().unwrap(), [7]);
    assert!(
        table.read().unwrap().iter().all(|word| *word == 0),
        "not zeroed"
    );
    assert_eq!(pair.read().unwrap(), [11, 2.5_f32.to_bits()]);

    let (out, scaled) = (
        device.alloc::<u32>(64).unwrap(),
        device.alloc::<f32>(64).unwrap(),
    );
    let launch = stream.launch(&function).block(64).arg(&out).arg(&scaled);
    let mut words: Vec<u32> = coefficients.read().unwrap();
    let mut sums = vec![0_u64; 1000];
    sums[999] = u64::MAX;
    table.write(&sums).unwrap();
    // A constant written before each launch is what the launch reads: no cache keeps the one before.
    for round in 0..20_u32 {
        run(&launch);
        let expected: Vec<u32> = (0..64).map(|t| words[t] + words[(t + 1) & 63]).collect();
        assert_eq!(out.read().unwrap(), expected, "round {round}");
        let by = if round == 0 { 0.5 } else { round as f32 };
        let expected_scaled: Vec<f32> = (0..64).map(|t| t as f32 * by + 2.5 + 11.0).collect();
        assert_eq!(scaled.read().unwrap(), expected_scaled, "round {round}");
        for (sum, word) in sums.iter_mut().zip(&expected) {
            *sum += u64::from(*word);
        }
        words.iter_mut().for_each(|word| *word = *word * 3 + round);
        words.iter_mut().for_each(|word| *word %= 1 << 20);
        coefficients.write(&words).unwrap();
        scale.write(&[round as f32 + 1.0]).unwrap();
    }
    assert_eq!(counter.read().unwrap(), [7 + 20 * 64]);
    assert_eq!(table.read().unwrap(), sums);
    // A part from the start, and nothing beyond.
    counter.write(&[]).unwrap();
    coefficients.write(&[1, 2]).unwrap();
    assert_eq!(coefficients.read().unwrap()[..3], [1, 2, words[2]]);

    // Copies of streams reach it as they reach buffers.
    let copy = device.alloc::<u32>(64).unwrap();
    stream.copy(&copy, &coefficients).unwrap().wait().unwrap();
    assert_eq!(copy.read().unwrap(), coefficients.read().unwrap());
    let turned: Vec<u32> = copy.read().unwrap().into_iter().rev().collect();
    copy.write(&turned).unwrap();
    stream.copy(&coefficients, &copy).unwrap().wait().unwrap();
    assert_eq!(coefficients.read().unwrap(), turned);

    // A variable is an argument, too.
    table.write(&[0; 1000]).unwrap();
    let count = module.function("count_blocks").unwrap();
    run(&stream.launch(&count).grid(50).arg(&table));
    assert_eq!(
        table.read().unwrap()[..51],
        [[1; 50].as_slice(), &[0]].concat()
    );

    for (what, says) in [
        (
            module.global::<u32>("nothing").err(),
            ["nothing", "coefficients", "table"],
        ),
        (
            module.global::<[u8; 3]>("scale").err(),
            ["scale", "4 bytes", "3 bytes"],
        ),
        (counter.write(&[1, 2]).err(), ["counter", "2 values", "1"]),
        (
            counter.read_into(&mut [0; 3]).err(),
            ["counter", "3 values", "1"],
        ),
    ] {
        let text = what.map(|error| error.to_string()).unwrap_or_default();
        for word in says {
            assert!(text.contains(word), "{text:?} does not say {word:?}");
        }
    }
    // The module stays for as long as one of its variables.
    drop((function, count, module));
    assert_eq!(coefficients.read().unwrap(), turned);
}

/// Calls through a table of functions, and through objects' own.
pub fn pointers_to_functions(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let stream = device.stream().unwrap();
    let which: Vec<u32> = (0..96).map(|t| t * 7 + t / 5).collect();
    let on_which = device.upload(&which).unwrap();
    let out = device.alloc::<u32>(96).unwrap();
    let function = module.function("function_table").unwrap();
    run(&stream.launch(&function).block(96).arg(&on_which).arg(&out));
    let expected: Vec<u32> = (0..96_u32)
        .map(|t| {
            let (a, b) = (t + 5, t * 9 + 1);
            match which[t as usize] % 3 {
                0 => a + b,
                1 => a * b,
                _ => (a ^ b).wrapping_mul(2_654_435_761),
            }
        })
        .collect();
    assert_eq!(out.read().unwrap(), expected);
    let function = module.function("virtual_calls").unwrap();
    run(&stream.launch(&function).block(96).arg(&on_which).arg(&out));
    let expected: Vec<u32> = (0..96_u32)
        .map(|t| match which[t as usize] & 1 {
            1 => (t + 2) * (t + 2) * 3,
            _ => t * 7 + 3,
        })
        .collect();
    assert_eq!(out.read().unwrap(), expected);
}

/// Recursion to depths that the file does not tell, with the stack that the launch asks for.
pub fn recursion(options: &Options) {
    fn result(n: u32, salt: u32) -> u32 {
        if n == 0 {
            return salt;
        }
        let here = n.wrapping_mul(salt).wrapping_add(n % 12);
        result(n - 1, salt + 1).wrapping_mul(3).wrapping_add(here)
    }
    let device = open(options);
    let function = load(&device, "range").function("recursion").unwrap();
    assert_eq!(function.stack(), 1024);
    let stream = device.stream().unwrap();
    let out = device.alloc::<u32>(64).unwrap();
    // With what is there by default, then with ever more. A frame of it is 96 bytes.
    let deep = if is_simulated(&device) {
        (75, 8 << 10)
    } else {
        (200, 24 << 10)
    };
    for (deepest, stack) in [(6_u32, 0_u32), (25, 4 << 10), deep] {
        let mut depths: Vec<u32> = (0..64).map(|t| (t * 11 + 3) % deepest).collect();
        depths[13] = deepest;
        let on_depths = device.upload(&depths).unwrap();
        let launch = stream.launch(&function).block(64).stack(stack);
        run(&launch.arg(&on_depths).arg(&out));
        let expected: Vec<u32> = (0..64).map(|t| result(depths[t as usize], t)).collect();
        assert_eq!(out.read().unwrap(), expected, "depth {deepest}");
    }
    let launch = stream.launch(&function).stack(u32::MAX);
    match launch.arg(&out).arg(&out).submit() {
        Err(error @ (Error::OutOfMemory { .. } | Error::Launch { .. })) => {
            assert!(error.to_string().contains("local memory"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

/// What kernels print by `printf`, in every conversion's form, is read by the host; what has no room is counted.
pub fn printing(options: &Options) {
    let device = open(options);
    let module = load(&device, "prints");
    assert_eq!(module.take_printed().unwrap().text, "");
    let name = module.global::<u8>("name").unwrap();
    let stream = device.stream().unwrap();
    let values: Vec<i32> = (0..1024).map(|i| (i * 37 % 501) - 250).collect();
    let on_values = device.upload(&values).unwrap();
    let function = module.function("prints").unwrap();
    // As many threads as a block can have: the functions that print leave room for them.
    let launch = stream.launch(&function).grid(2).block(1024).arg(&on_values);
    for written in ["before", "afterwards"] {
        run(&launch);
        let printed = module.take_printed().unwrap();
        assert_eq!(printed.dropped, 0);
        let mut expected = Vec::new();
        for block in 0..2 {
            for t in (0..1024_u32).step_by(8) {
                let value = values[t as usize];
                let parity = if value & 1 == 1 { "odd" } else { "even" };
                let letter = char::from(b'a' + (t % 26) as u8);
                let big = 0x0123_4567_89ab_i64 + i64::from(value);
                let number = f64::from(value) * 0.25;
                expected.push(format!(
                    "{block}.{t:03}: {parity} {written} t{t:04} |{number:6.2}|{value:<5}|{letter} {big:#x} %"
                ));
            }
        }
        let mut lines: Vec<&str> = printed.text.lines().collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        name.write(b"afterwards\0").unwrap();
    }
    // Taken once.
    assert_eq!(module.take_printed().unwrap().text, "");

    let function = module.function("prints_much").unwrap();
    for lines in [3_u32, 600] {
        let launch = stream.launch(&function).grid(2).block(32);
        run(&launch.arg(lines.cast_signed()));
        let printed = module.take_printed().unwrap();
        let came = printed.text.lines().count() as u32;
        assert_eq!(came + printed.dropped, 64 * lines);
        assert_eq!(
            printed.dropped > 0,
            lines == 600,
            "{} dropped",
            printed.dropped
        );
        let mut each: Vec<&str> = printed.text.lines().collect();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each.len() as u32, came, "lines came twice");
        for line in each {
            let numbers: Vec<u32> = line.split(' ').map(|n| n.parse().unwrap()).collect();
            assert!(numbers[0] < 64 && numbers[1] < lines, "{line:?}");
        }
    }
}

/// An `assert` that fails ends its launch, and says where and why.
pub fn assertions(options: &Options) {
    let device = open(options);
    let module = load(&device, "prints");
    let function = module.function("asserts").unwrap();
    let stream = device.stream().unwrap();
    let mut values: Vec<i32> = (0..64).map(|i| i * 2).collect();
    let on_values = device.upload(&values).unwrap();
    run(&stream.launch(&function).block(64).arg(&on_values));
    assert_eq!(module.take_printed().unwrap().text, "");
    values[41] = 5;
    on_values.write(&values).unwrap();
    let event = stream.launch(&function).block(64).arg(&on_values).submit();
    match event.unwrap().wait() {
        Err(error @ Error::Fault(_)) => assert!(error.to_string().contains("asserts"), "{error}"),
        other => panic!("{other:?}"),
    }
    let text = module.take_printed().unwrap().text;
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in [
        "syscalls.cu:",
        "block: [0,0,0], thread: [41,0,0] Assertion `in[threadIdx.x] != 5 && \"five\"` failed.",
    ] {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
    super::works(&device);
}

/// A kernel that needs what only the vendor's library has is refused by name, with what to do.
pub fn system_calls(options: &Options) {
    let device = open(options);
    match device.load(&bytes("cubins/range/allocates.fatbin")) {
        Err(error @ Error::Undefined { .. }) => {
            let text = error.to_string();
            for word in ["allocates", "malloc", "host allocated"] {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        other => panic!("{other:?}"),
    }
    super::works(&device);
}

/// 128 kernels of one file, each with registers, shared memory and constants of its own, in flight together.
pub fn many_kernels(options: &Options) {
    let device = open(options);
    let module = load(&device, "many");
    assert_eq!(module.kernels().count(), 128);
    let constants: Vec<u32> = (0..128).map(|i| i * i + 1).collect();
    module
        .global::<u32>("constants")
        .unwrap()
        .write(&constants)
        .unwrap();
    let input: Vec<u32> = (0..24 * 32).map(|i| i * 17 + 3).collect();
    let on_input = device.upload(&input).unwrap();
    let out = device.alloc::<u32>(128 * 32).unwrap();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    let mut shapes = std::collections::BTreeSet::new();
    for n in 0..128_u32 {
        let function = module.function(&format!("k{n}")).unwrap();
        assert_eq!(function.static_shared(), 4 * (32 + 4 * n), "k{n}");
        shapes.insert(function.registers());
        let launch = streams[n as usize & 1].launch(&function).block(32);
        let at = GpuVa(out.va().0 + u64::from(n) * 128);
        launch.arg(&on_input).arg(at).submit().unwrap();
    }
    assert!(shapes.len() >= 5, "registers: {shapes:?}");
    for stream in &streams {
        stream.synchronize().unwrap();
    }
    let out = out.read().unwrap();
    for n in 0..128_usize {
        for t in 0..32 {
            // `s[k]` was written by thread `31 + 4n - k`, which for `k = 4n + t` is `31 - t`.
            let last = n % 24;
            let mut sum = input[last * 32 + 31 - t] + n as u32 + constants[n] * 1000;
            for i in 0..=last {
                sum = sum.wrapping_mul(3).wrapping_add(input[i * 32 + t]);
            }
            assert_eq!(out[n * 32 + t], sum, "k{n}, thread {t}");
        }
    }
}

/// Half precision from a small whole number.
fn half(value: i32) -> u16 {
    let (sign, size) = (if value < 0 { 0x8000 } else { 0 }, value.unsigned_abs());
    if size == 0 {
        return sign;
    }
    let exponent = size.ilog2();
    sign | ((15 + exponent) << 10) as u16 | ((size << (10 - exponent)) & 0x3ff) as u16
}

/// A product of matrices by tensor cores; whole numbers, so that every sum is exact.
pub fn tensor(options: &Options) {
    let device = open(options);
    let function = load(&device, "range").function("tensor").unwrap();
    let stream = device.stream().unwrap();
    let a: Vec<i32> = (0..16 * 16).map(|i| (i * 7 % 23) - 11).collect();
    let b: Vec<i32> = (0..8 * 16).map(|i| (i * 5 % 19) - 9).collect();
    let halves = |values: &[i32]| -> Vec<u16> { values.iter().map(|v| half(*v)).collect() };
    let (on_a, on_b) = (
        device.upload(&halves(&a)).unwrap(),
        device.upload(&halves(&b)).unwrap(),
    );
    let out = device.alloc::<f32>(16 * 8).unwrap();
    run(&stream
        .launch(&function)
        .block(32)
        .arg(&on_a)
        .arg(&on_b)
        .arg(&out));
    for (i, value) in out.read().unwrap().into_iter().enumerate() {
        let (row, col) = (i / 8, i % 8);
        let start = (1 + col % 2 + 2 * (row / 8)) as i32;
        let sum: i32 = (0..16).map(|k| a[row * 16 + k] * b[col * 16 + k]).sum();
        assert_eq!(value, (start + sum) as f32, "row {row}, column {col}");
    }
}

/// Asynchronous copies into shared memory, two in flight; shuffles and ballots of tiles of a warp.
pub fn warps(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let stream = device.stream().unwrap();
    let n = 20_usize;
    let input: Vec<u64> = (0..n as u64 * 64).map(|i| i * 0x1_0001_0001 + 9).collect();
    let on_input = device.upload(&input).unwrap();
    let out = device.alloc::<u64>(64).unwrap();
    let function = module.function("async_copy").unwrap();
    run(&stream
        .launch(&function)
        .block(64)
        .arg(&on_input)
        .arg(&out)
        .arg(n as u32));
    let expected: Vec<u64> = (0..64)
        .map(|t| {
            (0..n).fold(0_u64, |sum, i| {
                sum.wrapping_mul(3).wrapping_add(input[i * 64 + 63 - t])
            })
        })
        .collect();
    assert_eq!(out.read().unwrap(), expected);

    let values: Vec<u32> = (0..96).map(|i| i * i * 3 + i / 4).collect();
    let on_values = device.upload(&values).unwrap();
    let out = device.alloc::<u32>(96).unwrap();
    let function = module.function("tiles").unwrap();
    run(&stream.launch(&function).block(96).arg(&on_values).arg(&out));
    for (t, value) in out.read().unwrap().into_iter().enumerate() {
        let sum: u32 = values[t / 8 * 8..t / 8 * 8 + 8].iter().sum();
        assert_eq!(
            value,
            sum ^ ballot(&values[t / 32 * 32..t / 32 * 32 + 32]),
            "thread {t}"
        );
    }
    // Before sm_90 the compiler's code for this holds an instruction whose meaning is not known (`R2UR` to a predicate),
    // and the file has no such kernel.
    if device.info().sm.0 < 90 {
        return;
    }
    let function = module.function("votes").unwrap();
    run(&stream.launch(&function).block(96).arg(&on_values).arg(&out));
    for (t, value) in out.read().unwrap().into_iter().enumerate() {
        assert_eq!(
            value,
            ballot(&values[t / 8 * 8..t / 8 * 8 + 8]),
            "thread {t}"
        );
    }
}

/// A bit for each odd value.
fn ballot(values: &[u32]) -> u32 {
    (0..)
        .zip(values)
        .fold(0, |bits, (i, v)| bits | (v & 1) << i)
}

/// Grids at the limits of y and z: each block counts.
pub fn large_grids(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let function = module.function("count_blocks").unwrap();
    let last = module.function("last_block").unwrap();
    let stream = device.stream().unwrap();
    for grid in [(1_u32, 65_535_u32, 1_u32), (1, 1, 65_535), (3, 5, 4_000)] {
        let counts = device.upload(&[0_u64; 61]).unwrap();
        run(&stream.launch(&function).grid(grid).block(1).arg(&counts));
        let mut expected = [0_u64; 61];
        for z in 0..grid.2 {
            for y in 0..grid.1 {
                for x in 0..grid.0 {
                    expected[(x ^ y ^ z) as usize % 61] += 1;
                }
            }
        }
        assert_eq!(counts.read().unwrap(), expected, "{grid:?}");
        let out = device.upload(&[u32::MAX; 3]).unwrap();
        run(&stream.launch(&last).grid(grid).block(1).arg(&out));
        assert_eq!(out.read().unwrap(), [grid.0 - 1, grid.1 - 1, grid.2 - 1]);
    }
}

/// Grids of 2^31 - 1 blocks and of more than 2^32: seconds on a GPU, hours on a simulated one.
pub fn largest_grids(options: &Options) {
    let device = open(&Options {
        limit: Duration::from_secs(120),
        ..options.clone()
    });
    let last = load(&device, "range").function("last_block").unwrap();
    let stream = device.stream().unwrap();
    for grid in [
        (0x7fff_ffff_u32, 1_u32, 1_u32),
        (1, 65_535, 65_535),
        (70_000, 65_535, 1),
    ] {
        let out = device.upload(&[u32::MAX; 3]).unwrap();
        run(&stream.launch(&last).grid(grid).block(32).arg(&out));
        assert_eq!(out.read().unwrap(), [grid.0 - 1, grid.1 - 1, grid.2 - 1]);
    }
}

/// What a multiprocessor holds of a kernel, and what allows no more.
pub fn occupancy(options: &Options) {
    let device = open(options);
    let module = load(&device, "range");
    let limits = limits(&device);
    let registers = module.function("registers").unwrap();
    let fit = registers.max_active_blocks(256, 0).unwrap();
    assert_eq!((fit.blocks, fit.limited_by), (1, LimitedBy::Registers));
    let shared = module.function("dynamic_shared").unwrap();
    let fit = shared
        .max_active_blocks(32, limits.shared_per_block)
        .unwrap();
    assert_eq!((fit.blocks, fit.limited_by), (1, LimitedBy::SharedMemory));
    let fit = shared.max_active_blocks(1024, 0).unwrap();
    assert_eq!(
        (fit.blocks, fit.limited_by),
        (limits.warps / 32, LimitedBy::Warps)
    );
    let fit = shared.max_active_blocks(32, 0).unwrap();
    assert_eq!(fit.blocks, limits.blocks);
    let error = registers.max_active_blocks(512, 0).unwrap_err().to_string();
    assert!(
        error.contains("registers") && error.contains("512"),
        "{error}"
    );
    let error = shared
        .max_active_blocks(32, 1 << 20)
        .unwrap_err()
        .to_string();
    assert!(error.contains("shared memory"), "{error}");
}

/// A file for `sm_90a` is loaded by an sm_90, and by nothing else.
pub fn variants(options: &Options) {
    let device = open(options);
    let loaded = device.load(&bytes("cubins/range/hopper.sm_90a.cubin"));
    match device.info().sm.0 {
        90 => assert_eq!(loaded.unwrap().kernels().count(), 2),
        _ => {
            let error = loaded.unwrap_err().to_string();
            assert!(
                error.contains("sm_90") && error.contains(&sm(&device)),
                "{error}"
            );
        }
    }
}

/// What only Hopper has (`sm_90a`): products of a warp group out of shared memory, and bulk copies. The simulated GPU
/// refuses their instructions by name.
pub fn hopper(options: &Options) {
    let device = open(options);
    let file = bytes("cubins/range/hopper.sm_90a.cubin");
    if device.info().sm.0 != 90 {
        return; // `variants` has what others do with it.
    }
    let module = device.load(&file).unwrap();
    let stream = device.stream().unwrap();
    let a: Vec<i32> = (0..64 * 16).map(|i| (i * 7 % 31) - 15).collect();
    let b: Vec<i32> = (0..8 * 16).map(|i| (i * 11 % 17) - 8).collect();
    let halves = |values: &[i32]| -> Vec<u16> { values.iter().map(|v| half(*v)).collect() };
    let (on_a, on_b) = (
        device.upload(&halves(&a)).unwrap(),
        device.upload(&halves(&b)).unwrap(),
    );
    let out = device.alloc::<f32>(64 * 8).unwrap();
    let function = module.function("warp_group").unwrap();
    run(&stream
        .launch(&function)
        .block(128)
        .arg(&on_a)
        .arg(&on_b)
        .arg(&out));
    for (i, value) in out.read().unwrap().into_iter().enumerate() {
        let (row, col) = (i / 8, i % 8);
        let sum: i32 = (0..16).map(|k| a[row * 16 + k] * b[col * 16 + k]).sum();
        assert_eq!(value, sum as f32, "row {row}, column {col}");
    }
    let blocks = 40_usize;
    let input: Vec<u32> = (0..1024 * blocks as u32)
        .map(|i| i.wrapping_mul(2_654_435_761))
        .collect();
    let on_input = device.upload(&input).unwrap();
    let out = device.alloc::<u32>(input.len()).unwrap();
    let function = module.function("bulk_copy").unwrap();
    run(&stream
        .launch(&function)
        .grid(blocks as u32)
        .block(128)
        .arg(&on_input)
        .arg(&out));
    for (i, value) in out.read().unwrap().into_iter().enumerate() {
        assert_eq!(
            value,
            input[i].wrapping_mul(3).wrapping_add(i as u32 % 1024),
            "word {i}"
        );
    }
}
