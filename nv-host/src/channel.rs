//! One channel: its ring of GPFIFO entries, its memory, and how work is published to the GPU.

use std::sync::Arc;

use nv_proto::gpfifo::{GpEntry, USERD_GP_PUT};
use nv_proto::unit::{GpuVa, Handle, SubmitToken};

use crate::context::ContextInner;
use crate::driver::Doorbell;
use crate::group::Group;
use crate::memory::{Allocation, Placement, Use};
use crate::object::RmObject;
use crate::space::{AddressSpace, Registration};
use crate::{Error, Mapping, calls, protocol};

/// Entries of the ring; as many submissions can be in flight, less one.
pub(crate) const RING_ENTRIES: u32 = 4096;

// The channel's area of device memory, by offset.
const RING: u64 = 0;
const USERD: u64 = RING + RING_ENTRIES as u64 * GpEntry::BYTES as u64;
/// The order semaphore: the number of the last launch that has ended, for the work behind it on the channel. In GPU
/// memory, which the host engine looks at faster than at the timeline: launches in a row took 1.8 us each on an H200
/// with it, and 2.9 us with the timeline alone.
pub(crate) const ORDER: u64 = USERD + 0x1000;
/// Where the command words begin.
pub(crate) const COMMANDS: u64 = 0x8_0000;
/// Bytes of command words.
pub(crate) const COMMAND_BYTES: u64 = 0x8_0000;
/// Where launch descriptors and constant banks begin.
pub(crate) const LAUNCHES: u64 = 0x10_0000;
/// Bytes of launch descriptors and constant banks: those of a full ring of launches with few arguments.
pub(crate) const LAUNCH_BYTES: u64 = 0x70_0000;
const AREA_BYTES: u64 = LAUNCHES + LAUNCH_BYTES;

// The channel's page of host memory, by offset.
/// The error notifier: 16-byte records, the first is the error's (`NV_CHANNELGPFIFO_NOTIFICATION_TYPE_ERROR`).
const NOTIFIER: usize = 0;
/// The timeline semaphore: 64-bit payload, then 64-bit time in nanoseconds.
pub(crate) const TIMELINE: usize = 0x800;
/// A one-word semaphore between the channel's engines.
pub(crate) const ENGINE_SEMAPHORE: usize = 0x840;
const PAGE_BYTES: u64 = 0x1000;

/// What the error notifier holds once the channel is dead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Notification {
    /// The RC error code, such as 31 for an MMU fault and 13 for an exception of the graphics engine.
    pub(crate) code: u32,
    /// The GPU's time in nanoseconds.
    pub(crate) time: u64,
}

/// One channel with a compute and a copy engine object.
#[derive(Debug)]
pub(crate) struct Channel {
    // Fields end in this order: the registration in `drop`, the engine objects, the channel, its memory.
    registration: Option<Registration>,
    /// Absent where the driver refuses one: faults are then reported with less detail.
    debugger: Option<RmObject>,
    _compute: RmObject,
    _copy: RmObject,
    channel: RmObject,
    area: Allocation,
    /// Streams that wait for this one's timeline share it.
    page: Arc<Allocation>,
    token: SubmitToken,
    doorbell: Arc<Doorbell>,
    space: Arc<AddressSpace>,
    /// The group outlives its channels.
    group: Arc<Group>,
}

