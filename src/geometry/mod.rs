//! Geometry that several stages need and that knows nothing of them.

pub mod bone_distance;
pub mod box_tree;
pub mod closest_point;
mod dense;
pub mod dissection;
pub mod mesh_graph;
pub mod rim;
pub mod segment;
pub mod supernodal;
pub mod topology;
pub mod winding;
