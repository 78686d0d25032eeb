//! Launches: a kernel, its shape and its arguments, checked and encoded.

use std::sync::Arc;

use nv_proto::cubin::Param;
use nv_proto::launch::{
    Call, DeviceFacts, Occupancy, Prepared, Shape, Shaped, prepare, sass_version,
};
use nv_proto::qmd::{Qmd, Version};
use nv_proto::unit::{ClassId, Dim3, GpuVa};

use crate::Error;
use crate::args::{Arg, Hold};
use crate::context::{Context, ContextInner};
use crate::module::{Function, FunctionInner, with_reserve};
use crate::stream::{Event, Stream};

/// Where generic addresses reach local and shared memory: apart from all that is mapped, and 4 GiB aligned as
/// sm_90 code expects (the reference system's values).
pub(crate) const WINDOWS: Windows = Windows {
    local: GpuVa(0x7293_0000_0000),
    shared: GpuVa(0x7294_0000_0000),
};

/// The two windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) local: GpuVa,
    pub(crate) shared: GpuVa,
}

/// Bytes of arguments that a launch holds without allocating.
const INLINE_ARGS: usize = 256;

/// One launch in the making: everything is checked before anything reaches the device, by [`Launch::submit`] for a
/// launch on a stream and by [`Launch::add`](crate::GraphLaunch::add) for one in a graph.
#[derive(Debug)]
#[must_use = "a launch does nothing until it is submitted"]
pub struct Launch<'a, To: Target = &'a Stream> {
    to: To,
    function: &'a Function,
    request: Request,
    /// How many arguments were given.
    given: usize,
    /// The first thing that is wrong with the kernel or an argument.
    bad: Option<String>,
}

/// Where a launch goes: to a stream, or into a graph.
pub trait Target: sealed::Target {}

impl<T: sealed::Target> Target for T {}

pub(crate) mod sealed {
    use crate::Error;
    use crate::args::Hold;
    use crate::context::Context;
    use crate::launch::Launch;

    /// What a launch needs of where it goes.
    pub trait Target: Sized {
        /// What comes of the launch.
        type Done;

        /// The context that kernel and arguments must be of.
        fn context(&self) -> &Context;

        /// Takes what keeps the next argument's memory.
        fn keep(&mut self, hold: impl FnOnce() -> Option<Hold>);

        /// Checks the launch and does with it what is to be done.
        fn finish(launch: Launch<'_, Self>) -> Result<Self::Done, Error>;
    }
}

impl sealed::Target for &Stream {
    type Done = Event;

    fn context(&self) -> &Context {
        Stream::context(self)
    }

    // Memory that is given up ends after the work submitted before it.
    fn keep(&mut self, _: impl FnOnce() -> Option<Hold>) {}

    fn finish(launch: Launch<'_, Self>) -> Result<Event, Error> {
        launch.submit()
    }
}

/// What is asked of a kernel: how many blocks, of what shape, with what arguments.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) grid: Dim3,
    block: Dim3,
    shared: u32,
    cluster: Option<Dim3>,
    pub(crate) cooperative: bool,
    /// Bytes of local memory of a thread that are asked for, the driver's among them.
    pub(crate) local_bytes: u32,
    args: ArgArea,
}

/// The bytes of the arguments, as they lie from the parameter base on.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the inline arguments are what spares a launch an allocation"
)]
enum ArgArea {
    Inline([u8; INLINE_ARGS]),
    Heap(Vec<u8>),
}

impl ArgArea {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Heap(bytes) => bytes,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::Heap(bytes) => bytes,
        }
    }
}

impl Request {
    fn new(function: &Function) -> Self {
        let size = usize::from(function.inner().param_size);
        let args = if size <= INLINE_ARGS {
            ArgArea::Inline([0; INLINE_ARGS])
        } else {
            ArgArea::Heap(vec![0; size])
        };
        Self {
            grid: Dim3::ONE,
            block: Dim3::ONE,
            shared: 0,
            cluster: None,
            cooperative: false,
            local_bytes: function.inner().local_bytes,
            args,
        }
    }

    /// The threads of a block.
    pub(crate) fn block(&self) -> Dim3 {
        self.block
    }

