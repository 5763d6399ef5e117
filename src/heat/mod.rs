//! Heat in the solid: every bone heats the voxels around it, and a voxel's heat of a bone is the bone's weight.
//!
//! Bone heat (Baran & Popovic 2007) carried from the surface into the solid voxels, with sources that know how thick
//! the body is around each bone. `docs/heat.md` has the equation, the source rule with a picture, and how each
//! parameter was chosen.

pub mod budget;
pub mod cpu;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod levels;
pub mod links;
pub mod multigrid;
pub mod radius;
pub mod reference;
pub mod sample;
pub mod segment;
pub mod solid;
pub mod sources;
pub mod surface;
pub mod travel;
pub mod trim;

use glam::DVec3;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::{BitGrid, Grid, Influence, Skeleton, Warning};
use crate::progress::{Progress, Stage};
use crate::voxelize::Voxels;
use solid::Solid;
use sources::{Source, crossed, owners, sources};

/// How strongly a bone heats a voxel one voxel length away. Lowest posed error over three hand-weighted rigs.
pub const STRENGTH: f64 = 0.75;
/// The power that sharpens the normalised heats. Lowest posed error over three hand-weighted rigs.
pub const SHARPNESS: f64 = 1.4;
/// Most that a raw heat is off the exact solution, on a scale from 0 to 1.
pub const TOLERANCE: f64 = 1e-3;

/// How far a voxel is from a bone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distance {
    /// Along a straight line, whatever is in the way.
    #[default]
    Straight,
    /// Through the body, where that is a detour; see [`travel`].
    Crawl,
}

/// Parameters of heat in the solid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// How strongly a bone heats a voxel one voxel length away, above 0. Larger: weights follow the nearest bone more
    /// closely.
    pub strength: f64,
    /// The power to which normalised heats are raised, from 1 (plain) to 4.
    pub sharpness: f64,
    /// Most that a heat may be off the exact solution, from 1e-9 to 0.1.
    pub tolerance: f64,
    /// How far a voxel is from a bone, where its source is chosen.
    pub distance: Distance,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { strength: STRENGTH, sharpness: SHARPNESS, tolerance: TOLERANCE, distance: Distance::Straight }
    }
}

impl Parameters {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        let limits = [
            ("strength", self.strength, 1e-3..=1e3, "it must be from 0.001 to 1000"),
            ("sharpness", self.sharpness, 1.0..=4.0, "it must be from 1 to 4"),
            ("tolerance", self.tolerance, 1e-9..=0.1, "it must be from 1e-9 to 0.1"),
        ];
        for (name, value, range, allowed) in limits {
            if !range.contains(&value) {
                return Err(Error::Parameter { name, value: value.to_string(), allowed });
            }
        }
        Ok(())
    }
}

/// Heat in the solid, ready to be asked for raw weights at positions.
pub struct Heated {
    grid: Grid,
    solid: Solid,
    heats: cpu::Heats,
    bones: usize,
    sharpness: f64,
    /// Iterations of all groups of bones at full resolution; on a GPU the most sweeps of a solve.
    pub iterations: usize,
    /// The largest relative residual of a bone; on a GPU a bound of the error.
    pub residual: f64,
    pub warnings: Vec<Warning>,
}

impl Heated {
    /// What [`Self::raw_weights`] keeps from position to position; one a thread.
    pub fn scratch(&self) -> sample::Scratch {
        sample::Scratch::new(self.bones)
    }

    /// Puts the raw weights at a position (one of those that the heat was made for) into `raw` (which is empty): every
    /// bone that reaches it, sharpened, not cut. None where the position is in no solid voxel, or in a part of the
    /// solid through which no bone runs.
    pub fn raw_weights(&self, p: DVec3, scratch: &mut sample::Scratch, raw: &mut Vec<Influence>) {
        sample::heats_at(p, &self.solid, &self.grid, &self.heats, scratch, raw);
        sample::sharpen(raw, self.sharpness);
    }
}

/// The equation to solve: who heats which voxel how strongly. What both devices and the reference start from.
pub struct Problem {
    /// The solid voxels in parts through which a bone runs.
    pub solid: Solid,
    pub sources: Vec<Source>,
    /// The source of each voxel.
    pub owner: Vec<u32>,
    /// The conductance between each voxel and its source.
    pub conductance: Vec<f64>,
    pub warnings: Vec<Warning>,
}

impl Problem {
    /// Finds sources, owners and conductances (steps 1 to 6 of the source rule).
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn new(
        voxels: &Voxels,
        skeleton: &Skeleton,
        use_bone: &[bool],
        parameters: &Parameters,
        progress: Progress,
    ) -> Result<Self> {
        let solid = Solid::new(voxels.solid.clone());
        let found = sources(&solid, &voxels.surface, &voxels.grid, skeleton, use_bone);
        let solid = with_sources(solid, &found.all);
        let (owner, distance) = match parameters.distance {
            Distance::Straight => {
                let owner = owners(&solid, &found.all);
                let distance = sources::distances(&solid, &found.all, &owner);
                (owner, distance)
            }
            Distance::Crawl => travel::owners(voxels, &solid, &found.all, progress)?,
        };
        let conductance = distance.into_iter().map(|d| sources::conductance(parameters.strength, d)).collect();
        Ok(Self { solid, sources: found.all, owner, conductance, warnings: found.warnings })
    }

