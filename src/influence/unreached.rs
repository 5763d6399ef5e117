//! Which parts of a mesh no bone is in or reaches, said in a bounded number of warnings.

use glam::DVec3;

use crate::model::{Bounds, Code, Components, Mesh, Skeleton, Warning, Weld};

/// Most components with a warning of their own; the rest share one.
const MOST_NAMED: usize = 10;

/// Warns of components with vertices that are bare: `bare` and `vertices` count them for each component, `remedy` says
/// what became of them ("took ...").
pub(super) fn unreached_warnings(bare: &[usize], vertices: &[usize], remedy: &str) -> Vec<Warning> {
    let mut rest = (0, 0);
    let mut warnings = Vec::new();
    for (component, (&bare, &all)) in bare.iter().zip(vertices).enumerate().filter(|(_, (bare, _))| **bare > 0) {
        if warnings.len() == MOST_NAMED {
            rest = (rest.0 + 1, rest.1 + bare);
            continue;
        }
        let message = if bare == all {
            format!("component {component} ({all} vertices) is reached by no bone; it {remedy}")
        } else {
            format!("component {component}: {bare} of its {all} vertices are reached by no bone; they {remedy}")
        };
        warnings.push(Warning::new(Code::ComponentUnreached, message).component(component).vertices(bare));
    }
    if let (components @ 1.., bare) = rest {
        let message = format!("{components} more components ({bare} vertices) are reached by no bone; they {remedy}");
        warnings.push(Warning::new(Code::ComponentUnreached, message).vertices(bare));
    }
    warnings
}

/// Warns of components that no bone passes through (through their bounding box), for the methods that go by straight
/// distance and so bind them to bones of another part.
pub fn boneless_warnings(
    mesh: &Mesh,
    weld: &Weld,
    components: &Components,
    skeleton: &Skeleton,
    use_bone: &[bool],
) -> Vec<Warning> {
    if components.len() < 2 {
        return Vec::new();
    }
    let mut boxes: Vec<Option<Bounds>> = vec![None; components.len()];
    for (&vertex, &component) in weld.first.iter().zip(&components.of_place) {
        let p = mesh.positions()[vertex as usize];
        let known = boxes[component as usize].get_or_insert(Bounds { min: p, max: p });
        *known = Bounds { min: known.min.min(p), max: known.max.max(p) };
    }
    let bones = skeleton.bones().iter().zip(use_bone).filter(|(_, used)| **used);
    let segments: Vec<(DVec3, DVec3)> = bones.map(|(b, _)| (b.head, b.tail)).collect();
    let through = |bounds: &Bounds| segments.iter().any(|&(a, b)| passes_through(a, b, bounds));
    let bare: Vec<usize> = boxes
        .iter()
        .zip(&components.vertices)
        .map(|(bounds, &vertices)| if bounds.as_ref().is_some_and(through) { 0 } else { vertices })
        .collect();
    unreached_warnings(&bare, &components.vertices, "went to the nearest bones in a straight line")
}

/// Whether the segment from `a` to `b` has a point in the box: the slab test.
fn passes_through(a: DVec3, b: DVec3, bounds: &Bounds) -> bool {
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for axis in 0..3 {
        let (from, along) = (a[axis], b[axis] - a[axis]);
        let (low, high) = (bounds.min[axis], bounds.max[axis]);
        if along == 0.0 {
            if from < low || from > high {
                return false;
            }
            continue;
        }
        let (t0, t1) = ((low - from) / along, (high - from) / along);
        enter = enter.max(t0.min(t1));
        leave = leave.min(t0.max(t1));
    }
    enter <= leave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_components_is_summed_up() {
        let said = unreached_warnings(&[3; 25], &[3; 25], "stayed");
        assert_eq!(said.len(), MOST_NAMED + 1);
        assert_eq!(said[0].message, "component 0 (3 vertices) is reached by no bone; it stayed");
        assert_eq!(said[MOST_NAMED].message, "15 more components (45 vertices) are reached by no bone; they stayed");
        let partly = unreached_warnings(&[0, 2], &[5, 9], "stayed");
        assert_eq!(partly[0].message, "component 1: 2 of its 9 vertices are reached by no bone; they stayed");
        assert_eq!((partly.len(), partly[0].component, partly[0].vertices), (1, Some(1), Some(2)));
    }

    #[test]
    fn segments_and_boxes() {
        let unit = Bounds { min: DVec3::ZERO, max: DVec3::ONE };
        let hits = |a: [f64; 3], b: [f64; 3]| passes_through(a.into(), b.into(), &unit);
        assert!(hits([0.5; 3], [0.5; 3]));
        assert!(hits([-1.0, 0.5, 0.5], [2.0, 0.5, 0.5]));
        assert!(hits([-1.0, -1.0, -1.0], [0.0, 0.0, 0.0]));
        assert!(!hits([-1.0, 0.5, 0.5], [-0.1, 0.5, 0.5]));
        assert!(!hits([-1.0, 1.5, 0.5], [2.0, 1.5, 0.5]));
        assert!(!hits([0.9, 2.0, 0.5], [2.0, 0.9, 0.5]));
    }
}
