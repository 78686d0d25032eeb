//! Two sequences recorded on an H200 (driver 580.159.04) that opened the GPU, copied and ran kernels, made again
//! through the driver: each call's parameters must be those recorded, byte for byte.
//!
//! What differs by design: the release is asked by `NV_ESC_CHECK_VERSION_STR` instead of a control call, UVM is
//! opened at its first use, pointers and descriptors are those of the process.

use std::ops::Range;

use nv_proto::rm::AllocParams;
use serde_json::Value;

use super::*;

/// One recorded call.
struct Call {
    record: Value,
}

impl Call {
    fn text(&self, field: &str) -> &str {
        self.record[field].as_str().unwrap_or_default()
    }

    fn number(&self, field: &str) -> u32 {
        let text = self.text(field);
        u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
    }

    fn bytes(&self, field: &str) -> Vec<u8> {
        let text = self.text(field).as_bytes();
        let digit = |byte: u8| u8::try_from((byte as char).to_digit(16).unwrap()).unwrap();
        text.chunks_exact(2)
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect()
    }

    fn request(&self) -> u32 {
        self.number("request")
    }

    fn is_uvm(&self) -> bool {
        self.text("kind") == "UVM"
    }

    fn is(&self, escape: u8) -> bool {
        !self.is_uvm() && rm::parse_request(self.request()).is_some_and(|(is, _)| is == escape)
    }

    /// The parameters as their structure, as far as they were recorded.
    fn params<P: Layout>(&self) -> P {
        let mut bytes = self.bytes("params_in");
        bytes.resize(bytes.len().max(size_of::<P>()), 0);
        P::read_from_prefix(&bytes).unwrap().0
    }
}

