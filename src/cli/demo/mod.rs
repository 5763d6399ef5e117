//! `skinbind demo`: makes a character of its own, binds it and writes it rigged and animated. Needs no data.

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
use skinbind::{Error, Result};

use super::bind::write_document;
use super::progress::Bar;
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
    write(&args.folder, &document, &mesh, &skeleton)?;
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

fn write(folder: &Path, document: &Document, mesh: &Mesh, skeleton: &Skeleton) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_path_buf(), source })?;
    let mut outputs = Outputs::new(true);
    write_document(document, &folder.join("character.glb"), &mut outputs)?;
    outputs.write(&folder.join("body.obj"), |out| obj::write(out, mesh))?;
    let text = skeleton_json::to_text(skeleton);
    outputs.write(&folder.join("skeleton.json"), |out| out.write_all(text.as_bytes()))?;
    outputs.commit()
}

fn next_steps(folder: &Path, mesh: &Mesh, skeleton: &Skeleton, seconds: f64) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let (character, body, bones, mine) =
        (path("character.glb"), path("body.obj"), path("skeleton.json"), path("mine.glb"));
    let (vertices, joints) = (mesh.positions().len(), skeleton.len());
    format!(
        "Bound {vertices} vertices to {joints} bones in {seconds:.2} s.\n\
         \n\
         {character}  the character, rigged, with two animations: open it in any glTF viewer\n\
         {body}  its body alone\n\
         {bones}  its bones alone\n\
         \n\
         Next:\n  \
           skinbind inspect {character}\n  \
           skinbind bind {body} -s {bones} -o {mine} --max-influences 8\n  \
           skinbind compare {character} {mine}\n"
    )
}
