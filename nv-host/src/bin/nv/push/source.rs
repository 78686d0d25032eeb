//! Where the words come from: files of raw words, hex text, and captures as JSON.

use std::path::Path;

use nv_proto::push::{MethodAddr, PushWriter, RunOp, Subchannel};
use nv_proto::unit::ClassId;
use serde_json::Value;

use super::Format;
use crate::exit::Failure;
use crate::input;

/// Words with what is known of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stream {
    /// Its name in the file, or that of the file.
    pub name: String,
    /// The words.
    pub words: Vec<u32>,
    /// The compute class of the GPU that the file says it was captured on.
    pub compute_class: Option<ClassId>,
}

/// The streams of a file: all, or the one named.
pub fn read(path: &Path, format: Format, name: Option<&str>) -> Result<Vec<Stream>, Failure> {
    let bytes = input::read(path)?;
    let file = path.display().to_string();
    let bad = |what: String| Failure::BadInput(format!("{file}: {what}"));
    let format = match format {
        Format::Auto => guess(&bytes),
        given => given,
    };
    let alone = |words| Stream {
        name: file.clone(),
        words,
        compute_class: None,
    };
    let mut streams = match format {
        Format::Words | Format::Auto => vec![alone(raw(&bytes).map_err(bad)?)],
        Format::Hex => vec![alone(hex(&bytes).map_err(bad)?)],
        Format::Json => {
            let json: Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
            let mut found = Vec::new();
            collect(&json, "", &mut found).map_err(bad)?;
            let compute_class = json.get("gpu").and_then(Value::as_str).and_then(class_of);
            for stream in &mut found {
                stream.compute_class = stream.compute_class.or(compute_class);
                if stream.name.is_empty() {
                    stream.name.clone_from(&file);
                }
            }
            found
        }
    };
    if let Some(name) = name {
        let there: Vec<String> = streams.iter().map(|stream| stream.name.clone()).collect();
        streams
            .retain(|stream| stream.name == name || stream.name.rsplit('/').next() == Some(name));
        if streams.is_empty() {
            return Err(bad(format!(
                "no stream {name}; there are: {}",
                there.join(", ")
            )));
        }
    }
    if streams.is_empty() {
        return Err(bad(
            "holds no stream: an object with `words`, `methods` or `stream`".to_owned(),
        ));
    }
    Ok(streams)
}

/// The one stream of a file.
pub fn one(path: &Path, format: Format, name: Option<&str>) -> Result<Stream, Failure> {
    let mut streams = read(path, format, name)?;
    let names: Vec<String> = streams.iter().map(|stream| stream.name.clone()).collect();
    match (streams.pop(), streams.is_empty()) {
        (Some(stream), true) => Ok(stream),
        _ => Err(Failure::BadInput(format!(
            "{}: name one of its streams with --stream: {}",
            path.display(),
            names.join(", ")
        ))),
    }
}

fn guess(bytes: &[u8]) -> Format {
    let text = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(text, Some(b'{' | b'[')) && serde_json::from_slice::<Value>(bytes).is_ok() {
        return Format::Json;
    }
    // Words seldom are text by accident: their small numbers have zero bytes.
    if hex(bytes).is_ok() {
        Format::Hex
    } else {
        Format::Words
    }
}

fn raw(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!(
            "{} bytes are no whole number of 32-bit words",
            bytes.len()
        ));
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

fn hex(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is no text".to_owned())?;
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        for word in code
            .split([' ', '\t', '\r', ','])
            .filter(|word| !word.is_empty())
        {
            let digits = word
                .strip_prefix("0x")
                .or(word.strip_prefix("0X"))
                .unwrap_or(word);
            let word = u32::from_str_radix(digits, 16).map_err(|_| {
                format!(
                    "line {}: {word:?} is no 32-bit hexadecimal word",
                    number + 1
                )
            })?;
            words.push(word);
        }
    }
    Ok(words)
}

/// `gpu` texts of captures say `compute class 0xcbc0`.
fn class_of(text: &str) -> Option<ClassId> {
    let digits = text.split("compute class 0x").nth(1)?;
    let end = digits
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    u32::from_str_radix(digits.get(..end)?, 16)
        .ok()
        .map(ClassId)
}

