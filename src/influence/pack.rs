//! Weights cut to the slots of a file: sets of four joints and four weights, by the rules of the glTF 2.0 specification (3.7.3).

use crate::error::{Error, Result};
use crate::model::{Influence, Weights};

/// Slots a set: JOINTS_n and WEIGHTS_n are vectors of four.
pub const SLOTS: usize = 4;

/// A number in which a file stores a weight.
pub trait StoredWeight: Copy + PartialEq + Default + Send + Sync {
    /// Cuts the weights of a vertex, which are in descending order and add up to 1, so that the results add up as the
    /// format demands. A result of 0 frees its slot.
    fn cut(weights: &[f64]) -> Vec<Self>;
}

impl StoredWeight for f32 {
    /// Each is rounded. The f32 sum of n results in slot order is 1 within n 2^-24 < 2e-7 n: the weights themselves are
    /// off by at most 2^-25 each, and each of the n - 1 additions of sums up to 1 by at most 2^-24.
    fn cut(weights: &[f64]) -> Vec<Self> {
        weights.iter().map(|&w| w as f32).collect()
    }
}

impl StoredWeight for u16 {
    /// Unsigned normalised: the results add up to exactly 65,535.
    fn cut(weights: &[f64]) -> Vec<Self> {
        largest_remainder(weights, u32::from(u16::MAX)).into_iter().map(|w| w as u16).collect()
    }
}

impl StoredWeight for u8 {
    /// Unsigned normalised: the results add up to exactly 255.
    fn cut(weights: &[f64]) -> Vec<Self> {
        largest_remainder(weights, u32::from(u8::MAX)).into_iter().map(|w| w as u8).collect()
    }
}

/// Whole numbers in proportion to weights that add up to 1; the numbers add up to exactly `total`. What rounding down
/// leaves over goes to the largest remainders, one each, ties by slot. Keeps a descending order.
fn largest_remainder(weights: &[f64], total: u32) -> Vec<u32> {
    let exact = weights.iter().map(|w| w * f64::from(total));
    let mut whole: Vec<u32> = exact.clone().map(|e| e as u32).collect();
    let mut by_remainder: Vec<(usize, f64)> = exact.map(|e| e - e.floor()).enumerate().collect();
    by_remainder.sort_by(|a, b| b.1.total_cmp(&a.1));
    let left = total.saturating_sub(whole.iter().sum());
    for &(slot, _) in by_remainder.iter().cycle().take(left as usize) {
        whole[slot] += 1;
    }
    whole
}

/// The weights of a mesh in fixed slots.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed<T> {
    sets: usize,
    joints: Vec<u16>,
    weights: Vec<T>,
}

/// Packs weights: each vertex gets as many sets of four slots as the vertex with the most influences needs. The
/// influences of a vertex are in descending order, those of one joint taken together; empty slots have joint 0 and weight 0.
///
/// # Errors
/// [`Error::Check`] for a vertex without positive weights, [`Error::Limit`] for a joint above 65,535.
pub fn pack<T: StoredWeight>(weights: &Weights) -> Result<Packed<T>> {
    let mut rows = Vec::with_capacity(weights.len());
    for (vertex, influences) in weights.iter().enumerate() {
        let merged = merged(influences);
        let total: f64 = merged.iter().map(|i| i.weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::Check(format!("vertex {vertex} (0-based) has no positive weight")));
        }
        let shares: Vec<f64> = merged.iter().map(|i| i.weight / total).collect();
        let mut row = Vec::with_capacity(merged.len());
        for (influence, weight) in merged.iter().zip(T::cut(&shares)) {
            if weight != T::default() {
                row.push((joint_number(influence.joint)?, weight));
            }
        }
        rows.push(row);
    }
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let sets = most.div_ceil(SLOTS).max(1);
    let mut joints = vec![0; rows.len() * sets * SLOTS];
    let mut slots = vec![T::default(); joints.len()];
    for (vertex, row) in rows.iter().enumerate() {
        for (slot, &(joint, weight)) in row.iter().enumerate() {
            joints[vertex * sets * SLOTS + slot] = joint;
            slots[vertex * sets * SLOTS + slot] = weight;
        }
    }
    Ok(Packed { sets, joints, weights: slots })
}

/// The positive influences with each joint once, in descending order; equal ones stay in the order they had.
fn merged(influences: &[Influence]) -> Vec<Influence> {
    let mut merged: Vec<Influence> = Vec::with_capacity(influences.len());
    for influence in influences.iter().filter(|i| i.weight > 0.0) {
        match merged.iter_mut().find(|m| m.joint == influence.joint) {
            Some(known) => known.weight += influence.weight,
            None => merged.push(*influence),
        }
    }
    merged.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    merged
}

fn joint_number(joint: u32) -> Result<u16> {
    u16::try_from(joint).map_err(|_| Error::Limit {
        what: "joint number".into(),
        needed: joint.to_string(),
        limit: u16::MAX.to_string(),
        advice: "joints are 16-bit numbers in files".into(),
    })
}

impl<T: StoredWeight> Packed<T> {
    /// How many sets of four slots a vertex has: JOINTS_0 and WEIGHTS_0, JOINTS_1 ...
    pub fn sets(&self) -> usize {
        self.sets
    }

    /// How many vertices there are.
    pub fn len(&self) -> usize {
        self.joints.len() / (self.sets * SLOTS)
    }

    /// Whether there are no vertices.
    pub fn is_empty(&self) -> bool {
        self.joints.is_empty()
    }

    /// All slots of a vertex, over all sets: joints and weights.
    pub fn vertex(&self, vertex: usize) -> (&[u16], &[T]) {
        let range = vertex * self.sets * SLOTS..(vertex + 1) * self.sets * SLOTS;
        (&self.joints[range.clone()], &self.weights[range])
    }

    /// The joints of a set, vertex by vertex.
    pub fn joints(&self, set: usize) -> Vec<[u16; SLOTS]> {
        of_set(&self.joints, self.sets, set)
    }

    /// The weights of a set, vertex by vertex.
    pub fn weights(&self, set: usize) -> Vec<[T; SLOTS]> {
        of_set(&self.weights, self.sets, set)
    }

    /// The joints of a set as bytes; `None` where a joint is above 255.
    pub fn joints_u8(&self, set: usize) -> Option<Vec<[u8; SLOTS]>> {
        if self.joints.iter().any(|&j| j > u16::from(u8::MAX)) {
            return None;
        }
        Some(self.joints(set).into_iter().map(|slots| slots.map(|j| j as u8)).collect())
    }
}

fn of_set<T: Copy>(slots: &[T], sets: usize, set: usize) -> Vec<[T; SLOTS]> {
    slots.as_chunks::<SLOTS>().0.iter().skip(set).step_by(sets).copied().collect()
}
