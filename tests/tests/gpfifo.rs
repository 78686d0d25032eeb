//! GPFIFO entries against the facts and the reference's words; the ring cursor against a plain queue.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test that calls them"
)]

use std::collections::VecDeque;
use std::sync::LazyLock;

use nv_proto::gpfifo::{
    Fetch, GpEntry, Level, Opcode, RingCursor, Segment, Sync, USERD_BYTES, USERD_GP_GET,
    USERD_GP_PUT,
};
use nv_proto::unit::GpuVa;
use nv_proto::{DecodeError, EncodeError};
use proptest::prelude::*;

/// Read once: unoptimised and emulated it takes seconds.
static FACTS: LazyLock<serde_json::Value> =
    LazyLock::new(|| nv_tests::json("golden/facts/methods.json"));

fn sample() -> Segment {
    Segment::new(GpuVa(0x12_3456_789c), 0x1_2345).unwrap()
}

/// Where a field of the entry is, as an absolute bit position, from `facts/methods.json`.
fn fact(class: &str, dword: u32, field: &str) -> (u32, u32) {
    let field = &FACTS["host"][class]["gp_entry"]["fields"][format!("GP_ENTRY{dword}_{field}")];
    let bit = |end: &str| u32::try_from(field[end].as_u64().unwrap()).unwrap() + 32 * dword;
    (bit("hi"), bit("lo"))
}

fn bits(word: u64, (hi, lo): (u32, u32)) -> u64 {
    (word >> lo) & (u64::MAX >> (63 - (hi - lo)))
}

#[test]
fn fields_are_where_every_header_puts_them() {
    let entry = GpEntry::Segment(
        sample()
            .with_fetch(Fetch::Conditional)
            .with_level(Level::Subroutine)
            .with_sync(Sync::Wait),
    )
    .encode();
    let plain = GpEntry::Segment(sample()).encode();
    for class in ["NVC46F", "NVC56F", "NVC86F", "NVC96F", "NVCA6F"] {
        assert_eq!(
            bits(entry, fact(class, 0, "GET")),
            0x3456_789c >> 2,
            "{class}"
        );
        assert_eq!(bits(entry, fact(class, 1, "GET_HI")), 0x12, "{class}");
        assert_eq!(bits(entry, fact(class, 1, "LENGTH")), 0x1_2345, "{class}");
        for (dword, field) in [(0, "FETCH"), (1, "LEVEL"), (1, "SYNC")] {
            assert_eq!(bits(entry, fact(class, dword, field)), 1, "{class} {field}");
            assert_eq!(bits(plain, fact(class, dword, field)), 0, "{class} {field}");
        }
    }
    // What the three flags add is exactly their bits.
    assert_eq!(entry ^ plain, 1 | 1 << 41 | 1 << 63);
}

#[test]
fn opcodes_are_those_of_the_newest_header() {
    let facts = &*FACTS;
    let values = &facts["host"]["NVCA6F"]["gp_entry"]["fields"]["GP_ENTRY1_OPCODE"]["values"];
    let known = [
        ("NOP", Opcode::Nop),
        ("ILLEGAL", Opcode::Illegal),
        ("GP_CRC", Opcode::GpCrc),
        ("PB_CRC", Opcode::PbCrc),
        (
            "SET_PB_SEGMENT_EXTENDED_BASE",
            Opcode::SetPbSegmentExtendedBase,
        ),
    ];
    assert_eq!(values.as_object().unwrap().len(), known.len());
    for (name, opcode) in known {
        let entry = GpEntry::Control {
            opcode,
            operand: 0xdead_beef,
        };
        let number = values[name].as_u64().unwrap();
        assert_eq!(entry.encode(), number << 32 | 0xdead_beef, "{name}");
        assert_eq!(GpEntry::decode(entry.encode()), Ok(entry), "{name}");
        assert!(entry.to_string().contains(name), "{entry}");
    }
}

#[test]
fn userd_offsets_are_those_of_the_header() {
    let facts = &*FACTS;
    for class in ["NVC46F", "NVC56F", "NVC86F"] {
        let offsets = &facts["userd"][class]["offsets"];
        assert_eq!(offsets["GPPut"], USERD_GP_PUT, "{class}");
        assert_eq!(offsets["GPGet"], USERD_GP_GET, "{class}");
        assert_eq!(facts["userd"][class]["size"], USERD_BYTES, "{class}");
    }
    for class in ["NVC96F", "NVCA6F"] {
        assert_eq!(
            facts["userd"][class]["offsets"]["GPPut"], USERD_GP_PUT,
            "{class}"
        );
    }
}

