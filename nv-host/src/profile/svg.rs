//! A recording as a picture: a lane for each stream with a box for each record, the submissions in a strip below it,
//! a scale, and what the colours mean.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use super::{Kind, Record, Recording, Summary, What};

// In pixels.
pub(super) const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 16.0;
/// Where time begins: to the left of it are the streams' names.
pub(super) const LEFT: f64 = 120.0;
pub(super) const RIGHT: f64 = WIDTH - MARGIN;
const TITLE: f64 = 28.0;
const SCALE: f64 = 26.0;
const LANE: f64 = 44.0;
const BOX: f64 = 22.0;
const STRIP: f64 = 6.0;
const LEGEND: f64 = 18.0;
/// A letter of the monospaced font at its size, on the wide side.
pub(super) const LETTER: f64 = 7.0;
/// Boxes thinner than this that touch are drawn as one: a picture has no room for a million.
const THIN: f64 = 1.0;

/// Fills that dark letters can be read on, and that stand out from light and from dark ground.
const COLOURS: [&str; 8] = [
    "#8fb8f0", "#f2b36b", "#9bd39b", "#e39aa7", "#c3a6e6", "#e5d271", "#86d0cf", "#c9b29b",
];
const COPY: &str = "#b4b9c2";
const WAIT: &str = "#d9d9d9";

const STYLE: &str = "\
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#24292f}\
.ground{fill:#ffffff}.line{stroke:#c8ccd2}.lane{fill:#f3f4f6}.submit{fill:#6e7681}\
.box text,text.in{fill:#16191d}\
@media (prefers-color-scheme:dark){text{fill:#dfe3e8}.ground{fill:#16191d}.line{stroke:#3d444d}.lane{fill:#21262d}\
.submit{fill:#9aa4b0}text.in{fill:#16191d}}";

