//! Mesh to solid voxels: the boundary by conservative triangle-box overlap, then the inside.

#[cfg(feature = "gpu")]
pub mod gpu;

use crate::error::Result;
use crate::model::{BitGrid, Grid, Mesh, Warning, Weld};
use crate::progress::Progress;

/// How the inside is told from the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interior {
    /// Flood where the surface is closed, winding number where it is not.
    #[default]
    Auto,
    /// All that a fill from outside does not reach over voxel faces.
    Flood,
    /// Where the generalized winding number is above one half.
    Winding,
}

/// The voxels of a mesh.
#[derive(Debug, Clone)]
pub struct Voxels {
    pub grid: Grid,
    /// Voxels that the surface touches.
    pub surface: BitGrid,
    /// Those and the ones inside.
    pub solid: BitGrid,
    /// Which way of finding the inside was used (never `Auto`), and why.
    pub interior: Interior,
    pub reason: &'static str,
    pub warnings: Vec<Warning>,
}

/// Finds the solid voxels of a mesh.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn voxelize(mesh: &Mesh, weld: &Weld, grid: &Grid, interior: Interior, progress: Progress) -> Result<Voxels> {
    let _ = (mesh, weld, grid, interior, progress);
    todo!("voxelize")
}
