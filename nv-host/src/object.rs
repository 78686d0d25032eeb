//! Resource-manager objects that end with their owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nv_proto::rm::AllocParams;
use nv_proto::unit::{ClassId, Handle};

use crate::Error;
use crate::driver::{self, Driver};

/// How many objects this process holds.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// How many resource-manager objects the devices of this process hold, clients apart: for tests of leaks.
#[must_use]
pub fn live_objects() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// An RM object; dropping it frees it and all below it.
#[derive(Debug)]
pub(crate) struct RmObject {
    driver: Arc<dyn Driver>,
    parent: Handle,
    handle: Handle,
}

impl RmObject {
    /// Makes an object of `class` below `parent`.
    pub(crate) fn new<P: AllocParams>(
        driver: &Arc<dyn Driver>,
        parent: Handle,
        class: ClassId,
        params: &mut P,
    ) -> Result<Self, Error> {
        let handle = driver::alloc(&**driver, parent, class, params)?;
        Ok(Self::own(driver, parent, handle))
    }

    /// Makes an object of a class that takes no parameters.
    pub(crate) fn plain(
        driver: &Arc<dyn Driver>,
        parent: Handle,
        class: ClassId,
    ) -> Result<Self, Error> {
        let handle = driver::alloc_plain(&**driver, parent, class)?;
        Ok(Self::own(driver, parent, handle))
    }

    fn own(driver: &Arc<dyn Driver>, parent: Handle, handle: Handle) -> Self {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Self {
            driver: Arc::clone(driver),
            parent,
            handle,
        }
    }

    /// Takes over an object that exists.
    pub(crate) fn adopt(driver: &Arc<dyn Driver>, parent: Handle, handle: Handle) -> Self {
        Self::own(driver, parent, handle)
    }

    /// Frees it now. After that there is nothing left to drop.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        let handle = std::mem::replace(&mut self.handle, Handle::NULL);
        if handle == Handle::NULL {
            return Ok(());
        }
        LIVE.fetch_sub(1, Ordering::Relaxed);
        self.driver.free(self.parent, handle)
    }

    /// Its handle.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for RmObject {
    fn drop(&mut self) {
        // An object whose parent is gone is gone too: the status tells nothing that could be acted on.
        let _ = self.end();
    }
}
