//! Real kernels from a ring entry to memory, and the faults that kernels and descriptors end in.

use std::time::{Duration, Instant};

use nv_proto::EncodeError;
use nv_proto::bank0;
use nv_proto::cubin::{Cubin, Layout};
use nv_proto::push::compute::{
    self, InvalidateShaderCachesNoWfi, SendPcas, SendSignalingPcas, SendSignalingPcas2,
    SetShaderLocalMemory, SetShaderLocalMemoryNonThrottled, SetShaderLocalMemoryWindow,
    SetShaderSharedMemoryWindow,
};
use nv_proto::push::host::SemRelease;
use nv_proto::push::{PushWriter, Subchannel};
use nv_proto::qmd::{Dependent, Qmd, Release, ReleaseSize, Version};
use nv_proto::rm;
use nv_proto::rm::names::classes as class;
use nv_proto::unit::{Dim3, GpuVa};
use nv_sim::Chip;

use crate::rig::{Buffer, Channel, NEVER, Rig, wait_for};

const COMPUTE: Subchannel = Subchannel::COMPUTE;
const SHARED_WINDOW: GpuVa = GpuVa(0x7294_0000_0000);
const LOCAL_WINDOW: GpuVa = GpuVa(0x7293_0000_0000);

/// A module in device memory.
struct Module {
    file: Vec<u8>,
    image: Buffer,
}

/// A launch: descriptor, and bank 0 behind it.
struct Launch {
    qmd: Qmd,
    memory: Buffer,
}

/// What varies from launch to launch.
#[derive(Clone, Default)]
struct Request {
    grid: u32,
    block: u32,
    dynamic_shared: u32,
    local: u32,
    args: Vec<u8>,
}

fn file(chip: Chip, name: &str) -> Vec<u8> {
    nv_tests::bytes(&format!("cubins/{name}/{name}.{}.cubin", chip.sm_version()))
}

