//! Kernels of our own: large copies and fills within GPU memory, which the copy engine of a compute channel does at
//! a twentieth of the memory's speed (measured on an H200: 186 GB/s, and 4,200 by a kernel).

use std::sync::{Arc, OnceLock};

use nv_proto::cubin::Variant;
use nv_proto::unit::{GpuVa, SmVersion};

use crate::Error;
use crate::context::{Context, lock};
use crate::driver::Kind;
use crate::module::{Function, Module, runs_on};
use crate::stream::{Event, Stream};

/// Cubins of `builtin/builtin.cu`, by the architecture that they are for.
const CUBINS: [(SmVersion, &[u8]); 5] = [
    (
        SmVersion(75),
        include_bytes!("../builtin/builtin.sm_75.cubin"),
    ),
    (
        SmVersion(80),
        include_bytes!("../builtin/builtin.sm_80.cubin"),
    ),
    (
        SmVersion(90),
        include_bytes!("../builtin/builtin.sm_90.cubin"),
    ),
    (
        SmVersion(100),
        include_bytes!("../builtin/builtin.sm_100.cubin"),
    ),
    (
        SmVersion(120),
        include_bytes!("../builtin/builtin.sm_120.cubin"),
    ),
];

/// Bytes of the word that a thread moves.
const WORD: u64 = 16;
/// Threads of a block (`__launch_bounds__` in `builtin.cu`).
const BLOCK: u32 = 256;
/// From how many bytes on a kernel is used: below, its launch takes as long as the copy engine does.
pub(crate) const LEAST: u64 = 256 << 10;

/// The kernels on one device.
#[derive(Clone, Debug)]
pub(crate) struct Builtin {
    copy: Function,
    fill: Function,
}

/// The kernels as a stream keeps them: loaded at the first need; `None` where there are none for the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded(Arc<OnceLock<Option<Builtin>>>);

impl Loaded {
    /// The kernels, unless the device has none or copies by its engine as fast. A context loads them once for as
    /// long as one of its streams keeps them.
    pub(crate) fn get(&self, context: &Context) -> Option<&Builtin> {
        self.0
            .get_or_init(|| {
                // The simulated copy engine is faster than a kernel on the simulated multiprocessors.
                let real = context.info().kind == Kind::Kernel;
                // A module that cannot be loaded leaves the copy engine, which says what is wrong if that is too.
                real.then(|| Builtin::load(context).ok()).flatten()
            })
            .as_ref()
    }
}

impl Builtin {
    /// Loads the kernels, or finds them loaded.
    pub(crate) fn load(context: &Context) -> Result<Self, Error> {
        let mut loaded = lock(&context.inner().builtin);
        let module = match Module::of_weak(&loaded) {
            Some(module) => module,
            None => {
                let sm = context.info().sm;
                let suits = |(file, _): &&(SmVersion, &[u8])| runs_on(*file, Variant::Base, sm);
                let Some((_, cubin)) = CUBINS.iter().rfind(suits) else {
                    return Err(Error::Unsupported(format!("no kernel of ours is for {sm}")));
                };
                let module = context.load(cubin)?;
                *loaded = module.downgrade();
                module
            }
        };
        Ok(Self {
            copy: module.function("copy16")?,
            fill: module.function("fill16")?,
        })
    }

    /// Copies `bytes`, of which what is more than whole words is left for the caller: it answers the bytes done.
    pub(crate) fn copy(
        &self,
        stream: &Stream,
        target: GpuVa,
        source: GpuVa,
        bytes: u64,
    ) -> Result<Option<(Event, u64)>, Error> {
        let words = words(bytes, &[target, source]);
        let Some((words, grid)) = words else {
            return Ok(None);
        };
        let launch = stream.launch(&self.copy).grid(grid).block(BLOCK);
        let event = launch.arg(target).arg(source).arg(words).submit()?;
        Ok(Some((event, words * WORD)))
    }

