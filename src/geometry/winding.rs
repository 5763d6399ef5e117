//! Generalized winding numbers of triangle sets that may have holes (Jacobson et al. 2013), by a tree with a far-field
//! expansion (Barill et al., "Fast winding numbers for soups and clouds", 2018).

use std::f64::consts::PI;

use glam::{DMat3, DVec3};

/// A node is taken as a whole from further away than this many times its radius.
const FAR: f64 = 2.0;
/// Triangles in a leaf.
const LEAF: usize = 8;
/// Below so many triangles a subtree is built by one thread.
const PARALLEL: usize = 8192;

/// Triangles in a tree, to be asked for winding numbers.
#[derive(Debug, Clone)]
pub struct WindingTree {
    /// Depth first: the first child of an inner node follows it.
    nodes: Vec<Node>,
    triangles: Vec<[DVec3; 3]>,
}

#[derive(Debug, Clone)]
struct Node {
    /// Area-weighted mean of the triangles' centres: there the expansion's first term is smallest.
    center: DVec3,
    /// Distance of the furthest corner from the centre.
    radius: f64,
    /// Sum of the area vectors n, and of n d^T with d from `center` to a triangle's centre.
    normal: DVec3,
    moment: DMat3,
    /// Of the second moments n_i d_j d_k over the triangles: the sum of 2 (n . d) d + |d|^2 n, and for each i the matrix of j, k.
    second: DVec3,
    cubic: [DMat3; 3],
    /// The triangles of a leaf; for an inner node the first is the index of the second child and the number is 0.
    first: usize,
    count: usize,
}

impl WindingTree {
    /// A tree of the triangles, which are outward where they turn counter-clockwise seen from outside.
    pub fn new(mut triangles: Vec<[DVec3; 3]>) -> Self {
        let mut nodes = Vec::new();
        if !triangles.is_empty() {
            nodes = vec![expand(&triangles[..1], 0); nodes_for(triangles.len()).0];
            build(&mut nodes, 0, &mut triangles, 0);
        }
        Self { nodes, triangles }
    }

    /// The winding number of the triangles around a point: 1 inside and 0 outside of a closed surface, in between
    /// near holes. Off by less than about 0.01; at a point on the surface any value between those of its two sides.
    pub fn at(&self, p: DVec3) -> f64 {
        let mut sum = 0.0;
        // Halving: no deeper than 32 levels, and one node waits a level.
        let mut waiting = [0usize; 64];
        let mut depth = usize::from(!self.nodes.is_empty());
        while depth > 0 {
            depth -= 1;
            let index = waiting[depth];
            let node = &self.nodes[index];
            let d = node.center - p;
            let r2 = d.length_squared();
            if r2 > (FAR * node.radius) * (FAR * node.radius) {
                sum += node.solid_angle_seen(d, r2);
            } else if node.count > 0 {
                let leaf = &self.triangles[node.first..node.first + node.count];
                sum += leaf.iter().map(|t| solid_angle(t.map(|c| c - p))).sum::<f64>();
            } else {
                waiting[depth] = node.first;
                waiting[depth + 1] = index + 1;
                depth += 2;
            }
        }
        sum / (4.0 * PI)
    }
}

impl Node {
    /// Solid angle of the node's triangles, `d` from the point to its centre: a dipole and its first two derivatives.
    fn solid_angle_seen(&self, d: DVec3, r2: f64) -> f64 {
        let r = r2.sqrt();
        let per_r3 = 1.0 / (r2 * r);
        let trace = self.moment.x_axis.x + self.moment.y_axis.y + self.moment.z_axis.z;
        let first = self.normal.dot(d) + trace - 3.0 * d.dot(self.moment * d) / r2;
        let [x, y, z] = self.cubic;
        let cubic = d.dot((x * d.x + y * d.y + z * d.z) * d);
        per_r3 * (first + (7.5 * cubic / r2 - 1.5 * self.second.dot(d)) / r2)
    }
}

/// Signed solid angle of a triangle seen from the origin (van Oosterom and Strackee 1983).
fn solid_angle([a, b, c]: [DVec3; 3]) -> f64 {
    let (la, lb, lc) = (a.length(), b.length(), c.length());
    let det = a.dot(b.cross(c));
    let denominator = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
    // Seen from a corner or along its plane a triangle has no angle.
    if det == 0.0 { 0.0 } else { 2.0 * det.atan2(denominator) }
}

/// How many nodes so many triangles have, and one more than so many: halves differ by one at most.
fn nodes_for(triangles: usize) -> (usize, usize) {
    if triangles <= LEAF {
        return (1, if triangles < LEAF { 1 } else { 3 });
    }
    let (half, more) = nodes_for(triangles / 2);
    let mixed = 1 + half + more;
    if triangles.is_multiple_of(2) { (1 + 2 * half, mixed) } else { (mixed, 1 + 2 * more) }
}

/// Builds the subtree of `triangles` into `nodes`, whose first is node `node` of the tree; the first triangle is number
/// `first` of all.
fn build(nodes: &mut [Node], node: usize, triangles: &mut [[DVec3; 3]], first: usize) {
    nodes[0] = expand(triangles, first);
    if triangles.len() <= LEAF {
        return;
    }
    let mut min = DVec3::INFINITY;
    let mut max = DVec3::NEG_INFINITY;
    for t in triangles.iter() {
        let c = t[0] + t[1] + t[2];
        (min, max) = (min.min(c), max.max(c));
    }
    let axis = (max - min).max_position();
    let key = |t: &[DVec3; 3]| t[0][axis] + t[1][axis] + t[2][axis];
    let half = triangles.len() / 2;
    triangles.select_nth_unstable_by(half, |s, t| key(s).total_cmp(&key(t)));
    let parallel = triangles.len() >= PARALLEL;
    let (near, far) = triangles.split_at_mut(half);
    let (own, below) = nodes.split_at_mut(1);
    let (near_nodes, far_nodes) = below.split_at_mut(nodes_for(half).0);
    let second = node + 1 + near_nodes.len();
    (own[0].first, own[0].count) = (second, 0);
    let mut build_near = || build(near_nodes, node + 1, near, first);
    let mut build_far = || build(far_nodes, second, far, first + half);
    if parallel {
        rayon::join(build_near, build_far);
    } else {
        build_near();
        build_far();
    }
}

