//! Driver releases: each branch known, releases that are not, and layouts that are forced.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use nv_host::{Backend, Device, Error, MapMode, Options, SimMachine};
use nv_proto::rm::{BRANCHES, DriverVersion};
use nv_sim::Chip;
use nv_tests::conformance::works;

fn machine(version: DriverVersion) -> SimMachine {
    let options = nv_sim::Options {
        version,
        ..nv_sim::Options::default()
    };
    SimMachine::new(&[Chip::Gh100], options).unwrap()
}

fn open(
    machine: &SimMachine,
    map_mode: MapMode,
    abi: Option<DriverVersion>,
) -> Result<Device, Error> {
    Device::open(&Options {
        backend: Backend::SimIn(machine.clone(), 0),
        map_mode: Some(map_mode),
        abi,
        ..Options::default()
    })
}

const MODES: [MapMode; 2] = [MapMode::Rm, MapMode::Uvm];

#[test]
fn every_known_branch_works_with_nothing_to_tell() {
    for branch in BRANCHES {
        let later = DriverVersion::new(branch.major, branch.last.minor + 20, 1);
        for version in [branch.first, branch.last, later] {
            let machine = machine(version);
            for mode in MODES {
                let device = open(&machine, mode, None)
                    .unwrap_or_else(|error| panic!("{version} {mode:?}: {error}"));
                assert_eq!(device.info().driver, version.to_string());
                assert_eq!(device.info().warnings, Vec::<String>::new(), "{version}");
                works(&device);
            }
        }
    }
}

#[test]
fn unknown_releases_work_with_one_warning() {
    for (version, says) in [
        (
            DriverVersion::new(999, 1, 1),
            "newer than all that are known",
        ),
        (
            DriverVersion::new(620, 10, 2),
            "newer than all that are known",
        ),
        (
            DriverVersion::new(600, 5, 0),
            "of a branch that is not known",
        ),
        (
            DriverVersion::new(540, 1, 0),
            "of a branch that is not known",
        ),
    ] {
        let machine = machine(version);
        for mode in MODES {
            let device = open(&machine, mode, None).unwrap();
            works(&device);
            let warnings = &device.info().warnings;
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(
                warnings[0].contains(says) && warnings[0].contains(&version.to_string()),
                "{warnings:?}"
            );
            assert_eq!(&device.new_context().unwrap().info().warnings, warnings);
        }
    }
}

#[test]
fn releases_too_old_are_refused_by_name() {
    for version in [
        DriverVersion::new(470, 256, 2),
        DriverVersion::new(535, 43, 1),
        DriverVersion::new(0, 0, 0),
    ] {
        let machine = machine(version);
        let text = open(&machine, MapMode::Rm, None).unwrap_err().to_string();
        assert!(
            text.contains(&version.to_string())
                && text.contains("older than 535.43.02")
                && text.contains("NV_DRIVER_ABI"),
            "{text}"
        );
        assert_eq!(machine.machine().object_count(), 0);
    }
}

#[test]
fn layouts_can_be_forced() {
    let newest = BRANCHES.last().unwrap().last;
    // What a release that is not known is taken to be like anyway.
    let future = machine(DriverVersion::new(999, 1, 1));
    let device = open(&future, MapMode::Rm, Some(newest)).unwrap();
    works(&device);
    assert_eq!(device.info().driver, "999.01.01");
    let warnings = &device.info().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("forced"),
        "{warnings:?}"
    );
    works(&device.new_context().unwrap());
    // One that is too old, with the layouts of the oldest.
    let old = machine(DriverVersion::new(470, 256, 2));
    let oldest = BRANCHES.first().unwrap().first;
    works(&open(&old, MapMode::Rm, Some(oldest)).unwrap());
    // Wrong layouts are refused by the driver, call by call, and all is given back.
    let known = machine(DriverVersion::new(580, 159, 4));
    for mode in MODES {
        let opened = open(&known, mode, Some(oldest));
        let text = opened
            .and_then(|device| device.stream().map(drop))
            .unwrap_err()
            .to_string();
        assert!(text.contains("NV_ERR_INVALID_PARAM_STRUCT"), "{text}");
        assert_eq!(known.machine().object_count(), 0);
    }
    let text = open(&known, MapMode::Rm, Some(DriverVersion::new(470, 1, 0)))
        .unwrap_err()
        .to_string();
    assert!(text.contains("older than"), "{text}");
    // The same release as its own is nothing to tell.
    let device = open(&known, MapMode::Rm, Some(DriverVersion::new(580, 159, 4))).unwrap();
    assert_eq!(device.info().warnings, Vec::<String>::new());
}