    /// Fills `bytes` with a pattern of 4, as [`Builtin::copy`].
    pub(crate) fn fill(
        &self,
        stream: &Stream,
        target: GpuVa,
        pattern: u32,
        bytes: u64,
    ) -> Result<Option<(Event, u64)>, Error> {
        let Some((words, grid)) = words(bytes, &[target]) else {
            return Ok(None);
        };
        let launch = stream.launch(&self.fill).grid(grid).block(BLOCK);
        let event = launch.arg(target).arg(pattern).arg(words).submit()?;
        Ok(Some((event, words * WORD)))
    }
}

/// The words of `bytes` and the blocks for them; `None` for what a kernel does not do, or not faster.
fn words(bytes: u64, places: &[GpuVa]) -> Option<(u64, u32)> {
    let aligned = places.iter().all(|place| place.0.is_multiple_of(WORD));
    if bytes < LEAST || !aligned {
        return None;
    }
    let words = bytes / WORD;
    let grid = u32::try_from(words.div_ceil(BLOCK.into())).ok()?;
    Some((words, grid))
}

#[cfg(all(test, feature = "sim"))]
#[allow(
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]
mod tests {
    use super::*;
    use crate::{Backend, Device, Options};
    use nv_sim::Chip;

    fn device(chip: Chip) -> Device {
        Device::open(&Options {
            backend: Backend::Sim(chip),
            ..Options::default()
        })
        .unwrap()
    }

    #[test]
    fn each_chip_copies_and_fills() {
        for chip in [
            Chip::Ga100,
            Chip::Ga102,
            Chip::Ad102,
            Chip::Gh100,
            Chip::Gb202,
        ] {
            let device = device(chip);
            let kernels = Builtin::load(&device).unwrap();
            let stream = device.stream().unwrap();
            let len = (LEAST as usize / 4) + 3;
            let values: Vec<u32> = (0..len as u32).collect();
            let source = device.upload(&values).unwrap();
            let target = device.upload(&vec![7_u32; len + 64]).unwrap();
            let bytes = len as u64 * 4;
            let (_, done) = kernels
                .copy(&stream, target.va(), source.va(), bytes)
                .unwrap()
                .unwrap();
            assert_eq!(done, LEAST, "whole words only");
            stream.synchronize().unwrap();
            let copied = target.read().unwrap();
            let whole = done as usize / 4;
            assert_eq!(copied[..whole], values[..whole]);
            assert!(copied[whole..].iter().all(|value| *value == 7));

            let (_, done) = kernels
                .fill(&stream, target.va(), 0xabcd, bytes)
                .unwrap()
                .unwrap();
            stream.synchronize().unwrap();
            let filled = target.read().unwrap();
            assert!(
                filled[..done as usize / 4]
                    .iter()
                    .all(|value| *value == 0xabcd)
            );
            assert!(filled[done as usize / 4..].iter().all(|value| *value == 7));
        }
    }

    #[test]
    fn what_a_kernel_does_not_do_is_left_to_the_engine() {
        let device = device(Chip::Gh100);
        let kernels = Builtin::load(&device).unwrap();
        let stream = device.stream().unwrap();
        let at = GpuVa(1 << 37);
        let copy = |target, source, bytes| kernels.copy(&stream, target, source, bytes).unwrap();
        assert!(copy(at, at, LEAST - 1).is_none());
        assert!(copy(GpuVa(at.0 + 8), at, LEAST).is_none());
        assert!(copy(at, GpuVa(at.0 + 4), LEAST).is_none());
        assert!(
            kernels
                .fill(&stream, GpuVa(at.0 + 4), 0, LEAST)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn streams_share_the_kernels_and_end_them() {
        let device = device(Chip::Gh100);
        let (first, second) = (
            Builtin::load(&device).unwrap(),
            Builtin::load(&device).unwrap(),
        );
        assert_eq!(
            first.copy.inner().facts.program,
            second.copy.inner().facts.program
        );
        drop((first, second));
        assert!(Module::of_weak(&lock(&device.inner().builtin)).is_none());
    }
}
