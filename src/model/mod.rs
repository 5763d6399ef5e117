//! Plain data in f64, with no behaviour beyond its own checks.

mod animation;
mod bits;
mod bricks;
mod grid;
mod mesh;
mod pose;
mod skeleton;
mod warning;
mod weights;
mod weld;

pub use animation::{Animation, Interpolation, JointTracks, Key, Track};
pub use bits::BitGrid;
pub use bricks::{BRICK, BRICK_CELLS, Bricks, set_bits};
pub use grid::{Grid, LATTICE, MAX_RESOLUTION, MIN_RESOLUTION};
pub use mesh::{Bounds, Components, Mesh, Weld};
pub use pose::{Palette, Pose, Transform};
pub use skeleton::{Bone, Skeleton};
pub use warning::{Code, Warning};
pub use weights::{Influence, Weights};
