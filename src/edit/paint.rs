//! Paint.
