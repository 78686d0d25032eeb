//! What the fuzz targets run. The tests of the workspace run the same on mutated files.

pub mod exercise;
pub mod streams;
