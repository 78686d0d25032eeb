//! A client of the simulated machine, made of raw calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nv_proto::gpfifo::{GpEntry, USERD_GP_GET, USERD_GP_PUT};
use nv_proto::push::host::SetObject;
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::rm::names::classes as class;
use nv_proto::rm::{self, AllocParams, Control, Status, flags};
use nv_proto::unit::{ClassId, GpuVa, Handle, SubmitToken};
use nv_sim::memory::Span;
use nv_sim::{Chip, DmaMapping, Doorbell, Machine, Options};

/// How long anything may take.
pub const LIMIT: Duration = Duration::from_secs(20);

/// How long to look for something that must not happen.
pub const NEVER: Duration = Duration::from_millis(100);

/// A device with an address space that the resource manager maps.
#[derive(Debug)]
pub struct Rig {
    pub machine: Arc<Machine>,
    pub chip: Chip,
    pub client: Handle,
    pub device: Handle,
    pub subdevice: Handle,
    pub space: Handle,
    pub virtual_memory: Handle,
    next_va: std::cell::Cell<u64>,
}

/// Memory that both sides have mapped.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub memory: Handle,
    pub va: GpuVa,
    pub span: Span,
}

/// A channel with its ring and command memory.
#[derive(Debug)]
pub struct Channel {
    pub group: Handle,
    pub handle: Handle,
    pub token: SubmitToken,
    pub notifier: Buffer,
    pub area: Buffer,
    pub commands: Buffer,
    entries: u32,
    put: u32,
    used: u64,
    doorbell: Doorbell,
}

impl Rig {
    pub fn new(chip: Chip) -> Self {
        Self::with_options(chip, Options::default())
    }

    pub fn with_options(chip: Chip, options: Options) -> Self {
        Self::open(Machine::with_options(&[chip], options).unwrap(), 0)
    }

    pub fn open(machine: Arc<Machine>, index: u32) -> Self {
        let chip = machine.chips()[index as usize];
        let root = class::NV01_ROOT_CLIENT;
        let client = machine
            .alloc(Handle::NULL, Handle::NULL, Handle::NULL, root, &mut [])
            .unwrap();
        let mut rig = Self {
            machine,
            chip,
            client,
            device: Handle::NULL,
            subdevice: Handle::NULL,
            space: Handle::NULL,
            virtual_memory: Handle::NULL,
            next_va: std::cell::Cell::new(0x10_0000_0000),
        };
        let mut device = rm::DeviceAlloc::default();
        device.device_id = index.into();
        rig.device = rig
            .alloc(client, class::NV01_DEVICE_0, &mut device)
            .unwrap();
        let mut subdevice = rm::SubdeviceAlloc::default();
        rig.subdevice = rig
            .alloc(rig.device, class::NV20_SUBDEVICE_0, &mut subdevice)
            .unwrap();
        let mut space = rm::VaSpaceAlloc::default();
        space.va_base = 0x1000.into();
        space.va_size = 0x1_ffff_fb00_0000.into();
        rig.space = rig
            .alloc(rig.device, class::FERMI_VASPACE_A, &mut space)
            .unwrap();
        let mut range = rm::MemoryVirtualAlloc::default();
        range.h_va_space = rig.space.0.into();
        rig.virtual_memory = rig
            .alloc(rig.device, class::NV01_MEMORY_VIRTUAL, &mut range)
            .unwrap();
        assert_eq!(range.limit.get(), 0x1_ffff_fb00_0fff);
        rig
    }

    pub fn alloc<P: AllocParams>(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut P,
    ) -> Result<Handle, Status> {
        let bytes = params.bytes_mut(self.machine.version());
        let made = self
            .machine
            .alloc(self.client, parent, Handle::NULL, class, bytes);
        params.read_back(self.machine.version());
        made
    }

    pub fn control<P: Control>(&self, object: Handle, params: &mut P) -> Result<(), Status> {
        let bytes = params.bytes_mut(self.machine.version());
        self.machine.control(self.client, object, P::COMMAND, bytes)
    }

    pub fn free(&self, object: Handle) {
        self.machine
            .free(self.client, Handle::NULL, object)
            .unwrap();
    }

    pub fn memory_params(size: u64, host: bool) -> (ClassId, rm::MemoryAlloc) {
        let mut params = rm::MemoryAlloc::default();
        params.size = size.into();
        let mut attr = flags::attr::physicality::ALLOW_NONCONTIGUOUS;
        if host {
            attr |= flags::attr::location::PCI;
        }
        params.attr = attr.into();
        (
            if host {
                class::NV01_MEMORY_SYSTEM
            } else {
                class::NV01_MEMORY_LOCAL_USER
            },
            params,
        )
    }

