//! Whichever call the driver refuses, nothing stays half-made: all that was made is given back, nothing hangs, and
//! the same driver then serves a whole session.

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use nv_proto::rm::{self, Abi, DriverVersion, Status};
use nv_proto::unit::{ClassId, Handle};
use nv_sim::{Chip, Machine};

use super::*;
use crate::driver::sim::{SimDriver, open_in};
use crate::driver::{Attached, Kind, MapCpu, MapDma, sealed};
use crate::{Graph, Mapping, launch};

/// A simulated driver that refuses one call: the one that `left` counts down to.
#[derive(Debug)]
pub(super) struct Refusing {
    driver: SimDriver,
    left: AtomicUsize,
    /// The call that was refused.
    refused: Mutex<&'static str>,
    /// Calls that end something, which are never refused.
    ended: AtomicUsize,
}

/// Refuses nothing.
const NEVER: usize = usize::MAX / 2;

/// The calls that a session does without: its device then has no name, and a fault report tells less.
const WITHOUT: [&str; 2] = ["NV2080_CTRL_CMD_GPU_GET_NAME_STRING", "GT200_DEBUGGER"];

/// Checks that what was refused to sessions that succeeded are [`WITHOUT`] and none but those and `more`: which call
/// comes at which number depends a little on what the GPU has done by then, so that not all of `more` are met.
fn check_survived(survived: &BTreeSet<&str>, more: &[&str]) {
    let known = |call: &&&str| WITHOUT.contains(call) || more.contains(call);
    let others: Vec<_> = survived.iter().filter(|call| !known(call)).collect();
    assert!(others.is_empty(), "done without {others:?}");
    assert!(
        WITHOUT.iter().all(|call| survived.contains(call)),
        "{survived:?}"
    );
}

impl Refusing {
    /// One that refuses nothing.
    pub(super) fn nothing(driver: SimDriver) -> Self {
        Self {
            driver,
            left: AtomicUsize::new(NEVER),
            refused: Mutex::default(),
            ended: AtomicUsize::new(0),
        }
    }

    /// How many calls were made, so far nothing having been refused.
    pub(super) fn calls(&self) -> usize {
        NEVER - self.left.load(Ordering::SeqCst) + self.ended.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self, what: &'static str) -> Result<(), Error> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return Ok(());
        }
        *lock(&self.refused) = what;
        Err(Error::Rm {
            call: "a call of a test".into(),
            status: Status::GENERIC,
            detail: String::new(),
        })
    }
}

impl sealed::Sealed for Refusing {}

#[allow(unsafe_code, reason = "hands every promise on")]
impl Driver for Refusing {
    fn kind(&self) -> Kind {
        self.driver.kind()
    }

    fn release(&self) -> DriverVersion {
        self.driver.release()
    }

    fn abi(&self) -> Abi {
        self.driver.abi()
    }

    fn machine_id(&self) -> usize {
        self.driver.machine_id()
    }

    fn gpu_id(&self) -> u32 {
        self.driver.gpu_id()
    }

    fn reopen(&self) -> Result<Arc<dyn Driver>, Error> {
        self.count("reopen")?;
        self.driver.reopen()
    }

    fn client(&self) -> Handle {
        self.driver.client()
    }

    fn device_instance(&self) -> u32 {
        self.driver.device_instance()
    }

    unsafe fn alloc_raw(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Error> {
        self.count(rm::names::class(class).unwrap_or("a class"))?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.driver.alloc_raw(parent, class, params) }
    }

    unsafe fn control_raw(
        &self,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Error> {
        self.count(rm::names::command(command).unwrap_or("a control call"))?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.driver.control_raw(object, command, params) }
    }

    fn dup(&self, parent: Handle, client: Handle, source: Handle) -> Result<Handle, Error> {
        self.count("dup")?;
        self.driver.dup(parent, client, source)
    }

    fn attach(&self, gpu_id: u32) -> Result<Attached, Error> {
        self.count("attach")?;
        self.driver.attach(gpu_id)
    }

