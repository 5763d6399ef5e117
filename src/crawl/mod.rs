//! Geodesic distance from the bones through the solid voxels: the K + 1 nearest bones of each voxel.

use glam::UVec3;

use crate::error::Result;
use crate::model::{Skeleton, Warning};
use crate::progress::Progress;
use crate::voxelize::Voxels;

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
pub struct Labels {}

impl Labels {
    /// The labels of a voxel, nearest first, ties by bone name; none where it is not solid or no bone reaches it.
    pub fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        let _ = voxel;
        std::iter::empty()
    }
}

/// Finds for every solid voxel the `labels` nearest of the bones with `use_bone`.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn crawl(
    voxels: &Voxels,
    skeleton: &Skeleton,
    use_bone: &[bool],
    labels: usize,
    neighbors: Neighbors,
    progress: Progress,
) -> Result<(Labels, Vec<Warning>)> {
    let _ = (voxels, skeleton, use_bone, labels, neighbors, progress);
    todo!("crawl")
}
