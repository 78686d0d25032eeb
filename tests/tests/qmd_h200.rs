//! Launch descriptors and constant bank 0 against what the vendor library wrote on an H200.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use std::collections::{BTreeMap, BTreeSet};

use nv_proto::bank0::Layout;
use nv_proto::launch::{Bank, Call, DeviceFacts, KernelFacts, Shape, prepare};
use nv_proto::qmd::value::QmdType;
use nv_proto::qmd::{Qmd, V04_00, Version, v04_00};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};
use serde_json::Value;

/// `OFFSET_OUT_UPPER`, `LOAD_INLINE_DATA` and `SEND_PCAS_A` of the compute classes.
const OFFSET_OUT_UPPER: u64 = 0x188;
const LOAD_INLINE_DATA: u64 = 0x1b4;
const SEND_PCAS_A: u64 = 0x2b4;

/// Words that a stream writes to memory, and whether it launches them as a descriptor.
struct Upload {
    words: Vec<u32>,
    launched: bool,
}

/// The inline uploads among some methods, in order.
fn uploads(methods: &Value) -> Vec<Upload> {
    let mut found = Vec::new();
    let mut launched = BTreeSet::new();
    let mut va = 0;
    for method in methods.as_array().unwrap() {
        let data = method["data"].as_array().unwrap().iter();
        let data: Vec<u32> = data
            .map(|word| word.as_u64().unwrap().try_into().unwrap())
            .collect();
        match method["method"].as_u64().unwrap() {
            OFFSET_OUT_UPPER => va = u64::from(data[0]) << 32 | u64::from(data[1]),
            LOAD_INLINE_DATA => found.push((va, data)),
            SEND_PCAS_A => {
                launched.insert(u64::from(data[0]) << 8);
            }
            _ => {}
        }
    }
    let found = found.into_iter();
    found
        .map(|(va, words)| Upload {
            launched: words.len() == 96 && launched.contains(&va),
            words,
        })
        .collect()
}

/// Every captured stream, by name.
fn streams() -> BTreeMap<String, Vec<Upload>> {
    let launches = nv_tests::json("golden/h200/cuda_launches.json");
    let streams = nv_tests::json("golden/h200/cuda_streams.json");
    let launches = launches["launches"].as_object().unwrap().iter();
    let launches = launches.map(|(name, launch)| (name.clone(), uploads(&launch["stream"])));
    let streams = streams["streams"].as_object().unwrap().iter();
    let streams =
        streams.map(|(name, stream)| (format!("stream {name}"), uploads(&stream["methods"])));
    launches.chain(streams).collect()
}

/// A launch: its descriptor, the bank 0 uploaded before it, and the arguments.
struct Captured {
    qmd: Qmd,
    bank0: Vec<u32>,
    args: Vec<u32>,
}

/// The launches in a stream. Bank 0 is uploaded in 0x210 bytes, then the arguments, then the descriptors.
fn captured(uploads: &[Upload]) -> Vec<Captured> {
    let mut found = Vec::new();
    let mut bank0 = None;
    for (index, Upload { words, launched }) in uploads.iter().enumerate() {
        if words.len() == 132 {
            bank0 = Some((words.clone(), uploads[index + 1].words.clone()));
        }
        if *launched {
            let qmd = Qmd::decode(words).unwrap();
            if qmd.kind() != QmdType::GRID_NULL
                && let Some((bank0, args)) = bank0.take()
            {
                found.push(Captured { qmd, bank0, args });
            }
        }
    }
    found
}

