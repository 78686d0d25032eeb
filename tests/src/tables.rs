//! The generated tables of nv-proto: their text, made from the facts.

use std::fmt::Write;

use serde_json::Value;

/// Every generated file below the workspace's root, with its text.
pub fn all() -> Vec<(&'static str, String)> {
    vec![("nv-proto/src/class/names.rs", class_names())]
}

const NOTICE: &str =
    "// Generated from the facts in `tests/golden/facts` by the `gen-tables` program of `tests`.\n";

/// Class numbers and names that the method headers give and the driver's class tables do not.
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
