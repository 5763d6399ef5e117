//! Counts what the crawl on the GPU does, for `docs/crawl.md`: on a software adapter, time says nothing.
//!
//! `cargo run --release --example crawl_counts -- body.obj skeleton.json 64 128 256 [labels=5]`

use std::path::Path;

use skinbind::bind_gpu::GpuKernels;
use skinbind::crawl::Neighbors;
use skinbind::crawl::gpu::Seeds;
use skinbind::gpu::{Context, block_on};
use skinbind::io::{obj, skeleton_json};
use skinbind::model::Grid;
use skinbind::progress::Progress;
use skinbind::voxelize::Interior;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (named, arguments): (Vec<String>, Vec<String>) = arguments.into_iter().partition(|text| text.contains('='));
    let labels = match named.first().and_then(|text| text.strip_prefix("labels=")) {
        Some(labels) => labels.parse()?,
        None => 5,
    };
    let [mesh, skeleton, resolutions @ ..] = &arguments[..] else {
        return Err("give a mesh (.obj), a skeleton (.json) and resolutions".into());
    };
    let (mesh, skeleton) = (obj::read(Path::new(mesh))?, skeleton_json::read(Path::new(skeleton))?);
    let context = Context::headless_blocking(&"gpu".into())?;
    let (device, queue) = (&context.device, &context.queue);
    let mut kernels = block_on(device, GpuKernels::new(device, queue))?;
    let (weld, use_bone) = (mesh.weld(), vec![true; skeleton.len()]);
    println!("resolution  voxels  bricks  visits/brick  that changed/brick  sweeps/visit  seconds");
    for resolution in resolutions {
        let grid = Grid::around(&mesh.bounds(), resolution.parse()?)?;
        let (bricks, found) = block_on(device, async {
            let voxelize = &kernels.voxelize;
            let (on_gpu, voxels) =
                voxelize.voxelize(device, queue, &mesh, &weld, &grid, Interior::Auto, Progress::NONE).await?;
            let bricks = voxelize.gather(device, queue, &on_gpu.solid).await?;
            let seeds = Seeds::find(&grid, &voxels.solid, &skeleton, &use_bone, labels, Progress::NONE)?;
            Ok((bricks, seeds))
        })?;
        let clock = std::time::Instant::now();
        let found_labels = block_on(device, async {
            let (crawl, _) = kernels.for_labels(found.per_voxel()).await?;
            crawl.run(device, queue, &bricks, &found, Neighbors::TwentySix, Progress::NONE).await
        })?;
        let (totals, counters) = (bricks.totals(), found_labels.counters());
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of.max(1));
        println!(
            "{resolution:>10} {:>7} {:>7} {:>13.2} {:>19.2} {:>13.2} {:>8.2}",
            totals.voxels,
            totals.bricks,
            share(counters.visits, totals.bricks),
            share(counters.changes, totals.bricks),
            share(counters.sweeps, counters.visits),
            clock.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
