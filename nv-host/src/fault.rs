//! What the GPU says of the work that it could not do, and what was asked of it.

mod kind;
mod memory;
mod submission;

use std::fmt;
use std::time::Duration;

use nv_proto::rm;
use nv_proto::sass::{self, Op};
use nv_proto::unit::{Handle, SmVersion};

use crate::channel::Channel;
use crate::context::{ContextInner, lock};
use crate::driver;

pub use kind::{FaultKind, code_name};
pub use memory::MemoryPlace;
pub(crate) use submission::Look;
pub use submission::{AskedLaunch, Doubt, Submission};

/// A fault: what ended a stream, or keeps it from going on, as far as it can be known.
///
/// Its text is for people, a line for each thing known: what happened, where in the code, which launch, what the
/// driver says, what to do. `docs/faults.md` shows one of each kind, and says what works after a fault.
///
/// # Examples
/// ```
/// use nv_host::{Error, FaultKind};
///
/// # fn main() -> Result<(), Error> {
/// let device = nv_host::Device::open_best()?;
/// let stream = device.stream()?;
/// match stream.synchronize() {
///     Err(Error::Fault(report)) if report.kind == FaultKind::IllegalAddress => {
///         for access in &report.accesses {
///             eprintln!("{:?}: {:#x} is {}", report.kernel, access.address, access.place);
///         }
///         // The stream is dead; a new one works.
///     }
///     other => other?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct FaultReport {
    /// What happened.
    pub kind: FaultKind,
    /// The code in the channel's error notifier (an RC error, or Xid number), if it was written; [`code_name`] names
    /// it.
    pub code: Option<u32>,
    /// The GPU's time of it in nanoseconds, if the notifier was written.
    pub time: Option<u64>,
    /// The kernel that it happened in, as far as that is known.
    pub kernel: Option<String>,
    /// The oldest submission of the stream that had not ended; `None` where all had.
    pub submission: Option<Submission>,
    /// What other streams of the same channel group had in flight: a fault ends all streams of a group, and may be
    /// any one's.
    pub beside: Vec<Submission>,
    /// Accesses that the MMU refused.
    pub accesses: Vec<BadAccess>,
    /// The multiprocessors with an error.
    pub sms: Vec<SmError>,
    /// How many multiprocessors were looked at.
    pub sms_read: u32,
    /// How many there are.
    pub sm_count: u32,
    /// Whether the stream has ended; one that has not goes on, if its work does.
    pub ended: bool,
    /// How long was waited, where that is what ended the wait.
    pub limit: Option<Duration>,
    /// What the simulated GPU says of it, in words.
    pub detail: Option<String>,
    /// What could not be found out, and why.
    pub missing: Vec<String>,
}

/// An access that the MMU refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct BadAccess {
    /// The address.
    pub address: u64,
    /// The kind of fault (`NV_PFAULT_FAULT_TYPE`).
    pub fault: u32,
    /// The kind of access (`NV_PFAULT_ACCESS_TYPE`).
    pub access: u32,
    /// Which memory it is in, or missed.
    pub place: MemoryPlace,
}

/// The error state of one multiprocessor.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SmError {
    /// Which.
    pub sm: u32,
    /// Its global error status.
    pub global_esr: u32,
    /// The warp error status; its low half tells the kind.
    pub warp_esr: u32,
    /// What it says.
    pub kind: FaultKind,
    /// The address that the error is about, where it is about one; of local and shared memory it is the offset there.
    pub address: u64,
    /// Which memory that is in, where it is an address of global memory.
    pub memory: Option<MemoryPlace>,
    /// Virtual address of the instruction.
    pub pc: u64,
    /// The kernel that the instruction belongs to, and its offset there in bytes.
    pub place: Option<(String, u64)>,
    /// The instruction, as it lies in memory.
    pub instruction: Option<String>,
}

/// What was in flight when something went wrong.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// On the stream itself.
    pub(crate) own: Option<Submission>,
    /// On others of its group.
    pub(crate) beside: Vec<Submission>,
}

/// Multiprocessors that one call reads (the length of `smErrorStateArray`).
const SMS_PER_CALL: u32 = 100;

/// The first address past a thread's local memory: it ends there, whatever its size, and the stack grows down from a
/// little below (the stack top is 0xfffdc0 in bank 0, and 0x240 bytes above it are the system's).
const LOCAL_END: u64 = 0x100_0000;

impl FaultReport {
    /// What is known without asking the driver: for a wait that ran out of time.
    pub(crate) fn of_time_limit(
        context: &ContextInner,
        channel: &Channel,
        in_flight: InFlight,
        limit: Duration,
    ) -> Self {
        let mut report = Self::known(context, channel, in_flight);
        report.limit = Some(limit);
        report.kind = FaultKind::TimeLimit;
        // Each stream ends in its own time: what others run does not matter.
        report.kernel = report
            .submission
            .as_ref()
            .and_then(|own| Some(own.only_kernel()?.to_owned()));
        report.beside.clear();
        report
    }

