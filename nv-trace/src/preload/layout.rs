//! The few offsets and sizes of the kernel driver's structures that tracking needs. They repeat what `nv-proto`
//! describes, so that the interposer needs no other crate; the tests compare each with it.

/// `NV_ESC_*` numbers (`nv_escape.h`, `nv-ioctl-numbers.h`).
pub mod escape {
    pub const ALLOC_MEMORY: u8 = 0x27;
    pub const FREE: u8 = 0x29;
    pub const CONTROL: u8 = 0x2a;
    pub const ALLOC: u8 = 0x2b;
    pub const DUP_OBJECT: u8 = 0x34;
    pub const MAP_MEMORY: u8 = 0x4e;
    pub const UNMAP_MEMORY: u8 = 0x4f;
    pub const MAP_MEMORY_DMA: u8 = 0x57;
    pub const UNMAP_MEMORY_DMA: u8 = 0x58;
    pub const XFER_CMD: u8 = 0xd3;
}

/// UVM commands (`uvm_ioctl.h`).
pub mod uvm {
    pub const MAP_EXTERNAL_ALLOCATION: u32 = 0x21;
    pub const FREE: u32 = 0x22;
    pub const UNMAP_EXTERNAL: u32 = 0x42;
}

/// Where the fields of calls lie; `client` is first in all of them.
pub mod at {
    /// `NVOS21_PARAMETERS`, `NVOS64_PARAMETERS`.
    pub const ALLOC_PARENT: usize = 4;
    pub const ALLOC_NEW: usize = 8;
    pub const ALLOC_CLASS: usize = 12;
    pub const ALLOC_PARAMS: usize = 16;
    pub const NVOS21_SIZE: usize = 24;
    pub const NVOS21_STATUS: usize = 28;
    pub const NVOS64_SIZE: usize = 32;
    pub const NVOS64_STATUS: usize = 40;
    /// `NVOS54_PARAMETERS`.
    pub const CONTROL_PARAMS: usize = 16;
    pub const CONTROL_SIZE: usize = 24;
    /// `NVOS00_PARAMETERS`.
    pub const FREE_OBJECT: usize = 8;
    pub const FREE_STATUS: usize = 12;
    /// `NVOS55_PARAMETERS`.
    pub const DUP_NEW: usize = 8;
    pub const DUP_CLIENT_SRC: usize = 12;
    pub const DUP_OBJECT_SRC: usize = 16;
    pub const DUP_STATUS: usize = 24;
    /// `nv_ioctl_nvos02_parameters_with_fd`.
    pub const MEMORY_NEW: usize = 8;
    pub const MEMORY_CLASS: usize = 12;
    pub const MEMORY_POINTER: usize = 24;
    pub const MEMORY_LIMIT: usize = 32;
    pub const MEMORY_STATUS: usize = 40;
    pub const MEMORY_FD: usize = 48;
    /// `nv_ioctl_nvos33_parameters_with_fd`.
    pub const MAP_MEMORY: usize = 8;
    pub const MAP_OFFSET: usize = 16;
    pub const MAP_LENGTH: usize = 24;
    pub const MAP_LINEAR: usize = 32;
    pub const MAP_STATUS: usize = 40;
    pub const MAP_FD: usize = 48;
    /// `NVOS34_PARAMETERS`.
    pub const UNMAP_MEMORY: usize = 8;
    pub const UNMAP_LINEAR: usize = 16;
    /// `NVOS46_PARAMETERS` from release 580.65.06 (64 bytes), and before (56).
    pub const DMA_MEMORY: usize = 12;
    pub const DMA_OFFSET: usize = 16;
    pub const DMA_LENGTH: usize = 24;
    pub const DMA_VA: usize = 48;
    pub const DMA_STATUS: usize = 56;
    pub const DMA_VA_BEFORE_580: usize = 40;
    pub const DMA_STATUS_BEFORE_580: usize = 48;
    pub const DMA_BYTES: usize = 64;
    /// `NVOS47_PARAMETERS`.
    pub const UNDMA_MEMORY: usize = 12;
    pub const UNDMA_VA: usize = 24;
    /// `nv_ioctl_xfer_t`.
    pub const XFER_COMMAND: usize = 0;
    pub const XFER_SIZE: usize = 4;
    pub const XFER_POINTER: usize = 8;
    /// `UVM_MAP_EXTERNAL_ALLOCATION_PARAMS`: the start; from release 550.40.53 (256 GPUs), and before (32).
    pub const UVM_BASE: usize = 0;
    pub const UVM_LENGTH: usize = 8;
    pub const UVM_OFFSET: usize = 16;
    pub const UVM_CLIENT: usize = 9252;
    pub const UVM_MEMORY: usize = 9256;
    pub const UVM_STATUS: usize = 9260;
    pub const UVM_CLIENT_BEFORE_550: usize = 1188;
    pub const UVM_MEMORY_BEFORE_550: usize = 1192;
    pub const UVM_STATUS_BEFORE_550: usize = 1196;
    /// `NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS` before release 610.43.02, and from it on.
    pub const CHANNEL_RING: usize = 8;
    pub const CHANNEL_ENTRIES: usize = 16;
    pub const CHANNEL_USERD: usize = 32;
    pub const CHANNEL_USERD_OFFSET: usize = 64;
    pub const CHANNEL_USERD_SINCE_610: usize = 36;
    pub const CHANNEL_USERD_OFFSET_SINCE_610: usize = 72;
    /// `NV_OS_DESC_MEMORY_ALLOCATION_PARAMS`.
    pub const OS_DESCRIPTOR: usize = 16;
    pub const OS_LIMIT: usize = 24;
    /// `Nvc56fControl`: `GPPut`.
    pub const USERD_GP_PUT: u64 = 0x8c;
}

