//! From a kernel's, a device's and a launch's facts to the descriptor, bank 0 and arguments.
