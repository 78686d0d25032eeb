//! `nv push dump`.

use nv_proto::pretty::{Data, FieldText, Line, MethodLine, lines};
use nv_proto::qmd::Qmd;
use serde_json::{Map, Value, json};

use super::paint::{Ink, Paper};
use super::source::Stream;
use super::{Reading, class_text};
use crate::exit::Failure;

/// Writes the streams as text: one line a method, launch descriptors below the line that carries them.
pub fn text(
    paper: &mut Paper<'_>,
    streams: &[Stream],
    reading: &Reading,
    all: bool,
) -> Result<(), Failure> {
    let mut broken = Vec::new();
    for stream in streams {
        if streams.len() > 1 {
            paper.line(paper.ink(Ink::Strong, format_args!("# {}", stream.name)))?;
        }
        for line in lines(&stream.words, reading.bindings(stream)) {
            match line {
                Ok(Line::Method(line)) => method(paper, &line, all)?,
                Ok(line) => paper.line(paper.ink(Ink::Dim, line))?,
                Err(error) => broken.push(format!("{}: {error}", stream.name)),
            }
        }
    }
    paper.finish()?;
    malformed(broken)
}

/// The malformed header of each stream that has one ends the command without success.
fn malformed(broken: Vec<String>) -> Result<(), Failure> {
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Failure::BadInput(broken.join("\n    ")))
    }
}

/// One line for a method, and what its data is.
pub fn method(paper: &mut Paper<'_>, line: &MethodLine<'_>, all: bool) -> Result<(), Failure> {
    let class = line.class.map_or_else(|| "?".to_owned(), class_text);
    let frame = format!("{:>6} {} {class:<26}", line.offset, line.subchannel);
    let name = name(line);
    let mut text = format!(
        "{} {}",
        paper.ink(Ink::Dim, frame),
        paper.ink(Ink::Strong, name)
    );
    match (line.data.single(), line.data.words()) {
        (Some(word), _) => text.push_str(&format!(" {word:#010x}")),
        (None, words) => text.push_str(&format!(" {} words", words.len())),
    }
    for field in shown(line, all) {
        let value = field
            .name
            .map_or_else(|| format!("{:#x}", field.value), str::to_owned);
        text.push_str(&format!(
            " {}={value}",
            paper.ink(Ink::Name, field.field.spec.name)
        ));
    }
    paper.line(text)?;
    if line.data.single().is_some() {
        return Ok(());
    }
    if let Some(qmd) = descriptor(line) {
        for field in qmd.to_string().lines() {
            paper.line(format_args!("         {field}"))?;
        }
        return Ok(());
    }
    for (row, words) in line.data.words().chunks(8).enumerate() {
        let words: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
        let at = format!("         {:>#6x}:", row * 32);
        paper.line(format_args!(
            "{} {}",
            paper.ink(Ink::Dim, at),
            words.join(" ")
        ))?;
    }
    Ok(())
}

fn shown(line: &MethodLine<'_>, all: bool) -> Vec<FieldText> {
    if all {
        line.all_fields().collect()
    } else {
        line.fields().collect()
    }
}

/// The method's name, or its address where it has none.
pub fn name(line: &MethodLine<'_>) -> String {
    line.named
        .map_or_else(|| line.method.to_string(), |named| named.to_string())
}

/// The launch descriptor that a run of inline data is, going by its length and the version in it.
pub fn descriptor(line: &MethodLine<'_>) -> Option<Qmd> {
    let inline = ["LOAD_INLINE_DATA", "LOAD_INLINE_QMD_DATA"];
    let words = line.data.words();
    let qmd = Qmd::decode(words).ok()?;
    (inline.contains(&line.named?.info.name) && words.len() == qmd.version().words()).then_some(qmd)
}

/// Writes the streams as one JSON document.
pub fn json(paper: &mut Paper<'_>, streams: &[Stream], reading: &Reading) -> Result<(), Failure> {
    let mut broken = Vec::new();
    let mut documents = Vec::new();
    for stream in streams {
        let mut entries = Vec::new();
        let mut error = Value::Null;
        for line in lines(&stream.words, reading.bindings(stream)) {
            match line {
                Ok(line) => entries.push(entry(&line)),
                Err(found) => {
                    error = found.to_string().into();
                    broken.push(format!("{}: {found}", stream.name));
                }
            }
        }
        documents.push(json!({ "name": stream.name, "lines": entries, "error": error }));
    }
    paper.line(json!({ "streams": documents }))?;
    paper.finish()?;
    malformed(broken)
}

