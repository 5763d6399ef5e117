//! Mesh + skeleton to weights: the only file that knows the order of the stages.

use std::time::Instant;

use serde::Serialize;

#[cfg(feature = "gpu")]
use crate::bind_gpu::GpuKernels;
#[cfg(feature = "gpu")]
use crate::crawl::gpu::Seeds;
use crate::crawl::{self, Neighbors};
use crate::error::{Error, Result};
use crate::heat;
#[cfg(feature = "gpu")]
use crate::influence::gpu::Surface;
use crate::influence::{self, Falloff, Limits, Stats};
use crate::model::{Bounds, Code, Components, Grid, Mesh, Skeleton, Warning, Weights, Weld};
use crate::progress::{Progress, Stage};
use crate::voxelize::{self, Interior, Voxels};

/// Resolution of the geodesic method where none is asked for, in voxels along the longest axis.
pub const DEFAULT_RESOLUTION: u32 = 128;

/// How many times larger than the mesh a skeleton may be, or how many mesh sizes away, before a warning.
const SIZE_RATIO: f64 = 20.0;

/// Most bones that one warning names.
const MOST_NAMES: usize = 12;

/// How weights are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    /// By distance through the body (Dionne and de Lasa 2013).
    #[default]
    Geodesic,
    /// By heat that spreads from the bones in the solid; see [`crate::heat`].
    VoxelHeat,
    /// By straight distance, 1/d^4 within twice the nearest.
    Envelope,
    /// All to the nearest bone.
    Closest,
}

impl Method {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Geodesic => "geodesic",
            Method::VoxelHeat => "voxel-heat",
            Method::Envelope => "envelope",
            Method::Closest => "closest",
        }
    }
}

/// Everything that can be chosen about a bind. The default is what the program does where nothing is asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Params {
    pub method: Method,
    /// Voxels along the longest axis of the mesh, 16 to 1024; `None` for the method's default.
    pub resolution: Option<u32>,
    pub neighbors: Neighbors,
    pub interior: Interior,
    pub falloff: Falloff,
    pub heat: heat::Parameters,
    pub limits: Limits,
    /// Names of bones that get no weight.
    pub exclude: Vec<String>,
}

impl Params {
    /// Checks all ranges. `bind` does so too.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        if let Some(resolution) = self.resolution {
            Grid::check_resolution(resolution)?;
        }
        self.falloff.check()?;
        self.heat.check()?;
        self.limits.check()
    }
}

/// What a bind did.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Report {
    pub vertices: usize,
    pub triangles: usize,
    pub bones: usize,
    pub components: usize,
    pub method: Method,
    pub device: String,
    /// 0 for methods without voxels, and so `solid_voxels`.
    pub resolution: u32,
    pub solid_voxels: u64,
    /// How the inside was found, and why so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interior: Option<String>,
    pub seconds: Seconds,
    /// Most bytes in use at once; filled in by whoever can tell (the program counts its allocations).
    pub peak_bytes: u64,
    #[serde(flatten)]
    pub stats: Stats,
    pub unreached_vertices: usize,
    pub warnings: Vec<Warning>,
}

/// Wall-clock seconds of each stage, in the order they ran.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seconds(pub Vec<(&'static str, f64)>);

impl Seconds {
    /// Adds a stage that has just ended; the total is the last entry and grows by it.
    pub fn add(&mut self, stage: &'static str, seconds: f64) {
        let before = match self.0.pop() {
            Some(("total", total)) => total,
            Some(other) => {
                self.0.push(other);
                0.0
            }
            None => 0.0,
        };
        self.0.push((stage, seconds));
        self.0.push(("total", before + seconds));
    }

    /// The seconds of a stage, or of `"total"`.
    pub fn of(&self, stage: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| *name == stage).map(|&(_, s)| s)
    }
}

