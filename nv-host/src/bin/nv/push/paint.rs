//! Output: colours on a terminal alone, and a reader that goes away is no failure.

use std::io::{self, IsTerminal, Write};

use crate::exit::Failure;

/// What a piece of text is.
#[derive(Clone, Copy, Debug)]
pub enum Ink {
    /// What frames the rest: offsets, classes.
    Dim,
    /// What is looked for: methods.
    Strong,
    /// Names of fields.
    Name,
    /// What is gone.
    Minus,
    /// What is new.
    Plus,
}

/// Where lines go, in colours or without.
pub struct Paper<'a> {
    out: Box<dyn Write + 'a>,
    colours: bool,
}

impl<'a> Paper<'a> {
    /// Any other place.
    #[cfg(test)]
    pub fn new(out: &'a mut Vec<u8>, colours: bool) -> Self {
        Self {
            out: Box::new(out),
            colours,
        }
    }

    /// A file, without colours.
    pub fn file(file: std::fs::File) -> Self {
        Self {
            out: Box::new(io::BufWriter::new(file)),
            colours: false,
        }
    }

    /// In colours if standard output is a terminal and `NO_COLOR` is not set.
    pub fn stdout() -> Self {
        let out = io::stdout().lock();
        let colours =
            out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self {
            out: Box::new(io::BufWriter::new(out)),
            colours,
        }
    }

    /// `text` in `ink`, or plain.
    pub fn ink(&self, ink: Ink, text: impl std::fmt::Display) -> String {
        if !self.colours {
            return text.to_string();
        }
        let code = match ink {
            Ink::Dim => "2",
            Ink::Strong => "1",
            Ink::Name => "36",
            Ink::Minus => "31",
            Ink::Plus => "32",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Writes a line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<(), Failure> {
        writeln!(self.out, "{text}").map_err(failed)
    }

    /// Writes what is left.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(failed)
    }
}

/// A closed pipe ends the program quietly, as readers such as `head` expect.
fn failed(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    Failure::BadInput(format!("standard output: {error}"))
}
