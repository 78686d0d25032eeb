//! What contexts have of each other: memory of one mapped in another, and copies between them.
//!
//! Contexts of one GPU, and of several GPUs of one machine. Each has a client and an address space of its own, so a
//! buffer's address means nothing elsewhere until the buffer is mapped there.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use nv_proto::rm::SystemGetP2pCapsV2;
use nv_proto::unit::GpuVa;

use crate::args::{Arg, Hold};
use crate::context::{Context, ContextInner};
use crate::memory::{self, Allocation, Buffer, DeviceSlice, Element, Placement, Use, Uses};
use crate::object::RmObject;
use crate::space::AddressSpace;
use crate::stream::{Event, Stream};
use crate::{Error, MapMode, calls};

/// How one GPU reaches another's memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerLink {
    /// It is the same GPU.
    Same,
    /// Over the bus.
    Pcie,
    /// Over NVLink.
    NvLink,
}

impl fmt::Display for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Same => "same GPU",
            Self::Pcie => "PCIe",
            Self::NvLink => "NVLink",
        })
    }
}

/// Memory that is kept until the work that uses it has ended.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "held to be dropped")]
pub(crate) enum Held {
    Memory(Arc<Allocation>),
    Peer(Arc<PeerMapping>),
}

impl From<Arc<Allocation>> for Held {
    fn from(allocation: Arc<Allocation>) -> Self {
        Self::Memory(allocation)
    }
}

impl From<Arc<PeerMapping>> for Held {
    fn from(mapping: Arc<PeerMapping>) -> Self {
        Self::Peer(mapping)
    }
}

/// Memory of one context, mapped in another's address space.
///
/// It holds the memory, and that its device, but no context: contexts that map each other's memory end all the same.
#[derive(Debug)]
pub(crate) struct PeerMapping {
    space: Arc<AddressSpace>,
    va: GpuVa,
    bytes: u64,
    /// What stands for the memory in the other client. After the mapping, before the memory.
    duplicate: Option<RmObject>,
    source: Arc<Allocation>,
}

impl PeerMapping {
    fn new(space: &Arc<AddressSpace>, source: &Arc<Allocation>) -> Result<Self, Error> {
        let foreign = source.as_foreign();
        let (va, duplicate) = space.map_foreign(&foreign)?;
        space.regions().insert(va, foreign.bytes, Use::Peer);
        Ok(Self {
            space: Arc::clone(space),
            va,
            bytes: foreign.bytes,
            duplicate,
            source: Arc::clone(source),
        })
    }

    /// The address here of what lies at `va` in the space that the memory is of.
    pub(crate) fn translate(&self, va: GpuVa) -> GpuVa {
        GpuVa(
            va.0.wrapping_sub(self.source.as_foreign().va.0)
                .wrapping_add(self.va.0),
        )
    }

    /// Whether it is a mapping of this memory.
    pub(crate) fn is_of(&self, source: &Arc<Allocation>) -> bool {
        Arc::ptr_eq(&self.source, source)
    }

    /// Whether nobody else holds the memory, as that of a stream that is gone.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.source) == 1
    }
}

impl Drop for PeerMapping {
    fn drop(&mut self) {
        let memory = match &self.duplicate {
            Some(duplicate) => duplicate.handle(),
            None => self.source.handle(),
        };
        self.space.regions().remove(self.va);
        self.space.unmap(memory, self.va, self.bytes);
    }
}

