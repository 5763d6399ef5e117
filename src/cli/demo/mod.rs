//! `skinbind demo`: makes a character of its own, binds it and writes it rigged and animated, with
//! pictures. Needs no data.

mod body;
mod motion;
mod rig;
mod surface_nets;

use std::io::Write;
use std::path::{Path, PathBuf};

use skinbind::bind::{self, Bound, Params};
use skinbind::influence::Falloff;
use skinbind::io::gltf::Document;
use skinbind::io::output::Outputs;
use skinbind::io::{obj, skeleton_json};
use skinbind::model::{Mesh, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::render::colour::CLAY;
use skinbind::render::{self, Image, Look, Paint, View};
use skinbind::skin::Method;
use skinbind::{Error, Result};

use super::bind::write_document;
use super::motion::Actor;
use super::progress::Bar;
use super::render::{bone_colours, bone_marks, heat_map, write_png};
use super::{Context, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind demo
  skinbind demo --folder somewhere/else";

/// Voxels along the longest axis: enough to part the fingers.
const RESOLUTION: u32 = 256;
/// Sharper than the default: most of a vertex' weight is then in the four influences that viewers take, so that the cap
/// leaves no steps in the skin.
const FALLOFF_POWER: f64 = 4.0;

/// The bone whose weights get a picture, and that picture's name.
const SHOWN_BONE: &str = "upper_arm.L";
const SHOWN_BONE_FILE: &str = "weights-upper_arm.L.png";
/// A moment of the first animation with the arm up.
const LIVELY: f64 = 0.95;

/// Make a character, bind it, and write it rigged and animated.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to write; made if it is not there. Files that an earlier demo left in it are replaced.
    #[arg(long, value_name = "FOLDER", default_value = "skinbind-demo")]
    folder: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let bar = Bar::new(context, false);
    let update = |stage, fraction| bar.update(stage, fraction);
    let progress = Progress::new(&update);
    progress.at(Stage::Prepare, 0.0)?;
    let (mesh, skeleton) = character()?;
    let falloff = Falloff { power: FALLOFF_POWER, ..Falloff::default() };
    let params = Params { resolution: Some(RESOLUTION), falloff, ..Params::default() };
    let Bound { weights, report } = bind::bind(&mesh, &skeleton, &params, progress)?;
    progress.at(Stage::Write, 0.0)?;
    let mut document = Document::from_mesh(&mesh, "character")?;
    let joints = document.add_skin(&skeleton, None, &weights)?;
    for motion in motion::all(&skeleton) {
        document.add_animation(motion.name, &joints, &motion.tracks)?;
    }
    let (actor, _) = Actor::of(document)?;
    let pictures = pictures(&actor, &skeleton)?;
    write(&args.folder, &actor.document, &mesh, &skeleton, &pictures)?;
    drop(bar);
    screen::warn(&report.warnings);
    let seconds = report.seconds.of("total").unwrap_or_default();
    screen::print(&next_steps(&args.folder, &mesh, &skeleton, seconds))
}

/// The body and its bones.
///
/// # Errors
/// None, as long as they are what they are.
pub fn character() -> Result<(Mesh, Skeleton)> {
    Ok((body::mesh()?, rig::skeleton()?))
}

/// The character as it waves, all its bones in colours, and the weights of one.
fn pictures(actor: &Actor, skeleton: &Skeleton) -> Result<Vec<(&'static str, Image)>> {
    let rigged = &actor.rigged;
    let (waving, _) = actor.document.animation(0)?;
    let (lively, rest) = (rigged.animated(&waving, LIVELY)?, rigged.rest());
    let posed = |worlds| rigged.posed_mesh(&actor.pose(worlds, Method::Linear)?);
    let weights = rigged.bone_weights();
    let upright = Look { width: 720, height: 900, ..Look::default() };
    let wide = Look { width: 1080, height: 900, view: View::Front, ..Look::default() };
    let bones = bone_marks(rigged, skeleton, &rest, true);
    let (waving, still) = (posed(&lively)?, posed(&rest)?);
    Ok(vec![
        ("character.png", render::draw(&waving, &Paint::Plain(CLAY), &[], &upright)?),
        ("weights.png", render::draw(&still, &bone_colours(skeleton, &weights), &bones, &wide)?),
        (SHOWN_BONE_FILE, render::draw(&waving, &heat_map(skeleton, &weights, SHOWN_BONE)?, &[], &upright)?),
    ])
}

fn write(
    folder: &Path,
    document: &Document,
    mesh: &Mesh,
    skeleton: &Skeleton,
    pictures: &[(&str, Image)],
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_path_buf(), source })?;
    let mut outputs = Outputs::new(true);
    write_document(document, &folder.join("character.glb"), &mut outputs)?;
    outputs.write(&folder.join("body.obj"), |out| obj::write(out, mesh))?;
    let text = skeleton_json::to_text(skeleton);
    outputs.write(&folder.join("skeleton.json"), |out| out.write_all(text.as_bytes()))?;
    for (name, image) in pictures {
        write_png(image, &folder.join(name), &mut outputs)?;
    }
    outputs.commit()
}

fn next_steps(folder: &Path, mesh: &Mesh, skeleton: &Skeleton, seconds: f64) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let (character, body, bones, mine) =
        (path("character.glb"), path("body.obj"), path("skeleton.json"), path("mine.glb"));
    let (picture, colours, heat) = (path("character.png"), path("weights.png"), path(SHOWN_BONE_FILE));
    let (vertices, joints) = (mesh.positions().len(), skeleton.len());
    format!(
        "Bound {vertices} vertices to {joints} bones in {seconds:.2} s.\n\
         \n\
         {character}  the character, rigged, with two animations: open it in any glTF viewer\n\
         {picture}  what it looks like\n\
         {colours}  the weights of all bones\n\
         {heat}  the weights of one bone\n\
         {body}  its body alone\n\
         {bones}  its bones alone\n\
         \n\
         Next:\n  \
           skinbind inspect {character}\n  \
           skinbind bind {body} -s {bones} -o {mine} --max-influences 8\n  \
           skinbind compare {character} {mine}\n  \
           skinbind render {character} --bones --animation walk --time 0.3 -o walk.png\n"
    )
}
