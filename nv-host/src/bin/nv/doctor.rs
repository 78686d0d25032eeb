//! `nv doctor`: what stands between this process and a GPU, and what to do about it.

use nv_host::probe::{Check, Level, Report};
use serde::Serialize;

use crate::exit::Failure;
use crate::out;
use crate::table::table;

/// Arguments of `nv doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Do not open a GPU to try the calls that sandboxes refuse.
    #[arg(long)]
    no_open: bool,
}

/// One finding.
#[derive(Debug, Serialize)]
struct Row<'a> {
    subject: &'a str,
    level: String,
    finding: &'a str,
    remedy: &'a str,
}

impl<'a> From<&'a Check> for Row<'a> {
    fn from(check: &'a Check) -> Self {
        Self {
            subject: &check.subject,
            level: check.level.to_string(),
            finding: &check.finding,
            remedy: &check.remedy,
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut report = Report::of_this_machine();
    if !args.no_open && report.level() != Level::Bad {
        try_calls(&mut report);
    }
    let rows: Vec<Row<'_>> = report.checks.iter().map(Row::from).collect();
    if args.json {
        out::json(&rows)?;
    } else {
        out::text(&format!("{}\n", text(&rows)))?;
    }
    match report.level() {
        Level::Bad => Err(Failure::Failed),
        _ => Ok(()),
    }
}

#[cfg(feature = "ioctl")]
fn try_calls(report: &mut Report) {
    match nv_host::driver::kernel::open_first() {
        Ok(driver) => report.try_calls(Ok(&driver)),
        Err(error) => report.try_calls(Err(&error)),
    }
}

#[cfg(not(feature = "ioctl"))]
fn try_calls(_report: &mut Report) {}

fn text(rows: &[Row<'_>]) -> String {
    let mut out = table(&["", "subject", "finding", "what to do"]);
    for row in rows {
        out.add_row([row.level.as_str(), row.subject, row.finding, row.remedy]);
    }
    out.trim_fmt()
}
