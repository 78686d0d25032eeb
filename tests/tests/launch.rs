//! The launch model: limits, occupancy, what is refused and how, and changes in place.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use std::collections::BTreeSet;

use nv_proto::EncodeError;
use nv_proto::bank0::{Layout, STACK_RESERVE};
use nv_proto::launch::{
    Bank, Call, DeviceFacts, KernelFacts, LaunchError, Limit, LimitedBy, Prepared, Shape, Shaped,
    SmLimits, prepare, sass_version,
};
use nv_proto::qmd::{Dependent, Qmd, Release};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};
use proptest::prelude::*;

/// Every generation that launches.
const GENERATIONS: [u16; 10] = [75, 80, 86, 87, 89, 90, 100, 103, 120, 121];

fn device(sm: u16) -> DeviceFacts {
    DeviceFacts {
        local_bytes_per_thread: 0x640,
        shared_window: GpuVa(0x7f36_0000_0000),
        local_window: GpuVa(0x7f35_0000_0000),
        ..DeviceFacts::new(SmVersion(sm), 132).unwrap()
    }
}

fn kernel(sm: u16) -> KernelFacts {
    KernelFacts {
        program: GpuVa(0x1_2345_6700),
        program_size: 0x900,
        registers: 32,
        barriers: 1,
        static_shared: 0x100,
        reserved_shared: if sm < 80 { 0 } else { 0x400 },
        local_bytes: 0x400,
        param_base: Layout::of(SmVersion(sm)).unwrap().prefix().into(),
        param_size: 28,
        ..KernelFacts::default()
    }
}

fn prepared(sm: u16, change: impl FnOnce(&mut KernelFacts)) -> Result<Prepared, LaunchError> {
    let mut kernel = kernel(sm);
    change(&mut kernel);
    prepare(&kernel, &device(sm))
}

fn shaped(sm: u16, shape: &Shape) -> Result<Shaped, LaunchError> {
    prepared(sm, |_| {}).unwrap().shape(shape)
}

fn call(grid: impl Into<Dim3>) -> Call<'static> {
    Call {
        grid: grid.into(),
        args: &[0x5a; 28],
        bank0: GpuVa(0x2_0000_0100),
        grid_id: 9,
    }
}

/// Encodes into buffers of any former content.
fn encode(shaped: &Shaped, call: &Call<'_>) -> Result<(Qmd, Vec<u8>), LaunchError> {
    let version = shaped.qmd().version();
    let mut qmd = Qmd::decode_as(version, &[0xa5a5_a5a5; 96]).unwrap();
    let mut bank0 = vec![0xa5; shaped.bank0_bytes() as usize];
    shaped.encode(call, &mut qmd, &mut bank0)?;
    Ok((qmd, bank0))
}

fn over(limit: Limit, value: u64, maximum: u64) -> Option<LaunchError> {
    Some(LaunchError::Limit {
        limit,
        value,
        maximum,
    })
}

