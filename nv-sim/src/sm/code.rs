//! Instructions fetched and lowered once.

use std::sync::atomic::Ordering;

use super::FaultKind;
use super::launch::Launch;
use super::lower::{Lowered, Step, lower};
use super::regs::PredSrc;
use crate::memory::{Access, AddressSpace};

/// The instructions of a program seen so far, by page.
pub(super) struct Code<'m> {
    memory: &'m dyn AddressSpace,
    pages: Vec<Page>,
    current: usize,
}

struct Page {
    number: u64,
    slots: Box<[Option<Box<Lowered>>]>,
}

const PAGE_BITS: u32 = 12;
const SLOTS: usize = 1 << (PAGE_BITS - 4);
/// The opcode that ends a collective block.
const ENDCOLLECTIVE: u64 = 0x91b;
/// The longest collective block that is looked through.
const MAX_COLLECTIVE: u64 = 64;
/// Pages kept: more code than any program has, less than would hurt.
const MAX_PAGES: usize = 4096;

impl<'m> Code<'m> {
    pub fn new(memory: &'m dyn AddressSpace) -> Self {
        Self {
            memory,
            pages: Vec::new(),
            current: 0,
        }
    }

    /// The instruction at `pc`, which is a multiple of 16.
    #[inline]
    pub fn at(&mut self, pc: u64, launch: &Launch) -> &Lowered {
        let number = pc >> PAGE_BITS;
        if self
            .pages
            .get(self.current)
            .is_none_or(|page| page.number != number)
        {
            self.turn(number);
        }
        let index = (pc >> 4) as usize % SLOTS;
        let memory = self.memory;
        self.pages[self.current].slots[index]
            .get_or_insert_with(|| Box::new(fetch(pc, launch, memory)))
    }

    /// Whether two collective blocks, each after the `WARPSYNC.COLLECTIVE` at an address, are the same up to their end.
    pub fn same_block(&self, a: u64, b: u64) -> bool {
        if a == b {
            return true;
        }
        for n in 1..=MAX_COLLECTIVE {
            let words = |pc: u64| words(pc.wrapping_add(16 * n), self.memory).ok();
            let (Some(x), Some(y)) = (words(a), words(b)) else {
                return false;
            };
            // Scheduling may differ.
            let rest = |w: [u64; 2]| [w[0], w[1] & 0x1ff_ffff_ffff];
            if rest(x) != rest(y) {
                return false;
            }
            if x[0] & 0xfff == ENDCOLLECTIVE {
                return true;
            }
        }
        false
    }

    fn turn(&mut self, number: u64) {
        self.current = match self.pages.binary_search_by_key(&number, |page| page.number) {
            Ok(at) => at,
            Err(_) => {
                if self.pages.len() >= MAX_PAGES {
                    self.pages.clear();
                }
                let at = self.pages.partition_point(|page| page.number < number);
                let slots = std::iter::repeat_with(|| None).take(SLOTS).collect();
                self.pages.insert(at, Page { number, slots });
                at
            }
        };
    }
}

/// The words of an instruction.
pub(super) fn words(pc: u64, memory: &dyn AddressSpace) -> Result<[u64; 2], FaultKind> {
    let word = |va: u64| {
        memory
            .cell(va, Access::Execute)
            .map(|cell| cell.load(Ordering::Relaxed))
            .map_err(FaultKind::Mmu)
    };
    Ok([word(pc)?, word(pc.wrapping_add(8))?])
}

fn fetch(pc: u64, launch: &Launch, memory: &dyn AddressSpace) -> Lowered {
    match words(pc, memory) {
        Ok(words) => lower(words, pc, launch),
        Err(kind) => Lowered {
            guard: PredSrc::TRUE,
            uniform: false,
            step: Step::Fault(kind),
        },
    }
}
