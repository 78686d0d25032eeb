//! Sandboxes: what grants only computing, and calls refused one by one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use nv_host::{Backend, Device, Error, MapMode, Options, SimMachine};
use nv_proto::rm::names::classes::*;
use nv_proto::rm::{self, Control};
use nv_sim::{Chip, Sandbox};
use nv_tests::conformance::{self as suite, works};

fn machine(sandbox: Sandbox, gpus: usize) -> SimMachine {
    let options = nv_sim::Options {
        sandbox,
        ..nv_sim::Options::default()
    };
    SimMachine::new(&vec![Chip::Gh100; gpus], options).unwrap()
}

fn options(machine: &SimMachine, map_mode: Option<MapMode>) -> Options {
    Options {
        backend: Backend::SimIn(machine.clone(), 0),
        map_mode,
        ..Options::default()
    }
}

/// The default options, with nothing said of how memory is mapped.
#[test]
fn computing_is_enough() {
    let machine = machine(Sandbox::Compute, 1);
    let options = options(&machine, None);
    let device = Device::open(&options).unwrap();
    assert_eq!(device.info().map_mode, MapMode::Uvm);
    drop(device);
    suite::kernels::vadd(&options);
    suite::kernels::reduction(&options);
    suite::kernels::local_memory(&options);
    suite::kernels::generic_pointers(&options);
    suite::copies::copies(&options);
    suite::streams::streams(&options);
    assert_eq!(machine.machine().object_count(), 0);
}

/// Without a sandbox the faster way is taken, and works as well.
#[test]
fn without_a_sandbox_rm_maps() {
    let machine = machine(Sandbox::Open, 1);
    let options = options(&machine, None);
    assert_eq!(Device::open(&options).unwrap().info().map_mode, MapMode::Rm);
    suite::kernels::vadd(&options);
    suite::kernels::local_memory(&options);
    assert_eq!(machine.machine().object_count(), 0);
}

#[test]
fn what_the_sandbox_refuses_is_named() {
    let machine = machine(Sandbox::Compute, 1);
    let refused = Device::open(&options(&machine, Some(MapMode::Rm)));
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("NV01_MEMORY_VIRTUAL") && text.contains("NV_ERR_INSUFFICIENT_PERMISSIONS"),
        "{text}"
    );
    assert_eq!(machine.machine().object_count(), 0);
    assert_eq!(machine.machine().vidmem_used(0), 0);
}

/// A fault has its code where the debugger is refused, and the device works after it.
#[test]
fn faults_are_told_without_the_debugger() {
    let machine = machine(Sandbox::Compute, 1);
    let device = Device::open(&options(&machine, None)).unwrap();
    let module = suite::module(&device, "faults");
    let trap = module.function("trap").unwrap();
    let memory = device.upload(&[7_u64; 16]).unwrap();
    let stream = device.stream().unwrap();
    let launch = stream.launch(&trap).block(32).arg(&memory);
    match launch.submit().unwrap().wait() {
        Err(Error::Fault(report)) => {
            assert_eq!(report.code, Some(13), "{report}");
            assert!(report.to_string().contains("trap"), "{report}");
        }
        other => panic!("{other:?}"),
    }
    works(&device);
}

#[test]
fn two_gpus_of_a_sandbox_have_everything_of_each_other() {
    let machine = machine(Sandbox::Compute, 2);
    let open = |index| {
        let backend = Backend::SimIn(machine.clone(), index);
        Device::open(&Options {
            backend,
            ..Options::default()
        })
        .unwrap()
    };
    let (a, b) = (open(0), open(1));
    b.can_access(&a).unwrap();
    suite::peers::mapping_between(&a, &b);
    suite::peers::copies_between(&a, &b);
    suite::peers::signals_between(&a, &b);
}

/// What a device does without.
const OPTIONAL: [u32; 9] = [
    GT200_DEBUGGER.0,
    NV50_P2P.0,
    rm::PerfBoost::COMMAND,
    rm::FbFlushGpuCache::COMMAND,
    rm::GpuGetNameString::COMMAND,
    rm::SystemGetP2pCapsV2::COMMAND,
    rm::GpuGetUuidFromGpuId::COMMAND,
    rm::TimerGetGpuCpuTimeCorrelationInfo::COMMAND,
    // `NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2`.
    0x13e,
];

#[test]
fn optional_calls_may_be_refused() {
    let machine = machine(Sandbox::Open, 1);
    let each = OPTIONAL.iter().map(|number| vec![*number]);
    for refused in each.chain([OPTIONAL.to_vec()]) {
        machine.machine().refuse(&refused);
        for mode in [MapMode::Rm, MapMode::Uvm] {
            works(&Device::open(&options(&machine, Some(mode))).unwrap());
        }
    }
    assert_eq!(machine.machine().object_count(), 0);
}

/// What a device cannot do without, with what the error names it by.
const REQUIRED: [(u32, &str); 13] = [
    (NV01_DEVICE_0.0, "NV01_DEVICE_0"),
    (NV20_SUBDEVICE_0.0, "NV20_SUBDEVICE_0"),
    (FERMI_VASPACE_A.0, "FERMI_VASPACE_A"),
    (NV01_MEMORY_LOCAL_USER.0, "NV01_MEMORY_LOCAL_USER"),
    (NV01_MEMORY_SYSTEM.0, "NV01_MEMORY_SYSTEM"),
    (KEPLER_CHANNEL_GROUP_A.0, "KEPLER_CHANNEL_GROUP_A"),
    (FERMI_CONTEXT_SHARE_A.0, "FERMI_CONTEXT_SHARE_A"),
    (0xc661, "HOPPER_USERMODE_A"),
    (0xc86f, "HOPPER_CHANNEL_GPFIFO_A"),
    (0xcbc0, "HOPPER_COMPUTE_A"),
    (0xc8b5, "HOPPER_DMA_COPY_A"),
    (
        rm::GetWorkSubmitToken::COMMAND,
        "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
    ),
    (
        rm::GroupGpfifoSchedule::COMMAND,
        "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE",
    ),
];

#[test]
fn required_calls_that_are_refused_are_clean_errors() {
    for mode in [MapMode::Rm, MapMode::Uvm] {
        let machine = machine(Sandbox::Open, 1);
        let options = options(&machine, Some(mode));
        for (number, name) in REQUIRED {
            machine.machine().refuse(&[number]);
            let opened = Device::open(&options).and_then(|device| device.stream().map(drop));
            let text = opened.unwrap_err().to_string();
            assert!(text.contains(name), "{mode:?}, {name}: {text}");
            assert_eq!(machine.machine().object_count(), 0, "{mode:?}, {name}");
            assert_eq!(machine.machine().vidmem_used(0), 0, "{mode:?}, {name}");
            machine.machine().refuse(&[]);
            works(&Device::open(&options).unwrap());
        }
    }
}

/// Where neither way of mapping is left, the error tells of both.
#[test]
fn both_ways_refused_are_both_told() {
    let machine = machine(Sandbox::Compute, 1);
    machine.machine().refuse(&[rm::GpuGetGidInfo::COMMAND]);
    let text = Device::open(&options(&machine, None))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("NV01_MEMORY_VIRTUAL") && text.contains("NV2080_CTRL_CMD_GPU_GET_GID_INFO"),
        "{text}"
    );
    assert_eq!(machine.machine().object_count(), 0);
}
