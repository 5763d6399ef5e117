//! `skinbind bench`: what each stage of a bind takes on the CPU and on a GPU, or skinning with `--skin`.

mod on_device;
mod skin;

use std::path::PathBuf;

use serde::Serialize;
use skinbind::Result;
use skinbind::bind::{Bound, Method, Params, Report, bind, bind_on_gpu};
use skinbind::bind_gpu::GpuKernels;
use skinbind::gpu::{Context as Gpu, Selector, block_on};
use skinbind::model::{Grid, Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::voxelize::solid_voxels;

use self::on_device::Lap;
use super::bind::MethodArg;
use super::progress::Bar;
use super::{Context, screen, verify};

const EXAMPLES: &str = "\
Examples:
  skinbind bench
  skinbind bench --skin
  skinbind bench --method geodesic
  skinbind bench body.glb -s skeleton.json --resolution 128,256,512 --runs 9 --json";

/// Measure each stage of a bind, or skinning, on the CPU and on a GPU.
///
/// The first table has whole binds: what each stage takes by the host's clock, uploads and waiting included. The second has the
/// stages of geodesic alone by the device's own clock, where it has one, and how fast they move memory next to a plain copy.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The mesh: .glb, .gltf or .obj. A built-in body with 38 bones where none is given.
    input: Option<PathBuf>,
    /// The skeleton: .json, or a .glb or .gltf whose joints to take.
    #[arg(short, long, value_name = "FILE", requires = "input")]
    skeleton: Option<PathBuf>,
    /// How weights are computed.
    #[arg(long, value_enum, default_value_t)]
    method: MethodArg,
    /// Voxels along the longest axis, 16 to 1024; several with commas between.
    #[arg(long, value_name = "N", default_value = "128", value_delimiter = ',')]
    resolution: Vec<u32>,
    /// Runs on each device, after one that does not count; the median is shown.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The adapter: gpu for the best there is, a software one if there is no other; or a part of its name.
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    device: String,
    /// Measure skinning instead of a bind.
    #[arg(long, conflicts_with = "input")]
    skin: bool,
    /// Print the tables as JSON: an object, or a list of them for several resolutions.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    stage: &'static str,
    cpu_seconds: f64,
    gpu_seconds: f64,
}

/// One resolution.
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
    /// The stages alone, medians; the copy last.
    on_device: Vec<Lap>,
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let method = Method::from(args.method);
    let params: Vec<Params> =
        args.resolution.iter().map(|&n| Params { method, resolution: Some(n), ..Params::default() }).collect();
    params.iter().try_for_each(Params::check)?;
    let gpu = Gpu::headless_blocking(&Selector::from(args.device.as_str()))?;
    if args.skin {
        return skin::run(&gpu, args.runs, args.json);
    }
    let meshes = verify::meshes(args.input.as_deref(), args.skeleton.as_deref())?;
    let (name, mesh, skeleton) = &meshes[0];
    let bar = Bar::new(context, false);
    let update = |stage, fraction| bar.update(stage, fraction);
    let progress = Progress::new(&update);
    let mut kernels = block_on(&gpu.device, GpuKernels::new(&gpu.device, &gpu.queue))?;
    let copy = block_on(&gpu.device, on_device::copy(&kernels))?;
    let mut tables = Vec::new();
    for params in &params {
        let cpu = repeated(args.runs, || bind(mesh, skeleton, params, progress))?;
        let bind = || block_on(&gpu.device, bind_on_gpu(&mut kernels, mesh, skeleton, params, progress));
        let on_gpu = repeated(args.runs, bind)?;
        // Stages are timed alone for the method that has all of them.
        let mut on_device = match params.method {
            Method::Geodesic => laps(&mut kernels, mesh, skeleton, params, args.runs, progress)?,
            _ => Vec::new(),
        };
        on_device.push(copy);
        let (report, info) = (&on_gpu[0], gpu.info());
        let row = |stage| Row { stage, cpu_seconds: median_of(&cpu, stage), gpu_seconds: median_of(&on_gpu, stage) };
        tables.push(Table {
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
            stages: report.seconds.0.iter().map(|(stage, _)| row(*stage)).collect(),
            on_device,
        });
    }
    gpu.check()?;
    drop(bar);
    match (args.json, &tables[..]) {
        (true, [only]) => screen::print_json(only),
        (true, all) => screen::print_json(&all),
        (false, all) => screen::print(&text(all)),
    }
}