    /// The shape, with its meeting place at `meeting` if it is cooperative.
    pub(crate) fn shape(&self, meeting: GpuVa) -> Shape {
        Shape {
            dynamic_shared: self.shared,
            cluster: self.cluster,
            cooperative: self.cooperative.then_some(meeting),
            ..Shape::new(self.block)
        }
    }

    /// Puts argument `ordinal` of `function` where its parameter lies; answers what is wrong with it. One argument
    /// too many is nobody's parameter, and is told by number.
    pub(crate) fn set_arg(
        &mut self,
        context: &Context,
        function: &Function,
        ordinal: usize,
        arg: &impl Arg,
    ) -> Option<String> {
        let param = function.params().get(ordinal)?;
        let foreign = arg
            .context()
            .is_some_and(|other| !Arc::ptr_eq(other.inner(), context.inner()));
        if foreign {
            return Some(format!("argument {ordinal} is of another context"));
        }
        let area = self.args.bytes_mut();
        arg.with_bytes(|bytes| put(area, param, bytes))
    }

    /// The bytes of the parameters.
    fn arg_bytes(&self, function: &FunctionInner) -> &[u8] {
        let size = usize::from(function.param_size);
        self.args.bytes().get(..size).unwrap_or_default()
    }
}

impl<'a, To: Target> Launch<'a, To> {
    pub(crate) fn new(to: To, function: &'a Function) -> Self {
        // Its address means something else on another context.
        let foreign = !Arc::ptr_eq(function.context().inner(), to.context().inner());
        Self {
            to,
            function,
            request: Request::new(function),
            given: 0,
            bad: foreign.then(|| "it was loaded on another context".to_owned()),
        }
    }

    /// Blocks; one by default.
    pub fn grid(mut self, grid: impl Into<Dim3>) -> Self {
        self.request.grid = grid.into();
        self
    }

    /// Threads of a block; one by default.
    pub fn block(mut self, block: impl Into<Dim3>) -> Self {
        self.request.block = block.into();
        self
    }

    /// Bytes of dynamic shared memory; none by default.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.request.shared = bytes;
        self
    }

    /// Blocks of a cluster, on GPUs that have clusters; what the kernel was compiled for by default.
    pub fn cluster(mut self, cluster: impl Into<Dim3>) -> Self {
        self.request.cluster = Some(cluster.into());
        self
    }

    /// Bytes of stack of a thread, at least: for kernels with functions that call themselves or are called through pointers,
    /// for which [`Function::stack`] may be too little. All threads that the GPU can run get as much, and keep it: 60 KiB a thread are 17 GiB
    /// on an H200.
    pub fn stack(mut self, bytes: u32) -> Self {
        let local_bytes = self.request.local_bytes.max(with_reserve(bytes));
        self.request.local_bytes = local_bytes;
        self
    }

    /// Has all blocks resident together, as a grid-wide barrier needs. The file does not say which kernels have one:
    /// a kernel that meets its grid in a launch without this reads address 0 and ends in a fault.
    pub fn cooperative(mut self) -> Self {
        self.request.cooperative = true;
        self
    }

    /// The next argument, in the kernel's order.
    pub fn arg(mut self, arg: impl Arg) -> Self {
        let bad = self
            .request
            .set_arg(self.to.context(), self.function, self.given, &arg);
        self.given += 1;
        self.to.keep(|| arg.hold());
        self.bad = self.bad.take().or(bad);
        self
    }

    /// What [`launch!`](crate::launch!) ends with.
    ///
    /// # Errors
    /// As [`Launch::submit`].
    #[doc(hidden)]
    pub fn finish(self) -> Result<To::Done, Error> {
        To::finish(self)
    }

    /// That the kernel can be launched here, and was given all of its arguments.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if let Some(reason) = &self.bad {
            return Err(refused(self.function.inner(), reason.clone()));
        }
        let wanted = self.function.params().len();
        if self.given != wanted {
            let reason = format!("{} arguments were given and it takes {wanted}", self.given);
            return Err(refused(self.function.inner(), reason));
        }
        Ok(())
    }

    /// What it is made of.
    pub(crate) fn into_parts(self) -> (To, &'a Function, Request) {
        (self.to, self.function, self.request)
    }

    /// The kernel.
    pub(crate) fn function(&self) -> &Function {
        self.function
    }

    /// What is asked of it.
    pub(crate) fn request(&self) -> &Request {
        &self.request
    }
}

