//! What a solve takes on a device, before anything is allocated.

use glam::UVec3;
use wgpu::Device;

use super::graph::{Graph, LANES, Links, Part};
use crate::error::{Error, Result};
use crate::gpu::too_large;

/// Operations of a dispatch: some 50 ms where a mid-range GPU does 5 x 10^11 of them a second, a tenth of its peak.
pub(super) const DISPATCH_OPERATIONS: u64 = 25_000_000_000;
/// Operations to sweep over a link: four lanes, each a difference, a product and a sum, and the way to the neighbour.
pub(super) const LINK_OPERATIONS: u64 = 20;
/// Operations of a row beside its links.
pub(super) const ROW_OPERATIONS: u64 = 40;

/// Bytes of the buffers of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeatPlan {
    rows: u64,
    links: u64,
    is_weighted: bool,
}

impl HeatPlan {
    /// For all rows of a graph at once. No part takes more.
    pub fn of_graph(graph: &Graph) -> Self {
        let is_weighted = matches!(graph.links, Links::Weighted { .. });
        Self { rows: graph.len() as u64, links: graph.links() as u64, is_weighted }
    }

    /// For a part.
    pub fn of_part(part: &Part) -> Self {
        Self { rows: part.rows.len() as u64, links: part.links() as u64, is_weighted: !part.is_of_voxels() }
    }

    /// For two at once.
    pub fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            links: self.links + other.links,
            is_weighted: self.is_weighted || other.is_weighted,
        }
    }

    /// Rows of four values.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of each of the three vectors.
    pub fn vector(&self) -> u64 {
        self.rows * (LANES * 4) as u64
    }

    /// Bytes of the list of links, and of their conductances where they have any.
    pub fn links(&self) -> u64 {
        self.links * 4
    }

    /// All bytes at once.
    pub fn total(&self) -> u64 {
        let weights = if self.is_weighted { self.links() + 4 * (self.rows + 1) } else { 0 };
        3 * self.vector() + 8 * self.rows + self.links() + weights
    }

    /// Bytes that a sweep moves, each row's neighbours taken to come from a cache.
    pub fn bytes_a_sweep(&self) -> u64 {
        // The right side, the heat, the one before and the next.
        self.total() + self.vector()
    }

    /// Sweeps that together take no longer than a dispatch should, at least one.
    pub(super) fn sweeps_at_once(&self) -> usize {
        let sweep = self.rows * ROW_OPERATIONS + self.links * LINK_OPERATIONS;
        (DISPATCH_OPERATIONS / sweep.max(1)).clamp(1, 1 << 16) as usize
    }

    /// Whether bindings of this size hold it, and a sweep is short enough for one dispatch.
    pub fn fits(&self, binding_bytes: u64) -> bool {
        let operations = self.rows * ROW_OPERATIONS + self.links * LINK_OPERATIONS;
        self.vector().max(self.links()) <= binding_bytes && operations <= DISPATCH_OPERATIONS
    }

    /// [`HeatPlan::fits`] as an error. `dims` are the voxels along each axis where the rows are voxels of a grid.
    ///
    /// # Errors
    /// [`Error::Limit`] with the limit, its value and the largest resolution that fits.
    pub fn check(&self, device: &str, binding_bytes: u64, dims: Option<UVec3>) -> Result<()> {
        if self.fits(binding_bytes) {
            return Ok(());
        }
        let (what, bytes, rows) = if self.links() > self.vector() {
            ("links of heat", self.links(), self.links.max(1))
        } else {
            ("heat of four bones", self.vector(), self.rows.max(1))
        };
        // A device with huge bindings still is to finish a sweep in time.
        let sweep = self.rows * ROW_OPERATIONS + self.links * LINK_OPERATIONS;
        let in_time = (u128::from(bytes) * u128::from(DISPATCH_OPERATIONS) / u128::from(sweep.max(rows))) as u64;
        let limit = binding_bytes.min(in_time);
        Err(match dims {
            Some(dims) => too_large(device, what.into(), bytes, limit, dims),
            None => Error::Limit {
                what: what.into(),
                needed: format!("{bytes} bytes in one binding"),
                limit: format!("{limit} bytes on \"{device}\""),
                advice: "bind a mesh of fewer vertices, or take --device cpu".into(),
            },
        })
    }
}

/// The most bytes that a device binds at once.
pub(super) fn binding_of(device: &Device) -> u64 {
    let limits = device.limits();
    limits.max_storage_buffer_binding_size.min(limits.max_buffer_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voxels(rows: u64) -> HeatPlan {
        HeatPlan { rows, links: 6 * rows, is_weighted: false }
    }

    #[test]
    fn a_row_of_voxels_takes_80_bytes_and_moves_96_a_sweep() {
        assert_eq!((voxels(10).total(), voxels(10).bytes_a_sweep()), (800, 960));
        let both = voxels(10).and(voxels(5));
        assert_eq!(both, voxels(15));
        // 25e9 / (10 x 40 + 60 x 20) is far above the most.
        assert_eq!((voxels(10).sweeps_at_once(), voxels(10_000_000).sweeps_at_once()), (1 << 16, 15));
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_resolution_that_would() {
        // 128 MiB hold 5.59 million rows of six links.
        assert!(voxels(5_592_405).check("test", 128 << 20, None).is_ok());
        let dims = UVec3::new(613, 1027, 261);
        let error = voxels(13_200_000).check("test", 128 << 20, Some(dims)).expect_err("317 MB");
        assert!(matches!(&error, Error::Limit { needed, .. } if needed.starts_with("316800000 bytes")), "{error}");
        // The cube root of 134.2 / 316.8 of 1024, less a hundredth.
        assert!(error.to_string().contains("a resolution of 761 or less"), "{error}");
        // However much a device binds, a sweep stays short.
        let error = voxels(200_000_000).check("test", u64::MAX, None).expect_err("3.2e10 operations");
        assert!(error.to_string().contains("fewer vertices"), "{error}");
        let weighted = HeatPlan { rows: 10, links: 70, is_weighted: true };
        assert_eq!(weighted.total(), 3 * 160 + 80 + 2 * 280 + 44);
    }
}
