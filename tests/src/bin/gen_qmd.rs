//! Writes the field tables of the launch descriptors, `nv-proto/src/qmd/v*.rs`, from `golden/facts/qmd.json`.
//!
//! `cargo run -p nv-tests --bin gen_qmd` rewrites them; a test compares them with what this makes.

use std::io;

fn main() -> io::Result<()> {
    for (version, text) in nv_tests::qmd_gen::layouts() {
        let path = nv_tests::path("..").join(format!("nv-proto/src/qmd/{version}.rs"));
        std::fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}