impl Launch<'_, &Stream> {
    /// Checks the launch and submits it; it runs after what was submitted to the stream before.
    ///
    /// # Errors
    /// [`Error::Launch`] with the limit that is broken, before anything reaches the device; [`Error::Fault`]
    /// when the stream is dead; [`Error::Timeout`] when the stream is full and stays so.
    pub fn submit(&self) -> Result<Event, Error> {
        self.check()?;
        let context = self.to.context().inner();
        let value = self.to.inner().launch(context, self)?;
        Ok(self.to.event_at(value))
    }
}

/// Launches a kernel, written much as in CUDA: `launch!(stream, kernel[grid, block](args...))?`, with the bytes of
/// dynamic shared memory as a third number in the brackets where there are any.
///
/// It is the builder in short ([`Stream::launch`] and [`Launch`]), with its checks: an argument that does not have
/// its parameter's size, or a limit that is broken, is an [`Error::Launch`] before anything reaches the device. On a
/// stream it answers the launch's [`Event`]; given a [`GraphBuilder`](crate::GraphBuilder) in the stream's place, it
/// adds the launch to the graph and answers its [`GraphNode`](crate::GraphNode).
///
/// # Examples
/// ```no_run
/// use nv_host::{Device, launch};
///
/// let device = Device::open_best()?;
/// let module = device.load(&std::fs::read("saxpy.cubin").expect("a file"))?;
/// let saxpy = module.function("saxpy")?;
/// let (x, y) = (device.upload(&[1.0_f32; 1000])?, device.upload(&[2.0_f32; 1000])?);
/// let stream = device.stream()?;
/// launch!(stream, saxpy[4, 256](2.0_f32, &x, &y, 1000_i64))?.wait()?;
/// # Ok::<(), nv_host::Error>(())
/// ```
#[macro_export]
macro_rules! launch {
    ($to:expr, $function:tt [$grid:expr, $block:expr $(, $shared:expr)? $(,)?] ($($arg:expr),* $(,)?)) => {
        $to.launch(&$function)
            .grid($grid)
            .block($block)
            $(.shared($shared))?
            $(.arg($arg))*
            .finish()
    };
}

/// A launch that is not made.
pub(crate) fn refused(function: &FunctionInner, reason: impl ToString) -> Error {
    Error::Launch {
        kernel: function.name.to_string(),
        reason: reason.to_string(),
    }
}

/// Puts one argument where its parameter lies; answers what does not fit.
fn put(area: &mut [u8], param: &Param, bytes: &[u8]) -> Option<String> {
    let (offset, size) = (usize::from(param.offset), usize::from(param.size));
    if bytes.len() != size {
        return Some(format!(
            "argument {} has {} bytes and the parameter takes {size}",
            param.ordinal,
            bytes.len()
        ));
    }
    match area.get_mut(offset..offset + size) {
        Some(place) => {
            place.copy_from_slice(bytes);
            None
        }
        None => Some(format!(
            "parameter {} at offset {offset:#x} lies outside the kernel's parameters",
            param.ordinal
        )),
    }
}

/// A kernel's launch descriptor and constant bank 0, prepared for the shape that it was last launched in.
#[derive(Debug, Default)]
pub(crate) struct ShapeCache {
    /// With the local memory of a thread that the channel had.
    shaped: Option<(u32, Shaped)>,
}

impl ShapeCache {
    /// The kernel in this shape on a channel with `local_bytes` of local memory for each thread.
    pub(crate) fn get(
        &mut self,
        context: &ContextInner,
        function: &FunctionInner,
        shape: &Shape,
        local_bytes: u32,
    ) -> Result<&Shaped, Error> {
        let fits = matches!(&self.shaped, Some((local, shaped)) if *local == local_bytes && shaped.shape() == shape);
        if !fits {
            self.shaped = None;
        }
        let shaped = match self.shaped.take() {
            Some(shaped) => shaped,
            None => (
                local_bytes,
                shape_anew(context, function, shape, local_bytes)?,
            ),
        };
        Ok(&self.shaped.insert(shaped).1)
    }
}

/// Prepares a kernel for a shape.
fn shape_anew(
    context: &ContextInner,
    function: &FunctionInner,
    shape: &Shape,
    local_bytes: u32,
) -> Result<Shaped, Error> {
    prepare_anew(context, function, local_bytes)?
        .shape(shape)
        .map_err(|error| refused(function, error))
}