/// `NV01_MEMORY_SYSTEM_OS_DESCRIPTOR`.
pub const OS_DESCRIPTOR_CLASS: u32 = 0x71;
/// The first release with 256 GPUs in `UVM_MAP_EXTERNAL_ALLOCATION`, and that with new channel parameters.
pub const UVM_CHANGED: (u32, u32, u32) = (550, 40, 53);
pub const CHANNEL_CHANGED: (u32, u32, u32) = (610, 43, 2);

/// Whether objects of a class are channels (Volta and later).
pub const fn is_channel(class: u32) -> bool {
    class >= 0xc300 && class <= 0xffff && class & 0xff == 0x6f
}

/// How many bytes the allocation parameters of a class have at most, where the caller does not say and the class
/// is known.
pub const fn alloc_size(class: u32) -> Option<usize> {
    Some(match class {
        0x80 => 56,
        0x2080 => 4,
        0x90f1 => 56,
        0x70 => 24,
        0x3e | 0x40 => 128,
        OS_DESCRIPTOR_CLASS => 40,
        0xa06c => 20,
        0x9067 => 12,
        0x83de => 12,
        0x41 => 120,
        0x503b => 88,
        class if is_channel(class) => 0x178,
        class if class >= 0xc300 && class <= 0xffff => match class & 0xff {
            0x61 => 2,
            0xb5 => 8,
            0xc0 => 16,
            _ => return None,
        },
        _ => return None,
    })
}

/// How many bytes of allocation parameters are read where nothing says.
pub const GUESSED_ALLOC: usize = 64;

/// How many bytes a UVM command's parameters have at most: their ioctl numbers do not say.
pub const fn uvm_size(command: u32) -> Option<usize> {
    Some(match command {
        0x3000_0001 => 16,
        0x4b => 8,
        0x25 => 40,
        0x26 => 20,
        0x19 => 32,
        0x1a => 20,
        0x1b => 56,
        0x1c => 28,
        0x1d | 0x1e => 36,
        0x49 => 24,
        uvm::MAP_EXTERNAL_ALLOCATION => 9264,
        uvm::FREE => 24,
        uvm::UNMAP_EXTERNAL => 40,
        0x27 => 8,
        0x48 => 24,
        _ => return None,
    })
}

/// How many bytes of a UVM command's parameters are read where they are not known.
pub const GUESSED_UVM: usize = 256;

/// The escape and size in a request of the resource manager's: `_IOWR('F', escape, size)`.
pub const fn parse(request: u32) -> Option<(u8, usize)> {
    if request >> 30 == 3 && request >> 8 & 0xff == b'F' as u32 {
        Some((request.to_le_bytes()[0], (request >> 16 & 0x3fff) as usize))
    } else {
        None
    }
}

