//! Conjugate gradients for four bones at once in a part of the solid, with one multigrid cycle as preconditioner.
//!
//! Multigrid after Brandt 1977, as a preconditioner after Tatebe 1993: red-black Gauss-Seidel before the coarser level and the same in reverse
//! order after it keep the cycle symmetric. Outside of the part heat is 0.

use super::levels::Level;
use super::solid::NONE;

/// Bones solved together: as many as make the indices of a neighbour cheap beside its values.
pub const LANES: usize = 4;
/// A value for each of the bones solved together.
pub type Lanes = [f64; LANES];

/// Parts with fewer voxels than this are not made coarser.
const SMALL: usize = 24;
/// Half sweeps on the coarsest level, an odd number so that they read the same backwards. There the solid is a few hundred voxels.
const COARSEST_HALF_SWEEPS: usize = 15;
/// Iterations after which a solve is given up as stalled by rounding.
const MOST_ITERATIONS: usize = 60;

/// A part of one level: its voxels and the rows of the matrix, with numbers of its own.
#[derive(Default)]
pub struct Part {
    /// The level's numbers of the voxels, ascending: red ones first.
    pub voxels: Vec<u32>,
    red: usize,
    /// Neighbours by the part's numbers. One that is not in the part has the number past the last, where all vectors hold 0.
    neighbors: Vec<[u32; 6]>,
    coupling: Vec<[f32; 6]>,
    diagonal: Vec<f64>,
    /// Its voxel in the next coarser part.
    parent: Vec<u32>,
    /// Vectors of the cycle: right side, solution.
    right: Vec<Lanes>,
    solution: Vec<Lanes>,
}

/// Vectors of the conjugate gradients, kept to spare allocations.
#[derive(Default)]
struct Vectors {
    residual: Vec<Lanes>,
    direction: Vec<Lanes>,
    product: Vec<Lanes>,
}

/// What solves parts of the levels: parts from fine to coarse, and numbers of voxels in parts.
pub struct Solver<'a> {
    levels: &'a [Level],
    /// For each level: the part's number of each voxel, `NONE` where it is not in the part. All `NONE` between calls.
    number: Vec<Vec<u32>>,
    parts: Vec<Part>,
    vectors: Vectors,
}

/// How a solve ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Solved {
    pub iterations: usize,
    /// The largest of the lanes' relative residuals.
    pub residual: f64,
}

impl<'a> Solver<'a> {
    /// A solver for these levels.
    pub fn new(levels: &'a [Level]) -> Self {
        let number = levels.iter().map(|l| vec![NONE; l.len()]).collect();
        let parts = levels.iter().map(|_| Part::default()).collect();
        Self { levels, number, parts, vectors: Vectors::default() }
    }

    /// Takes these voxels of a level (ascending) as the part to solve in, and what lies over them on coarser levels.
    pub fn set_part(&mut self, level: usize, voxels: Vec<u32>) {
        self.parts[level].voxels = voxels;
        for l in level..self.levels.len() {
            for (i, &v) in self.parts[l].voxels.iter().enumerate() {
                self.number[l][v as usize] = i as u32;
            }
            let more = l + 1 < self.levels.len();
            if more {
                let mut above: Vec<u32> =
                    self.parts[l].voxels.iter().map(|&v| self.levels[l].parent[v as usize]).collect();
                above.sort_unstable();
                above.dedup();
                self.parts[l + 1].voxels = above;
            }
        }
        for l in level..self.levels.len() {
            let above = self.number.get(l + 1).map_or(&[][..], |n| &n[..]);
            self.parts[l].fill(&self.levels[l], &self.number[l], above);
        }
        for l in level..self.levels.len() {
            for &v in &self.parts[l].voxels {
                self.number[l][v as usize] = NONE;
            }
        }
    }

    /// The part's voxels of a level, as last set.
    pub fn part(&self, level: usize) -> &Part {
        &self.parts[level]
    }

    /// Solves `A x = right` in the part of a level from the `x` given, both with a 0 past the last voxel, until an estimate of the error falls
    /// below `tolerance` in all bones and voxels: one cycle gets so near to the error that what it would change is one.
    pub fn solve(&mut self, level: usize, right: &[Lanes], x: &mut [Lanes], tolerance: f64) -> Solved {
        let parts = &mut self.parts[level..];
        let n = parts[0].voxels.len();
        let Vectors { residual, direction, product } = &mut self.vectors;
        for v in [&mut *residual, &mut *direction, &mut *product] {
            v.clear();
            v.resize(n + 1, [0.0; LANES]);
        }
        let right_norm = sum_of_squares(right);
        parts[0].multiply(x, product);
        for i in 0..n {
            residual[i] = zip(right[i], product[i], |b, p| b - p);
        }
        let mut energy = [0.0; LANES];
        let mut iterations = 0;
        loop {
            let (finest, _) = parts.split_first_mut().expect("a level");
            finest.right.copy_from_slice(residual);
            cycle(parts);
            let z = &parts[0].solution;
            if largest(z) <= tolerance || iterations == MOST_ITERATIONS {
                // The cycle's change is at hand: it takes the error down once more.
                for (x, z) in x.iter_mut().zip(z) {
                    *x = zip(*x, *z, |x, z| x + z);
                }
                break;
            }
            let before = energy;
            energy = dot(residual, z);
            let turn = zip(energy, before, |now, before| if before > 0.0 { now / before } else { 0.0 });
            for (d, z) in direction.iter_mut().zip(z) {
                for l in 0..LANES {
                    d[l] = z[l] + turn[l] * d[l];
                }
            }
            let curvature = parts[0].multiply(direction, product);
            let step = zip(energy, curvature, |e, c| if c > 0.0 { e / c } else { 0.0 });
            for i in 0..n {
                for l in 0..LANES {
                    x[i][l] += step[l] * direction[i][l];
                    residual[i][l] -= step[l] * product[i][l];
                }
            }
            iterations += 1;
        }
        parts[0].multiply(x, product);
        let left = (0..n).fold([0.0; LANES], |sum, i| {
            let r = zip(right[i], product[i], |b, p| b - p);
            zip(sum, r, |s, r| s + r * r)
        });
        let relative = zip(left, right_norm, |l, r| if r > 0.0 { (l / r).sqrt() } else { 0.0 });
        Solved { iterations, residual: relative.into_iter().fold(0.0, f64::max) }
    }
}

