//! One of a graph's two sets of descriptors and arguments in GPU memory.

use std::ops::Range;
use std::sync::Arc;

use nv_proto::qmd::value::CwdMembarType;
use nv_proto::qmd::{Dependent, Qmd};
use nv_proto::unit::GpuVa;

use super::Replayed;
use super::build::Kernel;
use crate::Error;
use crate::args::Hold;
use crate::context::ContextInner;
use crate::launch::{LaunchScratch, MEETING, QMD_BYTES};
use crate::memory::Allocation;
use crate::stream::{Releases, set_releases};

/// Descriptors and arguments in GPU memory. What is in flight is never written to: its user waits first.
#[derive(Debug)]
pub(super) struct Instance {
    memory: Option<Arc<Hold>>,
    /// By kernel.
    slots: Vec<Slot>,
    scratch: LaunchScratch,
    /// Whether there are meeting places, which are written anew for each replay.
    cooperative: bool,
    /// The last replay of this instance.
    pub(super) last: Option<Replayed>,
}

/// Where a launch lies in an instance: bank 0, then the descriptor, then the meeting place of a cooperative grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    offset: u64,
    bank0: u32,
}

/// A launch in an instance.
#[derive(Debug)]
struct Slot {
    /// In the memory of both instances.
    place: Place,
    /// The version of the kernel, and the local memory of a thread, that lie in memory.
    written: Option<(u64, u32)>,
    /// The version of the graph, and the local memory, of the chain that this launch is the first of.
    chain: Option<(u64, u32)>,
    /// What the kernel may read as the number of its grid: the place in the graph, counted from 1.
    grid_id: u64,
    /// The descriptor that lies in memory: that is never read back.
    qmd: Qmd,
}

/// Where the launches lie in an instance, and the bytes of it.
pub(super) fn places(
    context: &ContextInner,
    kernels: &mut [Kernel],
    local_bytes: u32,
) -> Result<(Vec<Place>, u64), Error> {
    let mut end = 0;
    let mut places = Vec::with_capacity(kernels.len());
    for kernel in kernels {
        let (request, _, shaped) = kernel.shaped(context, GpuVa(0), local_bytes)?;
        let bank0 = shaped.bank0_bytes();
        places.push(Place { offset: end, bank0 });
        // All three parts are multiples of 256. Each kernel takes more of the CPU's memory than of the GPU's.
        end += LaunchScratch::size(bank0, request.cooperative) as u64;
    }
    Ok((places, end))
}

impl Place {
    fn qmd(self) -> u64 {
        self.offset + u64::from(self.bank0)
    }

    fn meeting(self) -> u64 {
        self.qmd() + QMD_BYTES as u64
    }
}

impl Instance {
    /// An instance from `base` of `memory` on, with nothing in it.
    pub(super) fn new(
        context: &ContextInner,
        memory: Option<Arc<Hold>>,
        base: u64,
        places: &[Place],
        cooperative: bool,
    ) -> Result<Self, Error> {
        let scratch = LaunchScratch::new(context)?;
        let slots = places
            .iter()
            .zip(1..)
            .map(|(place, grid_id)| Slot {
                place: Place {
                    offset: base + place.offset,
                    ..*place
                },
                written: None,
                chain: None,
                grid_id,
                qmd: *scratch.qmd(),
            })
            .collect();
        Ok(Self {
            memory,
            slots,
            scratch,
            cooperative,
            last: None,
        })
    }

    /// Makes the chain of kernels `range` ready to be submitted, of this version of the graph and for this local memory
    /// of a thread: what changed since it was last is written, and the last descriptor is given the release. Answers
    /// where the first descriptor lies.
    pub(super) fn prepare(
        &mut self,
        context: &ContextInner,
        kernels: &mut [Kernel],
        range: Range<usize>,
        (version, local_bytes): (u64, u32),
        releases: Option<Releases>,
    ) -> Result<GpuVa, Error> {
        let unknown = || Error::Unsupported("a graph has no such launch".into());
        let Self {
            memory,
            slots,
            scratch,
            cooperative,
            ..
        } = self;
        let memory = memory.as_deref().and_then(Hold::allocation);
        let memory = memory.ok_or_else(unknown)?;
        let (Some(slots), Some(kernels)) = (slots.get_mut(range.clone()), kernels.get_mut(range))
        else {
            return Err(unknown());
        };
        let written = Some((version, local_bytes));
        let changed = slots.first().is_some_and(|first| first.chain != written);
        if changed || *cooperative {
            let mut next = None;
            // From the end, so that each knows where the next one lies.
            for (slot, kernel) in slots.iter_mut().zip(kernels).rev() {
                slot.write(context, kernel, local_bytes, scratch, memory, next)?;
                next = Some(GpuVa(memory.va().0 + slot.place.qmd()));
            }
        }
        if let Some(last) = slots.last_mut() {
            last.release(memory, releases)?;
        }
        let first = slots.first_mut().ok_or_else(unknown)?;
        first.chain = written;
        Ok(GpuVa(memory.va().0 + first.place.qmd()))
    }
}

