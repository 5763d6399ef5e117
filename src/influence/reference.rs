//! The formulas of this stage in plain f64, one vertex at a time: what the fast paths are held against.

use glam::{DVec3, IVec3};

use crate::influence::envelope::{DISTANCE_FLOOR, EDGE, REACH};
use crate::influence::{Falloff, LENGTH_FLOOR, LabelSource, Limits};
use crate::model::{Grid, Influence, Skeleton};

/// `(1 / ((1-a) l + a l^2))^power` for a length `l` in bounding-box diagonals, which counts as at least 1e-4.
pub fn raw_weight(l: f64, falloff: &Falloff) -> f64 {
    let l = l.max(LENGTH_FLOOR);
    let a = falloff.smoothing;
    (1.0 / ((1.0 - a) * l + a * l * l)).powf(falloff.power)
}

/// The raw weights at a position: for each bone the trilinear mean of [`raw_weight`] over the voxel centres around the
/// position, each with the way from the position to that centre added. Corners without labels drop out, a corner that
/// lacks a bone's label counts as 0 for it. `diagonal` is that of the mesh' bounding box, in world units.
pub fn sampled(
    p: DVec3,
    source: &impl LabelSource,
    grid: &Grid,
    bones: usize,
    diagonal: f64,
    falloff: &Falloff,
) -> Vec<f64> {
    let at = grid.to_grid(p) - 0.5;
    let low = at.floor();
    let mut corners = Vec::new();
    for corner in 0..8 {
        let step = IVec3::new(corner & 1, corner >> 1 & 1, corner >> 2);
        let voxel = low.as_ivec3() + step;
        let centre = low + step.as_dvec3();
        let share = (DVec3::ONE - (at - centre).abs()).element_product();
        let labels: Vec<_> = if grid.contains(voxel) { source.at(voxel.as_uvec3()).collect() } else { Vec::new() };
        if !labels.is_empty() {
            corners.push((share, at.distance(centre), labels));
        }
    }
    if corners.iter().all(|c| c.0 <= 0.0) {
        let least = corners.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
        for corner in &mut corners {
            corner.0 = if corner.1 == least { 1.0 } else { 0.0 };
        }
    }
    let mut weights = vec![0.0; bones];
    for (share, offset, labels) in corners {
        for label in labels {
            let l = (label.distance + offset) * grid.voxel() / diagonal;
            weights[label.bone as usize] += share * raw_weight(l, falloff);
        }
    }
    weights
}

/// Raw envelope weights of a position: `1 / max(d, floor)^4` for the bones with `use_bone` within twice the nearest distance.
pub fn envelope(p: DVec3, skeleton: &Skeleton, use_bone: &[bool], diagonal: f64) -> Vec<f64> {
    let floor = DISTANCE_FLOOR * diagonal;
    let distances: Vec<f64> = skeleton.bones().iter().map(|b| segment_distance(p, b.head, b.tail).max(floor)).collect();
    let used = || distances.iter().zip(use_bone).filter(|(_, used)| **used).map(|(d, _)| *d);
    let reach = REACH * used().fold(f64::INFINITY, f64::min) * (1.0 + EDGE).sqrt();
    let weight = |(d, &used): (&f64, &bool)| if used && *d <= reach { d.powi(-4) } else { 0.0 };
    distances.iter().zip(use_bone).map(weight).collect()
}

/// Distance from a point to the segment from `a` to `b`.
pub fn segment_distance(p: DVec3, a: DVec3, b: DVec3) -> f64 {
    let along = b - a;
    let t = if a == b { 0.0 } else { ((p - a).dot(along) / along.length_squared()).clamp(0.0, 1.0) };
    p.distance(a + along * t)
}

/// The final influences from one raw weight a bone: cap at the strongest (ties by bone name), drop those below the
/// threshold of the capped sum (not the strongest), normalise.
pub fn finished(raw: &[f64], limits: &Limits, skeleton: &Skeleton) -> Vec<Influence> {
    let mut order: Vec<usize> = (0..raw.len()).filter(|&b| raw[b] > 0.0).collect();
    order.sort_by(|&a, &b| raw[b].total_cmp(&raw[a]).then(skeleton.rank(a).cmp(&skeleton.rank(b))));
    order.truncate(limits.max_influences);
    let capped: f64 = order.iter().map(|&b| raw[b]).sum();
    let strongest = order.first().copied();
    order.retain(|&b| Some(b) == strongest || raw[b] / capped >= limits.threshold);
    let total: f64 = order.iter().map(|&b| raw[b]).sum();
    order.iter().map(|&b| Influence { joint: b as u32, weight: raw[b] / total }).collect()
}
