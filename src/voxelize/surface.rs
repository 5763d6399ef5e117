//! The boundary voxels, fast: the separating-axis test solved for whole rows of voxels at a time (after Schwarz and
//! Seidel, "Fast parallel surface and solid voxelization on GPUs", 2010). Gives bit for bit what `reference` gives.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::model::{BitGrid, Grid, LATTICE, Mesh};
use crate::progress::{Progress, Stage};

/// Rows of voxels between two reports of progress: well under 10 ms of work.
const ROWS_A_REPORT: usize = 1 << 18;
/// What the set-up of a triangle costs, in rows.
const SETUP_ROWS: usize = 8;

/// The voxels that the surface touches.
///
/// # Errors
/// [`Error::Parameter`] where the grid was not made around this mesh, [`Error::Cancelled`].
pub fn surface(mesh: &Mesh, grid: &Grid, progress: Progress) -> Result<BitGrid> {
    progress.at(Stage::Voxelize, 0.0)?;
    let lattice = lattice(mesh, grid)?;
    let spans = z_spans(mesh.triangles(), &lattice);
    let mut bits = BitGrid::new(grid.dims());
    let rows = bits.dims().y as usize;
    let words_per_row = bits.words_per_row();
    let cuts = slab_cuts(&spans, bits.dims().z as usize);
    let share = 1.0 / (cuts.len() - 1) as f64;
    let mut rest = bits.words_mut();
    let mut slabs = Vec::with_capacity(cuts.len() - 1);
    for pair in cuts.windows(2) {
        let (words, tail) = rest.split_at_mut((pair[1] - pair[0]) * rows * words_per_row);
        rest = tail;
        slabs.push(Slab { first: pair[0] as i32, end: pair[1] as i32, rows, words_per_row, words });
    }
    slabs.into_par_iter().try_for_each(|mut slab| {
        let mut columns = Vec::new();
        let mut work = 0;
        for (n, (&triangle, span)) in mesh.triangles().iter().zip(&spans).enumerate() {
            if i32::from(span[1]) < slab.first || i32::from(span[0]) >= slab.end {
                continue;
            }
            work += SETUP_ROWS + slab.draw(triangle.map(|v| lattice[v as usize]), &mut columns);
            if work > ROWS_A_REPORT {
                work = 0;
                progress.at(Stage::Voxelize, share * n as f64 / spans.len() as f64)?;
            }
        }
        Ok(())
    })?;
    Ok(bits)
}

/// The lattice point of every vertex.
fn lattice(mesh: &Mesh, grid: &Grid) -> Result<Vec<[i32; 3]>> {
    let last = grid.dims().as_ivec3() * LATTICE;
    let convert = |&p| {
        let at = grid.lattice(p);
        if at.cmplt(glam::IVec3::ZERO).any() || at.cmpgt(last).any() {
            return Err(Error::Parameter {
                name: "grid",
                value: format!("{} voxels", grid.dims()),
                allowed: "it must be the grid around this mesh",
            });
        }
        Ok(at.to_array())
    };
    mesh.positions().par_iter().with_min_len(4096).map(convert).collect()
}

/// First and last voxel along one axis of the closed range of lattice coordinates, in a grid of at most 65,535 voxels.
fn voxel_span(a: i32, b: i32, c: i32) -> [i32; 2] {
    let (min, max) = (a.min(b).min(c), a.max(b).max(c));
    // Lattice points on the face between two voxels touch both.
    [((min - 1) / LATTICE).max(0), max / LATTICE]
}

/// First and last slice of every triangle.
fn z_spans(triangles: &[[u32; 3]], lattice: &[[i32; 3]]) -> Vec<[u16; 2]> {
    triangles
        .par_iter()
        .with_min_len(4096)
        .map(|t| {
            let [a, b, c] = t.map(|v| lattice[v as usize][2]);
            voxel_span(a, b, c).map(|z| z as u16)
        })
        .collect()
}

/// Where to cut the grid along z so that threads have about equal work: the first slices of the slabs, and the end.
fn slab_cuts(spans: &[[u16; 2]], slices: usize) -> Vec<usize> {
    let slabs = if spans.len() < 500 && slices < 128 { 1 } else { 2 * rayon::current_num_threads() };
    let mut work = vec![0u64; slices];
    for span in spans {
        let (first, last) = (usize::from(span[0]), usize::from(span[1]).min(slices - 1));
        // A large triangle is work in every slice it is in.
        work[first..=last].iter_mut().for_each(|w| *w += 1 + (last - first) as u64);
    }
    let total: u64 = work.iter().sum();
    let mut cuts = vec![0];
    let mut done = 0;
    for (z, w) in work.iter().enumerate() {
        done += w;
        if done * slabs as u64 >= total * cuts.len() as u64 && cuts.len() < slabs && z + 1 < slices {
            cuts.push(z + 1);
        }
    }
    cuts.push(slices);
    cuts
}

