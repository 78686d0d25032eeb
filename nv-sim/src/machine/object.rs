//! Objects and the clients that own them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use nv_proto::unit::{ClassId, Handle};

use crate::channel::{Channel, Group, lock};
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::mmu::{PageSize, Space};

/// One client with all its objects.
#[derive(Debug)]
pub(super) struct Client {
    objects: BTreeMap<u32, Object>,
    next: u32,
}

/// One object.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) parent: Handle,
    children: BTreeSet<u32>,
    pub(super) body: Body,
}

/// What an object is.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Client,
    Device(Device),
    Subdevice(Device),
    Space(Arc<Space>),
    VirtualMemory {
        space: Arc<Space>,
        first: u64,
        last: u64,
    },
    Memory(Arc<MemoryObject>),
    Group {
        device: Device,
        group: Arc<Group>,
        space: Option<Arc<Space>>,
    },
    ContextShare(Arc<Space>),
    Channel {
        gpu: Arc<Gpu>,
        channel: Arc<Channel>,
    },
    Engine {
        class: ClassId,
        channel: Arc<Channel>,
    },
    Usermode(Arc<Memory>),
    /// Two GPUs, by index, that reach each other's memory while this lives.
    Peers(u32, u32),
    Debugger {
        gpu: Arc<Gpu>,
        channel: Arc<Channel>,
    },
}

/// A device: a GPU, with the address space of who names none.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) gpu: Arc<Gpu>,
    default_space: Arc<OnceLock<Arc<Space>>>,
}

impl Device {
    pub(super) fn new(gpu: Arc<Gpu>) -> Self {
        Self {
            gpu,
            default_space: Arc::default(),
        }
    }

    pub(super) fn default_space(&self) -> Arc<Space> {
        let make = || Arc::new(Space::new(crate::mmu::VA_END - 1, false));
        self.default_space.get_or_init(make).clone()
    }
}

/// Memory: the GPU's, the host's, or a client's own pages.
#[derive(Debug)]
pub(super) struct MemoryObject {
    /// Unique in the machine.
    pub(super) number: u64,
    pub(super) memory: Arc<Memory>,
    pub(super) page: PageSize,
    /// Whose memory it is counted as; `None` for the host's.
    pub(super) gpu: Option<Arc<Gpu>>,
    /// The GPU of the device that it was made below.
    pub(super) maker: u32,
    /// How many objects are this memory: its own and the duplicates.
    objects: Arc<AtomicUsize>,
    /// Where it is mapped.
    spaces: Mutex<Vec<Weak<Space>>>,
}

impl MemoryObject {
    pub(super) fn new(
        number: u64,
        memory: Memory,
        page: PageSize,
        maker: u32,
        gpu: Option<Arc<Gpu>>,
    ) -> Self {
        Self {
            number,
            memory: Arc::new(memory),
            page,
            gpu,
            maker,
            objects: Arc::new(AtomicUsize::new(1)),
            spaces: Mutex::default(),
        }
    }

    /// Another object that is the same memory, with mappings of its own.
    pub(super) fn duplicate(&self, number: u64) -> Self {
        self.objects.fetch_add(1, Ordering::AcqRel);
        Self {
            number,
            memory: self.memory.clone(),
            page: self.page,
            gpu: self.gpu.clone(),
            maker: self.maker,
            objects: self.objects.clone(),
            spaces: Mutex::default(),
        }
    }

    /// Counts an object less; whether it was the last that is this memory.
    pub(super) fn was_last(&self) -> bool {
        self.objects.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.bytes() as u64
    }

    pub(super) fn note_space(&self, space: &Arc<Space>) {
        let mut spaces = lock(&self.spaces);
        spaces.retain(|other| other.strong_count() > 0);
        if !spaces
            .iter()
            .any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(space)))
        {
            spaces.push(Arc::downgrade(space));
        }
    }

    /// Takes it out of every address space; answers those that it was ever in.
    pub(super) fn unmap_everywhere(&self) -> Vec<Arc<Space>> {
        let spaces = std::mem::take(&mut *lock(&self.spaces));
        let spaces: Vec<_> = spaces.iter().filter_map(Weak::upgrade).collect();
        for space in &spaces {
            space.unmap_object(self.number);
        }
        spaces
    }
}

impl Client {
    /// The first handle that the driver picks (seen on an H200).
    const FIRST_PICKED: u32 = 0xcaf0_0000;

    pub(super) fn new(handle: Handle) -> Self {
        let mut objects = BTreeMap::new();
        let body = Body::Client;
        objects.insert(
            handle.0,
            Object {
                parent: Handle::NULL,
                children: BTreeSet::new(),
                body,
            },
        );
        Self {
            objects,
            next: Self::FIRST_PICKED,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn get(&self, handle: Handle) -> Option<&Object> {
        self.objects.get(&handle.0)
    }

    /// What `handle` is.
    pub(super) fn body(&self, handle: Handle) -> Option<&Body> {
        self.get(handle).map(|object| &object.body)
    }

    /// Whether an object lets two GPUs reach each other's memory.
    pub(super) fn has_peers(&self, a: u32, b: u32) -> bool {
        self.objects.values().any(|object| match object.body {
            Body::Peers(c, d) => (c, d) == (a, b) || (c, d) == (b, a),
            _ => false,
        })
    }

    /// A handle that is free.
    pub(super) fn pick(&mut self) -> Handle {
        while self.objects.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1).max(1);
        }
        let picked = self.next;
        self.next = self.next.wrapping_add(1).max(1);
        Handle(picked)
    }

    pub(super) fn insert(&mut self, handle: Handle, parent: Handle, body: Body) {
        if let Some(parent) = self.objects.get_mut(&parent.0) {
            parent.children.insert(handle.0);
        }
        self.objects.insert(
            handle.0,
            Object {
                parent,
                children: BTreeSet::new(),
                body,
            },
        );
    }

    /// Takes out an object and all below it, those below first.
    pub(super) fn take_tree(&mut self, handle: Handle) -> Vec<(Handle, Body)> {
        let mut order = vec![handle.0];
        let mut next = 0;
        while let Some(handle) = order.get(next).copied() {
            next += 1;
            order.extend(
                self.objects
                    .get(&handle)
                    .into_iter()
                    .flat_map(|object| &object.children),
            );
        }
        let mut taken = Vec::with_capacity(order.len());
        for handle in order.into_iter().rev() {
            if let Some(object) = self.objects.remove(&handle) {
                if let Some(parent) = self.objects.get_mut(&object.parent.0) {
                    parent.children.remove(&handle);
                }
                taken.push((Handle(handle), object.body));
            }
        }
        taken
    }
}