    /// The bone that heats each voxel.
    pub fn bone_of(&self) -> Vec<u32> {
        self.owner.iter().map(|&s| self.sources[s as usize].bone).collect()
    }
}

/// Only the parts of the solid through which a source runs: the others would have no heat to start from, or heat that
/// jumps to them through the open.
fn with_sources(solid: Solid, sources: &[Source]) -> Solid {
    let neighbors: Vec<[u32; 6]> = (0..solid.len() as u32).into_par_iter().map(|v| solid.neighbors(v)).collect();
    let (part, count) = solid::parts(&neighbors);
    let mut reached = vec![false; count];
    for voxel in sources.iter().flat_map(|s| crossed(&solid, s)) {
        reached[part[voxel as usize] as usize] = true;
    }
    if reached.iter().all(|&r| r) {
        return solid;
    }
    let mut bits = BitGrid::new(solid.bits().dims());
    for voxel in (0..solid.len() as u32).filter(|&v| reached[part[v as usize] as usize]) {
        bits.set(solid.coordinates(voxel));
    }
    Solid::new(bits)
}

/// Heat of all bones in the solid, for the raw weights at `places` (world positions).
///
/// Bones without `use_bone` take no part.
///
/// # Errors
/// [`Error::Parameter`] for a parameter outside its range, [`Error::Length`] where `use_bone` has not one entry a bone,
/// and [`Error::Cancelled`].
pub fn voxel_heat(
    voxels: &Voxels,
    skeleton: &Skeleton,
    use_bone: &[bool],
    places: &[DVec3],
    parameters: &Parameters,
    progress: Progress,
) -> Result<Heated> {
    let setting = Setting::new(voxels, skeleton, use_bone, places, parameters, progress)?;
    let heats = cpu::heat(&setting.levels, &setting.order, &setting.needed, parameters.tolerance, progress)?;
    Ok(setting.heated(heats))
}

/// What a solve starts from, on every device.
struct Setting {
    grid: Grid,
    problem: Problem,
    levels: Vec<levels::Level>,
    /// Bones, those near each other together.
    order: Vec<u32>,
    /// The voxels whose heats are asked for.
    needed: Vec<bool>,
    sharpness: f64,
}

impl Setting {
    /// The arguments and errors of [`voxel_heat`].
    fn new(
        voxels: &Voxels,
        skeleton: &Skeleton,
        use_bone: &[bool],
        places: &[DVec3],
        parameters: &Parameters,
        progress: Progress,
    ) -> Result<Self> {
        parameters.check()?;
        if use_bone.len() != skeleton.len() {
            return Err(Error::Length { what: "bones to use", found: use_bone.len(), expected: skeleton.len() });
        }
        progress.at(Stage::Heat, 0.0)?;
        let problem = Problem::new(voxels, skeleton, use_bone, parameters, progress)?;
        let levels = levels::levels(&problem.solid, skeleton.len(), &problem.bone_of(), &problem.conductance);
        let needed = sample::needed(&problem.solid, &voxels.grid, places);
        let (grid, order, sharpness) = (voxels.grid, nearby_order(skeleton), parameters.sharpness);
        Ok(Self { grid, problem, levels, order, needed, sharpness })
    }

    fn heated(self, heats: cpu::Heats) -> Heated {
        Heated {
            grid: self.grid,
            solid: self.problem.solid,
            bones: self.order.len(),
            sharpness: self.sharpness,
            iterations: heats.iterations,
            residual: heats.residual,
            heats,
            warnings: self.problem.warnings,
        }
    }
}

/// Bones in depth-first order, children by name, so that bones near each other stand together and the order in which
/// they are listed does not matter.
pub fn nearby_order(skeleton: &Skeleton) -> Vec<u32> {
    let mut children = vec![Vec::new(); skeleton.len()];
    let mut stack = Vec::new();
    let mut by_name: Vec<usize> = (0..skeleton.len()).collect();
    by_name.sort_unstable_by_key(|&b| std::cmp::Reverse(skeleton.rank(b)));
    for bone in by_name {
        match skeleton.bones()[bone].parent {
            Some(parent) => children[parent].push(bone),
            None => stack.push(bone),
        }
    }
    let mut order = Vec::with_capacity(skeleton.len());
    while let Some(bone) = stack.pop() {
        order.push(bone as u32);
        stack.extend(&children[bone]);
    }
    order
}

#[cfg(test)]
mod test_shapes {
    use glam::{DVec3, UVec3};

    use super::solid::Solid;
    use crate::model::BitGrid;

    /// The voxels whose middle is inside.
    pub fn solid_where(dims: [u32; 3], inside: impl Fn(DVec3) -> bool) -> Solid {
        let mut bits = BitGrid::new(UVec3::from_array(dims));
        for z in 0..dims[2] {
            for y in 0..dims[1] {
                for x in 0..dims[0] {
                    let v = UVec3::new(x, y, z);
                    if inside(v.as_dvec3() + DVec3::splat(0.5)) {
                        bits.set(v);
                    }
                }
            }
        }
        Solid::new(bits)
    }

    /// The voxels from one coordinate up to but not including another, in a grid with a layer more.
    pub fn block(from: [u32; 3], to: [u32; 3]) -> Solid {
        let (low, high) = (UVec3::from_array(from).as_dvec3(), UVec3::from_array(to).as_dvec3());
        solid_where(to.map(|n| n + 1), |p| p.cmpgt(low).all() && p.cmplt(high).all())
    }
}
