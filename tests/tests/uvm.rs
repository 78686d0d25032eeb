//! The UVM driver's calls: numbers, layouts by release, statuses at their place.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use nv_proto::rm::{DriverVersion, I32, Layout, Status, U32, U64};
use nv_proto::uvm::{self, UvmCommand};
use zerocopy::IntoBytes;

const OLD: DriverVersion = DriverVersion::new(535, 288, 1);
const BETA_BEFORE: DriverVersion = DriverVersion::new(550, 40, 7);
const BETA_AFTER: DriverVersion = DriverVersion::new(550, 40, 53);
const TESTED: DriverVersion = DriverVersion::new(580, 159, 4);
const BEFORE_590: DriverVersion = DriverVersion::new(580, 142, 0);
const SINCE_590: DriverVersion = DriverVersion::new(590, 44, 1);

#[test]
fn numbers_are_the_headers() {
    fn check<P: UvmCommand>(facts: &serde_json::Value) {
        assert_eq!(facts["constants"][P::NAME], P::COMMAND, "{}", P::NAME);
        assert_eq!(uvm::name(P::COMMAND), Some(P::NAME));
        let shape = uvm::shape(P::COMMAND, TESTED).unwrap();
        assert_eq!(shape.name, format!("{}_PARAMS", P::NAME));
    }
    let facts = nv_tests::json("golden/facts/ioctl.json");
    macro_rules! check {
        ($( $name:ident ),* $(,)?) => { $( check::<uvm::$name>(&facts); )* };
    }
    check! {
        Initialize, MmInitialize, RegisterGpu, UnregisterGpu, RegisterGpuVaspace, UnregisterGpuVaspace,
        RegisterChannel, UnregisterChannel, EnablePeerAccess, DisablePeerAccess, CreateExternalRange,
        MapExternalAllocation, UnmapExternal, Free, PageableMemAccess, ValidateVaRange,
    }
    assert!(uvm::shape(0x7fff_ffff, TESTED).is_none());
}

/// Writes a status where the driver of a release would, and reads it by both ways.
fn status_round_trip<P: UvmCommand>(mut params: P, release: DriverVersion, at: usize) {
    let bytes = params.bytes_mut(release);
    bytes[at..at + 4].copy_from_slice(&0x51_u32.to_le_bytes());
    let seen = uvm::status_of(P::COMMAND, release, bytes);
    assert_eq!(seen, Some(Status::NO_MEMORY), "{} at {release}", P::NAME);
    assert_eq!(uvm::status_of(P::COMMAND, release, &bytes[..at + 3]), None);
    assert_eq!(
        params.status(release),
        Status::NO_MEMORY,
        "{} at {release}",
        P::NAME
    );
    params.read_back(release);
    assert_eq!(params.status(release), Status::NO_MEMORY);
}

#[test]
fn statuses_are_read_at_the_releases_place() {
    for release in [OLD, BETA_BEFORE, BETA_AFTER, TESTED, SINCE_590] {
        status_round_trip(uvm::Initialize::default(), release, 8);
        status_round_trip(uvm::MmInitialize::default(), release, 4);
        status_round_trip(uvm::RegisterGpu::default(), release, 36);
        status_round_trip(uvm::RegisterChannel::default(), release, 48);
        status_round_trip(uvm::CreateExternalRange::default(), release, 16);
    }
    for release in [OLD, BETA_BEFORE] {
        status_round_trip(uvm::MapExternalAllocation::default(), release, 1196);
    }
    for release in [BETA_AFTER, TESTED, SINCE_590] {
        status_round_trip(uvm::MapExternalAllocation::default(), release, 9260);
    }
    for release in [OLD, BEFORE_590] {
        status_round_trip(uvm::Free::default(), release, 16);
        status_round_trip(uvm::UnregisterChannel::default(), release, 24);
    }
    status_round_trip(uvm::Free::default(), SINCE_590, 8);
    status_round_trip(uvm::UnregisterChannel::default(), SINCE_590, 8);
    assert_eq!(uvm::status_of(0x7fff_ffff, TESTED, &[0; 64]), None);
}

#[test]
fn external_mappings_move_with_the_number_of_gpus() {
    let gpu = *b"0123456789abcdef";
    let params = uvm::MapExternalAllocationParams {
        base: U64::new(0x10_0000_0000),
        length: U64::new(0x20_0000),
        offset: U64::new(0x1000),
        rm_ctrl_fd: I32::new(3),
        h_client: U32::new(0xc1d0_001b),
        h_memory: U32::new(0xcaf0_0008),
        ..Default::default()
    };
    for (release, size, tail) in [
        (OLD, 0x4b0, 1176),
        (BETA_BEFORE, 0x4b0, 1176),
        (BETA_AFTER, 0x2430, 9240),
        (TESTED, 0x2430, 9240),
    ] {
        let mut call = uvm::MapExternalAllocation::one_gpu(params, gpu);
        let bytes = call.bytes_mut(release);
        assert_eq!(bytes.len(), size);
        assert_eq!(bytes[..24], params.as_bytes()[..24]);
        assert_eq!(bytes[24..40], gpu);
        assert_eq!(bytes[40..44], 1_u32.to_le_bytes());
        assert!(bytes[44..tail].iter().all(|byte| *byte == 0));
        let mut want = Vec::new();
        want.extend(1_u64.to_le_bytes());
        want.extend(3_u32.to_le_bytes());
        want.extend(0xc1d0_001b_u32.to_le_bytes());
        want.extend(0xcaf0_0008_u32.to_le_bytes());
        want.extend(0_u32.to_le_bytes());
        assert_eq!(bytes[tail..], want);
    }
}

#[test]
fn freeing_a_range_lost_its_length() {
    let params = uvm::FreeParams {
        base: U64::new(0x1122_3344_5566),
        length: U64::new(0x9000),
        ..Default::default()
    };
    let mut call = uvm::Free::from(params);
    assert_eq!(call.bytes_mut(BEFORE_590), params.as_bytes());
    let want: Vec<u8> = [0x1122_3344_5566_u64, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    assert_eq!(call.bytes_mut(SINCE_590), want);
}

#[test]
fn a_buffer_of_max_params_holds_every_call() {
    let releases = [
        OLD,
        BETA_BEFORE,
        BETA_AFTER,
        TESTED,
        SINCE_590,
        DriverVersion::new(700, 0, 0),
    ];
    for (command, _) in uvm::NAMES {
        for shape in releases
            .iter()
            .filter_map(|release| uvm::shape(*command, *release))
        {
            assert!(shape.full <= uvm::MAX_PARAMS, "{}", shape.name);
        }
    }
    assert_eq!(
        uvm::MAX_PARAMS,
        uvm::MapExternalAllocationParams::SHAPE.full
    );
}
