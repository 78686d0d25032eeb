//! The generated tables of nv-proto: their text, made from the facts.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

/// Every generated file below the workspace's root, with its text.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("nv-proto/src/class/names.rs", class_names()),
        ("nv-proto/src/push/table/host.rs", methods("host")),
        ("nv-proto/src/push/table/compute.rs", methods("compute")),
        ("nv-proto/src/push/table/copy.rs", methods("copy")),
    ]
}

/// Whether an entry of the method facts is a method: one is a value of `MEM_OP_D_OPERATION` that the header
/// spells like a method (`NVC56F_MEM_OP_B_OPERATION_L2_INVALIDATE_CLEAN_LINES`).
pub fn is_method(entry: &Value) -> bool {
    number(&entry["offset"]).is_multiple_of(4)
}

const NOTICE: &str = "//! Generated from the facts in `tests/golden/facts` by the `gen-tables` program of `tests`.\n";

/// Class numbers and names: the driver's class tables, and what the method headers add to them.
fn class_names() -> String {
    let facts = crate::json("golden/facts/classes.json");
    let mut names: Vec<(u64, String)> = object(&facts["classes"])
        .map(|(name, id)| (number(id), name.clone()))
        .collect();
    let methods = crate::json("golden/facts/methods.json");
    for kind in ["host", "compute", "copy"] {
        for (_, class) in object(&methods[kind]) {
            let entry = (
                number(&class["class_id"]),
                text(&class["class_name"]).to_owned(),
            );
            if !names.contains(&entry) {
                names.push(entry);
            }
        }
    }
    names.sort();
    let mut out = String::from("//! Class numbers by value, with their names.\n//!\n");
    out.push_str("//! From the open kernel driver's class tables and the class headers.\n");
    out.push_str(NOTICE);
    let _ = writeln!(
        out,
        "\n/// Class numbers and names, sorted; a number can have two.\npub static NAMES: [(u32, &str); {}] = [",
        names.len()
    );
    for (id, name) in names {
        let _ = writeln!(out, "    ({id:#06x}, \"{name}\"),");
    }
    out.push_str("];\n");
    out
}

/// The methods of one kind of class: a row for each different definition, with the classes that share it.
fn methods(kind: &str) -> String {
    let facts = crate::json("golden/facts/methods.json");
    let mut classes: Vec<&Value> = object(&facts[kind]).map(|(_, class)| class).collect();
    classes.sort_by_key(|class| number(&class["class_id"]));

    // Rows by address, then by the first class that has them.
    let mut rows: BTreeMap<(u64, usize, &str), (&Value, u8)> = BTreeMap::new();
    for (place, class) in classes.iter().enumerate() {
        for (name, method) in object(&class["methods"]).filter(|(_, method)| is_method(method)) {
            let addr = number(&method["offset"]);
            let known = rows
                .iter_mut()
                .find(|((at, _, known), (row, _))| *at == addr && known == name && *row == method);
            match known {
                Some((_, (_, mask))) => *mask |= 1 << place,
                None => {
                    rows.insert((addr, place, name), (method, 1 << place));
                }
            }
        }
    }

    let mut values: BTreeMap<String, usize> = BTreeMap::new();
    let mut body = String::new();
    for ((addr, _, name), (method, mask)) in &rows {
        let stride = number(&method["array_stride_bytes"]);
        let _ = writeln!(
            body,
            "    MethodInfo::new({addr:#x}, {stride}, {mask:#04x}, \"{name}\", &["
        );
        let mut fields: Vec<(&String, &Value)> = object(&method["fields"]).collect();
        fields.sort_by_key(|(name, field)| (number(&field["lo"]), number(&field["hi"]), *name));
        for (name, field) in fields {
            let next = values.len();
            let set = *values.entry(value_names(&field["values"])).or_insert(next);
            let (hi, lo) = (number(&field["hi"]), number(&field["lo"]));
            let _ = writeln!(body, "        Field::new(\"{name}\", {hi}, {lo}, V{set}),");
        }
        body.push_str("    ]),\n");
    }

    let mut out = format!("//! Methods of the {kind} classes.\n//!\n{NOTICE}\n");
    out.push_str("use super::{Field, Kind, MethodInfo, ValueName};\nuse crate::unit::ClassId;\n\n");
    let _ = writeln!(
        out,
        "/// The {kind} classes.\npub(super) static KIND: Kind = Kind {{ classes: &CLASSES, methods: &METHODS }};\n"
    );
    let _ = writeln!(out, "static CLASSES: [ClassId; {}] = [", classes.len());
    for class in &classes {
        let (id, name) = (number(&class["class_id"]), text(&class["class_name"]));
        let _ = writeln!(
            out,
            "    ClassId({id:#06x}), // {name}, {}",
            text(&class["source"])
        );
    }
    let _ = writeln!(
        out,
        "];\n\nstatic METHODS: [MethodInfo; {}] = [",
        rows.len()
    );
    out.push_str(&body);
    out.push_str("];\n\n");
    let mut values: Vec<(String, usize)> = values.into_iter().collect();
    values.sort_by_key(|(_, set)| *set);
    for (text, set) in values {
        let _ = writeln!(out, "const V{set}: &[ValueName] = &[{text}];");
    }
    out
}

/// The named values of a field as the elements of an array, by value and name.
fn value_names(values: &Value) -> String {
    let mut values: Vec<(u64, &String)> = object(values)
        .map(|(name, value)| (number(value), name))
        .collect();
    values.sort();
    let values: Vec<String> = values
        .iter()
        .map(|(value, name)| format!("({value}, \"{name}\")"))
        .collect();
    values.join(", ")
}

/// The members of an object.
fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A number that the facts must have.
#[allow(clippy::panic, reason = "broken facts end the generator")]
fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// A text that the facts must have.
#[allow(clippy::panic, reason = "broken facts end the generator")]
fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
}
