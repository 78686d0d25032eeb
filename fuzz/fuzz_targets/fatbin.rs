#![no_main]

// The host's module alone: it needs nothing else of that crate.
#[path = "../../nv-host/src/fatbin.rs"]
#[allow(dead_code, reason = "some of it is for other callers")]
mod fatbin;

use nv_proto::cubin::fatbin::{EntryKind, Payload};
use nv_proto::unit::SmVersion;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(entries) = fatbin::entries(bytes) {
        for entry in entries {
            let _ = (fatbin::target(&entry), entry.name(), entry.options(), entry.compat());
            // A small frame may stand for gigabytes: what is said to be large is left alone here.
            let small = !matches!(entry.payload(), Payload::Compressed { size, .. } if size > 1 << 20);
            if let (true, Ok(data)) = (small, fatbin::contents(&entry))
                && let Payload::Compressed { size, .. } = entry.payload()
            {
                assert!(data.len() as u64 == size || entry.kind() == EntryKind::PTX && (data.len() as u64) < size);
            }
        }
    }
});
