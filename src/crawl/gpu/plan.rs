//! What the labels take on a device, before anything is allocated.

use glam::UVec3;

use super::chunks::{Chunk, MOST_CHUNKS, Window, chunks, thickest, windows};
use crate::error::{Error, Result};
use crate::gpu::{advice, too_large};
use crate::voxelize::gpu::EDGE;

/// Words of `work` before those of queues; `QUEUES` of the shader.
pub(super) const COUNTERS: usize = 4;
/// Colours of bricks: by the parity of their coordinates.
pub(super) const COLOURS: u32 = 8;

/// Bytes of the buffers of a crawl, and how its labels are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlPlan {
    /// All labels, 8 bytes each, in up to 16 buffers that a binding holds each.
    pub labels: u64,
    /// Flags and queues of bricks, in one binding.
    pub work: u64,
    pub(super) chunks: Vec<Chunk>,
    pub(super) windows: Vec<Window>,
    /// Places of each queue.
    pub(super) ring: u32,
}

impl CrawlPlan {
    /// The plan for a solid of so many bricks in a grid with `dims` voxels, where `layers` are the solid voxels of each layer
    /// of bricks along z, with `per_voxel` labels each, in bindings of `binding_bytes`.
    ///
    /// # Errors
    /// [`Error::Limit`] with the limit, its value and the largest resolution that fits.
    pub fn new(
        dims: UVec3,
        bricks: u32,
        layers: &[u32],
        per_voxel: usize,
        device: &str,
        binding_bytes: u64,
    ) -> Result<Self> {
        let voxel_bytes = per_voxel as u64 * 8;
        let voxels: u64 = layers.iter().copied().map(u64::from).sum();
        let labels = voxels.max(1) * voxel_bytes;
        let what = format!("{per_voxel} labels a solid voxel");
        let two_layers = thickest(layers) * voxel_bytes;
        // At another resolution two layers grow with its square (they are eight slices of voxels at every resolution), all labels with its cube. Each
        // buffer but the last may lack a layer, which has its share of that growth.
        let fits = |scale: f64| {
            let thick = two_layers as f64 * scale.powi(2);
            let whole = MOST_CHUNKS as f64 * (binding_bytes as f64 - thick);
            thick <= binding_bytes as f64 && labels as f64 * scale.powi(3) <= whole
        };
        let largest = || (1..1024).rev().map(|n| f64::from(n) / 1024.0).find(|&scale| fits(scale)).unwrap_or(0.0);
        let Some(chunks) = chunks(layers, binding_bytes / voxel_bytes) else {
            return Err(Error::Limit {
                what: format!("{what}, of eight slices of voxels"),
                needed: format!("{two_layers} bytes in one binding"),
                limit: format!("{binding_bytes} bytes on \"{device}\""),
                advice: advice(dims, largest()),
            });
        };
        if chunks.len() > MOST_CHUNKS {
            return Err(Error::Limit {
                what,
                needed: format!("{labels} bytes"),
                limit: format!("{MOST_CHUNKS} bindings of {binding_bytes} bytes on \"{device}\""),
                advice: advice(dims, largest()),
            });
        }
        let extent = dims.map(|d| d.div_ceil(EDGE));
        let windows = windows(&chunks, extent.z);
        let deepest = windows.iter().map(|window| window.end_layer - window.first_layer).max().unwrap_or(0);
        // No queue holds more bricks than there are, nor than every second one of its window along each axis.
        let places: u64 = [extent.x, extent.y, deepest].into_iter().map(|e| u64::from(e.div_ceil(2))).product();
        let ring = places.min(bricks.into()).max(1) as u32;
        let mut plan = Self { labels, work: 0, chunks, windows, ring };
        plan.work = 4 * (u64::from(plan.flags() + bricks) + u64::from(plan.queues()) * u64::from(ring));
        if plan.work > binding_bytes {
            return Err(too_large(device, "queues of bricks".to_string(), plan.work, binding_bytes, dims));
        }
        Ok(plan)
    }

    /// All bytes at once, starts of bones left out.
    pub fn total(&self) -> u64 {
        self.labels + self.work
    }

    /// One queue a window and colour.
    pub(super) fn queues(&self) -> u32 {
        COLOURS * self.windows.len() as u32
    }

    /// Where the flags of bricks begin in `work`: after two words a queue.
    pub(super) fn flags(&self) -> u32 {
        COUNTERS as u32 + 2 * self.queues()
    }

    /// The most labels that such bindings hold, where no layer is thick.
    pub fn most_labels(binding_bytes: u64) -> u64 {
        MOST_CHUNKS as u64 * (binding_bytes / 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: UVec3 = UVec3::new(613, 1027, 261);

    fn plan(binding: u64, per_voxel: usize) -> Result<CrawlPlan> {
        CrawlPlan::new(BODY, 226_340, &[200_000; 66], per_voxel, "test", binding)
    }

    #[test]
    fn memory_follows_voxels_and_labels_and_not_bones() {
        // A body at 512 and 1024.
        let small =
            CrawlPlan::new(UVec3::new(307, 515, 133), 50_000, &[50_000; 34], 5, "test", 128 << 20).expect("fits");
        assert_eq!((small.labels, small.ring, small.windows.len()), (68_000_000, 39 * 65 * 17, 1));
        assert_eq!(small.work, 4 * (4 + 2 * 8 + 50_000 + 8 * u64::from(small.ring)));
        let large = plan(128 << 20, 5).expect("fits");
        // 16 layers of 8 MB a binding.
        assert_eq!((large.labels, large.chunks.len(), large.windows.len()), (528_000_000, 5, 4));
        assert_eq!(large.total(), large.labels + large.work);
        assert_eq!(plan(1 << 30, 5).expect("fits").chunks.len(), 1);
    }

    #[test]
    fn what_does_not_fit_says_what_would() {
        let error = plan(24 << 20, 17).expect_err("1.8 GB");
        assert!(error.to_string().contains("eight slices"), "{error}");
        // 16 (25.2 MB - 54.4 MB s^2) is 1,795 MB s^3 at s = 0.482, a hundredth less of 1024.
        assert!(error.to_string().contains("a resolution of 488 or less"), "{error}");
        let error = plan(60 << 20, 17).expect_err("1.8 GB");
        assert!(matches!(&error, Error::Limit { needed, .. } if needed == "1795200000 bytes"), "{error}");
        assert!(error.to_string().contains("16 bindings of 62914560 bytes"), "{error}");
        let error = plan(1 << 20, 1).expect_err("queues");
        assert!(error.to_string().contains("resolution of"), "{error}");
    }

    /// The advice of an error is good: at that resolution a solid of the same shape fits.
    #[test]
    fn the_resolution_that_is_advised_fits() {
        for (binding, per_voxel) in [(24 << 20, 17), (60 << 20, 17), (9 << 20, 5), (20 << 20, 9)] {
            let error = plan(binding, per_voxel).expect_err("does not fit").to_string();
            let fits = error.split("a resolution of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
            let fits: u32 = fits.expect("a resolution");
            let scale = f64::from(fits) / 1024.0;
            let dims = (BODY.as_dvec3() * scale).as_uvec3() + 3;
            let layers = vec![(200_000.0 * scale * scale) as u32; dims.z.div_ceil(EDGE) as usize];
            let bricks = (226_340.0 * scale.powi(3)) as u32;
            let plan = CrawlPlan::new(dims, bricks, &layers, per_voxel, "test", binding);
            assert!(plan.is_ok(), "{error}: {plan:?}");
        }
    }
}
