//! Distance from a point to a line segment.

use glam::DVec3;

/// Where on the segment from `a` to `b` the point closest to `p` lies: 0 at `a`, 1 at `b`; 0 where both ends coincide.
pub fn closest_parameter(p: DVec3, a: DVec3, b: DVec3) -> f64 {
    let along = b - a;
    let length_squared = along.length_squared();
    if length_squared > 0.0 { ((p - a).dot(along) / length_squared).clamp(0.0, 1.0) } else { 0.0 }
}

/// The point of the segment from `a` to `b` that is closest to `p`.
pub fn closest_point(p: DVec3, a: DVec3, b: DVec3) -> DVec3 {
    let t = closest_parameter(p, a, b);
    // From the nearer end, so that both ends come out exactly and a far end costs no precision.
    if t <= 0.5 { a + (b - a) * t } else { b - (b - a) * (1.0 - t) }
}

/// Squared distance from `p` to the segment from `a` to `b`. Beyond an end it is the one to that very end, so bones that
/// share a joint tie exactly there.
pub fn distance_squared(p: DVec3, a: DVec3, b: DVec3) -> f64 {
    p.distance_squared(closest_point(p, a, b))
}

/// Distance from `p` to the segment from `a` to `b`, in the unit of the coordinates.
pub fn distance(p: DVec3, a: DVec3, b: DVec3) -> f64 {
    distance_squared(p, a, b).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_before_and_beyond() {
        let (a, b) = (DVec3::new(1.0, 0.0, 0.0), DVec3::new(5.0, 0.0, 0.0));
        assert_eq!(distance(DVec3::new(2.0, 3.0, 4.0), a, b), 5.0);
        assert_eq!(distance(DVec3::new(-2.0, 4.0, 0.0), a, b), 5.0);
        assert_eq!(distance(DVec3::new(9.0, 0.0, 3.0), a, b), 5.0);
        assert_eq!(closest_point(DVec3::new(9.0, 0.0, 3.0), a, b), b);
        assert_ne!(distance(DVec3::new(2.0, 3.0, 4.1), a, b), 5.0);
    }

    #[test]
    fn a_point_is_a_segment() {
        let a = DVec3::new(1.0, 2.0, 3.0);
        assert_eq!(distance(DVec3::new(1.0, 2.0, 5.0), a, a), 2.0);
        assert_eq!(closest_parameter(DVec3::ZERO, a, a), 0.0);
    }

    #[test]
    fn a_far_end_costs_no_precision() {
        let a = DVec3::new(0.25, 0.0, 0.0);
        let d = distance(DVec3::new(0.25, 3.0, 0.0), a, DVec3::new(1e12, 0.0, 0.0));
        assert!((d - 3.0).abs() < 1e-12, "{d}");
    }
}
