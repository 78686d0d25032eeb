//! Everything that can be done with launch descriptors and constant bank 0, on any words: what the fuzz targets run,
//! and the tests. Nothing here may panic; what must hold of whatever is read is asserted.

use nv_proto::bank0;
use nv_proto::qmd::value::DependentQmdAction;
use nv_proto::qmd::{
    BANKS, Dependent, MAX_WORDS, Qmd, Reduction, Release, ReleaseSize, Version, value::ReductionOp,
};
use nv_proto::unit::{Dim3, GpuVa, SmVersion};

use super::take::Take;

/// What became of a run, so that tests can tell that it got somewhere.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outcome {
    /// The version that the words themselves name.
    pub detected: bool,
    /// Fields that were not 0.
    pub fields: usize,
    /// The words describe a launch.
    pub launch: bool,
    /// Setters that were taken, and those that were refused.
    pub set: usize,
    /// See `set`.
    pub refused: usize,
}

/// Reads bytes as a descriptor of the version that the first byte says, and of the one that the words say; changes
/// it as the bytes after it say.
pub fn qmd(bytes: &[u8]) -> Outcome {
    let mut take = Take(bytes);
    let version = take.pick(&Version::ALL);
    let (chunks, _) = take.0.as_chunks::<4>();
    let words: Vec<u32> = chunks
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect();
    let mut outcome = Outcome::default();
    match Version::detect(&words) {
        Ok(detected) => {
            outcome.detected = true;
            let qmd = Qmd::decode(&words).expect("its version is known");
            assert_eq!(qmd.version(), detected);
            assert_eq!(Qmd::decode_as(detected, &words), Ok(qmd));
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_eq!(Qmd::decode(&words), Err(error));
        }
    }
    let qmd = match Qmd::decode_as(version, &words) {
        Ok(qmd) => qmd,
        Err(error) => {
            assert!(words.len() < version.words() && !error.to_string().is_empty());
            return outcome;
        }
    };
    encoded(&qmd, &words);
    outcome.fields = fields(&qmd);
    outcome.launch = launch(&qmd);
    let rest = &words[version.words()..];
    let rest: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
    change(qmd, &mut Take(&rest), &mut outcome);
    outcome
}

/// The words come back, in a buffer that is large enough and in no other.
fn encoded(qmd: &Qmd, words: &[u32]) {
    let length = qmd.version().words();
    let mut out = [0xa5a5_a5a5; MAX_WORDS + 1];
    assert_eq!(qmd.encode_into(&mut out), Ok(length));
    assert_eq!(out[..length], words[..length]);
    assert!(out[length..].iter().all(|word| *word == 0xa5a5_a5a5));
    let mut short = [0xa5a5_a5a5; MAX_WORDS];
    assert!(qmd.encode_into(&mut short[..length - 1]).is_err());
    assert!(short.iter().all(|word| *word == 0xa5a5_a5a5));
    let bytes: Vec<u8> = out[..length]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    assert_eq!(qmd.as_bytes(), bytes, "little-endian, whatever the host");
}

/// The fields that are not 0 and the bits of no field make up the words, and are what is printed.
fn fields(qmd: &Qmd) -> usize {
    let version = qmd.version();
    let mut again = Qmd::decode_as(version, &[0; MAX_WORDS]).expect("enough words");
    let mut count = 0;
    for value in qmd.fields() {
        assert!(value.raw != 0 && !value.field.alias && value.index < value.field.count);
        assert_eq!(qmd.field(value.field.name, value.index), Some(value));
        assert_eq!(again.set_field(value.field, value.index, value.raw), Ok(()));
        count += 1;
    }
    let mut words = [0; MAX_WORDS];
    assert_eq!(again.encode_into(&mut words), Ok(version.words()));
    let mut lines = 1 + count;
    for (index, bits) in qmd.undocumented() {
        assert_eq!(words[index] & bits, 0, "bits of no field");
        words[index] |= bits;
        lines += 1;
    }
    assert_eq!(Qmd::decode_as(version, &words), Ok(*qmd));
    let text = qmd.to_string();
    assert!(text.starts_with(&format!("QMD {version}\n")));
    assert_eq!(text.lines().count(), lines);
    count
}

