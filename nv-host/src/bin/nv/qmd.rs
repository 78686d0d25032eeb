//! `nv qmd`: launch descriptors as named fields, and what differs between two.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use nv_proto::qmd::{Difference, FieldValue, Qmd, Release, ReleaseSize, Version};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::input;

/// Methods of the compute classes that write inline data and launch descriptors.
const OFFSET_OUT_UPPER: u64 = 0x188;
const LOAD_INLINE_DATA: u64 = 0x1b4;
const SEND_PCAS_A: u64 = 0x2b4;
/// How deep captures nest.
const MAX_DEPTH: u32 = 32;

/// Launch descriptors.
#[derive(Debug, Subcommand)]
pub enum Args {
    /// Print the named fields of each descriptor in a file.
    ///
    /// A file is raw little-endian words, hexadecimal text, or a capture: JSON with streams of methods, in which
    /// the descriptors are what a stream writes to memory and then launches.
    #[command(after_help = "Example: nv qmd dump capture.json --only coop")]
    Dump(Dump),
    /// Print the fields in which two descriptors differ. Exits with 1 when they do.
    #[command(after_help = "Example: nv qmd diff --of capture.json --only plain --only-b coop")]
    Diff(Diff),
}

/// What `dump` takes.
#[derive(Debug, clap::Args)]
pub struct Dump {
    /// The file; `-` reads standard input.
    file: PathBuf,
    /// The version, where the words do not tell it.
    #[arg(long, value_enum)]
    version: Option<Layout>,
    /// Only descriptors whose place in a capture contains this.
    #[arg(long)]
    only: Option<String>,
    /// Only this descriptor, counted from 0 over those that remain.
    #[arg(long)]
    index: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What `diff` takes.
#[derive(Debug, clap::Args)]
pub struct Diff {
    /// The first file, and the second unless `--of` names one file for both.
    #[arg(required_unless_present = "of", num_args = 2, value_names = ["FROM", "TO"])]
    files: Vec<PathBuf>,
    /// One file that holds both descriptors.
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    of: Option<PathBuf>,
    /// The version, where the words do not tell it.
    #[arg(long, value_enum)]
    version: Option<Layout>,
    /// Of the first: only descriptors whose place in a capture contains this.
    #[arg(long, value_name = "PLACE")]
    only: Option<String>,
    /// Of the second; as `--only` by default.
    #[arg(long, value_name = "PLACE")]
    only_b: Option<String>,
    /// Which descriptor of the first; the last by default.
    #[arg(long, value_name = "N")]
    index: Option<usize>,
    /// Which descriptor of the second; as `--index` by default.
    #[arg(long, value_name = "N")]
    index_b: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A version on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Layout {
    #[value(name = "2.2")]
    V02_02,
    #[value(name = "2.3")]
    V02_03,
    #[value(name = "2.4")]
    V02_04,
    #[value(name = "3.0")]
    V03_00,
    #[value(name = "4.0")]
    V04_00,
    #[value(name = "4.1")]
    V04_01,
    #[value(name = "5.0")]
    V05_00,
    #[value(name = "5.1")]
    V05_01,
}

impl From<Layout> for Version {
    fn from(layout: Layout) -> Self {
        match layout {
            Layout::V02_02 => Self::V02_02,
            Layout::V02_03 => Self::V02_03,
            Layout::V02_04 => Self::V02_04,
            Layout::V03_00 => Self::V03_00,
            Layout::V04_00 => Self::V04_00,
            Layout::V04_01 => Self::V04_01,
            Layout::V05_00 => Self::V05_00,
            Layout::V05_01 => Self::V05_01,
        }
    }
}

/// A descriptor and where it was found.
#[derive(Debug)]
struct Found {
    place: String,
    qmd: Qmd,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match args {
        Args::Dump(args) => dump(args),
        Args::Diff(args) => diff(args),
    }
}

fn dump(args: &Dump) -> Result<(), Failure> {
    let version = args.version.map(Version::from);
    let mut found = select(load(&args.file, version)?, args.only.as_deref());
    if let Some(index) = args.index {
        found = vec![pick(found, Some(index), &args.file)?];
    }
    if found.is_empty() {
        return Err(none(&args.file));
    }
    if args.json {
        let all: Vec<Value> = found.iter().map(as_json).collect();
        crate::out::text(&format!("{:#}\n", Value::from(all)))?;
    } else {
        let paint = Paint::of_stdout();
        let mut text = String::new();
        for Found { place, qmd } in &found {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{}",
                paint.head(&format!("{place}: QMD {}", qmd.version()))
            );
            for line in summary(qmd) {
                let _ = writeln!(text, "  {}", paint.dim(&format!("# {line}")));
            }
            for value in qmd.fields() {
                let line = value.to_string();
                let (name, value) = line.split_once(" = ").unwrap_or((&line, ""));
                let _ = writeln!(text, "  {} = {value}", paint.name(name));
            }
            for (word, bits) in qmd.undocumented() {
                let _ = writeln!(text, "  undocumented bits {bits:#010x} of word {word}");
            }
        }
        crate::out::text(&text)?;
    }
    Ok(())
}

fn diff(args: &Diff) -> Result<(), Failure> {
    let version = args.version.map(Version::from);
    let (a, b) = match (&args.of, args.files.as_slice()) {
        (Some(file), _) => (file, file),
        (None, [a, b]) => (a, b),
        _ => {
            return Err(Failure::BadInput(
                "two files are compared, or --of one".to_owned(),
            ));
        }
    };
    let only_b = args.only_b.as_ref().or(args.only.as_ref());
    let from = pick(
        select(load(a, version)?, args.only.as_deref()),
        args.index,
        a,
    )?;
    let to = select(load(b, version)?, only_b.map(String::as_str));
    let to = pick(to, args.index_b.or(args.index), b)?;
    let Some(difference) = from.qmd.diff(&to.qmd) else {
        return Err(Failure::BadInput(format!(
            "{} is a descriptor of version {} and {} one of {}: only descriptors of one version are compared",
            from.place,
            from.qmd.version(),
            to.place,
            to.qmd.version()
        )));
    };
    if args.json {
        let fields: Vec<Value> = difference
            .fields()
            .map(|field| difference_json(&field))
            .collect();
        let all = json!({ "from": from.place, "to": to.place, "fields": fields });
        crate::out::text(&format!("{all:#}\n"))?;
    } else {
        let paint = Paint::of_stdout();
        let mut text = format!(
            "{}\n",
            paint.head(&format!("{} -> {}", from.place, to.place))
        );
        for field in difference.fields() {
            let line = field.to_string();
            let (name, values) = line.split_once(": ").unwrap_or((&line, ""));
            let _ = writeln!(text, "  {}: {values}", paint.name(name));
        }
        if difference.is_empty() {
            text.push_str("  no difference\n");
        }
        crate::out::text(&text)?;
    }
    if difference.is_empty() {
        Ok(())
    } else {
        Err(Failure::Failed)
    }
}

/// The descriptors that `only` selects.
fn select(found: Vec<Found>, only: Option<&str>) -> Vec<Found> {
    let wanted = |found: &Found| only.is_none_or(|only| found.place.contains(only));
    found.into_iter().filter(wanted).collect()
}

/// Descriptor `index`, or the last.
fn pick(mut found: Vec<Found>, index: Option<usize>, file: &Path) -> Result<Found, Failure> {
    let count = found.len();
    match index {
        None => found.pop().ok_or_else(|| none(file)),
        Some(index) if index < count => Ok(found.swap_remove(index)),
        Some(index) => Err(Failure::BadInput(format!(
            "{}: there is no descriptor {index}, there are {count}",
            file.display()
        ))),
    }
}

fn none(file: &Path) -> Failure {
    Failure::BadInput(format!(
        "{}: no launch descriptor is in it, or none that was asked for",
        file.display()
    ))
}

/// Every descriptor in a file.
fn load(file: &Path, version: Option<Version>) -> Result<Vec<Found>, Failure> {
    let bytes = input::read(file)?;
    let fail = |text: String| Failure::BadInput(format!("{}: {text}", file.display()));
    let text = std::str::from_utf8(&bytes).ok().map(str::trim);
    match text {
        Some(text) if text.starts_with(['{', '[']) => {
            let capture = serde_json::from_str(text).map_err(|error| fail(error.to_string()))?;
            let mut found = Vec::new();
            captures(&capture, "", MAX_DEPTH, version, &mut found).map_err(fail)?;
            Ok(found)
        }
        Some(text) if is_hex(text) => words(&hex(text).map_err(fail)?, version).map_err(fail),
        _ => {
            let (chunks, rest) = bytes.as_chunks();
            if !rest.is_empty() {
                let length = bytes.len();
                return Err(fail(format!(
                    "{length} bytes are no whole words and no hexadecimal text"
                )));
            }
            let all: Vec<u32> = chunks
                .iter()
                .map(|word| u32::from_le_bytes(*word))
                .collect();
            words(&all, version).map_err(fail)
        }
    }
}

fn is_hex(text: &str) -> bool {
    let part =
        |c: char| c.is_ascii_hexdigit() || c.is_ascii_whitespace() || matches!(c, 'x' | 'X' | ',');
    !text.is_empty() && text.chars().all(part)
}

/// Words in hexadecimal: up to 8 digits are a word's number, more are bytes as they lie in memory.
fn hex(text: &str) -> Result<Vec<u32>, String> {
    let mut words = Vec::new();
    for token in text
        .split(|c: char| c.is_ascii_whitespace() || c == ',')
        .filter(|token| !token.is_empty())
    {
        let digits = token.trim_start_matches("0x").trim_start_matches("0X");
        if digits.len() <= 8 {
            let word = u32::from_str_radix(digits, 16);
            words.push(word.map_err(|_| format!("{token:?} is no hexadecimal word"))?);
            continue;
        }
        if digits.len() % 8 != 0 {
            return Err(format!(
                "{} hexadecimal digits in a row are no whole words",
                digits.len()
            ));
        }
        for at in (0..digits.len()).step_by(8) {
            let word = digits
                .get(at..at + 8)
                .and_then(|word| u32::from_str_radix(word, 16).ok());
            let word =
                word.ok_or_else(|| format!("the digits from {at} on are not hexadecimal"))?;
            words.push(word.swap_bytes());
        }
    }
    Ok(words)
}

/// Descriptors that lie one after another.
fn words(mut words: &[u32], version: Option<Version>) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    let mut at = 0;
    // Trailing zeroes are padding.
    while words.iter().any(|word| *word != 0) {
        let qmd = decode(words, version).map_err(|error| format!("word {at}: {error}"))?;
        found.push(Found {
            place: format!("word {at}"),
            qmd,
        });
        let length = qmd.version().words();
        at += length;
        words = words.get(length..).unwrap_or_default();
    }
    Ok(found)
}