/// How many blocks of a shape run at once.
pub(crate) fn occupancy(
    context: &ContextInner,
    function: &FunctionInner,
    shape: &Shape,
) -> Result<Occupancy, Error> {
    prepare_anew(context, function, function.local_bytes)?
        .occupancy(shape)
        .map_err(|error| refused(function, error))
}

/// Prepares a kernel for the device.
fn prepare_anew(
    context: &ContextInner,
    function: &FunctionInner,
    local_bytes: u32,
) -> Result<Prepared, Error> {
    let info = context.info();
    let facts = DeviceFacts {
        qmd: qmd_version(info.classes.compute)?,
        sass_version: sass_version(info.sm_version),
        local_bytes_per_thread: local_bytes,
        shared_window: WINDOWS.shared,
        local_window: WINDOWS.local,
        ..DeviceFacts::new(info.sm, info.sm_count).map_err(|error| refused(function, error))?
    };
    prepare(&function.facts, &facts).map_err(|error| refused(function, error))
}

/// The version of the descriptors that a compute class takes.
fn qmd_version(compute: ClassId) -> Result<Version, Error> {
    Version::of_class(compute).ok_or_else(|| {
        Error::Unsupported(format!(
            "no launch descriptor is known for compute class {:#x}",
            compute.0
        ))
    })
}

/// Where a launch is put together before it is copied to the GPU: bank 0, then the descriptor, then the place
/// where the blocks of a cooperative grid meet.
#[derive(Debug)]
pub(crate) struct LaunchScratch {
    qmd: Qmd,
    bytes: Vec<u8>,
}

/// Bytes of a descriptor with its alignment.
pub(crate) const QMD_BYTES: usize = 512;
/// Bytes of the meeting place with its alignment.
const MEETING_BYTES: usize = 256;
/// What the vendor library writes there: the words 0x10, 0, 1, 0 (`golden/h200/cuda_launches.json`).
pub(crate) const MEETING: [u8; 16] = [0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

impl LaunchScratch {
    pub(crate) fn new(context: &ContextInner) -> Result<Self, Error> {
        let version = qmd_version(context.classes().compute)?;
        Ok(Self {
            qmd: Qmd::new(version),
            bytes: Vec::new(),
        })
    }

    /// The descriptor put together last.
    pub(crate) fn qmd(&self) -> &Qmd {
        &self.qmd
    }

    /// Bytes that a launch takes in GPU memory.
    pub(crate) fn size(shaped_bank0: u32, cooperative: bool) -> usize {
        shaped_bank0 as usize + QMD_BYTES + if cooperative { MEETING_BYTES } else { 0 }
    }

    /// Puts a launch together for memory at `at`; answers the bytes and the descriptor's address. `finish` may add
    /// to the descriptor.
    pub(crate) fn encode(
        &mut self,
        function: &FunctionInner,
        request: &Request,
        shaped: &Shaped,
        at: GpuVa,
        grid_id: u64,
        finish: impl FnOnce(&mut Qmd) -> Result<(), Error>,
    ) -> Result<(&[u8], GpuVa), Error> {
        let bank0 = shaped.bank0_bytes() as usize;
        let size = Self::size(shaped.bank0_bytes(), request.cooperative);
        if self.bytes.len() < size {
            self.bytes.resize(size, 0); // grows to the largest launch, then never again
        }
        let call = Call {
            grid: request.grid,
            args: request.arg_bytes(function),
            bank0: at,
            grid_id,
        };
        shaped
            .encode(&call, &mut self.qmd, &mut self.bytes)
            .map_err(|error| refused(function, error))?;
        finish(&mut self.qmd)?;
        let qmd = self.qmd.as_bytes();
        if let Some((place, rest)) = self
            .bytes
            .get_mut(bank0..)
            .and_then(|rest| rest.split_at_mut_checked(QMD_BYTES))
        {
            if let Some(place) = place.get_mut(..qmd.len()) {
                place.copy_from_slice(qmd);
            }
            if let (true, Some(place)) = (request.cooperative, rest.get_mut(..MEETING.len())) {
                place.copy_from_slice(&MEETING);
            }
        }
        let bytes = self.bytes.get(..size).unwrap_or_default();
        Ok((bytes, GpuVa(at.0 + u64::from(shaped.bank0_bytes()))))
    }
}
