//! Influences of a vertex as glTF stores them: sets of four joints and four f32 weights.
//!
//! Rules (glTF 2.0, section 3.7.3, and Khronos' validator): weights descend, no joint twice, empty slots hold joint 0, and
//! the f32 sum over all sets is 1 within 2e-7 for each weight that is not 0.

use crate::error::{Error, Result};
use crate::model::Influence;

/// Slots of a set.
pub(super) const SET: usize = 4;

/// Writes a vertex' influences, normalised, into slots; `joints` and `weights` have the same length.
///
/// # Errors
/// The vertex has no weight, one that is negative or not finite, more influences than slots, or a joint beyond `bones`.
pub(super) fn pack(
    vertex: usize,
    influences: &[Influence],
    bones: usize,
    joints: &mut [u16],
    weights: &mut [f32],
) -> Result<()> {
    let fault = |what: String| Err(Error::Check(format!("weights of vertex {vertex} (0-based): {what}")));
    if let Some(bad) = influences.iter().find(|i| !i.weight.is_finite() || i.weight < 0.0) {
        return fault(format!("a weight is {}", bad.weight));
    }
    if let Some(bad) = influences.iter().find(|i| i.joint as usize >= bones) {
        return fault(format!("joint {} of {bones}", bad.joint));
    }
    let mut sorted = merged(influences);
    let total: f64 = sorted.iter().map(|i| i.weight).sum();
    sorted.retain(|i| (i.weight / total) as f32 > 0.0);
    if sorted.is_empty() {
        return fault("there are none".into());
    }
    if sorted.len() > weights.len() {
        return fault(format!("{} influences, room for {}", sorted.len(), weights.len()));
    }
    joints.fill(0);
    weights.fill(0.0);
    for (slot, influence) in sorted.iter().enumerate() {
        joints[slot] = influence.joint as u16;
        weights[slot] = (influence.weight / total) as f32;
    }
    settle(&mut weights[..sorted.len()]);
    Ok(())
}

/// One entry a joint, weights descending, ties by joint.
fn merged(influences: &[Influence]) -> Vec<Influence> {
    let mut list = influences.to_vec();
    list.sort_by_key(|i| i.joint);
    list.dedup_by(|later, kept| {
        let same = later.joint == kept.joint;
        if same {
            kept.weight += later.weight;
        }
        same
    });
    list.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.joint.cmp(&b.joint)));
    list
}

/// Gives the largest weight what rounding to f32 left of 1. Its share of the rounding is at most 2^-24 a weight, so it
/// stays the largest unless others tie with it; then the difference is below the tolerance and left alone.
fn settle(weights: &mut [f32]) {
    let rest = 1.0 - weights.iter().map(|&w| f64::from(w)).sum::<f64>();
    let first = (f64::from(weights[0]) + rest) as f32;
    if weights.get(1).is_none_or(|&second| first >= second) {
        weights[0] = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(list: &[(u32, f64)], slots: usize) -> Result<(Vec<u16>, Vec<f32>)> {
        let list: Vec<Influence> = list.iter().map(|&(joint, weight)| Influence { joint, weight }).collect();
        let (mut joints, mut weights) = (vec![7; slots], vec![7.0; slots]);
        pack(3, &list, 100, &mut joints, &mut weights)?;
        Ok((joints, weights))
    }

    #[test]
    fn weights_descend_doubles_add_up_and_empty_slots_hold_joint_0() {
        let (joints, weights) = packed(&[(5, 0.25), (9, 0.5), (5, 0.5), (1, 0.0)], 4).unwrap();
        assert_eq!(joints, [5, 9, 0, 0]);
        assert_eq!(weights, [0.6, 0.4, 0.0, 0.0]);
    }

    #[test]
    fn faults_name_the_vertex() {
        for bad in [&[][..], &[(0, 0.0)], &[(0, f64::NAN)], &[(0, -0.5), (1, 1.5)], &[(100, 1.0)]] {
            let text = packed(bad, 4).unwrap_err().to_string();
            assert!(text.contains("vertex 3"), "{bad:?}: {text}");
        }
        assert!(packed(&[(0, 0.5), (1, 0.5)], 1).is_err());
        assert!(packed(&[(0, 0.5), (1, 0.5)], 2).is_ok());
    }

    proptest! {
        #[test]
        fn the_f32_sum_is_1(list in proptest::collection::vec((0u32..100, 1e-6f64..1.0), 1..17)) {
            let (_, weights) = packed(&list, 16).unwrap();
            let used = weights.iter().filter(|w| **w > 0.0).count();
            let sum: f32 = weights.iter().sum();
            prop_assert!(f64::from((sum - 1.0).abs()) <= 2e-7 * used as f64);
            prop_assert!(weights.is_sorted_by(|a, b| a >= b));
        }
    }
}
