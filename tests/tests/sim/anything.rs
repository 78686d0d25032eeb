//! Whatever a client writes, the machine goes on: no panic, no endless wait, no harm to other channels.

use nv_proto::push::host::SemRelease;
use nv_proto::push::{Header, MethodAddr, RunOp, Subchannel};
use nv_proto::rm::Status;
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_sim::{Chip, DmaMapping, Machine};

use crate::rig::{Buffer, Channel, Rig, wait_for};

/// A small generator: the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Numbers of all sizes, and those at edges.
    fn number(&mut self) -> u64 {
        let edges = [
            0,
            1,
            4,
            8,
            0xff,
            0xfff,
            0x1000,
            0x20_0000,
            u32::MAX as u64,
            1 << 49,
            u64::MAX,
        ];
        match self.below(4) {
            0 => self.pick(&edges),
            1 => self.next() >> self.below(64),
            2 => self
                .pick(&edges)
                .wrapping_add(self.below(16))
                .wrapping_sub(8),
            _ => self.below(64),
        }
    }
}

/// A copy on another channel still works.
fn alive(channel: &mut Channel, memory: &Buffer, value: u64) {
    channel.submit(|push| {
        let release = SemRelease {
            at: memory.va,
            value,
            wfi: true,
            timestamp: false,
        };
        push.write(Subchannel::HOST, &release)
    });
    memory.wait_u64(0, value);
}

/// Streams of random words, then of packets with real methods and random data.
#[test]
fn any_words() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for chip in [Chip::Ga102, Chip::Gh100, Chip::Gb202] {
        let rig = Rig::new(chip);
        let memory = rig.host_buffer(4096);
        let data = rig.buffer(1 << 20);
        let mut steady = rig.channel();
        let methods: Vec<u16> = nv_proto::push::compute::ADDRESSES
            .iter()
            .chain(nv_proto::push::copy::ADDRESSES)
            .chain(nv_proto::push::host::ADDRESSES)
            .map(|(_, method)| method.bytes())
            .collect();
        for round in 0..150 {
            let mut words = Vec::new();
            for _ in 0..40 {
                if round % 2 == 0 {
                    words.push(random.next() as u32);
                    continue;
                }
                let count = random.below(6) as u16;
                let header = Header::Run {
                    op: random.pick(&[RunOp::Inc, RunOp::NonInc, RunOp::OneInc]),
                    subchannel: random.pick(&[
                        Subchannel::HOST,
                        Subchannel::COMPUTE,
                        Subchannel::COPY,
                    ]),
                    method: MethodAddr::new(random.pick(&methods)).unwrap(),
                    count,
                };
                words.extend(header.encode());
                for _ in 0..count {
                    let inside = data.va.0 + random.below(1 << 20);
                    words.push(match random.below(4) {
                        0 => inside as u32,
                        1 => (inside >> 32) as u32,
                        2 => (inside >> 8) as u32,
                        _ => random.number() as u32,
                    });
                }
            }
            let mut channel = rig.channel();
            channel.submit_words(&words);
            wait_for("the entry", || {
                (channel.get() == 2 || rig.last_fault(&channel).is_some()).then_some(())
            });
            alive(&mut steady, &memory, round + 1);
            rig.free(channel.group);
            for buffer in [&channel.area, &channel.notifier, &channel.commands] {
                rig.free(buffer.memory);
            }
        }
        assert_eq!(rig.last_fault(&steady), None);
    }
}

/// Descriptors of random bits over memory that is there.
#[test]
fn any_descriptor() {
    use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
    let mut random = Random(0x1234_5678_9abc_def1);
    for chip in [Chip::Ga102, Chip::Gh100, Chip::Gb202] {
        let rig = Rig::new(chip);
        let memory = rig.host_buffer(4096);
        let data = rig.buffer(1 << 20);
        let mut steady = rig.channel();
        for round in 0..150 {
            let version = nv_proto::qmd::Version::of_class(chip.compute_class()).unwrap();
            let mut qmd = nv_proto::qmd::Qmd::new(version);
            for field in version.fields() {
                if !field.name.contains("VERSION") && random.below(3) == 0 {
                    // Wide and narrow values; those that do not fit are left out.
                    let _ = qmd.set_field(field, 0, random.number() as u32);
                }
            }
            if random.below(2) == 0 {
                // One that gets further: a grid of a few threads over whatever lies there.
                let _ = qmd.set_program(GpuVa(data.va.0 + 0x1000 + random.below(16) * 16), 4096);
                let _ = qmd.set_grid(nv_proto::unit::Dim3::new(1 + random.below(4) as u32, 1, 1));
                let _ = qmd.set_block(nv_proto::unit::Dim3::new(1 + random.below(64) as u32, 1, 1));
                for i in 0..512 {
                    data.set_u64(0x1000 + i * 8, random.next());
                }
            }
            data.write(0, qmd.as_bytes());
            let mut channel = rig.channel();
            channel.submit(|push| {
                push.write(Subchannel::COMPUTE, &SendPcas { qmd: data.va })?;
                push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)
            });
            // It ends, faults, hangs or runs on: its group is freed in any case.
            wait_for("the entry", || {
                (channel.get() == 2 || rig.last_fault(&channel).is_some()).then_some(())
            });
            std::thread::sleep(std::time::Duration::from_millis(1));
            rig.free(channel.group);
            alive(&mut steady, &memory, round + 1);
            for buffer in [&channel.area, &channel.notifier, &channel.commands] {
                rig.free(buffer.memory);
            }
        }
        assert_eq!(rig.last_fault(&steady), None);
    }
}