fn expand(triangles: &[[DVec3; 3]], first: usize) -> Node {
    let mut normal = DVec3::ZERO;
    let mut weighted = DVec3::ZERO;
    let mut plain = DVec3::ZERO;
    let mut area = 0.0;
    for &t in triangles {
        let (n, c) = area_vector(t);
        let size = n.length();
        normal += n;
        weighted += c * size;
        plain += c;
        area += size;
    }
    let center = if area > 0.0 { weighted / area } else { plain / triangles.len() as f64 };
    let mut moment = DMat3::ZERO;
    let mut radius2 = 0.0f64;
    let mut second = DVec3::ZERO;
    let mut cubic = [DMat3::ZERO; 3];
    for &t in triangles {
        let (n, c) = area_vector(t);
        let d = c - center;
        moment += DMat3::from_cols(n * d.x, n * d.y, n * d.z);
        // The mean over the middles of the edges is exact for squares.
        for (a, b) in [(0, 1), (1, 2), (2, 0)] {
            let (d, n) = (0.5 * (t[a] + t[b]) - center, n / 3.0);
            second += 2.0 * n.dot(d) * d + d.length_squared() * n;
            let square = DMat3::from_cols(d * d.x, d * d.y, d * d.z);
            for (matrix, n) in cubic.iter_mut().zip(n.to_array()) {
                *matrix += square * n;
            }
        }
        radius2 = t.iter().fold(radius2, |r, &corner| r.max((corner - center).length_squared()));
    }
    Node { center, radius: radius2.sqrt(), normal, moment, second, cubic, first, count: triangles.len() }
}

/// Area vector and centre.
fn area_vector([a, b, c]: [DVec3; 3]) -> (DVec3, DVec3) {
    (0.5 * (b - a).cross(c - a), (a + b + c) / 3.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sphere of radius 1 from an octahedron, each face in n^2 triangles.
    fn sphere(n: i32) -> Vec<[DVec3; 3]> {
        let mut out = Vec::new();
        for octant in 0..8 {
            let sign = DVec3::from_array([1, 2, 4].map(|bit| if octant & bit == 0 { 1.0 } else { -1.0 }));
            let point =
                |i: i32, j: i32| (DVec3::new(f64::from(i), f64::from(j), f64::from(n - i - j)) * sign).normalize();
            for i in 0..n {
                for j in 0..n - i {
                    out.push([point(i, j), point(i + 1, j), point(i, j + 1)]);
                    if i + j + 1 < n {
                        out.push([point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)]);
                    }
                }
            }
            if sign.x * sign.y * sign.z < 0.0 {
                let from = out.len() - (n * n) as usize;
                out[from..].iter_mut().for_each(|t| t.swap(1, 2));
            }
        }
        out
    }

    fn points() -> impl Iterator<Item = DVec3> {
        (0..400).map(|i| {
            let f = f64::from(i);
            DVec3::new((f * 0.7548).fract() - 0.5, (f * 0.5698).fract() - 0.5, (f * 0.4302).fract() - 0.5) * 3.0
        })
    }

    #[test]
    fn every_node_is_counted() {
        for n in 1..300 {
            let mut sizes = vec![n];
            let mut count = 0;
            while let Some(size) = sizes.pop() {
                count += 1;
                if size > LEAF {
                    sizes.extend([size / 2, size - size / 2]);
                }
            }
            assert_eq!(nodes_for(n).0, count, "{n}");
        }
    }

    #[test]
    fn inside_is_one_and_outside_zero() {
        let tree = WindingTree::new(sphere(20));
        for p in points().filter(|p| (p.length() - 1.0).abs() > 0.02) {
            let expected = if p.length() < 1.0 { 1.0 } else { 0.0 };
            assert!((tree.at(p) - expected).abs() < 0.01, "{p}: {}", tree.at(p));
        }
        assert_eq!(WindingTree::new(Vec::new()).at(DVec3::ONE), 0.0);
    }

    #[test]
    fn with_a_hole_the_tree_agrees_with_the_plain_sum() {
        let mut triangles = sphere(12);
        triangles.retain(|t| (t[0] + t[1] + t[2]).x < 2.2);
        let plain = |p: DVec3| triangles.iter().map(|t| solid_angle(t.map(|c| c - p))).sum::<f64>() / (4.0 * PI);
        let tree = WindingTree::new(triangles.clone());
        let mut far_from_whole = 0;
        for p in points() {
            assert!((tree.at(p) - plain(p)).abs() < 0.01, "{p}: {} for {}", tree.at(p), plain(p));
            far_from_whole += usize::from((plain(p) - plain(p).round()).abs() > 0.02);
        }
        assert!(far_from_whole > 100, "the hole must show, or this test tests nothing");
        // Negative control: the tree of one face more is not the same.
        let whole = WindingTree::new(sphere(12));
        assert!(points().any(|p| (whole.at(p) - plain(p)).abs() > 0.02));
    }
}
