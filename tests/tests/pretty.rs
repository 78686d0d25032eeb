//! Streams as text: what NVIDIA's library wrote on an H200 is named throughout, and the lines say what they
//! should.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

use nv_proto::class::{self, Generation};
use nv_proto::pretty::{Bindings, Data, Line, lines};
use nv_proto::push::{
    Header, MethodAddr, PushReader, PushWriter, RunOp, Subchannel, compute, host,
};
use nv_proto::unit::{ClassId, GpuVa};
use proptest::prelude::*;
use serde_json::Value;

fn words(value: &Value) -> Vec<u32> {
    let words = value.as_array().unwrap().iter();
    words
        .map(|word| u32::try_from(word.as_u64().unwrap()).unwrap())
        .collect()
}

/// A captured list of methods as words.
fn packed(methods: &Value) -> Vec<u32> {
    let mut buffer = vec![0; 1 << 16];
    let mut push = PushWriter::new(&mut buffer);
    for entry in methods.as_array().unwrap() {
        let op = match entry["op"].as_str().unwrap() {
            "INC" | "INC_METHOD" => RunOp::Inc,
            "NON_INC" | "NON_INC_METHOD" => RunOp::NonInc,
            other => panic!("{other}"),
        };
        let subchannel = entry
            .get("sub")
            .unwrap_or(&entry["subchannel"])
            .as_u64()
            .unwrap();
        let method = u16::try_from(entry["method"].as_u64().unwrap()).unwrap();
        push.run(
            op,
            Subchannel::new(u8::try_from(subchannel).unwrap()).unwrap(),
            MethodAddr::new(method).unwrap(),
            &words(&entry["data"]),
        )
        .unwrap();
    }
    push.finish().to_vec()
}

fn text(words: &[u32], bindings: Bindings) -> Vec<String> {
    lines(words, bindings)
        .map(|line| line.unwrap().to_string())
        .collect()
}

/// Every method of every captured stream has a name, and each single word has no bits outside of its
/// method's fields.
#[test]
fn the_vendors_streams_are_named() {
    let streams = nv_tests::json("golden/h200/cuda_streams.json");
    let launches = nv_tests::json("golden/h200/cuda_launches.json");
    let streams = streams["streams"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, s)| (n, &s["methods"]));
    let launches = launches["launches"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, l)| (n, &l["stream"]));
    let (mut seen, mut undocumented) = (0, Vec::new());
    for (name, methods) in streams.chain(launches) {
        let words = packed(methods);
        for line in lines(&words, Bindings::of(Generation::Hopper)) {
            let Line::Method(line) = line.unwrap() else {
                panic!("{name}: a header without data")
            };
            let named = line
                .named
                .unwrap_or_else(|| panic!("{name}: {line} has no name"));
            // Host methods are named by the newest header that has all of them.
            let class = named.class;
            let right = if line.method.is_host() {
                [
                    class::AMPERE_CHANNEL_GPFIFO_B,
                    class::HOPPER_CHANNEL_GPFIFO_A,
                ]
                .contains(&class)
            } else {
                class == class::HOPPER_COMPUTE_A
            };
            assert!(right, "{name}: {line} is named by {class:?}");
            if let Some(word) = line.data.single() {
                let known = named
                    .info
                    .fields
                    .iter()
                    .fold(0, |all, field| all | field.spec.mask());
                if word & !known != 0 {
                    undocumented.push((named.info.name, word & !known));
                }
            }
            seen += 1;
        }
    }
    assert!(seen > 1800, "only {seen} methods");
    undocumented.sort_unstable();
    undocumented.dedup();
    assert_eq!(undocumented, [], "bits that no header defines");
}

