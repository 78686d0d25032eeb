//! A small machine for kernels: memory, a loader of cubins made with an independent ELF reader, and constant bank 0 by hand.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers: what is not there fails the test that asked for it"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nv_proto::unit::{Dim3, SmVersion};
use nv_sim::memory::{Access, AddressSpace, Memory, MmuFault};
use nv_sim::sm::{ConstantBank, Fault, Grid, Stats};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, elf};

pub const SHARED_WINDOW: u64 = 0x7294_0000_0000;
pub const LOCAL_WINDOW: u64 = 0x7293_0000_0000;
pub const STACK_TOP: u32 = 0xff_fdc0;

/// Memory in runs, each at its own address.
#[derive(Default)]
pub struct Space {
    runs: BTreeMap<u64, Memory>,
    next: u64,
}

impl AddressSpace for Space {
    fn cell(&self, va: u64, access: Access) -> Result<&AtomicU64, MmuFault> {
        self.cells(va, 1, access)?
            .first()
            .ok_or(MmuFault { va, access })
    }

    fn cells(&self, va: u64, cells: usize, access: Access) -> Result<&[AtomicU64], MmuFault> {
        let fault = MmuFault { va, access };
        let (base, run) = self.runs.range(..=va).next_back().ok_or(fault)?;
        let first = usize::try_from((va - base) / 8).map_err(|_| fault)?;
        let rest = run
            .cells()
            .get(first..)
            .filter(|rest| !rest.is_empty())
            .ok_or(fault)?;
        Ok(&rest[..cells.min(rest.len())])
    }
}

impl Space {
    /// Zeroed memory at an address of its own, with unmapped memory on both sides.
    pub fn alloc(&mut self, bytes: usize) -> u64 {
        let va = 0x10_0000_0000 + self.next;
        self.next += (bytes as u64 + 0x3_0000) & !0xffff;
        self.runs.insert(va, Memory::zeroed(bytes.max(8)).unwrap());
        va
    }

    pub fn write(&self, va: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let at = va + i as u64;
            let cell = self.cell(at, Access::Write).unwrap();
            let shift = 8 * (at & 7);
            let old = cell.load(Ordering::Relaxed);
            cell.store(
                (old & !(0xff << shift)) | u64::from(*byte) << shift,
                Ordering::Relaxed,
            );
        }
    }

    pub fn read(&self, va: u64, bytes: usize) -> Vec<u8> {
        (va..va + bytes as u64)
            .map(|at| {
                (self.cell(at, Access::Read).unwrap().load(Ordering::Relaxed) >> (8 * (at & 7)))
                    as u8
            })
            .collect()
    }

    pub fn buffer(&mut self, words: &[u32]) -> u64 {
        let va = self.alloc(4 * words.len());
        self.write(
            va,
            &words
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect::<Vec<_>>(),
        );
        va
    }

    pub fn floats(&mut self, values: &[f32]) -> u64 {
        self.buffer(&values.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    }

    pub fn words(&self, va: u64, count: usize) -> Vec<u32> {
        self.read(va, 4 * count)
            .chunks(4)
            .map(|b| u32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    pub fn read_floats(&self, va: u64, count: usize) -> Vec<f32> {
        self.words(va, count)
            .into_iter()
            .map(f32::from_bits)
            .collect()
    }
}

/// Kernel arguments, laid out as C does.
#[derive(Clone, Default)]
pub struct Args(Vec<u8>);

impl Args {
    fn push(mut self, bytes: &[u8]) -> Self {
        while !self.0.len().is_multiple_of(bytes.len()) {
            self.0.push(0);
        }
        self.0.extend(bytes);
        self
    }

    pub fn ptr(self, va: u64) -> Self {
        self.push(&va.to_le_bytes())
    }

    pub fn u32(self, x: u32) -> Self {
        self.push(&x.to_le_bytes())
    }

    pub fn f32(self, x: f32) -> Self {
        self.push(&x.to_le_bytes())
    }

    pub fn f64(self, x: f64) -> Self {
        self.push(&x.to_le_bytes())
    }

    pub fn bytes(mut self, bytes: &[u8], align: usize) -> Self {
        while !self.0.len().is_multiple_of(align) {
            self.0.push(0);
        }
        self.0.extend(bytes);
        self
    }
}

/// One kernel of a loaded cubin.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub entry: u64,
    pub registers: u16,
    pub stack: u32,
    pub shared: u32,
    pub barriers: u8,
    params: (u32, u32),
    banks: Vec<(u8, u64, u32)>,
}

/// A launch shape.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    pub cluster: Dim3,
    pub dynamic: u32,
    pub cooperative: bool,
}

