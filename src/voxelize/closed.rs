//! Whether a surface is closed: every edge, over welded places, has an even number of faces at it.

use glam::DVec3;
use rayon::prelude::*;

use crate::model::{Mesh, Weld};

/// What was found out about a surface.
#[derive(Debug, Clone, PartialEq)]
pub struct Closedness {
    /// Triangles without area, see [`is_degenerate`].
    pub degenerate: usize,
    /// Edges with an odd number of faces, as pairs of places; none where the surface is closed.
    pub open_edges: Vec<[u32; 2]>,
}

/// A triangle is degenerate where twice its area is at most this share of its longest edge squared (a needle that f32
/// can not tell from a segment) ...
const FLAT: f64 = 1e-6;
/// ... or this share of the mesh' diagonal squared.
const SMALL: f64 = 1e-12;

/// Whether a triangle has no area to speak of: repeated or coincident corners, corners on a line, or far too small.
/// `diagonal` is that of the mesh' box.
pub fn is_degenerate([a, b, c]: [DVec3; 3], diagonal: f64) -> bool {
    let twice_area = (b - a).cross(c - a).length();
    let longest = (b - a).length_squared().max((c - b).length_squared()).max((a - c).length_squared());
    twice_area <= FLAT * longest || twice_area <= SMALL * diagonal * diagonal
}

/// Counts degenerate triangles and finds the open edges.
///
/// Triangles whose corners share a place have no part in this. Those that are degenerate otherwise may close a surface
/// (filling a crack between collinear corners) or lie on a closed one; it counts as closed where either reading says so.
pub fn examine(mesh: &Mesh, weld: &Weld) -> Closedness {
    // In units of the box, so that squares neither overflow nor vanish.
    let scale = 1.0 / mesh.bounds().diagonal().max(f64::MIN_POSITIVE);
    let flat = |&t: &[u32; 3]| is_degenerate(mesh.corners(t).map(|p| p * scale), 1.0);
    let degenerate = mesh.triangles().par_iter().with_min_len(4096).filter(|t| flat(t)).count();
    let placed = || mesh.triangles().iter().map(|t| t.map(|v| weld.place_of[v as usize]));
    let mut open_edges = odd_edges(placed().filter(distinct), weld.places());
    if degenerate > 0 && !open_edges.is_empty() {
        let with_area = placed().zip(mesh.triangles()).filter(|(p, t)| distinct(p) && !flat(t)).map(|(p, _)| p);
        let without = odd_edges(with_area, weld.places());
        if without.is_empty() {
            open_edges = without;
        }
    }
    Closedness { degenerate, open_edges }
}

/// Whether no two corners share a place.
pub fn distinct([a, b, c]: &[u32; 3]) -> bool {
    a != b && b != c && c != a
}

/// The edges, as pairs (low, high) of places in ascending order, with an odd number of triangles.
fn odd_edges(triangles: impl Iterator<Item = [u32; 3]> + Clone, places: usize) -> Vec<[u32; 2]> {
    let edges = |[a, b, c]: [u32; 3]| [[a, b], [b, c], [c, a]].map(|[p, q]| if p < q { [p, q] } else { [q, p] });
    // Counting sort by the lower place; a place has few edges.
    let mut ends = vec![0u32; places + 1];
    for t in triangles.clone() {
        edges(t).iter().for_each(|e| ends[e[0] as usize + 1] += 1);
    }
    for p in 0..places {
        ends[p + 1] += ends[p];
    }
    let mut highs = vec![0u32; ends[places] as usize];
    // Filled from the start of each list, after which `ends[p]` is the end of list p.
    for t in triangles {
        for e in edges(t) {
            let at = &mut ends[e[0] as usize];
            highs[*at as usize] = e[1];
            *at += 1;
        }
    }
    let mut odd = Vec::new();
    let mut start = 0;
    for (low, &end) in ends[..places].iter().enumerate() {
        let list = &mut highs[start..end as usize];
        start = end as usize;
        list.sort_unstable();
        for run in list.chunk_by(|a, b| a == b).filter(|run| run.len() % 2 == 1) {
            odd.push([low as u32, run[0]]);
        }
    }
    odd
}

/// Groups open edges that hang together: for each edge the number of its group, and how many groups there are.
pub fn holes(open_edges: &[[u32; 2]]) -> (Vec<usize>, usize) {
    let mut places: Vec<u32> = open_edges.iter().flatten().copied().collect();
    places.sort_unstable();
    places.dedup();
    let index = |p: u32| places.binary_search(&p).unwrap_or_default();
    let mut neighbors = vec![Vec::new(); places.len()];
    for &[a, b] in open_edges {
        neighbors[index(a)].push(index(b));
        neighbors[index(b)].push(index(a));
    }
    let mut group = vec![usize::MAX; places.len()];
    let mut groups = 0;
    for start in 0..places.len() {
        if group[start] != usize::MAX {
            continue;
        }
        group[start] = groups;
        let mut todo = vec![start];
        while let Some(p) = todo.pop() {
            for &q in &neighbors[p] {
                if group[q] == usize::MAX {
                    group[q] = groups;
                    todo.push(q);
                }
            }
        }
        groups += 1;
    }
    (open_edges.iter().map(|e| group[index(e[0])]).collect(), groups)
}
