//! What a surface hides: whether a straight way crosses it, by a tree of its triangles and a test by signed volumes that
//! leaves no gap between neighbours (after Woop, Benthin and Wald, "Watertight Ray/Triangle Intersection", 2013).

use glam::DVec3;

use crate::geometry::box_tree::BoxTree;
use crate::model::{Mesh, Weld};

/// Crossings so near to either end of a way do not count, in bounding-box diagonals: layers of the surface that all but
/// coincide would hide everything from each other, and a bone may lie on the surface.
const MARGIN: f64 = 1e-5;

/// The triangles of a mesh, arranged to ask what they hide. Which way round they are does not matter.
#[derive(Debug, Clone)]
pub struct Blockers {
    tree: BoxTree,
    triangles: Vec<[DVec3; 3]>,
    /// The welded places of each triangle's corners.
    places: Vec<[u32; 3]>,
    diagonal: f64,
}

impl Blockers {
    /// Of all triangles of a mesh.
    pub fn new(mesh: &Mesh, weld: &Weld) -> Self {
        let triangles: Vec<[DVec3; 3]> = mesh.triangles().iter().map(|&t| mesh.corners(t)).collect();
        let places = mesh.triangles().iter().map(|t| t.map(|v| weld.place_of[v as usize])).collect();
        let boxes: Vec<_> = triangles.iter().map(|&[a, b, c]| (a.min(b).min(c), a.max(b).max(c))).collect();
        Self { tree: BoxTree::new(&boxes), triangles, places, diagonal: mesh.bounds().diagonal() }
    }

    /// Whether a triangle lies on the straight way from a place (at `from`) to `to`. Triangles at the place itself do not
    /// count, nor does what is within 1e-5 bounding-box diagonals of either end.
    pub fn hide(&self, place: u32, from: DVec3, to: DVec3) -> bool {
        let margin = MARGIN * self.diagonal / from.distance(to);
        let Some(ray) = Ray::new(from, to).filter(|_| 2.0 * margin < 1.0) else { return false };
        self.tree.any_on_segment(from, to, |t| {
            !self.places[t as usize].contains(&place)
                && ray.meets(&self.triangles[t as usize]).is_some_and(|at| at > margin && at < 1.0 - margin)
        })
    }

    /// Whether the surface is in sight of `p` in more than two of three directions: whether `p` is inside as far as one
    /// can tell without asking faces which way round they are, whether they are doubled, or whether the surface has holes.
    pub fn enclose(&self, p: DVec3) -> bool {
        let sees = |direction: DVec3| {
            let to = p + direction * self.reach(p);
            Ray::new(p, to).is_some_and(|ray| {
                self.tree.any_on_segment(p, to, |t| ray.meets(&self.triangles[t as usize]).is_some_and(|at| at > 0.0))
            })
        };
        let mut open = 0;
        directions().all(|direction| {
            open += usize::from(!sees(direction));
            3 * open < directions().count()
        })
    }

    /// From `p`, all of the mesh is within this distance.
    fn reach(&self, p: DVec3) -> f64 {
        self.triangles.first().map_or(0.0, |t| p.distance(t[0])) + self.diagonal
    }
}

/// Unit vectors along the axes and along the diagonals of the octants.
fn directions() -> impl Iterator<Item = DVec3> {
    let axes = [DVec3::X, DVec3::Y, DVec3::Z].into_iter().flat_map(|axis| [axis, -axis]);
    let sign = |bit: u32, corner: u32| if corner >> bit & 1 == 0 { 1.0 } else { -1.0 };
    axes.chain((0..8).map(move |corner| DVec3::from_array([0, 1, 2].map(|bit| sign(bit, corner))).normalize()))
}

/// The line from one point to another.
struct Ray {
    from: DVec3,
    along: DVec3,
    /// One over the squared length.
    inverse: f64,
}

