//! What docs/faults.md shows of each kind of fault is what a simulated H200 makes of it.
//!
//! On a GPU, its own texts: `cargo test -p nv-tests --test fault_page -- --ignored --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test code: a page that cannot be read fails"
)]

use nv_host::{Backend, MapMode, Options};
use nv_sim::Chip;
use nv_tests::conformance::faults::examples;

fn options(backend: Backend) -> Options {
    Options {
        backend,
        map_mode: Some(MapMode::Rm),
        ..Options::default()
    }
}

/// The block below a heading.
fn block<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, below) = page.split_once(&format!("### {heading}\n"))?;
    let (_, block) = below.split_once("```text\n")?;
    Some(block.split_once("\n```")?.0)
}

/// The text with addresses left out: where things lie may change.
fn without_addresses(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..]
            .bytes()
            .take_while(u8::is_ascii_hexdigit)
            .count();
        let end = at + 2 + digits;
        out.push_str(&rest[..if digits > 5 { at } else { end }]);
        rest = &rest[end..];
    }
    out + rest
}

#[test]
fn the_page_shows_what_users_see() {
    let page = std::fs::read_to_string(nv_tests::path("../docs/faults.md")).unwrap();
    let found = examples(&options(Backend::Sim(Chip::Gh100)));
    assert!(found.len() > 10);
    for (heading, text) in found {
        let shown = block(&page, heading).unwrap_or_else(|| panic!("no {heading:?}:\n{text}"));
        assert!(
            without_addresses(shown) == without_addresses(&text),
            "{heading}: the page shows\n{shown}\n\nand this is\n{text}"
        );
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hardware() {
    for (heading, text) in examples(&options(Backend::Kernel(0))) {
        println!("### {heading}\n\n```text\n{text}\n```\n");
    }
}
