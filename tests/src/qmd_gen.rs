//! The field tables of the launch descriptors, as text, from the facts.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a generator: facts that are not as expected end it"
)]

use std::fmt::Write as _;

use serde::Deserialize;

/// A version of the descriptor, as `facts/qmd.json` has it.
#[derive(Debug, Deserialize)]
pub struct Facts {
    /// Its length.
    pub size_dwords: u32,
    /// What the header's names begin with.
    pub macro_prefix: String,
    /// The header.
    pub source_file: String,
    /// Which GPUs it is for.
    pub gpus: String,
    /// The number before the point.
    pub qmd_major_version: u32,
    /// The number after the point.
    pub qmd_minor_version: u32,
    /// Every field.
    pub fields: Vec<FieldFacts>,
}

/// A field, as `facts/qmd.json` has it.
#[derive(Debug, Deserialize)]
pub struct FieldFacts {
    /// The header's name.
    pub name: String,
    /// The highest bit of the first element.
    pub hi: u32,
    /// The lowest bit of the first element.
    pub lo: u32,
    /// How many elements there are.
    pub array_count: u32,
    /// Bits from one element to the next.
    pub array_stride_bits: u32,
    /// The header's names for values.
    pub values: std::collections::BTreeMap<String, u32>,
}

/// Every version, in order.
pub fn facts() -> Vec<(String, Facts)> {
    let all: std::collections::BTreeMap<String, Facts> =
        serde_json::from_value(crate::json("golden/facts/qmd.json"))
            .expect("the facts are as described");
    all.into_iter().collect()
}

/// The file name and the text of each version's table.
pub fn layouts() -> Vec<(String, String)> {
    facts()
        .iter()
        .map(|(version, facts)| (version.to_lowercase(), layout(version, facts)))
        .collect()
}

fn layout(version: &str, facts: &Facts) -> String {
    let mut fields = String::new();
    let mut aliases = String::new();
    let mut wide = String::new();
    let mut seen = Vec::new();
    for field in &facts.fields {
        let alias = bits(field).iter().all(|bit| seen.contains(bit));
        let overlaps = bits(field).iter().any(|bit| seen.contains(bit));
        assert!(
            alias || !overlaps,
            "{version} {}: overlaps in part",
            field.name
        );
        let out = if alias { &mut aliases } else { &mut fields };
        let line = format!(
            "        {}{}: {} = {}:{};",
            field.name,
            array(field),
            kind(version, field),
            field.hi,
            field.lo
        );
        writeln!(out, "{line}").expect("a string");
        seen.extend(bits(field));
        if let Some((name, shift)) = lower(&field.name) {
            let upper = field.name.replace("_LOWER", "_UPPER");
            let upper = facts.fields.iter().find(|other| other.name == upper);
            let upper = upper.unwrap_or_else(|| panic!("{version} {}: no upper half", field.name));
            assert_eq!(array(field), array(upper), "{version} {}", field.name);
            let line = format!(
                "        {name}{} = {}:{}, {}:{}, {shift};",
                array(field),
                upper.hi,
                upper.lo,
                field.hi,
                field.lo
            );
            writeln!(wide, "{line}").expect("a string");
        }
    }
    let Facts {
        qmd_major_version: major,
        qmd_minor_version: minor,
        gpus,
        ..
    } = facts;
    let prefix = facts.macro_prefix.trim_end_matches('_');
    let header = facts.source_file.rsplit('/').next().unwrap_or_default();
    format!(
        "//! Launch descriptor {major}.{minor}: {gpus}.\n\
         //!\n\
         //! Made by `gen_qmd` from `facts/qmd.json`; the numbers are those of `{prefix}_*` in `{header}`.\n\n\
         super::layout::layout! {{\n    \
             /// The layout of version {major}.{minor}.\n    \
             {version};\n    \
             fields {{\n{fields}    }}\n    \
             wide {{\n{wide}    }}\n    \
             aliases {{\n{aliases}    }}\n\
         }}\n"
    )
}

/// Every bit of every element.
fn bits(field: &FieldFacts) -> Vec<u32> {
    let elements = 0..field.array_count;
    elements
        .flat_map(|i| (field.lo..=field.hi).map(move |bit| bit + i * field.array_stride_bits))
        .collect()
}

fn array(field: &FieldFacts) -> String {
    match field.array_count {
        1 => String::new(),
        count => format!("[{count} by {}]", field.array_stride_bits),
    }
}

/// For the lower half of a quantity: its name without the half, and the shift that the name tells.
fn lower(name: &str) -> Option<(String, u32)> {
    let (before, after) = name.split_once("_LOWER")?;
    let shift = match after.strip_prefix("_SHIFTED") {
        None => 0,
        // The one name without a number: PROGRAM_PREFETCH_ADDR, of which the notes say 8 in every version.
        Some("") => 8,
        Some(number) => number.parse().expect("a shift"),
    };
    Some((before.to_owned(), shift))
}

/// The type of what a field holds: by its values, then by its name.
fn kind(version: &str, field: &FieldFacts) -> String {
    let names: Vec<(&str, u32)> = field
        .values
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    if names.is_empty() {
        let half = field.name.contains("_LOWER") || field.name.contains("_UPPER");
        return match field.name.rsplit_once("_SHIFTED") {
            Some((_, shift)) if !half => format!("Shifted<{shift}>"),
            _ if field.hi == field.lo => "Flag".to_owned(),
            _ => "Number".to_owned(),
        };
    }
    let known = KINDS
        .iter()
        .find(|(has, _)| names.iter().any(|(name, _)| name == has));
    let known =
        known.unwrap_or_else(|| panic!("{version} {}: unknown values {names:?}", field.name));
    known.1.to_owned()
}

/// A value that only one type has, and the type.
const KINDS: &[(&str, &str)] = &[
    ("TRUE", "Flag"),
    ("GRID_GPC_CGA", "QmdType"),
    ("L1_SYSMEMBAR", "CwdMembarType"),
    ("NO_CHECK", "ApiVisibleCallLimit"),
    ("VIA_HEADER_INDEX", "SamplerIndex"),
    ("GRID", "DependentQmdType"),
    ("QMD_SCHEDULE", "DependentQmdAction"),
    ("FE_SYSMEMBAR", "ReleaseMembarType"),
    ("RED_ADD", "ReductionOp"),
    ("UNSIGNED", "ReductionFormat"),
    ("UNSIGNED_32", "ReductionFormat32"),
    ("SEMAPHORE_FOUR_WORDS", "SemaphoreStructureSize"),
    ("FOUR_WORDS", "ReleaseStructureSize"),
    ("CONDITIONAL_TRAP", "NonBlockingIntrType"),
    ("TRAP_NONE", "TrapType"),
    ("PREFETCH_LAUNCH", "ProgramPrefetchType"),
    ("PREFETCH_PRE", "ConstantBufferPrefetch"),
    ("MULTI_CAST", "CgaCtaDistributionMode"),
];
