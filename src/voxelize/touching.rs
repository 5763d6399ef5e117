//! Finds where parts of the surface face each other over a gap of outside space that the voxels can not show: fingers, thighs.
//!
//! From each triangle one step outwards: where that is solid, the triangle may face another. Only there the facing triangle is
//! looked for, along the normal, and the surface around the gap, which tells two fingers from a crease.

use glam::{DVec3, UVec3};
use rayon::prelude::*;

use crate::geometry::closest_point::closest_on_triangle;
use crate::model::{BitGrid, Code, Grid, MAX_RESOLUTION, Mesh, Warning, Weld};

/// How far out to look, in voxels. A plane touches no voxel that holds a point further than the diagonal of a voxel from it.
const PROBE: f64 = 1.75;
/// Widest gap looked for, in voxels. One of two along an axis has an empty voxel in it; askew it can be without one up to twice
/// the diagonal, but hardly is over a stretch.
const WIDEST: f64 = 2.5;
/// Facing: the cosine between the normals is below this (148 degrees and more).
const FACING: f64 = -0.85;
/// Where the two sides are joined within so many widths of the gap's middle, they are a crease: one of 20 degrees or more. The
/// sides of such a crease meet 2.84 widths away.
const CREASE: f64 = 3.0;
/// Triangles that are probed and that may be faced, for each voxel of the surface, spread evenly, at most: all where they are
/// larger than a voxel.
const PROBES_A_VOXEL: usize = 3;
/// Probes looked at more closely, spread evenly, at most; and gaps whose surroundings are looked at.
const CANDIDATES: usize = 96;
const SURROUNDINGS: usize = 6;
/// Triangles around gaps looked at, at most: this many and a share of all. What more there is counts as creases: a warning less,
/// never a false one.
const JOINS: usize = 4000;
const JOINS_SHARE: usize = 32;
/// Boxes smaller than this, in voxels, stand for the triangles in them.
const SMALL: f64 = 0.5;
/// Edge length, in voxels, of the cells in which facing triangles are looked up.
const CELL: f64 = 2.0;
/// Cells of a triangle's box above which it is not put into each but is looked at from everywhere.
const MANY_CELLS: u32 = 64;

/// The warning that parts of the surface touch, if any do.
pub fn find(mesh: &Mesh, weld: &Weld, grid: &Grid, surface: &BitGrid, solid: &BitGrid) -> Option<Warning> {
    let probes = PROBES_A_VOXEL * surface.count() as usize;
    let search = Search::new(mesh, weld, grid, solid, probes.max(1));
    let faces = search.faces();
    let probes = thin(faces.iter().filter(|f| search.is_solid(f.center + f.normal * PROBE)).collect(), CANDIDATES);
    if probes.is_empty() {
        return None;
    }
    let lookup = Lookup::new(&search, &probes, &faces);
    let mut gaps: Vec<Gap> = probes.into_par_iter().filter_map(|probe| search.gap(probe, &lookup)).collect();
    gaps.sort_by(|a, b| a.width.total_cmp(&b.width).then(a.sides.cmp(&b.sides)));
    let gaps = thin(gaps, SURROUNDINGS);
    let around = search.around(&gaps, &faces);
    let mut parts = Parts(vec![NO_PLACE; weld.places()]);
    let mut joins = 0;
    let apart: Vec<&Gap> = gaps
        .iter()
        .zip(&around)
        .take_while(|(_, near)| {
            joins += near.len();
            joins <= JOINS + mesh.triangles().len() / JOINS_SHARE
        })
        .filter(|(gap, near)| !search.is_crease(gap, near, &mut parts))
        .map(|(gap, _)| gap)
        .collect();
    let outside = search.outside(&apart);
    let (narrowest, _) = apart.iter().zip(outside).find(|(_, outside)| *outside)?;
    Some(warning(grid, narrowest.width))
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

/// A triangle that may face another. In grid coordinates, as all positions here.
#[derive(Clone, Copy)]
struct Face {
    triangle: usize,
    center: DVec3,
    /// Outwards, of unit length.
    normal: DVec3,
    /// Its box.
    low: DVec3,
    high: DVec3,
}

/// Two triangles that face each other.
struct Gap {
    sides: [usize; 2],
    middle: DVec3,
    /// In voxels.
    width: f64,
}

struct Search<'a> {
    mesh: &'a Mesh,
    weld: &'a Weld,
    solid: &'a BitGrid,
    /// For each vertex its position.
    at: Vec<DVec3>,
    /// 1 where the surface turns outwards as a whole, else -1.
    sign: f64,
    /// One in so many triangles is looked at.
    step: usize,
}

