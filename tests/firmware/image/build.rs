//! The linker scripts: ours, which says where things lie, and defmt's, which keeps log texts out of the image.
fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=image.x");
    println!("cargo:rustc-link-arg-bins=-T{here}/image.x");
    if std::env::var_os("CARGO_FEATURE_LOG").is_some() {
        println!("cargo:rustc-link-arg-bin=firmware=-Tdefmt.x");
    }
}
