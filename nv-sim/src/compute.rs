//! The compute engine: its methods, and the uploads that they carry. Launches are in [`launch`].

mod launch;

use nv_proto::push::MethodAddr;
use nv_proto::push::compute::{
    self, CompletionType, LaunchDma, MemoryLayout, PcasAction, ReductionFormat, ReductionOp,
    ReportOperation, ReportSemaphoreD, SendSignalingPcas, SendSignalingPcas2, StructSize,
};

use crate::access;
use crate::engine::{
    COMPUTE_CLASS, Context, Reduction, Registers, Release, bad_data, unknown_method,
};
use crate::fault::Stop;

use launch::InFlight;

/// The compute engine's state of one channel.
#[derive(Debug, Default)]
pub(crate) struct Compute {
    registers: Registers,
    upload: Option<Upload>,
    in_flight: InFlight,
}

/// An inline upload whose data is coming in.
#[derive(Clone, Copy, Debug)]
struct Upload {
    va: u64,
    left: u32,
    launch: LaunchDma,
}

/// Which entry of the ring a method came from, for telling whether a launch may still be running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The number of the entry that runs.
    pub(crate) entry: u64,
    /// The number of the last entry submitted by now.
    pub(crate) submitted: u64,
}

impl Compute {
    pub(crate) fn method(
        &mut self,
        context: &mut Context<'_>,
        method: MethodAddr,
        data: u32,
        origin: impl Fn() -> Origin,
    ) -> Result<(), Stop> {
        let bad = |error| bad_data(COMPUTE_CLASS.0, COMPUTE_CLASS.1, error);
        if method == compute::LOAD_INLINE_DATA {
            return self.load_inline_data(context, data);
        }
        self.registers.set(method.bytes(), data);
        match method {
            compute::LAUNCH_DMA => self.begin_upload(data),
            compute::SEND_SIGNALING_PCAS_B => {
                let signal = SendSignalingPcas::decode(data).map_err(bad)?;
                if signal.schedule {
                    self.launch(context, origin)
                } else {
                    Ok(())
                }
            }
            compute::SEND_SIGNALING_PCAS2_B => {
                match SendSignalingPcas2::decode(data).map_err(bad)?.action {
                    PcasAction::Schedule
                    | PcasAction::InvalidateCopySchedule
                    | PcasAction::PrefetchSchedule
                    | PcasAction::InvalidatePrefetchCopySchedule
                    | PcasAction::InvalidatePrefetchCopyForceRequireScheduling => {
                        self.launch(context, origin)
                    }
                    PcasAction::Nop | PcasAction::Invalidate | PcasAction::Prefetch => Ok(()),
                    other => Err(bad_data(
                        COMPUTE_CLASS.0,
                        COMPUTE_CLASS.1,
                        format!("SEND_SIGNALING_PCAS2_B: {other:?} is not implemented"),
                    )),
                }
            }
            compute::SET_REPORT_SEMAPHORE_D => self.report(context, data),
            compute::REPORT_SEMAPHORE_EXECUTE => self.report_execute(context, data),
            compute::WAIT_FOR_IDLE => {
                self.idle();
                Ok(())
            }
            other if STATE.contains(&other) || has_no_effect(other.bytes()) => Ok(()),
            other => Err(unknown_method(
                COMPUTE_CLASS,
                context.gpu.chip.compute_class(),
                other,
                data,
            )),
        }
    }

    /// Notes that all launches so far have ended.
    pub(crate) fn idle(&mut self) {
        self.in_flight.clear();
    }

    /// Notes that a semaphore was waited for: launches that release it have ended, and those before them.
    pub(crate) fn acquired(&mut self, va: u64) {
        self.in_flight.released(va);
    }

    fn register(&self, method: MethodAddr) -> u32 {
        self.registers.get(method.bytes())
    }

    fn address(&self, upper: MethodAddr) -> u64 {
        self.registers.upper_lower(upper.bytes())
    }

    fn begin_upload(&mut self, data: u32) -> Result<(), Stop> {
        let bad = |why: String| {
            Err(bad_data(
                COMPUTE_CLASS.0,
                COMPUTE_CLASS.1,
                format!("LAUNCH_DMA: {why}"),
            ))
        };
        let launch = match LaunchDma::decode(data) {
            Ok(launch) => launch,
            Err(error) => return bad(error.to_string()),
        };
        let lines = self.register(compute::LINE_COUNT);
        if launch.dst_memory_layout != MemoryLayout::Pitch || lines != 1 {
            return bad(format!(
                "an upload of {lines} lines in layout {:?} is not implemented",
                launch.dst_memory_layout
            ));
        }
        if let Some(upload) = self.upload {
            return bad(format!(
                "{} bytes of the upload before are missing",
                upload.left
            ));
        }
        let left = self.register(compute::LINE_LENGTH_IN);
        let va = self.address(compute::OFFSET_OUT_UPPER);
        self.upload = (left != 0).then_some(Upload { va, left, launch });
        Ok(())
    }