/// The reference's set-up of local memory, line by line.
#[test]
fn lines_say_what_is_done() {
    let golden = nv_tests::json("golden/seed/cases.json");
    let setup = text(
        &words(&golden["queues"]["setup_local_mem"]["words"]),
        Bindings::of(Generation::AmpereGa10x),
    );
    assert_eq!(
        setup,
        [
            "     1 0 AMPERE_CHANNEL_GPFIFO_A    SEM_ADDR_LO 0x00370050",
            "     2 0 AMPERE_CHANNEL_GPFIFO_A    SEM_ADDR_HI 0x00000050",
            "     3 0 AMPERE_CHANNEL_GPFIFO_A    SEM_PAYLOAD_LO 0x00000007",
            "     4 0 AMPERE_CHANNEL_GPFIFO_A    SEM_PAYLOAD_HI 0x00000000",
            "     5 0 AMPERE_CHANNEL_GPFIFO_A    SEM_EXECUTE 0x01000003 OPERATION=ACQ_CIRC_GEQ \
             PAYLOAD_SIZE=64BIT",
            "     7 1 AMPERE_COMPUTE_B           SET_SHADER_LOCAL_MEMORY_A 0x00000020",
            "     8 1 AMPERE_COMPUTE_B           SET_SHADER_LOCAL_MEMORY_B 0x40000000",
            "    10 1 AMPERE_COMPUTE_B           SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A 0x00000000",
            "    11 1 AMPERE_COMPUTE_B           SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B 0x00128000",
            "    12 1 AMPERE_COMPUTE_B           SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C 0x000000ff",
            "    14 0 AMPERE_CHANNEL_GPFIFO_A    SEM_ADDR_LO 0x00370050",
            "    15 0 AMPERE_CHANNEL_GPFIFO_A    SEM_ADDR_HI 0x00000050",
            "    16 0 AMPERE_CHANNEL_GPFIFO_A    SEM_PAYLOAD_LO 0x00000008",
            "    17 0 AMPERE_CHANNEL_GPFIFO_A    SEM_PAYLOAD_HI 0x00000000",
            "    18 0 AMPERE_CHANNEL_GPFIFO_A    SEM_EXECUTE 0x03100001 OPERATION=RELEASE \
             RELEASE_WFI=EN PAYLOAD_SIZE=64BIT RELEASE_TIMESTAMP=EN",
            "    20 0 AMPERE_CHANNEL_GPFIFO_A    NON_STALL_INTERRUPT 0x00000000",
        ]
    );
}

/// Words bind classes as they go: before, methods above 0x100 have no name.
#[test]
fn set_object_binds() {
    let mut buffer = [0; 32];
    let mut push = PushWriter::new(&mut buffer);
    let sub = Subchannel::new(3).unwrap();
    push.write(sub, &compute::NoOperation::default()).unwrap();
    push.write(
        sub,
        &host::SetObject {
            class: class::HOPPER_DMA_COPY_A,
        },
    )
    .unwrap();
    push.immediate(sub, MethodAddr::new(0x300).unwrap(), 0x182)
        .unwrap();
    push.write(
        sub,
        &host::SetObject {
            class: ClassId(0x1234),
        },
    )
    .unwrap();
    push.write(sub, &compute::NoOperation { v: 5 }).unwrap();
    push.header(&Header::NOP).unwrap();
    push.header(&Header::SetSubDevMask { mask: 0xfff }).unwrap();
    push.run(RunOp::Inc, sub, MethodAddr::new(0x100).unwrap(), &[])
        .unwrap();
    push.header(&Header::EndPbSegment).unwrap();
    let words = push.finish();
    let mut named = lines(words, Bindings::NONE);
    let text: Vec<String> = named
        .by_ref()
        .map(|line| line.unwrap().to_string())
        .collect();
    assert_eq!(
        text,
        [
            "     1 3 ?                          0x100 0x00000000",
            "     3 3 AMPERE_CHANNEL_GPFIFO_A    SET_OBJECT 0x0000c8b5 NVCLASS=HOPPER_DMA_COPY_A",
            "     4 3 HOPPER_DMA_COPY_A          LAUNCH_DMA 0x00000182 DATA_TRANSFER_TYPE=NON_PIPELINED \
             SRC_MEMORY_LAYOUT=PITCH DST_MEMORY_LAYOUT=PITCH",
            "     6 3 AMPERE_CHANNEL_GPFIFO_A    SET_OBJECT 0x00001234 NVCLASS=0x1234",
            "     8 3 0x1234                     0x100 0x00000005",
            "     9 - NOP",
            "    10 - SET_SUB_DEV_MASK 0xfff",
            "    11 - INC_METHOD of no words to 0x100 of subchannel 3",
            "    12 - END_PB_SEGMENT",
        ]
    );
    assert_eq!(
        named.bindings().class(sub, MethodAddr::new(0x100).unwrap()),
        Some(ClassId(0x1234))
    );
}