#[test]
fn every_descriptor_decodes_to_named_fields_and_encodes_to_the_same_words() {
    let mut count = 0;
    for (name, uploads) in streams() {
        for Upload { words, .. } in uploads.iter().filter(|upload| upload.launched) {
            let qmd = Qmd::decode(words).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(qmd.version(), Version::V04_00, "{name}");
            assert_eq!(qmd.undocumented().count(), 0, "{name}:\n{qmd}");
            let mut again = [0xa5a5_a5a5; 96];
            assert_eq!(qmd.encode_into(&mut again), Ok(96));
            assert_eq!(again[..], words[..], "{name}");
            // From the named fields alone, too.
            let mut built = Qmd::new(Version::V04_00);
            for value in qmd.fields() {
                built
                    .set_field(value.field, value.index, value.raw)
                    .unwrap();
            }
            assert_eq!(built, qmd, "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 115, "as many are in the captures");
}

#[test]
fn a_descriptor_prints_as_its_fields() {
    let streams = streams();
    let launch = &captured(&streams["clus_222"])[1].qmd;
    let text = launch.to_string();
    for line in [
        "QMD 4.0",
        "  QMD_TYPE = GRID_GPC_CGA",
        "  SHARED_MEMORY_SIZE = 0x480",
        "  GPC_CGA_WIDTH = 0x2",
        "  CGA_CTA_DISTRIBUTION_MODE = MULTI_CAST",
        "  TPC_DISABLE_MASK[2] = 0xffffff00",
        "  CONSTANT_BUFFER_SIZE_SHIFTED4[0] = 0x30 (0x300 bytes)",
        "  API_VISIBLE_CALL_LIMIT = NO_CHECK",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line:?} in\n{text}"
        );
    }
}

/// Fields of the vendor library's launches that ours leave alone, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("ARRIVE_AT_LATCH_VALID", "programmatic dependent launch"),
    ("ARRIVE_AT_LATCH_ID", "programmatic dependent launch"),
    ("WAIT_ON_LATCH_VALID", "programmatic dependent launch"),
    ("WAIT_ON_LATCH_ID", "programmatic dependent launch"),
    ("REQUIRE_SCHEDULING_PCAS", "programmatic dependent launch"),
    (
        "LATCH_ACQUIRE_INVALIDATE_SHADER_DATA_CACHE",
        "programmatic dependent launch",
    ),
    (
        "LATCH_ACQUIRE_INVALIDATE_TEXTURE_DATA_CACHE",
        "programmatic dependent launch",
    ),
    ("ENABLE_PROGRAM_PRE_EXIT", "programmatic dependent launch"),
    (
        "RELEASE_ENABLE",
        "what comes after a launch is the caller's",
    ),
    (
        "RELEASE_STRUCTURE_SIZE",
        "what comes after a launch is the caller's",
    ),
    (
        "RELEASE_SEMAPHORE0_ADDR_LOWER",
        "what comes after a launch is the caller's",
    ),
    (
        "RELEASE_SEMAPHORE0_ADDR_UPPER",
        "what comes after a launch is the caller's",
    ),
    (
        "RELEASE_SEMAPHORE0_PAYLOAD_LOWER",
        "what comes after a launch is the caller's",
    ),
    (
        "DEPENDENT_QMD_ENABLE",
        "what comes after a launch is the caller's",
    ),
    (
        "DEPENDENT_QMD_ACTION",
        "what comes after a launch is the caller's",
    ),
    (
        "DEPENDENT_QMD_PREFETCH",
        "what comes after a launch is the caller's",
    ),
    (
        "DEPENDENT_QMD0_POINTER",
        "what comes after a launch is the caller's",
    ),
    (
        "CONSTANT_BUFFER_PREFETCH",
        "its bank 5 is bank 0 again, fetched ahead",
    ),
    (
        "CONSTANT_BUFFER_INVALIDATE",
        "we drop bank 0 from the cache by itself, too, as the reference does",
    ),
    (
        "PROGRAM_PREFETCH_SIZE",
        "it fetches 2 KB beyond the kernel, which only its own padding makes safe",
    ),
];

/// Variants for which the library aims at more shared memory than it needs, which ours does not.
const HIGHER_TARGET: [&str; 3] = ["coop", "dyn_1024", "regs"];

/// Words of its bank 0 that ours leaves 0: no compiled kernel that was looked at reads them.
const BANK0_LEFT_OUT: &[usize] = &[
    0x30, 0x34, // a number of the launch
    0x38, 0x3c, // the descriptor's address
    0x40, 0x44, 0x48, 0x58,
    0x68, // environment registers; 0x44 and 0x48 are written for cooperative grids
    0xc0, 0xc4, 0xc8, 0xcc, 0xd0, 0xd4, // addresses of banks
    0x118, 0x11c, // the program
    0x16c, 0x170, 0x174, // windows again
    0x198, 0x19c, 0x1a0, 0x1a4, // the parameters
    0x200, 0x204,
];

struct Variant {
    name: String,
    kernel: String,
    grid: Dim3,
    shape: Shape,
    function: Value,
    captured: Captured,
}

fn three(value: &Value) -> Dim3 {
    let word = |index: usize| value[index].as_u64().unwrap().try_into().unwrap();
    Dim3::new(word(0), word(1), word(2))
}

