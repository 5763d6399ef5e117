//! Skeletons: named bones, each a segment from head to tail, in a tree.

use std::collections::HashMap;

use glam::DVec3;

use crate::error::{Error, Result};

/// A bone: the segment from `head` (the joint it turns about) to `tail`. Head and tail may coincide; the bone is then a point.
#[derive(Debug, Clone, PartialEq)]
pub struct Bone {
    pub name: String,
    pub head: DVec3,
    pub tail: DVec3,
    /// Index of the parent bone; the parent may stand later in the list.
    pub parent: Option<usize>,
    /// Whether it may have weights.
    pub deform: bool,
}

/// A skeleton in the mesh's world space. Checked when made: at least one bone that deforms, no name twice, no unknown
/// parent, no cycle, finite positions.
#[derive(Debug, Clone, PartialEq)]
pub struct Skeleton {
    bones: Vec<Bone>,
    rank: Vec<u32>,
}

impl Skeleton {
    /// A skeleton from its bones.
    ///
    /// # Errors
    /// [`Error::NoBones`], [`Error::DuplicateBone`], [`Error::UnknownParent`], [`Error::BoneCycle`],
    /// [`Error::BonePosition`], and [`Error::Limit`] above 65,535 bones (joints are 16-bit numbers in files).
    pub fn new(bones: Vec<Bone>) -> Result<Self> {
        if bones.is_empty() {
            return Err(Error::NoBones("bones"));
        }
        if bones.len() > usize::from(u16::MAX) {
            return Err(Error::Limit {
                what: "bones".into(),
                needed: bones.len().to_string(),
                limit: u16::MAX.to_string(),
                advice: "joints are 16-bit numbers in files".into(),
            });
        }
        if !bones.iter().any(|b| b.deform) {
            return Err(Error::NoBones("bone that deforms"));
        }
        let mut seen = HashMap::with_capacity(bones.len());
        for (i, bone) in bones.iter().enumerate() {
            if seen.insert(bone.name.as_str(), i).is_some() {
                return Err(Error::DuplicateBone(bone.name.clone()));
            }
            for (end, p) in [("head", bone.head), ("tail", bone.tail)] {
                if !p.as_vec3().is_finite() {
                    return Err(Error::BonePosition { bone: bone.name.clone(), end });
                }
            }
            if let Some(p) = bone.parent.filter(|&p| p >= bones.len()) {
                return Err(Error::UnknownParent { bone: bone.name.clone(), parent: p.to_string() });
            }
        }
        check_no_cycle(&bones)?;
        let mut by_name: Vec<usize> = (0..bones.len()).collect();
        by_name.sort_unstable_by(|&a, &b| bones[a].name.as_bytes().cmp(bones[b].name.as_bytes()));
        let mut rank = vec![0; bones.len()];
        for (r, &bone) in by_name.iter().enumerate() {
            rank[bone] = r as u32;
        }
        Ok(Self { bones, rank })
    }

    /// The bones, in the order they were given.
    pub fn bones(&self) -> &[Bone] {
        &self.bones
    }

    /// How many bones there are.
    pub fn len(&self) -> usize {
        self.bones.len()
    }

    /// Never: a skeleton has at least one bone.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Place of a bone when names are sorted by their bytes: what decides every tie, so that the order in which bones
    /// are listed changes no result.
    pub fn rank(&self, bone: usize) -> u32 {
        self.rank[bone]
    }

    /// The bone of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.bones.iter().position(|b| b.name == name)
    }

    /// The bones in an order in which parents come before their children, otherwise as listed.
    pub fn parents_first(&self) -> Vec<usize> {
        let mut children = vec![Vec::new(); self.len()];
        let mut stack = Vec::new();
        for (i, bone) in self.bones.iter().enumerate().rev() {
            match bone.parent {
                Some(p) => children[p].push(i),
                None => stack.push(i),
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some(bone) = stack.pop() {
            order.push(bone);
            stack.extend(&children[bone]);
        }
        order
    }
}

fn check_no_cycle(bones: &[Bone]) -> Result<()> {
    // 0: not seen, 1: on the way up from the bone at hand, 2: known to end in a root.
    let mut state = vec![0u8; bones.len()];
    for start in 0..bones.len() {
        let mut way = Vec::new();
        let mut at = start;
        while state[at] == 0 {
            state[at] = 1;
            way.push(at);
            match bones[at].parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        if state[at] == 1 && bones[at].parent.is_some() {
            let first = way.iter().position(|&b| b == at).unwrap_or(0);
            let mut names: Vec<String> = way[first..].iter().map(|&b| bones[b].name.clone()).collect();
            names.push(bones[at].name.clone());
            return Err(Error::BoneCycle(names));
        }
        for b in way {
            state[b] = 2;
        }
    }
    Ok(())
}
