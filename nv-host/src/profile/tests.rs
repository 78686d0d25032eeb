//! The picture and the trace of made-up recordings, taken apart again by readers that are not ours.

use std::collections::BTreeMap;

use roxmltree::Document;
use serde_json::Value;

use super::*;

fn micros(time: f64) -> Duration {
    Duration::from_nanos((time * 1e3).round() as u64)
}

fn record(name: &str, stream: u64, submitted: f64, start: f64, end: f64) -> Record {
    let (name, kind) = match name {
        "copy" => (None, Kind::Copy { bytes: 4096 }),
        "wait" => (None, Kind::Wait),
        name => {
            let (grid, block) = (Dim3::new(4, 2, 1), Dim3::from(256));
            (Some(name.into()), Kind::Launch { grid, block })
        }
    };
    Record {
        name,
        kind,
        stream,
        submitted: micros(submitted),
        submitting: micros(0.5),
        start: micros(start),
        end: micros(end),
    }
}

fn recording(records: Vec<Record>) -> Recording {
    Recording {
        records,
        lost: Lost::default(),
        clock: Clock {
            error: micros(1.25),
            drift_ppm: None,
            compared_at_end: true,
        },
        device: "A <GPU> & \"more\"".to_owned(),
    }
}

/// Two streams, a name that needs quoting in both formats, one too long for its box.
fn sample() -> Recording {
    recording(vec![
        record("copy", 0, 1.0, 3.0, 10.0),
        record("op<\"a\\b\", '&'>\u{7}", 0, 2.0, 11.0, 41.0),
        record("wait", 1, 3.0, 5.0, 41.5),
        record(
            "a_kernel_with_a_name_longer_than_its_box",
            1,
            4.0,
            42.0,
            50.0,
        ),
        record("short", 0, 44.0, 60.0, 101.0),
    ])
}

#[test]
fn summaries_add_up() {
    let mut records = sample().records;
    records.push(record("short", 1, 50.0, 60.0, 69.0));
    let recording = recording(records);
    let rows = recording.summary();
    let short = rows.iter().find(|row| row.name == "short").unwrap();
    assert_eq!((short.count, short.what), (2, What::Launch));
    assert_eq!((short.total, short.mean()), (micros(50.0), micros(25.0)));
    assert_eq!((short.min, short.max), (micros(9.0), micros(41.0)));
    assert_eq!(rows[0].name, "short");
    let count: u64 = rows.iter().map(|row| row.count).sum();
    assert_eq!(count, 6);
    assert_eq!(rows.iter().map(|row| row.bytes).sum::<u64>(), 4096);
}

/// What the trace event format asks of each phase, and what viewers trip over: events without their fields, threads
/// without names, slices of one thread that overlap, arrows that begin or end outside a slice.
pub(crate) fn check_trace(text: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(trace["displayTimeUnit"], "ns");
    let events = trace["traceEvents"].as_array().expect("events").clone();
    let place = |event: &Value| {
        (
            event["pid"].as_u64().unwrap(),
            event["tid"].as_u64().unwrap(),
        )
    };
    let mut named = BTreeMap::new();
    let mut slices: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    let mut arrows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in &events {
        let phase = event["ph"].as_str().expect("a phase");
        assert!(event["name"].is_string(), "{event}");
        match phase {
            "M" => {
                assert!(["process_name", "thread_name"].contains(&event["name"].as_str().unwrap()));
                assert!(event["args"]["name"].is_string());
                named.insert((place(event), event["name"].to_string()), ());
            }
            "X" => {
                let (at, took) = (
                    event["ts"].as_f64().unwrap(),
                    event["dur"].as_f64().unwrap(),
                );
                assert!(at >= 0.0 && took >= 0.0 && event["cat"].is_string());
                slices
                    .entry(place(event))
                    .or_default()
                    .push((at, at + took));
            }
            "s" | "f" => arrows
                .entry(event["id"].as_u64().expect("an id"))
                .or_default()
                .push(phase),
            other => panic!("{other} is no phase that is written"),
        }
    }
    for (place, slices) in &mut slices {
        assert!(
            named.contains_key(&(*place, "\"thread_name\"".to_owned())),
            "{place:?}"
        );
        assert!(named.contains_key(&((place.0, 0), "\"process_name\"".to_owned())));
        slices.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in slices.windows(2) {
            assert!(pair[0].1 <= pair[1].0 + 1e-6, "{place:?}: {pair:?} overlap");
        }
    }
    for event in &events {
        if ["s", "f"].contains(&event["ph"].as_str().unwrap()) {
            let at = event["ts"].as_f64().unwrap();
            assert!(
                slices[&place(event)]
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&at)),
                "{event}"
            );
        }
    }
    assert!(
        arrows.values().all(|ends| *ends == ["s", "f"]),
        "{arrows:?}"
    );
    events
}

