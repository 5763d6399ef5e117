//! How thick the body is around a bone: step 2 of the source rule.
//!
//! At five sections along the bone twelve rays are shot across it through the solid voxels; the section's radius is
//! their median length. Robust against a ray that leaves along a limb or through a gap, as it would not be with a mean.

use glam::DVec3;

use super::segment::{Segment, is_in};
use super::solid::Solid;
use crate::model::BitGrid;

/// Where along a bone the radius is measured.
pub const SECTIONS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
/// Rays a section.
pub const RAYS: usize = 12;
/// How far voxels that touch a surface reach beyond it, in voxels: half the width of a cube, the mean over all
/// directions.
pub const REACH: f64 = 0.75;
/// What the thickness is never below, in voxels: half a voxel, the least that a solid voxel holds around its middle.
pub const SMALLEST: f64 = 0.5;

/// Radii at the five sections of a bone, in voxels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Radii(pub [f64; 5]);

impl Radii {
    /// The radius at a fraction of the bone: linear between sections, constant beyond the outer ones.
    pub fn at(&self, t: f64) -> f64 {
        let place = ((t - SECTIONS[0]) / (SECTIONS[1] - SECTIONS[0])).clamp(0.0, 4.0);
        let i = (place as usize).min(3);
        let part = place - i as f64;
        self.0[i] + (self.0[i + 1] - self.0[i]) * part
    }

    /// One radius for the whole bone: the median section.
    pub fn typical(&self) -> f64 {
        median(&mut self.0.clone()).expect("there are five")
    }

    /// The least and the largest radius.
    pub fn range(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, 0.0), |(low, high), &r| (r.min(low), r.max(high)))
    }
}

/// The radii of each segment. A section whose middle is not in the solid takes the segment's median section; a segment
/// without any takes the median of all sections of all segments, and one voxel where there are none at all.
pub fn radii(solid: &Solid, surface: &BitGrid, segments: &[Segment]) -> Vec<Radii> {
    let measured: Vec<[Option<f64>; 5]> = segments.iter().map(|s| sections(solid, surface, s)).collect();
    let mut all: Vec<f64> = measured.iter().flatten().flatten().copied().collect();
    fill(&measured, median(&mut all).unwrap_or(1.0))
}

/// The radii of segments measured after others, with the median of those others for segments without a section of their
/// own.
pub fn radii_with(solid: &Solid, surface: &BitGrid, segments: &[Segment], median_of_others: f64) -> Vec<Radii> {
    let measured: Vec<[Option<f64>; 5]> = segments.iter().map(|s| sections(solid, surface, s)).collect();
    fill(&measured, median_of_others)
}

fn fill(measured: &[[Option<f64>; 5]], otherwise: f64) -> Vec<Radii> {
    measured
        .iter()
        .map(|sections| {
            let mut found: Vec<f64> = sections.iter().flatten().copied().collect();
            let missing = median(&mut found).unwrap_or(otherwise);
            Radii(sections.map(|r| r.unwrap_or(missing).max(SMALLEST)))
        })
        .collect()
}

/// The median ray of each section; none where the section's middle is not in the solid.
fn sections(solid: &Solid, surface: &BitGrid, segment: &Segment) -> [Option<f64>; 5] {
    let [u, v] = across(segment.b - segment.a);
    SECTIONS.map(|t| {
        let from = segment.at(t);
        if !is_in(solid, from) {
            return None;
        }
        let mut lengths: Vec<f64> = (0..RAYS)
            .map(|i| {
                let (sin, cos) = (std::f64::consts::TAU * i as f64 / RAYS as f64).sin_cos();
                way_out(solid, surface, from, u * cos + v * sin)
            })
            .collect();
        median(&mut lengths)
    })
}

/// Two unit vectors across a direction and across each other; any for a direction without length.
fn across(direction: DVec3) -> [DVec3; 2] {
    let d = direction.try_normalize().unwrap_or(DVec3::Y);
    let a = d.abs();
    let least = if a.x <= a.y && a.x <= a.z {
        DVec3::X
    } else if a.y <= a.z {
        DVec3::Y
    } else {
        DVec3::Z
    };
    let u = d.cross(least).normalize();
    [u, d.cross(u)]
}

/// How far a ray from a point in the solid goes before it meets the surface, in voxels: from face to face of the voxels
/// it crosses (Amanatides & Woo 1987) through the first run of surface voxels. A run in which the ray begins counts
/// where it leads out of the solid, not where it leads further in: the bone then lies at the skin.
fn way_out(solid: &Solid, surface: &BitGrid, from: DVec3, direction: DVec3) -> f64 {
    let mut voxel = from.floor().as_ivec3();
    let step = direction.signum().as_ivec3();
    let across = direction.abs().recip();
    let ahead = DVec3::select(direction.cmpgt(DVec3::ZERO), from.floor() + DVec3::ONE - from, from - from.floor());
    // A ray along an axis never meets the faces beside it: 0 x infinity must not turn into NaN.
    let mut next = DVec3::select(direction.cmpeq(DVec3::ZERO), DVec3::INFINITY, ahead * across);
    let mut run = surface.get(voxel.as_uvec3()).then_some(0.0);
    loop {
        let axis = if next.x <= next.y && next.x <= next.z {
            0
        } else if next.y <= next.z {
            1
        } else {
            2
        };
        let length = next[axis];
        voxel[axis] += step[axis];
        next[axis] += across[axis];
        if solid.at(voxel).is_none() {
            return surface_in(run.unwrap_or(length), length);
        }
        match (run, surface.get(voxel.as_uvec3())) {
            (None, true) => run = Some(length),
            (Some(start), false) if start > 0.0 => return surface_in(start, length),
            (Some(_), false) => run = None,
            _ => {}
        }
    }
}

