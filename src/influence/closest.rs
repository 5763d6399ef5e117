//! Closest weights: each vertex wholly to the bone nearest in a straight line. Rigid parts, and a last resort.

use crate::error::Result;
use crate::geometry::bone_distance::{BoneNear, BoneTree};
use crate::influence::envelope::bone_tree;
use crate::influence::{Limits, Stats, weigh_places};
use crate::model::{Influence, Mesh, Skeleton, Weights, Weld};
use crate::progress::Progress;

use glam::DVec3;

/// Weight 1 for the nearest of the bones with `use_bone` (one entry a bone), ties by bone name, at all welded places.
///
/// # Errors
/// As [`crate::influence::envelope`].
pub fn closest(
    mesh: &Mesh,
    weld: &Weld,
    skeleton: &Skeleton,
    use_bone: &[bool],
    progress: Progress,
) -> Result<(Weights, Stats)> {
    let tree = bone_tree(skeleton, use_bone)?;
    let positions = mesh.positions();
    let scratch = || (0, Vec::new());
    weigh_places(
        weld.places(),
        tree.len(),
        &Limits::default(),
        skeleton,
        progress,
        scratch,
        |(hint, near), place, raw| {
            let p = positions[weld.first[place] as usize];
            raw.extend(nearest_bone(&tree, skeleton, p, hint, near).map(|joint| Influence { joint, weight: 1.0 }));
        },
    )
}

/// The nearest bone, ties by name; `None` where the tree is empty.
fn nearest_bone(
    tree: &BoneTree,
    skeleton: &Skeleton,
    p: DVec3,
    hint: &mut usize,
    near: &mut Vec<BoneNear>,
) -> Option<u32> {
    tree.within(p, 1.0, 0.0, hint, near);
    near.iter().map(|n| n.bone).min_by_key(|&bone| skeleton.rank(bone as usize))
}
