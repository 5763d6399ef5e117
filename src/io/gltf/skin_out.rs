//! Adds a skin to a document: joints, inverse bind matrices, JOINTS_n and WEIGHTS_n (glTF 2.0, section 3.7.3).
//!
//! The stored positions stay as they are. A skinned mesh' node transform does not count, so what places the mesh in the
//! world goes into the inverse bind matrices instead: `inverse(world of the joint) * world of the mesh`.

use std::collections::{HashMap, HashSet};

use glam::{DMat4, DQuat, DVec3};
use serde_json::{Map, Value, json};

use super::build::{Column, VERTEX_DATA};
use super::json::{list_mut, object_mut};
use super::mesh_in::{DRACO, Layout, Part};
use super::pack::{SET, pack};
use super::rest::Placement;
use super::scene::{Scene, affine};
use super::skeleton_in::unused;
use super::{Document, JointNodes};
use crate::error::{Error, Result};
use crate::model::{Pose, Skeleton, Weights};

/// A mesh node with its new mesh, to be put in place when all are made.
struct Bound {
    node: usize,
    mesh: usize,
    value: Value,
    /// Its primitives of points and lines, which a skin would tear from their place.
    left_out: Option<Value>,
    /// What takes stored positions to the world.
    placed: DMat4,
}

impl Document {
    /// Binds all meshes to a skeleton. `weights` has one entry for each vertex of [`Document::mesh`], its joints are
    /// indices of the skeleton's bones. `joints` are nodes of this document that are the bones already; without them,
    /// nodes are made below one common root in the scenes that show the meshes. Old skins of the meshes are replaced.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Check`] where the weights do not fit; [`Error::Format`] for a joint without an inverse.
    /// Weights that do not fit leave the document unbound; after any other error it is half changed and to be dropped.
    pub fn add_skin(
        &mut self,
        skeleton: &Skeleton,
        joints: Option<&JointNodes>,
        weights: &Weights,
    ) -> Result<JointNodes> {
        let scene = self.scene()?;
        let layout = self.layout()?;
        if weights.len() != layout.vertices {
            return Err(Error::Length { what: "weights", found: weights.len(), expected: layout.vertices });
        }
        let inverse = match joints {
            Some(nodes) => self.inverse_worlds(skeleton, nodes, &scene)?,
            None => skeleton.bones().iter().map(|b| DMat4::from_translation(-b.head)).collect(),
        };
        let bound = self.bind_meshes(&scene, &layout, skeleton.len(), weights)?;
        let mesh_nodes: Vec<usize> = bound.iter().map(|b| b.node).collect();
        let (joints, root) = match joints {
            Some(nodes) => self.use_joints(skeleton, nodes, &scene)?,
            None => self.make_joints(skeleton, &Pose::rest(skeleton), &scene, &mesh_nodes)?,
        };
        self.put_skins(bound, &joints, root, &inverse)?;
        Ok(joints)
    }

    fn inverse_worlds(&self, skeleton: &Skeleton, joints: &JointNodes, scene: &Scene) -> Result<Vec<DMat4>> {
        let (found, expected) = (joints.nodes().len(), skeleton.len());
        if found != expected {
            return Err(Error::Length { what: "joint nodes", found, expected });
        }
        let invert = |&node: &usize| {
            self.entry("nodes", node, "joints")?;
            let inverse = scene.world[node].inverse();
            if scene.world[node].determinant() != 0.0 && inverse.as_mat4().is_finite() {
                return Ok(affine(inverse));
            }
            Err(Error::format(self.node_place(node), "a joint whose world transform has no inverse (a scale of 0?)"))
        };
        joints.nodes().iter().map(invert).collect()
    }

