//! Rigid motions as unit dual quaternions, and their weighted mean (Kavan, Collins, Zara, O'Sullivan 2007).

use glam::{DQuat, DVec3};

/// A rotation and a translation as a dual quaternion: `real` is the rotation, `dual` half the translation times it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualQuat {
    pub real: DQuat,
    pub dual: DQuat,
}

impl DualQuat {
    /// Moves nothing.
    pub const IDENTITY: Self = Self { real: DQuat::IDENTITY, dual: DQuat::from_xyzw(0., 0., 0., 0.) };

    /// The motion that rotates (a unit quaternion) and then translates.
    pub fn new(rotation: DQuat, translation: DVec3) -> Self {
        let dual = DQuat::from_vec4(translation.extend(0.0)) * rotation;
        Self { real: rotation, dual: dual * 0.5 }
    }

    /// The weighted mean of motions, each taken on the side of the quaternions on which `pivot` lies, brought to unit
    /// length. `None` where the mean has no length: opposite motions of equal weight never do that, as a quaternion at
    /// a right angle to the pivot is added like any other.
    pub fn blend(pivot: &Self, terms: impl IntoIterator<Item = (Self, f64)>) -> Option<Self> {
        let zero = DQuat::from_xyzw(0., 0., 0., 0.);
        let (mut real, mut dual) = (zero, zero);
        for (term, weight) in terms {
            // Comparing, not multiplying by a sign: the sign of 0 would be 0 and drop the term.
            let side = if term.real.dot(pivot.real) < 0.0 { -weight } else { weight };
            real += term.real * side;
            dual += term.dual * side;
        }
        let length = real.length();
        (length > 0.0).then(|| Self { real: real / length, dual: dual / length })
    }

    /// Where the motion takes a point.
    pub fn transform_point(&self, p: DVec3) -> DVec3 {
        let (r, s) = (self.real.xyz(), self.real.w);
        let (d, d_s) = (self.dual.xyz(), self.dual.w);
        self.rotate(p) + 2.0 * (s * d - d_s * r + r.cross(d))
    }

    /// Where the motion turns a vector.
    pub fn rotate(&self, v: DVec3) -> DVec3 {
        let (r, s) = (self.real.xyz(), self.real.w);
        v + 2.0 * r.cross(r.cross(v) + s * v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn a_single_motion_is_rotation_then_translation() {
        let rotation = DQuat::from_axis_angle(DVec3::new(1., -2., 0.5).normalize(), 1.3);
        let translation = DVec3::new(3., -1., 2.);
        let motion = DualQuat::new(rotation, translation);
        let p = DVec3::new(0.5, 4., -2.);
        let expected = rotation * p + translation;
        assert!(motion.transform_point(p).distance(expected) < 16.0 * f64::EPSILON * expected.length());
        assert!(DualQuat::new(rotation, -translation).transform_point(p).distance(expected) > 1.0);
        // The other name of the same motion.
        let other = DualQuat { real: -motion.real, dual: -motion.dual };
        assert_eq!(other.transform_point(p), motion.transform_point(p));
    }

    #[test]
    fn halves_of_a_half_turn_make_a_quarter_turn() {
        // The dot product of the two is exactly 0.
        let turn = DualQuat::new(DQuat::from_xyzw(1., 0., 0., 0.), DVec3::ZERO);
        let half = DualQuat::blend(&DualQuat::IDENTITY, [(DualQuat::IDENTITY, 0.5), (turn, 0.5)]).unwrap();
        let quarter = DQuat::from_rotation_x(PI / 2.0);
        assert!(half.real.dot(quarter) > 1.0 - 2.0 * f64::EPSILON, "{half:?}");
    }

    #[test]
    fn nothing_has_no_mean() {
        assert_eq!(DualQuat::blend(&DualQuat::IDENTITY, []), None);
    }
}
