//! The kernels that a bind on a GPU needs, kept from bind to bind, and the rule for what a device does not hold.

use wgpu::{Device, Queue};

use crate::bind::{Bound, Params, bind, bind_on_gpu};
use crate::crawl::gpu::CrawlKernels;
use crate::error::{Error, Result};
use crate::heat::gpu::HeatKernels;
use crate::influence::gpu::InfluenceKernels;
use crate::model::{Mesh, Skeleton};
use crate::progress::Progress;
use crate::voxelize::gpu::VoxelizeKernels;

/// A device, its queue, and the kernels compiled for it so far. Make one and keep it: compiling takes longer than a small bind.
#[derive(Debug)]
pub struct GpuKernels {
    pub device: Device,
    pub queue: Queue,
    pub voxelize: VoxelizeKernels,
    /// Those that are compiled for a number of labels, the last one that was asked for.
    labelled: Option<(CrawlKernels, InfluenceKernels)>,
    /// Compiled when first asked for.
    heat: Option<HeatKernels>,
}

impl GpuKernels {
    /// Compiles what does not depend on parameters. The device and queue are the caller's; wgpu's are cheap to clone.
    ///
    /// # Errors
    /// [`crate::Error::Device`] where the device does not take the kernels.
    pub async fn new(device: &Device, queue: &Queue) -> Result<Self> {
        let voxelize = VoxelizeKernels::new(device).await?;
        Ok(Self { device: device.clone(), queue: queue.clone(), voxelize, labelled: None, heat: None })
    }

    /// The kernels for a number of labels a voxel, compiled if they are not those of the last time.
    ///
    /// # Errors
    /// As for [`CrawlKernels::new`].
    pub async fn for_labels(&mut self, labels: usize) -> Result<(&CrawlKernels, &InfluenceKernels)> {
        if self.labelled.as_ref().is_none_or(|(crawl, _)| crawl.labels() != labels) {
            let crawl = CrawlKernels::new(&self.device, labels).await?;
            let influence = InfluenceKernels::new(&self.device, labels).await?;
            self.labelled = Some((crawl, influence));
        }
        Ok(self.labelled().expect("just made"))
    }

    /// The kernels of heat, compiled when first asked for.
    ///
    /// # Errors
    /// As for [`HeatKernels::new`].
    pub async fn for_heat(&mut self) -> Result<&HeatKernels> {
        if self.heat.is_none() {
            self.heat = Some(HeatKernels::new(&self.device).await?);
        }
        Ok(self.heat.as_ref().expect("just made"))
    }

    /// The kernels that [`GpuKernels::for_labels`] made last.
    pub fn labelled(&self) -> Option<(&CrawlKernels, &InfluenceKernels)> {
        self.labelled.as_ref().map(|(crawl, influence)| (crawl, influence))
    }
}

/// Binds on the device if it holds the voxels and labels, otherwise on the CPU: comes back with the [`Error::Limit`] then, for a
/// notice, and with `cpu` as the device of the report.
///
/// # Errors
/// Those of [`bind_on_gpu`] but for that one.
pub async fn bind_where_it_fits(
    kernels: &mut GpuKernels,
    mesh: &Mesh,
    skeleton: &Skeleton,
    params: &Params,
    progress: Progress<'_>,
) -> Result<(Bound, Option<Error>)> {
    match bind_on_gpu(kernels, mesh, skeleton, params, progress).await {
        Err(limit @ Error::Limit { .. }) => Ok((bind(mesh, skeleton, params, progress)?, Some(limit))),
        bound => bound.map(|bound| (bound, None)),
    }
}
