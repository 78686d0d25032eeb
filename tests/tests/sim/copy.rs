//! The copy engine.

use nv_proto::EncodeError;
use nv_proto::push::compute::MemoryLayout;
use nv_proto::push::copy::{
    self, AddressType, DataTransferType, LaunchDma, LineCount, LineLengthIn, OffsetOut, Offsets,
    OneToFour, Pitches, RemapSource, SemaphoreReduction, SemaphoreType, SetRemapComponents,
    SetRemapConst, SetSemaphore, SetSemaphore64,
};
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::unit::GpuVa;
use nv_sim::Chip;

use crate::rig::{Buffer, Channel, Rig};

const COPY: Subchannel = Subchannel::COPY;

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8)
        .collect()
}

/// Runs the methods and waits for a semaphore release after them.
fn run(
    channel: &mut Channel,
    done: &Buffer,
    write: impl FnOnce(&mut PushWriter<'_>) -> Result<(), EncodeError>,
) {
    done.set_u64(0, 0);
    channel.submit(|push| {
        write(push)?;
        push.write(
            COPY,
            &SetSemaphore {
                at: done.va,
                payload: 1,
            },
        )?;
        push.write(COPY, &LaunchDma::release())
    });
    done.wait_u64(0, 1);
}

#[test]
fn linear_copies_of_every_alignment() {
    for chip in Chip::ALL {
        let rig = Rig::new(chip);
        let mut channel = rig.channel();
        let (source, target, done) = (
            rig.host_buffer(8192),
            rig.buffer(8192),
            rig.host_buffer(4096),
        );
        let data = pattern(8192);
        source.write(0, &data);
        for (from, to, length) in [
            (0, 0, 8192),
            (1, 0, 100),
            (3, 5, 4097),
            (8, 16, 1),
            (7, 7, 999),
        ] {
            target.fill(0xa5);
            run(&mut channel, &done, |push| {
                copy::linear(push, COPY, target.at(to), source.at(from), length)
            });
            let back = target.bytes();
            let (from, to, length) = (from as usize, to as usize, length as usize);
            assert_eq!(back[to..to + length], data[from..from + length]);
            assert!(
                back[..to]
                    .iter()
                    .chain(&back[to + length..])
                    .all(|byte| *byte == 0xa5)
            );
        }
        assert_eq!(rig.last_fault(&channel), None);
    }
}

#[test]
fn copies_in_two_dimensions() {
    let rig = Rig::new(Chip::Gh100);
    let mut channel = rig.channel();
    let (source, target, done) = (rig.buffer(4096), rig.buffer(4096), rig.host_buffer(4096));
    let data = pattern(4096);
    source.write(0, &data);
    target.fill(0xa5);
    run(&mut channel, &done, |push| {
        push.write(
            COPY,
            &Offsets {
                src: source.at(10),
                dst: target.at(3),
            },
        )?;
        push.write(COPY, &Pitches { src: 100, dst: 64 })?;
        push.write(COPY, &LineLengthIn(37))?;
        push.write(COPY, &LineCount(20))?;
        push.write(
            COPY,
            &LaunchDma {
                multi_line_enable: true,
                ..LaunchDma::linear()
            },
        )
    });
    let mut expected = vec![0xa5; 4096];
    for line in 0..20 {
        expected[3 + line * 64..][..37].copy_from_slice(&data[10 + line * 100..][..37]);
    }
    assert_eq!(target.bytes(), expected);
    // Without MULTI_LINE_ENABLE the line count is not looked at.
    target.fill(0xa5);
    run(&mut channel, &done, |push| {
        push.write(COPY, &LaunchDma::linear())
    });
    let mut expected = vec![0xa5; 4096];
    expected[3..40].copy_from_slice(&data[10..47]);
    assert_eq!(target.bytes(), expected);
}

#[test]
fn fills_and_remaps() {
    let rig = Rig::new(Chip::Gh100);
    let mut channel = rig.channel();
    let (source, target, done) = (rig.buffer(8192), rig.buffer(8192), rig.host_buffer(4096));
    target.fill(0xa5);
    run(&mut channel, &done, |push| {
        copy::fill(push, COPY, target.at(4), 0xdead_beef, 700)
    });
    for i in 0..702 {
        let expected = if i == 0 || i == 701 {
            0xa5a5_a5a5
        } else {
            0xdead_beef
        };
        assert_eq!(target.u32(i * 4), expected, "{i}");
    }

    // Two bytes a component, three of them from four: z, a constant, the old value.
    let data = pattern(8192);
    source.write(0, &data);
    target.fill(0x5a);
    run(&mut channel, &done, |push| {
        push.write(
            COPY,
            &SetRemapConst {
                a: 1,
                b: 0x1234_abcd,
            },
        )?;
        push.write(
            COPY,
            &SetRemapComponents {
                dst_x: RemapSource::SrcZ,
                dst_y: RemapSource::ConstB,
                dst_z: RemapSource::NoWrite,
                dst_w: RemapSource::SrcW,
                component_size: OneToFour::Two,
                num_src_components: OneToFour::Four,
                num_dst_components: OneToFour::Three,
            },
        )?;
        push.write(
            COPY,
            &Offsets {
                src: source.at(0),
                dst: target.at(0),
            },
        )?;
        push.write(COPY, &LineLengthIn(600))?;
        push.write(
            COPY,
            &LaunchDma {
                remap_enable: true,
                ..LaunchDma::linear()
            },
        )
    });
    let mut expected = vec![0x5a; 8192];
    for i in 0..600 {
        expected[i * 6..][..2].copy_from_slice(&data[i * 8 + 4..][..2]);
        expected[i * 6 + 2..][..2].copy_from_slice(&[0xcd, 0xab]);
    }
    assert_eq!(target.bytes(), expected);
}

#[test]
fn semaphores_of_every_size() {
    let rig = Rig::new(Chip::Gh100);
    let mut channel = rig.channel();
    let (memory, done) = (rig.host_buffer(4096), rig.host_buffer(4096));
    memory.fill(0xa5);
    memory.set_u64(0x40, 40);
    let one = LaunchDma {
        semaphore_type: SemaphoreType::OneWord,
        ..LaunchDma::default()
    };
    run(&mut channel, &done, |push| {
        push.write(
            COPY,
            &SetSemaphore {
                at: memory.at(4),
                payload: 11,
            },
        )?;
        push.write(COPY, &one)?;
        push.write(
            COPY,
            &SetSemaphore {
                at: memory.at(0x10),
                payload: 12,
            },
        )?;
        push.write(COPY, &LaunchDma::release())?;
        push.write(
            COPY,
            &SetSemaphore64 {
                at: memory.at(0x28),
                payload: 0x1_0000_0002,
            },
        )?;
        push.write(
            COPY,
            &LaunchDma {
                semaphore_payload_two_word: true,
                ..one
            },
        )?;
        push.write(
            COPY,
            &SetSemaphore {
                at: memory.at(0x40),
                payload: 2,
            },
        )?;
        push.write(
            COPY,
            &LaunchDma {
                semaphore_reduction_enable: true,
                semaphore_reduction: SemaphoreReduction::Add,
                semaphore_reduction_unsigned: true,
                ..one
            },
        )
    });
    let untouched = 0xa5a5_a5a5_a5a5_a5a5;
    assert_eq!(
        (memory.u64(0), memory.u64(8)),
        (11 << 32 | 0xa5a5_a5a5, untouched)
    );
    assert_eq!(memory.u64(0x10), 12);
    assert!(memory.u64(0x18) != untouched && memory.u64(0x18) > 0);
    assert_eq!(
        (memory.u64(0x20), memory.u64(0x28)),
        (untouched, 0x1_0000_0002)
    );
    assert_eq!((memory.u64(0x30), memory.u64(0x40)), (untouched, 42));
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let rig = Rig::new(Chip::Gh100);
    let buffer = rig.buffer(4096);
    let linear = LaunchDma::linear();
    let cases = [
        (
            LaunchDma {
                src_type: AddressType::Physical,
                ..linear
            },
            "physical",
        ),
        (
            LaunchDma {
                dst_type: AddressType::Physical,
                ..linear
            },
            "physical",
        ),
        (
            LaunchDma {
                src_memory_layout: MemoryLayout::BlockLinear,
                ..linear
            },
            "block-linear",
        ),
        (
            LaunchDma {
                copy_type: 1,
                ..linear
            },
            "copy type",
        ),
    ];
    for (launch, word) in cases {
        let mut channel = rig.channel();
        channel.submit(|push| {
            push.write(
                COPY,
                &Offsets {
                    src: buffer.at(0),
                    dst: buffer.at(64),
                },
            )?;
            push.write(COPY, &LineLengthIn(8))?;
            push.write(COPY, &launch)
        });
        let text = rig.fault(&channel);
        assert!(text.contains(word), "{text}");
        assert_eq!(channel.notifier.u32(8), 39);
    }
    // Faults name the address, and what was there before it is copied.
    let mut channel = rig.channel();
    buffer.write(0, &pattern(4096));
    channel.submit(|push| {
        push.write(
            COPY,
            &OffsetOut {
                dst: GpuVa(0x66_0000_0000),
            },
        )?;
        copy::linear(push, COPY, GpuVa(0x66_0000_0000), buffer.va, 16)
    });
    let text = rig.fault(&channel);
    assert!(text.contains("write at 0x6600000000"), "{text}");
    assert_eq!(channel.notifier.u32(8), 31);
    let none = LaunchDma {
        data_transfer_type: DataTransferType::None,
        ..linear
    };
    let mut channel = rig.channel();
    let done = rig.host_buffer(4096);
    run(&mut channel, &done, |push| push.write(COPY, &none));
}
