//! Constant bank 0: each value where compiled code looks for it, and read back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests: a helper that cannot go on fails the test that asked"
)]

use nv_proto::bank0::{Layout, MAX_PREFIX, Prefix, STACK_RESERVE, STACK_TOP};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};
use proptest::prelude::*;

/// A prefix in which every value is another.
const PREFIX: Prefix = Prefix {
    block: Dim3::new(128, 2, 3),
    grid: Dim3::new(88, 99, 55),
    shared_window: GpuVa(0x7f36_0000_0000),
    local_window: GpuVa(0x7e35_f500_0000),
    grid_id: 0x1122_3344_5566_7788,
    sm_count: 132,
    reserved_shared: 0x400,
    dynamic_shared: 0x321,
    total_shared: 0x4567,
    cluster: Some(Dim3::new(8, 9, 5)),
    cooperative: Some(GpuVa(0x7d35_eac0_0010)),
};

/// What a kernel expects to read for a special register.
fn expected(register: &str) -> u32 {
    let cluster = PREFIX.cluster.unwrap();
    match register {
        "ntid_x" => PREFIX.block.x,
        "ntid_y" => PREFIX.block.y,
        "ntid_z" => PREFIX.block.z,
        "nctaid_x" => PREFIX.grid.x,
        "nctaid_y" => PREFIX.grid.y,
        "nctaid_z" => PREFIX.grid.z,
        "nsmid" => PREFIX.sm_count,
        "gridid" => 0x5566_7788,
        "dynamic_smem_size" => PREFIX.dynamic_shared,
        "total_smem_size" => PREFIX.reserved_shared,
        "aggr_smem_size" => PREFIX.total_shared,
        "envreg1" => 0x7d35,
        "envreg2" => 0xeac0_0010,
        "stack_top" => STACK_TOP,
        "local_window" => 0xf500_0000,
        "is_explicit_cluster" => 1,
        "cluster_nctaid_x" => cluster.x,
        "cluster_nctaid_y" => cluster.y,
        "cluster_nctaid_z" => cluster.z,
        "cluster_nctarank" => 360,
        "nclusterid_x" | "nclusterid_y" | "nclusterid_z" => 11,
        // Kernels divide by multiplying.
        "clusterid_x" => (1.0_f32 / 8.0).to_bits(),
        "clusterid_y" => (1.0_f32 / 9.0).to_bits(),
        "clusterid_z" => (1.0_f32 / 5.0).to_bits(),
        register => panic!("{register}"),
    }
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

#[test]
fn every_value_is_where_compiled_code_reads_it() {
    let golden = nv_tests::json("golden/bank0/probes.json");
    let mut count = 0;
    for (sm, registers) in golden["sm"].as_object().unwrap() {
        let layout = Layout::of(SmVersion(sm.parse().unwrap())).unwrap();
        let mut bytes = [0xa5; MAX_PREFIX];
        layout.write(&PREFIX, &mut bytes);
        for (register, place) in registers.as_object().unwrap() {
            let offset = place["offset"].as_u64().unwrap() as usize;
            if register == "parameters" {
                assert_eq!(offset, usize::from(layout.prefix()), "sm_{sm}");
                continue;
            }
            assert_eq!(
                word(&bytes, offset),
                expected(register),
                "sm_{sm} {register} at {offset:#x}"
            );
            if place["indexed"].as_bool().unwrap() {
                let second = offset - 0xa0;
                assert_eq!(
                    word(&bytes, second),
                    expected(register),
                    "sm_{sm} {register} at {second:#x}"
                );
            }
            count += 1;
        }
    }
    assert_eq!(
        count,
        13 + 4 * 14 + 5 * 26,
        "every register of every generation"
    );
}

#[test]
fn what_is_written_is_read_back() {
    for sm in [75, 80, 86, 89, 90, 100, 120] {
        let layout = Layout::of(SmVersion(sm)).unwrap();
        let mut bytes = [0xa5; MAX_PREFIX + 1];
        layout.write(&PREFIX, &mut bytes);
        let prefix = usize::from(layout.prefix());
        assert!(
            bytes[prefix..].iter().all(|byte| *byte == 0xa5),
            "sm_{sm}: parameters are not touched"
        );
        let mut expected = PREFIX;
        if sm < 90 {
            (expected.cluster, expected.total_shared) = (None, 0);
        }
        if sm < 80 {
            expected.reserved_shared = 0;
        }
        assert_eq!(layout.read(&bytes), Ok(expected), "sm_{sm}");
        let plain = Prefix {
            cluster: None,
            cooperative: None,
            ..expected
        };
        layout.write(&plain, &mut bytes);
        assert_eq!(layout.read(&bytes), Ok(plain), "sm_{sm}");
        assert!(
            layout.read(&bytes[..prefix - 1]).is_err(),
            "sm_{sm}: too short"
        );
    }
    assert_eq!(STACK_RESERVE, 0x240);
    for sm in [0, 70, 72, 91, 99, 130] {
        assert_eq!(Layout::of(SmVersion(sm)), None, "sm_{sm}");
    }
}

proptest! {
    /// A buffer of any length: no panic, and nothing behind the prefix is touched.
    #[test]
    fn any_buffer_is_written_as_far_as_it_goes(
        sm in prop::sample::select(vec![75_u16, 86, 90, 100, 120]),
        length in 0..MAX_PREFIX + 64,
    ) {
        let layout = Layout::of(SmVersion(sm)).unwrap();
        let mut bytes = vec![0xa5; length];
        layout.write(&PREFIX, &mut bytes);
        let prefix = usize::from(layout.prefix());
        prop_assert!(bytes.iter().skip(prefix).all(|byte| *byte == 0xa5));
        prop_assert_eq!(layout.read(&bytes).is_ok(), length >= prefix);
    }
}
