//! A rigged file ready to be posed exactly as it says (glTF 2.0, sections 3.5 and 3.7.3): its surfaces as they are stored,
//! the joints and nodes that move them, and the node tree from which those get their matrices.

use glam::{DAffine3, DQuat, DVec3, DVec4};

use super::json::{index, member};
use super::mesh_in::{COORDINATES, Part};
use super::scene::{Scene, local_matrix};
use super::{Document, Rig};
use crate::error::{Error, Result};
use crate::io::bvh::Bvh;
use crate::model::{Animation, Influence, Mesh, Palette, Pose, Skeleton, Transform, Warning, Weights};
use crate::skin::split::nearest_rotation;
use crate::skin::{Posed, SkinInput, Surface};

/// What moves vertices: a joint of a skin, or the node of a mesh that has none.
#[derive(Debug, Clone)]
struct Mover {
    node: usize,
    /// From the surface as it is stored to the node's space.
    inverse_bind: DAffine3,
}

/// All meshes of a file as they are stored, and what poses them. A pose is the world matrices of all nodes: get them from
/// [`Rigged::rest`], [`Rigged::animated`] or [`Rigged::moved`], make a palette of them, and give that to a
/// [`SkinInput`] of [`Rigged::weights`] together with [`Rigged::surface`].
///
/// Vertices are numbered as in [`Document::mesh`]. A skinned mesh follows its joints alone; the transform of its own node does
/// not count, those of nodes above the joints do. Other meshes follow their nodes. Morph targets are at rest.
#[derive(Debug, Clone)]
pub struct Rigged {
    mesh: Mesh,
    normals: Option<Vec<DVec3>>,
    tangents: Option<Vec<DVec4>>,
    weights: Weights,
    movers: Vec<Mover>,
    scene: Scene,
    locals: Vec<DAffine3>,
    /// The nodes' own transforms, where they can be animated.
    rests: Vec<Option<Transform>>,
    rig: Option<Rig>,
}

impl Document {
    /// Reads all that is needed to pose the file's meshes.
    ///
    /// # Errors
    /// Those of [`Document::mesh`] and [`Document::skeleton`].
    pub fn rigged(&self) -> Result<(Rigged, Vec<Warning>)> {
        let (placed, mut warnings) = self.mesh(true)?;
        let rig = self.skeleton(None)?;
        warnings.extend(rig.iter().flat_map(|r| r.warnings.iter().cloned()));
        let scene = self.scene()?;
        let nodes = self.list("nodes")?;
        let local = |n| local_matrix(&nodes[n], &self.node_place(n)).map(DAffine3::from_mat4);
        let mut reader = Reader::default();
        for group in self.layout()?.by_node() {
            reader.read(self, group)?;
        }
        let Reader { positions, normals, tangents, weights, movers, with_normals, with_tangents, .. } = reader;
        let stored = Mesh::new(positions, placed.triangles().to_vec())?;
        // Whether the mesh has normals as a whole is settled by the reader of meshes.
        let mesh = if placed.normals().is_some() { stored.with_normals(normals.clone())? } else { stored };
        let rigged = Rigged {
            mesh,
            normals: with_normals.then_some(normals),
            tangents: with_tangents.then_some(tangents),
            weights,
            movers,
            scene,
            locals: (0..nodes.len()).map(local).collect::<Result<_>>()?,
            rests: (0..nodes.len()).map(|n| self.rest_transform(n).ok()).collect(),
            rig,
        };
        Ok((rigged, warnings))
    }
}

/// Gathers the parts of a file in their order.
#[derive(Default)]
struct Reader {
    positions: Vec<DVec3>,
    normals: Vec<DVec3>,
    tangents: Vec<DVec4>,
    with_normals: bool,
    with_tangents: bool,
    weights: Weights,
    movers: Vec<Mover>,
    /// Skins met so far, and the first of their movers.
    skins: Vec<(usize, u32)>,
}

impl Reader {
    /// The parts of one node.
    fn read(&mut self, document: &Document, group: &[Part]) -> Result<()> {
        let node = group[0].node;
        let place = document.node_place(node);
        let skin = index(&document.list("nodes")?[node], "skin", &place)?;
        let skin = skin.map(|s| self.skin(document, s, &place)).transpose()?;
        let mut own = None;
        for part in group {
            self.positions.extend(document.part_positions(part)?);
            let attributes = &document.primitive(part)["attributes"];
            // Parts without keep zeros, which stay zeros.
            if member(attributes, "NORMAL").is_some() {
                self.normals.extend(document.attribute(part, "NORMAL", 3, &COORDINATES, |e| DVec3::from_slice(e))?);
                self.with_normals = true;
            }
            self.normals.resize(self.positions.len(), DVec3::ZERO);
            if member(attributes, "TANGENT").is_some() {
                self.tangents.extend(document.attribute(part, "TANGENT", 4, &COORDINATES, |e| DVec4::from_slice(e))?);
                self.with_tangents = true;
            }
            self.tangents.resize(self.positions.len(), DVec4::ZERO);
            let found = skin.map(|(_, joints)| document.part_influences(part, joints)).transpose()?.flatten();
            match (skin, found) {
                (Some((first, _)), Some(found)) => {
                    for vertex in 0..part.vertices.len() {
                        let mut of = found.of(vertex).peekable();
                        // Empty slots name joint 0: it takes what nothing else moves.
                        let bare = of.peek().is_none().then_some((0, 1.0));
                        let all = of.chain(bare);
                        self.weights.push(all.map(|(j, weight)| Influence { joint: first + j as u32, weight }));
                    }
                }
                _ => {
                    let mover = *own.get_or_insert_with(|| {
                        self.movers.push(Mover { node, inverse_bind: DAffine3::IDENTITY });
                        self.movers.len() as u32 - 1
                    });
                    part.vertices.clone().for_each(|_| self.weights.push([Influence { joint: mover, weight: 1.0 }]));
                }
            }
        }
        Ok(())
    }