impl Context {
    /// How this context's GPU reaches memory of `other`'s, as the driver tells it. Whether it really does,
    /// [`Context::enable_peer`] finds out.
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`] with the reason, for this pair alone.
    pub fn can_access(&self, other: &Self) -> Result<PeerLink, Error> {
        let refuse = |reason: String| self.no_access(other, reason);
        self.same_machine(other)?;
        let (own, peer) = (self.inner().driver(), other.inner().driver());
        if own.gpu_id() == peer.gpu_id() {
            return Ok(PeerLink::Same);
        }
        let caps = calls::peer_caps(own, own.gpu_id(), peer.gpu_id())
            .map_err(|error| refuse(error.to_string()))?;
        link(&caps).map_err(|status| {
            refuse(format!(
                "the driver says {status}; copies between the two go through host memory"
            ))
        })
    }

    /// Makes memory of `other`'s GPU reachable from this context. [`Buffer::map_for`] does so by itself; done before, it
    /// takes that time (0.1 s with UVM, measured on an H200) out of the first mapping.
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`] with the reason, for this pair alone.
    pub fn enable_peer(&self, other: &Self) -> Result<(), Error> {
        self.same_machine(other)?;
        let reached = self.inner().space().reach(other.inner().space(), false);
        reached.map_err(|error| self.no_access(other, self.explain(&error)))
    }

    fn same_machine(&self, other: &Self) -> Result<(), Error> {
        let (own, peer) = (self.inner().driver(), other.inner().driver());
        if own.machine_id() == peer.machine_id() {
            return Ok(());
        }
        let reason =
            "they are not of one machine: a simulated machine has nothing to do with others";
        Err(self.no_access(other, reason.into()))
    }

    fn explain(&self, error: &Error) -> String {
        match self.info().map_mode {
            MapMode::Rm => format!("{error}; opening both with `MapMode::Uvm` may help"),
            _ => error.to_string(),
        }
    }

    fn no_access(&self, other: &Self, reason: String) -> Error {
        let name = |context: &Self| {
            let id = context.inner().driver().gpu_id();
            format!("{} (GPU id {id:#x})", context.info().name)
        };
        Error::NoPeerAccess {
            from: name(self),
            to: name(other),
            reason,
        }
    }

    /// Maps memory of `other` here, or answers the mapping that there is.
    pub(crate) fn map_peer(
        &self,
        other: &Self,
        memory: &Arc<Allocation>,
    ) -> Result<Arc<PeerMapping>, Error> {
        self.same_machine(other)?;
        self.inner().map_peer(memory).map_err(|error| match error {
            error @ Error::OutOfMemory { .. } => error,
            error => self.no_access(other, self.explain(&error)),
        })
    }
}

impl ContextInner {
    /// [`Context::map_peer`], with the driver's own error.
    fn map_peer(&self, memory: &Arc<Allocation>) -> Result<Arc<PeerMapping>, Error> {
        self.reap_some();
        let mut mappings = self.peer_mappings();
        mappings.retain(|mapping| mapping.strong_count() > 0);
        let known = mappings.iter().filter_map(std::sync::Weak::upgrade);
        if let Some(known) = known.into_iter().find(|mapping| mapping.is_of(memory)) {
            return Ok(known);
        }
        let mapping = Arc::new(PeerMapping::new(self.space(), memory)?);
        mappings.push(Arc::downgrade(&mapping));
        Ok(mapping)
    }
}

/// What the driver says of a pair: its link, or the name of what is in the way.
fn link(caps: &SystemGetP2pCapsV2) -> Result<PeerLink, &'static str> {
    /// `NV0000_CTRL_SYSTEM_GET_P2P_CAPS_WRITES_SUPPORTED` and `…_READS_SUPPORTED`.
    const READS_AND_WRITES: u32 = 0b11;
    /// `NV0000_CTRL_SYSTEM_GET_P2P_CAPS_NVLINK_SUPPORTED`.
    const NVLINK: u32 = 1 << 3;

    let word = caps.p2p_caps.get();
    match word & READS_AND_WRITES {
        READS_AND_WRITES if word & NVLINK != 0 => Ok(PeerLink::NvLink),
        READS_AND_WRITES => Ok(PeerLink::Pcie),
        // The first two statuses are those of reads and of writes (`NV0000_CTRL_P2P_CAPS_INDEX_*`).
        _ => match caps.p2p_caps_status {
            [0, status, ..] | [status, ..] => Err(match status {
                1 => "NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED",
                2 => "NV0000_P2P_CAPS_STATUS_GPU_NOT_SUPPORTED",
                3 => "NV0000_P2P_CAPS_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED",
                4 => "NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY",
                _ => "NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED",
            }),
        },
    }
}

/// A buffer of one context as another reaches it: an argument of kernels there, and a [`Place`](memory::Place) of copies and
/// fills of its streams.
///
/// It holds the buffer's memory: the buffer may be dropped before. When it is dropped itself, the mapping ends once all
/// work that was submitted before on the context that it is for has ended.
#[derive(Debug)]
pub struct PeerBuffer<T: Element> {
    context: Context,
    /// `Some` until dropped.
    mapping: Option<Arc<PeerMapping>>,
    va: GpuVa,
    len: usize,
    _values: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Maps the buffer in another context, of this GPU or of another of the machine.
    ///
    /// # Errors
    /// [`Error::NoPeerAccess`] where the other's GPU cannot reach it, with the reason; [`Error::InvalidArgument`] for the
    /// buffer's own context.
    ///
    /// # Examples
    /// ```
    /// let device = nv_host::Device::open_best()?;
    /// let other = device.new_context()?;
    /// let buffer = device.upload(&[1_u32, 2, 3])?;
    /// let there = buffer.map_for(&other)?;
    /// let copy = other.alloc::<u32>(3)?;
    /// other.stream()?.copy_peer(&copy, &there)?.wait()?;
    /// assert_eq!(copy.read()?, [1, 2, 3]);
    /// # Ok::<(), nv_host::Error>(())
    /// ```
    pub fn map_for(&self, context: &Context) -> Result<PeerBuffer<T>, Error> {
        if Arc::ptr_eq(self.context().inner(), context.inner()) {
            return Err(Error::InvalidArgument(
                "the buffer is of this context already".into(),
            ));
        }
        let mapping = context.map_peer(self.context(), self.memory()?)?;
        Ok(PeerBuffer {
            context: context.clone(),
            va: mapping.translate(self.va()),
            mapping: Some(mapping),
            len: self.len(),
            _values: PhantomData,
        })
    }
}

