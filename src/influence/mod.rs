//! Distances to weights: the K strongest influences of each vertex, adding up to 1.
//!
//! Geodesic weights follow Dionne and de Lasa, "Geodesic Voxel Binding for Production Character Meshes" (SCA 2013):
//! `w = (1 / ((1-a) l + a l^2))^power`. Every method ends in [`finish`]: cap, threshold, normalise.

mod closest;
mod cpu;
mod envelope;
mod fill;
mod finish;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod pack;
pub mod reference;
mod unreached;

use glam::UVec3;

pub use closest::closest;
pub use cpu::from_labels;
pub use envelope::envelope;
pub use fill::{Filled, fill_unreached};
pub use finish::{Limits, MOST_INFLUENCES, Stats, finish, weigh_places};
pub use unreached::boneless_warnings;

use crate::crawl::{Label, Labels};
use crate::error::{Error, Result};

/// Shortest length in the weight formula, in bounding-box diagonals: keeps the weight of a bone finite right at it.
pub const LENGTH_FLOOR: f64 = 1e-4;

/// How fast a bone's weight falls with its distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Falloff {
    /// `a` of the formula, 0 to 1: the share of the squared length in the denominator. Default 0.1.
    pub smoothing: f64,
    /// Exponent of the formula, above 0 and at most 16. Default 2, as published.
    pub power: f64,
}

impl Default for Falloff {
    fn default() -> Self {
        Self { smoothing: 0.1, power: 2.0 }
    }
}

impl Falloff {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.smoothing) {
            let value = self.smoothing.to_string();
            return Err(Error::Parameter { name: "smoothing", value, allowed: "it must be from 0 to 1" });
        }
        if !(self.power > 0.0 && self.power <= 16.0) {
            let value = self.power.to_string();
            return Err(Error::Parameter {
                name: "falloff power",
                value,
                allowed: "it must be above 0 and at most 16",
            });
        }
        Ok(())
    }
}

/// Where the labels of voxels come from: the crawl, or a table of a test.
pub trait LabelSource: Sync {
    /// The labels of a voxel of the grid, each bone at most once; none where it is not solid or no bone reaches it.
    fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_;
}

impl LabelSource for Labels {
    fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        Labels::at(self, voxel)
    }
}

#[cfg(feature = "gpu")]
impl LabelSource for crate::crawl::gpu::HostLabels {
    fn at(&self, voxel: UVec3) -> impl Iterator<Item = Label> + '_ {
        crate::crawl::gpu::HostLabels::at(self, voxel)
    }
}
