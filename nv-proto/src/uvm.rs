//! The UVM driver's ioctl numbers and parameter structures.
