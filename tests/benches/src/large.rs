//! Cubins of many kernels, made up: with 16,320 or more, section numbers no longer fit 16 bits.

/// A cubin of `kernels` kernels that each have what a compiler gives them: `code` bytes of code, attributes, a constant
/// bank, shared memory and symbols. Attributes of the module run against the order of the symbols.
pub fn large(kernels: u32, code: usize) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut place = |name: String| {
        let at = u32::try_from(names.len()).expect("a small table");
        names.extend(name.bytes());
        names.push(0);
        at
    };
    let mut symbols = vec![0u8; 24];
    let mut module = Vec::new();
    // Name, type, flags, size or data, link, info.
    struct Part {
        name: u32,
        kind: u32,
        flags: u64,
        data: Vec<u8>,
        size: u64,
        link: u32,
        info: u32,
    }
    let mut parts = Vec::new();
    let symtab = 4 * kernels + 2;
    for kernel in 0..kernels {
        let full = format!("_ZN5bench6kernelILi{kernel}EfEEvPT0_PKS1_i");
        let name = place(full.clone());
        let (text, symbol) = (4 * kernel + 1, kernel + 1);
        symbols.extend(name.to_le_bytes());
        symbols.extend([0x12, 0x10]);
        // Section numbers above 0xfeff stand in a table of their own.
        symbols.extend(
            u16::try_from(text)
                .ok()
                .filter(|n| *n < 0xff00)
                .unwrap_or(0xffff)
                .to_le_bytes(),
        );
        symbols.extend(0u64.to_le_bytes());
        symbols.extend((code as u64).to_le_bytes());
        let mut info = Vec::new();
        info.extend([
            4, 0x37, 4, 0, 0x82, 0, 0, 0, 4, 0x0a, 8, 0, 0, 0, 0, 0, 0x10, 0x02, 0x14, 0,
        ]);
        for (ordinal, offset, size) in [(2u16, 16u16, 4u32), (1, 8, 8), (0, 0, 8)] {
            info.extend([4, 0x17, 12, 0, 0, 0, 0, 0]);
            info.extend(ordinal.to_le_bytes());
            info.extend(offset.to_le_bytes());
            info.extend((size << 18 | 0x1f000).to_le_bytes());
        }
        info.extend([
            3, 0x1b, 0xff, 0, 4, 0x1c, 8, 0, 0x70, 0, 0, 0, 0x30, 1, 0, 0, 2, 0x4c, 1, 0,
        ]);
        for (kind, value) in [(0x2fu8, 24u32), (0x11, 0), (0x12, 0)] {
            let mut record = vec![4, kind, 8, 0];
            record.extend((kernels - kernel).to_le_bytes());
            record.extend(value.to_le_bytes());
            module.extend(record);
        }
        let part = |prefix: &str, kind, flags, data: Vec<u8>, size, link, info| {
            (prefix.to_owned(), kind, flags, data, size, link, info)
        };
        for (prefix, kind, flags, data, size, link, info) in [
            part(
                ".text.",
                1,
                6,
                vec![0x47; code],
                code as u64,
                symtab,
                symbol,
            ),
            part(
                ".nv.info.",
                0x7000_0000,
                0x40,
                info.clone(),
                info.len() as u64,
                symtab,
                text,
            ),
            part(".nv.shared.", 8, 0x43, Vec::new(), 2048, 0, text),
            part(".nv.constant0.", 1, 0x42, vec![0; 0x228], 0x228, 0, text),
        ] {
            let name = place(format!("{prefix}{full}"));
            parts.push(Part {
                name,
                kind,
                flags,
                data,
                size,
                link,
                info,
            });
        }
    }
    let wide: Vec<u8> = std::iter::once(0)
        .chain((0..kernels).map(|kernel| 4 * kernel + 1))
        .flat_map(u32::to_le_bytes)
        .collect();
    let info_name = place(".nv.info".to_owned());
    let empty = place(".tables".to_owned());
    let mut last = |name, kind, data: Vec<u8>, link| {
        let size = data.len() as u64;
        parts.push(Part {
            name,
            kind,
            flags: 0,
            data,
            size,
            link,
            info: 0,
        });
    };
    last(info_name, 0x7000_0000, module, symtab);
    last(empty, 2, symbols, symtab + 1);
    last(empty, 3, names, 0);
    last(empty, 18, wide, symtab);
    let mut file = vec![0u8; 64];
    let mut table = vec![0u8; 64];
    table[32..40].copy_from_slice(&(parts.len() as u64 + 1).to_le_bytes());
    table[40..44].copy_from_slice(&(symtab + 1).to_le_bytes());
    for part in parts {
        table.extend(part.name.to_le_bytes());
        table.extend(part.kind.to_le_bytes());
        table.extend(part.flags.to_le_bytes());
        table.extend(0u64.to_le_bytes());
        table.extend((file.len() as u64).to_le_bytes());
        table.extend(part.size.to_le_bytes());
        table.extend(part.link.to_le_bytes());
        table.extend(part.info.to_le_bytes());
        table.extend(16u64.to_le_bytes());
        table.extend(0u64.to_le_bytes());
        file.extend(part.data);
    }
    let at = (file.len() as u64).to_le_bytes();
    file.extend(table);
    file[..9].copy_from_slice(b"\x7fELF\x02\x01\x01\x41\x08");
    file[16] = 2;
    file[18] = 190;
    file[40..48].copy_from_slice(&at);
    file[48..52].copy_from_slice(&0x0600_5a04u32.to_le_bytes());
    file[58] = 64;
    // More sections than the header can count: their number and that of the names stand in the first one.
    file[62] = 0xff;
    file[63] = 0xff;
    file
}
