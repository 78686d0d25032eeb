//! The conformance suite over simulated GPUs, and over a real one with `cargo test -- --ignored`.

use nv_host::{Backend, MapMode, Options};
use nv_sim::Chip;
use nv_tests::conformance as suite;

/// The suite as tests of a module of its own.
macro_rules! suite {
    ($name:ident, $options:expr $(, #[$ignore:meta])?) => {
        suite!(@cases $name, $options, [$($ignore)?],
            info, memory, copies, large_copy, vadd, reduction, local_memory, generic_pointers, bad_launches,
            bad_files, fatbins, flow_control, streams, threads, early_drop, time_limit, faults, contexts);
    };
    (@cases $name:ident, $options:expr, $ignore:tt, $($case:ident),+) => {
        mod $name {
            use super::*;
            $( suite!(@case $case, $options, $ignore); )+
        }
    };
    (@case $case:ident, $options:expr, [$($ignore:meta)?]) => {
        #[test]
        $(#[$ignore])?
        fn $case() {
            suite::$case(&$options);
        }
    };
}

fn sim(chip: Chip, map_mode: MapMode) -> Options {
    Options {
        backend: Backend::Sim(chip),
        map_mode: Some(map_mode),
        ..Options::default()
    }
}

fn kernel(map_mode: MapMode) -> Options {
    Options {
        backend: Backend::Kernel(0),
        map_mode: Some(map_mode),
        ..Options::default()
    }
}

suite!(ga100, sim(Chip::Ga100, MapMode::Rm));
suite!(ga102, sim(Chip::Ga102, MapMode::Rm));
suite!(ad102, sim(Chip::Ad102, MapMode::Uvm));
suite!(gh100, sim(Chip::Gh100, MapMode::Rm));
suite!(gh100_uvm, sim(Chip::Gh100, MapMode::Uvm));
suite!(gb202, sim(Chip::Gb202, MapMode::Rm));
suite!(hardware_rm, kernel(MapMode::Rm), #[ignore = "needs an NVIDIA GPU"]);
suite!(hardware_uvm, kernel(MapMode::Uvm), #[ignore = "needs an NVIDIA GPU"]);