impl Module {
    fn load(rig: &Rig, name: &str) -> Self {
        let file = file(rig.chip, name);
        let cubin = Cubin::parse(&file).unwrap();
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).unwrap();
        // Instructions are fetched ahead of the last one.
        let image = rig.buffer(plan.size() + 4096);
        let mut bytes = vec![0; plan.size() as usize];
        plan.place_into(&mut bytes).unwrap();
        plan.relocate(&mut bytes, image.va).unwrap();
        image.write(0, &bytes);
        drop(places);
        Self { file, image }
    }

    /// The descriptor and bank 0 for a launch, written to memory.
    fn launch(&self, rig: &Rig, kernel: &str, request: &Request) -> Launch {
        let cubin = Cubin::parse(&self.file).unwrap();
        let kernel = cubin.kernel(kernel).unwrap();
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).unwrap();
        let version = Version::of_class(rig.chip.compute_class()).unwrap();
        let reserved = if rig.chip.sm_version().0 >= 90 {
            0x400
        } else {
            0
        };
        let shared = kernel.shared.max(reserved) + request.dynamic_shared;
        let grid = Dim3::from(request.grid);
        let block = Dim3::from(request.block);

        let mut bank = vec![0; usize::from(kernel.param_base) + request.args.len()];
        bank0::Layout::of(rig.chip.sm_version()).unwrap().write(
            &bank0::Prefix {
                block,
                grid,
                shared_window: SHARED_WINDOW,
                local_window: LOCAL_WINDOW,
                grid_id: 1,
                sm_count: rig.chip.sm_count(),
                reserved_shared: reserved,
                dynamic_shared: request.dynamic_shared,
                total_shared: shared,
                cluster: None,
                cooperative: None,
            },
            &mut bank,
        );
        bank[usize::from(kernel.param_base)..].copy_from_slice(&request.args);
        let bank_bytes = (bank.len() as u32).next_multiple_of(256);
        let memory = rig.buffer(4096 + u64::from(bank_bytes));
        memory.write(4096, &bank);

        let mut qmd = Qmd::new(version);
        let mut set = |name: &str, value: u32| {
            set_field(&mut qmd, name, value);
        };
        let registers = u32::from(kernel.registers).max(16);
        if version.major() < 4 {
            set("REGISTER_COUNT_V", registers);
        } else {
            set("QMD_TYPE", 2);
            set("REGISTER_COUNT", registers);
        }
        set("BARRIER_COUNT", u32::from(kernel.barriers));
        let shared = shared.next_multiple_of(128);
        if version.major() < 5 {
            set("SHARED_MEMORY_SIZE", shared);
            set("SHADER_LOCAL_MEMORY_HIGH_SIZE", request.local);
        } else {
            set("SHARED_MEMORY_SIZE_SHIFTED7", shared >> 7);
            set("SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4", request.local >> 4);
        }
        let largest = rig.chip.shared_kb() / 4 + 1;
        for name in ["MIN", "TARGET", "MAX"] {
            set(&format!("{name}_SM_CONFIG_SHARED_MEM_SIZE"), largest);
        }
        let entry = GpuVa(self.image.va.0 + plan.entry(&kernel).unwrap());
        qmd.set_program(entry, kernel.code_size as u32).unwrap();
        qmd.set_grid(grid).unwrap();
        qmd.set_block(block).unwrap();
        qmd.set_bank(0, memory.at(4096), bank_bytes).unwrap();
        for (index, bank) in kernel.banks.iter().enumerate().skip(1) {
            if let Some(bank) = bank {
                let at = GpuVa(self.image.va.0 + plan.section(bank.section).unwrap());
                if index < 8 {
                    qmd.set_bank(index as u32, at, bank.size as u32).unwrap();
                }
            }
        }
        let launch = Launch { qmd, memory };
        launch.write();
        launch
    }

    /// The offset in the kernel's code of a program counter.
    fn offset(&self, kernel: &str, pc: u64) -> Option<u64> {
        let cubin = Cubin::parse(&self.file).unwrap();
        let kernel = cubin.kernel(kernel).unwrap();
        let mut places = vec![0; cubin.section_count()];
        let plan = cubin.plan(Layout::default(), &mut places).unwrap();
        let offset = pc.checked_sub(self.image.va.0 + plan.entry(&kernel).unwrap())?;
        (offset < kernel.code_size).then_some(offset)
    }
}

impl Launch {
    /// Writes the descriptor to memory.
    fn write(&self) {
        self.memory.write(0, self.qmd.as_bytes());
    }

    fn send(&self, push: &mut PushWriter<'_>) -> Result<(), EncodeError> {
        push.write(COMPUTE, &InvalidateShaderCachesNoWfi::ALL)?;
        push.write(
            COMPUTE,
            &SendPcas {
                qmd: self.memory.va,
            },
        )?;
        push.write(COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)
    }
}

fn set_field(qmd: &mut Qmd, name: &str, value: u32) {
    let field = qmd
        .version()
        .field(name)
        .unwrap_or_else(|| panic!("{name}"));
    qmd.set_field(field, 0, value).unwrap();
}

fn windows(push: &mut PushWriter<'_>) -> Result<(), EncodeError> {
    push.write(
        COMPUTE,
        &SetShaderSharedMemoryWindow {
            base: SHARED_WINDOW,
        },
    )?;
    push.write(COMPUTE, &SetShaderLocalMemoryWindow { base: LOCAL_WINDOW })
}

/// A channel with the windows set.
fn channel(rig: &Rig) -> Channel {
    let mut channel = rig.channel();
    channel.submit(windows);
    channel
}

fn done(push: &mut PushWriter<'_>, memory: &Buffer, value: u64) -> Result<(), EncodeError> {
    let release = SemRelease {
        at: memory.va,
        value,
        wfi: true,
        timestamp: false,
    };
    push.write(Subchannel::HOST, &release)
}