/// One line as JSON.
pub fn entry(line: &Line<'_>) -> Value {
    let line = match line {
        Line::Method(line) => line,
        Line::Header { offset, .. } => {
            let text = line.to_string();
            let header = text
                .split_once(" - ")
                .map_or(text.as_str(), |(_, header)| header);
            return json!({ "offset": offset, "header": header });
        }
    };
    let data = match line.data {
        Data::Immediate(word) => vec![word],
        Data::Words(words) => words.to_vec(),
    };
    let mut entry = json!({
        "offset": line.offset,
        "op": line.op.map_or_else(|| "IMMD_DATA_METHOD".to_owned(), |op| op.to_string()),
        "subchannel": line.subchannel.number(),
        "class": line.class.map(class_text),
        "method": line.method.bytes(),
        "name": line.named.map(|named| named.info.name),
        "data": data,
    });
    if let Some(members) = entry.as_object_mut() {
        if let Some(index) = line.named.and_then(|named| named.index) {
            members.insert("index".to_owned(), index.into());
        }
        let fields: Map<String, Value> = line
            .all_fields()
            .map(|field| {
                let value = json!({ "value": field.value, "name": field.name });
                (field.field.spec.name.to_owned(), value)
            })
            .collect();
        if !fields.is_empty() {
            members.insert("fields".to_owned(), fields.into());
        }
        if let Some(qmd) = descriptor(line) {
            let fields: Vec<Value> = qmd
                .fields()
                .map(|value| json!({ "name": value.field.name, "index": value.index, "value": value.raw }))
                .collect();
            let qmd = json!({ "version": qmd.version().to_string(), "fields": fields });
            members.insert("qmd".to_owned(), qmd);
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use nv_proto::push::{Header, PushWriter, Subchannel, compute, host};
    use nv_proto::qmd::Version;
    use nv_proto::unit::GpuVa;

    use super::super::{Format, GenerationArg};
    use super::*;

    const HOPPER: Reading = Reading {
        format: Format::Auto,
        stream: None,
        generation: Some(GenerationArg::Hopper),
    };

    fn stream() -> Stream {
        let qmd = Qmd::new(Version::V04_00);
        let mut descriptor = [0; 96];
        qmd.encode_into(&mut descriptor).unwrap();
        let mut buffer = [0; 128];
        let mut push = PushWriter::new(&mut buffer);
        push.write(Subchannel::HOST, &host::SemAcquire::geq(GpuVa(0x1000), 7))
            .unwrap();
        compute::upload(&mut push, Subchannel::COMPUTE, GpuVa(0x2000), 6, &[1, 2]).unwrap();
        compute::inline_qmd(&mut push, Subchannel::COMPUTE, GpuVa(0x3000), &descriptor).unwrap();
        push.header(&Header::NOP).unwrap();
        Stream {
            name: "made here".to_owned(),
            words: push.finish().to_vec(),
            compute_class: None,
        }
    }

    fn shown(colours: bool, all: bool) -> String {
        let mut out = Vec::new();
        let mut paper = Paper::new(&mut out, colours);
        text(&mut paper, &[stream()], &HOPPER, all).unwrap();
        drop(paper);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_names_everything() {
        let text = shown(false, false);
        for line in [
            "     5 0 HOPPER_CHANNEL_GPFIFO_A    SEM_EXECUTE 0x01000003 OPERATION=ACQ_CIRC_GEQ PAYLOAD_SIZE=64BIT",
            "    15 1 HOPPER_COMPUTE_A           LOAD_INLINE_DATA 2 words",
            "            0x0: 00000001 00000002",
            "    18 1 HOPPER_COMPUTE_A           SET_INLINE_QMD_ADDRESS_A 0x40000000 INLINE_SIZE=INLINE_384",
            "   117 - NOP",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nis not in\n{text}"
            );
        }
        assert!(!text.contains('\u{1b}'));
        assert!(shown(true, false).contains("\u{1b}[1mSEM_EXECUTE\u{1b}[0m"));
        assert!(
            shown(false, true)
                .contains("SEM_EXECUTE 0x01000003 OPERATION=ACQ_CIRC_GEQ ACQUIRE_SWITCH_TSG=DIS")
        );
    }

    #[test]
    fn json_holds_everything() {
        let mut out = Vec::new();
        let mut paper = Paper::new(&mut out, false);
        json(&mut paper, &[stream()], &HOPPER).unwrap();
        drop(paper);
        let json: Value = serde_json::from_slice(&out).unwrap();
        let lines = json["streams"][0]["lines"].as_array().unwrap();
        let execute = &lines[4];
        assert_eq!(execute["name"], "SEM_EXECUTE");
        assert_eq!(
            execute["fields"]["OPERATION"],
            json!({ "value": 3, "name": "ACQ_CIRC_GEQ" })
        );
        assert_eq!(execute["data"], json!([0x0100_0003]));
        assert_eq!(
            lines.last().unwrap(),
            &json!({ "offset": 117, "header": "NOP" })
        );
    }

    #[test]
    fn a_malformed_header_ends_without_success() {
        let broken = Stream {
            words: vec![0, 6 << 29],
            ..stream()
        };
        let mut out = Vec::new();
        let error = text(&mut Paper::new(&mut out, false), &[broken], &HOPPER, false).unwrap_err();
        let Failure::BadInput(what) = error else {
            panic!("{error:?}")
        };
        assert!(
            what.contains("made here") && what.contains("0xc0000000") && what.contains("0x4"),
            "{what}"
        );
        assert!(
            String::from_utf8(out).unwrap().contains("NOP"),
            "what came before is shown"
        );
    }

    #[test]
    fn descriptors_are_seen_in_uploads() {
        let mut descriptor = [0; 96];
        Qmd::new(Version::V04_00)
            .encode_into(&mut descriptor)
            .unwrap();
        let mut buffer = [0; 128];
        let mut push = PushWriter::new(&mut buffer);
        compute::upload(
            &mut push,
            Subchannel::COMPUTE,
            GpuVa(0x2000),
            384,
            &descriptor,
        )
        .unwrap();
        let words = push.finish().to_vec();
        let stream = Stream { words, ..stream() };
        let mut out = Vec::new();
        text(&mut Paper::new(&mut out, false), &[stream], &HOPPER, false).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("         QMD 4.0\n           QMD_MAJOR_VERSION = 0x4\n"),
            "{text}"
        );
    }
}
