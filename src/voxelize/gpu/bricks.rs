//! Solid voxels gathered into bricks of 4 x 4 x 4 by prefix sums, so that memory follows the solid and not the grid.
//!
//! Why 4: a brick with a halo of one voxel and 9 labels of two words takes 6^3 x 72 = 15.5 KB of workgroup memory, which
//! the default limit of 16 KiB holds. See `shaders/bricks.wgsl`.

use bytemuck::{Pod, Zeroable};
use glam::UVec3;
use wgpu::{Buffer, CommandEncoder, Device};

use crate::error::{Error, Result};
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::block_on;
use crate::gpu::{BitBuffer, Kernel, Module, Readback, Slab, storage, too_large, uniforms};

/// The text of the shader, part by part.
pub const WGSL: [&str; 3] = [
    include_str!("../../../shaders/common/dispatch.wgsl"),
    include_str!("../../../shaders/common/scan.wgsl"),
    include_str!("../../../shaders/bricks.wgsl"),
];

/// Voxels along the edge of a brick on the GPU.
pub const EDGE: u32 = 4;
/// What [`GpuBricks::slots`] holds where a brick has no solid voxel.
pub const ABSENT: u32 = u32::MAX;

const WORKGROUP: u32 = 256;
/// Places of a block: each invocation looks at 4, `RUN` of the shader.
const BLOCK: u32 = WORKGROUP * 4;

/// `BrickParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct BrickParams {
    pub dims: [u32; 3],
    pub words_per_row: u32,
    pub extent: [u32; 3],
    pub first_slice: u32,
    pub first_place: u32,
    pub places: u32,
    pub first_block: u32,
    pub blocks: u32,
}

/// A brick with at least one solid voxel, as the kernels see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Brick {
    /// Brick coordinates (voxel coordinates divided by 4), 10 bits each, x lowest.
    pub place: u32,
    /// Solid voxels in the bricks before: the index of this brick's first solid voxel.
    pub first_voxel: u32,
    /// Which voxels are solid: bit x + 4 y + 16 z of the coordinates in the brick, low word first. The solid voxels of a
    /// brick are indexed in the order of these bits.
    pub mask: [u32; 2],
}

/// How many bricks hold a solid voxel, and how many voxels are solid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrickTotals {
    pub bricks: u32,
    pub voxels: u32,
}

/// The kernels that gather bricks.
#[derive(Debug)]
pub struct BrickKernels {
    count: Kernel,
    sum_blocks: Kernel,
    write: Kernel,
}

impl BrickKernels {
    /// Compiles them; faults go to the device's error scope.
    pub fn new(device: &Device) -> Self {
        Self::from_wgsl(device, &WGSL)
    }

    /// Compiles them from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, wgsl: &[&str]) -> Self {
        let module = Module::new(device, "bricks", wgsl);
        let kernel = |entry| module.kernel(device, entry, WORKGROUP, &[]);
        Self { count: kernel("count"), sum_blocks: kernel("sum_blocks"), write: kernel("write_bricks") }
    }

    /// Records the counting of bricks and solid voxels. Once that has run, [`BrickJob::totals`] tells what the rest takes.
    ///
    /// # Errors
    /// [`Error::Limit`] where the device's bindings are too small for the grid.
    pub fn count(&self, device: &Device, encoder: &mut CommandEncoder, solid: &BitBuffer) -> Result<BrickJob> {
        let extent = extent(solid.dims());
        let slabs = solid.slabs(0)?;
        let mut params: Vec<BrickParams> = Vec::new();
        let mut blocks = 0;
        for slab in &slabs {
            let layer = extent.x * extent.y;
            let places = layer * slab.slices.div_ceil(EDGE);
            params.push(BrickParams {
                dims: solid.dims().to_array(),
                words_per_row: solid.words_per_row(),
                extent: extent.to_array(),
                first_slice: slab.bound_first,
                first_place: layer * (slab.first / EDGE),
                places,
                first_block: blocks,
                blocks: 0,
            });
            blocks += places.div_ceil(BLOCK);
        }
        params.iter_mut().for_each(|p| p.blocks = blocks);
        let sums = storage(device, "sums of blocks of bricks", u64::from(blocks + 1) * 8);
        let uniforms = uniforms(device, &params);
        let mut pass = encoder
            .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("count bricks"), timestamp_writes: None });
        for (k, (slab, params)) in slabs.iter().zip(&params).enumerate() {
            let entries = [(0, uniforms.at(k)), (1, solid.binding(slab)), (2, sums.as_entire_binding())];
            let bind = self.count.bind(device, &entries);
            self.count.dispatch_groups(&mut pass, &bind, params.places.div_ceil(BLOCK).into())?;
        }
        let bind = self.sum_blocks.bind(device, &[(0, uniforms.at(0)), (2, sums.as_entire_binding())]);
        self.sum_blocks.dispatch_groups(&mut pass, &bind, 1)?;
        drop(pass);
        let totals = Readback::record(device, encoder, &sums, u64::from(blocks) * 8, 8);
        Ok(BrickJob { device: device.clone(), dims: solid.dims(), extent, slabs, params, sums, totals: Some(totals) })
    }
}

