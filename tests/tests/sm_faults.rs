//! What stops a kernel, and that nothing makes the interpreter itself fall over.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers: what is not there fails the test that asked for it"
)]

mod sm_support;

use std::sync::atomic::{AtomicBool, Ordering};

use nv_proto::unit::{Dim3, SmVersion};
use nv_sim::memory::{Access, MmuFault};
use nv_sim::sm::{self, ConstantBank, Fault, FaultKind, Grid};
use proptest::prelude::*;
use sm_support::{Args, Machine, Space, shape};

const SMS: [u16; 5] = [80, 86, 89, 90, 120];

/// A grid of one block that runs hand-written words.
fn grid(space: &mut Space, sm: u16, program: &[[u64; 2]], threads: u32) -> Grid {
    let bytes: Vec<u8> = program
        .iter()
        .flatten()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let va = space.alloc(bytes.len());
    space.write(va, &bytes);
    let bank = space.alloc(0x400);
    let mut banks = [ConstantBank::default(); 8];
    banks[0] = ConstantBank {
        va: bank,
        size: 0x400,
    };
    Grid {
        sm: SmVersion(sm),
        grid: Dim3::ONE,
        block: threads.into(),
        cluster: Dim3::ONE,
        cooperative: false,
        program: va,
        registers: 32,
        barriers: 16,
        shared_bytes: 0x800,
        local_bytes: 256,
        banks,
        shared_window: sm_support::SHARED_WINDOW,
        local_window: sm_support::LOCAL_WINDOW,
        sm_count: 4,
    }
}

fn run(sm: u16, program: &[[u64; 2]], threads: u32) -> Result<sm::Stats, Box<Fault>> {
    let mut space = Space::default();
    let grid = grid(&mut space, sm, program, threads);
    sm::run(&grid, &space, &AtomicBool::new(false))
}

// Words that every architecture here has, taken from real programs.
const EXIT: [u64; 2] = [0x0000_0000_0000_794d, 0x000f_ea00_0380_0000];
const BAR_SYNC_0: [u64; 2] = [0x0000_0000_0000_7b1d, 0x000f_ec00_0001_0000];
const BPT_TRAP: [u64; 2] = [0x0000_0004_0000_795c, 0x000f_ea00_0030_0000];
/// `BRA` to itself, as `sm_80` has it: the distance is counted in four bytes from bit 34 on.
const LOOP: [u64; 2] = [0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff];
/// `MOV R200, R200`.
const MOV_R200: [u64; 2] = [0x0000_00c8_00c8_7202, 0x000f_e200_0000_0f00];

#[test]
fn the_simplest_program_ends() {
    for sm in SMS {
        let stats = run(sm, &[BAR_SYNC_0, EXIT], 1024).unwrap();
        assert_eq!((stats.blocks, stats.instructions), (1, 64), "sm_{sm}");
    }
}

#[test]
fn a_trap_says_where() {
    for sm in SMS {
        let fault = run(sm, &[BAR_SYNC_0, BPT_TRAP, EXIT], 64).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Trap, "sm_{sm}");
        assert_eq!(fault.words, Some(BPT_TRAP));
        assert_eq!(fault.pc & 0xffff, 0x10);
        assert!([0, 32].contains(&fault.thread.x), "{:?}", fault.thread);
    }
}

#[test]
fn a_register_past_the_count_is_illegal() {
    let fault = run(80, &[MOV_R200, EXIT], 32).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalInstruction);
}

#[test]
fn running_off_the_end_is_a_fetch_fault() {
    let fault = run(90, &[BAR_SYNC_0], 32).unwrap_err();
    assert!(
        matches!(
            fault.kind,
            FaultKind::Mmu(MmuFault {
                access: Access::Execute,
                ..
            })
        ),
        "{:?}",
        fault.kind
    );
    assert_eq!(fault.words, None);
}

