//! Pushbuffers: method headers and the methods of each engine.
//!
//! A pushbuffer is a sequence of packets: a header word and the data words that it announces. [`PushWriter`]
//! makes them from typed methods ([`host`], [`compute`], [`copy`]) or from raw words; [`PushReader`] takes
//! them apart again, whatever the words are.
//!
//! ```
//! use nv_proto::push::{PushReader, PushWriter, Subchannel, compute, host};
//! use nv_proto::unit::GpuVa;
//!
//! let mut words = [0; 32];
//! let mut push = PushWriter::new(&mut words);
//! push.write(Subchannel::HOST, &host::SemAcquire::geq(GpuVa(0x20_0000), 7))?;
//! push.write(Subchannel::COMPUTE, &compute::SendPcas { qmd: GpuVa(0x30_0100) })?;
//! push.write(Subchannel::COMPUTE, &compute::SendSignalingPcas2::PREFETCH_SCHEDULE)?;
//! let used = push.finish();
//! assert_eq!(PushReader::new(used).count(), 3);
//! # Ok::<(), nv_proto::EncodeError>(())
//! ```

pub mod compute;
pub mod copy;
mod header;
pub mod host;
mod place;
mod reader;
pub mod table;
mod word;
mod writer;

pub use header::{Header, MethodAddr, RunOp, SecOp, Subchannel};
pub use place::Place;
pub use reader::{MethodWrite, MethodWrites, Packet, PushReader, Writes};
pub use word::FieldSpec;
pub use writer::{Method, PushWriter};
