//! Weights to weights: normalise, limit, threshold, smooth, mirror, fill, paint, transfer; all in f64.
//!
//! Every edit keeps what is locked: the rows of locked vertices as they are, and at all others the weights of locked bones,
//! while the rest shares what those leave of 1. Where an edit would leave nothing to share it, the vertex stays as it was.

mod bare;
mod inpaint;
mod mirror;
pub mod paint;
mod rows;
mod smooth;
pub mod transfer;

pub use bare::{Bare, fill_bare};
pub use inpaint::inpaint;
pub use mirror::{Axis, Mirror, mirror, mirror_bones, opposite_name};
pub use rows::{Locks, limit, merge_doubles, normalize, place_rows, threshold};
pub use smooth::{Smooth, smooth};
