//! How the triangles of a mesh hang together: rims, edges of more than two faces, faces without area.

use std::cmp::Ordering;

use glam::DVec3;
use serde::Serialize;

use crate::model::{Mesh, Weld};

/// A face counts as degenerate where the square of twice its area is below this share of the fourth power of its longest
/// edge: its height is then below a millionth of its length.
const FLAT: f64 = 1e-12;

/// Counts of what keeps a surface from being closed and smooth. Coincident vertices count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Topology {
    /// Edges between two places, each counted once.
    pub edges: usize,
    /// Edges of one face only.
    pub boundary_edges: usize,
    /// Connected rims: a rim that touches itself counts as one.
    pub holes: usize,
    /// Edges of more than two faces.
    pub non_manifold_edges: usize,
    /// Edges of two faces that run along it the same way: one of them is turned over.
    pub flipped_edges: usize,
    /// Faces without area. They take part in none of the other counts.
    pub degenerate_faces: usize,
}

impl Topology {
    /// Whether every edge has exactly two faces, so that an inside is parted from an outside.
    pub fn is_watertight(&self) -> bool {
        self.edges > 0 && self.boundary_edges == 0 && self.non_manifold_edges == 0
    }
}

/// One way along an edge: the lower place, the higher, and whether the face runs upwards.
type HalfEdge = (u32, u32, bool);

/// Counts edges, holes and degenerate faces, in time of a sort of the edges.
pub fn topology(mesh: &Mesh, weld: &Weld) -> Topology {
    let mut result = Topology::default();
    let mut halves: Vec<HalfEdge> = Vec::with_capacity(3 * mesh.triangles().len());
    for &triangle in mesh.triangles() {
        let places = triangle.map(|v| weld.place_of[v as usize]);
        if is_degenerate(mesh.corners(triangle)) {
            result.degenerate_faces += 1;
            continue;
        }
        for (a, b) in [(0, 1), (1, 2), (2, 0)].map(|(i, j)| (places[i], places[j])) {
            match a.cmp(&b) {
                Ordering::Less => halves.push((a, b, true)),
                Ordering::Greater => halves.push((b, a, false)),
                Ordering::Equal => {}
            }
        }
    }
    halves.sort_unstable();
    let mut rims = Vec::new();
    for edge in halves.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
        result.edges += 1;
        match *edge {
            [(a, b, _)] => rims.push((a, b)),
            [(.., one), (.., two)] if one == two => result.flipped_edges += 1,
            [_, _] => {}
            _ => result.non_manifold_edges += 1,
        }
    }
    result.boundary_edges = rims.len();
    result.holes = connected(&rims);
    result
}

/// Whether a triangle has no area to speak of.
pub fn is_degenerate(corners: [DVec3; 3]) -> bool {
    let [a, b, c] = corners;
    let longest = (b - a).length_squared().max((c - b).length_squared()).max((a - c).length_squared());
    (b - a).cross(c - a).length_squared() <= FLAT * longest * longest
}

/// Number of connected parts of a graph that is given by its edges.
fn connected(edges: &[(u32, u32)]) -> usize {
    let mut places: Vec<u32> = edges.iter().flat_map(|&(a, b)| [a, b]).collect();
    places.sort_unstable();
    places.dedup();
    let index = |place: u32| places.partition_point(|&p| p < place);
    let mut parent: Vec<usize> = (0..places.len()).collect();
    let mut parts = places.len();
    for &(a, b) in edges {
        let (a, b) = (root(&mut parent, index(a)), root(&mut parent, index(b)));
        if a != b {
            parent[a.max(b)] = a.min(b);
            parts -= 1;
        }
    }
    parts
}

fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cube of 12 triangles, corners numbered by their bits.
    const CUBE: [[u32; 3]; 12] = [
        [0, 2, 3],
        [0, 3, 1],
        [4, 5, 7],
        [4, 7, 6],
        [0, 1, 5],
        [0, 5, 4],
        [2, 6, 7],
        [2, 7, 3],
        [0, 4, 6],
        [0, 6, 2],
        [1, 3, 7],
        [1, 7, 5],
    ];

    fn cube(triangles: &[[u32; 3]]) -> Mesh {
        let corners = (0..8u32).map(|i| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2)));
        Mesh::new(corners.collect(), triangles.to_vec()).unwrap()
    }

    fn of(triangles: &[[u32; 3]]) -> Topology {
        let mesh = cube(triangles);
        topology(&mesh, &mesh.weld())
    }

    #[test]
    fn a_cube_is_closed_with_split_vertices_too() {
        let closed = of(&CUBE);
        assert_eq!(closed, Topology { edges: 18, ..Topology::default() });
        assert!(closed.is_watertight());
        let points: Vec<DVec3> = cube(&CUBE).triangles().iter().flat_map(|&t| cube(&CUBE).corners(t)).collect();
        let soup = Mesh::new(points, (0..12).map(|t| [3 * t, 3 * t + 1, 3 * t + 2]).collect()).unwrap();
        assert_eq!(topology(&soup, &soup.weld()), closed);
    }

    #[test]
    fn holes_fins_and_turned_faces_are_counted() {
        // Two opposite sides taken away: two rims of four edges.
        let open = of(&CUBE[4..]);
        assert_eq!((open.boundary_edges, open.holes), (8, 2));
        assert!(!open.is_watertight());
        // A third face on an edge, whose other two edges are rims of their own.
        let mut fin = CUBE.to_vec();
        fin.push([0, 1, 6]);
        let fin = of(&fin);
        assert_eq!((fin.non_manifold_edges, fin.boundary_edges, fin.holes), (2, 1, 1));
        let mut turned = CUBE;
        turned[0].swap(0, 1);
        assert_eq!(of(&turned).flipped_edges, 3);
    }

    #[test]
    fn faces_without_area_are_counted_and_left_out() {
        let mut faces = CUBE.to_vec();
        faces.extend([[0, 0, 1], [3, 3, 3]]);
        assert_eq!(of(&faces), Topology { edges: 18, degenerate_faces: 2, ..Topology::default() });
        let thin = [DVec3::ZERO, DVec3::X, DVec3::new(0.5, 1e-7, 0.0)];
        assert!(is_degenerate(thin) && is_degenerate(thin.map(|p| p * 1e-9)));
        assert!(!is_degenerate([DVec3::ZERO, DVec3::X, DVec3::new(0.5, 1e-5, 0.0)]));
    }
}
