//! Loaded cubins and the kernels in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use nv_proto::bank0::{self, STACK_RESERVE};
use nv_proto::cubin::{
    Cubin, ImagePlan, Kernel, Layout, PREFETCH_SLACK, Param, SectionIndex, SymbolSection,
    SymbolType, Variant,
};
use nv_proto::launch::{Bank, KernelFacts, Occupancy, Shape};
use nv_proto::qmd::BANKS;
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

use crate::Error;
use crate::context::{Context, lock};
use crate::fatbin;
use crate::launch::{ShapeCache, occupancy};
use crate::memory::{Allocation, Element, Placement, Use};
use crate::symbol::Symbol;
use crate::system::{Printed, System};

/// A cubin in the GPU's memory. A clone is the same module; it goes with the last of them and of its functions.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<ModuleInner>,
}

impl fmt::Debug for ModuleInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels: Vec<&str> = self
            .functions
            .iter()
            .map(|function| &*function.name)
            .collect();
        f.debug_struct("Code")
            .field("kernels", &kernels)
            .finish_non_exhaustive()
    }
}

pub(crate) struct ModuleInner {
    context: Context,
    /// `Some` until dropped.
    code: Option<Arc<Allocation>>,
    functions: Vec<Arc<FunctionInner>>,
    variables: BTreeMap<String, (GpuVa, u64)>,
    /// What stands in for functions of the vendor's library, where kernels call any.
    system: Option<System>,
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
        if !runs_on(parsed.sm(), parsed.variant(), sm) {
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
        missing(&parsed, &plan)?;
        let system = System::for_file(context, &plan)?;
        let resolve =
            |symbol: &nv_proto::cubin::Symbol<'_>| system.as_ref()?.function(symbol.name());
        plan.relocate_with(&mut image, base, resolve).map_err(bad)?;
        code.mapping()?.write(0, &image)?;

        let kernels = parsed.kernels().map_err(bad)?;
        let calling = calling(&parsed, &kernels);
        let mut functions = Vec::new();
        for kernel in kernels {
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
                calling.contains(&kernel.text),
                system.as_ref(),
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
            system,
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

    /// The `__device__` or `__constant__` variable of that name, as values of `T`: to be read and written, or passed as
    /// an argument.
    ///
    /// # Errors
    /// [`Error::NoVariable`] with the names that there are; [`Error::InvalidArgument`] when its size is no whole number
    /// of values.
    pub fn global<T: Element>(&self, name: &str) -> Result<Symbol<T>, Error> {
        let Some((va, bytes)) = self.variable(name) else {
            return Err(Error::NoVariable {
                name: name.to_owned(),
                present: self.variables().map(str::to_owned).collect(),
            });
        };
        Symbol::new(self, name, va, bytes)
    }

    /// The names of its `__device__` and `__constant__` variables, in alphabetical order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.inner.variables.keys().map(String::as_str)
    }

    /// Takes what its kernels printed so far, by `printf` and by `assert` that failed, and makes room for more. It reads
    /// what is there: wait for the launches first. A failed `assert` ends its launch with a fault, and can be read
    /// after it.
    ///
    /// # Errors
    /// Whatever the copy meets.
    pub fn take_printed(&self) -> Result<Printed, Error> {
        match &self.inner.system {
            Some(system) => system.take(),
            None => Ok(Printed::default()),
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The memory that it lies in.
    pub(crate) fn code(&self) -> Option<&Arc<Allocation>> {
        self.inner.code.as_ref()
    }

    /// Where its image lies.
    pub(crate) fn base(&self) -> Option<GpuVa> {
        self.inner.code.as_deref().map(Allocation::va)
    }

    /// Address and size of a `__device__` or `__constant__` variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<(GpuVa, u64)> {
        self.inner.variables.get(name).copied()
    }
}

/// The sections of kernels that call functions of the program. The functions that the compiler adds, for division and the
/// like, need no stack and do not count.
fn calling(cubin: &Cubin<'_>, kernels: &[Kernel<'_>]) -> BTreeSet<SectionIndex> {
    let all: BTreeSet<_> = kernels.iter().map(|kernel| kernel.text).collect();
    let entries: BTreeSet<_> = kernels.iter().map(|kernel| kernel.symbol).collect();
    let mut calling = BTreeSet::new();
    for symbol in cubin.symbols() {
        let SymbolSection::In(section) = symbol.section() else {
            continue;
        };
        if symbol.kind() != SymbolType::Function
            || entries.contains(&symbol.index())
            || symbol.name().contains("__internal_")
        {
            continue;
        }
        if all.contains(&section) {
            calling.insert(section);
        } else {
            // A function with a section of its own: any kernel may call it.
            return all;
        }
    }
    calling
}

/// That everything the file's code calls is in the file.
fn missing(cubin: &Cubin<'_>, plan: &ImagePlan<'_, '_>) -> Result<(), Error> {
    let Some((symbol, _)) = plan
        .undefined()
        .find(|(symbol, _)| !System::has(symbol.name()))
    else {
        return Ok(());
    };
    let name = symbol.name();
    let kernels = cubin
        .kernels()
        .map_err(|error| Error::Cubin(error.to_string()))?;
    let needs = |kernel: &Kernel<'_>| {
        kernel.externals().any(|index| {
            cubin
                .symbol(index)
                .is_some_and(|other| other.name() == name)
        })
    };
    Err(Error::Undefined {
        symbol: name.to_owned(),
        kernels: kernels
            .iter()
            .filter(|kernel| needs(kernel))
            .map(|kernel| kernel.name.to_owned())
            .collect(),
        remedy: match name {
            "malloc" | "free" => {
                "compile it without malloc and new, and pass the kernel memory that the host allocated"
            }
            _ => {
                "link what it needs into the file (nvcc -dlink), unless it is the vendor's device runtime"
            }
        },
    })
}

