//! Heat on the GPU from start to end: what submits to the queue, in chunks, with progress and cancelling.

use glam::{DVec3, UVec3};
use rayon::prelude::*;
use wgpu::{Device, Queue};

use super::graph::{Graph, LANES, Lanes, Part, Short};
use super::job::{Acceleration, Counters, HeatJob, Steps, too_exact};
use super::kernels::HeatKernels;
use super::plan::{HeatPlan, binding_of};
use crate::error::Result;
use crate::gpu::catch;
use crate::heat::cpu::{self, Heat, Heats};
use crate::heat::multigrid::Solver;
use crate::heat::{Heated, Parameters, Setting};
use crate::model::Skeleton;
use crate::progress::{Progress, Stage};
use crate::voxelize::Voxels;

/// Bytes of parts that are made at a time on the host, about.
const WAVE_BYTES: u64 = 256 << 20;
/// Bytes of a row of a part on the host.
const ROW_BYTES: u64 = 80;
/// Share of the progress that finding the steps counts for.
const STEPS_SHARE: f64 = 0.1;

/// What a solve of all bones took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// The longest mean way of heat to its sources, in steps, and the sweeps that it took to find out.
    pub steps: f64,
    pub sweeps_for_steps: usize,
    /// Rows of four values in all parts, parts, and solves of as many of them as fit at once.
    pub rows: usize,
    pub parts: usize,
    pub solves: usize,
    /// The most sweeps of a solve, and the largest bound of an error.
    pub most: Counters,
}

impl HeatKernels {
    /// The longest mean way of heat to its sources, what it took, and progress through `report`. Submits to the queue, a chunk
    /// at a time.
    ///
    /// # Errors
    /// As for [`HeatKernels::start_steps`] and [`HeatJob::status`]; those of `report`; [`crate::Error::Device`].
    pub async fn steps(
        &self,
        device: &Device,
        queue: &Queue,
        graph: &Graph<'_>,
        dims: Option<UVec3>,
        report: &dyn Fn(f64) -> Result<()>,
    ) -> Result<(Steps, usize)> {
        let mut job = catch(device, "starting heat", || self.start_steps(device, graph, dims)).await?;
        self.finish(device, queue, &mut job, report).await?;
        let sweeps = job.counters().sweeps;
        Ok((job.finish_steps()?, sweeps))
    }

    /// The heats of parts of a graph, all at once: for each part and each of its rows those of four bones. Submits to the
    /// queue, a chunk at a time, and reports progress through `report`.
    ///
    /// # Errors
    /// As for [`HeatKernels::start`] and [`HeatJob::status`]; those of `report`; [`crate::Error::Device`].
    #[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the caller knows")]
    pub async fn run(
        &self,
        device: &Device,
        queue: &Queue,
        parts: &[Part],
        steps: Steps,
        tolerance: f64,
        acceleration: Acceleration,
        report: &dyn Fn(f64) -> Result<()>,
    ) -> Result<(Vec<Vec<Lanes>>, Counters)> {
        let mut anew: Option<Vec<Part>> = None;
        let mut all = Counters { sweeps: 0, error_bound: f64::INFINITY };
        loop {
            let now = anew.as_deref().unwrap_or(parts);
            let start = || self.start(device, now, steps, tolerance, acceleration);
            let mut job = catch(device, "starting heat", start).await?;
            self.finish(device, queue, &mut job, report).await?;
            let readback = catch(device, "reading heat back", || {
                let mut encoder = device.create_command_encoder(&Default::default());
                let readback = job.record_readback(&mut encoder)?;
                queue.submit([encoder.finish()]);
                Ok(readback)
            });
            let heats = readback.await?.read(now).await?;
            let (before, counters) = (all.error_bound, job.counters());
            all = Counters { sweeps: all.sweeps + counters.sweeps, error_bound: counters.error_bound };
            if job.is_within() {
                return Ok((heats, all));
            }
            // Rounding hides what is left. Relative to that it is small again, if it has become less at all.
            if !all.error_bound.is_finite() || all.error_bound > 0.5 * before {
                return Err(too_exact(tolerance, before.min(all.error_bound)));
            }
            let now = anew.take().unwrap_or_else(|| parts.to_vec());
            anew = Some(now.into_par_iter().zip(&heats).map(|(part, heats)| part.restarted(heats)).collect());
        }
    }

    async fn finish(
        &self,
        device: &Device,
        queue: &Queue,
        job: &mut HeatJob,
        report: &dyn Fn(f64) -> Result<()>,
    ) -> Result<()> {
        loop {
            let sweeps = job.sweeps_ahead();
            let chunk = || {
                let mut encoder = device.create_command_encoder(&Default::default());
                job.record(self, &mut encoder, sweeps)?;
                queue.submit([encoder.finish()]);
                Ok(())
            };
            catch(device, "heat", chunk).await?;
            let done = job.status().await?;
            report(job.fraction())?;
            if done {
                return Ok(());
            }
        }
    }

