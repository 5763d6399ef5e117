//! Poses and motions made for the master rig, applied to any rig through its references.
//!
//! A BVH joint turns its bone about axes that are the world's at rest: `local = R^-1 P R` in the bone's own axes R. A bone with
//! several references takes their turns one after the other.

use std::collections::HashMap;

use glam::{DQuat, DVec3};

use super::rig::Rig;
use super::weights::names;
use crate::error::{Error, Result};
use crate::io::bvh::{Bvh, plain_name};
use crate::model::{Code, Pose, Skeleton, Warning};

/// How the joints of a motion file drive a rig.
#[derive(Debug, Clone)]
pub struct Driver {
    bvh: Bvh,
    /// For each bone of the rig the file's joints that turn it, in the order of its references.
    turns: Vec<Vec<usize>>,
    /// For each joint of the file what turns the master's limb at rest to where the file's limb rests.
    aligned: Vec<DQuat>,
    /// The rig's root bone, which alone is moved.
    root: usize,
    /// Whether positions in the file are places, in which the joint's offset is contained, or shifts from there.
    places: bool,
    /// Joints of the file that turn no bone.
    pub unused: Vec<String>,
    rest: Pose,
    axes: Vec<DQuat>,
}

impl Driver {
    /// Ties a motion file, made for the `master` rig, to a rig (which may be the master itself). `renamed` says for joints of
    /// the file which bone of the master they mean, where their names differ. With `align` the file's own rest pose is read
    /// from its offsets, and limbs that rest otherwise than the master's (arms that are level) come to lie as in the file.
    ///
    /// # Errors
    /// [`Error::Format`] for a renamed joint that the file lacks or a bone that the master lacks, [`Error::Check`] where no
    /// joint turns any bone.
    pub fn new(bvh: Bvh, renamed: &HashMap<String, String>, align: bool, master: &Rig, rig: &Rig) -> Result<Self> {
        let bvh = rename(bvh, renamed, &master.skeleton)?;
        let axes = bvh.axes_for(&master.skeleton);
        let bvh = bvh.with_axes(axes);
        let bone_of = bvh.bones_of_joints(&master.skeleton);
        let mut joint_of: HashMap<&str, usize> = HashMap::new();
        for (joint, bone) in bone_of.iter().enumerate() {
            if let Some(bone) = *bone {
                joint_of.insert(&master.skeleton.bones()[bone].name, joint);
            }
        }
        let aligned = match align {
            true => alignments(&bvh, &bone_of, &master.skeleton),
            false => vec![DQuat::IDENTITY; bvh.joints.len()],
        };
        let find = |reference: &String| joint_of.get(reference.as_str()).copied();
        let turns: Vec<Vec<usize>> = rig.pose_references.iter().map(|r| r.iter().filter_map(find).collect()).collect();
        let mut used = vec![false; bvh.joints.len()];
        turns.iter().flatten().for_each(|&joint| used[joint] = true);
        if !used.contains(&true) {
            return Err(Error::Check(format!(
                "none of the {} joints of the motion turns a bone of the rig",
                used.len()
            )));
        }
        let unused = bvh.joints.iter().zip(&used).filter(|(_, used)| !**used).map(|(j, _)| j.name.clone()).collect();
        let root = rig.skeleton.bones().iter().position(|b| b.parent.is_none()).unwrap_or(0);
        let places = positions_are_places(&bvh);
        Ok(Self { turns, aligned, root, places, unused, rest: rig.rest(), axes: rig.axes.clone(), bvh })
    }

    /// How many bones the file turns.
    pub fn bones(&self) -> usize {
        self.turns.iter().filter(|t| !t.is_empty()).count()
    }

    /// Times of the frames, in seconds from the first.
    pub fn times(&self) -> Vec<f64> {
        (0..self.bvh.frames()).map(|frame| frame as f64 * self.bvh.frame_time).collect()
    }

    /// Time of the last frame.
    pub fn end(&self) -> f64 {
        self.bvh.end()
    }

    /// The rig at a time in seconds, clamped to the frames.
    pub fn pose(&self, time: f64) -> Pose {
        let motions = self.bvh.sample(time);
        let mut pose = self.rest.clone();
        for ((local, turns), &axes) in pose.locals.iter_mut().zip(&self.turns).zip(&self.axes) {
            // As with the channels of a joint, the first listed turns the axes of the others: lists run from the trunk
            // outwards, and a chain of the master's bones then moves what hangs on it as it did there.
            let turn =
                turns.iter().fold(DQuat::IDENTITY, |turn, &joint| turn * self.turn(joint, motions[joint].rotation));
            if !turns.is_empty() {
                local.rotation = (local.rotation * (axes.conjugate() * turn * axes)).normalize();
            }
        }
        let from = if self.places { self.bvh.joints[0].offset } else { DVec3::ZERO };
        if let Some(position) = motions[0].position {
            pose.locals[self.root].translation += position - from;
        }
        pose
    }

