//! Small glTF files made by hand, for the tests that read them.
#![allow(dead_code)]

use serde_json::{Value, json};
use skinbind::glam::DVec3;
use skinbind::io::gltf::Document;

pub const U8: u32 = 5121;
pub const U16: u32 = 5123;
pub const U32: u32 = 5125;
pub const F32: u32 = 5126;

/// A file in the making: its JSON and its one buffer.
#[derive(Debug, Clone)]
pub struct Doc {
    pub root: Value,
    pub bin: Vec<u8>,
}

impl Doc {
    /// With these nodes, all roots of the one scene unless they are children.
    pub fn new(nodes: Value) -> Self {
        let children: Vec<u64> = nodes
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|n| n["children"].as_array().into_iter().flatten().filter_map(Value::as_u64))
            .collect();
        let roots: Vec<u64> = (0..nodes.as_array().unwrap().len() as u64).filter(|n| !children.contains(n)).collect();
        let root = json!({
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": roots}],
            "nodes": nodes,
            "meshes": [],
            "accessors": [],
            "bufferViews": [],
        });
        Self { root, bin: Vec::new() }
    }

    pub fn push(&mut self, key: &str, value: Value) -> usize {
        let list = self.root[key].as_array_mut().unwrap();
        list.push(value);
        list.len() - 1
    }

    pub fn view(&mut self, bytes: &[u8], stride: Option<usize>) -> usize {
        self.bin.resize(self.bin.len().next_multiple_of(4), 0);
        let mut view = json!({"buffer": 0, "byteOffset": self.bin.len(), "byteLength": bytes.len()});
        if let Some(stride) = stride {
            view["byteStride"] = stride.into();
        }
        self.bin.extend(bytes);
        self.push("bufferViews", view)
    }

    pub fn column(&mut self, bytes: &[u8], component: u32, kind: &str, count: usize) -> usize {
        let view = self.view(bytes, None);
        self.push("accessors", json!({"bufferView": view, "componentType": component, "type": kind, "count": count}))
    }

    pub fn positions(&mut self, points: &[[f32; 3]]) -> usize {
        let number = self.column(bytemuck::cast_slice(points), F32, "VEC3", points.len());
        let fold = |pick: fn(f32, f32) -> f32| {
            [0, 1, 2].map(|axis| f64::from(points.iter().map(|p| p[axis]).reduce(pick).unwrap())).to_vec()
        };
        let (min, max) = (fold(f32::min), fold(f32::max));
        self.root["accessors"][number]["min"] = min.into();
        self.root["accessors"][number]["max"] = max.into();
        number
    }

    pub fn indices(&mut self, corners: &[u16]) -> usize {
        self.column(bytemuck::cast_slice(corners), U16, "SCALAR", corners.len())
    }

    pub fn mesh(&mut self, primitives: Value) -> usize {
        self.push("meshes", json!({"primitives": primitives}))
    }

    /// A joint and weight set of `vertices` entries.
    pub fn influences(&mut self, joints: &[[u8; 4]], weights: &[[f32; 4]]) -> (usize, usize) {
        let j = self.column(bytemuck::cast_slice(joints), U8, "VEC4", joints.len());
        let w = self.column(bytemuck::cast_slice(weights), F32, "VEC4", weights.len());
        (j, w)
    }

    /// A skin whose inverse bind matrices are translations.
    pub fn skin(&mut self, joints: &[usize], inverse: &[[f32; 3]]) -> usize {
        let matrices: Vec<[f32; 16]> =
            inverse.iter().map(|t| [1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., t[0], t[1], t[2], 1.]).collect();
        let number = self.column(bytemuck::cast_slice(&matrices), F32, "MAT4", matrices.len());
        if self.root["skins"].is_null() {
            self.root["skins"] = json!([]);
        }
        self.push("skins", json!({"joints": joints, "inverseBindMatrices": number}))
    }

    pub fn glb(&self) -> Vec<u8> {
        let mut root = self.root.clone();
        if root.is_object() && root.get("buffers").is_none() {
            root["buffers"] = json!([{"byteLength": self.bin.len()}]);
        }
        glb(&serde_json::to_vec(&root).unwrap(), &self.bin)
    }
}

/// A GLB file of these two chunks.
pub fn glb(json: &[u8], bin: &[u8]) -> Vec<u8> {
    let pad = |bytes: &[u8], with: u8| {
        let mut out = bytes.to_vec();
        out.resize(out.len().next_multiple_of(4), with);
        out
    };
    let (json, bin) = (pad(json, b' '), pad(bin, 0));
    let word = |n: usize| (n as u32).to_le_bytes();
    let mut out = [b"glTF".as_slice(), &word(2), &word(28 + json.len() + bin.len())].concat();
    out.extend([&word(json.len())[..], b"JSON", &json, &word(bin.len()), b"BIN\0", &bin].concat());
    out
}

/// A tetrahedron's corners and faces.
pub const CORNERS: [[f32; 3]; 4] = [[0., 0., 0.], [1., 0., 0.], [0., 2., 0.], [0., 0., 1.]];
pub const FACES: [u16; 12] = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3];

/// A tetrahedron on one node with a translation.
pub fn tetrahedron() -> Doc {
    let mut doc = Doc::new(json!([{"name": "body", "mesh": 0, "translation": [0.0, 3.0, 0.0]}]));
    let (p, i) = (doc.positions(&CORNERS), doc.indices(&FACES));
    doc.mesh(json!([{"attributes": {"POSITION": p}, "indices": i}]));
    doc
}

/// The tetrahedron, skinned by two joints in their bind pose; the skin moves it by (0, 5, 0), the node does not count.
pub fn skinned() -> Doc {
    let mut doc = Doc::new(json!([
        {"name": "body", "mesh": 0, "skin": 0, "translation": [9.0, 9.0, 9.0]},
        {"name": "hips", "translation": [0.0, 5.0, 0.0], "children": [2]},
        {"name": "head", "translation": [0.0, 1.0, 0.0]},
    ]));
    let (p, i) = (doc.positions(&CORNERS), doc.indices(&FACES));
    let (j, w) = doc.influences(
        &[[0, 1, 0, 0]; 4],
        &[[0.75, 0.25, 0., 0.], [0.5, 0.5, 0., 0.], [0.25, 0.75, 0., 0.], [1., 0., 0., 0.]],
    );
    doc.skin(&[1, 2], &[[0., 0., 0.], [0., -1., 0.]]);
    doc.mesh(json!([{"attributes": {"POSITION": p, "JOINTS_0": j, "WEIGHTS_0": w}, "indices": i}]));
    doc
}

pub fn open(doc: &Doc) -> Document {
    Document::from_bytes(doc.glb(), None).unwrap()
}

/// The largest distance between two lists of points.
pub fn apart(a: &[DVec3], b: &[DVec3]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.distance(*b)).fold(0.0, f64::max)
}
