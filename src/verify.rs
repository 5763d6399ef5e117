//! Every stage on a GPU and on the CPU, compared: on the user's own mesh and machine.

use glam::{DVec3, UVec3};
use rayon::prelude::*;
use serde::Serialize;

use crate::bind::{DEFAULT_RESOLUTION, Params, bind, bind_on_gpu};
use crate::bind_gpu::GpuKernels;
use crate::crawl::gpu::{HostLabels, STEPS, Seeds};
use crate::crawl::{self, Labels};
use crate::error::Result;
use crate::gpu::catch;
use crate::heat;
use crate::influence::gpu::Surface;
use crate::influence::reference;
use crate::model::{BitGrid, Grid, Mesh, Skeleton, Weights};
use crate::progress::Progress;
use crate::voxelize::{self, Voxels};

/// Largest difference of a weight before the cap; `docs/precision.md` says why.
const WEIGHT_TOLERANCE: f64 = 1e-5;
/// Largest difference of a heat, shared and sharpened. The GPU works to a quarter of it, for each heat: shares are divided by
/// a sum that lacks what is cold of several bones, and the power makes errors 1.4 times as large.
const HEAT_TOLERANCE: f64 = 1e-4;
/// Largest difference of all but one in a hundred of the final weights: the cap makes errors larger by 1 / (share that is
/// kept), and where two influences are all but equal it may keep either.
const CAPPED_TOLERANCE: f64 = 1e-4;

/// How far one stage's results on the GPU are from those on the CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub stage: &'static str,
    /// What was compared, and in what unit.
    pub what: &'static str,
    pub compared: usize,
    pub max: f64,
    pub mean: f64,
    /// 99 of 100 are not above this.
    pub p99: f64,
    pub tolerance: f64,
    pub passed: bool,
}

impl Row {
    /// A row that passes if no error is above the tolerance.
    fn strict(stage: &'static str, what: &'static str, errors: Vec<f64>, tolerance: f64) -> Self {
        let row = Self::new(stage, what, errors, tolerance);
        Self { passed: row.max <= tolerance, ..row }
    }

    /// A row that passes if 99 of 100 errors are not above the tolerance.
    fn lenient(stage: &'static str, what: &'static str, errors: Vec<f64>, tolerance: f64) -> Self {
        let row = Self::new(stage, what, errors, tolerance);
        Self { passed: row.p99 <= tolerance, ..row }
    }

    fn new(stage: &'static str, what: &'static str, mut errors: Vec<f64>, tolerance: f64) -> Self {
        // Sorts NaN last, and a NaN is above every tolerance.
        errors.sort_unstable_by(f64::total_cmp);
        let compared = errors.len();
        let at = |share: usize| errors.get((compared * share / 100).min(compared.saturating_sub(1))).copied();
        let mean = errors.iter().sum::<f64>() / compared.max(1) as f64;
        let (max, p99) = (at(100).unwrap_or(0.0), at(99).unwrap_or(0.0));
        Self { stage, what, compared, max, mean, p99, tolerance, passed: false }
    }
}