    /// Asks the driver for all that it knows. `is_alive` is whether the stream is one that nothing has ended yet.
    pub(crate) fn read(
        context: &ContextInner,
        channel: &Channel,
        in_flight: InFlight,
        is_alive: bool,
    ) -> Self {
        let mut report = Self::known(context, channel, in_flight);
        match channel.debugger() {
            Some(debugger) => {
                report.read_sms(context, channel, debugger);
                report.read_accesses(context, debugger);
            }
            None => report
                .missing
                .push("the multiprocessors: the driver refused a debugger object".into()),
        }
        report.ended = !is_alive;
        report.judge();
        report
    }

    /// What is known without asking the driver.
    fn known(context: &ContextInner, channel: &Channel, in_flight: InFlight) -> Self {
        let notification = channel.notification();
        let InFlight { own, beside } = in_flight;
        Self {
            code: notification.map(|notification| notification.code),
            time: notification.map(|notification| notification.time),
            kernel: own
                .as_ref()
                .filter(|_| beside.is_empty())
                .and_then(|own| own.only_kernel())
                .map(str::to_owned),
            submission: own,
            beside,
            sm_count: context.info().sm_count,
            detail: context.objects().driver.explain_fault(channel.handle()),
            ..Self::default()
        }
    }

    fn read_sms(&mut self, context: &ContextInner, channel: &Channel, debugger: Handle) {
        let count = self.sm_count;
        while self.sms_read < count {
            let first = self.sms_read;
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
                if global_esr == 0 && warp_esr == 0 {
                    continue;
                }
                let pc = state.hww_warp_esr_pc64.get();
                let (place, words) = {
                    let code = lock(&context.code);
                    (code.place(pc), code.instruction(pc))
                };
                let before = lock(&context.code).instruction(pc.wrapping_sub(16));
                let isa = context.info().sm;
                let address = state.hww_esr_addr.get();
                let kind = match FaultKind::of_warp(warp_esr).unwrap_or_default() {
                    // The status of a trap and of an instruction that is none is one: the code tells.
                    FaultKind::IllegalInstruction if is_trap(words, before, isa) => FaultKind::Trap,
                    kind => kind,
                };
                let memory = (kind == FaultKind::MisalignedAddress && address != 0)
                    .then(|| context.place(address));
                self.sms.push(SmError {
                    sm,
                    global_esr,
                    warp_esr,
                    kind,
                    address,
                    memory,
                    pc,
                    place,
                    instruction: words.map(|words| instruction_text(words, isa)),
                });
            }
            self.sms_read = first + here;
        }
    }

    fn read_accesses(&mut self, context: &ContextInner, debugger: Handle) {
        let mut params = rm::ReadMmuFaultInfo::default();
        match driver::control(&*context.objects().driver, debugger, &mut params) {
            Ok(()) => {
                let count = params.count.get() as usize;
                self.accesses = params
                    .mmu_fault_info_list
                    .iter()
                    .take(count)
                    .map(|entry| {
                        let address = entry.fault_address.get();
                        BadAccess {
                            address,
                            fault: entry.fault_type.get(),
                            access: entry.access_type.get(),
                            place: context.place(address),
                        }
                    })
                    .collect();
            }
            Err(error) => self.missing.push(format!("page faults: {error}")),
        }
    }

    /// Draws the conclusions: the kind, and the kernel.
    fn judge(&mut self) {
        let launches: Vec<&AskedLaunch> = self
            .submission
            .iter()
            .chain(&self.beside)
            .flat_map(|submission| &submission.launches)
            .collect();
        for error in &mut self.sms {
            let local = launches
                .iter()
                .filter(|launch| {
                    launch.kernel.as_ref() == error.place.as_ref().map(|(kernel, _)| kernel)
                })
                .map(|launch| u64::from(launch.local_bytes))
                .max();
            // What lies below a thread's memory was reached by a stack that grew out of it.
            if error.kind == FaultKind::LocalOutOfRange
                && error.address < LOCAL_END.saturating_sub(local.unwrap_or_default())
            {
                error.kind = FaultKind::StackOverflow;
            }
        }
        let doubts = self.submission.iter().flat_map(|own| &own.doubts);
        let doubted = doubts.map(Doubt::kind).next();
        let sm = self.first_sm().map(|error| error.kind);
        self.kind = match (self.accesses.first(), sm, self.code) {
            // A refused access may stop the multiprocessors, too.
            (Some(access), _, Some(31) | None) | (Some(access), None, _) => {
                FaultKind::of_mmu(access.fault)
            }
            (_, Some(kind), _) => kind,
            (None, None, Some(code)) => match FaultKind::of_code(code) {
                FaultKind::EngineException => doubted.unwrap_or(FaultKind::EngineException),
                kind => kind,
            },
            (None, None, None) if !self.ended => doubted.unwrap_or(FaultKind::NoFault),
            (None, None, None) => FaultKind::Unknown,
        };
        if let Some((kernel, _)) = self.sms.iter().find_map(|error| error.place.as_ref()) {
            self.kernel = Some(kernel.clone());
        }
    }

    /// The multiprocessor whose error is shown.
    fn first_sm(&self) -> Option<&SmError> {
        let named = |error: &&SmError| error.kind != FaultKind::Unknown;
        self.sms.iter().find(named).or(self.sms.first())
    }

    /// All that is known besides what happened, a line for each thing.
    pub(crate) fn details(&self) -> impl fmt::Display + '_ {
        Details(self)
    }
}

