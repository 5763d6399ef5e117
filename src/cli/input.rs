//! Meshes, skeletons and weights from files of any kind that is known here.

use std::path::Path;

use skinbind::io::gltf::{Document, JointNodes};
use skinbind::io::{obj, skeleton_json, weights_file};
use skinbind::model::{Mesh, Skeleton, Warning, Weights};
use skinbind::{Error, Result};

/// The kinds of files, by extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gltf,
    Obj,
    /// `.mhw` or `.json`.
    Json,
}

/// What a file's extension says it is.
pub fn kind(path: &Path) -> Option<Kind> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "glb" | "gltf" => Some(Kind::Gltf),
        "obj" => Some(Kind::Obj),
        "mhw" | "json" => Some(Kind::Json),
        _ => None,
    }
}

/// A mesh, and the document it came in where that was glTF.
pub struct Input {
    pub mesh: Mesh,
    pub document: Option<Document>,
    pub warnings: Vec<Warning>,
}

/// Reads a mesh.
///
/// # Errors
/// [`Error::FileType`], and those of the readers.
pub fn mesh(path: &Path, replace_skin: bool) -> Result<Input> {
    match kind(path) {
        Some(Kind::Obj) => Ok(Input { mesh: obj::read(path)?, document: None, warnings: Vec::new() }),
        Some(Kind::Gltf) => {
            let document = Document::read(path)?;
            let (mesh, warnings) = document.mesh(replace_skin).map_err(|e| e.in_file(path))?;
            Ok(Input { mesh, document: Some(document), warnings })
        }
        _ => Err(Error::FileType { path: path.to_path_buf(), expected: "a mesh is read from .glb, .gltf and .obj" }),
    }
}

/// A skeleton, and its nodes where it came in the mesh's own document.
pub struct Bones {
    pub skeleton: Skeleton,
    pub nodes: Option<JointNodes>,
    pub warnings: Vec<Warning>,
}

/// Reads a skeleton from a file of its own.
///
/// # Errors
/// [`Error::FileType`], [`Error::Format`] for a glTF file without joints, and those of the readers.
pub fn skeleton(path: &Path, root: Option<&str>) -> Result<Bones> {
    match kind(path) {
        Some(Kind::Json) => Ok(Bones { skeleton: skeleton_json::read(path)?, nodes: None, warnings: Vec::new() }),
        Some(Kind::Gltf) => {
            let found = joints(&Document::read(path)?, path, root)?;
            Ok(Bones { nodes: None, ..found })
        }
        _ => Err(Error::FileType {
            path: path.to_path_buf(),
            expected: "a skeleton is read from .json, or from the joints of a .glb or .gltf",
        }),
    }
}

/// The skeleton in a document itself.
///
/// # Errors
/// [`Error::Format`] where it has none, and those of the reader.
pub fn joints(document: &Document, path: &Path, root: Option<&str>) -> Result<Bones> {
    let rig = document.skeleton(root).map_err(|e| e.in_file(path))?.ok_or_else(|| no_skeleton(path))?;
    Ok(Bones { skeleton: rig.skeleton, nodes: Some(rig.nodes), warnings: rig.warnings })
}

/// Nothing tells the bones.
pub fn no_skeleton(path: &Path) -> Error {
    let what = "the file holds none; give a skeleton file with -s, or name the topmost joint of a glTF file with --skeleton-root";
    Error::format("skeleton", what).in_file(path)
}

/// Weights with the names of their bones.
pub struct NamedWeights {
    pub bones: Vec<String>,
    pub weights: Weights,
}

/// Reads weights from a rigged glTF file or a weights file; `vertices` where that is known from elsewhere, for weights files
/// do not tell.
///
/// # Errors
/// [`Error::FileType`], [`Error::Format`] for a glTF file without a skin, and those of the readers.
pub fn weights(path: &Path, vertices: Option<usize>) -> Result<NamedWeights> {
    match kind(path) {
        Some(Kind::Gltf) => {
            let found = Document::read(path)?.weights().map_err(|e| e.in_file(path))?;
            let (bones, weights) = found
                .ok_or_else(|| Error::format("skin", "the file holds none, so it has no weights").in_file(path))?;
            Ok(NamedWeights { bones, weights })
        }
        Some(Kind::Json) => {
            let file = weights_file::read(path)?;
            let weights = file.weights(vertices).map_err(|e| e.in_file(path))?;
            Ok(NamedWeights { bones: file.bones.into_iter().map(|(name, _)| name).collect(), weights })
        }
        _ => Err(Error::FileType {
            path: path.to_path_buf(),
            expected: "weights are read from .mhw, .json and rigged .glb and .gltf",
        }),
    }
}

/// A mesh that has its weights, with the skeleton they are for.
pub struct RiggedInput {
    pub input: Input,
    pub bones: Bones,
    /// One row a vertex; joints are the bones of the skeleton.
    pub weights: Weights,
}

/// Reads a rigged mesh.
///
/// # Errors
/// [`Error::FileType`] for anything but glTF, [`Error::Format`] where it has no skin, and those of the readers.
pub fn rigged(path: &Path) -> Result<RiggedInput> {
    if kind(path) != Some(Kind::Gltf) {
        return Err(Error::FileType {
            path: path.to_path_buf(),
            expected: "a rigged mesh is read from .glb and .gltf",
        });
    }
    let input = mesh(path, true)?;
    let no_skin = || Error::format("skin", "the file holds none, so it has no weights").in_file(path);
    let document = input.document.as_ref().ok_or_else(no_skin)?;
    let (names, weights) = document.weights().map_err(|e| e.in_file(path))?.ok_or_else(no_skin)?;
    let bones = joints(document, path, None)?;
    // Both come from the same skins in the same order.
    debug_assert!(names.iter().eq(bones.skeleton.bones().iter().map(|b| &b.name)));
    Ok(RiggedInput { input, bones, weights })
}
