//! The method tables and the typed methods against `facts/methods.json`: nothing missing, no wrong bit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

use std::collections::BTreeSet;

use nv_proto::EncodeError;
use nv_proto::class;
use nv_proto::push::table::{self, Field};
use nv_proto::push::{MethodAddr, compute, copy, host};
use nv_proto::unit::ClassId;
use nv_tests::tables::is_method;
use serde_json::Value;

const KINDS: [&str; 3] = ["host", "compute", "copy"];

fn facts() -> Value {
    nv_tests::json("golden/facts/methods.json")
}

fn u32_of(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn id(class: &Value) -> ClassId {
    ClassId(u32_of(&class["class_id"]))
}

/// The class's methods of the facts; what is none is counted.
fn methods(class: &Value) -> impl Iterator<Item = (&String, &Value)> {
    class["methods"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, method)| is_method(method))
}

fn addr(method: &Value) -> MethodAddr {
    MethodAddr::new(u16::try_from(u32_of(&method["offset"])).unwrap()).unwrap()
}

#[test]
fn generated_files_are_what_the_generator_makes() {
    for (path, text) in nv_tests::tables::all() {
        let committed = std::fs::read_to_string(nv_tests::path("..").join(path)).unwrap();
        assert!(
            committed == text,
            "{path} is stale: run `cargo run -p nv-tests --bin gen-tables`"
        );
    }
}

/// Every method, field and value of every class is in the tables, and nothing else is.
#[test]
fn tables_are_the_facts() {
    let facts = facts();
    let (mut classes, mut seen, mut values, mut excluded) = (0, 0, 0, 0);
    for kind in KINDS {
        for (spelling, class) in facts[kind].as_object().unwrap() {
            let class_id = id(class);
            assert_eq!(
                class::name(class_id),
                class["class_name"].as_str(),
                "{spelling}"
            );
            excluded += class["methods"].as_object().unwrap().len() - methods(class).count();
            for (name, expected) in methods(class) {
                let found = table::defined(class_id, addr(expected)).unwrap();
                assert_eq!(
                    (found.class, found.info.name),
                    (class_id, name.as_str()),
                    "{spelling}"
                );
                assert_eq!(
                    u32::from(found.info.stride),
                    u32_of(&expected["array_stride_bytes"])
                );
                assert_eq!(found.index, (found.info.stride != 0).then_some(0), "{name}");
                assert_eq!(table::by_name(class_id, name), Some(found.info), "{name}");
                let fields = expected["fields"].as_object().unwrap();
                assert_eq!(found.info.fields.len(), fields.len(), "{spelling} {name}");
                for (field_name, field) in fields {
                    let ours = found.info.field(field_name).unwrap();
                    let place = (u32::from(ours.spec.hi), u32::from(ours.spec.lo));
                    assert_eq!(
                        place,
                        (u32_of(&field["hi"]), u32_of(&field["lo"])),
                        "{name} {field_name}"
                    );
                    let named = field["values"].as_object().unwrap();
                    assert_eq!(ours.values.len(), named.len(), "{name} {field_name}");
                    for (value_name, value) in named {
                        assert_eq!(
                            ours.value_of(value_name),
                            Some(u32_of(value)),
                            "{value_name}"
                        );
                        assert!(ours.value_name(u32_of(value)).is_some());
                        values += 1;
                    }
                }
                seen += 1;
            }
            let listed: Vec<_> = table::methods(class_id).collect();
            assert_eq!(listed.len(), methods(class).count(), "{spelling}");
            assert!(listed.is_sorted_by_key(|method| method.addr));
            classes += 1;
        }
    }
    assert_eq!(table::classes().count(), classes);
    assert_eq!(
        (classes, excluded),
        (22, 5),
        "the misspelt value of five host headers is left out"
    );
    assert!(
        seen > 1700 && values > 2500,
        "only {seen} methods and {values} values"
    );
}

