//! placeholder
use crate::engine::Context;
use crate::fault::Stop;
#[derive(Debug, Default)]
pub(crate) struct Compute {}
impl Compute {
    pub(crate) fn method(
        &mut self,
        _c: &Context<'_>,
        _m: u16,
        _d: u32,
        _e: u64,
        _v: u64,
    ) -> Result<(), Stop> {
        Ok(())
    }
    pub(crate) fn idle(&mut self) {}
    pub(crate) fn acquired(&mut self, _va: u64) {}
}
