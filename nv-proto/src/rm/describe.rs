//! A call's parameters as text: the structure's name and its fields that are not zero, by name.

use core::fmt;

use super::names;
use super::{AllocParams, ChannelGroupAlloc, CopyAlloc, GrAlloc};
use super::{
    ChannelGpfifoAlloc, CtxShareAlloc, DebuggerAlloc, DeviceAlloc, DriverVersion, Field,
    HopperUsermodeAlloc, Layout, MemoryAlloc, MemoryVirtualAlloc, Nvos02, Nvos33,
    OsDescMemoryAlloc, P2pAlloc, RootAlloc, Shape, Status, SubdeviceAlloc, VaSpaceAlloc, shapes,
};
use crate::unit::ClassId;

/// The structure of an escape by its number and the size in its ioctl number, if it is described here.
#[must_use]
pub fn escape_shape(escape: u8, size: usize) -> Option<Shape> {
    let names: &[&str] = match escape {
        super::NV_ESC_RM_FREE => &["NVOS00_PARAMETERS"],
        super::NV_ESC_RM_ALLOC => &["NVOS21_PARAMETERS", "NVOS64_PARAMETERS"],
        super::NV_ESC_RM_CONTROL => &["NVOS54_PARAMETERS"],
        super::NV_ESC_RM_DUP_OBJECT => &["NVOS55_PARAMETERS"],
        super::NV_ESC_RM_ALLOC_MEMORY => &["nv_ioctl_nvos02_parameters_with_fd"],
        super::NV_ESC_RM_MAP_MEMORY => &["nv_ioctl_nvos33_parameters_with_fd"],
        super::NV_ESC_RM_UNMAP_MEMORY => &["NVOS34_PARAMETERS"],
        super::NV_ESC_RM_MAP_MEMORY_DMA => &["NVOS46_PARAMETERS"],
        super::NV_ESC_RM_UNMAP_MEMORY_DMA => &["NVOS47_PARAMETERS"],
        super::NV_ESC_REGISTER_FD => &["nv_ioctl_register_fd_t"],
        super::NV_ESC_CHECK_VERSION_STR => &["nv_ioctl_rm_api_version_t"],
        super::NV_ESC_IOCTL_XFER_CMD => &["nv_ioctl_xfer_t"],
        super::NV_ESC_SYS_PARAMS => &["nv_ioctl_sys_params_t"],
        super::NV_ESC_STATUS_CODE => &["nv_ioctl_status_code_t"],
        super::NV_ESC_WAIT_OPEN_COMPLETE => &["nv_ioctl_wait_open_complete_t"],
        _ => &[],
    };
    shapes()
        .find(|shape| shape.full == size && names.contains(&shape.name))
        .copied()
}

/// The parameters of an object's allocation by its class in a release, if they are described here.
#[must_use]
pub fn alloc_shape(class: ClassId, version: DriverVersion) -> Option<Shape> {
    use names::classes::{NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, NV01_ROOT_CLIENT};

    macro_rules! first_fit {
        ($( $name:ident ),* $(,)?) => {
            match class {
                NV01_ROOT_CLIENT => Some(RootAlloc::SHAPE),
                NV01_MEMORY_SYSTEM_OS_DESCRIPTOR => Some(OsDescMemoryAlloc::SHAPE),
                class if ChannelGpfifoAlloc::fits(class) => Some(ChannelGpfifoAlloc::shape(version)),
                $( class if $name::fits(class) => Some($name::SHAPE), )*
                _ => None,
            }
        };
    }
    first_fit! {
        DeviceAlloc, SubdeviceAlloc, VaSpaceAlloc, MemoryVirtualAlloc, MemoryAlloc, ChannelGroupAlloc,
        CtxShareAlloc, P2pAlloc, DebuggerAlloc, HopperUsermodeAlloc, CopyAlloc, GrAlloc,
    }
}

/// Parameters to print.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    shape: Shape,
    bytes: &'a [u8],
}

impl<'a> Described<'a> {
    /// `bytes` as the structure of a shape; fields past the end of the bytes are left out.
    #[must_use]
    pub fn new(shape: Shape, bytes: &'a [u8]) -> Self {
        Self { shape, bytes }
    }

    /// The structure's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.shape.name
    }

    /// The named fields that lie in the bytes; those of a structure that begins this one in its stead.
    pub fn fields(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let bytes = self.bytes;
        let inner = match self.shape.name {
            "nv_ioctl_nvos02_parameters_with_fd" => Nvos02::SHAPE.fields,
            "nv_ioctl_nvos33_parameters_with_fd" => Nvos33::SHAPE.fields,
            _ => &[],
        };
        let replaced = usize::from(!inner.is_empty());
        let fields = inner.iter().chain(self.shape.fields.iter().skip(replaced));
        let named = fields.filter(|field| !field.name.is_empty());
        named.filter_map(move |field| Value::of(field, bytes))
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for value in self.fields().filter(|value| !value.is_zero()) {
            write!(f, " {}={value}", value.field.name)?;
        }
        Ok(())
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Described<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=str}", self.name());
        for value in self.fields().filter(|value| !value.is_zero()) {
            defmt::write!(f, " {}", value);
        }
    }
}

/// A field with its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Value<'a> {
    /// The field.
    pub field: &'static Field,
    /// Its bytes, fewer than its size where the input ends inside a list.
    pub bytes: &'a [u8],
}

#[cfg(feature = "defmt")]
impl defmt::Format for Value<'_> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self.number() {
            Some(number) => defmt::write!(f, "{=str}={=u64:#x}", self.field.name, number),
            None => defmt::write!(f, "{=str}={=[u8]:02x}", self.field.name, self.bytes),
        }
    }
}

impl<'a> Value<'a> {
    fn of(field: &'static Field, bytes: &'a [u8]) -> Option<Self> {
        let end = field.offset.saturating_add(field.size).min(bytes.len());
        let bytes = bytes.get(field.offset..end)?;
        let whole = bytes.len() == field.size || field.size > 8 && !bytes.is_empty();
        whole.then_some(Self { field, bytes })
    }

    /// Whether all of it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// Its value, if it has at most 8 bytes.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        if self.bytes.len() > 8 {
            return None;
        }
        Some(
            self.bytes
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.number().and_then(|number| u32::try_from(number).ok());
        match (self.field.name, self.number(), word) {
            ("status" | "rmStatus", _, Some(word)) => write!(f, "{}", Status(word)),
            ("hClass", _, Some(word)) => match names::class(ClassId(word)) {
                Some(name) => write!(f, "{name} ({word:#x})"),
                None => write!(f, "{word:#x}"),
            },
            ("cmd", _, Some(word)) => match names::command(word) {
                Some(name) => write!(f, "{name} ({word:#x})"),
                None => write!(f, "{word:#x}"),
            },
            (_, Some(number), _) => write!(f, "{number:#x}"),
            (_, None, _) => {
                for byte in self.bytes.iter().take(SHOWN_BYTES) {
                    write!(f, "{byte:02x}")?;
                }
                match self.bytes.len().checked_sub(SHOWN_BYTES) {
                    None | Some(0) => Ok(()),
                    Some(more) => write!(f, "…({more} bytes more)"),
                }
            }
        }
    }
}

/// As much of a long field as a UUID needs.
const SHOWN_BYTES: usize = 16;
