//! Where the integration tests find their golden vectors and cubins.

pub mod tables;

pub mod conformance;

use std::path::PathBuf;

pub mod qmd_gen;

/// The path of a file below `tests/`, such as `golden/seed/cases.json`. The variable `NV_TESTS` names that folder
/// where the tests run on another machine than the one that built them.
pub fn path(relative: &str) -> PathBuf {
    let root = std::env::var_os("NV_TESTS").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join(relative)
}

/// The bytes of a file below `tests/`.
///
/// # Panics
/// When the file cannot be read: a missing vector is a broken test, never a skipped one.
#[allow(
    clippy::panic,
    reason = "a test helper: a missing file fails the test that asked for it"
)]
pub fn bytes(relative: &str) -> Vec<u8> {
    let path = path(relative);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A golden JSON file below `tests/`.
///
/// # Panics
/// When the file cannot be read or is not JSON.
#[allow(
    clippy::panic,
    reason = "a test helper: a broken file fails the test that asked for it"
)]
pub fn json(relative: &str) -> serde_json::Value {
    serde_json::from_slice(&bytes(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}
