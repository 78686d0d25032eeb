//! The smallest image that encodes launches from facts: limits checked, any generation that launches are known for.
#![no_std]
#![no_main]

use core::hint::black_box;

use nv_firmware::encode::{Buffer, launch, shaped};
use spin::Mutex;

static LAUNCH: Mutex<Buffer> = Mutex::new(Buffer::new());

nv_firmware::begin!(main);

fn main() -> u8 {
    let Ok(shaped) = shaped(black_box(90)) else {
        return 1;
    };
    let mut buffer = LAUNCH.lock();
    match launch(&shaped, black_box(7), &mut buffer) {
        Ok(()) => black_box(0),
        Err(_) => 2,
    }
}
