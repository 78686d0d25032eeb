//! Which types may be used from several threads: a change of this list is a change of the interface.
#![allow(
    clippy::unwrap_used,
    reason = "test code: a broken expectation ends the test"
)]

use nv_host::profile::{Clock, Kind, Lost, Profile, Record, Recording, Summary, What};
use nv_host::{
    Arg, ArgBytes, AskedLaunch, Backend, BadAccess, Buffer, Context, Device, DeviceSlice, Doubt,
    Download, Error, Event, FaultKind, FaultReport, Function, GpuTime, Graph, GraphBuilder,
    GraphLaunch, GraphNode, Hold, Info, IntoGraph, Launch, LimitedBy, MapMode, Mapping, MemoryInfo,
    MemoryPlace, Module, Neighbours, NotRegistered, Occupancy, Options, Page, PeerBuffer, PeerLink,
    PinnedBuffer, Placement, Printed, Rect, Region, SmError, Stream, Submission, Symbol, Use,
};

const fn send<T: Send>() {}
const fn sync<T: Sync>() {}

/// All of them are both: handles that share what they stand for behind locks, plain values, and builders, whose
/// methods take them by value or exclusively.
macro_rules! both {
    ($($type:ty),* $(,)?) => {
        const _: () = { $(send::<$type>(); sync::<$type>();)* };
    };
}

both!(
    // Handles: every method takes `&self`.
    Device,
    Context,
    Module,
    Function,
    Stream,
    Event,
    Graph,
    Buffer<f32>,
    DeviceSlice<'_, f32>,
    PinnedBuffer<f32>,
    PeerBuffer<f32>,
    Symbol<f32>,
    Mapping,
    Hold,
    Download<f32>,
    Profile,
    std::sync::Arc<dyn nv_host::driver::Driver>,
    // In the making.
    Launch<'_>,
    GraphBuilder,
    GraphLaunch<'_>,
    IntoGraph<'_>,
    // Values.
    ArgBytes<'_>,
    AskedLaunch,
    Backend,
    BadAccess,
    Clock,
    Doubt,
    Error,
    FaultKind,
    FaultReport,
    GpuTime,
    GraphNode,
    Info,
    Kind,
    LimitedBy,
    Lost,
    MapMode,
    MemoryInfo,
    MemoryPlace,
    Neighbours,
    NotRegistered,
    Occupancy,
    Options,
    Page,
    PeerLink,
    Placement,
    Printed,
    Record,
    Recording,
    Rect,
    Region,
    SmError,
    Submission,
    Summary<'_>,
    Use,
    What,
);
#[cfg(feature = "sim")]
both!(nv_host::SimMachine);

/// What a thread is given may also be held for the whole program.
#[test]
fn handles_are_static() {
    fn owned<T: Send + Sync + 'static>() {}
    owned::<Device>();
    owned::<Context>();
    owned::<Module>();
    owned::<Function>();
    owned::<Stream>();
    owned::<Event>();
    owned::<Graph>();
    owned::<GraphBuilder>();
    owned::<Buffer<u8>>();
    owned::<PinnedBuffer<u8>>();
    owned::<PeerBuffer<u8>>();
    owned::<Symbol<u8>>();
    owned::<Error>();
    // An argument may be anything: one that is not `Send` is still an argument.
    fn argument<A: Arg>() {}
    argument::<&Buffer<u8>>();
}

/// Every type that the crate's root offers is in the list above.
#[test]
fn none_is_left_out() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (offers, list) = (read("src/lib.rs"), read("tests/send_sync.rs"));
    let (_, list) = list.split_once("both!(\n").unwrap();
    let (list, _) = list.split_once("#[test]").unwrap();
    let traits = ["Arg", "Element", "PeerPlace", "Place", "Target"];
    let names = offers
        .split("pub use ")
        .skip(1)
        .filter_map(|rest| rest.split_once(';'))
        .flat_map(|(names, _)| names.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .filter(|name| name.starts_with(char::is_uppercase) && !traits.contains(name));
    let mut count = 0;
    for name in names {
        let listed = list
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == name);
        assert!(listed, "{name} is not in the list");
        count += 1;
    }
    assert!(count > 30, "{count}");
}
