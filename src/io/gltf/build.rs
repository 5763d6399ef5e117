//! New data for a document: accessors, a document from a plain mesh, animations.

use glam::{DQuat, DVec2, DVec3};
use serde_json::{Value, json};

use super::container::Bytes;
use super::{Document, JointNodes};
use crate::error::{Error, Result};
use crate::io::texture::Split;
use crate::model::Mesh;

/// What a buffer view is bound to, as glTF writes it.
pub(super) const VERTEX_DATA: u32 = 34962;
const INDEX_DATA: u32 = 34963;

/// The rotation of a joint over time, relative to its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct RotationTrack {
    /// The bone's index in its skeleton.
    pub joint: usize,
    /// Seconds from the start, from 0 up, each later than the one before.
    pub times: Vec<f64>,
    /// One a time.
    pub rotations: Vec<DQuat>,
}

/// The place of a joint over time, relative to its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct TranslationTrack {
    /// The bone's index in its skeleton.
    pub joint: usize,
    /// As those of [`RotationTrack`].
    pub times: Vec<f64>,
    /// One a time.
    pub translations: Vec<DVec3>,
}

/// Numbers to be stored as an accessor.
pub(super) struct Column<'a> {
    pub bytes: &'a [u8],
    /// glTF's number for how a number is stored.
    pub component: u32,
    pub kind: &'static str,
    pub count: usize,
    pub target: Option<u32>,
}

impl Document {
    /// A document with one node that shows this mesh, for input that was no glTF file.
    ///
    /// # Errors
    /// [`Error::Limit`] where the data does not fit a file.
    pub fn from_mesh(mesh: &Mesh, name: &str) -> Result<Self> {
        Self::from_meshes(&[(name, mesh)])
    }

    /// A document with a node for each of these meshes, by their names and in their order.
    ///
    /// # Errors
    /// As [`Document::from_mesh`].
    pub fn from_meshes(meshes: &[(&str, &Mesh)]) -> Result<Self> {
        Self::from_all(&meshes.iter().map(|&(name, mesh)| (name, mesh, None)).collect::<Vec<_>>())
    }

    /// The same for meshes with texture coordinates.
    ///
    /// # Errors
    /// As [`Document::from_mesh`].
    pub fn from_textured(meshes: &[(&str, &Split)]) -> Result<Self> {
        let parts = meshes.iter().map(|&(name, split)| {
            let coordinates = split.coordinates.as_slice();
            (name, &split.mesh, (!coordinates.is_empty()).then_some(coordinates))
        });
        Self::from_all(&parts.collect::<Vec<_>>())
    }

    fn from_all(meshes: &[(&str, &Mesh, Option<&[DVec2]>)]) -> Result<Self> {
        let numbers: Vec<usize> = (0..meshes.len()).collect();
        let nodes: Vec<Value> =
            meshes.iter().zip(&numbers).map(|((name, ..), n)| json!({"name": name, "mesh": n})).collect();
        let root = json!({
            "asset": {"version": "2.0", "generator": concat!("skinbind ", env!("CARGO_PKG_VERSION"))},
            "scene": 0,
            "scenes": [{"nodes": numbers}],
            "nodes": nodes,
        });
        let mut document = Self {
            root,
            buffers: Vec::new(),
            chunks: Vec::new(),
            added: None,
            folder: None,
            file_bytes: 0,
            warnings: Vec::new(),
        };
        let size = |mesh: &Mesh| mesh.positions().len() * 32 + mesh.triangles().len() * 12;
        document.reserve(meshes.iter().map(|(_, mesh, _)| size(mesh)).sum())?;
        for (name, mesh, coordinates) in meshes {
            let mut attributes = json!({"POSITION": document.push_positions(mesh.positions())?});
            if let Some(normals) = mesh.normals() {
                attributes["NORMAL"] = document.push_vec3s(&unit_normals(mesh, normals))?.into();
            }
            if let Some(coordinates) = coordinates {
                attributes["TEXCOORD_0"] = document.push_coordinates(coordinates)?.into();
            }
            let indices = document.push_indices(mesh)?;
            document.push(
                "meshes",
                json!({"name": name, "primitives": [{"attributes": attributes, "indices": indices}]}),
            )?;
        }
        Ok(document)
    }

