//! The host engine: rings, pushbuffers, semaphores, and what goes wrong with them.

use nv_proto::gpfifo::GpEntry;
use nv_proto::push::host::{
    self, NonStallInterrupt, SemAcquire, SemExecute, SemOperation, SemReduce, SemReduction,
    SemRelease, Semaphore, SetObject, Wfi,
};
use nv_proto::push::{Header, MethodAddr, PushWriter, RunOp, Subchannel};
use nv_proto::unit::{ClassId, GpuVa, SubmitToken};
use nv_proto::{EncodeError, rm};
use nv_sim::Chip;

use crate::rig::{Rig, wait_for, words};

const HOST: Subchannel = Subchannel::HOST;

fn release(at: GpuVa, value: u64) -> SemRelease {
    SemRelease {
        at,
        value,
        wfi: true,
        timestamp: false,
    }
}

#[test]
fn releases_store_payload_and_time() {
    for chip in Chip::ALL {
        let rig = Rig::new(chip);
        let mut channel = rig.channel();
        let memory = rig.host_buffer(4096);
        memory.fill(0xa5);
        let mut now = rm::TimerGetTime::default();
        rig.control(rig.subdevice, &mut now).unwrap();
        channel.submit(|push| {
            push.write(
                HOST,
                &SemRelease::with_timestamp(memory.at(0x10), 0x1122_3344_5566_7788),
            )?;
            push.write(HOST, &release(memory.at(0x30), 0x99aa_bbcc_ddee_ff00))?;
            let execute = SemExecute {
                operation: SemOperation::Release,
                ..SemExecute::default()
            };
            push.write(
                HOST,
                &Semaphore {
                    at: memory.at(0x44),
                    payload: 0xdead_beef,
                    execute,
                },
            )?;
            let timed = SemExecute {
                release_timestamp: true,
                ..execute
            };
            push.write(
                HOST,
                &Semaphore {
                    at: memory.at(0x50),
                    payload: 7,
                    execute: timed,
                },
            )?;
            push.write(HOST, &NonStallInterrupt)?;
            push.write(HOST, &release(memory.at(0), 1))
        });
        memory.wait_u64(0, 1);
        let untouched = 0xa5a5_a5a5_a5a5_a5a5;
        assert_eq!(memory.u64(0x8), untouched);
        assert_eq!(memory.u64(0x10), 0x1122_3344_5566_7788);
        assert!(memory.u64(0x18) >= now.time_nsec.get());
        assert_eq!(memory.u64(0x20), untouched);
        assert_eq!(memory.u64(0x30), 0x99aa_bbcc_ddee_ff00);
        assert_eq!(memory.u64(0x38), untouched);
        assert_eq!(memory.u64(0x40), 0xdead_beef_a5a5_a5a5);
        assert_eq!(memory.u64(0x48), untouched);
        assert_eq!(memory.u64(0x50), 7);
        assert!(memory.u64(0x58) >= memory.u64(0x18), "time goes on");
        assert_eq!(channel.get(), 2);
        assert_eq!(rig.last_fault(&channel), None);
    }
}

#[test]
fn acquires_wait_and_other_channels_go_on() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let (mut first, mut second) = (rig.channel(), rig.channel());
    first.submit(|push| {
        push.write(HOST, &release(memory.at(0), 1))?;
        push.write(HOST, &SemAcquire::geq(memory.at(8), 5))?;
        push.write(HOST, &release(memory.at(0), 2))
    });
    memory.wait_u64(0, 1);
    // Waiting, with the words after the acquire not run; the ring goes on.
    second.submit(|push| push.write(HOST, &release(memory.at(16), 3)));
    memory.wait_u64(16, 3);
    memory.stays(0, 1);
    // A CPU's store is enough, without a doorbell.
    memory.set_u64(8, 4);
    memory.stays(0, 1);
    memory.set_u64(8, 6);
    memory.wait_u64(0, 2);
    // One channel signals another.
    first.submit(|push| {
        push.write(HOST, &SemAcquire::geq(memory.at(24), 1))?;
        push.write(HOST, &release(memory.at(0), 3))
    });
    second.submit(|push| push.write(HOST, &release(memory.at(24), 1)));
    memory.wait_u64(0, 3);
}

