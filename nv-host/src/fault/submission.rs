//! What a submission asked of the GPU, read back from its own words: which kernels, and what in it makes no sense.
//!
//! Read only once something went wrong: nothing is kept for it while all goes well.

use std::fmt;

use nv_proto::class::{self, ClassSet};
use nv_proto::push::host::SET_OBJECT;
use nv_proto::push::{PushReader, Subchannel, compute, table};
use nv_proto::qmd::value::{DependentQmdAction, QmdType};
use nv_proto::qmd::{MAX_WORDS, Qmd, Version};
use nv_proto::unit::{ClassId, Dim3, GpuVa};

/// A piece of work of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Submission {
    /// Its number on the stream: submissions count up from 1, the set-up of the stream being the first.
    pub number: u64,
    /// The number of the newest submission of the stream.
    pub newest: u64,
    /// The launches in it, in order, at most 64.
    pub launches: Vec<AskedLaunch>,
    /// Launch descriptors that lie where they cannot be read from here, at most 8.
    pub unread: Vec<GpuVa>,
    /// The kernel that it was submitted for, where its words tell of no launch.
    pub kernel: Option<String>,
    /// What in it makes no sense, at most 8.
    pub doubts: Vec<Doubt>,
}

/// A launch, as its descriptor says.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AskedLaunch {
    /// The kernel that its program address is that of.
    pub kernel: Option<String>,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of shared memory of a block, reserved ones included.
    pub shared_bytes: u32,
    /// The address of the descriptor.
    pub descriptor: GpuVa,
}

/// Something in a submission that makes no sense.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// The ring's entry or the command words.
    Commands(String),
    /// A method that its class is not known to have.
    Method(String),
    /// A launch descriptor.
    Descriptor(String),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Commands(text) | Self::Method(text) | Self::Descriptor(text)) = self;
        f.write_str(text)
    }
}

/// How many launches are listed.
const LAUNCHES: usize = 64;
/// How many descriptors are listed that cannot be read.
const UNREAD: usize = 8;
/// How many doubts are listed.
const DOUBTS: usize = 8;

/// Where a submission's memory and the kernels are looked up.
pub(crate) trait Look {
    /// Copies out of GPU memory; `false` where it cannot be read from here.
    fn read(&self, va: GpuVa, bytes: &mut [u8]) -> bool;
    /// Whether any memory is mapped at an address.
    fn is_mapped(&self, va: GpuVa) -> bool;
    /// The kernel that begins at, or holds, an address.
    fn kernel(&self, program: GpuVa) -> Option<String>;
}