/// Runs every stage on both devices and compares: voxels bit for bit, distances within rounding, weights before the cap
/// against the formula in f64, heats within their tolerance, and the weights of a whole bind.
///
/// # Errors
/// Those of [`bind_on_gpu`].
pub async fn verify(
    kernels: &mut GpuKernels,
    mesh: &Mesh,
    skeleton: &Skeleton,
    params: &Params,
    progress: Progress<'_>,
) -> Result<Vec<Row>> {
    params.check()?;
    let (device, queue) = (&kernels.device.clone(), &kernels.queue.clone());
    let weld = mesh.weld();
    let use_bone = crate::bind::usable(skeleton, &params.exclude)?;
    let grid = Grid::around(&mesh.bounds(), params.resolution.unwrap_or(DEFAULT_RESOLUTION))?;

    let expected = voxelize::voxelize(mesh, &weld, &grid, params.interior, progress)?;
    let voxelize = &kernels.voxelize;
    let (on_gpu, found) = voxelize.voxelize(device, queue, mesh, &weld, &grid, params.interior, progress).await?;
    let mut rows = vec![
        Row::strict("voxelize", "surface voxels that differ", bits(&found.surface, &expected.surface), 0.0),
        Row::strict("interior", "solid voxels that differ", bits(&found.solid, &expected.solid), 0.0),
    ];

    let count = params.limits.max_influences + 1;
    let bricks = voxelize.gather(device, queue, &on_gpu.solid).await?;
    let seeds = Seeds::find(&grid, &found.solid, skeleton, &use_bone, count, progress)?;
    let (crawl_kernels, influence_kernels) = kernels.for_labels(seeds.per_voxel()).await?;
    let labels = crawl_kernels.run(device, queue, &bricks, &seeds, params.neighbors, progress).await?;
    let readback = catch(device, "reading labels back", || {
        let mut encoder = device.create_command_encoder(&Default::default());
        let readback = labels.record_readback(device, &mut encoder, &bricks);
        queue.submit([encoder.finish()]);
        Ok(readback)
    });
    let host = readback.await?.read().await?;
    let (reference_labels, _) = crawl::crawl(&expected, skeleton, &use_bone, count, params.neighbors, progress)?;
    let (errors, tolerance) = distances(&expected, &host, &reference_labels);
    rows.push(Row::strict("crawl", "distances, in voxels", errors, tolerance));

    let positions: Vec<_> = weld.first.iter().map(|&vertex| mesh.positions()[vertex as usize]).collect();
    let diagonal = mesh.bounds().diagonal();
    let surface = Surface { grid: &grid, positions: &positions, diagonal };
    let weights = catch(device, "the weights", || {
        let mut job = influence_kernels.start_uncut(device, &bricks, &labels, surface, &params.falloff)?;
        while !job.is_done() {
            let mut encoder = device.create_command_encoder(&Default::default());
            job.record(influence_kernels, &mut encoder, 1)?;
            queue.submit([encoder.finish()]);
        }
        job.finish()
    });
    let (weights, _) = weights.await?.read(device, queue).await?;
    let formula = |position| reference::sampled(position, &host, &grid, skeleton.len(), diagonal, &params.falloff);
    let errors = positions.par_iter().enumerate().map(|(place, p)| row_error(&weights, place, &formula(*p))).collect();
    rows.push(Row::strict("influence", "weights before the cap", errors, WEIGHT_TOLERANCE));

    let problem = Heat { voxels: &expected, skeleton, use_bone: &use_bone, places: &positions };
    rows.push(problem.compare(kernels, &params.heat, progress).await?);

    let found = bind_on_gpu(kernels, mesh, skeleton, params, progress).await?;
    let expected = bind(mesh, skeleton, params, progress)?;
    let errors = capped(&found.weights, &expected.weights);
    rows.push(Row::lenient("bind", "final weights (99 of 100)", errors, CAPPED_TOLERANCE));
    Ok(rows)
}

/// Heat in voxels, asked for at places.
struct Heat<'a> {
    voxels: &'a Voxels,
    skeleton: &'a Skeleton,
    use_bone: &'a [bool],
    places: &'a [DVec3],
}

impl Heat<'_> {
    async fn compare(
        &self,
        kernels: &mut GpuKernels,
        parameters: &heat::Parameters,
        progress: Progress<'_>,
    ) -> Result<Row> {
        let (device, queue) = (&kernels.device.clone(), &kernels.queue.clone());
        let Self { voxels, skeleton, use_bone, places } = self;
        let with = |share: f64| heat::Parameters { tolerance: share * HEAT_TOLERANCE, ..*parameters };
        let on_gpu = kernels.for_heat().await?;
        let loose = with(0.25);
        let found = on_gpu.voxel_heat(device, queue, voxels, skeleton, use_bone, places, &loose, progress);
        let (found, _) = found.await?;
        let expected = heat::voxel_heat(voxels, skeleton, use_bone, places, &with(0.01), progress)?;
        let raw = |heated: &heat::Heated, place: DVec3| {
            let (mut dense, mut sparse) = (vec![0.0; skeleton.len()], Vec::new());
            heated.raw_weights(place, &mut heated.scratch(), &mut sparse);
            sparse.iter().for_each(|i| dense[i.joint as usize] = i.weight);
            dense
        };
        let off = |place: &DVec3| {
            let pairs = raw(&found, *place).into_iter().zip(raw(&expected, *place));
            pairs.map(|(f, e)| (f - e).abs()).fold(0.0, f64::max)
        };
        let errors = places.par_iter().map(off).collect();
        Ok(Row::strict("heat", "weights before the cap", errors, HEAT_TOLERANCE))
    }
}

