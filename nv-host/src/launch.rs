//! Launches: a kernel, its shape and its arguments, checked and encoded.

use std::sync::Arc;

use nv_proto::cubin::Param;
use nv_proto::launch::{
    Call, DeviceFacts, LaunchError, Occupancy, Prepared, Shape, Shaped, prepare, sass_version,
};
use nv_proto::qmd::{Qmd, Version};
use nv_proto::unit::{ClassId, Dim3, GpuVa};

use crate::Error;
use crate::args::Arg;
use crate::context::ContextInner;
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

/// One launch in the making: everything is checked in [`Launch::submit`], before anything reaches the device.
#[derive(Debug)]
#[must_use = "a launch does nothing until it is submitted"]
pub struct Launch<'a> {
    stream: &'a Stream,
    function: &'a Function,
    grid: Dim3,
    block: Dim3,
    shared: u32,
    cluster: Option<Dim3>,
    cooperative: bool,
    /// Bytes of local memory of a thread that the launch asks for, the driver's among them.
    local_bytes: u32,
    args: ArgArea,
    /// How many arguments were given.
    given: usize,
    /// The first thing that is wrong with the kernel or an argument.
    bad: Option<String>,
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

impl<'a> Launch<'a> {
    pub(crate) fn new(stream: &'a Stream, function: &'a Function) -> Self {
        let size = usize::from(function.inner().param_size);
        let args = if size <= INLINE_ARGS {
            ArgArea::Inline([0; INLINE_ARGS])
        } else {
            ArgArea::Heap(vec![0; size])
        };
        // Its address means something else on another context.
        let foreign = !Arc::ptr_eq(function.context().inner(), stream.context().inner());
        Self {
            stream,
            function,
            grid: Dim3::ONE,
            block: Dim3::ONE,
            shared: 0,
            cluster: None,
            cooperative: false,
            local_bytes: function.inner().local_bytes,
            args,
            given: 0,
            bad: foreign.then(|| "it was loaded on another context".to_owned()),
        }
    }

    /// Blocks; one by default.
    pub fn grid(mut self, grid: impl Into<Dim3>) -> Self {
        self.grid = grid.into();
        self
    }

    /// Threads of a block; one by default.
    pub fn block(mut self, block: impl Into<Dim3>) -> Self {
        self.block = block.into();
        self
    }

    /// Bytes of dynamic shared memory; none by default.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Blocks of a cluster, on GPUs that have clusters; what the kernel was compiled for by default.
    pub fn cluster(mut self, cluster: impl Into<Dim3>) -> Self {
        self.cluster = Some(cluster.into());
        self
    }

    /// Bytes of stack of a thread, at least: for kernels with functions that call themselves or are called through pointers,
    /// for which [`Function::stack`] may be too little. All threads that the GPU can run get as much, and keep it: 60 KiB a thread are 17 GiB
    /// on an H200.
    pub fn stack(mut self, bytes: u32) -> Self {
        self.local_bytes = self.local_bytes.max(with_reserve(bytes));
        self
    }

    /// Has all blocks resident together, as a grid-wide barrier needs. The file does not say which kernels have one:
    /// a kernel that meets its grid in a launch without this reads address 0 and ends in a fault.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// The next argument, in the kernel's order.
    pub fn arg(mut self, arg: impl Arg) -> Self {
        let params = self.function.params();
        let ordinal = self.given;
        self.given += 1;
        // One argument too many is told in `submit`, by number.
        if let Some(param) = params.get(ordinal) {
            let here = self.stream.context().inner();
            let foreign = arg
                .context()
                .is_some_and(|context| !Arc::ptr_eq(context.inner(), here));
            let place = self.args.bytes_mut();
            let bad = if foreign {
                Some(format!("argument {ordinal} is of another context"))
            } else {
                arg.with_bytes(|bytes| put(place, param, bytes))
            };
            self.bad = self.bad.take().or(bad);
        }
        self
    }

