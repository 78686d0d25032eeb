//! Putting a graph together: what is in it, checked launch by launch as a stream's launches are.

use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use nv_proto::launch::Shaped;
use nv_proto::unit::{Dim3, GpuVa};

use super::instance::{self, Instance};
use super::{Graph, GraphNode, State};
use crate::Error;
use crate::args::{Arg, Hold};
use crate::builtin::{Builtin, LEAST};
use crate::context::{Context, ContextInner};
use crate::launch::{Launch, Request, ShapeCache, refused, sealed};
use crate::memory::{Place, Placement, Use};
use crate::module::Function;
use crate::stream::{Pattern, check_copy, check_fill};

/// A graph in the making: launches and copies in the order in which they are to run.
#[derive(Debug)]
#[must_use = "a graph does nothing until it is built and replayed"]
pub struct GraphBuilder {
    id: u64,
    context: Context,
    kernels: Vec<Kernel>,
    steps: Vec<Step>,
    /// What keeps the memory of copies and fills.
    holds: Vec<Hold>,
    /// The kernels for large ones within GPU memory: looked for at the first need, `None` where there are none.
    builtin: Option<Option<Builtin>>,
}

/// Where a launch goes that is added to a graph.
#[derive(Debug)]
pub struct IntoGraph<'a> {
    builder: &'a mut GraphBuilder,
    holds: Vec<Option<Hold>>,
}

/// A launch that [`Launch::add`](GraphLaunch::add) adds to a graph.
pub type GraphLaunch<'a> = Launch<'a, IntoGraph<'a>>;

/// Part of a graph, between which the GPU waits.
#[derive(Debug)]
pub(super) enum Step {
    /// Launches, each of which starts the next.
    Chain {
        kernels: Range<usize>,
        /// What a fault is told to be in, where the program counter does not tell more.
        label: Arc<str>,
    },
    Copy {
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    },
    Fill {
        target: GpuVa,
        pattern: Pattern,
        count: u64,
    },
}

/// A launch, as it is to be from the next replay on.
#[derive(Debug)]
pub(super) struct Kernel {
    function: Function,
    request: Request,
    /// What keeps the memory of its arguments, by their number.
    holds: Vec<Option<Hold>>,
    shapes: ShapeCache,
    /// The local memory of a thread that the shape was last prepared for.
    local_bytes: u32,
    /// Counts the changes.
    version: u64,
}

impl GraphBuilder {
    pub(super) fn new(context: &Context, id: u64) -> Self {
        Self {
            id,
            context: context.clone(),
            kernels: Vec::new(),
            steps: Vec::new(),
            holds: Vec::new(),
            builtin: None,
        }
    }

    /// Begins a launch of `function`; [`Launch::add`](GraphLaunch::add) ends it.
    pub fn launch<'a>(&'a mut self, function: &'a Function) -> GraphLaunch<'a> {
        let to = IntoGraph {
            builder: self,
            holds: Vec::new(),
        };
        Launch::new(to, function)
    }

    /// Adds a copy of all of `source` to the start of `target`, as [`Stream::copy`](crate::Stream::copy) makes them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when `target` is shorter or one is of another context.
    pub fn copy<D, S>(&mut self, target: &D, source: &S) -> Result<&mut Self, Error>
    where
        D: Place + ?Sized,
        S: Place<Element = D::Element> + ?Sized,
    {
        let bytes = check_copy(&self.context, target, source)?;
        let (to, from) = (target.va(), source.va());
        let within = target.in_gpu_memory() && source.in_gpu_memory();
        let done = match self.kernels(bytes, within) {
            Some(kernels) => kernels.add_copy(self, to, from, bytes)?,
            None => 0,
        };
        if done < bytes {
            self.steps.push(Step::Copy {
                target: GpuVa(to.0 + done),
                source: GpuVa(from.0 + done),
                bytes: bytes - done,
            });
        }
        self.holds.extend(target.keep());
        self.holds.extend(source.keep());
        Ok(self)
    }

