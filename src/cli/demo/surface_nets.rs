//! The surface where a function is 0, as a closed mesh: naive surface nets (Gibson 1998), each vertex then moved onto the
//! surface along the function's gradient.

use glam::{DVec3, IVec3};
use rayon::prelude::*;

/// Newton steps from a cell's mean crossing to the surface.
const STEPS: usize = 4;

/// Nodes along the axes; node n lies at `(n - middle) * step`.
#[derive(Clone, Copy)]
pub struct Lattice {
    pub dims: IVec3,
    pub middle: IVec3,
    pub step: f64,
}

impl Lattice {
    /// The nodes around a box, symmetric about the plane x = 0.
    pub fn around(min: DVec3, max: DVec3, step: f64) -> Self {
        let low = (min / step).floor().as_ivec3() - IVec3::ONE;
        let high = (max / step).ceil().as_ivec3() + IVec3::ONE;
        Self { dims: high - low + IVec3::ONE, middle: -low, step }
    }

    fn point(&self, n: IVec3) -> DVec3 {
        (n - self.middle).as_dvec3() * self.step
    }

    fn index(&self, n: IVec3) -> usize {
        ((n.z * self.dims.y + n.y) * self.dims.x + n.x) as usize
    }

    fn nodes(&self) -> impl Iterator<Item = IVec3> + '_ {
        let d = self.dims;
        (0..d.z).flat_map(move |z| (0..d.y).flat_map(move |y| (0..d.x).map(move |x| IVec3::new(x, y, z))))
    }
}

/// A closed surface: positions, outward normals, triangles.
pub struct Surface {
    pub positions: Vec<DVec3>,
    pub normals: Vec<DVec3>,
    pub triangles: Vec<[u32; 3]>,
}

/// Polygonises `field` = 0, negative inside. The function must be positive on the rim of the lattice.
pub fn polygonise(lattice: &Lattice, field: &(impl Fn(DVec3) -> f64 + Sync)) -> Surface {
    let nodes: Vec<IVec3> = lattice.nodes().collect();
    let values: Vec<f64> = nodes.par_iter().map(|&n| field(lattice.point(n))).collect();
    let mut vertex_of_cell = vec![u32::MAX; values.len()];
    let mut starts = Vec::new();
    for &cell in nodes.iter().filter(|n| n.cmplt(lattice.dims - IVec3::ONE).all()) {
        if let Some(start) = mean_crossing(lattice, &values, cell) {
            vertex_of_cell[lattice.index(cell)] = starts.len() as u32;
            starts.push(start);
        }
    }
    let (positions, normals): (Vec<_>, Vec<_>) =
        starts.par_iter().map(|&p| onto_surface(p, lattice.step, field)).unzip();
    let mut triangles = Vec::new();
    for &node in nodes.iter().filter(|n| n.cmpgt(IVec3::ZERO).all() && n.cmplt(lattice.dims - IVec3::ONE).all()) {
        add_quads(lattice, &values, &vertex_of_cell, &positions, node, &mut triangles);
    }
    Surface { positions, normals, triangles }
}

/// The mean of the points where the function changes sign along the edges of a cell.
fn mean_crossing(lattice: &Lattice, values: &[f64], cell: IVec3) -> Option<DVec3> {
    let corner = |bits: i32| cell + IVec3::new(bits & 1, bits >> 1 & 1, bits >> 2);
    let value = |bits: i32| values[lattice.index(corner(bits))];
    let (mut sum, mut count) = (DVec3::ZERO, 0);
    for a in 0..8 {
        for axis in [1, 2, 4] {
            let b = a | axis;
            let (va, vb) = (value(a), value(b));
            if a != b && (va < 0.0) != (vb < 0.0) {
                sum += lattice.point(corner(a)).lerp(lattice.point(corner(b)), va / (va - vb));
                count += 1;
            }
        }
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// The nearest point of the surface, about, and its normal. Moves by less than a cell.
fn onto_surface(start: DVec3, step: f64, field: &impl Fn(DVec3) -> f64) -> (DVec3, DVec3) {
    let eps = 1e-4 * step;
    let gradient = |p: DVec3| {
        let along = |axis: DVec3| (field(p + axis * eps) - field(p - axis * eps)) / (2.0 * eps);
        DVec3::new(along(DVec3::X), along(DVec3::Y), along(DVec3::Z))
    };
    let mut p = start;
    for _ in 0..STEPS {
        let slope = gradient(p);
        let move_by = -slope * (field(p) / slope.length_squared().max(1e-6));
        p = start + (p + move_by - start).clamp_length_max(0.5 * step);
    }
    (p, gradient(p).normalize_or(DVec3::Y))
}

/// For each of the three edges that start at a node and change sign, the quad of the four cells around the edge, split along
/// its shorter diagonal.
fn add_quads(
    lattice: &Lattice,
    values: &[f64],
    vertex_of_cell: &[u32],
    positions: &[DVec3],
    node: IVec3,
    triangles: &mut Vec<[u32; 3]>,
) {
    for axis in 0..3 {
        let (along, u, v) = (IVec3::AXES[axis], IVec3::AXES[(axis + 1) % 3], IVec3::AXES[(axis + 2) % 3]);
        let inside = [node, node + along].map(|n| values[lattice.index(n)] < 0.0);
        if inside[0] == inside[1] {
            continue;
        }
        let mut quad = [node, node - u, node - u - v, node - v].map(|cell| vertex_of_cell[lattice.index(cell)]);
        if inside[1] {
            quad.reverse();
        }
        let [a, b, c, d] = quad;
        let gap = |i: u32, j: u32| positions[i as usize].distance_squared(positions[j as usize]);
        triangles.extend(if gap(a, c) <= gap(b, d) { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skinbind::geometry::topology::topology;
    use skinbind::model::Mesh;

    #[test]
    fn a_sphere_is_closed_faces_outward_and_lies_on_the_sphere() {
        let center = DVec3::new(0.1, 0.2, 0.3);
        let lattice = Lattice::around(center - DVec3::ONE, center + DVec3::ONE, 0.1);
        let surface = polygonise(&lattice, &|p: DVec3| p.distance(center) - 0.9);
        for (p, n) in surface.positions.iter().zip(&surface.normals) {
            // A sphere's function is a distance: Newton lands on it at once, up to the error of the difference quotient.
            assert!((p.distance(center) - 0.9).abs() < 1e-9);
            assert!(n.dot((p - center) / 0.9) > 1.0 - 1e-6);
        }
        let mesh = Mesh::new(surface.positions, surface.triangles).unwrap();
        let counts = topology(&mesh, &mesh.weld());
        assert!(counts.is_watertight() && counts.flipped_edges == 0, "{counts:?}");
        let volume: f64 = mesh
            .triangles()
            .iter()
            .map(|&t| {
                let [a, b, c] = mesh.corners(t).map(|p| p - center);
                a.cross(b).dot(c) / 6.0
            })
            .sum();
        // Chords of at most 0.15 cut off at most (0.15/2)^2/2/0.9 = 0.3 % of the radius, 0.9 % of the volume.
        let whole = 4.0 / 3.0 * std::f64::consts::PI * 0.9f64.powi(3);
        assert!(volume > 0.99 * whole && volume < whole, "{volume} of {whole}");
    }
}
