//! `skinbind bench`: what each stage of a bind takes on the CPU and on a GPU.

use std::path::PathBuf;

use serde::Serialize;
use skinbind::Result;
use skinbind::bind::{Bound, Method, Params, Report, bind, bind_on_gpu};
use skinbind::bind_gpu::GpuKernels;
use skinbind::gpu::{Context as Gpu, Selector, block_on};
use skinbind::progress::Progress;

use super::bind::MethodArg;
use super::progress::Bar;
use super::{Context, screen, verify};

const EXAMPLES: &str = "\
Examples:
  skinbind bench
  skinbind bench --method voxel-heat
  skinbind bench body.glb -s skeleton.json --resolution 256 --runs 9 --json";

/// Measure each stage of a bind on the CPU and on a GPU.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The mesh: .glb, .gltf or .obj. A built-in body where none is given.
    input: Option<PathBuf>,
    /// The skeleton: .json, or a .glb or .gltf whose joints to take.
    #[arg(short, long, value_name = "FILE", requires = "input")]
    skeleton: Option<PathBuf>,
    /// How weights are computed.
    #[arg(long, value_enum, default_value_t)]
    method: MethodArg,
    /// Voxels along the longest axis, 16 to 1024.
    #[arg(long, value_name = "N", default_value_t = 128)]
    resolution: u32,
    /// Runs on each device, after one that does not count; the median is shown.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The adapter: gpu for the best there is, or a part of its name.
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    device: String,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    stage: &'static str,
    cpu_seconds: f64,
    gpu_seconds: f64,
}

#[derive(Serialize)]
struct Table<'a> {
    mesh: &'a str,
    method: Method,
    vertices: usize,
    bones: usize,
    resolution: u32,
    solid_voxels: u64,
    runs: u32,
    threads: usize,
    device: &'a str,
    driver: &'a str,
    software: bool,
    stages: Vec<Row>,
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let params = Params { method: args.method.into(), resolution: Some(args.resolution), ..Params::default() };
    params.check()?;
    let gpu = Gpu::headless_blocking(&Selector::from(args.device.as_str()))?;
    let meshes = verify::meshes(args.input.as_deref(), args.skeleton.as_deref())?;
    let (name, mesh, skeleton) = &meshes[0];
    let bar = Bar::new(context, false);
    let update = |stage, fraction| bar.update(stage, fraction);
    let progress = Progress::new(&update);
    let cpu = repeated(args.runs, || bind(mesh, skeleton, &params, progress))?;
    let mut kernels = block_on(&gpu.device, GpuKernels::new(&gpu.device, &gpu.queue))?;
    let on_gpu =
        repeated(args.runs, || block_on(&gpu.device, bind_on_gpu(&mut kernels, mesh, skeleton, &params, progress)))?;
    gpu.check()?;
    drop(bar);
    let stages = on_gpu[0].seconds.0.iter().map(|(stage, _)| *stage);
    let stages = stages
        .map(|stage| Row { stage, cpu_seconds: median(&cpu, stage), gpu_seconds: median(&on_gpu, stage) })
        .collect();
    let (report, info) = (&on_gpu[0], gpu.info());
    let table = Table {
        mesh: name,
        method: report.method,
        vertices: report.vertices,
        bones: report.bones,
        resolution: report.resolution,
        solid_voxels: report.solid_voxels,
        runs: args.runs,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        device: &info.name,
        driver: &info.driver_info,
        software: gpu.is_software(),
        stages,
    };
    if args.json { screen::print_json(&table) } else { screen::print(&text(&table)) }
}

/// The reports of so many binds, after one that does not count.
fn repeated(runs: u32, mut bind: impl FnMut() -> Result<Bound>) -> Result<Vec<Report>> {
    bind()?;
    (0..runs).map(|_| bind().map(|bound| bound.report)).collect()
}

fn median(reports: &[Report], stage: &str) -> f64 {
    let mut seconds: Vec<f64> = reports.iter().filter_map(|report| report.seconds.of(stage)).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}

fn text(table: &Table) -> String {
    let cells: Vec<Vec<String>> = table
        .stages
        .iter()
        .map(|row| {
            let ms = |seconds: f64| format!("{:.2}", 1e3 * seconds);
            let ratio = format!("{:.2}", row.cpu_seconds / row.gpu_seconds);
            vec![row.stage.into(), ms(row.cpu_seconds), ms(row.gpu_seconds), ratio]
        })
        .collect();
    let mut text = format!(
        "{}: {} vertices, {} bones, {} solid voxels at {}; median of {} runs, milliseconds\n\
         cpu: {} threads; gpu: {} ({})\n\n{}",
        table.mesh,
        table.vertices,
        table.bones,
        table.solid_voxels,
        table.resolution,
        table.runs,
        table.threads,
        table.device,
        table.driver,
        screen::columns(&["stage", "cpu", "gpu", "cpu / gpu"], &cells)
    );
    if table.stages.iter().all(|row| row.stage != "voxelize") {
        text += "\nThis method has no GPU stage: both columns are the CPU's.\n";
    }
    if table.software {
        text += "\nThe adapter is a software one: these figures say nothing about a GPU.\n";
    }
    text
}
