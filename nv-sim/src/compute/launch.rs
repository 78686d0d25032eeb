//! Launches: from the descriptor to a grid, and what its end sets off.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nv_proto::push::compute;
use nv_proto::qmd::value::{DependentQmdAction, QmdType, ReductionOp};
use nv_proto::qmd::{LaunchView, MAX_WORDS, Qmd, Release as QmdRelease, ReleaseSize, Version};
use nv_proto::unit::{Dim3, GpuVa};

use crate::access;
use crate::chip::Chip;
use crate::engine::{COMPUTE, Context, Reduction, Release, bad_data};
use crate::fault::Stop;
use crate::memory::{Access, AddressSpace};
use crate::sm::{self, ConstantBank, Grid};

use super::{Compute, Origin};

/// Threads of a warp.
const WARP: u32 = 32;
/// Registers of an SM.
const REGISTER_FILE: u32 = 0x1_0000;
/// The largest constant bank.
const BANK_BYTES: u32 = 0x1_0000;
/// The most releases that a version has, and the most dependents.
const RELEASES: u32 = 3;
const DEPENDENTS: u32 = 2;

impl Compute {
    /// Runs the descriptor of `SEND_PCAS_A` and those that depend on it.
    pub(super) fn launch(
        &mut self,
        context: &mut Context<'_>,
        origin: impl Fn() -> Origin,
    ) -> Result<(), Stop> {
        let va = u64::from(self.register(compute::SEND_PCAS_A)) << 8;
        context.refresh();
        let mut queue = VecDeque::from([va]);
        let (mut descriptors, mut releases) = (Vec::new(), Vec::new());
        while let Some(va) = queue.pop_front() {
            if context.channel.cancel.load(Ordering::Acquire) {
                return Err(Stop::Cancelled);
            }
            self.in_flight.check(va, origin().entry)?;
            let qmd = read(context, va)?;
            self.run(context, va, &qmd)?;
            descriptors.push(va);
            for release in (0..RELEASES).filter_map(|index| qmd.release(index)) {
                perform(context, release)?;
                releases.push(release.va.0);
            }
            for dependent in (0..DEPENDENTS).filter_map(|index| qmd.dependent(index)) {
                match dependent.action {
                    DependentQmdAction::QMD_SCHEDULE
                    | DependentQmdAction::QMD_INVALIDATE_COPY_SCHEDULE => {
                        queue.push_back(dependent.va.0);
                    }
                    other => {
                        let text = format!(
                            "QMD at {va:#x}: action {} on a dependent QMD is not implemented",
                            other.0
                        );
                        return Err(bad_data(COMPUTE.0, COMPUTE.1, text));
                    }
                }
            }
            // A chain may be endless, but what is remembered of it is not.
            descriptors.truncate(InFlight::MOST);
            releases.truncate(InFlight::MOST);
        }
        self.in_flight
            .add(&descriptors, &releases, origin().submitted);
        Ok(())
    }

    fn run(&self, context: &Context<'_>, va: u64, qmd: &Qmd) -> Result<(), Stop> {
        if qmd.kind() == QmdType::GRID_NULL {
            // No grid: it is there for its releases and dependents, as NVIDIA's library uses one.
            return Ok(());
        }
        let launch = qmd.launch().map_err(|error| {
            Stop::Hang(format!(
                "QMD at {va:#x}: {error}: the GPU never completes it"
            ))
        })?;
        self.check(context, qmd, &launch)
            .map_err(|why| bad_data(COMPUTE.0, COMPUTE.1, format!("QMD at {va:#x}: {why}")))?;
        let LaunchView {
            grid,
            block,
            cluster,
            cooperative,
            program,
            ..
        } = launch;
        let local_bytes = launch
            .local_low_bytes
            .saturating_add(launch.local_high_bytes);
        let banks = launch.banks.map(|bank| {
            bank.map_or(ConstantBank::default(), |(GpuVa(va), size)| ConstantBank {
                va,
                size,
            })
        });
        let chip = context.gpu.chip;
        let grid = Grid {
            sm: chip.sm_version(),
            grid,
            block,
            cluster,
            cooperative,
            program: program.0,
            registers: launch.registers as u16,
            barriers: launch.barriers as u8,
            shared_bytes: launch.shared_bytes,
            local_bytes,
            banks,
            shared_window: self.address(compute::SET_SHADER_SHARED_MEMORY_WINDOW_A),
            local_window: self.address(compute::SET_SHADER_LOCAL_MEMORY_WINDOW_A),
            sm_count: chip.sm_count(),
        };
        if grid.grid.count() == 0 {
            // No blocks: done as soon as it begins.
            return Ok(());
        }
        let run = || sm::run(&grid, &*context.table, &context.channel.cancel);
        match context.gpu.run_grid(context.worker, run) {
            Ok(_) => Ok(()),
            Err(fault) => Err(Stop::grid(&fault, &context.table)),
        }
    }

