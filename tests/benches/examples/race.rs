//! The readers in turn, many times, in one process: the best time of each, which is the one that other programs on
//! the machine have disturbed least.

use std::time::{Duration, Instant};

fn main() {
    let corpus = nv_bench::corpus();
    let mut best = [Duration::MAX; nv_bench::READERS.len()];
    for _ in 0..400 {
        for ((_, reader), best) in nv_bench::READERS.iter().zip(&mut best) {
            let start = Instant::now();
            for file in &corpus {
                std::hint::black_box(reader(std::hint::black_box(file)));
            }
            *best = start.elapsed().min(*best);
        }
    }
    for ((name, _), best) in nv_bench::READERS.iter().zip(best) {
        println!("{name:14} {best:?} for {} files", corpus.len());
    }
    let file = nv_bench::large(20_000, 1536);
    let time = |work: &dyn Fn() -> u64| {
        let once = || {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed()
        };
        (0..40).map(|_| once()).min().unwrap_or_default()
    };
    let kernels = time(&|| nv_bench::kernels(std::hint::black_box(&file)).0 as u64);
    let checksum = time(&|| nv_bench::checksum(std::hint::black_box(&file)));
    let rate = |time: Duration| file.len() as f64 / time.as_secs_f64() / 1e9;
    println!(
        "large file of {} bytes: all kernels {kernels:?} ({:.1} GB/s), checksum {checksum:?} ({:.1} GB/s)",
        file.len(),
        rate(kernels),
        rate(checksum)
    );
}
