//! MakeHuman's characters: base mesh, rigs, weights, clothes and poses, from its files (the layouts as its data, which are CC0,
//! show them) and those of its successor MPFB.
//!
//! ```no_run
//! use skinbind::io::makehuman::{Base, Proxy, Rig, reference, weights};
//! use skinbind::io::weights_file;
//! # fn main() -> skinbind::Result<()> {
//! let base = Base::read("base.obj")?;
//! let rig = Rig::read("default.mhskel", &base)?;
//! let (body, report) = weights::load(weights_file::read("default_weights.mhw")?, &rig.skeleton, base.vertices())?;
//! println!("at most {} bones a vertex", report.most_influences);
//! let shoes = Proxy::read("shoes01.mhclo")?;
//! let _places = shoes.fit(base.mesh.positions())?;
//! let (_shoes, _report) = shoes.weights(&body, &rig.skeleton)?;
//! let game = Rig::read("game_engine.mhskel", &base)?;
//! let _derived = reference::derive(&body, &rig, &game)?;
//! # Ok(())
//! # }
//! ```

mod base;
pub mod pose;
mod proxy;
pub mod reference;
mod rest;
mod rig;
pub mod weights;

pub use base::Base;
pub use proxy::{Fit, Proxy};
pub use rig::Rig;