    // What ends something is not refused: there would be no other way to give it back.
    fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        self.end();
        self.driver.free(parent, object)
    }

    fn class_list(&self, device: Handle) -> Result<Vec<ClassId>, Error> {
        self.count("class_list")?;
        self.driver.class_list(device)
    }

    fn gr_info(&self, subdevice: Handle, indices: &[u32]) -> Result<Vec<u32>, Error> {
        self.count("gr_info")?;
        self.driver.gr_info(subdevice, indices)
    }

    fn map_cpu(&self, request: &MapCpu) -> Result<Mapping, Error> {
        self.count("map_cpu")?;
        self.driver.map_cpu(request)
    }

    fn map_dma(&self, request: &MapDma) -> Result<(), Error> {
        self.count("map_dma")?;
        self.driver.map_dma(request)
    }

    fn unmap_dma(
        &self,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Error> {
        self.end();
        self.driver.unmap_dma(device, virtual_memory, memory, va)
    }

    unsafe fn register_pages(
        &self,
        device: Handle,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<Handle, Error> {
        self.count("register_pages")?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.driver.register_pages(device, base, length) }
    }

    unsafe fn uvm_raw(&self, command: u32, params: &mut [u8]) -> Result<(), Error> {
        use nv_proto::uvm::UvmCommand;
        use nv_proto::uvm::{Free, UnregisterChannel, UnregisterGpu, UnregisterGpuVaspace};
        let ends = [
            Free::COMMAND,
            UnregisterChannel::COMMAND,
            UnregisterGpu::COMMAND,
            UnregisterGpuVaspace::COMMAND,
        ];
        if ends.contains(&command) {
            self.end();
        } else {
            self.count(nv_proto::uvm::name(command).unwrap_or("a UVM call"))?;
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.driver.uvm_raw(command, params) }
    }

    fn control_fd(&self) -> i32 {
        self.driver.control_fd()
    }

    fn explain_fault(&self, channel: Handle) -> Option<String> {
        self.driver.explain_fault(channel)
    }

    fn doorbell(&self, usermode: Mapping) -> Doorbell {
        self.driver.doorbell(usermode)
    }
}

/// All that a program does: memory of each kind, copies, two streams, kernels, one with local memory, a graph.
fn session(driver: &Arc<Refusing>, options: &Options, cubin: &[u8]) -> Result<(), Error> {
    let context = Context::new(Arc::clone(driver) as Arc<dyn Driver>, options)?;
    let module = context.load(cubin)?;
    let (vadd, local) = (module.function("vadd")?, module.function("loc")?);
    let one = context.upload(&[1.0_f32; 64])?;
    let sum = context.alloc_in::<f32>(64, Placement::HostVisible)?;
    let copy = context.alloc_in::<f32>(64, Placement::Pinned)?;
    let (first, second) = (context.stream()?, context.stream()?);
    let launch = first.launch(&vadd).grid(1).block(64);
    let event = launch.arg(&one).arg(&one).arg(&sum).arg(64_i32).submit()?;
    second.wait_for(&event)?;
    second.copy(&copy, &sum)?.wait()?;
    assert_eq!(copy.read()?, [2.0; 64]);
    let profile = context.profile()?;
    let before = second.record()?;
    let index = context.upload(&[0_i32; 1024])?;
    let launch = second.launch(&local).grid(1).block(32);
    launch.arg(&index).arg(&sum).arg(1_i32).submit()?.wait()?;
    // With no stream ended by a refusal, nothing that ran is lost.
    assert!(before.timestamp().is_some());
    assert_eq!(profile.finish().records().len(), 2);
    let mut graph = Graph::builder(&context);
    graph.copy(&sum, &one)?;
    launch!(graph, vadd[1, 64](&one, &one, &sum, 64_i32))?;
    launch!(graph, local[1, 32](&index, &sum, 1_i32))?;
    graph.build()?.replay(&first)?;
    context.synchronize()
}

/// The cubin that sessions load.
fn kernels() -> std::io::Result<Vec<u8>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins/k");
    std::fs::read(root.join("k.sm_90.cubin"))
}

/// Options for a way of mapping, with a limit that nothing reaches.
fn by(mode: MapMode) -> Options {
    Options {
        map_mode: Some(mode),
        limit: Duration::from_secs(20),
        ..Options::default()
    }
}

