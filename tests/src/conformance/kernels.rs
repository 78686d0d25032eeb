//! Kernels: right results, and refusals that name the limit.

use nv_host::{Error, Options};

use super::{module, open, sm};
use crate::bytes;

/// `vadd` of `k.cu`, with a tail that the grid covers and the buffer does not.
pub fn vadd(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("vadd").unwrap();
    let n = 24_237;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 0.25).collect();
    let b: Vec<f32> = (0..n).map(|i| 1.0 - i as f32).collect();
    let (on_a, on_b) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let on_c = device.upload(&vec![-1.0_f32; n + 64]).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream
        .launch(&function)
        .grid((n as u32).div_ceil(96))
        .block(96);
    launch
        .arg(&on_a)
        .arg(&on_b)
        .arg(&on_c)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let c = on_c.read().unwrap();
    for i in 0..n {
        assert_eq!(c[i], a[i] + b[i], "element {i}");
    }
    assert!(
        c[n..].iter().all(|c| *c == -1.0),
        "elements past n were written"
    );
}

/// `sred` of `k.cu`: a reduction in shared memory with a grid stride, so that blockDim and gridDim matter.
pub fn reduction(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("sred").unwrap();
    let (n, blocks) = (100_000, 37_usize);
    // Small whole numbers: their sums are exact in any order.
    let a: Vec<f32> = (0..n).map(|i| (i % 13) as f32).collect();
    let on_a = device.upload(&a).unwrap();
    let on_sums = device.alloc::<f32>(blocks).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&function).grid(blocks as u32).block(256);
    launch
        .arg(&on_a)
        .arg(&on_sums)
        .arg(n)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let mut expected = vec![0.0_f32; blocks];
    for (i, value) in a.iter().enumerate() {
        expected[i / 256 % blocks] += value;
    }
    assert_eq!(on_sums.read().unwrap(), expected);
}

/// `loc` of `k.cu`: a dynamically indexed array in local memory.
pub fn local_memory(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("loc").unwrap();
    let (blocks, threads, n) = (5_usize, 64_usize, 40_usize);
    let index: Vec<i32> = (0..1024).map(|i: i32| (i * 37 + 11) % 700).collect();
    let on_index = device.upload(&index).unwrap();
    let on_out = device.alloc::<f32>(blocks * threads).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream
        .launch(&function)
        .grid(blocks as u32)
        .block(threads as u32);
    launch
        .arg(&on_index)
        .arg(&on_out)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let out = on_out.read().unwrap();
    for block in 0..blocks {
        for thread in 0..threads {
            let t = block * threads + thread;
            // i * 1.5f + threadIdx.x, fused or not, is exact for these numbers.
            let mut cells: Vec<f32> = (0..512).map(|i| i as f32 * 1.5 + thread as f32).collect();
            let mut sum = 0.0_f32;
            for j in 0..n {
                let k = (index[(t + j) & 1023] & 511) as usize;
                cells[k] += j as f32;
                sum += cells[(k * 7) & 511];
            }
            assert_eq!(out[t], sum, "thread {t}");
        }
    }
}

/// `gen` of `k.cu`: generic pointers into shared and local memory, so that the windows matter.
pub fn generic_pointers(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let function = module.function("gen").unwrap();
    let stream = device.stream().unwrap();
    let (blocks, threads) = (4_usize, 64_usize);
    let on_out = device.alloc::<i32>(blocks * threads).unwrap();
    for select in [0_i32, 1, 6, 7] {
        let launch = stream
            .launch(&function)
            .grid(blocks as u32)
            .block(threads as u32);
        launch
            .arg(&on_out)
            .arg(select)
            .submit()
            .unwrap()
            .wait()
            .unwrap();
        for (t, value) in on_out.read().unwrap().into_iter().enumerate() {
            let at = ((t % threads) as i32 + select) & 63;
            let expected = if select & 1 == 1 { at } else { at + 1000 };
            assert_eq!(value, expected, "thread {t}, selector {select}");
        }
    }
}

