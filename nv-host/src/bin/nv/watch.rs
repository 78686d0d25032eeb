//! `NV_TRACE`: what the library tells of its driver calls and of the streams it submits, on standard error.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The variable's name.
pub const VARIABLE: &str = "NV_TRACE";

/// What `nv --help` says of it.
pub const HELP: &str = "Environment: NV_TRACE prints to standard error what a command asks of the driver. It is a list of \
words, parted by commas: `calls` (or 1) for the driver calls with their parameters by name, `ioctl` for the system calls that they are \
made of too, `stream` for every submitted stream by name, \
`json` for one JSON object a line.";

/// The targets that `nv_host` tells under.
const CALLS: &str = nv_host::driver::traced::TARGET;
const IOCTLS: &str = "nv_host::ioctl";
const STREAMS: &str = "nv_host::stream";

thread_local! {
    /// How many driver calls this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// What to show, and how.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    calls: bool,
    ioctls: bool,
    streams: bool,
    json: bool,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut wanted = Self::default();
        let mut off = false;
        for word in text.split(',').map(str::trim) {
            match word {
                "" | "0" => off = true,
                "1" | "calls" => wanted.calls = true,
                "ioctl" => (wanted.calls, wanted.ioctls) = (true, true),
                "stream" => wanted.streams = true,
                "json" => wanted.json = true,
                other => {
                    return Err(format!(
                        "{VARIABLE}={text}: {other:?} is none of calls (or 1), ioctl, stream and json"
                    ));
                }
            }
        }
        // How without what is about calls.
        wanted.calls |= wanted.json && !wanted.streams;
        if off && wanted != Self::default() {
            return Err(format!(
                "{VARIABLE}={text}: 0 beside other words says two things"
            ));
        }
        Ok(wanted)
    }
}

/// Begins to show what the environment asks for.
pub fn begin() -> Result<(), String> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(());
    };
    let wanted: Wanted = text.to_string_lossy().parse()?;
    if wanted == Wanted::default() {
        return Ok(());
    }
    tracing::subscriber::set_global_default(Watch::new(wanted)).map_err(|error| error.to_string())
}

/// The subscriber.
struct Watch {
    wanted: Wanted,
    start: Instant,
    next: AtomicU64,
    /// Spans that are not closed, with how many hold them.
    open: Mutex<HashMap<u64, (Told, u64)>>,
}

/// Whether a span is a driver call, which the system calls inside it belong to.
fn is_call(told: &Told) -> bool {
    told.metadata.target() == CALLS
}

/// A span or an event with its fields.
struct Told {
    metadata: &'static Metadata<'static>,
    hidden: bool,
    fields: Fields,
}

