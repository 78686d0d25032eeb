//! What NVIDIA's library wrote on an H200, run as it is.

use std::collections::BTreeSet;

use nv_proto::cubin::Cubin;
use nv_proto::push::host::SemRelease;
use nv_proto::push::{Header, MethodAddr, PushReader, RunOp, Subchannel, compute};
use nv_proto::qmd::value::QmdType;
use nv_proto::qmd::{Qmd, Version};
use nv_proto::unit::GpuVa;
use nv_sim::Chip;
use serde_json::Value;

use crate::rig::{Buffer, Channel, Rig, wait_for};

/// The words of a stream, from its methods.
fn stream(methods: &Value) -> Vec<u32> {
    let mut words = Vec::new();
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    for method in methods.as_array().unwrap() {
        let data: Vec<u32> = match &method["data"] {
            Value::Array(data) => data.iter().map(number).collect(),
            one => vec![number(one)],
        };
        let subchannel = Subchannel::new(number(&method["subchannel"]) as u8).unwrap();
        let address = MethodAddr::new(number(&method["method"]) as u16).unwrap();
        let run = |op| Header::Run {
            op,
            subchannel,
            method: address,
            count: data.len() as u16,
        };
        let header = match method["op"].as_str().unwrap() {
            "INC_METHOD" => run(RunOp::Inc),
            "NON_INC_METHOD" => run(RunOp::NonInc),
            "ONE_INC" => run(RunOp::OneInc),
            "IMMD_DATA_METHOD" => Header::Immediate {
                subchannel,
                method: address,
                data: data[0] as u16,
            },
            other => panic!("{other}"),
        };
        words.push(header.encode().unwrap());
        if header.count() > 0 {
            words.extend(data);
        }
    }
    words
}

/// Memory at every address of `places`, 2 MiB at a time.
fn map(rig: &Rig, places: impl IntoIterator<Item = u64>) -> Vec<Buffer> {
    const PAGE: u64 = 2 << 20;
    let pages: BTreeSet<u64> = places.into_iter().map(|va| va & !(PAGE - 1)).collect();
    pages
        .into_iter()
        .map(|va| rig.buffer_at(va, PAGE, false))
        .collect()
}

/// Stores bytes at an address of `memory`.
fn store(memory: &[Buffer], va: u64, bytes: &[u8]) {
    let buffer = memory
        .iter()
        .find(|buffer| (buffer.va.0..buffer.va.0 + (2 << 20)).contains(&va))
        .unwrap();
    buffer.write(va - buffer.va.0, bytes);
}

/// What a stream uploads through the pushbuffer: address and words.
fn uploads(words: &[u32]) -> Vec<(u64, Vec<u32>)> {
    let (mut upper, mut lower, mut all) = (0, 0, Vec::<(u64, Vec<u32>)>::new());
    for write in PushReader::new(words).writes() {
        let write = write.unwrap();
        match write.method {
            compute::OFFSET_OUT_UPPER => upper = write.data,
            compute::OFFSET_OUT => lower = write.data,
            compute::LAUNCH_DMA => {
                all.push((u64::from(upper) << 32 | u64::from(lower), Vec::new()));
            }
            compute::LOAD_INLINE_DATA => all.last_mut().unwrap().1.push(write.data),
            _ => {}
        }
    }
    all
}

/// Where reports of the compute engine are released.
fn releases(words: &[u32]) -> impl Iterator<Item = u64> {
    let (mut upper, mut all) = (0, Vec::new());
    for write in PushReader::new(words).writes() {
        let write = write.unwrap();
        match write.method {
            compute::SET_REPORT_SEMAPHORE_A => upper = write.data,
            compute::SET_REPORT_SEMAPHORE_B => {
                all.push(u64::from(upper) << 32 | u64::from(write.data));
            }
            _ => {}
        }
    }
    all.into_iter()
}

/// Where in a stream the first descriptor is named.
fn signal(words: &[u32]) -> usize {
    let mut packets = PushReader::new(words).map(Result::unwrap);
    let named =
        |header| matches!(header, Header::Run { method, .. } if method == compute::SEND_PCAS_A);
    packets.find(|packet| named(packet.header)).unwrap().offset
}

fn finish(rig: &Rig, channel: &mut Channel) {
    let semaphore = rig.host_buffer(4096);
    channel.submit(|push| {
        let release = SemRelease {
            at: semaphore.va,
            value: 1,
            wfi: true,
            timestamp: false,
        };
        push.write(Subchannel::HOST, &release)
    });
    wait_for("the stream or a fault", || {
        (semaphore.u64(0) == 1 || rig.last_fault(channel).is_some()).then_some(())
    });
    assert_eq!(rig.last_fault(channel), None);
}