    /// Adds an animation of joints; linear between the times given.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a track without times, with times that do not increase, without one rotation a time, or
    /// for a joint that is not there.
    pub fn add_animation(&mut self, name: &str, joints: &JointNodes, tracks: &[RotationTrack]) -> Result<()> {
        self.add_motion(name, joints, tracks, &[])
    }

    /// The same with joints that move as well.
    ///
    /// # Errors
    /// As [`Document::add_animation`].
    pub fn add_motion(
        &mut self,
        name: &str,
        joints: &JointNodes,
        rotations: &[RotationTrack],
        translations: &[TranslationTrack],
    ) -> Result<()> {
        let (mut samplers, mut channels) = (Vec::new(), Vec::new());
        let mut add = |document: &mut Self, node: usize, path: &str, times: &[f64], output: usize| -> Result<()> {
            let input = document.push_times(times)?;
            channels.push(json!({"sampler": samplers.len(), "target": {"node": node, "path": path}}));
            samplers.push(json!({"input": input, "interpolation": "LINEAR", "output": output}));
            Ok(())
        };
        for track in rotations {
            let valid = track.rotations.iter().all(|q| q.is_finite() && q.length_squared() > 0.0);
            let node = check_track(track.joint, &track.times, track.rotations.len(), valid, joints)?;
            let turns: Vec<[f32; 4]> = track.rotations.iter().map(|q| q.normalize().as_quat().to_array()).collect();
            let output = self.push_keys(bytemuck::cast_slice(&turns), "VEC4", turns.len())?;
            add(self, node, "rotation", &track.times, output)?;
        }
        for track in translations {
            let valid = track.translations.iter().all(|t| t.as_vec3().is_finite());
            let node = check_track(track.joint, &track.times, track.translations.len(), valid, joints)?;
            let places: Vec<[f32; 3]> = track.translations.iter().map(|t| t.as_vec3().to_array()).collect();
            let output = self.push_keys(bytemuck::cast_slice(&places), "VEC3", places.len())?;
            add(self, node, "translation", &track.times, output)?;
        }
        self.push("animations", json!({"name": name, "channels": channels, "samplers": samplers}))?;
        Ok(())
    }

    fn push_keys(&mut self, bytes: &[u8], kind: &'static str, count: usize) -> Result<usize> {
        self.push_column(&Column { bytes, component: 5126, kind, count, target: None })
    }

    fn push_times(&mut self, times: &[f64]) -> Result<usize> {
        let times: Vec<f32> = times.iter().map(|&t| t as f32).collect();
        let number = self.push_keys(bytemuck::cast_slice(&times), "SCALAR", times.len())?;
        let row = self.entry_mut("accessors", number)?;
        row["min"] = json!([f64::from(times[0])]);
        row["max"] = json!([f64::from(times[times.len() - 1])]);
        Ok(number)
    }

    /// Stores points as f32, with the bounds that glTF asks for.
    pub(super) fn push_positions(&mut self, points: &[DVec3]) -> Result<usize> {
        let number = self.push_vec3s(points)?;
        let bound = |pick: fn(f32, f32) -> f32, start: f32| {
            let fold = |axis: usize| points.iter().fold(start, |b, p| pick(b, p[axis] as f32));
            Value::from([0, 1, 2].map(|axis| f64::from(fold(axis))).to_vec())
        };
        let (min, max) = (bound(f32::min, f32::INFINITY), bound(f32::max, f32::NEG_INFINITY));
        let row = self.entry_mut("accessors", number)?;
        row["min"] = min;
        row["max"] = max;
        Ok(number)
    }

    /// Stores vectors of a vertex as f32.
    pub(super) fn push_vec3s(&mut self, vectors: &[DVec3]) -> Result<usize> {
        let numbers: Vec<[f32; 3]> = vectors.iter().map(|v| v.as_vec3().to_array()).collect();
        self.push_column(&Column {
            bytes: bytemuck::cast_slice(&numbers),
            component: 5126,
            kind: "VEC3",
            count: numbers.len(),
            target: Some(VERTEX_DATA),
        })
    }

    /// Stores texture coordinates as f32, turned to glTF's way: there `v` grows downwards.
    fn push_coordinates(&mut self, coordinates: &[DVec2]) -> Result<usize> {
        let numbers: Vec<[f32; 2]> = coordinates.iter().map(|c| [c.x as f32, (1.0 - c.y) as f32]).collect();
        self.push_column(&Column {
            bytes: bytemuck::cast_slice(&numbers),
            component: 5126,
            kind: "VEC2",
            count: numbers.len(),
            target: Some(VERTEX_DATA),
        })
    }

