//! Bound characters in other formats: mesh, skeleton, bind pose and weights, each format a file here. They hold no more than
//! that; what a document had besides survives in glTF only.

mod collada;
mod md5;
mod ogre;
mod xml;

use std::path::{Path, PathBuf};

use glam::{DAffine3, DVec3};

use crate::error::{Error, Result};
use crate::model::{Mesh, Pose, Skeleton, Weights};

/// A mesh of a character with its weights.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    pub name: &'a str,
    pub mesh: &'a Mesh,
    /// One entry a vertex.
    pub weights: &'a Weights,
}

/// What is written.
#[derive(Debug, Clone, Copy)]
pub struct Character<'a> {
    pub pieces: &'a [Piece<'a>],
    pub skeleton: &'a Skeleton,
    /// The bind pose, without scales.
    pub rest: &'a Pose,
    /// How many metres a unit of the coordinates is, for formats that tell.
    pub meters: f64,
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Collada 1.4.1: `.dae`.
    Collada,
    /// Ogre's mesh and skeleton as XML: `.mesh.xml`, with `.skeleton.xml` beside it.
    OgreXml,
    /// id Tech 4's model, version 10: `.md5mesh`.
    Md5Mesh,
}

impl Format {
    /// What a file's name says it is.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |extension: &str| name.len() > extension.len() && name.ends_with(extension);
        match () {
            () if ends(".dae") => Some(Self::Collada),
            () if ends(".mesh.xml") => Some(Self::OgreXml),
            () if ends(".md5mesh") => Some(Self::Md5Mesh),
            () => None,
        }
    }

    /// All files that are written for one of this name.
    pub fn targets(self, path: &Path) -> Vec<PathBuf> {
        match self {
            Self::OgreXml => vec![path.to_path_buf(), path.with_file_name(ogre::skeleton_name(path) + ".xml")],
            Self::Collada | Self::Md5Mesh => vec![path.to_path_buf()],
        }
    }

    /// The files of a character, each with its text.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Joints`] and [`Error::Influence`] where weights or pose do not fit; [`Error::Limit`] and
    /// [`Error::Format`] for what the format can not express.
    pub fn files(self, character: &Character, path: &Path) -> Result<Vec<(PathBuf, String)>> {
        let globals = check(character)?;
        let texts = match self {
            Self::Collada => vec![collada::text(character, &globals)?],
            Self::OgreXml => ogre::texts(character, &ogre::skeleton_name(path))?,
            Self::Md5Mesh => vec![md5::text(character, &globals)?],
        };
        Ok(self.targets(path).into_iter().zip(texts).collect())
    }
}

/// Checks that all parts fit together; the matrices of the joints in the bind pose.
fn check(character: &Character) -> Result<Vec<DAffine3>> {
    let globals = character.rest.globals(character.skeleton)?;
    let bones = character.skeleton.bones();
    for (local, bone) in character.rest.locals.iter().zip(bones) {
        if local.scale != DVec3::ONE {
            let what = "it is scaled at rest, which only glTF can express here";
            return Err(Error::format(format!("bone \"{}\"", bone.name), what));
        }
    }
    for piece in character.pieces {
        let (found, expected) = (piece.weights.len(), piece.mesh.positions().len());
        if found != expected {
            return Err(Error::Length { what: "weights", found, expected });
        }
        for (vertex, row) in piece.weights.iter().enumerate() {
            let fault = |joint, what: &str| Err(Error::Influence { vertex, joint, what: what.into() });
            if let Some(bad) = row.iter().find(|i| i.joint as usize >= bones.len()) {
                return fault(bad.joint, "there is no such joint");
            }
            if let Some(bad) = row.iter().find(|i| !(i.weight.is_finite() && i.weight >= 0.0)) {
                return fault(bad.joint, "its weight is negative or not finite");
            }
        }
    }
    Ok(globals)
}

/// Normals of a piece: its own, or smooth ones.
fn normals(mesh: &Mesh) -> Vec<DVec3> {
    mesh.normals().map_or_else(|| mesh.smooth_normals(), <[DVec3]>::to_vec)
}