#[test]
fn whichever_call_is_refused_all_is_given_back() {
    let cubin = kernels().unwrap();
    for mode in [MapMode::Rm, MapMode::Uvm] {
        let options = by(mode);
        let machine = Machine::new(&[Chip::Gh100]).unwrap();
        let driver = Arc::new(Refusing::nothing(open_in(Arc::clone(&machine), 0).unwrap()));
        let left = || (machine.object_count(), machine.vidmem_used(0));
        let before = left();
        session(&driver, &options, &cubin).unwrap();
        assert_eq!(left(), before, "{mode:?}, nothing refused");
        let calls = NEVER - driver.left.load(Ordering::SeqCst);
        assert!(calls > 50, "{calls}");
        let mut survived = BTreeSet::new();
        for refused in 0..calls {
            let start = Instant::now();
            driver.left.store(refused, Ordering::SeqCst);
            match session(&driver, &options, &cubin) {
                Ok(()) => _ = survived.insert(*lock(&driver.refused)),
                Err(Error::Timeout { .. } | Error::Fault(_)) => {
                    panic!("{mode:?}: refusing call {refused} broke the GPU's work")
                }
                Err(_) => {}
            }
            assert!(start.elapsed() < Duration::from_secs(5), "call {refused}");
            assert_eq!(
                left(),
                before,
                "{mode:?}, call {refused} of {calls} refused"
            );
            driver.left.store(NEVER, Ordering::SeqCst);
            session(&driver, &options, &cubin)
                .unwrap_or_else(|error| panic!("{mode:?}, after call {refused}: {error}"));
            assert_eq!(left(), before, "{mode:?}, after call {refused} of {calls}");
        }
        // A channel's registration is shared by its group.
        let more: &[_] = match mode {
            MapMode::Rm => &[],
            MapMode::Uvm => &["UVM_REGISTER_CHANNEL"],
        };
        check_survived(&survived, more);
    }
}

/// What one context does with memory of another GPU: mapped for a kernel, copied both ways, waited for.
fn with_a_peer(
    driver: &Arc<Refusing>,
    options: &Options,
    owner: &Context,
    cubin: &[u8],
) -> Result<(), Error> {
    let context = Context::new(Arc::clone(driver) as Arc<dyn Driver>, options)?;
    let module = context.load(cubin)?;
    let vadd = module.function("vadd")?;
    let there = owner.upload(&[1.0_f32; 64])?;
    let sum = context.alloc::<f32>(64)?;
    let stream = context.stream()?;
    let ready = owner.default_stream()?.copy(&there, &there)?;
    stream.wait_for(&ready)?;
    stream.copy_peer(&sum, &there)?.wait()?;
    assert_eq!(sum.read()?, [1.0; 64]);
    let mapped = there.map_for(&context)?;
    let launch = stream.launch(&vadd).grid(1).block(64);
    let launch = launch.arg(&mapped).arg(&sum).arg(&sum).arg(64_i32);
    launch.submit()?;
    stream.copy_peer(&there, &sum)?.wait()?;
    assert_eq!(there.read()?, [2.0; 64]);
    context.synchronize()
}

#[test]
fn whichever_call_is_refused_between_two_gpus_all_is_given_back() {
    let cubin = kernels().unwrap();
    for mode in [MapMode::Rm, MapMode::Uvm] {
        let options = by(mode);
        let machine = Machine::new(&[Chip::Gh100, Chip::Gh100]).unwrap();
        let owner = open_in(Arc::clone(&machine), 0).unwrap();
        let owner = Context::new(Arc::new(owner), &options).unwrap();
        let driver = open_in(Arc::clone(&machine), 1).unwrap();
        let driver = Arc::new(Refusing::nothing(driver));
        let run = || with_a_peer(&driver, &options, &owner, &cubin);
        // The owner keeps what it made for itself the first time.
        run().unwrap();
        let left = || {
            owner.synchronize().unwrap();
            let used = [0, 1].map(|gpu| machine.vidmem_used(gpu));
            (machine.object_count(), used)
        };
        let before = left();
        driver.left.store(NEVER, Ordering::SeqCst);
        run().unwrap();
        assert_eq!(left(), before, "{mode:?}, nothing refused");
        let calls = NEVER - driver.left.load(Ordering::SeqCst);
        let mut survived = BTreeSet::new();
        for refused in 0..calls {
            driver.left.store(refused, Ordering::SeqCst);
            match run() {
                Ok(()) => _ = survived.insert(*lock(&driver.refused)),
                Err(Error::Timeout { .. } | Error::Fault(_)) => {
                    panic!("{mode:?}: refusing call {refused} broke the GPU's work")
                }
                Err(_) => {}
            }
            driver.left.store(NEVER, Ordering::SeqCst);
            assert_eq!(
                left(),
                before,
                "{mode:?}, call {refused} of {calls} refused"
            );
            run().unwrap_or_else(|error| panic!("{mode:?}, after call {refused}: {error}"));
            assert_eq!(left(), before, "{mode:?}, after call {refused} of {calls}");
        }
        // What maps another GPU's memory: a copy goes through host memory then.
        let more: &[_] = match mode {
            MapMode::Rm => &[
                "NV01_DEVICE_0",
                "NV20_SUBDEVICE_0",
                "NV50_P2P",
                "attach",
                "dup",
                "map_dma",
            ],
            MapMode::Uvm => &[
                "UVM_CREATE_EXTERNAL_RANGE",
                "UVM_ENABLE_PEER_ACCESS",
                "UVM_MAP_EXTERNAL_ALLOCATION",
                "UVM_REGISTER_CHANNEL",
                "UVM_REGISTER_GPU",
            ],
        };
        check_survived(&survived, more);
    }
}