/// 0 for a voxel that agrees, 1 for one that does not.
fn bits(found: &BitGrid, expected: &BitGrid) -> Vec<f64> {
    let differs = |v: UVec3| f64::from(u8::from(found.get(v) != expected.get(v)));
    crawl::reference::voxels(expected.dims()).map(differs).collect()
}

/// The errors of all distances, and how large they may be: half a step for the start and for each step on the way, which
/// is no shorter than a voxel. A label too few or too many is an infinite error.
fn distances(voxels: &Voxels, found: &HostLabels, expected: &Labels) -> (Vec<f64>, f64) {
    let (mut errors, mut longest) = (Vec::new(), 0.0f64);
    for voxel in crawl::reference::voxels(voxels.grid.dims()).filter(|&v| voxels.solid.get(v)) {
        let mut found = found.at(voxel);
        for label in expected.at(voxel) {
            errors.push(found.next().map_or(f64::INFINITY, |f| (f.distance - label.distance).abs()));
            longest = longest.max(label.distance);
        }
        errors.extend(found.map(|_| f64::INFINITY));
    }
    (errors, (longest.ceil() + 2.0) * 0.5 / f64::from(STEPS))
}

/// The largest error of the weights of a place, all of them, against raw ones; both add up to 1.
fn row_error(found: &Weights, place: usize, raw: &[f64]) -> f64 {
    let total: f64 = raw.iter().sum();
    if total <= 0.0 {
        return if found.of(place).is_empty() { 0.0 } else { f64::INFINITY };
    }
    let mut error: Vec<f64> = raw.iter().map(|weight| weight / total).collect();
    for influence in found.of(place) {
        error[influence.joint as usize] -= influence.weight;
    }
    error.into_iter().map(f64::abs).fold(0.0, f64::max)
}

/// The largest error of each vertex.
fn capped(found: &Weights, expected: &Weights) -> Vec<f64> {
    let off = |vertex: usize| {
        let joints = found.of(vertex).iter().chain(expected.of(vertex)).map(|i| i.joint);
        joints.map(|j| (found.weight(vertex, j) - expected.weight(vertex, j)).abs()).fold(0.0, f64::max)
    };
    (0..expected.len()).map(off).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_verdicts() {
        let errors: Vec<f64> = (0..200).map(f64::from).rev().collect();
        let row = Row::strict("s", "w", errors.clone(), 199.0);
        assert_eq!((row.compared, row.max, row.mean, row.p99, row.passed), (200, 199.0, 99.5, 198.0, true));
        assert!(!Row::strict("s", "w", errors.clone(), 198.9).passed);
        assert!(Row::lenient("s", "w", errors.clone(), 198.0).passed);
        assert!(!Row::lenient("s", "w", errors, 197.0).passed);
        assert!(!Row::strict("s", "w", vec![0.0, f64::NAN], 1.0).passed);
        assert!(Row::strict("s", "w", Vec::new(), 0.0).passed);
    }

    #[test]
    fn errors_of_rows() {
        let mut weights = Weights::default();
        weights.push([
            crate::model::Influence { joint: 1, weight: 0.25 },
            crate::model::Influence { joint: 0, weight: 0.75 },
        ]);
        weights.push([]);
        assert!(row_error(&weights, 0, &[3.0, 1.0]) < 1e-15);
        assert!((row_error(&weights, 0, &[1.0, 1.0]) - 0.25).abs() < 1e-15);
        assert_eq!(row_error(&weights, 1, &[0.0, 0.0]), 0.0);
        assert_eq!(row_error(&weights, 0, &[0.0, 0.0]), f64::INFINITY);
        assert_eq!(row_error(&weights, 1, &[1.0, 3.0]), 0.75);
    }
}
