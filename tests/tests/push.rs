//! Pushbuffers: headers against the facts, typed methods against the reference's words, and readers
//! against anything.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

use nv_proto::push::{
    Header, MethodAddr, PushReader, PushWriter, RunOp, SecOp, Subchannel, compute, copy, host,
};
use nv_proto::unit::{ClassId, GpuVa};
use nv_proto::{DecodeError, EncodeError};
use proptest::prelude::*;
use serde_json::Value;

fn words(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|word| u32::try_from(word.as_u64().unwrap()).unwrap())
        .collect()
}

fn u64_of(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn u32_of(value: &Value) -> u32 {
    u32::try_from(u64_of(value)).unwrap()
}

fn va(value: &Value) -> GpuVa {
    GpuVa(u64_of(value))
}

/// Runs `write` into words that hold 0xa5 bytes: the words written, after checking that no other changed and
/// that a buffer one word shorter is refused.
fn written(write: impl Fn(&mut PushWriter<'_>) -> Result<(), EncodeError>) -> Vec<u32> {
    let mut buffer = [0xa5a5_a5a5; 9000];
    let mut push = PushWriter::new(&mut buffer);
    write(&mut push).unwrap();
    let used = push.finish().to_vec();
    assert!(buffer[used.len()..].iter().all(|word| *word == 0xa5a5_a5a5));
    let mut short = vec![0xa5a5_a5a5; used.len() - 1];
    let error = write(&mut PushWriter::new(&mut short)).unwrap_err();
    assert!(
        matches!(error, EncodeError::BufferTooSmall { .. }),
        "{error}"
    );
    used
}

/// Reads the packets and writes them again.
fn rewritten(words: &[u32]) -> Vec<u32> {
    let mut out = vec![0xa5a5_a5a5; words.len()];
    let mut push = PushWriter::new(&mut out);
    for packet in PushReader::new(words) {
        let packet = packet.unwrap();
        match packet.header {
            Header::Run {
                op,
                subchannel,
                method,
                ..
            } => {
                push.run(op, subchannel, method, packet.data).unwrap();
            }
            header => push.header(&header).unwrap(),
        }
    }
    push.finish().to_vec()
}

fn check(
    name: &str,
    expected: &Value,
    write: impl Fn(&mut PushWriter<'_>) -> Result<(), EncodeError>,
) {
    let expected = words(expected);
    assert_eq!(written(write), expected, "{name}");
    assert_eq!(rewritten(&expected), expected, "{name}");
}

fn signal(push: &mut PushWriter<'_>, at: GpuVa, value: u64) -> Result<(), EncodeError> {
    push.write(
        Subchannel::HOST,
        &host::SemRelease::with_timestamp(at, value),
    )?;
    push.write(Subchannel::HOST, &host::NonStallInterrupt)
}

/// The reference's queues, word for word.
#[test]
fn queues_are_the_references() {
    let golden = nv_tests::json("golden/seed/cases.json");
    let queues = golden["queues"].as_object().unwrap();
    for (name, queue) in queues {
        let at = |index: usize| match &queue["signal"] {
            Value::Array(pair) => u64_of(&pair[index]),
            alone => u64_of(alone),
        };
        let expected = &queue["words"];
        if name.starts_with("setup_compute") {
            check(name, expected, |push| {
                let class = ClassId(u32_of(&queue["compute_class"]));
                let sub = Subchannel::COMPUTE;
                push.write(sub, &compute::SetObject { class })?;
                push.write(
                    sub,
                    &compute::SetShaderLocalMemoryWindow {
                        base: va(&queue["local_window"]),
                    },
                )?;
                push.write(
                    sub,
                    &compute::SetShaderSharedMemoryWindow {
                        base: va(&queue["shared_window"]),
                    },
                )?;
                signal(push, GpuVa(at(0)), at(1))
            });
        } else if name == "setup_local_mem" {
            check(name, expected, |push| {
                let sub = Subchannel::COMPUTE;
                push.write(Subchannel::HOST, &host::SemAcquire::geq(GpuVa(at(0)), 7))?;
                push.write(
                    sub,
                    &compute::SetShaderLocalMemory {
                        at: va(&queue["local_mem"]),
                    },
                )?;
                push.write(
                    sub,
                    &compute::SetShaderLocalMemoryNonThrottled {
                        bytes_per_tpc: u64_of(&queue["bytes_per_tpc"]),
                        max_sm_count: 0xff,
                    },
                )?;
                signal(push, GpuVa(at(0)), 8)
            });
        } else if name.starts_with("setup_copy") {
            check(name, expected, |push| {
                let class = ClassId(u32_of(&queue["copy_class"]));
                let at = GpuVa(at(0));
                push.write(Subchannel::HOST, &host::SemAcquire::geq(at, 1))?;
                push.write(Subchannel::COPY, &copy::SetObject { class })?;
                push.write(Subchannel::COPY, &copy::SetSemaphore { at, payload: 2 })?;
                push.write(Subchannel::COPY, &copy::LaunchDma::release())
            });
        } else if name.starts_with("copy_") {
            check(name, expected, |push| {
                let (dst, src) = (va(&queue["dest"]), va(&queue["src"]));
                copy::linear(push, Subchannel::COPY, dst, src, u64_of(&queue["size"]))?;
                let payload = u32::try_from(at(1)).unwrap();
                push.write(
                    Subchannel::COPY,
                    &copy::SetSemaphore {
                        at: GpuVa(at(0)),
                        payload,
                    },
                )?;
                push.write(Subchannel::COPY, &copy::LaunchDma::release())
            });
        } else if name == "timestamp" {
            check(name, expected, |push| signal(push, GpuVa(at(0)), 0));
        } else {
            panic!("no check for the queue {name}");
        }
    }
    assert_eq!(queues.len(), 13);
}

/// The reference's launch (wait, barrier, exec, signal) and chain (exec, exec, signal × 3) of each case.
#[test]
fn launches_are_the_references() {
    let golden = nv_tests::json("golden/seed/cases.json");
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        let name = format!("{} {}", case["cubin"], case["kernel"]);
        let Some(launch) = case.get("launch").filter(|launch| !launch.is_null()) else {
            assert!(case.get("error").is_some(), "{name}");
            continue;
        };
        let exec = |push: &mut PushWriter<'_>, kernargs: &Value| {
            // The descriptor lies after bank 0 and the arguments, at the next multiple of 256.
            let bank0 = u64_of(&case["constant_banks"]["0"][1]);
            let qmd = GpuVa(u64_of(kernargs) + bank0.next_multiple_of(256));
            push.write(Subchannel::COMPUTE, &compute::SendPcas { qmd })?;
            push.write(
                Subchannel::COMPUTE,
                &compute::SendSignalingPcas2::PREFETCH_SCHEDULE,
            )
        };
        // The first signal of a launch goes into the descriptor.
        check(&name, &launch["words"], |push| {
            let (at, value) = (va(&launch["wait"][0]), u64_of(&launch["wait"][1]));
            push.write(Subchannel::HOST, &host::SemAcquire::geq(at, value))?;
            push.write(
                Subchannel::COMPUTE,
                &compute::InvalidateShaderCachesNoWfi::ALL,
            )?;
            exec(push, &launch["kernargs_va"])
        });
        let chain = &case["chain"];
        check(&name, &chain["words"], |push| {
            // The second exec hangs on the first descriptor, as do the first two signals: a descriptor
            // releases two semaphores.
            exec(push, &chain["kernargs_va"][0])?;
            let last = &chain["signals"][2];
            signal(push, va(&last[0]), u64_of(&last[1]))
        });
        seen += 1;
    }
    assert!(seen >= 60, "only {seen} cases have a launch");
}

/// What NVIDIA's library wrote on an H200: every word comes back, and what it does is named.
#[test]
fn the_vendors_streams_come_back() {
    let golden = nv_tests::json("golden/h200/cuda_streams.json");
    let mut seen = 0;
    for (name, stream) in golden["streams"].as_object().unwrap() {
        let packed = packed(&stream["methods"]);
        if let Some(raw) = stream.get("words") {
            // The capture is the whole of it.
            assert_eq!(packed, words(raw), "{name}");
        }
        assert_eq!(rewritten(&packed), packed, "{name}");
        seen += PushReader::new(&packed)
            .writes()
            .map(Result::unwrap)
            .count();
    }
    let golden = nv_tests::json("golden/h200/cuda_launches.json");
    for (name, launch) in golden["launches"].as_object().unwrap() {
        let packed = packed(&launch["stream"]);
        assert_eq!(rewritten(&packed), packed, "{name}");
        seen += PushReader::new(&packed)
            .writes()
            .map(Result::unwrap)
            .count();
    }
    assert!(seen > 10_000, "only {seen} methods");
}

/// A captured list of methods as words, made with the writer.
fn packed(methods: &Value) -> Vec<u32> {
    let mut buffer = vec![0xa5a5_a5a5; 1 << 16];
    let mut push = PushWriter::new(&mut buffer);
    for entry in methods.as_array().unwrap() {
        let op = match entry["op"].as_str().unwrap() {
            "INC" | "INC_METHOD" => RunOp::Inc,
            "NON_INC" | "NON_INC_METHOD" => RunOp::NonInc,
            other => panic!("{other}"),
        };
        let subchannel = entry.get("sub").unwrap_or(&entry["subchannel"]);
        let subchannel = Subchannel::new(u8::try_from(u64_of(subchannel)).unwrap()).unwrap();
        let method = MethodAddr::new(u16::try_from(u64_of(&entry["method"])).unwrap()).unwrap();
        push.run(op, subchannel, method, &words(&entry["data"]))
            .unwrap();
    }
    push.finish().to_vec()
}

/// The vendor's uploads are what ours would be.
#[test]
fn uploads_are_the_vendors() {
    let golden = nv_tests::json("golden/h200/cuda_streams.json");
    let raw = words(&golden["streams"]["vadd"]["words"]);
    let packets: Vec<_> = PushReader::new(&raw).map(Result::unwrap).collect();
    let mut uploads = 0;
    for four in packets.windows(4) {
        let [place, shape, _, data] = four else {
            unreachable!()
        };
        let is_upload = matches!(
            data.header,
            Header::Run {
                method: compute::LOAD_INLINE_DATA,
                op: RunOp::NonInc,
                ..
            }
        );
        if !is_upload {
            continue;
        }
        let at = GpuVa(u64::from(place.data[0]) << 32 | u64::from(place.data[1]));
        let ours = written(|push| {
            compute::upload(push, Subchannel::COMPUTE, at, shape.data[0], data.data)
        });
        let end = data.offset + 1 + data.data.len();
        assert_eq!(ours, raw[place.offset..end], "at {at}");
        uploads += 1;
    }
    assert!(uploads >= 3, "only {uploads} uploads");
}

/// The header's numbers, spelled out: `NON_INC_METHOD` is 3 and `ONE_INC` 5.
#[test]
fn operations_have_the_headers_numbers() {
    let facts = nv_tests::json("golden/facts/methods.json");
    let values = &facts["host"]["NVC56F"]["dma_header"]["fields"]["DMA_SEC_OP"]["values"];
    let known = [
        ("GRP0_USE_TERT", SecOp::Grp0UseTert),
        ("INC_METHOD", SecOp::IncMethod),
        ("GRP2_USE_TERT", SecOp::Grp2UseTert),
        ("NON_INC_METHOD", SecOp::NonIncMethod),
        ("IMMD_DATA_METHOD", SecOp::ImmdDataMethod),
        ("ONE_INC", SecOp::OneInc),
        ("RESERVED6", SecOp::Reserved6),
        ("END_PB_SEGMENT", SecOp::EndPbSegment),
    ];
    assert_eq!(values.as_object().unwrap().len(), known.len());
    for (name, op) in known {
        assert_eq!(values[name], op.number(), "{name}");
        assert_eq!(SecOp::of(op.number() << 29 | 0x1fff_ffff), op, "{name}");
    }
    let method = MethodAddr::new(0x1b4).unwrap();
    let run = |op| {
        Header::Run {
            op,
            subchannel: Subchannel::COPY,
            method,
            count: 3,
        }
        .encode()
        .unwrap()
    };
    assert_eq!(run(RunOp::Inc), 0x2003_806d);
    assert_eq!(run(RunOp::NonInc), 0x6003_806d);
    assert_eq!(run(RunOp::OneInc), 0xa003_806d);
    assert_eq!(run(RunOp::Grp0Inc), 3 << 18 | 4 << 13 | 0x1b4);
    assert_eq!(run(RunOp::Grp2NonInc), 2 << 29 | 3 << 18 | 4 << 13 | 0x1b4);
    let immediate = Header::Immediate {
        subchannel: Subchannel::COMPUTE,
        method,
        data: 0x1abc,
    };
    assert_eq!(immediate.encode().unwrap(), 0x9abc_206d);
    assert_eq!(
        Header::SetSubDevMask { mask: 0xabc }.encode().unwrap(),
        0x0001_abc0
    );
    assert_eq!(
        Header::StoreSubDevMask { mask: 0xabc }.encode().unwrap(),
        0x0002_abc0
    );
    assert_eq!(Header::UseSubDevMask.encode().unwrap(), 0x0003_0000);
    assert_eq!(Header::EndPbSegment.encode().unwrap(), 0xe000_0000);
    assert_eq!(Header::NOP.encode().unwrap(), 0);
}

/// Each header field lies where the facts say.
#[test]
fn header_fields_are_the_facts() {
    let facts = nv_tests::json("golden/facts/methods.json");
    let fields = &facts["host"]["NVC56F"]["dma_header"]["fields"];
    let mask = |name: &str| {
        let bit = |end: &str| u32_of(&fields[name][end]);
        (u32::MAX >> (31 - (bit("hi") - bit("lo")))) << bit("lo")
    };
    let run = |op, subchannel, method, count| {
        Header::Run {
            op,
            subchannel: Subchannel::new(subchannel).unwrap(),
            method: MethodAddr::new(method).unwrap(),
            count,
        }
        .encode()
        .unwrap()
    };
    for op in [RunOp::NonInc, RunOp::Grp2NonInc] {
        let old = op == RunOp::Grp2NonInc;
        let zero = run(op, 0, 0, 0);
        let top = if old { 0x1ffc } else { 0x3ffc };
        let (address, count) = if old {
            ("DMA_METHOD_ADDRESS_OLD", "DMA_METHOD_COUNT_OLD")
        } else {
            ("DMA_METHOD_ADDRESS", "DMA_METHOD_COUNT")
        };
        assert_eq!(run(op, 7, 0, 0) ^ zero, mask("DMA_METHOD_SUBCHANNEL"));
        assert_eq!(run(op, 0, top, 0) ^ zero, mask(address));
        assert_eq!(run(op, 0, 0, op.max_count()) ^ zero, mask(count));
    }
    let mask_of = |mask: u16| Header::SetSubDevMask { mask }.encode().unwrap();
    assert_eq!(mask_of(0xfff) ^ mask_of(0), mask("DMA_SUBDEVICE_MASK"));
}

/// The five kinds of run, and an immediate, as methods.
#[test]
fn runs_spread_over_methods() {
    let at = |method| MethodAddr::new(method).unwrap();
    let sub = Subchannel::new(3).unwrap();
    let spread = |op: RunOp| -> Vec<(usize, u16, u32)> {
        let raw = written(|push| push.run(op, sub, at(0x100), &[7, 8, 9]));
        PushReader::new(&raw)
            .writes()
            .map(|write| {
                let write = write.unwrap();
                assert_eq!((write.op, write.subchannel), (Some(op), sub));
                (write.offset, write.method.bytes(), write.data)
            })
            .collect()
    };
    assert_eq!(
        spread(RunOp::Inc),
        [(1, 0x100, 7), (2, 0x104, 8), (3, 0x108, 9)]
    );
    assert_eq!(
        spread(RunOp::Grp0Inc),
        [(1, 0x100, 7), (2, 0x104, 8), (3, 0x108, 9)]
    );
    assert_eq!(
        spread(RunOp::NonInc),
        [(1, 0x100, 7), (2, 0x100, 8), (3, 0x100, 9)]
    );
    assert_eq!(
        spread(RunOp::Grp2NonInc),
        [(1, 0x100, 7), (2, 0x100, 8), (3, 0x100, 9)]
    );
    assert_eq!(
        spread(RunOp::OneInc),
        [(1, 0x100, 7), (2, 0x104, 8), (3, 0x104, 9)]
    );

    let raw = written(|push| {
        push.header(&Header::NOP)?;
        push.immediate(sub, at(0x104), 0x1fff)
    });
    let writes: Vec<_> = PushReader::new(&raw).writes().map(Result::unwrap).collect();
    assert_eq!(writes.len(), 1);
    assert_eq!((writes[0].offset, writes[0].op), (1, None));
    assert_eq!((writes[0].method.bytes(), writes[0].data), (0x104, 0x1fff));

    // Nothing after the end of a segment is looked at, malformed or not.
    let raw = written(|push| push.header(&Header::EndPbSegment));
    let words = [raw[0], 0xdead_beef];
    let mut reader = PushReader::new(&words);
    assert_eq!(reader.next().unwrap().unwrap().header, Header::EndPbSegment);
    assert_eq!(reader.next(), None);
}

/// The helpers' packets: fills and copies of lines as the facts name them, a descriptor with its own methods.
#[test]
fn helpers_write_what_they_say() {
    use nv_proto::class::Generation;
    use nv_proto::pretty::{Bindings, lines};

    let names = |words: &[u32]| -> Vec<String> {
        lines(words, Bindings::of(Generation::Ada))
            .map(|line| line.unwrap().to_string()[36..].to_owned())
            .collect()
    };
    let fill = written(|push| {
        copy::fill(
            push,
            Subchannel::COPY,
            GpuVa(0x12_3456_7890),
            0xdead_beef,
            1000,
        )
    });
    assert_eq!(
        names(&fill),
        [
            "SET_REMAP_CONST_A 0xdeadbeef",
            "SET_REMAP_CONST_B 0x00000000",
            "SET_REMAP_COMPONENTS 0x00030004 DST_X=CONST_A COMPONENT_SIZE=FOUR",
            "OFFSET_OUT_UPPER 0x00000012",
            "OFFSET_OUT_LOWER 0x34567890",
            "LINE_LENGTH_IN 0x000003e8",
            "LAUNCH_DMA 0x00000582 DATA_TRANSFER_TYPE=NON_PIPELINED SRC_MEMORY_LAYOUT=PITCH \
             DST_MEMORY_LAYOUT=PITCH REMAP_ENABLE=TRUE",
        ]
    );
    let lines_of = written(|push| {
        let offsets = copy::Offsets {
            src: GpuVa(0x1_0000_0000),
            dst: GpuVa(0x2_0000_0000),
        };
        copy::lines(
            push,
            Subchannel::COPY,
            offsets,
            copy::Pitches { src: 64, dst: 128 },
            60,
            4,
        )
    });
    assert_eq!(lines_of.len(), 1 + 8 + 2);
    assert_eq!(
        names(&lines_of)[4..],
        [
            "PITCH_IN 0x00000040",
            "PITCH_OUT 0x00000080",
            "LINE_LENGTH_IN 0x0000003c",
            "LINE_COUNT 0x00000004",
            "LAUNCH_DMA 0x00000382 DATA_TRANSFER_TYPE=NON_PIPELINED SRC_MEMORY_LAYOUT=PITCH \
             DST_MEMORY_LAYOUT=PITCH MULTI_LINE_ENABLE=TRUE",
        ]
    );
    let inline = written(|push| {
        compute::inline_qmd(
            push,
            Subchannel::COMPUTE,
            GpuVa(0x1_0123_4567_8900),
            &[7; 96],
        )
    });
    assert_eq!(inline.len(), 1 + 2 + 1 + 96);
    assert_eq!(inline[1..3], [0x4000_0101, 0x2345_6789]);
    assert_eq!(inline[3], 1 << 29 | 96 << 16 | 1 << 13 | 0x320 >> 2);
}

/// Methods at addresses that follow on share a header when asked to.
#[test]
fn runs_join() {
    let sub = Subchannel::COPY;
    let joined = written(|push| {
        push.join(
            sub,
            &copy::Offsets {
                src: GpuVa(0x1_0000_0000),
                dst: GpuVa(0x2_0000_0000),
            },
        )?;
        push.join(sub, &copy::Pitches { src: 64, dst: 128 })?;
        push.join(sub, &copy::LineLengthIn(60))?;
        push.join(sub, &copy::LineCount(4))?;
        // Another subchannel, or another address, begins a header of its own.
        push.join(Subchannel::COMPUTE, &copy::LineCount(4))?;
        push.join(Subchannel::COMPUTE, &copy::LineCount(5))
    });
    assert_eq!(
        joined,
        [
            0x2008_8100,
            1,
            0,
            2,
            0,
            64,
            128,
            60,
            4, //
            0x2001_2107,
            4,
            0x2001_2107,
            5
        ]
    );
    // A run that could have been anything else is never added to.
    let apart = written(|push| {
        push.run(RunOp::NonInc, sub, copy::LINE_LENGTH_IN, &[1])?;
        push.join(sub, &copy::LineCount(4))?;
        push.header(&Header::NOP)?;
        push.join(sub, &copy::LineCount(4))
    });
    assert_eq!(apart.len(), 2 + 2 + 1 + 2);
}

#[test]
fn what_does_not_fit_is_refused() {
    let method = MethodAddr::new(0x3ffc).unwrap();
    let sub = Subchannel::HOST;
    let run = |op, method, count| {
        Header::Run {
            op,
            subchannel: sub,
            method,
            count,
        }
        .encode()
    };
    assert!(run(RunOp::Inc, method, 1).is_ok());
    assert!(run(RunOp::NonInc, method, 0x1fff).is_ok());
    assert!(run(RunOp::OneInc, method, 1).is_ok());
    for (op, count) in [(RunOp::Inc, 2), (RunOp::OneInc, 2)] {
        assert!(matches!(
            run(op, method, count),
            Err(EncodeError::IndexOutOfRange {
                field: "DMA_METHOD_ADDRESS",
                ..
            })
        ));
    }
    let overflow = |result: Result<u32, EncodeError>, name: &str| match result {
        Err(EncodeError::FieldOverflow { field, .. }) => assert_eq!(field, name),
        other => panic!("{name}: {other:?}"),
    };
    overflow(
        run(RunOp::Inc, MethodAddr::default(), 0x2000),
        "DMA_METHOD_COUNT",
    );
    overflow(
        run(RunOp::Grp0Inc, MethodAddr::default(), 0x800),
        "DMA_METHOD_COUNT",
    );
    overflow(run(RunOp::Grp0Inc, method, 1), "DMA_METHOD_ADDRESS_OLD");
    overflow(
        Header::SetSubDevMask { mask: 0x1000 }.encode(),
        "DMA_SUBDEVICE_MASK",
    );
    overflow(
        Header::Immediate {
            subchannel: sub,
            method,
            data: 0x2000,
        }
        .encode(),
        "DMA_IMMD_DATA",
    );
    assert!(Subchannel::new(7).is_ok() && Subchannel::new(8).is_err());
    assert!(matches!(
        MethodAddr::new(0x101),
        Err(EncodeError::Misaligned { .. })
    ));
    assert!(matches!(
        MethodAddr::new(0x4000),
        Err(EncodeError::FieldOverflow { .. })
    ));

    let mut buffer = [0; 0x2010];
    let mut push = PushWriter::new(&mut buffer);
    assert!(push.run(RunOp::NonInc, sub, method, &[0; 0x2000]).is_err());
    let with_data = Header::Run {
        op: RunOp::Inc,
        subchannel: sub,
        method,
        count: 1,
    };
    assert!(push.header(&with_data).is_err());
    assert!(push.is_empty());
}

/// Fields that a typed method checks, one by one.
#[test]
fn typed_methods_check_their_fields() {
    let mut buffer = [0; 64];
    let mut push = PushWriter::new(&mut buffer);
    let mut refused =
        |name: &str, result: &dyn Fn(&mut PushWriter<'_>) -> Result<(), EncodeError>| {
            match result(&mut push) {
                Err(
                    EncodeError::FieldOverflow { field, .. }
                    | EncodeError::Misaligned { field, .. }
                    | EncodeError::Unsupported { what: field, .. },
                ) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
            assert!(push.is_empty());
        };
    let sub = Subchannel::COMPUTE;
    let high = GpuVa(1 << 49);
    refused("SEM_ADDR_HI_OFFSET", &|p| {
        p.write(sub, &host::SemAcquire::geq(GpuVa(1 << 40), 0))
    });
    refused("SEM_ADDR_LO_OFFSET", &|p| {
        p.write(sub, &host::SemAcquire::geq(GpuVa(4), 0))
    });
    refused("SEM_ADDR_LO_OFFSET", &|p| {
        p.write(sub, &host::SemRelease::with_timestamp(GpuVa(8), 0))
    });
    refused("SEM_PAYLOAD_LO", &|p| {
        let execute = host::SemExecute::default();
        p.write(
            sub,
            &host::Semaphore {
                at: GpuVa(0),
                payload: 1 << 32,
                execute,
            },
        )
    });
    refused(
        "a SEM_EXECUTE_OPERATION that does not wait, as an acquire",
        &|p| {
            let until = host::SemOperation::Release;
            p.write(
                sub,
                &host::SemAcquire {
                    until,
                    ..host::SemAcquire::geq(GpuVa(0), 0)
                },
            )
        },
    );
    refused(
        "a MEM_OP_D_OPERATION that is none of the cache's, as one",
        &|p| p.write(sub, &host::MemOp::Cache(host::MemOperation::Membar)),
    );
    refused("SET_OBJECT_NVCLASS", &|p| {
        p.write(
            sub,
            &host::SetObject {
                class: ClassId(0x1_0000),
            },
        )
    });
    refused("SEND_PCAS_A_QMD_ADDRESS_SHIFTED8", &|p| {
        p.write(sub, &compute::SendPcas { qmd: GpuVa(0x80) })
    });
    refused("SEND_PCAS_A_QMD_ADDRESS_SHIFTED8", &|p| {
        p.write(
            sub,
            &compute::SendPcas {
                qmd: GpuVa(1 << 40),
            },
        )
    });
    refused("SEND_SIGNALING_PCAS2_B_OFFSET_MINUS_ONE", &|p| {
        let over = compute::SendSignalingPcas2 {
            offset_minus_one: 1 << 10,
            ..Default::default()
        };
        p.write(sub, &over)
    });
    refused("OFFSET_OUT_UPPER_VALUE", &|p| {
        p.write(sub, &compute::OffsetOut { at: high })
    });
    refused(
        "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C_MAX_SM_COUNT",
        &|p| {
            p.write(
                sub,
                &compute::SetShaderLocalMemoryNonThrottled {
                    bytes_per_tpc: 0,
                    max_sm_count: 512,
                },
            )
        },
    );
    refused("OFFSET_IN_UPPER_UPPER", &|p| {
        p.write(
            sub,
            &copy::Offsets {
                src: high,
                dst: GpuVa(0),
            },
        )
    });
    refused("OFFSET_OUT_UPPER_UPPER", &|p| {
        // The first launch would fit; nothing of it stays.
        copy::linear(
            p,
            sub,
            GpuVa((1 << 49) - 0x8000_0000),
            GpuVa(0),
            0x8000_0001,
        )
    });
    refused(
        "a LINE_LENGTH_IN that is not as long as the words given",
        &|p| compute::upload(p, sub, GpuVa(0), 9, &[0, 0]),
    );
    refused(
        "a launch descriptor that is neither 64 nor 96 words long",
        &|p| compute::inline_qmd(p, sub, GpuVa(0), &[0; 95]),
    );
    refused(
        "SET_INLINE_QMD_ADDRESS_B_QMD_ADDRESS_SHIFTED8_LOWER",
        &|p| compute::inline_qmd(p, sub, GpuVa(0x80), &[0; 96]),
    );
    // Endless without the buffer's end.
    assert!(matches!(
        copy::linear(&mut push, sub, GpuVa(0), GpuVa(0), u64::MAX),
        Err(EncodeError::BufferTooSmall { .. })
    ));
    assert!(push.is_empty());
}

/// Words that are no header, each with the place and value that the error names.
#[test]
fn malformed_headers_are_found() {
    let nop = 0;
    for bad in [
        6 << 29,                   // reserved operation
        1 << 29 | 1 << 12,         // bit 12
        4 << 29 | 1 << 12,         // bit 12 of an immediate
        1 << 29 | 2 << 16 | 0xfff, // runs past the end
        5 << 29 | 2 << 16 | 0xfff, // runs past the end
        7 << 29 | 1,               // END_PB_SEGMENT with operands
        2,                         // old header, bits 1:0
        2 << 29 | 1 << 16,         // GRP2 with a third operation
        1 << 16 | 1,               // mask with bits below
        3 << 16 | 1 << 4,          // USE with a mask
    ] {
        let words = [nop, bad, 0, 0];
        let mut reader = PushReader::new(&words);
        assert!(reader.next().unwrap().is_ok());
        match reader.next() {
            Some(Err(DecodeError::BadValue {
                offset: 4, value, ..
            })) => {
                assert_eq!(value, u64::from(bad));
            }
            other => panic!("{bad:#x}: {other:?}"),
        }
        assert_eq!(reader.next(), None, "an error is the last answer");
    }
    let cut = [1 << 29 | 3 << 16, 1, 2];
    let error = PushReader::new(&cut).writes().next().unwrap().unwrap_err();
    assert_eq!(
        error,
        DecodeError::Truncated {
            what: "data words of a method header",
            offset: 0,
            needed: 12,
            available: 8
        }
    );
}

proptest! {
    /// Any words at all: the reader ends, its packets tile what it read, and write back to the same words.
    #[test]
    fn readers_are_total(words in proptest::collection::vec(header_like(), 0..64)) {
        let mut at = 0;
        let mut methods = 0;
        for packet in PushReader::new(&words) {
            let Ok(packet) = packet else { break };
            prop_assert_eq!(packet.offset, at);
            prop_assert_eq!(packet.header.encode().unwrap(), words[at]);
            prop_assert_eq!(packet.data, &words[at + 1..at + 1 + usize::from(packet.header.count())]);
            at += 1 + packet.data.len();
            methods += packet.writes().count();
        }
        let ok = PushReader::new(&words).writes().take_while(Result::is_ok).count();
        prop_assert_eq!(ok, methods);
    }

    #[test]
    fn headers_round_trip(word: u32) {
        if let Ok(header) = Header::decode(word, 0) {
            prop_assert_eq!(header.encode(), Ok(word));
        }
    }

    #[test]
    fn words_round_trip(word: u32) {
        macro_rules! check {
            ($($name:ty),+) => { $(
                if let Ok(decoded) = <$name>::decode(word) {
                    prop_assert_eq!(decoded.encode(), Ok(word));
                }
                // Within the defined bits, a word without a bad number decodes.
                let defined = <$name>::FIELDS.iter().fold(0, |all, field| all | field.spec.mask());
                if let Ok(decoded) = <$name>::decode(word & defined) {
                    prop_assert_eq!(decoded.encode(), Ok(word & defined));
                }
            )+ };
        }
        check!(
            host::SemExecute, host::Wfi, host::SetObjectWord,
            compute::InvalidateShaderCaches, compute::InvalidateShaderCachesNoWfi,
            compute::SendSignalingPcas, compute::SendSignalingPcas2, compute::LaunchDma,
            compute::ReportSemaphoreD, compute::SetQmdVersion, compute::SetSpaVersion,
            copy::LaunchDma, copy::SetRemapComponents
        );
    }
}

/// Words that are often headers of few words, so that packets follow on packets.
fn header_like() -> impl Strategy<Value = u32> {
    let run = (
        prop::sample::select(vec![1_u32, 3, 4, 5, 7, 0, 2]),
        0_u32..4,
        0_u32..8,
        0_u32..0x1000,
    )
        .prop_map(|(op, count, sub, method)| op << 29 | count << 16 | sub << 13 | method);
    let old = (
        prop::sample::select(vec![0_u32, 2]),
        0_u32..4,
        0_u32..8,
        0_u32..0x800,
    )
        .prop_map(|(op, count, sub, method)| op << 29 | count << 18 | sub << 13 | method << 2);
    prop_oneof![6 => run, 2 => old, 1 => any::<u32>(), 1 => Just(0)]
}

/// What can be done with a writer.
#[derive(Clone, Debug)]
enum Step {
    Run(RunOp, u8, u16, Vec<u32>),
    Immediate(u8, u16, u16),
    Header(Header),
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop::sample::select(vec![
        RunOp::Inc,
        RunOp::NonInc,
        RunOp::OneInc,
        RunOp::Grp0Inc,
        RunOp::Grp2NonInc,
    ]);
    let header = prop_oneof![
        Just(Header::NOP),
        Just(Header::UseSubDevMask),
        (0_u16..0x1000).prop_map(|mask| Header::SetSubDevMask { mask }),
        (0_u16..0x1000).prop_map(|mask| Header::StoreSubDevMask { mask }),
    ];
    prop_oneof![
        4 => (op, 0_u8..8, 0_u16..0x7f0, proptest::collection::vec(any::<u32>(), 0..12))
            .prop_map(|(op, sub, method, data)| Step::Run(op, sub, method * 4, data)),
        1 => (0_u8..8, 0_u16..0x1000, 0_u16..0x2000)
            .prop_map(|(sub, method, data)| Step::Immediate(sub, method * 4, data)),
        1 => header.prop_map(Step::Header),
    ]
}

proptest! {
    /// What is written is what is read, and a buffer too short takes nothing.
    #[test]
    fn writes_come_back(steps in proptest::collection::vec(step(), 0..12), short in 0_usize..40) {
        let apply = |push: &mut PushWriter<'_>, step: &Step| match step {
            Step::Run(op, sub, method, data) => push.run(
                *op,
                Subchannel::new(*sub).unwrap(),
                MethodAddr::new(*method).unwrap(),
                data,
            ),
            Step::Immediate(sub, method, data) => push.immediate(
                Subchannel::new(*sub).unwrap(),
                MethodAddr::new(*method).unwrap(),
                *data,
            ),
            Step::Header(header) => push.header(header),
        };
        let mut buffer = [0xa5a5_a5a5; 256];
        let mut push = PushWriter::new(&mut buffer);
        for step in &steps {
            apply(&mut push, step).unwrap();
        }
        let words = push.finish().to_vec();
        let packets: Vec<_> = PushReader::new(&words).map(Result::unwrap).collect();
        prop_assert_eq!(packets.len(), steps.len());
        for (packet, step) in packets.iter().zip(&steps) {
            match step {
                Step::Run(op, sub, method, data) => {
                    prop_assert_eq!(packet.data, data.as_slice());
                    let expected = Header::Run {
                        op: *op,
                        subchannel: Subchannel::new(*sub).unwrap(),
                        method: MethodAddr::new(*method).unwrap(),
                        count: u16::try_from(data.len()).unwrap(),
                    };
                    prop_assert_eq!(packet.header, expected);
                }
                Step::Immediate(sub, method, data) => {
                    let expected = Header::Immediate {
                        subchannel: Subchannel::new(*sub).unwrap(),
                        method: MethodAddr::new(*method).unwrap(),
                        data: *data,
                    };
                    prop_assert_eq!(packet.header, expected);
                }
                Step::Header(header) => prop_assert_eq!(packet.header, *header),
            }
        }

        let mut buffer = vec![0xa5a5_a5a5; short];
        let mut push = PushWriter::new(&mut buffer);
        for step in &steps {
            let before = push.words().to_vec();
            if apply(&mut push, step).is_err() {
                prop_assert_eq!(push.words(), before);
            }
        }
        prop_assert!(push.len() <= short);
        let used = push.len();
        prop_assert!(buffer[used..].iter().all(|word| *word == 0xa5a5_a5a5));
    }
}
