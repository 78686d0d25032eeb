//! A call by its names.

use nv_proto::rm::{self, Described, DriverVersion, Shape, Status, Value};
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
    /// The parameters' structure, where it is described.
    pub structure: Option<&'static str>,
    /// The parameters that are not zero.
    pub params: Vec<(&'static str, String)>,
    /// What the driver changed.
    pub changed: Vec<(String, String)>,
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
        let (name, about, shape) = ioctl::named(call.effective, class, command, version);
        let [before, after] = if about.is_some() {
            &call.inner
        } else {
            &call.own
        };
        let mut changed = match shape {
            Some(shape) => changes(shape, before, after, version),
            None => raw_changes(before, after),
        };
        if let (Some(_), Some(before), Some(after)) =
            (&about, own("hObjectNew"), field(call, 1, "hObjectNew"))
            && before != after
        {
            changed.push(("hObjectNew".to_owned(), format!("{after:#x}")));
        }
        let described = shape
            .filter(|_| !before.is_empty())
            .map(|shape| ioctl::cut(shape, before, version));
        let params = described
            .iter()
            .flat_map(Described::fields)
            .filter(|value| !value.is_zero() && !is_status(value));
        Self {
            name,
            about,
            objects: objects(call),
            status: match escape {
                Some(_) => field(call, 1, "status").map(Status),
                None => uvm::status_of(call.effective, version, &call.own[1]),
            },
            structure: described.map(|described| described.name()),
            params: params
                .map(|value| (value.field.name, value.to_string()))
                .collect(),
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

/// The status has a place of its own, and what it was before the call says nothing.
fn is_status(value: &Value<'_>) -> bool {
    ["status", "rmStatus"].contains(&value.field.name)
}

/// Fields that differ.
fn changes(
    shape: Shape,
    before: &[u8],
    after: &[u8],
    version: DriverVersion,
) -> Vec<(String, String)> {
    let (before, after) = (
        ioctl::cut(shape, before, version),
        ioctl::cut(shape, after, version),
    );
    let pairs = before.fields().zip(after.fields());
    let changed = pairs.filter(|(old, new)| old.bytes != new.bytes && !is_status(new));
    changed
        .map(|(_, new)| (new.field.name.to_owned(), new.to_string()))
        .collect()
}

/// Words that differ, of a structure that is not described.
fn raw_changes(before: &[u8], after: &[u8]) -> Vec<(String, String)> {
    const SHOWN: usize = 4;
    let pairs = before.chunks(4).zip(after.chunks(4)).enumerate();
    let differ: Vec<_> = pairs.filter(|(_, (old, new))| old != new).collect();
    let mut changed: Vec<_> = differ
        .iter()
        .take(SHOWN)
        .map(|(index, (old, new))| {
            (
                format!("+{:#x}", index * 4),
                format!("{} (was {})", word(new), word(old)),
            )
        })
        .collect();
    if let Some(more @ 1..) = differ.len().checked_sub(SHOWN) {
        changed.push((
            "words".to_owned(),
            format!("{more} more, of {} bytes", after.len()),
        ));
    }
    changed
}

fn word(bytes: &[u8]) -> String {
    let number = bytes
        .iter()
        .rev()
        .fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    format!("{number:#x}")
}
