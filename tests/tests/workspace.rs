//! The workspace is laid out as ARCHITECTURE.md says.

#[test]
fn top_level_is_there() {
    let root = nv_tests::path("..");
    for name in [
        "nv-proto",
        "nv-host",
        "nv-sim",
        "tests",
        "fuzz",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        assert!(root.join(name).exists(), "{name}");
    }
}