/// Where in a run of surface voxels the surface is: in the middle, as conservative voxels reach as far to its one side
/// as to the other; in a run along the surface not further before the end than they reach.
fn surface_in(start: f64, end: f64) -> f64 {
    ((start + end) * 0.5).max(end - REACH)
}

/// The middle value, the mean of the two middle ones of an even number; none of none.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    Some((values[(n - 1) / 2] + values[n / 2]) * 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::solid::NONE;
    use crate::heat::test_shapes::solid_where;

    /// The voxels of a shape and those of them with a neighbour outside.
    fn with_surface(dims: [u32; 3], inside: impl Fn(DVec3) -> bool) -> (Solid, BitGrid) {
        let solid = solid_where(dims, inside);
        let mut surface = BitGrid::new(solid.bits().dims());
        for voxel in (0..solid.len() as u32).filter(|&v| solid.neighbors(v).contains(&NONE)) {
            surface.set(solid.coordinates(voxel));
        }
        (solid, surface)
    }

    fn beam() -> (Solid, BitGrid) {
        with_surface([41, 11, 11], |p| {
            p.min_element() > 1.0 && p.max(DVec3::X * 30.0).max_element() < 31.0 && p.y < 10.0 && p.z < 10.0
        })
    }

    #[test]
    fn a_square_beam_has_the_radius_of_its_rays() {
        // 9 x 9 voxels across, the bone in the middle. The outer layer holds the surface: a ray at an angle to the axis
        // leaves it after
        // 4.5 / cos and enters it after 3.5 / cos, so its middle is 4 / cos: four rays of 4, eight of 4 / cos 30
        // degrees.
        let (solid, surface) = beam();
        let bone = Segment { a: DVec3::new(3., 5.5, 5.5), b: DVec3::new(28., 5.5, 5.5) };
        let r = radii(&solid, &surface, &[bone])[0];
        for section in r.0 {
            assert!((section - 4.0 / 30f64.to_radians().cos()).abs() < 1e-9, "{section}");
        }
        // Negative control: off the middle it is another.
        let off = Segment { a: bone.a + DVec3::Y * 0.3, b: bone.b + DVec3::Y * 0.3 };
        assert!((radii(&solid, &surface, &[off])[0].0[2] - r.0[2]).abs() > 1e-3);
    }

    #[test]
    fn a_round_rod_has_its_radius() {
        let (solid, surface) = with_surface([40, 25, 25], |p| (p.y - 12.5).hypot(p.z - 12.5) < 8.0);
        let bone = Segment { a: DVec3::new(2., 12.5, 12.5), b: DVec3::new(38., 12.5, 12.5) };
        // The boundary of a voxel whose middle is inside lies within half a diagonal of a voxel's cross-section of the
        // circle, and the surface is taken to be less than one such diagonal before it.
        let r = radii(&solid, &surface, &[bone])[0].typical();
        assert!((7.0..8.71).contains(&r), "{r}");
    }

    #[test]
    fn runs_of_surface_voxels_end_where_they_should() {
        assert_eq!(surface_in(3.0, 4.0), 3.5);
        // A ray along the surface: not the middle of a long run.
        assert_eq!(surface_in(3.0, 9.0), 8.25);
        // A bone at the skin: inwards the ray goes on to the far side, outwards it ends in the layer it is in.
        let (solid, surface) = beam();
        let from = DVec3::new(15., 1.75, 5.5);
        assert_eq!(way_out(&solid, &surface, from, DVec3::Y), 7.75);
        assert_eq!(way_out(&solid, &surface, from, DVec3::NEG_Y), 0.375);
    }

    #[test]
    fn missing_sections_take_the_median_of_the_bone_then_of_all() {
        let (solid, surface) = beam();
        let inside = Segment { a: DVec3::new(3., 5.5, 5.5), b: DVec3::new(28., 5.5, 5.5) };
        let half_out = Segment { a: DVec3::new(3., 5.5, 5.5), b: DVec3::new(60., 5.5, 5.5) };
        let outside = Segment { a: DVec3::splat(50.), b: DVec3::splat(60.) };
        let r = radii(&solid, &surface, &[inside, half_out, outside]);
        assert_eq!(r[1].0[4], r[1].0[0]);
        assert_eq!(r[2].0, [r[0].typical(); 5]);
        assert_eq!(radii(&solid, &surface, &[outside])[0].0, [1.0; 5]);
    }

    #[test]
    fn radii_are_linear_between_sections_and_constant_beyond() {
        let r = Radii([1., 2., 4., 4., 0.5]);
        assert_eq!(r.at(0.0), 1.0);
        assert!((r.at(0.2) - 1.5).abs() < 1e-12);
        assert!((r.at(0.4) - 3.0).abs() < 1e-12);
        assert_eq!(r.at(1.0), 0.5);
        assert_eq!(r.typical(), 2.0);
        assert_eq!(r.range(), (0.5, 4.0));
    }
}
