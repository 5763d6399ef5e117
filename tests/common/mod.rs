//! Helpers that several test files share.

// Each test file is a program of its own and uses a part of these.
#![allow(dead_code)]

pub mod figure;
pub mod scenes;
pub mod shapes;