impl<'a> Search<'a> {
    fn new(mesh: &'a Mesh, weld: &'a Weld, grid: &Grid, solid: &'a BitGrid, probes: usize) -> Self {
        let at: Vec<DVec3> = mesh.positions().par_iter().with_min_len(4096).map(|&p| grid.to_grid(p)).collect();
        let step = mesh.triangles().len().div_ceil(probes).max(1);
        let mut search = Self { mesh, weld, solid, at, sign: 1.0, step };
        // A sixth of the volume of a sample of the triangles is biased alike for both signs.
        let middle = grid.dims().as_dvec3() * 0.5;
        let volume: Vec<f64> = (0..mesh.triangles().len().div_ceil(step))
            .into_par_iter()
            .with_min_len(4096)
            .map(|n| {
                let [a, b, c] = search.corners(n * step).map(|p| p - middle);
                a.dot(b.cross(c))
            })
            .collect();
        search.sign = if volume.iter().sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
        search
    }

    fn places(&self, triangle: usize) -> [u32; 3] {
        self.mesh.triangles()[triangle].map(|v| self.weld.place_of[v as usize])
    }

    fn corners(&self, triangle: usize) -> [DVec3; 3] {
        self.mesh.triangles()[triangle].map(|v| self.at[v as usize])
    }

    fn is_solid(&self, p: DVec3) -> bool {
        let last = self.solid.dims().as_dvec3() - 1.0;
        self.solid.get(p.clamp(DVec3::ZERO, last).as_uvec3())
    }

    /// The triangles that are looked at.
    fn faces(&self) -> Vec<Face> {
        (0..self.mesh.triangles().len().div_ceil(self.step))
            .into_par_iter()
            .with_min_len(2048)
            .filter_map(|n| {
                let triangle = n * self.step;
                let [a, b, c] = self.corners(triangle);
                let normal = (b - a).cross(c - a).try_normalize()? * self.sign;
                let (low, high) = (a.min(b).min(c), a.max(b).max(c));
                Some(Face { triangle, center: (a + b + c) / 3.0, normal, low, high })
            })
            .collect()
    }

    /// The nearest triangle that a probe faces, if nothing empty is in between.
    fn gap(&self, probe: &Face, lookup: &Lookup) -> Option<Gap> {
        let mut nearest: Option<(f64, usize)> = None;
        lookup.around(probe, |face| {
            if face.triangle == probe.triangle {
                return;
            }
            if let Some(width) = self.distance(probe, face) {
                let found = (width, face.triangle);
                nearest = Some(nearest.map_or(found, |known| if found < known { found } else { known }));
            }
        });
        let (width, facing) = nearest?;
        let steps = (width * 8.0).ceil().max(1.0) as u32;
        let way = |i: u32| probe.center + probe.normal * (width * f64::from(i) / f64::from(steps));
        let own = self.places(probe.triangle);
        let joined = self.places(facing).iter().any(|p| own.contains(p));
        let filled = (0..=steps).all(|i| self.is_solid(way(i)));
        let middle = probe.center + probe.normal * (0.5 * width);
        (!joined && filled && width > 0.0).then_some(Gap { sides: [probe.triangle, facing], middle, width })
    }

    /// Distance along a probe's normal to a triangle that faces it, up to the widest gap.
    fn distance(&self, probe: &Face, face: &Face) -> Option<f64> {
        let cosine = face.normal.dot(probe.normal);
        if cosine >= FACING {
            return None;
        }
        let distance = (face.center - probe.center).dot(face.normal) / cosine;
        if !(0.0..=WIDEST).contains(&distance) {
            return None;
        }
        let hit = probe.center + probe.normal * distance;
        // Of a sample, one near the ray stands for those left out.
        let near = self.step > 1 && hit.distance_squared(face.center) <= 1.0;
        // A ray through an edge hits both triangles.
        let met = || closest_on_triangle(hit, self.corners(face.triangle)).1 <= 1e-9;
        (near || met()).then_some(distance)
    }

