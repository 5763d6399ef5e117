//! Labels as sortable integers: distance in fixed point above the bone's rank, so that one comparison settles ties.

use std::fmt::Debug;

/// Fixed-point distance of one voxel edge: 32 fractional bits.
pub const VOXEL: u64 = 1 << 32;
/// Largest distance at which a bone starts, 2^31 voxels; bones still further away start there. Added to the longest path
/// through a grid, 1027^3 steps of 3^(1/2), it stays within 64 bits.
const FARTHEST: f64 = (1u64 << 31) as f64;

/// A length in voxels to fixed point, to the nearest 2^-32.
pub fn to_fixed(voxels: f64) -> u64 {
    (voxels.min(FARTHEST) * VOXEL as f64).round() as u64
}

/// A fixed-point length to voxels; exact below 2^21 voxels.
pub fn to_voxels(fixed: u64) -> f64 {
    fixed as f64 / VOXEL as f64
}

/// A label that can be compared: by distance, then by rank.
pub trait Key: Copy + Ord + Send + Sync + Debug {
    /// Comes after every label.
    const NONE: Self;
    /// Distances in this bucket or above do not fit.
    const END: u64;

    /// The key of a distance below END.
    fn new(distance: u64, rank: u16) -> Self;
    /// The same bone, further away.
    fn plus(self, length: u64) -> Self;
    /// Fixed-point distance.
    fn distance(self) -> u64;
    /// Rank of the bone.
    fn rank(self) -> u16;

    /// Whole voxels of the distance.
    fn bucket(self) -> u64 {
        self.distance() >> 32
    }
}

/// 48 bits of distance, up to 2^16 voxels. Enough for all but long mazes and bones far outside.
impl Key for u64 {
    const NONE: Self = u64::MAX;
    // An offer is at most two buckets beyond its origin, and the last bucket is left to NONE.
    const END: u64 = (1 << 16) - 4;

    fn new(distance: u64, rank: u16) -> Self {
        distance << 16 | u64::from(rank)
    }
    fn plus(self, length: u64) -> Self {
        self + (length << 16)
    }
    fn distance(self) -> u64 {
        self >> 16
    }
    fn rank(self) -> u16 {
        self as u16
    }
}

/// All 64 bits of distance.
impl Key for u128 {
    const NONE: Self = u128::MAX;
    const END: u64 = (1 << 32) - 4;

    fn new(distance: u64, rank: u16) -> Self {
        u128::from(distance) << 16 | u128::from(rank)
    }
    fn plus(self, length: u64) -> Self {
        self + (u128::from(length) << 16)
    }
    fn distance(self) -> u64 {
        (self >> 16) as u64
    }
    fn rank(self) -> u16 {
        self as u16
    }
}
