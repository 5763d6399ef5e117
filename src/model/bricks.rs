//! The solid voxels as a sparse list of 8 x 8 x 8 bricks, and a number for every solid voxel.

use std::ops::Range;

use glam::{IVec3, UVec3};
use rayon::prelude::*;

use crate::model::BitGrid;

/// Voxels along an edge of a brick.
pub const BRICK: u32 = 8;
/// Voxels in a brick, solid or not.
pub const BRICK_CELLS: usize = 512;

/// The bricks of a grid that hold at least one solid voxel.
///
/// - A **slot** numbers such a brick, from 0. Slots follow a Z-order curve, so that bricks near in space are mostly near in
///   memory and any range of slots is a compact piece of the solid.
/// - A **cell** is a voxel's place in its brick: x + 8 y + 64 z of its coordinates in the brick, 0 to 511.
/// - The **index** of a solid voxel counts the solid voxels alone, from 0: slot after slot, cell after cell. Arrays with
///   one entry a solid voxel are ordered by it.
///
/// Memory: 4 bytes for each brick of the grid, about 190 for each that is not empty.
#[derive(Debug, Clone)]
pub struct Bricks {
    dims: UVec3,
    extent: UVec3,
    slots: Vec<u32>,
    places: Vec<UVec3>,
    masks: Vec<[u64; 8]>,
    first: Vec<u32>,
    neighbors: Vec<[u32; 27]>,
}

impl Bricks {
    /// The slot of a brick that is empty or outside the grid.
    pub const ABSENT: u32 = u32::MAX;

    /// The bricks of the voxels whose bit is 1.
    pub fn new(solid: &BitGrid) -> Self {
        let dims = solid.dims();
        let extent = UVec3::new(dims.x.div_ceil(BRICK), dims.y.div_ceil(BRICK), dims.z.div_ceil(BRICK));
        let mut slots = occupied(solid, extent);
        let mut places: Vec<UVec3> = (0..slots.len())
            .filter(|&i| slots[i] != Self::ABSENT)
            .map(|i| {
                let i = i as u32;
                UVec3::new(i % extent.x, i / extent.x % extent.y, i / extent.x / extent.y)
            })
            .collect();
        places.sort_unstable_by_key(|&p| z_order(p));
        for (slot, place) in places.iter().enumerate() {
            slots[dense(extent, *place)] = slot as u32;
        }
        let masks: Vec<[u64; 8]> = places.par_iter().map(|&place| mask_of(solid, place)).collect();
        let mut first = Vec::with_capacity(masks.len() + 1);
        let mut total = 0;
        for mask in &masks {
            first.push(total);
            total += mask.iter().map(|w| w.count_ones()).sum::<u32>();
        }
        first.push(total);
        let mut bricks = Self { dims, extent, slots, places, masks, first, neighbors: Vec::new() };
        bricks.neighbors = bricks.places.par_iter().map(|&place| bricks.find_neighbors(place)).collect();
        bricks
    }

    fn find_neighbors(&self, place: UVec3) -> [u32; 27] {
        std::array::from_fn(|d| {
            let d = d as i32;
            let offset = IVec3::new(d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1);
            self.slot(place.as_ivec3() + offset)
        })
    }

    /// Voxels of the grid along each axis.
    pub fn dims(&self) -> UVec3 {
        self.dims
    }

    /// Bricks along each axis of the grid, empty ones counted.
    pub fn extent(&self) -> UVec3 {
        self.extent
    }

    /// How many bricks are not empty.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no solid voxel.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many voxels are solid.
    pub fn solid(&self) -> usize {
        self.first[self.len()] as usize
    }

    /// The slot of the brick at these brick coordinates, or [`Bricks::ABSENT`].
    pub fn slot(&self, place: IVec3) -> u32 {
        let inside = place.cmpge(IVec3::ZERO).all() && place.cmplt(self.extent.as_ivec3()).all();
        if inside { self.slots[dense(self.extent, place.as_uvec3())] } else { Self::ABSENT }
    }

    /// For every brick of the grid, x fastest then y then z, its slot or [`Bricks::ABSENT`].
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Brick coordinates of a slot: its lowest voxel divided by 8.
    pub fn place(&self, slot: usize) -> UVec3 {
        self.places[slot]
    }

    /// The solid voxels of a slot: a word for each z, the bit of a voxel at x + 8 y.
    pub fn mask(&self, slot: usize) -> &[u64; 8] {
        &self.masks[slot]
    }

    /// The masks of all slots.
    pub fn masks(&self) -> &[[u64; 8]] {
        &self.masks
    }