impl Submission {
    /// Reads what `words` ask of engines of `classes`.
    pub(crate) fn examine(&mut self, words: &[u32], classes: &ClassSet, look: &impl Look) {
        let mut bound = [None; Subchannel::COUNT as usize];
        for (subchannel, class) in [
            (Subchannel::COMPUTE, classes.compute),
            (Subchannel::COPY, classes.copy),
        ] {
            if let Some(place) = bound.get_mut(usize::from(subchannel.number())) {
                *place = Some(class);
            }
        }
        let mut descriptor = None;
        for packet in PushReader::new(words) {
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) => {
                    self.doubt(Doubt::Commands(error.to_string()));
                    return;
                }
            };
            for write in packet.writes() {
                let (method, data) = (write.method, write.data);
                let own = bound.get_mut(usize::from(write.subchannel.number()));
                if method == SET_OBJECT {
                    if let Some(own) = own {
                        *own = Some(ClassId(data & 0xffff));
                    }
                    continue;
                }
                let class = if method.is_host() {
                    Some(classes.gpfifo)
                } else {
                    own.and_then(|own| *own)
                };
                let at = packet.offset;
                let Some(class) = class else {
                    let text = format!(
                        "word {at}: method {method} on subchannel {}, which is bound to no class",
                        write.subchannel.number()
                    );
                    self.doubt(Doubt::Method(text));
                    continue;
                };
                if table::method(class, method).is_none() {
                    let name = class::name(class).unwrap_or("an unnamed class");
                    let text = format!("word {at}: {name} has no method {method} (data {data:#x})");
                    self.doubt(Doubt::Method(text));
                }
                match method {
                    compute::SEND_PCAS_A => descriptor = Some(GpuVa(u64::from(data) << 8)),
                    compute::SEND_SIGNALING_PCAS_B | compute::SEND_SIGNALING_PCAS2_B => {
                        if let Some(at) = descriptor.take() {
                            self.launch(at, classes.qmd, look);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Reads the descriptor at `first` and those that depend on it.
    fn launch(&mut self, first: GpuVa, version: Version, look: &impl Look) {
        let mut next = Some(first);
        for _ in 0..LAUNCHES {
            let Some(va) = next.take().filter(|_| self.launches.len() < LAUNCHES) else {
                return;
            };
            let mut bytes = [0; MAX_WORDS * 4];
            let bytes = bytes.get_mut(..version.bytes()).unwrap_or_default();
            if !look.read(va, bytes) {
                if !look.is_mapped(va) {
                    let text = format!("launch descriptor at {:#x}, where no memory is", va.0);
                    self.doubt(Doubt::Descriptor(text));
                } else if self.unread.len() < UNREAD {
                    self.unread.push(va);
                }
                return;
            }
            let mut words = [0; MAX_WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
            let words = words.get(..version.words()).unwrap_or(&words);
            let bad =
                |why: String| Doubt::Descriptor(format!("launch descriptor at {:#x}: {why}", va.0));
            let qmd = match Qmd::decode_as(version, words) {
                Ok(qmd) => qmd,
                Err(error) => return self.doubt(bad(error.to_string())),
            };
            // The version numbers in it, which a decoding as the version wanted does not look at.
            match Version::detect(words) {
                Ok(other) if other == version => {}
                Ok(other) => {
                    let text = format!("it is of version {other}, and this GPU takes {version}");
                    return self.doubt(bad(text));
                }
                Err(error) => return self.doubt(bad(error.to_string())),
            }
            match qmd.launch() {
                // No grid: it is there for its releases and dependents.
                _ if qmd.kind() == QmdType::GRID_NULL => {}
                Ok(launch) => self.launches.push(AskedLaunch {
                    kernel: look.kernel(launch.program),
                    grid: launch.grid,
                    block: launch.block,
                    local_bytes: launch
                        .local_low_bytes
                        .saturating_add(launch.local_high_bytes),
                    shared_bytes: launch.shared_bytes,
                    descriptor: va,
                }),
                Err(error) => return self.doubt(bad(error.to_string())),
            }
            let schedules = |action| {
                matches!(
                    action,
                    DependentQmdAction::QMD_SCHEDULE
                        | DependentQmdAction::QMD_INVALIDATE_COPY_SCHEDULE
                )
            };
            next = qmd
                .dependent(0)
                .filter(|dependent| schedules(dependent.action))
                .map(|dependent| dependent.va);
        }
    }

    /// Reads the descriptors that could not be read before, in another way.
    pub(crate) fn read_unread(&mut self, version: Version, look: &impl Look) {
        for va in std::mem::take(&mut self.unread) {
            self.launch(va, version, look);
        }
    }

    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        if self.doubts.len() < DOUBTS {
            self.doubts.push(doubt);
        }
    }

    /// The one kernel that it runs, if it is one.
    #[must_use]
    pub fn only_kernel(&self) -> Option<&str> {
        match &*self.launches {
            [] => self.kernel.as_deref(),
            [one] => one.kernel.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "submission {} of {} on its stream",
            self.number, self.newest
        )?;
        match &*self.launches {
            [] => match &self.kernel {
                Some(kernel) => write!(f, ", kernel {kernel}")?,
                None if self.doubts.is_empty() && self.unread.is_empty() => {
                    write!(f, ", which launches nothing")?
                }
                None => {}
            },
            [one] => write!(f, ": {one}")?,
            [first, rest @ ..] => {
                write!(f, ": {first}, and {} more", rest.len())?;
                let mut named = vec![&first.kernel];
                for AskedLaunch { kernel, .. } in rest {
                    if !named.contains(&kernel) {
                        named.push(kernel);
                        let name = kernel.as_deref().unwrap_or("a kernel of no loaded module");
                        let before = if named.len() == 2 {
                            ", among them"
                        } else {
                            ","
                        };
                        write!(f, "{before} {name}")?;
                    }
                }
            }
        }
        for GpuVa(at) in &self.unread {
            write!(
                f,
                "; a launch whose descriptor, at {at:#x}, cannot be read from here"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for AskedLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kernel {
            Some(kernel) => write!(f, "kernel {kernel}")?,
            None => write!(f, "a kernel of no loaded module")?,
        }
        write!(f, ", grid {}, block {}", self.grid, self.block)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
    use nv_proto::push::{MethodAddr, PushWriter, RunOp};
    use nv_proto::qmd::Dependent;

    use super::*;

    /// Memory by address; the kernel of an address is named by it.
    #[derive(Default)]
    struct Memory {
        readable: BTreeMap<u64, Vec<u8>>,
        mapped: Vec<u64>,
    }

    impl Look for Memory {
        fn read(&self, va: GpuVa, bytes: &mut [u8]) -> bool {
            let Some(there) = self.readable.get(&va.0) else {
                return false;
            };
            bytes.copy_from_slice(&there[..bytes.len()]);
            true
        }

        fn is_mapped(&self, va: GpuVa) -> bool {
            self.mapped.contains(&va.0) || self.readable.contains_key(&va.0)
        }

        fn kernel(&self, program: GpuVa) -> Option<String> {
            (program.0 != 0).then(|| format!("kernel_{:x}", program.0))
        }
    }

    fn classes() -> ClassSet {
        let offered = [0xc661, 0xc86f, 0xcbc0, 0xc8b5].map(ClassId);
        class::select_classes(&offered).unwrap()
    }

    fn words(fill: impl Fn(&mut PushWriter<'_>)) -> Vec<u32> {
        let mut words = [0; 128];
        let mut push = PushWriter::new(&mut words);
        fill(&mut push);
        push.finish().to_vec()
    }

    fn launch(at: u64) -> Vec<u32> {
        words(|push| {
            push.write(Subchannel::COMPUTE, &SendPcas { qmd: GpuVa(at) })
                .unwrap();
            push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)
                .unwrap();
        })
    }

    fn examined(words: &[u32], memory: &Memory) -> Submission {
        let mut submission = Submission::default();
        submission.examine(words, &classes(), memory);
        submission
    }

    fn qmd(program: u64) -> Qmd {
        let mut qmd = Qmd::new(Version::V04_00);
        let kind = Version::V04_00.field("QMD_TYPE").unwrap();
        qmd.set_field(kind, 0, QmdType::GRID_CTA.0).unwrap();
        qmd.set_program(GpuVa(program), 0x100).unwrap();
        qmd.set_grid(Dim3::new(7, 2, 1)).unwrap();
        qmd.set_block(Dim3::from(96)).unwrap();
        qmd
    }

    #[test]
    fn launches_are_read_with_their_chain() {
        let mut memory = Memory::default();
        let mut first = qmd(0x1000);
        let next = Dependent::schedule(GpuVa(0x20_0000));
        first.set_dependent(0, Some(next)).unwrap();
        memory.readable.insert(0x10_0000, first.as_bytes().to_vec());
        memory
            .readable
            .insert(0x20_0000, qmd(0x2000).as_bytes().to_vec());
        let found = examined(&launch(0x10_0000), &memory);
        let kernels: Vec<_> = found
            .launches
            .iter()
            .map(|l| l.kernel.as_deref().unwrap())
            .collect();
        assert_eq!(kernels, ["kernel_1000", "kernel_2000"]);
        assert_eq!(found.launches[0].grid, Dim3::new(7, 2, 1));
        assert_eq!(found.launches[1].block, Dim3::from(96));
        assert_eq!(found.doubts, []);
        assert_eq!(found.only_kernel(), None);

        // A chain that never ends is listed as far as it is long.
        let mut round = qmd(0x1000);
        let itself = Dependent::schedule(GpuVa(0x10_0000));
        round.set_dependent(0, Some(itself)).unwrap();
        memory.readable.insert(0x10_0000, round.as_bytes().to_vec());
        let found = examined(&launch(0x10_0000), &memory);
        assert_eq!(found.launches.len(), LAUNCHES);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let mut memory = Memory::default();
        let old = Qmd::new(Version::V03_00);
        let mut bytes = old.as_bytes().to_vec();
        bytes.resize(MAX_WORDS * 4, 0);
        memory.readable.insert(0x10_0000, bytes);
        memory.mapped.push(0x20_0000);
        let told = |words: &[u32]| {
            let found = examined(words, &memory);
            let texts: Vec<_> = found.doubts.iter().map(ToString::to_string).collect();
            texts.join("; ")
        };
        assert!(told(&launch(0x10_0000)).contains("it is of version 3.0, and this GPU takes 4.0"));
        assert!(told(&launch(0x30_0000)).contains("at 0x300000, where no memory is"));
        assert_eq!(told(&launch(0x20_0000)), "");
        assert_eq!(
            examined(&launch(0x20_0000), &memory).unread,
            [GpuVa(0x20_0000)]
        );
        let none = MethodAddr::new(0xff0).unwrap();
        let on = |subchannel| {
            words(|push| {
                push.run(RunOp::Inc, subchannel, none, &[5]).unwrap();
            })
        };
        assert_eq!(
            told(&on(Subchannel::COMPUTE)),
            "word 0: HOPPER_COMPUTE_A has no method 0xff0 (data 0x5)"
        );
        let third = Subchannel::new(3).unwrap();
        assert!(told(&on(third)).contains("subchannel 3, which is bound to no class"));
        assert!(told(&[0xc001_0000]).contains("SEC_OP 6"));
        // Rubbish makes few doubts, and no panic.
        let mut state = 1_u32;
        for _ in 0..2000 {
            let words: Vec<u32> = (0..64)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Short packets, so that more than the first is read.
                    if state & 0x100 == 0 {
                        0x2001_0000 | state >> 16 & 0xffff
                    } else {
                        state
                    }
                })
                .collect();
            assert!(examined(&words, &memory).doubts.len() <= DOUBTS);
        }
    }
}