    /// Checks the launch and submits it; it runs after what was submitted to the stream before.
    ///
    /// # Errors
    /// [`Error::Launch`] with the limit that is broken, before anything reaches the device; [`Error::Fault`]
    /// when the stream is dead; [`Error::Timeout`] when the stream is full and stays so.
    pub fn submit(&self) -> Result<Event, Error> {
        if let Some(reason) = &self.bad {
            return Err(self.refused(reason.clone()));
        }
        let wanted = self.function.params().len();
        if self.given != wanted {
            return Err(self.refused(format!(
                "{} arguments were given and it takes {wanted}",
                self.given
            )));
        }
        let context = self.stream.context().inner();
        let value = self.stream.inner().launch(context, self)?;
        Ok(self.stream.event_at(value))
    }

    /// The kernel.
    pub(crate) fn function(&self) -> &Function {
        self.function
    }

    /// Bytes of local memory of a thread that it needs.
    pub(crate) fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    /// Whether all blocks are to be resident together.
    pub(crate) fn is_cooperative(&self) -> bool {
        self.cooperative
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

    /// The bytes of the parameters.
    fn arg_bytes(&self) -> &[u8] {
        let size = usize::from(self.function.inner().param_size);
        self.args.bytes().get(..size).unwrap_or_default()
    }

    fn refused(&self, reason: String) -> Error {
        Error::Launch {
            kernel: self.function.name().to_owned(),
            reason,
        }
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

fn refused(function: &FunctionInner, error: LaunchError) -> Error {
    Error::Launch {
        kernel: function.name.to_string(),
        reason: error.to_string(),
    }
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
const QMD_BYTES: usize = 512;
/// Bytes of the meeting place with its alignment.
const MEETING_BYTES: usize = 256;
/// What the vendor library writes there (`golden/h200/cuda_launches.json`).
const MEETING: [u32; 4] = [0x10, 0, 1, 0];

impl LaunchScratch {
    pub(crate) fn new(context: &ContextInner) -> Result<Self, Error> {
        let version = qmd_version(context.classes().compute)?;
        Ok(Self {
            qmd: Qmd::new(version),
            bytes: Vec::new(),
        })
    }

    /// Bytes that a launch takes in GPU memory.
    pub(crate) fn size(shaped_bank0: u32, cooperative: bool) -> usize {
        shaped_bank0 as usize + QMD_BYTES + if cooperative { MEETING_BYTES } else { 0 }
    }

    /// Puts a launch together for memory at `at`; answers the bytes and the descriptor's address.
    pub(crate) fn encode(
        &mut self,
        launch: &Launch<'_>,
        shaped: &Shaped,
        at: GpuVa,
        grid_id: u64,
    ) -> Result<(&[u8], GpuVa), Error> {
        let bank0 = shaped.bank0_bytes() as usize;
        let size = Self::size(shaped.bank0_bytes(), launch.cooperative);
        if self.bytes.len() < size {
            self.bytes.resize(size, 0); // grows to the largest launch, then never again
        }
        let call = Call {
            grid: launch.grid,
            args: launch.arg_bytes(),
            bank0: at,
            grid_id,
        };
        shaped
            .encode(&call, &mut self.qmd, &mut self.bytes)
            .map_err(|error| launch.refused(error.to_string()))?;
        let qmd = self.qmd.as_bytes();
        let meeting = MEETING.map(u32::to_le_bytes);
        if let Some((place, rest)) = self
            .bytes
            .get_mut(bank0..)
            .and_then(|rest| rest.split_at_mut_checked(QMD_BYTES))
        {
            if let Some(place) = place.get_mut(..qmd.len()) {
                place.copy_from_slice(qmd);
            }
            if let (true, Some(place)) = (launch.cooperative, rest.get_mut(..16)) {
                place.copy_from_slice(meeting.as_flattened());
            }
        }
        let bytes = self.bytes.get(..size).unwrap_or_default();
        Ok((bytes, GpuVa(at.0 + u64::from(shaped.bank0_bytes()))))
    }
}
