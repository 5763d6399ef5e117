//! `skinbind pose`: a rigged mesh in the poses of an animation, written as plain meshes.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use skinbind::io::gltf::Document;
use skinbind::io::obj;
use skinbind::io::output::{self, Outputs};
use skinbind::{Error, Result};

use super::bind::write_document;
use super::input::{self, Kind};
use super::motion::{Actor, MethodArg, Motion};
use super::{Context, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind pose rigged.glb --animation walk --time 0.5 -o posed.obj
  skinbind pose rigged.glb --bvh run.bvh --frames 0..24 --method dual-quaternion -o run_%04d.glb";

/// Write a rigged mesh as an animation poses it.
///
/// .obj holds positions, normals and faces. .glb and .gltf are copies without skin and animations that keep materials, texture
/// coordinates and colours. Before an animation's first key and after its last, the pose is that of the key.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rigged mesh: .glb or .gltf.
    input: PathBuf,
    /// One of the file's animations, by its name.
    #[arg(long, value_name = "NAME", required_unless_present = "bvh", conflicts_with = "bvh")]
    animation: Option<String>,
    /// A BVH file whose joints have the names of the rig's bones.
    #[arg(long, value_name = "FILE")]
    bvh: Option<PathBuf>,
    /// The time of the pose, in seconds.
    #[arg(long, value_name = "T", required_unless_present = "frames", conflicts_with = "frames")]
    time: Option<f64>,
    /// The frames from A to B, both included; frame 0 is at time 0.
    #[arg(long, value_name = "A..B", value_parser = frames)]
    frames: Option<RangeInclusive<u32>>,
    /// Frames a second [default: those of the BVH file, else 30].
    #[arg(long, value_name = "F", requires = "frames")]
    fps: Option<f64>,
    /// How the joints' motions are blended.
    #[arg(long, value_enum, default_value_t)]
    method: MethodArg,
    /// Where to write: .obj, .glb or .gltf. With --frames, %04d in the name stands for the frame's number. May be repeated.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    /// Overwrite outputs that are there already.
    #[arg(long)]
    force: bool,
    /// Print no messages.
    #[arg(short, long)]
    quiet: bool,
}

fn frames(text: &str) -> Result<RangeInclusive<u32>, String> {
    let parse = |part: &str| part.parse::<u32>().ok();
    match text.split_once("..").and_then(|(a, b)| Some((parse(a)?, parse(b)?))) {
        Some((a, b)) if a <= b => Ok(a..=b),
        Some(_) => Err("the first frame is after the last".into()),
        None => Err("it must be two whole numbers, as in 0..24".into()),
    }
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let kinds = args.output.iter().map(|path| kind(path)).collect::<Result<Vec<_>>>()?;
    check_times(args)?;
    let numbers: Vec<Option<u32>> = match &args.frames {
        Some(frames) => frames.clone().map(Some).collect(),
        None => vec![None],
    };
    let mut targets = Vec::new();
    for path in &args.output {
        for &number in &numbers {
            targets.push(name_of(path, number)?);
        }
        if numbers.len() > 1 && targets[targets.len() - 1] == targets[targets.len() - 2] {
            return Err(wrong_name(path, "several frames need the frame's number in the name, as in pose_%04d.obj"));
        }
    }
    output::check(&targets, args.force)?;

    let actor = Actor::read(&args.input, args.quiet)?;
    let (animation, bvh) = (args.animation.as_deref(), args.bvh.as_deref());
    let motion = Motion::open(&actor.document, &actor.rigged, &args.input, animation, bvh, args.quiet)?;
    let rate = args.fps.unwrap_or_else(|| motion.rate());
    let mut outputs = Outputs::new(args.force);
    let mut told = false;
    for &number in &numbers {
        context.check_cancelled()?;
        let time = args.time.unwrap_or_else(|| f64::from(number.unwrap_or(0)) / rate);
        let worlds = motion.worlds(&actor.rigged, time)?;
        let posed = actor.pose(&worlds, args.method.method()).map_err(|e| e.in_file(&args.input))?;
        let mesh = actor.rigged.posed_mesh(&posed).map_err(|e| e.in_file(&args.input))?;
        let mut frozen: Option<Document> = None;
        for (path, kind) in args.output.iter().zip(&kinds) {
            let path = name_of(path, number)?;
            if *kind == Kind::Obj {
                outputs.write(&path, |out| obj::write(out, &mesh))?;
                continue;
            }
            if frozen.is_none() {
                let made = actor.document.posed(&actor.rigged, &worlds, &posed);
                let (document, warnings) = made.map_err(|e| e.in_file(&args.input))?;
                if !std::mem::replace(&mut told, true) && !args.quiet {
                    screen::warn(&warnings);
                }
                frozen = Some(document);
            }
            if let Some(document) = &frozen {
                write_document(document, &path, &mut outputs)?;
            }
        }
    }
    context.check_cancelled()?;
    outputs.commit()?;
    if !args.quiet {
        let what =
            if targets.len() == 1 { targets[0].display().to_string() } else { format!("{} files", targets.len()) };
        screen::say(&format!("wrote {what}: {} vertices", actor.rigged.surface().positions.len()));
    }
    Ok(())
}