#[test]
fn every_acquire_compares_as_its_header_says() {
    use SemOperation as Op;
    let rig = Rig::new(Chip::Ga102);
    let memory = rig.host_buffer(4096);
    let wide = u64::MAX - 1;
    // Operation, wide, memory, payload, whether it goes through.
    let cases = [
        (Op::Acquire, true, 5, 5, true),
        (Op::Acquire, true, 5 | 1 << 40, 5, false),
        (Op::Acquire, false, 5 | 1 << 40, 5, true),
        (Op::AcqStrictGeq, true, wide, 5, true),
        (Op::AcqStrictGeq, true, 4, 5, false),
        (Op::AcqStrictGeq, false, 1, 0xffff_fffe, false),
        (Op::AcqCircGeq, true, 1, wide, true),
        (Op::AcqCircGeq, true, wide, 1, false),
        (Op::AcqCircGeq, false, 1, 0xffff_fffe, true),
        (Op::AcqCircGeq, false, 0xffff_fffe, 1, false),
        (Op::AcqAnd, true, 6, 12, true),
        (Op::AcqAnd, true, 3, 12, false),
        (Op::AcqNor, false, 0xffff_0000, 0x0000_fffe, true),
        (Op::AcqNor, false, 0xffff_0000, 0x0000_ffff, false),
    ];
    for (operation, payload_64bit, value, payload, through) in cases {
        let mut channel = rig.channel();
        memory.set_u64(0, 0);
        memory.set_u64(8, value);
        let execute = SemExecute {
            operation,
            payload_64bit,
            ..SemExecute::default()
        };
        channel.submit(|push| {
            push.write(
                HOST,
                &Semaphore {
                    at: memory.at(8),
                    payload,
                    execute,
                },
            )?;
            push.write(HOST, &release(memory.at(0), 1))
        });
        if through {
            memory.wait_u64(0, 1);
        } else {
            memory.stays(0, 0);
        }
        rig.free(channel.group);
    }
}

#[test]
fn reductions_combine_with_memory() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let mut channel = rig.channel();
    let minus = -2_i64 as u64;
    let cases = [
        (SemReduction::Add, false, true, 5, 7, 12),
        (SemReduction::Min, false, true, 5, minus, minus),
        (SemReduction::Min, true, true, 5, minus, 5),
        (SemReduction::Max, true, true, 5, minus, minus),
        (SemReduction::Or, true, true, 5, 10, 15),
        (
            SemReduction::And,
            true,
            false,
            0xffff_ffff_0000_0007,
            3,
            0xffff_ffff_0000_0003,
        ),
        (SemReduction::Xor, true, true, 5, 1, 4),
        (SemReduction::Inc, true, false, 9, 9, 0),
        (SemReduction::Dec, true, true, 0, 9, 9),
    ];
    for (i, (_, _, _, old, _, _)) in cases.iter().enumerate() {
        memory.set_u64(64 + i as u64 * 8, *old);
    }
    channel.submit(|push| {
        for (i, (reduction, unsigned, wide, _, value, _)) in cases.into_iter().enumerate() {
            let at = memory.at(64 + i as u64 * 8);
            push.write(
                HOST,
                &SemReduce {
                    at,
                    value,
                    reduction,
                    unsigned,
                    wide,
                    wfi: false,
                },
            )?;
        }
        push.write(HOST, &release(memory.at(0), 1))
    });
    memory.wait_u64(0, 1);
    for (i, case) in cases.iter().enumerate() {
        assert_eq!(memory.u64(64 + i as u64 * 8), case.5, "{case:?}");
    }
}

#[test]
fn the_ring_goes_round() {
    let rig = Rig::new(Chip::Ad102);
    let memory = rig.host_buffer(4096);
    let mut channel = rig.channel();
    let mut entries: Vec<u64> = Vec::new();
    for value in 0..8 {
        let words = words(|push| push.write(HOST, &release(memory.at(value * 8), value + 1)));
        entries.push(channel.words(&words).encode());
    }
    for round in 0..50 {
        for entry in &entries {
            channel.put_entry(*entry);
        }
        // One doorbell for eight entries.
        channel.ring();
        memory.wait_u64(56, 8);
        memory.set_u64(56, 0);
        assert_eq!(channel.get(), (round * 8 + 9) % 64);
    }
    // A control entry that does nothing is stepped over.
    channel.put_entry(0);
    channel.put_entry(entries[7]);
    channel.ring();
    memory.wait_u64(56, 8);
    assert_eq!(rig.last_fault(&channel), None);
}