#[test]
fn elements_of_arrays_are_found() {
    let at = |bytes| MethodAddr::new(bytes).unwrap();
    let name = |class, bytes| table::method(class, at(bytes)).map(|found| found.to_string());
    let hopper = class::HOPPER_COMPUTE_A;
    assert_eq!(name(hopper, 0x320).unwrap(), "LOAD_INLINE_QMD_DATA(0)");
    assert_eq!(name(hopper, 0x49c).unwrap(), "LOAD_INLINE_QMD_DATA(95)");
    assert_eq!(name(hopper, 0x500).unwrap(), "SET_FALCON00");
    // Two arrays, interleaved.
    assert_eq!(name(hopper, 0x3800).unwrap(), "CALL_MME_MACRO(0)");
    assert_eq!(name(hopper, 0x3804).unwrap(), "CALL_MME_DATA(0)");
    assert_eq!(name(hopper, 0x3808).unwrap(), "CALL_MME_MACRO(1)");
    assert_eq!(name(hopper, 0x3ffc).unwrap(), "CALL_MME_DATA(255)");
    // A gap, an array of other classes, a class that is not known.
    assert_eq!(name(hopper, 0x128), None);
    assert_eq!(
        name(class::AMPERE_COMPUTE_A, 0x3800),
        Some("SET_MME_SHADOW_SCRATCH(256)".into())
    );
    assert_eq!(name(ClassId(0x1234), 0x100), None);
}

/// Hopper's published host header is a part of Ampere's; what it leaves out is named by that.
#[test]
fn host_methods_fall_back() {
    let found = table::method(class::HOPPER_CHANNEL_GPFIFO_A, host::NON_STALL_INTERRUPT).unwrap();
    assert_eq!(found.info.name, "NON_STALL_INTERRUPT");
    assert_eq!(found.class, class::AMPERE_CHANNEL_GPFIFO_B);
    let found = table::method(class::BLACKWELL_CHANNEL_GPFIFO_B, host::MEM_OP_D).unwrap();
    assert_eq!(found.class, class::HOPPER_CHANNEL_GPFIFO_A);
    // Hopper's header keeps 5 of the 7 fields of SEM_EXECUTE, but its SEM_ADDR_HI is wider.
    let found = table::method(class::HOPPER_CHANNEL_GPFIFO_A, host::SEM_EXECUTE).unwrap();
    assert_eq!(found.class, class::AMPERE_CHANNEL_GPFIFO_B);
    assert!(found.info.field("REDUCTION").is_some());
    let found = table::method(class::HOPPER_CHANNEL_GPFIFO_A, host::SEM_ADDR_HI).unwrap();
    assert_eq!(found.class, class::HOPPER_CHANNEL_GPFIFO_A);
    let hopper = table::defined(class::HOPPER_CHANNEL_GPFIFO_A, host::SEM_EXECUTE).unwrap();
    assert_eq!(hopper.class, class::HOPPER_CHANNEL_GPFIFO_A);
    // The other kinds are complete: what is missing is missing.
    assert_eq!(
        table::method(class::HOPPER_DMA_COPY_A, MethodAddr::new(0x104).unwrap()),
        None
    );
}

#[test]
fn fields_are_set_by_name() {
    use table::FieldArg::{Name, Number};
    use table::NameError;

    let method = table::by_name(class::HOPPER_COMPUTE_A, "SEND_SIGNALING_PCAS2_B").unwrap();
    let word = method.with(0xffff_ffff, "PCAS_ACTION", Name("PREFETCH_SCHEDULE"));
    assert_eq!(word, Ok(0xffff_fff9));
    assert_eq!(
        method.with(0, "PCAS_ACTION", Number(16)),
        Err(NameError::Encode(EncodeError::FieldOverflow {
            field: "PCAS_ACTION",
            width: 4,
            value: 16
        }))
    );
    let error = method
        .encode(&[("PCAS_ACTION", Number(9)), ("NO_SUCH", Number(0))])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "SEND_SIGNALING_PCAS2_B has no field NO_SUCH"
    );
    let error = method
        .with(0, "PCAS_ACTION", Name("NONE_SUCH"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "PCAS_ACTION of SEND_SIGNALING_PCAS2_B has no value NONE_SUCH"
    );
}