impl Channel {
    /// Makes a channel in `group` and has it scheduled.
    pub(crate) fn new(context: &ContextInner, group: &Arc<Group>) -> Result<Self, Error> {
        let objects = context.objects();
        let area = Allocation::new(
            objects,
            context.space(),
            AREA_BYTES,
            Placement::HostVisible,
            Use::Stream,
        )?;
        let page = Allocation::new(
            objects,
            context.space(),
            PAGE_BYTES,
            Placement::Pinned,
            Use::Stream,
        )?;
        let page = Arc::new(page);
        area.mapping()?
            .fill(usize_of(USERD), nv_proto::gpfifo::USERD_BYTES, 0)?;
        area.mapping()?.fill(usize_of(ORDER), 16, 0)?;
        page.mapping()?.fill(0, usize_of(PAGE_BYTES), 0)?;

        let classes = context.classes();
        let mut making = group.making();
        let setup = calls::ChannelSetup {
            group: group.handle(),
            share: group.share(),
            area: area.handle(),
            notifier: page.handle(),
            ring: GpuVa(area.va().0 + RING),
            entries: RING_ENTRIES,
            userd_offset: USERD,
        };
        let channel = calls::channel(objects, classes.gpfifo, &setup)?;
        let compute = RmObject::plain(&objects.driver, channel.handle(), classes.compute)?;
        let copy = RmObject::plain(&objects.driver, channel.handle(), classes.copy)?;
        let debugger = calls::debugger(objects, compute.handle()).ok();
        let token = calls::submit_token(&*objects.driver, channel.handle())?;
        let registration = context
            .space()
            .register_channel(channel.handle(), &mut making)?;
        // From here on it ends as a whole, and so does its registration.
        let channel = Self {
            registration,
            debugger,
            _compute: compute,
            _copy: copy,
            channel,
            area,
            page,
            token,
            doorbell: Arc::clone(context.doorbell()),
            space: Arc::clone(context.space()),
            group: Arc::clone(group),
        };
        calls::schedule(&*objects.driver, group.handle())?;
        drop(making);
        group.add(token);
        Ok(channel)
    }

    /// The channel object.
    pub(crate) fn handle(&self) -> Handle {
        self.channel.handle()
    }

    /// The debugger object attached to the compute engine's.
    pub(crate) fn debugger(&self) -> Option<Handle> {
        self.debugger.as_ref().map(RmObject::handle)
    }

    /// The device memory of ring, commands and launches, as the CPU sees it.
    pub(crate) fn area(&self) -> Result<&Mapping, Error> {
        self.area.mapping()
    }

    /// The GPU's address of an offset in that memory.
    pub(crate) fn area_va(&self, offset: u64) -> GpuVa {
        GpuVa(self.area.va().0 + offset)
    }

    /// The page of host memory.
    pub(crate) fn page_memory(&self) -> &Arc<Allocation> {
        &self.page
    }

    /// The GPU's address of an offset in that page.
    pub(crate) fn page_va(&self, offset: usize) -> GpuVa {
        GpuVa(self.page.va().0 + offset as u64)
    }

    /// Writes `entry` into `slot` and tells the GPU: the one place where work is published.
    pub(crate) fn publish(&self, slot: u32, entry: GpEntry, gp_put: u32) -> Result<(), Error> {
        let area = self.area()?;
        protocol::publish(
            || {
                let at = usize_of(RING) + slot as usize * GpEntry::BYTES;
                area.write_u64(at, entry.encode());
            },
            || area.write_u32(usize_of(USERD) + USERD_GP_PUT, gp_put),
            || self.doorbell.ring(self.token),
        );
        Ok(())
    }

    /// An entry of the ring as it lies there, for what comes after a fault: the GPU's memory may not be what was
    /// written to it.
    pub(crate) fn entry(&self, slot: u32) -> Option<u64> {
        let area = self.area().ok()?;
        Some(area.read_u64(usize_of(RING) + slot as usize * GpEntry::BYTES))
    }

    /// What the GPU says went wrong on this channel, if anything.
    pub(crate) fn notification(&self) -> Option<Notification> {
        let page = self.page.mapping().ok()?;
        // u64 time, u32 code, u16 0, u16 status; the status is all ones once the record is written.
        let last = page.read_u32(NOTIFIER + 12);
        let written = last >> 16 == 0xffff;
        written.then(|| Notification {
            code: page.read_u32(NOTIFIER + 8),
            time: page.read_u64(NOTIFIER),
        })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.group.remove(self.token);
        if let Some(registration) = self.registration.take() {
            self.space.unregister_channel(&registration);
        }
    }
}

/// An offset of the layout above, all of which fit 32 bits.
const fn usize_of(offset: u64) -> usize {
    offset as usize
}