impl<T: Element> PeerBuffer<T> {
    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none, which no buffer does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its first address in the context that it is for.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        self.va
    }

    /// The context that it is for.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl<T: Element> Drop for PeerBuffer<T> {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            self.context.retire(mapping);
        }
    }
}

impl<T: Element> memory::sealed::Sealed for PeerBuffer<T> {
    fn keep(&self) -> Option<Hold> {
        self.hold()
    }
}

impl<T: Element> memory::Place for PeerBuffer<T> {
    type Element = T;

    fn context(&self) -> &Context {
        &self.context
    }

    fn va(&self) -> GpuVa {
        self.va
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<T: Element> Arg for PeerBuffer<T> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        self.va.with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        Some(&self.context)
    }

    fn hold(&self) -> Option<Hold> {
        let mapping = self.mapping.as_ref()?;
        Some(Hold::new(&self.context, Arc::clone(mapping)))
    }
}

mod sealed {
    /// Only this crate says where values lie.
    pub trait Sealed {}
}

impl<T: Element> sealed::Sealed for Buffer<T> {}
impl<T: Element> sealed::Sealed for DeviceSlice<'_, T> {}
impl<T: Element> sealed::Sealed for PeerBuffer<T> {}

/// Where values of a copy between contexts lie: a buffer, one that is mapped for another context, or a part of a buffer.
/// Of the context that is not the stream's, it is a whole buffer.
pub trait PeerPlace<T: Element>: sealed::Sealed {
    /// The values as a whole.
    #[doc(hidden)]
    fn place(&self) -> Result<PeerRef<'_>, Error>;
}

/// See [`PeerPlace`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct PeerRef<'a> {
    /// The context that the address means something in.
    context: &'a Context,
    va: GpuVa,
    len: usize,
    /// The memory, where the place is in its own context.
    memory: Option<&'a Arc<Allocation>>,
    /// Told of the copy, where its end is of interest.
    uses: Option<&'a Uses>,
}

impl PeerRef<'_> {
    fn used(&self, event: &Event) {
        if let Some(uses) = self.uses {
            uses.note(event);
        }
    }
}

impl<T: Element> PeerPlace<T> for Buffer<T> {
    fn place(&self) -> Result<PeerRef<'_>, Error> {
        Ok(PeerRef {
            context: self.context(),
            va: self.va(),
            len: self.len(),
            memory: Some(self.memory()?),
            uses: None,
        })
    }
}

impl<T: Element> PeerPlace<T> for DeviceSlice<'_, T> {
    fn place(&self) -> Result<PeerRef<'_>, Error> {
        Ok(PeerRef {
            context: self.context(),
            va: self.va(),
            len: self.len(),
            memory: None,
            uses: self.uses(),
        })
    }
}

impl<T: Element> PeerPlace<T> for PeerBuffer<T> {
    fn place(&self) -> Result<PeerRef<'_>, Error> {
        Ok(PeerRef {
            context: &self.context,
            va: self.va,
            len: self.len,
            memory: None,
            uses: None,
        })
    }
}

/// Bytes of one of the two parts of the host memory that a copy without peer access goes through: one is filled while the
/// other is emptied.
const PART: u64 = 4 << 20;

impl Stream {
    /// Copies all of `source` to the start of `target`, one of which is a buffer of another context; it returns once the
    /// copy is submitted, in the order of this stream.
    ///
    /// What this stream's GPU can reach it copies itself: mapped for the copy alone, unless [`Buffer::map_for`]'s mapping
    /// is there already. What it cannot goes through host memory, each part copied by the GPU that it is of, on its
    /// context's own stream. Work on other streams that writes the source is waited for with [`Stream::wait_for`], as ever.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `target` is shorter, or neither is of this stream's context; whatever mapping
    /// meets, but for [`Error::NoPeerAccess`].
    pub fn copy_peer<T: Element>(
        &self,
        target: &impl PeerPlace<T>,
        source: &impl PeerPlace<T>,
    ) -> Result<Event, Error> {
        let (target, source) = (target.place()?, source.place()?);
        let copied = self.copy_places::<T>(&target, &source);
        // Also where only a part was submitted.
        let event = match &copied {
            Ok(event) => event.clone(),
            Err(_) => self.event(),
        };
        target.used(&event);
        source.used(&event);
        copied
    }