    /// For each gap the triangles that are near enough to make it a crease.
    fn around(&self, gaps: &[Gap], faces: &[Face]) -> Vec<Vec<u32>> {
        let mut around = vec![Vec::new(); gaps.len()];
        if gaps.is_empty() {
            return around;
        }
        let marked = self.mark(gaps, faces);
        let near: Vec<(usize, u32)> = (0..self.mesh.triangles().len())
            .into_par_iter()
            .with_min_len(4096)
            .filter(|&n| marked.get(cell(self.at[self.mesh.triangles()[n][0] as usize])))
            .flat_map_iter(|n| {
                let corners = self.corners(n);
                let [a, b, c] = corners;
                let (low, high) = (a.min(b).min(c), a.max(b).max(c));
                let small = (high - low).max_element() < SMALL;
                gaps.iter().enumerate().filter_map(move |(i, gap)| {
                    let reach = (CREASE * gap.width).powi(2);
                    let outside = (low - gap.middle).max(gap.middle - high).max(DVec3::ZERO);
                    let boxed = outside.length_squared() <= reach;
                    (boxed && (small || closest_on_triangle(gap.middle, corners).1 <= reach)).then_some((i, n as u32))
                })
            })
            .collect();
        near.into_iter().for_each(|(gap, triangle)| around[gap].push(triangle));
        around
    }

    /// The cells in which a triangle near one of the gaps can have a corner.
    fn mark(&self, gaps: &[Gap], faces: &[Face]) -> BitGrid {
        let size = cells(self.solid);
        let mut marked = BitGrid::new(size);
        // All triangles are among the faces, or else their sizes are about those of the faces.
        let margin = faces.iter().map(|f| (f.high - f.low).max_element()).fold(0.0, f64::max);
        for gap in gaps {
            let reach = DVec3::splat(CREASE * gap.width + margin);
            let (low, high) = (cell(gap.middle - reach), cell(gap.middle + reach).min(size - UVec3::ONE));
            visit(low, high, |c| marked.set(c));
        }
        marked
    }

    /// Whether the two sides of a gap are joined by the triangles near it.
    fn is_crease(&self, gap: &Gap, near: &[u32], parts: &mut Parts) -> bool {
        for &n in near {
            let [a, b, c] = self.places(n as usize);
            parts.join(a, b);
            parts.join(a, c);
        }
        let [one, other] = gap.sides.map(|n| parts.root(self.places(n)[0]));
        for &n in near.iter().chain(&gap.sides.map(|n| n as u32)) {
            self.places(n as usize).into_iter().for_each(|p| parts.0[p as usize] = NO_PLACE);
        }
        one == other
    }

    /// For each gap whether its middle lies outside: for meshes that are partly inside out. By the signed crossings of a ray
    /// along each axis; two of three decide, so that a hole in the way does no harm.
    fn outside(&self, gaps: &[&Gap]) -> Vec<bool> {
        if gaps.is_empty() {
            return Vec::new();
        }
        // Off planes of symmetry, where a ray would run along edges.
        let aside = DVec3::new(1.0e-3 / 3.0, 1.0e-3 / 7.0, 1.0e-3 / 11.0);
        let none = || vec![[0i32; 3]; gaps.len()];
        let add = |mut turns: Vec<[i32; 3]>, n: usize| {
            let corners = self.corners(n);
            let [a, b, c] = corners;
            let (low, high) = (a.min(b).min(c), a.max(b).max(c));
            for (turns, gap) in turns.iter_mut().zip(gaps) {
                let from = gap.middle + aside;
                let level = (low.cmple(from) & high.cmpge(from)).bitmask();
                for (axis, across) in [0b110, 0b101, 0b011].into_iter().enumerate() {
                    if level & across == across {
                        turns[axis] += crossing(axis, corners.map(|q| q - from));
                    }
                }
            }
            turns
        };
        let both = |mut a: Vec<[i32; 3]>, b: Vec<[i32; 3]>| {
            a.iter_mut().flatten().zip(b.iter().flatten()).for_each(|(a, b)| *a += b);
            a
        };
        let triangles = (0..self.mesh.triangles().len()).into_par_iter().with_min_len(4096);
        let turns = triangles.fold(none, add).reduce(none, both);
        turns.iter().map(|turns| turns.iter().filter(|&&t| t == 0).count() >= 2).collect()
    }
}

/// How the ray from the origin along the positive axis crosses a triangle: 1 from inside, -1 from outside, 0 not at all.
fn crossing(axis: usize, corners: [DVec3; 3]) -> i32 {
    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
    let sides = [0, 1, 2].map(|i| {
        let (p, q) = (corners[i], corners[(i + 1) % 3]);
        p[u] * q[v] - p[v] * q[u]
    });
    let turn = if sides.iter().all(|s| *s > 0.0) {
        1
    } else if sides.iter().all(|s| *s < 0.0) {
        -1
    } else {
        return 0;
    };
    // Where the ray meets the plane, from the shares that the sides are.
    let height = sides[1] * corners[0][axis] + sides[2] * corners[1][axis] + sides[0] * corners[2][axis];
    if height * sides[0] > 0.0 { turn } else { 0 }
}

