//! The voxels that the surface touches, after Schwarz and Seidel 2010 with one work item a triangle and tile; the rule,
//! exact in integers, stands in `shaders/common/contact.wgsl`.

use std::borrow::Cow;

use bytemuck::{Pod, Zeroable};
use glam::{IVec3, UVec3};
use rayon::prelude::*;
use wgpu::{Buffer, CommandEncoder, Device};

use crate::error::{Error, Result};
use crate::gpu::{BitBuffer, Kernel, Module, Slab, storage_with, uniforms};
use crate::model::{Grid, LATTICE, Mesh};

/// The text of the shader, part by part.
pub const WGSL: [&str; 3] = [
    include_str!("../../../shaders/common/dispatch.wgsl"),
    include_str!("../../../shaders/common/contact.wgsl"),
    include_str!("../../../shaders/voxelize.wgsl"),
];

/// Logarithm of the edge of a tile along y and z. Smaller tiles spread large triangles better, larger ones prepare
/// fewer triangles twice.
const TILE_BITS: u32 = 2;
/// Items of a step. An item costs at most 16 rows x 32 voxels x ~100 operations, so a step of nothing but the worst
/// takes some 5e10: up to 50 ms on a mid-range GPU; one of common triangles a hundredth of that.
const STEP_ITEMS: u32 = 1 << 20;
/// Most triangles that share a pair of buffers, of 36 and 4 bytes each: far below the limits of most devices.
const GROUP_TRIANGLES: usize = 1 << 20;
/// Bytes a triangle takes on the device.
pub(crate) const TRIANGLE_BYTES: u64 = (size_of::<[IVec3; 3]>() + size_of::<u32>()) as u64;
/// Items of a group, so that they are numbered in 32 bits.
const GROUP_ITEMS: u32 = 1 << 31;

/// `SurfaceParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct SurfaceParams {
    pub dims: [u32; 3],
    pub words_per_row: u32,
    pub slab_first: u32,
    pub slab_slices: u32,
    pub triangles: u32,
    pub first_item: u32,
    pub items: u32,
    pub padding: [u32; 3],
}

/// The kernel that marks touched voxels.
#[derive(Debug)]
pub struct SurfaceKernels {
    surface: Kernel,
}

impl SurfaceKernels {
    /// Compiles it; faults go to the device's error scope.
    pub fn new(device: &Device) -> Self {
        Self::from_wgsl(device, &WGSL)
    }

    /// Compiles it from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, wgsl: &[&str]) -> Self {
        let module = Module::new(device, "voxelize", wgsl);
        Self { surface: module.kernel(device, "surface", 64, &[("TILE_BITS", f64::from(TILE_BITS))]) }
    }

    /// Uploads the triangles and makes the bits, all 0. `max_binding` is the most bytes to bind at once, normally the
    /// device's `max_storage_buffer_binding_size`.
    ///
    /// # Errors
    /// [`Error::Limit`] where the bits do not fit the device, [`Error::Parameter`] where a triangle leaves the grid.
    pub fn start(&self, device: &Device, mesh: &Mesh, grid: &Grid, max_binding: u64) -> Result<SurfaceJob> {
        let bits = BitBuffer::new(device, "surface voxels", grid.dims(), max_binding)?;
        let triangles = lattice_triangles(mesh, grid)?;
        let mut groups = Vec::new();
        let fit = max_binding.min(device.limits().max_buffer_size) as usize / size_of::<[IVec3; 3]>();
        let most = fit.clamp(1, GROUP_TRIANGLES);
        for slab in bits.slabs(0)? {
            group(device, &triangles, slab, grid.dims(), most, &mut groups);
        }
        let total = groups.iter().map(|g| u64::from(g.items)).sum();
        Ok(SurfaceJob { device: device.clone(), bits, groups, group: 0, item: 0, done: 0, total })
    }
}

/// Triangles that share buffers, with their tiles in a slab.
#[derive(Debug)]
struct Group {
    slab: Slab,
    corners: Buffer,
    first_items: Buffer,
    triangles: u32,
    items: u32,
}

/// The marking of a mesh' voxels, step by step.
#[derive(Debug)]
pub struct SurfaceJob {
    device: Device,
    bits: BitBuffer,
    groups: Vec<Group>,
    /// The next group and the next of its items.
    group: usize,
    item: u32,
    done: u64,
    total: u64,
}

