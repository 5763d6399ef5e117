//! Files in and out: one file or folder a format.

pub mod bvh;