    fn load_inline_data(&mut self, context: &Context<'_>, data: u32) -> Result<(), Stop> {
        let Some(Upload { va, left, launch }) = self.upload else {
            let text = format!("LOAD_INLINE_DATA ({data:#x}) with no upload under way");
            return Err(bad_data(COMPUTE_CLASS.0, COMPUTE_CLASS.1, text));
        };
        let bytes = data.to_le_bytes();
        let count = left.min(4);
        access::write(
            &*context.table,
            va,
            bytes.get(..count as usize).unwrap_or(&bytes),
        )
        .map_err(context.mmu("compute: inline upload"))?;
        let left = left - count;
        self.upload = (left != 0).then_some(Upload {
            va: va.wrapping_add(4),
            left,
            launch,
        });
        if left == 0 && launch.completion_type == CompletionType::ReleaseSemaphore {
            let reduction = launch.reduction_enable.then_some((
                reduction(launch.reduction_op),
                launch.reduction_format == ReductionFormat::Signed32,
            ));
            Release {
                va: self.address(compute::SET_I2M_SEMAPHORE_A),
                payload: u64::from(self.register(compute::SET_I2M_SEMAPHORE_C)),
                wide: false,
                timestamp: launch.semaphore_struct_size == StructSize::FourWords,
                reduction,
            }
            .perform(context, "compute: inline upload", COMPUTE_CLASS.1)?;
        }
        Ok(())
    }

    fn report(&mut self, context: &Context<'_>, data: u32) -> Result<(), Stop> {
        let report = ReportSemaphoreD::decode(data)
            .map_err(|error| bad_data(COMPUTE_CLASS.0, COMPUTE_CLASS.1, error))?;
        if report.operation != ReportOperation::Release {
            let text = format!(
                "SET_REPORT_SEMAPHORE_D: {:?} is not implemented",
                report.operation
            );
            return Err(bad_data(COMPUTE_CLASS.0, COMPUTE_CLASS.1, text));
        }
        self.idle();
        Release {
            va: self.address(compute::SET_REPORT_SEMAPHORE_A),
            payload: u64::from(self.register(compute::SET_REPORT_SEMAPHORE_C)),
            wide: false,
            timestamp: report.structure_size == StructSize::FourWords,
            reduction: report.reduction_enable.then_some((
                reduction(report.reduction_op),
                report.reduction_format == ReductionFormat::Signed32,
            )),
        }
        .perform(context, COMPUTE_CLASS.0, COMPUTE_CLASS.1)
    }

    /// `REPORT_SEMAPHORE_EXECUTE` (`clcbc0.h`), of which releases are implemented.
    fn report_execute(&mut self, context: &Context<'_>, data: u32) -> Result<(), Stop> {
        let field = |lo: u32, bits: u32| data >> lo & ((1 << bits) - 1);
        let (operation, size) = (field(0, 2), field(3, 2));
        if operation != 0 || size == 3 || field(13, 2) != 0 || data >> 15 != 0 {
            let text = format!("REPORT_SEMAPHORE_EXECUTE: {data:#x} is not implemented");
            return Err(bad_data(COMPUTE_CLASS.0, COMPUTE_CLASS.1, text));
        }
        const OPERATIONS: [Reduction; 8] = [
            Reduction::Add,
            Reduction::Min,
            Reduction::Max,
            Reduction::Inc,
            Reduction::Dec,
            Reduction::And,
            Reduction::Or,
            Reduction::Xor,
        ];
        let how = OPERATIONS.get(field(7, 3) as usize).copied();
        self.idle();
        let half = |method| u64::from(self.register(method));
        Release {
            va: half(compute::SET_REPORT_SEMAPHORE_ADDRESS_UPPER) << 32
                | half(compute::SET_REPORT_SEMAPHORE_ADDRESS_LOWER),
            payload: half(compute::SET_REPORT_SEMAPHORE_PAYLOAD_UPPER) << 32
                | half(compute::SET_REPORT_SEMAPHORE_PAYLOAD_LOWER),
            wide: field(12, 1) != 0 || size == 2,
            timestamp: size == 0,
            reduction: how
                .filter(|_| field(6, 1) != 0)
                .map(|how| (how, field(10, 2) == 1)),
        }
        .perform(context, COMPUTE_CLASS.0, COMPUTE_CLASS.1)
    }
}

