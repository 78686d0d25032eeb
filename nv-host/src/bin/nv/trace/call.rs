//! A call by its names.

use nv_proto::rm::{self, Described, Status};
use nv_proto::unit::ClassId;
use nv_proto::uvm;

use super::Style;
use super::events::Call;
use crate::ioctl;

/// A call, named.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Named {
    /// The escape or UVM command.
    pub name: String,
    /// The class or control command that it is about.
    pub about: Option<String>,
    /// The objects that it is about.
    pub objects: Option<String>,
    /// What the driver answered; `None` where the call does not say or is not described.
    pub status: Option<Status>,
    /// The parameters that are not zero.
    pub params: Option<String>,
    /// What the driver changed.
    pub changed: Vec<String>,
}

impl Named {
    /// Names a call.
    pub fn new(call: &Call, style: Style) -> Self {
        let version = style.version;
        let escape = rm::parse_request(call.effective).filter(|_| !is_uvm(call));
        let own = |name| field(call, 0, name);
        let (class, command) = match escape {
            Some((rm::NV_ESC_RM_ALLOC, _)) => (own("hClass"), None),
            Some((rm::NV_ESC_RM_CONTROL, _)) => (None, own("cmd")),
            _ => (None, None),
        };
        // What lies where nothing is pointed at is the call's own.
        let pointed = class.is_some() || command.is_some();
        let [before, after] = if pointed { &call.inner } else { &call.own };
        let named = ioctl::decoded(call.effective, class, command, before, after, version);
        let mut changed = named.changed;
        if named.params.is_none() {
            changed = raw_changes(before, after);
        }
        // The status has a place of its own.
        changed.retain(|change| !change.starts_with("status=") && !change.starts_with("rmStatus="));
        if pointed && call.own[1].len() == call.own[0].len() {
            let new = (own("hObjectNew"), field(call, 1, "hObjectNew"));
            if let (Some(before), Some(after)) = new
                && before != after
            {
                changed.push(format!("hObjectNew={after:#x}"));
            }
        }
        let status = match escape {
            Some(_) => field(call, 1, "status").map(Status),
            None => uvm::status_of(call.effective, version, &call.own[1]),
        };
        Self {
            name: named.name,
            about: named.about,
            objects: objects(call),
            status,
            params: named.params,
            changed,
        }
    }

    /// Whether all went well, or at least was done.
    pub fn failed(&self, call: &Call) -> bool {
        self.status.is_some_and(Status::is_error)
            || call.end.is_none_or(|(result, _, _)| result < 0)
    }
}

/// Whether a call was made on UVM's node.
pub fn is_uvm(call: &Call) -> bool {
    call.path.contains("-uvm")
}

/// A field of the call's own structure, before (0) or after (1).
fn field(call: &Call, when: usize, name: &str) -> Option<u32> {
    let (escape, size) = rm::parse_request(call.effective)?;
    let described = Described::new(rm::escape_shape(escape, size)?, call.own.get(when)?);
    let value = described.fields().find(|value| value.field.name == name)?;
    u32::try_from(value.number()?).ok()
}

/// What an allocation or control call is made on.
fn objects(call: &Call) -> Option<String> {
    let own = |name| field(call, 0, name);
    if is_uvm(call) {
        return None;
    }
    if let (Some(client), Some(object)) = (own("hClient"), own("cmd").and(own("hObject"))) {
        return Some(format!("on {object:#x} of client {client:#x}"));
    }
    let (parent, class) = (own("hObjectParent")?, own("hClass")?);
    let new = field(call, 1, "hObjectNew")
        .or(own("hObjectNew"))
        .unwrap_or(0);
    match ClassId(class) {
        ClassId(0) | rm::names::classes::NV01_ROOT_CLIENT => Some(format!("{new:#x}")),
        _ => Some(format!(
            "{new:#x} below {parent:#x} of client {:#x}",
            own("hRoot").unwrap_or(0)
        )),
    }
}

/// Words that differ, of a structure that is not described.
fn raw_changes(before: &[u8], after: &[u8]) -> Vec<String> {
    const SHOWN: usize = 4;
    let pairs = before.chunks(4).zip(after.chunks(4)).enumerate();
    let differ: Vec<_> = pairs.filter(|(_, (old, new))| old != new).collect();
    let mut lines: Vec<String> = differ
        .iter()
        .take(SHOWN)
        .map(|(index, (old, new))| format!("+{:#x}={} (was {})", index * 4, word(new), word(old)))
        .collect();
    match differ.len().checked_sub(SHOWN) {
        None | Some(0) => {}
        Some(more) => lines.push(format!("{more} words more of {} bytes", after.len())),
    }
    lines
}

fn word(bytes: &[u8]) -> String {
    let number = bytes
        .iter()
        .rev()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!("{number:#x}")
}