/// Vector addition of `count` numbers: input, output and launch.
struct Vadd {
    output: Buffer,
    expected: Vec<f32>,
    launch: Launch,
}

impl Vadd {
    fn new(rig: &Rig, module: &Module, count: u32) -> Self {
        let [a, b, output] = [(); 3].map(|()| rig.buffer(u64::from(count) * 4 + 4096));
        let numbers = |scale: f32| (0..count).map(move |i| i as f32 * scale - 7.5);
        let mut expected = Vec::new();
        for (i, (x, y)) in numbers(0.37).zip(numbers(-1.21)).enumerate() {
            a.set_u32(i as u64 * 4, x.to_bits());
            b.set_u32(i as u64 * 4, y.to_bits());
            expected.push(x + y);
        }
        output.fill(0xa5);
        let mut args = [a.va.0, b.va.0, output.va.0].map(u64::to_le_bytes).concat();
        args.extend(count.to_le_bytes());
        let request = Request {
            grid: count.div_ceil(96),
            block: 96,
            args,
            ..Request::default()
        };
        let launch = module.launch(rig, "vadd", &request);
        Self {
            output,
            expected,
            launch,
        }
    }

    fn check(&self) {
        for (i, expected) in self.expected.iter().enumerate() {
            assert_eq!(
                self.output.u32(i as u64 * 4),
                expected.to_bits(),
                "element {i}"
            );
        }
        assert_eq!(
            self.output.u32(self.expected.len() as u64 * 4),
            0xa5a5_a5a5,
            "past the end"
        );
    }
}

#[test]
fn vector_addition_on_every_chip() {
    for chip in Chip::ALL {
        let rig = Rig::new(chip);
        let module = Module::load(&rig, "k");
        let semaphore = rig.host_buffer(4096);
        let mut channel = channel(&rig);
        let vadd = Vadd::new(&rig, &module, 1000);
        channel.submit(|push| {
            vadd.launch.send(push)?;
            done(push, &semaphore, 1)
        });
        wait_for("the launch or a fault", || {
            (semaphore.u64(0) == 1 || rig.last_fault(&channel).is_some()).then_some(())
        });
        assert_eq!(rig.last_fault(&channel), None, "{chip}");
        vadd.check();
    }
}

#[test]
fn descriptors_release_and_set_off_others() {
    for chip in [Chip::Ga102, Chip::Gh100, Chip::Gb202] {
        let rig = Rig::new(chip);
        let module = Module::load(&rig, "k");
        let semaphore = rig.host_buffer(4096);
        semaphore.fill(0xa5);
        semaphore.set_u64(0x40, 40);
        let mut channel = channel(&rig);
        let (mut first, mut second) =
            (Vadd::new(&rig, &module, 200), Vadd::new(&rig, &module, 300));
        let release = |at, payload, size| Release {
            va: semaphore.at(at),
            payload,
            size,
            membar: true,
            reduction: None,
        };
        let timed = release(0x10, 0x1_0000_0005, ReleaseSize::Timestamp);
        first.launch.qmd.set_release(0, Some(timed)).unwrap();
        let word = release(0x34, 6, ReleaseSize::Word);
        first.launch.qmd.set_release(1, Some(word)).unwrap();
        let dependent = Dependent::schedule(second.launch.memory.va);
        first.launch.qmd.set_dependent(0, Some(dependent)).unwrap();
        let last = release(0, 7, ReleaseSize::Double);
        second.launch.qmd.set_release(0, Some(last)).unwrap();
        first.launch.write();
        second.launch.write();
        channel.submit(|push| first.launch.send(push));
        semaphore.wait_u64(0, 7);
        first.check();
        second.check();
        assert_eq!(semaphore.u64(0x10), 0x1_0000_0005);
        assert!(semaphore.u64(0x18) != 0xa5a5_a5a5_a5a5_a5a5);
        assert_eq!(semaphore.u64(0x30), 6 << 32 | 0xa5a5_a5a5);
        assert_eq!(semaphore.u64(0x8), 0xa5a5_a5a5_a5a5_a5a5);
        assert_eq!(rig.last_fault(&channel), None);
    }
}