    /// Adds a fill of all of `target`, as [`Stream::fill`](crate::Stream::fill) makes them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for values of other than 1, 2, 4 or 8 bytes, or memory of another context.
    pub fn fill<D>(&mut self, target: &D, value: D::Element) -> Result<&mut Self, Error>
    where
        D: Place + ?Sized,
    {
        let (pattern, count) = check_fill(&self.context, target, value)?;
        let (to, bytes) = (target.va(), count * pattern.bytes());
        let done = match (self.kernels(bytes, target.in_gpu_memory()), pattern.word()) {
            (Some(kernels), Some(word)) => kernels.add_fill(self, to, word, bytes)?,
            _ => 0,
        };
        if done < bytes {
            self.steps.push(Step::Fill {
                target: GpuVa(to.0 + done),
                pattern,
                count: (bytes - done) / pattern.bytes(),
            });
        }
        self.holds.extend(target.keep());
        Ok(self)
    }

    /// The kernels for a copy or a fill of so many bytes, `within` GPU memory or not.
    fn kernels(&mut self, bytes: u64, within: bool) -> Option<Builtin> {
        if !within || bytes < LEAST {
            return None;
        }
        let context = &self.context;
        let kernels = self.builtin.get_or_insert_with(|| Builtin::of(context));
        kernels.clone()
    }

    /// Gives the graph memory for its descriptors and arguments, and writes them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], or whatever else the driver refuses.
    pub fn build(mut self) -> Result<Graph, Error> {
        let context = self.context.inner();
        for step in &mut self.steps {
            if let Step::Chain { kernels, label } = step {
                *label = name(self.kernels.get(kernels.clone()).unwrap_or_default());
            }
        }
        let local_bytes = self.kernels.iter().map(Kernel::own_local_bytes).max();
        let local_bytes = local_bytes.unwrap_or(0);
        // What a stream will most likely have that is told of local memory by the first replay.
        let local = context.local_bytes_for(local_bytes);
        let (places, bytes) = instance::places(context, &mut self.kernels, local)?;
        let memory = match bytes {
            0 => None,
            _ => {
                let bytes = bytes.checked_mul(2).ok_or(Error::OutOfMemory {
                    what: "memory for a graph",
                    bytes,
                })?;
                let memory = self
                    .context
                    .allocate(bytes, Placement::HostVisible, Use::Graph)?;
                let memory = Arc::new(Hold::new(&self.context, Arc::new(memory)));
                context.add_graph(&memory);
                Some(memory)
            }
        };
        let cooperative = self.kernels.iter().any(|kernel| kernel.request.cooperative);
        let mut instances = [
            Instance::new(context, memory.clone(), 0, &places, cooperative)?,
            Instance::new(context, memory, bytes, &places, cooperative)?,
        ];
        for instance in &mut instances {
            for step in &self.steps {
                if let Step::Chain { kernels, .. } = step {
                    instance.prepare(
                        context,
                        &mut self.kernels,
                        kernels.clone(),
                        (0, local),
                        None,
                    )?;
                }
            }
        }
        Ok(Graph {
            id: self.id,
            local_bytes,
            steps: self.steps,
            _holds: self.holds,
            state: Mutex::new(State {
                kernels: self.kernels,
                instances,
                version: 0,
                next: 0,
                last: None,
            }),
            context: self.context,
        })
    }

    /// Has large copies and fills use these kernels, also where the copy engine is as fast.
    #[cfg(all(test, feature = "sim"))]
    pub(crate) fn use_builtin(&mut self, kernels: Builtin) {
        self.builtin = Some(Some(kernels));
    }

    fn add(&mut self, kernel: Kernel) -> GraphNode {
        let index = self.kernels.len();
        self.kernels.push(kernel);
        match self.steps.last_mut() {
            Some(Step::Chain { kernels, .. }) => kernels.end = index + 1,
            _ => self.steps.push(Step::Chain {
                kernels: index..index + 1,
                label: Arc::default(),
            }),
        }
        GraphNode {
            graph: self.id,
            kernel: index,
        }
    }
}

