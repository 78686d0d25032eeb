//! The copy engine.

use nv_proto::push::MethodAddr;
use nv_proto::push::compute::MemoryLayout;
use nv_proto::push::copy::{
    self, AddressType, DataTransferType, LaunchDma, RemapSource, SemaphoreReduction, SemaphoreType,
    SetRemapComponents,
};

use crate::access;
use crate::engine::{COPY, Context, Reduction, Registers, Release, bad_data, unknown_method};
use crate::fault::Stop;

/// The copy engine's state of one channel.
#[derive(Debug, Default)]
pub(crate) struct Copy {
    registers: Registers,
}

/// A launch that moves data.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    source: u64,
    target: u64,
    source_pitch: u64,
    target_pitch: u64,
    length: u64,
    lines: u64,
}

impl Copy {
    pub(crate) fn method(
        &mut self,
        context: &Context<'_>,
        method: MethodAddr,
        data: u32,
    ) -> Result<(), Stop> {
        let known = copy::ADDRESSES
            .iter()
            .any(|(_, address)| *address == method);
        if !known {
            let class = context.gpu.chip.copy_class();
            return Err(unknown_method(COPY, class, method, data));
        }
        self.registers.set(method.bytes(), data);
        if method == copy::LAUNCH_DMA {
            self.launch(context, data)
        } else {
            Ok(())
        }
    }

    fn launch(&self, context: &Context<'_>, data: u32) -> Result<(), Stop> {
        let launch = LaunchDma::decode(data).map_err(|error| bad_data(COPY.0, COPY.1, error))?;
        if launch.data_transfer_type != DataTransferType::None {
            self.transfer(context, &launch)?;
        }
        self.release(context, &launch)
    }

    fn transfer(&self, context: &Context<'_>, launch: &LaunchDma) -> Result<(), Stop> {
        let refuse = |what: &str| {
            Err(bad_data(
                COPY.0,
                COPY.1,
                format!("LAUNCH_DMA: {what} is not implemented"),
            ))
        };
        if launch.src_type == AddressType::Physical || launch.dst_type == AddressType::Physical {
            // What an ordinary client's channel may not do.
            return Err(bad_data(
                COPY.0,
                COPY.1,
                "LAUNCH_DMA: physical addresses are not allowed",
            ));
        }
        if launch.src_memory_layout != MemoryLayout::Pitch
            || launch.dst_memory_layout != MemoryLayout::Pitch
        {
            return refuse("a block-linear layout");
        }
        if launch.copy_type != 0 || launch.vprmode || launch.memory_scrub_enable {
            return refuse("a copy type other than the default");
        }
        let registers = &self.registers;
        let number = |method: MethodAddr| u64::from(registers.get(method.bytes()));
        let transfer = Transfer {
            source: registers.upper_lower(copy::OFFSET_IN_UPPER.bytes()),
            target: registers.upper_lower(copy::OFFSET_OUT_UPPER.bytes()),
            source_pitch: number(copy::PITCH_IN),
            target_pitch: number(copy::PITCH_OUT),
            length: number(copy::LINE_LENGTH_IN),
            lines: if launch.multi_line_enable {
                number(copy::LINE_COUNT)
            } else {
                1
            },
        };
        if launch.remap_enable {
            return self.remap(context, transfer);
        }
        for_each_line(context, transfer, |transfer| {
            access::copy(
                &*context.table,
                transfer.source,
                transfer.target,
                transfer.length,
            )
            .map_err(context.mmu(COPY.0))
        })
    }

