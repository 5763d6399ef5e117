//! What the labels take on a device, before anything is allocated.

use glam::UVec3;
use wgpu::Device;

use crate::error::Result;
use crate::gpu::too_large;
use crate::voxelize::gpu::{BrickTotals, EDGE};

/// Words of `work` before the flags of bricks; `FLAGS` of the shader.
pub(super) const HEADER: u64 = 32;
/// Colours of bricks: by the parity of their coordinates.
pub(super) const COLOURS: u32 = 8;

/// Bytes of the buffers of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrawlPlan {
    dims: UVec3,
    per_voxel: usize,
    /// All labels, 8 bytes each: must fit a binding.
    pub labels: u64,
    /// Flags and queues of bricks: must fit a binding.
    pub work: u64,
    /// Places of each colour's queue.
    pub(super) ring: u32,
}

impl CrawlPlan {
    /// The plan for these solid voxels of a grid with `dims` voxels, with `per_voxel` labels each.
    pub fn new(dims: UVec3, totals: BrickTotals, per_voxel: usize) -> Self {
        let extent = dims.map(|d| d.div_ceil(EDGE));
        // No colour has more bricks than there are, nor than every second one along each axis.
        let places: u64 = extent.to_array().into_iter().map(|e| u64::from(e.div_ceil(2))).product();
        let ring = places.min(totals.bricks.into()).max(1) as u32;
        let labels = u64::from(totals.voxels.max(1)) * per_voxel as u64 * 8;
        let work = 4 * (HEADER + u64::from(totals.bricks) + u64::from(COLOURS) * u64::from(ring));
        Self { dims, per_voxel, labels, work, ring }
    }

    /// All bytes at once, starts of bones left out.
    pub fn total(&self) -> u64 {
        self.labels + self.work
    }

    /// Whether bindings of this size hold it.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] with the limit, its value and the largest resolution that fits.
    pub fn check(&self, device: &str, binding_bytes: u64) -> Result<()> {
        let labels = format!("{} labels a solid voxel", self.per_voxel);
        for (what, bytes) in [(labels, self.labels), ("queues of bricks".to_string(), self.work)] {
            if bytes > binding_bytes {
                return Err(too_large(device, what, bytes, binding_bytes, self.dims));
            }
        }
        Ok(())
    }

    /// [`CrawlPlan::check`] with the limits of a device.
    ///
    /// # Errors
    /// As there.
    pub fn check_device(&self, device: &Device) -> Result<()> {
        let limits = device.limits();
        let binding = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        self.check(&device.adapter_info().name, binding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn memory_follows_voxels_and_labels_and_not_bones() {
        // A body at 512 and 1024.
        let plan = CrawlPlan::new(UVec3::new(307, 515, 133), BrickTotals { bricks: 50_000, voxels: 1_700_000 }, 5);
        assert_eq!((plan.labels, plan.ring), (68_000_000, 39 * 65 * 17));
        assert!(plan.check("test", 128 << 20).is_ok());
        let plan = CrawlPlan::new(UVec3::new(613, 1027, 261), BrickTotals { bricks: 226_340, voxels: 13_200_000 }, 5);
        let error = plan.check("test", 128 << 20).expect_err("528 MB");
        assert!(matches!(&error, Error::Limit { needed, .. } if needed.starts_with("528000000 bytes")), "{error}");
        // The cube root of 134 / 528 of 1024.
        assert!(error.to_string().contains("a resolution of 642 or less"), "{error}");
        assert_eq!(plan.work, 4 * (32 + 226_340 + 8 * u64::from(plan.ring)));
    }
}
