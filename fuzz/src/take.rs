//! Values taken off the front of bytes, so that a fuzzer decides every one of them.

/// Bytes not yet used; zeroes follow them without end.
#[derive(Clone, Debug)]
pub struct Take<'a>(pub &'a [u8]);

impl Take<'_> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    /// The next four bytes.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// The next eight bytes.
    pub fn long(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()]
    }

    /// A number that is small more often than not, and anything at times.
    pub fn amount(&mut self) -> u32 {
        match self.byte() % 8 {
            0 => 0,
            1 => 1,
            2..5 => u32::from(self.byte()),
            5 => u32::from(self.byte()) << 8,
            6 => self.word() & 0x1_ffff,
            _ => self.word(),
        }
    }

    /// An address, aligned to 256 more often than not.
    pub fn address(&mut self) -> u64 {
        match self.byte() {
            0..8 => self.long(),
            8..24 => u64::from(self.word()) << 4,
            _ => u64::from(self.word()) << 8,
        }
    }

    /// Something or nothing.
    pub fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() & 3 == 3).then(|| some(self))
    }
}
