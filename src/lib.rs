//! Binds 3D characters to their skeletons.

#![deny(unsafe_code)]

pub mod crawl;
pub mod error;
pub mod heat;
pub mod model;
pub mod progress;
pub mod voxelize;

pub use error::{Error, Result};
pub use glam;
#[cfg(feature = "gpu")]
pub use wgpu;
