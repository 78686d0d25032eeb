//! `nv devices`: which GPUs there are, with no permission to open one; and which reach each other's memory.

use std::path::Path;

use nv_host::probe::{self, Gpu, Module, NodeStatus, VisibleDevices};
use nv_host::{Backend, Device, Options, SimMachine};
use serde::Serialize;

use crate::exit::Failure;
use crate::out;
use crate::table::table;

/// Arguments of `nv devices`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Open the GPUs that are visible, and show which reach which other's memory, as the driver tells it.
    #[arg(long)]
    peers: bool,
    /// Show a simulated machine with these GPUs instead: chips, separated by commas.
    #[arg(long, value_name = "CHIPS", value_delimiter = ',')]
    sim: Vec<nv_sim::Chip>,
}

/// What is listed.
#[derive(Debug, Serialize)]
struct Listing {
    /// The kernel module's release.
    driver: Option<String>,
    /// Its flavour.
    flavour: Option<String>,
    /// The variable that hides GPUs, if one is set.
    visible: Option<String>,
    gpus: Vec<Row>,
    /// Each pair of GPUs that are visible, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<Vec<Pair>>,
}

/// What one GPU has of another.
#[derive(Debug, Serialize)]
struct Pair {
    /// The index of the GPU that would reach.
    from: usize,
    /// The index of the GPU whose memory it is.
    to: usize,
    /// How it reaches it.
    link: Option<String>,
    /// Why it does not.
    reason: Option<String>,
}

/// One GPU.
#[derive(Debug, Serialize)]
struct Row {
    /// Its place in bus order, which `VISIBLE_DEVICES` names.
    bus_index: usize,
    /// Its place among those that are visible, which `--gpu` names.
    index: Option<usize>,
    name: String,
    address: String,
    uuid: Option<String>,
    node: Option<String>,
    /// What the node's permissions say.
    access: String,
    /// The kernel driver that holds it.
    bound: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (mut listing, backend): (_, Box<dyn Fn(usize) -> Backend>) = if args.sim.is_empty() {
        let listing = listing(Path::new("/"), VisibleDevices::from_env().as_ref())?;
        (listing, Box::new(Backend::Kernel))
    } else {
        let machine = SimMachine::new(&args.sim, nv_sim::Options::default())?;
        let listing = simulated(&machine);
        let gpu =
            move |index| Backend::SimIn(machine.clone(), u32::try_from(index).unwrap_or(u32::MAX));
        (listing, Box::new(gpu))
    };
    if args.peers {
        let indices: Vec<usize> = listing.gpus.iter().filter_map(|gpu| gpu.index).collect();
        listing.peers = Some(peers(&indices, backend));
    }
    if args.json {
        out::json(&listing)
    } else {
        out::text(&text(&listing))
    }
}

fn listing(root: &Path, visible: Option<&VisibleDevices>) -> Result<Listing, Failure> {
    let gpus = probe::gpus(root);
    let order = match visible {
        Some(visible) => visible.resolve(&gpus)?,
        None => (0..gpus.len()).collect(),
    };
    let module = Module::loaded(root);
    let row = |(bus_index, gpu): (usize, &Gpu)| Row {
        bus_index,
        index: order.iter().position(|place| *place == bus_index),
        name: gpu.name(),
        address: gpu.address.to_string(),
        uuid: gpu.uuid.clone(),
        node: gpu.node.as_ref().map(|node| node.display().to_string()),
        access: match &gpu.node {
            Some(node) => match NodeStatus::glance(node) {
                NodeStatus::Opens => "allowed".into(),
                status => status.to_string(),
            },
            None => "no node is known".into(),
        },
        bound: gpu.bound.clone(),
    };
    Ok(Listing {
        driver: module.as_ref().map(|module| module.version.to_string()),
        flavour: module.as_ref().map(|module| module.flavour.to_string()),
        visible: visible.map(VisibleDevices::to_string),
        gpus: gpus.iter().enumerate().map(row).collect(),
        peers: None,
    })
}

