//! Conjugate gradients for four bones at once in a part of the solid, with one multigrid cycle as preconditioner.
//!
//! Multigrid after Brandt 1977, as a preconditioner after Tatebe 1993: red-black Gauss-Seidel before the coarser level
//! and the same in reverse order after it keep the cycle symmetric. Outside of the part heat is 0. The solution and its
//! residual are in f64; the cycle, which only has to point the way, is in f32 and moves half the bytes.

use super::levels::Level;
use super::solid::NONE;

/// Bones solved together: as many as make the indices of a neighbour cheap beside its values.
pub const LANES: usize = 4;
/// A value for each of the bones solved together.
pub type Lanes = [f64; LANES];
/// The same inside the cycle.
type Short = [f32; LANES];

/// Parts with fewer voxels than this are not made coarser.
const SMALL: usize = 24;
/// Half sweeps on the coarsest level, an odd number so that they read the same backwards. There the solid is a few
/// hundred voxels.
const COARSEST_HALF_SWEEPS: usize = 15;
/// Iterations after which a solve is given up as stalled by rounding.
const MOST_ITERATIONS: usize = 60;

/// A part of one level: its voxels and the rows of the matrix, with numbers of its own.
#[derive(Default)]
struct Part {
    /// The level's numbers of the voxels, ascending: red ones first.
    voxels: Vec<u32>,
    red: usize,
    /// Neighbours by the part's numbers. One that is not in the part has the number past the last, where all vectors
    /// hold 0.
    neighbors: Vec<[u32; 6]>,
    coupling: Vec<[f32; 6]>,
    diagonal: Vec<f64>,
    inverse: Vec<f32>,
    /// Its voxel in the next coarser part.
    parent: Vec<u32>,
    /// Vectors of the cycle: right side, solution.
    right: Vec<Short>,
    solution: Vec<Short>,
}

/// What solves parts of the levels, one level after the other from the coarsest to the finest. Keeps its memory from
/// group to group.
pub struct Solver<'a> {
    levels: &'a [Level],
    /// For each level the part's number of each voxel, `NONE` where it is not in the part. All `NONE` between calls.
    number: Vec<Vec<u32>>,
    /// A bit for each voxel of a level, all 0 between calls.
    taken: Vec<Vec<u64>>,
    parts: Vec<Part>,
    /// Solution and vectors of the level at hand, with a 0 past the last voxel.
    x: Vec<Lanes>,
    right: Vec<Lanes>,
    residual: Vec<Lanes>,
    direction: Vec<Lanes>,
    product: Vec<Lanes>,
}

/// How a solve ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Solved {
    pub iterations: usize,
    /// The largest of the lanes' relative residuals before the last correction.
    pub residual: f64,
}

impl<'a> Solver<'a> {
    /// A solver for these levels.
    pub fn new(levels: &'a [Level]) -> Self {
        Self {
            levels,
            number: levels.iter().map(|l| vec![NONE; l.len()]).collect(),
            taken: levels.iter().map(|l| vec![0; l.len().div_ceil(64)]).collect(),
            parts: levels.iter().map(|_| Part::default()).collect(),
            x: Vec::new(),
            right: Vec::new(),
            residual: Vec::new(),
            direction: Vec::new(),
            product: Vec::new(),
        }
    }

    /// Goes to the coarsest level, all of it, from zero, for up to [`LANES`] bones.
    pub fn start(&mut self, group: &[u32]) {
        let coarsest = self.levels.len() - 1;
        let n = self.levels[coarsest].len();
        self.x.clear();
        self.x.resize(n + 1, [0.0; LANES]);
        self.set_part(coarsest, (0..n as u32).collect(), group);
    }

    /// Goes from the level above to this one: to the children of the voxels in which a bone is warmer than `cold` or
    /// which the bones heat, and one voxel further, with the values of their parents.
    pub fn refine(&mut self, level: usize, group: &[u32], cold: f64) {
        let coarser = std::mem::take(&mut self.parts[level + 1].voxels);
        let voxels = self.warm_children(level, &coarser, group, cold);
        let number = &mut self.number[level + 1];
        for (i, &v) in coarser.iter().enumerate() {
            number[v as usize] = i as u32;
        }
        // The value past the last is the 0 of voxels that are not in the coarser part.
        let last = coarser.len();
        let parent = |&v: &u32| number[self.levels[level].parent[v as usize] as usize].min(last as u32) as usize;
        let x = voxels.iter().map(|v| self.x[parent(v)]).chain([[0.0; LANES]]).collect();
        self.x = x;
        for &v in &coarser {
            number[v as usize] = NONE;
        }
        self.set_part(level, voxels, group);
    }