    /// The first mover of a skin, and how many there are.
    fn skin(&mut self, document: &Document, number: usize, place: &str) -> Result<(u32, usize)> {
        let skin = document.skin(number, place)?;
        let joints = skin.joints.len();
        if let Some(&(_, first)) = self.skins.iter().find(|(known, _)| *known == number) {
            return Ok((first, joints));
        }
        let first = self.movers.len() as u32;
        self.skins.push((number, first));
        let movers = skin.joints.into_iter().zip(skin.inverse_bind);
        self.movers.extend(movers.map(|(node, m)| Mover { node, inverse_bind: DAffine3::from_mat4(m) }));
        Ok((first, joints))
    }
}

impl Rigged {
    /// The meshes as they are stored: what is to be skinned. Normals and tangents are there where any part has them; those of
    /// other parts are zero.
    pub fn surface(&self) -> Surface<'_> {
        Surface {
            positions: self.mesh.positions(),
            normals: self.normals.as_deref(),
            tangents: self.tangents.as_deref(),
        }
    }

    /// The weights of the palette's matrices (not of the skeleton's bones: see [`Rigged::bone_weights`]).
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The weights as the fast skinning takes them.
    ///
    /// # Errors
    /// [`Error::Limit`] above 65,535 joints of all skins together.
    pub fn skin_input(&self) -> Result<SkinInput> {
        SkinInput::new(&self.weights, self.movers.len())
    }

    /// The joints of all skins, where there is one.
    pub fn skeleton(&self) -> Option<&Skeleton> {
        self.rig.as_ref().map(|rig| &rig.skeleton)
    }

    /// The weights of the skeleton's bones; parts without a skin have none.
    pub fn bone_weights(&self) -> Weights {
        let bones = self.rig.as_ref().map_or(&[][..], |rig| rig.nodes.nodes());
        let mut bone_of = vec![None; self.locals.len()];
        for (bone, &node) in bones.iter().enumerate() {
            bone_of[node] = Some(bone as u32);
        }
        let of_mover: Vec<Option<u32>> = self.movers.iter().map(|m| bone_of[m.node]).collect();
        let mut out = Weights::with_capacity(self.weights.len(), 0);
        for row in self.weights.iter() {
            let named = row.iter().filter_map(|i| of_mover[i.joint as usize].map(|joint| Influence { joint, ..*i }));
            out.push(named);
        }
        out
    }

    /// The world matrices of all nodes as the file holds them.
    pub fn rest(&self) -> Vec<DAffine3> {
        self.scene.world.iter().map(|m| DAffine3::from_mat4(*m)).collect()
    }

    /// The world matrices of all nodes at a time of an animation, in seconds.
    ///
    /// # Errors
    /// [`Error::Joints`] or [`Error::Format`] for an animation of another file.
    pub fn animated(&self, animation: &Animation, time: f64) -> Result<Vec<DAffine3>> {
        let (found, expected) = (animation.joints.len(), self.locals.len());
        if found != expected {
            return Err(Error::Joints { what: "the animation's tracks", found, expected });
        }
        let mut locals = self.locals.clone();
        for (node, tracks) in animation.joints.iter().enumerate() {
            if tracks.translation.is_none() && tracks.rotation.is_none() && tracks.scale.is_none() {
                continue;
            }
            let rest = self.rests[node]
                .ok_or_else(|| Error::format(format!("node {node}"), "it is animated, but its matrix shears"))?;
            locals[node] = tracks.sample(time, &rest).to_affine();
        }
        Ok(self.worlds(&locals))
    }

    /// The world matrices of all nodes at a time of a BVH file, in seconds. Its axes must be those of the rig: see
    /// [`Bvh::axes_for`] and [`Bvh::with_axes`]. Joints turn as [`Bvh::pose`] says; the bone of the file's first joint also
    /// moves as far as that joint has since the first frame, in the rig's unit of length.
    ///
    /// # Errors
    /// [`Error::NoBones`] where the file has no joints.
    pub fn moved(&self, bvh: &Bvh, time: f64) -> Result<Vec<DAffine3>> {
        let rig = self.rig.as_ref().ok_or(Error::NoBones("joints"))?;
        let (skeleton, nodes) = (&rig.skeleton, rig.nodes.nodes());
        let turn_of: Vec<DQuat> =
            nodes.iter().map(|&n| nearest_rotation(&DAffine3::from_mat4(self.scene.world[n]).matrix3)).collect();
        let local = |(bone, turn): (&crate::model::Bone, &DQuat)| {
            Transform::from_rotation(bone.parent.map_or(*turn, |p| turn_of[p].conjugate() * *turn))
        };
        let rest = Pose { locals: skeleton.bones().iter().zip(&turn_of).map(local).collect() };
        let pose = bvh.pose(time, skeleton, &rest)?;
        let mut locals = self.locals.clone();
        for ((&node, before), after) in nodes.iter().zip(&rest.locals).zip(&pose.locals) {
            locals[node] *= DAffine3::from_quat(before.rotation.conjugate() * after.rotation);
        }
        if let Some(bone) = bvh.bones_of_joints(skeleton)[0] {
            let shift = bvh.root_motion(time) * unit_of(bvh, skeleton);
            let node = nodes[bone];
            let above =
                self.scene.parent[node].map_or(DAffine3::IDENTITY, |p| DAffine3::from_mat4(self.scene.world[p]));
            let shift = above.matrix3.inverse() * shift;
            if shift.is_finite() {
                locals[node].translation += shift;
            }
        }
        Ok(self.worlds(&locals))
    }

    fn worlds(&self, locals: &[DAffine3]) -> Vec<DAffine3> {
        let mut worlds = locals.to_vec();
        for &node in &self.scene.parents_first {
            if let Some(parent) = self.scene.parent[node] {
                worlds[node] = worlds[parent] * locals[node];
            }
        }
        worlds
    }

    /// What moves the surface into the pose of these world matrices of all nodes.
    ///
    /// # Errors
    /// [`Error::Joints`] where there is not one a node.
    pub fn palette(&self, worlds: &[DAffine3]) -> Result<Palette> {
        let (found, expected) = (worlds.len(), self.locals.len());
        if found != expected {
            return Err(Error::Joints { what: "world matrices", found, expected });
        }
        let center = |m: &Mover| {
            let center = m.inverse_bind.inverse().translation;
            // Without an inverse there is no place of the joint; the origin serves.
            if center.is_finite() { center } else { DVec3::ZERO }
        };
        Ok(Palette {
            matrices: self.movers.iter().map(|m| worlds[m.node] * m.inverse_bind).collect(),
            centers: self.movers.iter().map(center).collect(),
        })
    }

    /// A posed surface as a mesh in world space, with normals where all parts have them.
    ///
    /// # Errors
    /// [`Error::Length`] for a surface of another file; [`Error::Coordinate`] where the pose is too far out for 32 bits.
    pub fn posed_mesh(&self, posed: &Posed) -> Result<Mesh> {
        let (found, expected) = (posed.positions.len(), self.mesh.positions().len());
        if found != expected {
            return Err(Error::Length { what: "posed positions", found, expected });
        }
        let mesh = Mesh::new(posed.positions.clone(), self.mesh.triangles().to_vec())?;
        match &posed.normals {
            Some(normals) if self.mesh.normals().is_some() => mesh.with_normals(normals.clone()),
            _ => Ok(mesh),
        }
    }

    /// Head and tail of each bone in a pose.
    pub fn bones_at(&self, worlds: &[DAffine3]) -> Vec<[DVec3; 2]> {
        let Some(rig) = &self.rig else { return Vec::new() };
        let place = |(bone, &node): (&crate::model::Bone, &usize)| {
            let offset = DAffine3::from_mat4(self.scene.world[node]).inverse().transform_point3(bone.tail);
            let head = worlds[node].translation;
            let tail = worlds[node].transform_point3(offset);
            [head, if tail.is_finite() { tail } else { head }]
        };
        rig.skeleton.bones().iter().zip(rig.nodes.nodes()).map(place).collect()
    }
}

/// How many of the skeleton's units of length one of the file's is, by the bones that both have; 1 where they have none.
fn unit_of(bvh: &Bvh, skeleton: &Skeleton) -> f64 {
    let bones = skeleton.bones();
    let bone_of = bvh.bones_of_joints(skeleton);
    let (mut ours, mut theirs) = (0.0, 0.0);
    for (j, joint) in bvh.joints.iter().enumerate() {
        if let Some((child, parent)) = bone_of[j].zip(joint.parent.and_then(|p| bone_of[p])) {
            ours += bones[child].head.distance(bones[parent].head);
            theirs += joint.offset.length();
        }
    }
    if ours > 0.0 && theirs > 0.0 { ours / theirs } else { 1.0 }
}
