//! Bit fields over structures of 32-bit words: the only hand-made shifts and masks.
