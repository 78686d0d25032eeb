//! Variables of a module, `__device__` and `__constant__`, that the host reads and writes by name.

use std::marker::PhantomData;
use std::sync::Arc;

use nv_proto::unit::GpuVa;
use zerocopy::IntoBytes;

use crate::Error;
use crate::args::{Arg, Hold};
use crate::context::Context;
use crate::memory::{Element, Place, sealed};
use crate::module::Module;

/// A variable of a module as `len` values of `T`; the module stays loaded while it is held.
///
/// As an argument it is the variable's address, and copies of streams take it as a [`Place`].
///
/// # Order
/// [`Symbol::write`] returns once the values are there, whatever other streams do meanwhile: every launch submitted
/// afterwards, to any stream, sees them, also in constant memory, whose caches each launch drops. A kernel that is
/// still running may see the old values, the new ones or some of both. [`Symbol::read`] waits for what was submitted
/// to the context's own stream, and for no other: wait for the launches whose results it is to see.
///
/// ```no_run
/// # fn main() -> Result<(), nv_host::Error> {
/// # let device = nv_host::Device::open_best()?;
/// # let file = std::fs::read("filter.cubin").unwrap_or_default();
/// // __constant__ float coefficients[3]; __device__ unsigned counter;
/// let module = device.load(&file)?;
/// module.global::<f32>("coefficients")?.write(&[0.25, 0.5, 0.25])?;
/// let counter = module.global::<u32>("counter")?;
/// counter.write(&[0])?;
/// // … launches …
/// println!("{}", counter.read()?[0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Symbol<T: Element> {
    module: Module,
    name: Arc<str>,
    va: GpuVa,
    len: usize,
    _values: PhantomData<T>,
}

impl<T: Element> Symbol<T> {
    /// The variable `name`, of `bytes` at `va`.
    pub(crate) fn new(module: &Module, name: &str, va: GpuVa, bytes: u64) -> Result<Self, Error> {
        let one = size_of::<T>();
        let len = usize::try_from(bytes)
            .ok()
            .filter(|bytes| one != 0 && *bytes != 0 && bytes.is_multiple_of(one))
            .map(|bytes| bytes / one)
            .ok_or_else(|| {
                Error::InvalidArgument(format!(
                    "variable {name} has {bytes} bytes, which is no whole number of values of {one} bytes ({})",
                    std::any::type_name::<T>()
                ))
            })?;
        Ok(Self {
            module: module.clone(),
            name: name.into(),
            va,
            len,
            _values: PhantomData,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none, which no variable does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its address on the GPU.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        self.va
    }

    /// Copies `values` into it from its start and waits until they are there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when there are more values than it holds; whatever the copy meets.
    pub fn write(&self, values: &[T]) -> Result<(), Error> {
        self.check(values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        self.module
            .context()
            .upload_bytes(self.va, values.as_bytes())
    }

    /// Copies `values.len()` values out of it from its start.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when more values are asked for than it holds; whatever the copy meets.
    pub fn read_into(&self, values: &mut [T]) -> Result<(), Error> {
        self.check(values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        self.module
            .context()
            .download_bytes(self.va, values.as_mut_bytes())
    }

    /// All its values, as [`Symbol::read_into`].
    ///
    /// # Errors
    /// Whatever the copy meets.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let mut values = vec![T::new_zeroed(); self.len];
        self.read_into(&mut values)?;
        Ok(values)
    }

    fn check(&self, values: usize) -> Result<(), Error> {
        if values > self.len {
            return Err(Error::InvalidArgument(format!(
                "{values} values do not fit variable {}, which holds {}",
                self.name, self.len
            )));
        }
        Ok(())
    }
}

impl<T: Element> Arg for Symbol<T> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        self.va.with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        Some(self.module.context())
    }

    fn hold(&self) -> Option<Hold> {
        let code = self.module.code()?;
        Some(Hold::new(self.module.context(), Arc::clone(code)))
    }
}

impl<T: Element> sealed::Sealed for Symbol<T> {
    fn keep(&self) -> Option<Hold> {
        Arg::hold(self)
    }
}

impl<T: Element> Place for Symbol<T> {
    type Element = T;

    fn context(&self) -> &Context {
        self.module.context()
    }

    fn va(&self) -> GpuVa {
        self.va
    }

    fn len(&self) -> usize {
        self.len
    }
}
