//! The conformance suite over simulated GPUs, and over a real one with `cargo test -- --ignored`.

use nv_host::{Backend, MapMode, Options};
use nv_sim::Chip;
use nv_tests::conformance as suite;

/// The suite as tests of a module of its own.
macro_rules! suite {
    ($name:ident, $options:expr $(, #[$ignore:meta])?) => {
        mod $name {
            use super::*;
            suite!(@cases $options, [$($ignore)?], suite, info);
            suite!(@cases $options, [$($ignore)?], suite::memory, memory, slices, pinned, registered, early_drop,
                late_reuse, shared);
            suite!(@cases $options, [$($ignore)?], suite::copies, copies, parts, copies_2d, fills, copies_async,
                large_copy, copies_by_threads);
            suite!(@cases $options, [$($ignore)?], suite::kernels, vadd, reduction, local_memory, generic_pointers,
                bad_launches, bad_files, fatbins);
            suite!(@cases $options, [$($ignore)?], suite::streams, flow_control, long_stream, streams, side_by_side, threads,
                time_limit, waiting_sleeps);
            suite!(@cases $options, [$($ignore)?], suite::profile, profile, long_profile, profiles_and_threads,
                profile_of_a_fault, event_times);
            suite!(@cases $options, [$($ignore)?], suite::faults, faults, contexts, illegal_addresses,
                illegal_instruction, stack_overflow, endless, last_multiprocessor, raw_words, bad_method, bad_header,
                unmapped_words, unmapped_descriptor, bad_descriptors,
                several_streams, neighbours_unharmed);
            suite!(@cases $options, [$($ignore)?], suite::graph, chain, patches, mixed, local, cooperative, keeps,
                graph_threads, faulty, graph_time_limit, recorded);
            suite!(@cases $options, [$($ignore)?], suite::range, dynamic_shared, registers, large_stack, stacks_of_threads,
                big_argument, many_arguments, clusters, grid_sync, named_barriers, variables, pointers_to_functions,
                recursion, system_calls, printing, assertions, many_kernels, tensor, warps, large_grids, occupancy,
                variants);
            suite!(@cases $options, [$($ignore)?], suite::peers, mapping, copies_between_contexts, signals, lifetimes);
        }
    };
    (@cases $options:expr, $ignore:tt, $theme:path, $($case:ident),+) => {
        $( suite!(@case $options, $ignore, $theme, $case); )+
    };
    (@case $options:expr, [$($ignore:meta)?], $theme:path, $case:ident) => {
        #[test]
        $(#[$ignore])?
        fn $case() {
            use $theme as theme;
            theme::$case(&$options);
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

/// What simulated GPUs lack, or take hours for.
mod hardware_only {
    use super::*;

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn hopper() {
        suite::range::hopper(&kernel(MapMode::Rm));
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn largest_grids() {
        suite::range::largest_grids(&kernel(MapMode::Rm));
    }
}
