//! A crawl under way: rounds over the eight colours of bricks until no brick waits.

use wgpu::util::DispatchIndirectArgs;
use wgpu::{BindGroup, Buffer, BufferUsages, CommandEncoder, Device};

use super::kernels::{CrawlKernels, CrawlParams};
use super::labels::GpuLabels;
use super::plan::{COLOURS, COUNTERS, CrawlPlan};
use super::seeds::Seeds;
use crate::crawl::Neighbors;
use crate::error::{Error, Result};
#[cfg(not(target_arch = "wasm32"))]
use crate::gpu::block_on;
use crate::gpu::{Readback, storage, storage_with, too_large, uniforms};
use crate::voxelize::gpu::GpuBricks;

/// Operations of a dispatch: some 50 ms where a mid-range GPU does 5 x 10^11 of them a second, a tenth of its peak.
const DISPATCH_OPERATIONS: u64 = 25_000_000_000;
/// Operations to offer a label to a voxel.
const OFFER_OPERATIONS: u64 = 24;
/// Sweeps inside a brick until it comes to rest: 2 to 5 as measured, more only where a brick holds a maze.
const BRICK_SWEEPS: u64 = 8;

/// What a crawl has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bricks that wait.
    pub waiting: u32,
    /// Times that a brick was looked at, and of those the times that something in it changed. How often differs from run
    /// to run; the labels do not.
    pub visits: u32,
    pub changes: u32,
    /// Sweeps inside bricks.
    pub sweeps: u32,
}

/// A crawl, round by round. It ends when no brick waits; rounds recorded beyond that cost next to nothing.
#[derive(Debug)]
pub struct CrawlJob {
    device: Device,
    labels: GpuLabels,
    work: Buffer,
    turn: Buffer,
    /// What empties each buffer, and what puts starts of bones into the labels of each window.
    fill: Option<[Vec<BindGroup>; 2]>,
    /// For each window and colour: how its turn is prepared and taken.
    turns: Vec<[BindGroup; 2]>,
    seeded: u32,
    bricks: u32,
    /// Bytes of `work` before the flags of bricks: what the host reads.
    header: u64,
    pending: Option<Readback>,
    counters: Counters,
    done: bool,
}

/// The most bricks of a dispatch, by its cost.
fn batch(per_voxel: usize, most_axes: u32) -> u32 {
    let steps = if most_axes == 1 { 6 } else { 26 };
    let brick = 64 * steps * per_voxel as u64 * (1 + BRICK_SWEEPS) * OFFER_OPERATIONS;
    (DISPATCH_OPERATIONS / brick).max(1) as u32
}

impl CrawlKernels {
    /// Begins a crawl from the seeds through the bricks. The kernels must be those for [`Seeds::per_voxel`] labels.
    ///
    /// # Errors
    /// [`Error::Limit`] where the labels do not fit the device, [`Error::Parameter`] where kernels and seeds differ, or the seeds
    /// are those of another solid.
    pub fn start(&self, device: &Device, bricks: &GpuBricks, seeds: &Seeds, neighbors: Neighbors) -> Result<CrawlJob> {
        if seeds.per_voxel != self.labels {
            let value = self.labels.to_string();
            return Err(Error::Parameter { name: "labels", value, allowed: "it must be as many as the seeds have" });
        }
        let totals = bricks.totals();
        if seeds.layers.iter().map(|&voxels| u64::from(voxels)).sum::<u64>() != u64::from(totals.voxels) {
            let value = format!("for a solid of other than {} voxels", totals.voxels);
            return Err(Error::Parameter {
                name: "seeds",
                value,
                allowed: "they must be found in the solid of the bricks",
            });
        }
        let (limits, name) = (device.limits(), device.adapter_info().name);
        let limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        let binding = limit.min(self.binding);
        let plan = CrawlPlan::new(bricks.dims(), totals.bricks, &seeds.layers, self.labels, &name, binding)?;
        let seed_bytes = seeds.words.len() as u64 * 8;
        if seed_bytes > limit {
            return Err(too_large(&name, "starts of bones".into(), seed_bytes, limit, bricks.dims()));
        }
        let work = storage(device, "queues of bricks", plan.work);
        let turn = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("turn of a queue"),
            size: 5 * 4,
            usage: BufferUsages::STORAGE | BufferUsages::INDIRECT,
            mapped_at_creation: false,
        });
        let labels = self.allocate(device, &plan, totals.voxels, &seeds.bones);
        let (fill, turns) = self.bind(device, bricks, seeds, neighbors, &plan, &labels, &work, &turn);
        let (device, header) = (device.clone(), u64::from(plan.flags()) * 4);
        let (seeded, bricks, counters) = (seeds.voxels, totals.bricks, Counters::default());
        let fill = Some(fill);
        Ok(CrawlJob {
            device,
            labels,
            work,
            turn,
            fill,
            turns,
            seeded,
            bricks,
            header,
            pending: None,
            counters,
            done: false,
        })
    }

    fn allocate(&self, device: &Device, plan: &CrawlPlan, voxels: u32, bones: &[u32]) -> GpuLabels {
        let voxel_bytes = self.labels as u64 * 8;
        let buffer = |voxels: u32| storage(device, "labels", u64::from(voxels.max(1)) * voxel_bytes);
        GpuLabels {
            buffers: plan.chunks.iter().map(|chunk| buffer(chunk.voxels)).collect(),
            nothing: storage(device, "no labels", 8),
            windows: plan.windows.clone(),
            per_voxel: self.labels,
            voxels,
            bones: bones.to_vec(),
            counters: Counters::default(),
        }
    }

    /// The bindings of all dispatches: those that fill the labels, and those of each queue's turn.
    #[expect(clippy::too_many_arguments, reason = "the buffers of a crawl")]
    fn bind(
        &self,
        device: &Device,
        bricks: &GpuBricks,
        seeds: &Seeds,
        neighbors: Neighbors,
        plan: &CrawlPlan,
        labels: &GpuLabels,
        work: &Buffer,
        turn: &Buffer,
    ) -> ([Vec<BindGroup>; 2], Vec<[BindGroup; 2]>) {
        let most_axes = if neighbors == Neighbors::Six { 1 } else { 3 };
        let params: Vec<CrawlParams> = (0..plan.queues())
            .map(|queue| CrawlParams {
                window: plan.windows[(queue / COLOURS) as usize],
                extent: bricks.extent().to_array(),
                bricks: bricks.totals().bricks,
                most_axes,
                queue,
                ring: plan.ring,
                batch: batch(self.labels, most_axes),
                seeded: seeds.voxels,
                flags: plan.flags(),
                padding: [0; 2],
            })
            .collect();
        let uniforms = uniforms(device, &params);
        let starts = if seeds.words.is_empty() { &[[0; 2]] } else { &seeds.words[..] };
        let starts = storage_with(device, "starts of bones", starts);
        let empty = |buffer: &Buffer| self.empty_labels.bind(device, &[(3, buffer.as_entire_binding())]);
        let mut fill = [labels.buffers.iter().map(empty).collect(), Vec::new()];
        let mut turns = Vec::new();
        for window in 0..plan.windows.len() {
            let [first, second] = labels.seen(window);
            let solid = [(1, bricks.list()), (2, bricks.slots()), (3, first), (4, work), (8, second)]
                .map(|(binding, buffer)| (binding, buffer.as_entire_binding()));
            let first_queue = COLOURS as usize * window;
            let seed = [&[(0, uniforms.at(first_queue)), (7, starts.as_entire_binding())], &solid[..]].concat();
            fill[1].push(self.seed.bind(device, &seed));
            for queue in first_queue..first_queue + COLOURS as usize {
                let first = (0, uniforms.at(queue));
                let prepare = [first.clone(), (4, work.as_entire_binding()), (5, turn.as_entire_binding())];
                let relax = [&[first, (6, turn.as_entire_binding())], &solid[..]].concat();
                turns.push([self.prepare.bind(device, &prepare), self.relax.bind(device, &relax)]);
            }
        }
        (fill, turns)
    }
}