#[test]
fn the_trace_keeps_the_formats_rules_and_the_records() {
    let recording = sample();
    let events = check_trace(&recording.chrome_trace());
    let gpu: Vec<&Value> = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["pid"] == chrome::GPU)
        .collect();
    assert_eq!(gpu.len(), recording.records().len());
    for (event, record) in gpu.iter().zip(recording.records()) {
        assert_eq!(event["name"], record.name());
        assert_eq!(
            event["ts"].as_f64().unwrap(),
            record.start.as_nanos() as f64 / 1e3
        );
        assert_eq!(
            event["dur"].as_f64().unwrap(),
            record.duration().as_nanos() as f64 / 1e3
        );
        assert_eq!(event["tid"], record.stream + 1);
    }
    assert_eq!(gpu[0]["args"]["bytes"], 4096);
    assert_eq!(gpu[1]["args"]["grid"], "4x2x1");
}

#[test]
fn a_recording_of_nothing_is_a_trace_and_a_picture() {
    let nothing = recording(Vec::new());
    assert_eq!(check_trace(&nothing.chrome_trace()).len(), 2);
    Document::parse(&nothing.svg()).unwrap();
}

fn number(node: roxmltree::Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name)
        .and_then(|text| text.parse().ok())
        .unwrap()
}

/// The boxes of the picture, top to bottom and left to right: left, top, width, records.
fn boxes(document: &Document<'_>) -> Vec<(f64, f64, f64, u64)> {
    let mut boxes: Vec<_> = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("box"))
        .map(|node| {
            let records = number(node, "data-records") as u64;
            (
                number(node, "x"),
                number(node, "y"),
                number(node, "width"),
                records,
            )
        })
        .collect();
    boxes.sort_by(|a, b| (a.1, a.0).partial_cmp(&(b.1, b.0)).unwrap());
    boxes
}

#[test]
fn boxes_lie_where_the_records_say() {
    let recording = sample();
    let svg = recording.svg();
    let document = Document::parse(&svg).expect("well-formed");
    let mut records: Vec<&Record> = recording.records().iter().collect();
    records.sort_by_key(|record| (record.stream, record.start));
    let boxes = boxes(&document);
    assert_eq!(boxes.len(), records.len());
    // All of time is 100 us wide: from the first submission at 1 to the last end at 101.
    let scale = (svg::RIGHT - svg::LEFT) / 100e3;
    for ((x, _, width, count), record) in boxes.iter().zip(&records) {
        let left = svg::LEFT + (record.start.as_nanos() as f64 - 1e3) * scale;
        assert!((x - left).abs() < 0.01, "{record:?} at {x}, not {left}");
        assert!((width - record.duration().as_nanos() as f64 * scale).abs() < 0.01);
        assert_eq!(*count, 1);
    }
    let lanes: std::collections::BTreeSet<u64> = boxes.iter().map(|(_, y, ..)| *y as u64).collect();
    assert_eq!(lanes.len(), 2);
}

#[test]
fn no_two_labels_overlap_and_none_leaves_the_picture() {
    let mut records = sample().records;
    // A crowd of boxes of all widths.
    let mut at = 110.0;
    for width in 0..60 {
        records.push(record("crowded", 0, at, at, at + f64::from(width) * 0.3));
        at += f64::from(width) * 0.3;
    }
    for recording in [
        sample(),
        recording(records),
        recording(vec![record("x", 7, 1e7, 1e7, 1e7)]),
    ] {
        let svg = recording.svg();
        let document = Document::parse(&svg).unwrap();
        let texts: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| {
                let letters = node.text().unwrap_or("").chars().count() as f64;
                (
                    number(node, "x"),
                    number(node, "y"),
                    letters * svg::LETTER,
                    node.text(),
                )
            })
            .collect();
        assert!(texts.len() > 2);
        for (index, (x, y, width, words)) in texts.iter().enumerate() {
            assert!(
                *x >= 0.0 && x + width <= svg::WIDTH,
                "{words:?} leaves the picture"
            );
            for (other_x, other_y, other_width, other) in &texts[index + 1..] {
                let apart = (y - other_y).abs() >= 12.0
                    || x + width <= *other_x
                    || other_x + other_width <= *x;
                assert!(apart, "{words:?} and {other:?} overlap");
            }
        }
    }
}

#[test]
fn many_thin_records_become_few_boxes_that_count_them_all() {
    let launches = 50_000;
    let records = (0..launches)
        .map(|launch| {
            let at = f64::from(launch) * 2.0;
            record("tiny", 3, at, at, at + 1.0)
        })
        .collect();
    let svg = recording(records).svg();
    assert!(svg.len() < 1 << 20, "{} bytes", svg.len());
    let document = Document::parse(&svg).unwrap();
    let boxes = boxes(&document);
    assert!(boxes.len() > 100);
    let counted: u64 = boxes.iter().map(|(.., count)| count).sum();
    assert_eq!(counted, launches as u64);
}

#[test]
fn what_is_lost_is_said() {
    let mut recording = sample();
    assert_eq!(recording.lost().to_string(), "no record is lost");
    recording.lost = Lost {
        full: 3,
        unfinished: 1,
    };
    let said = recording.lost().to_string();
    assert!(
        said.contains("3 records") && said.contains("1 submissions"),
        "{said}"
    );
    assert!(recording.svg().contains(&said));
    let trace: Value = serde_json::from_str(&recording.chrome_trace()).unwrap();
    assert_eq!(trace["otherData"]["lost_full"], 3);
    assert_eq!(trace["otherData"]["lost_unfinished"], 1);
}
