//! A context: one address space of a GPU, the memory in it and the streams that use it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::Duration;

use nv_proto::class::ClassSet;
use nv_proto::unit::GpuVa;

use crate::Error;
use crate::args::Hold;
use crate::calls::{self, Objects};
use crate::device::{Info, MemoryInfo, Options};
use crate::driver::{Doorbell, Driver};
use crate::fault::{MemoryPlace, Submission};
use crate::group::Group;
use crate::local::LocalMemory;
use crate::memory::{
    Allocation, Buffer, Element, Neighbours, PinnedBuffer, Placement, Pool, RetireList, Use,
};
use crate::module::{CodeMap, Module, ModuleInner};
use crate::object::RmObject;
use crate::peer::{Held, PeerMapping};
use crate::profile::Sink;
use crate::space::{AddressSpace, MapMode};
use crate::staging::Staging;
use crate::stream::{Progress, Stream, StreamInner, Submitted, TimePool};

/// An address space of a GPU with its memory, its modules and its streams.
///
/// A [`Device`](crate::Device) comes with one and makes more. A clone is the same context; it ends when the last of
/// them and of what it made is gone.
#[derive(Clone)]
pub struct Context {
    inner: Arc<ContextInner>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("gpu", &self.inner.info.name)
            .field("map_mode", &self.inner.info.map_mode)
            .finish_non_exhaustive()
    }
}

/// The context's objects, in the order in which they end.
#[derive(Debug)]
pub(crate) struct ContextInner {
    stream: Mutex<Option<Arc<StreamInner>>>,
    staging: Staging,
    streams: Mutex<Vec<(Weak<StreamInner>, Weak<Progress>)>>,
    retired: RetireList,
    /// Memory of other contexts that is mapped here, for as long as it is used.
    peers: Mutex<Vec<Weak<PeerMapping>>>,
    /// The pages of other contexts' streams that streams of this one have waited for.
    peer_pages: Mutex<Vec<Arc<PeerMapping>>>,
    local: Mutex<LocalMemory>,
    /// Held by launches of kernels with a stack while they are submitted; alone by one that moves the stacks.
    stacks: RwLock<()>,
    /// Ends after all that may hold a block of it.
    pool: Arc<Pool>,
    group: Mutex<Option<Arc<Group>>>,
    pub(crate) code: Mutex<CodeMap>,
    /// The memory of graphs, for fault reports to read their descriptors from.
    graphs: Mutex<Vec<Weak<Hold>>>,
    /// The kernels of our own, while a stream keeps them.
    pub(crate) builtin: Mutex<Weak<ModuleInner>>,
    /// Counts modules loaded: a stream that has not seen the newest drops its instruction caches first.
    code_generation: AtomicU64,
    /// The profile that new streams record for too.
    pub(crate) profile: Mutex<Option<Arc<Sink>>>,
    /// Where the times of recorded events go.
    pub(crate) times: Arc<Mutex<TimePool>>,
    /// Counts streams made.
    streams_made: AtomicU64,
    doorbell: Arc<Doorbell>,
    space: Arc<AddressSpace>,
    _usermode: RmObject,
    _subdevice: Arc<RmObject>,
    _device: Arc<RmObject>,
    objects: Objects,
    info: Info,
    limit: Duration,
}