impl CrawlJob {
    /// Records this many rounds; a round is eight dispatches a window, each of at most some 50 ms on a mid-range GPU, mostly of far
    /// less. There are about as many rounds as bricks on the longest way that a label goes.
    ///
    /// # Errors
    /// [`Error::Limit`] where a dispatch cannot hold the labels; see [`crate::gpu::Kernel::dispatch`].
    pub fn record(&mut self, kernels: &CrawlKernels, encoder: &mut CommandEncoder, rounds: usize) -> Result<()> {
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("crawl"), timestamp_writes: None });
        if let Some([empties, seeds]) = self.fill.take() {
            for (empty, buffer) in empties.iter().zip(&self.labels.buffers) {
                kernels.empty_labels.dispatch(&mut pass, empty, buffer.size() / 8)?;
            }
            for seed in &seeds {
                kernels.seed.dispatch(&mut pass, seed, self.seeded.into())?;
            }
        }
        for _ in 0..rounds {
            for [prepare, relax] in &self.turns {
                kernels.prepare.dispatch_groups(&mut pass, prepare, 1)?;
                kernels.relax.dispatch_indirect(&mut pass, relax, &self.turn);
            }
        }
        drop(pass);
        self.pending = Some(Readback::record(&self.device, encoder, &self.work, 0, self.header));
        Ok(())
    }

    /// Whether the labels have come to rest, as of the last [`CrawlJob::record`], which must have been submitted.
    ///
    /// # Errors
    /// [`Error::Limit`] for a way of 2^16 voxels or more; as for [`Readback::read`].
    pub async fn status(&mut self) -> Result<bool> {
        let Some(pending) = self.pending.take() else { return Ok(self.done) };
        let words: Vec<u32> = pending.read().await?;
        let (counters, ends) = words.split_at(COUNTERS);
        let waiting = ends.chunks_exact(2).map(|ends| ends[0].wrapping_sub(ends[1])).sum();
        self.counters = Counters { waiting, visits: counters[1], changes: counters[2], sweeps: counters[3] };
        if counters[0] != 0 {
            return Err(Error::Limit {
                what: "distance of a bone through the mesh, in voxels".into(),
                needed: "65535 or more".into(),
                limit: "65534 on a GPU".into(),
                advice: "take a lower resolution, or --device cpu".into(),
            });
        }
        self.done = waiting == 0;
        Ok(self.done)
    }

    /// [`CrawlJob::status`], waiting for the device.
    ///
    /// # Errors
    /// As there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn status_blocking(&mut self) -> Result<bool> {
        block_on(&self.device.clone(), self.status())
    }

    /// What was done, as of the last status.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A guess of the share that is done, from 0 to 1, as of the last status: bricks are looked at a few times each.
    pub fn fraction(&self) -> f64 {
        let visits = f64::from(self.counters.visits);
        if self.done { 1.0 } else { visits / (visits + 4.0 * f64::from(self.bricks)).max(1.0) }
    }

    /// The labels.
    ///
    /// # Errors
    /// [`Error::Check`] where [`CrawlJob::status`] has not said that they have come to rest.
    pub fn finish(self) -> Result<GpuLabels> {
        if self.done {
            Ok(GpuLabels { counters: self.counters, ..self.labels })
        } else {
            Err(Error::Check("the crawl has not come to its end; record more rounds".into()))
        }
    }
}

const _: () = assert!(size_of::<DispatchIndirectArgs>() == 12, "`turn` begins with them");
