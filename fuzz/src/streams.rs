//! Everything that the readers of pushbuffers and rings can do, on any bytes: what the fuzz targets run, and the
//! tests on mutated streams. Nothing here may panic; what must hold of whatever is read is asserted.

use std::collections::VecDeque;

use nv_proto::class::Generation;
use nv_proto::gpfifo::{GpEntry, RingCursor};
use nv_proto::pretty::{Bindings, Data, Line, lines};
use nv_proto::push::{Header, MethodWrite, PushReader, PushWriter, compute, copy, host};

/// What became of a run, so that tests can tell that mutated streams get past the first header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// Packets read.
    pub packets: usize,
    /// Methods written by them.
    pub writes: usize,
    /// Whether a header was refused.
    pub refused: bool,
}

/// Reads bytes as a pushbuffer: the packets tile the words, come back when written, and have lines that hold
/// the same.
pub fn push(bytes: &[u8]) -> Outcome {
    let (chunks, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = chunks
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    let mut outcome = Outcome::default();
    let mut out = vec![0xa5a5_a5a5; words.len()];
    let mut writer = PushWriter::new(&mut out);
    let mut writes: Vec<MethodWrite> = Vec::new();
    for packet in PushReader::new(&words) {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                outcome.refused = true;
                break;
            }
        };
        assert_eq!(packet.offset, writer.len());
        let written = match packet.header {
            Header::Run {
                op,
                subchannel,
                method,
                ..
            } => writer.run(op, subchannel, method, packet.data),
            header => writer.header(&header),
        };
        assert_eq!(written, Ok(()));
        writes.extend(packet.writes());
        outcome.packets += 1;
    }
    let read = writer.finish();
    assert_eq!(read, &words[..read.len()]);
    outcome.writes = writes.len();

    let streamed: Vec<MethodWrite> = PushReader::new(&words)
        .writes()
        .map_while(Result::ok)
        .collect();
    assert_eq!(streamed, writes);
    for write in &writes {
        assert!(write.method.bytes() < 0x4000);
        typed(write.data);
    }
    for generation in [
        Generation::Turing,
        Generation::Hopper,
        Generation::BlackwellGb20x,
    ] {
        let mut shown = Vec::new();
        let mut refused = false;
        for line in lines(&words, Bindings::of(generation)) {
            let Ok(line) = line else {
                refused = true;
                continue;
            };
            assert!(!line.to_string().is_empty());
            let Line::Method(line) = line else { continue };
            for field in line.all_fields() {
                assert!(field.value <= field.field.spec.max());
            }
            match line.data {
                Data::Immediate(word) => shown.push((line.method, word)),
                Data::Words(words) => shown.extend(words.iter().map(|word| (line.method, *word))),
            }
        }
        assert_eq!(refused, outcome.refused);
        assert!(
            shown
                .iter()
                .copied()
                .eq(writes.iter().map(|write| (write.method, write.data)))
        );
    }
    outcome
}

/// A word that decodes is the word that its fields encode.
fn typed(word: u32) {
    macro_rules! check {
        ($($name:ty),+ $(,)?) => { $(
            if let Ok(decoded) = <$name>::decode(word) {
                assert_eq!(decoded.encode(), Ok(word));
            }
        )+ };
    }
    check!(
        host::SetObjectWord,
        host::SemExecute,
        host::Wfi,
        compute::LaunchDma,
        compute::SendSignalingPcas2,
        compute::InvalidateShaderCaches,
        compute::ReportSemaphoreD,
        compute::ReportSemaphoreExecuteWord,
        compute::SetInlineQmdAddressA,
        copy::LaunchDma,
        copy::SetRemapComponents,
        copy::SetDstBlockSize,
        copy::SetSrcPhysMode,
    );
}

/// Reads bytes as ring entries, then as what happens to a ring of 2 to 256 slots, beside a plain queue.
pub fn gpfifo(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let (entries, _) = bytes.as_chunks::<8>();
    for entry in entries {
        let bits = u64::from_le_bytes(*entry);
        match GpEntry::decode(bits) {
            Ok(entry) => {
                assert_eq!(entry.encode(), bits);
                assert!(!entry.to_string().is_empty());
                outcome.packets += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                outcome.refused = true;
            }
        }
    }
    let Some((&size, steps)) = bytes.split_first() else {
        return outcome;
    };
    let entries = 2_u32 << (size & 7);
    let Ok(mut ring) = RingCursor::starting_at(entries, u64::MAX - u64::from(size >> 3)) else {
        unreachable!("{entries} is a power of two")
    };
    let mut queue: VecDeque<u32> = VecDeque::new();
    for &step in steps {
        let argument = u32::from(step >> 2);
        match step & 3 {
            0 => match ring.push() {
                Some(slot) => {
                    assert!(queue.len() + 1 < entries as usize);
                    queue.push_back(slot);
                    outcome.writes += 1;
                }
                None => assert_eq!(queue.len() + 1, entries as usize),
            },
            1 => assert_eq!(ring.pop(), queue.pop_front()),
            2 => {
                // The index after the first `n` entries that are queued, or one that is no such.
                let known = (0..=queue.len()).find(|n| match queue.get(*n) {
                    Some(slot) => *slot == argument,
                    None => ring.gp_put() == argument,
                });
                match (ring.observe_gp_get(argument), known) {
                    (Ok(fetched), Some(n)) => {
                        assert_eq!(fetched as usize, n);
                        queue.drain(..n);
                    }
                    (Err(_), None) => {}
                    (answer, known) => unreachable!("{argument}: {answer:?} beside {known:?}"),
                }
            }
            _ => {
                let mut consumer = ring;
                if consumer.observe_gp_put(argument).is_ok() {
                    assert!(argument < entries && consumer.gp_put() == argument);
                } else {
                    assert!(argument >= entries && consumer == ring);
                }
            }
        }
        assert_eq!(ring.pending() as usize, queue.len());
        assert_eq!(
            queue.front().copied().unwrap_or(ring.gp_put()),
            ring.gp_get()
        );
    }
    outcome
}