/// The slices `first..end` of a bit grid.
struct Slab<'a> {
    first: i32,
    end: i32,
    rows: usize,
    words_per_row: usize,
    words: &'a mut [u64],
}

impl Slab<'_> {
    /// Sets the voxels of a row from `low` to `high`, both included; none where `low > high`.
    fn set_run(&mut self, y: i32, z: i32, low: i32, high: i32) {
        if low > high {
            return;
        }
        let start = ((z - self.first) as usize * self.rows + y as usize) * self.words_per_row;
        let (from, to) = (low as usize / 64, high as usize / 64);
        let row = &mut self.words[start + from..=start + to];
        let (head, tail) = (u64::MAX << (low % 64), u64::MAX >> (63 - high % 64));
        match row {
            [one] => *one |= head & tail,
            [begin, middle @ .., end] => {
                *begin |= head;
                middle.fill(u64::MAX);
                *end |= tail;
            }
            [] => {}
        }
    }

    /// Sets the voxels of this slab that the triangle touches. Returns the number of rows looked at.
    ///
    /// `columns` is scratch: the range of x for each y of the triangle's box.
    fn draw(&mut self, t: [[i32; 3]; 3], columns: &mut Vec<[i32; 2]>) -> usize {
        let [x, y, z] = [0, 1, 2].map(|axis| voxel_span(t[0][axis], t[1][axis], t[2][axis]));
        let slices = z[0].max(self.first)..(z[1] + 1).min(self.end);
        let single = [x, y, z].map(|span| span[0] == span[1]);
        // Within one layer of voxels the triangle's shadow on that layer decides; within one row its extent does.
        match single {
            [_, true, true] | [true, _, true] | [true, true, _] => {
                for k in slices.clone() {
                    (y[0]..=y[1]).for_each(|j| self.set_run(j, k, x[0], x[1]));
                }
            }
            [_, _, true] => {
                let xy = shadow(t, 0, 1);
                for j in y[0]..=y[1] {
                    let [low, high] = range(&xy, j, x);
                    slices.clone().for_each(|k| self.set_run(j, k, low, high));
                }
            }
            [_, true, _] => {
                let xz = shadow(t, 0, 2);
                for k in slices.clone() {
                    let [low, high] = range(&xz, k, x);
                    self.set_run(y[0], k, low, high);
                }
            }
            [true, _, _] => {
                let yz = shadow(t, 1, 2);
                for k in slices.clone() {
                    let [low, high] = range(&yz, k, y);
                    (low..=high).for_each(|j| self.set_run(j, k, x[0], x[0]));
                }
            }
            _ => self.draw_general(t, [x, y], slices.clone(), columns),
        }
        slices.len() * (y[1] - y[0] + 1) as usize
    }

    fn draw_general(
        &mut self,
        t: [[i32; 3]; 3],
        [x, y]: [[i32; 2]; 2],
        slices: std::ops::Range<i32>,
        columns: &mut Vec<[i32; 2]>,
    ) {
        let (xy, xz, yz) = (shadow(t, 0, 1), shadow(t, 0, 2), shadow(t, 1, 2));
        let plane = Plane::new(t);
        columns.clear();
        columns.extend((y[0]..=y[1]).map(|j| range(&xy, j, x)));
        for k in slices {
            let in_slice = range(&xz, k, x);
            let [first, last] = range(&yz, k, y);
            for j in first..=last {
                let column = columns[(j - y[0]) as usize];
                let [low, high] = [in_slice[0].max(column[0]), in_slice[1].min(column[1])];
                if low <= high {
                    let [low, high] = plane.range(j, k, [low, high]);
                    self.set_run(j, k, low, high);
                }
            }
        }
    }
}

/// A bound `a u + b v + c >= 0` on voxel coordinates (u, v), all whole numbers, kept to be solved for u.
///
/// |a|, |b| < 2^18.1 and |c| < 2^30, so all sums are exact in f64 (and fit 32 bits).
#[derive(Clone, Copy)]
struct Bound {
    b: f64,
    c: f64,
    /// 1 / |a|; where a = 0, a number so large that all u or none are in.
    inverse: f64,
    /// Whether u is bounded from below (a >= 0).
    from_below: bool,
}

/// More than the rounding of a product with a reciprocal (2^-40 for quotients below 2^11), less than the distance from
/// a quotient that is no whole number to the next one (2^-37.02: the reciprocal of the largest divisor, a component of the
/// normal). So floor(w / |a|) is exact.
const NUDGE: f64 = 1.0 / (1u64 << 39) as f64;
/// Stands for 1/0: larger than any coordinate, and finite so that 0 times it is 0.
const NO_DIVISOR: f64 = 1e12;

