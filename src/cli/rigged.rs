//! Writes weights the ways that commands offer: a rigged .glb or .gltf, or a weights file.

use std::path::{Path, PathBuf};

use skinbind::io::gltf::{Document, JointNodes};
use skinbind::io::output::Outputs;
use skinbind::io::weights_file;
use skinbind::model::{Mesh, Skeleton, Weights};
use skinbind::{Error, Result};

use super::bind::write_document;
use super::input::{self, Kind};
use super::screen;

/// All files that a run will write, as far as their names tell.
///
/// # Errors
/// [`Error::Parameter`] for an output of unknown kind.
pub fn targets(outputs: &[PathBuf], report: Option<&PathBuf>) -> Result<Vec<PathBuf>> {
    let allowed = "its name must end in .glb or .gltf for a rigged mesh, .mhw or .json for weights";
    let mut targets = Vec::new();
    for path in outputs {
        targets.extend(targets_of(path, allowed)?);
    }
    targets.extend(report.cloned());
    Ok(targets)
}

/// The files of one output: a .gltf has its data beside it.
///
/// # Errors
/// [`Error::Parameter`], saying what is `allowed`, for one of unknown kind.
pub fn targets_of(path: &Path, allowed: &'static str) -> Result<Vec<PathBuf>> {
    match input::kind(path) {
        Some(Kind::Gltf) if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gltf")) => {
            Ok(vec![path.to_path_buf(), path.with_extension("bin")])
        }
        Some(Kind::Gltf | Kind::Json) => Ok(vec![path.to_path_buf()]),
        _ => Err(Error::Parameter { name: "output", value: path.display().to_string(), allowed }),
    }
}

/// A mesh with its weights, ready to be written.
pub struct Rigged<'a> {
    /// The file the mesh came from.
    pub path: &'a Path,
    pub mesh: &'a Mesh,
    /// What the mesh came in, where that was glTF.
    pub document: Option<Document>,
    pub skeleton: &'a Skeleton,
    /// The bones, where they are nodes of the document.
    pub nodes: Option<&'a JointNodes>,
    pub weights: &'a Weights,
}

impl Rigged<'_> {
    /// Writes all outputs under temporary names.
    ///
    /// # Errors
    /// Those of the writers.
    pub fn write(mut self, paths: &[PathBuf], outputs: &mut Outputs) -> Result<()> {
        let rigged = paths.iter().any(|path| input::kind(path) == Some(Kind::Gltf));
        let document = rigged.then(|| self.document()).transpose()?;
        for path in paths {
            match (input::kind(path), &document) {
                (Some(Kind::Gltf), Some(document)) => write_document(document, path, outputs)?,
                _ => {
                    let names: Vec<&str> = self.skeleton.bones().iter().map(|b| b.name.as_str()).collect();
                    let title = screen::stem(self.path);
                    outputs.write(path, |out| weights_file::write(out, &title, &names, self.weights))?;
                }
            }
        }
        Ok(())
    }

    fn document(&mut self) -> Result<Document> {
        let mut document = match self.document.take() {
            Some(document) => document,
            None => Document::from_mesh(self.mesh, &screen::stem(self.path))?,
        };
        document.add_skin(self.skeleton, self.nodes, self.weights).map_err(|e| e.in_file(self.path))?;
        Ok(document)
    }
}
