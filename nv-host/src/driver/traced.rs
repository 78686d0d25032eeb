//! A driver whose every call is a span of the `tracing` crate: what is called, on what, with which parameters by
//! name, what came back otherwise, the status, and how long it took.
//!
//! Spans are of level DEBUG and of the target [`TARGET`]. Where no subscriber wants them a call pays a look at one
//! number; rings and doorbells are not calls, so a launch pays nothing.
#![allow(unsafe_code, reason = "hands the promises of raw calls on")]

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use nv_proto::rm::{self, Described, DriverVersion, Shape, names};
use nv_proto::unit::{ClassId, GpuVa, Handle};
use nv_proto::uvm;
use tracing::field::{Empty, display};
use tracing::{Span, debug, debug_span};

use super::{Doorbell, Driver, Kind, MapCpu, MapDma, sealed};
use crate::context::lock;
use crate::{Error, Mapping};

/// The target of the spans.
pub const TARGET: &str = "nv_host::driver";

/// A driver that is watched.
#[derive(Debug)]
pub(crate) struct Traced {
    driver: Arc<dyn Driver>,
    /// What the objects are, as far as they were made by this driver.
    classes: Mutex<BTreeMap<Handle, ClassId>>,
}

/// A driver, watched.
pub(crate) fn watch(driver: Arc<dyn Driver>) -> Arc<dyn Driver> {
    debug!(
        target: TARGET,
        call = "open",
        about = %format_args!("{}, driver {},", kind_name(&driver.kind()), driver.version()),
        object = %format_args!("client {}", driver.client()),
    );
    Arc::new(Traced {
        driver,
        classes: Mutex::default(),
    })
}

impl Traced {
    /// The object with its class, as far as it is known.
    fn object(&self, handle: Handle) -> String {
        if handle == self.driver.client() {
            return format!("{handle} (client)");
        }
        match lock(&self.classes).get(&handle) {
            Some(class) => format!("{handle} ({})", class_name(*class)),
            None => handle.to_string(),
        }
    }

    /// Parameters by name, as they are before the call.
    fn described(&self, shape: Option<Shape>, bytes: &[u8]) -> String {
        match shape {
            Some(shape) => cut(shape, bytes, self.version()).to_string(),
            None if bytes.is_empty() => String::new(),
            None => format!("{} bytes that are not described", bytes.len()),
        }
    }

    /// Makes a call whose parameters are bytes, and notes what it changed in them.
    fn call_with_bytes<R>(
        &self,
        span: &Span,
        shape: Option<Shape>,
        params: &mut [u8],
        make: impl FnOnce(&mut [u8]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if span.is_disabled() {
            return make(params);
        }
        let before = params.to_vec();
        let result = call(span, || make(params));
        if let Some(shape) = shape {
            let changed = changes(shape, &before, params, self.version());
            if !changed.is_empty() {
                span.record("changed", changed);
            }
        }
        result
    }
}

/// Makes a call in its span, and notes how it ended.
fn call<R>(span: &Span, make: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    if span.is_disabled() {
        return make();
    }
    let start = Instant::now();
    let result = span.in_scope(make);
    span.record("took_us", start.elapsed().as_nanos() as f64 / 1e3);
    match &result {
        Ok(_) => span.record("status", "NV_OK"),
        Err(Error::Rm { status, .. }) => span.record("status", display(status)),
        Err(error) => span.record("status", display(error)),
    };
    result
}

/// Bytes past the structure's end in this release are not its own.
fn cut(shape: Shape, bytes: &[u8], version: DriverVersion) -> Described<'_> {
    let size = match shape.size(version) {
        0 => shape.full,
        size => size,
    };
    Described::new(shape, bytes.get(..size).unwrap_or(bytes))
}