impl sealed::Target for IntoGraph<'_> {
    type Done = GraphNode;

    fn context(&self) -> &Context {
        &self.builder.context
    }

    fn keep(&mut self, hold: impl FnOnce() -> Option<Hold>) {
        self.holds.push(hold());
    }

    fn finish(launch: GraphLaunch<'_>) -> Result<GraphNode, Error> {
        launch.add()
    }
}

impl GraphLaunch<'_> {
    /// Checks the launch and adds it to the graph; it runs after what was added before.
    ///
    /// # Errors
    /// [`Error::Launch`] with the limit that is broken; the graph is as it was then.
    pub fn add(self) -> Result<GraphNode, Error> {
        self.check()?;
        let (IntoGraph { builder, holds }, function, request) = self.into_parts();
        let mut kernel = Kernel {
            local_bytes: request.local_bytes,
            function: function.clone(),
            request,
            holds,
            shapes: ShapeCache::default(),
            version: 0,
        };
        kernel.check_grid(builder.context.inner())?;
        Ok(builder.add(kernel))
    }
}

impl Kernel {
    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The local memory that a thread of it needs.
    fn own_local_bytes(&self) -> u32 {
        self.request.local_bytes
    }

    /// It in its shape, with its meeting place at `meeting`, on a channel with `local_bytes` for each thread.
    pub(super) fn shaped(
        &mut self,
        context: &ContextInner,
        meeting: GpuVa,
        local_bytes: u32,
    ) -> Result<(&Request, &Function, &Shaped), Error> {
        self.local_bytes = local_bytes;
        let shape = self.request.shape(meeting);
        let shaped = self
            .shapes
            .get(context, self.function.inner(), &shape, local_bytes)?;
        Ok((&self.request, &self.function, shaped))
    }

    fn check_grid(&mut self, context: &ContextInner) -> Result<(), Error> {
        let (request, function, shaped) = self.shaped(context, GpuVa(0), self.local_bytes)?;
        shaped
            .check_grid(request.grid)
            .map_err(|error| refused(function.inner(), error))
    }

    pub(super) fn set_grid(&mut self, context: &ContextInner, grid: Dim3) -> Result<(), Error> {
        let before = mem::replace(&mut self.request.grid, grid);
        let checked = self.check_grid(context);
        match checked {
            Ok(()) => self.version += 1,
            Err(_) => self.request.grid = before,
        }
        checked
    }

    /// Puts an argument, and what keeps its memory, in the place of another; answers what kept that one's.
    pub(super) fn set_arg(
        &mut self,
        context: &Context,
        ordinal: usize,
        arg: &impl Arg,
        hold: Option<Hold>,
    ) -> Result<Option<Hold>, Error> {
        let refuse = |reason| Err(refused(self.function.inner(), reason));
        let Some(held) = self.holds.get_mut(ordinal) else {
            let wanted = self.holds.len();
            return refuse(format!(
                "there is no argument {ordinal}: it takes {wanted}, counted from 0"
            ));
        };
        if let Some(reason) = self.request.set_arg(context, &self.function, ordinal, arg) {
            return refuse(reason);
        }
        self.version += 1;
        Ok(mem::replace(held, hold))
    }
}

/// The name of a chain: its kernels, each once and in the order in which they come.
fn name(kernels: &[Kernel]) -> Arc<str> {
    /// Kernels that are named.
    const MOST: usize = 8;
    let mut names: Vec<&str> = Vec::new();
    let mut more = false;
    for kernel in kernels {
        let name = kernel.function.name();
        if names.contains(&name) {
            continue;
        }
        if names.len() == MOST {
            more = true;
            break;
        }
        names.push(name);
    }
    let mut text = names.join(" or ");
    if more {
        text.push_str(" or another one");
    }
    if names.len() > 1 {
        text.push_str(" of a graph");
    }
    text.into()
}