/// Locks, and carries on with the value where another thread panicked: no state here is left half-made.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// A context on the GPU of an opened driver.
    pub(crate) fn new(driver: Arc<dyn Driver>, options: &Options) -> Result<Self, Error> {
        let device = Arc::new(calls::device(&driver, driver.device_instance())?);
        let subdevice = Arc::new(calls::subdevice(&driver, device.handle())?);
        let objects = Objects {
            driver: Arc::clone(&driver),
            device: device.handle(),
            subdevice: subdevice.handle(),
        };
        let classes = calls::classes(&objects)?;
        let (usermode, doorbell) = calls::doorbell(&objects, &classes)?;
        let space = Self::space(&driver, &device, &subdevice, options.map_mode)?;
        let space = Arc::new(space);
        let info = calls::info(&objects, classes, space.mode())?;
        let inner = Arc::new(ContextInner {
            stream: Mutex::default(),
            staging: Staging::default(),
            streams: Mutex::default(),
            retired: RetireList::default(),
            peers: Mutex::default(),
            peer_pages: Mutex::default(),
            local: Mutex::default(),
            pool: Arc::new(Pool::new(&objects, &space)),
            stacks: RwLock::default(),
            group: Mutex::default(),
            code: Mutex::default(),
            graphs: Mutex::default(),
            builtin: Mutex::default(),
            code_generation: AtomicU64::new(0),
            profile: Mutex::default(),
            times: Arc::default(),
            streams_made: AtomicU64::new(0),
            doorbell: Arc::new(doorbell),
            space,
            _usermode: usermode,
            _subdevice: subdevice,
            _device: device,
            objects,
            info,
            limit: options.limit,
        });
        Ok(Self { inner })
    }

    /// The address space in the way asked for, or in the first that works.
    fn space(
        driver: &Arc<dyn Driver>,
        device: &Arc<RmObject>,
        subdevice: &Arc<RmObject>,
        mode: Option<MapMode>,
    ) -> Result<AddressSpace, Error> {
        let make = |mode| AddressSpace::new(driver, device, subdevice, mode);
        match mode {
            Some(mode) => make(mode),
            None => make(MapMode::Rm).or_else(|first| {
                make(MapMode::Uvm).map_err(|second| {
                    Error::NoDevice(vec![
                        format!("mapping by the resource manager: {first}"),
                        format!("mapping by UVM: {second}"),
                    ])
                })
            }),
        }
    }

    /// What the GPU is.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.inner.info
    }

    /// The GPU's memory, and how much of it no program has. The pages of page tables and of channels count as taken.
    ///
    /// # Errors
    /// Whatever the driver refuses.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let memory = device.memory_info()?;
    /// assert!(memory.free <= memory.total);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn memory_info(&self) -> Result<MemoryInfo, Error> {
        calls::memory_info(&self.inner.objects)
    }

    /// Makes a buffer of `len` values in GPU memory. Its content is whatever was there.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or [`Error::InvalidArgument`] for no bytes.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::new(self, len, Placement::Device)
    }

    /// Makes a buffer of `len` values in memory of the given placement.
    ///
    /// # Errors
    /// As [`Context::alloc`].
    pub fn alloc_in<T: Element>(
        &self,
        len: usize,
        placement: Placement,
    ) -> Result<Buffer<T>, Error> {
        Buffer::new(self, len, placement)
    }

    /// Makes a buffer of `len` values in pinned host memory. Its content is whatever was there.
    ///
    /// # Errors
    /// As [`Context::alloc`].
    pub fn alloc_pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>, Error> {
        PinnedBuffer::new(self, len)
    }

    /// Makes a buffer in GPU memory that holds `values`.
    ///
    /// # Errors
    /// As [`Context::alloc`] and [`Buffer::write`].
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        let buffer = self.alloc(values.len())?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// Loads a cubin, or the cubin that suits the device best from a fatbin or from a program that holds one.
    ///
    /// # Errors
    /// When the bytes hold no cubin, or none for this architecture; or when there is no memory.
    pub fn load(&self, file: &[u8]) -> Result<Module, Error> {
        Module::load(self, file)
    }

    /// A new stream: work submitted to it runs in order, beside that of other streams.
    ///
    /// # Errors
    /// Whatever the driver refuses.
    pub fn stream(&self) -> Result<Stream, Error> {
        Ok(Stream::new(self.clone(), self.inner.new_stream()?))
    }

    /// The context's own stream, which buffers copy through. After a fault it is made anew, and after
    /// [`Stream::abandon`].
    ///
    /// # Errors
    /// Whatever the driver refuses; [`Error::Fault`], once, where a fault ended work of the stream and nobody was told of
    /// it yet, as when another stream's fault took it along.
    pub fn default_stream(&self) -> Result<Stream, Error> {
        Ok(Stream::new(self.clone(), self.inner.default_stream()?))
    }

    /// Waits until all work submitted so far on every stream of the context has ended, also on those that are just being
    /// dropped.
    ///
    /// # Errors
    /// The first [`Error::Timeout`] or fault of a stream; all others have been waited for all the same.
    pub fn synchronize(&self) -> Result<(), Error> {
        let (mut done, mut limit) = (Ok(()), self.inner.limit);
        for submitted in self.inner.newest() {
            let ended = submitted.wait(&self.inner, limit);
            if matches!(ended, Err(Error::Timeout { .. })) {
                // The others have had the same time.
                limit = Duration::ZERO;
            }
            done = done.and(ended);
        }
        self.inner.retired.reap();
        self.inner.let_go();
        done
    }

    /// What memory of the context lies at and around an address of the GPU's, such as one that a fault names.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let buffer = device.upload(&[0_u8; 100])?;
    /// let found = device.neighbours(buffer.va().0 + 99);
    /// assert_eq!(found.at.map(|region| region.bytes), Some(100));
    /// assert_eq!(device.neighbours(buffer.va().0 + 100).below.map(|region| region.start), Some(buffer.va()));
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    #[must_use]
    pub fn neighbours(&self, address: u64) -> Neighbours {
        self.inner.neighbours(address)
    }

    pub(crate) fn inner(&self) -> &Arc<ContextInner> {
        &self.inner
    }

    pub(crate) fn allocate(
        &self,
        bytes: u64,
        placement: Placement,
        what: Use,
    ) -> Result<Allocation, Error> {
        self.inner.allocate(bytes, placement, what)
    }

    /// Takes over memory that work in flight may still use.
    pub(crate) fn retire(&self, held: impl Into<Held>) {
        self.inner.retire(held);
    }

    pub(crate) fn upload_bytes(&self, va: GpuVa, bytes: &[u8]) -> Result<(), Error> {
        let stream = self.inner.default_stream()?;
        self.inner.staging.upload(&self.inner, &stream, va, bytes)
    }

    pub(crate) fn download_bytes(&self, va: GpuVa, bytes: &mut [u8]) -> Result<(), Error> {
        let stream = self.inner.default_stream()?;
        self.inner.staging.download(&self.inner, &stream, va, bytes)
    }
}