/// The launches that the capture describes, each with what was asked for.
fn variants() -> Vec<Variant> {
    let golden = nv_tests::json("golden/h200/cuda_launches.json");
    let streams = streams();
    let launches = golden["launches"].as_object().unwrap().iter();
    let variants: Vec<Variant> = launches
        .map(|(name, launch)| {
            let (grid, block) = (three(&launch["grid"]), three(&launch["block"]));
            let mut found = captured(&streams[name])
                .into_iter()
                .rev()
                .filter(|captured| {
                    let view = captured.qmd.launch().unwrap();
                    view.grid == grid && view.block == block && is_it(launch, captured)
                });
            let captured = found
                .next()
                .unwrap_or_else(|| panic!("{name} is not in its stream"));
            let layout = Layout::of(SmVersion(90)).unwrap();
            let mut shape = Shape::new(block);
            shape.dynamic_shared = launch["dynamic_shared"]
                .as_u64()
                .unwrap()
                .try_into()
                .unwrap();
            for attribute in launch["attributes"].as_array().unwrap() {
                match attribute["id"].as_u64().unwrap() {
                    2 => {
                        shape.cooperative =
                            layout.read(&bytes(&captured.bank0)).unwrap().cooperative
                    }
                    4 => shape.cluster = Some(three(&attribute["values"])),
                    6 => {}
                    id => panic!("attribute {id}"),
                }
            }
            if name == "carve0" {
                shape.carveout = Some(0);
            }
            Variant {
                name: name.clone(),
                kernel: launch["kernel"].as_str().unwrap().to_owned(),
                grid,
                shape,
                function: launch["function"].clone(),
                captured,
            }
        })
        .collect();
    assert_eq!(variants.len(), 25);
    variants
}