/// The request of an escape and a size.
pub const fn request(escape: u8, size: usize) -> u32 {
    let size = if size > 0x3fff { 0x3fff } else { size };
    3 << 30 | (size as u32) << 16 | (b'F' as u32) << 8 | escape as u32
}

/// Reads `580.159.04`; missing parts are 0.
pub fn release(text: &[u8]) -> Option<(u32, u32, u32)> {
    let mut parts = [0_u32; 3];
    let mut part = 0_usize;
    for byte in text {
        match byte {
            b'.' => part = part.saturating_add(1),
            b'0'..=b'9' => {
                let slot = parts.get_mut(part)?;
                let digit = u32::from(byte.saturating_sub(b'0'));
                *slot = slot.checked_mul(10)?.checked_add(digit)?;
            }
            _ => return None,
        }
    }
    let [major, minor, patch] = parts;
    (major > 0).then_some((major, minor, patch))
}

#[cfg(test)]
mod tests {
    use nv_proto::rm::{self, DriverVersion};
    use nv_proto::unit::ClassId;

    use super::*;

    /// Where `nv-proto` has a field; `full` tells layouts of one name apart.
    fn field(structure: &str, full: usize, name: &str) -> usize {
        let shape = rm::shapes().find(|shape| shape.name == structure && shape.full == full);
        let shape = shape.unwrap_or_else(|| panic!("{structure} of {full} bytes"));
        let field = shape.fields.iter().find(|field| field.name == name);
        field.unwrap_or_else(|| panic!("{structure}.{name}")).offset
    }

