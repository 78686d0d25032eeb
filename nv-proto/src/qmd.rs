//! Launch descriptors (queue meta data), by version.
