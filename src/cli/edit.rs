//! `skinbind edit`: changes to the weights of a rigged mesh, made in the order in which they are asked for.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::{ArgMatches, FromArgMatches, ValueEnum};
use serde::Serialize;
use skinbind::bind::Seconds;
use skinbind::edit::{self, Axis, Bare, Locks, Mirror, Smooth};
use skinbind::influence::Stats;
use skinbind::io::output::{self, Outputs};
use skinbind::model::{Mesh, Skeleton, Warning, Weights};
use skinbind::progress::Stage;
use skinbind::{Error, Result};

use super::rigged::{self, Rigged};
use super::{Context, input, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind edit rigged.glb -o smooth.glb --smooth 3 --limit 4
  skinbind edit rigged.glb -o even.glb --lock head --mirror x --threshold 0.02
  skinbind edit rigged.glb -o weights.mhw --bare nearest";

/// Change the weights of a rigged mesh.
///
/// The changes are made in the order given, each as often as it stands there; a lock holds for those after it. Weights are
/// scaled to add up to 1 at the end of each.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rigged mesh: .glb or .gltf.
    input: PathBuf,
    /// Where to write: .glb or .gltf for the rigged mesh, .mhw or .json for the weights. May be repeated.
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    #[command(flatten)]
    changes: Changes,
    /// Overwrite outputs that are there already.
    #[arg(long)]
    force: bool,
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Print no warnings.
    #[arg(short, long)]
    quiet: bool,
}