/// `MEM_OP_*` shows the fields of the operation that it is.
#[test]
fn memory_operations_show_their_own_fields() {
    use host::{MemOp, MembarType, TlbAck, TlbLevel};

    let show = |op: MemOp| {
        let mut buffer = [0; 5];
        let mut push = PushWriter::new(&mut buffer);
        push.write(Subchannel::HOST, &op).unwrap();
        let lines = text(push.finish(), Bindings::NONE);
        lines
            .iter()
            .map(|line| line[36..].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        show(MemOp::Membar(MembarType::Membar)),
        [
            "MEM_OP_A 0x00000000",
            "MEM_OP_B 0x00000000",
            "MEM_OP_C 0x00000001 MEMBAR_TYPE=MEMBAR",
            "MEM_OP_D 0x28000000 OPERATION=MEMBAR"
        ]
    );
    let page = Some(GpuVa(0x12_3456_7000));
    assert_eq!(
        show(MemOp::TlbInvalidate {
            pdb: None,
            page,
            level: TlbLevel::All,
            ack: TlbAck::Globally,
            sysmembar: true
        }),
        [
            "MEM_OP_A 0x34567800 TLB_INVALIDATE_SYSMEMBAR=EN \
             TLB_INVALIDATE_TARGET_ADDR_LO=0x34567",
            "MEM_OP_B 0x00000012",
            "MEM_OP_C 0x00000021 TLB_INVALIDATE_PDB=ALL TLB_INVALIDATE_ACK_TYPE=GLOBALLY",
            "MEM_OP_D 0x50000000 OPERATION=MMU_TLB_INVALIDATE_TARGETED"
        ]
    );
}

/// A long run to one method is one line; the words are all there.
#[test]
fn uploads_share_a_line() {
    let data: Vec<u32> = (0..96).collect();
    let mut buffer = [0; 128];
    let mut push = PushWriter::new(&mut buffer);
    compute::upload(&mut push, Subchannel::COMPUTE, GpuVa(0x1000), 384, &data).unwrap();
    push.run(
        RunOp::OneInc,
        Subchannel::COMPUTE,
        MethodAddr::new(0x1b0).unwrap(),
        &[0x41, 1, 2],
    )
    .unwrap();
    let words = push.finish();
    let lines: Vec<_> = lines(words, Bindings::of(Generation::Hopper))
        .map(Result::unwrap)
        .collect();
    let Line::Method(last) = lines[5] else {
        panic!()
    };
    assert_eq!(last.data, Data::Words(&data));
    assert!(
        last.to_string()
            .ends_with("LOAD_INLINE_DATA 96 words: 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 ...")
    );
    // ONE_INC: the first word, then the rest.
    let (Line::Method(first), Line::Method(rest)) = (lines[6], lines[7]) else {
        panic!()
    };
    assert_eq!(first.named.unwrap().info.name, "LAUNCH_DMA");
    assert_eq!(
        (rest.named.unwrap().info.name, rest.data),
        ("LOAD_INLINE_DATA", Data::Words(&[1, 2]))
    );
    assert_eq!(lines.len(), 8);
}

proptest! {
    /// Any words: the lines end where the reader ends, and hold every word that a method gets, in order.
    #[test]
    fn lines_are_total(words in proptest::collection::vec(header_like(), 0..48)) {
        let read: Vec<(usize, u16, u32)> = PushReader::new(&words)
            .writes()
            .map_while(Result::ok)
            .map(|write| (write.offset, write.method.bytes(), write.data))
            .collect();
        let mut shown = Vec::new();
        let mut error = None;
        for line in lines(&words, Bindings::of(Generation::Hopper)) {
            match line {
                Ok(Line::Method(line)) => {
                    prop_assert!(!line.to_string().is_empty());
                    let words = match line.data {
                        Data::Words(words) => words.to_vec(),
                        Data::Immediate(word) => vec![word],
                    };
                    for (index, word) in words.into_iter().enumerate() {
                        shown.push((line.offset + index, line.method.bytes(), word));
                    }
                }
                Ok(line @ Line::Header { .. }) => prop_assert!(!line.to_string().is_empty()),
                Err(found) => error = Some(found),
            }
        }
        prop_assert_eq!(shown, read);
        prop_assert_eq!(error, PushReader::new(&words).find_map(Result::err));
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
    prop_oneof![6 => run, 1 => any::<u32>(), 1 => Just(0)]
}
