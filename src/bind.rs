//! Mesh + skeleton to weights: the only place that knows the order of the stages.

#[cfg(feature = "gpu")]
mod on_gpu;
mod params;
mod report;
mod warnings;

use std::time::Instant;

use glam::DVec3;

pub use params::{Method, Params};
pub use report::{Report, Seconds};

#[cfg(feature = "gpu")]
use crate::bind_gpu::GpuKernels;
use crate::crawl;
use crate::error::{Error, Result};
use crate::heat;
use crate::influence::{self, Stats};
use crate::model::{Components, Grid, Mesh, Skeleton, Weights, Weld};
use crate::progress::{Progress, Stage};
use crate::voxelize::{self, Interior, Voxels};

/// Resolution of the geodesic method where none is asked for, in voxels along the longest axis.
pub const DEFAULT_RESOLUTION: u32 = 128;

/// The result of a bind: weights for every vertex, and what was done.
#[derive(Debug, Clone)]
pub struct Bound {
    pub weights: Weights,
    pub report: Report,
}

/// Computes skin weights for all vertices of a mesh. No vertex is left without weights, and each vertex' weights add up to 1.
///
/// # Errors
/// [`Error::Parameter`], [`Error::UnknownBone`] for an excluded bone that is not there, [`Error::NoBones`] where no bone is
/// left, [`Error::NoExtent`], [`Error::Cancelled`].
pub fn bind(mesh: &Mesh, skeleton: &Skeleton, params: &Params, progress: Progress) -> Result<Bound> {
    let (mut job, weld, components) = Job::prepare(mesh, skeleton, params, progress)?;
    let rows = match params.method {
        Method::Geodesic => job.geodesic(&weld)?,
        Method::VoxelHeat => job.voxel_heat(&weld)?,
        Method::Heat => job.surface_heat(&weld, &components)?,
        Method::Envelope => {
            job.straight(&weld, &components)?;
            influence::envelope(mesh, &weld, skeleton, &job.use_bone, &params.limits, progress)?
        }
        Method::Closest => {
            job.straight(&weld, &components)?;
            influence::closest(mesh, &weld, skeleton, &job.use_bone, progress)?
        }
    };
    job.finish(&weld, &components, rows)
}

/// [`bind`] with voxels, distances and weights found on the device of the kernels. Submits to the queue in chunks that take at
/// most some 50 ms a dispatch on a mid-range GPU, and asks `progress` between them. What no bone reaches is filled on the CPU.
///
/// Voxels are those of [`bind`], distances the same to 2^-17 voxel a step, weights within 1e-5 before the cap, heats within
/// the tolerance: see `docs/precision.md`. Methods without GPU stages run on the CPU, and the report's device says so. On
/// native targets [`crate::gpu::block_on`] waits for it.
///
/// # Errors
/// Those of [`bind`], [`Error::Limit`] where a stage does not fit the device, [`Error::Device`].
#[cfg(feature = "gpu")]
pub async fn bind_on_gpu(
    kernels: &mut GpuKernels,
    mesh: &Mesh,
    skeleton: &Skeleton,
    params: &Params,
    progress: Progress<'_>,
) -> Result<Bound> {
    if !params.method.has_gpu_stages() {
        return bind(mesh, skeleton, params, progress);
    }
    let (mut job, weld, components) = Job::prepare(mesh, skeleton, params, progress)?;
    job.report.device = kernels.device.adapter_info().name;
    let rows = match params.method {
        Method::VoxelHeat => job.voxel_heat_on_gpu(kernels, &weld).await?,
        _ => job.geodesic_on_gpu(kernels, &weld).await?,
    };
    job.finish(&weld, &components, rows)
}

/// Which bones may have weights: those that deform and are not excluded.
pub(crate) fn usable(skeleton: &Skeleton, exclude: &[String]) -> Result<Vec<bool>> {
    let mut use_bone: Vec<bool> = skeleton.bones().iter().map(|b| b.deform).collect();
    for name in exclude {
        let bone = skeleton.find(name).ok_or_else(|| Error::UnknownBone(name.clone()))?;
        use_bone[bone] = false;
    }
    if use_bone.contains(&true) { Ok(use_bone) } else { Err(Error::NoBones("bone left that may have weights")) }
}

/// A bind under way.
struct Job<'a> {
    mesh: &'a Mesh,
    skeleton: &'a Skeleton,
    params: &'a Params,
    use_bone: Vec<bool>,
    progress: Progress<'a>,
    clock: Instant,
    report: Report,
}

