//! File formats: one file or folder a format.

pub mod gltf;
