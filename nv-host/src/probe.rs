//! What can be known of the machine's GPUs with no permission to open one.
//!
//! Read from `/proc/driver/nvidia` (there once the kernel module is loaded), `/sys/bus/pci` (always there) and
//! the device nodes. Every path lies below a root, so that tests read a made-up machine.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use nv_proto::rm::{self, DriverVersion};

mod doctor;
mod node;
mod visible;

pub use nix::errno::Errno;

pub use doctor::{Check, Level, Report};
pub use node::{NodeStatus, remedy};
pub use visible::VisibleDevices;

/// Where a GPU sits on the bus: `domain:bus:slot.function`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PciAddress {
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The slot.
    pub slot: u8,
    /// The function.
    pub function: u8,
}

impl PciAddress {
    /// The address that the kernel driver gives.
    #[must_use]
    pub fn of(info: &rm::PciInfo) -> Self {
        Self {
            domain: info.domain.get(),
            bus: info.bus,
            slot: info.slot,
            function: info.function,
        }
    }

    /// Reads `0000:29:00.0`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (slot, function) = rest.split_once('.')?;
        let byte = |text| u8::from_str_radix(text, 16).ok();
        Some(Self {
            domain: u32::from_str_radix(domain, 16).ok()?,
            bus: byte(bus)?,
            slot: byte(slot)?,
            function: byte(function)?,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            slot,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{slot:02x}.{function:x}")
    }
}

/// Which kernel module is loaded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Module {
    /// Its release.
    pub version: DriverVersion,
    /// Its flavour.
    pub flavour: Flavour,
}

/// The flavour of a kernel module.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flavour {
    /// The open kernel modules.
    Open,
    /// The proprietary kernel modules.
    Proprietary,
    /// It is not told.
    Unknown,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open kernel modules",
            Self::Proprietary => "proprietary kernel modules",
            Self::Unknown => "kernel modules",
        })
    }
}

impl Module {
    /// Reads either text: the first line of `/proc/driver/nvidia/version`, or the bare release of
    /// `/sys/module/nvidia/version`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let flavour = match line {
            line if line.contains("Open Kernel Module") => Flavour::Open,
            line if line.contains("Kernel Module") => Flavour::Proprietary,
            _ => Flavour::Unknown,
        };
        let version = line
            .split_whitespace()
            .find_map(|word| DriverVersion::parse(word).ok())?;
        Some(Self { version, flavour })
    }

    /// The module of the machine below `root`.
    #[must_use]
    pub fn loaded(root: &Path) -> Option<Self> {
        let read = |file: &&str| fs::read_to_string(root.join(file)).ok();
        let mut texts = [PROC_VERSION, SYS_VERSION].iter().filter_map(read);
        texts.find_map(|text| Self::parse(&text))
    }
}

/// One GPU, as far as it shows itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gpu {
    /// Where it sits.
    pub address: PciAddress,
    /// Its model, where the kernel module tells it.
    pub model: Option<String>,
    /// Its UUID, such as `GPU-5f0c…`, where the kernel module tells it: some only once it was opened.
    pub uuid: Option<String>,
    /// Its device node, where the kernel module tells its number.
    pub node: Option<PathBuf>,
    /// Its PCI device number.
    pub device_id: Option<u16>,
    /// The kernel driver that is bound to it, if any.
    pub bound: Option<String>,
    /// Whether the NVIDIA kernel module knows it.
    pub known: bool,
}

impl Gpu {
    /// What to call it.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.model, self.device_id) {
            (Some(model), _) => model.clone(),
            (None, Some(id)) => format!("NVIDIA device {id:#06x}"),
            (None, None) => "NVIDIA GPU".into(),
        }
    }
}

/// The GPUs of the machine below `root`, in bus order: those that the kernel module knows, and then those on the
/// bus that it does not, so that the index of a GPU that can be used is the kernel driver's.
#[must_use]
pub fn gpus(root: &Path) -> Vec<Gpu> {
    let on_bus = names(&root.join(SYS_PCI)).filter(|name| is_gpu(&root.join(SYS_PCI).join(name)));
    let addresses = names(&root.join(PROC_GPUS)).chain(on_bus);
    let mut gpus: Vec<Gpu> = addresses
        .filter_map(|name| PciAddress::parse(&name))
        .map(|address| gpu(root, address))
        .collect();
    gpus.sort_by_key(|gpu| (!gpu.known, gpu.address));
    gpus.dedup_by_key(|gpu| gpu.address);
    gpus
}

fn gpu(root: &Path, address: PciAddress) -> Gpu {
    let folder = root.join(PROC_GPUS).join(address.to_string());
    let information = fs::read_to_string(folder.join("information")).unwrap_or_default();
    let field = |name| field(&information, name);
    let pci = root.join(SYS_PCI).join(address.to_string());
    let bound = fs::read_link(pci.join("driver")).ok();
    let minor = field("Device Minor").and_then(|minor| minor.parse::<u32>().ok());
    Gpu {
        address,
        model: field("Model"),
        uuid: field("GPU UUID"),
        node: minor.map(|minor| PathBuf::from(format!("/dev/nvidia{minor}"))),
        device_id: hex(&pci.join("device")).and_then(|id| u16::try_from(id).ok()),
        bound: bound.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())),
        known: folder.exists(),
    }
}

/// A field of a GPU's `information`, unless the kernel module does not tell it.
pub(crate) fn field(information: &str, name: &str) -> Option<String> {
    let mut fields = information.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| field.trim() == name)?;
    let value = value.trim();
    let told = !value.is_empty() && !value.contains('?');
    told.then(|| value.to_owned())
}

/// Whether a PCI device is a display or 3-D controller of NVIDIA's.
fn is_gpu(pci: &Path) -> bool {
    let class = hex(&pci.join("class")).unwrap_or(0);
    hex(&pci.join("vendor")) == Some(PCI_VENDOR) && matches!(class >> 8, PCI_VGA | PCI_3D)
}

fn hex(path: &Path) -> Option<u32> {
    let text = fs::read_to_string(path).ok()?;
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// The nodes of GPUs, known by their GPU or merely there, in order.
fn gpu_nodes(root: &Path, gpus: &[Gpu]) -> Vec<PathBuf> {
    let number = |name: String| name.strip_prefix("nvidia")?.parse::<u32>().ok();
    let there = names(&root.join("dev")).filter_map(number);
    let there = there.map(|number| PathBuf::from(format!("/dev/nvidia{number}")));
    let mut nodes: Vec<_> = gpus
        .iter()
        .filter_map(|gpu| gpu.node.clone())
        .chain(there)
        .collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

/// Tells the release and the flavour of the kernel module, below the root.
pub const PROC_VERSION: &str = "proc/driver/nvidia/version";
/// Tells the release of the kernel module, below the root.
pub const SYS_VERSION: &str = "sys/module/nvidia/version";
/// Holds a folder for each GPU that the kernel module knows.
pub(crate) const PROC_GPUS: &str = "proc/driver/nvidia/gpus";
/// Holds a folder for each device of the bus.
const SYS_PCI: &str = "sys/bus/pci/devices";
/// NVIDIA's number (PCI-SIG).
const PCI_VENDOR: u32 = 0x10de;
/// VGA controller (PCI class codes).
const PCI_VGA: u32 = 0x0300;
/// 3-D controller (PCI class codes).
const PCI_3D: u32 = 0x0302;
