//! `count launch|patch|copy SM N`: so many launches, for an instruction counter to look at. The difference between two
//! numbers of launches is what launches take, without start and end of the program.

use std::hint::black_box;

#[path = "../../../image/src/encode.rs"]
#[allow(dead_code, reason = "some of it is for the images")]
mod encode;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, sm, count] = arguments.as_slice() else {
        return Err("usage: count launch|patch|copy SM N".into());
    };
    let (sm, count) = (sm.parse()?, count.parse::<u32>()?);
    let shaped = encode::shaped(sm)?;
    let version = shaped.qmd().version();
    let mut buffer = encode::Buffer::new();
    encode::launch(&shaped, 1, &mut buffer)?;
    let mut to = encode::Buffer::new();
    encode::launch(&shaped, 2, &mut to)?;
    for number in 1..=count {
        match what.as_str() {
            "launch" => encode::launch(&shaped, black_box(number), &mut buffer)?,
            "patch" => encode::patch(version, black_box(number), &mut buffer)?,
            // The same bytes, moved by the C library.
            "copy" => {
                to.qmd.copy_from_slice(black_box(&buffer.qmd));
                to.bank0.copy_from_slice(black_box(&buffer.bank0));
                to.commands.copy_from_slice(black_box(&buffer.commands));
                to.ring[0] = black_box(buffer.ring[0]);
                black_box(&mut to);
            }
            other => return Err(format!("{other}: not launch, patch or copy").into()),
        }
        black_box(&mut buffer);
    }
    Ok(())
}