#[test]
fn the_usermode_page_is_the_headers() {
    use nv_proto::gpfifo::{
        USERMODE_BYTES, USERMODE_NOTIFY_CHANNEL_PENDING, USERMODE_TIME_0, USERMODE_TIME_1,
        WorkSubmitToken,
    };
    use nv_proto::unit::SubmitToken;

    let facts = &*FACTS;
    let page = &facts["usermode"];
    assert_eq!(page["register_page_size"], USERMODE_BYTES);
    assert_eq!(page["registers"]["TIME_0"], USERMODE_TIME_0);
    assert_eq!(page["registers"]["TIME_1"], USERMODE_TIME_1);
    assert_eq!(
        page["registers"]["NOTIFY_CHANNEL_PENDING"],
        USERMODE_NOTIFY_CHANNEL_PENDING
    );

    let mask = |field: &str| {
        let bit = |end: usize| page["work_submit_token"][field][end].as_u64().unwrap();
        u32::try_from(((1_u64 << (bit(0) + 1)) - 1) & !((1 << bit(1)) - 1)).unwrap()
    };
    let bits = |token: WorkSubmitToken| SubmitToken::from(token).0;
    assert_eq!(
        bits(WorkSubmitToken::of(0xfff, 0, false).unwrap()),
        mask("channel_id")
    );
    assert_eq!(
        bits(WorkSubmitToken::of(0, 0x7f, false).unwrap()),
        mask("runlist_id")
    );
    assert_eq!(
        bits(WorkSubmitToken::of(0, 0, true).unwrap()),
        mask("gb20x_runlist_doorbell_enable")
    );
    let token = WorkSubmitToken::from(SubmitToken(0x4056_0123));
    assert_eq!((token.channel_id(), token.runlist_id()), (0x123, 0x56));
    assert!(token.runlist_doorbell_enable());
    assert!(WorkSubmitToken::of(0x1000, 0, false).is_err());
    assert!(WorkSubmitToken::of(0, 0x80, false).is_err());
}

/// The reference's `submit`: entry 0, GP_PUT and command buffer after one launch.
#[test]
fn entries_are_the_references() {
    let golden = nv_tests::json("golden/seed/cases.json");
    let mut seen = 0;
    for case in golden["cases"].as_array().unwrap() {
        let Some(submit) = case.get("submit").filter(|submit| !submit.is_null()) else {
            continue;
        };
        let words = case["launch"]["words"].as_array().unwrap().len();
        let expected = submit["ring0"].as_u64().unwrap();
        let va = GpuVa(submit["cmdq_va"].as_u64().unwrap());
        let segment = Segment::new(va, u32::try_from(words).unwrap())
            .unwrap()
            .with_level(Level::Subroutine);
        assert_eq!(
            GpEntry::from(segment).encode(),
            expected,
            "{}",
            case["cubin"]
        );
        assert_eq!(GpEntry::decode(expected), Ok(GpEntry::Segment(segment)));
        let mut cursor = RingCursor::new(0x1_0000).unwrap();
        assert_eq!(cursor.push(), Some(0));
        assert_eq!(
            u64::from(cursor.gp_put()),
            submit["gpput"].as_u64().unwrap()
        );
        seen += 1;
    }
    assert!(seen >= 60, "only {seen} cases have a submission");
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(
        Segment::new(GpuVa(0x1002), 1),
        Err(EncodeError::Misaligned {
            field: "GP_ENTRY0_GET",
            unit: 4,
            value: 0x1002
        })
    );
    assert!(Segment::new(GpuVa((1 << 40) - 4), 1).is_ok());
    assert!(matches!(
        Segment::new(GpuVa(1 << 40), 1),
        Err(EncodeError::FieldOverflow {
            field: "GP_ENTRY1_GET_HI",
            width: 8,
            ..
        })
    ));
    assert!(Segment::new(GpuVa(0), Segment::MAX_DWORDS).is_ok());
    assert!(matches!(
        Segment::new(GpuVa(0), 0),
        Err(EncodeError::Unsupported { value: 0, .. })
    ));
    for dwords in [Segment::MAX_DWORDS + 1, u32::MAX] {
        assert!(matches!(
            Segment::new(GpuVa(0), dwords),
            Err(EncodeError::FieldOverflow {
                field: "GP_ENTRY1_LENGTH",
                width: 21,
                ..
            })
        ));
    }
    // Bits 1 and 40 of a segment; anything above the opcode of a control entry.
    let segment = GpEntry::Segment(sample()).encode();
    for bad in [
        segment | 1 << 1,
        segment | 1 << 40,
        1 << 40,
        1 << 41,
        1 << 63,
    ] {
        assert!(
            matches!(GpEntry::decode(bad), Err(DecodeError::BadValue { value, .. }) if value == bad),
            "{bad:#x}"
        );
    }
}