    /// The slots of the 27 bricks around and at a slot: the brick displaced by (x, y, z), each -1 to 1, stands at
    /// (x+1) + 3 (y+1) + 9 (z+1).
    pub fn neighbors(&self, slot: usize) -> &[u32; 27] {
        &self.neighbors[slot]
    }

    /// The neighbours of all slots.
    pub fn all_neighbors(&self) -> &[[u32; 27]] {
        &self.neighbors
    }

    /// The indices of the solid voxels of a slot.
    pub fn indices(&self, slot: usize) -> Range<usize> {
        self.first[slot] as usize..self.first[slot + 1] as usize
    }

    /// The index of the first solid voxel of each slot, and after the last slot the number of solid voxels.
    pub fn first_indices(&self) -> &[u32] {
        &self.first
    }

    /// The slot and the cell of a voxel; none if its brick is empty or outside.
    pub fn locate(&self, voxel: UVec3) -> Option<(usize, usize)> {
        let slot = self.slot((voxel / BRICK).as_ivec3());
        let c = voxel % BRICK;
        (slot != Self::ABSENT).then_some((slot as usize, (c.x + 8 * c.y + 64 * c.z) as usize))
    }

    /// The index of a voxel; none if it is not solid.
    pub fn index(&self, voxel: UVec3) -> Option<usize> {
        let (slot, cell) = self.locate(voxel)?;
        let mask = &self.masks[slot];
        let (word, bit) = (cell / 64, cell % 64);
        if mask[word] >> bit & 1 == 0 {
            return None;
        }
        let before: u32 = mask[..word].iter().map(|w| w.count_ones()).sum();
        Some((self.first[slot] + before + (mask[word] & ((1 << bit) - 1)).count_ones()) as usize)
    }

    /// The voxel at a cell of a slot, solid or not.
    pub fn voxel(&self, slot: usize, cell: usize) -> UVec3 {
        let c = cell as u32;
        self.places[slot] * BRICK + UVec3::new(c % 8, c / 8 % 8, c / 64)
    }

    /// The cells of the solid voxels of a slot, in the order of their indices.
    pub fn cells(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        set_bits(self.masks[slot])
    }

    /// Which voxels are solid in a slot and one layer around it: entry (y+1) + 10 (z+1) is the row at (y, z), each from -1
    /// to 8, with the voxel at x in bit x+1.
    pub fn halo(&self, slot: usize) -> [u16; 100] {
        // For each padded coordinate, which of three bricks it lies in, and where there.
        let split = |i: usize| {
            if i == 0 {
                (0, 7)
            } else if i == 9 {
                (2, 0)
            } else {
                (1, i - 1)
            }
        };
        let near = &self.neighbors[slot];
        let row = |brick: usize, y: usize, z: usize| match near[brick] {
            Self::ABSENT => 0,
            s => (self.masks[s as usize][z] >> (8 * y) & 0xff) as u16,
        };
        std::array::from_fn(|i| {
            let ((by, y), (bz, z)) = (split(i % 10), split(i / 10));
            let first = 3 * by + 9 * bz;
            row(first, y, z) >> 7 | row(first + 1, y, z) << 1 | (row(first + 2, y, z) & 1) << 9
        })
    }
}

/// The positions of the bits that are 1 in the 512 bits of a brick, in order.
pub fn set_bits(words: [u64; 8]) -> impl Iterator<Item = usize> {
    words.into_iter().enumerate().flat_map(|(i, mut word)| {
        std::iter::from_fn(move || {
            let bit = word.trailing_zeros() as usize;
            (word != 0).then(|| {
                word &= word - 1;
                64 * i + bit
            })
        })
    })
}

fn dense(extent: UVec3, place: UVec3) -> usize {
    (place.x + extent.x * (place.y + extent.y * place.z)) as usize
}

/// 0 for each brick with a solid voxel, otherwise absent.
fn occupied(solid: &BitGrid, extent: UVec3) -> Vec<u32> {
    let layer = (extent.x * extent.y) as usize;
    let mut slots = vec![Bricks::ABSENT; layer * extent.z as usize];
    let dims = solid.dims();
    slots.par_chunks_mut(layer.max(1)).enumerate().for_each(|(bz, slots)| {
        let z0 = bz as u32 * BRICK;
        for by in 0..extent.y {
            let row = &mut slots[(by * extent.x) as usize..][..extent.x as usize];
            let y0 = by * BRICK;
            for word in 0..solid.words_per_row() {
                let rows = (z0..dims.z.min(z0 + BRICK)).flat_map(|z| (y0..dims.y.min(y0 + BRICK)).map(move |y| (y, z)));
                let any = rows.fold(0, |any, (y, z)| any | solid.row(y, z)[word]);
                for (byte, slot) in row[8 * word..].iter_mut().take(8).enumerate() {
                    if any >> (8 * byte) & 0xff != 0 {
                        *slot = 0;
                    }
                }
            }
        }
    });
    slots
}

