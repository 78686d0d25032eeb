//! `nv cubin`: what a cubin says of itself.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use nv_proto::cubin::{
    Cubin, Error, Kernel, MemorySpace, Record, Role, SectionIndex, SymbolIndex, SymbolSection,
    Value,
};
use nv_proto::unit::Dim3;
use serde_json::json;

use crate::exit::Failure;
use crate::input;
use crate::listing::{Cell, Listing, print};

/// What to show, and of which file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    show: Show,
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The cubin, or `-` for standard input.
    file: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Show {
    /// The file's architecture and toolkit, and its kernels.
    Info(Of),
    /// What each kernel needs to be launched.
    Kernels(Of),
    /// The parameters of each kernel.
    Params(Of),
    /// Every attribute of the module, its kernels and functions.
    Attrs(Of),
    /// Every relocation.
    Relocs(Of),
    /// The symbol table.
    Symbols(Of),
    /// The section table.
    Sections(Of),
}

/// Shows it.
pub fn run(args: &Args) -> Result<(), Failure> {
    type View = fn(&Cubin<'_>) -> Result<Listing, String>;
    let (of, view): (&Of, View) = match &args.show {
        Show::Info(of) => return info(of),
        Show::Kernels(of) => (of, kernels),
        Show::Params(of) => (of, params),
        Show::Attrs(of) => (of, attributes),
        Show::Relocs(of) => (of, relocations),
        Show::Symbols(of) => (of, |cubin| Ok(symbols(cubin))),
        Show::Sections(of) => (of, |cubin| Ok(sections(cubin))),
    };
    let bytes = input::read(&of.file)?;
    let listing = parse(&of.file, &bytes)
        .and_then(|cubin| view(&cubin).map_err(|text| bad(&of.file, &text)))?;
    listing.show(of.json)
}

fn bad(file: &Path, text: &str) -> Failure {
    Failure::BadInput(format!("{}: {text}", file.display()))
}

/// A cubin, or what the file is instead and which command helps.
pub fn parse<'a>(file: &Path, bytes: &'a [u8]) -> Result<Cubin<'a>, Failure> {
    Cubin::parse(bytes).map_err(|error| {
        let hint = match error {
            Error::NotCubin {
                found: nv_proto::cubin::Content::Fatbin | nv_proto::cubin::Content::HostElf(_),
            } => " (nv fatbin list shows what it holds, nv fatbin extract takes it out)",
            _ => "",
        };
        bad(file, &format!("{error}{hint}"))
    })
}

fn text(error: Error<'_>) -> String {
    error.to_string()
}

fn info(of: &Of) -> Result<(), Failure> {
    let bytes = input::read(&of.file)?;
    let cubin = parse(&of.file, &bytes)?;
    let listing = kernels(&cubin).map_err(|text| bad(&of.file, &text))?;
    let architecture = format!("{}{}", cubin.sm(), cubin.variant().suffix());
    let toolkit = cubin.toolkit().map(|toolkit| toolkit.to_string());
    let tools: Vec<_> = cubin
        .notes()
        .flatten()
        .filter_map(|note| note.tool())
        .map(|tool| json!({"name": tool.name, "version": tool.version, "build": tool.build, "options": tool.options.trim()}))
        .collect();
    let compat: Vec<_> = cubin
        .compat()
        .flatten()
        .map(|record| (record.compat().to_string(), value_text(&record)))
        .collect();
    let undefined: Vec<_> = cubin
        .symbols()
        .filter(|symbol| {
            symbol.section() == SymbolSection::Undefined && symbol.is_global() && !symbol.is_weak()
        })
        .map(|symbol| symbol.name())
        .collect();
    if of.json {
        let object = json!({
            "architecture": architecture,
            "variant": format!("{:?}", cubin.variant()),
            "toolkit": toolkit,
            "relocatable": cubin.is_relocatable(),
            "osabi": cubin.osabi(),
            "abi_version": cubin.abi_version(),
            "flags": cubin.flags(),
            "sections": cubin.section_count(),
            "symbols": cubin.symbol_count(),
            "undefined": undefined,
            "tools": tools,
            "compat": compat.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "kernels": listing.json(),
        });
        return print(&format!("{object:#}"));
    }
    print(&format!("architecture  {architecture}"))?;
    print(&format!(
        "toolkit       {}",
        toolkit.as_deref().unwrap_or("not said")
    ))?;
    print(&format!(
        "kind          {}",
        if cubin.is_relocatable() {
            "relocatable: link it with nvlink"
        } else {
            "executable"
        }
    ))?;
    print(&format!(
        "ABI           {:#x}, version {}, flags {:#x}",
        cubin.osabi(),
        cubin.abi_version(),
        cubin.flags()
    ))?;
    print(&format!(
        "tables        {} sections, {} symbols",
        cubin.section_count(),
        cubin.symbol_count()
    ))?;
    if !undefined.is_empty() {
        print(&format!("undefined     {}", undefined.join(", ")))?;
    }
    for tool in &tools {
        let part = |key: &str| tool[key].as_str().unwrap_or("").to_owned();
        print(&format!(
            "made by       {} {} ({})",
            part("name"),
            part("options"),
            part("version")
        ))?;
    }
    for (name, value) in compat {
        print(&format!(
            "compat        {} {value}",
            name.trim_start_matches("EICOMPAT_ATTR_")
        ))?;
    }
    print("")?;
    listing.show(false)
}

