//! nv-proto with nothing below it: no std, no allocator, a panic handler of our own.
//!
//! It reads a real cubin, places and relocates it, encodes a launch of one of its kernels with its methods and
//! GPFIFO entry into static memory, and exits with 0 when all came out as expected.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

use nv_proto::cubin::{Cubin, Layout};
use nv_proto::gpfifo::GpEntry;
use nv_proto::launch::{Call, DeviceFacts, KernelFacts, Shape, prepare};
use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushReader, PushWriter, Subchannel};
use nv_proto::qmd::Qmd;
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

const CUBIN: &[u8] = include_bytes!("../../cubins/demo/demo.sm_90.cubin");
const CODE: GpuVa = GpuVa(0x20_0000_0000);
const BANK0: GpuVa = GpuVa(0x20_1000_0000);
const QMD: GpuVa = GpuVa(0x20_1000_0400);
const COMMANDS: GpuVa = GpuVa(0x20_2000_0000);
const SEMAPHORE: GpuVa = GpuVa(0x20_3000_0000);

/// All steps; the number of the one that failed.
fn launch() -> Result<(), u8> {
    let cubin = Cubin::parse(CUBIN).map_err(|_| 1)?;
    let mut places = [0; 128];
    let plan = cubin.plan(Layout::default(), &mut places).map_err(|_| 2)?;
    let mut image = [0; 32 << 10];
    let image = image.get_mut(..usize::try_from(plan.size()).map_err(|_| 3)?).ok_or(3)?;
    plan.place_into(image).map_err(|_| 4)?;
    plan.relocate(image, CODE).map_err(|_| 5)?;
    let kernel = cubin.kernel("vector_add").map_err(|_| 6)?;

    let facts = KernelFacts {
        program: GpuVa(CODE.0 + plan.entry(&kernel).ok_or(7)?),
        program_size: u32::try_from(kernel.code_size).map_err(|_| 7)?,
        registers: kernel.registers.into(),
        static_shared: kernel.shared,
        reserved_shared: kernel.shared_reserved,
        param_base: kernel.param_base.into(),
        param_size: kernel.param_size.into(),
        ..KernelFacts::default()
    };
    let device = DeviceFacts::new(SmVersion(90), 132).map_err(|_| 8)?;
    let shaped = prepare(&facts, &device)
        .and_then(|prepared| prepared.shape(&Shape::new(Dim3::from(256))))
        .map_err(|_| 9)?;
    let (mut qmd, mut bank0) = (Qmd::new(device.qmd), [0; 0x400]);
    let args = [0x5a; 28];
    let call = Call { grid: Dim3::from(16), args: &args, bank0: BANK0, grid_id: 1 };
    shaped.encode(&call, &mut qmd, &mut bank0).map_err(|_| 10)?;
    let decoded = qmd.launch().map_err(|_| 11)?;
    if decoded.grid != Dim3::from(16) || bank0.get(0x210..0x22c) != Some(args.as_slice()) {
        return Err(12);
    }

    let mut words = [0; 32];
    let mut push = PushWriter::new(&mut words);
    push.write(Subchannel::COMPUTE, &SendPcas { qmd: QMD }).map_err(|_| 13)?;
    push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE).map_err(|_| 13)?;
    push.write(Subchannel::HOST, &SemRelease::with_timestamp(SEMAPHORE, 1)).map_err(|_| 13)?;
    let words = push.finish();
    if PushReader::new(words).count() != 3 {
        return Err(14);
    }
    let entry = GpEntry::new(COMMANDS, u32::try_from(words.len()).map_err(|_| 15)?).map_err(|_| 15)?;
    if GpEntry::decode(entry.encode()) != Ok(entry) {
        return Err(16);
    }
    Ok(())
}

// Where the program begins: the system enters with the stack aligned as after no call.
core::arch::global_asm!(".globl _start", "_start:", "xor ebp, ebp", "and rsp, -16", "call begin");

/// What `_start` calls.
#[unsafe(no_mangle)]
extern "C" fn begin() -> ! {
    exit(match launch() {
        Ok(()) => 0,
        Err(step) => step,
    })
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

/// Ends the process.
fn exit(code: u8) -> ! {
    // SAFETY: `exit` (60) takes an integer, touches no memory of ours and does not return.
    unsafe {
        core::arch::asm!("syscall", in("rax") 60, in("rdi") u64::from(code), options(noreturn));
    }
}

/// The functions that the compiler expects of every target, and that a C library has otherwise.
mod memory {
    use core::arch::asm;

    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        // SAFETY: the caller's ranges are valid and do not overlap.
        unsafe {
            asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        to
    }

    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
        if (to as usize).wrapping_sub(from as usize) >= count {
            // SAFETY: copying upwards reads each byte before it is written over.
            return unsafe { memcpy(to, from, count) };
        }
        // SAFETY: the caller's ranges are valid; copying downwards reads each byte before it is written over.
        unsafe {
            asm!("std", "rep movsb", "cld", inout("rcx") count => _,
                inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
                inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _, options(nostack));
        }
        to
    }

    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memset(to: *mut u8, byte: i32, count: usize) -> *mut u8 {
        // SAFETY: the caller's range is valid.
        unsafe {
            asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte as u8,
                options(nostack, preserves_flags));
        }
        to
    }

    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
        for i in 0..count {
            // SAFETY: `i < count`, and the caller's ranges are valid.
            let (a, b) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
            if a != b {
                return i32::from(a) - i32::from(b);
            }
        }
        0
    }

    /// # Safety
    /// As in C.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
        // SAFETY: the caller's ranges are valid.
        unsafe { memcmp(a, b, count) }
    }
}