/// floor(w / a) for whole numbers w and a > 0, given 1 / a; saturated.
fn floor_div(w: f64, inverse: f64) -> i32 {
    let quotient = (w * inverse + NUDGE).clamp(-1e9, 1e9);
    let toward_zero = quotient as i32;
    toward_zero - i32::from(f64::from(toward_zero) > quotient)
}

fn reciprocal(a: i64) -> f64 {
    if a == 0 { NO_DIVISOR } else { 1.0 / a.abs() as f64 }
}

impl Bound {
    fn new(a: i64, b: i64, c: i64) -> Self {
        Self { b: b as f64, c: c as f64, inverse: reciprocal(a), from_below: a >= 0 }
    }

    /// Voxels that reach into the half-plane n . (p - at) >= 0, whose size on the lattice is folded into the constant.
    fn half_plane(n: [i64; 2], at: [i64; 2]) -> Self {
        let reach = n[0].max(0) + n[1].max(0);
        let offset = -(n[0] * at[0] + n[1] * at[1]);
        // The rest of the sum is a multiple of the voxel size: rounding down changes no comparison with 0.
        Self::new(n[0], n[1], reach + offset.div_euclid(i64::from(LATTICE)))
    }
}

/// The bounds on voxels (u, v) that touch the triangle's shadow along the third axis, besides those of its box.
fn shadow(t: [[i32; 3]; 3], u: usize, v: usize) -> [Bound; 3] {
    let p = t.map(|c| [i64::from(c[u]), i64::from(c[v])]);
    let edge = |i: usize| {
        let (from, to) = (p[i], p[(i + 1) % 3]);
        [to[0] - from[0], to[1] - from[1]]
    };
    let e = [edge(0), edge(1), edge(2)];
    let area = e[0][0] * e[1][1] - e[0][1] * e[1][0];
    if area == 0 {
        // A segment or a point: both sides of the longest edge.
        let longest = (0..3).max_by_key(|&i| e[i][0].abs() + e[i][1].abs()).unwrap_or(0);
        let [du, dv] = e[longest];
        let at = p[longest];
        return [Bound::half_plane([-dv, du], at), Bound::half_plane([dv, -du], at), Bound::new(0, 0, 0)];
    }
    let s = area.signum();
    [0, 1, 2].map(|i| Bound::half_plane([-s * e[i][1], s * e[i][0]], p[i]))
}

/// The range of u within `within` where all bounds hold at v; empty (first > last) where they do not.
fn range(bounds: &[Bound; 3], v: i32, within: [i32; 2]) -> [i32; 2] {
    let [mut low, mut high] = within;
    for bound in bounds {
        let q = floor_div(bound.b * f64::from(v) + bound.c, bound.inverse);
        if bound.from_below {
            low = low.max(-q);
        } else {
            high = high.min(q);
        }
    }
    [low, high]
}

/// The slab of voxels that reach a triangle's plane, to be solved for x. Components of the normal are below 2^37.1 and sums
/// below 2^50, so they are exact in f64.
struct Plane {
    y: f64,
    z: f64,
    /// Constants of the lower and the upper bound, for a normal with x >= 0.
    near: f64,
    far: f64,
    inverse: f64,
}

impl Plane {
    fn new(t: [[i32; 3]; 3]) -> Self {
        let p = t.map(|c| c.map(i64::from));
        let [e, f] = [1, 2].map(|i| [p[i][0] - p[0][0], p[i][1] - p[0][1], p[i][2] - p[0][2]]);
        let mut n = [e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]];
        if n[0] < 0 {
            n = n.map(|c| -c);
        }
        let level = n[0] * p[0][0] + n[1] * p[0][1] + n[2] * p[0][2];
        let above: i64 = n.iter().map(|c| c.max(&0)).sum();
        let below: i64 = n.iter().map(|c| c.min(&0)).sum();
        let step = i64::from(LATTICE);
        // Where x has no part in it, a half tells 0, which is inside, from what is negative on either side.
        let half = if n[0] == 0 { 0.5 } else { 0.0 };
        Self {
            y: n[1] as f64,
            z: n[2] as f64,
            near: (above + (-level).div_euclid(step)) as f64 + half,
            far: (level.div_euclid(step) - below) as f64 + half,
            inverse: reciprocal(n[0]),
        }
    }

    /// The range of x within `within` whose voxels of row (y, z) reach the plane.
    fn range(&self, y: i32, z: i32, within: [i32; 2]) -> [i32; 2] {
        let w = self.y * f64::from(y) + self.z * f64::from(z);
        let low = -floor_div(w + self.near, self.inverse);
        let high = floor_div(self.far - w, self.inverse);
        [within[0].max(low), within[1].min(high)]
    }
}
