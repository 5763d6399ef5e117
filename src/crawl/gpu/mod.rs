//! The crawl on the GPU: bricks of 4 x 4 x 4 voxels relaxed in workgroup memory, from a queue of those that have something
//! new around them, until there are none.
//!
//! The definition is that of [`crate::crawl`] with steps of 2^-16 voxel instead of 2^-32, so that a label is two words. The
//! fixed point of such relaxations does not depend on the order of work (see `docs/crawl.md`): every device finds the same bits.

mod chunks;
mod driver;
mod job;
mod kernels;
mod labels;
mod plan;
mod seeds;

pub use chunks::Window;
pub use job::{Counters, CrawlJob};
pub use kernels::{CrawlKernels, CrawlParams, WGSL, label_count};
pub use labels::{GpuLabels, HostLabels, LabelReadback};
pub use plan::CrawlPlan;
pub use seeds::{Seeds, to_steps};

/// Steps of a distance a voxel.
pub const STEPS: u32 = 1 << 16;
/// The greatest distance that a label can have, in steps; `FARTHEST` of the shader.
pub const FARTHEST: u32 = 0xfffe_ffff;
/// Rank and distance of a slot without a label; `NO_LABEL` of the shader.
pub const NO_LABEL: [u32; 2] = [u32::MAX; 2];
/// Lengths of steps over a face, an edge and a corner; `LENGTHS` of the shader: 2^16 times 1, 2^(1/2), 3^(1/2), rounded.
pub const LENGTHS: [u32; 3] = [65_536, 92_682, 113_512];
