//! What a command says of a fault, or of work that does not end: to people, and as JSON.

use std::sync::Arc;

use nv_host::{Error, Event, FaultKind, FaultReport, MemoryPlace, Stream, Submission, code_name};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::out;

/// Waits for work; where it faults or does not end, says all that can be known of it: on standard output as JSON if
/// asked for, and always as the failure.
pub fn wait(stream: &Stream, work: Result<Event, Error>, as_json: bool) -> Result<(), Failure> {
    let Err(error) = work.and_then(|event| event.wait()) else {
        return Ok(());
    };
    let error = match error {
        Error::Timeout { what, limit, .. } => {
            let mut report = stream.diagnose();
            if report.kind == FaultKind::NoFault {
                report.kind = FaultKind::TimeLimit;
            }
            report.limit = Some(limit);
            // The program ends with the command: nothing is gained by waiting once more.
            stream.clone().abandon();
            Error::Timeout {
                what,
                limit,
                report: Some(Arc::new(report)),
            }
        }
        error => error,
    };
    if as_json
        && let Error::Fault(report)
        | Error::Timeout {
            report: Some(report),
            ..
        } = &error
    {
        let mut shown = of_report(report);
        if let Some(fields) = shown.as_object_mut() {
            fields.insert("text".to_owned(), error.to_string().into());
        }
        out::json(&json!({ "error": shown }))?;
    }
    Err(Failure::Library(error))
}

fn of_report(report: &FaultReport) -> Value {
    json!({
        "kind": report.kind.name(),
        "kernel": report.kernel,
        "code": report.code,
        "code_name": report.code.and_then(code_name),
        "time_ns": report.time,
        "limit_ms": report.limit.map(|limit| limit.as_secs_f64() * 1e3),
        "accesses": report.accesses.iter().map(|access| json!({
            "address": hex(access.address),
            "access": access.access_name(),
            "fault": access.fault_name(),
            "memory": of_place(&access.place),
        })).collect::<Vec<_>>(),
        "sms": report.sms.iter().map(|error| json!({
            "sm": error.sm,
            "kind": error.kind.name(),
            "warp_esr": hex(error.warp_esr.into()),
            "global_esr": hex(error.global_esr.into()),
            "address": hex(error.address),
            "memory": error.memory.as_ref().map(of_place),
            "pc": hex(error.pc),
            "kernel": error.place.as_ref().map(|(kernel, _)| kernel),
            "offset": error.place.as_ref().map(|(_, offset)| hex(*offset)),
            "instruction": error.instruction,
        })).collect::<Vec<_>>(),
        "sms_read": report.sms_read,
        "sm_count": report.sm_count,
        "submission": report.submission.as_ref().map(of_submission),
        "beside": report.beside.iter().map(of_submission).collect::<Vec<_>>(),
        "simulated_gpu": report.detail,
        "not_known": report.missing,
    })
}

fn of_submission(submission: &Submission) -> Value {
    json!({
        "number": submission.number,
        "newest": submission.newest,
        "kernel": submission.kernel,
        "launches": submission.launches.iter().map(|launch| json!({
            "kernel": launch.kernel,
            "grid": [launch.grid.x, launch.grid.y, launch.grid.z],
            "block": [launch.block.x, launch.block.y, launch.block.z],
            "local_bytes": launch.local_bytes,
            "shared_bytes": launch.shared_bytes,
            "descriptor": hex(launch.descriptor.0),
        })).collect::<Vec<_>>(),
        "unread_descriptors": submission.unread.iter().map(|at| hex(at.0)).collect::<Vec<_>>(),
        "doubts": submission.doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn of_place(place: &MemoryPlace) -> Value {
    let mut shown = json!({ "relation": place.name(), "text": place.to_string() });
    if let (Some(region), Some(fields)) = (place.region(), shown.as_object_mut()) {
        fields.insert("start".to_owned(), hex(region.start.0).into());
        fields.insert("bytes".to_owned(), region.bytes.into());
        fields.insert("of".to_owned(), region.what.to_string().into());
        fields.insert("distance".to_owned(), place.distance().into());
    }
    shown
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}
