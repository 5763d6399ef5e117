//! Line segments in grid coordinates: closest points, samples, and whether a sample lies in the solid.

use glam::DVec3;

use super::solid::Solid;
use crate::geometry::segment::closest_parameter;

/// From `a` to `b`, which may coincide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    pub a: DVec3,
    pub b: DVec3,
}

impl Segment {
    /// The point at a fraction of the way from `a` to `b`.
    pub fn at(&self, t: f64) -> DVec3 {
        self.a + (self.b - self.a) * t
    }

    /// Its length.
    pub fn length(&self) -> f64 {
        self.a.distance(self.b)
    }

    /// Where on the segment the point closest to `p` lies, as a fraction.
    pub fn closest(&self, p: DVec3) -> f64 {
        closest_parameter(p, self.a, self.b)
    }

    /// Distance of a point.
    pub fn distance(&self, p: DVec3) -> f64 {
        self.at(self.closest(p)).distance(p)
    }

    /// `count` points (at least two) evenly from `a` to `b`, both included, each with its fraction.
    pub fn samples(&self, count: usize) -> impl DoubleEndedIterator<Item = (f64, DVec3)> + ExactSizeIterator + '_ {
        (0..count).map(move |i| {
            let t = i as f64 / (count - 1) as f64;
            (t, self.at(t))
        })
    }
}

/// Whether a point in grid coordinates lies in a solid voxel.
pub fn is_in(solid: &Solid, p: DVec3) -> bool {
    voxel_at(solid, p).is_some()
}

/// The solid voxel that holds a point in grid coordinates.
pub fn voxel_at(solid: &Solid, p: DVec3) -> Option<u32> {
    // A bone may end 1e30 voxels away: the cast saturates, and stays outside.
    solid.at(p.floor().as_ivec3())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_points_of_segments_and_of_points() {
        let s = Segment { a: DVec3::new(1., 0., 0.), b: DVec3::new(3., 0., 0.) };
        assert_eq!(s.closest(DVec3::new(2.5, 4., 0.)), 0.75);
        assert_eq!(s.distance(DVec3::new(2.5, 3., 4.)), 5.0);
        assert_eq!(s.distance(DVec3::new(0., 0., 0.)), 1.0);
        assert_eq!(s.closest(DVec3::new(9., 0., 0.)), 1.0);
        let point = Segment { a: DVec3::ONE, b: DVec3::ONE };
        assert_eq!(point.distance(DVec3::new(1., 1., 3.)), 2.0);
        let samples: Vec<f64> = s.samples(5).map(|(_, p)| p.x).collect();
        assert_eq!(samples, [1.0, 1.5, 2.0, 2.5, 3.0]);
    }
}