    /// What the scheduler of the hardware checks before a grid starts. The names are those of its error
    /// register, as the nouveau driver lists them for GK104 and NVIDIA's logs show them ("SKEDCHECK").
    fn check(&self, context: &Context<'_>, qmd: &Qmd, launch: &LaunchView) -> Result<(), String> {
        let chip = context.gpu.chip;
        let fail = |name: &str, why: String| Err(format!("scheduler check {name}: {why}"));
        let Dim3 { x, y, z } = launch.block;
        let threads = launch.block.count();
        if threads == 0 {
            return fail(
                "CTA_THREAD_DIMENSION_ZERO",
                format!("a block of {x}x{y}x{z} threads"),
            );
        }
        if threads > 1024 {
            return fail(
                "TOTAL_THREADS",
                format!("a block of {threads} threads; 1024 is the most"),
            );
        }
        let registers = launch.registers;
        if registers == 0 || registers > 255 {
            return fail(
                "REGISTER_COUNT",
                format!("{registers} registers; 1 to 255 are possible"),
            );
        }
        // Registers are given out by warps of 32 threads in units of 8 (occupancy tables of all these chips).
        let warps = (threads as u32).div_ceil(WARP);
        let total = warps * registers.next_multiple_of(8) * WARP;
        if total > REGISTER_FILE {
            let text =
                format!("{warps} warps of {registers} registers take {total} of {REGISTER_FILE}");
            return fail("TOTAL_REGISTER_COUNT", text);
        }
        for (index, bank) in launch.banks.iter().enumerate() {
            if let Some((_, size)) = bank
                && *size > BANK_BYTES
            {
                return fail(
                    "CONSTANT_BUFFER_SIZE",
                    format!("bank {index} of {size} bytes"),
                );
            }
        }
        self.check_shared(chip, qmd, launch)?;
        let clusters = launch.cluster;
        if clusters.count() == 0 || clusters.count() > 16 {
            return Err(format!("a cluster of {clusters} blocks; 16 are the most"));
        }
        self.check_local(context, launch)
    }

    fn check_shared(&self, chip: Chip, qmd: &Qmd, launch: &LaunchView) -> Result<(), String> {
        let name = "MAX_SM_CONFIG_SHARED_MEM_SIZE";
        let largest = qmd.field(name, 0).map_or(0, |field| field.raw);
        // In units of 4 KiB plus one.
        if largest == 0 || largest > chip.shared_kb() / 4 + 1 {
            return Err(format!(
                "scheduler check SHARED_CONFIG: {name} is {largest:#x}; this chip has 1 to {:#x}",
                chip.shared_kb() / 4 + 1
            ));
        }
        if launch.shared_bytes > (largest - 1) * 4096 {
            return Err(format!(
                "scheduler check SHARED_CONFIG_TOO_SMALL: a block's {} bytes do not fit the {} KiB of {name}",
                launch.shared_bytes,
                (largest - 1) * 4
            ));
        }
        Ok(())
    }

    /// Whether the local memory that was set up is enough, and is there.
    fn check_local(&self, context: &Context<'_>, launch: &LaunchView) -> Result<(), String> {
        let chip = context.gpu.chip;
        let per_thread = launch
            .local_low_bytes
            .saturating_add(launch.local_high_bytes);
        if per_thread == 0 {
            return Ok(());
        }
        let per_tpc = self.address(compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A);
        let warps = u64::from(chip.warps_per_sm() * chip.sms_per_tpc());
        let needed = (u64::from(per_thread) * u64::from(WARP)).next_multiple_of(0x200) * warps;
        if needed > per_tpc {
            return Err(format!(
                "scheduler check LOCAL_MEMORY_TOTAL_SIZE: {per_thread} bytes a thread take {needed:#x} \
                 bytes a TPC, and SET_SHADER_LOCAL_MEMORY_NON_THROTTLED gives {per_tpc:#x}"
            ));
        }
        let first = self.address(compute::SET_SHADER_LOCAL_MEMORY_A);
        let tpcs = u64::from(chip.sm_count() / chip.sms_per_tpc());
        let last = first
            .saturating_add(per_tpc.saturating_mul(tpcs))
            .saturating_sub(1);
        for va in [first, last] {
            context
                .table
                .cell(va, Access::Write)
                .map_err(|fault| format!("local memory from {first:#x} to {last:#x}: {fault}"))?;
        }
        Ok(())
    }
}