/// Every value of every field can be written by name, and is read back by name.
#[test]
fn words_are_made_by_name() {
    use table::FieldArg::{Name, Number};

    let mut seen = 0;
    for class in table::classes() {
        for method in table::methods(class) {
            for field in method.fields {
                let name = field.spec.name;
                let top = method.encode(&[(name, Number(field.spec.max()))]).unwrap();
                assert_eq!(top, field.spec.mask(), "{} {name}", method.name);
                if let Some(over) = field.spec.max().checked_add(1) {
                    assert!(method.encode(&[(name, Number(over))]).is_err());
                }
                for (value, value_name) in field.values {
                    let word = method.encode(&[(name, Name(value_name))]).unwrap();
                    assert_eq!(field.spec.of(word), *value, "{} {name}", method.name);
                    assert_eq!(word & !field.spec.mask(), 0);
                    seen += 1;
                }
                assert!(method.encode(&[(name, Name("no such value"))]).is_err());
            }
        }
    }
    assert!(seen > 2500, "only {seen} values");
    let launch = table::by_name(class::HOPPER_DMA_COPY_A, "LAUNCH_DMA").unwrap();
    let word = launch.encode(&[
        ("DATA_TRANSFER_TYPE", Name("NON_PIPELINED")),
        ("SRC_MEMORY_LAYOUT", Name("PITCH")),
        ("DST_MEMORY_LAYOUT", Number(1)),
    ]);
    assert_eq!(word.unwrap(), copy::LaunchDma::linear().encode().unwrap());
}

/// The addresses that have constants are those of every class that has the method.
#[test]
fn address_constants_are_the_facts() {
    let facts = facts();
    let constants = [
        ("host", host::ADDRESSES),
        ("compute", compute::ADDRESSES),
        ("copy", copy::ADDRESSES),
    ];
    for (kind, constants) in constants {
        for (name, constant) in constants {
            let mut classes = 0;
            for class in facts[kind].as_object().unwrap().values() {
                if let Some((_, method)) = methods(class).find(|(known, _)| known == name) {
                    assert_eq!(*constant, addr(method), "{name} of {}", class["class_name"]);
                    classes += 1;
                }
            }
            assert!(classes > 0, "{kind} {name} is in no header");
        }
        let distinct: BTreeSet<_> = constants.iter().map(|(_, addr)| *addr).collect();
        assert_eq!(distinct.len(), constants.len());
    }
}

/// A typed word, its kind, and what of it is known to differ from some header, each for a reason.
struct Typed {
    kind: &'static str,
    method: &'static str,
    fields: &'static [Field],
}

macro_rules! typed {
    ($kind:literal: $($path:path),+ $(,)?) => {
        [$( { use $path as Word; Typed { kind: $kind, method: Word::METHOD, fields: Word::FIELDS } } ),+]
    };
}

fn all_typed() -> Vec<Typed> {
    let mut all = Vec::new();
    all.extend(typed!("host": host::SetObjectWord, host::SemExecute, host::Wfi));
    all.extend(typed!("compute":
        compute::NoOperation, compute::WaitForIdle, compute::InvalidateShaderCaches,
        compute::InvalidateShaderCachesNoWfi, compute::InvalidateSkedCaches,
        compute::SendSignalingPcas, compute::SendSignalingPcas2, compute::SetSpaVersion,
        compute::SetQmdVersion, compute::SetCwdRefCounter, compute::SetCwdSlotCount,
        compute::SetShaderExceptions, compute::SetSmTimeoutInterval, compute::LaunchDma,
        compute::SetDstBlockSize, compute::SetInlineQmdAddressA, compute::ReportSemaphoreD,
        compute::ReportSemaphoreExecuteWord, compute::InvalidateSamplerCache,
        compute::InvalidateSamplerCacheNoWfi, compute::InvalidateTextureHeaderCache,
        compute::InvalidateTextureHeaderCacheNoWfi, compute::InvalidateTextureDataCache,
        compute::InvalidateTextureDataCacheNoWfi, compute::SetBindlessTexture, compute::SetShaderCacheControl, compute::ThrottleSm,
        compute::SendPcasB, compute::RenderEnableC, compute::NotifyWord,
    ));
    all.extend(typed!("copy":
        copy::LaunchDma, copy::SetRemapComponents, copy::SetSrcBlockSize, copy::SetDstBlockSize,
        copy::SetSrcPhysMode, copy::SetDstPhysMode, copy::SetMemoryScrubParameters,
    ));
    all
}

