//! What a fill from outside reaches over voxel faces, on rows of 64-bit words: along a row by the carries of an addition,
//! across rows by or.

use crate::error::Result;
use crate::model::BitGrid;
use crate::progress::{Progress, Stage};

/// Words of rows visited between two reports of progress: some milliseconds.
const WORDS_A_REPORT: usize = 1 << 20;

/// The voxels not in `surface` that are connected over voxel faces to the faces of the grid.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn outside(surface: &BitGrid, progress: Progress) -> Result<BitGrid> {
    let mut fill = Fill::new(surface, progress);
    let rows = fill.rows();
    // Nearly all of the outside is found in one sweep each way; what winds more comes from the list.
    fill.sweep(0..rows, 0.0, |_, _| {})?;
    fill.sweep((0..rows).rev(), 0.3, |_, _| {})?;
    let mut todo = Vec::new();
    fill.sweep(0..rows, 0.6, |fill, row| todo.extend(fill.neighbors(row)))?;
    while let Some(row) = todo.pop() {
        fill.report(0.9)?;
        if fill.visit(row) {
            todo.extend(fill.neighbors(row));
        }
    }
    Ok(fill.outside)
}

struct Fill<'a> {
    surface: &'a BitGrid,
    outside: BitGrid,
    /// The valid bits of the last word of a row.
    last: u64,
    seeds: Vec<u64>,
    progress: Progress<'a>,
    work: usize,
}

impl<'a> Fill<'a> {
    fn new(surface: &'a BitGrid, progress: Progress<'a>) -> Self {
        let words = surface.words_per_row();
        Self {
            surface,
            outside: BitGrid::new(surface.dims()),
            last: last_word(surface.dims().x),
            seeds: vec![0; words],
            progress,
            work: 0,
        }
    }

    fn rows(&self) -> usize {
        (self.surface.dims().y * self.surface.dims().z) as usize
    }

    fn report(&mut self, fraction: f64) -> Result<()> {
        self.work += self.seeds.len();
        if self.work > WORDS_A_REPORT {
            self.work = 0;
            self.progress.at(Stage::Interior, fraction)?;
        }
        Ok(())
    }

    fn sweep(
        &mut self,
        rows: impl Iterator<Item = usize>,
        fraction: f64,
        mut changed: impl FnMut(&Self, usize),
    ) -> Result<()> {
        for row in rows {
            self.report(fraction)?;
            if self.visit(row) {
                changed(self, row);
            }
        }
        Ok(())
    }

    /// The rows that share faces with this one.
    fn neighbors(&self, row: usize) -> impl Iterator<Item = usize> + use<> {
        let (rows, y) = (self.rows(), self.surface.dims().y as usize);
        let in_slice = row % y;
        [
            (in_slice > 0).then(|| row - 1),
            (in_slice + 1 < y).then(|| row + 1),
            (row >= y).then(|| row - y),
            (row + y < rows).then(|| row + y),
        ]
        .into_iter()
        .flatten()
    }

    /// Takes over what the neighbouring rows have and spreads it along the row. Says whether that was anything new.
    fn visit(&mut self, row: usize) -> bool {
        let n = self.seeds.len();
        let y = self.surface.dims().y as usize;
        let start = row * n;
        let words = self.outside.words();
        let seeds = &mut self.seeds;
        seeds.copy_from_slice(&words[start..start + n]);
        if row.is_multiple_of(y) || row % y == y - 1 || row < y || row + y >= words.len() / n {
            seeds.fill(u64::MAX);
        } else {
            for from in [start - n, start + n, start - n * y, start + n * y] {
                for (seed, word) in seeds.iter_mut().zip(&words[from..from + n]) {
                    *seed |= word;
                }
            }
            seeds[0] |= 1;
            seeds[n - 1] |= self.last & !(self.last >> 1);
        }
        let surface = &self.surface.words()[start..start + n];
        let last = self.last;
        let free = |w: usize| !surface[w] & if w + 1 == n { last } else { u64::MAX };
        spread(seeds, free);
        let target = &mut self.outside.words_mut()[start..start + n];
        let changed = target != &seeds[..];
        target.copy_from_slice(seeds);
        changed
    }
}

