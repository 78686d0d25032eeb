//! What stands between this process and a GPU, cause by cause, each with its remedy.

use std::fmt;
use std::path::Path;

use nix::errno::Errno;
use nv_proto::rm::names::classes::{
    FERMI_VASPACE_A, NV01_DEVICE_0, NV01_MEMORY_VIRTUAL, NV20_SUBDEVICE_0,
};
use nv_proto::rm::{self, Abi, DriverVersion, Fit, flags};
use nv_proto::unit::Handle;

use super::{Flavour, Gpu, Module, NodeStatus, VisibleDevices, gpu_nodes, gpus, remedy};
use crate::Error;
use crate::driver::{self, Driver};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// As it should be.
    Good,
    /// It works with a limit.
    Limit,
    /// Nothing works until it is remedied.
    Bad,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Limit => "limit",
            Self::Bad => "bad",
        })
    }
}

/// One finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Check {
    /// What was looked at.
    pub subject: String,
    /// How it stands.
    pub level: Level,
    /// What was seen.
    pub finding: String,
    /// What to do; empty where nothing is to be done.
    pub remedy: String,
}

impl Check {
    fn good(subject: impl Into<String>, finding: impl Into<String>) -> Self {
        let (subject, finding) = (subject.into(), finding.into());
        Self {
            subject,
            level: Level::Good,
            finding,
            remedy: String::new(),
        }
    }

    fn new(
        level: Level,
        subject: impl Into<String>,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (subject, finding, remedy) = (subject.into(), finding.into(), remedy.into());
        Self {
            subject,
            level,
            finding,
            remedy,
        }
    }
}

/// All findings, and what follows from them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Report {
    /// The GPUs in bus order.
    pub gpus: Vec<Gpu>,
    /// The kernel module.
    pub module: Option<Module>,
    /// The findings, causes before what follows from them.
    pub checks: Vec<Check>,
}

impl Report {
    /// Looks at the machine that this process runs on.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::new(
            Path::new("/"),
            VisibleDevices::from_env().as_ref(),
            |path| {
                let opened = std::fs::OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(path);
                let errno = |error: std::io::Error| {
                    Errno::from_raw(error.raw_os_error().unwrap_or_default())
                };
                opened.map(drop).map_err(errno)
            },
        )
        .with_forced(std::env::var("NV_DRIVER_ABI").ok().as_deref())
    }

    /// Takes into account that `NV_DRIVER_ABI` says whose layouts the driver has: a release that is too old, or not known,
    /// is no longer in the way.
    #[must_use]
    pub fn with_forced(mut self, text: Option<&str>) -> Self {
        let subject = "forced layouts";
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return self;
        };
        let abi = DriverVersion::parse(text).map_err(|error| error.to_string());
        let abi = abi.and_then(|version| Abi::of(version).map_err(|error| error.to_string()));
        let check = match abi {
            Ok(abi) => {
                for check in &mut self.checks {
                    if check.subject == RELEASE && check.level == Level::Bad {
                        check.level = Level::Limit;
                    }
                }
                Check::new(
                    Level::Limit,
                    subject,
                    format!(
                        "NV_DRIVER_ABI={text}: the driver is taken to be like branch {}",
                        abi.branch.major
                    ),
                    "unset the variable if the driver's own release is known",
                )
            }
            Err(error) => Check::new(
                Level::Bad,
                subject,
                format!("NV_DRIVER_ABI={text}: {error}"),
                "name a driver release of a branch from 535 on, such as 580.159.04, or unset the variable",
            ),
        };
        let last = self.checks.len().saturating_sub(1);
        self.checks.insert(last, check);
        self
    }

    /// Looks at the machine below `root`, opening nodes by `open`.
    #[must_use]
    pub fn new(
        root: &Path,
        visible: Option<&VisibleDevices>,
        open: impl Fn(&Path) -> Result<(), Errno>,
    ) -> Self {
        let gpus = gpus(root);
        let module = Module::loaded(root);
        let control = node(Path::new("/dev/nvidiactl"), Level::Bad, &open);
        let nodes = gpu_nodes(root, &gpus);
        // One that opens is enough for something to work.
        let nodes: Vec<_> = nodes
            .iter()
            .map(|path| node(path, Level::Limit, &open))
            .collect();
        let uvm = node(Path::new("/dev/nvidia-uvm"), Level::Limit, &open);
        // A sandbox may hide all of `/proc` and `/sys` and let the GPU through.
        let hidden = if control.level == Level::Good {
            Level::Limit
        } else {
            Level::Bad
        };

        let mut checks = vec![
            hardware(&gpus, hidden),
            kernel_module(module.as_ref(), hidden),
        ];
        checks.extend(gpus.iter().filter_map(binding));
        checks.extend(module.as_ref().map(release));
        checks.extend(visible.map(|visible| visibility(visible, &gpus, hidden)));
        let verdict = verdict(&control, &nodes, &uvm);
        checks.push(control);
        checks.extend(nodes);
        checks.extend([uvm, verdict]);
        Self {
            gpus,
            module,
            checks,
        }
    }

    /// Tries the calls that sandboxes refuse on a GPU, if it opened, and adds what was found.
    pub fn try_calls(&mut self, opened: Result<&dyn Driver, &Error>) {
        match opened {
            Ok(driver) => self.checks.extend(calls(driver)),
            Err(error) => self.checks.push(Check::new(
                Level::Bad,
                "opening the GPU",
                error.to_string(),
                "see the nodes above, and `dmesg` for lines of NVRM",
            )),
        }
    }

    /// The gravest level found.
    #[must_use]
    pub fn level(&self) -> Level {
        self.checks
            .iter()
            .map(|check| check.level)
            .max()
            .unwrap_or(Level::Good)
    }
}

