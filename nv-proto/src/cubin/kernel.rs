//! What a cubin says of its kernels: each fact under the kernel's own symbol.

use super::error::Error;
use super::nvinfo::{AttributeKind, Record, Records};
use super::section::{Section, SectionIndex, Symbol, SymbolIndex, SymbolSection, Tag};
use super::{Cubin, bad};
use crate::unit::{Dim3, SmVersion};

/// How many constant banks a launch can name: the QMD of every generation has eight.
pub const MAX_BANKS: usize = 8;

/// A constant bank of a kernel.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ConstantBank {
    /// The section with its bytes; its offset in an image is [`ImagePlan::section`](super::ImagePlan::section)'s.
    pub section: SectionIndex,
    /// Its size in bytes.
    pub size: u64,
}

/// Bytes of local memory of a thread.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stack {
    /// What a launch must provide at least; `None` where recursion or unknown callees leave it open, and in files that
    /// a linker has not seen.
    #[doc(alias = "EIATTR_MIN_STACK_SIZE")]
    pub min: Option<u32>,
    /// The kernel's own frame, without its callees'.
    #[doc(alias = "EIATTR_FRAME_SIZE")]
    pub frame: u32,
    /// The deepest chain of calls, where the compiler says.
    #[doc(alias = "EIATTR_MAX_STACK_SIZE")]
    pub max: Option<u32>,
}

/// What a launch needs to know of a kernel, and what tools show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Kernel<'a> {
    /// Its name, mangled where it is C++.
    pub name: &'a str,
    /// Its symbol.
    pub symbol: SymbolIndex,
    /// The section of its instructions.
    pub text: SectionIndex,
    /// Where in that section it starts, 0 in every file seen.
    pub entry: u64,
    /// The size of its instructions in bytes.
    pub code_size: u64,
    /// Registers that a thread uses.
    pub registers: u16,
    /// Named barriers that a block uses.
    pub barriers: u8,
    /// Bytes of shared memory that the kernel declares with a fixed size.
    pub shared: u32,
    /// Bytes of shared memory that the system keeps for itself in front of those, in every block.
    pub shared_reserved: u32,
    /// Local memory of a thread.
    pub stack: Stack,
    /// Constant banks with bytes in the file, by number: its own and the module's.
    pub banks: [Option<ConstantBank>; MAX_BANKS],
    /// Where in bank 0 its parameters start; 0 where it has none.
    pub param_base: u16,
    /// How many bytes its parameters take.
    pub param_size: u16,
    /// How many parameters it has.
    pub param_count: u32,
    /// The most threads that it may be launched with, by `__launch_bounds__`.
    pub max_threads: Option<Dim3>,
    /// The one block shape that it may be launched with, by `.reqntid`.
    pub required_threads: Option<Dim3>,
    /// Its cluster shape, by `__cluster_dims__`.
    pub cluster: Option<Dim3>,
    /// Whether it must be launched in clusters.
    pub explicit_cluster: bool,
    /// Whether the launch counts its grid in clusters.
    pub blocks_are_clusters: bool,
    /// The most blocks of a cluster, where bounded.
    pub max_cluster_rank: Option<u32>,
    /// The cap on registers that the compiler was given; 255 is none.
    pub register_cap: Option<u16>,
    /// Whether instructions of cooperative groups occur in it. A grid-wide barrier is one of several uses of
    /// them: the file does not tell whether a launch must be cooperative.
    pub cooperative_groups: bool,
    /// Its attributes as they lie.
    info: &'a [u8],
    info_name: &'a str,
}

impl<'a> Kernel<'a> {
    /// No kernel: what to fill an array for [`Cubin::kernels_into`] with.
    pub const EMPTY: Self = Self {
        name: "",
        symbol: SymbolIndex(0),
        text: SectionIndex(0),
        entry: 0,
        code_size: 0,
        registers: 0,
        barriers: 0,
        shared: 0,
        shared_reserved: 0,
        stack: Stack {
            min: Some(0),
            frame: 0,
            max: None,
        },
        banks: [None; MAX_BANKS],
        param_base: 0,
        param_size: 0,
        param_count: 0,
        max_threads: None,
        required_threads: None,
        cluster: None,
        explicit_cluster: false,
        blocks_are_clusters: false,
        max_cluster_rank: None,
        register_cap: None,
        cooperative_groups: false,
        info: &[],
        info_name: "",
    };

    /// Bytes of shared memory of a block before dynamic ones: declared and reserved.
    #[must_use]
    pub const fn shared_total(&self) -> u32 {
        self.shared.saturating_add(self.shared_reserved)
    }

