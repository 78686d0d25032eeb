//! What kernels call and the vendor's library provides: `printf` and `assert`.
//!
//! A file whose kernels call them leaves `vprintf` and `__assertfail` undefined. Functions of our own with the same
//! calling convention (`tests/cubins/system`) are loaded beside such a file and put in their place; they write records
//! into a log in GPU memory, which the host reads and formats.

use std::sync::Mutex;

use nv_proto::cubin::{Cubin, ImagePlan, Layout, SymbolType};
use nv_proto::unit::GpuVa;

use crate::Error;
use crate::context::{Context, lock};
use crate::fatbin;
use crate::module::Module;
use crate::symbol::Symbol;

mod format;

/// The functions, for every architecture.
const FILE: &[u8] = include_bytes!("../system/system.fatbin");
/// What is undefined in files, and what takes its place.
const FUNCTIONS: [(&str, &str); 2] = [("vprintf", "nv_vprintf"), ("__assertfail", "nv_assertfail")];

/// What the kernels of a module printed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Printed {
    /// The text, in the order in which threads came to print; of a failed `assert`, the line that the vendor's library
    /// writes.
    pub text: String,
    /// How many calls of `printf` had no room left in the log.
    pub dropped: u32,
}

/// The functions, loaded for one module, with their log.
#[derive(Debug)]
pub(crate) struct System {
    functions: [(&'static str, GpuVa); FUNCTIONS.len()],
    registers: u32,
    log: Symbol<u32>,
    used: Symbol<u32>,
    dropped: Symbol<u32>,
    /// Held while the log is read and emptied: what was printed is taken once.
    taking: Mutex<()>,
}

impl System {
    /// Whether there is a function that stands in for an undefined one.
    pub(crate) fn has(name: &str) -> bool {
        FUNCTIONS.iter().any(|(undefined, _)| *undefined == name)
    }

    /// What a file of that plan needs; none where everything that it calls is in it.
    pub(crate) fn for_file(
        context: &Context,
        plan: &ImagePlan<'_, '_>,
    ) -> Result<Option<Self>, Error> {
        if plan.undefined().any(|(symbol, _)| Self::has(symbol.name())) {
            Self::load(context).map(Some)
        } else {
            Ok(None)
        }
    }

    fn load(context: &Context) -> Result<Self, Error> {
        let bad = |error: nv_proto::cubin::Error<'_>| Error::Cubin(error.to_string());
        let module = Module::load(context, FILE)?;
        let file = fatbin::cubin_for(FILE, context.info().sm)
            .map_err(|error| Error::Cubin(error.to_string()))?;
        let cubin = Cubin::parse(&file).map_err(bad)?;
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).map_err(bad)?;
        // The linker adds a number to the name.
        let place = |name: &str| {
            let symbol = cubin.symbols().find(|symbol| {
                symbol.kind() == SymbolType::Function && symbol.name().starts_with(name)
            })?;
            Some(GpuVa(module.base()?.0.checked_add(plan.symbol(&symbol)?)?))
        };
        let mut functions = [("", GpuVa(0)); FUNCTIONS.len()];
        for (function, (undefined, name)) in functions.iter_mut().zip(FUNCTIONS) {
            let va = place(name)
                .ok_or_else(|| Error::Cubin(format!("the system's file has no {name}")))?;
            *function = (undefined, va);
        }
        Ok(Self {
            functions,
            registers: module.function("nv_system")?.registers(),
            log: module.global("nv_log")?,
            used: module.global("nv_log_used")?,
            dropped: module.global("nv_log_dropped")?,
            taking: Mutex::default(),
        })
    }

    /// Where the function is that stands in for an undefined one.
    pub(crate) fn function(&self, name: &str) -> Option<GpuVa> {
        let found = self
            .functions
            .iter()
            .find(|(undefined, _)| *undefined == name);
        found.map(|(_, va)| *va)
    }

    /// Registers that the functions take.
    pub(crate) fn registers(&self) -> u32 {
        self.registers
    }

    /// Takes what was printed out of the log.
    pub(crate) fn take(&self) -> Result<Printed, Error> {
        let _taking = lock(&self.taking);
        let mut counts = [[0_u32]; 2];
        self.used.read_into(&mut counts[0])?;
        self.dropped.read_into(&mut counts[1])?;
        let [[used], [dropped]] = counts;
        if used == 0 && dropped == 0 {
            return Ok(Printed::default());
        }
        let mut words = vec![0_u32; self.log.len().min(used as usize)];
        self.log.read_into(&mut words)?;
        let text = format::records(&words);
        // Records are known by a first word that is not 0.
        words.fill(0);
        self.log.write(&words)?;
        self.dropped.write(&[0])?;
        self.used.write(&[0])?;
        Ok(Printed { text, dropped })
    }
}