/// Calls with random handles, classes, commands and parameters.
#[test]
fn any_call() {
    let mut random = Random(0xdead_beef_cafe_f00d);
    let classes = [
        0x0, 0x1, 0x41, 0x3e, 0x40, 0x70, 0x71, 0x80, 0x2080, 0x83de, 0x9067, 0x90f1, 0xa06c,
        0xc661, 0xc86f, 0xcbc0, 0xc8b5, 0xbeef,
    ];
    for _ in 0..20 {
        let machine = Machine::new(&[Chip::Gh100, Chip::Ga100]).unwrap();
        let uvm = machine.open_uvm();
        let mut handles = vec![Handle::NULL];
        let root = ClassId(0x41);
        let client = machine
            .alloc(Handle::NULL, Handle::NULL, Handle::NULL, root, &mut [])
            .unwrap();
        handles.push(client);
        let mut made = 0;
        for _ in 0..600 {
            let mut params = vec![0; random.pick(&[0, 4, 12, 56, 128, 368, 9264]) as usize];
            for word in params.chunks_exact_mut(4) {
                if random.below(4) == 0 {
                    let value = if random.below(2) == 0 {
                        random.pick(&handles).0
                    } else {
                        // Small enough not to ask for all of the host's memory.
                        (random.number() as u32) & 0xff_ffff
                    };
                    word.copy_from_slice(&value.to_le_bytes());
                }
            }
            let [a, b] = [(); 2].map(|()| random.pick(&handles));
            match random.below(8) {
                0..=2 => {
                    let class = ClassId(random.pick(&classes));
                    if let Ok(handle) = machine.alloc(client, a, Handle::NULL, class, &mut params) {
                        made += 1;
                        handles.push(handle);
                    }
                }
                3 => {
                    let command = random.pick(&[
                        0x201,
                        0x205,
                        0x13e,
                        0x275,
                        0x0080_0201,
                        0x0080_0292,
                        0x2080_014a,
                        0x2080_0110,
                        0x2080_122b,
                        0x2080_1303,
                        0x2080_0406,
                        0xa06c_0101,
                        0xa06f_0103,
                        0xc36f_0108,
                        0x83de_030c,
                        0x83de_030b,
                        0x83de_0328,
                    ]);
                    let size = nv_proto::rm::control_shape(command)
                        .map_or(params.len(), |shape| shape.size(machine.version()));
                    params.resize(size, 0);
                    let _ = machine.control(client, a, command, &mut params);
                }
                4 => {
                    let request = DmaMapping {
                        device: a,
                        virtual_memory: b,
                        memory: random.pick(&handles),
                        offset: random.number(),
                        length: random.number(),
                        flags: random.number() as u32,
                        va: GpuVa(random.number()),
                    };
                    let _ = machine.map_dma(client, &request);
                }
                5 => {
                    let _ = machine.map_memory(client, a, b, random.number(), random.number(), 0);
                    let _ = machine.unmap_dma(
                        client,
                        a,
                        b,
                        random.pick(&handles),
                        GpuVa(random.number()),
                    );
                }
                6 => {
                    let command =
                        random.pick(&[0x3000_0001, 0x19, 0x1b, 0x21, 0x22, 0x25, 0x42, 0x49, 0x4b]);
                    params.resize(9264, 0);
                    let _ = uvm.ioctl(command, &mut params);
                }
                _ => {
                    if random.below(8) == 0 && a != client {
                        let _ = machine.free(client, Handle::NULL, a);
                    }
                    let _ = machine.gr_info(client, a, &[random.number() as u32]);
                    let _ = machine.class_list(client, a);
                }
            }
        }
        assert!(made > 5, "{made}");
        machine.free(client, Handle::NULL, client).unwrap();
        let left = machine.free(client, Handle::NULL, client);
        assert_eq!(left, Err(Status::INVALID_CLIENT));
        assert_eq!((machine.vidmem_used(0), machine.vidmem_used(1)), (0, 0));
    }
}
