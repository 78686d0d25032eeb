//! A trace as text.

use std::collections::HashMap;

use nv_proto::class::Generation;
use nv_proto::gpfifo::GpEntry;
use nv_proto::pretty::{Bindings, Line, lines};
use nv_proto::rm::{self, names};
use nv_proto::unit::ClassId;
use nv_trace::record::{Cause, Loss};

use super::call::Named;
use super::events::{Call, Entry, Event, Recorded, Ring, What};
use super::{Only, Style};
use crate::exit::Failure;
use crate::push::dump;
use crate::push::paint::{Ink, Paper};

/// Writes everything.
pub fn write(paper: &mut Paper<'_>, recorded: &Recorded, style: Style) -> Result<(), Failure> {
    let mut channels = Channels::default();
    let mut counts = Counts::default();
    for event in &recorded.events {
        channels.learn(event);
        let time = event.stamp.time.saturating_sub(recorded.begin);
        let frame = format!("{:>10.3} ms ", time as f64 / 1e6);
        let frame = if recorded.processes > 1 {
            format!("{frame}[{}] ", event.stamp.process)
        } else {
            frame
        };
        let frame = paper.ink(Ink::Dim, frame);
        counts.add(&event.what, style);
        match &event.what {
            What::Ring(ring) if style.only != Some(Only::Calls) => {
                self::ring(paper, &frame, ring, channels.bindings(ring), style)?;
            }
            What::Lost { .. } | What::Unknown(_) => {
                paper.line(format!("{frame}{}", other(&event.what)))?
            }
            What::Ring(_) => {}
            _ if style.only == Some(Only::Commands) => {}
            What::Call(call) => self::call(paper, &frame, call, style)?,
            what => paper.line(format!("{frame}{}", other(what)))?,
        }
    }
    let Counts {
        calls,
        failed,
        time,
        entries,
        launches,
    } = counts;
    paper.line(format!(
        "{calls} calls ({failed} refused) took {:.1} ms; {entries} ring entries, {launches} launches seen",
        time as f64 / 1e6
    ))
}

/// What was seen.
#[derive(Default)]
struct Counts {
    calls: usize,
    failed: usize,
    time: u64,
    entries: usize,
    launches: usize,
}

impl Counts {
    fn add(&mut self, what: &What, style: Style) {
        match what {
            What::Call(call) => {
                self.calls += 1;
                self.failed += usize::from(Named::new(call, style).failed(call));
                self.time = self
                    .time
                    .saturating_add(call.end.map_or(0, |(_, _, took)| took));
            }
            What::Ring(ring) => {
                self.entries += ring.entries.len();
                let launches = ring.entries.iter().map(|entry| launches(&entry.words));
                self.launches += launches.sum::<usize>();
            }
            _ => {}
        }
    }
}

/// How many launches words hold: whatever the class, the method is the same.
fn launches(words: &[u32]) -> usize {
    lines(words, Bindings::of(Generation::Hopper))
        .filter_map(Result::ok)
        .filter(|line| matches!(line, Line::Method(line) if dump::name(line) == "SEND_PCAS_A"))
        .count()
}

/// What is bound on each channel.
#[derive(Default)]
pub struct Channels {
    /// The generation of each client's compute objects.
    generations: HashMap<(u32, u32), Generation>,
    bound: HashMap<(u32, u32, u32), Bindings>,
    process: u32,
}

