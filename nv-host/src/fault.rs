//! What the GPU says of the work that it could not do.

use std::fmt;
use std::sync::Arc;

use nv_proto::rm;

use crate::channel::Channel;
use crate::context::ContextInner;
use crate::driver;

/// A fault: what ended a stream, as far as the driver tells.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FaultReport {
    /// The code in the channel's error notifier (an `RC` or Xid number), if it was written.
    pub code: Option<u32>,
    /// The kernel that was running, or that would have run next.
    pub kernel: Option<String>,
    /// Accesses that hit no mapping.
    pub accesses: Vec<BadAccess>,
    /// The multiprocessors with an error; all were looked at.
    pub sms: Vec<SmError>,
    /// What the simulated GPU says of it, in words.
    pub detail: Option<String>,
    /// What could not be found out, and why.
    pub missing: Vec<String>,
}

/// An access that the MMU refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadAccess {
    /// The address.
    pub address: u64,
    /// The kind of fault (`NV_PFAULT_FAULT_TYPE`).
    pub fault: u32,
    /// The kind of access (`NV_PFAULT_ACCESS_TYPE`).
    pub access: u32,
}

/// The error state of one multiprocessor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SmError {
    /// Which.
    pub sm: u32,
    /// Its global error status.
    pub global_esr: u32,
    /// The warp error status; its low half tells the kind.
    pub warp_esr: u32,
    /// The address that the error is about, where it is about one.
    pub address: u64,
    /// Virtual address of the instruction.
    pub pc: u64,
    /// The kernel that the instruction belongs to, and its offset there in bytes.
    pub place: Option<(String, u64)>,
}

/// Names of `NV_PFAULT_FAULT_TYPE` (`dev_fault.h`).
const FAULT_TYPES: [&str; 16] = [
    "no page directory (PDE)",
    "page directory size (PDE_SIZE)",
    "not mapped (PTE)",
    "address too high (VA_LIMIT_VIOLATION)",
    "no instance block (UNBOUND_INST_BLOCK)",
    "privilege (PRIV_VIOLATION)",
    "read-only page (RO_VIOLATION)",
    "write-only page (WO_VIOLATION)",
    "pitch (PITCH_MASK_VIOLATION)",
    "work creation (WORK_CREATION)",
    "aperture (UNSUPPORTED_APERTURE)",
    "compression (COMPRESSION_FAILURE)",
    "page kind (UNSUPPORTED_KIND)",
    "region (REGION_VIOLATION)",
    "poisoned memory (POISONED)",
    "atomic access (ATOMIC_VIOLATION)",
];

/// Names of `NV_PFAULT_ACCESS_TYPE` (`dev_fault.h`).
const fn access_name(access: u32) -> &'static str {
    match access {
        0 => "read",
        1 => "write",
        2 | 4 => "atomic",
        3 => "prefetch",
        8 => "physical read",
        9 => "physical write",
        10 => "physical atomic",
        11 => "physical prefetch",
        _ => "access",
    }
}

/// The kind in the low half of a warp error status (`error` 15:0 of `hww_warp_esr` in `hw_gr_ga10b.h`; 0x0e, 0x0f
/// and 0x09 were seen on an H200, there with the space of the address in bits 27:24).
const fn warp_error_name(warp_esr: u32) -> &'static str {
    match warp_esr & 0xffff {
        0x00 => "no warp error",
        0x02 => "call stack error",
        0x05 => "misaligned program counter",
        0x06 => "program counter out of range",
        0x08 => "misaligned register",
        0x09 => "trap or illegal instruction",
        0x0b => "illegal instruction parameter",
        0x0d => "register out of range",
        0x0e if warp_esr >> 24 == 0x0c => "shared address out of range",
        0x0e if warp_esr >> 24 == 0x03 => "local address out of range",
        0x0e => "address out of range",
        0x0f => "misaligned address",
        0x10 => "invalid address space",
        0x12 => "invalid constant address",
        0x17 => "MMU fault",
        0x20 => "access refused by the MMU",
        0x21 => "barrier arrival error",
        _ => "warp error",
    }
}

/// Multiprocessors that one call reads (the length of `smErrorStateArray`).
const SMS_PER_CALL: u32 = 100;

