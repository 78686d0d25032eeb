//! Pushbuffers: method headers and the methods of each engine.
