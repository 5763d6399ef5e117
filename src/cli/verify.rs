//! `skinbind verify`: every stage on a GPU and on the CPU, compared, on the given mesh or on the built-in ones.

use std::path::PathBuf;

use serde::Serialize;
use skinbind::bind::Params;
use skinbind::bind_gpu::GpuKernels;
use skinbind::gpu::{Context as Gpu, Selector, block_on};
use skinbind::model::{Mesh, Skeleton};
use skinbind::progress::Progress;
use skinbind::verify::{Row, verify};
use skinbind::{Error, Result};

use super::progress::Bar;
use super::{Context, demo, input, screen};

const EXAMPLES: &str = "\
Examples:
  skinbind verify
  skinbind verify body.glb -s skeleton.json --resolution 128 --json";

/// Low enough for software adapters.
const RESOLUTION: u32 = 64;

/// Check that a GPU computes what the CPU does, stage by stage.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The mesh: .glb, .gltf or .obj. Built-in ones where none is given.
    input: Option<PathBuf>,
    /// The skeleton: .json, or a .glb or .gltf whose joints to take.
    #[arg(short, long, value_name = "FILE", requires = "input")]
    skeleton: Option<PathBuf>,
    /// Voxels along the longest axis, 16 to 1024.
    #[arg(long, value_name = "N", default_value_t = RESOLUTION)]
    resolution: u32,
    /// The adapter: gpu for the best there is, or a part of its name.
    #[arg(long, value_name = "NAME", default_value = "gpu")]
    device: String,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Table {
    mesh: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Report<'a> {
    device: &'a str,
    driver: &'a str,
    software: bool,
    resolution: u32,
    passed: bool,
    meshes: &'a [Table],
}

/// Runs the command.
pub fn run(args: &Args, context: &Context) -> Result<()> {
    let params = Params { resolution: Some(args.resolution), ..Params::default() };
    params.check()?;
    let gpu = Gpu::headless_blocking(&Selector::from(args.device.as_str()))?;
    let meshes = meshes(args.input.as_deref(), args.skeleton.as_deref())?;
    let bar = Bar::new(context, false);
    let update = |stage, fraction| bar.update(stage, fraction);
    let tables = block_on(&gpu.device, async {
        let mut kernels = GpuKernels::new(&gpu.device, &gpu.queue).await?;
        let mut tables = Vec::new();
        for (name, mesh, skeleton) in &meshes {
            let rows = verify(&mut kernels, mesh, skeleton, &params, Progress::new(&update)).await?;
            tables.push(Table { mesh: name.clone(), rows });
        }
        Ok(tables)
    })?;
    gpu.check()?;
    drop(bar);
    let failed: Vec<String> = tables
        .iter()
        .flat_map(|table| {
            table.rows.iter().filter(|row| !row.passed).map(|row| format!("{} of {}", row.stage, table.mesh))
        })
        .collect();
    let info = gpu.info();
    if args.json {
        screen::print_json(&Report {
            device: &info.name,
            driver: &info.driver_info,
            software: gpu.is_software(),
            resolution: args.resolution,
            passed: failed.is_empty(),
            meshes: &tables,
        })?;
    } else {
        let kind = if gpu.is_software() { ", a software adapter" } else { "" };
        let text: String = tables.iter().map(text).collect();
        screen::print(&format!(
            "{} ({}{kind}) against the CPU at {}\n{text}",
            info.name, info.driver_info, args.resolution
        ))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(Error::Check(failed.join(", "))) }
}

fn text(table: &Table) -> String {
    let number = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") };
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            let verdict = if row.passed { "ok" } else { "FAILED" };
            let figures = [row.max, row.mean, row.p99, row.tolerance].map(number);
            let mut cells = vec![format!("{}: {}", row.stage, row.what), row.compared.to_string()];
            cells.extend(figures);
            cells.push(verdict.into());
            cells
        })
        .collect();
    let heads = ["stage", "compared", "max", "mean", "p99", "tolerance", "verdict"];
    format!("\n{}\n{}", table.mesh, screen::columns(&heads, &cells))
}

/// The mesh and skeleton of the files, or the built-in ones: a closed body, and one with its head cut off.
///
/// # Errors
/// Those of the readers.
pub fn meshes(
    path: Option<&std::path::Path>,
    skeleton: Option<&std::path::Path>,
) -> Result<Vec<(String, Mesh, Skeleton)>> {
    let Some(path) = path else {
        let (mesh, skeleton) = demo::character()?;
        let top = mesh.bounds().max.y - 0.1 * mesh.bounds().extent().y;
        let below = |t: &&[u32; 3]| mesh.corners(**t).iter().all(|p| p.y < top);
        let open = mesh.triangles().iter().filter(below).copied().collect();
        let open = Mesh::new(mesh.positions().to_vec(), open)?;
        return Ok(vec![("a closed body".into(), mesh, skeleton.clone()), ("an open body".into(), open, skeleton)]);
    };
    let read = input::mesh(path, true)?;
    let bones = match (skeleton, &read.document) {
        (Some(file), _) => input::skeleton(file, None)?,
        (None, Some(document)) => input::joints(document, path, None)?,
        (None, None) => return Err(input::no_skeleton(path)),
    };
    Ok(vec![(screen::stem(path), read.mesh, bones.skeleton)])
}