#[test]
fn uploads_through_the_pushbuffer() {
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.buffer(4096);
    let semaphore = rig.host_buffer(4096);
    memory.fill(0xa5);
    let mut channel = channel(&rig);
    channel.submit(|push| {
        compute::upload(
            push,
            COMPUTE,
            memory.at(8),
            10,
            &[0x0403_0201, 0x0807_0605, 0xffff_0a09],
        )?;
        compute::upload(push, COMPUTE, memory.at(0x103), 4, &[0x1122_3344])?;
        done(push, &semaphore, 1)
    });
    semaphore.wait_u64(0, 1);
    let bytes = memory.bytes();
    assert_eq!(bytes[8..18], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(bytes[0x103..0x107], [0x44, 0x33, 0x22, 0x11]);
    assert!(
        bytes[..8]
            .iter()
            .chain(&bytes[18..0x103])
            .chain(&bytes[0x107..])
            .all(|b| *b == 0xa5)
    );
    let mut second = rig.channel();
    second.submit(|push| {
        push.run(
            nv_proto::push::RunOp::Inc,
            COMPUTE,
            compute::LOAD_INLINE_DATA,
            &[1],
        )
    });
    assert!(rig.fault(&second).contains("no upload"));
}

#[test]
fn reports_release() {
    use nv_proto::push::compute::{ReportSemaphore, ReportSemaphoreD, StructSize};
    let rig = Rig::new(Chip::Gh100);
    let memory = rig.host_buffer(4096);
    memory.fill(0xa5);
    let mut channel = channel(&rig);
    channel.submit(|push| {
        let d = ReportSemaphoreD {
            structure_size: StructSize::OneWord,
            ..ReportSemaphoreD::default()
        };
        push.write(
            COMPUTE,
            &ReportSemaphore {
                at: memory.at(0x24),
                payload: 3,
                d,
            },
        )?;
        let d = ReportSemaphoreD::default();
        push.write(
            COMPUTE,
            &ReportSemaphore {
                at: memory.at(0x10),
                payload: 9,
                d,
            },
        )?;
        done(push, &memory, 1)
    });
    memory.wait_u64(0, 1);
    assert_eq!(memory.u64(0x20), 3 << 32 | 0xa5a5_a5a5);
    assert_eq!(memory.u64(0x10), 9);
    assert_ne!(memory.u64(0x18), 0xa5a5_a5a5_a5a5_a5a5);
}

/// The debugger's two answers about a channel.
fn debug(rig: &Rig, channel: &Channel) -> (Vec<rm::SmErrorState>, bool, rm::ReadMmuFaultInfo) {
    let object = rig.engine(channel.handle, rig.chip.compute_class());
    let mut params = rm::DebuggerAlloc::default();
    params.h_app_client = rig.client.0.into();
    params.h_class3d_object = object.0.into();
    let debugger = rig
        .alloc(rig.device, class::GT200_DEBUGGER, &mut params)
        .unwrap();
    let (mut states, mut mmu) = (Vec::new(), false);
    while states.len() < rig.chip.sm_count() as usize {
        let mut read = rm::ReadAllSmErrorStates::default();
        read.h_target_channel = channel.handle.0.into();
        let count = (rig.chip.sm_count() - states.len() as u32).min(100);
        read.num_sms_to_read = count.into();
        read.starting_sm = (states.len() as u32).into();
        rig.control(debugger, &mut read).unwrap();
        states.extend(&read.sm_error_state_array[..count as usize]);
        mmu |= read.mmu_fault.valid != 0;
    }
    let mut info = rm::ReadMmuFaultInfo::default();
    rig.control(debugger, &mut info).unwrap();
    (states, mmu, info)
}

/// What a kernel of `faults.cu` ends in on an H200: notifier code, warp ESR.
#[test]
fn kernels_fault_as_on_the_h200() {
    for chip in [Chip::Ga102, Chip::Gh100, Chip::Gb202] {
        let rig = Rig::new(chip);
        let module = Module::load(&rig, "faults");
        let memory = rig.buffer(4096);
        memory.set_u64(0, 7);
        let args = memory.va.0.to_le_bytes().to_vec();
        let semaphore = rig.host_buffer(4096);
        let cases = [
            ("badaddr", 138, 31, 0, Some(memory.va.0 + (8 << 33))),
            ("misalign", 1, 13, 0x000f, Some(memory.va.0 + 4)),
            ("trap", 1, 13, 0x0009, None),
            ("illegal", 1, 13, 0x0009, None),
            ("localoob", 1, 13, 0x0300_000e, None),
            ("sharedoob", 1, 13, 0x0c00_000e, None),
        ];
        for (kernel, grid, code, esr, address) in cases {
            let mut channel = channel(&rig);
            let request = Request {
                grid,
                block: 32,
                args: args.clone(),
                ..Request::default()
            };
            let launch = module.launch(&rig, kernel, &request);
            semaphore.set_u64(0, 0);
            channel.submit(|push| {
                launch.send(push)?;
                done(push, &semaphore, 1)
            });
            let text = rig.fault(&channel);
            wait_for("the notifier", || {
                (channel.notifier.u64(8) != 0).then_some(())
            });
            assert_eq!(
                channel.notifier.u64(8),
                code | 0xffff << 48,
                "{chip} {kernel}: {text}"
            );
            let (states, mmu, info) = debug(&rig, &channel);
            let faulted: Vec<_> = states
                .iter()
                .filter(|state| state.hww_global_esr.get() != 0)
                .collect();
            if code == 31 {
                assert!(
                    mmu && faulted.is_empty() && info.count.get() == 1,
                    "{chip} {kernel}"
                );
                let entry = &info.mmu_fault_info_list[0];
                // Any thread of the warp may be the one that is told of.
                let first = address.unwrap();
                assert!(
                    (first..first + 256).contains(&entry.fault_address.get()),
                    "{kernel}: {text}"
                );
                assert_eq!(entry.access_type.get(), 1);
            } else {
                assert!(!mmu && info.count.get() == 0);
                let [state] = faulted[..] else {
                    panic!("{chip} {kernel}: {} SMs", faulted.len())
                };
                assert_eq!(state.hww_global_esr.get(), 4);
                assert_eq!(state.hww_warp_esr.get(), esr, "{chip} {kernel}: {text}");
                let pc = state.hww_warp_esr_pc64.get();
                let offset = module.offset(kernel, pc);
                assert!(
                    offset.is_some_and(|offset| offset % 16 == 0),
                    "{kernel}: pc {pc:#x}"
                );
                if let Some(address) = address {
                    assert_eq!(state.hww_esr_addr.get(), address, "{kernel}");
                }
            }
            // A launch after it never completes.
            channel.submit(|push| done(push, &semaphore, 2));
            semaphore.stays(0, 0);
            rig.free(channel.group);
        }
        // In a new group everything works.
        let mut channel = channel(&rig);
        let request = Request {
            grid: 1,
            block: 32,
            args,
            ..Request::default()
        };
        let launch = module.launch(&rig, "ok", &request);
        channel.submit(|push| {
            launch.send(push)?;
            done(push, &semaphore, 3)
        });
        semaphore.wait_u64(0, 3);
        assert_eq!(memory.u64(31 * 8), 7);
    }
}

#[test]
fn an_endless_loop_ends_with_its_group() {
    let rig = Rig::new(Chip::Gh100);
    let module = Module::load(&rig, "faults");
    let memory = rig.buffer(4096);
    let semaphore = rig.host_buffer(4096);
    let args = memory.va.0.to_le_bytes().to_vec();
    let request = Request {
        grid: 4,
        block: 32,
        args,
        ..Request::default()
    };
    let mut channel_ = channel(&rig);
    let launch = module.launch(&rig, "loop", &request);
    channel_.submit(|push| {
        launch.send(push)?;
        done(push, &semaphore, 1)
    });
    std::thread::sleep(NEVER);
    // No error, and no end.
    assert_eq!((semaphore.u64(0), channel_.notifier.u64(8)), (0, 0));
    assert_eq!(rig.last_fault(&channel_), None);
    let start = Instant::now();
    rig.free(channel_.group);
    assert!(start.elapsed() < Duration::from_secs(5));
    let mut again = channel(&rig);
    let launch = module.launch(&rig, "ok", &request);
    again.submit(|push| {
        launch.send(push)?;
        done(push, &semaphore, 2)
    });
    semaphore.wait_u64(0, 2);
    assert_eq!(memory.u64(0), 7);
    // A loop that another engine, or a CPU, ends.
    let launch = module.launch(&rig, "loop", &request);
    again.submit(|push| {
        launch.send(push)?;
        done(push, &semaphore, 3)
    });
    std::thread::sleep(NEVER / 4);
    memory.set_u64(8, 99);
    semaphore.wait_u64(0, 3);
}

/// Grids on several channels run side by side, and other engines do not wait for them.
#[test]
fn a_grid_keeps_no_other_channel_waiting() {
    use nv_proto::push::copy;
    let rig = Rig::new(Chip::Gh100);
    let module = Module::load(&rig, "faults");
    let semaphore = rig.host_buffer(4096);
    let flags = rig.buffer(4096);
    let value = rig.host_buffer(4096);
    value.set_u64(0, 99);
    // Three loops, each on a flag of its own.
    let mut loops: Vec<(Channel, Launch)> = (0..3)
        .map(|i| {
            let args = flags.at(i * 64).0.to_le_bytes().to_vec();
            let request = Request {
                grid: 1,
                block: 32,
                args,
                ..Request::default()
            };
            (channel(&rig), module.launch(&rig, "loop", &request))
        })
        .collect();
    let mut copier = rig.channel();
    for (i, (channel, launch)) in (1..).zip(&mut loops) {
        let at = semaphore.at(i * 8);
        channel.submit(|push| {
            launch.send(push)?;
            push.write(
                Subchannel::HOST,
                &SemRelease {
                    at,
                    value: 1,
                    wfi: true,
                    timestamp: false,
                },
            )
        });
    }
    std::thread::sleep(NEVER / 4);
    assert!((1..4).all(|i| semaphore.u64(i * 8) == 0));
    // The copy engine ends them one by one, last first.
    for i in (0..3).rev() {
        copier
            .submit(|push| copy::linear(push, Subchannel::COPY, flags.at(i * 64 + 8), value.va, 8));
        semaphore.wait_u64((i + 1) * 8, 1);
        assert!((0..i).all(|other| semaphore.u64((other + 1) * 8) == 0));
    }
    for (channel, _) in &loops {
        assert_eq!(rig.last_fault(channel), None);
    }
}

/// Launches what the hardware would not start; answers what is said of it.
fn refused(rig: &Rig, module: &Module, code: u64, change: impl FnOnce(&mut Qmd)) -> String {
    let semaphore = rig.host_buffer(4096);
    let mut channel = channel(rig);
    let mut vadd = Vadd::new(rig, module, 100);
    change(&mut vadd.launch.qmd);
    vadd.launch.write();
    channel.submit(|push| {
        vadd.launch.send(push)?;
        done(push, &semaphore, 1)
    });
    let text = rig.fault(&channel);
    semaphore.stays(0, 0);
    let expected = if code == 0 { 0 } else { code | 0xffff << 48 };
    assert_eq!(channel.notifier.u64(8), expected, "{text}");
    assert_eq!(vadd.output.u32(0), 0xa5a5_a5a5);
    text
}

#[test]
fn descriptors_that_hardware_refuses() {
    let rig = Rig::new(Chip::Gh100);
    let module = Module::load(&rig, "k");
    let set = |name: &'static str, value: u32| {
        move |qmd: &mut Qmd| {
            set_field(qmd, name, value);
        }
    };
    let cases = [
        (
            refused(&rig, &module, 13, |qmd| {
                qmd.set_block(Dim3::new(0, 1, 1)).unwrap()
            }),
            "CTA_THREAD_DIMENSION_ZERO",
        ),
        (
            refused(&rig, &module, 13, |qmd| {
                qmd.set_block(Dim3::new(32, 33, 1)).unwrap()
            }),
            "TOTAL_THREADS",
        ),
        (
            refused(&rig, &module, 13, set("REGISTER_COUNT", 0)),
            "REGISTER_COUNT",
        ),
        (
            refused(&rig, &module, 13, |qmd| {
                set_field(qmd, "REGISTER_COUNT", 255);
                qmd.set_block(Dim3::new(512, 1, 1)).unwrap();
            }),
            "TOTAL_REGISTER_COUNT",
        ),
        (
            refused(&rig, &module, 13, set("MAX_SM_CONFIG_SHARED_MEM_SIZE", 0)),
            "SHARED_CONFIG",
        ),
        (
            refused(
                &rig,
                &module,
                13,
                set("MAX_SM_CONFIG_SHARED_MEM_SIZE", 0x3b),
            ),
            "SHARED_CONFIG",
        ),
        (
            refused(&rig, &module, 13, |qmd| {
                set_field(qmd, "MAX_SM_CONFIG_SHARED_MEM_SIZE", 3);
                set_field(qmd, "SHARED_MEMORY_SIZE", 16384);
            }),
            "SHARED_CONFIG_TOO_SMALL",
        ),
        (
            refused(
                &rig,
                &module,
                13,
                set("SHADER_LOCAL_MEMORY_HIGH_SIZE", 1024),
            ),
            "LOCAL_MEMORY_TOTAL_SIZE",
        ),
        (
            refused(&rig, &module, 13, |qmd| {
                set_field(qmd, "CONSTANT_BUFFER_SIZE_SHIFTED4", 0x1001);
            }),
            "CONSTANT_BUFFER_SIZE",
        ),
        (refused(&rig, &module, 0, set("QMD_TYPE", 0)), "QMD_TYPE"),
        (
            refused(&rig, &module, 0, |qmd| *qmd = Qmd::new(Version::V03_00)),
            "version 3.0",
        ),
        (
            refused(&rig, &module, 0, set("QMD_MAJOR_VERSION", 9)),
            "version 9.0",
        ),
    ];
    for (text, name) in cases {
        assert!(text.contains(name), "{name}: {text}");
    }
    for (chip, other) in [
        (Chip::Ga102, Version::V04_00),
        (Chip::Gb202, Version::V04_00),
    ] {
        let rig = Rig::new(chip);
        let module = Module::load(&rig, "k");
        let text = refused(&rig, &module, 0, |qmd| *qmd = Qmd::new(other));
        assert!(text.contains("never completes"), "{text}");
    }
}