fn kind(path: &Path) -> Result<Kind> {
    match input::kind(path) {
        Some(kind @ (Kind::Obj | Kind::Gltf)) => Ok(kind),
        _ => Err(wrong_name(path, "its name must end in .obj, .glb or .gltf")),
    }
}

fn wrong_name(path: &Path, allowed: &'static str) -> Error {
    Error::Parameter { name: "output", value: path.display().to_string(), allowed }
}

fn check_times(args: &Args) -> Result<()> {
    let finite = |name, value: Option<f64>, good: fn(f64) -> bool, allowed| match value.filter(|&v| !good(v)) {
        Some(value) => Err(Error::Parameter { name, value: value.to_string(), allowed }),
        None => Ok(()),
    };
    finite("time", args.time, f64::is_finite, "it must be a number of seconds")?;
    finite("fps", args.fps, |f| f.is_finite() && f > 0.0, "it must be more than 0")
}

/// The name of a frame's file: `%d`, or `%04d` with any number of digits, replaced by the number.
fn name_of(path: &Path, number: Option<u32>) -> Result<PathBuf> {
    let Some(name) = path.file_name().and_then(|n| n.to_str()) else { return Ok(path.to_path_buf()) };
    let Some((before, rest)) = name.split_once('%') else { return Ok(path.to_path_buf()) };
    let Some((digits, after)) =
        rest.split_once('d').filter(|(d, _)| d.is_empty() || d.parse::<u8>().is_ok_and(|w| w <= 10))
    else {
        return Ok(path.to_path_buf());
    };
    let Some(number) = number else {
        return Err(wrong_name(path, "a frame's number in the name needs --frames"));
    };
    let width = digits.parse().unwrap_or(0);
    Ok(path.with_file_name(format!("{before}{number:0width$}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_place_of_their_mark() {
        let name = |text: &str| name_of(Path::new(text), Some(7)).unwrap();
        assert_eq!(name("a/b_%04d.obj"), Path::new("a/b_0007.obj"));
        assert_eq!(name("%d.glb"), Path::new("7.glb"));
        assert_eq!(name("50%.glb"), Path::new("50%.glb"));
        assert_eq!(name("%999d.glb"), Path::new("%999d.glb"));
        assert_eq!(name_of(Path::new("a.obj"), None).unwrap(), Path::new("a.obj"));
        assert!(name_of(Path::new("a_%04d.obj"), None).is_err());
    }

    #[test]
    fn frames_are_a_range_with_both_ends() {
        assert_eq!(frames("0..24"), Ok(0..=24));
        assert_eq!(frames("3..3"), Ok(3..=3));
        for bad in ["", "3", "4..3", "a..b", "-1..2", "0...2", "0..4294967296"] {
            assert!(frames(bad).is_err(), "{bad}");
        }
    }
}