    /// [`crate::heat::voxel_heat`] with full resolution solved on the device. Sources, coarser levels (which say where a
    /// bone matters, and start its heat) and the sampling at `places` are the host's. Submits to the queue, a chunk at a time.
    ///
    /// # Errors
    /// As there; [`crate::Error::Limit`] where the device does not hold the solid or 32-bit floats do not reach the
    /// tolerance; [`crate::Error::Device`].
    #[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
    pub async fn voxel_heat(
        &self,
        device: &Device,
        queue: &Queue,
        voxels: &Voxels,
        skeleton: &Skeleton,
        use_bone: &[bool],
        places: &[DVec3],
        parameters: &Parameters,
        progress: Progress<'_>,
    ) -> Result<(Heated, Figures)> {
        let setting = Setting::new(voxels, skeleton, use_bone, places, parameters, progress)?;
        let (levels, tolerance) = (&setting.levels, parameters.tolerance);
        let graph = Graph::of_voxels(&levels[0].neighbors, &setting.problem.conductance);
        let report = |fraction: f64| progress.at(Stage::Heat, STEPS_SHARE * fraction);
        let dims = Some(voxels.grid.dims());
        let (steps, sweeps_for_steps) = self.steps(device, queue, &graph, dims, &report).await?;
        let mut figures = Figures { steps: steps.count(), sweeps_for_steps, ..Figures::default() };

        let heating = cpu::heating(levels, &setting.order);
        let groups: Vec<&[u32]> = heating.chunks(LANES).collect();
        let wave = (WAVE_BYTES / (ROW_BYTES * graph.len().max(1) as u64)).clamp(2, 64) as usize;
        let binding = binding_of(device);
        let (mut found, mut waiting, mut ahead) = (Vec::new(), Vec::new(), groups.iter());
        loop {
            let next: Vec<&[u32]> = ahead.by_ref().take(wave).copied().collect();
            let is_last = next.is_empty();
            waiting.extend(parts_of(&setting, &graph, &next, tolerance, progress)?);
            while !waiting.is_empty() {
                let (count, is_full) = as_many_as_fit(&waiting, binding);
                if !is_full && !is_last {
                    break;
                }
                let (bones, parts): (Vec<&[u32]>, Vec<Part>) = waiting.drain(..count).unzip();
                let done = found.len() as f64;
                let all = groups.len() as f64;
                let report = |fraction: f64| {
                    let share = ((done + fraction * count as f64) / all).min(1.0);
                    progress.at(Stage::Heat, STEPS_SHARE + (1.0 - STEPS_SHARE) * share)
                };
                let (heats, counters) =
                    self.run(device, queue, &parts, steps, tolerance, self.acceleration, &report).await?;
                figures.add(&parts, counters);
                for ((group, part), heats) in bones.iter().zip(&parts).zip(&heats) {
                    found.push(listed(group, part, heats, &setting.needed, cpu::COLD * tolerance));
                }
            }
            if is_last {
                break;
            }
        }
        let heats = Heats::new(levels[0].len(), &found, tolerance, figures.most.sweeps, figures.most.error_bound);
        Ok((setting.heated(heats), figures))
    }
}

impl Figures {
    fn add(&mut self, parts: &[Part], counters: Counters) {
        self.rows += parts.iter().map(|part| part.rows().len()).sum::<usize>();
        self.parts += parts.len();
        self.solves += 1;
        self.most.sweeps = self.most.sweeps.max(counters.sweeps);
        self.most.error_bound = self.most.error_bound.max(counters.error_bound);
    }
}

/// For each group the part of the solid in which it matters, with values to start from.
fn parts_of<'a>(
    setting: &Setting,
    graph: &Graph,
    groups: &[&'a [u32]],
    tolerance: f64,
    progress: Progress,
) -> Result<Vec<(&'a [u32], Part)>> {
    let (levels, bone_of) = (&setting.levels, &setting.problem.bone_of());
    groups
        .par_iter()
        .map_init(
            || (Solver::new(levels), Vec::new()),
            |(solver, number), &group| {
                progress.at(Stage::Heat, STEPS_SHARE)?;
                cpu::approach(solver, levels, group, tolerance);
                let (rows, start): (Vec<u32>, Vec<Short>) =
                    solver.heats(0).map(|(voxel, heats)| (voxel, heats.map(|h| h as f32))).unzip();
                let part = graph.part(number, rows, start, |row| {
                    let (bone, g) = (bone_of[row as usize], graph.ground[row as usize]);
                    std::array::from_fn(|l| if group.get(l) == Some(&bone) { g } else { 0.0 })
                });
                Ok((group, part))
            },
        )
        .collect()
}

/// How many of the first parts fit into bindings of this size together, at least one, and whether the next would not.
fn as_many_as_fit(parts: &[(&[u32], Part)], binding: u64) -> (usize, bool) {
    let mut plan = HeatPlan::default();
    for (count, (_, part)) in parts.iter().enumerate() {
        plan = plan.and(HeatPlan::of_part(part));
        if count > 0 && !plan.fits(binding) {
            return (count, true);
        }
    }
    (parts.len(), false)
}

/// The heats of a group above what is cold, in the voxels that are needed.
fn listed(group: &[u32], part: &Part, heats: &[Lanes], needed: &[bool], cold: f64) -> Vec<(u32, Heat)> {
    let mut found = Vec::new();
    for (&voxel, heats) in part.rows().iter().zip(heats).filter(|(voxel, _)| needed[**voxel as usize]) {
        for (&bone, &heat) in group.iter().zip(heats) {
            if heat > cold {
                found.push((voxel, Heat { bone, heat }));
            }
        }
    }
    found
}

const _: () = assert!(LANES == 4, "the shader's vectors have four components");
