//! Voxelization on the GPU: the surface, the inside, and the solid voxels gathered into bricks.
//!
//! Each step is a struct of kernels, compiled once a device, and a job, a state machine that records bounded work into
//! the caller's encoder. The result equals that of the CPU bit for bit, since both decide in integers.

mod bricks;
mod driver;
mod interior;
mod plan;
mod surface;
mod whole;

pub use bricks::{
    ABSENT, Brick, BrickJob, BrickKernels, BrickParams, BrickTotals, EDGE, GpuBricks, WGSL as BRICKS_WGSL,
};
pub use driver::{GpuVoxels, Inside, VoxelizeKernels};
pub use interior::{FloodJob, FloodParams, InteriorKernels, WGSL as INTERIOR_WGSL};
pub use plan::{VoxelPlan, largest_resolution};
pub use surface::{SurfaceJob, SurfaceKernels, SurfaceParams, WGSL as SURFACE_WGSL};
