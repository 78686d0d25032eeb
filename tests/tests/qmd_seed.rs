//! Launch descriptors, bank 0 and arguments against the bytes that the reference system made of 62 real
//! kernels: its choices, encoded here, give its bytes; and our own choices differ from them in exactly the
//! fields listed in [`Divergence`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use std::collections::BTreeSet;

use nv_proto::bank0::{Layout, STACK_TOP};
use nv_proto::launch::{Bank, Call, DeviceFacts, KernelFacts, Prepared, Shape, prepare};
use nv_proto::qmd::{Dependent, Qmd, Release, ReleaseSize, Version};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};
use serde_json::Value;

/// How we differ from the reference on purpose. `docs/decisions.md` says why.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Divergence {
    /// It writes a bank's size in bytes into a field that counts 16ths of them; and we bind bank 0 in units of
    /// 256 bytes.
    BankSize,
    /// We drop what is cached of all constant banks before a launch: copies may have changed them.
    ConstantCache,
    /// It takes a configuration of 32, 64 or 100 KB that holds one block; we take one that holds as many as
    /// fit otherwise.
    SharedConfig,
    /// Its releases write 64-bit values through a 32-bit payload and have no memory barrier.
    Release,
}

/// The divergences, by field.
fn divergence(field: &str) -> Option<Divergence> {
    Some(match field {
        "CONSTANT_BUFFER_SIZE_SHIFTED4" => Divergence::BankSize,
        "INVALIDATE_SHADER_CONSTANT_CACHE" => Divergence::ConstantCache,
        "MIN_SM_CONFIG_SHARED_MEM_SIZE" | "TARGET_SM_CONFIG_SHARED_MEM_SIZE" => {
            Divergence::SharedConfig
        }
        "RELEASE0_PAYLOAD64B"
        | "RELEASE1_PAYLOAD64B"
        | "RELEASE0_MEMBAR_TYPE"
        | "RELEASE1_MEMBAR_TYPE"
        | "RELEASE_PAYLOAD64B"
        | "RELEASE_MEMBAR_TYPE" => Divergence::Release,
        _ => return None,
    })
}

