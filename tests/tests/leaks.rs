//! Opening and closing devices leaves nothing behind in the process, and a full GPU is emptied again: in a process of
//! their own, since they count the whole process's descriptors and mappings and leave no memory to others.
//! On a GPU: `cargo test -p nv-tests --test leaks -- --ignored --test-threads=1`.

use nv_host::{Backend, MapMode, Options};
use nv_sim::Chip;
use nv_tests::conformance::memory::fill_and_free;
use nv_tests::conformance::open_and_close;

fn options(backend: Backend, map_mode: MapMode) -> Options {
    Options {
        backend,
        map_mode: Some(map_mode),
        ..Options::default()
    }
}

#[test]
fn simulated() {
    for chip in [
        Chip::Ga100,
        Chip::Ga102,
        Chip::Ad102,
        Chip::Gh100,
        Chip::Gb202,
    ] {
        open_and_close(&options(Backend::Sim(chip), MapMode::Rm));
        fill_and_free(&options(Backend::Sim(chip), MapMode::Rm));
    }
    fill_and_free(&options(Backend::Sim(Chip::Gh100), MapMode::Uvm));
    open_and_close(&options(Backend::Sim(Chip::Gh100), MapMode::Uvm));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hardware_rm() {
    open_and_close(&options(Backend::Kernel(0), MapMode::Rm));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hardware_uvm() {
    open_and_close(&options(Backend::Kernel(0), MapMode::Uvm));
}

#[test]
#[ignore = "needs an NVIDIA GPU, all of its memory"]
fn hardware_full() {
    fill_and_free(&options(Backend::Kernel(0), MapMode::Rm));
    fill_and_free(&options(Backend::Kernel(0), MapMode::Uvm));
}