    pub fn memory(&self, size: u64, host: bool) -> Handle {
        let (class, mut params) = Self::memory_params(size, host);
        self.alloc(self.device, class, &mut params).unwrap()
    }

    pub fn dma(&self, memory: Handle, offset: u64, length: u64, va: u64) -> DmaMapping {
        DmaMapping {
            device: self.device,
            virtual_memory: self.virtual_memory,
            memory,
            offset,
            length,
            flags: flags::map_dma::dma_offset_fixed::TRUE | flags::map_dma::cache_snoop::ENABLE,
            va: GpuVa(va),
        }
    }

    /// Addresses of which no other is within 2 MiB.
    pub fn fresh_va(&self, size: u64) -> u64 {
        let va = self.next_va.get();
        self.next_va
            .set(va + size.next_multiple_of(2 << 20) + (2 << 20));
        va
    }

    pub fn buffer_at(&self, va: u64, size: u64, host: bool) -> Buffer {
        let memory = self.memory(size, host);
        self.machine
            .map_dma(self.client, &self.dma(memory, 0, size, va))
            .unwrap();
        let span = self
            .machine
            .map_memory(self.client, self.device, memory, 0, size, 0)
            .unwrap();
        Buffer {
            memory,
            va: GpuVa(va),
            span,
        }
    }

    /// Device memory.
    pub fn buffer(&self, size: u64) -> Buffer {
        self.buffer_at(self.fresh_va(size), size, false)
    }

    /// Host memory.
    pub fn host_buffer(&self, size: u64) -> Buffer {
        self.buffer_at(self.fresh_va(size), size, true)
    }

    pub fn group(&self) -> (Handle, Handle) {
        let mut group = rm::ChannelGroupAlloc::default();
        group.engine_type = 1.into();
        let group = self
            .alloc(self.device, class::KEPLER_CHANNEL_GROUP_A, &mut group)
            .unwrap();
        let mut share = rm::CtxShareAlloc::default();
        share.h_va_space = self.space.0.into();
        share.flags = 1.into();
        let share = self
            .alloc(group, class::FERMI_CONTEXT_SHARE_A, &mut share)
            .unwrap();
        (group, share)
    }

    pub fn channel_class(&self) -> ClassId {
        ClassId(match self.chip {
            Chip::Gh100 => 0xc86f,
            Chip::Gb202 => 0xca6f,
            _ => 0xc56f,
        })
    }

    /// The usual parameters of a channel.
    pub fn channel_params(
        share: Handle,
        area: &Buffer,
        entries: u32,
        notifier: Handle,
    ) -> rm::ChannelGpfifoAlloc {
        let mut params = rm::ChannelGpfifoParams::default();
        params.h_object_error = notifier.0.into();
        params.gp_fifo_offset = area.va.0.into();
        params.gp_fifo_entries = entries.into();
        params.h_context_share = share.0.into();
        params.h_userd_memory[0] = area.memory.0.into();
        params.userd_offset[0] = u64::from(entries * 8).next_multiple_of(512).into();
        params.into()
    }

    /// A channel of `entries` entries in a group, with the chip's engine `class` bound to `subchannel`.
    pub fn channel_in(&self, group: Handle, share: Handle, entries: u32) -> Channel {
        let area = self.buffer(u64::from(entries) * 8 + 4096);
        let notifier = self.host_buffer(4096);
        let commands = self.buffer(2 << 20);
        let mut params = Self::channel_params(share, &area, entries, notifier.memory);
        let handle = self
            .alloc(group, self.channel_class(), &mut params)
            .unwrap();
        let mut token = rm::GetWorkSubmitToken::default();
        self.control(handle, &mut token).unwrap();
        Channel {
            group,
            handle,
            token: SubmitToken(token.work_submit_token.get()),
            notifier,
            area,
            commands,
            entries,
            put: 0,
            used: 0,
            doorbell: self.machine.doorbell(0).unwrap(),
        }
    }

    pub fn schedule(&self, group: Handle) {
        let mut schedule = rm::GroupGpfifoSchedule::default();
        schedule.b_enable = 1;
        self.control(group, &mut schedule).unwrap();
    }

    pub fn engine(&self, channel: Handle, class: ClassId) -> Handle {
        self.machine
            .alloc(self.client, channel, Handle::NULL, class, &mut [])
            .unwrap()
    }

    /// A scheduled channel of its own group, with both engines bound.
    pub fn channel(&self) -> Channel {
        let (group, share) = self.group();
        let mut channel = self.channel_in(group, share, 64);
        self.engine(channel.handle, self.chip.compute_class());
        self.engine(channel.handle, self.chip.copy_class());
        self.schedule(group);
        channel.submit(|push| {
            push.write(
                Subchannel::COMPUTE,
                &SetObject {
                    class: self.chip.compute_class(),
                },
            )?;
            push.write(
                Subchannel::COPY,
                &SetObject {
                    class: self.chip.copy_class(),
                },
            )
        });
        channel
    }