#[test]
fn words_of_no_instruction_are_named() {
    let fault = run(86, &[[0xdead_beef_0000_0fff, 0x1234]], 32).unwrap_err();
    let FaultKind::Unimplemented { text } = &fault.kind else {
        panic!("{:?}", fault.kind)
    };
    assert!(
        text.contains("0xdeadbeef00000fff") && text.contains("sm_86"),
        "{text}"
    );
}

#[test]
fn an_instruction_that_is_not_there_yet_is_spelled() {
    // HGMMA is no instruction that the decoder claims; DMMA decodes but does not run.
    let dmma = [0x0000_0006_0404_723f, 0x004e_2200_0000_0008];
    let fault = run(90, &[dmma], 32).unwrap_err();
    let FaultKind::Unimplemented { text } = &fault.kind else {
        panic!("{:?}", fault.kind)
    };
    assert!(text.starts_with("DMMA"), "{text}");
}

#[test]
fn an_endless_loop_stops_when_cancelled() {
    let mut space = Space::default();
    let grid = grid(&mut space, 80, &[LOOP], 64);
    let cancel = AtomicBool::new(false);
    let fault = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            cancel.store(true, Ordering::Relaxed);
        });
        sm::run(&grid, &space, &cancel).unwrap_err()
    });
    assert_eq!(fault.kind, FaultKind::Cancelled);
    assert_eq!(fault.pc, grid.program);
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let mut space = Space::default();
    let good = grid(&mut space, 90, &[EXIT], 32);
    let refused = |grid: &Grid| {
        sm::run(grid, &space, &AtomicBool::new(false))
            .unwrap_err()
            .kind
    };
    assert_eq!(
        refused(&Grid {
            block: 1025.into(),
            ..good.clone()
        }),
        FaultKind::Resources { needed: 1025 }
    );
    assert_eq!(
        refused(&Grid {
            shared_bytes: 1 << 20,
            ..good.clone()
        }),
        FaultKind::Resources { needed: 1 << 20 }
    );
    assert_eq!(
        refused(&Grid {
            local_bytes: 1 << 20,
            ..good.clone()
        }),
        FaultKind::Resources { needed: 1 << 20 }
    );
    assert_eq!(
        refused(&Grid {
            cluster: 3.into(),
            grid: 4.into(),
            ..good.clone()
        }),
        FaultKind::Resources { needed: 3 }
    );
    assert_eq!(
        refused(&Grid {
            cluster: 32.into(),
            grid: 32.into(),
            ..good.clone()
        }),
        FaultKind::Resources { needed: 32 }
    );
    assert_eq!(
        refused(&Grid {
            cooperative: true,
            grid: 1000.into(),
            block: 1024.into(),
            ..good.clone()
        }),
        FaultKind::Resources { needed: 1000 }
    );
    let odd = good.program + 8;
    assert_eq!(
        refused(&Grid {
            program: odd,
            ..good.clone()
        }),
        FaultKind::Misaligned { address: odd }
    );
    let none = Grid {
        grid: Dim3::new(0, 1, 1),
        ..good
    };
    assert_eq!(
        sm::run(&none, &space, &AtomicBool::new(false))
            .unwrap()
            .blocks,
        0
    );
}

