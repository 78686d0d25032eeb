//! Graphs: launches, copies and fills that are put together once and replayed as often as wanted.

mod build;
mod instance;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nv_proto::unit::Dim3;

use crate::Error;
use crate::args::{Arg, Hold};
use crate::context::{Context, ContextInner, lock};
use crate::stream::{Event, Stream, Submitted};

pub use build::{GraphBuilder, GraphLaunch, IntoGraph};

use build::{Kernel, Step};
use instance::Instance;

/// Launches, copies and fills in order, bound to memory of their own, so that replaying them costs little.
///
/// Launches that follow each other are a chain on the GPU: each descriptor starts the next, the caches that a kernel
/// reads through are invalidated before it, and the last one signals the end. The CPU submits a chain of any length in
/// a few words. Before and after copies and fills the GPU waits as between the submissions of a stream; large ones within
/// GPU memory are launches of kernels of our own, and part of the chain.
///
/// A graph keeps all that it uses: a buffer or a module that is dropped lives on until the graph is dropped or has
/// been given another argument, and its last replay has ended. What is passed as a plain address is its caller's to
/// keep.
///
/// There are two instances of the descriptors and arguments, used in turn, so that one can be changed and submitted
/// while the other runs; a third replay waits until the first has ended. Replays of one graph run one after the other,
/// also on different streams. A graph may be used from several threads: each replay is whole, and
/// [`Graph::set_arg`] and [`Graph::set_grid`] count for the replays that begin after them.
///
/// # Examples
/// ```no_run
/// use nv_host::{Device, Graph};
///
/// let device = Device::open_best()?;
/// let module = device.load(&std::fs::read("step.cubin").expect("a file"))?;
/// let step = module.function("step")?;
/// let state = device.upload(&[0.0_f32; 256])?;
///
/// let mut graph = Graph::builder(&device);
/// let first = graph.launch(&step).grid(1).block(256).arg(&state).arg(0.5_f32).add()?;
/// graph.launch(&step).grid(1).block(256).arg(&state).arg(0.25_f32).add()?;
/// let graph = graph.build()?;
///
/// let stream = device.stream()?;
/// for round in 0..100 {
///     graph.set_arg(first, 1, round as f32)?;
///     graph.replay(&stream)?;
/// }
/// stream.synchronize()?;
/// # Ok::<(), nv_host::Error>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    id: u64,
    context: Context,
    steps: Vec<Step>,
    /// What keeps the memory of copies and fills.
    _holds: Vec<Hold>,
    /// The local memory of a thread that the kernels need.
    local_bytes: u32,
    state: Mutex<State>,
}

/// A launch in a graph, for changing its arguments and its grid.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct GraphNode {
    graph: u64,
    kernel: usize,
}

/// What replays and changes touch.
#[derive(Debug)]
struct State {
    kernels: Vec<Kernel>,
    /// Counts the changes to any of them.
    version: u64,
    instances: [Instance; 2],
    /// The instance that is replayed next.
    next: usize,
    /// The newest replay.
    last: Option<Submitted>,
}

impl Graph {
    /// Begins a graph.
    pub fn builder(context: &Context) -> GraphBuilder {
        static GRAPHS: AtomicU64 = AtomicU64::new(0);
        GraphBuilder::new(context, GRAPHS.fetch_add(1, Ordering::Relaxed))
    }

