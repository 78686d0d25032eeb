//! The smallest image that changes descriptors which somebody else prepared, and starts them.
#![no_std]
#![no_main]

use core::hint::black_box;

use nv_firmware::encode::{Buffer, patch};
use nv_proto::qmd::Version;
use spin::Mutex;

static LAUNCH: Mutex<Buffer> = Mutex::new(Buffer::new());

nv_firmware::begin!(main);

fn main() -> u8 {
    let mut buffer = LAUNCH.lock();
    for _ in 0..96 {
        if buffer.qmd.push(black_box(0)).is_err() {
            return 1;
        }
    }
    match patch(black_box(Version::V04_00), black_box(7), &mut buffer) {
        Ok(()) => black_box(0),
        Err(_) => 2,
    }
}