/// The fields that differ, as they are afterwards.
fn changes(shape: Shape, before: &[u8], after: &[u8], version: DriverVersion) -> String {
    let (before, after) = (cut(shape, before, version), cut(shape, after, version));
    let mut text = String::new();
    for (old, new) in before.fields().zip(after.fields()) {
        if old.bytes != new.bytes {
            let gap = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{gap}{}={new}", new.field.name));
        }
    }
    text
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::Kernel => "a GPU of the kernel driver".to_owned(),
        Kind::Sim(chip) => format!("simulated {chip}"),
    }
}

/// Numbers by one name.
fn list(name: &str, numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers
        .iter()
        .map(|number| format!("{number:#x}"))
        .collect();
    format!("{name}=[{}]", numbers.join(","))
}

fn class_name(class: ClassId) -> String {
    names::class(class).map_or_else(|| format!("class {:#x}", class.0), str::to_owned)
}

fn command_name(command: u32) -> String {
    names::command(command).map_or_else(|| format!("command {command:#x}"), str::to_owned)
}

fn uvm_name(command: u32) -> String {
    uvm::name(command).map_or_else(|| format!("UVM command {command:#x}"), str::to_owned)
}

/// A span of a call: its fields by name, then those that are filled in once it is done.
macro_rules! call_span {
    ($name:literal, $( $field:ident = $value:expr ),+ $(,)?) => {
        debug_span!(
            target: TARGET, $name, $( $field = %$value, )+
            made = Empty, changed = Empty, status = Empty, took_us = Empty
        )
    };
}

impl sealed::Sealed for Traced {}

impl Drop for Traced {
    fn drop(&mut self) {
        debug!(target: TARGET, call = "close", object = %format_args!("client {}", self.driver.client()));
    }
}

impl Driver for Traced {
    fn kind(&self) -> Kind {
        self.driver.kind()
    }

    fn version(&self) -> DriverVersion {
        self.driver.version()
    }

    fn reopen(&self) -> Result<Arc<dyn Driver>, Error> {
        self.driver.reopen().map(watch)
    }

    fn client(&self) -> Handle {
        self.driver.client()
    }

    fn device_instance(&self) -> u32 {
        self.driver.device_instance()
    }

    unsafe fn alloc_raw(
        &self,
        parent: Handle,
        class: ClassId,
        params: &mut [u8],
    ) -> Result<Handle, Error> {
        let shape = rm::alloc_shape(class, self.version());
        let span = call_span!(
            "rm_alloc",
            call = "NV_ESC_RM_ALLOC",
            about = class_name(class),
            parent = self.object(parent),
            params = self.described(shape, params),
        );
        let made = self.call_with_bytes(&span, shape, params, |params| {
            // SAFETY: the caller's promise is the same.
            unsafe { self.driver.alloc_raw(parent, class, params) }
        });
        if let Ok(handle) = &made {
            lock(&self.classes).insert(*handle, class);
            span.record("made", display(handle));
        }
        made
    }

    unsafe fn control_raw(
        &self,
        object: Handle,
        command: u32,
        params: &mut [u8],
    ) -> Result<(), Error> {
        let shape = rm::control_shape(command);
        let span = call_span!(
            "rm_control",
            call = "NV_ESC_RM_CONTROL",
            about = command_name(command),
            object = self.object(object),
            params = self.described(shape, params),
        );
        self.call_with_bytes(&span, shape, params, |params| {
            // SAFETY: the caller's promise is the same.
            unsafe { self.driver.control_raw(object, command, params) }
        })
    }

    fn free(&self, parent: Handle, object: Handle) -> Result<(), Error> {
        let span = call_span!(
            "rm_free",
            call = "NV_ESC_RM_FREE",
            object = self.object(object),
            parent = self.object(parent),
        );
        lock(&self.classes).remove(&object);
        call(&span, || self.driver.free(parent, object))
    }

    fn class_list(&self, device: Handle) -> Result<Vec<ClassId>, Error> {
        let span = call_span!(
            "rm_control",
            call = "NV_ESC_RM_CONTROL",
            about = "NV0080_CTRL_CMD_GPU_GET_CLASSLIST",
            object = self.object(device),
        );
        let list = call(&span, || self.driver.class_list(device));
        if let (Ok(list), false) = (&list, span.is_disabled()) {
            span.record(
                "changed",
                display(format_args!("numClasses={:#x}", list.len())),
            );
        }
        list
    }

