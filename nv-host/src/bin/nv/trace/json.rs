//! A trace as JSON: one object a line.

use std::fmt::Write as _;

use nv_proto::pretty::lines;
use nv_proto::qmd::Qmd;
use serde_json::{Map, Value, json};

use super::call::Named;
use super::events::{Call, Entry, Event, Recorded, Ring, What};
use super::text::{Channels, lost};
use super::{Only, Style};
use crate::exit::Failure;
use crate::push::dump;
use crate::push::paint::Paper;

/// Writes everything.
pub fn write(paper: &mut Paper<'_>, recorded: &Recorded, style: Style) -> Result<(), Failure> {
    let mut channels = Channels::default();
    for event in &recorded.events {
        channels.learn(event);
        let shown = match (&event.what, style.only) {
            (What::Ring(_), Some(Only::Calls)) => false,
            (What::Ring(_) | What::Lost { .. } | What::Unknown(_), _) => true,
            (_, only) => only != Some(Only::Commands),
        };
        if shown {
            let mut object = one(event, &mut channels, style);
            let time = event.stamp.time.saturating_sub(recorded.begin);
            object.insert("time_us".to_owned(), json!(time as f64 / 1e3));
            object.insert("process".to_owned(), event.stamp.process.into());
            object.insert("thread".to_owned(), event.stamp.thread.into());
            paper.line(Value::Object(object))?;
        }
    }
    Ok(())
}

fn one(event: &Event, channels: &mut Channels, style: Style) -> Map<String, Value> {
    let value = match &event.what {
        What::Start { program } => json!({ "event": "start", "program": program }),
        What::Open { path, fd, errno } => {
            json!({ "event": "open", "node": path, "fd": fd, "errno": errno })
        }
        What::Close { path, fd } => json!({ "event": "close", "node": path, "fd": fd }),
        What::Map {
            path,
            fd,
            address,
            length,
            offset,
        } => json!({
            "event": "mmap", "node": path, "fd": fd, "address": address, "length": length, "offset": offset,
        }),
        What::Unmap { address, length } => {
            json!({ "event": "munmap", "address": address, "length": length })
        }
        What::Call(call) => self::call(call, style),
        What::Ring(ring) => self::ring(ring, channels, style),
        What::Lost { count, why } => {
            json!({ "event": "lost", "count": count, "text": lost(*count, *why) })
        }
        What::Unknown(number) => json!({ "event": "unknown", "kind": number }),
    };
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Bytes have the names that recordings for `nv ioctl decode` have.
fn call(call: &Call, style: Style) -> Value {
    let named = Named::new(call, style);
    let status = named.status.map(|status| status.0);
    let mut value = json!({
        "event": "call",
        "node": call.path,
        "fd": call.fd,
        "request": format!("{:#x}", call.request),
        "name": named.name,
        "about": named.about,
        "objects": named.objects,
        "failed": named.failed(call),
        "status": status,
        "status_name": named.status.and_then(nv_proto::rm::Status::name),
        "result": call.end.map(|(result, _, _)| result),
        "errno": call.end.map(|(_, errno, _)| errno),
        "microseconds": call.end.map(|(_, _, took)| took as f64 / 1e3),
    });
    if !style.brief {
        value["structure"] = named.structure.into();
        value["params"] = object(named.params);
        value["changed"] = object(named.changed);
        value["call_in"] = hex(&call.own[0]).into();
        value["call_out"] = hex(&call.own[1]).into();
        value["params_in"] = hex(&call.inner[0]).into();
        value["params_out"] = hex(&call.inner[1]).into();
        value["params_size"] = call.inner_size.into();
        value["params_size_guessed"] = call.guessed.into();
    }
    value
}

fn object<N: Into<String>>(fields: Vec<(N, String)>) -> Value {
    let fields = fields
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    Value::Object(fields.collect())
}

fn ring(ring: &Ring, channels: &mut Channels, style: Style) -> Value {
    let bindings = channels.bindings(ring);
    let mut entries = Vec::new();
    for entry in &ring.entries {
        let mut found = lines(&entry.words, *bindings);
        let mut methods = Vec::new();
        let mut error = None;
        for line in found.by_ref() {
            match line {
                Ok(line) if !style.brief => methods.push(dump::entry(&line)),
                Ok(_) => {}
                Err(found) => error = Some(found.to_string()),
            }
        }
        *bindings = found.bindings();
        entries.push(self::entry(entry, methods, error));
    }
    json!({
        "event": "ring",
        "client": ring.client,
        "channel": ring.channel,
        "class": nv_proto::rm::names::class(ring.class),
        "class_number": ring.class.0,
        "gp_fifo": ring.va.0,
        "slots": ring.slots,
        "gp_put": ring.put,
        "lost": ring.went_round,
        "not_mapped": ring.hidden,
        "entries": entries,
    })
}

fn entry(entry: &Entry, methods: Vec<Value>, error: Option<String>) -> Value {
    let length = entry.len();
    let descriptors = entry.descriptors.iter().map(|(va, qmd)| {
        json!({ "address": va.0, "version": qmd.as_ref().map(|qmd| qmd.version().to_string()), "fields": qmd.as_ref().map(fields) })
    });
    json!({
        "slot": entry.slot,
        "bits": entry.bits,
        "address": length.map(|(va, _)| va.0),
        "length": length.map(|(_, words)| words),
        "words": entry.words,
        "lines": methods,
        "error": error,
        "descriptors": descriptors.collect::<Vec<_>>(),
    })
}

fn fields(qmd: &Qmd) -> Vec<Value> {
    qmd.fields()
        .map(|value| json!({ "name": value.field.name, "index": value.index, "value": value.raw }))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
