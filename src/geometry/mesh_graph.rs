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
        let mut halves: Vec<(u32, u32, f64)> = Vec::with_capacity(6 * mesh.triangles().len());
        let mut area = vec![0.0; weld.places()];
        for &triangle in mesh.triangles() {
            let places = triangle.map(|v| weld.place_of[v as usize]);
            let p = mesh.corners(triangle);
            let twice = (p[1] - p[0]).cross(p[2] - p[0]).length();
            let cotangents = [0, 1, 2].map(|k| {
                let cotangent = (p[(k + 1) % 3] - p[k]).dot(p[(k + 2) % 3] - p[k]) / twice;
                if cotangent.is_finite() { cotangent } else { 0.0 }
            });
            for k in 0..3 {
                area[places[k] as usize] += corner_area(p, k, cotangents, 0.5 * twice);
                let (i, j) = (places[(k + 1) % 3], places[(k + 2) % 3]);
                if i != j {
                    halves.extend([(i, j, 0.5 * cotangents[k]), (j, i, 0.5 * cotangents[k])]);
                }
            }
        }
        // Stable: the halves of an edge are added up in the order of the triangles.
        halves.par_sort_by_key(|h| (h.0, h.1));
        let mut edges = Vec::with_capacity(halves.len() / 2);
        let mut from = Vec::with_capacity(halves.len() / 2);
        for edge in halves.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let weight: f64 = edge.iter().map(|h| h.2).sum();
            from.push(edge[0].0);
            edges.push((edge[0].1, weight.clamp(COTANGENTS.0, COTANGENTS.1)));
        }
        let mean = area.iter().sum::<f64>() / area.len() as f64;
        let least = if mean > 0.0 { LEAST_AREA * mean } else { 1.0 };
        area.iter_mut().for_each(|a| *a = a.max(least));
        Self { starts: starts(from, weld.places()), edges, area }
    }

    /// The neighbours of a place with the weights of the edges to them, ascending.
    pub fn of(&self, place: u32) -> &[(u32, f64)] {
        &self.edges[self.starts[place as usize]..self.starts[place as usize + 1]]
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