/// Launches and replays talk to the GPU alone, also the first ones: the driver is called for what is made before them,
/// and for local memory.
#[test]
fn a_launch_makes_no_driver_call() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins/k");
    let cubin = std::fs::read(root.join("k.sm_90.cubin")).unwrap();
    let machine = Machine::new(&[Chip::Gh100]).unwrap();
    let driver = Arc::new(Refusing::nothing(open_in(machine, 0).unwrap()));
    let calls = || driver.calls();
    let shared = Arc::clone(&driver) as Arc<dyn Driver>;
    let context = Context::new(shared, &Options::default()).unwrap();
    let (one, sum) = (
        context.upload(&[1.0_f32; 64]).unwrap(),
        context.alloc::<f32>(64).unwrap(),
    );
    let stream = context.stream().unwrap();
    let module = context.load(&cubin).unwrap();
    let (vadd, local) = (
        module.function("vadd").unwrap(),
        module.function("loc").unwrap(),
    );
    let before = calls();
    for _ in 0..2 {
        launch!(stream, vadd[1, 64](&one, &one, &sum, 64_i32)).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(calls(), before, "for launches");
    launch!(stream, local[1, 32](&one, &sum, 1_i32)).unwrap();
    assert!(calls() > before, "for local memory");
    let mut graph = Graph::builder(&context);
    let node = launch!(graph, vadd[1, 64](&one, &one, &sum, 64_i32)).unwrap();
    launch!(graph, local[1, 32](&one, &sum, 1_i32)).unwrap();
    let graph = graph.build().unwrap();
    let before = calls();
    for n in 0..4_i32 {
        graph.set_arg(node, 3, n).unwrap();
        graph.replay(&stream).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(calls(), before, "for replays");
}

/// A launch that finds no memory while its own stream is stuck is refused: it holds the stream's state, which the wait
/// for memory may not want.
#[test]
fn memory_that_is_short_is_no_deadlock() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins");
    let file = |name: &str| std::fs::read(root.join(name)).unwrap();
    let (endless, local) = (file("faults/faults.sm_90.cubin"), file("k/k.sm_90.cubin"));
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let memory = nv_sim::Options {
            memory: 256 << 20,
            ..nv_sim::Options::default()
        };
        let driver = crate::driver::sim::open_with(Chip::Gh100, memory).unwrap();
        let options = Options {
            limit: Duration::from_millis(200),
            ..Options::default()
        };
        let context = Context::new(Arc::new(driver), &options).unwrap();
        let (endless, local) = (
            context.load(&endless).unwrap(),
            context.load(&local).unwrap(),
        );
        let stream = context.stream().unwrap();
        let flag = context.upload(&[0_u64; 16]).unwrap();
        let endless = endless.function("loop").unwrap();
        stream.launch(&endless).arg(&flag).submit().unwrap();
        // What is given up while it is in use.
        drop(context.alloc::<u8>(1 << 20).unwrap());
        assert_eq!(context.inner().retired.len(), 1);
        let local = local.function("loc").unwrap();
        let launch = stream.launch(&local).arg(&flag).arg(&flag).arg(1_i32);
        let launched = launch.submit().map(drop);
        let too_much = context.inner().local_memory(u32::MAX).map(drop);
        done.send((launched, too_much)).unwrap();
    });
    let (launched, too_much) = finished
        .recv_timeout(Duration::from_secs(20))
        .expect("the launch neither succeeds nor fails");
    assert!(
        matches!(launched, Err(Error::OutOfMemory { .. })),
        "{launched:?}"
    );
    assert!(
        matches!(too_much, Err(Error::OutOfMemory { .. })),
        "{too_much:?}"
    );
}