/// Every stream in a JSON value, named by the way to it.
fn collect(json: &Value, path: &str, found: &mut Vec<Stream>) -> Result<(), String> {
    if let Some(words) = stream_words(json).transpose() {
        let words = words.map_err(|what| format!("{path}: {what}"))?;
        found.push(Stream {
            name: path.to_owned(),
            words,
            compute_class: None,
        });
        return Ok(());
    }
    // serde_json has bounded the depth.
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}/{key}")
        }
    };
    match json {
        Value::Object(members) => {
            for (key, member) in members {
                collect(member, &below(key), found)?;
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                collect(element, &below(&index.to_string()), found)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The words of a value that is a stream: words or methods, alone or as a member.
fn stream_words(json: &Value) -> Result<Option<Vec<u32>>, String> {
    let is_method = |value: &Value| value.get("method").is_some() && value.get("data").is_some();
    match json {
        Value::Array(elements) if !elements.is_empty() && elements.iter().all(is_method) => {
            packed(elements).map(Some)
        }
        // A list of numbers is a stream at the top alone: elsewhere it can be anything.
        Value::Object(members) => {
            for key in ["words", "methods", "stream"] {
                let Some(Value::Array(elements)) = members.get(key) else {
                    continue;
                };
                return if elements.iter().all(is_method) {
                    packed(elements).map(Some)
                } else {
                    elements
                        .iter()
                        .map(word)
                        .collect::<Result<_, _>>()
                        .map(Some)
                };
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn word(value: &Value) -> Result<u32, String> {
    let number = match value {
        Value::String(text) => {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            u64::from_str_radix(digits, 16).ok()
        }
        other => other.as_u64(),
    };
    number
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| format!("{value} is no 32-bit word"))
}

/// Words of a list of methods as captures have them: operation, subchannel, method and data.
fn packed(methods: &[Value]) -> Result<Vec<u32>, String> {
    let mut words = Vec::new();
    for (index, entry) in methods.iter().enumerate() {
        let fail = |what: String| format!("method {index}: {what}");
        let data = entry["data"]
            .as_array()
            .ok_or_else(|| fail("its data is no list".to_owned()))?;
        let data = data
            .iter()
            .map(word)
            .collect::<Result<Vec<u32>, _>>()
            .map_err(fail)?;
        let op = match entry["op"].as_str().unwrap_or("INC") {
            "INC" | "INC_METHOD" => Some(RunOp::Inc),
            "NON_INC" | "NON_INC_METHOD" => Some(RunOp::NonInc),
            "ONE_INC" => Some(RunOp::OneInc),
            "IMMD" | "IMMD_DATA_METHOD" => None,
            other => return Err(fail(format!("no operation is called {other:?}"))),
        };
        let subchannel = entry.get("subchannel").or_else(|| entry.get("sub"));
        let subchannel = subchannel.map_or(Ok(0), word).map_err(fail)?;
        let subchannel = u8::try_from(subchannel).unwrap_or(u8::MAX);
        let subchannel = Subchannel::new(subchannel).map_err(|e| fail(e.to_string()))?;
        let method = word(&entry["method"]).map_err(fail)?;
        let method = u16::try_from(method).unwrap_or(u16::MAX);
        let method = MethodAddr::new(method).map_err(|e| fail(e.to_string()))?;
        let mut buffer = vec![0; data.len() + 1];
        let mut push = PushWriter::new(&mut buffer);
        match (op, data.as_slice()) {
            (Some(op), data) => push.run(op, subchannel, method, data),
            (None, [data]) => {
                push.immediate(subchannel, method, u16::try_from(*data).unwrap_or(u16::MAX))
            }
            (None, _) => return Err(fail("an immediate has one word of data".to_owned())),
        }
        .map_err(|e| fail(e.to_string()))?;
        words.extend_from_slice(push.finish());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        assert_eq!(guess(b"{\"words\": [1]}"), Format::Json);
        assert_eq!(guess(b"20012000 0000c7c0"), Format::Hex);
        assert_eq!(guess(&[0, 0x20, 1, 0x20]), Format::Words);
        assert_eq!(guess(&[0xc0, 0xcb, 0, 0]), Format::Words);
    }

    #[test]
    fn hex_text_is_read() {
        let text = b"# set up\n0x20012000, C7C0 # class\n\n7\n";
        assert_eq!(hex(text), Ok(vec![0x2001_2000, 0xc7c0, 7]));
        let error = hex(b"1 2\n3 4g").unwrap_err();
        assert_eq!(error, "line 2: \"4g\" is no 32-bit hexadecimal word");
        assert!(hex(b"123456789").is_err());
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(
            raw(&[0x17, 0, 5, 0x20, 1, 0, 0, 0]),
            Ok(vec![0x2005_0017, 1])
        );
        assert_eq!(
            raw(&[1, 2, 3, 4, 5]).unwrap_err(),
            "5 bytes are no whole number of 32-bit words"
        );
    }

    #[test]
    fn captures_are_found_wherever_they_are() {
        let json: Value = serde_json::from_str(
            r#"{"gpu": "NVIDIA H200, compute class 0xcbc0, sm_90", "streams": {
                "a": {"words": ["0x20012000", 52160], "methods": []},
                "b": {"stream": [{"op": "NON_INC", "sub": 1, "method": 436, "data": [1, 2]},
                                 {"op": "IMMD", "sub": 1, "method": 256, "data": [3]}]},
                "c": {"grid": [1, 2, 3]}}}"#,
        )
        .unwrap();
        let mut found = Vec::new();
        collect(&json, "", &mut found).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|s| (s.name.as_str(), s.words.as_slice()))
            .collect();
        assert_eq!(
            found,
            [
                ("streams/a", &[0x2001_2000, 0xcbc0][..]),
                ("streams/b", &[0x6002_206d, 1, 2, 0x8003_2040][..])
            ]
        );
        assert_eq!(
            class_of(json["gpu"].as_str().unwrap()),
            Some(ClassId(0xcbc0))
        );
        assert_eq!(class_of("a GPU"), None);
    }

    #[test]
    fn broken_captures_are_refused() {
        for (json, what) in [
            (r#"{"words": [4294967296]}"#, "4294967296 is no 32-bit word"),
            (r#"{"words": ["zz"]}"#, "\"zz\" is no 32-bit word"),
            (
                r#"{"methods": [{"op": "X", "method": 0, "data": [1]}]}"#,
                "no operation",
            ),
            (
                r#"{"methods": [{"method": 3, "data": [1]}]}"#,
                "DMA_METHOD_ADDRESS",
            ),
            (
                r#"{"methods": [{"method": 70000, "data": [1]}]}"#,
                "DMA_METHOD_ADDRESS",
            ),
            (
                r#"{"methods": [{"sub": 8, "method": 0, "data": [1]}]}"#,
                "DMA_METHOD_SUBCHANNEL",
            ),
            (
                r#"{"methods": [{"op": "IMMD", "method": 0, "data": [1, 2]}]}"#,
                "one word",
            ),
            (
                r#"{"methods": [{"op": "IMMD", "method": 0, "data": [8192]}]}"#,
                "DMA_IMMD_DATA",
            ),
        ] {
            let json: Value = serde_json::from_str(json).unwrap();
            let error = collect(&json, "", &mut Vec::new()).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