#[test]
fn its_set_up_and_its_launch_of_a_vector_addition() {
    let golden = nv_tests::json("golden/h200/cuda_streams.json");
    let rig = Rig::new(Chip::Gh100);
    let mut channel = rig.channel();
    let streams = &golden["streams"];

    // Set-up waits for semaphores of the library's other channels, which have long passed here.
    // Its first launches follow: they are of the same kind as the one below.
    let mut init = stream(&streams["init"]["methods"]);
    init.truncate(signal(&init));
    let mut semaphores = BTreeSet::new();
    let (mut low, mut high) = (0, 0);
    for write in PushReader::new(&init).writes() {
        let write = write.unwrap();
        match write.method {
            nv_proto::push::host::SEM_ADDR_LO => low = write.data,
            nv_proto::push::host::SEM_ADDR_HI => high = write.data,
            nv_proto::push::host::SEM_EXECUTE => {
                semaphores.insert(u64::from(high) << 32 | u64::from(low));
            }
            _ => {}
        }
    }
    let vadd: Vec<u32> = streams["vadd"]["words"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_u64().unwrap() as u32)
        .collect();
    let uploaded = uploads(&vadd);
    let descriptors: Vec<(u64, Qmd)> = uploaded
        .iter()
        .filter(|(_, words)| words.len() == Version::V04_00.words())
        .map(|(va, words)| (*va, Qmd::decode(words).unwrap()))
        .collect();
    // An empty grid comes first: it waits for the kernel, and sets off the library's next one.
    let [(_, empty), (qmd_va, qmd)] = descriptors[..] else {
        panic!("{}", descriptors.len())
    };
    assert_eq!(
        (empty.kind(), qmd.kind()),
        (QmdType::GRID_NULL, QmdType::GRID_CTA)
    );
    let launch = qmd.launch().unwrap();

    let (_, bank) = uploaded
        .iter()
        .find(|(va, _)| launch.banks[0].is_some_and(|(bank, _)| bank.0 == *va))
        .unwrap();
    assert!(bank.len() * 4 <= 0x210);
    let (_, args) = uploaded
        .iter()
        .find(|(va, _)| launch.banks[0].unwrap().0.0 + 0x210 == *va)
        .unwrap();
    let pointer = |at: usize| u64::from(args[at + 1]) << 32 | u64::from(args[at]);
    let [a, b, c] = [0, 2, 4].map(pointer);
    let n = args[6];

    let mut places: Vec<u64> = uploaded.iter().map(|(va, _)| *va).collect();
    places.extend(launch.banks.iter().flatten().map(|(va, _)| va.0));
    places.extend(
        (0..3)
            .filter_map(|index| qmd.release(index))
            .map(|release| release.va.0),
    );
    places.extend(semaphores.iter().copied());
    places.extend([launch.program.0, launch.program.0 + 4096]);
    places.extend(releases(&vadd).chain(releases(&init)));
    for start in [a, b, c] {
        places.extend([start, start + u64::from(n) * 4]);
    }
    // What set-up and launches release.
    for upper in uploads(&init) {
        places.push(upper.0);
    }
    let memory = map(&rig, places);
    for semaphore in &semaphores {
        store(&memory, *semaphore, &u32::MAX.wrapping_shr(1).to_le_bytes());
    }

    // The program, from the file that the library loaded.
    let file = nv_tests::bytes("cubins/k/k.sm_90.cubin");
    let cubin = Cubin::parse(&file).unwrap();
    let kernel = cubin.kernel("vadd").unwrap();
    let code = cubin.section(kernel.text).unwrap().data();
    store(&memory, launch.program.0, code);
    assert_eq!(launch.program, GpuVa(launch.program.0 & !0x7f));
    let blocks = launch.grid.x * launch.block.x;
    // No array reaches into the next.
    let apart = ((b - a) / 4).min((c - b) / 4).min(u64::from(blocks.min(n)));
    for i in 0..apart {
        store(&memory, a + i * 4, &(i as f32 * 0.25).to_le_bytes());
        store(&memory, b + i * 4, &(1.0 - i as f32).to_le_bytes());
    }

    // The local memory that the library set up; how large it made it is not known, so as large as is needed.
    let local = stream(&streams["local_memory"]["methods"]);
    let mut place = 0;
    for write in PushReader::new(&local).writes() {
        let write = write.unwrap();
        match write.method {
            compute::SET_SHADER_LOCAL_MEMORY_A => place |= u64::from(write.data) << 32,
            compute::SET_SHADER_LOCAL_MEMORY_B => place |= u64::from(write.data),
            _ => {}
        }
    }
    let _local = rig.buffer_at(place, 448 << 20, false);

    channel.submit_words(&init);
    finish(&rig, &mut channel);
    channel.submit_words(&local);
    // The uploads in the library's words, up to its first signal; then the kernel's descriptor, which in the
    // library's own ring sets off others that are not here.
    let signal = vadd
        .iter()
        .position(|word| *word == 1 << 29 | 1 << 16 | 1 << 13 | 0x2b4 >> 2);
    channel.submit_words(&vadd[..signal.unwrap()]);
    let mut qmd = qmd;
    for index in 0..2 {
        qmd.set_dependent(index, None).unwrap();
    }
    let words: Vec<u32> = qmd.words().iter().map(|word| word.get()).collect();
    channel.submit(|push| {
        compute::upload(push, Subchannel::COMPUTE, GpuVa(qmd_va), 384, &words)?;
        push.write(
            Subchannel::COMPUTE,
            &compute::SendPcas { qmd: GpuVa(qmd_va) },
        )?;
        let signal = compute::SendSignalingPcas2::INVALIDATE_PREFETCH_COPY_SCHEDULE;
        push.write(Subchannel::COMPUTE, &signal)
    });
    finish(&rig, &mut channel);
    for release in (0..3).filter_map(|index| qmd.release(index)) {
        let buffer = memory
            .iter()
            .find(|buffer| (buffer.va.0..buffer.va.0 + (2 << 20)).contains(&release.va.0))
            .unwrap();
        let value = buffer.u32(release.va.0 - buffer.va.0);
        assert_eq!(u64::from(value), release.payload);
    }
    let out = memory
        .iter()
        .find(|buffer| (buffer.va.0..buffer.va.0 + (2 << 20)).contains(&c))
        .unwrap();
    assert_eq!((u64::from(n), apart), (32, 32));
    for i in 0..apart {
        let sum = i as f32 * 0.25 + (1.0 - i as f32);
        assert_eq!(out.u32(c - out.va.0 + i * 4), sum.to_bits(), "element {i}");
    }
}
