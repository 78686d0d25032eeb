//! The reader answers, and never panics, whatever the bytes are: mutated, cut and made-up files.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "../../fuzz/src/exercise.rs"]
mod exercise;
#[path = "../benches/src/large.rs"]
mod large;

use std::time::{Duration, Instant};

use proptest::prelude::*;

/// A small generator that gives the same numbers on every machine (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let golden = nv_tests::json("golden/cubin/vendor.json");
    let files = golden["files"].as_object().expect("files").keys();
    files
        .map(|name| nv_tests::bytes(&format!("cubins/corpus/{name}")))
        .filter(|file| file.len() < 20_000)
        .collect()
}

const INTERESTING: [u64; 16] = [
    0,
    1,
    2,
    4,
    7,
    0x7f,
    0x80,
    0xff,
    0xff00,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    1 << 63,
    u64::MAX,
];

fn mutate(file: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        let at = random.below(file.len());
        match random.below(10) {
            0..=2 => file[at] ^= 1 << random.below(8),
            3 => file[at] = u8::try_from(random.next() & 0xff).unwrap(),
            // A field of the header or of the section table, where mistakes hurt most.
            4 | 5 => {
                let table =
                    u64::from_le_bytes(file.get(40..48).map_or([0; 8], |b| b.try_into().unwrap()));
                let table = usize::try_from(table).unwrap_or(0).min(file.len());
                let start = if random.below(4) == 0 { 0 } else { table };
                let span = file.len() - start;
                write(file, start + random.below(span) / 4 * 4, random);
            }
            6 | 7 => write(file, at / 4 * 4, random),
            8 if random.below(4) == 0 => file.truncate(at),
            8 => {
                let length = random.below(64).min(file.len() - at);
                let to = random.below(file.len() - length + 1);
                file.copy_within(at..at + length, to);
            }
            _ => {
                let length = random.below(32).min(file.len() - at);
                file[at..at + length].fill(0);
            }
        }
        if file.is_empty() {
            return;
        }
    }
}

fn write(file: &mut [u8], at: usize, random: &mut Random) {
    let value = match random.below(3) {
        0 => random.next(),
        _ => INTERESTING[random.below(INTERESTING.len())],
    };
    let width = [1, 2, 4, 8][random.below(4)];
    for (byte, new) in file
        .iter_mut()
        .skip(at)
        .take(width)
        .zip(value.to_le_bytes())
    {
        *byte = new;
    }
}

#[test]
fn twenty_thousand_mutated_files() {
    let corpus = corpus();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut parsed, mut kernels, mut relocated) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    for _ in 0..20_000 {
        let mut file = corpus[random.below(corpus.len())].clone();
        mutate(&mut file, &mut random);
        let start = Instant::now();
        let outcome = exercise::cubin(&file);
        slowest = slowest.max(start.elapsed());
        parsed += usize::from(outcome.parsed);
        kernels += usize::from(outcome.kernels);
        relocated += usize::from(outcome.relocated);
    }
    println!("{parsed} parsed, {kernels} with kernels, {relocated} relocated, slowest {slowest:?}");
    // The mutations must reach all of the reader, and must break all of it.
    assert!((6_000..19_500).contains(&parsed), "{parsed} parsed");
    assert!((5_000..parsed).contains(&kernels), "{kernels} with kernels");
    assert!(
        (3_000..kernels).contains(&relocated),
        "{relocated} relocated"
    );
}

#[test]
fn every_prefix_of_a_file() {
    let file = nv_tests::bytes("cubins/corpus/13.0/sm_120/vecadd.cubin");
    // Program headers may follow the section table; the reader has no need of them.
    let table = usize::try_from(u64::from_le_bytes(file[40..48].try_into().unwrap())).unwrap();
    let end = table + 64 * usize::from(u16::from_le_bytes([file[60], file[61]]));
    for length in 0..end {
        assert!(!exercise::cubin(&file[..length]).parsed, "{length}");
    }
    assert!(exercise::cubin(&file[..end]).relocated);
    assert!(exercise::cubin(&file).relocated);
}

