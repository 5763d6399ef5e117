//! One bit a voxel, in rows along x of 64-bit words.

use glam::UVec3;

/// A bit for each voxel of a grid. Bits past the end of a row are always 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitGrid {
    dims: UVec3,
    words_per_row: usize,
    words: Vec<u64>,
}

impl BitGrid {
    /// All bits 0.
    pub fn new(dims: UVec3) -> Self {
        let words_per_row = dims.x.div_ceil(64) as usize;
        Self { dims, words_per_row, words: vec![0; words_per_row * dims.y as usize * dims.z as usize] }
    }

    /// Voxels along each axis.
    pub fn dims(&self) -> UVec3 {
        self.dims
    }

    /// 64-bit words a row.
    pub fn words_per_row(&self) -> usize {
        self.words_per_row
    }

    /// All words: row after row along y, slice after slice along z.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// All words, to be changed. Bits past the end of a row must stay 0.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Index of the first word of a row.
    pub fn row_start(&self, y: u32, z: u32) -> usize {
        (z as usize * self.dims.y as usize + y as usize) * self.words_per_row
    }

    /// The words of a row.
    pub fn row(&self, y: u32, z: u32) -> &[u64] {
        let start = self.row_start(y, z);
        &self.words[start..start + self.words_per_row]
    }

    /// The words of a row, to be changed.
    pub fn row_mut(&mut self, y: u32, z: u32) -> &mut [u64] {
        let start = self.row_start(y, z);
        &mut self.words[start..start + self.words_per_row]
    }

    /// The bit of a voxel.
    pub fn get(&self, v: UVec3) -> bool {
        let word = self.words[self.row_start(v.y, v.z) + (v.x / 64) as usize];
        word >> (v.x % 64) & 1 == 1
    }

    /// Sets the bit of a voxel to 1.
    pub fn set(&mut self, v: UVec3) {
        let at = self.row_start(v.y, v.z) + (v.x / 64) as usize;
        self.words[at] |= 1 << (v.x % 64);
    }

    /// How many bits are 1.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}
