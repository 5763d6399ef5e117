//! A figure of capsules with its bones: a small body for tests of whole methods.

use glam::{DQuat, DVec3};
use skinbind::bind::Bound;
use skinbind::model::{Bone, Skeleton};

use super::shapes::{Shape, capsule};

pub fn bone(name: &str, head: [f64; 3], tail: [f64; 3], parent: Option<usize>) -> Bone {
    Bone { name: name.into(), head: head.into(), tail: tail.into(), parent, deform: true }
}

/// A capsule from one point to another.
pub fn limb(radius: f64, from: [f64; 3], to: [f64; 3]) -> Shape {
    let (from, to) = (DVec3::from_array(from), DVec3::from_array(to));
    let turn = DQuat::from_rotation_arc(DVec3::Y, (to - from).normalize());
    capsule(radius, from.distance(to), 6).map(|p| from + turn * p)
}

/// A body with a trunk, a head, two arms and two legs, none of them along an axis but the trunk.
pub fn figure() -> Shape {
    let mut shape = limb(0.25, [0., 0.9, 0.], [0., 1.5, 0.]).and(&limb(0.16, [0., 1.75, 0.02], [0., 1.9, 0.02]));
    for side in [-1.0, 1.0] {
        shape = shape.and(&limb(0.09, [side * 0.15, 1.45, 0.], [side * 0.85, 1.1, 0.05]));
        shape = shape.and(&limb(0.12, [side * 0.12, 0.85, 0.], [side * 0.2, 0.1, 0.03]));
    }
    shape
}

pub fn figure_bones() -> Vec<Bone> {
    let mut bones = vec![
        bone("hips", [0., 0.9, 0.], [0., 1.1, 0.], None),
        bone("spine", [0., 1.1, 0.], [0., 1.55, 0.], Some(0)),
        bone("head", [0., 1.6, 0.], [0., 2.0, 0.02], Some(1)),
    ];
    for (side, x) in [("l", 1.0), ("r", -1.0)] {
        let at = bones.len();
        bones.extend([
            bone(&format!("upper_arm_{side}"), [x * 0.2, 1.42, 0.], [x * 0.5, 1.27, 0.02], Some(1)),
            bone(&format!("lower_arm_{side}"), [x * 0.5, 1.27, 0.02], [x * 0.88, 1.08, 0.05], Some(at)),
            bone(&format!("thigh_{side}"), [x * 0.13, 0.8, 0.], [x * 0.16, 0.45, 0.02], Some(0)),
            bone(&format!("shin_{side}"), [x * 0.16, 0.45, 0.02], [x * 0.2, 0.08, 0.03], Some(at + 2)),
        ]);
    }
    bones
}

/// The largest difference of a weight between two binds, bones taken by name.
pub fn difference(a: &(Skeleton, Bound), b: &(Skeleton, Bound)) -> f64 {
    let mut worst = 0f64;
    for (joint, bone) in a.0.bones().iter().enumerate() {
        let other = b.0.find(&bone.name).unwrap() as u32;
        for v in 0..a.1.weights.len() {
            worst = worst.max((a.1.weights.weight(v, joint as u32) - b.1.weights.weight(v, other)).abs());
        }
    }
    worst
}
