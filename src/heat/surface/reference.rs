//! Heat on a surface the plain way, in f64: every bone against every triangle, and elimination with a full matrix.
//!
//! Slow and obviously right: the oracle for the fast path and for the GPU.

use glam::{DMat3, DVec3};

use crate::geometry::segment;
use crate::heat::surface::system::System;
use crate::model::{Mesh, Skeleton};

/// The heat of each bone (of so many) at each unknown, by Gaussian elimination with the whole matrix: in time of the cube of the
/// number of unknowns.
pub fn heats(system: &System, bones: usize) -> Vec<Vec<f64>> {
    let n = system.len();
    // The matrix, and beside it the right-hand sides.
    let mut rows = vec![vec![0.0; n + bones]; n];
    for (i, row) in rows.iter_mut().enumerate() {
        row[i] = system.diagonal(i);
        system.edges(i).for_each(|(j, conductance)| row[j as usize] -= conductance);
    }
    for (bone, side) in system.right_sides(bones).iter().enumerate() {
        side.iter().for_each(|&(i, value)| rows[i as usize][n + bone] = value);
    }
    for i in 0..n {
        let (above, below) = rows.split_at_mut(i + 1);
        let pivot = &above[i];
        for row in below.iter_mut().filter(|row| row[i] != 0.0) {
            let factor = row[i] / pivot[i];
            row[i..].iter_mut().zip(&pivot[i..]).for_each(|(x, p)| *x -= factor * p);
        }
    }
    let mut heats = vec![vec![0.0; n]; bones];
    for (bone, heat) in heats.iter_mut().enumerate() {
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| rows[i][j] * heat[j]).sum();
            heat[i] = (rows[i][n + bone] - known) / rows[i][i];
        }
    }
    heats
}

/// Whether a triangle of the mesh lies on the way from `from`, a vertex, to `to`: the three equations of Moeller and Trumbore
/// ("Fast, Minimum Storage Ray-Triangle Intersection", 1997) solved with each triangle. Triangles with a corner at `from`
/// do not count, nor do crossings within `margin` (a share of the way) of either end.
pub fn hidden(mesh: &Mesh, from: DVec3, to: DVec3, margin: f64) -> bool {
    mesh.triangles().iter().map(|&t| mesh.corners(t)).filter(|corners| !corners.contains(&from)).any(|[a, b, c]| {
        let matrix = DMat3::from_cols(from - to, b - a, c - a);
        if matrix.determinant() == 0.0 {
            return false;
        }
        let [t, u, v] = (matrix.inverse() * (from - a)).to_array();
        u >= 0.0 && v >= 0.0 && u + v <= 1.0 && t > margin && t < 1.0 - margin
    })
}

/// The bones that heat a place at `p`, by index, and their distance: those within `tie` of the nearest that `sees(bone)`, as
/// long as that is within `reach` of the nearest of all.
pub fn nearest_seen(
    skeleton: &Skeleton,
    p: DVec3,
    tie: f64,
    reach: f64,
    sees: impl Fn(usize) -> bool,
) -> Option<(Vec<u32>, f64)> {
    let distance: Vec<f64> = skeleton.bones().iter().map(|b| segment::distance(p, b.head, b.tail)).collect();
    let nearest = distance.iter().copied().fold(f64::INFINITY, f64::min);
    let seen: Vec<usize> = (0..distance.len()).filter(|&b| distance[b] <= nearest * reach && sees(b)).collect();
    let least = seen.iter().map(|&b| distance[b]).fold(f64::INFINITY, f64::min);
    let shared: Vec<u32> = seen.iter().filter(|&&b| distance[b] <= least * tie).map(|&b| b as u32).collect();
    (!shared.is_empty()).then_some((shared, least))
}
