//! A file frozen in a pose: meshes without skins and animations, with all that says how they look.

use std::collections::HashMap;

use glam::{DAffine3, DMat4, DVec4};
use serde_json::{Map, Value, json};

use super::build::{Column, VERTEX_DATA};
use super::json::{list, member, object_mut};
use super::mesh_in::{DRACO, Part};
use super::{Document, Rigged, leaves_geometry};
use crate::error::Result;
use crate::model::{Code, Transform, Warning};
use crate::skin::Posed;

impl Document {
    /// A copy of this document in a pose: one node for each that carries a mesh, all of them roots of their scenes. Skinned
    /// meshes get the posed positions, normals and tangents in world space, other meshes stay as they are under their
    /// node's posed matrix. Materials, textures, texture coordinates and colours stay; skins, joints, animations, cameras
    /// and extensions that could name nodes go. Morph targets of skinned meshes go too, with a warning.
    ///
    /// `worlds` and `posed` are the pose and what skinning made of it, both of `rigged`, which was read from here.
    ///
    /// # Errors
    /// As [`Rigged::posed_mesh`], and what breaks the format.
    pub fn posed(&self, rigged: &Rigged, worlds: &[DAffine3], posed: &Posed) -> Result<(Document, Vec<Warning>)> {
        // Checks number and size of the coordinates.
        rigged.posed_mesh(posed)?;
        let layout = self.layout()?;
        let parts_of: HashMap<usize, &[Part]> = layout.by_node().map(|group| (group[0].node, group)).collect();
        let mut copy = self.clone();
        let mut frozen = Frozen { posed, left_out: 0, meshes: Vec::new(), kept: HashMap::new() };
        let (mut nodes, mut number_of) = (Vec::new(), HashMap::new());
        for (n, row) in self.list("nodes")?.iter().enumerate() {
            let Some(mesh) = member(row, "mesh").and_then(Value::as_u64).map(|m| m as usize) else { continue };
            let mut node = Map::new();
            for key in ["name", "extras"] {
                node.extend(row.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            let skinned = member(row, "skin").is_some();
            if !skinned && Transform::from_affine(&worlds[n]).is_some() {
                node.insert("mesh".into(), frozen.keep(self, mesh)?.into());
                if worlds[n] != DAffine3::IDENTITY {
                    node.insert("matrix".into(), DMat4::from(worlds[n]).to_cols_array().to_vec().into());
                }
                node.extend(row.get("weights").map(|value| ("weights".to_owned(), value.clone())));
            } else if let Some(group) = parts_of.get(&n) {
                node.insert("mesh".into(), frozen.bake(&mut copy, group)?.into());
            } else {
                continue;
            }
            number_of.insert(n, nodes.len());
            nodes.push(Value::Object(node));
        }
        copy.put_frozen(self, nodes, &number_of, std::mem::take(&mut frozen.meshes))?;
        let mut warnings = Vec::new();
        if frozen.left_out > 0 {
            let what = format!("{} morph targets of skinned meshes are left out of the posed copy.", frozen.left_out);
            warnings.push(Warning::new(Code::FileIgnored, what));
        }
        Ok((copy, warnings))
    }

    /// Replaces nodes, meshes and scenes, and takes out what names the nodes that were.
    fn put_frozen(
        &mut self,
        from: &Document,
        nodes: Vec<Value>,
        number_of: &HashMap<usize, usize>,
        meshes: Vec<Value>,
    ) -> Result<()> {
        let tops = from.scene()?.tops();
        for (s, row) in from.list("scenes")?.iter().enumerate() {
            let roots = super::json::indices(row, "nodes", tops.len(), &format!("scene {s}"))?;
            let mut shown: Vec<usize> =
                number_of.iter().filter(|(old, _)| roots.contains(&tops[**old])).map(|(_, &new)| new).collect();
            shown.sort_unstable();
            let scene = self.entry_mut("scenes", s)?;
            if let Some(scene) = scene.as_object_mut() {
                // A scene may not have an empty list.
                scene.shift_remove("nodes");
                if !shown.is_empty() {
                    scene.insert("nodes".into(), shown.into());
                }
            }
        }
        self.root["nodes"] = nodes.into();
        self.root["meshes"] = meshes.into();
        let root = object_mut_root(&mut self.root);
        for key in ["skins", "animations", "cameras"] {
            root.shift_remove(key);
        }
        if let Some(extensions) = root.get_mut("extensions").and_then(Value::as_object_mut) {
            extensions.retain(|name, _| leaves_geometry(name));
        }
        if let Some(used) = root.get_mut("extensionsUsed").and_then(Value::as_array_mut) {
            used.retain(|name| name.as_str().is_some_and(leaves_geometry));
        }
        for (key, empty) in [("extensions", json!({})), ("extensionsUsed", json!([]))] {
            if root.get(key) == Some(&empty) {
                root.shift_remove(key);
            }
        }
        Ok(())
    }
}

fn object_mut_root(root: &mut Value) -> &mut Map<String, Value> {
    root.as_object_mut().expect("the root was an object when it was read")
}

/// The meshes of the copy in the making.
struct Frozen<'a> {
    posed: &'a Posed,
    /// Morph targets.
    left_out: usize,
    meshes: Vec<Value>,
    /// New numbers of meshes that stay as they are.
    kept: HashMap<usize, usize>,
}

impl Frozen<'_> {
    fn keep(&mut self, from: &Document, mesh: usize) -> Result<usize> {
        let value = from.entry("meshes", mesh, "a node")?;
        Ok(*self.kept.entry(mesh).or_insert_with(|| {
            self.meshes.push(value.clone());
            self.meshes.len() - 1
        }))
    }

