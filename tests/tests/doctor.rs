//! What is known of a machine's GPUs with no permission to open one, on made-up machines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nv_host::probe::{
    self, Errno, Flavour, Gpu, Level, Module, PciAddress, Report, VisibleDevices,
};
use proptest::prelude::*;

/// A machine as far as its files tell.
struct Machine {
    root: PathBuf,
}

impl Machine {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("nv-machine-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self { root }
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn module(self, text: &str) -> Self {
        self.file("proc/driver/nvidia/version", text)
    }

    /// A GPU on the bus, held by a driver.
    fn on_bus(self, address: &str, class: &str, bound: &str) -> Self {
        let pci = format!("sys/bus/pci/devices/{address}");
        let machine = self
            .file(&format!("{pci}/vendor"), "0x10de\n")
            .file(&format!("{pci}/device"), "0x2335\n")
            .file(&format!("{pci}/class"), class);
        let folder = machine.root.join("sys/bus/pci/drivers").join(bound);
        fs::create_dir_all(&folder).unwrap();
        symlink(&folder, machine.root.join(pci).join("driver")).unwrap();
        machine
    }

    /// A GPU that the kernel module knows.
    fn known(self, address: &str, minor: u32, uuid: &str) -> Self {
        let text = format!(
            "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t {uuid}\nVideo BIOS: \t ??.??.??.??.??\n\
             Bus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n"
        );
        self.file(
            &format!("proc/driver/nvidia/gpus/{address}/information"),
            &text,
        )
    }

    /// Two GPUs of which all is well.
    fn healthy() -> Self {
        Self::new()
            .module(OPEN)
            .on_bus("0000:5d:00.0", "0x030200\n", "nvidia")
            .on_bus("0000:29:00.0", "0x030200\n", "nvidia")
            .known(
                "0000:29:00.0",
                1,
                "GPU-bc410591-9f5d-8fda-1b6c-54738aca43b6",
            )
            .known(
                "0000:5d:00.0",
                0,
                "GPU-af1bf078-09cb-1a64-4be6-83beaa3e6954",
            )
    }

    fn gpus(&self) -> Vec<Gpu> {
        probe::gpus(&self.root)
    }

    fn report(&self, refused: &[(&str, Errno)]) -> Report {
        self.report_with(None, refused)
    }

    fn report_with(&self, visible: Option<&VisibleDevices>, refused: &[(&str, Errno)]) -> Report {
        Report::new(&self.root, visible, |path| {
            match refused.iter().find(|(node, _)| Path::new(node) == path) {
                Some((_, errno)) => Err(*errno),
                None => Ok(()),
            }
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const OPEN: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  \
                    (dvs-builder@U22)  Mon Nov 3 2025\nGCC version:  gcc version 13.2.0\n";
const PROPRIETARY: &str =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n";

#[test]
fn both_flavours_of_the_module_are_told_apart() {
    let module =
        |text: &str| Module::parse(text).map(|module| (module.version.to_string(), module.flavour));
    assert_eq!(module(OPEN), Some(("580.159.04".into(), Flavour::Open)));
    assert_eq!(
        module(PROPRIETARY),
        Some(("535.183.01".into(), Flavour::Proprietary))
    );
    assert_eq!(
        module("570.86.15\n"),
        Some(("570.86.15".into(), Flavour::Unknown))
    );
    assert_eq!(module("NVRM version: none\n"), None);
    assert_eq!(module(""), None);

    let machine = Machine::new().file("sys/module/nvidia/version", "550.54.14\n");
    assert_eq!(
        Module::loaded(&machine.root).unwrap().version.to_string(),
        "550.54.14"
    );
    let machine = machine.module(PROPRIETARY);
    assert_eq!(
        Module::loaded(&machine.root).unwrap().flavour,
        Flavour::Proprietary
    );
    assert_eq!(Module::loaded(&Machine::new().root), None);
}

#[test]
fn gpus_are_listed_in_bus_order_with_what_is_known() {
    let gpus = Machine::healthy().gpus();
    assert_eq!(gpus.len(), 2);
    assert_eq!(
        gpus[0].address,
        PciAddress {
            domain: 0,
            bus: 0x29,
            slot: 0,
            function: 0
        }
    );
    assert_eq!(gpus[0].address.to_string(), "0000:29:00.0");
    assert_eq!(gpus[0].name(), "NVIDIA H200");
    assert_eq!(gpus[0].node.as_deref(), Some(Path::new("/dev/nvidia1")));
    assert_eq!(
        gpus[0].uuid.as_deref(),
        Some("GPU-bc410591-9f5d-8fda-1b6c-54738aca43b6")
    );
    assert_eq!(
        (gpus[0].device_id, gpus[0].bound.as_deref()),
        (Some(0x2335), Some("nvidia"))
    );
    assert_eq!(gpus[1].address.bus, 0x5d);
}

#[test]
fn gpus_without_the_module_show_on_the_bus() {
    let machine = Machine::new()
        .on_bus("0000:01:00.0", "0x030000\n", "nouveau")
        .on_bus("0000:01:00.1", "0x040300\n", "snd_hda_intel")
        .file("sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n")
        .file("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    let gpus = machine.gpus();
    // Neither the sound function nor another vendor's GPU.
    assert_eq!(gpus.len(), 1);
    assert_eq!(gpus[0].name(), "NVIDIA device 0x2335");
    assert_eq!((&gpus[0].uuid, &gpus[0].node), (&None, &None));
    let report = machine.report(&[("/dev/nvidiactl", Errno::ENOENT)]);
    let held = report
        .checks
        .iter()
        .find(|check| check.subject == "GPU at 0000:01:00.0")
        .unwrap();
    assert_eq!(held.level, Level::Limit);
    assert!(held.finding.contains("nouveau"));
    assert_eq!(report.level(), Level::Bad);
}

#[test]
fn a_uuid_that_is_not_told_is_none() {
    let machine = Machine::new().known(
        "0000:29:00.0",
        0,
        "GPU-????????-????-????-????-????????????",
    );
    assert_eq!(machine.gpus()[0].uuid, None);
}

#[test]
fn gpus_that_can_be_used_come_first() {
    let machine = Machine::new()
        .on_bus("0000:01:00.0", "0x030000\n", "nouveau")
        .known("0000:29:00.0", 0, "GPU-aa");
    let gpus = machine.gpus();
    assert_eq!((gpus[0].address.bus, gpus[0].known), (0x29, true));
    assert_eq!((gpus[1].address.bus, gpus[1].known), (0x01, false));
}

#[test]
fn a_sandbox_that_hides_proc_and_sys_is_a_limit() {
    let machine = Machine::new()
        .file("dev/nvidia0", "")
        .file("dev/nvidia-caps", "");
    let report = machine.report(&[]);
    assert_eq!(report.level(), Level::Limit);
    assert_eq!(check(&report, "kernel module").level, Level::Limit);
    assert_eq!(check(&report, "/dev/nvidia0").level, Level::Good);
    assert_eq!(
        check(&report, "what will work").finding,
        "1 of 1 GPUs, both ways of mapping memory"
    );
}

fn check<'a>(report: &'a Report, subject: &str) -> &'a probe::Check {
    report
        .checks
        .iter()
        .find(|check| check.subject == subject)
        .unwrap_or_else(|| panic!("{subject} is not among {:?}", report.checks))
}

#[test]
fn a_healthy_machine_is_good() {
    let report = Machine::healthy().report(&[]);
    assert_eq!(report.level(), Level::Good, "{report:?}");
    assert_eq!(
        check(&report, "kernel module").finding,
        "580.159.04, open kernel modules"
    );
    assert_eq!(
        check(&report, "driver release").finding,
        "known (branch 580)"
    );
    assert_eq!(
        check(&report, "what will work").finding,
        "2 of 2 GPUs, both ways of mapping memory"
    );
    assert!(report.checks.iter().all(|check| check.remedy.is_empty()));
}

#[test]
fn nodes_tell_their_causes_apart() {
    for (errno, finding, word) in [
        (Errno::ENOENT, "is missing (ENOENT)", "modprobe nvidia"),
        (
            Errno::EACCES,
            "is forbidden by its permissions (EACCES)",
            "ls -l /dev/nvidiactl",
        ),
        (
            Errno::EPERM,
            "is forbidden by a device rule (EPERM)",
            "--gpus all",
        ),
        (
            Errno::ENXIO,
            "has no driver behind it (ENXIO)",
            "reload the kernel module",
        ),
    ] {
        let report = Machine::healthy().report(&[("/dev/nvidiactl", errno)]);
        let control = check(&report, "/dev/nvidiactl");
        assert_eq!(
            (control.level, control.finding.as_str()),
            (Level::Bad, finding)
        );
        assert!(control.remedy.contains(word), "{}", control.remedy);
        assert_eq!(check(&report, "what will work").level, Level::Bad);
    }
}

#[test]
fn one_gpu_of_two_is_a_limit() {
    let report = Machine::healthy().report(&[("/dev/nvidia1", Errno::EPERM)]);
    assert_eq!(report.level(), Level::Limit);
    assert_eq!(
        check(&report, "what will work").finding,
        "1 of 2 GPUs, both ways of mapping memory"
    );
    let report = Machine::healthy().report(&[
        ("/dev/nvidia0", Errno::EPERM),
        ("/dev/nvidia1", Errno::EPERM),
    ]);
    assert_eq!(report.level(), Level::Bad);
}

#[test]
fn without_uvm_the_other_way_remains() {
    let report = Machine::healthy().report(&[("/dev/nvidia-uvm", Errno::ENOENT)]);
    assert_eq!(report.level(), Level::Limit);
    assert!(
        check(&report, "/dev/nvidia-uvm")
            .remedy
            .contains("map memory without UVM")
    );
    assert!(
        check(&report, "what will work")
            .finding
            .contains("by the resource manager alone")
    );
}

#[test]
fn an_empty_machine_says_what_is_left() {
    let all = ["/dev/nvidiactl", "/dev/nvidia-uvm"].map(|node| (node, Errno::ENOENT));
    let report = Machine::new().report(&all);
    assert_eq!(report.level(), Level::Bad);
    assert!(check(&report, "hardware").remedy.contains("--sim"));
    assert!(
        check(&report, "kernel module")
            .remedy
            .contains("modprobe nvidia")
    );
    assert!(
        check(&report, "what will work")
            .finding
            .contains("the simulated GPU can")
    );
}

#[test]
fn releases_are_judged() {
    let release = |version: &str| {
        let text = OPEN.replace("580.159.04", version);
        let report = Machine::healthy().module(&text).report(&[]);
        let check = check(&report, "driver release");
        (check.level, check.finding.clone())
    };
    assert_eq!(release("580.200.01").0, Level::Good);
    let (level, finding) = release("700.10.01");
    assert_eq!(
        (level, finding.as_str()),
        (Level::Limit, "not known: it is taken to be like branch 610")
    );
    let (level, finding) = release("470.256.02");
    assert_eq!(level, Level::Bad);
    assert!(finding.contains("older than 535.43.02"));
}

#[test]
fn forced_layouts_are_judged_and_excuse_the_release() {
    let report = |version: &str, forced| {
        let text = OPEN.replace("580.159.04", version);
        Machine::healthy()
            .module(&text)
            .report(&[])
            .with_forced(forced)
    };
    assert_eq!(report("470.256.02", None).level(), Level::Bad);
    assert_eq!(report("470.256.02", Some("")).level(), Level::Bad);
    let forced = report("470.256.02", Some("535.288.01"));
    assert_eq!(forced.level(), Level::Limit);
    let found = check(&forced, "forced layouts");
    assert!(found.finding.contains("like branch 535"), "{found:?}");
    for wrong in ["newest", "470.256.02"] {
        let forced = report("580.159.04", Some(wrong));
        assert_eq!(forced.level(), Level::Bad);
        let found = check(&forced, "forced layouts");
        assert!(found.finding.contains(wrong), "{found:?}");
    }
}

fn visible(variable: &'static str, list: &str) -> VisibleDevices {
    let list = list.to_owned();
    VisibleDevices::from_lookup(move |name| (name == variable).then(|| list.clone())).unwrap()
}

#[test]
fn visible_devices_are_chosen_by_index_and_uuid() {
    let gpus = Machine::healthy().gpus();
    let places = |list: &str| {
        visible("CUDA_VISIBLE_DEVICES", list)
            .resolve(&gpus)
            .unwrap()
    };
    assert_eq!(places("0,1"), [0, 1]);
    assert_eq!(places(" 1 , 0"), [1, 0]);
    assert_eq!(places("GPU-af1bf078"), [1]);
    assert_eq!(places("GPU-bc410591-9f5d-8fda-1b6c-54738aca43b6,1"), [0, 1]);
    // The first that names none ends the list.
    assert_eq!(places("1,-1,0"), [1]);
    assert_eq!(places("1,7,0"), [1]);
    assert_eq!(places("GPU-ffff,0"), [0_usize; 0]);
    assert_eq!(places("none"), [0_usize; 0]);
    assert_eq!(places(""), [0_usize; 0]);
}

#[test]
fn choices_that_make_no_sense_are_errors() {
    let gpus = Machine::healthy().gpus();
    let error = |list: &str| {
        visible("VISIBLE_DEVICES", list)
            .resolve(&gpus)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error("0,0"), "VISIBLE_DEVICES=0,0: 0 is named twice");
    assert_eq!(
        error("GPU-"),
        "VISIBLE_DEVICES=GPU-: several GPUs begin with GPU-"
    );
    assert!(error("MIG-GPU-1/0/0").ends_with("parts of GPUs are not supported"));
}

#[test]
fn the_first_variable_that_is_set_counts() {
    let both = |name: &str| match name {
        "VISIBLE_DEVICES" => Some("1".to_owned()),
        _ => Some("0".to_owned()),
    };
    let gpus = Machine::healthy().gpus();
    assert_eq!(
        VisibleDevices::from_lookup(both)
            .unwrap()
            .resolve(&gpus)
            .unwrap(),
        [1]
    );
    assert_eq!(VisibleDevices::from_lookup(|_| None), None);
}

#[test]
fn a_variable_that_hides_all_is_found() {
    let machine = Machine::healthy();
    let report = machine.report_with(Some(&visible("CUDA_VISIBLE_DEVICES", "-1")), &[]);
    let found = check(&report, "visible devices");
    assert_eq!(found.level, Level::Bad);
    assert_eq!(found.finding, "CUDA_VISIBLE_DEVICES=-1 hides every GPU");
    let report = machine.report_with(Some(&visible("VISIBLE_DEVICES", "1")), &[]);
    assert_eq!(
        check(&report, "visible devices").finding,
        "VISIBLE_DEVICES=1 leaves 1"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_breaks_the_listing(text in any::<String>(), name in "[ -~]{0,16}") {
        let name = name.replace(['/', '\0'], "_");
        let machine = Machine::new()
            .module(&text)
            .file("proc/driver/nvidia/gpus/0000:29:00.0/information", &text)
            .file(&format!("sys/bus/pci/devices/_{name}/vendor"), &text);
        prop_assert_eq!(machine.gpus().len(), 1);
        let report = machine.report(&[]);
        prop_assert!(!report.checks.is_empty());
        let list = visible_from(text);
        let _ = list.resolve(&machine.gpus());
    }

    #[test]
    fn addresses_print_as_they_parse(domain: u32, bus: u8, slot: u8, function in 0_u8..8) {
        let address = PciAddress { domain, bus, slot, function };
        prop_assert_eq!(PciAddress::parse(&address.to_string()), Some(address));
    }
}

fn visible_from(list: String) -> VisibleDevices {
    VisibleDevices::from_lookup(move |_| Some(list.clone())).unwrap()
}
