//! The calls recorded on an H200, made of the simulated GPU: the same bytes in, the same bytes out.
//!
//! What is compared leaves out handles and what differs from run to run. It does not go through this
//! project's parameter structures, so that a mistake in them shows.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;

use nv_proto::rm::Status;
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_sim::{Chip, DmaMapping, Machine, Options, Uvm};
use serde_json::Value;

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or("");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).unwrap())
        .collect()
}

fn number(value: &Value) -> u32 {
    u32::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The player: recorded handles and the machine's own.
struct Replay {
    machine: std::sync::Arc<Machine>,
    uvm: Uvm,
    handles: HashMap<u32, u32>,
    recorded_uuid: Option<Vec<u8>>,
    /// Sizes of memory objects, which the recorder did not see: from the mappings that follow.
    sizes: HashMap<u32, u64>,
    /// The memory object that was mapped last.
    mapped_last: Handle,
    counts: HashMap<String, u32>,
}

impl Replay {
    fn handle(&self, recorded: u32) -> Handle {
        Handle(self.handles.get(&recorded).copied().unwrap_or(recorded))
    }

    /// Puts the machine's handles and UUID in the place of the recorded ones.
    fn translate(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for at in (0..bytes.len().saturating_sub(3)).step_by(4) {
            if let Some(own) = self.handles.get(&u32_at(&bytes, at)) {
                bytes[at..at + 4].copy_from_slice(&own.to_le_bytes());
            }
        }
        if let Some(uuid) = &self.recorded_uuid
            && bytes.len() >= 16
        {
            for at in 0..=bytes.len() - 16 {
                if bytes[at..at + 16] == **uuid {
                    bytes[at..at + 16].copy_from_slice(&self.machine.uuid(0).unwrap());
                }
            }
        }
        bytes
    }

    fn play(&mut self, call: &Value) {
        let kind = call["kind"].as_str().unwrap();
        let params_in = hex(&call["params_in"]);
        let params_out = hex(&call["params_out"]);
        let note = match kind {
            "RM_ALLOC" => self.alloc(call, &params_in, &params_out),
            "RM_CONTROL" => self.control(call, &params_in, &params_out),
            "UVM" => self.uvm(call, &params_in),
            "RM_ESCAPE" => self.escape(number(&call["escape"]), &params_in),
            other => panic!("{other}"),
        };
        *self.counts.entry(note).or_default() += 1;
    }

    fn alloc(&mut self, call: &Value, params_in: &[u8], params_out: &[u8]) -> String {
        let class = number(&call["class"]);
        let (call_in, call_out) = (hex(&call["call_in"]), hex(&call["call_out"]));
        let (root, parent) = (
            self.handle(u32_at(&call_in, 0)),
            self.handle(u32_at(&call_in, 4)),
        );
        let recorded = u32_at(&call_out, 8);
        // Known from the headers at 580: how much of the recorded 64 bytes is the structure's.
        let size = match class {
            0x41 | 0xc661 | 0xcbc0 | 0xc8b5 => 0,
            0x80 | 0x90f1 => 56,
            0x2080 => 4,
            0x70 => 24,
            0xa06c => 20,
            0x9067 | 0x83de => 12,
            0x40 | 0x3e => 128,
            0xc86f => 368,
            other => panic!("class {other:#x}"),
        };
        let mut params = self.translate(params_in);
        params.resize(params.len().max(size), 0);
        params.truncate(size);
        if matches!(class, 0x40 | 0x3e) {
            let bytes = self.sizes[&recorded];
            params[64..72].copy_from_slice(&bytes.to_le_bytes());
        }
        if class == 0xc86f {
            // The recorder saw 64 bytes, and `userdOffset` is behind them: the ring's area is
            // 64 Ki entries of 8 bytes, and the control area follows.
            params[64..72].copy_from_slice(&0x8_0000_u64.to_le_bytes());
        }
        let made = self
            .machine
            .alloc(root, parent, Handle::NULL, ClassId(class), &mut params);
        let made = made.unwrap_or_else(|status| panic!("class {class:#x}: {status}"));
        self.handles.insert(recorded, made.0);
        let seen = size.min(params_out.len());
        assert_eq!(
            params[..seen],
            self.translate(params_out)[..seen],
            "class {class:#x}"
        );
        format!("class {class:#x}")
    }

    fn control(&mut self, call: &Value, params_in: &[u8], params_out: &[u8]) -> String {
        let command = number(&call["command"]);
        let object = self.handle(number(&call["object"]));
        let client = Handle(self.handles[&self.first_client()]);
        let mut params = self.translate(params_in);
        // The recorder kept the first 1024 bytes.
        params.resize(call["params_size"].as_u64().unwrap() as usize, 0);
        match command {
            // The classes offered and the graphics facts go through pointers: they are calls of their own.
            0x0080_0201 => {
                let classes = self.machine.class_list(client, object).unwrap();
                assert!(classes.contains(&ClassId(0xcbc0)));
            }
            0x2080_1201 => {
                // GPCs, TPCs of a GPC, SMs of a TPC, warps, version: the reference's five.
                let facts = self
                    .machine
                    .gr_info(client, object, &[20, 23, 32, 13, 12])
                    .unwrap();
                assert_eq!(facts, [8, 9, 2, 64, 0x900]);
                assert_eq!(u32_at(params_in, 0), 5);
            }
            _ => {
                if command == 0x205 {
                    // The recorded board had another id and place.
                    params[..4].copy_from_slice(&0x100_u32.to_le_bytes());
                }
                self.machine
                    .control(client, object, command, &mut params)
                    .unwrap_or_else(|status| panic!("command {command:#x}: {status}"));
                let expected = match command {
                    0x2080_014a => {
                        let length = u32_at(params_out, 8) as usize;
                        self.recorded_uuid = Some(params_out[12..12 + length].to_vec());
                        self.translate(params_out)
                    }
                    // The release is at the front, whatever follows.
                    0x13e => {
                        assert!(params.starts_with(b"580.159.04\0"));
                        assert!(params_out.starts_with(b"580.159.04\0"));
                        params.clone()
                    }
                    0x205 | 0xc36f_0108 => params.clone(),
                    _ => params_out.to_vec(),
                };
                let seen = expected.len().min(params.len());
                assert_eq!(params[..seen], expected[..seen], "command {command:#x}");
            }
        }
        format!("command {command:#x}")
    }

    fn first_client(&self) -> u32 {
        *self
            .handles
            .keys()
            .find(|handle| **handle >> 16 == 0xc1d0)
            .unwrap()
    }

    fn uvm(&mut self, call: &Value, params_in: &[u8]) -> String {
        let command = call["number"].as_u64().unwrap() as u32;
        let size = match command {
            0x3000_0001 => 16,
            0x4b => 8,
            0x25 => 40,
            0x19 => 32,
            0x1b => 56,
            0x49 => 24,
            0x21 => 9264,
            0x22 => 24,
            other => panic!("UVM command {other:#x}"),
        };
        let mut params = self.translate(params_in);
        params.resize(size.max(params.len()), 0);
        if command == 0x21 {
            // The recorder saw 64 bytes. One GPU's attributes, the client, and the memory that the call before
            // named.
            params[9240..9248].copy_from_slice(&1_u64.to_le_bytes());
            let client = self.handles[&self.first_client()];
            params[9252..9256].copy_from_slice(&client.to_le_bytes());
            params[9256..9260].copy_from_slice(&self.mapped_last.0.to_le_bytes());
        }
        let status_at = if command == 0x3000_0001 {
            8
        } else {
            size - if matches!(command, 0x1b | 0x49 | 0x22) {
                8
            } else {
                4
            }
        };
        let answer = self.uvm.ioctl(command, &mut params);
        let expected = if command == 0x4b {
            Status::WARN_NOTHING_TO_DO
        } else {
            Status::OK
        };
        assert_eq!(answer, Ok(expected), "UVM command {command:#x}");
        assert_eq!(u32_at(&params, status_at), expected.0);
        format!("uvm {command:#x}")
    }

    fn escape(&mut self, escape: u32, params: &[u8]) -> String {
        let client = || self.handle(u32_at(params, 0));
        match escape {
            // NV_ESC_CARD_INFO and NV_ESC_REGISTER_FD are the node's, not the object model's.
            0xc8 | 0xc9 => {}
            // NV_ESC_RM_MAP_MEMORY
            0x4e => {
                let [device, memory] = [4, 8].map(|at| self.handle(u32_at(params, at)));
                let (offset, length) = (u64_at(params, 16), u64_at(params, 24));
                let flags = u32_at(params, 44);
                let span = self
                    .machine
                    .map_memory(client(), device, memory, offset, length, flags);
                assert_eq!(span.unwrap().bytes() as u64, length);
            }
            // NV_ESC_RM_MAP_MEMORY_DMA
            0x57 => {
                let [device, virtual_memory, memory] =
                    [4, 8, 12].map(|at| self.handle(u32_at(params, at)));
                let request = DmaMapping {
                    device,
                    virtual_memory,
                    memory,
                    offset: u64_at(params, 16),
                    length: u64_at(params, 24),
                    flags: u32_at(params, 32),
                    va: GpuVa(u64_at(params, 48)),
                };
                assert_eq!(self.machine.map_dma(client(), &request), Ok(request.va));
                self.mapped_last = memory;
            }
            // NV_ESC_RM_ALLOC_MEMORY of the client's pages
            0x27 => {
                let (device, new) = (self.handle(u32_at(params, 4)), Handle(u32_at(params, 8)));
                assert_eq!(u32_at(params, 12), 0x71);
                let bytes = u64_at(params, 32) + 1;
                let made = self
                    .machine
                    .register_pages(client(), device, new, pages(bytes));
                assert_eq!(made, Ok(new));
                self.handles.insert(new.0, new.0);
            }
            // NV_ESC_RM_FREE
            0x29 => {
                let [parent, object] = [4, 8].map(|at| self.handle(u32_at(params, at)));
                self.machine.free(client(), parent, object).unwrap();
            }
            other => panic!("escape {other:#x}"),
        }
        format!("escape {escape:#x}")
    }
}

/// Pages of the test's own, page-aligned, which are never given back.
pub fn pages(bytes: u64) -> &'static [AtomicU64] {
    let cells = bytes as usize / 8;
    let all: Vec<AtomicU64> = (0..cells + 512).map(|_| AtomicU64::new(0)).collect();
    let all: &'static [AtomicU64] = all.leak();
    let skip = (4096 - all.as_ptr().addr() % 4096) % 4096 / 8;
    &all[skip..skip + cells]
}

