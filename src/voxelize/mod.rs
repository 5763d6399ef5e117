//! Mesh to solid voxels: the boundary by conservative triangle-box overlap, then the inside.
//!
//! # Which voxels the surface touches
//!
//! The rule is exact and whole-numbered, so that every implementation finds the same voxels:
//!
//! 1. Each vertex is moved to the lattice of [`Grid::lattice`]: 256 steps a voxel, rounded symmetrically about the middle
//!    of the grid. Lattice coordinates are below 2^18.1.
//! 2. Voxel (i, j, k) is the *closed* box [256 i, 256 (i + 1)] x [256 j, 256 (j + 1)] x [256 k, 256 (k + 1)].
//! 3. A voxel is a surface voxel if it has a point in common with a triangle. Mere contact counts: a triangle in the face
//!    between two voxels, or a vertex at the corner of eight, is in all of them. A triangle that is a segment or a
//!    point on the lattice has the voxels of that segment or point.
//!
//! `reference` decides this by 13 separating axes (Akenine-Möller 2001). Equivalent, and what fast paths use: all of
//! these hold for the voxel (after Schwarz and Seidel 2010), where n is a normal on the lattice and p a corner:
//!
//! - it lies in the triangle's box: along each axis from `floor((min - 1) / 256)` to `floor(max / 256)`;
//! - in each of the three shadows along an axis, for each edge with normal n that points into the triangle:
//!   `n . v + max(n_u, 0) + max(n_v, 0) + floor(-(n . p) / 256) >= 0`. All terms fit 31 bits. A shadow that is a segment takes
//!   its longest edge with both normals;
//! - for the plane, n = (p1 - p0) x (p2 - p0): `n . v + sum max(n_i, 0) + floor(-(n . p) / 256) >= 0` and
//!   `-(n . v) - sum min(n_i, 0) + floor((n . p) / 256) >= 0`. Components of n are below 2^37.1, all terms below 2^50: exact
//!   in f64, and in two 32-bit limbs once set up a triangle.
//!
//! # The inside
//!
//! See [`Interior`]. The tree of winding numbers is [`crate::geometry::winding`].

mod closed;
mod doubt;
mod flood;
#[cfg(feature = "gpu")]
pub mod gpu;
mod interior;
mod parts;
pub mod reference;
mod surface;
mod touching;

use rayon::prelude::*;

use crate::error::Result;
use crate::model::{BitGrid, Code, Grid, Mesh, Warning, Weld};
use crate::progress::{Progress, Stage};

use closed::Closedness;

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

/// Finds the solid voxels of a mesh. `grid` is the one around this mesh ([`Grid::around`] its bounds), `weld` its
/// [`Mesh::weld`]. The result depends on neither the order of the triangles nor the number of threads.
///
/// # Errors
/// [`crate::Error::Parameter`] where the grid is not one around this mesh, [`crate::Error::Length`] where the weld is not
/// that of this mesh, [`crate::Error::Cancelled`].
pub fn voxelize(mesh: &Mesh, weld: &Weld, grid: &Grid, interior: Interior, progress: Progress) -> Result<Voxels> {
    let mut voxels = solid_voxels(mesh, weld, grid, interior, progress)?;
    voxels.warnings.extend(parts_that_touch(mesh, weld, &voxels));
    Ok(voxels)
}

/// Warns where parts of the surface are too near to each other for these voxels of a mesh: a search that only looks, so that
/// it can run beside what comes next.
pub fn parts_that_touch(mesh: &Mesh, weld: &Weld, voxels: &Voxels) -> Option<Warning> {
    touching::find(mesh, weld, &voxels.grid, &voxels.surface, &voxels.solid)
}

/// [`voxelize`] without looking for parts that touch.
///
/// # Errors
/// As [`voxelize`].
pub fn solid_voxels(mesh: &Mesh, weld: &Weld, grid: &Grid, interior: Interior, progress: Progress) -> Result<Voxels> {
    let vertices = mesh.positions().len();
    if weld.place_of.len() != vertices {
        return Err(crate::Error::Length { what: "weld", found: weld.place_of.len(), expected: vertices });
    }
    let (surface, shape) = rayon::join(|| surface::surface(mesh, grid, progress), || closed::examine(mesh, weld));
    let surface = surface?;
    progress.at(Stage::Interior, 0.0)?;
    let (interior, reason) = choose(interior, &shape);
    let solid = match interior {
        Interior::Winding => winding_solid(mesh, weld, grid, &shape, &surface, progress)?,
        _ => complement(flood::outside(&surface, progress)?),
    };
    let mut warnings = Vec::new();
    warn_of_shape(&shape, interior, mesh.triangles().len(), &mut warnings);
    progress.at(Stage::Interior, 1.0)?;
    Ok(Voxels { grid: *grid, surface, solid, interior, reason, warnings })
}

/// How the inside of this surface is found, and why so.
fn choose(interior: Interior, shape: &Closedness) -> (Interior, &'static str) {
    match interior {
        Interior::Flood => (Interior::Flood, "asked for"),
        Interior::Winding => (Interior::Winding, "asked for"),
        Interior::Auto if !shape.open_edges.is_empty() => (Interior::Winding, "the surface has open edges"),
        Interior::Auto => (Interior::Flood, "the surface is closed"),
    }
}

/// The surface, and what it winds around.
fn winding_solid(
    mesh: &Mesh,
    weld: &Weld,
    grid: &Grid,
    shape: &Closedness,
    surface: &BitGrid,
    progress: Progress,
) -> Result<BitGrid> {
    let hull = parts::Hull::new(mesh, weld, grid, &shape.open_edges);
    let mut solid = interior::winding(&hull, surface, progress)?;
    solid.words_mut().iter_mut().zip(surface.words()).for_each(|(s, b)| *s |= b);
    Ok(solid)
}

/// The voxels of the surface alone: [`voxelize`] without the inside.
///
/// # Errors
/// [`crate::Error::Parameter`] where the grid is not one around this mesh, [`crate::Error::Cancelled`].
pub fn surface_voxels(mesh: &Mesh, grid: &Grid, progress: Progress) -> Result<BitGrid> {
    surface::surface(mesh, grid, progress)
}

/// What is not outside is solid.
fn complement(mut outside: BitGrid) -> BitGrid {
    let words = outside.words_per_row();
    let last = flood::last_word(outside.dims().x);
    outside.words_mut().par_chunks_mut(words).with_min_len(1024).for_each(|row| {
        row.iter_mut().for_each(|w| *w = !*w);
        if let Some(w) = row.last_mut() {
            *w &= last;
        }
    });
    outside
}

fn warn_of_shape(shape: &Closedness, interior: Interior, triangles: usize, warnings: &mut Vec<Warning>) {
    if shape.degenerate > 0 {
        let message = format!(
            "{} of {triangles} triangles are degenerate (no area to speak of); they count as the segments or points they are",
            shape.degenerate
        );
        warnings.push(Warning::new(Code::DegenerateFaces, message));
    }
    if !shape.open_edges.is_empty() {
        let (_, holes) = closed::holes(&shape.open_edges);
        let inside = match interior {
            Interior::Winding => "its inside was decided by the winding number",
            _ => "its inside is what a fill from outside does not reach, which leaks through holes wider than a voxel",
        };
        let edges = shape.open_edges.len();
        let message =
            format!("the surface is not closed: {edges} open edges in {holes} groups (holes or rims); {inside}");
        warnings.push(Warning::new(Code::SurfaceOpen, message));
    }
}