impl Part {
    /// Copies the rows of its voxels.
    fn fill(&mut self, level: &Level, number: &[u32], number_above: &[u32]) {
        let n = self.voxels.len();
        let outside = n as u32;
        self.red = self.voxels.partition_point(|&v| (v as usize) < level.red);
        self.neighbors.clear();
        self.neighbors.extend(self.voxels.iter().map(|&v| {
            level.neighbors[v as usize].map(|m| if m == NONE { outside } else { number[m as usize].min(outside) })
        }));
        self.coupling.clear();
        if !level.coupling.is_empty() {
            self.coupling.extend(self.voxels.iter().map(|&v| level.coupling[v as usize]));
        }
        self.diagonal.clear();
        self.diagonal.extend(self.voxels.iter().map(|&v| level.diagonal[v as usize]));
        self.parent.clear();
        if !level.parent.is_empty() {
            self.parent.extend(self.voxels.iter().map(|&v| number_above[level.parent[v as usize] as usize]));
        }
        for vector in [&mut self.right, &mut self.solution] {
            vector.clear();
            vector.resize(n + 1, [0.0; LANES]);
        }
    }

    /// `product = A x`; returns `x . A x`.
    fn multiply(&self, x: &[Lanes], product: &mut [Lanes]) -> Lanes {
        let mut sum = [0.0; LANES];
        for i in 0..self.voxels.len() {
            let pulled = self.pull(i, x);
            for l in 0..LANES {
                product[i][l] = self.diagonal[i] * x[i][l] - pulled[l];
                sum[l] += product[i][l] * x[i][l];
            }
        }
        sum
    }

    /// What the neighbours of a voxel give it: the row of `-A` without its diagonal, times x.
    #[inline(always)]
    fn pull(&self, i: usize, x: &[Lanes]) -> Lanes {
        let mut sum = [0.0; LANES];
        if self.coupling.is_empty() {
            for &n in &self.neighbors[i] {
                let from = &x[n as usize];
                for l in 0..LANES {
                    sum[l] += from[l];
                }
            }
        } else {
            for (&n, &c) in self.neighbors[i].iter().zip(&self.coupling[i]) {
                let from = &x[n as usize];
                for l in 0..LANES {
                    sum[l] += f64::from(c) * from[l];
                }
            }
        }
        sum
    }

    /// Gauss-Seidel over one colour.
    fn relax(&mut self, colour: std::ops::Range<usize>) {
        let mut solution = std::mem::take(&mut self.solution);
        for i in colour {
            let pulled = self.pull(i, &solution);
            let inverse = 1.0 / self.diagonal[i];
            for l in 0..LANES {
                solution[i][l] = (self.right[i][l] + pulled[l]) * inverse;
            }
        }
        self.solution = solution;
    }

    /// The first sweep over red, from zero.
    fn start(&mut self) {
        for i in 0..self.red {
            let inverse = 1.0 / self.diagonal[i];
            self.solution[i] = self.right[i].map(|r| r * inverse);
        }
    }
}

/// One V-cycle for the first part's `right`, from zero, into its `solution`.
fn cycle(parts: &mut [Part]) {
    let Some((part, coarser)) = parts.split_first_mut() else { return };
    let (red, n) = (part.red, part.voxels.len());
    part.start();
    if coarser.is_empty() || n <= SMALL {
        for _ in 0..COARSEST_HALF_SWEEPS / 2 {
            part.relax(red..n);
            part.relax(0..red);
        }
        return;
    }
    part.relax(red..n);
    // After the black sweep no residual is left there; on red it is what black has given since.
    let above = &mut coarser[0];
    above.right.fill([0.0; LANES]);
    for i in 0..red {
        let pulled = part.pull(i, &part.solution);
        let to = &mut above.right[part.parent[i] as usize];
        for l in 0..LANES {
            to[l] += pulled[l];
        }
    }
    cycle(coarser);
    // Black is about to be computed anew from red alone, so only red takes the correction.
    for i in 0..red {
        let from = coarser[0].solution[part.parent[i] as usize];
        part.solution[i] = zip(part.solution[i], from, |x, c| x + c);
    }
    part.relax(red..n);
    part.relax(0..red);
}

#[inline(always)]
fn zip(a: Lanes, b: Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    std::array::from_fn(|l| f(a[l], b[l]))
}

fn dot(a: &[Lanes], b: &[Lanes]) -> Lanes {
    a.iter().zip(b).fold([0.0; LANES], |sum, (a, b)| std::array::from_fn(|l| sum[l] + a[l] * b[l]))
}

fn sum_of_squares(a: &[Lanes]) -> Lanes {
    dot(a, a)
}

fn largest(a: &[Lanes]) -> f64 {
    a.iter()
        .fold([0.0; LANES], |most, v| zip(most, *v, |m, v| if v.abs() > m { v.abs() } else { m }))
        .into_iter()
        .fold(0.0, f64::max)
}