impl<'a> Job<'a> {
    /// Checks, and what every method needs.
    fn prepare(
        mesh: &'a Mesh,
        skeleton: &'a Skeleton,
        params: &'a Params,
        progress: Progress<'a>,
    ) -> Result<(Self, Weld, Components)> {
        params.check()?;
        let use_bone = usable(skeleton, &params.exclude)?;
        let (clock, report) = (Instant::now(), Report::default());
        let mut job = Self { mesh, skeleton, params, use_bone, progress, clock, report };
        job.start(Stage::Prepare)?;
        let weld = mesh.weld();
        let components = mesh.components(&weld);
        job.describe(&components);
        job.end(Stage::Prepare);
        Ok((job, weld, components))
    }

    fn start(&mut self, stage: Stage) -> Result<()> {
        self.clock = Instant::now();
        self.progress.at(stage, 0.0)
    }

    fn end(&mut self, stage: Stage) {
        self.report.seconds.add(stage.name(), self.clock.elapsed().as_secs_f64());
    }

    fn describe(&mut self, components: &Components) {
        let report = &mut self.report;
        report.vertices = self.mesh.positions().len();
        report.triangles = self.mesh.triangles().len();
        report.bones = self.skeleton.len();
        report.components = components.len();
        report.method = self.params.method;
        report.device = "cpu".into();
        report.warnings.extend(warnings::skeleton_size(&self.mesh.bounds(), self.skeleton, &self.use_bone));
    }

    /// Starts the influence stage of a method that goes by straight distance.
    fn straight(&mut self, weld: &Weld, components: &Components) -> Result<()> {
        self.start(Stage::Influence)?;
        let warnings = influence::boneless_warnings(self.mesh, weld, components, self.skeleton, &self.use_bone);
        self.report.warnings.extend(warnings);
        Ok(())
    }

    fn grid(&mut self, resolution: u32) -> Result<Grid> {
        self.report.resolution = resolution;
        Grid::around(&self.mesh.bounds(), resolution)
    }

    /// The solid voxels at a resolution, parts that touch not yet looked for.
    fn voxels(&mut self, weld: &Weld, resolution: u32) -> Result<Voxels> {
        let grid = self.grid(resolution)?;
        self.start(Stage::Voxelize)?;
        let voxels = voxelize::solid_voxels(self.mesh, weld, &grid, self.params.interior, self.progress)?;
        self.end(Stage::Voxelize);
        self.describe_voxels(&voxels);
        Ok(voxels)
    }

    /// The resolution of heat: the one asked for, or the finest that keeps to the budget of solid voxels.
    fn heat_resolution(&self) -> u32 {
        let by_budget = || heat::budget::Size::of(self.mesh).resolution_for(heat::budget::SOLID_VOXELS);
        self.params.resolution.unwrap_or_else(by_budget)
    }

    /// Voxels, heat, weights of the welded places.
    fn voxel_heat(&mut self, weld: &Weld) -> Result<(Weights, Stats)> {
        let params = self.params;
        let voxels = self.voxels(weld, self.heat_resolution())?;
        self.start(Stage::Heat)?;
        let places = self.places(weld);
        let (heated, touching) = rayon::join(
            || heat::voxel_heat(&voxels, self.skeleton, &self.use_bone, &places, &params.heat, self.progress),
            || voxelize::parts_that_touch(self.mesh, weld, &voxels),
        );
        self.report.warnings.extend(touching);
        self.weigh(heated?, &places)
    }

    /// Positions of the welded places.
    fn places(&self, weld: &Weld) -> Vec<DVec3> {
        weld.first.iter().map(|&vertex| self.mesh.positions()[vertex as usize]).collect()
    }

    /// Weights of places from heat. The heat stage is running.
    fn weigh(&mut self, mut heated: heat::Heated, places: &[DVec3]) -> Result<(Weights, Stats)> {
        self.report.warnings.append(&mut heated.warnings);
        self.report.residual = Some(heated.residual);
        self.end(Stage::Heat);
        self.start(Stage::Influence)?;
        let limits = &self.params.limits;
        let used = self.use_bone.iter().filter(|&&used| used).count();
        influence::weigh_places(
            places.len(),
            used.max(limits.max_influences + 1),
            limits,
            self.skeleton,
            self.progress,
            || heated.scratch(),
            |scratch, place, raw| heated.raw_weights(places[place], scratch, raw),
        )
    }

