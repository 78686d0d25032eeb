//! The kernel driver's ABI against the headers of every release checked: layouts, numbers, names.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use nv_proto::rm::{
    self, Abi, AllocParams, Control, DriverVersion, Field, Fit, Layout, Shape, Status,
};
use nv_proto::unit::ClassId;
use nv_proto::{DecodeError, uvm};
use proptest::prelude::*;
use serde::Deserialize;
use zerocopy::IntoBytes;

#[derive(Deserialize)]
struct Facts {
    branch_tags: BTreeMap<String, String>,
    tags_checked: Vec<String>,
    structs: BTreeMap<String, StructFacts>,
    constants: BTreeMap<String, u64>,
    bitfields: BTreeMap<String, (u32, u32)>,
    composites: BTreeMap<String, u32>,
    requests: BTreeMap<String, BTreeMap<String, (u8, usize, u32)>>,
}

#[derive(Deserialize)]
struct StructFacts {
    branches: BTreeMap<String, Option<usize>>,
    since: Option<Vec<(String, Option<usize>)>>,
    #[serde(rename = "610")]
    second_hand: Option<usize>,
    layouts: Vec<LayoutFacts>,
}

#[derive(Deserialize)]
struct LayoutFacts {
    size: usize,
    fields: Vec<Vec<serde_json::Value>>,
}

impl LayoutFacts {
    fn field(&self, at: usize) -> (&str, usize, usize) {
        let field = &self.fields[at];
        let number = |i: usize| usize::try_from(field[i].as_u64().unwrap()).unwrap();
        (field[0].as_str().unwrap(), number(1), number(2))
    }

    fn pointers(&self) -> Vec<&str> {
        let pointers = self.fields.iter().filter(|field| field.len() == 4);
        pointers.map(|field| field[0].as_str().unwrap()).collect()
    }
}

fn facts() -> &'static Facts {
    static FACTS: LazyLock<Facts> = LazyLock::new(|| {
        serde_json::from_value(nv_tests::json("golden/facts/ioctl.json")).unwrap()
    });
    &FACTS
}

fn version(text: &str) -> DriverVersion {
    text.parse().unwrap()
}

/// Every release checked with the layout that the headers give a structure there, if they have it.
fn expected<'a>(
    facts: &'a Facts,
    of: &'a StructFacts,
) -> Vec<(DriverVersion, Option<&'a LayoutFacts>)> {
    let layout = |index: Option<usize>| index.map(|index| &of.layouts[index]);
    let mut rows = Vec::new();
    for tag in &facts.tags_checked {
        let tag = version(tag);
        let index = match &of.since {
            Some(since) => since
                .iter()
                .rev()
                .find(|(first, _)| version(first) <= tag)
                .and_then(|(_, i)| *i),
            None => of.branches["595"],
        };
        rows.push((tag, layout(index)));
    }
    for (branch, index) in &of.branches {
        rows.push((version(&facts.branch_tags[branch]), layout(*index)));
    }
    rows.push((DriverVersion::new(610, 43, 3), layout(of.second_hand)));
    rows
}

/// Compares one of our structures with a release's layout.
fn compare(shape: &Shape, release: DriverVersion, want: &LayoutFacts) {
    let at = |what: &str| format!("{} at {release}: {what}", shape.name);
    let size = shape.size(release);
    assert_eq!(size, want.size, "{}", at("size"));
    for index in 0..want.fields.len() {
        let (name, offset, bytes) = want.field(index);
        let ours: Vec<&Field> = shape
            .fields
            .iter()
            .filter(|field| field.name == name)
            .collect();
        assert_eq!(ours.len(), 1, "{}", at(name));
        assert_eq!(ours[0].offset, offset, "{}", at(name));
        // A list at the end that grew is cut off at the release's size.
        let end = (ours[0].offset + ours[0].size).min(size);
        assert_eq!(end - ours[0].offset, bytes, "{}", at(name));
    }
    let inside = |field: &&Field| !field.name.is_empty() && field.offset < size;
    assert_eq!(
        shape.fields.iter().filter(inside).count(),
        want.fields.len(),
        "{}",
        at("fields")
    );
}

