//! Tables for people.

use comfy_table::{ContentArrangement, Table, presets};

/// An empty table with these headings, as wide as the terminal allows.
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(headings);
    table
}
