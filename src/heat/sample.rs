//! From heat in voxels to raw weights at positions: step 7 of the source rule.

use glam::{DVec3, IVec3};
use rayon::prelude::*;

use super::cpu::Heats;
use super::solid::Solid;
use crate::model::{Grid, Influence, Weights};

/// Positions handled by one task.
const CHUNK: usize = 2048;

/// The solid voxels around a position whose middles are the corners of the cell it lies in, each with its trilinear share. The shares
/// add up to 1 where all eight are solid; with fewer they are divided by their sum. None where the position's own voxel is not solid.
pub fn corners(solid: &Solid, grid: &Grid, p: DVec3) -> ([(u32, f64); 8], usize) {
    let mut found = [(0, 0.0); 8];
    if solid.at(grid.voxel_of(p).as_ivec3()).is_none() {
        return (found, 0);
    }
    let g = grid.to_grid(p) - DVec3::splat(0.5);
    let base = g.floor();
    let part = g - base;
    let (mut count, mut sum) = (0, 0.0);
    for corner in 0..8 {
        let step = IVec3::new(corner & 1, corner >> 1 & 1, corner >> 2);
        let share = DVec3::select(step.cmpeq(IVec3::ONE), part, DVec3::ONE - part).element_product();
        if share > 0.0
            && let Some(voxel) = solid.at(base.as_ivec3() + step)
        {
            found[count] = (voxel, share);
            count += 1;
            sum += share;
        }
    }
    for corner in &mut found[..count] {
        corner.1 /= sum;
    }
    (found, count)
}

/// The voxels that some position needs.
pub fn needed(solid: &Solid, grid: &Grid, places: &[DVec3]) -> Vec<bool> {
    let mut needed = vec![false; solid.len()];
    for &p in places {
        let (corners, count) = corners(solid, grid, p);
        for &(voxel, _) in &corners[..count] {
            needed[voxel as usize] = true;
        }
    }
    needed
}

/// The heats at a position, trilinear over the solid voxels around it. `heat` has a 0 for each bone and is left so; `bones` is scratch.
fn sample(corners: &[(u32, f64)], heats: &Heats, heat: &mut [f64], bones: &mut Vec<u32>, out: &mut Vec<Influence>) {
    bones.clear();
    for &(voxel, share) in corners {
        for h in heats.of(voxel) {
            let sum = &mut heat[h.bone as usize];
            if *sum == 0.0 {
                bones.push(h.bone);
            }
            *sum += share * h.heat.max(0.0);
        }
    }
    bones.sort_unstable();
    bones.dedup();
    out.extend(bones.iter().map(|&bone| Influence { joint: bone, weight: std::mem::take(&mut heat[bone as usize]) }));
}

/// Normalises the heats of a position and raises them to a power, which sharpens the borders between bones.
pub fn sharpen(heats: &mut [Influence], power: f64) {
    let sum: f64 = heats.iter().map(|h| h.weight).sum();
    if sum > 0.0 {
        for h in heats.iter_mut() {
            h.weight = (h.weight / sum).powf(power);
        }
    }
}

/// Raw weights of all positions: their heats, normalised and sharpened, by ascending bone. Empty where no heat reaches.
pub fn raw_weights(solid: &Solid, grid: &Grid, places: &[DVec3], heats: &Heats, bones: usize, power: f64) -> Weights {
    let chunks: Vec<(Vec<Influence>, Vec<u32>)> = places
        .par_chunks(CHUNK)
        .map_init(
            || (vec![0.0; bones], Vec::new()),
            |(heat, touched), chunk| {
                let (mut all, mut counts) = (Vec::new(), Vec::with_capacity(chunk.len()));
                for &p in chunk {
                    let (corners, count) = corners(solid, grid, p);
                    let start = all.len();
                    sample(&corners[..count], heats, heat, touched, &mut all);
                    sharpen(&mut all[start..], power);
                    counts.push((all.len() - start) as u32);
                }
                (all, counts)
            },
        )
        .collect();
    let mut weights = Weights::with_capacity(places.len(), chunks.iter().map(|c| c.0.len()).sum());
    for (all, counts) in chunks {
        let mut rest = &all[..];
        for count in counts {
            let (of_place, others) = rest.split_at(count as usize);
            weights.push(of_place.iter().copied());
            rest = others;
        }
    }
    weights
}
