//! A channel group: channels that run side by side, and that one fault ends together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nv_proto::unit::Handle;

use crate::object::RmObject;
use crate::space::AddressSpace;
use crate::{Error, calls};

/// A channel group with the context share that its channels use.
#[derive(Debug)]
pub(crate) struct Group {
    share: RmObject,
    group: RmObject,
    dead: AtomicBool,
    /// The space outlives the channels that use it.
    _space: Arc<AddressSpace>,
}

impl Group {
    /// Makes a group whose channels work in `space`.
    pub(crate) fn new(objects: &calls::Objects, space: &Arc<AddressSpace>) -> Result<Self, Error> {
        let group = calls::channel_group(objects, space)?;
        let share = calls::context_share(objects, group.handle(), space.handle())?;
        Ok(Self {
            share,
            group,
            dead: AtomicBool::new(false),
            _space: Arc::clone(space),
        })
    }

    /// The group object.
    pub(crate) fn handle(&self) -> Handle {
        self.group.handle()
    }

    /// The context share object.
    pub(crate) fn share(&self) -> Handle {
        self.share.handle()
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
