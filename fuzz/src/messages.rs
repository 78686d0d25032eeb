//! Everything that can be read of the kernel driver's calls, on any bytes: what the fuzz targets run, and the tests.

use nv_proto::class::{self, Role, select_classes};
use nv_proto::rm::{
    self, Abi, ChannelGpfifoAlloc, ChannelGpfifoParams, Described, DriverVersion, Layout,
    MapMemoryDma, Shape, Status,
};
use nv_proto::unit::ClassId;
use nv_proto::uvm::{self, MapExternalAllocation, UvmCommand};

use super::take::Take;

/// How many structures were printed, so that tests can tell that some were.
pub fn call(bytes: &[u8]) -> usize {
    let mut take = Take(bytes);
    let number = take.word();
    let version = version(&mut take);
    let rest = take.0;
    names(number, version);

    let mut shapes: Vec<Shape> = Vec::new();
    if let Some((escape, size)) = rm::parse_request(number) {
        assert_eq!(rm::request(escape, size), Some(number));
        shapes.extend(rm::escape_shape(escape, size));
    }
    shapes.extend(rm::control_shape(number));
    shapes.extend(rm::alloc_shape(ClassId(number), version));
    shapes.extend(uvm::shape(number, version));
    let all: Vec<&Shape> = rm::shapes().collect();
    shapes.push(*all[number as usize % all.len()]);
    for shape in &shapes {
        described(*shape, version, rest);
    }
    if let Some(status) = uvm::status_of(number, version, rest) {
        assert!(uvm::shape(number, version).is_some() && !status.to_string().is_empty());
    }
    structures(version, rest);
    text(rest);
    classes(rest);
    shapes.len()
}

/// A release of a branch that is known, or any.
fn version(take: &mut Take<'_>) -> DriverVersion {
    let branch = take.pick(rm::BRANCHES);
    match take.byte() % 4 {
        0 => DriverVersion::new(take.word() as u16, take.word() as u16, take.word() as u16),
        1 => branch.first,
        2 => branch.last,
        _ => DriverVersion::new(branch.major, take.byte().into(), take.byte().into()),
    }
}

fn names(number: u32, version: DriverVersion) {
    let status = Status(number);
    assert!(!status.to_string().is_empty());
    assert!(!(status.is_ok() && status.is_error()));
    assert!(!(status.is_warning() && status.is_error()));
    let _ = (status.name_in(version), rm::names::command(number));
    let _ = (rm::names::escape(number as u8), uvm::name(number));
    for name in [
        rm::names::class(ClassId(number)),
        class::name(ClassId(number)),
    ] {
        assert!(name.is_none_or(|name| !name.is_empty()));
    }
    if let Some(name) = class::name(ClassId(number)) {
        assert_eq!(class::by_name(name), Some(ClassId(number)));
    }
    match Abi::of(version) {
        Ok(abi) => assert!(abi.version == version && abi.branch.first <= version),
        Err(error) => {
            assert!(version < DriverVersion::OLDEST && !error.to_string().is_empty());
        }
    }
}

/// Every field lies in the bytes, in order and apart from the others.
fn described(shape: Shape, version: DriverVersion, bytes: &[u8]) {
    assert!(shape.size(version) <= shape.full);
    let described = Described::new(shape, bytes);
    assert!(described.to_string().starts_with(described.name()));
    let mut end = 0;
    for value in described.fields() {
        assert!(value.field.offset >= end && value.bytes.len() <= value.field.size);
        end = value.field.offset + value.bytes.len();
        assert_eq!(value.bytes, &bytes[value.field.offset..end]);
        assert_eq!(value.number().is_some(), value.bytes.len() <= 8);
        if let Some(number) = value.number() {
            assert_eq!(number == 0, value.is_zero());
        }
        assert!(!value.to_string().is_empty());
    }
    assert!(end <= bytes.len());
}

