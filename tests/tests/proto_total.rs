//! Descriptors, bank 0, launches, driver calls and instructions on any bytes and on real ones with bits turned:
//! nothing panics, and what is read or encoded comes back.

#[path = "../../fuzz/src/descriptors.rs"]
mod descriptors;
#[path = "../../fuzz/src/launches.rs"]
mod launches;
#[path = "../../fuzz/src/messages.rs"]
mod messages;
#[path = "../../fuzz/src/take.rs"]
mod take;

use nv_proto::qmd::value::QmdType;
use nv_proto::qmd::{Qmd, V04_00, Version, v04_00};
use nv_proto::unit::Dim3;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

proptest! {
    #[test]
    fn any_words_are_a_descriptor(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        descriptors::qmd(&bytes);
        descriptors::bank0(&bytes);
    }

    #[test]
    fn sparse_words_are_a_descriptor(
        which in 0_u8..8,
        set in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        changes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let version = Version::ALL[usize::from(which)];
        let mut bytes = vec![which];
        bytes.extend(Qmd::new(version).as_bytes());
        for (at, byte) in set {
            let at = at.index(bytes.len() - 1) + 1;
            bytes[at] = byte;
        }
        bytes.extend(changes);
        descriptors::qmd(&bytes);
    }

    #[test]
    fn any_call_is_described(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
        assert!(messages::call(&bytes) > 0);
        messages::sass(&bytes);
    }
}

/// Half of any launches are refused, by one limit or another; so many that the rest are a few thousand.
#[test]
fn any_launch_is_refused_or_encoded() {
    let (mut encoded, mut refused) = (0, std::collections::BTreeMap::new());
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    // `PROPTEST_CASES` counts here too, 256 unless it is set.
    let launches = 80 * ProptestConfig::default().cases;
    for _ in 0..launches {
        let bytes = proptest::collection::vec(any::<u8>(), 60..300);
        let bytes = bytes.new_tree(&mut runner).expect("bytes").current();
        match launches::launch(&bytes) {
            Ok(()) => encoded += 1,
            Err(error) => {
                let kind = format!("{error:?}");
                let kind = kind.split([' ', '(']).next().unwrap_or_default().to_owned();
                *refused.entry(kind).or_insert(0) += 1;
            }
        }
    }
    assert!(encoded > launches / 70, "{encoded} encoded, {refused:?}");
    for kind in [
        "Limit",
        "Zero",
        "UnknownSm",
        "NoClusters",
        "Encode",
        "ParameterBase",
    ] {
        assert!(
            refused.contains_key(kind),
            "{kind}: {encoded} encoded, {refused:?}"
        );
    }
}

#[test]
fn every_call_that_is_named_is_described() {
    let named = nv_proto::rm::names::COMMANDS
        .iter()
        .map(|(number, _)| *number);
    let mut described = 0;
    for number in named {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.extend([8, 2]);
        bytes.extend((0..600).map(|at| (at * 7) as u8));
        described += usize::from(messages::call(&bytes) > 1);
    }
    assert!(described >= 39, "{described}");
}

/// Found by the properties above: a grid that was set on a descriptor of clusters read back as another one.
#[test]
fn the_grid_that_was_set_is_the_grid_that_is_read() {
    let grid = Dim3::new(230, 1, 1);
    let made = |kind| {
        let mut qmd = Qmd::new(Version::V04_00);
        let mut fields = qmd.view_mut::<V04_00>().expect("made as 4.0");
        fields
            .set(v04_00::QMD_TYPE, kind)
            .and_then(|fields| fields.set(v04_00::GRID_WIDTH, 77))
            .expect("they fit");
        qmd
    };
    // One cluster as large as the grid, whatever the extents counted before.
    let mut cooperative = made(QmdType::GRID_GPU_CGA);
    assert_eq!(cooperative.set_grid(grid), Ok(()));
    let view = cooperative.launch().expect("a launch");
    assert_eq!((view.grid, view.cooperative), (grid, true));
    // Clusters of no blocks make no grid.
    let mut empty = made(QmdType::GRID_GPC_CGA);
    assert!(empty.set_grid(grid).is_err());
    assert_eq!(empty, made(QmdType::GRID_GPC_CGA));
    // Nobody has seen which extent holds what.
    let mut both = made(QmdType::GRID_GPU_GPC_CGA);
    assert!(both.set_grid(grid).is_err());
    assert_eq!(both, made(QmdType::GRID_GPU_GPC_CGA));
}
