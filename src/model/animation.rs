//! Key-framed animation sampled at any time: step, linear and cubic-spline tracks as glTF 2.0 defines them (appendix C).

use glam::{DQuat, DVec3};

use crate::error::{Error, Result};
use crate::model::{Pose, Transform};

/// What lies between two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// The earlier key's value.
    Step,
    /// A straight line; for rotations the shortest arc at constant speed.
    #[default]
    Linear,
    /// A cubic Hermite spline; three values a key: in-tangent, value, out-tangent.
    CubicSpline,
}

/// A kind of value that tracks can hold.
pub trait Key: Copy {
    /// A point on the way from `from` (0) to `to` (1).
    fn between(from: Self, to: Self, share: f64) -> Self;
    /// The weighted sum of value, tangent, value and tangent of a spline, made valid again.
    fn hermite(terms: [(Self, f64); 4]) -> Self;
    /// Whether all numbers are finite, and it can be what a key holds (`tangent`: what a tangent holds).
    fn is_valid(&self, tangent: bool) -> bool;
}

impl Key for DVec3 {
    fn between(from: Self, to: Self, share: f64) -> Self {
        from.lerp(to, share)
    }

    fn hermite(terms: [(Self, f64); 4]) -> Self {
        terms.into_iter().map(|(value, factor)| value * factor).sum()
    }

    fn is_valid(&self, _tangent: bool) -> bool {
        self.is_finite()
    }
}

impl Key for DQuat {
    fn between(from: Self, to: Self, share: f64) -> Self {
        // The keys may be of 32-bit unit length only.
        from.normalize().slerp(to.normalize(), share).normalize()
    }

    fn hermite(terms: [(Self, f64); 4]) -> Self {
        let sum = terms.into_iter().fold(DQuat::from_xyzw(0., 0., 0., 0.), |sum, (value, factor)| sum + value * factor);
        // A spline may pass through 0, where there is no direction; the key it started from serves there.
        let length = sum.length();
        if length > 0.0 { sum / length } else { terms[0].0.normalize() }
    }

    fn is_valid(&self, tangent: bool) -> bool {
        self.is_finite() && (tangent || self.length_squared() > 0.0)
    }
}

/// A value that changes over time: times in seconds and one value (cubic spline: three) a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Track<V> {
    times: Vec<f64>,
    values: Vec<V>,
    interpolation: Interpolation,
}

impl<V: Key> Track<V> {
    /// A track from its keys.
    ///
    /// # Errors
    /// [`Error::Format`] naming the key where there is none, times do not increase, a number is not finite, a rotation
    /// has length 0, or there are not as many values as the interpolation needs.
    pub fn new(times: Vec<f64>, values: Vec<V>, interpolation: Interpolation) -> Result<Self> {
        let per_key = if interpolation == Interpolation::CubicSpline { 3 } else { 1 };
        if times.is_empty() {
            return Err(Error::format("animation", "a track has no keys"));
        }
        if times.len().checked_mul(per_key) != Some(values.len()) {
            let what = format!("{} values for {} keys; {per_key} a key are needed", values.len(), times.len());
            return Err(Error::format("animation", what));
        }
        for (key, time) in times.iter().enumerate() {
            let fault = |what: String| Error::format(format!("animation key {key} (0-based)"), what);
            if !time.is_finite() {
                return Err(fault(format!("its time is {time}")));
            }
            if key > 0 && *time <= times[key - 1] {
                return Err(fault(format!("its time {time} is not after the one before, {}", times[key - 1])));
            }
            for i in 0..per_key {
                if !values[key * per_key + i].is_valid(per_key == 3 && i != 1) {
                    return Err(fault("its value is not finite, or a rotation of length 0".into()));
                }
            }
        }
        Ok(Self { times, values, interpolation })
    }

    /// The value at a time in seconds. Before the first key it is the first key's, after the last the last key's; NaN
    /// counts as before the first.
    pub fn sample(&self, time: f64) -> V {
        let after = self.times.partition_point(|&t| t <= time);
        let last = self.times.len() - 1;
        if after == 0 {
            return self.value(0);
        }
        let key = after - 1;
        if key == last || self.interpolation == Interpolation::Step || time == self.times[key] {
            return self.value(key);
        }
        let span = self.times[after] - self.times[key];
        let share = (time - self.times[key]) / span;
        match self.interpolation {
            Interpolation::CubicSpline => self.spline(key, share, span),
            _ => V::between(self.value(key), self.value(after), share),
        }
    }