#[test]
fn every_header_form_is_run() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let mut channel = rig.channel();
    let execute = SemExecute {
        operation: SemOperation::Release,
        ..SemExecute::default()
    };
    let execute = execute.encode().unwrap();
    let at = |offset: u64| [memory.at(offset).lo(), memory.at(offset).hi()];
    let header = |op, method, count| {
        Header::Run {
            op,
            subchannel: HOST,
            method,
            count,
        }
        .encode()
        .unwrap()
    };
    let mut stream = Vec::new();
    // The old increasing form.
    stream.push(header(RunOp::Grp0Inc, host::SEM_ADDR_LO, 5));
    stream.extend(at(8));
    stream.extend([11, 0, execute]);
    // One method written again and again: the last word stands.
    stream.push(header(RunOp::NonInc, host::SEM_PAYLOAD_LO, 3));
    stream.extend([1, 2, 22]);
    // First one method, then the next.
    stream.push(header(RunOp::OneInc, host::SEM_ADDR_LO, 3));
    stream.push(at(16)[0]);
    stream.extend([0, at(16)[1]]);
    let immediate = Header::Immediate {
        subchannel: HOST,
        method: host::SEM_EXECUTE,
        data: 1,
    };
    stream.push(immediate.encode().unwrap());
    stream.push(Header::NOP.encode().unwrap());
    stream.push(Header::EndPbSegment.encode().unwrap());
    // Nothing after the end of the segment is run.
    stream.push(header(RunOp::Inc, MethodAddr::new(4).unwrap(), 1));
    stream.push(0);
    channel.submit_words(&stream);
    channel.submit(|push| push.write(HOST, &release(memory.at(0), 1)));
    memory.wait_u64(0, 1);
    assert_eq!((memory.u64(8), memory.u64(16)), (11, 22));
    assert_eq!(rig.last_fault(&channel), None);
}

/// Submits what must stop the channel; answers the text, after checking the notifier's code.
fn stops(rig: &Rig, code: u32, submit: impl FnOnce(&mut crate::rig::Channel)) -> String {
    let memory = rig.host_buffer(4096);
    let mut channel = rig.channel();
    channel.notifier.fill(0);
    submit(&mut channel);
    channel.submit(|push| push.write(HOST, &release(memory.at(0), 1)));
    let text = rig.fault(&channel);
    wait_for("the notifier", || {
        (channel.notifier.u64(8) != 0).then_some(())
    });
    assert_eq!(
        channel.notifier.u64(8),
        u64::from(code) | 0xffff << 48,
        "{text}"
    );
    assert!(channel.notifier.u64(0) > 0);
    // Nothing more runs on it, however often the doorbell rings.
    channel.ring();
    memory.stays(0, 0);
    rig.free(channel.group);
    text
}

#[test]
fn what_cannot_be_run_stops_the_channel_and_says_why() {
    const PBDMA: u32 = 32;
    let rig = Rig::new(Chip::Gh100);
    let plain = |write: fn(&mut PushWriter<'_>) -> Result<(), EncodeError>| {
        move |channel: &mut crate::rig::Channel| channel.submit(write)
    };
    let text = stops(&rig, PBDMA, |channel| channel.submit_words(&[6 << 29]));
    assert!(text.contains("SEC_OP 6"), "{text}");
    let text = stops(&rig, PBDMA, |channel| {
        channel.submit_words(&[1 << 29 | 5 << 16 | 0x17, 0])
    });
    assert!(text.contains("data words"), "{text}");
    let text = stops(
        &rig,
        PBDMA,
        plain(|push| push.run(RunOp::Inc, Subchannel::HOST, MethodAddr::new(0x4)?, &[1])),
    );
    assert!(text.contains("ILLEGAL (method 0x4)"), "{text}");
    let text = stops(
        &rig,
        PBDMA,
        plain(|push| {
            push.run(
                RunOp::Inc,
                Subchannel::new(6)?,
                MethodAddr::new(0x300)?,
                &[1],
            )
        }),
    );
    assert!(text.contains("subchannel 6"), "{text}");
    let text = stops(
        &rig,
        69,
        plain(|push| {
            push.write(
                Subchannel::COMPUTE,
                &SetObject {
                    class: ClassId(0xc6c0),
                },
            )
        }),
    );
    assert!(text.contains("0xc6c0"), "{text}");
    let text = stops(
        &rig,
        11,
        plain(|push| {
            push.run(
                RunOp::Inc,
                Subchannel::COMPUTE,
                MethodAddr::new(0x2c4)?,
                &[0x77],
            )
        }),
    );
    assert!(
        text.contains("HOPPER_COMPUTE_A has no method 0x2c4") && text.contains("0x77"),
        "{text}"
    );
    let text = stops(
        &rig,
        39,
        plain(|push| {
            push.run(
                RunOp::Inc,
                Subchannel::COPY,
                MethodAddr::new(0x3fc)?,
                &[0x77],
            )
        }),
    );
    assert!(
        text.contains("HOPPER_DMA_COPY_A has no method 0x3fc"),
        "{text}"
    );
    let text = stops(&rig, PBDMA, |channel| {
        channel.put_entry(1 << 32);
        channel.ring();
    });
    assert!(text.contains("Illegal"), "{text}");
    // Unaligned and unmapped semaphores; unmapped words.
    let text = stops(&rig, PBDMA, |channel| {
        let words = words(|push| push.write(HOST, &release(GpuVa(0x1_0000_0008), 1)));
        let mut words = words;
        words[1] |= 4;
        channel.submit_words(&words);
    });
    assert!(text.contains("no multiple of 8"), "{text}");
    let text = stops(&rig, 31, |channel| {
        channel.submit(|push| push.write(HOST, &release(GpuVa(0x77_0000_0000), 1)));
    });
    assert!(text.contains("write at 0x7700000000"), "{text}");
    let text = stops(&rig, 31, |channel| {
        channel.put_entry(GpEntry::new(GpuVa(0x77_0000_0000), 4).unwrap().encode());
        channel.ring();
    });
    assert!(text.contains("read at 0x7700000000"), "{text}");
    let text = stops(&rig, PBDMA, |channel| {
        let offset = channel.userd(nv_proto::gpfifo::USERD_GP_PUT);
        channel.area.set_u32(offset, 64);
        rig.machine.doorbell(0).unwrap().ring(channel.token);
        rig.fault(channel);
    });
    assert!(text.contains("GP_PUT is 64"), "{text}");
}