const NO_PLACE: u32 = u32::MAX;

/// Places joined by triangles: for each its parent, itself at a root, none where it was not yet met.
struct Parts(Vec<u32>);

impl Parts {
    fn root(&mut self, mut place: u32) -> u32 {
        loop {
            let parent = self.0[place as usize];
            if parent == NO_PLACE || parent == place {
                self.0[place as usize] = place;
                return place;
            }
            let above = self.0[parent as usize];
            self.0[place as usize] = above;
            place = above;
        }
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// The triangles near the probes, by cells.
struct Lookup<'a> {
    faces: &'a [Face],
    size: UVec3,
    /// Cells and the faces in them, in order.
    in_cells: Vec<[u32; 2]>,
    /// Faces with too many cells to be put in each.
    large: Vec<u32>,
    /// How far around its line a probe looks, in voxels.
    margin: f64,
}

impl<'a> Lookup<'a> {
    fn new(search: &Search, probes: &[&Face], faces: &'a [Face]) -> Self {
        let size = cells(search.solid);
        // A triangle of a sample stands for those up to a voxel around it.
        let margin = if search.step > 1 { 1.0 } else { 0.0 };
        let mut lookup = Self { faces, size, in_cells: Vec::new(), large: Vec::new(), margin };
        let mut wanted = BitGrid::new(size);
        for probe in probes {
            let [low, high] = lookup.reach(probe);
            visit(low, high, |c| wanted.set(c));
        }
        let found: Vec<(Vec<[u32; 2]>, Vec<u32>)> = faces
            .par_chunks(4096)
            .enumerate()
            .map(|(chunk, faces)| {
                let (mut in_cells, mut large) = (Vec::new(), Vec::new());
                for (n, face) in faces.iter().enumerate() {
                    let n = (chunk * 4096 + n) as u32;
                    let (low, high) = (cell(face.low), cell(face.high));
                    if (high - low + UVec3::ONE).element_product() > MANY_CELLS {
                        large.push(n);
                    } else {
                        visit(low, high, |c| {
                            if wanted.get(c) {
                                in_cells.push([lookup.number(c), n]);
                            }
                        });
                    }
                }
                (in_cells, large)
            })
            .collect();
        for (in_cells, large) in found {
            lookup.in_cells.extend(in_cells);
            lookup.large.extend(large);
        }
        lookup.in_cells.par_sort_unstable();
        lookup
    }

    fn number(&self, cell: UVec3) -> u32 {
        (cell.z * self.size.y + cell.y) * self.size.x + cell.x
    }

    /// Calls `each` with the triangles that a probe may face, some of them twice.
    fn around(&self, probe: &Face, mut each: impl FnMut(&Face)) {
        let [low, high] = self.reach(probe);
        visit(low, high, |c| {
            let number = self.number(c);
            let first = self.in_cells.partition_point(|entry| entry[0] < number);
            let inside = self.in_cells[first..].iter().take_while(|entry| entry[0] == number);
            inside.for_each(|entry| each(&self.faces[entry[1] as usize]));
        });
        self.large.iter().for_each(|&n| each(&self.faces[n as usize]));
    }

    /// First and last cell around the line along which a probe looks.
    fn reach(&self, probe: &Face) -> [UVec3; 2] {
        let (from, to) = (probe.center, probe.center + probe.normal * WIDEST);
        [cell(from.min(to) - self.margin), cell(from.max(to) + self.margin)]
    }
}

/// How many cells there are along each axis; probes look past the last layer of voxels by less than three.
fn cells(solid: &BitGrid) -> UVec3 {
    (solid.dims().as_dvec3() / CELL).ceil().as_uvec3() + UVec3::splat(3)
}

/// The cell that holds a position.
fn cell(p: DVec3) -> UVec3 {
    // Casts of negative numbers saturate at 0.
    (p / CELL).as_uvec3()
}

/// Calls `each` with the cells of the box that two cells span.
fn visit(min: UVec3, max: UVec3, mut each: impl FnMut(UVec3)) {
    for z in min.z..=max.z {
        for y in min.y..=max.y {
            for x in min.x..=max.x {
                each(UVec3::new(x, y, z));
            }
        }
    }
}
