//! `cargo bench`: listing by several readers, and all kernels of a large file beside a checksum of it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

fn listing(criterion: &mut Criterion) {
    let corpus = nv_bench::corpus();
    let expected: Vec<_> = corpus.iter().map(|file| nv_bench::ours(file)).collect();
    let mut group = criterion.benchmark_group("list sections and symbols of the corpus");
    group.throughput(Throughput::Elements(corpus.len() as u64));
    for (name, reader) in nv_bench::READERS {
        for (file, expected) in corpus.iter().zip(&expected) {
            assert_eq!(reader(file), *expected, "{name} does the same work");
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for file in &corpus {
                    black_box(reader(black_box(file)));
                }
            });
        });
    }
    group.finish();
}

fn large(criterion: &mut Criterion) {
    let file = nv_bench::large(20_000, 1536);
    assert_eq!(nv_bench::kernels(&file), (20_000, 60_000));
    let mut group = criterion.benchmark_group("large file");
    group
        .throughput(Throughput::Bytes(file.len() as u64))
        .sample_size(20);
    group.bench_function("all kernels", |bencher| {
        bencher.iter(|| black_box(nv_bench::kernels(black_box(&file))))
    });
    group.bench_function("checksum", |bencher| {
        bencher.iter(|| black_box(nv_bench::checksum(black_box(&file))))
    });
    group.finish();
}

criterion_group!(benches, listing, large);
criterion_main!(benches);
