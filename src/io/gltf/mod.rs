//! Rigged characters in glTF 2.0 (.glb and .gltf): reads meshes and skeletons, adds skins, keeps everything else.
//!
//! Source: Khronos' glTF 2.0 specification. The JSON is patched in place and binary data only appended, so what this
//! module does not know (materials, animations, extensions of any vendor) survives untouched.
//!
//! ```no_run
//! use skinbind::io::gltf::Document;
//! use skinbind::model::{Influence, Weights};
//! # fn main() -> skinbind::Result<()> {
//! let mut document = Document::read("body.glb".as_ref())?;
//! let (mesh, _warnings) = document.mesh(true)?;
//! if let Some(rig) = document.skeleton(None)? {
//!     let mut weights = Weights::with_capacity(mesh.positions().len(), mesh.positions().len());
//!     mesh.positions().iter().for_each(|_| weights.push([Influence { joint: 0, weight: 1.0 }]));
//!     document.add_skin(&rig.skeleton, Some(&rig.nodes), &weights)?;
//!     let _bytes = document.glb()?.to_vec();
//! }
//! # Ok(())
//! # }
//! ```

mod accessor;
mod animation_in;
mod build;
mod container;
mod json;
mod mesh_in;
mod pack;
mod posed_out;
mod rest;
mod rest_out;
mod rigged;
mod scene;
mod skeleton_in;
mod skin_in;
mod skin_out;
mod write;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use build::{RotationTrack, TranslationTrack};
pub use rigged::Rigged;
pub use skeleton_in::{JointNodes, Rig};
pub use write::Encoded;

use crate::error::{Error, Result};
use crate::model::{Code, Warning};
use container::Bytes;

/// A glTF file in memory: its JSON as it stands, and the bytes of its buffers.
#[derive(Debug, Clone)]
pub struct Document {
    root: Value,
    /// One entry for each of the JSON's `buffers`; `None` where there is no data for it.
    buffers: Vec<Option<Bytes>>,
    /// GLB chunks after JSON and BIN.
    chunks: Vec<(u32, Bytes)>,
    /// The buffer that new data is appended to, once there is any.
    added: Option<usize>,
    folder: Option<PathBuf>,
    /// Bytes of JSON and buffers together: the measure for what a file may ask us to allocate.
    file_bytes: usize,
    warnings: Vec<Warning>,
}

impl Document {
    /// Reads a .glb or .gltf file with its buffers. Its first bytes decide which of the two it is.
    ///
    /// # Errors
    /// All name the file: it can not be read, is truncated, breaks the format, or requires an extension that is not
    /// supported ([`Error::Extension`]).
    pub fn read(path: &Path) -> Result<Self> {
        let folder = path.parent().map(Path::to_path_buf);
        container::read_file(path, u64::MAX)
            .and_then(|file| Self::from_bytes(file, folder))
            .map_err(|e| e.in_file(path))
    }

    /// The same from the bytes of the file; `folder` is where its relative URIs lead, `None` to refuse them.
    ///
    /// # Errors
    /// As [`Document::read`], without the file's name.
    pub fn from_bytes(file: Vec<u8>, folder: Option<PathBuf>) -> Result<Self> {
        let length = file.len();
        let parts = container::take_apart(file)?;
        check_version(&parts.root)?;
        check_extensions(&parts.root)?;
        let rows = json::list(&parts.root, "buffers", "root")?;
        let mut buffers = Vec::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            buffers.push(container::load_buffer(number, row, folder.as_deref(), parts.binary.as_ref())?);
        }
        let outside: usize = buffers.iter().flatten().map(|b| b.get().len()).sum();
        let mut warnings = Vec::new();
        if parts.trailing > 0 {
            let text = format!("{} bytes after the end that the header states are left out.", parts.trailing);
            warnings.push(Warning::new(Code::FileIgnored, text));
        }
        Ok(Self {
            root: parts.root,
            buffers,
            chunks: parts.chunks,
            added: None,
            folder,
            file_bytes: length.saturating_add(outside),
            warnings,
        })
    }

    /// The JSON as it stands.
    pub fn json(&self) -> &Value {
        &self.root
    }

    fn list(&self, key: &str) -> Result<&[Value]> {
        json::list(&self.root, key, "root")
    }

    /// Entry `number` of a list at the root, which `used_by` names.
    fn entry(&self, key: &str, number: usize, used_by: &str) -> Result<&Value> {
        let rows = self.list(key)?;
        rows.get(number).ok_or_else(|| {
            Error::format(used_by, format!("names number {number} of {key}, but there are {} (0-based)", rows.len()))
        })
    }

    fn entry_mut(&mut self, key: &str, number: usize) -> Result<&mut Value> {
        let rows = json::list_mut(&mut self.root, key, "root")?;
        rows.get_mut(number).ok_or_else(|| Error::format(key, format!("number {number} is not there")))
    }

    /// Adds an entry to a list at the root; its number.
    fn push(&mut self, key: &str, entry: Value) -> Result<usize> {
        let rows = json::list_mut(&mut self.root, key, "root")?;
        rows.push(entry);
        Ok(rows.len() - 1)
    }

    /// How messages call a node.
    fn node_place(&self, node: usize) -> String {
        match self.root["nodes"][node]["name"].as_str() {
            Some(name) => format!("node {node} (\"{name}\")"),
            None => format!("node {node}"),
        }
    }
}

fn check_version(root: &Value) -> Result<()> {
    let asset =
        json::member(root, "asset").ok_or_else(|| Error::format("asset", "missing: this is not a glTF file"))?;
    let version = json::text(asset, "version", "asset")?.unwrap_or("(missing)");
    let least = json::text(asset, "minVersion", "asset")?.unwrap_or("2.0");
    if version == "2" || version.starts_with("2.") && least == "2.0" {
        return Ok(());
    }
    Err(Error::format("asset", format!("version {version} (at least {least}); only glTF 2.0 can be read")))
}

/// Extensions that leave positions, nodes and skins as the core specification has them.
fn leaves_geometry(extension: &str) -> bool {
    const NAMES: [&str; 9] = [
        "KHR_mesh_quantization",
        "KHR_animation_pointer",
        "KHR_node_visibility",
        "KHR_node_selectability",
        "KHR_node_hoverability",
        "KHR_xmp",
        "KHR_xmp_json_ld",
        "MSFT_texture_dds",
        "MSFT_packing_occlusionRoughnessMetallic",
    ];
    const PREFIXES: [&str; 7] = [
        "KHR_materials_",
        "KHR_texture_",
        "KHR_lights_",
        "EXT_texture_",
        "EXT_lights_",
        "EXT_materials_",
        "VRMC_materials_",
    ];
    NAMES.contains(&extension) || PREFIXES.iter().any(|p| extension.starts_with(p))
}

fn check_extensions(root: &Value) -> Result<()> {
    for name in json::list(root, "extensionsRequired", "root")? {
        let name = name.as_str().ok_or_else(|| {
            Error::format("extensionsRequired", format!("{} is not the name of an extension", json::brief(name)))
        })?;
        if !leaves_geometry(name) {
            return Err(extension_error(name));
        }
    }
    Ok(())
}

fn extension_error(name: &str) -> Error {
    let advice = if name.contains("compression") {
        "decompress it first, for example by exporting the model without compression"
    } else {
        "export the model without it"
    };
    Error::Extension { extension: name.chars().take(200).collect(), advice: advice.into() }
}