fn shape(shape: Option<Dim3>) -> Cell {
    shape.map_or(Cell::None, |shape| Cell::Text(shape.to_string()))
}

fn number(number: impl Into<u64>) -> Cell {
    Cell::Number(number.into())
}

fn kernels(cubin: &Cubin<'_>) -> Result<Listing, String> {
    let mut listing = Listing::new(&[
        "kernel",
        "registers",
        "barriers",
        "shared",
        "reserved",
        "stack",
        "frame",
        "params",
        "param_bytes",
        "param_base",
        "code",
        "banks",
        "max_threads",
        "required",
        "cluster",
        "exits",
        "externals",
        "notes",
    ]);
    for kernel in cubin.kernels().map_err(text)? {
        let banks: Vec<_> = kernel
            .banks
            .iter()
            .enumerate()
            .filter_map(|(number, bank)| Some(format!("c{number}:{}", (*bank)?.size)))
            .collect();
        let externals: Vec<_> = kernel
            .externals()
            .filter_map(|index| Some(cubin.symbol(index)?.name().to_owned()))
            .collect();
        listing.push([
            Cell::Text(kernel.name.to_owned()),
            number(kernel.registers),
            number(kernel.barriers),
            number(kernel.shared),
            number(kernel.shared_reserved),
            kernel
                .stack
                .min
                .map_or(Cell::Text("unknown".to_owned()), number),
            number(kernel.stack.frame),
            number(kernel.param_count),
            number(kernel.param_size),
            Cell::Hex(kernel.param_base.into()),
            number(kernel.code_size),
            Cell::List(banks),
            shape(kernel.max_threads),
            shape(kernel.required_threads),
            shape(kernel.cluster),
            Cell::List(
                kernel
                    .exits()
                    .map(|offset| format!("{offset:#x}"))
                    .collect(),
            ),
            Cell::List(externals),
            Cell::List(notes(&kernel)),
        ]);
    }
    Ok(listing)
}

fn notes(kernel: &Kernel<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |is: bool, text: &str| {
        if is {
            notes.push(text.to_owned());
        }
    };
    note(kernel.explicit_cluster, "explicit cluster");
    note(kernel.blocks_are_clusters, "grid counts clusters");
    note(kernel.cooperative_groups, "cooperative groups");
    if let Some(rank) = kernel.max_cluster_rank {
        notes.push(format!("clusters of at most {rank}"));
    }
    if let Some(cap) = kernel.register_cap.filter(|cap| *cap != 255) {
        notes.push(format!("registers capped at {cap}"));
    }
    let spills = kernel.spills().count();
    if spills > 0 {
        notes.push(format!("{spills} spill instructions"));
    }
    for branch in kernel.indirect_branches() {
        notes.push(format!(
            "branch at {:#x} to any of {}",
            branch.offset,
            branch.targets().len()
        ));
    }
    if let Some(depth) = kernel.stack.max.filter(|depth| *depth > 0) {
        notes.push(format!("call chain of {depth} bytes"));
    }
    notes
}

fn params(cubin: &Cubin<'_>) -> Result<Listing, String> {
    let mut listing = Listing::new(&["kernel", "param", "offset", "bank0", "size", "points_to"]);
    for kernel in cubin.kernels().map_err(text)? {
        for param in kernel.params().sorted() {
            listing.push([
                Cell::Text(kernel.name.to_owned()),
                number(param.ordinal),
                Cell::Hex(param.offset.into()),
                Cell::Hex(u64::from(kernel.param_base) + u64::from(param.offset)),
                number(param.size),
                if param.space == 5 {
                    Cell::Text("global".to_owned())
                } else {
                    Cell::None
                },
            ]);
        }
    }
    Ok(listing)
}