/// The options that change weights, as they are declared.
#[derive(clap::Args)]
struct Options {
    /// Keep the K strongest bones of each vertex, 1 to 16.
    #[arg(long, value_name = "K")]
    limit: Vec<usize>,
    /// Drop weights below this.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    threshold: Vec<f64>,
    /// Move each vertex halfway towards the mean of its neighbours, N times.
    #[arg(long, value_name = "N")]
    smooth: Vec<usize>,
    /// Copy the weights of the positive side of this axis to the negative side, bones by name (.L and .R and the like).
    #[arg(long, value_enum, value_name = "AXIS")]
    mirror: Vec<AxisArg>,
    /// Give vertices without weights to the root, or those of the nearest surface that has some.
    #[arg(long, value_enum, value_name = "TO")]
    bare: Vec<BareArg>,
    /// Keep the weights of this bone as they are from here on.
    #[arg(long, value_name = "BONE")]
    lock: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AxisArg {
    X,
    Y,
    Z,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BareArg {
    Root,
    Nearest,
}

/// One change.
#[derive(Debug, Clone)]
enum Change {
    Limit(usize),
    Threshold(f64),
    Smooth(usize),
    Mirror(AxisArg),
    Bare(BareArg),
    Lock(String),
}

/// All changes in the order of the command line.
struct Changes(Vec<Change>);

impl clap::Args for Changes {
    fn augment_args(command: clap::Command) -> clap::Command {
        Options::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Options::augment_args_for_update(command)
    }
}

impl FromArgMatches for Changes {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let options = Options::from_arg_matches(matches)?;
        let mut placed = Vec::new();
        let mut place = |name: &str, changes: Vec<Change>| {
            placed.extend(matches.indices_of(name).into_iter().flatten().zip(changes));
        };
        place("limit", options.limit.into_iter().map(Change::Limit).collect());
        place("threshold", options.threshold.into_iter().map(Change::Threshold).collect());
        place("smooth", options.smooth.into_iter().map(Change::Smooth).collect());
        place("mirror", options.mirror.into_iter().map(Change::Mirror).collect());
        place("bare", options.bare.into_iter().map(Change::Bare).collect());
        place("lock", options.lock.into_iter().map(Change::Lock).collect());
        placed.sort_by_key(|(at, _)| *at);
        Ok(Self(placed.into_iter().map(|(_, change)| change).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Serialize)]
struct Report {
    vertices: usize,
    triangles: usize,
    bones: usize,
    /// Most influences of a vertex in the result.
    max_influences: usize,
    /// Vertices that had no weights and were given some.
    bare_filled: usize,
    /// The largest share of a vertex' weight that a limit or threshold cut off.
    largest_pruned_share: f64,
    seconds: Seconds,
    peak_bytes: u64,
    warnings: Vec<Warning>,
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    output::check(&rigged::targets(&args.output, args.report.as_ref())?, args.force)?;
    let mut seconds = Seconds::default();
    let clock = Instant::now();
    let mut source = input::rigged(&args.input)?;
    seconds.add(Stage::Read.name(), clock.elapsed().as_secs_f64());

    let clock = Instant::now();
    let skeleton = &source.bones.skeleton;
    let mut work = Work::new(&source.input.mesh, skeleton, source.weights);
    for change in &args.changes.0 {
        context.check_cancelled()?;
        work.apply(change).map_err(|e| e.in_file(&args.input))?;
    }
    let weights = work.finish().map_err(|e| e.in_file(&args.input))?;
    let (stats, bare_filled) = (work.stats, work.bare_filled);
    seconds.add("edit", clock.elapsed().as_secs_f64());

    let clock = Instant::now();
    let mut outputs = Outputs::new(args.force);
    let written = Rigged {
        path: &args.input,
        mesh: &source.input.mesh,
        document: source.input.document.take(),
        skeleton,
        nodes: source.bones.nodes.as_ref(),
        weights: &weights,
    };
    written.write(&args.output, &mut outputs)?;
    seconds.add(Stage::Write.name(), clock.elapsed().as_secs_f64());
    let report = Report {
        vertices: weights.len(),
        triangles: source.input.mesh.triangles().len(),
        bones: skeleton.len(),
        max_influences: weights.most_influences(),
        bare_filled,
        largest_pruned_share: stats.largest_pruned_share,
        seconds,
        peak_bytes: (context.peak_bytes)(),
        warnings: source.input.warnings.into_iter().chain(source.bones.warnings.iter().cloned()).collect(),
    };
    if let Some(path) = &args.report {
        let text = screen::json(&report)?;
        outputs.write(path, |out| out.write_all(text.as_bytes()))?;
    }
    context.check_cancelled()?;
    outputs.commit()?;
    tell(args, &report)
}

/// Weights under edit.
struct Work<'a> {
    mesh: &'a Mesh,
    skeleton: &'a Skeleton,
    weights: Weights,
    locks: Locks,
    stats: Stats,
    bare_filled: usize,
}

impl<'a> Work<'a> {
    fn new(mesh: &'a Mesh, skeleton: &'a Skeleton, weights: Weights) -> Self {
        // Files round weights: from here on they add up to 1.
        let weights = edit::normalize(&weights, &Locks::NONE);
        Self { mesh, skeleton, weights, locks: Locks::NONE, stats: Stats::default(), bare_filled: 0 }
    }

    fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Limit(most) => {
                let limited = edit::limit(&self.weights, *most, self.skeleton, &self.locks)?;
                self.take_cut(limited);
            }
            Change::Threshold(least) => {
                let cut = edit::threshold(&self.weights, *least, self.skeleton, &self.locks)?;
                self.take_cut(cut);
            }
            Change::Smooth(steps) => {
                let by = Smooth { steps: *steps, ..Smooth::default() };
                self.weights = edit::smooth(self.mesh, &self.weights, &by, &self.locks)?;
            }
            Change::Mirror(axis) => {
                let axis = match axis {
                    AxisArg::X => Axis::X,
                    AxisArg::Y => Axis::Y,
                    AxisArg::Z => Axis::Z,
                };
                let by = Mirror::across(axis);
                self.weights = edit::mirror(self.mesh, &self.weights, self.skeleton, &by, &self.locks)?;
            }
            Change::Bare(to) => {
                let to = match to {
                    BareArg::Root => Bare::Root,
                    BareArg::Nearest => Bare::Nearest,
                };
                let (weights, filled) = edit::fill_bare(self.mesh, &self.weights, self.skeleton, to)?;
                self.weights = weights;
                self.bare_filled += filled;
            }
            Change::Lock(name) => {
                let bone = self.skeleton.find(name).ok_or_else(|| Error::UnknownBone(name.clone()))?;
                self.locks.set_bone(bone as u32, true);
            }
        }
        Ok(())
    }

    fn take_cut(&mut self, (weights, stats): (Weights, Stats)) {
        self.weights = weights;
        self.stats = self.stats.merge(stats);
    }

    /// The result, in which no vertex may be without weights.
    fn finish(&mut self) -> Result<Weights> {
        let bare = self.weights.iter().filter(|row| row.is_empty()).count();
        if let Some(first) = (0..self.weights.len()).find(|&v| self.weights.of(v).is_empty()) {
            return Err(Error::format(
                format!("vertex {first} (0-based)"),
                format!("it is the first of {bare} without weights; --bare root or --bare nearest gives them some"),
            ));
        }
        Ok(std::mem::take(&mut self.weights))
    }
}

fn tell(args: &Args, report: &Report) -> Result<()> {
    if !args.quiet {
        screen::warn(&report.warnings);
        let written: Vec<String> = args.output.iter().map(|p| p.display().to_string()).collect();
        let total = report.seconds.of("total").unwrap_or_default();
        screen::say(&format!("wrote {}: {} vertices, {total:.2} s", written.join(", "), report.vertices));
    }
    if args.json { screen::print_json(report) } else { Ok(()) }
}
