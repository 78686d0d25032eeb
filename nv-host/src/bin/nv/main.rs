//! The `nv` command line.

fn main() {}
