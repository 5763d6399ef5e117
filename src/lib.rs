//! Binds 3D characters to their skeletons.

#![deny(unsafe_code)]

pub mod bind;
#[cfg(feature = "gpu")]
pub mod bind_gpu;
pub mod crawl;
pub mod edit;
pub mod error;
pub mod geometry;
#[cfg(feature = "gpu")]
pub mod gpu;
pub mod heat;
pub mod influence;
pub mod io;
pub mod model;
pub mod progress;
pub mod render;
pub mod skin;
#[cfg(feature = "gpu")]
pub mod verify;
pub mod voxelize;

pub use error::{Error, Result};
pub use glam;
#[cfg(feature = "gpu")]
pub use wgpu;
