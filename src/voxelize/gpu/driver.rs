//! The solid voxels of a mesh on the GPU from start to end: the one place of this stage that submits, in chunks, with
//! progress and cancelling. Renderers that record into an encoder of their own use the jobs instead.

use wgpu::{Device, Queue};

use crate::error::Result;
use crate::gpu::{BitBuffer, catch, finished};
use crate::model::{BitGrid, Grid, Mesh};
use crate::progress::{Progress, Stage};
use crate::voxelize::gpu::bricks::{BrickKernels, GpuBricks};
use crate::voxelize::gpu::interior::InteriorKernels;
use crate::voxelize::gpu::plan::VoxelPlan;
use crate::voxelize::gpu::surface::SurfaceKernels;

/// Steps of the surface a submission: up to 0.2 s on a mid-range GPU, mostly a few milliseconds.
const SURFACE_STEPS: usize = 4;
/// Rounds of the flood a submission: what most meshes need.
const FLOOD_ROUNDS: usize = 6;

/// How the inside is found.
#[derive(Debug, Clone, Copy)]
pub enum Inside<'a> {
    /// All that a flood from outside does not reach, for closed surfaces.
    Flood,
    /// These voxels, found elsewhere, such as by winding numbers on the CPU: f32 could not agree with f64 near one half.
    Known(&'a BitGrid),
}

/// The voxels of a mesh on the device.
#[derive(Debug)]
pub struct GpuVoxels {
    pub grid: Grid,
    /// Voxels that the surface touches.
    pub surface: BitBuffer,
    /// Those and the ones inside.
    pub solid: BitBuffer,
}

/// All kernels of this stage.
#[derive(Debug)]
pub struct VoxelizeKernels {
    pub surface: SurfaceKernels,
    pub interior: InteriorKernels,
    pub bricks: BrickKernels,
}

impl VoxelizeKernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the device does not take them.
    pub async fn new(device: &Device) -> Result<Self> {
        let compile = || {
            let (surface, interior, bricks) =
                (SurfaceKernels::new(device), InteriorKernels::new(device), BrickKernels::new(device));
            Ok(Self { surface, interior, bricks })
        };
        catch(device, "compiling the voxelizer", compile).await
    }

    /// Finds the solid voxels. Submits to the queue, a chunk at a time, and asks `progress` between chunks.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] where the grid does not fit the device, [`crate::Error::Parameter`] where the mesh leaves the grid or the
    /// inside has another, [`crate::Error::Device`], [`crate::Error::Cancelled`].
    pub async fn solid(
        &self,
        device: &Device,
        queue: &Queue,
        mesh: &Mesh,
        grid: &Grid,
        inside: Inside<'_>,
        progress: Progress<'_>,
    ) -> Result<GpuVoxels> {
        let limits = device.limits();
        VoxelPlan::new(grid.dims(), mesh.triangles().len()).check(
            &device.adapter_info().name,
            limits.max_buffer_size,
            limits.max_storage_buffer_binding_size,
        )?;
        let surface = self.surface_bits(device, queue, mesh, grid, progress).await?;
        progress.at(Stage::Interior, 0.0)?;
        let (surface, solid) = match inside {
            Inside::Flood => self.flooded(device, queue, surface, progress).await?,
            Inside::Known(bits) => {
                let solid = self.joined(device, queue, &surface, bits).await?;
                (surface, solid)
            }
        };
        progress.at(Stage::Interior, 1.0)?;
        Ok(GpuVoxels { grid: *grid, surface, solid })
    }

    /// The surface joined with an inside that was found elsewhere.
    pub(super) async fn joined(
        &self,
        device: &Device,
        queue: &Queue,
        surface: &BitBuffer,
        inside: &BitGrid,
    ) -> Result<BitBuffer> {
        let join = || {
            let inside = BitBuffer::upload(device, queue, "solid voxels", inside, surface.max_binding())?;
            let mut encoder = device.create_command_encoder(&Default::default());
            let solid = self.interior.join(device, &mut encoder, surface, inside)?;
            queue.submit([encoder.finish()]);
            Ok(solid)
        };
        catch(device, "joining surface and inside", join).await
    }

    pub(super) async fn surface_bits(
        &self,
        device: &Device,
        queue: &Queue,
        mesh: &Mesh,
        grid: &Grid,
        progress: Progress<'_>,
    ) -> Result<BitBuffer> {
        progress.at(Stage::Voxelize, 0.0)?;
        let max_binding = device.limits().max_storage_buffer_binding_size;
        let start = || self.surface.start(device, mesh, grid, max_binding);
        let mut job = catch(device, "uploading triangles", start).await?;
        while !job.is_done() {
            let chunk = || {
                let mut encoder = device.create_command_encoder(&Default::default());
                job.record(&self.surface, &mut encoder, SURFACE_STEPS)?;
                queue.submit([encoder.finish()]);
                Ok(())
            };
            catch(device, "marking surface voxels", chunk).await?;
            finished(queue).await;
            progress.at(Stage::Voxelize, job.fraction())?;
        }
        Ok(job.into_bits())
    }

    async fn flooded(
        &self,
        device: &Device,
        queue: &Queue,
        surface: BitBuffer,
        progress: Progress<'_>,
    ) -> Result<(BitBuffer, BitBuffer)> {
        let mut job = catch(device, "the flood", || self.interior.flood(device, surface)).await?;
        // How many rounds there will be is not known: the progress comes nearer to the end without reaching it.
        let mut left = 1.0;
        loop {
            let rounds = || {
                let mut encoder = device.create_command_encoder(&Default::default());
                job.record(&self.interior, &mut encoder, FLOOD_ROUNDS)?;
                queue.submit([encoder.finish()]);
                Ok(())
            };
            catch(device, "the flood", rounds).await?;
            if job.status().await? {
                break;
            }
            left *= 0.5;
            progress.at(Stage::Interior, 1.0 - left)?;
        }
        let finish = || {
            let mut encoder = device.create_command_encoder(&Default::default());
            let bits = job.finish(&self.interior, &mut encoder)?;
            queue.submit([encoder.finish()]);
            Ok(bits)
        };
        catch(device, "the flood", finish).await
    }

    /// Gathers the solid voxels into bricks: counts them, reads the totals back, allocates and writes.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] where they do not fit the device, and [`crate::Error::Device`].
    pub async fn gather(&self, device: &Device, queue: &Queue, solid: &BitBuffer) -> Result<GpuBricks> {
        let count = || {
            let mut encoder = device.create_command_encoder(&Default::default());
            let job = self.bricks.count(device, &mut encoder, solid)?;
            queue.submit([encoder.finish()]);
            Ok(job)
        };
        let mut job = catch(device, "counting bricks", count).await?;
        let totals = job.totals().await?;
        let write = || {
            let mut encoder = device.create_command_encoder(&Default::default());
            let bricks = job.write(&self.bricks, &mut encoder, solid, totals)?;
            queue.submit([encoder.finish()]);
            Ok(bricks)
        };
        catch(device, "writing bricks", write).await
    }
}
