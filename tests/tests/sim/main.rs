//! The simulated GPU by itself: the resource manager's calls, UVM, and what its engines do with rings,
//! pushbuffers and launch descriptors in memory.

mod anything;
mod chip;
mod compute;
mod copy;
mod host;
mod replay;
mod rig;
mod rm;
mod uvm;
mod vendor;
