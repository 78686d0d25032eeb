//! `nv devices`: which GPUs there are, with no permission to open one.

use std::path::Path;

use nv_host::probe::{self, Gpu, Module, NodeStatus, VisibleDevices};
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
    let listing = listing(Path::new("/"), VisibleDevices::from_env().as_ref())?;
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
    })
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
    format!("{driver}{visible}{}\n", rows.trim_fmt())
}
