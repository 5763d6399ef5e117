//! A crawl under way: rounds over the eight colours of bricks until no brick waits.

use wgpu::util::DispatchIndirectArgs;
use wgpu::{BindGroup, Buffer, BufferUsages, CommandEncoder, Device};

use super::kernels::{CrawlKernels, CrawlParams};
use super::labels::GpuLabels;
use super::plan::{COLOURS, CrawlPlan, HEADER};
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
    fill: Option<[BindGroup; 2]>,
    /// For each colour: how its turn is prepared and taken.
    colours: Vec<[BindGroup; 2]>,
    seeded: u32,
    bricks: u32,
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
    /// [`Error::Limit`] where the labels do not fit the device, [`Error::Parameter`] where kernels and seeds differ.
    pub fn start(&self, device: &Device, bricks: &GpuBricks, seeds: &Seeds, neighbors: Neighbors) -> Result<CrawlJob> {
        if seeds.per_voxel != self.labels {
            let value = self.labels.to_string();
            return Err(Error::Parameter { name: "labels", value, allowed: "it must be as many as the seeds have" });
        }
        let totals = bricks.totals();
        let plan = CrawlPlan::new(bricks.dims(), totals, self.labels);
        plan.check_device(device)?;
        let seed_bytes = seeds.words.len() as u64 * 8;
        let limit = device.limits().max_storage_buffer_binding_size;
        if seed_bytes > limit {
            let name = device.adapter_info().name;
            return Err(too_large(&name, "starts of bones".into(), seed_bytes, limit, bricks.dims()));
        }
        let labels = storage(device, "labels", plan.labels);
        let work = storage(device, "queues of bricks", plan.work);
        let turn = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("turn of a colour"),
            size: 5 * 4,
            usage: BufferUsages::STORAGE | BufferUsages::INDIRECT,
            mapped_at_creation: false,
        });
        let most_axes = if neighbors == Neighbors::Six { 1 } else { 3 };
        let params: Vec<CrawlParams> = (0..COLOURS)
            .map(|colour| CrawlParams {
                extent: bricks.extent().to_array(),
                bricks: totals.bricks,
                most_axes,
                colour,
                ring: plan.ring,
                batch: batch(self.labels, most_axes),
                seeded: seeds.voxels,
                padding: [0; 3],
            })
            .collect();
        let uniforms = uniforms(device, &params);
        let starts = if seeds.words.is_empty() { &[[0; 2]] } else { &seeds.words[..] };
        let starts = storage_with(device, "starts of bones", starts);
        let [list, slots] = [bricks.list(), bricks.slots()].map(|b| b.as_entire_binding());
        let [all_labels, all_work] = [&labels, &work].map(|b| b.as_entire_binding());
        let solid = [(1, list), (2, slots.clone()), (3, all_labels.clone()), (4, all_work.clone())];
        let fill = [
            self.empty_labels.bind(device, &[(3, all_labels)]),
            self.seed.bind(device, &[&[(0, uniforms.at(0)), (7, starts.as_entire_binding())], &solid[..]].concat()),
        ];
        let colours = (0..COLOURS as usize)
            .map(|colour| {
                let first = (0, uniforms.at(colour));
                let prepare = [first.clone(), (4, all_work.clone()), (5, turn.as_entire_binding())];
                let relax = [&[first, (6, turn.as_entire_binding())], &solid[..]].concat();
                [self.prepare.bind(device, &prepare), self.relax.bind(device, &relax)]
            })
            .collect();
        let labels = GpuLabels {
            buffer: labels,
            per_voxel: self.labels,
            bones: seeds.bones.clone(),
            counters: Counters::default(),
        };
        Ok(CrawlJob {
            device: device.clone(),
            labels,
            work,
            turn,
            fill: Some(fill),
            colours,
            seeded: seeds.voxels,
            bricks: totals.bricks,
            pending: None,
            counters: Counters::default(),
            done: false,
        })
    }
}

impl CrawlJob {
    /// Records this many rounds; a round is eight dispatches of at most some 50 ms each on a mid-range GPU, mostly of far
    /// less. There are about as many rounds as bricks on the longest way that a label goes.
    ///
    /// # Errors
    /// [`Error::Limit`] where a dispatch cannot hold the labels; see [`crate::gpu::Kernel::dispatch`].
    pub fn record(&mut self, kernels: &CrawlKernels, encoder: &mut CommandEncoder, rounds: usize) -> Result<()> {
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("crawl"), timestamp_writes: None });
        if let Some([empty, seed]) = self.fill.take() {
            kernels.empty_labels.dispatch(&mut pass, &empty, self.labels.buffer.size() / 8)?;
            kernels.seed.dispatch(&mut pass, &seed, self.seeded.into())?;
        }
        for _ in 0..rounds {
            for [prepare, relax] in &self.colours {
                kernels.prepare.dispatch_groups(&mut pass, prepare, 1)?;
                kernels.relax.dispatch_indirect(&mut pass, relax, &self.turn);
            }
        }
        drop(pass);
        self.pending = Some(Readback::record(&self.device, encoder, &self.work, 0, HEADER * 4));
        Ok(())
    }

    /// Whether the labels have come to rest, as of the last [`CrawlJob::record`], which must have been submitted.
    ///
    /// # Errors
    /// [`Error::Limit`] for a way of 2^16 voxels or more; as for [`Readback::read`].
    pub async fn status(&mut self) -> Result<bool> {
        let Some(pending) = self.pending.take() else { return Ok(self.done) };
        let words: Vec<u32> = pending.read().await?;
        let (tails, heads) = (&words[..8], &words[8..16]);
        let waiting = tails.iter().zip(heads).map(|(tail, head)| tail.wrapping_sub(*head)).sum();
        self.counters = Counters { waiting, visits: words[17], changes: words[18], sweeps: words[19] };
        if words[16] != 0 {
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
