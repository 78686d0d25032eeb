//! Launches of any kernel on any device in any shape: each is refused with a reason, or encodes to a descriptor and a
//! bank that say what was asked for.

use nv_proto::bank0::Layout;
use nv_proto::launch::{Bank, Call, DeviceFacts, KernelFacts, LaunchError, Shape, Shaped, prepare};
use nv_proto::qmd::{Qmd, Version};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

use super::take::Take;

/// The architectures that launches are tried on, and some that there are none of.
const ARCHITECTURES: [u16; 16] = [
    75, 80, 86, 87, 89, 90, 90, 90, 100, 103, 120, 121, 75, 86, 70, 999,
];

fn dim3(take: &mut Take<'_>) -> Dim3 {
    Dim3::new(take.amount(), take.amount(), take.amount())
}

/// One, two, three or any number of blocks.
fn small(take: &mut Take<'_>) -> Dim3 {
    let mut one = || match take.byte() {
        n @ 0..240 => u32::from(n & 3) + 1,
        _ => take.amount(),
    };
    Dim3::new(one(), one(), one())
}

fn kernel(take: &mut Take<'_>, prefix: u16) -> KernelFacts {
    let mut kernel = KernelFacts {
        program: GpuVa(take.address()),
        program_size: take.amount(),
        registers: match take.byte() {
            255 => take.amount(),
            n => n.into(),
        },
        barriers: u32::from(take.byte() >> 3),
        static_shared: u32::from(take.byte()) << (take.byte() & 9),
        reserved_shared: take.pick(&[0, 0x400]),
        param_base: match take.byte() {
            0..16 => take.amount(),
            _ => prefix.into(),
        },
        param_size: u32::from(take.byte()),
        local_bytes: take.option(Take::amount).unwrap_or(0),
        max_threads: take.option(|take| take.amount() | 0x40),
        required_block: take.option(small),
        required_cluster: take.option(small),
        cooperative: take.byte() == 0xff,
        ..KernelFacts::default()
    };
    for bank in &mut kernel.banks {
        if let Some(given) = take.option(|take| Bank {
            va: GpuVa(take.address()),
            size: take.amount(),
        }) {
            *bank = given;
        }
    }
    kernel
}

fn device(take: &mut Take<'_>) -> Result<DeviceFacts, LaunchError> {
    let sm = SmVersion(take.pick(&ARCHITECTURES));
    let mut device = DeviceFacts::new(sm, take.amount())?;
    device.local_bytes_per_thread = 0x240 + take.amount() / 2;
    device.shared_window = GpuVa(take.address());
    device.local_window = GpuVa(take.address());
    // Facts that do not belong together are somebody's mistake, and no reason to panic either.
    if take.byte() > 0xf0 {
        device.qmd = take.pick(&Version::ALL);
    }
    if take.byte() > 0xf0 {
        device.limits.sm = SmVersion(take.pick(&ARCHITECTURES));
    }
    if take.byte() == 0xff {
        device.limits.shared_steps = &[];
    }
    if take.byte() == 0xff {
        device.limits.warps = take.word();
        device.limits.blocks = take.word();
        device.limits.shared_unit = take.word();
        device.limits.shared_per_block = take.word();
        device.limits.cluster = take.word();
        device.sass_version = take.word();
        device.tpc_slots = Some(take.word());
    }
    Ok(device)
}

fn shape(take: &mut Take<'_>) -> Shape {
    Shape {
        dynamic_shared: u32::from(take.byte()) << (take.byte() & 9),
        cluster: take.option(small),
        cooperative: take.option(|take| GpuVa(take.address())),
        carveout: take.option(|take| take.amount() as u16),
        ..Shape::new(small(take))
    }
}

/// A launch as the bytes say; whether it could be encoded.
pub fn launch(bytes: &[u8]) -> Result<(), LaunchError> {
    let refused = run(&mut Take(bytes));
    if let Err(error) = refused {
        assert!(!error.to_string().is_empty());
    }
    refused
}