#[test]
fn layouts_are_those_of_every_release() {
    let facts = facts();
    let mut checked = 0;
    for (name, of) in &facts.structs {
        let ours: Vec<&Shape> = rm::shapes().filter(|shape| shape.name == name).collect();
        assert!(!ours.is_empty(), "{name}");
        for (release, want) in expected(facts, of) {
            let Some(want) = want else { continue };
            let fitting: Vec<_> = ours
                .iter()
                .filter(|shape| shape.size(release) != 0)
                .collect();
            assert_eq!(fitting.len(), 1, "{name} at {release}");
            compare(fitting[0], release, want);
            checked += 1;
        }
    }
    // 100 structures at 144 releases, 8 branches and one more, less those that a release lacks.
    assert!(checked > 14_500, "{checked}");
}

#[test]
fn every_structure_was_checked() {
    let facts = facts();
    for shape in rm::shapes() {
        assert!(facts.structs.contains_key(shape.name), "{}", shape.name);
        let mut end = 0;
        for field in shape.fields {
            assert_eq!(field.offset, end, "{}.{}", shape.name, field.name);
            end += field.size;
        }
        assert_eq!(end, shape.full, "{}", shape.name);
    }
}

/// The promise that the safe calls of a host rest on.
#[test]
fn sealed_parameters_hold_no_pointer() {
    fn alloc<P: AllocParams + Layout>() -> &'static str {
        P::SHAPE.name
    }
    fn control<P: Control + Layout>() -> &'static str {
        P::SHAPE.name
    }
    let facts = facts();
    let mut names = vec![
        alloc::<rm::DeviceAlloc>(),
        alloc::<rm::SubdeviceAlloc>(),
        alloc::<rm::VaSpaceAlloc>(),
        alloc::<rm::MemoryVirtualAlloc>(),
        alloc::<rm::ChannelGroupAlloc>(),
        alloc::<rm::CtxShareAlloc>(),
        alloc::<rm::P2pAlloc>(),
        alloc::<rm::DebuggerAlloc>(),
        alloc::<rm::HopperUsermodeAlloc>(),
        alloc::<rm::CopyAlloc>(),
        alloc::<rm::GrAlloc>(),
        control::<rm::PerfBoost>(),
        "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
    ];
    let commands = rm::names::COMMANDS
        .iter()
        .filter_map(|(command, _)| rm::control_shape(*command));
    let by_pointer = [
        "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS",
        "NV2080_CTRL_GR_GET_INFO_PARAMS",
    ];
    names.extend(
        commands
            .map(|shape| shape.name)
            .filter(|name| !by_pointer.contains(name)),
    );
    let uvm = rm::shapes().filter(|shape| shape.name.starts_with("UVM_"));
    names.extend(uvm.map(|shape| shape.name));
    for name in &names {
        for layout in &facts.structs[*name].layouts {
            assert_eq!(layout.pointers(), Vec::<&str>::new(), "{name}");
        }
    }
    assert!(names.len() > 60);
    // The one exception: an answer that the driver clears first.
    assert_eq!(alloc::<rm::MemoryAlloc>(), "NV_MEMORY_ALLOCATION_PARAMS");
    assert_eq!(
        facts.structs["NV_MEMORY_ALLOCATION_PARAMS"].layouts[0].pointers(),
        ["address"]
    );
}

