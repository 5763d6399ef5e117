//! Weights on the GPU: sample, falloff, cap, threshold and normalise in one kernel, into buffers that a renderer can bind
//! as they are. See `shaders/influence.wgsl`; the formula is that of `reference.rs`.

mod weights;

use std::num::NonZero;

use bytemuck::{Pod, Zeroable};
use glam::DVec3;
use wgpu::{BindGroup, BindingResource, Buffer, BufferBinding, CommandEncoder, Device, Queue};

pub use self::weights::{GpuWeights, WeightsReadback};
use crate::crawl::gpu::{GpuLabels, Window, label_count};
use crate::error::{Error, Result};
use crate::gpu::{Kernel, Module, catch, finished, storage_with, uniforms};
use crate::influence::{Falloff, LENGTH_FLOOR, Limits};
use crate::model::Grid;
use crate::progress::{Progress, Stage};
use crate::voxelize::gpu::GpuBricks;

/// The text of the shader, part by part; in front of it stands the number of labels, [`label_count`].
pub const WGSL: [&str; 3] = [
    include_str!("../../shaders/common/dispatch.wgsl"),
    include_str!("../../shaders/common/labels.wgsl"),
    include_str!("../../shaders/influence.wgsl"),
];

const WORKGROUP: u32 = 64;
/// Positions a step are a multiple of this, so that bindings of steps begin where every device lets them: a multiple of 256
/// bytes even for joints of 8 bytes a position.
const STEP_UNIT: usize = 64;
/// Words of `figures` before the joints of ranks; `JOINT_OF` of the shader.
const FIGURES: usize = 2;
/// Operations of a dispatch: some 50 ms where a mid-range GPU does 5 x 10^11 of them a second, a tenth of its peak.
const DISPATCH_OPERATIONS: u64 = 25_000_000_000;
/// Operations for each pair of labels around a position: each is looked for among those before it.
const PAIR_OPERATIONS: u64 = 8;
/// Least distance of a position from the low and the high side of its cell where it is not 0 in f64: what counts in f64
/// must count in f32 too, also as a product of three. It moves a position by less than 2^-39 voxel.
const LEAST_BEYOND: f64 = 1.0 / (1u64 << 40) as f64;
/// The largest f32 below 1: beyond it the low side would lose its share.
const MOST_BEYOND: f64 = 1.0 - 1.0 / (1u64 << 24) as f64;

/// `InfluenceParams` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct InfluenceParams {
    pub window: Window,
    pub extent: [u32; 3],
    pub positions: u32,
    pub scale: f32,
    pub floor: f32,
    pub smoothing: f32,
    pub power: f32,
    pub whole_power: u32,
    pub most: u32,
    pub places: u32,
    pub threshold: f32,
    pub considered: u32,
    pub is_short: u32,
    pub padding: [u32; 2],
}

/// `Position` of the shader.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Position {
    pub low_x: i32,
    pub low_y: i32,
    pub low_z: i32,
    pub beyond_x: f32,
    pub beyond_y: f32,
    pub beyond_z: f32,
}

impl Position {
    fn new(grid: &Grid, p: DVec3) -> Self {
        let at = grid.to_middle(p);
        let low = at.floor();
        let [low_x, low_y, low_z] = (low.as_ivec3() + (grid.dims() / 2).as_ivec3()).to_array();
        let beyond = |b: f64| if b == 0.0 { 0.0 } else { b.clamp(LEAST_BEYOND, MOST_BEYOND) as f32 };
        let [beyond_x, beyond_y, beyond_z] = (at - low).to_array().map(beyond);
        Self { low_x, low_y, low_z, beyond_x, beyond_y, beyond_z }
    }
}

/// How joints stand in their buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JointFormat {
    /// Four bytes each: vertex format `Uint32x4`.
    #[default]
    U32,
    /// Two bytes each: vertex format `Uint16x4`.
    U16,
}

/// What becomes of the raw weights.
#[derive(Debug, Clone, Copy)]
struct Cut {
    most: usize,
    threshold: f64,
    considered: usize,
    format: JointFormat,
}

