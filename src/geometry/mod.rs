//! Small geometry that several stages share.

pub mod segment;