/// Bricks along each axis of a grid with these voxels.
pub(crate) fn extent(dims: UVec3) -> UVec3 {
    (dims + (EDGE - 1)) / EDGE
}

/// Bricks that were counted and are to be written.
#[derive(Debug)]
pub struct BrickJob {
    device: Device,
    dims: UVec3,
    extent: UVec3,
    slabs: Vec<Slab>,
    params: Vec<BrickParams>,
    sums: Buffer,
    totals: Option<Readback>,
}

impl BrickJob {
    /// How many there are, once the encoder of [`BrickKernels::count`] was submitted. To be asked once.
    ///
    /// # Errors
    /// As for [`Readback::read`], and [`Error::Check`] where it was asked before.
    pub async fn totals(&mut self) -> Result<BrickTotals> {
        let totals =
            self.totals.take().ok_or_else(|| Error::Check("the totals of the bricks were read before".to_string()))?;
        let sums = totals.read::<u32>().await?;
        Ok(BrickTotals { bricks: sums[0], voxels: sums[1] })
    }

    /// [`BrickJob::totals`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn totals_blocking(&mut self) -> Result<BrickTotals> {
        block_on(&self.device.clone(), self.totals())
    }

    /// Allocates the list of bricks for the totals and records its writing. `solid` must be what was counted.
    ///
    /// # Errors
    /// [`Error::Limit`] where the list or the grid of bricks does not fit a binding.
    pub fn write(
        self,
        kernels: &BrickKernels,
        encoder: &mut CommandEncoder,
        solid: &BitBuffer,
        totals: BrickTotals,
    ) -> Result<GpuBricks> {
        let list = self.allocate("bricks", u64::from(totals.bricks), size_of::<Brick>() as u64)?;
        let places = self.extent.to_array().into_iter().map(u64::from).product();
        let slots = self.allocate("places of bricks", places, 4)?;
        let uniforms = uniforms(&self.device, &self.params);
        let mut pass = encoder
            .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("write bricks"), timestamp_writes: None });
        for (k, (slab, params)) in self.slabs.iter().zip(&self.params).enumerate() {
            let entries = [
                (0, uniforms.at(k)),
                (1, solid.binding(slab)),
                (2, self.sums.as_entire_binding()),
                (3, list.as_entire_binding()),
                (4, slots.as_entire_binding()),
            ];
            let bind = kernels.write.bind(&self.device, &entries);
            kernels.write.dispatch_groups(&mut pass, &bind, params.places.div_ceil(BLOCK).into())?;
        }
        drop(pass);
        Ok(GpuBricks { dims: self.dims, extent: self.extent, totals, list, slots })
    }

    fn allocate(&self, what: &str, count: u64, bytes: u64) -> Result<Buffer> {
        let limits = self.device.limits();
        let limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        if count * bytes > limit {
            let what = format!("{count} {what} of 4 x 4 x 4 voxels");
            return Err(too_large(&self.device.adapter_info().name, what, count * bytes, limit, self.dims));
        }
        // At least one entry, so that the binding holds the shader's array.
        Ok(storage(&self.device, what, count.max(1) * bytes))
    }
}

/// The solid voxels as bricks on the device.
#[derive(Debug)]
pub struct GpuBricks {
    dims: UVec3,
    extent: UVec3,
    totals: BrickTotals,
    list: Buffer,
    slots: Buffer,
}

impl GpuBricks {
    /// Voxels along each axis of the grid.
    pub fn dims(&self) -> UVec3 {
        self.dims
    }

    /// Bricks along each axis of the grid, empty ones counted.
    pub fn extent(&self) -> UVec3 {
        self.extent
    }

    /// How many bricks and solid voxels there are.
    pub fn totals(&self) -> BrickTotals {
        self.totals
    }

    /// The bricks that hold a solid voxel ([`Brick`]), by place: x fastest, then y, then z.
    pub fn list(&self) -> &Buffer {
        &self.list
    }

    /// For each place of the grid of bricks, x fastest, the number of its brick in the list, or [`ABSENT`].
    pub fn slots(&self) -> &Buffer {
        &self.slots
    }
}
