//! Where a surface ends, and how fast winding numbers around it can change away from it.
//!
//! Without crossing the surface a winding number changes only because the surface has a rim: its gradient is the
//! Biot-Savart integral `1/(4 pi) sum over the rim of (r x dl) / |r|^3` (Maxwell 1873, art. 417 to 420, where the solid angle of a
//! shell and the magnetic potential of a current along its rim are one).

use std::f64::consts::PI;

use glam::{DVec3, IVec3};
use rayon::prelude::*;

use super::segment::distance;

/// Edges in a leaf.
const LEAF: usize = 4;
/// A node is taken as a whole where it is further away than this many times its size.
const FAR: f64 = 1.0;

/// The rim of a set of turned triangles, in a tree.
#[derive(Debug, Clone)]
pub struct Rim {
    /// Depth first: the first child of an inner node follows it.
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// An edge that more triangles run along in one direction than in the other.
#[derive(Debug, Clone, Copy)]
struct Edge {
    ends: [DVec3; 2],
    /// By how many.
    times: f64,
}

#[derive(Debug, Clone)]
struct Node {
    min: DVec3,
    max: DVec3,
    /// The length of all edges, each as often as it counts.
    length: f64,
    /// The edges of a leaf; for an inner node the first is the index of the second child and the number is 0.
    first: usize,
    count: usize,
}

impl Rim {
    /// The rim of triangles on a lattice of `step` to the unit of length. Edges along which as many triangles run one way as
    /// the other are none of it.
    pub fn new(triangles: &[[IVec3; 3]], step: f64) -> Self {
        let mut sides: Vec<([[i32; 3]; 2], i32)> = triangles
            .par_iter()
            .flat_map_iter(|t| {
                (0..3).map(|i| {
                    let (a, b) = (t[i].to_array(), t[(i + 1) % 3].to_array());
                    if a < b { ([a, b], 1) } else { ([b, a], -1) }
                })
            })
            .collect();
        sides.par_sort_unstable();
        let mut edges: Vec<Edge> = sides
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|run| {
                let times: i32 = run.iter().map(|s| s.1).sum();
                let ends = run[0].0.map(|p| IVec3::from_array(p).as_dvec3() / step);
                (times != 0 && ends[0] != ends[1]).then_some(Edge { ends, times: f64::from(times.abs()) })
            })
            .collect();
        let mut nodes = Vec::with_capacity(edges.len() / 2 + 1);
        if !edges.is_empty() {
            let count = edges.len();
            build(&mut nodes, &mut edges, 0, count);
        }
        Self { nodes, edges }
    }

    /// No less than the gradient of the winding number anywhere within `reach` of `p`, a unit of length; stops adding up
    /// above `enough`.
    pub fn slope(&self, p: DVec3, reach: f64, enough: f64) -> f64 {
        let mut sum = 0.0;
        let mut waiting = [0usize; 64];
        let mut depth = usize::from(!self.nodes.is_empty());
        while depth > 0 && sum <= enough {
            depth -= 1;
            let index = waiting[depth];
            let node = &self.nodes[index];
            let away = p.distance(p.clamp(node.min, node.max)) - reach;
            if away > FAR * node.min.distance(node.max) {
                sum += node.length / (away * away) / (4.0 * PI);
            } else if node.count > 0 {
                let leaf = &self.edges[node.first..node.first + node.count];
                sum += leaf.iter().map(|e| e.slope(p, reach)).sum::<f64>();
            } else {
                waiting[depth] = node.first;
                waiting[depth + 1] = index + 1;
                depth += 2;
            }
        }
        sum
    }
}

impl Edge {
    /// An edge is no worse than its length at its nearest point, nor than an endless line there.
    fn slope(&self, p: DVec3, reach: f64) -> f64 {
        let [a, b] = self.ends;
        let away = distance(p, a, b) - reach;
        if away <= 0.0 {
            return f64::INFINITY;
        }
        self.times * (a.distance(b) / (away * away)).min(2.0 / away) / (4.0 * PI)
    }
}

/// Adds the node of `edges[first..end]` and those below it.
fn build(nodes: &mut Vec<Node>, edges: &mut [Edge], first: usize, end: usize) {
    let at = nodes.len();
    let own = &edges[first..end];
    let min = own.iter().flat_map(|e| e.ends).fold(DVec3::INFINITY, DVec3::min);
    let max = own.iter().flat_map(|e| e.ends).fold(DVec3::NEG_INFINITY, DVec3::max);
    let length = own.iter().map(|e| e.times * e.ends[0].distance(e.ends[1])).sum();
    nodes.push(Node { min, max, length, first, count: end - first });
    if end - first <= LEAF {
        return;
    }
    let axis = (max - min).max_position();
    let key = |e: &Edge| e.ends[0][axis] + e.ends[1][axis];
    let half = (end - first) / 2;
    edges[first..end].select_nth_unstable_by(half, |s, t| key(s).total_cmp(&key(t)));
    nodes[at].count = 0;
    build(nodes, edges, first, first + half);
    nodes[at].first = nodes.len();
    build(nodes, edges, first + half, end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::winding::WindingTree;

    /// A square plate of two triangles and, beside it, one that a second triangle of the same edge runs against.
    fn plate() -> Vec<[IVec3; 3]> {
        let [a, b, c, d] = [[0, 0], [8, 0], [8, 8], [0, 8]].map(|[x, y]| IVec3::new(x, y, 0));
        vec![[a, b, c], [a, c, d]]
    }

    #[test]
    fn the_rim_of_a_plate_is_its_outline() {
        let rim = Rim::new(&plate(), 4.0);
        assert_eq!(rim.edges.len(), 4);
        assert!((rim.nodes[0].length - 8.0).abs() < 1e-12);
        // Turned against each other the common edge counts twice.
        let mut turned = plate();
        turned[1].swap(1, 2);
        let rim = Rim::new(&turned, 4.0);
        assert_eq!(rim.edges.iter().map(|e| e.times).sum::<f64>(), 6.0);
        let none = Rim::new(&[], 1.0);
        assert_eq!(none.slope(DVec3::ZERO, 1.0, 1.0), 0.0);
    }

    #[test]
    fn no_winding_number_changes_faster() {
        let rim = Rim::new(&plate(), 1.0);
        let tree = WindingTree::new(plate().iter().map(|t| t.map(|p| p.as_dvec3())).collect());
        let mut tightest = 0.0f64;
        for i in 0..500 {
            let f = f64::from(i);
            let at = |k: f64| (f * k).fract();
            // Above the plate, so that no way leads through it.
            let p = DVec3::new(at(0.7548) * 12.0 - 2.0, at(0.5698) * 12.0 - 2.0, 1.5 + at(0.4302) * 6.0);
            let step = DVec3::new(at(0.3137) - 0.5, at(0.5719) - 0.5, at(0.8341) - 0.5).normalize();
            let bound = rim.slope(p, 1.0, f64::INFINITY);
            let change = (tree.at(p + step) - tree.at(p)).abs();
            assert!(change <= bound + 1e-12, "{p}: {change} above {bound}");
            tightest = tightest.max(change / bound);
        }
        // Control: a bound ten times smaller is broken.
        assert!(tightest > 0.1, "{tightest}");
    }
}
