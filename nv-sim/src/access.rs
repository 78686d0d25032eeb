//! Loads, stores and copies of any size over an address space.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Access, AddressSpace, MmuFault};

/// Fills `out` from `va` on.
pub(crate) fn read(space: &dyn AddressSpace, va: u64, out: &mut [u8]) -> Result<(), MmuFault> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = va.wrapping_add(done as u64);
        let skip = (at % 8) as usize;
        let cells = space.cells(at, (skip + rest.len()).div_ceil(8), Access::Read)?;
        let mut filled = 0;
        for cell in cells {
            let bytes = cell.load(Ordering::Relaxed).to_le_bytes();
            let from = if filled == 0 { skip } else { 0 };
            for (target, source) in rest.iter_mut().skip(filled).zip(bytes.iter().skip(from)) {
                *target = *source;
            }
            filled = (filled + 8 - from).min(rest.len());
        }
        done += filled.max(1);
    }
    Ok(())
}

/// Stores `bytes` from `va` on.
pub(crate) fn write(space: &dyn AddressSpace, va: u64, bytes: &[u8]) -> Result<(), MmuFault> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        let at = va.wrapping_add(done as u64);
        let skip = (at % 8) as usize;
        let cells = space.cells(at, (skip + rest.len()).div_ceil(8), Access::Write)?;
        let mut stored = 0;
        for cell in cells {
            let from = if stored == 0 { skip } else { 0 };
            let count = (8 - from).min(rest.len() - stored);
            store_part(cell, from, rest.get(stored..stored + count).unwrap_or(&[]));
            stored += count;
        }
        done += stored.max(1);
    }
    Ok(())
}

/// Stores up to 8 bytes into a cell from its byte `from` on, leaving its other bytes to whoever writes them.
fn store_part(cell: &AtomicU64, from: usize, bytes: &[u8]) {
    if let Ok(whole) = bytes.try_into() {
        cell.store(u64::from_le_bytes(whole), Ordering::Relaxed);
        return;
    }
    let (mut value, mut mask) = ([0; 8], [0; 8]);
    for ((value, mask), byte) in value.iter_mut().zip(&mut mask).skip(from).zip(bytes) {
        *value = *byte;
        *mask = 0xff;
    }
    let (value, mask) = (u64::from_le_bytes(value), u64::from_le_bytes(mask));
    update(cell, |old| old & !mask | value);
}

fn update(cell: &AtomicU64, change: impl Fn(u64) -> u64) -> u64 {
    cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(change(old)))
        .unwrap_or_default()
}

