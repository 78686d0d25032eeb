//! A segment whose signal, wait, copy and launch are changed in place is the segment that would be written anew.

use nv_proto::EncodeError;
use nv_proto::push::compute::{SendPcas, SendSignalingPcas2};
use nv_proto::push::copy::{LineLengthIn, Offsets};
use nv_proto::push::host::{SemAcquire, SemRelease};
use nv_proto::push::{Place, PushWriter, Subchannel};
use nv_proto::unit::GpuVa;

struct Places {
    wait: Place<SemAcquire>,
    launch: Place<SendPcas>,
    offsets: Place<Offsets>,
    length: Place<LineLengthIn>,
    signal: Place<SemRelease>,
}

struct Values {
    wait: SemAcquire,
    launch: SendPcas,
    offsets: Offsets,
    length: LineLengthIn,
    signal: SemRelease,
}

fn values(n: u64) -> Values {
    Values {
        wait: SemAcquire::geq(GpuVa(0x20_0000_0000 + 16 * n), n),
        launch: SendPcas {
            qmd: GpuVa(0x20_1000_0000 + 0x400 * n),
        },
        offsets: Offsets {
            src: GpuVa(0x30_0000_0000 + n),
            dst: GpuVa(0x31_0000_0000 + 3 * n),
        },
        length: LineLengthIn(0x1000 + n as u32),
        signal: SemRelease {
            at: GpuVa(0x20_2000_0000 + 16 * n),
            value: n,
            wfi: true,
            timestamp: false,
        },
    }
}

fn write(values: &Values, words: &mut [u32]) -> (Places, usize) {
    let mut push = PushWriter::new(words);
    let wait = push.place(Subchannel::HOST, &values.wait).unwrap();
    let launch = push.place(Subchannel::COMPUTE, &values.launch).unwrap();
    push.write(Subchannel::COMPUTE, &SendSignalingPcas2::PREFETCH_SCHEDULE)
        .unwrap();
    let offsets = push.place(Subchannel::COPY, &values.offsets).unwrap();
    let length = push.place(Subchannel::COPY, &values.length).unwrap();
    let signal = push.place(Subchannel::HOST, &values.signal).unwrap();
    let places = Places {
        wait,
        launch,
        offsets,
        length,
        signal,
    };
    (places, push.len())
}

#[test]
fn a_patched_segment_is_one_written_anew() {
    let mut words = [0xa5a5_a5a5; 48];
    let (places, length) = write(&values(1), &mut words);
    for n in [2, 77, 0xffff] {
        let values = values(n);
        places.wait.patch(&mut words, &values.wait).unwrap();
        places.launch.patch(&mut words, &values.launch).unwrap();
        places.offsets.patch(&mut words, &values.offsets).unwrap();
        places.length.patch(&mut words, &values.length).unwrap();
        places.signal.patch(&mut words, &values.signal).unwrap();
        let mut anew = [0xa5a5_a5a5; 48];
        assert_eq!(write(&values, &mut anew).1, length);
        assert_eq!(words, anew);
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut words = [0xa5a5_a5a5; 48];
    let (places, length) = write(&values(1), &mut words);
    let before = words;
    // An address that is no multiple of 256.
    let launch = SendPcas { qmd: GpuVa(0x101) };
    assert!(places.launch.patch(&mut words, &launch).is_err());
    // The words of a segment that ends before the method does.
    let signal = values(2).signal;
    assert!(matches!(
        places.signal.patch(&mut words[..length - 1], &signal),
        Err(EncodeError::BufferTooSmall { needed, available }) if (needed, available) == (length, length - 1)
    ));
    // Words of another segment.
    let mut other = [0; 48];
    assert!(matches!(
        places.signal.patch(&mut other, &signal),
        Err(EncodeError::Unsupported { value: 0, .. })
    ));
    assert_eq!((words, other), (before, [0; 48]));
}