/// Header fields that a typed word leaves out, and places that older headers give another width.
const LEFT_OUT: [(&str, &str, &str); 5] = [
    // The name that bit 0 had before it had a meaning.
    ("INVALIDATE_SKED_CACHES", "V", "clc3c0.h to clcbc0.h"),
    // Volta and Turing: who reads through the cache; those bits mean other things later.
    ("LAUNCH_DMA", "SRC_BYPASS_L2", "clc3b5.h, clc5b5.h"),
    ("LAUNCH_DMA", "DST_BYPASS_L2", "clc3b5.h, clc5b5.h"),
    // Reserved, always 0.
    ("LAUNCH_DMA", "RESERVED_START_OF_COPY", "all"),
    ("LAUNCH_DMA", "RESERVED_ERR_CODE", "all"),
];
const OTHER_PLACE: [(&str, &str); 2] = [
    // The whole word up to Ada; an address has no more bits than Hopper's nine.
    ("SET_INLINE_QMD_ADDRESS_A", "QMD_ADDRESS_SHIFTED8_UPPER"),
    // Two bits up to Ada, one from Hopper on, where the upper one is MEMORY_SCRUB_ENABLE.
    ("LAUNCH_DMA", "VPRMODE"),
];

#[test]
fn typed_words_are_the_facts() {
    let facts = facts();
    for Typed {
        kind,
        method,
        fields,
    } in all_typed()
    {
        let mut classes = 0;
        let mut named = BTreeSet::new();
        let mut placed = BTreeSet::new();
        for class in facts[kind].as_object().unwrap().values() {
            let Some((_, fact)) = methods(class).find(|(name, _)| *name == method) else {
                continue;
            };
            classes += 1;
            let what = format!("{} {method}", class["class_name"]);
            for (name, fact) in fact["fields"].as_object().unwrap() {
                let ours = fields
                    .iter()
                    .find(|field| field.spec.name == format!("{method}_{name}"));
                let Some(ours) = ours else {
                    assert!(
                        LEFT_OUT.iter().any(|(m, f, _)| *m == method && f == name),
                        "{what} has {name}, which the typed word lacks"
                    );
                    continue;
                };
                let place = (u32::from(ours.spec.hi), u32::from(ours.spec.lo));
                if place == (u32_of(&fact["hi"]), u32_of(&fact["lo"])) {
                    placed.insert(ours.spec.name);
                } else {
                    assert!(
                        OTHER_PLACE.contains(&(method, name)),
                        "{what} {name} is elsewhere"
                    );
                }
                for (value_name, value) in fact["values"].as_object().unwrap() {
                    let value = u32_of(value);
                    if let Some(ours_named) = ours.value_of(value_name) {
                        assert_eq!(ours_named, value, "{what} {name} {value_name}");
                        named.insert((ours.spec.name, value_name.clone()));
                    } else {
                        // Another spelling of a value that has a name, a plain flag, or a number that
                        // means nothing.
                        assert!(
                            ours.value_name(value).is_some()
                                || (ours.values.is_empty() && value <= ours.spec.max())
                                || value_name.starts_with("INVALID")
                                || value_name == "RESERVED",
                            "{what} {name} {value_name}={value} has no name"
                        );
                    }
                }
            }
        }
        assert!(classes > 0, "{kind} {method} is in no header");
        for field in fields {
            assert!(
                placed.contains(field.spec.name),
                "{} is in no header",
                field.spec.name
            );
            for (_, name) in field.values {
                assert!(
                    named.contains(&(field.spec.name, (*name).to_owned())),
                    "{} {name} is in no header",
                    field.spec.name
                );
            }
        }
    }
}

