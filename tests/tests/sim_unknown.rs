//! What the simulated GPU does not know ends the launch by name: the instruction, its words and its place.

use std::time::Duration;

use nv_host::{Backend, Device, Error, Options};
use nv_proto::cubin::Cubin;
use nv_sim::Chip;

fn device(chip: Chip) -> Device {
    Device::open(&Options {
        backend: Backend::Sim(chip),
        ..Options::default()
    })
    .expect("a simulated GPU")
}

/// The demonstration's cubin with the first instruction of `vector_add` replaced.
fn with_first_instruction(words: [u64; 2]) -> Vec<u8> {
    let mut file = nv_tests::bytes("cubins/demo/demo.sm_90.cubin");
    let offset = {
        let cubin = Cubin::parse(&file).expect("a cubin");
        let kernel = cubin.kernel("vector_add").expect("a kernel");
        let text = cubin.section(kernel.text).expect("a section");
        usize::try_from(text.offset() + kernel.entry).expect("an offset")
    };
    file[offset..offset + 8].copy_from_slice(&words[0].to_le_bytes());
    file[offset + 8..offset + 16].copy_from_slice(&words[1].to_le_bytes());
    file
}

fn error_of(file: &[u8]) -> String {
    let device = device(Chip::Gh100);
    let module = device.load(file).expect("a module");
    let function = module.function("vector_add").expect("a kernel");
    let buffer = device.alloc::<f32>(256).expect("memory");
    let stream = device.stream().expect("a stream");
    let launch = stream.launch(&function).grid(1).block(256);
    let event = launch
        .arg(&buffer)
        .arg(&buffer)
        .arg(&buffer)
        .arg(256_u32)
        .submit()
        .expect("submitted");
    match event.wait_within(Duration::from_secs(10)) {
        Err(error @ Error::Fault(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bits_that_are_no_instruction() {
    let text = error_of(&with_first_instruction([
        0xfeed_face_cafe_0fff,
        0x0123_4567_89ab_cdef,
    ]));
    for part in [
        "vector_add",
        "feedfacecafe0fff",
        "123456789abcdef",
        "not implemented",
    ] {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}

#[test]
fn an_instruction_that_the_simulator_has_not() {
    // `UBLKCP.S.G [UR6], [UR4], UR8`, a bulk copy, as the compiler encodes it for sm_90.
    let copy = [0x0000_0006_0400_73ba, 0x0011_d800_0800_0208];
    let text = error_of(&with_first_instruction(copy));
    for part in [
        "vector_add",
        "UBLKCP.S.G [UR6], [UR4], UR8",
        "not implemented",
    ] {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}

#[test]
fn code_of_an_older_architecture_of_the_same_major_version_runs() {
    for chip in [Chip::Ga102, Chip::Ad102] {
        let device = device(chip);
        let module = device
            .load(&nv_tests::bytes("cubins/demo/demo.sm_80.cubin"))
            .expect("a module");
        let function = module.function("vector_add").expect("a kernel");
        let a = device.upload(&[1.5_f32; 256]).expect("memory");
        let c = device.alloc::<f32>(256).expect("memory");
        let stream = device.stream().expect("a stream");
        let launch = stream.launch(&function).grid(1).block(256);
        let event = launch
            .arg(&a)
            .arg(&a)
            .arg(&c)
            .arg(256_u32)
            .submit()
            .expect("submitted");
        event.wait().expect("it ends");
        assert_eq!(c.read().expect("read"), [3.0; 256]);
    }
}
