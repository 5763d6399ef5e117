//! Geometry that several stages share.

pub mod winding;
