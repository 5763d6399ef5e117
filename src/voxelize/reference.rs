//! The boundary voxels as the formula says, one separating-axis test a voxel (Akenine-Möller, "Fast 3D triangle-box
//! overlap testing", 2001), in integers: the oracle for the fast paths.

use glam::{IVec3, UVec3};

use crate::model::{BitGrid, Grid, LATTICE, Mesh};

/// Whether a triangle on the lattice and the closed box of a voxel have a point in common.
///
/// Corners must be lattice points of a grid (see [`Grid::lattice`]), so that products of three of them fit 64 bits.
pub fn overlaps(corners: [IVec3; 3], voxel: IVec3) -> bool {
    let v = corners.map(|c| c.to_array().map(i64::from));
    let low = (voxel * LATTICE).to_array().map(i64::from);
    let edges = [sub(v[1], v[0]), sub(v[2], v[1]), sub(v[0], v[2])];
    let unit = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    let mut axes = vec![cross(edges[0], edges[1])];
    for u in unit {
        axes.push(u);
        axes.extend(edges.iter().map(|&e| cross(u, e)));
    }
    !axes.into_iter().any(|axis| separates(axis, v, low))
}

/// Whether the projections of triangle and box on the axis have no point in common. The zero axis, which degenerate
/// triangles have, separates nothing.
fn separates(axis: [i64; 3], corners: [[i64; 3]; 3], low: [i64; 3]) -> bool {
    let on_axis = corners.map(|c| dot(axis, c));
    let base = dot(axis, low);
    let size = i64::from(LATTICE);
    let box_min = base + size * axis.iter().map(|&a| a.min(0)).sum::<i64>();
    let box_max = base + size * axis.iter().map(|&a| a.max(0)).sum::<i64>();
    on_axis.iter().all(|&p| p > box_max) || on_axis.iter().all(|&p| p < box_min)
}

/// The voxels that the surface touches: every voxel of every triangle's box is tested.
pub fn surface(mesh: &Mesh, grid: &Grid) -> BitGrid {
    let mut bits = BitGrid::new(grid.dims());
    let last = grid.dims().as_ivec3() - IVec3::ONE;
    for &triangle in mesh.triangles() {
        let corners = mesh.corners(triangle).map(|p| grid.lattice(p));
        // A corner on a face between two voxels touches both.
        let min = (corners[0].min(corners[1]).min(corners[2]) - IVec3::ONE).div_euclid(IVec3::splat(LATTICE));
        let max = corners[0].max(corners[1]).max(corners[2]).div_euclid(IVec3::splat(LATTICE));
        let (min, max) = (min.max(IVec3::ZERO), max.min(last));
        for z in min.z..=max.z {
            for y in min.y..=max.y {
                for x in min.x..=max.x {
                    if overlaps(corners, IVec3::new(x, y, z)) {
                        bits.set(UVec3::new(x as u32, y as u32, z as u32));
                    }
                }
            }
        }
    }
    bits
}

fn sub(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [i64; 3], b: [i64; 3]) -> i64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [i64; 3], b: [i64; 3]) -> [i64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
