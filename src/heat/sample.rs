//! From heat in voxels to raw weights at positions: step 7 of the source rule.

use glam::{DVec3, IVec3};

use super::cpu::Heats;
use super::solid::Solid;
use crate::model::{Grid, Influence};

/// The solid voxels whose middles are the corners of the cell around a position, each with its trilinear share.
#[derive(Debug, Clone, Copy)]
pub struct Corners {
    corners: [(u32, f64); 8],
    count: usize,
}

impl Corners {
    /// The corners of a position. Shares add up to 1: those of corners that are not solid go to the others in proportion. None where the
    /// position's own voxel is not solid.
    pub fn around(solid: &Solid, grid: &Grid, p: DVec3) -> Self {
        let mut found = Self { corners: [(0, 0.0); 8], count: 0 };
        if solid.at(grid.voxel_of(p).as_ivec3()).is_none() {
            return found;
        }
        let from_middle = grid.to_middle(p);
        let low = from_middle.floor();
        // Not 1 - x: a mirrored position has these two exchanged, to the last bit.
        let (from_high, from_low) = ((low + DVec3::ONE) - from_middle, from_middle - low);
        let first = low.as_ivec3() + (grid.dims() / 2).as_ivec3();
        let mut sum = 0.0;
        for corner in 0..8 {
            let step = IVec3::new(corner & 1, corner >> 1 & 1, corner >> 2);
            let share = DVec3::select(step.cmpeq(IVec3::ONE), from_low, from_high).element_product();
            if share > 0.0
                && let Some(voxel) = solid.at(first + step)
            {
                found.corners[found.count] = (voxel, share);
                found.count += 1;
                sum += share;
            }
        }
        for corner in &mut found.corners[..found.count] {
            corner.1 /= sum;
        }
        found
    }

    /// The voxels and their shares.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.corners[..self.count].iter().copied()
    }
}

/// The voxels that some position needs.
pub fn needed(solid: &Solid, grid: &Grid, places: &[DVec3]) -> Vec<bool> {
    let mut needed = vec![false; solid.len()];
    for &p in places {
        for (voxel, _) in Corners::around(solid, grid, p).iter() {
            needed[voxel as usize] = true;
        }
    }
    needed
}

/// What a thread keeps from position to position: a 0 for each bone, and the bones touched.
#[derive(Debug, Clone)]
pub struct Scratch {
    heat: Vec<f64>,
    bones: Vec<u32>,
}

impl Scratch {
    /// For so many bones.
    pub fn new(bones: usize) -> Self {
        Self { heat: vec![0.0; bones], bones: Vec::new() }
    }
}

/// Puts the heats at a position into `heats` (which is empty), by ascending bone.
pub fn heats_at(corners: &Corners, of: &Heats, scratch: &mut Scratch, heats: &mut Vec<Influence>) {
    scratch.bones.clear();
    for (voxel, share) in corners.iter() {
        for h in of.of(voxel) {
            let sum = &mut scratch.heat[h.bone as usize];
            if *sum == 0.0 {
                scratch.bones.push(h.bone);
            }
            *sum += share * h.heat;
        }
    }
    scratch.bones.sort_unstable();
    for &bone in &scratch.bones {
        heats.push(Influence { joint: bone, weight: std::mem::take(&mut scratch.heat[bone as usize]) });
    }
}

/// Normalises the heats of a position and raises them to a power, which sharpens the borders between bones.
pub fn sharpen(heats: &mut [Influence], power: f64) {
    let sum: f64 = heats.iter().map(|h| h.weight).sum();
    for h in heats.iter_mut() {
        h.weight = (h.weight / sum).powf(power);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::test_shapes::solid_where;
    use crate::model::Bounds;

    #[test]
    fn shares_are_trilinear_and_only_over_solid_voxels() {
        let grid = Grid::around(&Bounds { min: DVec3::ZERO, max: DVec3::splat(16.0) }, 16).unwrap();
        let dims = grid.dims().to_array();
        let all = solid_where(dims, |_| true);
        // A quarter of a voxel beyond the middle of voxel (9, 9, 9) along each axis.
        let p = grid.to_world(DVec3::splat(9.75));
        let corners = Corners::around(&all, &grid, p);
        assert_eq!(corners.iter().count(), 8);
        for (voxel, share) in corners.iter() {
            let far = (all.coordinates(voxel) - glam::UVec3::splat(9)).element_sum();
            let expected = 0.75f64.powi(3 - far as i32) * 0.25f64.powi(far as i32);
            assert!((share - expected).abs() < 1e-14, "{share}, not {expected}");
        }
        let half = solid_where(dims, |v| v.x < 10.0);
        let corners = Corners::around(&half, &grid, p);
        assert_eq!(corners.iter().count(), 4);
        assert!((corners.iter().map(|c| c.1).sum::<f64>() - 1.0).abs() < 1e-14);
        let other = solid_where(dims, |v| v.x > 10.0);
        assert_eq!(Corners::around(&other, &grid, p).iter().count(), 0);
    }

    #[test]
    fn sharpening_favours_the_strongest() {
        let mut heats = [0.3, 0.1].map(|weight| Influence { joint: 0, weight });
        sharpen(&mut heats, 2.0);
        assert!((heats[0].weight - 0.5625).abs() < 1e-15 && (heats[1].weight - 0.0625).abs() < 1e-15);
        sharpen(&mut [], 2.0);
    }
}
