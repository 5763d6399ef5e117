//! Geometry that knows of no stage.

pub mod topology;
