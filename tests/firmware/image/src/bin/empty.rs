//! An image that does nothing: what the others' code is measured against.
#![no_std]
#![no_main]

nv_firmware::begin!(main);

fn main() -> u8 {
    core::hint::black_box(0)
}
