//! Control calls.

use std::sync::Arc;

use nv_proto::rm::{
    ChannelBind, ChannelGetMmuFaultInfo, ChannelGpfifoSchedule, ClearAllSmErrorStates, Control,
    FbFlushGpuCache, FbGetInfoV2, GetWorkSubmitToken, GpuGetAttachedIds, GpuGetClasslistV2,
    GpuGetGidInfo, GpuGetIdInfoV2, GpuGetNameString, GpuGetNumSubdevices, GpuGetUuidFromGpuId,
    GrGetGpcMask, GrGetTpcMask, GrSetCtxswPreemptionMode, GroupGpfifoSchedule,
    GroupSetInterleaveLevel, GroupSetTimeslice, Layout, PerfBoost, ReadAllSmErrorStates,
    ReadMmuFaultInfo, ReadSingleSmErrorState, SetExceptionMask, Status, SystemGetP2pCapsV2,
    TimerGetGpuCpuTimeCorrelationInfo, TimerGetTime, control_shape,
};
use nv_proto::unit::{ClassId, Handle};

use crate::channel::{Channel, Group, lock};
use crate::chip::Chip;
use crate::fault::{Detail, GLOBAL_ESR};
use crate::fields::Fields;
use crate::gpu::Gpu;

use super::object::Body;
use super::{Machine, Refused};

/// `NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2`.
pub(super) const SYSTEM_GET_BUILD_VERSION_V2: u32 = 0x13e;
/// The first release whose parameters have room for the branch.
const BUILD_VERSION_GREW: nv_proto::rm::DriverVersion =
    nv_proto::rm::DriverVersion::new(560, 28, 3);

impl Machine {
    /// `NV0080_CTRL_CMD_GPU_GET_CLASSLIST`: the classes that a device offers.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn class_list(&self, client: Handle, device: Handle) -> Result<Vec<ClassId>, Status> {
        let clients = lock(&self.clients);
        let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
        match objects.body(device) {
            Some(Body::Device(device)) => Ok(device.gpu.chip.classes().to_vec()),
            Some(_) => Err(Status::NOT_SUPPORTED),
            None => Err(Status::OBJECT_NOT_FOUND),
        }
    }

    /// `NV2080_CTRL_CMD_GR_GET_INFO`: facts of the graphics engine by index, in the order asked.
    ///
    /// # Errors
    /// The status that the kernel driver answers.
    pub fn gr_info(
        &self,
        client: Handle,
        subdevice: Handle,
        indices: &[u32],
    ) -> Result<Vec<u32>, Status> {
        let clients = lock(&self.clients);
        let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
        match objects.body(subdevice) {
            Some(Body::Subdevice(device)) => indices
                .iter()
                .map(|index| gr_info(device.gpu.chip, *index))
                .collect(),
            Some(_) => Err(Status::NOT_SUPPORTED),
            None => Err(Status::OBJECT_NOT_FOUND),
        }
    }
}

/// A fact by `NV2080_CTRL_GR_INFO_INDEX_*`; 0 for those that no compute client needs.
fn gr_info(chip: Chip, index: u32) -> Result<u32, Status> {
    const LAST: u32 = 0x34;
    Ok(match index {
        // SHADER_PIPE_COUNT, LITTER_NUM_GPCS
        0x07 | 0x14 => chip.gpcs(),
        // SHADER_PIPE_SUB_COUNT
        0x09 => chip.sm_count() / chip.sms_per_tpc(),
        // SM_VERSION
        0x0c => chip.gr_sm_version(),
        // MAX_WARPS_PER_SM
        0x0d => chip.warps_per_sm(),
        // MAX_THREADS_PER_WARP
        0x0e => 32,
        // LITTER_NUM_TPC_PER_GPC
        0x17 => chip.tpcs_per_gpc(),
        // LITTER_NUM_SM_PER_TPC
        0x20 => chip.sms_per_tpc(),
        0..=LAST => 0,
        _ => return Err(Status::INVALID_ARGUMENT),
    })
}

