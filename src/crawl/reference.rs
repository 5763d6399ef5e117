//! The crawl as its definition says: one Dijkstra (1959) per bone in f64, slow and obviously right.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use glam::{DVec3, IVec3, UVec3};

use super::seeds::touches;
use super::{Label, Neighbors};
use crate::geometry::segment;
use crate::model::{BitGrid, Bone, Grid, Skeleton};

/// All voxels of a grid, x fastest, then y, then z.
pub fn voxels(dims: UVec3) -> impl Iterator<Item = UVec3> {
    (0..dims.z).flat_map(move |z| (0..dims.y).flat_map(move |y| (0..dims.x).map(move |x| UVec3::new(x, y, z))))
}

/// The place of a voxel in that order.
pub fn place(dims: UVec3, v: UVec3) -> usize {
    (v.x as usize) + dims.x as usize * (v.y as usize + dims.y as usize * v.z as usize)
}

/// The solid voxels around a voxel, each with the distance between the centres.
pub fn around(solid: &BitGrid, neighbors: Neighbors, voxel: UVec3) -> Vec<(UVec3, f64)> {
    let mut found = Vec::new();
    for d in voxels(UVec3::splat(3)) {
        let d = d.as_ivec3() - IVec3::ONE;
        let apart = d.length_squared();
        let allowed = match neighbors {
            Neighbors::Six => apart == 1,
            Neighbors::TwentySix => apart > 0,
        };
        let v = voxel.as_ivec3() + d;
        let inside = v.cmpge(IVec3::ZERO).all() && v.cmplt(solid.dims().as_ivec3()).all();
        if allowed && inside && solid.get(v.as_uvec3()) {
            found.push((v.as_uvec3(), f64::from(apart).sqrt()));
        }
    }
    found
}

/// Where a bone starts: every solid voxel that its segment touches, or else the nearest ones, each with the distance of
/// its centre from the segment, in voxels.
pub fn start(grid: &Grid, solid: &BitGrid, bone: &Bone) -> Vec<(UVec3, f64)> {
    let middle = (grid.dims() / 2).as_dvec3();
    let (head, tail) = (grid.to_middle(bone.head), grid.to_middle(bone.tail));
    let far = |v: UVec3| segment::distance(v.as_dvec3() - middle, head, tail);
    let all: Vec<(UVec3, f64)> = voxels(grid.dims()).filter(|&v| solid.get(v)).map(|v| (v, far(v))).collect();
    let (p, q) = (grid.lattice(bone.head), grid.lattice(bone.tail));
    let crossed: Vec<(UVec3, f64)> = all.iter().copied().filter(|(v, _)| touches(p, q, *v)).collect();
    if !crossed.is_empty() {
        return crossed;
    }
    // Equally near, up to rounding, and of those the ones nearest to the middle.
    let least = all.iter().map(|(_, d)| *d).fold(f64::INFINITY, f64::min);
    let tied: Vec<(UVec3, f64)> =
        all.into_iter().filter(|(_, d)| *d <= least + 1e-9 + 8.0 * f64::EPSILON * least).collect();
    let inner = |v: UVec3| DVec3::length_squared(v.as_dvec3() - middle);
    let innermost = tied.iter().map(|(v, _)| inner(*v)).fold(f64::INFINITY, f64::min);
    tied.into_iter().filter(|(v, _)| inner(*v) == innermost).map(|(v, _)| (v, least)).collect()
}

/// Distance of every voxel from the starts through the solid, in voxels; infinite where there is no way.
pub fn distances(solid: &BitGrid, neighbors: Neighbors, starts: &[(UVec3, f64)]) -> Vec<f64> {
    let dims = solid.dims();
    let mut distance = vec![f64::INFINITY; voxels(dims).count()];
    let mut heap = BinaryHeap::new();
    // Distances are not negative, and the bits of such numbers sort as the numbers do.
    for &(voxel, d) in starts {
        let at = &mut distance[place(dims, voxel)];
        *at = at.min(d);
        heap.push(Reverse((d.to_bits(), voxel.to_array())));
    }
    while let Some(Reverse((d, voxel))) = heap.pop() {
        let (d, voxel) = (f64::from_bits(d), UVec3::from_array(voxel));
        if d > distance[place(dims, voxel)] {
            continue;
        }
        for (next, apart) in around(solid, neighbors, voxel) {
            let at = &mut distance[place(dims, next)];
            if d + apart < *at {
                *at = d + apart;
                heap.push(Reverse((at.to_bits(), next.to_array())));
            }
        }
    }
    distance
}

/// For every voxel of the grid its `labels` nearest bones, ties by bone name.
pub fn labels(
    grid: &Grid,
    solid: &BitGrid,
    skeleton: &Skeleton,
    use_bone: &[bool],
    labels: usize,
    neighbors: Neighbors,
) -> Vec<Vec<Label>> {
    let mut found = vec![Vec::new(); voxels(solid.dims()).count()];
    for (b, bone) in skeleton.bones().iter().enumerate().filter(|(b, _)| use_bone[*b]) {
        let distance = distances(solid, neighbors, &start(grid, solid, bone));
        for (at, &d) in found.iter_mut().zip(&distance).filter(|(_, d)| d.is_finite()) {
            at.push(Label { bone: b as u32, distance: d });
        }
    }
    for at in &mut found {
        let rank = |l: &Label| skeleton.rank(l.bone as usize);
        at.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(rank(a).cmp(&rank(b))));
        at.truncate(labels);
    }
    found
}
