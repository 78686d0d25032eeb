//! Where an image begins, its painted stack, and the two calls to what lies below it.
//!
//! Firmware would set up its own stack the same way, and have a serial port where this has `write`. The two calls are
//! Linux's, so that the image of a bare target can be run as a program, on its own or by an emulator of its processor.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::panic::PanicInfo;

/// Bytes of stack.
pub const STACK: usize = 64 << 10;
/// What unused stack holds.
const PAINT: u8 = 0xa5;

#[repr(C, align(64))]
struct Stack(UnsafeCell<[u8; STACK]>);

// SAFETY: one processor runs the image, and the stack is reached by address alone.
unsafe impl Sync for Stack {}

#[unsafe(link_section = ".stack")]
static STACK_MEMORY: Stack = Stack(UnsafeCell::new([0; STACK]));

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text.start,\"ax\"",
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "lea rsp, [rip + {stack} + {size}]",
    "call begin",
    "ud2",
    stack = sym STACK_MEMORY,
    size = const STACK,
);

#[cfg(target_arch = "riscv64")]
global_asm!(
    ".section .text.start,\"ax\"",
    ".globl _start",
    "_start:",
    "la sp, {stack}",
    "li t0, {size}",
    "add sp, sp, t0",
    "call begin",
    "unimp",
    stack = sym STACK_MEMORY,
    size = const STACK,
);

/// Makes a function the one that an image begins with; what it answers is the program's exit status.
#[macro_export]
macro_rules! begin {
    ($function:path) => {
        /// What `_start` calls.
        #[unsafe(no_mangle)]
        extern "C" fn begin() -> ! {
            $crate::start::exit($function())
        }
    };
}

/// The stack pointer.
#[inline(always)]
fn stack_pointer() -> usize {
    let here;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it copies a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) here, options(nomem, nostack));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: it copies a register.
    unsafe {
        core::arch::asm!("mv {}, sp", out(reg) here, options(nomem, nostack));
    }
    here
}

/// How many bytes of stack `run` takes: what lies below the stack pointer is painted, and what is no longer painted
/// afterwards was used. Bare targets have no red zone, so nothing else lies there.
#[inline(never)]
pub fn stack_used(run: &mut dyn FnMut()) -> usize {
    let base = STACK_MEMORY.0.get().cast::<u8>();
    let painted = stack_pointer().saturating_sub(base as usize);
    for at in 0..painted {
        // SAFETY: `at` is below the stack pointer, in the stack's memory: nobody uses the byte.
        unsafe { base.add(at).write_volatile(PAINT) };
    }
    run();
    let untouched = (0..painted)
        // SAFETY: `at` lies in the stack, which is valid memory; nobody else reads or writes it at the time.
        .take_while(|at| unsafe { base.add(*at).read_volatile() } == PAINT)
        .count();
    painted.saturating_sub(untouched)
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

#[cfg(target_arch = "x86_64")]
fn call(number: usize, arguments: [usize; 3]) -> usize {
    let result;
    // SAFETY: the callers pass `write` memory that they may read, or `exit` a number.
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") number => result, in("rdi") arguments[0], in("rsi") arguments[1],
            in("rdx") arguments[2], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[cfg(target_arch = "riscv64")]
fn call(number: usize, arguments: [usize; 3]) -> usize {
    let result;
    // SAFETY: the callers pass `write` memory that they may read, or `exit` a number.
    unsafe {
        core::arch::asm!("ecall", in("a7") number, inlateout("a0") arguments[0] => result, in("a1") arguments[1],
            in("a2") arguments[2], options(nostack));
    }
    result
}

#[cfg(target_arch = "x86_64")]
const CALLS: [usize; 2] = [1, 60];
#[cfg(target_arch = "riscv64")]
const CALLS: [usize; 2] = [64, 93];

/// Writes bytes to where a serial port would be; whether all of them were taken.
pub fn write(bytes: &[u8]) -> bool {
    call(CALLS[0], [1, bytes.as_ptr() as usize, bytes.len()]) == bytes.len()
}

/// Ends the image.
pub fn exit(status: u8) -> ! {
    call(CALLS[1], [status.into(), 0, 0]);
    loop {
        core::hint::spin_loop();
    }
}