    fn copy_places<T: Element>(
        &self,
        target: &PeerRef<'_>,
        source: &PeerRef<'_>,
    ) -> Result<Event, Error> {
        if source.len > target.len {
            return Err(Error::InvalidArgument(format!(
                "{} values do not fit a buffer of {}",
                source.len, target.len
            )));
        }
        let bytes = (source.len * size_of::<T>()) as u64;
        let here = |place: &PeerRef<'_>| Arc::ptr_eq(place.context.inner(), self.context().inner());
        let (foreign, other) = match (here(target), here(source)) {
            (true, true) => return self.copy_at(target.va, source.va, bytes),
            (false, true) => (target, source),
            (true, false) => (source, target),
            (false, false) => {
                return Err(Error::InvalidArgument(
                    "neither buffer is of the stream's context".into(),
                ));
            }
        };
        let Some(memory) = foreign.memory else {
            return Err(Error::InvalidArgument(
                "a part of another context's buffer, or one that is mapped for another context than the \
                 stream's: name the whole buffer, or map it with `Buffer::map_for`"
                    .into(),
            ));
        };
        match self.context().map_peer(foreign.context, memory) {
            Ok(mapping) => {
                let va = mapping.translate(foreign.va);
                let copied = if here(target) {
                    self.copy_at(other.va, va, bytes)
                } else {
                    self.copy_at(va, other.va, bytes)
                };
                self.context().retire(mapping);
                copied
            }
            Err(Error::NoPeerAccess { .. }) if bytes > 0 => self.relay(target, source, bytes),
            Err(error) => Err(error),
        }
    }

    fn copy_at(&self, target: GpuVa, source: GpuVa, bytes: u64) -> Result<Event, Error> {
        let context = self.context().inner();
        let value = self.inner().copy(context, target, source, bytes)?;
        Ok(self.event_at(value))
    }

    /// Copies between memory of two GPUs that cannot reach each other, through host memory.
    fn relay(
        &self,
        target: &PeerRef<'_>,
        source: &PeerRef<'_>,
        bytes: u64,
    ) -> Result<Event, Error> {
        let outwards = Arc::ptr_eq(source.context.inner(), self.context().inner());
        let far = if outwards {
            target.context
        } else {
            source.context
        };
        let stage =
            self.context()
                .allocate(bytes.min(2 * PART), Placement::Pinned, Use::Staging)?;
        let stage = Arc::new(stage);
        let there = far.map_peer(self.context(), &stage)?;
        let far_stage = there.translate(stage.va());
        let relayed = far.default_stream().and_then(|far| {
            let ends = (source.va, target.va);
            let last = if outwards {
                relay_parts(self, &far, (stage.va(), far_stage), ends, bytes)?
            } else {
                relay_parts(&far, self, (far_stage, stage.va()), ends, bytes)?
            };
            // What this stream does next comes after the copy, and its event is the copy's.
            self.wait_for(&last)?;
            Ok(self.event())
        });
        // Whatever came of it, parts may be on their way.
        far.retire(there);
        self.context().retire(stage);
        relayed
    }
}

/// Copies part by part: `first` fills one part of the host memory, whose two addresses `stages` are, while `second` empties
/// the other. Answers the end of the last part.
fn relay_parts(
    first: &Stream,
    second: &Stream,
    stages: (GpuVa, GpuVa),
    (source, target): (GpuVa, GpuVa),
    bytes: u64,
) -> Result<Event, Error> {
    // What was submitted to either before the copy comes before it.
    let mut last = second.event();
    first.wait_for(&last)?;
    let mut before_last = last.clone();
    let mut done = 0;
    let mut at = 0;
    while done < bytes {
        let length = PART.min(bytes - done);
        first.wait_for(&before_last)?;
        let filled = first.copy_at(GpuVa(stages.0.0 + at), GpuVa(source.0 + done), length)?;
        second.wait_for(&filled)?;
        let copied = second.copy_at(GpuVa(target.0 + done), GpuVa(stages.1.0 + at), length)?;
        before_last = std::mem::replace(&mut last, copied);
        done += length;
        at = PART - at;
    }
    Ok(last)
}
