//! What the CPU's `voxelize` does, with the device's share done there: the same voxels, reasons and warnings.

use wgpu::{Device, Queue};

use super::driver::{GpuVoxels, Inside, VoxelizeKernels};
use super::plan::VoxelPlan;
use crate::error::Result;
use crate::gpu::{BitBuffer, catch};
use crate::model::{BitGrid, Grid, Mesh, Weld};
use crate::progress::{Progress, Stage};
use crate::voxelize::{Interior, Voxels, choose, closed, touching, warn_of_shape, winding_solid};

impl VoxelizeKernels {
    /// [`crate::voxelize::voxelize`] on the device: the voxels there, and a copy of their bits on the host (a bit a voxel),
    /// which is where bones are put into them. Submits to the queue, a chunk at a time.
    ///
    /// # Errors
    /// As for [`VoxelizeKernels::solid`].
    #[expect(clippy::too_many_arguments, reason = "each is a thing of its own that only the binding knows")]
    pub async fn voxelize(
        &self,
        device: &Device,
        queue: &Queue,
        mesh: &Mesh,
        weld: &Weld,
        grid: &Grid,
        interior: Interior,
        progress: Progress<'_>,
    ) -> Result<(GpuVoxels, Voxels)> {
        let limits = device.limits();
        VoxelPlan::new(grid.dims(), mesh.triangles().len()).check(
            &device.adapter_info().name,
            limits.max_buffer_size,
            limits.max_storage_buffer_binding_size,
        )?;
        let shape = closed::examine(mesh, weld);
        let (interior, reason) = choose(interior, &shape);
        let voxels = match interior {
            Interior::Winding => {
                let marked = self.surface_bits(device, queue, mesh, grid, progress).await?;
                let surface = read(device, queue, &marked).await?;
                progress.at(Stage::Interior, 0.0)?;
                let inside = winding_solid(mesh, weld, grid, &shape, &surface, progress)?;
                let solid = self.joined(device, queue, &marked, &inside).await?;
                GpuVoxels { grid: *grid, surface: marked, solid }
            }
            _ => self.solid(device, queue, mesh, grid, Inside::Flood, progress).await?,
        };
        let surface = read(device, queue, &voxels.surface).await?;
        let solid = read(device, queue, &voxels.solid).await?;
        let mut warnings = Vec::new();
        warn_of_shape(&shape, interior, mesh.triangles().len(), &mut warnings);
        warnings.extend(touching::find(mesh, weld, grid, &surface, &solid));
        progress.at(Stage::Interior, 1.0)?;
        Ok((voxels, Voxels { grid: *grid, surface, solid, interior, reason, warnings }))
    }
}

async fn read(device: &Device, queue: &Queue, bits: &BitBuffer) -> Result<BitGrid> {
    let record = || {
        let mut encoder = device.create_command_encoder(&Default::default());
        let readback = bits.record_readback(&mut encoder);
        queue.submit([encoder.finish()]);
        Ok(readback)
    };
    catch(device, "reading voxels back", record).await?.read().await
}