/// The kernel for a number of labels a voxel.
#[derive(Debug)]
pub struct InfluenceKernels {
    labels: usize,
    /// Positions of a step.
    step: usize,
    weigh: Kernel,
}

/// The mesh's measures that the formula needs: its positions, the grid they are in and the diagonal of its bounding box in
/// world units.
#[derive(Debug, Clone, Copy)]
pub struct Surface<'a> {
    pub grid: &'a Grid,
    pub positions: &'a [DVec3],
    pub diagonal: f64,
}

impl InfluenceKernels {
    /// Compiles it for the labels of [`GpuLabels::per_voxel`].
    ///
    /// # Errors
    /// [`Error::Device`] where the device does not take it.
    pub async fn new(device: &Device, labels: usize) -> Result<Self> {
        catch(device, "compiling the weights", || Ok(Self::from_wgsl(device, labels, &WGSL))).await
    }

    /// Compiles it from another text, for tests that break the shader on purpose.
    #[doc(hidden)]
    pub fn from_wgsl(device: &Device, labels: usize, wgsl: &[&str]) -> Self {
        let count = label_count(labels);
        let parts: Vec<&str> = std::iter::once(count.as_str()).chain(wgsl.iter().copied()).collect();
        let module = Module::new(device, "influence", &parts);
        let step = (DISPATCH_OPERATIONS / ((8 * labels as u64).pow(2) * PAIR_OPERATIONS)) as usize;
        let step = step / STEP_UNIT * STEP_UNIT;
        Self { labels, step, weigh: module.kernel(device, "weigh", WORKGROUP, &[]) }
    }

    /// The same with this many positions a step, rounded up to a multiple of 64, for tests of steps.
    #[doc(hidden)]
    pub fn with_step(self, step: usize) -> Self {
        Self { step: step.next_multiple_of(STEP_UNIT), ..self }
    }

    /// Begins the weighing of positions, vertices or welded places. Each gets as many sets of four places as `limits` ask for.
    ///
    /// # Errors
    /// [`Error::Parameter`] for parameters out of range or labels that are not those of the kernel, [`Error::Limit`] where
    /// positions or weights do not fit the device.
    #[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
    pub fn start(
        &self,
        device: &Device,
        bricks: &GpuBricks,
        labels: &GpuLabels,
        surface: Surface,
        falloff: &Falloff,
        limits: &Limits,
        format: JointFormat,
    ) -> Result<InfluenceJob> {
        limits.check()?;
        let Limits { max_influences, threshold } = *limits;
        let cut = Cut { most: max_influences, threshold, considered: max_influences + 1, format };
        self.start_with(device, bricks, labels, surface, falloff, cut)
    }

    /// The same without cap and threshold: all influences of each position, as comparisons need them, since the cap may
    /// flip where two are all but equal.
    ///
    /// # Errors
    /// As for [`InfluenceKernels::start`].
    pub fn start_uncut(
        &self,
        device: &Device,
        bricks: &GpuBricks,
        labels: &GpuLabels,
        surface: Surface,
        falloff: &Falloff,
    ) -> Result<InfluenceJob> {
        let all = 8 * labels.per_voxel();
        let cut = Cut { most: all, threshold: 0.0, considered: all, format: JointFormat::U32 };
        self.start_with(device, bricks, labels, surface, falloff, cut)
    }

    /// Weighs positions from start to end and leaves the weights on the device. Submits to the queue, a step at a time, and
    /// asks `progress` between steps.
    ///
    /// # Errors
    /// As for [`InfluenceKernels::start`], [`Error::Device`], [`Error::Cancelled`].
    #[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
    pub async fn run(
        &self,
        device: &Device,
        queue: &Queue,
        bricks: &GpuBricks,
        labels: &GpuLabels,
        surface: Surface<'_>,
        falloff: &Falloff,
        limits: &Limits,
        progress: Progress<'_>,
    ) -> Result<GpuWeights> {
        progress.at(Stage::Influence, 0.0)?;
        let start = || self.start(device, bricks, labels, surface, falloff, limits, JointFormat::U32);
        let mut job = catch(device, "starting the weights", start).await?;
        while !job.is_done() {
            let chunk = || {
                let mut encoder = device.create_command_encoder(&Default::default());
                job.record(self, &mut encoder, 1)?;
                queue.submit([encoder.finish()]);
                Ok(())
            };
            catch(device, "the weights", chunk).await?;
            finished(queue).await;
            progress.at(Stage::Influence, job.fraction())?;
        }
        job.finish()
    }

