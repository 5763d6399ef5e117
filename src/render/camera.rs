//! A camera that frames a mesh: the nearest place from which every vertex is inside the picture, found exactly.

use glam::{DVec2, DVec3};

use super::{Look, View};
use crate::model::Mesh;

/// Half the angle that the picture's height spans, in degrees: a long lens, which distorts little.
const HALF_ANGLE: f64 = 12.0;
/// Free space round the mesh, as a share of the picture's shorter side.
const MARGIN: f64 = 0.05;

/// A point in the picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projected {
    pub x: f64,
    pub y: f64,
    /// Larger is nearer; linear over a triangle in the picture.
    pub nearness: f64,
    /// What an attribute must be multiplied by to be linear over a triangle in the picture.
    pub share: f64,
}

/// World to picture.
#[derive(Debug, Clone)]
pub(super) struct Camera {
    pub right: DVec3,
    pub up: DVec3,
    /// Towards the camera.
    pub back: DVec3,
    /// The point of the picture that looks straight ahead, in pixels.
    middle: DVec2,
    /// Where that ray passes, along `right` and `up`.
    center: DVec2,
    /// Distance along `back`; `None` without perspective.
    distance: Option<f64>,
    /// Pixels a unit: at distance 1, or everywhere without perspective.
    scale: f64,
}

impl Camera {
    /// All of the mesh, `beside` pixels on the right kept free. The mesh has some extent.
    pub fn framing(mesh: &Mesh, look: &Look, beside: f64) -> Self {
        let (azimuth, elevation): (f64, f64) = match look.view {
            View::Front => (0.0, 0.0),
            View::Side => (90.0, 0.0),
            View::Back => (180.0, 0.0),
            View::ThreeQuarter => (32.0, 9.0),
        };
        let (sin_a, cos_a) = azimuth.to_radians().sin_cos();
        let (sin_e, cos_e) = elevation.to_radians().sin_cos();
        let back = DVec3::new(sin_a * cos_e, sin_e, cos_a * cos_e);
        let right = DVec3::new(cos_a, 0.0, -sin_a);
        let up = back.cross(right);
        let (width, height) = (f64::from(look.width), f64::from(look.height));
        let margin = MARGIN * width.min(height);
        let half = DVec2::new((width - beside) / 2.0 - margin, height / 2.0 - margin).max(DVec2::splat(1.0));
        let mut camera = Self {
            right,
            up,
            back,
            middle: DVec2::new((width - beside) / 2.0, height / 2.0),
            center: DVec2::ZERO,
            distance: None,
            scale: height / 2.0 / HALF_ANGLE.to_radians().tan(),
        };
        if look.orthographic {
            camera.frame_flat(mesh, half)
        } else {
            camera.frame(mesh, half)
        }
        camera
    }

    /// A vertex (x, z) is inside where `scale |x - center| <= half (distance - z)`: two lines a vertex, whose upper
    /// envelopes meet at the nearest place.
    fn frame(&mut self, mesh: &Mesh, half: DVec2) {
        let slope = DVec2::splat(self.scale) / half;
        let (mut upper, mut lower) = (DVec2::NEG_INFINITY, DVec2::NEG_INFINITY);
        let mut nearest = f64::NEG_INFINITY;
        for &p in mesh.positions() {
            let (at, z) = self.seen(p);
            upper = upper.max(at * slope + z);
            lower = lower.max(-at * slope + z);
            nearest = nearest.max(z);
        }
        self.center = (upper - lower) / 2.0 / slope;
        let distance = ((upper + lower) / 2.0).max_element();
        self.distance = Some(distance.max(nearest + 0.05 * mesh.bounds().diagonal()));
    }

    fn frame_flat(&mut self, mesh: &Mesh, half: DVec2) {
        let (mut most, mut least) = (DVec2::NEG_INFINITY, DVec2::INFINITY);
        for &p in mesh.positions() {
            let (at, _) = self.seen(p);
            most = most.max(at);
            least = least.min(at);
        }
        self.center = (most + least) / 2.0;
        // Seen from its edge a mesh may have no extent at all.
        let extent = (most - least).max(DVec2::splat(1e-6 * mesh.bounds().diagonal()));
        self.scale = (2.0 * half / extent).min_element();
    }

    /// Along `right` and `up`, and along `back`.
    fn seen(&self, p: DVec3) -> (DVec2, f64) {
        (DVec2::new(p.dot(self.right), p.dot(self.up)), p.dot(self.back))
    }

    /// Where a point lies in the picture.
    pub fn project(&self, p: DVec3) -> Projected {
        let (at, z) = self.seen(p);
        let share = self.distance.map_or(1.0, |d| 1.0 / (d - z));
        let offset = (at - self.center) * self.scale * share;
        Projected {
            x: self.middle.x + offset.x,
            y: self.middle.y - offset.y,
            nearness: if self.distance.is_some() { share } else { z },
            share,
        }
    }

    /// Where the ray through a place in the picture meets the floor of this height; `None` where it does not go down.
    pub fn floor(&self, x: f64, y: f64, height: f64) -> Option<DVec3> {
        let at = DVec2::new(x - self.middle.x, self.middle.y - y) / self.scale;
        let plane = |at: DVec2| self.right * at.x + self.up * at.y;
        let (from, along) = match self.distance {
            Some(d) => (plane(self.center) + self.back * d, plane(at) - self.back),
            None => (plane(self.center + at), -self.back),
        };
        let way = (height - from.y) / along.y;
        (along.y < 0.0 && way.is_finite()).then(|| from + along * way)
    }

    /// The direction from a point to the camera.
    pub fn towards(&self, p: DVec3) -> DVec3 {
        match self.distance {
            Some(d) => {
                let eye = self.right * self.center.x + self.up * self.center.y + self.back * d;
                (eye - p).normalize_or(self.back)
            }
            None => self.back,
        }
    }
}
