//! A channel group: channels that run side by side, and that one fault ends together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use nv_proto::unit::{GpuVa, Handle, SubmitToken};

use crate::context::lock;
use crate::driver::Doorbell;
use crate::object::RmObject;
use crate::space::AddressSpace;
use crate::{Error, calls};

/// A channel group with the context share that its channels use.
#[derive(Debug)]
pub(crate) struct Group {
    share: RmObject,
    /// `Some` until dropped.
    group: Option<RmObject>,
    dead: AtomicBool,
    closed: AtomicBool,
    /// Addresses that the UVM driver maps the channels' own buffers at. Held while a channel is made: the driver
    /// schedules a group only when each of its channels is registered (seen on an H200).
    making: Mutex<Vec<GpuVa>>,
    /// What rings the doorbell for each of its channels.
    tokens: Mutex<Vec<SubmitToken>>,
    doorbell: Arc<Doorbell>,
    /// The space outlives the channels that use it.
    space: Arc<AddressSpace>,
}

impl Group {
    /// Makes a group whose channels work in `space`.
    pub(crate) fn new(
        objects: &calls::Objects,
        space: &Arc<AddressSpace>,
        doorbell: &Arc<Doorbell>,
    ) -> Result<Self, Error> {
        let group = calls::channel_group(objects)?;
        let share = calls::context_share(objects, group.handle(), space.handle())?;
        Ok(Self {
            share,
            group: Some(group),
            dead: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            making: Mutex::default(),
            tokens: Mutex::default(),
            doorbell: Arc::clone(doorbell),
            space: Arc::clone(space),
        })
    }

    /// Keeps others from making a channel of the group meanwhile.
    pub(crate) fn making(&self) -> MutexGuard<'_, Vec<GpuVa>> {
        lock(&self.making)
    }

    /// The group object.
    pub(crate) fn handle(&self) -> Handle {
        self.group.as_ref().map_or(Handle::NULL, RmObject::handle)
    }

    /// The context share object.
    pub(crate) fn share(&self) -> Handle {
        self.share.handle()
    }

    /// Counts a channel among those that [`Group::ring_all`] rings for.
    pub(crate) fn add(&self, token: SubmitToken) {
        lock(&self.tokens).push(token);
    }

    /// Ends what [`Group::add`] began.
    pub(crate) fn remove(&self, token: SubmitToken) {
        lock(&self.tokens).retain(|other| *other != token);
    }

    /// Rings the doorbell once more for every channel. The GPU looks at each `GP_PUT` and finds nothing new, unless
    /// an earlier doorbell was lost. That happens while channels are being made: on an H200, 2 of 5 runs of 14
    /// devices opened at once each lost one, and none of 5 with this. All channels, since the work that is waited
    /// for may itself wait for that of another.
    pub(crate) fn ring_all(&self) {
        for token in lock(&self.tokens).iter() {
            self.doorbell.ring(*token);
        }
    }

    /// Has no more streams made in the group: one of its channels is about to be ended with work in flight, and all
    /// the others with it.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Whether streams can be made in the group.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire) && !self.is_dead()
    }

    /// Marks the group as ended by a fault: no channel of it runs again.
    pub(crate) fn set_dead(&self) {
        self.dead.store(true, Ordering::Release);
    }

    /// Whether a fault ended the group.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The share lies below the group and goes with it.
        drop(self.group.take());
        self.space
            .give_back_channels(std::mem::take(&mut *lock(&self.making)));
    }
}
