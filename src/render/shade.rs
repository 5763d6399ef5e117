//! Light on a surface: a key light from the upper left, a weaker and cooler one from the right, light from all round that is
//! stronger from above, a faint shine (Blinn 1977) and a brighter rim. The lights go with the camera.

use glam::DVec3;

use super::camera::Camera;
use super::colour::Rgb;

/// Lights of one camera.
pub(super) struct Lights {
    key: DVec3,
    fill: DVec3,
}

const KEY: DVec3 = DVec3::new(1.12, 1.05, 0.96);
const FILL: DVec3 = DVec3::new(0.13, 0.17, 0.23);
const ABOVE: DVec3 = DVec3::new(0.17, 0.19, 0.22);
const BELOW: DVec3 = DVec3::new(0.075, 0.062, 0.05);
/// How far light reaches round the edge of its shadow.
const WRAP: f64 = 0.12;

impl Lights {
    pub fn of(camera: &Camera) -> Self {
        let at = |x: f64, y: f64, z: f64| (camera.right * x + camera.up * y + camera.back * z).normalize();
        Self { key: at(-0.72, 0.62, 0.50), fill: at(0.88, 0.05, 0.30) }
    }

    /// The light that leaves a surface of this colour towards the viewer. `data` keeps shadows and shine back, so that
    /// colours that mean something can be read.
    pub fn shade(&self, colour: Rgb, normal: DVec3, viewer: DVec3, data: bool) -> Rgb {
        let diffuse = |light: DVec3| ((normal.dot(light) + WRAP) / (1.0 + WRAP)).max(0.0);
        let sky = normal.y * 0.5 + 0.5;
        let light = KEY * diffuse(self.key) + FILL * diffuse(self.fill) + BELOW.lerp(ABOVE, sky);
        let half = (self.key + viewer).normalize_or(viewer);
        let shine = 0.05 * normal.dot(half).max(0.0).powi(36);
        let edge = (1.0 - normal.dot(viewer).clamp(0.0, 1.0)).powi(4);
        let colour = DVec3::from_array(colour);
        let lit = if data {
            // The mean of all three, so that light changes no hue.
            colour * (0.42 + 0.56 * light.element_sum() / 3.0) * (1.0 - 0.25 * edge)
        } else {
            colour * light + DVec3::splat(shine + 0.10 * edge)
        };
        lit.to_array().map(shoulder)
    }
}

/// Bends what is brighter than a screen into its range instead of cutting it off.
fn shoulder(x: f64) -> f64 {
    const FROM: f64 = 0.8;
    if x <= FROM { x } else { FROM + (1.0 - FROM) * (1.0 - (-(x - FROM) / (1.0 - FROM)).exp()) }
}
