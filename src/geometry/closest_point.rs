//! The closest point of a triangle mesh, with its barycentric coordinates, by a tree of boxes.

use glam::DVec3;

use crate::geometry::box_tree::BoxTree;

/// A point of a triangle mesh.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurfacePoint {
    /// Place of the triangle in the list the tree was made from.
    pub triangle: u32,
    /// Shares of the triangle's corners: none negative, their sum is 1 to rounding.
    pub barycentric: [f64; 3],
    /// Squared distance from the point asked about.
    pub squared: f64,
}

/// Triangles, arranged for closest-point searches. Triangles without area are legal: segments and points.
#[derive(Debug, Clone)]
pub struct TriangleTree {
    tree: BoxTree,
    triangles: Vec<[DVec3; 3]>,
}

impl TriangleTree {
    /// A tree of triangles given by their corners.
    pub fn new(triangles: Vec<[DVec3; 3]>) -> Self {
        let boxes: Vec<_> = triangles.iter().map(|&[a, b, c]| (a.min(b).min(c), a.max(b).max(c))).collect();
        Self { tree: BoxTree::new(&boxes), triangles }
    }

    /// The point of the surface closest to `p`; `None` where there are no triangles. Points that tie go by their coordinates
    /// (x, then y, then z), so that the order of the triangles decides nothing but which triangle around it is named.
    pub fn closest(&self, p: DVec3) -> Option<SurfacePoint> {
        self.closest_where(p, f64::INFINITY, |_| true)
    }

    /// The closest of those points that are some triangle's closest to `p`, are accepted, and lie within the squared
    /// distance `reach`. Ties as for [`Self::closest`].
    pub fn closest_where(
        &self,
        p: DVec3,
        reach: f64,
        mut accepts: impl FnMut(SurfacePoint) -> bool,
    ) -> Option<SurfacePoint> {
        let mut best: Option<SurfacePoint> = None;
        self.tree.search(p, reach, |triangle, reach| {
            let (barycentric, squared) = closest_on_triangle(p, self.triangles[triangle as usize]);
            let found = SurfacePoint { triangle, barycentric, squared };
            let closer =
                best.is_none_or(|b| squared < b.squared || (squared == b.squared && self.tie_goes_to(found, b)));
            if squared <= reach && closer && accepts(found) {
                best = Some(found);
            }
            best.map_or(reach, |b| b.squared)
        });
        best
    }

    /// The position of a point of the surface.
    pub fn position(&self, at: SurfacePoint) -> DVec3 {
        let [u, v, w] = at.barycentric;
        let [a, b, c] = self.triangles[at.triangle as usize];
        a * u + b * v + c * w
    }

    fn tie_goes_to(&self, new: SurfacePoint, old: SurfacePoint) -> bool {
        let (p, q) = (self.position(new).to_array(), self.position(old).to_array());
        let by_place = p.iter().zip(&q).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne());
        by_place.unwrap_or(new.triangle.cmp(&old.triangle)).is_lt()
    }
}

/// Where the squared sine of a triangle's corner is below this, the foot of the perpendicular is mostly rounding error
/// (relative 2^-53 / sine), and the edges are looked at as well.
const SLIVER: f64 = 1e-14;

/// The barycentric coordinates of the point of a triangle closest to `p`, and its squared distance: the foot of the
/// perpendicular where it falls inside, else the closest point of the three edges.
pub fn closest_on_triangle(p: DVec3, [a, b, c]: [DVec3; 3]) -> ([f64; 3], f64) {
    let (ab, ac, ap) = (b - a, c - a, p - a);
    let normal = ab.cross(ac);
    let area = normal.length_squared();
    let mut best = ([1.0, 0.0, 0.0], f64::INFINITY);
    if area > 0.0 {
        let v = ap.cross(ac).dot(normal) / area;
        let w = ab.cross(ap).dot(normal) / area;
        let u = 1.0 - v - w;
        if u > 0.0 && v > 0.0 && w > 0.0 {
            best = ([u, v, w], p.distance_squared(a + ab * v + ac * w));
            if area > SLIVER * ab.length_squared() * ac.length_squared() {
                return best;
            }
        }
    }
    for (from, to, [i, j]) in [(a, b, [0, 1]), (b, c, [1, 2]), (c, a, [2, 0])] {
        let along = to - from;
        let length = along.length_squared();
        let t = if length > 0.0 { ((p - from).dot(along) / length).clamp(0.0, 1.0) } else { 0.0 };
        let foot = if t == 1.0 { to } else { from + along * t };
        let squared = p.distance_squared(foot);
        if squared < best.1 {
            let mut barycentric = [0.0; 3];
            barycentric[i] = 1.0 - t;
            barycentric[j] = t;
            best = (barycentric, squared);
        }
    }
    best
}