    pub fn last_fault(&self, channel: &Channel) -> Option<String> {
        self.machine.last_fault(self.client, channel.handle)
    }

    /// Waits for the text of what stopped a channel.
    pub fn fault(&self, channel: &Channel) -> String {
        wait_for("a fault", || self.last_fault(channel))
    }
}

impl Channel {
    pub fn userd(&self, offset: usize) -> u64 {
        u64::from(self.entries * 8).next_multiple_of(512) + offset as u64
    }

    pub fn get(&self) -> u32 {
        self.area.u32(self.userd(USERD_GP_GET))
    }

    /// Puts an entry into the ring without saying so.
    pub fn put_entry(&mut self, entry: u64) {
        let next = (self.put + 1) % self.entries;
        wait_for("a free entry", || (next != self.get()).then_some(()));
        self.area.set_u64(u64::from(self.put) * 8, entry);
        self.put = next;
    }

    /// Tells the GPU of the entries put.
    pub fn ring(&self) {
        self.area.set_u32(self.userd(USERD_GP_PUT), self.put);
        self.doorbell.ring(self.token);
    }

    /// Writes words into command memory, each time to a fresh place.
    pub fn words(&mut self, words: &[u32]) -> GpEntry {
        assert!(self.used + words.len() as u64 * 4 <= self.commands.span.bytes() as u64);
        let at = self.used;
        for (i, word) in words.iter().enumerate() {
            self.commands.set_u32(at + i as u64 * 4, *word);
        }
        self.used += words.len() as u64 * 4;
        GpEntry::new(GpuVa(self.commands.va.0 + at), words.len() as u32).unwrap()
    }

    pub fn submit_words(&mut self, words: &[u32]) {
        let entry = self.words(words);
        self.put_entry(entry.encode());
        self.ring();
    }

    pub fn submit(
        &mut self,
        write: impl FnOnce(&mut PushWriter<'_>) -> Result<(), nv_proto::EncodeError>,
    ) {
        let words = words(write);
        self.submit_words(&words);
    }
}

/// The words that `write` writes.
pub fn words(
    write: impl FnOnce(&mut PushWriter<'_>) -> Result<(), nv_proto::EncodeError>,
) -> Vec<u32> {
    let mut words = vec![0xa5a5_a5a5; 16384];
    let mut push = PushWriter::new(&mut words);
    write(&mut push).unwrap();
    push.finish().to_vec()
}

impl Buffer {
    pub fn at(&self, offset: u64) -> GpuVa {
        GpuVa(self.va.0 + offset)
    }

    pub fn u64(&self, offset: u64) -> u64 {
        self.span.cells()[offset as usize / 8].load(Ordering::Acquire)
    }

    pub fn u32(&self, offset: u64) -> u32 {
        (self.u64(offset & !7) >> (offset % 8 * 8)) as u32
    }

    pub fn set_u64(&self, offset: u64, value: u64) {
        self.span.cells()[offset as usize / 8].store(value, Ordering::Release);
    }

    pub fn set_u32(&self, offset: u64, value: u32) {
        let shift = offset % 8 * 8;
        self.span.cells()[offset as usize / 8]
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                Some(old & !(0xffff_ffff << shift) | u64::from(value) << shift)
            })
            .unwrap();
    }

    pub fn bytes(&self) -> Vec<u8> {
        let cells = self.span.cells().iter();
        cells
            .flat_map(|cell| cell.load(Ordering::Acquire).to_le_bytes())
            .collect()
    }

    pub fn fill(&self, byte: u8) {
        for cell in self.span.cells() {
            cell.store(u64::from_le_bytes([byte; 8]), Ordering::Release);
        }
    }

    pub fn write(&self, offset: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let at = offset + i as u64;
            let shift = at % 8 * 8;
            self.span.cells()[at as usize / 8]
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
                    Some(old & !(0xff << shift) | u64::from(*byte) << shift)
                })
                .unwrap();
        }
    }

    pub fn wait_u64(&self, offset: u64, value: u64) {
        wait_for(&format!("{value:#x} at {offset:#x}"), || {
            (self.u64(offset) == value).then_some(())
        });
    }

    /// Looks for a while whether the value changes.
    pub fn stays(&self, offset: u64, value: u64) {
        let start = Instant::now();
        while start.elapsed() < NEVER {
            assert_eq!(self.u64(offset), value, "at {offset:#x}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Waits until `look` answers, at most [`LIMIT`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "{what} did not come");
        std::thread::sleep(Duration::from_micros(20));
    }
}