/// Each launch has a value of its own as second argument; some streams hold the launch before, too.
fn is_it(launch: &Value, captured: &Captured) -> bool {
    let shared = captured.bank0[0x2c / 4];
    shared == u32::try_from(launch["dynamic_shared"].as_u64().unwrap()).unwrap()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Variant {
    fn number(&self, key: &str) -> u32 {
        self.function[key].as_u64().unwrap().try_into().unwrap()
    }

    fn device(&self) -> DeviceFacts {
        let bank0 = Layout::of(SmVersion(90))
            .unwrap()
            .read(&bytes(&self.captured.bank0))
            .unwrap();
        DeviceFacts {
            local_bytes_per_thread: self.captured.qmd.launch().unwrap().local_high_bytes,
            shared_window: bank0.shared_window,
            local_window: bank0.local_window,
            ..DeviceFacts::new(SmVersion(90), 132).unwrap()
        }
    }

    /// What the capture says of the kernel, its banks and addresses among it.
    fn kernel(&self) -> KernelFacts {
        let view = self.captured.qmd.launch().unwrap();
        let fields = self.captured.qmd.view::<V04_00>().unwrap();
        KernelFacts {
            program: view.program,
            program_size: (fields.get(v04_00::PROGRAM_PREFETCH_SIZE) << 8) - 0x800,
            registers: self.number("regs"),
            // `bars` names barriers up to 11; the capture does not say which others use barrier 0.
            barriers: if self.kernel == "bars" { 12 } else { 0 },
            static_shared: self.number("shared"),
            reserved_shared: 0x400,
            local_bytes: self.number("local"),
            param_base: 0x210,
            param_size: self.captured.args.len() as u32 * 4,
            banks: view
                .banks
                .map(|bank| bank.map_or(Bank::default(), |(va, size)| Bank { va, size })),
            max_threads: Some(self.number("max_threads")),
            required_cluster: (self.kernel == "clus_static").then_some(Dim3::new(2, 1, 1)),
            cooperative: self.kernel == "coop",
            ..KernelFacts::default()
        }
    }

    /// Our encoding of the same launch.
    fn encode(&self) -> (Qmd, Vec<u8>) {
        let view = self.captured.qmd.launch().unwrap();
        let prepared = prepare(&self.kernel(), &self.device()).unwrap();
        let shaped = prepared.shape(&self.shape);
        let shaped = shaped.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let mut qmd = Qmd::decode_as(Version::V04_00, &[0xa5a5_a5a5; 96]).unwrap();
        let mut bank0 = vec![0xa5; shaped.bank0_bytes() as usize];
        let call = Call {
            grid: self.grid,
            args: &bytes(&self.captured.args),
            bank0: view.banks[0].unwrap().0,
            grid_id: 0,
        };
        shaped.encode(&call, &mut qmd, &mut bank0).unwrap();
        (qmd, bank0)
    }
}

#[test]
fn our_launches_agree_field_by_field() {
    let mut unused: BTreeSet<&str> = LEFT_OUT.iter().map(|(field, _)| *field).collect();
    let mut higher = BTreeSet::new();
    for variant in variants() {
        let Variant { name, captured, .. } = &variant;
        let (ours, _) = variant.encode();
        for difference in captured.qmd.diff(&ours).unwrap().fields() {
            let field = difference.field.name;
            if field == "TARGET_SM_CONFIG_SHARED_MEM_SIZE" {
                assert!(difference.to < difference.from, "{name}: {difference}");
                higher.insert(name.clone());
                continue;
            }
            let known = LEFT_OUT.iter().any(|(left_out, _)| *left_out == field);
            assert!(known, "{name}: {difference}");
            unused.remove(field);
        }
    }
    assert_eq!(unused, BTreeSet::new(), "each entry of the list is needed");
    assert_eq!(higher, HIGHER_TARGET.map(str::to_owned).into());
}

#[test]
fn our_bank_0_agrees_word_by_word() {
    let mut unused: BTreeSet<usize> = BANK0_LEFT_OUT.iter().copied().collect();
    for variant in variants() {
        let Variant { name, captured, .. } = &variant;
        let (_, ours) = variant.encode();
        for (index, theirs) in captured.bank0.iter().enumerate() {
            let offset = index * 4;
            let word = u32::from_le_bytes(ours[offset..offset + 4].try_into().unwrap());
            if word != *theirs {
                assert_eq!(word, 0, "{name} at {offset:#x}: theirs is {theirs:#x}");
                assert!(
                    BANK0_LEFT_OUT.contains(&offset),
                    "{name} at {offset:#x}: {theirs:#x}"
                );
                unused.remove(&offset);
            }
        }
        let args = bytes(&captured.args);
        assert_eq!(&ours[0x210..0x210 + args.len()], args, "{name}");
        assert!(
            ours[0x210 + args.len()..].iter().all(|byte| *byte == 0),
            "{name}"
        );
    }
    // 0x34 and 0x170 are 0 in what was captured, as high and low halves are.
    assert_eq!(unused, BTreeSet::from([0x34, 0x170]));
}

#[test]
fn bank_0_reads_back_as_what_was_asked_for() {
    let layout = Layout::of(SmVersion(90)).unwrap();
    for variant in variants() {
        let Variant {
            name,
            shape,
            grid,
            captured,
            ..
        } = &variant;
        let read = layout.read(&bytes(&captured.bank0)).unwrap();
        assert_eq!((read.block, read.grid), (shape.block, *grid), "{name}");
        assert_eq!(read.sm_count, 132, "{name}");
        assert_eq!(read.reserved_shared, 0x400, "{name}");
        assert_eq!(read.dynamic_shared, shape.dynamic_shared, "{name}");
        let total = 0x400 + variant.number("shared") + shape.dynamic_shared;
        assert_eq!(read.total_shared, total, "{name}");
        let cluster = if variant.kernel == "clus_static" {
            Some(Dim3::new(2, 1, 1))
        } else {
            shape.cluster
        };
        assert_eq!(read.cluster, cluster, "{name}");
        assert_eq!(read.cooperative.is_some(), name == "coop", "{name}");
        assert_eq!(read.shared_window, GpuVa(0x7f36_0000_0000), "{name}");
    }
}

/// The stream of `carve0` begins with a launch of the same kernel that prefers all memory to be shared.
#[test]
fn a_carve_out_is_encoded_as_the_library_does() {
    let mut variants = variants().into_iter();
    let mut carved = variants.find(|variant| variant.name == "carve0").unwrap();
    let before = captured(&streams()["carve0"]);
    let before = before.iter().rev().nth(1).unwrap();
    let steps = |qmd: &Qmd| {
        ["MIN", "TARGET", "MAX"].map(|which| {
            qmd.field(&format!("{which}_SM_CONFIG_SHARED_MEM_SIZE"), 0)
                .unwrap()
                .raw
        })
    };
    assert_eq!(steps(&before.qmd), [9, 0x3a, 0x3a]);
    carved.shape.carveout = Some(228);
    assert_eq!(steps(&carved.encode().0), [9, 0x3a, 0x3a]);
    assert_eq!(steps(&carved.captured.qmd), [3, 3, 3]);
    carved.shape.carveout = Some(0);
    assert_eq!(steps(&carved.encode().0), [3, 3, 3]);
}
