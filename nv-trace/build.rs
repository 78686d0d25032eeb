//! Builds the interposer, so that `src/lib.rs` can hold its bytes: one program to install and no file to look for.
//!
//! The interposer has no dependencies, so that the compiler alone builds it. It cannot be a library that Cargo
//! links: its `open` and `ioctl` would then be those of the program that holds it.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    for path in [
        "src/library.rs",
        "src/preload.rs",
        "src/preload",
        "src/record.rs",
        "build.rs",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out =
        PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("libnv_trace.so");
    let system = env::var("CARGO_CFG_TARGET_OS")?;
    let machine = env::var("CARGO_CFG_TARGET_ARCH")?;
    let library = env::var("CARGO_CFG_TARGET_ENV")?;
    // Where an argument after the named ones lies as if it were named (see `exports.rs`), and where the C library
    // is the one that programs load.
    if system != "linux" || library != "gnu" || !["x86_64", "aarch64"].contains(&machine.as_str()) {
        std::fs::write(out, [])?;
        return Ok(());
    }
    let mut rustc = Command::new(env::var_os("RUSTC").ok_or("RUSTC is not set")?);
    rustc.args([
        "src/library.rs",
        "--crate-name=nv_trace",
        "--crate-type=cdylib",
        "--edition=2024",
    ]);
    // Link-time optimisation leaves nothing of `core` that would ask for the standard library's unwinding.
    rustc.args([
        "-Copt-level=2",
        "-Cpanic=abort",
        "-Clto=fat",
        "-Ccodegen-units=1",
    ]);
    rustc.args(["-Cstrip=symbols", "-Cforce-unwind-tables=no"]);
    rustc
        .arg("--target")
        .arg(env::var("TARGET")?)
        .arg("-o")
        .arg(&out);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = std::ffi::OsString::from("-Clinker=");
        option.push(linker);
        rustc.arg(option);
    }
    let status = rustc.status()?;
    if !status.success() {
        return Err(format!("the interposer did not compile: {status}").into());
    }
    Ok(())
}