#[test]
fn ring_sizes_are_powers_of_two() {
    for entries in [2, 4, 1024, 0x1_0000, 1 << 31] {
        let ring = RingCursor::new(entries).unwrap();
        assert_eq!(
            (ring.entries(), ring.free(), ring.is_empty()),
            (entries, entries - 1, true)
        );
    }
    for entries in [0, 1, 3, 6, 1000, u32::MAX] {
        assert!(matches!(
            RingCursor::new(entries),
            Err(EncodeError::Unsupported { value, .. }) if value == u64::from(entries)
        ));
    }
}

/// Every state of every ring up to 8 slots, at counts around 0, 2^32 and 2^64, against a queue that knows
/// nothing of masks: pushes, pops, and each value of GP_GET and GP_PUT that could be read.
#[test]
fn the_cursor_is_a_queue() {
    for entries in [2_u32, 4, 8] {
        for base in [0, 1, (1 << 32) - 3, u64::MAX - 2] {
            for start in 0..u64::from(entries) {
                let start = base + start.min(u64::MAX - base);
                for pending in 0..entries {
                    check_state(entries, start, pending);
                }
            }
        }
    }
}

fn check_state(entries: u32, start: u64, pending: u32) {
    let mut ring = RingCursor::starting_at(entries, start).unwrap();
    let mut queue = VecDeque::new();
    for step in 0..pending {
        let slot = ring.push().unwrap();
        assert_eq!(
            u64::from(slot),
            start.wrapping_add(u64::from(step)) % u64::from(entries)
        );
        queue.push_back(slot);
    }
    assert_eq!(ring.pending(), pending);
    assert_eq!(ring.free(), entries - 1 - pending);
    assert_eq!(ring.is_full(), pending == entries - 1);
    assert_eq!(ring.is_empty(), pending == 0);
    assert_eq!(ring.put().wrapping_sub(ring.get()), u64::from(pending));
    if pending == entries - 1 {
        let before = ring;
        assert_eq!(before, {
            ring.push()
                .map_or(ring, |_| panic!("a full ring took an entry"))
        });
    }
    // What the hardware may report: the slots from the oldest entry up to the put slot, nothing else.
    for gp_get in 0..entries + 2 {
        let mut seen = ring;
        let fetched = (0..=pending).find(|n| {
            u64::from(gp_get) == (start.wrapping_add(u64::from(*n))) % u64::from(entries)
        });
        match fetched.filter(|_| gp_get < entries) {
            Some(n) => {
                assert_eq!(seen.observe_gp_get(gp_get), Ok(n));
                assert_eq!(
                    (seen.pending(), seen.gp_get(), seen.put()),
                    (pending - n, gp_get, ring.put())
                );
            }
            None => {
                assert!(matches!(
                    seen.observe_gp_get(gp_get),
                    Err(DecodeError::BadValue { what: "GP_GET", value, .. }) if value == u64::from(gp_get)
                ));
                assert_eq!(seen, ring, "an error changes nothing");
            }
        }
    }
    // The consumer that reads each GP_PUT.
    for gp_put in 0..entries + 2 {
        let mut seen = ring;
        if gp_put >= entries {
            assert!(matches!(
                seen.observe_gp_put(gp_put),
                Err(DecodeError::BadValue { what: "GP_PUT", .. })
            ));
            assert_eq!(seen, ring);
            continue;
        }
        let new = seen.observe_gp_put(gp_put).unwrap();
        assert_eq!(seen.gp_put(), gp_put);
        assert_eq!(seen.get(), ring.get());
        assert_eq!(new, seen.pending().saturating_sub(pending));
    }
    while let Some(slot) = ring.pop() {
        assert_eq!(Some(slot), queue.pop_front());
    }
    assert!(queue.is_empty() && ring.is_empty());
}

proptest! {
    #[test]
    fn decoding_is_total_and_loses_nothing(bits: u64) {
        if let Ok(entry) = GpEntry::decode(bits) {
            prop_assert_eq!(entry.encode(), bits);
        }
    }

    #[test]
    fn segments_round_trip(va in 0_u64..1 << 38, dwords in 1..=Segment::MAX_DWORDS, flags in 0_u8..8) {
        let mut segment = Segment::new(GpuVa(va * 4), dwords).unwrap();
        if flags & 1 != 0 { segment = segment.with_fetch(Fetch::Conditional); }
        if flags & 2 != 0 { segment = segment.with_level(Level::Subroutine); }
        if flags & 4 != 0 { segment = segment.with_sync(Sync::Wait); }
        let entry = GpEntry::Segment(segment);
        prop_assert_eq!(GpEntry::decode(entry.encode()), Ok(entry));
    }
}