pub(super) fn control(
    machine: &Machine,
    client: Handle,
    object: Handle,
    command: u32,
    params: &mut [u8],
) -> Result<(), Status> {
    machine.refuses(Refused::Control(command))?;
    let clients = lock(&machine.clients);
    let objects = clients.get(&client.0).ok_or(Status::INVALID_CLIENT)?;
    let body = objects
        .body(object)
        .ok_or(Status::OBJECT_NOT_FOUND)?
        .clone();
    drop(clients);

    if command == SYSTEM_GET_BUILD_VERSION_V2 {
        return match body {
            Body::Client => build_version(machine, params),
            _ => Err(Status::NOT_SUPPORTED),
        };
    }
    let shape = control_shape(command).ok_or(Status::NOT_SUPPORTED)?;
    let mut fields = Fields::exactly(shape, machine.options.version, params)?;
    match body {
        Body::Client => client_control(machine, command, &mut fields),
        Body::Device(device) => match command {
            GpuGetClasslistV2::COMMAND => {
                let classes = device.gpu.chip.classes();
                fields.set_u32("numClasses", classes.len() as u32);
                let bytes: Vec<u8> = classes
                    .iter()
                    .flat_map(|class| class.0.to_le_bytes())
                    .collect();
                fields.set("classList", &bytes);
                Ok(())
            }
            GpuGetNumSubdevices::COMMAND => {
                fields.set_u32("numSubDevices", 1);
                Ok(())
            }
            _ => Err(Status::NOT_SUPPORTED),
        },
        Body::Subdevice(device) => subdevice_control(&device.gpu, command, &mut fields),
        Body::Group { device, group, .. } => match command {
            GroupGpfifoSchedule::COMMAND => {
                schedule_group(&device.gpu, &group, fields.u8("bEnable") != 0);
                Ok(())
            }
            // Channels run in turns whatever these say.
            GroupSetTimeslice::COMMAND | GroupSetInterleaveLevel::COMMAND => Ok(()),
            _ => Err(Status::NOT_SUPPORTED),
        },
        Body::Channel { gpu, channel } => channel_control(&gpu, &channel, command, &mut fields),
        Body::Debugger { gpu, channel } => {
            debugger_control(machine, client, &gpu, &channel, command, &mut fields)
        }
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// Answers the release as the driver does, with nothing else.
fn build_version(machine: &Machine, params: &mut [u8]) -> Result<(), Status> {
    let version = machine.options.version;
    let size = if version < BUILD_VERSION_GREW {
        0x308
    } else {
        0x408
    };
    if params.len() != size {
        return Err(Status::INVALID_PARAM_STRUCT);
    }
    params.fill(0);
    for (target, source) in params.iter_mut().zip(version.to_string().bytes()) {
        *target = source;
    }
    Ok(())
}

fn client_control(machine: &Machine, command: u32, fields: &mut Fields<'_>) -> Result<(), Status> {
    /// An entry that names no GPU (`NV0000_CTRL_GPU_INVALID_ID`).
    const INVALID_ID: u32 = 0xffff_ffff;
    let by_id = |id: u32| {
        machine
            .gpus
            .iter()
            .find(|gpu| Machine::gpu_id(gpu.index) == id)
            .ok_or(Status::INVALID_ARGUMENT)
    };
    match command {
        GpuGetAttachedIds::COMMAND => {
            let ids = machine.gpus.iter().map(|gpu| Machine::gpu_id(gpu.index));
            let ids = ids.chain(std::iter::repeat(INVALID_ID)).take(32);
            let bytes: Vec<u8> = ids.flat_map(u32::to_le_bytes).collect();
            fields.set("gpuIds", &bytes);
            Ok(())
        }
        GpuGetIdInfoV2::COMMAND => {
            let gpu = by_id(fields.u32("gpuId"))?;
            fields.set_u32("gpuFlags", 0);
            fields.set_u32("deviceInstance", gpu.index);
            fields.set_u32("subDeviceInstance", 0);
            fields.set_u32("boardId", Machine::gpu_id(gpu.index));
            fields.set_u32("gpuInstance", gpu.index);
            fields.set_u32("numaId", u32::MAX);
            Ok(())
        }
        GpuGetUuidFromGpuId::COMMAND => {
            let gpu = by_id(fields.u32("gpuId"))?;
            fields.set("gpuUuid", &gpu.uuid);
            fields.set_u32("uuidStrLen", gpu.uuid.len() as u32);
            Ok(())
        }
        SystemGetP2pCapsV2::COMMAND => machine.p2p_caps(fields),
        _ => Err(Status::NOT_SUPPORTED),
    }
}

fn subdevice_control(gpu: &Gpu, command: u32, fields: &mut Fields<'_>) -> Result<(), Status> {
    let chip = gpu.chip;
    match command {
        GpuGetGidInfo::COMMAND => {
            // `FORMAT` 1:1 BINARY; the text form has the same digits.
            if fields.u32("flags") & 0x2 == 0 {
                return Err(Status::NOT_SUPPORTED);
            }
            fields.set_u32("length", gpu.uuid.len() as u32);
            fields.set("data", &gpu.uuid);
            Ok(())
        }
        GpuGetNameString::COMMAND => {
            let mut name = chip.product().as_bytes().to_vec();
            name.push(0);
            fields.set("gpuNameString", &name);
            Ok(())
        }
        // The simulated multiprocessors are shared out instruction by instruction, whatever this says.
        GrSetCtxswPreemptionMode::COMMAND => Ok(()),
        GrGetGpcMask::COMMAND => {
            fields.set_u32("gpcMask", (1 << chip.gpcs()) - 1);
            Ok(())
        }
        GrGetTpcMask::COMMAND => {
            let gpc = fields.u32("gpcId");
            if gpc >= chip.gpcs() {
                return Err(Status::INVALID_ARGUMENT);
            }
            // The enabled TPCs, spread evenly.
            let tpcs = chip.sm_count() / chip.sms_per_tpc();
            let here = tpcs / chip.gpcs() + u32::from(gpc < tpcs % chip.gpcs());
            fields.set_u32("tpcMask", (1 << here) - 1);
            Ok(())
        }
        FbGetInfoV2::COMMAND => fb_info(gpu, fields),
        TimerGetTime::COMMAND => {
            fields.set_u64("time_nsec", gpu.nanoseconds());
            Ok(())
        }
        TimerGetGpuCpuTimeCorrelationInfo::COMMAND => {
            let count = fields.u8("sampleCount");
            if !(1..=16).contains(&count) {
                return Err(Status::INVALID_ARGUMENT);
            }
            // The CPU's clock and the GPU's are one here.
            let samples: Vec<u8> = (0..count)
                .flat_map(|_| {
                    let now = gpu.nanoseconds().to_le_bytes();
                    [now, now].concat()
                })
                .collect();
            fields.set("samples", &samples);
            Ok(())
        }
        // Neither clocks nor caches are modelled: the calls are taken and change nothing.
        PerfBoost::COMMAND | FbFlushGpuCache::COMMAND => Ok(()),
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// Facts of the memory by `NV2080_CTRL_FB_INFO_INDEX_*`, sizes in KiB.
fn fb_info(gpu: &Gpu, fields: &mut Fields<'_>) -> Result<(), Status> {
    let count = fields.u32("fbInfoListSize") as usize;
    let used = gpu.used.load(std::sync::atomic::Ordering::Acquire);
    let list = fields.from("fbInfoList");
    let entries = list
        .get_mut(..count.saturating_mul(8))
        .ok_or(Status::INVALID_ARGUMENT)?;
    for entry in entries.chunks_exact_mut(8) {
        let (index, data) = entry.split_at_mut(4);
        let index = u32::from_le_bytes(index.try_into().unwrap_or_default());
        let kib = match index {
            // RAM_SIZE, TOTAL_RAM_SIZE, HEAP_SIZE, USABLE_RAM_SIZE
            7..=9 | 0x20 => gpu.capacity >> 10,
            // HEAP_FREE
            0x16 => gpu.capacity.saturating_sub(used) >> 10,
            _ => 0,
        };
        data.copy_from_slice(&u32::try_from(kib).unwrap_or(u32::MAX).to_le_bytes());
    }
    Ok(())
}

/// Lets a group's channels run or not. Entries may have been put into their rings already.
fn schedule_group(gpu: &Arc<Gpu>, group: &Group, enable: bool) {
    group.schedule(enable);
    for channel in group.channels() {
        gpu.ring(gpu.token(&channel));
    }
}

fn channel_control(
    gpu: &Arc<Gpu>,
    channel: &Arc<Channel>,
    command: u32,
    fields: &mut Fields<'_>,
) -> Result<(), Status> {
    match command {
        GetWorkSubmitToken::COMMAND => {
            fields.set_u32("workSubmitToken", gpu.token(channel).0);
            Ok(())
        }
        ChannelGpfifoSchedule::COMMAND => {
            channel.scheduled.store(
                fields.u8("bEnable") != 0,
                std::sync::atomic::Ordering::Release,
            );
            gpu.ring(gpu.token(channel));
            Ok(())
        }
        ChannelBind::COMMAND => Ok(()),
        ChannelGetMmuFaultInfo::COMMAND => {
            if let Some(Detail::Mmu { va, fault_type, .. }) =
                channel.report().map(|report| report.detail)
            {
                fields.set_u32("addrHi", (va >> 32) as u32);
                fields.set_u32("addrLo", va as u32);
                fields.set_u32("faultType", fault_type);
            }
            Ok(())
        }
        _ => Err(Status::NOT_SUPPORTED),
    }
}

fn debugger_control(
    machine: &Machine,
    client: Handle,
    gpu: &Gpu,
    own: &Arc<Channel>,
    command: u32,
    fields: &mut Fields<'_>,
) -> Result<(), Status> {
    /// The most states of one call (`NV83DE_CTRL_DEBUG_MAX_SMS_PER_CALL`).
    const STATES: u32 = 100;
    /// Size of `NV83DE_SM_ERROR_STATE_REGISTERS`.
    const STATE_BYTES: usize = 48;

    let channel = match fields.u32("hTargetChannel") {
        0 => own.clone(),
        handle => machine
            .channel(client, Handle(handle))
            .ok_or(Status::INVALID_OBJECT_HANDLE)?,
    };
    let detail = channel
        .report()
        .map_or(Detail::None, |report| report.detail);
    match command {
        ReadAllSmErrorStates::COMMAND => {
            let (count, first) = (fields.u32("numSMsToRead"), fields.u32("startingSM"));
            if count > STATES || first >= gpu.chip.sm_count() {
                return Err(Status::INVALID_ARGUMENT);
            }
            let states = fields.from("smErrorStateArray");
            for (state, sm) in states
                .chunks_exact_mut(STATE_BYTES)
                .zip(first..first + count)
            {
                error_state(detail, sm, state);
            }
            fields.set("mmuFault", &[0; 8]);
            if let Detail::Mmu { .. } = detail {
                fields.set("mmuFault", &[1]);
            }
            Ok(())
        }
        ReadSingleSmErrorState::COMMAND => {
            let sm = fields.u32("smID");
            if sm >= gpu.chip.sm_count() {
                return Err(Status::INVALID_ARGUMENT);
            }
            let state = fields.from("smErrorState");
            error_state(detail, sm, state.get_mut(..STATE_BYTES).unwrap_or_default());
            Ok(())
        }
        ReadMmuFaultInfo::COMMAND => {
            let count = if let Detail::Mmu {
                va,
                fault_type,
                access_type,
            } = detail
            {
                let mut entry = va.to_le_bytes().to_vec();
                entry.extend(fault_type.to_le_bytes());
                entry.extend(access_type.to_le_bytes());
                fields.set("mmuFaultInfoList", &entry);
                1
            } else {
                0
            };
            fields.set_u32("count", count);
            Ok(())
        }
        ClearAllSmErrorStates::COMMAND => {
            channel.clear_report();
            Ok(())
        }
        SetExceptionMask::COMMAND => Ok(()),
        _ => Err(Status::NOT_SUPPORTED),
    }
}

/// Fills in `NV83DE_SM_ERROR_STATE_REGISTERS` of one SM.
fn error_state(detail: Detail, sm: u32, state: &mut [u8]) {
    let mut registers = nv_proto::rm::SmErrorState::default();
    match detail {
        Detail::Sm {
            sm: faulted,
            warp_esr,
            address,
            pc,
        } if faulted == sm => {
            registers.hww_global_esr.set(GLOBAL_ESR);
            registers.hww_warp_esr.set(warp_esr);
            registers.hww_warp_esr_pc.set(pc as u32);
            registers.hww_esr_addr.set(address);
            registers.hww_warp_esr_pc64.set(pc);
        }
        _ => {}
    }
    let bytes = zerocopy::IntoBytes::as_bytes(&registers);
    debug_assert_eq!(
        Some(bytes.len()),
        nv_proto::rm::SmErrorState::SHAPE.full.into()
    );
    for (target, source) in state.iter_mut().zip(bytes) {
        *target = *source;
    }
}
