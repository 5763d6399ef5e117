//! `skinbind transfer`: the weights of a rigged mesh for another one, such as its clothes.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use skinbind::Result;
use skinbind::bind::Seconds;
use skinbind::edit::transfer::{self, Params, Transferred};
use skinbind::influence::Limits;
use skinbind::io::output::{self, Outputs};
use skinbind::progress::{Progress, Stage};

use super::input::{self, Bones, Input};
use super::progress::Bar;
use super::rigged::{self, Rigged};
use super::{Context, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind transfer body.glb shirt.obj -o shirt.glb
  skinbind transfer body.glb shoes.obj -o shoes.mhw --report report.json
  skinbind transfer body.glb coat.glb -o coat-rigged.glb --max-distance 0.1 --flipped";

/// Compute weights for a mesh from those of a rigged one that it lies on.
///
/// Each vertex takes the weights of the closest point of the source where that is near and faces the same way; the others
/// are filled smoothly from these. A separate part that is far from the source follows its nearest point as a whole. Both
/// meshes are taken in world space, the source in its rest pose.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rigged mesh: .glb or .gltf.
    source: PathBuf,
    /// The mesh to get weights: .glb, .gltf or .obj.
    target: PathBuf,
    /// Where to write: .glb or .gltf for TARGET with the skeleton of SOURCE, .mhw or .json for the weights. May be repeated.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    /// How far a vertex may be from the source, as a share of the diagonal of TARGET.
    #[arg(long, value_name = "D", default_value_t = Params::default().max_distance, allow_negative_numbers = true)]
    max_distance: f64,
    /// By how many degrees the two normals may differ.
    #[arg(long, value_name = "DEGREES", default_value_t = Params::default().max_angle, allow_negative_numbers = true)]
    max_angle: f64,
    /// A normal may point the opposite way even where SOURCE faces the right way within reach; a lining that nothing else is
    /// near to may do so anyway.
    #[arg(long)]
    flipped: bool,
    /// Smoothing steps over what was filled.
    #[arg(long, value_name = "N", default_value_t = Params::default().smoothing)]
    smoothing: usize,
    /// Most bones that move one vertex, 1 to 16.
    #[arg(long, value_name = "K", default_value_t = Limits::default().max_influences)]
    max_influences: usize,
    /// Weights below this are dropped.
    #[arg(long, value_name = "T", default_value_t = Limits::default().threshold, allow_negative_numbers = true)]
    threshold: f64,
    /// Take a TARGET that has a skin already, and replace that.
    #[arg(long)]
    replace_skin: bool,
    /// Overwrite outputs that are there already.
    #[arg(long)]
    force: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Print neither warnings nor progress.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Report {
    vertices: usize,
    triangles: usize,
    bones: usize,
    seconds: Seconds,
    peak_bytes: u64,
    #[serde(flatten)]
    transferred: Transferred,
}

impl Args {
    fn params(&self) -> Params {
        Params {
            max_distance: self.max_distance,
            max_angle: self.max_angle,
            flipped: self.flipped,
            smoothing: self.smoothing,
            limits: Limits { max_influences: self.max_influences, threshold: self.threshold },
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let params = args.params();
    params.check()?;
    output::check(&rigged::targets(&args.output, args.report.as_ref())?, args.force)?;
    let bar = Bar::new(context, args.quiet);
    let update = |stage, fraction| bar.update(stage, fraction);
    let progress = Progress::new(&update);
    let mut seconds = Seconds::default();

    let clock = Instant::now();
    progress.at(Stage::Read, 0.0)?;
    let source = input::rigged(&args.source)?;
    let mut target = input::mesh(&args.target, args.replace_skin)?;
    seconds.add(Stage::Read.name(), clock.elapsed().as_secs_f64());

    let clock = Instant::now();
    let Bones { skeleton, warnings, .. } = &source.bones;
    let mut transferred =
        transfer::transfer(&source.input.mesh, &source.weights, skeleton, &target.mesh, &params, progress)
            .map_err(|e| e.in_file(&args.source))?;
    seconds.add("transfer", clock.elapsed().as_secs_f64());
    let Input { warnings: of_target, .. } = &mut target;
    transferred.warnings.splice(0..0, warnings.iter().cloned().chain(of_target.drain(..)));

    let clock = Instant::now();
    progress.at(Stage::Write, 0.0)?;
    let mut outputs = Outputs::new(args.force);
    let written = Rigged {
        path: &args.target,
        mesh: &target.mesh,
        document: target.document,
        skeleton,
        nodes: None,
        weights: &transferred.weights,
    };
    written.write(&args.output, &mut outputs)?;
    seconds.add(Stage::Write.name(), clock.elapsed().as_secs_f64());
    let report = Report {
        vertices: target.mesh.positions().len(),
        triangles: target.mesh.triangles().len(),
        bones: skeleton.len(),
        seconds,
        peak_bytes: (context.peak_bytes)(),
        transferred,
    };
    if let Some(path) = &args.report {
        let text = screen::json(&report)?;
        outputs.write(path, |out| out.write_all(text.as_bytes()))?;
    }
    context.check_cancelled()?;
    outputs.commit()?;
    drop(bar);
    tell(args, &report)
}

fn tell(args: &Args, report: &Report) -> Result<()> {
    if !args.quiet {
        let done = &report.transferred;
        screen::warn(&done.warnings);
        let written: Vec<String> = args.output.iter().map(|p| p.display().to_string()).collect();
        screen::say(&format!(
            "wrote {}: {} vertices, {} matched, {} filled, {} far, {:.2} s",
            written.join(", "),
            report.vertices,
            done.matched_vertices,
            done.filled_vertices,
            done.far_vertices,
            report.seconds.of("total").unwrap_or_default(),
        ));
    }
    if args.json { screen::print_json(report) } else { Ok(()) }
}