    /// The voxels in which to solve, ascending.
    fn warm_children(&mut self, level: usize, coarser: &[u32], group: &[u32], cold: f64) -> Vec<u32> {
        let (finer, above) = (&self.levels[level], &self.levels[level + 1]);
        let taken = &mut self.taken[level];
        let mut take = |v: u32| {
            let (word, bit) = ((v / 64) as usize, 1 << (v % 64));
            let new = taken[word] & bit == 0;
            taken[word] |= bit;
            new
        };
        let warm = coarser.iter().zip(&self.x).filter(|(_, x)| x.iter().any(|&x| x > cold)).map(|(&v, _)| v);
        let heated = group.iter().flat_map(|&b| above.heated(b as usize)).map(|&(v, _)| v);
        let children = warm.chain(heated).flat_map(|v| above.children(v));
        let inner: Vec<u32> = children.copied().filter(|&v| take(v)).collect();
        for n in inner.iter().flat_map(|&v| finer.neighbors[v as usize]) {
            if n != NONE {
                take(n);
            }
        }
        let mut voxels = Vec::with_capacity(inner.len() * 3 / 2);
        for (w, word) in taken.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                voxels.push(w as u32 * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        voxels
    }

    /// Takes these voxels of a level (ascending) as the part to solve in, what lies over them on coarser levels, and
    /// the right sides of a group.
    fn set_part(&mut self, level: usize, voxels: Vec<u32>, group: &[u32]) {
        self.parts[level].voxels = voxels;
        for l in level..self.levels.len() {
            for (i, &v) in self.parts[l].voxels.iter().enumerate() {
                self.number[l][v as usize] = i as u32;
            }
            if l + 1 < self.levels.len() {
                self.parts[l + 1].voxels = self.parents(l);
            }
        }
        for l in level..self.levels.len() {
            let above = self.number.get(l + 1).map_or(&[][..], |n| &n[..]);
            self.parts[l].fill(&self.levels[l], &self.number[l], above);
        }
        self.right.clear();
        self.right.resize(self.parts[level].voxels.len() + 1, [0.0; LANES]);
        for (lane, &bone) in group.iter().enumerate() {
            for &(voxel, g) in self.levels[level].heated(bone as usize) {
                self.right[self.number[level][voxel as usize] as usize][lane] = g;
            }
        }
        for l in level..self.levels.len() {
            for &v in &self.parts[l].voxels {
                self.number[l][v as usize] = NONE;
            }
        }
    }

    /// The voxels of the next coarser level that lie over a part, ascending.
    fn parents(&mut self, level: usize) -> Vec<u32> {
        let taken = &mut self.taken[level + 1];
        for &v in &self.parts[level].voxels {
            let parent = self.levels[level].parent[v as usize];
            taken[(parent / 64) as usize] |= 1 << (parent % 64);
        }
        let mut parents = Vec::new();
        for (w, word) in taken.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                parents.push(w as u32 * 64 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        parents
    }

    /// The voxels of the part at hand on a level, each with its heats.
    pub fn heats(&self, level: usize) -> impl Iterator<Item = (u32, &Lanes)> {
        self.parts[level].voxels.iter().copied().zip(&self.x)
    }

    /// Solves at the level at hand, from the values at hand, until an estimate of the error falls below `tolerance` in
    /// all bones and voxels: one cycle comes so near to the error that what it would change is the estimate.
    pub fn solve(&mut self, level: usize, tolerance: f64) -> Solved {
        let parts = &mut self.parts[level..];
        let n = parts[0].voxels.len();
        let Self { x, right, residual, direction, product, .. } = self;
        for v in [&mut *residual, &mut *direction, &mut *product] {
            v.clear();
            v.resize(n + 1, [0.0; LANES]);
        }
        parts[0].multiply(x, product);
        let vectors = residual.iter_mut().zip(&mut parts[0].right);
        for (((r, short), b), p) in vectors.zip(&*right).zip(&*product) {
            for l in 0..LANES {
                r[l] = b[l] - p[l];
                short[l] = r[l] as f32;
            }
        }
        let mut energy = [0.0; LANES];
        let mut iterations = 0;
        loop {
            cycle(parts);
            let z = &parts[0].solution;
            let before = energy;
            let most;
            (energy, most) = energy_and_largest(residual, z);
            if most <= tolerance || iterations == MOST_ITERATIONS {
                // The cycle's change is at hand: it takes the error down once more.
                for (x, z) in x.iter_mut().zip(z) {
                    for l in 0..LANES {
                        x[l] += f64::from(z[l]);
                    }
                }
                break;
            }
            let turn = zip(energy, before, |now, before| if before > 0.0 { now / before } else { 0.0 });
            for (d, z) in direction.iter_mut().zip(z) {
                for l in 0..LANES {
                    d[l] = f64::from(z[l]) + turn[l] * d[l];
                }
            }
            let curvature = parts[0].multiply(direction, product);
            let step = zip(energy, curvature, |e, c| if c > 0.0 { e / c } else { 0.0 });
            let vectors = x.iter_mut().zip(residual.iter_mut()).zip(&mut parts[0].right);
            for ((((x, r), short), d), p) in vectors.zip(&*direction).zip(&*product) {
                for l in 0..LANES {
                    x[l] += step[l] * d[l];
                    r[l] -= step[l] * p[l];
                    short[l] = r[l] as f32;
                }
            }
            iterations += 1;
        }
        let relative = zip(squares(residual), squares(right), |r, b| if b > 0.0 { (r / b).sqrt() } else { 0.0 });
        Solved { iterations, residual: relative.into_iter().fold(0.0, f64::max) }
    }
}

impl Part {
    /// Copies the rows of its voxels.
    fn fill(&mut self, level: &Level, number: &[u32], number_above: &[u32]) {
        let n = self.voxels.len();
        let outside = n as u32;
        let voxels = &self.voxels;
        self.red = voxels.partition_point(|&v| (v as usize) < level.red);
        self.neighbors.clear();
        self.neighbors.extend(voxels.iter().map(|&v| {
            level.neighbors[v as usize].map(|m| if m == NONE { outside } else { number[m as usize].min(outside) })
        }));
        self.coupling.clear();
        if !level.coupling.is_empty() {
            self.coupling.extend(voxels.iter().map(|&v| level.coupling[v as usize]));
        }
        self.diagonal.clear();
        self.diagonal.extend(voxels.iter().map(|&v| level.diagonal[v as usize]));
        self.inverse.clear();
        self.inverse.extend(self.diagonal.iter().map(|d| (1.0 / d) as f32));
        self.parent.clear();
        if !level.parent.is_empty() {
            self.parent.extend(voxels.iter().map(|&v| number_above[level.parent[v as usize] as usize]));
        }
        for vector in [&mut self.right, &mut self.solution] {
            vector.clear();
            vector.resize(n + 1, [0.0; LANES]);
        }
    }

    /// `product = A x`; returns `x . A x`.
    fn multiply(&self, x: &[Lanes], product: &mut [Lanes]) -> Lanes {
        let mut sum = [0.0; LANES];
        let rows = product.iter_mut().zip(x).zip(&self.diagonal).zip(&self.neighbors);
        if self.coupling.is_empty() {
            for (((product, own), &d), neighbors) in rows {
                let mut pulled = [0.0; LANES];
                for &n in neighbors {
                    add_scaled(&mut pulled, 1.0, &x[n as usize]);
                }
                finish_row(product, own, d, &pulled, &mut sum);
            }
        } else {
            for ((((product, own), &d), neighbors), coupling) in rows.zip(&self.coupling) {
                let mut pulled = [0.0; LANES];
                for (&n, &c) in neighbors.iter().zip(coupling) {
                    add_scaled(&mut pulled, c.into(), &x[n as usize]);
                }
                finish_row(product, own, d, &pulled, &mut sum);
            }
        }
        sum
    }

    /// Gauss-Seidel over one colour.
    fn relax(&mut self, red: bool) {
        let Self { neighbors, coupling, right, inverse, solution, red: reds, .. } = self;
        for_colour(red, *reds, neighbors, coupling, solution, |own, i, pulled| {
            let (right, inverse) = (&right[i], inverse[i]);
            for l in 0..LANES {
                own[l] = (right[l] + pulled[l]) * inverse;
            }
        });
    }

    /// The first sweep over red, from zero.
    fn start(&mut self) {
        for ((own, right), &inverse) in self.solution[..self.red].iter_mut().zip(&self.right).zip(&self.inverse) {
            for l in 0..LANES {
                own[l] = right[l] * inverse;
            }
        }
    }

    /// After a red and a black sweep from zero, hands the residual on to the coarser part. On black none is left; on
    /// red it is what black has given since.
    fn restrict(&mut self, above: &mut Part) {
        above.right.fill([0.0; LANES]);
        let Self { neighbors, coupling, solution, parent, red, .. } = self;
        for_colour(true, *red, neighbors, coupling, solution, |_, i, pulled| {
            add_short(&mut above.right[parent[i] as usize], 1.0, &pulled);
        });
    }
}

/// For each voxel of a colour, calls `then` with its solution, its number and what its neighbours give it: the row of
/// `-A` without the diagonal, times the solution. The neighbours all have the other colour, so one half is read while
/// the other is written.
#[inline(always)]
fn for_colour(
    red: bool,
    reds: usize,
    neighbors: &[[u32; 6]],
    coupling: &[[f32; 6]],
    solution: &mut [Short],
    mut then: impl FnMut(&mut Short, usize, Short),
) {
    let (red_half, black_half) = solution.split_at_mut(reds);
    let (first, own, other, shift) =
        if red { (0, red_half, &*black_half, reds) } else { (reds, black_half, &*red_half, 0) };
    let end = if red { reds } else { neighbors.len() };
    let zero = [0.0; LANES];
    // The number of those outside the part is past the end for both halves: it reads as 0.
    let value = |n: u32| other.get(n as usize - shift).unwrap_or(&zero);
    let rows = neighbors[first..end].iter().zip(own).enumerate();
    if coupling.is_empty() {
        for (i, (neighbors, own)) in rows {
            let mut sum = zero;
            for &n in neighbors {
                add_short(&mut sum, 1.0, value(n));
            }
            then(own, first + i, sum);
        }
    } else {
        for ((i, (neighbors, own)), coupling) in rows.zip(&coupling[first..end]) {
            let mut sum = zero;
            for (&n, &c) in neighbors.iter().zip(coupling) {
                add_short(&mut sum, c, value(n));
            }
            then(own, first + i, sum);
        }
    }
}

/// One V-cycle for the first part's `right`, from zero, into its `solution`.
fn cycle(parts: &mut [Part]) {
    let Some((part, coarser)) = parts.split_first_mut() else { return };
    part.start();
    let Some(above) = coarser.first_mut().filter(|_| part.voxels.len() > SMALL) else {
        for _ in 0..COARSEST_HALF_SWEEPS / 2 {
            part.relax(false);
            part.relax(true);
        }
        return;
    };
    part.relax(false);
    part.restrict(above);
    cycle(coarser);
    // Black is about to be computed anew from red alone, so only red takes the correction.
    for (own, &parent) in part.solution[..part.red].iter_mut().zip(&part.parent) {
        add_short(own, 1.0, &coarser[0].solution[parent as usize]);
    }
    part.relax(false);
    part.relax(true);
}

#[inline(always)]
fn zip(a: Lanes, b: Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    std::array::from_fn(|l| f(a[l], b[l]))
}

#[inline(always)]
fn add_scaled(sum: &mut Lanes, by: f64, other: &Lanes) {
    for l in 0..LANES {
        sum[l] += by * other[l];
    }
}

#[inline(always)]
fn add_short(sum: &mut Short, by: f32, other: &Short) {
    for l in 0..LANES {
        sum[l] += by * other[l];
    }
}

/// The end of a row of `A x`: its value, and its part of `x . A x`.
#[inline(always)]
fn finish_row(product: &mut Lanes, own: &Lanes, diagonal: f64, pulled: &Lanes, sum: &mut Lanes) {
    for l in 0..LANES {
        product[l] = diagonal * own[l] - pulled[l];
        sum[l] += product[l] * own[l];
    }
}

/// `residual . z` of each lane, and the largest of all |z|.
fn energy_and_largest(residual: &[Lanes], z: &[Short]) -> (Lanes, f64) {
    let mut energy = [0.0; LANES];
    let mut most = [0f32; LANES];
    for (r, z) in residual.iter().zip(z) {
        for l in 0..LANES {
            energy[l] += r[l] * f64::from(z[l]);
            // A plain comparison: f32::max also orders NaN, which costs as much as the product.
            most[l] = if z[l].abs() > most[l] { z[l].abs() } else { most[l] };
        }
    }
    (energy, most.into_iter().fold(0.0, f32::max).into())
}

fn squares(a: &[Lanes]) -> Lanes {
    a.iter().fold([0.0; LANES], |sum, a| zip(sum, *a, |s, a| s + a * a))
}
