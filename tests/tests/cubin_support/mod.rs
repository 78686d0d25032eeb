//! Makes small cubins out of nothing, to have each fault that a reader must find.

#![allow(dead_code, reason = "each test binary uses some of it")]

use nv_proto::cubin::{Cubin, Layout};
use nv_proto::unit::GpuVa;

/// A section to be.
#[derive(Clone)]
pub struct Part {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub data: Vec<u8>,
    /// Its size where it has no data.
    pub size: Option<u64>,
    pub link: u32,
    pub info: u32,
    pub align: u64,
    pub entsize: u64,
}

impl Part {
    pub fn new(name: &'static str, kind: u32, flags: u64, data: impl Into<Vec<u8>>) -> Self {
        Self {
            name,
            kind,
            flags,
            data: data.into(),
            size: None,
            link: 0,
            info: 0,
            align: 1,
            entsize: 0,
        }
    }

    pub fn link(self, link: u32) -> Self {
        Self { link, ..self }
    }

    pub fn info(self, info: u32) -> Self {
        Self { info, ..self }
    }

    pub fn align(self, align: u64) -> Self {
        Self { align, ..self }
    }

    pub fn size(self, size: u64) -> Self {
        Self {
            size: Some(size),
            ..self
        }
    }
}

/// A symbol to be.
#[derive(Clone, Copy)]
pub struct Sym {
    pub name: &'static str,
    pub info: u8,
    pub other: u8,
    pub section: u16,
    pub value: u64,
}

/// A cubin to be. Section 0 is added in front, and `.symtab`, `.strtab` and `.shstrtab` behind.
#[derive(Clone)]
pub struct Draft {
    pub osabi: u8,
    pub flags: u32,
    pub parts: Vec<Part>,
    pub symbols: Vec<Sym>,
}

pub const TEXT: u32 = 1;
pub const SYMTAB_AFTER: u32 = 1;

