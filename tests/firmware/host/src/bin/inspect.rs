//! `inspect log IMAGE < FRAMES` prints a log and checks it; `inspect size EMPTY IMAGE...` says how large code is.

use std::error::Error;
use std::io::Read as _;

use defmt_decoder::{DecodeError, Table};
use object::{Object as _, ObjectSection as _, SectionKind};

#[path = "../../../image/src/encode.rs"]
#[allow(dead_code, reason = "some of it is for the images")]
mod encode;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["log", image] => log(image),
        ["size", empty, images @ ..] => size(empty, images),
        _ => Err("usage: inspect log IMAGE < FRAMES | inspect size EMPTY IMAGE...".into()),
    }
}

/// Prints the log, and fails unless every generation was encoded as this host encodes it.
fn log(image: &str) -> Result<(), Box<dyn Error>> {
    let elf = std::fs::read(image)?;
    let table = Table::parse(&elf)?.ok_or("the image has no section .defmt")?;
    let mut frames = Vec::new();
    std::io::stdin().read_to_end(&mut frames)?;
    let mut decoder = table.new_stream_decoder();
    decoder.received(&frames);
    let mut text = Vec::new();
    loop {
        match decoder.decode() {
            Ok(frame) => text.push(frame.display_message().to_string()),
            Err(DecodeError::UnexpectedEof) => break,
            Err(DecodeError::Malformed) => return Err("a frame is malformed".into()),
        }
    }
    for line in &text {
        println!("{line}");
    }
    for sm in encode::GENERATIONS {
        let mut buffer = encode::Buffer::new();
        // The image has one buffer for all, whose ring fills up.
        for earlier in encode::GENERATIONS
            .into_iter()
            .take_while(|earlier| *earlier != sm)
        {
            encode::launch(&encode::shaped(earlier)?, earlier.into(), &mut buffer)?;
        }
        encode::launch(&encode::shaped(sm)?, sm.into(), &mut buffer)?;
        let expected = format!("sm_{sm}: digest={:#018x}", buffer.digest());
        if !text.contains(&expected) {
            return Err(format!("the image did not log `{expected}`").into());
        }
        let grid = format!("sm_{sm}: LaunchView {{ grid: Dim3 {{ x: {sm}, y: 2, z: 1 }}");
        if !text.iter().any(|line| line.starts_with(&grid)) {
            return Err(format!("the image did not log `{grid}`").into());
        }
    }
    println!(
        "{} lines; the image's bytes are this host's for every generation",
        text.len()
    );
    Ok(())
}

/// Bytes of an image's code, of its constants, and of its data, the stack left out.
fn sections(image: &str) -> Result<[u64; 3], Box<dyn Error>> {
    let file = std::fs::read(image)?;
    let elf = object::File::parse(&*file)?;
    let mut sizes = [0; 3];
    for section in elf.sections() {
        if section.name() == Ok(".stack") {
            continue;
        }
        let which = match section.kind() {
            SectionKind::Text => 0,
            SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => 1,
            SectionKind::Data | SectionKind::UninitializedData => 2,
            _ => continue,
        };
        sizes[which] += section.size();
    }
    Ok(sizes)
}

fn size(empty: &str, images: &[&str]) -> Result<(), Box<dyn Error>> {
    let base = sections(empty)?;
    for image in images {
        let sizes = sections(image)?;
        let [code, constants, data] =
            [0, 1, 2].map(|which| sizes[which] as i64 - base[which] as i64);
        println!("{image}: {code} bytes of code, {constants} of constants, {data} of data");
    }
    Ok(())
}
