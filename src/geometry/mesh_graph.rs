//! Which places of a welded mesh are joined by edges, and the cotangent Laplacian on those edges (Pinkall and Polthier,
//! "Computing Discrete Minimal Surfaces and Their Conjugates", 1993) with mixed Voronoi areas (Meyer, Desbrun, Schroeder and Barr,
//! "Discrete Differential-Geometry Operators for Triangulated 2-Manifolds", 2003). On flat quads neither depends on the diagonal.

use glam::DVec3;
use rayon::prelude::*;

use crate::model::{Mesh, Weld};

/// Range of an edge's cotangent weight. Negative ones (obtuse corners) would break the maximum principle, those of slivers
/// would drown all others, and 0 would tear the surface apart.
const COTANGENTS: (f64, f64) = (1e-6, 1e2);
/// Least lumped area of a place, as a share of the mean: places with nothing but slivers around them have almost none.
const LEAST_AREA: f64 = 1e-3;
/// Places a task.
const CHUNK: usize = 4096;

/// The neighbours of each place of a welded mesh.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshGraph {
    starts: Vec<usize>,
    neighbors: Vec<u32>,
}

impl MeshGraph {
    /// The graph of all edges of all triangles.
    pub fn new(mesh: &Mesh, weld: &Weld) -> Self {
        let mut edges: Vec<(u32, u32)> = mesh
            .triangles()
            .par_iter()
            .flat_map_iter(|t| {
                let [a, b, c] = t.map(|v| weld.place_of[v as usize]);
                [(a, b), (b, a), (b, c), (c, b), (c, a), (a, c)].into_iter().filter(|(i, j)| i != j)
            })
            .collect();
        edges.par_sort_unstable();
        edges.dedup();
        let starts = starts(edges.iter().map(|e| e.0), weld.places());
        Self { starts, neighbors: edges.into_iter().map(|e| e.1).collect() }
    }

    /// The neighbours of a place, ascending.
    pub fn of(&self, place: u32) -> &[u32] {
        &self.neighbors[self.starts[place as usize]..self.starts[place as usize + 1]]
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no places.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The cotangent Laplacian of a welded mesh: a positive weight for each edge, and an area for each place.
#[derive(Debug, Clone, PartialEq)]
pub struct Laplacian {
    starts: Vec<usize>,
    edges: Vec<(u32, f64)>,
    /// The part of the surface that is nearest to each place, in squared units of length.
    pub area: Vec<f64>,
}

impl Laplacian {
    /// Edge weights are half the sum of the cotangents opposite to the edge, kept between 1e-6 and 100.
    pub fn new(mesh: &Mesh, weld: &Weld) -> Self {
        Self::weighted(mesh, weld, |_, halves| {
            let weight: f64 = halves.iter().map(|h| h.1).sum();
            weight.clamp(COTANGENTS.0, COTANGENTS.1)
        })
    }

    /// Edge weights are the inverse of the edge's squared length, or of that of the shortest that counts.
    pub fn by_length(mesh: &Mesh, weld: &Weld, shortest: f64) -> Self {
        let at = |place: u32| mesh.positions()[weld.first[place as usize] as usize];
        Self::weighted(mesh, weld, |place, halves| {
            let squared = at(place).distance_squared(at(halves[0].0));
            1.0 / squared.max(shortest * shortest)
        })
    }

    /// `weight(place, halves)` is the weight of an edge from a place, given for each triangle there the neighbour and half the
    /// cotangent opposite; it must be the same from both ends.
    fn weighted(mesh: &Mesh, weld: &Weld, weight: impl Fn(u32, &[(u32, f64)]) -> f64 + Sync) -> Self {
        let corners = Corners::new(mesh, weld);
        let chunks: Vec<Chunk> = (0..weld.places().div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let (mut ends, mut edges, mut area) = (Vec::new(), Vec::new(), Vec::new());
                let mut halves = Vec::new();
                for place in chunk * CHUNK..((chunk + 1) * CHUNK).min(weld.places()) {
                    area.push(corners.around(mesh, weld, place, &mut halves));
                    for edge in halves.chunk_by(|a, b| a.0 == b.0) {
                        edges.push((edge[0].0, weight(place as u32, edge)));
                    }
                    ends.push(edges.len() as u32);
                }
                (ends, edges, area)
            })
            .collect();
        let mut starts = Vec::with_capacity(weld.places() + 1);
        starts.push(0);
        for (ends, ..) in &chunks {
            let before = starts[starts.len() - 1];
            starts.extend(ends.iter().map(|&end| before + end as usize));
        }
        let edges = chunks.iter().flat_map(|c| c.1.iter().copied()).collect();
        let mut area: Vec<f64> = chunks.into_iter().flat_map(|c| c.2).collect();
        let mean = area.iter().sum::<f64>() / area.len() as f64;
        let least = if mean > 0.0 { LEAST_AREA * mean } else { 1.0 };
        area.iter_mut().for_each(|a| *a = a.max(least));
        Self { starts, edges, area }
    }

    /// The neighbours of a place with the weights of the edges to them, ascending.
    pub fn of(&self, place: u32) -> &[(u32, f64)] {
        &self.edges[self.starts[place as usize]..self.starts[place as usize + 1]]
    }
}

/// Of some places: where the edges of each end, the edges, and the areas.
type Chunk = (Vec<u32>, Vec<(u32, f64)>, Vec<f64>);

/// The corners of triangles at each place, by triangle.
struct Corners {
    starts: Vec<usize>,
    /// Three times the triangle, plus the corner.
    corners: Vec<u32>,
}

impl Corners {
    fn new(mesh: &Mesh, weld: &Weld) -> Self {
        let place = |&vertex: &u32| weld.place_of[vertex as usize];
        let starts = starts(mesh.triangles().iter().flatten().map(place), weld.places());
        let mut next = starts.clone();
        let mut corners = vec![0; 3 * mesh.triangles().len()];
        for (corner, vertex) in mesh.triangles().iter().flatten().enumerate() {
            let at = &mut next[place(vertex) as usize];
            corners[*at] = corner as u32;
            *at += 1;
        }
        Self { starts, corners }
    }