    /// The context that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Submits all of it to `stream`; it runs after what was submitted there before, and after earlier replays of the
    /// same graph. The event is reached once all of it has ended.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a stream of another context; [`Error::Fault`] when the stream is dead;
    /// [`Error::Timeout`] when an earlier replay does not end within the device's limit, or the stream is full and
    /// stays so. Where something goes wrong between two parts, those submitted before it run.
    pub fn replay(&self, stream: &Stream) -> Result<Event, Error> {
        let context = self.context.inner();
        if !Arc::ptr_eq(stream.context().inner(), context) {
            return Err(Error::InvalidArgument(
                "a graph is replayed on a stream of its own context".into(),
            ));
        }
        let mut state = lock(&self.state);
        let State {
            kernels,
            version,
            instances,
            next,
            last,
        } = &mut *state;
        let Some(instance) = instances.get_mut(*next) else {
            return Err(Error::Unsupported("a graph has two instances".into()));
        };
        // Before the stream is taken: a wait for another one may have to look into that.
        if let Some(before) = &instance.last
            && !kernels.is_empty()
        {
            wait(before, context)?;
        }
        if let Some(before) = last
            && !before.is_on(stream.inner())
        {
            hold_back(stream, before)?;
        }
        let target = stream.inner();
        let mut turn = target.turn();
        let mut submit = || {
            for step in &self.steps {
                match step {
                    Step::Chain {
                        kernels: range,
                        label,
                    } => {
                        let chain = range.clone();
                        turn.chain(
                            context,
                            (label, chain.len()),
                            self.local_bytes,
                            |local, release| {
                                let now = (*version, local);
                                instance.prepare(context, kernels, chain, now, release)
                            },
                        )?;
                    }
                    Step::Copy {
                        target,
                        source,
                        bytes,
                    } => {
                        turn.copy(context, *target, *source, *bytes)?;
                    }
                    Step::Fill {
                        target,
                        pattern,
                        count,
                    } => {
                        turn.fill(context, *target, *pattern, *count)?;
                    }
                }
            }
            Ok(())
        };
        let result = submit();
        let value = target.submitted();
        drop(turn);
        // Also where only a part was submitted.
        let replayed = Submitted::new(target, value);
        instance.last = Some(replayed.clone());
        *last = Some(replayed);
        *next ^= 1;
        result.map(|()| stream.event_at(value))
    }

    /// Gives the launch another argument in the place of number `ordinal`, counted from 0.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a launch of another graph; [`Error::Launch`] for an argument that the kernel does
    /// not take. The graph is as it was then.
    pub fn set_arg(&self, node: GraphNode, ordinal: usize, arg: impl Arg) -> Result<(), Error> {
        // What the argument's type does by itself, and the end of the one before, may come back here: not while the
        // state is taken.
        let (context, hold) = (arg.context().cloned(), arg.hold());
        arg.with_bytes(|bytes| {
            let mut state = lock(&self.state);
            let kernel = self.kernel(&mut state, node)?;
            let arg = Given { bytes, context };
            let before = kernel.set_arg(&self.context, ordinal, &arg, hold)?;
            state.version += 1;
            drop(state);
            drop(before);
            Ok(())
        })
    }

    /// Gives the launch another grid.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a launch of another graph; [`Error::Launch`] with the limit that is broken. The
    /// graph is as it was then.
    pub fn set_grid(&self, node: GraphNode, grid: impl Into<Dim3>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let kernel = self.kernel(&mut state, node)?;
        kernel.set_grid(self.context.inner(), grid.into())?;
        state.version += 1;
        Ok(())
    }

    fn kernel<'a>(&self, state: &'a mut State, node: GraphNode) -> Result<&'a mut Kernel, Error> {
        let kernel = (node.graph == self.id)
            .then(|| state.kernels.get_mut(node.kernel))
            .flatten();
        kernel.ok_or_else(|| Error::InvalidArgument("a launch of another graph".into()))
    }
}

/// An argument, asked already what it is.
struct Given<'a> {
    bytes: &'a [u8],
    context: Option<Context>,
}

impl Arg for Given<'_> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(self.bytes)
    }

    fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }
}

/// Waits until a replay has ended, one way or the other.
fn wait(replay: &Submitted, context: &ContextInner) -> Result<(), Error> {
    if replay.is_over() {
        return Ok(());
    }
    match replay.wait(context, context.limit()) {
        // Whoever uses that stream is told; this replay is over.
        Err(Error::Fault(_)) => Ok(()),
        result => result,
    }
}

/// Has later work of `stream` wait until a replay has ended.
fn hold_back(stream: &Stream, replay: &Submitted) -> Result<(), Error> {
    if replay.is_over() {
        return Ok(());
    }
    let context = stream.context().inner();
    match replay.parts() {
        (Some(other), value) => stream.inner().wait_on_gpu(context, &other, value),
        (None, _) => wait(replay, context),
    }
}
