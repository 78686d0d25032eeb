//! Lists of facts, as a table for people or as JSON for programs: the same rows either way.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Map, Value};

use crate::exit::Failure;
use crate::out;

/// One fact.
#[derive(Clone, Debug)]
pub enum Cell {
    /// There is none: empty, `null`.
    None,
    /// Text.
    Text(String),
    /// A number.
    Number(u64),
    /// A number that people read in hexadecimal.
    Hex(u64),
    /// A number that may be negative.
    Signed(i64),
    /// Yes or no.
    Flag(bool),
    /// Several texts.
    List(Vec<String>),
}

impl Cell {
    fn json(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Number(number) | Self::Hex(number) => (*number).into(),
            Self::Signed(number) => (*number).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::List(list) => list.as_slice().into(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Hex(number) => format!("{number:#x}"),
            Self::Signed(number) => number.to_string(),
            Self::Flag(flag) => if *flag { "yes" } else { "" }.to_owned(),
            Self::List(list) => list.join(", "),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::Text(text) => text.is_empty(),
            Self::Flag(flag) => !flag,
            Self::List(list) => list.is_empty(),
            _ => false,
        }
    }
}

/// Rows under headings. Headings are the keys of JSON objects.
#[derive(Debug)]
pub struct Listing {
    headings: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

impl Listing {
    /// No rows.
    pub const fn new(headings: &'static [&'static str]) -> Self {
        Self {
            headings,
            rows: Vec::new(),
        }
    }

    /// Adds a row of as many cells as there are headings.
    pub fn push<const N: usize>(&mut self, row: [Cell; N]) {
        debug_assert_eq!(N, self.headings.len());
        self.rows.push(row.into());
    }

    /// The rows as a list of objects.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let cells = self
                .headings
                .iter()
                .zip(row)
                .map(|(key, cell)| ((*key).to_owned(), cell.json()));
            Value::Object(cells.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// Writes the rows to standard output. A table leaves out columns that are empty throughout.
    pub fn show(&self, json: bool) -> Result<(), Failure> {
        if json {
            return print(&format!("{:#}", self.json()));
        }
        let full = |column: &usize| {
            self.rows
                .iter()
                .any(|row| row.get(*column).is_some_and(|cell| !cell.is_empty()))
        };
        let columns: Vec<usize> = (0..self.headings.len())
            .filter(|column| *column == 0 || full(column))
            .collect();
        let heading = |column: &usize| {
            self.headings
                .get(*column)
                .map_or(String::new(), |text| text.replace('_', " "))
        };
        let headings: Vec<String> = columns.iter().map(heading).collect();
        // No rules between rows: these lists are long, and are searched with other tools.
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_header(headings);
        for row in &self.rows {
            table.add_row(
                columns
                    .iter()
                    .map(|column| row.get(*column).map_or(String::new(), Cell::text)),
            );
        }
        let lines: String = table
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        out::text(&lines)
    }
}

/// Writes a line to standard output.
pub fn print(line: &str) -> Result<(), Failure> {
    out::text(&format!("{line}\n"))
}