#[test]
fn a_launch_says_what_was_asked_for() {
    for sm in GENERATIONS {
        let mut facts = kernel(sm);
        facts.banks[3] = Bank {
            va: GpuVa(0x1_4000_0040),
            size: 100,
        };
        let prepared = prepare(&facts, &device(sm)).unwrap();
        let shape = Shape {
            dynamic_shared: 0x321,
            ..Shape::new((64, 2, 3))
        };
        let launch = prepared.shape(&shape).unwrap();
        let (qmd, bank0) = encode(&launch, &call((7, 8, 9))).unwrap();
        let view = qmd.launch().unwrap();
        assert_eq!(
            (view.grid, view.block),
            (Dim3::new(7, 8, 9), Dim3::new(64, 2, 3)),
            "sm_{sm}"
        );
        assert_eq!(
            (view.cluster, view.cooperative),
            (Dim3::ONE, false),
            "sm_{sm}"
        );
        assert_eq!(
            (view.program, view.barriers),
            (GpuVa(0x1_2345_6700), 1),
            "sm_{sm}"
        );
        assert_eq!(view.registers, 32, "sm_{sm}");
        let total = 0x321 + 0x100 + facts.reserved_shared;
        let unit = if sm < 80 { 256 } else { 128 };
        assert_eq!(view.shared_bytes, total.next_multiple_of(unit), "sm_{sm}");
        assert_eq!(
            (view.local_low_bytes, view.local_high_bytes),
            (0, 0x640),
            "sm_{sm}"
        );
        let size = (facts.param_base + 28).next_multiple_of(256);
        assert_eq!(view.banks[0], Some((GpuVa(0x2_0000_0100), size)), "sm_{sm}");
        assert_eq!(view.banks[3], Some((GpuVa(0x1_4000_0040), 112)), "sm_{sm}");
        assert_eq!(view.banks.iter().flatten().count(), 2, "sm_{sm}");
        assert_eq!(
            qmd.undocumented().count(),
            0,
            "sm_{sm}: nothing of the buffer's former content is left"
        );

        let layout = Layout::of(SmVersion(sm)).unwrap();
        let read = layout.read(&bank0).unwrap();
        assert_eq!((read.grid, read.block), (view.grid, view.block), "sm_{sm}");
        assert_eq!((read.grid_id, read.sm_count), (9, 132), "sm_{sm}");
        assert_eq!(read.dynamic_shared, 0x321, "sm_{sm}");
        assert_eq!(read.reserved_shared, facts.reserved_shared, "sm_{sm}");
        assert_eq!((read.cluster, read.cooperative), (None, None), "sm_{sm}");
        let base = facts.param_base as usize;
        assert_eq!(bank0[base..base + 28], [0x5a; 28], "sm_{sm}");
        assert!(bank0[base + 28..].iter().all(|byte| *byte == 0), "sm_{sm}");
    }
}