/// What the golden file has of one kernel.
struct Case {
    name: String,
    sm: SmVersion,
    version: Version,
    program: u64,
    program_size: u32,
    registers: u32,
    shared: u32,
    local: u32,
    sass: u32,
    banks: Vec<(u32, u64, u32)>,
    bank0_words: Vec<u32>,
    template: Vec<u8>,
    launch: Value,
    chain: Value,
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn word(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}

fn three(value: &Value) -> Dim3 {
    Dim3::new(word(&value[0]), word(&value[1]), word(&value[2]))
}

/// Every kernel that the reference could load.
fn cases() -> Vec<Case> {
    let golden = nv_tests::json("golden/seed/cases.json");
    let cases: Vec<Case> = golden["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(case)
        .collect();
    assert_eq!(
        cases.len(),
        62,
        "the file has 68 kernels, of which the reference refuses 6"
    );
    cases
}

fn case(case: &Value) -> Option<Case> {
    if !case["error"].is_null() {
        return None;
    }
    let (sm, version) = match case["kind"].as_str().unwrap() {
        "ampere" => (86, Version::V03_00),
        "ada" => (89, Version::V03_00),
        "blackwell" => (120, Version::V05_00),
        kind => panic!("{kind}"),
    };
    let banks = case["constant_banks"].as_object().unwrap().iter();
    let banks = banks.map(|(index, bank)| {
        (
            index.parse().unwrap(),
            bank[0].as_u64().unwrap(),
            word(&bank[1]),
        )
    });
    Some(Case {
        name: format!(
            "{} {}",
            case["cubin"].as_str().unwrap(),
            case["kernel"].as_str().unwrap()
        ),
        sm: SmVersion(sm),
        version,
        program: case["prog_addr"].as_u64().unwrap(),
        program_size: word(&case["prog_size"]),
        registers: word(&case["registers"]),
        shared: word(&case["shared_bytes"]),
        local: word(&case["slm_per_thread"]),
        sass: word(&case["sass_version"]),
        banks: banks.collect(),
        bank0_words: case["cbuf0_words"]
            .as_array()
            .unwrap()
            .iter()
            .map(word)
            .collect(),
        template: hex(&case["qmd_template"]),
        launch: case["launch"].clone(),
        chain: case["chain"].clone(),
    })
}

impl Case {
    /// A descriptor in golden bytes.
    fn decode(&self, bytes: &[u8]) -> Qmd {
        let words: Vec<u32> = bytes[..self.version.bytes()]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        Qmd::decode_as(self.version, &words).unwrap()
    }

    /// The field called `name`, set as the reference does: by name, the number as it is.
    fn set(&self, qmd: &mut Qmd, name: &str, index: u32, raw: u64) {
        let field = self.version.field(name).unwrap_or_else(|| panic!("{name}"));
        qmd.set_field(field, index, raw.try_into().unwrap())
            .unwrap();
    }

    /// What the reference writes of a kernel, field by field.
    fn reference(&self) -> Qmd {
        let mut qmd = self.decode(&[0; 384]);
        let low = |value: u64| value & 0xffff_ffff;
        let high = |value: u64| value >> 32;
        let (program, local) = (self.program, u64::from(self.local));
        let mut set = |name: &str, value| self.set(&mut qmd, name, 0, value);
        if self.version == Version::V05_00 {
            set("QMD_MAJOR_VERSION", 5);
            set("QMD_TYPE", 2);
            set("REGISTER_COUNT", self.registers.into());
            set("PROGRAM_ADDRESS_UPPER_SHIFTED4", high(program >> 4));
            set("PROGRAM_ADDRESS_LOWER_SHIFTED4", low(program >> 4));
            set("SHARED_MEMORY_SIZE_SHIFTED7", u64::from(self.shared >> 7));
            set("SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4", local >> 4);
        } else {
            set("QMD_MAJOR_VERSION", 3);
            set("SM_GLOBAL_CACHING_ENABLE", 1);
            set("SHADER_LOCAL_MEMORY_HIGH_SIZE", local);
            set("PROGRAM_ADDRESS_UPPER", high(program));
            set("PROGRAM_ADDRESS_LOWER", low(program));
            set("SHARED_MEMORY_SIZE", self.shared.into());
            set("REGISTER_COUNT_V", self.registers.into());
        }
        set("QMD_GROUP_ID", 0x3f);
        for cache in [
            "TEXTURE_HEADER",
            "TEXTURE_SAMPLER",
            "TEXTURE_DATA",
            "SHADER_DATA",
        ] {
            set(&format!("INVALIDATE_{cache}_CACHE"), 1);
        }
        for name in [
            "API_VISIBLE_CALL_LIMIT",
            "SAMPLER_INDEX",
            "BARRIER_COUNT",
            "CWD_MEMBAR_TYPE",
        ] {
            set(name, 1);
        }
        let config = [32, 64, 100]
            .into_iter()
            .find(|kib| kib * 1024 >= self.shared)
            .unwrap()
            / 4
            + 1;
        set("MIN_SM_CONFIG_SHARED_MEM_SIZE", config.into());
        set("TARGET_SM_CONFIG_SHARED_MEM_SIZE", config.into());
        set("MAX_SM_CONFIG_SHARED_MEM_SIZE", 0x1a);
        set(
            "PROGRAM_PREFETCH_SIZE",
            u64::from(self.program_size >> 8).min(0x1ff),
        );
        set("SASS_VERSION", self.sass.into());
        set("PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", program >> 40);
        set("PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", low(program >> 8));
        set("CONSTANT_BUFFER_INVALIDATE", 1);
        for (index, va, size) in &self.banks {
            self.bank_address(&mut qmd, *index, *va);
            self.set(
                &mut qmd,
                "CONSTANT_BUFFER_SIZE_SHIFTED4",
                *index,
                u64::from(*size),
            );
            self.set(&mut qmd, "CONSTANT_BUFFER_VALID", *index, 1);
        }
        qmd
    }

    fn bank_address(&self, qmd: &mut Qmd, index: u32, va: u64) {
        let (suffix, va) = if self.version == Version::V05_00 {
            ("_SHIFTED6", va >> 6)
        } else {
            ("", va)
        };
        self.set(
            qmd,
            &format!("CONSTANT_BUFFER_ADDR_UPPER{suffix}"),
            index,
            va >> 32,
        );
        self.set(
            qmd,
            &format!("CONSTANT_BUFFER_ADDR_LOWER{suffix}"),
            index,
            va & 0xffff_ffff,
        );
    }

    /// A release as the reference writes it: nothing but enable, address and payload.
    fn reference_release(&self, qmd: &mut Qmd, index: u32, signal: &Value) {
        let (va, value) = (signal[0].as_u64().unwrap(), signal[1].as_u64().unwrap());
        let v5 = self.version == Version::V05_00;
        let mut set = |name: &str, element, value| self.set(qmd, name, element, value);
        if v5 {
            set("RELEASE_ENABLE", index, 1);
        } else {
            set(&format!("RELEASE{index}_ENABLE"), 0, 1);
        }
        let name = if v5 {
            format!("RELEASE_SEMAPHORE{index}")
        } else {
            format!("RELEASE{index}")
        };
        let address = if v5 { "ADDR" } else { "ADDRESS" };
        set(&format!("{name}_{address}_LOWER"), 0, va & 0xffff_ffff);
        set(&format!("{name}_{address}_UPPER"), 0, va >> 32);
        set(&format!("{name}_PAYLOAD_LOWER"), 0, value & 0xffff_ffff);
        set(&format!("{name}_PAYLOAD_UPPER"), 0, value >> 32);
    }

    fn bank0_size(&self) -> u32 {
        self.banks.iter().find(|(index, ..)| *index == 0).unwrap().2
    }

    /// Where the descriptor lies behind bank 0 and the arguments.
    fn qmd_offset(&self) -> usize {
        self.bank0_size().next_multiple_of(256) as usize
    }

    fn window(&self, index: usize) -> GpuVa {
        GpuVa(u64::from(self.bank0_words[index + 1]) << 32 | u64::from(self.bank0_words[index]))
    }

    /// The kernel as our encoder takes it.
    fn prepared(&self) -> Prepared {
        let first = if self.version == Version::V05_00 {
            188
        } else {
            6
        };
        let device = DeviceFacts {
            sass_version: self.sass,
            local_bytes_per_thread: self.local,
            shared_window: self.window(first),
            local_window: self.window(first + 2),
            ..DeviceFacts::new(self.sm, 84).unwrap()
        };
        assert_eq!(device.qmd, self.version);
        // The golden arguments begin after the prefix; bank 0 has the size that prefix and parameters make.
        let param_base = self.bank0_words.len() as u32 * 4;
        let prefix = u32::from(Layout::of(self.sm).unwrap().prefix());
        assert!(
            param_base >= prefix,
            "{}: the reference's prefix holds the parameters, too",
            self.name
        );
        let mut banks = [Bank::default(); 8];
        for (index, va, size) in &self.banks {
            banks[*index as usize] = Bank {
                va: GpuVa(*va),
                size: *size,
            };
        }
        let kernel = KernelFacts {
            program: GpuVa(self.program),
            program_size: self.program_size,
            registers: self.registers,
            barriers: 1,
            static_shared: self.shared - 0x400,
            reserved_shared: 0x400,
            local_bytes: self.local - 0x240,
            param_base: prefix,
            param_size: self.bank0_size() - prefix,
            banks,
            ..KernelFacts::default()
        };
        prepare(&kernel, &device).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// The fields in which `ours` differs, each of which must be a listed divergence.
fn divergences(name: &str, reference: &Qmd, ours: &Qmd) -> BTreeSet<Divergence> {
    let differences = reference.diff(ours).unwrap();
    let listed = differences.fields().map(|difference| {
        let listed = divergence(difference.field.name);
        listed.unwrap_or_else(|| panic!("{name}: {difference} is no listed divergence"))
    });
    listed.collect()
}

#[test]
fn the_references_choices_give_its_descriptor() {
    for case in cases() {
        let golden = case.decode(&case.template);
        assert_eq!(case.template.len(), case.version.bytes(), "{}", case.name);
        let built = case.reference();
        assert_eq!(
            built.as_bytes(),
            case.template,
            "{}:\n{}",
            case.name,
            golden.diff(&built).unwrap()
        );
        // And it is told as what it is. The reference writes no minor version, which is 0 for both.
        assert_eq!(
            Qmd::decode(&words(&case.template)).unwrap().version(),
            case.version,
            "{}",
            case.name
        );
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

#[test]
fn the_references_launch_gives_its_bytes() {
    for case in cases() {
        let launch = &case.launch;
        let kernargs = hex(&launch["kernargs"]);
        let va = launch["kernargs_va"].as_u64().unwrap();
        let mut qmd = case.reference();
        qmd.set_grid(three(&launch["grid"])).unwrap();
        qmd.set_block(three(&launch["block"])).unwrap();
        qmd.set_bank_address(0, GpuVa(va)).unwrap();
        case.reference_release(&mut qmd, 0, &launch["signal"]);
        let mut expected = vec![0; kernargs.len()];
        let put = |expected: &mut [u8], at: usize, bytes: &[u8]| {
            expected[at..at + bytes.len()].copy_from_slice(bytes);
        };
        // It puts as many words before its arguments as all of bank 0 should have.
        let prefix: Vec<u8> = case
            .bank0_words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        put(&mut expected, 0, &prefix);
        put(&mut expected, prefix.len(), &args(launch));
        put(&mut expected, case.qmd_offset(), qmd.as_bytes());
        assert_eq!(kernargs, expected, "{}", case.name);
        let read = case
            .decode(&kernargs[case.qmd_offset()..])
            .launch()
            .unwrap();
        assert_eq!(read.grid, three(&launch["grid"]), "{}", case.name);
        assert_eq!(read.block, three(&launch["block"]), "{}", case.name);
        assert_eq!(read.shared_bytes, case.shared, "{}", case.name);
        assert_eq!(read.program, GpuVa(case.program), "{}", case.name);
    }
}

/// The bytes of the arguments: addresses, then values.
fn args(launch: &Value) -> Vec<u8> {
    let buffers = launch["buffers"].as_array().unwrap().iter();
    let mut bytes: Vec<u8> = buffers
        .flat_map(|va| va.as_u64().unwrap().to_le_bytes())
        .collect();
    bytes.extend(
        launch["vals"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|value| word(value).to_le_bytes()),
    );
    bytes
}

#[test]
fn the_references_chain_gives_its_bytes() {
    for case in cases() {
        let va: Vec<u64> = case.chain["kernargs_va"]
            .as_array()
            .unwrap()
            .iter()
            .map(|va| va.as_u64().unwrap())
            .collect();
        let golden: Vec<Qmd> = case.chain["kernargs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kernargs| case.decode(&hex(kernargs)[case.qmd_offset()..]))
            .collect();
        let second_va = GpuVa(va[1] + case.qmd_offset() as u64);
        for (index, golden) in golden.iter().enumerate() {
            let read = golden.launch().unwrap();
            let mut qmd = case.reference();
            qmd.set_grid(read.grid).unwrap();
            qmd.set_block(read.block).unwrap();
            qmd.set_bank_address(0, GpuVa(va[index])).unwrap();
            if index == 0 {
                qmd.set_dependent(0, Some(Dependent::schedule(second_va)))
                    .unwrap();
            } else {
                case.reference_release(&mut qmd, 0, &case.chain["signals"][0]);
                case.reference_release(&mut qmd, 1, &case.chain["signals"][1]);
            }
            assert!(
                qmd == *golden,
                "{} {index}:\n{}",
                case.name,
                golden.diff(&qmd).unwrap()
            );
        }
        assert_eq!(
            golden[0].dependent(0),
            Some(Dependent::schedule(second_va)),
            "{}",
            case.name
        );
        assert_eq!(
            golden[0].launch().unwrap().grid,
            Dim3::new(5, 1, 1),
            "{}",
            case.name
        );
        assert_eq!(golden[1].free_release(), Some(2), "{}", case.name);
        // The reference folds a third release into the queue; all four words of its first payload are there,
        // though nothing says that they are 64 bits.
        let value = case.chain["signals"][0][1].as_u64().unwrap();
        assert!(value > u64::from(u32::MAX));
        assert_eq!(
            golden[1].release(0).unwrap().payload,
            value & 0xffff_ffff,
            "{}",
            case.name
        );
    }
}

#[test]
fn our_launch_differs_from_the_references_in_the_listed_fields_only() {
    let mut seen = BTreeSet::new();
    for case in cases() {
        let prepared = case.prepared();
        let launch = &case.launch;
        let kernargs = hex(&launch["kernargs"]);
        let golden = case.decode(&kernargs[case.qmd_offset()..]);
        let block = three(&launch["block"]);
        let shaped = prepared.shape(&Shape::new(block));
        let shaped = shaped.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        let mut args = args(launch);
        args.resize(prepared.kernel().param_size as usize, 0);
        let grid = three(&launch["grid"]);
        let bank0_va = GpuVa(launch["kernargs_va"].as_u64().unwrap());
        let call = Call {
            grid,
            args: &args,
            bank0: bank0_va,
            grid_id: 0,
        };
        let mut qmd = Qmd::decode_as(case.version, &[0xa5a5_a5a5; 96]).unwrap();
        let mut bank0 = vec![0xa5; shaped.bank0_bytes() as usize + 7];
        shaped.encode(&call, &mut qmd, &mut bank0).unwrap();
        let release = Release {
            va: GpuVa(launch["signal"][0].as_u64().unwrap()),
            payload: launch["signal"][1].as_u64().unwrap(),
            size: ReleaseSize::Timestamp,
            membar: true,
            reduction: None,
        };
        qmd.set_release(0, Some(release)).unwrap();
        seen.extend(divergences(&case.name, &golden, &qmd));

        // Where we differ, this is what holds instead.
        let ours = qmd.launch().unwrap();
        for (index, va, size) in &case.banks {
            let (bound, bytes) = ours.banks[*index as usize].unwrap();
            let unit = if *index == 0 { 256 } else { 16 };
            assert_eq!(
                bytes,
                size.next_multiple_of(unit),
                "{} bank {index}",
                case.name
            );
            assert_eq!(
                bound.0,
                if *index == 0 { bank0_va.0 } else { *va },
                "{}",
                case.name
            );
        }
        let step = |name| (qmd.field(name, 0).unwrap().raw - 1) * 4;
        let (least, most) = (
            step("MIN_SM_CONFIG_SHARED_MEM_SIZE"),
            step("MAX_SM_CONFIG_SHARED_MEM_SIZE"),
        );
        assert!(
            least * 1024 >= case.shared * shaped.blocks_per_sm().max(1),
            "{}",
            case.name
        );
        assert_eq!(most, 100, "{}", case.name);
        assert_eq!(qmd.release(0), Some(release), "{}", case.name);

        // Bank 0: what the reference writes is there, and besides it what compiled kernels read.
        let (bank, beyond) = bank0.split_at(shaped.bank0_bytes() as usize);
        assert_eq!(
            beyond, [0xa5; 7],
            "{}: nothing is written behind the bank",
            case.name
        );
        let layout = Layout::of(case.sm).unwrap();
        let read = layout.read(bank).unwrap();
        assert_eq!((read.block, read.grid), (block, grid), "{}", case.name);
        let ours = words(&bank[..usize::from(layout.prefix())]);
        let stack_top = if case.version == Version::V05_00 {
            223
        } else {
            10
        };
        assert_eq!(case.bank0_words[stack_top], STACK_TOP);
        for (index, word) in case
            .bank0_words
            .iter()
            .enumerate()
            .filter(|(_, word)| **word != 0)
        {
            assert_eq!(ours[index], *word, "{} word {index}", case.name);
        }
        let base = prepared.kernel().param_base as usize;
        assert_eq!(&bank[base..base + args.len()], args, "{}", case.name);
        assert!(
            bank[base + args.len()..].iter().all(|byte| *byte == 0),
            "{}",
            case.name
        );
    }
    let all = [
        Divergence::BankSize,
        Divergence::ConstantCache,
        Divergence::SharedConfig,
        Divergence::Release,
    ];
    assert_eq!(seen, BTreeSet::from(all), "each divergence is real");
}
