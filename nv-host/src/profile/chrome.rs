//! A recording in the trace event format ("Trace Event Format", the JSON object form), as trace viewers open it.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use super::{Kind, Record, Recording};

/// The two processes that a viewer shows: what ran on the GPU, and the submissions on the CPU.
pub(super) const GPU: u32 = 1;
pub(super) const CPU: u32 = 2;

/// The whole document.
pub(super) fn trace(recording: &Recording) -> String {
    let mut events = Vec::new();
    let gpu = format!("GPU: {}", recording.device());
    for (process, name) in [(GPU, gpu.as_str()), (CPU, "CPU: submissions")] {
        events.push(format!(
            r#"{{"ph":"M","pid":{process},"tid":0,"name":"process_name","args":{{"name":{}}}}}"#,
            Quoted(name)
        ));
        for stream in recording.streams() {
            let thread = thread(stream);
            events.push(format!(
                r#"{{"ph":"M","pid":{process},"tid":{thread},"name":"thread_name","args":{{"name":"stream {stream}"}}}}"#,
            ));
        }
    }
    for (id, record) in recording.records().iter().enumerate() {
        events.extend(record_events(id, record));
    }
    let clock = recording.clock();
    let mut other = format!(r#""clock_error_us":{}"#, Micros(clock.error));
    if let Some(drift) = clock.drift_ppm {
        let _ = write!(other, r#","clock_drift_ppm":{drift:.3}"#);
    }
    let lost = recording.lost();
    let _ = write!(
        other,
        r#","lost_full":{},"lost_unfinished":{}"#,
        lost.full, lost.unfinished
    );
    let events = events.join(",\n");
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{{other}}},\"traceEvents\":[\n{events}\n]}}\n"
    )
}

/// The work, its submission, and the arrow from one to the other.
fn record_events(id: usize, record: &Record) -> [String; 4] {
    let (category, about) = match record.kind {
        Kind::Launch { grid, block } => ("kernel", format!(r#""grid":"{grid}","block":"{block}""#)),
        Kind::Chain { launches } => ("kernel", format!(r#""launches":{launches}"#)),
        Kind::Copy { bytes } => ("copy", format!(r#""bytes":{bytes}"#)),
        Kind::Wait => ("wait", String::new()),
    };
    let (name, thread) = (Quoted(record.name()), thread(record.stream));
    let (start, submitted) = (Micros(record.start), Micros(record.submitted));
    let (took, submitting) = (Micros(record.duration()), Micros(record.submitting));
    [
        format!(
            r#"{{"ph":"X","pid":{GPU},"tid":{thread},"cat":"{category}","name":{name},"ts":{start},"dur":{took},"args":{{{about}}}}}"#
        ),
        format!(
            r#"{{"ph":"X","pid":{CPU},"tid":{thread},"cat":"submit","name":{name},"ts":{submitted},"dur":{submitting},"args":{{}}}}"#
        ),
        format!(
            r#"{{"ph":"s","pid":{CPU},"tid":{thread},"cat":"submit","name":"submit","id":{id},"ts":{submitted}}}"#
        ),
        format!(
            r#"{{"ph":"f","bp":"e","pid":{GPU},"tid":{thread},"cat":"submit","name":"submit","id":{id},"ts":{start}}}"#
        ),
    ]
}

/// A stream's thread: 0 is the process itself.
fn thread(stream: u64) -> u64 {
    stream.saturating_add(1)
}

/// A time in microseconds, as the format wants it, to the nanosecond.
struct Micros(Duration);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        write!(f, "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
    }
}

/// A string of JSON.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                letter if letter.is_control() => write!(f, "\\u{:04x}", u32::from(letter))?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}