#[test]
fn parameters_fit_their_classes_alone() {
    let fits = |class: u32| {
        let class = ClassId(class);
        [
            rm::DeviceAlloc::fits(class),
            rm::SubdeviceAlloc::fits(class),
            rm::VaSpaceAlloc::fits(class),
            rm::MemoryVirtualAlloc::fits(class),
            rm::MemoryAlloc::fits(class),
            rm::ChannelGroupAlloc::fits(class),
            rm::CtxShareAlloc::fits(class),
            rm::P2pAlloc::fits(class),
            rm::DebuggerAlloc::fits(class),
            rm::HopperUsermodeAlloc::fits(class),
            rm::CopyAlloc::fits(class),
            rm::GrAlloc::fits(class),
            rm::ChannelGpfifoAlloc::fits(class),
        ]
    };
    let known = nv_tests::json("golden/facts/ioctl_classes.json");
    let number = |name: &str| u32::try_from(known["classes"][name].as_u64().unwrap()).unwrap();
    for (place, names) in [
        &["NV01_DEVICE_0"][..],
        &["NV20_SUBDEVICE_0"],
        &["FERMI_VASPACE_A"],
        &["NV01_MEMORY_VIRTUAL"],
        &["NV01_MEMORY_SYSTEM", "NV01_MEMORY_LOCAL_USER"],
        &["KEPLER_CHANNEL_GROUP_A"],
        &["FERMI_CONTEXT_SHARE_A"],
        &["NV50_P2P"],
        &["GT200_DEBUGGER"],
        &[
            "TURING_USERMODE_A",
            "AMPERE_USERMODE_A",
            "HOPPER_USERMODE_A",
            "BLACKWELL_USERMODE_A",
        ],
        &[
            "TURING_DMA_COPY_A",
            "AMPERE_DMA_COPY_B",
            "HOPPER_DMA_COPY_A",
            "BLACKWELL_DMA_COPY_B",
        ],
        &[
            "TURING_COMPUTE_A",
            "AMPERE_COMPUTE_B",
            "ADA_COMPUTE_A",
            "HOPPER_COMPUTE_A",
            "BLACKWELL_COMPUTE_B",
        ],
        &[
            "TURING_CHANNEL_GPFIFO_A",
            "AMPERE_CHANNEL_GPFIFO_A",
            "HOPPER_CHANNEL_GPFIFO_A",
        ],
    ]
    .iter()
    .enumerate()
    {
        for name in *names {
            let mut want = [false; 13];
            want[place] = true;
            assert_eq!(fits(number(name)), want, "{name}");
        }
    }
    // Those whose parameters hold pointers.
    for name in [
        "NV01_ROOT_CLIENT",
        "NV01_ROOT",
        "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR",
        "NV01_EVENT_OS_EVENT",
    ] {
        assert_eq!(fits(number(name)), [false; 13], "{name}");
    }
}

