//! Branches, calls, convergence, barriers, exits.

use nv_proto::sass::{INSTRUCTION_BYTES, Op, Operand};

use super::{Args, Lower, Pair, Refused, alu, op};
use crate::sm::FaultKind;
use crate::sm::block::{Arrival, Reduction};
use crate::sm::exec::{Flow, Stop, Target};
use crate::sm::regs::{LANES, PredSrc, Raw, first, lanes};

impl Args<'_> {
    pub(super) fn control(&mut self) -> Lower {
        let next = self.pc.wrapping_add(INSTRUCTION_BYTES);
        match self.inst.op {
            Op::Bra => self.bra(next),
            Op::Brx | Op::Call | Op::Ret => self.jump(next),
            Op::Exit => {
                let p = self.when(0)?;
                op(move |c, m| Ok(Flow::Exit(m & p.get(c.regs))))
            }
            Op::Bssy => {
                self.ignore(&[".RECONVERGENT", ".RELIABLE"]);
                let p = self.when(0)?;
                let b = self.barrier(1)?;
                self.target(2)?;
                if p != PredSrc::TRUE {
                    return Err(Refused::Unimplemented);
                }
                alu(move |r, m| {
                    for lane in lanes(m) {
                        r.barriers[b][lane] = m;
                    }
                })
            }
            Op::Bsync => {
                self.ignore(&[".RECONVERGENT", ".RELIABLE"]);
                let p = self.when(0)?;
                let b = self.barrier(1)?;
                op(move |c, m| {
                    Ok(Flow::Converge {
                        barrier: b,
                        lanes: m & p.get(c.regs),
                    })
                })
            }
            Op::Break => {
                self.ignore(&[".RELIABLE"]);
                let p = self.when(0)?;
                let b = self.barrier(1)?;
                op(move |c, m| {
                    let leaving = m & p.get(c.regs);
                    for view in &mut c.regs.barriers[b] {
                        *view &= !leaving;
                    }
                    Ok(Flow::Recheck)
                })
            }
            Op::Bmov => self.bmov(),
            Op::Warpsync => self.warpsync(next),
            Op::Endcollective => {
                let p = self.when(0)?;
                if p != PredSrc::TRUE {
                    return Err(Refused::Unimplemented);
                }
                // Each lane goes on where its own WARPSYNC.COLLECTIVE says.
                op(|c, m| {
                    let to = c.regs.after;
                    Ok(Flow::Jump {
                        taken: m,
                        target: Target::Each(Box::new(to)),
                    })
                })
            }
            Op::Yield | Op::Nanosleep => {
                self.ignore(&[".CLEAR", ".RAND", ".SYNCS", ".WARP"]);
                for at in 0..self.count() {
                    if self.shown(at) {
                        self.arg(at)?;
                    }
                }
                op(|_, _| Ok(Flow::Yield))
            }
            Op::Bar => self.bar(),
            Op::B2r => {
                if !self.flag(".RESULT") {
                    return Err(Refused::Unimplemented);
                }
                let d = self.dst(0)?;
                let p = self.pred_dst(1)?;
                alu(move |r, m| {
                    let v = r.reduced;
                    r.set(d, m, &v);
                    let yes = lanes(m).fold(0, |yes, i| yes | u32::from(v[i] != 0) << i);
                    r.set_pred(p, m, yes);
                })
            }
            Op::Bpt => {
                self.ignore(&[".TRAP", ".INT"]);
                for at in 0..self.count() {
                    self.arg(at)?;
                }
                op(|_, m| {
                    Err(Stop {
                        kind: FaultKind::Trap,
                        lane: first(m),
                    })
                })
            }
            Op::Lepc => {
                let d = self.dst_of(0, 2)?;
                // Without a target its own address: compiled code before sm_90 adds what lies between it and where a
                // call returns.
                let target = if self.count() < 2 {
                    next.wrapping_sub(INSTRUCTION_BYTES)
                } else {
                    next.wrapping_add_signed(self.target(1)?)
                };
                alu(move |r, m| r.set64(d, m, &[target; LANES]))
            }
            Op::UcgabarArv => op(|_, _| Ok(Flow::ClusterArrive)),
            Op::UcgabarWait => op(|_, _| Ok(Flow::ClusterWait)),
            Op::Acqbulk | Op::Preexit => self.nothing(),
            _ => Err(Refused::Unimplemented),
        }
    }

    /// A predicate that is one more guard; true where it is not printed.
    fn when(&mut self, at: usize) -> Result<PredSrc, Refused> {
        if self.shown(at) {
            self.pred(at)
        } else {
            Ok(PredSrc::TRUE)
        }
    }

    fn barrier(&mut self, at: usize) -> Result<usize, Refused> {
        match self.arg(at)?.operand {
            Operand::Barrier(n) if n < 16 => Ok(usize::from(n)),
            _ => Err(Refused::Unimplemented),
        }
    }

    fn bra(&mut self, next: u64) -> Lower {
        let last = self.count() - 1;
        let target = next.wrapping_add_signed(self.target(last)?);
        let uniform = self.flag(".U");
        let diverged = self.one_of(&[(".DIV", true), (".CONV", false)]);
        if let Some(diverged) = diverged {
            if uniform {
                return Err(Refused::Unimplemented);
            }
            let p = self.when(0)?;
            let arg = self.arg(1)?;
            super::plain(&nv_proto::sass::Arg { inv: false, ..arg })?;
            let mask = self.raw(arg.operand, 1)?;
            let flip = if arg.inv { u32::MAX } else { 0 };
            return op(move |c, m| {
                let mask = (mask.lane(c.regs, 0) ^ flip) & c.alive;
                let together = mask & !c.group == 0;
                let taken = if together != diverged {
                    m & p.get(c.regs)
                } else {
                    0
                };
                Ok(Flow::Jump {
                    taken,
                    target: Target::One(target),
                })
            });
        }
        let mut conditions = [PredSrc::TRUE; 2];
        if last > conditions.len() {
            return Err(Refused::Unimplemented);
        }
        for (at, condition) in conditions.iter_mut().enumerate().take(last) {
            if self.shown(at) {
                *condition = self.pred(at)?;
            }
        }
        op(move |c, m| {
            let taken = m & conditions[0].get(c.regs) & conditions[1].get(c.regs);
            Ok(Flow::Jump {
                taken,
                target: Target::One(target),
            })
        })
    }

    /// Jumps to an address, to one beside a register pair, or to the sum.
    fn jump(&mut self, next: u64) -> Lower {
        let absolute = match self.inst.op {
            Op::Brx => false,
            _ => {
                let absolute = self.flag(".ABS");
                if !absolute && !self.flag(".REL") {
                    return Err(Refused::Unimplemented);
                }
                absolute
            }
        };
        self.ignore(&[".NOINC", ".NODEC"]);
        let p = self.when(0)?;
        let pair = if self.shown(1) {
            self.src64(1)?
        } else {
            Pair {
                lo: Raw::ZERO,
                hi: Raw::ZERO,
            }
        };
        let offset = self.target(2)?;
        let base = if absolute {
            offset.cast_unsigned()
        } else {
            next.wrapping_add_signed(offset)
        };
        if matches!(pair.lo, Raw::Imm(_)) {
            return op(move |c, m| {
                Ok(Flow::Jump {
                    taken: m & p.get(c.regs),
                    target: Target::One(base),
                })
            });
        }
        op(move |c, m| {
            let taken = m & p.get(c.regs);
            let to = pair.get(c.regs).map(|x| base.wrapping_add(x));
            let one = to[first(taken)];
            let target = if lanes(taken).all(|i| to[i] == one) {
                Target::One(one)
            } else {
                Target::Each(Box::new(to))
            };
            Ok(Flow::Jump { taken, target })
        })
    }

    fn bmov(&mut self) -> Lower {
        if !self.flag(".32") {
            return Err(Refused::Unimplemented);
        }
        let clear = self.flag(".CLEAR");
        if matches!(
            self.inst.args().first().map(|a| a.operand),
            Some(Operand::Reg(_))
        ) {
            let d = self.dst(0)?;
            let b = self.barrier(1)?;
            return op(move |c, m| {
                let v = c.regs.barriers[b];
                c.regs.set(d, m, &v);
                if clear {
                    for lane in lanes(m) {
                        c.regs.barriers[b][lane] = 0;
                    }
                }
                Ok(Flow::Recheck)
            });
        }
        let b = self.barrier(0)?;
        if clear {
            return Err(Refused::Unimplemented);
        }
        let a = self.src(2)?;
        op(move |c, m| {
            let v = a.get(c.regs);
            for lane in lanes(m) {
                c.regs.barriers[b][lane] = v[lane];
            }
            Ok(Flow::Recheck)
        })
    }

    fn warpsync(&mut self, next: u64) -> Lower {
        let all = self.flag(".ALL");
        let collective = self.flag(".COLLECTIVE");
        // Lanes of other masks, and those that do not take part, run what follows on their own.
        let alone = self.flag(".EXCLUSIVE");
        if alone && (all || collective) {
            return Err(Refused::Unimplemented);
        }
        let p = self.when(0)?;
        let mask = if all {
            for at in 1..self.count() {
                self.arg(at)?;
            }
            Raw::Imm(u32::MAX)
        } else {
            let arg = self.arg(1)?;
            super::plain(&arg)?;
            match arg.operand {
                // The immediate is printed as an address is.
                Operand::Target(n) => Raw::Imm(n as u32),
                other => self.raw(other, 1)?,
            }
        };
        let after = if collective {
            Some(next.wrapping_add_signed(self.target(2)?))
        } else {
            None
        };
        op(move |c, m| {
            let masks = mask.get(c.regs);
            let arriving = m & p.get(c.regs);
            if let Some(after) = after {
                for lane in lanes(arriving) {
                    c.regs.after[lane] = after;
                }
            }
            Ok(Flow::Sync {
                lanes: arriving,
                masks,
                collective,
                alone,
            })
        })
    }

    fn bar(&mut self) -> Lower {
        self.ignore(&[".DEFER_BLOCKING"]);
        let reduction = if self.flag(".RED") {
            Some(
                self.one_of(&[
                    (".POPC", Reduction::Count),
                    (".AND", Reduction::And),
                    (".OR", Reduction::Or),
                ])
                .ok_or(Refused::Unimplemented)?,
            )
        } else {
            None
        };
        let wait = !self.flag(".ARV");
        if reduction.is_none() && wait && !self.flag(".SYNC") {
            return Err(Refused::Unimplemented);
        }
        let (id, id_is_register) = self.number(0)?;
        let (count, count_is_register) = if self.shown(1) {
            self.number(1)?
        } else {
            (Raw::ZERO, false)
        };
        let p = if reduction.is_some() {
            self.pred(2)?
        } else {
            PredSrc::TRUE
        };
        op(move |c, m| {
            let lane = first(m);
            let id = id.lane(c.regs, lane) & if id_is_register { 0xf } else { u32::MAX };
            let count = count.lane(c.regs, lane);
            // In a register the count lies beside the number of the barrier.
            let count = if count_is_register {
                count >> 16 & 0xfff
            } else {
                count
            };
            Ok(Flow::Barrier(Arrival {
                id,
                count,
                lanes: m,
                wait,
                reduction,
                value: p.get(c.regs) & m,
            }))
        })
    }

    fn number(&mut self, at: usize) -> Result<(Raw, bool), Refused> {
        let register = matches!(
            self.inst.args().get(at).map(|a| a.operand),
            Some(Operand::Reg(_))
        );
        Ok((self.src(at)?, register))
    }
}
