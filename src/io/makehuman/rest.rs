//! How a bone's own axes lie in the rest pose: y along the bone, the others turned by a plane through three joints or by a
//! roll angle.

use std::f64::consts::PI;

use glam::{DMat3, DQuat, DVec3};

/// Cosines this near 1 leave no direction to build on.
const PARALLEL: f64 = 1.0 - 1e-9;

/// The frame whose y points from head to tail and whose z is perpendicular to that and to the normal of a plane. Where the bone
/// has no length, the identity; where normal and bone are parallel, or the normal is none, another axis of the world serves.
pub(super) fn from_normal(bone: DVec3, normal: DVec3) -> DQuat {
    let Some(y) = bone.try_normalize() else { return DQuat::IDENTITY };
    let usable = |n: &DVec3| n.try_normalize().is_some_and(|n| n.dot(y).abs() < PARALLEL);
    let Some(n) = [normal, DVec3::Y, DVec3::X].into_iter().find(usable) else { return DQuat::IDENTITY };
    let z = n.cross(y).normalize();
    DQuat::from_mat3(&DMat3::from_cols(y.cross(z), y, z)).normalize()
}

/// The normal of the plane through three joints.
pub(super) fn plane_normal([p1, p2, p3]: [DVec3; 3]) -> DVec3 {
    (p3 - p2).cross(p2 - p1).normalize_or_zero()
}

/// The frame whose y points from head to tail on the shortest way from the world's y, then turned about itself by the roll, in
/// radians.
pub(super) fn from_roll(bone: DVec3, roll: f64) -> DQuat {
    let Some(y) = bone.try_normalize() else { return DQuat::IDENTITY };
    // Straight down every way is as short; the one about z keeps the bone's z the world's.
    let swing = if y.y < -PARALLEL { DQuat::from_rotation_z(PI) } else { DQuat::from_rotation_arc(DVec3::Y, y) };
    (swing * DQuat::from_rotation_y(roll)).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn y_runs_along_the_bone_and_z_lies_across_the_plane() {
        let bone = DVec3::new(0.3, -2.0, 0.7);
        for frame in [from_normal(bone, DVec3::new(1., 0.2, 0.)), from_roll(bone, 0.4), from_normal(bone, DVec3::ZERO)]
        {
            // A dozen roundings of numbers up to 1.
            assert!((frame * DVec3::Y).distance(bone.normalize()) < 12.0 * f64::EPSILON, "{frame}");
            assert!((frame.length() - 1.0).abs() < 4.0 * f64::EPSILON);
        }
        let normal = plane_normal([DVec3::ZERO, DVec3::X, DVec3::new(1., 1., 0.)]);
        assert!(normal.distance(DVec3::NEG_Z) < f64::EPSILON, "(p3 - p2) x (p2 - p1): {normal}");
        let frame = from_normal(bone, normal);
        assert!((frame * DVec3::Z).dot(normal).abs() < 4.0 * f64::EPSILON);
        assert!((from_roll(bone, 0.4) * DVec3::Z).distance(from_roll(bone, 0.5) * DVec3::Z) > 0.05);
    }

    #[test]
    fn bones_without_a_direction_and_along_the_normal_have_a_frame_all_the_same() {
        assert_eq!(from_normal(DVec3::ZERO, DVec3::X), DQuat::IDENTITY);
        assert_eq!(from_roll(DVec3::ZERO, 1.0), DQuat::IDENTITY);
        let up = from_normal(DVec3::Y * 2.0, DVec3::ZERO);
        assert!((up * DVec3::Z).distance(DVec3::Z) < 1e-15 && (up * DVec3::X).distance(DVec3::X) < 1e-15, "{up}");
        assert!((from_roll(DVec3::NEG_Y, 0.0) * DVec3::Z).distance(DVec3::Z) < 1e-15);
    }
}