impl FaultReport {
    /// Asks the driver for all that it knows.
    pub(crate) fn read(
        context: &ContextInner,
        channel: &Channel,
        kernel: Option<Arc<str>>,
    ) -> Self {
        let mut report = Self {
            code: channel.notification().map(|notification| notification.code),
            kernel: kernel.map(|name| name.to_string()),
            detail: context.objects().driver.explain_fault(channel.handle()),
            ..Self::default()
        };
        match channel.debugger() {
            Some(debugger) => {
                report.read_sms(context, channel, debugger);
                // A launch may be one of several: where an instruction is known, so is whose it is.
                if let Some((kernel, _)) = report.sms.iter().find_map(|sm| sm.place.as_ref()) {
                    report.kernel = Some(kernel.clone());
                }
                report.read_accesses(context, debugger);
            }
            None => report
                .missing
                .push("the driver refused a debugger object".into()),
        }
        report
    }

    fn read_sms(
        &mut self,
        context: &ContextInner,
        channel: &Channel,
        debugger: nv_proto::unit::Handle,
    ) {
        let count = context.info().sm_count;
        let mut first = 0;
        while first < count {
            let here = (count - first).min(SMS_PER_CALL);
            let mut params = rm::ReadAllSmErrorStates {
                h_target_channel: channel.handle().0.into(),
                num_sms_to_read: here.into(),
                starting_sm: first.into(),
                ..Default::default()
            };
            if let Err(error) = driver::control(&*context.objects().driver, debugger, &mut params) {
                self.missing
                    .push(format!("multiprocessors from {first} on: {error}"));
                return;
            }
            for (sm, state) in (first..first + here).zip(&params.sm_error_state_array) {
                let (global_esr, warp_esr) = (state.hww_global_esr.get(), state.hww_warp_esr.get());
                if global_esr != 0 || warp_esr != 0 {
                    let pc = state.hww_warp_esr_pc64.get();
                    let place = crate::context::lock(&context.code).place(pc);
                    let address = state.hww_esr_addr.get();
                    self.sms.push(SmError {
                        sm,
                        global_esr,
                        warp_esr,
                        address,
                        pc,
                        place,
                    });
                }
            }
            first += here;
        }
    }

    fn read_accesses(&mut self, context: &ContextInner, debugger: nv_proto::unit::Handle) {
        let mut params = rm::ReadMmuFaultInfo::default();
        match driver::control(&*context.objects().driver, debugger, &mut params) {
            Ok(()) => {
                let count = params.count.get() as usize;
                self.accesses = params
                    .mmu_fault_info_list
                    .iter()
                    .take(count)
                    .map(|entry| BadAccess {
                        address: entry.fault_address.get(),
                        fault: entry.fault_type.get(),
                        access: entry.access_type.get(),
                    })
                    .collect();
            }
            Err(error) => self.missing.push(format!("page faults: {error}")),
        }
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = FAULT_TYPES
            .get(self.fault as usize)
            .copied()
            .unwrap_or("unknown fault");
        write!(
            f,
            "{} of {:#x}: {fault}",
            access_name(self.access),
            self.address
        )
    }
}

impl fmt::Display for SmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SM {}: {} ({:#x})",
            self.sm,
            warp_error_name(self.warp_esr),
            self.warp_esr
        )?;
        if self.address != 0 {
            write!(f, ", address {:#x}", self.address)?;
        }
        match &self.place {
            Some((kernel, offset)) => write!(f, ", at {kernel}+{offset:#x}"),
            None => write!(f, ", at {:#x}", self.pc),
        }
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the GPU stopped")?;
        if let Some(kernel) = &self.kernel {
            write!(f, " in kernel {kernel}")?;
        }
        match self.code {
            Some(31) => write!(f, ": MMU fault (31)")?,
            Some(13) => write!(f, ": exception of the compute engine (13)")?,
            Some(code) => write!(f, ": error {code}")?,
            None => write!(
                f,
                ": another channel of its group faulted, or the driver gave no code"
            )?,
        }
        for access in &self.accesses {
            write!(f, "; {access}")?;
        }
        // Every multiprocessor that ran the kernel often tells the same: the first is shown, the rest counted.
        if let Some((first, rest)) = self.sms.split_first() {
            write!(f, "; {first}")?;
            if !rest.is_empty() {
                write!(f, " and {} more multiprocessors", rest.len())?;
            }
        }
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        for missing in &self.missing {
            write!(f, "; not known: {missing}")?;
        }
        write!(f, ". The stream is dead; a new stream works")
    }
}
