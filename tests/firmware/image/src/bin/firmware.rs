//! Encodes launches for each generation into a static buffer, and logs what it did through defmt.
//!
//! The log lies in a static buffer, too, and is written out at the end; the tool on the host decodes it.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;

use defmt::{Encoder, info, unwrap};
use heapless::Vec;
use nv_firmware::encode::{Buffer, GENERATIONS, launch, shaped};
use nv_firmware::start::{exit, stack_used, write};
use nv_proto::class::Generation;
use nv_proto::gpfifo::GpEntry;
use nv_proto::pretty::{Bindings, lines};
use nv_proto::qmd::Qmd;
use spin::Mutex;

static LAUNCH: Mutex<Buffer> = Mutex::new(Buffer::new());

nv_firmware::begin!(main);

fn main() -> u8 {
    for sm in GENERATIONS {
        run(sm);
    }
    let _taken = TAKEN.lock();
    // SAFETY: the lock was just taken.
    let log = unsafe { Log::held() };
    match (log.lost, write(&log.bytes)) {
        (false, true) => 0,
        (true, _) => 3,
        (_, false) => 4,
    }
}

fn run(sm: u16) {
    let mut buffer = LAUNCH.lock();
    let mut prepared = None;
    let prepare = stack_used(&mut || prepared = shaped(sm).ok());
    let shaped = unwrap!(prepared, "sm_{=u16}: prepared", sm);
    let mut done = Ok(());
    let encode = stack_used(&mut || done = launch(&shaped, u32::from(sm), &mut buffer));
    unwrap!(done);
    let qmd = unwrap!(Qmd::decode(&buffer.qmd));
    let log = stack_used(&mut || info!("sm_{=u16}: {}", sm, qmd));
    info!("sm_{=u16}: {}", sm, unwrap!(qmd.launch()));
    for line in lines(&buffer.commands, Bindings::of(Generation::Hopper)) {
        info!("sm_{=u16}: {}", sm, unwrap!(line));
    }
    info!(
        "sm_{=u16}: {}",
        sm,
        unwrap!(GpEntry::decode(buffer.ring[buffer.ring.len() - 1]))
    );
    info!(
        "sm_{=u16}: stack prepare={=usize} encode={=usize} log={=usize}",
        sm, prepare, encode, log
    );
    info!("sm_{=u16}: digest={=u64:#018x}", sm, buffer.digest());
}

/// The log until it is written out.
struct Log {
    encoder: Encoder,
    bytes: Vec<u8, { 16 << 10 }>,
    lost: bool,
}

impl Log {
    /// The log, while `TAKEN` is held.
    ///
    /// # Safety
    /// The caller holds `TAKEN`, and has no other reference to the log.
    unsafe fn held() -> &'static mut Self {
        // SAFETY: whoever holds the lock is the only one to reach the log, and the caller has no other reference.
        unsafe { &mut *LOG.0.get() }
    }

    fn put(&mut self, encode: impl FnOnce(&mut Encoder, &mut dyn FnMut(&[u8]))) {
        let Self {
            encoder,
            bytes,
            lost,
        } = self;
        encode(encoder, &mut |more| {
            *lost |= bytes.extend_from_slice(more).is_err();
        });
    }
}

struct LogCell(UnsafeCell<Log>);

// SAFETY: the log is reached by `Log::held` alone, whose callers hold the lock.
unsafe impl Sync for LogCell {}

static TAKEN: Mutex<()> = Mutex::new(());
static LOG: LogCell = LogCell(UnsafeCell::new(Log {
    encoder: Encoder::new(),
    bytes: Vec::new(),
    lost: false,
}));

#[defmt::global_logger]
struct Logger;

// SAFETY: `acquire` takes the lock and `release` gives it back, so that between the two nobody else writes; one that
// finds it taken ends the image, since one processor would wait for itself.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        let Some(taken) = TAKEN.try_lock() else {
            exit(102)
        };
        core::mem::forget(taken);
        // SAFETY: the lock was just taken.
        let log = unsafe { Log::held() };
        log.put(|encoder, put| encoder.start_frame(put));
    }

    unsafe fn flush() {}

    unsafe fn release() {
        // SAFETY: the caller has called `acquire`, which left the lock taken.
        let log = unsafe { Log::held() };
        log.put(|encoder, put| encoder.end_frame(put));
        // SAFETY: as above; the reference is no longer used.
        unsafe { TAKEN.force_unlock() };
    }

    unsafe fn write(frame: &[u8]) {
        // SAFETY: the caller has called `acquire`, which left the lock taken.
        let log = unsafe { Log::held() };
        log.put(|encoder, put| encoder.write(frame, put));
    }
}
