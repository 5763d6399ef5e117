//! Winding numbers of many voxels by few questions.
//!
//! Away from the surface a winding number changes slowly ([`Rim`]): one answer that is far enough from one half decides all
//! voxels around it that can be reached without touching the surface.

use glam::{DVec3, UVec3};
use rayon::prelude::*;

use super::parts::Hull;
use crate::error::Result;
use crate::geometry::rim::Rim;
use crate::geometry::winding::WindingTree;
use crate::model::{BitGrid, LATTICE};
use crate::progress::{Progress, Stage};

/// Rows along y and along z of a block; it is one word wide.
const SIDE: u32 = 16;
/// How far an answer may reach, in steps from voxel to voxel, the furthest first.
const REACHES: [u32; 5] = [24, 12, 6, 3, 1];
/// How far answers of the tree may be off, twice: the one that was asked for and the one that it stands for.
const OFF: f64 = 0.02;

/// Of the voxels in `doubt`, none of which is in `surface`, those whose centres the hull winds around by more than one half.
/// The answer is the same as if every one were asked for.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn settle(hull: &Hull, surface: &BitGrid, doubt: &BitGrid, progress: Progress) -> Result<BitGrid> {
    let (tree, rim) =
        rayon::join(|| WindingTree::new(hull.in_voxels()), || Rim::new(&hull.triangles, f64::from(LATTICE)));
    let dims = surface.dims();
    let blocks: Vec<UVec3> = (0..dims.z)
        .step_by(SIDE as usize)
        .flat_map(|z| (0..dims.y).step_by(SIDE as usize).map(move |y| (y, z)))
        .flat_map(|(y, z)| (0..dims.x).step_by(64).map(move |x| UVec3::new(x, y, z)))
        .collect();
    let settled = blocks
        .par_iter()
        .enumerate()
        .map(|(number, &low)| {
            let mut block = Block::new(surface, doubt, low);
            if block.doubt.iter().all(|&word| word == 0) {
                return Ok(None);
            }
            progress.at(Stage::Interior, 0.3 + 0.7 * number as f64 / blocks.len() as f64)?;
            block.settle(&tree, &rim);
            Ok(Some(block))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut inside = BitGrid::new(dims);
    for block in settled.into_iter().flatten() {
        for (row, &word) in block.inside.iter().enumerate().filter(|(_, word)| **word != 0) {
            let at = block.low + row_place(row);
            inside.row_mut(at.y, at.z)[(at.x / 64) as usize] = word;
        }
    }
    Ok(inside)
}

/// A word's width of voxels, `SIDE` rows wide and high.
struct Block {
    low: UVec3,
    /// Voxels that ways may lead through.
    free: Vec<u64>,
    doubt: Vec<u64>,
    inside: Vec<u64>,
}

/// Where a row lies in its block.
fn row_place(row: usize) -> UVec3 {
    UVec3::new(0, row as u32 % SIDE, row as u32 / SIDE)
}

impl Block {
    fn new(surface: &BitGrid, doubt: &BitGrid, low: UVec3) -> Self {
        let rows = (SIDE * SIDE) as usize;
        let dims = surface.dims();
        let mut block = Self { low, free: vec![0; rows], doubt: vec![0; rows], inside: vec![0; rows] };
        let width = (dims.x - low.x).min(64);
        let within = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        for row in 0..rows {
            let at = low + row_place(row);
            if at.y < dims.y && at.z < dims.z {
                let word = surface.row_start(at.y, at.z) + (at.x / 64) as usize;
                block.free[row] = !surface.words()[word] & within;
                block.doubt[row] = doubt.words()[word];
            }
        }
        block
    }

    fn settle(&mut self, tree: &WindingTree, rim: &Rim) {
        for row in 0..self.doubt.len() {
            while self.doubt[row] != 0 {
                let bit = self.doubt[row].trailing_zeros();
                let center = (self.low + row_place(row) + UVec3::new(bit, 0, 0)).as_dvec3() + DVec3::splat(0.5);
                let number = tree.at(center);
                let sure = (number - 0.5).abs() - OFF;
                let holds = |&steps: &u32| {
                    let steps = f64::from(steps);
                    rim.slope(center, steps, sure / steps) * steps < sure
                };
                let reach = REACHES.into_iter().find(holds).unwrap_or(0);
                self.decide(row, 1 << bit, reach, number > 0.5);
            }
        }
    }

    /// Settles a voxel and those that are at most so many steps away through free voxels of this block.
    fn decide(&mut self, row: usize, bit: u64, steps: u32, inside: bool) {
        let mut covered = vec![0u64; self.free.len()];
        let mut front = vec![(row, bit)];
        covered[row] = bit;
        for _ in 0..steps {
            let mut next = Vec::with_capacity(2 * front.len());
            for (row, bits) in front {
                let (y, z) = (row as u32 % SIDE, row as u32 / SIDE);
                let mut step = |row: usize, bits: u64| {
                    let new = bits & self.free[row] & !covered[row];
                    if new != 0 {
                        covered[row] |= new;
                        next.push((row, new));
                    }
                };
                step(row, bits << 1 | bits >> 1);
                let across = [(y > 0, row.wrapping_sub(1)), (y + 1 < SIDE, row + 1)];
                let up = [(z > 0, row.wrapping_sub(SIDE as usize)), (z + 1 < SIDE, row + SIDE as usize)];
                across.into_iter().chain(up).filter(|(there, _)| *there).for_each(|(_, other)| step(other, bits));
            }
            if next.is_empty() {
                break;
            }
            front = next;
        }
        for (row, covered) in covered.into_iter().enumerate().filter(|(_, covered)| *covered != 0) {
            if inside {
                self.inside[row] |= self.doubt[row] & covered;
            }
            self.doubt[row] &= !covered;
        }
    }
}

#[cfg(test)]
mod tests {
    use glam::IVec3;

    use super::*;

    /// A box with two corners on the lattice, less the faces that are left out.
    fn open_box(low: i32, high: i32, without: impl Fn(usize) -> bool) -> Hull {
        let corner = |i: usize| IVec3::new(i as i32 & 1, i as i32 >> 1 & 1, i as i32 >> 2) * (high - low) + low;
        let faces = [
            [0, 2, 3],
            [0, 3, 1],
            [4, 5, 7],
            [4, 7, 6],
            [0, 1, 5],
            [0, 5, 4],
            [2, 6, 7],
            [2, 7, 3],
            [0, 4, 6],
            [0, 6, 2],
            [1, 3, 7],
            [1, 7, 5],
        ];
        let kept = faces.iter().enumerate().filter(|(i, _)| !without(*i)).map(|(_, f)| f.map(corner));
        Hull { triangles: kept.collect() }
    }

    #[test]
    fn the_answers_are_those_of_asking_for_every_voxel() {
        let dims = UVec3::new(70, 40, 36);
        let none = BitGrid::new(dims);
        let mut all = BitGrid::new(dims);
        for v in crate::crawl::reference::voxels(dims) {
            all.set(v);
        }
        for missing in [0..1, 0..2, 4..7] {
            let hull = open_box(2 * LATTICE, 30 * LATTICE, |i| missing.contains(&i));
            // The surface itself blocks the way.
            let mut surface = BitGrid::new(dims);
            let on = |a: u32| matches!(a, 1 | 2 | 29 | 30);
            let within = |a: u32| (1..=30).contains(&a);
            for v in crate::crawl::reference::voxels(dims) {
                if within(v.x) && within(v.y) && within(v.z) && (on(v.x) || on(v.y) || on(v.z)) {
                    surface.set(v);
                }
            }
            let mut doubt = all.clone();
            doubt.words_mut().iter_mut().zip(surface.words()).for_each(|(d, s)| *d &= !s);
            let found = settle(&hull, &surface, &doubt, Progress::NONE).unwrap();
            let tree = WindingTree::new(hull.in_voxels());
            let mut inside = 0;
            for v in crate::crawl::reference::voxels(dims).filter(|&v| doubt.get(v)) {
                let expected = tree.at(v.as_dvec3() + DVec3::splat(0.5)) > 0.5;
                assert_eq!(found.get(v), expected, "{v}");
                inside += u32::from(expected);
            }
            assert!(inside > 10_000, "{inside}");
            // Control: ways through the surface would be wrong.
            let through = settle(&hull, &none, &doubt, Progress::NONE).unwrap();
            assert_ne!(through, found);
        }
    }
}