    fn gr_info(&self, subdevice: Handle, indices: &[u32]) -> Result<Vec<u32>, Error> {
        let span = call_span!(
            "rm_control",
            call = "NV_ESC_RM_CONTROL",
            about = "NV2080_CTRL_CMD_GR_GET_INFO",
            object = self.object(subdevice),
            params = list("index", indices),
        );
        let facts = call(&span, || self.driver.gr_info(subdevice, indices));
        if let (Ok(facts), false) = (&facts, span.is_disabled()) {
            span.record("changed", list("data", facts));
        }
        facts
    }

    fn map_cpu(&self, request: &MapCpu) -> Result<Mapping, Error> {
        let span = call_span!(
            "rm_map_memory",
            call = "NV_ESC_RM_MAP_MEMORY",
            object = self.object(request.memory),
            params = format_args!(
                "hDevice={} offset={:#x} length={:#x} flags={:#x}",
                request.device, request.offset, request.length, request.flags
            ),
        );
        call(&span, || self.driver.map_cpu(request))
    }

    fn map_dma(&self, request: &MapDma) -> Result<(), Error> {
        let span = call_span!(
            "rm_map_memory_dma",
            call = "NV_ESC_RM_MAP_MEMORY_DMA",
            object = self.object(request.memory),
            params = format_args!(
                "hDevice={} hDma={} offset={:#x} length={:#x} flags={:#x} dmaOffset={:#x}",
                request.device,
                request.virtual_memory,
                request.offset,
                request.length,
                request.flags,
                request.va.0
            ),
        );
        call(&span, || self.driver.map_dma(request))
    }

    fn unmap_dma(
        &self,
        device: Handle,
        virtual_memory: Handle,
        memory: Handle,
        va: GpuVa,
    ) -> Result<(), Error> {
        let span = call_span!(
            "rm_unmap_memory_dma",
            call = "NV_ESC_RM_UNMAP_MEMORY_DMA",
            object = self.object(memory),
            params = format_args!(
                "hDevice={device} hDma={virtual_memory} dmaOffset={:#x}",
                va.0
            ),
        );
        call(&span, || {
            self.driver.unmap_dma(device, virtual_memory, memory, va)
        })
    }

    unsafe fn register_pages(
        &self,
        device: Handle,
        base: NonNull<u8>,
        length: usize,
    ) -> Result<Handle, Error> {
        let class = names::classes::NV01_MEMORY_SYSTEM_OS_DESCRIPTOR;
        let span = call_span!(
            "rm_alloc_memory",
            call = "NV_ESC_RM_ALLOC_MEMORY",
            about = class_name(class),
            parent = self.object(device),
            params = format_args!("pMemory={base:p} limit={:#x}", length.saturating_sub(1)),
        );
        // SAFETY: the caller's promise is the same.
        let made = call(&span, || unsafe {
            self.driver.register_pages(device, base, length)
        });
        if let Ok(handle) = &made {
            lock(&self.classes).insert(*handle, class);
            span.record("made", display(handle));
        }
        made
    }

    unsafe fn uvm_raw(&self, command: u32, params: &mut [u8]) -> Result<(), Error> {
        let shape = uvm::shape(command, self.version());
        let span = call_span!(
            "uvm",
            call = uvm_name(command),
            params = self.described(shape, params),
        );
        self.call_with_bytes(&span, shape, params, |params| {
            // SAFETY: the caller's promise is the same.
            unsafe { self.driver.uvm_raw(command, params) }
        })
    }

    fn control_fd(&self) -> i32 {
        self.driver.control_fd()
    }

    fn explain_fault(&self, channel: Handle) -> Option<String> {
        self.driver.explain_fault(channel)
    }

    fn doorbell(&self, usermode: Mapping) -> Doorbell {
        self.driver.doorbell(usermode)
    }
}
