//! Straight-line distance from points to bones: the nearest of them, and those about as near, by a tree of boxes.

use glam::DVec3;

use crate::geometry::box_tree::BoxTree;
use crate::geometry::segment;
use crate::model::Skeleton;

/// A bone and its squared distance from a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoneNear {
    pub bone: u32,
    pub squared: f64,
}

/// The bones of a skeleton (or some of them), arranged for distance searches.
#[derive(Debug, Clone)]
pub struct BoneTree {
    tree: BoxTree,
    bones: Vec<(u32, DVec3, DVec3)>,
}

impl BoneTree {
    /// A tree of the bones with `use_bone`.
    pub fn new(skeleton: &Skeleton, use_bone: &[bool]) -> Self {
        let used = skeleton.bones().iter().enumerate().filter(|(i, _)| use_bone[*i]);
        let bones: Vec<_> = used.map(|(i, b)| (i as u32, b.head, b.tail)).collect();
        let boxes: Vec<_> = bones.iter().map(|&(_, a, b)| (a.min(b), a.max(b))).collect();
        Self { tree: BoxTree::new(&boxes), bones }
    }

    /// How many bones are in it.
    pub fn len(&self) -> usize {
        self.bones.len()
    }

    /// Whether no bone is in it.
    pub fn is_empty(&self) -> bool {
        self.bones.is_empty()
    }

    /// Fills `near` with all bones whose squared distance from `p` is at most `factor * max(nearest squared distance,
    /// floor)`, in no particular order. `hint` speeds up runs of neighbouring points; it changes no result: let it start
    /// at 0 and hand it on from point to point.
    pub fn within(&self, p: DVec3, factor: f64, floor: f64, hint: &mut usize, near: &mut Vec<BoneNear>) {
        near.clear();
        let Some(&(_, a, b)) = self.bones.get(*hint) else { return };
        let mut nearest = segment::distance_squared(p, a, b);
        let reach = self.tree.search(p, factor * nearest.max(floor), |item, reach| {
            let (bone, a, b) = self.bones[item as usize];
            let squared = segment::distance_squared(p, a, b);
            if squared > reach {
                return reach;
            }
            near.push(BoneNear { bone, squared });
            if squared < nearest {
                nearest = squared;
                *hint = item as usize;
            }
            factor * nearest.max(floor)
        });
        near.retain(|n| n.squared <= reach);
    }
}