/// The reports of so many binds, after one that does not count.
fn repeated(runs: u32, mut bind: impl FnMut() -> Result<Bound>) -> Result<Vec<Report>> {
    bind()?;
    (0..runs).map(|_| bind().map(|bound| bound.report)).collect()
}

/// The stages alone: the medians of so many runs. The binds before them have warmed the device up.
fn laps(
    kernels: &mut GpuKernels,
    mesh: &Mesh,
    skeleton: &Skeleton,
    params: &Params,
    runs: u32,
    progress: Progress,
) -> Result<Vec<Lap>> {
    let weld = mesh.weld();
    let grid = Grid::around(&mesh.bounds(), params.resolution.expect("every run has one"))?;
    let voxels = solid_voxels(mesh, &weld, &grid, params.interior, progress)?;
    let device = kernels.device.clone();
    let mut run = || block_on(&device, on_device::stages(kernels, mesh, &weld, &voxels, skeleton, params));
    let runs = (0..runs).map(|_| run()).collect::<Result<Vec<Vec<Lap>>>>()?;
    let of =
        |k: usize, value: fn(&Lap) -> Option<f64>| median(runs.iter().filter_map(|laps| value(&laps[k])).collect());
    let lap = |(k, lap): (usize, &Lap)| Lap {
        device_seconds: lap.device_seconds.map(|_| of(k, |lap| lap.device_seconds)),
        wall_seconds: of(k, |lap| Some(lap.wall_seconds)),
        ..*lap
    };
    Ok(runs[0].iter().enumerate().map(lap).collect())
}

fn median_of(reports: &[Report], stage: &str) -> f64 {
    median(reports.iter().filter_map(|report| report.seconds.of(stage)).collect())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}

fn text(tables: &[Table]) -> String {
    let Some(first) = tables.first() else { return String::new() };
    let ms = |seconds: f64| format!("{:.2}", 1e3 * seconds);
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
    let (mut binds, mut stages) = (Vec::new(), Vec::new());
    for table in tables {
        let resolution = table.resolution.to_string();
        for row in &table.stages {
            let ratio = format!("{:.2}", row.cpu_seconds / row.gpu_seconds);
            binds.push(vec![resolution.clone(), row.stage.into(), ms(row.cpu_seconds), ms(row.gpu_seconds), ratio]);
        }
        let copy = table.on_device.last().and_then(Lap::speed).unwrap_or(f64::NAN);
        for lap in &table.on_device {
            stages.push(vec![
                resolution.clone(),
                lap.stage.into(),
                or_dash(lap.device_seconds.map(ms)),
                ms(lap.wall_seconds),
                or_dash(lap.speed().map(|speed| format!("{:.1}", speed / 1e9))),
                or_dash(lap.speed().map(|speed| format!("{:.0} %", 100.0 * speed / copy))),
            ]);
        }
    }
    let voxels: Vec<String> =
        tables.iter().map(|table| format!("{} at {}", table.solid_voxels, table.resolution)).collect();
    let mut text = format!(
        "{}: {} vertices, {} bones; solid voxels: {}; median of {} runs, milliseconds\n\
         cpu: {} threads; gpu: {} ({})\n\nwhole binds\n{}\nstages alone on the gpu, by its own clock\n{}",
        first.mesh,
        first.vertices,
        first.bones,
        voxels.join(", "),
        first.runs,
        first.threads,
        first.device,
        first.driver,
        screen::columns(&["resolution", "stage", "cpu", "gpu", "cpu / gpu"], &binds),
        screen::columns(&["resolution", "stage", "gpu clock", "host clock", "GB/s", "of the copy"], &stages)
    );
    if first.on_device.iter().any(|lap| lap.device_seconds.is_none()) {
        text += "\nThe device has no timestamps: GB/s are by the host's clock.\n";
    }
    if first.stages.iter().all(|row| row.stage != "voxelize") {
        text += "\nThis method has no GPU stage: both columns are the CPU's.\n";
    }
    if first.software {
        text += "\nThe adapter is a software one: these figures say nothing about a GPU.\n";
    }
    text
}