    fn push_indices(&mut self, mesh: &Mesh) -> Result<usize> {
        let corners = mesh.triangles().as_flattened();
        let count = corners.len();
        // 65535 itself is no index: it is kept for restarting strips.
        if mesh.positions().len() < usize::from(u16::MAX) {
            let short: Vec<u16> = corners.iter().map(|&c| c as u16).collect();
            let bytes = bytemuck::cast_slice(&short);
            return self.push_column(&Column {
                bytes,
                component: 5123,
                kind: "SCALAR",
                count,
                target: Some(INDEX_DATA),
            });
        }
        let bytes = bytemuck::cast_slice(corners);
        self.push_column(&Column { bytes, component: 5125, kind: "SCALAR", count, target: Some(INDEX_DATA) })
    }

    /// Adds an accessor with a view of its own; its number.
    pub(super) fn push_column(&mut self, column: &Column) -> Result<usize> {
        // All is little-endian in glTF; bytes come from memory as it is.
        const { assert!(cfg!(target_endian = "little"), "glTF data is little-endian") };
        let view = self.push_view(column.bytes, column.target)?;
        self.push(
            "accessors",
            json!({"bufferView": view, "componentType": column.component, "count": column.count, "type": column.kind}),
        )
    }

    /// Adds bytes and a view of them; its number.
    pub(super) fn push_view(&mut self, bytes: &[u8], target: Option<u32>) -> Result<usize> {
        let (number, buffer) = self.added_buffer()?;
        let at = buffer.append(bytes);
        let length = buffer.get().len();
        self.entry_mut("buffers", number)?["byteLength"] = length.into();
        let mut view = json!({"buffer": number, "byteOffset": at, "byteLength": bytes.len()});
        if let Some(target) = target {
            view["target"] = target.into();
        }
        self.push("bufferViews", view)
    }

    /// Makes room for so many bytes that are about to be added.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.added_buffer()?.1.reserve(bytes);
        Ok(())
    }

    /// The buffer that grows. What the file had stays as it is, byte for byte.
    fn added_buffer(&mut self) -> Result<(usize, &mut Bytes)> {
        let number = match self.added {
            Some(number) => number,
            None => {
                let number = self.push("buffers", json!({"byteLength": 0}))?;
                self.buffers.push(Some(Bytes::new(Vec::new())));
                self.added = Some(number);
                number
            }
        };
        let slot = self.buffers.get_mut(number).and_then(Option::as_mut);
        slot.map(|b| (number, b)).ok_or_else(|| Error::format("buffers", "the added buffer is not there"))
    }
}

/// The node of a track's joint, where the track is in order; `valid`: its values are.
fn check_track(joint: usize, times: &[f64], values: usize, valid: bool, joints: &JointNodes) -> Result<usize> {
    let fault = |value: String, allowed| Err(Error::Parameter { name: "animation track", value, allowed });
    let Some(&node) = joints.nodes().get(joint) else {
        return fault(format!("for joint {joint}"), "its joint must be in the skeleton");
    };
    if times.is_empty() || times.len() != values {
        return fault(format!("{} times, {values} values", times.len()), "it needs one value a time and at least one");
    }
    let times: Vec<f32> = times.iter().map(|&t| t as f32).collect();
    if !times.iter().all(|t| t.is_finite() && *t >= 0.0) || !times.is_sorted_by(|a, b| a < b) {
        return fault("with times out of order".into(), "times must start from 0 or later and increase (as f32)");
    }
    if !valid {
        return fault("with a value that is none".into(), "values must be finite and rotations not 0");
    }
    Ok(node)
}

/// glTF wants unit length. Where a normal has none, the faces around the vertex give one.
fn unit_normals(mesh: &Mesh, normals: &[DVec3]) -> Vec<DVec3> {
    let mut unit: Vec<DVec3> = normals.iter().map(|n| n.normalize_or_zero()).collect();
    if unit.contains(&DVec3::ZERO) {
        for (n, around) in unit.iter_mut().zip(mesh.smooth_normals()).filter(|(n, _)| **n == DVec3::ZERO) {
            *n = around;
        }
    }
    unit
}
