//! The demo's body: tapered capsules and ellipsoids that flow into each other (smooth union by a quadratic of the difference,
//! Quilez 2013), in metres, +Y up, facing +Z, arms stretched out along X.

use glam::DVec3;
use skinbind::Result;
use skinbind::model::Mesh;

use super::surface_nets::{Lattice, polygonise};

/// Edge length of the cells: about 19,000 vertices.
const CELL: f64 = 0.0118;

/// Within about this distance of the plane x = 0 the two sides flow into each other.
const MIDDLE: f64 = 0.01;

/// From a to b, with a radius at each end.
struct Capsule {
    a: DVec3,
    b: DVec3,
    radius_a: f64,
    radius_b: f64,
}

const fn capsule(a: [f64; 3], radius_a: f64, b: [f64; 3], radius_b: f64) -> Capsule {
    Capsule { a: DVec3::from_array(a), b: DVec3::from_array(b), radius_a, radius_b }
}

const TORSO: [Capsule; 6] = [
    // hips, seat, waist, chest, shoulders, neck
    capsule([0.0, 0.955, -0.005], 0.108, [0.075, 0.935, -0.005], 0.105),
    capsule([0.055, 0.925, -0.045], 0.085, [0.075, 0.91, -0.045], 0.08),
    capsule([0.0, 1.00, 0.0], 0.108, [0.03, 1.12, 0.005], 0.098),
    capsule([0.0, 1.17, 0.005], 0.112, [0.07, 1.27, 0.005], 0.108),
    capsule([0.0, 1.34, -0.015], 0.085, [0.125, 1.335, -0.012], 0.068),
    capsule([0.0, 1.36, -0.02], 0.062, [0.0, 1.50, 0.0], 0.053),
];

const ARM: [Capsule; 4] = [
    // shoulder, upper arm, forearm, its muscle
    capsule([0.13, 1.338, -0.01], 0.068, [0.20, 1.34, -0.01], 0.060),
    capsule([0.18, 1.34, -0.01], 0.058, [0.42, 1.34, -0.012], 0.044),
    capsule([0.42, 1.34, -0.012], 0.044, [0.655, 1.34, -0.004], 0.031),
    capsule([0.45, 1.338, -0.010], 0.047, [0.53, 1.338, -0.008], 0.043),
];

const PALM: [Capsule; 3] = [
    capsule([0.665, 1.34, 0.006], 0.028, [0.752, 1.34, 0.036], 0.0235),
    capsule([0.665, 1.34, -0.002], 0.029, [0.760, 1.34, -0.006], 0.0245),
    capsule([0.665, 1.34, -0.012], 0.028, [0.748, 1.34, -0.046], 0.0225),
];

const FINGERS: [Capsule; 3] = [
    // index, middle, little finger
    capsule([0.760, 1.34, 0.041], 0.0185, [0.858, 1.338, 0.066], 0.0145),
    capsule([0.770, 1.34, -0.006], 0.0190, [0.880, 1.338, -0.008], 0.0150),
    capsule([0.755, 1.34, -0.052], 0.0175, [0.838, 1.338, -0.080], 0.0140),
];

const THUMB: Capsule = capsule([0.690, 1.332, 0.030], 0.0215, [0.752, 1.322, 0.112], 0.0160);

const LEG: [Capsule; 4] = [
    // thigh, shin, calf, knee
    capsule([0.088, 0.90, -0.005], 0.092, [0.104, 0.49, 0.006], 0.054),
    capsule([0.104, 0.49, 0.006], 0.054, [0.110, 0.09, -0.022], 0.037),
    capsule([0.106, 0.38, -0.020], 0.048, [0.109, 0.28, -0.026], 0.044),
    capsule([0.104, 0.505, 0.030], 0.031, [0.105, 0.475, 0.030], 0.029),
];

const FOOT: [Capsule; 3] = [
    capsule([0.110, 0.085, -0.022], 0.040, [0.112, 0.045, -0.045], 0.040),
    capsule([0.112, 0.050, -0.030], 0.038, [0.117, 0.038, 0.085], 0.037),
    capsule([0.117, 0.036, 0.085], 0.038, [0.119, 0.028, 0.150], 0.028),
];

