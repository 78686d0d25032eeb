//! GPFIFO entries and the arithmetic of the ring that holds them.