    /// The most threads of a block that its attributes allow; `None` where they set no bound.
    #[must_use]
    pub fn thread_limit(&self) -> Option<u64> {
        self.required_threads.or(self.max_threads).map(Dim3::count)
    }

    /// All its attributes, in the file's order.
    #[must_use]
    pub const fn attributes(&self) -> Records<'a> {
        Records::new(self.info_name, self.info)
    }

    /// Its first attribute of a kind.
    #[must_use]
    pub fn attribute(&self, kind: AttributeKind) -> Option<Record<'a>> {
        self.attributes()
            .flatten()
            .find(|record| record.attribute() == kind)
    }

    /// Its parameters in the file's order, which is mostly that of descending ordinals.
    #[must_use]
    pub const fn params(&self) -> Params<'a> {
        Params {
            records: self.attributes(),
        }
    }

    /// Offsets in its code of the instructions that end a thread.
    pub fn exits(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.attribute(AttributeKind::EXIT_INSTR_OFFSETS)
            .into_iter()
            .flat_map(|record| record.value.words())
    }

    /// Offsets in its code of the instructions that move registers to local memory and back for want of registers.
    ///
    /// Compilers from CUDA 12.6 on list them, when there are any; older files do not say.
    pub fn spills(&self) -> impl Iterator<Item = u32> + use<'a> {
        const SPILL_REFILL: u32 = 1;
        let lists = self
            .attributes()
            .flatten()
            .filter(|record| record.attribute() == AttributeKind::ANNOTATIONS);
        // Pairs of a kind and an offset; an attribute holds at most 65,535 bytes, so there may be several.
        lists.flat_map(|record| {
            let (pairs, _) = record.value.bytes().as_chunks::<8>();
            pairs.iter().filter_map(|&[a, b, c, d, e, f, g, h]| {
                (u32::from_le_bytes([a, b, c, d]) == SPILL_REFILL)
                    .then_some(u32::from_le_bytes([e, f, g, h]))
            })
        })
    }

    /// Its branches through a register, and where they may go: an error ends them.
    pub fn indirect_branches(&self) -> impl Iterator<Item = IndirectBranch<'a>> + use<'a> {
        let mut rest = self
            .attribute(AttributeKind::INDIRECT_BRANCH_TARGETS)
            .map_or(&[][..], |record| record.value.bytes());
        core::iter::from_fn(move || {
            let (branch, after) = IndirectBranch::read(rest)?;
            rest = after;
            Some(branch)
        })
    }

    /// The symbols outside the file that it needs, such as `vprintf`.
    pub fn externals(&self) -> impl Iterator<Item = SymbolIndex> + use<'a> {
        let record = self.attribute(AttributeKind::EXTERNS);
        record
            .into_iter()
            .flat_map(|record| record.value.words())
            .map(SymbolIndex)
    }

    fn apply_info(&mut self, section: &Section<'a>) -> Result<(), Error<'a>> {
        if !self.info_name.is_empty() {
            return Err(bad(
                "second section of attributes",
                section.name(),
                0,
                section.info().into(),
            ));
        }
        self.info = section.data();
        self.info_name = section.name();
        for record in section.records() {
            let record = record?;
            let malformed = || {
                let format = match record.value {
                    super::Value::Bytes(bytes) => super::length(bytes),
                    other => other.number().unwrap_or(0).into(),
                };
                bad(
                    record.attribute().name().unwrap_or("attribute"),
                    section.name(),
                    record.offset,
                    format,
                )
            };
            let number = || record.value.number().ok_or_else(malformed);
            let shape = || {
                let [x, y, z] = record.value.exact_words::<3>().ok_or_else(malformed)?;
                Ok::<_, Error<'a>>(Dim3 { x, y, z })
            };
            match record.attribute() {
                AttributeKind::PARAM_CBANK => {
                    let [_, place] = record.value.exact_words::<2>().ok_or_else(malformed)?;
                    let [a, b, c, d] = place.to_le_bytes();
                    self.param_base = u16::from_le_bytes([a, b]);
                    self.param_size = u16::from_le_bytes([c, d]);
                }
                AttributeKind::KPARAM_INFO | AttributeKind::KPARAM_INFO_V2 => {
                    Param::of(&record).ok_or_else(malformed)?;
                    self.param_count = self.param_count.saturating_add(1);
                }
                AttributeKind::MAX_THREADS => self.max_threads = Some(shape()?),
                AttributeKind::REQNTID => self.required_threads = Some(shape()?),
                AttributeKind::CTA_PER_CLUSTER => self.cluster = Some(shape()?),
                AttributeKind::EXPLICIT_CLUSTER => self.explicit_cluster = true,
                AttributeKind::BLOCKS_ARE_CLUSTERS => self.blocks_are_clusters = true,
                AttributeKind::MAX_CLUSTER_RANK => self.max_cluster_rank = Some(number()?),
                AttributeKind::NUM_BARRIERS => {
                    self.barriers = u8::try_from(number()?).map_err(|_| malformed())?;
                }
                AttributeKind::MAXREG_COUNT => {
                    self.register_cap = Some(u16::try_from(number()?).map_err(|_| malformed())?);
                }
                AttributeKind::COOP_GROUP_INSTR_OFFSETS => self.cooperative_groups = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn apply_module_info(&mut self, kind: AttributeKind, value: u32) -> bool {
        match kind {
            AttributeKind::REGCOUNT => match u16::try_from(value) {
                Ok(registers) => self.registers = registers,
                Err(_) => return false,
            },
            AttributeKind::FRAME_SIZE => self.stack.frame = value,
            AttributeKind::MIN_STACK_SIZE => {
                self.stack.min = Some(value).filter(|size| *size != u32::MAX)
            }
            AttributeKind::MAX_STACK_SIZE => {
                self.stack.max = Some(value).filter(|size| *size != u32::MAX)
            }
            _ => {}
        }
        true
    }

    fn apply_shared(&mut self, section: &Section<'a>, sm: SmVersion) -> Result<(), Error<'a>> {
        // From sm_90 on the section holds what the system keeps too, at its front.
        let reserved = if sm >= FIRST_WITH_RESERVED_IN_SECTION {
            self.shared_reserved
        } else {
            0
        };
        self.shared = u32::try_from(section.size())
            .ok()
            .and_then(|size| size.checked_sub(reserved))
            .ok_or(bad("sh_size", section.name(), 0, section.size()))?;
        Ok(())
    }
}

/// A branch through a register.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct IndirectBranch<'a> {
    /// Its offset in the kernel's code.
    pub offset: u32,
    targets: &'a [[u8; 4]],
}

impl<'a> IndirectBranch<'a> {
    /// Words offset, 0, number of targets, targets.
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<12>()?;
        let &[a, b, c, d, _, _, _, _, e, f, g, h] = head;
        let count = usize::try_from(u32::from_le_bytes([e, f, g, h])).ok()?;
        let (targets, rest) = rest.split_at_checked(count.checked_mul(4)?)?;
        let (targets, _) = targets.as_chunks::<4>();
        Some((
            Self {
                offset: u32::from_le_bytes([a, b, c, d]),
                targets,
            },
            rest,
        ))
    }

    /// The offsets in the kernel's code where it may go.
    pub fn targets(&self) -> impl ExactSizeIterator<Item = u32> + Clone + use<'a> {
        self.targets.iter().map(|word| u32::from_le_bytes(*word))
    }
}

impl<'a> Cubin<'a> {
    /// The kernels' symbols, in the file's order.
    pub fn kernel_symbols(&self) -> impl Iterator<Item = Symbol<'a>> + Clone + use<'a> {
        self.symbols()
            .filter(|s| s.is_kernel() && s.section() != SymbolSection::Undefined)
    }

    /// How many kernels there are.
    #[must_use]
    pub fn kernel_count(&self) -> usize {
        self.kernel_symbols().count()
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoKernel`]; or what is wrong with the kernel's attributes.
    pub fn kernel<'n>(&self, name: &'n str) -> Result<Kernel<'a>, Error<'n>>
    where
        'a: 'n,
    {
        let symbol = self.kernel_symbols().find(|symbol| symbol.is_named(name));
        let symbol = symbol.ok_or_else(|| Error::NoKernel {
            name,
            count: self.kernel_count(),
        })?;
        let mut one = [self.kernel_of(&symbol)?];
        self.fill(&mut one)?;
        let [kernel] = one;
        Ok(kernel)
    }

    /// All kernels in the order of their symbols, in one pass over the file.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] where `space` has fewer than [`Cubin::kernel_count`] places; or what is wrong
    /// with a kernel's attributes.
    pub fn kernels_into<'s>(
        &self,
        space: &'s mut [Kernel<'a>],
    ) -> Result<&'s mut [Kernel<'a>], Error<'a>> {
        // Names of different kernels may share a tail in the string table, but in no real file do they share much of it.
        let mut names = self.symbol_names.len().saturating_mul(16);
        let mut count = 0usize;
        for symbol in self.kernel_symbols() {
            let Some(place) = space.get_mut(count) else {
                return Err(Error::BufferTooSmall {
                    what: "space for kernels",
                    needed: u64::try_from(self.kernel_count()).unwrap_or(u64::MAX),
                    available: u64::try_from(space.len()).unwrap_or(u64::MAX),
                });
            };
            *place = self.kernel_of(&symbol)?;
            names = names.checked_sub(place.name.len()).ok_or_else(|| {
                bad(
                    "st_name (names overlap)",
                    "symbol table",
                    0,
                    symbol.index().0.into(),
                )
            })?;
            count = count.saturating_add(1);
        }
        let kernels = space.get_mut(..count).unwrap_or_default();
        self.fill(kernels)?;
        Ok(kernels)
    }

    /// All kernels in the order of their symbols.
    ///
    /// # Errors
    /// As [`Cubin::kernels_into`].
    #[cfg(any(test, feature = "std"))]
    pub fn kernels(&self) -> Result<std::vec::Vec<Kernel<'a>>, Error<'a>> {
        let mut space = std::vec![Kernel::EMPTY; self.kernel_count()];
        self.kernels_into(&mut space)?;
        Ok(space)
    }

    /// A kernel with what its symbol and its instructions' section say of it.
    fn kernel_of(&self, symbol: &Symbol<'a>) -> Result<Kernel<'a>, Error<'a>> {
        let name = symbol.name();
        let section = match symbol.section() {
            SymbolSection::In(index) => self.section(index),
            _ => None,
        };
        let text = section.ok_or(Error::Missing {
            kernel: name,
            what: "section of instructions",
        })?;
        // Everything else that belongs to a kernel points at this section, and it at the symbol.
        if symbol_of(&text) != symbol.index().0 {
            return Err(bad("sh_info", text.name(), 0, text.info().into()));
        }
        let [.., registers] = text.info().to_le_bytes();
        let barriers = if self.osabi() == super::OSABI_CUDA_13 {
            0
        } else {
            text.flags() >> 20 & 0x7f
        };
        Ok(Kernel {
            name,
            symbol: symbol.index(),
            text: text.index(),
            entry: symbol.value(),
            code_size: text.size(),
            registers: registers.into(),
            barriers: u8::try_from(barriers).unwrap_or(0),
            shared_reserved: if self.sm() >= FIRST_WITH_RESERVED {
                RESERVED_SHARED
            } else {
                0
            },
            ..Kernel::EMPTY
        })
    }

    /// Gathers the rest, for kernels in the order of their symbols.
    fn fill(&self, kernels: &mut [Kernel<'a>]) -> Result<(), Error<'a>> {
        let sm = self.sm();
        let mut module_banks = [None; MAX_BANKS];
        for section in self.sections() {
            let tag = section.tag();
            match tag {
                Tag::ModuleInfo => self.fill_from_module_info(&section, kernels)?,
                Tag::Constant(number, false) => add_bank(&mut module_banks, number, &section)?,
                Tag::Info | Tag::Constant(_, true) | Tag::Shared => {
                    // `sh_info` is the function's section of instructions.
                    let Some(text) = self.section(SectionIndex(section.info())) else {
                        return Err(bad("sh_info", section.name(), 0, section.info().into()));
                    };
                    let kernel = find(kernels, symbol_of(&text));
                    let Some(kernel) = kernel.filter(|kernel| kernel.text == text.index()) else {
                        continue;
                    };
                    match tag {
                        Tag::Info => kernel.apply_info(&section)?,
                        Tag::Constant(number, _) => add_bank(&mut kernel.banks, number, &section)?,
                        _ => kernel.apply_shared(&section, sm)?,
                    }
                }
                _ => {}
            }
        }
        for kernel in kernels {
            for (own, module) in kernel.banks.iter_mut().zip(module_banks) {
                *own = own.or(module);
            }
            if kernel.registers == 0 {
                return Err(Error::Missing {
                    kernel: kernel.name,
                    what: "register count (EIATTR_REGCOUNT)",
                });
            }
        }
        Ok(())
    }

    fn fill_from_module_info(
        &self,
        section: &Section<'a>,
        kernels: &mut [Kernel<'a>],
    ) -> Result<(), Error<'a>> {
        for record in section.records() {
            let record = record?;
            let kind = record.attribute();
            let keyed = matches!(
                kind,
                AttributeKind::REGCOUNT
                    | AttributeKind::FRAME_SIZE
                    | AttributeKind::MIN_STACK_SIZE
                    | AttributeKind::MAX_STACK_SIZE
            );
            if !keyed {
                continue;
            }
            let name = kind.name().unwrap_or("attribute");
            let Some([symbol, value]) = record.value.exact_words::<2>() else {
                return Err(bad(name, section.name(), record.offset, 0));
            };
            if let Some(kernel) = find(kernels, symbol)
                && !kernel.apply_module_info(kind, value)
            {
                return Err(bad(name, section.name(), record.offset, value.into()));
            }
        }
        Ok(())
    }
}

fn find<'k, 'a>(kernels: &'k mut [Kernel<'a>], symbol: u32) -> Option<&'k mut Kernel<'a>> {
    // Kernels' symbols mostly follow one another, so that the place tells itself.
    let first = kernels.first()?.symbol.0;
    let guess = usize::try_from(symbol.checked_sub(first)?).ok()?;
    let place = match kernels.get(guess) {
        Some(kernel) if kernel.symbol.0 == symbol => guess,
        _ => kernels
            .binary_search_by_key(&symbol, |kernel| kernel.symbol.0)
            .ok()?,
    };
    kernels.get_mut(place)
}

/// The symbol of the function whose instructions `text` holds: the low 24 bits of its `sh_info`.
fn symbol_of(text: &Section<'_>) -> u32 {
    text.info() & 0x00ff_ffff
}

/// Sets a constant bank, which no other section may have set before.
fn add_bank<'a>(
    banks: &mut [Option<ConstantBank>; MAX_BANKS],
    number: u8,
    section: &Section<'a>,
) -> Result<(), Error<'a>> {
    match banks.get_mut(usize::from(number)) {
        Some(bank @ None) => {
            *bank = Some(ConstantBank {
                section: section.index(),
                size: section.size(),
            });
            Ok(())
        }
        _ => Err(bad(
            "constant bank number",
            section.name(),
            0,
            number.into(),
        )),
    }
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Param {
    /// Its place in the parameter list, from 0.
    pub ordinal: u16,
    /// Where it lies, from the start of the parameters.
    pub offset: u16,
    /// Its size in bytes.
    pub size: u16,
    /// The base-two logarithm of its alignment, 0 in every file seen.
    pub log_alignment: u8,
    /// What it points to: 0 unsaid, 5 global memory (from CUDA 13.2 on).
    pub space: u8,
}

impl Param {
    /// From a `KPARAM_INFO` or `KPARAM_INFO_V2` record.
    #[must_use]
    pub fn of(record: &Record<'_>) -> Option<Self> {
        let [_, place, packed] = record.value.exact_words::<3>()?;
        let [a, b, c, d] = place.to_le_bytes();
        let (ordinal, offset) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let [low, second, third, fourth] = packed.to_le_bytes();
        match record.attribute() {
            // Bits 31:18 size, 17 parameter space, 16:12 bank (31), 11:8 space, 7:0 log alignment.
            AttributeKind::KPARAM_INFO => {
                let size = u16::try_from(packed >> 18).ok()?;
                Some(Self {
                    ordinal,
                    offset,
                    size,
                    log_alignment: low,
                    space: second & 0xf,
                })
            }
            AttributeKind::KPARAM_INFO_V2 => {
                let size = u16::from_le_bytes([low, second]);
                Some(Self {
                    ordinal,
                    offset,
                    size,
                    log_alignment: third,
                    space: fourth,
                })
            }
            _ => None,
        }
    }
}

/// The parameters of a kernel, in the file's order.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    records: Records<'a>,
}

logged!(Params<'_>, params, "parameters in {}", params.records);

impl Params<'_> {
    /// The parameters in the order of their ordinals.
    #[cfg(any(test, feature = "std"))]
    #[must_use]
    pub fn sorted(self) -> std::vec::Vec<Param> {
        let mut params: std::vec::Vec<_> = self.collect();
        params.sort_unstable();
        params
    }
}

impl Iterator for Params<'_> {
    type Item = Param;

    fn next(&mut self) -> Option<Param> {
        self.records
            .by_ref()
            .flatten()
            .find_map(|record| Param::of(&record))
    }
}

/// What the system keeps of each block's shared memory; NVIDIA's programming guide names 1 KB from compute
/// capability 8.0 on, and the QMDs of the vendor library carry 0x400 on an H200.
const RESERVED_SHARED: u32 = 1024;
const FIRST_WITH_RESERVED: SmVersion = SmVersion(80);
/// From here on `.nv.shared.KERNEL` counts the reserved bytes; seen in files of CUDA 11.8 to 13.5.
const FIRST_WITH_RESERVED_IN_SECTION: SmVersion = SmVersion(90);
