//! Small geometry that several stages share.

pub mod segment;
pub mod topology;
