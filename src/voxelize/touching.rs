//! Finds parts of the surface that face each other over a gap too narrow for the voxels (fingers, thighs).
use crate::model::{BitGrid, Grid, Mesh, Warning, Weld};
pub fn find(_mesh: &Mesh, _weld: &Weld, _grid: &Grid, _solid: &BitGrid) -> Option<Warning> {
    None
}