impl Doubt {
    /// The kind of fault that it may lead to.
    const fn kind(&self) -> FaultKind {
        match self {
            Self::Commands(_) => FaultKind::BadCommands,
            Self::Method(_) => FaultKind::BadMethod,
            Self::Descriptor(_) => FaultKind::BadDescriptor,
        }
    }
}

/// Whether the instruction at a program counter, or the one before it, is a trap.
fn is_trap(at: Option<[u64; 2]>, before: Option<[u64; 2]>, isa: SmVersion) -> bool {
    let decode = |words: Option<[u64; 2]>| words.map(|words| sass::decode(words, isa));
    match decode(at) {
        Some(Ok(inst)) if inst.op == Op::Bpt => true,
        Some(Ok(_)) => matches!(decode(before), Some(Ok(inst)) if inst.op == Op::Bpt),
        _ => false,
    }
}

fn instruction_text(words: [u64; 2], isa: SmVersion) -> String {
    match sass::decode(words, isa) {
        Ok(inst) => inst.to_string(),
        Err(unknown) => unknown.to_string(),
    }
}

impl BadAccess {
    /// The kind of access in words, such as `write`.
    #[must_use]
    pub const fn access_name(&self) -> &'static str {
        kind::access_name(self.access)
    }

    /// The kind of fault in words, with the name that `dev_fault.h` has for it.
    #[must_use]
    pub fn fault_name(&self) -> &'static str {
        kind::fault_type_name(self.fault)
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {:#x}, {} ({})",
            self.access_name(),
            self.address,
            self.place,
            self.fault_name()
        )
    }
}

impl fmt::Display for SmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((kernel, offset)) => write!(f, "{kernel}+{offset:#x}")?,
            None => write!(f, "{:#x}, in no loaded kernel", self.pc)?,
        }
        if let Some(instruction) = &self.instruction {
            write!(f, " {instruction}")?;
        }
        write!(f, ", SM {} (warp status {:#x})", self.sm, self.warp_esr)
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(kernel) = &self.kernel {
            write!(f, " in kernel {kernel}")?;
        }
        if let Some(access) = self.accesses.first() {
            write!(f, ": {access}")?;
        } else if let Some(error) = self.first_sm().filter(|error| error.address != 0) {
            write!(f, ": {:#x}", error.address)?;
            if let Some(memory) = &error.memory {
                write!(f, ", {memory}")?;
            }
        }
        write!(f, "{}", self.details())
    }
}

struct Details<'a>(&'a FaultReport);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        for access in report.accesses.iter().skip(1) {
            write!(f, "\n  and:    {access}")?;
        }
        // Every multiprocessor that ran the kernel often tells the same: one is shown, the rest counted.
        if let Some(error) = report.first_sm() {
            write!(f, "\n  at:     {error}")?;
            match report.sms.len() {
                0 | 1 => {}
                2 => write!(f, ", and 1 more SM")?,
                count => write!(f, ", and {} more SMs", count - 1)?,
            }
        }
        match &report.submission {
            Some(submission) => write!(f, "\n  work:   {submission}")?,
            None => write!(f, "\n  work:   this stream had none in flight")?,
        }
        for doubt in report.submission.iter().flat_map(|own| &own.doubts) {
            write!(f, "\n  doubt:  {doubt}")?;
        }
        for other in &report.beside {
            write!(f, "\n  beside: another stream of its group: {other}")?;
            for doubt in &other.doubts {
                write!(f, "\n  doubt:  {doubt}")?;
            }
        }
        match report.code {
            Some(code) => match code_name(code) {
                Some(name) => write!(f, "\n  driver: error {code} ({name})")?,
                None => write!(f, "\n  driver: error {code} (no name known)")?,
            },
            None => write!(f, "\n  driver: no error noted")?,
        }
        if report.sms_read > 0 {
            let (read, count, errors) = (report.sms_read, report.sm_count, report.sms.len());
            write!(f, "; {read} of {count} SMs read, {errors} with an error")?;
        }
        if let Some(detail) = &report.detail {
            write!(f, "\n  simulated GPU: {detail}")?;
        }
        for missing in &report.missing {
            write!(f, "\n  not known: {missing}")?;
        }
        let stream = match (report.ended, report.kind) {
            (false, _) => "the stream goes on; to end it, abandon it and make another",
            (true, FaultKind::HardwareError) => "the stream is dead",
            (true, _) => "the stream is dead, memory is as the GPU left it, and a new stream works",
        };
        write!(f, "\n  next:   {}; {stream}", report.kind.remedy())
    }
}

#[cfg(test)]
mod tests;