impl ContextInner {
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.objects.driver
    }

    /// Memory of other contexts that is mapped here.
    pub(crate) fn peer_mappings(&self) -> MutexGuard<'_, Vec<Weak<PeerMapping>>> {
        lock(&self.peers)
    }

    /// Where the page of another context's stream lies here, kept for the next wait.
    pub(crate) fn keep_peer_page(&self, page: &Arc<PeerMapping>) {
        let mut pages = lock(&self.peer_pages);
        if pages.iter().any(|known| Arc::ptr_eq(known, page)) {
            return;
        }
        let gone: Vec<_> = pages.extract_if(.., |page| page.is_last()).collect();
        pages.push(Arc::clone(page));
        drop(pages);
        drop(gone);
    }

    pub(crate) fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// What memory lies at and around an address.
    pub(crate) fn neighbours(&self, address: u64) -> Neighbours {
        self.space.regions().around(address)
    }

    /// Where an address lies among the memory of the context.
    pub(crate) fn place(&self, address: u64) -> MemoryPlace {
        let regions = self.space.regions();
        MemoryPlace::of(
            address,
            &regions.around(address),
            regions.buffers_around(address),
        )
    }

    pub(crate) fn classes(&self) -> &ClassSet {
        &self.info.classes
    }

    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) fn doorbell(&self) -> &Arc<Doorbell> {
        &self.doorbell
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Has fault reports look into the memory of a graph.
    pub(crate) fn add_graph(&self, memory: &Arc<Hold>) {
        let mut graphs = lock(&self.graphs);
        graphs.retain(|graph| graph.strong_count() > 0);
        graphs.push(Arc::downgrade(memory));
    }

    /// Copies out of a graph's memory; `false` for an address that is in none.
    pub(crate) fn read_graphs(&self, va: GpuVa, bytes: &mut [u8]) -> bool {
        // Given up, if these are the last to keep it, with the lock no longer held.
        let graphs: Vec<_> = lock(&self.graphs)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        graphs.iter().any(|graph| {
            let place = graph.allocation().and_then(|memory| {
                let offset = usize::try_from(va.0.checked_sub(memory.va().0)?).ok()?;
                memory.mapping().ok()?.read(offset, bytes).ok()
            });
            place.is_some()
        })
    }

    /// How many modules were loaded so far.
    pub(crate) fn code_generation(&self) -> u64 {
        self.code_generation.load(Ordering::Acquire)
    }

    /// Says that new code lies in memory.
    pub(crate) fn code_changed(&self) {
        self.code_generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Allocates; where memory is short, once more after what was given up has been freed.
    pub(crate) fn allocate(
        &self,
        bytes: u64,
        placement: Placement,
        what: Use,
    ) -> Result<Allocation, Error> {
        self.retired.reap_some();
        match self.pool.allocate(bytes, placement, what) {
            Err(Error::OutOfMemory { .. }) => {
                if placement == Placement::Pinned {
                    self.staging.trim(self);
                }
                if !self.retired.is_empty() {
                    let mut limit = self.limit;
                    for submitted in self.newest() {
                        // A stream that cannot be waited for keeps its memory; the allocation then fails as before.
                        // The caller may be a launch, which holds its stream's state.
                        if !submitted.settle(limit) {
                            // The others have had the same time.
                            limit = Duration::ZERO;
                        }
                    }
                    self.retired.reap();
                }
                self.pool.trim();
                self.pool.allocate(bytes, placement, what)
            }
            result => result,
        }
    }

    /// Takes over memory that work in flight may still use.
    pub(crate) fn retire(&self, held: impl Into<Held>) {
        // Of all streams, also of those that are just being dropped: their work goes on meanwhile.
        let running: Vec<_> = lock(&self.streams)
            .iter()
            .filter_map(|(_, progress)| progress.upgrade())
            .collect();
        self.retired.push(held.into(), &running);
    }

    /// Frees some of what was given up before, so that what makes an entry each time does not make a long list.
    pub(crate) fn reap_some(&self) {
        self.retired.reap_some();
    }

    /// Lets go of other contexts' streams that are gone.
    fn let_go(&self) {
        if lock(&self.peer_pages).is_empty() {
            return;
        }
        for stream in self.live_streams() {
            stream.try_reclaim();
        }
        let gone: Vec<_> = lock(&self.peer_pages)
            .extract_if(.., |page| page.is_last())
            .collect();
        // Unmapped here, with the lock no longer held.
        drop(gone);
    }

    pub(crate) fn live_streams(&self) -> Vec<Arc<StreamInner>> {
        let mut streams = lock(&self.streams);
        streams.retain(|(_, progress)| progress.strong_count() > 0);
        streams
            .iter()
            .filter_map(|(stream, _)| stream.upgrade())
            .collect()
    }

    /// The newest submission of each stream, also of those that are being dropped: their work goes on meanwhile.
    fn newest(&self) -> Vec<Submitted> {
        let running: Vec<_> = lock(&self.streams)
            .iter()
            .filter_map(|(stream, progress)| Some((stream.clone(), progress.upgrade()?)))
            .collect();
        running
            .into_iter()
            .map(|(stream, progress)| {
                let value = progress.submitted();
                Submitted::of_parts(stream, Arc::downgrade(&progress), value)
            })
            .collect()
    }

    /// What other streams of a stream's group have in flight, as far as nobody uses them just now.
    pub(crate) fn in_flight_beside(&self, stream: &StreamInner) -> Vec<Submission> {
        self.live_streams()
            .iter()
            .filter_map(|other| other.in_flight_if_beside(self, stream))
            .collect()
    }

    /// The group that new channels belong to.
    fn open_group(&self) -> Result<Arc<Group>, Error> {
        let mut group = lock(&self.group);
        match &*group {
            Some(group) if group.is_open() => Ok(Arc::clone(group)),
            _ => {
                let new = Arc::new(Group::new(&self.objects, &self.space, &self.doorbell)?);
                *group = Some(Arc::clone(&new));
                Ok(new)
            }
        }
    }

    /// A stream that touches no memory but its own, and is in no list.
    pub(crate) fn lone_stream(&self) -> Result<StreamInner, Error> {
        StreamInner::new(self, &self.open_group()?, u64::MAX)
    }

    /// The same in a group of its own: what becomes of it leaves all others alone.
    pub(crate) fn stream_apart(&self) -> Result<StreamInner, Error> {
        let group = Group::new(&self.objects, &self.space, &self.doorbell)?;
        StreamInner::new(self, &Arc::new(group), u64::MAX)
    }

    fn new_stream(&self) -> Result<Arc<StreamInner>, Error> {
        let group = self.open_group()?;
        let id = self.streams_made.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(StreamInner::new(self, &group, id)?);
        let known = (Arc::downgrade(&stream), Arc::downgrade(stream.progress()));
        let mut streams = lock(&self.streams);
        streams.retain(|(_, progress)| progress.strong_count() > 0);
        streams.push(known);
        drop(streams);
        // Held meanwhile, so that a profile that ends now finds the stream recording or not, and nothing between.
        let profile = lock(&self.profile);
        if let Some(profile) = &*profile {
            stream.record(self, profile)?;
        }
        drop(profile);
        Ok(stream)
    }

    pub(crate) fn default_stream(&self) -> Result<Arc<StreamInner>, Error> {
        let mut stream = lock(&self.stream);
        match &*stream {
            Some(stream) if !stream.progress().is_dead() && !stream.is_abandoned() => {
                Ok(Arc::clone(stream))
            }
            Some(dead) if let Some(fault) = dead.untold_fault(self) => Err(fault),
            _ => {
                // The old one first, which may take its group with it; it waits for nothing.
                drop(stream.take());
                let new = self.new_stream()?;
                *stream = Some(Arc::clone(&new));
                Ok(new)
            }
        }
    }

    /// Waits until the work of the context's own stream has ended, if there is any; of a fault that ended it somebody has
    /// to be told.
    pub(crate) fn synchronize_default(&self) -> Result<(), Error> {
        let stream = lock(&self.stream).clone();
        match stream {
            Some(stream) if !stream.is_over(stream.submitted()) => {
                stream.synchronize(self, self.limit)
            }
            Some(stream) => stream.untold_fault(self).map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    /// Waits until all work submitted so far has ended; of a fault that ended any of it somebody has to be told.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        for submitted in self.newest() {
            if !submitted.is_over() {
                submitted.wait(self, self.limit)?;
            } else if let (Some(stream), _) = submitted.parts()
                && let Some(fault) = stream.untold_fault(self)
            {
                return Err(fault);
            }
        }
        Ok(())
    }

    /// Keeps stacks where they are until dropped.
    pub(crate) fn keep_stacks(&self) -> RwLockReadGuard<'_, ()> {
        self.stacks.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether stacks of `per_thread` bytes take more local memory than there is.
    pub(crate) fn moves_stacks(&self, per_thread: u32) -> bool {
        lock(&self.local).per_thread < per_thread
    }

    /// Waits until no kernel with a stack runs, and keeps them from being launched until dropped: the channels of a group
    /// have one context share, and what one of them is told of local memory may be meant for all.
    ///
    /// # Errors
    /// [`Error::Timeout`] where a stream's work does not end.
    pub(crate) fn move_stacks(&self) -> Result<RwLockWriteGuard<'_, ()>, Error> {
        let alone = self.stacks.write().unwrap_or_else(PoisonError::into_inner);
        if !self.moves_stacks(1) {
            // There is local memory, and it may be in use.
            for submitted in self.newest() {
                if !submitted.settle(self.limit) {
                    return Err(Error::Timeout {
                        what: "work of a stream, before local memory can grow for another,"
                            .to_owned(),
                        limit: self.limit,
                        report: None,
                    });
                }
            }
        }
        Ok(alone)
    }

    /// The bytes for each thread of the local memory that a launch gets which needs `per_thread`.
    pub(crate) fn local_bytes_for(&self, per_thread: u32) -> u32 {
        match per_thread {
            0 => 0,
            bytes => LocalMemory::rounded(bytes).max(lock(&self.local).per_thread),
        }
    }

    /// Local memory of at least `per_thread` bytes for every thread that can run; it grows, and what streams
    /// still use of the old lives on with them.
    pub(crate) fn local_memory(&self, per_thread: u32) -> Result<LocalMemory, Error> {
        let mut local = lock(&self.local);
        if local.per_thread < per_thread {
            *local = LocalMemory::new(self, per_thread)?;
        }
        Ok(local.clone())
    }
}

#[cfg(all(test, feature = "sim"))]
mod refusals;
#[cfg(all(test, feature = "sim"))]
mod small;
#[cfg(all(test, feature = "sim"))]
mod wrap;