impl Ray {
    /// `None` where the points coincide, or all but do.
    fn new(from: DVec3, to: DVec3) -> Option<Self> {
        let along = to - from;
        let inverse = along.length_squared().recip();
        inverse.is_finite().then_some(Self { from, along, inverse })
    }

    /// Where the line meets a triangle: 0 at its start, 1 at its end. Edges and corners belong to all triangles there, so
    /// that nothing slips through between two; a triangle seen edge-on is not met.
    fn meets(&self, corners: &[DVec3; 3]) -> Option<f64> {
        let [a, b, c] = corners.map(|p| p - self.from);
        // Volumes, each exactly the negative of what the triangle beyond the edge gets for it.
        let [u, v, w] = [self.along.dot(c.cross(b)), self.along.dot(a.cross(c)), self.along.dot(b.cross(a))];
        if (u < 0.0 || v < 0.0 || w < 0.0) && (u > 0.0 || v > 0.0 || w > 0.0) {
            return None;
        }
        let sum = u + v + w;
        (sum != 0.0).then(|| (a * u + b * v + c * w).dot(self.along) * self.inverse / sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square of four triangles round its middle, in the plane z = 0, and a triangle far off.
    fn wall(turned: bool) -> Blockers {
        let points = [
            [-1., -1., 0.],
            [1., -1., 0.],
            [1., 1., 0.],
            [-1., 1., 0.],
            [0., 0., 0.],
            [0., 0., 9.],
            [1., 0., 9.],
            [0., 1., 9.],
        ];
        let mut faces = vec![[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4], [5, 6, 7]];
        if turned {
            faces.iter_mut().step_by(2).for_each(|f| f.swap(0, 1));
        }
        let mesh = Mesh::new(points.map(DVec3::from_array).to_vec(), faces).unwrap();
        let weld = mesh.weld();
        Blockers::new(&mesh, &weld)
    }

    #[test]
    fn a_wall_hides_what_is_behind_it_even_at_its_edges() {
        for blockers in [wall(false), wall(true)] {
            // Place 5 is far from the wall's triangles.
            let hides = |x: f64, y: f64| blockers.hide(5, DVec3::new(x, y, 1.0), DVec3::new(x, y, -1.0));
            assert!(hides(0.3, 0.1));
            // Through an edge, and through the corner of four triangles.
            assert!(hides(0.25, 0.25) && hides(0.0, 0.0));
            assert!(!hides(1.1, 0.0));
            // It ends before the wall, and on it.
            assert!(!blockers.hide(5, DVec3::new(0.3, 0.1, 1.0), DVec3::new(0.3, 0.1, 0.5)));
            assert!(!blockers.hide(5, DVec3::new(0.3, 0.1, 1.0), DVec3::new(0.3, 0.1, 0.0)));
            // From the wall itself, place 4: its own triangles do not count.
            assert!(!blockers.hide(4, DVec3::ZERO, DVec3::new(0.3, 0.1, -1.0)));
            assert!(!blockers.hide(4, DVec3::ZERO, DVec3::ZERO));
        }
    }

    #[test]
    fn a_box_encloses_its_middle_even_with_a_side_missing() {
        let corner = |i: u32| DVec3::new(f64::from(i & 1), f64::from(i >> 1 & 1), f64::from(i >> 2));
        let sides = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];
        let blockers = |sides: &[[u32; 4]]| {
            let faces = sides.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect();
            let mesh = Mesh::new((0..8).map(corner).collect(), faces).unwrap();
            let weld = mesh.weld();
            Blockers::new(&mesh, &weld)
        };
        // Further from the missing side than from the others: diagonals do not leave through it.
        let middle = DVec3::new(0.5, 0.55, 0.6);
        assert!(blockers(&sides).enclose(middle) && blockers(&sides[1..]).enclose(middle));
        assert!(!blockers(&sides[2..3]).enclose(middle));
        assert!(!blockers(&sides).enclose(DVec3::new(0.5, 1.2, 0.5)));
    }
}