#[test]
fn a_descriptor_in_flight_is_not_to_be_launched_again() {
    let rig = Rig::new(Chip::Gh100);
    let module = Module::load(&rig, "k");
    let semaphore = rig.host_buffer(4096);
    let mut vadd = Vadd::new(&rig, &module, 100);
    let release = Release {
        va: semaphore.at(8),
        payload: 1,
        ..Release::default()
    };
    vadd.launch.qmd.set_release(0, Some(release)).unwrap();
    vadd.launch.write();

    // Twice in one stream.
    let mut first = channel(&rig);
    first.submit(|push| {
        vadd.launch.send(push)?;
        vadd.launch.send(push)?;
        done(push, &semaphore, 1)
    });
    assert!(rig.fault(&first).contains("in flight"));
    semaphore.stays(0, 0);
    assert_eq!(first.notifier.u64(8), 0, "it hangs, with no error");

    // With a wait for the engine, or for its own release, in between.
    let mut second = channel(&rig);
    second.submit(|push| {
        vadd.launch.send(push)?;
        done(push, &semaphore, 1)?;
        vadd.launch.send(push)?;
        push.write(
            Subchannel::HOST,
            &nv_proto::push::host::SemAcquire::geq(semaphore.at(8), 1),
        )?;
        vadd.launch.send(push)?;
        done(push, &semaphore, 2)
    });
    semaphore.wait_u64(0, 2);
    // With the CPU seeing its end before the next submission.
    for _ in 0..3 {
        semaphore.set_u64(8, 0);
        second.submit(|push| vadd.launch.send(push));
        semaphore.wait_u64(8, 1);
    }
    second.submit(|push| done(push, &semaphore, 3));
    semaphore.wait_u64(0, 3);
    assert_eq!(rig.last_fault(&second), None);
}

