//! Run NVIDIA GPUs with no vendor user-space library.
#![deny(unsafe_code)]

pub mod driver;
mod error;
mod mapping;
mod sys;

pub use error::Error;
pub use mapping::Mapping;