/// The whole document.
pub(super) fn picture(recording: &Recording) -> String {
    let streams = recording.streams();
    let summary = recording.summary();
    let span = Span::of(recording.records());
    let lanes = TITLE + SCALE;
    let legend = lanes + LANE * streams.len() as f64 + MARGIN;
    let height = legend + LEGEND * (summary.len() + 1) as f64 + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    let lost = match recording.lost() {
        lost if lost.is_none() => String::new(),
        lost => format!("; {lost}"),
    };
    let title = format!(
        "{}: {} records in {}{lost}",
        recording.device(),
        recording.records().len(),
        Time(span.length)
    );
    text(&mut svg, MARGIN, 20.0, "", &title, WIDTH - 2.0 * MARGIN);
    scale(&mut svg, span, legend - MARGIN);
    for (index, stream) in streams.iter().enumerate() {
        let top = lanes + LANE * index as f64;
        let records = recording
            .records()
            .iter()
            .filter(|record| record.stream == *stream);
        let name = format!("stream {stream}");
        let middle = top + 16.0;
        text(&mut svg, MARGIN, middle, "", &name, LEFT - MARGIN - 8.0);
        let _ = writeln!(
            svg,
            "<rect class=\"lane\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{BOX}\"/>",
            RIGHT - LEFT
        );
        lane(&mut svg, span, top, records, &summary);
    }
    let _ = writeln!(
        svg,
        "<rect class=\"submit\" x=\"{MARGIN}\" y=\"{}\" width=\"12\" height=\"{STRIP}\"/>",
        legend + 3.0
    );
    let strips = "submissions by the CPU, below each stream";
    text(
        &mut svg,
        MARGIN + 20.0,
        legend + 11.0,
        "",
        strips,
        WIDTH / 2.0,
    );
    for (index, row) in summary.iter().enumerate() {
        let index = index + 1;
        let top = legend + LEGEND * index as f64;
        let colour = colour(row.what, row.name, &summary);
        let _ = writeln!(
            svg,
            "<rect x=\"{MARGIN}\" y=\"{top}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
        );
        let line = format!(
            "{}: {} in {}, {} each",
            row.name,
            row.count,
            Time(row.total),
            Time(row.mean())
        );
        let width = WIDTH - 3.0 * MARGIN - 8.0;
        text(&mut svg, MARGIN + 20.0, top + 11.0, "", &line, width);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The records of one stream, by start.
fn lane<'a>(
    svg: &mut String,
    span: Span,
    top: f64,
    records: impl Iterator<Item = &'a Record>,
    summary: &[Summary<'_>],
) {
    let mut boxes: Vec<Drawn<'_>> = Vec::new();
    let mut strips: Vec<Drawn<'_>> = Vec::new();
    for record in records {
        let submitted = record.submitted.saturating_add(record.submitting);
        Drawn::add(&mut boxes, span, record, record.start, record.end);
        Drawn::add(&mut strips, span, record, record.submitted, submitted);
    }
    for Drawn {
        from,
        to,
        first,
        count,
    } in &boxes
    {
        let name = first.name();
        let colour = colour(first.kind.what(), name, summary);
        let about = match (count, first.kind) {
            (1, Kind::Launch { grid, block }) => format!("{name}, grid {grid}, block {block}"),
            (1, Kind::Chain { launches }) => format!("{name}, {launches} launches"),
            (1, Kind::Copy { bytes }) => format!("{name}, {bytes} bytes"),
            (1, Kind::Wait) => name.to_owned(),
            (count, _) => format!("{count} records, the first of them {name}"),
        };
        let title = format!(
            "{about}: {} from {}",
            Time(first.duration()),
            Time(first.start)
        );
        let _ = writeln!(
            svg,
            "<rect class=\"box\" data-records=\"{count}\" x=\"{from:.3}\" y=\"{top}\" width=\"{:.3}\" height=\"{BOX}\" \
             rx=\"{}\" fill=\"{colour}\"><title>{}</title></rect>",
            to - from,
            // Neighbours of one colour are told apart by their corners.
            if to - from > 6.0 { 3 } else { 0 },
            Escaped(&title)
        );
        let room = to - from - 6.0;
        if room >= 3.0 * LETTER {
            text(svg, from + 3.0, top + 15.0, "in", name, room);
        }
    }
    for Drawn { from, to, .. } in &strips {
        let _ = writeln!(
            svg,
            "<rect class=\"submit\" x=\"{from:.3}\" y=\"{}\" width=\"{:.3}\" height=\"{STRIP}\"/>",
            top + BOX + 3.0,
            to - from
        );
    }
}

/// One box, which stands for several records where they are too thin to be told apart.
struct Drawn<'a> {
    from: f64,
    to: f64,
    first: &'a Record,
    count: u64,
}

impl<'a> Drawn<'a> {
    fn add(boxes: &mut Vec<Self>, span: Span, record: &'a Record, start: Duration, end: Duration) {
        let (from, to) = (span.x(start), span.x(end));
        let thin = |from: f64, to: f64| to - from < THIN;
        match boxes.last_mut() {
            Some(last) if thin(from, to) && from - last.to < THIN && thin(last.from, last.to) => {
                last.to = last.to.max(to);
                last.count += 1;
            }
            _ => boxes.push(Self {
                from,
                to: to.max(from + THIN / 2.0),
                first: record,
                count: 1,
            }),
        }
    }
}

/// Lines and figures of time.
fn scale(svg: &mut String, span: Span, bottom: f64) {
    let step = span.step();
    let first = span.begin.as_nanos().div_ceil(step);
    for tick in first.. {
        let Ok(at) = u64::try_from(tick.saturating_mul(step)).map(Duration::from_nanos) else {
            break;
        };
        if at > span.begin.saturating_add(span.length) {
            break;
        }
        let x = span.x(at);
        let _ = writeln!(
            svg,
            "<path class=\"line\" d=\"M{x:.3} {} V{bottom}\"/>",
            TITLE + SCALE - 6.0
        );
        // A figure at the very right has no room.
        let room = (WIDTH - x - 4.0).min(span.pixels(step) - 8.0);
        text(
            svg,
            x + 3.0,
            TITLE + SCALE - 9.0,
            "",
            &Time(at).to_string(),
            room,
        );
    }
}

/// What time is shown.
#[derive(Clone, Copy)]
struct Span {
    begin: Duration,
    length: Duration,
}

impl Span {
    /// From the first submission or start to the last end.
    fn of(records: &[Record]) -> Self {
        let begin = records
            .iter()
            .map(|record| record.start.min(record.submitted));
        let end = records.iter().map(|record| {
            let submitted = record.submitted.saturating_add(record.submitting);
            record.end.max(submitted)
        });
        let begin = begin.min().unwrap_or_default();
        let length = end.max().unwrap_or_default().saturating_sub(begin);
        Self {
            begin,
            length: length.max(Duration::from_nanos(1)),
        }
    }

    /// Where a time lies.
    fn x(self, time: Duration) -> f64 {
        let at = time.saturating_sub(self.begin).min(self.length);
        LEFT + (RIGHT - LEFT) * (at.as_nanos() as f64 / self.length.as_nanos() as f64)
    }

    /// How wide so many nanoseconds are.
    fn pixels(self, nanoseconds: u128) -> f64 {
        (RIGHT - LEFT) * (nanoseconds as f64 / self.length.as_nanos() as f64)
    }

    /// Nanoseconds between the lines of the scale: 1, 2 or 5 times a power of ten, at most eleven lines.
    fn step(self) -> u128 {
        let mut power = 1;
        loop {
            for factor in [1, 2, 5] {
                let step = power * factor;
                if self.length.as_nanos() / step <= 10 {
                    return step;
                }
            }
            power *= 10;
        }
    }
}

/// The colour of what has this name: kernels take turns, all else is grey.
fn colour(what: What, name: &str, summary: &[Summary<'_>]) -> &'static str {
    match what {
        What::Launch => {}
        What::Copy => return COPY,
        What::Wait => return WAIT,
    }
    let kernels = summary.iter().filter(|row| row.what == What::Launch);
    let place = kernels.take_while(|row| row.name != name).count();
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or(COPY)
}

/// Text that keeps to its room: what does not fit is cut, and nothing is left of what has none.
fn text(svg: &mut String, x: f64, y: f64, class: &str, text: &str, room: f64) {
    // Letters of other scripts may be twice as wide.
    let wide = |letter: char| {
        if letter.is_ascii() {
            LETTER
        } else {
            2.0 * LETTER
        }
    };
    let mut kept = String::new();
    let mut used = 0.0;
    let whole: f64 = text.chars().map(wide).sum();
    for letter in text.chars() {
        let mark = if whole > room { wide('…') } else { 0.0 };
        if used + wide(letter) + mark > room {
            break;
        }
        used += wide(letter);
        kept.push(letter);
    }
    if kept.len() < text.len() {
        if kept.is_empty() {
            return;
        }
        kept.push('…');
    }
    let class = match class {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let _ = writeln!(
        svg,
        "<text{class} x=\"{x:.3}\" y=\"{y}\">{}</text>",
        Escaped(&kept)
    );
}

/// A length of time for people, exact to three places.
struct Time(Duration);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        let (unit, name) = match nanoseconds {
            0..1_000 => return write!(f, "{nanoseconds} ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let thousandths = nanoseconds * 1_000 / unit;
        let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{text} {name}")
    }
}

/// Text between tags; letters that no XML document may hold are replaced.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                letter if letter.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&letter) => {
                    f.write_char('\u{fffd}')?;
                }
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}