    #[test]
    fn offsets_are_those_of_the_headers() {
        // Structures with a descriptor begin with one that has none.
        for (ours, structure, full, name) in [
            (at::ALLOC_PARENT, "NVOS21_PARAMETERS", 32, "hObjectParent"),
            (at::ALLOC_NEW, "NVOS21_PARAMETERS", 32, "hObjectNew"),
            (at::ALLOC_CLASS, "NVOS21_PARAMETERS", 32, "hClass"),
            (at::ALLOC_PARAMS, "NVOS21_PARAMETERS", 32, "pAllocParms"),
            (at::NVOS21_SIZE, "NVOS21_PARAMETERS", 32, "paramsSize"),
            (at::NVOS21_STATUS, "NVOS21_PARAMETERS", 32, "status"),
            (at::ALLOC_PARENT, "NVOS64_PARAMETERS", 48, "hObjectParent"),
            (at::ALLOC_NEW, "NVOS64_PARAMETERS", 48, "hObjectNew"),
            (at::ALLOC_CLASS, "NVOS64_PARAMETERS", 48, "hClass"),
            (at::ALLOC_PARAMS, "NVOS64_PARAMETERS", 48, "pAllocParms"),
            (at::NVOS64_SIZE, "NVOS64_PARAMETERS", 48, "paramsSize"),
            (at::NVOS64_STATUS, "NVOS64_PARAMETERS", 48, "status"),
            (at::CONTROL_PARAMS, "NVOS54_PARAMETERS", 32, "params"),
            (at::CONTROL_SIZE, "NVOS54_PARAMETERS", 32, "paramsSize"),
            (at::FREE_OBJECT, "NVOS00_PARAMETERS", 16, "hObjectOld"),
            (at::FREE_STATUS, "NVOS00_PARAMETERS", 16, "status"),
            (at::DUP_NEW, "NVOS55_PARAMETERS", 28, "hObject"),
            (at::DUP_CLIENT_SRC, "NVOS55_PARAMETERS", 28, "hClientSrc"),
            (at::DUP_OBJECT_SRC, "NVOS55_PARAMETERS", 28, "hObjectSrc"),
            (at::DUP_STATUS, "NVOS55_PARAMETERS", 28, "status"),
            (at::MEMORY_NEW, "NVOS02_PARAMETERS", 48, "hObjectNew"),
            (at::MEMORY_CLASS, "NVOS02_PARAMETERS", 48, "hClass"),
            (at::MEMORY_POINTER, "NVOS02_PARAMETERS", 48, "pMemory"),
            (at::MEMORY_LIMIT, "NVOS02_PARAMETERS", 48, "limit"),
            (at::MEMORY_STATUS, "NVOS02_PARAMETERS", 48, "status"),
            (
                at::MEMORY_FD,
                "nv_ioctl_nvos02_parameters_with_fd",
                56,
                "fd",
            ),
            (at::MAP_MEMORY, "NVOS33_PARAMETERS", 48, "hMemory"),
            (at::MAP_OFFSET, "NVOS33_PARAMETERS", 48, "offset"),
            (at::MAP_LENGTH, "NVOS33_PARAMETERS", 48, "length"),
            (at::MAP_LINEAR, "NVOS33_PARAMETERS", 48, "pLinearAddress"),
            (at::MAP_STATUS, "NVOS33_PARAMETERS", 48, "status"),
            (at::MAP_FD, "nv_ioctl_nvos33_parameters_with_fd", 56, "fd"),
            (at::UNMAP_MEMORY, "NVOS34_PARAMETERS", 32, "hMemory"),
            (at::UNMAP_LINEAR, "NVOS34_PARAMETERS", 32, "pLinearAddress"),
            (at::DMA_MEMORY, "NVOS46_PARAMETERS", 64, "hMemory"),
            (at::DMA_OFFSET, "NVOS46_PARAMETERS", 64, "offset"),
            (at::DMA_LENGTH, "NVOS46_PARAMETERS", 64, "length"),
            (at::DMA_VA, "NVOS46_PARAMETERS", 64, "dmaOffset"),
            (at::DMA_STATUS, "NVOS46_PARAMETERS", 64, "status"),
            (at::DMA_OFFSET, "NVOS46_PARAMETERS", 56, "offset"),
            (at::DMA_VA_BEFORE_580, "NVOS46_PARAMETERS", 56, "dmaOffset"),
            (at::DMA_STATUS_BEFORE_580, "NVOS46_PARAMETERS", 56, "status"),
            (at::UNDMA_MEMORY, "NVOS47_PARAMETERS", 48, "hMemory"),
            (at::UNDMA_VA, "NVOS47_PARAMETERS", 48, "dmaOffset"),
            (at::UNDMA_VA, "NVOS47_PARAMETERS", 40, "dmaOffset"),
            (at::XFER_COMMAND, "nv_ioctl_xfer_t", 16, "cmd"),
            (at::XFER_SIZE, "nv_ioctl_xfer_t", 16, "size"),
            (at::XFER_POINTER, "nv_ioctl_xfer_t", 16, "ptr"),
            (
                at::UVM_BASE,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "base",
            ),
            (
                at::UVM_LENGTH,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "length",
            ),
            (
                at::UVM_OFFSET,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "offset",
            ),
            (
                at::UVM_CLIENT,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "hClient",
            ),
            (
                at::UVM_MEMORY,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "hMemory",
            ),
            (
                at::UVM_STATUS,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                9264,
                "rmStatus",
            ),
            (
                at::UVM_CLIENT_BEFORE_550,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                1200,
                "hClient",
            ),
            (
                at::UVM_MEMORY_BEFORE_550,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                1200,
                "hMemory",
            ),
            (
                at::UVM_STATUS_BEFORE_550,
                "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
                1200,
                "rmStatus",
            ),
            (
                at::CHANNEL_RING,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x170,
                "gpFifoOffset",
            ),
            (
                at::CHANNEL_ENTRIES,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x170,
                "gpFifoEntries",
            ),
            (
                at::CHANNEL_USERD,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x170,
                "hUserdMemory",
            ),
            (
                at::CHANNEL_USERD_OFFSET,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x170,
                "userdOffset",
            ),
            (
                at::CHANNEL_RING,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x178,
                "gpFifoOffset",
            ),
            (
                at::CHANNEL_ENTRIES,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x178,
                "gpFifoEntries",
            ),
            (
                at::CHANNEL_USERD_SINCE_610,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x178,
                "hUserdMemory",
            ),
            (
                at::CHANNEL_USERD_OFFSET_SINCE_610,
                "NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS",
                0x178,
                "userdOffset",
            ),
            (
                at::OS_DESCRIPTOR,
                "NV_OS_DESC_MEMORY_ALLOCATION_PARAMS",
                40,
                "descriptor",
            ),
            (
                at::OS_LIMIT,
                "NV_OS_DESC_MEMORY_ALLOCATION_PARAMS",
                40,
                "limit",
            ),
        ] {
            assert_eq!(ours, field(structure, full, name), "{structure}.{name}");
        }
        for shape in rm::shapes().filter(|shape| shape.name.contains("parameters_with_fd")) {
            assert_eq!(shape.fields[0].offset, 0);
        }
        assert_eq!(at::USERD_GP_PUT, nv_proto::gpfifo::USERD_GP_PUT as u64);
        assert_eq!(at::DMA_BYTES, size_of::<rm::Nvos46>());
    }