impl SurfaceJob {
    /// Records up to this many steps; a step takes at most some 50 ms on a mid-range GPU. Returns how many were
    /// recorded: fewer where all is done.
    ///
    /// # Errors
    /// None as long as the constants of this file are what they are; see [`Kernel::dispatch`].
    pub fn record(&mut self, kernels: &SurfaceKernels, encoder: &mut CommandEncoder, steps: usize) -> Result<usize> {
        let mut steps_of_group = Vec::new();
        while steps_of_group.len() < steps {
            let Some(group) = self.groups.get(self.group) else { break };
            let items = STEP_ITEMS.min(group.items - self.item);
            steps_of_group.push((self.group, self.params(group, items)));
            self.done += u64::from(items);
            self.item += items;
            if self.item == group.items {
                (self.group, self.item) = (self.group + 1, 0);
            }
        }
        if steps_of_group.is_empty() {
            return Ok(0);
        }
        let params: Vec<SurfaceParams> = steps_of_group.iter().map(|(_, params)| *params).collect();
        let uniforms = uniforms(&self.device, &params);
        let mut pass = encoder
            .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("surface voxels"), timestamp_writes: None });
        for (step, (group, params)) in steps_of_group.iter().enumerate() {
            let group = &self.groups[*group];
            let bind = kernels.surface.bind(
                &self.device,
                &[
                    (0, uniforms.at(step)),
                    (1, group.corners.as_entire_binding()),
                    (2, group.first_items.as_entire_binding()),
                    (3, self.bits.binding(&group.slab)),
                ],
            );
            kernels.surface.dispatch(&mut pass, &bind, u64::from(params.items))?;
        }
        Ok(steps_of_group.len())
    }

    fn params(&self, group: &Group, items: u32) -> SurfaceParams {
        SurfaceParams {
            dims: self.bits.dims().to_array(),
            words_per_row: self.bits.words_per_row(),
            slab_first: group.slab.first,
            slab_slices: group.slab.slices,
            triangles: group.triangles,
            first_item: self.item,
            items,
            padding: [0; 3],
        }
    }

    /// Whether all steps were recorded.
    pub fn is_done(&self) -> bool {
        self.group == self.groups.len()
    }

    /// The recorded share of the work, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.done as f64 / self.total as f64 }
    }

    /// The voxels that the surface touches; complete when the last step has run.
    pub fn bits(&self) -> &BitBuffer {
        &self.bits
    }

    /// The bits, without the triangles.
    pub fn into_bits(self) -> BitBuffer {
        self.bits
    }
}

/// Corners of the triangles on the grid's lattice.
fn lattice_triangles(mesh: &Mesh, grid: &Grid) -> Result<Vec<[IVec3; 3]>> {
    let points: Vec<IVec3> = mesh.positions().par_iter().map(|p| grid.lattice(*p)).collect();
    // Beyond the grid the shader's 32 bits would not do.
    let end = grid.dims().as_ivec3() * LATTICE;
    let triangles: Vec<_> = mesh.triangles().par_iter().map(|t| t.map(|v| points[v as usize])).collect();
    let inside = |p: &IVec3| p.cmpge(IVec3::ZERO).all() && p.cmple(end).all();
    match triangles.iter().position(|t| !t.iter().all(inside)) {
        None => Ok(triangles),
        Some(triangle) => Err(Error::Parameter {
            name: "grid",
            value: format!("too small for triangle {triangle} (0-based)"),
            allowed: "it must be a grid around the mesh's bounds",
        }),
    }
}

/// Gathers the triangles that reach a slab into groups of at most `most`, with the number of tiles before each.
fn group(device: &Device, triangles: &[[IVec3; 3]], slab: Slab, dims: UVec3, most: usize, groups: &mut Vec<Group>) {
    let all: Vec<u32> = triangles.par_iter().map(|t| tiles_of(t, slab, dims)).collect();
    let (mut kept, mut tiles) = (Cow::Borrowed(triangles), Cow::Borrowed(all.as_slice()));
    if all.contains(&0) {
        let reaching = || (0..all.len()).filter(|&t| all[t] > 0);
        kept = Cow::Owned(reaching().map(|t| triangles[t]).collect());
        tiles = Cow::Owned(reaching().map(|t| all[t]).collect());
    }
    let mut start = 0;
    while start < kept.len() {
        let (mut first_items, mut items) = (Vec::new(), 0u32);
        for &tiles in tiles[start..].iter().take(most) {
            if items > GROUP_ITEMS - tiles {
                break;
            }
            first_items.push(items);
            items += tiles;
        }
        let end = start + first_items.len();
        groups.push(Group {
            slab,
            corners: storage_with(device, "triangles", &kept[start..end]),
            first_items: storage_with(device, "first tiles of triangles", &first_items),
            triangles: first_items.len() as u32,
            items,
        });
        start = end;
    }
}

/// How many tiles a triangle's bounding box touches in a slab, contact included; as in the shader.
fn tiles_of([a, b, c]: &[IVec3; 3], slab: Slab, dims: UVec3) -> u32 {
    let slab_end = dims.as_ivec3().with_z((slab.first + slab.slices) as i32);
    let low: IVec3 = (a.min(*b).min(*c) + (LATTICE - 1)) >> 8;
    let low = (low - 1).max(IVec3::new(0, 0, slab.first as i32));
    let high: IVec3 = a.max(*b).max(*c) >> 8;
    let high = high.min(slab_end - 1);
    if low.cmpgt(high).any() {
        return 0;
    }
    let bits = IVec3::new(5, TILE_BITS as i32, TILE_BITS as i32);
    ((high >> bits) - (low >> bits) + 1).element_product() as u32
}

const _: () = assert!(LATTICE == 1 << 8, "the shifts by 8 here and STEP_BITS in the shader stand for the lattice step");