    /// The meshes of all nodes with their new attributes.
    fn bind_meshes(&mut self, scene: &Scene, layout: &Layout, bones: usize, weights: &Weights) -> Result<Vec<Bound>> {
        let sets = weights.most_influences().div_ceil(SET).max(1);
        let joint_size = if bones < 256 { 1 } else { 2 };
        // With some room for inverse bind matrices and alignment: growing later would copy and double it all.
        let around = bones * 64 + layout.parts.len() * sets * 8;
        self.reserve(layout.vertices * sets * SET * (joint_size + 4) + around)?;
        let mut bound = Vec::new();
        for group in layout.by_node() {
            let Part { node, mesh, .. } = group[0];
            let placement = self.placement(scene, group)?;
            let mut value = self.root["meshes"][mesh].clone();
            for part in group {
                let primitive = &mut value["primitives"][part.primitive];
                if let Placement::Posed { .. } = placement {
                    let matrices = self.vertex_matrices(&placement, part)?;
                    self.write_posed(part, &matrices, primitive)?;
                }
                self.write_influences(part, weights, bones, sets, primitive)?;
            }
            let left_out = split_off(&mut value, group)?;
            let placed = match placement {
                Placement::Affine(m) => m,
                Placement::Posed { .. } => DMat4::IDENTITY,
            };
            bound.push(Bound { node, mesh, value, left_out, placed });
        }
        Ok(bound)
    }

    /// Gives `primitive`, a copy of the part's, the new influences in place of all old ones.
    fn write_influences(
        &mut self,
        part: &Part,
        weights: &Weights,
        bones: usize,
        sets: usize,
        primitive: &mut Value,
    ) -> Result<()> {
        let vertices = part.vertices.len();
        let mut joint_columns = vec![Vec::<[u16; SET]>::with_capacity(vertices); sets];
        let mut weight_columns = vec![Vec::<[f32; SET]>::with_capacity(vertices); sets];
        let (mut joints, mut values) = (vec![0; sets * SET], vec![0.0; sets * SET]);
        for vertex in part.vertices.clone() {
            pack(vertex, weights.of(vertex), bones, &mut joints, &mut values)?;
            for set in 0..sets {
                let at = set * SET;
                joint_columns[set].push([0, 1, 2, 3].map(|i| joints[at + i]));
                weight_columns[set].push([0, 1, 2, 3].map(|i| values[at + i]));
            }
        }
        let attributes = object_mut(primitive, "attributes", &part.place())?;
        attributes.retain(|name, _| !name.starts_with("JOINTS_") && !name.starts_with("WEIGHTS_"));
        for (set, (joints, values)) in joint_columns.into_iter().zip(weight_columns).enumerate() {
            attributes.insert(format!("JOINTS_{set}"), self.push_joints(&joints, bones)?.into());
            let column = Column {
                bytes: bytemuck::cast_slice(&values),
                component: 5126,
                kind: "VEC4",
                count: vertices,
                target: Some(VERTEX_DATA),
            };
            attributes.insert(format!("WEIGHTS_{set}"), self.push_column(&column)?.into());
        }
        // The compressed copy has its vertices in an order of its own; the plain one, which was read, stays.
        if let Some(extensions) = primitive.get_mut("extensions").and_then(Value::as_object_mut) {
            extensions.shift_remove(DRACO);
        }
        Ok(())
    }

    fn push_joints(&mut self, joints: &[[u16; SET]], bones: usize) -> Result<usize> {
        let short: Vec<[u8; SET]>;
        let (bytes, component) = if bones < 256 {
            short = joints.iter().map(|set| set.map(|j| j as u8)).collect();
            (bytemuck::cast_slice(&short), 5121)
        } else {
            (bytemuck::cast_slice(joints), 5123)
        };
        self.push_column(&Column { bytes, component, kind: "VEC4", count: joints.len(), target: Some(VERTEX_DATA) })
    }

    /// Adds nodes for the bones of a skeleton as they stand in a pose, to be the joints of [`Document::add_skin`]: for rigs
    /// that give their joints rest rotations.
    ///
    /// # Errors
    /// [`Error::Joints`] where the pose does not fit the skeleton.
    pub fn add_joints(&mut self, skeleton: &Skeleton, rest: &Pose) -> Result<JointNodes> {
        let scene = self.scene()?;
        let shown: Vec<usize> = (0..scene.parent.len()).collect();
        Ok(self.make_joints(skeleton, rest, &scene, &shown)?.0)
    }

