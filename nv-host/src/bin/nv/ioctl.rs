//! `nv ioctl decode`: captured calls of a driver, named.

use std::path::{Path, PathBuf};

use nv_proto::rm::{self, Described, DriverVersion, Shape};
use nv_proto::unit::ClassId;
use nv_proto::uvm;
use serde::Serialize;
use serde_json::Value;

use crate::exit::Failure;
use crate::out;

/// Arguments of `nv ioctl`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Name captured calls: a recording in JSON, or lines with an ioctl number, as hexadecimal or as strace
    /// prints it, and then the parameters' bytes as hexadecimal, if they were captured.
    Decode(Decode),
}

#[derive(Debug, clap::Args)]
struct Decode {
    /// The capture; `-` is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The driver's release, which decides the layouts.
    #[arg(long, default_value = "580.159.04")]
    driver: DriverVersion,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One call, decoded.
#[derive(Debug, Default, Eq, PartialEq, Serialize)]
struct Call {
    /// The call's name.
    name: String,
    /// What the call is about: a class or a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// The parameters, as they went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<String>,
    /// The parameters that came back otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Decode(args) = &args.command;
    let text = read(&args.file)?;
    let calls = decode(&text, args.driver).map_err(Failure::BadInput)?;
    if args.json {
        return out::json(&calls);
    }
    let lines: Vec<String> = calls.iter().flat_map(lines).collect();
    out::text(&lines.concat())
}

fn lines(call: &Call) -> impl Iterator<Item = String> {
    let about = call
        .about
        .as_deref()
        .map_or_else(String::new, |about| format!(" {about}"));
    let first = format!("{}{about}\n", call.name);
    let params = call.params.iter().map(|params| format!("    {params}\n"));
    let changed = call
        .changed
        .iter()
        .map(|changed| format!("    -> {changed}\n"));
    std::iter::once(first).chain(params).chain(changed)
}

fn read(file: &Path) -> Result<String, Failure> {
    let fail = |error| Failure::BadInput(format!("{}: {error}", file.display()));
    String::from_utf8(crate::input::read(file)?).map_err(fail)
}

fn decode(text: &str, version: DriverVersion) -> Result<Vec<Call>, String> {
    if !text.trim_start().starts_with('{') {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let call = |(at, line)| {
            from_line(line, version)
                .ok_or_else(|| format!("line {}: there is no ioctl number in {line:?}", at + 1))
        };
        return lines.map(call).collect();
    }
    let recording: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let calls = recording["calls"]
        .as_array()
        .ok_or("the recording holds no `calls`")?;
    let call = |(at, record)| {
        from_record(record, version).ok_or_else(|| format!("call {at} has no ioctl number"))
    };
    calls.iter().enumerate().map(call).collect()
}

/// A line: an ioctl number, and perhaps bytes.
fn from_line(line: &str, version: DriverVersion) -> Option<Call> {
    let (request, rest) = match line.split_once("_IOC(") {
        // `_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20)`
        Some((_, rest)) => {
            let (inside, rest) = rest.split_once(')')?;
            let mut parts = inside.split(',').skip(1).map(|part| number(part.trim()));
            let (magic, escape, size) = (parts.next()??, parts.next()??, parts.next()??);
            let request = rm::request(u8::try_from(escape).ok()?, usize::try_from(size).ok()?)?;
            (u32::from(b'F') == magic).then_some((request, rest))?
        }
        None => {
            let word = line
                .split([' ', ',', '(', ')'])
                .find(|word| number(word).is_some())?;
            let at = line.find(word)?;
            (number(word)?, line.get(at + word.len()..)?)
        }
    };
    let bytes = rest.split_whitespace().find_map(bytes).unwrap_or_default();
    Some(decoded(request, None, None, &bytes, &[], version))
}

/// A call of a recording.
fn from_record(record: &Value, version: DriverVersion) -> Option<Call> {
    let text = |field: &str| record[field].as_str();
    let field = |name| text(name).and_then(bytes).unwrap_or_default();
    let request = text("request").and_then(number)?;
    let (class, command) = (
        text("class").and_then(number),
        text("command").and_then(number),
    );
    let (before, after) = (field("params_in"), field("params_out"));
    let mut call = decoded(request, class, command, &before, &after, version);
    // The result lies in the call's own structure, where parameters have one of theirs.
    let own = field("call_out");
    let shape =
        rm::parse_request(request).and_then(|(escape, size)| rm::escape_shape(escape, size));
    if let (Some(shape), false) = (shape, own.is_empty()) {
        let kept = ["hObjectNew", "status"];
        let own = Described::new(shape, &own);
        let own = own
            .fields()
            .filter(|value| kept.contains(&value.field.name) && !value.is_zero());
        call.changed
            .extend(own.map(|value| format!("{}={value}", value.field.name)));
    }
    Some(call)
}

fn decoded(
    request: u32,
    class: Option<u32>,
    command: Option<u32>,
    before: &[u8],
    after: &[u8],
    version: DriverVersion,
) -> Call {
    let (name, about, shape) = named(request, class, command, version);
    let params = shape.filter(|_| !before.is_empty());
    Call {
        name,
        about,
        params: params.map(|shape| cut(shape, before, version).to_string()),
        changed: params
            .map(|shape| changes(shape, before, after, version))
            .unwrap_or_default(),
    }
}

/// A call's name, what it is about, and its parameters' structure: of an allocation by its class and of a control
/// call by its command what they point at, of any other its own.
pub fn named(
    request: u32,
    class: Option<u32>,
    command: Option<u32>,
    version: DriverVersion,
) -> (String, Option<String>, Option<Shape>) {
    let (name, shape) = match rm::parse_request(request) {
        Some((escape, size)) => {
            let name = rm::names::escape(escape)
                .map_or_else(|| format!("escape {escape:#x}"), str::to_owned);
            (name, rm::escape_shape(escape, size))
        }
        None => {
            let name =
                uvm::name(request).map_or_else(|| format!("ioctl {request:#x}"), str::to_owned);
            (name, uvm::shape(request, version))
        }
    };
    let named = |name: Option<&str>, number: u32| {
        name.map_or_else(|| format!("{number:#x}"), str::to_owned)
    };
    match (class, command) {
        (Some(class), _) => {
            let class = ClassId(class);
            let about = named(rm::names::class(class), class.0);
            (name, Some(about), rm::alloc_shape(class, version))
        }
        (None, Some(command)) => {
            let about = named(rm::names::command(command), command);
            (name, Some(about), rm::control_shape(command))
        }
        (None, None) => (name, None, shape),
    }
}

/// Bytes past the structure's end in this release are noise of the capture.
pub fn cut(shape: Shape, bytes: &[u8], version: DriverVersion) -> Described<'_> {
    let size = match shape.size(version) {
        0 => shape.full,
        size => size,
    };
    Described::new(shape, bytes.get(..size).unwrap_or(bytes))
}

