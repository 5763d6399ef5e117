//! What a bind warns about: a skeleton that does not fit the mesh, bones that got nothing.

use crate::model::{Bounds, Code, Skeleton, Warning, Weights};

/// How many times larger than the mesh a skeleton may be, or how many mesh sizes away, before a warning.
const SIZE_RATIO: f64 = 20.0;

/// Most bones that one warning names.
const MOST_NAMES: usize = 12;

/// Warns where the skeleton is so much larger or smaller than the mesh, or so far off, that units or spaces seem mixed up.
pub fn skeleton_size(mesh: &Bounds, skeleton: &Skeleton, use_bone: &[bool]) -> Option<Warning> {
    let used = skeleton.bones().iter().zip(use_bone).filter(|(_, used)| **used);
    let bones = Bounds::of(used.clone().flat_map(|(b, _)| [b.head, b.tail]))?;
    let (mesh_size, size) = (mesh.diagonal(), bones.diagonal());
    let text = if size > SIZE_RATIO * mesh_size {
        format!("the skeleton is {:.0} times larger than the mesh", size / mesh_size)
    } else if used.count() > 1 && size * SIZE_RATIO < mesh_size {
        format!("the mesh is {:.0} times larger than the skeleton", mesh_size / size)
    } else if gap(mesh, &bones) > 0.5 * mesh_size {
        "the skeleton lies beside the mesh".into()
    } else {
        return None;
    };
    Some(Warning::new(Code::SkeletonSize, format!("{text}: are both in the same units and the same space?")))
}

/// Distance between two boxes.
fn gap(a: &Bounds, b: &Bounds) -> f64 {
    (a.min - b.max).max(b.min - a.max).max(glam::DVec3::ZERO).length()
}

/// One warning that names the bones which may have weights and got none.
pub fn without_weight(skeleton: &Skeleton, use_bone: &[bool], weights: &Weights) -> Option<Warning> {
    let mut bare = use_bone.to_vec();
    for influence in weights.iter().flatten() {
        bare[influence.joint as usize] = false;
    }
    let names: Vec<&str> =
        skeleton.bones().iter().zip(&bare).filter(|(_, bare)| **bare).map(|(b, _)| b.name.as_str()).collect();
    let listed = names.iter().take(MOST_NAMES).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let text = match names.len() {
        0 => return None,
        1 => format!("bone {listed} has no weight at any vertex"),
        n if n <= MOST_NAMES => format!("{n} bones have no weight at any vertex: {listed}"),
        n => format!("{n} bones have no weight at any vertex: {listed} and {} more", n - MOST_NAMES),
    };
    let warning = Warning::new(Code::BoneWithoutWeight, text);
    Some(if let [name] = names[..] { warning.bone(name) } else { warning })
}

#[cfg(test)]
mod tests {
    use glam::DVec3;

    use super::*;
    use crate::model::Bone;

    fn bone(name: &str, head: [f64; 3], tail: [f64; 3]) -> Bone {
        Bone { name: name.into(), head: head.into(), tail: tail.into(), parent: None, deform: true }
    }

    #[test]
    fn a_skeleton_in_other_units_is_noticed() {
        let mesh = Bounds { min: DVec3::ZERO, max: DVec3::ONE };
        let said = |bones: Vec<Bone>| {
            let used = vec![true; bones.len()];
            skeleton_size(&mesh, &Skeleton::new(bones).unwrap(), &used).map(|w| w.message)
        };
        assert_eq!(said(vec![bone("a", [0.5, 0., 0.5], [0.5, 1., 0.5])]), None);
        assert!(
            said(vec![bone("a", [50., 0., 50.], [50., 100., 50.])]).unwrap().contains("times larger than the mesh")
        );
        let small = vec![bone("a", [0.005; 3], [0.005, 0.01, 0.005]), bone("b", [0.005; 3], [0.006, 0.01, 0.005])];
        assert!(said(small).unwrap().contains("larger than the skeleton"));
        assert!(said(vec![bone("a", [5., 0., 0.], [5., 1., 0.])]).unwrap().contains("beside"));
    }
}
