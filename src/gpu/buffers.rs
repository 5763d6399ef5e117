//! Buffers: storage, uniforms, and one bit a voxel in slabs that a binding can hold.

use std::num::NonZero;

use bytemuck::NoUninit;
use glam::UVec3;
use wgpu::util::DeviceExt;
use wgpu::{BindingResource, Buffer, BufferBinding, BufferUsages, CommandEncoder, Device};

use crate::error::Result;
use crate::gpu::limits::too_large;
use crate::gpu::readback::Readback;
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::readback::block_on;
use crate::model::BitGrid;

/// What buffers between stages are used for.
const STORAGE: BufferUsages = BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST);

/// A storage buffer of zeros. Never empty, since empty buffers cannot be bound.
pub fn storage(device: &Device, label: &str, bytes: u64) -> Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: bytes.next_multiple_of(4).max(4),
        usage: STORAGE,
        mapped_at_creation: false,
    })
}

/// A storage buffer with these values, at least one.
pub fn storage_with<T: NoUninit>(device: &Device, label: &str, values: &[T]) -> Buffer {
    device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some(label),
        contents: bytemuck::cast_slice(values),
        usage: STORAGE,
    })
}

/// One uniform buffer with a value for each of several dispatches, and a binding for each of them.
pub struct Uniforms {
    buffer: Buffer,
    stride: u64,
    size: u64,
}

/// The uniforms of several dispatches in one buffer.
pub fn uniforms<T: NoUninit>(device: &Device, values: &[T]) -> Uniforms {
    let size = size_of::<T>() as u64;
    let stride = size.next_multiple_of(u64::from(device.limits().min_uniform_buffer_offset_alignment));
    let mut bytes = vec![0; stride as usize * values.len().max(1)];
    for (value, place) in values.iter().zip(bytes.chunks_mut(stride as usize)) {
        place[..size as usize].copy_from_slice(bytemuck::bytes_of(value));
    }
    let buffer = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some("uniforms"),
        contents: &bytes,
        usage: BufferUsages::UNIFORM,
    });
    Uniforms { buffer, stride, size }
}

impl Uniforms {
    /// The binding of one dispatch's value.
    pub fn at(&self, index: usize) -> BindingResource<'_> {
        BindingResource::Buffer(BufferBinding {
            buffer: &self.buffer,
            offset: self.stride * index as u64,
            size: NonZero::new(self.size),
        })
    }
}

/// A run of slices of a grid that one dispatch works on, within the slices that its binding shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slab {
    /// The slices to work on: first and how many.
    pub first: u32,
    pub slices: u32,
    /// The slices to be seen: those and neighbours below and above.
    pub bound_first: u32,
    pub bound_slices: u32,
}

/// A bit for each voxel of a grid on the device: the words of [`BitGrid`] as pairs of u32, low half first.
#[derive(Debug)]
pub struct BitBuffer {
    device: Device,
    buffer: Buffer,
    dims: UVec3,
    max_binding: u64,
}

impl BitBuffer {
    /// All bits 0. `max_binding` is the most bytes to bind at once: more is worked on slab by slab.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] where the device's buffers do not hold the grid.
    pub fn new(device: &Device, label: &str, dims: UVec3, max_binding: u64) -> Result<Self> {
        let bytes = Self::bytes(dims);
        let limit = device.limits().max_buffer_size;
        if bytes > limit {
            return Err(too_large(&device.adapter_info().name, label.to_string(), bytes, limit, dims));
        }
        let buffer = storage(device, label, bytes);
        Ok(Self { device: device.clone(), buffer, dims, max_binding })
    }

    /// A copy of bits on the host.
    ///
    /// # Errors
    /// As for [`BitBuffer::new`].
    pub fn upload(device: &Device, queue: &wgpu::Queue, label: &str, bits: &BitGrid, max_binding: u64) -> Result<Self> {
        let new = Self::new(device, label, bits.dims(), max_binding)?;
        // All hosts that wgpu runs on are little-endian, as devices are.
        queue.write_buffer(&new.buffer, 0, bytemuck::cast_slice(bits.words()));
        Ok(new)
    }

    /// Bytes that a grid of bits takes.
    pub fn bytes(dims: UVec3) -> u64 {
        u64::from(dims.x.div_ceil(64)) * 8 * u64::from(dims.y) * u64::from(dims.z)
    }

    /// Voxels along each axis.
    pub fn dims(&self) -> UVec3 {
        self.dims
    }

    /// 32-bit words a row.
    pub fn words_per_row(&self) -> u32 {
        self.dims.x.div_ceil(64) * 2
    }

    /// All words.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The most bytes to bind at once.
    pub fn max_binding(&self) -> u64 {
        self.max_binding
    }

    fn slice_bytes(&self) -> u64 {
        u64::from(self.words_per_row()) * 4 * u64::from(self.dims.y)
    }

    /// Slabs that cover the grid, each bound within the limit together with `halo` (at most 4) slices below and above.
    /// Slabs start at multiples of 4 slices, so that no brick of 4 voxels lies in two.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] where the limit holds too few slices.
    pub fn slabs(&self, halo: u32) -> Result<Vec<Slab>> {
        let (depth, slice_bytes) = (self.dims.z, self.slice_bytes());
        let fit = (self.max_binding / slice_bytes).min(u64::from(depth)) as u32;
        if fit == depth {
            return Ok(vec![Slab { first: 0, slices: depth, bound_first: 0, bound_slices: depth }]);
        }
        // Bindings start at multiples of the alignment, a power of two: that many slices, or a divisor of it, do.
        let alignment = u64::from(self.device.limits().min_storage_buffer_offset_alignment);
        let step = 4.max((alignment >> slice_bytes.trailing_zeros()) as u32);
        let below = if halo == 0 { 0 } else { step };
        let slices = fit.saturating_sub(below + halo) / step * step;
        if slices == 0 {
            let needed = u64::from(step + below + halo) * slice_bytes;
            let name = self.device.adapter_info().name;
            return Err(too_large(&name, "slices of voxels".to_string(), needed, self.max_binding, self.dims));
        }
        let slab = |first: u32| {
            let end = (first + slices).min(depth);
            let (bound_first, bound_end) = (first.saturating_sub(below), (end + halo).min(depth));
            Slab { first, slices: end - first, bound_first, bound_slices: bound_end - bound_first }
        };
        Ok((0..depth).step_by(slices as usize).map(slab).collect())
    }

    /// The words that a slab sees.
    pub fn binding(&self, slab: &Slab) -> BindingResource<'_> {
        BindingResource::Buffer(BufferBinding {
            buffer: &self.buffer,
            offset: u64::from(slab.bound_first) * self.slice_bytes(),
            size: NonZero::new(u64::from(slab.bound_slices) * self.slice_bytes()),
        })
    }

    /// Records a read-back of all bits.
    pub fn record_readback(&self, encoder: &mut CommandEncoder) -> BitReadback {
        BitReadback {
            dims: self.dims,
            words: Readback::record(&self.device, encoder, &self.buffer, 0, Self::bytes(self.dims)),
        }
    }
}

/// Bits on their way from the device.
#[derive(Debug)]
pub struct BitReadback {
    dims: UVec3,
    words: Readback,
}

impl BitReadback {
    /// The bits; see [`Readback::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(self) -> Result<BitGrid> {
        let words: Vec<u64> = self.words.read().await?;
        let mut bits = BitGrid::new(self.dims);
        bits.words_mut().copy_from_slice(&words);
        Ok(bits)
    }

    /// [`BitReadback::read`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_blocking(self) -> Result<BitGrid> {
        block_on(&self.words.device().clone(), self.read())
    }
}
