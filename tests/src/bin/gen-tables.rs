//! Writes the generated tables of nv-proto from the facts in `tests/golden/facts`.
//!
//! `cargo run -p nv-tests --bin gen-tables` rewrites the files; a test compares them with what this makes.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in nv_tests::tables::all() {
        let path = root.join(path);
        std::fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}