    /// Nodes for the bones below one root: the root bone, or a node over several.
    fn make_joints(
        &mut self,
        skeleton: &Skeleton,
        rest: &Pose,
        scene: &Scene,
        shown: &[usize],
    ) -> Result<(JointNodes, usize)> {
        let bones = skeleton.bones();
        if rest.locals.len() != bones.len() {
            let (found, expected) = (rest.locals.len(), bones.len());
            return Err(Error::Joints { what: "the rest pose's transforms", found, expected });
        }
        let first = self.list("nodes")?.len();
        let mut children = vec![Vec::new(); bones.len()];
        let mut roots = Vec::new();
        for (b, bone) in bones.iter().enumerate() {
            match bone.parent {
                Some(p) => children[p].push(first + b),
                None => roots.push(first + b),
            }
        }
        for ((bone, local), children) in bones.iter().zip(&rest.locals).zip(children) {
            let mut node = json!({"name": bone.name, "translation": local.translation.to_array()});
            if local.rotation != DQuat::IDENTITY {
                node["rotation"] = json!(local.rotation.to_array());
            }
            if local.scale != DVec3::ONE {
                node["scale"] = json!(local.scale.to_array());
            }
            if !children.is_empty() {
                node["children"] = children.into();
            }
            self.push("nodes", node)?;
        }
        let root = match roots.as_slice() {
            &[only] => only,
            _ => self.push("nodes", json!({"name": root_name(skeleton), "children": roots}))?,
        };
        let tops = scene.tops();
        let shown: HashSet<usize> = shown.iter().map(|&n| tops[n]).collect();
        self.show(root, &shown)?;
        Ok((JointNodes((first..first + bones.len()).collect()), root))
    }

    /// Adds a root node to the scenes that show one of these, or where none does, to the first.
    fn show(&mut self, root: usize, beside: &HashSet<usize>) -> Result<()> {
        let scenes = list_mut(&mut self.root, "scenes", "root")?;
        let shows = |scene: &Value| {
            let nodes = scene["nodes"].as_array();
            nodes.is_some_and(|n| n.iter().any(|v| v.as_u64().is_some_and(|v| beside.contains(&(v as usize)))))
        };
        let mut at: Vec<usize> = (0..scenes.len()).filter(|&s| shows(&scenes[s])).collect();
        if at.is_empty() {
            if scenes.is_empty() {
                scenes.push(json!({"nodes": beside.iter().collect::<std::collections::BTreeSet<_>>()}));
            }
            at.push(0);
        }
        for scene in at {
            list_mut(&mut scenes[scene], "nodes", &format!("scene {scene}"))?.push(root.into());
        }
        Ok(())
    }

    /// Makes nodes of the document the joints: their names become those of the bones, and they get a common root.
    fn use_joints(&mut self, skeleton: &Skeleton, joints: &JointNodes, scene: &Scene) -> Result<(JointNodes, usize)> {
        for (bone, &node) in skeleton.bones().iter().zip(joints.nodes()) {
            if self.node_name(node)? != Some(&bone.name) {
                self.entry_mut("nodes", node)?["name"] = bone.name.clone().into();
            }
        }
        let tops = scene.tops();
        let above: std::collections::BTreeSet<usize> = joints.nodes().iter().map(|&n| tops[n]).collect();
        if let (Some(&only), 1) = (above.first(), above.len()) {
            return Ok((joints.clone(), only));
        }
        let root = self.push("nodes", json!({"name": root_name(skeleton), "children": above}))?;
        let moved: HashSet<usize> = above.into_iter().collect();
        self.show(root, &moved)?;
        for scene in list_mut(&mut self.root, "scenes", "root")? {
            if let Some(nodes) = scene.get_mut("nodes").and_then(Value::as_array_mut) {
                nodes.retain(|v| v.as_u64().is_none_or(|v| !moved.contains(&(v as usize))));
            }
        }
        Ok((joints.clone(), root))
    }

