//! Constant bank 0: what the driver puts before a kernel's parameters, by generation.
