//! Skins and skin weights that a file has already (glTF 2.0, section 3.7.3).

use glam::DMat4;

use super::Document;
use super::accessor::Component;
use super::json::{index, indices, member, text};
use super::mesh_in::Part;
use super::scene::affine;
use crate::error::{Error, Result};
use crate::model::{Influence, Weights};

/// A skin: the nodes it names as joints, and what takes a vertex into each joint's space.
#[derive(Debug, Clone)]
pub(super) struct Skin {
    pub joints: Vec<usize>,
    pub inverse_bind: Vec<DMat4>,
}

/// A primitive's influences, set after set; joints are indices into its skin.
#[derive(Debug, Clone)]
pub(super) struct PartInfluences {
    sets: Vec<Set>,
}

/// One JOINTS_n and WEIGHTS_n.
#[derive(Debug, Clone)]
struct Set {
    joints: Vec<[u16; 4]>,
    weights: Vec<[f64; 4]>,
}

impl PartInfluences {
    /// The influences of a vertex of more than nothing.
    pub fn of(&self, vertex: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.sets.iter().flat_map(move |set| {
            (0..4).map(move |i| (usize::from(set.joints[vertex][i]), set.weights[vertex][i])).filter(|&(_, w)| w > 0.0)
        })
    }
}

impl Document {
    /// The skin of this number, checked against the nodes.
    pub(super) fn skin(&self, number: usize, used_by: &str) -> Result<Skin> {
        let row = self.entry("skins", number, used_by)?;
        let place = format!("skin {number}");
        let nodes = self.list("nodes")?.len();
        let joints = indices(row, "joints", nodes, &place)?;
        if joints.is_empty() {
            return Err(Error::format(place, "it has no joints"));
        }
        let mut seen = vec![false; nodes];
        if let Some(&twice) = joints.iter().find(|&&j| std::mem::replace(&mut seen[j], true)) {
            return Err(Error::format(place, format!("{} is a joint twice", self.node_place(twice))));
        }
        let inverse_bind = match index(row, "inverseBindMatrices", &place)? {
            None => vec![DMat4::IDENTITY; joints.len()],
            Some(number) => self.inverse_bind(number, joints.len(), &place)?,
        };
        Ok(Skin { joints, inverse_bind })
    }

    fn inverse_bind(&self, number: usize, joints: usize, place: &str) -> Result<Vec<DMat4>> {
        let accessor = self.accessor(number, place)?;
        accessor.expect(16, &[Component::F32], "inverse bind matrices")?;
        if accessor.count < joints {
            let what = format!("{} inverse bind matrices for {joints} joints", accessor.count);
            return Err(Error::format(place, what));
        }
        let mut matrices = accessor.read(|e| affine(DMat4::from_cols_slice(e)))?;
        matrices.truncate(joints);
        match matrices.iter().position(|m| !m.is_finite()) {
            Some(bad) => Err(Error::format(place, format!("inverse bind matrix {bad} is not finite"))),
            None => Ok(matrices),
        }
    }

    /// A primitive's influences; `None` where it has none. `joints` is the length of its skin.
    pub(super) fn part_influences(&self, part: &Part, joints: usize) -> Result<Option<PartInfluences>> {
        let place = part.place();
        let attributes = &self.primitive(part)["attributes"];
        let mut sets = Vec::new();
        loop {
            let [j, w] = ["JOINTS", "WEIGHTS"].map(|kind| format!("{kind}_{}", sets.len()));
            match (member(attributes, &j), member(attributes, &w)) {
                (None, None) => break,
                (Some(_), Some(_)) => sets.push(Set {
                    joints: self.attribute(part, &j, 4, &[Component::U8, Component::U16], |e| {
                        [0, 1, 2, 3].map(|i| e[i] as u16)
                    })?,
                    weights: self.attribute(part, &w, 4, &[Component::F32, Component::U8, Component::U16], |e| {
                        [0, 1, 2, 3].map(|i| e[i])
                    })?,
                }),
                _ => return Err(Error::format(place, format!("{j} and {w} do not come together"))),
            }
        }
        if sets.is_empty() {
            return Ok(None);
        }
        let influences = PartInfluences { sets };
        for vertex in 0..part.vertices.len() {
            let whole = part.vertices.start + vertex;
            for weights in influences.sets.iter().map(|set| set.weights[vertex]) {
                if let Some(bad) = weights.iter().find(|w| !w.is_finite() || **w < 0.0) {
                    return Err(Error::format(place, format!("vertex {whole} (0-based) has a weight of {bad}")));
                }
            }
            if let Some((bad, _)) = influences.of(vertex).find(|&(j, _)| j >= joints) {
                let what = format!("vertex {whole} (0-based) names joint {bad}, but its skin has {joints} joints");
                return Err(Error::format(place, what));
            }
        }
        Ok(Some(influences))
    }

    /// The names of the joints of all skins in use, and the weights of every vertex of [`Document::mesh`] for them.
    /// `None` where no mesh has a skin. Vertices without a skin have no influences.
    ///
    /// # Errors
    /// What breaks the format, with the vertex.
    pub fn weights(&self) -> Result<Option<(Vec<String>, Weights)>> {
        let Some(rig) = self.skeleton(None)? else { return Ok(None) };
        let layout = self.layout()?;
        let nodes = self.list("nodes")?;
        let mut bone_of = vec![0; nodes.len()];
        for (bone, &node) in rig.nodes.nodes().iter().enumerate() {
            bone_of[node] = bone as u32;
        }
        let mut weights = Weights::with_capacity(layout.vertices, 0);
        for group in layout.by_node() {
            let place = self.node_place(group[0].node);
            let skin = index(&nodes[group[0].node], "skin", &place)?.map(|s| self.skin(s, &place)).transpose()?;
            let joints = skin.as_ref().map_or(&[][..], |s| &s.joints);
            for part in group {
                let found = skin.as_ref().map(|s| self.part_influences(part, s.joints.len())).transpose()?.flatten();
                for vertex in 0..part.vertices.len() {
                    let of = found.iter().flat_map(|f| f.of(vertex));
                    weights.push(of.map(|(j, weight)| Influence { joint: bone_of[joints[j]], weight }));
                }
            }
        }
        let names = rig.skeleton.bones().iter().map(|b| b.name.clone()).collect();
        Ok(Some((names, weights)))
    }

    /// The skins that nodes with a mesh use, in the order of the nodes; where none does, all skins of the file.
    pub(super) fn skins_in_use(&self) -> Result<Vec<usize>> {
        let mut used = Vec::new();
        for (n, node) in self.list("nodes")?.iter().enumerate() {
            let place = self.node_place(n);
            if member(node, "mesh").is_some()
                && let Some(skin) = index(node, "skin", &place)?
            {
                self.entry("skins", skin, &place)?;
                if !used.contains(&skin) {
                    used.push(skin);
                }
            }
        }
        if used.is_empty() {
            used.extend(0..self.list("skins")?.len());
        }
        Ok(used)
    }

    /// A node's own name.
    pub(super) fn node_name(&self, node: usize) -> Result<Option<&str>> {
        let place = format!("node {node}");
        text(self.entry("nodes", node, &place)?, "name", &place)
    }
}