    /// Copies elements whose components are put together from the source's and two constants.
    fn remap(&self, context: &Context<'_>, transfer: Transfer) -> Result<(), Stop> {
        let remap = self.registers.get(copy::SET_REMAP_COMPONENTS.bytes());
        let remap =
            SetRemapComponents::decode(remap).map_err(|error| bad_data(COPY.0, COPY.1, error))?;
        let size = remap.component_size.count() as usize;
        let from = size * remap.num_src_components.count() as usize;
        let to = size * remap.num_dst_components.count() as usize;
        let constants = [copy::SET_REMAP_CONST_A, copy::SET_REMAP_CONST_B]
            .map(|method| self.registers.get(method.bytes()).to_le_bytes());
        let components = [remap.dst_x, remap.dst_y, remap.dst_z, remap.dst_w];
        let components = components
            .get(..remap.num_dst_components.count() as usize)
            .unwrap_or(&[]);
        let reads = components
            .iter()
            .any(|component| component_of_source(*component).is_some());
        let keeps = components.contains(&RemapSource::NoWrite);
        let last = components
            .iter()
            .filter_map(|component| component_of_source(*component))
            .max();
        if last.is_some_and(|last| last >= remap.num_src_components.count() as usize) {
            let text = format!(
                "SET_REMAP_COMPONENTS: {remap:?} takes a component that the source has not"
            );
            return Err(bad_data(COPY.0, COPY.1, text));
        }

        const ELEMENTS: usize = 256;
        let (mut source, mut target) = (vec![0; from * ELEMENTS], vec![0; to * ELEMENTS]);
        for_each_line(context, transfer, |line| {
            let mut done = 0;
            while done < line.length {
                // `length` counts elements here.
                let count = (line.length - done).min(ELEMENTS as u64) as usize;
                let at = line.source.wrapping_add(done * from as u64);
                let out = line.target.wrapping_add(done * to as u64);
                let (source, target) = (
                    source.get_mut(..from * count).unwrap_or_default(),
                    target.get_mut(..to * count).unwrap_or_default(),
                );
                if reads {
                    access::read(&*context.table, at, source).map_err(context.mmu(COPY.0))?;
                }
                if keeps {
                    access::read(&*context.table, out, target).map_err(context.mmu(COPY.0))?;
                }
                for (target, source) in target.chunks_exact_mut(to).zip(source.chunks_exact(from)) {
                    for (slot, component) in target.chunks_exact_mut(size).zip(components) {
                        let value = match component {
                            RemapSource::ConstA => constants[0].get(..size),
                            RemapSource::ConstB => constants[1].get(..size),
                            other => component_of_source(*other)
                                .and_then(|index| source.get(index * size..(index + 1) * size)),
                        };
                        if let Some(value) = value {
                            slot.copy_from_slice(value);
                        }
                    }
                }
                access::write(&*context.table, out, target).map_err(context.mmu(COPY.0))?;
                done += count as u64;
            }
            Ok(())
        })
    }

    fn release(&self, context: &Context<'_>, launch: &LaunchDma) -> Result<(), Stop> {
        let timestamp = match launch.semaphore_type {
            SemaphoreType::None => return Ok(()),
            SemaphoreType::OneWord | SemaphoreType::ConditionalInterrupt => false,
            SemaphoreType::FourWord => true,
        };
        let registers = &self.registers;
        let lower = u64::from(registers.get(copy::SET_SEMAPHORE_PAYLOAD.bytes()));
        let upper = u64::from(registers.get(copy::SET_SEMAPHORE_PAYLOAD_UPPER.bytes()));
        let wide = launch.semaphore_payload_two_word;
        let reduction = launch.semaphore_reduction_enable.then_some({
            let how = match launch.semaphore_reduction {
                SemaphoreReduction::Min => Reduction::Min,
                SemaphoreReduction::Max => Reduction::Max,
                SemaphoreReduction::Xor => Reduction::Xor,
                SemaphoreReduction::And => Reduction::And,
                SemaphoreReduction::Or => Reduction::Or,
                SemaphoreReduction::Add => Reduction::Add,
                SemaphoreReduction::Inc => Reduction::Inc,
                SemaphoreReduction::Dec => Reduction::Dec,
                SemaphoreReduction::FloatAdd => Reduction::FloatAdd,
                SemaphoreReduction::FloatMin => Reduction::FloatMin,
                SemaphoreReduction::FloatMax => Reduction::FloatMax,
            };
            (how, !launch.semaphore_reduction_unsigned)
        });
        Release {
            va: registers.upper_lower(copy::SET_SEMAPHORE_A.bytes()),
            payload: if wide { upper << 32 | lower } else { lower },
            wide,
            timestamp,
            reduction,
        }
        .perform(context, COPY.0, COPY.1)
    }
}

/// Runs `each` on every line, in order; a freed channel ends it.
fn for_each_line(
    context: &Context<'_>,
    transfer: Transfer,
    mut each: impl FnMut(Transfer) -> Result<(), Stop>,
) -> Result<(), Stop> {
    for line in 0..transfer.lines {
        if context
            .channel
            .cancel
            .load(std::sync::atomic::Ordering::Relaxed)
        {
            return Err(Stop::Cancelled);
        }
        each(Transfer {
            source: transfer.source.wrapping_add(line * transfer.source_pitch),
            target: transfer.target.wrapping_add(line * transfer.target_pitch),
            ..transfer
        })?;
    }
    Ok(())
}

fn component_of_source(component: RemapSource) -> Option<usize> {
    match component {
        RemapSource::SrcX => Some(0),
        RemapSource::SrcY => Some(1),
        RemapSource::SrcZ => Some(2),
        RemapSource::SrcW => Some(3),
        RemapSource::ConstA | RemapSource::ConstB | RemapSource::NoWrite => None,
    }
}
