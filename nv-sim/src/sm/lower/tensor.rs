//! Matrix operations across a warp.

use super::{Args, Lower, Refused};

impl Args<'_> {
    pub(super) fn tensor(&mut self) -> Lower {
        Err(Refused::Unimplemented)
    }
}