#[test]
fn requests_are_those_of_every_branch() {
    let facts = facts();
    let mut checked = 0;
    for (branch, requests) in &facts.requests {
        let release = version(&facts.branch_tags[branch]);
        for (name, (number, size, request)) in requests {
            assert_eq!(
                rm::request(*number, *size),
                Some(*request),
                "{branch} {name}"
            );
            assert_eq!(
                rm::parse_request(*request),
                Some((*number, *size)),
                "{branch} {name}"
            );
            let (escape, parameters) = name.trim_end_matches(')').split_once('(').unwrap();
            assert_eq!(rm::names::escape(*number), Some(escape));
            if parameters.ends_with(']') {
                continue;
            }
            let mut fitting =
                rm::shapes().filter(|shape| shape.name == parameters && shape.size(release) != 0);
            assert_eq!(
                fitting.next().unwrap().size(release),
                *size,
                "{branch} {name}"
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
    assert_eq!(rm::request(0x2a, rm::MAX_REQUEST_SIZE + 1), None);
    assert_eq!(rm::parse_request(0x3000_0001), None);
}

#[test]
fn numbers_have_the_headers_names() {
    let facts = facts();
    let mut checked = 0;
    for (number, name) in rm::names::COMMANDS {
        assert_eq!(facts.constants[*name], u64::from(*number), "{name}");
        assert_eq!(rm::names::command(*number), Some(*name));
        checked += 1;
    }
    for (number, name) in uvm::NAMES {
        assert_eq!(facts.constants[*name], u64::from(*number), "{name}");
        assert_eq!(uvm::name(*number), Some(*name));
    }
    for (name, number) in facts
        .constants
        .iter()
        .filter(|(name, _)| name.starts_with("NV_ESC_"))
    {
        let ours = rm::names::escape(u8::try_from(*number).unwrap()).unwrap();
        // One number had another name in 535.
        assert!(
            ours == name || name == "NV_ESC_RM_NVLOG_CTRL",
            "{name} {ours}"
        );
    }
    assert!(checked > 1000);
    assert_eq!(rm::names::command(0xdead_beef), None);
    assert_eq!(uvm::name(0xdead_beef), None);
    assert_eq!(rm::names::escape(0), None);

    let classes = nv_tests::json("golden/facts/ioctl_classes.json");
    for (name, number) in classes["classes"].as_object().unwrap() {
        let number = u32::try_from(number.as_u64().unwrap()).unwrap();
        let ours = rm::names::class(ClassId(number)).unwrap();
        assert!(ours == name || name.starts_with("NV1_"), "{name} {ours}");
    }
    assert_eq!(rm::names::class(ClassId(0xffff)), None);
}

#[test]
fn commands_are_the_headers() {
    fn check<P: Control + Layout>(facts: &Facts) {
        assert_eq!(
            facts.constants[P::NAME],
            u64::from(P::COMMAND),
            "{}",
            P::NAME
        );
        assert_eq!(rm::names::command(P::COMMAND), Some(P::NAME));
        assert_eq!(rm::control_shape(P::COMMAND), Some(P::SHAPE));
    }
    let facts = facts();
    macro_rules! check {
        ($( $name:ident ),* $(,)?) => { $( check::<rm::$name>(facts); )* };
    }
    check! {
        GpuGetIdInfoV2, GpuGetAttachedIds, GpuGetProbedIds, GpuGetPciInfo, GpuGetUuidFromGpuId,
        SystemGetP2pCapsV2, GpuGetClasslistV2, GpuGetNumSubdevices, PerfBoost, GpuGetGidInfo,
        GpuGetNameString, GpuGetInfoV2, GpuGetEnginesV2, GpuQueryComputeModeRules, GrGetGpcMask,
        GrGetTpcMask, GrSetCtxswPreemptionMode, FbGetInfoV2, FbFlushGpuCache, BusGetPciInfo,
        McGetArchInfo, TimerGetTime, TimerGetGpuCpuTimeCorrelationInfo, GroupGpfifoSchedule,
        GroupSetTimeslice, GroupPreempt, GroupSetInterleaveLevel, ChannelGpfifoSchedule, ChannelBind,
        StopChannel, GetWorkSubmitToken, ChannelGetMmuFaultInfo, ReadAllSmErrorStates,
        ReadSingleSmErrorState, ReadMmuFaultInfo, ClearAllSmErrorStates, SetExceptionMask,
    }
    let known = |name: &str| facts.constants[name];
    assert_eq!(
        known("NV0080_CTRL_CMD_GPU_GET_CLASSLIST"),
        u64::from(rm::NV0080_CTRL_CMD_GPU_GET_CLASSLIST)
    );
    assert_eq!(
        known("NV2080_CTRL_CMD_GR_GET_INFO"),
        u64::from(rm::NV2080_CTRL_CMD_GR_GET_INFO)
    );
}

#[test]
fn object_classes_are_the_headers() {
    use rm::names::classes::*;
    for (class, name) in [
        (NV01_ROOT_CLIENT, "NV01_ROOT_CLIENT"),
        (NV01_DEVICE_0, "NV01_DEVICE_0"),
        (NV20_SUBDEVICE_0, "NV20_SUBDEVICE_0"),
        (NV01_MEMORY_SYSTEM, "NV01_MEMORY_SYSTEM"),
        (NV01_MEMORY_LOCAL_USER, "NV01_MEMORY_LOCAL_USER"),
        (NV01_MEMORY_VIRTUAL, "NV01_MEMORY_VIRTUAL"),
        (
            NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
            "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR",
        ),
        (FERMI_VASPACE_A, "FERMI_VASPACE_A"),
        (KEPLER_CHANNEL_GROUP_A, "KEPLER_CHANNEL_GROUP_A"),
        (FERMI_CONTEXT_SHARE_A, "FERMI_CONTEXT_SHARE_A"),
        (NV50_P2P, "NV50_P2P"),
        (GT200_DEBUGGER, "GT200_DEBUGGER"),
    ] {
        assert_eq!(rm::names::class(class), Some(name));
    }
}

#[test]
fn statuses_are_the_headers() {
    let facts = nv_tests::json("golden/facts/ioctl_status.json");
    let codes = facts["codes"].as_object().unwrap();
    assert_eq!(codes.len(), rm::STATUS_NAMES.len());
    for (name, number) in codes {
        let status = Status(u32::try_from(number.as_u64().unwrap()).unwrap());
        assert_eq!(status.name(), Some(name.as_str()));
        assert_eq!(status.is_warning(), name.starts_with("NV_WARN_"), "{name}");
        assert_eq!(status.is_error(), name.starts_with("NV_ERR_"), "{name}");
        assert_eq!(status.is_ok(), name == "NV_OK");
    }
    let tags = &self::facts().branch_tags;
    let mut checked = 0;
    for (name, by_branch) in facts["by_branch"].as_object().unwrap() {
        for (branch, number) in by_branch.as_object().unwrap() {
            let Some(number) = number.as_u64() else {
                continue;
            };
            let status = Status(u32::try_from(number).unwrap());
            assert_eq!(
                status.name_in(version(&tags[branch])),
                Some(name.as_str()),
                "{branch}"
            );
            checked += 1;
        }
    }
    assert!(checked > 50);
    assert_eq!(Status::NO_MEMORY.to_string(), "NV_ERR_NO_MEMORY (0x51)");
    assert_eq!(
        Status::WARN_NOTHING_TO_DO.to_string(),
        "NV_WARN_NOTHING_TO_DO (0x10006)"
    );
    assert_eq!(Status(0xbeef).to_string(), "unknown status 0xbeef");
    assert_eq!(Status(0x8c).name_in(DriverVersion::new(580, 142, 0)), None);
}

#[test]
fn flag_words_are_the_headers() {
    use rm::flags::*;
    let facts = facts();
    let mut checked = 0;
    for (prefix, fields) in [
        (attr::NAME, attr::FIELDS),
        (attr2::NAME, attr2::FIELDS),
        (map_cpu::NAME, map_cpu::FIELDS),
        (map_dma::NAME, map_dma::FIELDS),
        (unmap_dma::NAME, unmap_dma::FIELDS),
        (os_memory::NAME, os_memory::FIELDS),
        (channel::NAME, channel::FIELDS),
        (ctxshare::NAME, ctxshare::FIELDS),
        (perf_boost::NAME, perf_boost::FIELDS),
        (flush_cache::NAME, flush_cache::FIELDS),
        (gid::NAME, gid::FIELDS),
    ] {
        for field in fields {
            let name = format!("{prefix}_{}", field.name);
            assert_eq!(facts.bitfields[&name], (field.hi, field.lo), "{name}");
            for (value, label) in field.values {
                let name = format!("{name}_{}", label.trim_start_matches('_'));
                assert_eq!(facts.constants[&name], u64::from(*value), "{name}");
                assert_eq!(field.of(value << field.lo), *value, "{name}");
                checked += 1;
            }
        }
    }
    for (prefix, values) in [
        (alloc::NAME, alloc::VALUES),
        (memory_type::NAME, memory_type::VALUES),
        (va_space::NAME, va_space::VALUES),
        (va_space_index::NAME, va_space_index::VALUES),
        (device_va_mode::NAME, device_va_mode::VALUES),
        (engine::NAME, engine::VALUES),
        (gr_info::NAME, gr_info::VALUES),
        (fb_info::NAME, fb_info::VALUES),
    ] {
        for (value, label) in values {
            let name = format!("{prefix}_{}", label.trim_start_matches('_'));
            assert_eq!(facts.constants[&name], u64::from(*value), "{name}");
            checked += 1;
        }
    }
    assert!(checked > 450, "{checked}");
    let full = rm::flags::BitField {
        name: "",
        hi: 31,
        lo: 0,
        values: &[],
    };
    assert_eq!(full.of(0xa5a5_a5a5), 0xa5a5_a5a5);
    let odd = rm::flags::BitField {
        name: "",
        hi: 0,
        lo: 40,
        values: &[],
    };
    assert_eq!(odd.of(u32::MAX), 0);
}

#[test]
fn composed_words_are_the_known_ones() {
    use rm::flags::*;
    let known = &facts().composites;
    let check = |name: &str, word: u32| assert_eq!(known[name], word, "{name}");
    check(
        "NVOS02.flags host memory (OS_DESCRIPTOR)",
        os_memory::physicality::NONCONTIGUOUS
            | os_memory::coherency::CACHED
            | os_memory::mapping::NO_MAP,
    );
    check(
        "NV_MEMORY_ALLOCATION_PARAMS.attr contiguous=1 huge=0 sysmem=0",
        attr::physicality::CONTIGUOUS | attr::location::VIDMEM,
    );
    check(
        "NV_MEMORY_ALLOCATION_PARAMS.attr contiguous=0 huge=1 sysmem=1",
        attr::physicality::ALLOW_NONCONTIGUOUS | attr::page_size::HUGE | attr::location::PCI,
    );
    check(
        "NV_MEMORY_ALLOCATION_PARAMS.attr2 huge=1 sysmem=0",
        attr2::gpu_cacheable::YES | attr2::page_size_huge::_2MB | attr2::zbc::PREFER_NO_ZBC,
    );
    check(
        "NV_MEMORY_ALLOCATION_PARAMS.flags vidmem",
        alloc::MAP_NOT_REQUIRED
            | alloc::MEMORY_HANDLE_PROVIDED
            | alloc::ALIGNMENT_FORCE
            | alloc::IGNORE_BANK_PLACEMENT
            | alloc::PERSISTENT_VIDMEM,
    );
    check(
        "NV_MEMORY_ALLOCATION_PARAMS.type sysmem",
        memory_type::NOTIFIER,
    );
    check(
        "NVOS33.flags write-combined",
        map_cpu::caching_type::WRITECOMBINED,
    );
    check(
        "NVOS46.flags",
        map_dma::page_size::_4KB | map_dma::cache_snoop::ENABLE | map_dma::dma_offset_fixed::TRUE,
    );
    check(
        "NV_VASPACE_ALLOCATION_PARAMETERS.flags",
        va_space::ENABLE_PAGE_FAULTING | va_space::IS_EXTERNALLY_OWNED,
    );
    check("NV_CTXSHARE.flags", ctxshare::subcontext::ASYNC);
    check(
        "NV2080_CTRL_PERF_BOOST.flags",
        perf_boost::cuda::YES | perf_boost::cuda_priority::HIGH | perf_boost::cmd::BOOST_TO_MAX,
    );
    check(
        "NV2080_CTRL_FB_FLUSH_GPU_CACHE.flags",
        flush_cache::write_back::YES
            | flush_cache::invalidate::YES
            | flush_cache::flush_mode::FULL_CACHE,
    );
    check("NV2080_CTRL_GPU_GET_GID_INFO.flags", gid::format::BINARY);
}

#[test]
fn versions_parse_and_print() {
    for text in &facts().tags_checked {
        let parsed = version(text);
        assert_eq!(parsed.to_string(), *text);
    }
    assert_eq!(version("580.159.04"), DriverVersion::new(580, 159, 4));
    assert!(version("580.142") < version("580.159.04"));
    assert!(version("555.58") < version("555.58.02"));
    assert!(version("550.100") > version("550.54.14"));
    let bad = |offset, byte: u8| {
        Err(DecodeError::BadValue {
            what: "driver version",
            offset,
            value: u64::from(byte),
        })
    };
    let short = |offset| {
        Err(DecodeError::Truncated {
            what: "driver version",
            offset,
            needed: 1,
            available: 0,
        })
    };
    assert_eq!(DriverVersion::parse(""), short(0));
    assert_eq!(DriverVersion::parse("580"), short(3));
    assert_eq!(DriverVersion::parse("580."), short(4));
    assert_eq!(DriverVersion::parse("580.1.2.3"), bad(7, b'.'));
    assert_eq!(DriverVersion::parse(".1"), bad(0, b'.'));
    assert_eq!(DriverVersion::parse("580..1"), bad(4, b'.'));
    assert_eq!(DriverVersion::parse("580.x"), bad(4, b'x'));
    assert_eq!(DriverVersion::parse("65536.1"), bad(4, b'6'));
}

#[test]
fn unknown_releases_have_a_stated_answer() {
    let fit = |text: &str| Abi::of(version(text)).map(|abi| (abi.branch.major, abi.fit));
    for tag in &facts().tags_checked {
        assert_eq!(fit(tag), Ok((version(tag).major, Fit::Checked)), "{tag}");
    }
    assert_eq!(fit("580.159.04"), Ok((580, Fit::Checked)));
    assert_eq!(fit("580.200.01"), Ok((580, Fit::LaterInBranch)));
    assert_eq!(fit("600.10"), Ok((595, Fit::Nearest)));
    assert_eq!(fit("580.10"), Ok((575, Fit::Nearest)));
    assert_eq!(fit("640.1.1"), Ok((610, Fit::Nearest)));
    let old = Abi::of(version("535.43.01")).unwrap_err();
    assert_eq!(old.version, version("535.43.01"));
    assert_eq!(
        Abi::of(version("470.256.02")).unwrap_err().to_string(),
        "driver 470.256.02 is older than 535.43.02, the oldest that is supported: update it"
    );
}

/// The value of a field of up to 8 bytes in laid-out bytes.
fn value(bytes: &[u8], field: (&str, usize, usize)) -> u64 {
    let (_, offset, size) = field;
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[offset..offset + size]);
    u64::from_le_bytes(word)
}

fn release() -> impl Strategy<Value = DriverVersion> {
    let mut releases: Vec<_> = facts()
        .tags_checked
        .iter()
        .map(|tag| version(tag))
        .collect();
    releases.push(DriverVersion::new(610, 43, 3));
    proptest::sample::select(releases)
}

/// Fills every byte of a structure, so that each field has its own value.
fn filled<P: Layout>(seed: u8) -> P {
    let mut params = P::default();
    for (at, byte) in params.as_mut_bytes().iter_mut().enumerate() {
        *byte = seed.wrapping_add(u8::try_from(at % 251).unwrap());
    }
    params
}

/// Checks that a moved structure's bytes hold our fields where the release has them, whatever lies there first.
fn check_moved(wide: &Shape, ours: &[u8], laid_out: &[u8], name: &str, release: DriverVersion) {
    let facts = facts();
    let of = &facts.structs[name];
    let rows = expected(facts, of);
    let want = rows
        .iter()
        .find(|(at, _)| *at == release)
        .unwrap()
        .1
        .unwrap();
    assert_eq!(laid_out.len(), want.size, "{name} at {release}");
    for index in 0..want.fields.len() {
        let (field, offset, size) = want.field(index);
        let our = wide.fields.iter().find(|our| our.name == field).unwrap();
        assert_eq!(
            laid_out[offset..offset + size],
            ours[our.offset..our.offset + size],
            "{name}.{field}"
        );
    }
}

proptest! {
    #[test]
    fn moved_fields_land_where_the_release_has_them(release in release(), seed: u8) {
        let params = filled::<rm::Nvos46>(seed);
        let mut call = rm::MapMemoryDma::from(params);
        check_moved(&rm::Nvos46::SHAPE, params.as_bytes(), call.bytes_mut(release), "NVOS46_PARAMETERS", release);
        let params = filled::<rm::Nvos47>(seed);
        let mut call = rm::UnmapMemoryDma::from(params);
        check_moved(&rm::Nvos47::SHAPE, params.as_bytes(), call.bytes_mut(release), "NVOS47_PARAMETERS", release);
        let params = filled::<rm::ChannelGpfifoParams>(seed);
        let mut call = rm::ChannelGpfifoAlloc::from(params);
        let name = "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS";
        check_moved(&rm::ChannelGpfifoParams::SHAPE, params.as_bytes(), call.bytes_mut(release), name, release);
    }

    #[test]
    fn answers_come_back_from_where_the_release_has_them(release in release(), status: u32, address: u64) {
        let mut call = rm::MapMemoryDma::default();
        let field = |name| {
            let shape = rm::MapMemoryDma::shape(release);
            let field = shape.fields.iter().find(|field| field.name == name).unwrap();
            (field.name, field.offset, field.size)
        };
        let bytes = call.bytes_mut(release);
        let at = field("status").1;
        bytes[at..at + 4].copy_from_slice(&status.to_le_bytes());
        let at = field("dmaOffset").1;
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
        prop_assert_eq!(value(bytes, field("status")), u64::from(status));
        call.read_back(release);
        prop_assert_eq!(call.params.status.get(), status);
        prop_assert_eq!(call.params.dma_offset.get(), address);
    }

    #[test]
    fn versions_never_panic(text in ".{0,20}") {
        if let Ok(version) = DriverVersion::parse(&text) {
            prop_assert!(version.to_string().parse::<DriverVersion>() == Ok(version));
        }
    }
}

#[test]
fn prefixes_are_what_a_release_expects() {
    let sizes = |text| {
        let at = version(text);
        [
            rm::MemoryAlloc::default().bytes_mut(at).len(),
            rm::VaSpaceAlloc::default().bytes_mut(at).len(),
            rm::ChannelGpfifoAlloc::default().bytes_mut(at).len(),
            rm::GroupGpfifoSchedule::default().bytes_mut(at).len(),
            rm::FbGetInfoV2::default().bytes_mut(at).len(),
            rm::GpuGetNameString::default().bytes_mut(at).len(),
        ]
    };
    assert_eq!(sizes("535.288.01"), [0x78, 0x30, 0x168, 2, 0x1b4, 0x84]);
    assert_eq!(sizes("570.211.01"), [0x80, 0x30, 0x170, 2, 0x1cc, 0x84]);
    assert_eq!(sizes("580.159.04"), [0x80, 0x38, 0x170, 3, 0x404, 0x84]);
    assert_eq!(sizes("610.43.03"), [0x80, 0x38, 0x178, 3, 0x404, 0x44]);
    // Older than any known: the oldest layout, never a panic.
    assert_eq!(
        rm::MemoryAlloc::default()
            .bytes_mut(DriverVersion::default())
            .len(),
        0x78
    );
    // A layout that the release does not have is given whole.
    assert_eq!(
        rm::Nvos46::default().prefix_mut(version("535.98")).len(),
        0x40
    );
}