fn changes(shape: Shape, before: &[u8], after: &[u8], version: DriverVersion) -> Vec<String> {
    let (before, after) = (cut(shape, before, version), cut(shape, after, version));
    let pairs = before.fields().zip(after.fields());
    let changed = pairs.filter(|(old, new)| old.bytes != new.bytes);
    changed
        .map(|(_, new)| format!("{}={new}", new.field.name))
        .collect()
}

fn number(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| {
            digit
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: DriverVersion = DriverVersion::new(580, 159, 4);

    #[test]
    fn lines_are_named_in_each_spelling() {
        let name = |line: &str| decode(line, VERSION).unwrap().remove(0);
        let strace = "ioctl(3, _IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x2a, 0x20), 0x7ffd) = 0";
        assert_eq!(name(strace).name, "NV_ESC_RM_CONTROL");
        let free = name("/dev/nvidiactl 0xc0104629 3900d0c10000f0ca1800f0ca51000000");
        assert_eq!(free.name, "NV_ESC_RM_FREE");
        assert_eq!(
            free.params.unwrap(),
            "NVOS00_PARAMETERS hRoot=0xc1d00039 hObjectParent=0xcaf00000 hObjectOld=0xcaf00018 \
             status=NV_ERR_NO_MEMORY (0x51)"
        );
        assert_eq!(name("0x30000001").name, "UVM_INITIALIZE");
        assert_eq!(name("0x1").name, "UVM_RESERVE_VA");
        assert_eq!(name("0xdeadbeef").name, "ioctl 0xdeadbeef");
    }

    #[test]
    fn recordings_are_named_with_what_changed() {
        let text = r#"{"calls":[{"request":"0xc020462b","class":"0x9067",
            "params_in":"0300f0ca0100000000000000","params_out":"0300f0ca010000003f000000",
            "call_out":"3900d0c10500f0ca0900f0ca67900000a05f80435b7f00000000000000000000"}]}"#;
        let calls = decode(text, VERSION).unwrap();
        assert_eq!(
            calls,
            [Call {
                name: "NV_ESC_RM_ALLOC".into(),
                about: Some("FERMI_CONTEXT_SHARE_A".into()),
                params: Some(
                    "NV_CTXSHARE_ALLOCATION_PARAMETERS hVASpace=0xcaf00003 flags=0x1".into()
                ),
                changed: vec!["subctxId=0x3f".into(), "hObjectNew=0xcaf00009".into()],
            }]
        );
    }

    #[test]
    fn what_is_no_capture_is_an_error() {
        let error = |text: &str| decode(text, VERSION).unwrap_err();
        assert!(error("hello").contains("line 1: there is no ioctl number"));
        assert!(error("ioctl(3, _IOC(_IOC_READ, 0x45, 0x2a, 0x20))").contains("line 1"));
        assert_eq!(error("{}"), "the recording holds no `calls`");
        assert_eq!(error(r#"{"calls":[{}]}"#), "call 0 has no ioctl number");
        assert!(error("{").contains("EOF"));
        assert!(decode("", VERSION).unwrap().is_empty());
    }
}