/// Reads the descriptor at `va`, which has to be of the chip's version.
fn read(context: &Context<'_>, va: u64) -> Result<Qmd, Stop> {
    let version = match context.gpu.chip.qmd_major() {
        3 => Version::V03_00,
        4 => Version::V04_00,
        _ => Version::V05_00,
    };
    let mut bytes = [0; MAX_WORDS * 4];
    let bytes = bytes.get_mut(..version.bytes()).unwrap_or_default();
    access::read(&*context.table, va, bytes).map_err(context.mmu("compute: QMD fetch"))?;
    let mut words = [0; MAX_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    let words = words.get(..version.words()).unwrap_or(&words);
    let qmd = Qmd::decode_as(version, words)
        .map_err(|error| bad_data(COMPUTE.0, COMPUTE.1, format!("QMD at {va:#x}: {error}")))?;
    let field = |name| qmd.field(name, 0).map_or(0, |field| field.raw);
    let major = field("QMD_MAJOR_VERSION");
    let minor = if version.major() < 4 {
        field("QMD_VERSION")
    } else {
        field("QMD_MINOR_VERSION")
    };
    if (major, minor) == (version.major().into(), version.minor().into()) {
        return Ok(qmd);
    }
    // As measured on an H200 with a version 3 descriptor: no error, and no end.
    Err(Stop::Hang(match Version::detect(words) {
        Ok(other) => format!(
            "QMD at {va:#x} is of version {other}, and {} runs {version}: the GPU never completes it",
            context.gpu.chip
        ),
        Err(_) => format!(
            "QMD at {va:#x} says version {major}.{minor}, and {} runs {version}: the GPU never completes it",
            context.gpu.chip
        ),
    }))
}

fn perform(context: &Context<'_>, release: QmdRelease) -> Result<(), Stop> {
    let QmdRelease {
        va,
        payload,
        size,
        reduction,
        ..
    } = release;
    let reduction = match reduction {
        None => None,
        Some(how) => Some((operation(how.op)?, how.signed)),
    };
    Release {
        va: va.0,
        payload,
        wide: size != ReleaseSize::Word,
        timestamp: size == ReleaseSize::Timestamp,
        reduction,
    }
    .perform(context, "compute: release of a QMD", COMPUTE.1)
}

fn operation(op: ReductionOp) -> Result<Reduction, Stop> {
    Ok(match op {
        ReductionOp::RED_ADD => Reduction::Add,
        ReductionOp::RED_MIN => Reduction::Min,
        ReductionOp::RED_MAX => Reduction::Max,
        ReductionOp::RED_INC => Reduction::Inc,
        ReductionOp::RED_DEC => Reduction::Dec,
        ReductionOp::RED_AND => Reduction::And,
        ReductionOp::RED_OR => Reduction::Or,
        ReductionOp::RED_XOR => Reduction::Xor,
        other => {
            let text = format!("reduction {} of a QMD's release is unknown", other.0);
            return Err(bad_data(COMPUTE.0, COMPUTE.1, text));
        }
    })
}

/// Descriptors that may still be running for all that the client can know.
///
/// Grids end here before the next method runs, but on hardware they go on while the channel does: a
/// descriptor launched again in that time hangs the channel (seen on an H200). It was launched too early for
/// certain where the second launch was submitted before the first one ended, and nothing in between waited
/// for it.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    launches: HashMap<u64, Flight>,
    next: u64,
}

#[derive(Debug)]
struct Flight {
    /// Launches are numbered.
    number: u64,
    /// The last entry that had been submitted when it ended.
    submitted: u64,
    /// The semaphores that its end released.
    releases: Arc<[u64]>,
}

impl InFlight {
    /// How many are remembered; with more, all are forgotten, and one launched again is not noticed.
    const MOST: usize = 0x1_0000;

    pub(super) fn clear(&mut self) {
        self.launches.clear();
    }

    fn check(&self, va: u64, entry: u64) -> Result<(), Stop> {
        match self.launches.get(&va) {
            Some(flight) if entry <= flight.submitted => Err(Stop::Hang(format!(
                "QMD at {va:#x} is launched again while it is in flight: the GPU never completes it"
            ))),
            _ => Ok(()),
        }
    }

    fn add(&mut self, descriptors: &[u64], releases: &[u64], submitted: u64) {
        if self.launches.len() + descriptors.len() > Self::MOST {
            self.launches.clear();
        }
        self.next += 1;
        let releases = Arc::<[u64]>::from(releases);
        for va in descriptors {
            let releases = releases.clone();
            self.launches.insert(
                *va,
                Flight {
                    number: self.next,
                    submitted,
                    releases,
                },
            );
        }
    }

    /// A semaphore was waited for.
    pub(super) fn released(&mut self, va: u64) {
        let flights = self
            .launches
            .values()
            .filter(|flight| flight.releases.contains(&va));
        if let Some(last) = flights.map(|flight| flight.number).max() {
            self.launches.retain(|_, flight| flight.number > last);
        }
    }
}
