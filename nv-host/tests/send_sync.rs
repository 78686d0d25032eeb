//! Which types may be used from several threads: a change of this list is a change of the interface.

use nv_host::{
    Arg, ArgBytes, Backend, BadAccess, Buffer, Context, Device, Error, Event, FaultReport,
    Function, Graph, GraphBuilder, GraphLaunch, GraphNode, Hold, Info, IntoGraph, Launch, MapMode,
    Mapping, Module, Options, Placement, SmError, Stream,
};

const fn send<T: Send>() {}
const fn sync<T: Sync>() {}

/// All of them are both, and so is what is made of them: handles that share what they stand for behind locks, plain
/// values, and builders, whose methods take them by value or exclusively.
macro_rules! both {
    ($($type:ty),* $(,)?) => {
        const _: () = { $(send::<$type>(); sync::<$type>();)* };
    };
}

both!(
    // Handles: a clone is the same thing, and every method takes `&self`.
    Device,
    Context,
    Module,
    Function,
    Stream,
    Event,
    Graph,
    Buffer<f32>,
    Mapping,
    Hold,
    // In the making.
    Launch<'_>,
    GraphBuilder,
    GraphLaunch<'_>,
    IntoGraph<'_>,
    // Values.
    ArgBytes<'_>,
    Backend,
    BadAccess,
    Error,
    FaultReport,
    GraphNode,
    Info,
    MapMode,
    Options,
    Placement,
    SmError,
    std::sync::Arc<dyn nv_host::driver::Driver>,
);

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
    owned::<Error>();
    // An argument may be anything: one that is not `Send` is still an argument.
    fn argument<A: Arg>() {}
    argument::<&Buffer<u8>>();
}