    /// Time of the last key, in seconds.
    pub fn end(&self) -> f64 {
        self.times[self.times.len() - 1]
    }

    fn value(&self, key: usize) -> V {
        match self.interpolation {
            // One term only, so that a rotation comes out of unit length.
            Interpolation::CubicSpline => {
                let value = self.values[key * 3 + 1];
                V::hermite([(value, 1.0), (value, 0.0), (value, 0.0), (value, 0.0)])
            }
            _ => V::between(self.values[key], self.values[key], 0.0),
        }
    }

    fn spline(&self, key: usize, s: f64, span: f64) -> V {
        let (square, cube) = (s * s, s * s * s);
        let [value, leaving] = [self.values[key * 3 + 1], self.values[key * 3 + 2]];
        let [arriving, next] = [self.values[key * 3 + 3], self.values[key * 3 + 4]];
        V::hermite([
            (value, 2.0 * cube - 3.0 * square + 1.0),
            (leaving, span * (cube - 2.0 * square + s)),
            (next, -2.0 * cube + 3.0 * square),
            (arriving, span * (cube - square)),
        ])
    }
}

/// What moves one joint; what no track moves stays as in the rest pose.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JointTracks {
    pub translation: Option<Track<DVec3>>,
    pub rotation: Option<Track<DQuat>>,
    pub scale: Option<Track<DVec3>>,
}

impl JointTracks {
    /// The joint's local transform at a time in seconds.
    pub fn sample(&self, time: f64, rest: &Transform) -> Transform {
        Transform {
            translation: self.translation.as_ref().map_or(rest.translation, |t| t.sample(time)),
            rotation: self.rotation.as_ref().map_or(rest.rotation, |t| t.sample(time)),
            scale: self.scale.as_ref().map_or(rest.scale, |t| t.sample(time)),
        }
    }

    /// Time of the last key of all tracks, in seconds; 0 without any.
    pub fn end(&self) -> f64 {
        let vectors = [&self.translation, &self.scale].into_iter().flatten().map(Track::end);
        vectors.chain(self.rotation.as_ref().map(Track::end)).fold(0.0, f64::max)
    }
}

/// A named animation of a skeleton.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Animation {
    pub name: String,
    /// One entry a joint, in the skeleton's order.
    pub joints: Vec<JointTracks>,
}

impl Animation {
    /// The pose at a time in seconds.
    ///
    /// # Errors
    /// [`Error::Joints`] where the rest pose has another number of joints.
    pub fn sample(&self, time: f64, rest: &Pose) -> Result<Pose> {
        if self.joints.len() != rest.locals.len() {
            let (found, expected) = (self.joints.len(), rest.locals.len());
            return Err(Error::Joints { what: "the animation's tracks", found, expected });
        }
        Ok(Pose {
            locals: self.joints.iter().zip(&rest.locals).map(|(joint, rest)| joint.sample(time, rest)).collect(),
        })
    }