    fn start_with(
        &self,
        device: &Device,
        bricks: &GpuBricks,
        labels: &GpuLabels,
        surface: Surface,
        falloff: &Falloff,
        cut: Cut,
    ) -> Result<InfluenceJob> {
        falloff.check()?;
        if labels.per_voxel() != self.labels {
            let value = self.labels.to_string();
            return Err(Error::Parameter { name: "labels", value, allowed: "it must be as many as the voxels have" });
        }
        let count = surface.positions.len();
        let places = cut.most.next_multiple_of(4);
        let step = self.step_within(device, count, places)?;
        let positions: Vec<Position> = surface.positions.iter().map(|p| Position::new(surface.grid, *p)).collect();
        let nothing = [Position::zeroed()];
        let positions = storage_with(device, "positions", if count == 0 { &nothing } else { &positions });
        let joint_bytes = if cut.format == JointFormat::U16 { 2 } else { 4 };
        let joints = vertex_buffer(device, "joints", (count * places) as u64 * joint_bytes);
        let weights = vertex_buffer(device, "weights", (count * places) as u64 * 4);
        let figures = [&[0; FIGURES], labels.bones()].concat();
        let figures = storage_with(device, "figures of the cut, and joints by rank", &figures);

        let whole = falloff.power == falloff.power.trunc();
        let params_of = |first: usize, window: Window| InfluenceParams {
            window,
            extent: bricks.extent().to_array(),
            positions: step.min(count - first) as u32,
            scale: (surface.grid.voxel() / surface.diagonal) as f32,
            floor: LENGTH_FLOOR as f32,
            smoothing: falloff.smoothing as f32,
            power: falloff.power as f32,
            whole_power: if whole { falloff.power as u32 } else { 0 },
            most: cut.most as u32,
            places: places as u32,
            threshold: cut.threshold as f32,
            considered: cut.considered as u32,
            is_short: u32::from(cut.format == JointFormat::U16),
            padding: [0; 2],
        };
        let windows = labels.windows();
        let turns: Vec<(usize, usize)> =
            (0..count).step_by(step).flat_map(|first| (0..windows.len()).map(move |window| (first, window))).collect();
        let params: Vec<_> = turns.iter().map(|&(first, window)| params_of(first, windows[window])).collect();
        let uniforms = uniforms(device, &params);
        let steps = turns
            .iter()
            .zip(&params)
            .enumerate()
            .map(|(k, (&(first, window), params))| {
                let [labels, more_labels] = labels.seen(window);
                let part =
                    |buffer, bytes: u64| binding(buffer, first as u64 * bytes, u64::from(params.positions) * bytes);
                let bindings = [
                    uniforms.at(k),
                    bricks.list().as_entire_binding(),
                    bricks.slots().as_entire_binding(),
                    labels.as_entire_binding(),
                    part(&positions, size_of::<Position>() as u64),
                    more_labels.as_entire_binding(),
                    part(&joints, places as u64 * joint_bytes),
                    part(&weights, places as u64 * 4),
                    figures.as_entire_binding(),
                ];
                let entries: Vec<_> = (0..).zip(bindings).collect();
                (self.weigh.bind(device, &entries), params.positions)
            })
            .collect();
        let weights = GpuWeights { joints, weights, figures, count, places, cut };
        Ok(InfluenceJob { steps, next: 0, weights })
    }

