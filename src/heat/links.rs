//! Pseudo-bones from a parent bone to the heads of its children: step 3 of the source rule.
//!
//! A parent's segment often ends far from a child's head (hips to thighs, hand to fingers). The body between belongs to
//! the parent, and without a source there it would go to whichever bone happens to pass.

use super::segment::{Segment, is_in};
use super::solid::Solid;

/// A link shorter than this share of the parent's length, of the child's, and of a voxel is left out.
pub const SHORTEST: f64 = 0.02;
/// Points at which a link must be in the solid.
pub const SAMPLES: usize = 21;

/// The link from the parent's segment to the child's head; none where it would be too short or leave the solid.
pub fn link(solid: &Solid, parent: &Segment, child: &Segment) -> Option<Segment> {
    let link = Segment { a: parent.at(parent.closest(child.a)), b: child.a };
    let shortest = SHORTEST * parent.length().max(child.length()).max(1.0);
    (link.length() >= shortest && link.samples(SAMPLES).all(|(_, p)| is_in(solid, p))).then_some(link)
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;
    use crate::heat::test_shapes::{block, solid_where};

    #[test]
    fn a_link_joins_the_closest_point_of_the_parent_to_the_head() {
        let solid = block([1, 1, 1], [31, 20, 10]);
        let parent = Segment { a: DVec3::new(3., 5., 5.), b: DVec3::new(13., 5., 5.) };
        let child = Segment { a: DVec3::new(10., 12., 5.), b: DVec3::new(20., 12., 5.) };
        let l = link(&solid, &parent, &child).unwrap();
        assert_eq!((l.a, l.b), (DVec3::new(10., 5., 5.), child.a));
        // Two percent of the length 10 is 0.2.
        let near = Segment { a: DVec3::new(13.19, 5., 5.), b: DVec3::new(20., 5., 5.) };
        let far = Segment { a: DVec3::new(13.21, 5., 5.), b: DVec3::new(20., 5., 5.) };
        assert_eq!(link(&solid, &parent, &near), None);
        assert!(link(&solid, &parent, &far).is_some());
    }

    #[test]
    fn a_link_through_the_open_is_left_out() {
        let solid = solid_where([31, 20, 10], |p| p.y < 7.0 || p.y > 10.0);
        let parent = Segment { a: DVec3::new(3., 5., 5.), b: DVec3::new(13., 5., 5.) };
        let child = Segment { a: DVec3::new(10., 12., 5.), b: DVec3::new(20., 12., 5.) };
        assert_eq!(link(&solid, &parent, &child), None);
    }
}
