//! `nv push diff`.

use nv_proto::pretty::{Data, Line, MethodLine, lines};
use nv_proto::qmd::{Difference, FieldValue};
use serde_json::{Value, json};

use super::paint::{Ink, Paper};
use super::source::Stream;
use super::{Reading, class_text, dump};
use crate::exit::Failure;

/// One step from a stream to another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// Both have it, perhaps with other data: their places.
    Both(usize, usize),
    /// The first alone.
    Minus(usize),
    /// The second alone.
    Plus(usize),
}

/// Shows how two streams differ; they differ: [`Failure::Failed`].
pub fn run(
    paper: &mut Paper<'_>,
    from: &Stream,
    to: &Stream,
    reading: &Reading,
    as_json: bool,
) -> Result<(), Failure> {
    let a = methods(from, reading)?;
    let b = methods(to, reading)?;
    let steps = align(&a, &b, same_method);
    let mut document = Vec::new();
    for step in steps {
        let change = match step {
            Step::Both(i, j) => match (a.get(i), b.get(j)) {
                (Some(x), Some(y)) if x.data != y.data => Change::Data(x, y),
                _ => continue,
            },
            Step::Minus(i) => match a.get(i) {
                Some(line) => Change::Gone(line),
                None => continue,
            },
            Step::Plus(j) => match b.get(j) {
                Some(line) => Change::New(line),
                None => continue,
            },
        };
        document.push(change.json());
        if !as_json {
            change.print(paper)?;
        }
    }
    let differ = !document.is_empty();
    if as_json {
        paper.line(json!({ "from": from.name, "to": to.name, "changes": document }))?;
    }
    paper.finish()?;
    if differ { Err(Failure::Failed) } else { Ok(()) }
}

/// The method lines of a stream; a stream with a malformed header cannot be compared.
fn methods<'a>(stream: &'a Stream, reading: &Reading) -> Result<Vec<MethodLine<'a>>, Failure> {
    lines(&stream.words, reading.bindings(stream))
        .filter_map(|line| match line {
            Ok(Line::Method(line)) => Some(Ok(line)),
            Ok(Line::Header { .. }) => None,
            Err(error) => Some(Err(Failure::BadInput(format!("{}: {error}", stream.name)))),
        })
        .collect()
}

/// Runs of inline data are the same only where they are equally long: others carry something else.
fn same_method(a: &MethodLine<'_>, b: &MethodLine<'_>) -> bool {
    (a.subchannel, a.class, a.method, a.data.words().len().max(1))
        == (b.subchannel, b.class, b.method, b.data.words().len().max(1))
}

enum Change<'l, 'a> {
    Data(&'l MethodLine<'a>, &'l MethodLine<'a>),
    Gone(&'l MethodLine<'a>),
    New(&'l MethodLine<'a>),
}

impl Change<'_, '_> {
    fn print(&self, paper: &mut Paper<'_>) -> Result<(), Failure> {
        let whole = |sign, line: &MethodLine<'_>| format!("{sign} {}", Line::Method(*line));
        match self {
            Self::Gone(line) => paper.line(paper.ink(Ink::Minus, whole('-', line))),
            Self::New(line) => paper.line(paper.ink(Ink::Plus, whole('+', line))),
            Self::Data(x, y) => {
                let class = x.class.map_or_else(|| "?".to_owned(), class_text);
                let frame = format!("  {:>6} {} {class:<26}", x.offset, x.subchannel);
                let head = format!(
                    "{} {}",
                    paper.ink(Ink::Dim, frame),
                    paper.ink(Ink::Strong, dump::name(x))
                );
                let changes = changes(x, y);
                if let [(field, from, to)] = changes.as_slice() {
                    let from = paper.ink(Ink::Minus, from);
                    let to = paper.ink(Ink::Plus, to);
                    return paper.line(format_args!(
                        "{head} {}: {from} -> {to}",
                        paper.ink(Ink::Name, field)
                    ));
                }
                paper.line(head)?;
                let more = changes.len().saturating_sub(SHOWN);
                for (field, from, to) in changes.into_iter().take(SHOWN) {
                    let from = paper.ink(Ink::Minus, from);
                    let to = paper.ink(Ink::Plus, to);
                    paper.line(format_args!(
                        "           {}: {from} -> {to}",
                        paper.ink(Ink::Name, field)
                    ))?;
                }
                if more > 0 {
                    paper.line(format_args!("           and {more} more"))?;
                }
                Ok(())
            }
        }
    }

