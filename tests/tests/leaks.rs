//! Opening and closing devices leaves nothing behind in the process: alone in its own, since it counts the whole
//! process's descriptors and mappings, and one device after the other.

use nv_host::{Backend, MapMode, Options};
use nv_sim::Chip;
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
    }
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