#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.retain(|(name, _)| *name != field.name());
        self.0.push((field.name(), value));
    }

    fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(field, _)| *field == name)?;
        value.as_str().filter(|text| !text.is_empty())
    }

    fn number(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.0.iter().find(|(field, _)| *field == name)?;
        value.is_number().then_some(value)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

impl Watch {
    fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            start: Instant::now(),
            next: AtomicU64::new(1),
            open: Mutex::default(),
        }
    }

    /// The spans; none is left half-made by a panic.
    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<u64, (Told, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open_call(&self, id: &Id) -> bool {
        let open = self.open();
        open.get(&id.into_u64())
            .is_some_and(|(told, _)| is_call(told))
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        match metadata.target() {
            // Those that belong to no call are shown with the calls.
            CALLS | IOCTLS => self.wanted.calls,
            STREAMS => self.wanted.streams,
            _ => false,
        }
    }

    fn write(&self, told: &Told) {
        let time = self.start.elapsed().as_nanos() as f64 / 1e3;
        let text = if self.wanted.json {
            json(told, time)
        } else {
            self::text(told, time)
        };
        // Who closes standard error wants to hear no more.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

impl Subscriber for Watch {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.wants(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if self.wanted.streams {
            LevelFilter::TRACE
        } else {
            LevelFilter::DEBUG
        })
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let part = attributes.metadata().target() == IOCTLS && DEPTH.get() > 0;
        let told = Told {
            metadata: attributes.metadata(),
            hidden: part && !self.wanted.ioctls,
            fields,
        };
        self.open().insert(id, (told, 1));
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        if let Some((told, _)) = self.open().get_mut(&id.into_u64()) {
            values.record(&mut told.fields);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.write(&Told {
            metadata: event.metadata(),
            hidden: false,
            fields,
        });
    }

    fn enter(&self, id: &Id) {
        if self.is_open_call(id) {
            DEPTH.set(DEPTH.get() + 1);
        }
    }

    fn exit(&self, id: &Id) {
        if self.is_open_call(id) {
            DEPTH.set(DEPTH.get().saturating_sub(1));
        }
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some((_, holders)) = self.open().get_mut(&id.into_u64()) {
            *holders += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut open = self.open();
        let Some((_, holders)) = open.get_mut(&id.into_u64()) else {
            return false;
        };
        *holders -= 1;
        if *holders > 0 {
            return false;
        }
        let closed = open.remove(&id.into_u64());
        drop(open);
        if let Some((told, _)) = closed.filter(|(told, _)| !told.hidden) {
            self.write(&told);
        }
        true
    }
}

/// One line of JSON; what has several lines becomes a list.
fn json(told: &Told, time: f64) -> String {
    let mut object = Map::new();
    object.insert("time_us".into(), time.into());
    object.insert("target".into(), told.metadata.target().into());
    if told.metadata.is_span() {
        object.insert("span".into(), told.metadata.name().into());
    }
    for (name, value) in &told.fields.0 {
        let value = match (*name, value) {
            ("methods" | "qmd", Value::String(text)) => text.lines().collect::<Vec<_>>().into(),
            (_, value) => value.clone(),
        };
        object.insert((*name).into(), value);
    }
    format!("{}\n", Value::Object(object))
}

/// A call as one line, with its parameters and what changed in them below; a stream with its methods below.
fn text(told: &Told, time: f64) -> String {
    let fields = &told.fields;
    let mut text = format!("{:>10.3} ms ", time / 1e3);
    if told.metadata.target() == STREAMS {
        let number = |name| {
            fields
                .number(name)
                .map_or_else(String::new, Value::to_string)
        };
        let _ = write!(
            text,
            "stream {}, submission {}: {}, at {}",
            number("stream"),
            number("submission"),
            fields.text("work").unwrap_or_default(),
            fields.text("at").unwrap_or_default()
        );
        for (indent, name) in [(2, "methods"), (9, "qmd")] {
            for line in fields.text(name).unwrap_or_default().lines() {
                let _ = write!(text, "\n{:indent$}{line}", "");
            }
        }
        text.push('\n');
        return text;
    }
    let call = fields.text("call").unwrap_or(told.metadata.name());
    let call = match fields.text("about") {
        // What these two are about says enough.
        Some(_) => call.strip_prefix("NV_ESC_").unwrap_or(call),
        None => call,
    };
    text.push_str(call);
    for (before, name) in [
        (" ", "about"),
        (" ", "made"),
        (" ", "object"),
        (" below ", "parent"),
        ("  ", "status"),
    ] {
        if let Some(field) = fields.text(name) {
            let _ = write!(text, "{before}{field}");
        }
    }
    if let Some(took) = fields.number("took_us").and_then(Value::as_f64) {
        let _ = write!(text, "  {took:.1} us");
    }
    for (before, name) in [("", "params"), ("-> ", "changed")] {
        if let Some(field) = fields.text(name) {
            let _ = write!(text, "\n{:>17}{before}{field}", "");
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_shown() {
        let wanted = |text: &str| text.parse::<Wanted>();
        let [calls, streams, json] =
            [(1, 0, 0), (0, 1, 0), (1, 0, 1)].map(|(calls, streams, json)| Wanted {
                calls: calls == 1,
                streams: streams == 1,
                json: json == 1,
                ioctls: false,
            });
        for off in ["", "0"] {
            assert_eq!(wanted(off), Ok(Wanted::default()), "{off:?}");
        }
        assert_eq!(wanted("1"), Ok(calls));
        assert_eq!(wanted("calls"), Ok(calls));
        assert_eq!(wanted("stream"), Ok(streams));
        assert_eq!(wanted("json"), Ok(json));
        assert_eq!(
            wanted("json, stream"),
            Ok(Wanted {
                json: true,
                ..streams
            })
        );
        assert_eq!(
            wanted("1,stream"),
            Ok(Wanted {
                streams: true,
                ..calls
            })
        );
        assert_eq!(
            wanted("ioctl"),
            Ok(Wanted {
                ioctls: true,
                ..calls
            })
        );
        for wrong in ["yes", "2", "0,json", "calls;stream"] {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }
}