/// Whether a node opens; `level` if it does not.
fn node(path: &Path, level: Level, open: impl Fn(&Path) -> Result<(), Errno>) -> Check {
    let subject = path.display().to_string();
    let opened = open(path);
    let finding = NodeStatus::of(opened).to_string();
    match opened {
        Ok(()) => Check::good(subject, finding),
        Err(errno) => Check::new(level, subject, finding, remedy(path, "open", errno)),
    }
}

fn hardware(gpus: &[Gpu], hidden: Level) -> Check {
    let subject = "hardware";
    match gpus {
        [] => Check::new(
            hidden,
            subject,
            "no NVIDIA GPU is to be seen on the bus",
            "use a simulated GPU (`--sim`), or pass a GPU into this machine or container",
        ),
        [gpu] => Check::good(subject, format!("{} at {}", gpu.name(), gpu.address)),
        gpus => {
            let list: Vec<_> = gpus
                .iter()
                .map(|gpu| format!("{} at {}", gpu.name(), gpu.address))
                .collect();
            Check::good(subject, format!("{} GPUs: {}", gpus.len(), list.join(", ")))
        }
    }
}

/// A GPU that another driver holds.
fn binding(gpu: &Gpu) -> Option<Check> {
    let bound = gpu.bound.as_deref().filter(|bound| *bound != "nvidia")?;
    Some(Check::new(
        Level::Limit,
        format!("GPU at {}", gpu.address),
        format!("held by the driver {bound}"),
        format!("unbind it from {bound} and bind it to nvidia, or use another GPU"),
    ))
}

fn kernel_module(module: Option<&Module>, hidden: Level) -> Check {
    let subject = "kernel module";
    match module {
        None => Check::new(
            hidden,
            subject,
            "the NVIDIA kernel module is not loaded, or hidden",
            "install it and load it (`modprobe nvidia`); in a container, pass the GPU in (`--gpus all`)",
        ),
        Some(Module {
            version,
            flavour: Flavour::Unknown,
        }) => Check::good(subject, format!("{version}")),
        Some(Module { version, flavour }) => Check::good(subject, format!("{version}, {flavour}")),
    }
}

const RELEASE: &str = "driver release";

fn release(module: &Module) -> Check {
    let subject = RELEASE;
    match Abi::of(module.version) {
        Err(error) => Check::new(
            Level::Bad,
            subject,
            error.to_string(),
            "install a driver of a branch from 535 on, or force the layouts of one (`NV_DRIVER_ABI=535.288.01`)",
        ),
        Ok(abi) => match abi.fit {
            Fit::Checked => Check::good(subject, format!("known (branch {})", abi.branch.major)),
            Fit::LaterInBranch => Check::good(
                subject,
                format!(
                    "later than {}, the last of its branch that was checked",
                    abi.branch.last
                ),
            ),
            Fit::Nearest => Check::new(
                Level::Limit,
                subject,
                format!(
                    "not known: it is taken to be like branch {}",
                    abi.branch.major
                ),
                "if calls are refused or misread, force the layouts of another release (`NV_DRIVER_ABI`); a known branch is safer",
            ),
        },
    }
}