/// What a descriptor says of its launch is what setting the same makes it say.
fn launch(qmd: &Qmd) -> bool {
    for index in 0..4 {
        if let Some(release) = qmd.release(index) {
            let mut fresh = Qmd::new(qmd.version());
            if fresh.set_release(index, Some(release)).is_ok() {
                assert_eq!(fresh.release(index), Some(release));
            } else {
                assert_eq!(fresh, Qmd::new(qmd.version()), "refused and left alone");
            }
        }
        if let Some(dependent) = qmd.dependent(index) {
            let mut fresh = Qmd::new(qmd.version());
            if fresh.set_dependent(index, Some(dependent)).is_ok() {
                assert_eq!(fresh.dependent(index), Some(dependent));
            } else {
                assert_eq!(fresh, Qmd::new(qmd.version()), "refused and left alone");
            }
        }
    }
    let view = match qmd.launch() {
        Ok(view) => view,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let mut again = *qmd;
    if again.set_grid(view.grid).is_ok() {
        assert_eq!(again.launch().map(|view| view.grid), Ok(view.grid));
    }
    assert_eq!(again.set_block(view.block), Ok(()));
    assert_eq!(again.launch().map(|view| view.block), Ok(view.block));
    true
}

/// Sets fields as the bytes say: what is taken is read back and touches nothing else, what is refused changes
/// nothing; and the differences from the first descriptor lead to the last.
fn change(from: Qmd, take: &mut Take<'_>, outcome: &mut Outcome) {
    let mut qmd = from;
    for _ in 0..64 {
        if take.0.is_empty() {
            break;
        }
        let before = qmd;
        let step = take.byte();
        let taken = match step % 8 {
            0..4 => {
                let field = take.pick(&before.version().fields().iter().collect::<Vec<_>>());
                let (index, raw) = (u32::from(take.byte() % 9), take.word());
                let raw = if step & 8 == 0 { raw } else { raw >> 24 };
                let taken = qmd.set_field(field, index, raw);
                match taken {
                    Ok(()) => {
                        assert_eq!(
                            qmd.field(field.name, index).map(|value| value.raw),
                            Some(raw)
                        );
                        let mut back = qmd;
                        let old = before.field(field.name, index).expect("it was set");
                        assert_eq!(back.set_field(field, index, old.raw), Ok(()));
                        assert_eq!(back, before, "no other bit");
                    }
                    Err(_) => assert_eq!(qmd, before),
                }
                taken
            }
            4 => {
                let grid = Dim3::new(take.amount(), take.amount(), take.amount());
                let taken = qmd.set_grid(grid);
                if taken.is_ok()
                    && let Ok(view) = qmd.launch()
                {
                    assert_eq!(view.grid, grid);
                }
                taken
            }
            5 => {
                let (index, va, size) = (u32::from(take.byte() % 9), take.address(), take.amount());
                let taken = qmd.set_bank(index, GpuVa(va), size);
                assert!(taken.is_err() || index < BANKS as u32);
                if taken.is_ok()
                    && let Ok(view) = qmd.launch()
                {
                    let rounded = size.next_multiple_of(16);
                    assert_eq!(view.banks[index as usize], Some((GpuVa(va), rounded)));
                }
                taken
            }
            6 => {
                let index = u32::from(take.byte() & 3);
                let sizes = [
                    ReleaseSize::Word,
                    ReleaseSize::Double,
                    ReleaseSize::Timestamp,
                ];
                let release = Release {
                    va: GpuVa(take.address()),
                    payload: take.long(),
                    size: take.pick(&sizes),
                    membar: take.byte() & 1 != 0,
                    reduction: take.option(|take| Reduction {
                        op: ReductionOp(u32::from(take.byte() % 9)),
                        signed: take.byte() & 1 != 0,
                    }),
                };
                let taken = qmd.set_release(index, Some(release));
                if taken.is_ok() {
                    assert_eq!(qmd.release(index), Some(release));
                }
                taken
            }
            _ => {
                let index = u32::from(take.byte() & 3);
                let dependent = Dependent {
                    va: GpuVa(take.address()),
                    action: DependentQmdAction(u32::from(take.byte() % 9)),
                    prefetch: take.byte() & 1 != 0,
                };
                let taken = qmd.set_dependent(index, Some(dependent));
                if taken.is_ok() {
                    let read = qmd.dependent(index).expect("it was set");
                    assert_eq!((read.va, read.action), (dependent.va, dependent.action));
                }
                taken
            }
        };
        match taken {
            Ok(()) => outcome.set += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(qmd, before, "a refused change changes nothing");
                outcome.refused += 1;
            }
        }
    }
    let diff = from.diff(&qmd).expect("of one version");
    assert_eq!(diff.to_string().is_empty(), diff.fields().count() == 0);
    let mut patched = from;
    for change in diff.fields() {
        assert_ne!(change.from, change.to);
        assert_eq!(
            patched.set_field(change.field, change.index, change.to),
            Ok(())
        );
    }
    assert_eq!(patched, qmd, "the differences are all there is");
}

/// Reads bytes as constant bank 0 of the generation that the first byte says; whether there is one.
pub fn bank0(bytes: &[u8]) -> bool {
    let mut take = Take(bytes);
    let sm = SmVersion(take.byte().into());
    let Some(layout) = bank0::Layout::of(sm) else {
        return false;
    };
    let prefix = match layout.read(take.0) {
        Ok(prefix) => prefix,
        Err(error) => {
            assert!(take.0.len() < usize::from(layout.prefix()) && !error.to_string().is_empty());
            return false;
        }
    };
    let mut out = [0xa5; 0x400];
    layout.write(&prefix, &mut out);
    assert_eq!(layout.read(&out), Ok(prefix));
    let end = usize::from(layout.prefix());
    assert!(out[end..].iter().all(|byte| *byte == 0xa5));
    true
}