#[test]
fn local_memory_has_to_be_set_up() {
    for chip in [Chip::Ad102, Chip::Gh100, Chip::Gb202] {
        let rig = Rig::new(chip);
        let module = Module::load(&rig, "k");
        let semaphore = rig.host_buffer(4096);
        let mut channel = channel(&rig);
        let per_thread = 0x1000_u32;
        let warps = u64::from(chip.warps_per_sm() * chip.sms_per_tpc());
        let per_tpc = (u64::from(per_thread) * 32 * warps).next_multiple_of(0x8000);
        let tpcs = u64::from(chip.gpcs() * chip.tpcs_per_gpc());
        let local = rig.buffer(per_tpc * tpcs);
        let (n, threads) = (64_u32, 64_u32);
        let index = rig.buffer(4096);
        let output = rig.buffer(4096);
        let indices: Vec<u32> = (0..1024)
            .map(|i: u32| i.wrapping_mul(2_654_435_761) >> 11)
            .collect();
        for (i, index_) in indices.iter().enumerate() {
            index.set_u32(i as u64 * 4, *index_);
        }
        let mut args = [index.va.0, output.va.0].map(u64::to_le_bytes).concat();
        args.extend(n.to_le_bytes());
        let request = Request {
            grid: 2,
            block: 32,
            local: per_thread,
            args,
            ..Request::default()
        };
        let launch = module.launch(&rig, "loc", &request);
        channel.submit(|push| {
            push.write(COMPUTE, &SetShaderLocalMemory { at: local.va })?;
            push.write(
                COMPUTE,
                &SetShaderLocalMemoryNonThrottled {
                    bytes_per_tpc: per_tpc,
                    max_sm_count: 0xff,
                },
            )?;
            push.write(
                COMPUTE,
                &SendPcas {
                    qmd: launch.memory.va,
                },
            )?;
            // The older signal.
            push.write(COMPUTE, &SendSignalingPcas::INVALIDATE_SCHEDULE)?;
            done(push, &semaphore, 1)
        });
        wait_for("the launch or a fault", || {
            (semaphore.u64(0) == 1 || rig.last_fault(&channel).is_some()).then_some(())
        });
        assert_eq!(rig.last_fault(&channel), None, "{chip}");
        for t in 0..threads {
            let lane = t % 32;
            let mut buffer: Vec<f32> = (0..512).map(|i| i as f32 * 1.5 + lane as f32).collect();
            let mut sum = 0.0_f32;
            for j in 0..n {
                let k = indices[((t + j) & 1023) as usize] & 511;
                buffer[k as usize] += j as f32;
                sum += buffer[((k * 7) & 511) as usize];
            }
            assert_eq!(
                output.u32(u64::from(t) * 4),
                sum.to_bits(),
                "{chip}: thread {t}"
            );
        }
    }
}
