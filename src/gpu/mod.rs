//! Everything that knows wgpu and no algorithm: devices, kernels, buffers, read-back and limits.
//!
//! Stages take the caller's `Device` and record into the caller's encoder; nothing here submits. [`Context`] is a
//! convenience for programs that have no device of their own.

mod buffers;
mod context;
mod kernel;
mod limits;
mod readback;
mod stopwatch;

pub use buffers::{BitBuffer, BitReadback, Slab, Uniforms, storage, storage_with, uniforms};
#[cfg(not(target_arch = "wasm32"))]
pub use context::catch_blocking;
pub use context::{Context, Selector, catch};
pub use kernel::{Kernel, Module, fold};
pub use limits::{AdapterReport, MAX_WORKGROUPS, adapters, limits_of, required_limits};
pub(crate) use limits::{advice, too_large};
#[cfg(not(target_arch = "wasm32"))]
pub use readback::block_on;
pub use readback::{Readback, finished};
pub use stopwatch::{Lap, Stopwatch};

/// The example of the page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/gpu.md")]
struct Page;