fn run(take: &mut Take<'_>) -> Result<(), LaunchError> {
    let device = device(take)?;
    let layout = Layout::of(device.sm()).ok_or(LaunchError::UnknownSm { sm: device.sm() })?;
    let kernel = kernel(take, layout.prefix());
    let prepared = prepare(&kernel, &device)?;
    let first = shape(take);
    let shaped = prepared.shape(&first)?;
    assert_eq!(
        prepared.occupancy(&first).map(|fit| fit.blocks),
        Ok(shaped.blocks_per_sm())
    );
    let (from, other) = (call_of(take), call_of(take));
    let args: Vec<u8> = (0..kernel.param_size).map(|at| at as u8 ^ 0x3c).collect();
    let call = Call {
        args: &args,
        ..from
    };

    // A call that is refused is refused whatever the buffers hold.
    let (qmd, bank) = encode(&shaped, &call)?;
    let told = qmd.launch().expect("a launch was encoded");
    assert_eq!((told.grid, told.block), (call.grid, first.block));
    assert_eq!(told.program, kernel.program);
    assert!(told.registers >= kernel.registers && told.barriers >= kernel.barriers);
    let shared = kernel.static_shared + first.dynamic_shared + kernel.reserved_shared;
    assert!(told.shared_bytes >= shared);
    let modern = qmd.version().major() >= 4;
    assert_eq!(told.cooperative, modern && first.cooperative.is_some());
    let cluster = first.cluster.or(kernel.required_cluster);
    assert_eq!(told.cluster, cluster.unwrap_or(Dim3::ONE));
    assert_eq!(told.banks[0], Some((call.bank0, shaped.bank0_bytes())));
    for (bank, told) in kernel.banks.iter().zip(told.banks).skip(1) {
        let bound = (bank.size != 0).then(|| (bank.va, bank.size.next_multiple_of(16)));
        assert_eq!(told, bound);
    }
    let prefix = layout.read(&bank).expect("the bank holds it");
    assert_eq!((prefix.grid, prefix.block), (call.grid, first.block));
    assert_eq!(prefix.dynamic_shared, first.dynamic_shared);
    assert_eq!(prefix.grid_id, call.grid_id);
    assert_eq!(prefix.shared_window, device.shared_window);
    let base = kernel.param_base as usize;
    assert_eq!(bank[base..base + args.len()], args);

    // The words are a descriptor that is read as the same.
    let mut words = [0; nv_proto::qmd::MAX_WORDS];
    let length = qmd.encode_into(&mut words).expect("they are enough");
    assert_eq!(Qmd::decode_as(qmd.version(), &words[..length]), Ok(qmd));

    patched(&shaped, &call, &other, (qmd, bank.clone()));
    if let Ok(second) = prepared.shape(&shape(take)) {
        let (mut qmd, mut bank) = (qmd, bank);
        let expected = encode(&second, &call);
        let changed = second.patch_shape(call.grid, &mut qmd, &mut bank);
        match expected {
            Ok(expected) => {
                assert_eq!(changed, Ok(()));
                assert_eq!((qmd, bank), expected, "as if encoded in that shape");
            }
            Err(error) => assert_eq!(changed, Err(error)),
        }
    }
    Ok(())
}

fn call_of(take: &mut Take<'_>) -> Call<'static> {
    let grid = if take.byte() > 40 {
        small(take)
    } else {
        dim3(take)
    };
    Call {
        grid,
        args: &[],
        bank0: GpuVa(take.address()),
        grid_id: take.long(),
    }
}

/// Encodes over stale bytes: all of the bank is written and nothing after it.
fn encode(shaped: &Shaped, call: &Call<'_>) -> Result<(Qmd, Vec<u8>), LaunchError> {
    let length = shaped.bank0_bytes() as usize;
    let mut stale =
        Qmd::decode_as(shaped.qmd().version(), &[0xa5a5_a5a5; 96]).expect("long enough");
    let mut bank = vec![0xa5; length + 16];
    let result = shaped.encode(call, &mut stale, &mut bank);
    let tail = bank.split_off(length);
    assert_eq!(tail, [0xa5; 16]);
    let mut short = vec![0; length - 1];
    assert!(shaped.encode(call, &mut stale.clone(), &mut short).is_err());
    let (mut qmd, mut again) = (Qmd::new(stale.version()), vec![0x5a; length]);
    assert_eq!(shaped.encode(call, &mut qmd, &mut again), result);
    result?;
    assert_eq!((qmd, &again), (stale, &bank), "nothing stale is left");
    Ok((qmd, bank))
}

/// Grid and arguments changed in place are what encoding them anew gives.
fn patched(shaped: &Shaped, call: &Call<'_>, other: &Call<'_>, was: (Qmd, Vec<u8>)) {
    let (mut qmd, mut bank) = was.clone();
    let expected = encode(
        shaped,
        &Call {
            grid: other.grid,
            ..*call
        },
    );
    let result = shaped.patch_grid(other.grid, &mut qmd, &mut bank);
    match expected {
        Ok(expected) => {
            assert_eq!(result, Ok(()));
            assert_eq!((qmd, bank), expected);
        }
        Err(error) => {
            assert_eq!(result, Err(error));
            assert_eq!((qmd, bank), was, "refused and left alone");
        }
    }
    let (qmd, mut bank) = was.clone();
    let (offset, new) = (other.grid_id as u32 % 300, [0xc3; 5]);
    let mut args = call.args.to_vec();
    let end = offset as usize + new.len();
    match shaped.patch_args(offset, &new, &mut bank) {
        Ok(()) => {
            args[offset as usize..end].copy_from_slice(&new);
            let call = Call {
                args: &args,
                ..*call
            };
            assert_eq!(encode(shaped, &call), Ok((qmd, bank)));
        }
        Err(_) => {
            assert!(end > args.len());
            assert_eq!((qmd, bank), was);
        }
    }
}