impl Serialize for Seconds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

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
/// Voxels are those of [`bind`], distances the same to 2^-17 voxel a step, weights within 1e-5 before the cap: see
/// `docs/precision.md`. Methods without voxels run on the CPU. On native targets [`crate::gpu::block_on`] waits for it.
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
    if params.method != Method::Geodesic {
        return bind(mesh, skeleton, params, progress);
    }
    let (mut job, weld, components) = Job::prepare(mesh, skeleton, params, progress)?;
    job.report.device = kernels.device.adapter_info().name;
    let rows = job.geodesic_on_gpu(kernels, &weld).await?;
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
        report.warnings.extend(skeleton_size(&self.mesh.bounds(), self.skeleton, &self.use_bone));
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

    /// Voxels, heat, weights of the welded places.
    fn voxel_heat(&mut self, weld: &Weld) -> Result<(Weights, Stats)> {
        let params = self.params;
        let by_budget = || heat::budget::Size::of(self.mesh).resolution_for(heat::budget::SOLID_VOXELS);
        let voxels = self.voxels(weld, params.resolution.unwrap_or_else(by_budget))?;
        self.start(Stage::Heat)?;
        let positions = self.mesh.positions();
        let places: Vec<_> = weld.first.iter().map(|&v| positions[v as usize]).collect();
        let (heated, touching) = rayon::join(
            || heat::voxel_heat(&voxels, self.skeleton, &self.use_bone, &places, &params.heat, self.progress),
            || voxelize::parts_that_touch(self.mesh, weld, &voxels),
        );
        let mut heated = heated?;
        self.report.warnings.extend(touching);
        self.report.warnings.append(&mut heated.warnings);
        self.end(Stage::Heat);

        self.start(Stage::Influence)?;
        let used = self.use_bone.iter().filter(|&&used| used).count();
        influence::weigh_places(
            places.len(),
            used.max(params.limits.max_influences + 1),
            &params.limits,
            self.skeleton,
            self.progress,
            || heated.scratch(),
            |scratch, place, raw| heated.raw_weights(places[place], scratch, raw),
        )
    }

    fn describe_voxels(&mut self, voxels: &Voxels) {
        self.report.solid_voxels = voxels.solid.count();
        self.report.interior = Some(format!("{}: {}", interior_name(voxels.interior), voxels.reason));
        self.report.warnings.extend(voxels.warnings.iter().cloned());
    }

    /// Voxels, distances, weights of the welded places, on the device; the host puts the bones into the voxels.
    #[cfg(feature = "gpu")]
    async fn geodesic_on_gpu(&mut self, kernels: &mut GpuKernels, weld: &Weld) -> Result<(Weights, Stats)> {
        let (params, mesh, progress) = (self.params, self.mesh, self.progress);
        let (device, queue) = (&kernels.device.clone(), &kernels.queue.clone());
        let grid = self.grid(params.resolution.unwrap_or(DEFAULT_RESOLUTION))?;
        self.start(Stage::Voxelize)?;
        let voxelize = &kernels.voxelize;
        let (on_gpu, voxels) = voxelize.voxelize(device, queue, mesh, weld, &grid, params.interior, progress).await?;
        let bricks = voxelize.gather(device, queue, &on_gpu.solid).await?;
        drop(on_gpu);
        self.end(Stage::Voxelize);
        self.describe_voxels(&voxels);

        self.start(Stage::Crawl)?;
        let count = params.limits.max_influences + 1;
        let seeds = Seeds::find(&grid, &voxels.solid, self.skeleton, &self.use_bone, count, progress)?;
        self.report.warnings.extend(seeds.warnings.iter().cloned());
        let (crawl, influence) = kernels.for_labels(seeds.per_voxel()).await?;
        let labels = crawl.run(device, queue, &bricks, &seeds, params.neighbors, progress).await?;
        self.end(Stage::Crawl);

        self.start(Stage::Influence)?;
        let positions: Vec<_> = weld.first.iter().map(|&vertex| mesh.positions()[vertex as usize]).collect();
        let surface = Surface { grid: &grid, positions: &positions, diagonal: mesh.bounds().diagonal() };
        let (falloff, limits) = (&params.falloff, &params.limits);
        let weights = influence.run(device, queue, &bricks, &labels, surface, falloff, limits, progress).await?;
        weights.read(device, queue).await
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
        report.warnings.extend(without_weight(self.skeleton, &self.use_bone, &filled.weights));
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

/// Warns where the skeleton is so much larger or smaller than the mesh, or so far off, that units or spaces seem mixed up.
fn skeleton_size(mesh: &Bounds, skeleton: &Skeleton, use_bone: &[bool]) -> Option<Warning> {
    let used = skeleton.bones().iter().zip(use_bone).filter(|(_, used)| **used);
    let bones = Bounds::of(used.clone().flat_map(|(b, _)| [b.head, b.tail]))?;
    let (mesh_size, size) = (mesh.diagonal(), bones.diagonal());
    let text = if size > SIZE_RATIO * mesh_size {
        format!("the skeleton is {:.0} times larger than the mesh", size / mesh_size)
    } else if used.count() > 1 && size * SIZE_RATIO < mesh_size {
        format!("the mesh is {:.0} times larger than the skeleton", mesh_size / size)
    } else if gap(mesh, &bones) > 0.5 * mesh_size {
        "the skeleton lies beside the mesh".into()
    } else {
        return None;
    };
    Some(Warning::new(Code::SkeletonSize, format!("{text}: are both in the same units and the same space?")))
}

/// Distance between two boxes.
fn gap(a: &Bounds, b: &Bounds) -> f64 {
    (a.min - b.max).max(b.min - a.max).max(glam::DVec3::ZERO).length()
}

/// One warning that names the bones which may have weights and got none.
fn without_weight(skeleton: &Skeleton, use_bone: &[bool], weights: &Weights) -> Option<Warning> {
    let mut bare = use_bone.to_vec();
    for influence in weights.iter().flatten() {
        bare[influence.joint as usize] = false;
    }
    let names: Vec<&str> =
        skeleton.bones().iter().zip(&bare).filter(|(_, bare)| **bare).map(|(b, _)| b.name.as_str()).collect();
    let listed = names.iter().take(MOST_NAMES).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let text = match names.len() {
        0 => return None,
        1 => format!("bone {listed} has no weight at any vertex"),
        n if n <= MOST_NAMES => format!("{n} bones have no weight at any vertex: {listed}"),
        n => format!("{n} bones have no weight at any vertex: {listed} and {} more", n - MOST_NAMES),
    };
    let warning = Warning::new(Code::BoneWithoutWeight, text);
    Some(if let [name] = names[..] { warning.bone(name) } else { warning })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bone;
    use glam::DVec3;

    fn bone(name: &str, head: [f64; 3], tail: [f64; 3]) -> Bone {
        Bone { name: name.into(), head: head.into(), tail: tail.into(), parent: None, deform: true }
    }

    #[test]
    fn seconds_end_with_their_total() {
        let mut s = Seconds::default();
        s.add("read", 1.0);
        s.add("crawl", 2.0);
        assert_eq!(s.0, [("read", 1.0), ("crawl", 2.0), ("total", 3.0)]);
        assert_eq!(s.of("total"), Some(3.0));
    }

    #[test]
    fn a_skeleton_in_other_units_is_noticed() {
        let mesh = Bounds { min: DVec3::ZERO, max: DVec3::ONE };
        let said = |bones: Vec<Bone>| {
            let used = vec![true; bones.len()];
            skeleton_size(&mesh, &Skeleton::new(bones).unwrap(), &used).map(|w| w.message)
        };
        assert_eq!(said(vec![bone("a", [0.5, 0., 0.5], [0.5, 1., 0.5])]), None);
        assert!(
            said(vec![bone("a", [50., 0., 50.], [50., 100., 50.])]).unwrap().contains("times larger than the mesh")
        );
        let small = vec![bone("a", [0.005; 3], [0.005, 0.01, 0.005]), bone("b", [0.005; 3], [0.006, 0.01, 0.005])];
        assert!(said(small).unwrap().contains("larger than the skeleton"));
        assert!(said(vec![bone("a", [5., 0., 0.], [5., 1., 0.])]).unwrap().contains("beside"));
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