const FACE: [Capsule; 4] = [
    // jaw, nose, brow, lips
    capsule([0.0, 1.545, 0.015], 0.072, [0.0, 1.515, 0.062], 0.040),
    capsule([0.0, 1.612, 0.112], 0.011, [0.0, 1.578, 0.138], 0.017),
    capsule([0.0, 1.640, 0.102], 0.016, [0.050, 1.642, 0.086], 0.015),
    capsule([0.0, 1.539, 0.094], 0.012, [0.022, 1.540, 0.086], 0.009),
];

/// Its mesh: one closed surface with normals.
///
/// # Errors
/// None in practice; those of [`Mesh::new`].
pub fn mesh() -> Result<Mesh> {
    let lattice = Lattice::around(DVec3::new(-0.92, -0.02, -0.20), DVec3::new(0.92, 1.80, 0.22), CELL);
    let surface = polygonise(&lattice, &field);
    Mesh::new(surface.positions, surface.triangles)?.with_normals(surface.normals)
}

/// Less than 0 inside, about the distance in metres near the surface.
fn field(p: DVec3) -> f64 {
    // Both sides are the same. The side's distance from the middle is rounded off there, so that no crease shows.
    let p = DVec3::new(p.x.hypot(MIDDLE), p.y, p.z);
    let torso = blend_all(p, &TORSO, 0.06);
    let arm = blend_all(p, &ARM, 0.02);
    let fingers = FINGERS.iter().map(|f| f.distance(p)).fold(f64::INFINITY, f64::min);
    let hand = blend(blend(blend_all(p, &PALM, 0.012), fingers, 0.010), THUMB.distance(p), 0.026);
    let leg = blend(blend_all(p, &LEG, 0.02), blend_all(p, &FOOT, 0.015), 0.03);
    let upper = blend(blend(torso, blend(arm, hand, 0.02), 0.05), head(p), 0.03);
    blend(upper, leg, 0.035)
}

fn head(p: DVec3) -> f64 {
    let skull = ellipsoid(p - DVec3::new(0.0, 1.622, 0.008), DVec3::new(0.094, 0.118, 0.112));
    let ear = ellipsoid(p - DVec3::new(0.096, 1.595, 0.004), DVec3::new(0.017, 0.034, 0.024));
    let eye = p.distance(DVec3::new(0.037, 1.607, 0.092)) - 0.0195;
    let face = FACE.iter().map(|c| c.distance(p)).fold(skull, |d, part| blend(d, part, 0.025));
    blend(blend(face, ear, 0.012), eye, 0.006)
}

impl Capsule {
    fn distance(&self, p: DVec3) -> f64 {
        let axis = self.b - self.a;
        let t = ((p - self.a).dot(axis) / axis.length_squared()).clamp(0.0, 1.0);
        p.distance(self.a + axis * t) - (self.radius_a + (self.radius_b - self.radius_a) * t)
    }
}

/// First-order distance to an ellipsoid about the origin: the implicit function over its gradient (Taubin 1994).
fn ellipsoid(p: DVec3, radii: DVec3) -> f64 {
    let scaled = (p / radii).length();
    let slope = (p / (radii * radii)).length().max(1e-9);
    scaled * (scaled - 1.0) / slope
}

/// Union with a fillet of about the size of `width`.
fn blend(a: f64, b: f64, width: f64) -> f64 {
    let overlap = (width - (a - b).abs()).max(0.0) / width;
    a.min(b) - 0.25 * width * overlap * overlap
}

fn blend_all(p: DVec3, capsules: &[Capsule], width: f64) -> f64 {
    capsules.iter().map(|c| c.distance(p)).reduce(|a, b| blend(a, b, width)).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skinbind::geometry::topology::topology;

    #[test]
    fn the_body_is_one_closed_surface_of_a_sensible_size() {
        let mesh = mesh().unwrap();
        let weld = mesh.weld();
        let counts = topology(&mesh, &weld);
        assert!(counts.is_watertight(), "{counts:?}");
        assert_eq!((counts.flipped_edges, counts.degenerate_faces), (0, 0));
        assert_eq!(mesh.components(&weld).len(), 1);
        let vertices = mesh.positions().len();
        assert!((10_000..20_000).contains(&vertices), "{vertices}");
        // Genus 0: fingers have not grown together at their tips.
        assert_eq!(vertices as i64 - counts.edges as i64 + mesh.triangles().len() as i64, 2);
    }
}