    /// Heat on the surface, weights of the welded places.
    fn surface_heat(&mut self, weld: &Weld, components: &Components) -> Result<(Weights, Stats)> {
        let params = self.params;
        self.start(Stage::Heat)?;
        let mut heated = heat::surface::surface_heat(
            self.mesh,
            weld,
            components,
            self.skeleton,
            &self.use_bone,
            &params.surface_heat,
            self.progress,
        )?;
        self.report.warnings.append(&mut heated.warnings);
        self.report.residual = Some(heated.residual);
        self.end(Stage::Heat);

        self.start(Stage::Influence)?;
        let used = self.use_bone.iter().filter(|&&used| used).count();
        influence::weigh_places(
            weld.places(),
            used.max(params.limits.max_influences + 1),
            &params.limits,
            self.skeleton,
            self.progress,
            || (),
            |(), place, raw| heated.raw_weights(place, raw),
        )
    }

    fn describe_voxels(&mut self, voxels: &Voxels) {
        self.report.solid_voxels = voxels.solid.count();
        self.report.interior = Some(format!("{}: {}", interior_name(voxels.interior), voxels.reason));
        self.report.warnings.extend(voxels.warnings.iter().cloned());
    }

    /// Voxels, distances, weights of the welded places.
    fn geodesic(&mut self, weld: &Weld) -> Result<(Weights, Stats)> {
        let params = self.params;
        let voxels = self.voxels(weld, params.resolution.unwrap_or(DEFAULT_RESOLUTION))?;

        self.start(Stage::Crawl)?;
        let count = params.limits.max_influences + 1;
        // On small grids the crawl runs on one core.
        let (crawled, touching) = rayon::join(
            || crawl::crawl(&voxels, self.skeleton, &self.use_bone, count, params.neighbors, self.progress),
            || voxelize::parts_that_touch(self.mesh, weld, &voxels),
        );
        let (labels, warnings) = crawled?;
        self.report.warnings.extend(touching);
        self.report.warnings.extend(warnings);
        self.end(Stage::Crawl);

        self.start(Stage::Influence)?;
        let (falloff, limits) = (&params.falloff, &params.limits);
        influence::from_labels(
            &labels,
            &voxels.grid,
            self.mesh,
            weld,
            self.skeleton,
            count,
            falloff,
            limits,
            self.progress,
        )
    }

    /// Fills what no bone reached and scatters to the vertices. The influence stage is running.
    fn finish(mut self, weld: &Weld, components: &Components, rows: (Weights, Stats)) -> Result<Bound> {
        let (weights, stats) = rows;
        let filled = influence::fill_unreached(
            self.mesh,
            weld,
            components,
            self.skeleton,
            &self.use_bone,
            weights,
            &self.params.limits,
            self.progress,
        )?;
        let report = &mut self.report;
        report.warnings.extend(filled.warnings);
        report.warnings.extend(warnings::without_weight(self.skeleton, &self.use_bone, &filled.weights));
        report.unreached_vertices = filled.unreached_vertices;
        report.stats = stats;
        let weights = filled.weights.scatter(&weld.place_of);
        self.end(Stage::Influence);
        self.progress.at(Stage::Influence, 1.0)?;
        Ok(Bound { weights, report: self.report })
    }
}

fn interior_name(interior: Interior) -> &'static str {
    match interior {
        Interior::Auto => "auto",
        Interior::Flood => "flood",
        Interior::Winding => "winding",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bone;

    fn bone(name: &str, head: [f64; 3], tail: [f64; 3]) -> Bone {
        Bone { name: name.into(), head: head.into(), tail: tail.into(), parent: None, deform: true }
    }

    #[test]
    fn excluded_and_helper_bones_are_not_used() {
        let mut helper = bone("h", [0.; 3], [1.; 3]);
        helper.deform = false;
        let skeleton = Skeleton::new(vec![bone("a", [0.; 3], [1.; 3]), helper, bone("b", [0.; 3], [1.; 3])]).unwrap();
        assert_eq!(usable(&skeleton, &["a".into()]).unwrap(), [false, false, true]);
        assert!(matches!(usable(&skeleton, &["x".into()]), Err(Error::UnknownBone(n)) if n == "x"));
        assert!(matches!(usable(&skeleton, &["a".into(), "b".into()]), Err(Error::NoBones(_))));
    }
}
