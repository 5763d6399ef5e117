//! Finds where parts of the surface face each other over a gap of outside space that the voxels can not show: fingers, thighs.
//!
//! From each triangle one step outwards: where that is solid, the triangle may face another. Only there the facing triangle is
//! looked for, along the normal, and the way between the two over the surface, which tells two fingers from a crease.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use glam::{DVec3, UVec3};
use rayon::prelude::*;

use super::closed::distinct;
use crate::model::{BitGrid, Code, Components, Grid, MAX_RESOLUTION, Mesh, Warning, Weld};

/// How far out to look, in voxels. A plane touches no voxel that holds a point further than the diagonal of a voxel from it.
const PROBE: f64 = 1.75;
/// Widest gap that can be without an empty voxel, in voxels: two diagonals hold no more whole voxels.
const WIDEST: f64 = 2.0 * PROBE;
/// Facing: the cosine between the normals is below this (150 degrees and more).
const FACING: f64 = -0.85;
/// Spots nearer than this along the surface, in voxels, are one crease. A crease of 20 degrees is two voxels wide where the
/// way around is 11.5 voxels.
const CREASE: f64 = 12.0;
/// Triangles probed, spread evenly, at most.
const PROBES: usize = 200_000;
/// Candidates looked at more closely, spread evenly, at most; and how many ways along the surface are searched.
const CANDIDATES: usize = 64;
const WAYS: usize = 12;
/// Places of the surface that a search of a way may visit: this many and a share of all (a search costs some 0.1 us a place).
/// A way not found to be long within that is taken for a crease: a warning less, never a false one.
const VISITS: usize = 600;
const VISITS_SHARE: usize = 256;
/// Edge length, in voxels, of the cells in which facing triangles are looked up.
const CELL: f64 = 2.0;

/// A spot of the surface (the centre of a triangle) from which another part may be seen.
#[derive(Clone, Copy)]
struct Spot {
    triangle: usize,
    /// In grid coordinates, as all positions here.
    at: DVec3,
    normal: DVec3,
}

/// A spot and what it faces.
struct Gap {
    spot: Spot,
    facing: usize,
    width: f64,
}

/// The warning that parts of the surface touch, if any do.
pub fn find(mesh: &Mesh, weld: &Weld, grid: &Grid, solid: &BitGrid) -> Option<Warning> {
    let search = Search { mesh, weld, grid, solid };
    let whole = signed_volume(mesh, grid).signum();
    if search.spots(|_| whole).is_empty() {
        return None;
    }
    let components = mesh.components(weld);
    let signs = search.signs(&components);
    let component = |t: [u32; 3]| components.of_place[weld.place_of[t[0] as usize] as usize] as usize;
    let sign = |t: [u32; 3]| signs[component(t)];
    let spots = search.spots(sign);
    let mut gaps = search.gaps(&thin(spots, CANDIDATES), sign);
    gaps.sort_by(|a, b| a.width.total_cmp(&b.width).then(a.spot.triangle.cmp(&b.spot.triangle)));
    let narrowest = search.not_a_crease(&thin(gaps, WAYS))?;
    Some(warning(grid, narrowest))
}

fn warning(grid: &Grid, narrowest: f64) -> Warning {
    let size = resolution(grid);
    // A gap of two voxels has a whole voxel in it wherever it lies; the little less is for rounding.
    let parting = (2.0 * size / narrowest - 1e-3).ceil();
    let advice = if parting <= f64::from(MAX_RESOLUTION) {
        format!("resolution {parting} would part them")
    } else {
        format!("no resolution up to {MAX_RESOLUTION} would part them")
    };
    let message = format!(
        "parts touch at this resolution ({size:.0} voxels): the narrowest gap found is {:.3e} units, {narrowest:.2} voxels, \
         so weights can spread across it; {advice}",
        narrowest * grid.voxel()
    );
    Warning::new(Code::PartsTouch, message)
}

/// The resolution a grid was made with: [`Grid::around`] adds three layers at even ones and four at odd ones.
fn resolution(grid: &Grid) -> f64 {
    f64::from(grid.dims().max_element() - 3)
}

/// Every so manieth, in order, so that at most `most` remain.
fn thin<T>(list: Vec<T>, most: usize) -> Vec<T> {
    let step = list.len().div_ceil(most).max(1);
    list.into_iter().step_by(step).collect()
}