/// Copies `length` bytes; what happens to overlapping ranges is not said.
pub(crate) fn copy(
    space: &dyn AddressSpace,
    from: u64,
    to: u64,
    length: u64,
) -> Result<(), MmuFault> {
    let mut done = 0;
    while done < length {
        let (source, target) = (from.wrapping_add(done), to.wrapping_add(done));
        let left = length - done;
        if source % 8 == 0 && target % 8 == 0 && left >= 8 {
            let cells = usize::try_from(left / 8).unwrap_or(usize::MAX);
            let source = space.cells(source, cells, Access::Read)?;
            let target = space.cells(target, cells, Access::Write)?;
            for (target, source) in target.iter().zip(source) {
                target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            done += source.len().min(target.len()) as u64 * 8;
        } else {
            let mut bounce = [0; 4096];
            let mut count = left.min(4096);
            if source % 8 == target % 8 {
                // Up to where whole cells can be copied.
                count = count.min(8 - source % 8);
            }
            let bounce = bounce.get_mut(..count as usize).unwrap_or_default();
            read(space, source, bounce)?;
            write(space, target, bounce)?;
            done += count;
        }
    }
    Ok(())
}

/// Loads an aligned word.
pub(crate) fn load_u32(space: &dyn AddressSpace, va: u64) -> Result<u32, MmuFault> {
    let cell = space.cell(va, Access::Read)?.load(Ordering::Acquire);
    Ok((cell >> (va % 8 / 4 * 32)) as u32)
}

/// Loads an aligned double word.
pub(crate) fn load_u64(space: &dyn AddressSpace, va: u64) -> Result<u64, MmuFault> {
    Ok(space.cell(va, Access::Read)?.load(Ordering::Acquire))
}

/// Stores an aligned word; all earlier stores are seen before it.
pub(crate) fn store_u32(space: &dyn AddressSpace, va: u64, value: u32) -> Result<(), MmuFault> {
    let cell = space.cell(va, Access::Write)?;
    update(cell, |old| insert_u32(old, va, value));
    Ok(())
}

/// Stores an aligned double word; all earlier stores are seen before it.
pub(crate) fn store_u64(space: &dyn AddressSpace, va: u64, value: u64) -> Result<(), MmuFault> {
    space
        .cell(va, Access::Write)?
        .store(value, Ordering::Release);
    Ok(())
}

/// Replaces the aligned word at `va` by what `change` makes of it, atomically.
pub(crate) fn update_u32(
    space: &dyn AddressSpace,
    va: u64,
    change: impl Fn(u32) -> u32,
) -> Result<(), MmuFault> {
    let cell = space.cell(va, Access::Atomic)?;
    update(cell, |old| {
        insert_u32(old, va, change((old >> (va % 8 / 4 * 32)) as u32))
    });
    Ok(())
}

/// Replaces the aligned double word at `va` by what `change` makes of it, atomically.
pub(crate) fn update_u64(
    space: &dyn AddressSpace,
    va: u64,
    change: impl Fn(u64) -> u64,
) -> Result<(), MmuFault> {
    update(space.cell(va, Access::Atomic)?, change);
    Ok(())
}

fn insert_u32(cell: u64, va: u64, value: u32) -> u64 {
    let shift = va % 8 / 4 * 32;
    cell & !(0xffff_ffff << shift) | u64::from(value) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::mmu::{Permission, Region, Space, VA_END};
    use std::sync::Arc;

    /// Two regions that touch, and one beyond a gap.
    fn space() -> Space {
        let space = Space::new(VA_END - 1, false);
        for (va, object) in [(0x1000, 1), (0x2000, 2), (0x4000, 3)] {
            let memory = Arc::new(Memory::zeroed(0x1000).unwrap());
            let permission = Permission::ReadWrite;
            space
                .map(Region {
                    va,
                    length: 0x1000,
                    memory,
                    offset: 0,
                    permission,
                    object,
                })
                .unwrap();
        }
        space
    }

    #[test]
    fn every_alignment_and_length_reads_back() {
        let space = space();
        let table = space.snapshot();
        for at in 0x1ff0..0x2008 {
            for length in 0..40 {
                let pattern: Vec<u8> = (0..length)
                    .map(|i| (i * 7 + at as usize) as u8 | 1)
                    .collect();
                write(&*table, 0x1f00, &[0xa5; 0x200]).unwrap();
                write(&*table, at, &pattern).unwrap();
                let mut back = vec![0; 0x200];
                read(&*table, 0x1f00, &mut back).unwrap();
                let first = (at - 0x1f00) as usize;
                assert_eq!(back[first..first + length], pattern);
                assert!(
                    back[..first]
                        .iter()
                        .chain(&back[first + length..])
                        .all(|byte| *byte == 0xa5)
                );
                let mut exact = vec![0; length];
                read(&*table, at, &mut exact).unwrap();
                assert_eq!(exact, pattern);
            }
        }
    }

    #[test]
    fn copies_of_every_alignment_agree() {
        let space = space();
        let table = space.snapshot();
        let source: Vec<u8> = (0..0x400u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        write(&*table, 0x1e00, &source).unwrap();
        for from in 0..9u64 {
            for to in 0..9u64 {
                for length in [0, 1, 7, 8, 9, 63, 64, 300] {
                    write(&*table, 0x4000, &[0xa5; 0x400]).unwrap();
                    copy(&*table, 0x1e00 + from, 0x4010 + to, length).unwrap();
                    let mut back = [0; 0x400];
                    read(&*table, 0x4000, &mut back).unwrap();
                    let first = 0x10 + to as usize;
                    let (from, length) = (from as usize, length as usize);
                    assert_eq!(back[first..first + length], source[from..from + length]);
                    assert!(
                        back[..first]
                            .iter()
                            .chain(&back[first + length..])
                            .all(|b| *b == 0xa5)
                    );
                }
            }
        }
    }

    #[test]
    fn faults_name_the_first_address_outside() {
        let space = space();
        let table = space.snapshot();
        let fault = read(&*table, 0x2ff9, &mut [0; 16]).unwrap_err();
        assert_eq!(
            fault,
            MmuFault {
                va: 0x3000,
                access: Access::Read
            }
        );
        let fault = write(&*table, 0x2ff0, &[0; 64]).unwrap_err();
        assert_eq!(
            fault,
            MmuFault {
                va: 0x3000,
                access: Access::Write
            }
        );
        assert_eq!(
            copy(&*table, 0x1000, 0x2800, 0x1000).unwrap_err().va,
            0x3000
        );
        assert_eq!(
            copy(&*table, 0x2800, 0x1000, 0x1000).unwrap_err().access,
            Access::Read
        );
    }

    #[test]
    fn words_are_halves_of_cells() {
        let space = space();
        let table = space.snapshot();
        store_u64(&*table, 0x1008, 0x1122_3344_5566_7788).unwrap();
        assert_eq!(load_u32(&*table, 0x1008), Ok(0x5566_7788));
        assert_eq!(load_u32(&*table, 0x100c), Ok(0x1122_3344));
        store_u32(&*table, 0x100c, 0xdead_beef).unwrap();
        update_u32(&*table, 0x1008, |old| old + 1).unwrap();
        assert_eq!(load_u64(&*table, 0x1008), Ok(0xdead_beef_5566_7789));
        update_u64(&*table, 0x1008, |old| !old).unwrap();
        assert_eq!(load_u64(&*table, 0x1008), Ok(!0xdead_beef_5566_7789));
    }
}
