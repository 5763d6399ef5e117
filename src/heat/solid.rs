//! The solid voxels as a compact list: numbers for voxels, voxels for numbers, and the neighbours over faces.
//!
//! Voxels are numbered in two colours like a chessboard's fields, first those with an even sum of coordinates ("red"),
//! then the odd ones ("black"), each in the order of rows. A red voxel's neighbours over faces are all black and the
//! other way round, so a Gauss-Seidel half sweep over one colour has no order inside it and can run in parallel or on a
//! GPU.

use glam::{IVec3, UVec3};

use crate::model::BitGrid;

/// No voxel: a neighbour that is not solid.
pub const NONE: u32 = u32::MAX;

/// Steps to the six neighbours over faces.
pub const STEPS: [IVec3; 6] = [IVec3::NEG_X, IVec3::X, IVec3::NEG_Y, IVec3::Y, IVec3::NEG_Z, IVec3::Z];

/// Every second bit of a word, starting with the lowest.
const EVEN: u64 = 0x5555_5555_5555_5555;

/// Solid voxels, numbered from 0: the red ones, then the black ones.
pub struct Solid {
    bits: BitGrid,
    /// For each word of `bits`, the number of the first red voxel in it, and of the first black one.
    first: Vec<[u32; 2]>,
    coordinates: Vec<[u16; 3]>,
    red: usize,
}

impl Solid {
    /// Numbers the voxels whose bit is 1. There must be fewer than 2^32 - 1.
    pub fn new(bits: BitGrid) -> Self {
        let red = (0..bits.dims().z)
            .flat_map(|z| (0..bits.dims().y).map(move |y| (y, z)))
            .map(|(y, z)| bits.row(y, z).iter().map(|w| (w & red_mask(y, z)).count_ones() as usize).sum::<usize>())
            .sum::<usize>();
        let mut first = Vec::with_capacity(bits.words().len());
        let mut coordinates = vec![[0; 3]; bits.count() as usize];
        let mut next = [0, red];
        for z in 0..bits.dims().z {
            for y in 0..bits.dims().y {
                for (w, &word) in bits.row(y, z).iter().enumerate() {
                    first.push(next.map(|n| n as u32));
                    for (colour, mask) in [red_mask(y, z), !red_mask(y, z)].into_iter().enumerate() {
                        let mut rest = word & mask;
                        while rest != 0 {
                            let x = w as u32 * 64 + rest.trailing_zeros();
                            coordinates[next[colour]] = [x as u16, y as u16, z as u16];
                            next[colour] += 1;
                            rest &= rest - 1;
                        }
                    }
                }
            }
        }
        Self { bits, first, coordinates, red }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.coordinates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// How many are red: the numbers below this one.
    pub fn red(&self) -> usize {
        self.red
    }

    /// The bits they were made from.
    pub fn bits(&self) -> &BitGrid {
        &self.bits
    }

    /// Coordinates of a voxel.
    pub fn coordinates(&self, voxel: u32) -> UVec3 {
        let [x, y, z] = self.coordinates[voxel as usize];
        UVec3::new(x.into(), y.into(), z.into())
    }

    /// The number of the voxel at these coordinates, where it is solid. They may lie outside the grid.
    pub fn at(&self, v: IVec3) -> Option<u32> {
        if v.cmplt(IVec3::ZERO).any() || v.cmpge(self.bits.dims().as_ivec3()).any() {
            return None;
        }
        let v = v.as_uvec3();
        let at = self.bits.row_start(v.y, v.z) + (v.x / 64) as usize;
        let word = self.bits.words()[at];
        let bit = 1u64 << (v.x % 64);
        if word & bit == 0 {
            return None;
        }
        let red = red_mask(v.y, v.z);
        let (colour, mask) = if red & bit != 0 { (0, red) } else { (1, !red) };
        Some(self.first[at][colour] + (word & mask & (bit - 1)).count_ones())
    }

    /// The six neighbours of a voxel, in the order of [`STEPS`]; [`NONE`] where one is not solid.
    pub fn neighbors(&self, voxel: u32) -> [u32; 6] {
        let v = self.coordinates(voxel).as_ivec3();
        STEPS.map(|step| self.at(v + step).unwrap_or(NONE))
    }
}

/// The bits of red voxels in a word of the row (y, z). Words start at a multiple of 64, so all words of a row have the
/// same.
fn red_mask(y: u32, z: u32) -> u64 {
    if (y + z).is_multiple_of(2) { EVEN } else { !EVEN }
}

/// Numbers the parts that are connected over faces: for each voxel its part, and how many parts there are.
pub fn parts(neighbors: &[[u32; 6]]) -> (Vec<u32>, usize) {
    let mut part = vec![NONE; neighbors.len()];
    let mut count = 0;
    let mut stack = Vec::new();
    for start in 0..neighbors.len() as u32 {
        if part[start as usize] != NONE {
            continue;
        }
        part[start as usize] = count;
        stack.push(start);
        while let Some(voxel) = stack.pop() {
            for &n in &neighbors[voxel as usize] {
                if n != NONE && part[n as usize] == NONE {
                    part[n as usize] = count;
                    stack.push(n);
                }
            }
        }
        count += 1;
    }
    (part, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_bits() -> BitGrid {
        let mut bits = BitGrid::new(UVec3::new(131, 7, 5));
        let mut state = 1u64;
        for z in 0..5 {
            for y in 0..7 {
                for x in 0..131 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if state >> 63 == 1 {
                        bits.set(UVec3::new(x, y, z));
                    }
                }
            }
        }
        bits
    }

    #[test]
    fn numbers_and_coordinates_are_inverse_and_colours_are_apart() {
        let bits = some_bits();
        let solid = Solid::new(bits.clone());
        assert_eq!(solid.len() as u64, bits.count());
        for voxel in 0..solid.len() as u32 {
            let v = solid.coordinates(voxel);
            assert!(bits.get(v));
            assert_eq!(solid.at(v.as_ivec3()), Some(voxel));
            assert_eq!(v.element_sum().is_multiple_of(2), (voxel as usize) < solid.red());
        }
        let free = (0..131).find(|&x| !bits.get(UVec3::new(x, 3, 2))).unwrap();
        assert_eq!(solid.at(IVec3::new(free as i32, 3, 2)), None);
        assert_eq!(solid.at(IVec3::new(-1, 3, 2)), None);
        assert_eq!(solid.at(IVec3::new(0, 7, 2)), None);
    }

    #[test]
    fn parts_are_connected_over_faces_only() {
        let mut bits = BitGrid::new(UVec3::new(5, 5, 5));
        for v in [[1, 1, 1], [2, 1, 1], [3, 2, 1], [3, 2, 2]] {
            bits.set(UVec3::from_array(v));
        }
        let solid = Solid::new(bits);
        let neighbors: Vec<_> = (0..4).map(|v| solid.neighbors(v)).collect();
        let (part, count) = parts(&neighbors);
        assert_eq!(count, 2);
        let of = |v: [i32; 3]| part[solid.at(IVec3::from_array(v)).unwrap() as usize];
        assert_eq!(of([1, 1, 1]), of([2, 1, 1]));
        assert_eq!(of([3, 2, 1]), of([3, 2, 2]));
        assert_ne!(of([2, 1, 1]), of([3, 2, 1]));
    }
}
