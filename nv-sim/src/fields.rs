//! Parameters of calls as bytes, read and written by the names of their fields.

use nv_proto::rm::{DriverVersion, Shape, Status};

/// Parameter bytes in the layout of the machine's driver release.
pub(crate) struct Fields<'a> {
    shape: Shape,
    bytes: &'a mut [u8],
}

impl<'a> Fields<'a> {
    /// Parameters of an allocation or of UVM: the driver copies its own size, so the caller's bytes may be
    /// more, but where they are fewer it would read what is not the caller's.
    pub(crate) fn at_least(
        shape: Shape,
        version: DriverVersion,
        bytes: &'a mut [u8],
    ) -> Result<Self, Status> {
        let size = shape.size(version);
        let bytes = bytes.get_mut(..size).ok_or(Status::INVALID_PARAM_STRUCT)?;
        Ok(Self { shape, bytes })
    }

    /// Parameters of a control call: the driver refuses another size than its own.
    pub(crate) fn exactly(
        shape: Shape,
        version: DriverVersion,
        bytes: &'a mut [u8],
    ) -> Result<Self, Status> {
        if bytes.len() != shape.size(version) {
            return Err(Status::INVALID_PARAM_STRUCT);
        }
        Ok(Self { shape, bytes })
    }

    fn offset(&self, name: &str) -> Option<usize> {
        self.shape
            .fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.offset)
    }

    fn load<const N: usize>(&self, name: &str) -> [u8; N] {
        let place = self
            .offset(name)
            .and_then(|offset| self.bytes.get(offset..));
        place
            .and_then(<[u8]>::first_chunk)
            .copied()
            .unwrap_or([0; N])
    }

    /// A byte; 0 where the release has no such field, as for the other widths. Of an array, the first element.
    pub(crate) fn u8(&self, name: &str) -> u8 {
        u8::from_le_bytes(self.load(name))
    }

    pub(crate) fn u32(&self, name: &str) -> u32 {
        u32::from_le_bytes(self.load(name))
    }

    pub(crate) fn u64(&self, name: &str) -> u64 {
        u64::from_le_bytes(self.load(name))
    }

    /// All bytes from a field on.
    pub(crate) fn from(&mut self, name: &str) -> &mut [u8] {
        let offset = self.offset(name).unwrap_or(self.bytes.len());
        self.bytes.get_mut(offset..).unwrap_or_default()
    }

    /// Stores bytes at a field; what reaches past the parameters is dropped.
    pub(crate) fn set(&mut self, name: &str, value: &[u8]) {
        for (target, source) in self.from(name).iter_mut().zip(value) {
            *target = *source;
        }
    }

    pub(crate) fn set_u32(&mut self, name: &str, value: u32) {
        self.set(name, &value.to_le_bytes());
    }

    pub(crate) fn set_u64(&mut self, name: &str, value: u64) {
        self.set(name, &value.to_le_bytes());
    }
}
