//! Which GPUs the environment lets a program see.

use std::fmt;

use super::Gpu;
use crate::Error;

/// The choice in `VISIBLE_DEVICES` or, without it, in `CUDA_VISIBLE_DEVICES`: indices in bus order, or UUIDs of
/// which the first characters do, separated by commas.
///
/// As with the vendor's library, the first entry that names no GPU ends the list, so that `-1` hides the rest.
/// An entry for a part of a GPU (`MIG-…`) is refused: parts are not supported.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VisibleDevices {
    variable: &'static str,
    list: String,
}

impl VisibleDevices {
    /// What the environment says; `None` where it says nothing, so that all GPUs are visible.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        Self::from_lookup(|variable| std::env::var(variable).ok())
    }

    /// What variables say that are looked up otherwise.
    #[must_use]
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        VARIABLES.iter().find_map(|variable| {
            Some(Self {
                variable,
                list: lookup(variable)?,
            })
        })
    }

    /// The places in `gpus` of those that are visible, in the order named.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a part of a GPU; [`Error::InvalidArgument`] for one that is named twice, or a
    /// UUID's beginning that several share.
    pub fn resolve(&self, gpus: &[Gpu]) -> Result<Vec<usize>, Error> {
        self.resolve_uuids(&gpus.iter().map(|gpu| gpu.uuid.clone()).collect::<Vec<_>>())
    }

    /// As [`VisibleDevices::resolve`], of GPUs of which the UUIDs alone are known.
    pub(crate) fn resolve_uuids(&self, gpus: &[Option<String>]) -> Result<Vec<usize>, Error> {
        let mut visible = Vec::new();
        for entry in self.list.split(',').map(str::trim) {
            if entry.starts_with("MIG-") {
                return Err(Error::Unsupported(format!(
                    "{self}: parts of GPUs are not supported"
                )));
            }
            let Some(place) = self.place(entry, gpus)? else {
                break;
            };
            if visible.contains(&place) {
                return Err(Error::InvalidArgument(format!(
                    "{self}: {entry} is named twice"
                )));
            }
            visible.push(place);
        }
        Ok(visible)
    }

    fn place(&self, entry: &str, gpus: &[Option<String>]) -> Result<Option<usize>, Error> {
        if let Ok(index) = entry.parse::<usize>() {
            return Ok(Some(index).filter(|index| *index < gpus.len()));
        }
        if !entry.starts_with("GPU-") {
            return Ok(None);
        }
        let named = |uuid: &Option<String>| uuid.as_deref().is_some_and(|it| it.starts_with(entry));
        let mut places = gpus
            .iter()
            .enumerate()
            .filter(|(_, gpu)| named(gpu))
            .map(|(at, _)| at);
        let first = places.next();
        if places.next().is_some() {
            return Err(Error::InvalidArgument(format!(
                "{self}: several GPUs begin with {entry}"
            )));
        }
        Ok(first)
    }
}

impl fmt::Display for VisibleDevices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.variable, self.list)
    }
}

/// The first that is set counts.
const VARIABLES: [&str; 2] = ["VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
