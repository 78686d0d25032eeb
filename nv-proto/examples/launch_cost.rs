//! What encoding one launch costs, beside a plain copy of the same bytes.
//!
//! `cargo run --release -p nv-proto --example launch_cost`

use std::hint::black_box;
use std::time::Instant;

use nv_proto::EncodeError;
use nv_proto::gpfifo::GpEntry;
use nv_proto::launch::{Call, DeviceFacts, KernelFacts, LaunchError, Shape, prepare};
use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::qmd::{Qmd, Release, ReleaseSize};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

/// Launches timed at once.
const BATCH: u32 = 10_000;

fn main() -> Result<(), LaunchError> {
    for (sm, param_base) in [(86, 0x160), (90, 0x210), (120, 0x380)] {
        let device = DeviceFacts {
            local_bytes_per_thread: 0x640,
            ..DeviceFacts::new(SmVersion(sm), 132)?
        };
        let kernel = KernelFacts {
            program: GpuVa(0x1_2345_6700),
            registers: 32,
            param_base,
            param_size: 64,
            reserved_shared: 0x400,
            ..KernelFacts::default()
        };
        let prepared = prepare(&kernel, &device)?;
        let launch = prepared.shape(&Shape::new(256))?;
        let (mut qmd, mut bank0) = (Qmd::new(device.qmd), [0_u8; 0x400]);
        let args = [7_u8; 64];

        let encode = best(|i| {
            let call = Call {
                grid: Dim3::from(i),
                args: &args,
                bank0: GpuVa(0x2_0000_0000 + u64::from(i) * 256),
                grid_id: i.into(),
            };
            black_box(launch.encode(black_box(&call), &mut qmd, &mut bank0)).is_ok()
        });
        let release = best(|i| {
            let release = Release {
                va: GpuVa(0x3_0000_0000),
                payload: i.into(),
                size: ReleaseSize::Double,
                membar: true,
                reduction: None,
            };
            black_box(qmd.set_release(0, black_box(Some(release)))).is_ok()
        });
        let payload = best(|i| black_box(qmd.set_release_payload(0, i.into())).is_ok());
        let grid = best(|i| black_box(launch.patch_grid(i.into(), &mut qmd, &mut bank0)).is_ok());
        let mut words = [0_u32; 16];
        let whole = best(|i| {
            let at = GpuVa(0x2_0000_0000 + u64::from(i) * 0x1000);
            let call = Call {
                grid: Dim3::from(i),
                args: &args,
                bank0: at,
                grid_id: i.into(),
            };
            let entry = launch
                .encode(black_box(&call), &mut qmd, &mut bank0)
                .ok()
                .and_then(|()| methods(&mut words, GpuVa(at.0 + 0x800), i).ok());
            black_box((&words, entry)).1.is_some()
        });
        let shape = best(|i| black_box(prepared.shape(&Shape::new(i % 1024 + 1))).is_ok());
        let (from, from_bank0) = (qmd, bank0);
        let bytes = launch.bank0_bytes() as usize;
        let copy = best(|_| {
            qmd = *black_box(&from);
            bank0[..bytes].copy_from_slice(black_box(&from_bank0[..bytes]));
            black_box((&qmd, &bank0));
            true
        });
        println!(
            "sm_{sm}: whole launch (descriptor, bank 0, arguments, three methods, GPFIFO entry) {whole:.1} ns; \
             encode {encode:.1} ns, of which a plain copy of its {} bytes {copy:.1} ns; \
             release {release:.1} ns, its payload {payload:.1} ns, grid {grid:.1} ns, shape {shape:.1} ns",
            device.qmd.bytes() + bytes
        );
    }
    Ok(())
}

/// The methods that start a descriptor and release a semaphore, and the entry for them.
fn methods(words: &mut [u32], qmd: GpuVa, value: u32) -> Result<u64, EncodeError> {
    let mut push = PushWriter::new(words);
    push.write(Subchannel::COMPUTE, &SendPcas { qmd })?;
    push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)?;
    let release = SemRelease {
        at: GpuVa(0x3_0000_0000),
        value: value.into(),
        wfi: true,
        timestamp: false,
    };
    push.write(Subchannel::HOST, &release)?;
    let dwords = u32::try_from(push.len()).unwrap_or(u32::MAX);
    Ok(GpEntry::new(GpuVa(0x4_0000_0000), dwords)?.encode())
}

/// Nanoseconds a call takes at best, over several batches.
fn best(mut call: impl FnMut(u32) -> bool) -> f64 {
    let batches = (0..50).map(|_| {
        let start = Instant::now();
        let done = (1..=BATCH).filter(|i| call(*i)).count();
        assert_eq!(done, BATCH as usize, "every call succeeds");
        start.elapsed().as_nanos() as f64 / f64::from(BATCH)
    });
    batches.fold(f64::INFINITY, f64::min)
}