/// Structures are their bytes, and laying them out for a release loses nothing that the release has.
fn structures(version: DriverVersion, bytes: &[u8]) {
    /// The structure at the start of the bytes, zeroes where they are too few.
    fn read<T: Layout>(bytes: &[u8]) -> T {
        let mut padded = vec![0; size_of::<T>()];
        let length = padded.len().min(bytes.len());
        padded[..length].copy_from_slice(&bytes[..length]);
        let value = T::read_from_bytes(&padded).expect("as long as it is");
        assert_eq!(value.as_bytes(), padded);
        value
    }
    macro_rules! whole {
        ($($name:ty),+ $(,)?) => { $(
            let mut value = read::<$name>(bytes);
            let size = match <$name as Layout>::SHAPE.size(version) {
                0 => size_of::<$name>(),
                size => size,
            };
            assert_eq!(value.prefix_mut(version).len(), size, stringify!($name));
        )+ };
    }
    whole!(
        rm::Nvos00,
        rm::Nvos21,
        rm::Nvos64,
        rm::Nvos54,
        rm::Nvos55,
        rm::RootAlloc,
        rm::DeviceAlloc,
        rm::VaSpaceAlloc,
        rm::MemoryAlloc,
        rm::ReadAllSmErrorStates,
        rm::GpuGetClasslistV2,
        uvm::RegisterGpu,
    );

    let params = read::<ChannelGpfifoParams>(bytes);
    let mut channel = ChannelGpfifoAlloc::from(params);
    let size = channel.bytes_mut(version).len();
    assert!(size <= size_of::<ChannelGpfifoParams>() && size >= 0x130);
    channel.read_back(version);
    assert_eq!(channel.params, params);

    let params = read::<rm::Nvos46>(bytes);
    let mut map = MapMemoryDma::from(params);
    let laid = map.bytes_mut(version).to_vec();
    assert_eq!(laid.len(), MapMemoryDma::shape(version).size(version));
    map.read_back(version);
    assert_eq!(map.params, params);

    let mut external = MapExternalAllocation::from(read::<uvm::MapExternalAllocationParams>(bytes));
    let status = external.params.rm_status;
    let laid = external.bytes_mut(version).to_vec();
    assert!(laid.len() <= uvm::MAX_PARAMS);
    let told = uvm::status_of(MapExternalAllocation::COMMAND, version, &laid);
    assert_eq!(told, Some(Status(status.get())));
    assert_eq!(external.status(version), Status(status.get()));
}

/// Releases as text.
fn text(bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(bytes.len());
    let text = str::from_utf8(&bytes[..end]).expect("ASCII");
    match DriverVersion::parse(text) {
        Ok(version) => assert_eq!(DriverVersion::parse(&version.to_string()), Ok(version)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A choice of classes is among those listed.
fn classes(bytes: &[u8]) {
    let (chunks, _) = bytes.as_chunks::<2>();
    let listed: Vec<ClassId> = chunks
        .iter()
        .map(|number| ClassId(u16::from_le_bytes(*number).into()))
        .collect();
    match select_classes(&listed) {
        Ok(set) => {
            for role in [Role::Usermode, Role::Gpfifo, Role::Compute, Role::Copy] {
                assert!(listed.contains(&set.class(role)));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Reads bytes as instructions of an architecture: how many there were.
pub fn sass(bytes: &[u8]) -> usize {
    use nv_proto::{sass, unit::SmVersion};

    let mut take = Take(bytes);
    let sm = SmVersion(take.pick(&[75, 80, 86, 87, 89, 90, 100, 103, 120, 121, 70, 0]));
    let (chunks, _) = take.0.as_chunks::<16>();
    let mut known = 0;
    for (at, bytes) in chunks.iter().enumerate() {
        let whole = u128::from_le_bytes(*bytes);
        let words = [whole as u64, (whole >> 64) as u64];
        match sass::decode(words, sm) {
            Ok(inst) => {
                assert_eq!((inst.words, inst.sm()), (words, sm));
                assert!(!inst.at(16 * at as u64).to_string().is_empty());
                known += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    known
}