/// The calls of a sequence that we make too.
fn recording(name: &str) -> VecDeque<Call> {
    let path = format!(
        "{}/../tests/golden/rm/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let Value::Array(calls) = json["calls"].take() else {
        panic!("{name} holds no calls")
    };
    let mut calls: Vec<Call> = calls.into_iter().map(|record| Call { record }).collect();
    calls.retain(|call| call.text("command") != "0x0000013e");
    let opens_uvm = |call: &Call| {
        call.is_uvm()
            && matches!(
                call.request(),
                uvm::Initialize::COMMAND | uvm::MmInitialize::COMMAND
            )
    };
    let (opening, mut calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(opens_uvm);
    let first_use = calls.iter().position(Call::is_uvm).unwrap_or(calls.len());
    calls.splice(first_use..first_use, opening);
    calls.into()
}

/// How many bytes the parameters of a class have: what was recorded after them is noise.
fn class_bytes(class: u32) -> usize {
    match class {
        0x80 => size_of::<rm::DeviceAlloc>(),
        0x2080 => size_of::<rm::SubdeviceAlloc>(),
        0x90f1 => size_of::<rm::VaSpaceAlloc>(),
        0x70 => size_of::<rm::MemoryVirtualAlloc>(),
        0x3e | 0x40 => size_of::<rm::MemoryAlloc>(),
        0xa06c => size_of::<rm::ChannelGroupAlloc>(),
        0x9067 => size_of::<rm::CtxShareAlloc>(),
        0x83de => size_of::<rm::DebuggerAlloc>(),
        0xc86f => size_of::<rm::ChannelGpfifoParamsBefore610>(),
        other => panic!("class {other:#x} was recorded with parameters"),
    }
}

/// Compares the bytes that both have, less those that differ from run to run.
fn assert_same(what: &Call, ours: &[u8], recorded: &[u8], differ: &[Range<usize>]) {
    let length = ours.len().min(recorded.len());
    assert!(length > 0, "{}: nothing was compared", what.record);
    let masked = |bytes: &[u8]| {
        let mut bytes = bytes[..length].to_vec();
        for range in differ {
            bytes[range.start.min(length)..range.end.min(length)].fill(0);
        }
        bytes
    };
    assert_eq!(masked(ours), masked(recorded), "{}", what.record);
}

/// Answers calls as recorded, in order, once each was found to be the one recorded.
struct Player {
    calls: VecDeque<Call>,
    ended: bool,
}

impl Player {
    fn answer(&mut self, path: &Path, request: u32, params: &mut [u8]) -> Result<(), Errno> {
        match rm::parse_request(request) {
            Some((rm::NV_ESC_CHECK_VERSION_STR, _)) => {
                let version = view::<rm::ApiVersion>(params);
                assert_eq!(version.cmd.get(), rm::API_VERSION_QUERY);
                version.version_string[..10].copy_from_slice(b"580.159.04");
                return Ok(());
            }
            Some((rm::NV_ESC_RM_FREE, _)) if self.calls.is_empty() => {
                let free = view::<rm::Nvos00>(params);
                assert_eq!(
                    (free.h_root, free.h_object_parent.get()),
                    (free.h_object_old, 0)
                );
                self.ended = true;
                return Ok(());
            }
            _ => {}
        }
        let call = self
            .calls
            .pop_front()
            .expect("no further call was recorded");
        assert_eq!(path.to_str(), Some(call.text("node")), "{}", call.record);
        assert_eq!(request, call.request(), "{}", call.record);
        match call.text("kind") {
            "RM_ALLOC" => alloc_answer(&call, params),
            "RM_CONTROL" => control_answer(&call, params),
            "UVM" => uvm_answer(&call, params),
            _ => escape_answer(&call, params),
        }
        Ok(())
    }
}

fn escape_answer(call: &Call, params: &mut [u8]) {
    let differ = match rm::parse_request(call.request()) {
        // The descriptor; the descriptor; the address of the pages.
        Some((rm::NV_ESC_REGISTER_FD, _)) => Some(0..4),
        Some((rm::NV_ESC_RM_MAP_MEMORY, _)) => Some(48..52),
        Some((rm::NV_ESC_RM_ALLOC_MEMORY, _)) => Some(24..32),
        _ => None,
    };
    assert_same(call, params, &call.bytes("params_in"), differ.as_slice());
    let answer = call.bytes("params_out");
    params[..answer.len()].copy_from_slice(&answer);
}

fn alloc_answer(call: &Call, params: &mut [u8]) {
    let address = 16..24;
    assert_same(
        call,
        params,
        &call.bytes("call_in"),
        std::slice::from_ref(&address),
    );
    let ours = view::<rm::Nvos21>(params);
    let recorded = *view::<rm::Nvos21>(&mut call.bytes("call_out"));
    let address = ours.p_alloc_parms.get();
    assert_eq!(
        address == 0,
        recorded.p_alloc_parms.get() == 0,
        "{}",
        call.record
    );
    if address != 0 {
        let length = class_bytes(ours.h_class.get());
        // SAFETY: the bounce buffer is larger than any class's parameters, and the driver waits for us.
        let ours = unsafe { named(address, length) };
        assert_same(call, ours, &call.bytes("params_in"), &[]);
        let answer = call.bytes("params_out");
        let known = answer.len().min(length);
        ours[..known].copy_from_slice(&answer[..known]);
    }
    ours.h_object_new = recorded.h_object_new;
    ours.status = recorded.status;
}

fn control_answer(call: &Call, params: &mut [u8]) {
    let ours = view::<rm::Nvos54>(params);
    assert_eq!(ours.h_client.get() >> 16, 0xc1d0, "{}", call.record);
    assert_eq!(ours.h_object.get(), call.number("object"));
    assert_eq!(ours.cmd.get(), call.number("command"));
    assert_eq!(call.record["params_size"], ours.params_size.get());
    // SAFETY: the driver names its own parameters of that size, and waits for us.
    let ours = unsafe { named(ours.params.get(), ours.params_size.get() as usize) };
    let list = 8..16;
    let by_pointer = matches!(call.number("command"), 0x0080_0201 | 0x2080_1201);
    let differ = by_pointer.then(|| list.clone());
    assert_same(call, ours, &call.bytes("params_in"), differ.as_slice());
    let mut answer = call.bytes("params_out");
    if by_pointer {
        answer[list.clone()].copy_from_slice(&ours[list]);
    }
    ours[..answer.len()].copy_from_slice(&answer);
}

fn uvm_answer(call: &Call, params: &mut [u8]) {
    assert!(params.len() >= uvm::MAX_PARAMS);
    let shape = uvm::shape(call.request(), VERSION).unwrap();
    let status = shape
        .fields
        .iter()
        .find(|field| field.name == "rmStatus")
        .unwrap()
        .offset;
    // The status and what lies between fields was noise; descriptors are the process's.
    let differs = |name: &str| matches!(name, "" | "rmStatus" | "rmCtrlFd" | "uvmFd");
    let differ = shape.fields.iter().filter(|field| differs(field.name));
    let differ: Vec<_> = differ
        .map(|field| field.offset..field.offset + field.size)
        .collect();
    let recorded = call.bytes("params_in");
    let length = shape.size(VERSION).min(recorded.len());
    assert_same(call, params, &recorded[..length], &differ);
    if status + 4 <= recorded.len() {
        let answer = call.bytes("params_out");
        params[status..status + 4].copy_from_slice(&answer[status..status + 4]);
    }
}

const VERSION: DriverVersion = DriverVersion::new(580, 159, 4);

/// A kernel that answers as recorded, and its player.
fn play(calls: VecDeque<Call>) -> (Fake, Arc<Mutex<Player>>) {
    let player = Arc::new(Mutex::new(Player {
        calls,
        ended: false,
    }));
    let shared = Arc::clone(&player);
    let fake = Fake::new(Box::new(move |path, request, params| {
        shared.lock().unwrap().answer(path, request, params)
    }));
    (fake, player)
}

/// Makes the driver's call that a recorded one came from.
fn make(driver: &KernelDriver, call: &Call, kept: &mut Vec<Mapping>) {
    match call.text("kind") {
        "RM_ALLOC" => make_alloc(driver, call),
        "RM_CONTROL" => make_control(driver, call),
        "UVM" => {
            let mut params = call.bytes("params_in");
            params.resize(
                uvm::shape(call.request(), VERSION).unwrap().size(VERSION),
                0,
            );
            // SAFETY: none of the structures described holds a pointer.
            unsafe { driver.uvm_raw(call.request(), &mut params) }.unwrap();
        }
        _ if call.is(rm::NV_ESC_RM_MAP_MEMORY) => {
            let recorded = call.params::<rm::Nvos33WithFd>().params;
            let request = MapCpu {
                device: recorded.h_device.into(),
                memory: recorded.h_memory.into(),
                offset: recorded.offset.get(),
                length: recorded.length.get(),
                flags: recorded.flags.get(),
                system: false,
            };
            let mapping = driver.map_cpu(&request).unwrap();
            assert_eq!(mapping.len() as u64, request.length);
            kept.push(mapping);
        }
        _ if call.is(rm::NV_ESC_RM_MAP_MEMORY_DMA) => {
            let recorded = call.params::<rm::Nvos46>();
            let request = MapDma {
                device: recorded.h_device.into(),
                virtual_memory: recorded.h_dma.into(),
                memory: recorded.h_memory.into(),
                offset: recorded.offset.get(),
                length: recorded.length.get(),
                flags: recorded.flags.get(),
                va: GpuVa(recorded.dma_offset.get()),
            };
            driver.map_dma(&request).unwrap();
        }
        _ if call.is(rm::NV_ESC_RM_ALLOC_MEMORY) => {
            let recorded = call.params::<rm::Nvos02WithFd>().params;
            let length = usize::try_from(recorded.limit.get()).unwrap() + 1;
            let device = recorded.h_object_parent.into();
            // SAFETY: there is no GPU behind the recorded kernel that could write to the pages.
            let handle = unsafe { driver.register_pages(device, NonNull::dangling(), length) };
            assert_eq!(handle.unwrap(), Handle::from(recorded.h_object_new));
        }
        _ if call.is(rm::NV_ESC_RM_FREE) => {
            let recorded = call.params::<rm::Nvos00>();
            let (parent, object) = (recorded.h_object_parent, recorded.h_object_old);
            driver.free(parent.into(), object.into()).unwrap();
        }
        _ => panic!("{}", call.record),
    }
}

fn make_alloc(driver: &KernelDriver, call: &Call) {
    fn typed<P: AllocParams + Layout>(driver: &KernelDriver, call: &Call) -> Handle {
        let (parent, class) = (Handle(call.number("parent")), ClassId(call.number("class")));
        driver::alloc(driver, parent, class, &mut call.params::<P>()).unwrap()
    }
    let (parent, class) = (Handle(call.number("parent")), ClassId(call.number("class")));
    let made = match class.0 {
        0x80 => typed::<rm::DeviceAlloc>(driver, call),
        0x2080 => typed::<rm::SubdeviceAlloc>(driver, call),
        0x90f1 => typed::<rm::VaSpaceAlloc>(driver, call),
        0x70 => typed::<rm::MemoryVirtualAlloc>(driver, call),
        0x3e | 0x40 => typed::<rm::MemoryAlloc>(driver, call),
        0xa06c => typed::<rm::ChannelGroupAlloc>(driver, call),
        0x9067 => typed::<rm::CtxShareAlloc>(driver, call),
        0x83de => typed::<rm::DebuggerAlloc>(driver, call),
        0xc86f => {
            let recorded = call.params::<rm::ChannelGpfifoParamsBefore610>();
            let mut params = rm::ChannelGpfifoAlloc::default();
            params.h_object_error = recorded.h_object_error;
            params.h_object_buffer = recorded.h_object_buffer;
            params.gp_fifo_offset = recorded.gp_fifo_offset;
            params.gp_fifo_entries = recorded.gp_fifo_entries;
            params.h_context_share = recorded.h_context_share;
            params.h_userd_memory = recorded.h_userd_memory;
            let made = driver::alloc(driver, parent, class, &mut params).unwrap();
            // An answer comes back from where the release has it: the process was root.
            assert_eq!(params.flags.get(), flags::channel::privileged_channel::TRUE);
            made
        }
        _ => driver::alloc_plain(driver, parent, class).unwrap(),
    };
    let answer = *view::<rm::Nvos21>(&mut call.bytes("call_out"));
    assert_eq!(made, Handle::from(answer.h_object_new));
}

fn make_control(driver: &KernelDriver, call: &Call) {
    let object = Handle(call.number("object"));
    match call.number("command") {
        rm::NV0080_CTRL_CMD_GPU_GET_CLASSLIST => {
            assert_eq!(driver.class_list(object).unwrap().len(), 103);
        }
        rm::NV2080_CTRL_CMD_GR_GET_INFO => {
            let indices = [flags::gr_info::SM_VERSION; 5];
            assert_eq!(driver.gr_info(object, &indices).unwrap().len(), 5);
        }
        command => {
            let mut params = call.bytes("params_in");
            // SAFETY: no other command that was recorded holds a pointer.
            unsafe { driver.control_raw(object, command, &mut params) }.unwrap();
            assert_eq!(params, call.bytes("params_out"));
        }
    }
}

/// Makes every call of a recording again; answers how many.
fn replay(name: &str) -> usize {
    let script = recording(name);
    let total = script.len();
    let (fake, player) = play(recording(name));
    let left = || player.lock().unwrap().calls.len();
    let driver = fake.driver().unwrap();
    assert_eq!((driver.device_instance(), driver.version()), (0, VERSION));
    assert_eq!(driver.abi().fit, rm::Fit::Checked);
    assert_eq!(driver.address().to_string(), "0000:00:06.0");
    let mut kept = Vec::new();
    for (place, call) in script.iter().enumerate() {
        // Opening, mapping and listing make more than one call.
        if place < total - left() {
            continue;
        }
        // The descriptor of the mapping that follows is tied first; UVM is opened by its first use.
        let opening = call.is(rm::NV_ESC_REGISTER_FD);
        let opening = opening
            .then_some(1)
            .or_else(|| (call.is_uvm() && call.request() == uvm::Initialize::COMMAND).then_some(2));
        make(&driver, &script[place + opening.unwrap_or(0)], &mut kept);
    }
    assert_eq!(left(), 0);
    // The control node, the GPU's, and both of UVM's if it was used: those of the mappings are closed.
    let uvm = script.iter().any(Call::is_uvm);
    assert_eq!(fake.open_nodes(), if uvm { 4 } else { 2 });
    assert_eq!(fake.mappings(), kept.len());
    drop(driver);
    assert!(player.lock().unwrap().ended, "the client was not freed");
    drop(kept);
    assert_eq!((fake.open_nodes(), fake.mappings()), (0, 0));
    total
}

#[test]
fn the_sequence_without_uvm_is_made_again_byte_for_byte() {
    assert_eq!(replay("h200_without_uvm"), 121);
}

#[test]
fn the_sequence_with_uvm_is_made_again_byte_for_byte() {
    assert!(replay("h200_with_uvm") > 200);
}

/// The calls that set a GPU up, filled in by the names of fields and flags.
#[test]
fn set_up_is_spelled_as_recorded() {
    let mut calls = recording("h200_without_uvm");
    let debugger = calls
        .iter()
        .position(|call| call.text("class") == "0x83de")
        .unwrap();
    calls.truncate(debugger + 1);
    let (fake, player) = play(calls);
    let driver = fake.driver().unwrap();
    let client = driver.client();

    let mut params = rm::DeviceAlloc {
        h_client_share: client.into(),
        ..Default::default()
    };
    let device = driver::alloc(&driver, client, NV01_DEVICE_0, &mut params).unwrap();
    let mut params = rm::SubdeviceAlloc::default();
    let subdevice = driver::alloc(&driver, device, NV20_SUBDEVICE_0, &mut params).unwrap();
    driver.class_list(device).unwrap();
    let usermode = driver::alloc_plain(&driver, subdevice, ClassId(0xc661)).unwrap();
    let map = |memory, length, flags| {
        driver
            .map_cpu(&MapCpu {
                device,
                memory,
                offset: 0,
                length,
                flags,
                system: false,
            })
            .unwrap()
    };
    map(usermode, 0x1_0000, 0);
    let mut boost = rm::PerfBoost {
        flags: (flags::perf_boost::cuda::YES
            | flags::perf_boost::cuda_priority::HIGH
            | flags::perf_boost::cmd::BOOST_TO_MAX)
            .into(),
        duration: u32::MAX.into(),
    };
    driver::control(&driver, subdevice, &mut boost).unwrap();
    let mut params = rm::VaSpaceAlloc {
        va_size: 0x1_ffff_fb00_0000.into(),
        va_base: 0x1000.into(),
        ..Default::default()
    };
    let space = driver::alloc(&driver, device, FERMI_VASPACE_A, &mut params).unwrap();
    let mut params = rm::MemoryVirtualAlloc {
        h_va_space: space.into(),
        ..Default::default()
    };
    let range = driver::alloc(&driver, device, NV01_MEMORY_VIRTUAL, &mut params).unwrap();
    assert_eq!(params.limit.get(), 0x1_ffff_fb00_0fff);
    let mut gid = rm::GpuGetGidInfo {
        flags: flags::gid::format::BINARY.into(),
        length: 16.into(),
        ..Default::default()
    };
    driver::control(&driver, subdevice, &mut gid).unwrap();
    assert_eq!(gid.data[..4], [0xbc, 0x41, 0x05, 0x91]);
    let mut params = rm::ChannelGroupAlloc {
        engine_type: flags::engine::GRAPHICS.into(),
        ..Default::default()
    };
    let group = driver::alloc(&driver, device, KEPLER_CHANNEL_GROUP_A, &mut params).unwrap();
    let common = flags::alloc::MAP_NOT_REQUIRED
        | flags::alloc::MEMORY_HANDLE_PROVIDED
        | flags::alloc::ALIGNMENT_FORCE
        | flags::alloc::IGNORE_BANK_PLACEMENT;
    let mut params = rm::MemoryAlloc {
        owner: client.into(),
        type_: flags::memory_type::IMAGE.into(),
        flags: (common | flags::alloc::PERSISTENT_VIDMEM).into(),
        attr: (flags::attr::physicality::CONTIGUOUS | flags::attr::location::VIDMEM).into(),
        attr2: (flags::attr2::gpu_cacheable::YES | flags::attr2::zbc::PREFER_NO_ZBC).into(),
        format: 6.into(),
        size: 0x30_0000.into(),
        ..Default::default()
    };
    let area = driver::alloc(&driver, device, NV01_MEMORY_LOCAL_USER, &mut params).unwrap();
    map(area, 0x30_0000, flags::map_cpu::caching_type::WRITECOMBINED);
    let map_dma = |memory, length, va| {
        let flags = flags::map_dma::dma_offset_fixed::TRUE | flags::map_dma::cache_snoop::ENABLE;
        let virtual_memory = range;
        driver
            .map_dma(&MapDma {
                device,
                virtual_memory,
                memory,
                offset: 0,
                length,
                flags,
                va: GpuVa(va),
            })
            .unwrap();
    };
    map_dma(area, 0x30_0000, 0x10_0000_0000);
    let mut params = rm::CtxShareAlloc {
        h_va_space: space.into(),
        flags: flags::ctxshare::subcontext::ASYNC.into(),
        ..Default::default()
    };
    let share = driver::alloc(&driver, group, FERMI_CONTEXT_SHARE_A, &mut params).unwrap();
    assert_eq!(params.subctx_id.get(), 0x3f);
    let mut params = rm::MemoryAlloc {
        owner: client.into(),
        type_: flags::memory_type::NOTIFIER.into(),
        flags: common.into(),
        attr: (flags::attr::physicality::ALLOW_NONCONTIGUOUS | flags::attr::location::PCI).into(),
        attr2: (flags::attr2::gpu_cacheable::NO | flags::attr2::zbc::PREFER_NO_ZBC).into(),
        format: 6.into(),
        size: 0x1000.into(),
        ..Default::default()
    };
    let notifier = driver::alloc(&driver, device, NV01_MEMORY_SYSTEM, &mut params).unwrap();
    map_dma(notifier, 0x1000, 0x20_0000_0000);
    let mut params = rm::ChannelGpfifoAlloc::default();
    params.h_object_error = notifier.into();
    params.h_object_buffer = area.into();
    params.gp_fifo_offset = 0x10_0000_0000.into();
    params.gp_fifo_entries = 0x1_0000.into();
    params.h_context_share = share.into();
    params.h_userd_memory[0] = area.into();
    let channel = driver::alloc(&driver, group, ClassId(0xc86f), &mut params).unwrap();
    let compute = driver::alloc_plain(&driver, channel, ClassId(0xcbc0)).unwrap();
    let mut params = rm::DebuggerAlloc {
        h_app_client: client.into(),
        h_class3d_object: compute.into(),
        ..Default::default()
    };
    driver::alloc(&driver, device, GT200_DEBUGGER, &mut params).unwrap();
    assert_eq!(player.lock().unwrap().calls.len(), 0);
}
