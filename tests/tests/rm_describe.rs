//! Recorded calls as text: what was recorded on an H200 is named, call by call and field by field.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by them")]

use nv_proto::rm::{self, Described, DriverVersion, Layout, Shape};
use nv_proto::unit::ClassId;
use nv_proto::uvm;
use proptest::prelude::*;
use serde_json::Value;
use zerocopy::IntoBytes;

const VERSION: DriverVersion = DriverVersion::new(580, 159, 4);

fn bytes(call: &Value, field: &str) -> Vec<u8> {
    let text = call[field].as_str().unwrap_or_default();
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn number(call: &Value, field: &str) -> u32 {
    let text = call[field].as_str().unwrap();
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// A recorded call's parameters by their shape; `None` where a call has none.
fn shape(call: &Value) -> Option<Shape> {
    match call["kind"].as_str().unwrap() {
        "UVM" => Some(uvm::shape(number(call, "request"), VERSION).unwrap()),
        "RM_ALLOC" => {
            call.get("params_in")?;
            Some(rm::alloc_shape(ClassId(number(call, "class")), VERSION).unwrap())
        }
        "RM_CONTROL" => rm::control_shape(number(call, "command")),
        _ => {
            let (escape, size) = rm::parse_request(number(call, "request")).unwrap();
            rm::escape_shape(escape, size)
        }
    }
}

#[test]
fn recorded_calls_are_named() {
    let mut named = 0;
    let mut rest = Vec::new();
    for name in ["h200_with_uvm", "h200_without_uvm"] {
        let recording = nv_tests::json(&format!("golden/rm/{name}.json"));
        for call in recording["calls"].as_array().unwrap() {
            let Some(shape) = shape(call) else {
                rest.push((
                    call["kind"].as_str().unwrap().to_owned(),
                    call["request"].clone(),
                ));
                continue;
            };
            let params = bytes(call, "params_in");
            let text = Described::new(shape, &params[..params.len().min(shape.size(VERSION))]);
            assert!(text.to_string().starts_with(shape.name));
            named += 1;
        }
    }
    assert!(named > 320, "{named}");
    // The build version's second form and the array of cards; objects that take no parameters.
    rest.sort_by_key(|(kind, request)| (kind.clone(), request.to_string()));
    rest.dedup();
    let rest: Vec<_> = rest
        .iter()
        .map(|(kind, request)| (kind.as_str(), request.as_str().unwrap()))
        .collect();
    assert_eq!(
        rest,
        [
            ("RM_ALLOC", "0xc020462b"),
            ("RM_CONTROL", "0xc020462a"),
            ("RM_ESCAPE", "0xd20046c8")
        ]
    );
}

#[test]
fn fields_are_named_and_numbers_looked_up() {
    let text = |shape: Shape, bytes: &[u8]| Described::new(shape, bytes).to_string();
    let control = rm::Nvos54 {
        h_client: 0xc1d0_0039.into(),
        h_object: 0xcaf0_0001.into(),
        cmd: rm::NV2080_CTRL_CMD_GR_GET_INFO.into(),
        params_size: 32.into(),
        status: rm::Status::NO_MEMORY.0.into(),
        ..Default::default()
    };
    assert_eq!(
        text(rm::Nvos54::SHAPE, control.as_bytes()),
        "NVOS54_PARAMETERS hClient=0xc1d00039 hObject=0xcaf00001 \
         cmd=NV2080_CTRL_CMD_GR_GET_INFO (0x20801201) paramsSize=0x20 status=NV_ERR_NO_MEMORY (0x51)"
    );
    let alloc = rm::Nvos21 {
        h_class: 0xcbc0.into(),
        ..Default::default()
    };
    assert_eq!(
        text(rm::Nvos21::SHAPE, alloc.as_bytes()),
        "NVOS21_PARAMETERS hClass=HOPPER_COMPUTE_A (0xcbc0)"
    );
    let params = rm::Nvos33 {
        h_client: 1.into(),
        length: 0x1000.into(),
        ..Default::default()
    };
    let map = rm::Nvos33WithFd {
        params,
        fd: 8.into(),
        ..Default::default()
    };
    assert_eq!(
        text(rm::Nvos33WithFd::SHAPE, map.as_bytes()),
        "nv_ioctl_nvos33_parameters_with_fd hClient=0x1 length=0x1000 fd=0x8"
    );
    let unknown = rm::Nvos21 {
        h_class: 0xffff.into(),
        ..Default::default()
    };
    assert_eq!(
        text(rm::Nvos21::SHAPE, unknown.as_bytes()),
        "NVOS21_PARAMETERS hClass=0xffff"
    );
    let gpu = uvm::UnregisterGpu {
        gpu_uuid: *b"0123456789abcdef",
        ..Default::default()
    };
    assert_eq!(
        text(uvm::UnregisterGpu::SHAPE, gpu.as_bytes()),
        "UVM_UNREGISTER_GPU_PARAMS gpu_uuid=30313233343536373839616263646566"
    );
    let mut boost = rm::GpuGetGidInfo::default();
    boost.data.fill(0xa5);
    assert!(text(rm::GpuGetGidInfo::SHAPE, boost.as_bytes()).ends_with("…(240 bytes more)"));
    assert_eq!(text(rm::Nvos00::SHAPE, &[1, 2]), "NVOS00_PARAMETERS");
}

#[test]
fn escapes_are_told_apart_by_their_size() {
    let name = |escape, size| rm::escape_shape(escape, size).map(|shape| (shape.name, shape.full));
    assert_eq!(
        name(rm::NV_ESC_RM_ALLOC, 32),
        Some(("NVOS21_PARAMETERS", 32))
    );
    assert_eq!(
        name(rm::NV_ESC_RM_ALLOC, 48),
        Some(("NVOS64_PARAMETERS", 48))
    );
    assert_eq!(
        name(rm::NV_ESC_RM_MAP_MEMORY_DMA, 56),
        Some(("NVOS46_PARAMETERS", 56))
    );
    assert_eq!(
        name(rm::NV_ESC_RM_MAP_MEMORY_DMA, 64),
        Some(("NVOS46_PARAMETERS", 64))
    );
    assert_eq!(name(rm::NV_ESC_RM_ALLOC, 33), None);
    assert_eq!(name(0, 32), None);
}

proptest! {
    #[test]
    fn no_bytes_break_a_description(at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let shapes: Vec<_> = rm::shapes().collect();
        let shape = **at.get(&shapes);
        let described = Described::new(shape, &bytes);
        prop_assert!(described.to_string().starts_with(shape.name));
        for value in described.fields() {
            prop_assert!(value.bytes.len() <= value.field.size);
            prop_assert_eq!(value.number().is_some(), value.bytes.len() <= 8);
        }
    }
}
