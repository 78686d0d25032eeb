//! Instruction counts: `valgrind --tool=cachegrind --cache-sim=no target/release/examples/count READER`, once with
//! each reader and once with `none`, whose count is that of reading the files from disk.

fn main() {
    let reader = std::env::args().nth(1).unwrap_or_default();
    let corpus = nv_bench::corpus();
    let mut sum = nv_bench::Sum::default();
    if let Some((_, reader)) = nv_bench::READERS.iter().find(|(name, _)| *name == reader) {
        for file in &corpus {
            sum = std::hint::black_box(reader(std::hint::black_box(file)));
        }
    }
    println!("{reader}: {} files, {sum:?}", corpus.len());
}