    fn json(&self) -> Value {
        let whole = |kind: &str, line: &MethodLine<'_>| {
            json!({ kind: {
                "offset": line.offset, "subchannel": line.subchannel.number(),
                "class": line.class.map(class_text), "method": dump::name(line), "data": words(line),
            } })
        };
        match self {
            Self::Gone(line) => whole("gone", line),
            Self::New(line) => whole("new", line),
            Self::Data(x, y) => {
                let fields: Vec<Value> = changes(x, y)
                    .into_iter()
                    .map(|(field, from, to)| json!({ "field": field, "from": from, "to": to }))
                    .collect();
                json!({ "changed": {
                    "offset": [x.offset, y.offset], "subchannel": x.subchannel.number(),
                    "class": x.class.map(class_text), "method": dump::name(x), "fields": fields,
                } })
            }
        }
    }
}

fn words(line: &MethodLine<'_>) -> Vec<u32> {
    match line.data {
        Data::Immediate(word) => vec![word],
        Data::Words(words) => words.to_vec(),
    }
}

/// What differs in the data of one method, as names and texts: fields of a word, fields of a launch
/// descriptor, or words.
fn changes(x: &MethodLine<'_>, y: &MethodLine<'_>) -> Vec<(String, String, String)> {
    if let (Some(a), Some(b)) = (dump::descriptor(x), dump::descriptor(y))
        && let Some(diff) = a.diff(&b)
    {
        let fields: Vec<_> = diff
            .fields()
            .map(
                |Difference {
                     field,
                     index,
                     from,
                     to,
                 }| {
                    let text = |raw| FieldValue { field, index, raw }.to_string();
                    let (from, to) = (text(from), text(to));
                    match (from.split_once(" = "), to.split_once(" = ")) {
                        (Some((name, from)), Some((_, to))) => {
                            (name.to_owned(), from.to_owned(), to.to_owned())
                        }
                        _ => (field.name.to_owned(), from, to),
                    }
                },
            )
            .collect();
        if !fields.is_empty() {
            return fields;
        }
    }
    let (a, b) = (words(x), words(y));
    if let ([from], [to]) = (a.as_slice(), b.as_slice()) {
        let value = |f: &nv_proto::pretty::FieldText| {
            f.name
                .map_or_else(|| format!("{:#x}", f.value), str::to_owned)
        };
        let fields: Vec<_> = x
            .all_fields()
            .zip(y.all_fields())
            .filter(|(f, g)| f.value != g.value)
            .map(|(f, g)| (f.field.spec.name.to_owned(), value(&f), value(&g)))
            .collect();
        if fields.is_empty() {
            return vec![(
                "data".to_owned(),
                format!("{from:#010x}"),
                format!("{to:#010x}"),
            )];
        }
        return fields;
    }
    let text =
        |word: Option<&u32>| word.map_or_else(|| "none".to_owned(), |word| format!("{word:#010x}"));
    (0..a.len().max(b.len()))
        .filter(|index| a.get(*index) != b.get(*index))
        .map(|index| {
            (
                format!("word {index}"),
                text(a.get(index)),
                text(b.get(index)),
            )
        })
        .collect()
}

/// The most changes of one method that are shown as text.
const SHOWN: usize = 64;

/// The most cells of a table of common subsequences: 64 MiB.
const MAX_CELLS: usize = 1 << 24;

/// Aligns two lists by their longest common subsequence; beyond [`MAX_CELLS`] what lies between their common
/// beginning and end is taken pair by pair.
fn align<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<Step> {
    let begin = a.iter().zip(b).take_while(|(x, y)| same(x, y)).count();
    let rest = a.len().min(b.len()) - begin;
    let end = a
        .iter()
        .rev()
        .zip(b.iter().rev())
        .take(rest)
        .take_while(|(x, y)| same(x, y))
        .count();
    let (n, m) = (a.len() - begin - end, b.len() - begin - end);
    let mut steps: Vec<Step> = (0..begin).map(|at| Step::Both(at, at)).collect();
    match n.checked_mul(m).filter(|cells| *cells <= MAX_CELLS) {
        Some(_) => {
            let middle = common(&a[begin..begin + n], &b[begin..begin + m], &same);
            steps.extend(middle.into_iter().map(|step| match step {
                Step::Both(i, j) => Step::Both(begin + i, begin + j),
                Step::Minus(i) => Step::Minus(begin + i),
                Step::Plus(j) => Step::Plus(begin + j),
            }));
        }
        None => {
            for at in begin..begin + n.max(m) {
                let (i, j) = (at < begin + n, at < begin + m);
                if i && j && same(&a[at], &b[at]) {
                    steps.push(Step::Both(at, at));
                    continue;
                }
                steps.extend(i.then_some(Step::Minus(at)));
                steps.extend(j.then_some(Step::Plus(at)));
            }
        }
    }
    steps.extend((0..end).map(|at| Step::Both(a.len() - end + at, b.len() - end + at)));
    steps
}

