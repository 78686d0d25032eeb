//! Loaded cubins and the kernels in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use nv_proto::bank0::{self, STACK_RESERVE};
use nv_proto::cubin::{Cubin, Kernel, Layout, PREFETCH_SLACK, Param};
use nv_proto::launch::{Bank, KernelFacts};
use nv_proto::qmd::BANKS;
use nv_proto::unit::{GpuVa, SmVersion};

use crate::Error;
use crate::context::{Context, lock};
use crate::fatbin;
use crate::launch::ShapeCache;
use crate::memory::{Allocation, Placement, Use};

/// A cubin in the GPU's memory. A clone is the same module; it goes with the last of them and of its functions.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<ModuleInner>,
}

#[derive(Debug)]
pub(crate) struct ModuleInner {
    context: Context,
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
    module: Arc<ModuleInner>,
}

/// What the file says of a kernel, with addresses.
#[derive(Debug)]
pub(crate) struct FunctionInner {
    pub(crate) name: Arc<str>,
    pub(crate) facts: KernelFacts,
    /// Bytes of local memory that a thread needs; none for a kernel without a stack.
    pub(crate) local_bytes: u32,
    pub(crate) param_size: u16,
    pub(crate) params: Vec<Param>,
    pub(crate) shapes: Mutex<ShapeCache>,
}

impl Module {
    /// Loads a cubin, or the best one of a fatbin, into `device`'s memory.
    pub(crate) fn load(context: &Context, file: &[u8]) -> Result<Self, Error> {
        let sm = context.info().sm;
        let cubin = fatbin::cubin_for(file, sm).map_err(|error| Error::Cubin(error.to_string()))?;
        let parsed = Cubin::parse(&cubin).map_err(|error| Error::Cubin(error.to_string()))?;
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
        let code = context.allocate(bytes, Placement::HostVisible, Use::Code)?;
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
            let bank = |number: usize| -> Option<Bank> {
                let bank = kernel.banks.get(number).copied().flatten()?;
                let va = GpuVa(base.0.checked_add(plan.section(bank.section)?)?);
                Some(Bank {
                    va,
                    size: u32::try_from(bank.size).ok()?,
                })
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
                sm,
                &kernel,
                GpuVa(entry),
                bank,
            )?));
        }
        let variables = parsed
            .symbols()
            .filter_map(|symbol| {
                let (offset, size) = plan.variable_of(&symbol)?;
                Some((
                    symbol.name().to_owned(),
                    (GpuVa(base.0.checked_add(offset)?), size),
                ))
            })
            .collect();
        let inner = Arc::new(ModuleInner {
            context: context.clone(),
            code: Some(Arc::new(code)),
            functions,
            variables,
        });
        lock(&context.inner().code).insert(&inner);
        context.inner().code_changed();
        Ok(Self { inner })
    }

    /// The module for as long as others keep it.
    pub(crate) fn downgrade(&self) -> Weak<ModuleInner> {
        Arc::downgrade(&self.inner)
    }

    /// What [`Module::downgrade`] was made of, if it is still there.
    pub(crate) fn of_weak(weak: &Weak<ModuleInner>) -> Option<Self> {
        weak.upgrade().map(|inner| Self { inner })
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
                module: Arc::clone(&self.inner),
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
pub(crate) fn runs_on(file: SmVersion, context: SmVersion) -> bool {
    file.major() == context.major() && file <= context
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        lock(&self.context.inner().code).remove(self);
        if let Some(code) = self.code.take() {
            self.context.retire(code);
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
    pub fn registers(&self) -> u32 {
        self.inner.facts.registers
    }

    /// Bytes of shared memory that the file asks for, without those that the system reserves.
    #[must_use]
    pub fn static_shared(&self) -> u32 {
        self.inner.facts.static_shared
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
    pub fn max_threads(&self) -> Option<u32> {
        self.inner.facts.max_threads
    }

    pub(crate) fn context(&self) -> &Context {
        &self.module.context
    }

    pub(crate) fn inner(&self) -> &FunctionInner {
        &self.inner
    }

    pub(crate) fn label(&self) -> &Arc<str> {
        &self.inner.name
    }
}

impl FunctionInner {
    fn new(
        sm: SmVersion,
        kernel: &Kernel<'_>,
        entry: GpuVa,
        bank: impl Fn(usize) -> Option<Bank>,
    ) -> Result<Self, Error> {
        let stack = kernel
            .stack
            .max
            .or(kernel.stack.min)
            .unwrap_or(0)
            .max(kernel.stack.frame);
        let mut banks = [Bank::default(); BANKS];
        for (number, place) in banks.iter_mut().enumerate().skip(1) {
            *place = bank(number).unwrap_or_default();
        }
        let program_size = u32::try_from(kernel.code_size).map_err(|_| {
            Error::Cubin(format!(
                "kernel {} has {:#x} bytes of code",
                kernel.name, kernel.code_size
            ))
        })?;
        // A kernel without parameters says nothing of where they would begin.
        let param_base = match (kernel.param_size, bank0::Layout::of(sm)) {
            (0, Some(layout)) => layout.prefix().into(),
            _ => kernel.param_base.into(),
        };
        let facts = KernelFacts {
            program: entry,
            program_size,
            registers: kernel.registers.into(),
            barriers: kernel.barriers.into(),
            static_shared: kernel.shared,
            reserved_shared: kernel.shared_reserved,
            local_bytes: stack,
            param_base,
            param_size: kernel.param_size.into(),
            banks,
            max_threads: kernel
                .thread_limit()
                .map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
            required_block: kernel.required_threads,
            required_cluster: kernel.cluster,
            cooperative: kernel.cooperative_groups,
        };
        let local_bytes = if stack == 0 {
            0
        } else {
            stack.saturating_add(STACK_RESERVE)
        };
        Ok(Self {
            name: kernel.name.into(),
            facts,
            local_bytes,
            param_size: kernel.param_size,
            params: kernel.params().sorted(),
            shapes: Mutex::default(),
        })
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
            let facts = &function.facts;
            let kernel = (facts.program_size.into(), Arc::clone(&function.name));
            self.kernels.insert(facts.program, kernel);
        }
    }

    fn remove(&mut self, module: &ModuleInner) {
        for function in &module.functions {
            self.kernels.remove(&function.facts.program);
        }
    }

    /// The kernel whose code holds `pc`, and the offset in it.
    pub(crate) fn place(&self, pc: u64) -> Option<(String, u64)> {
        let (entry, (size, name)) = self.kernels.range(..=GpuVa(pc)).next_back()?;
        let offset = pc - entry.0;
        (offset < *size).then(|| (name.to_string(), offset))
    }
}
