//! The stages on a GPU.

use super::{DEFAULT_RESOLUTION, Job};
use crate::bind_gpu::GpuKernels;
use crate::crawl::gpu::Seeds;
use crate::error::Result;
use crate::influence::Stats;
use crate::influence::gpu::Surface;
use crate::model::{Weights, Weld};
use crate::progress::Stage;

impl Job<'_> {
    /// Voxels, distances, weights of the welded places, on the device; the host puts the bones into the voxels.
    pub(super) async fn geodesic_on_gpu(&mut self, kernels: &mut GpuKernels, weld: &Weld) -> Result<(Weights, Stats)> {
        let (params, mesh, progress) = (self.params, self.mesh, self.progress);
        let (device, queue) = (&kernels.device.clone(), &kernels.queue.clone());
        let grid = self.grid(params.resolution.unwrap_or(DEFAULT_RESOLUTION))?;
        self.start(Stage::Voxelize)?;
        let voxelize = &kernels.voxelize;
        let (on_gpu, voxels) = voxelize.voxelize(device, queue, mesh, weld, &grid, params.interior, progress).await?;
        let bricks = voxelize.gather(device, queue, &on_gpu.solid).await?;
        drop(on_gpu);
        self.end(Stage::Voxelize);
        self.describe_voxels(&voxels);

        self.start(Stage::Crawl)?;
        let count = params.limits.max_influences + 1;
        let seeds = Seeds::find(&grid, &voxels.solid, self.skeleton, &self.use_bone, count, progress)?;
        self.report.warnings.extend(seeds.warnings.iter().cloned());
        let (crawl, influence) = kernels.for_labels(seeds.per_voxel()).await?;
        let labels = crawl.run(device, queue, &bricks, &seeds, params.neighbors, progress).await?;
        self.end(Stage::Crawl);

        self.start(Stage::Influence)?;
        let positions = self.places(weld);
        let surface = Surface { grid: &grid, positions: &positions, diagonal: mesh.bounds().diagonal() };
        let (falloff, limits) = (&params.falloff, &params.limits);
        let weights = influence.run(device, queue, &bricks, &labels, surface, falloff, limits, progress).await?;
        weights.read(device, queue).await
    }

    /// Voxels and heat on the device; the host finds the sources and samples heat at the welded places.
    pub(super) async fn voxel_heat_on_gpu(
        &mut self,
        kernels: &mut GpuKernels,
        weld: &Weld,
    ) -> Result<(Weights, Stats)> {
        let (params, progress) = (self.params, self.progress);
        let (device, queue) = (&kernels.device.clone(), &kernels.queue.clone());
        let grid = self.grid(self.heat_resolution())?;
        self.start(Stage::Voxelize)?;
        let voxelize = &kernels.voxelize;
        let (on_gpu, voxels) =
            voxelize.voxelize(device, queue, self.mesh, weld, &grid, params.interior, progress).await?;
        drop(on_gpu);
        self.end(Stage::Voxelize);
        self.describe_voxels(&voxels);

        self.start(Stage::Heat)?;
        let places = self.places(weld);
        let heat = kernels.for_heat().await?;
        let heated = heat
            .voxel_heat(device, queue, &voxels, self.skeleton, &self.use_bone, &places, &params.heat, progress)
            .await?;
        self.weigh(heated.0, &places)
    }
}
