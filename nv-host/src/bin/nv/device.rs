//! The options that choose a device, shared by all commands that open one.

use std::time::Duration;

use nv_host::{Backend, Device, MapMode, Options};

use crate::exit::Failure;

/// Which device to open.
#[derive(Debug, clap::Args)]
pub struct DeviceArgs {
    /// Open a simulated GPU: ga100, ga102, ad102, gh100 or gb202.
    #[arg(long, value_name = "CHIP", conflicts_with = "gpu")]
    sim: Option<nv_sim::Chip>,
    /// Open the real GPU of this index; no simulated one in its stead.
    #[arg(long, value_name = "INDEX")]
    gpu: Option<usize>,
    /// Map memory by the resource manager or by UVM; the default takes the way that works.
    #[arg(long, value_name = "WAY", value_enum)]
    map: Option<Map>,
    /// How many seconds a wait for the GPU may last.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    limit: f64,
}

/// How memory is mapped.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Map {
    /// By the resource manager alone.
    Rm,
    /// By the UVM driver.
    Uvm,
}

impl DeviceArgs {
    /// Opens the device; where a simulated one stands in for a real one, says so and why.
    pub fn open(&self) -> Result<Device, Failure> {
        let limit = Duration::try_from_secs_f64(self.limit)
            .map_err(|error| Failure::BadInput(format!("--limit {}: {error}", self.limit)))?;
        let backend = match (self.sim, self.gpu) {
            (Some(chip), _) => Backend::Sim(chip),
            (None, Some(index)) => Backend::Kernel(index),
            (None, None) => Backend::Best,
        };
        let map_mode = self.map.map(|map| match map {
            Map::Rm => MapMode::Rm,
            Map::Uvm => MapMode::Uvm,
        });
        let device = Device::open(&Options {
            backend,
            map_mode,
            limit,
            ..Options::default()
        })?;
        for warning in &device.info().warnings {
            crate::out::note(format_args!("{warning}"));
        }
        if let Some(why) = device.fallback() {
            crate::out::note(format_args!(
                "using a simulated GPU, since no real one can be used: {why}"
            ));
        }
        Ok(device)
    }
}
