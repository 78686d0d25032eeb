//! The launch: from facts to the bytes that a GPU is given. The tool on the host includes this file, too, and checks
//! that every image writes the same bytes as it does itself.

use heapless::Vec;
use nv_proto::EncodeError;
use nv_proto::gpfifo::GpEntry;
use nv_proto::launch::{Call, DeviceFacts, KernelFacts, LaunchError, Shape, Shaped, prepare};
use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::qmd::{MAX_WORDS, Qmd, Version};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

/// Bytes of constant bank 0 that there is room for.
pub const BANK0: usize = 0x400;
/// Words of methods that there is room for.
pub const COMMANDS: usize = 16;
/// Ring entries that there is room for.
pub const RING: usize = 8;

/// Where a launch lies before the GPU is told of it: static memory, all of it.
#[derive(Debug)]
pub struct Buffer {
    /// The descriptor.
    pub qmd: Vec<u32, MAX_WORDS>,
    /// Constant bank 0.
    pub bank0: Vec<u8, BANK0>,
    /// Methods.
    pub commands: Vec<u32, COMMANDS>,
    /// Ring entries.
    pub ring: Vec<u64, RING>,
}

impl Buffer {
    /// Room for a launch, empty.
    pub const fn new() -> Self {
        Self {
            qmd: Vec::new(),
            bank0: Vec::new(),
            commands: Vec::new(),
            ring: Vec::new(),
        }
    }

    /// FNV-1a over all that was encoded, by bytes as they lie in GPU memory.
    pub fn digest(&self) -> u64 {
        let words = self.qmd.iter().chain(&self.commands);
        let bytes = words.flat_map(|word| word.to_le_bytes());
        let bytes = bytes.chain(self.bank0.iter().copied());
        let bytes = bytes.chain(self.ring.iter().flat_map(|entry| entry.to_le_bytes()));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

/// The generations that the images encode for.
pub const GENERATIONS: [u16; 4] = [75, 86, 90, 120];

/// The kernel and device that the images encode for, shaped into blocks of 256.
///
/// # Errors
/// None, for what [`GENERATIONS`] holds.
pub fn shaped(sm: u16) -> Result<Shaped, LaunchError> {
    let device = DeviceFacts {
        local_bytes_per_thread: 0x640,
        shared_window: GpuVa(0x7e_0000_0000),
        local_window: GpuVa(0x7d_0000_0000),
        ..DeviceFacts::new(SmVersion(sm), 84)?
    };
    let kernel = KernelFacts {
        program: GpuVa(0x20_0000_0100),
        program_size: 0x1c00,
        registers: 40,
        barriers: 1,
        static_shared: 0x1200,
        reserved_shared: device.limits.reserved_shared,
        param_base: match sm {
            ..90 => 0x160,
            90 => 0x210,
            _ => 0x380,
        },
        param_size: 32,
        ..KernelFacts::default()
    };
    prepare(&kernel, &device)?.shape(&Shape::new(256))
}

/// Encodes launch `number` of a prepared kernel into the buffer.
///
/// # Errors
/// [`LaunchError`], as [`Shaped::encode`].
pub fn launch(shaped: &Shaped, number: u32, out: &mut Buffer) -> Result<(), LaunchError> {
    let at = GpuVa(0x20_1000_0000 + u64::from(number % 64) * 0x1000);
    let args = [number as u8; 32];
    let call = Call {
        grid: Dim3::new(number, 2, 1),
        args: &args,
        bank0: at,
        grid_id: number.into(),
    };
    let mut qmd = Qmd::new(shaped.qmd().version());
    fill(&mut out.bank0, shaped.bank0_bytes() as usize);
    shaped.encode(&call, &mut qmd, &mut out.bank0)?;
    fill(&mut out.qmd, qmd.version().words());
    qmd.encode_into(&mut out.qmd)?;
    Ok(methods(GpuVa(at.0 + 0x800), number, out)?)
}

/// Changes a descriptor that somebody else made, and starts it: what is left where a host prepares launches.
///
/// # Errors
/// [`EncodeError`], as the setters.
pub fn patch(version: Version, number: u32, out: &mut Buffer) -> Result<(), EncodeError> {
    let at = GpuVa(0x20_1000_0000 + u64::from(number % 64) * 0x1000);
    let Ok(mut qmd) = Qmd::decode_as(version, &out.qmd) else {
        return Err(EncodeError::BufferTooSmall {
            needed: version.words(),
            available: out.qmd.len(),
        });
    };
    qmd.set_grid(Dim3::new(number, 2, 1))?;
    qmd.set_bank_address(0, at)?;
    qmd.encode_into(&mut out.qmd)?;
    methods(GpuVa(at.0 + 0x800), number, out)
}

/// Methods that start the descriptor at `qmd` and release a semaphore after it, and the ring entry for them.
fn methods(qmd: GpuVa, number: u32, out: &mut Buffer) -> Result<(), EncodeError> {
    fill(&mut out.commands, COMMANDS);
    let mut push = PushWriter::new(&mut out.commands);
    push.write(Subchannel::COMPUTE, &SendPcas { qmd })?;
    push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)?;
    let release = SemRelease {
        at: GpuVa(0x20_3000_0000),
        value: number.into(),
        wfi: true,
        timestamp: false,
    };
    push.write(Subchannel::HOST, &release)?;
    let words = push.len();
    out.commands.truncate(words);
    let entry = GpEntry::new(
        GpuVa(0x20_2000_0000 + u64::from(number % 64) * 64),
        words as u32,
    )?;
    if out.ring.is_full() {
        out.ring.clear();
    }
    let room = out.ring.len();
    out.ring
        .push(entry.encode())
        .map_err(|_| EncodeError::BufferTooSmall {
            needed: room + 1,
            available: room,
        })
}

/// Gives a vector `length` elements, or as many as it has room for.
fn fill<T: Clone + Default, const N: usize>(vector: &mut Vec<T, N>, length: usize) {
    if vector.len() != length {
        let _ = vector.resize(length.min(N), T::default());
    }
}