/// The kernels that faulted a real GPU, and how each ends here.
#[test]
fn faults_of_real_kernels() {
    for sm in SMS {
        let end = |name: &str| {
            let mut m = Machine::load(&format!("faults/faults.sm_{sm}.cubin"), sm);
            let buffer = m.space.alloc(4096);
            m.space.write(buffer, &[7]);
            if name == "localoob" {
                // As a launch that forgot to give the stack.
                m.kernels.get_mut(name).unwrap().stack = 0;
            }
            let grid = m.grid(name, shape(140, 64), &Args::default().ptr(buffer));
            let (cancel, ended) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..if name == "loop" { 50 } else { 20_000 } {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                        if ended.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                    cancel.store(true, Ordering::Relaxed);
                });
                let result = sm::run(&grid, &m.space, &cancel).map_err(|fault| fault.kind);
                ended.store(true, Ordering::Relaxed);
                (result, buffer)
            })
        };
        assert!(matches!(end("ok"), (Ok(stats), _) if stats.blocks == 140));
        let (result, buffer) = end("badaddr");
        match result {
            Err(FaultKind::Mmu(MmuFault {
                va,
                access: Access::Write,
            })) => assert_eq!(va, buffer + (8 << 33), "sm_{sm}"),
            other => panic!("sm_{sm}: {other:?}"),
        }
        let (result, buffer) = end("misalign");
        assert_eq!(
            result,
            Err(FaultKind::Misaligned {
                address: buffer + 4
            }),
            "sm_{sm}"
        );
        assert_eq!(end("trap").0, Err(FaultKind::Trap), "sm_{sm}");
        assert_eq!(end("illegal").0, Err(FaultKind::Trap), "sm_{sm}");
        assert_eq!(end("loop").0, Err(FaultKind::Cancelled), "sm_{sm}");
        let local = end("localoob").0;
        assert!(
            matches!(local, Err(FaultKind::LocalOutOfRange { .. })),
            "sm_{sm}: {local:?}"
        );
        let shared = end("sharedoob").0;
        assert!(
            matches!(shared, Err(FaultKind::SharedOutOfRange { address }) if address >= 7 * 32_000),
            "sm_{sm}: {shared:?}"
        );
    }
}

/// Half of a warp waits at a barrier that the other half never reaches.
#[test]
fn threads_that_wait_for_one_another_are_found() {
    for sm in SMS {
        // BAR.SYNC 0x0, 0x40 by one warp of a block of one.
        let half_done = [0x0001_0000_0000_7b1d, 0x000f_ec00_0001_0000];
        let fault = run(sm, &[half_done, EXIT], 32).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Deadlock, "sm_{sm}");
        assert_eq!(fault.words, Some(half_done));
    }
}

/// Words of real instructions with some bits turned over, so that programs get past the decoder.
fn words() -> impl Strategy<Value = [u64; 2]> {
    let real: Vec<[u64; 2]> = real_words();
    (
        0..real.len(),
        proptest::collection::vec(0..128_u32, 0..3),
        any::<bool>(),
        any::<[u64; 2]>(),
    )
        .prop_map(move |(at, flips, wild, random)| {
            let mut word = if wild && flips.len() == 2 {
                random
            } else {
                real[at]
            };
            for bit in flips {
                word[bit as usize / 64] ^= 1 << (bit % 64);
            }
            word
        })
}

/// All instructions of the demo kernels.
fn real_words() -> Vec<[u64; 2]> {
    let mut out = Vec::new();
    for sm in [80, 90, 120] {
        let m = Machine::load(&format!("sm/checks.sm_{sm}.cubin"), sm);
        for kernel in m.kernels.values() {
            for at in (kernel.entry..kernel.entry + 0x2000).step_by(16) {
                use nv_sim::memory::AddressSpace;
                let word = |va| {
                    m.space
                        .cell(va, Access::Execute)
                        .ok()
                        .map(|c| c.load(Ordering::Relaxed))
                };
                match (word(at), word(at + 8)) {
                    (Some(a), Some(b)) => out.push([a, b]),
                    _ => break,
                }
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the words, a program ends or is cancelled: no panic, no hang.
    #[test]
    fn no_program_breaks_the_interpreter(program in proptest::collection::vec(words(), 1..40), which in 0..SMS.len(), threads in 1..100_u32) {
        let mut space = Space::default();
        let mut grid = grid(&mut space, SMS[which], &program, threads);
        grid.registers = 255;
        let cancel = AtomicBool::new(false);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
                cancel.store(true, Ordering::Relaxed);
            });
            let _ = sm::run(&grid, &space, &cancel);
            ended.store(true, Ordering::Relaxed);
        });
    }
}