pub fn shape(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Shape {
    Shape {
        grid: grid.into(),
        block: block.into(),
        cluster: Dim3::ONE,
        dynamic: 0,
        cooperative: false,
    }
}

/// A machine with one cubin loaded.
pub struct Machine {
    pub space: Space,
    pub sm: SmVersion,
    pub kernels: BTreeMap<String, Kernel>,
    pub symbols: BTreeMap<String, u64>,
    /// What a cooperative grid meets in.
    pub workspace: Option<u64>,
}

pub fn cubin_path(relative: &str) -> PathBuf {
    let extra = std::env::var_os("NV_SM_CUBINS").map(PathBuf::from);
    let local = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("cubins")
        .join(relative);
    if local.exists() {
        local
    } else {
        extra.map_or(local, |dir| dir.join(relative))
    }
}

impl Machine {
    pub fn load(relative: &str, sm: u16) -> Self {
        let path = cubin_path(relative);
        let data =
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::load_bytes(&data, sm)
    }

    pub fn load_bytes(data: &[u8], sm: u16) -> Self {
        let header = elf::FileHeader64::<Endianness>::parse(data).unwrap();
        let endian = header.endian().unwrap();
        let sections = header.sections(endian, data).unwrap();
        let symbols = sections.symbols(endian, data, elf::SHT_SYMTAB).unwrap();
        let mut machine = Self {
            space: Space::default(),
            sm: SmVersion(sm),
            kernels: BTreeMap::new(),
            symbols: BTreeMap::new(),
            workspace: None,
        };
        // Sections with contents that code or pointers refer to.
        let mut placed: BTreeMap<usize, u64> = BTreeMap::new();
        let names: Vec<String> = sections
            .iter()
            .map(|s| {
                String::from_utf8_lossy(sections.section_name(endian, s).unwrap()).into_owned()
            })
            .collect();
        for (i, section) in sections.iter().enumerate() {
            let name = &names[i];
            let wanted = name.starts_with(".text.")
                || name.starts_with(".nv.constant")
                || name == ".nv.global"
                || name == ".nv.global.init";
            if !wanted {
                continue;
            }
            let size = section.sh_size(endian) as usize;
            let va = machine.space.alloc(size.max(8));
            if section.sh_type(endian) != elf::SHT_NOBITS && name != ".nv.global" {
                machine.space.write(va, section.data(endian, data).unwrap());
            }
            placed.insert(i, va);
        }
        let value = |index: usize| -> Option<u64> {
            let symbol = symbols.symbol(object::SymbolIndex(index)).ok()?;
            let at = placed.get(&usize::from(symbol.st_shndx(endian).0))?;
            Some(at + symbol.st_value(endian))
        };
        for (i, symbol) in symbols.iter().enumerate() {
            if let Some(at) = value(i) {
                let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings()).unwrap())
                    .into_owned();
                machine.symbols.insert(name, at);
            }
        }
        // Relocations of the placed sections.
        for section in sections.iter() {
            let target = section.sh_info(endian) as usize;
            let Some(base) = placed.get(&target) else {
                continue;
            };
            let apply = |offset: u64, kind: u32, symbol: usize, addend: i64, explicit: bool| {
                let at = base + offset;
                let space = &machine.space;
                let old = u64::from_le_bytes(space.read(at, 8).try_into().unwrap());
                let Some(symbol) = value(symbol) else { return };
                let address = symbol.wrapping_add_signed(addend);
                match kind {
                    0x02 | 0x04 => {
                        let implicit = if explicit { 0 } else { old };
                        space.write(at, &address.wrapping_add(implicit).to_le_bytes());
                    }
                    0x38 | 0x39 => {
                        let field = u32::from_le_bytes(space.read(at + 4, 4).try_into().unwrap());
                        let implicit = if explicit || kind == 0x39 {
                            0
                        } else {
                            u64::from(field)
                        };
                        let value = address.wrapping_add(implicit);
                        let half = if kind == 0x38 {
                            value as u32
                        } else {
                            (value >> 32) as u32
                        };
                        space.write(at + 4, &half.to_le_bytes());
                    }
                    other => eprintln!(
                        "relocation {other:#x} at {offset:#x} of {} left alone",
                        names[target]
                    ),
                }
            };
            if let Some((relocations, _)) = section.rela(endian, data).unwrap() {
                for r in relocations {
                    let info = r.r_info.get(endian);
                    apply(
                        r.r_offset.get(endian),
                        info as u32,
                        (info >> 32) as usize,
                        r.r_addend.get(endian),
                        true,
                    );
                }
            } else if let Some((relocations, _)) = section.rel(endian, data).unwrap() {
                for r in relocations {
                    let info = r.r_info.get(endian);
                    apply(
                        r.r_offset.get(endian),
                        info as u32,
                        (info >> 32) as usize,
                        0,
                        false,
                    );
                }
            }
        }
        // What the attributes say, by symbol.
        let (mut registers, mut stacks) = (BTreeMap::new(), BTreeMap::new());
        for (i, section) in sections.iter().enumerate() {
            if names[i] == ".nv.info" {
                for (attribute, value) in attributes(section.data(endian, data).unwrap()) {
                    if value.len() >= 8 {
                        let word =
                            |at: usize| u32::from_le_bytes(value[at..at + 4].try_into().unwrap());
                        match attribute {
                            0x2f => drop(registers.insert(word(0), word(4))),
                            0x12 => drop(stacks.insert(word(0), word(4))),
                            _ => {}
                        }
                    }
                }
            }
        }
        for (i, _) in sections.iter().enumerate() {
            let Some(name) = names[i].strip_prefix(".text.") else {
                continue;
            };
            let index = symbols
                .iter()
                .position(|s| {
                    s.name(endian, symbols.strings())
                        .is_ok_and(|n| n == name.as_bytes())
                })
                .unwrap() as u32;
            let mut kernel = Kernel {
                entry: placed[&i],
                registers: registers.get(&index).copied().unwrap_or(255) as u16,
                stack: stacks.get(&index).copied().unwrap_or(0),
                barriers: 16,
                ..Kernel::default()
            };
            for (j, section) in sections.iter().enumerate() {
                if names[j] == format!(".nv.shared.{name}") {
                    kernel.shared = section.sh_size(endian) as u32;
                }
                if names[j] == format!(".nv.info.{name}") {
                    for (attribute, value) in attributes(section.data(endian, data).unwrap()) {
                        if attribute == 0x0a && value.len() >= 8 {
                            let half = |at: usize| {
                                u32::from(u16::from_le_bytes(value[at..at + 2].try_into().unwrap()))
                            };
                            kernel.params = (half(4), half(6));
                        }
                    }
                }
                if let Some(rest) = names[j].strip_prefix(".nv.constant") {
                    let (number, of) = rest.split_once('.').unwrap_or((rest, ""));
                    let number: u8 = number.parse().unwrap();
                    if number != 0 && (of.is_empty() || of == name) {
                        kernel
                            .banks
                            .push((number, placed[&j], section.sh_size(endian) as u32));
                    }
                }
            }
            machine.kernels.insert(name.to_owned(), kernel);
        }
        machine
    }

    pub fn grid(&mut self, name: &str, shape: Shape, args: &Args) -> Grid {
        let kernel = self
            .kernels
            .get(name)
            .unwrap_or_else(|| panic!("no kernel {name} among {:?}", self.kernels.keys()))
            .clone();
        let new = self.sm.0 >= 100;
        let (param, size) = kernel.params;
        let bank_bytes = (param + size.max(args.0.len() as u32))
            .next_multiple_of(256)
            .max(0x400);
        let bank = self.space.alloc(bank_bytes as usize);
        let put =
            |at: u32, value: u32| self.space.write(bank + u64::from(at), &value.to_le_bytes());
        let put64 =
            |at: u32, value: u64| self.space.write(bank + u64::from(at), &value.to_le_bytes());
        let reserved = if self.sm.0 >= 90 { 0x400 } else { 0 };
        let shared = kernel.shared.max(reserved) + shape.dynamic;
        let (block, grid) = if new { (0x360, 0x370) } else { (0, 0xc) };
        for (at, v) in [(block, shape.block), (grid, shape.grid)] {
            put(at, v.x);
            put(at + 4, v.y);
            put(at + 8, v.z);
        }
        put64(if new { 0x2f0 } else { 0x18 }, SHARED_WINDOW);
        put64(if new { 0x2f8 } else { 0x20 }, LOCAL_WINDOW);
        put(if new { 0x37c } else { 0x28 }, STACK_TOP);
        let clusters = Dim3::new(
            shape.grid.x / shape.cluster.x,
            shape.grid.y / shape.cluster.y,
            shape.grid.z / shape.cluster.z,
        );
        if let Some(workspace) = self.workspace {
            // High and low word, as the compiler's code for a grid-wide barrier reads them.
            let places: &[(u32, u32)] = match self.sm.0 {
                0..90 => &[(0x8c, 0x90)],
                90..100 => &[(0x44, 0x48)],
                _ => &[(0x254, 0x258), (0x1b4, 0x1b8)],
            };
            for (high, low) in places {
                put(*high, (workspace >> 32) as u32);
                put(*low, workspace as u32);
            }
        }
        if new {
            put(0x36c, u32::from(shape.cluster.count() > 1));
            for record in [0x250, 0x1b0] {
                put(record + 0x70, clusters.x);
                put(record + 0x74, clusters.y);
                put(record + 0x78, clusters.z);
                put(record + 0x7c, shape.cluster.count() as u32);
            }
        }
        if self.sm.0 == 90 {
            put(0x110, u32::from(shape.cooperative));
            put(0x13c, shared);
            put(0x140, u32::from(shape.cluster.count() > 1));
            for (at, v) in [(0x144, shape.cluster), (0x15c, clusters)] {
                put(at, v.x);
                put(at + 4, v.y);
                put(at + 8, v.z);
            }
            put(0x188, shape.cluster.count() as u32);
        }
        self.space.write(bank + u64::from(param), &args.0);
        let mut banks = [ConstantBank::default(); 8];
        banks[0] = ConstantBank {
            va: bank,
            size: bank_bytes,
        };
        for (number, va, size) in &kernel.banks {
            banks[usize::from(*number)] = ConstantBank {
                va: *va,
                size: size.next_multiple_of(16),
            };
        }
        Grid {
            sm: self.sm,
            grid: shape.grid,
            block: shape.block,
            cluster: shape.cluster,
            cooperative: shape.cooperative,
            program: kernel.entry,
            registers: kernel.registers,
            barriers: kernel.barriers,
            shared_bytes: shared.next_multiple_of(128),
            local_bytes: kernel.stack.next_multiple_of(16),
            banks,
            shared_window: SHARED_WINDOW,
            local_window: LOCAL_WINDOW,
            sm_count: 132,
        }
    }

    pub fn try_launch(
        &mut self,
        name: &str,
        shape: Shape,
        args: Args,
    ) -> Result<Stats, Box<Fault>> {
        let grid = self.grid(name, shape, &args);
        // A kernel that does not end fails its test within half a minute.
        let cancel = AtomicBool::new(false);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..4000 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
                cancel.store(true, Ordering::Relaxed);
            });
            let result = nv_sim::sm::run(&grid, &self.space, &cancel);
            ended.store(true, Ordering::Relaxed);
            result
        })
    }

    pub fn launch(&mut self, name: &str, shape: Shape, args: Args) -> Stats {
        let entry = self.kernels.get(name).map_or(0, |k| k.entry);
        match self.try_launch(name, shape, args) {
            Ok(stats) => stats,
            Err(fault) => panic!(
                "{name} on {}: {:?} at +{:#x} {:x?}, block {} thread {}",
                self.sm,
                fault.kind,
                fault.pc.wrapping_sub(entry),
                fault.words,
                fault.block,
                fault.thread
            ),
        }
    }
}

fn attributes(data: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut out = Vec::new();
    let mut at = 0;
    while at + 4 <= data.len() {
        let (format, attribute) = (data[at], data[at + 1]);
        let size = usize::from(u16::from_le_bytes([data[at + 2], data[at + 3]]));
        at += 4;
        if format == 4 {
            out.push((attribute, data[at..at + size].to_vec()));
            at += size;
        } else {
            out.push((attribute, vec![data[at - 2], data[at - 1]]));
        }
    }
    out
}

/// Numbers that look random and are the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    pub fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    /// Between -8 and 8.
    pub fn float(&mut self) -> f32 {
        (self.word() as i32 >> 8) as f32 / (1 << 20) as f32
    }

    pub fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}
