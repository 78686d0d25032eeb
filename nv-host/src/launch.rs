//! Launches: a kernel, its shape and its arguments, checked and encoded.

use nv_proto::cubin::Param;
use nv_proto::unit::{Dim3, GpuVa};

use crate::args::Arg;
use crate::module::Function;
use crate::stream::{Event, Stream};
use crate::{Error, Mapping};

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
    args: ArgArea,
    /// How many arguments were given.
    given: usize,
    /// The first argument that does not fit the kernel's parameter.
    bad: Option<String>,
}

/// The bytes of the arguments, as they lie from the parameter base on.
#[derive(Debug)]
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
        Self {
            stream,
            function,
            grid: Dim3::ONE,
            block: Dim3::ONE,
            shared: 0,
            cluster: None,
            cooperative: false,
            args,
            given: 0,
            bad: None,
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

    /// Has all blocks resident together, as a grid-wide barrier needs.
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
            let place = self.args.bytes_mut();
            let bad = arg.with_bytes(|bytes| put(place, param, bytes));
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
        let device = self.stream.device().inner();
        let value = self.stream.inner().launch(device, self)?;
        Ok(self.stream.event_at(value))
    }

    /// The kernel.
    pub(crate) fn function(&self) -> &Function {
        self.function
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

#[derive(Debug, Default)]
pub(crate) struct PreparedFunction {}
impl PreparedFunction {
    pub(crate) fn new(
        _d: &crate::Device,
        _f: &crate::module::FunctionInner,
    ) -> Result<Self, Error> {
        Ok(Self {})
    }
}
#[derive(Debug, Default)]
pub(crate) struct LaunchScratch {}
impl LaunchScratch {
    pub(crate) fn encode(
        &mut self,
        _d: &crate::device::DeviceInner,
        _l: &Launch<'_>,
        _local: u32,
    ) -> Result<(), Error> {
        Ok(())
    }
    pub(crate) fn bytes(&self) -> u64 {
        0
    }
    pub(crate) fn place(&mut self, _va: GpuVa) -> Result<GpuVa, Error> {
        Ok(GpuVa(0))
    }
    pub(crate) fn write(&self, _m: &Mapping, _o: u64) -> Result<(), Error> {
        Ok(())
    }
}