impl Channels {
    /// Learns from the allocations of compute objects.
    pub fn learn(&mut self, event: &Event) {
        self.process = event.stamp.process;
        let What::Call(call) = &event.what else {
            return;
        };
        let Some((rm::NV_ESC_RM_ALLOC, _)) = rm::parse_request(call.effective) else {
            return;
        };
        let word = |at: usize| {
            let bytes = call.own[0].get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        // `hRoot` and `hClass` begin both forms.
        let (Some(client), Some(class)) = (word(0), word(12)) else {
            return;
        };
        if let Some(generation) = Generation::of_compute(ClassId(class)) {
            self.generations.insert((self.process, client), generation);
        }
    }

    /// What is bound on a channel by now, to be carried on.
    pub fn bindings(&mut self, ring: &Ring) -> &mut Bindings {
        let generation = self.generations.get(&(self.process, ring.client));
        let begin = generation.map_or(Bindings::NONE, |generation| Bindings::of(*generation));
        self.bound
            .entry((self.process, ring.client, ring.channel))
            .or_insert(begin.with_host(ring.class))
    }
}

/// What has no parameters to show.
fn other(what: &What) -> String {
    match what {
        What::Start { program } => format!("start {program}"),
        What::Open { path, fd, errno: 0 } => format!("open {path} = {fd}"),
        What::Open { path, errno, .. } => format!("open {path}: {}", os_error(*errno)),
        What::Close { path, fd } => format!("close {fd} ({path})"),
        What::Map {
            path,
            fd,
            address,
            length,
            offset,
        } => {
            format!("mmap {path} (fd {fd}) offset {offset:#x}, {length:#x} bytes at {address:#x}")
        }
        What::Unmap { address, length } => format!("munmap {length:#x} bytes at {address:#x}"),
        What::Lost { count, why } => lost(*count, *why),
        What::Unknown(number) => format!("a record of unknown kind {number}"),
        What::Call(_) | What::Ring(_) => String::new(),
    }
}

/// What was not recorded, and why.
pub fn lost(count: u64, why: u64) -> String {
    let why = match why {
        why if why == Loss::Busy as u64 => {
            "calls made while another one was being recorded (in a signal handler, say)"
        }
        why if why == Loss::Full as u64 => {
            "objects, mappings or launches beyond what the library keeps"
        }
        why if why == Loss::Write as u64 => {
            "records that could not be written: is there room for the file?"
        }
        _ => "of an unknown kind",
    };
    format!("LOST {count}: {why}")
}

fn os_error(errno: i64) -> String {
    i32::try_from(errno).map_or_else(
        |_| format!("error {errno}"),
        |errno| std::io::Error::from_raw_os_error(errno).to_string(),
    )
}

fn call(paper: &mut Paper<'_>, frame: &str, call: &Call, style: Style) -> Result<(), Failure> {
    let named = Named::new(call, style);
    let name = if named.about.is_some() {
        // `NV_ESC_RM_ALLOC` and `NV_ESC_RM_CONTROL` are told by what they are about.
        named.name.strip_prefix("NV_ESC_").unwrap_or(&named.name)
    } else {
        &named.name
    };
    let mut line = format!("{frame}{}", paper.ink(Ink::Strong, name));
    for part in [&named.about, &named.objects].into_iter().flatten() {
        line.push_str(&format!(" {part}"));
    }
    let node = call.path.rsplit('/').next().unwrap_or_default();
    line.push_str(&paper.ink(Ink::Dim, format_args!("  {node}({})", call.fd)));
    match call.end {
        None => line.push_str("  did not return"),
        Some((result, errno, took)) => {
            if result < 0 {
                line.push_str(&format!("  {}", os_error(errno)));
            }
            match named.status {
                Some(status) if !status.is_ok() => line.push_str(&format!("  {status}")),
                _ => {}
            }
            line.push_str(&paper.ink(Ink::Dim, format_args!("  {:.1} us", took as f64 / 1e3)));
        }
    }
    paper.line(line)?;
    if style.brief {
        return Ok(());
    }
    if let Some(structure) = named.structure {
        let params = named
            .params
            .iter()
            .map(|(name, value)| format!(" {}={value}", paper.ink(Ink::Name, name)));
        paper.line(format!(
            "                {structure}{}",
            params.collect::<String>()
        ))?;
    }
    for (name, value) in &named.changed {
        let changed = paper.ink(Ink::Plus, format_args!("-> {name}={value}"));
        paper.line(format_args!("                {changed}"))?;
    }
    Ok(())
}

fn ring(
    paper: &mut Paper<'_>,
    frame: &str,
    ring: &Ring,
    bindings: &mut Bindings,
    style: Style,
) -> Result<(), Failure> {
    let class =
        names::class(ring.class).map_or_else(|| format!("{:#x}", ring.class.0), str::to_owned);
    let channel = format!(
        "channel {:#x} ({class}) of client {:#x}",
        ring.channel, ring.client
    );
    let channel = paper.ink(Ink::Strong, channel);
    if let Some(what) = ring.hidden {
        return paper.line(format_args!(
            "{frame}{channel}: {what} is not mapped for the CPU, so its entries are not known"
        ));
    }
    let when = match ring.cause {
        cause if cause == Cause::Free as u64 => "before an object is freed",
        cause if cause == Cause::Exit as u64 => "as the process ends",
        cause if cause == Cause::Time as u64 => "as time passes",
        _ => "before a call",
    };
    paper.line(format_args!(
        "{frame}{channel}: {} new {}, GP_PUT {} of {}, seen {when}",
        ring.entries.len(),
        if ring.entries.len() == 1 {
            "entry"
        } else {
            "entries"
        },
        ring.put,
        ring.slots
    ))?;
    if ring.went_round {
        paper.line("                LOST: the ring went round since it was last looked at; `--every` looks more often")?;
    }
    for entry in &ring.entries {
        self::entry(paper, entry, bindings, style)?;
    }
    Ok(())
}

fn entry(
    paper: &mut Paper<'_>,
    entry: &Entry,
    bindings: &mut Bindings,
    style: Style,
) -> Result<(), Failure> {
    let slot = entry.slot;
    let Some((va, length)) = entry.len() else {
        let what = match GpEntry::decode(entry.bits) {
            Ok(GpEntry::Control { opcode, operand }) => format!("{opcode:?} {operand:#x}"),
            _ => format!("{:#018x} is no entry", entry.bits),
        };
        return paper.line(format_args!("  entry {slot}: {what}"));
    };
    let missing = match (length, entry.words.len()) {
        (_, 0) => ", not mapped for the CPU",
        (length, read) if read < length => ", of which the first are mapped for the CPU and shown",
        _ => "",
    };
    paper.line(format_args!(
        "  entry {slot}: {length} words at {:#x}{missing}",
        va.0
    ))?;
    let mut found = lines(&entry.words, *bindings);
    for line in found.by_ref() {
        match line {
            Ok(_) if style.brief => {}
            Ok(Line::Method(line)) => dump::method(paper, &line, false)?,
            Ok(line) => paper.line(paper.ink(Ink::Dim, line))?,
            Err(error) => paper.line(format_args!("         {error}"))?,
        }
    }
    *bindings = found.bindings();
    for (va, qmd) in &entry.descriptors {
        let Some(qmd) = qmd else {
            paper.line(format_args!(
                "  what is launched at {:#x} is no launch descriptor that is known",
                va.0
            ))?;
            continue;
        };
        paper.line(format_args!("  launched from {:#x}:", va.0))?;
        for field in qmd.to_string().lines().filter(|_| !style.brief) {
            paper.line(format_args!("         {field}"))?;
        }
    }
    Ok(())
}
