//! Streams and descriptors as text.
