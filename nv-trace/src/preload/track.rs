//! Which memory lies where: as the calls tell it.
//!
//! `NV_ESC_RM_MAP_MEMORY` and the `mmap` after it give a memory object an address in the process;
//! `NV_ESC_RM_MAP_MEMORY_DMA` and `UVM_MAP_EXTERNAL_ALLOCATION` give it one on the GPU. What the GPU reads at an
//! address is then found in the process, if it is mapped there at all.

use super::hook::Call;
use super::layout::{self, at, escape, uvm};
use super::ring::Channel;
use super::sys::{self, Live, overlap};
use super::table::Table;
use crate::record::{Cause, Loss};

/// An object: its client's handle and its own.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Object {
    /// The client's handle.
    pub client: u32,
    /// Its own.
    pub handle: u32,
}

/// A part of a memory object with an address.
#[derive(Clone, Copy)]
struct View {
    memory: Object,
    /// Where the part begins in the object.
    offset: u64,
    length: u64,
    address: u64,
    /// `pLinearAddress` of a mapping in the process.
    linear: u64,
}

/// A mapping that was prepared, which an `mmap` on the descriptor makes.
#[derive(Clone, Copy)]
struct Pending {
    fd: u32,
    view: View,
}

/// A second handle of an object.
#[derive(Clone, Copy)]
struct Alias {
    handle: Object,
    of: Object,
}

/// Memory in the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place {
    /// Where it begins.
    pub address: u64,
    /// How far it goes.
    pub length: u64,
}

/// Everything that the calls told.
pub struct Track {
    process: Table<View, 8192>,
    gpu: Table<View, 8192>,
    pending: Table<Pending, 64>,
    aliases: Table<Alias, 1024>,
    channels: Table<Channel, 256>,
}

