//! Loads, stores, atomics, constants, fences.

use std::sync::atomic::{Ordering, fence};

use nv_proto::sass::{BaseKind, Op, Operand, RZ};

use super::{Args, Lower, Place, Refused, alu, op};
use crate::sm::access::{Space, Width};
use crate::sm::atomics::Atomic;
use crate::sm::exec::{Flow, Stop};
use crate::sm::regs::{Dst, LANES, PredDst, Raw, first, high, lanes, low};

/// Orders, scopes and cache hints: memory here is one and consistent.
const HINTS: [&str; 21] = [
    ".CONSTANT",
    ".CTA",
    ".GPU",
    ".SM",
    ".SYS",
    ".VC",
    ".STRONG",
    ".PRIVATE",
    ".MMIO",
    ".EF",
    ".EL",
    ".EU",
    ".LU",
    ".NA",
    ".LTC64B",
    ".LTC128B",
    ".LTC256B",
    ".ENL2",
    ".EFL2",
    ".ELL2",
    ".BYPASS",
];

impl Args<'_> {
    pub(super) fn memory(&mut self) -> Lower {
        match self.inst.op {
            Op::Ldg => self.load(Space::Global, 1, 2, Some(3)),
            Op::Ld => self.load(Space::Generic, 0, 1, Some(2)),
            Op::Ldl => self.load(Space::Local, 0, 1, None),
            Op::Lds => self.load(Space::Shared, 0, 1, None),
            Op::Stg => self.store(Space::Global),
            Op::St => self.store(Space::Generic),
            Op::Stl => self.store(Space::Local),
            Op::Sts => self.store(Space::Shared),
            Op::Ldc | Op::Uldc | Op::Ldcu => self.constant(),
            Op::Atom => self.atomic(Space::Generic),
            Op::Atomg | Op::Red | Op::Redg => self.atomic(Space::Global),
            Op::Atoms => self.atomic(Space::Shared),
            Op::Ldgsts => self.ldgsts(),
            // Copies are done when issued, so that nothing is ever pending.
            Op::Ldgdepbar => self.nothing(),
            Op::Depbar => self.nothing(),
            Op::Membar | Op::Errbar | Op::Cgaerrbar | Op::Cctl | Op::Fence => {
                self.ignore_all();
                op(|_, _| {
                    fence(Ordering::SeqCst);
                    Ok(Flow::Next)
                })
            }
            Op::Qspc => self.qspc(),
            Op::Syncs => self.syncs(),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// An instruction whose operands and modifiers make no difference.
    pub(super) fn nothing(&mut self) -> Lower {
        self.ignore_all();
        alu(|_, _| {})
    }

    fn ignore_all(&mut self) {
        self.used_args = u32::MAX;
        self.used_mods = u32::MAX;
    }

    fn width(&mut self) -> Width {
        self.one_of(&[
            (".U8", Width::U8),
            (".S8", Width::S8),
            (".U16", Width::U16),
            (".S16", Width::S16),
            (".64", Width::B64),
            (".128", Width::B128),
        ])
        .unwrap_or(Width::B32)
    }

    /// The address operand of a space.
    pub(super) fn spot(&mut self, at: usize, space: Space) -> Result<Place, Refused> {
        let mut place = self.address(at)?;
        if matches!(space, Space::Global | Space::Generic) {
            // `.E`: addresses of 64 bits, in a pair unless the operand says otherwise.
            if !self.flag(".E") {
                return Err(Refused::Unimplemented);
            }
            let Some(Operand::Mem(address)) = self.inst.args().get(at).map(|a| a.operand) else {
                return Err(Refused::Unimplemented);
            };
            match address.kind {
                BaseKind::U32 | BaseKind::Wide => {}
                BaseKind::Plain => {
                    if let Some(n) = address.base {
                        place.base = self.raw(Operand::Reg(n), 2)?;
                        place.wide = true;
                    }
                }
                _ => return Err(Refused::Unimplemented),
            }
            if let Some(n) = address.ureg {
                place.ureg = self.raw(Operand::Ureg(n), 2)?;
            }
        } else if self.inst.args().get(at).is_some_and(|a| {
            matches!(a.operand, Operand::Mem(m) if matches!(m.kind, BaseKind::Wide | BaseKind::U32) || m.desc.is_some())
        }) {
            return Err(Refused::Unimplemented);
        }
        Ok(place)
    }

    fn load(&mut self, space: Space, d: usize, a: usize, p: Option<usize>) -> Lower {
        self.ignore(&HINTS);
        let width = self.width();
        let place = self.spot(a, space)?;
        if d == 1 && self.pred_dst(0)? != PredDst::None {
            return Err(Refused::Unimplemented);
        }
        let d = self.dst_of(d, width.registers())?;
        let p = match p {
            Some(at) if self.shown(at) => Some(self.pred(at)?),
            _ => None,
        };
        op(move |c, m| {
            let on = p.map_or(u32::MAX, |p| p.get(c.regs));
            let addresses = place.addresses(c.regs, space);
            let mut v = [[0; LANES]; 4];
            c.load(space, &addresses, m & on, width, &mut v)?;
            for (i, v) in v.iter().enumerate().take(usize::from(width.registers())) {
                c.regs.set(if i == 0 { d } else { d.next(i as u8) }, m, v);
            }
            Ok(Flow::Next)
        })
    }

    fn store(&mut self, space: Space) -> Lower {
        self.ignore(&HINTS);
        let width = self.width();
        let place = self.spot(0, space)?;
        let arg = self.arg(1)?;
        super::plain(&arg)?;
        let value = self.raw(arg.operand, width.registers())?;
        op(move |c, m| {
            let addresses = place.addresses(c.regs, space);
            let mut v = [[0; LANES]; 4];
            for (i, v) in v
                .iter_mut()
                .enumerate()
                .take(usize::from(width.registers()))
            {
                *v = value.next(i as u8).get(c.regs);
            }
            c.store(space, &addresses, m, width, &v)?;
            Ok(Flow::Next)
        })
    }

    fn constant(&mut self) -> Lower {
        let width = self.width();
        let registers = width.registers();
        let d = self.dst_of(0, registers)?;
        let arg = self.arg(1)?;
        super::plain(&arg)?;
        let Operand::Const { bank, address } = arg.operand else {
            return Err(Refused::Unimplemented);
        };
        let base = match (address.base.filter(|n| *n != RZ), address.ureg) {
            (None, None) => Raw::ZERO,
            (Some(n), None) => self.raw(Operand::Reg(n), 1)?,
            (None, Some(n)) => self.raw(Operand::Ureg(n), 1)?,
            (Some(_), Some(_)) => return Err(Refused::Unimplemented),
        };
        if address.kind != BaseKind::Plain {
            return Err(Refused::Unimplemented);
        }
        if matches!(base, Raw::Imm(_)) {
            let mut words = [0; 4];
            for (i, word) in words.iter_mut().enumerate().take(usize::from(registers)) {
                // Sixteen bits, printed as a signed number.
                let offset = (address.offset as u32 & 0xffff).wrapping_add(4 * i as u32);
                let bytes = width.bytes().min(4);
                *word = width.extend(
                    self.launch
                        .constant(bank, offset, bytes)
                        .map_err(Refused::Fault)? as u32,
                );
            }
            return alu(move |r, m| {
                for (i, word) in words.iter().enumerate().take(usize::from(registers)) {
                    r.set(if i == 0 { d } else { d.next(i as u8) }, m, &[*word; LANES]);
                }
            });
        }
        op(move |c, m| {
            let base = base.get(c.regs);
            let mut v = [[0; LANES]; 4];
            for lane in lanes(m) {
                let at = base[lane].wrapping_add_signed(address.offset);
                for (i, v) in v.iter_mut().enumerate().take(usize::from(registers)) {
                    let offset = at.wrapping_add(4 * i as u32);
                    let word = c.launch.constant(bank, offset, width.bytes().min(4));
                    v[lane] = width.extend(word.map_err(|kind| Stop { kind, lane })? as u32);
                }
            }
            for (i, v) in v.iter().enumerate().take(usize::from(registers)) {
                c.regs.set(if i == 0 { d } else { d.next(i as u8) }, m, v);
            }
            Ok(Flow::Next)
        })
    }

    fn atomic(&mut self, space: Space) -> Lower {
        self.ignore(&HINTS);
        // Operands: [predicate,] [register,] address, value [, value].
        let at = (0..self.count())
            .find(|i| {
                matches!(
                    self.inst.args().get(*i).map(|a| a.operand),
                    Some(Operand::Mem(_))
                )
            })
            .ok_or(Refused::Unimplemented)?;
        let (mut p, mut d) = (PredDst::None, None);
        for i in 0..at {
            if self.is_pred(i) {
                p = self.pred_dst(i)?;
            } else {
                d = Some(i);
            }
        }
        let place = self.spot(at, space)?;
        let spin = self.flag(".CAST");
        if spin && !self.flag(".SPIN") {
            return Err(Refused::Unimplemented);
        }
        let values = self.count() - at - 1;
        let compare = self.flag(".CAS") || spin || values == 2;
        let atomic = self.atomic_kind(compare)?;
        let registers = if atomic.bytes() == 8 { 2 } else { 1 };
        let d = match d {
            Some(at) => self.dst_of(at, registers)?,
            None => Dst::None,
        };
        let mut sources = [super::Pair {
            lo: Raw::Imm(1),
            hi: Raw::ZERO,
        }; 2];
        for (i, source) in sources.iter_mut().enumerate().take(values) {
            *source = if registers == 2 {
                self.src64(at + 1 + i)?
            } else {
                super::Pair {
                    lo: self.src(at + 1 + i)?,
                    hi: Raw::ZERO,
                }
            };
        }
        op(move |c, m| {
            let addresses = place.addresses(c.regs, space);
            let (a, b) = (sources[0].get(c.regs), sources[1].get(c.regs));
            let mut old = [0; LANES];
            for lane in lanes(m) {
                let (x, y) = (a[lane], b[lane]);
                let was = c
                    .atomic(space, lane, addresses[lane], atomic.bytes(), |old| {
                        atomic.apply(old, x, y)
                    })
                    .map_err(|kind| Stop { kind, lane })?;
                old[lane] = if spin { u64::from(was == x) } else { was };
            }
            if spin && p != PredDst::None {
                // sm_100 and later give the outcome as a predicate.
                let done = lanes(m).fold(0, |done, i| done | u32::from(old[i] != 0) << i);
                c.regs.set_pred(p, m, done);
            } else {
                // Whether it was done; here every space can do every operation.
                c.regs.set_pred(p, m, u32::MAX);
            }
            c.regs.set(d, m, &old.map(low));
            if registers == 2 {
                c.regs.set(d.next(1), m, &old.map(high));
            }
            Ok(Flow::Next)
        })
    }

    fn atomic_kind(&mut self, compare: bool) -> Result<Atomic, Refused> {
        self.ignore(&[".RN"]);
        let ftz = self.flag(".FTZ");
        let popc = self.flag(".POPC");
        let kind = self
            .one_of(&[
                (".S32", "s32"),
                (".S64", "s64"),
                (".64", "u64"),
                (".F32", "f32"),
                (".F64", "f64"),
                (".F16x2", "f16x2"),
                (".BF16x2", "bf16x2"),
                (".32", "u32"),
            ])
            .unwrap_or("u32");
        if compare {
            return Atomic::new("cas", kind, ftz).ok_or(Refused::Unimplemented);
        }
        let what = self
            .one_of(&[
                (".ADD", "add"),
                (".MIN", "min"),
                (".MAX", "max"),
                (".INC", "inc"),
                (".DEC", "dec"),
                (".AND", "and"),
                (".OR", "or"),
                (".XOR", "xor"),
                (".EXCH", "exch"),
            ])
            .ok_or(Refused::Unimplemented)?;
        // `POPC.INC`: each active lane adds one.
        let what = match (popc, what) {
            (false, what) => what,
            // What each lane would get back is not known.
            (true, "inc")
                if self
                    .inst
                    .args()
                    .first()
                    .is_some_and(|a| a.operand == Operand::Reg(RZ)) =>
            {
                "add"
            }
            (true, _) => return Err(Refused::Unimplemented),
        };
        self.ignore(&[".32"]);
        Atomic::new(what, kind, ftz).ok_or(Refused::Unimplemented)
    }

    fn ldgsts(&mut self) -> Lower {
        self.ignore(&HINTS);
        let width = self.width();
        if width.bytes() < 4 {
            return Err(Refused::Unimplemented);
        }
        let zero = self.flag(".ZFILL");
        let to = self.spot(0, Space::Shared)?;
        let from = self.spot(1, Space::Global)?;
        let p = if self.shown(2) {
            Some(self.pred(2)?)
        } else {
            None
        };
        if p.is_some() && !zero {
            return Err(Refused::Unimplemented);
        }
        op(move |c, m| {
            let on = p.map_or(u32::MAX, |p| p.get(c.regs));
            let source = from.addresses(c.regs, Space::Global);
            let target = to.addresses(c.regs, Space::Shared);
            let mut v = [[0; LANES]; 4];
            c.load(Space::Global, &source, m & on, width, &mut v)?;
            c.store(Space::Shared, &target, m, width, &v)?;
            Ok(Flow::Next)
        })
    }

    /// `SYNCS.EXCH.64`, which puts a barrier object in shared memory. What the hardware makes of the object's bits is not known,
    /// so that arriving and waiting are not here.
    fn syncs(&mut self) -> Lower {
        if !self.flag(".EXCH") || !self.flag(".64") {
            return Err(Refused::Unimplemented);
        }
        let d = self.dst_of(0, 2)?;
        let place = self.spot(1, Space::Shared)?;
        let value = self.src64(2)?;
        op(move |c, m| {
            // Once for the warp.
            let lane = first(m);
            let address = place.addresses(c.regs, Space::Shared)[lane];
            let new = value.get(c.regs)[lane];
            let old = c
                .atomic(Space::Shared, lane, address, 8, |_| Some(new))
                .map_err(|kind| Stop { kind, lane })?;
            c.regs.set64(d, m, &[old; LANES]);
            Ok(Flow::Next)
        })
    }

    fn qspc(&mut self) -> Lower {
        let space = self
            .one_of(&[
                (".G", Space::Global),
                (".S", Space::Shared),
                (".L", Space::Local),
            ])
            .ok_or(Refused::Unimplemented)?;
        let p = self.pred_dst(0)?;
        if self.dst(1)? != Dst::Reg(RZ) {
            return Err(Refused::Unimplemented);
        }
        let place = self.spot(2, Space::Generic)?;
        op(move |c, m| {
            let addresses = place.addresses(c.regs, Space::Generic);
            let yes = lanes(m).fold(0, |yes, i| {
                yes | u32::from(c.launch.classify(addresses[i]).0 == space) << i
            });
            c.regs.set_pred(p, m, yes);
            Ok(Flow::Next)
        })
    }
}

impl Place {
    pub(super) fn addresses(self, regs: &crate::sm::regs::Regs, space: Space) -> [u64; LANES] {
        match space {
            Space::Global | Space::Generic => self.wide(regs),
            Space::Shared | Space::Local => self.narrow(regs).map(u64::from),
        }
    }
}
