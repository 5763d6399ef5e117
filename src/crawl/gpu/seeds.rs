//! Where bones start, found on the host in f64 and integers as for the CPU path, rounded to the GPU's steps.

use rayon::prelude::*;

use super::{FARTHEST, STEPS};
use crate::crawl::seeds::{Seeder, Start};
use crate::crawl::{bone_outside, used_bones};
use crate::error::{Error, Result};
use crate::model::{BitGrid, Bricks, Grid, Skeleton, Warning};
use crate::progress::{Progress, Stage};
use crate::voxelize::gpu::EDGE;

/// Bones whose starts are found at a time: what bounds the memory for them.
const BONES_AT_ONCE: usize = 1024;

/// The starts of all bones, voxel by voxel.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// Two entries a voxel that has any: its brick's place and its cell, and where its labels begin and how many there
    /// are; then the labels, rank and distance.
    pub(super) words: Vec<[u32; 2]>,
    pub(super) voxels: u32,
    pub(super) per_voxel: usize,
    /// Solid voxels of each layer of bricks along z.
    pub(super) layers: Vec<u32>,
    /// The bone of each rank.
    pub(super) bones: Vec<u32>,
    /// The bones that lie outside.
    pub warnings: Vec<Warning>,
}

/// A start in a voxel; sorts by voxel, then as labels do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Seed {
    place: u32,
    cell: u32,
    distance: u32,
    rank: u32,
}

/// A distance in fixed point of 32 fractional bits to the GPU's steps, to the nearest.
pub fn to_steps(fixed: u64) -> u64 {
    (fixed + (1 << 15)) >> 16
}

impl Seeds {
    /// Finds where the bones with `use_bone` start in a solid. `labels` are the most labels a voxel is to have.
    ///
    /// # Errors
    /// [`Error::Limit`] for a bone that is 2^16 voxels away or further, [`Error::Parameter`] for `labels` outside 2 to 17,
    /// [`Error::Length`] where `use_bone` has not one entry a bone, [`Error::Cancelled`].
    pub fn find(
        grid: &Grid,
        solid: &BitGrid,
        skeleton: &Skeleton,
        use_bone: &[bool],
        labels: usize,
        progress: Progress,
    ) -> Result<Self> {
        let used = used_bones(skeleton, use_bone, labels)?;
        let per_voxel = labels.min(used.len()).max(1);
        let bricks = Bricks::new(solid);
        let seeder = Seeder::new(grid, &bricks);
        let (mut all, mut warnings) = (Vec::new(), Vec::new());
        for bones in used.chunks(BONES_AT_ONCE) {
            progress.at(Stage::Crawl, 0.0)?;
            let starts: Vec<Start> = bones.par_iter().map(|&bone| seeder.start(&skeleton.bones()[bone])).collect();
            for (&bone, start) in bones.iter().zip(&starts) {
                warnings.extend(start.outside.map(|far| bone_outside(grid, skeleton, bone, far)));
                for &(voxel, fixed) in &start.seeds {
                    let distance = within(to_steps(fixed), &skeleton.bones()[bone].name)?;
                    let (brick, cell) = (voxel / EDGE, voxel % EDGE);
                    let place = brick.x | brick.y << 10 | brick.z << 20;
                    let cell = cell.x + EDGE * (cell.y + EDGE * cell.z);
                    all.push(Seed { place, cell, distance, rank: skeleton.rank(bone) });
                }
            }
            keep_first(&mut all, per_voxel);
        }
        let mut bones = vec![0; skeleton.len()];
        for bone in 0..skeleton.len() {
            bones[skeleton.rank(bone) as usize] = bone as u32;
        }
        let (words, voxels) = packed(&all);
        Ok(Self { words, voxels, per_voxel, layers: layers(solid), bones, warnings })
    }

    /// Labels a voxel: as many as were asked for, or as there are bones.
    pub fn per_voxel(&self) -> usize {
        self.per_voxel
    }
}

fn layers(solid: &BitGrid) -> Vec<u32> {
    let slice = solid.row_start(0, 1);
    let count = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum();
    solid.words().par_chunks((slice * EDGE as usize).max(1)).map(count).collect()
}

fn within(distance: u64, bone: &str) -> Result<u32> {
    match u32::try_from(distance) {
        Ok(distance) if distance <= FARTHEST => Ok(distance),
        _ => Err(Error::Limit {
            what: format!("distance of bone \"{bone}\" from the mesh, in voxels"),
            needed: (distance / u64::from(STEPS)).to_string(),
            limit: "65534 on a GPU".into(),
            advice: "take --device cpu, or exclude the bone".into(),
        }),
    }
}

/// Sorts, and keeps of each voxel the first labels: no others can be among its best.
fn keep_first(seeds: &mut Vec<Seed>, per_voxel: usize) {
    seeds.par_sort_unstable();
    let voxel = |seed: &Seed| (seed.place, seed.cell);
    let (mut last, mut count) = (None, 0);
    seeds.retain(|seed| {
        count = if last == Some(voxel(seed)) { count + 1 } else { 1 };
        last = Some(voxel(seed));
        count <= per_voxel
    });
}

fn packed(seeds: &[Seed]) -> (Vec<[u32; 2]>, u32) {
    let same = |a: &Seed, b: &Seed| (a.place, a.cell) == (b.place, b.cell);
    let voxels = seeds.chunk_by(same).count();
    let mut words = Vec::with_capacity(2 * voxels + seeds.len());
    let mut first = 2 * voxels;
    for voxel in seeds.chunk_by(same) {
        words.push([voxel[0].place, voxel[0].cell]);
        words.push([first as u32, voxel.len() as u32]);
        first += voxel.len();
    }
    words.extend(seeds.iter().map(|seed| [seed.rank, seed.distance]));
    (words, voxels as u32)
}