    /// A mesh with the posed vertices of its triangle primitives.
    fn bake(&mut self, copy: &mut Document, group: &[Part]) -> Result<usize> {
        let mut value = copy.root["meshes"][group[0].mesh].clone();
        let mut primitives = Vec::new();
        for part in group {
            let mut primitive = copy.primitive(part).clone();
            self.left_out += list(&primitive, "targets", &part.place())?.len();
            let range = part.vertices.clone();
            let attributes = object_mut(&mut primitive, "attributes", &part.place())?;
            attributes.retain(|name, _| !name.starts_with("JOINTS_") && !name.starts_with("WEIGHTS_"));
            attributes.insert("POSITION".into(), copy.push_positions(&self.posed.positions[range.clone()])?.into());
            if let (true, Some(normals)) = (attributes.contains_key("NORMAL"), &self.posed.normals) {
                attributes.insert("NORMAL".into(), copy.push_vec3s(&normals[range.clone()])?.into());
            }
            if let (true, Some(tangents)) = (attributes.contains_key("TANGENT"), &self.posed.tangents) {
                attributes.insert("TANGENT".into(), push_vec4s(copy, &tangents[range])?.into());
            }
            if let Some(primitive) = primitive.as_object_mut() {
                primitive.shift_remove("targets");
            }
            if let Some(extensions) = primitive.get_mut("extensions").and_then(Value::as_object_mut) {
                extensions.shift_remove(DRACO);
            }
            primitives.push(primitive);
        }
        if let Some(mesh) = value.as_object_mut() {
            mesh.shift_remove("weights");
            mesh.insert("primitives".into(), primitives.into());
        }
        self.meshes.push(value);
        Ok(self.meshes.len() - 1)
    }
}

fn push_vec4s(copy: &mut Document, vectors: &[DVec4]) -> Result<usize> {
    let numbers: Vec<[f32; 4]> = vectors.iter().map(|v| v.as_vec4().to_array()).collect();
    copy.push_column(&Column {
        bytes: bytemuck::cast_slice(&numbers),
        component: 5126,
        kind: "VEC4",
        count: numbers.len(),
        target: Some(VERTEX_DATA),
    })
}
