//! A skeleton from the joints of a file.
//!
//! glTF has joints but no tails: a bone ends at its only child's head; of several children at that of the one most in
//! line with the bone that comes in; a leaf goes on for half its parent's length.

use std::collections::{HashMap, HashSet};

use glam::DVec3;

use super::Document;
use super::json::member;
use super::scene::Scene;
use crate::error::{Error, Result};
use crate::model::{Bone, Code, Skeleton, Warning};

/// The nodes that are the joints of a skeleton: bone by bone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JointNodes(pub(super) Vec<usize>);

impl JointNodes {
    /// The node of each bone.
    pub fn nodes(&self) -> &[usize] {
        &self.0
    }
}

/// A skeleton that a file holds.
#[derive(Debug, Clone)]
pub struct Rig {
    pub skeleton: Skeleton,
    /// The nodes it was read from, to be used again as joints of a new skin in the same document.
    pub nodes: JointNodes,
    /// Bones that had to be renamed.
    pub warnings: Vec<Warning>,
}

impl Document {
    /// The skeleton in the pose that the nodes hold: the joints of all skins in use, or the node called `root` and those
    /// below it that carry no mesh and no camera. `None` where there is no skin and no `root` is given.
    ///
    /// # Errors
    /// No node or several are called `root`; what breaks the format; and those of [`Skeleton::new`].
    pub fn skeleton(&self, root: Option<&str>) -> Result<Option<Rig>> {
        let scene = self.scene()?;
        let joints = match root {
            Some(name) => self.joints_below(&scene, name)?,
            None => self.joints_of_skins()?,
        };
        if joints.is_empty() {
            return Ok(None);
        }
        if joints.len() > usize::from(u16::MAX) {
            return Err(Error::Limit {
                what: "joints".into(),
                needed: joints.len().to_string(),
                limit: u16::MAX.to_string(),
                advice: "joints are 16-bit numbers in files".into(),
            });
        }
        let mut warnings = Vec::new();
        let names = self.bone_names(&joints, &mut warnings)?;
        let mut bone_at = vec![None; scene.parent.len()];
        for (bone, &node) in joints.iter().enumerate() {
            bone_at[node] = Some(bone);
        }
        let above = scene.nearest_above(|n| bone_at[n].is_some());
        let parents: Vec<Option<usize>> =
            joints.iter().map(|&node| above[node].and_then(|above| bone_at[above])).collect();
        let heads: Vec<DVec3> = joints.iter().map(|&node| scene.world[node].w_axis.truncate()).collect();
        let tails = tails(&heads, &parents);
        let bones = names.into_iter().enumerate().map(|(b, name)| Bone {
            name,
            head: heads[b],
            tail: tails[b],
            parent: parents[b],
            deform: true,
        });
        let skeleton = Skeleton::new(bones.collect())?;
        Ok(Some(Rig { skeleton, nodes: JointNodes(joints), warnings }))
    }

    fn joints_of_skins(&self) -> Result<Vec<usize>> {
        let mut joints = Vec::new();
        let mut seen = HashSet::new();
        for skin in self.skins_in_use()? {
            joints.extend(self.skin(skin, "root")?.joints.into_iter().filter(|&j| seen.insert(j)));
        }
        Ok(joints)
    }

    fn joints_below(&self, scene: &Scene, name: &str) -> Result<Vec<usize>> {
        let nodes = self.list("nodes")?;
        let called: Vec<usize> = (0..nodes.len()).filter(|&n| nodes[n]["name"].as_str() == Some(name)).collect();
        let &[top] = called.as_slice() else {
            let what = format!("{} nodes are called \"{name}\"; the skeleton's root must be one", called.len());
            return Err(Error::format("nodes", what));
        };
        let mut joints = Vec::new();
        let mut stack = vec![top];
        while let Some(n) = stack.pop() {
            if ["mesh", "camera"].iter().all(|key| member(&nodes[n], key).is_none()) {
                joints.push(n);
            }
            stack.extend(scene.children[n].iter().rev());
        }
        if joints.is_empty() {
            return Err(Error::NoBones("bones"));
        }
        Ok(joints)
    }

