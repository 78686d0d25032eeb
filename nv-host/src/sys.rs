//! Every system call of the crate.
