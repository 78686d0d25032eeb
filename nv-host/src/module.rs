//! Loaded cubins and the kernels in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use nv_proto::cubin::{Cubin, Kernel, Layout, MAX_BANKS, PREFETCH_SLACK, Param};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

use crate::Error;
use crate::device::{Device, lock};
use crate::memory::{Allocation, Placement};

/// A cubin in the GPU's memory. A clone is the same module; it goes with the last of them and of its functions.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<ModuleInner>,
}

#[derive(Debug)]
pub(crate) struct ModuleInner {
    device: Device,
    /// `Some` until dropped.
    code: Option<Arc<Allocation>>,
    functions: Vec<Arc<FunctionInner>>,
    variables: BTreeMap<String, (GpuVa, u64)>,
}

/// A kernel of a module, ready to be launched.
#[derive(Clone, Debug)]
pub struct Function {
    inner: Arc<FunctionInner>,
    /// The code stays loaded.
    _module: Arc<ModuleInner>,
}

/// What the file says of a kernel, with addresses.
#[derive(Debug)]
pub(crate) struct FunctionInner {
    pub(crate) name: Arc<str>,
    pub(crate) entry: GpuVa,
    pub(crate) code_size: u64,
    pub(crate) registers: u16,
    pub(crate) barriers: u8,
    pub(crate) shared: u32,
    pub(crate) shared_reserved: u32,
    pub(crate) local_bytes: u32,
    pub(crate) param_base: u16,
    pub(crate) param_size: u16,
    pub(crate) params: Vec<Param>,
    pub(crate) banks: [Option<(GpuVa, u64)>; MAX_BANKS],
    pub(crate) max_threads: Option<u64>,
    pub(crate) required_block: Option<Dim3>,
    pub(crate) cluster: Option<Dim3>,
    pub(crate) prepared: crate::launch::PreparedFunction,
}

impl Module {
    /// Loads `cubin` into `device`'s memory.
    pub(crate) fn load(device: &Device, cubin: &[u8]) -> Result<Self, Error> {
        let parsed = Cubin::parse(cubin).map_err(|error| Error::Cubin(error.to_string()))?;
        let sm = device.info().sm;
        if !runs_on(parsed.sm(), sm) {
            return Err(Error::WrongArchitecture {
                file: parsed.sm(),
                device: sm,
            });
        }
        let bad = |error: nv_proto::cubin::Error<'_>| Error::Cubin(error.to_string());
        let mut places = vec![0; parsed.section_count()];
        let plan = parsed.plan(Layout::default(), &mut places).map_err(bad)?;
        let bytes = plan.size().saturating_add(PREFETCH_SLACK);
        let code = device.allocate(bytes, Placement::HostVisible)?;
        let base = code.va();

        let length = usize::try_from(plan.size()).map_err(|_| Error::OutOfMemory {
            what: "host memory",
            bytes,
        })?;
        let mut image = vec![0; length];
        plan.place_into(&mut image).map_err(bad)?;
        plan.relocate(&mut image, base).map_err(bad)?;
        code.mapping()?.write(0, &image)?;

        let mut functions = Vec::new();
        for kernel in parsed.kernels().map_err(bad)? {
            let bank = |number: usize| -> Option<(GpuVa, u64)> {
                let bank = kernel.banks.get(number).copied().flatten()?;
                Some((
                    GpuVa(base.0.checked_add(plan.section(bank.section)?)?),
                    bank.size,
                ))
            };
            let entry = plan
                .entry(&kernel)
                .and_then(|offset| base.0.checked_add(offset))
                .ok_or_else(|| {
                    Error::Cubin(format!(
                        "the code of kernel {} has no place in memory",
                        kernel.name
                    ))
                })?;
            functions.push(Arc::new(FunctionInner::new(
                device,
                &kernel,
                GpuVa(entry),
                bank,
            )?));
        }
        let variables = parsed
            .symbols()
            .filter_map(|symbol| {
                let (offset, size) = plan.variable(symbol.name())?;
                Some((
                    symbol.name().to_owned(),
                    (GpuVa(base.0.checked_add(offset)?), size),
                ))
            })
            .collect();
        let inner = Arc::new(ModuleInner {
            device: device.clone(),
            code: Some(Arc::new(code)),
            functions,
            variables,
        });
        lock(&device.inner().code).insert(&inner);
        device.inner().code_changed();
        Ok(Self { inner })
    }

