//! The workspace is laid out as ARCHITECTURE.md says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The paths that the tree in ARCHITECTURE.md names. A line's paths are parted by one space and end before two;
/// those on an indented line lie in the folder above it, and all but the first of them beside the first.
fn named(root: &Path) -> BTreeSet<PathBuf> {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, tree) = text.split_once("```text\n").expect("a tree");
    let (tree, _) = tree.split_once("```").expect("its end");
    let mut paths = BTreeSet::new();
    let mut top = PathBuf::new();
    for line in tree.lines() {
        let head = line.trim_start().split("  ").next().unwrap();
        if !line.starts_with(' ') {
            top = PathBuf::from(head);
            paths.insert(top.clone());
            continue;
        }
        let mut words = head.split(' ');
        let first = top.join(words.next().unwrap());
        let beside = first.parent().unwrap().to_path_buf();
        paths.extend(words.map(|word| beside.join(word)));
        paths.insert(first);
    }
    paths
}

/// The Rust sources below `folder`, relative to `root`.
fn sources(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
        let path = folder.join(entry.expect("an entry").file_name());
        if root.join(&path).is_dir() {
            sources(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_path_of_the_architecture_is_there() {
    let root = nv_tests::path("..");
    let named = named(&root);
    assert!(named.len() > 60, "{named:?}");
    let missing: Vec<_> = named
        .iter()
        .filter(|path| !root.join(path).exists())
        .collect();
    assert!(missing.is_empty(), "named, but not there: {missing:?}");
}

#[test]
fn every_source_is_in_the_architecture() {
    let root = nv_tests::path("..");
    let named = named(&root);
    let mut found = Vec::new();
    for member in ["nv-proto", "nv-sim", "nv-host", "nv-trace"] {
        sources(&root, Path::new(member), &mut found);
    }
    assert!(found.len() > 100, "{found:?}");
    // A whole crate is no answer to where something is.
    let unnamed: Vec<_> = found
        .iter()
        .filter(|path| {
            let mut places = path
                .ancestors()
                .filter(|place| place.components().count() > 1);
            !places.any(|place| named.contains(place))
        })
        .collect();
    assert!(unnamed.is_empty(), "not in ARCHITECTURE.md: {unnamed:?}");
}