#[test]
fn a_fault_stops_the_group_and_no_other() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let (group, share) = rig.group();
    let mut first = rig.channel_in(group, share, 16);
    let mut second = rig.channel_in(group, share, 16);
    let mut other = rig.channel();
    rig.schedule(group);
    for buffer in [&first.notifier, &second.notifier, &other.notifier] {
        assert_eq!(buffer.u64(8), 0);
    }
    first.submit_words(&[6 << 29]);
    rig.fault(&first);
    assert_eq!(rig.last_fault(&second), rig.last_fault(&first));
    for notifier in [&first.notifier, &second.notifier] {
        wait_for("the notifier", || {
            (notifier.u64(8) == 32 | 0xffff << 48).then_some(())
        });
    }
    second.submit(|push| push.write(HOST, &release(memory.at(0), 1)));
    other.submit(|push| push.write(HOST, &release(memory.at(8), 1)));
    memory.wait_u64(8, 1);
    memory.stays(0, 0);
    assert_eq!(other.notifier.u64(8), 0);
    // The group freed, a new one works.
    rig.free(group);
    let mut again = rig.channel();
    again.submit(|push| push.write(HOST, &release(memory.at(0), 2)));
    memory.wait_u64(0, 2);
}

#[test]
fn channels_run_once_they_are_scheduled() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let (group, share) = rig.group();
    let mut channel = rig.channel_in(group, share, 16);
    channel.submit(|push| {
        push.write(HOST, &Wfi::default())?;
        push.write(HOST, &release(memory.at(0), 1))
    });
    memory.stays(0, 0);
    rig.schedule(group);
    memory.wait_u64(0, 1);
    // A token of no channel rings nothing, and breaks nothing.
    let doorbell = rig.machine.doorbell(0).unwrap();
    for token in [0, 3, 0xfff, u32::MAX] {
        doorbell.ring(SubmitToken(token));
    }
    channel.submit(|push| push.write(HOST, &release(memory.at(0), 2)));
    memory.wait_u64(0, 2);
}

#[test]
fn freeing_a_waiting_channel_ends_it() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let objects = rig.machine.object_count();
    for _ in 0..20 {
        let mut channel = rig.channel();
        channel.submit(|push| {
            push.write(HOST, &SemAcquire::geq(memory.at(0), 1))?;
            push.write(HOST, &release(memory.at(8), 1))
        });
        rig.free(channel.group);
        for buffer in [&channel.area, &channel.notifier, &channel.commands] {
            rig.free(buffer.memory);
        }
    }
    memory.set_u64(0, 1);
    memory.stays(8, 0);
    assert_eq!(rig.machine.object_count(), objects);
}

#[test]
fn mapping_shows_at_the_next_entry() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    let mut channel = rig.channel();
    channel.submit(|push| push.write(HOST, &release(memory.at(0), 1)));
    memory.wait_u64(0, 1);
    let other = rig.host_buffer(4096);
    channel.submit(|push| push.write(HOST, &release(other.at(0), 1)));
    other.wait_u64(0, 1);
    let unmap = |buffer: &crate::rig::Buffer| {
        rig.machine.unmap_dma(
            rig.client,
            rig.device,
            rig.virtual_memory,
            buffer.memory,
            buffer.va,
        )
    };
    unmap(&other).unwrap();
    assert_eq!(unmap(&other), Err(rm::Status::INVALID_OFFSET));
    channel.submit(|push| push.write(HOST, &release(other.at(0), 2)));
    assert!(rig.fault(&channel).contains("MMU fault"));
    assert_eq!(other.u64(0), 1);
}