impl Draft {
    /// One kernel `k` of four instructions in section 1, with its attributes in sections 2 and 3; symbols
    /// 1 `k`, 2 `g` in `.nv.global.init` (section 4), 3 `outside`, undefined.
    pub fn kernel() -> Self {
        let word = |values: &[u32]| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect::<Vec<_>>()
        };
        let regcount = [&[4u8, 0x2f, 8, 0][..], &word(&[1, 12])].concat();
        let info = [
            &[4u8, 0x0a, 8, 0][..],
            &word(&[5, 8 << 16 | 0x210]),
            &[4, 0x17, 12, 0],
            &word(&[0, 0, 8 << 18]),
        ];
        Self {
            osabi: 0x33,
            flags: 0x005a_055a,
            parts: vec![
                Part::new(".text.k", 1, 6, vec![0x11; 64])
                    .info(0x0c00_0001)
                    .align(128),
                Part::new(".nv.info", 0x7000_0000, 0, regcount),
                Part::new(".nv.info.k", 0x7000_0000, 0x40, info.concat()).info(1),
                Part::new(".nv.global.init", 1, 3, vec![0; 32]).align(16),
                Part::new(".nv.constant0.k", 1, 0x42, vec![0; 0x218])
                    .info(1)
                    .align(4),
            ],
            symbols: vec![
                Sym {
                    name: "k",
                    info: 0x12,
                    other: 0x10,
                    section: 1,
                    value: 0,
                },
                Sym {
                    name: "g",
                    info: 0x11,
                    other: 0,
                    section: 4,
                    value: 8,
                },
                Sym {
                    name: "outside",
                    info: 0x12,
                    other: 0,
                    section: 0,
                    value: 0,
                },
            ],
        }
    }

    /// With a relocation of `kind` at `offset` of section `target` against a symbol.
    pub fn relocation(
        mut self,
        target: u32,
        kind: u32,
        symbol: u32,
        offset: u64,
        addend: Option<i64>,
    ) -> Self {
        let mut data = offset.to_le_bytes().to_vec();
        data.extend(kind.to_le_bytes());
        data.extend(symbol.to_le_bytes());
        let kind = match addend {
            Some(addend) => {
                data.extend(addend.to_le_bytes());
                4
            }
            None => 9,
        };
        let symtab = u32::try_from(self.parts.len()).unwrap() + 1 + SYMTAB_AFTER;
        self.parts.push(
            Part::new(".rel.x", kind, 0x40, data)
                .info(target)
                .link(symtab),
        );
        self
    }

    pub fn build(&self) -> Vec<u8> {
        let mut strings = vec![0u8];
        let mut symbols = vec![0u8; 24];
        for symbol in &self.symbols {
            symbols.extend(u32::try_from(strings.len()).unwrap().to_le_bytes());
            symbols.extend([symbol.info, symbol.other]);
            symbols.extend(symbol.section.to_le_bytes());
            symbols.extend(symbol.value.to_le_bytes());
            symbols.extend(0u64.to_le_bytes());
            strings.extend(symbol.name.bytes());
            strings.push(0);
        }
        let count = u32::try_from(self.parts.len()).unwrap();
        let mut parts = self.parts.clone();
        parts.push(Part {
            entsize: 24,
            ..Part::new(".symtab", 2, 0, symbols).link(count + 2).align(8)
        });
        parts.push(Part::new(".strtab", 3, 0, strings));
        let mut names = vec![0u8];
        let mut table = vec![0u8; 64];
        let mut file = vec![0u8; 64];
        let last = parts.len();
        parts.push(Part::new(".shstrtab", 3, 0, vec![]));
        for (index, part) in parts.iter().enumerate() {
            let name = u32::try_from(names.len()).unwrap();
            names.extend(part.name.bytes());
            names.push(0);
            let data = if index == last {
                names.clone()
            } else {
                part.data.clone()
            };
            while !file.len().is_multiple_of(16) {
                file.push(0);
            }
            table.extend(name.to_le_bytes());
            table.extend(part.kind.to_le_bytes());
            table.extend(part.flags.to_le_bytes());
            table.extend(0u64.to_le_bytes());
            table.extend(u64::try_from(file.len()).unwrap().to_le_bytes());
            table.extend(part.size.unwrap_or(data.len() as u64).to_le_bytes());
            table.extend(part.link.to_le_bytes());
            table.extend(part.info.to_le_bytes());
            table.extend(part.align.to_le_bytes());
            table.extend(part.entsize.to_le_bytes());
            file.extend(data);
        }
        let shoff = file.len() as u64;
        file.extend(&table);
        file[..9].copy_from_slice(&[
            0x7f,
            b'E',
            b'L',
            b'F',
            2,
            1,
            1,
            self.osabi,
            if self.osabi == 0x33 { 7 } else { 8 },
        ]);
        file[16..18].copy_from_slice(&2u16.to_le_bytes());
        file[18..20].copy_from_slice(&190u16.to_le_bytes());
        file[20..24].copy_from_slice(&124u32.to_le_bytes());
        file[40..48].copy_from_slice(&shoff.to_le_bytes());
        file[48..52].copy_from_slice(&self.flags.to_le_bytes());
        file[52..54].copy_from_slice(&64u16.to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&u16::try_from(parts.len() + 1).unwrap().to_le_bytes());
        file[62..64].copy_from_slice(&u16::try_from(parts.len()).unwrap().to_le_bytes());
        file
    }
}

/// Places and relocates with the default layout at `base`; the image, or the error's text.
pub fn load(file: &[u8], base: u64) -> Result<Vec<u8>, String> {
    let text = |error: nv_proto::cubin::Error<'_>| error.to_string();
    let cubin = Cubin::parse(file).map_err(text)?;
    let mut places = vec![0; cubin.section_count()];
    let plan = cubin.plan(Layout::default(), &mut places).map_err(text)?;
    let mut image = vec![0xa5; usize::try_from(plan.data_size()).unwrap()];
    plan.place_into(&mut image).map_err(text)?;
    plan.relocate(&mut image, GpuVa(base)).map_err(text)?;
    Ok(image)
}
