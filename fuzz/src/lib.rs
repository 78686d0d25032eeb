//! What the fuzz targets run. The tests of the workspace run the same on mutated files.

pub mod descriptors;
pub mod exercise;
pub mod launches;
pub mod messages;
pub mod streams;
pub mod take;