/// Whether code for `file` runs on `device`: same major version, and no newer minor one; that of `sm_90a` and its like on
/// its own version alone.
pub(crate) fn runs_on(file: SmVersion, variant: Variant, device: SmVersion) -> bool {
    match variant {
        Variant::Architecture => file == device,
        _ => file.major() == device.major() && file <= device,
    }
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

    /// Bytes of stack of a thread: what the file says, and 1,024 more where the kernel calls functions. The file counts no
    /// recursion, nor what is called through pointers: [`Launch::stack`](crate::Launch::stack) gives as much as that needs.
    #[must_use]
    pub fn stack(&self) -> u32 {
        self.inner.facts.local_bytes
    }

    /// How many blocks of `block` threads with `shared` bytes of dynamic shared memory each multiprocessor runs at once,
    /// and what allows no more. A cooperative grid has at most so many blocks times [`Info::sm_count`](crate::Info).
    ///
    /// # Errors
    /// [`Error::Launch`] with the limit that such a block breaks.
    pub fn max_active_blocks(
        &self,
        block: impl Into<Dim3>,
        shared: u32,
    ) -> Result<Occupancy, Error> {
        let shape = Shape {
            dynamic_shared: shared,
            ..Shape::new(block)
        };
        occupancy(self.context().inner(), &self.inner, &shape)
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
        calls: bool,
        system: Option<&System>,
        entry: GpuVa,
        bank: impl Fn(usize) -> Option<Bank>,
    ) -> Result<Self, Error> {
        let stack = kernel
            .stack
            .max
            .or(kernel.stack.min)
            .unwrap_or(0)
            .max(kernel.stack.frame)
            .saturating_add(if calls || system.is_some() {
                UNCOUNTED_STACK
            } else {
                0
            });
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
            registers: u32::from(kernel.registers).max(system.map_or(0, System::registers)),
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
            // The file tells of shuffles and of grid-wide barriers in the same way: the launch decides.
            cooperative: false,
        };
        let local_bytes = with_reserve(stack);
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

/// Bytes of stack of a thread of a kernel that calls functions, beside those that the file counts: as many as the vendor's
/// library gives every kernel (`cudaLimitStackSize` is 1,024 by default).
const UNCOUNTED_STACK: u32 = 1024;

/// Bytes of local memory of a thread with so many bytes of stack.
pub(crate) fn with_reserve(stack: u32) -> u32 {
    if stack == 0 {
        0
    } else {
        stack.saturating_add(STACK_RESERVE)
    }
}

/// Which kernel an address of code belongs to.
#[derive(Debug, Default)]
pub(crate) struct CodeMap {
    /// By first address.
    kernels: BTreeMap<GpuVa, Code>,
}

/// The code of one kernel.
#[derive(Debug)]
struct Code {
    /// Its size in bytes.
    size: u64,
    name: Arc<str>,
    /// The memory that it lies in.
    memory: Weak<Allocation>,
}

impl CodeMap {
    fn insert(&mut self, module: &ModuleInner) {
        for function in &module.functions {
            let facts = &function.facts;
            let code = Code {
                size: facts.program_size.into(),
                name: Arc::clone(&function.name),
                memory: module.code.as_ref().map(Arc::downgrade).unwrap_or_default(),
            };
            self.kernels.insert(facts.program, code);
        }
    }

    fn remove(&mut self, module: &ModuleInner) {
        for function in &module.functions {
            self.kernels.remove(&function.facts.program);
        }
    }

    fn find(&self, pc: u64) -> Option<(u64, &Code)> {
        let (entry, code) = self.kernels.range(..=GpuVa(pc)).next_back()?;
        let offset = pc - entry.0;
        (offset < code.size).then_some((offset, code))
    }

    /// The kernel whose code holds `pc`, and the offset in it.
    pub(crate) fn place(&self, pc: u64) -> Option<(String, u64)> {
        let (offset, code) = self.find(pc)?;
        Some((code.name.to_string(), offset))
    }

    /// The instruction at `pc` as it lies in memory now, low word first.
    pub(crate) fn instruction(&self, pc: u64) -> Option<[u64; 2]> {
        let (_, code) = self.find(pc)?;
        let memory = code.memory.upgrade()?;
        let offset = usize::try_from(pc.checked_sub(memory.va().0)?).ok()?;
        let mut bytes = [0; 16];
        memory.mapping().ok()?.read(offset, &mut bytes).ok()?;
        let word = |range: std::ops::Range<usize>| {
            Some(u64::from_le_bytes(bytes.get(range)?.try_into().ok()?))
        };
        Some([word(0..8)?, word(8..16)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_where() {
        let runs = |file, variant, device| runs_on(SmVersion(file), variant, SmVersion(device));
        assert!(runs(80, Variant::Base, 86) && !runs(86, Variant::Base, 80));
        assert!(!runs(89, Variant::Base, 90) && runs(100, Variant::Family, 103));
        assert!(runs(90, Variant::Architecture, 90));
        assert!(!runs(100, Variant::Architecture, 103) && runs(100, Variant::Base, 103));
    }
}
