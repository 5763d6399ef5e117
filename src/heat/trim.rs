//! Bones cut short at their joints for the choice of the source: step 4 of the source rule.
//!
//! A side branch starts deep inside its trunk (clavicles in the chest, thighs in the pelvis) and would take the trunk's
//! surface there. So a bone that leaves its parent at an angle starts to count only where it has left the parent's
//! thickness, and a bone whose child is thicker than itself ends where it enters the child's.

use super::radius::Radii;
use super::segment::Segment;

/// Points of a bone at which the thickness of its neighbours is asked for.
pub const SAMPLES: usize = 41;
/// How many of the parent's radii away a bone has left its parent.
pub const CLEAR_OF_PARENT: f64 = 1.3;
/// A child whose head is further from a bone's tail than this share of the bone's length is not joined to it.
pub const JOINED: f64 = 0.5;
/// How fast the cut at the tail grows with the child's thickness beyond the bone's own.
pub const THICKER: f64 = 4.0;
/// Most that is ever cut, of the whole bone.
pub const MOST: f64 = 0.9;

/// A bone and its thickness.
#[derive(Debug, Clone, Copy)]
pub struct Limb {
    pub segment: Segment,
    pub radii: Radii,
}

/// The share of a bone to cut off at its head.
pub fn cut_at_head(bone: &Limb, parent: &Limb) -> f64 {
    let along = (bone.segment.b - bone.segment.a).normalize_or_zero();
    let parent_along = (parent.segment.b - parent.segment.a).normalize_or_zero();
    let turned = (1.0 - along.dot(parent_along)).clamp(0.0, 1.0);
    let clear = |p| {
        let t = parent.segment.closest(p);
        parent.segment.at(t).distance(p) >= CLEAR_OF_PARENT * parent.radii.at(t)
    };
    let left = bone.segment.samples(SAMPLES).find(|&(_, p)| clear(p)).map_or(1.0, |(u, _)| u);
    turned * left.min(MOST)
}

/// Whether a child goes on where a bone ends.
pub fn is_joined(bone: &Limb, child: &Limb) -> bool {
    child.segment.a.distance(bone.segment.b) <= JOINED * bone.segment.length()
}

/// The share of a bone to cut off at its tail: the largest that one of the bones that go on there asks for. Not only
/// the next one: of three short bones in a neck the first too lies inside the head.
pub fn cut_at_tail<'a>(bone: &Limb, onward: impl IntoIterator<Item = &'a Limb>) -> f64 {
    onward.into_iter().map(|next| cut_for(bone, next)).fold(0.0, f64::max)
}

fn cut_for(bone: &Limb, child: &Limb) -> f64 {
    let thicker = (THICKER * (1.0 - bone.radii.typical() / child.radii.typical())).clamp(0.0, 1.0);
    let inside = |p| {
        let t = child.segment.closest(p);
        child.segment.at(t).distance(p) < child.radii.at(t)
    };
    let entered = bone.segment.samples(SAMPLES).rev().find(|&(_, p)| !inside(p)).map_or(1.0, |(u, _)| 1.0 - u);
    thicker * entered.min(MOST)
}

/// What is left of a bone after both cuts, from which to which fraction: never less than a tenth.
pub fn trimmed(head: f64, tail: f64) -> (f64, f64) {
    let scale = if head + tail > MOST { MOST / (head + tail) } else { 1.0 };
    (head * scale, 1.0 - tail * scale)
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;

    fn limb(a: [f64; 3], b: [f64; 3], r: f64) -> Limb {
        Limb { segment: Segment { a: a.into(), b: b.into() }, radii: Radii([r; 5]) }
    }

    #[test]
    fn a_branch_across_starts_where_it_leaves_the_trunk() {
        let trunk = limb([0., 0., 0.], [0., 20., 0.], 4.0);
        // At a right angle the whole way through 1.3 x 4 = 5.2 counts; the samples lie half a voxel apart: 5.5 of 20.
        let branch = limb([0., 10., 0.], [20., 10., 0.], 2.0);
        assert_eq!(cut_at_head(&branch, &trunk), 0.275);
        // One that goes on in line is not cut.
        let spine = limb([0., 20., 0.], [0., 40., 0.], 2.0);
        assert_eq!(cut_at_head(&spine, &trunk), 0.0);
        // One that never leaves: the most.
        let inside = limb([0., 10., 0.], [4., 10., 0.], 2.0);
        assert_eq!(cut_at_head(&inside, &trunk), MOST);
        // A bone without length has no direction: it counts as turned by a right angle.
        let point = limb([0., 10., 0.], [0., 10., 0.], 2.0);
        assert_eq!(cut_at_head(&point, &trunk), MOST);
    }

    #[test]
    fn a_thin_bone_ends_where_a_thicker_child_begins() {
        let bone = limb([0., 0., 0.], [20., 0., 0.], 2.0);
        let child = limb([20., 0., 0.], [20., 20., 0.], 4.0);
        // 4 (1 - 2/4) is above 1, so all of it counts; the way back out of the child's radius is 4 of 20 voxels.
        assert!((cut_at_tail(&bone, [&child]) - 0.2).abs() < 1e-12);
        let thinner = limb([20., 0., 0.], [20., 20., 0.], 1.5);
        assert_eq!(cut_at_tail(&bone, [&thinner]), 0.0);
        // Half as much where 4 (1 - 3.5/4) = 0.5.
        assert!((cut_at_tail(&limb([0., 0., 0.], [20., 0., 0.], 3.5), [&child]) - 0.1).abs() < 1e-12);
        assert!(is_joined(&bone, &child));
        assert!(!is_joined(&bone, &limb([31., 0., 0.], [31., 20., 0.], 4.0)));
        assert!((cut_at_tail(&bone, [&thinner, &child]) - 0.2).abs() < 1e-12);
        assert_eq!(cut_at_tail(&bone, []), 0.0);
    }

    #[test]
    fn a_tenth_always_stays() {
        assert_eq!(trimmed(0.25, 0.125), (0.25, 0.875));
        let (from, to) = trimmed(0.9, 0.9);
        assert!((from - 0.45).abs() < 1e-12 && (to - 0.55).abs() < 1e-12);
        assert!(DVec3::new(from, to, 0.0).is_finite());
    }
}
