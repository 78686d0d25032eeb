//! Files that commands read; `-` is standard input.

use std::io::Read;
use std::path::Path;

use crate::exit::Failure;

/// The most bytes that are read: no cubin or capture is near it.
const MAX_BYTES: u64 = 4 << 30;

/// All bytes of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let fail = |error: std::io::Error| Failure::BadInput(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let reader: &mut dyn Read = if path == Path::new("-") {
        &mut std::io::stdin()
    } else {
        &mut std::fs::File::open(path).map_err(fail)?
    };
    reader
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::BadInput(format!(
            "{}: more than {MAX_BYTES} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}
