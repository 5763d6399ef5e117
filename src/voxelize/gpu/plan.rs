//! What the voxels of a grid take on a device, before anything is allocated.

use glam::UVec3;

use crate::error::Result;
use crate::gpu::{AdapterReport, BitBuffer, too_large};
use crate::model::{MAX_RESOLUTION, MIN_RESOLUTION};
use crate::voxelize::gpu::bricks::extent;
use crate::voxelize::gpu::surface::TRIANGLE_BYTES;

/// Bytes of the buffers that do not depend on how many voxels are solid. The list of bricks comes on top once they are
/// counted, see [`crate::voxelize::gpu::BrickJob::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoxelPlan {
    dims: UVec3,
    /// The triangles, in buffers of at most 36 MiB, until the surface is done.
    pub triangles: u64,
    /// One grid of bits; there are two, surface and solid. Each must fit a buffer.
    pub bits: u64,
    /// The places of the grid of bricks, which must fit a binding.
    pub slots: u64,
}

impl VoxelPlan {
    /// The plan for a grid with these voxels and a mesh of this many triangles.
    pub fn new(dims: UVec3, triangles: usize) -> Self {
        let places: u64 = extent(dims).to_array().into_iter().map(u64::from).product();
        Self { dims, triangles: triangles as u64 * TRIANGLE_BYTES, bits: BitBuffer::bytes(dims), slots: 4 * places }
    }

    /// All bytes at once.
    pub fn total(&self) -> u64 {
        self.triangles + 2 * self.bits + self.slots
    }

    /// Whether the device's largest buffer and binding hold it.
    ///
    /// # Errors
    /// [`crate::Error::Limit`] with the limit, its value and the largest resolution that fits.
    pub fn check(&self, device: &str, buffer_bytes: u64, binding_bytes: u64) -> Result<()> {
        let binding = binding_bytes.min(buffer_bytes);
        for (what, bytes, limit) in
            [("one bit a voxel", self.bits, buffer_bytes), ("the grid of bricks", self.slots, binding)]
        {
            if bytes > limit {
                return Err(too_large(device, what.to_string(), bytes, limit, self.dims));
            }
        }
        Ok(())
    }
}

/// The largest resolution at which the voxels of every mesh fit the adapter, a cube being the largest; none where not even
/// the smallest does. How much of it can be solid is a matter of the memory for labels.
pub fn largest_resolution(adapter: &AdapterReport) -> Option<u32> {
    // Two free layers and a middle voxel come on top of the resolution, and another layer where it is odd.
    let fits = |resolution: u32| {
        let plan = VoxelPlan::new(UVec3::splat(resolution + 4), 0);
        plan.check(&adapter.name, adapter.buffer_bytes, adapter.binding_bytes).is_ok()
    };
    (MIN_RESOLUTION..=MAX_RESOLUTION).rev().find(|&resolution| fits(resolution))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn adapter(buffer_bytes: u64, binding_bytes: u64) -> AdapterReport {
        let (name, backend, driver) = ("test".to_string(), "vulkan".to_string(), String::new());
        AdapterReport {
            name,
            backend,
            kind: "other",
            driver,
            software: false,
            buffer_bytes,
            binding_bytes,
            unusable: None,
        }
    }

    #[test]
    fn the_default_limits_allow_all_resolutions() {
        assert_eq!(largest_resolution(&adapter(256 << 20, 128 << 20)), Some(1024));
        // 68^3 voxels: 2 x 68 x 68 words of 8 bytes; a voxel more on each axis and the buffer is too small.
        let small = largest_resolution(&adapter(2 * 68 * 68 * 8, 128 << 20));
        assert_eq!(small, Some(64));
        // 17^3 bricks hold 68^3 voxels.
        assert_eq!(largest_resolution(&adapter(256 << 20, 17 * 17 * 17 * 4)), Some(64));
        assert_eq!(largest_resolution(&adapter(4, 4)), None);
    }

    #[test]
    fn a_plan_that_does_not_fit_says_what_would() {
        let plan = VoxelPlan::new(UVec3::new(613, 1027, 261), 1_712_384);
        assert_eq!((plan.triangles, plan.bits, plan.slots), (68_495_360, 21_443_760, 4 * 154 * 257 * 66));
        assert!(plan.check("test", 256 << 20, 128 << 20).is_ok());
        let error = plan.check("test", 1 << 20, 1 << 20).expect_err("does not fit");
        assert!(matches!(&error, Error::Limit { limit, .. } if limit.starts_with("1048576 bytes")), "{error}");
        // The cube root of 1/20 of 1024.
        assert!(error.to_string().contains("a resolution of 370 or less"), "{error}");
    }
}