/// How large each memory object is: the mappings and the client's own pages tell.
fn sizes(calls: &[Value]) -> HashMap<u32, u64> {
    let mut sizes = HashMap::new();
    for call in calls.iter().filter(|call| call["escape"] == "0x57") {
        let params = hex(&call["params_in"]);
        let size = sizes.entry(u32_at(&params, 12)).or_insert(0);
        *size = u64_at(&params, 24).max(*size);
    }
    sizes
}

fn replay(file: &str) -> HashMap<String, u32> {
    let recorded = nv_tests::json(file);
    let calls = recorded["calls"].as_array().unwrap();
    let machine = Machine::with_options(&[Chip::Gh100], Options::default()).unwrap();
    let mut replay = Replay {
        uvm: machine.open_uvm(),
        machine,
        handles: HashMap::new(),
        recorded_uuid: None,
        sizes: sizes(calls),
        mapped_last: Handle::NULL,
        counts: HashMap::new(),
    };
    for call in calls {
        replay.play(call);
    }
    let client = Handle(replay.handles[&replay.first_client()]);
    assert!(replay.machine.vidmem_used(0) > 700 << 20);
    replay.machine.free(client, Handle::NULL, client).unwrap();
    assert_eq!(replay.machine.object_count(), 0);
    assert_eq!(replay.machine.vidmem_used(0), 0);
    replay.counts
}

#[test]
fn the_sequence_without_uvm_is_answered_as_the_h200_did() {
    let counts = replay("golden/rm/h200_without_uvm.json");
    for (what, at_least) in [
        ("class 0xc86f", 2),
        ("class 0x40", 8),
        ("escape 0x57", 40),
        ("escape 0x27", 33),
        ("command 0xa06c0101", 1),
    ] {
        assert!(
            counts.get(what).copied().unwrap_or(0) >= at_least,
            "{what}: {counts:?}"
        );
    }
}

#[test]
fn the_sequence_with_uvm_is_answered_as_the_h200_did() {
    let counts = replay("golden/rm/h200_with_uvm.json");
    for (what, at_least) in [
        ("uvm 0x21", 40),
        ("uvm 0x49", 40),
        ("uvm 0x1b", 2),
        ("uvm 0x25", 1),
        ("uvm 0x19", 1),
    ] {
        assert!(
            counts.get(what).copied().unwrap_or(0) >= at_least,
            "{what}: {counts:?}"
        );
    }
}
