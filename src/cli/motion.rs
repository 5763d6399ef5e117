//! What moves a rigged file: one of its own animations or a BVH file, for the commands that show it in a pose.

use std::path::Path;

use clap::ValueEnum;
use skinbind::glam::DAffine3;
use skinbind::io::bvh::Bvh;
use skinbind::io::gltf::{Document, Rigged};
use skinbind::model::{Animation, Warning};
use skinbind::skin::{Method, Posed, SkinInput};
use skinbind::{Error, Result};

use super::input::{self, Kind};
use super::screen;

/// Frames a second where nothing else tells.
const RATE: f64 = 30.0;
/// Most joints that a message lists.
const LISTED: usize = 12;

/// How joints' motions are blended.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum MethodArg {
    /// The mean of the moved points, as game engines and viewers do.
    #[default]
    Linear,
    /// The mean of the motions, which keeps volume where limbs twist.
    DualQuaternion,
}

impl MethodArg {
    pub fn method(self) -> Method<'static> {
        match self {
            MethodArg::Linear => Method::Linear,
            MethodArg::DualQuaternion => Method::DualQuaternion,
        }
    }
}

/// Where poses come from.
pub enum Motion {
    /// The pose that the file holds.
    Rest,
    Animation(Animation),
    /// With the rig's axes.
    Bvh(Bvh),
}

impl Motion {
    /// The animation of this name, or the BVH file; with neither, the pose that the file holds.
    ///
    /// # Errors
    /// [`Error::Format`] naming the file's animations where none has this name, and where no joint of the BVH file is in the
    /// rig; those of the readers.
    pub fn open(
        document: &Document,
        rigged: &Rigged,
        path: &Path,
        animation: Option<&str>,
        bvh: Option<&Path>,
        quiet: bool,
    ) -> Result<Self> {
        if let Some(bvh) = bvh {
            return open_bvh(rigged, path, bvh, quiet);
        }
        let Some(name) = animation else { return Ok(Motion::Rest) };
        let names = document.animation_names().map_err(|e| e.in_file(path))?;
        let Some(number) = names.iter().position(|n| n == name) else {
            let what = if names.is_empty() {
                "the file has no animations".to_owned()
            } else {
                format!("the file has none of that name; it has {}", quoted(&names))
            };
            return Err(Error::format(format!("animation \"{name}\""), what).in_file(path));
        };
        let (animation, warnings) = document.animation(number).map_err(|e| e.in_file(path))?;
        if !quiet {
            screen::warn(&warnings);
        }
        Ok(Motion::Animation(animation))
    }

    /// Frames a second.
    pub fn rate(&self) -> f64 {
        match self {
            Motion::Bvh(bvh) if bvh.frame_time > 0.0 => 1.0 / bvh.frame_time,
            _ => RATE,
        }
    }

    /// The world matrices of all nodes at a time in seconds.
    ///
    /// # Errors
    /// None for what [`Motion::open`] gave for the same file.
    pub fn worlds(&self, rigged: &Rigged, time: f64) -> Result<Vec<DAffine3>> {
        match self {
            Motion::Rest => Ok(rigged.rest()),
            Motion::Animation(animation) => rigged.animated(animation, time),
            Motion::Bvh(bvh) => rigged.moved(bvh, time),
        }
    }
}

fn open_bvh(rigged: &Rigged, path: &Path, file: &Path, quiet: bool) -> Result<Motion> {
    let skeleton = rigged.skeleton().ok_or_else(|| no_joints(path))?;
    let bvh = Bvh::read(file)?;
    let bone_of = bvh.bones_of_joints(skeleton);
    let lost: Vec<String> =
        bvh.joints.iter().zip(&bone_of).filter(|(_, bone)| bone.is_none()).map(|(j, _)| j.name.clone()).collect();
    if lost.len() == bone_of.len() {
        let what = format!("none is the name of a bone in {}; the file has {}", path.display(), quoted(&lost));
        return Err(Error::format("names of the joints", what).in_file(file));
    }
    if !quiet && !lost.is_empty() {
        let (file, lost_count, all) = (file.display(), lost.len(), bone_of.len());
        screen::say(&format!("{file}: {lost_count} of {all} joints move no bone: {}", quoted(&lost)));
    }
    let axes = bvh.axes_for(skeleton);
    Ok(Motion::Bvh(bvh.with_axes(axes)))
}

fn no_joints(path: &Path) -> Error {
    Error::format("skin", "the file holds none, so there are no joints to move").in_file(path)
}

fn quoted(names: &[String]) -> String {
    let mut text = names.iter().take(LISTED).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED {
        text += &format!(" and {} more", names.len() - LISTED);
    }
    text
}

/// A rigged file and what skins it.
pub struct Actor {
    pub document: Document,
    pub rigged: Rigged,
    skin: SkinInput,
}

impl Actor {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::FileType`], and those of the reader.
    pub fn read(path: &Path, quiet: bool) -> Result<Self> {
        if input::kind(path) != Some(Kind::Gltf) {
            return Err(Error::FileType {
                path: path.to_path_buf(),
                expected: "a rigged mesh is read from .glb and .gltf",
            });
        }
        let (actor, warnings) = Self::of(Document::read(path)?).map_err(|e| e.in_file(path))?;
        if !quiet {
            screen::warn(&warnings);
        }
        Ok(actor)
    }

    /// The same for a document that is there already.
    ///
    /// # Errors
    /// Those of [`Document::rigged`].
    pub fn of(document: Document) -> Result<(Self, Vec<Warning>)> {
        let (rigged, warnings) = document.rigged()?;
        let skin = rigged.skin_input()?;
        Ok((Self { document, rigged, skin }, warnings))
    }

    /// The posed surface.
    ///
    /// # Errors
    /// [`Error::Format`] for a joint whose matrix is not finite.
    pub fn pose(&self, worlds: &[DAffine3], method: Method) -> Result<Posed> {
        let palette = self.rigged.palette(worlds)?;
        let mut posed = Posed::default();
        self.skin.skin(&palette, method, self.rigged.surface(), &mut posed)?;
        Ok(posed)
    }
}
