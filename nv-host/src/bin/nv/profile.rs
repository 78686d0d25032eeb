//! `--profile`: when the work of a command ran on the GPU, as a table, as a trace and as a picture.

use std::path::PathBuf;
use std::time::Duration;

use nv_host::profile::{Profile, Recording, What};
use nv_host::{Context, Error};
use serde::Serialize;

use crate::exit::Failure;
use crate::table::table;

/// What to make of a profile.
#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    // Not a documentation comment, where square brackets would be a link.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = Wanted::parse,
        help = "Say when each kernel and copy ran on the GPU: as a table, or with =FILE.json as a trace for \
                Perfetto or chrome://tracing, or with =FILE.svg as a picture. Can be given more than once"
    )]
    profile: Vec<Wanted>,
    /// Write a picture of when each kernel and copy ran on the GPU: the same as --profile=FILE.svg.
    #[arg(long, value_name = "FILE.svg")]
    timeline: Option<PathBuf>,
}

/// One way to show a profile.
#[derive(Clone, Debug)]
enum Wanted {
    Table,
    Trace(PathBuf),
    Picture(PathBuf),
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if text.is_empty() => Ok(Self::Table),
            Some("json") => Ok(Self::Trace(path)),
            Some("svg") => Ok(Self::Picture(path)),
            _ => Err("a profile is written to a file that ends in .json or .svg".to_owned()),
        }
    }
}

/// A command's profile, if it is to have one.
#[derive(Debug)]
pub struct Running(Option<Profile>);

/// One line of the table.
#[derive(Debug, Serialize)]
struct Row<'a> {
    what: &'static str,
    name: &'a str,
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    total_us: f64,
    mean_us: f64,
    min_us: f64,
    max_us: f64,
    /// Of the time of all lines, in percent.
    share: f64,
}

/// What `--json` says of a profile.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    rows: Vec<Row<'a>>,
    records: usize,
    lost_full: u64,
    lost_unfinished: u64,
    clock_error_us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_drift_ppm: Option<f64>,
}

impl ProfileArgs {
    /// Begins to record, if anything is to be made of it.
    pub fn begin(&self, context: &Context) -> Result<Running, Error> {
        let wanted = !self.profile.is_empty() || self.timeline.is_some();
        Ok(Running(wanted.then(|| context.profile()).transpose()?))
    }

    /// Ends the recording and writes the files.
    pub fn finish(&self, running: Running) -> Result<Option<Recording>, Failure> {
        let Some(profile) = running.0 else {
            return Ok(None);
        };
        let recording = profile.finish();
        let write = |path: &PathBuf, text: String| {
            std::fs::write(path, text)
                .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))
        };
        for wanted in &self.profile {
            match wanted {
                Wanted::Table => {}
                Wanted::Trace(path) => write(path, recording.chrome_trace())?,
                Wanted::Picture(path) => write(path, recording.svg())?,
            }
        }
        if let Some(path) = &self.timeline {
            write(path, recording.svg())?;
        }
        if !recording.lost().is_none() {
            crate::out::note(format_args!(
                "the profile is not whole; {}",
                recording.lost()
            ));
        }
        Ok(Some(recording))
    }

    /// Whether the table is to be printed.
    pub fn wants_table(&self) -> bool {
        self.profile
            .iter()
            .any(|wanted| matches!(wanted, Wanted::Table))
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// A recording by its lines.
pub fn report(recording: &Recording) -> Report<'_> {
    let summary = recording.summary();
    let all: Duration = summary.iter().map(|row| row.total).sum();
    let rows = summary
        .iter()
        .map(|row| Row {
            what: match row.what {
                What::Launch => "kernel",
                What::Copy => "copy",
                _ => "wait",
            },
            name: row.name,
            count: row.count,
            bytes: (row.what == What::Copy).then_some(row.bytes),
            total_us: micros(row.total),
            mean_us: micros(row.mean()),
            min_us: micros(row.min),
            max_us: micros(row.max),
            share: if all.is_zero() {
                0.0
            } else {
                row.total.as_secs_f64() / all.as_secs_f64() * 100.0
            },
        })
        .collect();
    let (lost, clock) = (recording.lost(), recording.clock());
    Report {
        rows,
        records: recording.records().len(),
        lost_full: lost.full,
        lost_unfinished: lost.unfinished,
        clock_error_us: micros(clock.error),
        clock_drift_ppm: clock.drift_ppm,
    }
}

/// A recording as a table for people.
pub fn text(recording: &Recording) -> String {
    let report = report(recording);
    let mut shown = table(&[
        "kernel or copy",
        "count",
        "total us",
        "mean us",
        "min us",
        "max us",
        "share",
    ]);
    for row in &report.rows {
        let name = match row.bytes {
            Some(bytes) => format!("{} ({bytes} bytes)", row.name),
            None => row.name.to_owned(),
        };
        shown.add_row([
            name,
            row.count.to_string(),
            format!("{:.3}", row.total_us),
            format!("{:.3}", row.mean_us),
            format!("{:.3}", row.min_us),
            format!("{:.3}", row.max_us),
            format!("{:.1} %", row.share),
        ]);
    }
    for column in 1..7 {
        if let Some(column) = shown.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    format!(
        "{}\n{} records; the GPU's times are known on the CPU's clock to {:.1} us\n",
        shown.trim_fmt(),
        report.records,
        report.clock_error_us
    )
}