    #[test]
    fn numbers_are_those_of_the_headers() {
        for (ours, theirs) in [
            (escape::ALLOC_MEMORY, rm::NV_ESC_RM_ALLOC_MEMORY),
            (escape::FREE, rm::NV_ESC_RM_FREE),
            (escape::CONTROL, rm::NV_ESC_RM_CONTROL),
            (escape::ALLOC, rm::NV_ESC_RM_ALLOC),
            (escape::DUP_OBJECT, rm::NV_ESC_RM_DUP_OBJECT),
            (escape::MAP_MEMORY, rm::NV_ESC_RM_MAP_MEMORY),
            (escape::UNMAP_MEMORY, rm::NV_ESC_RM_UNMAP_MEMORY),
            (escape::MAP_MEMORY_DMA, rm::NV_ESC_RM_MAP_MEMORY_DMA),
            (escape::UNMAP_MEMORY_DMA, rm::NV_ESC_RM_UNMAP_MEMORY_DMA),
            (escape::XFER_CMD, rm::NV_ESC_IOCTL_XFER_CMD),
        ] {
            assert_eq!(ours, theirs);
            assert_eq!(Some(request(ours, 48)), rm::request(theirs, 48));
            assert_eq!(
                parse(request(ours, 48)),
                rm::parse_request(request(ours, 48))
            );
        }
        assert_eq!(parse(0x3000_0001), None);
        use nv_proto::uvm::UvmCommand as _;
        assert_eq!(
            uvm::MAP_EXTERNAL_ALLOCATION,
            nv_proto::uvm::MapExternalAllocation::COMMAND
        );
        assert_eq!(uvm::FREE, nv_proto::uvm::Free::COMMAND);
        assert_eq!(uvm::UNMAP_EXTERNAL, nv_proto::uvm::UnmapExternal::COMMAND);
        assert_eq!(
            OS_DESCRIPTOR_CLASS,
            rm::names::classes::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR.0
        );
    }

    #[test]
    fn sizes_are_those_of_the_newest_layouts() {
        let releases = || {
            rm::BRANCHES
                .iter()
                .flat_map(|branch| [branch.first, branch.last])
        };
        let mut known = 0;
        for command in (0..0x100).chain([0x3000_0001, 0x3000_0002]) {
            let shapes = releases().filter_map(|release| nv_proto::uvm::shape(command, release));
            assert_eq!(
                uvm_size(command),
                shapes.map(|shape| shape.full).max(),
                "{command:#x}"
            );
            known += usize::from(uvm_size(command).is_some());
        }
        assert!(known >= 16);
        for class in 0..=0xffff {
            let shapes = releases().filter_map(|release| rm::alloc_shape(ClassId(class), release));
            assert_eq!(
                alloc_size(class),
                shapes.map(|shape| shape.full).max(),
                "{class:#x}"
            );
        }
    }

    #[test]
    fn releases_are_read() {
        assert_eq!(release(b"580.159.04"), Some((580, 159, 4)));
        assert_eq!(release(b"580.142"), Some((580, 142, 0)));
        for bad in [&b""[..], b"x", b"1.2.3.4", b"99999999999"] {
            assert_eq!(release(bad), None);
        }
        let before =
            |(a, b, c): (u32, u32, u32)| DriverVersion::new(a as u16, b as u16, c as u16 - 1);
        let changed = |version| {
            nv_proto::uvm::shape(uvm::MAP_EXTERNAL_ALLOCATION, version)
                .unwrap()
                .full
        };
        assert_eq!(
            (
                changed(before(UVM_CHANGED)),
                changed(DriverVersion::new(550, 40, 53))
            ),
            (1200, 9264)
        );
        let channel = |version| rm::alloc_shape(ClassId(0xc86f), version).unwrap().full;
        assert_eq!(
            (
                channel(before(CHANNEL_CHANGED)),
                channel(DriverVersion::new(610, 43, 2))
            ),
            (0x170, 0x178)
        );
    }
}
