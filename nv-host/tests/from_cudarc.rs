//! docs/from-cudarc.md: the program there is the example, and it runs.
#![cfg(feature = "sim")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]

use nv_host::{Backend, Device, Options};
use nv_sim::Chip;

#[allow(dead_code, reason = "the test calls what `main` does")]
#[path = "../examples/saxpy.rs"]
mod example;

#[test]
fn the_example_runs() {
    for chip in [Chip::Ga100, Chip::Gh100, Chip::Gb202] {
        let options = Options {
            backend: Backend::Sim(chip),
            ..Options::default()
        };
        let y = example::saxpy(&Device::open(&options).unwrap()).unwrap();
        // 2x + 3x, then four times (kx - 5x) for k from 0 to 3: 5 + 6 - 20.
        let expected: Vec<f32> = (0..1000).map(|x| 1.0 - 9.0 * x as f32).collect();
        assert_eq!(y, expected);
    }
}

#[test]
fn the_guide_shows_the_example() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../docs/from-cudarc.md")).unwrap();
    let example = std::fs::read_to_string(root.join("examples/saxpy.rs")).unwrap();
    assert!(
        guide.contains(&format!("```rust\n{example}```")),
        "docs/from-cudarc.md shows another program"
    );
}