    /// Puts the half weights of the edges at a place into `halves`, by neighbour, those of one edge in the order of the
    /// triangles: so their sum is the same at both ends. Returns the area of the place.
    fn around(&self, mesh: &Mesh, weld: &Weld, place: usize, halves: &mut Vec<(u32, f64)>) -> f64 {
        halves.clear();
        let mut area = 0.0;
        for &corner in &self.corners[self.starts[place]..self.starts[place + 1]] {
            let (triangle, k) = (mesh.triangles()[corner as usize / 3], corner as usize % 3);
            let p = mesh.corners(triangle);
            let twice = (p[1] - p[0]).cross(p[2] - p[0]).length();
            let cotangents = [0, 1, 2].map(|k| {
                let cotangent = (p[(k + 1) % 3] - p[k]).dot(p[(k + 2) % 3] - p[k]) / twice;
                if cotangent.is_finite() { cotangent } else { 0.0 }
            });
            area += corner_area(p, k, cotangents, 0.5 * twice);
            for (to, opposite) in [((k + 1) % 3, (k + 2) % 3), ((k + 2) % 3, (k + 1) % 3)] {
                let neighbor = weld.place_of[triangle[to] as usize];
                if neighbor as usize != place {
                    halves.push((neighbor, 0.5 * cotangents[opposite]));
                }
            }
        }
        halves.sort_by_key(|h| h.0);
        area
    }
}

/// The part of a triangle that corner `k` is given: what is nearest to it, or, where a corner is obtuse, a half to that and
/// a quarter to the others.
fn corner_area(p: [DVec3; 3], k: usize, cotangents: [f64; 3], area: f64) -> f64 {
    match cotangents.iter().position(|&c| c < 0.0) {
        Some(obtuse) if obtuse == k => 0.5 * area,
        Some(_) => 0.25 * area,
        None => {
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            (p[i].distance_squared(p[k]) * cotangents[j] + p[j].distance_squared(p[k]) * cotangents[i]) / 8.0
        }
    }
}

/// Unit normals of the places, each the mean of its faces' normals by their angles there (Thuermer and Wuethrich 1998);
/// 0 where no face has an area.
pub fn place_normals(mesh: &Mesh, weld: &Weld) -> Vec<DVec3> {
    let mut normals = vec![DVec3::ZERO; weld.places()];
    for &triangle in mesh.triangles() {
        let p = mesh.corners(triangle);
        let normal = (p[1] - p[0]).cross(p[2] - p[0]).normalize_or_zero();
        for k in 0..3 {
            let (a, b) = (p[(k + 1) % 3] - p[k], p[(k + 2) % 3] - p[k]);
            let angle = a.cross(b).length().atan2(a.dot(b));
            normals[weld.place_of[triangle[k] as usize] as usize] += normal * angle;
        }
    }
    normals.iter_mut().for_each(|n| *n = n.normalize_or_zero());
    normals
}

/// Where each of `places` rows begins, given the ascending row of each entry.
fn starts(rows: impl IntoIterator<Item = u32>, places: usize) -> Vec<usize> {
    let mut starts = vec![0; places + 1];
    rows.into_iter().for_each(|row| starts[row as usize + 1] += 1);
    for row in 0..places {
        starts[row + 1] += starts[row];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit square of two right triangles, its diagonal split in two copies of each end.
    fn square() -> (Mesh, Weld) {
        let points = [[0., 0.], [1., 0.], [1., 1.], [0., 0.], [1., 1.], [0., 1.]];
        let points = points.map(|[x, y]| DVec3::new(x, y, 0.0)).to_vec();
        let mesh = Mesh::new(points, vec![[0, 1, 2], [3, 4, 5]]).unwrap();
        let weld = mesh.weld();
        (mesh, weld)
    }

    #[test]
    fn edges_go_over_welded_places() {
        let (mesh, weld) = square();
        let graph = MeshGraph::new(&mesh, &weld);
        assert_eq!((graph.len(), graph.of(0), graph.of(1)), (4, &[1, 2, 3][..], &[0, 2][..]));
    }

    #[test]
    fn cotangents_areas_and_normals_of_a_square() {
        let (mesh, weld) = square();
        let laplacian = Laplacian::new(&mesh, &weld);
        // Opposite to the diagonal are right angles (cotangent 0, lifted), opposite to a side one of 45 degrees.
        let expected = [(1, 0.5), (2, COTANGENTS.0), (3, 0.5)];
        for (&(place, weight), (at, value)) in laplacian.of(0).iter().zip(expected) {
            assert!(place == at && (weight - value).abs() < 1e-15, "{place} {weight}");
        }
        // Each corner has a quarter, whichever way the diagonal runs.
        assert!(laplacian.area.iter().all(|a| (a - 0.25).abs() < 1e-15), "{:?}", laplacian.area);
        assert!(place_normals(&mesh, &weld).iter().all(|n| n.distance(DVec3::Z) < 1e-15));
    }
}
