//! Files in and out: one file or folder a format.

pub mod bvh;
pub mod export;
pub mod gltf;
pub mod makehuman;
pub mod obj;
pub mod output;
pub mod skeleton_json;
pub mod texture;
pub mod weights_file;

mod polygon;