    /// Positions of a step, no more than bindings hold, if buffers hold all.
    fn step_within(&self, device: &Device, count: usize, places: usize) -> Result<usize> {
        let limits = device.limits();
        let bytes = (4 * places).max(size_of::<Position>()) as u64;
        let needed = count as u64 * bytes;
        if needed > limits.max_buffer_size {
            return Err(Error::Limit {
                what: "positions or weights of all vertices".into(),
                needed: format!("{needed} bytes in one buffer"),
                limit: format!("{} bytes on \"{}\"", limits.max_buffer_size, device.adapter_info().name),
                advice: "bind a mesh of fewer vertices, or take --device cpu".into(),
            });
        }
        let most = (limits.max_storage_buffer_binding_size / bytes) as usize;
        Ok(self.step.min(most / STEP_UNIT * STEP_UNIT).max(STEP_UNIT))
    }
}

fn binding(buffer: &Buffer, offset: u64, size: u64) -> BindingResource<'_> {
    BindingResource::Buffer(BufferBinding { buffer, offset, size: NonZero::new(size) })
}

/// A buffer that kernels write and renderers take vertices from.
fn vertex_buffer(device: &Device, label: &str, bytes: u64) -> Buffer {
    use wgpu::BufferUsages as Usages;
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(label),
        size: bytes.max(4),
        usage: Usages::STORAGE | Usages::VERTEX | Usages::COPY_SRC | Usages::COPY_DST,
        mapped_at_creation: false,
    })
}

/// A weighing under way, step by step.
#[derive(Debug)]
pub struct InfluenceJob {
    /// Bindings and number of positions of each dispatch.
    steps: Vec<(BindGroup, u32)>,
    next: usize,
    weights: GpuWeights,
}

impl InfluenceJob {
    /// Records up to this many steps, each at most some 50 ms on a mid-range GPU. Returns how many were recorded.
    ///
    /// # Errors
    /// None as long as the constants of this file are what they are; see [`Kernel::dispatch`].
    pub fn record(&mut self, kernels: &InfluenceKernels, encoder: &mut CommandEncoder, steps: usize) -> Result<usize> {
        let range = self.next..self.steps.len().min(self.next.saturating_add(steps));
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("weights"), timestamp_writes: None });
        for (bind, positions) in &self.steps[range.clone()] {
            kernels.weigh.dispatch(&mut pass, bind, u64::from(*positions))?;
        }
        self.next = range.end;
        Ok(range.len())
    }

    /// Whether all steps were recorded.
    pub fn is_done(&self) -> bool {
        self.next == self.steps.len()
    }

    /// The recorded share of the work, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.steps.is_empty() { 1.0 } else { self.next as f64 / self.steps.len() as f64 }
    }

    /// The weights; complete when the last step has run.
    ///
    /// # Errors
    /// [`Error::Check`] where steps are left to be recorded.
    pub fn finish(self) -> Result<GpuWeights> {
        if self.is_done() {
            Ok(self.weights)
        } else {
            Err(Error::Check("the weighing has not come to its end; record more steps".into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bounds;

    #[test]
    fn what_counts_in_f64_counts_in_f32() {
        let grid = Grid::around(&Bounds { min: DVec3::splat(-8.0), max: DVec3::splat(8.0) }, 16).expect("grid");
        let middle = (grid.dims() / 2).x as i32;
        for (x, low, beyond) in [
            (0.0, 0, 0.0),
            (1e-300, 0, LEAST_BEYOND as f32),
            (-1e-17, -1, MOST_BEYOND as f32),
            (0.25, 0, 0.25),
            (3.0 - 1e-12, 2, MOST_BEYOND as f32),
            (-3.0, -3, 0.0),
        ] {
            let at = Position::new(&grid, DVec3::new(x, 0.0, 0.0));
            assert_eq!((at.low_x - middle, at.beyond_x), (low, beyond), "{x}");
            // Both sides have a share, and products of three do not vanish.
            assert!(at.beyond_x < 1.0 && (at.beyond_x == 0.0 || at.beyond_x.powi(3) > f32::MIN_POSITIVE), "{x}");
        }
    }
}