    /// Names for the joints, each used once.
    fn bone_names(&self, joints: &[usize], warnings: &mut Vec<Warning>) -> Result<Vec<String>> {
        let mut own = Vec::with_capacity(joints.len());
        for &node in joints {
            own.push(self.node_name(node)?.filter(|name| !name.is_empty()));
        }
        let mut taken: HashSet<String> = own.iter().flatten().map(|&s| s.to_owned()).collect();
        // How often a name came up: counting on from there keeps thousands of equal names from taking forever.
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut names = Vec::with_capacity(joints.len());
        for (bone, name) in own.into_iter().enumerate() {
            let name = match name {
                None => unused(&taken, |i| if i == 0 { format!("joint_{bone}") } else { format!("joint_{bone}_{i}") }),
                Some(name) => {
                    let count = seen.entry(name).or_insert(0);
                    *count += 1;
                    if *count == 1 {
                        name.to_owned()
                    } else {
                        let new = unused(&taken, |i| format!("{name}_{}", *count + i));
                        let what =
                            format!("Node {} is another joint called \"{name}\"; it is now \"{new}\".", joints[bone]);
                        warnings.push(Warning::new(Code::Renamed, what).bone(&new));
                        new
                    }
                }
            };
            taken.insert(name.clone());
            names.push(name);
        }
        Ok(names)
    }
}

/// The first of a row of names that is not taken.
pub(super) fn unused(taken: &HashSet<String>, name: impl Fn(usize) -> String) -> String {
    (0..).map(name).find(|n| !taken.contains(n)).expect("more names than are taken")
}

/// Where each bone ends. The tree has no cycle: the nodes it comes from were checked.
fn tails(heads: &[DVec3], parents: &[Option<usize>]) -> Vec<DVec3> {
    let mut children = vec![Vec::new(); heads.len()];
    for (bone, parent) in parents.iter().enumerate() {
        if let Some(p) = parent {
            children[*p].push(bone);
        }
    }
    let mut order: Vec<usize> = (0..heads.len()).filter(|&b| parents[b].is_none()).collect();
    let mut next = 0;
    while next < order.len() {
        order.extend(&children[order[next]]);
        next += 1;
    }
    let mut below = vec![1usize; heads.len()];
    for &bone in order.iter().rev() {
        if let Some(p) = parents[bone] {
            below[p] += below[bone];
        }
    }
    let mut tails = heads.to_vec();
    let mut way = vec![DVec3::ZERO; heads.len()];
    for &bone in &order {
        // The direction of the bone that comes in; where it has no length, that of the one before it.
        if let Some(p) = parents[bone] {
            way[bone] = (heads[bone] - heads[p]).try_normalize().unwrap_or(way[p]);
        }
        tails[bone] = match children[bone].as_slice() {
            [] => {
                let length = parents[bone].map_or(0.0, |p| tails[p].distance(heads[p]));
                heads[bone] + way[bone] * (0.5 * length)
            }
            [only] => heads[*only],
            several => heads[straightest(bone, several, heads, way[bone], &below)],
        };
    }
    tails
}

/// The child most in line with the way in; of a bone without one, the child with most joints below it: of hips the
/// spine. Ties go to the first.
fn straightest(bone: usize, children: &[usize], heads: &[DVec3], way: DVec3, below: &[usize]) -> usize {
    let score = |child: usize| {
        let out = (heads[child] - heads[bone]).normalize_or_zero();
        if way == DVec3::ZERO { below[child] as f64 } else { out.dot(way) }
    };
    let mut best = children[0];
    for &child in &children[1..] {
        if score(child) > score(best) {
            best = child;
        }
    }
    best
}
