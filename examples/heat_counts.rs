//! Counts what heat on the GPU does, for `docs/heat.md`: on a software adapter, time says nothing.
//!
//! `cargo run --release --example heat_counts -- body.obj skeleton.json 64 128 192`

use std::path::Path;

use skinbind::gpu::{Context, block_on};
use skinbind::heat::Parameters;
use skinbind::heat::gpu::{Acceleration, HeatKernels};
use skinbind::io::{obj, skeleton_json};
use skinbind::model::Grid;
use skinbind::progress::Progress;
use skinbind::voxelize::{Interior, voxelize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mesh, skeleton, resolutions @ ..] = &arguments[..] else {
        return Err("give a mesh (.obj), a skeleton (.json) and resolutions".into());
    };
    let (mesh, skeleton) = (obj::read(Path::new(mesh))?, skeleton_json::read(Path::new(skeleton))?);
    let context = Context::headless_blocking(&"gpu".into())?;
    let (device, queue) = (&context.device, &context.queue);
    let use_bone: Vec<bool> = skeleton.bones().iter().map(|bone| bone.deform).collect();
    let parameters = Parameters::default();
    println!("resolution  voxels  parts    rows   steps  sweeps for steps  how        sweeps  error bound");
    for resolution in resolutions {
        let grid = Grid::around(&mesh.bounds(), resolution.parse()?)?;
        let voxels = voxelize(&mesh, &mesh.weld(), &grid, Interior::Auto, Progress::NONE)?;
        for acceleration in [Acceleration::Chebyshev, Acceleration::Plain] {
            let places = mesh.positions();
            let (_, f) = block_on(device, async {
                let kernels = HeatKernels::new(device).await?.with_acceleration(acceleration);
                let none = Progress::NONE;
                kernels.voxel_heat(device, queue, &voxels, &skeleton, &use_bone, places, &parameters, none).await
            })?;
            println!(
                "{resolution:>10} {:>7} {:>6} {:>7} {:>7.0} {:>17}  {:<9} {:>7} {:>12.1e}",
                voxels.solid.count(),
                f.parts,
                f.rows,
                f.steps,
                f.sweeps_for_steps,
                format!("{acceleration:?}"),
                f.most.sweeps,
                f.most.error_bound
            );
        }
    }
    Ok(())
}