impl Track {
    /// Nothing yet.
    pub const NONE: Self = Self {
        process: Table::EMPTY,
        gpu: Table::EMPTY,
        pending: Table::EMPTY,
        aliases: Table::EMPTY,
        channels: Table::EMPTY,
    };

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.process.clear();
        self.gpu.clear();
        self.pending.clear();
        self.aliases.clear();
        self.channels.clear();
    }

    /// How many channels there are.
    pub const fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Learns from a call that was made.
    pub fn learn(&mut self, live: &Live, call: &Call, release: Option<(u32, u32, u32)>) {
        let own = call.own;
        let client = own.half(0);
        let object = |handle| Object { client, handle };
        if call.uvm {
            return self.learn_uvm(call, release);
        }
        match call.escape() {
            Some(escape::ALLOC) => {
                let long = own.size > 32;
                let status = own.half(if long {
                    at::NVOS64_STATUS
                } else {
                    at::NVOS21_STATUS
                });
                if status != 0 {
                    return;
                }
                let (new, class) = (object(own.half(at::ALLOC_NEW)), call.class());
                if layout::is_channel(class) {
                    let parent = own.half(at::ALLOC_PARENT);
                    let mut channel = Channel::new(new, parent, class, call.inner, release);
                    channel.begin(self, live);
                    keep(self.channels.push(channel));
                } else if class == layout::OS_DESCRIPTOR_CLASS {
                    let (address, limit) = (
                        call.inner.word(at::OS_DESCRIPTOR),
                        call.inner.word(at::OS_LIMIT),
                    );
                    self.own_pages(new, address, limit);
                }
            }
            Some(escape::ALLOC_MEMORY) if own.half(at::MEMORY_STATUS) == 0 => {
                let new = object(own.half(at::MEMORY_NEW));
                let (pointer, limit) = (own.word(at::MEMORY_POINTER), own.word(at::MEMORY_LIMIT));
                if own.half(at::MEMORY_CLASS) == layout::OS_DESCRIPTOR_CLASS {
                    self.own_pages(new, pointer, limit);
                } else {
                    let length = limit.saturating_add(1);
                    let view = View {
                        memory: new,
                        offset: 0,
                        length,
                        address: 0,
                        linear: pointer,
                    };
                    self.prepare(own.half(at::MEMORY_FD), view);
                }
            }
            Some(escape::MAP_MEMORY) if own.half(at::MAP_STATUS) == 0 => {
                let view = View {
                    memory: object(own.half(at::MAP_MEMORY)),
                    offset: own.word(at::MAP_OFFSET),
                    length: own.word(at::MAP_LENGTH),
                    address: 0,
                    linear: own.word(at::MAP_LINEAR),
                };
                self.prepare(own.half(at::MAP_FD), view);
            }
            Some(escape::UNMAP_MEMORY) => {
                let (memory, linear) = (
                    object(own.half(at::UNMAP_MEMORY)),
                    own.word(at::UNMAP_LINEAR),
                );
                self.process.retain(|view| {
                    view.memory != memory || (view.linear != linear && view.address != linear)
                });
            }
            Some(escape::MAP_MEMORY_DMA) => {
                let new = own.size >= at::DMA_BYTES;
                let (status, va) = match new {
                    true => (at::DMA_STATUS, at::DMA_VA),
                    false => (at::DMA_STATUS_BEFORE_580, at::DMA_VA_BEFORE_580),
                };
                if own.half(status) == 0 {
                    keep(self.gpu.push(View {
                        memory: object(own.half(at::DMA_MEMORY)),
                        offset: own.word(at::DMA_OFFSET),
                        length: own.word(at::DMA_LENGTH),
                        address: own.word(va),
                        linear: 0,
                    }));
                }
            }
            Some(escape::UNMAP_MEMORY_DMA) => {
                let (memory, va) = (object(own.half(at::UNDMA_MEMORY)), own.word(at::UNDMA_VA));
                self.gpu
                    .retain(|view| view.memory != memory || view.address != va);
            }
            Some(escape::DUP_OBJECT) if own.half(at::DUP_STATUS) == 0 => {
                let handle = object(own.half(at::DUP_NEW));
                let of = Object {
                    client: own.half(at::DUP_CLIENT_SRC),
                    handle: own.half(at::DUP_OBJECT_SRC),
                };
                if handle != of {
                    keep(self.aliases.push(Alias { handle, of }));
                }
            }
            Some(escape::FREE) if own.half(at::FREE_STATUS) == 0 => {
                self.freed(object(own.half(at::FREE_OBJECT)));
            }
            _ => {}
        }
    }

    fn learn_uvm(&mut self, call: &Call, release: Option<(u32, u32, u32)>) {
        let own = call.own;
        let base = own.word(at::UVM_BASE);
        match call.request {
            uvm::MAP_EXTERNAL_ALLOCATION => {
                let old = release.is_some_and(|release| release < layout::UVM_CHANGED);
                let (client, memory, status) = match old {
                    true => (
                        at::UVM_CLIENT_BEFORE_550,
                        at::UVM_MEMORY_BEFORE_550,
                        at::UVM_STATUS_BEFORE_550,
                    ),
                    false => (at::UVM_CLIENT, at::UVM_MEMORY, at::UVM_STATUS),
                };
                if own.half(status) == 0 {
                    keep(self.gpu.push(View {
                        memory: Object {
                            client: own.half(client),
                            handle: own.half(memory),
                        },
                        offset: own.word(at::UVM_OFFSET),
                        length: own.word(at::UVM_LENGTH),
                        address: base,
                        linear: 0,
                    }));
                }
            }
            uvm::FREE => self.gpu.retain(|view| view.address != base),
            uvm::UNMAP_EXTERNAL => {
                let range = (base, own.word(at::UVM_LENGTH));
                self.gpu
                    .retain(|view| !overlap((view.address, view.length), range));
            }
            _ => {}
        }
    }

    /// Memory that is the process's own.
    fn own_pages(&mut self, memory: Object, address: u64, limit: u64) {
        let length = limit.saturating_add(1);
        keep(self.process.push(View {
            memory,
            offset: 0,
            length,
            address,
            linear: address,
        }));
    }

    fn prepare(&mut self, fd: u32, view: View) {
        self.pending.retain(|pending| pending.fd != fd);
        keep(self.pending.push(Pending { fd, view }));
    }

    fn freed(&mut self, object: Object) {
        let gone = |other: &Object| {
            *other == object || other.client == object.client && object.handle == object.client
        };
        self.process.retain(|view| !gone(&view.memory));
        self.gpu.retain(|view| !gone(&view.memory));
        self.pending.retain(|pending| !gone(&pending.view.memory));
        self.aliases.retain(|alias| !gone(&alias.handle));
        self.channels.retain(|channel| {
            let parent = Object {
                handle: channel.parent,
                ..channel.object
            };
            !gone(&channel.object) && parent != object
        });
    }

    /// A node was mapped.
    pub fn mapped(&mut self, fd: i32, address: u64, length: u64) {
        let fd = fd.cast_unsigned();
        let pending = self
            .pending
            .newest_first()
            .find(|pending| pending.fd == fd)
            .copied();
        let Some(Pending { mut view, .. }) = pending else {
            return;
        };
        self.pending.retain(|pending| pending.fd != fd);
        // A part that begins inside a page is mapped with the whole page.
        let inside = view.linear & 0xfff;
        view.address = address.saturating_add(inside);
        view.length = view.length.min(length.saturating_sub(inside));
        keep(self.process.push(view));
    }

    /// Whether a range holds part of a memory object.
    pub fn seen(&self, address: u64, length: u64) -> bool {
        self.channels.len() > 0
            && self
                .process
                .newest_first()
                .any(|view| overlap((view.address, view.length), (address, length)))
    }

    /// Pages have gone.
    pub fn unmapped(&mut self, address: u64, length: u64) {
        self.process
            .retain(|view| !overlap((view.address, view.length), (address, length)));
    }

    /// The object that a handle is of in the end.
    fn original(&self, mut object: Object) -> Object {
        for _ in 0..8 {
            match self
                .aliases
                .newest_first()
                .find(|alias| alias.handle == object)
            {
                Some(alias) => object = alias.of,
                None => break,
            }
        }
        object
    }

    /// Where a memory object's bytes from `offset` on are in the process.
    pub fn in_process(&self, memory: Object, offset: u64) -> Option<Place> {
        let memory = self.original(memory);
        let holds = |view: &&View| {
            self.original(view.memory) == memory
                && offset >= view.offset
                && offset - view.offset < view.length
        };
        let view = self.process.newest_first().find(holds)?;
        let inside = offset.saturating_sub(view.offset);
        Some(Place {
            address: view.address.checked_add(inside)?,
            length: view.length.saturating_sub(inside),
        })
    }

    /// Where what a client's channel sees at `va` is in the process.
    pub fn seen_at(&self, live: &Live, client: u32, va: u64) -> Option<Place> {
        let holds =
            |view: &&View| va >= view.address && va.wrapping_sub(view.address) < view.length;
        let own = self
            .gpu
            .newest_first()
            .filter(|view| view.memory.client == client)
            .find(holds);
        let view = own.or_else(|| self.gpu.newest_first().find(holds));
        let found = view.and_then(|view| {
            let inside = va.saturating_sub(view.address);
            let place = self.in_process(view.memory, view.offset.checked_add(inside)?)?;
            Some(Place {
                length: place.length.min(view.length.saturating_sub(inside)),
                ..place
            })
        });
        // The vendor's library likes the same address on both sides.
        found.or_else(|| match live.room(va) {
            0 => None,
            length => Some(Place {
                address: va,
                length,
            }),
        })
    }

    /// Copies what is new in the rings.
    pub fn look(&mut self, live: &Live, buffer: &mut [u8], cause: Cause) {
        for index in 0..self.channels.len() {
            let Some(mut channel) = self.channels.get_mut(index).copied() else {
                continue;
            };
            channel.look(self, live, buffer, cause);
            if let Some(slot) = self.channels.get_mut(index) {
                *slot = channel;
            }
        }
    }
}

