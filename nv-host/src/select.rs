//! Which driver to use: the first real GPU that opens, else a simulated one, and never without saying why.

use std::sync::Arc;

use nv_proto::rm::DriverVersion;

use crate::Error;
use crate::device::Backend;
use crate::driver::Driver;

/// An opened driver, and why it is not a real GPU's where the best was asked for.
pub(crate) fn driver(
    backend: &Backend,
    abi: Option<DriverVersion>,
) -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    let (driver, fallback) = match backend {
        Backend::Best => best(abi)?,
        Backend::Kernel(index) => (kernel(Some(*index), abi)?, None),
        #[cfg(feature = "sim")]
        Backend::Sim(chip) => (sim(*chip, abi)?, None),
        #[cfg(feature = "sim")]
        Backend::SimIn(machine, index) => {
            let driver = crate::driver::sim::open_as(Arc::clone(machine.machine()), *index, abi)?;
            (Arc::new(driver) as Arc<dyn Driver>, None)
        }
    };
    #[cfg(feature = "tracing")]
    let driver = crate::driver::traced::watch(driver);
    Ok((driver, fallback))
}

#[cfg(feature = "sim")]
fn best(abi: Option<DriverVersion>) -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    match kernel(None, abi) {
        Ok(driver) => Ok((driver, None)),
        // What was forced is for the kernel driver.
        Err(first) => match sim(nv_sim::Chip::Gh100, None) {
            Ok(driver) => Ok((driver, Some(first))),
            Err(second) => Err(Error::NoDevice(vec![first.to_string(), second.to_string()])),
        },
    }
}

#[cfg(not(feature = "sim"))]
fn best(abi: Option<DriverVersion>) -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    kernel(None, abi)
        .map(|driver| (driver, None))
        .map_err(|error| Error::NoDevice(vec![error.to_string()]))
}

/// The GPU of an index, or the first that opens.
#[cfg(feature = "ioctl")]
fn kernel(index: Option<usize>, abi: Option<DriverVersion>) -> Result<Arc<dyn Driver>, Error> {
    Ok(Arc::new(crate::driver::kernel::open_as(index, abi)?))
}

#[cfg(not(feature = "ioctl"))]
fn kernel(_index: Option<usize>, _abi: Option<DriverVersion>) -> Result<Arc<dyn Driver>, Error> {
    Err(Error::Unsupported(
        "this build has no kernel driver; build it with the feature `ioctl`".into(),
    ))
}

#[cfg(feature = "sim")]
fn sim(chip: nv_sim::Chip, abi: Option<DriverVersion>) -> Result<Arc<dyn Driver>, Error> {
    let machine = crate::device::SimMachine::new(&[chip], nv_sim::Options::default())?;
    let driver = crate::driver::sim::open_as(Arc::clone(machine.machine()), 0, abi)?;
    Ok(Arc::new(driver))
}