    /// The turn of a joint against its parent, as the master's limbs have to make it.
    fn turn(&self, joint: usize, turn: DQuat) -> DQuat {
        let above = self.bvh.joints[joint].parent.map_or(DQuat::IDENTITY, |p| self.aligned[p]);
        above.conjugate() * turn * self.aligned[joint]
    }

    /// What the user should know, for a motion from this source.
    pub fn warnings(&self, source: &str) -> Vec<Warning> {
        if self.unused.is_empty() {
            return Vec::new();
        }
        let listed = names(self.unused.iter().map(|joint| format!("\"{joint}\"")));
        let (unused, all) = (self.unused.len(), self.bvh.joints.len());
        let text = format!("{source}: {unused} of its {all} joints turn no bone of the rig: {listed}.");
        vec![Warning::new(Code::FileIgnored, text)]
    }
}

/// Gives joints the names of the bones they mean.
fn rename(mut bvh: Bvh, renamed: &HashMap<String, String>, master: &Skeleton) -> Result<Bvh> {
    for (joint, bone) in renamed {
        if master.find(bone).is_none() {
            return Err(Error::UnknownBone(bone.clone()));
        }
        if !bvh.joints.iter().any(|j| j.name == *joint) {
            return Err(Error::format(format!("joint \"{joint}\""), "the motion file has no joint of this name"));
        }
    }
    if renamed.is_empty() {
        return Ok(bvh);
    }
    // What is named goes by the list alone; another joint of the same plain name must not come first.
    let meant: Vec<String> = renamed.values().map(|bone| plain_name(bone)).collect();
    for joint in &mut bvh.joints {
        match renamed.get(&joint.name) {
            Some(bone) => joint.name.clone_from(bone),
            None if meant.contains(&plain_name(&joint.name)) => joint.name = format!("({})", joint.name),
            None => {}
        }
    }
    Ok(bvh)
}

/// For each joint the shortest turn from the direction in which the master's bone leads to the next known one, to that of the
/// file. Where no joint or several follow, a limb has no one direction, and the parent's turn serves.
fn alignments(bvh: &Bvh, bone_of: &[Option<usize>], master: &Skeleton) -> Vec<DQuat> {
    // Parents come before their children, so places and nearest known joints above are found in one pass.
    let mut places: Vec<DVec3> = Vec::with_capacity(bvh.joints.len());
    let mut above: Vec<Option<usize>> = Vec::with_capacity(bvh.joints.len());
    let mut next = vec![Vec::new(); bvh.joints.len()];
    for (j, joint) in bvh.joints.iter().enumerate() {
        places.push(joint.offset + joint.parent.map_or(DVec3::ZERO, |p| places[p]));
        above.push(joint.parent.and_then(|p| if bone_of[p].is_some() { Some(p) } else { above[p] }));
        if let (Some(known), Some(_)) = (above[j], bone_of[j]) {
            next[known].push(j);
        }
    }
    let mut turns: Vec<DQuat> = Vec::with_capacity(bvh.joints.len());
    for (j, joint) in bvh.joints.iter().enumerate() {
        let head = |joint: usize| bone_of[joint].map(|bone| master.bones()[bone].head);
        let directions = match next[j][..] {
            [only] => head(j)
                .zip(head(only))
                .and_then(|(from, to)| (to - from).try_normalize().zip((places[only] - places[j]).try_normalize())),
            _ => None,
        };
        let inherited = joint.parent.map_or(DQuat::IDENTITY, |p| turns[p]);
        turns.push(directions.map_or(inherited, |(rest, file)| DQuat::from_rotation_arc(rest, file)));
    }
    turns
}

/// Whether the first frame's positions are nearer to the joints' offsets than to 0. Programs differ in what they write.
fn positions_are_places(bvh: &Bvh) -> bool {
    let (mut to_offset, mut to_zero) = (0.0, 0.0);
    for (joint, motion) in bvh.joints.iter().zip(bvh.sample(0.0)) {
        if let Some(position) = motion.position {
            to_offset += position.distance_squared(joint.offset);
            to_zero += position.length_squared();
        }
    }
    to_offset < to_zero
}