/// Typed methods take every address that all classes take, and none that one of them would cut short.
#[test]
fn addresses_are_as_wide_as_every_class_takes() {
    use nv_proto::push::{Method, PushWriter, Subchannel};
    use nv_proto::unit::GpuVa;

    fn width<const N: usize, M: Method<N>>(method: impl Fn(GpuVa) -> M) -> u32 {
        let mut buffer = [0; 8];
        (0..64)
            .take_while(|bit| {
                PushWriter::new(&mut buffer)
                    .write(Subchannel::COMPUTE, &method(GpuVa(1 << bit.max(&8))))
                    .is_ok()
            })
            .count()
            .try_into()
            .unwrap()
    }

    let facts = facts();
    let narrowest = |kind: &str, name: &str, field: &str| {
        facts[kind]
            .as_object()
            .unwrap()
            .values()
            .filter_map(|class| methods(class).find(|(known, _)| *known == name))
            .map(|(_, method)| u32_of(&method["fields"][field]["hi"]) + 1)
            .min()
            .unwrap()
    };
    let d = compute::ReportSemaphoreD::default();
    let mode = compute::RenderEnableMode::True;
    let kind = compute::NotifyType::WriteOnly;
    let execute = compute::ReportSemaphoreExecuteWord::default();
    for (kind, name, field, ours) in [
        (
            "host",
            "SEM_ADDR_HI",
            "OFFSET",
            width(|at| host::SemAcquire::geq(at, 0)),
        ),
        (
            "compute",
            "OFFSET_OUT_UPPER",
            "VALUE",
            width(|at| compute::OffsetOut { at }),
        ),
        (
            "compute",
            "SET_SHADER_LOCAL_MEMORY_WINDOW_A",
            "BASE_ADDRESS_UPPER",
            width(|base| compute::SetShaderLocalMemoryWindow { base }),
        ),
        (
            "compute",
            "SET_SHADER_SHARED_MEMORY_WINDOW_A",
            "BASE_ADDRESS_UPPER",
            width(|base| compute::SetShaderSharedMemoryWindow { base }),
        ),
        (
            "compute",
            "SET_SHADER_LOCAL_MEMORY_A",
            "ADDRESS_UPPER",
            width(|at| compute::SetShaderLocalMemory { at }),
        ),
        (
            "compute",
            "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A",
            "SIZE_UPPER",
            width(|size| compute::SetShaderLocalMemoryNonThrottled {
                bytes_per_tpc: size.0,
                max_sm_count: 0,
            }),
        ),
        (
            "compute",
            "SET_TRAP_HANDLER_A",
            "ADDRESS_UPPER",
            width(|at| compute::SetTrapHandler { at }),
        ),
        (
            "compute",
            "SET_I2M_SEMAPHORE_A",
            "OFFSET_UPPER",
            width(|at| compute::SetI2mSemaphore { at, payload: 0 }),
        ),
        (
            "compute",
            "SET_REPORT_SEMAPHORE_A",
            "OFFSET_UPPER",
            width(|at| compute::ReportSemaphore { at, payload: 0, d }),
        ),
        (
            "compute",
            "SET_REPORT_SEMAPHORE_ADDRESS_UPPER",
            "UPPER",
            width(|at| compute::ReportSemaphoreExecute {
                at,
                payload: 0,
                execute,
            }),
        ),
        (
            "compute",
            "SET_TEX_HEADER_POOL_A",
            "OFFSET_UPPER",
            width(|at| compute::SetTexHeaderPool {
                at,
                maximum_index: 0,
            }),
        ),
        (
            "compute",
            "SET_TEX_SAMPLER_POOL_A",
            "OFFSET_UPPER",
            width(|at| compute::SetTexSamplerPool {
                at,
                maximum_index: 0,
            }),
        ),
        (
            "copy",
            "OFFSET_IN_UPPER",
            "UPPER",
            width(|src| copy::Offsets { src, dst: GpuVa(0) }),
        ),
        (
            "copy",
            "OFFSET_OUT_UPPER",
            "UPPER",
            width(|dst| copy::OffsetOut { dst }),
        ),
        (
            "copy",
            "SET_SEMAPHORE_A",
            "UPPER",
            width(|at| copy::SetSemaphore { at, payload: 0 }),
        ),
        (
            "copy",
            "SET_SEMAPHORE_A",
            "UPPER",
            width(|at| copy::SetSemaphore64 { at, payload: 0 }),
        ),
        (
            "copy",
            "SET_RENDER_ENABLE_A",
            "UPPER",
            width(|at| copy::SetRenderEnable { at, mode }),
        ),
        (
            "compute",
            "SET_RENDER_ENABLE_A",
            "OFFSET_UPPER",
            width(|at| compute::SetRenderEnable { at, mode }),
        ),
        (
            "compute",
            "SET_NOTIFY_A",
            "ADDRESS_UPPER",
            width(|at| compute::Notify { at, kind }),
        ),
    ] {
        assert_eq!(ours, narrowest(kind, name, field) + 32, "{kind} {name}");
    }
    // 40 bits of address in 32 bits of 256-byte units.
    assert_eq!(width(|qmd| compute::SendPcas { qmd }), 40);
}