impl Slot {
    /// Writes the launch where what lies in memory is not what it is to be, with `next` as the one that it starts.
    fn write(
        &mut self,
        context: &ContextInner,
        kernel: &mut Kernel,
        local_bytes: u32,
        scratch: &mut LaunchScratch,
        memory: &Allocation,
        next: Option<GpuVa>,
    ) -> Result<(), Error> {
        let Self { place, grid_id, .. } = *self;
        let wanted = (kernel.version(), local_bytes);
        if self.written == Some(wanted) {
            if kernel.request().cooperative {
                // The blocks of the replay before have met here.
                memory
                    .mapping()?
                    .write(place.meeting() as usize, &MEETING)?;
            }
            return Ok(());
        }
        self.written = None;
        let at = |offset| GpuVa(memory.va().0 + offset);
        let (request, function, shaped) =
            kernel.shaped(context, at(place.meeting()), local_bytes)?;
        let (function, bank0) = (function.inner(), at(place.offset));
        let (bytes, _) = scratch.encode(function, request, shaped, bank0, grid_id, |qmd| {
            if let Some(next) = next {
                qmd.set_dependent(0, Some(Dependent::schedule(next)))?;
                // The last of the chain makes all of it visible to the host.
                qmd.set_membar(CwdMembarType::L1_MEMBAR)?;
            }
            Ok(())
        })?;
        memory.mapping()?.write(place.offset as usize, bytes)?;
        self.qmd = *scratch.qmd();
        self.written = Some(wanted);
        Ok(())
    }

    /// Changes what the descriptor in memory releases.
    fn release(&mut self, memory: &Allocation, releases: Option<Releases>) -> Result<(), Error> {
        set_releases(&mut self.qmd, releases)?;
        let place = self.place.qmd() as usize;
        memory.mapping()?.write(place, self.qmd.as_bytes())
    }
}

#[cfg(all(test, feature = "sim"))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation ends the test"
)]
mod tests {
    use crate::{Backend, Device, Graph, Options, Stream, launch};

    use super::*;
    use crate::context::lock;

    /// The descriptors of the instance that was replayed last.
    fn descriptors(graph: &Graph) -> Vec<Qmd> {
        let state = lock(&graph.state);
        let instance = &state.instances[state.next ^ 1];
        instance.slots.iter().map(|slot| slot.qmd).collect()
    }

    /// The local memory of a thread that each descriptor says there is.
    fn local_sizes(graph: &Graph) -> Vec<u32> {
        let field = |qmd: &Qmd| qmd.field("SHADER_LOCAL_MEMORY_HIGH_SIZE", 0).unwrap().raw;
        descriptors(graph).iter().map(field).collect()
    }

    fn replay(graph: &Graph, stream: &Stream) -> u64 {
        graph.replay(stream).unwrap().wait().unwrap();
        stream.inner().submitted()
    }

    #[test]
    fn a_chain_says_what_it_has_to() {
        let options = Options {
            backend: Backend::Sim(nv_sim::Chip::Gh100),
            ..Options::default()
        };
        let device = Device::open(&options).unwrap();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins");
        let load = |name: &str| {
            device
                .load(&std::fs::read(root.join(name)).unwrap())
                .unwrap()
        };
        let (module, k) = (load("graph/graph.sm_90.cubin"), load("k/k.sm_90.cubin"));
        let step = module.function("step").unwrap();
        let values = device.upload(&[1_u32; 32]).unwrap();
        let mut graph = Graph::builder(&device);
        for i in 0..3_u32 {
            launch!(graph, step[1, 32](&values, 3_u32, i)).unwrap();
        }
        graph.copy(&values, &values).unwrap();
        launch!(graph, step[1, 32](&values, 5_u32, 1_u32)).unwrap();
        let graph = graph.build().unwrap();
        let stream = device.stream().unwrap();

        // Each starts the next; the last of each chain, and no other, releases the stream's timeline.
        let mut seen = Vec::new();
        for _ in 0..4 {
            let value = replay(&graph, &stream);
            let qmds = descriptors(&graph);
            let next: Vec<_> = qmds.iter().map(|qmd| qmd.dependent(0)).collect();
            assert!(next[0].is_some() && next[1].is_some() && next[0] != next[1]);
            assert_eq!(next[2..], [None, None]);
            let payloads: Vec<_> = qmds
                .iter()
                .map(|qmd| [0, 1].map(|index| qmd.release(index).map(|release| release.payload)))
                .collect();
            let [inner, middle, last] =
                [None, Some(value - 2), Some(value)].map(|value| [value; 2]);
            assert_eq!(payloads, [inner, inner, middle, last]);
            let (inner, last) = (CwdMembarType::L1_MEMBAR, CwdMembarType::L1_SYSMEMBAR);
            let membars: Vec<_> = qmds.iter().map(|qmd| qmd.membar().unwrap()).collect();
            assert_eq!(membars, [inner, inner, last, last]);
            assert_eq!(local_sizes(&graph), [0; 4]);
            seen.push(next[0].unwrap().va);
        }
        // Two instances in turn.
        assert_eq!((seen[0], seen[1]), (seen[2], seen[3]));
        assert_ne!(seen[0], seen[1]);

        // Descriptors say what local memory the channel has, which others on it go by, too.
        let loc = k.function("loc").unwrap();
        let index = device.upload(&[0_i32; 1024]).unwrap();
        launch!(stream, loc[1, 32](&index, &values, 1_i32)).unwrap();
        replay(&graph, &stream);
        let grown = local_sizes(&graph);
        assert!(grown[0] >= loc.local_bytes(), "{grown:?}");
        assert_eq!(grown, [grown[0]; 4]);
        replay(&graph, &device.stream().unwrap());
        assert_eq!(local_sizes(&graph), [0; 4]);
    }
}
