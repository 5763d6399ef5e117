//! From heat in voxels to raw weights at positions: step 7 of the source rule.

use std::sync::atomic::{AtomicBool, Ordering};

use glam::{DVec3, IVec3};
use rayon::prelude::*;

use super::cpu::Heats;
use super::solid::{NONE, Solid};
use crate::model::{Grid, Influence};

/// Positions handled by one task.
const CHUNK: usize = 4096;

/// The cell between 8 voxel middles that a position lies in. Bits 0, 1, 2 of a corner's number say which side along x,
/// y, z.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cell {
    /// The voxel at the low side, counted from the middle of the grid.
    low: IVec3,
}

impl Cell {
    /// The cell of a position; none where the position's own voxel is not solid.
    fn of(solid: &Solid, grid: &Grid, p: DVec3) -> Option<Self> {
        solid.at(grid.voxel_of(p).as_ivec3())?;
        Some(Self { low: grid.to_middle(p).floor().as_ivec3() })
    }

    /// Its corners' voxels; [`NONE`] where one is not solid.
    fn corners(&self, solid: &Solid, grid: &Grid) -> [u32; 8] {
        let first = self.low + (grid.dims() / 2).as_ivec3();
        std::array::from_fn(|c| solid.at(first + side(c)).unwrap_or(NONE))
    }

    /// The trilinear shares of the corners for a position in the cell. Those of corners that are not solid go to the
    /// others in proportion.
    fn shares(&self, corners: &[u32; 8], grid: &Grid, p: DVec3) -> [f64; 8] {
        let (at, low) = (grid.to_middle(p), self.low.as_dvec3());
        // Not 1 - x: a mirrored position has these two exchanged, to the last bit.
        let (from_high, from_low) = ((low + DVec3::ONE) - at, at - low);
        let plain: [f64; 8] = std::array::from_fn(|c| {
            let share = DVec3::select(side(c).cmpeq(IVec3::ONE), from_low, from_high).element_product();
            if corners[c] == NONE { 0.0 } else { share }
        });
        let sum: f64 = plain.iter().sum();
        plain.map(|share| share / sum)
    }
}

/// The step from a cell's low corner to another.
fn side(corner: usize) -> IVec3 {
    IVec3::new(corner as i32 & 1, corner as i32 >> 1 & 1, corner as i32 >> 2)
}

/// The voxels that some position needs.
pub fn needed(solid: &Solid, grid: &Grid, places: &[DVec3]) -> Vec<bool> {
    let needed: Vec<AtomicBool> = (0..solid.len()).map(|_| AtomicBool::new(false)).collect();
    places.par_chunks(CHUNK).for_each(|chunk| {
        let mut last = None;
        for &p in chunk {
            let cell = Cell::of(solid, grid, p);
            if cell == last {
                continue;
            }
            last = cell;
            for voxel in cell.iter().flat_map(|c| c.corners(solid, grid)).filter(|&v| v != NONE) {
                needed[voxel as usize].store(true, Ordering::Relaxed);
            }
        }
    });
    needed.into_iter().map(AtomicBool::into_inner).collect()
}

/// The heats at the corners of a cell, bone by bone, kept for the next position in it.
#[derive(Debug, Clone)]
pub struct Scratch {
    cell: Option<Cell>,
    corners: [u32; 8],
    bones: Vec<u32>,
    /// For each of `bones` its heat at the 8 corners.
    heats: Vec<[f64; 8]>,
    /// For each bone of the skeleton its place in `bones`, [`NONE`] between calls.
    slot: Vec<u32>,
}

impl Scratch {
    /// For so many bones.
    pub fn new(bones: usize) -> Self {
        Self { cell: None, corners: [NONE; 8], bones: Vec::new(), heats: Vec::new(), slot: vec![NONE; bones] }
    }

    fn read(&mut self, cell: Cell, solid: &Solid, grid: &Grid, of: &Heats) {
        if self.cell == Some(cell) {
            return;
        }
        self.cell = Some(cell);
        self.corners = cell.corners(solid, grid);
        self.bones.clear();
        self.heats.clear();
        for (corner, &voxel) in self.corners.iter().enumerate().filter(|(_, v)| **v != NONE) {
            for h in of.of(voxel) {
                let slot = &mut self.slot[h.bone as usize];
                if *slot == NONE {
                    *slot = self.bones.len() as u32;
                    self.bones.push(h.bone);
                    self.heats.push([0.0; 8]);
                }
                self.heats[*slot as usize][corner] = h.heat;
            }
        }
        for &bone in &self.bones {
            self.slot[bone as usize] = NONE;
        }
    }
}

/// Puts the heats at a position into `heats` (which is empty), trilinear over the solid voxels around it; none that are
/// cold.
pub fn heats_at(p: DVec3, solid: &Solid, grid: &Grid, of: &Heats, scratch: &mut Scratch, heats: &mut Vec<Influence>) {
    let Some(cell) = Cell::of(solid, grid, p) else { return };
    scratch.read(cell, solid, grid, of);
    let shares = cell.shares(&scratch.corners, grid, p);
    for (&joint, at_corners) in scratch.bones.iter().zip(&scratch.heats) {
        let weight: f64 = at_corners.iter().zip(&shares).map(|(h, s)| h * s).sum();
        if weight > of.cold {
            heats.push(Influence { joint, weight });
        }
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
        let shares = |solid: &Solid| {
            let cell = Cell::of(solid, &grid, p)?;
            let corners = cell.corners(solid, &grid);
            Some((corners, cell.shares(&corners, &grid, p)))
        };
        let (corners, found) = shares(&all).unwrap();
        for (voxel, share) in corners.into_iter().zip(found) {
            let far = (all.coordinates(voxel) - glam::UVec3::splat(9)).element_sum();
            let expected = 0.75f64.powi(3 - far as i32) * 0.25f64.powi(far as i32);
            assert!((share - expected).abs() < 1e-14, "{share}, not {expected}");
        }
        let (corners, found) = shares(&solid_where(dims, |v| v.x < 10.0)).unwrap();
        assert_eq!(corners.iter().filter(|&&c| c == NONE).count(), 4);
        assert_eq!(found.iter().filter(|&&s| s == 0.0).count(), 4);
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        assert!(shares(&solid_where(dims, |v| v.x > 10.0)).is_none());
    }

    #[test]
    fn sharpening_favours_the_strongest() {
        let mut heats = [0.3, 0.1].map(|weight| Influence { joint: 0, weight });
        sharpen(&mut heats, 2.0);
        assert!((heats[0].weight - 0.5625).abs() < 1e-15 && (heats[1].weight - 0.0625).abs() < 1e-15);
        sharpen(&mut [], 2.0);
    }
}