/// `MEM_OP_*` means different things by operation: the packed words, field by field, as a header has them.
#[test]
fn memory_operations_are_the_facts() {
    use host::{MemOp, MembarType, PdbAperture, TlbAck, TlbLevel};
    use nv_proto::push::Method;
    use nv_proto::unit::GpuVa;

    let class = class::AMPERE_CHANNEL_GPFIFO_A;
    let method = |name: &str| table::by_name(class, name).unwrap();
    let field = |words: [u32; 4], letter: &str, name: &str| {
        let word = words["ABCD".find(letter).unwrap()];
        let field = method(&format!("MEM_OP_{letter}")).field(name).unwrap();
        let value = field.spec.of(word);
        (value, field.value_name(value))
    };

    let words = MemOp::Membar(MembarType::Membar).data().unwrap();
    assert_eq!(field(words, "D", "OPERATION").1, Some("MEMBAR"));
    assert_eq!(field(words, "C", "MEMBAR_TYPE").1, Some("MEMBAR"));
    assert_eq!(words[..2], [0, 0]);

    let words = MemOp::TlbInvalidate {
        pdb: Some((GpuVa(0x12_3456_7000), PdbAperture::SysMemCoherent)),
        page: Some(GpuVa(0x7f_89ab_c000)),
        level: TlbLevel::UpToPde2,
        ack: TlbAck::Globally,
        sysmembar: true,
    }
    .data()
    .unwrap();
    assert_eq!(
        field(words, "D", "OPERATION").1,
        Some("MMU_TLB_INVALIDATE_TARGETED")
    );
    assert_eq!(field(words, "D", "TLB_INVALIDATE_PDB_ADDR_HI").0, 0x12);
    assert_eq!(field(words, "C", "TLB_INVALIDATE_PDB_ADDR_LO").0, 0x3_4567);
    assert_eq!(
        field(words, "C", "TLB_INVALIDATE_PDB_APERTURE").1,
        Some("SYS_MEM_COHERENT")
    );
    assert_eq!(field(words, "C", "TLB_INVALIDATE_PDB").1, Some("ONE"));
    assert_eq!(
        field(words, "C", "TLB_INVALIDATE_PAGE_TABLE_LEVEL").1,
        Some("UP_TO_PDE2")
    );
    assert_eq!(
        field(words, "C", "TLB_INVALIDATE_ACK_TYPE").1,
        Some("GLOBALLY")
    );
    assert_eq!(field(words, "A", "TLB_INVALIDATE_SYSMEMBAR").1, Some("EN"));
    assert_eq!(
        field(words, "A", "TLB_INVALIDATE_TARGET_ADDR_LO").0,
        0x8_9abc
    );
    assert_eq!(field(words, "B", "TLB_INVALIDATE_TARGET_ADDR_HI").0, 0x7f);

    let words = MemOp::TlbInvalidate {
        pdb: None,
        page: None,
        level: TlbLevel::All,
        ack: TlbAck::None,
        sysmembar: false,
    }
    .data()
    .unwrap();
    assert_eq!(field(words, "D", "OPERATION").1, Some("MMU_TLB_INVALIDATE"));
    assert_eq!(words, [0, 0, 1, 9 << 27]);

    for op in host::MemOperation::ALL {
        let name = format!("{op:?}").to_lowercase();
        let hopper = table::by_name(class::HOPPER_CHANNEL_GPFIFO_A, "MEM_OP_D").unwrap();
        let known = hopper.field("OPERATION").unwrap();
        let word = nv_proto::push::Method::data(&MemOp::Cache(*op));
        match word {
            Ok(words) => {
                assert!(name.starts_with("l2"), "{name}");
                let spelled = known.value_name(known.spec.of(words[3])).unwrap();
                assert_eq!(spelled.replace('_', "").to_lowercase(), name);
            }
            Err(_) => assert!(!name.starts_with("l2"), "{name}"),
        }
    }
    assert!(
        MemOp::TlbInvalidate {
            pdb: Some((GpuVa(0x800), PdbAperture::VidMem)),
            page: None,
            level: TlbLevel::All,
            ack: TlbAck::None,
            sysmembar: false,
        }
        .data()
        .is_err()
    );
}