/// The steps along a longest common subsequence.
fn common<T>(a: &[T], b: &[T], same: &impl Fn(&T, &T) -> bool) -> Vec<Step> {
    let width = b.len() + 1;
    // Cell (i, j): the length for what follows i in `a` and j in `b`.
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            lengths[i * width + j] = if same(&a[i], &b[j]) {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && same(&a[i], &b[j]) {
            steps.push(Step::Both(i, j));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || (i < a.len() && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])
        {
            steps.push(Step::Minus(i));
            i += 1;
        } else {
            steps.push(Step::Plus(j));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(a: &str, b: &str) -> String {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        align(&a, &b, |x, y| x == y)
            .into_iter()
            .map(|step| match step {
                Step::Both(i, j) => {
                    assert_eq!(a[i], b[j]);
                    format!("{}", a[i])
                }
                Step::Minus(i) => format!("-{}", a[i]),
                Step::Plus(j) => format!("+{}", b[j]),
            })
            .collect()
    }

    #[test]
    fn lists_are_aligned() {
        assert_eq!(text("abcd", "abcd"), "abcd");
        assert_eq!(text("abcd", "abxd"), "ab-c+xd");
        assert_eq!(text("", "ab"), "+a+b");
        assert_eq!(text("ab", ""), "-a-b");
        assert_eq!(text("aaaa", "aa"), "aa-a-a");
        assert_eq!(text("axbxc", "abc"), "a-xb-xc");
        assert_eq!(text("abc", "ac"), "a-bc");
    }

    fn shown(a: &[u32], b: &[u32]) -> (String, bool) {
        let stream = |words: &[u32]| Stream {
            name: "made here".to_owned(),
            words: words.to_vec(),
            compute_class: Some(nv_proto::class::HOPPER_COMPUTE_A),
        };
        let reading = Reading {
            format: super::super::Format::Auto,
            stream: None,
            generation: None,
        };
        let mut out = Vec::new();
        let result = run(
            &mut Paper::new(&mut out, false),
            &stream(a),
            &stream(b),
            &reading,
            false,
        );
        let differ = match result {
            Ok(()) => false,
            Err(Failure::Failed) => true,
            Err(error) => panic!("{error:?}"),
        };
        (String::from_utf8(out).unwrap(), differ)
    }

    #[test]
    fn differences_are_named() {
        let a = [0x2001_20b0, 9, 0x2001_2044, 0];
        assert_eq!(shown(&a, &a), (String::new(), false));
        let b = [0x2001_20b0, 10, 0x2001_206c, 0x41, 0x2001_2044, 0];
        assert_eq!(
            shown(&a, &b),
            (
                "       1 1 HOPPER_COMPUTE_A           SEND_SIGNALING_PCAS2_B PCAS_ACTION: \
                 PREFETCH_SCHEDULE -> INVALIDATE_PREFETCH_COPY_SCHEDULE\n\
                 +      3 1 HOPPER_COMPUTE_A           LAUNCH_DMA 0x00000041 \
                 DST_MEMORY_LAYOUT=PITCH SYSMEMBAR_DISABLE=TRUE\n"
                    .to_owned(),
                true
            )
        );
    }

    /// Past the limit the middle goes pair by pair, and nothing is lost.
    #[test]
    fn long_lists_are_aligned() {
        let a: Vec<u32> = (0..5000).collect();
        let mut b: Vec<u32> = (0..5000)
            .map(|n| if n % 2 == 0 { n } else { n + 10_000 })
            .collect();
        b.push(4999);
        let steps = align(&a, &b, |x, y| x == y);
        let minus = steps
            .iter()
            .filter(|step| matches!(step, Step::Minus(_)))
            .count();
        let both = steps
            .iter()
            .filter(|step| matches!(step, Step::Both(..)))
            .count();
        let plus = steps
            .iter()
            .filter(|step| matches!(step, Step::Plus(_)))
            .count();
        assert_eq!((minus + both, plus + both), (a.len(), b.len()));
        assert_eq!(both, 2501);
    }
}