fn visibility(visible: &VisibleDevices, gpus: &[Gpu], hidden: Level) -> Check {
    let subject = "visible devices";
    match visible.resolve(gpus) {
        Err(error) => Check::new(
            Level::Bad,
            subject,
            error.to_string(),
            "correct the variable",
        ),
        Ok(places) if places.is_empty() => Check::new(
            if gpus.is_empty() { hidden } else { Level::Bad },
            subject,
            format!("{visible} hides every GPU"),
            "unset the variable, or name an index or a UUID that `nv devices` shows",
        ),
        Ok(places) => {
            let list: Vec<_> = places.iter().map(usize::to_string).collect();
            Check::good(subject, format!("{visible} leaves {}", list.join(", ")))
        }
    }
}

fn verdict(control: &Check, nodes: &[Check], uvm: &Check) -> Check {
    let subject = "what will work";
    let opens = |check: &&Check| check.level == Level::Good;
    let opened = nodes.iter().filter(opens).count();
    let gpus = format!("{opened} of {} GPUs", nodes.len());
    match (opens(&control) && opened > 0, opens(&uvm)) {
        (true, true) => Check::good(subject, format!("{gpus}, both ways of mapping memory")),
        (true, false) => Check::good(
            subject,
            format!("{gpus}, mapping memory by the resource manager alone"),
        ),
        (false, _) => Check::new(
            Level::Bad,
            subject,
            "no GPU can be opened; the simulated GPU can",
            "remedy what is marked bad above, the first first",
        ),
    }
}

/// The calls that sandboxes refuse which grant only computing, tried one by one.
fn calls(driver: &dyn Driver) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut note = |subject: &str, result: Result<(), Error>, remedy: &str| {
        let worked = result.is_ok();
        checks.push(match result {
            Ok(()) => Check::good(subject, "works"),
            Err(error) => Check::new(Level::Limit, subject, error.to_string(), remedy),
        });
        worked
    };
    let mut params = rm::DeviceAlloc {
        device_id: driver.device_instance().into(),
        h_client_share: driver.client().into(),
        va_mode: flags::device_va_mode::OPTIONAL_MULTIPLE_VASPACES.into(),
        ..Default::default()
    };
    let client = driver.client();
    let device = driver::alloc(driver, client, NV01_DEVICE_0, &mut params);
    let handle = device.as_ref().copied().unwrap_or(Handle::NULL);
    if !note(
        "opening the GPU",
        device.map(drop),
        "see `dmesg` for lines of NVRM",
    ) {
        return checks;
    }
    let space = driver::alloc(
        driver,
        handle,
        FERMI_VASPACE_A,
        &mut rm::VaSpaceAlloc::default(),
    );
    let mapping = space.and_then(|space| {
        let mut params = rm::MemoryVirtualAlloc {
            h_va_space: space.into(),
            ..Default::default()
        };
        driver::alloc(driver, handle, NV01_MEMORY_VIRTUAL, &mut params)
    });
    note(
        "mapping memory by the resource manager",
        mapping.map(drop),
        "memory is mapped by UVM instead, which takes longer to start",
    );
    let subdevice = driver::alloc(
        driver,
        handle,
        NV20_SUBDEVICE_0,
        &mut rm::SubdeviceAlloc::default(),
    );
    let flush = subdevice.and_then(|subdevice| {
        let mut params = rm::FbFlushGpuCache {
            flags: (flags::flush_cache::write_back::YES
                | flags::flush_cache::invalidate::YES
                | flags::flush_cache::flush_mode::FULL_CACHE)
                .into(),
            ..Default::default()
        };
        driver::control(driver, subdevice, &mut params)
    });
    note(
        "flushing the GPU's cache",
        flush,
        "nothing needs it: caches are flushed by the channels",
    );
    // Nothing can be done about a device that does not end; the client ends it.
    let _ = driver.free(client, handle);
    checks
}