    /// Puts the new meshes and skins in place: a mesh' first node keeps its number, others get copies.
    fn put_skins(&mut self, bound: Vec<Bound>, joints: &JointNodes, root: usize, inverse: &[DMat4]) -> Result<()> {
        let (mut meshes, mut skins) = (HashSet::new(), HashSet::new());
        let mut matrices: HashMap<[u64; 16], usize> = HashMap::new();
        for Bound { node, mesh, value, left_out, placed } in bound {
            let key = placed.to_cols_array().map(f64::to_bits);
            let number = match matrices.get(&key) {
                Some(&number) => number,
                None => *matrices.entry(key).or_insert(self.push_inverse_bind(inverse, placed)?),
            };
            let skin = json!({"inverseBindMatrices": number, "joints": joints.nodes(), "skeleton": root});
            // The old skin's slot is used again, so that no stale skin stays behind.
            let old = self.root["nodes"][node]["skin"].as_u64().map(|s| s as usize);
            let skin = match old.filter(|&s| skins.insert(s)) {
                Some(old) => {
                    let row = self.entry_mut("skins", old)?;
                    if let Some(name) = row.get("name").cloned() {
                        *row = skin;
                        row["name"] = name;
                    } else {
                        *row = skin;
                    }
                    old
                }
                None => {
                    let new = self.push("skins", skin)?;
                    skins.insert(new);
                    new
                }
            };
            let mesh = if meshes.insert(mesh) {
                *self.entry_mut("meshes", mesh)? = value;
                mesh
            } else {
                self.push("meshes", value)?
            };
            if let Some(left_out) = left_out {
                let mesh = self.push("meshes", left_out)?;
                let child = self.push("nodes", json!({"mesh": mesh}))?;
                list_mut(self.entry_mut("nodes", node)?, "children", "node")?.push(child.into());
            }
            let row = self.entry_mut("nodes", node)?;
            row["mesh"] = mesh.into();
            row["skin"] = skin.into();
        }
        Ok(())
    }

    fn push_inverse_bind(&mut self, inverse: &[DMat4], placed: DMat4) -> Result<usize> {
        let matrices: Vec<[f32; 16]> = inverse.iter().map(|m| affine(*m * placed).as_mat4().to_cols_array()).collect();
        if let Some(bad) = matrices.iter().position(|m| !m.iter().all(|x| x.is_finite())) {
            let what = "its inverse bind matrix is too large for 32-bit numbers";
            return Err(Error::format(format!("joint {bad}"), what));
        }
        self.push_column(&Column {
            bytes: bytemuck::cast_slice(&matrices),
            component: 5126,
            kind: "MAT4",
            count: matrices.len(),
            target: None,
        })
    }
}

/// A name for a node over several root bones that no bone has.
fn root_name(skeleton: &Skeleton) -> String {
    let taken = skeleton.bones().iter().map(|b| b.name.clone()).collect();
    unused(&taken, |i| if i == 0 { "skeleton".into() } else { format!("skeleton_{i}") })
}

/// Takes the primitives that are no triangles out of a mesh; a mesh of their own, where there are any.
fn split_off(mesh: &mut Value, group: &[Part]) -> Result<Option<Value>> {
    let kept: HashSet<usize> = group.iter().map(|p| p.primitive).collect();
    let all = std::mem::take(list_mut(mesh, "primitives", "mesh")?);
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for (number, primitive) in all.into_iter().enumerate() {
        if kept.contains(&number) { ours.push(primitive) } else { others.push(primitive) }
    }
    mesh["primitives"] = ours.into();
    if others.is_empty() {
        return Ok(None);
    }
    let mut rest = Map::new();
    for key in ["name", "weights"] {
        if let Some(value) = mesh.get(key) {
            rest.insert(key.into(), value.clone());
        }
    }
    rest.insert("primitives".into(), others.into());
    Ok(Some(Value::Object(rest)))
}
