//! Why a launch is refused before anything reaches the device.

use core::fmt;

use crate::error::EncodeError;
use crate::unit::{Dim3, SmVersion};

/// What there is only so much of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Limit {
    /// Blocks of a grid in x.
    GridX,
    /// Blocks of a grid in y.
    GridY,
    /// Blocks of a grid in z.
    GridZ,
    /// Threads of a block in x.
    BlockX,
    /// Threads of a block in y.
    BlockY,
    /// Threads of a block in z.
    BlockZ,
    /// Threads of a block.
    ThreadsPerBlock,
    /// Threads of a block, as the kernel was compiled.
    LaunchBounds,
    /// Threads of a block with the kernel's registers.
    ThreadsByRegisters,
    /// Registers of a thread.
    Registers,
    /// Named barriers of a block.
    Barriers,
    /// Bytes of shared memory of a block: static and dynamic.
    SharedMemory,
    /// Bytes of local memory of a thread.
    LocalMemory,
    /// Blocks of a cluster in x.
    ClusterX,
    /// Blocks of a cluster in y.
    ClusterY,
    /// Blocks of a cluster in z.
    ClusterZ,
    /// Blocks of a cluster.
    BlocksPerCluster,
    /// Blocks of a cooperative grid: as many as are resident together.
    CooperativeBlocks,
    /// Bytes of constant bank 0.
    ConstantBank,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GridX => "blocks of the grid in x",
            Self::GridY => "blocks of the grid in y",
            Self::GridZ => "blocks of the grid in z",
            Self::BlockX => "threads of the block in x",
            Self::BlockY => "threads of the block in y",
            Self::BlockZ => "threads of the block in z",
            Self::ThreadsPerBlock => "threads of the block",
            Self::LaunchBounds => "threads of the block, as the kernel was compiled",
            Self::ThreadsByRegisters => "threads of the block, with the kernel's registers",
            Self::Registers => "registers of a thread",
            Self::Barriers => "barriers of the block",
            Self::SharedMemory => "bytes of shared memory of the block",
            Self::LocalMemory => "bytes of local memory of a thread",
            Self::ClusterX => "blocks of the cluster in x",
            Self::ClusterY => "blocks of the cluster in y",
            Self::ClusterZ => "blocks of the cluster in z",
            Self::BlocksPerCluster => "blocks of the cluster",
            Self::CooperativeBlocks => {
                "blocks of the cooperative grid, all of which must be resident"
            }
            Self::ConstantBank => "bytes of constant bank 0",
        })
    }
}

/// Why a launch is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum LaunchError {
    /// There is not that much.
    #[error("{limit}: {value}, and the most is {maximum}")]
    Limit {
        /// Of what.
        limit: Limit,
        /// How much was asked for.
        value: u64,
        /// How much there is.
        maximum: u64,
    },
    /// A shape has no extent.
    #[error("{limit}: 0, and the least is 1")]
    Zero {
        /// In which direction.
        limit: Limit,
    },
    /// The kernel takes other arguments.
    #[error("{given} bytes of arguments were given and the kernel takes {expected}")]
    ArgumentBytes {
        /// Bytes given.
        given: u64,
        /// Bytes that the kernel takes.
        expected: u64,
    },
    /// The kernel was compiled for one block shape.
    #[error("the block is {given} and the kernel was compiled for {required}")]
    Block {
        /// The block asked for.
        given: Dim3,
        /// The block that the kernel needs.
        required: Dim3,
    },
    /// The kernel was compiled for one cluster shape.
    #[error("the cluster is {given} and the kernel was compiled for {required}")]
    Cluster {
        /// The cluster asked for.
        given: Dim3,
        /// The cluster that the kernel needs.
        required: Dim3,
    },
    /// The grid is not made of whole clusters.
    #[error("the grid {grid} is not made of whole clusters of {cluster} blocks")]
    PartialCluster {
        /// The grid, in blocks.
        grid: Dim3,
        /// The cluster, in blocks.
        cluster: Dim3,
    },
    /// The GPU has no clusters.
    #[error("{sm} has no clusters: they exist from sm_90 on")]
    NoClusters {
        /// The GPU.
        sm: SmVersion,
    },
    /// The kernel waits for its whole grid and was not launched so that all of it runs.
    #[error("the kernel synchronises its grid: launch it cooperatively")]
    NotCooperative,
    /// Nobody has seen how the two are combined.
    #[error("a cooperative grid of clusters is not supported: launch with either")]
    CooperativeClusters,
    /// The GPU's generation is not known here.
    #[error("{sm} is not supported: the launch tables know sm_75 to sm_121")]
    UnknownSm {
        /// The GPU.
        sm: SmVersion,
    },
    /// The kernel's parameters lie where the driver's constants do.
    #[error(
        "the kernel's parameters begin at {base:#x} of bank 0, before the {prefix:#x} that {sm} reserves"
    )]
    ParameterBase {
        /// Where they begin.
        base: u32,
        /// The first byte that is free.
        prefix: u32,
        /// The GPU.
        sm: SmVersion,
    },
    /// The buffer for constant bank 0 is too short.
    #[error("the buffer for constant bank 0 holds {available} bytes and {needed} are needed")]
    BankBuffer {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// Bytes to patch are outside the kernel's parameters.
    #[error("{length} bytes at {offset} are outside the {size} bytes of parameters")]
    ArgumentRange {
        /// Where, from the first parameter.
        offset: u64,
        /// How many.
        length: u64,
        /// How many there are.
        size: u64,
    },
    /// A value does not fit its field.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}