/// Valid bits of the last word of a row of so many voxels.
pub fn last_word(voxels: u32) -> u64 {
    u64::MAX >> ((64 - voxels % 64) % 64)
}

/// Fills each run of free bits that holds a seed.
fn spread(seeds: &mut [u64], free: impl Fn(usize) -> u64) {
    let mut carry = false;
    for (w, seed) in seeds.iter_mut().enumerate() {
        (*seed, carry) = spread_up(*seed & free(w), free(w), carry);
    }
    carry = false;
    for (w, seed) in seeds.iter_mut().enumerate().rev() {
        let free = free(w);
        if *seed == free {
            carry = free & 1 == 1;
            continue;
        }
        let (spread, on) = spread_up(seed.reverse_bits(), free.reverse_bits(), carry);
        (*seed, carry) = (spread.reverse_bits(), on);
    }
}

/// Spreads seeds (all free) to higher free bits, and a carry from the word before. An addition carries through a run of
/// ones from the seed on: what it clears is reached. Returns the bits and whether the last one is reached.
fn spread_up(seeds: u64, free: u64, carry: bool) -> (u64, bool) {
    let seeds = seeds | (u64::from(carry) & free);
    let reached = seeds | (free & !free.wrapping_add(seeds));
    (reached, reached >> 63 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::UVec3;

    /// A fill voxel by voxel.
    fn plain(surface: &BitGrid) -> BitGrid {
        let d = surface.dims();
        let mut out = BitGrid::new(d);
        let mut todo = Vec::new();
        for z in 0..d.z {
            for y in 0..d.y {
                for x in 0..d.x {
                    if x == 0 || y == 0 || z == 0 || x + 1 == d.x || y + 1 == d.y || z + 1 == d.z {
                        todo.push(UVec3::new(x, y, z));
                    }
                }
            }
        }
        while let Some(v) = todo.pop() {
            if v.cmpge(d).any() || surface.get(v) || out.get(v) {
                continue;
            }
            out.set(v);
            for axis in [UVec3::X, UVec3::Y, UVec3::Z] {
                todo.extend([v + axis, v.wrapping_sub(axis)]);
            }
        }
        out
    }

    #[test]
    fn random_mazes_are_filled_as_by_the_plain_fill() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        for (n, dims) in [[5, 4, 3], [64, 9, 9], [65, 12, 7], [200, 11, 13], [128, 20, 20]].into_iter().enumerate() {
            // From nearly open to beyond where paths break off (31 % free in three dimensions).
            for share in [10, 40, 55, 62, 66, 69, 75] {
                let mut surface = BitGrid::new(UVec3::from_array(dims));
                for z in 0..dims[2] {
                    for y in 0..dims[1] {
                        for x in 0..dims[0] {
                            if random() % 100 < share {
                                surface.set(UVec3::new(x, y, z));
                            }
                        }
                    }
                }
                let found = outside(&surface, Progress::NONE).unwrap();
                assert!(found == plain(&surface), "maze {n} with {share} % walls");
                assert!(found.count() > 0);
            }
        }
    }

    #[test]
    fn the_plain_fill_tells_a_shell_from_a_shell_with_a_hole() {
        let mut shell = BitGrid::new(UVec3::splat(9));
        for z in 2..7u32 {
            for y in 2..7u32 {
                for x in 2..7u32 {
                    if [x, y, z].iter().any(|&c| c == 2 || c == 6) && [x, y, z] != [6, 4, 4] {
                        shell.set(UVec3::new(x, y, z));
                    }
                }
            }
        }
        assert!(outside(&shell, Progress::NONE).unwrap().get(UVec3::splat(4)));
        shell.set(UVec3::new(6, 4, 4));
        assert!(!outside(&shell, Progress::NONE).unwrap().get(UVec3::splat(4)));
    }
}