/// With 65,280 sections or more, numbers of sections stand in tables of their own: `SHN_XINDEX`, `SHT_SYMTAB_SHNDX`,
/// and the first section for the number of all.
#[test]
fn more_sections_than_sixteen_bits_can_count() {
    let file = large::large(17_000, 16);
    let cubin = nv_proto::cubin::Cubin::parse(&file).expect("a cubin");
    assert_eq!(cubin.section_count(), 4 * 17_000 + 5);
    let kernels = cubin.kernels().expect("kernels");
    assert_eq!(kernels.len(), 17_000);
    let last = kernels.last().expect("a kernel");
    assert_eq!(last.name, "_ZN5bench6kernelILi16999EfEEvPT0_PKS1_i");
    assert_eq!(last.text.0, 4 * 16_999 + 1);
    assert_eq!(
        (last.registers, last.barriers, last.shared, last.param_count),
        (24, 1, 1024, 3)
    );
    assert_eq!((last.param_base, last.param_size), (0x210, 20));
    assert_eq!(cubin.kernel(last.name), Ok(*last));
    let mut places = vec![0; cubin.section_count()];
    let plan = cubin
        .plan(nv_proto::cubin::Layout::default(), &mut places)
        .expect("a plan");
    assert!(plan.entry(last).is_some());
}

/// Files made so that a careless reader takes time that grows with the square of their size.
#[test]
fn work_is_linear_in_the_file() {
    // Many sections and symbols whose names all are one long string, and attributes that name them all.
    let time = |count: u32, rounds: u32| {
        let file = long_names(count);
        let start = cpu_time();
        for _ in 0..rounds {
            let cubin = nv_proto::cubin::Cubin::parse(&file).expect("a cubin");
            let mut places = vec![0; cubin.section_count()];
            let plan = cubin
                .plan(nv_proto::cubin::Layout::default(), &mut places)
                .expect("a plan");
            assert_eq!(cubin.kernels().expect("kernels").len(), 0);
            assert_eq!(plan.size(), 0);
        }
        cpu_time() - start
    };
    // The same amount of input in all, in small files and in ones 16 times as large: with work that grows with the
    // square, the large ones would take 16 times as long.
    let small = time(2_000, 640);
    let large = time(32_000, 40);
    assert!(
        large < small * 5,
        "{small:?} in small files and {large:?} in large ones"
    );
}

/// Time that this thread has spent on a processor: what else the machine does is not counted.
fn cpu_time() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    std::time::Duration::from_nanos(nanoseconds.expect("a number"))
}

fn long_names(count: u32) -> Vec<u8> {
    let mut file = vec![0u8; 64];
    let names = vec![b'n'; usize::try_from(count).unwrap() * 8];
    let names_at = file.len() as u64;
    file.extend(&names);
    file.push(0);
    let symbols_at = file.len() as u64;
    for _ in 0..count {
        file.extend([1, 0, 0, 0, 0x12, 0x0, 1, 0]);
        file.extend([0; 16]);
    }
    let records_at = file.len() as u64;
    for symbol in 0..count {
        file.extend([4, 0x2f, 8, 0]);
        file.extend(symbol.to_le_bytes());
        file.extend(8u32.to_le_bytes());
    }
    let table_at = file.len() as u64;
    let mut section = |kind: u32, offset: u64, size: u64, link: u32| {
        file.extend(1u32.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend([0; 16]);
        file.extend(offset.to_le_bytes());
        file.extend(size.to_le_bytes());
        file.extend(link.to_le_bytes());
        file.extend([0; 20]);
    };
    section(0, 0, 0, 0);
    section(3, names_at, names.len() as u64 + 1, 0);
    section(2, symbols_at, u64::from(count) * 24, 1);
    section(0x7000_0000, records_at, u64::from(count) * 12, 0);
    let sections = count.min(60_000);
    for _ in 4..sections {
        section(1, names_at, 8, 0);
    }
    file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x33\x07");
    file[18] = 190;
    file[40..48].copy_from_slice(&table_at.to_le_bytes());
    file[48..52].copy_from_slice(&0x005a_055au32.to_le_bytes());
    file[58] = 64;
    file[60..62].copy_from_slice(&u16::try_from(sections).unwrap().to_le_bytes());
    file[62] = 1;
    file
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise::cubin(&bytes);
        exercise::nvinfo(&bytes);
        exercise::reloc(&bytes);
    }

    #[test]
    fn any_bytes_after_a_right_header(bytes in proptest::collection::vec(any::<u8>(), 64..400), shoff in 0u8..255) {
        let mut file = bytes;
        file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
        file[18..20].copy_from_slice(&190u16.to_le_bytes());
        file[40..48].copy_from_slice(&u64::from(shoff).to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..64].fill(1);
        exercise::cubin(&file);
    }
}
