//! The stages of a bind on a GPU one by one, by the device's own clock, and how fast they move memory next to a plain copy.

use std::time::Instant;

use serde::Serialize;
use skinbind::bind::Params;
use skinbind::bind_gpu::GpuKernels;
use skinbind::crawl::gpu::Seeds;
use skinbind::gpu::{BitBuffer, Stopwatch, catch, finished, storage};
use skinbind::influence::gpu::{JointFormat, Surface};
use skinbind::model::{Mesh, Skeleton, Weld};
use skinbind::progress::Progress;
use skinbind::voxelize::gpu::{BrickTotals, GpuBricks};
use skinbind::voxelize::{Interior, Voxels};
use skinbind::wgpu::CommandEncoder;
use skinbind::{Error, Result};

/// Rounds of the flood and of the crawl a submission.
const FLOOD_ROUNDS: usize = 4;
const CRAWL_ROUNDS: usize = 16;
/// Most bytes of the copy.
const COPY_BYTES: u64 = 256 << 20;

/// What a stage took, or the copy.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Lap {
    pub stage: &'static str,
    /// By the device's clock; none where it has no timestamps.
    pub device_seconds: Option<f64>,
    /// By the host's clock, submitting and waiting included.
    pub wall_seconds: f64,
    /// About how many bytes it reads and writes; none where that is not what it spends its time on.
    pub bytes: Option<u64>,
}

impl Lap {
    /// Bytes a second.
    pub fn speed(&self) -> Option<f64> {
        let seconds = self.device_seconds.unwrap_or(self.wall_seconds);
        self.bytes.map(|bytes| bytes as f64 / seconds)
    }
}

/// A clock that runs while work of its stage does.
struct Clock<'a> {
    kernels: &'a GpuKernels,
    stopwatch: Option<Stopwatch>,
    lap: Lap,
}

impl<'a> Clock<'a> {
    fn new(kernels: &'a GpuKernels, stage: &'static str) -> Self {
        let stopwatch = Stopwatch::new(&kernels.device, &kernels.queue);
        let device_seconds = stopwatch.as_ref().map(|_| 0.0);
        Self { kernels, stopwatch, lap: Lap { stage, device_seconds, ..Lap::default() } }
    }

    /// Records work, submits it and waits for it.
    async fn run<T>(&mut self, record: impl FnOnce(&mut CommandEncoder) -> Result<T>) -> Result<T> {
        let GpuKernels { device, queue, .. } = self.kernels;
        let wall = Instant::now();
        let stopwatch = self.stopwatch.as_ref();
        let work = || {
            let mut encoder = device.create_command_encoder(&Default::default());
            stopwatch.inspect(|stopwatch| stopwatch.start(&mut encoder));
            let result = record(&mut encoder)?;
            let lap = stopwatch.map(|stopwatch| stopwatch.stop(&mut encoder));
            queue.submit([encoder.finish()]);
            Ok((result, lap))
        };
        let (result, lap) = catch(device, self.lap.stage, work).await?;
        finished(queue).await;
        self.lap.wall_seconds += wall.elapsed().as_secs_f64();
        if let (Some(lap), Some(seconds)) = (lap, &mut self.lap.device_seconds) {
            *seconds += lap.seconds().await?;
        }
        Ok(result)
    }

    fn stop(self, bytes: Option<u64>) -> Lap {
        Lap { bytes, ..self.lap }
    }
}

/// The best of several copies from buffer to buffer; each byte is read and written.
///
/// # Errors
/// [`Error::Device`].
pub async fn copy(kernels: &GpuKernels) -> Result<Lap> {
    let device = &kernels.device;
    let bytes = device.limits().max_buffer_size.min(COPY_BYTES);
    let buffers = || Ok([storage(device, "copy from", bytes), storage(device, "copy to", bytes)]);
    let [from, to] = catch(device, "the buffers of the copy", buffers).await?;
    let mut laps = Vec::new();
    // The first one meets memory that was never touched.
    for _ in 0..6 {
        let mut clock = Clock::new(kernels, "copy");
        let copy = |encoder: &mut CommandEncoder| {
            encoder.copy_buffer_to_buffer(&from, 0, &to, 0, bytes);
            Ok(())
        };
        clock.run(copy).await?;
        laps.push(clock.stop(Some(2 * bytes)));
    }
    let seconds = |lap: &Lap| lap.device_seconds.unwrap_or(lap.wall_seconds);
    laps.drain(1..).min_by(|a, b| seconds(a).total_cmp(&seconds(b))).ok_or_else(|| Error::Check("no copies".into()))
}

/// The stages of the geodesic method, once each. `voxels` are those that the CPU finds.
///
/// # Errors
/// Those of [`skinbind::bind::bind_on_gpu`].
pub async fn stages(
    kernels: &mut GpuKernels,
    mesh: &Mesh,
    weld: &Weld,
    voxels: &Voxels,
    skeleton: &Skeleton,
    params: &Params,
) -> Result<Vec<Lap>> {
    let use_bone: Vec<bool> = skeleton.bones().iter().map(|bone| bone.deform).collect();
    let labels = params.limits.max_influences + 1;
    let seeds = Seeds::find(&voxels.grid, &voxels.solid, skeleton, &use_bone, labels, Progress::NONE)?;
    kernels.for_labels(seeds.per_voxel()).await?;
    let kernels = &*kernels;
    let (mut laps, solid) = solid(kernels, mesh, voxels).await?;

    let mut clock = Clock::new(kernels, "bricks");
    let gatherer = &kernels.voxelize.bricks;
    let mut counted = clock.run(|encoder| gatherer.count(&kernels.device, encoder, &solid)).await?;
    let totals = counted.totals().await?;
    let bricks = clock.run(|encoder| counted.write(gatherer, encoder, &solid, totals)).await?;
    let written = bricks.slots().size() + bricks.list().size();
    laps.push(clock.stop(Some(2 * BitBuffer::bytes(solid.dims()) + written)));

    laps.extend(labels_and_weights(kernels, mesh, weld, voxels, &bricks, &seeds, params).await?);
    Ok(laps)
}