fn mask_of(solid: &BitGrid, place: UVec3) -> [u64; 8] {
    let dims = solid.dims();
    let low = place * BRICK;
    let (word, shift) = ((low.x / 64) as usize, low.x % 64);
    std::array::from_fn(|z| {
        let z = low.z + z as u32;
        if z >= dims.z {
            return 0;
        }
        (0..BRICK.min(dims.y - low.y))
            .map(|y| (solid.row(low.y + y, z)[word] >> shift & 0xff) << (8 * y))
            .fold(0, |mask, row| mask | row)
    })
}

/// Place on the Z-order curve: the bits of the coordinates, interleaved.
pub(crate) fn z_order(place: UVec3) -> u64 {
    let spread = |mut v: u64| {
        v = (v | v << 32) & 0x001f_0000_0000_ffff;
        v = (v | v << 16) & 0x001f_0000_ff00_00ff;
        v = (v | v << 8) & 0x100f_00f0_0f00_f00f;
        v = (v | v << 4) & 0x10c3_0c30_c30c_30c3;
        (v | v << 2) & 0x1249_2492_4924_9249
    };
    spread(place.x.into()) | spread(place.y.into()) << 1 | spread(place.z.into()) << 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BitGrid {
        let mut solid = BitGrid::new(UVec3::new(77, 19, 9));
        let mut state = 7u64;
        for z in 0..9 {
            for y in 0..19 {
                for x in 0..77 {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    if state >> 61 == 0 || x == 76 && y == 18 && z == 8 {
                        solid.set(UVec3::new(x, y, z));
                    }
                }
            }
        }
        solid
    }

    fn everywhere(dims: UVec3) -> impl Iterator<Item = UVec3> {
        (0..dims.z).flat_map(move |z| (0..dims.y).flat_map(move |y| (0..dims.x).map(move |x| UVec3::new(x, y, z))))
    }

    #[test]
    fn index_and_voxel_agree_with_the_bits() {
        let solid = sample();
        let bricks = Bricks::new(&solid);
        assert_eq!(bricks.solid() as u64, solid.count());
        let mut seen = vec![false; bricks.solid()];
        for slot in 0..bricks.len() {
            for (index, cell) in bricks.indices(slot).zip(bricks.cells(slot)) {
                let voxel = bricks.voxel(slot, cell);
                assert_eq!(bricks.index(voxel), Some(index));
                assert_eq!(bricks.locate(voxel), Some((slot, cell)));
                assert!(!std::mem::replace(&mut seen[index], true));
            }
        }
        assert!(seen.into_iter().all(|s| s));
        for voxel in everywhere(solid.dims()) {
            assert_eq!(bricks.index(voxel).is_some(), solid.get(voxel), "{voxel}");
        }
    }

    #[test]
    fn halo_sees_across_bricks() {
        let solid = sample();
        let bricks = Bricks::new(&solid);
        for slot in 0..bricks.len() {
            let halo = bricks.halo(slot);
            for (y, z) in (0..10).flat_map(|z| (0..10).map(move |y| (y, z))) {
                for x in 0..10 {
                    let v = bricks.place(slot).as_ivec3() * 8 + IVec3::new(x, y, z) - 1;
                    let inside = v.cmpge(IVec3::ZERO).all() && v.cmplt(solid.dims().as_ivec3()).all();
                    let expected = inside && solid.get(v.as_uvec3());
                    assert_eq!(halo[(y + 10 * z) as usize] >> x & 1 == 1, expected, "{v}");
                }
            }
        }
    }

    #[test]
    fn no_solid_voxel_no_brick() {
        let bricks = Bricks::new(&BitGrid::new(UVec3::splat(17)));
        assert!(bricks.is_empty());
        assert_eq!((bricks.solid(), bricks.index(UVec3::ZERO)), (0, None));
    }

    #[test]
    fn neighbors_are_mutual() {
        let bricks = Bricks::new(&sample());
        for slot in 0..bricks.len() {
            assert_eq!(bricks.neighbors(slot)[13], slot as u32);
            for (d, &n) in bricks.neighbors(slot).iter().enumerate().filter(|(_, n)| **n != Bricks::ABSENT) {
                assert_eq!(bricks.neighbors(n as usize)[26 - d], slot as u32);
            }
        }
    }
}
