//! Everything that the cubin reader can do, on any bytes: what the fuzz targets run, and the tests on mutated files.
//! Nothing here may panic; what must hold of whatever is read is asserted.

use nv_proto::cubin::{
    Content, Cubin, Layout, Records, RelocationType, Role, Sections, SymbolSection,
};
use nv_proto::unit::GpuVa;

/// What became of a run, so that tests can tell that mutated files get past the first check.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// The tables were read.
    pub parsed: bool,
    /// The kernels' facts were read.
    pub kernels: bool,
    /// The image was relocated.
    pub relocated: bool,
}

/// Reads a file as a cubin, and everything in it.
pub fn cubin(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let cubin = match Cubin::parse(bytes) {
        Ok(cubin) => cubin,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return outcome;
        }
    };
    outcome.parsed = true;
    assert_eq!(Content::of(bytes), Content::Cubin);
    let _ = (
        cubin.sm(),
        cubin.variant().suffix(),
        cubin.toolkit(),
        cubin.is_relocatable(),
    );
    for section in cubin.sections() {
        if !section.kind().is_nobits() && section.kind().0 != 0 {
            assert_eq!(section.data().len() as u64, section.size());
        }
        let _ = (
            section.name(),
            section.role(),
            section.kind().to_string(),
            section.is_loaded(),
        );
        if matches!(
            section.role(),
            Role::Info(_) | Role::ModuleInfo | Role::Compat
        ) {
            records(section.records());
        }
    }
    for symbol in cubin.symbols() {
        let _ = (
            symbol.name(),
            symbol.kind(),
            symbol.space(),
            symbol.is_kernel(),
        );
        if let SymbolSection::In(section) = symbol.section() {
            assert!(cubin.section(section).is_some());
        }
    }
    for note in cubin.notes().flatten() {
        let _ = note
            .tool()
            .map(|tool| (tool.toolkit(), tool.architecture()));
    }
    match cubin.kernels() {
        Ok(kernels) => {
            outcome.kernels = true;
            assert_eq!(kernels.len(), cubin.kernel_count());
            for kernel in kernels.iter().take(64) {
                assert!(kernel.registers > 0);
                assert_eq!(kernel.params().count(), kernel.param_count as usize);
                let _ = (
                    kernel.exits().count(),
                    kernel.externals().count(),
                    kernel.thread_limit(),
                );
            }
            if let Some(kernel) = kernels.first() {
                let _ = cubin.kernel(kernel.name);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    for relocations in cubin.relocation_sections() {
        match relocations {
            Ok(relocations) => assert_eq!(relocations.iter().count(), relocations.len()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    outcome.relocated = image(&cubin, Sections::Loaded);
    image(&cubin, Sections::All);
    outcome
}

fn records(records: Records<'_>) {
    let mut end = 0;
    for record in records {
        match record {
            Ok(record) => {
                assert!(record.offset >= end, "records ascend");
                end = record.offset + 4;
                let _ = (record.attribute().to_string(), record.compat().to_string());
                let _ = (
                    record.value.number(),
                    record.value.words().count(),
                    record.value.exact_words::<3>(),
                );
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Reads any bytes as attribute records.
pub fn nvinfo(bytes: &[u8]) {
    records(Records::new("fuzz", bytes));
}

fn image(cubin: &Cubin<'_>, sections: Sections) -> bool {
    const BASE: GpuVa = GpuVa(0x7f12_3456_0000);
    let mut places = vec![0; cubin.section_count()];
    let Ok(plan) = cubin.plan(
        Layout {
            section_align: 128,
            sections,
        },
        &mut places,
    ) else {
        return false;
    };
    assert!(plan.data_size() <= plan.size());
    // Sections lie apart, in the file's order, contents before zeroed storage.
    let mut ends = [0, plan.data_size()];
    for section in cubin.sections() {
        let Some(place) = plan.section(section.index()) else {
            continue;
        };
        let end = &mut ends[usize::from(section.kind().is_nobits())];
        assert!(place >= *end && place % section.alignment() == 0 && place % 128 == 0);
        *end = place + section.size();
        assert!(*end <= plan.size());
    }
    // Padding is at most the largest alignment for each section.
    if plan.data_size() > 1 << 26 {
        return false;
    }
    let mut image = vec![0xa5; plan.data_size() as usize];
    plan.place_into(&mut image)
        .expect("the size that it asked for");
    let placed = image.clone();
    let result = plan.relocate(&mut image, BASE);
    if let Err(error) = result {
        assert!(!error.to_string().is_empty());
    }
    let _ = plan.undefined().take(1000).count();
    let mut again = placed.clone();
    assert_eq!(plan.relocate(&mut again, BASE), result);
    assert!(again == image, "the same image each time");
    // Bytes that no relocation names are as they were.
    let mut touched = vec![false; image.len()];
    for relocations in cubin.relocation_sections().flatten() {
        let Some(place) = plan.section(relocations.target().index()) else {
            continue;
        };
        for relocation in relocations.iter() {
            let at = usize::try_from(place.saturating_add(relocation.offset)).unwrap_or(usize::MAX);
            for piece in relocation.kind.pieces().into_iter().flatten() {
                let bits = usize::from(piece.at)..usize::from(piece.at) + usize::from(piece.width);
                for byte in bits.start / 8..bits.end.div_ceil(8) {
                    if let Some(touched) = touched.get_mut(at.saturating_add(byte)) {
                        *touched = true;
                    }
                }
            }
        }
    }
    for ((old, new), touched) in placed.iter().zip(&image).zip(&touched) {
        assert!(*touched || old == new, "a byte outside every relocation");
    }
    result.is_ok()
}

/// One relocation of any type over any code: a cubin with it is made of `bytes` and loaded.
pub fn reloc(bytes: &[u8]) {
    let Some((head, code)) = bytes.split_first_chunk::<20>() else {
        return;
    };
    let kind = u32::from_le_bytes([head[0], head[1], head[2], 0]);
    let offset = u64::from(u16::from_le_bytes([head[4], head[5]]));
    let addend = i64::from_le_bytes([
        head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15],
    ]);
    let rela = head[3] & 1 != 0;
    let value = u64::from(u32::from_le_bytes([head[16], head[17], head[18], head[19]]));
    let constant = head[3] & 2 != 0;
    let file = small_cubin(
        code,
        RelocationType(kind),
        offset,
        rela.then_some(addend),
        value,
        constant,
    );
    assert!(cubin(&file).parsed, "the file is well made");
}

/// A cubin of one section of code, one of data or constants with a symbol, and one relocation.
fn small_cubin(
    code: &[u8],
    kind: RelocationType,
    offset: u64,
    addend: Option<i64>,
    value: u64,
    constant: bool,
) -> Vec<u8> {
    const NAMES: &[u8] =
        b"\0.text.k\0.nv.global.init\0.nv.constant3\0.rel\0.symtab\0.names\0k\0g\0";
    let name = |text: &[u8]| {
        let found = NAMES
            .windows(text.len() + 2)
            .position(|w| w[0] == 0 && w[1..].starts_with(text) && w[text.len() + 1] == 0);
        found.map_or(0, |at| at as u32 + 1)
    };
    let mut relocation = offset.to_le_bytes().to_vec();
    relocation.extend(kind.0.to_le_bytes());
    relocation.extend(2u32.to_le_bytes());
    relocation.extend(addend.iter().flat_map(|addend| addend.to_le_bytes()));
    let mut symbols = vec![0u8; 24];
    for (text, info, other, section, value) in [
        (&b"k"[..], 0x12u8, 0x10u8, 1u16, 0u64),
        (b"g", 0x11, 0, 2, value),
    ] {
        symbols.extend(name(text).to_le_bytes());
        symbols.extend([info, other]);
        symbols.extend(section.to_le_bytes());
        symbols.extend(value.to_le_bytes());
        symbols.extend(16u64.to_le_bytes());
    }
    let home: &[u8] = if constant {
        b".nv.constant3"
    } else {
        b".nv.global.init"
    };
    let rel = if addend.is_some() { 4 } else { 9 };
    type Part<'a> = (&'a [u8], u32, u64, &'a [u8], u32, u32);
    let sections: [Part<'_>; 6] = [
        (b".text.k", 1, 6, code, 0, 0x0800_0001),
        (home, 1, 3, &[0x5a; 64], 0, 0),
        (b".rel", rel, 0x40, &relocation, 4, 1),
        (b".symtab", 2, 0, &symbols, 5, 0),
        (b".names", 3, 0, NAMES, 0, 0),
        (b".names", 3, 0, NAMES, 0, 0),
    ];
    let mut file = vec![0u8; 64];
    let mut table = vec![0u8; 64];
    for (text, kind, flags, data, link, info) in sections {
        table.extend(name(text).to_le_bytes());
        table.extend(kind.to_le_bytes());
        table.extend(flags.to_le_bytes());
        table.extend(0u64.to_le_bytes());
        table.extend((file.len() as u64).to_le_bytes());
        table.extend((data.len() as u64).to_le_bytes());
        table.extend(link.to_le_bytes());
        table.extend(info.to_le_bytes());
        table.extend(8u64.to_le_bytes());
        table.extend(0u64.to_le_bytes());
        file.extend(data);
    }
    let place = (file.len() as u64).to_le_bytes();
    file.extend(table);
    file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x33\x07");
    file[16] = 2;
    file[18] = 190;
    file[20] = 124;
    file[40..48].copy_from_slice(&place);
    file[48..52].copy_from_slice(&0x005a_055au32.to_le_bytes());
    file[52] = 64;
    file[58] = 64;
    file[60] = 7;
    file[62] = 5;
    file
}