#[test]
fn parameters_may_begin_far_behind_the_drivers_words() {
    // Kernels with more than 4 KB of parameters, on sm_75 to sm_89.
    let prepared = prepared(86, |kernel| {
        (kernel.param_base, kernel.param_size) = (0x1a80, 5000)
    })
    .unwrap();
    let launch = prepared.shape(&Shape::new(32)).unwrap();
    assert_eq!(launch.bank0_bytes(), 12032);
    let args: Vec<u8> = (0..5000_u32).map(|byte| (byte % 251 + 1) as u8).collect();
    let (_, bank0) = encode(
        &launch,
        &Call {
            args: &args,
            ..call(1)
        },
    )
    .unwrap();
    assert_eq!(bank0[0x1a80..0x1a80 + 5000], args);
    assert!(bank0[0x160..0x1a80].iter().all(|byte| *byte == 0));
    assert!(bank0[0x1a80 + 5000..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_grid_is_within_its_limits() {
    let launch = shaped(86, &Shape::new(32)).unwrap();
    let most = Dim3::new(0x7fff_ffff, 0xffff, 0xffff);
    assert_eq!(
        encode(&launch, &call(most))
            .unwrap()
            .0
            .launch()
            .unwrap()
            .grid,
        most
    );
    for (grid, error) in [
        (
            Dim3::new(0, 1, 1),
            Some(LaunchError::Zero {
                limit: Limit::GridX,
            }),
        ),
        (
            Dim3::new(1, 0, 1),
            Some(LaunchError::Zero {
                limit: Limit::GridY,
            }),
        ),
        (
            Dim3::new(1, 1, 0),
            Some(LaunchError::Zero {
                limit: Limit::GridZ,
            }),
        ),
        (
            Dim3::new(1 << 31, 1, 1),
            over(Limit::GridX, 1 << 31, 0x7fff_ffff),
        ),
        (Dim3::new(1, 65536, 1), over(Limit::GridY, 65536, 65535)),
        (Dim3::new(1, 1, 65536), over(Limit::GridZ, 65536, 65535)),
    ] {
        assert_eq!(encode(&launch, &call(grid)).err(), error);
        let (mut qmd, mut bank0) = encode(&launch, &call(5)).unwrap();
        assert_eq!(launch.patch_grid(grid, &mut qmd, &mut bank0).err(), error);
        assert_eq!(
            qmd.launch().unwrap().grid,
            Dim3::from(5),
            "nothing was patched"
        );
    }
}

#[test]
fn a_block_is_within_its_limits() {
    for sm in GENERATIONS {
        for (block, error) in [
            (Dim3::new(1024, 1, 1), None),
            (Dim3::new(1, 1024, 1), None),
            (Dim3::new(16, 1, 64), None),
            (
                Dim3::new(0, 1, 1),
                Some(LaunchError::Zero {
                    limit: Limit::BlockX,
                }),
            ),
            (
                Dim3::new(1, 0, 1),
                Some(LaunchError::Zero {
                    limit: Limit::BlockY,
                }),
            ),
            (
                Dim3::new(1, 1, 0),
                Some(LaunchError::Zero {
                    limit: Limit::BlockZ,
                }),
            ),
            (Dim3::new(1025, 1, 1), over(Limit::BlockX, 1025, 1024)),
            (Dim3::new(1, 1025, 1), over(Limit::BlockY, 1025, 1024)),
            (Dim3::new(1, 1, 65), over(Limit::BlockZ, 65, 64)),
            (
                Dim3::new(33, 32, 1),
                over(Limit::ThreadsPerBlock, 1056, 1024),
            ),
        ] {
            assert_eq!(
                shaped(sm, &Shape::new(block)).err(),
                error,
                "sm_{sm} {block}"
            );
        }
    }
}

#[test]
fn a_kernels_own_limits_hold() {
    let threads = |threads: u32, change: &dyn Fn(&mut KernelFacts)| {
        prepared(86, change)
            .and_then(|prepared| prepared.shape(&Shape::new(threads)))
            .err()
    };
    let bounds = |kernel: &mut KernelFacts| kernel.max_threads = Some(64);
    assert_eq!(threads(64, &bounds), None);
    assert_eq!(threads(65, &bounds), over(Limit::LaunchBounds, 65, 64));
    let required = Dim3::new(8, 8, 1);
    let fixed = |kernel: &mut KernelFacts| kernel.required_block = Some(required);
    assert_eq!(
        threads(64, &fixed),
        Some(LaunchError::Block {
            given: Dim3::from(64),
            required
        })
    );
    let fixed = prepared(86, fixed).unwrap();
    assert!(fixed.shape(&Shape::new((8, 8))).is_ok());
    // 65 registers are 72 as allocated: 9 units a warp, 28 warps of them in whole units of 4.
    let registers = |count| move |kernel: &mut KernelFacts| kernel.registers = count;
    assert_eq!(threads(1024, &registers(64)), None);
    assert_eq!(
        threads(1024, &registers(65)),
        over(Limit::ThreadsByRegisters, 1024, 896)
    );
    assert_eq!(threads(256, &registers(255)), None);
    assert_eq!(
        threads(257, &registers(255)),
        over(Limit::ThreadsByRegisters, 257, 256)
    );
    assert_eq!(
        threads(32, &registers(256)),
        over(Limit::Registers, 256, 255)
    );
    assert_eq!(
        threads(32, &|kernel| kernel.barriers = 17),
        over(Limit::Barriers, 17, 16)
    );
    let prefix = Layout::of(SmVersion(86)).unwrap().prefix().into();
    assert_eq!(
        threads(32, &|kernel| kernel.param_base = 0x140),
        Some(LaunchError::ParameterBase {
            base: 0x140,
            prefix,
            sm: SmVersion(86)
        })
    );
    assert_eq!(
        threads(32, &|kernel| kernel.param_size = 65536),
        over(Limit::ConstantBank, 65536 + 0x160, 65536)
    );
    let local = 0x640 - STACK_RESERVE;
    assert_eq!(threads(32, &|kernel| kernel.local_bytes = local), None);
    assert_eq!(
        threads(32, &|kernel| kernel.local_bytes = local + 1),
        over(Limit::LocalMemory, 0x641, 0x640)
    );
    let misplaced = prepared(86, |kernel| kernel.program = GpuVa(1 << 50)).err();
    assert!(matches!(
        misplaced,
        Some(LaunchError::Encode(EncodeError::FieldOverflow { .. }))
    ));
    let misplaced = prepared(120, |kernel| kernel.program = GpuVa(0x108)).err();
    assert!(matches!(
        misplaced,
        Some(LaunchError::Encode(EncodeError::Misaligned { .. }))
    ));
}

#[test]
fn shared_memory_reaches_what_the_chip_has() {
    for (sm, kib, code) in [
        (75, 64, 17),
        (80, 163, 42),
        (86, 99, 26),
        (89, 99, 26),
        (90, 227, 58),
        (120, 99, 26),
    ] {
        let own = kernel(sm).static_shared;
        let most = kib * 1024 - own;
        let shape = |dynamic_shared| Shape {
            dynamic_shared,
            ..Shape::new(128)
        };
        let launch = shaped(sm, &shape(most)).unwrap();
        let (qmd, _) = encode(&launch, &call(1)).unwrap();
        for which in ["MIN", "TARGET", "MAX"] {
            let name = format!("{which}_SM_CONFIG_SHARED_MEM_SIZE");
            assert_eq!(qmd.field(&name, 0).unwrap().raw, code, "sm_{sm} {name}");
        }
        assert_eq!(launch.blocks_per_sm(), 1, "sm_{sm}");
        let (value, maximum) = (u64::from(kib * 1024 + 1), u64::from(kib * 1024));
        assert_eq!(
            shaped(sm, &shape(most + 1)).err(),
            over(Limit::SharedMemory, value, maximum)
        );
        assert!(shaped(sm, &shape(u32::MAX)).is_err(), "sm_{sm}");
    }
}

#[test]
fn clusters_are_whole_and_fit() {
    let shape = |cluster| Shape {
        cluster: Some(cluster),
        ..Shape::new(64)
    };
    let two = Dim3::new(2, 2, 1);
    for sm in [90, 100, 103, 120, 121] {
        let launch = shaped(sm, &shape(two)).unwrap();
        let (qmd, bank0) = encode(&launch, &call((4, 6, 5))).unwrap();
        let view = qmd.launch().unwrap();
        assert_eq!(
            (view.grid, view.cluster),
            (Dim3::new(4, 6, 5), two),
            "sm_{sm}"
        );
        let read = Layout::of(SmVersion(sm)).unwrap().read(&bank0).unwrap();
        assert_eq!(
            (read.grid, read.cluster),
            (Dim3::new(4, 6, 5), Some(two)),
            "sm_{sm}"
        );
        let grid = Dim3::new(4, 5, 5);
        let partial = Some(LaunchError::PartialCluster { grid, cluster: two });
        assert_eq!(encode(&launch, &call(grid)).err(), partial, "sm_{sm}");
        let most = if sm < 120 { 16 } else { 8 };
        assert_eq!(
            shaped(sm, &shape(Dim3::new(4, 4, 2))).err(),
            over(Limit::BlocksPerCluster, 32, most)
        );
        assert_eq!(
            shaped(sm, &shape(Dim3::new(1, 17, 1))).err(),
            over(Limit::ClusterY, 17, most)
        );
        let none = shaped(sm, &shape(Dim3::new(1, 1, 0))).err();
        assert_eq!(
            none,
            Some(LaunchError::Zero {
                limit: Limit::ClusterZ
            }),
            "sm_{sm}"
        );
        let both = Shape {
            cooperative: Some(GpuVa(0x1000)),
            ..shape(two)
        };
        assert_eq!(
            shaped(sm, &both).err(),
            Some(LaunchError::CooperativeClusters),
            "sm_{sm}"
        );
        // A kernel that was compiled for one cluster is launched with it, and with no other.
        let fixed = prepared(sm, |kernel| kernel.required_cluster = Some(two)).unwrap();
        let launch = fixed.shape(&Shape::new(64)).unwrap();
        assert_eq!(
            encode(&launch, &call((2, 2)))
                .unwrap()
                .0
                .launch()
                .unwrap()
                .cluster,
            two
        );
        let given = Dim3::new(2, 1, 1);
        let other = Some(LaunchError::Cluster {
            given,
            required: two,
        });
        assert_eq!(fixed.shape(&shape(given)).err(), other, "sm_{sm}");
    }
    let none = Some(LaunchError::NoClusters { sm: SmVersion(89) });
    assert_eq!(shaped(89, &shape(two)).err(), none);
}

#[test]
fn a_cooperative_grid_is_resident_as_a_whole() {
    let workspace = Some(GpuVa(0x7f35_eac0_0000));
    for sm in GENERATIONS {
        let prepared = prepared(sm, |kernel| kernel.cooperative = true).unwrap();
        let plain = prepared.shape(&Shape::new(128)).err();
        assert_eq!(plain, Some(LaunchError::NotCooperative), "sm_{sm}");
        let shape = Shape {
            cooperative: workspace,
            ..Shape::new(128)
        };
        let launch = prepared.shape(&shape).unwrap();
        let resident = launch.blocks_per_sm() * 132;
        let (qmd, bank0) = encode(&launch, &call(resident)).unwrap();
        let view = qmd.launch().unwrap();
        assert_eq!(view.grid, Dim3::from(resident), "sm_{sm}");
        assert_eq!(
            view.cooperative,
            sm >= 90,
            "sm_{sm}: older descriptors do not say"
        );
        let read = Layout::of(SmVersion(sm)).unwrap().read(&bank0).unwrap();
        assert_eq!(read.cooperative, workspace, "sm_{sm}");
        let most = u64::from(resident);
        assert_eq!(
            encode(&launch, &call(resident + 1)).err(),
            over(Limit::CooperativeBlocks, most + 1, most),
            "sm_{sm}"
        );
    }
}

#[test]
fn buffers_and_arguments_are_checked() {
    let launch = shaped(90, &Shape::new(32)).unwrap();
    let wrong = Call {
        args: &[0; 27],
        ..call(1)
    };
    assert_eq!(
        encode(&launch, &wrong).err(),
        Some(LaunchError::ArgumentBytes {
            given: 27,
            expected: 28
        })
    );
    let wrong = Call {
        bank0: GpuVa(0x2_0000_0040),
        ..call(1)
    };
    assert!(matches!(
        encode(&launch, &wrong).err(),
        Some(LaunchError::Encode(EncodeError::Misaligned {
            unit: 256,
            ..
        }))
    ));
    let mut qmd = Qmd::new(device(90).qmd);
    let mut short = vec![0; 0x2ff];
    assert_eq!(
        launch.encode(&call(1), &mut qmd, &mut short),
        Err(LaunchError::BankBuffer {
            needed: 0x300,
            available: 0x2ff
        })
    );
    let (_, mut bank0) = encode(&launch, &call(1)).unwrap();
    let outside = |offset, length| {
        Err(LaunchError::ArgumentRange {
            offset,
            length,
            size: 28,
        })
    };
    assert_eq!(launch.patch_args(25, &[0; 4], &mut bank0), outside(25, 4));
    assert_eq!(
        launch.patch_args(u32::MAX, &[0; 1], &mut bank0),
        outside(u32::MAX.into(), 1)
    );
    assert_eq!(launch.patch_args(24, &[1, 2, 3, 4], &mut bank0), Ok(()));
    assert_eq!(
        bank0[0x210..0x210 + 29],
        [&[0x5a; 24][..], &[1, 2, 3, 4, 0]].concat()
    );
    assert!(launch.patch_args(0, &[], &mut short).is_err());
}

#[test]
fn unknown_generations_are_refused() {
    for sm in [0, 50, 70, 76, 99, 130, u16::MAX] {
        let unknown = LaunchError::UnknownSm { sm: SmVersion(sm) };
        assert_eq!(DeviceFacts::new(SmVersion(sm), 1), Err(unknown));
    }
    let strange = DeviceFacts {
        limits: SmLimits {
            sm: SmVersion(70),
            ..device(75).limits
        },
        ..device(75)
    };
    assert_eq!(
        prepare(&kernel(75), &strange).err(),
        Some(LaunchError::UnknownSm { sm: SmVersion(70) })
    );
    let strange = DeviceFacts {
        qmd: nv_proto::qmd::Version::V05_01,
        ..device(120)
    };
    assert_eq!(
        prepare(&kernel(120), &strange).err(),
        Some(LaunchError::UnknownSm { sm: SmVersion(120) })
    );
}

#[test]
fn the_version_of_machine_code_is_as_measured() {
    assert_eq!(sass_version(0x900), 0x90);
    assert_eq!(sass_version(0x806), 0x86);
    assert_eq!(sass_version(0xa04), 0xa4);
    assert_eq!(device(90).sass_version, 0x90);
    assert_eq!(device(89).sass_version, 0x89);
}

#[test]
fn errors_name_the_limit_the_value_and_the_most() {
    let error = shaped(86, &Shape::new((33, 32))).err().unwrap();
    assert_eq!(
        error.to_string(),
        "threads of the block: 1056, and the most is 1024"
    );
    let error = shaped(
        86,
        &Shape {
            dynamic_shared: 200_000,
            ..Shape::new(1)
        },
    )
    .err()
    .unwrap();
    assert_eq!(
        error.to_string(),
        "bytes of shared memory of the block: 200256, and the most is 101376"
    );
}

#[test]
fn a_launch_changes_in_place() {
    for sm in GENERATIONS {
        let prepared = prepared(sm, |_| {}).unwrap();
        let narrow = prepared.shape(&Shape::new(32)).unwrap();
        let (mut qmd, mut bank0) = encode(&narrow, &call(5)).unwrap();
        let release = Release {
            va: GpuVa(0x1000),
            payload: 3,
            size: nv_proto::qmd::ReleaseSize::Word,
            ..Release::default()
        };
        qmd.set_release(0, Some(release)).unwrap();
        qmd.set_dependent(
            0,
            Some(Dependent {
                prefetch: sm >= 80,
                ..Dependent::schedule(GpuVa(0x4000))
            }),
        )
        .unwrap();

        narrow
            .patch_grid(Dim3::new(3, 2, 1), &mut qmd, &mut bank0)
            .unwrap();
        let again = encode(&narrow, &call((3, 2))).unwrap();
        assert_eq!(bank0, again.1, "sm_{sm}");
        assert_eq!(qmd.launch(), again.0.launch(), "sm_{sm}");

        let mut wide = Shape {
            dynamic_shared: 0x3000,
            ..Shape::new((64, 4))
        };
        if sm >= 90 {
            wide.cluster = Some(Dim3::new(4, 1, 1));
        }
        let wide = prepared.shape(&wide).unwrap();
        wide.patch_shape(Dim3::new(8, 2, 1), &mut qmd, &mut bank0)
            .unwrap();
        let again = encode(&wide, &call((8, 2))).unwrap();
        assert_eq!(bank0, again.1, "sm_{sm}");
        assert_eq!(qmd.launch(), again.0.launch(), "sm_{sm}");
        assert_eq!(
            qmd.release(0),
            Some(release),
            "sm_{sm}: what comes after stays"
        );
        assert!(qmd.dependent(0).is_some(), "sm_{sm}");
        // And back: nothing of the wide shape is left but what was set besides.
        narrow
            .patch_shape(Dim3::from(5), &mut qmd, &mut bank0)
            .unwrap();
        let (first, first_bank0) = encode(&narrow, &call(5)).unwrap();
        assert_eq!(bank0, first_bank0, "sm_{sm}");
        let rest: BTreeSet<&str> = first
            .diff(&qmd)
            .unwrap()
            .fields()
            .map(|rest| rest.field.name)
            .collect();
        assert!(
            rest.iter()
                .all(|name| name.contains("RELEASE") || name.contains("DEPENDENT")),
            "{rest:?}"
        );
    }
}

#[test]
fn occupancy_is_what_the_toolkit_computes() {
    let golden = nv_tests::json("golden/occupancy/cuda_13.0.json");
    let mut count = 0;
    let mut limits = BTreeSet::new();
    for (sm, rows) in golden["sm"].as_object().unwrap() {
        let of = SmLimits::of(SmVersion(sm.parse().unwrap())).unwrap();
        for row in rows.as_array().unwrap() {
            let row: Vec<u32> = row
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_u64().unwrap() as u32)
                .collect();
            let &[threads, registers, shared, barriers, blocks] = row.as_slice() else {
                panic!("{row:?}")
            };
            let fit = if shared > of.shared_per_block {
                None
            } else {
                Some(of.occupancy(threads, registers, shared + of.reserved_shared, barriers))
            };
            assert_eq!(fit.map_or(0, |fit| fit.blocks), blocks, "sm_{sm} {row:?}");
            limits.extend(fit.map(|fit| format!("{:?}", fit.limited_by)));
            count += 1;
        }
    }
    assert!(count > 2000, "{count}");
    assert_eq!(limits.len(), 5, "every limit is met: {limits:?}");
    let hopper = SmLimits::of(SmVersion(90)).unwrap();
    assert_eq!(
        hopper.occupancy(64, 16, 0x400, 12).limited_by,
        LimitedBy::Barriers
    );
}

#[test]
fn the_shared_memory_steps_are_those_of_the_facts() {
    let facts = [
        (75, &[32, 64][..]),
        (80, &[0, 8, 16, 32, 64, 100, 132, 164]),
        (86, &[0, 8, 16, 32, 64, 100]),
        (87, &[0, 8, 16, 32, 64, 100, 132, 164]),
        (89, &[0, 8, 16, 32, 64, 100]),
        (90, &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
        (100, &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228]),
        (120, &[0, 8, 16, 32, 64, 100]),
    ];
    for (sm, steps) in facts {
        assert_eq!(
            SmLimits::of(SmVersion(sm)).unwrap().shared_steps,
            steps,
            "sm_{sm}"
        );
    }
    let warps = [
        (75, 32),
        (80, 64),
        (86, 48),
        (87, 48),
        (89, 48),
        (90, 64),
        (100, 64),
        (120, 48),
    ];
    for (sm, warps) in warps {
        assert_eq!(SmLimits::of(SmVersion(sm)).unwrap().warps, warps, "sm_{sm}");
    }
}

prop_compose! {
    /// Extents near the limits, or anything.
    fn extent()(near in prop::sample::select(vec![0, 1, 2, 31, 32, 64, 65, 255, 1023, 1024, 1025, 65535, 65536]),
                any in any::<u32>(), which in 0..8) -> u32 {
        if which == 0 { any } else { near }
    }
}

proptest! {
    /// No facts and no request make the encoder fail otherwise than by an error, or write a launch that reads
    /// back as another.
    #[test]
    fn any_request_is_encoded_faithfully_or_refused(
        sm in prop::sample::select(GENERATIONS.to_vec()),
        block in (extent(), extent(), extent()),
        grid in (extent(), extent(), extent()),
        cluster in prop::option::of((1..5_u32, 1..5_u32, 0..4_u32)),
        cooperative in prop::option::of(any::<u64>()),
        carveout in prop::option::of(any::<u16>()),
        (dynamic_shared, static_shared, reserved_shared) in (extent(), extent(), extent()),
        (registers, barriers, local_bytes) in (0..300_u32, 0..20_u32, extent()),
        (program, param_size) in (any::<u64>(), 0..300_u32),
        (bank0_va, grid_id) in (any::<u64>(), any::<u64>()),
    ) {
        let (program, bank0_va) = (GpuVa(program >> 20 & !0xff), GpuVa(bank0_va >> 20 & !0xff));
        let facts = KernelFacts {
            program, registers, barriers, static_shared, reserved_shared, local_bytes, param_size,
            program_size: param_size.wrapping_mul(77),
            ..kernel(sm)
        };
        let Ok(prepared) = prepare(&facts, &device(sm)) else { return Ok(()) };
        let shape = Shape {
            block: block.into(),
            dynamic_shared,
            cluster: cluster.map(Dim3::from),
            cooperative: cooperative.map(GpuVa),
            carveout,
        };
        let Ok(launch) = prepared.shape(&shape) else { return Ok(()) };
        let args = vec![0x77; param_size as usize];
        let call = Call { grid: grid.into(), args: &args, bank0: bank0_va, grid_id };
        let Ok((qmd, bank0)) = encode(&launch, &call) else { return Ok(()) };
        let view = qmd.launch().unwrap();
        prop_assert_eq!((view.grid, view.block), (call.grid, shape.block));
        prop_assert_eq!(view.cluster, shape.cluster.unwrap_or(Dim3::ONE));
        prop_assert_eq!(view.program, program);
        prop_assert!(view.shared_bytes >= static_shared + dynamic_shared + reserved_shared);
        prop_assert!(shape.block.count() <= 1024);
        prop_assert_eq!(view.banks[0].map(|bank| bank.0), Some(bank0_va));
        let read = Layout::of(SmVersion(sm)).unwrap().read(&bank0).unwrap();
        prop_assert_eq!((read.grid, read.block), (call.grid, shape.block));
        prop_assert_eq!((read.grid_id, read.dynamic_shared), (grid_id, dynamic_shared));
        prop_assert_eq!(read.cluster, shape.cluster);
    }
}
