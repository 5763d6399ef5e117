//! Envelope weights: straight-line distance to the bones, through air and body alike. The plain method of old.

use crate::error::{Error, Result};
use crate::geometry::bone_distance::BoneTree;
use crate::influence::{Limits, Stats, weigh_places};
use crate::model::{Influence, Mesh, Skeleton, Weights, Weld};
use crate::progress::Progress;

/// Shortest distance that counts, in bounding-box diagonals.
pub const DISTANCE_FLOOR: f64 = 1e-4;
/// A bone counts up to this multiple of the distance of the nearest one.
pub const REACH: f64 = 2.0;
/// Bones at the very edge of the reach (they are common in built models) stay in, whatever the unit of length rounds to.
pub(crate) const EDGE: f64 = 1e-9;

/// The weights of all welded places by `w = 1 / d^4`, d the distance to the bone's segment, at least 1e-4 of the mesh'
/// diagonal, for the bones with `use_bone` (one entry a bone) within twice the distance of the nearest.
///
/// # Errors
/// [`Error::NoBones`] where no bone is to be used, [`Error::Length`] where `use_bone` has not one entry a bone,
/// [`Error::Parameter`], [`Error::Cancelled`].
pub fn envelope(
    mesh: &Mesh,
    weld: &Weld,
    skeleton: &Skeleton,
    use_bone: &[bool],
    limits: &Limits,
    progress: Progress,
) -> Result<(Weights, Stats)> {
    let tree = bone_tree(skeleton, use_bone)?;
    let floor = (mesh.bounds().diagonal() * DISTANCE_FLOOR).powi(2);
    let factor = REACH * REACH * (1.0 + EDGE);
    let positions = mesh.positions();
    let scratch = || (0, Vec::new());
    weigh_places(weld.places(), tree.len(), limits, skeleton, progress, scratch, |(hint, near), place, raw| {
        tree.within(positions[weld.first[place] as usize], factor, floor, hint, near);
        let nearest = near.iter().map(|n| n.squared).fold(f64::INFINITY, f64::min).max(floor);
        // Relative to the nearest bone's weight, which is of no account once normalised and can not overflow.
        raw.extend(near.iter().map(|n| {
            let ratio = nearest / n.squared.max(floor);
            Influence { joint: n.bone, weight: ratio * ratio }
        }));
    })
}

/// The bones to be used, as a tree.
pub(super) fn bone_tree(skeleton: &Skeleton, use_bone: &[bool]) -> Result<BoneTree> {
    if use_bone.len() != skeleton.len() {
        return Err(Error::Length { what: "bones to be used", found: use_bone.len(), expected: skeleton.len() });
    }
    let tree = BoneTree::new(skeleton, use_bone);
    if tree.is_empty() { Err(Error::NoBones("bone that may be given weights")) } else { Ok(tree) }
}
