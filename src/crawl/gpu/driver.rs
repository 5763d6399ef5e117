//! The crawl on the GPU from start to end: the one place of this stage that submits, in chunks, with progress and
//! cancelling. Renderers that record into an encoder of their own use the job instead.

use wgpu::{Device, Queue};

use super::kernels::CrawlKernels;
use super::labels::GpuLabels;
use super::seeds::Seeds;
use crate::crawl::Neighbors;
use crate::error::Result;
use crate::gpu::catch;
use crate::progress::{Progress, Stage};
use crate::voxelize::gpu::GpuBricks;

/// Rounds a submission: few at first, so that small solids do not wait for rounds they do not need, then more.
const FIRST_ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 32;

impl CrawlKernels {
    /// Finds the labels of all solid voxels. Submits to the queue, a chunk at a time, and asks `progress` between chunks.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] where the labels do not fit the device or a distance 32 bits, [`crate::Error::Parameter`]
    /// where kernels and seeds differ, [`crate::Error::Device`], [`crate::Error::Cancelled`].
    pub async fn run(
        &self,
        device: &Device,
        queue: &Queue,
        bricks: &GpuBricks,
        seeds: &Seeds,
        neighbors: Neighbors,
        progress: Progress<'_>,
    ) -> Result<GpuLabels> {
        progress.at(Stage::Crawl, 0.0)?;
        let mut job = catch(device, "starting the crawl", || self.start(device, bricks, seeds, neighbors)).await?;
        let mut rounds = FIRST_ROUNDS;
        loop {
            let chunk = || {
                let mut encoder = device.create_command_encoder(&Default::default());
                job.record(self, &mut encoder, rounds)?;
                queue.submit([encoder.finish()]);
                Ok(())
            };
            catch(device, "the crawl", chunk).await?;
            let done = job.status().await?;
            progress.at(Stage::Crawl, job.fraction())?;
            if done {
                return job.finish();
            }
            rounds = MOST_ROUNDS.min(2 * rounds);
        }
    }
}