fn reduction(op: ReductionOp) -> Reduction {
    match op {
        ReductionOp::Add => Reduction::Add,
        ReductionOp::Min => Reduction::Min,
        ReductionOp::Max => Reduction::Max,
        ReductionOp::Inc => Reduction::Inc,
        ReductionOp::Dec => Reduction::Dec,
        ReductionOp::And => Reduction::And,
        ReductionOp::Or => Reduction::Or,
        ReductionOp::Xor => Reduction::Xor,
    }
}

/// Methods whose data others look up.
const STATE: &[MethodAddr] = &[
    compute::SET_REPORT_SEMAPHORE_PAYLOAD_LOWER,
    compute::SET_REPORT_SEMAPHORE_PAYLOAD_UPPER,
    compute::SET_REPORT_SEMAPHORE_ADDRESS_LOWER,
    compute::SET_REPORT_SEMAPHORE_ADDRESS_UPPER,
    compute::LINE_LENGTH_IN,
    compute::LINE_COUNT,
    compute::OFFSET_OUT_UPPER,
    compute::OFFSET_OUT,
    compute::PITCH_OUT,
    compute::SET_I2M_SEMAPHORE_A,
    compute::SET_I2M_SEMAPHORE_B,
    compute::SET_I2M_SEMAPHORE_C,
    compute::SET_SHADER_SHARED_MEMORY_WINDOW_A,
    compute::SET_SHADER_SHARED_MEMORY_WINDOW_B,
    compute::SEND_PCAS_A,
    compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
    compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B,
    compute::SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C,
    compute::SET_SHADER_LOCAL_MEMORY_A,
    compute::SET_SHADER_LOCAL_MEMORY_B,
    compute::SET_SHADER_LOCAL_MEMORY_WINDOW_A,
    compute::SET_SHADER_LOCAL_MEMORY_WINDOW_B,
    compute::SET_REPORT_SEMAPHORE_A,
    compute::SET_REPORT_SEMAPHORE_B,
    compute::SET_REPORT_SEMAPHORE_C,
];

/// Whether a method changes nothing here: there are no caches, clocks, counters, textures or trap handlers,
/// and macros may be loaded but not called (names in `clcbc0.h`).
fn has_no_effect(method: u16) -> bool {
    NO_EFFECT.contains(&method)
        || matches!(method,
            // LOAD_MME_*, SET_MME_SHADOW_RAM_CONTROL
            0x114..=0x124
            // SET_RESERVED_SW_METHOD
            | 0x220..=0x23c | 0x24c..=0x268
            // SET_FALCON
            | 0x500..=0x53c
            // SET_MME_SHADOW_SCRATCH
            | 0x3400..=0x37fc)
}

/// Single methods without effect.
const NO_EFFECT: &[u16] = &[
    0x100, // NO_OPERATION
    0x13c, // SEND_GO_IDLE
    0x140, 0x144, // PM_TRIGGER, PM_TRIGGER_WFI
    0x1e8, // SET_SM_SCG_CONTROL
    0x1f0, 0x1f4, 0x1f8, 0x1fc, // SET_I2M_SPARE_NOOP
    0x200, 0x204, 0x208, // SET_VALID_SPAN_OVERFLOW_AREA
    0x21c, 0x244, // INVALIDATE_SHADER_CACHES, INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI
    0x248, // SET_CWD_REF_COUNTER
    0x280, 0x284,
    0x288, // SET_COMPUTE_CLASS_VERSION, CHECK_COMPUTE_CLASS_VERSION, SET_QMD_VERSION
    0x298, 0x2b0, 0x2cc, // INVALIDATE_SKED_CACHES, SET_CWD_SLOT_COUNT, SET_SKED_CACHE_CONTROL
    0x310, // SET_SPA_VERSION
    0x7ac, 0x7fc, // SET_TEXTURE_HEADER_VERSION, THROTTLE_SM
    0xd94, 0xda0, // SET_SHADER_CACHE_CONTROL, SET_SCG_COMPUTE_SCHEDULING_PARAMETERS
    0xde4, // SET_SM_TIMEOUT_INTERVAL
    0x1288, 0x1330, 0x1334, 0x1338, 0x1424, // texture caches
    0x12a8, // ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT
    0x1528, // SET_SHADER_EXCEPTIONS
    0x155c, 0x1560, 0x1564, 0x1574, 0x1578, 0x157c, // texture pools
    0x1698, // INVALIDATE_SHADER_CACHES_NO_WFI
    0x1a2c, 0x1a30, 0x1a34, 0x1a38, 0x1a3c, // PIPE_NOP, SET_SPARE
    0x25f8, 0x25fc, // SET_TRAP_HANDLER
    0x2608, // SET_BINDLESS_TEXTURE
];