/// Bad launches are refused with an error that names the limit, before anything reaches the device.
pub fn bad_launches(options: &Options) {
    let device = open(options);
    let module = module(&device, "k");
    let vadd = module.function("vadd").unwrap();
    let stream = device.stream().unwrap();
    let buffer = device.alloc::<f32>(256).unwrap();
    let good = || {
        stream
            .launch(&vadd)
            .grid(1)
            .block(32)
            .arg(&buffer)
            .arg(&buffer)
            .arg(&buffer)
            .arg(32_i32)
    };
    let refused = |launch: nv_host::Launch<'_>, says: &[&str]| match launch.submit() {
        Err(error @ Error::Launch { .. }) => {
            let text = error.to_string();
            for word in says {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        other => panic!("{says:?}: {other:?}"),
    };
    refused(good().block(1025), &["vadd", "1025", "1024"]);
    refused(good().block((1, 1, 65)), &["65", "64"]);
    refused(good().block((32, 33)), &["1056", "1024"]);
    refused(good().block(0), &["vadd"]);
    refused(good().grid(0), &["vadd"]);
    refused(good().grid(0x8000_0000), &["2147483648", "2147483647"]);
    refused(good().grid((1, 65_536)), &["65536", "65535"]);
    refused(good().grid((1, 1, 65_536)), &["65536", "65535"]);
    refused(good().shared(300 << 10), &["shared"]);
    refused(good().arg(1_u32), &["5 arguments", "4"]);
    refused(
        stream.launch(&vadd).arg(&buffer).arg(&buffer).arg(&buffer),
        &["3 arguments", "4"],
    );
    refused(
        stream
            .launch(&vadd)
            .arg(&buffer)
            .arg(&buffer)
            .arg(&buffer)
            .arg(1_u64),
        &["argument 3", "8 bytes", "4"],
    );
    // Nothing was harmed.
    good().submit().unwrap().wait().unwrap();
}

/// Files that cannot be loaded are told apart.
pub fn bad_files(options: &Options) {
    let device = open(options);
    assert!(matches!(device.load(b"not a cubin"), Err(Error::Cubin(_))));
    assert!(matches!(device.load(&[]), Err(Error::Cubin(_))));
    let other = if device.info().sm.major() == 9 {
        120
    } else {
        90
    };
    let file = bytes(&format!("cubins/k/k.sm_{other}.cubin"));
    match device.load(&file) {
        Err(error @ Error::WrongArchitecture { .. }) => {
            let text = error.to_string();
            assert!(
                text.contains(&format!("sm_{other}")) && text.contains(&sm(&device)),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    let module = module(&device, "k");
    match module.function("nothing") {
        Err(error @ Error::NoKernel { .. }) => {
            let text = error.to_string();
            for kernel in ["nothing", "vadd", "sred", "loc", "gen"] {
                assert!(text.contains(kernel), "{text}");
            }
        }
        other => panic!("{other:?}"),
    }
}

/// A compressed fatbin with cubins for several architectures loads the one that suits the device, and it runs.
pub fn fatbins(options: &Options) {
    let device = open(options);
    let module = device
        .load(&bytes("cubins/fatbin/13.0_vecadd_all.fatbin"))
        .unwrap();
    let name = module.kernels().next().unwrap().to_owned();
    let function = module.function(&name).unwrap();
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let on_a = device.upload(&a).unwrap();
    let on_c = device.upload(&vec![0.0_f32; n]).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&function).grid(4).block(256);
    launch
        .arg(&on_a)
        .arg(&on_a)
        .arg(&on_c)
        .arg(n as i32)
        .submit()
        .unwrap()
        .wait()
        .unwrap();
    let expected: Vec<f32> = a.iter().map(|a| a + a).collect();
    assert_eq!(on_c.read().unwrap(), expected);
}
