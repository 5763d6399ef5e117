//! Binds 3D characters to their skeletons: skin weights by distance or heat through the body, and skin moved by bones.
//!
//! ```text
//! io ─▶ Mesh + Skeleton ─▶ bind ────────────────────────────────▶ Weights ─▶ io, skin, edit
//!                           voxelize ─▶ crawl or heat ─▶ influence
//! ```
//!
//! ```no_run
//! use skinbind::bind::{Params, bind};
//! use skinbind::io::gltf::Document;
//! use skinbind::io::{obj, skeleton_json};
//! use skinbind::progress::Progress;
//!
//! # fn main() -> skinbind::Result<()> {
//! let mesh = obj::read("body.obj")?;
//! let skeleton = skeleton_json::read("skeleton.json")?;
//! let bound = bind(&mesh, &skeleton, &Params::default(), Progress::NONE)?;
//! for warning in &bound.report.warnings {
//!     eprintln!("{}", warning.message);
//! }
//! let mut document = Document::from_mesh(&mesh, "body")?;
//! document.add_skin(&skeleton, None, &bound.weights)?;
//! # Ok(())
//! # }
//! ```
//!
//! Start at [`bind::bind`]; the stages are modules of their own, and every one can be used alone. Positions are f64 in the
//! mesh' world space, in any unit. See `ARCHITECTURE.md` for the house and `docs/` for the algorithms.

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

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
