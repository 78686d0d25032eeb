//! Which driver to use: the first real GPU that opens, else a simulated one, and never without saying why.

use std::sync::Arc;

use crate::Error;
use crate::device::Backend;
use crate::driver::Driver;

/// An opened driver, and why it is not a real GPU's where the best was asked for.
pub(crate) fn driver(backend: &Backend) -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    let (driver, fallback) = match backend {
        Backend::Best => best()?,
        Backend::Kernel(index) => (kernel(*index)?, None),
        #[cfg(feature = "sim")]
        Backend::Sim(chip) => (sim(*chip)?, None),
    };
    #[cfg(feature = "tracing")]
    let driver = crate::driver::traced::watch(driver);
    Ok((driver, fallback))
}

#[cfg(feature = "sim")]
fn best() -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    match first() {
        Ok(driver) => Ok((driver, None)),
        Err(first) => match sim(nv_sim::Chip::Gh100) {
            Ok(driver) => Ok((driver, Some(first))),
            Err(second) => Err(Error::NoDevice(vec![first.to_string(), second.to_string()])),
        },
    }
}

#[cfg(not(feature = "sim"))]
fn best() -> Result<(Arc<dyn Driver>, Option<Error>), Error> {
    first()
        .map(|driver| (driver, None))
        .map_err(|error| Error::NoDevice(vec![error.to_string()]))
}

#[cfg(feature = "ioctl")]
fn kernel(index: usize) -> Result<Arc<dyn Driver>, Error> {
    Ok(Arc::new(crate::driver::kernel::open(index)?))
}

#[cfg(feature = "ioctl")]
fn first() -> Result<Arc<dyn Driver>, Error> {
    Ok(Arc::new(crate::driver::kernel::open_first()?))
}

#[cfg(not(feature = "ioctl"))]
fn first() -> Result<Arc<dyn Driver>, Error> {
    kernel(0)
}

#[cfg(not(feature = "ioctl"))]
fn kernel(_index: usize) -> Result<Arc<dyn Driver>, Error> {
    Err(Error::Unsupported(
        "this build has no kernel driver; build it with the feature `ioctl`".into(),
    ))
}

#[cfg(feature = "sim")]
fn sim(chip: nv_sim::Chip) -> Result<Arc<dyn Driver>, Error> {
    Ok(Arc::new(crate::driver::sim::open(chip)?))
}
