//! `skinbind bind`: a mesh and a skeleton in, a rigged mesh or its weights out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use skinbind::bind::{Bound, Method, Params, Report, Seconds};
use skinbind::crawl::Neighbors;
use skinbind::heat;
use skinbind::influence::{Falloff, Limits};
use skinbind::io::export::{Character, Format, Piece};
use skinbind::io::gltf::Document;
use skinbind::io::output::{self, Outputs};
use skinbind::io::weights_file;
use skinbind::model::{Pose, Skeleton};
use skinbind::progress::{Progress, Stage};
use skinbind::voxelize::Interior;
use skinbind::{Error, Result};

use super::device::Device;
use super::input::{self, Bones, Input, Kind};
use super::progress::Bar;
use super::{Context, rigged, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind bind body.glb -s skeleton.json -o rigged.glb
  skinbind bind body.obj -s skeleton.json -o rigged.glb -o weights.mhw --resolution 256
  skinbind bind rigged.glb --replace-skin --max-influences 8 -o rebound.glb --report report.json";

/// Compute skin weights for a mesh and write it rigged.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The mesh: .glb, .gltf or .obj.
    input: PathBuf,
    /// The skeleton: .json, or a .glb or .gltf whose joints to take. Left out where INPUT has joints.
    #[arg(short, long, value_name = "FILE")]
    skeleton: Option<PathBuf>,
    /// Take the joints from this node of INPUT (or of the skeleton file) down.
    #[arg(long, value_name = "NODE")]
    skeleton_root: Option<String>,
    /// Where to write: .glb, .gltf, .dae, .mesh.xml or .md5mesh for the rigged mesh, .mhw or .json for the weights. May be
    /// repeated.
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    output: Vec<PathBuf>,
    /// How weights are computed.
    #[arg(long, value_enum, default_value_t)]
    method: MethodArg,
    /// Voxels along the longest axis, 16 to 1024 [default: what gives about 100,000 solid voxels; 128 for geodesic].
    #[arg(long, value_name = "N")]
    resolution: Option<u32>,
    /// For geodesic: which voxels a step may lead to: over faces only, or over edges and corners too.
    #[arg(long, value_enum, default_value_t)]
    neighbors: NeighborsArg,
    /// How the inside is told from the outside.
    #[arg(long, value_enum, default_value_t)]
    interior: InteriorArg,
    /// For geodesic: share of the squared distance in the falloff, 0 to 1.
    #[arg(long, value_name = "A", default_value_t = Falloff::default().smoothing, allow_negative_numbers = true)]
    smoothing: f64,
    /// For geodesic: exponent of the falloff: higher is sharper.
    #[arg(long, value_name = "P", default_value_t = Falloff::default().power, allow_negative_numbers = true)]
    falloff_power: f64,
    /// For both heats: most that heat may be off the exact solution, 1e-9 to 0.1.
    #[arg(long, value_name = "T", default_value_t = heat::TOLERANCE, allow_negative_numbers = true)]
    tolerance: f64,
    /// For voxel-heat: how far a voxel is from a bone that may heat it.
    #[arg(long, value_enum, default_value_t)]
    distance: DistanceArg,
    /// Most bones that move one vertex, 1 to 16.
    #[arg(long, value_name = "K", default_value_t = Limits::default().max_influences)]
    max_influences: usize,
    /// Weights below this are dropped.
    #[arg(long, value_name = "T", default_value_t = Limits::default().threshold, allow_negative_numbers = true)]
    threshold: f64,
    /// Where to compute: auto (a hardware GPU that holds it, else the CPU), cpu, gpu, or a part of an adapter's name
    /// (`skinbind devices` lists them).
    #[arg(long, value_name = "NAME", default_value = "auto")]
    device: String,
    /// Give this bone no weight. May be repeated.
    #[arg(long, value_name = "BONE")]
    exclude: Vec<String>,
    /// Bind anew what has a skin already.
    #[arg(long)]
    replace_skin: bool,
    /// Overwrite outputs that are there already.
    #[arg(long)]
    force: bool,
    /// Compute everything, write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Print neither warnings nor progress.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print what each stage took.
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
pub enum MethodArg {
    /// By heat that spreads from the bones inside the body.
    #[default]
    VoxelHeat,
    /// By distance through the body.
    Geodesic,
    /// By heat that spreads from the bones over the surface.
    Heat,
    /// By straight distance, up to twice the nearest.
    Envelope,
    /// All to the nearest bone.
    Closest,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Geodesic => Method::Geodesic,
            MethodArg::VoxelHeat => Method::VoxelHeat,
            MethodArg::Heat => Method::Heat,
            MethodArg::Envelope => Method::Envelope,
            MethodArg::Closest => Method::Closest,
        }
    }
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum DistanceArg {
    /// Along a straight line, whatever is in the way.
    #[default]
    Straight,
    /// Through the body, where that is a detour.
    Crawl,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum NeighborsArg {
    #[value(name = "6")]
    Six,
    #[default]
    #[value(name = "26")]
    TwentySix,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum InteriorArg {
    /// Flood where the surface is closed, winding number where it is not.
    #[default]
    Auto,
    /// All that a fill from outside does not reach.
    Flood,
    /// Where the generalized winding number is above one half.
    Winding,
}

impl Args {
    fn params(&self) -> Params {
        Params {
            method: self.method.into(),
            resolution: self.resolution,
            neighbors: match self.neighbors {
                NeighborsArg::Six => Neighbors::Six,
                NeighborsArg::TwentySix => Neighbors::TwentySix,
            },
            interior: match self.interior {
                InteriorArg::Auto => Interior::Auto,
                InteriorArg::Flood => Interior::Flood,
                InteriorArg::Winding => Interior::Winding,
            },
            falloff: Falloff { smoothing: self.smoothing, power: self.falloff_power },
            heat: heat::Parameters {
                tolerance: self.tolerance,
                distance: match self.distance {
                    DistanceArg::Straight => heat::Distance::Straight,
                    DistanceArg::Crawl => heat::Distance::Crawl,
                },
                ..Default::default()
            },
            surface_heat: heat::surface::Parameters { tolerance: self.tolerance, ..Default::default() },
            limits: Limits { max_influences: self.max_influences, threshold: self.threshold },
            exclude: self.exclude.clone(),
        }
    }

    /// All files that the run will write.
    ///
    /// # Errors
    /// [`Error::Parameter`] for an output of unknown kind.
    fn targets(&self) -> Result<Vec<PathBuf>> {
        let mut targets = targets_of(&self.output)?;
        targets.extend(self.report.clone());
        Ok(targets)
    }
}

/// All files that are written for outputs of these names.
///
/// # Errors
/// [`Error::Parameter`] for an output of unknown kind.
pub fn targets_of(outputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut targets = Vec::new();
    for path in outputs {
        if let Some(format) = Format::of(path) {
            targets.extend(format.targets(path));
            continue;
        }
        let allowed = "its name must end in .glb, .gltf, .dae, .mesh.xml or .md5mesh for a rigged mesh, \
                       .mhw or .json for weights";
        targets.extend(rigged::targets_of(path, allowed)?);
    }
    Ok(targets)
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let params = args.params();
    params.check()?;
    let device = Device::open(&args.device, params.method.has_gpu_stages(), args.quiet)?;
    output::check(&args.targets()?, args.force)?;

    let bar = Bar::new(context, args.quiet);
    let update = |stage, fraction| bar.update(stage, fraction);
    let progress = Progress::new(&update);
    let clock = Instant::now();
    progress.at(Stage::Read, 0.0)?;
    let (mut input, bones) = read(args)?;
    let read_seconds = clock.elapsed().as_secs_f64();

    let bound = device.bind(&input.mesh, &bones.skeleton, &params, args.quiet, progress).map_err(|e| blame(e, args))?;
    let Bound { weights, mut report } = bound;
    report.warnings.splice(0..0, input.warnings.drain(..).chain(bones.warnings.iter().cloned()));

    let clock = Instant::now();
    progress.at(Stage::Write, 0.0)?;
    let mut outputs = Outputs::new(args.force);
    if !args.dry_run {
        write_all(args, &mut input, &bones, &weights, &mut outputs)?;
    }
    put_seconds(&mut report, read_seconds, clock.elapsed().as_secs_f64());
    report.peak_bytes = (context.peak_bytes)();
    if let Some(path) = args.report.as_deref().filter(|_| !args.dry_run) {
        let text = screen::json(&report)?;
        outputs.write(path, |out| out.write_all(text.as_bytes()))?;
    }
    context.check_cancelled()?;
    outputs.commit()?;
    drop(bar);
    tell(args, &report)
}

fn read(args: &Args) -> Result<(Input, Bones)> {
    // The small file first: its faults show at once.
    let root = args.skeleton_root.as_deref();
    let given = args.skeleton.as_deref().map(|path| input::skeleton(path, root)).transpose()?;
    let input = input::mesh(&args.input, args.replace_skin)?;
    let bones = match (given, &input.document) {
        (Some(bones), _) => bones,
        (None, Some(document)) => input::joints(document, &args.input, root)?,
        (None, None) => return Err(input::no_skeleton(&args.input)),
    };
    Ok((input, bones))
}

/// The file that an error of the bind is about.
fn blame(error: Error, args: &Args) -> Error {
    let of_skeleton = matches!(error.root(), Error::NoBones(_) | Error::UnknownBone(_));
    match &args.skeleton {
        Some(path) if of_skeleton => error.in_file(path),
        _ => error.in_file(&args.input),
    }
}

fn write_all(
    args: &Args,
    input: &mut Input,
    bones: &Bones,
    weights: &skinbind::model::Weights,
    outputs: &mut Outputs,
) -> Result<()> {
    let rigged = args.output.iter().any(|path| input::kind(path) == Some(Kind::Gltf));
    let document = rigged.then(|| rig(&args.input, input, bones, weights)).transpose()?;
    for path in &args.output {
        if let Some(format) = Format::of(path) {
            export(format, &args.input, input, bones, weights, path, outputs)?;
            continue;
        }
        match (input::kind(path), &document) {
            (Some(Kind::Gltf), Some(document)) => write_document(document, path, outputs)?,
            _ => {
                let names = names(&bones.skeleton);
                let title = screen::stem(&args.input);
                outputs.write(path, |out| weights_file::write(out, &title, &names, weights))?;
            }
        }
    }
    Ok(())
}

fn rig(path: &Path, input: &mut Input, bones: &Bones, weights: &skinbind::model::Weights) -> Result<Document> {
    let mut document = match input.document.take() {
        Some(document) => document,
        None => Document::from_mesh(&input.mesh, &screen::stem(path))?,
    };
    document.add_skin(&bones.skeleton, bones.nodes.as_ref(), weights).map_err(|e| e.in_file(path))?;
    Ok(document)
}

/// Writes mesh, skeleton and weights in a format that holds no more than these.
fn export(
    format: Format,
    source: &Path,
    input: &Input,
    bones: &Bones,
    weights: &skinbind::model::Weights,
    path: &Path,
    outputs: &mut Outputs,
) -> Result<()> {
    let name = screen::stem(source);
    let pieces = [Piece { name: &name, mesh: &input.mesh, weights }];
    let rest = Pose::rest(&bones.skeleton);
    // What a unit is, the input does not say; glTF's are metres.
    let character = Character { pieces: &pieces, skeleton: &bones.skeleton, rest: &rest, meters: 1.0 };
    write_exported(format, &character, path, outputs)
}

/// Writes the files of a character in one of the formats beside glTF.
pub fn write_exported(format: Format, character: &Character, path: &Path, outputs: &mut Outputs) -> Result<()> {
    for (path, text) in format.files(character, path)? {
        outputs.write(&path, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}

/// Writes a document under the name of its extension, with the binary file that a .gltf needs.
pub fn write_document(document: &Document, path: &Path, outputs: &mut Outputs) -> Result<()> {
    for (path, bytes) in document.files(path)? {
        outputs.write(&path, |out| bytes.write_to(out))?;
    }
    Ok(())
}

fn names(skeleton: &Skeleton) -> Vec<&str> {
    skeleton.bones().iter().map(|b| b.name.as_str()).collect()
}

/// Reading came before, and writing after, the stages that the bind itself has measured.
fn put_seconds(report: &mut Report, read: f64, write: f64) {
    let mut seconds = Seconds::default();
    seconds.add(Stage::Read.name(), read);
    for &(stage, taken) in report.seconds.0.iter().filter(|(stage, _)| *stage != "total") {
        seconds.add(stage, taken);
    }
    seconds.add(Stage::Write.name(), write);
    report.seconds = seconds;
}

fn tell(args: &Args, report: &Report) -> Result<()> {
    if !args.quiet {
        screen::warn(&report.warnings);
        let written: Vec<String> = args.output.iter().map(|p| p.display().to_string()).collect();
        let total = report.seconds.of("total").unwrap_or_default();
        let done =
            if args.dry_run { "dry run, nothing written".to_owned() } else { format!("wrote {}", written.join(", ")) };
        screen::say(&format!("{done}: {} vertices, {} bones, {total:.2} s", report.vertices, report.bones));
    }
    if args.verbose {
        let rows: Vec<(&str, String)> = report.seconds.0.iter().map(|&(s, t)| (s, format!("{t:>9.4} s"))).collect();
        screen::say(screen::table("seconds", &rows).trim_end());
    }
    if args.json { screen::print_json(report) } else { Ok(()) }
}