/// An attribute's value: a number, or a payload's words, or its bytes where they are no words.
fn value_text(record: &Record<'_>) -> String {
    match record.value {
        Value::None(0) => String::new(),
        Value::None(other) => format!("({other:#x})"),
        Value::Byte(value) => format!("{value:#x}"),
        Value::Half(value) => format!("{value:#x}"),
        Value::Bytes(bytes) if bytes.len().is_multiple_of(4) => {
            let words: Vec<_> = record
                .value
                .words()
                .map(|word| format!("{word:#x}"))
                .collect();
            words.join(" ")
        }
        Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn attributes(cubin: &Cubin<'_>) -> Result<Listing, String> {
    let mut listing = Listing::new(&["section", "offset", "attribute", "value"]);
    for section in cubin.sections() {
        let role = section.role();
        if !matches!(role, Role::Info(_) | Role::ModuleInfo | Role::Compat) {
            continue;
        }
        for record in section.records() {
            let record = record.map_err(text)?;
            let name = if role == Role::Compat {
                record.compat().to_string()
            } else {
                record.attribute().to_string()
            };
            listing.push([
                Cell::Text(section.name().to_owned()),
                Cell::Hex(record.offset),
                Cell::Text(name),
                Cell::Text(value_text(&record)),
            ]);
        }
    }
    Ok(listing)
}

fn symbol_name(cubin: &Cubin<'_>, index: SymbolIndex) -> String {
    match cubin.symbol(index) {
        Some(symbol) if !symbol.name().is_empty() => symbol.name().to_owned(),
        _ => format!("symbol {}", index.0),
    }
}

fn section_name(cubin: &Cubin<'_>, index: SectionIndex) -> String {
    match cubin.section(index) {
        Some(section) if !section.name().is_empty() => section.name().to_owned(),
        _ => format!("section {}", index.0),
    }
}

fn relocations(cubin: &Cubin<'_>) -> Result<Listing, String> {
    let mut listing = Listing::new(&["target", "offset", "type", "symbol", "addend", "defined_in"]);
    for section in cubin.relocation_sections() {
        let section = section.map_err(text)?;
        let target = section.target().name();
        for relocation in section.iter() {
            let home = match cubin
                .symbol(relocation.symbol)
                .map(|symbol| symbol.section())
            {
                Some(SymbolSection::In(index)) => Cell::Text(section_name(cubin, index)),
                Some(SymbolSection::Undefined) => Cell::Text("undefined".to_owned()),
                Some(SymbolSection::Reserved(number)) => Cell::Hex(number.into()),
                None => Cell::Text("no such symbol".to_owned()),
            };
            listing.push([
                Cell::Text(target.to_owned()),
                Cell::Hex(relocation.offset),
                Cell::Text(relocation.kind.to_string()),
                Cell::Text(symbol_name(cubin, relocation.symbol)),
                relocation
                    .addend
                    .map_or(Cell::Text("in the field".to_owned()), Cell::Signed),
                home,
            ]);
        }
    }
    Ok(listing)
}

fn symbols(cubin: &Cubin<'_>) -> Listing {
    let mut listing = Listing::new(&[
        "symbol", "name", "type", "binding", "space", "section", "value", "size",
    ]);
    for symbol in cubin.symbols() {
        let section = match symbol.section() {
            SymbolSection::In(index) => section_name(cubin, index),
            SymbolSection::Undefined => "undefined".to_owned(),
            SymbolSection::Reserved(number) => format!("{number:#x}"),
        };
        let space = match symbol.space() {
            MemorySpace::Unsaid => Cell::None,
            space => Cell::Text(format!("{space:?}").to_lowercase()),
        };
        let kind = if symbol.is_kernel() {
            "kernel".to_owned()
        } else {
            format!("{:?}", symbol.kind()).to_lowercase()
        };
        let binding = match (symbol.is_global(), symbol.is_weak()) {
            (_, true) => "weak",
            (true, false) => "global",
            (false, false) => "local",
        };
        listing.push([
            number(symbol.index().0),
            Cell::Text(symbol.name().to_owned()),
            Cell::Text(kind),
            Cell::Text(binding.to_owned()),
            space,
            Cell::Text(section),
            Cell::Hex(symbol.value()),
            number(symbol.size()),
        ]);
    }
    listing
}

fn sections(cubin: &Cubin<'_>) -> Listing {
    let mut listing = Listing::new(&[
        "section", "name", "type", "flags", "offset", "size", "align", "link", "info", "loaded",
    ]);
    for section in cubin.sections() {
        listing.push([
            number(section.index().0),
            Cell::Text(section.name().to_owned()),
            Cell::Text(section.kind().to_string()),
            Cell::Hex(section.flags()),
            Cell::Hex(section.offset()),
            number(section.size()),
            number(section.alignment()),
            number(section.link()),
            Cell::Hex(section.info().into()),
            Cell::Flag(section.is_loaded()),
        ]);
    }
    listing
}