fn decode(words: &[u32], version: Option<Version>) -> Result<Qmd, String> {
    let qmd = match version {
        Some(version) => Qmd::decode_as(version, words),
        None => Qmd::decode(words),
    };
    qmd.map_err(|error| format!("{error}; --version says which version the words are of"))
}

/// The descriptors in the streams of a capture: what a stream of methods writes to memory and then launches.
fn captures(
    value: &Value,
    place: &str,
    depth: u32,
    version: Option<Version>,
    found: &mut Vec<Found>,
) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("{place}: nested more than {MAX_DEPTH} deep"));
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let place = if place.is_empty() {
                    name.clone()
                } else {
                    format!("{place}.{name}")
                };
                captures(member, &place, depth, version, found)?;
            }
        }
        Value::Array(items) if items.iter().any(|item| item.get("method").is_some()) => {
            stream(items, place, version, found)?;
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                captures(item, &format!("{place}[{index}]"), depth, version, found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The descriptors of one stream.
fn stream(
    methods: &[Value],
    place: &str,
    version: Option<Version>,
    found: &mut Vec<Found>,
) -> Result<(), String> {
    let mut va = 0;
    let mut written: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (index, method) in methods.iter().enumerate() {
        let data = method
            .get("data")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let data: Option<Vec<u32>> = data
            .iter()
            .map(|word| word.as_u64().and_then(|word| u32::try_from(word).ok()))
            .collect();
        let data = data.ok_or_else(|| format!("{place}[{index}]: data that are no words"))?;
        match (
            method.get("method").and_then(Value::as_u64),
            data.as_slice(),
        ) {
            (Some(OFFSET_OUT_UPPER), [upper, lower, ..]) => {
                va = u64::from(*upper) << 32 | u64::from(*lower);
            }
            (Some(LOAD_INLINE_DATA), _) => {
                written.insert(va, data);
            }
            (Some(SEND_PCAS_A), [address, ..]) => {
                let va = u64::from(*address) << 8;
                if let Some(words) = written.remove(&va) {
                    let qmd =
                        decode(&words, version).map_err(|error| format!("{place}: {error}"))?;
                    found.push(Found {
                        place: format!("{place} at {va:#x}"),
                        qmd,
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The launch in a few lines: what many fields say together.
fn summary(qmd: &Qmd) -> Vec<String> {
    let mut lines = Vec::new();
    match qmd.launch() {
        Ok(launch) => {
            let mut text = format!(
                "grid {} block {}, program {}, {} registers, {} barriers, {} bytes shared, {} local",
                launch.grid,
                launch.block,
                launch.program,
                launch.registers,
                launch.barriers,
                launch.shared_bytes,
                launch
                    .local_low_bytes
                    .saturating_add(launch.local_high_bytes)
            );
            if launch.cluster.count() > 1 {
                let _ = write!(text, ", clusters of {}", launch.cluster);
            }
            if launch.cooperative {
                text.push_str(", cooperative");
            }
            lines.push(text);
            for (index, bank) in launch.banks.iter().enumerate() {
                if let Some((va, size)) = bank {
                    lines.push(format!("bank {index}: {size} bytes at {va}"));
                }
            }
        }
        Err(error) => match qmd.kind().name() {
            Some(kind) => lines.push(format!("no launch: {kind}")),
            None => lines.push(error.to_string()),
        },
    }
    for index in 0..3 {
        if let Some(release) = qmd.release(index) {
            let Release {
                va,
                payload,
                size,
                membar,
                reduction,
            } = release;
            let how = match size {
                ReleaseSize::Word => "32 bits",
                ReleaseSize::Double => "64 bits",
                ReleaseSize::Timestamp => "and the time",
            };
            let barrier = if membar {
                " after a memory barrier"
            } else {
                ""
            };
            let op = reduction
                .and_then(|reduction| reduction.op.name())
                .unwrap_or("store");
            lines.push(format!(
                "release {index}: {op} {payload:#x} ({how}) at {va}{barrier}"
            ));
        }
        if let Some(next) = qmd.dependent(index) {
            let action = next.action.name().unwrap_or("unknown action");
            lines.push(format!("then: {action} of the descriptor at {}", next.va));
        }
    }
    lines
}

fn field_name(name: &str, count: u32, index: u32) -> String {
    if count > 1 {
        format!("{name}[{index}]")
    } else {
        name.to_owned()
    }
}

/// A number of a field: its name, its bytes, or itself.
fn number(field: &nv_proto::qmd::FieldInfo, raw: u32) -> Value {
    match field.value_name(raw) {
        Some("TRUE") => Value::from(true),
        Some("FALSE") => Value::from(false),
        Some(name) => Value::from(name),
        None => Value::from(u64::from(raw) << field.shift),
    }
}

fn as_json(Found { place, qmd }: &Found) -> Value {
    let fields = qmd.fields().map(|FieldValue { field, index, raw }| {
        (
            field_name(field.name, field.count, index),
            number(field, raw),
        )
    });
    let fields: serde_json::Map<String, Value> = fields.collect();
    let undocumented: Vec<Value> = qmd
        .undocumented()
        .map(|(word, bits)| json!({ "word": word, "bits": bits }))
        .collect();
    let launch = qmd.launch().ok().map(|launch| {
        json!({
            "grid": [launch.grid.x, launch.grid.y, launch.grid.z],
            "block": [launch.block.x, launch.block.y, launch.block.z],
            "cluster": [launch.cluster.x, launch.cluster.y, launch.cluster.z],
            "cooperative": launch.cooperative,
            "program": launch.program.0,
        })
    });
    json!({
        "place": place,
        "version": qmd.version().to_string(),
        "launch": launch,
        "fields": fields,
        "undocumented": undocumented,
    })
}

fn difference_json(difference: &Difference) -> Value {
    let Difference {
        field,
        index,
        from,
        to,
    } = *difference;
    json!({
        "field": field_name(field.name, field.count, index),
        "from": number(field, from),
        "to": number(field, to),
    })
}

/// Colours, on a terminal only.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn of_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    fn head(self, text: &str) -> Painted<'_> {
        Painted(self.0, "1", text)
    }

    fn name(self, text: &str) -> Painted<'_> {
        Painted(self.0, "36", text)
    }

    fn dim(self, text: &str) -> Painted<'_> {
        Painted(self.0, "2", text)
    }
}

/// Text in a colour.
struct Painted<'a>(bool, &'static str, &'a str);

impl fmt::Display for Painted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(colours, code, text) = *self;
        if colours {
            write!(f, "\x1b[{code}m{text}\x1b[0m")
        } else {
            f.write_str(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_words_or_bytes() {
        assert_eq!(hex("0x40, 12345678\n1"), Ok(vec![0x40, 0x1234_5678, 1]));
        assert_eq!(hex("7856341201000000"), Ok(vec![0x1234_5678, 1]));
        assert!(hex("123456789").is_err());
        assert!(hex("0x").is_err());
        assert!(hex("12345678x2345678").is_err());
    }

    #[test]
    fn descriptors_that_follow_one_another_are_told_apart() {
        let mut words_in = [0; 64 + 96 + 5];
        Qmd::new(Version::V03_00)
            .encode_into(&mut words_in)
            .unwrap();
        Qmd::new(Version::V04_00)
            .encode_into(&mut words_in[64..])
            .unwrap();
        let found = words(&words_in, None).unwrap();
        let versions: Vec<Version> = found.iter().map(|found| found.qmd.version()).collect();
        assert_eq!(versions, [Version::V03_00, Version::V04_00]);
        assert_eq!(found[1].place, "word 64");
        words_in[164] = 1;
        assert!(
            words(&words_in, None).is_err(),
            "what is left is no descriptor"
        );
    }

    #[test]
    fn a_stream_gives_what_it_launches() {
        let mut data = [0; 96];
        Qmd::new(Version::V04_00).encode_into(&mut data).unwrap();
        let capture = json!({ "streams": { "one": [
            { "method": 0x188, "data": [2, 0x100] },
            { "method": 0x1b4, "data": data.to_vec() },
            { "method": 0x188, "data": [2, 0x800] },
            { "method": 0x1b4, "data": [1, 2, 3] },
            { "method": 0x2b4, "data": [0x0200_0001] },
        ] } });
        let mut found = Vec::new();
        captures(&capture, "", MAX_DEPTH, None, &mut found).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "streams.one at 0x200000100");
        let mut deep = json!(1);
        for _ in 0..MAX_DEPTH {
            deep = json!([deep]);
        }
        assert!(captures(&deep, "", MAX_DEPTH, None, &mut found).is_err());
    }
}
