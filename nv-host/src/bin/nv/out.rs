//! Standard output and standard error.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use crate::exit::Failure;

/// Writes text. A reader that has seen enough and gone is no error.
pub fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes bytes, as [`text`].
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::BadInput(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says something on standard error. Who closed it wants to hear nothing: the exit code still says how things went.
pub fn note(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "nv: {text}");
}

/// Writes a value as JSON.
pub fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    match serde_json::to_string_pretty(value) {
        Ok(json) => text(&format!("{json}\n")),
        Err(error) => Err(Failure::BadInput(error.to_string())),
    }
}