fn keep(kept: bool) {
    if !kept {
        sys::lose(Loss::Full);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const RELEASE: Option<(u32, u32, u32)> = Some((580, 159, 4));

    fn bytes(call: &Value, field: &str) -> Vec<u8> {
        let text = call[field].as_str().unwrap_or_default();
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).unwrap() as u8)
            .collect();
        digits
            .chunks_exact(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    fn number(call: &Value, field: &str) -> u32 {
        let text = call[field].as_str().unwrap_or_default();
        u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
    }

    fn half(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// What the sequence recorded on an H200 tells: each mapping lies at an address that depends on its object alone.
    fn learned(name: &str) -> (Box<Track>, Vec<(Object, Vec<u8>)>) {
        let path = format!(
            "{}/../tests/golden/rm/{name}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut track = Box::new(Track::NONE);
        let mut channels = Vec::new();
        for recorded in json["calls"].as_array().unwrap() {
            let uvm = recorded["kind"] == "UVM";
            let mut own = bytes(recorded, "params_out");
            if recorded["kind"] == "RM_CONTROL" {
                continue;
            }
            // What the call points at, as long as the call is looked at.
            let mut pointed_at = Vec::new();
            if recorded["kind"] == "RM_ALLOC" {
                pointed_at = std::mem::replace(&mut own, bytes(recorded, "call_out"));
                pointed_at.resize(0x178, 0);
                own[16..24].copy_from_slice(&(pointed_at.as_ptr() as u64).to_le_bytes());
                if layout::is_channel(number(recorded, "class")) {
                    let object = Object {
                        client: half(&own, 0),
                        handle: half(&own, 8),
                    };
                    channels.push((object, pointed_at.clone()));
                }
            }
            if uvm && number(recorded, "request") == uvm::MAP_EXTERNAL_ALLOCATION {
                assert!(own.len() <= 9264);
                own.resize(9264, 0);
            }
            let call = Call::new(uvm, number(recorded, "request"), own.as_ptr() as u64);
            track.learn(&Live::NONE, &call, RELEASE);
            drop(pointed_at);
            if call.escape() == Some(escape::MAP_MEMORY) {
                let length = call.own.word(at::MAP_LENGTH);
                track.mapped(
                    half(&own, at::MAP_FD) as i32,
                    lies_at(half(&own, at::MAP_MEMORY)),
                    length,
                );
            }
        }
        (track, channels)
    }

    /// Where the test maps an object.
    fn lies_at(handle: u32) -> u64 {
        u64::from(handle) << 32
    }

    #[test]
    fn rings_and_gp_put_of_a_recorded_sequence_are_found() {
        let (track, channels) = learned("h200_without_uvm");
        assert!(!channels.is_empty());
        assert_eq!(track.channels(), channels.len());
        for (object, params) in channels {
            let userd = Object {
                client: object.client,
                handle: half(&params, at::CHANNEL_USERD),
            };
            let place = track.in_process(userd, at::USERD_GP_PUT).unwrap();
            assert_eq!(
                place.address & !0xfff,
                lies_at(userd.handle),
                "{:#x}",
                object.handle
            );
            let ring = u64::from(half(&params, at::CHANNEL_RING + 4)) << 32
                | u64::from(half(&params, at::CHANNEL_RING));
            let entries = u64::from(half(&params, at::CHANNEL_ENTRIES));
            let place = track.seen_at(&Live::NONE, object.client, ring).unwrap();
            assert!(place.length >= entries * 8, "{place:?}");
            assert_eq!(
                track.seen_at(&Live::NONE, object.client, ring | 1 << 46),
                None
            );
        }
    }
}
