//! One error type for the whole crate; every variant names the thing at fault.

use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, with the name of the thing at fault.
///
/// Vertices and triangles are numbered from 0 in the fields and in the text, which says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another error, met while working on this file.
    #[error("{}: {source}", path.display())]
    InFile { path: PathBuf, source: Box<Error> },
    /// A text file has a fault on this line (1-based).
    #[error("line {line}: {what}")]
    Line { line: usize, what: String },
    /// A file breaks a rule of its format at this place ("accessor 3", "bone spine", "header").
    #[error("{place}: {what}")]
    Format { place: String, what: String },
    /// A file could not be read.
    #[error("cannot read: {0}")]
    Read(std::io::Error),
    /// A file could not be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// The target is there already.
    #[error("{}: exists already; use --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// The name's extension is not one that can be read (or written) here.
    #[error("{}: unknown file type; {expected}", path.display())]
    FileType { path: PathBuf, expected: &'static str },
    /// The input needs an extension that is not supported.
    #[error("the file requires the extension {extension}, which is not supported; {advice}")]
    Extension { extension: String, advice: String },
    /// The input has a skin already.
    #[error("already skinned: {place}; use --replace-skin to bind it anew")]
    AlreadySkinned { place: String },

    /// A mesh without vertices.
    #[error("the mesh has no vertices")]
    NoVertices,
    /// A mesh without triangles.
    #[error("the mesh has no faces")]
    NoFaces,
    /// All vertices lie at one point, so there is no size to work with.
    #[error("the mesh has no extent: all its vertices lie at one point")]
    NoExtent,
    /// A coordinate is NaN, infinite, or beyond the range of f32, in which meshes are exchanged.
    #[error("vertex {vertex} (0-based): {axis} is {value}, which is not a finite 32-bit number")]
    Coordinate { vertex: usize, axis: char, value: f64 },
    /// A triangle names a vertex that is not there.
    #[error("triangle {triangle} (0-based) names vertex {index}, but there are {vertices} vertices")]
    VertexIndex { triangle: usize, index: u64, vertices: usize },
    /// A list does not have one entry a vertex.
    #[error("{what}: {found} entries for {expected} vertices")]
    Length { what: &'static str, found: usize, expected: usize },
    /// A list does not have one entry a joint.
    #[error("{what}: {found} entries for {expected} joints")]
    Joints { what: &'static str, found: usize, expected: usize },

    /// An influence that no vertex can have: a joint that is not there, a negative or infinite weight.
    #[error("vertex {vertex} (0-based), joint {joint} (0-based): {what}")]
    Influence { vertex: usize, joint: u32, what: String },

    /// A skeleton without bones, or without bones that deform.
    #[error("the skeleton has no {0}")]
    NoBones(&'static str),
    /// Two bones of one name.
    #[error("bone \"{0}\" stands twice in the skeleton; give each bone a name of its own")]
    DuplicateBone(String),
    /// A bone's parent is not in the skeleton.
    #[error("bone \"{bone}\": its parent \"{parent}\" is not in the skeleton")]
    UnknownParent { bone: String, parent: String },
    /// Bones that are their own ancestors.
    #[error("bones form a cycle: {}", .0.iter().map(|b| format!("\"{b}\"")).collect::<Vec<_>>().join(" -> "))]
    BoneCycle(Vec<String>),
    /// A bone's head or tail is not a finite 32-bit number.
    #[error("bone \"{bone}\": its {end} is not a finite 32-bit number")]
    BonePosition { bone: String, end: &'static str },
    /// A bone is named that is not in the skeleton.
    #[error("bone \"{0}\" is not in the skeleton")]
    UnknownBone(String),

    /// A parameter outside its range.
    #[error("{name} is {value}; {allowed}")]
    Parameter { name: &'static str, value: String, allowed: &'static str },
    /// More than this program or device can hold.
    #[error("{what}: {needed} needed, the limit is {limit}; {advice}")]
    Limit { what: String, needed: String, limit: String, advice: String },
    /// No such device, or it was lost.
    #[error("device \"{name}\": {what}")]
    Device { name: String, what: String },
    /// A check of the results failed.
    #[error("check failed: {0}")]
    Check(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Cancelled,
}

impl Error {
    /// The same error, with the file that was being worked on.
    pub fn in_file(self, path: impl AsRef<Path>) -> Self {
        match self {
            already @ (Error::InFile { .. }
            | Error::Write { .. }
            | Error::Exists(_)
            | Error::FileType { .. }
            | Error::Cancelled) => already,
            source => Error::InFile { path: path.as_ref().to_path_buf(), source: Box::new(source) },
        }
    }

    /// A fault of the format at a place.
    pub fn format(place: impl Into<String>, what: impl Into<String>) -> Self {
        Error::Format { place: place.into(), what: what.into() }
    }

    /// The error under the names of files.
    pub fn root(&self) -> &Error {
        match self {
            Error::InFile { source, .. } => source.root(),
            other => other,
        }
    }
}