    /// Time of the last key, in seconds; 0 where nothing moves.
    pub fn end(&self) -> f64 {
        self.joints.iter().map(JointTracks::end).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn step_and_linear_hold_their_ends_and_meet_their_keys() {
        let values = vec![DVec3::ZERO, DVec3::new(2., 4., 6.), DVec3::ONE];
        let times = vec![1.0, 3.0, 4.0];
        let step = Track::new(times.clone(), values.clone(), Interpolation::Step).unwrap();
        let linear = Track::new(times, values.clone(), Interpolation::Linear).unwrap();
        for track in [&step, &linear] {
            assert_eq!(track.sample(f64::NEG_INFINITY), values[0]);
            assert_eq!(track.sample(f64::NAN), values[0]);
            assert_eq!(track.sample(3.0), values[1]);
            assert_eq!(track.sample(99.0), values[2]);
        }
        assert_eq!(step.sample(2.999), values[0]);
        assert_eq!(linear.sample(1.5), DVec3::new(0.5, 1., 1.5));
        assert_eq!(linear.end(), 4.0);
    }

    #[test]
    fn rotations_take_the_shortest_arc_at_constant_speed() {
        let from = DQuat::from_rotation_z(0.2);
        let to = DQuat::from_rotation_z(1.4);
        for to in [to, -to] {
            let track = Track::new(vec![0., 1.], vec![from, to * 1.0], Interpolation::Linear).unwrap();
            let quarter = track.sample(0.25);
            assert!(quarter.dot(DQuat::from_rotation_z(0.5)).abs() > 1.0 - 1e-15, "{quarter:?}");
        }
        // Keys of 32-bit length give unit rotations all the same.
        let short = Track::new(vec![0., 1.], vec![from * 0.9999999, to * 1.0000001], Interpolation::Linear).unwrap();
        for time in [-1.0, 0.0, 0.3, 1.0] {
            assert!((short.sample(time).length() - 1.0).abs() < 4.0 * f64::EPSILON);
        }
    }

    #[test]
    fn a_spline_follows_the_cubic_it_was_made_from() {
        // f(t) = t^3 - 2t, f' = 3t^2 - 2: a Hermite spline reproduces a cubic exactly.
        let f = |t: f64| DVec3::new(t * t * t - 2.0 * t, 1.0, -t);
        let slope = |t: f64| DVec3::new(3.0 * t * t - 2.0, 0.0, -1.0);
        let times = vec![0.5, 2.0, 2.25];
        let spline = |slope: &dyn Fn(f64) -> DVec3| {
            let values = times.iter().flat_map(|&t| [slope(t), f(t), slope(t)]).collect();
            Track::new(times.clone(), values, Interpolation::CubicSpline).unwrap()
        };
        let track = spline(&slope);
        let wrong = spline(&|_| DVec3::ZERO);
        for time in [0.5, 0.9, 1.7, 2.0, 2.1] {
            // A dozen roundings of numbers below 8.
            assert!(track.sample(time).abs_diff_eq(f(time), 12.0 * 8.0 * f64::EPSILON), "{time}");
        }
        assert!(wrong.sample(0.9).distance(f(0.9)) > 0.1);
        let flat = DQuat::from_xyzw(0., 0., 0., 0.);
        let (a, b) = (DQuat::IDENTITY, DQuat::from_rotation_x(PI / 2.0));
        let turn = Track::new(vec![0., 1.], vec![flat, a, flat, flat, b, flat], Interpolation::CubicSpline).unwrap();
        let half = turn.sample(0.5);
        assert!(half.dot(DQuat::from_rotation_x(PI / 4.0)) > 1.0 - 1e-15);
    }

    #[test]
    fn faulty_tracks_are_refused() {
        let one = DVec3::ONE;
        let make = |times: Vec<f64>, values: Vec<DVec3>, how| Track::new(times, values, how).map(|_| ());
        assert!(make(vec![], vec![], Interpolation::Linear).is_err());
        assert!(make(vec![0., 0.], vec![one, one], Interpolation::Linear).is_err());
        assert!(make(vec![0., f64::NAN], vec![one, one], Interpolation::Step).is_err());
        assert!(make(vec![0., 1.], vec![one, one], Interpolation::CubicSpline).is_err());
        assert!(make(vec![0.], vec![DVec3::NAN], Interpolation::Linear).is_err());
        assert!(make(vec![0., 1.], vec![one, one], Interpolation::Linear).is_ok());
        let nothing = DQuat::from_xyzw(0., 0., 0., 0.);
        assert!(Track::new(vec![0.], vec![nothing], Interpolation::Linear).is_err());
    }

    #[test]
    fn joints_without_tracks_rest() {
        let rest = Transform { translation: DVec3::X, rotation: DQuat::from_rotation_y(1.0), scale: DVec3::splat(2.0) };
        let moving = JointTracks {
            translation: Some(Track::new(vec![0., 2.], vec![DVec3::ZERO, DVec3::Y], Interpolation::Linear).unwrap()),
            ..JointTracks::default()
        };
        let animation = Animation { name: "nod".into(), joints: vec![moving, JointTracks::default()] };
        let pose = animation.sample(1.0, &Pose { locals: vec![rest; 2] }).unwrap();
        assert_eq!(pose.locals[0], Transform { translation: DVec3::Y * 0.5, ..rest });
        assert_eq!(pose.locals[1], rest);
        assert_eq!(animation.end(), 2.0);
        assert!(animation.sample(1.0, &Pose { locals: vec![rest] }).is_err());
    }
}