    /// The names of its kernels, in the file's order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.inner.functions.iter().map(|function| &*function.name)
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::NoKernel`] with the names that there are.
    pub fn function(&self, name: &str) -> Result<Function, Error> {
        match self
            .inner
            .functions
            .iter()
            .find(|function| &*function.name == name)
        {
            Some(inner) => Ok(Function {
                inner: Arc::clone(inner),
                _module: Arc::clone(&self.inner),
            }),
            None => Err(Error::NoKernel {
                name: name.to_owned(),
                present: self.kernels().map(str::to_owned).collect(),
            }),
        }
    }

    /// Address and size of a `__device__` or `__constant__` variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(GpuVa, u64)> {
        self.inner.variables.get(name).copied()
    }
}

/// Whether code for `file` runs on `device`: same major version, and no newer minor one.
fn runs_on(file: SmVersion, device: SmVersion) -> bool {
    file.major() == device.major() && file <= device
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        lock(&self.device.inner().code).remove(self);
        if let Some(code) = self.code.take() {
            self.device.retire(code);
        }
    }
}

impl Function {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Registers of a thread.
    #[must_use]
    pub fn registers(&self) -> u16 {
        self.inner.registers
    }

    /// Bytes of shared memory that the file asks for, without those that the system reserves.
    #[must_use]
    pub fn static_shared(&self) -> u32 {
        self.inner.shared
    }

    /// Bytes of local memory of a thread.
    #[must_use]
    pub fn local_bytes(&self) -> u32 {
        self.inner.local_bytes
    }

    /// Its parameters by ordinal: offset and size in bytes.
    #[must_use]
    pub fn params(&self) -> &[Param] {
        &self.inner.params
    }

    /// The most threads that a block may have, where the file limits them.
    #[must_use]
    pub fn max_threads(&self) -> Option<u64> {
        self.inner.max_threads
    }

    pub(crate) fn inner(&self) -> &FunctionInner {
        &self.inner
    }

    pub(crate) fn label(&self) -> &Arc<str> {
        &self.inner.name
    }
}

impl FunctionInner {
    /// Bytes beside the file's stack that a thread's local memory holds: the reference system adds as much.
    const LOCAL_EXTRA: u32 = 0x240;

    fn new(
        device: &Device,
        kernel: &Kernel<'_>,
        entry: GpuVa,
        bank: impl Fn(usize) -> Option<(GpuVa, u64)>,
    ) -> Result<Self, Error> {
        let stack = kernel
            .stack
            .max
            .or(kernel.stack.min)
            .unwrap_or(0)
            .max(kernel.stack.frame);
        let mut banks = [None; MAX_BANKS];
        for (number, place) in banks.iter_mut().enumerate().skip(1) {
            *place = bank(number);
        }
        let mut function = Self {
            name: kernel.name.into(),
            entry,
            code_size: kernel.code_size,
            registers: kernel.registers,
            barriers: kernel.barriers,
            shared: kernel.shared,
            shared_reserved: kernel.shared_reserved,
            local_bytes: stack.saturating_add(Self::LOCAL_EXTRA),
            param_base: kernel.param_base,
            param_size: kernel.param_size,
            params: kernel.params().sorted(),
            banks,
            max_threads: kernel.thread_limit(),
            required_block: kernel.required_threads,
            cluster: kernel.cluster,
            prepared: crate::launch::PreparedFunction::default(),
        };
        function.prepared = crate::launch::PreparedFunction::new(device, &function)?;
        Ok(function)
    }
}

/// Which kernel an address of code belongs to.
#[derive(Debug, Default)]
pub(crate) struct CodeMap {
    /// By first address: size in bytes, and name.
    kernels: BTreeMap<GpuVa, (u64, Arc<str>)>,
}

impl CodeMap {
    fn insert(&mut self, module: &ModuleInner) {
        for function in &module.functions {
            self.kernels.insert(
                function.entry,
                (function.code_size, Arc::clone(&function.name)),
            );
        }
    }

    fn remove(&mut self, module: &ModuleInner) {
        for function in &module.functions {
            self.kernels.remove(&function.entry);
        }
    }

    /// The kernel whose code holds `pc`, and the offset in it.
    pub(crate) fn place(&self, pc: u64) -> Option<(String, u64)> {
        let (entry, (size, name)) = self.kernels.range(..=GpuVa(pc)).next_back()?;
        let offset = pc - entry.0;
        (offset < *size).then(|| (name.to_string(), offset))
    }
}
