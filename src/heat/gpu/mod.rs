//! Heat on the GPU: Jacobi sweeps over a weighted graph, four bones a row, accelerated by Chebyshev's polynomials.
//!
//! The graph may be that of the solid voxels (each link conducts 1) or any other, as that of a surface. See
//! `docs/heat.md` and `shaders/heat.wgsl`; the bounds are derived in `job.rs`.

mod driver;
mod graph;
mod job;
mod kernels;
mod plan;

pub use driver::Figures;
pub use graph::{Graph, LANES, Lanes, Links, Part};
pub use job::{Acceleration, Counters, HeatJob, HeatReadback, Steps};
pub use kernels::{HeatKernels, SweepParams, WGSL};
pub use plan::HeatPlan;