fn signed_volume(mesh: &Mesh, grid: &Grid) -> f64 {
    let center = mesh.bounds().center();
    let part = |&t: &[u32; 3]| {
        let [a, b, c] = mesh.corners(t).map(|p| (p - center) / grid.voxel());
        a.dot(b.cross(c))
    };
    // In order, so that rounding does not depend on threads.
    mesh.triangles().iter().map(part).sum()
}

struct Search<'a> {
    mesh: &'a Mesh,
    weld: &'a Weld,
    grid: &'a Grid,
    solid: &'a BitGrid,
}

impl Search<'_> {
    fn corners(&self, triangle: [u32; 3]) -> [DVec3; 3] {
        self.mesh.corners(triangle).map(|p| self.grid.to_grid(p))
    }

    fn is_solid(&self, p: DVec3) -> bool {
        let last = self.grid.dims().as_dvec3() - 1.0;
        self.solid.get(p.floor().clamp(DVec3::ZERO, last).as_uvec3())
    }

    /// 1 for components that are outward as they are, -1 for those inside out.
    fn signs(&self, components: &Components) -> Vec<f64> {
        let center = self.mesh.bounds().center();
        let mut volume = vec![0.0; components.len()];
        for &t in self.mesh.triangles() {
            let [a, b, c] = self.mesh.corners(t).map(|p| (p - center) / self.grid.voxel());
            volume[components.of_place[self.weld.place_of[t[0] as usize] as usize] as usize] += a.dot(b.cross(c));
        }
        volume.into_iter().map(|v| if v < 0.0 { -1.0 } else { 1.0 }).collect()
    }

    /// The triangles that have something solid one step outwards, where `sign` says which way that is.
    fn spots(&self, sign: impl Fn([u32; 3]) -> f64 + Sync) -> Vec<Spot> {
        let triangles = self.mesh.triangles();
        let step = triangles.len().div_ceil(PROBES).max(1);
        (0..triangles.len())
            .into_par_iter()
            .with_min_len(2048)
            .filter(|n| n % step == 0)
            .filter_map(|triangle| {
                let [a, b, c] = self.corners(triangles[triangle]);
                let normal = (b - a).cross(c - a).try_normalize()? * sign(triangles[triangle]);
                let at = (a + b + c) / 3.0;
                self.is_solid(at + normal * PROBE).then_some(Spot { triangle, at, normal })
            })
            .collect()
    }

    /// For each spot the triangle it faces, where that is near, faces back, and leaves no empty voxel in between.
    fn gaps(&self, spots: &[Spot], sign: impl Fn([u32; 3]) -> f64) -> Vec<Gap> {
        let cell = |p: DVec3| (p / CELL).floor().max(DVec3::ZERO).as_uvec3();
        let size = (self.grid.dims().as_dvec3() / CELL).ceil().as_uvec3() + UVec3::ONE;
        let mut wanted = BitGrid::new(size);
        let mut triangles_in: HashMap<UVec3, Vec<usize>> = HashMap::new();
        for spot in spots {
            for c in cells(cell(spot.at), cell(spot.at + spot.normal * WIDEST)) {
                wanted.set(c.min(size - UVec3::ONE));
            }
        }
        for (n, &t) in self.mesh.triangles().iter().enumerate() {
            let [a, b, c] = self.corners(t);
            for at in cells(cell(a.min(b).min(c)), cell(a.max(b).max(c))) {
                if wanted.get(at.min(size - UVec3::ONE)) {
                    triangles_in.entry(at).or_default().push(n);
                }
            }
        }
        let hit = |spot: &Spot| {
            let own = self.mesh.triangles()[spot.triangle];
            let near = cells(cell(spot.at), cell(spot.at + spot.normal * WIDEST)).filter_map(|c| triangles_in.get(&c));
            let (width, facing) = near
                .flatten()
                .filter(|&&n| n != spot.triangle)
                .filter_map(|&n| Some((self.hit(spot, self.mesh.triangles()[n])?, n)))
                .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
            let other = self.mesh.triangles()[facing];
            let [a, b, c] = self.corners(other);
            let cosine = (b - a).cross(c - a).normalize_or_zero().dot(spot.normal) * sign(other);
            let joined = own
                .iter()
                .any(|v| other.iter().any(|w| self.weld.place_of[*v as usize] == self.weld.place_of[*w as usize]));
            let steps = (width * 8.0).ceil() as u32;
            let solid =
                (0..=steps).all(|i| self.is_solid(spot.at + spot.normal * (width * f64::from(i) / f64::from(steps))));
            (cosine < FACING && !joined && solid && width > 0.0).then_some(Gap { spot: *spot, facing, width })
        };
        spots.iter().filter_map(hit).collect()
    }

    /// Distance along the spot's normal to a triangle, up to the widest gap.
    fn hit(&self, spot: &Spot, triangle: [u32; 3]) -> Option<f64> {
        let [a, b, c] = self.corners(triangle);
        let (e, f) = (b - a, c - a);
        let n = e.cross(f);
        let along = n.dot(spot.normal);
        if along == 0.0 {
            return None;
        }
        let distance = (a - spot.at).dot(n) / along;
        let p = spot.at + spot.normal * distance - a;
        let size = n.length_squared();
        let (u, v) = (p.cross(f).dot(n) / size, e.cross(p).dot(n) / size);
        // A ray through an edge hits both triangles.
        let inside = u >= -1e-9 && v >= -1e-9 && u + v <= 1.0 + 1e-9;
        (inside && (0.0..=WIDEST).contains(&distance)).then_some(distance)
    }

    /// The width of the narrowest gap whose two sides are further apart over the surface than a crease has them.
    fn not_a_crease(&self, gaps: &[Gap]) -> Option<f64> {
        if gaps.is_empty() {
            return None;
        }
        let edges = self.edges();
        let mut length = vec![f64::INFINITY; self.weld.places()];
        gaps.iter().find(|gap| self.far_along_surface(&edges, gap, &mut length)).map(|gap| gap.width)
    }

    /// For each place the places it shares an edge with (twice where two triangles do), as ends of lists and lists.
    fn edges(&self) -> (Vec<u32>, Vec<u32>) {
        let placed = || {
            let place = |t: &[u32; 3]| t.map(|v| self.weld.place_of[v as usize]);
            self.mesh.triangles().iter().map(place).filter(distinct)
        };
        let mut ends = vec![0u32; self.weld.places() + 1];
        placed().flatten().for_each(|p| ends[p as usize + 1] += 2);
        for p in 0..self.weld.places() {
            ends[p + 1] += ends[p];
        }
        let mut start = ends.clone();
        let mut lists = vec![0; ends[self.weld.places()] as usize];
        for [a, b, c] in placed() {
            for (from, to) in [(a, [b, c]), (b, [c, a]), (c, [a, b])] {
                let at = start[from as usize] as usize;
                lists[at..at + 2].copy_from_slice(&to);
                start[from as usize] += 2;
            }
        }
        (ends, lists)
    }

    /// Whether every way over edges from one side of the gap to the other is longer than a crease's (A* search).
    /// `length` is scratch: infinity at every place, before and after.
    fn far_along_surface(&self, (ends, lists): &(Vec<u32>, Vec<u32>), gap: &Gap, length: &mut [f64]) -> bool {
        let places = |n: usize| self.mesh.triangles()[n].map(|v| self.weld.place_of[v as usize]);
        let at = |p: u32| self.grid.to_grid(self.mesh.positions()[self.weld.first[p as usize] as usize]);
        let goals = places(gap.facing);
        let goal = gap.spot.at + gap.spot.normal * gap.width;
        // Numbers that are not negative are ordered as their bits are.
        let key = |way: f64, p: u32| Reverse(((way + (at(p) - goal).length()).to_bits(), p));
        let mut seen = Vec::new();
        let mut todo = BinaryHeap::new();
        for p in places(gap.spot.triangle) {
            length[p as usize] = (at(p) - gap.spot.at).length();
            seen.push(p);
            todo.push(key(length[p as usize], p));
        }
        let mut visits = VISITS + self.weld.places() / VISITS_SHARE;
        let far = loop {
            let Some(Reverse((estimate, p))) = todo.pop() else { break true };
            if f64::from_bits(estimate) > CREASE {
                break true;
            }
            visits -= 1;
            if goals.contains(&p) || visits == 0 {
                break false;
            }
            let here = at(p);
            for &q in &lists[ends[p as usize] as usize..ends[p as usize + 1] as usize] {
                let way = length[p as usize] + (at(q) - here).length();
                if way < length[q as usize] {
                    length[q as usize] = way;
                    seen.push(q);
                    todo.push(key(way, q));
                }
            }
        };
        seen.into_iter().for_each(|p| length[p as usize] = f64::INFINITY);
        far
    }
}

/// The cells of the box that two cells span.
fn cells(a: UVec3, b: UVec3) -> impl Iterator<Item = UVec3> {
    let (min, max) = (a.min(b), a.max(b));
    (min.z..=max.z)
        .flat_map(move |z| (min.y..=max.y).flat_map(move |y| (min.x..=max.x).map(move |x| UVec3::new(x, y, z))))
}