async fn solid(kernels: &GpuKernels, mesh: &Mesh, voxels: &Voxels) -> Result<(Vec<Lap>, BitBuffer)> {
    let (device, queue, kernels_of) = (&kernels.device, &kernels.queue, &kernels.voxelize);
    let binding = device.limits().max_storage_buffer_binding_size;
    let start = || kernels_of.surface.start(device, mesh, &voxels.grid, binding);
    let mut job = catch(device, "uploading triangles", start).await?;
    let mut clock = Clock::new(kernels, "surface");
    while !job.is_done() {
        clock.run(|encoder| job.record(&kernels_of.surface, encoder, 1)).await?;
    }
    let surface_lap = clock.stop(None);
    let surface = job.into_bits();
    let mut clock = Clock::new(kernels, "inside");
    let solid = if voxels.interior == Interior::Winding {
        let known = || BitBuffer::upload(device, queue, "solid voxels", &voxels.solid, binding);
        let known = catch(device, "uploading the inside", known).await?;
        clock.run(|encoder| kernels_of.interior.join(device, encoder, &surface, known)).await?
    } else {
        let mut flood = catch(device, "the flood", || kernels_of.interior.flood(device, surface)).await?;
        loop {
            clock.run(|encoder| flood.record(&kernels_of.interior, encoder, FLOOD_ROUNDS)).await?;
            if flood.status().await? {
                break;
            }
        }
        clock.run(|encoder| flood.finish(&kernels_of.interior, encoder)).await?.1
    };
    Ok((vec![surface_lap, clock.stop(None)], solid))
}

async fn labels_and_weights(
    kernels: &GpuKernels,
    mesh: &Mesh,
    weld: &Weld,
    voxels: &Voxels,
    bricks: &GpuBricks,
    seeds: &Seeds,
    params: &Params,
) -> Result<[Lap; 2]> {
    let (crawl, influence) = kernels.labelled().ok_or_else(|| Error::Check("no kernels for these labels".into()))?;
    let device = &kernels.device;
    let start = || crawl.start(device, bricks, seeds, params.neighbors);
    let mut job = catch(device, "starting the crawl", start).await?;
    let mut clock = Clock::new(kernels, "crawl");
    loop {
        clock.run(|encoder| job.record(crawl, encoder, CRAWL_ROUNDS)).await?;
        if job.status().await? {
            break;
        }
    }
    let labels = job.finish()?;
    let counters = labels.counters();
    let moved = crawl_bytes(bricks.totals(), seeds.per_voxel(), counters.visits, counters.changes);
    let crawl_lap = clock.stop(Some(moved));

    let positions: Vec<_> = weld.first.iter().map(|&vertex| mesh.positions()[vertex as usize]).collect();
    let surface = Surface { grid: &voxels.grid, positions: &positions, diagonal: mesh.bounds().diagonal() };
    let (falloff, limits) = (&params.falloff, &params.limits);
    let start = || influence.start(device, bricks, &labels, surface, falloff, limits, JointFormat::U32);
    let mut job = catch(device, "starting the weights", start).await?;
    let mut clock = Clock::new(kernels, "weights");
    while !job.is_done() {
        clock.run(|encoder| job.record(influence, encoder, 1)).await?;
    }
    Ok([crawl_lap, clock.stop(None)])
}

/// What visits move, as `docs/crawl.md` counts it: the labels of the brick and of one layer around, 27 entries of bricks, and
/// at most all labels of the brick written where it changed.
fn crawl_bytes(totals: BrickTotals, per_voxel: usize, visits: u32, changes: u32) -> u64 {
    let share = f64::from(totals.voxels) / (64.0 * f64::from(totals.bricks.max(1)));
    let brick = 64.0 * share * 8.0 * per_voxel as f64;
    let read = brick * 216.0 / 64.0 + 27.0 * 20.0;
    (f64::from(visits) * read + f64::from(changes) * brick) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_documentation() {
        // Full bricks with 5 labels, each looked at once and changed: 143 + 40 bytes a voxel.
        let totals = BrickTotals { bricks: 1000, voxels: 64_000 };
        let bytes = crawl_bytes(totals, 5, 1000, 1000) as f64 / 64_000.0;
        assert!((bytes - (135.0 + 540.0 / 64.0 + 40.0)).abs() < 1e-3, "{bytes}");
    }

    #[test]
    fn speed_prefers_the_clock_of_the_device() {
        let lap = Lap { stage: "s", device_seconds: Some(0.5), wall_seconds: 1.0, bytes: Some(100) };
        assert_eq!(lap.speed(), Some(200.0));
        assert_eq!(Lap { device_seconds: None, ..lap }.speed(), Some(100.0));
        assert_eq!(Lap { bytes: None, ..lap }.speed(), None);
    }
}