/// A simulated machine, as far as it has what a real one has.
fn simulated(machine: &SimMachine) -> Listing {
    let machine = machine.machine();
    let row = |(index, chip): (usize, nv_sim::Chip)| Row {
        bus_index: index,
        index: Some(index),
        name: chip.product().to_owned(),
        address: "-".to_owned(),
        uuid: None,
        node: None,
        access: "simulated".to_owned(),
        bound: None,
    };
    Listing {
        driver: Some(machine.version().to_string()),
        flavour: Some("simulated".to_owned()),
        visible: None,
        gpus: machine.chips().into_iter().enumerate().map(row).collect(),
        peers: None,
    }
}

/// Opens the GPUs and asks of each pair.
fn peers(indices: &[usize], backend: impl Fn(usize) -> Backend) -> Vec<Pair> {
    let open = |index: &usize| {
        let options = Options {
            backend: backend(*index),
            ..Options::default()
        };
        (
            *index,
            Device::open(&options).map_err(|error| error.to_string()),
        )
    };
    let gpus: Vec<_> = indices.iter().map(open).collect();
    let mut pairs = Vec::new();
    for (from, a) in &gpus {
        for (to, b) in gpus.iter().filter(|(to, _)| to != from) {
            let link = match (a, b) {
                (Ok(a), Ok(b)) => a.can_access(b).map_err(|error| error.to_string()),
                (Err(error), _) => Err(format!("GPU {from} does not open: {error}")),
                (_, Err(error)) => Err(format!("GPU {to} does not open: {error}")),
            };
            let (link, reason) = match link {
                Ok(link) => (Some(link.to_string()), None),
                Err(reason) => (None, Some(reason)),
            };
            pairs.push(Pair {
                from: *from,
                to: *to,
                link,
                reason,
            });
        }
    }
    pairs
}

/// The pairs as a matrix, a row for each GPU that reaches; what does not is told below.
fn matrix(gpus: &[Row], pairs: &[Pair]) -> String {
    let indices: Vec<usize> = gpus.iter().filter_map(|gpu| gpu.index).collect();
    let head: Vec<String> = std::iter::once("reaches".to_owned())
        .chain(indices.iter().map(usize::to_string))
        .collect();
    let mut rows = table(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for from in &indices {
        let cell = |to: &usize| {
            let pair = pairs
                .iter()
                .find(|pair| (pair.from, pair.to) == (*from, *to));
            match pair {
                None => "-".to_owned(),
                Some(pair) => pair.link.clone().unwrap_or_else(|| "no".to_owned()),
            }
        };
        rows.add_row(std::iter::once(from.to_string()).chain(indices.iter().map(cell)));
    }
    let reasons = pairs.iter().filter_map(|pair| pair.reason.as_ref());
    let reasons: String = reasons.map(|reason| format!("{reason}\n")).collect();
    format!("{}\n{reasons}", rows.trim_fmt())
}

fn text(listing: &Listing) -> String {
    let driver = match (&listing.driver, &listing.flavour) {
        (Some(driver), Some(flavour)) => format!("driver {driver}, {flavour}\n"),
        _ => "the NVIDIA kernel module is not loaded (`nv doctor` says what to do)\n".into(),
    };
    let visible = listing
        .visible
        .iter()
        .map(|visible| format!("{visible}\n"))
        .collect::<String>();
    if listing.gpus.is_empty() {
        return format!(
            "{driver}{visible}no NVIDIA GPU is on the bus; a simulated one can be used\n"
        );
    }
    let mut rows = table(&["index", "name", "address", "UUID", "node", "access"]);
    for row in &listing.gpus {
        let unknown = || "-".to_owned();
        rows.add_row([
            row.index
                .map_or_else(|| "hidden".to_owned(), |index| index.to_string()),
            row.name.clone(),
            row.address.clone(),
            row.uuid.clone().unwrap_or_else(unknown),
            row.node.clone().unwrap_or_else(unknown),
            row.access.clone(),
        ]);
    }
    let peers = match &listing.peers {
        Some(pairs) => format!("\n{}", matrix(&listing.gpus, pairs)),
        None => String::new(),
    };
    format!("{driver}{visible}{}\n{peers}", rows.trim_fmt())
}
