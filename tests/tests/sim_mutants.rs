//! Real kernels with damaged machine code: whatever the code says, a launch ends in a result, in a fault or at the
//! limit of time, and the simulated GPU goes on.

use std::time::{Duration, Instant};

use nv_host::{Backend, Device, Error, Options};
use nv_proto::cubin::Cubin;
use nv_sim::Chip;
use nv_tests::{bytes, conformance};

/// A small generator: the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 11) % end as u64) as usize
    }
}

/// Where in the file each kernel's code lies.
fn code(file: &[u8]) -> Vec<(String, std::ops::Range<usize>)> {
    let cubin = Cubin::parse(file).unwrap();
    let kernels = cubin.kernels().unwrap();
    kernels
        .into_iter()
        .map(|kernel| {
            let name = format!(".text.{}", kernel.name);
            let section = cubin
                .sections()
                .find(|section| section.name() == name)
                .unwrap();
            let data = section.data();
            let start = data.as_ptr().addr() - file.as_ptr().addr();
            (kernel.name.to_owned(), start..start + data.len())
        })
        .collect()
}

/// Damages code, launches it, and answers how it ended.
fn launch(device: &Device, file: &[u8], kernel: &str) -> &'static str {
    let module = match device.load(file) {
        Ok(module) => module,
        Err(_) => return "refused",
    };
    let function = module.function(kernel).unwrap();
    // The limit that ends stuck kernels soon is short for a busy machine.
    let upload = || device.upload(&[1_u32; 4096]);
    let memory = (0..20)
        .find_map(|_| upload().ok())
        .expect("the GPU goes on");
    let stream = device.stream().unwrap();
    let mut launch = stream.launch(&function).grid(2).block(64);
    for param in function.params() {
        launch = match param.size {
            8 => launch.arg(&memory),
            _ => launch.arg(48_u32),
        };
    }
    let start = Instant::now();
    let ended = launch
        .submit()
        .and_then(|event| event.wait_within(Duration::from_millis(300)));
    let ended = match ended {
        Ok(()) => "done",
        Err(Error::Fault(report)) => {
            assert!(report.to_string().contains("kernel"), "{report}");
            "fault"
        }
        Err(Error::Timeout { .. }) => "time limit",
        Err(Error::Launch { .. } | Error::OutOfMemory { .. }) => "refused",
        Err(other) => panic!("{other}"),
    };
    drop(stream);
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{ended}: {:?}",
        start.elapsed()
    );
    ended
}

fn mutate(chip: Chip, files: &[&str], rounds: usize, seed: u64) {
    let options = Options {
        backend: Backend::Sim(chip),
        limit: Duration::from_millis(400),
        ..Options::default()
    };
    let device = conformance::open(&options);
    let mut random = Random(seed);
    let mut ends = std::collections::BTreeMap::new();
    for name in files {
        let original = bytes(name);
        let kernels = code(&original);
        for round in 0..rounds {
            let mut file = original.clone();
            let (kernel, range) = kernels[random.below(kernels.len())].clone();
            for _ in 0..1 + random.below(4) {
                let at = range.start + random.below(range.len());
                match random.below(4) {
                    0 => file[at] ^= 1 << random.below(8),
                    1 => file[at] = random.next() as u8,
                    // A whole instruction from elsewhere.
                    2 => {
                        let pick =
                            |random: &mut Random| range.start + random.below(range.len() / 16) * 16;
                        let (from, to) = (pick(&mut random), pick(&mut random));
                        file.copy_within(from..from + 16, to);
                    }
                    _ => {
                        let to = at / 16 * 16;
                        let word = random.next().to_le_bytes();
                        if to >= range.start {
                            file[to + 8 * random.below(2)..][..8].copy_from_slice(&word);
                        }
                    }
                }
            }
            let kept = std::env::temp_dir().join(format!("nv-mutant-{}.cubin", std::process::id()));
            if std::env::var_os("NV_KEEP_MUTANTS").is_some() {
                std::fs::write(&kept, &file).unwrap();
            }
            let ended = launch(&device, &file, &kernel);
            *ends.entry(ended).or_insert(0) += 1;
            if round % 50 == 0 {
                conformance::works(&device);
            }
        }
    }
    conformance::works(&device);
    println!("{chip}: {ends:?}");
    assert!(ends["fault"] > 0 && ends["done"] > 0, "{ends:?}");
}

/// How many damaged files of each cubin; `NV_MUTANTS` says otherwise for a longer search.
fn rounds() -> usize {
    let wanted = std::env::var("NV_MUTANTS").ok();
    wanted.map_or(60, |wanted| wanted.parse().unwrap())
}

fn seed() -> u64 {
    let wanted = std::env::var("NV_SEED").ok();
    wanted.map_or(0x9e37_79b9_7f4a_7c15, |wanted| wanted.parse().unwrap())
}

#[test]
fn damaged_code_ampere() {
    let files = ["cubins/demo/demo.sm_86.cubin", "cubins/k/k.sm_86.cubin"];
    mutate(Chip::Ga102, &files, rounds(), seed());
}

#[test]
fn damaged_code_hopper() {
    let files = [
        "cubins/demo/demo.sm_90.cubin",
        "cubins/k/k.sm_90.cubin",
        "cubins/sm/checks.sm_90.cubin",
    ];
    mutate(Chip::Gh100, &files, rounds(), seed());
}

#[test]
fn damaged_code_blackwell() {
    let files = [
        "cubins/demo/demo.sm_120.cubin",
        "cubins/k/k.sm_120.cubin",
        "cubins/sm/checks.sm_120.cubin",
    ];
    mutate(Chip::Gb202, &files, rounds(), seed());
}
