//! Kernel arguments: values that lie in constant bank 0 as the kernel's parameter table says.

use std::sync::Arc;

use nv_proto::unit::GpuVa;

use crate::context::Context;
use crate::memory::Allocation;

/// A value that can be passed to a kernel by value.
///
/// Device pointers are passed with [`GpuVa`] or a reference to a buffer.
pub trait Arg {
    /// Calls `use_bytes` with the bytes of the argument, little-endian.
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R;

    /// The context that the argument means something in; `None` for a plain value.
    fn context(&self) -> Option<&Context> {
        None
    }

    /// What keeps the memory that the argument points to, for a graph to hold; `None` for a plain value.
    fn hold(&self) -> Option<Hold> {
        None
    }
}

macro_rules! scalar {
    ($($type:ty),*) => {$(
        impl Arg for $type {
            fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
                use_bytes(&self.to_le_bytes())
            }
        }
    )*};
}

scalar!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl Arg for GpuVa {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(&self.0.to_le_bytes())
    }
}

/// Raw bytes, for structures passed by value.
#[derive(Clone, Copy, Debug)]
pub struct ArgBytes<'a>(pub &'a [u8]);

impl Arg for ArgBytes<'_> {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(self.0)
    }
}

impl<A: Arg + ?Sized> Arg for &A {
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(use_bytes)
    }

    fn context(&self) -> Option<&Context> {
        (**self).context()
    }

    fn hold(&self) -> Option<Hold> {
        (**self).hold()
    }
}

/// What keeps memory of the GPU, also when the buffer that it came with is dropped. Memory that nothing keeps any
/// more is freed once the work submitted until then has ended.
#[derive(Debug)]
pub struct Hold {
    context: Context,
    /// `Some` until dropped.
    allocation: Option<Arc<Allocation>>,
}

impl Hold {
    pub(crate) fn new(context: &Context, allocation: Arc<Allocation>) -> Self {
        Self {
            context: context.clone(),
            allocation: Some(allocation),
        }
    }

    /// The memory.
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        self.allocation.as_deref()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation.take() {
            self.context.retire(allocation);
        }
    }
}
