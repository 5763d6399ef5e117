//! Geodesic distance from the bones through the solid voxels: the K + 1 nearest bones of each voxel.
//!
//! After Dionne and de Lasa, "Geodesic voxel binding for production character meshes" (2013), with all bones in one pass
//! that keeps the nearest few of each voxel. `docs/crawl.md` has the method and the proof that nothing is lost.

mod cpu;
#[cfg(feature = "gpu")]
pub mod gpu;
mod key;
mod moves;
pub mod reference;
pub mod seeds;

use glam::UVec3;

use crate::error::{Error, Result};
use crate::model::{Bricks, Code, Grid, Skeleton, Warning};
use crate::progress::Progress;
use crate::voxelize::Voxels;
use key::{Key, to_voxels};

/// Fewest labels a voxel.
pub const MIN_LABELS: usize = 2;
/// Most labels a voxel.
pub const MAX_LABELS: usize = 17;

/// Which voxels a step may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Neighbors {
    /// Over faces only.
    Six,
    /// Over faces, edges and corners.
    #[default]
    TwentySix,
}

/// A bone and how far it is from a voxel's centre, through the solid, in voxels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    pub bone: u32,
    pub distance: f64,
}

/// The nearest bones of every solid voxel.
#[derive(Debug, Clone)]
pub struct Labels {
    bricks: Bricks,
    per_voxel: usize,
    keys: Keys,
    /// The bone of each rank.
    bones: Vec<u32>,
}

/// `per_voxel` keys a solid voxel, in order.
#[derive(Debug, Clone)]
enum Keys {
    Packed(Vec<u64>),
    Wide(Vec<u128>),
}

impl Labels {
    /// The labels of a voxel, nearest first, ties by bone name; none where it is not solid or no bone reaches it.
    pub fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        self.bricks.index(voxel).into_iter().flat_map(|index| self.of(index))
    }

    /// The labels of the solid voxel with this index (see [`Bricks`]), nearest first.
    ///
    /// # Panics
    /// Where the index is not below the number of solid voxels.
    pub fn of(&self, index: usize) -> impl Iterator<Item = Label> + '_ {
        (index * self.per_voxel..(index + 1) * self.per_voxel).map_while(|i| match &self.keys {
            Keys::Packed(keys) => self.label(keys[i]),
            Keys::Wide(keys) => self.label(keys[i]),
        })
    }

    fn label<K: Key>(&self, key: K) -> Option<Label> {
        (key != K::NONE)
            .then(|| Label { bone: self.bones[usize::from(key.rank())], distance: to_voxels(key.distance()) })
    }

    /// The solid voxels and their indices.
    pub fn bricks(&self) -> &Bricks {
        &self.bricks
    }

    /// How many labels a voxel may have at most.
    pub fn per_voxel(&self) -> usize {
        self.per_voxel
    }
}

/// Finds for every solid voxel the `labels` nearest of the bones with `use_bone`.
///
/// A bone starts in the solid voxels that its segment crosses, each with the distance of its centre from the segment, or,
/// with a warning, in the nearest solid voxel. The result is exact to 2^-32 voxel a step and does not depend on the number
/// of threads, nor on the order of the bones.
///
/// # Errors
/// [`Error::Parameter`] for `labels` outside 2 to 17, [`Error::Length`] where `use_bone` has not one entry a bone,
/// [`Error::Cancelled`].
pub fn crawl(
    voxels: &Voxels,
    skeleton: &Skeleton,
    use_bone: &[bool],
    labels: usize,
    neighbors: Neighbors,
    progress: Progress,
) -> Result<(Labels, Vec<Warning>)> {
    let used = used_bones(skeleton, use_bone, labels)?;
    let bricks = Bricks::new(&voxels.solid);
    let mut bones = vec![0; skeleton.len()];
    for bone in 0..skeleton.len() {
        bones[skeleton.rank(bone) as usize] = bone as u32;
    }
    let per_voxel = labels.min(used.len());
    let job = cpu::Job { grid: &voxels.grid, bricks: &bricks, skeleton, used: &used, per_voxel, neighbors, progress };
    let (keys, outside) = match job.run::<u64>()? {
        Some((keys, outside)) => (Keys::Packed(keys), outside),
        None => {
            let (keys, outside) = job.run::<u128>()?.expect("64-bit distances hold every path through a grid");
            (Keys::Wide(keys), outside)
        }
    };
    let warnings = outside.iter().map(|&(bone, far)| bone_outside(&voxels.grid, skeleton, bone, far)).collect();
    Ok((Labels { bricks, per_voxel, keys, bones }, warnings))
}

/// The bones that take part, once what was asked for is checked.
fn used_bones(skeleton: &Skeleton, use_bone: &[bool], labels: usize) -> Result<Vec<usize>> {
    if !(MIN_LABELS..=MAX_LABELS).contains(&labels) {
        let allowed = "it must be from 2 to 17";
        return Err(Error::Parameter { name: "labels", value: labels.to_string(), allowed });
    }
    if use_bone.len() != skeleton.len() {
        let (found, expected) = (use_bone.len(), skeleton.len());
        return Err(Error::Length { what: "use of bones", found, expected });
    }
    Ok((0..skeleton.len()).filter(|&b| use_bone[b]).collect())
}

fn bone_outside(grid: &Grid, skeleton: &Skeleton, bone: usize, voxels: f64) -> Warning {
    let name = &skeleton.bones()[bone].name;
    let away = four_digits(voxels * grid.voxel());
    let message = format!("bone \"{name}\" lies outside the mesh; it starts at the nearest solid voxel, {away} away");
    Warning::new(Code::BoneOutside, message).bone(name)
}

/// A length with four significant digits, at any scale.
fn four_digits(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if (1e-4..1e7).contains(&rounded) || rounded == 0.0 { rounded.to_string() } else { format!("{rounded:e}") }
}
